"""Evidence that one tuning curve is above another: what their bands say at each budget, and over a range of budgets.

At a budget, with larger better and both bands non-trivial, the evidence that A is better than B is

    weak    the band of A lies above the estimate of B, or the band of B below the estimate of A
    fair    both
    strong  the band of A lies above the band of B

and the label of a comparison is the strongest of these that holds over a stated portion of the budgets.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

LEVELS = ("none", "weak", "fair", "strong")
_SLACK = 1e-12  # of a portion: half of the budgets is half whatever the rounding


class Reading(NamedTuple):
    """A curve with its band at (..., m) budgets, turned so that larger is better."""

    pessimistic: FloatArray
    estimate: FloatArray
    optimistic: FloatArray


class Segment(NamedTuple):
    """Neighbouring budgets with the same evidence: from the first to the last of them."""

    level: str
    better: str
    start: float
    stop: float


class Verdict(NamedTuple):
    """The label of a comparison: level, sign of the better curve (0 if both or none), portion of the budgets."""

    level: str
    sign: int
    portion: float


def signed_levels(a: Reading, b: Reading) -> NDArray[np.int8]:
    """Evidence at each budget: 1, 2, 3 (weak, fair, strong) for a, the same below zero for b, else 0.

    Both signs at once are impossible: the band of A above the estimate of B puts A's estimate above B's.

    Examples
    --------
    >>> high = Reading(np.array([0.6]), np.array([0.7]), np.array([0.8]))
    >>> low = Reading(np.array([0.4]), np.array([0.5]), np.array([0.65]))
    >>> signed_levels(high, low), signed_levels(low, high)
    (array([2], dtype=int8), array([-2], dtype=int8))
    """
    return _levels(a, b) - _levels(b, a)


def _levels(a: Reading, b: Reading) -> NDArray[np.int8]:
    above = (a.pessimistic > b.estimate).astype(np.int8)
    below = (b.optimistic < a.estimate).astype(np.int8)
    return above + below + (a.pessimistic > b.optimistic).astype(np.int8)


def portions(signed: NDArray[np.int8]) -> FloatArray:
    """Share of the budgets (last axis) with at least each level, (..., 3, 2): weak, fair, strong; for a, for b."""
    rows = [[(sign * signed >= level).mean(axis=-1) for sign in (1, -1)] for level in (1, 2, 3)]
    return np.moveaxis(np.array(rows, dtype=float), (0, 1), (-2, -1))


def reaches(shares: Any, portion: float) -> Any:
    """Whether shares of the budgets are enough: at least `portion`, and more than none."""
    return (np.asarray(shares) >= portion - _SLACK) & (np.asarray(shares) > 0.0)


def verdict(shares: FloatArray, portion: float) -> Verdict:
    """The strongest level that one of the curves has over enough of the budgets.

    Examples
    --------
    >>> verdict(np.array([[0.75, 0.0], [0.5, 0.0], [0.25, 0.0]]), 0.5)
    Verdict(level='fair', sign=1, portion=0.5)
    """
    for level in (3, 2, 1):
        share = shares[level - 1]
        enough = reaches(share, portion)
        if enough.any():
            sign = 0 if enough.all() else 1 if enough[0] else -1
            return Verdict(LEVELS[level], sign, float(share.max() if sign else share.min()))
    return Verdict(LEVELS[0], 0, 0.0)


def segments(signed: NDArray[np.int8], usable: BoolArray, grid: FloatArray, names: tuple[str, str]) -> list[Segment]:
    """Runs of neighbouring budgets with the same evidence; those without evidence, or trivial, are left out.

    Examples
    --------
    >>> segments(np.array([1, 1, 0, -2], np.int8), np.ones(4, bool), np.array([1.0, 2, 3, 4]), ("A", "B"))
    [Segment(level='weak', better='A', start=1.0, stop=2.0), Segment(level='fair', better='B', start=4.0, stop=4.0)]
    """
    found = []
    for value, run in groupby(range(len(grid)), key=lambda i: int(signed[i]) if usable[i] else 0):
        places = list(run)
        if value:
            better = names[0] if value > 0 else names[1]
            found.append(Segment(LEVELS[abs(value)], better, float(grid[places[0]]), float(grid[places[-1]])))
    return found
