"""The F-test of all means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.report.joint import joint_test

Make = Callable[..., Any]


def test_two_means_give_the_square_of_the_t_test(table: Make) -> None:
    fit = lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool)", table(("A", "B")).iloc[:-5])
    em = lt.emmeans(fit, "tool")
    pair = lt.pairs(em, adjust="none").to_frame().iloc[0]
    test = joint_test(em)
    assert test.statistic == approx(pair["t_ratio"] ** 2, rel=1e-9)
    assert test.df_den == approx(pair["df"], rel=1e-9)
    assert test.pvalue == approx(pair["p_value"], rel=1e-8)


def test_balanced_blocks_give_the_analysis_of_variance(table: Make) -> None:
    frame = table(seeds=1)
    em = lt.emmeans(lt.fit_lmm("loss ~ tool + (1 | task)", frame), "tool")
    wide = frame.pivot(index="task", columns="tool", values="loss").to_numpy()
    blocks, k = wide.shape
    effects = wide.mean(axis=0) - wide.mean()
    rest = wide - wide.mean(axis=0) - wide.mean(axis=1, keepdims=True) + wide.mean()
    within = (rest**2).sum() / ((blocks - 1) * (k - 1))
    test = joint_test(em)
    assert (test.df_num, test.n_means) == (k - 1, k)
    assert test.df_den == approx((blocks - 1) * (k - 1), rel=1e-5)
    assert test.statistic == approx(blocks * (effects**2).sum() / (k - 1) / within, rel=1e-6)


def test_it_agrees_with_lmertest_on_cake(reference_input: Make) -> None:
    cake = reference_input("cake")
    factors = [name for name in cake.columns if name.lower().startswith("recipe")]
    if not factors:
        pytest.skip("the cake table has other columns")
    score = next(name for name in cake.columns if name.lower() == "angle")
    groups = next(name for name in cake.columns if name.lower().startswith("rep"))
    fit = lt.fit_lmm(f"{score} ~ {factors[0]} + (1 | {factors[0]}:{groups})", cake)
    test = joint_test(lt.emmeans(fit, factors[0]))
    # balanced and nested: the 45 batches are the units, so that 3 recipes leave 42 degrees of freedom
    assert (test.df_num, round(test.df_den, 4)) == (2, 42.0)


def test_infinite_degrees_of_freedom_give_the_chi_squared_test(table: Make) -> None:
    from scipy.stats import chi2

    fit = lt.fit_lmm("loss ~ tool + (1 | task)", table())
    test = joint_test(lt.emmeans(fit, "tool", ddf="asymptotic"))
    assert np.isinf(test.df_den)
    assert test.pvalue == approx(chi2.sf(2 * test.statistic, 2), rel=1e-10)


def test_the_order_of_the_levels_does_not_matter(table: Make) -> None:
    frame = table().iloc[3:]
    other = frame.assign(tool=frame["tool"].map({"A": "Z", "B": "Y", "C": "X"}))
    tests = [joint_test(lt.emmeans(lt.fit_lmm("loss ~ tool + (1 | task)", f), "tool")) for f in (frame, other)]
    assert tests[0].statistic == approx(tests[1].statistic, rel=1e-7)
    assert tests[0].df_den == approx(tests[1].df_den, rel=1e-4)


def test_means_in_groups_are_refused(table: Make) -> None:
    frame = table().assign(prior=lambda d: (d["seed"] % 2).astype(str))
    em = lt.emmeans(lt.fit_lmm("loss ~ tool * prior + (1 | task)", frame), "tool", by="prior")
    with pytest.raises(ArgumentError) as error:
        joint_test(em)
    assert str(error.value) == "joint_test compares one group of means, but these are in groups by prior."


def test_the_analysis_uses_the_same_means(three: Any) -> None:
    again = joint_test(three.means)
    assert (again.statistic, again.pvalue) == (three.joint.statistic, three.joint.pvalue)
