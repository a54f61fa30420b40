"""The planner agrees with the curves it plans, and finds the smallest number of scores."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pytest import approx
from refusals import refusal

from lmemtest import tuning
from lmemtest.bench.data.datasets import load_hpo_trials
from lmemtest.errors import ArgumentError
from lmemtest.tuning.curve import trivial_beyond
from lmemtest.tuning.order_statistics import BANDS, critical_value
from lmemtest.tuning.risk import describe_value


def test_the_reach_has_the_closed_forms_of_the_ld_bands():
    for n in (2, 8, 48, 300):
        density = tuning.plan(n_scores=n).k_max[0]
        assert density == approx(n * np.log(2) / -np.log(critical_value(n)), rel=1e-12)
        options = {"band": "ld_equal_tailed", "level": 0.95}
        tails = tuning.plan(n_scores=n, statistic=0.9, direction="maximize", **options).k_max[0]
        assert tuning.plan(n_scores=n, statistic=0.1, direction="minimize", **options).k_max[0] == approx(
            tails, rel=1e-12
        )
        level = critical_value(n, band="ld_equal_tailed", level=0.95)
        assert tails == approx(n * np.log(1 / 0.9) / np.log(2 / level), rel=1e-12)


def test_known_reaches():
    assert tuning.plan(n_scores=48).k_max[0] == approx(8.154, abs=5e-4)
    assert tuning.plan(n_scores=48, from_k=1).k_max[0] == approx(9.65, abs=5e-3)


def test_the_line_of_paper_000_is_a_local_fit():
    """n = 6.25 k, so k = 0.16 n: n scores reach further than that up to about 90, and less far beyond."""
    n = np.array([8, 16, 32, 48, 96, 192])
    per_score = tuning.plan(n_scores=n).k_max / n
    assert np.all(np.diff(per_score) < 0)
    assert per_score[3] > 0.16 > per_score[4]
    large = tuning.plan(k=200)
    assert large.n_scores[0] == 1487
    assert trivial_beyond(tuning.band(1486), 0.5) < 200 <= large.k_max[0]
    assert tuning.plan(n_scores=[1, 4, 48]).k.tolist() == [0.0, 1.0, 8.0]  # whole numbers within reach


def test_the_planned_number_is_the_smallest_of_all():
    for (method, from_k), (level, quantile) in itertools.product(
        [(method, start) for method in BANDS for start in (None, 1, 4) if method != "dkw" or start is None],
        [(0.01, 0.5), (0.5, 0.5), (0.8, 0.9)],
    ):
        bands = (tuning.band(n, band=method, level=level, from_k=from_k, quantile=quantile) for n in range(1, 60))
        reach = np.array([trivial_beyond(band, quantile) for band in bands])
        for k in (0.5, 1, 2.5, 4, 5, 6.5, 9):
            enough = np.flatnonzero(reach >= k)
            if len(enough) and (from_k is None or k >= from_k):
                options = {"level": level, "from_k": from_k, "direction": "maximize"}
                plan = tuning.plan(k=k, band=method, statistic=quantile, **options)
                assert plan.n_scores[0] == enough[0] + 1
                assert plan.k_max[0] == reach[enough[0]]


def test_a_curve_of_the_planned_size_has_two_limits_at_k_and_one_score_less_does_not():
    rng = np.random.default_rng(5)
    for direction in ("maximize", "minimize"):
        n = int(tuning.plan(k=20, level=0.9).n_scores[0])
        for size, trivial in ((n, False), (n - 1, True)):
            curve = tuning.curve(rng.random(size), direction=direction, k=20, level=0.9)
            assert curve.trivial[0] == trivial


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("statistic", [0.2, 0.9])
def test_plans_for_quantiles_are_those_of_their_curves(direction, statistic):
    plan = tuning.plan(n_scores=30, statistic=statistic, direction=direction)
    curve = tuning.curve(np.arange(30.0), direction=direction, statistic=statistic)
    assert plan.k_max[0] == curve.k_max
    sides = curve.at([curve.k_max * (1 - 1e-9), curve.k_max * (1 + 1e-9)])
    assert (sides.high_trivial if direction == "maximize" else sides.low_trivial).tolist() == [False, True]
    assert f"{statistic} quantile to {direction}" in plan.curve


def test_the_table_says_what_was_asked():
    plan = tuning.plan(k=[2, 8], from_k=1)
    assert list(plan.to_frame().columns) == ["n_scores", "k", "k_max", "critical_value"]
    assert "n_scores is the smallest number" in plan.summary()
    assert "80 % LD band of highest-density intervals, median, for k >= 1." in plan.summary()
    assert "k is the largest whole number" in repr(tuning.plan(n_scores=10))


def test_plans_that_cannot_be_made_are_named():
    for arguments, message in [
        ({}, "give either n_scores (how many scores there are) or k (how many configurations the curve must reach)."),
        ({"n_scores": 1, "k": 1},
         "give either n_scores (how many scores there are) or k (how many configurations the curve must reach)."),
        ({"n_scores": 0}, "n_scores must be a whole number of at least 1, got 0."),
        ({"n_scores": 10**12},
         "n_scores must be at most 100,000 scores for band='ld_highest_density', whose calibration is exact, got "
         "1,000,000,000,000. Use band='dkw', which has a closed form, or a random part of the scores."),
        ({"n_scores": []}, "n_scores must be a whole number of at least 1 or a list of such, got []."),
        ({"k": -1}, "k must be positive and finite (how many configurations are tried), got -1."),
        ({"k": 5, "statistic": "mean"},
         "statistic='mean' has no such k: with bounds its limits are never trivial, without bounds always. "
         "Use 'median' or a quantile."),
        ({"k": 0.5, "from_k": 1}, "k must be at least from_k = 1, got 0.5."),
        ({"k": 1e5, "band": "dkw"},
         "k = 100000 needs more than 10,000 scores, which reach 64.25 with this band, quantile and level. "
         "Plan for a smaller k or a lower level."),
        ({"k": 5, "statistic": 0.9},
         "direction must be given for the 0.9 quantile: 'maximize' or 'minimize'. The best score is the largest or "
         "the smallest one, and only for medians both have limits for the same k."),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError) as caught:
            tuning.plan(**arguments)
        assert str(caught.value) == message


# ---------------------------------------------------------------------- importance


RNG = np.random.default_rng(1)
EPOCHS = RNG.integers(1, 5, 400)
TRIALS = pd.DataFrame(
    {
        "epochs": EPOCHS,
        "optimizer": np.where(RNG.random(400) < 0.5, "adam", "sgd"),
        "rate": RNG.uniform(0.0, 1.0, 400),
        "accuracy": 0.5 + 0.08 * np.minimum(EPOCHS, 3) + RNG.normal(0, 0.02, 400),
        "seconds": 10.0 * EPOCHS + RNG.random(400),
    }
)
UP = {"score": "accuracy", "direction": "maximize"}


def test_each_value_is_its_trials_against_all_trials():
    risk = tuning.risk(TRIALS, "epochs", values=[1, 3], cost="seconds", **UP)
    for value, found, count in zip(risk.fixed_at, risk.comparisons, risk.counts, strict=True):
        fixed = TRIALS[TRIALS["epochs"] == value]
        want = tuning.compare(
            *(TRIALS["accuracy"], fixed["accuracy"]),
            direction="maximize",
            names=("tuned", f"fixed at {value}"),
            cost_a=TRIALS["seconds"],
            cost_b=fixed["seconds"],
            n_draws=0,
        )
        assert count == len(fixed)
        assert np.array_equal(found.signed, want.signed)
        assert (found.label, found.better, found.observed) == (want.label, want.better, want.observed)
        assert found.rates is None
    assert risk.to_frame()["mean_cost"].tolist() == approx(
        [TRIALS.loc[TRIALS["epochs"] == v, "seconds"].mean() for v in (1, 3)]
    )


def test_a_bad_default_is_a_risk_and_a_good_one_is_none():
    risk = tuning.risk(TRIALS, "epochs", values=[1, 3], **UP)
    labels = risk.to_frame()
    assert (labels["evidence"][0], labels["better"][0]) == ("strong", "tuned")
    assert labels["better"][1] != "tuned"
    assert risk.sentences()[0].startswith("epochs = 1: Strong evidence that tuned is better for 1 to ")
    assert list(labels.columns) == ["value", "n_scores", "evidence", "better", "portion"]
    assert "Budgets are trials; if the hyperparameter changes what a trial costs, give cost=." in risk.notes
    assert "Tuning epochs (n = 400) or fixing it" in repr(risk)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_risk_is_positive_where_tuning_is_better_and_bounded_by_both_bands(direction):
    sign = 1.0 if direction == "maximize" else -1.0
    table = TRIALS.assign(accuracy=sign * TRIALS["accuracy"])
    risk = tuning.risk(table, "epochs", values=1, score="accuracy", direction=direction, grid=[1, 4, 20])
    frame = risk.to_frame("risk")
    assert list(frame.columns) == ["value", "trials", "tuned", "fixed", "risk", "band_low", "band_high", "trivial"]
    assert frame["risk"].to_numpy() == approx(sign * (frame["tuned"] - frame["fixed"]))
    assert (frame["risk"] > 0).all()
    assert (frame["band_low"] <= frame["risk"]).all()
    assert (frame["risk"] <= frame["band_high"]).all()
    both = risk.risks[0]
    assert both.level == approx(0.9)  # Bonferroni: two bands at 90 % hold together with 80 %
    worst = both.a.band_low - both.b.band_high if sign > 0 else both.b.band_low - both.a.band_high
    assert frame["band_low"].to_numpy() == approx(worst)


def test_ranges_serve_values_that_never_repeat():
    risk = tuning.risk(TRIALS, "rate", values=[(0.0, 0.25), (0.25, 1.0)], **UP)
    assert risk.counts == (int((TRIALS["rate"] <= 0.25).sum()), int((TRIALS["rate"] >= 0.25).sum()))
    assert risk.to_frame()["value"].tolist() == ["0 to 0.25", "0.25 to 1"]
    assert "A range stands for its values: within it the hyperparameter is still tuned." in risk.notes


def test_constant_costs_count_as_known():
    risk = tuning.risk(TRIALS, "epochs", values=3, cost="epochs", **UP)  # the column is the cost itself
    assert risk.comparisons[0].b.cost.fixed
    assert not risk.comparisons[0].a.cost.fixed
    assert any(note.startswith("Mean cost of a trial of tuned: 2.") for note in risk.notes)


def test_other_tables_and_text_values_work():
    want = tuning.risk(TRIALS, "optimizer", values="adam", **UP)
    for table in (pl.from_pandas(TRIALS), pl.from_pandas(TRIALS).lazy(), TRIALS.to_dict("list")):
        got = tuning.risk(table, "optimizer", values=["adam"], **UP)
        assert np.array_equal(got.comparisons[0].signed, want.comparisons[0].signed)
    assert describe_value("adam") == "adam"


def test_bundled_trials_show_that_the_learning_rate_matters():
    trials = load_hpo_trials()
    trials = trials[trials["benchmark"] == "mlp-digits"]
    risk = tuning.risk(
        trials, "learning_rate", values=[(1e-4, 1e-3)], score="valid_loss", direction="minimize", cost="cost"
    )
    labels = risk.to_frame()
    assert labels["n_scores"][0] > 40
    assert labels["better"][0] == "tuned"


def test_deberta_epochs(data_dir):
    """Figure 17 of Lourie, Cho & He (2024): 1 and 2 epochs are too few, 3 and 4 are enough."""
    frame = pd.read_csv(data_dir / "deberta.csv")
    trials = frame[frame["model"] == "DeBERTaV3"]
    risk = tuning.risk(trials, "epochs", values=[1, 2, 3, 4], score="best_matched", direction="maximize", cost="epochs")
    assert risk.to_frame()["better"].tolist() == ["tuned", "tuned", "", ""]
    assert risk.to_frame()["evidence"].tolist() == ["fair", "weak", "none", "none"]


def test_what_cannot_be_fixed_is_refused_with_advice():
    def told(values, name="epochs", table=TRIALS, **options):
        return refusal(lambda: tuning.risk(table, name, values=values, **{**UP, **options}))

    assert told(9) == "no trial has epochs = 9. There are: 1, 2, 3, 4."
    assert told(0.5, "rate").startswith("no trial has rate = 0.5. They go from 0.00")
    assert told([]) == "values must name at least one value of the hyperparameter, got an empty list."
    assert told([3, 3]) == "values must differ from each other, got 3, 3."
    assert told((3, 1)) == (
        "a tuple in values must be a range (low, high) with low < high, got (3, 1). Write several values as a list."
    )
    assert told("three") == "values of 'epochs' must be numbers, as in the table, got 'three'."
    assert told((0.0, 1.0), "optimizer") == (
        "'optimizer' is not numeric, so (0.0, 1.0) cannot be a range of it. Name values, as a list."
    )
    assert told(1, "epoch").endswith("Did you mean 'epochs'?")
    assert told(1, score="loss").startswith("score names the column 'loss', which is not in the data.")
    assert told(1, cost="time").startswith("cost names the column 'time', which is not in the data.")
    assert told(1, "accuracy") == (
        "hyperparameter and score are the same column, 'accuracy'. Name the one that is fixed."
    )
    holed = TRIALS.assign(epochs=TRIALS["epochs"].where(TRIALS.index > 2))
    assert told(1, table=holed) == (
        "3 of 400 trials have no value of 'epochs'. Keep the trials of one method that has this hyperparameter."
    )
    assert "1 of 400 are NaN" in told(1, table=TRIALS.assign(accuracy=TRIALS["accuracy"].where(TRIALS.index > 0)))
