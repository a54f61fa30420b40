"""Evidence between tuning curves, its false-label rates, costs, and the probability of winning."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal

from lmemtest import tuning
from lmemtest.tuning.best_of import best_of
from lmemtest.tuning.compare import looks_paired
from lmemtest.tuning.costs import mean_cost, trials_at
from lmemtest.tuning.evidence import (
    EVIDENCE,
    false_label_rates,
    rate_text,
    segments,
    signed_levels,
    verdict,
    weight_reader,
)

RNG = np.random.default_rng(20)
HIGH, LOW = RNG.normal(0.75, 0.05, 48), RNG.normal(0.7, 0.05, 40)


def by_hand(a, b, k, direction="maximize", **options):
    """Signed evidence at one k, from the definition and two curves of their own; None where a band is trivial."""
    x, y = (tuning.curve(scores, direction=direction, k=k, **options) for scores in (a, b))
    if x.trivial[0] or y.trivial[0]:
        return None

    def level(p, q):
        one, two = p.band_low[0] > q.estimate[0], q.band_high[0] < p.estimate[0]
        return 3 if p.band_low[0] > q.band_high[0] else 2 if one and two else 1 if one or two else 0

    larger = level(x, y) - level(y, x)
    return larger if direction == "maximize" else -larger


# ------------------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("options", [{}, {"statistic": 0.8, "band": "ks"}, {"from_k": 1, "level": 0.5}])
def test_evidence_is_what_the_definition_says(direction, options):
    found = tuning.compare(HIGH, LOW, direction=direction, grid=np.arange(1, 14), n_draws=0, **options)
    want = [by_hand(HIGH, LOW, k, direction, **options) for k in range(1, 14)]
    assert [None if t else int(s) for s, t in zip(found.signed, ~found.usable, strict=True)] == want
    kept = [level for level in want if level is not None]
    for level in (1, 2, 3):
        share = np.mean([s >= level for s in kept]), np.mean([s <= -level for s in kept])
        assert found.portions[level - 1] == approx(share)
    assert found.rates is None


def test_the_label_is_the_strongest_level_over_the_portion():
    shares = np.array([[0.75, 0.1], [0.5, 0.1], [0.25, 0.0]])
    assert verdict(shares, 0.5) == ("fair", 1, 0.5)
    assert verdict(shares, 0.2) == ("strong", 1, 0.25)
    assert verdict(shares, 0.8) == ("none", 0, 0.0)
    assert verdict(shares, 0.1) == ("strong", 1, 0.25)
    assert verdict(shares[:, ::-1], 0.5) == ("fair", -1, 0.5)
    assert verdict(np.array([[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]), 0.5) == ("weak", 0, 0.5)
    assert verdict(np.zeros((3, 2)), 0.0) == ("none", 0, 0.0)  # a portion of 0 still needs one budget


def test_segments_are_runs_of_the_same_evidence():
    signed, usable = np.array([0, 1, 1, 2, -1, -1], np.int8), np.array([1, 1, 1, 1, 1, 0], bool)
    assert segments(signed, usable, np.arange(1.0, 7.0), ("new", "old")) == [
        ("weak", "new", 2.0, 3.0),
        ("fair", "new", 4.0, 4.0),
        ("weak", "old", 5.0, 5.0),
    ]


def test_evidence_cannot_point_both_ways():
    rng = np.random.default_rng(4)
    for _ in range(200):
        a, b = (np.sort(rng.integers(0, 6, (3, 20)).astype(float), axis=0) for _ in "ab")
        forward, backward = signed_levels(a, b), signed_levels(b, a)
        assert np.array_equal(forward, -backward)


def test_swapping_the_curves_swaps_the_answer():
    there = tuning.compare(HIGH, LOW, direction="maximize", names=("x", "y"), n_draws=0)
    back = tuning.compare(LOW, HIGH, direction="maximize", names=("y", "x"), n_draws=0)
    assert (there.label, there.better, there.observed) == (back.label, back.better, back.observed)
    assert np.array_equal(there.signed, -back.signed)
    assert np.array_equal(there.portions, back.portions[:, ::-1])


def test_minimising_is_maximising_the_negative_and_ranks_are_all_that_matters():
    grid = np.arange(1.25, 7)  # at k = 1 the smaller of two medians is the estimate in both directions
    up = tuning.compare(HIGH, LOW, direction="maximize", grid=grid, rng=1)
    for a, b, direction in ((-HIGH, -LOW, "minimize"), (np.exp(9 * HIGH), np.exp(9 * LOW), "maximize")):
        other = tuning.compare(a, b, direction=direction, grid=grid, rng=1)
        assert np.array_equal(up.signed, other.signed)
        assert (up.label, up.better) == (other.label, other.better)
        assert np.array_equal(up.rates.rate, other.rates.rate)
    assert np.array_equal(
        tuning.compare(-HIGH, -LOW, direction="minimize", grid=grid, n_draws=0).a.band_low, -up.a.band_high
    )


def test_trivial_budgets_do_not_count():
    found = tuning.compare(HIGH, LOW, direction="maximize", grid=[0.01, 1, 4, 30], n_draws=0)
    assert found.usable.tolist() == [False, True, True, False]
    assert set(found.signed[~found.usable]) == {0}
    assert tuning.compare(HIGH, LOW, direction="maximize", n_draws=0).grid.tolist() == [1, 2, 3, 4, 5, 6]


def test_one_score_each_gives_no_label():
    found = tuning.compare([0.5], [0.6], direction="maximize", rng=1)
    assert (found.label, found.better, found.rates) == ("none", None, None)
    assert found.sentences() == ("At no budget are both bands informative, so there is no label. Use more trials.",)
    assert "At no budget" in repr(found)


def test_the_summary_says_label_range_portion_and_price():
    found = tuning.compare(HIGH, LOW, direction="maximize", names=("new", "old"), n_draws=200_000, rng=1)
    assert (found.label, found.better) == ("fair", "new")
    assert found.sentences() == (
        "Fair evidence that new is better for 1 to 6 trials "
        "(100 % of the 6 budgets at which both bands are informative).",
        "If the curves were the same, at least half of these budgets would show at least weak evidence in 12 %, fair "
        "in 1.3 % and strong in <0.1 % of the comparisons.",
    )
    frame = found.to_frame()
    assert list(frame.columns) == [
        *("trials", "k_a", "estimate_a", "band_low_a", "band_high_a", "k_b", "estimate_b", "band_low_b", "band_high_b"),
        *("evidence", "better", "trivial"),
    ]
    assert found.to_frame("evidence")["evidence"].tolist() == ["weak", "fair", "strong"]
    for text in (found.summary(), found._repr_html_(), found.to_table().to_markdown()):
        assert "for new" in text


def test_curves_that_cross_are_labelled_both_ways():
    # one is better at first and the other in the long run
    steady = np.linspace(0.70, 0.72, 200)
    risky = np.concatenate([np.linspace(0.1, 0.69, 170), np.linspace(0.9, 0.99, 30)])
    found = tuning.compare(
        steady, risky, direction="maximize", grid=[1, 2, 15, 18], n_draws=0, names=("steady", "risky")
    )
    assert (found.label, found.better, found.observed) == ("strong", None, 0.5)
    assert found.sentences() == ("Strong evidence both ways: steady for 1 to 2 trials, risky for 15 to 18 trials.",)
    assert [segment[1:] for segment in found.segments] == [("steady", 1, 2), ("risky", 15, 18)]


def test_deberta_v3_beats_deberta(data_dir):
    frame = pd.read_csv(data_dir / "deberta.csv")
    new, old = (frame.loc[frame["model"] == m, "best_matched"].to_numpy() for m in ("DeBERTaV3", "DeBERTa"))
    found = tuning.compare(new[:48], old[:48], direction="maximize", names=("DeBERTaV3", "DeBERTa"), n_draws=0)
    assert (found.label, found.better, found.observed) == ("strong", "DeBERTaV3", 0.75)
    assert found.a.estimate[[1, 3, 7]] == approx([0.901477, 0.904228, 0.905145], abs=5e-7)
    everything = tuning.compare(new, old, direction="maximize", n_draws=0)
    assert (everything.label, everything.observed, len(everything.grid)) == ("strong", 1.0, 140)
    assert looks_paired(new, old)  # the same 1,024 configurations


# ------------------------------------------------------------------------------------------------------ false labels


@pytest.mark.parametrize("portion", [0.0, 0.5, 1.0])
def test_rates_are_those_of_all_interleavings(portion):
    """Two continuous laws that are the same make all orders of the pooled scores equally likely: 3,432 for 7 and 7."""
    n, grid, pooled = 7, [1.0, 1.1, 1.2], np.arange(14.0)
    found = np.zeros(3)
    curves = {}
    for chosen in itertools.combinations(range(2 * n), n):
        rest = np.delete(pooled, chosen)
        readings = []
        for scores in (pooled[list(chosen)], rest):
            key = tuple(scores)
            if key not in curves:
                curve = tuning.curve(scores, direction="maximize", k=grid, level=0.5)
                assert not curve.trivial.any()
                curves[key] = (curve.band_low, curve.estimate, curve.band_high)
            readings.append(curves[key])
        signed = signed_levels(*readings)
        for level in (1, 2, 3):
            shares = [np.mean(sign * signed >= level) for sign in (1, -1)]
            found[level - 1] += any(share >= portion and share > 0 for share in shares)
    exact = found / math.comb(2 * n, n)
    rates = false_label_rates(n, level=0.5, k=grid, portion=portion, n_draws=40_000, rng=3)
    assert rates.rate == approx(exact, abs=4 * 0.5 / math.sqrt(40_000))
    assert rates.points == 3


def test_false_label_rates_of_48_scores_are_the_known_ones():
    """STATISTICS: 33, 7.6 and 0.2 % for any k, 9, 1 and 0.03 % for half of them; they belong to k = 1 to 7."""
    seven = range(1, 8)
    some = false_label_rates(48, k=seven, portion=0.0, n_draws=100_000, rng=1).rate
    assert some == approx([0.335, 0.076, 0.002], abs=0.006)
    half = false_label_rates(48, k=seven, n_draws=100_000, rng=1).rate
    assert half == approx([0.094, 0.010, 0.0003], abs=0.004)
    # with k = 8, the last at which the band says something
    assert false_label_rates(48, portion=0.0, n_draws=100_000, rng=1).rate[0] == approx(0.372, abs=0.006)


def test_curves_that_agree_in_cost_units_keep_their_rates():
    """F_B = F_A^(m_B / m_A): with equal reach the rates are close to those of equal costs; a wrong power is not."""
    options = {"direction": "maximize", "cost_a": 1.0, "cost_b": 2.0, "rng": 1, "n_draws": 20_000}
    found = tuning.compare(HIGH[:40], LOW, **options)
    assert found.rates.null.startswith("Two independent searches with one curve in cost units")
    simulated = np.zeros(3)
    rng = np.random.default_rng(7)
    repeats = 3000
    for _ in range(repeats):
        a, b = rng.random(40), rng.random(40) ** 0.5  # F_B(y) = y^2 = F_A(y)^2
        levels = tuning.compare(a, b, grid=found.grid, **{**options, "n_draws": 0})
        simulated += np.arange(1, 4) <= EVIDENCE.index(levels.label)
    assert simulated / repeats == approx(found.rates.rate, abs=4 * math.sqrt(0.09 * 0.91 / repeats))


@pytest.mark.slow
def test_mean_and_paired_rates_come_from_relabelling():
    """Against relabelling with tuning.compare itself, one table at a time."""
    rng = np.random.default_rng(5)
    a, b = rng.beta(8, 3, 20), rng.beta(8, 3, 20)
    for options in ({"statistic": "mean", "bounds": (0, 1)}, {"paired": True}):
        setting = {"direction": "maximize", "grid": [1, 2, 3], "portion": 0.0, "level": 0.5, **options}
        rates = tuning.compare(a, b, n_draws=20_000, rng=1, **setting).rates
        counted = np.zeros(3)
        for _ in range(1500):
            if "paired" in options:
                swap = rng.random(20) < 0.5
                x, y = np.where(swap, a, b), np.where(swap, b, a)
            else:
                x, y = rng.permutation(np.concatenate([a, b])).reshape(2, 20)
            counted += np.arange(1, 4) <= EVIDENCE.index(tuning.compare(x, y, n_draws=0, **setting).label)
        assert counted / 1500 == approx(rates.rate, abs=4 * 0.5 / math.sqrt(1500))


def test_means_are_read_as_the_curve_itself():
    rng = np.random.default_rng(8)
    for direction in ("maximize", "minimize"):
        found = tuning.compare(
            rng.beta(8, 3, 12), rng.beta(5, 3, 9), direction=direction, statistic="mean", bounds=(0, 1), n_draws=0
        )
        sign, at = 1.0 if direction == "maximize" else -1.0, found.grid[found.usable]
        for side in (found.a, found.b):
            read = weight_reader(side.curve, trials_at(at, None))
            pessimistic, estimate, optimistic = read(np.sort(sign * side.curve.scores)[None, :])
            there = side.curve.at(at)
            ends = (there.band_low, there.band_high) if sign > 0 else (-there.band_high, -there.band_low)
            assert pessimistic[0] == approx(ends[0], rel=1e-12)
            assert estimate[0] == approx(sign * there.estimate, rel=1e-12)
            assert optimistic[0] == approx(ends[1], rel=1e-12)


def test_rates_are_reproducible_and_not_stated_where_unknown():
    assert np.array_equal(false_label_rates(9, rng=2, n_draws=500).rate, false_label_rates(9, rng=2, n_draws=500).rate)
    found = tuning.compare(HIGH[:40], LOW, direction="maximize", paired=True, cost_a=1, cost_b=2, rng=1)
    assert found.rates is None
    assert "How often such a label is false is not known for paired searches and means in cost units." in found.notes
    assert found.to_frame("evidence")["false_rate"].isna().all()
    assert "false labels" in repr(false_label_rates(9, rng=2, n_draws=500)).lower()


def test_rates_need_a_quantile_and_a_budget():
    assert refusal(lambda: false_label_rates(9, statistic="mean")) == (
        "false_label_rates needs a quantile: the rates of mean curves depend on the law of the scores. "
        "tuning.compare simulates them from the scores at hand."
    )
    assert refusal(lambda: false_label_rates(2, k=5)) == (
        "no k has two non-trivial bands with n_a = 2 and n_b = 2, so nothing can be labelled. "
        "Use more scores, a lower level, or smaller k."
    )
    assert refusal(lambda: false_label_rates(9, portion=50)) == (
        "portion must be a number of at least 0 and at most 1, got 50: 0 asks for one budget, 1 for all."
    )
    assert "n_draws must be a whole number of at least 100" in refusal(lambda: false_label_rates(9, n_draws=10))
    texts = [rate_text(x) for x in (0.334, 0.0994, 0.0101, 0.00099, 0.0)]
    assert texts == ["33 %", "9.9 %", "1 %", "<0.1 %", "<0.1 %"]


# ------------------------------------------------------------------------------------------------------ pairs


def test_pairs_are_named_and_pointed_to_the_mixed_model():
    found = tuning.compare(HIGH[:40], LOW, direction="maximize", paired=True, rng=1)
    assert found.paired
    assert found.rates.null == "The scores, swapped at random within each configuration."
    assert any("fit the mixed model score ~ algorithm + (1 | configuration)" in note for note in found.notes)


def test_what_looks_paired_is_asked_about():
    quality = np.random.default_rng(3).normal(size=60)
    noise = np.random.default_rng(4).normal(size=60)
    a, b = quality, quality + 0.3 * noise
    note = "Equal rows are correlated as scores of the same configurations are. If they are pairs, set paired=True."
    assert note in tuning.compare(a, b, direction="maximize", n_draws=0).notes
    assert note not in tuning.compare(a, b[::-1], direction="maximize", n_draws=0).notes
    assert not looks_paired(np.zeros(60), b)
    assert not looks_paired(np.repeat([0.0, 1.0], 30), np.repeat([[0.0, 1.0]], 30, axis=0).ravel())  # ties, no order


# ------------------------------------------------------------------------------------------------------ costs


def test_budgets_in_cost_are_trials_times_their_mean_cost():
    found = tuning.compare(HIGH, LOW, direction="maximize", cost_a=2.0, cost_b=5.0, n_draws=0)
    assert found.axis == "cost"
    assert (found.grid[0], len(found.grid)) == (5.0, 64)  # one trial of the dearer one
    assert found.a.k == approx(found.grid / 2.0)
    assert found.b.k == approx(found.grid / 5.0)
    assert np.array_equal(found.a.band_low, tuning.curve(HIGH, direction="maximize", k=found.a.k).band_low)
    assert found.usable.all()
    minutes = tuning.compare(HIGH, LOW, direction="maximize", cost_a=120.0, cost_b=300.0, n_draws=0)
    assert minutes.grid == approx(60 * found.grid)
    assert np.array_equal(minutes.signed, found.signed)
    assert "at a cost of" in found.sentences()[0]
    assert found.facts == ("Mean cost of a trial of a: 2 (as given).", "Mean cost of a trial of b: 5 (as given).")


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_uncertainty_of_a_mean_cost_widens_the_band(direction):
    rng = np.random.default_rng(2)
    costs = rng.lognormal(0.0, 0.8, len(HIGH))
    found = tuning.compare(HIGH, LOW, direction=direction, cost_a=costs, cost_b=2.0, level=0.8, n_draws=0)
    interval = mean_cost(costs, len(HIGH), level=0.98)  # a tenth of the error probability of 0.2
    worst, best = (found.grid / interval.ci_high, found.grid / interval.ci_low)
    low_k, high_k = (worst, best) if direction == "maximize" else (best, worst)
    options = {"direction": direction, "level": 0.82}
    assert np.array_equal(found.a.band_low, tuning.curve(HIGH, k=low_k, **options).band_low)
    assert np.array_equal(found.a.band_high, tuning.curve(HIGH, k=high_k, **options).band_high)
    assert np.array_equal(found.b.band_high, tuning.curve(LOW, k=found.grid / 2.0, direction=direction).band_high)
    assert found.facts[0].startswith(f"Mean cost of a trial of a: {costs.mean():.4g} (98 % interval ")


def test_the_cost_interval_is_students_on_the_log_scale():
    costs = np.array([1.0, 4.0, 2.0, 5.0])
    got = mean_cost(costs, 4, level=0.9)
    reach = 2.3533634348018264 * costs.std(ddof=1) / 2.0 / 3.0  # t quantile of 3 df
    assert (got.ci_low, got.value, got.ci_high) == approx((3 * math.exp(-reach), 3.0, 3 * math.exp(reach)), rel=1e-12)
    assert mean_cost([7.0, 7.0, 7.0], 3, level=0.9).ci_high == 7.0


def test_impossible_costs_are_refused():
    def cost(value, other=1.0):
        return refusal(
            lambda: tuning.compare([1.0, 2.0, 3.0], [1.0, 2.0], direction="maximize", cost_a=value, cost_b=other)
        )

    assert cost(2.0, None) == "cost_b is missing: a common budget needs the cost of both, in the same unit."
    assert cost(0.0) == "cost_a must be a positive and finite mean cost of a trial, got 0."
    assert cost([1.0, 2.0]) == (
        "cost_a must be one number (the mean cost of a trial) or one for each of the 3 scores, got 2 numbers."
    )
    assert cost([1.0, np.nan, -1.0]) == (
        "cost_a must be finite and at least 0: 2 of 3 are not. A failed run has a cost too: what it took until it "
        "failed."
    )
    assert cost([0, 0, 0]) == "cost_a must not be 0 for every trial."
    assert cost("cheap") == "cost_a must be a number or a list of numbers, one per trial, got 'cheap'."
    assert refusal(lambda: mean_cost([1.0], 1, level=0.9)) == (
        "cost needs at least 2 trials for the uncertainty of their mean. Give the mean cost instead."
    )


# ------------------------------------------------------------------------------------------------------ winning


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_estimate_counts_all_strings_of_scores(direction):
    a, b = [0.2, 0.5, 0.5, 0.9], [0.1, 0.5, 0.6]
    best = max if direction == "maximize" else min
    sign = 1 if direction == "maximize" else -1
    for k in (1, 2, 3):
        first = [best(s) for s in itertools.product(a, repeat=k)]
        second = [best(s) for s in itertools.product(b, repeat=k)]
        want = np.mean([0.5 * (1 + np.sign(sign * (x - y))) for x in first for y in second])
        assert best_of(a, b, direction=direction, grid=k).estimate[0] == approx(want, rel=1e-13)


def test_the_band_bounds_all_pairs_of_laws_inside_the_cdf_bands():
    """Laws drawn inside the two bands, mass below and above all scores included, never win more or less often."""
    rng = np.random.default_rng(6)
    a, b = np.round(rng.normal(0.3, 1, 12), 1), np.round(rng.normal(0, 1, 9), 1)
    grid = [0.7, 1, 3, 10]
    found = best_of(a, b, direction="maximize", grid=grid)
    support = np.unique(np.concatenate([[-9.0], a, b, [9.0]]))
    reached = np.zeros((2, len(grid)))
    for _ in range(2000):
        laws = []
        for y in (a, b):
            band = tuning.band(len(y), level=math.sqrt(0.8))
            count = np.searchsorted(np.sort(y), support, side="right")
            low, high = band.band_low[count], band.band_high[count]
            law = np.maximum.accumulate(low + rng.choice([0.0, 1.0, rng.random()], len(low)) * (high - low))
            law[-1] = 1.0
            laws.append(np.minimum(law, high))
        for i, k in enumerate(grid):
            mass, other = np.diff(laws[0] ** k, prepend=0.0), laws[1] ** k
            below = np.concatenate([[0.0], other[:-1]])
            p = float(mass @ (below + other) / 2)
            assert found.band_low[i] - 1e-12 <= p <= found.band_high[i] + 1e-12
            reached[:, i] = np.maximum(reached[:, i], [found.band_high[i] - p < 0.25, p - found.band_low[i] < 0.25])
    assert reached.all()  # and the bounds are not idle


def test_winning_is_antisymmetric_and_dual():
    one = best_of(HIGH, LOW, direction="maximize", grid=1).estimate[0]
    assert one == approx(np.mean(HIGH[:, None] > LOW), rel=1e-12)  # one trial each: Mann and Whitney
    there = best_of(HIGH, LOW, direction="maximize")
    back = best_of(LOW, HIGH, direction="maximize")
    assert there.band_low == approx(1 - back.band_high, abs=1e-12)
    assert there.estimate == approx(1 - back.estimate, abs=1e-12)
    dual = best_of(-HIGH, -LOW, direction="minimize")
    assert np.array_equal(there.band_low, dual.band_low)
    assert np.array_equal(there.band_high, dual.band_high)


def test_pairs_and_costs_widen_the_band_of_winning():
    plain = best_of(HIGH[:40], LOW, direction="maximize", grid=[1, 4])
    paired = best_of(HIGH[:40], LOW, direction="maximize", grid=[1, 4], paired=True)
    assert np.all(paired.band_low < plain.band_low)
    assert np.all(paired.band_high > plain.band_high)
    known = best_of(HIGH[:40], LOW, direction="maximize", grid=[1, 4], cost_a=1.0, cost_b=1.0)
    assert np.array_equal(known.band_low, plain.band_low)
    costs = np.random.default_rng(1).lognormal(-0.125, 0.5, 40)
    unsure = best_of(HIGH[:40], LOW, direction="maximize", grid=[1, 4], cost_a=costs / costs.mean(), cost_b=1.0)
    assert np.all(unsure.band_low < plain.band_low)
    assert unsure.estimate == approx(plain.estimate)
    assert best_of(HIGH, LOW, direction="maximize", cost_a=3, cost_b=2).grid[[0, -1]] == approx([3, 80])


def test_winning_is_told_in_a_sentence():
    found = best_of(HIGH + 0.03, LOW, direction="maximize", names=("new", "old"))
    assert found.sentences()[0] == "More likely to win by the simultaneous 80 % band: new for 1 to 4 trials."
    assert list(found.to_frame().columns) == ["trials", "k_a", "k_b", "estimate", "band_low", "band_high"]
    assert "P(best of new beats best of old), maximize, n = 48 and 40" in found.summary()
    nobody = best_of([1.0, 2.0], [1.0, 2.0], direction="maximize")
    assert nobody.sentences()[0] == "More likely to win by the simultaneous 80 % band: neither at any budget."


def test_failed_runs_are_the_worst_scores_there_can_be():
    a, b = [-np.inf, 0.5, 0.7, 0.9], [-np.inf, -np.inf, 0.4, 0.6]
    assert best_of(a, b, direction="maximize", grid=1).estimate[0] == approx(
        np.mean([0.5 * (1 + np.sign(x - y)) if x != y else 0.5 for x in a for y in b])
    )
    assert tuning.compare(a * 12, b * 12, direction="maximize", n_draws=0).label in EVIDENCE
    nothing_ran = tuning.compare([-np.inf] * 48, LOW, direction="maximize")
    assert (nothing_ran.label, nothing_ran.usable.any()) == ("none", False)
    assert best_of([-np.inf] * 5, [-np.inf] * 5, direction="maximize").estimate == approx(np.full(5, 0.5))


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("call", [tuning.compare, best_of])
def test_bad_input_is_refused_with_advice(call):
    def told(*scores, **options):
        return refusal(lambda: call(*scores, **{"direction": "maximize", **options}))

    assert told([1.0, np.nan], [1.0]).startswith("a must not be missing: 1 of 2 are NaN")
    assert told([1.0], []).startswith("b must hold at least 1 score")
    assert told([1.0], [2.0], grid=[0]).startswith("grid must be positive and finite")
    assert told([1.0], [2.0], names=("x", "x")) == (
        "names must be two different names, that of a and that of b, got ('x', 'x')."
    )
    assert told([1.0], [2.0, 3.0], paired=True) == (
        "paired=True needs one score of each for every configuration, got 1 and 2. Keep the configurations that both "
        "were run on, in the same order."
    )
