"""A part of a diagnosis: its tables, and the finding that is its line in the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmemtest.core.findings import Finding
from lmemtest.core.result import Answer

if TYPE_CHECKING:
    import pandas as pd

# A finding counts where tables drawn from the fitted model show it this rarely; a warning needs the smaller share, so
# that the dozen checks of one diagnosis are all silent on most tables that deserve it.
NOTE_P, WARNING_P = 0.05, 0.01


def judged(check: Finding, title: str, table: pd.DataFrame, values: Mapping[str, Any], **more: Any) -> Answer:
    """A part with one line: its `check`, whose `severity`, `advice` and `p_value` are values of the part, too."""
    part = Answer(question=check.kind, title=title, tables={"table": table}, values=values, **more)
    return judged_as(part, check)


def judged_as(part: Answer, check: Finding) -> Answer:
    """The same numbers with another line."""
    line = {"check": check, "severity": check.severity, "advice": check.advice, "p_value": check.p_value}
    return replace(part, values={**part.values, **line}, findings=(check.advice,))


def simulated_p(observed: float, draws: Iterable[float]) -> float:
    """Share of tables, the observed one included, that show at least as much.

    Examples
    --------
    >>> simulated_p(3.0, [1.0, 2.0, 3.0])
    0.5
    """
    values = list(draws)
    return (1 + sum(value >= observed for value in values)) / (len(values) + 1)
