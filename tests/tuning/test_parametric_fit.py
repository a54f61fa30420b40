"""Fits of both laws: opda beside, symmetries, limits, constraints, trust, errors."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from pytest import approx
from refusals import refusal

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.fit import spacings
from lmemtest.tuning.fit.fit import band_probability, bootstrap_fit
from lmemtest.tuning.fit.profile import Family, allowance
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

fit_quiet = tuning.fit
fit_noisy = partial(tuning.fit, law="noisy_quadratic")

FREE = (-math.inf, math.inf)


def quiet_scores(n=60, c=2, convex=True, seed=1):
    return QuadraticDistribution(0.0, 1.0, c, convex).sample(n, rng=seed)


def noisy_scores(n=60, c=2, o=0.1, convex=True, seed=1):
    return NoisyQuadraticDistribution(0.0, 1.0, c, o, convex).sample(n, rng=seed)


def objective(scores, law):
    """The logarithm of the product of spacings, straight from its definition."""
    cdf = np.concatenate([[0.0], np.asarray(law.cdf(np.sort(scores))), [1.0]])
    return np.log(np.diff(cdf)).sum()


# ---------------------------------------------------------------------- the objective


def test_the_objective_is_the_product_of_spacings():
    y = quiet_scores()
    fit = fit_quiet(y, direction="minimize")
    assert fit.objective == approx(objective(y, fit.distribution), rel=1e-10)
    noisy = fit_noisy(y, direction="minimize")
    assert noisy.objective >= fit.objective
    assert noisy.estimates[3].ci_low == 0.0  # scores without noise leave no noise in the interval
    noisy = fit_noisy(y := noisy_scores(), direction="minimize")
    assert noisy.objective == approx(objective(y, noisy.distribution), rel=1e-8)


def test_ties_and_counted_scores_lie_in_buckets():
    got = spacings.spacings(np.array([1.0, 2.0, 2.0, 5.0]), 0.5, 3, 6.0, 2)
    assert got.edges.tolist() == [0.5, 1.0, 2.0, 5.0, 6.0]
    assert got.weights.tolist() == [3.5, 0.5, 1.5, 1.5, 0.5, 2.5]
    assert got.total == 4 + 3 + 2 + 1
    plain = spacings.spacings(np.array([1.0, 2.0, 5.0]), -math.inf, 0, math.inf, 0)
    assert plain.weights.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_the_gradient_is_that_of_differences():
    for c, o in itertools.product([1, 3, 10], [0.02, 0.1, 0.7]):
        y = noisy_scores(40, 3)
        y = y[(y > -0.05) & (y < 0.8)]
        data = spacings.spacings(y, -0.05, 2, 0.8, 5)
        at, step = np.array([-0.2, 1.2, math.log(o)]), 1e-6
        _, gradient, _ = spacings.noisy_value(data, c, at)
        for i, unit in enumerate(np.eye(3)):
            ends = [spacings.noisy_value(data, c, at + sign * step * unit)[0] for sign in (1, -1)]
            assert gradient[i] == approx((ends[0] - ends[1]) / (2 * step), rel=2e-5, abs=2e-4)


def test_no_grid_of_parameters_beats_the_fit():
    y = quiet_scores(40, 3)
    fit = fit_quiet(y, direction="minimize")
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = y.min() - rng.exponential(0.1), y.max() + rng.exponential(0.1)
        law = QuadraticDistribution(a, b, int(rng.integers(1, 11)), True)
        assert objective(y, law) <= fit.objective
    noisy = fit_noisy(y, direction="minimize")
    assert noisy.objective >= fit.objective
    for _ in range(100):
        a = fit.distribution.a + 0.2 * rng.standard_normal()
        law = NoisyQuadraticDistribution(
            a, a + rng.uniform(0.3, 2), int(rng.integers(1, 11)), rng.exponential(0.1), True
        )
        with np.errstate(divide="ignore"):
            assert objective(y, law) <= noisy.objective + 1e-6


# ---------------------------------------------------------------------- opda


@pytest.mark.parametrize("case", range(7))
def test_fits_are_at_least_as_high_as_those_of_opda(reference, case):
    cases = reference("opda_parametric")["opda_fits"]
    if case >= len(cases):
        pytest.skip("fewer cases")
    want = cases[case]
    y, convex = np.array(want["y"]), want["convex"]
    fit = fit_noisy if want["noisy"] else fit_quiet
    limits = None if want["upper"] is None else (None, want["upper"])
    got = fit(y, direction="minimize" if convex else "maximize", limits=limits)
    theirs = NoisyQuadraticDistribution(want["a"], want["b"], want["c"], want["o"], convex)
    if limits is None:  # without ties and limits both maximise the same product
        assert got.objective >= objective(y, theirs) - 1e-6
    if got.distribution.c == want["c"]:
        tolerance = 0.02 if limits is None else 0.2
        assert (got.distribution.a, got.distribution.b) == approx((want["a"], want["b"]), abs=tolerance)


# ---------------------------------------------------------------------- symmetries


def test_minimizing_is_maximizing_the_negative():
    for fit in [fit_quiet, fit_noisy]:
        y = noisy_scores(30).round(2)
        low = fit(y, direction="minimize", limits=(None, 0.7), constraints={"c": (1, 3)})
        high = fit(-y, direction="maximize", limits=(-0.7, None), constraints={"c": (1, 3)})
        for one, other in zip(low.estimates, high.estimates, strict=True):
            sign = -1 if one.name in ("best", "worst") else 1
            assert sorted([sign * other.ci_low, sign * other.ci_high]) == approx(
                [one.ci_low, one.ci_high], rel=1e-6, abs=1e-6
            )
        assert low.objective == approx(high.objective, rel=1e-12)
        assert low.n_above == high.n_below == int(np.sum(y >= 0.7))
        k = [1, 10, 1000]
        assert low.quantile_curve(k, q=0.25) == approx(-np.asarray(high.quantile_curve(k, q=0.75)), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("fit", [fit_quiet, fit_noisy])
def test_the_unit_of_the_score_and_the_order_of_rows_do_not_matter(fit):
    y = noisy_scores(30)
    one = fit(y, direction="minimize", constraints={"c": (2, 3)}).to_frame()
    other = fit(5.0 - 1000.0 * y[::-1], direction="maximize", constraints={"c": (2, 3)}).to_frame()
    scaled = (5.0 - other["estimate"]) / 1000.0
    assert scaled[:2].to_numpy() == approx(one["estimate"][:2].to_numpy(), abs=1e-4)
    assert other["estimate"][2] == one["estimate"][2]


# ---------------------------------------------------------------------- what is estimated


@pytest.mark.parametrize("c", [1, 2, 4])
def test_many_scores_give_the_truth(c):
    fit = fit_quiet(quiet_scores(2000, c), direction="minimize")
    assert fit.hyperparameters.value == c
    assert fit.best.ci_low < 0.0 < fit.best.ci_high
    assert fit.worst.ci_low < 1.0 < fit.worst.ci_high
    assert fit.distribution.a == approx(0.0, abs=0.02)
    assert fit.trusted


def test_many_noisy_scores_give_the_noise():
    fit = fit_noisy(noisy_scores(600, 1, 0.05), direction="minimize", constraints={"c": (1, 4)})
    assert fit.hyperparameters.value == 1
    noise = fit.estimates[3]
    assert noise.ci_low < 0.05 < noise.ci_high
    assert noise.value == approx(0.05, abs=0.015)
    assert fit.best.ci_low < 0.0 < fit.best.ci_high
    assert fit.trusted


def test_noise_that_adds_rounding_only_is_none(monkeypatch):
    """Of two peaks that differ in the last digits the one without noise counts, on every machine."""
    data, box = spacings.spacings(np.array([0.0, 0.3, 0.5, 1.0]), -math.inf, 0, math.inf, 0), (-math.inf, math.inf)
    family = Family(data, box, box, (0.0, math.inf), (2,))
    quiet, _ = family._quiet(2, box, box)
    for share, noise in ((1e-13, 0.0), (-1e-13, 0.0), (1e-6, 0.1)):
        found = quiet + share * abs(quiet), np.array([-0.1, 1.1, math.log(0.1)])
        monkeypatch.setattr(spacings, "noisy_peak", lambda *_, found=found: found)
        family.climb_all()
        assert family.peaks[2][1][2] == approx(noise)


def test_ends_of_intervals_lie_on_the_profile():
    """Held at an end of its interval, a parameter costs the allowance."""
    y = noisy_scores(80, 1, 0.05)
    fit = fit_noisy(y, direction="minimize", constraints={"c": 1})
    for name, estimate in (("a", fit.best), ("b", fit.worst), ("o", fit.estimates[3])):
        for end in (estimate.ci_low, estimate.ci_high):
            held = fit_noisy(y, direction="minimize", constraints={"c": 1, name: end})
            assert fit.objective - held.objective == approx(allowance(0.95), abs=0.02)


@pytest.mark.parametrize("noisy", [False, True])
def test_a_curve_ends_its_interval_where_the_quantile_costs_the_allowance(noisy):
    """Independent maximisation over the laws with a given median of the best of ten."""
    from scipy.optimize import minimize_scalar

    y, c = (noisy_scores(60, 1, 0.05), 1) if noisy else (quiet_scores(60, 3), 3)
    fit = (fit_noisy if noisy else fit_quiet)(
        y, direction="minimize", constraints={"c": c, "o": 0.05} if noisy else {"c": c}
    )
    curve = fit.curve([10.0])
    assert curve.estimate[0] == approx(fit.quantile_curve(10.0), abs=1e-12)
    for end in (curve.ci_low[0], curve.ci_high[0]):

        def loss(log_width, end=end):
            width = math.exp(log_width)
            law = NoisyQuadraticDistribution(0.0, width, c, 0.05 if noisy else 0.0, True)
            a = end - law.quantile_curve(10.0)
            with np.errstate(divide="ignore"):
                value = objective(y, NoisyQuadraticDistribution(a, a + width, c, law.o, True))
            return 1e6 if not math.isfinite(value) else -value

        grid = np.linspace(-0.7, 0.9, 81)
        near = grid[int(np.argmin([loss(x) for x in grid]))]
        best = minimize_scalar(loss, bounds=(near - 0.03, near + 0.03), method="bounded", options={"xatol": 1e-7})
        assert fit.objective + best.fun == approx(allowance(0.95), abs=0.03)


@pytest.mark.parametrize("fit", [fit_quiet, fit_noisy])
def test_intervals_of_curves_are_dual_and_approach_those_of_the_best(fit):
    y = quiet_scores(60, 2)
    options = {"constraints": {"c": 2}}
    low, high = fit(y, direction="minimize", **options), fit(-y, direction="maximize", **options)
    one, other = low.curve([1, 10], q=0.25), high.curve([1, 10], q=0.75)
    assert one.ci_low == approx(-other.ci_high, abs=1e-5)
    assert one.ci_high == approx(-other.ci_low, abs=1e-5)
    assert (one.ci_low < one.estimate).all()
    assert (one.estimate < one.ci_high).all()
    if fit is fit_quiet:
        far = low.curve(1e9)
        assert (far.ci_low[0], far.ci_high[0]) == approx((low.best.ci_low, low.best.ci_high), abs=2e-3)
    assert one.to_frame().columns.tolist() == ["k", "estimate", "ci_low", "ci_high"]
    assert one.summary().startswith("Parametric tuning curve")


def test_counted_scores_say_only_on_which_side_they_are():
    y = quiet_scores(200, 2)
    moved = np.where(y > 0.6, 50.0 + y, y)
    one = fit_quiet(y, direction="minimize", limits=(None, 0.6))
    other = fit_quiet(moved, direction="minimize", limits=(None, 0.6))
    infinite = fit_quiet(np.where(y > 0.6, np.inf, y), direction="minimize", limits=(None, 0.6))
    assert one.to_frame().equals(other.to_frame())
    assert one.to_frame().equals(infinite.to_frame())
    assert (one.n_scores, one.n_above, len(one.scores)) == (200, int(np.sum(y > 0.6)), int(np.sum(y <= 0.6)))
    assert one.best.ci_low < 0.0 < one.best.ci_high


def test_constraints_hold():
    y = noisy_scores(60)
    fit = fit_noisy(y, direction="minimize", constraints={"a": (-0.01, 0.01), "c": (2, 3), "o": 0.1})
    assert -0.01 <= fit.distribution.a <= 0.01
    assert -0.01 <= fit.best.ci_low <= fit.best.ci_high <= 0.01
    assert fit.distribution.c in (2.0, 3.0)
    assert fit.distribution.o == approx(0.1, rel=1e-12)
    assert fit.estimates[3].fixed
    quiet = fit_quiet(quiet_scores(), direction="maximize", constraints={"b": (1.0, 1.5)})
    assert 1.0 <= quiet.distribution.b <= 1.5


# ---------------------------------------------------------------------- trust


def test_a_wrong_shape_is_called_so():
    rng = np.random.default_rng(1)
    two_heaps = np.concatenate([rng.normal(0.0, 0.01, 60), rng.normal(1.0, 0.01, 60)])
    fit = fit_noisy(two_heaps, direction="maximize")
    assert not fit.trusted
    assert fit.p_band < 0.001
    assert fit.problems[0] == (
        "The scores do not have this shape: they leave the exact 95 % band around it (p < 0.001)."
    )
    assert "Do not trust this fit: The scores do not have this shape" in fit.sentences()[0]


def test_few_noisy_scores_do_not_tell_the_number_of_hyperparameters():
    fit = fit_noisy(noisy_scores(15, 4, 0.2), direction="minimize")
    assert not fit.trusted
    assert any(p.startswith("The number of hyperparameters is not limited from above") for p in fit.problems)
    assert "15 exact scores are too few to see a wrong shape." in fit.problems


def test_discrete_scores_are_called_so():
    fit = fit_quiet(quiet_scores(100).round(1), direction="minimize")
    assert any("repeat another one; the law is continuous." in p for p in fit.problems)


def test_the_band_probability_of_a_known_law_is_uniform():
    """The p-value is exact for a law that was not fitted."""
    law = QuadraticDistribution(0.0, 1.0, 2, True)
    p = [band_probability(law, (np.sort(law.sample(20, rng=seed)), 0, 0)) for seed in range(300)]
    ordered = np.sort(p)
    assert np.abs(ordered - (np.arange(300) + 0.5) / 300).max() < 1.63 / np.sqrt(300)


def test_summary_and_frame_say_the_same():
    fit = fit_quiet(quiet_scores(), direction="minimize")
    frame = fit.to_frame()
    assert frame.columns.tolist() == ["parameter", "estimate", "ci_low", "ci_high", "fixed"]
    assert frame["parameter"].tolist() == ["best", "worst", "hyperparameters"]
    assert fit.sentences()[0] in fit.summary()
    assert fit.summary().startswith("Quadratic tuning distribution, minimize, n = 60\n")


# ---------------------------------------------------------------------- bootstrap


def test_the_bootstrap_is_reproducible():
    fit = fit_quiet(quiet_scores(60, 2), direction="minimize")
    one, other = bootstrap_fit(fit, 60, rng=3), bootstrap_fit(fit, 60, rng=3)
    assert one.to_frame().equals(other.to_frame())
    assert one.trusted
    assert one.p_value > 0.05
    assert "nothing else speaks against it" in one.sentences()[0]
    assert one.summary().startswith("Parametric bootstrap of a tuning distribution")
    limited = fit_noisy(noisy_scores(40), direction="minimize", limits=(None, 0.7), constraints={"c": (1, 3)})
    boot = bootstrap_fit(limited, 20, rng=1)
    assert len(boot.laws) + boot.failed == 20
    assert boot.to_frame()["hyperparameters"].between(1, 3).all()
    assert refusal(lambda: bootstrap_fit([1, 2])) == "fit must be the result of tuning.fit, got list."


def test_the_bootstrap_sees_what_the_band_does_not():
    """Normal scores with few outliers: the band of a known law is too wide to tell, samples of the fit are not."""
    rng = np.random.default_rng(4)
    y = np.concatenate([rng.uniform(0.0, 0.45, 40), rng.uniform(0.55, 1.0, 40)]) ** 1.0
    fit = fit_quiet(y, direction="minimize")
    boot = bootstrap_fit(fit, 99, rng=1)
    assert boot.p_value < fit.p_band


# ---------------------------------------------------------------------- errors


def test_options_are_checked():
    for options, message in [
        ({"limits": (1, 0)}, "limits must be (low, high) with low < high, got (1, 0)."),
        ({"limits": 3}, "limits must be a (low, high) pair, with None for no limit, got 3."),
        ({"limits": np.array([1j, 2])},
         "limits must be a (low, high) pair, with None for no limit, got array([0.+1.j, 2.+0.j])."),
        ({"constraints": {"a": np.array([1j, 2])}},
         "constraints['a'] must be a number or a (low, high) pair with low <= high, got array([0.+1.j, 2.+0.j])."),
        ({"constraints": {"d": 1}}, "a name in constraints must be 'a' or 'b' or 'c' or 'o', got 'd'."),
        ({"constraints": {"a": (1, 0)}},
         "constraints['a'] must be a number or a (low, high) pair with low <= high, got (1, 0)."),
        ({"constraints": {"c": 40}},
         "constraints['c'] must contain a whole number from 1 to 10, got (40.0, 40.0). c is the effective number of "
         "hyperparameters."),
        ({"constraints": {"o": 0}},
         "constraints['o'] must be at least 0 and not fixed at 0, got (0.0, 0.0). For scores without noise use "
         "law='quadratic'."),
        ({"constraints": 3}, "constraints must be a mapping such as {'c': (1, 4)}, got 3."),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError) as error:
            fit_noisy(noisy_scores(), **{"direction": "minimize", **options})
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("scores", "limits", "message"),
    [
        ([0.1, np.nan, 0.3], None,
         "scores must not be missing: 1 of 3 are NaN (position 1). Score a failed run as the worst value: dropping "
         "it would make the search look better than it was."),
        ([0.1, np.inf, 0.3], None,
         "scores must be finite: 1 of 3 are inf. Give the second of the limits=(low, high): scores at or beyond a "
         "limit are only counted. Or score failed runs as the worst value."),
        ([0.1, 0.2, 0.3], None,
         "a quadratic needs at least 5 different scores, got 3. Use tuning.curve, whose bands hold for any "
         "distribution and any number of scores."),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], (None, 0.25),
         "a quadratic needs at least 5 different scores, got 2 between the limits, of 6 scores. Use tuning.curve, "
         "whose bands hold for any distribution and any number of scores.")
    ]
)  # fmt: skip
def test_scores_that_cannot_be_fitted_are_refused(scores, limits, message):
    assert refusal(lambda: fit_quiet(scores, direction="minimize", limits=limits), DataError) == message


# ---------------------------------------------------------------------- ties by rounding, ends, constants


@pytest.mark.parametrize("fit", [fit_quiet, fit_noisy])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_scores_that_differ_by_rounding_are_the_same(fit, direction):
    """Between 0.29 and 0.29 plus two units in the last place no law has a probability in double precision."""
    rng = np.random.default_rng(1)
    tied = QuadraticDistribution(0.0, 1.0, 2, direction == "minimize").sample(2048, rng=rng).round(2)
    moved = tied + rng.integers(-4, 5, len(tied)) * np.spacing(tied)
    options = {"direction": direction, "constraints": {"c": (2, 3)}}
    one, two = fit(tied, **options), fit(moved, **options)
    for a, b in zip(one.estimates, two.estimates, strict=True):
        assert (a.value, a.ci_low, a.ci_high) == approx((b.value, b.ci_low, b.ci_high), abs=1e-4)
    assert one.problems == two.problems


@pytest.mark.parametrize("limits", [None, (0.0, 1.0)])
@pytest.mark.parametrize("end", [0.0, (0.0, math.inf)])
def test_a_score_at_the_end_that_is_allowed_is_fitted(limits, end):
    """An error of exactly 0, the smallest there can be, excludes nothing."""
    y = np.append(QuadraticDistribution(0.0, 1.0, 2, True).sample(60, rng=1), 0.0)
    low = fit_quiet(y, direction="minimize", limits=limits, constraints={"a": end})
    assert low.best.value == low.distribution.a == 0.0
    assert low.trusted
    turned = None if limits is None else (-1.0, 0.0)
    best = 0.0 if end == 0.0 else (-math.inf, 0.0)
    high = fit_quiet(-y, direction="maximize", limits=turned, constraints={"b": best})
    assert (high.best.value, high.objective) == (0.0, approx(low.objective, rel=1e-12))
    assert [high.worst.ci_low, high.worst.ci_high] == approx([-low.worst.ci_high, -low.worst.ci_low], rel=1e-6)


def test_a_score_really_beyond_the_end_is_excluded_and_the_range_is_true():
    y = np.append(QuadraticDistribution(0.0, 1.0, 2, True).ppf((np.arange(30) + 0.5) / 30), -0.5)
    options = {"direction": "minimize", "constraints": {"a": (0.0, math.inf)}}
    words = refusal(lambda: fit_quiet(y, limits=(0.0, 1.0), **options))
    assert words.startswith("constraints exclude the scores: they go from below 0 to 0.983333, and")
    few = np.arange(1, 6) / 10
    assert refusal(lambda: fit_quiet(few, direction="minimize", constraints={"a": (0.2, 0.3)})) == (
        "constraints exclude the scores: they go from 0.1 to 0.5, and without noise all must lie between a and b, got "
        "a in (0.2, 0.3) and b in (-inf, inf). Widen the constraint, or use law='noisy_quadratic'."
    )
    assert fit_quiet(y, direction="minimize", limits=(0.1, 1.0), constraints={"a": (0.0, math.inf)}).best.value >= 0


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_constant_is_a_point_mass_about_which_nothing_else_is_known(direction):
    scores = 0.29 + np.arange(-3, 4) * np.spacing(0.29)
    fit = fit_quiet(scores, direction=direction)
    assert (fit.distribution.a, fit.distribution.b) == (approx(0.29), approx(0.29))
    assert [(e.ci_low, e.ci_high) for e in fit.estimates] == [(-math.inf, math.inf), (-math.inf, math.inf), (1.0, 10.0)]
    assert fit.is_point_mass
    assert not fit.trusted
    assert fit.sentences()[0].endswith(
        "Do not trust this fit: All 7 scores are 0.2900: a point mass, which determines nothing else. Check which "
        "column was given."
    )
    curve = fit.curve([1, 10], q=0.2)
    assert curve.estimate == approx([0.29, 0.29])
    assert np.isinf(curve.ci_low).all()
    noisy = fit_noisy(scores, direction=direction, constraints={"o": 0.1})
    assert noisy.distribution.variance == approx(0.01)
    with pytest.raises(ArgumentError, match=r"^fit is a point mass, and so are its samples: All 7 scores are 0\.29"):
        bootstrap_fit(fit, 20, rng=1)
    with pytest.raises(ArgumentError, match=r"^constraints exclude the scores: all are 0\.29"):
        fit_quiet(scores, direction=direction, constraints={"b": (0, 0.2)})
