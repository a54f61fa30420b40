"""What a table must fulfil for its columns to have roles: checked once, when `Runs` are made.

Which algorithms met on a benchmark: the rule that decides whether two of them can be compared.
A difference between algorithms that share no benchmark is at the same time one between benchmarks. A model with random
effects of the benchmarks gives it a number all the same, from how benchmarks vary among themselves: right only if
chance had assigned the benchmarks to the algorithms, which nothing in a table shows.

What a table of runs is a sample of: families of benchmarks where there are enough of them, else benchmarks.
A question about benchmarks "like these" treats whatever shares a benchmark as one observation. Where benchmarks come
in families the same question is one about families, with the benchmarks as what varies within them; so the runs with
the families in the place of the benchmarks answer it, and nothing else about a study has to change.
"""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from lmemtest.core.caller import advice, named, setting
from lmemtest.core.codes import missing_values_error, refuse_half_characters
from lmemtest.core.frames import check_numeric, collected, example_value
from lmemtest.core.validate import check_columns, check_direction, check_names
from lmemtest.core.words import format_level, listed, plural, span, spoken
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Mask


NO_ROWS = "The table has no rows; a comparison needs runs of at least two algorithms."
SINGLE_ROLES = ("score", "algorithm", "benchmark", "seed", "budget")

REQUIRED: Any = inspect.Parameter.empty  # of an argument without a default: our own error can then say what to give
BETWEEN_SEEDS = " / "  # in the name and the values of a seed that several columns make up


def required_direction(direction: Any) -> Any:
    """The direction in Optuna's words; one that is not given, or is none, is refused."""
    if direction is REQUIRED:
        raise ArgumentError(
            f"{named('direction')} is required: {setting('direction', 'minimize')} if a low score is good (a loss, a "
            f"regret), {setting('direction', 'maximize')} if a high one is (an accuracy). It decides which algorithm "
            "is called better, and the numbers do not show it."
        )
    return check_direction(direction)


def combined_seeds(seed: Any, columns: Sequence[str]) -> tuple[str | None, nw.Expr | None]:
    """The column of the seeds, and what makes it of several: a value for each of their combinations."""
    if seed is None or (isinstance(seed, str) and seed in columns):
        return seed, None
    names = check_names(seed, "seed")
    if len(names) == 1 and set(names[0].split(BETWEEN_SEEDS)) <= set(columns):  # as `roles` gives them
        names = tuple(names[0].split(BETWEEN_SEEDS))
    name = BETWEEN_SEEDS.join(names)
    if len(names) < 2:
        return name, None
    check_columns(names, columns, argument="seed")
    parts = [nw.col(part).cast(nw.String) for part in names]
    return name, nw.concat_str(parts, separator=BETWEEN_SEEDS).alias(name)


def check_families(runs: Runs) -> None:
    """From coarse to fine: no finer family is in several coarser ones, where its name would stand for several."""
    study = runs.study
    for coarse, fine in pairwise(runs.family):
        if study.count(coarse, fine) == study.count(fine):
            continue
        if study.count(coarse, fine) == study.count(coarse):
            raise DataError(
                f"family must go from coarse to fine, and {plural(coarse)} are parts of {plural(fine)}: name them the "
                f"other way round, {advice('family_order', coarse=fine, fine=coarse)}."
            )
        seen = study.distinct([coarse, fine]).groupby(fine, observed=True).size()
        joined = advice("joined", fine=fine, coarse=coarse)
        raise DataError(
            f"family must go from coarse to fine, and {int((seen > 1).sum())} of {len(seen)} {plural(fine)} are in "
            f"several {plural(coarse)}, such as {format_level(seen.idxmax())!r}. If only their names are the same, "
            f"give them unique names: {joined}. If they do lie across the {plural(coarse)}, name one of the two "
            "columns as the family."
        )


def check_roles(runs: Runs) -> None:
    """Every role names an existing column of its own."""
    columns = runs.frame.collect_schema().names()
    seen: dict[str, str] = {}
    given = [(role, getattr(runs, role)) for role in SINGLE_ROLES]
    several = [(role, name) for role in ("family", "metafeatures") for name in getattr(runs, role)]
    given += [("failed", runs.failed if isinstance(runs.failed, str) and runs.failed in columns else None)]
    for role, column in [*given, *several]:
        if column is None and role in ("benchmark", "seed", "budget", "failed"):
            continue
        check_columns((column,), columns, argument=role)
        if column in seen:
            raise ArgumentError(
                f"{named(role)} and {named(seen[column])} both name the column {column!r}; every role needs its own "
                "column."
            )
        seen[column] = role
    if runs.family and runs.benchmark is None:
        wanted = advice("role", role="benchmark")
        raise ArgumentError(
            f"{named('family')} names {runs.family[0]!r}, which groups benchmarks, but no column of benchmarks "
            f"is named. Name it: {wanted}. If {runs.family[0]!r} is the benchmark itself, give it that role."
        )
    check_columns(runs.ignore, columns, argument="ignore")
    both = [name for name in runs.ignore if name in seen]
    if both:
        raise ArgumentError(
            f"{named('ignore')} names {both[0]!r}, which {named(seen[both[0]])} names too. Leave it out of one of them."
        )


def check_rows(runs: Runs) -> int:
    """The number of rows, more than 0; and no missing values outside the score."""
    if runs.is_lazy:
        n_rows, gaps = _rows_of_query(runs)
    else:  # column by column, as one query over all of them takes longer than the rest of `Runs`
        columns = [runs.frame.get_column(key) for key in runs.study.columns]
        gaps = {column.name: int(_is_missing(column, column.dtype).sum()) for column in columns}
        n_rows = len(runs.frame)
    if not n_rows:
        raise DataError(NO_ROWS)
    for key, count in gaps.items():
        if count:
            raise missing_values_error(key, count)
    return n_rows


def _rows_of_query(runs: Runs) -> tuple[int, dict[str, int]]:
    """The number of rows of a lazy table, and of missing values by column."""
    keys, schema = list(runs.study.columns), runs.frame.collect_schema()
    try:
        by_run = runs.study.by_run()
        if by_run is not None:  # with it all keys were seen but one
            keys = [] if runs.budget is None else [runs.budget]
            if not keys:
                return int(by_run.n.sum()), {}
        # one sum alone: of two, Dask would keep the rows between them, and may send them to another worker
        size = [nw.len().alias("rows")] if by_run is None else []
        gaps = [_is_missing(nw.col(key), schema[key]).cast(nw.Int64).sum() for key in keys]
        gaps = [gap.alias(f"gap{i}") for i, gap in enumerate(gaps)]
        row = collected(runs.frame.select(*size, *gaps)).rows()[0]
    except nw.exceptions.ColumnNotFoundError:
        raise _unquotable([runs.algorithm, *keys]) from None
    counts = dict(zip(keys, (int(count or 0) for count in row[-len(keys) :]), strict=True))
    return int(row[0] if by_run is None else by_run.n.sum()), counts


def _unquotable(keys: Sequence[str]) -> DataError:
    """All names were found in the table, yet the backend cannot look one up: DuckDB before 2 misreads quotes."""
    odd = [key for key in keys if '"' in key] or list(keys)
    verb = "is a column" if len(odd) == 1 else "are columns"
    return DataError(
        f"{listed(map(repr, odd))} {verb} of the table, but this version of its backend cannot look up a name "
        f"with quotation marks. Rename the column without them, or update the backend (duckdb 2 can)."
    )


def _is_missing(column: Any, dtype: Any) -> Any:
    """Of an expression or a series."""
    missing = column.is_null()
    return missing | column.is_nan().fill_null(False) if dtype.is_float() else missing


def check_types(runs: Runs) -> None:
    """Scores are numbers, levels of one column are of one type, budgets have an order."""
    check_numeric(runs.frame, runs.score, argument="score")
    for key in runs.study.columns:
        _check_one_type(runs.frame, key)
    if runs.budget is not None:
        _check_ordered(runs.frame, runs.budget)


def _check_one_type(frame: Any, column: str) -> None:
    """Only a pandas column of dtype object can mix types; elsewhere the type is in the schema."""
    native = nw.to_native(frame)
    if not frame.implementation.is_pandas() or native[column].dtype != object:
        return
    values = native[column]
    try:
        values = values.drop_duplicates()
    except TypeError:  # lists and dicts have no hash
        values = values.head(1)
    kinds: dict[str, Any] = {}
    for value in values:
        kinds.setdefault(_kind(value), value)
        if isinstance(value, str):
            refuse_half_characters(column, value)
    if len(kinds) > 1:
        examples = " and ".join(f"{value!r} ({kind})" for kind, value in list(kinds.items())[:3])
        raise DataError(
            f"The column {column!r} mixes types: {examples}. Equal levels may count as different. Give all "
            f"values one type, for example with df[{column!r}].astype(str)."
        )
    if kinds and next(iter(kinds)) in ("list", "dict", "set", "ndarray"):
        raise DataError(
            f"The column {column!r} holds a {next(iter(kinds))} in each row; a role needs single values. "
            f"Turn them into text, for example with df[{column!r}].astype(str)."
        )


def _kind(value: Any) -> str:
    """The type by name, where values of one kind can be compared with each other."""
    for kind, name in ((bool, "bool"), (str, "str"), (numbers.Real, "number")):
        if isinstance(value, kind):
            return name
    return type(value).__name__


def _check_ordered(frame: Any, budget: str) -> None:
    dtype = frame.collect_schema()[budget]
    if dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, (nw.Enum, nw.Categorical)):
        return
    found = example_value(frame, budget)
    numbered = isinstance(found, str) and re.match(r"\d", found.strip())
    convert = advice("number_alone", column=budget) if numbered else "Convert it"
    raise DataError(
        f"{named('budget')} must be a column of numbers, dates or ordered categories, but {budget!r} has type {dtype} "
        f"(for example {found!r}), so that 10 may come before 2. {convert}, or "
        f"{advice('order_of_levels')}."
    )


# ------------------------------------------------------------------------------------------------- which algorithms met


EXAMPLES = 3  # pairs that a sentence names


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossing:
    """How many benchmarks each two algorithms have in common; on the diagonal of `common` those of one algorithm."""

    benchmark: str
    algorithm: str
    algorithms: tuple[Any, ...]
    common: NDArray[np.int64]
    n_benchmarks: int
    n_rows: int

    @cached_property
    def apart(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of algorithms without a common benchmark, in the order of the levels."""
        left, right = np.nonzero(np.triu(self.common == 0, k=1))
        return tuple((self.algorithms[i], self.algorithms[j]) for i, j in zip(left, right, strict=True))

    @property
    def n_pairs(self) -> int:
        """Pairs of algorithms."""
        k = len(self.algorithms)
        return k * (k - 1) // 2

    @property
    def none_meet(self) -> bool:
        """Whether no two algorithms have a benchmark in common."""
        return len(self.apart) == self.n_pairs

    def meet(self, levels: Sequence[Any]) -> Mask:
        """Whether the algorithms at two places of a sequence have a benchmark in common, for all two places."""
        at = {level: i for i, level in enumerate(self.algorithms)}
        codes = np.array([at[level] for level in levels], dtype=np.intp)
        return np.asarray(self.common[np.ix_(codes, codes)] > 0)

    def reason(self) -> str:
        """What is wrong with a table in which no two algorithms meet."""
        if self.n_benchmarks == self.n_rows:
            return (
                f"no benchmark has two algorithms: each of the {self.n_rows:,} rows has a {self.benchmark!r} of its "
                "own, as the id of a run has"
            )
        return (
            f"no benchmark has two algorithms: each of the {self.n_benchmarks:,} values of {self.benchmark!r} belongs "
            "to one of them, so a difference between algorithms cannot be distinguished from one between benchmarks"
        )

    def advice(self) -> str:
        """The way out of a table in which no two algorithms meet."""
        problem = advice("argument", name="benchmark")
        if self.n_benchmarks == self.n_rows:
            return (
                f"Give {problem} the column of the problem that was solved (a data set, a task), and name the id of a "
                f"run with {advice('argument', name='seed')}."
            )
        return (
            f"If {self.benchmark!r} names experiments, give {problem} the column of the problem that was solved (a "
            "data set, a task); if the algorithms did run on different problems, run them on the same ones."
        )

    def shown(self) -> str:
        """Some of the pairs without a common benchmark, in words."""
        named = "; ".join(f"{left} and {right}" for left, right in self.apart[:EXAMPLES])
        return named if len(self.apart) <= EXAMPLES else f"such as {named}"


def crossing(runs: Runs) -> Crossing | None:
    """How many benchmarks each two algorithms have in common; None without benchmarks, where all rows are compared.

    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["A", "B", "B", "C"], "task": ["t1", "t1", "t2", "t2"], "loss": [1.0, 2.0, 3.0, 4.0]}
    >>> found = crossing(Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task"))
    >>> found.apart, found.none_meet
    ((('A', 'C'),), False)
    """
    if runs.benchmark is None:
        return None
    import pandas as pd
    from scipy.sparse import csr_array

    keys = runs.study.groups([runs.benchmark, runs.algorithm]).keys
    benchmark, algorithm = keys.codes
    shape = len(runs.algorithms), int(benchmark.max()) + 1
    if keys.size == shape[0] * shape[1]:  # all on all
        common = np.full((shape[0], shape[0]), shape[1])
    else:
        at = {level: i for i, level in enumerate(runs.algorithms)}
        algorithm = np.array([at[level] for level in pd.Series(keys.levels[1]).tolist()], dtype=np.intp)[algorithm]
        ran = csr_array((np.ones(keys.size, dtype=np.int64), (algorithm, benchmark)), shape)
        common = (ran @ ran.T).toarray()
    return Crossing(
        benchmark=runs.benchmark,
        algorithm=runs.algorithm,
        algorithms=runs.algorithms,
        common=common,
        n_benchmarks=shape[1],
        n_rows=runs.n_rows,
    )


# -------------------------------------------------------------------------------------------- what runs are a sample of


# With fewer, variances between families are those of three differences at most: no sample unless it is asked for. The
# sizes behind it are in docs/developers/benchmark-effects.md.
FEWEST_FAMILIES = 5


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Runs whose benchmarks are the sample.

    Attributes
    ----------
    runs : Runs
        As given; or with the families as the benchmarks, and the benchmarks among the metafeatures.
    noun : {"family", "benchmark"}
        What the sample is one of.
    notes : tuple of str
        For which population claims hold, where the runs have families.
    weights : tuple of str
        How much each family counts in a mean over them.
    families : tuple of tuple of str
        The levels of families that are the sample, from coarse to fine, each by its columns; none where benchmarks are.
    """

    runs: Runs
    noun: str
    notes: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    families: tuple[tuple[str, ...], ...] = ()

    @property
    def column(self) -> str | None:
        """What tells the sample apart; None without benchmarks."""
        return self.runs.benchmark

    @property
    def units(self) -> tuple[str, ...]:
        """The names of what the sample is of, in the order of their levels; none without benchmarks."""
        return () if self.column is None else tuple(map(format_level, self.runs.study.levels(self.column)))

    @property
    def nouns(self) -> str:
        """The plural."""
        return plural(self.noun)


def sampled(runs: Runs) -> Sampled:
    """The runs as a sample: of the coarsest families of which there are `FEWEST_FAMILIES`, else of benchmarks.

    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["A", "B"] * 10, "task": [t for t in "abcdefghij" for _ in "AB"], "loss": range(20),
    ...          "space": [s for s in "uvwxy" for _ in range(4)]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task", family="space")
    >>> found = sampled(runs)
    >>> found.noun, found.runs.benchmark, found.runs.metafeatures
    ('family', 'space', ('task',))
    """
    study = runs.study
    if not study.families:
        return Sampled(runs=runs, noun="benchmark")
    enough = enough_families(runs)
    if not enough:
        return Sampled(runs=runs, noun="benchmark", notes=(_too_few(runs, study.families[-1][-1]),))
    name, benchmark = enough[0][-1], str(runs.benchmark)
    within = (*(other for other in study.crossed if other != name), benchmark, *runs.metafeatures)
    found = runs.restricted(runs.frame, study.seen((*study.columns,)), benchmark=name, family=(), metafeatures=within)
    return Sampled(
        runs=found,
        noun="family",
        notes=_notes(runs, name, [level[-1] for level in study.families if level not in enough]),
        weights=(_weights(runs, name),),
        families=enough,
    )


def enough_families(runs: Runs, fewest: int = FEWEST_FAMILIES) -> tuple[tuple[str, ...], ...]:
    """The levels of families of which there are so many, from coarse to fine, each by its columns."""
    return tuple(level for level in runs.study.families if runs.study.count(*level) >= fewest)


def of_these_families(runs: Runs) -> tuple[str, ...]:
    """Where runs have families: for whom a study holds that takes their benchmarks as independent."""
    if not runs.study.families:
        return ()
    benchmarks, families = plural(str(runs.benchmark)), plural(runs.study.families[-1][-1])
    rank = advice("rank")
    return (
        f"Families are not in it: {benchmarks} count as independent, whatever they share, so conclusions apply to "
        f"new {benchmarks} of these {families}, not to new {families}. {rank} takes families as the sample where "
        "there are enough of them.",
    )


def _too_few(runs: Runs, name: str) -> str:
    families, benchmarks = plural(name), plural(str(runs.benchmark))
    return (
        f"There are too few {families} to be a sample ({runs.study.count(name)}; {FEWEST_FAMILIES} or more are taken "
        f"for one), so conclusions apply to new {benchmarks} of these {families}, not to new {families}."
    )


def _weights(runs: Runs, name: str) -> str:
    seen = runs.study.distinct([name, *runs.study.instance[: 1 + len(runs.study.crossed)]])
    sizes = seen.groupby(name, observed=True).size()
    number, benchmark = span(float(sizes.min()), float(sizes.max())), str(runs.benchmark)
    of_one = spoken(benchmark) if sizes.max() == 1 else plural(benchmark)
    return f"Each {spoken(name)} counts the same, with the mean over its {number} {of_one}."


def _notes(runs: Runs, name: str, coarser: list[str]) -> tuple[str, ...]:
    study, families, benchmarks = runs.study, plural(name), plural(str(runs.benchmark))
    of_these = "".join(f" of these {study.count(other)} {plural(other)}" for other in coarser[-1:])
    notes = [
        f"The {study.count(name)} {families} are the sample: conclusions apply to new {families}{of_these}. For new "
        f"{benchmarks} of these {families}: {advice('no_family')}."
    ]
    if name in study.crossed:
        notes.append(
            f"Some {benchmarks} are in several {families}, which count as independent all the same: an advantage that "
            f"goes with such a {spoken(str(runs.benchmark))} in all of its {families} is not counted as chance."
        )
    return tuple(notes)
