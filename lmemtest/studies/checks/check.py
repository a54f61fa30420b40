"""All checks of a table of runs as one tree, and what to fix first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_callable, check_choice, check_fraction, resolve_rng
from lmemtest.data.findings import Finding
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, LmemtestError
from lmemtest.studies.checks.report import SEVERITIES, CheckOutcome, SanityReport
from lmemtest.studies.checks.scope import needed_data, nothing_to_check

if TYPE_CHECKING:
    import numpy as np

    from lmemtest.data.checks import RunsCheck
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit


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
            from lmemtest.studies.modelling.recommend import recommend

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


def _kind(study: _Study) -> Found:
    """The kind of score, and what it asks to know."""
    kinds = ("two_values", "capped_scores", "penalised_scores", "mixed_units", "folds")
    return _of_table(*kinds, fine=study.table.kind.evidence)(study)


def _coverage(study: _Study) -> Found:
    named = [role for role in ("seed", "budget") if getattr(study.runs, role) is not None]
    fine = "Every algorithm ran everywhere"
    fine += f", with the same {' and '.join(f'{role}s' for role in named)}." if named else "."
    kinds = ("no_common_benchmark", "missing_cells", "unpaired_seeds", "missing_budgets", "irregular_budgets")
    return _of_table(*kinds, fine=fine)(study)


def _from_findings(found: list[Finding] | tuple[Finding, ...], fine: str, result: Any) -> Found:
    if not found:
        return "fine", (fine,), "", result
    severity = min((f.severity for f in found), key=SEVERITIES.index)
    first = next(f for f in found if f.severity == severity)
    ordered = sorted(found, key=lambda f: SEVERITIES.index(f.severity))
    return severity, tuple(f.message for f in ordered), first.advice, result


def _copies(study: _Study) -> Found:
    from lmemtest.studies.checks.copies import copied_runs

    result = copied_runs(study.runs)
    if not result.judged:
        return "skipped", (result.sentences()[0],), "", result
    return _from_findings(result.findings, result.sentences()[0], result)


def _traces(study: _Study) -> Found:
    from lmemtest.studies.checks.traces import broken_traces

    result = broken_traces(study.runs)
    if result.verdict == "not judged":
        return "skipped", (result.sentences()[0],), "", result
    return _from_findings(result.findings, result.sentences()[0], result)


def _similar_algorithms(study: _Study) -> Found:
    from lmemtest.studies.checks.similar import similar_algorithms

    result = similar_algorithms(study.runs, alpha=study.alpha, model=study.fit)
    return _from_findings(result.findings, result.sentences()[0], result)


def _similar_benchmarks(study: _Study) -> Found:
    from lmemtest.studies.checks.similar import similar_benchmarks

    result = similar_benchmarks(study.runs, alpha=study.alpha)
    severity = "fine" if result.smallest_p < study.alpha else "skipped"
    return _from_findings(result.findings, result.sentences()[0], result) if result.findings else (
        severity, (result.sentences()[0],), "", result,
    )  # fmt: skip


def _bounds(study: _Study) -> Found:
    """Floors and ceilings, as `fit.diagnose()` finds them."""
    from lmemtest.inference.diagnostics.bounds import bounds
    from lmemtest.inference.diagnostics.scores import rows_of

    result = bounds(study.fit, rows_of(study.fit))
    severity = {"fine": "fine", "look": "note", "act": "warning"}[result.decision]
    if result.table.empty:  # too few scores to judge
        return "skipped", (result.advice,), "", result
    return severity, (result.advice,), "", result


def _information(study: _Study) -> Found:
    from lmemtest.studies.checks.benchmark_information import benchmark_information

    result = benchmark_information(study.runs, alpha=study.alpha)
    if not result.uninformative:
        return "note" if result.untested else "fine", (" ".join(result.sentences()),), "", result
    advice = "Keep it in a comparison over all benchmarks, where it counts as it should; it just decides nothing."
    return "note", (" ".join(result.sentences()),), advice, result


def _seeds(study: _Study) -> Found:
    from lmemtest.studies.checks.seed_effect import seed_effect

    result = seed_effect(study.runs, alpha=study.alpha, rng=study.rng)
    if not result.affected:
        return "fine", (" ".join(result.sentences()),), "", result
    return (
        "warning",
        (" ".join(result.sentences()),),
        "Settle this before counting the seeds as independent repetitions.",
        result,
    )


def _budget(study: _Study) -> Found:
    from lmemtest.studies.budget.budget_effect import budget_effect
    from lmemtest.studies.budget.budget_words import fit_sentence, one_way

    result = budget_effect(study.runs, form=study.form, alpha=study.alpha)
    found = (result.sentences()[0], *((fit_sentence(result),) if result.decision != "none" and not result.fits else ()))
    effect = result.get("effect")
    nothing = result.decision == "none" and result.fits and not (effect is not None and one_way(result, effect))
    return "fine" if nothing else "note", found, "", result


# The order is that of the tree: a problem can cause those below it, so it is fixed first.
CHECKS: tuple[SanityCheck, ...] = (
    SanityCheck(
        stage="table",
        name="scores",
        question="Is every score a finite number?",
        run=_of_table("non_finite", fine="Every score is a finite number."),
    ),
    SanityCheck(stage="table", name="kind", question="What kind of score is it?", run=_kind),
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
        run=_coverage,
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
        run=_of_table("constant_scores", fine="No algorithm has one score throughout a benchmark."),
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
        run=_of_table("score_scale", fine="No sign that benchmarks are on different scales."),
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
_TABLE = ("scores", "kind", "names", "coverage", "duplicates", "constant", "ties", "scales")


@one_blas_thread()
def check_all(
    runs: Runs,
    *,
    alpha: float = 0.05,
    form: str = "auto",
    rng: int | np.random.Generator | None = None,
    checks: tuple[SanityCheck, ...] = CHECKS,
    progress: Callable[[str], None] | None = None,
) -> SanityReport:
    """Run all sanity checks and say what to fix first.

    Parameters
    ----------
    runs : Runs
        Any table of runs; checks that it has no columns for are left out, with the reason.
    alpha : float in (0, 0.5)
        Level of every statistical check by itself.
    form : {"auto", "linear", "log", "categorical", "spline"}
        How `budget_effect` takes the budget.
    rng : int, numpy.random.Generator or None
        For checks that simulate.
    checks : tuple of SanityCheck
        The checks, in the order of the tree; all by default.
    progress : callable, optional
        Called with the name of each check before it is made, as ``print`` or a progress bar can be.

    Returns
    -------
    SanityReport
        ``summary()`` is the tree, ``to_frame()`` one row per finding, ``to_fix`` what to fix in which order,
        ``report["budget"].result`` the result of a check.

    Notes
    -----
    The order is: errors before warnings; among them from the table to its runs, the algorithms, the benchmarks and the
    effects, because each can be the cause of what follows (rows read twice make ties, scales and effects of seeds).
    Checks that the table cannot answer are "skipped", which is not "fine"; the sentence counts them, and says what data
    they need where most tests are among them.
    While scores are missing only the rules for the table are applied. A finding is a question to the data, not a
    verdict: an algorithm that ignores a metafeature has the same runs at all of its levels, and rightly so.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.checks.check import CHECKS, check_all
    >>> report = check_all(lt.datasets.load_hpo_runs().filter(prior="good"), checks=CHECKS[:7])
    >>> [(outcome.check, outcome.severity) for outcome in report.outcomes][:3]
    [('scores', 'fine'), ('kind', 'fine'), ('names', 'fine')]
    """
    from lmemtest.studies.budget.budget_model import FORMS

    require_runs(runs)
    alpha = check_fraction(alpha, "alpha")
    check_choice(form, "form", FORMS)
    check_callable(progress, "progress", "the name of each step")
    resolve_rng(rng)
    if (
        not isinstance(checks, (tuple, list))
        or not all(isinstance(check, SanityCheck) for check in checks)
        or not checks
    ):
        raise ArgumentError(f"checks must be a tuple of checks such as CHECKS[:3], got {checks!r}.")
    study = _Study(runs, alpha, form, rng, runs.check())
    broken = any(f.severity == "error" for f in study.table.findings)
    outcomes = []
    for check in checks:
        if progress is not None:
            progress(f"checking {check.name}")
        outcomes.append(_outcome(check, study, broken))
    needs = needed_data(runs, study.table)
    return SanityReport(outcomes=tuple(outcomes), overview=study.table.overview, alpha=alpha, needs=needs)


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
        answer = check.run(study)
    except LmemtestError as error:
        return "skipped", (f"Left out: {error}",), "", None
    nothing = nothing_to_check(check.name, study.runs, study.table) if answer[0] == "fine" else ""
    return ("skipped", (f"Left out: {nothing}",), "", None) if nothing else answer
