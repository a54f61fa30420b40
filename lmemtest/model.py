"""`fit_lmm`: a formula and a table of runs -> a fitted linear mixed model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lmemtest._table import ResultTable
from lmemtest._threads import one_blas_thread
from lmemtest._validate import as_frame, check_choice, check_columns, check_positive_int, resolve_rng
from lmemtest.data.cells import Cells, compress
from lmemtest.engine import theta as th
from lmemtest.engine.blocks import Term
from lmemtest.engine.ddf import Curvature, curvature
from lmemtest.engine.kenward_roger import KenwardRoger, kenward_roger
from lmemtest.engine.optimize import Optimum, optimise
from lmemtest.engine.problem import Problem, build_problem
from lmemtest.engine.simulate import draw_cells
from lmemtest.engine.sweep import conditional_modes
from lmemtest.errors import ArgumentError, DesignError, EstimationError
from lmemtest.formula import build_design, parse_formula
from lmemtest.formula.design import Design

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.inference.joint import FTestsResult

    Array = NDArray[np.float64]

DdfMethod = Literal["satterthwaite", "kenward-roger", "residual", "asymptotic"]
DDF_METHODS = ("satterthwaite", "kenward-roger", "residual", "asymptotic")

# A standard deviation below this share of the residual's, or a correlation closer to one, is singular (as in lme4).
_SINGULAR = 1e-4


# Residual variance over the variance of the score, below which it is rounding error.
_NO_RESIDUAL = 1e-14


@dataclass(frozen=True, kw_only=True, eq=False)
class LmmFit:
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
    problem: Problem
    optim: Optimum
    notes: tuple[str, ...]

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
        """Fixed effects, covariance parameters and residual variances."""
        return self.rank + self.problem.n_theta + self.problem.n_strata

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

    @property
    def scale(self) -> float:
        """Residual variance of a row of weight one; of the first group where ``dispersion`` is given."""
        return self.optim.criterion.sigma2 * self.problem.y_scale**2

    @cached_property
    def residual_variances(self) -> pd.Series:
        """Residual variance by level of the dispersion column (one entry, "all", without it)."""
        values = self.problem.residual_variances(self.optim.theta, self.optim.criterion)
        levels = ["all"] if self.dispersion is None else list(_strata(self.cells, self.dispersion)[1])
        return pd.Series(values, index=levels, name="variance")

    @property
    def converged(self) -> bool:
        """Whether the certificate of the search is complete."""
        return self.optim.converged

    @cached_property
    def theta(self) -> Array:
        """``(n_theta,)`` lower triangles of the relative Cholesky factors, term by term, column by column."""
        return self.problem.to_user(self.problem.split(self.optim.theta)[0])

    @cached_property
    def is_singular(self) -> bool:
        """Whether a variance is estimated as zero or a correlation as one."""
        return bool(self._singular_terms)

    @cached_property
    def _singular_terms(self) -> tuple[str, ...]:
        labels = []
        for term, L in zip(self.design.random, self.problem.unpack(self.optim.theta), strict=True):
            smallest = np.linalg.svd(L, compute_uv=False)[-1]
            if smallest < _SINGULAR:
                labels.append(term.label)
        return tuple(labels)

    # -- fixed effects ------------------------------------------------------------------------------------------

    @cached_property
    def _fixed(self) -> tuple[Array, Array]:
        """Kept coefficients and their covariance."""
        b, U = self.problem.fixed_effects(self.optim.criterion)
        return b, self.scale * (U @ U.T)

    @cached_property
    def params(self) -> pd.Series:
        """Fixed effects by name; NaN for columns that depend on others."""
        values = np.full(len(self.design.x_names), np.nan)
        values[self.problem.kept] = self._fixed[0]
        return pd.Series(values, index=list(self.design.x_names), name="estimate")

    @cached_property
    def bse(self) -> pd.Series:
        """Standard errors of the fixed effects."""
        values = np.full(len(self.design.x_names), np.nan)
        values[self.problem.kept] = np.sqrt(self._fixed[1].diagonal())
        return pd.Series(values, index=list(self.design.x_names), name="se")

    def cov_params(self) -> pd.DataFrame:
        """Covariance of the identified fixed effects."""
        names = [self.design.x_names[j] for j in self.problem.kept]
        return pd.DataFrame(self._fixed[1], index=names, columns=names)

    @cached_property
    def _row_weights(self) -> Array:
        """Precision of each cell's rows relative to ``scale``."""
        if self.dispersion is None:
            return self.cells.weight
        codes, _ = _strata(self.cells, self.dispersion)
        return self.cells.weight * (self.scale / self.residual_variances.to_numpy())[codes]

    @cached_property
    def _aliasing(self) -> Array:
        """``(rank, aliased)`` coefficients that express the dropped columns by the kept ones."""
        X = self.design.X
        dropped = np.setdiff1d(np.arange(X.shape[1]), self.problem.kept)
        root = np.sqrt(self.cells.n * self.cells.weight)[:, None]
        return np.linalg.lstsq(X[:, self.problem.kept] * root, X[:, dropped] * root, rcond=None)[0]

    def estimable(self, L: Array) -> NDArray[np.bool_]:
        """Which linear functions ``L b`` of the fixed effects the data identify.

        Parameters
        ----------
        L : (rows, p) float
            Over all columns of the design.

        Returns
        -------
        (rows,) bool
        """
        L = np.atleast_2d(L)
        dropped = np.setdiff1d(np.arange(L.shape[1]), self.problem.kept)
        if not len(dropped):
            return np.ones(len(L), dtype=bool)
        implied = L[:, self.problem.kept] @ self._aliasing
        size = np.maximum(1.0, np.abs(L).max(axis=1))
        return np.asarray(np.abs(implied - L[:, dropped]).max(axis=1) < 1e-8 * size)

    def estimate(self, L: Array) -> Array:
        """``L b``, ``(rows,)``; NaN where not estimable."""
        L = np.atleast_2d(L)
        values = L[:, self.problem.kept] @ self._fixed[0]
        return np.where(self.estimable(L), values, np.nan)

    def cov(self, L: Array, method: DdfMethod = "satterthwaite") -> Array:
        """Covariance of ``L b``, ``(rows, rows)``; NaN rows and columns where not estimable.

        ``method="kenward-roger"`` gives the covariance adjusted for the estimation of the variances.
        """
        check_choice(method, "method", DDF_METHODS)
        L = np.atleast_2d(L)
        kept = L[:, self.problem.kept]
        out = kept @ (self.kenward_roger.adjusted if method == "kenward-roger" else self._fixed[1]) @ kept.T
        bad = ~self.estimable(L)
        out[bad, :] = np.nan
        out[:, bad] = np.nan
        return out

    @cached_property
    def curvature(self) -> Curvature:
        """Second-order behaviour of the criterion at the optimum (two evaluations per parameter)."""
        with one_blas_thread():
            return curvature(self.problem, self.optim)

    @cached_property
    def kenward_roger(self) -> KenwardRoger:
        """Kenward and Roger's adjusted covariance and degrees of freedom; of the REML refit of an ML fit."""
        if self.dispersion is not None:
            raise ArgumentError(
                "ddf='kenward-roger' is for one residual variance, and this fit has one per level of "
                f"'{self.dispersion}'. Use ddf='satterthwaite'."
            )
        fit = self if self.reml else self.refit(reml=True)
        with one_blas_thread():
            return kenward_roger(fit.problem, fit.optim)

    def df(self, L: Array, method: DdfMethod = "satterthwaite") -> Array:
        """Degrees of freedom of ``L b``.

        Parameters
        ----------
        L : (rows, p) float
            Over all columns of the design.
        method : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
            Satterthwaite's approximation, Kenward and Roger's (which goes with ``cov(L, "kenward-roger")``; of the
            REML refit if this fit is by maximum likelihood), rows minus fixed effects, or infinity.

        Returns
        -------
        (rows,) float
            NaN where not estimable.
        """
        check_choice(method, "method", DDF_METHODS)
        L = np.atleast_2d(L)
        if method == "asymptotic":
            values = np.full(len(L), np.inf)
        elif method == "residual":
            values = np.full(len(L), float(self.nobs - self.rank))
        elif method == "kenward-roger":
            values = self.kenward_roger.df(L[:, self.problem.kept])
        else:
            values = self.curvature.satterthwaite(L[:, self.problem.kept])
        return np.where(self.estimable(L), values, np.nan)

    def anova(self, ddf: DdfMethod = "satterthwaite") -> FTestsResult:
        """Type III F-tests of the fixed terms; see `lmemtest.inference.joint.anova`.

        Parameters
        ----------
        ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
            Denominator degrees of freedom.
        """
        from lmemtest.inference.joint import anova

        return anova(self, ddf=ddf)

    # -- random effects -----------------------------------------------------------------------------------------

    @cached_property
    def covariances(self) -> tuple[Array, ...]:
        """``(k, k)`` covariance of each random-effects term, in the order of the formula."""
        factors = th.unpack(self.theta, self.problem.sizes)
        return tuple(self.scale * (L @ L.T) for L in factors)

    @cached_property
    def varcorr(self) -> pd.DataFrame:
        """Variance components.

        Returns
        -------
        pandas.DataFrame
            ``group``, ``name1``, ``name2`` (empty for a variance), ``variance`` (or covariance), ``sd`` (NaN for a
            covariance), ``corr`` (NaN for a variance); the residual last.
        """
        rows: list[tuple[str, str, str, float, float, float]] = []
        for term, S in zip(self.design.random, self.covariances, strict=True):
            sd = np.sqrt(S.diagonal())
            rows += [(term.group, a, "", S[i, i], sd[i], np.nan) for i, a in enumerate(term.names)]
            for i in range(len(S)):
                for j in range(i):
                    product = sd[i] * sd[j]
                    corr = S[i, j] / product if product > 0 else np.nan
                    rows.append((term.group, term.names[j], term.names[i], S[i, j], np.nan, corr))
        for level, variance in self.residual_variances.items():
            name = "" if self.dispersion is None else str(level)
            rows.append(("Residual", name, "", variance, float(np.sqrt(variance)), np.nan))
        return pd.DataFrame(rows, columns=["group", "name1", "name2", "variance", "sd", "corr"])

    @cached_property
    def _modes(self) -> tuple[Array, ...]:
        """Conditional modes per term on the user's scale, ``(levels, k)``."""
        problem, at = self.problem, self.optim.criterion
        by_block = conditional_modes(problem.system, at.sweep, np.append(-at.b, 1.0))
        out: list[Array] = [np.empty(0)] * len(problem.sizes)
        for block, u in zip(problem.system.blocks, by_block, strict=True):
            start = 0
            for i in block.members:
                stop = start + problem.sizes[i]
                out[i] = np.linalg.solve(problem.R[i], u[:, start:stop].T).T * problem.y_scale
                start = stop
        return tuple(out)

    def random_effects(self, group: str) -> pd.DataFrame:
        """Conditional modes (BLUPs) of one grouping factor.

        Parameters
        ----------
        group : str
            For instance ``"benchmark"`` or ``"benchmark:seed"``.

        Returns
        -------
        pandas.DataFrame
            One row per level, one column per effect.

        Raises
        ------
        ArgumentError
            If the model has no such group.
        """
        parts = [
            pd.DataFrame(u, index=list(t.levels), columns=list(t.names))
            for t, u in zip(self.design.random, self._modes, strict=True)
            if t.group == group
        ]
        if not parts:
            known = ", ".join(dict.fromkeys(t.group for t in self.design.random)) or "none"
            raise ArgumentError(f"group='{group}' is not a group of this model. Groups: {known}.")
        return pd.concat(parts, axis=1)

    # -- predictions --------------------------------------------------------------------------------------------

    def predict(self, frame: Any = None, *, random: bool = True) -> Array:
        """Predicted scores, on the scale of the model's response.

        Parameters
        ----------
        frame : dataframe, optional
            New rows with the columns of the model; the cells of the fit by default.
        random : bool
            Add the conditional modes of known groups; unknown groups get the population's prediction.

        Returns
        -------
        (rows,) float
        """
        if frame is None:
            rows, terms = self.design.X, [(t.basis, t.codes) for t in self.design.random]
        else:
            frame = _to_pandas(frame)
            rows = self.design.rows(frame)
            n_terms = len(self.design.random) if random else 0
            terms = [self.design.random_rows(i, frame) for i in range(n_terms)]
        values = rows[:, self.problem.kept] @ self._fixed[0]
        if random:
            for (basis, codes), u in zip(terms, self._modes, strict=True):
                known = codes >= 0
                values[known] += np.einsum("nk,nk->n", basis[known], u[codes[known]])
        return values

    def residuals(self) -> Array:
        """Cell means minus predictions, ``(n_cells,)``, in the order of ``cells.frame``."""
        return self.cells.mean - self.predict()

    def simulate(self, *, rng: int | np.random.Generator | None = None) -> Cells:
        """Draw a new table from the fitted model, as cells; `refit` takes it.

        Parameters
        ----------
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        mean, ss = draw_cells(
            resolve_rng(rng),
            mean=self.design.X[:, self.problem.kept] @ self._fixed[0],
            terms=_terms(self.design),
            factors=th.unpack(self.theta, self.problem.sizes),
            sigma2=self.scale,
            n=self.cells.n,
            weight=self._row_weights,
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
        same = cells is None or cells.frame is self.cells.frame
        return _fit(
            self.formula,
            self.design if cells is None or same else build_design(self.design.parsed, cells.frame, cells.n),
            self.cells if cells is None else cells,
            data=self.data,
            weights=self.weights,
            dispersion=self.dispersion,
            reml=self.reml if reml is None else reml,
            start=start,
            restarts=0 if cells is not None else None,
        )

    # -- words --------------------------------------------------------------------------------------------------

    def to_frame(self, ddf: DdfMethod = "satterthwaite") -> pd.DataFrame:
        """Fixed effects: ``term``, ``estimate``, ``se``, ``df``, ``t_ratio``, ``p_value``.

        Kenward-Roger shows the REML refit of a maximum-likelihood fit, with its adjusted standard errors.
        """
        from scipy.special import stdtr

        if ddf == "kenward-roger" and not self.reml:
            return self.refit(reml=True).to_frame(ddf)
        rows = np.eye(len(self.params))
        df = self.df(rows, ddf)
        se = np.sqrt(self.cov(rows, ddf).diagonal())
        t = self.params.to_numpy() / se
        return pd.DataFrame(
            {
                "term": list(self.design.x_names),
                "estimate": self.params.to_numpy(),
                "se": se,
                "df": df,
                "t_ratio": t,
                "p_value": 2.0 * stdtr(df, -np.abs(t)),
            }
        )

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
            ("newton_decrement", o.decrement, "what another step promises, in units of -2 log-likelihood; 0 is best"),
            ("boundary_slope", o.boundary_slope, "negative: a variance wants to leave zero; NaN: none is zero"),
            ("smallest_curvature", self.curvature.smallest, "over the largest; near 0: a direction is not identified"),
            ("starts", float(o.restarts + 1), "starting points of the search"),
            ("starts_agreeing", float(o.agreeing), "starts that ended at this optimum to 1e-5"),
            ("evaluations", float(o.evaluations), "evaluations of the likelihood"),
        ]
        return pd.DataFrame(rows, columns=["check", "value", "meaning"])

    def tables(self) -> tuple[ResultTable, ...]:
        """Fixed effects and variance components as tables."""
        method = "restricted maximum likelihood" if self.reml else "maximum likelihood"
        head = (
            f"{self.formula}, fitted by {method}: log-likelihood {self.llf:.4f}, AIC {self.aic:.2f}, "
            f"{self.nobs:,} rows in {len(self.cells.n):,} cells, {self.n_params} parameters; {self.optim.message}.",
        )
        return (
            ResultTable(title="Fixed effects", frame=self.to_frame(), notes=head + self.notes),
            ResultTable(title="Variance components", frame=self.varcorr),
        )

    def summary(self) -> str:
        """The fit as text."""
        return "\n\n".join(t.to_text() for t in self.tables())

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return "\n".join(t.to_html() for t in self.tables())


def fit_lmm(
    formula: str,
    data: Any,
    *,
    reml: bool = True,
    weights: str | None = None,
    dispersion: str | None = None,
    restarts: int | None = None,
) -> LmmFit:
    """Fit a linear mixed model.

    Parameters
    ----------
    formula : str
        In lme4's syntax, for instance ``"value ~ algorithm + (1 | benchmark) + (1 | benchmark:seed)"``. Column names
        with spaces or signs go between backticks.
    data : Runs or dataframe
        One row per run and budget; any dataframe that Narwhals reads.
    reml : bool
        Restricted maximum likelihood (default) or maximum likelihood.
    weights : str, optional
        Column of positive precision weights: a row's residual variance is ``scale / weight``.
    dispersion : str, optional
        Column whose levels have residual variances of their own, for instance the benchmark: scores of benchmarks
        on different scales then count by their precision. The ratios are estimated by the same likelihood.
    restarts : int, optional
        Further starting points of the search. By default two where they cost milliseconds.

    Returns
    -------
    LmmFit

    Raises
    ------
    FormulaError, UnknownColumnError
        If the formula cannot be read, with the place.
    DataError
        If a used column holds missing or infinite values.
    DesignError
        If the data cannot identify the model.

    Warns
    -----
    ConvergenceWarning
        If the certificate of the search is not complete.

    Notes
    -----
    Rows that agree in every used column are one cell (count, mean, sum of squares), which is all that the Gaussian
    likelihood sees; the cost of the fit depends on the cells. A singular fit is a finding, not an error: see
    ``is_singular`` and ``notes``.

    References
    ----------
    Bates, Maechler, Bolker & Walker (2015). Fitting linear mixed-effects models using lme4. J. Stat. Softw. 67(1).
    doi:10.18637/jss.v067.i01

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> fit = lt.fit_lmm("y ~ a + (1 | g)", table)
    >>> fit.params.round(4).to_dict()
    {'Intercept': 2.9, 'a[T.q]': 1.3}
    """
    if restarts is not None:
        check_positive_int(restarts, "restarts", minimum=0)
    parsed = parse_formula(formula)
    names = as_frame(data).collect_schema().names()
    parsed.check_columns(names)
    by = list(parsed.columns)
    if dispersion is not None:
        check_columns(dispersion, names, argument="dispersion")
        by = list(dict.fromkeys([*by, dispersion]))
    cells = compress(
        data,
        by=by,
        score=parsed.response,
        transform=parsed.response_transform,
        weights=weights,
    )
    design = build_design(parsed, cells.frame, cells.n)
    return _fit(
        formula,
        design,
        cells,
        data=data,
        weights=weights,
        dispersion=dispersion,
        reml=bool(reml),
        start=None,
        restarts=restarts,
    )


def _strata(cells: Cells, dispersion: str) -> tuple[NDArray[np.intp], pd.Index]:
    """Level of the dispersion column per cell, and the levels in their order."""
    column = cells.frame[dispersion]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.remove_unused_categories()
        return column.cat.codes.to_numpy(dtype=np.intp), column.cat.categories
    codes, levels = pd.factorize(column, sort=True)
    return codes.astype(np.intp), pd.Index(levels)


def _terms(design: Design) -> list[Term]:
    return [Term(basis=t.basis, codes=t.codes, n_levels=len(t.levels)) for t in design.random]


def _fit(
    formula: str,
    design: Design,
    cells: Cells,
    *,
    data: Any,
    weights: str | None,
    dispersion: str | None,
    reml: bool,
    start: Array | None,
    restarts: int | None,
) -> LmmFit:
    _check_identified(design, cells)
    try:
        with one_blas_thread():
            problem = build_problem(
                _terms(design),
                design.X,
                cells.mean,
                n=cells.n,
                weight=cells.weight,
                ss=cells.ss,
                reml=reml,
                stratum=None if dispersion is None else _strata(cells, dispersion)[0],
            )
            white = None if start is None else problem.point(problem.to_white(start))
            optim = optimise(problem, start=white, restarts=restarts)
    except np.linalg.LinAlgError as error:
        raise EstimationError(
            f"'{formula}' could not be fitted: {error}. Look for columns on wildly different scales, "
            "or for random effects that copy each other."
        ) from None
    if optim.criterion.sigma2 < _NO_RESIDUAL:
        raise DesignError(
            "the model explains the score exactly: no residual variance is left, so there is nothing to judge "
            "differences by. Rows that share their groups have identical scores; leave out the finest random effect, "
            "or analyse one row per group."
        )
    fit = LmmFit(
        formula=formula,
        reml=reml,
        design=design,
        cells=cells,
        data=data,
        weights=weights,
        dispersion=dispersion,
        problem=problem,
        optim=optim,
        notes=(),
    )
    return dataclasses.replace(fit, notes=_notes(fit))


def _check_identified(design: Design, cells: Cells) -> None:
    n = int(cells.n.sum())
    for term in design.random:
        levels, k = len(term.levels), len(term.names)
        if levels < 2:
            raise DesignError(
                f"the random effect {term.label} has one level, so its variance cannot be estimated. "
                f"Leave it out, or bring data from several levels of '{term.group}'."
            )
        if levels * k >= n:
            raise DesignError(
                f"the random effect {term.label} has {levels:,} levels x {k} effects = {levels * k:,} columns for "
                f"{n:,} rows, so it cannot be told apart from the residual. Leave it out, simplify it, or bring "
                "repeated runs."
            )


def _notes(fit: LmmFit) -> tuple[str, ...]:
    notes = []
    dropped = np.setdiff1d(np.arange(len(fit.design.x_names)), fit.problem.kept)
    if len(dropped):
        names = ", ".join(fit.design.x_names[j] for j in dropped)
        notes.append(
            f"The fixed part is rank-deficient: {names} depend on earlier columns and were dropped. Means that need "
            "them are not estimable."
        )
    for label in fit._singular_terms:
        notes.append(
            f"Singular fit: {label} has a variance of zero or a correlation of one, so the data hold less variation "
            "of this kind than the model allows for. The estimates stand; a simpler term gives the same fit."
        )
    if not fit.optim.converged:
        import warnings

        from lmemtest.errors import ConvergenceWarning

        text = f"The search {fit.optim.message}; try restarts=5, or a simpler random part."
        warnings.warn(text, ConvergenceWarning, stacklevel=4)
        notes.append(text)
    return tuple(notes)


def _to_pandas(data: Any) -> pd.DataFrame:
    frame = as_frame(data, argument="frame").lazy().collect()
    return frame.to_pandas()
