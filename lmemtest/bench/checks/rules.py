"""Rules for a table of runs: what can spoil a comparison and is no question of chance, each with a next step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.checks.failed_runs import failed_findings, failures_by_algorithm
from lmemtest.bench.checks.families import family_findings
from lmemtest.bench.checks.findings import CheckOutcome, on, per_cell
from lmemtest.bench.checks.subject import Subject, left_out, outcome
from lmemtest.bench.data.column import direction_of, role_of
from lmemtest.bench.data.failures import columns_of_failures
from lmemtest.bench.data.roles import Unnamed, call_of, options_of, unnamed_columns, with_roles
from lmemtest.bench.data.scales import SCALE_RATIO, ScoreKind, effect_scales, looks_like, remedy_text, scale_ratio
from lmemtest.core.caller import advice
from lmemtest.core.rounding import written
from lmemtest.core.sanitize import one_line
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import format_number, listed
from lmemtest.lmm.cells import of_failures
from lmemtest.lmm.hypotheses.variance_tests import bartlett

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.data.study import Study

TIED_SHARE = 0.1  # fewer exactly equal scores are no cause for a look
CHANCE = 0.05  # scales that differ by more than this chance, where few scores tell them
_NAMED = 4
_FEWEST = 20  # scores of an algorithm, from which on the same answer everywhere is worth a look
_FRACTION_FROM, _PERCENT_FROM = 0.1, 5.0  # medians of shares of right answers in fractions and in per cent


# ---------------------------------------------------------------------- roles of columns


def role_findings(runs: Runs, known: Iterable[str] = ()) -> list[Finding]:
    """Columns without a role that structure the rows, and a direction that contradicts the name of the score.

    `known` are columns that a model uses.
    """
    return [*_unnamed(runs, known), *_ignored(runs), *_direction(runs)]


def _unnamed(runs: Runs, known: Iterable[str]) -> list[Finding]:
    columns = unnamed_columns(runs, known=known)
    if not columns:
        return []
    several = len(columns) > 1
    message = (
        f"The column{'s' * several} {' and '.join(column.in_words() for column in columns)} "
        f"{'have' if several else 'has'} no role, but rows that are alike in all named columns differ there: they "
        "would count as independent, and chance would pass for differences between algorithms."
    )
    return [Finding("warning", "unnamed_columns", message, _advice(runs, columns), count=len(columns))]


def _advice(runs: Runs, columns: tuple[Unnamed, ...]) -> str:
    """The whole call or command with the guessed roles, and how to leave columns out on purpose."""
    names = [column.name for column in columns]
    roles = advice(
        "roles",
        call=call_of(with_roles(runs, columns)),
        names=names,
        command=options_of(columns),
        ignored=[part for name in names for part in ("--ignore", name)],
    )
    choice = [column.name for column in columns if role_of(column.name) == "choice"]
    return roles + (f" To look at one value of it: {advice('one_value', column=choice[0])}." if choice else "")


def _ignored(runs: Runs) -> list[Finding]:
    """Columns that structure the rows and were left out on purpose: nothing to mend, but worth a note."""
    columns = unnamed_columns(runs, ignored=True) if runs.ignore else ()
    if not columns:
        return []
    several = len(columns) > 1
    what = [f"{column.name!r} ({column.n_values:,} values)" for column in columns]
    message = (
        f"The column{'s' * several} {' and '.join(what)} {'were' if several else 'was'} left out on purpose: rows that "
        "share a value there count as independent."
    )
    advice = "If they are not, the p-values are too small: give the column a role, or average over it first."
    return [Finding("note", "ignored_columns", message, advice, count=len(columns))]


def _direction(runs: Runs) -> list[Finding]:
    usual = direction_of(runs.score)
    if usual is None or usual == runs.direction or runs.scale is not None:  # `normalize` knows the direction
        return []
    end = "high" if usual == "maximize" else "low"
    return [
        Finding(
            severity="note",
            kind="direction",
            count=runs.n_rows,
            message=f"The score is called {runs.score!r}, and the direction is {runs.direction!r}; by its name a {end} "
            "score is good.",
            advice=f"If so here, every decision is reversed: give {advice('value', name='direction', value=usual)}.",
        )
    ]


# ---------------------------------------------------------------------- scores and rows


def non_finite(study: Study) -> list[Finding]:
    points = study.points
    bad = np.bincount(study.code("cell"), weights=points.n - points.valid, minlength=study.n_cells)
    rows = np.bincount(study.code("cell"), weights=points.n, minlength=study.n_cells)
    worst = "largest" if study.runs.direction == "minimize" else "smallest"
    if not bad.any():
        return []
    failed = next(iter(columns_of_failures(study.runs)), "nonfinite")
    remedy = (
        f"If these runs failed, give them the worst possible score (the {worst} one), because a failure is a "
        f"result{of_failures(failed)}; drop them with {advice('drop_missing')} only if failing has nothing to do with "
        "the algorithm."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        total = int(rows[cell])
        share = f"{count:,} of {total:,} score{'s' * (total > 1)} of {algorithm}{where}"
        return f"{share} {'is' if count == 1 else 'are'} missing or infinite, so no model can be fitted.", remedy

    return per_cell(study.places, bad, "error", "non_finite", say)


def similar_levels(study: Study) -> list[Finding]:
    """Levels that differ in case, blanks or characters that cannot be seen only: nearly always one level, misspelt."""
    found = []
    for column, levels in (
        (study.runs.algorithm, study.names("algorithm")),
        (study.runs.benchmark, study.names("benchmark")),
    ):
        groups: dict[str, list[str]] = {}
        for level in levels:
            groups.setdefault(" ".join(one_line(level).split()).casefold(), []).append(str(level))
        for alike in groups.values():
            if len(alike) > 1:
                message = f"The column {column!r} holds {' and '.join(map(repr, alike))}, which count as different."
                advice = "If they are the same, write them in the same way."
                found.append(Finding("warning", "similar_levels", message, advice, count=len(alike)))
    return found


def duplicates(study: Study) -> list[Finding]:
    """Rows beyond the first of a run at a budget: copies, with equal scores, and reruns, with others."""
    points = study.points
    if study.runs.seed is None or _told_apart(study.runs):  # they are repetitions
        return []
    extra = points.n - 1
    differ = points.low < points.high
    names = (study.runs.algorithm, *study.runs.instance, study.runs.seed, study.runs.budget)
    key = listed([str(name) for name in names if name is not None])
    forgotten = "a metafeature" if study.runs.budget else "a budget, a metafeature"
    repeats = (
        f"Perhaps a column that distinguishes them ({forgotten}) was not named: name it. If they are true repetitions, "
        "give each its own seed."
    )

    def copy(_: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        rows = f"{count:,} row{'s' * (count > 1)} of {algorithm}{where} {'is a copy' if count == 1 else 'are copies'}"
        remedy = f"Copies make the result look more certain than it is: drop them with {advice('drop_duplicates')}."
        return f"{rows} of another: {key} and score are the same.", remedy

    def rerun(_: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        rows = f"{count:,} row{'s' * (count > 1)} of {algorithm}{where} repeat{'s' * (count == 1)} another"
        return f"{rows} with a different score: {key} are the same.", repeats

    found = []
    for kind, rows, say in (("duplicates", extra * ~differ, copy), ("reruns", extra * differ, rerun)):
        counts = np.bincount(study.code("cell"), weights=rows, minlength=study.n_cells)
        found += per_cell(study.places, counts, "warning", kind, say)
    return found


def _told_apart(runs: Runs) -> bool:
    """Whether columns that were left out on purpose, such as the number of an attempt, tell rows of one run apart."""
    columns = [column.name for column in unnamed_columns(runs, ignored=True)] if runs.ignore else []
    return bool(columns) and not runs.is_lazy and runs.study.count(*runs.study.columns, *columns) == runs.n_rows


def constant_scores(study: Study, kind: ScoreKind) -> list[Finding]:
    """Benchmarks and algorithms with one score throughout; none where that is what the score brings."""
    if kind.kind == "two-valued":
        return one_answer(study)
    if kind.equal_by_nature:
        return []
    low, high = study.score_range("cell")
    n = np.bincount(study.code("cell"), weights=study.points.valid, minlength=study.n_cells)
    limit = kind.high if kind.kind == "capped" else np.inf  # what ends at a limit is a finding of its own
    found, single = [], np.where((low == high) & (low < limit) & (n > 1), n, 0)
    shape = (len(study.names("benchmark")), len(study.names("algorithm")))
    lowest, highest = low.reshape(shape).min(axis=1), high.reshape(shape).max(axis=1)
    total = n.reshape(shape).sum(axis=1).astype(int)
    for i in np.flatnonzero((lowest == highest) & (lowest < limit) & (total > 1)):
        benchmark = study.names("benchmark")[i]
        message = (
            f"All scores{on(benchmark)} are {format_number(lowest[i])}, in {total[i]:,} rows and for every algorithm."
        )
        advice = (
            "Check the score column. If the scores are right, keep the benchmark: it says that the algorithms are "
            "equal there, and without it their mean differences would be overstated."
        )
        found.append(Finding("warning", "constant_scores", message, advice, benchmark=benchmark, count=int(total[i])))
        single.reshape(shape)[i] = 0

    advice = (
        "Check for a cap, a default value, or a seed that is not used: without any spread between seeds this "
        "algorithm looks more certain than it is."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        return f"All {count:,} scores of {algorithm}{where} are {format_number(low[cell])}.", advice

    return found + per_cell(study.places, single, "warning", "constant_scores", say)


def scale_findings(
    study: Study,
    judged: Study,
    kind: ScoreKind,
    scales: pd.DataFrame,
    modelled: tuple[str, object] | None,
    *,
    allowed: bool = False,
) -> list[Finding]:
    """Whether scores, or the values `judged` of a function of them, are on other scales on other benchmarks.

    0 or 1 and ranks have one scale by nature. `allowed`: the model gives each benchmark a residual variance.
    """
    if kind.kind in ("two-valued", "ranks") or unlike_units(study):
        return []
    what = "Scores" if modelled is None else f"Values of {modelled[0]}"
    if (scales["df"] > 0).sum() > 1:
        spread = scales["residual_sd"]
        ratio = scale_ratio(spread.to_numpy())
        message = f"{what} scatter {format_number(ratio, 3)} times as much between seeds on {{}} as on {{}}, " + (
            "for which the model gives each benchmark a variance of its own; advantages have one."
            if allowed
            else "so the noisiest benchmarks would decide the comparison."
        )
    else:  # nothing was repeated: whether the differences between algorithms are on other scales, beyond chance
        scales = effect_scales(judged)
        scales = scales[scales["sd"] > 0]
        spread, df = scales["sd"], scales["df"].to_numpy()
        ratio = scale_ratio(spread.to_numpy())
        allowed = False  # differences between algorithms, of which no residual variance tells
        if not (ratio > SCALE_RATIO and bartlett(df * spread.to_numpy() ** 2, df) < CHANCE):
            return []
        message = (
            f"{what} of different algorithms lie {format_number(ratio, 3)} times as far apart on {{}} as on {{}}, so "
            f"the benchmarks with the largest differences would decide the comparison (no run was repeated, so there "
            f"is no scatter between seeds to judge by)."
        )
    if not ratio > SCALE_RATIO:
        return []
    sd = spread.where(spread > 0)
    large, small = sd.idxmax(), sd.idxmin()
    ends = [f"{str(study.names('benchmark')[i])!r} ({format_number(sd[i], 3)})" for i in (large, small)]
    found = [(method, after) for method, after in study.remedies if after < ratio]
    return [
        Finding(
            "note" if allowed else "warning",
            "score_scale",
            message.format(*ends),
            remedy_text(tuple(found), ratio, study.runs.benchmark),
            benchmark=study.names("benchmark")[large],
            count=int((sd > SCALE_RATIO * sd.min()).sum()),
        )
    ]


def ties(study: Study, equal: np.ndarray, pairs: np.ndarray) -> list[Finding]:
    points = study.points
    rows = np.bincount(study.code("benchmark"), weights=points.valid, minlength=len(equal))
    same = listed(["seed"] * bool(study.runs.seed) + ["budget"] * bool(study.runs.budget)).replace(", ", " and ")
    usual = (
        "if algorithms share their first steps or reach the same optimum"
        if study.runs.budget
        else ("if the score has few possible values, such as an accuracy on a small test set")
    )
    found = []
    share = equal / np.maximum(pairs, 1)
    for i in sorted(np.flatnonzero(share >= TIED_SHARE), key=lambda i: -share[i]):
        here = study.code("benchmark") == i
        values = points.mean[here & (points.valid > 0)]
        benchmark = study.names("benchmark")[i]
        finding = Finding(
            severity="note",
            kind="ties",
            benchmark=benchmark,
            count=int(equal[i]),
            message=f"{written(100 * share[i], '.0f')} % of the comparisons of two algorithms{on(benchmark)}"
            f"{f' at the same {same}' if same else ''} are exact ties ({len(pd.unique(values)):,} different "
            f"value{'s' * (len(pd.unique(values)) > 1)} in {int(rows[i]):,} scores).",
            advice=f"Fine {usual}; otherwise look for a cap or rounding, and prefer a finer score.",
        )
        found.append(finding)
    return found


# ---------------------------------------------------------------------- what the kind of score asks to know


def kind_findings(study: Study, kind: ScoreKind) -> list[Finding]:
    """What the kind of score, which is that of this study, asks to know."""
    found = [*_folds(study), *_mixed_units(study)]
    if kind.kind == "two-valued":
        found.append(_proportions(study, kind))
    if kind.kind == "capped":
        found.append(_penalised(kind) if kind.penalised else _censored(study, kind))
    return found


def _proportions(study: Study, kind: ScoreKind) -> Finding:
    unit = study.runs.benchmark
    paired = f", paired by {unit!r}" if unit else ", not paired, for no column says which scores belong together"
    next_step = (
        f"Keep every {unit!r}, also those on which all algorithms agree: without them the difference changes."
        if unit
        else "Name the column of the items (questions, tasks) as the benchmark, if all algorithms met the same ones."
    )
    if (kind.low, kind.high) == (0.0, 1.0):
        call = advice("answers_of_tasks", model=study.runs.algorithm, score=study.runs.score)
        next_step += f" Answers to items of tasks: {call}."
    high = "1" if kind.high == 1 else format_number(kind.high)
    what = "proportions" if (kind.low, kind.high) == (0.0, 1.0) else f"proportions of {high}"
    return Finding(
        "note",
        "two_values",
        f"{kind.evidence} A difference of means is a difference of {what}{paired}.",
        next_step,
        count=int(study.points.valid.sum()),
    )


def one_answer(study: Study) -> list[Finding]:
    """Algorithms whose answers are all alike, as where none of the outputs could be read."""
    size = len(study.names("algorithm"))
    n = np.bincount(study.code("algorithm"), weights=study.points.valid, minlength=size)
    low, high = study.score_range("algorithm")
    return [
        Finding(
            severity="warning",
            kind="constant_scores",
            algorithm=study.names("algorithm")[i],
            count=int(n[i]),
            message=f"All {int(n[i]):,} scores of {str(study.names('algorithm')[i])!r} are {low[i]:g}.",
            advice="Look at some of its outputs: were they read as they were meant?",
        )
        for i in np.flatnonzero((low == high) & (n >= _FEWEST))
    ]


def _shares(kind: ScoreKind) -> str:
    named = [f"{algorithm} {written(100 * share, '.3g')} %" for algorithm, _, share in kind.capped[:_NAMED]]
    rest = [share for _, _, share in kind.capped[_NAMED:]]
    return ", ".join([*named, *([f"{len(rest)} others at most {written(100 * rest[0], '.3g')} %"] if rest else [])])


def _censored(study: Study, kind: ScoreKind) -> Finding:
    """Scores at a limit: what their mean is, and what is done about it in the field."""
    limit = format_number(kind.high)
    score = study.runs.score
    larger = kind.times(10.0, kind.high)
    par2, par10 = written(kind.times(2.0, kind.high), ",.6g"), written(larger, ",.6g")
    write = advice("out_of_range", score=score, limit=kind.high, larger=larger)
    return Finding(
        severity="warning",
        kind="capped_scores",
        count=sum(rows for _, rows, _ in kind.capped),
        message=f"{kind.evidence} By algorithm: {_shares(kind)}. If {limit} is a limit, as of a timeout, these scores "
        "are censored: the true ones are larger by an unknown amount, so means are lower bounds, and flatter the "
        "algorithms that met the limit most often.",
        advice=f"Decide what a run at the limit costs before comparing. PAR2 and PAR10, the penalties in use for "
        f"solvers, write {par2} or {par10} for {limit}, {write}; report the share of runs below the limit beside the "
        "mean, and see whether the order stands for both penalties.",
    )


def _penalised(kind: ScoreKind) -> Finding:
    count = sum(rows for _, rows, _ in kind.capped)
    return Finding(
        severity="note",
        kind="penalised_scores",
        count=count,
        message=f"{kind.evidence} By algorithm: {_shares(kind)}. The next score is {format_number(kind.below)}, so "
        "this looks like a penalty for runs that failed or ran out of time, as in PAR10: means are those of penalised "
        "scores.",
        advice="Report the share of such runs beside the mean, and see whether the order stands with another penalty.",
    )


def unlike_units(study: Study) -> tuple[list[object], list[object]] | None:
    """Benchmarks whose shares of right answers are fractions, and those where they are percentages; None if all agree.

    Only where the score is called an accuracy or the like: errors of 0.3 may be fractions and per cent alike.
    """
    points = study.points
    if study.runs.benchmark is None or not looks_like(study.runs.score, "share"):
        return None
    good = points.valid > 0
    if not good.any() or points.low[good].min() < 0 or points.high[good].max() > 100:
        return None
    benchmark = study.code("benchmark")[good]
    fractions, percentages = [], []
    for i in np.unique(benchmark):
        here = benchmark == i
        median, highest = float(np.median(points.mean[good][here])), float(points.high[good][here].max())
        if highest <= 1 and median >= _FRACTION_FROM:
            fractions.append(study.names("benchmark")[i])
        elif highest > 1 and median >= _PERCENT_FROM:
            percentages.append(study.names("benchmark")[i])
        else:
            return None
    return (fractions, percentages) if fractions and percentages else None


def _mixed_units(study: Study) -> list[Finding]:
    units = unlike_units(study)
    if units is None:
        return []
    fractions, percentages = (listed([repr(str(name)) for name in names], most=3) for names in units)
    finding = Finding(
        severity="warning",
        kind="mixed_units",
        count=min(map(len, units)),
        message=f"{study.runs.score!r} is a fraction on {fractions} (at most 1) and a percentage on {percentages}.",
        advice="Write all scores in one unit: multiply the fractions by 100.",
    )
    return [finding]


def _folds(study: Study) -> list[Finding]:
    """Folds and splits of one data set, which share training data."""
    runs = study.runs
    if not looks_like(runs.seed, "fold"):
        return []
    folds, several = len(study.names("seed")), len(study.names("benchmark")) > 1
    message = (
        f"{runs.seed!r} looks like the folds or splits of a data set, {folds:,} in number. Their training sets "
        "overlap, so their scores are not independent runs"
    )
    if several:
        message += (
            "; what those of one data set have in common is taken up by the term (1 | benchmark:algorithm) of the "
            "recommended model, so that the comparison rests on the number of data sets."
        )
        advice = (
            "Nothing has to be done for a comparison over data sets. Do not test algorithms on a single data set by "
            "its folds as if they were independent (Nadeau & Bengio 2003; Bouckaert & Frank 2004)."
        )
    else:
        message += (
            ", and with one data set nothing in the table shows how much they share. Tests are too optimistic: "
            "somewhat for the folds of one cross-validation, badly for random or repeated splits (15 % of false "
            "findings instead of 5 % for ten splits that test on a tenth; Nadeau & Bengio 2003)."
        )
        advice = "Add more data sets, named as the benchmark, or use the corrected resampled t-test of that paper."
    return [Finding("note" if several else "warning", "folds", message, advice, count=folds)]


# ---------------------------------------------------------------------- what becomes of them: the rules of the tree


def judge_scores(subject: Subject) -> CheckOutcome:
    runs, study = subject.runs, subject.study
    found = non_finite(study) if runs.failed is None else []
    if runs.failed is not None or runs.failures is not None:
        found = [*failed_findings(study), *found]
    if found:
        found += failures_by_algorithm(runs, subject.alpha)
    return outcome(found, "Every score is a finite number.")


def judge_kind(subject: Subject) -> CheckOutcome:
    return outcome(kind_findings(subject.study, subject.study.kind), subject.study.kind.evidence)


def judge_names(subject: Subject) -> CheckOutcome:
    return outcome(similar_levels(subject.study), "No two names differ in case or blanks only.")


def judge_roles(subject: Subject) -> CheckOutcome:
    found = [*role_findings(subject.runs, subject.known), *family_findings(subject.runs)]
    unused = listed(map(repr, subject.runs.unused), _NAMED)
    return outcome(found, "No column without a role structures the rows." + f" Not used: {unused}." * bool(unused))


def judge_duplicates(subject: Subject) -> CheckOutcome:
    if subject.runs.seed is None:
        return left_out(
            "the runs have no seed column, so a row that stands twice looks like a repeated run. Name it: "
            f"{advice('role', role='seed')}."
        )
    return outcome(duplicates(subject.study), "There is one row per run and budget.")


def judge_constant(subject: Subject) -> CheckOutcome:
    found = constant_scores(subject.study, subject.study.kind)
    if not found and subject.study.kind.equal_by_nature:
        return left_out(f"equal scores are no fault here. {subject.study.kind.evidence}")
    if not found and not (subject.cells["n"] > 1).any():
        return left_out("no algorithm has two scores on a benchmark, so nothing says whether they vary.")
    return outcome(found, "No algorithm has one score throughout a benchmark.")


def judge_ties(subject: Subject) -> CheckOutcome:
    if subject.study.kind.equal_by_nature:
        return left_out(f"equal scores are no fault here. {subject.study.kind.evidence}")
    return outcome(ties(subject.study, *subject.tied), "Exact ties of algorithms are rare.")


def judge_scales(subject: Subject) -> CheckOutcome:
    if subject.study.kind.kind in ("two-valued", "ranks"):
        return left_out(f"such scores have one scale by nature. {subject.study.kind.evidence}")
    if len(subject.scales) < 2:
        return left_out("there are no two benchmarks, so there are no scales to compare.")
    allowed = subject.dispersion is not None and subject.dispersion == subject.study.runs.benchmark
    scales = subject.study.kind, subject.scales, subject.modelled
    found = scale_findings(subject.study, subject.judged, *scales, allowed=allowed)
    return outcome(found, "No sign that benchmarks are on different scales.")
