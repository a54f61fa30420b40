"""A finding about a table of runs, and how findings per benchmark and algorithm are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lmemtest.data.points import Points

__all__ = ["SEVERITIES", "SHOWN", "Finding", "Severity", "on", "per_cell"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
SHOWN = 3  # findings of one kind in a summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to know about a table of runs.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
        An error stops a fit, a warning can change a conclusion, a note explains.
    kind : str
        A stable word for the check, such as ``"duplicates"``.
    message : str
        What was found, in a sentence.
    advice : str
        What to do about it, in a sentence.
    count : int
        How many rows, runs or cells it concerns.
    benchmark, algorithm : object or None
        Where it was found; None for everywhere.
    """

    severity: Severity
    kind: str
    message: str
    advice: str
    count: int
    benchmark: Any = None
    algorithm: Any = None


def on(benchmark: Any) -> str:
    """The words for a benchmark; none where there is no such column."""
    return "" if benchmark is None else f" on {str(benchmark)!r}"


def per_cell(
    points: Points,
    counts: np.ndarray,
    severity: Severity,
    kind: str,
    say: Callable[[int, str, str, int], tuple[str, str]],
) -> list[Finding]:
    """A finding for every benchmark and algorithm with a count, the largest count first.

    `say` makes message and advice of the cell, the quoted algorithm, the words for the place, and the count.
    """
    hit = np.flatnonzero(counts)
    found = []
    for cell in hit[np.argsort(-counts[hit], kind="stable")].tolist():
        benchmark, algorithm = points.where(cell)
        count = int(counts[cell])
        message, advice = say(cell, repr(str(algorithm)), on(benchmark), count)
        finding = Finding(
            severity=severity,
            kind=kind,
            benchmark=benchmark,
            algorithm=algorithm,
            count=count,
            message=message,
            advice=advice,
        )
        found.append(finding)
    return found
