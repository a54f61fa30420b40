"""What the reader of an evaluation must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.evaluation.answers import FEWEST_JUDGES, answered, sampled, task_means, without_tasks
from lmemtest.bench.evaluation.evaluation_result import NO_ODDS_OF_RUNS
from lmemtest.bench.evaluation.log_odds import unbiased_logits, without_errors
from lmemtest.bench.evaluation.questions import has_runs_of_items
from lmemtest.core.caller import advice
from lmemtest.core.rounding import written
from lmemtest.core.words import counted, joined, percent, plural, spoken

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Index

MANY_ITEMS = 50  # from which on their difficulty is seldom estimated as zero
FEWEST_TASKS, MOST_TASKS = 5, 10  # of more, those that are hardly ever failed weigh too much by odds
NEAR_END = 0.1  # a share of right or of wrong answers, mean over tasks
UNEQUAL = 0.8  # standard deviation of the log odds of tasks
UNEQUAL_SIZES = 2.0  # mean over harmonic mean of the items of a task: what equal weights cost in variance
FEW_DIFFERING = 10  # items on which two models differ, below which t-tests of 0/1 scores are rough


def notes_on(
    blocks: Blocks,
    compared: pd.DataFrame,
    variances: Mapping[str, float],
    cluster: Index | None,
    about: Mapping[str, Any],
) -> tuple[str, ...]:
    """`about`: what was read of the table, and the arguments that it was read by."""
    return (
        *_of_reading(about),
        *_of_tasks(blocks, cluster),
        *_of_pairing(blocks, variances, about["repeated"]),
        *_of_equal_models(blocks, compared),
        *_of_families(blocks, about["n_families"], about["family"]),
        *_of_clusters(blocks, cluster, about["cluster"]),
        *_of_repetition(blocks, about),
        *_of_few_tasks(blocks, variances),
        *_of_odds(blocks, about),
        *_of_tests(blocks, compared, cluster, about),
    )


def _of_reading(about: Mapping[str, Any]) -> list[str]:
    """What was made of the rows and the scores."""
    (low, high), notes = about["scale"], list[str]()
    if about["scale"] != (0.0, 1.0) and not about["graded"]:
        notes.append(f"All scores are {low:g} or {high:g}, which count as 0 and 1: accuracies are shares of {high:g}.")
    if about["n_dropped"]:
        keep = about["drop_duplicates"]
        kept, rows = (
            "the mean of its scores" if keep == "mean" else f"its {keep} row",
            counted(about["n_dropped"], "row"),
        )
        notes.append(f"{rows} repeated an answer of a model to an item; of each such answer {kept} was kept.")
    if about["rows_are_items"]:
        notes.append("No column of items was named: each row is one, answered by all models.")
    return notes


def _of_tasks(blocks: Blocks, cluster: Index | None) -> list[str]:
    """Tasks without answers, with one item, or of unequal sizes."""
    counts, items, notes = answered(blocks), len(blocks.block), list[str]()
    lacking = list(without_tasks(blocks))
    if lacking:
        notes.append(
            f"{joined(lacking)} {'has' if len(lacking) == 1 else 'have'} no answers on some task, so there is no mean "
            "over these tasks to compare. Leave out the model or those tasks."
        )
    single = [name for name, column in zip(blocks.names, counts.T, strict=True) if (column == 1).any()]
    if len(single) == len(blocks.names):
        leave = f"leave out {advice('argument', name='task')}"
        notes.append(
            "Every task has one item, so there is no test on these tasks: tasks and items are the same sample, and "
            f"only tasks like these can be asked about. To take the items for a sample of one task, {leave}."
        )
    elif single:
        notes.append(
            f"{counted(len(single), 'task')} ({joined(single)}) with one item: nothing says how accuracies vary there, "
            "so there is no test on these tasks. Leave such tasks out, or ask about tasks like these."
        )
    sizes = np.bincount(blocks.block)
    like_one = len(sizes) ** 2 / (1.0 / sizes).sum()  # items whose mean is known as well, if all tasks scatter alike
    if cluster is None and sizes.min() > 1 and items >= UNEQUAL_SIZES * like_one:
        leave = f"leave out {advice('argument', name='task')}"
        notes.append(
            f"Every task counts the same, and they have {sizes.min():,} to {sizes.max():,} items: the mean over these "
            f"tasks is known about as well as from {round(like_one):,} of the {items:,} items. For accuracies over all "
            f"items alike, {leave}."
        )
    return notes


def _of_pairing(blocks: Blocks, variances: Mapping[str, float], repeated: bool) -> list[str]:
    """Whether models answered the same items."""
    counts, items, notes = answered(blocks), len(blocks.block), list[str]()
    has = blocks.n_runs > 0
    common = has.T.astype(float) @ has.astype(float)
    alone = [name for name, of, own in zip(blocks.algorithms, common, np.diag(common), strict=True) if of.sum() == own]
    shared = float((has == (counts > 0).T[blocks.block]).all(axis=1).mean())
    paired = len(alone) < len(blocks.algorithms)
    if not paired:
        notes.append(
            "No item was answered by two models: they are compared by their means, not item by item. If the items are "
            "the same, give them the same names: the comparison would be sharper."
        )
    elif alone:
        notes.append(
            f"{joined(alone)} {'shares' if len(alone) == 1 else 'share'} no item with another model, and "
            f"{'is' if len(alone) == 1 else 'are'} compared by means, not item by item. If the items are the same, "
            "give them the same names: the comparison would be sharper."
        )
    elif shared < 1.0:
        notes.append(
            f"{percent(1.0 - shared)} of the items lack the answer of a model that has others of their task. "
            "They count by means, which is right if they are missing by chance."
        )
    if repeated:
        notes.append("Items with the same name in several tasks are different items.")
    if variances and paired and items >= MANY_ITEMS and (counts > 1).any() and variances["item"] == 0.0:
        notes.append(
            "Models are no more alike on the same item than on others of its task, which is rare: do items of one "
            "name hold the same question for every model?"
        )
    return notes


def _of_equal_models(blocks: Blocks, compared: pd.DataFrame) -> list[str]:
    """Pairs without a difference on any item."""
    differ = compared["n_differ"]
    equal = compared[(differ == 0) & compared["p_value_these"].isna()]
    alike = [f"{left} and {right}" for left, right in zip(equal["left"], equal["right"], strict=True)]
    if not alike:
        return []
    return [
        f"{'; '.join(alike[:5])}{'; ...' * (len(alike) > 5)}: the same score on every item, so there is nothing "
        f"to test on {_here(blocks)}."
    ]


def _of_clusters(blocks: Blocks, cluster: Index | None, column: Any) -> list[str]:
    """Tasks all of whose items are of one cluster."""
    if cluster is None:
        return []
    single_cluster = (sampled(blocks, cluster) == 1).any(axis=0)
    narrow = [name for name, one in zip(blocks.names, single_cluster, strict=True) if one]
    if not narrow:
        return []
    return [
        f"{counted(len(narrow), 'task')} ({joined(narrow)}) with one {spoken(column)} of items: nothing says how "
        "scores vary over others, so there is no test on these tasks. Leave such tasks out."
    ]


def _of_repetition(blocks: Blocks, about: Mapping[str, Any]) -> list[str]:
    """Attempts at an item, and judges of an answer."""
    notes, fewest = [], int(blocks.n_runs.min(initial=2, where=blocks.n_runs > 0))
    if about["epoch"] is not None and not about["graded"] and fewest > 1:
        notes.append(f"pass@k, pass^k and how many attempts are worth it: {advice('attempts')}.")
    n_judges = about["n_judges"]
    if 0 < n_judges < FEWEST_JUDGES:
        notes.append(
            ("1 judge: results hold for this judge " if n_judges == 1 else
             f"{n_judges} judges: scores are means over them, and results hold for these judges ")
            + f"({FEWEST_JUDGES} or more would be taken as a sample)."
        )  # fmt: skip
    return notes


def _of_few_tasks(blocks: Blocks, variances: Mapping[str, float]) -> list[str]:
    """What few tasks do not show of tasks like these."""
    notes = []
    if variances and (answered(blocks) > 1).any() and variances["task:model"] == 0.0:
        notes.append(
            "The variation of advantages between tasks is estimated as zero, beyond what items explain. With few tasks "
            "this is absence of evidence, not evidence of absence."
        )
    if 1 < len(blocks.names) < 5:
        notes.append(
            f"{counted(len(blocks.names), 'task')} say little about tasks like these: differences must be large."
        )
    return notes


def _of_odds(blocks: Blocks, about: Mapping[str, Any]) -> list[str]:
    """What odds do near the ends of the scale, and where they would find more."""
    notes = []
    no_errors = without_errors(blocks) if about["odds"] else 0
    if no_errors:
        sd = unbiased_logits(blocks)[2]
        rest = (
            "Tests hold; accuracies may be nearer to their end, and large odds ratios larger, than their intervals say."
            if sd is None
            else "That is corrected, with log odds of tasks taken for normal (standard deviation "
            f"{written(sd, '.2g')})."
        )
        notes.append(
            f"{counted(no_errors, 'pair')} of model and task without a wrong, or without a right, answer: half an "
            f"answer added to each draws odds towards one. {rest}"
        )
    if about["odds"] and has_runs_of_items(blocks):
        notes.append(NO_ODDS_OF_RUNS)
    elif (
        not (about["odds"] or about["binomial"] or about["graded"])
        and about["n_judges"] < FEWEST_JUDGES
        and odds_are_sharper(blocks)
    ):
        notes.append(
            "Accuracies are near the end of the scale on few tasks of unequal difficulty, where a comparison by odds "
            f"often finds more for tasks like these: {advice('value', name='scale', value='odds')}."
        )
    return notes


def _of_tests(blocks: Blocks, compared: pd.DataFrame, cluster: Index | None, about: Mapping[str, Any]) -> list[str]:
    """Where the test of a pair is rough, and which other one fits; which model was taken."""
    differ, notes = compared["n_differ"], list[str]()
    few = int(((differ > 0) & (differ < FEW_DIFFERING) & compared["p_value_these"].notna()).sum())
    if few:
        notes.append(
            f"{counted(few, 'pair')} of models {'differs' if few == 1 else 'differ'} on fewer than {FEW_DIFFERING} "
            f"items: there the test on {_here(blocks)} is rough. " + advice("n_differ")
        )
    if about["binomial"] and about["method"] == "auto":
        notes.append(
            "The binomial model is used for tasks like these, since accuracies are near the end of the scale on few "
            f"tasks. The linear model: {advice('value', name='method', value='linear')}."
        )
    one_answer = cluster is None and about["epoch"] is None and not about["n_judges"] and not about["graded"]
    if few and one_answer and len(blocks.names) == 1 and len(blocks.algorithms) == 2:
        notes.append("The exact test of these items (McNemar's): " + advice("mcnemar") + ".")
    return notes


def _here(blocks: Blocks) -> str:
    return "this task" if len(blocks.names) == 1 else "these tasks"


def binomial_is_sharper(blocks: Blocks) -> bool:
    """Whether the rule of the page "Evaluations" says so, by the answers of all models together, whoever is better."""
    p = float(np.nanmean(task_means(blocks)))
    return 1 < len(blocks.names) <= MOST_TASKS and min(p, 1.0 - p) <= NEAR_END


def odds_are_sharper(blocks: Blocks) -> bool:
    """Whether the rule of the page "Evaluations" says so, by the answers of all models together, whoever is better."""
    n = answered(blocks)
    right, total = np.nansum(task_means(blocks) * n, axis=0), n.sum(axis=0)
    spread = float(np.std(np.log((right + 0.5) / (total - right + 0.5)), ddof=1)) if len(total) > 1 else 0.0
    p = float((right / total).mean())
    return FEWEST_TASKS <= len(total) <= MOST_TASKS and min(p, 1.0 - p) <= NEAR_END and spread >= UNEQUAL


def _of_families(blocks: Blocks, n: int, column: str | None) -> list[str]:
    """For which tasks the second question is answered, where tasks belong to families."""
    if column is None or len(blocks.names) == 1:
        return []
    name, families = spoken(column), plural(column)
    if n == len(blocks.names):
        return [f"Each {name} has one task, so tasks are what {families} would be, and {families} are left out."]
    if blocks.family is None:
        few = f"{counted(n, name)}; {FEWEST_FAMILIES} or more are taken for one"
        return [
            f"There are too few {families} to be a sample ({few}), so conclusions about tasks like these apply to new "
            f"tasks of {'this' if n == 1 else 'these'} {name if n == 1 else families}, not to new {families}."
        ]
    without = f"leave out {advice('argument', name='family')}"
    return [
        f"The {n} {families} are the sample of the second question: it is about tasks of new {families}. More tasks of "
        f"the same {families} make the answer hardly more precise; more {families} do. To take all tasks for one "
        f"sample, {without}."
    ]
