"""Profiled deviance -2 log L(theta) by maximum likelihood or REML, with its exact gradient.

From ``F = [X y]' V^-1 [X y]``: ``b = F_XX^-1 F_Xy``, ``r2 = F_yy - b'F_Xy`` (+ the within-cell sum of squares),

    ML:    log|V| + n (1 + log(2 pi r2 / n)) - sum log w
    REML:  log|V| + log|F_XX| + (n - p) (1 + log(2 pi r2 / (n - p))) - sum log w

or, where the residual variance ``s2`` is held, ``m log(2 pi s2) + r2 / s2`` in place of ``m (1 + log(2 pi r2 / m))``
(Bates, Mächler, Bolker & Walker 2015, doi:10.18637/jss.v067.i01, eq. 34 and 42). The envelope theorem gives
``d r2 = v' dF v`` with ``v = (-b, 1)``, and the derivative of the criterion in ``r2`` is ``1 / s2`` in both cases.

*Balanced designs*, nested or crossed, have it from the mean squares of an analysis of variance.
With a variance per term, ``V = I + sum_i theta_i^2 Z_i Z_i'`` relative to the residual variance. Where the ``Z_i Z_i'``
commute and none leads out of the span of ``X``, they have eigenspaces in common, the lines ``s`` of an analysis of
variance (Nelder 1965, doi:10.1098/rspa.1965.0012; Speed & Bailey 1982, doi:10.1007/978-94-009-7922-1_6), on which

    lambda_s = 1 + sum_i mu_si theta_i^2,    V = sum_s lambda_s E_s,

and the fixed effects are those of least squares. With the sum of squares ``SS_s = y'E_s y`` of the residuals and the
degrees of freedom ``d_s``, of REML less those of ``X``, the criterion is

    sum_s d_s log lambda_s + m (1 + log(2 pi r2 / m)) + log|X'X| - sum log w,    r2 = sum_s SS_s / lambda_s

(``log|X'X|`` of REML alone), at the cost of a few numbers. With as many lines as variances every ``s2 lambda_s`` may be
what it likes, and the criterion is a sum of functions of one of them each, with one minimum each: the mean squares. If
the variances that belong to these are positive they are the estimates (Searle, Casella & McCulloch 1992, ch. 4,
doi:10.1002/9780470316856), and no other optimum exists.

Residual variances ``s2 / tau_g`` by stratum leave it so where strata share no level and no fixed effect, as the means
and variances of every benchmark do: each stratum has lines of its own, and ``1 / tau_g`` in place of 1 in ``lambda_s``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.products import CellColumns, System
from lmemtest.lmm.engine.structure import RandomTerm, joined, parents_of
from lmemtest.lmm.engine.sweep import Adjoint, Sweep, conditional_modes, gradient, multiply, sweep
from lmemtest.lmm.engine.theta import block_factors, solve_lower, solve_spd


@dataclass(frozen=True)
class Criterion:
    """The criterion at one theta; ``solution`` holds what its gradient and the estimates need."""

    system: System  # at the residual variances of this point
    value: float
    b: Array  # (p,)
    r2: float
    m: int  # rows, of REML less the fixed effects
    RX: Array  # (p, p) lower Cholesky factor of F_XX
    factors: Sequence[Array]  # L per term
    reml: bool
    held: float | None = None  # residual variance, where it is not estimated
    swept: Sweep | None = None  # the elimination, where the criterion is from one

    @cached_property
    def sweep(self) -> Sweep:
        """The elimination at this theta."""
        return sweep(self.system, block_factors(self.factors, self.system.blocks)) if self.swept is None else self.swept

    @property
    def sigma2(self) -> float:
        return self.r2 / self.m if self.held is None else self.held

    @property
    def total(self) -> float:
        """Sum of squares of the scores."""
        return float(self.system.B[-1, -1]) + self.system.ss_within

    @property
    def weight(self) -> float:
        """Derivative of the criterion in ``r2``."""
        return 1.0 / self.sigma2

    @property
    def d_weight(self) -> float:
        """Second derivative of the criterion in ``r2``."""
        return -self.m / self.r2**2 if self.held is None else 0.0

    @property
    def v(self) -> Array:
        """Coefficients of ``[X y]`` in the residual, ``(p + 1,)``."""
        return np.append(-self.b, 1.0)

    @property
    def F_bar(self) -> Array:
        """Gradient in ``F``."""
        p = self.system.p
        out = self.weight * np.outer(self.v, self.v)
        if self.reml and p:
            out[:p, :p] += solve_spd(self.RX, np.eye(p))
        return out

    def adjoint(self, *, inputs: bool = False) -> Adjoint:
        """Gradient in each block's ``Sigma`` and, with ``inputs``, in the cross-products."""
        return gradient(self.system, self.sweep, self.F_bar, inputs=inputs)

    def scores(self) -> list[Array]:
        """``Z'P y`` per block of the system, ``(q, K)`` each."""
        system = self.system
        modes = conditional_modes(system, self.sweep, self.v)
        chain, remainder, _ = multiply(system, [-u[:, :, None] for u in modes], self.v[:, None])
        return [c[:, :, 0] for c in [*chain, *system.by_tail_block(remainder)]]


def evaluate(
    system: System, factors: Sequence[Array], *, reml: bool, residual_variance: float | None = None
) -> Criterion:
    """Criterion at the Cholesky factors ``factors`` of the terms; `LinAlgError` if it fails.

    ``residual_variance`` holds ``s2``, which is estimated by default.
    """
    done = sweep(system, block_factors(factors, system.blocks))
    p, n = system.p, system.n_rows
    RX = sla.cholesky(done.F[:p, :p], lower=True, check_finite=False) if p else np.empty((0, 0))
    cb = solve_lower(RX, done.F[:p, p])
    b = solve_lower(RX, cb, transpose=True)
    r2 = float(done.F[p, p] - cb @ cb) + system.ss_within
    if not r2 > 0:
        raise np.linalg.LinAlgError("the residual sum of squares is not positive")
    m = n - p if reml else n
    s2 = r2 / m if residual_variance is None else residual_variance
    value = done.logdet + m * np.log(2.0 * np.pi * s2) + r2 / s2 - system.sum_log_w
    if reml:
        value += 2.0 * float(np.log(RX.diagonal()).sum())
    return Criterion(
        system=system,
        value=float(value),
        b=b,
        r2=r2,
        m=m,
        RX=RX,
        factors=factors,
        reml=reml,
        held=residual_variance,
        swept=done,
    )


# ------------------------------------------------------------------------------ on the mean squares of balanced designs


# Differences of weights that are rounding, relative to the weight.
_SAME = 1e-9
# Rounding of the squared length of what leads out of ``X``, the difference of two.
_DIFFERENCE = 1e-11
# Variance ratios of a start: neither on the boundary, where theta's gradient vanishes, nor out of reach.
LOWEST, HIGHEST = 1e-3, 1e6
# How far from a whole number degrees of freedom may be.
_WHOLE = 1e-6
# Share of the squares that is left to chance, below which that is a matter of rounding.
_EXPLAINED = 1e-8


@dataclass(frozen=True)
class MeanSquares:
    """The criterion at one theta."""

    anova: Anova
    value: float
    r2: float
    m: int
    total: float  # sum of squares of the scores
    growth: Array  # (lines,) lambda


# Columns of ``X`` that one stratum has to itself, and their ``X'E_s X`` on each of its lines, ``(lines, p, p)``.
OfX = tuple[Index, Array]


@dataclass(frozen=True)
class Anova:
    """Lines of an analysis of variance of every stratum, the last one of each of what the terms leave."""

    sizes: Array  # (lines, terms) mu
    df: Array  # (lines,)
    squares: Array  # (lines,) sums of squares
    stratum: Index  # (lines,) whose residual variance a line has, in order
    fixed: tuple[OfX, ...]  # per stratum
    m: int  # rows, of REML less the fixed effects: the sum of df
    constant: float

    def growth(self, x: Array) -> tuple[Array, Array]:
        """``lambda`` of the lines, ``(lines,)``, and its derivatives in ``x``, ``(lines, n_free)``."""
        n = self.sizes.shape[1]
        theta, residual = x[:n], np.exp(-np.append(0.0, x[n:]))
        of_strata = -np.eye(len(residual))[:, 1:] * residual[1:]
        slopes = np.hstack([2.0 * theta * self.sizes, of_strata[self.stratum]])
        return residual[self.stratum] + self.sizes @ theta**2, slopes

    def evaluate(self, x: Array) -> MeanSquares:
        """The criterion; `LinAlgError` if it is not finite."""
        growth, _ = self.growth(x)
        r2 = float((self.squares / growth).sum())
        if not (np.isfinite(growth).all() and r2 > 0):
            raise np.linalg.LinAlgError("the residual sum of squares is not positive")
        value = float(self.df @ np.log(growth)) + self.m * float(np.log(2.0 * np.pi * r2 / self.m))
        value += self.m + self.constant
        total = float(self.squares @ np.exp(np.append(0.0, x[self.sizes.shape[1] :]))[self.stratum])
        return MeanSquares(anova=self, value=value, r2=r2, m=self.m, total=total, growth=growth)

    def derivatives(self, x: Array, at: MeanSquares) -> tuple[list[Array], Array, Array]:
        """Gradient in every term's ``Sigma``, in ``x``, and the Hessian in ``x``."""
        n, slopes = self.sizes.shape[1], self.growth(x)[1]
        weight, each = at.m / at.r2, self.squares / at.growth**2
        of_terms = self.gradients(at, weight)
        g = (self.df / at.growth - weight * each) @ slopes
        curved = (2.0 * weight * each - self.df / at.growth) / at.growth
        d_r2 = each @ slopes
        H = (slopes.T * curved) @ slopes - weight / at.r2 * np.outer(d_r2, d_r2)
        H.flat[:: len(H) + 1] += np.append(2.0 * np.ravel(of_terms), -g[n:])
        return of_terms, g, H

    def gradients(self, at: MeanSquares, weight: float) -> list[Array]:
        """Gradient in every term's ``Sigma``; ``weight`` is the derivative of the criterion in ``r2``."""
        G = (self.df / at.growth - weight * self.squares / at.growth**2) @ self.sizes
        return [np.array([[of_term]]) for of_term in G]

    @property
    def _expected(self) -> tuple[Array, Array, Array]:
        """Coefficients of the variances in the expected mean squares, the mean squares, and their df."""
        kept = self.df > 0
        coefficients = np.hstack([np.eye(len(self.fixed))[self.stratum], self.sizes])[kept]
        return coefficients, self.squares[kept] / self.df[kept], self.df[kept]

    def _point(self, residual: Array, variances: Array) -> Array:
        """The point of the search with these variances, the residual ones by stratum."""
        return np.append(np.sqrt(variances / residual[0]), np.log(residual[0] / residual[1:]))

    def _by_line(self, of_lines: Array) -> list[Array]:
        """``sum_s c_s X'E_s X`` per stratum, ``(..., p, p)``, of ``c``, ``(..., lines)``."""
        ends = np.searchsorted(self.stratum, np.arange(1, len(self.fixed)))
        parts = np.split(of_lines, ends, axis=-1)
        return [np.tensordot(c, of_X, 1) for c, (_, of_X) in zip(parts, self.fixed, strict=True)]

    def information(self, x: Array) -> Array:
        """``X'V^-1X``, ``(p, p)``."""
        p = sum(len(columns) for columns, _ in self.fixed)
        out = np.zeros((p, p))
        for (columns, _), F in zip(self.fixed, self._by_line(1.0 / self.growth(x)[0]), strict=True):
            out[np.ix_(columns, columns)] = F
        return out

    def covariance_slopes(self, x: Array, targets: Array) -> Array:
        """Derivatives of ``T'(X'V^-1X)^-1 T`` in ``x`` for ``T``, ``(p, c)``: ``(n_free, c, c)``."""
        growth, slopes = self.growth(x)
        out = np.zeros((len(x), targets.shape[1], targets.shape[1]))
        information, moved = self._by_line(1.0 / growth), self._by_line((slopes / growth[:, None] ** 2).T)
        for (columns, _), F, dF in zip(self.fixed, information, moved, strict=True):
            w = np.linalg.solve(F, targets[columns])
            felt = np.flatnonzero(dF.any(axis=(1, 2)))
            out[felt] += w.T @ dF[felt] @ w
        return out

    def log_scale_slopes(self, x: Array) -> Array:
        """Derivatives of the log residual variance in ``x``, ``(n_free,)``."""
        growth, slopes = self.growth(x)
        return np.asarray(-(self.squares / growth**2 @ slopes) / (self.squares / growth).sum())

    def start(self) -> Array:
        """The point of the variances that fit the mean squares best, away from zero."""
        expected, mean_squares, df = self._expected
        root = np.sqrt(df)
        variances = np.linalg.lstsq(expected * root[:, None], mean_squares * root, rcond=1e-10)[0]
        n = len(self.fixed)
        residual = np.maximum(variances[:n], 1e-6 * float(self.squares.sum()) / self.m)
        return self._point(residual, residual[0] * np.clip(variances[n:] / residual[0], LOWEST, HIGHEST))

    def solution(self) -> Array | None:
        """The only optimum where the mean squares give it, else None."""
        expected, mean_squares, _ = self._expected
        if len(expected) != expected.shape[1]:
            return None
        try:
            variances = np.asarray(np.linalg.solve(expected, mean_squares), dtype=float)
        except np.linalg.LinAlgError:  # two terms that always go together
            return None
        n = len(self.fixed)
        return self._point(variances[:n], variances[n:]) if variances.min() > 0 else None


# Classes of the cells: the class of each, ``(n_cells,)``, and the weight of all cells of a class, ``(classes,)``.
Partition = tuple[Index, Array]


def _partition(codes: Index, q: int, omega: Array) -> Partition:
    """The partition with ``q`` codes."""
    return codes, np.bincount(codes, omega, q).astype(np.float64)


def _finer(one: Partition, other: Partition) -> bool:
    """Whether each class of a partition lies within one class of another."""
    q = len(one[1])
    return q >= len(other[1]) and parents_of(one[0], q, other[0]) is not None


def _same(one: Partition, other: Partition) -> bool:
    """Whether two partitions are one, whatever the codes of the classes."""
    return len(one[1]) == len(other[1]) and _finer(one, other)


# Of one stratum: sizes, degrees of freedom, sums of squares, and ``X'E_s X``, by line.
Lines = tuple[Array, Array, Array, Array]


def analysed(system: System, *, reml: bool, stratum: Index | None = None, rows: Array, within: Array) -> Anova | None:
    """The lines of a model's cells; None where its terms do not have them.

    With residual variances by ``stratum``, ``(n_cells,)``, each stratum has lines of its own, if no level of a term and
    no column of ``X`` occurs in two of them. ``rows`` and ``within`` are the rows of each stratum and their sum of
    squares within cells, ``(n_strata,)``.
    """
    cells = cast(CellColumns, system.source)
    if stratum is None:
        parts = [(cells, np.arange(system.p))] if cells.terms else None
    else:
        parts = _apart(cells, stratum, len(rows))
    if parts is None:
        return None
    lines = []
    for (part, _), n, ss in zip(parts, rows, within, strict=True):
        of_part = _lines(part, float(n), float(ss), scale=system.n_rows, reml=reml)
        if of_part is None or (stratum is not None and of_part[1][-1] < 1.0):
            return None
        lines.append(of_part)
    sizes, df, squares, fixed = zip(*lines, strict=True)
    return Anova(
        sizes=np.vstack(sizes),
        df=np.concatenate(df),
        squares=np.concatenate(squares),
        stratum=np.repeat(np.arange(len(parts)), [len(of_part) for of_part in df]),
        fixed=tuple((columns, of_X) for (_, columns), of_X in zip(parts, fixed, strict=True)),
        m=system.n_rows - (system.p if reml else 0),
        constant=(system.p * float(np.log(system.n_rows)) if reml else 0.0) - system.sum_log_w,
    )


def _apart(cells: CellColumns, stratum: Index, n_strata: int) -> list[tuple[CellColumns, Index]] | None:
    """The cells of every stratum with the columns of ``X`` that it has to itself; None where strata share something."""
    out = []
    n_levels, met = [0] * len(cells.terms), np.zeros(cells.width - 1)
    row = np.arange(len(cells.y)) if cells.row is None else cells.row
    order = np.argsort(stratum, kind="stable")
    for here in np.split(order, np.cumsum(np.bincount(stratum, minlength=n_strata))[:-1]):
        terms = []
        for i, term in enumerate(cells.terms):
            levels, codes = np.unique(term.codes[here], return_inverse=True)
            terms.append(replace(term, basis=term.basis[here], codes=codes, n_levels=len(levels)))
            n_levels[i] += len(levels)
        distinct, own = np.unique(row[here], return_inverse=True)
        X = cells.rows[distinct]
        columns = np.flatnonzero(X.any(axis=0))
        met[columns] += 1
        X = X[:, columns]
        out.append((replace(cells, terms=terms, rows=X, row=own, y=cells.y[here], omega=cells.omega[here]), columns))
    shared = n_levels != [len(np.unique(term.codes)) for term in cells.terms] or (met > 1).any()
    return None if shared else out


def _lines(cells: CellColumns, rows: float, within: float, *, scale: int, reml: bool) -> Lines | None:
    """The lines of the cells of one stratum, where ``X'X`` is ``scale`` times the identity.

    ``Z_i Z_i' = n_i P_i`` where every level of a term has the weight ``n_i``, with ``P_i`` the means over levels. Two
    such terms commute where each level of one occurs with each level of the other in proportion, in every part of the
    table that they tell apart together, and ``P_i P_j`` is the mean over these parts. So every part that terms have in
    common has a line, which is what its means have beside those of coarser ones (Speed & Bailey 1982).
    """
    terms, omega, p = cells.terms, cells.omega, cells.width - 1
    sizes = [_size(term, omega) for term in terms]
    if not all(sizes):
        return None
    lattice = _lattice([_partition(term.codes, term.n_levels, omega) for term in terms], omega)
    if lattice is None:
        return None
    partitions, below, of_term = lattice
    left = cells.y.copy()
    dims: list[int] = []
    squares: list[float] = []
    fixed: list[Array] = []
    for (codes, weight), coarser in zip(partitions, below, strict=True):
        q = len(weight)
        mean = np.bincount(codes, omega * left, q) / weight
        left -= mean[codes]
        sums = cells.sums(codes, omega, q, slice(None))[:, :-1]
        of_X = (sums / weight[:, None]).T @ sums
        length = float(np.trace(of_X))
        if length - float((of_X**2).sum()) / scale > _DIFFERENCE * max(length, 1.0):  # it leads out of X
            return None
        dims.append(q - sum(dims[j] for j in coarser))
        squares.append(float(weight @ mean**2))
        fixed.append(of_X - sum((fixed[j] for j in coarser), start=np.zeros((p, p))))
    rest = float(omega @ left**2) + within
    finest = squares[-1] if partitions and len(partitions[-1][1]) == len(omega) else 0.0
    if rest + finest < _EXPLAINED * (sum(squares) + rest):
        return None
    fixed.append(scale * np.eye(p) - sum(fixed, start=np.zeros((p, p))))
    df = np.array([*dims, rows - sum(dims)], dtype=float)
    if reml:
        df -= np.trace(np.array(fixed), axis1=1, axis2=2) / scale
    whole = np.round(df)
    if np.abs(df - whole).max() > _WHOLE:
        return None
    held = [[i in (j, *below[j]) for j in of_term] for i in range(len(partitions))]
    of_lines = np.array([*held, [False] * len(terms)]).reshape(len(df), len(terms)) * np.array(sizes)
    return of_lines, whole, np.array([*squares, rest]), np.array(fixed)


def _size(term: RandomTerm, omega: Array) -> float:
    """``n_i`` of a term of intercepts whose levels weigh the same; 0 for any other."""
    if term.k > 1 or np.ptp(term.basis) > _SAME * abs(term.basis[0, 0]):
        return 0.0
    weight = np.bincount(term.codes, omega, term.n_levels)
    return float(term.basis[0, 0] ** 2 * weight.mean()) if np.ptp(weight) <= _SAME * weight[0] else 0.0


def _lattice(terms: Sequence[Partition], omega: Array) -> tuple[list[Partition], list[list[int]], list[int]] | None:
    """Partitions of terms that commute and of all that they have in common, coarse ones first.

    With the places of those that are coarser than each, and the place of each term; None where two do not commute.
    """
    partitions: list[Partition] = []
    for term in terms:
        if not any(_same(term, other) for other in partitions):
            partitions.append(term)
    n, done = len(partitions), 1
    while done < len(partitions):
        finer = partitions[done]
        for other in partitions[:done]:
            codes, q = joined(finer[0], len(finer[1]), other[0], len(other[1]))
            if q in (len(finer[1]), len(other[1])):
                continue
            common = _partition(codes, q, omega)
            if done < n and not _proportional(finer, other, common, omega):
                return None
            if not any(_same(common, one) for one in partitions):
                partitions.append(common)
        done += 1
    partitions.sort(key=lambda partition: len(partition[1]))
    below = [[j for j in range(i) if _finer(finer, partitions[j])] for i, finer in enumerate(partitions)]
    of_term = [next(i for i, finer in enumerate(partitions) if _same(t, finer)) for t in terms]
    return partitions, below, of_term


def _proportional(first: Partition, second: Partition, common: Partition, omega: Array) -> bool:
    """Whether ``w_ij w_c = w_i w_j`` for all classes ``i`` and ``j`` in a class ``c`` of what two partitions share."""
    (codes, weight), (others, of_others), (shared, of_shared) = first, second, common
    places, counts = [], []
    for diagonal, of_own in (first, second):
        of_class = np.zeros(len(of_own), dtype=np.intp)
        of_class[diagonal] = shared
        order = np.argsort(of_class, kind="stable")
        count = np.bincount(of_class, minlength=len(of_shared))
        place = np.empty(len(of_own), dtype=np.intp)
        place[order] = np.arange(len(of_own)) - np.repeat(np.cumsum(count) - count, count)
        places.append(place)
        counts.append(count)
    pairs = counts[0] * counts[1]
    n_pairs = int(pairs.sum())
    if n_pairs > len(omega):
        return False
    begin = np.cumsum(pairs) - pairs
    cell = begin[shared] + places[0][codes] * counts[1][shared] + places[1][others]
    of_pair = np.bincount(cell, omega, n_pairs)
    wanted = weight[codes] * of_others[others] / of_shared[shared]
    return bool(np.all(np.abs(of_pair[cell] - wanted) <= _SAME * wanted) and of_pair.all())
