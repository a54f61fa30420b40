"""The quadratic distribution: closed forms, duality, opda's values, tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pytest import approx
from refusals import refusal

from lmemtest.errors import ArgumentError
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


def test_minimizing_is_maximizing_the_negative():
    for c in [1, 2, 5]:
        low, high = QuadraticDistribution(-1.0, 3.0, c, True), QuadraticDistribution(-3.0, 1.0, c, False)
        k = np.array([0.3, 1.0, 7.0, 1e6])
        assert np.array_equal(low.cdf(Y), high.sf(-Y))
        assert np.array_equal(low.pdf(Y), high.pdf(-Y))
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


def test_samples_follow_the_distribution():
    law = QuadraticDistribution(0.0, 2.0, 3, False)
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
