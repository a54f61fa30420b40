"""Mean curves of algorithms over the budget with the covariance of their errors, from a spline or budget by budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._levels import in_order
from lmemtest.errors import DataError
from lmemtest.inference.distributions.largest_t import DrawnLargestT, largest_over_curves
from lmemtest.inference.means.moderation import Moderation, pair_ratios
from lmemtest.studies.budget.curve_model import CurveModel, PairedCurves, from_axis, spline_over, to_axis
from lmemtest.words import listed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

_POINTS = 41  # evenly spaced, beside the observed budgets
_MOST_OBSERVED = 60


@dataclass(frozen=True, slots=True, eq=False)
class CurveFamily:
    """Linear functions of the coefficients: curves at points, with their estimates.

    Attributes
    ----------
    rows : (curves, points, p) float
    cov : (p, p) float
    estimate, se : (curves, points) float
        NaN where a curve is not defined.
    """

    rows: Array
    cov: Array
    estimate: Array
    se: Array

    @classmethod
    def of(cls, rows: Array, coefficients: Array, cov: Array, defined: NDArray[np.bool_]) -> CurveFamily:
        estimate = np.where(defined, rows @ coefficients, np.nan)
        variance = np.einsum("cxp,cxp->cx", rows @ cov, rows)
        se = np.sqrt(np.maximum(variance, 0.0))
        return cls(rows, cov, estimate, np.where(defined & (se > 0), se, np.nan))

    def largest(self, df: float, *, n_draws: int, rng: np.random.Generator) -> DrawnLargestT:
        """Law of the largest |t| over all curves and points."""
        return largest_over_curves(self.rows, self.cov, df, defined=np.isfinite(self.se), n_draws=n_draws, rng=rng)


@dataclass(frozen=True, slots=True, eq=False)
class MeanCurves:
    """Mean curves of the algorithms on a grid of budgets.

    Attributes
    ----------
    algorithms : tuple of str
    budgets, axis : (points,) float
        The grid, and its places on the axis on which curves are smooth.
    scale : {"linear", "log"}
    rows : (k, points, p) float
    coefficients : (p,) float
    cov : (p, p) float
    defined : (k, points) bool
    residuals : (units, k, points) float or None
        Curves of every unit less their means, where the table is complete.
    free : int
        Degrees of freedom of `residuals`.
    """

    algorithms: tuple[str, ...]
    budgets: Array
    axis: Array
    scale: str
    rows: Array
    coefficients: Array
    cov: Array
    defined: NDArray[np.bool_]
    residuals: Array | None = None
    free: int = 0

    @property
    def n(self) -> int:
        return len(self.algorithms)

    @property
    def first_second(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Left and right algorithm of each pair."""
        first, second = np.triu_indices(self.n, 1)
        return first, second

    def curves(self) -> CurveFamily:
        """The mean curves."""
        return CurveFamily.of(self.rows, self.coefficients, self.cov, self.defined)

    def differences(self) -> CurveFamily:
        """All differences, left minus right."""
        first, second = self.first_second
        both = self.defined[first] & self.defined[second]
        return CurveFamily.of(self.rows[first] - self.rows[second], self.coefficients, self.cov, both)

    @property
    def can_be_moderated(self) -> bool:
        """Whether the units show how much each of several pairs varies."""
        return self.residuals is not None and self.n > 2 and self.free > 1

    def moderated(self, pairs: CurveFamily, most_df: float) -> tuple[Moderation, CurveFamily, Array]:
        """The differences with moderated standard errors, and their degrees of freedom, ``(pairs, points)``."""
        assert self.residuals is not None
        family, ratio, df = pair_ratios(self.residuals, self.free, most_df)
        return family, replace(pairs, se=pairs.se * np.sqrt(ratio)), df

    def moderated_curves(self, curves: CurveFamily, pairs: CurveFamily, family: Moderation) -> CurveFamily:
        """The curves, with the part of their errors that differences have exchanged for each algorithm's own.

        `pairs` are the differences with the common standard errors.
        """
        advantage = np.nan_to_num(pairs.se[0]) ** 2 / 2.0
        shared = np.maximum(curves.se**2 - advantage, 0.0)
        return replace(curves, se=np.sqrt(shared + advantage * family.scale[:, None]))

    def moderated_means(self, most_df: float) -> tuple[Array, Array]:
        """Ratios of the variances of `mean_differences` to the common one, and degrees of freedom, ``(pairs,)``."""
        _, ratio, df = pair_ratios(self.mean_residuals()[:, :, None], self.free, most_df)
        return ratio[:, 0], df[:, 0]

    def mean_residuals(self) -> Array:
        """Means of `residuals` over the axis, ``(units, k)``."""
        assert self.residuals is not None
        weights = _trapezoid(self.axis)
        return np.asarray(self.residuals @ weights / weights.sum())

    def mean_differences(self) -> tuple[Array, Array]:
        """Differences of the means over the axis, where both have curves (trapezoid rule), and standard errors."""
        first, second = self.first_second
        weights = np.where(self.defined[first] & self.defined[second], _trapezoid(self.axis), 0.0)
        total = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
        rows = np.einsum("cx,cxp->cp", weights, self.rows[first] - self.rows[second])
        return rows @ self.coefficients, np.sqrt(np.einsum("cp,pq,cq->c", rows, self.cov, rows))

    def square(self, values: Array, sign: float = 1.0) -> Array:
        """``(k, k, points)`` from values of the pairs; `sign` -1 for what changes sign with the order."""
        first, second = self.first_second
        out = np.full((self.n, self.n, values.shape[1]), np.nan)
        out[first, second], out[second, first] = values, sign * values
        return out

    def budgets_at(self, places: Array) -> Array:
        """Places of the axis as budgets; those of the grid exactly."""
        budgets = from_axis(np.asarray(places, dtype=float), self.scale)
        nearest = self.budgets[np.abs(budgets[:, None] - self.budgets).argmin(axis=1)]
        return np.where(np.isclose(budgets, nearest, rtol=1e-9), nearest, budgets)


def spline_curves(fit: LmmFit, model: CurveModel, runs: Runs) -> MeanCurves:
    """Curves of a fitted spline model, conditions averaged with equal weights."""
    algorithms, budgets = _algorithms(runs), _grid(model)
    columns = [runs.algorithm, *model.conditions, str(runs.budget)]
    values = [algorithms, *(in_order(model.frame[c].unique()) for c in model.conditions), budgets]
    rows = fit.design.rows(_product(columns, values))
    rows = rows.reshape(len(algorithms), -1, len(budgets), rows.shape[1]).mean(axis=1)
    known = fit.estimable(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:2])
    if not known.any(axis=1).all():
        lost = [a for a, ok in zip(algorithms, known.any(axis=1), strict=True) if not ok]
        raise DataError(
            f"The curve of {listed(lost)} cannot be estimated: it lacks some of the conditions "
            f"({listed(model.conditions)}) that the others have. Filter the runs to conditions that all have."
        )
    inside = np.array([(budgets >= low) & (budgets <= high) for low, high in (model.ranges[a] for a in algorithms)])
    return MeanCurves(
        algorithms=algorithms,
        budgets=budgets,
        axis=to_axis(budgets, model.scale),
        scale=model.scale,
        rows=rows[:, :, fit.problem.kept],
        coefficients=fit.kept_params,
        cov=fit.cov_params().to_numpy(),
        defined=inside & known,
    )


def complete_curves(paired: PairedCurves, model: CurveModel, runs: Runs) -> MeanCurves:
    """Curves of a complete table in closed form: means at every budget, or their projections on the spline.

    Every unit has coefficients of its own for every algorithm (scores at the budgets, or least-squares coefficients of
    the spline), with an unstructured covariance that is the same for all algorithms. With the mean squares M of the
    coefficients averaged over algorithms and W of their differences from that average, the means of n units have the
    covariance ``(J/k x M + (I - J/k) x W) / n``. This is the restricted maximum-likelihood fit of the mixed model where
    no variance is zero; where one is (scores like ranks have the same mean on every benchmark) it stays right, while
    the fit takes the spread of the means for evidence that differences vary little.
    """
    algorithms, k = _algorithms(runs), paired.scores.shape[1]
    observed = to_axis(model.budgets, model.scale)
    if model.columns is None:
        budgets, basis, at_grid = model.budgets, np.eye(len(observed)), np.eye(len(observed))
    else:
        budgets, spline = _grid(model), spline_over(observed, model.columns)
        basis, at_grid = spline(observed), spline(to_axis(budgets, model.scale))
    least_squares = np.linalg.pinv(basis).T
    e = paired.residuals @ least_squares
    centre = e.mean(axis=1)
    around = e - centre[:, None]
    between = k * centre.T @ centre / paired.free
    within = np.einsum("uax,uay->xy", around, around) / (paired.free * (k - 1))
    share = np.full((k, k), 1.0 / k)
    cov = (np.kron(share, between) + np.kron(np.eye(k) - share, within)) / len(e)
    rows = np.stack([np.kron(np.eye(k)[i], at_grid) for i in range(k)])
    return MeanCurves(
        algorithms=algorithms,
        budgets=budgets,
        axis=to_axis(budgets, model.scale),
        scale=model.scale,
        rows=rows,
        coefficients=(paired.mean @ least_squares).ravel(),
        cov=cov,
        defined=np.ones(rows.shape[:2], dtype=bool),
        residuals=e @ at_grid.T,
        free=paired.free,
    )


def _algorithms(runs: Runs) -> tuple[str, ...]:
    return tuple(str(a) for a in runs.levels(runs.algorithm))


def _grid(model: CurveModel) -> Array:
    """The observed budgets and points between them, for a smooth curve."""
    low, high = model.budgets[0], model.budgets[-1]
    start, end = to_axis(np.array([low, high]), model.scale)
    even = from_axis(np.linspace(start, end, _POINTS), model.scale)[1:-1]
    if len(model.budgets) > _MOST_OBSERVED:
        return np.concatenate([[low], even, [high]])
    far = np.abs(even[:, None] - model.budgets).min(axis=1) > 1e-6 * (high - low)
    return np.unique(np.concatenate([model.budgets, even[far]]))


def _product(columns: list[str], values: list[Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.MultiIndex.from_product(values, names=columns).to_frame(index=False)


def _trapezoid(x: Array) -> Array:
    gaps = np.diff(x) / 2.0
    return np.concatenate([[0.0], gaps]) + np.concatenate([gaps, [0.0]])
