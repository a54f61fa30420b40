"""Balanced designs: the criterion from the mean squares of an analysis of variance.

With a variance per term, ``V = I + sum_i theta_i^2 Z_i Z_i'`` relative to the residual variance. Where the ``Z_i Z_i'``
commute and none leads out of the span of ``X``, they have eigenspaces in common, the lines ``s`` of an analysis of
variance, on which

    lambda_s = 1 + sum_i mu_si theta_i^2,    V = sum_s lambda_s E_s,

and the fixed effects are those of least squares. With the sum of squares ``SS_s = y'E_s y`` of the residuals and the
degrees of freedom ``d_s``, of REML less those of ``X``, the criterion is

    sum_s d_s log lambda_s + m (1 + log(2 pi r2 / m)) + log|X'X| - sum log w,    r2 = sum_s SS_s / lambda_s

(``log|X'X|`` of REML alone), at the cost of a few numbers. With as many lines as variances every ``s2 lambda_s`` may be
what it likes, and the criterion is a sum of functions of one of them each, with one minimum each: the mean squares. If
the variances that belong to these are positive they are the estimates (Searle, Casella & McCulloch 1992, ch. 4,
doi:10.1002/9780470316856), and no other optimum exists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmemtest.engine.blocks import Stage, System
from lmemtest.engine.cross import Array

# Share of the largest eigenvalue below which another is zero, or two are the same.
_SAME = 1e-9
# Rounding of squared lengths, relative to the largest: how far a vector may be from an eigenvector.
_ROUNDING = 1e-18
# Likewise where a length is the difference of two.
_DIFFERENCE = 1e-11
# Variance ratios of a start: neither on the boundary, where theta's gradient vanishes, nor out of reach.
LOWEST, HIGHEST = 1e-3, 1e6
# How far from a whole number degrees of freedom may be.
_WHOLE = 1e-6
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
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


@dataclass(frozen=True)
class Anova:
    """Lines of an analysis of variance, the last one of what the terms leave."""

    sizes: Array  # (lines, terms) mu
    df: Array  # (lines,)
    squares: Array  # (lines,) sums of squares
    fixed: Array  # (lines, p, p) X'E_s X
    m: int  # rows, of REML less the fixed effects: the sum of df
    constant: float

    def evaluate(self, theta: Array) -> MeanSquares:
        """The criterion; `LinAlgError` if it is not finite."""
        growth = 1.0 + self.sizes @ theta**2
        r2 = float((self.squares / growth).sum())
        if not (np.isfinite(growth).all() and r2 > 0):
            raise np.linalg.LinAlgError("the residual sum of squares is not positive")
        value = float(self.df @ np.log(growth)) + self.m * float(np.log(2.0 * np.pi * r2 / self.m))
        value += self.m + self.constant
        return MeanSquares(anova=self, value=value, r2=r2, m=self.m, total=float(self.squares.sum()), growth=growth)

    def derivatives(self, theta: Array, at: MeanSquares) -> tuple[list[Array], Array, Array]:
        """Gradient in every term's ``Sigma``, in theta, and the Hessian in theta."""
        weight, each = at.m / at.r2, self.squares / at.growth**2
        G = (self.df / at.growth - weight * each) @ self.sizes
        curved = (2.0 * weight * each - self.df / at.growth) / at.growth
        d_r2 = each @ self.sizes
        K = (self.sizes.T * curved) @ self.sizes - weight / at.r2 * np.outer(d_r2, d_r2)
        H = 4.0 * np.outer(theta, theta) * K
        H.flat[:: len(H) + 1] += 2.0 * G
        return [np.array([[own]]) for own in G], 2.0 * G * theta, H

    @property
    def _expected(self) -> tuple[Array, Array, Array]:
        """Coefficients of the variances in the expected mean squares, the mean squares, and their df."""
        kept = self.df > 0
        coefficients = np.column_stack([np.ones(len(kept)), self.sizes])[kept]
        return coefficients, self.squares[kept] / self.df[kept], self.df[kept]

    def information(self, theta: Array) -> Array:
        """``X'V^-1X``, ``(p, p)``."""
        return np.asarray(np.tensordot(1.0 / (1.0 + self.sizes @ theta**2), self.fixed, 1))

    def covariance_slopes(self, theta: Array) -> Array:
        """Derivatives of ``(X'V^-1X)^-1`` in theta, ``(terms, p, p)``."""
        growth = 1.0 + self.sizes @ theta**2
        covariance = np.linalg.inv(self.information(theta))
        moved = np.tensordot(2.0 * theta * self.sizes / growth[:, None] ** 2, self.fixed, (0, 0))
        return np.asarray(covariance @ moved @ covariance)

    def log_scale_slopes(self, theta: Array) -> Array:
        """Derivatives of the log residual variance in theta, ``(terms,)``."""
        at = self.evaluate(theta)
        return -2.0 * theta * (self.squares / at.growth**2 @ self.sizes) / at.r2

    def start(self) -> Array:
        """Theta of the variances that fit the mean squares best, away from zero."""
        expected, mean_squares, df = self._expected
        root = np.sqrt(df)
        variances = np.linalg.lstsq(expected * root[:, None], mean_squares * root, rcond=1e-10)[0]
        residual = max(float(variances[0]), 1e-6 * float(self.squares.sum()) / self.m)
        return np.sqrt(np.clip(variances[1:] / residual, LOWEST, HIGHEST))

    def solution(self) -> Array | None:
        """Theta at the only optimum where the mean squares give it, else None."""
        expected, mean_squares, _ = self._expected
        if len(expected) != expected.shape[1]:
            return None
        try:
            variances = np.linalg.solve(expected, mean_squares)
        except np.linalg.LinAlgError:  # two terms that always go together
            return None
        return np.sqrt(variances[1:] / variances[0]) if variances.min() > 0 else None


def analysed(system: System, n_terms: int, *, reml: bool, cells: tuple[int, float, int] | None = None) -> Anova | None:
    """The lines of a system; None where its terms do not have them.

    ``cells`` is for intercepts of the cells that the system leaves out: the place of the term, its weight and their
    number. They are one more size of every line, and rows of a cell are a line of their own.
    """
    if system.tail or len(system.chain) != 1:
        return None
    members, n, p = system.chain[0].block.members, system.n_rows, system.p
    if len(system.chain[0].A) > 1 or any(m.k > 1 for m in members) or len(members) != n_terms - (cells is not None):
        return None
    found = _eigenspaces(system.chain[0], n, p)
    of_cells = float(system.B[-1, -1])
    if found is None:
        return None
    sizes, counts, squares, fixed = found
    if cells is None:
        last = [(np.zeros(n_terms), n - counts.sum(), of_cells + system.ss_within - squares.sum())]
    else:
        place, weight, n_cells = cells
        sizes = np.insert(sizes, place, weight, axis=1)
        alone = np.where(np.arange(n_terms) == place, weight, 0.0)
        last = [
            (np.zeros(n_terms), n - n_cells, system.ss_within),
            (alone, n_cells - counts.sum(), max(of_cells - squares.sum(), 0.0)),
        ]
    if sum(line[2] for line in last) < _EXPLAINED * (of_cells + system.ss_within):
        return None
    sizes = np.vstack([sizes, *(line[0] for line in last)])
    df = np.append(counts, [line[1] for line in last])
    fixed = np.concatenate([fixed, *([np.zeros((1, p, p))] * (len(last) - 1)), [n * np.eye(p) - fixed.sum(axis=0)]])
    if reml:
        df -= np.trace(fixed, axis1=1, axis2=2) / n
    whole = np.round(df)
    if np.abs(df - whole).max() > _WHOLE:
        return None
    return Anova(
        sizes=sizes,
        df=whole,
        squares=np.append(squares, [line[2] for line in last]),
        fixed=fixed,
        m=n - (p if reml else 0),
        constant=(p * float(np.log(n)) if reml else 0.0) - system.sum_log_w,
    )


def _eigenspaces(stage: Stage, n: int, p: int) -> tuple[Array, Array, Array, Array] | None:
    """Per eigenspace that all terms have in common: ``mu`` by term, dimensions, squares of ``y``, and ``X'E_s X``.

    They are the eigenspaces of a sum of the ``Z_i Z_i'`` with weights that nothing in a design can cancel.
    """
    A, V, members = stage.A[0], stage.V.values, sorted(stage.block.members, key=lambda m: m.term)
    own = np.zeros((len(members), len(A)))  # 0/1: the columns of each term
    for row, member in zip(own, members, strict=True):
        row[member.columns] = 1.0
    d = A.diagonal()
    generic = np.sqrt([_PRIMES[i % len(_PRIMES)] + i // len(_PRIMES) for i in range(len(members))])
    root = np.sqrt((generic * own.sum(axis=1) / (own @ d)) @ own)
    values, vectors = np.linalg.eigh(root[:, None] * A * root)
    kept = values > _SAME * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    C = root[:, None] * vectors / np.sqrt(values)  # Z C is orthonormal
    onto = (np.sqrt(values) * vectors).T / root  # the coordinates of Z c in it
    seen = A @ C
    mu = own @ seen**2
    for columns, size in zip(own, mu, strict=True):
        apart = columns[:, None] * seen - C * size
        if ((onto @ apart) ** 2).sum(axis=0).max() > _ROUNDING * size.max() ** 2:
            return None
    for columns in own.astype(bool):  # what Z_i Z_i'X has beside X
        V_X = V[:, columns, :p]
        inside = _gram(V_X)
        length = float((V_X**2).sum(axis=(0, 2)) @ d[columns])
        if length - float((inside**2).sum()) / n > _DIFFERENCE * length:
            return None
    first = np.flatnonzero(np.append(True, np.diff(values) > _SAME * values[-1]))
    last = np.append(first[1:], len(values))
    products = C.T @ V  # (groups, vectors, columns of X and y)
    squares = (products[:, :, -1] ** 2).sum(axis=0)
    if stage.S is not None:
        squares = squares + (C * (stage.S[0] @ C)).sum(axis=0)
    of_X = [products[:, start:stop, :p] for start, stop in zip(first, last, strict=True)]
    return (
        (np.add.reduceat(mu, first, axis=1) / (last - first)).T,
        stage.copies * (last - first).astype(float),
        np.add.reduceat(squares, first),
        np.array([_gram(W) for W in of_X]),
    )


def _gram(W: Array) -> Array:
    """``W'W`` over all rows of a stack."""
    flat = W.reshape(W.shape[0] * W.shape[1], W.shape[2])
    return flat.T @ flat
