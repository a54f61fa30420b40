"""Tests against a margin: equivalence (two one-sided tests) and non-inferiority.

"Not significantly different" is not "equal": it is also what too little data look like. A claim that two algorithms
are practically the same needs a margin, chosen before the results are seen, and a test whose null hypothesis is that
they differ by at least that much.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._options import ADJUSTMENT_NAMES
from lmemtest._rounding import below
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.student import t_quantile, upper_tail
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.inference.means.comparisons import Comparisons, check_comparisons
from lmemtest.inference.means.estimates import known_direction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.inference.distributions.largest_t import LargestT

EQUIVALENCE_ADJUSTMENTS = ("holm", "bonferroni", "fdr", "none")
NONINFERIORITY_ADJUSTMENTS = ("dunnett", "holm", "bonferroni", "fdr", "none")
DECISIONS = ("equivalent", "trivially different", "different", "undecided")


@one_blas_thread()
def equivalence(
    pairs: Comparisons,
    margin: float | tuple[float, float],
    *,
    alpha: float = 0.05,
    adjust: str = "holm",
) -> Comparisons:
    """Test whether means differ by less than a margin, with two one-sided tests per difference.

    Parameters
    ----------
    pairs : Comparisons
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
    Comparisons
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
    >>> from lmemtest.inference.means.contrasts import pairs
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
    check_comparisons(pairs, "pairs", "pairs", "control")
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
    return Comparisons(
        kind="equivalence",
        table=given[[*pairs.by, "left", "right"]].assign(**columns),
        estimates=pairs.estimates,
        by=pairs.by,
        adjust=adjust,
        interval_adjust=interval_adjust,
        level=1.0 - 2.0 * alpha,
        alpha=float(alpha),
        family_size=pairs.family_size,
        direction=pairs.direction,
        control=pairs.control,
        margin=(low, high),
        selected=pairs.selected,
        notes=(*pairs.estimates.notes, *_equivalence_notes(pairs, adjust, testable)),
    )


@one_blas_thread()
def noninferiority(
    comparisons: Comparisons,
    margin: float,
    *,
    alpha: float = 0.05,
    direction: str | None = None,
    adjust: str | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Test whether means are not worse than that of a control by a margin or more.

    Parameters
    ----------
    comparisons : Comparisons
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
    Comparisons
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
    >>> from lmemtest.inference.means.contrasts import compare_to
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
    check_comparisons(comparisons, "comparisons", "control")
    size = _positive(margin, "margin")
    _check_alpha(alpha)
    model = comparisons.estimates.vcov == "model"
    adjust = ("dunnett" if model else "holm") if adjust is None else adjust
    check_choice(adjust, "adjust", NONINFERIORITY_ADJUSTMENTS)
    if adjust == "dunnett" and not model:
        raise ArgumentError(
            "adjust='dunnett' is for the model's standard errors, and these comparisons have others. Use "
            "adjust='holm', or compare_to(means, control, adjust='dunnett')."
        )
    used = known_direction(direction, comparisons.direction, "noninferiority")
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
    return Comparisons(
        kind="noninferiority",
        table=given[[*comparisons.by, "left", "right"]].assign(**columns, decision=decision),
        estimates=comparisons.estimates,
        by=comparisons.by,
        adjust=adjust,
        interval_adjust="bonferroni" if adjust in ("holm", "fdr") else adjust,
        level=1.0 - alpha,
        alpha=float(alpha),
        family_size=comparisons.family_size,
        direction=used,
        control=comparisons.control,
        margin=size,
        selected=comparisons.selected,
        notes=(*comparisons.estimates.notes, *dict.fromkeys(notes), *_interval_notes(adjust)),
    )


# ---------------------------------------------------------------------- parts


def _decisions(same: NDArray[np.bool_], differ: NDArray[np.bool_], testable: NDArray[np.bool_]) -> list[str]:
    words = np.where(same, np.where(differ, DECISIONS[1], DECISIONS[0]), np.where(differ, DECISIONS[2], DECISIONS[3]))
    return [str(word) if known else DECISIONS[3] for word, known in zip(words, testable, strict=True)]


def _row_groups(differences: Comparisons) -> list[NDArray[np.intp]]:
    """Rows of each family, all of one size."""
    return list(np.arange(len(differences.table)).reshape(len(differences.estimates.groups()), -1))


def _joints(
    comparisons: Comparisons,
    groups: list[NDArray[np.intp]],
    testable: NDArray[np.bool_],
    sign: float,
    adjust: str,
    rng: np.random.Generator,
) -> list[LargestT | None]:
    """One-sided joint distribution of each family, None where the adjustment works on single p-values."""
    if adjust != "dunnett":
        return [None] * len(groups)
    em = comparisons.estimates
    labels = em.labels()
    found = []
    for (_, means), rows in zip(em.groups(), groups, strict=True):
        at = next(i for i in means if labels[i] == comparisons.control)
        others = means[means != at][testable[rows]]
        found.append(em.largest_t(sign * (em.L[others] - em.L[at]), "greater", rng))
    return found


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


def _equivalence_notes(pairs: Comparisons, adjust: str, testable: NDArray[np.bool_]) -> list[str]:
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
