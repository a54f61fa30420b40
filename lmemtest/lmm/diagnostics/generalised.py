"""`diagnose` of a generalised model: are answers and counts like those of tables drawn from it and fitted again.

Answers have no residuals of one known shape: a Pearson residual of ten answers near 0 or 1 is skewed and takes eleven
values, and those of a fit are smaller than those of the truth. So every check is a number, and what it would be under
the fitted model is seen in tables that are drawn from it and fitted in the same way (the parametric bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.core.caller import advice as advised
from lmemtest.core.hints import guided
from lmemtest.core.replicates import Executor, Failure, check_replicates, replicate
from lmemtest.core.resampling import p_of_draws
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_positive_int
from lmemtest.core.verdicts import Finding, severities_counted, table_of, worst
from lmemtest.core.words import format_level, format_number, joined, percent
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.lmm.diagnostics.draws import NOTE_P, WARNING_P, reach
from lmemtest.lmm.diagnostics.normality import COCHRAN, FEWEST_OF_SHAPE, REACH, SKEW_NOTE, measure
from lmemtest.lmm.diagnostics.scores import SHARE_NOTE
from lmemtest.lmm.diagnostics.structure import collinearity, groups
from lmemtest.lmm.families import LINKS
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.hypotheses.null_distributions import simulator
from lmemtest.lmm.model.given import check_fit

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.cells import Cells
    from lmemtest.lmm.model.glmm import GlmmFit

# Of a variance that is too small by a quarter, errors are too short by an eighth: tests at 5 % find 8 % false.
_MATTERS = 0.25
# Random effects below this standard deviation are zero, as in the fit.
_ZERO = 1e-4
# What is left of the square of the predictions beside the model, of its length, below which nothing is.
_RANK = 1e-8
# Numbers that differ by less (relative) are one.
_SAME = 1e-9
_SATURATED = "There are as many fixed effects as cells, so there are no residuals."

# The numbers of a table, by check and subject; NaN where there is none.
Key = tuple[str, str]


@guided
@one_blas_thread()
def diagnose(
    fit: GlmmFit,
    *,
    n_draws: int = 199,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Check what the conclusions of a generalised model rest on; ``fit.diagnose()``.

    Parameters
    ----------
    fit : GlmmFit
        From `fit_glmm`.
    n_draws : int >= 99
        Tables that are drawn from the fit and fitted again. With fewer than 199 no test in both directions warns.
    rng : int, numpy.random.Generator or None
        Source of randomness.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress bar, by
        default on a terminal after two seconds.

    Returns
    -------
    Answer
        One row per check: ``check``, ``subject``, ``found``, ``value``, ``p_value``, ``severity`` ("fine", "note": know
        it and go on, "warning": the conclusions may be wrong) and ``advice``. Values: ``checks`` (the rows as
        findings), ``severity`` (the worst), ``n_draws``, ``failed`` and ``unconverged`` (draws without a fit; draws
        whose estimates did not converge, which are kept), ``groups`` and ``collinearity``.

    Raises
    ------
    ArgumentError
        If `fit` is not a generalised model, or an option breaks its rule.
    EstimationError
        If no table could be fitted.

    Notes
    -----
    *dispersion*: mean square of the Pearson residuals of the cells, over that of the draws. *link*: the score test of
    the square of the linear predictor beside the model (Pregibon 1980); its value is by how much an effect grows per
    standard deviation of the predictions. *ends*: share of the cells with all or none of their answers right, or
    without an event. *skewness* of the predicted random effects. *outlier*: the largest Pearson residual, or the
    largest predicted effect by its share in the sum of squares. Ends and outliers are tested against larger values,
    the others in both directions. A check warns if its p-value is at most 1 % and the size matters for tests of means.

    Rows that share a cell (that agree in all columns of the formula) are judged by their sum, the cells by their
    predictions given the random effects. The size of a negative binomial is held at its estimate.

    References
    ----------
    Pregibon (1980). Goodness of link tests for generalized linear models. Appl. Stat. 29, 15-24. doi:10.2307/2346405

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"bugs": [2, 9, 4, 1, 3, 8, 25, 30, 11, 7, 16, 2], "tool": ["A", "B"] * 6, "task": list("ppqqrrssttuu")}
    >>> fit = lt.fit_glmm("bugs ~ tool + (1 | task)", table, family="poisson")
    >>> found = fit.diagnose(n_draws=99, rng=1)
    >>> found.to_frame().loc[0, ["check", "subject", "found"]].tolist()
    ['dispersion', 'cells', '3.47 times the variance of the model']
    """
    check_fit(fit, "fit")
    if fit.distribution == "normal":
        raise ArgumentError("fit must be a generalised model, and this one is linear. Write fit.diagnose().")
    n_draws = check_positive_int(n_draws, "n_draws", minimum=99)
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    task = partial(_drawn, replace(fit, data=None), simulator(fit, fit.scores))
    results = replicate(task, n_draws, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Diagnosis")
    failures = [r for r in results if isinstance(r, Failure)]
    drawn = [r for r in results if not isinstance(r, Failure)]
    if not drawn:
        raise EstimationError(f"no table drawn from the fit could be fitted. {failures[0].reason}")
    observed = measured(fit)
    draws = {key: np.array([numbers[key] for numbers, _ in drawn]) for key in observed}

    def both(kind: str, subject: str) -> tuple[float, Array]:
        of_draws = draws[kind, subject]
        return observed[kind, subject], of_draws[np.isfinite(of_draws)]

    carriers, inflation = groups(fit), collinearity(fit)
    unconverged = sum(not converged for _, converged in drawn)
    notes = []
    if failures:
        notes.append(
            f"{len(failures):,} of {n_draws:,} tables drawn from the fit could not be fitted and are left out "
            f"({failures[0].reason})."
        )
    if unconverged:
        notes.append(f"In {unconverged:,} draws the estimates did not converge; they are kept.")
    checks = (
        _dispersion(fit, *both("dispersion", "cells")),
        _link(fit, *both("link", "predictions")),
        _ends(fit, *both("ends", "cells")),
        _outlying_cell(fit, *both("outlier", "cells")),
        *(finding for name in _effects(fit) for finding in _of_effects(fit, name, both)),
        *carriers.checks,
        inflation.check,
    )
    table = table_of(checks)
    return Answer(
        question="diagnose",
        title="Diagnosis",
        tables={"table": table},
        values={
            "checks": checks,
            "severity": worst(check.severity for check in checks),
            "n_draws": n_draws,
            "failed": len(failures),
            "unconverged": unconverged,
            "formula": fit.label,
            "groups": carriers,
            "collinearity": inflation,
        },
        facts=(
            f"{fit.label}: {severities_counted(checks)}. p-values are against {len(drawn):,} tables drawn from the "
            "fitted model and fitted again.",
        ),
        notes=tuple(notes),
        printed=table.drop(columns="value"),
    )


def _drawn(
    fit: GlmmFit, draw: Callable[[np.random.Generator], Cells], rng: np.random.Generator
) -> tuple[dict[Key, float], bool]:
    again = fit.refit(cells=draw(rng))
    return measured(again), again.converged


# ------------------------------------------------------------------------------------------------- numbers of one table


def measured(fit: GlmmFit) -> dict[Key, float]:
    """What is compared with the same of the draws, of one fitted table."""
    r, ends = pearson_residuals(fit), _on_ends(fit)
    scatters = len(r) > fit.rank
    out = {
        ("dispersion", "cells"): float(np.mean(r * r)) if scatters else np.nan,
        ("link", "predictions"): bend(fit)[1],
        ("ends", "cells"): float(ends.mean()) if len(ends) else np.nan,
        ("outlier", "cells"): float(np.abs(r).max()) if scatters else np.nan,
    }
    for name, (_, _, u) in _effects(fit).items():
        judged = len(u) >= FEWEST_OF_SHAPE and u.std() > _ZERO
        out["skewness", name] = measure(u)[0] if judged else np.nan
        out["outlier", name] = _largest_share(u) if judged else np.nan
    return out


def pearson_residuals(fit: GlmmFit) -> Array:
    """Sums of the cells less their predictions, over the standard deviation of the family, ``(n_cells,)``."""
    n, eta, family = fit.observed.n, fit.cell_predictions(), fit.family
    sd = n * family.slope(eta) / np.sqrt(family.information(eta, n))
    return np.asarray(n * fit.cell_residuals() / sd)


def bend(fit: GlmmFit) -> tuple[float, float]:
    """The coefficient of the square of the linear predictor, and its ratio to its standard error.

    In the linear model of the working scores, to which the predictor and its square are added, at the same variances:
    one step from the fit. NaN where the fixed effects hold the square.
    """
    eta = fit.cell_predictions()
    beside = np.column_stack([fit.design.X[:, fit.problem.kept], eta])
    D = np.column_stack([beside, eta**2, fit.cells.mean - fit.design.offset])
    through = fit.held.omega[:, None] * fit.held.take(D)[1]  # V^-1 D
    length = np.sqrt(np.maximum(np.einsum("ij,ij->j", D, through), np.finfo(float).tiny))
    inner, k = (D / length).T @ (through / length), beside.shape[1]
    # a pseudo-inverse: without random effects the predictor is one of the columns of the model
    explained = np.linalg.pinv(inner[:k, :k], rcond=_RANK, hermitian=True) @ inner[:k, k:]
    (square, product), _ = inner[k:, k:] - inner[:k, k:].T @ explained
    if square <= _RANK:
        return np.nan, np.nan
    size = length[k + 1] * product / square
    return float(size / length[k]), float(size * np.sqrt(square))


def _on_ends(fit: GlmmFit) -> Array:
    """Which cells have no event, or only right or only wrong answers, which single answers always have."""
    mean, n = fit.observed.mean, fit.observed.n
    return ((mean == 0.0) | (mean == 1.0))[n > 1] if fit.family.binomial else mean == 0.0


def _effects(fit: GlmmFit) -> dict[str, tuple[int, int, Array]]:
    """Of every column of the random part its term, its place there, and the predicted effects."""
    return {
        f"effects of {term.group}" if name == "Intercept" else f"{name} by {term.group}": (i, c, u[:, c])
        for i, (term, u) in enumerate(zip(fit.design.random, fit.modes, strict=True))
        for c, name in enumerate(term.names)
    }


def _largest_share(values: Array) -> float:
    squares = values * values
    return float(squares.max() / squares.sum()) if squares.any() else np.nan


# ------------------------------------------------------------------------------------------------------- what they mean


def _tested(observed: float, draws: Array, *, both: bool) -> float:
    """Share of the tables that show as much, the observed one included; in `both` directions twice the smaller one."""
    slack = _SAME * max(1.0, abs(observed))
    p = p_of_draws(float(np.count_nonzero(draws >= observed - slack)), len(draws))
    if not both:
        return p
    smaller = p_of_draws(float(np.count_nonzero(draws <= observed + slack)), len(draws))
    return min(1.0, 2.0 * min(p, smaller))


def _severity(p: float, *, matters: bool) -> str:
    if not at_most(p, NOTE_P):
        return "fine"
    return "warning" if matters and at_most(p, WARNING_P) else "note"


def _dispersion(fit: GlmmFit, observed: float, draws: Array) -> Finding:
    if not np.isfinite(observed):
        return Finding("skipped", "dispersion", "not judged", _SATURATED, subject="cells")
    ratio, p = observed / float(draws.mean()), _tested(observed, draws, both=True)
    severity = _severity(p, matters=ratio >= 1.0 + _MATTERS)
    if severity == "fine":
        advice = "The cells scatter as the family says."
    elif ratio < 1.0:
        advice = "Less scatter than the family allows for: standard errors are too large, and tests find too little."
    else:
        single = fit.family.binomial and fit.observed.n.max() == 1
        has_one = any(term.n_levels == len(fit.cells.n) for term in fit.design.random)
        remedies = ["family='negative-binomial'"] if fit.family.name == "poisson" else []
        if not single and not has_one:
            remedies.append(f"a random effect of the cells, (1 | {':'.join(map(quote_name, fit.cells.names))})")
        remedy = " or ".join(remedies or ["the covariate or the interaction that is missing"])
        advice = f"More scatter than the family allows for: standard errors may be too small. Fit {remedy}; compare."
    found = f"{written(ratio, '.3g')} times the variance of the model"
    return Finding(severity, "dispersion", found, advice, subject="cells", value=ratio, p_value=p)


def _link(fit: GlmmFit, observed: float, draws: Array) -> Finding:
    if not np.isfinite(observed):
        advice = "The fixed effects hold all curvature of the predictions."
        return Finding("skipped", "link", "not judged", advice, subject="predictions")
    eta, omega = fit.cell_predictions(), fit.held.omega
    sd = np.sqrt(np.average((eta - np.average(eta, weights=omega)) ** 2, weights=omega))
    growth, p = 2.0 * bend(fit)[0] * float(sd), _tested(observed, draws, both=True)
    severity = _severity(p, matters=abs(growth) >= _MATTERS)
    advice = "Effects are as large at small predictions as at large ones."
    if severity != "fine":
        others = [link for link in LINKS[fit.family.name] if link != fit.family.link]
        links = [f"link={link!r}" for link in others]
        other = f"try {joined(links)} and compare fit.aic, or " if links else ""
        advice = (
            f"Effects are {'larger' if growth > 0 else 'smaller'} where predictions are large: {other}add the "
            "interaction or the covariate that is missing."
        )
    found = f"effects change by {written(100.0 * growth, '+.2g')} % per standard deviation of the predictions"
    return Finding(severity, "link", found, advice, subject="predictions", value=growth, p_value=p)


def _ends(fit: GlmmFit, observed: float, draws: Array) -> Finding:
    if not np.isfinite(observed):
        return Finding("skipped", "ends", "not judged", "Single answers are always 0 or 1.", subject="cells")
    usual, p = float(draws.mean()), _tested(observed, draws, both=False)
    severity = _severity(p, matters=observed - usual >= SHARE_NOTE)
    kind = "all right or all wrong" if fit.family.binomial else "0"
    advice = f"As many cells are {kind} as in the model."
    if severity != "fine":
        advice = f"More cells are {kind} than in the model: settle the dispersion first. " + (
            "Then look for items that some models always or never solve, and add what they have in common."
            if fit.family.binomial
            else "Zeros of another origin are a question of their own: is there any (family='binomial'), then how many."
        )
    found = f"{percent(observed)} of the cells, {percent(usual)} in the draws"
    return Finding(severity, "ends", found, advice, subject="cells", value=observed, p_value=p)


def _outlying_cell(fit: GlmmFit, observed: float, draws: Array) -> Finding:
    if not np.isfinite(observed):
        return Finding("skipped", "outlier", "not judged", _SATURATED, subject="cells")
    r = pearson_residuals(fit)
    i = int(np.abs(r).argmax())
    row = fit.cells.frame.iloc[i]
    where = " and ".join(f"{name} = {format_level(row[name])}" for name in fit.cells.names) or "the only cell"
    found = f"{format_number(float(r[i]), 2)} standard deviations"
    return _outlier("cells", where, found, _tested(observed, draws, both=False), _largest_share(r))


def _of_effects(fit: GlmmFit, subject: str, both: Callable[[str, str], tuple[float, Array]]) -> tuple[Finding, ...]:
    """Skewness and largest of the predicted effects of one column of the random part."""
    term, column, u = _effects(fit)[subject]
    group = fit.design.random[term]
    skewness, draws = both("skewness", subject)
    if not np.isfinite(skewness):
        few = f"{len(u)} levels are too few to judge a shape; the tests rely on normality here."
        advice = few if len(u) < FEWEST_OF_SHAPE else "The variance is estimated as zero, so there is nothing to judge."
        return (Finding("skipped", "skewness", "not judged", advice, subject=subject),)
    p = _tested(skewness, draws, both=True)
    matters = abs(skewness) >= SKEW_NOTE and len(u) < COCHRAN * skewness**2
    cancels = bool(reach(fit)[term][column] < REACH)
    severity = _severity(p, matters=matters and not cancels)
    advice = "No more skewed than normal effects are here."
    if severity != "fine" and cancels:
        advice = (
            "Skewed, but these effects cancel in the differences on the scale of the link. Means that average over "
            "them, type='response', are rough."
        )
    elif severity != "fine":
        advice = (
            f"Skewed: means over few levels and their tests are rough. Add as a covariate what the "
            f"{'large' if skewness > 0 else 'small'} effects have in common, and confirm with "
            f"{advised('sign_flip_test')}."
        )
    found = f"skewness {format_number(skewness, 2)}"
    shape = Finding(severity, "skewness", found, advice, subject=subject, value=skewness, p_value=p)
    i = int(np.abs(u).argmax())
    where = f"{group.group} = {format_level(group.levels[i])}"
    share, draws = both("outlier", subject)
    found = f"effect {format_number(float(u[i]), 2)}"
    return shape, _outlier(subject, where, found, _tested(share, draws, both=False), share)


def _outlier(subject: str, where: str, found: str, p: float, share: float) -> Finding:
    """The largest of the residuals, or of the effects, with its share in the sum of their squares."""
    severity = _severity(p, matters=share >= _MATTERS)
    advice = "None stands out."
    if severity != "fine":
        advice = f"{where} stands out: look at these rows, correct what is an error, and else report both fits."
    found = f"{where}: {found}, {percent(share)} of the sum of squares"
    return Finding(severity, "outlier", found, advice, subject=subject, value=share, p_value=p)
