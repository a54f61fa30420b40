"""Does the score depend on the seed? Likelihood-ratio test of the paper, and one exact test per algorithm.

A seed is a label. It can mean something in two ways, and only the first is a defect:

- runs of **one algorithm** with the same seed are alike where nothing should make them so: on every benchmark, or in
  every repetition, seed 7 is good for it. Then its score depends on a number that nobody chose for a reason, seeds are
  few draws and not many, and more benchmarks do not average it out.
- runs of **different algorithms** with the same seed on the same benchmark are alike (a common first design, a common
  split). That is pairing. It makes comparisons sharper, and the recommended model has a term for it.

The test needs a seed to come back: on several benchmarks, or in repeated runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.caller import advice
from lmemtest.core.codes import group_means, rows_of_each
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most, below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, resolve_rng
from lmemtest.core.words import format_level, listed, p_text
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.hypotheses.variance_tests import VarianceRatio, variance_ratio
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.hypotheses.null_distributions import ExactNull

# With more algorithms the covariances of equation 8 (15 for five) cost more seconds than they tell.
_MOST_ALGORITHMS = 5
# Scaled scores of two seeds are signs: their test has two or three possible p-values.
_NO_RESIDUAL = 1e-8  # share of the variance within cells: as far as a search follows a likelihood without a limit
_FEWEST_SCALED = 3
# Runs behind a seed on one benchmark whose likeness is tested by an eigenvalue problem of this size.
_MOST_PAIRED_SEEDS = 2000
_TWO_SIDED = 1.959963984540054  # 95 % of a normal distribution


@guided
@one_blas_thread()
def seed_effect(
    runs: Runs,
    *,
    alpha: float = 0.05,
    standardize: bool | None = None,
    reference: str = "auto",
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """Test whether the score of an algorithm depends on the seed.

    Parameters
    ----------
    runs : Runs
        With a seed that comes back: on several benchmarks, or in repeated rows.
    alpha : float in (0, 1)
        Probability of naming an algorithm when no score depends on the seed; Holm's method over the algorithms.
        Intervals hold with 1 - `alpha`, each on its own.
    standardize : bool, optional
        Divide the scores by the standard deviation over the seeds of their algorithm and benchmark, so that a
        benchmark with a large unit does not decide alone. By default where there are several benchmarks.
    reference : {"auto", "chi2", "mixture", "exact", "bootstrap"}
        Null distribution of the test of all algorithms together, see `glrt`. It does not touch the decision.
    rng : int, numpy.random.Generator or None
        Used by ``reference="bootstrap"`` only.

    Returns
    -------
    Answer
        ``table``, one row per algorithm: ``algorithm``, ``n_runs``, ``n_seeds``, ``n_instances``, ``f_ratio``,
        ``df_num``, ``df_den``, ``p_raw``, ``p_value``, ``affected``, ``seed_share`` (of the variance around the
        instance means), ``ci_low``, ``ci_high``. ``affected``: the algorithms whose scores depend on the seed;
        ``significant``: whether there is one.
        ``overall``: the test of the model without against the model with seed effects, all algorithms together
        (equations 7 and 8 of the paper). ``pairing``: the likeness of different algorithms with the same seed on one
        instance; None if they share no seeds. ``alpha``; ``standardized``, whether scores were divided by the standard
        deviation of their algorithm and instance; ``crossed``, whether seeds come back on several benchmarks, else in
        repeated rows of one. ``scores``: what was tested, one row per run (``algorithm``, ``instance``, ``seed``,
        ``score``, ``centred``). ``seed_means``, what a plot shows, one row per algorithm and seed: ``algorithm``,
        ``seed``, ``mean`` of the centred scores, ``n``, and ``chance``, the standard deviation of such a mean if only
        chance decides; ``chance_range``, by algorithm: how far from zero 95 % of these means are at most then.

    Raises
    ------
    ArgumentError
        If the runs have no seed column, or an option is out of its range.
    DesignError
        If there is one seed, or no seed comes back, so that its effect cannot be distinguished from chance.

    Notes
    -----
    Per algorithm: ``score ~ benchmark + (1 | seed)``, with the exact F-test of the seed's variance (for balanced tables
    the same as the exact restricted likelihood-ratio test), which needs no correction at the boundary; with
    standardized scores its degrees of freedom are reduced (see `variance_ratio`). It is valid whatever seeds do to
    other algorithms, and so is Holm's method. All together: ``score ~ algorithm`` against ``score ~ algorithm +
    (0 + algorithm | seed)``; with several benchmarks both models have their means and, if
    algorithms share seeds, ``(1 | benchmark:seed)``. With budgets a run counts once, and the levels of a metafeature
    are averaged: an algorithm that ignores it has the same run at all levels, which is no sign of anything.

    The test looks for a seed that is good or bad for an algorithm *everywhere*. It finds nothing if each benchmark
    turns the same seed into other random numbers, and then there is nothing to find.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024). LMEMs for post-hoc analysis of HPO benchmarking.
    arXiv:2408.02533; Wald (1940), Ann. Math. Stat. 11, 96-100; Holm (1979), Scand. J. Stat. 6, 65-70

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.checks.seed_effect import seed_effect
    >>> result = seed_effect(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> result.affected, result.crossed
    ((), True)
    """
    require_runs(runs)
    from lmemtest.lmm.hypotheses.glrt import REFERENCES

    check_fraction(alpha, "alpha")
    check_choice(reference, "reference", REFERENCES)
    rng = resolve_rng(rng)
    if standardize is not None and not isinstance(standardize, bool):
        raise ArgumentError(f"standardize must be True, False or None, got {standardize!r}.")
    _check_seeds(runs)
    crossed = runs.benchmark is not None and len(runs.levels(runs.benchmark)) > 1 and runs.seed_shared
    standardized = crossed if standardize is None else standardize
    scores, averaged = _scores(runs, crossed, standardized)
    table, notes = _per_algorithm(scores, runs, crossed, standardized, alpha)
    overall, more = _overall(scores, runs, crossed, reference, rng)
    pairing = _pairing(scores, alpha)
    meaning = _meaning(runs, crossed, standardized, pairing)
    affected = tuple(table.loc[table["affected"], "algorithm"])
    grouped = scores.groupby(["algorithm", "seed"], sort=False, observed=True)["centred"]
    means = grouped.agg(["mean", "size"]).reset_index().rename(columns={"size": "n"})
    spread = scores.groupby("algorithm", observed=True)["centred"].std()
    means = means.assign(chance=means["algorithm"].map(spread) / np.sqrt(means["n"]))
    chance = means.groupby("algorithm", observed=True)["chance"].mean()
    return Answer(
        question="seed_effect",
        title="Does the score depend on the seed?",
        tables={"table": table},
        values={
            "affected": affected,
            "significant": bool(affected),
            "overall": overall,
            "pairing": pairing,
            "alpha": alpha,
            "standardized": standardized,
            "crossed": crossed,
            "scores": scores.drop(columns="flat"),
            "seed_means": means,
            "chance_range": _TWO_SIDED * chance.reindex(table["algorithm"]),
        },
        facts=(
            f"All together: {overall.null} against {overall.alternative}: statistic "
            f"{written(overall.statistic, '.4g')}, df {overall.df}, {p_text(overall.p_value)} ({overall.reference}).",
        ),
        findings=_findings(table, affected, overall, alpha, crossed=crossed),
        notes=(*averaged, *meaning, *notes, *more),
        printed=table.drop(columns=[] if crossed else ["n_instances"]),
        figure="seed_effect_plot",
    )


def _findings(
    table: pd.DataFrame, affected: tuple[Any, ...], overall: Answer, alpha: float, *, crossed: bool
) -> tuple[str, ...]:
    """The decision, and where it is unlike that of the test of all algorithms."""
    if affected:
        where = "across benchmarks" if crossed else "across repetitions"
        then = (
            "One cause to look for: with one seed an algorithm tries the same configurations on benchmarks that "
            "share a search space. Its runs there are not independent."
            if crossed
            else "Look for what the seed fixes there; repetitions of a seed do not count as new runs."
        )
        return (
            f"For {listed(affected)}, scores depend on the seed {where} (F-test of the seed's variance per algorithm, "
            f"Holm, alpha = {alpha:g}).",
            then,
        )
    text = (
        f"No sign that the score of any of {int(table['p_raw'].notna().sum())} algorithms depends on the seed "
        f"(smallest Holm-adjusted {p_text(table['p_value'].min())}, alpha = {alpha:g})."
    )
    if not below(overall.p_value, alpha):
        return (text,)
    return (
        text,
        f"The likelihood-ratio test of all algorithms together has {p_text(overall.p_value)}, but it names none, and "
        "the decision is made by the tests per algorithm.",
    )


def lucky_algorithms(runs: Runs, alpha: float) -> tuple[Any, ...]:
    """The algorithms that `seed_effect` names, without its test of all together, which can take seconds."""
    if not runs.study.seeds_cross:
        return ()
    try:
        _check_seeds(runs)
        scores = _scores(runs, crossed=True, standardized=True)[0]
        table = _per_algorithm(scores, runs, True, True, alpha)[0]
    except (DesignError, DataError):
        return ()
    return tuple(table.loc[table["affected"], "algorithm"])


def _scores(runs: Runs, crossed: bool, standardized: bool) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """One score per run as it is tested, and what was averaged.

    The levels of a metafeature are not new throws of the seed: a run that ignores it is the same run at all of them.
    """
    table, notes = runs.study.one_score_per_run()
    scores = _prepared(table, standardized)
    if crossed and runs.study.conditions:
        kept = scores[~scores["flat"]]
        kept = kept.assign(instance=kept["benchmark"].map(format_level), score=kept["centred"])
        scores = _prepared(group_means(kept, ["instance", "algorithm", "seed"], "score")[0], standardized)
    return scores.drop(columns="benchmark", errors="ignore"), notes


def _check_seeds(runs: Runs) -> None:
    seeds = runs.levels(runs.study.require("seed", "nothing can depend on it"))
    if len(seeds) < 2:
        raise DesignError(
            f"there is one seed only ({seeds[0]!r}), so its effect cannot be distinguished from that of the algorithm. "
            "Add runs with other seeds."
        )


def _prepared(frame: pd.DataFrame, standardized: bool) -> pd.DataFrame:
    """The scores, in units of their algorithm's deviation on the instance if asked for, and centred there."""
    frame = frame.copy()
    grouped = frame.groupby(["instance", "algorithm"], observed=True)["score"]
    mean = grouped.transform("mean")
    if standardized:
        spread = grouped.transform("std")
        flat = ~(spread > 1e-12 * mean.abs().clip(lower=np.finfo(float).tiny))  # also NaN: one run
        frame["score"] = np.where(flat, 0.0, (frame["score"] - mean) / spread.where(~flat, 1.0))
        mean = pd.Series(0.0, index=frame.index)
        frame["flat"] = flat
    else:
        frame["flat"] = False
    frame["centred"] = frame["score"] - mean
    return frame


def _per_algorithm(
    scores: pd.DataFrame, runs: Runs, crossed: bool, standardized: bool, alpha: float
) -> tuple[pd.DataFrame, list[str]]:
    rows, notes, reasons = [], [], []
    instance, seed = (pd.factorize(scores[name])[0] for name in ("instance", "seed"))
    y, flat = scores["score"].to_numpy(), scores["flat"].to_numpy()
    algorithm = pd.Index(runs.algorithms).get_indexer(scores["algorithm"])
    for name, whole in zip(runs.algorithms, rows_of_each(algorithm, len(runs.algorithms)), strict=True):
        part = whole[~flat[whole]]
        test, why = _one(y[part], instance[part], seed[part], crossed, standardized, alpha)
        if why:
            reasons.append((name, why))
        elif len(part) < len(whole):
            gone = len(np.unique(instance[whole])) - len(np.unique(instance[part]))
            notes.append(f"{name}: {gone} benchmark{'s' * (gone > 1)} without variation over the seeds left out.")
        of = part if len(part) else whole
        rows.append(_row(name, len(of), len(np.unique(seed[of])), len(np.unique(instance[of])), test))
    table = pd.DataFrame(rows)
    if table["p_raw"].isna().all():
        raise DesignError(_why_none(scores, runs, crossed, reasons))
    adjusted = adjust_raw(table["p_raw"].to_numpy(), "holm", int(table["p_raw"].notna().sum()))
    table.insert(list(table.columns).index("p_raw") + 1, "p_value", adjusted)
    table.insert(list(table.columns).index("p_value") + 1, "affected", at_most(adjusted, alpha))
    return table, [*notes, *(f"{name} cannot be tested: {why}." for name, why in reasons)]


def _one(
    y: Array,
    instance: Index,
    seed: Index,
    crossed: bool,
    standardized: bool,
    alpha: float,
) -> tuple[VarianceRatio | None, str]:
    if not len(y):
        return None, "its scores do not vary over the seeds"
    seeds = seed if crossed else instance * (int(seed.max()) + 1) + seed
    n_seeds = len(np.unique(seeds))
    if n_seeds == len(seeds):
        return None, "none of its seeds comes back"
    if standardized and n_seeds < _FEWEST_SCALED:
        return None, f"two seeds that are scaled to one variance hold nothing but signs{advice('third_seed')}"
    try:
        test = variance_ratio(y, instance, seeds, scaled=standardized, alpha=alpha)
    except DesignError:
        return None, "too few of its seeds come back"
    return (None, "its scores do not vary over the seeds") if np.isnan(test.statistic) else (test, "")


def _row(name: Any, n_runs: int, n_seeds: int, n_instances: int, test: VarianceRatio | None) -> dict[str, Any]:
    counts = {"n_runs": n_runs, "n_seeds": n_seeds, "n_instances": n_instances}
    values = (float("nan"),) * 7
    if test is not None:
        values = (test.statistic, test.df_num, test.df_den, test.p_value, test.share, *test.share_interval)
    names = ("f_ratio", "df_num", "df_den", "p_raw", "seed_share", "ci_low", "ci_high")
    return {"algorithm": name, **counts, **dict(zip(names, values, strict=True))}


def _why_none(scores: pd.DataFrame, runs: Runs, crossed: bool, reasons: list[tuple[str, str]]) -> str:
    if not runs.seed_shared and not scores.duplicated(["instance", "algorithm", "seed"]).any():
        return (
            "each benchmark has its own seeds (seed_shared=False) and one run per algorithm and seed, so what the "
            "seed does cannot be distinguished from chance."
        )
    if not crossed and not scores.duplicated(["instance", "algorithm", "seed"]).any():
        budgets = " (the scores at several budgets are one run)" if runs.budget else ""
        return (
            f"there is one benchmark and one run per algorithm and seed{budgets}, so what the seed does cannot be "
            "distinguished from chance. Add several benchmarks that were run with the same seeds, or repeat seeds."
        )
    whys = {why for _, why in reasons}
    if len(reasons) > 1 and len(whys) == 1:  # once for all algorithms, not once for each
        because = f"no algorithm can be tested: {whys.pop()}."
    else:
        because = " ".join(f"{name} cannot be tested: {why}." for name, why in reasons)
    return (
        f"the effect of the seed cannot be distinguished from chance: {because} Add benchmarks that "
        "were run "
        "with the same seeds, or repeat seeds."
    )


def _overall(
    scores: pd.DataFrame, runs: Runs, crossed: bool, reference: str, rng: int | np.random.Generator | None
) -> tuple[Answer, list[str]]:
    """Equations 7 and 8, with what several instances need."""
    from lmemtest.lmm.hypotheses.glrt import glrt
    from lmemtest.lmm.model import fit_lmm

    names: dict[str, Any] = {"score": runs.score, "algorithm": runs.algorithm, "seed": str(runs.seed)}
    names["instance"] = runs.benchmark if crossed else "instance"
    if len(set(names.values())) < len(names):
        names["instance"] = "instance of the run"
    frame = scores[~scores["flat"]].rename(columns=names)[list(names.values())].copy()
    frame[names["algorithm"]] = frame[names["algorithm"]].astype(str)
    y, a, s, i = (quote_name(names[role]) for role in ("score", "algorithm", "seed", "instance"))
    null = f"{y} ~ {a}"
    if crossed:
        null += f" * {i}"
        if _shares_seeds(scores):
            null += f" + (1 | {i}:{s})"
    algorithms, seeds = frame[names["algorithm"]].nunique(), frame[names["seed"]].nunique()
    full = algorithms <= min(_MOST_ALGORITHMS, seeds - 1)
    effect = f"(0 + {a} | {s})" if full else f"(1 | {s}:{a})"
    notes = []
    if not full:
        notes.append(
            f"Covariances of the seed effects of {algorithms} algorithms are too many for the test of all together, "
            "which has one variance for all algorithms instead."
        )
    if algorithms < 2:
        null, effect = null.replace(f"{a} * {i}", i).replace(f"~ {a}", "~ 1"), f"(1 | {s})"
    if crossed and reference != "bootstrap":
        a, b, c = (pd.factorize(frame[names[role]])[0] for role in ("algorithm", "instance", "seed"))
        values = frame[names["score"]].to_numpy(dtype=float)
        models, paired = (null, f"{null} + {effect}"), _shares_seeds(scores)
        return _of_cells(values, a, b, c, models, reference, rng, paired=paired, full=full), notes
    test = glrt(fit_lmm(null, frame), fit_lmm(f"{null} + {effect}", frame), reference, rng=rng)
    return test, notes


def _of_cells(
    y: Array,
    algorithm: Index,
    benchmark: Index,
    seed: Index,
    models: tuple[str, str],
    reference: str,
    rng: int | np.random.Generator | None,
    *,
    paired: bool,
    full: bool,
) -> Answer:
    """`glrt` of these REML fits without the thousands of columns of algorithms on benchmarks (`absorbed_problem`)."""
    from lmemtest.lmm.engine.absorbed import absorbed_problem
    from lmemtest.lmm.engine.optimize import optimise
    from lmemtest.lmm.engine.structure import RandomTerm
    from lmemtest.lmm.hypotheses.glrt import (
        MOST_LEVELS,
        Nesting,
        choose_reference,
        likelihood_ratio_answer,
        likelihood_ratio_p,
        unfinished,
    )
    from lmemtest.lmm.hypotheses.null_distributions import null_of_eigenvalues

    algorithms = int(algorithm.max()) + 1
    own = seed * algorithms + algorithm
    term = RandomTerm(np.ones((len(y), 1)), own, (int(seed.max()) + 1) * algorithms)
    if full:
        term = RandomTerm(np.eye(algorithms)[algorithm], seed, int(seed.max()) + 1)
    if (columns := term.n_levels * term.k) >= len(y):
        raise DesignError(
            f"the seed effects have {columns:,} columns for {len(y):,} runs, so they cannot be distinguished from the "
            "residual. Add more benchmarks that were run with the same seeds."
        )
    small, constant = absorbed_problem(y, algorithm, benchmark, seed, [], paired=paired)
    large, _ = absorbed_problem(y, algorithm, benchmark, seed, [term], paired=paired)
    fits = [optimise(small), optimise(large)]
    if fits[1].criterion.value > fits[0].criterion.value:
        again = optimise(large, start=np.append(fits[0].theta, np.zeros(large.n_theta - small.n_theta)))
        fits[1] = min(fits[1], again, key=lambda fit: fit.criterion.value)
    for fit in fits:
        if fit.criterion.sigma2 < _NO_RESIDUAL:
            raise DesignError(
                "the model explains the score exactly: no residual variance is left, so there is nothing to judge "
                "seeds by. Are runs of one algorithm copies of another's?"
            )
    llf = [
        -0.5 * (fit.criterion.value + problem.deviance_shift + constant)
        for fit, problem in zip(fits, (small, large), strict=True)
    ]
    df = large.n_theta - small.n_theta
    nesting = Nesting(
        fixed_df=0,
        same_fixed_columns=True,
        home=(0,) * paired,
        maps=(np.ones((1, 1)),) * paired,
        grown=((term.k, 0),),
        dispersion=False,
    )
    why_not_exact = ""
    if paired or term.k > 1:
        why_not_exact = "it is for one scalar variance that is the only random term of the alternative"
    elif term.n_levels > MOST_LEVELS:
        why_not_exact = f"the seed has {term.n_levels} levels, more than {MOST_LEVELS}"
    chosen, components, why = choose_reference(reference, nesting, df, why_not_exact, [])
    products, cells = large.system.B[:-1, :-1], len(y) - large.system.n_rows

    def exact() -> ExactNull:
        sizes = np.bincount(own, minlength=len(products)).astype(float)
        values = np.asarray(np.linalg.eigvalsh(products), dtype=float)
        return null_of_eigenvalues(values, sizes, n_obs=len(y), p=cells, reml=True)

    statistic, p_value, error = likelihood_ratio_p(2.0 * (llf[1] - llf[0]), components, exact, rng=rng)
    values: dict[str, Any] = {"statistic": statistic, "df": df, "p_value": p_value, "p_value_error": error}
    values |= {"reference": chosen, "components": components, "method": "REML", "n_obs": len(y)}
    values |= {"llf_null": llf[0], "llf_alternative": llf[1], "null": models[0], "alternative": models[1]}
    return likelihood_ratio_answer(values, (*why, *unfinished(*(fit.converged for fit in fits))))


def _shares_seeds(scores: pd.DataFrame) -> bool:
    """Whether most runs have a companion: another algorithm with the same seed on the same instance."""
    algorithms = (
        scores.drop_duplicates(["instance", "seed", "algorithm"]).groupby(["instance", "seed"], observed=True).size()
    )
    return bool((algorithms > 1).mean() > 0.5)


def _pairing(scores: pd.DataFrame, alpha: float) -> VarianceRatio | None:
    """How alike are different algorithms with the same seed on one instance?"""
    part = scores[~scores["flat"]]
    if part["algorithm"].nunique() < 2 or not _shares_seeds(part):
        return None
    instance = pd.factorize(part["instance"])[0]
    block = part.groupby(["instance", "algorithm"], observed=True, sort=False).ngroup().to_numpy()
    group = part.groupby(["instance", "seed"], observed=True, sort=False).ngroup().to_numpy()
    if len(np.unique(part["seed"])) > _MOST_PAIRED_SEEDS:
        return None
    y = part["centred"].to_numpy() / np.sqrt(part.groupby("algorithm", observed=True)["centred"].transform("var"))
    try:
        test = variance_ratio(y.to_numpy(), block, group, parts=instance, alpha=alpha)
    except DesignError:
        return None
    return None if np.isnan(test.statistic) else test


def _meaning(runs: Runs, crossed: bool, standardized: bool, pairing: VarianceRatio | None) -> list[str]:
    """What the label of a seed stood for in this test."""
    notes = []
    if crossed:
        notes.append(
            "A seed counts as the same on every benchmark. This is meaningful only if a seed fixes the same random "
            "numbers on every benchmark. If seeds merely label repetitions, expect no effect."
        )
    else:
        where = "There is one benchmark" if runs.seed_shared else "Each benchmark has its own seeds"
        notes.append(
            f"{where}, so the seed shows in repeated rows. They must be new runs: copies of a run make any seed look "
            "decisive."
        )
    if standardized:
        notes.append("Scores are in standard deviations of their algorithm on their benchmark.")
        if crossed and runs.study.conditions:
            metafeatures = " x ".join(runs.study.conditions)
            notes.append(f"Levels of {metafeatures} on one benchmark are averaged: a run that ignores them is one run.")
    if pairing is not None and crossed:
        low, high = pairing.share_interval
        notes.append(
            f"Pairing (no defect, not part of the decision): on one benchmark {written(100 * pairing.share, '.0f')} "
            f"% of "
            f"the variance around an algorithm's mean is common to the algorithms with the same seed (interval "
            f"{written(100 * low, '.0f')} to {written(100 * high, '.0f')} %, {p_text(pairing.p_value)})."
        )
    return notes
