"""Do many scores sit exactly on a bound: an accuracy of 1, a loss of 0, the score given to a failed run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._result import result
from lmemtest._rounding import written
from lmemtest.data.cells import column_codes
from lmemtest.inference.diagnostics.check import Check, Judged
from lmemtest.inference.diagnostics.rows import role_of
from lmemtest.inference.diagnostics.scale import MOST_LEVELS
from lmemtest.inference.diagnostics.score import score_of
from lmemtest.words import format_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.score_kind import ScoreKind
    from lmemtest.inference.diagnostics.rows import Rows
    from lmemtest.inference.diagnostics.score import Score
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

# Terwee et al. (2007) speak of a floor or ceiling from 15 % of the scores on.
SHARE_LOOK, SHARE_ACT = 0.05, 0.15
BOUNDED_BY_NATURE = ("two-valued", "ranks", "min-max")
# In a smaller level a few equal scores are a large share.
_FEWEST = 20


@result
class Bounds(Judged):
    """Shares of rows whose score equals the smallest or the largest one of the table or of a level.

    Attributes
    ----------
    where : tuple of str
        ``"all"``, or ``"column=level"`` for the worst level of each column.
    end : tuple of str
        ``"smallest"`` or ``"largest"``.
    score : tuple of float
        That score, on the scale of the response.
    share : tuple of float
    distinct : int
        Different scores.
    seen : int
        Rows whose score is known; others are only known through the mean of their cell.
    decision : {"fine", "look", "act"}
    advice : str
    """

    where: tuple[str, ...]
    end: tuple[str, ...]
    score: tuple[float, ...]
    share: tuple[float, ...]
    distinct: int
    seen: int
    decision: str
    advice: str

    def table(self) -> pd.DataFrame:
        """One row per place: ``where``, ``end``, ``score``, ``share``."""
        columns = ("where", "end", "score", "share")
        return pd.DataFrame({name: list(getattr(self, name)) for name in columns})

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Scores on a bound"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the table was obtained."""
        return (f"{self.distinct:,} different scores in {self.seen:,} rows.",)

    def check(self) -> Check:
        """The line of the diagnosis."""
        worst = max(self.share, default=float("nan"))
        found = f"{written(100 * worst, '.3g')} % on a bound" if self.share else "not judged"
        return self.line("bounds", "scores", found, worst)


def bounds(fit: LmmFit, rows: Rows, score: Score | None = None) -> Bounds:
    """Find the largest share of scores on a bound.

    References
    ----------
    Terwee et al. (2007). Quality criteria were proposed for measurement properties of health status questionnaires.
    J. Clin. Epidemiol. 60. doi:10.1016/j.jclinepi.2006.03.012
    """
    y, count, cell = _scores(fit, rows)
    kind = (score or score_of(fit, rows)).kind
    if count.sum() < _FEWEST or kind.kind in BOUNDED_BY_NATURE:
        advice = f"Fewer than {_FEWEST} single scores are known, too few to judge."
        if kind.kind in BOUNDED_BY_NATURE:
            advice = f"Such scores have ends by nature. {kind.evidence}"
        return Bounds(
            where=(), end=(), score=(), share=(), distinct=len(np.unique(y)), seen=int(count.sum()),
            decision="fine", advice=advice,
        )  # fmt: skip
    found = _worst_level(("all",), np.zeros(len(y), dtype=np.intp), y, count)
    frame = fit.cells.frame
    for name in dict.fromkeys([*(g for bar in fit.design.parsed.bars for g in bar.groups), *fit.design.factors]):
        if name in frame and role_of(fit.data, name) != "seed":  # a seed has no bounds of its own
            codes, levels = column_codes(frame[name])
            if 2 <= len(levels) <= MOST_LEVELS:
                labels = tuple(f"{name}={level}" for level in levels)
                found += _worst_level(labels, codes.astype(np.intp)[cell], y, count)
    worst = max(found, key=lambda place: place[3])
    decision, advice = _decide(*worst, kind)
    return Bounds(
        where=tuple(place[0] for place in found),
        end=tuple(place[1] for place in found),
        score=tuple(place[2] for place in found),
        share=tuple(place[3] for place in found),
        distinct=len(np.unique(y)),
        seen=int(count.sum()),
        decision=decision,
        advice=advice,
    )


def _scores(fit: LmmFit, rows: Rows) -> tuple[Array, Array, NDArray[np.intp]]:
    """Known scores, the rows that have each, and their cells."""
    cells = fit.cells
    y = cells.mean[rows.cell] + rows.deviation
    if rows.single:
        # a mean plus a deviation from it is off by rounding: equal scores become equal again
        return _rounded(y), np.ones(len(y)), rows.cell
    known = np.flatnonzero((cells.n == 1) | (cells.ss == 0))
    return cells.mean[known], cells.n[known], known


def _rounded(y: Array) -> Array:
    """Scores to 13 significant digits of the largest."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return y
    unit = 10.0 ** (np.floor(np.log10(largest)) - 12)
    return np.asarray(np.round(y / unit) * unit)


Place = tuple[str, str, float, float]


def _worst_level(labels: tuple[str, ...], codes: NDArray[np.intp], y: Array, count: Array) -> list[Place]:
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
    if share < SHARE_LOOK:
        return "fine", "No floor or ceiling."
    place = "of all scores" if where == "all" else f"of the scores of {where}"
    text = f"{written(100 * share, '.3g')} % {place} equal {format_number(score)}, the {end} one"
    if kind.kind == "capped" and end == "largest":
        decision = "look" if share < SHARE_ACT or kind.penalised else "act"
        if kind.penalised:
            return decision, f"{text}, which looks like a penalty: see whether the order stands with another one."
        return decision, (
            f"{text}, as of a timeout: such scores are censored, and means too low. Give them a penalty (PAR2, PAR10) "
            "and report their share."
        )
    if share < SHARE_ACT:
        return "look", f"{text}: differences there are underestimated."
    return "act", (
        f"{text}: a floor or ceiling hides differences there. Harder tasks or a finer score would show them; without "
        "what reached it the comparison would be another one."
    )
