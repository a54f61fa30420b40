"""Follow a profile from the fit outwards, and find where it meets a cut.

``zeta(u) = sign(u - u0) sqrt(D(u) - D(u0))`` with ``D`` the deviance minimised over everything else. Its slope is
known, ``D' / (2 zeta)``, so each next point aims at the next share of the cut, every minimum begins at its neighbour
along the tangent, and the end is found by Newton steps inside a bracket on exact minima, not by interpolation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.rounding import written
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.profile import Constrained, Minimiser, Minimum, Target

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
class Path:
    """A profile.

    ``better`` is a point of the search at which the deviance is lower than at the fit by ``gain``; the ends then mean
    nothing and are NaN.
    """

    estimate: float
    low: float = float("nan")  # where it meets the cut
    high: float = float("nan")
    at_bound: tuple[bool, bool] = (False, False)  # whether that is where the target cannot be lower, or higher
    reasons: tuple[str, ...] = ()  # why there is no end
    # exact minima: coordinate, user's value, signed root of the deviance and its slope in the user's value
    points: tuple[tuple[float, float, float, float], ...] = ()
    evaluations: int = 0
    flat: bool = False  # other values fit as well as the estimate
    better: Array | None = None
    gain: float = 0.0


# Where a profile meets the cut, whether that is its bound, and why there is no end.
_End = tuple[float, bool, str]


class _Better(Exception):
    """Not an error: the search goes on from there."""

    def __init__(self, point: Array, gain: float) -> None:
        super().__init__(gain)
        self.point, self.gain = point, gain


def follow(problem: Problem, x: Array, at: Criterion, target: Target, *, cut: float, reml: bool = False) -> Path:
    """Profile of one target from the optimum ``x``; the interval holds the values with ``|zeta| <= cut``."""
    constrained = Constrained(problem, target, reml=reml)
    u0, phi0 = constrained.at_fit(x, at)
    walk = _Walk(constrained, u0, phi0, cut)
    estimate = constrained.user(u0)
    try:
        (low, low_at_bound, low_reason), (high, high_at_bound, high_reason) = walk.end(-1.0), walk.end(1.0)
    except _Better as better:
        return Path(
            estimate=estimate,
            reasons=("a better optimum was found",),
            evaluations=walk.minimiser.evaluations,
            better=better.point,
            gain=better.gain,
        )
    return Path(
        estimate=estimate,
        low=low,
        high=high,
        at_bound=(low_at_bound, high_at_bound),
        reasons=tuple(reason for reason in (low_reason, high_reason) if reason),
        points=tuple(sorted(walk.points, key=lambda point: point[0])),
        evaluations=walk.minimiser.evaluations,
        flat=walk.flat,
    )


class _Walk:
    """The way out from the fit, on one side after the other, and all points met.

    Of a side: the minima met, the last point inside the cut and, once there is one, one outside.
    """

    def __init__(self, constrained: Constrained, u0: float, phi0: Array, cut: float) -> None:
        self.constrained, self.u0, self.phi0, self.cut = constrained, u0, phi0, cut
        self.minimiser = Minimiser(constrained, u0, phi0)
        start = constrained.evaluate(u0, phi0)
        if start is None:
            raise np.linalg.LinAlgError("the criterion cannot be evaluated at the fit")
        self.best = start.value
        self.slope0 = float(np.sqrt(0.5 * self.minimiser.curvature))
        self.points = [(u0, constrained.user(u0), 0.0, self.slope0 / self._stretch(u0))]
        inside = constrained.lower < u0 < constrained.upper
        self.flat = inside and self.slope0 * self.minimiser.u_scale < _FLAT

    def end(self, sign: float) -> _End:
        """The end of the interval on one side."""
        self.sign = sign
        self.bound = self.constrained.upper if sign > 0 else self.constrained.lower
        self.near: list[tuple[float, Minimum | None]] = [(self.u0, None)]
        self.inner = (self.u0, 0.0, self.slope0)  # u, zeta and its slope
        self.outer: tuple[float, float] | None = None  # u, zeta
        if self.u0 == self.bound:
            return self.constrained.user(self.bound), True, ""
        largest = float("inf")  # of zeta on this side
        if np.isfinite(self.bound) and self.constrained.target.kind != "residual sd":
            zeta = self._at_bound(self.phi0)
            self.outer, largest = (self.bound, zeta), zeta
            if zeta <= self.cut:
                self._march([share * zeta for share in _SHARES[:-1]])
                return self._ends_at_bound(zeta)
        self._march([share * self.cut for share in _SHARES])
        value, at_bound, reason = self._root()
        if not at_bound and np.isfinite(value) and largest > 1.1 * _BEYOND * self.cut:
            self._beyond()
        return value, at_bound, reason

    def _stretch(self, u: float) -> float:
        """``d value / d u``."""
        return float(np.cos(u)) if self.constrained.target.kind == "corr" else 1.0

    # -- one minimum ------------------------------------------------------------------------------------------

    def _zeta(self, minimum: Minimum) -> tuple[float, float]:
        """Size of zeta, and the size of its slope outwards."""
        ev, slope, _ = minimum
        if ev.value < self.best - AGREE:
            raise _Better(self.constrained.search_point(ev), self.best - ev.value)
        zeta = float(np.sqrt(max(ev.value - self.best, 0.0)))
        outward = float(np.sign(ev.u - self.u0)) * slope
        return zeta, (0.5 * outward / zeta if zeta > 0 else self.slope0)

    def _keep(self, u: float, zeta: float, slope: float, *, smooth: bool = True) -> None:
        stretch = self._stretch(u)
        slope = slope / stretch if smooth and stretch > 1e-8 else float("nan")
        sign = 1.0 if u > self.u0 else -1.0
        self.points.append((u, self.constrained.user(u), sign * zeta, slope))

    def _solve(self, u: float) -> Minimum:
        """The minimum at ``u``, begun from its neighbours along the path."""
        nearest = sorted(self.near, key=lambda pair: abs(pair[0] - u))
        first_u, first = nearest[0]
        phi = self.phi0 if first is None else first[0].phi
        H = None if first is None else first[2]
        tangent = self.minimiser.tangent * self.minimiser.scale
        if first is not None and len(nearest) > 1:
            other_u, other = nearest[1]
            tangent = (phi - (self.phi0 if other is None else other[0].phi)) / (first_u - other_u)
        return self.minimiser.at(u, phi + tangent * (u - first_u), phi, self.phi0, H=H)

    def _go_to(self, u: float) -> tuple[float, float]:
        """Solve at ``u``, which is then the nearest point inside or outside of the cut; zeta and its slope there."""
        minimum = self._solve(u)
        zeta, slope = self._zeta(minimum)
        self.near.append((u, minimum))
        self._keep(u, zeta, slope)
        if zeta > self.cut:
            self.outer = (u, zeta)
        else:
            self.inner = (u, zeta, slope)
        return zeta, slope

    def _at_bound(self, phi: Array) -> float:
        """Zeta where the target has the last value that it can have."""
        try:
            return self._zeta(self.minimiser.at(self.bound, phi))[0]
        except np.linalg.LinAlgError:
            return float("inf")

    def _ends_at_bound(self, zeta: float) -> _End:
        self._keep(self.bound, zeta, 0.0, smooth=False)
        return self.constrained.user(self.bound), True, ""

    # -- the way ----------------------------------------------------------------------------------------------

    def _step(self, u: float, missing: float, slope: float) -> float:
        """The next coordinate: where zeta would be larger by ``missing``."""
        unit, gone = self.minimiser.u_scale, abs(u - self.u0)
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

    def _root(self) -> _End:
        """Newton steps inside the bracket until zeta meets the cut."""
        u, zeta, slope = self.inner
        last = self.near[-1][1]
        if last is not None:
            u = self.near[-1][0]
            zeta, slope = self._zeta(last)
        for _ in range(_MOST):
            if abs(zeta - self.cut) < _MISS and slope > 0:
                return self.constrained.user(u + self.sign * (self.cut - zeta) / slope), False, ""
            u = self._inside(u, zeta, slope)
            inner, outer = self.inner[0], self.outer
            if outer is not None and abs(outer[0] - inner) < 1e-12 * max(abs(outer[0]), abs(inner), 1e-300):
                break
            zeta, slope = self._go_to(u)
        # the profile jumps over the cut, or its other branch reaches the bound inside the cut
        last = self.near[-1][1]
        if self.outer is None:
            reached = written(self.constrained.user(self.inner[0]), ".4g")
            return float("nan"), False, f"no end was found up to {reached}"
        if self.outer[0] == self.bound and last is not None and (at := self._at_bound(last[0].phi)) <= self.cut:
            return self._ends_at_bound(at)
        return self.constrained.user(self.inner[0]), False, "the profile jumps over the cut here"

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
        zeta, slope = self._zeta(minimum)
        u = self._step(u, _BEYOND * self.cut - zeta, slope)
        if np.isfinite(self.bound) and self.sign * (u - self.bound) >= 0:
            return
        try:
            minimum = self._solve(u)
        except np.linalg.LinAlgError:
            return
        self._keep(u, *self._zeta(minimum))


def follow_deviance(
    deviance: Callable[[float], tuple[float, float]],
    best: float,
    estimate: float,
    se: float,
    *,
    cut: float,
    lowest: float = -np.inf,
) -> Path:
    """Profile of a value; ``best`` is the least deviance, `deviance` that at a value, with its slope."""
    points, ends, reasons, bounded = [(estimate, estimate, 0.0, 1.0 / se)], list[float](), list[str](), False
    for sign in (-1.0, 1.0):
        inner, outer, u = estimate, np.inf * sign, max(lowest, estimate + sign * cut * se)
        end, reason = float("nan"), "no end was found"
        for _ in range(_MOST):
            try:
                value, slope = deviance(u)
            except np.linalg.LinAlgError as error:
                reason = str(error)
                break
            if value < best - AGREE:
                reason = f"a better optimum than the fit's was found at {written(u, '.4g')}, so there is no interval"
                break
            zeta = float(np.sqrt(max(value - best, 0.0)))
            if u == lowest and zeta < cut:
                end, reason, bounded = u, "", True
                points += [] if u == estimate else [(u, u, sign * zeta, points[0][3])]
                break
            slope = 0.5 * slope / zeta if zeta > 0.0 else sign / se
            points.append((u, u, sign * zeta, slope * sign))
            newton = u + (cut - zeta) / slope if slope else np.nan
            if abs(zeta - cut) < _MISS:
                end, reason = newton, ""
                break
            inner, outer = (u, outer) if zeta < cut else (inner, u)
            reach = outer if np.isfinite(outer) else max(lowest, inner + sign * 10.0 * cut * se)
            u = newton if min(inner, reach) < newton < max(inner, reach) else 0.5 * (inner + reach)
        ends.append(end)
        reasons += [reason] * bool(reason)
    low, high = ends
    evaluations = len(points) - 1
    points, bounds = sorted(points), (bounded, False)
    return Path(estimate, low, high, bounds, reasons=tuple(reasons), points=tuple(points), evaluations=evaluations)
