"""All checks of a table of runs as one tree, and what to fix first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmemtest.bench.checks import copies, coverage, rules, traces
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.findings import CheckOutcome, RunsCheck
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.bench.checks.similar import algorithm_findings, benchmark_findings, similar_algorithms, similar_benchmarks
from lmemtest.bench.checks.subject import Subject, left_out, outcome, overview
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.data.scales import scale_ratio
from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_callable, check_choice, check_flag, check_fraction, check_names, resolve_rng
from lmemtest.core.verdicts import Finding
from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    import numpy as np

    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.formula.bars import ParsedFormula

# Findings about rows at different budgets: one score per run is over the same ones.
_SETTLED = ("single_trials", "irregular_budgets")
_BENCHMARKS = 3  # with fewer, nothing sets a benchmark apart from the others


# ---------------------------------------------------------------------- tests, and rules for a fit


def _similar_algorithms(subject: Subject) -> CheckOutcome:
    found = similar_algorithms(subject.runs, alpha=subject.alpha, model=subject.fit)
    return outcome(algorithm_findings(found.table, found.margin), found.findings[0], result=found)


def _bounds(subject: Subject) -> CheckOutcome:
    """Floors and ceilings, as `fit.diagnose()` finds them."""
    from lmemtest.lmm.diagnostics.scores import bounds, rows_of

    found = bounds(subject.fit, rows_of(subject.fit))
    if found.table.empty:  # too few scores to judge
        return outcome((), found.advice, skipped=True, result=found)
    severity = found.severity if found.severity in ("note", "warning") else None
    notes = () if severity is None else (Finding(severity, "bounds", found.advice, ""),)
    return outcome(notes, found.advice, result=found)


def _similar_benchmarks(subject: Subject) -> CheckOutcome:
    found = similar_benchmarks(subject.runs, alpha=subject.alpha)
    return outcome(
        benchmark_findings(found.table), found.findings[0], skipped=found.smallest_p >= subject.alpha, result=found
    )


def _information(subject: Subject) -> CheckOutcome:
    found = benchmark_information(subject.runs, alpha=subject.alpha)
    text = " ".join(found.sentences())
    if not found.uninformative and not found.untested:
        return outcome((), text, result=found)
    advice = "Keep these benchmarks in the overall comparison; they are uninformative on their own."
    note = Finding(
        "note",
        "benchmark_information",
        text,
        advice if found.uninformative else "",
        count=len(found.uninformative) + len(found.untested),
    )
    return outcome((note,), result=found)


def _seeds(subject: Subject) -> CheckOutcome:
    found = seed_effect(subject.runs, alpha=subject.alpha, rng=subject.rng)
    text = " ".join(found.sentences())
    advice = "Settle this before counting the seeds as independent repetitions."
    warning = Finding("warning", "seed_effect", text, advice, count=len(found.affected))
    return outcome((warning,) if found.affected else (), text, result=found)


def _budget(subject: Subject) -> CheckOutcome:
    from lmemtest.bench.budget.budget_effect import budget_effect, fit_sentence, one_way

    found = budget_effect(subject.runs.study.detailed.runs, form=subject.form, alpha=subject.alpha)
    text, effect = found.sentences()[0], found.effect
    if found.decision == "none" and found.fits and not (effect is not None and one_way(found, effect)):
        return outcome((), text, result=found)
    messages = [text, *([fit_sentence(found)] if found.decision != "none" and not found.fits else [])]
    notes = [Finding("note", "budget_effect", message, "") for message in messages]
    return outcome(notes, result=found)


# What each check is about, its name, what it asks, and the function that answers; an error of lmemtest means that it
# does not apply to this table, and the message says why. A problem can cause those below it, so it is fixed first.
TREE: tuple[tuple[str, str, str, Callable[[Subject], CheckOutcome]], ...] = (
    ("table", "scores", "Is every score a finite number?", rules.judge_scores),
    ("table", "roles", "Does every column that structures the rows have a role?", rules.judge_roles),
    ("table", "kind", "What kind of score is it?", rules.judge_kind),
    ("table", "names", "Is every level written in one way?", rules.judge_names),
    (
        "table",
        "coverage",
        "Did every algorithm run everywhere, with the same seeds and budgets?",
        coverage.judge_coverage,
    ),
    ("runs", "duplicates", "Is there one row per run and budget?", rules.judge_duplicates),
    ("runs", "copies", "Does a run occur under two names?", copies.judge_copies),
    ("runs", "constant", "Do scores vary between runs?", rules.judge_constant),
    ("runs", "curves", "Does a best-so-far curve get worse?", traces.judge_curves),
    ("algorithms", "ties", "Are scores of different algorithms exactly equal?", rules.judge_ties),
    ("algorithms", "similar algorithms", "Do algorithms perform alike?", _similar_algorithms),
    ("benchmarks", "scales", "Are scores of all benchmarks on one scale?", rules.judge_scales),
    ("benchmarks", "bounds", "Do scores sit on a floor or ceiling?", _bounds),
    ("benchmarks", "similar benchmarks", "Do benchmarks order the algorithms alike?", _similar_benchmarks),
    ("benchmarks", "information", "Does every benchmark distinguish the algorithms?", _information),
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
    return _checked(Subject(runs=runs, alpha=alpha, form=form, rng=rng, modelled=None), names, progress)


def check_rules(
    runs: Runs,
    parsed: ParsedFormula | None = None,
    *,
    dispersion: str | None = None,
    names: Sequence[str] = RULES,
) -> RunsCheck:
    """The rules alone, or some of them, for a model of one's own: with the scales of what its formula takes of the
    score, the columns that it uses, and that of its residual variances."""
    modelled = None
    if parsed is not None and parsed.response_function is not None and parsed.response_transform is not None:
        modelled = f"{parsed.response_function}({parsed.response})", parsed.response_transform
    used = {*(() if parsed is None else parsed.columns), *(() if dispersion is None else (dispersion,))}
    model: dict[str, Any] = {"modelled": modelled, "known": tuple(sorted(used)), "dispersion": dispersion}
    subject = Subject(runs=runs, alpha=0.05, form="auto", rng=None, **model)
    return _checked(subject, names, None)


def refuse_unnamed(findings: Iterable[Finding]) -> None:
    """No winner is named while columns that structure the rows have no role: the rows would pass for independent.

    The error holds the whole call or command that gives the guessed roles.
    """
    for finding in findings:
        if finding.kind == "unnamed_columns":
            raise ArgumentError(f"{finding.message} {finding.advice}")


def of_reduced(table: RunsCheck, runs: Runs, dispersion: str | None = None) -> RunsCheck:
    """The rules of a table whose curves were reduced to these runs, by which what concerns scales is judged.

    What a mean over rows would do is settled, so it is not found again.
    """
    of_runs, outcomes = check_rules(runs, dispersion=dispersion, names=("scales",)), list[CheckOutcome]()
    for found in table.outcomes:
        found = of_runs["scales"] if found.check == "scales" else found
        kept = tuple(finding for finding in found.findings if finding.kind not in _SETTLED)
        outcomes.append(replace(found, findings=kept))
    return replace(table, outcomes=tuple(outcomes), scales=of_runs.scales, scale_ratio=of_runs.scale_ratio)


def _checked(subject: Subject, names: Sequence[str], progress: Callable[[str], None] | None) -> RunsCheck:
    outcomes: list[CheckOutcome] = []
    met = subject.runs.study.crossing
    broken = bool((subject.study.points.n_bad > 0).any()) or (met is not None and met.none_meet)
    for stage, name, question, answer in TREE:
        if name not in names:
            continue
        if progress is not None:
            progress(f"checking {name}")
        if broken and name not in RULES:
            found = left_out("the scores have to be complete first.")
        else:
            try:
                found = answer(subject)
            except LmemtestError as error:
                found = left_out(str(error))
        level = subject.alpha if name in TESTS else float("nan")
        outcomes.append(replace(found, stage=stage, check=name, question=question, level=level))
    equal, pairs = subject.tied
    return RunsCheck(
        outcomes=tuple(outcomes),
        overview=overview(subject),
        alpha=subject.alpha,
        kind=subject.study.kind,
        cells=subject.cells,
        scales=subject.scales,
        scale_ratio=scale_ratio(subject.spread),
        tied_share=float(equal.sum() / pairs.sum()) if pairs.sum() else 0.0,
        needs=_needs(subject),
    )


def _needs(subject: Subject) -> tuple[str, ...]:
    """What the table lacks for the statistical checks, the most useful first."""
    runs, needs = subject.runs, []
    if runs.seed is None and runs.budget is not None:
        needs.append(f"a column that distinguishes the runs, {advice('role', role='seed')}")
    elif not (subject.cells["seeds"] > 1 if runs.seed else subject.scales["df"] > 0).any():
        needs.append(f"repeated runs of each algorithm on each benchmark, {advice('role', role='seed')}")
    if len(subject.scales) < _BENCHMARKS:
        needs.append(f"three benchmarks or more, {advice('role', role='benchmark')}")
    if runs.budget is None:
        needs.append(f"scores at several budgets if the budget matters, {advice('role', role='budget')}")
    return tuple(needs)
