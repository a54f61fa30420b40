"""Runs: a table of benchmark runs, with the roles of its columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw

from lmemtest.bench.data.failures import check_failed, count_failures, masked, rows_or_runs, score_failures
from lmemtest.bench.data.requirements import (
    BETWEEN_SEEDS,
    NO_ROWS,
    REQUIRED,
    SINGLE_ROLES,
    check_algorithms,
    check_families,
    check_roles,
    check_rows,
    check_types,
    combined_seeds,
    required_direction,
)
from lmemtest.bench.data.selection import filtered, without_duplicates, without_missing
from lmemtest.bench.data.study import Study
from lmemtest.core.frames import answering, collected
from lmemtest.core.hints import Guided, guided_arguments
from lmemtest.core.table import ResultTable, Text
from lmemtest.core.validate import (
    as_frame,
    check_column,
    check_flag,
    check_names,
)
from lmemtest.core.words import listed
from lmemtest.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.data.failures import Failures
    from lmemtest.bench.data.forms import Methods
    from lmemtest.bench.data.normalise import Scale
    from lmemtest.bench.data.per_run import Curve
    from lmemtest.lmm.cells import Groups

__all__ = ["Runs", "require_runs", "with_curve", "with_notes", "with_scale"]


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
        (infinite scores, too). The score of a failed run is not used, whatever the table says. What it counts instead
        is to be said: `score_failures`. Without this role a missing score is an error of the table.

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
        the runs with their failures (``source``). None for a table as given.
    notes : tuple of str
        How `trajectories` made these rows of a log, and what failed runs count; empty for a table as given.
    n_rows : int
        Its number of rows.
    algorithms : tuple
        The levels of the algorithm column.

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
    study: Study = field(init=False)

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
            _set(self, "frame", _protected(as_frame(self.frame, argument="frame")))
            if self.is_lazy:
                self.frame.collect_schema()
        seed, combined = combined_seeds(self.seed, self.frame.collect_schema().names())
        _set(self, "seed", seed)
        if combined is not None:
            _set(self, "frame", self.frame.with_columns(combined))
        check_roles(self)
        check_failed(self)
        _set(self, "frame", masked(self))
        _set(self, "study", Study(self))
        if self.is_lazy:  # its one query needs scores that are numbers
            check_types(self)
        _set(self, "n_rows", check_rows(self))
        if not self.is_lazy:
            check_types(self)
        _set(self, "algorithms", self.study.levels(self.algorithm))
        if several:
            check_algorithms(self)
        check_families(self)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        direction: Literal["minimize", "maximize"] = REQUIRED,
        score: str = "score",
        algorithm: str = "algorithm",
        benchmark: str | None = None,
        family: str | Sequence[str] | None = None,
        seed: str | Sequence[str] | None = None,
        budget: str | None = None,
        metafeatures: Sequence[str] = (),
        algorithms: Sequence[str] | None = None,
        seed_shared: bool = True,
        failed: str | Sequence[str] | None = None,
        methods: Methods | None = None,
    ) -> Runs:
        """The runs of a wide table: a column per algorithm and a row per benchmark, or the other way round.

        Cells may be printed as in papers (``85.3 ± 0.4``, ``**85.3**``, ``91.3%``), and columns and rows of averages or
        standard deviations may stand beside the scores: they are left out, and `notes` of the runs say so.

        Parameters
        ----------
        frame : dataframe or mapping
            As in `Runs`.
        direction : {"minimize", "maximize"}
            Whether a low or a high score is good.  Required.
        score, algorithm : str
            What to call the two columns that the long table gets; with methods in rows `algorithm` is the column that
            names these.
        benchmark : str, optional
            The column that names the rows; by default the only one of text, else the index of a pandas frame, else
            the rows are numbered. With methods in rows, what to call the column of the data sets.
        seed, budget : str, optional
            Columns of numbers that are not scores.
        family, metafeatures : sequence of str
            Further columns that are not scores; see `Runs`.
        algorithms : sequence of str, optional
            The columns of scores; by default all that have no other role.
        seed_shared : bool, default True
            As in `Runs`.
        failed : str or sequence of str, optional
            Whether runs failed where a score is "missing" or "nonfinite"; see `Runs`. Or words in cells, such as
            "TIMEOUT".
        methods : {"columns", "rows"}, optional
            Where the algorithms are. By default told by the name of the column of text (dataset or method), by
            averages, and by well-known names; where nothing tells it, in columns, and `notes` say so.

        Returns
        -------
        Runs
            One row per score.  An empty cell is a missing score, which `check` reports; `notes` say what was read as
            what.

        Raises
        ------
        ArgumentError, UnknownColumnError
            If an argument breaks its rule, or a column of numbers looks like a seed or a budget and has no role.
        DataError
            If fewer than two columns of scores are left, or one of them holds text.

        Examples
        --------
        >>> wide = {"task": ["a", "b"], "HB": [0.1, 0.3], "RS": [0.2, 0.5]}
        >>> Runs.from_wide(wide, direction="minimize").to_frame()
          task algorithm  score
        0    a        HB    0.1
        1    b        HB    0.3
        2    a        RS    0.2
        3    b        RS    0.5
        """
        from lmemtest.bench.data.wide import lengthened

        direction = required_direction(direction)
        table, roles, notes = lengthened(
            frame,
            score=score,
            algorithm=algorithm,
            benchmark=benchmark,
            family=family,
            seed=seed,
            budget=budget,
            metafeatures=metafeatures,
            algorithms=algorithms,
            methods=methods,
            failed=failed,
        )
        return with_notes(cls(nw.to_native(table), direction=direction, seed_shared=seed_shared, **roles), notes)

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
        """All columns of the table."""
        return tuple(self.frame.collect_schema().names())

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
        parts = () if self.seed is None else tuple(self.seed.split(BETWEEN_SEEDS))
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

    def filter(self, /, **conditions: Any) -> Runs:
        """The runs with the given values.

        Parameters
        ----------
        **conditions
            ``column=value`` or ``column=[value, value]``; for a name with spaces, ``**{"my column": value}``. A role
            ("algorithm", "benchmark", "family", "seed", "budget", "score") stands for its column, unless a column has
            that name or there are several of the role.

        Returns
        -------
        Runs
            With the same roles.

        Raises
        ------
        UnknownColumnError
            If a name is not a column.
        DataError
            If a value does not occur, or nothing that can be compared is left.
        """
        return filtered(self, conditions)

    def with_metafeatures(self, *names: str) -> Runs:
        """The runs with these metafeatures only; nothing is queried again."""
        changed = {**self.roles(), "metafeatures": names}
        if set(names) <= set(self.metafeatures):
            found = self.restricted(self.frame, self.study.seen(), **changed)
        else:
            found = with_curve(Runs(self.frame, **changed), self.curve, self.scale)
        return found.following(self, lambda runs: runs.with_metafeatures(*names))

    def drop_missing(self) -> Runs:
        """The runs whose score is finite.

        Only right where a missing score has nothing to do with the algorithm: a failed run is a worst score,
        and without it the algorithm looks better than it is. With failed runs it is ``score_failures("drop")``.

        Returns
        -------
        Runs
            With the same roles; `notes` say how many were left out.
        """
        return with_notes(*without_missing(self))

    def drop_duplicates(self, keep: Literal["first", "last", "mean"]) -> Runs:
        """The runs with one row for each of them.

        Rows of the same algorithm, benchmark, family, seed, budget and metafeatures, as far as these have columns, are
        one run that was written or made again. Without a column of seeds these are all rows of an algorithm on a
        benchmark: name the seed first if there is one.

        Parameters
        ----------
        keep : {"first", "last", "mean"}
            Which row is kept, in the order of the table; or the first one with the mean of the scores.

        Returns
        -------
        Runs
            With the same roles; `notes` say how many rows were copies and how many had other scores.

        Raises
        ------
        ArgumentError
            If `keep` is none of these, or the table is lazy and so has no order.
        DataError
            For means, if some rows of a run failed and others have a score.

        Examples
        --------
        >>> table = {"tool": ["HB", "RS", "RS"], "task": ["a", "a", "a"], "loss": [0.1, 0.2, 0.4]}
        >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
        >>> runs.drop_duplicates("mean").to_frame()["loss"].round(6).tolist()
        [0.1, 0.3]
        """
        return with_notes(*without_duplicates(self, keep))

    def score_failures(
        self, policy: str | float | Mapping[Any, float] | Callable[[Any], float], *, reference: Any = None
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
        >>> table = {"tool": ["HB", "RS"] * 2, "task": ["a", "a", "b", "b"], "loss": [0.1, None, 3.0, 3.5]}
        >>> roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
        >>> runs = Runs(table, failed="missing", **roles).score_failures({"a": 1})
        >>> runs.to_frame()["loss"].tolist(), runs.notes
        ([0.1, 1.0, 3.0, 3.5], ('1 failed run of 1 algorithm was given a value for its benchmark: 1.',))
        """
        return score_failures(self, policy, reference)

    def normalize(
        self,
        method: str = "minmax",
        by: str | Sequence[str] | None = None,
        *,
        reference: Any = None,
        target: Any = None,
        best_known: Any = None,
        name: str | None = None,
    ) -> Runs:
        """The runs with a score that compares across benchmarks, in a new column.

        Parameters
        ----------
        method : {"minmax", "normalized_regret", "rank", "zscore", "log", "regret", "baseline", "gap", "improvability"}
            What to compute within each group, x being the scores of the group, r, t and b the values of `reference`,
            `target` and `best_known` there:

            =================  ===================================================================  =============
            method             new score                                                            direction
            =================  ===================================================================  =============
            minmax             (x - min(x)) / (max(x) - min(x))                                     as before
            normalized_regret  regret / (max(x) - min(x)): 0 is the best seen, 1 the worst          minimize
            rank               1 for the best, ties share the mean of their ranks                   minimize
            zscore             (x - mean(x)) / sd(x), with n - 1                                    as before
            log                natural logarithm of x, whatever the groups                          as before
            regret             x - min(x) to minimize, max(x) - x to maximize: in the unit of x     minimize
            baseline           (r - x) / r to minimize, (x - r) / r to maximize: the relative       maximize
                               improvement on r, of a loss the skill score 1 - x / r
            with `target`      (x - r) / (t - r): the skill score with t the perfect score, the     maximize
                               human-normalised score with t the human's and r the random one
            gap                (x - b) / abs(b) to minimize, (b - x) / abs(b) to maximize           minimize
            improvability      (x - b) / x, of errors: by how much the best known is below x        minimize
            =================  ===================================================================  =============

            The first four take out the unit of each group. "log" does where groups differ by a factor. "regret" moves
            the best to 0 and keeps the unit, so benchmarks of a large scale still decide a mean over benchmarks. The
            last ones do not depend on the other algorithms.
        by : str or sequence of str, optional
            Roles ("benchmark", "budget", "algorithm", "seed") or columns that make up a group. By default benchmark
            (in each of its families, if they are several) and budget, as far as the runs have them; where few runs
            share a budget (as with times) the benchmark alone, with a warning.
        reference, target, best_known : str, float or mapping of benchmark to float, optional
            An algorithm (the mean of its scores in each group), a column (one value in each group), a number, or a
            value for each benchmark. "baseline" needs `reference`, "gap" and "improvability" need `best_known`.
        name : str, optional
            Name of the new column, by default ``<score>_<method>``.

        Returns
        -------
        Runs
            With the new column as the score, its direction, and all else as before. A lazy table stays lazy.

        Raises
        ------
        ArgumentError, UnknownColumnError
            If an option is unknown, a name is not a column, or the new column exists already.
        DataError
            If scores are missing, infinite (but for "rank"), or not positive for "log". If a reference has no value in
            some group, is not positive without `target` or not worse than it, or scores are better than the best known.

        Warns
        -----
        DataWarning
            If all scores of a group are equal: they say nothing, and get 0 (zscore), 0.5 (minmax), a regret of 0
            or the mean rank. If `by` is not given and few runs share a budget. If the reference's means are so noisy
            that shares of them are biased.

        Notes
        -----
        "minmax", "normalized_regret", "rank" and "zscore" depend on which algorithms and budgets take part: leaving one
        out can change the scores of the others (`robustness`), and a single very bad run narrows all other differences
        of min-max scores in its group. Ranks drop the size of differences, and differences of z-scores are
        in standard deviations of a group, which include the differences between its algorithms. Ranks and z-scores have
        the same mean in every group, so a variance between the groups is estimated as 0: a singular fit that is to be
        expected.

        The mean of an algorithm that is the reference is measured with error, which all scores of its group share. Its
        runs stay in the table, algorithms are compared within benchmarks (`recommend`), and a mean improvement has the
        standard error of the difference from the reference (`emmeans`). A mean of ratios depends on what is divided by;
        geometric means ("log") do not (Fleming & Wallace 1986, doi:10.1145/5666.5673).

        Examples
        --------
        >>> table = {"tool": ["HB", "RS"] * 2, "task": ["a", "a", "b", "b"], "loss": [0.1, 0.2, 3.0, 3.5]}
        >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
        >>> ranks = runs.normalize("rank")
        >>> ranks.score, ranks.to_frame()["loss_rank"].tolist()
        ('loss_rank', [1.0, 2.0, 1.0, 2.0])
        >>> runs.normalize("baseline", reference="RS").to_frame()["loss_baseline"].round(3).tolist()
        [0.5, 0.0, 0.143, 0.0]
        """
        from lmemtest.bench.data.normalise import normalised

        given = {"reference": reference, "target": target, "best_known": best_known}
        found = normalised(self, method, by, name, given)
        return found.following(self, partial(Runs.normalize, method=method, by=by, name=name, **given))

    def best_so_far(self, *, name: str | None = None) -> Runs:
        """The runs with the best score up to each budget, in a new column.

        For tables with one row per trial, such as an Optuna study with the number of the trial as budget: there the
        mean over rows is one over trials, and says little about the best that was found.

        Parameters
        ----------
        name : str, optional
            Name of the new column, by default ``<score>_best_so_far``.

        Returns
        -------
        Runs
            With the new column as the score, and all else as before. A lazy table stays lazy.

        Raises
        ------
        ArgumentError
            If the new column exists already.
        DataError
            If the runs have no budget.

        Notes
        -----
        A run is what one algorithm did on one instance with one seed; without seeds the repeated rows of an algorithm
        on an instance are taken for one run. Rows of one run at one budget share the best of them. A missing score
        (a failed trial) does not count: the best before it stands, and until there is one the value is missing.

        Examples
        --------
        >>> table = {"tool": ["A"] * 3 + ["B"] * 3, "trial": [1, 2, 3] * 2, "loss": [0.5, 0.7, 0.2, 0.6, 0.4, 0.9]}
        >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", budget="trial")
        >>> runs.best_so_far().to_frame()["loss_best_so_far"].tolist()
        [0.5, 0.5, 0.2, 0.6, 0.4, 0.4]
        """
        from lmemtest.bench.data.trace import best_so_far

        return best_so_far(self, name).following(self, lambda runs: runs.best_so_far(name=name))

    def at_budgets(self, budgets: Iterable[float]) -> Runs:
        """The score of every run at given budgets: its last one at or before each.

        For runs that were scored at times of their own, such as logs by wall clock: only at common budgets can
        algorithms be compared.

        Parameters
        ----------
        budgets : iterable of float
            Where to read the runs off.

        Returns
        -------
        Runs
            One row per run and budget, with all columns and the wanted budget in the column of budgets. A lazy table
            stays lazy.

        Raises
        ------
        ArgumentError
            If a budget is below the first of some run, which has no score there yet.
        DataError
            If the runs have no budget.

        Notes
        -----
        A run that ends before a budget keeps its last score, which suits scores of the best so far (see
        `best_so_far`); of a run with several rows at its last budget all are kept, and `check` reports them.

        Examples
        --------
        >>> table = {"tool": ["A", "A", "B", "B"], "seconds": [1.0, 7.5, 2.0, 4.0], "loss": [0.5, 0.2, 0.6, 0.4]}
        >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", budget="seconds")
        >>> runs.at_budgets([5]).to_frame()["loss"].tolist()
        [0.5, 0.4]
        """
        from lmemtest.bench.data.trace import at_budgets

        budgets = list(budgets) if isinstance(budgets, Iterable) and not isinstance(budgets, str) else budgets
        return at_budgets(self, budgets).following(self, lambda runs: runs.at_budgets(budgets))

    def per_run(self, curve: Literal["mean", "last", "best", "area"] = "mean", *, name: str | None = None) -> Runs:
        """The runs with one score each, for its scores over the budget.

        The scores of a run at several budgets are one curve: counted row by row they make its course an error, and
        every seed look like many. Models compare runs, so `recommend`, `analyze` and `rank` reduce curves this way.

        Parameters
        ----------
        curve : {"mean", "last", "best", "area"}
            What a run counts with, x being its scores at budgets t, each up to the last budget that all runs of the
            instance reached:

            ======  =========================================================================================
            curve   score of the run
            ======  =========================================================================================
            mean    the mean of x over the budgets that all runs of the instance have
            last    x at the last of the budgets
            best    the lowest or highest x, by the direction; a missing one does not count
            area    the area under x over t from the latest beginning to the earliest end, divided by its
                    length: a mean over the budget, whatever the steps. Straight lines between scores; where runs
                    have budgets of their own and none gets worse (logs of the best so far) each score holds
                    until the next one.
            ======  =========================================================================================
        name : str, optional
            Name of the new column of scores, by default ``<score>_<curve>``.

        Returns
        -------
        Runs
            One row per run with the columns that have a role, without the budget. `curve` holds what was done, and
            `notes` say it, with runs that end early. A lazy table is queried once.

        Raises
        ------
        ArgumentError
            If the curve is unknown, or the name is taken.
        DataError
            If the runs have no budget, those of an instance have none in common, or a score that counts is missing.

        Notes
        -----
        A run is what one algorithm did on one instance with one seed. Without seeds the rows of an algorithm on an
        instance are taken for one run. Several rows of a run at one budget count with their mean ("best": their best).

        Examples
        --------
        >>> table = {"tool": ["A"] * 3 + ["B"] * 3, "epoch": [1, 2, 3] * 2, "loss": [0.5, 0.3, 0.4, 0.6, 0.6, 0.3]}
        >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", budget="epoch")
        >>> [runs.per_run(curve).to_frame().iloc[:, -1].round(3).tolist() for curve in ("mean", "last", "best", "area")]
        [[0.4, 0.5], [0.4, 0.3], [0.3, 0.3], [0.375, 0.525]]
        """
        from lmemtest.bench.data.per_run import per_run

        return per_run(self, curve, name).following(self, lambda runs: runs.per_run(curve, name=name))

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
            rows.append(("failed", self.failed, f"{failed:,} of {self.n_rows:,} {rows_or_runs(self)}"))
        size = f"{self.n_rows:,} rows{' of a lazy table' if self.is_lazy else ''}"
        title = f"Runs: {size}, {self.direction} {self.score}"
        return ResultTable(title, pd.DataFrame(rows, columns=["role", "column", "levels"]), notes=self.notes)

    def _with(self, frame: Any, *, several: bool = True) -> Runs:
        """Other rows with the same roles."""
        runs: Runs = object.__new__(Runs)
        for name, value in {"frame": frame, **self.roles(), "failures": None, "notes": ()}.items():
            _set(runs, name, value)
        runs._make(several=several and len(self.algorithms) > 1)
        return with_curve(runs, self.curve, self.scale)

    def following(self, source: Runs, step: Failures | Callable[[Runs], Runs]) -> Runs:
        """These runs, which a step made of others, with what is known of failures there."""
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
        _set(runs, "frame", frame)
        _set(runs, "scale", self.scale)
        _set(runs, "curve", self.curve)
        _set(runs, "failures", self.failures)
        _set(runs, "notes", ())
        _set(runs, "study", Study(runs, seen))
        _set(runs, "n_rows", int(seen[0].n.sum()) if seen else self.n_rows)
        if not runs.n_rows:
            raise DataError(NO_ROWS)
        _set(runs, "algorithms", runs.study.levels(runs.algorithm) if seen else self.algorithms)
        if several and len(self.algorithms) > 1:
            check_algorithms(runs)
        return runs


guided_arguments(Runs)


def with_named_algorithms(runs: Runs) -> Runs:
    """Algorithms called 1, 2, 3 as names: a formula would take the numbers for a covariate."""
    column = nw.col(runs.algorithm)
    if not runs.frame.collect_schema()[runs.algorithm].is_numeric():
        return runs
    renamed = Runs(runs.frame.with_columns(column.cast(nw.String)), **runs.roles())
    return with_curve(renamed, runs.curve, runs.scale).following(runs, with_named_algorithms)


def with_scale(runs: Runs, scale: Scale | None) -> Runs:
    """New runs, which remember how their score was made."""
    _set(runs, "scale", scale)
    return runs


def with_curve(runs: Runs, curve: Curve | None, scale: Scale | None) -> Runs:
    """New runs, which remember what a curve was reduced to, and how the score was made."""
    _set(runs, "curve", curve)
    return with_scale(runs, scale)


def with_notes(runs: Runs, notes: Sequence[str]) -> Runs:
    """New runs, which say how they were made."""
    _set(runs, "notes", tuple(notes))
    return runs


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


def require_runs(runs: Any, function: str = "{}") -> None:
    """Refuse a table whose columns have no roles, with the call of the function that gives them."""
    if not isinstance(runs, Runs):
        guessing = importlib.import_module("lmemtest.bench.data.guessing")
        message = f"runs must be Runs, got {type(runs).__name__}. Say what the columns mean."
        guessing.refuse_without_roles(runs, {}, function.replace("{}", "lmemtest.Runs(df, {})"), message)
