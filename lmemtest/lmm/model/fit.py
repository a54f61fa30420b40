"""A fitted linear mixed model: what was estimated, how precisely, and draws from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from lmemtest.core.caller import setting
from lmemtest.core.result import Result
from lmemtest.core.rounding import written
from lmemtest.core.table import ResultTable, Text
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_choice, check_flag, check_fraction, real, resolve_rng
from lmemtest.errors import ArgumentError, DataError, EstimationError
from lmemtest.lmm.cells import CellMap, Cells, compressed
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.ddf import Curvature, curvature
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.held import Held, draw_cells
from lmemtest.lmm.engine.kenward_roger import KenwardRoger, kenward_roger
from lmemtest.lmm.engine.optimize import Optimum
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.formula.design import Design, beside_held
from lmemtest.lmm.model import predictions
from lmemtest.lmm.model.given import check_linear
from lmemtest.lmm.model.verbs import Verbs
from lmemtest.lmm.scope import Scope, scope_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.intervals.cluster_robust import ClusterRobust


DdfMethod = Literal["satterthwaite", "kenward-roger", "residual", "asymptotic"]
DDF_METHODS = ("satterthwaite", "kenward-roger", "residual", "asymptotic")

# A standard deviation below this share of the residual's, or a correlation closer to one, is singular (as in lme4).
SINGULAR = 1e-4
_RANK = 1e-7  # of rank decisions, relative to the length of a column


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LmmFit(Verbs, Result):
    """A fitted linear mixed model; made by `fit_lmm`, never changed afterwards.

    Attributes
    ----------
    formula : str
        The model as it was asked for.
    reml : bool
        Restricted maximum likelihood (True) or maximum likelihood (False).
    design : Design
        Matrices on the cells, and the coding of new data.
    cells : Cells
        The compressed table.
    data : object
        The `Runs` or dataframe that was given.
    weights : str or None
        Column of precision weights.
    dispersion : str or None
        Column whose levels have residual variances of their own.
    residual_variance : float or None
        Residual variance of a row of weight one where it is known; None: it is estimated.
    optim : Optimum
        Where the search stopped, and its certificate.
    notes : tuple of str
        What was changed or found: dropped columns, singular terms, an incomplete certificate.
    """

    formula: str
    reml: bool
    design: Design
    cells: Cells
    data: Any
    weights: str | None
    dispersion: str | None
    residual_variance: float | None
    problem: Problem
    optim: Optimum
    notes: tuple[str, ...]

    parts: ClassVar[Mapping[str, str]] = {"fixed_effects": "to_frame", "variances": "varcorr"}

    @cached_property
    def scope(self) -> Scope | None:
        """What the table behind the fit tells of its columns; None of a plain dataframe."""
        return scope_of(self.data)

    @property
    def label(self) -> str:
        """The model in words that a result can show: the formula, with residual variances and weights where given."""
        more = "" if self.dispersion is None else f", residual variance by {self.dispersion}"
        more += "" if self.residual_variance is None else f", residual variance {self.residual_variance:g}"
        return self.formula + more + ("" if self.weights is None else f", weights {self.weights}")

    @property
    def distribution(self) -> str:
        """Of the scores given all effects."""
        return "normal"

    @property
    def score(self) -> str:
        """What is linear in the effects, as results name it."""
        return self.design.parsed.score

    @property
    def scores(self) -> Cells:
        """The cells as they were observed: what `simulate` draws and `refit` takes."""
        return self.cells

    @property
    def rows_of_cells(self) -> Array:
        """Rows of the table in each cell, ``(n_cells,)``."""
        return self.cells.n

    # -- size and fit -------------------------------------------------------------------------------------------

    @property
    def nobs(self) -> int:
        """Rows of the table."""
        return self.problem.system.n_rows

    @property
    def rank(self) -> int:
        """Fixed effects that the data identify."""
        return self.problem.system.p

    @property
    def n_params(self) -> int:
        """Fixed effects, covariance parameters and residual variances that are estimated."""
        return self.rank + self.problem.n_theta + (self.problem.n_strata if self.residual_variance is None else 0)

    @property
    def llf(self) -> float:
        """Log-likelihood; the restricted one where ``reml`` is True."""
        return -0.5 * (self.optim.criterion.value + self.problem.deviance_shift)

    @property
    def aic(self) -> float:
        """Akaike's criterion, all parameters counted."""
        return -2.0 * self.llf + 2.0 * self.n_params

    @property
    def bic(self) -> float:
        """Schwarz's criterion with the number of rows, as lme4 has it."""
        return -2.0 * self.llf + float(np.log(self.nobs)) * self.n_params

    def cells_by(self, names: Sequence[str]) -> tuple[Cells, Index]:
        """The cells of the table, split by further columns, and the cell of the fit that each belongs to.

        Raises
        ------
        DataError
            If the fit is of other scores than those of its table.
        """
        if all(name in self.cells.names for name in names):
            return self.cells, np.arange(len(self.cells.n))
        parsed, keys = self.design.parsed, tuple(dict.fromkeys([*self.cells.names, *names]))
        fine = compressed(
            as_frame(self.data),
            keys,
            score=parsed.response,
            transform=parsed.response_transform,
            weights=self.weights,
            scope=self.scope,
        )
        by_cell = CellMap.of(fine, self.cells)
        mean = by_cell.aggregate(fine).mean
        tolerance = 1e-8 * max(float(np.abs(self.cells.mean).max()), np.finfo(float).tiny)
        if not np.allclose(mean, self.cells.mean, rtol=0.0, atol=tolerance):
            raise DataError(
                "the fit was made from other scores than its table holds (a refit to simulated cells), so its rows "
                f"cannot be sorted into clusters by {', '.join(names)}. Fit the table itself, or name columns of the "
                "formula."
            )
        return fine, by_cell.codes

    @property
    def scale(self) -> float:
        """Residual variance of a row of weight one; of the first group where ``dispersion`` is given."""
        return self.optim.criterion.sigma2 * self.problem.y_scale**2

    @cached_property
    def residual_variances(self) -> pd.Series:
        """Residual variance by level of the dispersion column (one entry, "all", without it)."""
        values = self.problem.residual_variances(self.optim.theta, self.optim.criterion)
        levels = ["all"] if self.dispersion is None else list(self.cells.strata(self.dispersion)[1])
        return pd.Series(values, index=levels, name="variance")

    @cached_property
    def mean_residual_variance(self) -> float:
        """Residual variance of a row of weight one, averaged over the rows: ``scale`` without ``dispersion``."""
        if self.dispersion is None:
            return self.scale
        codes, _ = self.cells.strata(self.dispersion)
        return float(np.average(self.residual_variances.to_numpy()[codes], weights=self.cells.n))

    @property
    def converged(self) -> bool:
        """Whether the certificate of the search is complete."""
        return self.optim.converged

    @property
    def unfinished(self) -> str:
        """What is said where the search did not converge."""
        return f"The search {self.optim.message}; try restarts=5, or a simpler random part."

    @cached_property
    def theta(self) -> Array:
        """``(n_theta,)`` lower triangles of the relative Cholesky factors, term by term, column by column.

        Of a `diag` term the diagonal alone.
        """
        return self.problem.to_user(self.problem.split(self.optim.theta)[0])

    @cached_property
    def is_singular(self) -> bool:
        """Whether a variance is estimated as zero or a correlation as one."""
        return bool(self.singular_terms)

    @cached_property
    def singular_terms(self) -> tuple[str, ...]:
        labels = []
        for term, L in zip(self.design.random, self.problem.unpack(self.optim.theta), strict=True):
            smallest = np.linalg.svd(L, compute_uv=False)[-1]
            if smallest < SINGULAR:
                labels.append(term.label)
        return tuple(labels)

    # -- fixed effects ------------------------------------------------------------------------------------------

    @cached_property
    def _fixed(self) -> tuple[Array, Array]:
        """Kept coefficients and their covariance."""
        b, U = self.problem.fixed_effects(self.optim.criterion)
        return b, self.scale * (U @ U.T)

    @property
    def kept_params(self) -> Array:
        """``(rank,)`` fixed effects that the data identify, in the order of the design."""
        return self._fixed[0]

    @property
    def kept_cov(self) -> Array:
        """``(rank, rank)`` covariance of `kept_params`."""
        return self._fixed[1]

    @cached_property
    def params(self) -> pd.Series:
        """Fixed effects by name; NaN for columns that depend on others."""
        return self._by_name(self.kept_params, "estimate")

    @cached_property
    def bse(self) -> pd.Series:
        """Standard errors of the fixed effects."""
        return self._by_name(np.sqrt(self.kept_cov.diagonal()), "se")

    def _by_name(self, kept: Array, name: str) -> pd.Series:
        """Values of the kept coefficients as those of all, NaN for the others."""
        values = pd.Series(np.nan, index=list(self.design.x_names), name=name)
        values.iloc[self.problem.kept] = kept
        return values

    def cov_params(self) -> pd.DataFrame:
        """Covariance of the identified fixed effects."""
        names = [self.design.x_names[j] for j in self.problem.kept]
        return pd.DataFrame(self._fixed[1], index=names, columns=names)

    def row_precision(self, cells: Cells | None = None) -> Array:
        """Precision of the rows of each cell, ``(n_cells,)``: their residual variance is ``scale`` over it.

        Other cells than those of the fit need the dispersion column.
        """
        cells = self.cells if cells is None else cells
        if self.dispersion is None:
            return cells.weight
        level = pd.Index(self.residual_variances.index).get_indexer(pd.Index(cells.frame[self.dispersion]))
        return cells.weight * (self.scale / self.residual_variances.to_numpy())[level]

    @cached_property
    def held(self) -> Held:
        """The random effects with their covariances held at the estimates."""
        factors = th.unpack(self.theta, self.problem.shapes)
        return Held(tuple(self.design.engine_terms), tuple(factors), self.cells.n * self.row_precision())

    @cached_property
    def _dropped(self) -> Index:
        """Columns that depend on earlier ones."""
        return np.setdiff1d(np.arange(len(self.design.x_names)), self.problem.kept)

    @cached_property
    def _aliasing(self) -> Array:
        """``(rank, aliased)`` coefficients that express the dropped columns by the kept ones."""
        X, dropped = self.design.distinct, self._dropped
        root = np.sqrt(np.bincount(self.design.row, self.cells.n * self.cells.weight, len(X)))[:, None]
        return np.asarray(np.linalg.lstsq(X[:, self.problem.kept] * root, X[:, dropped] * root, rcond=None)[0])

    def _functions(self, L: Array) -> Array:
        """Coefficients of linear functions, one row each, over all columns of the design."""
        width = len(self.design.x_names)
        try:
            rows = np.atleast_2d(real(L))
        except (TypeError, ValueError):
            rows = np.empty((0, 0))
        if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
            raise ArgumentError(
                f"L must be finite numbers, one row per function and one column for each of the {width} coefficients "
                f"of the model (fit.params), got {L!r}."
            )
        return rows

    def _checked(self, L: Array | Functions) -> Functions:
        """The same, of each the numbers that are not zero."""
        return L if isinstance(L, Functions) else Functions.of(self._functions(L))

    def estimable(self, L: Array | Functions) -> Mask:
        """Which linear functions ``L b`` of the fixed effects the data identify, ``(rows,)`` bool.

        ``L`` has one row per function over all columns of the design.
        """
        functions, dropped = self._checked(L), self._dropped
        if not len(dropped):
            return np.ones(len(functions), dtype=bool)
        gap = np.zeros((functions.width, len(dropped)))  # what the kept columns imply, less what the dropped ones have
        gap[self.problem.kept], gap[dropped] = self._aliasing, -np.eye(len(dropped))
        size = np.maximum(1.0, np.abs(functions.values).max(axis=0))
        return np.asarray(np.abs(functions.times(gap)).max(axis=1) < 1e-8 * size)

    @cached_property
    def _known_errors(self) -> tuple[Array, Array] | None:
        """Scale of the columns and row space of the design with the held random effects as fixed; None without any."""
        wide = beside_held(self.design)
        if wide is None:
            return None
        scale = np.maximum(np.linalg.norm(wide, axis=0), np.finfo(float).tiny)
        _, d, rows = np.linalg.svd(wide / scale, full_matrices=False)
        return scale, rows[d > _RANK * d[0]]

    def has_error(self, L: Array | Functions) -> Mask:
        """Of which linear functions ``L b`` the data know the error, ``(rows,)`` bool.

        False where the estimate would change with random effects that the fixed ones hold: their variance is
        arbitrary, and with it the error.
        """
        if self._known_errors is None:
            return np.ones(len(L), dtype=bool)
        L = L.L if isinstance(L, Functions) else L
        scale, space = self._known_errors
        wide = np.zeros((len(L), len(scale)))
        wide[:, : L.shape[1]] = L / scale[: L.shape[1]]
        rest = np.linalg.norm(wide - wide @ space.T @ space, axis=1)
        return np.asarray(rest <= _RANK * np.linalg.norm(wide, axis=1))

    def estimate(self, L: Array) -> Array:
        """``L b``, ``(rows,)``; NaN where not estimable."""
        L = self._functions(L)
        values = L[:, self.problem.kept] @ self.kept_params
        return np.where(self.estimable(L), values, np.nan)

    def cov(self, L: Array, method: DdfMethod = "satterthwaite") -> Array:
        """Covariance of ``L b``, ``(rows, rows)``; NaN rows and columns where not estimable.

        ``method="kenward-roger"`` gives the covariance adjusted for the estimation of the variances.
        """
        check_choice(method, "method", DDF_METHODS)
        L = self._functions(L)
        kept = L[:, self.problem.kept]
        out = kept @ (self.kenward_roger.adjusted if method == "kenward-roger" else self._fixed[1]) @ kept.T
        bad = ~self.estimable(L)
        out[bad, :] = np.nan
        out[:, bad] = np.nan
        return out

    @cached_property
    def curvature(self) -> Curvature:
        """Second-order behaviour of the criterion at the optimum."""
        try:
            with one_blas_thread():
                return curvature(self.problem, self.optim)
        except np.linalg.LinAlgError as error:
            raise EstimationError(
                f"the errors of '{self.formula}' cannot be computed: {error}. Where runs hardly scatter there is "
                "nothing to judge differences by: look for copied runs or for scores that are constant within groups, "
                "and leave out dispersion=."
            ) from None

    @cached_property
    def kenward_roger(self) -> KenwardRoger:
        """Kenward and Roger's adjusted covariance and degrees of freedom; of the REML refit of an ML fit."""
        if self.dispersion is not None:
            raise ArgumentError(
                f"{setting('ddf', 'kenward-roger')} is for one residual variance, and this fit has one per level of "
                f"'{self.dispersion}'. Use {setting('ddf', 'satterthwaite')}."
            )
        if self.residual_variance is not None:
            raise ArgumentError(
                f"{setting('ddf', 'kenward-roger')} is for a residual variance that is estimated, and this fit holds "
                f"it at {self.residual_variance:g}. Use {setting('ddf', 'satterthwaite')}."
            )
        fit = self if self.reml else self.refit(reml=True)
        with one_blas_thread():
            return kenward_roger(fit.problem, fit.optim)

    def for_ddf(self, ddf: str) -> tuple[LmmFit, str, tuple[str, ...]]:
        """The fit that a rule for the degrees of freedom is defined for, the rule, and a note if it is another one."""
        if ddf != "kenward-roger" or self.reml:
            return self, ddf, ()
        note = "Kenward-Roger is defined for REML, so the fit by maximum likelihood was refitted by REML."
        return self.refit(reml=True), ddf, (note,)

    def params_and_cov(self, ddf: str, robust: ClusterRobust | None = None) -> tuple[Array, Array]:
        """Fixed effects and covariance over all columns of the design, 0 where a column was dropped."""
        p, kept = len(self.design.x_names), self.problem.kept
        b, V = np.zeros(p), np.zeros((p, p))
        b[kept] = self.kept_params
        if robust is not None:
            V[np.ix_(kept, kept)] = robust.cov_params()
        else:
            V[np.ix_(kept, kept)] = self.kenward_roger.adjusted if ddf == "kenward-roger" else self.kept_cov
        return b, V

    def df(self, L: Array | Functions, method: DdfMethod = "satterthwaite") -> Array:
        """Degrees of freedom of ``L b``.

        Parameters
        ----------
        L : (rows, p) float
            Over all columns of the design.
        method : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
            Satterthwaite's approximation, Kenward and Roger's (which goes with ``cov(L, "kenward-roger")``; of the
            REML refit if this fit is by maximum likelihood), rows minus fixed effects (infinite where the residual
            variance is held), or infinity.

        Returns
        -------
        (rows,) float
            NaN where not estimable.
        """
        check_choice(method, "method", DDF_METHODS)
        functions = self._checked(L)
        if method == "asymptotic":
            values = np.full(len(functions), np.inf)
        elif method == "residual":
            known = self.residual_variance is not None
            values = np.full(len(functions), np.inf if known else float(self.nobs - self.rank))
        elif method == "kenward-roger":
            values = self.kenward_roger.df(functions.only(self.problem.kept))
        else:
            values = self.curvature.satterthwaite(functions.only(self.problem.kept))
        return np.where(self.estimable(functions), values, np.nan)

    # -- random effects -----------------------------------------------------------------------------------------

    @cached_property
    def covariances(self) -> tuple[Array, ...]:
        """``(k, k)`` covariance of each random-effects term, in the order of the formula."""
        factors = th.unpack(self.theta, self.problem.shapes)
        return tuple(self.scale * (L @ L.T) for L in factors)

    @cached_property
    def varcorr(self) -> pd.DataFrame:
        """Variance components.

        Returns
        -------
        pandas.DataFrame
            ``group``, ``name1``, ``name2`` (empty for a variance), ``variance`` (or covariance), ``sd`` (NaN for a
            covariance), ``corr`` (NaN for a variance); the residual last, where the scores have one.
        """
        rows: list[tuple[str, str, str, float, float, float]] = []
        for term, S in zip(self.design.random, self.covariances, strict=True):
            sd = np.sqrt(S.diagonal())
            rows += [(term.group, a, "", S[i, i], sd[i], np.nan) for i, a in enumerate(term.names)]
            for i in range(0 if term.diagonal else len(S)):
                for j in range(i):
                    product = sd[i] * sd[j]
                    corr = S[i, j] / product if product > 0 else np.nan
                    rows.append((term.group, term.names[j], term.names[i], S[i, j], np.nan, corr))
        for level, variance in self.residual_variances.items() if self.distribution == "normal" else ():
            name = "" if self.dispersion is None else str(level)
            rows.append(("Residual", name, "", variance, float(np.sqrt(variance)), np.nan))
        return pd.DataFrame(rows, columns=["group", "name1", "name2", "variance", "sd", "corr"])

    @cached_property
    def modes(self) -> tuple[Array, ...]:
        """Conditional modes of each random-effects term, ``(levels, effects)``, in the order of the formula."""
        left = self.cells.mean - self.cell_predictions(random=False)
        return tuple(u[:, :, 0] for u in self.held.take(left[:, None])[0])

    conditional_modes = predictions.conditional_modes

    def ranef(self) -> dict[str, pd.DataFrame]:
        """The conditional modes of all grouping factors, by their names: `conditional_modes` of each."""
        return {group: self.conditional_modes(group) for group in dict.fromkeys(t.group for t in self.design.random)}

    # -- predictions --------------------------------------------------------------------------------------------

    def predict(self, frame: Any = None, *, random: bool = True) -> Array:
        """Predicted scores, on the scale of the model's response.

        Parameters
        ----------
        frame : dataframe, optional
            New rows with the columns of the model; by default those of the table that was fitted, in its order.
        random : bool
            Add the conditional modes of known groups; unknown groups get the population's prediction.

        Returns
        -------
        (rows,) float

        Raises
        ------
        ArgumentError
            If there is no `frame`, and the table of the fit is lazy or has changed since.

        Examples
        --------
        >>> import lmemtest as lt
        >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
        >>> lt.fit_lmm("y ~ a + (1 | g)", table).predict(random=False).round(1).tolist()
        [2.9, 4.2, 2.9, 4.2, 2.9, 4.2]
        """
        check_flag(random, "random")
        if frame is None:
            return self.cell_predictions(random=random)[predictions.rows_of(self)[0]]
        return predictions.predict(self, frame, random=random)

    def cell_predictions(self, *, random: bool = True) -> Array:
        """Predicted scores of the cells, ``(n_cells,)``, in the order of ``cells.frame``; see `predict`."""
        return predictions.predict(self, random=check_flag(random, "random"))

    prediction_intervals = predictions.prediction_intervals

    @property
    def fittedvalues(self) -> pd.Series:
        """Predicted scores of the rows of the table that was fitted, by their labels; ``fitted(m)`` of lme4."""
        cell, _, labels = predictions.rows_of(self)
        return pd.Series(self.cell_predictions()[cell], index=labels, name="fitted")

    @property
    def resid(self) -> pd.Series:
        """Scores minus predictions, row by row, by the labels of the rows; ``resid(m)`` of lme4."""
        return predictions.residuals(self)

    def residuals(self) -> Array:
        """Scores minus predictions, ``(n_rows,)``, in the order of the rows of the table that was fitted.

        On the scale of the model's response.

        Raises
        ------
        ArgumentError
            If the table of the fit is lazy or has changed since, or its cells were simulated.
        """
        return self.resid.to_numpy()

    def cell_residuals(self) -> Array:
        """Means of the cells minus their predictions, ``(n_cells,)``, in the order of ``cells.frame``."""
        return self.cells.mean - self.cell_predictions()

    def simulate(self, *, rng: int | np.random.Generator | None = None) -> Cells:
        """Draw a new table from the fitted model, as cells; `refit` takes it.

        Parameters
        ----------
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        mean, ss = draw_cells(
            resolve_rng(rng),
            mean=self.design.X[:, self.problem.kept] @ self.kept_params + self.design.offset,
            terms=self.design.engine_terms,
            factors=th.unpack(self.theta, self.problem.shapes),
            sigma2=self.scale,
            n=self.cells.n,
            weight=self.row_precision(),
        )
        return dataclasses.replace(self.cells, mean=mean, ss=ss)

    def refit(
        self, *, reml: bool | None = None, cells: Cells | None = None, theta_start: Array | None = None
    ) -> LmmFit:
        """The same model again: by the other likelihood, on simulated cells, or from another start.

        Parameters
        ----------
        reml : bool, optional
            Likelihood; as in this fit by default.
        cells : Cells, optional
            Other scores, for instance from `simulate`; cells of other combinations get a design of their own.
        theta_start : (n_theta,) float, optional
            Where the search begins (user's scale); this fit's theta by default.

        Returns
        -------
        LmmFit
            A new fit; this one is unchanged.
        """
        start = self.theta if theta_start is None else np.asarray(theta_start, dtype=float)
        if start.shape != (self.problem.n_theta,):
            raise ArgumentError(
                f"theta_start must have {self.problem.n_theta} elements, the covariance parameters of "
                f"'{self.formula}' in the order of `fit.theta`; got the shape {start.shape}."
            )
        from lmemtest.lmm.model.fitting import with_cells

        reml = None if reml is None else check_flag(reml, "reml")
        return with_cells(self, cells, reml=reml, start=start)

    # -- words --------------------------------------------------------------------------------------------------

    def to_frame(self, part: str | None = None, *, ddf: DdfMethod = "satterthwaite") -> pd.DataFrame:
        """Fixed effects: ``term``, ``estimate``, ``se``, ``df``, ``t_ratio``, ``p_value``; or the other `parts`.

        NaN throughout for a coefficient that the data do not identify: of two columns that are copies neither has an
        estimate of its own. ``params`` has the kept one with the other at zero, a choice that predictions do not see.

        Kenward-Roger shows the REML refit of a maximum-likelihood fit, with its adjusted standard errors.
        """
        from lmemtest.lmm.distributions.student import two_sided_p

        check_choice(ddf, "ddf", DDF_METHODS)
        if part is not None and check_choice(part, "part", tuple(self.parts)) == "variances":
            return self.varcorr.copy()
        if ddf == "kenward-roger" and not self.reml:
            return self.refit(reml=True).to_frame(ddf=ddf)
        rows = np.eye(len(self.params))
        df = self.df(rows, ddf)
        se = np.sqrt(self.cov(rows, ddf).diagonal())
        estimate = self.estimate(rows)  # of a kept column that a dropped one is tied to there is none, as for its error
        t = estimate / se
        return pd.DataFrame(
            {
                "term": list(self.design.x_names),
                "estimate": estimate,
                "se": se,
                "df": df,
                "t_ratio": t,
                "p_value": two_sided_p(t, df),
            }
        )

    def conf_int(self, alpha: float = 0.05, ddf: DdfMethod = "satterthwaite") -> pd.DataFrame:
        """Intervals of the fixed effects from their standard errors and t quantiles; `profile` has those by likelihood.

        Parameters
        ----------
        alpha : float in (0, 1)
            Intervals are of level 1 - `alpha`, not simultaneous.
        ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
            Degrees of freedom, as in `to_frame`.

        Returns
        -------
        pandas.DataFrame
            ``ci_low`` and ``ci_high`` by term; NaN where the data do not identify a coefficient.

        Raises
        ------
        ArgumentError
            If an option is unknown.

        Examples
        --------
        >>> import lmemtest as lt
        >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
        >>> lt.fit_lmm("y ~ a + (1 | g)", table).conf_int().loc["a[T.q]"].round(3).tolist()
        [0.803, 1.797]
        """
        from lmemtest.lmm.distributions.student import t_quantile

        check_fraction(alpha, "alpha")
        table = self.to_frame(ddf=ddf).set_index("term")
        half = t_quantile(alpha / 2.0, table["df"].to_numpy(dtype=float)) * table["se"]
        return pd.DataFrame({"ci_low": table["estimate"] - half, "ci_high": table["estimate"] + half})

    def certificate(self) -> pd.DataFrame:
        """What is known about the optimum.

        Returns
        -------
        pandas.DataFrame
            ``check``, ``value``, ``meaning``: what another Newton step promises, the slope at the boundary, the
            smallest curvature over the largest, the starts that agree, and the evaluations spent.
        """
        o = self.optim
        rows = [
            (
                "newton_decrement",
                o.decrement,
                "expected gain of another Newton step, in units of -2 log-likelihood; 0 is best",
            ),
            ("boundary_slope", o.boundary_slope, "negative: a variance wants to leave zero; NaN: none is zero"),
            ("smallest_curvature", self.curvature.smallest, "over the largest; near 0: a direction is not identified"),
            ("starts", float(o.restarts + 1), "starting points of the search"),
            ("starts_agreeing", float(o.agreeing), "starts that ended at this optimum to 1e-5"),
            ("evaluations", float(o.evaluations), "evaluations of the likelihood"),
        ]
        return pd.DataFrame(rows, columns=["check", "value", "meaning"])

    @property
    def title(self) -> str:
        """What it is."""
        return "Linear mixed model"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model, the likelihood, and where the search stopped."""
        method = "restricted maximum likelihood" if self.reml else "maximum likelihood"
        return (
            f"{self.label}, fitted by {method}: log-likelihood {written(self.llf, '.4f')}, "
            f"AIC {written(self.aic, '.2f')}, {self.nobs:,} rows in {len(self.cells.n):,} cells, {self.n_params} "
            f"parameters; {self.optim.message}.",
        )

    def sentences(self) -> tuple[str, ...]:
        """How it was fitted, and what was found doing so."""
        return (*self.facts, *self.notes)

    def to_tables(self) -> tuple[ResultTable, ...]:
        """Fixed effects and variance components."""
        return (
            ResultTable(title="Fixed effects", frame=self.to_frame(), notes=self.sentences()),
            ResultTable(title="Variance components", frame=self.varcorr),
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        width: str | float | None = None,
        labels: Mapping[Any, str] | None = None,
        **options: Any,
    ) -> Axes:
        """Draw whether its assumptions hold: the figure of `diagnose`, which takes the other options."""
        check_linear(self, "plot()", "Read fit.diagnose(), and draw the means: fit.emmeans(...).plot().")
        return self.diagnose(**options).plot(ax, width=width, labels=labels)

    def summary(self) -> str:
        """The fit as text; its sentences are below the first table."""
        return Text(self.to_text(), self.to_html())

    def _repr_html_(self) -> str:
        return self.to_html()
