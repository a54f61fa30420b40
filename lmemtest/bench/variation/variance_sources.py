"""Where the variation of the scores comes from: of runs, algorithms, families, benchmarks, seeds, budgets; of
trainings, the sources of randomness whose seeds a table names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.power.variance_components import TOGETHER, Pilot, VarianceComponents
from lmemtest.bench.variation.run_design import (
    EVERYTHING,
    FIXED,
    RunDesign,
    from_mean_squares,
    ratio_limits,
    run_design,
    run_variances,
)
from lmemtest.bench.variation.trainings import ALL, NOISE, RESIDUAL, in_residual, training_variances
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer, result
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_choice, check_column, check_columns, check_fraction, check_magnitude
from lmemtest.core.words import counted, format_level, format_number, joined, listed, p_text, percent
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.intervals.variance_intervals import METHODS, Combinations
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.intervals.variance_intervals import Factors, Stratum

ROLES = ("algorithm", "benchmark")
_SOURCES = ["source", "kind", "meaning", "variance", "share", "sd", "ci_low", "ci_high"]
_UNITS = ("data", "split")  # words in the name of the source that is the unit of the others by default
_LEAST = 1e-70  # range of the scores: fourth powers of smaller differences are no numbers


@result
class VarianceSources(Answer):
    """Variance of the scores by source; see `variance_sources` for its tables and values."""

    def components(self, *, algorithm: Any = None, benchmark: Any = None) -> VarianceComponents:
        """Components for planning a study like this one: see `power` and `plan`.

        Parameters
        ----------
        algorithm, benchmark : optional
            Of trainings, those of which one; variances are averaged over all that are left.

        Returns
        -------
        VarianceComponents
            Of runs, with the size of this study as the pilot's. Of trainings, the standard deviations of the sources,
            and the rest as residual, without ``interaction_sd``: the trainings of one benchmark say nothing of others.

        Raises
        ------
        ArgumentError
            If runs have several conditions or budgets, or one run of each algorithm on each benchmark; if there is no
            such algorithm or benchmark.
        """
        wanted = {"algorithm": algorithm, "benchmark": benchmark}
        wanted = {role: level for role, level in wanted.items() if level is not None}
        for role, level in wanted.items():
            if role not in self.sources:
                raise ArgumentError(f"{role}={level!r}: the study has no column {role!r}. Leave it out.")
            names = self.sources[role].unique().tolist()
            if level not in names:
                raise ArgumentError(f"{role} must be one of {listed(names)}, got {level!r}.")
        if self.of == "differences":
            components = _components_of_trainings(self.sources, self.designs, ())
            return replace(components, pilot=Pilot(n_algorithms=self.n_models, n_benchmarks=1, n_seeds=1.0))
        if self.of == "trainings":
            return _components_of_trainings(_rows(self.sources, wanted), _rows(self.designs, wanted), self.by)
        if self.n_conditions > 1 or self.n_budgets > 1:
            raise ArgumentError(
                "a study is planned at one budget and one level of each metafeature: keep one of each, one = "
                "runs.filter(...), and take variance_sources(one)."
            )
        variance = self.sources.groupby("kind")["variance"].sum()
        if "interaction" not in variance:
            raise ArgumentError(
                "with one run of each algorithm on each benchmark, the runs do not say how much an algorithm's "
                "advantage differs between benchmarks. Repeat runs with other seeds, or plan with "
                "VarianceComponents(...)."
            )
        kinds = {"interaction_sd": "interaction", "residual_sd": "run", "seed_sd": "seed", "benchmark_sd": "benchmark"}
        if "family_interaction" in variance:
            kinds |= {"family_interaction_sd": "family_interaction", "family_sd": "family"}
        return VarianceComponents(
            **{name: float(variance.get(kind, 0.0)) ** 0.5 for name, kind in kinds.items()},
            pilot=Pilot(
                n_algorithms=self.n_algorithms,
                n_benchmarks=self.n_places or self.n_benchmarks,
                n_seeds=self.n_seeds,
                n_families=self.n_families,
            ),
        )

    def project(
        self,
        *,
        current: Mapping[str, int] | None = None,
        budget: float | None = None,
        costs: Mapping[str, float] | None = None,
        at_most: Mapping[str, int] | None = None,
    ) -> Answer:
        """The standard error of a design with other numbers of units of each source; see `projection.project`."""
        from lmemtest.bench.variation.projection import project

        return project(self, current=current, budget=budget, costs=costs, at_most=at_most)


@guided
@one_blas_thread()
def variance_sources(
    runs: Runs | Any,
    *,
    sources: Sequence[str] | None = None,
    score: str | None = None,
    algorithm: str | None = None,
    benchmark: str | None = None,
    model: str | None = None,
    relative_to: str | None = None,
    method: str | None = None,
    alpha: float = 0.05,
) -> VarianceSources:
    """Take the variation of the scores apart by its sources.

    Parameters
    ----------
    runs : Runs, dataframe or mapping
        Runs with at least two benchmarks: the sources are algorithms, families (from five of them on), benchmarks,
        seeds, runs and budgets. Several budgets need a seed column, and every run at the same budgets. With `sources`,
        a table with one row per training; anything that Narwhals reads.
    sources : sequence of str, optional
        Columns with the seeds of the sources of randomness of a training ("data", "init", "order", "dropout",
        "tuning", ...): equal values are the same seed. The arguments that follow are for these.
    score : str
        Column of the score.
    algorithm, benchmark : str, optional
        Columns of pipelines and data sets: each combination is a study of its own.
    model : str, optional
        Column of models that answered alike, with `sources` such as item, prompt, judge, temperature: the variances
        are then of differences of models. Not with `algorithm` or `benchmark`.
    relative_to : str, optional
        Source whose variance is the unit of the others; by default the one with "data" or "split" in its name.
    method : {"bonett", "chi-squared"}
        Intervals of variances of samples: with the kurtosis of the scores (the default), or for normal scores.
    level : float in (0, 1)
        Level of each interval.

    Returns
    -------
    VarianceSources
        ``components()`` is what `power` and `plan` take; they take the result itself, too. Its table ``sources`` has
        one row per source. Of runs: ``source``, ``kind``, ``meaning``, ``variance``, ``share`` of the sum of all,
        ``sd`` with ``ci_low`` and ``ci_high`` (NaN for budgets); first the sources of the means of the runs from coarse
        to fine, then those of the budgets. ``balanced`` says whether they come from mean squares, else they are from a
        fit; ``n_algorithms``, ``n_benchmarks``, ``n_budgets``, ``n_conditions`` (combinations of metafeature levels
        that benchmarks go through), ``n_seeds`` (runs of an algorithm at one instance, the harmonic mean), and, where
        families are the sample, ``n_families`` and ``n_places`` (benchmarks, counted once for each of their families)
        are the size of the study.

        Of trainings the tables are

        - ``sources``: ``algorithm`` and ``benchmark`` where there are such columns, ``source``, ``kind`` ("source",
          "interaction", "together", "noise", "residual"), ``n`` (seeds, or trainings of the last two), ``df``,
          ``variance``, ``sd`` with ``ci_low`` and ``ci_high``; ``share`` of the sum of all rows and ``relative``, the
          variance over that of `relative_to`, each with ``_low`` and ``_high``; ``may_be_largest``, the part with the
          largest estimate and those whose variance over its own has an interval that reaches 1. What the table does not
          identify is NaN (False); shares have no interval where one of the parts has none;
        - ``at_once``: trainings in which several sources are new at once: ``sources``, ``n``, ``sd``, ``ci_low``,
          ``ci_high``; ``added_sd``, what these sources have added up; ``ratio`` of the two variances, ``ratio_low``,
          ``ratio_high``; ``p_raw`` of "they add up", and ``p_value`` (Holm, over all rows);
        - ``designs``: per algorithm and benchmark ``design`` ("one at a time" or "crossed"), ``n``, ``mean``,
          ``repeated`` (degrees of freedom of the noise), ``left_over`` (trainings that are not used);

        With `model` they are those of what a source adds to the score of one model beyond what it adds to all models; a
        difference of two has twice the variance. ``project()`` says what more units of each source would change.

        - ``scores``: the samples behind sources that vary one at a time or at once: ``source`` ("all at once" where
          every source is new), ``sample``, ``score`` (the mean of trainings with equal seeds).

    Raises
    ------
    ArgumentError, UnknownColumnError
        If `runs` is not Runs, has no benchmark column or a single benchmark; if an argument breaks its rule.
    DataError
        If runs were scored at different budgets, several budgets cannot be linked to runs, or scores never differ; if a
        score or a seed of a training is missing.
    DesignError
        If the seeds of all sources change together, so that no variance is identified, or no score differs.

    Notes
    -----
    Of runs: where the table is balanced the restricted likelihood depends on mean squares alone, and estimates and
    profiles are computed from these; elsewhere the model is fitted to the runs and profiled by `LmmFit.profile`, which
    gives the same numbers and takes longer.

    The variance of fixed means is that of the true means: with algorithms m_1, ..., m_k the sum of
    ``(m_i - mean)^2 / (k - 1)`` over the estimated means, minus the average variance of their errors, or zero where
    that is negative. Its interval inverts the noncentral F distribution of the F ratio, with the error variance at its
    estimate. A random term for the algorithms has the same estimate in a balanced table, but its interval is about
    algorithms that were not run, of which a handful says next to nothing.

    Scores of one run at several budgets depend on each other, so the sources of their curve have no intervals.

    Of trainings: the design is seen from the seeds. Where each source is varied with all others fixed, its variance is
    that of these scores, less that of trainings run again with equal seeds (the noise; without such trainings every
    source holds it). The variance of a source then includes its interactions at the seeds of the others that were
    fixed. Trainings in which several sources are new at once give the variance of all together, and a test of whether
    it is the sum. Otherwise a mixed model with crossed random effects of the sources is fitted, with their interactions
    by pairs where each combination is run twice on average.

    Of differences of k models: rows that all models share are turned into k - 1 orthonormal contrasts of the models,
    in which what all models have in common cancels; each contrast has the variances of the parts of one model. The
    crossed model is fitted to all of them. Every source is random, whatever its number of levels.

    References
    ----------
    Searle, Casella & McCulloch (1992), doi:10.1002/9780470316856; Cornfield & Tukey (1956) on fixed means,
    doi:10.1214/aoms/1177728067; Steiger (2004), doi:10.1037/1082-989X.9.2.164; Bouthillier et al. (2021), Accounting
    for variance in machine learning benchmarks, MLSys 3; Bonett (2006), Approximate confidence interval for standard
    deviation of nonnormal distributions, Computational Statistics & Data Analysis 50; Zou & Donner (2008), Construction
    of confidence limits about effect measures, Statistics in Medicine 27

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.variation.variance_sources import variance_sources
    >>> found = variance_sources(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> found.to_frame()[["source", "sd", "ci_low", "ci_high"]].round(4)
                    source      sd  ci_low  ci_high
    0            algorithm  0.0028  0.0021   0.0035
    1            benchmark  0.2088  0.1566   0.2979
    2  benchmark:algorithm  0.0026  0.0022   0.0032
    3       benchmark:seed  0.0027  0.0023   0.0031
    4                  run  0.0068  0.0066   0.0070

    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"data": [*range(30), *[0] * 35], "init": [*[0] * 30, *range(30), *[0] * 5]})
    >>> effects = 0.02 * rng.normal(size=30), 0.01 * rng.normal(size=30)
    >>> table["accuracy"] = 0.9 + effects[0][table["data"]] + effects[1][table["init"]] + 0.002 * rng.normal(size=65)
    >>> study = variance_sources(table, score="accuracy", sources=["data", "init"])
    >>> study.to_frame()[["source", "n", "sd", "ci_low", "ci_high", "relative"]].round(4)
      source   n      sd  ci_low  ci_high  relative
    ...
    """
    options = {"score": score, "algorithm": algorithm, "benchmark": benchmark, "relative_to": relative_to}
    options["model"] = model
    if sources is not None:
        return _of_trainings(runs, sources, **options, method=METHODS[0] if method is None else method, alpha=alpha)
    for name, value in {**options, "method": method}.items():
        if value is not None:
            raise ArgumentError(
                f"{name} is for tables of trainings, and needs sources=[...], the columns with their seeds; got "
                f"{name}={value!r:.60}."
            )
    return _of_runs(runs, alpha)


# ---------------------------------------------------------------------- runs


def _of_runs(runs: Any, alpha: float) -> VarianceSources:
    level = 1.0 - check_fraction(alpha, "alpha")
    design, scores = run_design(runs, task="the variation is taken apart", families=True)
    variances, limits, fixed = run_variances(design, scores, level=level)
    nan = (np.nan, np.nan)
    rows = [
        (*design.source(factors), max(signal, 0.0), *(np.sqrt(noise * end) for end in ratio_limits(test, level)))
        for factors, (signal, noise, test) in fixed.items()
    ] + [(*design.source(factors), v, *limits[factors]) for factors, v in variances.items()]
    notes = [*design.notes]
    if lost := [design.label(factors) for factors, (signal, *_) in fixed.items() if signal < 0]:
        notes.append(
            f"The means of {' and of '.join(lost)} differ no more than their standard errors would produce, so their "
            "variance is estimated as zero. This does not show that they are equal."
        )
    if zero := [design.label(factors) for factors, v in variances.items() if v == 0]:
        notes.append(f"Estimated as zero: {', '.join(zero)}. The upper ends of the intervals say how large it may be.")
    if design.curve_strata is None and design.sizes["n_budgets"] > 1:
        whole = "the curves of the runs over the budget"
        rows.append((runs.budget, "budget", whole, design.curve_variance, *nan))
        notes.append("The table is not balanced, so the curves of the runs over the budget are not taken apart.")
    elif design.curve_strata is not None:
        rows += [(*row, *nan) for row in _of_curves(design, design.curve_strata, str(runs.budget))]
        notes.append(
            f"Scores of one run at several levels of {runs.budget} depend on each other, so the sources of its curve "
            "have no intervals."
        )
    table = pd.DataFrame(rows, columns=[*_SOURCES[:4], "ci_low", "ci_high"])
    table = table.assign(share=table["variance"] / sum(table["variance"]), sd=np.sqrt(table["variance"]))[_SOURCES]
    sample = "families, benchmarks, seeds, runs" if design.families else "benchmarks, seeds, runs"
    fact = (
        f"REML estimates for {runs.score}. Each sd has its own {100 * level:.4g} % interval: of what is a "
        f"sample ({sample}) from the profile of the restricted likelihood, of fixed means "
        "(algorithms, metafeatures) from the noncentral F distribution."
    )
    return VarianceSources(
        question="variance_sources",
        title="Where the variation comes from",
        tables={"sources": table},
        values={"of": "runs", "score": runs.score, "alpha": alpha, "by": (), "relative_to": None,
                "balanced": design.strata is not None, **design.sizes},
        facts=(fact,),
        findings=largest_sources(table, runs.score, level),
        notes=tuple(notes),
        printed=table[["source", "meaning", "share", "sd", "ci_low", "ci_high"]],
        formats={"share": percent},
        figure="variance_sources_plot",
    )  # fmt: skip


def _of_curves(design: RunDesign, strata: dict[Factors, Stratum], budget: str) -> list[tuple[str, str, str, float]]:
    """Sources of the budget's effects; budgets are fixed, so an effect's part of a score is (r - 1) / r of it."""
    variances, _, fixed = from_mean_squares(design, strata, None, (frozenset(), *FIXED))
    part = (design.sizes["n_budgets"] - 1) / design.sizes["n_budgets"]
    rows = []
    for factors, variance in ({of: max(signal, 0.0) for of, (signal, *_) in fixed.items()} | variances).items():
        name = ":".join(filter(None, [design.label(factors), budget]))
        named = ("residual", "residual") if factors == EVERYTHING else (name, "budget")
        rows.append((*named, design.curve(factors), variance * part))
    return rows


def largest_sources(table: pd.DataFrame, score: str, level: float) -> tuple[str, ...]:
    """What matters most, and what the algorithms account for."""
    rows = table.to_dict("records")
    first, second, *others = in_tie_order(rows, lambda row: row["share"], descending=True)

    def may_exceed(row: dict[Any, Any]) -> bool:
        """Whether the interval of its variance over the first one reaches 1; so it does where one is not known."""
        both = np.array([[one["variance"], one["ci_low"] ** 2, one["ci_high"] ** 2] for one in (row, first)])
        if not np.isfinite(both).all():
            return bool(row["variance"] > 0.0)
        return not below(Combinations(*both.T).ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]))[1], 1.0)

    open_ = [row["source"] for row in (second, *others) if may_exceed(row)]
    sources = [
        f"The largest part of the variation of {score} is {'estimated to be ' if open_ else ''}{first['source']} "
        f"({percent(first['share'])}): {first['meaning']}; then {second['source']} ({percent(second['share'])})."
    ]
    if open_:
        sources.append(f"By the {percent(level)} intervals {joined(open_)} cannot be excluded as the largest.")
    algorithm = next(row for row in rows if row["kind"] == "algorithm")
    if algorithm not in (first, second):
        sources.append(f"The means of the algorithms account for {percent(algorithm['share'])}.")
    variance = table.groupby("kind")["variance"].sum()
    if variance.get("interaction", 0.0) > 0.0 and "family_interaction" in variance:
        between = variance["family_interaction"] / (variance["family_interaction"] + variance["interaction"])
        names = joined(table.loc[table["kind"] == "family_interaction", "source"].tolist())
        sources.append(
            f"Of the variance of the advantages, an estimated {percent(between)} lies between families ({names})."
        )
    return tuple(sources)


# ---------------------------------------------------------------------- trainings


def _of_trainings(
    table: Any,
    sources: Any,
    *,
    score: Any,
    algorithm: Any,
    benchmark: Any,
    model: Any,
    relative_to: Any,
    method: str,
    alpha: float,
) -> VarianceSources:
    if model is not None and (algorithm is not None or benchmark is not None):
        raise ArgumentError(
            "model is for differences of models, and algorithm and benchmark are for studies of single pipelines: give "
            "one or the other. For a benchmark of several keep its rows."
        )
    if isinstance(table, Runs):
        score, algorithm, benchmark = score or table.score, algorithm or table.algorithm, benchmark or table.benchmark
        table = table.frame
    columns = as_frame(table, argument="runs").collect_schema().names()
    roles = {"algorithm": algorithm, "benchmark": benchmark} if model is None else {"model": model}
    score, names, by = _columns_of(columns, score, sources, roles)
    if relative_to is None:
        likely = [name for name in names if set(re.split(r"[^a-z]+", name.lower())) & set(_UNITS)]
        unit = likely[0] if len(names) > 1 and likely else None
    else:
        unit = check_choice(relative_to, "relative_to", names)
    method, level = check_choice(method, "method", METHODS), 1.0 - check_fraction(alpha, "alpha")
    frame = _read(table, score, names, by)
    parts: dict[str, list[pd.DataFrame]] = {}
    notes: dict[str, list[str]] = {}
    models = ()
    if model is not None:
        frame, contrasts, models, lost = _contrasts(frame, names)
        by, notes = {}, {note: [""] for note in lost}
    for key, rows in frame.groupby(list(by), sort=False, observed=True) if by else [((), frame)]:
        labels = dict(zip(by, key, strict=True))
        where = _where(labels)
        values = rows["score"].to_numpy(dtype=float) if model is None else contrasts
        check_magnitude(values)
        if len(values) < 2 or np.ptp(values) == 0.0:
            raise DesignError(f"{where}all scores are the same, so nothing varies that could be taken apart.")
        if np.ptp(values) < _LEAST:
            raise DesignError(f"{where}scores differ by {np.ptp(values):.2g} at most. Give them in another unit.")
        try:
            tables, more = training_variances(
                rows[list(names)], values, unit=unit, level=level, method=method, crossed=model is not None
            )
        except DesignError as error:
            raise DesignError(f"{where}{error}") from None
        for name, part in tables.items():
            for at, (role, label) in enumerate(labels.items()):
                part.insert(at, role, [label] * len(part))
            parts.setdefault(name, []).append(part)
        for note in more:
            notes.setdefault(note, []).append(where.removesuffix(": "))
    joint = {name: pd.concat(several, ignore_index=True) for name, several in parts.items()}
    p = joint["at_once"]["p_raw"].to_numpy(dtype=float)
    tests = int(np.isfinite(p).sum())
    joint["at_once"]["p_value"] = adjust_raw(p, "holm", tests)
    findings, designs, interval = [], set(joint["designs"]["design"]), f"{100 * level:.4g} %"
    for labels in joint["designs"][list(by)].to_dict("records") if by else [{}]:
        where = _where(labels)
        findings += [*_largest_part(_rows(joint["sources"], labels), where, unit, level)]
        findings += [
            *_sum_of_parts(_rows(joint["at_once"], labels), where, "Holm-adjusted " if tests > 1 else "", level)
        ]
    facts = []
    if "one at a time" in designs:
        of = "Bonett" if method == "bonett" else "chi-squared"
        facts.append(f"One source at a time: sample variances; {interval} {of} intervals, combined by MOVER.")
    if "crossed" in designs:
        facts.append(f"Crossed: REML; {interval} profile intervals, combined by MOVER; effects are taken as normal.")
    if unit is not None:
        facts.append(f"relative: variance over that of {unit}.")
    if tests:
        facts.append(f"Sources at once against their sum: p-values, Holm over {counted(tests, 'sample')}.")
    relative = ["relative", "relative_low", "relative_high"]
    printed = [*by, "source", "n", "sd", "ci_low", "ci_high", "share", *(relative if unit is not None else [])]
    n = len(joint["designs"])
    return VarianceSources(
        question="variance_sources",
        title=f"Variance of {'differences of models in ' if models else ''}{score} by source",
        tables=joint,
        values={"of": "differences" if models else "trainings", "n_models": len(models),
                "nested": _nested(frame, names), "score": score, "alpha": alpha, "by": tuple(by), "relative_to": unit,
                "method": method},
        facts=tuple(facts),
        findings=tuple(findings),
        notes=tuple(note if len(where) == n else f"{joined(where)}: {note}" for note, where in notes.items()),
        printed=joint["sources"][printed],
        formats={**dict.fromkeys(["share", "share_low", "share_high"], percent), **dict.fromkeys(relative, ".2f")},
        figure="variance_sources_plot",
    )  # fmt: skip


def _columns_of(
    columns: list[str], score: Any, sources: Any, roles: Mapping[str, Any]
) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """Columns of the score, of the sources and of the studies, checked."""
    score = check_column(score, columns, argument="score")
    names = check_columns(sources, columns, argument="sources")
    if not names:
        raise ArgumentError("sources must name at least one column with the seeds of a source, got none.")
    by = {role: check_column(name, columns, argument=role) for role, name in roles.items() if name is not None}
    used = [score, *names, *by.values()]
    twice = sorted({name for name in used if used.count(name) > 1})
    if twice:
        raise ArgumentError(
            f"score, sources, algorithm and benchmark must be different columns, got {listed(map(repr, twice))} twice."
        )
    for name in names:
        if signs := [sign for sign in (":", TOGETHER) if sign in name]:
            raise ArgumentError(
                f"sources has {name!r}, and {signs[0]!r} joins names of sources in the results. Rename the column."
            )
        if name in (NOISE, RESIDUAL, "score", ALL, *ROLES):
            raise ArgumentError(
                f"sources has {name!r}, a name that the table of results uses itself. Rename the column."
            )
    return score, names, by


def _read(table: Any, score: str, names: tuple[str, ...], by: Mapping[str, str]) -> pd.DataFrame:
    """Columns by their roles, in memory; refuses what is missing."""
    wanted = list(dict.fromkeys([score, *names, *by.values()]))
    frame = as_frame(table, argument="runs").lazy().select(*wanted).collect().to_pandas().reset_index(drop=True)
    if frame.empty:
        raise DataError("runs has no rows: give one row per training.")
    for name in wanted:
        missing = int(frame[name].isna().sum())
        if missing:
            raise DataError(f"column {name!r} has {counted(missing, 'missing value')}. Leave out these trainings.")
    if not pd.api.types.is_numeric_dtype(frame[score]):
        raise DataError(f"the score {score!r} must be numbers, got {frame[score].dtype}.")
    values = frame[score].to_numpy(dtype=float)
    if not np.isfinite(values).all():
        raise DataError(f"the score {score!r} has {counted(int((~np.isfinite(values)).sum()), 'infinite value')}.")
    return frame[list(names)].assign(**{role: frame[name] for role, name in by.items()}, score=values)


def _contrasts(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, Array, tuple[Any, ...], list[str]]:
    """Rows that all models share, orthonormal contrasts of the models there, the models, and notes on what is lost."""
    attempt = frame.groupby(["model", *names], sort=False).cumcount().rename("attempt")
    wide = frame.assign(attempt=attempt).pivot(index=[*names, "attempt"], columns="model", values="score")
    whole = wide.dropna()
    models, lost = tuple(wide.columns), len(frame) - whole.size
    if len(models) < 2:
        raise DataError(f"model has one level only, {models[0]!r}: differences need two models or more.")
    if whole.empty:
        raise DesignError(
            f"no combination of {joined(names)} has scores of all {len(models)} models, so they cannot be compared: a "
            "judge of one model only cannot be told from the model. Keep models that share combinations."
        )
    notes = [
        f"{counted(lost, 'score')} of {len(frame):,} are left out, of combinations that not all models have: they say "
        "nothing of differences."
    ] * bool(lost)
    few = [name for name in names if whole.index.get_level_values(name).nunique() == 2]
    if few:
        notes.append(
            f"The 2 levels of {joined(few)} are taken as a sample of others (random). If they are all that matters, "
            "average the scores over them first."
        )
    helmert = np.linalg.qr(np.column_stack([np.ones(len(models)), np.eye(len(models))[:, 1:]]))[0][:, 1:]
    return whole.index.to_frame(index=False), whole.to_numpy(dtype=float) @ helmert, models, notes


def _nested(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The sources within which a source is nested: each of its levels is in one of theirs."""
    n = {name: frame[name].nunique() for name in names}
    within = {a: [b for b in names if b != a and n[b] < n[a] == len(frame[[a, b]].drop_duplicates())] for a in names}
    return {a: tuple(b for b in outer if n[b] > 1) for a, outer in within.items()}


def _where(labels: Mapping[Any, Any]) -> str:
    """A pipeline, or one on a benchmark; empty where there is only one."""
    return f"{' on '.join(map(format_level, labels.values()))}: " if labels else ""


def _rows(table: pd.DataFrame, labels: Mapping[Any, Any]) -> pd.DataFrame:
    for role, level in labels.items():
        table = table[table[role] == level]
    return table


def _sentence(where: str, text: str) -> str:
    return f"{where}{text}" if where else f"{text[:1].upper()}{text[1:]}"


def _largest_part(rows: pd.DataFrame, where: str, unit: str | None, level: float) -> tuple[str, ...]:
    """The largest part of the variance of one study, and the sources relative to the unit."""
    estimated, interval = rows[rows["share"].notna()], f"{100 * level:.4g} % interval"
    if estimated.empty:
        return (_sentence(where, "no source varies the score."),)
    first, *behind = in_tie_order(estimated.to_dict("records"), lambda row: row["share"], descending=True)
    if not behind:
        sd, low, high = (format_number(first[name], 3) for name in ("sd", "ci_low", "ci_high"))
        ends = f" ({interval} {low} to {high})" if np.isfinite(first["ci_low"]) else ""
        return (_sentence(where, f"of {first['source']} alone the variance is known: standard deviation {sd}{ends}."),)
    open_ = [row["source"] for row in behind if row["may_be_largest"]]
    ends = f" ({interval} {percent(first['share_low'])} to {percent(first['share_high'])})"
    every = len(estimated) == len(rows)
    text = (
        f"{'the largest part of the variance' if every else 'of the parts with a number the largest'} is "
        f"{'estimated to be ' if open_ else ''}{first['source']}: {percent(first['share'])} of "
        f"{'the' if every else 'their'} sum{ends if np.isfinite(first['share_low']) else ''}, standard deviation "
        f"{format_number(first['sd'], 3)}{f'; {joined(open_)} cannot be excluded' if open_ else ''}."
    )
    parts = []
    others = rows[rows["relative_low"].notna() & (rows["source"] != unit) & (rows["kind"] == "source")]
    for row in others.to_dict("records"):
        value, low, high = (written(row[f"relative{end}"], ".2f") for end in ("", "_low", "_high"))
        parts.append(
            f"{row['source']} {value} ({low} {f'to {high}' if np.isfinite(row['relative_high']) else 'or more'})"
        )
    relative = [_sentence(where, f"variances relative to {unit}: {joined(parts, 99)}.")] if parts else []
    return (_sentence(where, text), *relative)


def _sum_of_parts(at_once: pd.DataFrame, where: str, holm: str, level: float) -> tuple[str, ...]:
    """Whether the sources that are new at once in some trainings add up."""
    texts = []
    for row in at_once[at_once["p_value"].notna()].to_dict("records"):
        significant = below(row["p_value"], 1.0 - level)
        how = ("more" if row["ratio"] > 1.0 else "less") if significant else "not shown to be more or less"
        close = "" if significant else "; this does not show that they add up"
        ratio, low, high = (written(row[f"ratio{end}"], ".2f") for end in ("", "_low", "_high"))
        text = (
            f"with new {row['sources']} at once the variance is {ratio} times the sum of theirs ({low} to {high}), "
            f"{how} than the sum ({holm}{p_text(row['p_value'])}){close}."
        )
        texts.append(_sentence(where, text))
    return tuple(texts)


def _components_of_trainings(table: pd.DataFrame, designs: pd.DataFrame, by: Sequence[str]) -> VarianceComponents:
    """Mean variances of some studies, and notes on what has no number."""
    mean = table.groupby("source", sort=False)["variance"].mean()  # NaN where one is not known
    estimated = mean[table.groupby("source", sort=False)["variance"].apply(lambda v: v.notna().all())]
    both = [name for name in estimated.index if TOGETHER in name and ":" not in name]
    notes = [f"{name}: two sources with one number, which a plan counts with the coarser of them." for name in both]
    studies = designs[[*by]].to_dict("records") if by else [{}]
    new = set.intersection(*(in_residual(_rows(table, labels)) for labels in studies))
    if rest := [name for name in mean.index if name in new]:
        notes.append(f"Without numbers of their own, and a part of residual_sd: {joined(rest)}.")
    seen = {*estimated.index, *new, *(part for name in both for part in name.split(TOGETHER))}
    if lost := [name for name in mean.index if name not in seen]:
        notes.append(f"Not identified by the study, and in none of the numbers: {joined(lost)}.")
    single = set(table.loc[table["kind"] == "source", "source"])
    if zero := [name for name in estimated.index if estimated[name] == 0.0 and name in single]:
        notes.append(f"Estimated as zero, which does not show that there is no effect: {joined(zero)}.")
    left = [name for name in (NOISE, RESIDUAL) if name in estimated.index]
    if not left:
        notes.append("No training was run again with equal seeds: each source holds the noise as well.")
    if len(studies) > 1:
        notes.append(f"Mean variances of {len(studies)} studies.")
    return VarianceComponents(
        interaction_sd=None,
        residual_sd=float(sum(estimated[name] for name in left)) ** 0.5,
        sources={str(name): float(estimated[name]) ** 0.5 for name in estimated.index if name not in left},
        notes=tuple(notes),
    )
