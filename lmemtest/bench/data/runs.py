"""Runs: a table of benchmark runs, with the roles of its columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw

from lmemtest.bench.data import failures as failed_runs
from lmemtest.bench.data import normalise, selection, wide
from lmemtest.bench.data import per_run as curves
from lmemtest.bench.data.column import with_names
from lmemtest.bench.data.failures import check_failed, count_failures, counted_kinds, masked, rows_or_runs
from lmemtest.bench.data.forms import failure_words, is_wide, read_as, tidied
from lmemtest.bench.data.requirements import (
    BETWEEN_SEEDS,
    NO_ROWS,
    REQUIRED,
    SINGLE_ROLES,
    check_families,
    check_roles,
    check_rows,
    check_types,
    combined_seeds,
    required_direction,
)
from lmemtest.bench.data.study import Study
from lmemtest.core.frames import answering, collected, column_type
from lmemtest.core.hints import Guided, guided_arguments
from lmemtest.core.options import NEEDED, ROLES
from lmemtest.core.table import ResultTable, Text
from lmemtest.core.validate import (
    as_frame,
    check_column,
    check_direction,
    check_flag,
    check_names,
)
from lmemtest.core.words import format_level, joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.data.failures import Failures
    from lmemtest.bench.data.normalise import Scale
    from lmemtest.bench.data.per_run import Curve
    from lmemtest.lmm.cells import Groups


# Lazy tables whose query can be saved.
_SAVED = (nw.Implementation.POLARS, nw.Implementation.DASK)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runs(Guided):
    """A table of benchmark runs and what its columns mean.

    Nothing is copied, nothing is written to the caller's table, and a lazy table stays lazy.

    Parameters
    ----------
    frame : dataframe or mapping
        One row per score.  pandas, polars (eager or lazy), pyarrow, a duckdb relation, anything else that
        Narwhals accepts, or a dict of columns.
    score : str
        The numeric column that was measured.  It may hold missing or infinite values, so that `check` can
        report them; fitting refuses them.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good.  Required.
    algorithm : str
        The column of the algorithms that are compared; at least two.
    benchmark : str, optional
        The column of the tasks on which they ran.
    family : str or sequence of str, optional
        The column of what groups the benchmarks: search spaces, suites, domains; several from coarse to fine, each of
        the finer ones in one of the coarser. Families are a sample, too, so that a claim is about further families and
        not about further benchmarks of these. A benchmark may be in several families, such as a data set in several
        search spaces.
    seed : str or sequence of str, optional
        The column that identifies repetitions; of several, such as the repeat and the fold of a cross-validation,
        every combination is a seed, and the attribute is their names with `` / `` between them.
    budget : str, optional
        The column of the budget (fidelity, iteration, time) at which the score was taken; numbers, dates or
        an ordered categorical.
    metafeatures : sequence of str
        Columns that describe a run's circumstances, such as the quality of a prior.
    ignore : sequence of str
        Columns that are left without a role on purpose.  A column that structures the rows and is neither named nor
        ignored is a warning of `check`, and `analyze` refuses to name a winner: rows would count as independent that
        are not.
    seed_shared : bool, default True
        Whether a seed with the same label on several benchmarks may be the same thing there: the random numbers of a
        search, one trained model. What runs share through it is then looked for, and counted where it shows.  False
        if seeds only number the repetitions on a benchmark.
    failed : str, optional
        Which runs failed: a column of true and false (or 1 and 0), or "missing" (those without a score) or "nonfinite"
        (infinite scores, too); or a column of text that says in which way, such as "timeout" and "infra", and nothing,
        "ok", "success", "completed" or "finished" for runs that did not fail. The score of a failed run is not used,
        whatever the table says. What it counts instead is to be said: `score_failures`. Without this role a missing
        score is an error of the table.

    Attributes
    ----------
    frame : narwhals.DataFrame or narwhals.LazyFrame
        The table.
    scale : Scale or None
        How `normalize` made the score: ``method``, the column and the direction it had before (``score``,
        ``direction``), the columns within which it was normalised (``by``), and what it is relative to, of "baseline",
        "gap" and "improvability" (``reference``, ``target``, ``baseline``, ``noise``). None for a score as measured.
    curve : Curve or None
        How `per_run` made the score of a run of its scores over the budget: ``how``, the column it was made of
        (``score``), the ``budget`` and how many of them count. None for a table as given.
    failures : Failures or None
        What `score_failures` did: ``policy``, ``reference``, ``n_failed`` of ``n_rows``, ``algorithms``, ``note``, and
        the runs with their failures (``source``); ``left_out``, the runs of which only those failed that were left out,
        and ``to_repeat``, the table of runs to be run again. None for a table as given.
    notes : tuple of str
        How `trajectories` made these rows of a log, and what failed runs count; empty for a table as given.
    n_rows : int
        Its number of rows.
    algorithms : tuple
        The levels of the algorithm column.
    roster : tuple of str
        Their names in the whole table that `filter` and others made these runs of, in its order: figures give an
        algorithm its colour and marker by it, so that it keeps them where others are left out.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or names a column that does not exist.
    DataError
        If the table is empty, has one algorithm only, repeats a column name, mixes types within a column, has
        missing values outside the score, or the score is not numeric.

    Examples
    --------
    >>> table = {"tool": ["HB", "RS"] * 2, "task": ["a", "a", "b", "b"], "loss": [0.1, 0.2, 0.3, 0.5]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> runs.levels("task")
    ('a', 'b')
    >>> runs.filter(task="a").n_rows
    2
    """

    frame: Any
    score: str = field(kw_only=True)
    direction: Literal["minimize", "maximize"] = field(kw_only=True, default=REQUIRED)
    algorithm: str = field(kw_only=True)
    benchmark: str | None = field(kw_only=True, default=None)
    family: tuple[str, ...] = field(kw_only=True, default=())
    seed: Any = field(kw_only=True, default=None)
    budget: str | None = field(kw_only=True, default=None)
    metafeatures: tuple[str, ...] = field(kw_only=True, default=())
    ignore: tuple[str, ...] = field(kw_only=True, default=())
    seed_shared: bool = field(kw_only=True, default=True)
    failed: str | None = field(kw_only=True, default=None)
    failures: Failures | None = field(init=False, default=None)
    scale: Scale | None = field(init=False, default=None)
    curve: Curve | None = field(init=False, default=None)
    notes: tuple[str, ...] = field(init=False, default=())
    n_rows: int = field(init=False)
    algorithms: tuple[Any, ...] = field(init=False)
    roster: tuple[str, ...] = field(init=False, default=())
    study: Study = field(init=False)

    # Each is a function of runs, documented where its work is.
    from_wide = classmethod(wide.from_wide)
    filter = selection.filter
    drop_missing = selection.drop_missing
    drop_duplicates = selection.drop_duplicates
    best_so_far = selection.best_so_far
    at_budgets = selection.at_budgets
    per_run = curves.per_run
    normalize = normalise.normalize
    score_failures = failed_runs.score_failures

    def __post_init__(self) -> None:
        self._make(several=True)

    def _make(self, *, several: bool) -> None:
        """Check the arguments and fill the rest; with `several` there must be two algorithms or more."""
        _set(self, "direction", required_direction(self.direction))
        for name in ("family", "metafeatures", "ignore"):
            given = getattr(self, name)
            _set(self, name, () if given is None else check_names(given, name))
        _set(self, "seed_shared", check_flag(self.seed_shared, "seed_shared"))
        with answering(self.frame):
            _set(self, "frame", _protected(as_frame(self._with_levels(), argument="frame")))
            if self.is_lazy:
                self.frame.collect_schema()
            else:
                self._read_scores()
        seed, combined = combined_seeds(self.seed, self.frame.collect_schema().names())
        _set(self, "seed", seed)
        if combined is not None:
            _set(self, "frame", self.frame.with_columns(combined))
        check_roles(self)
        if self.failed is not None:
            check_failed(self)
            _set(self, "frame", masked(self))
        _set(self, "study", Study(self))
        if self.is_lazy:  # its one query needs scores that are numbers
            check_types(self)
        _set(self, "n_rows", check_rows(self))
        if not self.is_lazy:
            check_types(self)
        _set(self, "algorithms", self.study.levels(self.algorithm))
        _set(self, "roster", tuple(map(format_level, self.algorithms)))
        if several:
            self.study.require_algorithms()
        check_families(self)

    def _with_levels(self) -> Any:
        """The table; levels of the index of a pandas frame are columns if a role names one, as after `groupby`."""
        if not hasattr(self.frame, "set_axis"):
            return self.frame
        roles = (self.algorithm, self.benchmark, self.seed, self.budget, self.family, self.metafeatures)
        lists = [role if isinstance(role, (list, tuple)) else [role] for role in roles]
        levels = [name for name in self.frame.index.names if name is not None and name not in self.frame.columns]
        if not any(isinstance(name, str) and name in levels for names in lists for name in names):
            return self.frame
        return with_names(self.frame)

    def _read_scores(self) -> None:
        """Scores that are texts, such as 81,04 %, become the numbers that the command line reads; a note says so."""
        dtype = self.frame.schema.get(self.score) if isinstance(self.score, str) else None
        if not isinstance(dtype, (nw.String, nw.Object)):
            return
        role, words = failure_words(self.failed, self.columns)
        tidy = tidied(self.frame.to_pandas(), wide=False, score=self.score, failed=words, kept=self.columns)
        _set(self, "failed", role)
        note = read_as(tidy.remarks)
        if note is not None:
            _set(self, "notes", (note,))
        if tidy.frame[self.score].dtype.kind == "f":
            _set(self, "frame", nw.from_native(tidy.frame, eager_only=True))

    def __copy__(self) -> Runs:
        return self  # nothing of it changes

    def __deepcopy__(self, memo: Any) -> Runs:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.is_lazy and self.frame.implementation not in _SAVED:
            raise DataError(
                f"runs of a {self.frame.implementation.name.lower()} table cannot be saved or sent to another process, "
                "as they hold a connection; nor can a fit to them. Bring them to memory first: "
                "Runs(runs.to_frame(), **runs.roles())."
            )
        return object.__reduce_ex__(self, protocol)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the table that can have a role: pandas has names that are no text, too."""
        names: Iterable[Any] = self.frame.collect_schema().names() if self.is_lazy else self.frame.columns
        return tuple(name for name in names if isinstance(name, str))

    @property
    def scope(self) -> Study:
        """What models of these runs ask: the columns that are compared, repeated, independent (`lmm.scope.Scope`)."""
        return self.study

    @property
    def instance(self) -> tuple[str, ...]:
        """The columns that make up an instance: benchmark, families that a benchmark is in several of, metafeatures."""
        return (*((self.benchmark,) if self.benchmark else ()), *self.study.crossed, *self.metafeatures)

    @property
    def seeds(self) -> tuple[str, ...]:
        """The columns that make up the seed."""
        if self.seed is None or BETWEEN_SEEDS not in self.seed:
            return () if self.seed is None else (self.seed,)
        parts = tuple(self.seed.split(BETWEEN_SEEDS))
        return parts if set(parts) <= set(self.columns) else (self.seed,)

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns without a role that were not left out on purpose."""
        named = {self.score, self.failed, *self.study.columns, *self.seeds, *self.ignore}
        named |= {self.scale.score} if self.scale is not None else set()
        return tuple(name for name in self.columns if name not in named)

    @property
    def is_lazy(self) -> bool:
        """Whether the table is a query that has not been run."""
        return isinstance(self.frame, nw.LazyFrame)

    def roles(self) -> dict[str, Any]:
        """The arguments that describe the table.

        Returns
        -------
        dict
            ``score``, ``direction``, ``algorithm``, ``benchmark``, ``family``, ``seed``, ``budget``, ``metafeatures``,
            ``ignore``, ``seed_shared``, ``failed``; ``Runs(table, **runs.roles())`` gives another table the same roles.
        """
        names = [f.name for f in fields(self) if f.init and f.name != "frame"]
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas frame of its own; runs the query of a lazy table."""
        table = collected(self.frame).to_pandas().copy()
        self.study.require_table(table)
        return table

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, column: str) -> pd.Series:
        """A column of the table as a pandas Series; runs the query of a lazy table."""
        check_column(column, self.columns, argument="column")
        table = collected(self.frame.select(column)).to_pandas()
        self.study.require_table(table)
        return table[column]

    def levels(self, column: str) -> tuple[Any, ...]:
        """The distinct values of a column, in the order in which results show them.

        Parameters
        ----------
        column : str
            Any column of the table.

        Returns
        -------
        tuple
            Sorted, or in the order of the categories if the column is a categorical.
        """
        check_column(column, self.columns, argument="column")
        return self.study.levels(column)

    def with_metafeatures(self, *names: str) -> Runs:
        """The runs with these metafeatures only; nothing is queried again."""
        changed = {**self.roles(), "metafeatures": names}
        if set(names) <= set(self.metafeatures):
            found = self.restricted(self.frame, self.study.seen(), **changed)
        else:
            found = Runs(self.frame, **changed).remembering(curve=self.curve, scale=self.scale)
        return found.following(self, lambda runs: runs.with_metafeatures(*names))

    def check(self, **options: Any) -> RunsCheck:
        """Look for what can spoil a comparison: `lmemtest.check` of these runs.

        Parameters
        ----------
        **options
            Of `lmemtest.check`, such as ``rules_only=True``.

        Returns
        -------
        RunsCheck
            The checks as a tree, and what to fix first.
        """
        found: RunsCheck = importlib.import_module("lmemtest.bench.checks.check").check(self, **options)
        return found

    def summary(self) -> str:
        """The size of the table and its roles, as text."""
        return Text(self._table().to_text(), self._repr_html_())

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self._table().to_html()

    def _table(self) -> ResultTable:
        import pandas as pd

        rows = []
        for role in SINGLE_ROLES[1:]:
            column = getattr(self, role)
            if column is not None:
                own = ", its own on each benchmark" if role == "seed" and not self.seed_shared else ""
                rows.append((role, column, _levels_text(self.levels(column)) + own))
            if role == "benchmark":
                rows += [("family", name, _levels_text(self.levels(name))) for name in self.family]
        rows += [("metafeature", name, _levels_text(self.levels(name))) for name in self.metafeatures]
        if self.failed is not None:
            failed = int(count_failures(self)[1].sum())
            parts = [f"{failed:,} of {self.n_rows:,} {rows_or_runs(self)}", *filter(None, [counted_kinds(self)])]
            rows.append(("failed", self.failed, ": ".join(parts)))
        size = f"{self.n_rows:,} rows{' of a lazy table' if self.is_lazy else ''}"
        title = f"Runs: {size}, {self.direction} {self.score}"
        return ResultTable(title, pd.DataFrame(rows, columns=["role", "column", "levels"]), notes=self.notes)

    def _with(self, frame: Any, *, several: bool = True) -> Runs:
        """Other rows with the same roles."""
        runs: Runs = object.__new__(Runs)
        for name, value in {"frame": frame, **self.roles(), "failures": None, "notes": ()}.items():
            _set(runs, name, value)
        runs._make(several=several and len(self.algorithms) > 1)
        return runs.remembering(curve=self.curve, scale=self.scale)

    def with_named_algorithms(self) -> Runs:
        """Algorithms called 1, 2, 3 as names: a formula would take the numbers for a covariate."""
        if not column_type(self.frame, self.algorithm).is_numeric():
            return self
        renamed = Runs(self.frame.with_columns(nw.col(self.algorithm).cast(nw.String)), **self.roles())
        return renamed.remembering(curve=self.curve, scale=self.scale).following(self, Runs.with_named_algorithms)

    def remembering(self, *, notes: Iterable[str] | None = None, **made: Any) -> Runs:
        """These new runs, which remember how they were made: `notes`, `curve` and `scale`."""
        for name, value in {**made, **({} if notes is None else {"notes": tuple(notes)})}.items():
            _set(self, name, value)
        return self

    def following(self, source: Runs, step: Failures | Callable[[Runs], Runs]) -> Runs:
        """These runs, which a step made of others, with the roster and what is known of failures there."""
        _set(self, "roster", source.roster)
        known = source.failures
        if callable(step):
            done = None if known is None else known._replace(then=(*known.then, step))
        else:
            done = step
        _set(self, "failures", done)
        if done is not None:
            _set(self, "notes", (*self.notes, done.note))
        return self

    def restricted(self, frame: Any, seen: Sequence[Groups], *, several: bool = True, **roles: Any) -> Runs:
        """Runs of a part of the table, which was checked; `seen` are tables of their cells, where there are any."""
        runs: Runs = object.__new__(Runs)
        for name, value in {**self.roles(), **roles}.items():
            _set(runs, name, value)
        known = {"scale": self.scale, "curve": self.curve, "failures": self.failures, "roster": self.roster}
        runs.remembering(frame=frame, notes=(), **known)
        _set(runs, "study", Study(runs, seen))
        _set(runs, "n_rows", int(seen[0].n.sum()) if seen else self.n_rows)
        if not runs.n_rows:
            raise DataError(NO_ROWS)
        _set(runs, "algorithms", runs.study.levels(runs.algorithm) if seen else self.algorithms)
        if several and len(self.algorithms) > 1:
            runs.study.require_algorithms()
        return runs


guided_arguments(Runs)


def _set(runs: Runs, name: str, value: Any) -> None:
    object.__setattr__(runs, name, value)  # a frozen dataclass may only be filled this way


def _protected(frame: Any) -> Any:
    """A pandas frame of our own that shares the caller's values: what he assigns later stays his."""
    if frame.implementation.is_pandas() and isinstance(frame, nw.DataFrame):
        return nw.from_native(frame.to_native().copy(deep=False))
    return frame


def _levels_text(levels: tuple[Any, ...]) -> str:
    shown = listed(levels, most=6).rsplit(", ... (", 1)[0]
    return f"{len(levels):,}: {shown}{', ...' if len(levels) > 6 else ''}"


def as_runs(table: Any, roles: Mapping[str, Any], function: str, asked: str = "") -> Runs:
    """Runs as they are, or those of a dataframe with the roles of its columns; the one way into what takes either.

    `function` takes them, such as "rank", after what was `asked` of it ("'nemenyi', "). A table whose score and
    algorithms are no columns has one for each algorithm.
    """
    given = {
        name: role for name, role in roles.items() if role is not None and (not isinstance(role, tuple) or len(role))
    }
    unknown = sorted({*given} - {*ROLES})
    if unknown:
        raise TypeError(f"{function}() has no argument {unknown[0]!r}.{suggest(unknown[0], ROLES)}")
    if isinstance(table, Runs):
        if "direction" in given and check_direction(given.pop("direction")) != table.direction:
            raise ArgumentError(
                f"direction={roles['direction']!r} contradicts the runs, which say {table.direction!r}. Leave it out: "
                "it is for a dataframe."
            )
        if given:
            raise ArgumentError(
                f"{next(iter(given))} is for a dataframe; Runs have their roles. Give others to Runs(table, ...)."
            )
        return table
    missing = [name for name in NEEDED if name not in given]
    if not missing:
        return Runs(table, **given)
    if missing == ["score", "algorithm"] and is_wide(table):
        if "ignore" in given:
            raise ArgumentError(
                "ignore is for a table with a row for each score. Leave these columns out of a table with a column for "
                "each algorithm."
            )
        return Runs.from_wide(table, **given)
    if not given:
        alone = f"got {type(table).__name__} alone"
        message = f"{function} takes Runs, or a dataframe and the roles of its columns; {alone}."
    elif missing == ["direction"] or {*missing} == {*NEEDED}:
        message = f"{function} of a dataframe needs direction=: is a low or a high score good?"
    elif missing == ["score", "algorithm"]:
        message = "The table has a row for each score: say what its columns mean."
    else:
        message = f"{function} of a dataframe needs {joined([f'{name}=' for name in missing])}: which column is it?"
    raise ArgumentError(message).of_columns(table, given, f"lmemtest.{function}(df, {asked}{{}})")


def stated(roles: dict[str, Any]) -> dict[str, Any]:
    """The roles that are not what `Runs` takes without a word."""
    return {
        name: value
        for name, value in roles.items()
        if (value is False if name == "seed_shared" else value not in (None, ()))
    }


def require_runs(runs: Any, function: str = "{}") -> None:
    """Refuse a table whose columns have no roles, with the call of the function that gives them."""
    if not isinstance(runs, Runs):
        message = f"runs must be Runs, got {type(runs).__name__}. Say what the columns mean."
        raise ArgumentError(message).of_columns(runs, {}, function.replace("{}", "lmemtest.Runs(df, {})"))
