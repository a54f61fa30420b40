"""Every public function with sixteen kinds of bad value for each argument: an error of ours, and no accepted nonsense.

The calls are generated from the signatures, so a new function or argument is in the test as soon as it is public.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_values import BAD, judged, outcome
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.lmm.model.verbs import Verbs

# ------------------------------------------------------------------------------------------------- good arguments


@functools.cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = pd.MultiIndex.from_product(
        [list("ABC"), ["t1", "t2", "t3", "t4"], [0, 1, 2], [1, 2, 4], ["bad", "good"]],
        names=["tool", "task", "seed", "budget", "prior"],
    ).to_frame(index=False)
    level = rows["task"].map(dict(zip(["t1", "t2", "t3", "t4"], rng.normal(size=4), strict=True)))
    noise = rng.normal(scale=0.2, size=len(rows))
    return rows.assign(loss=level + 0.4 * (rows["tool"] == "B") - 0.1 * rows["budget"] + noise)


@functools.cache
def runs() -> lt.Runs:
    return as_runs(table())


@functools.cache
def few() -> lt.Runs:
    """Runs at one budget and one level of the metafeature, for what takes long."""
    return runs().filter(budget=4, prior="good")


@functools.cache
def failing() -> lt.Runs:
    """The same, some of which failed."""
    frame = few().to_frame().assign(failed=lambda t: (t["seed"] == 1) & (t["tool"] == "A"))
    return lt.Runs(frame, **{**few().roles(), "failed": "failed"})


@functools.cache
def fit() -> Any:
    return lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool)", few())


@functools.cache
def smaller_fit() -> Any:
    return lt.fit_lmm("loss ~ tool + (1 | task)", few())


@functools.cache
def sloped() -> Any:
    return lt.fit_lmm("loss ~ tool * budget + (1 | task)", runs())


@functools.cache
def means() -> Any:
    return fit().emmeans("tool")


@functools.cache
def differences() -> Any:
    return means().pairs()


@functools.cache
def scores() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=12), rng.normal(0.3, size=12)


def trials() -> pd.DataFrame:
    a, b = scores()
    return pd.DataFrame({"depth": ["1"] * 12 + ["2"] * 12, "loss": np.r_[a, b]})


def trainings() -> pd.DataFrame:
    seeds = {"data": [*range(6), *[0] * 7], "init": [*[0] * 6, *range(1, 6), 0, 0]}
    right = [45, 41, 47, 43, 46, 40, 44, 46, 45, 43, 44, 45, 44]
    return pd.DataFrame({**seeds, "accuracy": np.array(right) / 50.0})


def answers() -> pd.DataFrame:
    rows = pd.MultiIndex.from_product([list("AB"), list("xyz"), range(6)], names=["model", "task", "item"])
    return rows.to_frame(index=False).assign(right=np.arange(36) % 7 % 2)


def repeated() -> pd.DataFrame:
    rows = pd.MultiIndex.from_product([list("AB"), range(6), range(3)], names=["model", "item", "epoch"])
    return rows.to_frame(index=False).assign(right=np.arange(36) % 7 % 2)


def wide() -> pd.DataFrame:
    return pd.DataFrame({"task": list("abcd"), "fold": [0, 1, 0, 1], "accuracy": [0.71, 0.82, 0.64, 0.90]})


Call = tuple[Callable[..., Any], dict[str, Any]]


@functools.cache
def calls() -> dict[str, Call]:
    """A good call of every public function, as cheap as it can be."""
    a, b = scores()
    sides = {"a": a, "b": b, "direction": "minimize"}
    menu = ["(1 | benchmark:seed)"]
    way = {"score": "loss", "direction": "minimize"}
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool"}
    return {
        "tuning.EmpiricalDistribution": (lt.tuning.EmpiricalDistribution, {"scores": a}),
        "ModelBuilder": (lt.ModelBuilder, {"runs": few()}),
        "tuning.NoisyQuadraticDistribution": (lt.tuning.NoisyQuadraticDistribution,
         {"a": 0.0, "b": 1.0, "c": 2, "o": 0.1}),
        "tuning.QuadraticDistribution": (lt.tuning.QuadraticDistribution, {"a": 0.0, "b": 1.0, "c": 2}),
        "Runs": (lt.Runs, {"frame": table(), **roles}),
        "VarianceComponents": (lt.VarianceComponents, {"interaction_sd": 0.1, "residual_sd": 0.2}),
        "analyze": (lt.analyze, {"runs": few()}),
        "anytime": (lt.anytime, {"runs": runs(), "n_draws": 1000}),
        "answerable": (lt.answerable, {"table": few()}),
        "audit": (lt.audit, {"runs": few(), "n_draws": 2, "unit": "benchmark", "rng": 1}),
        "benchmark_clusters": (lt.benchmark_clusters, {"runs": few(), "n_draws": 2, "rng": 1}),
        "benchmark_effects": (lt.benchmark_effects, {"runs": few(), "rng": 1}),
        "benchmark_information": (lt.benchmark_information, {"runs": few()}),
        "tuning.best_of": (lt.tuning.best_of, sides),
        "tuning.bootstrap_fit": (lt.tuning.bootstrap_fit, {"fit": parametric(), "n_draws": 99, "rng": 1}),
        "tuning.band": (lt.tuning.band, {"n_scores": 5}),
        "check": (lt.check, {"runs": few(), "rng": 1}),
        "tuning.compare": (lt.tuning.compare, {**sides, "n_draws": 0, "rng": 1}),
        "tuning.expected_best": (lt.tuning.expected_best, {"scores": a, "direction": "minimize"}),
        "budget_effect": (lt.budget_effect, {"runs": runs()}),
        "fit_glmm": (lt.fit_glmm, {"formula": "won ~ tool + (1 | task)",
         "data": table().assign(won=table()["seed"] % 2)}),
        "fit_lmm": (lt.fit_lmm, {"formula": "loss ~ tool + (1 | task)", "data": table()}),
        "tuning.fit": (lt.tuning.fit, {"scores": a, "direction": "minimize"}),
        "gate": (lt.gate, {"new": wide().assign(accuracy=[0.72, 0.81, 0.64, 0.91]), "old": wide(), "margin": 0.05,
         "score": "accuracy", "benchmark": "task", "seed": "fold"}),
        "monitor": (lt.monitor, {"runs": runs(), "maximum": 40, "looks": 10, "alpha": 0.1}),
        "rate_votes": (lt.rate_votes, {"table": {"model_a": list("ABC") * 8, "model_b": list("BCA") * 8,
         "winner": ["a", "b", "a", "tie"] * 6, "voter": [0, 1, 2, 3, 4, 5, 6, 7] * 3}, "position": False}),
        "glrt": (lt.glrt, {"null": smaller_fit(), "alternative": fit(), "reference": "mixture", "rng": 1}),
        "tuning.goodness_of_fit": (lt.tuning.goodness_of_fit, {"scores": a, "law": stats.norm()}),
        "metafeature_effect": (lt.metafeature_effect,
         {"runs": runs(), "algorithms": ("A", "B"), "metafeature": "prior", "rng": 1}),
        "permutation_test": (lt.permutation_test,
         {"runs": few(), "model": "loss ~ tool + (1 | task)", "n_draws": 2, "rng": 1}),
        "tuning.plan": (lt.tuning.plan, {"n_scores": 5}),
        "plan": (lt.plan, {"components": {"tuning": 0.4, "data": 0.9, "seed": 0.3}, "budget": 200, "trials": 20,
         "stages": ("tuning", "data", "seed"), "costs": {"training": 1.0}, "at_most": {"data": 9},
         "current": {"seed": 3}}),
        "power": (lt.power, {"components": components(), "effect": 0.1, "n_benchmarks": 4, "n_seeds": 2,
         "n_algorithms": 3, "n_draws": 9, "rng": 1}),
        "evaluate": (lt.evaluate,
         {"table": answers(), "model": "model", "item": "item", "task": "task", "score": "right"}),
        "mcnemar": (lt.mcnemar,
         {"table": answers().query("task == 'x'"), "model": "model", "item": "item", "score": "right"}),
        "repeated_attempts": (lt.repeated_attempts,
         {"table": repeated(), "model": "model", "item": "item", "epoch": "epoch", "score": "right"}),
        "aggregate_scores": (lt.aggregate_scores, {"runs": few(), "n_draws": 50, "rng": 1}),
        "stochastic order": (lt.outperforming, {"a": few(), "measure": "stochastic_order", "rng": 1}),
        "effect size": (lt.outperforming,
         {"a": [0.1, 0.4, 0.3, 0.6], "b": [0.2, 0.3, 0.5, 0.9], "measure": "cohen_d", "rng": 1}),
        "outperforming": (lt.outperforming,
         {"a": [0.1, 0.4, 0.3, 0.6, 0.8], "b": [0.2, 0.3, 0.5, 0.5, 0.7], "direction": "maximize", "rng": 1}),
        "rank": (lt.rank, {"data": few(), "n_draws": 100, "rng": 1}),
        "ranking_reliability": (lt.ranking_reliability, {"runs": few()}),
        "recommend": (lt.recommend, {"runs": few()}),
        "failure_rates": (lt.failure_rates, {"runs": failing(), "rng": 1}),
        "robustness": (lt.robustness, {"runs": failing(), "of": "failures"}),
        "score_distributions": (lt.score_distributions, {"runs": few()}),
        "variant": (lt.variant, {"runs": few(), "without": {"task": "t1"}}),
        "seed_effect": (lt.seed_effect, {"runs": few(), "rng": 1}),
        "select_model": (lt.select_model,
         {"runs": few(), "method": "best", "depth": 2, "candidates": menu, "rng": 1}),
        "sign flips": (lt.permutation_test, {"runs": few(), "exchange": "signs", "n_draws": 9, "rng": 1}),
        "tuning.curve": (lt.tuning.curve, {"scores": a, "direction": "minimize"}),
        "tuning.curves": (lt.tuning.curves, {"trials": trials(), "by": "depth", **way}),
        "tuning.risk": (lt.tuning.risk,
         {"trials": trials(), "hyperparameter": "depth", "values": "1", "score": "loss", "direction": "minimize"}),
        "trajectories": (lt.trajectories,
         {"logs": table(), "time": "budget", "run": ["seed", "prior"], "benchmark": "task", **roles}),
        "variance_sources": (lt.variance_sources, {"runs": few()}),
        "variance_sources of trainings": (lt.variance_sources,
         {"runs": trainings(), "score": "accuracy", "sources": ["data", "init"]}),
    }  # fmt: skip


@functools.cache
def control() -> Any:
    return means().against("A")


def methods() -> dict[str, Call]:
    """Good calls of methods that take more than the object."""
    L = np.eye(3)[1:]
    return {
        "Anytime.at": (lt.anytime(runs()).at, {"budgets": [2, 4]}),
        "Anytime.ranks": (lt.anytime(runs()).ranks, {}),
        "Runs.levels": (runs().levels, {"column": "task"}),
        "Runs.normalize": (runs().normalize, {"method": "rank"}),
        "LmmFit.anova": (fit().anova, {"ddf": "residual"}),
        "LmmFit.cov": (fit().cov, {"L": L}),
        "LmmFit.df": (fit().df, {"L": L}),
        "LmmFit.estimate": (fit().estimate, {"L": L}),
        "LmmFit.estimable": (fit().estimable, {"L": L}),
        "LmmFit.predict": (fit().predict, {"frame": table()}),
        "LmmFit.simulate": (fit().simulate, {"rng": 1}),
        "LmmFit.bootstrap": (fit().bootstrap, {"statistic": lambda f: f.scale, "n_draws": 2, "rng": 1}),
        "LmmFit.cluster_robust": (fit().cluster_robust, {"cluster": "task"}),
        "VarianceComponents.of": (lt.VarianceComponents.of, {"fit": fit(), "algorithm": "tool", "benchmark": "task"}),
        "LmmFit.diagnose": (fit().diagnose, {"influence": False, "n_draws": 99, "rng": 1}),
        "LmmFit.emmeans": (fit().emmeans, {"specs": "tool"}),
        "LmmFit.emtrends": (sloped().emtrends, {"specs": "tool", "var": "budget"}),
        "LmmFit.conf_int": (fit().conf_int, {"alpha": 0.1, "ddf": "satterthwaite"}),
        "LmmFit.icc": (fit().icc, {}),
        "LmmFit.r2": (fit().r2, {}),
        "LmmFit.influence": (fit().influence, {"group": "task"}),
        "LmmFit.joint_tests": (fit().joint_tests, {}),
        "LmmFit.moderated": (fit().moderated, {"cluster": "task"}),
        "LmmFit.profile": (smaller_fit().profile, {"parameters": "sd"}),
        "LmmFit.random_effects": (fit().random_effects, {"group": "task", "rng": 1}),
        "LmmFit.ranova": (fit().ranova, {"reference": "mixture", "rng": 1}),
        "Estimates.pairs": (means().pairs, {}),
        "Estimates.contrast": (means().contrast, {"coefficients": {"A - B": [1, -1, 0]}}),
        "Estimates.against": (means().against, {"control": "A"}),
        "Estimates.best": (means().best, {"direction": "minimize"}),
        "Comparisons.decisions": (differences().decisions, {}),
        "Comparisons.equivalence": (differences().equivalence, {"margin": 1.0}),
        "Comparisons.noninferiority": (control().noninferiority, {"margin": 1.0, "direction": "minimize"}),
    }  # fmt: skip


@functools.cache
def components() -> Any:
    return lt.VarianceComponents(interaction_sd=0.1, residual_sd=0.2)


@functools.cache
def parametric() -> Any:
    return lt.tuning.fit(scores()[0], direction="minimize")


PUBLIC = sorted(n for n in lt.__all__ if callable(getattr(lt, n)) and not inspect.ismodule(getattr(lt, n)))
TUNING = sorted(f"tuning.{name}" for name in lt.tuning.__all__)
TESTED_ELSEWHERE = {
    "read_runs",  # tests/bench/data/test_readers.py
    "StopWhenDecided",  # tests/bench/looks/test_stopping.py: the task knows the scorers and the number of items
    # tests/tuning/test_compare.py and test_distribution.py
    *(f"tuning.{name}" for name in ("false_label_rates", "kernel_density")),
}

OTHER_QUESTIONS = (
    "effect size",
    "sign flips",
    "stochastic order",
    "variance_sources of trainings",
)  # of functions with several, each with its arguments


def test_every_public_function_and_verb_of_a_fit_has_a_good_call() -> None:
    assert {f"LmmFit.{name}" for name in vars(Verbs) if not name.startswith("_")} <= set(methods())
    assert set(calls()) - set(OTHER_QUESTIONS) == {*PUBLIC, *TUNING} - TESTED_ELSEWHERE


NAMES = [name for name in [*PUBLIC, *TUNING, *OTHER_QUESTIONS] if name not in TESTED_ELSEWHERE]


@pytest.mark.parametrize("name", [*NAMES, *sorted(methods())])
def test_bad_arguments_are_refused_in_words(name: str) -> None:
    function, good = {**calls(), **methods()}[name] if "." in name else calls()[name]
    assert list(judged(name, function, good)) == []  # that the good calls are good, test_saving.py sees


@pytest.mark.parametrize("name", sorted(set(lt.plots.__all__) - {"detached_figures", "gallery"}))
def test_plots_refuse_what_they_cannot_draw(name: str) -> None:
    draw = getattr(lt.plots, name)
    assert {kind: outcome(functools.partial(draw, value)) for kind, value in BAD.items()} == dict.fromkeys(
        BAD, "refused"
    )


# What a search with random nonsense found: values that break numpy's and pandas' own words, by the arguments that take
# them in. Everything is refused, in at most 2,000 characters.
NO_VALUE, NO_DIMENSION, COLUMN = pd.NA, np.array(3.0), pd.Series([1, 2])
COMPLEX, DATES = np.array([1.0 + 2j, 0.5, 2.0]), np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
LONG, DOUBLE = "x" * 100_000, np.longdouble("0.05")
FOUND: dict[str, list[tuple[str, Any]]] = {
    "Runs": [(name, NO_DIMENSION) for name in ("seed", "family", "metafeatures", "ignore")]
    + [("seed", value) for value in (NO_VALUE, COLUMN, COMPLEX, DATES, LONG)],
    "analyze": [("dispersion", NO_DIMENSION)],
    "audit": [("placebo", NO_VALUE), ("unit", NO_DIMENSION), ("executor", COLUMN)],
    "budget_effect": [("alpha", 5e-324), ("alpha", DOUBLE)],
    "check": [("checks", NO_DIMENSION)],
    "effect size": [("a", COMPLEX), ("b", COMPLEX), ("alpha", DOUBLE)],
    "evaluate": [("model", NO_DIMENSION), ("power", 5e-324), ("max_score", 1e308)],
    "robustness": [("reference", NO_VALUE), ("reference", 1e308)],
    "gate": [(name, NO_DIMENSION) for name in ("score", "family", "ignore", "allow")] + [("alpha", 5e-324)],
    "Anytime.at": [("budgets", np.True_), ("budgets", NO_DIMENSION)],
    "metafeature_effect": [("levels", NO_DIMENSION), ("levels", np.array([[0, 1j]]))],
    "plan": [("stages", NO_DIMENSION), ("costs", 5e-324)],
    "power": [("executor", COLUMN.to_frame("a")), ("n_seeds", NO_DIMENSION), ("effect", 1e308)],
    "outperforming": [("alpha", 5e-324), ("a", COMPLEX)],
    "rank": [("curves", NO_VALUE), ("curves", DATES)],
    "Anytime.ranks": [("budgets", COMPLEX), ("budgets", DATES)],
    "score_distributions": [("budget", NO_VALUE), ("by", NO_DIMENSION)],
    "seed_effect": [("alpha", DOUBLE)],
    "select_model": [("candidates", NO_DIMENSION), ("executor", pd.Index(["a"])), ("executor", COLUMN)],
    "stochastic order": [("alpha", 5e-324)],
    "tuning.EmpiricalDistribution": [("weights", COMPLEX), ("bounds", COMPLEX[:2])],
    "tuning.bootstrap_fit": [("executor", COLUMN)],
    "tuning.curve": [("bounds", COMPLEX[:2])],
    "tuning.risk": [("values", NO_DIMENSION), ("values", DATES), ("values", 2**70)],
    "trajectories": [("run", NO_DIMENSION), ("grid", COMPLEX)],
    "variance_sources": [("sources", NO_DIMENSION)],
    "variance_sources of trainings": [("sources", NO_DIMENSION)],
    "LmmFit.cov": [("L", COMPLEX)],
    "LmmFit.df": [("L", COMPLEX)],
    "LmmFit.diagnose": [("specs", NO_DIMENSION), ("executor", COLUMN)],
    "LmmFit.emtrends": [("specs", NO_DIMENSION), ("by", NO_DIMENSION)],
    "LmmFit.estimable": [("L", COMPLEX)],
    "LmmFit.estimate": [("L", COMPLEX)],
    "LmmFit.influence": [("specs", NO_DIMENSION), ("executor", COLUMN)],
    "LmmFit.joint_tests": [("by", NO_DIMENSION)],
    "LmmFit.profile": [("parameters", NO_DIMENSION)],
    "Comparisons.equivalence": [("margin", 1e308)],
    "Comparisons.noninferiority": [("margin", 1e308)],
    "Estimates.contrast": [("alpha", 5e-324)],
}


@pytest.mark.parametrize("name", FOUND)
def test_values_that_break_the_words_of_others_are_refused_in_ours(name: str) -> None:
    function, good = {**calls(), **methods()}[name]
    got = [
        (argument, outcome(functools.partial(function, **{**good, argument: value}))) for argument, value in FOUND[name]
    ]
    assert got == [(argument, "refused") for argument, _ in FOUND[name]]


def test_curves_from_any_budget_on_are_made() -> None:
    """Beyond all scores there is one point, where the best score is the largest; for tiny k it is the smallest."""
    scores_ = scores()[0]
    far = lt.tuning.curve(scores_, direction="minimize", from_k=2**70).to_frame()
    assert list(far["estimate"]) == [scores_.min()]
    near = lt.tuning.curve(scores_, direction="minimize", k=[5e-324]).to_frame()
    assert list(near["estimate"]) == [scores_.max()]
    best = lt.tuning.expected_best(scores_, direction="minimize", k=1e308).to_frame()
    assert list(best["estimate"]) == pytest.approx([scores_.min()], rel=1e-12)


def test_messages_are_bounded_and_keep_the_next_step() -> None:
    with pytest.raises(lt.errors.LmemtestError) as caught:
        lt.Runs(table(), score=LONG, direction="minimize", algorithm="tool")
    message = str(caught.value)
    assert 500 < len(message) <= 2000
    assert "characters) ..." in message
