"""Does the score depend on the budget, and alike for all algorithms? Nested models, compared with honest errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import Tabular, format_number, format_p
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import DataError, DesignError
from lmemtest.recipes.budget_models import FORMS, BudgetModels, budget_models

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

REFERENCES = ("auto", "satterthwaite", "kenward-roger", "bootstrap", "chi2")
VERDICTS = ("none", "simple", "interaction")
_NAMES = {"simple": "Simple model", "fidelity": "Model with budget effect", "interaction": "Model with interaction"}
_POINTS = 25  # of a curve: enough for a smooth line
_MOST_DRAWN = 60  # budgets that are drawn as they are
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One comparison of two of the three models.

    Attributes
    ----------
    null, alternative : {"simple", "fidelity", "interaction"}
    llf_null, llf_alternative : float
        Log-likelihoods (ML).
    statistic : float
        Of the likelihood-ratio test.
    df : int
        Its degrees of freedom.
    glrt_p : float
        Its p-value with the chi-squared reference, which is too small where there are few benchmarks or runs.
    f_ratio, df_num, df_den : float
        F-test of the same effects in the larger model (REML); NaN with "bootstrap" and "chi2".
    p_value : float
        What the verdict rests on: of the F-test, the bootstrap or the chi-squared reference. NaN where too few
        benchmarks or runs leave the F-test no degrees of freedom, which only simple against fidelity may lack, and
        where these two are one model: scores that are relative to the benchmark at every budget have no effect of it
        in common.
    """

    null: str
    alternative: str
    llf_null: float
    llf_alternative: float
    statistic: float
    df: int
    glrt_p: float
    f_ratio: float
    df_num: float
    df_den: float
    p_value: float


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class FidelityResult(Tabular):
    """Whether the budget matters, and for all algorithms alike.

    Attributes
    ----------
    verdict : {"none", "simple", "interaction"}
        No effect of the budget was found; it has one; it has one that differs between algorithms.
    comparisons : tuple of Comparison
        Simple against interaction (any effect), fidelity against interaction (different effects), simple against
        fidelity (one effect for all).
    slopes : pandas.DataFrame
        Per algorithm: ``algorithm``, ``estimate``, ``se``, ``df``, ``ci_low``, ``ci_high``; what `per` says.
    per : str
        What an estimate is a difference over: one unit of budget, or the whole range.
    curves : pandas.DataFrame
        Means of the model with interaction: ``algorithm``, ``budget``, ``mean``, ``ci_low``, ``ci_high`` (95 %, each
        by itself).
    observed : pandas.DataFrame
        ``algorithm``, ``budget``, ``mean`` over instances with equal weight, ``n``; empty with many budgets.
    formulas : dict of str to str
        Of "simple", "fidelity", "interaction".
    form, reference : str
    alpha : float
    score, direction, budget, clusters : str
    n_clusters, n_obs : int
    notes : tuple of str
    """

    verdict: str
    comparisons: tuple[Comparison, ...]
    slopes: pd.DataFrame
    per: str
    curves: pd.DataFrame
    observed: pd.DataFrame
    formulas: dict[str, str]
    form: str
    reference: str
    alpha: float
    score: str
    direction: str
    budget: str
    clusters: str
    n_clusters: int
    n_obs: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, pair: tuple[str, str]) -> Comparison:
        """The comparison of two models by their names."""
        return next(c for c in self.comparisons if (c.null, c.alternative) == pair)

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison: null, alternative, llf_null, llf_alternative, statistic, df, glrt_p, f_ratio,
        df_num, df_den, p_value, significant (missing where there is no p-value)."""
        import pandas as pd

        names = [name for name in Comparison.__slots__ if name != "p_value"]
        rows = [[getattr(c, name) for name in (*names, "p_value")] for c in self.comparisons]
        table = pd.DataFrame(rows, columns=[*names, "p_value"])
        significant = (table["p_value"] < self.alpha).astype("boolean")
        return table.assign(significant=significant.mask(table["p_value"].isna()))

    @property
    def sentence(self) -> str:
        """The verdict."""
        any_effect, different = self["simple", "interaction"], self["fidelity", "interaction"]
        if self.verdict == "none":
            text = f"No effect of {self.budget} on {self.score} was found ({self._test(any_effect)})"
            return f"{text}: the data do not show that it matters, which is not to say that it does not."
        if self.verdict == "simple":
            return (
                f"{self.budget} changes {self.score} ({self._test(any_effect)}); that it does so differently for "
                f"different algorithms is not shown ({self._test(different)}). Keep it in the model as an effect of "
                "its own, or compare at one budget."
            )
        return (
            f"{self.budget} changes {self.score} differently for different algorithms ({self._test(different)}), so "
            "which algorithm is better may depend on it. Compare at stated budgets, or keep the interaction."
        )

    def sentences(self) -> tuple[str, ...]:
        """The verdict, then the effect on each algorithm."""
        return (self.sentence, *(self._slope_sentence(row) for row in self.slopes.to_dict("records")))

    def paper_lines(self) -> tuple[str, ...]:
        """The comparisons in the order and manner of the package of the paper, with our p-values beside."""
        lines = []
        for pair in (("simple", "fidelity"), ("simple", "interaction"), ("fidelity", "interaction")):
            c = self[pair]
            sign = "==" if c.df == 0 else "??" if np.isnan(c.p_value) else "<<" if c.p_value < self.alpha else "=="
            names = [f"{_NAMES[n]} ({llf:.2f})" for n, llf in zip(pair, (c.llf_null, c.llf_alternative), strict=True)]
            lines.append(f"{names[0]} {sign} {names[1]}")
            lines.append(
                f"Chi-Square: {c.statistic:.4f}, P-Value: {format_p(c.glrt_p)} "
                f"({self.reference}: {format_p(c.p_value)})"
            )
        return (*lines, f"=> {self.sentence}")

    def result_table(self) -> ResultTable:
        """The comparisons as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        facts = [f"{name}: {formula}" for name, formula in self.formulas.items()]
        facts.append(
            f"n = {self.n_obs:,} rows, {self.n_clusters:,} {self.clusters}; "
            f"p_value: {_REFERENCE_WORDS[self.reference]}; glrt_p: chi-squared. Level {100 * self.alpha:g} %: any "
            "effect first (simple against interaction), then whether it differs between algorithms, so that each "
            "verdict is wrong with at most this probability."
        )
        title = f"Does {self.budget} matter? Verdict: {self.verdict}"
        formats = {"llf_null": ".2f", "llf_alternative": ".2f", "statistic": ".4g", "f_ratio": ".4g", "df_den": ".4g"}
        return ResultTable(title=title, frame=self.to_frame(), notes=(*facts, *self.notes), formats=formats)

    def summary(self) -> str:
        """The comparisons, the verdict and the effect on each algorithm."""
        return "\n".join([self.result_table().to_text(), "", *self.sentences()])

    def _test(self, c: Comparison) -> str:
        p = format_p(c.p_value)
        p = f"p < {p[1:]}" if p.startswith("<") else f"p = {p}"
        if np.isfinite(c.f_ratio):
            return f"F({c.df_num:g}, {c.df_den:.3g}) = {c.f_ratio:.3g}, {p}"
        return f"likelihood ratio {c.statistic:.3g}, {p} ({self.reference})"

    def _slope_sentence(self, row: dict[Any, Any]) -> str:
        low, high, estimate = row["ci_low"], row["ci_high"], row["estimate"]
        if not np.isfinite(estimate):
            return f"{row['algorithm']}: the effect of {self.budget} is not estimable."
        worse = (estimate > 0) == (self.direction == "minimize")
        shown = "" if low > 0 or high < 0 else ", which does not exclude 0"
        kind = "worse" if worse else "better"
        return (
            f"{row['algorithm']}: {self.score} gets {kind} by {format_number(abs(estimate))} {self.per} "
            f"(95 % interval of the change {format_number(low)} to {format_number(high)}{shown})."
        )


_REFERENCE_WORDS = {
    "satterthwaite": "F-test with Satterthwaite degrees of freedom",
    "kenward-roger": "F-test with Kenward-Roger degrees of freedom",
    "bootstrap": "likelihood ratio against the parametric bootstrap",
    "chi2": "likelihood ratio against chi-squared",
}


@one_blas_thread()
def fidelity(
    runs: Runs,
    *,
    fidelity_var: str | None = None,
    form: str = "linear",
    alpha: float = 0.05,
    reference: str = "auto",
    n_boot: int = 199,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> FidelityResult:
    """Test whether scores depend on the budget, and whether they do so alike for all algorithms.

    Parameters
    ----------
    runs : Runs
        With two or more budgets, and several benchmarks or seeds.
    fidelity_var : str, optional
        The column to test; the budget of the runs by default.
    form : {"linear", "categorical", "spline"}
        The mean score is a straight line over the budget, has a value of its own at every budget, or is a smooth
        curve (cubic B-spline with four columns).
    alpha : float in (0, 1)
        Level of the verdict.
    reference : {"auto", "satterthwaite", "kenward-roger", "bootstrap", "chi2"}
        What the p-values come from. "auto" is an F-test: with Satterthwaite degrees of freedom for a line, after
        Kenward and Roger for curves, whose tests have several degrees of freedom (with 12 benchmarks Satterthwaite's
        reject there in 10 to 18 % of null tables). "chi2" is the likelihood-ratio test of the paper, which rejects too
        often with few benchmarks or runs.
    n_boot : int
        Draws per comparison for "bootstrap".
    rng : int, numpy.random.Generator or None
        Source of these draws.
    n_jobs : int
        Processes for "bootstrap"; -1 for one per processor.
    verbose : bool
        Print the comparisons in the manner of the paper.

    Returns
    -------
    FidelityResult
        ``verdict``, ``to_frame()`` (one row per comparison), ``slopes``, ``curves``, ``sentence``.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there is no budget column, or an option does not apply.
    DataError
        If the effect cannot be identified: one budget, one run per algorithm on one benchmark, algorithms without
        common budgets.
    DesignError
        If a curve has too many effects for an F-test with so few benchmarks or runs.

    Notes
    -----
    The models are ``score ~ algorithm``, ``+ budget`` and ``+ budget + algorithm:budget`` (equations 12 to 14 of the
    paper) with one random part: levels and slopes over the budget of benchmarks, of algorithms on benchmarks, and of
    runs, as far as the design identifies them. Effects of the budget are compared with how much they vary between
    benchmarks (between runs where there is one benchmark). Without these terms every row counts as an independent
    observation: with slopes that vary between benchmarks around zero, the paper's models find a budget effect in most
    tables.

    The verdict is a closed test: "none" unless simple against interaction rejects at `alpha`; then "interaction" if
    fidelity against interaction rejects, else "simple". Each is wrong with probability `alpha` at most.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, Appendix C; Barr, Levy, Scheepers & Tily
    (2013), doi:10.1016/j.jml.2012.11.001; Marcus, Peritz & Gabriel (1976), doi:10.1093/biomet/63.3.655

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.recipes.budgets import fidelity
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> result = fidelity(runs)
    >>> result.verdict in ("none", "simple", "interaction")
    True
    """
    check_choice(form, "form", FORMS)
    check_choice(reference, "reference", REFERENCES)
    alpha = check_fraction(alpha, "alpha")
    models = budget_models(runs, fidelity_var, form)
    chosen = reference
    if reference == "auto":
        chosen = "satterthwaite" if models.form == "linear" else "kenward-roger"
    fits = _Fits.of(models)
    comparisons = _compare(fits, chosen, {"n_boot": n_boot, "rng": rng, "n_jobs": n_jobs})
    low, high = _range(models)
    result = FidelityResult(
        verdict=_verdict(comparisons, models, alpha),
        comparisons=comparisons,
        slopes=_slopes(fits, models, low, high),
        per=_per(models, low, high),
        curves=_curves(fits, models),
        observed=_observed(models),
        formulas={"simple": models.simple, "fidelity": models.fidelity, "interaction": models.interaction},
        form=models.form,
        reference=chosen,
        alpha=alpha,
        score=runs.score,
        direction=runs.direction,
        budget=str(models.runs.budget),
        clusters=models.clusters,
        n_clusters=models.n_clusters,
        n_obs=int(fits.interaction.nobs),
        notes=(*models.notes, *_cautions(fits, models)),
    )
    if verbose:
        print("\n".join(result.paper_lines()))
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """The larger models by REML for F-tests and means; all by maximum likelihood for their likelihoods."""

    fidelity: LmmFit
    interaction: LmmFit
    ml: dict[str, LmmFit]

    @classmethod
    def of(cls, models: BudgetModels) -> _Fits:
        from lmemtest.model import fit_lmm

        fidelity, interaction = (fit_lmm(text, models.runs) for text in (models.fidelity, models.interaction))
        if interaction.rank < len(interaction.params):
            raise DataError(
                f"Some algorithm lacks budgets that form={models.form!r} needs, so its curve is not identified. Use "
                "form='linear', or filter the runs to budgets that all algorithms have."
            )
        ml = {
            "simple": fit_lmm(models.simple, models.runs, reml=False),
            "fidelity": fidelity.refit(reml=False),
            "interaction": interaction.refit(reml=False),
        }
        return cls(fidelity, interaction, ml)


def _compare(fits: _Fits, reference: str, simulation: dict[str, Any]) -> tuple[Comparison, ...]:
    budget = _columns(fits.interaction) - _columns(fits.ml["simple"])
    single = _columns(fits.fidelity) - _columns(fits.ml["simple"])
    crossed = _columns(fits.interaction) - _columns(fits.fidelity)
    plan = (
        ("simple", "interaction", fits.interaction, budget),
        ("fidelity", "interaction", fits.interaction, crossed),
        ("simple", "fidelity", fits.fidelity, single),
    )
    return tuple(_comparison(fits, n, a, fit, names, reference, simulation) for n, a, fit, names in plan)


def _columns(fit: LmmFit) -> set[str]:
    return set(fit.params.index)


def _comparison(
    fits: _Fits,
    null: str,
    alternative: str,
    fit: LmmFit,
    names: set[str],
    reference: str,
    simulation: dict[str, Any],
) -> Comparison:
    from lmemtest.inference.glrt import glrt
    from lmemtest.inference.joint import f_test

    f_ratio = df_num = df_den = float("nan")
    if not names:
        llf = float(fits.ml[null].llf)
        return Comparison(
            null=null,
            alternative=alternative,
            llf_null=llf,
            llf_alternative=llf,
            statistic=0.0,
            df=0,
            glrt_p=float("nan"),
            f_ratio=f_ratio,
            df_num=df_num,
            df_den=df_den,
            p_value=float("nan"),
        )
    test = glrt(fits.ml[null], fits.ml[alternative], "chi2")
    p = test.pvalue
    if reference == "bootstrap":
        p = glrt(fits.ml[null], fits.ml[alternative], "bootstrap", **simulation).pvalue
    elif reference != "chi2":
        L = np.eye(len(fit.params))[[name in names for name in fit.params.index]]
        found = f_test(fit, L, ddf=reference)
        f_ratio, df_num, df_den, p = found.f_ratio, float(found.df_num), found.df_den, found.p_value
    return Comparison(
        null=null,
        alternative=alternative,
        llf_null=test.llf_null,
        llf_alternative=test.llf_alternative,
        statistic=test.statistic,
        df=test.df,
        glrt_p=test.pvalue,
        f_ratio=f_ratio,
        df_num=df_num,
        df_den=df_den,
        p_value=float(p),
    )


def _verdict(comparisons: tuple[Comparison, ...], models: BudgetModels, alpha: float) -> str:
    """The closed test; a test that has no p-value is not one that found nothing."""
    any_effect, different = comparisons[:2]
    for test in (any_effect, different):
        if np.isnan(test.p_value):
            raise DesignError(
                f"form={models.form!r} tests {test.df} effects of {models.runs.budget} together, too many for "
                f"{models.n_clusters} {models.clusters}: the F-test has no degrees of freedom. Use form='linear', "
                f"bring more {models.clusters}, or take reference='bootstrap'."
            )
        if test.p_value >= alpha:
            return "none" if test is any_effect else "simple"
    return "interaction"


def _range(models: BudgetModels) -> tuple[Any, Any]:
    levels = models.runs.levels(str(models.runs.budget))
    return levels[0], levels[-1]


def _per(models: BudgetModels, low: Any, high: Any) -> str:
    from lmemtest.inference.reference import format_level

    if models.form == "linear":
        return f"for one more unit of {models.runs.budget}"
    return f"from {models.runs.budget} {format_level(low)} to {format_level(high)}"


def _rows(fits: _Fits, models: BudgetModels, budgets: list[Any]) -> Array:
    """(algorithms, budgets, p): rows of marginal means, other factors averaged with equal weights."""
    from lmemtest.inference.reference import ReferenceGrid, grid_values

    runs = models.runs
    name = str(runs.budget)
    fit = fits.interaction
    at = {} if name in fit.design.factors else {name: budgets}
    values = grid_values(fit, at)
    L = ReferenceGrid.build(fit, values, (runs.algorithm, name)).average("equal")
    rows = L.reshape(len(values[runs.algorithm]), len(values[name]), -1)
    if name in fit.design.factors:
        rows = rows[:, [values[name].index(b) for b in budgets]]
    return np.asarray(rows)


def _slopes(fits: _Fits, models: BudgetModels, low: Any, high: Any) -> pd.DataFrame:
    import pandas as pd

    rows = _rows(fits, models, [low, high])
    L = rows[:, 1] - rows[:, 0]
    if models.form == "linear":
        L = L / (high - low)
    estimate, se, df, half = _interval(fits.interaction, L, models)
    return pd.DataFrame(
        {
            "algorithm": list(fits.interaction.design.factors[models.runs.algorithm]),
            "estimate": estimate,
            "se": se,
            "df": df,
            "ci_low": estimate - half,
            "ci_high": estimate + half,
        }
    )


def _interval(fit: LmmFit, L: Array, models: BudgetModels) -> tuple[Array, Array, Array, Array]:
    """Estimates of rows, one algorithm after the other along the first axis, with their errors."""
    from lmemtest.inference.multiplicity import t_quantile

    estimate = fit.estimate(L.reshape(-1, L.shape[-1]))
    if models.relative:  # the mean over algorithms is known, so it adds no error
        L = L - L.mean(axis=0)
    L = L.reshape(-1, L.shape[-1])
    se, df = np.sqrt(np.diag(fit.cov(L))), fit.df(L, "satterthwaite")
    return estimate, se, df, t_quantile(0.5 * (1.0 - _LEVEL), df) * se


def _curves(fits: _Fits, models: BudgetModels) -> pd.DataFrame:
    from lmemtest.inference.reference import product_frame

    levels = models.runs.levels(str(models.runs.budget))
    budgets = list(levels)
    if models.form != "categorical" and len(levels) > _POINTS:
        budgets = np.linspace(float(levels[0]), float(levels[-1]), _POINTS).tolist()
    rows = _rows(fits, models, budgets)
    estimate, _, _, half = _interval(fits.interaction, rows, models)
    algorithms = tuple(fits.interaction.design.factors[models.runs.algorithm])
    frame = product_frame({"algorithm": algorithms, "budget": tuple(budgets)})
    return frame.assign(mean=estimate, ci_low=estimate - half, ci_high=estimate + half)


def _observed(models: BudgetModels) -> pd.DataFrame:
    """Means over instances, each with its mean over runs; nothing where runs have budgets of their own."""
    import pandas as pd

    from lmemtest.data.cells import compress, group_means, group_numbers

    runs = models.runs
    budget = str(runs.budget)
    cells = compress(runs, by=[*runs.instance, runs.algorithm, budget], score=runs.score)
    frame = pd.DataFrame({"algorithm": cells.frame[runs.algorithm], "budget": cells.frame[budget]})
    frame = frame.assign(mean=cells.mean, n=np.asarray(cells.n, dtype=int))
    if frame["budget"].nunique() > _MOST_DRAWN:
        frame = frame.iloc[:0]
    means, _ = group_means(frame, ["algorithm", "budget"], "mean")
    n = np.bincount(group_numbers(frame, ["algorithm", "budget"]), weights=frame["n"]).astype(int)
    return means.assign(n=n)


def _cautions(fits: _Fits, models: BudgetModels) -> list[str]:
    notes = []
    if models.clusters == "runs":
        notes.append("There is one benchmark, so the verdict holds there and says nothing about others.")
    elif models.n_clusters < 6:
        notes.append(f"There are only {models.n_clusters} benchmarks: only large and consistent effects can be shown.")
    unfinished = [name for name, fit in fits.ml.items() if not fit.converged]
    if unfinished:
        notes.append(f"The optimiser's certificate is not complete for: {', '.join(unfinished)}.")
    return notes
