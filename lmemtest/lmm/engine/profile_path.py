"""Follow a profile from the fit outwards, and find where it meets a cut.

``zeta(u) = sign(u - u0) sqrt(D(u) - D(u0))`` with ``D`` the deviance minimised over everything else. Its slope is
known, ``D' / (2 zeta)``, so each next point aims at the next share of the cut, every minimum begins at its neighbour
along the tangent, and the end is found by Newton steps inside a bracket on exact minima, not by interpolation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.rounding import written
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.profile import Constrained, Correlation, Minimiser, Minimum, ResidualDeviation, Target

_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the cut, that the way out aims at
_BEYOND = 1.15  # one point behind the end, so that a curve can be seen to cross the cut
# The Newton correction after a miss of this size is good to its square.
_MISS = 1e-5
# Fits that differ by more are different ones (as in the search).
AGREE = 1e-5
# Slope of zeta per unit of the target (one where nothing else adapts) below which its likelihood is flat.
_FLAT = 1e-3
_MOST = 60  # minima on one side


@dataclass(frozen=True)
class End:
    """Where a profile meets the cut."""

    value: float
    at_bound: bool = False
    reason: str = ""  # why there is none


@dataclass(frozen=True)
class Path:
    """A profile.

    ``better`` is a point of the search at which the deviance is lower than at the fit by ``gain``; the ends then mean
    nothing and are NaN.
    """

    estimate: float
    low: End
    high: End
    # exact minima: coordinate, user's value, signed root of the deviance and its slope in the user's value
    points: tuple[tuple[float, float, float, float], ...]
    evaluations: int
    flat: bool = False  # other values fit as well as the estimate
    better: Array | None = None
    gain: float = 0.0


class _Better(Exception):
    """Not an error: the search goes on from there."""

    def __init__(self, point: Array, gain: float) -> None:
        super().__init__(gain)
        self.point, self.gain = point, gain


def follow(problem: Problem, x: Array, at: Criterion, target: Target, *, cut: float, reml: bool = False) -> Path:
    """Profile of one target from the optimum ``x``; the interval holds the values with ``|zeta| <= cut``."""
    constrained = Constrained(problem, target, reml=reml)
    u0, phi0 = constrained.at_fit(x, at)
    walk = _Walk(constrained=constrained, u0=u0, phi0=phi0, cut=cut)
    try:
        low, high = _Side(walk, -1.0).end(), _Side(walk, 1.0).end()
    except _Better as found:
        none = End(float("nan"), reason="a better optimum was found")
        return Path(
            estimate=constrained.user(u0),
            low=none,
            high=none,
            points=(),
            evaluations=walk.minimiser.evaluations,
            better=found.point,
            gain=found.gain,
        )
    return Path(
        estimate=constrained.user(u0),
        low=low,
        high=high,
        points=tuple(sorted(walk.points, key=lambda point: point[0])),
        evaluations=walk.minimiser.evaluations,
        flat=walk.flat,
    )


@dataclass
class _Walk:
    """What both sides of a profile share: the point of the fit, and the points met."""

    constrained: Constrained
    u0: float
    phi0: Array
    cut: float
    points: list[tuple[float, float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.minimiser = Minimiser(self.constrained, self.u0, self.phi0)
        start = self.constrained.evaluate(self.u0, self.phi0)
        if start is None:
            raise np.linalg.LinAlgError("the criterion cannot be evaluated at the fit")
        self.best = start.value
        slope = float(np.sqrt(0.5 * self.minimiser.curvature))
        self.points.append((self.u0, self.constrained.user(self.u0), 0.0, slope / self._stretch(self.u0)))
        self.slope0 = slope
        inside = self.constrained.lower < self.u0 < self.constrained.upper
        self.flat = inside and slope * self.minimiser.u_scale < _FLAT

    def _stretch(self, u: float) -> float:
        """``d value / d u``."""
        return float(np.cos(u)) if isinstance(self.constrained.target, Correlation) else 1.0

    # -- one minimum ------------------------------------------------------------------------------------------

    def zeta(self, minimum: Minimum) -> tuple[float, float]:
        """Size of zeta, and the size of its slope outwards."""
        if minimum.value < self.best - AGREE:
            raise _Better(self.constrained.search_point(minimum.ev), self.best - minimum.value)
        zeta = float(np.sqrt(max(minimum.value - self.best, 0.0)))
        outward = float(np.sign(minimum.ev.u - self.u0)) * minimum.slope
        return zeta, (0.5 * outward / zeta if zeta > 0 else self.slope0)

    def keep(self, u: float, zeta: float, slope: float, *, smooth: bool = True) -> None:
        stretch = self._stretch(u)
        slope = slope / stretch if smooth and stretch > 1e-8 else float("nan")
        sign = 1.0 if u > self.u0 else -1.0
        self.points.append((u, self.constrained.user(u), sign * zeta, slope))


class _Side:
    """The way out on one side: the minima met, the last point inside the cut and, once there is one, one outside."""

    def __init__(self, walk: _Walk, sign: float) -> None:
        self.walk, self.sign, self.cut = walk, sign, walk.cut
        self.constrained, self.minimiser = walk.constrained, walk.minimiser
        self.bound = self.constrained.upper if sign > 0 else self.constrained.lower
        self.near: list[tuple[float, Minimum | None]] = [(walk.u0, None)]
        self.inner = (walk.u0, 0.0, walk.slope0)  # u, zeta and its slope
        self.outer: tuple[float, float] | None = None  # u, zeta

    def end(self) -> End:
        """The end of the interval."""
        if self.walk.u0 == self.bound:
            return End(self.constrained.user(self.bound), at_bound=True)
        largest = float("inf")  # of zeta on this side
        if np.isfinite(self.bound) and not isinstance(self.constrained.target, ResidualDeviation):
            zeta = self._at_bound(self.walk.phi0)
            self.outer, largest = (self.bound, zeta), zeta
            if zeta <= self.cut:
                self._march([share * zeta for share in _SHARES[:-1]])
                return self._ends_at_bound(zeta)
        self._march([share * self.cut for share in _SHARES])
        end = self._root()
        if not end.at_bound and np.isfinite(end.value) and largest > 1.1 * _BEYOND * self.cut:
            self._beyond()
        return end

    # -- one minimum ------------------------------------------------------------------------------------------

    def _solve(self, u: float) -> Minimum:
        """The minimum at ``u``, begun from its neighbours along the path."""
        walk = self.walk
        known = sorted(self.near, key=lambda pair: abs(pair[0] - u))
        first_u, first = known[0]
        phi = walk.phi0 if first is None else first.ev.phi
        H = None if first is None else first.H
        tangent = self.minimiser.tangent * self.minimiser.scale
        if first is not None and len(known) > 1:
            other_u, other = known[1]
            tangent = (phi - (walk.phi0 if other is None else other.ev.phi)) / (first_u - other_u)
        return self.minimiser.at(u, phi + tangent * (u - first_u), phi, walk.phi0, H=H)

    def _go_to(self, u: float) -> tuple[float, float]:
        """Solve at ``u``, which is then the nearest point inside or outside of the cut; zeta and its slope there."""
        minimum = self._solve(u)
        zeta, slope = self.walk.zeta(minimum)
        self.near.append((u, minimum))
        self.walk.keep(u, zeta, slope)
        if zeta > self.cut:
            self.outer = (u, zeta)
        else:
            self.inner = (u, zeta, slope)
        return zeta, slope

    def _at_bound(self, phi: Array) -> float:
        """Zeta where the target has the last value that it can have."""
        try:
            return self.walk.zeta(self.minimiser.at(self.bound, phi))[0]
        except np.linalg.LinAlgError:
            return float("inf")

    def _ends_at_bound(self, zeta: float) -> End:
        self.walk.keep(self.bound, zeta, 0.0, smooth=False)
        return End(self.constrained.user(self.bound), at_bound=True)

    # -- the way ----------------------------------------------------------------------------------------------

    def _step(self, u: float, missing: float, slope: float) -> float:
        """The next coordinate: where zeta would be larger by ``missing``."""
        unit, gone = self.minimiser.u_scale, abs(u - self.walk.u0)
        if not slope > 0:
            return u + self.sign * max(unit, gone)
        length = missing / slope
        if self.sign > 0 and self.constrained.lower == 0.0 and u > 0:  # a scale: its logarithm is nearer to linear
            return u * float(np.exp(min(length / u, 1.0)))
        return u + self.sign * min(length, 10.0 * max(unit, gone))

    def _march(self, aims: list[float]) -> None:
        """Go outwards from one aim to the next, until a point is outside of the cut."""
        for aim in aims:
            u, zeta, slope = self.inner
            if zeta >= aim:
                continue
            limit = self.bound if self.outer is None else self.outer[0]
            ahead = self._step(u, aim - zeta, slope)
            if np.isfinite(limit) and self.sign * (ahead - limit) >= 0:
                ahead = 0.5 * (u + limit)
            if self._go_to(ahead)[0] > self.cut:
                break

    def _root(self) -> End:
        """Newton steps inside the bracket until zeta meets the cut."""
        u, zeta, slope = self.inner
        last = self.near[-1][1]
        if last is not None:
            u = self.near[-1][0]
            zeta, slope = self.walk.zeta(last)
        for _ in range(_MOST):
            if abs(zeta - self.cut) < _MISS and slope > 0:
                return End(self.constrained.user(u + self.sign * (self.cut - zeta) / slope))
            u = self._inside(u, zeta, slope)
            inner, outer = self.inner[0], self.outer
            if outer is not None and abs(outer[0] - inner) < 1e-12 * max(abs(outer[0]), abs(inner), 1e-300):
                break
            zeta, slope = self._go_to(u)
        # the profile jumps over the cut, or its other branch reaches the bound inside the cut
        last = self.near[-1][1]
        if self.outer is None:
            reached = written(self.constrained.user(self.inner[0]), ".4g")
            return End(float("nan"), reason=f"no end was found up to {reached}")
        if self.outer[0] == self.bound and last is not None and (at := self._at_bound(last.ev.phi)) <= self.cut:
            return self._ends_at_bound(at)
        return End(self.constrained.user(self.inner[0]), reason="the profile jumps over the cut here")

    def _inside(self, u: float, zeta: float, slope: float) -> float:
        """The next try: Newton's, or one that shortens the bracket."""
        start, reached, steep = self.inner
        if self.outer is None:
            return self._step(start, self.cut - reached, steep)
        newton = u + self.sign * (self.cut - zeta) / slope if slope > 0 else float("nan")
        stop, beyond = self.outer
        if min(start, stop) < newton < max(start, stop):
            return newton
        share = (self.cut - reached) / (beyond - reached) if np.isfinite(beyond) else 0.5
        return start + min(max(share, 0.1), 0.9) * (stop - start)

    def _beyond(self) -> None:
        """One point behind the end."""
        u, minimum = self.near[-1]
        if minimum is None:
            return
        zeta, slope = self.walk.zeta(minimum)
        u = self._step(u, _BEYOND * self.cut - zeta, slope)
        if np.isfinite(self.bound) and self.sign * (u - self.bound) >= 0:
            return
        try:
            minimum = self._solve(u)
        except np.linalg.LinAlgError:
            return
        self.walk.keep(u, *self.walk.zeta(minimum))
