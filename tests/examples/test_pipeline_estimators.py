"""The ideal estimator and that of fixed tuning: budget, seeds, failures, and the scores themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from paper_figures.estimators import fixed_tuning_estimator, ideal_estimator

from lmemtest.errors import ArgumentError, EstimationError

SOURCES = ("data", "init")
TRIALS = 5


def noise(seed):
    return (seed * 0.6180339887498949) % 1.0 - 0.5


def pipeline(size, seeds):
    return 0.8 - (size - 1.0 - noise(seeds["data"])) ** 2 + 0.02 * noise(seeds["init"])


def tuner(pipeline, seeds):
    sizes = np.random.default_rng(seeds["tuning"]).uniform(0, 2, size=TRIALS)
    return max(sizes, key=lambda size: pipeline(size, seeds))


def seeds_of(estimate):
    return estimate.table[[name for name in estimate.table if name.startswith("seed_")]]


def test_the_ideal_estimator_costs_k_times_t_plus_one_and_randomises_everything():
    found = ideal_estimator(pipeline, tuner, 7, sources=SOURCES, rng=1)
    assert (found.n_trainings, found.n_tuning) == (7 * (TRIALS + 1), 7 * TRIALS)
    assert found.table["n_trainings"].eq(TRIALS + 1).all()
    assert seeds_of(found).nunique().eq(7).all()
    assert found.fixed == ()
    for run, size in zip(found.table.to_dict("records"), found.hyperparameters, strict=True):
        seeds = {name: run[f"seed_{name}"] for name in (*SOURCES, "tuning")}
        assert size == tuner(pipeline, seeds)
        assert run["score"] == pipeline(size, seeds)


@pytest.mark.parametrize(
    ("randomize", "new"), [("all", SOURCES), ("init", ("init",)), (["init", "data"], SOURCES), ((), ())]
)
def test_fixed_tuning_costs_t_plus_k_and_randomises_the_subset(randomize, new):
    found = fixed_tuning_estimator(pipeline, tuner, 7, sources=SOURCES, randomize=randomize, rng=1)
    assert (found.n_trainings, found.n_tuning) == (TRIALS + 7, TRIALS)
    assert set(found.fixed) == {*SOURCES, "tuning"} - set(new)
    counts = seeds_of(found).nunique()
    assert {name: counts[f"seed_{name}"] for name in new} == dict.fromkeys(new, 7)
    assert all(counts[f"seed_{name}"] == 1 for name in found.fixed)
    (size,) = found.hyperparameters
    assert_allclose(
        found.table["score"],
        [pipeline(size, {"data": d, "init": i}) for d, i in seeds_of(found)[["seed_data", "seed_init"]].to_numpy()],
    )


def test_fixed_sources_keep_the_seeds_that_were_tuned_on():
    seen = []

    def spy(pipeline, seeds):
        seen.append(seeds)
        return tuner(pipeline, seeds)

    found = fixed_tuning_estimator(pipeline, spy, 3, sources=SOURCES, randomize="init", rng=4)
    (tuned_on,) = seen
    assert found.table["seed_data"].eq(tuned_on["data"]).all()
    assert found.table["seed_tuning"].eq(tuned_on["tuning"]).all()
    assert tuned_on["init"] not in set(found.table["seed_init"])


def test_mean_and_standard_error_are_those_of_the_scores():
    found = fixed_tuning_estimator(pipeline, tuner, 9, sources=SOURCES, rng=2)
    scores = found.table["score"].to_numpy()
    assert_allclose([found.mean, found.standard_error], [scores.mean(), scores.std(ddof=1) / 3.0])
    single = fixed_tuning_estimator(pipeline, tuner, 1, sources=SOURCES, rng=2)
    assert np.isnan(single.standard_error)


@pytest.mark.parametrize("estimator", [ideal_estimator, fixed_tuning_estimator])
def test_scores_depend_on_rng_and_position_alone(estimator):
    one = estimator(pipeline, tuner, 4, sources=SOURCES, rng=3)
    assert_array_equal(one.table["score"], estimator(pipeline, tuner, 6, sources=SOURCES, rng=3).table["score"][:4])
    other = estimator(lambda size, seeds: pipeline(size, seeds) + 1.0, tuner, 4, sources=SOURCES, rng=3)
    assert_array_equal(seeds_of(one), seeds_of(other))
    assert_allclose(other.scores - one.scores, 1.0)  # a pair in each repetition


def test_the_tuner_sees_the_objective_where_there_is_one():
    found = ideal_estimator(
        pipeline, lambda train, seeds: max((0.5, 1.5), key=lambda size: train(size, seeds)), 3, sources=SOURCES,
        objective=lambda size, _: size, rng=1,
    )  # fmt: skip
    assert found.hyperparameters == (1.5, 1.5, 1.5)


def test_a_failure_is_named_counted_and_leaves_the_other_scores():
    good = ideal_estimator(pipeline, tuner, 5, sources=SOURCES, rng=1)
    broken = good.table["seed_data"].iloc[2]

    def diverges(size, seeds):
        if seeds["data"] == broken:
            raise RuntimeError("loss is nan")
        return pipeline(size, seeds)

    found = ideal_estimator(diverges, tuner, 5, sources=SOURCES, rng=1)
    assert_array_equal(found.scores, np.delete(good.scores, 2))
    assert found.table["failure"].iloc[2] == "tuning failed after 1 training with RuntimeError: loss is nan"
    assert found.n_trainings == 4 * (TRIALS + 1) + 1

    def nan(size, seeds):
        return float("nan") if seeds["data"] == broken else pipeline(size, seeds)

    found = ideal_estimator(nan, lambda *_: 1.0, 5, sources=SOURCES, rng=1)
    assert found.table["failure"].dropna().tolist() == ["the score is nan"]


def fails(*_):
    raise OSError("no disk")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ideal_estimator(fails, lambda *_: 1, 3, sources="a"), EstimationError,
         "none of 3 repetitions gave a score; the first: the training failed with OSError: no disk"),
        (lambda: fixed_tuning_estimator(pipeline, fails, 3, sources="a", rng=1), EstimationError,
         "tuning failed after 0 trainings with OSError: no disk .*seeds"),
        (lambda: ideal_estimator(lambda _, seeds: seeds["b"], lambda *_: 1, 3, sources="a", rng=1), EstimationError,
         r"KeyError: 'b' \(if it is a source of variation, name it in sources\)"),
        (lambda: ideal_estimator(pipeline, tuner, 3, sources=[]), ArgumentError, "sources must be names"),
        (lambda: ideal_estimator(pipeline, tuner, 3, sources=["a", "a"]), ArgumentError, "each once"),
        (lambda: ideal_estimator(pipeline, tuner, 3, sources=["tuning"]), ArgumentError, "must not hold 'tuning'"),
        (lambda: fixed_tuning_estimator(pipeline, tuner, 3, sources="a", randomize="b"), ArgumentError,
         r"randomize must be 'all' or some of the sources \['a'\], got 'b'"),
        (lambda: fixed_tuning_estimator(pipeline, tuner, 3, sources="a", randomize="tuning"), ArgumentError,
         "Use ideal_estimator to tune in every repetition"),
    ],
)  # fmt: skip
def test_what_cannot_be_estimated_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
