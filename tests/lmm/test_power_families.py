"""What planning makes of families of benchmarks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats
from study import as_runs, make_scores, table_of_scores

import lmemtest as lt
from lmemtest.bench.power.draw import StudyDesign, compare, compare_by_engine, study_draw
from lmemtest.bench.power.variance_components import VarianceComponents
from lmemtest.bench.variation.run_design import run_design
from lmemtest.errors import ArgumentError

NESTED = "loss ~ tool + (1 | space) + (1 | space:tool) + (1 | task) + (1 | task:tool)"


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    """Six spaces of three tasks, four tools, three seeds."""
    counts = {"space": 6, "place": 3, "tool": 4, "seed": 3}
    sds = {"space:tool": 1.0, "space:place:tool": 0.6, "space": 1.0, "space:place": 1.0}
    loss = make_scores(np.random.default_rng(3), counts, sds, noise=0.5)
    names = {"space": [f"s{f}" for f in range(6)], "tool": [f"m{a}" for a in range(4)]}
    task = np.array([[f"t{f}{b}" for b in range(3)] for f in range(6)])[:, :, None, None]
    return as_runs(table_of_scores(loss, " ".join(counts), "loss", task=task, **names), ignore=["place"])


@pytest.fixture(scope="module")
def fit(runs: lt.Runs) -> lt.LmmFit:
    return lt.fit_lmm(NESTED, runs)


def test_variances_of_families_are_components_of_their_own(fit: lt.LmmFit) -> None:
    found, sd = VarianceComponents.of(fit), fit.varcorr.set_index("group")["sd"]
    assert (found.family_sd, found.family_interaction_sd) == (approx(sd["space"]), approx(sd["space:tool"]))
    assert (found.benchmark_sd, found.interaction_sd) == (approx(sd["task"]), approx(sd["task:tool"]))
    # of benchmarks of families of their own
    assert found.advantage_sd == approx(np.hypot(sd["space:tool"], sd["task:tool"]))
    assert found.difficulty_sd == approx(np.hypot(sd["space"], sd["task"]))
    assert (found.pilot.n_benchmarks, found.pilot.n_families) == (18, 6)
    said = lt.power(fit, effect=1.0, n_benchmarks=12, n_seeds=2, method="closed_form").summary()
    assert "estimates from 18 benchmarks of 6 families" in said
    assert "Each benchmark of the planned study is one of a family of its own" in said


def test_a_study_as_large_as_the_pilot_has_its_standard_error_and_degrees_of_freedom(fit: lt.LmmFit) -> None:
    """Balanced, so the fit's own error is exact; power by the noncentral t distribution."""
    pair = fit.emmeans("tool", vcov="model").pairs().to_frame().iloc[0]
    design = StudyDesign(n_algorithms=4, n_families=6, n_benchmarks=3, n_seeds=3)
    assert design.se(VarianceComponents.of(fit)) == approx(pair["se"], rel=1e-6)
    assert design.df == approx(pair["df"], rel=1e-3)
    found = lt.power(fit, effect=2.0, n_families=6, n_benchmarks=3, n_seeds=3, adjust="none", method="closed_form")
    critical, shift = stats.t.isf(0.025, 15), 2.0 / pair["se"]
    want = stats.nct.sf(critical, 15, shift) + stats.nct.cdf(-critical, 15, shift)
    assert found.table["power"].item() == approx(want, rel=1e-5)
    smallest = found.detectable().to_frame()["effect"].item() / pair["se"]
    assert stats.nct.sf(critical, 15, smallest) == approx(0.8, abs=1e-5)
    needed = found.needed().to_frame().iloc[0]
    again = [lt.power(fit, effect=2.0, n_families=int(needed["n_families"]) - less, n_benchmarks=3, n_seeds=3,
                      adjust="none", method="closed_form").table["power"].item() for less in (0, 1)]  # fmt: skip
    assert again[0] >= 0.8 > again[1]
    assert again[0] == approx(needed["exact"])


def test_what_a_pilot_leaves_open_at_its_own_size_is_one_chi_squared(fit: lt.LmmFit) -> None:
    found = VarianceComponents.of(fit)
    ratio = np.array(found.limits(3, 0.05, 3)) / found.of_mean(3, 3)
    assert ratio == approx(15 / stats.chi2.ppf([0.975, 0.025], 15))
    # and with a benchmark of each it rests on both mean squares, as simulated
    rng, k, f, b, m = np.random.default_rng(0), 4, 6, 3, 3
    top = found.of_mean(m, b) * rng.chisquare((k - 1) * (f - 1), 20000) / (k - 1) / (f - 1)
    own = (found.interaction_sd**2 + found.run_sd**2 / m) * rng.chisquare((k - 1) * f * (b - 1), 20000)
    v = top + own / (k - 1) / f / (b - 1) * (1 - 1 / b)
    low, high = found.limits(m, 0.05, 1)
    df = 2 * v.mean() ** 2 / v.var()
    assert np.array([low, high]) == approx(df * found.of_mean(m) / stats.chi2.ppf([0.975, 0.025], df), rel=0.03)


TWO_LEVELS = VarianceComponents(
    interaction_sd=0.5, residual_sd=1.0, seed_sd=0.3, family_interaction_sd=0.4, family_sd=1.0, benchmark_sd=1.0
)


@pytest.mark.parametrize(("k", "f", "b", "n", "ddf"), [(2, 5, 3, 2, "kenward-roger"), (3, 4, 2, 1, "satterthwaite")])
def test_pooling_mean_squares_of_families_is_what_the_engine_does(k: int, f: int, b: int, n: int, ddf: str) -> None:
    rng, seen = np.random.default_rng(8), set()
    for own, of_family in ((0.0, 0.0), (0.5, 1.0), (0.0, 0.3)):
        plan = replace(TWO_LEVELS, interaction_sd=own, family_interaction_sd=of_family)
        draw = study_draw(StudyDesign(n_algorithms=k, n_benchmarks=b, n_seeds=n, n_families=f), plan, effect=0.5)
        for _ in range(2):
            y = draw(rng)
            estimate, se, df, no_interaction = compare(y, test="mixed", ddf=ddf)
            by_engine = compare_by_engine(y, ddf=ddf)
            assert (estimate, se) == (approx(by_engine[0], rel=1e-9), approx(by_engine[1], rel=1e-5))
            assert df == approx(by_engine[2], rel=5e-3)
            assert no_interaction == by_engine[3]
            seen.add(no_interaction)
    assert seen == {True, False}


def test_draws_of_families_have_the_variances_that_were_asked_for() -> None:
    design = StudyDesign(n_algorithms=3, n_benchmarks=4, n_seeds=2, n_families=500)
    y = study_draw(design, TWO_LEVELS, effect=10.0)(np.random.default_rng(0))
    difference = (y[:, :, 0] - y[:, :, 1]).mean(axis=(1, 2))
    assert difference.var(ddof=1) == approx(2 * (0.16 + (0.25 + 0.5) / 4), rel=0.2)
    within = (y[:, :, 0] - y[:, :, 1]).mean(axis=2).var(axis=1, ddof=1).mean()
    assert within == approx(2 * (0.25 + 0.5), rel=0.1)
    assert difference.mean() == approx(10.0, abs=4 * design.se(TWO_LEVELS))


def test_families_of_one_benchmark_are_benchmarks() -> None:
    given: dict[str, Any] = {"effect": 1.0, "n_seeds": 2, "n_draws": 30, "rng": 1}
    one = lt.power(TWO_LEVELS, n_families=12, n_benchmarks=1, **given).to_frame().drop(columns="n_families")
    plain = lt.power(TWO_LEVELS, n_benchmarks=12, **given).to_frame()
    pd.testing.assert_frame_equal(one.drop(columns="n_benchmarks"), plain.drop(columns="n_benchmarks"))


def test_a_planned_study_of_families_says_so() -> None:
    found = lt.power(TWO_LEVELS, effect=0.5, n_families=[8, 16], n_benchmarks=[1, 4], n_seeds=2, method="closed_form")
    table = found.to_frame()
    assert table[["n_benchmarks", "n_families"]].to_numpy().tolist() == [[1, 8], [1, 16], [4, 8], [4, 16]]
    needed = found.needed().to_frame().set_index("n_benchmarks")["n_families"]
    assert found.sentences()[0] == (
        f"To find a difference of 0.5 with 80 % power takes {needed[1]} families of 1 benchmark with 2 seeds or "
        f"{needed[4]} families of 4 benchmarks with 2 seeds."
    )
    assert "a claim for new families like these" in found.summary()
    fewest = found.needed().notes[1]
    assert fewest.startswith("No number of benchmarks and seeds makes fewer than")
    with pytest.raises(ArgumentError, match=r"lacks 'family_interaction_sd'.* of 5 families or more"):
        lt.power({"interaction_sd": 1, "residual_sd": 1}, effect=1, n_families=5, n_benchmarks=2, n_seeds=1)


@pytest.mark.level(2)
def test_a_figure_has_a_line_for_what_each_family_has() -> None:
    found = lt.power(TWO_LEVELS, effect=0.5, n_families=[8, 16], n_benchmarks=[1, 4], n_seeds=2, method="closed_form")
    x = found.plot().child_axes[0]
    assert [text.get_text() for text in x.texts][1:] == ["1 benchmark x 2 seeds", "4 benchmarks x 2 seeds"]


def test_plans_of_families_start_with_them(fit: lt.LmmFit) -> None:
    costs = {"training": 1.0, "benchmark": 10.0, "family": 60.0}
    found = lt.plan(fit, effect=1.5, costs=costs)
    assert found.names == ("family", "benchmark", "seed")
    assert found.title == "Plan: the difference of two of 4 algorithms over families of benchmarks"
    best = found.best
    power = lt.power(fit, effect=1.5, n_families=best["family"], n_benchmarks=best["benchmark"], n_seeds=best["seed"],
                     method="closed_form")  # fmt: skip
    assert power.table["power"].item() >= 0.8
    components = VarianceComponents.of(fit)
    design = StudyDesign(
        n_algorithms=4, n_families=best["family"], n_benchmarks=best["benchmark"], n_seeds=best["seed"]
    )
    row = found.to_frame().iloc[0]
    assert row["standard_error"] == approx(design.se(components))
    low, high = components.limits(best["seed"], 0.05, best["benchmark"])
    assert (row["ci_low"], row["ci_high"]) == approx(tuple(np.sqrt(2 * np.array([low, high]) / best["family"])))
    fewer = lt.plan(fit, budget=row["cost"], costs=costs, at_most={"family": best["family"] - 1})
    assert fewer.standard_error(fewer.best) > row["standard_error"]
    with pytest.raises(ArgumentError, match="stages lacks 'family'"):
        lt.plan(fit, budget=1000, stages=("benchmark", "seed"))


def test_a_model_without_families_plans_for_new_benchmarks_of_these(runs: lt.Runs) -> None:
    found = VarianceComponents.of(lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool)", runs))
    assert found.pilot.n_families is None
    assert "new tasks of these spaces and says nothing about new spaces" in found.notes[0]


def test_designs_without_families_say_of_which_families(runs: lt.Runs) -> None:
    plain = lt.Runs(runs.frame, **{**runs.roles(), "family": None})
    assert any("of these spaces, not to new spaces" in note for note in run_design(runs, task="")[0].notes)
    assert not any("Families are not in it" in note for note in run_design(plain, task="")[0].notes)
