"""All checks of a table of runs as one tree, and what to fix first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from lmemtest.bench.checks import coverage, rules
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.copies import copied_runs, copy_findings
from lmemtest.bench.checks.failed import failed_findings, failures_by_algorithm
from lmemtest.bench.checks.families import family_findings
from lmemtest.bench.checks.findings import CheckOutcome, RunsCheck
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.bench.checks.similar import (
    algorithm_findings,
    benchmark_findings,
    similar_algorithms,
    similar_benchmarks,
)
from lmemtest.bench.checks.traces import broken_traces, trace_findings
from lmemtest.bench.data.points import cell_table, overview
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.data.scales import Modelled, residual_scales, scale_ratio
from lmemtest.bench.data.score_kind import score_kind
from lmemtest.core.caller import advice
from lmemtest.core.findings import SEVERITIES, Finding
from lmemtest.core.hints import guided
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_callable, check_choice, check_flag, check_fraction, check_names, resolve_rng
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.data.score_kind import ScoreKind
    from lmemtest.bench.data.study import Study
    from lmemtest.lmm.model import LmmFit

_NAMED = 6  # columns without a role
_BENCHMARKS = 3  # with fewer, nothing sets a benchmark apart from the others


@dataclass(kw_only=True, eq=False)
class _Subject:
    """What the checks look at, computed once."""

    runs: Runs
    alpha: float
    form: str
    rng: int | np.random.Generator | None
    modelled: Modelled | None  # the function of the score that a model takes: scales are those of its values

    @cached_property
    def study(self) -> Study:
        return self.runs.study.detailed

    @cached_property
    def judged(self) -> Study:
        """The study of the values whose scales count."""
        return self.study if self.modelled is None else self.modelled.of(self.study)

    @cached_property
    def kind(self) -> ScoreKind:
        return score_kind(self.study)

    @cached_property
    def cells(self) -> pd.DataFrame:
        return cell_table(self.study)

    @cached_property
    def scales(self) -> pd.DataFrame:
        return residual_scales(self.judged)

    @cached_property
    def tied(self) -> tuple[np.ndarray, np.ndarray]:
        return rules.tied_pairs(self.study, limit=self.kind.high if self.kind.kind == "capped" else float("inf"))

    @cached_property
    def fit(self) -> LmmFit:
        """The recommended model."""
        from lmemtest.bench.modelling.recommend import recommend
        from lmemtest.lmm.model import fit_lmm

        model = recommend(self.runs)
        return fit_lmm(model.formula, model.runs)


class Answer(NamedTuple):
    """What a check found: findings, or a sentence on what is fine or why it was left out."""

    findings: Sequence[Finding]
    text: str = ""
    skipped: bool = False
    result: Any = None


def _skipped(reason: str, result: Any = None) -> Answer:
    return Answer((), reason, True, result)


# ---------------------------------------------------------------------- rules


def _scores(subject: _Subject) -> Answer:
    runs, study = subject.runs, subject.study
    found = rules.non_finite(study) if runs.failed is None else []
    if runs.failed is not None or runs.failures is not None:
        found = [*failed_findings(study), *found]
    if found:
        found += failures_by_algorithm(runs, subject.alpha)
    return Answer(found, "Every score is a finite number.")


def _kind(subject: _Subject) -> Answer:
    return Answer(rules.kind_findings(subject.study, subject.kind), subject.kind.evidence)


def _names(subject: _Subject) -> Answer:
    return Answer(rules.similar_levels(subject.study), "No two names differ in case or blanks only.")


def _roles(subject: _Subject) -> Answer:
    found = [*rules.role_findings(subject.runs), *family_findings(subject.runs)]
    unused = listed(map(repr, subject.runs.unused), _NAMED)
    return Answer(found, "No column without a role structures the rows." + f" Not used: {unused}." * bool(unused))


def _coverage(subject: _Subject) -> Answer:
    runs, study = subject.runs, subject.study
    found = [*coverage.no_common_benchmark(study), *coverage.missing_cells(study)]
    found += [*coverage.unpaired_seeds(study), *coverage.missing_budgets(study)]
    if not found and not (runs.instance or runs.seed or runs.budget):
        return _skipped(
            "Left out: the table has no benchmark, seed or budget column, so there is nothing that an algorithm could "
            "lack."
        )
    named = [f"{role}s" for role in ("seed", "budget") if getattr(runs, role) is not None]
    return Answer(found, f"Every algorithm ran everywhere{', with the same ' * bool(named)}{' and '.join(named)}.")


def _duplicates(subject: _Subject) -> Answer:
    if subject.runs.seed is None:
        return _skipped(
            "Left out: the runs have no seed column, so a row that stands twice looks like a repeated run. Name it: "
            f"{advice('role', role='seed')}."
        )
    return Answer(rules.duplicates(subject.study), "There is one row per run and budget.")


def _copies(subject: _Subject) -> Answer:
    found = copied_runs(subject.runs)
    return Answer(copy_findings(found.table, subject.runs), found.findings[0], not found.judged, found)


def _constant(subject: _Subject) -> Answer:
    found = rules.constant_scores(subject.study, subject.kind)
    if not found and subject.kind.equal_by_nature:
        return _skipped(f"Left out: equal scores are no fault here. {subject.kind.evidence}")
    if not found and not (subject.cells["n"] > 1).any():
        return _skipped("Left out: no algorithm has two scores on a benchmark, so nothing says whether they vary.")
    return Answer(found, "No algorithm has one score throughout a benchmark.")


def _curves(subject: _Subject) -> Answer:
    found = broken_traces(subject.runs)
    return Answer(trace_findings(found, subject.study), found.findings[0], found.decision == "not judged", found)


def _ties(subject: _Subject) -> Answer:
    if subject.kind.equal_by_nature:
        return _skipped(f"Left out: equal scores are no fault here. {subject.kind.evidence}")
    return Answer(rules.ties(subject.study, *subject.tied), "Exact ties of algorithms are rare.")


def _scales(subject: _Subject) -> Answer:
    if subject.kind.kind in ("two-valued", "ranks"):
        return _skipped(f"Left out: such scores have one scale by nature. {subject.kind.evidence}")
    if len(subject.scales) < 2:
        return _skipped("Left out: there are no two benchmarks, so there are no scales to compare.")
    found = rules.scale_findings(subject.study, subject.judged, subject.kind, subject.scales, subject.modelled)
    return Answer(found, "No sign that benchmarks are on different scales.")


# ---------------------------------------------------------------------- tests, and rules for a fit


def _similar_algorithms(subject: _Subject) -> Answer:
    found = similar_algorithms(subject.runs, alpha=subject.alpha, model=subject.fit)
    return Answer(algorithm_findings(found.table, found.margin), found.findings[0], result=found)


def _bounds(subject: _Subject) -> Answer:
    """Floors and ceilings, as `fit.diagnose()` finds them."""
    from lmemtest.lmm.diagnostics.bounds import bounds
    from lmemtest.lmm.diagnostics.scores import rows_of

    found = bounds(subject.fit, rows_of(subject.fit))
    if found.table.empty:  # too few scores to judge
        return _skipped(found.advice, found)
    severity = found.severity if found.severity in ("note", "warning") else None
    notes = () if severity is None else (Finding(severity=severity, kind="bounds", message=found.advice, advice=""),)
    return Answer(notes, found.advice, result=found)


def _similar_benchmarks(subject: _Subject) -> Answer:
    found = similar_benchmarks(subject.runs, alpha=subject.alpha)
    return Answer(benchmark_findings(found.table), found.findings[0], found.smallest_p >= subject.alpha, found)


def _information(subject: _Subject) -> Answer:
    found = benchmark_information(subject.runs, alpha=subject.alpha)
    text = " ".join(found.sentences())
    if not found.uninformative and not found.untested:
        return Answer((), text, result=found)
    advice = "Keep it in a comparison over all benchmarks, where it counts as it should; it just decides nothing."
    note = Finding(
        severity="note",
        kind="benchmark_information",
        message=text,
        advice=advice if found.uninformative else "",
        count=len(found.uninformative) + len(found.untested),
    )
    return Answer((note,), result=found)


def _seeds(subject: _Subject) -> Answer:
    found = seed_effect(subject.runs, alpha=subject.alpha, rng=subject.rng)
    text = " ".join(found.sentences())
    advice = "Settle this before counting the seeds as independent repetitions."
    warning = Finding(severity="warning", kind="seed_effect", message=text, advice=advice, count=len(found.affected))
    return Answer((warning,) if found.affected else (), text, result=found)


def _budget(subject: _Subject) -> Answer:
    from lmemtest.bench.budget.budget_effect import budget_effect, fit_sentence, one_way

    found = budget_effect(subject.runs.study.detailed.runs, form=subject.form, alpha=subject.alpha)
    text, effect = found.sentences()[0], found.get("effect")
    if found.decision == "none" and found.fits and not (effect is not None and one_way(found, effect)):
        return Answer((), text, result=found)
    messages = [text, *([fit_sentence(found)] if found.decision != "none" and not found.fits else [])]
    notes = [Finding(severity="note", kind="budget_effect", message=message, advice="") for message in messages]
    return Answer(notes, result=found)


class Question(NamedTuple):
    """A check of the tree: what it asks, and the function that answers.

    An error of lmemtest means that the check does not apply to this table, and its message says why.
    """

    stage: str
    name: str
    question: str
    answer: Callable[[_Subject], Answer]
    test: bool = False  # at level alpha; else a rule
    fits: bool = False  # a model; else it reads the table only


# The order is that of the tree: a problem can cause those below it, so it is fixed first.
TREE = (
    Question("table", "scores", "Is every score a finite number?", _scores),
    Question("table", "roles", "Does every column that structures the rows have a role?", _roles),
    Question("table", "kind", "What kind of score is it?", _kind),
    Question("table", "names", "Is every level written in one way?", _names),
    Question(
        "table",
        "coverage",
        "Did every algorithm run everywhere, with the same seeds and budgets?",
        _coverage,
    ),
    Question("runs", "duplicates", "Is there one row per run and budget?", _duplicates),
    Question("runs", "copies", "Does a run occur under two names?", _copies),
    Question("runs", "constant", "Do scores vary between runs?", _constant),
    Question("runs", "curves", "Does a best-so-far curve get worse?", _curves),
    Question("algorithms", "ties", "Are scores of different algorithms exactly equal?", _ties),
    Question("algorithms", "similar algorithms", "Do algorithms perform alike?", _similar_algorithms, True, True),
    Question("benchmarks", "scales", "Are scores of all benchmarks on one scale?", _scales),
    Question("benchmarks", "bounds", "Do scores sit on a floor or ceiling?", _bounds, fits=True),
    Question(
        "benchmarks", "similar benchmarks", "Do benchmarks order the algorithms alike?", _similar_benchmarks, test=True
    ),
    Question("benchmarks", "information", "Does every benchmark tell the algorithms apart?", _information, test=True),
    Question("effects", "seeds", "Does the score of an algorithm depend on the seed?", _seeds, test=True),
    Question(
        "effects",
        "budget",
        "Does the score depend on the budget, and alike for all algorithms?",
        _budget,
        test=True,
        fits=True,
    ),
)
CHECKS = tuple(question.name for question in TREE)
RULES = tuple(question.name for question in TREE if not question.test and not question.fits)


@guided
@one_blas_thread()
def check(
    runs: Runs,
    *,
    checks: Sequence[str] | None = None,
    rules_only: bool = False,
    alpha: float = 0.05,
    form: str = "auto",
    rng: int | np.random.Generator | None = None,
    progress: Callable[[str], None] | None = None,
) -> RunsCheck:
    """Look for what can spoil a comparison, and say what to fix first.

    Parameters
    ----------
    runs : Runs
        Any table of runs; checks that it has no columns for are left out, with the reason. Of a lazy table only one
        row per algorithm, instance, seed and budget is collected.
    checks : sequence of str, optional
        Names of the checks to make; by default "scores", "roles", "kind", "names", "coverage", "duplicates", "copies",
        "constant", "curves", "ties", "similar algorithms", "scales", "bounds", "similar benchmarks", "information",
        "seeds" and "budget".
    rules_only : bool
        Leave out statistical tests and what needs a model; the rules take well under a second.
    alpha : float in (0, 0.5)
        Level of every statistical check by itself.
    form : {"auto", "linear", "log", "categorical", "spline"}
        How `budget_effect` takes the budget.
    rng : int, numpy.random.Generator or None
        For checks that simulate.
    progress : callable, optional
        Called with the name of each check before it is made, as ``print`` or a progress bar can be.

    Returns
    -------
    RunsCheck
        ``summary()`` is the tree, ``findings`` are all findings with advice, the worst first, ``to_fix`` says what to
        fix in which order, ``result["budget"].result`` is the result behind a check, ``cells`` a table per benchmark
        and algorithm.

    Raises
    ------
    ArgumentError
        If an option is out of its range or names no check.

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
    >>> found = lt.check(lt.datasets.load_hpo_runs().filter(prior="good"), rules_only=True)
    >>> [(outcome.check, outcome.severity) for outcome in found.outcomes][:3]
    [('scores', 'fine'), ('roles', 'note'), ('kind', 'fine')]
    """
    from lmemtest.bench.budget.budget_model import FORMS

    require_runs(runs, "lmemtest.check({})")
    alpha = check_fraction(alpha, "alpha")
    check_choice(form, "form", FORMS)
    check_callable(progress, "progress", "the name of each step")
    resolve_rng(rng)
    names = RULES if check_flag(rules_only, "rules_only") else CHECKS
    if checks is not None:
        names = check_names(checks, "checks")
        for name in names:
            check_choice(name, "checks", CHECKS)
        if not names:
            raise ArgumentError("checks is empty. Name some, such as ['scores', 'coverage'], or give None for all.")
    return _checked(_Subject(runs=runs, alpha=alpha, form=form, rng=rng, modelled=None), names, progress)


def check_rules(runs: Runs, modelled: Modelled | None = None) -> RunsCheck:
    """The rules alone, with the scales of what a model takes of the score, such as its logarithm."""
    return _checked(_Subject(runs=runs, alpha=0.05, form="auto", rng=None, modelled=modelled), RULES, None)


def _checked(subject: _Subject, names: Sequence[str], progress: Callable[[str], None] | None) -> RunsCheck:
    outcomes: list[CheckOutcome] = []
    met = subject.runs.study.crossing
    broken = bool((subject.study.points.n_bad > 0).any()) or (met is not None and met.none_meet)
    for question in TREE:
        if question.name not in names:
            continue
        if progress is not None:
            progress(f"checking {question.name}")
        if broken and question.name not in RULES:
            answer = _skipped("Left out: the scores have to be complete first.")
        else:
            try:
                answer = question.answer(subject)
            except LmemtestError as error:
                answer = _skipped(f"Left out: {error}")
        outcomes.append(
            CheckOutcome(
                stage=question.stage,
                check=question.name,
                question=question.question,
                findings=tuple(sorted(answer.findings, key=lambda found: SEVERITIES.index(found.severity))),
                text=answer.text,
                skipped=answer.skipped,
                level=subject.alpha if question.test else float("nan"),
                result=answer.result,
            )
        )
    equal, pairs = subject.tied
    return RunsCheck(
        outcomes=tuple(outcomes),
        overview=overview(subject.study),
        alpha=subject.alpha,
        kind=subject.kind,
        cells=subject.cells,
        scales=subject.scales,
        scale_ratio=scale_ratio(subject.scales["residual_sd"]),
        tied_share=float(equal.sum() / pairs.sum()) if pairs.sum() else 0.0,
        needs=_needs(subject),
    )


def _needs(subject: _Subject) -> tuple[str, ...]:
    """What the table lacks for the statistical checks, the most useful first."""
    runs, needs = subject.runs, []
    if runs.seed is None and runs.budget is not None:
        needs.append(f"a column that tells the runs apart, {advice('role', role='seed')}")
    elif not (subject.cells["seeds"] > 1 if runs.seed else subject.scales["df"] > 0).any():
        needs.append(f"repeated runs of each algorithm on each benchmark, {advice('role', role='seed')}")
    if len(subject.scales) < _BENCHMARKS:
        needs.append(f"three benchmarks or more, {advice('role', role='benchmark')}")
    if runs.budget is None:
        needs.append(f"scores at several budgets if the budget matters, {advice('role', role='budget')}")
    return tuple(needs)
