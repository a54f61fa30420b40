"""One model ready to be searched: whitened columns, orthonormal fixed effects, scaled scores.

``y`` is replaced by its least-squares residual on ``X`` over its root mean square and ``X`` by the orthonormal
``Q`` of its QR decomposition: neither the likelihood nor the estimates change (up to known constants), and the
residual sum of squares does not cancel.

A term without variance need not be eliminated: where it is zero, the criterion, the estimates and their errors are
those of the model without it. What the whole model has beside that model is the slope of the criterion in that
variance,

    G = tr(Z'P Z) - |Z'P y|^2 / s2,

with ``P`` of the model without it. It needs the product of ``V^-1`` with each column of ``Z`` by itself, where an
elimination of ``Z`` needs the products of all pairs of its columns: a fraction of the work if ``Z`` are thousands of
effects that cross the rest, such as seeds that have the same names on every benchmark, in a table with gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from lmemtest.core.arrays import Array, Index
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_magnitude
from lmemtest.errors import DesignError
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.criterion import Anova, Criterion, analysed, evaluate
from lmemtest.lmm.engine.products import CellColumns, System, build_system, dense_cross, rotated
from lmemtest.lmm.engine.residual import Leaf, Strata, leaf_term
from lmemtest.lmm.engine.span import fixed_part, no_residual, unbounded
from lmemtest.lmm.engine.structure import RandomTerm, Shape, choose, group_terms
from lmemtest.lmm.engine.theta import solve_lower, solve_square

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """Cross-products and the maps back to the user's scale."""

    system: System
    reml: bool
    shapes: tuple[Shape, ...]  # of the terms
    R: tuple[Array, ...]  # whitening factor per term
    kept: Index  # (rank,) columns of X that are not aliased
    RX: Array  # (rank, rank): X[:, kept] = Q RX; triangular but for columns of their own (`fixed_part`)
    offset: Array  # (rank,) least-squares coefficients that were taken out of y
    y_scale: float
    n_levels: tuple[int, ...]  # of the terms

    strata: Strata | None = None  # residual variances by stratum
    residual_variance: float | None = None  # where it is held: of rows of weight one, on the internal scale
    leaf: Leaf | None = None  # intercepts of the cells that a search need not eliminate one by one
    absorbed: bool = False  # whether they are left out of ``system``
    anova: Anova | None = None  # the criterion of a balanced design as that of its mean squares
    saturated: bool = False  # whether the effects reach every row, of a residual variance that is estimated
    unbounded: bool = False  # whether the likelihood then grows without limit as that variance goes to zero

    @cached_property
    def searched(self) -> Problem:
        """The same criterion at the lowest cost: `reduced`, without intercepts of cells that weigh the same."""
        return (
            self.reduced if self.leaf is None else replace(self, system=self.leaf.inner.reduced.system, absorbed=True)
        )

    @cached_property
    def reduced(self) -> Problem:
        """The same criterion with groups that are alike up to the scores put into one: what a search needs."""
        system = self.system if self.strata is not None else rotated(self.system)
        return self if system is self.system else replace(self, system=system)

    def without(self, absent: Sequence[int]) -> Problem:
        """The model without some of its terms; of one that `can_turn`."""
        kept = [i for i in range(len(self.shapes)) if i not in absent]
        cells = cast(CellColumns, self.system.source)
        source = replace(cells, terms=[cells.terms[i] for i in kept])
        return replace(
            self,
            system=replace(self.system, source=source),
            shapes=tuple(self.shapes[i] for i in kept),
            R=tuple(self.R[i] for i in kept),
            n_levels=tuple(self.n_levels[i] for i in kept),
            anova=None,
        )

    @property
    def can_turn(self) -> bool:
        """Whether the columns are at hand, not their cross-products alone."""
        return isinstance(self.system.source, CellColumns)

    def turned(self, rotations: Sequence[Array]) -> Problem:
        """The same model with the whitened columns of each term rotated: ``Z U`` in place of ``Z``."""

        cells, strata, leaf = cast(CellColumns, self.system.source), self.strata, self.leaf
        terms = [replace(t, basis=t.basis @ U) for t, U in zip(cells.terms, rotations, strict=True)]
        structure = None if strata is None else choose(terms, self.system.p, cells.omega)

        def on_turned_columns(system: System) -> System:
            return replace(system, source=replace(cast(CellColumns, system.source), terms=terms, structure=structure))

        if strata is not None:
            strata = replace(strata, systems=tuple(map(on_turned_columns, strata.systems)))
        if leaf is not None:
            leaf = replace(leaf, inner=leaf.inner.turned(_but(rotations, leaf.term)))
        R = tuple(U.T @ R for U, R in zip(rotations, self.R, strict=True))
        return replace(self, system=on_turned_columns(self.system), R=R, strata=strata, leaf=leaf)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Columns per term."""
        return tuple(shape.k for shape in self.shapes)

    @cached_property
    def n_theta(self) -> int:
        """Covariance parameters of the random effects."""
        return sum(shape.n_theta for shape in self.shapes)

    @cached_property
    def n_free(self) -> int:
        """Parameters of the search: theta, then log precision ratios."""
        return self.n_theta + (self.strata.n_delta if self.strata is not None else 0)

    def split(self, x: Array) -> tuple[Array, Array]:
        """Theta and log precision ratios of a point of the search."""
        return x[: self.n_theta], x[self.n_theta :]

    def point(self, theta: Array) -> Array:
        """The point of the search at ``theta`` with the residual variances of the start."""
        return np.append(theta, np.zeros(self.n_free - self.n_theta))

    @property
    def deviance_shift(self) -> float:
        """What the criterion on the user's scale has on top of the internal one."""
        m = self.system.n_rows - (self.system.p if self.reml else 0)
        shift = 2.0 * m * np.log(self.y_scale)
        if self.reml:
            shift += 2.0 * np.linalg.slogdet(self.RX)[1]
        return float(shift)

    def unpack(self, x: Array) -> list[Array]:
        """Factor of each term at a point of the search."""
        return th.unpack(self.split(x)[0], self.shapes)

    def moved(self, x: Array, factors: Sequence[Array]) -> Array:
        """The point with other factors and the same residual variances."""
        return np.append(th.pack(factors, self.shapes), self.split(x)[1])

    def by_term(self, matrices: Sequence[Array]) -> list[Array]:
        """Gradient in each term's ``Sigma``, of the elements that are free, from one matrix per block."""
        parts = th.term_blocks(matrices, self.system.blocks, self.sizes)
        return [np.diag(G.diagonal()) if s.diagonal else G for G, s in zip(parts, self.shapes, strict=True)]

    def evaluate(self, x: Array) -> Criterion:
        """Criterion at a point of the search, on the internal scale."""
        if self.leaf is not None and self.absorbed:
            return self.leaf.evaluate(x)
        system = self.system if self.strata is None else self.strata.combined(self.split(x)[1])
        return evaluate(system, self.unpack(x), reml=self.reml, residual_variance=self.residual_variance)

    def by_mean_squares(self, x: Array, anova: Anova) -> Criterion:
        """`evaluate` of a balanced design, without an elimination until one is asked for.

        What is explained of the scores has been taken out of them, and stays out: the fixed effects are zero.
        """
        at, system = anova.evaluate(x), self.system
        if self.strata is not None:
            system = self.strata.at(system, self.split(x)[1])
        return Criterion(
            system=system,
            value=at.value,
            b=np.zeros(system.p),
            r2=at.r2,
            m=at.m,
            RX=np.asarray(np.linalg.cholesky(anova.information(x)), dtype=float),
            factors=self.unpack(x),
            reml=self.reml,
        )

    def derivatives(self, x: Array, at: Criterion) -> tuple[list[Array], Array]:
        """Gradient in each term's whitened ``Sigma``, and in ``x``: ``2 G L`` for every term, then the strata's."""
        if self.leaf is not None and self.absorbed:
            return self.leaf.derivatives(x, at)
        bar = at.adjoint(inputs=self.strata is not None)
        gradients = self.by_term(bar.sigma)
        g = th.pack([2.0 * G @ L for G, L in zip(gradients, self.unpack(x), strict=True)], self.shapes)
        if self.strata is not None:
            g = np.append(g, self.strata.gradient(self.split(x)[1], bar, at.weight))
        return gradients, g

    def fixed_effects(self, at: Criterion) -> tuple[Array, Array]:
        """Estimates of the kept columns on the user's scale, and ``U`` with covariance ``sigma2 U U'``."""
        b = solve_square(self.RX, at.b) * self.y_scale + self.offset
        root = solve_lower(at.RX, np.eye(len(b))).T  # F_XX^-1 = root root'
        return b, solve_square(self.RX, root)

    @property
    def n_strata(self) -> int:
        """Residual variances."""
        return 1 if self.strata is None else len(self.strata.systems)

    def residual_variances(self, x: Array, at: Criterion) -> Array:
        """Residual variance of each stratum on the user's scale, ``(n_strata,)``."""
        unit = at.sigma2 * self.y_scale**2
        if self.strata is None:
            return np.array([unit])
        return unit / (self.strata.precision * np.exp(np.append(0.0, self.split(x)[1])))

    def to_white(self, theta: Array) -> Array:
        """Whitened theta of a theta on the user's scale."""
        return th.pack(th.to_white(th.unpack(theta, self.shapes), self.R), self.shapes)

    def to_user(self, theta: Array) -> Array:
        """Theta on the user's scale of a whitened theta."""
        return th.pack(th.to_user(th.unpack(theta, self.shapes), self.R), self.shapes)


def _check_offset(y: Array, spread: float, total_weight: float) -> None:
    """Doubles have 16 digits: where the common level eats more than 10, too few are left for the differences."""
    level = float(np.abs(y).max())
    if 0 < np.sqrt(spread / total_weight) < 1e-10 * level:
        raise DesignError(
            f"the scores are about {level:.3g} and scatter by {written(np.sqrt(spread / total_weight), '.3g')} only, "
            "too little to be distinguished from rounding error. Subtract a constant from the score."
        )


def build_problem(
    terms: Sequence[RandomTerm],
    X: Array,
    y: Array,
    *,
    n: Array,
    weight: Array,
    ss: Array,
    reml: bool,
    rows: Index | None = None,
    stratum: Index | None = None,
    residual_variance: float | None = None,
) -> Problem:
    """Prepare a model for the search.

    Per cell ``y`` is the mean, ``n`` the rows, ``weight`` their precision and ``ss`` the sum of squares about the mean;
    ``rows`` is the row of ``X`` of each cell, by default its own; ``stratum`` has codes of groups with residual
    variances of their own; ``residual_variance`` holds that of a row of weight one (of the first stratum) instead of
    estimating it. A `DesignError` says where there are no more rows than fixed effects, or nothing is left to explain.
    """
    check_magnitude(y, smallest=1e-100)
    if stratum is not None:
        precision = _first_precisions(X, rows, y, n, weight, ss, stratum)
        weight = weight * precision[stratum]
    omega = n * weight
    n_rows = int(n.sum())
    row_of = np.arange(len(y)) if rows is None else rows
    saturated = residual_variance is None and no_residual(X, terms, n, row_of)
    limitless = saturated and unbounded(X[row_of], terms, reml=reml)
    kept, Q, rows, RX, b, rest = fixed_part(X, rows, y, omega, apart=stratum is not None)
    if n_rows < len(kept) + (residual_variance is None):
        raise DesignError(
            f"the table has {n_rows} rows and the fixed part {len(kept)} independent columns, so nothing is left "
            "to estimate the residual variance from. Use fewer fixed effects or more runs."
        )
    ss_within = float(weight @ ss)
    total = float(omega @ rest**2) + ss_within
    spread = float(omega @ (y - np.average(y, weights=omega)) ** 2) + ss_within
    if not total > max(1e-20 * spread, 1e-27 * float(omega @ y**2)):
        raise DesignError(
            "the fixed part explains the score exactly (its residuals are zero), so there is no variation to model. "
            "Check for a constant score, or for a column that is a copy of the score."
        )
    _check_offset(y, spread, float(omega.sum()))
    y_scale = float(np.sqrt(total / n_rows))
    white = [th.whiten(term, omega) for term in terms]
    Xq = Q * np.sqrt(n_rows)  # columns of unit mean square, like the whitened random columns

    def system_of(part: Array, without: int | None = None) -> System:
        """Cross-products of the cells in ``part``, a 0/1 mask, all terms but one."""
        return build_system(
            [w for i, (w, _) in enumerate(white) if i != without],
            Xq,
            rest / y_scale,
            omega * part,
            n_rows=n_rows,
            ss_within=float((weight * part) @ ss) / y_scale**2,
            sum_log_w=float(n @ np.log(weight)),
            row=rows,
            structure=structure,
        )

    strata = None
    structure = None
    if stratum is not None:
        structure = choose([w for w, _ in white], len(kept), omega)
        masks = [(stratum == g).astype(float) for g in range(stratum.max() + 1)]
        of_stratum = np.bincount(stratum, n).astype(np.float64)
        strata = Strata(systems=tuple(map(system_of, masks)), n_rows=of_stratum, precision=precision)
    system = system_of(np.ones(len(y)))
    anova = None
    if residual_variance is None:
        within = [part.ss_within for part in ([system] if strata is None else strata.systems)]
        of_strata = np.array([n_rows]) if strata is None else strata.n_rows
        anova = analysed(system, reml=reml, stratum=stratum, rows=of_strata, within=np.array(within))
    problem = Problem(
        system=system,
        reml=reml,
        shapes=tuple(t.shape for t in terms),
        R=tuple(R for _, R in white),
        kept=kept,
        RX=RX / np.sqrt(n_rows),
        offset=b,
        y_scale=y_scale,
        n_levels=tuple(t.n_levels for t in terms),
        strata=strata,
        residual_variance=None if residual_variance is None else residual_variance / y_scale**2,
        anova=anova,
        saturated=saturated,
        unbounded=limitless,
    )
    absorbed = leaf_term([w for w, _ in white], omega)
    if absorbed is None or stratum is not None or residual_variance is not None or not ss_within > 0:
        return problem
    leaf, classes, weights = absorbed
    of_classes = None
    if len(weights) > 1:
        structure = choose([w for i, (w, _) in enumerate(white) if i != leaf], len(kept), omega)
        parts = [system_of((classes == g).astype(float), without=leaf) for g in range(len(weights))]
        of_classes = Strata(
            systems=tuple(replace(part, ss_within=0.0) for part in parts),
            n_rows=np.bincount(classes).astype(np.float64),
            precision=np.ones(len(weights)),
        )
    inner = replace(
        problem,
        system=system_of(np.ones(len(y)), without=leaf),
        shapes=_but(problem.shapes, leaf),
        R=_but(problem.R, leaf),
        n_levels=_but(problem.n_levels, leaf),
        strata=of_classes,
        anova=None,
    )
    return replace(problem, leaf=Leaf(inner, leaf, weights, len(y)))


def _but(items: Sequence[T], i: int) -> tuple[T, ...]:
    """All but one."""
    return (*items[:i], *items[i + 1 :])


def _first_precisions(
    X: Array, rows: Index | None, y: Array, n: Array, weight: Array, ss: Array, stratum: Index
) -> Array:
    """Precisions of the strata, the first one's being 1, from least-squares residuals: where the search begins."""
    rest = fixed_part(X, rows, y, n * weight)[-1]
    squares = np.bincount(stratum, weight * (n * rest**2 + ss))
    variance = squares / np.bincount(stratum, n)
    if not variance.min() > 1e-20 * variance.max():
        raise DesignError(
            "a group of the dispersion factor has no residual variation (constant scores), so its residual variance "
            "cannot be estimated. Leave its rows out."
        )
    return variance[0] / variance


def absent_terms(problem: Problem, theta: Array, most: float = 0.0) -> tuple[int, ...]:
    """The intercepts whose standard deviation is ``most`` at most, where they can be left out; none if all are such."""
    if not problem.can_turn or problem.strata is not None or problem.leaf is not None:
        return ()
    factors = problem.unpack(theta)
    absent = tuple(i for i, L in enumerate(factors) if L.shape == (1, 1) and L[0, 0] <= most)
    return absent if len(absent) < len(factors) else ()


def zero_slopes(problem: Problem, absent: Sequence[int], rest: Problem, at: Criterion) -> Array | None:
    """``G`` of the absent terms at an evaluation of ``rest``, the model without them.

    None where that model is not one of independent parts: there an elimination of all terms is no more work.
    """
    system = rest.system
    if system.tail or any(stage.E for stage in system.chain):
        return None
    cells, p = cast(CellColumns, problem.system.source), system.p
    out = np.empty(len(absent))
    for number, i in enumerate(absent):
        (block,) = group_terms([cells.terms[i]])
        weight = block.basis[:, 0] * cells.omega
        trace = float(block.basis[:, 0] @ weight)  # of Z'V^-1 Z
        cross = cells.sums(block.codes, weight, block.q, slice(None))  # Z'V^-1 [X y]
        for step in at.sweep.steps:
            met = step.stage.block
            # the levels that occur in each group, side by side: all at once would be groups x levels
            pairs, pair = np.unique(met.codes * block.q + block.codes[met.cells], return_inverse=True)
            group, level = np.divmod(pairs, block.q)
            place = np.arange(len(pairs)) - np.searchsorted(group, group)
            local = np.zeros_like(block.codes)
            local[met.cells] = place[pair]
            r = int(place.max()) + 1
            V = dense_cross(met, [replace(block, q=r, codes=local)], cells)
            of_Z, of_D = V[:, :, :r], V[:, :, r:]
            QZ = step.Q @ of_Z
            trace -= float(np.vdot(QZ, of_Z))
            np.subtract.at(cross, level, (QZ.transpose(0, 2, 1) @ of_D)[group, place])
        seen = solve_lower(at.RX, cross[:, :p].T)
        residual = cross[:, p] - cross[:, :p] @ at.b
        out[number] = trace - float(np.vdot(seen, seen)) - at.weight * float(residual @ residual)
    return out
