"""`model`: fit a formula, and read the result as that of pymer4."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.compat.significance_analysis.post_hoc import (
    coefficient,
    column,
    marginal_comparisons,
    numbers,
    with_stars,
)
from lmemtest.compat.significance_analysis.tables import to_table
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import check_columns
from lmemtest.core.words import small_p
from lmemtest.errors import ArgumentError, DataWarning, NestingError
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.formula import parse_formula, refuse_unknown
from lmemtest.lmm.hypotheses import glrt as likelihood_ratio
from lmemtest.lmm.hypotheses.glrt import check_nesting
from lmemtest.lmm.model import LmmFit, fit_lmm

_FACTOR_CALL = re.compile(r"\b(?:as\.)?factor\(")  # R's; the same thing is C() here


def model(
    formula: str,
    data: pd.DataFrame,
    system_id: str = "algorithm",
    factor: str | list[str] | None = None,
    dummy: bool = True,
    no_warnings: bool = True,
) -> Model:
    """Fit a linear or linear mixed model by maximum likelihood.

    Parameters
    ----------
    formula : str
        In lme4's syntax, such as ``"value ~ algorithm + (1|benchmark)"``.
    data : dataframe
        One row per run and budget; the tuple of `dataframe_validator` is taken too. It is not changed.
    system_id : str
        Column that is compared; a factor with its levels in the order of their first rows.
    factor : str or list of str, optional
        Further factors for `Model.post_hoc`.
    dummy : bool
        For a formula without random effects: True names and codes the result like a mixed model's, False like that of
        pymer4's ``Lm``. The fit is the same, ordinary least squares.
    no_warnings : bool
        Keep what is noteworthy about the fit in `Model.warnings` only, instead of printing it as well.

    Returns
    -------
    Model

    Raises
    ------
    FormulaError, UnknownColumnError
        If the formula cannot be read, or a name is not a column.
    DesignError, DataError
        If the data cannot identify the model, or hold infinite scores.

    Warns
    -----
    DataWarning
        If rows with missing values were left out.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, algorithm=["HB", "RS", "TPE"]).to_frame()
    >>> mod = model("loss ~ algorithm + (1|benchmark) + prior", data)
    >>> estimates, contrasts = mod.post_hoc("algorithm")
    P-values adjusted by tukey method for a family of 3 estimates
    >>> contrasts[["Contrast", "Estimate", "P-val", "Sig"]].round(4)
       Contrast  Estimate   P-val  Sig
    0   HB - RS   -0.0055  0.0000  ***
    1  HB - TPE   -0.0048  0.0000  ***
    2  RS - TPE    0.0008  0.2946
    """
    frame = to_table(data)
    extra = [factor] if isinstance(factor, str) else list(factor or ())
    names = list(dict.fromkeys([system_id, *extra]))
    check_columns([system_id], frame.columns, argument="system_id")
    check_columns(extra, frame.columns, argument="factor")
    text = _FACTOR_CALL.sub("C(", formula)
    parsed = parse_formula(text)
    refuse_unknown(parsed, frame.columns)
    used = [parsed.response, *parsed.columns]
    frame, notes = _complete(frame, list(dict.fromkeys([*used, *names])))
    like_lmer = bool(parsed.bars) or dummy
    levels = {name: list(frame[name].unique()) for name in names} if like_lmer else {}
    # all columns stay: a test against another model may need those of that one
    # the values, not the column: one that is a categorical already may have categories without rows
    codes = {name: pd.Categorical(frame[name].astype(object), categories=v) for name, v in levels.items()}
    coded = frame.assign(**codes)
    fit = fit_lmm(text, coded, reml=False)
    result = Model(formula=formula, given=frame, coded=coded, fit=fit, factors=levels, like_lmer=like_lmer, notes=notes)
    if not no_warnings:
        for note in result.warnings:
            print(f"{note}\n")
    return result


def _complete(frame: pd.DataFrame, used: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Rows without a missing value, and a note if there are others."""
    missing = frame[used].isna().any(axis=1).to_numpy()
    if not missing.any():
        return frame, []
    note = (
        f"{missing.sum():,} of {len(frame):,} rows have missing values in the columns of the model and were left out. "
        "A run that failed is a worst score, not a missing one."
    )
    warnings.warn(note, DataWarning, stacklevel=3)
    return frame[~missing].reset_index(drop=True), [note]


class Model:
    """A fitted model with the attributes of pymer4's ``Lmer``; made by `model`.

    Attributes
    ----------
    formula : str
        Without spaces.
    factors : dict of str to list
        Factors and their levels, the reference level first.
    likelihood_fit, model_obj : LmmFit
        The maximum-likelihood fit, for all else that this package offers.
    logLike, AIC, BIC : float
        Log-likelihood, and Akaike's and Schwarz's criteria: all parameters counted, with the number of rows.
    warnings : list of str
        What is noteworthy about the fit.
    family, sig_type : str
        ``"gaussian"`` and ``"parametric"``.
    fitted : bool
        True.
    marginal_estimates, marginal_contrasts : pandas.DataFrame or None
        Of the last `post_hoc`.
    """

    family = "gaussian"
    sig_type = "parametric"
    fitted = True

    def __init__(
        self,
        *,
        formula: str,
        given: pd.DataFrame,
        coded: pd.DataFrame,
        fit: LmmFit,
        factors: dict[str, list[Any]],
        like_lmer: bool,
        notes: list[str],
    ) -> None:
        self.formula = formula.replace(" ", "")
        self.factors = factors
        self.likelihood_fit = self.model_obj = fit
        self.logLike, self.AIC, self.BIC = fit.llf, fit.aic, fit.bic
        self.warnings = [*notes, *fit.notes]
        self.marginal_estimates: pd.DataFrame | None = None
        self.marginal_contrasts: pd.DataFrame | None = None
        self._given = given.copy()  # what the caller does to it later is no part of the fit
        self._coded = coded
        self._like_lmer = like_lmer

    def __repr__(self) -> str:
        return f"{type(self).__module__}.Model(fitted = True, formula = {self.formula}, family = {self.family})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"the model has no attribute {name!r}, though pymer4's may have. Everything about the fit is in "
            ".likelihood_fit, an lmemtest.LmmFit."
        )

    # -- the fit as a whole -------------------------------------------------------------------------------------

    @cached_property
    def inference_fit(self) -> LmmFit:
        """The fit behind standard errors and tests.

        That of maximum likelihood, as in the package; without random effects that of least squares, whose t-tests are
        exact.
        """
        fit = self.likelihood_fit
        return fit if fit.design.random else fit.refit(reml=True)

    # -- fixed effects ------------------------------------------------------------------------------------------

    def _name(self, name: str) -> str:
        return coefficient(name, self.factors) if self._like_lmer else name

    @cached_property
    def coefs(self) -> pd.DataFrame:
        """Fixed effects: Estimate, 2.5_ci, 97.5_ci, SE, DF, T-stat, P-val, Sig."""
        table = self.inference_fit.to_frame()
        half = t_quantile(0.025, table["df"]) * table["se"]
        table = table.assign(ci_low=table["estimate"] - half, ci_high=table["estimate"] + half)
        out = numbers(table).set_axis([self._name(name) for name in table["term"]])
        return out[out["Estimate"].notna()].copy()  # R drops what the data do not identify

    @cached_property
    def design_matrix(self) -> pd.DataFrame:
        """The fixed part's matrix, one row per row of the data."""
        fit = self.likelihood_fit
        kept = fit.problem.kept
        names = [self._name(fit.design.x_names[j]) for j in kept]
        return pd.DataFrame(fit.design.rows(self._coded)[:, kept], columns=names)

    @property
    def rsquared(self) -> float:
        """Share of the variance that a model without random effects explains."""
        if self.likelihood_fit.design.random:
            raise AttributeError("a mixed model has no single R squared: see likelihood_fit.diagnose()")
        score = self.fits + self.residuals
        return float(1.0 - (self.residuals**2).sum() / ((score - score.mean()) ** 2).sum())

    @property
    def rsquared_adj(self) -> float:
        """`rsquared`, adjusted for the number of fixed effects."""
        fit = self.likelihood_fit
        return 1.0 - (1.0 - self.rsquared) * (fit.nobs - 1.0) / (fit.nobs - fit.rank)

    # -- random effects -----------------------------------------------------------------------------------------

    @cached_property
    def _terms(self) -> list[tuple[str, str, list[str], np.ndarray, int]]:
        """Group, label, effects, covariance and number of levels of each random term, in lme4's order.

        That is by decreasing number of levels, unless they are so already.
        """
        terms, label = [], Counter[str]()
        fit = self.likelihood_fit
        sizes = [len(term.levels) for term in fit.design.random]
        falling = sizes == sorted(sizes, reverse=True)
        for i in range(len(sizes)) if falling else np.argsort(sizes, kind="stable")[::-1].tolist():
            term = fit.design.random[i]
            count = label[term.group]  # the second term of a group gets a number
            label[term.group] += 1
            name = f"{term.group}.{count}" if count else term.group
            names = [coefficient(effect, {}) for effect in term.names]
            terms.append((term.group, name, names, fit.covariances[i], sizes[i]))
        return terms

    @cached_property
    def grps(self) -> dict[str, float]:
        """Levels of each grouping factor."""
        return {group: float(size) for group, *_, size in self._terms}

    @cached_property
    def ranef_var(self) -> pd.DataFrame:
        """Variances: Name, Var, Std, indexed by group; the residual last."""
        rows = [
            (label, name, float(variance))
            for _, label, effects, covariance, _ in self._terms
            for name, variance in zip(effects, covariance.diagonal(), strict=True)
        ]
        index, names, values = zip(*rows, ("Residual", "", self.likelihood_fit.scale), strict=True)
        table = pd.DataFrame({"Name": pd.Series(names, dtype=object), "Var": np.array(values)})
        return table.assign(Std=np.sqrt(table["Var"])).set_index(pd.Index(index))

    @cached_property
    def ranef_corr(self) -> pd.DataFrame | None:
        """Correlations of random effects: IV1, IV2, Corr, indexed by group; None if there are none."""
        rows = []
        for _, label, effects, covariance, _ in self._terms:
            sd = np.sqrt(covariance.diagonal())
            for a, b in combinations(range(len(sd)), 2):
                size = sd[a] * sd[b]
                corr = float(covariance[a, b] / size) if size > 0 else math.nan
                rows.append((label, effects[a], effects[b], corr))
        if not rows:
            return None
        table = pd.DataFrame(rows, columns=["group", "IV1", "IV2", "Corr"]).astype({"IV1": object, "IV2": object})
        return table.set_index("group").rename_axis(None)

    def _deviations(self) -> list[pd.DataFrame]:
        """Conditional modes of the levels of each grouping factor, with R's names of the effects."""
        modes = [self.likelihood_fit.conditional_modes(group) for group in self.grps]
        return [table.rename(columns=lambda name: coefficient(name, {})) for table in modes]

    @cached_property
    def ranef(self) -> pd.DataFrame | list[pd.DataFrame] | None:
        """Deviations of the levels of each grouping factor; a list if there are several factors."""
        return _one_or_all([table.rename(columns=column) for table in self._deviations()])

    @cached_property
    def fixef(self) -> pd.DataFrame | list[pd.DataFrame] | None:
        """Coefficients of each level: fixed effects plus deviations; a list if there are several factors."""
        tables, estimates = self._deviations(), self.coefs["Estimate"]
        # deviations without a fixed effect have columns at the end, of all tables, as in lme4
        random = (name for table in tables for name in table.columns if name not in estimates)
        start = {**estimates, **dict.fromkeys(random, 0.0)}
        return _one_or_all(
            [
                pd.DataFrame({name: value + table.get(name, 0.0) for name, value in start.items()}, index=table.index)
                for table in tables
            ]
        )

    # -- rows ---------------------------------------------------------------------------------------------------

    @cached_property
    def fits(self) -> np.ndarray:
        """Fitted score of each row."""
        return self.likelihood_fit.predict(self._coded)

    @cached_property
    def residuals(self) -> np.ndarray:
        """Score minus fitted score of each row."""
        parsed = self.likelihood_fit.design.parsed
        score = self._coded[parsed.response].to_numpy(dtype=float)
        if parsed.response_transform is not None:
            score = parsed.response_transform(score)
        return np.asarray(score - self.fits)

    @cached_property
    def data(self) -> pd.DataFrame:
        """A copy of the data with the columns ``residuals`` and ``fits``."""
        return self._given.assign(residuals=self.residuals, fits=self.fits)

    def predict(self, data: pd.DataFrame, use_rfx: bool = True) -> np.ndarray:
        """Predicted scores (rows,) of new rows, with the deviations of known groups if `use_rfx`."""
        return self.likelihood_fit.predict(to_table(data), random=use_rfx)

    # -- tests --------------------------------------------------------------------------------------------------

    def post_hoc(
        self,
        marginal_vars: str | list[str],
        grouping_vars: str | list[str] | None = None,
        p_adjust: str | None = "tukey",
        summarize: bool = True,
        dof_asymptotic_at: int | None = None,  # noqa: ARG002 - pymer4's arguments
        verbose: bool = False,  # noqa: ARG002
    ) -> tuple[pd.DataFrame, pd.DataFrame] | None:
        """Marginal means and their pairwise differences.

        Parameters
        ----------
        marginal_vars : str or list of str
            Factors whose combinations are compared; or a column of numbers, whose slopes are compared between the
            levels of `grouping_vars`.
        grouping_vars : str or list of str, optional
            Factors at whose levels the comparisons are made, each a family of its own.
        p_adjust : {"tukey", "bonf", "holm", "fdr", "sidak", "mvt", "none"} or None
            Adjustment for several comparisons.
        summarize : bool
            Return both tables; otherwise they are in `marginal_estimates` and `marginal_contrasts` only.
        dof_asymptotic_at, verbose
            Taken and not used: degrees of freedom are Satterthwaite's whatever the number of rows.

        Returns
        -------
        tuple of (pandas.DataFrame, pandas.DataFrame) or None
            Estimates: the factors, Estimate, 2.5_ci, 97.5_ci, SE, DF. Contrasts: Contrast, the grouping factors,
            Estimate, 2.5_ci, 97.5_ci, SE, DF, T-stat, P-val, Sig. Not rounded.

        Raises
        ------
        ArgumentError
            If a name is not in the fixed part of the model, or an adjustment is unknown.
        """
        *tables, heading = marginal_comparisons(self.inference_fit, marginal_vars, grouping_vars, p_adjust)
        self.marginal_estimates, self.marginal_contrasts = tables
        if not summarize:
            return None
        if heading:
            print(heading)
        return tables[0].copy(), tables[1].copy()

    def anova(self, force_orthogonal: bool = False) -> pd.DataFrame:  # noqa: ARG002 - pymer4's argument
        """Type III F-tests of the fixed terms: SS, MS, NumDF, DenomDF, F-stat, P-val, Sig, indexed by term.

        They do not depend on the coding, so `force_orthogonal` is taken and not used.
        """
        table = self.inference_fit.anova().to_frame()
        mean_square = table["f_ratio"] * self.inference_fit.scale
        columns = {
            "SS": mean_square * table["df_num"],
            "MS": mean_square,
            "NumDF": table["df_num"],
            "DenomDF": table["df_den"],
            "F-stat": table["f_ratio"],
            "P-val": table["p_value"],
        }
        return with_stars(pd.DataFrame(columns)).set_index(pd.Index(table["term"]).rename(None))

    def summary(self) -> pd.DataFrame:
        """Print the model and its random effects, and return `coefs`, rounded."""
        kind = "Linear mixed model fit by maximum likelihood" if self.grps else "Linear model fit by least squares"
        corr = self.ranef_corr
        print(
            f"{kind}\nFormula: {self.formula}\n\nFamily: {self.family}\t Inference: {self.sig_type}\n\n"
            f"Number of observations: {self.likelihood_fit.nobs}\t Groups: {self.grps}\n\n"
            f"Log-likelihood: {written(self.logLike, '.3f')} \t AIC: {written(self.AIC, '.3f')}\n\nRandom effects:\n\n"
            f"{self.ranef_var.round(3)}\n\n"
            f"{'No random effect correlations specified' if corr is None else corr.round(3)}\n\nFixed effects:\n"
        )
        return self.coefs.round(3)


def _one_or_all(tables: list[pd.DataFrame]) -> pd.DataFrame | list[pd.DataFrame] | None:
    return tables[0] if len(tables) == 1 else tables or None


def glrt(mod1: Model, mod2: Model, verbose: bool = False) -> dict[str, Any]:
    """Test two nested models against each other.

    Parameters
    ----------
    mod1, mod2 : Model
        From `model`, in either order; the smaller one is the null hypothesis.
    verbose : bool
        Print the models, their log-likelihoods and the result.

    Returns
    -------
    dict
        ``"p"``, ``"chi_square"`` (twice the difference of the log-likelihoods) and ``"df"`` (difference of the numbers
        of parameters, variances included). The p-value of a variance takes into account that it cannot be negative.

    Raises
    ------
    NestingError
        If neither model contains the other, they are the same, or were fitted to different data.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.compat.significance_analysis import model
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, prior="good").to_frame()
    >>> larger = model("loss ~ algorithm + (1|benchmark)", data)
    >>> smaller = model("loss ~ 1 + (1|benchmark)", data)
    >>> result = glrt(larger, smaller)
    >>> result["df"], result["p"] < 0.001
    (5, True)
    """
    for name, fitted in (("mod1", mod1), ("mod2", mod2)):
        if not hasattr(fitted, "likelihood_fit"):
            raise ArgumentError(f"{name} must be the result of model(), got {type(fitted).__name__}.")
    null, alternative = _ordered(mod1, mod2)
    test = likelihood_ratio.glrt(null.likelihood_fit, alternative.likelihood_fit, rng=0)
    if verbose:
        better = null if not below(test.p_value, 0.05) else alternative
        sign = "==" if better is null else ">>" if better is mod1 else "<<"
        print(f"{mod1.formula} ({written(mod1.logLike, '.4f')}) {sign} {mod2.formula} ({written(mod2.logLike, '.4f')})")
        print(f"Chi-Square: {test.statistic}, P-Value: {small_p(test.p_value)}")
    return {"p": test.p_value, "chi_square": test.statistic, "df": test.df}


def _ordered(first: Model, second: Model) -> tuple[Model, Model]:
    """The smaller model first; as they are if neither contains the other, for the test says why."""
    for null, alternative in ((first, second), (second, first)):
        try:
            check_nesting(null.likelihood_fit, alternative.likelihood_fit)
        except NestingError:
            continue
        return null, alternative
    return first, second
