"""Group codes of a random-effect term: integer arithmetic on the codes of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmemtest.formula.columns import Codes, Columns, Levels, distinct
from lmemtest.formula.syntax import Name

# A table of all combinations is used up to this size (a few MB); beyond it the codes are sorted instead.
_TABLE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The groups of one term."""

    columns: tuple[Name, ...]  # columns that are crossed
    levels: tuple[Levels, ...]  # levels of each column
    # per column after the first, the combinations that occur, as `left code * n_levels + right code`
    steps: tuple[NDArray[np.int64], ...]
    labels: tuple[str, ...]  # labels of the groups, in order

    def codes(self, table: Columns) -> Codes:
        """Place the rows of a table among the groups; -1 for a group that the fit has not seen."""
        codes = table.codes(self.columns[0], self.levels[0], unknown=True)
        for name, levels, occurring in zip(self.columns[1:], self.levels[1:], self.steps, strict=True):
            right = table.codes(name, levels, unknown=True)
            joint = codes.astype(np.int64) * len(levels) + right
            place = np.minimum(np.searchsorted(occurring, joint), len(occurring) - 1)
            known = (codes >= 0) & (right >= 0) & (occurring[place] == joint)
            codes = np.where(known, place, -1).astype(np.intp)
        return codes


def group_rows(names: Sequence[Name], table: Columns) -> tuple[Grouping, Codes]:
    """Find the groups that occur."""
    codes, first = table.factor(names[0])
    levels, steps, labels = [first], [], first.labels()
    for name in names[1:]:
        right, right_levels = table.factor(name)
        joint = codes.astype(np.int64) * len(right_levels) + right
        occurring, codes = _compact(joint, len(labels) * len(right_levels))
        right_labels = right_levels.labels()
        lefts, rights = np.divmod(occurring, len(right_levels))
        labels = [f"{labels[i]}:{right_labels[j]}" for i, j in zip(lefts.tolist(), rights.tolist(), strict=True)]
        levels.append(right_levels)
        steps.append(occurring)
    grouping = Grouping(columns=tuple(names), levels=tuple(levels), steps=tuple(steps), labels=distinct(labels))
    return grouping, codes


def _compact(joint: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], Codes]:
    """Sorted distinct values and the place of each value among them."""
    if size > max(_TABLE, 4 * len(joint)):
        occurring, codes = np.unique(joint, return_inverse=True)
        return occurring, codes.astype(np.intp)
    present = np.zeros(size, dtype=bool)
    present[joint] = True
    return np.flatnonzero(present).astype(np.int64), (np.cumsum(present) - 1)[joint].astype(np.intp)
