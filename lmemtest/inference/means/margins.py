"""Tests against a margin: equivalence (two one-sided tests) and non-inferiority.

"Not significantly different" is not "equal": it is also what too little data look like. A claim that two algorithms
are practically the same needs a margin, chosen before the results are seen, and a test whose null hypothesis is that
they differ by at least that much.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import below
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.student import t_quantile, upper_tail
from lmemtest.inference.means.adjust import ADJUSTMENT_NAMES, adjust_raw
from lmemtest.inference.means.comparisons import PairsResult
from lmemtest.inference.means.control import ControlResult
from lmemtest.inference.means.emmeans import DDF_NAMES, EmmeansResult
from lmemtest.inference.means.families import joint_of
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable
    from lmemtest.inference.distributions.largest_t import LargestT

    FloatArray = NDArray[np.float64]

EQUIVALENCE_ADJUSTMENTS = ("holm", "bonferroni", "fdr", "none")
NONINFERIORITY_ADJUSTMENTS = ("dunnett", "holm", "bonferroni", "fdr", "none")
DECISIONS = ("equivalent", "trivially different", "different", "undecided")
VERDICTS = ("superior", "non-inferior", "undecided")
DIRECTIONS = ("minimize", "maximize")


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class EquivalenceResult(Tabular):
    """Equivalence of means within a margin, for each difference.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    emmeans : EmmeansResult
        The means that were compared.
    margin : tuple of float
        Lower and upper limit of what counts as equivalent, on the scale of the response.
    alpha : float
        Level of each family of tests.
    adjust, interval_adjust : str
        Adjustment of the equivalence tests and of the intervals.
    difference_adjust : str
        Adjustment of the tests of no difference, from the comparisons that were passed in.
    by : tuple of str
        Factors whose levels split the comparisons into families.
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    emmeans: EmmeansResult
    margin: tuple[float, float]
    alpha: float
    adjust: str
    interval_adjust: str
    difference_adjust: str
    by: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per difference: the `by` columns, left, right, estimate, se, df, t_low, t_high, p_value (of
        equivalence, adjusted), ci_low, ci_high (1 - 2 alpha), p_difference (as passed in), decision."""
        return self.table.copy()

    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per difference."""
        return tuple(self._sentence(row) for row in self.table.to_dict("records"))

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        low, high = self.margin
        facts = (
            f"Response {self.emmeans.response}; equivalence margin {low:g} to {high:g}; two one-sided tests with "
            f"{ADJUSTMENT_NAMES[self.adjust]} adjustment, {100 * (1 - 2 * self.alpha):.4g} % intervals with "
            f"{ADJUSTMENT_NAMES[self.interval_adjust]} adjustment; {DDF_NAMES[self.emmeans.ddf]} degrees of freedom; "
            f"alpha = {self.alpha:g}.",
        )
        return ResultTable(title="Equivalence within a margin", frame=self.to_frame(), notes=facts + self.notes)

    def summary(self) -> str:
        """The decisions as a table, with a sentence for each."""
        return "\n".join([self.to_table().to_text(), "", *self.sentences()])

    def _sentence(self, row: dict[Any, Any]) -> str:
        both = f"{_where(row, self.by)}{row['left']} and {row['right']}"
        low, high = self.margin
        within = f"the margin of {low:g} to {high:g}"
        if np.isnan(row["p_value"]):
            return f"{both} cannot be compared with these data."
        p = f"equivalence {_p(row['p_value'])}, difference {_p(row['p_difference'])}"
        return {
            "equivalent": f"{both} are equivalent within {within} ({p}).",
            "trivially different": f"{both} differ, but by less than {within} ({p}).",
            "different": f"{both} differ, and not provably by less than {within} ({p}).",
            "undecided": f"{both}: neither a difference nor equivalence within {within} is shown ({p}).",
        }[row["decision"]]


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class NoninferiorityResult(Tabular):
    """Non-inferiority to a control within a margin, for each comparison.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    emmeans : EmmeansResult
        The means that were compared.
    control : str
        The level that the others are compared with.
    margin : float
        How much worse than the control still passes, on the scale of the response.
    alpha : float
        One-sided level of the family of tests.
    adjust, interval_adjust : str
        Adjustment of the p-values and of the limits.
    direction : {"minimize", "maximize"}
        Which end of the response is better.
    by : tuple of str
        Factors whose levels split the comparisons into families.
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    emmeans: EmmeansResult
    control: str
    margin: float
    alpha: float
    adjust: str
    interval_adjust: str
    direction: str
    by: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison: the `by` columns, left, right (the control), gain (how much better left is), se, df,
        t_ratio, p_value (of gain <= -margin, one-sided), gain_low (lower limit at 1 - alpha), decision."""
        return self.table.copy()

    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per comparison."""
        return tuple(self._sentence(row) for row in self.table.to_dict("records"))

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        facts = (
            f"Response {self.emmeans.response} ({self.direction}); non-inferiority margin {self.margin:g}; one-sided "
            f"tests with {ADJUSTMENT_NAMES[self.adjust]} adjustment, lower limits at {100 * (1 - self.alpha):.4g} % "
            f"with {ADJUSTMENT_NAMES[self.interval_adjust]} adjustment; {DDF_NAMES[self.emmeans.ddf]} degrees of "
            "freedom.",
        )
        return ResultTable(title=f"Non-inferiority to {self.control}", frame=self.to_frame(), notes=facts + self.notes)

    def summary(self) -> str:
        """The decisions as a table, with a sentence for each."""
        return "\n".join([self.to_table().to_text(), "", *self.sentences()])

    def _sentence(self, row: dict[Any, Any]) -> str:
        left = f"{_where(row, self.by)}{row['left']}"
        if np.isnan(row["p_value"]):
            return f"{left} and {row['right']} cannot be compared with these data."
        p = _p(row["p_value"])
        return {
            "superior": f"{left} is better than {row['right']} ({p} against a margin of {self.margin:g}, and the lower "
            "limit of its gain is above 0).",
            "non-inferior": f"{left} is not worse than {row['right']} by more than {self.margin:g} ({p}).",
            "undecided": f"{left} may be worse than {row['right']} by more than {self.margin:g} ({p}).",
        }[row["decision"]]


@one_blas_thread()
def equivalence(
    pairs: PairsResult | ControlResult,
    margin: float | tuple[float, float],
    *,
    alpha: float = 0.05,
    adjust: str = "holm",
) -> EquivalenceResult:
    """Test whether means differ by less than a margin, with two one-sided tests per difference.

    Parameters
    ----------
    pairs : PairsResult or ControlResult
        The differences, from `pairs` or `compare_to`.
    margin : float > 0, or (low, high) with low < 0 < high
        Differences within it are of no practical interest; on the scale of the model's response. Choose it before
        the results are seen.
    alpha : float in (0, 0.5), default 0.05
        Level of the tests of equivalence, and of the tests of no difference.
    adjust : {"holm", "bonferroni", "fdr", "none"}
        Adjustment of the equivalence p-values for the number of differences in one group of `by`.

    Returns
    -------
    EquivalenceResult
        ``to_frame()`` has the `by` columns, left, right, estimate, se, df, t_low, t_high, p_value, ci_low, ci_high,
        p_difference, decision.

    Raises
    ------
    ArgumentError
        If the margin is not positive and finite, or an option is out of its range.

    Notes
    -----
    p_value = max{P(T > t_low), P(T < t_high)} with t_low = (estimate - low) / se and t_high = (estimate - high) / se.
    Unadjusted it is below alpha exactly when the 1 - 2 alpha interval lies within the margin (Schuirmann 1987);
    "bonferroni" widens the interval in the same way. Decisions: "equivalent" (only equivalence is significant),
    "trivially different" (both are), "different" (only the difference is), "undecided" (neither). The tests of no
    difference keep the adjustment that they came with, so each of the two families of claims errs with probability
    alpha at most.

    References
    ----------
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680, doi:10.1007/BF01068419;
    Lakens (2017), Soc. Psychol. Pers. Sci. 8, 355-362, doi:10.1177/1948550617697177

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.inference.means.comparisons import pairs
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> em = emmeans(fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm")
    >>> equivalence(pairs(em), margin=2).to_frame()[["left", "right", "p_value", "decision"]].round(3)
      left right  p_value    decision
    0    A     B    0.008  equivalent
    1    A     C    1.000   different
    2    B     C    1.000   different
    """
    _check_differences(pairs, (PairsResult, ControlResult), "pairs", "pairs() or compare_to()")
    low, high = _limits(margin)
    _check_alpha(alpha)
    check_choice(adjust, "adjust", EQUIVALENCE_ADJUSTMENTS)
    given = pairs.table
    estimate, se, df = (given[name].to_numpy(dtype=float) for name in ("estimate", "se", "df"))
    testable = given["p_value"].notna().to_numpy()
    t_low, t_high = (
        np.where(testable, (estimate - limit) / np.where(testable, se, 1.0), np.nan) for limit in (low, high)
    )
    raw = np.maximum(upper_tail(t_low, df), upper_tail(-t_high, df))
    groups = _row_groups(pairs)
    p_value = np.concatenate([adjust_raw(raw[rows], adjust, len(rows)) for rows in groups])
    interval_adjust = "none" if adjust == "none" else "bonferroni"
    count = len(groups[0]) if interval_adjust == "bonferroni" else 1
    half = np.where(testable, t_quantile(alpha / count, df) * se, np.nan)
    p_difference = given["p_value"].to_numpy(dtype=float)
    columns = {
        "estimate": estimate,
        "se": se,
        "df": df,
        "t_low": t_low,
        "t_high": t_high,
        "p_value": p_value,
        "ci_low": estimate - half,
        "ci_high": estimate + half,
        "p_difference": p_difference,
        "decision": _decisions(below(p_value, alpha), below(p_difference, alpha), testable),
    }
    return EquivalenceResult(
        table=given[[*pairs.by, "left", "right"]].assign(**columns),
        emmeans=pairs.emmeans,
        margin=(low, high),
        alpha=float(alpha),
        adjust=adjust,
        interval_adjust=interval_adjust,
        difference_adjust=pairs.adjust,
        by=pairs.by,
        notes=(*pairs.emmeans.notes, *_equivalence_notes(pairs, adjust, testable)),
    )


@one_blas_thread()
def noninferiority(
    comparisons: ControlResult,
    margin: float,
    *,
    alpha: float = 0.05,
    direction: str | None = None,
    adjust: str | None = None,
    rng: int | np.random.Generator | None = None,
) -> NoninferiorityResult:
    """Test whether means are not worse than that of a control by a margin or more.

    Parameters
    ----------
    comparisons : ControlResult
        The differences, from `compare_to`.
    margin : float > 0
        How much worse than the control is still acceptable, on the scale of the model's response. Choose it before
        the results are seen.
    alpha : float in (0, 0.5), default 0.05
        One-sided level of the family of tests within one group of `by`.
    direction : {"minimize", "maximize"}, optional
        Which end of the response is better; default: that of the runs behind the fit.
    adjust : {"dunnett", "holm", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of comparisons; "dunnett" is for the model's standard errors. Default: "dunnett" for
        these, else "holm".
    rng : int, numpy.random.Generator or None
        For "dunnett" where the integral is quasi-Monte-Carlo.

    Returns
    -------
    NoninferiorityResult
        ``to_frame()`` has the `by` columns, left, right, gain, se, df, t_ratio, p_value, gain_low, decision.

    Raises
    ------
    ArgumentError
        If the margin is not positive and finite, the direction is not known, or an option is out of its range.

    Notes
    -----
    gain is the difference in the better direction, t_ratio = (gain + margin) / se, p_value = P(T > t_ratio). A level
    is "non-inferior" if p_value is below alpha, "superior" if moreover the lower limit of its gain is above 0: the
    limit is simultaneous, so no further adjustment is due. "holm" and "fdr" have Bonferroni limits, and superiority
    is read off these.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.inference.means.control import compare_to
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> em = emmeans(fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm")
    >>> result = noninferiority(compare_to(em, "A"), margin=2, direction="maximize")
    >>> result.to_frame()[["left", "right", "p_value", "decision"]].round(3)
      left right  p_value      decision
    0    B     A    0.005  non-inferior
    1    C     A    0.000      superior
    """
    _check_differences(comparisons, (ControlResult,), "comparisons", "compare_to()")
    size = _positive(margin, "margin")
    _check_alpha(alpha)
    model = comparisons.emmeans.vcov == "model"
    adjust = ("dunnett" if model else "holm") if adjust is None else adjust
    check_choice(adjust, "adjust", NONINFERIORITY_ADJUSTMENTS)
    if adjust == "dunnett" and not model:
        raise ArgumentError(
            "adjust='dunnett' is for the model's standard errors, and these comparisons have others. Use "
            "adjust='holm', or compare_to(means, control, adjust='dunnett')."
        )
    used = _known_direction(comparisons.direction, direction)
    generator = resolve_rng(rng)
    given = comparisons.table
    sign = 1.0 if used == "maximize" else -1.0
    gain = sign * given["estimate"].to_numpy(dtype=float)
    se, df = given["se"].to_numpy(dtype=float), given["df"].to_numpy(dtype=float)
    testable = given["p_value"].notna().to_numpy()
    t_ratio = np.where(testable, (gain + size) / np.where(testable, se, 1.0), np.nan)
    p_value, critical = np.full(len(given), np.nan), np.full(len(given), np.nan)
    notes: list[str] = []
    groups = _row_groups(comparisons)
    for rows, joint in zip(groups, _joints(comparisons, groups, testable, sign, adjust, generator), strict=True):
        if joint is None:
            p_value[rows] = adjust_raw(upper_tail(t_ratio[rows], df[rows]), adjust, len(rows))
            critical[rows] = t_quantile(alpha / (1 if adjust == "none" else len(rows)), df[rows])
        else:
            p_value[rows], critical[rows] = joint.sf(t_ratio[rows], df[rows]), joint.isf(alpha, df[rows])
            notes.append(joint.note(t_ratio[rows], df[rows]))
    gain_low = np.where(testable, gain - critical * se, np.nan)
    passed = below(p_value, alpha)
    decision = np.where(passed & (gain_low > 0), "superior", np.where(passed, "non-inferior", "undecided"))
    columns = {"gain": gain, "se": se, "df": df, "t_ratio": t_ratio, "p_value": p_value, "gain_low": gain_low}
    return NoninferiorityResult(
        table=given[[*comparisons.by, "left", "right"]].assign(**columns, decision=decision),
        emmeans=comparisons.emmeans,
        control=comparisons.control,
        margin=size,
        alpha=float(alpha),
        adjust=adjust,
        interval_adjust="bonferroni" if adjust in ("holm", "fdr") else adjust,
        direction=used,
        by=comparisons.by,
        notes=(*comparisons.emmeans.notes, *dict.fromkeys(notes), *_interval_notes(adjust)),
    )


# ---------------------------------------------------------------------- parts


def _decisions(same: NDArray[np.bool_], differ: NDArray[np.bool_], testable: NDArray[np.bool_]) -> list[str]:
    words = np.where(same, np.where(differ, DECISIONS[1], DECISIONS[0]), np.where(differ, DECISIONS[2], DECISIONS[3]))
    return [str(word) if known else DECISIONS[3] for word, known in zip(words, testable, strict=True)]


def _row_groups(differences: PairsResult | ControlResult) -> list[NDArray[np.intp]]:
    """Rows of each family, all of one size."""
    return list(np.arange(len(differences.table)).reshape(len(differences.emmeans.groups()), -1))


def _joints(
    comparisons: ControlResult,
    groups: list[NDArray[np.intp]],
    testable: NDArray[np.bool_],
    sign: float,
    adjust: str,
    rng: np.random.Generator,
) -> list[LargestT | None]:
    """One-sided joint distribution of each family, None where the adjustment works on single p-values."""
    if adjust != "dunnett":
        return [None] * len(groups)
    em = comparisons.emmeans
    labels = em.labels()
    found = []
    for (_, means), rows in zip(em.groups(), groups, strict=True):
        at = next(i for i in means if labels[i] == comparisons.control)
        others = means[means != at][testable[rows]]
        found.append(joint_of(em, sign * (em.L[others] - em.L[at]), "greater", rng))
    return found


def _known_direction(of_runs: str | None, given: str | None) -> str:
    if given is not None:
        return check_choice(given, "direction", DIRECTIONS)
    if of_runs is None:
        raise ArgumentError(
            "noninferiority must know which end of the response is better: give direction='minimize' or 'maximize', "
            "or fit Runs."
        )
    return of_runs


def _check_differences(value: Any, kinds: tuple[type, ...], name: str, source: str) -> None:
    if not isinstance(value, kinds):
        raise ArgumentError(f"{name} must be the result of {source}, got {type(value).__name__}.")


def _check_alpha(alpha: Any) -> None:
    check_fraction(alpha, "alpha")
    if alpha >= 0.5:
        raise ArgumentError(f"alpha must be below 0.5 for tests against a margin, got {alpha!r}.")


def _limits(margin: Any) -> tuple[float, float]:
    if isinstance(margin, (tuple, list)):
        if len(margin) != 2:
            raise ArgumentError(f"margin must be one number or (low, high), got {margin!r}.")
        low, high = (_finite(limit, margin) for limit in margin)
        if not low < 0 < high:
            raise ArgumentError(f"margin=(low, high) must have low < 0 < high, got {margin!r}.")
        return low, high
    size = _positive(margin, "margin")
    return -size, size


def _finite(limit: Any, margin: Any) -> float:
    if isinstance(limit, numbers.Real) and np.isfinite(float(limit)):
        return float(limit)
    raise ArgumentError(f"margin must be finite, got {margin!r}.")


def _positive(value: Any, name: str) -> float:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if is_number and np.isfinite(float(value)) and float(value) > 0:
        return float(value)
    raise ArgumentError(
        f"{name} must be a positive, finite number on the scale of the response, got {value!r}. It is the largest "
        "difference that is of no practical interest."
    )


def _equivalence_notes(pairs: PairsResult | ControlResult, adjust: str, testable: NDArray[np.bool_]) -> list[str]:
    name = ADJUSTMENT_NAMES[pairs.adjust]
    notes = [f"The tests of no difference (p_difference) have {name} adjustment, from the comparisons passed in."]
    if not testable.all():
        notes.append(f"{int((~testable).sum())} of {len(testable)} differences have no test and are undecided.")
    return [*notes, *_interval_notes(adjust)]


def _interval_notes(adjust: str) -> list[str]:
    if adjust not in ("holm", "fdr"):
        return []
    return [
        f"The {ADJUSTMENT_NAMES[adjust]} adjustment has no simultaneous limits; those shown are Bonferroni limits and "
        "may disagree with the p-values."
    ]


def _where(row: dict[Any, Any], by: tuple[str, ...]) -> str:
    where = ", ".join(f"{name} = {format_level(row[name])}" for name in by)
    return f"At {where}: " if where else ""


def _p(value: float) -> str:
    from lmemtest.words import format_p

    text = format_p(value)
    return f"p{text}" if text.startswith("<") else f"p={text}"
