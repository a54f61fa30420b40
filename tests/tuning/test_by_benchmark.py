"""Curves of many groups at once: each is the curve of its own scores, and what is counted is counted right."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
import types

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from pytest import approx
from refusals import refusal

import lmemtest
from lmemtest import tuning
from lmemtest.bench.data.datasets import load_hpo_runs
from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError, LmemtestError, UnknownColumnError
from lmemtest.tuning import NoisyQuadraticDistribution, fit
from lmemtest.tuning.costs import mean_cost
from lmemtest.tuning.curves import quantile_ranks
from lmemtest.tuning.evidence import false_label_rates
from lmemtest.tuning.fit.profile import Family

ROLES = {"score": "loss", "direction": "minimize", "by": ["task", "tool"]}


def make(sizes=((48, 48), (20, 3)), seed=1):
    """Trials of tools A and B on tasks t0, t1, ...; `sizes` per task. The row order is mixed up."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"t{i}", tool, i + step + rng.gamma(2.0), rng.lognormal(0.0, 0.3))
        for i, pair in enumerate(sizes)
        for step, (tool, n) in enumerate(zip("AB", pair, strict=True))
        for _ in range(n)
    ]
    frame = pd.DataFrame(rows, columns=["task", "tool", "loss", "cost"])
    return frame.sample(frac=1.0, random_state=2).reset_index(drop=True)


def of(frame, task, tool):
    return frame[(frame["task"] == task) & (frame["tool"] == tool)]


# ------------------------------------------------------------------------------------------------ over trials


@pytest.mark.parametrize(
    "options", [{}, {"statistic": 0.9, "level": 0.95, "band": "ks"}, {"statistic": "mean", "bounds": (0.0, 100.0)},
                {"from_k": 2.0, "k": [2, 4.5, 30]}]
)  # fmt: skip
def test_each_curve_is_that_of_its_own_scores(options):
    frame = make()
    curves = tuning.curves(frame, **ROLES, **options)
    table = curves.to_frame()
    assert list(table.columns) == ["task", "tool", "k", "estimate", "band_low", "band_high", "trivial"]
    for (task, tool), rows in table.groupby(["task", "tool"]):
        want = tuning.curve(of(frame, task, tool)["loss"], direction="minimize", **options).to_frame()
        pd.testing.assert_frame_equal(rows[want.columns].reset_index(drop=True), want)


def test_unequal_numbers_of_trials_have_bands_of_their_own():
    groups = tuning.curves(make(), **ROLES).to_frame("groups")
    assert groups["n_scores"].tolist() == [48, 48, 20, 3]
    assert groups["reach"].tolist() == approx([8, 8, 3, np.nan], nan_ok=True)
    assert tuning.curves(make(), **ROLES).notes == (
        "At no budget two limits, for too few trials or too many failed ones: task=t1, tool=B (n = 3).",
    )


def test_the_numbers_of_the_paper(data_dir):
    scores = pd.read_csv(data_dir / "deberta.csv")
    scores = scores[scores["iteration"] <= 48]
    got = tuning.curves(scores, score="best_matched", direction="maximize", by="model", k=[2, 4, 8]).to_frame()
    got = got[got["model"] == "DeBERTaV3"].reset_index(drop=True)
    want = [(0.881610, 0.901477, 0.904840), (0.901477, 0.904228, 0.905655), (0.903006, 0.905145, 0.906062)]
    assert got[["band_low", "estimate", "band_high"]].to_numpy() == approx(np.array(want), abs=5e-7)


@pytest.mark.parametrize("kind", ["dict", "polars", "lazy", "arrow", "duckdb", "runs"])
def test_any_table_gives_the_same(kind):
    frame = make()
    want = tuning.curves(frame, **ROLES).to_frame()
    table = {
        "dict": lambda: {name: frame[name].to_numpy() for name in frame},
        "polars": lambda: pl.from_pandas(frame),
        "lazy": lambda: pl.from_pandas(frame).lazy(),
        "arrow": lambda: pl.from_pandas(frame).to_arrow(),
        "duckdb": lambda: duckdb.from_df(frame),
        "runs": lambda: Runs(frame, score="loss", direction="minimize", algorithm="tool", benchmark="task"),
    }[kind]()
    got = tuning.curves(table).to_frame() if kind == "runs" else tuning.curves(table, **ROLES).to_frame()
    pd.testing.assert_frame_equal(got, want, check_dtype=False)


def test_categories_keep_their_order_and_one_column_is_enough():
    frame = make().assign(tool=lambda f: pd.Categorical(f["tool"], categories=["B", "A"]))
    curves = tuning.curves(frame, **ROLES)
    assert curves.algorithms == ("B", "A")
    assert [curve.key for curve in curves.curves][:2] == [("t0", "B"), ("t0", "A")]
    alone = tuning.curves(of(make(), "t0", "A"), score="loss", direction="minimize", by="tool", k=1)
    assert (alone.benchmarks, alone.algorithms, len(alone.to_frame())) == (("",), ("A",), 1)


def test_maximising_is_minimising_the_negative():
    frame = make()
    k = np.arange(1.5, 40)  # at k = 1 the smaller of two medians is the estimate in both directions
    low = tuning.curves(frame, **ROLES, k=k).to_frame()
    high = tuning.curves(frame.assign(loss=-frame["loss"]), **{**ROLES, "direction": "maximize"}, k=k).to_frame()
    assert np.array_equal(low["estimate"], -high["estimate"])
    assert np.array_equal(low["band_low"], -high["band_high"])


@pytest.mark.parametrize(("adjust", "level"), [("bonferroni", 0.9), ("sidak", 0.8**0.5), (None, 0.8)])
def test_the_confidence_is_adjusted_for_benchmarks(adjust, level):
    frame = make()
    curves = tuning.curves(frame, **ROLES, adjust=adjust)
    assert curves.band_level == approx(level)
    want = tuning.curve(of(frame, "t0", "A")["loss"], direction="minimize", level=level)
    assert list(curves.curves[0].band_high) == list(want.band_high)
    assert ("all 2 benchmarks" in curves.describe()) is (adjust is not None)


def test_costs_are_budgets_and_their_uncertainty_is_in_the_band():
    frame = make()
    curves = tuning.curves(frame, **ROLES, cost="cost")
    table = curves.to_frame()
    assert list(table.columns)[2:4] == ["cost", "k"]
    rows = of(frame, "t0", "A")
    mean = mean_cost(rows["cost"].to_numpy(), 48, level=0.98)
    curve = tuning.curve(rows["loss"], direction="minimize", level=0.82)
    got = table[(table["task"] == "t0") & (table["tool"] == "A")]
    assert got["k"].to_numpy() == approx(got["cost"].to_numpy() / mean.value)
    assert got["k"].min() >= 1 - 1e-6
    assert got["k"].max() <= 48 + 1e-6
    worst = curve.at(got["cost"].to_numpy() / mean.ci_high)  # pessimistic when minimising
    assert list(got["band_high"]) == list(worst.band_high)
    assert list(got["band_low"]) == list(curve.at(got["cost"].to_numpy() / mean.ci_low).band_low)
    assert curves.to_frame("groups")["mean_cost"][0] == mean.value
    same = tuning.curves(frame.assign(cost=2.0), **ROLES, cost="cost", k=[2, 4]).to_frame()
    assert same["band_high"].tolist() == tuning.curves(frame, **ROLES, k=[1, 2]).to_frame()["band_high"].tolist()


def test_the_table_shows_where_curves_can_be_compared():
    shown = tuning.curves(make(), **ROLES).to_table().frame
    assert shown["k"].tolist() == [8, 8, 1, 1]
    text = tuning.curves(make(), **ROLES).summary()
    assert "Tuning curves of loss, minimize" in text
    assert "each curve separately" in text


# ----------------------------------------------------------------------------------------------------- labels


def test_labels_are_those_of_single_comparisons():
    frame = make(((48, 48), (40, 30), (48, 48), (3, 3)))
    counts = tuning.curves(frame, **ROLES).labels(n_draws=2000, rng=3)
    for row in counts.comparisons.to_dict("records"):
        a, b = (of(frame, row["task"], tool)["loss"] for tool in "AB")
        want = tuning.compare(a, b, direction="minimize", names=("A", "B"), n_draws=0)
        assert (row["evidence"], row["better"]) == (want.label, want.better or "")
        assert row["budgets"] == want.usable.sum()
    row = counts.to_frame().iloc[0]
    labels = counts.comparisons["evidence"] + counts.comparisons["better"]
    for level in ("weak", "fair", "strong"):
        assert row[f"first_{level}"] == (labels == f"{level}A").sum()
        assert row[f"second_{level}"] == (labels == f"{level}B").sum()
    assert (row["benchmarks"], row["not_comparable"]) == (4, 1)
    two = tuning.curves(make(((48, 48), (48, 48))), **ROLES).labels(n_draws=0)
    assert two.sentences() == ("A and B, 2 benchmarks: evidence for A on 2 (2 strong).",)
    assert "expected weak" not in two.summary()
    assert "each band at 80 %" in two.summary()
    rng = np.random.default_rng(3)
    rates = [false_label_rates(*n, direction="minimize", n_draws=2000, rng=rng).rate for n in ((30, 40), (48, 48))]
    expected = rates[0] + 2 * rates[1]
    assert row[["expected_weak", "expected_fair", "expected_strong"]].tolist() == approx(expected.tolist())


def test_rows_that_look_like_pairs_are_named():
    frame = make(((48, 48),))
    pairs = of(frame, "t0", "A")
    frame = pd.concat([pairs, pairs.assign(tool="B", loss=pairs["loss"] + 0.1)])
    notes = tuning.curves(frame, **ROLES).labels(n_draws=0).notes
    assert notes == (
        "Rows are correlated as scores of the same configurations are: A and B on t0. The bands hold, the rates of "
        "false labels may not; tuning.compare(paired=True) or the mixed model use the pairs.",
    )


def test_labels_in_cost_units_compare_at_equal_cost():
    frame = make()
    frame.loc[frame["tool"] == "A", "cost"] *= 3
    at_cost = tuning.curves(frame[frame["task"] == "t0"], **ROLES, cost="cost").labels()
    a, b = of(frame, "t0", "A"), of(frame, "t0", "B")
    costs = {"cost_a": a["cost"], "cost_b": b["cost"]}
    want = tuning.compare(a["loss"], b["loss"], direction="minimize", names=("A", "B"), n_draws=0, **costs)
    assert at_cost.comparisons["budgets"].tolist() == [want.usable.sum()]
    assert at_cost.comparisons["budgets"][0] > 0
    assert at_cost.comparisons["evidence"].tolist() == [want.label]
    assert at_cost.counts["expected_weak"].isna().all()


# -------------------------------------------------------------------------------------------------- over seeds


def seeds(n=12, budgets=(1, 2, 5), *, rng=4):
    random = np.random.default_rng(rng)
    rows = itertools.product(("t0", "t1"), "AB", range(n), budgets)
    frame = pd.DataFrame(list(rows), columns=["task", "tool", "rep", "epochs"])
    return frame.assign(loss=random.normal(size=len(frame))).sample(frac=1.0, random_state=3)


OVER = {**ROLES, "unit": "seed", "seed": "rep", "budget": "epochs"}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("simultaneous", [True, False])
def test_limits_over_seeds_are_order_statistics_of_the_best_so_far(direction, simultaneous):
    frame = seeds()
    curves = tuning.curves(frame, **{**OVER, "direction": direction}, simultaneous=simultaneous)
    table = curves.to_frame()
    assert list(table.columns) == ["task", "tool", "budget", "estimate", "band_low", "band_high", "trivial"]
    lower, _, upper, _ = quantile_ranks(12, level=1 - 0.2 / 3 if simultaneous else 0.8)
    best = frame.sort_values("epochs").groupby(["task", "tool", "rep"])["loss"]
    frame = frame.assign(best=best.cummin() if direction == "minimize" else best.cummax())
    for row in table.to_dict("records"):
        part = of(frame, row["task"], row["tool"]).query(f"epochs == {row['budget']}")
        ordered = part["best"].sort_values().tolist()
        assert [row["band_low"], row["band_high"]] == [ordered[lower - 1], ordered[upper - 1]]
        assert row["estimate"] == ordered[5]  # the sixth of twelve, whatever the direction
    assert any("worse than an earlier one of their seed" in note for note in curves.notes)
    assert refusal(curves.labels) == (
        "labels are for tuning curves over the trials of random search. Compare optimisers over seeds with the mixed "
        "model at the budget that matters: analyze(runs.filter(budget=...))."
    )


def test_ranks_are_those_of_the_binomial_law():
    assert quantile_ranks(25, level=0.95)[:3] == (8, 13, 18)  # as in tables of the sign test
    assert quantile_ranks(6, level=0.95)[:3] == (1, 3, 6)
    assert quantile_ranks(5, level=0.95)[:3] == (0, 3, 6)
    assert quantile_ranks(5, level=0.9)[3] == approx(1 - 2 / 32)
    assert quantile_ranks(1, level=1e-9)[:3] == (0, 1, 2)
    assert quantile_ranks(7, level=1 - 1e-9)[:3] == (0, 4, 8)
    for n in (1, 2, 9, 30):
        for q in (0.1, 0.5, 0.9):
            for level in (0.5, 0.8, 0.99):
                lower, estimate, upper, coverage = quantile_ranks(n, q, level=level)
                assert coverage >= level
                assert lower <= estimate <= upper


def test_seeds_with_other_budgets_are_read_as_steps():
    frame = pd.DataFrame(
        {"tool": "A", "rep": [0, 0, 0, 1, 1, 1], "epochs": [1.0, 3, 9, 2, 4, 8], "loss": [5.0, 3, 1, 4, 6, 2]}
    )
    table = tuning.curves(frame, **{**OVER, "by": "tool"}, level=0.2, simultaneous=False).to_frame()
    assert table["budget"].tolist() == [2, 3, 4, 8]  # both have begun, none has stopped
    assert table["band_low"].tolist() == [4, 3, 3, 2]
    assert table["band_high"].tolist() == [5, 4, 4, 3]


def test_too_few_seeds_say_nothing_and_are_named():
    curves = tuning.curves(seeds(3), **OVER)
    assert curves.to_frame()["trivial"].all()
    assert curves.notes[-1] == (
        "Too few seeds for two limits: task=t0, tool=A (n = 3); task=t0, tool=B (n = 3); task=t1, tool=A (n = 3); "
        "and 1 more. Name fewer budgets with k=, or add seeds."
    )
    assert not tuning.curves(seeds(6), **OVER, k=[5]).to_frame()["trivial"].any()


def test_runs_bring_their_roles_and_priors_stay_apart():
    runs = load_hpo_runs().filter(benchmark=["svm-digits", "mlp-vote"], budget=[4, 32])
    curves = tuning.curves(runs, unit="seed", bounds=(0, 1))
    assert curves.by == ("benchmark", "prior", "algorithm")
    assert curves.to_frame("groups")["n_scores"].unique().tolist() == [25]
    assert refusal(lambda: tuning.curves(load_hpo_runs().filter(budget=[1, 2, 32]))) == (
        "Scores at 3 budgets are mixed ('budget': 1, 2, 32), but a tuning curve is of scores at one budget. Keep one "
        "of them, for instance with runs.filter(), or use unit='seed' for the course of an optimiser over its budget."
    )
    assert "over seeds" in curves.summary().splitlines()[0]


# ------------------------------------------------------------------------------------------------------ errors


def test_missing_scores_are_refused_with_groups_and_counts():
    frame = make()
    frame.loc[frame.index[(frame["task"] == "t0") & (frame["tool"] == "B")][:5], "loss"] = np.nan
    frame.loc[frame.index[(frame["task"] == "t1") & (frame["tool"] == "A")][:1], "loss"] = np.nan
    assert refusal(lambda: tuning.curves(frame, **ROLES), DataError) == (
        "The score 'loss' is missing (NaN) in 5 of 48 at task=t0, tool=B; 1 of 20 at task=t1, tool=A. Score a failed "
        "run as the worst value that can occur, or for quantile curves as infinitely bad: dropping it would make the "
        "search look better than it was."
    )


def test_failed_runs_are_infinitely_bad_and_infinitely_good_ones_are_refused():
    frame = make()
    frame.loc[frame.index[(frame["task"] == "t0") & (frame["tool"] == "B")][:5], "loss"] = np.inf
    assert np.isfinite(tuning.curves(frame, **ROLES).to_frame()["estimate"]).all()
    assert refusal(lambda: tuning.curves(frame.assign(loss=-frame["loss"]), **ROLES), DataError) == (
        "task=t0, tool=B: scores hold 5 of 48 that are -inf, the best value there is when direction is 'minimize'. "
        "A failed run is a worst score: write inf for it."
    )


def test_wrong_arguments_are_explained():
    for options, message in [
        ({"score": None}, "score must be given: the column that was measured, for instance score='loss'."),
        ({"by": []}, "by must name at least the column of the algorithm, got none."),
        ({"by": ["tool", "tool"]}, "by must name different columns, got 'tool' twice."),
        ({"by": ["task", "k"]},
         "by names the column 'k', which is the name of a column of the result. Rename it in the table."),
        ({"by": ["loss"]}, "score and by name the same column, 'loss'."),
        ({"by": ["task", 3]}, "by must be the name of a column, got 3."),
        ({"score": 3}, "score must be the name of a column, got 3."),
        ({"bounds": "low"},
         "bounds must be (low, high) with low < high, the smallest and the largest score that can occur, got 'low'. "
         "Write float('-inf') or float('inf') for an end that is not known."),
        ({"k": [0]}, "k must be positive and finite (how many configurations are tried), got 0."),
        ({"adjust": "holm"}, "adjust must be 'none' or 'bonferroni' or 'sidak', got 'holm'."),
        ({"unit": "seeds"}, "unit must be 'trials' or 'seed', got 'seeds'. Did you mean 'seed'?"),
        ({"unit": "seed", "seed": "tool"},
         "unit='seed' needs budget: the columns of the repetitions and of the budget at which a score was "
         "reached, for instance seed='seed', budget='budget'."),
        ({"simultaneous": False},
         "simultaneous=False is for unit='seed': a band over trials holds for all k at once, at no extra cost."),
        ({"unit": "seed", "seed": "cost", "budget": "cost", "statistic": "mean"},
         "statistic='mean' has no exact limits over seeds. Use the median or a quantile, or compare means with the "
         "mixed model: fit_lmm(), emmeans()."),
        ({"unit": "seed", "seed": "cost", "budget": "cost", "cost": "cost"},
         "cost is for curves over trials; with unit='seed' budgets are those of the runs."),
        ({"from_k": 2, "k": [1]},
         "k must be at least from_k = 2, which the band is calibrated for, got 1. Choose a smaller from_k."),
        ({"bounds": (0, 1)},
         "task=t0, tool=A: bounds must enclose all scores, but 29 of 48 lie outside of 0 to 1 (the scores go from "
         "0.0798668 to 3.78733). Widen the bounds, or give a failed run the worst score that can occur."),
    ]:  # fmt: skip
        with pytest.raises((ArgumentError, DataError)) as caught:
            tuning.curves(make(), **{**ROLES, **options})
        assert str(caught.value) == message


def test_unknown_columns_and_repeated_budgets_of_a_seed_are_refused():
    words = refusal(lambda: tuning.curves(make(), **{**ROLES, "by": ["task", "tol"]}), UnknownColumnError)
    assert words.startswith("by names the column 'tol', which is not in the data")
    assert "Did you mean 'tool'?" in words
    frame = pd.concat([seeds(), seeds(rng=5)])
    with pytest.raises(DataError) as caught:
        tuning.curves(frame, **OVER)
    assert str(caught.value).startswith("task=t0, tool=A: 36 rows repeat a seed and a budget (first: rep=")
    assert str(caught.value).endswith("Name it in by=, or keep one of its values.")


def test_seeds_that_never_meet_are_refused():
    frame = pd.DataFrame({"tool": "A", "rep": [0, 1], "epochs": [1.0, 2], "loss": [5.0, 3]})
    assert refusal(lambda: tuning.curves(frame, **{**OVER, "by": "tool"}), DataError) == (
        "tool=A: there is no budget at which all 2 seeds have a score: one begins at 2, another ends at 1. Leave such "
        "seeds out only if that has nothing to do with scores."
    )
    assert refusal(lambda: tuning.curves(seeds(), **OVER, k=[2, 7]), DataError) == (
        "task=t0, tool=A: k holds the budget 7, but all seeds have scores from 1 to 5 only. "
        "Choose budgets in that range."
    )


def test_bounds_may_be_known_at_one_end_only():
    low = tuning.curves(make(), **{**ROLES, "direction": "maximize"}, statistic="mean", bounds=(-5, np.inf))
    assert np.isinf(low.to_frame()["band_high"]).all()
    high = tuning.curves(make(), **ROLES, statistic="mean", bounds=(-np.inf, 50))
    assert np.isfinite(high.to_frame()["band_high"]).all()


def test_a_direction_that_contradicts_the_runs_is_refused():
    runs = Runs(make(), score="loss", direction="minimize", algorithm="tool", benchmark="task")
    assert refusal(lambda: tuning.curves(runs, direction="maximize"), ArgumentError) == (
        "direction='maximize' contradicts the runs, whose score 'loss' is to be minimized. Leave direction out, or "
        "make the runs again with direction='maximize'."
    )
    assert tuning.curves(runs, direction="minimize").to_frame().equals(tuning.curves(runs).to_frame())
    assert tuning.curves(runs, score="cost", direction="maximize").direction == "maximize"  # another column


def test_nothing_that_was_named_is_passed_over():
    for options, start in [
        ({"score": ""}, "score names the column '', which is not in the data."),
        ({"seed": "bogus"}, "seed names the column 'bogus', which is not in the data."),
        ({"budget": "bogus"}, "budget names the column 'bogus', which is not in the data."),
        ({"cost": ""}, "cost names the column '', which is not in the data."),
    ]:
        runs = Runs(make(), score="loss", direction="minimize", algorithm="tool", benchmark="task")
        for trials, roles in ((make(), ROLES), (runs, {})):
            with pytest.raises(LmemtestError) as caught:
                tuning.curves(trials, **{**roles, **options})
            assert str(caught.value).startswith(start)


# ------------------------------------------------------------------------------------------------ many scores


spacings = sys.modules["lmemtest.tuning.fit.spacings"]


def test_buckets_put_together_hold_the_same_scores():
    data = spacings.spacings(np.random.default_rng(0).normal(size=4321), -np.inf, 0, np.inf, 0)
    few = spacings.thinned(data)
    assert 400 <= len(few.edges) <= 440
    assert len(few.weights) == len(few.edges) + 1
    assert few.total == data.total
    below = np.searchsorted(data.edges, few.edges)
    np.testing.assert_allclose(few.shares, data.shares[below], rtol=1e-12)
    assert spacings.thinned(few) is few


def test_the_fit_to_many_scores_is_that_of_all_buckets(monkeypatch):
    rng = np.random.default_rng(1)
    scores = NoisyQuadraticDistribution(0.0, 1.0, 2, 0.1, convex=True).ppf(rng.random(4000))
    options = {"direction": "minimize", "law": "noisy_quadratic", "constraints": {"c": 2}}
    found = fit(scores, **options).to_frame()
    monkeypatch.setattr(spacings, "thinned", lambda data: data)
    whole = fit(scores, **options).to_frame()
    columns = ["estimate", "ci_low", "ci_high"]
    # A search ends where a step promises 1e-7 of M: 4e-4 of a standard error, which is 0.005 here.
    np.testing.assert_allclose(found[columns], whole[columns], rtol=0.0, atol=2e-6)


def test_the_peaks_of_many_scores_take_a_third_of_the_work_at_most(monkeypatch):
    """Distances of scores from a law, counted."""
    rng = np.random.default_rng(1)
    scores = NoisyQuadraticDistribution(0.0, 1.0, 2, 0.1, convex=True).ppf(rng.random(4000))
    evaluations = []
    original = spacings.noisy_value
    monkeypatch.setattr(
        spacings, "noisy_value", lambda data, c, at: evaluations.append(len(data.edges)) or original(data, c, at)
    )
    anywhere = (-np.inf, np.inf)

    def work():
        evaluations.clear()
        data = spacings.spacings(scores, -np.inf, 0, np.inf, 0)
        Family(data, anywhere, anywhere, (0.0, np.inf), (2,)).climb_all()
        return sum(evaluations)

    few = work()
    monkeypatch.setattr(spacings, "thinned", lambda data: data)
    assert few < work() / 3


# ------------------------------------------------------------------------------------------------------ names


def test_a_function_is_not_hidden_by_its_module() -> None:
    modules = {info.name for info in pkgutil.iter_modules(tuning.__path__)}
    for name in modules:
        importlib.import_module(f"lmemtest.tuning.{name}")
    public = {name: getattr(lmemtest.tuning, name) for name in tuning.__all__}
    assert [name for name, thing in public.items() if isinstance(thing, types.ModuleType)] == []
    assert {"band", "best_of", "compare", "curve", "curves", "fit", "plan", "risk"} <= modules & set(public)
