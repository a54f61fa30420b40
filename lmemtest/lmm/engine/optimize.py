"""Search for the optimum of the profiled criterion, with a certificate.

A trust-region Newton method on the average information, which needs four to ten evaluations where a simplex or
quasi-Newton search needs hundreds; where the average is a poor guide (few levels, many parameters) a symmetric
rank-one correction learns what it leaves out. theta is unconstrained, signs are settled afterwards.

Where a covariance of several effects is singular, many factors ``L`` have the same ``L L'``, and steps from one to
another lead nowhere. On columns that are turned to its eigenvectors what varies has one factor again.

Where a diagonal of ``L`` is zero the gradient in theta vanishes by symmetry, so it proves nothing there. The gradient
``G`` in ``Sigma`` does: on the null space of ``Sigma`` it must be positive semi-definite, else moving along an
eigenvector of a negative eigenvalue lowers the criterion, and the search goes on from there (the Karush-Kuhn-Tucker
conditions on the cone of covariance matrices). A zero gradient, that condition, and further starts that agree make up
the certificate.

The search begins at variances from moments (MINQUE with prior weight zero, Rao 1971).
``E |Z_a'y|^2 = s2 tr(Z_a'Z_a) + sum_c s2_c |Z_a'Z_c|_F^2`` for every column ``a`` of every block, and the same for
``y'y``; both sides are sums of squares of cross-products that are at hand. Fixed effects have been taken out of
``y`` beforehand and are not accounted for further: this is a start, not an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmemtest.core.arrays import Array, Index
from lmemtest.core.rounding import written
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.criterion import HIGHEST, LOWEST, Criterion, MeanSquares
from lmemtest.lmm.engine.hessian import average_information, hessian
from lmemtest.lmm.engine.problem import Problem, absent_terms, zero_slopes
from lmemtest.lmm.engine.structure import Block, Shape
from lmemtest.lmm.engine.sweep import LARGE

# A Newton step that promises less than this has converged: what is left is 1e-7 of a standard error. Where an
# evaluation is expensive 3e-5 has to do, which the last step lowers further.
_DECREMENT, _DECREMENT_EXPENSIVE = 1e-14, 1e-9
# Enough to see which of several starts is best; that one is then polished.
_COARSE = 1e-6
NO_RESIDUAL = 1e-14  # residual variance over that of the score, below which it is rounding error
# Standard deviation of an effect that a search begins with alone, in units of the residual's.
_ALONE = 4.0
# Steps in a row that hardly lower what is promised, after which the search also learns from the gradients it meets.
_SLOW = 4
# Such steps after which columns are turned, where a covariance has a standard deviation below this share of its
# largest; how often they are.
_SLOW_AND_SINGULAR, _NEARLY_SINGULAR, _MOST_TURNS = 2, 1e-2, 3
# Agreement of two starts, in units of the criterion; lme4 calls fits that differ by more different.
_AGREE = 1e-5
# Standard deviations below this share of the residual's are set to zero if the criterion allows it.
_SNAP = 1e-3
_SNAP_LOSS = 1e-6
# Work of one evaluation up to which further starts are made (they then cost milliseconds).
CHEAP_FLOPS = 5e7
# Rows, and rows per column of X and Z, up to which an optimum with a variance of zero may not be the only one.
_FEW_ROWS, _FEW_PER_COLUMN = 150, 1.5
# Rows per column from which one start is enough for intercepts, if there are more than few rows and no variance is
# zero: in each of 1,468 such unbalanced tables six more starts found nothing better.
_MANY_PER_COLUMN = 2.0
# What the calls for one small matrix of a group cost beside its flops, in flops.
_GROUP_FLOPS = 2.5e5
# Share of the scores' squares over what is left of them, up to which the rounding of the latter counts.
_MOST_EXPLAINED = 1e6
_CLOSED = "solved in closed form"
# Share of the work of an evaluation below which it pays to search without terms first.
_MUCH_LESS = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """Where the search stopped, and what is known about that point."""

    # ``(n_free,)`` whitened theta with non-negative diagonals, then log precision ratios of the strata
    theta: Array = field(repr=False)
    criterion: Criterion = field(repr=False)  # the criterion there (internal scale)
    converged: bool  # the Newton decrement is negligible and no descent direction leaves the boundary
    evaluations: int  # evaluations of the criterion, all starts together
    # restarts, agreeing: starts beyond the first, and how many of all starts reached this optimum to 1e-5
    restarts: int
    agreeing: int
    at_boundary: bool  # some covariance matrix is singular
    decrement: float  # ``g' H^-1 g``: what another Newton step promises
    # smallest eigenvalue of the gradient in ``Sigma`` on the null space of ``Sigma``, over the largest eigenvalue of
    # its scale (NaN in the interior): negative would mean that a variance wants to leave zero
    boundary_slope: float
    message: str  # one sentence


@dataclass(frozen=True)
class _Point:
    theta: Array
    at: Criterion | MeanSquares
    gradients: list[Array]  # in each term's Sigma
    g: Array
    H: Array


class _Counter:
    """The problem with its evaluations counted; those of a balanced design are of its mean squares."""

    def __init__(self, problem: Problem) -> None:
        self.whole = problem
        self.anova = problem.anova
        self.problem = problem.searched if problem.anova is None else problem
        self.evaluations = 0

    def value(self, theta: Array) -> Criterion | MeanSquares | None:
        """Criterion, or None where a factorisation fails."""
        self.evaluations += 1
        try:
            at = (self.anova or self.problem).evaluate(theta)
        except np.linalg.LinAlgError:
            return None
        return at if np.isfinite(at.value) else None

    def point(self, theta: Array, at: Criterion | MeanSquares) -> _Point:
        """Gradient and curvature where the criterion is already known."""
        if isinstance(at, MeanSquares):
            return _Point(theta, at, *at.anova.derivatives(theta, at))
        gradients, g = self.problem.derivatives(theta, at)
        leaf = self.problem.leaf if self.problem.absorbed else None
        if leaf is not None and leaf.inner.strata is not None:
            inner, of_inner = leaf.inside(theta)
            derivatives = inner.derivatives(of_inner, at)
            H = leaf.curvature(theta, at, derivatives[1], average_information(inner, of_inner, at, *derivatives))
        elif leaf is not None:  # without the finest factor second derivatives cost little
            H = hessian(self.problem, theta, at)
        else:
            H = average_information(self.problem, theta, at, gradients, g)
        return _Point(theta=theta, at=at, gradients=gradients, g=g, H=H)


def _length(x: Array) -> float:
    """Euclidean norm, without the overhead of numpy's."""
    return math.sqrt(x @ x)


def trust_region_step(g: Array, H: Array, radius: float) -> tuple[Array, float]:
    """Minimiser of ``g's + s'Hs/2`` with ``|s| <= radius``, and the decrease it promises (More & Sorensen 1983)."""
    values, vectors = np.linalg.eigh(H)
    gt = vectors.T @ g
    floor = 1e-12 * max(1.0, float(np.abs(values).max()))
    shift = 0.0
    if values[0] <= floor or _length(gt / values) > radius:
        low = max(0.0, -values[0]) + floor
        if _length(gt / (values + low)) <= radius:  # hard case: fill up along the lowest curvature
            s = -gt / (values + low)
            missing = np.sqrt(max(0.0, radius**2 - s @ s))
            if values[0] < -floor:
                s[0] += missing if s[0] >= 0 else -missing
            return vectors @ s, float(-(gt @ s + 0.5 * values @ s**2))
        high = low + _length(g) / radius
        for _ in range(60):
            shift = 0.5 * (low + high)
            if _length(gt / (values + shift)) > radius:
                low = shift
            else:
                high = shift
            if high - low < 1e-6 * high:
                break
        shift = high
    s = -gt / (values + shift)
    return vectors @ s, float(-(gt @ s + 0.5 * values @ s**2))


def symmetric_rank_one(matrix: Array, step: Array, missing: Array) -> Array:
    """Update ``matrix`` so that it maps ``step`` to ``missing`` more, if that is well defined."""
    curvature = float(missing @ step)
    if abs(curvature) < 1e-8 * np.linalg.norm(missing) * np.linalg.norm(step):
        return matrix
    return matrix + np.outer(missing, missing) / curvature


def _noise(at: Criterion | MeanSquares) -> float:
    """Rounding error of the criterion: that of its value, and that of ``r2``, what the model leaves of the scores.

    Where it leaves next to nothing the search goes on: whether that is nothing at all is to be seen.
    """
    return 1e-14 * max(1.0, abs(at.value)) + 1e-15 * at.m * min(at.total / at.r2, _MOST_EXPLAINED)


def _descend(
    counter: _Counter, theta: Array, at: Criterion | MeanSquares, max_steps: int, tolerance: float
) -> tuple[_Point, float]:
    """The stationary point that Newton steps from ``theta`` lead to, and its decrement."""
    here, decrement, stuck = _newton(counter, counter.point(theta, at), max_steps, tolerance, may_turn=True)
    if not stuck:
        return here, decrement
    chart, axes = counter, [np.eye(k) for k in counter.problem.sizes]
    for left in reversed(range(_MOST_TURNS)):
        factors = chart.problem.unpack(here.theta)
        turns = [_eigenvectors(L, shape) for L, shape in zip(factors, counter.problem.shapes, strict=True)]
        turned = _Counter(counter.whole.turned([U @ V for U, V in zip(axes, turns, strict=True)]))
        start = counter.problem.moved(here.theta, [th.lower_root(V.T @ L) for V, L in zip(turns, factors, strict=True)])
        value = turned.value(start)
        if value is None:
            break
        chart, axes = turned, [U @ V for U, V in zip(axes, turns, strict=True)]
        here, decrement, stuck = _newton(chart, chart.point(start, value), max_steps, tolerance, may_turn=left > 0)
        counter.evaluations += chart.evaluations
        if not stuck:
            break
    return _turned_back(counter, chart, axes, here), decrement


def _newton(
    counter: _Counter, here: _Point, max_steps: int, tolerance: float, *, may_turn: bool
) -> tuple[_Point, float, bool]:
    """Newton steps to a stationary point, its decrement, and whether they went astray next to a singular covariance."""
    learned = np.zeros_like(here.H)  # what the average information lacks, from the gradients met
    radius = max(0.5, 0.5 * _length(here.theta))
    promised = before = np.inf
    slow = 0
    for _ in range(max_steps):
        step, promised = trust_region_step(here.g, here.H + learned, radius)
        if promised < 0.5 * tolerance:
            last = counter.value(here.theta + step)  # too small to matter to the criterion, it sharpens the estimates
            if last is not None and last.value <= here.at.value + _noise(here.at):
                here = replace(here, theta=here.theta + step, at=last)
            break
        trial = counter.value(here.theta + step)
        noise = _noise(here.at)
        gain = here.at.value - trial.value if trial is not None else -np.inf
        length = _length(step)
        if trial is None or gain < 0.1 * promised - noise:
            radius = 0.25 * length
            if radius < 1e-10 * max(1.0, _length(here.theta)):
                break
            if may_turn and _nearly_singular(counter, here):
                return here, 2.0 * promised, True
            if trial is None or gain < -noise:
                continue
        elif gain > 0.75 * promised and length > 0.8 * radius:
            radius *= 3.0
        there = counter.point(here.theta + step, trial)
        slow = slow + 1 if promised > 0.25 * before else 0
        if may_turn and slow >= _SLOW_AND_SINGULAR and _nearly_singular(counter, there):
            return there, 2.0 * promised, True
        if slow >= _SLOW:
            learned = symmetric_rank_one(learned, step, there.g - here.g - (there.H + learned) @ step)
        before = promised
        if promised < 10 * noise and _length(there.g) > 0.9 * _length(here.g):
            here = min(here, there, key=lambda point: _length(point.g))
            break  # below rounding, and the gradient no longer shrinks
        here = there
    return here, max(2.0 * promised, 0.0), False


def _turns(shape: Shape) -> bool:
    """Whether a term's columns can be turned."""
    return shape.k > 1 and not shape.diagonal


def _eigenvectors(L: Array, shape: Shape) -> Array:
    """Of ``L L'``, those of large eigenvalues first."""
    return np.asarray(np.linalg.eigh(L @ L.T)[1][:, ::-1]) if _turns(shape) else np.eye(shape.k)


def _nearly_singular(counter: _Counter, here: _Point) -> bool:
    """Whether a covariance of several effects hardly varies along some direction."""
    factors = zip(counter.problem.unpack(here.theta), counter.problem.shapes, strict=True)
    sds = [np.linalg.svd(L, compute_uv=False) for L, shape in factors if _turns(shape)]
    return counter.whole.can_turn and any(sd[-1] < _NEARLY_SINGULAR * sd[0] for sd in sds)


def _turned_back(counter: _Counter, chart: _Counter, axes: Sequence[Array], here: _Point) -> _Point:
    """A point on turned columns as one on those of ``counter``."""
    factors = [th.lower_root(U @ L) for U, L in zip(axes, chart.problem.unpack(here.theta), strict=True)]
    theta = counter.problem.moved(here.theta, factors)
    at = counter.value(theta)
    return counter.point(theta, at) if at is not None else here


def _escape(counter: _Counter, here: _Point) -> tuple[Array, Criterion | MeanSquares] | None:
    """A lower point off the boundary, where the gradient in some ``Sigma`` points into the cone."""
    factors = counter.problem.unpack(here.theta)
    for i, slope, direction in _boundary_slopes(factors, here.gradients):
        if slope >= 0:
            continue
        best: tuple[float, Array, Criterion | MeanSquares] | None = None
        for size in (1e-3, 1e-2, 1e-1, 1.0):  # standard deviations in units of the residual's
            moved = list(factors)
            grown = np.column_stack([factors[i], size * direction])
            moved[i] = th.root_of(grown, diagonal=counter.problem.shapes[i].diagonal)
            theta = counter.problem.moved(here.theta, moved)
            at = counter.value(theta)
            if at is not None and (best is None or at.value < best[0]):
                best = (at.value, theta, at)
        if best is not None and best[0] < here.at.value - 1e-9 * max(1.0, abs(here.at.value)):
            return best[1], best[2]
    return None


def _boundary_slopes(factors: Sequence[Array], gradients: Sequence[Array]) -> list[tuple[int, float, Array]]:
    """Per singular term: its index, the smallest slope on the null space of ``Sigma``, and its direction."""
    out = []
    for i, (L, G) in enumerate(zip(factors, gradients, strict=True)):
        values, vectors = np.linalg.eigh(L @ L.T)
        null = vectors[:, values <= _SNAP**2]
        if null.shape[1]:
            slopes, directions = np.linalg.eigh(null.T @ G @ null)
            out.append((i, float(slopes[0]), null @ directions[:, 0]))
    return out


def _snap(counter: _Counter, here: _Point) -> _Point:
    """Set standard deviations that are zero for all purposes to zero."""
    factors = counter.problem.unpack(here.theta)
    snapped, changed = [], False
    for L, shape in zip(factors, counter.problem.shapes, strict=True):
        values, vectors = np.linalg.eigh(L @ L.T)
        small = (values > 0) & (values < _SNAP**2)
        if small.any():
            changed = True
            root = np.sqrt(np.where(small, 0.0, np.clip(values, 0.0, None)))
            L = th.root_of(vectors * root, diagonal=shape.diagonal)
        snapped.append(L)
    if not changed:
        return here
    theta = counter.problem.moved(here.theta, snapped)
    at = counter.value(theta)
    if at is None or at.value > here.at.value + _SNAP_LOSS:
        return here
    return counter.point(theta, at)


def _search(counter: _Counter, start: Array, max_steps: int, tolerance: float) -> tuple[_Point, float] | None:
    at = counter.value(start)
    if at is None:
        return None
    here, decrement = _descend(counter, start, at, max_steps, tolerance)
    for _ in range(10):
        off = _escape(counter, here)
        if off is None:
            break
        here, decrement = _descend(counter, *off, max_steps, tolerance)
    return here, decrement


def _few_rows(problem: Problem) -> bool:
    """Whether the criterion may have several optima: several effects, and hardly more rows than columns."""
    columns = problem.system.p + sum(k * n for k, n in zip(problem.sizes, problem.n_levels, strict=True))
    few = problem.system.n_rows <= min(_FEW_ROWS, _FEW_PER_COLUMN * columns)
    return few and sum(problem.sizes) > 1


def _many_rows(problem: Problem) -> bool:
    """Whether an optimum of intercepts with positive variances is the only one, as far as simulations tell."""
    n, columns = problem.system.n_rows, problem.system.p + sum(problem.n_levels)
    return all(k == 1 for k in problem.sizes) and n > _FEW_ROWS and n >= _MANY_PER_COLUMN * columns


def _at_boundary(counter: _Counter, here: _Point) -> bool:
    """Whether some covariance matrix is singular for all purposes."""
    return any(np.linalg.eigvalsh(L @ L.T)[0] <= _SNAP**2 for L in counter.problem.unpack(here.theta))


def default_start(problem: Problem, size: float = 1.0) -> Array:
    """Identity factors times ``size``."""
    return problem.point(th.pack([size * np.eye(k) for k in problem.sizes], problem.shapes))


def single_starts(problem: Problem) -> list[Array]:
    """Each effect alone, the others at zero: where variances compete, one of them may have all that they share."""
    alone = _ALONE * np.eye(sum(problem.sizes))
    each = np.split(alone, np.cumsum(problem.sizes)[:-1], axis=1)
    return [problem.point(th.pack([np.diag(sd[i]) for sd in each], problem.shapes)) for i in range(len(alone))]


def evaluation_cost(problem: Problem) -> float:
    """Rough flops of one evaluation."""
    system = problem.system
    m = len(system.B)
    cost = float(system.t) ** 3 + sum(s.block.size * (m * m + s.block.K**2) for s in system.chain)
    return cost + _GROUP_FLOPS * sum(len(s.A) for s in system.chain if s.block.K >= LARGE)


def optimise(
    problem: Problem,
    *,
    start: Array | None = None,
    restarts: int | None = None,
    max_steps: int = 200,
    coarse: float = 0.0,
) -> Optimum:
    """Best optimum over several starts, the first at ``start`` or at variances from moments; the mean squares if they
    give it and no restarts are asked for.

    ``restarts`` is the number of the others (by default two where an evaluation is cheap and rows are few or a term has
    several effects), ``max_steps`` the Newton steps of each; `LinAlgError` if the criterion is finite at none of them.
    A search ends at a decrement of ``coarse`` where that is above the usual one.
    """
    counter = _Counter(problem)
    if not problem.n_free:  # without random effects the criterion is a number
        at = problem.evaluate(np.empty(0))
        none = _Point(theta=np.empty(0), at=at, gradients=[], g=np.empty(0), H=np.empty((0, 0)))
        return replace(_certified(problem, counter, none, 0.0, restarts=0, agreeing=1), evaluations=1, message=_CLOSED)
    solved = counter.anova.solution() if counter.anova is not None and not restarts else None
    if solved is not None and (value := counter.value(solved)) is not None:
        best = counter.point(solved, value)
        decrement = float(best.g @ np.linalg.solve(best.H, best.g))
        return replace(_certified(problem, counter, best, decrement, restarts=0, agreeing=1), message=_CLOSED)
    cheap = counter.anova is not None or evaluation_cost(counter.problem) < CHEAP_FLOPS
    tolerance = max(_DECREMENT if cheap else _DECREMENT_EXPENSIVE, coarse)
    once = restarts is None and counter.anova is None and _many_rows(problem)
    if restarts is None:
        restarts = 2 if cheap else 0
    sizes = (1.0, 0.2, 4.0, 0.05, 20.0, 0.5, 2.0)
    starts = [default_start(problem, sizes[i % len(sizes)] * (1 + i // len(sizes))) for i in range(restarts + 2)]
    if start is None:
        start = moment_start(problem.reduced) if counter.anova is None else counter.anova.start()
    start = np.asarray(start, dtype=float)
    if not (cheap or restarts):
        without = _searched_without(problem, absent_terms(problem, start, 1.001 * math.sqrt(LOWEST)), start, max_steps)
        if without is not None:
            return without
    starts.insert(0, start)
    searches: list[tuple[_Point, float]] = []
    for i, theta in enumerate(starts):
        if len(searches) > restarts:
            break
        result = _search(counter, theta, max_steps, _COARSE if restarts and not once else tolerance)
        if result is not None:
            searches.append(result)
            if isinstance(result[0].at, Criterion) and result[0].at.sigma2 < NO_RESIDUAL:
                restarts = 0  # the criterion falls without end, from whatever start
            if once and not _at_boundary(counter, result[0]):
                restarts = 0
            once = False
        elif i == len(starts) - 1 and not searches:
            raise np.linalg.LinAlgError("the criterion is not finite at any starting point")
    best, decrement = min(searches, key=lambda search: search[0].at.value)
    if restarts and _few_rows(problem) and _at_boundary(counter, best):
        others = [default_start(problem, _ALONE), *single_starts(problem)]
        more = (_search(counter, theta, max_steps, _COARSE) for theta in others)
        searches += [result for result in more if result is not None]
        best, decrement = min(searches, key=lambda search: search[0].at.value)
    agreeing = sum(point.at.value < best.at.value + _AGREE for point, _ in searches)
    if restarts:
        best, decrement = _descend(counter, best.theta, best.at, max_steps, tolerance)
    return _certified(problem, counter, best, decrement, restarts=len(searches) - 1, agreeing=agreeing)


def _searched_without(problem: Problem, absent: Sequence[int], start: Array, max_steps: int) -> Optimum | None:
    """The optimum of the model without terms that the start has next to no variance for, if it is that of the whole.

    None where they would grow, or where nothing is gained.
    """
    if not absent:
        return None
    rest = problem.without(absent)
    if evaluation_cost(rest) > _MUCH_LESS * evaluation_cost(problem):
        return None
    factors = [L for i, L in enumerate(problem.unpack(start)) if i not in absent]
    optimum = optimise(rest, start=th.pack(factors, rest.shapes), restarts=0, max_steps=max_steps)
    at = rest.evaluate(optimum.theta)
    slopes = zero_slopes(problem, absent, rest, at)
    if slopes is None or not optimum.converged or slopes.min() < 0.0:
        return None
    of_rest = iter(rest.unpack(optimum.theta))
    whole = [np.zeros((1, 1)) if i in absent else next(of_rest) for i in range(len(problem.shapes))]
    slope = float(slopes.min()) / max(1.0, float(slopes.max()))
    return replace(
        optimum,
        theta=problem.moved(start, whole),
        criterion=replace(at, system=problem.system, factors=whole, swept=None),
        evaluations=optimum.evaluations + 1,
        at_boundary=True,
        boundary_slope=slope if math.isnan(optimum.boundary_slope) else min(slope, optimum.boundary_slope),
    )


def _certified(
    problem: Problem, counter: _Counter, best: _Point, decrement: float, *, restarts: int, agreeing: int
) -> Optimum:
    best = _snap(counter, best)
    factors = [th.lower_root(L) for L in counter.problem.unpack(best.theta)]
    slopes = [s for _, s, _ in _boundary_slopes(factors, best.gradients)]
    scale = max([1.0, *(float(np.abs(G).max()) for G in best.gradients)])
    slope = min(slopes) / scale if slopes else float("nan")
    stationary = decrement < 1e-6
    converged = stationary and not slope < -1e-4
    if converged:
        message = f"converged: {agreeing} of {restarts + 1} starts agree" if restarts else "converged"
    elif stationary:
        message = "stopped at a boundary point from which a variance would still grow"
    else:
        message = f"stopped before the gradient vanished (another step promises {written(decrement / 2, '.2g')})"
    theta = counter.problem.moved(best.theta, factors)
    if isinstance(best.at, MeanSquares):
        criterion = problem.by_mean_squares(theta, best.at.anova)
    elif problem.leaf is not None:
        criterion = problem.leaf.whole(problem, theta)
    else:
        criterion = best.at if counter.problem is problem else problem.evaluate(theta)
    return Optimum(
        theta=theta,
        criterion=criterion,
        converged=converged,
        evaluations=counter.evaluations,
        restarts=restarts,
        agreeing=agreeing,
        at_boundary=bool(slopes),
        decrement=decrement,
        boundary_slope=slope,
        message=message,
    )


def _frobenius(problem: Problem) -> tuple[Array, Array, Array]:
    """``|Z_a'Z_c|^2``, ``tr(Z_a'Z_a)`` and ``|Z_a'y|^2`` over all effects of all terms."""
    system = problem.system
    first = np.cumsum([0, *problem.sizes])
    n = int(first[-1])
    squares, traces, moments = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    effects = [_indicator(block, first) for block in system.blocks]  # (K, n): which effect a column belongs to
    n_chain = len(system.chain)
    by_tail = [np.tile(effect, (b.q, 1)) for effect, b in zip(effects[n_chain:], system.tail, strict=True)]
    tail = np.concatenate([*by_tail, np.empty((0, n))])
    for i, stage in enumerate(system.chain):
        effect = effects[i]
        squares += stage.copies * effect.T @ (stage.A**2).sum(axis=0) @ effect
        traces += stage.copies * effect.T @ stage.A.sum(axis=0).diagonal()
        by_column = stage.V.column_squares()  # (K, m)
        # a parent sees the sum of its children: |Z_a'Z_c|^2 sums over pairs of levels that meet
        others = [(e**2).sum(axis=0) @ effects[j] for j, e in stage.E.items()]
        across = effect.T @ sum(others, start=by_column[:, : system.t] @ tail)
        squares += across + across.T
        moments += effect.T @ by_column[:, -1]
        if stage.S is not None:
            moments += effect.T @ stage.S[0].diagonal()
    tail_squares = system.B[: system.t] ** 2
    squares += tail.T @ tail_squares[:, : system.t] @ tail
    moments += tail.T @ tail_squares[:, -1]
    traces += tail.T @ system.B.diagonal()[: system.t]
    return squares, traces, moments


def _indicator(block: Block, first: Index) -> Array:
    """Which effect of all terms each column of a block belongs to, ``(K, n_effects)``."""
    out = np.zeros((block.K, int(first[-1])))
    for m in block.members:
        for a in range(m.k):
            out[m.effect(a), first[m.term] + a] = 1.0
    return out


def moment_start(problem: Problem) -> Array:
    """The point of the search with diagonal factors from moments."""
    system = problem.system
    if not problem.n_theta:
        return problem.point(np.empty(0))
    squares, traces, moments = _frobenius(problem)
    total = float(system.B[-1, -1]) + system.ss_within
    lhs = np.block([[squares, traces[:, None]], [traces[None, :], np.array([[float(system.n_rows)]])]])
    rhs = np.append(moments, total)
    scale = 1.0 / np.sqrt(np.where(lhs.diagonal() > 0, lhs.diagonal(), 1.0))  # a column of an empty cell is zero
    solution = scale * np.linalg.lstsq(lhs * np.outer(scale, scale), scale * rhs, rcond=1e-10)[0]
    residual = max(float(solution[-1]), 1e-6 * total / system.n_rows)
    roots = np.sqrt(np.clip(solution[:-1] / residual, LOWEST, HIGHEST))
    diagonal = [np.diag(of_term) for of_term in np.split(roots, np.cumsum(problem.sizes)[:-1])]
    return problem.point(th.pack(diagonal, problem.shapes))
