"""Do many scores sit exactly on a bound: an accuracy of 1, a loss of 0, the score given to a failed run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.rounding import written
from lmemtest.core.verdicts import Finding, judged
from lmemtest.core.words import format_number
from lmemtest.lmm.diagnostics.scores import columns_of, score_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.core.result import Answer
    from lmemtest.lmm.diagnostics.scores import Rows, Score
    from lmemtest.lmm.model import LmmFit
    from lmemtest.lmm.score_kind import ScoreKind


# Terwee et al. (2007) speak of a floor or ceiling from 15 % of the scores on.
SHARE_NOTE, SHARE_WARNING = 0.05, 0.15
BOUNDED_BY_NATURE = ("two-valued", "ranks", "min-max")
# In a smaller level a few equal scores are a large share.
_FEWEST = 20


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
    found: list[tuple[str, str, float, float]] = []
    worst, text, severity = float("nan"), "not judged", "skipped"
    if kind.kind in BOUNDED_BY_NATURE:
        advice = f"Such scores have ends by nature. {kind.evidence}"
    elif count.sum() < _FEWEST:
        advice = f"Fewer than {_FEWEST} single scores are known, too few to judge."
    else:
        found += _worst_level(["all"], np.zeros(len(y), dtype=np.intp), y, count)
        for name, codes, levels in columns_of(fit):
            if fit.scope is None or name != fit.scope.repeat:  # a repetition has no bounds of its own
                found += _worst_level([f"{name}={level}" for level in levels], codes[cell], y, count)
        place = max(found, key=lambda place: place[3])
        worst = place[3]
        text = f"{written(100 * worst, '.3g')} % on a bound"
        severity, advice = _decide(*place, kind)
    distinct, seen = len(np.unique(y)), int(count.sum())
    return judged(
        Finding(severity, "bounds", text, advice, subject="scores", value=worst),
        "Scores on a bound",
        pd.DataFrame(found, columns=["where", "end", "score", "share"]),
        {"distinct": distinct, "seen": seen},
        facts=(f"{distinct:,} different scores in {seen:,} rows.",),
    )


def _scores(fit: LmmFit, rows: Rows) -> tuple[Array, Array, NDArray[np.intp]]:
    """Known scores, the rows that have each, and their cells."""
    cells = fit.cells
    if not rows.single:
        known = np.flatnonzero((cells.n == 1) | (cells.ss == 0))
        return cells.mean[known], cells.n[known], known
    y = cells.mean[rows.cell] + rows.deviation
    largest = float(np.abs(y).max(initial=0.0))
    if largest > 0.0:
        # a mean plus a deviation from it is off by rounding: equal to 13 digits of the largest score, they are equal
        unit = 10.0 ** (np.floor(np.log10(largest)) - 12)
        y = np.round(y / unit) * unit
    return y, np.ones(len(y)), rows.cell


def _worst_level(
    labels: list[str], codes: NDArray[np.intp], y: Array, count: Array
) -> list[tuple[str, str, float, float]]:
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
