"""Means on the scale of answers and counts: probabilities and rates that average over the random effects.

Of a group that is not in the table, such as a further item of a further task, the linear predictor is ``eta + N(0, v)``
with ``v`` the variance of all random effects of its row, and its mean is

    m(eta, v) = E g^-1(eta + sqrt(v) N(0, 1)),    dm/deta = E (g^-1)'(...),    dm/dv = (d^2 m/deta^2) / 2,

by Gauss-Hermite quadrature (for counts ``exp(eta + v / 2)``; for probits ``Phi(eta / sqrt(1 + v))``; Zeger, Liang &
Albert 1988, doi:10.2307/2531734). Its standard error is that of the delta method, with the errors of the fixed effects
and of the variances. The inverse link of a mean predictor is another number: it is of a group whose effects are all 0.

Where groups have few answers, pseudo-likelihood and Laplace's approximation take the conditional effects, or the
variances, for too small or too large, and such a mean would be off by points. So all predictors are moved by one ``c``
on the scale of the link, at which a mean of the answers of the table is met,

    sum w n m(eta + c, v) = sum w (sum of the answers),    dc/dv = -sum w n dm/dv / sum w n dm/deta.

The groups g of the factor with the fewest levels (tasks, say) are the sample, however many answers each has: their
means count by their inverse variances in the linear model of the working scores at the fixed effects (marginal
quasi-likelihood: Breslow & Clayton 1993, doi:10.1080/01621459.1993.10594284). With W the information of an answer,
summed over groups,

    w_g = 1 / (1 + sum_terms v_term sum_levels W_level^2 / W_g),

so that answers count the same where groups are alike, and groups do where they vary.

On groups of the table themselves (these tasks) their effects are predicted, and ``v`` is the variance of the others:
the mean of a model is one of ``m(eta + u_g, v)`` over the groups g, with the errors of the predictions ``L b + K u``
(Henderson 1975) in place of those of the fixed effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.quadrature import normal_rule
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError, DesignError, UnknownColumnError
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.functions import Functions, OfFunctions, asked
from lmemtest.lmm.engine.prediction import covariance, slopes
from lmemtest.lmm.families import LARGEST
from lmemtest.lmm.means.estimates import Estimates

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.families import Family

# What means of the response have of those of the linear predictor.
_KEPT = ("specs", "by", "alpha", "ddf", "errors", "moderate", "n_obs", "column", "averaged_over", "covariates")
_NODES = 60


def marginal_means(family: Family, eta: Array, variance: Array) -> tuple[Array, Array, Array]:
    """``m`` and its derivatives in ``eta`` and in the variance, of arrays of one shape.

    Examples
    --------
    >>> from lmemtest.lmm.families import Family
    >>> m, slope, of_variance = marginal_means(Family.of("binomial", "probit"), np.array([1.0]), np.array([3.0]))
    >>> m.round(6).tolist()  # Phi(1 / 2)
    [0.691462]
    """
    if family.link == "log":
        m = np.exp(eta + 0.5 * variance)
        return m, m, 0.5 * m
    x, weight = normal_rule(_NODES)
    at = eta[..., None] + np.sqrt(variance)[..., None] * x
    return family.mean(at) @ weight, family.slope(at) @ weight, 0.5 * (family.bend(at) @ weight)


def has_link(fit: Any) -> bool:
    """Whether the linear predictor of a fit, ours or of statsmodels, is on another scale than its response."""
    return hasattr(fit, "family") or getattr(fit, "link", None) is not None


def on_response(fit: Any, means: Estimates, these: Sequence[str] = ()) -> Estimates:
    """Means on the scale of the response: over the random effects of `fit_glmm`, transformed of other fits.

    Groups of the factors `these` are the population themselves.
    """
    return _averaged(fit, means, these) if hasattr(fit, "family") else _transformed(fit, means)


def _targets(fit: Any, means: Estimates, these: Sequence[str]) -> tuple[Index, Array, list[Index | None]]:
    """What means average over: the mean of each predictor, its weight, and by random term the level in it.

    One predictor for each mean, with `these` one for each of their groups; None of terms that are averaged over.
    """
    bars, n = fit.design.parsed.bars, len(means.frame)
    if not these:
        return np.arange(n), np.ones(n), [None] * len(bars)
    fixed, known = {*means.specs, *means.by}, {name for bar in bars for name in bar.groups}
    if unknown := {*these} - known:
        raise UnknownColumnError(
            f"these= must name factors of the random part, {joined(sorted(known)) if known else 'which is empty'}, and "
            f"{joined(sorted(unknown))} {'is none' if len(unknown) == 1 else 'are none'}."
        )
    held = [i for i, bar in enumerate(bars) if {*these} & {*bar.groups} and {*bar.groups} <= {*these} | fixed]
    for i, bar in enumerate(bars):
        other = {*bar.groups} & {*fit.design.factors} - fixed
        if {*these} & {*bar.groups} and (other or (i in held and fit.design.random[i].names != ("Intercept",))):
            raise ArgumentError(
                f"these={list(these)!r}: {fit.design.random[i].label} varies by more than its groups and "
                f"{joined(sorted(fixed))}. Fit random intercepts of {joined([*these])} alone, or leave these= out."
            )
    alone = {*these} - {name for i in held for name in bars[i].groups}
    if alone:
        raise ArgumentError(
            f"these={list(these)!r}: no random effect is of {joined(sorted(alone))} alone or with others that are "
            "named. Name all factors of its groups, such as these=['task', 'item'] of (1 | task:item)."
        )
    frame = fit.cells.frame.reset_index(drop=True)
    # whatever number a mean is at, groups are those of its factors
    own_columns = sorted(fixed & ({*fit.design.factors} | {name for i in held for name in bars[i].groups}))
    of_mean = [np.flatnonzero(np.all([frame[name] == row[name] for name in own_columns] or [[True] * len(frame)], 0))
               for row in means.frame.to_dict("records")]  # fmt: skip
    units = [frame.loc[cells].drop_duplicates([*these]) for cells in of_mean]
    groups = [set(unit[[*these]].itertuples(index=False, name=None)) for unit in units]
    for row, own in zip(means.frame.itertuples(index=False), groups, strict=True):
        if own != set().union(*groups):
            raise DesignError(
                f"{', '.join(map(str, row))} has no answers at some levels of {joined([*these])}, so "
                "there is no mean over them to compare. Leave out these levels, or these=."
            )
    weight = [_nested_shares(unit[[*these]]) for unit in units]
    cells = np.concatenate([unit.index.to_numpy() for unit in units])
    codes = [term.codes[cells] if i in held else None for i, term in enumerate(fit.design.random)]
    return np.repeat(np.arange(n), [len(w) for w in weight]), np.concatenate(weight), codes


def _nested_shares(units: pd.DataFrame) -> Array:
    """Weights of distinct rows, ``(n,)``: each level of the first column counts the same, within it of the next."""
    share: Array = np.ones(len(units))
    within: Index = np.zeros(len(units), dtype=np.intp)
    for depth in range(1, len(units.columns) + 1):
        level = units.groupby(list(units.columns[:depth]), sort=False, observed=True).ngroup().to_numpy()
        children = np.array([len(np.unique(level[within == parent])) for parent in range(within.max() + 1)])
        share, within = share / children[within], level
    return share


def _averaged(fit: Any, means: Estimates, these: Sequence[str]) -> Estimates:
    """Means of a generalised model on the scale of its answers, averaged over the random effects.

    Differences of them are differences of probabilities, or of expected counts. Random slopes enter by the mean, over
    the answers, of the variance that they add. Each interval is made on the scale of the link, with the error of the
    mean there, so that it lies where means can.
    """
    p, n = means.fixed.shape[1], len(means.frame)
    mean, weight, levels = _targets(fit, means, these)
    free = [i for i, codes in enumerate(levels) if codes is None]
    means = means.by_model() if these else means  # the interactions with these groups are known
    variance, slope_of_variance = _variance_of_answers(fit, free)
    estimable = np.isfinite(means.estimate)
    moved, moved_by_variance = _level(fit, variance, free)
    eta = np.where(estimable, means.estimate, 0.0)[mean] + moved
    for u, codes in zip(fit.modes, levels, strict=True):
        eta += 0.0 if codes is None else u[codes, 0]
    m, slope, of_variance = marginal_means(fit.family, eta, np.full(len(eta), variance))
    K = [np.zeros((term.n_levels, len(term.names), n)) for term in fit.design.random]  # of the levels in the means
    for part, codes in zip(K, levels, strict=True):
        if codes is not None:
            np.add.at(part[:, 0], (codes, mean), weight * slope)
    m, slope, of_variance = (
        np.asarray(np.bincount(mean, weight * values, n), dtype=float)
        for values in (m, slope, of_variance + slope * moved_by_variance)
    )
    by_fixed = slope[:, None] * np.where(estimable[:, None], means.fixed, 0.0)
    spread = float(slope_of_variance @ fit.curvature.theta_covariance() @ slope_of_variance)
    where = fit.problem, fit.optim.theta, fit.optim.criterion
    errors = covariance(*where, by_fixed[:, fit.problem.kept], K) if these else by_fixed @ means.V[:p, :p] @ by_fixed.T
    V = errors + spread * np.outer(of_variance, of_variance)
    groups = list(dict.fromkeys(fit.design.random[i].group for i in free))
    what = "probabilities of a right answer" if fit.family.binomial else "expected counts"
    link = f"Means and differences are on the scale of {fit.score}."
    found = Estimates.of(
        means.frame,
        b=m,
        V=V,
        L=np.where(estimable[:, None], np.eye(len(m)), np.nan),
        df=OfFunctions(
            partial(_df_on_these, fit, means.ddf, by_fixed, K) if these else partial(_df, fit, means.ddf, by_fixed)
        ),
        score=fit.design.parsed.response,
        specs=means.specs,
        by=means.by,
        alpha=means.alpha,
        direction=means.direction,
        ddf=means.ddf,
        errors="model",
        n_obs=means.n_obs,
        comparable=means.comparable,
        averaged_over=means.averaged_over,
        covariates=means.covariates,
        column="response",
        ends=partial(_ends, fit.family),
        ratio_of=what + ", averaged over the random effects" * bool(groups),
        notes=(
            *((f"Means are over the levels of {joined([*these])} in the table, not further ones.",) if these else ()),
            f"Means are {what} averaged over the random effects of {joined(groups)}: for further ones like these, not "
            "for these and not for one whose effects are zero. Their level is that of the answers of the table, where "
            f"each group of {min((fit.design.random[i] for i in free), key=lambda term: term.n_levels).group} "
            "counts by its precision."
            if groups
            else f"Means are {what}.",
            *(note for note in means.notes if note != link),
        ),
    )
    if means.moderate is None:
        return found
    return found.with_errors(moderate=replace(means.moderate, link=means), errors=means.errors)


def _ends(family: Family, m: Array, half: Array) -> tuple[Array, Array]:
    """Of intervals that are symmetric on the scale of the link."""
    at = family.predictor(m)
    of_link = half / family.slope(at)
    return family.mean(at - of_link), family.mean(at + of_link)


def _df(fit: Any, ddf: str, by_fixed: Array, rows: Functions) -> Array:
    """Degrees of freedom of functions of the means: those of the functions of the fixed effects that they are about."""
    return np.asarray(fit.df(rows.times(by_fixed), ddf))


def _df_on_these(fit: Any, ddf: str, by_fixed: Array, K: Sequence[Array], rows: Functions) -> Array:
    """Degrees of freedom of functions of means over groups of the table: Satterthwaite's, of predictions."""
    L = rows.times(np.eye(len(by_fixed)))
    if ddf == "asymptotic" or not fit.reml:
        return np.full(len(L), np.inf)
    where = fit.problem, fit.optim.theta, fit.optim.criterion
    targets = (L @ by_fixed)[:, fit.problem.kept], [part @ L.T for part in K]
    df = fit.curvature.error_df(covariance(*where, *targets).diagonal(), slopes(*where, *targets))
    return np.maximum(df, fit.least_df)


def _variance_of_answers(fit: Any, free: Sequence[int]) -> tuple[float, Array]:
    """Variance that some random effects add to a linear predictor, the mean over the answers, and its slope."""
    problem = fit.problem
    n, total, by_theta = fit.observed.n, 0.0, []
    for i, (term, L) in enumerate(zip(problem.system.source.terms, problem.unpack(fit.optim.theta), strict=True)):
        M = (term.basis * n[:, None]).T @ term.basis / n.sum() * (i in free)
        total += float(np.vdot(L @ L.T, M))
        by_theta.append(2.0 * (np.diag((M @ L).diagonal()) if term.diagonal else M @ L))
    return total, th.pack(by_theta, problem.shapes)


def _level(fit: Any, variance: float, free: Sequence[int]) -> tuple[float, float]:
    """How far predictors are moved for the mean of the answers to be met, and the derivative in the variance."""
    from scipy.optimize import brentq

    predictors = fit.cell_predictions(random=False)
    for i, (term, u) in enumerate(zip(fit.design.random, fit.modes, strict=True)):
        predictors = predictors + (0.0 if i in free else u[term.codes, 0])
    weight = fit.observed.n * _weights_of_groups(fit, predictors, free)
    eta, where = np.unique(predictors, return_inverse=True)
    n, total = np.bincount(where, weight), float(weight @ fit.observed.mean)

    def means(moved: float) -> tuple[Array, Array, Array]:
        return marginal_means(fit.family, eta + moved, np.full(len(eta), variance))

    moved = float(brentq(lambda c: float(n @ means(c)[0]) - total, -LARGEST, LARGEST, xtol=1e-12))
    _, slope, of_variance = means(moved)
    return moved, -float(n @ of_variance) / float(n @ slope)


def _weights_of_groups(fit: Any, eta: Array, free: Sequence[int]) -> Array:
    """By cell, ``(n_cells,)``: how much an answer of its group counts for the level of all means."""
    all_terms, factors = fit.problem.system.source.terms, fit.problem.unpack(fit.optim.theta)
    terms = [all_terms[i] for i in free]
    if not terms:
        return np.ones(len(eta))
    information, group = fit.family.information(eta, fit.observed.n), min(terms, key=lambda term: term.n_levels)
    shared = np.zeros(group.n_levels)
    for term, L in zip(terms, [factors[i] for i in free], strict=True):
        pairs, of_pair = np.unique(group.codes * term.n_levels + term.codes, return_inverse=True)
        for column in (term.basis @ L).T:
            shared += np.bincount(pairs // term.n_levels, np.bincount(of_pair, information * column) ** 2, len(shared))
    inflation = 1.0 + shared / np.bincount(group.codes, information, len(shared))
    return np.asarray(1.0 / inflation[group.codes])


def _transformed(fit: Any, means: Estimates) -> Estimates:
    """Means of the response instead of the linear predictor, with errors by the delta method.

    With mu = h(eta), h the inverse link, and eta = L b, functions K mu have the errors and degrees of freedom of
    K D L b, D = diag h'(eta). Each interval is that of eta, transformed, so it lies where means can.
    """
    link = fit.link
    known = np.isfinite(means.estimate)
    mu, D_L = np.zeros(len(known)), np.zeros(means.L.shape)
    mu[known] = link.inverse(means.estimate[known])
    D_L[known] = link.inverse_deriv(means.estimate[known])[:, None] * means.L[known]
    found = Estimates.of(
        means.frame,
        L=np.where(known[:, None], np.eye(len(known)), np.nan),
        b=mu,
        V=D_L @ means.V @ D_L.T,
        df=partial(_df_of_linear, means.df_function, D_L),
        score=fit.response,
        ratio_of=f"means of {fit.response}",
        notes=(
            f"Means of {fit.response}: what is averaged is averaged on the {fit.link_name} scale, then transformed, "
            "and so are their intervals. Differences are of these means, with standard errors by the delta method.",
            *means.notes,
        ),
        **{name: getattr(means, name) for name in _KEPT},
    )
    ends = np.sort([link.inverse(means.ci_low), link.inverse(means.ci_high)], axis=0)  # links that fall turn them round
    return replace(found, ci_low=ends[0], ci_high=ends[1])


def on_logarithms(means: Estimates) -> Estimates:
    """Logarithms of means of the response, whose differences are those of ratios; errors by the delta method."""
    known = np.isfinite(means.estimate)
    if (means.estimate[known] <= 0.0).any():
        raise ArgumentError(
            f"type='log' needs positive means, and some of {means.score} are not. Take their differences: "
            "type='response'."
        )
    m = np.where(known, means.estimate, 1.0)
    found = Estimates.of(
        means.frame,
        L=means.L,
        b=np.log(m),
        V=means.V / np.outer(m, m),
        df=partial(_df_of_linear, means.df_function, np.diag(1.0 / m)),
        score=f"log({means.score})",
        direction=means.direction,
        comparable=means.comparable,
        ratio_of=means.ratio_of,
        notes=(f"Logarithms of means of {means.score}: their differences are those of ratios.", *means.notes),
        **{**{name: getattr(means, name) for name in _KEPT}, "column": f"log_{means.column}"},
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # of intervals that reach beyond what means can be
        return replace(found, ci_low=np.log(means.ci_low), ci_high=np.log(means.ci_high))


def _df_of_linear(df_function: Callable[[Array], Array], D_L: Array, K: Array) -> Array:
    """Degrees of freedom of functions of the transformed means: those of their linear parts."""
    return np.asarray(asked(df_function, Functions.of(K @ D_L)))
