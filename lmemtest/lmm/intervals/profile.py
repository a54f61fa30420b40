"""Profile-likelihood intervals of variance components and fixed effects.

A standard error describes a parabola. The likelihood of a standard deviation is none, least of all with few levels
or near zero: it rises steeply below the estimate and slowly above it. Profiling keeps the likelihood as it is: the
interval holds every value that a likelihood-ratio test does not reject when all other parameters may adapt to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.core.hints import guided
from lmemtest.core.replicates import check_replicates, progress_bar
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_flag, check_fraction, several
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.lmm.engine.profile import Target, has_variance
from lmemtest.lmm.engine.profile_path import Path, follow, follow_deviance
from lmemtest.lmm.model.given import check_fit

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array


KINDS = ("sd", "corr", "residual sd", "fixed", "linear")
_RESTARTS = 3  # better optima to go on from before giving up
_FEW = 10  # levels up to which the likelihood's intervals of a variance are too short (docs/developers/intervals.md)
# First steps that measure the curvature at a standard deviation of a generalised model: a share of it, the least.
_STEP_OF_SD, _SMALLEST_STEP = 0.02, 0.05
_KEYS = ("kind", "group", "name1", "name2")


_Key = tuple[str, str, str, str]  # kind, group and both names, as in the table
# A row of the result, what the engine holds (None: undefined, with the reason), and the estimate where it has no path.
_Parameter = tuple[_Key, Target | None, str, float]


def label_of(kind: str, group: str, name1: str, name2: str) -> str:
    """What a parameter is called in one line.

    >>> label_of("corr", "Subject", "Intercept", "Days"), label_of("residual sd", "Residual", "", "")
    ('corr Intercept, Days | Subject', 'residual sd')
    """
    if kind == "sd":
        return f"sd {name1} | {group}"
    if kind == "corr":
        return f"corr {name1}, {name2} | {group}"
    if kind == "residual sd":
        return f"residual sd | {name1}" if name1 else "residual sd"
    return name1


def cut_of(level: float) -> float:
    """Size of zeta at which an interval ends: the normal quantile."""
    return float(special.ndtri(0.5 * (1.0 + level)))


@guided
@one_blas_thread()
def profile(
    fit: Any,
    parameters: str | Sequence[str] | None = None,
    *,
    linear: Mapping[str, Sequence[float]] | None = None,
    alpha: float = 0.05,
    reml: bool = False,
    progress: bool | None = None,
) -> Answer:
    """Profile-likelihood intervals of standard deviations, correlations and fixed effects.

    Parameters
    ----------
    fit : LmmFit
        A fitted model. Of a `GlmmFit` all but correlations have profiles, of Laplace's likelihood or quadrature, with
        the size of a negative binomial held; where effects are separated, with the pseudo-answers that keep their
        estimates finite (Heinze & Schemper 2002).
    parameters : str or sequence of str, optional
        What to profile: a kind (``"sd"``, ``"corr"``, ``"residual sd"``, ``"fixed"``), a group of the random part
        (``"benchmark:seed"``), a fixed effect (``"algorithm[T.PB]"``), or a label as the result prints it
        (``"sd Intercept | benchmark"``). By default everything.
    linear : mapping of str to (p,) float, optional
        Linear functions of the fixed effects by name: coefficients over all columns of the design, in the order of
        ``fit.params``. Given alone, only these are profiled.
    alpha : float in (0, 1)
        One minus the confidence level of each interval.
    reml : bool
        Profile the restricted likelihood, for standard deviations and correlations only. The default, the
        likelihood, is what lme4 profiles.
    progress : bool, optional
        Progress bar on standard error for what takes more than two seconds; by default on a terminal.

    Returns
    -------
    Answer
        One row per parameter: kind, group, name1, name2, estimate, ci_low, ci_high. ``to_frame("curves")`` has the
        profiles, every point an exact minimum: the same four names, value (of the parameter), zeta (signed square root
        of the rise of the deviance above its minimum), slope (of zeta in value; NaN at a bound). A straight line means
        that a symmetric interval is as good. Values: ``alpha``, ``cut`` (size of zeta at the ends of the intervals),
        ``likelihood`` (what was profiled; the estimates maximise it), ``labels`` (one line per row, as ``parameters``
        takes them), ``formula``, ``evaluations`` of the likelihood.

    Raises
    ------
    ArgumentError
        If `fit` is not a fit, a name is unknown, or an option breaks its rule; if a variance of a `GlmmFit` is asked.
    EstimationError
        If better and better optima keep being found, so that the model has no settled maximum.

    Notes
    -----
    The deviance ``D(c)``, -2 log-likelihood minimised over everything else with the parameter held at ``c``, gives
    ``zeta(c) = sign(c - estimate) sqrt(D(c) - D(estimate))``. The interval ends where ``zeta`` meets the normal
    quantile. Every ``D(c)`` is an exact minimum and the ends are roots found in a bracket; nothing is interpolated.
    A fit by the other likelihood is refitted, and a note says so.

    A standard deviation has the lower end 0 exactly when ``D(0)`` is within the cut; a correlation likewise -1 or 1.
    A correlation with an effect whose variance is zero is undefined (NaN). Where a value is on its boundary the
    interval is conservative: the reference distribution there is not the one that sets the cut.

    In a balanced layout of 6 groups of 5 rows with equal variances between and within, 95 % intervals of the group's
    standard deviation hold the truth with probability 0.906 by the likelihood and 0.943 by the restricted one; with
    20 groups 0.939 and 0.948.

    The cut does not know how few levels a group has: for fixed effects with few groups the intervals of
    `LmmFit.emmeans`, which have degrees of freedom, are the honest ones.

    References
    ----------
    Venzon & Moolgavkar (1988). A method for computing profile-likelihood-based confidence intervals. Applied
    Statistics 37, 87-94. doi:10.2307/2347496. Bates, Mächler, Bolker & Walker (2015), section 5.1.
    doi:10.18637/jss.v067.i01. Self & Liang (1987), on boundaries, doi:10.1080/01621459.1987.10478472. Heinze &
    Schemper (2002), on separation, doi:10.1002/sim.1047

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.lmm.intervals.profile import profile
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> fit = lt.fit_lmm("loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)", runs)
    >>> profile(fit, "sd").to_frame()[["group", "estimate", "ci_low", "ci_high"]].round(4)
                     group  estimate  ci_low  ci_high
    0            benchmark    0.2035  0.1537   0.2875
    1  benchmark:algorithm    0.0025  0.0021   0.0030
    """
    check_fit(fit, "fit")
    level = 1.0 - check_fraction(alpha, "alpha")
    reml = check_flag(reml, "reml")
    check_replicates(progress=progress)
    restricted = "restricted maximum likelihood" if fit.distribution == "normal" else "restricted pseudo-likelihood"
    names, again, notes = ("maximum likelihood", restricted), fit, []
    if fit.reml != reml:
        again = fit.refit(reml=reml)
        notes = [f"The fit is by {names[fit.reml]}; it was refitted by {names[reml]}, whose estimates these are."]
    wanted = _wanted(again, parameters, linear, reml=reml)
    with one_blas_thread():
        if fit.distribution == "normal":
            again, paths, more = _followed(again, wanted, cut=cut_of(level), reml=reml, progress=progress)
        else:
            paths, more = _followed_answers(again, wanted, cut=cut_of(level), progress=progress)
    notes += [*more, *_notes(paths)]
    if not reml:
        notes += _few_levels(again, paths)
    table, curves = _tables(paths)
    return profile_answer(
        table=table,
        curves=curves,
        alpha=alpha,
        likelihood=names[reml],
        formula=fit.label,
        evaluations=sum(path.evaluations for _, path in paths if path is not None),
        notes=tuple(notes),
    )


def profile_answer(
    *,
    table: pd.DataFrame,
    curves: pd.DataFrame,
    alpha: float,
    likelihood: str,
    formula: str,
    evaluations: int,
    notes: tuple[str, ...] = (),
) -> Answer:
    """The answer of `profile` from its tables."""
    level, restricted = 1.0 - alpha, "restricted " if "restricted" in likelihood else ""
    return Answer(
        question="profile",
        title="Profile likelihood",
        tables={"table": table, "curves": curves},
        values={
            "alpha": alpha,
            "cut": cut_of(level),
            "likelihood": likelihood,
            "labels": tuple(label_of(*(str(row[key]) for key in _KEYS)) for row in table.to_dict("records")),
            "formula": formula,
            "evaluations": evaluations,
        },
        facts=(
            f"{formula}; {100 * level:.4g} % intervals, not simultaneous, from the profile of the "
            f"{restricted}likelihood, cut at the chi-squared quantile with one degree of freedom.",
        ),
        notes=notes,
        figure="profile_plot",
    )


_Found = list[tuple[_Parameter, "Path | None"]]


# ---------------------------------------------------------------------- what to profile


def _all_parameters(fit: Any) -> list[_Parameter]:
    """Everything that has a profile: the random part, residuals, fixed effects."""
    out: list[_Parameter] = []
    for i, term in enumerate(fit.design.random):
        names = term.names
        alive = [has_variance(fit.problem, fit.optim.theta, i, j) for j in range(len(names))]
        out += [(("sd", term.group, name, ""), Target("sd", i, (j,)), "", np.nan) for j, name in enumerate(names)]
        for b, a in [] if term.diagonal else np.argwhere(np.tri(len(names), k=-1)).tolist():
            zero = " and ".join(names[j] for j in (a, b) if not alive[j])
            reason = f"the standard deviation of {zero} is estimated as zero" if zero else ""
            target = None if zero else Target("corr", i, (a, b))
            out.append((("corr", term.group, names[a], names[b]), target, reason, np.nan))
    many = fit.problem.n_strata > 1
    estimated = fit.residual_variances if fit.residual_variance is None else {}
    for stratum, (name, variance) in enumerate(estimated.items()):
        label, sd = str(name) if many else "", float(np.sqrt(variance))
        out.append((("residual sd", "Residual", label, ""), Target("residual sd", stratum=stratum), "", sd))
    rows = np.eye(len(fit.design.x_names))
    return out + [_linear(fit, "fixed", name, row) for name, row in zip(fit.design.x_names, rows, strict=True)]


def _linear(fit: Any, kind: str, name: str, row: Array) -> _Parameter:
    if fit.estimable(row)[0]:
        return (kind, "", name, ""), Target("linear", row=row[fit.problem.kept]), "", np.nan
    return (kind, "", name, ""), None, "the data do not identify it", np.nan


def _wanted(fit: Any, parameters: Any, linear: Any, *, reml: bool) -> list[_Parameter]:
    """The parameters of the names, in the order of the model, and the linear functions."""
    parameters_of_fit, functions = _all_parameters(fit), _functions(fit, linear)
    chosen = None if parameters is None else _selected(parameters_of_fit, parameters)
    fixed = [*(p for p in chosen or () if p[0][0] == "fixed"), *functions]
    if reml and fixed:
        raise ArgumentError(
            f"reml=True is for standard deviations and correlations, and {label_of(*fixed[0][0])!r} is a "
            "function of the fixed effects, which the restricted likelihood does not hold. Use reml=False, or "
            "emmeans() for intervals with degrees of freedom."
        )
    if fit.distribution != "normal":
        if reml or any(key[0] == "corr" for key, *_ in chosen or ()):
            raise ArgumentError(
                "profiles of a generalised model are of its fixed effects and standard deviations, by maximum "
                "likelihood: parameters='fixed', 'sd', or one of their names. For correlations take fit.bootstrap(...)."
            )
        if chosen is None and not functions:
            chosen = [p for p in parameters_of_fit if p[0][0] != "corr"]
        return [*(chosen or ()), *functions]
    if chosen is None:
        return functions or [p for p in parameters_of_fit if not (reml and p[0][0] == "fixed")]
    return chosen + functions


def _selected(every: list[_Parameter], parameters: Any) -> list[_Parameter]:
    names = [parameters] if isinstance(parameters, str) else parameters
    names = list(names) if several(names) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f"parameters must be names, for instance 'sd', 'fixed' or a group of the random part; got {parameters!r}."
        )
    chosen: list[_Parameter] = []
    for name in names:
        matches = [p for p in every if label_of(*p[0]) == name]
        matches = matches or [p for p in every if name in filter(None, p[0][:2])]
        if not matches and name == "corr":
            raise ArgumentError(
                "parameters='corr': this model has no correlations, because every random-effects term has one effect. "
                "Use 'sd'."
            )
        if not matches and name == "sd":
            raise ArgumentError("parameters='sd': this model has no random effects. Use 'residual sd' or 'fixed'.")
        if not matches:
            words = [(label_of(*key), key[1], key[0]) for key, *_ in every]
            labels, groups, kinds = (list(dict.fromkeys(filter(None, column))) for column in zip(*words, strict=True))
            raise ArgumentError(
                f"parameters: {name!r} is not a parameter of this model. Kinds: {', '.join(kinds)}. Groups: "
                f"{', '.join(groups)}. Parameters: {listed(labels)}.{suggest(name, [*labels, *groups, *kinds])}"
            )
        chosen += matches
    keys = [key for key, *_ in chosen]
    return [p for p in every if p[0] in keys]


def _functions(fit: Any, linear: Any) -> list[_Parameter]:
    if linear is None:
        return []
    names = fit.design.x_names
    if not isinstance(linear, Mapping) or not linear:
        raise ArgumentError(
            f"linear must be a dict of names to coefficients over {listed(names)}, got {type(linear).__name__}."
        )
    out = []
    for name, row in linear.items():
        try:
            values = np.asarray(row, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (len(names),) or not np.isfinite(values).all() or not values.any():
            raise ArgumentError(
                f"linear[{name!r}] must have {len(names)} finite coefficients that are not all zero, one for each of "
                f"{listed(names)}; got {row!r}."
            )
        out.append(_linear(fit, "linear", str(name), values))
    return out


# ---------------------------------------------------------------------- profiles


def _followed(
    fit: Any, wanted: list[_Parameter], *, cut: float, reml: bool, progress: bool | None
) -> tuple[Any, _Found, list[str]]:
    """All profiles; from a better optimum onwards where one turns up."""
    notes: list[str] = []
    for _ in range(_RESTARTS + 1):
        paths: _Found = []
        with progress_bar(len(wanted), progress, "Profiles") as advance:
            for parameter in wanted:
                path = None if parameter[1] is None else _path(fit, parameter, cut=cut, reml=reml)
                if path is not None and path.better is not None:
                    break
                paths.append((parameter, path))
                advance(1)
            else:
                return fit, paths, notes
        notes = [
            f"While {label_of(*parameter[0])} was profiled, a better optimum than the fit's was found (deviance lower "
            f"by {written(path.gain, '.3g')}). The model was fitted again from there, and these are its estimates; "
            "look at the fit's certificate(), and use restarts=5."
        ]
        fit = fit.refit(theta_start=fit.problem.to_user(fit.problem.split(path.better)[0]))
        now = {p[0]: p for p in _all_parameters(fit)}  # other variances may be zero
        wanted = [p if p[0][0] == "linear" else now[p[0]] for p in wanted]
    raise EstimationError(
        f"profiling '{fit.label}' met one better optimum after the other, so its likelihood has no settled maximum. "
        "Fit it with restarts=20, or simplify its random part."
    )


def _path(fit: Any, parameter: _Parameter, *, cut: float, reml: bool) -> Path:
    _, held, _, estimate = parameter
    assert held is not None
    try:
        return follow(fit.problem, fit.optim.theta, fit.optim.criterion, held, cut=cut, reml=reml)
    except np.linalg.LinAlgError as error:
        return Path(estimate=estimate, reasons=(str(error),))


def _followed_answers(
    fit: Any, wanted: list[_Parameter], *, cut: float, progress: bool | None
) -> tuple[_Found, list[str]]:
    """Profiles of a generalised model, with pseudo-answers where effects are separated."""
    paths: _Found = []
    kept = fit.problem.kept
    best, b, V = (
        fit.of_likelihood.deviance,
        fit.params.to_numpy()[kept],
        fit.cov_params().to_numpy()[np.ix_(kept, kept)],
    )
    with progress_bar(len(wanted), progress, "Profiles") as advance:
        for parameter in wanted:
            held = parameter[1]
            if held is None:
                paths.append((parameter, None))
            elif held.kind == "sd":
                paths.append((parameter, _path_of_sd(fit, held, best, cut)))
            else:
                deviance, se = partial(fit.deviance_at, held.row), float(np.sqrt(held.row @ V @ held.row))
                paths.append((parameter, follow_deviance(deviance, best, float(held.row @ b), se, cut=cut)))
            advance(1)
    prior = "The profile is of the likelihood with the pseudo-answers that keep separated effects finite."
    return paths, [prior] * bool(fit.prior.any())


def _path_of_sd(fit: Any, held: Target, best: float, cut: float) -> Path:
    """The profile of a standard deviation, whose standard error is that of the deviance as a parabola."""
    i, (j,) = held.term, held.effects
    deviance, sd = partial(fit.deviance_with_sd, i, j), float(np.sqrt(fit.covariances[i][j, j]))
    step = max(_STEP_OF_SD * sd, _SMALLEST_STEP)
    try:
        inside = sd > step
        second = (deviance(sd + step)[1] - (deviance(sd - step)[1] if inside else 0.0)) / (step * (1 + inside))
    except np.linalg.LinAlgError as error:
        return Path(estimate=sd, reasons=(str(error),))
    se = float(np.sqrt(2.0 / second)) if second > 0.0 else max(sd, _SMALLEST_STEP)
    return follow_deviance(deviance, best, sd, se, cut=cut, lowest=0.0)


# ---------------------------------------------------------------------- tables and words


def _tables(paths: _Found) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The intervals, and the points of the profiles."""
    import pandas as pd

    rows, points = [], []
    for (key, _, _, estimate), followed in paths:
        path = Path(estimate) if followed is None else followed
        named = dict(zip(_KEYS, key, strict=True))
        rows.append({**named, "estimate": path.estimate, "ci_low": path.low, "ci_high": path.high})
        for _, value, zeta, slope in path.points:
            points.append({**named, "value": value, "zeta": zeta, "slope": slope})
    return (
        pd.DataFrame(rows, columns=[*_KEYS, "estimate", "ci_low", "ci_high"]),
        pd.DataFrame(points, columns=[*_KEYS, "value", "zeta", "slope"]),
    )


def _notes(paths: _Found) -> list[str]:
    followed = [(p[0][0], label_of(*p[0]), path) for p, path in paths if path is not None]
    notes = [f"{label_of(*p[0])} is undefined: {p[2]}." for p, path in paths if path is None]
    zero = [label for kind, label, path in followed if kind == "sd" and path.at_bound[0]]
    if zero:
        notes.append(f"Zero is not excluded for {listed(zero)}: the lower end is 0.")
    correlations = [(label, path) for kind, label, path in followed if kind == "corr"]
    ends = [(label, (path.low, path.high)[i]) for label, path in correlations for i in (0, 1) if path.at_bound[i]]
    for value in (-1.0, 1.0):
        labels = [label for label, end in ends if end == value]
        if labels:
            notes.append(f"A correlation of {value:g} is not excluded for {listed(labels)}.")
    flat = [label for _, label, path in followed if path.flat]
    if flat:
        notes.append(
            f"The likelihood is flat at the estimate of {listed(flat)}: other values fit exactly as well, so the "
            "estimate is arbitrary. Leave out one of the terms that say the same."
        )
    for _, label, path in followed:
        notes += [f"{label}: {reason}." for reason in dict.fromkeys(path.reasons)]
    return notes


def _few_levels(fit: Any, paths: _Found) -> list[str]:
    """A warning that the likelihood, unlike the restricted one, takes variances for smaller than they are."""
    groups = {p[0][1] for p, _ in paths if p[0][0] == "sd"}
    few = {t.group: len(t.levels) for t in fit.design.random if t.group in groups and len(t.levels) <= _FEW}
    if not few:
        return []
    counts = listed(f"{group} has {n}" for group, n in few.items())
    closer = "reml=True comes" if fit.distribution == "normal" else "Estimates of method='pseudo' come"
    return [
        f"Few levels ({counts}): the likelihood takes their standard deviations for smaller than they are, and the "
        f"intervals hold the truth less often than stated. {closer} closer."
    ]
