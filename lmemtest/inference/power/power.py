"""How many benchmarks and seeds a comparison of algorithms needs, and what its significant results are worth."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._replicates import Failure, check_replicates, replicate
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction, check_positive_int
from lmemtest.errors import ArgumentError, EstimationError, LmemtestError
from lmemtest.inference.distributions.student import binomial_interval
from lmemtest.inference.power.closed_form import Operating, operating
from lmemtest.inference.power.components import VarianceComponents, as_components
from lmemtest.inference.power.draw import STUDY_DDF, TESTS, StudyDesign, StudyDraw, compare
from lmemtest.inference.power.result import LEVEL, USUAL_POWER, PowerResult, count_in_words, either
from lmemtest.words import counted, percent

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

METHODS = ("simulation", "closed_form")
# Step-down procedures (Holm) have no critical value of their own: power would depend on all other differences.
POWER_ADJUSTMENTS = ("tukey", "sidak", "bonferroni", "none")

_MOST_RUNS = 2_000_000  # scores of one simulated study; a table of them is 16 MB
_SAME_EFFECT = 1e-3  # relative distance at which an effect is taken for a copy of an estimate
_OFTEN = 0.02  # share of studies without interaction from which on a note says so


@one_blas_thread()
def power(
    components: Any,
    *,
    effect: float,
    n_benchmarks: int | Iterable[int],
    n_seeds: int | Iterable[int],
    n_algorithms: int | None = None,
    alpha: float = 0.05,
    adjust: str = "tukey",
    test: str = "mixed",
    ddf: str = "satterthwaite",
    method: str = "simulation",
    n_draws: int = 1000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> PowerResult:
    """Power of a planned comparison of two algorithms, by simulation and in closed form.

    Parameters
    ----------
    components : LmmFit, VarianceComponents or dict
        How much scores vary: a fit of a pilot study (see `components_of` for what is carried over), or standard
        deviations, for instance ``{"interaction_sd": 0.02, "residual_sd": 0.03}``.
    effect : float >= 0
        True difference of the two algorithms on the score's scale (of a fit: the scale of its response). The smallest
        difference that would matter, not one that was observed. 0 gives the size of the test.
    n_benchmarks : int or iterable of int, each >= 2
        Numbers of benchmarks.
    n_seeds : int or iterable of int, each >= 1
        Numbers of runs of each algorithm on each benchmark, with the same seeds for all algorithms. All combinations
        are planned.
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
        Source of the studies; results are the same whatever `n_jobs` is.
    n_jobs : int
        Processes; -1 for one per processor.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    PowerResult
        ``to_frame()`` has n_benchmarks, n_seeds, effect, power, ci_low, ci_high, type_s, type_m, exact, exact_type_s,
        exact_type_m, no_interaction, n_failed.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or a term of the fit has no place in the planned study.
    EstimationError
        If no simulated study could be analysed.

    Notes
    -----
    With b benchmarks, n seeds and k algorithms a difference has the variance ``2 (interaction_sd^2 + residual_sd^2 / n)
    / b`` and the t-test on means ``(b - 1)(k - 1)`` degrees of freedom, so power, type_s and type_m are integrals of
    the noncentral t distribution: the columns ``exact``. The mixed model gives the same t, unless it estimates the
    interaction as zero. Then it replaces the variance of the means, which came out too small, by a larger one, pooled
    with the residual's, on more degrees of freedom. Where there is little interaction this happens in up to half of the
    studies and costs power: with two algorithms, 12 benchmarks, 5 seeds and no interaction at all a nominal 5 % is 3.4
    % (2.5 % with Kenward-Roger, whose degrees of freedom do not grow). Where the others of the k algorithms lie has no
    influence with these adjustments (the simulation puts them halfway).

    References
    ----------
    Gelman & Carlin (2014) on type_s and type_m, doi:10.1177/1745691614551642; Hoenig & Heisey (2001) on power at an
    observed effect, doi:10.1198/000313001300339897; Clopper & Pearson (1934), doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> from lmemtest.inference.power.power import power
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
    effect = _checked_effect(effect)
    benchmarks, seeds = _counts(n_benchmarks, "n_benchmarks", 2), _counts(n_seeds, "n_seeds", 1)
    k = _algorithms(plan, n_algorithms)
    alpha = check_fraction(alpha, "alpha")
    check_choice(adjust, "adjust", POWER_ADJUSTMENTS)
    check_choice(test, "test", TESTS)
    check_choice(ddf, "ddf", STUDY_DDF)
    check_choice(method, "method", METHODS)
    n_draws = check_positive_int(n_draws, "n_draws")
    check_replicates(rng=rng, n_jobs=n_jobs, progress=progress)
    designs = [StudyDesign(n_algorithms=k, n_benchmarks=b, n_seeds=n) for n in seeds for b in benchmarks]
    exact = [operating(effect, d.se(plan), d.df, d.critical(alpha, adjust)) for d in designs]
    table = _exact_table(designs, effect, exact)
    notes = list(_plan_notes(components, plan, effect))
    if method == "simulation":
        _check_size(designs)
        study = _Studies(
            draws=tuple(StudyDraw.of(d, plan, effect) for d in designs), alpha=alpha, adjust=adjust, test=test, ddf=ddf
        )
        results = replicate(study, n_draws, rng=rng, n_jobs=n_jobs, progress=progress, label="Simulated studies")
        table = table.assign(**_simulated(results, effect))
        notes += _simulation_notes(table, results, test)
    found = PowerResult(
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
    notes += _uncertainty(found)
    return replace(found, notes=tuple(notes))


# ---------------------------------------------------------------------- simulation


@dataclass(frozen=True, slots=True, eq=False)
class _Studies:
    """One study of each design: per design (significant, estimate, no interaction), or why there is none."""

    draws: tuple[StudyDraw, ...]
    alpha: float
    adjust: str
    test: str
    ddf: str

    def __call__(self, rng: np.random.Generator) -> list[tuple[bool, float, bool] | Failure]:
        return [self._one(draw, rng) for draw in self.draws]

    def _one(self, draw: StudyDraw, rng: np.random.Generator) -> tuple[bool, float, bool] | Failure:
        scores = draw(rng)  # before anything can fail, so that later designs get the same numbers
        try:
            found = compare(scores, test=self.test, ddf=self.ddf)
        except (LmemtestError, ArithmeticError, np.linalg.LinAlgError) as error:
            return Failure(f"{type(error).__name__}: {error}")
        critical = draw.design.critical(self.alpha, self.adjust, found.df)
        return abs(found.estimate) > critical * found.se, found.estimate, found.no_interaction


def _simulated(results: list[Any], effect: float) -> dict[str, FloatArray]:
    """Columns of the table from the studies."""
    n = len(results)
    per_design = [[study[j] for study in results] for j in range(len(results[0]))]
    columns: dict[str, list[float]] = {}
    for studies in per_design:
        good = [s for s in studies if not isinstance(s, Failure)]
        if not good:
            raise EstimationError(f"no simulated study of a design could be analysed. {studies[0].reason}")
        estimates = np.array([estimate for significant, estimate, _ in good if significant])
        low, high = binomial_interval(len(estimates), n, LEVEL)
        wrong = float(np.mean(estimates < 0)) if len(estimates) else math.nan
        size = float(np.mean(np.abs(estimates))) / effect if len(estimates) and effect > 0 else math.nan
        values = {
            "power": len(estimates) / n,
            "ci_low": low,
            "ci_high": high,
            "type_s": wrong,
            "type_m": size,
            "no_interaction": sum(zero for *_, zero in good) / len(good),
            "n_failed": n - len(good),
        }
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
    return {name: np.asarray(values) for name, values in columns.items()}


# ---------------------------------------------------------------------- table and notes


def _exact_table(designs: Sequence[StudyDesign], effect: float, exact: Sequence[Operating]) -> pd.DataFrame:
    """The table of the closed form, which a simulation overwrites in part."""
    import pandas as pd

    chances = [found.power for found in exact]
    wrong, size = [found.type_s for found in exact], [found.type_m for found in exact]
    return pd.DataFrame(
        {
            "n_benchmarks": [d.n_benchmarks for d in designs],
            "n_seeds": [d.n_seeds for d in designs],
            "effect": effect,
            "power": chances,
            "ci_low": np.nan,
            "ci_high": np.nan,
            "type_s": wrong,
            "type_m": size,
            "exact": chances,
            "exact_type_s": wrong,
            "exact_type_m": size,
            "no_interaction": np.nan,
            "n_failed": 0,
        }
    )


def _plan_notes(source: Any, plan: VarianceComponents, effect: float) -> list[str]:
    notes = list(plan.notes)
    if effect == 0:
        notes.append(
            "The effect is 0: power is the share of false positives of one pair, and half of them have either sign."
        )
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
    from lmemtest.data.runs import Runs
    from lmemtest.inference.means.emmeans import emmeans

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
    if test == "mixed" and share > _OFTEN:
        notes.append(
            f"In up to {percent(share)} of the studies of a design the interaction is estimated as zero. The mixed "
            "model then takes a larger variance, pooled with the residual, on more degrees of freedom: mostly it "
            "rejects less often than alpha and finds less than exact says. test='means' keeps alpha exactly."
        )
    failed = int(table["n_failed"].sum())
    if failed:
        reason = next(s.reason for study in results for s in study if isinstance(s, Failure))
        notes.append(f"{failed:,} simulated studies could not be analysed and count as not significant ({reason})")
    return notes


def _uncertainty(found: PowerResult) -> list[str]:
    """What the size of the pilot leaves open."""
    plan = found.components
    if plan.pilot is None:
        return ["The standard deviations are taken as known; the plan is as good as they are."]
    notes = []
    if plan.interaction_sd == 0:
        notes.append(
            "The pilot estimates the interaction as zero, which is never quite true: its estimate may just as well be "
            "too low. Plan with an interaction_sd that you would not be surprised by as well."
        )
    if found.effect == 0:
        return notes
    rows = found.needed().to_frame().dropna(subset="n_benchmarks")
    parts = [
        f"{count_in_words(row['ci_low'])} and {count_in_words(row['ci_high'])} with {counted(row['n_seeds'], 'seed')}"
        for row in rows.to_dict("records")
    ]
    if parts:
        notes.append(
            f"The variances are estimates from {plan.pilot.n_benchmarks} benchmarks. As far as these determine them "
            f"(95 %), {percent(USUAL_POWER)} power takes between {either(parts)}."
        )
    return notes


# ---------------------------------------------------------------------- arguments


def _checked_effect(value: Any) -> float:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(float(value))
    if number and float(value) >= 0:
        return float(value)
    hint = f" Write {-float(value):g}." if number else ""
    raise ArgumentError(
        f"effect must be a finite number of at least 0, got {value!r}: the size of the difference, whichever algorithm "
        f"is better (a two-sided test has the same power for both signs).{hint}"
    )


def _counts(given: Any, name: str, minimum: int) -> tuple[int, ...]:
    one = isinstance(given, (numbers.Real, str, bytes)) or not isinstance(given, Iterable)
    values = [given] if one else list(given)
    if not values:
        raise ArgumentError(f"{name} must be a whole number or several, got none.")
    return tuple(sorted({check_positive_int(value, name, minimum=minimum) for value in values}))


def _algorithms(plan: VarianceComponents, given: Any) -> int:
    if given is not None:
        return check_positive_int(given, "n_algorithms", minimum=2)
    return plan.pilot.n_algorithms if plan.pilot is not None else 2


def _check_size(designs: Sequence[StudyDesign]) -> None:
    largest = max(designs, key=lambda d: d.n_runs)
    if largest.n_runs > _MOST_RUNS:
        raise ArgumentError(
            f"a study of {largest.n_algorithms} algorithms x {largest.n_benchmarks:,} benchmarks x "
            f"{largest.n_seeds:,} seeds has {largest.n_runs:,} runs, too many to simulate (at most {_MOST_RUNS:,}). "
            "Use method='closed_form'."
        )
