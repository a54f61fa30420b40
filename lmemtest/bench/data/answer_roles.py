"""Answers of models to items - solved or not, or rated by judges - and the roles of their columns by structure.

The item is the column whose values most models have answered and that tells most rows apart; a task groups items, or
numbers them again. Names decide only between columns that structure leaves alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.roles import direction_of, is_text, role_of, words_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["answer_roles"]


def _words(text: str) -> list[str]:
    return text.split()


JUDGES = frozenset(_words("judge rater annotator grader evaluator reviewer assessor labeler labeller marker referee"))
RATINGS = frozenset(_words("rating score grade points stars mark quality helpfulness likert"))
TASKS = frozenset(_words("task subject category benchmark dataset domain topic suite area skill capability field"))
EPOCHS = frozenset(_words("epoch attempt sample trial run repeat repetition rep seed try generation"))
MODELS = frozenset(_words("model llm system agent method"))
SCALES = ((1.0, 5.0), (1.0, 7.0), (1.0, 10.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))  # of ratings, in whole numbers
FEWEST_ITEMS = 10  # fewer 0/1 values are rather runs that ended well or not
FEWEST_WIDE = 10  # rows of a table with a column of 0/1 answers per model


def answer_roles(table: pd.DataFrame, given: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The arguments of `evaluate` that columns suggest, beside the given ones; None if these are no such answers.

    >>> import itertools
    >>> import pandas as pd
    >>> rows = [(m, t, f"{t}{i}", (i + len(m)) % 2) for m, t, i in itertools.product(["a", "bb"], "xy", range(20))]
    >>> answer_roles(pd.DataFrame(rows, columns=["llm", "area", "nr", "solved"]))
    {'model': 'llm', 'item': 'nr', 'task': 'area', 'score': 'solved'}
    """
    said = {name: value for name, value in (given or {}).items() if value is not None}
    free = [n for n in map(str, table.columns) if n not in said.values() and not _is_nested(table[n])]
    model = said.get("model") or _model(table, free)
    if model is None:
        return _wide(table, free, said)
    if not isinstance(model, str):
        return None
    free = [name for name in free if name != model]
    judge = said.get("judge") or next((n for n in free if set(words_of(n)) & JUDGES and table[n].nunique() > 1), None)
    free = [name for name in free if name != judge]
    score = said.get("score") or _score(table, free, rated=judge is not None)
    if score is None:
        return None
    free = [name for name in free if name != score]
    found: dict[str, Any] = {"model": model}
    item = said.get("item") or _item(table, free, model)
    if item is None:
        return None
    found["item"] = item
    free = [name for name in free if name != item]
    keys = [name for name in (model, item, judge) if name is not None]
    tasks = [said["task"]] if "task" in said else _tasks(table, free, item, keys)
    found |= dict(zip(("task", "family"), tasks, strict=False))
    free = [name for name in free if name not in tasks]
    keys += tasks[:1]
    epoch = said.get("epoch") or _epoch(table, free, keys)
    found |= {"score": score, **({"epoch": epoch} if epoch else {}), **({"judge": judge} if judge else {})}
    return {**found, **_scale(table[score]), **said}


def _is_nested(column: pd.Series[Any]) -> bool:
    """Whether a column holds lists or dictionaries; its first values tell."""
    return column.dtype == object and any(isinstance(value, (list, dict, tuple, set)) for value in column.head(100))


def is_solved_or_not(column: pd.Series[Any]) -> bool:
    """Whether a column holds 0 and 1, or yes and no, and both."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    values = column.dropna().unique()
    return len(values) == 2 and {float(value) for value in values} == {0.0, 1.0}


def _model(table: Any, free: list[str]) -> str | None:
    """The column that is called like a model and has few values."""
    found = [n for n in free if role_of(n) == "algorithm" and 1 < table[n].nunique() <= len(table) / FEWEST_ITEMS]
    named = [name for name in found if set(words_of(name)) & MODELS] or found
    return named[0] if named else None


def _score(table: Any, free: list[str], *, rated: bool) -> str | None:
    """The column of 0 and 1; else one between them that is called a score, or where there are judges, of ratings."""
    import pandas as pd

    solved = [n for n in free if is_solved_or_not(table[n]) and role_of(n) is None and not set(words_of(n)) & EPOCHS]
    if len(solved) > 1:
        solved = [n for n in solved if direction_of(n) == "maximize" or set(words_of(n)) & RATINGS] or solved
    if solved:
        return solved[0] if len(solved) == 1 else None
    numeric = [n for n in free if pd.api.types.is_numeric_dtype(table[n].dtype) and role_of(n) is None]
    found = [name for name in numeric if set(words_of(name)) & RATINGS or direction_of(name) == "maximize"]
    if not rated:  # graded answers, between 0 and 1
        found = [name for name in found if table[name].min() >= 0.0 and table[name].max() <= 1.0]
    elif not found:
        found = numeric
    return found[0] if len(found) == 1 else None


def _item(table: Any, free: list[str], model: str) -> str | None:
    """The column with most values that several models have answered each."""
    n_models, best = table[model].nunique(), list[tuple[int, bool, int, str]]()
    for name in free:
        if role_of(name) == "seed" or set(words_of(name)) & EPOCHS:
            continue
        by = table.groupby(name, sort=False)[model].nunique()
        if len(by) >= FEWEST_ITEMS and (by > n_models / 2).mean() > 0.5:
            best.append((-len(by), role_of(name) != "benchmark", len(best), name))
    return min(best)[-1] if best else None


def _tasks(table: Any, free: list[str], item: str, keys: list[str]) -> list[str]:
    """The columns that group items or number them again, tasks before the families of these.

    A column of numbers in which items come again rather counts attempts.
    """
    epochs = [name for name in free if set(words_of(name)) & EPOCHS]
    repeated = bool(table.duplicated([*keys, *epochs]).any())
    n_items, found = table[item].nunique(), []
    for name in free:
        n, called = table[name].nunique(), bool(set(words_of(name)) & TASKS)
        if n < 2 or name in epochs or role_of(name) == "seed" or table[name].isna().any():
            continue
        groups = len(table[[item, name]].drop_duplicates()) == n_items and n <= n_items / 2
        again = repeated and (called or is_text(table[name])) and not table.duplicated([*keys, name, *epochs]).any()
        if groups or (again and n < len(table) / 2):
            found.append((not called, -n, name))
    names = [name for *_, name in sorted(found)]
    above = [n for n in names[1:] if len(table[[names[0], n]].drop_duplicates()) == table[names[0]].nunique()]
    return names[:1] + [name for name in above if table[name].nunique() < table[names[0]].nunique()][:1]


def _epoch(table: Any, free: list[str], keys: list[str]) -> str | None:
    """The column that numbers the rows of one answer."""
    if not table.duplicated(keys).any():
        return None
    found = [name for name in free if not table.duplicated([*keys, name]).any() and table[name].nunique() < len(table)]
    named = [name for name in found if set(words_of(name)) & EPOCHS]
    return next(iter(named or found), None)


def _scale(scores: pd.Series[Any]) -> dict[str, float]:
    """The ends of a scale of ratings in whole numbers: the narrowest usual one that holds them."""
    values = scores.dropna()
    if not len(values) or (values.min() >= 0.0 and values.max() <= 1.0) or (values % 1.0 != 0.0).any():
        return {}
    low, high = next((ends for ends in SCALES if ends[0] <= values.min() and values.max() <= ends[1]), (0.0, 0.0))
    return {} if low == high else {**({"min_score": low} if low else {}), "max_score": high}


def _wide(table: Any, free: list[str], said: dict[str, Any]) -> dict[str, Any] | None:
    """A column of 0/1 answers for each model; without a column of items the rows are the items."""
    import pandas as pd

    solved = [name for name in free if is_solved_or_not(table[name]) and role_of(name) is None]
    others = [name for name in free if name not in solved]
    numeric = [name for name in others if pd.api.types.is_float_dtype(table[name].dtype)]
    if len(solved) < 2 or len(table) < FEWEST_WIDE or numeric or "score" in said:
        return None
    ids = [name for name in others if table[name].is_unique]
    tasks = [
        n for n in others if n not in ids and 1 < table[n].nunique() <= len(table) / 2 and not table[n].isna().any()
    ]
    found: dict[str, Any] = {"model": solved}
    if ids:
        found["item"] = min(ids, key=lambda name: role_of(name) != "benchmark")
    if tasks:
        found["task"] = min(tasks, key=lambda name: not set(words_of(name)) & TASKS)
    return {**found, **said}
