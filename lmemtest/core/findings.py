"""What a check finds, of a table of runs or of a fit: one record, and one scale of severity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmemtest.core.result import Answer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SEVERITIES", "Finding", "judged", "judged_as", "worst"]

SEVERITIES = ("error", "warning", "note", "fine", "skipped")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a table of runs, or about a fit.

    Attributes
    ----------
    severity : {"error", "warning", "note", "fine", "skipped"}
        An error stops a fit, a warning can change a conclusion, a note explains; "skipped": no check was possible.
    kind : str
        A stable word for the check, such as ``"duplicates"`` or ``"normality"``.
    message : str
        What was found.
    advice : str
        What to do about it; empty where there is nothing to do.
    count : int
        How many rows, runs or cells it concerns.
    benchmark, algorithm : object or None
        Where in a table it was found; None for everywhere.
    subject : str
        Of what in a fit: "residuals", a term, a column.
    value, p_value : float
        The number that the severity rests on, and how often tables drawn from the fitted model show as much; NaN where
        there is none.
    """

    severity: str
    kind: str
    message: str
    advice: str
    count: int = 1
    benchmark: Any = None
    algorithm: Any = None
    subject: str = ""
    value: float = float("nan")
    p_value: float = float("nan")


def worst(severities: Iterable[str]) -> str:
    """The most serious of some severities; ``"fine"`` of none.

    Examples
    --------
    >>> worst(["fine", "warning", "note"]), worst([])
    ('warning', 'fine')
    """
    return min(severities, key=SEVERITIES.index, default="fine")


def judged(check: Finding, title: str, table: pd.DataFrame, values: Mapping[str, Any], **more: Any) -> Answer:
    """An answer with one finding: its `check`, whose `severity`, `advice` and `p_value` are values of it, too."""
    part = Answer(question=check.kind, title=title, tables={"table": table}, values=values, **more)
    return judged_as(part, check)


def judged_as(part: Answer, check: Finding) -> Answer:
    """The same numbers with another finding."""
    line = {"check": check, "severity": check.severity, "advice": check.advice, "p_value": check.p_value}
    return replace(part, values={**part.values, **line}, findings=(check.advice,))
