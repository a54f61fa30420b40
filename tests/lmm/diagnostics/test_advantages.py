"""Advantages over benchmarks: their spread and their shape."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats
from study import as_runs, make_scores, table_of_scores

import lmemtest as lt
from lmemtest.lmm.diagnostics.advantages import (
    NEXT_STEP,
    advantage_shape,
    advantages,
    aligned,
    exchange_p,
    spreads,
    unequal,
)

FORMULA = "y ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)"


# -------------------------------------------------------------------------------------------------------- their spread


def table(sds, benchmarks: int = 12, runs: int = 5, seed: int = 1) -> pd.DataFrame:
    counts = {"benchmark": benchmarks, "algorithm": len(sds), "seed": runs}
    scores = make_scores(np.random.default_rng(seed), counts, {"benchmark:algorithm": sds, "benchmark": 2.0}, noise=0.3)
    names = {"benchmark": [f"b{i:02d}" for i in range(benchmarks)], "algorithm": [f"a{k}" for k in range(len(sds))]}
    return table_of_scores(scores, score="y", **names)


@pytest.fixture(scope="module")
def erratic() -> lt.LmmFit:
    return lt.fit_lmm(FORMULA, as_runs(table([0.5, 0.5, 0.5, 0.5, 0.5, 2.5])))


def test_an_erratic_algorithm_is_named_with_its_ratio_and_the_next_step(erratic):
    found = advantages(erratic, rng=1)
    check = found.check
    sd = found.table["sd"].to_numpy()
    others = np.sqrt((sd[:5] ** 2).mean())
    assert found.ratio == approx(sd[5] / others, rel=1e-12)
    assert (check.kind, check.subject, check.severity) == ("advantages", "by algorithm", "warning")
    assert check.message == f"standard deviations differ {found.ratio:.2g}-fold"
    assert check.advice == (
        f"a5 varies {found.ratio:.2g} times as much from benchmark to benchmark as the others, so one standard error "
        f"for all pairs is too small for some and too large for others. {NEXT_STEP}"
    )
    assert found.to_frame()["level"].tolist() == [f"a{k}" for k in range(6)]


def test_diagnosis_acts_and_does_not_say_that_tests_stand():
    fit = lt.fit_lmm(FORMULA, as_runs(table([0.5] * 5 + [4.0], 20)))
    found = fit.diagnose(influence=False, rng=1)
    assert found.severity == "warning"
    assert found.advantages.severity == "warning"
    assert "exchanges of algorithm within groups" in found.to_table().notes[0]
    heavy = [shape for shape in found.normality.shapes if shape.subject == "effects of benchmark:algorithm"]
    assert heavy[0].advice == (
        "Heavy-tailed, which may follow from advantages that vary to different degrees: settle those first."
    )
    assert not any("tests over" in check.advice for check in found.checks)


def test_alike_algorithms_are_fine():
    fit = lt.fit_lmm(FORMULA, as_runs(table([0.5] * 6, seed=2)))
    found = advantages(fit, rng=1)
    assert found.p_value > 0.05
    assert (found.severity, found.advice) == ("fine", "No difference between the algorithms beyond chance.")


def test_quiet_algorithms_are_named_where_they_are_the_fewer():
    found = advantages(lt.fit_lmm(FORMULA, as_runs(table([2.0, 2.0, 2.0, 2.0, 0.2], 30))), rng=1)
    assert found.advice.startswith("The other algorithms vary ")
    assert " as much from benchmark to benchmark as a4, so" in found.advice


def test_moments_of_a_complete_table_are_those_of_its_double_centred_means():
    scores = np.random.default_rng(3).normal(size=(12, 5)) * np.array([1.0, 1, 2, 3, 1])
    rest = scores - scores.mean(axis=0)
    rest -= rest.mean(axis=1, keepdims=True)
    squares = (rest**2).sum(axis=0) / 11
    total = squares.sum() * 5 / 4
    assert spreads(scores) ** 2 == approx(np.maximum((squares - total / 25) / (1 - 2 / 5), 0.0), rel=1e-10, abs=1e-12)


def test_levels_of_benchmarks_and_algorithms_do_not_matter_and_the_unit_neither():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(9, 4))
    scores[2, 1] = np.nan
    moved = 3.0 * scores + 10.0 * rng.normal(size=(9, 1)) + 0.0
    assert aligned(moved) == approx(3.0 * aligned(scores), nan_ok=True, abs=1e-9)
    assert unequal(np.abs(aligned(moved))) == approx(9.0 * unequal(np.abs(aligned(scores))), rel=1e-9)
    assert exchange_p(moved, rng=5) == exchange_p(scores, rng=5)


def test_every_exchange_of_a_small_table_is_drawn_with_its_probability():
    scores = np.array([[0.0, 1.0, 5.0], [0.0, 2.0, 9.0], [1.0, 0.0, 0.0], [0.0, 3.0, 1.0]])
    size = np.abs(aligned(scores))
    from itertools import permutations, product

    orders = [[list(row[list(p)]) for p in permutations(range(3))] for row in size]
    every = np.array([unequal(np.array(rows)) for rows in product(*orders)])
    exact = (every >= unequal(size) * (1 - 1e-9)).mean()
    assert exchange_p(scores, rng=6, exchanges=20_000) == approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 20_000))


def test_missing_cells_stay_missing_in_an_exchange():
    frame = table([0.5, 0.5, 0.5, 0.5, 2.5], 15)
    frame = frame[~((frame["algorithm"] == "a1") & frame["benchmark"].isin(["b00", "b03", "b07"]))]
    found = advantages(lt.fit_lmm(FORMULA, as_runs(frame)), rng=1)
    assert found.table["benchmarks"].tolist() == [15, 12, 15, 15, 15]
    assert found.severity == "warning"


def test_what_cannot_be_judged_is_not():
    assert advantages(lt.fit_lmm(FORMULA, as_runs(table([0.5, 2.5]))), rng=1) is None
    few = advantages(lt.fit_lmm(FORMULA, as_runs(table([0.5, 0.5, 2.5], 3))), rng=1)
    assert (few.severity, few.advice) == ("skipped", "Too few levels of benchmark to judge.")
    assert few.check.message == "too few levels"


@pytest.mark.parametrize("random", ["(1 | benchmark) + diag(algorithm | benchmark)", "(0 + algorithm | benchmark)"])
def test_a_model_with_variances_of_their_own_is_not_judged(random):
    fit = lt.fit_lmm(f"y ~ algorithm + {random}", as_runs(table([0.5, 0.5, 2.5])))
    assert advantages(fit, rng=1) is None


def test_a_table_without_roles_is_read_from_its_formula():
    frame = table([0.5, 0.5, 0.5, 2.5])
    assert advantages(lt.fit_lmm(FORMULA, frame), rng=1).check.subject == "by algorithm"
    assert advantages(lt.fit_lmm("y ~ algorithm + (1 | benchmark)", frame), rng=1) is None
    assert advantages(lt.fit_lmm("y ~ algorithm + (1 | benchmark)", as_runs(frame)), rng=1).severity == "warning"


def test_the_report_acts_on_it(erratic):
    text = lt.analyze(erratic.data).to_markdown()
    assert "Advantages that vary unequally are allowed for" in text
    assert "a5 varies" in text


# --------------------------------------------------------------------------------------------------------- their shape


def test_skewness_is_scipys_adjusted_for_the_algorithms():
    scores = np.random.default_rng(3).exponential(size=(25, 4))
    found = advantage_shape(scores, list("ABCD"))
    want = stats.skewtest(scores)
    at = int(np.argmax(np.abs(want.statistic)))
    assert found.skewed == "ABCD"[at]
    assert found.skewness == pytest.approx(stats.skew(scores)[at], rel=1e-12)
    assert found.skewness_p == pytest.approx(min(1.0, 4 * want.pvalue[at]), rel=1e-9)


def test_one_column_has_cochrans_statistic():
    x = np.random.default_rng(4).normal(size=(12, 1))
    squares = np.square(x - x.mean()).ravel()
    c = squares.max() / squares.sum()
    want = 12 * stats.f.sf(11 * c / (1 - c), 1, 11)  # Cochran's C by its F distribution
    assert advantage_shape(np.hstack([x, -x]), "AB").concentration_p == pytest.approx(min(1.0, want), rel=1e-9)


def test_two_algorithms_mirror_each_other_and_are_tested_once():
    x = np.random.default_rng(5).exponential(size=(20, 1))
    found = advantage_shape(np.hstack([x, -x]), "AB")
    assert found.skewed == "A"
    assert found.skewness_p == pytest.approx(stats.skewtest(x.ravel()).pvalue, rel=1e-9)


def test_an_erratic_algorithm_alone_is_no_outlying_benchmark_and_normal_ones_are_rarely_skewed():
    rng, n = np.random.default_rng(6), 1000
    for sds in (np.ones(5), np.array([5.0, 1, 1, 1, 1])):
        for b in (6, 20):
            found = [advantage_shape(rng.normal(size=(b, 5)) * sds, "ABCDE") for _ in range(n)]
            assert np.mean([shape.few_decide for shape in found]) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / n)
            assert np.mean([shape.is_skewed for shape in found]) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / n)


def test_too_few_or_equal_benchmarks_have_no_shape():
    assert advantage_shape(np.zeros((5, 3)), "ABC") is None
    assert advantage_shape(np.ones((2, 3)) * [1.0, 2.0, 3.0], "ABC") is None
    few = advantage_shape(np.random.default_rng(7).normal(size=(7, 3)), "ABC")
    assert few.skewed is None
    assert not few.is_skewed
