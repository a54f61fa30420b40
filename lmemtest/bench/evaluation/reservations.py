"""What the reader of an evaluation must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.bench.evaluation.answers import FEWEST_JUDGES, Answers
from lmemtest.bench.evaluation.noise import variances_of
from lmemtest.core.caller import advice
from lmemtest.core.words import counted, joined, percent, plural, spoken

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.lmm.model import LmmFit

MANY_ITEMS = 50  # from which on their difficulty is seldom estimated as zero
FEW_DIFFERING = 10  # items on which two models differ, below which t-tests of 0/1 scores are rough


def notes_on(answers: Answers, fit: LmmFit | None, table: pd.DataFrame) -> tuple[str, ...]:
    counts, notes = answers.n_items, []
    low, high = answers.scale
    if answers.scale != (0.0, 1.0):
        notes.append(
            f"Scores from {low:g} to {high:g} count as 0 to 1: a difference of 0.1 is {0.1 * (high - low):g} on their "
            "scale."
        )
    if answers.repeats:
        kept = "the mean of its scores" if answers.kept == "mean" else f"its {answers.kept} row"
        rows = counted(answers.repeats, "row")
        notes.append(f"{rows} repeated an answer of a model to an item; of each such answer {kept} was kept.")
    if answers.rows_are_items:
        notes.append("No column of items was named: each row is one, answered by all models.")
    lacking = list(answers.without_tasks)
    if lacking:
        notes.append(
            f"{joined(lacking)} {'has' if len(lacking) == 1 else 'have'} no answers on some task, so there is no mean "
            "over these tasks to compare. Leave out the model or those tasks."
        )
    single = [name for name, column in zip(answers.tasks, counts.T, strict=True) if (column == 1).any()]
    if len(single) == len(answers.tasks):
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
    alone = _without_partner(answers)
    if not answers.paired:
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
    elif answers.shared < 1.0:
        notes.append(
            f"{percent(1.0 - answers.shared)} of the items lack the answer of a model that has others of their task. "
            "They count by means, which is right if they are missing by chance."
        )
    if answers.repeated_ids:
        notes.append("Items with the same name in several tasks are different items.")
    item_by_item = answers.paired and len(answers.task) >= MANY_ITEMS and bool((counts > 1).any())
    if fit is not None and item_by_item and variances_of(fit, answers)["item"] == 0.0:
        notes.append(
            "Models are no more alike on the same item than on others of its task, which is rare: do items of one "
            "name hold the same question for every model?"
        )
    differ = table["n_differ"]
    equal = table[differ == 0]
    alike = [f"{left} and {right}" for left, right in zip(equal["left"], equal["right"], strict=True)]
    if alike:
        notes.append(
            f"{'; '.join(alike[:5])}{'; ...' * (len(alike) > 5)}: the same score on every item, so there is nothing "
            f"to test on {answers.here}."
        )
    notes += _of_families(answers)
    sampled = (answers.n_sampled == 1).any(axis=0)
    narrow = [name for name, alone in zip(answers.tasks, sampled, strict=True) if alone and answers.clustered]
    if narrow:
        notes.append(
            f"{counted(len(narrow), 'task')} ({joined(narrow)}) with one {spoken(answers.passage)} of items: nothing "
            "says how scores vary over others, so there is no test on these tasks. Leave such tasks out."
        )
    if answers.judges and not answers.judges_are_sample:
        one = len(answers.judges) == 1
        notes.append(
            ("1 judge: results hold for this judge " if one else
             f"{len(answers.judges)} judges: scores are means over them, and results hold for these judges ")
            + f"({FEWEST_JUDGES} or more would be taken as a sample)."
        )  # fmt: skip
    if fit is not None and (counts > 1).any() and variances_of(fit, answers)["task:model"] == 0.0:
        notes.append(
            "The variation of advantages between tasks is estimated as zero, beyond what items explain. With few tasks "
            "that is no proof that there is none."
        )
    if fit is not None and len(answers.tasks) < 5:
        notes.append(
            f"{counted(len(answers.tasks), 'task')} say little about tasks like these: differences must be large."
        )
    few = int(((differ > 0) & (differ < FEW_DIFFERING) & table["p_value_these"].notna()).sum())
    if few:
        notes.append(
            f"{counted(few, 'pair')} of models {'differs' if few == 1 else 'differ'} on fewer than {FEW_DIFFERING} "
            f"items: there the test on {answers.here} is rough. " + advice("n_differ")
        )
    return tuple(notes)


def _of_families(answers: Answers) -> list[str]:
    """For which tasks the second question is answered, where tasks belong to families."""
    n, name, families = len(answers.families), spoken(answers.noun), plural(answers.noun)
    if not n or len(answers.tasks) == 1:
        return []
    if n == len(answers.tasks):
        return [f"Each {name} has one task, so tasks are what {families} would be, and {families} are left out."]
    if not answers.families_are_sample:
        few = f"{counted(n, name)}; {FEWEST_FAMILIES} or more are taken for one"
        return [
            f"There are too few {families} to be a sample ({few}), so conclusions about tasks like these apply to new "
            f"tasks of {'this' if n == 1 else 'these'} {name if n == 1 else families}, not to new {families}."
        ]
    without = f"leave out {advice('argument', name='family')}"
    return [
        f"The {n} {families} are the sample of the second question: it is about tasks of new {families}. More tasks of "
        f"the same {families} make the answer little surer; more {families} do. To take all tasks for one sample, "
        f"{without}."
    ]


def _without_partner(answers: Answers) -> list[str]:
    """Models that have answered no item of another one."""
    has = ~np.isnan(answers.scores)
    common = has.astype(float) @ has.T.astype(float)
    np.fill_diagonal(common, 0.0)
    return [name for name, row in zip(answers.models, common, strict=True) if not row.any()]
