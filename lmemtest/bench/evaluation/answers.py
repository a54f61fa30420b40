"""The answers of an evaluation as blocks of scores: models on the items of tasks, checked and averaged over judges.

A task is a block and an item an instance of it; its runs are the epochs of a model. Everything below has models in
rows: scores are ``(n_models, n_items)``, with NaN where a model has no answer, items in the order of their tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from lmemtest.bench.data.blocks import Blocks, padded
from lmemtest.bench.data.failures import words_as_kinds
from lmemtest.bench.data.guessing import in_its_form
from lmemtest.bench.data.recognised import answers_in, recognised
from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.evaluation.failed import failure_policy
from lmemtest.bench.evaluation.refusals import (
    refuse_copies,
    refuse_marks,
    refuse_off_scale,
    refuse_partial_judging,
    refuse_scores,
)
from lmemtest.core.caller import advice, named
from lmemtest.core.codes import combine_codes, first_rows
from lmemtest.core.frames import check_numeric, collected, unpivoted
from lmemtest.core.validate import as_frame, check_choice, check_column, check_columns
from lmemtest.core.words import counted, format_level, joined, listed, plural, spoken
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.cells import Groups, aggregate

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array, Index

FEWEST_JUDGES = 5  # from which on judges are a sample: a variance of fewer has hardly any degrees of freedom


def starts(blocks: Blocks) -> Index:
    """The first item of each task."""
    return np.searchsorted(blocks.block, np.arange(len(blocks.names)))


def by_task(blocks: Blocks, values: Any) -> Any:
    """Sums over the items of each task, in the last axis."""
    return np.add.reduceat(values, starts(blocks), axis=-1)


def answered(blocks: Blocks) -> Index:
    """Items of each model and task that have an answer, ``(n_models, n_tasks)``."""
    return by_task(blocks, (blocks.n_runs.T > 0).astype(np.intp))  # type: ignore[no-any-return]


def sampled(blocks: Blocks, cluster: Index | None) -> Index:
    """Of each model and task: items, or clusters of items, that have an answer, ``(n_models, n_tasks)``."""
    if cluster is None:
        return answered(blocks)
    has = sums_by(cluster, blocks.n_runs.T > 0) > 0
    task = np.zeros(has.shape[1], dtype=np.intp)
    task[cluster] = blocks.block
    return sums_by(task, has).astype(np.intp)


def sums_by(group: Index, values: Any, n: int = 0) -> Array:
    """Sums of columns by their group, ``(rows, groups)``; `n` groups at least."""
    return np.stack([np.bincount(group, weights=row, minlength=n) for row in values])


def task_means(blocks: Blocks) -> Array:
    """Mean score by model and task, ``(n_models, n_tasks)``; NaN where a model lacks a task."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return by_task(blocks, np.nan_to_num(blocks.means.T)) / answered(blocks)  # type: ignore[no-any-return]


def has_counts(blocks: Blocks) -> bool:
    """Whether the scores of a model at an item add up to a number of right answers, as means over judges need not."""
    right = blocks.means * blocks.n_runs
    return bool(np.nanmax(np.abs(right - np.rint(right))) < 1e-6)


def as_shares(
    blocks: Blocks, judges: Mapping[str, Array], scale: tuple[float, float]
) -> tuple[Blocks, dict[str, Array]]:
    """Scores at the ends of a scale, and means of them, as 0, 1 and shares of 1; and those of the judges."""
    low, high = scale

    def of(scores: Array) -> Array:
        return (scores - low) / (high - low)

    return replace(blocks, runs=of(blocks.runs)), {name: of(scores) for name, scores in judges.items()}


def without_tasks(blocks: Blocks) -> dict[str, list[str]]:
    """The models that have no answer on some task, with these tasks: they are not compared on these tasks."""
    lacking = {
        name: [task for task, n in zip(blocks.names, row, strict=True) if not n]
        for name, row in zip(blocks.algorithms, answered(blocks), strict=True)
    }
    return {name: tasks for name, tasks in lacking.items() if tasks}


def noise_of(blocks: Blocks) -> Array:
    """Variance of one epoch about the mean of its model and item; NaN where there are fewer than two."""
    squares = np.nansum((blocks.runs - blocks.means[..., None]) ** 2, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(blocks.n_runs > 1, squares / (blocks.n_runs - 1.0), np.nan).T


def read_answers(
    table: Any,
    *,
    direction: str,
    model: str | Sequence[str] | None,
    item: str | None,
    task: str | None,
    score: str | None,
    epoch: str | None,
    judge: str | None,
    family: str | None = None,
    cluster: str | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    drop_duplicates: str | None = None,
    failed: str | None = None,
    score_failures: Any = None,
) -> tuple[Blocks, dict[str, Array], Index | None, dict[str, Any]]:
    """The answers of a table of rows or of a column per model, after all checks.

    Then the scores of each judge, the cluster of each item where these are clustered, and what else is said of the
    table: `n_rows`; whether `rows_are_items`, names of items are those of several tasks (`repeated`), scores are
    `graded`; `n_families`; rows that repeated an answer (`n_dropped`); the share of answers that judges scored
    differently (`disagreement`); what was done with answers that failed (`failures`).
    """
    frame = as_frame(table, argument="table")
    given = {"task": task, "item": item, "epoch": epoch, "judge": judge, "family": family, "cluster": cluster}
    if family is not None and task is None:
        raise ArgumentError(
            f"{named('family')} names {family!r:.60}, which groups tasks, but no column of tasks is named. Name it: "
            + advice("column", role="task")
            + "."
        )
    rows_are_items = item is None and not isinstance(model, str) and model is not None
    if rows_are_items:
        frame, item = _numbered(frame, epoch, judge)
        given["item"] = item
    if not isinstance(model, str) and model is not None:
        frame, model, score = _lengthened(frame, model, score, [name for name in given.values() if name is not None])
    schema = frame.collect_schema()
    columns = schema.names()
    given = {"model": model, **given}
    for role, name in (("model", model), ("item", item), ("score", score)):
        if name is None:
            rows = collected(frame.lazy()).to_pandas()
            call = answers_in(rows)
            suggested = _of_runs(rows) if call is None else f" By names and structure: {call.call}"
            raise ArgumentError(
                f"{named(role)} must be the name of a column, got None. Columns: {listed(columns)}.{suggested}"
            )
    used = {role: check_column(name, columns, argument=role) for role, name in given.items() if name is not None}
    score = check_column(score, columns, argument="score")
    if isinstance(failed, str) and failed == score:
        frame, failed = words_as_kinds(frame, score)
        columns = [*columns, failed]
    roles = {**used, "score": score} | ({"failed": failed} if isinstance(failed, str) and failed in columns else {})
    twice = [role for role, name in roles.items() if list(roles.values()).count(name) > 1]
    if twice:
        raise ArgumentError(
            f"{joined([named(role) for role in twice])} name the same column, {roles[twice[0]]!r}. Each needs its own."
        )
    if frame.collect_schema()[score] == nw.Boolean():
        frame = frame.with_columns(nw.col(score).cast(nw.Int8()))
    refuse_marks(frame, score)
    try:
        check_numeric(frame, score, argument="score")
    except DataError as error:
        text = frame.collect_schema()[score] in (nw.String, nw.Object, nw.Categorical)
        raise DataError(f"{error} {advice('words_as_kinds', score=score)}" if text else str(error)) from None
    done = None
    if failed is not None or score_failures is not None:
        of_runs: dict[str, Any] = {"direction": direction, "algorithm": model, "benchmark": task, "seed": item}
        asked = Runs(frame, score=score, **of_runs, failed=failed)
        scored = asked.score_failures(failure_policy(score_failures, asked, scale))
        frame, done = scored.frame, scored.failures
    if scale != (0.0, 1.0):
        refuse_off_scale(frame, score, scale)
    repeats = 0
    if drop_duplicates is not None:
        frame, repeats = _without_repeats(frame, list(used.values()), score, drop_duplicates)
    groups = aggregate(frame, list(used.values()), score)
    of_role = dict(zip(groups.keys.names, zip(groups.keys.codes, groups.keys.levels, strict=True), strict=True))
    codes = {role: np.asarray(of_role[name][0], dtype=np.intp) for role, name in used.items()}
    levels = {role: tuple(map(format_level, of_role[name][1])) for role, name in used.items()}
    if "task" not in used:
        codes["task"], levels["task"] = np.zeros(len(groups.n), dtype=np.intp), ("all items",)
    if len(levels["model"]) < 2:
        raise DataError(
            f"models are compared, and column {model!r} has one: {levels['model'][0]}. Add the answers of another "
            "model to the same items."
        )
    refuse_scores(groups, score, codes["model"], levels["model"], scale)
    refuse_copies(groups, used)
    blocks, by_judge, disagreement = _blocks(codes, levels, groups, score, direction)
    about = {
        "n_rows": int(groups.n.sum()),
        "rows_are_items": rows_are_items,
        "repeated": len(blocks.block) > len(levels["item"]),
        "graded": bool(((groups.mean > scale[0]) & (groups.mean < scale[1])).any()),
        "n_families": len(levels.get("family", ())),
        "n_dropped": repeats,
        "disagreement": disagreement,
        "failures": done if done is not None and done.n_failed else None,
    }
    of_item = None if cluster is None else _of_items(codes, levels, cluster)
    if family is not None:
        own = _of_tasks(codes, levels, family)
        if FEWEST_FAMILIES <= len(levels["family"]) < len(blocks.names):  # a sample
            blocks = replace(blocks, family=np.array(levels["family"], dtype=object)[own][blocks.block])
    return blocks, by_judge, of_item, about


def _of_runs(table: pd.DataFrame) -> str:
    """How a table without answers to items is compared, as far as names and structure show it."""
    known = recognised(table)
    if known is not None:
        return f" {known.in_words('It')}"
    found = in_its_form(table, {})
    if not found.readings:
        return ""
    told = found.told({}, "lmemtest.analyze(df, {})")
    return f" If these are runs of algorithms on benchmarks rather than answers to items, compare those. {told}"


def _without_repeats(frame: Any, keys: list[str], score: str, keep: str) -> tuple[Any, int]:
    """One row of each answer, and how many rows that leaves out."""
    check_choice(keep, "drop_duplicates", ("first", "last", "mean"))
    if isinstance(frame, nw.LazyFrame):
        raise ArgumentError(
            f"{named('drop_duplicates')} needs a table in memory: the rows of a lazy one have no order."
        )
    if keep == "mean":
        frame = frame.with_columns(nw.col(score).cast(nw.Float64).mean().over(*keys).alias(score))
    found = frame.unique(keys, keep="last" if keep == "last" else "first", maintain_order=True)
    return found, len(frame) - len(found)


def _numbered(frame: Any, epoch: str | None, judge: str | None) -> tuple[Any, str]:
    """A table with the number of its row, which is the item where each model has a column and nothing names items."""
    for role, name in (("epoch", epoch), ("judge", judge)):
        if name is not None:
            raise ArgumentError(
                f"{named(role)} names {name!r:.60}, so a row is no item. Name the column of the items: "
                + advice("column", role="item")
                + "."
            )
    frame = collected(frame.lazy())
    column = next(name for name in ("row", "row_", "row__") if name not in frame.columns)
    return frame.with_row_index(column), column


def _of_tasks(codes: dict[str, Index], levels: dict[str, tuple[str, ...]], column: str) -> Index:
    """The family of each task; refused where a task is in several."""
    pairs = np.unique(np.column_stack([codes["task"], codes["family"]]), axis=0)
    task, count = np.unique(pairs[:, 0], return_counts=True)
    if (count > 1).any():
        several = [levels["task"][i] for i in task[count > 1]]
        raise DataError(
            f"{counted(len(several), 'task')} ({joined(several, most=3)}) {'is' if len(several) == 1 else 'are'} in "
            f"several {plural(column)}. If names like 1, 2, 3 merely number the tasks of each, give tasks names of "
            "their own; a task that is the same in several cannot be evaluated once for each: keep one."
        )
    return pairs[:, 1]


def _of_items(codes: dict[str, Index], levels: dict[str, tuple[str, ...]], column: str) -> Index:
    """The cluster of each item, items in the order of their tasks; refused where clusters are not parts of tasks."""
    several, name = plural(column), spoken(column)
    leave = f"leave out {advice('argument', name='cluster')}"
    of_task = np.unique(np.column_stack([codes["cluster"], codes["task"]]), axis=0)
    cluster, count = np.unique(of_task[:, 0], return_counts=True)
    if (count > 1).any():
        shared = joined([levels["cluster"][i] for i in cluster[count > 1]], most=3)
        raise DataError(
            f"{named('cluster')} must be nested in the task, and {int((count > 1).sum()):,} {several} ({shared}) are "
            f"in several tasks. If names like 1, 2, 3 merely number the {several} of each task, give them names of "
            "their own; if tasks share them, tasks are no independent samples, and there is no test here."
        )
    rows = np.unique(np.column_stack([codes["task"], codes["item"], codes["cluster"]]), axis=0)
    twice = (np.diff(rows[:, :2], axis=0) == 0).all(axis=1)
    if twice.any():
        example, n = levels["item"][rows[:-1][twice][0, 1]], int(twice.sum())
        raise DataError(
            f"{counted(n, 'item')} (such as {example}) {'is' if n == 1 else 'are'} in several {several}; an item is "
            f"part of one {name}. If names like 1, 2, 3 merely number the items of each, give items unique names."
        )
    if len(cluster) == len(rows):
        raise ArgumentError(
            f"{named('cluster')} names {column!r}, of which each has one item: nothing is clustered, so {leave}."
        )
    if len(cluster) == len(levels["task"]):
        raise DesignError(
            f"{named('cluster')} names {column!r}, of which each task has one: the {several} are the tasks, and "
            f"nothing says how scores vary over other {several} of a task. To ask about tasks like these, {leave}; "
            f"to take the {several} for a sample of one task, "
            + f"leave out {advice('argument', name='task')} instead."
        )
    return np.unique(rows[:, 2], return_inverse=True)[1].astype(np.intp)


def _lengthened(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], models: Any, score: Any, kept: list[Any]
) -> tuple[nw.DataFrame[Any] | nw.LazyFrame[Any], str, str]:
    """A table with a column of scores per model as one with a row per answer, and its two new columns."""
    schema = frame.collect_schema()
    columns = schema.names()
    wanted = list(check_columns(models, columns, argument="model"))
    if len(set(wanted)) < 2 or len(set(wanted)) < len(wanted) or set(wanted) & set(map(str, kept)):
        raise ArgumentError(
            f"{named('model')} must be one column of models, or two columns of scores or more without another role, "
            f"got {listed(wanted) or 'none'}."
        )
    if score is not None:
        raise ArgumentError(
            f"{named('score')} must be left out where each model has a column of scores, got {score!r:.60}."
        )
    check_columns(kept, columns, argument="item, task, epoch, judge, family or cluster")
    names = [next(name for name in (base, f"{base}_", f"{base}__") if name not in kept) for base in ("model", "score")]
    schema = frame.collect_schema()
    frame = frame.with_columns(nw.col(name).cast(nw.Int8()) for name in wanted if schema[name] == nw.Boolean())
    for name in wanted:
        if schema[name] != nw.Boolean():
            check_numeric(frame, name, argument="model")
    frame = frame.select(*kept, *(nw.col(name).cast(nw.Float64()) for name in wanted))
    return unpivoted(frame, wanted, kept, *names), names[0], names[1]


def _blocks(
    codes: dict[str, Index], levels: dict[str, tuple[str, ...]], groups: Groups, score: str, direction: str
) -> tuple[Blocks, dict[str, Array], float]:
    """The answers, the scores by judge, ``(n_models, n_items)``, and the share of answers that judges disagree on."""
    models, tasks, judges, rows = levels["model"], levels["task"], levels.get("judge", ()), len(groups.n)
    item = combine_codes([(codes["task"], len(tasks)), (codes["item"], len(levels["item"]))], rows)
    n = int(item.max()) + 1
    first = first_rows(item, n)
    cell, y, disagreement = item * len(models) + codes["model"], groups.mean, np.nan
    by_judge: Array = np.full((len(judges), len(models), n), np.nan)
    if judges:
        size = n * len(models)
        place = codes["judge"] * size + cell
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where a judge scored nothing
            means = sums_by(place, [y], len(judges) * size) / sums_by(place, [np.ones_like(y)], len(judges) * size)
        by_judge = means.reshape(len(judges), n, len(models)).swapaxes(1, 2)
        refuse_partial_judging(by_judge, judges, models)
        cell, y, disagreement = _over_judges(cell, codes.get("epoch"), y, len(judges))
    blocks = Blocks(
        algorithms=models,
        runs=padded(y, cell, (n, len(models)), np.nan),
        instances=tuple(np.array(levels["item"], dtype=object)[codes["item"][first]].tolist()),
        block=codes["task"][first],
        names=tasks,
        unit="task",
        score=score,
        direction=direction,
    )
    return blocks, dict(zip(judges, by_judge, strict=True)), disagreement


def _over_judges(place: Index, epoch: Index | None, y: Array, n_judges: int) -> tuple[Index, Array, float]:
    """One row per answer, with the mean over its judges; and the share of answers scored differently."""
    epoch = np.zeros_like(place) if epoch is None else epoch
    answer = combine_codes([(place, int(place.max()) + 1), (epoch, int(epoch.max()) + 1)], len(y))
    kept, of_answer, count = np.unique(answer, return_inverse=True, return_counts=True)
    if (count < n_judges).any():
        raise DesignError(
            f"{counted(int((count < n_judges).sum()), 'answer')} of {len(kept):,} lack a score of some judge, so "
            "judges would be compared by different answers. Keep the answers that all judges scored, or one judge."
        )
    low, high = np.full(len(kept), np.inf), np.full(len(kept), -np.inf)
    np.minimum.at(low, of_answer, y)
    np.maximum.at(high, of_answer, y)
    where = np.zeros(len(kept), dtype=np.intp)
    where[of_answer] = place
    return where, np.bincount(of_answer, weights=y) / count, float((high > low).mean())
