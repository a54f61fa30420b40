"""What a table of trainings varies: sources one at a time, several at once, nothing at all, or all of them crossed.

A cell is a combination of levels of all sources: a training that is run again is in the same cell. A line of a source
is a set of cells that agree in all other sources. Where sources are varied one at a time, lines of two sources meet in
the reference at most; in a crossed table every cell is on lines of several sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.rounding import tolerance
from lmemtest.lmm.intervals.balanced import group_codes

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index, Mask


FEWEST_AT_ONCE = 3  # trainings with the same sources new, from which on they are a sample
_MOST_LEFT = 0.5  # of the trainings may belong to no line where sources are said to vary one at a time


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Samples in which the same sources vary: the cells of each, their mean scores, and the mean of 1 / size."""

    cells: tuple[Index, ...]
    samples: tuple[Array, ...]
    noise: float

    @property
    def n(self) -> int:
        """Values."""
        return sum(map(len, self.samples))


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One table of trainings: scores, a code per source, and the number of the cell of each row."""

    sources: tuple[str, ...]
    codes: dict[str, Index]
    cell: Index
    score: Array

    @classmethod
    def of(cls, frame: pd.DataFrame, sources: tuple[str, ...], score: str) -> Layout:
        """Of the rows of a table."""
        codes = {source: group_codes(frame, [source]) for source in sources}
        return cls(sources, codes, group_codes(frame, list(sources)), frame[score].to_numpy(dtype=float))

    def levels(self, source: str) -> int:
        """Number of different seeds."""
        return int(self.codes[source].max()) + 1

    @property
    def varied(self) -> tuple[str, ...]:
        """Sources with two levels or more."""
        return tuple(source for source in self.sources if self.levels(source) > 1)

    def together(self) -> tuple[tuple[str, ...], ...]:
        """Sources in classes: those of one class always change together."""
        classes: list[list[str]] = []
        for source in self.varied:
            for group in classes:
                if same_groups(self.codes[source], self.codes[group[0]]):
                    group.append(source)
                    break
            else:
                classes.append([source])
        return tuple(map(tuple, classes))

    def repeated(self) -> tuple[Array, ...]:
        """Scores of the cells with more than one training."""
        size = np.bincount(self.cell)
        return tuple(self.score[self.cell == c] for c in np.flatnonzero(size > 1))

    def without_copies(self) -> Layout:
        """One row per cell where trainings with equal seeds have equal scores: again is nothing new."""
        repeated = self.repeated()
        if not repeated or any(np.ptp(x) > tolerance(x) for x in repeated):
            return self
        first = np.unique(self.cell, return_index=True)[1]
        codes = {source: code[first] for source, code in self.codes.items()}
        return Layout(self.sources, codes, np.arange(len(first)), self.score[first])

    # -- one at a time ------------------------------------------------------------------------------------------

    def lines(self) -> dict[str, list[Index]]:
        """The cells of every line with two cells or more, by source."""
        first = np.unique(self.cell, return_index=True)[1]  # one row per cell
        table = pd.DataFrame({source: self.codes[source][first] for source in self.sources})
        found: dict[str, list[Index]] = {}
        for source in self.varied:
            line = group_codes(table, [other for other in self.sources if other != source])
            found[source] = [np.flatnonzero(line == i) for i in np.flatnonzero(np.bincount(line) > 1)]
        return found

    def one_at_a_time(self) -> OneAtATime | None:
        """The lines of all sources, and what is varied at once off them; None if the table is not of this kind."""
        lines = self.lines()
        size = np.bincount(self.cell)
        seen = np.zeros((len(size), len(lines)), dtype=bool)
        for column, groups in enumerate(lines.values()):
            for cells in groups:
                seen[cells, column] = True
        shared = seen.sum(axis=1) > 1
        groups = [cells for several in lines.values() for cells in several]
        if not groups or any(int(shared[cells].sum()) > 1 for cells in groups) or self._seeds_again(lines):
            return None
        at_once, used = self._at_once(np.asarray(seen.any(axis=1)), size)
        used |= seen.any(axis=1) | (size > 1)
        if float(size[~used].sum()) > _MOST_LEFT * len(self.score):
            return None
        singles = {source: self._lines_of(several) for source, several in lines.items() if several}
        return OneAtATime(singles, at_once, self.repeated(), int(size[~used].sum()))

    def _seeds_again(self, lines: dict[str, list[Index]]) -> bool:
        """Whether two lines of one source have two of its seeds in common: then they are no samples of their own."""
        first = np.unique(self.cell, return_index=True)[1]
        seeds = {
            source: [set(self.codes[source][first[cells]].tolist()) for cells in lines[source]] for source in lines
        }
        return any(len(left & right) > 1 for sets in seeds.values() for left, right in combinations(sets, 2))

    def _lines_of(self, cells: list[Index]) -> Lines:
        size = np.bincount(self.cell)
        means = np.bincount(self.cell, weights=self.score) / size
        return Lines(tuple(cells), tuple(means[c] for c in cells), float(np.mean(1.0 / size[np.concatenate(cells)])))

    def _at_once(self, on_line: Mask, size: Index) -> tuple[dict[tuple[str, ...], Lines], Mask]:
        """Single trainings off the lines in which several sources have new seeds, and which cells these are."""
        first = np.unique(self.cell, return_index=True)[1]
        rows = first[~on_line & (size == 1)]
        used = np.zeros(len(size), dtype=bool)
        if not len(rows):
            return {}, used
        # a source that is new in a training is written as -1: trainings that then agree are a sample
        setting = pd.DataFrame(
            {s: np.where(np.bincount(c)[c] == 1, -1, c) for s in self.varied for c in [self.codes[s][rows]]}
        )
        found: dict[tuple[str, ...], list[Index]] = {}
        for _, group in setting.groupby(list(self.varied), sort=False):
            sources = tuple(s for s in self.varied if group[s].iloc[0] == -1)
            if len(sources) > 1 and len(group) >= FEWEST_AT_ONCE:
                found.setdefault(sources, []).append(self.cell[rows[group.index.to_numpy()]])
        for several in found.values():
            used[np.concatenate(several)] = True
        return {sources: self._lines_of(several) for sources, several in found.items()}, used


@dataclass(frozen=True, slots=True, eq=False)
class OneAtATime:
    """Lines by source, samples in which several sources vary at once, repeated trainings, and trainings left over."""

    lines: dict[str, Lines]
    at_once: dict[tuple[str, ...], Lines]
    repeated: tuple[Array, ...]
    left_over: int


def same_groups(left: Index, right: Index) -> bool:
    """Whether two codes put rows into the same groups.

    Examples
    --------
    >>> same_groups(np.array([0, 0, 1]), np.array([1, 1, 0])), same_groups(np.array([0, 0, 1]), np.array([0, 1, 1]))
    (True, False)
    """
    pairs = len(np.unique(left.astype(np.int64) * (int(right.max()) + 1) + right))
    return pairs == int(left.max()) + 1 == int(right.max()) + 1


def identified(codes: dict[str, Index], n: int) -> list[str]:
    """Terms whose variances a table with one free mean tells apart from those of all others and of the residual.

    The covariance of the scores is a sum of matrices, one per term and the identity, each times a variance. A variance
    is identified where its matrix, off the mean, is no combination of the others.

    Examples
    --------
    >>> a, b = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    >>> identified({"a": a, "b": b, "again": b, "each row": np.arange(6)}, 6)
    ['a']
    """
    every = {**codes, "": np.arange(n)}
    names = list(every)
    counts = {name: np.bincount(code).astype(float) for name, code in every.items()}
    gram = np.empty((len(names), len(names)))
    row = {name: counts[name][every[name]] for name in names}  # A 1, one number per row
    for i, j in [(i, i) for i in range(len(names))] + list(combinations(range(len(names)), 2)):
        left, right = names[i], names[j]
        both = every[left].astype(np.int64) * len(counts[right]) + every[right]
        size = np.unique(both, return_counts=True)[1].astype(float)
        value = float(size @ size) - 2.0 / n * float(row[left] @ row[right])
        gram[i, j] = gram[j, i] = value + float(row[left].sum()) * float(row[right].sum()) / n**2
    scale = np.sqrt(np.diag(gram))
    alive = [i for i in range(len(names)) if scale[i] > 1e-9 * n]
    gram = gram / np.outer(np.where(scale > 0, scale, 1.0), np.where(scale > 0, scale, 1.0))
    rank = np.linalg.matrix_rank(gram[np.ix_(alive, alive)], tol=1e-9, hermitian=True)

    def needed(k: int) -> bool:
        rest = [i for i in alive if i != k]
        return bool(np.linalg.matrix_rank(gram[np.ix_(rest, rest)], tol=1e-9, hermitian=True) < rank)

    return [names[k] for k in alive if names[k] and needed(k)]
