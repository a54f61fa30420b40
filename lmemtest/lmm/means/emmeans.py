"""Estimated marginal means: `Estimates` of the cells of a reference grid, averaged over its other factors.

Scores relative to a baseline: its mean is 0 on every benchmark because it was subtracted there, not because it is
known: what chance did to it is in all other scores. Subtracting its estimate gives each mean the standard error of its
difference from the baseline, in which that chance is counted. That estimate is 0, so that no mean changes, unless the
baseline has other seeds than the others and random effects of seeds pull it off 0. Differences of two others stay as
they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.options import DDF_METHODS, VCOV
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError
from lmemtest.lmm.engine.functions import Functions, OfFunctions
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.means.f_tests import f_test
from lmemtest.lmm.means.moderated import Moderated, ModeratedMeans, check_moderated, moderation_of
from lmemtest.lmm.means.reference_grid import (
    ReferenceGrid,
    check_along,
    check_at,
    check_specs,
    check_values,
    check_vcov,
    grid_values,
    listed,
    name_tuple,
)
from lmemtest.lmm.means.response import has_link, on_logarithms, on_response
from lmemtest.lmm.model.given import given_fit, is_ours

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.intervals.cluster_robust import ClusterRobust
    from lmemtest.lmm.means.f_tests import FTest


WEIGHTS_OF_A_SCOPE = ("benchmark", "family")
WEIGHTS = ("equal", "proportional", "cells", "benchmark", "family")
SCALES = ("link", "response", "log")
_BEYOND = 1e6  # standard errors, in units of the scores' spread, beyond which an estimate says nothing

# Row-wise functions of the response that keep its order, so that "better" still has the same direction.
_INCREASING = (None, "log", "log2", "log10", "log1p", "exp", "sqrt")
_SEVERAL = 3  # means whose differences may vary differently
_ZERO = 1e-8  # of the spread of the scores: a mean that is 0 but for rounding


@guided
@one_blas_thread()
def emmeans(
    fit: Any,
    specs: str | Sequence[str],
    *,
    by: str | Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    weights: str | None = None,
    ddf: str = "satterthwaite",
    alpha: float = 0.05,
    vcov: ClusterRobust | Moderated | str | None = None,
    type: Literal["link", "response", "log"] | None = None,
    these: str | Sequence[str] | None = None,
) -> Estimates:
    """Estimated marginal means of factors of the fixed part of a model.

    Parameters
    ----------
    fit : LmmFit or result of statsmodels
        A fitted model. Of statsmodels: a result of OLS, GLM, MixedLM, GEE, or another with one coefficient per column
        of its design, fitted by a formula; its covariance is taken as it is.
    specs : str or sequence of str
        Factors whose level combinations get a mean each. A numeric column may be used when `at` gives its values.
    by : str or sequence of str, optional
        Factors that split the means into groups; `pairs` compares within groups only.
    at : mapping of str to value or values, optional
        Levels of factors to keep, values of numeric columns. Numeric columns that are not named are held at
        their mean over the rows of the data.
    weights : {"equal", "proportional", "cells", "benchmark", "family"}, optional
        Weights for averaging over the factors in neither `specs` nor `by`: each combination equally; by its number of
        rows; by its number of rows within the levels of `specs` and `by` of each mean; by its number of benchmarks; or
        each family of benchmarks equally, and each benchmark in it. Default: "benchmark" when averaging over families
        of the `Runs` behind the fit, "equal" elsewhere.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom of the intervals and of every test made from the result. Kenward-Roger also adjusts the
        standard errors, and refits a maximum-likelihood fit by REML, with a note. Results of statsmodels have residual
        degrees of freedom if they test by t, else infinite ones.
    alpha : float in (0, 1), default 0.05
        One minus the confidence level.
    vcov : {"moderated", "model"}, Moderated or ClusterRobust, optional
        Source of the standard errors, here and in everything derived from the result; the means do not change.
        "moderated": every difference has its own variance over the benchmarks, shrunk towards the model's, see
        `moderated` (which accepts clusters other than the benchmark of `Runs`). "model": the fitted covariance, valid
        if all algorithms vary equally between benchmarks. A `ClusterRobust` of the same fit: its own covariance and
        degrees of freedom. Default: "moderated" for the algorithms of fits of `Runs` with three benchmarks or more;
        of `fit_glmm` by pseudo-likelihood the larger of the model's and moderated ones, with the model's degrees of
        freedom, for three means or more whose differences vary between three groups or more, as those of models with
        ``(1 | task:model)`` do between tasks; "model" elsewhere.
    type : {"link", "response", "log"}, optional
        Scale of the means of a model with a link: its link's (default), on which differences are those of log odds or
        of logarithms given the random effects; or probabilities and expected counts. Of `fit_glmm` these average over
        the random effects, with standard errors that hold those of the variances; of a result of statsmodels, what is
        averaged is averaged on the scale of the link, then transformed. "log": the logarithms of these, so that
        ``pairs().ratios()`` has ratios of probabilities or counts; on the link's scale it has conditional odds ratios.
    these : str or sequence of str, optional
        With "response" or "log" of `fit_glmm`: factors of the random part whose groups are the population themselves,
        so that means are over these and not over further ones. Of tasks with items, "task" is for items like these of
        these tasks, and ``["task", "item"]`` for these items. Every group of the first counts the same, and within it
        every group of the next. Without it all groups are further ones: tasks like these.

    Returns
    -------
    Estimates
        On the scale of the model's response, or of its link. ``to_frame()`` has the columns of `specs` and `by`,
        emmean, se, df, ci_low, ci_high; ``averaged_over`` has the factors that were averaged over, ``covariates`` the
        values at which numeric columns were held.

    Raises
    ------
    UnknownColumnError
        If `specs`, `by` or `at` name something that is not in the fixed part of the model.
    ArgumentError
        If names overlap, a numeric column is used without values, a level or an option is unknown, or `vcov` comes
        from another fit or together with a `ddf` that it does not go with; if a result of statsmodels has no formula,
        or another scale is asked of a model without a link, or logarithms of means that are not positive.
    DesignError
        If ``vcov="moderated"`` and benchmarks are no independent clusters.

    Notes
    -----
    Means are L b with L the average of the rows of the reference grid, all combinations of the
    factor levels. A mean that the data do not identify (empty cells) is NaN, with the reason in `notes`.
    R's emmeans puts both values of a numeric column that takes only two into the grid; here every numeric
    column is held at its mean. An offset is held at its mean over the rows, whatever `at` says, as in R's emmeans.

    References
    ----------
    Searle, Speed & Milliken (1980), Am. Stat. 34, 216-221, doi:10.1080/00031305.1980.10483031

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"algorithm": list("AB") * 8, "task": list("wwwwxxxxyyyyzzzz"),
    ...         "score": [1.0, 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]}
    >>> fit = lt.fit_lmm("score ~ algorithm + (1|task)", runs)
    >>> fit.emmeans("algorithm").to_frame().round(3)[["algorithm", "emmean", "se"]]
      algorithm  emmean     se
    0         A   3.625  1.188
    1         B   4.625  1.188

    Shares of solved items by a generalised linear model of statsmodels:

    >>> import pandas as pd, statsmodels.api as sm, statsmodels.formula.api as smf
    >>> answers = pd.DataFrame({"model": list("AB") * 8, "solved": [0, 1, 1, 1, 0, 0, 0, 1] * 2})
    >>> fit = smf.glm("solved ~ model", answers, family=sm.families.Binomial()).fit()
    >>> lt.emmeans(fit, "model", type="response").to_frame().round(3)[["model", "emmean", "ci_low", "ci_high"]]
      model  emmean  ci_low  ci_high
    0     A    0.25   0.063    0.623
    1     B    0.75   0.377    0.937
    """
    fit = given_fit(fit)
    if these is not None and (type in (None, "link") or not hasattr(fit, "family")):
        raise ArgumentError(
            "these= is for means of a generalised mixed model on the scale of its answers. Add type='response'."
        )
    if type is not None:
        check_choice(type, "type", SCALES)
        if not has_link(fit):
            raise ArgumentError(
                f"type={type!r} is for models with a link, and the means of this one are of its response already. "
                "Leave it out."
            )
    asked = _checked(fit, specs, by, at, ddf, alpha)
    check_source(fit, vcov, ddf)
    means = marginal_means(fit, *asked, weights=weights, ddf=ddf, alpha=alpha, vcov=vcov)
    if type in (None, "link"):
        return means
    if vcov not in (None, "model") and hasattr(fit, "family"):
        raise ArgumentError(
            f"vcov= is for means on the scale of the link, {fit.score}, and type={type!r} asks for another. Leave one "
            "of them out."
        )
    means = on_response(fit, means, () if these is None else name_tuple(these, "these"))
    return on_logarithms(means) if type == "log" else means


@guided
@one_blas_thread()
def emtrends(
    fit: Any,
    specs: str | Sequence[str],
    *,
    var: str,
    by: str | Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    weights: str | None = None,
    ddf: str = "satterthwaite",
    alpha: float = 0.05,
    vcov: ClusterRobust | Moderated | str | None = None,
) -> Estimates:
    """Marginal slopes of a numeric column, for each level of a factor.

    Parameters
    ----------
    fit : LmmFit
        A fitted model.
    specs : str or sequence of str
        Factors whose level combinations get a slope each; with values in `at` also `var` itself.
    var : str
        Numeric column of the fixed part, such as the budget.
    by, at, weights, ddf, alpha, vcov
        As in `emmeans`. Where the model is curved in `var` (poly, bs, log), the slope is that at its mean, or at the
        values in `at`.

    Returns
    -------
    Estimates
        In units of the response per unit of `var`. ``to_frame()`` has the columns of `specs` and `by`, slope, se, df,
        ci_low, ci_high; `pairs`, `contrast`, `against` and `best` take it like the result of `emmeans`. It has no
        direction, since a better score says nothing about its slope.

    Raises
    ------
    UnknownColumnError
        If a name is not in the fixed part.
    ArgumentError
        If `var` is a factor, or for the reasons of `emmeans`.
    DataError
        Where there is no slope, such as that of abs(x) at 0.

    Notes
    -----
    The slope is the derivative of the mean with respect to the column, by the rules of differentiation through every
    function of the formula; R's emtrends takes a forward difference, which is the same for straight lines and off by
    the order of its step (a thousandth of the range) for curves. Random slopes count in the standard errors and not in
    the slopes.

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("AABB") * 4, "budget": [1, 2] * 8, "task": list("wwwwxxxxyyyyzzzz"),
    ...                      "score": [1., 2, 1, 4, 2, 2, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9]})
    >>> fit = lt.fit_lmm("score ~ algorithm * budget + (1|task)", runs)
    >>> slopes = fit.emtrends("algorithm", var="budget")
    >>> slopes.to_frame()[["algorithm", "slope", "df"]].round(3)
      algorithm  slope    df
    0         A   1.25   9.0
    1         B   2.25   9.0
    >>> slopes.pairs().to_frame()[["left", "right", "estimate"]].round(3)
      left right  estimate
    0    A     B      -1.0
    """
    fit = given_fit(fit)
    if not is_ours(fit):
        raise ArgumentError(
            "emtrends is for fits of fit_lmm, and this is a result of statsmodels. Compare its means at two values: "
            f"emmeans(result, ..., at={{{var!r}: [0, 1]}})."
        )
    check_along(fit, var)
    asked = _checked(fit, specs, by, at, ddf, alpha)
    check_source(fit, vcov, ddf)
    return marginal_means(
        fit,
        *asked,
        weights=weights,
        ddf=ddf,
        alpha=alpha,
        vcov="model" if vcov is None else vcov,  # whether moderation keeps the size of slopes was not simulated
        along=var,
    )


def _checked(
    fit: Any, specs: Any, by: Any, at: Any, ddf: str, alpha: float
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, Any]]:
    """The factors of the means, those within which they are compared, and the values that were asked for."""
    check_choice(ddf, "ddf", DDF_METHODS)
    check_fraction(alpha, "alpha")
    at = check_at(fit, at)
    spec_names, by_names = name_tuple(specs, "specs"), name_tuple(by, "by")
    check_specs(fit, spec_names, by_names, at)
    return spec_names, by_names, check_values(fit, at)


def marginal_means(
    fit: Any,
    specs: tuple[str, ...],
    by: tuple[str, ...] = (),
    at: Mapping[str, Any] = MappingProxyType({}),
    *,
    ddf: str,
    alpha: float,
    weights: str | None = None,
    vcov: ClusterRobust | Moderated | str | None = None,
    along: str | None = None,
) -> Estimates:
    """`emmeans` of arguments that were checked, or marginal slopes along a numeric column."""
    target = by + specs
    weights = _weights(fit, weights, [n for n in (*fit.design.factors, *fit.design.numeric) if n not in target])
    moderation = moderation_of(fit, vcov, specs, ddf)
    robust: ClusterRobust | None = None if isinstance(vcov, (str, Moderated)) else vcov
    if robust is not None:
        ddf, changes = "cluster-robust", (f"Standard errors: {robust.described()}.", *robust.notes)
    else:
        fit, ddf, changes = fit.for_ddf(ddf)
    values = grid_values(fit, at)
    grid = ReferenceGrid.build(fit, values, target, along)
    L, frame = grid.average(weights), grid.keys.only((*specs, *by)).frame()
    b, V = fit.params_and_cov(ddf, robust)
    interacting = grid.interacting()
    covariates = {n: tuple(float(v) for v in values[n]) for n in fit.design.numeric if n not in target}
    if along is not None and along in covariates and not grid.is_curved():
        covariates.pop(along)
    p, n_known, known_notes = len(b), 0, []
    if fit.design.offset_parts and along is None:  # a column whose coefficient is 1, the same in all rows
        level_of_offset = float(np.average(fit.design.offset, weights=fit.cells.n))
        n_known, known_notes = 1, [f"The offset is held at its mean over the rows, {written(level_of_offset, '.6g')}."]
        L = np.column_stack([L, np.full(len(L), level_of_offset)])
        b, V = np.append(b, 1.0), np.pad(V, (0, 1))
    cells = fit.cells  # the standard deviation of the response over all rows, of slopes per range of the column
    centre = np.average(cells.mean, weights=cells.n)
    spread = np.sqrt((cells.ss + cells.n * (cells.mean - centre) ** 2).sum() / cells.n.sum())
    if along is not None:
        spread /= np.ptp(np.asarray(cells.frame[along], dtype=float))
    comparable = _comparable(fit, frame)
    direction, direction_notes = _direction(fit, "Means" if along is None else "Slopes")
    functions = _OfFit(fit, ddf, robust, p)
    score = fit.scope.measured if fit.scope is not None and fit.score == fit.scope.response else fit.score
    means = Estimates.of(
        L=L,
        frame=frame,
        b=b,
        V=V,
        df=OfFunctions(functions.df),
        specs=specs,
        by=by,
        alpha=alpha,
        score=score if along is None else f"slope of {score} along {along}",
        direction=direction if along is None else None,  # less is better of a loss, which says nothing of its slope
        ddf=ddf,
        errors="model" if robust is None else "cluster-robust",
        n_obs=int(fit.nobs),
        estimable_function=OfFunctions(functions.estimable),
        variance_function=None if robust is None else OfFunctions(functions.has_variance),
        f_function=functions.f_test,
        largest_se=_BEYOND * float(spread),
        n_known=n_known,
        comparable=comparable,
        averaged_over=grid.nuisance_factors,
        covariates=covariates,
        column="emmean" if along is None else "slope",
        ratio_of=_ratio_of(fit),
        subject="" if along is None else f"Slope along {along}: ",
    )
    if moderation is not None and not (moderation.least and min(len(rows) for _, rows in means.groups()) < _SEVERAL):
        errors = "larger" if moderation.least else "moderated"
        means = means.with_errors(moderate=ModeratedMeans.of(moderation, means), errors=errors)
    notes = (
        *changes,
        *_held_notes(grid, covariates, at, weights),
        *known_notes,
        *_interaction_notes(fit, along, grid, specs, by, *interacting),
        *_missing_notes(fit, means, "mean" if along is None else "slope"),
        *direction_notes,
    )
    means, of_baseline = carried(fit, means, float(spread)) if along is None else (means, ())
    roster = fit.scope.roster if fit.scope is not None and specs == (fit.scope.compared,) else ()
    return replace(means, roster=roster, notes=(*of_baseline, *notes, *means.moderation_notes))


def check_source(fit: Any, vcov: Any, ddf: str) -> None:
    """Refuse standard errors that are none of this fit's."""
    if not is_ours(fit) and vcov not in (None, "model"):
        raise ArgumentError(
            "vcov must be left out, since standard errors of a result of statsmodels are the result's own. Fit it with "
            "others: fit(cov_type='HC3')."
        )
    if vcov is None or (isinstance(vcov, str) and check_choice(vcov, "vcov", VCOV) == "model"):
        return
    if not isinstance(vcov, (str, Moderated)):
        check_vcov(fit, vcov, ddf)
        return
    check_moderated(fit)
    if isinstance(vcov, Moderated) and vcov.fit is not fit:
        raise ArgumentError(
            f"vcov belongs to another fit ({vcov.fit.label}) than the one given ({fit.label}). Make it from this "
            f"fit: moderated(fit, {vcov.label!r})."
        )
    if ddf not in ("satterthwaite", "kenward-roger"):
        raise ArgumentError(
            "moderated standard errors have their own degrees of freedom, at most those of ddf='satterthwaite' or "
            f"'kenward-roger', got ddf={ddf!r}. Leave ddf out, or use vcov='model'."
        )


def _weights(fit: Any, weights: str | None, nuisance: Sequence[str]) -> str:
    """How to average over factors, as asked for, or by benchmark where families of benchmarks are among them."""
    scope = fit.scope
    if weights is None:
        return (None if scope is None else scope.default_weights(nuisance)) or "equal"
    check_choice(weights, "weights", WEIGHTS)
    if scope is not None:
        scope.check_weights(weights)
    elif weights in WEIGHTS_OF_A_SCOPE:
        raise ArgumentError(
            f"weights='{weights}' needs a fit of Runs, which name what is counted: fit_lmm(formula, Runs(...))."
        )
    return weights


def _comparable(fit: Any, frame: pd.DataFrame) -> NDArray[np.bool_] | None:
    """Which two means belong to algorithms that met on a benchmark; None where all did, or nothing is known of it."""
    scope = fit.scope
    if scope is None or scope.compared not in frame or scope.compared not in fit.design.factors:
        return None
    return scope.met(frame[scope.compared].tolist())


# ---------------------------------------------------------------------- notes


def _held_notes(
    grid: ReferenceGrid, covariates: Mapping[str, tuple[float, ...]], at: Mapping[str, Any], weights: str
) -> list[str]:
    """What was averaged over, and where numeric columns are held."""
    notes = []
    if grid.nuisance_factors:
        factors = ", ".join(f"{name} ({len(grid.nuisance[name])} levels)" for name in grid.nuisance_factors)
        how = {
            "equal": "every combination of levels counts the same",
            "proportional": "combinations of levels count by their number of rows",
            "cells": "combinations of levels count by their number of rows within each mean",
            "benchmark": "combinations of levels count by their number of benchmarks",
            "family": "every family of benchmarks counts the same, and so does every benchmark of one family",
        }[weights]
        notes.append(f"Averaged over {factors}; {how} (weights={weights!r}).")
    for name, values in covariates.items():
        if len(values) > 1 and name in at:
            notes.append(f"Averaged over {name} = {', '.join(f'{v:.6g}' for v in values)}.")
        else:
            where = "" if name in at else "its mean over the rows, "
            notes.append(f"{name} is held at {where}{written(values[0], '.6g')}.")
    return notes


def _interaction_notes(
    fit: Any,
    along: str | None,
    grid: ReferenceGrid,
    specs: tuple[str, ...],
    by: tuple[str, ...],
    several: Sequence[str],
    single: Sequence[str],
) -> list[str]:
    """Say so when differences between the means depend on what was averaged over or held fixed."""
    names, notes = ", ".join(specs + by), []
    if several:
        of, at = (found[0] if len(found) == 1 else [*found] for found in (specs, (*by, *several)))
        each = advice("at_levels", of=of, by=at, first=several[0])
        notes.append(
            f"Differences between the levels of {names} depend on {', '.join(several)} in this model (interaction); "
            f"an average over them may mislead. Compare at each level: {each}."
        )
    for name in single:
        end = written(float(np.max(np.asarray(fit.cells.frame[name], dtype=float))), ".6g")
        of = specs[0] if len(specs) == 1 else [*specs]
        call = f"emmeans({of!r}" if along is None else f"emtrends({of!r}, var={along!r}"
        elsewhere = advice("elsewhere", call=call, at=name, value=end)
        notes.append(
            f"Differences between the levels of {names} depend on {name} in this model (interaction); "
            f"they are shown at {name} = {written(grid.nuisance[name][0], '.6g')} only. "
            f"Look elsewhere, too: {elsewhere}."
        )
    return notes


@dataclass(frozen=True)
class _OfFit:
    """What a fit says of linear functions of its ``p`` coefficients; columns beside them are known."""

    fit: Any
    ddf: str
    robust: ClusterRobust | None
    p: int

    def df(self, rows: Functions) -> Array:
        of_model = rows.first(self.p)
        return np.asarray(self.fit.df(of_model, self.ddf) if self.robust is None else self.robust.df(of_model))

    def f_test(self, rows: Array) -> FTest:
        of_model = rows[:, : self.p]
        return f_test(self.fit, of_model, ddf=self.ddf) if self.robust is None else self.robust.f_test(of_model)

    def estimable(self, rows: Functions) -> NDArray[np.bool_]:
        of_model = rows.first(self.p)
        estimable: NDArray[np.bool_] = self.fit.estimable(of_model)
        return estimable & self.fit.has_error(of_model) if self.robust is None else estimable

    def has_variance(self, rows: Functions) -> NDArray[np.bool_]:
        return np.ones(len(rows), dtype=bool) if self.robust is None else self.robust.has_variance(rows.first(self.p))


def _missing_notes(fit: Any, means: Estimates, what: str) -> list[str]:
    frame, L, estimate = means.frame, means.L, means.estimate
    notes = []
    empty = np.asarray(np.isnan(L).any(axis=1))
    estimable = np.zeros(len(L), dtype=bool)
    estimable[~empty] = fit.estimable(means.fixed[~empty])
    missing = np.asarray(np.isnan(estimate) & ~empty & ~estimable)
    unknown = np.asarray(np.isnan(estimate) & estimable)
    if empty.any():
        notes.append(f"No rows to average over, so no {what}, for {_listed_rows(frame, empty)}.")
    if unknown.any():
        identified = means.estimable_function is None or bool(means.estimable_function(L[unknown]).all())
        why = (
            "its error has no bound" if identified else "the fixed effects hold a random one (see the notes of the fit)"
        )
        notes.append(f"Not estimable from these data, so no {what}, for {_listed_rows(frame, unknown)}: {why}.")
    if missing.any():
        dropped = [str(name) for name in fit.params.index[fit.params.isna()]]
        cause = f" (columns without data of their own: {listed(dropped, 5)})" if dropped else ""
        notes.append(
            f"Not estimable from these data, so no {what}, for {_listed_rows(frame, missing)}: "
            f"the design has empty cells{cause}."
        )
    if np.any(np.isnan(means.df) & ~np.isnan(estimate)):
        notes.append(f"Degrees of freedom could not be computed for some {what}s; they have no interval.")
    return notes


def _listed_rows(frame: pd.DataFrame, mask: NDArray[np.bool_]) -> str:
    rows = [
        " and ".join(f"{name} = {format_level(value)}" for name, value in zip(frame.columns, row, strict=True))
        for row in frame[mask].itertuples(index=False)
    ]
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return "; ".join(rows[:5]) + more


def _ratio_of(fit: Any) -> str:
    """What ratios are of that differences of the linear predictor of a fit are the logarithms of."""
    distribution = getattr(fit, "distribution", None)  # None of a fit of statsmodels
    link = fit.link_name if distribution is None else "" if distribution == "normal" else fit.family.link
    return {
        "logit": "odds, given all effects of the model (conditional odds ratios)",
        "log": "expected values, given all effects of the model",
    }.get(link, "geometric means")


def _direction(fit: Any, what: str) -> tuple[str | None, list[str]]:
    """Direction of the response from the table behind the fit, and what to say about its scale."""
    parsed = fit.design.parsed
    notes = []
    if parsed.response_function or getattr(fit, "distribution", "normal") != "normal":
        notes.append(f"{what} and differences are on the scale of {fit.score}.")
    if fit.scope is None or fit.scope.response != parsed.response:
        return None, notes
    if parsed.response_function not in _INCREASING:
        notes.append(f"{parsed.score} does not keep the order of scores, so no direction is assumed.")
        return None, notes
    return str(fit.scope.direction), notes


# ---------------------------------------------------------------------------------------------- relative to a baseline


def carried(fit: Any, means: Estimates, spread: float) -> tuple[Estimates, tuple[str, ...]]:
    """The means as differences from the baseline's, which are 0, and a note; as they are where there is no baseline.

    The baseline's mean is 0 on every benchmark because it was subtracted there, not because it is known: what chance
    did to it is in all other scores. Subtracting its estimate gives each mean the standard error of its difference from
    the baseline, in which that chance is counted. That estimate is 0, so that no mean changes, unless the baseline has
    other seeds than the others and random effects of seeds pull it off 0. Differences of two others stay as they are.
    """
    scope, parsed, frame = fit.scope, fit.design.parsed, means.frame
    if scope is None or scope.reference is None or scope.compared not in frame:
        return means, ()
    if parsed.response != scope.response or parsed.response_function:
        return means, ()
    columns = [name for name in frame.columns if name != scope.compared]
    factors = [name for name in columns if name not in fit.design.numeric]
    keys, cells = _tuples(frame, columns), _tuples(frame, factors)
    zeros = scope.zero_at(factors, fit.design.numeric, _ZERO * spread)
    reference = format_level(scope.reference)
    of_reference = np.flatnonzero(frame[scope.compared].map(format_level).to_numpy() == reference)
    is_zero = np.abs(means.estimate) <= _ZERO * spread  # by definition, too: of balanced tables over their budgets
    at = {keys[row]: row for row in of_reference if is_zero[row] or cells[row] in zeros}
    if not at:
        return means, ()
    L = means.L.copy()
    for row, key in enumerate(keys):
        if key in at:
            L[row] = means.L[row] - means.L[at[key]]
    estimates = replace(means, L=L).with_errors()
    each = estimates.alone()  # an improvement is a difference that stands by itself
    zero = np.isin(np.arange(len(L)), list(at.values()))
    certain: dict[str, Any] = {
        name: np.where(zero, 0.0, getattr(each, name)) for name in ("estimate", "se", "ci_low", "ci_high")
    }
    return replace(estimates, df=np.where(zero, np.inf, each.df), **certain), (
        f"Means are improvements on {reference}, whose own mean is 0 by definition: their standard errors "
        f"are those of the differences from it, with its noise.",
    )


def _tuples(frame: pd.DataFrame, columns: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(frame[name] for name in columns), strict=True)) if columns else [()] * len(frame)
