"""How many families, benchmarks and seeds a comparison needs, and what its significant results are worth."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.power.draw import (
    MOST_BENCHMARKS,
    STUDY_DDF,
    TESTS,
    StudyDesign,
    compare,
    operating,
    smallest_count,
    smallest_effect,
    study_draw,
)
from lmemtest.bench.power.variance_components import VarianceComponents, as_components
from lmemtest.core.arrays import Array
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES
from lmemtest.core.proportions import clopper_pearson
from lmemtest.core.replicates import Executor, Failure, check_replicates, replicate
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import (
    LARGEST_SCORE,
    check_choice,
    check_fraction,
    check_number,
    check_positive_int,
    is_size,
    several,
)
from lmemtest.core.words import counted, listed, percent
from lmemtest.errors import ArgumentError, EstimationError, LmemtestError
from lmemtest.lmm.means.emmeans import emmeans

METHODS = ("simulation", "closed_form")
# Step-down procedures (Holm) have no critical value of their own: power would depend on all other differences.
POWER_ADJUSTMENTS = ("tukey", "sidak", "bonferroni", "none")
USUAL_POWER = 0.8
LEVEL = 0.95  # of the intervals for the simulation's own error, and for what a pilot determines

_MOST_RUNS = 2_000_000  # scores of one simulated study; a table of them is 16 MB
_SAME_EFFECT = 1e-3  # relative distance at which an effect is taken for a copy of an estimate
_OFTEN = 0.02  # share of studies without interaction from which on a note says so


@result
class PowerResult(Result):
    """Power of a comparison of two algorithms over numbers of benchmarks and seeds.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per design:
        n_families (where families are planned; n_benchmarks are then those of each), n_benchmarks, n_seeds,
        effect, power (share of significant results, of either sign), ci_low, ci_high
        (95 %, Clopper-Pearson, the simulation's own error; NaN for the closed form), type_s (share of them with
        the wrong sign), type_m (their mean absolute estimate over the effect), exact, exact_type_s, exact_type_m
        (closed form), no_interaction (share of the studies whose interaction is estimated as zero), n_failed
        (studies that could not be analysed; counted as not significant).
    components : VarianceComponents
        What was planned with.
    effect : float
        The true difference of the two algorithms, on the score's scale.
    n_algorithms : int
        Algorithms in the study; all pairs of them are compared.
    alpha, adjust, test, ddf, method : float, str
        As given.
    n_draws : int
        Simulated studies per design; 0 for the closed form.
    notes : tuple of str
        What a reader must know.
    """

    formats = {
        **dict.fromkeys(("power", "ci_low", "ci_high", "exact", "no_interaction"), ".3f"),
        "type_s": ".4f",
        "exact_type_s": ".4f",
        "type_m": ".2f",
        "exact_type_m": ".2f",
    }
    figure = "power_plot"

    table: pd.DataFrame
    components: VarianceComponents
    effect: float
    n_algorithms: int
    alpha: float
    adjust: str
    test: str
    ddf: str
    method: str
    n_draws: int
    notes: tuple[str, ...] = ()

    @property
    def of_families(self) -> bool:
        """Whether families of benchmarks are planned."""
        return "n_families" in self.table.columns

    def _sample(self) -> tuple[str, str, list[str]]:
        """What the study is a sample of: its column and its noun, and the columns of what each unit of it has."""
        if self.of_families:
            return "n_families", "families", ["n_benchmarks", "n_seeds"]
        return "n_benchmarks", "benchmarks", ["n_seeds"]

    def needed(self, power: float = USUAL_POWER) -> Answer:
        """The fewest benchmarks, or families, with which a difference of `effect` is found with a given power.

        Parameters
        ----------
        power : float in (alpha, 1)

        Returns
        -------
        Answer
            One row per number of seeds: n_seeds, n_benchmarks (closed form, also beyond the designs of this result;
            missing if a million are too few), exact (the power there), reached_at (the fewest among the designs of
            this result by its `power`; missing if none reaches it), ci_low and ci_high (n_benchmarks at the ends of the
            95 % interval of the variance; missing unless the components come from a pilot study). Where families are
            planned, one row per number of benchmarks of each and of seeds, and what is counted is n_families.

        Raises
        ------
        ArgumentError
            If the effect is zero, or the power is not above alpha.
        """
        power = self._checked_power(power)
        unit, noun, others = self._sample()
        rows: list[dict[str, Any]] = []
        for design in self.table[others].drop_duplicates().to_dict("records"):
            size = {str(name): int(n) for name, n in design.items()}
            v, limits = self._variance(size["n_seeds"], size.get("n_benchmarks", 1))
            count, at_low, at_high = (self._units_at(value, power) for value in (v, *limits))
            these = (self.table[others] == pd.Series(size)).all(axis=1) & (self.table["power"] >= power)
            reached = self.table.loc[these, unit]
            exact = math.nan if count is None else self._power_of(v, count)
            reached_at = int(reached.min()) if len(reached) else None
            rows.append({**size, unit: count, "exact": exact, "reached_at": reached_at})
            rows[-1] |= {"ci_low": at_low, "ci_high": at_high}
        table = pd.DataFrame(rows)
        whole = [unit, "reached_at", "ci_low", "ci_high"]
        table[whole] = table[whole].astype("Int64")
        least = self.components.advantage_sd if not self.of_families else self.components.family_interaction_sd or 0.0
        fewest = self._units_at(least**2, power)
        deeper = "number of benchmarks and seeds" if self.of_families else "number of seeds"
        notes = [f"{self._test_in_words()}; {percent(power)} power."]
        notes.append(
            f"No {deeper} makes fewer than {fewest:,} {noun} enough."
            if fewest is not None
            else f"Not even {MOST_BENCHMARKS:,} {noun} are enough."
        )
        unreached = [row for row in rows if row["reached_at"] is None]
        if unreached and self.of_families:
            where = _either([_each(row) for row in unreached])
            notes.append(
                f"Families of {where} reach {percent(power)} in no design of this result; n_families is from the "
                "closed form."
            )
        elif unreached:
            notes.append(
                f"With {listed([str(row['n_seeds']) for row in unreached])} seeds no design of this result reaches "
                f"{percent(power)}; n_benchmarks is from the closed form."
            )
        if self.components.pilot is not None:
            notes.append("ci_low and ci_high: what the variance could be, by the size of the pilot study (95 %).")
        title = f"{noun.capitalize()} needed to find a difference of {self.effect:g}"
        return Answer(question="power", title=title, tables={"table": table}, notes=tuple(notes))

    def detectable(self, power: float = USUAL_POWER) -> Answer:
        """The smallest difference that each design finds with a given power (closed form).

        Parameters
        ----------
        power : float in (alpha, 1)

        Returns
        -------
        Answer
            n_families (if planned), n_benchmarks, n_seeds, effect, ci_low, ci_high (at the ends of the 95 % interval of
            the variance; NaN unless the components come from a pilot study).
        """
        power = self._checked_power(power, effect_matters=False)
        sizes = [name for name in ("n_families", "n_benchmarks", "n_seeds") if name in self.table]
        rows = []
        for size in self.table[sizes].to_dict("records"):
            design = StudyDesign(n_algorithms=self.n_algorithms, **{str(name): int(n) for name, n in size.items()})
            units, each = design.sampled
            unit = smallest_effect(power, 1.0, design.df, design.critical(self.alpha, self.adjust))
            v, limits = self._variance(design.n_seeds, each)
            now, at_low, at_high = (unit * math.sqrt(2.0 * value / units) for value in (v, *limits))
            rows.append({**size, "effect": now, "ci_low": at_low, "ci_high": at_high})
        return Answer(
            question="power",
            title="Smallest difference that is found",
            tables={"table": pd.DataFrame(rows)},
            notes=(f"{self._test_in_words()}; {percent(power)} power.",),
        )

    def sentences(self) -> tuple[str, ...]:
        """The answer in words, for 80 % power."""
        first = self.table.iloc[0]
        if self.effect == 0:
            return (
                f"Without a difference, two algorithms differ significantly in {percent(float(first['power']))} of "
                f"the studies with {_size(first)}.",
            )
        unit, noun, _ = self._sample()
        rows = self.needed().to_frame().dropna(subset=unit).to_dict("records")
        if not rows:
            answer = f"cannot be reached with {MOST_BENCHMARKS:,} {noun}"
        else:
            link = "of" if self.of_families else "with"
            parts = [
                f"{int(row[unit]):,} {noun} {link} {_each(row)}{'' if self.of_families else ' each'}" for row in rows
            ]
            answer = f"takes {_either(parts)}"
        weakest = self.table.iloc[int(self.table["power"].argmin())]
        findings = [f"To find a difference of {self.effect:g} with {percent(USUAL_POWER)} power {answer}."]
        if weakest["power"] < USUAL_POWER and np.isfinite(weakest["exact_type_m"]):
            chance, size = percent(float(weakest["power"])), weakest["exact_type_m"]
            findings.append(
                f"With {_size(weakest)} the power is {chance}, and a significant result overstates the "
                f"difference {written(size, '.2g')} times on average and has the wrong sign in "
                f"{percent(float(weakest['exact_type_s']))} of the cases."
            )
        return tuple(findings)

    @property
    def title(self) -> str:
        return f"Power to find a difference of {self.effect:g}"

    @property
    def facts(self) -> tuple[str, ...]:
        how = "Closed form of the test on means."
        if self.method == "simulation":
            how = (
                f"{self.n_draws:,} simulated studies per design, 95 % intervals for the simulation's own error; exact: "
                "closed form of the test on means."
            )
        families = ("family_interaction_sd",) if self.components.family_interaction_sd is not None else ()
        names = (*families, "interaction_sd", "residual_sd", "seed_sd")
        parts = {**{name: getattr(self.components, name) for name in names}, **self.components.sources}
        sds = ", ".join(f"{name} {written(float(sd), '.4g')}" for name, sd in parts.items())
        return f"{self._test_in_words()}.", how, f"Planned with {sds}."

    def shown(self) -> pd.DataFrame:
        if self.method == "closed_form":
            sizes = [self._sample()[0], *self._sample()[2]]
            return self.table[[*sizes, "effect", "power", "type_s", "type_m"]]
        return self.table.drop(columns="no_interaction") if self.test == "means" else self.table

    # -- parts ----------------------------------------------------------------------------------------------------

    def _test_in_words(self) -> str:
        analysis = f"analysis of variance of means on {self._sample()[1]}"
        if self.test == "mixed":
            analysis = f"mixed model (REML, {DDF_NAMES[self.ddf]} df)"
        level = f"two-sided alpha = {self.alpha:g}"
        if self.n_algorithms == 2:
            return f"Two algorithms, {analysis}, {level}"
        adjustment = f"{ADJUSTMENT_NAMES[self.adjust]} adjustment for all pairs"
        return f"Two of {self.n_algorithms} algorithms, {analysis}, {level} with {adjustment}"

    def _power_of(self, v: float, n_units: int) -> float:
        """The closed form where a mean of one algorithm on one benchmark (or family) of so many varies by ``v``."""
        if v == 0.0:
            return 1.0
        design = StudyDesign(n_algorithms=self.n_algorithms, n_benchmarks=n_units, n_seeds=1)
        se = math.sqrt(2.0 * v / n_units)
        return operating(self.effect, se, design.df, design.critical(self.alpha, self.adjust))[0]

    def _variance(self, n_seeds: int, each: int) -> tuple[float, tuple[float, float]]:
        """Of the mean of one algorithm on so many benchmarks of one family, and its interval."""
        return self.components.of_mean(n_seeds, each), self.components.limits(n_seeds, 1.0 - LEVEL, each)

    def _checked_power(self, power: Any, *, effect_matters: bool = True) -> float:
        power = check_fraction(power, "power")
        if effect_matters and self.effect == 0:
            raise ArgumentError(
                "effect is 0, and no number of benchmarks finds a difference that is not there. Plan with the smallest "
                "difference that would matter: power(..., effect=...)."
            )
        if power <= self.alpha:
            raise ArgumentError(
                f"power must be above alpha = {self.alpha:g}, which a test reaches without any effect, got {power:g}."
            )
        return power

    def _units_at(self, v: float, power: float) -> int | None:
        """Fewest benchmarks (or families) where a mean of one algorithm on one of them varies by ``v``."""
        if math.isnan(v):
            return None
        # by the normal distribution, with the usual correction for an estimated variance: off by one or two
        two = StudyDesign(n_algorithms=self.n_algorithms, n_benchmarks=2, n_seeds=1)
        critical = two.critical(self.alpha, self.adjust, math.inf)
        by_normal = 2.0 * v * ((critical + float(special.ndtri(power))) / self.effect) ** 2
        guess = math.ceil(min(by_normal, MOST_BENCHMARKS) + 0.5 * critical**2 / (self.n_algorithms - 1))
        return smallest_count(lambda b: self._power_of(v, b) >= power, first=2, guess=guess)


@guided
@one_blas_thread()
def power(
    components: Any,
    *,
    effect: float,
    n_benchmarks: int | Iterable[int],
    n_seeds: int | Iterable[int],
    n_families: int | Iterable[int] | None = None,
    n_algorithms: int | None = None,
    alpha: float = 0.05,
    adjust: str = "tukey",
    test: str = "mixed",
    ddf: str = "satterthwaite",
    method: str = "simulation",
    n_draws: int = 1000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> PowerResult:
    """Power of a planned comparison of two algorithms, by simulation and in closed form.

    Parameters
    ----------
    components : LmmFit, result with components(), VarianceComponents or dict
        How much scores vary: a fit of a pilot study (see `VarianceComponents.of` for what is carried over), or standard
        deviations, for instance ``{"interaction_sd": 0.02, "residual_sd": 0.03}``.
    effect : float >= 0
        True difference of the two algorithms on the score's scale (of a fit: the scale of its response). The smallest
        difference that would matter, not one that was observed. 0 gives the size of the test.
    n_benchmarks : int or iterable of int, each >= 2
        Numbers of benchmarks; with `n_families` those of each family (each >= 1).
    n_seeds : int or iterable of int, each >= 1
        Numbers of runs of each algorithm on each benchmark, with the same seeds for all algorithms. All combinations
        are planned.
    n_families : int or iterable of int, each >= 2, optional
        Numbers of families of benchmarks, which are then the sample: claims are for new families. The components need
        a `family_interaction_sd`. By default each benchmark is one of a family of its own.
    n_algorithms : int >= 2, optional
        Algorithms in the study; by default those of the fit, or two.
    alpha : float in (0, 1)
        Level of the family of all pairs of algorithms.
    adjust : {"tukey", "sidak", "bonferroni", "none"}
        Adjustment for the number of pairs.
    test : {"mixed", "means"}
        The recommended mixed model, or analysis of variance of the means on benchmarks, which for two algorithms is
        the paired t-test.
    ddf : {"satterthwaite", "kenward-roger"}
        Degrees of freedom of the mixed model.
    method : {"simulation", "closed_form"}
        Simulate and analyse studies, or take the closed form, which is exact for ``test="means"``.
    n_draws : int >= 1
        Simulated studies per design. 1000 give an interval of 2.5 points on either side at 80 % power.
    rng : int, numpy.random.Generator or None
        Source of the studies; results are the same whatever `n_jobs` or `executor` is.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress bar, by
        default on a terminal after two seconds.

    Returns
    -------
    PowerResult
        ``to_frame()`` has n_families (if planned), n_benchmarks, n_seeds, effect, power, ci_low, ci_high, type_s,
        type_m, exact, exact_type_s, exact_type_m, no_interaction, n_failed.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or a term of the fit has no place in the planned study.
    EstimationError
        If no simulated study could be analysed.

    Notes
    -----
    With b benchmarks, n seeds and k algorithms a difference has the variance ``2 (interaction_sd^2 + run_sd^2 / n) /
    b`` and the t-test on means ``(b - 1)(k - 1)`` degrees of freedom, so power, type_s and type_m are integrals of the
    noncentral t distribution: the columns ``exact``. With f families of b benchmarks each the variance is ``2
    (family_interaction_sd^2 + (interaction_sd^2 + run_sd^2 / n) / b) / f``, on ``(f - 1)(k - 1)`` degrees of freedom.
    ``run_sd`` is the residual_sd together with named `sources`, all of which each seed draws anew; where tuning is
    repeated less often, see `plan`. The mixed model gives the same t,
    unless it estimates the interaction as zero. Then it replaces the variance of the means, which came out too small,
    by a larger one, pooled with the residual's, on more degrees of freedom. Where there is little interaction this
    happens in up to half of the studies and costs power: with two algorithms, 12 benchmarks, 5 seeds and no interaction
    at all a nominal 5 % is 3.4 % (2.5 % with Kenward-Roger, whose degrees of freedom do not grow). Where the others of
    the k algorithms lie has no influence with these adjustments (the simulation puts them halfway).

    References
    ----------
    Gelman & Carlin (2014) on type_s and type_m, doi:10.1177/1745691614551642; Hoenig & Heisey (2001) on power at an
    observed effect, doi:10.1198/000313001300339897; Clopper & Pearson (1934), doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> from lmemtest.bench.power.power import power
    >>> plan = {"interaction_sd": 0.02, "residual_sd": 0.03}
    >>> found = power(plan, effect=0.01, n_benchmarks=[20, 80], n_seeds=5, n_draws=200, rng=1)
    >>> found.to_frame()[["n_benchmarks", "power", "exact"]].round(2)
       n_benchmarks  power  exact
    0            20   0.26   0.24
    1            80   0.76   0.74
    >>> found.needed().to_frame()["n_benchmarks"].tolist()
    [93]
    """
    plan = as_components(components)
    _ = plan.advantage_sd  # known, or refused before the work
    effect = _checked_effect(effect)
    families = (None,) if n_families is None else check_counts(n_families, "n_families", 2)
    if n_families is not None and plan.family_interaction_sd is None:
        raise ArgumentError(
            "components lacks 'family_interaction_sd': how much an algorithm's advantage differs between families, as "
            f"a standard deviation in the score's unit. Give it, or fit a pilot study of {FEWEST_FAMILIES} families or "
            "more: Runs(..., family=...) with recommend(runs).formula. Without n_families each benchmark counts as a "
            "family of its own."
        )
    benchmarks = check_counts(n_benchmarks, "n_benchmarks", 2 if n_families is None else 1)
    seeds = check_counts(n_seeds, "n_seeds")
    if n_algorithms is None:
        n_algorithms = plan.pilot.n_algorithms if plan.pilot is not None else 2
    k = check_positive_int(n_algorithms, "n_algorithms", minimum=2)
    alpha = check_fraction(alpha, "alpha")
    check_choice(adjust, "adjust", POWER_ADJUSTMENTS)
    check_choice(test, "test", TESTS)
    check_choice(ddf, "ddf", STUDY_DDF)
    check_choice(method, "method", METHODS)
    n_draws = check_positive_int(n_draws, "n_draws")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    designs = [
        StudyDesign(n_algorithms=k, n_benchmarks=b, n_seeds=n, n_families=f)
        for n, b, f in itertools.product(seeds, benchmarks, families)
    ]
    exact = pd.DataFrame(
        [operating(effect, d.se(plan), d.df, d.critical(alpha, adjust)) for d in designs],
        columns=["power", "type_s", "type_m"],
    )
    sizes = ["n_families"] * (n_families is not None) + ["n_benchmarks", "n_seeds"]
    table = pd.DataFrame([[getattr(d, name) for name in sizes] for d in designs], columns=sizes)
    table = table.assign(effect=effect, power=exact["power"], ci_low=np.nan, ci_high=np.nan)
    table = table.assign(type_s=exact["type_s"], type_m=exact["type_m"], exact=exact["power"])
    table = table.assign(exact_type_s=exact["type_s"], exact_type_m=exact["type_m"], no_interaction=np.nan, n_failed=0)
    notes = list(_plan_notes(components, plan, effect, families=n_families is not None))
    if method == "simulation":
        largest = max(designs, key=lambda d: d.n_runs)
        if largest.n_runs > _MOST_RUNS:
            many = math.prod(largest.sampled)
            raise ArgumentError(
                f"a study of {k} algorithms x {many:,} benchmarks x {largest.n_seeds:,} seeds has "
                f"{largest.n_runs:,} runs, too many to simulate (at most {_MOST_RUNS:,}). Use method='closed_form'."
            )
        draws = [(d, study_draw(d, plan, effect)) for d in designs]
        task = partial(_studies, draws, alpha, adjust, test, ddf)
        results = replicate(
            task, n_draws, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Simulated studies"
        )
        rows = [_simulated(list(studies), effect) for studies in zip(*results, strict=True)]
        table = table.assign(**pd.DataFrame(rows))
        notes += _simulation_notes(table, results, test)
    result = PowerResult(
        table=table,
        components=plan,
        effect=effect,
        n_algorithms=k,
        alpha=alpha,
        adjust=adjust,
        test=test,
        ddf=ddf,
        method=method,
        n_draws=n_draws if method == "simulation" else 0,
    )
    return replace(result, notes=(*notes, *_uncertainty(result)))


# ---------------------------------------------------------------------- simulation


def _studies(
    draws: list[tuple[StudyDesign, Callable[[np.random.Generator], Array]]],
    alpha: float,
    adjust: str,
    test: str,
    ddf: str,
    rng: np.random.Generator,
) -> list[tuple[bool, float, bool] | Failure]:
    """One study of each design: per design (significant, estimate, no interaction), or why there is none."""
    studies: list[tuple[bool, float, bool] | Failure] = []
    for design, draw in draws:
        scores = draw(rng)  # before anything can fail, so that later designs get the same numbers
        try:
            estimate, se, df, no_interaction = compare(scores, test=test, ddf=ddf)
        except (LmemtestError, ArithmeticError, np.linalg.LinAlgError) as error:
            studies.append(Failure.of(error))
            continue
        studies.append((abs(estimate) > design.critical(alpha, adjust, df) * se, estimate, no_interaction))
    return studies


def _simulated(studies: list[Any], effect: float) -> dict[str, Any]:
    """Columns of the table from the studies of one design."""
    n, good = len(studies), [study for study in studies if not isinstance(study, Failure)]
    if not good:
        raise EstimationError(f"no simulated study of a design could be analysed. {studies[0].reason}")
    estimates = np.array([estimate for significant, estimate, _ in good if significant])
    low, high = map(float, clopper_pearson(len(estimates), n, LEVEL))
    return {
        "power": len(estimates) / n,
        "ci_low": low,
        "ci_high": high,
        "type_s": float(np.mean(estimates < 0)) if len(estimates) else math.nan,
        "type_m": float(np.mean(np.abs(estimates))) / effect if len(estimates) and effect > 0 else math.nan,
        "no_interaction": sum(zero for *_, zero in good) / len(good),
        "n_failed": n - len(good),
    }


# ---------------------------------------------------------------------- notes


def _plan_notes(source: Any, plan: VarianceComponents, effect: float, *, families: bool) -> list[str]:
    notes = list(plan.notes)
    if families:
        notes.append("Families are the sample: what is planned is a claim for new families like these.")
    elif plan.family_interaction_sd is not None:
        notes.append(
            "Each benchmark of the planned study is one of a family of its own; benchmarks that share a family tell "
            "less than as many that do not. n_families= plans families of several benchmarks."
        )
    if effect == 0:
        notes.append(
            "The effect is 0: power is the share of false positives of one pair, and half of them have either sign."
        )
    if "tuning" in plan.sources:
        notes.append("Every seed has its own tuning run here; plan() is for fewer tuning runs than seeds.")
    fit = source if hasattr(source, "design") else None
    if fit is None:
        return notes
    parsed = fit.design.parsed
    if parsed.response_function:
        notes.append(f"The effect is on the scale of {parsed.response_function}({parsed.response}).")
    copied = _copied_difference(fit, effect)
    if copied:
        notes.append(
            f"The effect is the difference that was observed between {copied}. Power at an observed difference only "
            "restates its p-value (Hoenig & Heisey 2001), and an observed difference that stood out is too large: plan "
            "with the smallest difference that would matter."
        )
    return notes


def _copied_difference(fit: Any, effect: float) -> str | None:
    """The two algorithms whose estimated difference is the effect."""
    name = fit.data.algorithm if isinstance(fit.data, Runs) else None
    if effect == 0 or name is None or name not in fit.design.factors:
        return None
    means = emmeans(fit, name, vcov="model")
    i, j = np.triu_indices(len(means.estimate), k=1)
    distance = np.abs(np.abs(means.estimate[i] - means.estimate[j]) / effect - 1.0)
    nearest = int(np.argmin(distance))
    if not distance[nearest] < _SAME_EFFECT:
        return None
    labels = means.labels()
    return f"{labels[i[nearest]]} and {labels[j[nearest]]}"


def _simulation_notes(table: pd.DataFrame, results: list[Any], test: str) -> list[str]:
    notes = []
    share = float(table["no_interaction"].max())
    of = " of families and algorithms" if "n_families" in table else ""
    if test == "mixed" and share > _OFTEN:
        notes.append(
            f"In up to {percent(share)} of the studies of a design the interaction{of} is estimated as zero. The mixed "
            "model then takes a larger variance, pooled with the residual, on more degrees of freedom: mostly it "
            "rejects less often than alpha and finds less than exact says. test='means' keeps alpha exactly."
        )
    failed = int(table["n_failed"].sum())
    if failed:
        reason = next(s.reason for study in results for s in study if isinstance(s, Failure))
        notes.append(f"{failed:,} simulated studies could not be analysed and count as not significant ({reason})")
    return notes


def _uncertainty(result: PowerResult) -> list[str]:
    """What the size of the pilot leaves open."""
    plan = result.components
    if plan.pilot is None:
        return ["The standard deviations are taken as known; the plan is as good as they are."]
    notes = []
    top = plan.family_interaction_sd if result.of_families else plan.advantage_sd
    if top == 0:
        name = "family_interaction_sd" if result.of_families else "interaction_sd"
        of = " of families and algorithms" if result.of_families else ""
        notes.append(
            f"The pilot estimates the interaction{of} as zero, which is never quite true: its estimate may just as "
            f"well be too low. Plan with {'a' if result.of_families else 'an'} {name} that you would not be surprised "
            "by as well."
        )
    if result.effect == 0:
        return notes
    unit, noun, _ = result._sample()
    rows = result.needed().to_frame().dropna(subset=unit)
    link = f"{noun} of" if result.of_families else "with"
    parts = [
        f"{_count(row['ci_low'])} and {_count(row['ci_high'])} {link} {_each(row)}" for row in rows.to_dict("records")
    ]
    if parts:
        notes.append(
            f"The variances are estimates from {plan.pilot.in_words()}. As far as these determine them "
            f"(95 %), {percent(USUAL_POWER)} power takes between {_either(parts)}."
        )
    return notes


# ---------------------------------------------------------------------- arguments


def _checked_effect(value: Any) -> float:
    meaning = (
        "the size of the difference, whichever algorithm is better (a two-sided test has the same power for both signs)"
        + (f". Write {-float(value):g}" if is_size(value) else "")
    )
    return check_number(value, "effect", low=0, high=LARGEST_SCORE, open="high", meaning=meaning)


def check_counts(counts: Any, name: str, minimum: int = 1) -> tuple[int, ...]:
    """One number or several, each once in ascending order."""
    one = isinstance(counts, (numbers.Real, str, bytes)) or not several(counts)
    values = [counts] if one else list(counts)
    if not values:
        raise ArgumentError(f"{name} must be a whole number or several, got none.")
    return tuple(sorted({check_positive_int(value, name, minimum=minimum) for value in values}))


# ---------------------------------------------------------------------- words


def _size(row: Any) -> str:
    """The size of a design."""
    if "n_families" in row:
        return f"{int(row['n_families']):,} families of {_each(row)}"
    return f"{int(row['n_benchmarks']):,} benchmarks and {counted(int(row['n_seeds']), 'seed')}"


def _each(row: Mapping[Any, Any]) -> str:
    """What each benchmark has, or each family: its benchmarks and seeds."""
    seeds = counted(int(row["n_seeds"]), "seed")
    if "n_families" not in row:
        return seeds
    return f"{counted(int(row['n_benchmarks']), 'benchmark')} with {seeds}"


def _count(n: Any) -> str:
    """A number of benchmarks that may be missing."""
    return f"more than {MOST_BENCHMARKS:,}" if pd.isna(n) else f"{int(n):,}"


def _either(parts: Sequence[str]) -> str:
    """A list with "or" before its last part."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
