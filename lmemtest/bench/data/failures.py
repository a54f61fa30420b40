"""Failed runs: which rows failed, how many of whom, and what a failed run counts.

It counts the worst score of its benchmark, that of a baseline, a value, or nothing.

A row fails by a column of its own or by its score ("missing", "nonfinite"). The score of a failed row is no score: it
is masked when the table gets its roles, so that every count of scores that are not there counts it. Scores of policies
are expressions over groups that the table's own engine evaluates, so lazy tables stay lazy.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from lmemtest.core.caller import advice, named
from lmemtest.core.codes import missing_values_error
from lmemtest.core.frames import check_numeric, collected, example_value, supported
from lmemtest.core.rounding import written
from lmemtest.core.validate import among, check_number, is_number
from lmemtest.core.words import counted, format_level, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

__all__ = [
    *("POLICIES", "WORDS", "Failures", "check_failed", "check_reference", "compared_within", "count_failures"),
    *("failed_rows", "failure_indicator", "masked", "score_failures"),
]

WORDS = ("missing", "nonfinite")
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


def check_failed(runs: Runs) -> None:
    """The role names a column of true and false, or one of the words."""
    failed, columns, argument = runs.failed, runs.columns, named("failed")
    if failed is None:
        return
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
    _check_flags(runs.frame, failed, argument)


def _check_flags(frame: Any, column: str, argument: str) -> None:
    """Only true and false, or 1 and 0."""
    dtype = frame.collect_schema()[column]
    if not (dtype == nw.Boolean or dtype.is_numeric()):
        shown = example_value(frame, column)
        raise DataError(
            f"{argument} must be a column of true and false or of 1 and 0, but {column!r} has type {dtype} (for "
            f"example {shown!r}). Make it one, for pandas with df[{column!r}] == {shown!r}."
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
    if runs.failed is None or runs.failed in WORDS:
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
    return nw.col(runs.failed).cast(nw.Float64) == 1.0


def failure_indicator(runs: Runs) -> Runs:
    """The runs with 1 as the score of those that failed and 0 as that of the others, to minimize."""
    name = INDICATOR
    while name in runs.columns:
        name += "_"
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
    raise DataError(
        f"{failed.sum():,} of {rows.sum():,} {what} failed ({listed(own)}) and have no score, and what a failure "
        "counts decides the comparison. Say it: " + advice("policies_in_full")
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


POLICIES = ("worst", "baseline", "drop")


def score_failures(
    runs: Runs, policy: str | float | Mapping[Any, float] | Callable[[Any], float], *, reference: Any = None
) -> Runs:
    """The runs without failures: each failed run has the score that a policy gives it.

    Parameters
    ----------
    policy : {"worst", "baseline", "drop"}, float, mapping or callable
        What a failed run counts:

        ==============  ===================================================================================
        policy          score of a failed run
        ==============  ===================================================================================
        "worst"         the worst one that any run had on its benchmark (at its budget)
        "baseline"      the mean of the runs of `reference` on its benchmark (at its budget)
        a number        that number
        a mapping       the value of its benchmark, ``{"task1": 0.5}``
        a function      its value of the benchmark; asked once for each benchmark with failures
        "drop"          none: the run is left out, as if it had not been started
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
        If the runs have no role `failed`, or the policy or its reference is unknown or not finite.
    DataError
        If every run of a benchmark failed ("worst"), the reference has no score where runs failed ("baseline"),
        or every run of an algorithm failed ("drop").

    Notes
    -----
    No policy is right in general. "drop" answers how good an algorithm is when it works, "worst" and a baseline
    what a user has who starts it, and `lmemtest.robustness` whether the answers differ. Scores that are
    given are constants: many of them break the normal distribution that a mixed model takes errors to have.

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
    of = tuple(names[runs.algorithm][failed > 0].tolist())
    if policy == "drop":
        frame = _without(runs)
        how = "were left out, which is right only if failing has nothing to do with the algorithm"
    else:
        given, how = _replacement(runs, policy, reference)
        x = nw.col(runs.score).cast(nw.Float64)
        with supported(f"score_failures({policy!r})", runs.frame):
            score = nw.when(failed_rows(runs)).then(given).otherwise(x)
            frame = runs.frame.with_columns(score.alias(runs.score))
    count, what = int(failed.sum()), rows_or_runs(runs)
    if count == 1:
        what, how = what[:-1], how.replace("were ", "was ", 1).replace("their ", "its ")
    said = f"{count:,} failed {what} of {counted(len(of), 'algorithm')} {how}."
    note = said if count else f"None of {rows.sum():,} {what} failed."
    roles = {**runs.roles(), "failed": None}
    if runs.failed in runs.columns:
        roles["ignore"] = (*runs.ignore, runs.failed)
    done = Failures(policy, reference, count, int(rows.sum()), of, note, source=runs)
    return type(runs)(frame, **roles).following(runs, done)


# -------------------------------------------------------------------------------------------------------- policies


def _check_policy(runs: Runs, policy: Any, reference: Any) -> None:
    if runs.failed is None and runs.failures is not None:
        raise ArgumentError(
            f"These runs are without failures already: {runs.failures.note} Another policy is for the runs as they "
            "were before that; lmemtest.robustness(runs, of='failures') compares several."
        )
    if runs.failed is None:
        raise ArgumentError(advice("failed"))
    a_value = is_number(policy)
    known = isinstance(policy, str) and policy in POLICIES
    if not (known or a_value or isinstance(policy, Mapping) or callable(policy)):
        options = advice("policies", policies=", ".join(map(repr, POLICIES)))
        hint = suggest(policy, POLICIES) if isinstance(policy, str) else ""
        raise ArgumentError(f"{named('policy')} must be {options}, got {policy!r}.{hint}")
    if a_value:
        check_number(policy, "policy")
    if (policy == "baseline" if known else False) == (reference is None):
        raise ArgumentError(
            advice("no_reference")
            + f", the algorithm whose mean score failed runs get. Algorithms: {listed(map(repr, runs.algorithms))}."
            if reference is None
            else f"reference={reference!r} is for policy='baseline', got policy={policy!r}. Leave it out."
        )
    if reference is not None:
        check_reference(runs, reference)


def _without(runs: Runs) -> Any:
    """The table without failed rows."""
    names, failed, rows = count_failures(runs, [runs.algorithm])
    gone = names[runs.algorithm][failed == rows].tolist()
    if gone:
        raise DataError(
            f"Every run of {listed(gone)} failed, so 'drop' would leave the comparison without it. Keep the algorithms "
            f"that are to be compared ({advice('filter')}), or choose a "
            "policy that scores failed runs, such as 'worst'."
        )
    return runs.frame.filter(~failed_rows(runs))


def check_reference(runs: Runs, reference: Any) -> None:
    """Refuse what is no algorithm of the table."""
    if not among(reference, runs.algorithms):
        raise ArgumentError(
            f"{advice('reference', reference=reference)} names no algorithm of the table. Algorithms: "
            f"{listed(map(repr, runs.algorithms))}.{suggest(str(reference), map(str, runs.algorithms))}"
        )


def _replacement(runs: Runs, policy: Any, reference: Any) -> tuple[nw.Expr, str]:
    """The score of failed rows, and what the note says of it."""
    if policy in POLICIES if isinstance(policy, str) else False:
        by = _groups(runs)
        x = nw.col(runs.score).cast(nw.Float64)
        there = nw.when(~failed_rows(runs) & x.is_finite().fill_null(False)).then(x)
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
    """Refuse groups in which every run failed."""
    groups = runs.study.groups(by)
    _refuse_groups(
        groups.keys.frame()[groups.n_bad == groups.n],
        by,
        "Every run failed on {}, so there is no worst score: " + advice("failure_value"),
    )


def _require_baseline(runs: Runs, by: tuple[str, ...], reference: Any) -> int:
    """Refuse groups with failures in which the reference has no score; the number of its own failures."""
    keys, failed, _ = count_failures(runs, by)
    groups = runs.study.groups([*by, runs.algorithm])
    own = groups.keys.frame()[(groups.n_bad < groups.n)]
    own = own[own[runs.algorithm] == reference]
    lacking = keys[failed > 0]
    if by:
        seen = set(own[list(by)].itertuples(index=False, name=None))
        lacking = lacking[[row not in seen for row in lacking[list(by)].itertuples(index=False, name=None)]]
    elif len(own):
        lacking = lacking.iloc[:0]
    _refuse_groups(
        lacking,
        by,
        f"The reference {reference!r} has no score itself on {{}}, where runs failed. Take another reference, "
        + advice("failure_value"),
    )
    names, failed, _ = count_failures(runs, [runs.algorithm])
    return int(failed[(names[runs.algorithm] == reference).to_numpy()].sum())


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
