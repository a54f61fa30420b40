"""What is said of a pair, as a code, and what a check finds, on one scale of severity.

Words are made of codes and never read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.result import Answer

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Codes, Mask


class Verdict(IntEnum):
    """Of the first of two, compared with the second."""

    WORSE = -1
    NOT_SIGNIFICANT = 0
    BETTER = 1
    EQUIVALENT = 2
    NOT_TESTED = 3
    ABSENT = 4  # one of the two is not there


WORDS = {Verdict.NOT_SIGNIFICANT: "not significant", Verdict.EQUIVALENT: "practically equivalent",
         Verdict.NOT_TESTED: "no test", Verdict.ABSENT: ""}  # fmt: skip


def ahead_or_behind(codes: Any) -> Mask:
    """Which verdicts are for one of the two.

    >>> ahead_or_behind([Verdict.WORSE, Verdict.EQUIVALENT]).tolist()
    [True, False]
    """
    return np.abs(np.asarray(codes)) == Verdict.BETTER


def turned(codes: Any) -> Codes:
    """The verdicts of the second of two, compared with the first.

    >>> turned([Verdict.BETTER, Verdict.NOT_TESTED]).tolist()
    [-1, 3]
    """
    codes = np.asarray(codes, dtype=np.int8)
    return np.where(ahead_or_behind(codes), -codes, codes).astype(np.int8)


def pair_words(
    codes: Any, left: Iterable[str], right: Iterable[str], *, neither: str = WORDS[Verdict.NOT_SIGNIFICANT]
) -> list[str]:
    """What is said of pairs, in words; `neither` where a test or a posterior decides for none of the two.

    >>> pair_words([1, -1, 0], ["A", "A", "B"], ["B", "C", "C"])
    ['A better', 'C better', 'not significant']
    """
    words = {**WORDS, Verdict.NOT_SIGNIFICANT: neither}
    return [
        words.get(code, f"{first if code is Verdict.BETTER else second} better")
        for code, first, second in zip(map(Verdict, codes), left, right, strict=True)
    ]


# ------------------------------------------------------------------------------------------------------------- findings


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


def table_of(checks: Sequence[Finding]) -> pd.DataFrame:
    """One row per check of a fit, with its kind as ``check`` and its message as ``found``."""
    import pandas as pd

    fields = {"check": "kind", "subject": "subject", "found": "message"}
    fields |= {name: name for name in ("value", "p_value", "severity", "advice")}
    rows = [[getattr(check, field) for field in fields.values()] for check in checks]
    return pd.DataFrame(rows, columns=list(fields))


def severities_counted(checks: Iterable[Finding]) -> str:
    """How many checks are of each severity, the most serious first.

    Examples
    --------
    >>> severities_counted([Finding("fine", "link", "", ""), Finding("note", "ends", "", "")])
    '1 note, 1 fine'
    """
    severities = [check.severity for check in checks]
    return ", ".join(f"{severities.count(s)} {s}" for s in SEVERITIES if s in severities)


def judged(check: Finding, title: str, table: pd.DataFrame, values: Mapping[str, Any], **more: Any) -> Answer:
    """An answer with one finding: its `check`, whose `severity`, `advice` and `p_value` are values of it, too."""
    part = Answer(question=check.kind, title=title, tables={"table": table}, values=values, **more)
    return judged_as(part, check)


def judged_as(part: Answer, check: Finding) -> Answer:
    """The same numbers with another finding."""
    line = {"check": check, "severity": check.severity, "advice": check.advice, "p_value": check.p_value}
    return replace(part, values={**part.values, **line}, findings=(check.advice,))
