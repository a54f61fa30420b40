"""The answers of an evaluation: scores in [0, 1] of models on the items of tasks, checked and averaged by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.data.recognised import answers_in
from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.bench.evaluation.refusals import (
    refuse_copies,
    refuse_marks,
    refuse_off_scale,
    refuse_partial_judging,
    refuse_scores,
)
from lmemtest.core.caller import advice, named
from lmemtest.core.codes import combine_codes
from lmemtest.core.frames import collected
from lmemtest.core.numeric import check_numeric
from lmemtest.core.validate import as_frame, check_choice, check_column, check_columns
from lmemtest.core.words import counted, format_level, joined, listed, plural, spoken
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.cells import Groups, aggregate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index


FEWEST_JUDGES = 5  # from which on judges are a sample: a variance of fewer has hardly any degrees of freedom
_MANY = 50_000  # answers that a mixed model is fitted to in half a second
_FEWEST_BLOCKS = 10  # of a task
_ANSWERED = 0.8  # of the items of a task, by each model
_ONE = ("all items",)  # the task of a table without tasks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Scores by model and item, the mean over epochs and judges; NaN where a model has no answer to an item.

    Attributes
    ----------
    models, tasks, judges : tuple of str
        Names, in the order of their levels; no judges where there is no such column.
    scores : (n_models, n_items) float
    task : (n_items,) int
        The task of each item, in ascending order.
    noise : (n_models, n_items) float
        Variance of one epoch about the mean of its model and item; NaN where there are fewer than two.
    epochs : (n_models, n_items) float
        How many there are.
    by_judge : (n_judges, n_models, n_items) float
        The scores by judge; of no rows without judges.
    disagreement : float
        Share of the answers that judges scored differently; NaN without judges.
    n_rows : int
    repeated_ids : bool
        Whether an item's name occurs in several tasks.
    graded : bool
        Whether some score is neither 0 nor 1.
    scale : tuple of float
        The lowest and highest score of the table, which count as 0 and 1 here.
    rows_are_items : bool
        Whether no column named the items.
    families : tuple of str
        Names of the families (suites) of tasks; none without such a column.
    family : (n_tasks,) int
        The family of each task; of no entries without families.
    noun : str
        What a family is called: its column.
    cluster : (n_items,) int
        The cluster (passage, conversation) of each item, which is of one task; of no entries without clusters.
    passage : str
        What a cluster is called: its column.
    repeats : int
        Rows that repeated an answer and were dropped.
    kept : str
        Which row of such an answer was kept: "first", "last", or the "mean" of its scores.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    judges: tuple[str, ...]
    scores: Array
    task: Index
    noise: Array
    epochs: Array
    by_judge: Array
    disagreement: float
    n_rows: int
    repeated_ids: bool
    graded: bool
    scale: tuple[float, float] = (0.0, 1.0)
    rows_are_items: bool = False
    families: tuple[str, ...] = ()
    family: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    noun: str = "family"
    cluster: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    passage: str = "item"
    repeats: int = 0
    kept: str = ""

    @property
    def clustered(self) -> bool:
        """Whether items come in clusters, which are the sample then."""
        return len(self.cluster) > 0

    @property
    def n_sampled(self) -> NDArray[np.intp]:
        """Of each model and task: items, or clusters of items, that have an answer, ``(n_models, n_tasks)``."""
        if not self.clustered:
            return self.n_items
        has = answers_by(self.cluster, ~np.isnan(self.scores)) > 0
        task = np.zeros(has.shape[1], dtype=np.intp)
        task[self.cluster] = self.task
        return answers_by(task, has).astype(np.intp)

    @property
    def families_are_sample(self) -> bool:
        """Whether there are enough families, of several tasks somewhere, to speak of others like them."""
        return FEWEST_FAMILIES <= len(self.families) < len(self.tasks)

    @property
    def like(self) -> str:
        """What the tasks are a sample of, in a sentence."""
        return f"tasks of {plural(self.noun)} like these" if self.families_are_sample else "tasks like these"

    @property
    def here(self) -> str:
        """The tasks in a sentence."""
        return "this task" if len(self.tasks) == 1 else "these tasks"

    @property
    def without_tasks(self) -> dict[str, tuple[str, ...]]:
        """The models that have no answer on some task, with these tasks: they are not compared on these tasks."""
        none = self.n_items == 0
        return {
            name: tuple(task for task, is_missing in zip(self.tasks, row, strict=True) if is_missing)
            for name, row in zip(self.models, none, strict=True)
            if row.any()
        }

    @property
    def n_items(self) -> NDArray[np.intp]:
        """Items of each model and task that have an answer, ``(n_models, n_tasks)``."""
        return np.add.reduceat(~np.isnan(self.scores), self.starts, axis=1).astype(np.intp)

    @property
    def starts(self) -> Index:
        """Where each task begins."""
        return np.searchsorted(self.task, np.arange(len(self.tasks)))

    def task_means(self) -> Array:
        """Mean score by model and task, ``(n_models, n_tasks)``; NaN where a model lacks a task."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Array = np.add.reduceat(np.nan_to_num(self.scores), self.starts, axis=1) / self.n_items
        return means

    @property
    def shared(self) -> float:
        """Share of the items that all models of their task have answered."""
        answered = ~np.isnan(self.scores)
        on_task = (self.n_items > 0)[:, self.task]
        return float((answered == on_task).all(axis=0).mean())

    @property
    def paired(self) -> bool:
        """Whether any item has answers of two models."""
        return bool(((~np.isnan(self.scores)).sum(axis=0) > 1).any())

    @property
    def judges_are_sample(self) -> bool:
        """Whether there are enough judges to speak of others like them."""
        return len(self.judges) >= FEWEST_JUDGES

    @property
    def n_blocks(self) -> Index:
        """Of each task: into how many blocks of items the mixed model takes it; its items, unless they are very many.

        The means of tasks are the same, and variances between thousands of items are known as well from hundreds of
        blocks. Not where a model has answered few of the items: its blocks would be smaller than those of others.
        """
        sizes = np.bincount(self.task)
        answered = self.n_items / sizes
        most = min(-(-self.scores.size // _MANY), int(sizes.min()) // _FEWEST_BLOCKS)
        if self.judges_are_sample or most < 2 or answered[answered > 0.0].min() < _ANSWERED:
            return sizes
        return np.rint(sizes / most).astype(np.intp)

    @property
    def per_block(self) -> float:
        """Answers of a model in a block, on average."""
        n_blocks = self.n_blocks
        if n_blocks.sum() == len(self.task):
            return 1.0
        return float(self.n_items.sum() / ((self.n_items > 0).sum(axis=0) @ n_blocks))

    @property
    def has_epochs(self) -> bool:
        """Whether some answer was tried more than once."""
        return bool(np.isfinite(self.noise).any())


def answers_by(group: Index, values: Any) -> Array:
    """Sums of columns by their group, ``(rows, groups)``."""
    return np.stack([np.bincount(group, weights=row, minlength=int(group.max()) + 1) for row in values])


def read_answers(
    table: Any,
    *,
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
) -> tuple[Answers, str]:
    """The answers of a table of rows or of a column per model, after all checks; and the name of the score."""
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
            raise ArgumentError(
                f"{named(role)} must be the name of a column, got None. Columns: {listed(columns)}.{_suggested(frame)}"
            )
    used = {role: check_column(name, columns, argument=role) for role, name in given.items() if name is not None}
    score = check_column(score, columns, argument="score")
    roles = {**used, "score": score}
    twice = [role for role, name in roles.items() if list(roles.values()).count(name) > 1]
    if twice:
        raise ArgumentError(
            f"{joined([named(role) for role in twice])} name the same column, {roles[twice[0]]!r}. Each needs its own."
        )
    if schema[score] == nw.Boolean():
        frame = frame.with_columns(nw.col(score).cast(nw.Int8()))
    refuse_marks(frame, score)
    check_numeric(frame, score, argument="score")
    if scale != (0.0, 1.0):
        refuse_off_scale(frame, score, scale)
        frame = frame.with_columns((nw.col(score).cast(nw.Float64()) - scale[0]) / (scale[1] - scale[0]))
    repeats = 0
    if drop_duplicates is not None:
        frame, repeats = _without_repeats(frame, list(used.values()), score, drop_duplicates)
    groups = aggregate(frame, list(used.values()), score)
    of_role = dict(zip(groups.keys.names, zip(groups.keys.codes, groups.keys.levels, strict=True), strict=True))
    codes = {role: np.asarray(of_role[name][0], dtype=np.intp) for role, name in used.items()}
    levels = {role: tuple(map(format_level, of_role[name][1])) for role, name in used.items()}
    if "task" not in used:
        codes["task"], levels["task"] = np.zeros(len(groups.n), dtype=np.intp), _ONE
    if len(levels["model"]) < 2:
        raise DataError(
            f"evaluate compares models, and column {model!r} has one: {levels['model'][0]}. Add the answers of another "
            "model to the same items."
        )
    refuse_scores(groups, score, codes["model"], levels["model"])
    refuse_copies(groups, used)
    answers = replace(_averaged(codes, levels, groups), scale=scale, rows_are_items=rows_are_items)
    answers = replace(answers, repeats=repeats, kept=drop_duplicates or "")
    if cluster is not None:
        answers = replace(answers, cluster=_of_items(codes, levels, cluster), passage=str(cluster))
    if family is None:
        return answers, score
    return replace(answers, families=levels["family"], family=_of_tasks(codes, levels, family), noun=str(family)), score


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


def _suggested(frame: Any) -> str:
    """The call that columns suggest, if they hold answers."""
    found = answers_in(collected(frame.lazy()).to_pandas())
    return "" if found is None else f" By names and structure: {found.call}"


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
            f"part of one {name}. If names like 1, 2, 3 merely number the items of each, give items names of their own."
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
    columns = frame.collect_schema().names()
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
    for name in wanted:
        check_numeric(frame, name, argument="model")
    frame = frame.select(*kept, *(nw.col(name).cast(nw.Float64()) for name in wanted))
    return frame.unpivot(on=wanted, index=kept, variable_name=names[0], value_name=names[1]), names[0], names[1]


def _averaged(codes: dict[str, Index], levels: dict[str, tuple[str, ...]], groups: Groups) -> Answers:
    k, n_tasks, rows = len(levels["model"]), len(levels["task"]), len(groups.n)
    pair = combine_codes([(codes["task"], n_tasks), (codes["item"], len(levels["item"]))], rows)
    order, of_item = np.unique(pair, return_inverse=True)  # items in the order of their tasks
    first = np.zeros(len(order), dtype=np.intp)
    first[of_item] = np.arange(rows)
    size, place = k * len(order), codes["model"] * len(order) + of_item
    judges = levels.get("judge", ())
    by_judge: Array = np.full((len(judges), k, len(order)), np.nan)
    y, disagreement = groups.mean, np.nan
    if judges:
        own = codes["judge"] * size + place
        by_judge = _means(own, y, len(judges) * size).reshape(by_judge.shape)
        refuse_partial_judging(by_judge, judges, levels["model"])
        place, y, disagreement = _over_judges(place, codes.get("epoch"), y, len(judges))
    epochs = np.bincount(place, minlength=size).astype(float)
    scores = _means(place, y, size)
    squares = np.bincount(place, weights=(y - scores[place]) ** 2, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = np.where(epochs > 1, squares / (epochs - 1.0), np.nan)
    return Answers(
        models=levels["model"],
        tasks=levels["task"],
        judges=judges,
        scores=scores.reshape(k, -1),
        task=codes["task"][first],
        noise=noise.reshape(k, -1),
        epochs=epochs.reshape(k, -1),
        by_judge=by_judge,
        disagreement=disagreement,
        n_rows=int(groups.n.sum()),
        repeated_ids=len(order) > len(levels["item"]),
        graded=bool(((groups.mean > 0.0) & (groups.mean < 1.0)).any()),
    )


def _means(place: Index, y: Array, size: int) -> Array:
    """Mean by place; NaN of none."""
    count = np.bincount(place, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Array = np.bincount(place, weights=y, minlength=size) / count
    return out


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


def item_rows(answers: Answers) -> pd.DataFrame:
    """One row per model and item, and per judge where these are a sample: model, task, family, item, judge, score.

    Of very many answers one row per model and block of items.
    """
    task = answers.task
    if answers.judges_are_sample:
        judge, model, item = np.nonzero(~np.isnan(answers.by_judge))
        score = answers.by_judge[judge, model, item]
    else:
        scores = answers.scores
        if answers.per_block > 1.0:
            scores, task = _blocks(answers)
        model, item = np.nonzero(~np.isnan(scores))
        score = scores[model, item]
    columns: dict[str, Any] = {
        "model": pd.Categorical.from_codes(model, categories=pd.Index(answers.models), ordered=True),
        "task": pd.Categorical.from_codes(task[item], categories=pd.Index(answers.tasks), ordered=True),
        "item": item,
        "score": score,
    }
    if answers.families_are_sample:
        of_item = answers.family[task[item]]
        columns["family"] = pd.Categorical.from_codes(of_item, categories=pd.Index(answers.families), ordered=True)
    if answers.judges_are_sample:
        columns["judge"] = pd.Categorical.from_codes(judge, categories=pd.Index(answers.judges), ordered=True)
    return pd.DataFrame(columns)


def _blocks(answers: Answers) -> tuple[Array, Index]:
    """Means over blocks of items of a task, ``(n_models, n_blocks)``, and the task of each block.

    Blocks of a task differ by one item at most, and the mean of a model over them is moved to that over its items.
    """
    sizes, n_blocks = np.bincount(answers.task), answers.n_blocks
    first = np.cumsum(n_blocks) - n_blocks
    place = np.arange(len(answers.task)) - answers.starts[answers.task]
    of_item = first[answers.task] + place * n_blocks[answers.task] // sizes[answers.task]
    task = np.repeat(np.arange(len(sizes)), n_blocks)
    starts = np.searchsorted(of_item, np.arange(len(task)))
    has = ~np.isnan(answers.scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.add.reduceat(np.nan_to_num(answers.scores), starts, axis=1) / np.add.reduceat(has, starts, axis=1)
        there = np.add.reduceat(~np.isnan(means), first, axis=1)
        moved = answers.task_means() - np.add.reduceat(np.nan_to_num(means), first, axis=1) / there
    return means + moved[:, task], task
