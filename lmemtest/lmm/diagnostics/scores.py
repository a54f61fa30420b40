"""What a fit models: the scores behind its cells where they can still be read, their kind, and how many are on a bound.

A cell of several rows keeps their mean and sum of squares, which is all that the likelihood needs; whether the rows
themselves are normal it cannot tell. So a check of the residuals goes back to the table of the fit. Advice depends on
the kind: scores that are 0 or 1 have no normal residuals and no logarithm, and a model of logarithms needs no second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.codes import column_codes
from lmemtest.core.frames import collected
from lmemtest.core.rounding import written
from lmemtest.core.validate import as_frame
from lmemtest.core.verdicts import Finding, judged
from lmemtest.core.words import format_number
from lmemtest.errors import LmemtestError
from lmemtest.lmm.model.predictions import read_rows
from lmemtest.lmm.scope import ScoreKind, two_valued

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.core.result import Answer
    from lmemtest.lmm.model import LmmFit
    from lmemtest.lmm.scope import Scope


MOST_ROWS = 200_000  # 200 simulated tables of this size take about a second
MOST_LEVELS = 200  # of a column whose levels are looked at one by one
_LOGARITHMS = ("log", "log2", "log10", "log1p")
# Terwee et al. (2007) speak of a floor or ceiling from 15 % of the scores on.
SHARE_NOTE, SHARE_WARNING = 0.05, 0.15
BOUNDED_BY_NATURE = ("two-valued", "ranks", "min-max")
# In a smaller level a few equal scores are a large share.
_FEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a check of single scores sees.

    ``cell`` is the cell of each value, ``deviation`` the score minus the mean of its cell (zero where the cell itself
    is the value), ``count`` the rows that a value stands for (1, or those of its cell), and ``hidden`` the number of
    rows that are only seen through the mean of their cell.
    """

    cell: Index
    deviation: Array
    count: Array
    hidden: int

    @property
    def single(self) -> bool:
        """Whether every value is a row."""
        return self.hidden == 0

    def part(self, left: Mask, n: Array) -> Rows:
        """Those of some cells, ``(n_cells,)``, which have ``n`` rows each."""
        keep = left[self.cell]
        return Rows(
            cell=(np.cumsum(left) - 1)[self.cell[keep]],
            deviation=self.deviation[keep],
            count=self.count[keep],
            hidden=int(n[n > 1].sum()) if self.hidden else 0,
        )


def sum_by(codes: Index, values: Array, k: int) -> Array:
    """Sum of the values of each of ``k`` codes."""
    return np.bincount(codes, values, k).astype(np.float64, copy=False)


def rows_of(fit: LmmFit) -> Rows:
    """The rows of a fit, or its cells where the rows are out of reach.

    Rows are out of reach if the fit does not hold its table (draws of a bootstrap), if the table has changed since, or
    if it has more than 200,000 rows.
    """
    n = fit.cells.n
    if (n > 1).any() and fit.data is not None and fit.nobs <= MOST_ROWS:
        from_table = _from_table(fit)
        if from_table is not None:
            return from_table
    return Rows(cell=np.arange(len(n)), deviation=np.zeros(len(n)), count=n, hidden=int(n[n > 1].sum()))


def _from_table(fit: LmmFit) -> Rows | None:
    cells = fit.cells

    def read(columns: list[str]) -> pd.DataFrame:
        table = None if fit.scope is None else fit.scope.table(columns)
        return collected(as_frame(fit.data).select(*columns)).to_pandas() if table is None else table

    rows = read_rows(fit, read)
    if rows is None:
        return None
    cell, score, _ = rows
    deviation = score - cells.mean[cell]
    spread = cells.ss.sum() + 1e-12 * float(cells.n @ cells.mean**2)
    if not np.allclose(sum_by(cell, deviation**2, len(cells.n)), cells.ss, rtol=1e-6, atol=1e-9 * spread):
        return None
    return Rows(cell=cell, deviation=deviation, count=np.ones(len(cell)), hidden=0)


def columns_of(fit: LmmFit) -> Iterator[tuple[str, Index, list[Any]]]:
    """Factors, single grouping columns and that of the residual variances: name, code of each cell, 2 to 200 levels."""
    frame = fit.cells.frame
    names = [*(g for bar in fit.design.parsed.bars for g in bar.groups), *fit.design.factors, fit.dispersion]
    for name in dict.fromkeys(names):
        if name in frame:
            codes, levels = column_codes(frame[name])
            if 2 <= len(levels) <= MOST_LEVELS:
                yield str(name), codes.astype(np.intp), list(levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """The score of a fit.

    ``kind`` is that of its table (of frames without roles only two values and "general" are known), ``logged`` whether
    the model is one of logarithms, ``positive`` whether all values that are modelled are, ``rarer`` the rows with the
    rarer one of two values (else NaN), and ``scope`` the one of the fit, where its table can still be read.
    """

    kind: ScoreKind
    logged: bool
    positive: bool
    rarer: float = float("nan")
    scope: Scope | None = None

    @property
    def two_valued(self) -> bool:
        """Whether scores are right or wrong."""
        return self.kind.kind == "two-valued"

    @property
    def by_log(self) -> bool:
        """Whether the logarithm of the score is another model that could be fitted."""
        return self.positive and not self.logged and not self.kind.equal_by_nature

    def one_scale(self) -> str:
        """How clusters are put on one scale, with the ratio that is left; empty where nothing does it."""
        return "" if self.scope is None else self.scope.one_scale()


def score_of(fit: LmmFit, rows: Rows) -> Score:
    """The score of a fit, from its runs where it has them."""
    cells, parsed = fit.cells, fit.design.parsed
    scope, kind = fit.scope, None
    # a cell of several rows has some below zero unless its mean is far above its spread
    lowest = cells.mean[rows.cell] + rows.deviation if rows.single else cells.mean - np.sqrt(cells.ss)
    if scope is not None and scope.response == parsed.response:
        with suppress(LmemtestError):  # the table is not what it was
            kind = scope.kind
    if kind is None:
        scope = None
        low, high = float(cells.mean.min()), float(cells.mean.max())
        kind = ScoreKind(kind="general", evidence="The roles of the columns are not known.", low=low, high=high)
        low, high = (0.0, 1.0) if (cells.n > 1).any() else (low, high)
        if (
            low < high
            and two_valued(cells.n, cells.mean, cells.ss, low, high)
            and 0 < cells.mean.mean() < cells.n.sum()
        ):
            kind = ScoreKind(kind="two-valued", evidence=f"Scores are {low:g} or {high:g}.", low=low, high=high)
    rarer = float("nan")
    if kind.kind == "two-valued":
        of_high = float(cells.n @ (cells.mean - kind.low)) / (kind.high - kind.low)
        rarer = min(of_high, cells.n.sum() - of_high)
    return Score(
        kind=kind,
        logged=parsed.response_function in _LOGARITHMS,
        positive=bool((lowest > 0).all()),
        rarer=rarer,
        scope=scope,
    )


# --------------------------------------------------------------------------------------------------- scores on a bound


def bounds(fit: LmmFit, rows: Rows, score: Score | None = None) -> Answer:
    """Find the largest share of scores that equal the smallest or the largest one of the table or of a level.

    Returns
    -------
    Answer
        ``table``, one row per place: ``where`` ("all", or "column=level" for the worst level of each column), ``end``
        ("smallest" or "largest"), ``score`` (that score, on the scale of the response), ``share``. ``distinct`` and
        ``seen``: different scores, and rows whose score is known; others are only known through the mean of their cell.
        ``check`` with ``severity`` and ``advice``.

    References
    ----------
    Terwee et al. (2007). Quality criteria were proposed for measurement properties of health status questionnaires.
    J. Clin. Epidemiol. 60. doi:10.1016/j.jclinepi.2006.03.012
    """
    y, count, cell = _scores(fit, rows)
    kind = (score or score_of(fit, rows)).kind
    at_bounds: list[tuple[str, str, float, float]] = []
    worst, text, severity = float("nan"), "not judged", "skipped"
    if kind.kind in BOUNDED_BY_NATURE:
        advice = f"Such scores have ends by nature. {kind.evidence}"
    elif count.sum() < _FEWEST:
        advice = f"Fewer than {_FEWEST} single scores are known, too few to judge."
    else:
        at_bounds += _worst_level(["all"], np.zeros(len(y), dtype=np.intp), y, count)
        for name, codes, levels in columns_of(fit):
            if fit.scope is None or name != fit.scope.repeat:  # a repetition has no bounds of its own
                at_bounds += _worst_level([f"{name}={level}" for level in levels], codes[cell], y, count)
        place = max(at_bounds, key=lambda place: place[3])
        worst = place[3]
        text = f"{written(100 * worst, '.3g')} % on a bound"
        severity, advice = _decide(*place, kind)
    distinct, seen = len(np.unique(y)), int(count.sum())
    return judged(
        Finding(severity, "bounds", text, advice, subject="scores", value=worst),
        "Scores on a bound",
        pd.DataFrame(at_bounds, columns=["where", "end", "score", "share"]),
        {"distinct": distinct, "seen": seen},
        facts=(f"{distinct:,} different scores in {seen:,} rows.",),
    )


def _scores(fit: LmmFit, rows: Rows) -> tuple[Array, Array, Index]:
    """Known scores, the rows that have each, and their cells."""
    cells = fit.cells
    if not rows.single:
        single = np.flatnonzero((cells.n == 1) | (cells.ss == 0))
        return cells.mean[single], cells.n[single], single
    y = cells.mean[rows.cell] + rows.deviation
    largest = float(np.abs(y).max(initial=0.0))
    if largest > 0.0:
        # a mean plus a deviation from it is off by rounding: equal to 13 digits of the largest score, they are equal
        unit = 10.0 ** (np.floor(np.log10(largest)) - 12)
        y = np.round(y / unit) * unit
    return y, np.ones(len(y)), rows.cell


def _worst_level(labels: list[str], codes: Index, y: Array, count: Array) -> list[tuple[str, str, float, float]]:
    """The level of a column with the largest share on a bound; none if all levels are small."""
    k = len(labels)
    low, high = np.full(k, np.inf), np.full(k, -np.inf)
    np.minimum.at(low, codes, y)
    np.maximum.at(high, codes, y)
    total = np.bincount(codes, count, k)
    places = []
    for end, bound in (("smallest", low), ("largest", high)):
        there = np.bincount(codes, count * (y == bound[codes]), k)
        share = np.where(there > 1, there / np.maximum(total, 1.0), 0.0)  # some score is always the smallest
        share[(total < _FEWEST) | (low == high)] = -1.0
        i = int(share.argmax())
        places.append((labels[i], end, float(bound[i]), float(share[i])))
    worst = max(places, key=lambda place: place[3])
    return [worst] if worst[3] >= 0 else []


def _decide(where: str, end: str, score: float, share: float, kind: ScoreKind) -> tuple[str, str]:
    if share < SHARE_NOTE:
        return "fine", "No floor or ceiling."
    place = "of all scores" if where == "all" else f"of the scores of {where}"
    text = f"{written(100 * share, '.3g')} % {place} equal {format_number(score)}, the {end} one"
    if kind.kind == "capped" and end == "largest":
        severity = "note" if share < SHARE_WARNING or kind.penalised else "warning"
        if kind.penalised:
            return severity, f"{text}, which looks like a penalty: see whether the order stands with another one."
        return severity, (
            f"{text}, as of a timeout: such scores are censored, and means too low. Give them a penalty (PAR2, PAR10) "
            "and report their share."
        )
    if share < SHARE_WARNING:
        return "note", f"{text}: differences there are underestimated."
    return "warning", (
        f"{text}: a floor or ceiling hides differences there. Harder tasks or a finer score would show them; without "
        "what reached it the comparison would be another one."
    )
