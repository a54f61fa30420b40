"""What the functions return: named tuples with Autorank's fields, in Autorank's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class RankResult(NamedTuple):
    """The outcome of `autorank`; those who call the other functions may also build it by hand.

    Attributes
    ----------
    rankdf : pandas.DataFrame
        One row per population, best first: ``meanrank`` (not with ``approach="bayesian"``); ``mean`` and ``std``, or
        ``median`` and ``mad``; ``ci_lower`` and ``ci_upper``; ``effect_size`` and ``magnitude`` of the difference of
        the first row from this one; ``effect_size_above`` and ``magnitude_above``, from the row above. Bayesian:
        ``p_equal``, ``p_smaller`` and ``decision`` of this population beside the first, and the same beside the row
        above.
    pvalue : float or None
        Of the test of all populations; None where there is none (Bayesian).
    cd : float or None
        Critical difference of mean ranks (Nemenyi); None for other tests.
    omnibus : str
        "ttest", "wilcoxon", "anova", "friedman", "bayes" or "lmem".
    posthoc : str or None
        "tukeyhsd", "nemenyi", "bayes" or "lmem"; None for two populations.
    all_normal : bool
        Whether no Shapiro-Wilk test rejects at `alpha_normality`.
    pvals_shapiro : list of float
        In the order of the rows of `rankdf`; NaN for a population without variation.
    homoscedastic : bool or None
    pval_homogeneity : float or None
    homogeneity_test : {"bartlett", "levene"} or None
    alpha, alpha_normality : float
    num_samples : int
        Rows of the data.
    sample_matrix : pandas.DataFrame or None
        Draws from the posterior of each pair, above the diagonal, as `Posterior`.
    posterior_matrix : pandas.DataFrame or None
        Probabilities that the population of the column is smaller than that of the row, practically equivalent, larger.
        Above the diagonal.
    decision_matrix : pandas.DataFrame or None
        The population of the column is "smaller", "equal" or "larger" than that of the row, or "inconclusive".
    rope, rope_mode
        As given; None without a posterior.
    effect_size : {"cohen_d", "cliff_delta", "akinshin_gamma"}
    force_mode, plot_order
        As given.
    """

    rankdf: pd.DataFrame
    pvalue: float | None
    cd: float | None
    omnibus: str
    posthoc: str | None
    all_normal: bool
    pvals_shapiro: list[float]
    homoscedastic: bool | None
    pval_homogeneity: float | None
    homogeneity_test: str | None
    alpha: float
    alpha_normality: float
    num_samples: int
    sample_matrix: pd.DataFrame | None = None
    posterior_matrix: pd.DataFrame | None = None
    decision_matrix: pd.DataFrame | None = None
    rope: float | None = None
    rope_mode: str | None = None
    effect_size: str | None = None
    force_mode: str | None = None
    plot_order: list[Any] | None = None

    def __str__(self) -> str:
        return _listed(self)


class ComparisonResult(NamedTuple):
    """What a frequentist comparison adds to the checks of the data; `reorder_pos` are the columns of the rows."""

    rankdf: pd.DataFrame
    pvalue: float
    cd: float | None
    omnibus: str
    posthoc: str | None
    effect_size: str
    reorder_pos: list[int]

    def __str__(self) -> str:
        return _listed(self)


class BayesResult(NamedTuple):
    """What a Bayesian comparison adds to the checks of the data; `reorder_pos` are the columns of the rows."""

    rankdf: pd.DataFrame
    sample_matrix: pd.DataFrame
    posterior_matrix: pd.DataFrame
    decision_matrix: pd.DataFrame
    effect_size: str
    reorder_pos: list[int]

    def __str__(self) -> str:
        return _listed(self)


_TABLES = ("rankdf", "posterior_matrix", "decision_matrix")  # begin on a line of their own


def _listed(result: RankResult | ComparisonResult | BayesResult) -> str:
    """All fields with their names, but for the draws."""
    fields = [(name, value) for name, value in result._asdict().items() if name != "sample_matrix"]
    lines = [f"{name}={chr(10) if name in _TABLES else ''}{value}" for name, value in fields]
    return f"{type(result).__name__}({chr(10).join(lines)})"
