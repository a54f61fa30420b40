"""What sanity checks found, as one tree, and what to fix first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lmemtest._caller import in_words_of
from lmemtest._result import Result, result
from lmemtest.words import listed

if TYPE_CHECKING:
    import pandas as pd


SEVERITIES = ("error", "warning", "note", "fine", "skipped")
_SHOWN = 2  # findings of one check in the summary; all are in `to_frame`
_NAMED = 6  # checks that could not be made in the sentence; all are in `left_out`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckOutcome:
    """One check with what it found.

    Attributes
    ----------
    stage : str
        What it is about: "table", "runs", "algorithms", "benchmarks", "effects".
    check : str
        Its name.
    question : str
    severity : {"error", "warning", "note", "fine", "skipped"}
        An error stops a fit, a warning can change a conclusion, a note explains.
    found : tuple of str
        The findings in words; what is fine, or why the check was left out.
    advice : str
        The next step; empty where there is nothing to do.
    level : float
        Probability of a finding where there is nothing; NaN for rules that chance does not trigger.
    result : object
        The result behind it, with its tables; None for the findings of `Runs.check`.
    """

    stage: str
    check: str
    question: str
    severity: str
    found: tuple[str, ...]
    advice: str
    level: float
    result: Any = None


@result
class SanityReport(Result):
    """The outcomes of all checks.

    Attributes
    ----------
    outcomes : tuple of CheckOutcome
        In the order in which to fix: what comes first can be the cause of what follows.
    overview : str
        The size of the table.
    alpha : float
        Level of every statistical check by itself.
    needs : tuple of str
        Data that the table lacks for the statistical checks.
    """

    parts = {"findings": "_findings"}

    outcomes: tuple[CheckOutcome, ...]
    overview: str
    alpha: float
    needs: tuple[str, ...] = ()

    def __getitem__(self, check: str) -> CheckOutcome:
        """The outcome of a check by its name."""
        for outcome in self.outcomes:
            if outcome.check == check:
                return outcome
        raise KeyError(f"no check {check!r}; there are: {', '.join(o.check for o in self.outcomes)}")

    @property
    def to_fix(self) -> tuple[CheckOutcome, ...]:
        """Errors, then warnings, each in the order of the tree."""
        problems = [o for o in self.outcomes if o.severity in ("error", "warning")]
        return tuple(sorted(problems, key=lambda o: SEVERITIES.index(o.severity)))

    @property
    def left_out(self) -> tuple[CheckOutcome, ...]:
        """The checks that could not be made, in the order of the tree."""
        return tuple(o for o in self.outcomes if o.severity == "skipped")

    @property
    def tests(self) -> tuple[CheckOutcome, ...]:
        """The statistical checks, made or not."""
        return tuple(o for o in self.outcomes if o.level == o.level)

    @property
    def ok(self) -> bool:
        """Whether there is no error and no warning, and not all statistical checks had to be left out."""
        return not self.to_fix and self._reach != "none"

    @property
    def _reach(self) -> str:
        """How much could be checked: "all", "most", "little" or "none" of the statistical checks."""
        judged = self.tests or self.outcomes
        made = sum(o.severity != "skipped" for o in judged)
        if not self.left_out:
            return "all"
        return "none" if not made else "little" if 2 * made < len(judged) else "most"

    def sentences(self) -> tuple[str, ...]:
        """What to fix first, and how much could be checked."""
        if not self.to_fix:
            return (self._nothing_found(),)
        first, *rest = self.to_fix
        text = f"Fix first: {first.check}. {first.found[0]} {first.advice}".strip()
        if rest:
            text += f" Then check again; after it come: {', '.join(o.check for o in rest)}."
        if self._reach in ("little", "none") and first.severity != "error":
            text += f" Other faults may be there: {self._counts()}.{self._wanted()}"
        return (text,)

    def _nothing_found(self) -> str:
        reach = self._reach
        if reach == "all":
            return "Nothing has to be fixed before an analysis."
        if reach == "most":
            return f"Nothing was found that has to be fixed; {self._counts()}."
        how_much = "Almost nothing could be checked" if reach == "none" else "Little could be checked"
        return f"{how_much}, so it means little that no fault was found: {self._counts()}.{self._wanted()}"

    def _counts(self) -> str:
        missing = [o.check for o in self.left_out]
        text = f"{len(missing)} of {len(self.outcomes)} checks could not be made ({listed(missing, _NAMED)})"
        lost = sum(o.severity == "skipped" for o in self.tests)
        if self._reach == "most" or not lost:
            return text
        return f"{text}, among them {'all' if self._reach == 'none' else f'{lost} of the'} {len(self.tests)} tests"

    def _wanted(self) -> str:
        return f" They need {'; '.join(self.needs)}." if self.needs else ""

    def _findings(self) -> pd.DataFrame:
        """One row per finding, in the order in which to fix: priority (1 is first; missing where nothing is to be
        fixed), stage, check, severity, found, advice, level."""
        import pandas as pd

        rank = {o.check: i for i, o in enumerate(self.to_fix, start=1)}
        order = sorted(self.outcomes, key=lambda o: SEVERITIES.index(o.severity))
        rows = [
            (rank.get(o.check), o.stage, o.check, o.severity, text, o.advice, o.level)
            for o in order
            for text in o.found
        ]
        columns = ["priority", "stage", "check", "severity", "found", "advice", "level"]
        return pd.DataFrame(rows, columns=columns).astype({"priority": "Int64"})

    @property
    def title(self) -> str:
        """One line above the table."""
        return f"Sanity checks: {self.overview}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The checks that are tests, and how often some fire by chance."""
        tests = [o.check for o in self.tests if o.severity != "skipped"]
        if not tests:
            return ("No statistical test was made.",)
        chance = f"{100 * (1.0 - (1.0 - self.alpha) ** len(tests)):.0f} % of tables without any effect"
        made = f"{', '.join(tests)}; the other checks are rules"
        if len(tests) == 1:
            return (f"Test at alpha = {self.alpha:g}: {made}. It fires by chance alone in up to {chance}.",)
        return (
            f"Tests at alpha = {self.alpha:g} each: {made}. Of {len(tests)} tests some fire by chance alone in up to "
            f"{chance}.",
        )

    def shown(self) -> pd.DataFrame:
        """The findings without the columns of the tests."""
        return self._findings().drop(columns="level")

    def summary(self) -> str:
        """The checks as a tree, and what to fix first."""
        width = max(len(o.check) for o in self.outcomes)
        lines = [self.title]
        for stage, group in groupby(self.outcomes, lambda o: o.stage):
            lines.append(stage)
            outcomes = list(group)
            for i, outcome in enumerate(outcomes):
                last = i + 1 == len(outcomes)
                lines += _branch(outcome, "└── " if last else "├── ", "    " if last else "│   ", width)
        return "\n".join([*lines, "", *self.sentences(), *self.facts])


def _branch(outcome: CheckOutcome, head: str, below: str, width: int) -> list[str]:
    shown = outcome.found[:_SHOWN]
    lines = [f"{head}{outcome.check:<{width}}  {outcome.severity:<7}  {shown[0]}"]
    indent = f"{below}{'':<{width}}  {'':<7}  "
    lines += [f"{indent}{text}" for text in shown[1:]]
    see = in_words_of(python="; see to_frame()", command_line="")
    if len(outcome.found) > _SHOWN:
        lines.append(f"{indent}... and {len(outcome.found) - _SHOWN:,} more{see}.")
    if outcome.advice and outcome.severity != "fine":
        lines.append(f"{indent}-> {outcome.advice}")
    return lines
