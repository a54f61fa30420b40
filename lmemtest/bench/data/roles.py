"""Columns without a role that structure the rows, and the roles that they may have.

A column without a role *structures the rows* if rows that agree in all named columns differ in it, and its values are
spread over the algorithms more evenly than chance would, or its name says what it is. Rows that share such a value
share something that the model does not know of, so taking them as independent makes it too sure.

Answers of models to items - solved or not, or rated by judges - and the roles of their columns by structure.
The item is the column whose values most models have answered and that tells most rows apart; a task groups items, or
numbers them again. Names decide only between columns that structure leaves alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.data.column import direction_of, is_text, role_of, vocabulary, words_of
from lmemtest.bench.data.runs import stated
from lmemtest.core.codes import column_codes, combine_codes
from lmemtest.core.frames import collected
from lmemtest.errors import DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

    Coded = dict[str, tuple[np.ndarray, int, str]]
    import pandas as pd


Role = Literal["algorithm", "benchmark", "seed", "budget", "metafeatures"]


MANY = 10  # different numbers, from which on they are rather a course than a setting
SHARED = 0.1  # of all pairs of a run and a budget that occur at least, where runs share their budgets
EVEN = -2.33  # normal quantile: counts as even as these occur by chance in 1 of 100 columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A column without a role that structures the rows: how many values it has, which role it may have, whether its
    name says so, and whether it joins other columns of seeds.
    """

    name: str
    n_values: int
    role: Role
    by_name: bool
    joins: bool = False

    def in_words(self) -> str:
        """The column with its number of values and what it may be."""
        what = {"metafeatures": "a metafeature"}.get(str(self.role), f"the {self.role}")
        what = "a part of the seed" if self.joins else what
        if role_of(self.name) == "choice":
            what = "several scores in one column"
        return f"{self.name!r} ({self.n_values:,} values, {'by its name' if self.by_name else 'perhaps'} {what})"


# ------------------------------------------------------------------------------------------ structure without a role


def unnamed_columns(runs: Runs, *, ignored: bool = False, known: Iterable[str] = ()) -> tuple[Unnamed, ...]:
    """The columns without a role that structure the rows, with a guess of the role of each.

    Each would still structure the rows once the ones before it have their roles. With `ignored` those that `Runs` was
    told to ignore are looked at instead; `known` are further columns that a model uses.

    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["A", "B"] * 6, "fold": [0, 0, 1, 1, 2, 2] * 2, "x": ["u"] * 6 + ["v"] * 6, "loss": range(12)}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool")
    >>> [(column.name, column.role) for column in unnamed_columns(runs)]
    [('fold', 'seed'), ('x', 'metafeatures')]
    """
    known = [name for name in known if name in runs.columns and name not in (runs.score, runs.algorithm)]
    given = {runs.score, runs.failed, *runs.study.columns, *runs.seeds, *known}
    names = [name for name in runs.columns if name not in given and (name in runs.ignore) == ignored]
    names, coded, n = _coded(runs, names, known)
    seeds = [runs.seed] if runs.seed is not None else []
    roles: dict[str, Any] = {"benchmark": runs.benchmark, "seed": seeds, "budget": runs.budget}
    metafeatures = list(dict.fromkeys([*runs.family, *runs.metafeatures, *known]))
    found: list[Unnamed] = []
    judged = partial(_judged, runs=runs, coded=coded, n=n, roles=roles, metafeatures=metafeatures)
    while candidates := [*filter(None, map(judged, names))] or [*filter(None, map(partial(judged, last=True), names))]:
        # a column that names whole runs, such as ``sgd_cifar10_s0``, leaves no choice for the algorithm, and comes last
        benchmarks = [column.name for column in candidates if column.role == "benchmark" and column.by_name]
        column = min(
            candidates,
            key=lambda column: (
                _fixed_by(coded, [column.name], runs.algorithm),
                any(_numbers_within(column.name, other, coded) for other in benchmarks),
                *_rank(column),
            ),
        )
        found.append(column)
        names.remove(column.name)
        if column.role == "seed":
            roles["seed"].append(column.name)
        elif column.role in ("benchmark", "budget"):
            roles[column.role] = column.name
        else:
            metafeatures.append(column.name)
    return tuple(found)


def _rank(column: Unnamed) -> tuple[int, int]:
    """Which column takes its role first: names before structure, benchmarks before the rest, the finest of several."""
    order = ("benchmark", "seed", "budget", "metafeatures")
    return order.index(column.role) + 10 * (not column.by_name), -column.n_values


def _joint(coded: Coded, names: Iterable[str | None]) -> tuple[np.ndarray, int]:
    """One code for several columns, and the number of their combinations."""
    code = combine_codes([coded[name][:2] for name in names if name is not None], _n_cells(coded))
    return code, int(code.max()) + 1


def _n_cells(coded: Coded) -> int:
    return len(next(iter(coded.values()))[0])


def _fixed_by(coded: Coded, names: Iterable[str | None], column: str) -> bool:
    """Whether the values of these columns leave no choice for another one."""
    names = list(names)
    return _joint(coded, names)[1] == _joint(coded, [*names, column])[1]


def _judged(
    name: str,
    runs: Runs,
    coded: Coded,
    n: np.ndarray,
    roles: dict[str, Any],
    metafeatures: list[str],
    last: bool = False,
) -> Unnamed | None:
    """The column with a guess of its role, if it structures the rows; `last` where no other one does."""
    (_, levels, kind), total, seeds = coded[name], int(n.sum()), roles["seed"]
    others = [runs.algorithm, roles["benchmark"], *metafeatures, roles["budget"]]
    if levels < 2 or levels == total or _fixed_by(coded, others, name):
        return None
    says = role_of(name)
    open_ = not _fixed_by(coded, [*others, *seeds], name)  # rows that agree in all named columns differ in it
    nested = bool(seeds) and says != "seed" and levels < _joint(coded, seeds)[1] and _fixed_by(coded, seeds, name)
    if not (open_ or nested):
        return None
    keys = [part for part in (*others, *seeds) if part is not None]
    course = says == "budget" and kind != "text" and _is_course(name, keys, coded)
    if says == "budget" and kind != "text" and not course:
        return None  # a time that was measured
    by_name = says in ("benchmark", "seed") and 2 * levels <= total
    by_name |= course and open_ and bool(seeds)
    completes = last and open_ and kind == "text" and _completes(name, keys, coded, n)
    if not (by_name or completes or _is_even(name, keys, coded, n)):
        return None
    role: Role = "metafeatures"  # unless its name says one that is not taken, or its values suggest one
    if says == "seed" or (says == "benchmark" and _numbers_within(name, roles["benchmark"], coded)):
        role = "seed"
    elif says in ("benchmark", "budget") and roles[says] is None:
        role = "benchmark" if says == "benchmark" else "budget" if kind != "text" else "metafeatures"
    elif says is None and kind == "text" and roles["benchmark"] is None and levels > 2:
        role = "benchmark"
    elif says is None and kind != "text" and levels >= MANY:  # such as the number of a trial
        role = "budget" if seeds and roles["budget"] is None else "metafeatures"
    elif says is None and kind == "counting" and levels > 2 and not seeds:
        role = "seed"
    return Unnamed(
        name=name, n_values=levels, role=role, by_name=says is not None, joins=role == "seed" and bool(seeds)
    )


def _numbers_within(name: str, other: str | None, coded: Coded) -> bool:
    """Whether a column counts what the names in another one have, each from the start: question 3 of every task."""
    if other is None or (coded[name][2], coded[other][2]) != ("counting", "text"):
        return False
    return not _fixed_by(coded, [name], other)


def _is_course(name: str, keys: list[str], coded: Coded) -> bool:
    """Whether numbers are where runs were scored, not what was measured: many runs share them, or they rise in each."""
    run, n_runs = _joint(coded, keys)
    n_pairs, n_values = _joint(coded, [*keys, name])[1], coded[name][1]
    if n_pairs >= max(2 * n_values, SHARED * n_values * n_runs):
        return True
    if len(run) < 3 * n_runs:
        return False
    order = np.argsort(run, kind="stable")
    steps = np.diff(coded[name][0][order])[np.diff(run[order]) == 0]
    return bool((steps >= 0).all())


def _completes(name: str, keys: list[str], coded: Coded, n: np.ndarray) -> bool:
    """Whether no two rows agree any more with this column, which most algorithms share: it tells tasks of one name
    apart."""
    algorithm, (_, levels, _) = keys[0], coded[name]
    shared = 2 * _joint(coded, [algorithm, name])[1] > coded[algorithm][1] * levels
    return shared and bool((n == 1).all()) and _joint(coded, [*keys, name])[1] == len(n)


def _is_even(name: str, keys: list[str], coded: Coded, n: np.ndarray) -> bool:
    """Whether the rows of the other columns are spread over its levels more evenly than by chance.

    Pearson's statistic of independence is far *below* its degrees of freedom where somebody laid out the table
    (Wilson and Hilferty's normal approximation of chi-squared).
    """
    codes, levels, _ = coded[name]
    for kept in range(len(keys), 0, -1):  # all named columns, then without the seeds, down to the algorithms
        key, n_keys = _joint(coded, keys[:kept])
        if n_keys * levels <= 4 * len(n) + 1024:
            break
    else:
        return False  # nearly every row has a value of its own
    counts = np.bincount(key * levels + codes, weights=n, minlength=n_keys * levels).reshape(n_keys, -1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    df = (n_keys - 1) * (counts.shape[1] - 1)
    ratio = float(np.sum((counts - expected) ** 2 / expected)) / df
    spread = 2.0 / (9.0 * df)
    return bool((np.cbrt(ratio) - (1.0 - spread)) / np.sqrt(spread) < EVEN)


def _coded(runs: Runs, names: list[str], known: list[str]) -> tuple[list[str], Coded, np.ndarray]:
    """The columns that have more than one value and fewer than there are rows; these and those with a role by
    combination, with codes, number of levels and kind; and the number of rows of each combination.
    """
    named = list(dict.fromkeys([*runs.study.columns, *known]))
    frame = runs.frame
    if isinstance(frame, nw.LazyFrame):
        if names:
            asked = [nw.col(name).n_unique().alias(f"d{i}") for i, name in enumerate(names)]
            asked += [nw.col(name).null_count().alias(f"m{i}") for i, name in enumerate(names)]
            counts = collected(frame.select(*asked)).rows()[0]
            distinct = zip(names, counts[: len(names)], counts[len(names) :], strict=True)
            names = [
                name for name, n_levels, n_missing in distinct if 1 < n_levels <= runs.n_rows / 2 and not n_missing
            ]
        groups = runs.study.detailed.groups((*named, *names))
        table, n = groups.keys.frame(), groups.n
    else:
        table = frame.select(*dict.fromkeys((*named, *names))).to_pandas()
        n = np.ones(len(table))
    coded: Coded = {}
    for name in (*named, *names):
        try:
            codes, levels = column_codes(table[name])
        except DataError:  # missing values, lists: no column that lays out a table
            continue
        kind = "number"
        if not pd.api.types.is_numeric_dtype(table[name].dtype):
            kind = "text"
        elif float(levels[0]) in (0.0, 1.0) and (np.diff(np.asarray(levels, dtype=float)) == 1).all():
            kind = "counting"  # 0, 1, 2 or 1, 2, 3, and so on
        coded[name] = codes.astype(np.int64), len(levels), kind
    return [name for name in names if name in coded and 1 < coded[name][1] < runs.n_rows], coded, n


# ----------------------------------------------------------------------------------------------------- what is said


def with_roles(runs: Runs, columns: Iterable[Unnamed]) -> dict[str, Any]:
    """The roles of the runs with those that were guessed."""
    roles, seeds = runs.roles(), list(runs.seeds)
    for column in columns:
        if column.role == "metafeatures":
            roles["metafeatures"] = (*roles["metafeatures"], column.name)
        elif column.role == "seed":
            seeds.append(column.name)
        else:
            roles[column.role] = column.name
    seeds.sort(key=list(runs.columns).index)
    return {**roles, "seed": tuple(seeds) if len(seeds) > 1 else next(iter(seeds), None)}


def options_of(columns: Iterable[Unnamed]) -> list[str]:
    """The guessed roles as options of the command line."""
    options: list[str] = []
    for column in columns:
        option = "--metafeature" if column.role == "metafeatures" else f"--{column.role}"
        options += [option, column.name]
    return options


def call_of(roles: dict[str, Any]) -> str:
    """The roles as a call of `Runs`."""
    return f"Runs(table, {keywords_of(roles)})"


def keywords_of(roles: dict[str, Any]) -> str:
    """The roles as arguments of a call."""
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in stated(roles).items()}
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def command_of(roles: dict[str, Any]) -> list[str]:
    """The roles as options of the command line.

    >>> command_of({"score": "loss", "family": ("suite", "space"), "seed_shared": False})
    ['--score', 'loss', '--family', 'suite', '--family', 'space', '--seed-own']
    """
    options: list[str] = []
    for name, value in stated(roles).items():
        if name == "seed_shared":
            options.append("--seed-own")
        else:
            option = {"metafeatures": "--metafeature"}.get(name, f"--{name}")
            options += [
                part for column in (value if isinstance(value, tuple) else [value]) for part in (option, column)
            ]
    return options


# ------------------------------------------------------------------------------------------- answers of models to items

JUDGES = vocabulary("judge rater annotator grader evaluator reviewer assessor labeler labeller marker referee")
VOTERS = JUDGES | vocabulary("voter user participant session worker respondent")
PROMPTS = vocabulary("prompt question item instruction query conversation dialogue")
_NUMBERED = vocabulary("id hash key name index number nr")  # what else the name of such a column holds
RATINGS = vocabulary("rating score grade points stars mark quality helpfulness likert")
GRADES = vocabulary("rating grade stars likert")  # whole numbers on a scale, also where no column names a judge
TASKS = vocabulary("task subject category benchmark dataset domain topic suite area skill capability field")
EPOCHS = vocabulary("epoch attempt sample trial run repeat repetition rep seed try generation")
MODELS = vocabulary("model llm system agent method")
_FAILURES = vocabulary("timeout timeouts timed fail fails failed failure failures crash crashes crashed memout oom")
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
    judges = [name for name in free if set(words_of(name)) & JUDGES]
    judge = said.get("judge") or next((name for name in judges if table[name].nunique() > 1), None)
    free = [name for name in free if name not in (judge, *judges)]
    score = said.get("score") or _score(table, free, rated=judge is not None or bool(judges))
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


def battle_roles(table: pd.DataFrame, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of `rate_votes` that columns suggest, beside the given ones; none if no two columns are of models.

    >>> import pandas as pd
    >>> rows = [("A", "B", "left", "u1"), ("B", "A", "tie", "u2"), ("B", "C", "right", "u1")]
    >>> battle_roles(pd.DataFrame(rows, columns=["llm_1", "llm_2", "vote", "user_id"]))
    {'model_a': 'llm_1', 'model_b': 'llm_2', 'winner': 'vote', 'voter': 'user_id'}
    """
    roles = {name: value for name, value in (given or {}).items() if value}
    free = [n for n in map(str, table.columns) if n not in roles.values() and not _is_nested(table[n])]
    battles = ("model_a", "model_b", "winner")
    if not set(battles) <= set(roles):
        usual = {name: name for name in battles if name not in roles}
        roles |= usual if set(usual) <= set(free) else _battles(table, free, roles)
    if not set(battles) <= set(roles):
        return {}
    for role, words in (("prompt", PROMPTS), ("voter", VOTERS)):
        named = [
            n for n in free if n not in roles.values() and words & set(words_of(n)) >= set(words_of(n)) - _NUMBERED
        ]
        column = next((name for name in named if table[name].nunique() > 1), None)
        roles |= {} if role in roles or column is None else {role: column}
    return {name: roles[name] for name in (*battles, "voter", "prompt") if name in roles}


def _battles(table: Any, free: list[str], roles: Mapping[str, Any]) -> dict[str, str]:
    """Two columns with the same names, never in one row, and a column that says which of them won."""
    texts = [roles[name] for name in ("model_a", "model_b") if name in roles]
    texts += [name for name in free if is_text(table[name])]
    for place, first in enumerate(texts):
        names = set(table[first].dropna().unique())
        for second in texts[place + 1 :]:
            others = set(table[second].dropna().unique())
            both, either = names & others, names | others
            if len(both) < 2 or 2 * len(both) < len(either) or (table[first] == table[second]).any():
                continue
            named = [roles["winner"]] if "winner" in roles else [n for n in free if n not in (first, second)]
            winner = next((name for name in named if _says_who_won(table, name, either)), None)
            if winner is not None:
                return {"model_a": first, "model_b": second, "winner": winner}
    return {}


_WON = vocabulary("winner won win preference preferred outcome vote choice verdict result")
OUTCOMES = {
    **dict.fromkeys(["a", "model_a", "first", "left", "1", "1.0", "true"], "a"),
    **dict.fromkeys(["b", "model_b", "second", "right", "0", "0.0", "false"], "b"),
    **dict.fromkeys(["tie", "draw", "both", "neither", "tie (bothbad)", "both bad", "bothbad", "0.5"], "tie"),
}  # what people write of a vote: the first one won, the second one, or neither
_SIDES = {word for word in OUTCOMES if not (word[0].isdigit() or word in ("true", "false"))}


def _says_who_won(table: Any, name: str, names: set[Any]) -> bool:
    values = {str(value).lower() for value in table[name].dropna().unique()[:50]}
    sides = _SIDES | {str(value).lower() for value in (*names, *table.columns)}
    return len(values) <= len(names) + 6 and (values <= sides or bool(set(words_of(name)) & _WON and len(values) <= 6))


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


def _is_all_alike(column: pd.Series[Any]) -> bool:
    """Whether a column holds 0 alone or 1 alone."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    values = column.dropna().unique()
    return len(values) == 1 and float(values[0]) in (0.0, 1.0)


def _model(table: Any, free: list[str]) -> str | None:
    """The column that is called like a model and has few values."""
    found = [n for n in free if role_of(n) == "algorithm" and 1 < table[n].nunique() <= len(table) / FEWEST_ITEMS]
    named = [name for name in found if set(words_of(name)) & MODELS] or found
    return named[0] if named else None


def _score(table: Any, free: list[str], *, rated: bool) -> str | None:
    """The column of 0 and 1; else one between them that is called a score, one of grades, or any of judges' ratings."""
    import pandas as pd

    other = EPOCHS | _FAILURES  # 1 is no right answer
    solved = [n for n in free if is_solved_or_not(table[n]) and role_of(n) is None and not set(words_of(n)) & other]
    if len(solved) > 1:
        solved = [n for n in solved if direction_of(n) == "maximize" or set(words_of(n)) & RATINGS] or solved
    if solved:
        return solved[0] if len(solved) == 1 else None
    numeric = [n for n in free if pd.api.types.is_numeric_dtype(table[n].dtype) and role_of(n) is None]
    found = [name for name in numeric if set(words_of(name)) & RATINGS or direction_of(name) == "maximize"]
    if not rated:  # graded answers, between 0 and 1 or on a scale
        shares = [name for name in found if table[name].min() >= 0.0 and table[name].max() <= 1.0]
        found = shares or [name for name in found if set(words_of(name)) & GRADES and _scale(table[name])]
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

    unnamed = [name for name in free if role_of(name) is None]
    solved = [name for name in unnamed if is_solved_or_not(table[name])]
    if len(solved) > 1:  # then a model that solves all or nothing is a column of their type
        kinds = {table[name].dtype for name in solved}
        solved = [n for n in unnamed if n in solved or (table[n].dtype in kinds and _is_all_alike(table[n]))]
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
