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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.student import t_quantile, upper_tail
from lmemtest.inference.means.emmeans import DDF_NAMES, EmmeansResult
from lmemtest.inference.means.families import check_em, is_testable, joint_of
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]

DIRECTIONS = ("minimize", "maximize")


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class BestResult(Tabular):
    """Every level compared with the best of the others, within each group of `by`.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    emmeans : EmmeansResult
        The means that were compared.
    by : tuple of str
        Factors that split the levels into groups, each with a best of its own.
    direction : {"minimize", "maximize"}
        Which end of the response is better.
    level : float
        Simultaneous confidence level.
    candidates : dict
        Levels that are compared and can still be the best, by the values of the `by` factors (a tuple;
        empty without `by`).
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    emmeans: EmmeansResult
    by: tuple[str, ...]
    direction: str
    level: float
    candidates: Mapping[tuple[Any, ...], tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per level: the `by` columns, level, mean, lead, ci_low, ci_high, critical, p_value, can_be_best.

        ``lead`` is how much better the level is than the best of the others, positive for one level at most;
        ``p_value`` belongs to the hypothesis that the level is the best; ``critical`` is the one-sided Dunnett
        critical value with this level as the control. Levels without a mean or a test are NaN, and whether they can be
        the best is not known: ``can_be_best`` (nullable boolean) is NA.
        """
        return self.table.copy()

    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per group."""
        return tuple(self.emmeans.subject + self._sentence(key, names) for key, names in self.candidates.items())

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        by = f" by {', '.join(self.by)}" if self.by else ""
        facts = (
            f"Response {self.emmeans.response} ({self.direction}), n = {self.emmeans.n_obs} rows; "
            f"{DDF_NAMES[self.emmeans.ddf]} degrees of freedom; simultaneous {100 * self.level:.4g} % intervals for "
            "the lead over the best of the others (positive is better), constrained to contain zero."
        )
        title = f"Comparisons of {', '.join(self.emmeans.specs)} with the best{by}"
        return ResultTable(title=title, frame=self.to_frame(), notes=(facts, *self.notes))

    def summary(self) -> str:
        """The levels as a table, and a sentence on who can be the best."""
        return "\n".join([self.to_table().to_text(), "", *self.sentences()])

    def _sentence(self, key: tuple[Any, ...], names: tuple[str, ...]) -> str:
        where = ", ".join(f"{name} = {format_level(value)}" for name, value in zip(self.by, key, strict=True))
        where = f"At {where}: " if where else ""
        percent = f"{100 * self.level:.4g} % confidence"
        same = [(self.table[name] == value).to_numpy() for name, value in zip(self.by, key, strict=True)]
        here = self.table[np.logical_and.reduce(same)] if same else self.table
        unknown = here.loc[here["can_be_best"].isna(), "level"].tolist()
        if not names:
            return f"{where}The levels cannot be compared with these data, so none is known to be the best or not."
        others = len(here) - len(names) - len(unknown)
        tail = f" Nothing is known of {' and '.join(unknown)}." if unknown else ""
        if len(names) == 1:
            return f"{where}{names[0]} is the best{' of those compared' if unknown else ''} ({percent}).{tail}"
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        if not others:
            return f"{where}No level can be ruled out as the best ({percent}): {listed}.{tail}"
        rest = "the other one" if others == 1 else f"the other {others}"
        return f"{where}{listed} can be the best; {rest} cannot ({percent}).{tail}"


@one_blas_thread()
def versus_best(
    em: EmmeansResult,
    *,
    direction: str | None = None,
    level: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> BestResult:
    """Find which levels can still be the best, with simultaneous intervals for their lead.

    Parameters
    ----------
    em : EmmeansResult
        The means, from `emmeans`.
    direction : {"minimize", "maximize"}, optional
        Which end of the response is better; default: that of the runs behind the fit.
    level : float in (0.5, 1), optional
        Simultaneous confidence level; default: that of `em`.
    rng : int, numpy.random.Generator or None
        Used where critical values need quasi-Monte-Carlo integration (unbalanced studies); a note says so.

    Returns
    -------
    BestResult
        ``to_frame()`` has the `by` columns, level, mean, lead, ci_low, ci_high, critical, p_value, can_be_best.

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
    check_em(em, level)
    level = em.level if level is None else float(level)
    if level <= 0.5:
        raise ArgumentError(f"level must be above 0.5 for comparisons with the best, got {level!r}.")
    used = _known_direction(em, direction)
    generator = resolve_rng(rng)
    labels = em.labels()
    frames, candidates, notes = [], {}, []
    for key, rows in em.groups():
        if len(rows) < 2:
            raise ArgumentError(
                f"versus_best needs at least two means in each group, got one ({labels[rows[0]]}). "
                "Use another factor in specs, or keep more of its levels in at=."
            )
        names = [labels[i] for i in rows]
        columns, found = _compare(em, rows, 1.0 if used == "maximize" else -1.0, 1.0 - level, generator)
        frames.append({**{name: [value] * len(rows) for name, value in key.items()}, "level": names, **columns})
        can_be = columns["can_be_best"]
        candidates[tuple(key.values())] = tuple(n for n, ok in zip(names, can_be, strict=True) if ok is True)
        notes.extend(found)

    import pandas as pd

    if direction and em.direction and direction != em.direction:
        notes.append(f"The best was sought to {direction} as asked; the runs say {em.direction}.")
    return BestResult(
        table=pd.concat([pd.DataFrame(frame) for frame in frames], ignore_index=True).astype(
            {"can_be_best": "boolean"}
        ),
        emmeans=em,
        by=em.by,
        direction=used,
        level=level,
        candidates=candidates,
        notes=(*em.notes, *dict.fromkeys(notes)),
    )


def _known_direction(em: EmmeansResult, direction: str | None) -> str:
    if direction is not None:
        return check_choice(direction, "direction", DIRECTIONS)
    if em.direction is None:
        raise ArgumentError(
            "versus_best must know which end of the response is better: give direction='minimize' or 'maximize', "
            "or fit Runs."
        )
    return em.direction


def _compare(
    em: EmmeansResult, rows: NDArray[np.intp], sign: float, alpha: float, rng: np.random.Generator
) -> tuple[dict[str, Any], list[str]]:
    """Columns of one group, and notes."""
    difference, se, df, testable = _differences(em, rows, sign)
    k, notes = len(rows), []
    critical, p_value = np.full((k, k), np.nan), np.full(k, np.nan)
    for i in range(k):
        others = np.flatnonzero(testable[i])
        if not len(others):
            continue
        if em.vcov != "model":  # variances of their own: Bonferroni's inequality needs no joint distribution
            critical[i, others] = t_quantile(alpha / len(others), df[i, others])
            one_sided = upper_tail(-difference[i, others] / se[i, others], df[i, others])
            p_value[i] = min(1.0, len(others) * one_sided.min())
            continue
        joint = joint_of(em, sign * (em.L[rows[i]] - em.L[rows[others]]), "greater", rng)
        if joint is None:
            continue
        critical[i, others] = joint.isf(alpha, df[i, others])
        p_value[i] = joint.sf(-difference[i, others] / se[i, others], df[i, others]).min()
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
    columns = {"mean": em.emmean[rows]}
    for name, values in (("lead", lead), ("ci_low", low), ("ci_high", high), ("critical", widest)):
        columns[name] = np.where(compared, values, np.nan)
    can_be_best = [bool(high[i] > 0) if compared[i] else None for i in range(k)]
    return {**columns, "p_value": p_value, "can_be_best": can_be_best}, notes


def _differences(
    em: EmmeansResult, rows: NDArray[np.intp], sign: float
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]:
    """Difference (row minus column), standard error, degrees of freedom, and whether there is a test; all (k, k)."""
    k = len(rows)
    i, j = np.nonzero(~np.eye(k, dtype=bool))
    L = sign * em.differences(rows[i], rows[j])
    tables = []
    evaluated = em.evaluate(L)
    for values in evaluated:
        table = np.full((k, k), np.nan)
        table[i, j] = values
        tables.append(table)
    testable = np.zeros((k, k), dtype=bool)
    testable[i, j] = is_testable(em, L, evaluated[1], evaluated[2])
    return tables[0], tables[1], tables[2], testable


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
