"""Tests against a margin: equivalence (two one-sided tests) and non-inferiority.

"Not significantly different" is not "equal": it is also what too little data look like. A claim that two algorithms
are practically the same needs a margin, chosen before the results are seen, and a test whose null hypothesis is that
they differ by at least that much.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.options import ADJUSTMENT_NAMES, STEPWISE_ADJUSTMENTS
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import LARGEST_SCORE, check_choice, check_fraction, check_number, is_size, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, upper_tail
from lmemtest.lmm.means.adjust import adjust_raw, raw_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.lmm.means.comparisons import Comparisons

EQUIVALENCE_ADJUSTMENTS = ("holm", "bonferroni", "fdr", "none")
NONINFERIORITY_ADJUSTMENTS = ("dunnett", "holm", "bonferroni", "fdr", "none")


@one_blas_thread()
def equivalence(
    pairs: Comparisons, margin: float | tuple[float, float], *, alpha: float = 0.05, adjust: str = "holm"
) -> Comparisons:
    """Test whether means differ by less than a margin, with two one-sided tests per difference.

    Of all pairs, or of the differences from a control.

    Parameters
    ----------
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
        ``to_frame()`` has the `by` columns, left, right, estimate, se, df, t_low, t_high, p_value (of equivalence),
        ci_low, ci_high (of level 1 - 2 alpha, adjusted as the p-values are), p_difference (as passed in), decision.

    Raises
    ------
    ArgumentError
        If the margin is not positive and finite, or an option is out of its range.

    Notes
    -----
    p_value = max{P(T > t_low), P(T < t_high)} with t_low = (estimate - low) / se and t_high = (estimate - high) / se.
    It is below alpha exactly when the 1 - 2 alpha interval lies within the margin (Schuirmann 1987): adjusted p-values
    and intervals are those of the level at which the pair is tested in the end (with "holm" that of its step). With
    "none", each pair has its own variance where that of many is moderated. Decisions: "equivalent" (only equivalence is
    significant), "trivially different" (both are), "different" (only the difference is), "undecided" (neither). The
    tests of no difference keep the adjustment that they came with, so each of the two families of claims errs with
    probability alpha at most.

    References
    ----------
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680, doi:10.1007/BF01068419;
    Lakens (2017), Soc. Psychol. Pers. Sci. 8, 355-362, doi:10.1177/1948550617697177

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.pairs().equivalence(margin=2).to_frame()[["left", "right", "p_value", "decision"]].round(3)
      left right  p_value    decision
    0    A     B    0.008  equivalent
    1    A     C    1.000   different
    2    B     C    1.000   different
    """
    pairs.require("equivalence", "pairs", "control")
    if isinstance(margin, (tuple, list)):
        if len(margin) != 2:
            raise ArgumentError(f"margin must be one number or (low, high), got {margin!r}.")
        if not all(is_size(limit) for limit in margin):
            raise ArgumentError(f"margin must be finite, got {margin!r}.")
        low, high = float(margin[0]), float(margin[1])
        if not low < 0 < high:
            raise ArgumentError(f"margin=(low, high) must have low < 0 < high, got {margin!r}.")
    else:
        high = _positive(margin)
        low = -high
    _check_alpha(alpha)
    check_choice(adjust, "adjust", EQUIVALENCE_ADJUSTMENTS)
    pairs = _each_by_itself(pairs) if adjust == "none" else pairs
    compared = pairs.table
    estimate, se, df, p_difference = (
        compared[name].to_numpy(dtype=float) for name in ("estimate", "se", "df", "p_value")
    )
    testable = ~np.isnan(p_difference)
    t_low, t_high = (
        np.where(testable, (estimate - limit) / np.where(testable, se, 1.0), np.nan) for limit in (low, high)
    )
    raw = np.maximum(upper_tail(t_low, df), upper_tail(-t_high, df))
    groups = _families(pairs)
    p_value = np.concatenate([adjust_raw(raw[rows], adjust, len(rows)) for rows in groups])
    levels = [
        np.broadcast_to(raw_levels(raw[rows], method=adjust, n_tests=len(rows), alpha=alpha), len(rows))
        for rows in groups
    ]
    half = np.where(testable, t_quantile(np.concatenate(levels), df) * se, np.nan)
    same, differ = below(p_value, alpha), below(p_difference, alpha)
    decision = np.select(
        [~testable, same & differ, same, differ],
        ["undecided", "trivially different", "equivalent", "different"],
        default="undecided",
    )
    columns = {"estimate": estimate, "se": se, "df": df, "t_low": t_low, "t_high": t_high, "p_value": p_value}
    columns |= {"ci_low": estimate - half, "ci_high": estimate + half, "p_difference": p_difference}
    name = ADJUSTMENT_NAMES[pairs.adjust]
    notes = [f"The tests of no difference (p_difference) have {name} adjustment, from the comparisons passed in."]
    if not testable.all():
        notes.append(f"{int((~testable).sum())} of {len(testable)} differences have no test and are undecided.")
    return replace(
        pairs,
        kind="equivalence",
        table=compared[[*pairs.by, "left", "right"]].assign(**columns, decision=decision.astype(object)),
        adjust=adjust,
        level=1.0 - 2.0 * alpha,
        alpha=float(alpha),
        margin=(low, high),
        joint=(),
        notes=(*pairs.estimates.notes, *notes),
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
        ``to_frame()`` has the `by` columns, left, right (the control), gain (how much better left is), se, df, t_ratio,
        p_value (of gain <= -margin, one-sided), gain_low (lower limit at 1 - alpha), decision.

    Raises
    ------
    ArgumentError
        If the margin is not positive and finite, the direction is not known, or an option is out of its range.

    Notes
    -----
    gain is the difference in the better direction, t_ratio = (gain + margin) / se, p_value = P(T > t_ratio). A level
    is "non-inferior" if p_value is below alpha, "superior" if moreover the lower limit of its gain is above 0: that of
    Bonferroni with "holm" and "fdr", so no further adjustment is due and each of the two families of claims errs with
    probability alpha at most. The limits agree with the decisions: with "holm" and "fdr" that of a non-inferior level
    is at -margin or above, as in Strassburger & Bretz (2008), that of the others that of the step at which the tests
    ended, at -margin or below.

    References
    ----------
    Strassburger & Bretz (2008), doi:10.1002/sim.3338

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> found = means.against("A").noninferiority(margin=2, direction="maximize")
    >>> found.to_frame()[["left", "right", "p_value", "decision"]].round(3)
      left right  p_value      decision
    0    B     A    0.005  non-inferior
    1    C     A    0.000      superior
    """
    comparisons.require("noninferiority", "control")
    size, em = _positive(margin), comparisons.estimates
    _check_alpha(alpha)
    model = em.errors in ("", "model")
    adjust = ("dunnett" if model else "holm") if adjust is None else adjust
    check_choice(adjust, "adjust", NONINFERIORITY_ADJUSTMENTS)
    if adjust == "dunnett" and not model:
        raise ArgumentError(
            "adjust='dunnett' is for the model's standard errors, and these comparisons have others. Use "
            "adjust='holm', or means.against(control, adjust='dunnett')."
        )
    comparisons = _each_by_itself(comparisons) if adjust == "none" else comparisons
    used = em.better_end(direction, "noninferiority")
    generator = resolve_rng(rng)
    compared, sign = comparisons.table, 1.0 if used == "maximize" else -1.0
    gain = sign * compared["estimate"].to_numpy(dtype=float)
    se, df = compared["se"].to_numpy(dtype=float), compared["df"].to_numpy(dtype=float)
    testable = compared["p_value"].notna().to_numpy()
    t_ratio = np.where(testable, (gain + size) / np.where(testable, se, 1.0), np.nan)
    p_value, critical, last = (np.full(len(compared), np.nan) for _ in range(3))
    notes: list[str] = []
    labels = np.array(em.labels(), dtype=object)
    for (_, means), rows in zip(em.groups(), _families(comparisons), strict=True):
        joint = None
        if adjust == "dunnett":
            control = means[labels[means] == comparisons.control][0]
            others = means[means != control][testable[rows]]
            joint = em.largest_t(sign * (em.L[others] - em.L[control]), "greater", generator)
        if joint is None:
            raw = upper_tail(t_ratio[rows], df[rows])
            p_value[rows] = adjust_raw(raw, adjust, len(rows))
            critical[rows] = t_quantile(alpha / (1 if adjust == "none" else len(rows)), df[rows])
            levels = raw_levels(raw, method=adjust, n_tests=len(rows), alpha=alpha)
            last[rows] = t_quantile(levels, df[rows])
        else:
            p_value[rows], critical[rows] = joint.sf(t_ratio[rows], df[rows]), joint.isf(alpha, df[rows])
            notes.append(joint.note(t_ratio[rows], df[rows]))
    gain_low = np.where(testable, gain - critical * se, np.nan)
    passed = below(p_value, alpha)
    if adjust in STEPWISE_ADJUSTMENTS:
        gain_low = np.where(passed, np.maximum(gain_low, -size), gain - last * se)
    decision = np.where(passed & (gain_low > 0), "superior", np.where(passed, "non-inferior", "undecided"))
    columns = {"gain": gain, "se": se, "df": df, "t_ratio": t_ratio, "p_value": p_value, "gain_low": gain_low}
    return replace(
        comparisons,
        kind="noninferiority",
        table=compared[[*comparisons.by, "left", "right"]].assign(**columns, decision=decision),
        adjust=adjust,
        level=1.0 - alpha,
        alpha=float(alpha),
        direction=used,
        margin=size,
        joint=(),
        notes=(*em.notes, *dict.fromkeys(notes)),
    )


def _each_by_itself(differences: Comparisons) -> Comparisons:
    """The same with each difference's own standard error, where those of all together are moderated."""
    em = differences.estimates.alone()
    if em is differences.estimates:
        return differences
    labels, sides = np.array(em.labels(), dtype=object), {"left": list[int](), "right": list[int]()}
    for (_, means), rows in zip(em.groups(), _families(differences), strict=True):
        place = dict(zip(labels[means], means.tolist(), strict=True))
        for side, places in sides.items():
            places += [place[label] for label in differences.table[side].iloc[rows]]
    left, right = (np.array(places, dtype=np.intp) for places in sides.values())
    _, se, df, _ = em.t_tests(em.differences(left, right))
    return replace(differences, estimates=em, table=differences.table.assign(se=se, df=df))


def _families(differences: Comparisons) -> list[NDArray[np.intp]]:
    """Rows of each family."""
    return np.split(np.arange(len(differences.table)), len(differences.estimates.groups()))


def _check_alpha(alpha: Any) -> None:
    if check_fraction(alpha, "alpha") >= 0.5:
        raise ArgumentError(f"alpha must be below 0.5 for tests against a margin, got {alpha!r}.")


def _positive(margin: Any) -> float:
    meaning = "the largest difference that is of no practical interest, on the scale of the response"
    return check_number(margin, "margin", low=0, high=LARGEST_SCORE, open="both", meaning=meaning)
