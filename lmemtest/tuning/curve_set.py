"""Many tuning curves: one for each algorithm on each benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._table import Tabular
from lmemtest.tuning._arguments import name_of
from lmemtest.tuning.bands import METHOD_NAMES
from lmemtest.tuning.costs import MeanCost

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import Format, ResultTable
    from lmemtest.tuning.curves import TuningCurve
    from lmemtest.tuning.label_counts import LabelCounts

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

UNITS = {"trials": "k", "cost": "cost", "budget": "budget"}  # what budgets are, and their column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupCurve:
    """The curve of one algorithm on one benchmark.

    Attributes
    ----------
    key : tuple
        Values of the columns `by`: those of the benchmark, then the algorithm.
    n : int
        Independent scores behind it: trials, or seeds.
    grid : (m,) float
        Budgets: trials, costs, or the budgets of the runs.
    k : (m,) float
        Trials that a budget pays for on average; NaN for curves over seeds.
    lower, estimate, upper : (m,) float
        Curve and band, on the scale of the score.
    trivial : (m,) bool
        Whether a limit is an end of the support, and so says nothing.
    level : float
        Confidence of this band, after adjustments. Over seeds: at each budget.
    cost : MeanCost or None
        Mean cost of a trial.
    scores, costs : (n,) float
        What the curve was made from, in the order of the table; None for curves over seeds, or without costs.
    curve : TuningCurve or None
        What was read at the budgets; None for curves over seeds.
    """

    key: tuple[Any, ...]
    n: int
    grid: FloatArray
    k: FloatArray
    lower: FloatArray
    estimate: FloatArray
    upper: FloatArray
    trivial: BoolArray
    level: float
    cost: MeanCost | None = None
    scores: FloatArray | None = field(default=None, repr=False)
    costs: Any = field(default=None, repr=False)
    curve: TuningCurve | None = field(default=None, repr=False)

    @property
    def benchmark(self) -> str:
        """The benchmark in words; empty if there is no such column."""
        return ", ".join(str(value) for value in self.key[:-1])

    @property
    def algorithm(self) -> str:
        """The algorithm in words."""
        return str(self.key[-1])

    def drawn(self) -> GroupCurve:
        """The same curve at so many budgets that a line shows what lies between; itself over seeds, which are steps."""
        from lmemtest.tuning._setting import side_limits
        from lmemtest.tuning.compare import drawn_grid, on_grid

        if self.curve is None:
            return self
        grid = drawn_grid(self.curve, self.cost, float(self.grid.min()), float(self.grid.max()))
        read = on_grid(self.algorithm, self.curve, side_limits(grid, self.cost), self.cost)
        values = {name: getattr(read, name) for name in ("k", "lower", "estimate", "upper", "trivial")}
        return replace(self, grid=grid, **values)

    @property
    def reach(self) -> float:
        """The last budget of the grid at which neither limit is trivial; NaN if there is none."""
        return float(self.grid[~self.trivial].max()) if not self.trivial.all() else np.nan


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class TuningCurves(Tabular):
    """Curves of all algorithms on all benchmarks.

    Attributes
    ----------
    curves : tuple of GroupCurve
        Sorted by benchmark, then algorithm.
    by : tuple of str
        Columns that tell the curves apart; the last one is the algorithm.
    algorithms : tuple of str
        Names of the algorithms, in the order of their column.
    over : {"trials", "seed"}
        What is independent: the trials of a random search, or the seeds of an optimiser.
    unit : {"trials", "cost", "budget"}
        What the budgets are.
    score, direction, statistic, bounds, from_k
        As asked for.
    confidence : float
        As asked for: of each curve's band or, with `adjust`, of one algorithm's bands on all benchmarks.
    level : float
        Of each band by itself: the confidence after adjusting for benchmarks.
    adjust : {"none", "bonferroni", "sidak"}
        Adjustment for the number of benchmarks.
    method : str
        Shape of the bands over trials, see `cdf_band`; "order_statistics" over seeds.
    simultaneous : bool
        Whether a band holds at all budgets at once, or at each by itself (over seeds only).
    grid : (m,) float or None
        The budgets that were asked for.
    cost, seed, budget : str or None
        The columns that were read.
    notes : tuple of str
        What a reader must know.
    """

    curves: tuple[GroupCurve, ...]
    by: tuple[str, ...]
    algorithms: tuple[str, ...]
    over: str
    unit: str
    score: str
    direction: str
    statistic: str | float
    confidence: float
    level: float
    adjust: str
    method: str
    simultaneous: bool
    bounds: tuple[float, float] | None
    from_k: float | None
    grid: FloatArray | None
    cost: str | None = None
    seed: str | None = None
    budget: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks, in order; one empty name if there is no such column."""
        return tuple(panel[0].benchmark for panel in self.panels())

    def panels(self) -> tuple[tuple[GroupCurve, ...], ...]:
        """The curves of each benchmark."""
        found: dict[tuple[Any, ...], list[GroupCurve]] = {}
        for curve in self.curves:
            found.setdefault(curve.key[:-1], []).append(curve)
        return tuple(map(tuple, found.values()))

    def to_frame(self) -> pd.DataFrame:
        """One row per curve and budget: the columns `by`, k (trials), lower, estimate, upper, trivial.

        With costs there is a column cost before k. Over seeds, the column budget stands for k.
        """
        import pandas as pd

        sizes = [len(curve.grid) for curve in self.curves]
        columns: dict[str, Any] = dict(self._keys(sizes))
        names = {"trials": ("k",), "cost": ("cost", "k"), "budget": ("budget",)}[self.unit]
        for name in (*names, "lower", "estimate", "upper", "trivial"):
            attribute = "grid" if name in ("cost", "budget") else name
            columns[name] = np.concatenate([getattr(curve, attribute) for curve in self.curves])
        return pd.DataFrame(columns)

    def groups(self) -> pd.DataFrame:
        """One row per curve: the columns `by`, n, reach (last budget with two limits), level; with costs mean_cost."""
        import pandas as pd

        columns: dict[str, Any] = dict(self._keys([1] * len(self.curves)))
        columns["n"] = [curve.n for curve in self.curves]
        columns["reach"] = [curve.reach for curve in self.curves]
        columns["level"] = [curve.level for curve in self.curves]
        if self.unit == "cost":
            columns["mean_cost"] = [curve.cost.mean if curve.cost else np.nan for curve in self.curves]
        return pd.DataFrame(columns)

    def _keys(self, sizes: list[int]) -> dict[str, Any]:
        import pandas as pd

        repeated = np.repeat(np.arange(len(self.curves)), sizes)
        columns = {}
        for place, name in enumerate(self.by):
            values = pd.Series([curve.key[place] for curve in self.curves])
            columns[name] = values.take(repeated).reset_index(drop=True)
        return columns

    def labels(
        self, *, portion: float = 0.5, n_sim: int = 20_000, rng: int | np.random.Generator | None = None
    ) -> LabelCounts:
        """Compare each pair of algorithms on each benchmark, and count the labels.

        Parameters
        ----------
        portion, n_sim, rng
            As in `compare_curves`; the rates of false labels are simulated once per pair of sample sizes.

        Returns
        -------
        LabelCounts
            ``to_frame()`` has one row per pair, ``comparisons`` one per pair and benchmark.

        Raises
        ------
        ArgumentError
            For curves over seeds, or of one algorithm only.
        """
        from lmemtest.tuning.label_counts import count_curve_labels

        return count_curve_labels(self, portion=portion, n_sim=n_sim, rng=rng)

    def describe(self) -> str:
        """What the curves and their bands are, as a sentence."""
        best = "largest" if self.direction == "maximize" else "smallest"
        if self.over == "seed":
            scope = "at all budgets at once (Bonferroni)" if self.simultaneous else "at each budget by itself"
            return (
                f"{name_of(self.statistic).capitalize()} over seeds of the best score so far, with "
                f"{100 * self.confidence:.4g} % limits from order statistics {scope}{self._adjusted()}."
            )
        reads = f"{100 * self.confidence:.4g} % {METHOD_NAMES[self.method]}"
        where = (
            "all budgets" if self.unit == "cost" else "all k" if self.from_k is None else f"all k >= {self.from_k:g}"
        )
        return (
            f"{name_of(self.statistic).capitalize()} of the {best} of k scores, with {reads} for {where} at once"
            f"{self._adjusted()}."
        )

    def _adjusted(self) -> str:
        count = len(self.benchmarks)
        if self.adjust == "none" or count == 1:
            return "; each curve by itself" if len(self.curves) > 1 else ""
        name = {"bonferroni": "Bonferroni", "sidak": "Šidák"}[self.adjust]
        return f" and for all {count} benchmarks of an algorithm ({name}: each curve at {100 * self.level:.4g} %)"

    def to_table(self) -> ResultTable:
        """The curves where they can be compared: at the last budget at which all of a benchmark say something."""
        import pandas as pd

        from lmemtest._table import ResultTable

        column = UNITS[self.unit]
        rows = []
        for panel in self.panels():
            for curve, place in zip(panel, _common_places(panel), strict=True):
                values = [float(getattr(curve, name)[place]) for name in ("grid", "lower", "estimate", "upper")]
                rows.append((*curve.key, curve.n, *values, bool(curve.trivial[place]), curve.reach))
        names = [*self.by, "n", column, "lower", "estimate", "upper", "trivial", "reach"]
        formats: dict[str, Format] = {
            column: ".4g",
            "reach": ".4g",
            "trivial": lambda trivial: "yes" if trivial else "",
        }
        what = "Best-so-far curves over seeds" if self.over == "seed" else "Tuning curves"
        where = (
            f"Shown at the last {column} at which all curves of a benchmark have two limits (else at the first); "
            + in_words_of(python="to_frame() has all.", command_line="the table in the folder has all.")
        )
        title = f"{what} of {self.score}, {self.direction}"
        return ResultTable(title, pd.DataFrame(rows, columns=names), (self.describe(), where, *self.notes), formats)


def _common_places(panel: tuple[GroupCurve, ...]) -> list[int]:
    """Where on their grids curves have the last budget at which all have two limits, or else their first common one."""
    shared = set.intersection(*(set(curve.grid.tolist()) for curve in panel))
    known = set.intersection(*(set(curve.grid[~curve.trivial].tolist()) for curve in panel))
    chosen = max(known) if known else min(shared) if shared else None
    return [
        int(np.flatnonzero(curve.grid == chosen)[0]) if chosen is not None else int(curve.grid.argmin())
        for curve in panel
    ]
