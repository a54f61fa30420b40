"""One mixed model for the question whether a metafeature decides which of two algorithms is better.

``score ~ algorithm * metafeature`` with advantages that differ from benchmark to benchmark at each level. The contrast
of contrasts, (second - first algorithm) at one level minus that at another, is estimated for the population of
benchmarks and, by partial pooling, for each benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
from lmemtest.bench.benchmark.pair_scores import (
    Axes,
    contrasts_answer,
    level_pairs,
    n_budgets,
    of_pair,
    pair_scores,
    ran,
)
from lmemtest.core.hints import guided
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, free_name, resolve_rng
from lmemtest.core.words import format_level, format_number, p_text, percent
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.intervals.partial_pooling import FEWEST, Mixture, pool
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.means.empirical_bayes import fit_scaled_f, squeeze
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Mask
    from lmemtest.core.result import Answer
    from lmemtest.lmm.model import LmmFit


METHODS = ("model", "outcomes")
# Beyond this the covariances of the advantages at the levels (10 for four) eat the benchmarks.
_MOST_LEVELS, _FEWEST_BENCHMARKS = 4, 6
# Contrasts above which the joint integral gives way to Šidák's inequality, which costs little width there.
_JOINT = 60
_SMALL = 0.02  # of the mean variance of a level: below it a benchmark's own counts as this
_ROUNDING = 1e-12  # of the largest score: differences that vary less do not vary


@guided
@one_blas_thread()
def metafeature_effect(
    runs: Runs,
    algorithms: Sequence[Any],
    metafeature: str,
    *,
    method: str = "model",
    levels: Sequence[Any] | None = None,
    alpha: float = 0.05,
    rng: int | np.random.Generator | None = None,
    dispersion: str | None = None,
    test: str | None = None,
    unit: str | None = None,
    adjust: str | None = None,
    n_draws: int | None = None,
) -> Answer:
    """Compare the advantage of one algorithm over another between the levels of a metafeature.

    Parameters
    ----------
    runs : Runs
        With benchmark and seed. Scores must compare across benchmarks (see `Runs.normalize`); those of "outcomes" need
        not.
    algorithms : sequence of two levels of the algorithm column
        Advantages are of the first over the second.
    metafeature : str
        The column whose levels are compared.
    method : {"model", "outcomes"}
        By how much the first is better, from one mixed model; or how often, from a test at each benchmark, level and
        budget.
    levels : sequence, optional
        Levels to compare and their order: a contrast is a later level minus an earlier one. By default all, sorted
        (or in the order of the categories).
    alpha : float in (0, 1)
        One minus the level of the intervals, and the level of the decisions.
    rng : int, numpy.random.Generator or None
        Points of the joint integrals where they are not quadratures; signs of the residuals of "outcomes".
    dispersion : {"benchmark"}, optional
        Of "model": over benchmarks, those on which runs scatter more count less. The intervals of the benchmarks have
        the noise of each in any case.
    test, unit, adjust, n_draws
        Of "outcomes", see `lmemtest.bench.benchmark.metafeature_outcomes.metafeature_outcomes`.

    Returns
    -------
    Answer
        Advantages are of the first algorithm over the second, on the scale of the score: positive is better. Tables:

        - ``contrasts``: one row per benchmark and pair of levels: ``benchmark``, ``level``, ``reference``, ``raw`` (the
          contrast of the benchmark's own means), ``contrast`` (drawn towards the mean over benchmarks), ``se`` (of its
          error), ``own_share`` (what ``raw`` counts in ``contrast``; the rest is the mean), ``p_value``, ``ci_low``,
          ``ci_high`` (simultaneous over all rows), ``deviation`` (from the mean over benchmarks), ``p_others`` (of no
          deviation, all rows together), ``singled_out``;
        - ``advantages``: one row per level: ``level``, ``advantage`` (over benchmarks), ``se``, ``df``, ``t_ratio``,
          ``p_value``, ``ci_low``, ``ci_high``;
        - ``overall``: one row per pair of levels: ``level``, ``reference``, ``contrast`` (of the advantages), ``se``,
          ``df``, ``t_ratio``, ``p_value``, ``ci_low``, ``ci_high``.

        Values: ``algorithms``, ``metafeature``, ``levels``, ``benchmarks``, ``alpha``, ``method``; ``singled_out``, the
        benchmarks that are singled out for every pair of levels that differ over benchmarks, and ``rule``, how;
        ``fit``, the model of the runs' means over budgets, and its ``formula``. The tables of "outcomes" are those of
        `lmemtest.bench.benchmark.metafeature_outcomes.metafeature_outcomes`.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a name is unknown, or an option belongs to the other method.
    DataError
        If the metafeature is constant within benchmarks, an algorithm is missing on a level, there is one run per
        instance, or no budget is shared; with "model" if there are fewer than three benchmarks.

    Notes
    -----
    The response is the mean of each run over the budgets that all runs of its benchmark have, so budgets are not
    counted as repetitions. With up to four levels and six or more benchmarks the model is ``score ~ algorithm + m +
    algorithm:m + (0 + m | benchmark) + (0 + m:half | benchmark) + (1 | benchmark:m:seed)`` with ``half`` 1/2 for the
    first algorithm and -1/2 for the second: benchmarks have difficulties and differences at each level, which depend
    on each other between levels in any way. Otherwise the levels of a benchmark differ to the same degree: ``(1 |
    benchmark) + (1 | benchmark:m) + (0 + half | benchmark) + (0 + half | benchmark:m) + (1 | benchmark:m:seed)``. (The
    recommended model's ``(0 + m | benchmark:algorithm)`` is the same for two algorithms but for one restriction,
    difficulties that vary at least half as much as the differences; normalised scores break it.)

    The contrast of a benchmark is its own one, by generalised least squares with the model's variances of runs and
    seeds, drawn towards the mean over benchmarks (partial pooling). Its variance is that of the runs at each of its
    two levels: the scatter of the benchmark's own runs there, shrunk towards that of all benchmarks at the level
    (Smyth 2004, doi:10.2202/1544-6115.1027), and never below it, with Satterthwaite's degrees of freedom. How much
    contrasts vary between benchmarks is not taken as known: the variance is integrated out, so that intervals hold at
    least as often as stated over benchmarks like these, also where it is estimated as zero. Intervals and p-values of a
    table are simultaneous, by Šidák's inequality. A benchmark that is far from the others is drawn towards them, and
    its interval is then too optimistic.

    References
    ----------
    Morris & Tang (2011), Statist. Sci. 26, 271-287; Barr, Levy, Scheepers & Tily (2013), doi:10.1016/j.jml.2012.11.001

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8)
    >>> found = metafeature_effect(runs, algorithms=("HB+prior", "HB"), metafeature="prior", rng=1)
    >>> found.overall[["level", "reference", "contrast", "p_value"]].round(4)
      level reference  contrast  p_value
    0  good       bad    0.0024   0.0002
    """
    options: dict[str, dict[str, Any]] = {
        "model": {"dispersion": dispersion},
        "outcomes": {"test": test, "unit": unit, "adjust": adjust, "n_draws": n_draws},
    }
    by_method = {
        name: {key: value for key, value in of_method.items() if value is not None}
        for name, of_method in options.items()
    }
    of_method = by_method.pop(check_choice(method, "method", METHODS))
    for other, wrong in by_method.items():
        if wrong:
            raise ArgumentError(f"{next(iter(wrong))} is for method={other!r}, got method={method!r}. Leave it out.")
    compare = metafeature_outcomes if method == "outcomes" else _by_model
    return compare(runs, algorithms, metafeature, levels=levels, alpha=alpha, rng=rng, **of_method)


def _by_model(
    runs: Runs,
    algorithms: Sequence[Any],
    metafeature: str,
    *,
    levels: Sequence[Any] | None,
    dispersion: str | None = None,
    alpha: float,
    rng: Any,
) -> Answer:
    alpha = check_fraction(alpha, "alpha")
    generator = resolve_rng(rng)
    if dispersion is not None and not (isinstance(dispersion, str) and dispersion == "benchmark"):
        raise ArgumentError(f"dispersion must be 'benchmark' or None, got {dispersion!r}.")
    losses, axes, notes = pair_scores(runs, algorithms, metafeature, levels)
    if len(losses) < FEWEST:
        raise DataError(
            f"A model of benchmarks as a sample needs three or more, there are {len(losses)}. "
            "method='outcomes' compares levels on each benchmark separately."
        )
    # the mean of each run over the budgets; 0 where there is no run
    y, there = np.nansum(losses, axis=4) / n_budgets(losses)[:, None, None, None], ran(losses)
    first, second = map(format_level, axes["algorithm"])
    _check_difference(y, there, first, second)
    # 1/2 for the first algorithm and -1/2 for the second: its random slope is the difference
    half = free_name("half", runs.columns)
    b, v, a, s = np.nonzero(there)
    table = {
        runs.benchmark: _factor(b, axes["benchmark"]),
        metafeature: _factor(v, axes["level"]),
        runs.algorithm: _factor(a, axes["algorithm"]),
        runs.seed: _factor(s, axes["seed"]),
        half: 0.5 - a,
        runs.score: y[b, v, a, s] if runs.direction == "minimize" else -y[b, v, a, s],
    }
    roles = {**runs.roles(), "budget": None, "metafeatures": (metafeature,), "ignore": (), "failed": None}
    paired = bool(there.all(axis=2).any())
    formula = _formula(runs, metafeature, half, axes, paired=paired)
    fit = fit_lmm(formula, type(runs)(pd.DataFrame(table), **roles), dispersion=runs.benchmark if dispersion else None)
    advantages, overall = _over_benchmarks(fit, runs, metafeature, axes, alpha, generator)
    contrasts, how = _of_benchmarks(fit, losses, y, metafeature, axes, overall, alpha)
    rule = (
        f"Rule: a benchmark is singled out if the contrast over benchmarks differs from zero at "
        f"{percent(alpha)}, and the benchmark's own one, by itself, is not significant in this direction but "
        f"differs from the mean over benchmarks in the other (one-sided, {percent(alpha)} each)."
    )
    fact = (
        f"{fit.formula}; mean score of each run over the budgets, REML. Contrast: advantage of {first} over "
        f"{second} at the level minus that at the reference, on the scale of the score."
    )
    return contrasts_answer(
        axes,
        metafeature,
        {"contrasts": contrasts, "advantages": advantages, "overall": overall},
        alpha=alpha,
        rule=rule,
        values={"method": "model", "fit": fit, "formula": fit.formula},
        title=f"{first} against {second}: contrasts of advantages by {metafeature}",
        facts=(fact, rule),
        findings=_sentences(advantages, overall, contrasts, first, second, alpha),
        notes=(*notes, *how, *fit.notes),
        formats={"p_others": "p"},
    )


def _sentences(
    advantages: pd.DataFrame, overall: pd.DataFrame, contrasts: pd.DataFrame, first: str, second: str, alpha: float
) -> tuple[str, ...]:
    """Plain sentences: the advantage at each level, its contrast, and the benchmarks that do not follow."""

    def sized(row: dict[Any, Any], name: str) -> tuple[str, str]:
        """A number with its interval and p-value: its size, and with its sign."""
        signed = [float(row[key]) for key in (name, "ci_low", "ci_high")]
        size = [-signed[0], -signed[2], -signed[1]] if signed[0] < 0 else signed
        texts = []
        for numbers in (size, signed):
            value, low, high = map(format_number, numbers)
            texts.append(f"{value} ({percent(1.0 - alpha)} CI {low} to {high}, {p_text(row['p_value'])})")
        return texts[0], texts[1]

    out = []
    for row in advantages.to_dict("records"):
        level, (size, signed) = format_level(row["level"]), sized(row, "advantage")
        if below(row["p_value"], alpha):
            side = "better" if row["advantage"] > 0 else "worse"
            out.append(f"At {level} {first} is {side} than {second} by {size}.")
        else:
            out.append(f"At {level} {first} and {second} are not significantly different (advantage {signed}).")
    for row in overall.to_dict("records"):
        level, reference = format_level(row["level"]), format_level(row["reference"])
        size, signed = sized(row, "contrast")
        if not below(row["p_value"], alpha):
            out.append(f"The advantage at {level} is not significantly different from that at {reference} ({signed}).")
            continue
        part = of_pair(contrasts, row)
        odd = [format_level(name) for name in part["benchmark"][part["singled_out"]]]
        clear = int((below(part["p_value"], alpha) & (part["contrast"] * row["contrast"] > 0)).sum())
        side = "smaller" if row["contrast"] < 0 else "larger"
        tail = f"; singled out: {', '.join(odd)}" if odd else "; none is singled out"
        out += [
            f"The advantage is {side} at {level} than at {reference} by {size}.",
            f"On {clear} of {len(part)} benchmarks the interval is on this side of zero{tail}.",
        ]
    return tuple(out)


def _check_difference(y: Array, there: Mask, first: str, second: str) -> None:
    """Refuse runs without chance: the difference of two paired runs is the same all over each instance.

    The residual variance would be zero, and what the search then finds, and whether it stops, depends on the processor.
    """
    paired = there.all(axis=2)
    if paired.sum(axis=2).max() > 1:
        of_runs = np.where(paired, y[:, :, 0] - y[:, :, 1], np.nan)
    else:
        of_runs = np.where(there, y, np.nan)
    spread = np.fmax.reduce(of_runs, axis=-1) - np.fmin.reduce(of_runs, axis=-1)
    if np.nanmax(spread) <= _ROUNDING * np.abs(y).max():
        raise DesignError(
            f"the difference between {first} and {second} does not vary between runs, so there is nothing to judge it "
            "by. Check for constant scores, for seeds that change nothing and for an algorithm that is a copy of "
            "another: lmemtest.check(runs)."
        )


# ---------------------------------------------------------------------- the model


def _formula(runs: Runs, metafeature: str, half: str, axes: Axes, *, paired: bool) -> str:
    """The model, its terms from benchmarks to runs; the last one is the only one about runs."""
    columns = (runs.score, runs.algorithm, str(runs.benchmark), str(runs.seed), metafeature, half)
    y, a, b, s, m, h = map(quote_name, columns)
    rich = len(axes["level"]) <= _MOST_LEVELS and len(axes["benchmark"]) >= _FEWEST_BENCHMARKS
    groups = (
        [f"(0 + {m} | {b})", f"(0 + {m}:{h} | {b})"]
        if rich
        else [f"(1 | {b})", f"(1 | {b}:{m})", f"(0 + {h} | {b})", f"(0 + {h} | {b}:{m})"]
    )
    shared = [f"(1 | {b}:{m}:{s})"] if paired else []
    return " + ".join([f"{y} ~ {a} + {m} + {a}:{m}", *groups, *shared])


def _factor(codes: Any, levels: tuple[Any, ...]) -> Any:
    """Levels by their text: numbers that are names must not become a slope."""
    return pd.Categorical.from_codes(codes, categories=pd.Index([format_level(level) for level in levels]))


# ---------------------------------------------------------------------- over benchmarks


def _over_benchmarks(
    fit: LmmFit, runs: Runs, metafeature: str, axes: Axes, alpha: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The advantage over benchmarks at each level and its contrasts, each with simultaneous intervals."""
    levels, k = axes["level"], len(axes["level"])
    at = [{metafeature: _factor(np.arange(k), levels), runs.algorithm: _factor(np.full(k, a), axes["algorithm"])}
          for a in (0, 1)]  # fmt: skip
    first, second = (fit.design.rows(pd.DataFrame(columns)) for columns in at)
    em = Estimates.of(
        {"level": [format_level(level) for level in levels]},
        b=fit.params,
        V=fit.cov_params(),
        df=lambda L: np.asarray(fit.df(L, "satterthwaite"), dtype=float),
        L=second - first if runs.direction == "minimize" else first - second,  # advantages of the first
        score=runs.score,
        alpha=alpha,
    )
    late, early = np.array(level_pairs(levels)).T
    unit = np.eye(k)
    tables = []
    for rows in (unit, unit[late] - unit[early]):
        coefficients = pd.DataFrame(rows, index=[str(i) for i in range(len(rows))], columns=list(em.labels()))
        adjust = "mvt" if len(rows) <= _JOINT else "sidak"
        tables.append(em.contrast(coefficients, adjust=adjust, rng=rng).to_frame().drop(columns="contrast"))
    advantages, overall = tables
    advantages.insert(0, "level", list(levels))
    overall.insert(0, "level", [levels[i] for i in late])
    overall.insert(1, "reference", [levels[i] for i in early])
    return advantages.rename(columns={"estimate": "advantage"}), overall.rename(columns={"estimate": "contrast"})


# ---------------------------------------------------------------------- each benchmark


def _of_benchmarks(
    fit: LmmFit, losses: Array, y: Array, metafeature: str, axes: Axes, overall: pd.DataFrame, alpha: float
) -> tuple[pd.DataFrame, list[str]]:
    """Contrasts of every benchmark that has both levels, pooled for each pair of levels; and notes.

    The contrasts are pooled by themselves and not predicted from the model's random effects: where the correlation of a
    benchmark's advantages at two levels is estimated as one, such predictions claim to know the contrast from the
    advantage without error (their simultaneous 95 % intervals covered in 0 to 30 % of such tables).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.nansum(losses, axis=(3, 4)) / np.isfinite(losses).sum(axis=(3, 4))
    raw = means[:, :, 1] - means[:, :, 0]  # of the means of all runs
    there, levels = ran(losses), axes["level"]
    advantages, variance, df = _own_advantages(fit, y, there, _run_variances(fit, axes["benchmark"])[:, None])
    pairs, compared = level_pairs(levels), np.asarray(there.any(axis=(2, 3)))
    members = [np.flatnonzero(compared[:, late] & compared[:, early]) for late, early in pairs]
    m = sum(len(b) for b in members if len(b) >= FEWEST)
    parts, notes = [], []
    for (late, early), b, general in zip(pairs, members, overall.to_dict("records"), strict=True):
        level, reference = levels[late], levels[early]
        if len(b) < FEWEST:
            notes.append(
                f"Only {len(b)} benchmarks have both {format_level(level)} and {format_level(reference)}: too few to "
                "pool their contrasts, which are left out."
            )
            continue
        parts_of = np.concatenate([variance[b, late], variance[b, early]], axis=1)
        freedom = np.concatenate([df[b, late], df[b, early]], axis=1)
        total = parts_of.sum(axis=1)
        pooled = pool(
            advantages[b, late] - advantages[b, early], total, total**2 / (parts_of**2 / freedom).sum(axis=1)
        )  # Satterthwaite
        part = pd.DataFrame({"benchmark": [axes["benchmark"][i] for i in b], "level": level, "reference": reference})
        part["raw"] = raw[b, late] - raw[b, early]
        parts.append(_tested(part, pooled, general, alpha, m))
    if not parts:
        raise DataError(
            f"No two levels of {metafeature} were run on {FEWEST} common benchmarks, so nothing can be "
            "pooled. method='outcomes' compares levels on each benchmark separately."
        )
    notes.append(
        f"The {m} intervals of the benchmarks are simultaneous by Šidák's inequality, have the noise of each level and "
        "benchmark, and allow for how little is known of the variation between benchmarks."
    )
    return pd.concat(parts, ignore_index=True), notes


def _tested(
    part: pd.DataFrame, pooled: tuple[Mixture, Mixture, Array], general: dict[Any, Any], alpha: float, m: int
) -> pd.DataFrame:
    """Contrasts of one pair of levels with intervals and tests that are simultaneous over all `m` rows."""
    values, deviations, own_share = pooled
    tail = -0.5 * np.expm1(np.log1p(-alpha) / m)  # Šidák's inequality
    # the other benchmarks give the direction, so the tests of whether this one has it, and less of it, are one-sided
    positive = general["contrast"] > 0
    against = values.cdf(0.0) if positive else values.sf(0.0)
    no_less = deviations.sf(0.0) if positive else deviations.cdf(0.0)
    return part.assign(
        contrast=values.mean,
        se=values.sd,
        own_share=own_share,
        p_value=adjust_raw(values.p_value(), "sidak", m),
        ci_low=values.quantile(tail),
        ci_high=values.quantile(1.0 - tail),
        deviation=deviations.mean,
        p_others=adjust_raw(deviations.p_value(), "sidak", m),
        singled_out=below(general["p_value"], alpha) & ~below(against, alpha) & below(no_less, alpha),
    )


def _own_advantages(fit: LmmFit, y: Array, there: Mask, run: Array) -> tuple[Array, Array, Array]:
    """Advantages by the runs of a benchmark alone ``(m, k)``, the parts of their variances, and df of these.

    Runs of both algorithms with one seed share its effect; the others do not. Generalised least squares for the two
    means with the variances of runs (`run`, on each benchmark) and of seeds of the fit. The parts ``(m, k, 3)`` are
    those of the pairs and of the single runs of each algorithm, each as large as the runs of that kind at that level
    show.
    """
    both, compared = np.asarray(there.all(axis=2))[:, :, None, :], np.asarray(there.any(axis=(2, 3)))
    paired, single = there & both, there & ~both
    seed = fit.covariances[-1][0, 0] if both.any() else 0.0
    n_paired, n_single = paired.sum(axis=3)[:, :, 0], single.sum(axis=3)
    total, across = run + seed, run * (run + 2.0 * seed)  # a pair has the covariance [[total, seed], [seed, total]]
    of_pair = np.stack([np.stack([total, -seed + 0.0 * run], -1), np.stack([-seed + 0.0 * run, total], -1)], -1)
    of_pair /= across[..., None, None]
    information = n_paired[..., None, None] * of_pair + n_single[..., None] / total[..., None, None] * np.eye(2)
    score = np.einsum("bkij,bkj->bki", of_pair, (y * paired).sum(axis=3)) + (y * single).sum(axis=3) / total[..., None]
    information[~compared] = np.eye(2)
    covariance = np.linalg.inv(information)
    means = np.einsum("bkij,bkj->bki", covariance, score)
    weight = covariance @ np.array([-1.0, 1.0])
    by_pairs = n_paired * np.einsum("bki,bkij,bkj->bk", weight, np.broadcast_to(of_pair, information.shape), weight)
    parts = np.concatenate([by_pairs[..., None], n_single * weight**2 / total[..., None]], axis=2)
    # scatter of differences within pairs, and of the single runs of each algorithm, relative to the model's
    squares = np.concatenate(
        [
            (_about_mean(y[:, :, 0] - y[:, :, 1], paired[:, :, 0]) / (2.0 * run))[..., None],
            _about_mean(y, single) / total[..., None],
        ],
        axis=2,
    )
    df = np.concatenate([n_paired[..., None], n_single], axis=2) - 1.0
    ratio, freedom = _scatter(squares, np.where(compared[..., None], np.maximum(df, 0.0), 0.0))
    return means[..., 1] - means[..., 0], parts * ratio, freedom


def _about_mean(y: Array, which: NDArray[np.bool_]) -> Array:
    """Sum of squares about the mean over the last axis."""
    mean = (y * which).sum(axis=-1, keepdims=True) / np.maximum(which.sum(axis=-1, keepdims=True), 1)
    return np.asarray((np.where(which, y - mean, 0.0) ** 2).sum(axis=-1))


def _scatter(squares: Array, df: Array) -> tuple[Array, Array]:
    """Variances over those of the model, each level and kind of runs by itself, and their degrees of freedom.

    Those of the benchmarks, along the first axis, are shrunk towards each other, and none falls below their mean:
    with two seeds a benchmark can look quiet that is not.
    """
    all_df = df.sum(axis=0)
    common = np.where(all_df > 0, squares.sum(axis=0) / np.maximum(all_df, 1.0), 1.0)
    of_instance = np.moveaxis(np.where(df > 0, squares / np.maximum(df, 1.0), np.nan), 0, -1)
    d = np.moveaxis(np.where(df > 0, df, 1.0), 0, -1)
    floor = _SMALL * common[..., None]
    location, prior_df = fit_scaled_f(np.fmax(of_instance, floor), d)
    prior = np.where(np.isfinite(prior_df), location, common)[..., None]
    pooled = np.where(np.isnan(of_instance), prior, of_instance)
    value, freedom = squeeze(pooled, d, prior, prior_df[..., None], among=len(df))
    most = np.where(all_df > 0, all_df, max(df.sum(), 1.0))
    return np.maximum(np.moveaxis(value, -1, 0), common), np.minimum(np.moveaxis(freedom, -1, 0), most)


def _run_variances(fit: LmmFit, benchmarks: tuple[Any, ...]) -> Array:
    """``(m,)``: variance of a run on each benchmark."""
    variances = fit.residual_variances
    if fit.dispersion is None:
        return np.full(len(benchmarks), float(variances.iloc[0]))
    return variances.loc[[format_level(name) for name in benchmarks]].to_numpy(dtype=float)
