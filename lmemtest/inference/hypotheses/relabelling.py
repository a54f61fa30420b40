"""New names for the algorithms of a table: which labels may change places, and the table after they did.

An *item* is what carries one label: all runs of an algorithm on a benchmark or on an instance, or one run. Items of
one *stratum* may exchange their labels. Where the items of every stratum have the same cells, exchanging labels is
exchanging scores, and the design of a model stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from lmemtest._validate import check_choice
from lmemtest.data.cell_map import CellMap, regroup
from lmemtest.data.cells import Cells, combine_codes, group_codes
from lmemtest.data.compress import compress
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, DataError
from lmemtest.formula import parse_formula
from lmemtest.inference.means.emmeans import emmeans
from lmemtest.model import LmmFit, fit_lmm

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    Index = NDArray[np.intp]

UNITS = ("benchmark", "instance", "run")

# What a unit exchanges, and what a table that lacks its role says.
_NEEDS = {
    "benchmark": "labels per benchmark, and the table has no benchmark column. Name it in Runs(benchmark=), or use "
    "unit='run'",
    "instance": "labels per benchmark and metafeatures, and the table has no metafeatures. Name them in "
    "Runs(metafeatures=), or use unit='benchmark'",
    "run": "the labels of single runs, and the table has no column that distinguishes them. Name it in Runs(seed=), or "
    "use unit='benchmark'",
}
_FEW_ARRANGEMENTS = 1000.0  # below it draws repeat so often that their number hides how little there is to draw


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relabelling:
    """What may be exchanged in a table.

    ``unit`` is what keeps its scores together, ``paired`` whether runs exchange labels with runs of the same seed only,
    ``columns`` those of the cells on which labels are exchanged, ``algorithm`` the column of the labels. ``item`` is
    the item of each cell (sorted by stratum), ``stratum`` and ``label`` those of each item. Where the items of every
    stratum have the same cells, ``start`` is the position of each item's first cell in ``order``, the cells sorted by
    item and within items in the same order; else it is None, and tables must be grouped anew.
    """

    unit: str
    paired: bool
    columns: tuple[str, ...]
    algorithm: str
    item: Index
    stratum: Index
    label: Index
    n_labels: int
    start: Index | None
    order: Index

    @property
    def n_strata(self) -> int:
        """Groups of items that exchange their labels; groups with one label only do not count."""
        return int(np.count_nonzero(self._labels_per_stratum() > 1))

    @property
    def fixed_items(self) -> int:
        """Items that share their stratum with no other label, so that they never change."""
        return int(np.count_nonzero(self._labels_per_stratum()[self.stratum] < 2))

    def _labels_per_stratum(self) -> Index:
        pairs = np.unique(self.stratum.astype(np.int64) * self.n_labels + self.label)
        return np.bincount(pairs // self.n_labels, minlength=int(self.stratum.max()) + 1)

    @property
    def few_arrangements(self) -> int | None:
        """The number of distinct relabellings where it is small, else None."""
        n_strata = int(self.stratum.max()) + 1
        sizes = np.bincount(self.stratum, minlength=n_strata)
        same = np.bincount(self.stratum * self.n_labels + self.label, minlength=n_strata * self.n_labels)
        log = gammaln(sizes + 1).sum() - gammaln(same + 1).sum()
        return round(np.exp(log)) if log < np.log(_FEW_ARRANGEMENTS) else None

    def draw(self, rng: np.random.Generator) -> Index:
        """For each item the item of its stratum whose label it gets, all arrangements equally likely."""
        return np.lexsort((rng.random(len(self.stratum)), self.stratum))

    def relabel(self, cells: Cells, taken: Index) -> Cells:
        """The cells after an exchange."""
        if self.start is None:
            labels = cells.frame[self.algorithm]
            first = np.empty(len(self.label), dtype=np.intp)
            first[self.item] = np.arange(len(self.item))
            new = labels.iloc[first[taken][self.item]].reset_index(drop=True)
            return replace(cells, frame=cells.frame.assign(**{self.algorithm: new}))
        position = np.empty_like(self.order)
        position[self.order] = np.arange(len(self.order))
        place = position - self.start[self.item]
        to = self.order[self.start[taken][self.item] + place]
        mean, ss = np.empty_like(cells.mean), np.empty_like(cells.ss)
        mean[to], ss[to] = cells.mean, cells.ss
        return replace(cells, mean=mean, ss=ss)


def find_relabelling(runs: Runs, unit: str, columns: Sequence[str], *, score: str) -> Relabelling:
    """Find what may be exchanged.

    By "benchmark" all runs of two algorithms on a benchmark change their names together, by "instance" those at one
    combination of metafeatures, by "run" single runs: with runs of the same seed where algorithms share seeds, else
    with any run on the instance. ``columns`` are those that the models use, ``score`` the column that they explain.

    Raises
    ------
    ArgumentError
        If the table lacks the role that the unit needs, or the unit is unknown.
    DataError
        If nothing can be exchanged, or a column belongs to the algorithms themselves.
    """
    check_unit(unit, runs)
    columns_of = {"benchmark": (runs.benchmark,), "instance": runs.instance, "run": (*runs.instance, runs.seed)}
    missing = {"benchmark": runs.benchmark is None, "instance": not runs.metafeatures, "run": runs.seed is None}
    if missing[unit]:
        raise ArgumentError(f"unit='{unit}' exchanges {_NEEDS[unit]}.")
    stratum_names = [name for name in columns_of[unit] if name is not None]
    item_names = [*stratum_names, runs.algorithm]
    by = tuple(dict.fromkeys([*item_names, *columns]))
    cells = compress(runs, by=by, score=score)
    frame = cells.frame

    label, n_labels = _codes(frame, [runs.algorithm])
    stratum, n_strata = _codes(frame, stratum_names)
    paired = unit != "run" or len(np.unique(stratum * n_labels + label)) > n_strata
    if not paired:  # every algorithm has seeds of its own
        stratum, n_strata = _codes(frame, list(runs.instance))
    own, n_own = _codes(frame, item_names)
    item = combine_codes([(stratum, n_strata), (own, n_own)], len(frame))
    rest_names = [name for name in by if name not in item_names]
    for name in (name for name in rest_names if name not in (runs.seed, runs.budget)):
        codes, n_codes = _codes(frame, [name])
        if n_codes > 1 and len(np.unique(label * n_codes + codes)) == n_labels:
            raise DataError(
                f"the model uses '{name}', which is a property of the algorithms: each value of '{runs.algorithm}' has "
                f"one. With exchanged labels it would no longer fit. Leave '{name}' out of the model."
            )

    first = np.empty(int(item.max()) + 1, dtype=np.intp)
    first[item] = np.arange(len(item))
    rest = _codes(frame, rest_names)[0]
    order = np.lexsort((rest, item))
    found = Relabelling(
        unit=unit,
        paired=paired,
        columns=by,
        algorithm=runs.algorithm,
        item=item,
        stratum=stratum[first],
        label=label[first],
        n_labels=n_labels,
        start=_starts_if_alike(item, stratum[first], rest, cells.n, order),
        order=order,
    )
    if not found.n_strata:
        noun = "benchmark" if unit == "benchmark" else "instance"
        where = f"on any {noun}" if unit != "run" or not paired else f"for any seed on any {noun}"
        raise DataError(
            f"unit='{unit}': there are no two algorithms {where}, so no labels can be exchanged. Each algorithm needs "
            f"runs on the {noun}s of the others."
        )
    return found


def _codes(frame: pd.DataFrame, names: Sequence[str]) -> tuple[Index, int]:
    index, keys = group_codes([frame[name] for name in names], len(frame))
    return index, keys.size


def _starts_if_alike(item: Index, stratum: Index, rest: Index, n: NDArray[np.float64], order: Index) -> Index | None:
    """First position of each item in `order` where the items of every stratum have the same cells, else None."""
    size = np.bincount(item)
    start = np.cumsum(size) - size
    model = np.searchsorted(stratum, stratum)  # the first item of the stratum
    if not np.array_equal(size, size[model]):
        return None
    place = np.arange(len(order)) - start[item[order]]
    like = order[start[model[item[order]]] + place]
    alike = np.array_equal(rest[order], rest[like]) and np.array_equal(n[order], n[like])
    return start if alike else None


def check_unit(unit: Any, runs: Runs) -> str:
    """Refuse what is not a unit of exchange; a seed is a block and not a unit."""
    if isinstance(unit, str) and unit not in UNITS and unit in ("seed", runs.seed):
        raise ArgumentError(
            f"unit must be {' or '.join(map(repr, UNITS))}, got {unit!r}. Runs with the same seed are the blocks "
            "within which unit='run' exchanges names: use unit='run'."
        )
    return check_choice(unit, "unit", UNITS)


# ---------------------------------------------------------------------- fits of relabelled tables


@dataclass(frozen=True, slots=True, eq=False)
class RelabelledFit:
    """A model that is fitted again and again to a table whose labels are exchanged."""

    fit: LmmFit
    exchange: Relabelling
    cells: Cells
    to_model: CellMap

    @classmethod
    def of(cls, fit: LmmFit, exchange: Relabelling) -> RelabelledFit:
        """Prepare `fit` for exchanges of the labels of its table."""
        parsed = fit.design.parsed
        cells = compress(fit.data, by=exchange.columns, score=parsed.response, transform=parsed.response_transform)
        light = replace(fit, data=None)  # replicates need the cells only, and other processes get a copy
        return cls(fit=light, exchange=exchange, cells=cells, to_model=CellMap.of(cells, fit.cells))

    def refit(self, taken: Index) -> LmmFit:
        """The model on the table after one exchange (see `Relabelling.draw`)."""
        cells = self.exchange.relabel(self.cells, taken)
        if self.exchange.start is None:
            return self.fit.refit(cells=regroup(cells, list(self.fit.cells.frame.columns)))
        return self.fit.refit(cells=self.to_model.aggregate(cells))


def fit_for_comparison(runs: Runs, model: str | LmmFit | None, *, argument: str = "model") -> LmmFit:
    """The model (a formula, or a fit of one) fitted to the table; its fixed part must compare the algorithms."""
    require_runs(runs)
    formula = getattr(model, "formula", model)
    if not isinstance(formula, str):
        raise ArgumentError(f"{argument} must be a formula or a fit, got {type(model).__name__}.")
    for there, what, instead in (
        (getattr(model, "weights", None), "is a fit with weights, which belong", "Fit without weights"),
        (parse_formula(formula).offsets, "has an offset, which belongs", "Leave the offset out"),
    ):
        if there:
            raise ArgumentError(
                f"{argument} {what} to rows and not to labels, so that exchanging labels does not answer the question. "
                f"{instead}."
            )
    fit = fit_lmm(formula, runs, reml=getattr(model, "reml", True), dispersion=getattr(model, "dispersion", None))
    if runs.algorithm not in fit.design.factors:
        raise ArgumentError(
            f"{argument} must compare the algorithms: '{runs.algorithm}' is not a factor in the fixed part of "
            f"'{formula}'."
        )
    return fit


def differences(fit: Any, algorithm: str) -> NDArray[np.float64]:
    """Linear functions of the fixed effects: all pairwise differences of the algorithms' marginal means."""
    means = emmeans(fit, algorithm, ddf="asymptotic").fixed
    i, j = np.triu_indices(len(means), k=1)
    return np.asarray(means[i] - means[j])
