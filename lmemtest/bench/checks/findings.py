"""The record of all checks of a table of runs, as a tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.scales import SCALE_RATIO, ScoreKind
from lmemtest.core.caller import advice
from lmemtest.core.result import Result, result
from lmemtest.core.sanitize import one_line
from lmemtest.core.table import Text
from lmemtest.core.verdicts import SEVERITIES, Finding
from lmemtest.core.words import joined, listed

SHOWN = 3  # findings of one kind in a text
_BRANCH = 2  # findings of one check in the tree; all are in `to_frame`
LINES = 60  # of the text
_CHARACTERS = 400  # of a line of the tree
_NAMED = 6  # checks that could not be made in the sentence; all are in `left_out`


def on(benchmark: Any) -> str:
    """The words for a benchmark; none where there is no such column."""
    return "" if benchmark is None else f" on {str(benchmark)!r}"


def per_cell(
    places: Sequence[tuple[Any, Any]],
    counts: np.ndarray,
    severity: str,
    kind: str,
    say: Callable[[int, str, str, int], tuple[str, str]],
) -> list[Finding]:
    """A finding for every benchmark and algorithm with a count, the largest count first.

    `places` are the benchmark (None if there is no such column) and the algorithm of each cell; `say` makes message
    and advice of the cell, the quoted algorithm, the words for the place, and the count.
    """
    hit = np.flatnonzero(counts)
    found = []
    for cell in hit[np.argsort(-counts[hit], kind="stable")].tolist():
        benchmark, algorithm = places[cell]
        count = int(counts[cell])
        message, advice = say(cell, repr(str(algorithm)), on(benchmark), count)
        place = {"benchmark": benchmark, "algorithm": algorithm, "count": count}
        found.append(Finding(severity=severity, kind=kind, message=message, advice=advice, **place))
    return found


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
    findings : tuple of Finding
        The worst first.
    text : str
        Without findings: what is fine, or why the check was left out.
    skipped : bool
        Whether it was left out.
    level : float
        Probability of a finding where there is nothing; NaN for rules that chance does not trigger.
    result : object
        The result behind it, with its tables; None for rules of the table.
    """

    stage: str = ""
    check: str = ""
    question: str = ""
    findings: tuple[Finding, ...]
    text: str
    skipped: bool
    level: float = float("nan")
    result: Any = None

    @property
    def severity(self) -> str:
        """That of the worst finding: "error", "warning" or "note"; "fine" without any, "skipped" if it was left out."""
        return self.findings[0].severity if self.findings else "skipped" if self.skipped else "fine"

    @property
    def found(self) -> tuple[str, ...]:
        """The findings in words; what is fine, or why the check was left out."""
        return tuple(finding.message for finding in self.findings) or (self.text,)

    @property
    def advice(self) -> str:
        """The next step for the worst finding; empty where there is nothing to do."""
        return self.findings[0].advice if self.findings else ""


@result
class RunsCheck(Result):
    """What the checks of a table of runs found.

    Attributes
    ----------
    outcomes : tuple of CheckOutcome
        In the order in which to fix: what comes first can be the cause of what follows.
    overview : str
        The size of the table in a sentence.
    alpha : float
        Level of every statistical check by itself.
    kind : ScoreKind
        What kind of score it is, which decides what is a defect.
    cells : pandas.DataFrame
        One row per benchmark and algorithm: ``benchmark``, ``algorithm``, ``n`` (rows), ``seeds``,
        ``budgets`` (distinct ones), ``missing`` (combinations of instance, seed and budget that are not
        there), ``duplicates`` (rows beyond the first of such a combination), ``non_finite``, ``distinct``
        (different finite scores), ``mean`` and ``sd`` of the finite scores.
    scales : pandas.DataFrame
        One row per benchmark: ``benchmark``, ``residual_sd`` (within algorithm, instance and budget), ``df``.
    scale_ratio : float
        The largest over the smallest positive residual SD, or, where nothing was repeated, standard deviation between
        algorithms; NaN with fewer than two.
    tied_share : float
        The share of pairs of algorithms with exactly equal scores on the same instance, seed and budget.
    needs : tuple of str
        Data that the table lacks for the statistical checks.
    """

    parts = {"outcomes": "_outcomes", "findings": "_findings", "cells": "cells", "scales": "scales"}

    outcomes: tuple[CheckOutcome, ...]
    overview: str
    alpha: float
    kind: ScoreKind
    cells: pd.DataFrame
    scales: pd.DataFrame
    scale_ratio: float
    tied_share: float
    needs: tuple[str, ...] = ()

    def __getitem__(self, check: str) -> CheckOutcome:
        """The outcome of a check by its name."""
        for outcome in self.outcomes:
            if outcome.check == check:
                return outcome
        raise KeyError(f"no check {check!r}; there are: {', '.join(o.check for o in self.outcomes)}")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the worst first."""
        found = [finding for outcome in self.outcomes for finding in outcome.findings]
        return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    @property
    def to_fix(self) -> tuple[CheckOutcome, ...]:
        """Errors, then warnings, each in the order of the tree."""
        problems = [o for o in self.outcomes if o.severity in ("error", "warning")]
        return tuple(sorted(problems, key=lambda o: SEVERITIES.index(o.severity)))

    def in_sum(self, outcome: CheckOutcome) -> str:
        """The worst kind of finding of a check, with all that it concerns counted."""
        first = outcome.findings[0]
        return self._together([f for f in outcome.findings if (f.severity, f.kind) == (first.severity, first.kind)])

    def _together(self, alike: list[Finding]) -> str:
        """Findings of one kind as one sentence."""
        count, rows = sum(finding.count for finding in alike), int(self.cells["n"].sum())
        one = count == 1
        if len(alike) == 1:
            return alike[0].message
        if alike[0].kind == "duplicates":
            return f"{count:,} of {rows:,} rows {'is a copy of another' if one else 'are copies of others'}."
        if alike[0].kind == "reruns":
            return f"{count:,} of {rows:,} rows repeat another run with a different score."
        if alike[0].kind == "missing_cells":
            n = self.cells["benchmark"].nunique()
            names = dict.fromkeys(finding.algorithm for finding in alike)
            lacks = {name: sum(finding.algorithm == name for finding in alike) for name in names}
            return f"No runs: {joined([f'{name} on {lacking} of {n} benchmarks' for name, lacking in lacks.items()])}."
        if alike[0].kind == "non_finite":
            return f"{count:,} of {rows:,} scores are missing or infinite."
        if alike[0].kind == "unpaired_seeds":
            places = {finding.benchmark for finding in alike}
            return f"Seeds were not run by every algorithm on {len(places):,} benchmarks ({count:,} in all)."
        if alike[0].kind == "missing_budgets":
            names = dict.fromkeys(str(finding.algorithm) for finding in alike)
            return f"{count:,} scores at some budgets are missing, of {joined(names)}."
        more = len(alike) - 1
        return f"{alike[0].message} There {'is' if more == 1 else 'are'} {more:,} more like it."

    @property
    def left_out(self) -> tuple[CheckOutcome, ...]:
        """The checks that could not be made, in the order of the tree."""
        return tuple(o for o in self.outcomes if o.skipped)

    @property
    def tests(self) -> tuple[CheckOutcome, ...]:
        """The statistical checks, made or not."""
        return tuple(o for o in self.outcomes if o.level == o.level)

    @property
    def ok(self) -> bool:
        """Whether there is no error and no warning, and not all statistical checks had to be left out."""
        return not self.to_fix and self._reach != "none"

    @property
    def scales_differ(self) -> bool:
        """Whether scores scatter so differently on benchmarks that the noisiest would decide."""
        return self.scale_ratio > SCALE_RATIO and any(finding.kind == "score_scale" for finding in self.findings)

    @property
    def _reach(self) -> str:
        """How much could be checked: "all", "most", "little" or "none" of the statistical checks."""
        judged = self.tests or self.outcomes
        made = sum(not o.skipped for o in judged)
        if not self.left_out:
            return "all"
        return "none" if not made else "little" if 2 * made < len(judged) else "most"

    def sentences(self) -> tuple[str, ...]:
        """What to fix first, and how much could be checked."""
        reach, counts = self._reach, self._counts()
        wanted = f" They need {'; '.join(self.needs)}." if self.needs else ""
        if self.to_fix:
            first, *rest = self.to_fix
            text = f"Fix first: {first.check}. {self.in_sum(first)} {first.advice}".strip()
            if rest:
                text += f" Then check again; after it come: {', '.join(o.check for o in rest)}."
            if reach in ("little", "none") and first.severity != "error":
                text += f" Other faults may be there: {counts}.{wanted}"
            return (text,)
        if reach == "all":
            return ("Nothing has to be fixed before an analysis.",)
        if reach == "most":
            return (f"Nothing was found that has to be fixed; {counts}.",)
        how_much = "Almost nothing could be checked" if reach == "none" else "Little could be checked"
        return (f"{how_much}, so it means little that no fault was found: {counts}.{wanted}",)

    def _counts(self) -> str:
        missing = [o.check for o in self.left_out]
        text = f"{len(missing)} of {len(self.outcomes)} checks could not be made ({listed(missing, _NAMED)})"
        lost = sum(o.skipped for o in self.tests)
        if self._reach == "most" or not lost:
            return text
        return f"{text}, among them {'all' if self._reach == 'none' else f'{lost} of the'} {len(self.tests)} tests"

    def _findings(self) -> pd.DataFrame:
        """One row per finding, the worst first."""
        names = ["severity", "kind", "benchmark", "algorithm", "count", "message", "advice"]
        return pd.DataFrame([[getattr(f, name) for name in names] for f in self.findings], columns=names)

    def _outcomes(self) -> pd.DataFrame:
        """One row per finding or check without any, in the order in which to fix: priority (1 is first; missing where
        nothing is to be fixed), stage, check, severity, found, advice, level."""
        rank = {o.check: i for i, o in enumerate(self.to_fix, start=1)}
        rows = []
        for o in sorted(self.outcomes, key=lambda o: SEVERITIES.index(o.severity)):
            nothing = Finding(o.severity, "", o.text, "")
            for f in o.findings or (nothing,):
                rows.append((rank.get(o.check), o.stage, o.check, f.severity, f.message, f.advice, o.level))
        columns = ["priority", "stage", "check", "severity", "found", "advice", "level"]
        return pd.DataFrame(rows, columns=columns).astype({"priority": "Int64"})

    @property
    def title(self) -> str:
        """One line above the table."""
        return f"Checks: {self.overview}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The checks that are tests, and how often at least one gives a false alarm."""
        tests = [o.check for o in self.tests if not o.skipped]
        if not tests:
            return ("No statistical test was made.",)
        chance = f"up to {100 * (1.0 - (1.0 - self.alpha) ** len(tests)):.0f} % of tables without any effect"
        made = f"{', '.join(tests)}; the other checks are rules"
        if len(tests) == 1:
            return (f"Test at alpha = {self.alpha:g}: {made}. It gives a false alarm in {chance}.",)
        return (
            f"Tests at alpha = {self.alpha:g} each: {made}. With {len(tests)} tests, {chance} give at "
            "least one false alarm.",
        )

    def shown(self) -> pd.DataFrame:
        """The outcomes without the levels of the tests."""
        return self._outcomes().drop(columns="level")

    def summary(self, *, whole: bool = False) -> str:
        """The checks as a tree, and what to fix first.

        Parameters
        ----------
        whole : bool
            With every finding. By default it has 60 lines at most: of each kind of finding the first, and how many
            there are.
        """
        tail = ["", *self.sentences(), *self.facts]
        if whole:
            lines = self._tree(max(len(o.findings) for o in self.outcomes), cut=False)
        else:
            for most in (_BRANCH, 1, 0):
                lines = self._tree(most, cut=True)
                if len(lines) + len(tail) <= LINES:
                    break
        return Text("\n".join(map(one_line, [*lines, *tail])), self._repr_html_())

    def _tree(self, most: int, *, cut: bool) -> list[str]:
        """The lines of the tree, with so many findings of each kind; none: with a line for each check."""
        width = max(len(o.check) for o in self.outcomes)
        lines = [self.title]
        for stage, group in groupby(self.outcomes, lambda o: o.stage):
            lines.append(stage)
            outcomes = list(group)
            for outcome in outcomes:
                head, below = ("└── ", "    ") if outcome is outcomes[-1] else ("├── ", "│   ")
                lines += _branch(outcome, head, below, width, most, cut=cut)
        return lines


def _branch(outcome: CheckOutcome, head: str, below: str, width: int, most: int, *, cut: bool) -> list[str]:
    """The lines of a check: of each kind of finding the first ones, with the advice once."""
    lines = []
    for _, group in groupby(outcome.findings, lambda finding: (finding.severity, finding.kind)):
        found = list(group)
        shown, more = found[: max(most, 1)], len(found) - max(most, 1)
        lines += [finding.message for finding in shown]
        if more > 0:
            lines.append(f"... and {more:,} more{advice('more_findings')}.")
        lines += [f"-> {advice}" for advice in dict.fromkeys(finding.advice for finding in shown) if advice]
    if most < 1 and len(lines) > 1:
        lines = [f"{lines[0]} (1 of {len(outcome.findings):,} findings)" * bool(lines)]
    first, *rest = [_shortened(line) if cut else line for line in lines or [outcome.text]]
    indent = f"{below}{'':<{width}}  {'':<7}  "
    return [f"{head}{outcome.check:<{width}}  {outcome.severity:<7}  {first}", *(indent + line for line in rest)]


def _shortened(text: str) -> str:
    """A text that would fill a screen, up to its last whole word."""
    if len(text) <= _CHARACTERS:
        return text
    return f"{text[:_CHARACTERS].rsplit(' ', 1)[0]} ... ({advice('whole_finding')})"
