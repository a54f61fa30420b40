import numpy as np
import pytest
from scipy import special

from lmemtest.core.quadrature import gauss_rule, normal_rule, power_rule


@pytest.mark.parametrize("n", [1, 5, 48])
def test_powers_below_twice_the_nodes_are_integrated_exactly(n):
    x, w = gauss_rule(n)
    for power in range(2 * n):
        assert x**power @ w == pytest.approx(1 / (power + 1), rel=1e-13)


@pytest.mark.parametrize("power", [-0.9, 0.0, 2.5])
def test_powers_beside_a_root_at_zero_are_integrated_exactly(power):
    x, w = power_rule(8, power)
    for other in range(16):
        assert x**other @ w == pytest.approx(1 / (power + other + 1), rel=1e-12)


@pytest.mark.parametrize("n", [2, 10, 60])
def test_even_moments_of_a_normal_variable_are_odd_factorials(n):
    x, w = normal_rule(n)
    for half in range(min(n, 20)):
        moment = special.factorial2(2 * half - 1) if half else 1.0
        assert x ** (2 * half) @ w == pytest.approx(moment, rel=1e-12)
        assert x ** (2 * half + 1) @ w == pytest.approx(0.0, abs=1e-12 * moment * max(half, 1) ** 2)


def test_a_caller_cannot_change_the_rule_of_others():
    x, _ = gauss_rule(5)
    with pytest.raises(ValueError, match="read-only"):
        x += 1.0
    assert np.all((x > 0) & (x < 1))
