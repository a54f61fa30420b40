"""Random effects with intervals: which benchmarks, seeds or runs stand out, one by one and all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_flag, check_fraction, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_t import largest_t
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.engine import prediction
from lmemtest.lmm.model.predictions import batches, representatives, shapes, terms_of

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.model import LmmFit


TARGETS = ("prediction", "conditional")
# Levels above which the joint integral gives way to Šidák's inequality, which costs little width there.
_JOINT_LEVELS = 60
# The cost grows with their square: 3,400 effects take three seconds, this many about twenty.
_MOST_EFFECTS = 8_000
# Standard deviation over the residual's, below which the variance counts as zero (as in `LmmFit.is_singular`).
_ZERO = 1e-4


@guided
@one_blas_thread()
def random_effects(
    fit: LmmFit,
    group: str,
    *,
    simultaneous: bool = True,
    target: str = "prediction",
    alpha: float = 0.05,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """Random effects of a grouping factor with their intervals, for caterpillar plots.

    Parameters
    ----------
    fit : LmmFit
        The model.
    group : str
        Grouping factor as the formula has it, for instance ``"benchmark"`` or ``"benchmark:algorithm"``.
    simultaneous : bool, default True
        Intervals for all levels of an effect at once (whoever looks for the level that stands out needs these), or
        each on its own.
    target : {"prediction", "conditional"}
        Intervals for the deviation from the population's mean, which is itself estimated from these levels; or given
        the fixed effects, as lme4's caterpillar plots have it. The latter are shorter and compare levels with each
        other rather than with the population.
    alpha : float in (0, 1)
        One minus the confidence level.
    rng : int, numpy.random.Generator or None
        Points of the joint integral where it is not a quadrature.

    Returns
    -------
    Answer
        One row per effect and level: effect, level, estimate (conditional mode), conditional_sd (given the fixed
        effects, as lme4 reports it), se (of the prediction's error, with that of the fixed effects), df, ci_low,
        ci_high. Values: ``clear`` (of each effect by name the levels whose interval excludes zero), ``effects`` (their
        names, in the order of the formula), ``group``, ``simultaneous``, ``target``, ``alpha``, and ``formula`` and
        ``score``, the model and the scale of the effects.

    Raises
    ------
    ArgumentError
        If the model has no such group, the group is too large, or an option is unknown.

    Notes
    -----
    The interval is for the effect itself, which is random: estimate +- c se, where se^2 is the variance of the error
    of prediction at the estimated variances (Henderson 1975) and the degrees of freedom match the spread of its
    estimate (Satterthwaite). c is the quantile of the largest ``|t|`` over the levels, jointly t distributed; with more
    than 60 levels Šidák's inequality takes its place, which is conservative. Random effects are shrunken: a
    level with few or noisy rows is drawn towards zero.

    References
    ----------
    Henderson (1975), doi:10.2307/2529430; Robinson (1991), doi:10.1214/ss/1177011926; Šidák (1967),
    doi:10.1080/01621459.1967.10482935

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 16, 18, 17, 17], "tool": ["A", "B"] * 8,
    ...          "task": list("wwwwxxxxyyyyzzzz")}
    >>> found = lt.fit_lmm("loss ~ tool + (1 | task)", table).random_effects("task")
    >>> found.to_frame()[["level", "estimate", "se", "ci_low", "ci_high"]].round(1)
      level  estimate   se  ci_low  ci_high
    0     w      -4.9  3.5   -16.8      7.1
    1     x      -3.9  3.5   -15.8      8.1
    2     y      -1.6  3.5   -13.6     10.4
    3     z      10.3  3.5    -1.6     22.3
    """
    simultaneous = check_flag(simultaneous, "simultaneous")
    check_choice(target, "target", TARGETS)
    level = 1.0 - check_fraction(alpha, "alpha")
    generator = resolve_rng(rng)
    if not hasattr(fit, "problem"):
        raise ArgumentError(f"fit must be a fit of fit_lmm(), got {type(fit).__name__}.")
    positions = terms_of(fit, group)
    terms = [fit.design.random[i] for i in positions]
    n_effects = sum(len(t.levels) * len(t.names) for t in terms)
    if n_effects > _MOST_EFFECTS:
        raise ArgumentError(
            f"group='{group}' has {n_effects:,} effects; intervals are computed for up to {_MOST_EFFECTS:,}. "
            "`fit.conditional_modes(group)` gives the estimates alone."
        )
    conditional = target == "conditional"
    # only the joint distribution of few levels needs their covariances
    at_once = simultaneous and len(terms[0].levels) <= _JOINT_LEVELS
    with one_blas_thread():
        full, of_modes = (_errors(fit, positions, n_effects, at_once=at_once, conditional=c) for c in (False, True))
        chosen = of_modes if conditional else full
        df = _error_df(fit, positions, chosen.diagonal() if at_once else chosen, conditional=conditional)
    parts, notes, start = [], list[str](), 0
    for i, term in zip(positions, terms, strict=True):
        q, k = len(term.levels), len(term.names)
        for j, name in enumerate(term.names):
            rows = start + j + k * np.arange(q)
            error = chosen[np.ix_(rows, rows)] if at_once else chosen[rows]
            part, note = effect_intervals(fit.modes[i][:, j], error, df[rows], simultaneous, level, generator)
            hidden, why = _without_interval(fit, i, j, df[rows])
            part.loc[hidden, ["ci_low", "ci_high"]] = np.nan
            variances = {"se": full, "conditional_sd": of_modes}
            sds = {key: np.sqrt(np.maximum(_variances(v)[rows], 0.0)) for key, v in variances.items()}
            parts.append(part.assign(effect=name, level=list(term.levels), **sds))
            reasons = (why,) if hidden.all() else (note, why)
            notes += [text for text in reasons if text and text not in notes]
        start += q * k
    columns = ["effect", "level", "estimate", "conditional_sd", "se", "df", "ci_low", "ci_high"]
    table = pd.concat(parts, ignore_index=True)[columns]
    stands_out = table[(table["ci_low"] > 0) | (table["ci_high"] < 0)]
    effects = tuple(name for term in terms for name in term.names)
    together = "simultaneous " if simultaneous else ""
    errors = "given the fixed effects" if conditional else "with the error of the fixed effects"
    score = fit.design.parsed.score
    return Answer(
        question="random_effects",
        title=f"Random effects of {group}",
        tables={"table": table},
        values={
            "group": group,
            "effects": effects,
            "simultaneous": simultaneous,
            "target": target,
            "alpha": alpha,
            "formula": fit.label,
            "score": score,
            "clear": {effect: tuple(stands_out["level"][stands_out["effect"] == effect]) for effect in effects},
        },
        facts=(
            f"{fit.label}; deviations of the levels of {group} from the population, on the scale of "
            f"{score}, with {together}{100 * level:.4g} % intervals {errors}; Satterthwaite degrees of freedom.",
        ),
        notes=tuple(notes),
        figure="random_effects_plot",
    )


def _without_interval(fit: LmmFit, i: int, j: int, df: Array) -> tuple[Mask, str]:
    """Levels of one effect that have no interval, and why."""
    term = fit.design.random[i]
    name = term.names[j]
    contribution = fit.covariances[i][j, j] * np.average(term.basis[:, j] ** 2, weights=fit.cells.n)
    if contribution <= _ZERO**2 * fit.mean_residual_variance:
        return np.ones(len(df), dtype=bool), (
            f"The variance of {name} in {term.label} is estimated as zero, so all its effects are zero and have no "
            "intervals. That the levels are equal is not proved by this."
        )
    hidden = ~(df >= 1.0)
    if not hidden.any():
        return hidden, ""
    return hidden, (
        f"{int(hidden.sum()):,} effects of {name} in {term.label} have no interval: its variance is so close to its "
        "boundary that their error is known with less than one degree of freedom. Use fewer effects per group."
    )


def _errors(fit: LmmFit, terms: list[int], count: int, *, at_once: bool, conditional: bool) -> Array:
    """Covariance of the errors of all effects of some terms; their variances alone unless they are needed at once."""
    where, every = (fit.problem, fit.optim.theta, fit.optim.criterion), np.arange(count)

    def covariance(which: Index) -> Array:
        targets = prediction.unit_targets(fit.problem, terms, shapes(fit), which)
        return prediction.covariance(*where, *targets, conditional=conditional)

    return covariance(every) if at_once else np.concatenate([covariance(part).diagonal() for part in batches(every)])


def _error_df(fit: LmmFit, terms: list[int], variance: Array, *, conditional: bool) -> Array:
    """Satterthwaite degrees of freedom of the errors, one computation for all levels of a kind."""
    first, alike = representatives(variance)
    where, values = (fit.problem, fit.optim.theta, fit.optim.criterion), []
    for part in batches(first):
        targets = prediction.unit_targets(fit.problem, terms, shapes(fit), part)
        slopes = prediction.slopes(*where, *targets, conditional=conditional)
        values.append(fit.curvature.error_df(variance[part], slopes))
    return np.concatenate(values)[alike]


def _variances(error: Array) -> Array:
    """Variances from themselves or from a covariance."""
    return error.diagonal() if error.ndim == 2 else error


def effect_intervals(
    estimate: Array, error: Array, df: Array, simultaneous: bool, level: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, str]:
    """Estimates with intervals over the levels of one effect, and how the intervals were made.

    `error` is the covariance of their errors, or the variances where no joint distribution is needed.
    """
    se = np.sqrt(np.maximum(_variances(error), 0.0))
    note = ""
    if not simultaneous or len(se) == 1:
        factor = t_quantile((1.0 - level) / 2.0, df)
    elif len(se) > _JOINT_LEVELS or not se.min() > 0:
        factor = t_quantile(-0.5 * np.expm1(np.log(level) / len(se)), df)  # half of 1 - level^(1/q)
        note = f"The {len(se)} intervals are simultaneous by Šidák's inequality, which makes them a little wider."
    else:
        joint = largest_t(error / np.outer(se, se), rng=rng)
        factor = joint.isf(1.0 - level, df)
        note = joint.note(factor, df) if joint.method == "quasi-Monte-Carlo" else ""
    half = factor * se
    columns = {"estimate": estimate, "df": df, "ci_low": estimate - half, "ci_high": estimate + half}
    return pd.DataFrame(columns), note
