"""The quadratic distribution: closed forms, duality, opda's values, tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pytest import approx
from refusals import refusal
from scipy import special, stats

from lmemtest.errors import ArgumentError
from lmemtest.tuning.laws import convolution
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

Y = np.linspace(-0.5, 1.5, 41)
Q = np.array([0.0, 1e-12, 0.01, 0.3, 0.5, 0.9, 1.0])


def test_the_formulas_of_both_shapes():
    for c in [0.5, 1, 2, 3, 10]:
        x = np.clip(Y, 0.0, 1.0)
        assert QuadraticDistribution(0, 1, c, True).cdf(Y) == approx(x ** (c / 2), rel=1e-13, abs=1e-300)
        assert QuadraticDistribution(0, 1, c, False).cdf(Y) == approx(1 - (1 - x) ** (c / 2), rel=1e-12, abs=1e-15)


def test_opda_agrees(reference):
    for case in range(0, 40, 4):
        want = reference("opda_parametric")["opda"][case]
        assert want["o"] == 0.0
        law = QuadraticDistribution(0.0, 1.0, want["c"], want["convex"])
        assert law.cdf(want["y"]) == approx(np.array(want["cdf"]), abs=1e-14)
        ours, theirs = np.asarray(law.pdf(want["y"])), np.array(want["pdf"], dtype=float)
        assert ours == approx(theirs, abs=1e-12)
        assert law.ppf(want["q"]) == approx(np.array(want["ppf"]), abs=1e-14)
        assert (law.mean, law.variance) == approx((want["mean"], want["variance"]), rel=1e-13)
        for direction, short in (("minimize", "min"), ("maximize", "max")):
            assert law.quantile_curve(want["k"], direction=direction) == approx(
                np.array(want[f"median_{short}"]), abs=1e-10
            )
            assert law.mean_curve(want["k"], direction=direction) == approx(np.array(want[f"mean_{short}"]), abs=1e-10)


def test_quantiles_invert_both_tails():
    for convex, c in itertools.product([True, False], [1, 4, 7]):
        law = QuadraticDistribution(-2.0, 5.0, c, convex)
        assert law.cdf(law.ppf(Q[1:-1])) == approx(Q[1:-1], rel=1e-9 if convex else 1e-3)  # 1 - y costs digits
        assert law.ppf([0.0, 1.0]).tolist() == [-2.0, 5.0]
        assert law.isf(Q[2:]) == approx(law.ppf(1 - Q[2:]), abs=1e-12)
        assert law.isf([0.0, 1.0]).tolist() == [5.0, -2.0]
        assert law.cdf(Y) + law.sf(Y) == approx(np.ones(41), abs=1e-15)


@pytest.mark.parametrize(("law", "more", "y"), [
    *((QuadraticDistribution, (c,), Y) for c in (1, 2, 5)),
    (NoisyQuadraticDistribution, (3, 0.2), np.linspace(-2, 4, 20)),
])  # fmt: skip
def test_minimizing_is_maximizing_the_negative(law, more, y):
    low, high = law(-1.0, 3.0, *more, True), law(-3.0, 1.0, *more, False)
    k = np.array([0.3, 1.0, 7.0, 1e6])
    assert np.array_equal(low.cdf(y), high.sf(-y))
    assert np.array_equal(low.pdf(y), high.pdf(-y))
    assert low.quantile_curve(k, q=0.25) == approx(-np.asarray(high.quantile_curve(k, q=0.75)), rel=1e-12)
    assert np.array_equal(low.mean_curve(k), -np.asarray(high.mean_curve(k)))


def test_curves_of_long_searches_keep_their_digits():
    law = QuadraticDistribution(0.0, 1.0, 2, True)  # uniform: the best of k is near log(2) / k
    assert law.quantile_curve(1e15) == approx(np.log(2) * 1e-15, rel=1e-12)
    assert law.mean_curve(1e15) == approx(1e-15, rel=1e-12)
    far = QuadraticDistribution(0.0, 1.0, 3, True)
    assert far.mean_curve(2.0, direction="maximize") == approx(2 / (2 + 2 / 3))


def test_density_integrates_to_the_distribution():
    law = QuadraticDistribution(1.0, 4.0, 5, False)
    y = np.linspace(1.0, 4.0, 200001)
    density = np.asarray(law.pdf(y))
    assert (density[1:] + density[:-1]).sum() * (y[1] - y[0]) / 2 == approx(1.0, abs=1e-9)
    assert law.logpdf([0.9, 4.1, np.nan]) == approx([-np.inf, -np.inf, np.nan], nan_ok=True)
    assert QuadraticDistribution(0, 1, 1, True).pdf(0.0) == np.inf


@pytest.mark.parametrize(
    "law", [QuadraticDistribution(0.0, 2.0, 3, False), NoisyQuadraticDistribution(0.0, 2.0, 3, 0.4, False)]
)
def test_samples_follow_the_distribution(law):
    u = np.sort(np.asarray(law.cdf(law.sample(4000, rng=1))))
    assert np.abs(u - (np.arange(4000) + 0.5) / 4000).max() < 1.63 / np.sqrt(4000)  # KS at 1 %
    assert isinstance(law.sample(rng=1), float)
    assert law.sample((2, 3), rng=1).shape == (2, 3)


def test_parameters_are_checked():
    for change, message in [
        ({"a": 2.0}, "a must be at most b, got a=2.0 and b=1.0. a is the lower end of the scores."),
        ({"b": np.inf}, "b must be a finite number, got inf."),
        ({"a": "x"}, "a must be a finite number, got 'x'."),
        ({"c": 0}, "c must be a number above 0 and at most 1000, got 0."),
        ({"convex": "yes"}, "convex must be True (minimize) or False (maximize), got 'yes'."),
    ]:
        with pytest.raises(ArgumentError) as error:
            QuadraticDistribution(**{"a": 0.0, "b": 1.0, "c": 2, "convex": True, **change})
        assert str(error.value) == message


def test_arguments_of_curves_are_checked():
    law = QuadraticDistribution(0, 1, 2)
    assert refusal(lambda: law.quantile_curve([1, 0]), ArgumentError) == (
        "k must be positive and finite (how many configurations are tried), got 0."
    )
    assert refusal(lambda: law.ppf(1.2), ArgumentError) == ("q must lie between 0 and 1, got 1.2.")
    assert refusal(lambda: law.mean_curve(3, direction="down"), ArgumentError) == (
        "direction must be 'minimize' or 'maximize', got 'down'."
    )


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_one_value_is_a_point_mass(convex, direction):
    law = QuadraticDistribution(2.0, 2.0, 3, convex=convex)
    assert law.cdf([1.9, 2.0, 2.1]).tolist() == [0.0, 1.0, 1.0]
    assert law.sf([1.9, 2.0, 2.1]).tolist() == [1.0, 0.0, 0.0]
    assert law.pdf([1.9, 2.0, 2.1]).tolist() == [0.0, np.inf, 0.0]
    assert law.ppf([0.0, 0.5, 1.0]).tolist() == law.isf([0.0, 0.5, 1.0]).tolist() == [2.0] * 3
    assert (law.mean, law.variance, law.sample(3, rng=1).tolist()) == (2.0, 0.0, [2.0] * 3)
    assert law.quantile_curve([0.5, 9], q=0.1, direction=direction).tolist() == [2.0, 2.0]
    assert law.mean_curve([0.5, 9], direction=direction).tolist() == [2.0, 2.0]


# ---------------------------------------------------------------------- noisy quadratic


SHAPES = [0.5, 1, 2, 3, 5, 10, 50]
NOISES = [1e-5, 1e-3, 0.03, 0.2, 1.0, 30.0]
Q_WITH_NOISE = np.array([1e-200, 1e-30, 1e-8, 0.01, 0.3, 0.5, 0.7, 0.99])


def test_integrals_of_thirty_digits_agree(reference):
    cases = reference("opda_parametric")["integrals"]
    assert len(cases) == 90
    for case in cases:
        z, s, c = np.array([case["z"]]), case["s"], case["c"]
        # Logarithms: an absolute error is a relative one of the probability. z itself is rounded to 1e-16, and the
        # logarithm changes by z / s of them per unit of s, up to 1e-11 here.
        tolerance = (1e-8 if c <= 10 else 1e-7) + 1e-15 * abs(case["z"] / s) * abs(case["z"] / s)
        assert convolution.log_density(z, s, c)[0] == approx(case["log_pdf"], abs=tolerance), case
        assert convolution.log_below(z, s, c)[0] == approx(case["log_cdf"], abs=tolerance), case
        assert convolution.log_above(z, s, c)[0] == approx(case["log_sf"], abs=tolerance), case


@pytest.mark.parametrize("s", NOISES)
def test_the_upper_tail_has_an_integral_of_its_own_where_digits_would_be_lost_only(monkeypatch, s):
    """Up to 0.8 below, one minus that is as good as the integral, which a fifth of the scores need."""
    asked = []
    directly = convolution._log_above_directly
    monkeypatch.setattr(convolution, "_log_above_directly", lambda z, *more: asked.append(len(z)) or directly(z, *more))
    z = np.linspace(-2.0 * s, 1.0 + 2.0 * s, 201)
    for c in (1, 2, 3, 5, 10):
        below = convolution.log_below(z, s, c)
        difference = convolution.log_above(z, s, c, below)
        assert asked.pop() == (below > np.log(0.8)).sum()
        monkeypatch.setattr(convolution, "_HIGH", -0.7)
        assert difference == approx(convolution.log_above(z, s, c, below), rel=1e-9, abs=1e-9)
        monkeypatch.setattr(convolution, "_HIGH", np.log(0.8))
        asked.clear()


def test_the_lower_tail_is_a_parabolic_cylinder_function():
    """Where the upper end is out of reach: int x^h phi = s^h Gamma(h + 1) exp(-t^2 / 4) D(-h - 1, t) / sqrt(2 pi)."""
    s, t = 1e-3, np.array([-1.5, 0.0, 2.0, 10.0, 26.0])
    for c in (0.5, 1, 2, 3, 7, 10):
        h = c / 2
        want = special.pbdv(-h - 1, t)[0] * np.exp(-t * t / 4) * s**h * special.gamma(h + 1) / np.sqrt(2 * np.pi)
        assert np.exp(convolution.log_below(-s * t, s, c)) == approx(want, rel=1e-10)


@pytest.mark.parametrize("s", [1e-4, 0.02, 0.3, 5.0])
def test_two_hyperparameters_have_a_closed_form(s):
    """c = 2: X is uniform, so F = s (G(z / s) - G((z - 1) / s)) with G the integral of Phi."""
    z = np.concatenate([np.linspace(-3 * s, 1 + 3 * s, 50)])

    def integral(x):
        return x * special.ndtr(x) + np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    want = s * (integral(z / s) - integral((z - 1) / s))
    assert np.exp(convolution.log_below(z, s, 2.0)) == approx(want, rel=1e-9, abs=1e-13)
    density = special.ndtr(z / s) - special.ndtr((z - 1) / s)
    assert np.exp(convolution.log_density(z, s, 2.0)) == approx(density, rel=1e-9, abs=1e-13)


def test_quantiles_invert_both_tails_with_noise():
    for c, o in itertools.product(SHAPES, NOISES):
        for convex in (True, False):
            law = NoisyQuadraticDistribution(0.0, 1.0, c, o, convex)
            # near y = 1 a score has 1e-16, of which the noise sees 1e-16 / o
            tolerance = 1e-10 + 1e-15 / min(o, 1.0) * 40
            assert law.logcdf(law.ppf(Q_WITH_NOISE)) / np.log(Q_WITH_NOISE) == approx(
                np.ones(len(Q_WITH_NOISE)), rel=tolerance
            )
            assert law.logsf(law.isf(Q_WITH_NOISE)) / np.log(Q_WITH_NOISE) == approx(
                np.ones(len(Q_WITH_NOISE)), rel=tolerance
            )
            y = np.linspace(-3 * o, 1 + 3 * o, 30)
            assert np.asarray(law.cdf(y)) + law.sf(y) == approx(np.ones(30), abs=1e-12)


@pytest.mark.parametrize("c", [1, 3, 10])
def test_the_density_is_the_slope_of_the_distribution(c):
    law = NoisyQuadraticDistribution(-1.0, 2.0, c, 0.3, True)
    y, step = np.linspace(-2.0, 3.0, 23), 1e-5
    slope = (np.asarray(law.cdf(y + step)) - law.cdf(y - step)) / (2 * step)
    assert law.pdf(y) == approx(slope, abs=1e-9)


def test_opda_agrees_with_noise(reference):
    for case in range(40):
        want = reference("opda_parametric")["opda"][case]
        law = NoisyQuadraticDistribution(0.0, 1.0, want["c"], want["o"], want["convex"])
        # opda's distribution function is a piecewise approximation, up to 1e-5 off; see the witness
        assert law.cdf(want["y"]) == approx(np.array(want["cdf"]), abs=2e-5)
        ours, theirs = np.asarray(law.pdf(want["y"])), np.array(want["pdf"], dtype=float)
        assert ours == approx(theirs, rel=0.04, abs=1e-3)  # and its density one of up to 3.3 %
        assert (law.mean, law.variance) == approx((want["mean"], want["variance"]), rel=1e-12)
        scale = 1.0 + want["o"]
        assert law.ppf(want["q"]) == approx(np.array(want["ppf"]), abs=1e-3 * scale)
        for direction, short in (("minimize", "min"), ("maximize", "max")):
            median = law.quantile_curve(want["k"], direction=direction)
            assert median == approx(np.array(want[f"median_{short}"]), abs=1e-3 * scale)
            assert law.mean_curve(want["k"], direction=direction) == approx(
                np.array(want[f"mean_{short}"]), abs=1e-4 * scale
            )


def test_where_opda_differs_the_integrals_take_our_side(reference):
    cases = reference("opda_parametric")["opda_witness"]
    assert len(cases) == 36
    ours, theirs = [], []
    for case in cases:
        law = NoisyQuadraticDistribution(0.0, 1.0, case["c"], case["o"], True)
        assert law.cdf(case["y"]) == approx(case["cdf"], rel=1e-9)
        assert law.sf(case["y"]) == approx(case["sf"], rel=1e-9)
        assert law.pdf(case["y"]) == approx(case["pdf"], rel=1e-9)
        ours.append(abs(law.cdf(case["y"]) - case["cdf"]))
        theirs.append(abs(case["opda_cdf"] - case["cdf"]))
    assert max(ours) < 1e-12
    assert 7e-6 < max(theirs) < 9e-6
    assert max(abs(case["opda_pdf"] / case["pdf"] - 1) for case in cases) == approx(0.0326, abs=1e-3)


def test_expected_best_scores_agree_with_nested_quadrature(reference):
    for case in reference("opda_parametric")["expected_smallest"]:
        law = NoisyQuadraticDistribution(0.0, 1.0, case["c"], case["s"], True)
        assert law.mean_curve(case["k"]) == approx(case["value"], abs=1e-11)
        mirrored = NoisyQuadraticDistribution(-1.0, 0.0, case["c"], case["s"], False)
        assert mirrored.mean_curve(case["k"]) == approx(-case["value"], abs=1e-11)


def test_the_best_of_one_score_is_its_mean():
    for c, o in itertools.product(SHAPES, NOISES):
        law = NoisyQuadraticDistribution(0.0, 1.0, c, o, True)
        for direction in ("minimize", "maximize"):
            assert law.mean_curve(1.0, direction=direction) == approx(law.mean, abs=1e-10 * (1 + o))


def test_curves_approach_those_without_noise_and_of_noise_alone():
    for k, convex in itertools.product([0.4, 1.0, 2.0, 50.0, 1e4], [True, False]):
        quiet = QuadraticDistribution(0.0, 1.0, 3, convex)
        nearly = NoisyQuadraticDistribution(0.0, 1.0, 3, 1e-9, convex)
        zero = NoisyQuadraticDistribution(0.0, 1.0, 3, 0.0, convex)
        for direction in ("minimize", "maximize"):
            assert nearly.mean_curve(k, direction=direction) == approx(
                quiet.mean_curve(k, direction=direction), abs=1e-8
            )
            assert zero.mean_curve(k, direction=direction) == quiet.mean_curve(k, direction=direction)
            assert nearly.quantile_curve(k, direction=direction) == approx(
                quiet.quantile_curve(k, direction=direction), abs=1e-8
            )
        loud = NoisyQuadraticDistribution(0.0, 1e-9, 3, 1.0, convex)
        assert loud.quantile_curve(k, direction="maximize") == approx(
            -special.ndtri(-np.expm1(np.log(0.5) / k)), abs=1e-8
        )


def test_two_normal_scores_have_the_known_expected_best():
    law = NoisyQuadraticDistribution(0.0, 1e-9, 3, 1.0, True)
    assert law.mean_curve(2.0) == approx(-1 / np.sqrt(np.pi), abs=1e-8)


def test_extreme_scores_have_extreme_logarithms():
    law = NoisyQuadraticDistribution(0.0, 1.0, 3, 0.1, True)
    assert law.logcdf([-np.inf, np.inf]).tolist() == [-np.inf, 0.0]
    assert law.logsf([-np.inf, np.inf]).tolist() == [0.0, -np.inf]
    assert np.isnan(law.cdf(np.nan))
    assert law.logcdf(-100.0) == approx(-0.5e6, rel=1e-3)
    assert law.ppf([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert law.cdf(np.zeros((2, 3))).shape == (2, 3)
    assert law.pdf(1e200) == 0.0


def test_noise_must_not_be_negative():
    assert refusal(lambda: NoisyQuadraticDistribution(0.0, 1.0, 2, -0.1), ArgumentError) == (
        "o must be a finite number of at least 0, got -0.1: the standard deviation of the noise."
    )


@pytest.mark.parametrize("convex", [True, False])
def test_one_expected_score_with_noise_is_a_normal_law(convex):
    law, normal = NoisyQuadraticDistribution(2.0, 2.0, 3, 0.5, convex=convex), stats.norm(2.0, 0.5)
    y, p = np.linspace(-8, 8, 9), np.array([0.0, 1e-12, 0.3, 0.9, 1.0])
    assert law.pdf(y) == approx(normal.pdf(y), rel=1e-12)
    assert law.cdf(y) == approx(normal.cdf(y), rel=1e-12)
    assert law.sf(y) == approx(normal.sf(y), rel=1e-12)
    assert law.ppf(p) == approx(normal.ppf(p), rel=1e-12)
    assert law.isf(p) == approx(normal.isf(p), rel=1e-12)
    assert (law.mean, law.variance) == (2.0, 0.25)
    best = 2.0 + 0.5 * np.array([0.0, 1.0, 1.5]) / np.sqrt(np.pi)  # of 1, 2 and 3 normal scores, in closed form
    assert law.mean_curve([1, 2, 3], direction="maximize") == approx(best, rel=1e-12)
    assert law.mean_curve([1, 2, 3], direction="minimize") == approx(4.0 - best, rel=1e-12)
    point = NoisyQuadraticDistribution(2.0, 2.0, 3, 0.0, convex=convex)
    assert point.cdf([1.9, 2.0]).tolist() == [0.0, 1.0]
