r"""Which levels can still be the best: Hsu's multiple comparisons with the best.

Notation, with larger means better (signs are turned where smaller is): ``d_ij = m_i - m_j`` with standard error
``s_ij``, and ``c_i`` the one-sided Dunnett critical value with level i as the control. The parameter of level i is its
lead over the best of the others, ``m_i - max_{j != i} m_j``. Jointly with probability 1 - alpha it lies in

    high_i = max(0, min_{j != i} (d_ij + c_i s_ij)),
    low_i  = min(0, min_{j in G, j != i} (d_ij - c_j s_ij)),        G = {i: high_i > 0},

and low_i = 0 if G = {i}. Only the event of the one truly best level is used, which is why one-sided critical values
of k - 1 comparisons suffice for all k statements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._threads import one_blas_thread
from lmemtest._validate import resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.student import t_quantile, upper_tail
from lmemtest.inference.means.comparisons import Comparisons
from lmemtest.inference.means.estimates import Estimates, check_estimates, known_direction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


@one_blas_thread()
def versus_best(
    em: Estimates,
    *,
    direction: str | None = None,
    level: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Find which levels can still be the best, with simultaneous intervals for their lead.

    Parameters
    ----------
    em : Estimates
        The means, from `emmeans`.
    direction : {"minimize", "maximize"}, optional
        Which end of the response is better; default: that of the runs behind the fit.
    level : float in (0.5, 1), optional
        Simultaneous confidence level; default: that of `em`.
    rng : int, numpy.random.Generator or None
        Used where critical values need quasi-Monte-Carlo integration (unbalanced studies); a note says so.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, the factor, mean, lead, ci_low, ci_high, critical, p_value, can_be_best.

    Raises
    ------
    ArgumentError
        If the direction is not known, a group has one mean only, or an option is out of its range.

    Notes
    -----
    With standard errors that are not the model's, critical values are Bonferroni's instead of Dunnett's.

    Sharper than reading the best group off all pairs: only k comparisons with an unknown best are made. A level is
    ruled out if the upper end of its interval is 0, which is when its p-value is at most 1 - level. The intervals
    are constrained to contain 0: how much worse a level is, is bounded, not that it is worse.

    References
    ----------
    Hsu (1984), Ann. Stat. 12, 1136-1144, doi:10.1214/aos/1176346732;
    Hsu (1996), Multiple Comparisons: Theory and Methods, section 4.1

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> em = emmeans(fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm")
    >>> versus_best(em, direction="minimize").sentences()
    ('A and B can be the best; the other one cannot (95 % confidence).',)
    """
    level = check_estimates(em, level)
    if level <= 0.5:
        raise ArgumentError(f"level must be above 0.5 for comparisons with the best, got {level!r}.")
    used = known_direction(direction, em.direction, "versus_best")
    generator = resolve_rng(rng)
    labels = em.labels()
    frames, notes = [], []
    for key, rows in em.groups():
        if len(rows) < 2:
            raise ArgumentError(
                f"versus_best needs at least two means in each group, got one ({labels[rows[0]]}). "
                "Use another factor in specs, or keep more of its levels in at=."
            )
        names = [labels[i] for i in rows]
        columns, found = _compare(em, rows, 1.0 if used == "maximize" else -1.0, 1.0 - level, generator)
        at = {name: [value] * len(rows) for name, value in key.items()}
        frames.append({**at, em.factor: names, **columns})
        notes.extend(found)

    import pandas as pd

    if direction and em.direction and direction != em.direction:
        notes.append(f"The best was sought to {direction} as asked; the runs say {em.direction}.")
    table = pd.concat([pd.DataFrame(frame) for frame in frames], ignore_index=True)
    adjust = "dunnett" if em.vcov == "model" else "bonferroni"
    return Comparisons(
        kind="best",
        table=table.astype({"can_be_best": "boolean"}),
        estimates=em,
        by=em.by,
        adjust=adjust,
        interval_adjust=adjust,
        level=level,
        alpha=1.0 - level,
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
    tables[:, left, right] = em.t_tests(sign * em.differences(rows[left], rows[right]))
    difference, se, df, t_ratio = tables
    testable = ~np.isnan(t_ratio)
    critical, p_value = np.full((k, k), np.nan), np.full(k, np.nan)
    for i in range(k):
        others = np.flatnonzero(testable[i])
        if not len(others):
            continue
        if em.vcov != "model":  # variances of their own: Bonferroni's inequality needs no joint distribution
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
    low, high = _intervals(difference, se, critical)
    lead = np.where(testable, difference, np.inf).min(axis=1)
    widest = np.where(testable, critical, -np.inf).max(axis=1)
    columns = {"mean": em.estimate[rows]}
    for name, values in (("lead", lead), ("ci_low", low), ("ci_high", high), ("critical", widest)):
        columns[name] = np.where(compared, values, np.nan)
    can_be_best = [bool(high[i] > 0) if compared[i] else None for i in range(k)]
    return {**columns, "p_value": p_value, "can_be_best": can_be_best}, notes


def _intervals(difference: FloatArray, se: FloatArray, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hsu's constrained intervals of every level's lead; pairs without a test (NaN) put no bound."""
    known = ~np.isnan(critical)
    above = np.where(known, difference + critical * se, np.inf)
    high = np.maximum(0.0, above.min(axis=1))
    # the interval with j as the control bounds how far i can be behind j
    behind = np.where(known, difference - critical.T * se, 0.0)
    candidate = (high > 0) & known.any(axis=1)
    low = np.minimum(0.0, np.where(candidate, behind, 0.0).min(axis=1))
    return low, high
