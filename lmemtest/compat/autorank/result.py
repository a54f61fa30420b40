"""What the functions take and return: checks of arguments, and named tuples with Autorank's fields in its order."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    import pandas as pd

UNDEFINED = "undefined"  # magnitude of an effect in units of a spread that is zero


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
        """All fields with their names, but for the draws; tables begin on a line of their own."""
        tables = ("rankdf", "posterior_matrix", "decision_matrix")
        fields = [(name, value) for name, value in self._asdict().items() if name != "sample_matrix"]
        lines = [f"{name}={chr(10) if name in tables else ''}{value}" for name, value in fields]
        return f"{type(self).__name__}({chr(10).join(lines)})"


class ComparisonResult(NamedTuple):
    """What a frequentist comparison adds to the checks of the data; `reorder_pos` are the columns of the rows."""

    rankdf: pd.DataFrame
    pvalue: float
    cd: float | None
    omnibus: str
    posthoc: str | None
    effect_size: str
    reorder_pos: list[int]


class BayesResult(NamedTuple):
    """The same of a Bayesian comparison."""

    rankdf: pd.DataFrame
    sample_matrix: pd.DataFrame
    posterior_matrix: pd.DataFrame
    decision_matrix: pd.DataFrame
    effect_size: str
    reorder_pos: list[int]


class WrongTypeError(LmemtestError, TypeError):
    """An argument has a type that its rule does not allow."""


def _one_of(*options: str, kind: type = str) -> tuple[Any, ...]:
    return kind, f"be {' or '.join(map(repr, options))}", options.__contains__


# Of each argument: its type, the rule, what holds for its values, and the rule for these where that is another one.
RULES: dict[str, tuple[Any, ...]] = {
    "alpha": (float, "be a float such as 0.05", lambda x: 0.0 < x < 1.0, "be between 0 and 1 (both excluded)"),
    "verbose": (bool, "be True or False"),
    "order": _one_of("ascending", "descending"),
    "approach": _one_of("frequentist", "bayesian", "lmem"),
    "rope": (numbers.Real, "be a number", lambda x: float(x) >= 0.0, "not be negative"),
    "rope_mode": _one_of("effsize", "absolute"),
    "nsamples": (numbers.Integral, "be a whole number", lambda x: int(x) >= 1, "be at least 1"),
    "effect_size": _one_of("cohen_d", "cliff_delta", "akinshin_gamma"),
    "force_mode": _one_of("parametric", "nonparametric"),
    "decimal_places": (numbers.Integral, "be a whole number", lambda x: 0 <= int(x) <= 15, "be between 0 and 15"),
    "effect_size_relation": _one_of("best", "above", "both", kind=object),
    "posterior_relation": _one_of("best", "above", "both", kind=object),
    "width": (numbers.Real, "be a number of inches or None", lambda x: float(x) > 0, "be positive"),
}
OPTIONAL = ("effect_size", "force_mode", "width")


def check(**arguments: Any) -> None:
    """Refuse the first argument that breaks its rule: with a `TypeError` or a `ValueError`, as Autorank does."""
    for name, value in arguments.items():
        if value is None and name in OPTIONAL:
            continue
        kind, rule, *values = RULES[name]
        if not isinstance(value, kind):
            raise WrongTypeError(f"{name} must {rule}, got {value!r}.")
        if values and not values[0](value):
            raise ArgumentError(f"{name} must {values[-1] if len(values) > 1 else rule}, got {value!r}.")


def check_result(result: Any) -> None:
    """Refuse what `autorank` did not return, and what is not built as its result."""
    if not isinstance(result, RankResult):
        raise WrongTypeError(f"result must be a RankResult, the return value of autorank, got {type(result).__name__}.")


def check_plot_order(names: Any, columns: list[Any]) -> None:
    """The columns, each once, in any order."""
    if not isinstance(names, list):
        raise WrongTypeError(f"plot_order must be a list of the columns of data, got {type(names).__name__}.")
    if len(names) != len(columns):
        raise ArgumentError(f"plot_order must name all {len(columns)} columns of data, got {len(names)} names.")
    for name in names:
        if name not in columns:
            wrong = ArgumentError if isinstance(name, str) else WrongTypeError
            raise wrong(f"plot_order must name columns of data, and {name!r} is none of {columns!r}.")
    if any(names.count(name) > 1 for name in names):
        raise ArgumentError("plot_order must name every column once; it has a name twice.")


def check_maps(**lists: Any) -> None:
    """Refuse lists that do not have one element for each of the four maps."""
    for name, value in lists.items():
        if value is not None and not isinstance(value, list):
            raise WrongTypeError(f"{name} must be a list of 4, one for each map, or None, got {type(value).__name__}.")
        if value is not None and len(value) != 4:
            raise ArgumentError(f"{name} must have 4 elements, one for each map, got {len(value)}.")
