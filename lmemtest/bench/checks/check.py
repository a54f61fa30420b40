"""All checks of a table of runs as one tree, and what to fix first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmemtest.bench.checks import coverage, rules
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.copies import copied_runs, copy_findings
from lmemtest.bench.checks.failed import failed_findings, failures_by_algorithm
from lmemtest.bench.checks.families import family_findings
from lmemtest.bench.checks.findings import CheckOutcome, RunsCheck
from lmemtest.bench.checks.overview import cell_table, overview
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.bench.checks.similar import (
    algorithm_findings,
    benchmark_findings,
    similar_algorithms,
    similar_benchmarks,
)
from lmemtest.bench.checks.traces import broken_traces, trace_findings
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.data.scales import residual_scales, scale_ratio
from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_callable, check_choice, check_flag, check_fraction, check_names, resolve_rng
from lmemtest.core.verdicts import SEVERITIES, Finding
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from lmemtest.bench.data.runs import Runs
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
    modelled: tuple[str, Callable[[Any], Any]] | None  # a function of the score: scales are those of its values

    @cached_property
    def study(self) -> Study:
        return self.runs.study.detailed

    @cached_property
    def judged(self) -> Study:
        """The study of the values whose scales count."""
        return self.study if self.modelled is None else self.study.with_values(self.modelled[1])

    @cached_property
    def cells(self) -> pd.DataFrame:
        return cell_table(self.study)

    @cached_property
    def scales(self) -> pd.DataFrame:
        return residual_scales(self.judged)

    @cached_property
    def tied(self) -> tuple[np.ndarray, np.ndarray]:
        kind = self.study.kind
        return rules.tied_pairs(self.study, limit=kind.high if kind.kind == "capped" else float("inf"))

    @cached_property
    def fit(self) -> LmmFit:
        """The recommended model."""
        from lmemtest.bench.modelling.recommend import recommend
        from lmemtest.lmm.model import fit_lmm

        model = recommend(self.runs)
        return fit_lmm(model.formula, model.runs)


def _outcome(findings: Sequence[Finding], text: str = "", *, skipped: bool = False, result: Any = None) -> CheckOutcome:
    """What a check found: findings, the worst first, or a sentence on what is fine or why it was left out."""
    ordered = tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
    return CheckOutcome(findings=ordered, text=text, skipped=skipped, result=result)


def _left_out(reason: str) -> CheckOutcome:
    return _outcome((), f"Left out: {reason}", skipped=True)


# ---------------------------------------------------------------------- rules


def _scores(subject: _Subject) -> CheckOutcome:
    runs, study = subject.runs, subject.study
    found = rules.non_finite(study) if runs.failed is None else []
    if runs.failed is not None or runs.failures is not None:
        found = [*failed_findings(study), *found]
    if found:
        found += failures_by_algorithm(runs, subject.alpha)
    return _outcome(found, "Every score is a finite number.")


def _kind(subject: _Subject) -> CheckOutcome:
    return _outcome(rules.kind_findings(subject.study, subject.study.kind), subject.study.kind.evidence)


def _names(subject: _Subject) -> CheckOutcome:
    return _outcome(rules.similar_levels(subject.study), "No two names differ in case or blanks only.")


def _roles(subject: _Subject) -> CheckOutcome:
    found = [*rules.role_findings(subject.runs), *family_findings(subject.runs)]
    unused = listed(map(repr, subject.runs.unused), _NAMED)
    return _outcome(found, "No column without a role structures the rows." + f" Not used: {unused}." * bool(unused))


def _coverage(subject: _Subject) -> CheckOutcome:
    runs, study = subject.runs, subject.study
    found = [*coverage.no_common_benchmark(study), *coverage.missing_cells(study)]
    found += [*coverage.unpaired_seeds(study), *coverage.missing_budgets(study)]
    if not found and not (runs.instance or runs.seed or runs.budget):
        return _left_out(
            "the table has no benchmark, seed or budget column, so there is nothing that an algorithm could lack."
        )
    named = [f"{role}s" for role in ("seed", "budget") if getattr(runs, role) is not None]
    return _outcome(found, f"Every algorithm ran everywhere{', with the same ' * bool(named)}{' and '.join(named)}.")


def _duplicates(subject: _Subject) -> CheckOutcome:
    if subject.runs.seed is None:
        return _left_out(
            "the runs have no seed column, so a row that stands twice looks like a repeated run. Name it: "
            f"{advice('role', role='seed')}."
        )
    return _outcome(rules.duplicates(subject.study), "There is one row per run and budget.")


def _copies(subject: _Subject) -> CheckOutcome:
    found = copied_runs(subject.runs)
    return _outcome(copy_findings(found.table, subject.runs), found.findings[0], skipped=not found.judged, result=found)


def _constant(subject: _Subject) -> CheckOutcome:
    found = rules.constant_scores(subject.study, subject.study.kind)
    if not found and subject.study.kind.equal_by_nature:
        return _left_out(f"equal scores are no fault here. {subject.study.kind.evidence}")
    if not found and not (subject.cells["n"] > 1).any():
        return _left_out("no algorithm has two scores on a benchmark, so nothing says whether they vary.")
    return _outcome(found, "No algorithm has one score throughout a benchmark.")


def _curves(subject: _Subject) -> CheckOutcome:
    found = broken_traces(subject.runs)
    return _outcome(
        trace_findings(found, subject.study), found.findings[0], skipped=found.best_so_far is None, result=found
    )


def _ties(subject: _Subject) -> CheckOutcome:
    if subject.study.kind.equal_by_nature:
        return _left_out(f"equal scores are no fault here. {subject.study.kind.evidence}")
    return _outcome(rules.ties(subject.study, *subject.tied), "Exact ties of algorithms are rare.")


def _scales(subject: _Subject) -> CheckOutcome:
    if subject.study.kind.kind in ("two-valued", "ranks"):
        return _left_out(f"such scores have one scale by nature. {subject.study.kind.evidence}")
    if len(subject.scales) < 2:
        return _left_out("there are no two benchmarks, so there are no scales to compare.")
    found = rules.scale_findings(subject.study, subject.judged, subject.study.kind, subject.scales, subject.modelled)
    return _outcome(found, "No sign that benchmarks are on different scales.")


# ---------------------------------------------------------------------- tests, and rules for a fit


def _similar_algorithms(subject: _Subject) -> CheckOutcome:
    found = similar_algorithms(subject.runs, alpha=subject.alpha, model=subject.fit)
    return _outcome(algorithm_findings(found.table, found.margin), found.findings[0], result=found)


def _bounds(subject: _Subject) -> CheckOutcome:
    """Floors and ceilings, as `fit.diagnose()` finds them."""
    from lmemtest.lmm.diagnostics.scores import bounds, rows_of

    found = bounds(subject.fit, rows_of(subject.fit))
    if found.table.empty:  # too few scores to judge
        return _outcome((), found.advice, skipped=True, result=found)
    severity = found.severity if found.severity in ("note", "warning") else None
    notes = () if severity is None else (Finding(severity, "bounds", found.advice, ""),)
    return _outcome(notes, found.advice, result=found)


def _similar_benchmarks(subject: _Subject) -> CheckOutcome:
    found = similar_benchmarks(subject.runs, alpha=subject.alpha)
    return _outcome(
        benchmark_findings(found.table), found.findings[0], skipped=found.smallest_p >= subject.alpha, result=found
    )


def _information(subject: _Subject) -> CheckOutcome:
    found = benchmark_information(subject.runs, alpha=subject.alpha)
    text = " ".join(found.sentences())
    if not found.uninformative and not found.untested:
        return _outcome((), text, result=found)
    advice = "Keep these benchmarks in the overall comparison; they are uninformative on their own."
    note = Finding(
        "note",
        "benchmark_information",
        text,
        advice if found.uninformative else "",
        count=len(found.uninformative) + len(found.untested),
    )
    return _outcome((note,), result=found)


def _seeds(subject: _Subject) -> CheckOutcome:
    found = seed_effect(subject.runs, alpha=subject.alpha, rng=subject.rng)
    text = " ".join(found.sentences())
    advice = "Settle this before counting the seeds as independent repetitions."
    warning = Finding("warning", "seed_effect", text, advice, count=len(found.affected))
    return _outcome((warning,) if found.affected else (), text, result=found)


def _budget(subject: _Subject) -> CheckOutcome:
    from lmemtest.bench.budget.budget_effect import budget_effect, fit_sentence, one_way

    found = budget_effect(subject.runs.study.detailed.runs, form=subject.form, alpha=subject.alpha)
    text, effect = found.sentences()[0], found.effect
    if found.decision == "none" and found.fits and not (effect is not None and one_way(found, effect)):
        return _outcome((), text, result=found)
    messages = [text, *([fit_sentence(found)] if found.decision != "none" and not found.fits else [])]
    notes = [Finding("note", "budget_effect", message, "") for message in messages]
    return _outcome(notes, result=found)


# What each check is about, its name, what it asks, and the function that answers; an error of lmemtest means that it
# does not apply to this table, and the message says why. A problem can cause those below it, so it is fixed first.
TREE: tuple[tuple[str, str, str, Callable[[_Subject], CheckOutcome]], ...] = (
    ("table", "scores", "Is every score a finite number?", _scores),
    ("table", "roles", "Does every column that structures the rows have a role?", _roles),
    ("table", "kind", "What kind of score is it?", _kind),
    ("table", "names", "Is every level written in one way?", _names),
    ("table", "coverage", "Did every algorithm run everywhere, with the same seeds and budgets?", _coverage),
    ("runs", "duplicates", "Is there one row per run and budget?", _duplicates),
    ("runs", "copies", "Does a run occur under two names?", _copies),
    ("runs", "constant", "Do scores vary between runs?", _constant),
    ("runs", "curves", "Does a best-so-far curve get worse?", _curves),
    ("algorithms", "ties", "Are scores of different algorithms exactly equal?", _ties),
    ("algorithms", "similar algorithms", "Do algorithms perform alike?", _similar_algorithms),
    ("benchmarks", "scales", "Are scores of all benchmarks on one scale?", _scales),
    ("benchmarks", "bounds", "Do scores sit on a floor or ceiling?", _bounds),
    ("benchmarks", "similar benchmarks", "Do benchmarks order the algorithms alike?", _similar_benchmarks),
    ("benchmarks", "information", "Does every benchmark tell the algorithms apart?", _information),
    ("effects", "seeds", "Does the score of an algorithm depend on the seed?", _seeds),
    ("effects", "budget", "Does the score depend on the budget, and alike for all algorithms?", _budget),
)
CHECKS = tuple(name for _, name, _, _ in TREE)
TESTS = ("similar algorithms", "similar benchmarks", "information", "seeds", "budget")  # at level alpha
RULES = tuple(name for name in CHECKS if name not in (*TESTS, "bounds"))  # read the table only


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


def check_rules(
    runs: Runs, modelled: tuple[str, Callable[[Any], Any]] | None = None, *, names: Sequence[str] = RULES
) -> RunsCheck:
    """The rules alone, or some of them, with the scales of what a model takes of the score: a function and how it is
    written."""
    return _checked(_Subject(runs=runs, alpha=0.05, form="auto", rng=None, modelled=modelled), names, None)


def _checked(subject: _Subject, names: Sequence[str], progress: Callable[[str], None] | None) -> RunsCheck:
    outcomes: list[CheckOutcome] = []
    met = subject.runs.study.crossing
    broken = bool((subject.study.points.n_bad > 0).any()) or (met is not None and met.none_meet)
    for stage, name, question, answer in TREE:
        if name not in names:
            continue
        if progress is not None:
            progress(f"checking {name}")
        if broken and name not in RULES:
            outcome = _left_out("the scores have to be complete first.")
        else:
            try:
                outcome = answer(subject)
            except LmemtestError as error:
                outcome = _left_out(str(error))
        level = subject.alpha if name in TESTS else float("nan")
        outcomes.append(replace(outcome, stage=stage, check=name, question=question, level=level))
    equal, pairs = subject.tied
    return RunsCheck(
        outcomes=tuple(outcomes),
        overview=overview(subject.study),
        alpha=subject.alpha,
        kind=subject.study.kind,
        cells=subject.cells,
        scales=subject.scales,
        scale_ratio=scale_ratio(subject.scales["residual_sd"].to_numpy()),
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
