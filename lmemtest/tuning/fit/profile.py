"""Peaks of M for every c, and the intervals of one parameter within which M stays near its highest peak.

Scores are oriented so that smaller is better; parameters are numbered 0 for a (the best score), 1 for b, 2 for o.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array
from lmemtest.tuning.fit import spacings
from lmemtest.tuning.fit.spacings import Box, Peak, Spacings
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution

# Twice the drop of M at the truth is close to chi-squared(1), although the problem is not regular for c < 4: in 4,000
# samples without noise (n = 20, 48, 200; c from 1 to 10) its 95 % quantile lay between 2.8 and 5.6 for the ends, 4.2 in
# the middle, where chi-squared has 3.84; its 80 % quantile between 1.2 and 2.9, 1.9 in the middle, for 1.64.
INFLATION = 1.3
_DOUBLINGS = 60
_DEEPEST = 10.0  # below the floor everything is equally far; keeps interpolation from creeping
_LEAST = 0.01  # of b - a at a start, as a share of the range of the scores
_ROUNDING = 1e-11  # of M, relative
_TOLERANCE = 0.01  # of an end, as a share of the distance on which M changes


def allowance(level: float) -> float:
    """How far M may fall below its peak inside an interval."""
    return float(0.5 * INFLATION * special.chdtri(1.0, 1.0 - level))


Held = Callable[[int, float, Array | None, float], tuple[float, Array | None]]


@dataclass(slots=True, eq=False)
class Family:
    """One of both laws with the boxes of its parameters; keeps the peaks it has found."""

    data: Spacings
    a: Box
    b: Box
    o: Box
    c: tuple[int, ...]
    peaks: dict[int, Peak] = field(default_factory=dict)

    @property
    def noisy(self) -> bool:
        """Whether there is noise to be estimated."""
        return self.o[1] > 0.0

    def climb_all(self) -> None:
        """Find the peak for every c; that of the last one is a further start."""
        warm: tuple[Array, ...] = ()
        for c in self.c:
            quiet = self._quiet(c, self.a, self.b)
            candidates = [quiet] if self.o[0] == 0.0 else []
            if self.noisy:
                value, at = spacings.noisy_peak(self.data, c, self._box(), quiet, warm)
                warm = (at,)
                candidates.append((value, (float(at[0]), float(at[1]), math.exp(at[2]))))
            top = max(value for value, _ in candidates)  # noise that adds no more than rounding is none
            self.peaks[c] = next(peak for peak in candidates if peak[0] >= top - _ROUNDING * abs(top))

    @property
    def best(self) -> int:
        """The c of the highest peak, the smallest of those within rounding."""
        top = max(value for value, _ in self.peaks.values())
        return min(c for c, (value, _) in self.peaks.items() if value >= top - 1e-9 * abs(top))

    def _box(self) -> tuple[Array, Array]:
        return spacings.bounds(self.data, self.a, self.b, self.o)

    def _quiet(self, c: int, a: Box, b: Box) -> Peak:
        first, last = float(self.data.edges[0]), float(self.data.edges[-1])
        if a[0] >= first or b[1] <= last:
            return -math.inf, (first, last, 0.0)
        return spacings.quiet_peak(self.data, c, a, b)

    def held(self, c: int, which: int, value: float, warm: Array | None) -> tuple[float, Array | None]:
        """M with one parameter held at `value`, maximised over the others; and where, as the next start."""
        quiet = -math.inf
        if self.o[0] == 0.0 and (which < 2 or value == 0.0):
            boxes = [(value, value) if which == i else box for i, box in enumerate((self.a, self.b))]
            quiet, _ = self._quiet(c, *boxes)
        if not self.noisy or (which == 2 and value <= 0.0) or warm is None:
            return quiet, warm
        low, high = self._box()
        start = warm.copy()
        start[which] = math.log(value) if which == 2 else value
        low[which] = high[which] = start[which]
        if start[1] - start[0] < _LEAST * self.data.span:  # the held end has passed the free one
            width = 10.0 * _LEAST * self.data.span
            start = np.array([value - width, value, start[2]]) if which == 1 else start
            start[1] = max(start[1], start[0] + width)
        noisy, at = spacings.climb(self.data, c, start, (low, high), fixed=which)
        return max(quiet, noisy), at

    # ------------------------------------------------------------------ intervals

    def plausible(self, floor: float) -> tuple[int, ...]:
        """The c whose peak is not below `floor`."""
        return tuple(c for c, (value, _) in self.peaks.items() if value >= floor)

    def interval(self, which: int, floor: float) -> Box:
        """Values of one parameter for which M reaches `floor` with some c and some of the other parameters."""
        box, (low, high) = (self.a, self.b, self.o)[which], self._range
        low, high = (0.0, self._far) if which == 2 else (low, high)
        limits = max(box[0], low), min(box[1], high)
        at = {c: self.peaks[c][1][which] for c in self.plausible(floor)}
        return self._ends(lambda c, value, warm, _: self.held(c, which, value, warm), at, floor, limits, which)

    def quantile_interval(self, p: float, floor: float) -> Box:
        """Values of the quantile at `p` for which M reaches `floor`."""
        at = {c: self.quantile(c, p) for c in self.plausible(floor)}
        return self._ends(partial(self._held_quantile, p), at, floor, self._range, 0)

    def quantile(self, c: int, p: float) -> float:
        """The quantile at `p` of the law at the peak for `c`."""
        _, (a, b, o) = self.peaks[c]
        return float(NoisyQuadraticDistribution(a, b, float(c), o, True).ppf(p))

    def _held_quantile(
        self, p: float, c: int, value: float, warm: Array | None, before: float
    ) -> tuple[float, Array | None]:
        """M with a quantile held at `value`, from a start whose quantile is `before`."""
        quiet = spacings.quiet_held(self.data, c, self.a, self.b, value, p) if self.o[0] == 0.0 else -math.inf
        if warm is None:
            return quiet, warm
        start = warm + np.array([value - before, value - before, 0.0])
        noisy, at = spacings.climb(self.data, c, start, self._box(), point=spacings.pinned(value, p))
        return max(quiet, noisy - spacings.pinned_top(p)), at

    @property
    def _far(self) -> float:
        return spacings.FARTHEST * self.data.span

    @property
    def _range(self) -> Box:
        """The range of scores that is looked at."""
        return float(self.data.edges[0]) - self._far, float(self.data.edges[-1]) + self._far

    def _ends(self, held: Held, at: dict[int, float], floor: float, limits: Box, which: int) -> Box:
        """Both ends of the values that can be held without M falling below `floor`, from a peak for each c outwards.

        ``held(c, value, warm, before)`` gives M with something held at `value`, from a start where it is `before`; it
        is `at` the peaks. An end is infinite where the search reached its limit, which was no constraint.
        """
        edges, span = self.data.edges, self.data.span
        starts: dict[int, Array | None] = dict.fromkeys(at)
        scale = math.inf  # the distance on which M changes: that of an end from the scores nearest to it
        for c in at:
            _, (a, b, o) = self.peaks[c]
            near = (abs(float(edges[0]) - a), abs(float(edges[-1]) - b), o)[which]
            scale = min(scale, max(near, 1e-6 * span), 0.02 * span)
            if self.noisy:
                starts[c] = np.array([a, b, math.log(max(o, 1e-3 * span))])

        def end(sign: float) -> float:
            """How far the values reach downwards (-1) or upwards (1)."""
            limit, so_far = limits[1] if sign > 0 else -limits[0], -math.inf
            # from the c whose peak lies farthest out, so that most of the others can be dismissed with one evaluation
            for c in sorted(at, key=lambda c: -sign * at[c]):
                state = (at[c], starts[c])

                def above(x: float, c: int = c) -> float:
                    nonlocal state
                    value, warm = held(c, sign * x, state[1], state[0])
                    if value >= floor:
                        state = (sign * x, warm)
                    return max(value - floor, -_DEEPEST)

                start = max(sign * at[c], so_far)
                if start > sign * at[c] and above(start) < 0.0:
                    continue
                so_far = max(so_far, _reach(above, start, limit, scale))
            return sign * so_far

        low, high, middle = end(-1.0), end(1.0), float(edges.mean())
        free = 0.5 * self._far
        return (-math.inf if middle - low > free else low), (math.inf if high - middle > free else high)


def _reach(above: Callable[[float], float], start: float, limit: float, scale: float) -> float:
    """Where `above` turns negative, from `start` on in doubling steps; the limit if it does not."""
    if start >= limit:
        return start
    low, at_low, step = start, max(above(start), 0.0), scale
    for _ in range(_DOUBLINGS):
        high = min(low + step, limit)
        at_high = above(high)
        if at_high < 0.0:
            return _crossing(above, (low, high), (at_low, at_high), _TOLERANCE * scale)
        if high >= limit:
            break
        low, at_low, step = high, at_high, 2.0 * step
    return limit


def _crossing(f: Callable[[float], float], ends: Box, values: Box, tolerance: float) -> float:
    """Where f turns negative, by the Illinois rule; each value comes from a search, so none is computed twice."""
    (low, high), (at_low, at_high) = ends, values
    side = 0
    for _ in range(_DOUBLINGS):
        if high - low <= tolerance:
            break
        x = low + (high - low) * min(max(at_low / (at_low - at_high), 0.02), 0.98)
        value = f(x)
        if value >= 0.0:
            low, at_low = x, value
            at_high, side = (0.5 * at_high if side == 1 else at_high), 1
        else:
            high, at_high = x, value
            at_low, side = (0.5 * at_low if side == -1 else at_low), -1
    return low + (high - low) * at_low / (at_low - at_high) if at_low > at_high else low
