"""Rows to cells: the sufficient statistics of a Gaussian mixed model, by one group-by.

A model sees the scores y only through the cross-products of [Z X y].  Rows that agree in every column that
the formula uses form one cell c, and

    sum over rows of (y - f)^2  =  sum over cells of  ss_c + n_c (mean_c - f_c)^2

for any f that is constant within cells, so count, mean and within-cell sum of squares lose nothing.
The group-by runs where the data lives; only cells come to pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.caller import advice
from lmemtest.core.codes import EXAMPLES, Keys, first_rows, group_codes
from lmemtest.core.frames import cell_sums, check_numeric, first_bad_rows, in_memory
from lmemtest.core.validate import as_frame, check_columns, check_magnitude
from lmemtest.core.words import format_number
from lmemtest.errors import DataError
from lmemtest.lmm.scope import scope_of

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    from lmemtest.lmm.scope import Scope

Transform = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """The sufficient statistics of a table of scores, one entry per distinct combination of columns.

    Attributes
    ----------
    columns : Keys
        The values of the columns that define the cells, sorted by them in this order; categoricals by their categories.
    n, weight, mean, ss : (n_cells,) float64
        Rows of each cell; the prior weight of each row, 1 where none is given; the mean score; the unweighted sum of
        squares about it, exactly 0 for a cell with one distinct score.
    n_rows, n_dropped : int
        Rows of the table, and rows left out: 0, as missing scores are refused.
    """

    columns: Keys
    n: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    ss: np.ndarray
    n_rows: int
    n_dropped: int = 0

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns, in their own dtypes."""
        return self.columns.frame()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return self.columns.names

    def groups(self, names: Sequence[str]) -> np.ndarray:
        """The group of every cell by some of the columns, groups numbered in the order of their levels."""
        return self.columns.only(names).numbered()

    def strata(self, name: str) -> tuple[NDArray[np.intp], list[Any]]:
        """The level of one of the columns in every cell, and its levels in their order."""
        at = self.columns.names.index(name)
        return self.columns.codes[at].astype(np.intp), pd.Series(self.columns.levels[at]).tolist()

    def __repr__(self) -> str:
        return f"Cells({len(self.n):,} cells of {', '.join(self.names)}; {self.n_rows:,} rows)"

    def to_frame(self) -> pd.DataFrame:
        """The columns of the cells with ``n``, ``weight``, ``mean`` and ``ss`` beside them."""
        numbers = {"n": self.n, "weight": self.weight, "mean": self.mean, "ss": self.ss}
        return pd.concat([self.frame, pd.DataFrame(numbers, index=self.frame.index)], axis=1)


def compress(
    frame: Any,
    by: Sequence[str],
    *,
    score: str,
    transform: Transform | None = None,
    weights: str | None = None,
) -> Cells:
    """Compress a table to its cells: counts, means and sums of squares, exact to rounding, whatever the backend.

    A transform is applied to the scores, row by row, before they are summarised. Rows with different prior weights go
    to different cells. Missing keys, scores that are not finite and weights that are not positive are refused.

    >>> table = {"algorithm": ["HB", "RS", "RS"], "loss": [0.5, 1.0, 2.0]}
    >>> compress(table, ["algorithm"], score="loss").to_frame()
      algorithm    n  weight  mean   ss
    0        HB  1.0     1.0   0.5  0.0
    1        RS  2.0     1.0   1.5  0.5
    """
    table = as_frame(frame, argument="frame")
    columns = table.collect_schema().names()
    by = check_columns(tuple(dict.fromkeys([by] if isinstance(by, str) else by)), columns, argument="by")
    check_columns(score, columns, argument="score")
    check_columns(() if weights is None else weights, columns, argument="weights")
    return compressed(table, by, score=score, transform=transform, weights=weights, scope=scope_of(frame))


def compressed(
    table: nw.DataFrame[Any] | nw.LazyFrame[Any],
    by: tuple[str, ...],
    *,
    score: str,
    transform: Transform | None,
    weights: str | None,
    scope: Scope | None,
) -> Cells:
    """`compress` by columns that the table has."""
    for column, argument in ((score, "score"), (weights, "weights")):
        if column is not None:
            check_numeric(table, column, argument=argument)
    keys = by if weights is None or weights in by else (*by, weights)
    groups = None if scope is None else scope.summarised(keys, score, transform)
    if groups is None:
        groups = aggregate(table, keys, score, transform=transform)
        if scope is not None:
            scope.require_unchanged(groups)
    if scope is not None and score == scope.response:
        scope.refuse(groups)
    weight = None if weights is None else np.asarray(groups.keys.values(weights), dtype=np.float64)
    if weight is not None:
        refuse_weights(weight, groups.n, str(weights))
    cells = cells_of(groups, table, score)
    return cells if weight is None else replace(cells, columns=groups.keys.only(by), weight=weight)


def cells_of(groups: Groups, table: nw.DataFrame[Any] | nw.LazyFrame[Any], score: str) -> Cells:
    """Groups as cells of unit weight; scores that are missing or infinite are refused."""
    refuse_scores(groups, table, score)
    return Cells(
        columns=groups.keys,
        n=groups.n,
        weight=np.ones(groups.keys.size),
        mean=groups.mean,
        ss=groups.ss,
        n_rows=int(groups.n.sum()),
    )


_OF_GROUPS = ("n", "n_bad", "mean", "above", "ss", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """What one group-by returns: cells that may hold scores that are not finite.

    ``n`` counts all rows, ``n_bad`` those whose score is missing or infinite;
    ``mean``, ``ss``, ``low`` and ``high`` are of the others (not finite where there are none; ``ss`` 0). ``above`` is
    the mean minus the lowest score, with the digits that the mean of 1e6 and a little more has no place for.
    """

    keys: Keys
    n: np.ndarray
    n_bad: np.ndarray
    mean: np.ndarray
    above: np.ndarray
    ss: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        """How many rows have a finite score."""
        return self.n - self.n_bad

    def where(self, wanted: Mapping[str, Sequence[Any]]) -> Groups:
        """The groups whose columns have one of the values wanted, with the levels that are left."""
        keys, kept = self.keys, np.ones(self.keys.size, dtype=bool)
        for name, values in wanted.items():
            i = keys.names.index(name)
            among = set(values)
            kept &= np.array([level in among for level in keys.levels[i].tolist()], dtype=bool)[keys.codes[i]]
        return Groups(keys=keys.part(kept), **{name: getattr(self, name)[kept] for name in _OF_GROUPS})

    def over(self, by: Sequence[str]) -> Groups:
        """Coarser groups from finer ones: counts, means and sums of squares about them, exact to rounding.

        Means are pooled by how far they are above the lowest score of the group, so that an offset that all scores
        share costs no digits.
        """
        keys = self.keys.only(by)
        index = keys.numbered()
        size = int(index.max()) + 1
        if size == len(index):  # the same groups in another order
            order = first_rows(index, size)
            return Groups(keys=keys.take(order), **{name: getattr(self, name)[order] for name in _OF_GROUPS})

        def total(values: NDArray[np.float64]) -> NDArray[Any]:
            return np.bincount(index, weights=values, minlength=size)

        n, bad = total(self.n), total(self.n_bad)
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        valid = self.n - self.n_bad
        good = valid > 0
        np.minimum.at(low, index[good], self.low[good])
        np.maximum.at(high, index[good], self.high[good])
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.where(good, (self.low - low[index]) + self.above, 0.0)
            centre = total(valid * off) / (n - bad)
        ss = total(np.where(good, self.ss + valid * (off - np.nan_to_num(centre)[index]) ** 2, 0.0))
        constant = low == high
        above = np.where(constant, 0.0, centre)
        return Groups(
            keys=keys.take(first_rows(index, size)),
            n=n,
            n_bad=bad,
            mean=low + above,
            above=above,
            ss=np.where(constant, 0.0, ss),
            low=low,
            high=high,
        )


def aggregate(
    table: nw.DataFrame[Any] | nw.LazyFrame[Any],
    keys: Sequence[str],
    score: str,
    *,
    transform: Transform | None = None,
) -> Groups:
    """Group a checked table by `keys` and summarise `score`; missing keys are refused, bad scores counted."""
    rows = in_memory(table, keys, score, every=transform is not None)
    if rows is None:
        columns, sums = cell_sums(table.lazy(), keys, score)
        n, scores = len(sums["n"]), np.concatenate([sums["low"], sums["high"]])
    else:
        columns, scores = rows
        n, scores = len(scores), scores if transform is None else transformed(scores, transform)
    check_magnitude(scores)
    index, coded = group_codes(columns, n)
    if rows is not None:
        return _summarised(index, coded, scores)
    order = np.argsort(index, kind="stable")
    ordered = {name: values[order] for name, values in sums.items()}
    return Groups(keys=coded, n_bad=ordered["n"] - ordered.pop("valid"), **ordered)


def _summarised(index: np.ndarray, keys: Keys, scores: np.ndarray) -> Groups:
    """Rows with the group of each as groups."""
    k = keys.size
    counts = np.bincount(index, minlength=k).astype(float)
    good = np.isfinite(scores)
    if k == len(scores):  # every row is a cell
        y = np.empty(k)
        y[index] = np.where(good, scores, np.nan)
        bad = np.isnan(y).astype(float)
        return Groups(keys=keys, n=counts, n_bad=bad, mean=y, above=np.zeros(k), ss=np.zeros(k), low=y, high=y)
    if good.all():
        bad, valid = np.zeros(k), counts
    else:
        bad = np.bincount(index[~good], minlength=k).astype(float)
        valid = counts - bad
        index, scores = index[good], scores[good]
    # Deviations from one score of the cell are exact where scores agree in their leading digits, and zero
    # where they agree in all: the offset 1e8 of a score of 1e8 + noise never meets a square.
    shift = np.full(k, np.nan)
    shift[index[::-1]] = scores[::-1]
    deviation = scores - shift[index]
    with np.errstate(invalid="ignore"):  # cells without a finite score
        centre = np.bincount(index, weights=deviation, minlength=k) / valid
    residual = deviation - centre[index]
    ss = np.bincount(index, weights=residual * residual, minlength=k)
    low, high = np.full(k, np.inf), np.full(k, -np.inf)
    np.minimum.at(low, index, scores)
    np.maximum.at(high, index, scores)
    above = (shift - low) + centre
    return Groups(keys=keys, n=counts, n_bad=bad, mean=shift + centre, above=above, ss=ss, low=low, high=high)


# -------------------------------------------------------------------------------------------------- checks


def transformed(scores: np.ndarray, transform: Transform) -> np.ndarray:
    """Apply `transform`; where it fails on a finite score, say on which."""
    with np.errstate(all="ignore"):
        out = np.asarray(transform(scores.copy()), dtype=np.float64)
    if out.shape != scores.shape:
        raise DataError(f"transform must return {len(scores)} values, one per row, got shape {out.shape}.")
    failed = np.isfinite(scores) & ~np.isfinite(out)
    if failed.any():
        values = ", ".join(format_number(value) for value in scores[failed][:EXAMPLES])
        name = getattr(transform, "__name__", "the transformation")
        raise DataError(
            f"{name} of the score is not finite in {int(failed.sum()):,} of {len(scores):,} rows "
            f"(for example for the scores {values}). Choose a transformation that is defined for all scores, "
            f"or shift the scores first."
        )
    return out


def refuse_scores(groups: Groups, table: nw.DataFrame[Any] | nw.LazyFrame[Any], score: str) -> None:
    """Refuse groups with scores that are missing or infinite."""
    if not groups.n_bad.any():
        return
    count, total = int(groups.n_bad.sum()), int(groups.n.sum())
    where = first_bad_rows(table, score)
    have = "has" if count == 1 else "have"
    raise DataError(
        f"{count:,} of {total:,} rows {have} a score that is missing or infinite ({score!r}; {where}). "
        f"A failed run is not a missing run: score it as the worst value that is possible{of_failures()}. Only if the "
        f"failure has nothing to do with the algorithm, drop such rows with "
        f"{advice('drop_missing')}."
    )


def of_failures(failed: str = "nonfinite") -> str:
    """How to say that runs failed, by a column or by scores that are missing or infinite, and what they count."""
    return advice("failed_worst", failed=failed)


def refuse_weights(weight: np.ndarray, n: np.ndarray, name: str) -> None:
    bad = ~(np.isfinite(weight) & (weight > 0))
    if bad.any():
        values = ", ".join(f"{value:g}" for value in weight[bad][:EXAMPLES])
        raise DataError(
            f"weights must be positive and finite, but {name!r} is not in {int(n[bad].sum()):,} rows "
            f"(values {values}). A weight of zero means that the row is not used: drop such rows."
        )


# --------------------------------------------------------------------------------- coarser from finer ones


@dataclass(frozen=True, slots=True, eq=False)
class CellMap:
    """Which cell of a coarser table each cell of a finer one belongs to."""

    codes: NDArray[np.intp]
    coarse: Cells

    @classmethod
    def of(cls, fine: Cells, coarse: Cells) -> CellMap:
        """Match the cells by the columns, and the weights, of the coarser table."""
        columns: list[pd.Series] = [
            pd.concat([coarse.frame[name], fine.frame[name]], ignore_index=True) for name in coarse.frame.columns
        ]
        columns.append(pd.Series(np.concatenate([coarse.weight, fine.weight])))
        n_coarse = len(coarse.n)
        index, keys = group_codes(columns, n_coarse + len(fine.n))
        position = np.full(keys.size, -1, dtype=np.intp)
        position[index[:n_coarse]] = np.arange(n_coarse)
        return cls(codes=position[index[n_coarse:]], coarse=coarse)

    def aggregate(self, fine: Cells) -> Cells:
        """The finer table's means and sums of squares at the coarser cells."""
        k = len(self.coarse.n)
        mean = np.bincount(self.codes, weights=fine.n * fine.mean, minlength=k) / self.coarse.n
        apart = fine.mean - mean[self.codes]
        ss = np.bincount(self.codes, weights=fine.ss + fine.n * apart * apart, minlength=k)
        return replace(self.coarse, mean=mean, ss=ss)


def regroup(cells: Cells, names: Sequence[str]) -> Cells:
    """Cells of some of the columns of `cells`, in sorted order as `compress` has them."""
    columns: list[pd.Series] = [cells.frame[name] for name in names]
    columns.append(pd.Series(cells.weight))
    index, keys = group_codes(columns, len(cells.n))
    n = np.bincount(index, weights=cells.n, minlength=keys.size)
    weight = np.empty(keys.size)
    weight[index] = cells.weight
    coarse = Cells(columns=keys.only(names), n=n, weight=weight, mean=n, ss=n, n_rows=cells.n_rows)
    return CellMap(codes=index, coarse=coarse).aggregate(cells)
