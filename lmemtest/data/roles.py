"""Roles of columns: guessed from names and from structure; and columns without a role that structure the rows.

A column without a role *structures the rows* if rows that agree in all named columns differ in it, and its values are
spread over the algorithms more evenly than chance would, or its name says what it is. Rows that share such a value
share something that the model does not know of, so taking them as independent makes it too sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.data.cells import column_codes, combine_codes
from lmemtest.data.query import collected
from lmemtest.errors import DataError

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

__all__ = [
    "Unnamed",
    "direction_of",
    "guess_roles",
    "options_of",
    "role_of",
    "unnamed_columns",
    "with_roles",
]

Role = Literal["algorithm", "benchmark", "seed", "budget", "metafeatures"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What people call their columns, in the singular; the last word of a name decides, as in "benchmark_seed".
_NAMES: dict[str, frozenset[str]] = {
    "algorithm": _words(
        "algorithm algo alg method model optimizer optimiser tool classifier regressor estimator learner agent solver "
        "approach system sampler policy llm technique searcher heuristic"
    ),
    "benchmark": _words(
        "benchmark bench dataset task problem env environment game instance question item prompt function objective "
        "scenario corpus"
    ),
    "seed": _words(
        "seed fold rep repeat repetition replicate replication run trial resample rerun attempt cv random_state"
    ),
    "budget": _words(
        "budget epoch step iteration iter time fidelity evaluation eval nfev nfe timestep frame walltime elapsed "
        "wallclock duration generation round"
    ),
    "choice": _words("metric measure criterion split subset phase partition"),
}
_TAILS = _words("id ids name names nr no num number idx index key label code")
_HIGH = _words(
    "accuracy acc f1 auc auroc auprc precision recall return reward r2 bleu rouge iou miou map mcc kappa correct "
    "success win likelihood throughput dice ndcg hypervolume"
)
_LOW = _words(
    "loss error err regret rmse mse mae mape nll perplexity ppl wer cer runtime time latency cost brier logloss crps "
    "par2 par10 duration memory energy fid"
)
_SCORES = _words("score value result performance fitness y")  # names that do not say which end is good
_TURNED = _words("neg negative minus negated")

MANY = 10  # different numbers, from which on they are rather a course than a setting
EVEN = -2.33  # normal quantile: counts as even as these occur by chance in 1 of 100 columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A column without a role that structures the rows: how many values it has, which role it may have (None where none
    is left for it), and whether its name says so.
    """

    name: str
    n_values: int
    role: Role | None
    by_name: bool

    def in_words(self) -> str:
        """The column with its number of values and what it may be."""
        what = {"metafeatures": "a metafeature", None: "a further repetition"}.get(self.role, f"the {self.role}")
        if role_of(self.name) == "choice":
            what = "several scores in one column"
        return f"{self.name!r} ({self.n_values:,} values, {'by its name' if self.by_name else 'perhaps'} {what})"


def words_of(name: str) -> list[str]:
    """The words of a column name, in the singular and lower case.

    >>> words_of("openmlTaskID"), words_of("n_epochs"), words_of("F1 (macro)")
    (['openml', 'task', 'id'], ['n', 'epoch'], ['f1', 'macro'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    return [word[:-1] if word.endswith("s") and word[:-1] in _KNOWN else word for word in words]


_KNOWN = frozenset().union(*_NAMES.values(), _HIGH, _LOW, _SCORES)


def role_of(name: str) -> str | None:
    """The role that a name says, or None.

    >>> [role_of(name) for name in ("dataset_id", "random_state", "used_fidelity", "benchmarkSeed", "model_size")]
    ['benchmark', 'seed', 'budget', 'seed', None]
    """
    words = words_of(name)
    while len(words) > 1 and words[-1] in _TAILS:
        words.pop()
    if not words:
        return None
    ends = {words[-1], "_".join(words[-2:])} | {words[-1].removesuffix(tail) for tail in ("id", "name", "idx")}
    for role, names in _NAMES.items():
        if ends & names:
            return role
    return None


def direction_of(name: str) -> Literal["minimize", "maximize"] | None:
    """Which scores are good, if the name of the score says so.

    >>> [direction_of(name) for name in ("val_accuracy", "test error", "neg_log_loss", "value", "F1-score")]
    ['maximize', 'minimize', None, None, 'maximize']
    """
    words = set(words_of(name))
    high, low = bool(words & _HIGH), bool(words & _LOW)
    if high == low or words & _TURNED:
        return None
    return "maximize" if high else "minimize"


# ------------------------------------------------------------------------------------------ structure without a role


def unnamed_columns(runs: Runs, *, ignored: bool = False, known: Iterable[str] = ()) -> tuple[Unnamed, ...]:
    """The columns without a role that structure the rows, with a guess of the role of each.

    Each would still structure the rows once the ones before it have their roles. With `ignored` those that `Runs` was
    told to ignore are looked at instead; `known` are further columns that a model uses.

    >>> from lmemtest.data.runs import Runs
    >>> table = {"tool": ["A", "B"] * 6, "fold": [0, 0, 1, 1, 2, 2] * 2, "x": ["u"] * 6 + ["v"] * 6, "loss": range(12)}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool")
    >>> [(column.name, column.role) for column in unnamed_columns(runs)]
    [('fold', 'seed'), ('x', 'metafeatures')]
    """
    known = [name for name in known if name in runs.columns and name not in (runs.score, runs.algorithm)]
    given = {runs.score, runs.failed, *runs.study.columns, *known}
    names = [name for name in runs.columns if name not in given and (name in runs.ignore) == ignored]
    table = _counted(runs, names, known)
    roles: dict[str, Any] = {"benchmark": runs.benchmark, "seed": runs.seed, "budget": runs.budget}
    metafeatures = list(dict.fromkeys([*runs.family, *runs.metafeatures, *known]))
    found: list[Unnamed] = []
    while candidates := [c for name in table.columns if (c := table.judged(name, runs, roles, metafeatures))]:
        column = min(candidates, key=_rank)
        found.append(column)
        table.columns.remove(column.name)
        if column.role in ("benchmark", "seed", "budget"):
            roles[column.role] = column.name
        else:
            metafeatures.append(column.name)
    return tuple(found)


def _rank(column: Unnamed) -> tuple[int, int]:
    """Which column takes its role first: names before structure, benchmarks before the rest, the finest of several."""
    order = ("benchmark", "seed", "budget", "metafeatures", None)
    return order.index(column.role) + 10 * (not column.by_name), -column.n_values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The codes of the columns in question, by combination, with the number of rows of each."""

    columns: list[str]
    codes: dict[str, np.ndarray]
    sizes: dict[str, int]
    text: frozenset[str]
    n: np.ndarray

    def joint(self, names: Iterable[str | None]) -> tuple[np.ndarray, int]:
        """One code for several columns, and the number of their combinations."""
        given = [name for name in names if name is not None]
        code = combine_codes([(self.codes[name], self.sizes[name]) for name in given], len(self.n))
        return code, int(code.max()) + 1

    def fixed_by(self, names: list[Any], column: str) -> bool:
        """Whether the values of these columns leave no choice for another one."""
        return self.joint(names)[1] == self.joint([*names, column])[1]

    def judged(self, name: str, runs: Runs, roles: dict[str, Any], metafeatures: list[str]) -> Unnamed | None:
        """The column with a guess of its role, if it structures the rows."""
        levels, total = self.sizes[name], int(self.n.sum())
        seed, others = roles["seed"], [runs.algorithm, roles["benchmark"], *metafeatures, roles["budget"]]
        if levels < 2 or levels == total or self.fixed_by(others, name):
            return None
        said = role_of(name)
        open_ = not self.fixed_by([*others, seed], name)  # rows that agree in all named columns differ in it
        nested = seed is not None and said != "seed" and levels < self.sizes[seed] and self.fixed_by([seed], name)
        if not (open_ or nested):
            return None
        by_name = said in ("benchmark", "seed") and 2 * levels <= total
        by_name |= said == "budget" and open_ and seed is not None
        even = self.is_even(name, [part for part in (*others, seed) if part is not None])
        if not (by_name or even):
            return None
        return Unnamed(name=name, n_values=levels, role=self.role(name, said, roles), by_name=said is not None)

    def role(self, name: str, said: str | None, roles: dict[str, Any]) -> Any:
        if said in ("benchmark", "seed", "budget") and roles[said] is None:
            return said if said != "budget" or name not in self.text else "metafeatures"
        if said == "seed":
            return None
        if said is None and name in self.text and roles["benchmark"] is None and self.sizes[name] > 2:
            return "benchmark"
        counts = said is None and name not in self.text and self.sizes[name] >= MANY  # such as the number of a trial
        return "budget" if counts and roles["seed"] is not None and roles["budget"] is None else "metafeatures"

    def is_even(self, name: str, keys: list[str]) -> bool:
        """Whether the rows of the other columns are spread over its levels more evenly than by chance.

        Pearson's statistic of independence is far *below* its degrees of freedom where somebody laid out the table
        (Wilson and Hilferty's normal approximation of chi-squared).
        """
        for some in (keys, keys[:-1], keys[:1]):  # all named columns, without the seed, the algorithms
            key, n_keys = self.joint(some)
            if n_keys * self.sizes[name] <= 4 * len(self.n) + 1024:
                break
        else:
            return False  # nearly every row has a value of its own
        counts = np.bincount(
            key * self.sizes[name] + self.codes[name], weights=self.n, minlength=n_keys * self.sizes[name]
        ).reshape(n_keys, -1)
        expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
        df = (n_keys - 1) * (counts.shape[1] - 1)
        ratio = float(np.sum((counts - expected) ** 2 / expected)) / df
        spread = 2.0 / (9.0 * df)
        return bool((np.cbrt(ratio) - (1.0 - spread)) / np.sqrt(spread) < EVEN)


def _counted(runs: Runs, names: list[str], known: list[str]) -> _Counted:
    """The columns that have more than one value and fewer than there are rows, coded."""
    named = list(dict.fromkeys([*runs.study.columns, *known]))
    frame = runs.frame
    if isinstance(frame, nw.LazyFrame):
        if names:
            distinct = frame.select(*(nw.col(name).n_unique().alias(f"d{i}") for i, name in enumerate(names)))
            counts = collected(distinct).rows()[0]
            names = [name for name, count in zip(names, counts, strict=True) if 1 < count <= runs.n_rows / 2]
        groups = runs.study.detailed.groups((*named, *names))
        table, n = groups.keys.frame(), groups.n
    else:
        table = frame.select(*dict.fromkeys((*named, *names))).to_pandas()
        n = np.ones(len(table))
    codes, sizes, text = {}, {}, []
    for name in (*named, *names):
        try:
            code, levels = column_codes(table[name])
        except DataError:  # missing values, lists: no column that lays out a table
            continue
        codes[name], sizes[name] = code.astype(np.int64), len(levels)
        if not pd.api.types.is_numeric_dtype(table[name].dtype):
            text.append(name)
    kept = [name for name in names if name in codes and 1 < sizes[name] < runs.n_rows]
    return _Counted(columns=kept, codes=codes, sizes=sizes, text=frozenset(text), n=n)


# ----------------------------------------------------------------------------------------------------- what is said


def with_roles(runs: Runs, columns: Iterable[Unnamed]) -> dict[str, Any]:
    """The roles of the runs with those that were guessed; what has none is ignored."""
    roles = runs.roles()
    for column in columns:
        if column.role is None:
            roles["ignore"] = (*roles["ignore"], column.name)
        elif column.role == "metafeatures":
            roles["metafeatures"] = (*roles["metafeatures"], column.name)
        else:
            roles[column.role] = column.name
    return roles


def options_of(columns: Iterable[Unnamed]) -> list[str]:
    """The guessed roles as options of the command line."""
    options: list[str] = []
    for column in columns:
        option = {"metafeatures": "--metafeature", None: "--ignore"}.get(column.role, f"--{column.role}")
        options += [option, column.name]
    return options


def call_of(roles: dict[str, Any]) -> str:
    """The roles as a call of `Runs`."""
    given = [f"{name}={list(value) if isinstance(value, tuple) else value!r}" for name, value in stated(roles).items()]
    return f"Runs(table, {', '.join(given)})"


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


def stated(roles: dict[str, Any]) -> dict[str, Any]:
    """The roles that are not what `Runs` takes without a word."""
    return {
        name: value
        for name, value in roles.items()
        if (value is False if name == "seed_shared" else value not in (None, ()))
    }


# ------------------------------------------------------------------------------------------------ guessing all roles


def guess_roles(table: pd.DataFrame, given: dict[str, Any]) -> dict[str, Any]:
    """Complete the arguments of `Runs` from names and structure; score, direction and algorithm may still be None.

    >>> table = pd.DataFrame({"tool": ["A", "B"] * 4, "task": list("uuuuvvvv"), "rep": [0, 0, 1, 1] * 2,
    ...                       "loss": [0.1, 0.2, 0.15, 0.1, 0.4, 0.3, 0.2, 0.1]})
    >>> roles = guess_roles(table, {"score": None, "direction": None, "algorithm": None})
    >>> {role: name for role, name in roles.items() if name}
    {'score': 'loss', 'direction': 'minimize', 'algorithm': 'tool', 'benchmark': 'task', 'seed': 'rep'}
    """
    from lmemtest.data.runs import Runs
    from lmemtest.errors import LmemtestError

    roles = {**dict.fromkeys(("score", "direction", "algorithm", "benchmark", "seed", "budget")), **given}
    taken = {name for name in roles.values() if isinstance(name, str)}
    taken |= {name for role in ("family", "metafeatures") for name in roles.get(role) or ()}
    flat = [n for n in table.columns if not table[n].map(lambda cell: isinstance(cell, (list, dict))).any()]
    free = [str(name) for name in flat if str(name) not in taken]
    if roles["score"] is None:
        roles["score"] = _guessed_score(table, free)
    if roles["direction"] is None and roles["score"] is not None:
        roles["direction"] = direction_of(roles["score"])
    if roles["algorithm"] is None:
        roles["algorithm"] = _guessed_algorithm(table, [name for name in free if name != roles["score"]])
    if roles["score"] is None or roles["algorithm"] is None:
        return roles
    try:
        runs = Runs(table, **{**roles, "direction": roles["direction"] or "minimize"})
        columns = unnamed_columns(runs)
    except LmemtestError:  # told when the runs are made in earnest
        return roles
    found = {**with_roles(runs, columns), "direction": roles["direction"]}
    return {name: value for name, value in found.items() if name in given or name != "seed_shared"}


def _guessed_score(table: pd.DataFrame, free: list[str]) -> str | None:
    """The only numeric column that is called like a score; names that say which end is good go first."""
    numeric = [name for name in free if pd.api.types.is_numeric_dtype(table[name].dtype)]
    numeric = [name for name in numeric if not pd.api.types.is_bool_dtype(table[name].dtype)]
    for good in (
        lambda name: direction_of(name) is not None and role_of(name) is None,
        lambda name: bool(set(words_of(name)) & _SCORES),
        lambda name: direction_of(name) is not None,
        lambda name: role_of(name) is None and table[name].nunique() > 2,
    ):
        found = [name for name in numeric if good(name)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _guessed_algorithm(table: pd.DataFrame, free: list[str]) -> str | None:
    """The column that is called like an algorithm, or the only one of text."""
    found = [name for name in free if role_of(name) == "algorithm" and table[name].nunique() > 1]
    if len(found) > 1:  # a model is one where nothing is called an algorithm
        found = [name for name in found if {"algorithm", "algo", "alg"} & set(words_of(name))]
    if not found:
        text = [name for name in free if not pd.api.types.is_numeric_dtype(table[name].dtype)]
        found = [name for name in text if role_of(name) is None and 1 < table[name].nunique() < len(table)]
    return found[0] if len(found) == 1 else None
