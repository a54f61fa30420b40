"""Follow a profile from the fit outwards, and find where it meets a cut.

``zeta(u) = sign(u - u0) sqrt(D(u) - D(u0))`` with ``D`` the deviance minimised over everything else. Its slope is
known, ``D' / (2 zeta)``, so each next point aims at the next share of the cut, every minimum begins at its neighbour
along the tangent, and the end is found by Newton steps inside a bracket on exact minima, not by interpolation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lmemtest._rounding import written
from lmemtest.engine.criterion import Criterion
from lmemtest.engine.cross import Array
from lmemtest.engine.problem import Problem
from lmemtest.engine.profile import Constrained, Correlation, Minimiser, Minimum, ResidualDeviation, Target

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
class PathPoint:
    """One exact minimum: coordinate, user's value, signed root of the deviance and its slope in the user's value."""

    u: float
    value: float
    zeta: float
    slope: float


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
    points: tuple[PathPoint, ...]
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
        low, high = walk.side(-1.0), walk.side(1.0)
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
        points=tuple(sorted(walk.points, key=lambda p: p.u)),
        evaluations=walk.minimiser.evaluations,
        flat=walk.flat,
    )


@dataclass
class _Walk:
    constrained: Constrained
    u0: float
    phi0: Array
    cut: float
    points: list[PathPoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.minimiser = Minimiser(self.constrained, self.u0, self.phi0)
        start = self.constrained.evaluate(self.u0, self.phi0)
        if start is None:
            raise np.linalg.LinAlgError("the criterion cannot be evaluated at the fit")
        self.best = start.value
        slope = float(np.sqrt(0.5 * self.minimiser.curvature))
        self.points.append(PathPoint(self.u0, self.constrained.user(self.u0), 0.0, slope / self._stretch(self.u0)))
        self.slope0 = slope
        inside = self.constrained.lower < self.u0 < self.constrained.upper
        self.flat = inside and slope * self.minimiser.u_scale < _FLAT

    def _stretch(self, u: float) -> float:
        """``d value / d u``."""
        return float(np.cos(u)) if isinstance(self.constrained.target, Correlation) else 1.0

    # -- one minimum ------------------------------------------------------------------------------------------

    def _zeta(self, minimum: Minimum) -> tuple[float, float]:
        """Size of zeta, and the size of its slope outwards."""
        if minimum.value < self.best - AGREE:
            raise _Better(self.constrained.search_point(minimum.ev), self.best - minimum.value)
        zeta = float(np.sqrt(max(minimum.value - self.best, 0.0)))
        outward = float(np.sign(minimum.ev.u - self.u0)) * minimum.slope
        return zeta, (0.5 * outward / zeta if zeta > 0 else self.slope0)

    def _keep(self, u: float, sign: float, zeta: float, slope: float, *, smooth: bool = True) -> None:
        stretch = self._stretch(u)
        slope = slope / stretch if smooth and stretch > 1e-8 else float("nan")
        self.points.append(PathPoint(u, self.constrained.user(u), sign * zeta, slope))

    def _solve(self, u: float, near: list[tuple[float, Minimum | None]]) -> Minimum:
        """The minimum at ``u``, begun from its neighbours along the path."""
        known = sorted(near, key=lambda pair: abs(pair[0] - u))
        first_u, first = known[0]
        phi = self.phi0 if first is None else first.ev.phi
        H = None if first is None else first.H
        tangent = self.minimiser.tangent * self.minimiser.scale
        if first is not None and len(known) > 1:
            other_u, other = known[1]
            tangent = (phi - (self.phi0 if other is None else other.ev.phi)) / (first_u - other_u)
        return self.minimiser.at(u, phi + tangent * (u - first_u), phi, self.phi0, H=H)

    # -- one side ---------------------------------------------------------------------------------------------

    def side(self, sign: float) -> End:
        """The end of the interval on one side."""
        bound = self.constrained.upper if sign > 0 else self.constrained.lower
        if self.u0 == bound:
            return End(self.constrained.user(bound), at_bound=True)
        outer: tuple[float, float] | None = None  # a point outside of the cut: u, zeta
        largest = float("inf")  # of zeta on this side
        if np.isfinite(bound) and not isinstance(self.constrained.target, ResidualDeviation):
            zeta = self._at_bound(bound, self.phi0)
            if zeta <= self.cut:
                self._march(sign, [share * zeta for share in _SHARES[:-1]], (bound, zeta), bound)
                self._keep(bound, sign, zeta, 0.0, smooth=False)
                return End(self.constrained.user(bound), at_bound=True)
            outer, largest = (bound, zeta), zeta
        near, inner, outer = self._march(sign, [share * self.cut for share in _SHARES], outer, bound)
        end = self._root(sign, near, inner, outer, bound)
        if not end.at_bound and np.isfinite(end.value) and largest > 1.1 * _BEYOND * self.cut:
            self._beyond(sign, near, bound)
        return end

    def _at_bound(self, bound: float, phi: Array) -> float:
        """Zeta where the target has the last value that it can have."""
        try:
            return self._zeta(self.minimiser.at(bound, phi))[0]
        except np.linalg.LinAlgError:
            return float("inf")

    def _step(self, u: float, missing: float, slope: float, sign: float) -> float:
        """The next coordinate: where zeta would be larger by ``missing``."""
        unit = self.minimiser.u_scale
        if not slope > 0:
            return u + sign * max(unit, abs(u - self.u0))
        length = missing / slope
        if sign > 0 and self.constrained.lower == 0.0 and u > 0:  # a scale: its logarithm is nearer to linear
            return u * float(np.exp(min(length / u, 1.0)))
        largest = 10.0 * max(unit, abs(u - self.u0))
        return u + sign * min(length, largest)

    def _march(
        self, sign: float, aims: list[float], outer: tuple[float, float] | None, bound: float
    ) -> tuple[list[tuple[float, Minimum | None]], tuple[float, float, float], tuple[float, float] | None]:
        """Go outwards from one aim to the next; the last point inside the cut, and a point outside if one was met."""
        near: list[tuple[float, Minimum | None]] = [(self.u0, None)]
        inner = (self.u0, 0.0, self.slope0)
        for aim in aims:
            if inner[1] >= aim:
                continue
            u = self._step(inner[0], aim - inner[1], inner[2], sign)
            limit = bound if outer is None else outer[0]
            if np.isfinite(limit) and sign * (u - limit) >= 0:
                u = 0.5 * (inner[0] + limit)
            minimum = self._solve(u, near)
            zeta, slope = self._zeta(minimum)
            near.append((u, minimum))
            self._keep(u, sign, zeta, slope)
            if zeta > self.cut:
                outer = (u, zeta)
                break
            inner = (u, zeta, slope)
        return near, inner, outer

    def _root(
        self,
        sign: float,
        near: list[tuple[float, Minimum | None]],
        inner: tuple[float, float, float],
        outer: tuple[float, float] | None,
        bound: float,
    ) -> End:
        """Newton steps inside the bracket until zeta meets the cut."""
        u, zeta, slope = inner
        if near[-1][1] is not None:
            u = near[-1][0]
            zeta, slope = self._zeta(near[-1][1])
        for _ in range(_MOST):
            if abs(zeta - self.cut) < _MISS and slope > 0:
                return End(self.constrained.user(u + sign * (self.cut - zeta) / slope))
            u = self._inside(sign, u, zeta, slope, inner, outer)
            if outer is not None and abs(outer[0] - inner[0]) < 1e-12 * max(abs(outer[0]), abs(inner[0]), 1e-300):
                break
            minimum = self._solve(u, near)
            zeta, slope = self._zeta(minimum)
            near.append((u, minimum))
            self._keep(u, sign, zeta, slope)
            if zeta > self.cut:
                outer = (u, zeta)
            else:
                inner = (u, zeta, slope)
        return self._last_resort(sign, near, inner, outer, bound)

    def _inside(
        self,
        sign: float,
        u: float,
        zeta: float,
        slope: float,
        inner: tuple[float, float, float],
        outer: tuple[float, float] | None,
    ) -> float:
        """The next try: Newton's, or one that shortens the bracket."""
        if outer is None:
            return self._step(inner[0], self.cut - inner[1], inner[2], sign)
        newton = u + sign * (self.cut - zeta) / slope if slope > 0 else float("nan")
        low, high = sorted((inner[0], outer[0]))
        if low < newton < high:
            return newton
        share = (self.cut - inner[1]) / (outer[1] - inner[1]) if np.isfinite(outer[1]) else 0.5
        return inner[0] + min(max(share, 0.1), 0.9) * (outer[0] - inner[0])

    def _last_resort(
        self,
        sign: float,
        near: list[tuple[float, Minimum | None]],
        inner: tuple[float, float, float],
        outer: tuple[float, float] | None,
        bound: float,
    ) -> End:
        """The profile jumps over the cut, or its other branch reaches the bound inside the cut."""
        last = near[-1][1]
        if outer is not None and outer[0] == bound and last is not None:
            zeta = self._at_bound(bound, last.ev.phi)
            if zeta <= self.cut:
                self._keep(bound, sign, zeta, 0.0, smooth=False)
                return End(self.constrained.user(bound), at_bound=True)
        if outer is None:
            return End(float("nan"), reason=f"no end was found up to {written(self.constrained.user(inner[0]), '.4g')}")
        return End(self.constrained.user(inner[0]), reason="the profile jumps over the cut here")

    def _beyond(self, sign: float, near: list[tuple[float, Minimum | None]], bound: float) -> None:
        """One point behind the end."""
        u, minimum = near[-1]
        if minimum is None:
            return
        zeta, slope = self._zeta(minimum)
        u = self._step(u, _BEYOND * self.cut - zeta, slope, sign)
        if np.isfinite(bound) and sign * (u - bound) >= 0:
            return
        try:
            minimum = self._solve(u, near)
        except np.linalg.LinAlgError:
            return
        zeta, slope = self._zeta(minimum)
        self._keep(u, sign, zeta, slope)
