"""Comparisons of estimates: all pairs, linear contrasts, differences from a control, and comparisons with the best.

Hsu's comparisons with the best, with larger means better (signs are turned where smaller is): let ``d_ij = m_i - m_j``
with standard error ``s_ij``, and ``c_i`` the one-sided Dunnett critical value with level i as the control. The
parameter of level i is its lead over the best of the others, ``m_i - max_{j != i} m_j``. Jointly with probability 1 -
alpha it lies in

    high_i = max(0, min_{j != i} (d_ij + c_i s_ij)),
    low_i  = min(0, min_{j in G, j != i} (d_ij - c_j s_ij)),        G = {i: high_i > 0},

and low_i = 0 if G = {i}. Only the event of the one truly best level is used, which is why one-sided critical values of
k - 1 comparisons suffice for all k statements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES, ADJUSTMENTS, CONTROL_ADJUSTMENTS, JOINT_ADJUSTMENTS, VCOV
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, resolve_rng
from lmemtest.core.words import format_level, format_number, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, upper_tail
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.means.adjust import adjust as adjust_family
from lmemtest.lmm.means.adjust import fitting_adjustment, level_of_pairs
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.sequential.spending import SPENDING_NAMES, check_spending
from lmemtest.lmm.sequential.successive_t import planned_among, require_level

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.lmm.means.estimates import Estimates


_HUGE = 1e150  # a coefficient whose square is not finite any more

DEFAULT_ADJUST = {
    "": "tukey",
    "model": "tukey",
    "moderated": "stepdown",
    "larger": "stepdown",
    "own": "none",
    "cluster-robust": "holm",
}  # by simulation
Rows = dict[str, Array]

_DEGREE_NAMES = ("linear", "quadratic", "cubic", "quartic")
_HIGHEST_DEGREE = 6  # of emmeans; the names of higher ones mean nothing to a reader


def _check_means(em: Any, function: str) -> None:
    """Refuse what are no means, with the way to get them."""
    if not hasattr(type(em), "by_model"):  # of `Estimates`, which stands on this file
        raise ArgumentError(
            f"{function} takes means, as fit.emmeans('algorithm') gives them, got {type(em).__name__}. Of a table of "
            "runs: lmemtest.analyze(runs).pairs, or lmemtest.rank(runs)."
        )


@guided
@one_blas_thread()
def pairs(
    em: Estimates,
    *,
    adjust: str | None = None,
    vcov: str | None = None,
    alpha: float | None = None,
    looks: Sequence[int] | None = None,
    maximum: int | None = None,
    spending: str | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Test all pairwise differences.

    Parameters
    ----------
    adjust : str, optional
        "tukey", "stepdown", "singlestep", "mvt", "shaffer", "holm", "sidak", "bonferroni", "fdr" or "none". Adjustment
        for the number of comparisons. The family is all pairs within one group of `by`. "tukey" is Tukey's HSD, which
        is for the model's standard errors. "mvt" is, too, and uses the correlations of the pairs: the same as "tukey"
        when all differences are equally precise, sharper otherwise. "stepdown" is Tukey's test on normal scores, then
        Shaffer's steps; it allows for variances of their own. "singlestep" is its first step. "none" takes each pair as
        planned: moderated standard errors give way to each pair's own. Default: "tukey" with the model's standard
        errors, "stepdown" with moderated ones, "holm" with those of `cluster_robust`.
    vcov : {"model", "moderated"}, optional
        Standard errors; default: those of the estimates. "model" takes those of the fitted model in place of moderated
        ones.
    alpha : float in (0, 1), optional
        One minus the confidence level; default: that of the estimates. Intervals exclude zero exactly where the
        adjusted p-value is below alpha. They are simultaneous but for "stepdown", "shaffer" and "holm" (the interval
        of the step at which a pair was decided: the chance that any excludes a true zero is alpha, and each by itself
        covers with probability 1 - alpha at least), "fdr" (of the pairs called different the share 1 - alpha is covered
        on average) and "none" (each by itself).
    looks : sequence of int, optional
        Numbers of benchmarks (of what moderated standard errors count) at all planned looks, that of these means among
        them: `alpha` is then of all looks together, and that of the result what `spending` gives this one.
    maximum : int, optional
        Instead of `looks`, where only their number at the end is planned: looks come when they like up to it.
    spending : {"obrien_fleming", "pocock"}, optional
        How planned looks spend `alpha`: next to nothing early (the default), or about evenly.
    rng : int, numpy.random.Generator or None
        For "mvt" with more than three means of unequal precision, which is integrated by quasi-Monte-Carlo.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, left, right, estimate (left - right), se, df, t_ratio, p_value,
        ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If there is only one mean to compare, an option is unknown, or `adjust` is for other standard errors than these.

    Notes
    -----
    Every pair has its own standard error and degrees of freedom. Tukey: p = ``P(Q_{k,df} > sqrt(2) |t|)``, exact when
    all differences have the same standard error, conservative for other known forms of the covariance (Hayter 1984),
    not where every pair estimates a variance of its own. A difference without a standard error is NaN, with a note.

    References
    ----------
    Tukey (1953); Kramer (1956), Biometrics 12, 307-310; Hayter (1984), doi:10.1214/aos/1176346392;
    Shaffer (1986), doi:10.1080/01621459.1986.10478341; Holm (1979), Scand. J. Stat. 6, 65-70;
    Benjamini & Yekutieli (2005), doi:10.1198/016214504000001907

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 4, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.pairs().to_frame()[["left", "right", "estimate", "df", "p_value"]].round(4)
      left right  estimate   df  p_value
    0    A     B      0.25  6.0   0.8995
    1    A     C     -4.00  6.0   0.0010
    2    B     C     -4.25  6.0   0.0007
    """
    _check_means(em, "pairs")
    alpha = em.alpha if alpha is None else check_fraction(alpha, "alpha")
    vcov = _checked_vcov(vcov)
    adjust = DEFAULT_ADJUST["model" if vcov == "model" else em.errors] if adjust is None else adjust
    _check_adjust(adjust)
    generator = resolve_rng(rng)
    em, on_errors = em.with_vcov(vcov, adjust, single=adjust == "none")
    labels, groups = em.labels(), [rows for _, rows in em.groups()]
    alone = next((rows for rows in groups if len(rows) < 2), None)
    if alone is not None:
        raise ArgumentError(
            f"pairs needs at least two means in each group, got one ({labels[alone[0]]}). "
            "Use another factor in specs, or keep more of its levels in at=."
        )
    left, right = (
        np.concatenate([rows[side] for rows, side in zip(groups, sides, strict=True)])
        for sides in zip(*(np.triu_indices(len(rows), k=1) for rows in groups), strict=True)
    )
    table = {name: em.frame[name].array.take(left) for name in em.by}
    table |= {"left": [labels[i] for i in left.tolist()], "right": [labels[j] for j in right.tolist()]}
    L, apart, n_means = em.differences(left, right), ~em.met(left, right), len(groups[0])
    if any(given is not None for given in (looks, maximum, spending)):
        alpha, on_looks = _at_look(em, looks, maximum, spending, alpha, 2 if adjust == "none" else n_means)
        on_errors = (*on_errors, on_looks)
    return _compared(
        "pairs", em, table, L, apart, adjust=adjust, alpha=alpha, rng=generator, n_means=n_means, notes=on_errors
    )


@guided
@one_blas_thread()
def contrast(
    em: Estimates,
    coefficients: str | Mapping[str, Sequence[float]] | pd.DataFrame,
    *,
    adjust: str | None = None,
    vcov: str | None = None,
    alpha: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Test linear contrasts.

    Parameters
    ----------
    coefficients : str, mapping of str to (k,) float, or DataFrame
        A family by its name (see the notes); or the name of each contrast and its coefficients, one per mean of a
        group, in the order of the means. A data frame has one row per contrast (named by its index) and one column
        per level.
    adjust : {"none", "mvt", "holm", "sidak", "bonferroni", "fdr", "tukey"}, optional
        Adjustment within each group of `by`; default: that of the named family, "none" for own coefficients. "mvt"
        uses the joint t distribution of any contrasts. "tukey" is for all pairs only and is replaced by "sidak", with
        a note.
    vcov, alpha, rng
        As in `pairs`. One contrast, and contrasts that are not adjusted, have their own variance where that of many is
        moderated.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, contrast, estimate, se, df, t_ratio, p_value, ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If a name is unknown, or coefficients do not match the means or are not finite.

    Notes
    -----
    Families, in the order of the means, with their adjustment:

    - "poly" (none): orthogonal polynomials at equally spaced levels up to degree 6, in the smallest whole numbers that
      are positive at the last level, so an estimate has no unit of its own and its test is what counts;
    - "helmert" (none): each level less the average of those before it;
    - "consec" (mvt; holm where each has a variance of its own): each level less the one before it;
    - "eff" (fdr): each level less the average of all; "del.eff" (fdr): less the average of the others;
    - "pairwise": `pairs`, with its adjustment;
    - "trt.vs.ctrl": `against` the first level, "trt.vs.ctrlk" the last one, with its adjustment.

    These are the conventions of R's emmeans, "helmert" apart, which is `contr.helmert` scaled to differences of means.
    Coefficients that do not sum to zero are allowed (a weighted mean), and a note says so.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.contrast({"C against A and B": [-1/2, -1/2, 1]}).to_frame()[["contrast", "estimate"]].round(6)
                contrast  estimate
    0  C against A and B       4.0
    >>> means.contrast("poly").to_frame()[["contrast", "estimate", "p_value"]].round(4)
        contrast  estimate  p_value
    0     linear       4.0   0.0001
    1  quadratic       4.0   0.0027
    """
    _check_means(em, "contrast")
    alpha = em.alpha if alpha is None else check_fraction(alpha, "alpha")
    vcov = _checked_vcov(vcov)
    family = None
    if isinstance(coefficients, str):
        options: dict[str, Any] = {"adjust": adjust, "vcov": vcov, "alpha": alpha, "rng": rng}
        if coefficients in ALL_PAIRS:
            return pairs(em, **options)
        if coefficients in CONTROL_AT:
            return against(em, em.labels()[em.groups()[0][1][CONTROL_AT[coefficients]]], **options)
        family = named_contrasts(coefficients)
    if adjust is None:
        adjust = "none" if family is None else family[1]
        if adjust in JOINT_ADJUSTMENTS and vcov != "model" and not em.one_variance:
            adjust = "holm"
    _check_adjust(adjust)
    generator = resolve_rng(rng)
    labels = [em.labels()[i] for i in em.groups()[0][1]]
    if family is not None and len(labels) < 2:
        raise ArgumentError(
            f"coefficients={coefficients!r} needs at least two means in each group, got one ({labels[0]}). Use another "
            "factor in specs, or keep more of its levels in at=."
        )
    table = _coefficient_table(labels, coefficients if family is None else family[0](labels))
    K = table.to_numpy()
    single = adjust == "none" or len(K) == 1
    em, on_errors = em.with_vcov(vcov, adjust if adjust in JOINT_ADJUSTMENTS else "none", single=single)
    blocks, apart = [], []
    for _, rows in em.groups():
        lone = np.zeros(len(K), dtype=bool)
        if em.comparable is not None:  # a mean is set against one whose algorithm it never met on a benchmark
            lone = np.einsum("ri,ij,rj->r", K > 0, ~em.comparable[np.ix_(rows, rows)], K < 0, dtype=float) > 0
        # a zero coefficient must not spread the NaN of a mean without data
        combined = K @ np.where(np.any(K, axis=0, keepdims=True).T, em.L[rows], 0.0)
        blocks.append(np.where(lone[:, None], np.nan, combined))
        apart.append(lone)
    notes = list(on_errors)
    off = [str(name) for name, total in zip(table.index, K.sum(axis=1), strict=True) if abs(total) > 1e-8]
    if off:
        notes.append(f"Coefficients of {', '.join(off)} do not sum to zero: not a comparison.")
    levels = em.frame[em.specs[0]].iloc[em.groups()[0][1]].tolist()
    polynomials = isinstance(coefficients, str) and coefficients == "poly" and len(em.specs) == 1
    if polynomials and not is_evenly_spaced(levels):
        notes.append(
            f"The levels of {em.specs[0]} are not equally spaced, and the polynomials take them as if they were: "
            "linear means in the order of the levels."
        )

    import pandas as pd

    keys = [key for key, _ in em.groups() for _ in range(len(K))]
    frame = pd.DataFrame({name: [key[name] for key in keys] for name in em.by})
    frame = frame.assign(contrast=list(table.index) * len(blocks))
    L, lone = Functions.of(np.vstack(blocks)), np.concatenate(apart)
    return _compared(
        "contrasts", em, frame, L, lone, adjust=adjust, alpha=alpha, rng=generator, notes=notes, coefficients=table
    )


@guided
@one_blas_thread()
def against(
    em: Estimates,
    control: Any,
    *,
    adjust: str | None = None,
    vcov: str | None = None,
    alpha: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Test the differences from a control.

    Fewer questions than all pairs, so each is answered with more power. The control must be chosen before the
    results are seen; for the one that came out best use `best`.

    Parameters
    ----------
    control : object
        The level that the others are compared with; with several specs its label, as `labels()` has it.
    adjust : {"dunnett", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of comparisons within one group of `by`. "dunnett" is for the model's standard errors;
        R calls it "mvt", which works too. Default: "dunnett" with these, else "holm".
    vcov, alpha, rng
        As in `pairs`; `rng` for "dunnett" where the means are neither independent nor equally correlated.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, left, right (the control), estimate (left - right), se, df, t_ratio,
        p_value, ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If `control` is not one of the means, there is nothing to compare it with, an option is unknown, or `adjust` is
        for other standard errors than these.

    Notes
    -----
    Dunnett: p = ``P(max_j |T_j| > |t|)`` over the comparisons, jointly t distributed with the correlations that the
    model gives and the degrees of freedom of the comparison. When these correlations have one factor (means that
    are independent up to a common term, as in balanced studies), the integral is a quadrature; the intervals
    exclude zero exactly when p is below alpha.

    References
    ----------
    Dunnett (1955), J. Am. Stat. Assoc. 50, 1096-1121, doi:10.1080/01621459.1955.10501294

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.against("A").to_frame()[["left", "right", "df", "p_value"]].round(4)
      left right   df  p_value
    0    B     A  6.0   1.0000
    1    C     A  6.0   0.0003
    """
    _check_means(em, "against")
    alpha = em.alpha if alpha is None else check_fraction(alpha, "alpha")
    vcov = _checked_vcov(vcov)
    adjust = ("dunnett" if vcov == "model" or em.one_variance else "holm") if adjust is None else adjust
    adjust = "dunnett" if isinstance(adjust, str) and adjust == "mvt" else adjust  # one distribution by two names
    check_choice(adjust, "adjust", CONTROL_ADJUSTMENTS)
    em, on_errors = em.with_vcov(vcov, adjust, single=adjust == "none")
    generator = resolve_rng(rng)
    labels = np.array(em.labels(), dtype=object)
    reference = control if isinstance(control, str) else format_level(control)
    if reference not in labels:
        distinct = tuple(dict.fromkeys(labels))
        raise ArgumentError(
            f"control must be one of the means ({', '.join(distinct)}), got {control!r}.{suggest(reference, distinct)}"
        )
    left, right = [], []
    for _, rows in em.groups():
        at = rows[labels[rows] == reference]
        if not len(at) or len(rows) < 2:
            raise ArgumentError(
                "against needs the control and at least one other mean in each group, got "
                f"{', '.join(labels[rows])}. Use another factor in specs, or keep more of its levels in at=."
            )
        left.append(rows[rows != at[0]])
        right.append(np.full(len(rows) - 1, at[0]))
    others, references = np.concatenate(left), np.concatenate(right)
    table = em.frame.iloc[others][list(em.by)].reset_index(drop=True).assign(left=labels[others], right=reference)
    L, apart = em.differences(others, references), ~em.met(others, references)
    return _compared(
        "control", em, table, L, apart, adjust=adjust, alpha=alpha, rng=generator, notes=on_errors, control=reference
    )


@guided
@one_blas_thread()
def best(
    em: Estimates,
    *,
    direction: str | None = None,
    alpha: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Find which levels can still be the best, with simultaneous intervals for their lead.

    Parameters
    ----------
    direction : {"minimize", "maximize"}, optional
        Which end of the response is better; default: that of the runs behind the fit.
    alpha : float in (0, 0.5), optional
        One minus the simultaneous confidence level; default: that of the estimates.
    rng : int, numpy.random.Generator or None
        Used where critical values need quasi-Monte-Carlo integration (unbalanced studies); a note says so.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, the factor, mean, lead (how much better than the best of the others;
        positive for one level at most), ci_low, ci_high, critical (one-sided, with this level as the control), p_value
        (of being the best), can_be_best; NaN and NA where a level has no mean or no test.

    Raises
    ------
    ArgumentError
        If the direction is not known, a group has one mean only, or an option is out of its range.

    Notes
    -----
    Sharper than reading the best group off all pairs: only k comparisons with an unknown best are made. A level is
    ruled out if the upper end of its interval is 0, which is when its p-value is at most alpha. The intervals
    are constrained to contain 0: how much worse a level is, is bounded, not that it is worse. With standard errors that
    are not the model's, critical values are Bonferroni's instead of Dunnett's.

    References
    ----------
    Hsu (1984), Ann. Stat. 12, 1136-1144, doi:10.1214/aos/1176346732;
    Hsu (1996), Multiple Comparisons: Theory and Methods, section 4.1

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.best(direction="minimize").sentences()
    ('A and B can be the best; the other one cannot (95 % confidence).',)
    """
    _check_means(em, "best")
    alpha = em.alpha if alpha is None else check_fraction(alpha, "alpha")
    if alpha >= 0.5:
        raise ArgumentError(f"alpha must be below 0.5 for comparisons with the best, got {alpha!r}.")
    used = em.better_end(direction, "best")
    generator = resolve_rng(rng)
    labels = em.labels()
    frames, notes = [], []
    for key, rows in em.groups():
        if len(rows) < 2:
            raise ArgumentError(
                f"best needs at least two means in each group, got one ({labels[rows[0]]}). "
                "Use another factor in specs, or keep more of its levels in at=."
            )
        names = [labels[i] for i in rows]
        columns, more = _compare(em, rows, 1.0 if used == "maximize" else -1.0, alpha, generator)
        at = {name: [value] * len(rows) for name, value in key.items()}
        frames.append({**at, em.factor: names, **columns})
        notes.extend(more)

    import pandas as pd

    if direction and em.direction and direction != em.direction:
        notes.append(f"The best was sought to {direction} as asked; the runs say {em.direction}.")
    table = pd.concat([pd.DataFrame(frame) for frame in frames], ignore_index=True)
    adjust = "dunnett" if em.one_variance else "bonferroni"
    return Comparisons(
        kind="best",
        table=table.astype({"can_be_best": "boolean"}),
        estimates=em,
        by=em.by,
        adjust=adjust,
        level=1.0 - alpha,
        alpha=alpha,
        family_size=len(em.groups()[0][1]),
        direction=used,
        notes=(*em.notes, *dict.fromkeys(notes)),
    )


def _compare(
    em: Estimates, rows: NDArray[np.intp], sign: float, alpha: float, rng: np.random.Generator
) -> tuple[dict[str, Any], list[str]]:
    """Columns of one group, and notes."""
    k, notes = len(rows), []
    left, right = np.nonzero(~np.eye(k, dtype=bool))
    tables = np.full((4, k, k), np.nan)
    more, less = (left, right) if sign > 0 else (right, left)
    tables[:, left, right] = em.t_tests(em.differences(rows[more], rows[less]))
    difference, se, df, t_ratio = tables
    testable = ~np.isnan(t_ratio)
    critical, p_value = np.full((k, k), np.nan), np.full(k, np.nan)
    for i in range(k):
        others = np.flatnonzero(testable[i])
        if not len(others):
            continue
        if not em.one_variance:  # variances of their own: Bonferroni's inequality needs no joint distribution
            critical[i, others] = t_quantile(alpha / len(others), df[i, others])
            one_sided = upper_tail(-t_ratio[i, others], df[i, others])
            p_value[i] = min(1.0, len(others) * one_sided.min())
            continue
        joint = em.largest_t(sign * (em.L[rows[i]] - em.L[rows[others]]), "greater", rng)
        if joint is None:
            continue
        critical[i, others] = joint.isf(alpha, df[i, others])
        p_value[i] = joint.sf(-t_ratio[i, others], df[i, others]).min()
        if joint.n_points:
            notes.append(
                "The one-sided Dunnett critical value of each level was integrated by quasi-Monte-Carlo with "
                f"{joint.n_points:,} points."
            )
    compared = np.asarray(testable.any(axis=1))
    if not compared.all():
        names = ", ".join(em.labels()[row] for row in rows[~compared])
        notes.append(f"{names}: no mean or no test, so not compared; whether it can be the best is not known (NA).")
    low, high = constrained_intervals(difference, se, critical)
    lead = np.where(testable, difference, np.inf).min(axis=1)
    widest = np.where(testable, critical, -np.inf).max(axis=1)
    columns = {"mean": em.estimate[rows]}
    for name, values in (("lead", lead), ("ci_low", low), ("ci_high", high), ("critical", widest)):
        columns[name] = np.where(compared, values, np.nan)
    can_be_best = [bool(high[i] > 0) if compared[i] else None for i in range(k)]
    return {**columns, "p_value": p_value, "can_be_best": can_be_best}, notes


def constrained_intervals(difference: Array, se: Array, critical: Array) -> tuple[Array, Array]:
    """Hsu's intervals of every level's lead from (k, k) arrays; pairs without a test (NaN) put no bound."""
    tested = ~np.isnan(critical)
    high = np.maximum(0.0, np.where(tested, difference + critical * se, np.inf).min(axis=1))
    # the interval with j as the control bounds how far i can be behind j
    behind = np.where(tested, difference - critical.T * se, 0.0)
    candidate = (high > 0) & tested.any(axis=1)
    return np.minimum(0.0, np.where(candidate, behind, 0.0).min(axis=1)), high


def _compared(
    kind: str,
    em: Estimates,
    table: pd.DataFrame | Mapping[str, Any],
    L: Functions,
    apart: NDArray[np.bool_],
    *,
    adjust: str,
    alpha: float,
    rng: np.random.Generator,
    n_means: int | None = None,
    notes: Sequence[str] = (),
    **more: Any,
) -> Comparisons:
    """Test the rows of L, which `table` names, and adjust them group by group: families of one size.

    With `n_means` a family is all pairs of so many; `apart` marks differences of what never met on a benchmark.
    """
    estimate, se, df, t_ratio = em.t_tests(L)
    tested = ~np.isnan(t_ratio)
    together = adjust in JOINT_ADJUSTMENTS
    parts, joints = [], []
    applied, how = fitting_adjustment(adjust, n_means)
    for rows in np.split(np.arange(len(L)), len(em.groups())):
        joint = em.largest_t(L[rows[tested[rows]]].L, "two-sided", rng) if together else None
        # a family without a single test has no joint distribution; its rows are NaN under any method
        used = "none" if together and joint is None else adjust
        parts.append(adjust_family(t_ratio[rows], df[rows], method=used, n_means=n_means, alpha=alpha, joint=joint))
        joints.append(joint)
        how += () if joint is None else (joint.note(np.abs(t_ratio[rows]), df[rows]),)
    p_value, critical = (np.concatenate(part) for part in zip(*parts, strict=True))
    half = np.where(tested, critical * se, np.nan)
    missing, untested = np.isnan(estimate), ~np.isnan(estimate) & np.isnan(p_value)
    lost, n = int((missing & ~apart).sum()), len(L)
    name, remarks = ADJUSTMENT_NAMES[applied], list(notes)
    if apart.any():
        remarks.append(
            f"{apart.sum()} of {n} differences are between algorithms without a common benchmark, so they "
            "are also differences between benchmarks: no verdict (NaN)."
        )
    if lost:
        remarks.append(f"{lost} of {n} differences {'is' if lost == 1 else 'are'} not estimable from these data (NaN).")
    if missing.any() and together:
        remarks.append(f"The {name} adjustment is for the differences that have a test.")
    elif missing.any() and applied != "none":
        smaller = "; leave levels without a mean out by at= for a smaller family" if lost else ""
        remarks.append(f"The {name} adjustment still counts these, which is conservative{smaller}.")
    if untested.any():
        remarks.append(
            f"{untested.sum()} of {n} differences have no standard error or no degrees of freedom, "
            "so they have no test (NaN)."
        )
    columns = {"estimate": estimate, "se": se, "df": df, "t_ratio": t_ratio, "p_value": p_value}
    columns |= {"ci_low": estimate - half, "ci_high": estimate + half}

    import pandas as pd

    return Comparisons(
        kind=kind,
        table=pd.DataFrame({**table, **columns}),
        estimates=em,
        by=em.by,
        adjust=applied,
        level=1.0 - alpha,
        alpha=alpha,
        family_size=len(em.groups()[0][1]),
        direction=em.direction,
        notes=(*em.notes, *remarks, *dict.fromkeys(how)),
        joint=tuple(joints) if together else (),
        **more,
    )


def _at_look(em: Estimates, looks: Any, maximum: Any, spending: Any, alpha: float, n_means: int) -> tuple[float, str]:
    """The level that this one of several looks has, and what to say of it."""
    spending = check_spending(spending, planned=looks is not None or maximum is not None)
    if em.moderate is None:
        raise ArgumentError(
            "a level over several looks needs standard errors that count what is added from look to look: moderated "
            "ones, of emmeans(..., vcov='moderated')."
        )
    n, unit = em.moderate.robust.n_clusters, em.moderate.robust.label
    units = f"levels of {unit}"
    sizes, place = planned_among(looks, maximum, n, units, "these means")
    level = require_level(level_of_pairs(n, sizes, alpha, n_means, spending), n, sizes, units)
    how = f"{SPENDING_NAMES[spending]} spending of {alpha:g}"
    return level, f"{place}: {format_number(level, 3)} is the level that {how} gives it."


def _checked_vcov(vcov: Any) -> str | None:
    return None if vcov is None else check_choice(vcov, "vcov", VCOV)


def _check_adjust(adjust: Any) -> None:
    if isinstance(adjust, str) and adjust == "dunnett":
        raise ArgumentError(
            "adjust='dunnett' is for comparisons with one control, and this function knows none. Use "
            f"means.against(control). Here adjust may be {' or '.join(map(repr, ADJUSTMENTS))}."
        )
    check_choice(adjust, "adjust", ADJUSTMENTS)


def _coefficient_table(labels: list[str], coefficients: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(coefficients, pd.DataFrame):
        named = [format_level(column) for column in coefficients.columns]
        if sorted(named) != sorted(labels):
            raise ArgumentError(
                f"coefficients must have one column per mean ({', '.join(labels)}), got {', '.join(named)}."
            )
        table = coefficients.set_axis(named, axis=1)[labels]
    else:
        if not isinstance(coefficients, Mapping):
            raise ArgumentError(
                f"coefficients must be the name of a family ({', '.join(NAMED_CONTRASTS)}), a dict of names and "
                f"numbers, one per mean ({', '.join(labels)}), or a table with these columns, got {coefficients!r}. "
                "For all pairs use means.pairs()."
            )
        for name, values in coefficients.items():
            if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
                raise ArgumentError(
                    f"coefficients[{name!r}] must have one number per mean ({', '.join(labels)}), got {values!r}."
                )
            values = list(values)
            if len(values) != len(labels):
                raise ArgumentError(
                    f"coefficients[{name!r}] must have one number per mean ({', '.join(labels)}: "
                    f"{len(labels)}), got {len(values)}."
                )
        table = pd.DataFrame.from_dict(dict(coefficients), orient="index", columns=labels, dtype=object)
    numbers: list[Any] = table.to_numpy(dtype=object).ravel().tolist()
    real = bool(numbers) and all(isinstance(number, Real) for number in numbers)
    if not real or not all(abs(number) < _HUGE for number in numbers):
        raise ArgumentError("coefficients must hold at least one contrast, and finite numbers only.")
    return table.astype(float)


# ------------------------------------------------------------------------------------------------ families with a name


def polynomials(labels: Sequence[str]) -> Rows:
    """Orthogonal polynomials at equally spaced levels, in the smallest whole numbers, rising at the last level.

    Examples
    --------
    >>> {name: row.astype(int).tolist() for name, row in polynomials("abcd").items()}
    {'linear': [-3, -1, 1, 3], 'quadratic': [1, -1, -1, 1], 'cubic': [-1, 3, -3, 1]}
    """
    k = len(labels)
    rows = {}
    for degree in range(1, min(_HIGHEST_DEGREE, k - 1) + 1):
        name = _DEGREE_NAMES[degree - 1] if degree <= len(_DEGREE_NAMES) else f"degree {degree}"
        rows[name] = np.array(_whole_polynomial(k, degree), dtype=float)
    return rows


def _whole_polynomial(k: int, degree: int) -> list[int]:
    """Discrete Chebyshev polynomial at 0, ..., k - 1: sum_j (-1)^j C(d, j) C(d + j, j) C(x, j) / C(k - 1, j)."""
    values = [
        sum(
            Fraction((-1) ** j * math.comb(degree, j) * math.comb(degree + j, j) * math.comb(x, j), math.comb(k - 1, j))
            for j in range(degree + 1)
        )
        for x in range(k)
    ]
    whole = [int(value * math.lcm(*(Fraction(v).denominator for v in values))) for value in values]
    unit = math.gcd(*whole) * (1 if whole[-1] > 0 else -1)
    return [value // unit for value in whole]


def helmert(labels: Sequence[str]) -> Rows:
    """Each level less the average of those before it: `contr.helmert`, scaled to differences of means.

    Examples
    --------
    >>> {name: row.tolist() for name, row in helmert("abc").items()}
    {'b - a': [-1.0, 1.0, 0.0], 'c - avg(a, b)': [-0.5, -0.5, 1.0]}
    """
    rows = {}
    for i in range(1, len(labels)):
        row = np.zeros(len(labels))
        row[:i], row[i] = -1.0 / i, 1.0
        before = (
            labels[0] if i == 1 else f"avg({', '.join(labels[:i])})" if i < 4 else f"avg({labels[0]}..{labels[i - 1]})"
        )
        rows[f"{labels[i]} - {before}"] = row
    return rows


def consecutive(labels: Sequence[str]) -> Rows:
    """Each level less the one before it."""
    steps = np.diff(np.eye(len(labels)), axis=0)
    return {f"{after} - {before}": row for before, after, row in zip(labels, labels[1:], steps, strict=False)}


def effects(labels: Sequence[str], *, deleted: bool = False) -> Rows:
    """Each level less the average of all, or of the others."""
    k = len(labels)
    averages = (1.0 - np.eye(k)) / (k - 1) if deleted else np.full((k, k), 1.0 / k)
    return {f"{label} effect": row for label, row in zip(labels, np.eye(k) - averages, strict=True)}


# How a family is made of the labels of the means, and the adjustment that goes with it.
NAMED_CONTRASTS: dict[str, tuple[Callable[[Sequence[str]], Rows], str]] = {
    "poly": (polynomials, "none"),
    "helmert": (helmert, "none"),
    "consec": (consecutive, "mvt"),
    "eff": (effects, "fdr"),
    "del.eff": (partial(effects, deleted=True), "fdr"),
}
# Names of emmeans for `pairs`, and for `against` with the place of the control among the levels.
ALL_PAIRS = ("pairwise", "tukey")
CONTROL_AT = {"trt.vs.ctrl": 0, "trt.vs.ctrl1": 0, "trt.vs.ctrlk": -1, "dunnett": 0}


def named_contrasts(name: str) -> tuple[Callable[[Sequence[str]], Rows], str]:
    """The family of a name; refused if there is none."""
    if name == "revpairwise":
        raise ArgumentError(
            "coefficients='revpairwise' is not known: means.pairs() has the same tests, with the other sign."
        )
    if name not in NAMED_CONTRASTS:
        families = (*NAMED_CONTRASTS, "pairwise", "trt.vs.ctrl", "trt.vs.ctrlk")
        raise ArgumentError(
            f"coefficients must name a family of contrasts ({', '.join(families)}) or give the numbers of each, "
            f"got {name!r}.{suggest(name, (*families, *ALL_PAIRS, *CONTROL_AT))}"
        )
    return NAMED_CONTRASTS[name]


def is_evenly_spaced(levels: Sequence[object]) -> bool:
    """Whether levels that are numbers have equal steps; True for levels that are not numbers.

    Examples
    --------
    >>> is_evenly_spaced([1, 2, 3]), is_evenly_spaced([1, 3, 9]), is_evenly_spaced(["1", "3", "x"])
    (True, False, True)
    """
    try:
        steps = np.diff([float(level) for level in levels])  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True
    return bool(np.allclose(steps, steps[:1], rtol=1e-9, atol=0.0))
