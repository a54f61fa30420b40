"""All checks of a table of runs as one tree, and what to fix first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lmemtest._table import Tabular
from lmemtest._validate import check_choice, check_fraction
from lmemtest.data.findings import Finding
from lmemtest.data.runs import require_runs
from lmemtest.errors import LmemtestError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from lmemtest._table import ResultTable
    from lmemtest.data.checks import RunsCheck
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

SEVERITIES = ("error", "warning", "note", "fine", "skipped")
_SHOWN = 2  # findings of one check in the summary; all are in `to_frame`


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


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class SanityReport(Tabular):
    """The outcomes of all checks.

    Attributes
    ----------
    outcomes : tuple of CheckOutcome
        In the order in which to fix: what comes first can be the cause of what follows.
    overview : str
        The size of the table.
    alpha : float
        Level of every statistical check by itself.
    """

    outcomes: tuple[CheckOutcome, ...]
    overview: str
    alpha: float

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
    def ok(self) -> bool:
        """Whether there is no error and no warning."""
        return not self.to_fix

    @property
    def sentence(self) -> str:
        """What to fix first."""
        if not self.to_fix:
            return "Nothing has to be fixed before an analysis."
        first, *rest = self.to_fix
        text = f"Fix first: {first.check}. {first.found[0]} {first.advice}".strip()
        if not rest:
            return text
        return f"{text} Then check again; after it come: {', '.join(o.check for o in rest)}."

    def to_frame(self) -> pd.DataFrame:
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

    def result_table(self) -> ResultTable:
        """The findings as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        notes = (self.sentence, self._levels())
        return ResultTable(f"Sanity checks: {self.overview}", self.to_frame().drop(columns="level"), notes)

    def summary(self) -> str:
        """The checks as a tree, and what to fix first."""
        width = max(len(o.check) for o in self.outcomes)
        lines = [f"Sanity checks: {self.overview}"]
        for stage, group in groupby(self.outcomes, lambda o: o.stage):
            lines.append(stage)
            outcomes = list(group)
            for i, outcome in enumerate(outcomes):
                last = i + 1 == len(outcomes)
                lines += _branch(outcome, "└── " if last else "├── ", "    " if last else "│   ", width)
        return "\n".join([*lines, "", self.sentence, self._levels()])

    def _levels(self) -> str:
        tests = [o.check for o in self.outcomes if o.level == o.level and o.severity != "skipped"]
        if not tests:
            return "No statistical test was made."
        return (
            f"Tests at level {100 * self.alpha:g} % each: {', '.join(tests)}; the other checks are rules. Of "
            f"{len(tests)} tests {'one fires' if len(tests) == 1 else 'some fire'} by chance alone in up to "
            f"{100 * (1.0 - (1.0 - self.alpha) ** len(tests)):.0f} % of tables without any effect."
        )


def _branch(outcome: CheckOutcome, head: str, below: str, width: int) -> list[str]:
    shown = outcome.found[:_SHOWN]
    lines = [f"{head}{outcome.check:<{width}}  {outcome.severity:<7}  {shown[0]}"]
    indent = f"{below}{'':<{width}}  {'':<7}  "
    lines += [f"{indent}{text}" for text in shown[1:]]
    if len(outcome.found) > _SHOWN:
        lines.append(f"{indent}... and {len(outcome.found) - _SHOWN:,} more; see to_frame().")
    if outcome.advice and outcome.severity != "fine":
        lines.append(f"{indent}-> {outcome.advice}")
    return lines


@dataclass(slots=True, eq=False)
class _Study:
    """The runs with what several checks need, computed once."""

    runs: Runs
    alpha: float
    form: str
    rng: int | np.random.Generator | None
    table: RunsCheck
    _fit: LmmFit | None = field(default=None)

    @property
    def fit(self) -> LmmFit:
        """The recommended model."""
        if self._fit is None:
            from lmemtest.model import fit_lmm
            from lmemtest.recipes.recommended import recommend

            self._fit = fit_lmm(recommend(self.runs).formula, self.runs)
        return self._fit


Found = tuple[str, tuple[str, ...], str, Any]  # severity, findings, advice, result


@dataclass(frozen=True, slots=True, kw_only=True)
class SanityCheck:
    """A check of the tree: what it asks, and the function that answers.

    Attributes
    ----------
    stage, name, question : str
    run : callable
        Takes the study, gives severity, findings in words, advice and a result; an error of lmemtest means that the
        check does not apply to this table, and its message says why.
    tests : bool
        Whether it is a test at level alpha, not a rule.
    """

    stage: str
    name: str
    question: str
    run: Callable[[_Study], Found]
    tests: bool = False


def _of_table(*kinds: str, fine: str) -> Callable[[_Study], Found]:
    """The findings of `Runs.check` of some kinds."""

    def run(study: _Study) -> Found:
        found = [f for f in study.table.findings if f.kind in kinds]
        return _from_findings(found, fine, None)

    return run


def _from_findings(found: list[Finding] | tuple[Finding, ...], fine: str, result: Any) -> Found:
    if not found:
        return "fine", (fine,), "", result
    severity = min((f.severity for f in found), key=SEVERITIES.index)
    first = next(f for f in found if f.severity == severity)
    ordered = sorted(found, key=lambda f: SEVERITIES.index(f.severity))
    return severity, tuple(f.message for f in ordered), first.advice, result


def _copies(study: _Study) -> Found:
    from lmemtest.recipes.copies import copied_runs

    result = copied_runs(study.runs)
    return _from_findings(result.findings, result.sentence, result)


def _traces(study: _Study) -> Found:
    from lmemtest.recipes.traces import broken_traces

    result = broken_traces(study.runs)
    if result.verdict == "not judged":
        return "skipped", (result.sentence,), "", result
    return _from_findings(result.findings, result.sentence, result)


def _similar_algorithms(study: _Study) -> Found:
    from lmemtest.recipes.redundancy import similar_algorithms

    result = similar_algorithms(study.runs, alpha=study.alpha, model=study.fit)
    return _from_findings(result.findings, result.sentence, result)


def _similar_benchmarks(study: _Study) -> Found:
    from lmemtest.recipes.redundancy import similar_benchmarks

    result = similar_benchmarks(study.runs, alpha=study.alpha)
    severity = "fine" if result.smallest_p < study.alpha else "skipped"
    return _from_findings(result.findings, result.sentence, result) if result.findings else (
        severity, (result.sentence,), "", result,
    )  # fmt: skip


def _bounds(study: _Study) -> Found:
    """Floors and ceilings, as `fit.diagnose()` finds them."""
    from lmemtest.inference.diagnostics.ceilings import bounds
    from lmemtest.inference.diagnostics.rows import rows_of

    result = bounds(study.fit, rows_of(study.fit))
    severity = {"fine": "fine", "look": "note", "act": "warning"}[result.verdict]
    return severity, (result.sentence,), "", result


def _information(study: _Study) -> Found:
    from lmemtest.recipes.information import benchmark_information

    result = benchmark_information(study.runs, alpha=study.alpha)
    if not result.uninformative:
        return "fine", (result.sentence,), "", result
    advice = "Keep it in a comparison over all benchmarks, where it counts as it should; it just decides nothing."
    return "note", (result.sentence,), advice, result


def _seeds(study: _Study) -> Found:
    from lmemtest.recipes.seeds import seed_dependency

    result = seed_dependency(study.runs, alpha=study.alpha, rng=study.rng)
    if not result.affected:
        return "fine", (result.sentence,), "", result
    return "warning", (result.sentence,), "Settle this before counting the seeds as independent repetitions.", result


def _budget(study: _Study) -> Found:
    from lmemtest.recipes.budgets import fidelity

    result = fidelity(study.runs, form=study.form, alpha=study.alpha)
    return "fine" if result.verdict == "none" else "note", (result.sentence,), "", result


# The order is that of the tree: a problem can cause those below it, so it is fixed first.
CHECKS: tuple[SanityCheck, ...] = (
    SanityCheck(
        stage="table",
        name="scores",
        question="Is every score a finite number?",
        run=_of_table("non_finite", fine="Every score is a finite number."),
    ),
    SanityCheck(
        stage="table",
        name="names",
        question="Is every level written in one way?",
        run=_of_table("similar_levels", fine="No two names differ in case or blanks only."),
    ),
    SanityCheck(
        stage="table",
        name="coverage",
        question="Did every algorithm run everywhere, with the same seeds and budgets?",
        run=_of_table(
            "missing_cells",
            "unpaired_seeds",
            "missing_budgets",
            "irregular_budgets",
            fine="Every algorithm ran everywhere, with the same seeds and budgets.",
        ),
    ),
    SanityCheck(
        stage="runs",
        name="duplicates",
        question="Is there one row per run and budget?",
        run=_of_table("duplicates", fine="There is one row per run and budget."),
    ),
    SanityCheck(stage="runs", name="copies", question="Does a run occur under two names?", run=_copies),
    SanityCheck(
        stage="runs",
        name="constant",
        question="Do scores vary between runs?",
        run=_of_table("constant_scores", fine="Scores vary between the runs of every algorithm."),
    ),
    SanityCheck(stage="runs", name="curves", question="Does a best-so-far curve get worse?", run=_traces),
    SanityCheck(
        stage="algorithms",
        name="ties",
        question="Are scores of different algorithms exactly equal?",
        run=_of_table("ties", fine="Exact ties of algorithms are rare."),
    ),
    SanityCheck(
        stage="algorithms",
        name="similar algorithms",
        question="Do algorithms perform alike?",
        run=_similar_algorithms,
        tests=True,
    ),
    SanityCheck(
        stage="benchmarks",
        name="scales",
        question="Are scores of all benchmarks on one scale?",
        run=_of_table("score_scale", fine="Scores scatter alike on all benchmarks, within a factor of 3."),
    ),
    SanityCheck(stage="benchmarks", name="bounds", question="Do scores sit on a floor or ceiling?", run=_bounds),
    SanityCheck(
        stage="benchmarks",
        name="similar benchmarks",
        question="Do benchmarks order the algorithms alike?",
        run=_similar_benchmarks,
        tests=True,
    ),
    SanityCheck(
        stage="benchmarks",
        name="information",
        question="Does every benchmark tell the algorithms apart?",
        run=_information,
        tests=True,
    ),
    SanityCheck(
        stage="effects",
        name="seeds",
        question="Does the score of an algorithm depend on the seed?",
        run=_seeds,
        tests=True,
    ),
    SanityCheck(
        stage="effects",
        name="budget",
        question="Does the score depend on the budget, and alike for all algorithms?",
        run=_budget,
        tests=True,
    ),
)
_TABLE = ("scores", "names", "coverage", "duplicates", "constant", "ties", "scales")


def check_all(
    runs: Runs,
    *,
    alpha: float = 0.05,
    form: str = "linear",
    rng: int | np.random.Generator | None = None,
    checks: tuple[SanityCheck, ...] = CHECKS,
    verbose: bool = False,
) -> SanityReport:
    """Run all sanity checks and say what to fix first.

    Parameters
    ----------
    runs : Runs
        Any table of runs; checks that it has no columns for are left out, with the reason.
    alpha : float in (0, 0.5)
        Level of every statistical check by itself.
    form : {"linear", "categorical", "spline"}
        How `fidelity` takes the budget.
    rng : int, numpy.random.Generator or None
        For checks that simulate.
    checks : tuple of SanityCheck
        The checks, in the order of the tree; all by default.
    verbose : bool
        Print the tree.

    Returns
    -------
    SanityReport
        ``summary()`` is the tree, ``to_frame()`` one row per finding, ``to_fix`` what to fix in which order,
        ``report["budget"].result`` the result of a check.

    Notes
    -----
    The order is: errors before warnings; among them from the table to its runs, the algorithms, the benchmarks and the
    effects, because each can be the cause of what follows (rows read twice make ties, scales and effects of seeds).
    While scores are missing only the rules for the table are applied. A finding is a question to the data, not a
    verdict: an algorithm that ignores a metafeature has the same runs at all of its levels, and rightly so.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.recipes.sanity import CHECKS, check_all
    >>> report = check_all(lt.datasets.load_hpo_runs().filter(prior="good"), checks=CHECKS[:7])
    >>> [(outcome.check, outcome.severity) for outcome in report.outcomes][:3]
    [('scores', 'fine'), ('names', 'fine'), ('coverage', 'fine')]
    """
    from lmemtest.recipes.budget_models import FORMS

    require_runs(runs)
    alpha = check_fraction(alpha, "alpha")
    check_choice(form, "form", FORMS)
    study = _Study(runs, alpha, form, rng, runs.check())
    broken = any(f.severity == "error" for f in study.table.findings)
    outcomes = tuple(_outcome(check, study, broken) for check in checks)
    report = SanityReport(outcomes=outcomes, overview=study.table.overview, alpha=alpha)
    if verbose:
        print(report)
    return report


def _outcome(check: SanityCheck, study: _Study, broken: bool) -> CheckOutcome:
    severity, found, advice, result = _answer(check, study, broken)
    return CheckOutcome(
        stage=check.stage,
        check=check.name,
        question=check.question,
        severity=severity,
        found=found,
        advice=advice,
        level=study.alpha if check.tests else float("nan"),
        result=result,
    )


def _answer(check: SanityCheck, study: _Study, broken: bool) -> Found:
    if broken and check.name not in _TABLE:
        return "skipped", ("Left out: the scores have to be complete first.",), "", None
    try:
        return check.run(study)
    except LmemtestError as error:
        return "skipped", (f"Left out: {error}",), "", None
