"""Mean curves of algorithms over the budget with the covariance of their errors, from a spline or budget by budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from lmemtest._levels import in_order
from lmemtest.errors import DataError
from lmemtest.inference.distributions.largest_t import DrawnLargestT, largest_over_curves
from lmemtest.inference.means.estimates import Estimates
from lmemtest.studies.budget.curve_model import CurveModel, PairedCurves, from_axis, spline_over, to_axis
from lmemtest.words import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

_POINTS = 41  # evenly spaced, beside the observed budgets
_MOST_OBSERVED = 60


class Family(NamedTuple):
    """Linear functions ``(curves, points, p)`` of the coefficients, with estimates and errors ``(curves, points)``."""

    rows: Array
    estimate: Array
    se: Array


@dataclass(frozen=True, slots=True, eq=False)
class MeanCurves:
    """Mean curves of the algorithms on a grid of budgets.

    Attributes
    ----------
    model : CurveModel
    budgets : (points,) float
        The grid.
    estimates : Estimates
        Of each algorithm at each budget, algorithms first; NaN where an algorithm has no curve.
    residuals : (units, k, points) float or None
        Curves of every unit less their means, where the table is complete.
    """

    model: CurveModel
    budgets: Array
    estimates: Estimates
    residuals: Array | None = None

    @classmethod
    def of(cls, model: CurveModel, runs: Runs, budgets: Array, rows: Array, b: Array, V: Array) -> MeanCurves:
        """From linear functions ``(k, points, p)``, NaN where there is no curve."""
        grid = pd.MultiIndex.from_product([model.algorithms, budgets], names=["algorithm", "budget"])
        estimates = Estimates.of(
            L=rows.reshape(-1, len(b)),
            b=b,
            V=V,
            df=model.df_means,
            frame=grid.to_frame(index=False),
            by=("budget",),
            score=runs.score,
            direction=runs.direction,
        )
        return cls(model, budgets, estimates)

    @property
    def axis(self) -> Array:
        """Places of the grid on the axis on which curves are smooth."""
        return to_axis(self.budgets, self.model.scale)

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Left and right algorithm of each pair."""
        first, second = np.triu_indices(len(self.model.algorithms), 1)
        return first, second

    def curves(self) -> Family:
        """The mean curves."""
        return self._family(self.estimates.L.reshape(len(self.model.algorithms), len(self.budgets), -1))

    def differences(self) -> Family:
        """All differences, left minus right."""
        rows, (first, second) = self.curves().rows, self.pairs
        return self._family(rows[first] - rows[second])

    def mean_differences(self) -> Family:
        """Differences of the means over the axis where both have curves (trapezoid rule), ``(pairs, 1)``."""
        found = self.differences()
        weights = np.where(np.isnan(found.estimate), 0.0, self.weights)
        with np.errstate(invalid="ignore"):  # of two without a common point
            weights = weights / weights.sum(axis=1, keepdims=True)
        return self._family(np.einsum("cx,cxp->cp", weights, np.nan_to_num(found.rows))[:, None])

    @property
    def weights(self) -> Array:
        """Of the points, for a mean over the axis."""
        gaps = np.diff(self.axis) / 2.0
        return np.concatenate([[0.0], gaps]) + np.concatenate([gaps, [0.0]])

    def _family(self, rows: Array) -> Family:
        shape = rows.shape[:2]
        estimate, se, _ = self.estimates.evaluate(rows.reshape(-1, rows.shape[2]))
        return Family(rows, estimate.reshape(shape), np.where(se > 0, se, np.nan).reshape(shape))

    def largest(self, family: Family, df: float, *, n_draws: int, rng: np.random.Generator) -> DrawnLargestT:
        """Law of the largest |t| over all curves and points."""
        known = np.isfinite(family.se)
        return largest_over_curves(family.rows, self.estimates.V, df, defined=known, n_draws=n_draws, rng=rng)

    def mean_residuals(self) -> Array:
        """Means of `residuals` over the axis, ``(units, k)``."""
        assert self.residuals is not None
        return np.asarray(self.residuals @ self.weights / self.weights.sum())

    def square(self, values: Array, sign: float = 1.0) -> Array:
        """``(k, k, points)`` from values of the pairs; `sign` -1 for what changes sign with the order."""
        (first, second), k = self.pairs, len(self.model.algorithms)
        out = np.full((k, k, values.shape[1]), np.nan)
        out[first, second], out[second, first] = values, sign * values
        return out

    def budgets_at(self, places: Array) -> Array:
        """Places of the axis as budgets; those of the grid exactly."""
        budgets = from_axis(np.asarray(places, dtype=float), self.model.scale)
        nearest = self.budgets[np.abs(budgets[:, None] - self.budgets).argmin(axis=1)]
        return np.where(np.isclose(budgets, nearest, rtol=1e-9), nearest, budgets)


def spline_curves(fit: LmmFit, model: CurveModel, runs: Runs) -> MeanCurves:
    """Curves of a fitted spline model, conditions averaged with equal weights."""
    algorithms, budgets = model.algorithms, _grid(model)
    values = [algorithms, *(in_order(model.frame[c].unique()) for c in model.conditions), budgets]
    grid = pd.MultiIndex.from_product(values, names=[runs.algorithm, *model.conditions, str(runs.budget)])
    rows = fit.design.rows(grid.to_frame(index=False))
    rows = rows.reshape(len(algorithms), -1, len(budgets), rows.shape[1]).mean(axis=1)
    known = fit.estimable(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:2])
    lost = [a for a, ok in zip(algorithms, known.any(axis=1), strict=True) if not ok]
    if lost:
        raise DataError(
            f"The curve of {listed(lost)} cannot be estimated: it lacks some of the conditions "
            f"({listed(model.conditions)}) that the others have. Filter the runs to conditions that all have."
        )
    inside = np.array([(budgets >= low) & (budgets <= high) for low, high in model.ranges.values()])
    rows = np.where((inside & known)[:, :, None], rows[:, :, fit.problem.kept], np.nan)
    return MeanCurves.of(model, runs, budgets, rows, fit.kept_params, fit.cov_params().to_numpy())


def complete_curves(paired: PairedCurves, model: CurveModel, runs: Runs) -> MeanCurves:
    """Curves of a complete table in closed form: means at every budget, or their projections on the spline.

    Every unit has coefficients of its own for every algorithm (scores at the budgets, or least-squares coefficients of
    the spline), with an unstructured covariance that is the same for all algorithms. With the mean squares M of the
    coefficients averaged over algorithms and W of their differences from that average, the means of n units have the
    covariance ``(J/k x M + (I - J/k) x W) / n``. This is the restricted maximum-likelihood fit of the mixed model where
    no variance is zero; where one is (scores like ranks have the same mean on every benchmark) it stays right, while
    the fit takes the spread of the means for evidence that differences vary little.
    """
    k, observed = paired.scores.shape[1], to_axis(model.budgets, model.scale)
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
    mean = MeanCurves.of(model, runs, budgets, rows, (paired.mean @ least_squares).ravel(), cov)
    return MeanCurves(model, budgets, mean.estimates, e @ at_grid.T)


def _grid(model: CurveModel) -> Array:
    """The observed budgets and points between them, for a smooth curve."""
    low, high = model.budgets[0], model.budgets[-1]
    start, end = to_axis(np.array([low, high]), model.scale)
    even = from_axis(np.linspace(start, end, _POINTS), model.scale)[1:-1]
    if len(model.budgets) > _MOST_OBSERVED:
        return np.concatenate([[low], even, [high]])
    far = np.abs(even[:, None] - model.budgets).min(axis=1) > 1e-6 * (high - low)
    return np.unique(np.concatenate([model.budgets, even[far]]))
