"""Failed runs: which rows failed, how many of whom, and what a failed run counts.

It counts the worst score of its benchmark, that of a baseline, a value, or nothing.

A row fails by a column of its own or by its score ("missing", "nonfinite"). A column of text says in which way, and
each kind of failure may count something else: a job that was killed is no wrong answer. The score of a failed row is
no score: it is masked when the table gets its roles, so that every count of scores that are not there counts it. Scores
of policies are expressions over groups that the table's own engine evaluates, so lazy tables stay lazy.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from lmemtest.bench.data.column import is_text, number_in
from lmemtest.core.caller import advice, named
from lmemtest.core.codes import missing_values_error
from lmemtest.core.frames import check_numeric, collected, example_value, supported
from lmemtest.core.rounding import written
from lmemtest.core.validate import among, check_number, free_name, is_number
from lmemtest.core.words import counted, format_level, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

WORDS = ("missing", "nonfinite")
WELL = ("", "ok", "success", "completed", "finished")  # what a column of kinds says of a run that did not fail
FLAGS = ("true", "false", "yes", "no")  # words that are no kind of failure
_FLAG = {"true": 1.0, "false": 0.0}  # as scores
LEFT_OUT = {
    "drop": "were left out, which is right only if failing has nothing to do with the algorithm",
    "retry": "were left out until they are run again, so what is found is provisional",
}
EVERY = ""  # in place of a kind: all failures
INDICATOR = "failed"  # the score of an indicator of failures, or this name with an underscore


class Failures(NamedTuple):
    """What was done with failed runs: the policy, on how many of how many rows, and of which algorithms.

    `source` are the runs as they were, with their failures; `then` what was done with the runs after that, so that it
    can be done again under another policy.
    """

    policy: Any
    reference: Any
    n_failed: int
    n_rows: int
    algorithms: tuple[Any, ...]
    note: str
    source: Runs
    then: tuple[Callable[[Runs], Runs], ...] = ()

    def under(self, policy: Any, reference: Any = None) -> Runs:
        """The runs under another policy, with all that was done with them after that."""
        runs = self.source.score_failures(policy, reference=reference)
        for step in self.then:
            runs = step(runs)
        return runs

    @property
    def left_out(self) -> Runs | None:
        """The runs as they were, where only those count as failed that were left out; None where none were."""
        return self._treated(LEFT_OUT)

    @property
    def to_repeat(self) -> pd.DataFrame:
        """The runs to be run again, by what identifies them, with their kind of failure; no rows without "retry"."""
        source, waiting = self.source, self._treated(("retry",))
        given = (source.algorithm, source.benchmark, *source.family, *source.seeds, source.budget, *source.metafeatures)
        columns = dict.fromkeys(name for name in (*given, source.failed) if name in source.columns)
        rows = source.frame.head(0) if waiting is None else waiting.frame.filter(failed_rows(waiting))
        return collected(rows.select(*columns)).to_pandas()

    def _treated(self, treatments: Collection[str]) -> Runs | None:
        kinds = [kind for kind, given in _treatments(self.source, self.policy).items() if _is_among(given, treatments)]
        if not kinds:
            return None
        found = self.source if EVERY in kinds else of_kinds(self.source, kinds)
        return found if count_failures(found)[1].sum() else None


def check_failed(runs: Runs) -> None:
    """The role names a column of true and false, or of kinds of failures, or one of the words."""
    failed, columns, argument = runs.failed, runs.columns, named("failed")
    if not isinstance(failed, str):
        raise ArgumentError(f"{argument} must be a column or one of {', '.join(map(repr, WORDS))}, got {failed!r}.")
    if failed in WORDS:
        if failed in columns:
            raise ArgumentError(
                f"{argument}={failed!r} may mean the column {failed!r} or scores that are {failed}. Rename the column."
            )
        return
    if failed not in columns:
        raise UnknownColumnError(
            f"{argument} names {failed!r}, which is neither a column nor one of {', '.join(map(repr, WORDS))}. "
            f"Columns: {listed(columns)}.{suggest(failed, (*columns, *WORDS))}"
        )
    check_numeric(runs.frame, runs.score, argument="score")
    if not has_kinds(runs):
        _check_flags(runs.frame, failed, argument)
        return
    kinds = failures_by_kind(runs)["kind"].unique()
    odd = [kind for kind in kinds if number_in(kind) is not None or kind.lower() in FLAGS]
    if odd:
        raise DataError(
            f"{argument} names {failed!r}, a column of kinds of failures, but {odd[0]!r} is no kind. Write "
            f"a word for each kind and one of {', '.join(map(repr, WELL[1:]))} (or nothing) for runs that ended well; "
            "for flags, make it a column of true and false."
        )


def _check_flags(frame: Any, column: str, argument: str) -> None:
    """Only true and false, or 1 and 0."""
    dtype = frame.collect_schema()[column]
    if not (dtype == nw.Boolean or dtype.is_numeric()):
        shown = example_value(frame, column)
        raise DataError(
            f"{argument} must be a column of true and false, of 1 and 0, or of kinds (text), but {column!r} has type "
            f"{dtype} (for example {shown!r}). Make it one, for pandas with df[{column!r}] == {shown!r}."
        )
    flag = nw.col(column).cast(nw.Float64)
    gap = flag.is_null() | flag.is_nan().fill_null(True)
    odd = ~((flag == 0.0) | (flag == 1.0)).fill_null(True) & ~gap
    gaps, others = collected(
        frame.select(gap.cast(nw.Int64).sum().alias("gaps"), odd.cast(nw.Int64).sum().alias("others"))
    ).rows()[0]
    if gaps:
        raise missing_values_error(column, int(gaps))
    if others:
        found = collected(frame.filter(odd).select(column).head(1)).rows()[0][0]
        raise DataError(
            f"{argument} must be a column of true and false or of 1 and 0, but {column!r} holds {found!r} "
            f"({counted(int(others), 'row')} in all are neither). If it counts failures, 1 must mean that the run has "
            "no score."
        )


def masked(runs: Runs) -> Any:
    """The table without the scores of rows that failed by a column."""
    if runs.failed in WORDS:
        return runs.frame
    return runs.frame.with_columns(nw.when(~failed_rows(runs)).then(nw.col(runs.score)).alias(runs.score))


def failed_rows(runs: Runs) -> nw.Expr:
    """Whether a row failed, as an expression that is never missing; False for all without the role."""
    x = nw.col(runs.score).cast(nw.Float64)
    if runs.failed is None:
        return x.is_null() & ~x.is_null()
    if runs.failed == "missing" and runs.failed not in runs.columns:
        return x.is_null() | x.is_nan().fill_null(True)
    if runs.failed == "nonfinite" and runs.failed not in runs.columns:
        return ~x.is_finite().fill_null(False)
    if has_kinds(runs):
        well = _kind(runs).str.to_lowercase().is_in(WELL)
        return ~(nw.col(runs.failed).is_null() | well.fill_null(True))
    return nw.col(runs.failed).cast(nw.Float64) == 1.0


def has_kinds(runs: Runs) -> bool:
    """Whether a column says in which way runs failed."""
    dtype = runs.frame.collect_schema().get(runs.failed)
    return isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))


def columns_of_failures(runs: Runs) -> list[str]:
    """Columns without a role whose words tell the rows without a score, and no others: they name kinds of failures."""
    table = collected(runs.frame.select(runs.score, *runs.unused)).to_pandas()
    lost = ~np.isfinite(table.pop(runs.score).to_numpy(dtype=float))
    texts = [table[name] for name in table if is_text(table[name])]
    ended = {str(column.name): column.fillna("").astype(str).str.lower().isin(WELL) for column in texts}
    return [name for name, well in ended.items() if (~well.to_numpy() == lost).all()]


def words_as_kinds(frame: Any, score: str) -> tuple[Any, str]:
    """The table with the numbers of a column of scores, and a new column with its words, which are kinds of failures.

    An empty cell is "missing", true and false are 1 and 0. Only plain numbers are numbers: "85 %" is a word, and
    `check_failed` says that it is no kind.
    """
    frame = collected(frame.lazy())
    values, kinds = list[float](), list[str]()
    for cell in frame.get_column(score).to_list():
        form, number, _ = number_in(cell) or ("word", math.nan, math.nan)
        number = _FLAG.get(str(cell).strip().lower(), number if form == "plain" else math.nan)
        values.append(number)
        kinds.append("ok" if number == number else "missing" if form == "missing" else str(cell).strip())
    column = free_name(f"{score}_failed", frame.columns)
    new = {score: (values, nw.Float64()), column: (kinds, nw.String())}
    backend = frame.implementation
    return frame.with_columns(*(nw.new_series(name, *of, backend=backend) for name, of in new.items())), column


def _kind(runs: Runs) -> nw.Expr:
    return nw.col(str(runs.failed)).cast(nw.String).str.strip_chars()


def failures_by_kind(runs: Runs) -> pd.DataFrame:
    """Failed rows: ``kind``, ``algorithm``, ``n_failed``, by their names; no rows where failures have no kinds."""
    kind = _kind(runs) if has_kinds(runs) else nw.lit(None, dtype=nw.String)
    rows = runs.frame.filter(failed_rows(runs)).select(kind.alias("kind"), nw.col(runs.algorithm).alias("algorithm"))
    counts = collected(rows.group_by("kind", "algorithm").agg(nw.len().alias("n_failed"))).to_pandas()
    return counts.dropna().sort_values(["kind", "algorithm"], ignore_index=True)


def counted_kinds(runs: Runs, without: Collection[str] = ()) -> str:
    """The kinds of failures with their numbers; empty where there are none."""
    counts = failures_by_kind(runs).groupby("kind")["n_failed"].sum().items() if has_kinds(runs) else ()
    return listed(f"{kind} {n:,}" for kind, n in counts if kind not in without)


def of_kinds(runs: Runs, kinds: Collection[str]) -> Runs:
    """The runs of which only those count as failed that failed in one of these ways."""
    flag = free_name(f"{runs.failed}_", runs.columns)
    frame = runs.frame.with_columns((failed_rows(runs) & _kind(runs).is_in(list(kinds))).alias(flag))
    return runs.restricted(frame, (), failed=flag, ignore=(*runs.ignore, runs.failed))


def failure_indicator(runs: Runs) -> Runs:
    """The runs with 1 as the score of those that failed and 0 as that of the others, to minimize."""
    name = free_name(INDICATOR, runs.columns)
    columns = (*runs.ignore, runs.score, *((runs.failed,) if runs.failed in runs.columns else ()))
    frame = runs.frame.with_columns(failed_rows(runs).cast(nw.Float64).alias(name))
    roles: dict[str, Any] = {"score": name, "direction": "minimize", "failed": None}
    roles["ignore"] = tuple(dict.fromkeys(columns))
    return runs.restricted(frame, (), **roles)


def count_failures(runs: Runs, by: Sequence[str] = ()) -> tuple[Any, np.ndarray, np.ndarray]:
    """For each combination of some columns with a role: their values, failed rows and rows."""
    groups = runs.study.failures.study.groups(by)
    return groups.keys.frame(), np.rint(groups.mean * groups.n).astype(int), groups.n.astype(int)


def refuse_failures(runs: Runs) -> None:
    """Refuse runs that hold failures, by algorithm and with the policies; nothing where there are none."""
    if runs.failed is None:
        return
    names, failed, rows = count_failures(runs, [runs.algorithm])
    if not failed.any():
        return
    own = [f"{name} {count:,}" for name, count in zip(names[runs.algorithm], failed, strict=True) if count]
    what = rows_or_runs(runs)
    kinds = advice("policies_by_kind", kinds=counted_kinds(runs)) if has_kinds(runs) else ""
    raise DataError(
        f"{failed.sum():,} of {rows.sum():,} {what} failed ({listed(own)}) and have no score, and what a failure "
        "counts decides the comparison. Say it: " + advice("policies_in_full") + kinds
    )


def rows_or_runs(runs: Runs) -> str:
    """What failed: a run has several rows where it was scored at several budgets."""
    return "runs" if runs.budget is None or runs.study.count(runs.budget) == 1 else "scores"


def refuse_without_failures(runs: Runs) -> None:
    """Refuse runs that do not say which of them failed."""
    if runs.failed is None and runs.failures is None:
        raise ArgumentError(
            "runs do not say which of them failed: Runs(..., failed='missing') for scores that are missing, "
            "'nonfinite' for infinite ones too, or a column of true and false."
        )


# ----------------------------------------------------------------------------------------------------------- policies


POLICIES = ("worst", "baseline", "drop", "retry")


def score_failures(
    runs: Runs, policy: str | float | Mapping[Any, Any] | Callable[[Any], float], *, reference: Any = None
) -> Runs:
    """The runs without failures: each failed run has the score that a policy gives it.

    Parameters
    ----------
    policy : {"worst", "baseline", "drop", "retry"}, float, mapping or callable
        What a failed run counts. Where `failed` is a column of kinds, a mapping has one of these for every kind, such
        as ``{"infra": "retry", "timeout": "worst", "wrong format": 0}``:

        ==============  ===================================================================================
        policy          score of a failed run
        ==============  ===================================================================================
        "worst"         the worst one that any run had on its benchmark (at its budget)
        "baseline"      the mean of the runs of `reference` on its benchmark (at its budget)
        a number        that number
        a mapping       the value of its benchmark, ``{"task1": 0.5}``
        a function      its value of the benchmark; asked once for each benchmark with failures
        "drop"          none: the run is left out, as if it had not been started
        "retry"         none until it is run again: left out, and listed in ``failures.to_repeat``
        ==============  ===================================================================================
    reference : optional
        The algorithm of policy "baseline". Its own failures count the mean of its other runs there.

    Returns
    -------
    Runs
        Without the role `failed`; `failures` holds what was done and `notes` say it. A lazy table stays lazy.

    Raises
    ------
    ArgumentError
        If the runs have no role `failed`, or the policy or its reference is unknown or not finite, or a mapping
        does not name a kind of failure that occurs.
    DataError
        If every run of a benchmark failed ("worst"), the reference has no score where runs failed ("baseline"),
        or every run of an algorithm failed ("drop", "retry").

    Notes
    -----
    No policy is right in general. "drop" answers how good an algorithm is when it works, "worst" and a baseline
    what a user has who starts it, and `lmemtest.robustness` whether the answers differ. Scores that are
    given are constants: many of them break the normal distribution that a mixed model takes errors to have. Runs that
    are left out are missing by chance only where that kind of failure strikes all algorithms alike; `check` tests it.

    Examples
    --------
    >>> from lmemtest import Runs
    >>> table = {"tool": ["HB", "RS"] * 2, "task": ["a", "a", "b", "b"], "loss": [0.1, None, 3.0, 3.5]}
    >>> roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    >>> runs = Runs(table, failed="missing", **roles).score_failures({"a": 1})
    >>> runs.to_frame()["loss"].tolist(), runs.notes
    ([0.1, 1.0, 3.0, 3.5], ('1 failed run of 1 algorithm was given a value for its benchmark: 1.',))
    """
    _check_policy(runs, policy, reference)
    names, failed, rows = count_failures(runs, [runs.algorithm])
    of, n_out = tuple(names[runs.algorithm][failed > 0].tolist()), np.zeros_like(failed)
    frame, score, notes = runs.frame, None, []
    treatments = _treatments(runs, policy)
    for kind, treatment in treatments.items():
        part = runs if kind == EVERY else of_kinds(runs, [kind])
        theirs = failed_rows(runs) if kind == EVERY else failed_rows(runs) & (_kind(runs) == kind).fill_null(False)
        count = count_failures(part, [runs.algorithm])[1]
        whose = counted(int((count > 0).sum()), "algorithm")
        if _is_among(treatment, LEFT_OUT):
            frame, n_out, how = frame.filter(~theirs), n_out + count, LEFT_OUT[treatment]
            if kind != EVERY:
                each = zip(names[runs.algorithm], count, rows, strict=True)
                whose += f" ({listed(f'{name} {k:,} of {n:,}' for name, k, n in each if k)})"
        else:
            given, how = _replacement(part, treatment, reference)
            x = nw.col(runs.score).cast(nw.Float64) if score is None else score
            score = nw.when(theirs).then(given).otherwise(x)
        notes.append(_note(runs, kind, int(count.sum()), whose, how))
    if isinstance(policy, Mapping) and EVERY not in treatments and len(treatments) < len(policy):
        notes.append(f"No run failed by {listed(repr(kind) for kind in policy if kind not in treatments)}.")
    gone = names[runs.algorithm][(n_out == rows)].tolist()
    if gone:
        raise DataError(
            f"Every run of {listed(gone)} failed, so {policy!r} would leave the comparison without it. Keep the "
            f"algorithms that are to be compared ({advice('filter')}), or choose a "
            "policy that scores failed runs, such as 'worst'."
        )
    if score is not None:
        with supported(f"score_failures({policy!r})", runs.frame):
            frame = frame.with_columns(score.alias(runs.score))
    note = " ".join(notes) if failed.any() else f"None of {rows.sum():,} {rows_or_runs(runs)} failed."
    roles = {**runs.roles(), "failed": None}
    if runs.failed in runs.columns:
        roles["ignore"] = (*runs.ignore, runs.failed)
    done = Failures(policy, reference, int(failed.sum()), int(rows.sum()), of, note, source=runs)
    return type(runs)(frame, **roles).following(runs, done)


def _note(runs: Runs, kind: str, count: int, whose: str, how: str) -> str:
    what = rows_or_runs(runs)
    if count == 1:
        what, how = what[:-1], how.replace("were ", "was ", 1).replace("their ", "its ").replace("they are", "it is")
    return f"{kind}{': ' * (kind != EVERY)}{count:,} failed {what} of {whose} {how}."


# -------------------------------------------------------------------------------------------------------- policies


def _is_among(policy: Any, words: Collection[str]) -> bool:
    return isinstance(policy, str) and policy in words


def _treatments(runs: Runs, policy: Any) -> dict[str, Any]:
    """What becomes of each kind of failure that occurs, or of `EVERY` failure."""
    if not (isinstance(policy, Mapping) and has_kinds(runs)):
        return {EVERY: policy}
    unnamed = counted_kinds(runs, without=policy)
    if unnamed:
        raise ArgumentError(advice("unnamed_kinds", kinds=unnamed, column=runs.failed, well=listed(WELL[1:])))
    return {kind: policy[kind] for kind in failures_by_kind(runs)["kind"].unique()}


def _check_policy(runs: Runs, policy: Any, reference: Any) -> None:
    if runs.failed is None and runs.failures is not None:
        raise ArgumentError(
            f"These runs are without failures already: {runs.failures.note} Another policy is for the runs as they "
            "were before that; lmemtest.robustness(runs, of='failures') compares several."
        )
    if runs.failed is None:
        raise ArgumentError(advice("failed"))
    treatments = [policy] if EVERY in _treatments(runs, policy) else policy.values()
    for treatment in treatments:
        a_value = is_number(treatment)
        known = _is_among(treatment, POLICIES)
        if not (known or a_value or isinstance(treatment, Mapping) or callable(treatment)):
            options = advice("policies", policies=", ".join(map(repr, POLICIES)))
            hint = suggest(treatment, POLICIES) if isinstance(treatment, str) else ""
            raise ArgumentError(f"{named('policy')} must be {options}, got {treatment!r}.{hint}")
        if a_value:
            check_number(treatment, "policy")
    if any(_is_among(treatment, ("baseline",)) for treatment in treatments) == (reference is None):
        raise ArgumentError(
            advice("no_reference")
            + f", the algorithm whose mean score failed runs get. Algorithms: {listed(map(repr, runs.algorithms))}."
            if reference is None
            else f"reference={reference!r} is for policy='baseline', got policy={policy!r}. Leave it out."
        )
    if reference is not None:
        check_reference(runs, reference)


def check_reference(runs: Runs, reference: Any) -> None:
    """Refuse what is no algorithm of the table."""
    if not among(reference, runs.algorithms):
        raise ArgumentError(
            f"{advice('reference', reference=reference)} names no algorithm of the table. Algorithms: "
            f"{listed(map(repr, runs.algorithms))}.{suggest(str(reference), map(str, runs.algorithms))}"
        )


def _replacement(runs: Runs, policy: Any, reference: Any) -> tuple[nw.Expr, str]:
    """The score of failed rows, and what the note says of it."""
    if _is_among(policy, POLICIES):
        by = _groups(runs)
        x = nw.col(runs.score).cast(nw.Float64)
        there = nw.when(x.is_finite().fill_null(False)).then(x)  # no failed row has a score
        if policy == "worst":
            _require_scores(runs, by)
            worst = there.max() if runs.direction == "minimize" else there.min()
            return worst.over(*by) if by else worst, f"were given the worst score of {_their(runs)}"
        own = _require_baseline(runs, by, reference)
        mean = nw.when(nw.col(runs.algorithm) == nw.lit(reference)).then(there).mean()
        how = f"were given the mean score of {reference} on {_their(runs)}"
        more = f" ({own:,} of them {'is' if own == 1 else 'are'} of {reference} itself)" if own else ""
        return mean.over(*by) if by else mean, how + more
    if isinstance(policy, numbers.Real):
        return nw.lit(float(policy)), f"were given the score {written(float(policy), '.6g')}"
    return _by_benchmark(runs, policy)


def _groups(runs: Runs) -> tuple[str, ...]:
    """Within which columns scores compare: benchmark, families that it is crossed with, and budgets that runs share."""
    study, budget = runs.study, runs.budget
    own = (*((runs.benchmark,) if runs.benchmark else ()), *study.crossed)
    if budget is None or 2 * study.count(*own, budget) > runs.n_rows:  # times of their own: hardly two runs share one
        return own
    return (*own, budget)


def _their(runs: Runs) -> str:
    return f"{'their' if runs.benchmark else 'the'} {compared_within(runs)}"


def compared_within(runs: Runs) -> str:
    """Within what scores compare, in words."""
    said = "benchmark" if runs.benchmark else "table"
    return f"{said} and {runs.budget}" if runs.budget in _groups(runs) and runs.study.count(runs.budget) > 1 else said


def _require_scores(runs: Runs, by: tuple[str, ...]) -> None:
    """Refuse groups with failures in which every run failed."""
    groups = runs.study.groups(by)
    _refuse_groups(
        _lacking(runs, by, groups.keys.frame()[groups.n_bad < groups.n]),
        by,
        "Every run failed on {}, so there is no worst score: " + advice("failure_value"),
    )


def _require_baseline(runs: Runs, by: tuple[str, ...], reference: Any) -> int:
    """Refuse groups with failures in which the reference has no score; the number of its own failures."""
    groups = runs.study.groups([*by, runs.algorithm])
    own = groups.keys.frame()[(groups.n_bad < groups.n)]
    _refuse_groups(
        _lacking(runs, by, own[own[runs.algorithm] == reference]),
        by,
        f"The reference {reference!r} has no score itself on {{}}, where runs failed. Take another reference, "
        + advice("failure_value"),
    )
    names, failed, _ = count_failures(runs, [runs.algorithm])
    return int(failed[(names[runs.algorithm] == reference).to_numpy()].sum())


def _lacking(runs: Runs, by: tuple[str, ...], scored: pd.DataFrame) -> pd.DataFrame:
    """The groups with failures that are none of those with a score."""
    keys, failed, _ = count_failures(runs, by)
    lacking = keys[failed > 0]
    if not by:
        return lacking.iloc[: 0 if len(scored) else None]
    seen = set(scored[list(by)].itertuples(index=False, name=None))
    return lacking[[row not in seen for row in lacking[list(by)].itertuples(index=False, name=None)]]


def _refuse_groups(groups: pd.DataFrame, by: tuple[str, ...], message: str) -> None:
    if len(groups):
        names = [" / ".join(map(format_level, row)) for row in groups[list(by)].itertuples(index=False)]
        raise DataError(message.replace("{}", listed(names, most=5) if by else "the whole table"))


def _by_benchmark(runs: Runs, policy: Mapping[Any, float] | Callable[[Any], float]) -> tuple[nw.Expr, str]:
    """A value for each benchmark, of a mapping or a function."""
    benchmark = runs.study.require("benchmark", "there is no value per benchmark")
    names, failed, _ = count_failures(runs, [benchmark])
    needed = names[benchmark][failed > 0].tolist()
    if isinstance(policy, Mapping):
        known = set(runs.levels(benchmark))
        odd = [name for name in policy if name not in known]
        if odd:
            alike = [name for name in known if str(name) == str(odd[0])]  # 0 and "0"
            hint = f" Write {alike[0]!r}, as in the table." if alike else suggest(str(odd[0]), map(str, known))
            raise ArgumentError(f"policy names {odd[0]!r}, which is no value of {benchmark!r}.{hint}")
        lacking = [name for name in needed if name not in policy]
        if lacking:
            raise ArgumentError(
                f"policy has no value for {listed(map(repr, lacking))}, where runs failed. Add one for each benchmark "
                "with failed runs."
            )
        found = {name: policy[name] for name in needed}
    else:
        found = {name: policy(name) for name in needed}
    values = {name: _finite(value, name) for name, value in found.items()}
    column, nothing = nw.col(benchmark), nw.lit(None, dtype=nw.Float64)
    parts = [nw.when(column == nw.lit(name)).then(nw.lit(value)) for name, value in values.items()]
    ends = [written(value, ".6g") for value in (min(values.values(), default=0.0), max(values.values(), default=0.0))]
    how = f"were given a value for their benchmark: {' to '.join(dict.fromkeys(ends))}"
    return nw.coalesce(*parts) if len(parts) > 1 else (parts[0] if parts else nothing), how


def _finite(value: Any, name: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentError(f"policy must give a finite number for each benchmark, got {value!r} for {name!r}.")
    return number
