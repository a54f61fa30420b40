"""Influence of single levels: lme4's refits, closed forms, invariances, planted outliers, clean tables."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import study
from pytest import approx
from refusals import refuses
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.lmm.diagnostics.influence import influence
from lmemtest.lmm.means.emmeans import emmeans

CROSSED = "(1|benchmark) + (1|benchmark:algorithm)"


def make_table(benchmarks=8, seeds=3, algorithms="AB", seed=0, effect=0.0):
    sds, shift = {"benchmark:algorithm": 1.0, "benchmark": 1.0}, effect * np.arange(len(algorithms))
    return study.make_table(algorithms, benchmarks, seeds, sds=sds, shift=shift, rng=seed)


def flipping(found):
    frame = found.to_frame()
    return dict(zip(frame["level"], frame["n_changed"], strict=True))


# ---------------------------------------------------------------------- against R


def model_ids():
    return [
        "slopes by subject",
        "weights and ML",
        "benchmarks",
        "seeds across benchmarks",
        "a fixed benchmark",
        "interaction and covariate",
        "nested",
    ]


@pytest.fixture(scope="module", params=range(7), ids=model_ids())
def case(request, reference, reference_input):
    """A model of influence.json with the result of `influence`."""
    want = reference("influence")["models"][request.param]
    data = reference_input(want["data"])
    fit = lt.fit_lmm(want["formula"], data, reml=want["reml"], weights=want["weights"])
    found = influence(fit, want["group"], specs=want["specs"] or ())
    return want, fit, found


@pytest.mark.daily(3)
def test_refits_are_those_of_lme4(case):
    want, fit, found = case
    effects = found.effects.set_index(["level", "term"])["estimate"]
    for without in want["without"]:
        rows = found.to_frame().set_index("level").loc[without["level"]]
        assert rows["n_rows"] == without["n_rows"]
        assert rows["residual_ratio"] * fit.scale == approx(without["residual_variance"], rel=1e-5)
        fixed_group = any(want["group"] in row["name"] for row in want["whole"]["fixef"])
        if fixed_group and without["level"] == "b1":
            continue  # R takes another reference level, so its coefficients have another meaning
        for row in without["fixef"]:
            got = effects[without["level"], row["name"]]
            assert got == approx(row["estimate"], rel=1e-5, abs=1e-7 * row["se"]), (without["level"], row["name"])


def test_variance_components_are_those_of_lme4(case):
    want, _, found = case
    parts = found.components.set_index(["level", "group", "name1", "name2"])["variance"]
    for without in want["without"]:
        residual = without["residual_variance"]
        for row in without["varcorr"]:
            same = row["name1"] == row["name2"]
            # written as varcorr has it: a variance has an empty second name
            key = (without["level"], row["group"], row["name1"], "" if same else row["name2"])
            assert parts[key] == approx(row["vcov"], rel=1e-5, abs=1e-6 * residual), key


def test_comparisons_are_those_of_emmeans(case):
    want, _, found = case
    if not want["specs"]:
        pytest.skip("this model compares nothing")
    by_pair = found.comparisons.set_index(["level", "left", "right"])
    for without in want["without"]:
        for row in without["pairs"]:
            got = by_pair.loc[(without["level"], row["left"], row["right"])]
            assert got["estimate"] == approx(row["estimate"], rel=1e-5)
            assert got["se"] == approx(row["se"], rel=1e-5)
            assert got["df"] == approx(row["df"], rel=1e-4)  # lmerTest differentiates numerically
            assert got["p_value"] == approx(row["p_value"], rel=1e-3, abs=1e-6)


def test_distances_are_the_formulas_of_the_refits(case):
    want, _, found = case
    frame = found.to_frame().set_index("level")
    dfbetas = found.effects.groupby("level", sort=False)["dfbetas"].apply(np.array)
    for without in want["without"]:
        if without.get("cooks_distance") is None:
            continue  # a coefficient vanishes with the level
        assert frame.loc[without["level"], "cooks_distance"] == approx(without["cooks_distance"], rel=1e-5, abs=1e-8)
        assert frame.loc[without["level"], "covratio"] == approx(without["covratio"], rel=1e-4)
        np.testing.assert_allclose(dfbetas[without["level"]], without["dfbetas"], rtol=1e-4, atol=1e-6)


def test_distances_agree_with_influence_mermod(case):
    want, fit, found = case
    if "lme4" not in want:
        pytest.skip("lme4 cannot leave out levels of a fixed factor")
    frame = found.to_frame().set_index("level")
    n, p = len(frame), fit.rank
    dfbetas = found.effects.groupby("level", sort=False)["dfbetas"].apply(np.array)
    for level, distance, row in zip(
        want["lme4"]["levels"], want["lme4"]["cooks_distance"], want["lme4"]["dfbetas"], strict=True
    ):
        # from lme4's default optimiser, which stops at about 1e-4 of the optimum
        assert frame.loc[level, "cooks_distance"] * (n - p) / n == approx(distance, rel=5e-3, abs=1e-5)
        np.testing.assert_allclose(dfbetas[level], row, rtol=5e-3, atol=1e-3)


# ---------------------------------------------------------------------- closed forms and fresh fits


def test_chance_is_the_studentised_residual_of_the_differences_per_benchmark():
    table = make_table(benchmarks=9, seed=4)
    found = influence(lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", table), "benchmark")
    means = table.pivot_table(index="benchmark", columns="algorithm", values="loss")
    d = (means["A"] - means["B"]).to_numpy()
    n = len(d)
    for i, row in found.comparisons.iterrows():
        rest = np.delete(d, i)
        t = (d[i] - rest.mean()) / (rest.std(ddof=1) * np.sqrt(1 + 1 / (n - 1)))
        assert row["chance_p"] == approx(2 * stats.t.sf(abs(t), n - 2), rel=1e-6)
        assert row["estimate"] == approx(rest.mean(), rel=1e-9)
        assert row["shift"] == approx((rest.mean() - d.mean()) / (d.std(ddof=1) / np.sqrt(n)), rel=1e-6)


@pytest.mark.parametrize("dispersion", [None, "benchmark"])
def test_every_refit_is_a_fresh_fit_of_the_other_rows(dispersion):
    table = make_table(benchmarks=6, seeds=4, algorithms="ABC", seed=2).drop(index=[3, 17, 40])
    formula = f"loss ~ algorithm + {CROSSED} + (1|benchmark:seed)"
    found = influence(lt.fit_lmm(formula, table, dispersion=dispersion), "benchmark")
    for level in found.table["level"]:
        fresh = lt.fit_lmm(formula, table[table["benchmark"] != level], dispersion=dispersion)
        here = found.comparisons[found.comparisons["level"] == level].reset_index(drop=True)
        want = emmeans(fresh, "algorithm").pairs().to_frame()
        for column, tolerance in [("estimate", 1e-5), ("se", 1e-5), ("p_value", 1e-4)]:
            np.testing.assert_allclose(here[column], want[column], rtol=tolerance)
        parts = found.components[found.components["level"] == level].set_index(["group", "name1", "name2"])["variance"]
        for _, row in fresh.varcorr.iterrows():
            got = parts[row["group"], row["name1"], row["name2"]]
            assert got == approx(row["variance"], rel=1e-4, abs=1e-5)
    assert np.isnan(found.table["chance_p"]).all() == (dispersion is not None)


def test_a_column_that_the_model_does_not_use_can_be_left_out():
    table = make_table(benchmarks=5, seeds=4, seed=1)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    found = influence(fit, "seed")
    assert "seed" not in fit.cells.frame.columns
    assert list(found.table["level"]) == ["0", "1", "2", "3"]
    for level in range(4):
        fresh = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table[table["seed"] != level])
        row = found.comparisons.iloc[level]
        assert (row["level"], row["estimate"]) == (str(level), approx(-fresh.params.iloc[1], rel=1e-7))
        assert found.table["residual_ratio"].iloc[level] == approx(fresh.scale / fit.scale, rel=1e-6)


def test_one_run_at_a_time_by_an_interaction():
    table = make_table(benchmarks=4, seeds=3, seed=3)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|benchmark:seed)", table)
    found = influence(fit, "benchmark:seed")
    assert list(found.table["level"])[:4] == ["b00:0", "b00:1", "b00:2", "b01:0"]
    assert (found.table["n_rows"] == 2).all()
    rest = table[(table["benchmark"] != "b01") | (table["seed"] != 2)]
    fresh = lt.fit_lmm(fit.formula, rest)
    at = found.comparisons.set_index("level").loc["b01:2"]
    assert at["estimate"] == approx(-fresh.params.iloc[1], rel=1e-6)
    assert influence(fit, "algorithm:seed").table["level"].tolist() == [f"{a}:{s}" for a in "AB" for s in range(3)]


def test_polynomials_keep_their_basis_and_predict_the_same():
    table = make_table(benchmarks=7, seeds=5, seed=6).assign(x=lambda t: t["seed"] ** 1.5)
    formula = "loss ~ algorithm + poly(x, 2) + scale(x) : algorithm + (1|benchmark)"
    fit = lt.fit_lmm(formula, table)
    found = influence(fit, "seed")
    assert found.table["reason"].eq("").all()
    grid = pd.DataFrame({"x": [0.5, 3.0], "algorithm": ["A", "B"]})
    for level in range(5):
        fresh = lt.fit_lmm(formula, table[table["seed"] != level])
        here = found.effects[found.effects["level"] == str(level)].set_index("term")["estimate"]
        kept = [fit.design.x_names.index(term) for term in here.index]
        np.testing.assert_allclose(
            fit.design.rows(grid)[:, kept] @ here.to_numpy(), fresh.predict(grid, random=False), rtol=1e-6
        )


def test_kenward_roger_takes_the_reml_fit():
    table = make_table(benchmarks=6, seed=8)
    fit = lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", table, reml=False)
    found = influence(fit, "benchmark", ddf="kenward-roger")
    fresh = lt.fit_lmm(fit.formula, table[table["benchmark"] != "b02"])
    want = emmeans(fresh, "algorithm", ddf="kenward-roger").pairs().to_frame()
    got = found.comparisons.set_index("level").loc["b02"]
    assert (got["df"], got["p_value"]) == (approx(want["df"][0], rel=1e-5), approx(want["p_value"][0], rel=1e-5))
    assert found.notes[0] == "Kenward-Roger is defined for REML, so the fit by maximum likelihood was refitted by REML."


@pytest.mark.daily(2)
@pytest.mark.parametrize("adjust", ["tukey", "holm", "sidak", "bonferroni", "fdr", "none"])
def test_p_values_are_those_of_pairs(adjust):
    table = make_table(benchmarks=6, algorithms="ABCD", seed=5, effect=0.6)
    fit = lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", table)
    found = influence(fit, "benchmark", adjust=adjust)
    np.testing.assert_allclose(
        found.whole["p_value"], emmeans(fit, "algorithm").pairs(adjust=adjust).to_frame()["p_value"]
    )
    fresh = lt.fit_lmm(fit.formula, table[table["benchmark"] != "b03"])
    want = emmeans(fresh, "algorithm").pairs(adjust=adjust).to_frame()["p_value"]
    np.testing.assert_allclose(found.comparisons.query("level == 'b03'")["p_value"], want, rtol=1e-4)


# ---------------------------------------------------------------------- invariances


def test_names_of_levels_do_not_matter():
    table = make_table(benchmarks=6, seed=9)
    formula = f"loss ~ algorithm + {CROSSED}"
    before = influence(lt.fit_lmm(formula, table), "benchmark").table.set_index("level")
    renamed = {f"b{i:02d}": f"z{(7 * i) % 6}" for i in range(6)}
    other = table.assign(benchmark=table["benchmark"].map(renamed))
    after = influence(lt.fit_lmm(formula, other), "benchmark").table.set_index("level")
    for column in ("cooks_distance", "covratio", "largest_shift", "chance_p", "residual_ratio"):
        np.testing.assert_allclose(before[column], after.loc[before.index.map(renamed), column], rtol=1e-5)


def test_copies_of_a_benchmark_have_the_same_influence():
    table = make_table(benchmarks=5, seed=10)
    copy = table[table["benchmark"] == "b01"].assign(benchmark="copy")
    found = influence(lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", pd.concat([table, copy])), "benchmark")
    frame = found.table.set_index("level")
    for column in ("cooks_distance", "largest_shift", "chance_p", "residual_ratio"):
        assert frame.loc["copy", column] == approx(frame.loc["b01", column], rel=1e-6)


# ---------------------------------------------------------------------- findings


def planted(size, effect=0.0):
    table = make_table(benchmarks=12, seeds=3, algorithms="ABC", seed=11, effect=effect)
    hit = (table["benchmark"] == "b07") & (table["algorithm"] == "C")
    return as_runs(table.assign(loss=table["loss"] + size * hit))


def test_a_planted_benchmark_is_found():
    fit = lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", planted(12.0))
    found = influence(fit, "benchmark")
    frame = found.to_frame()
    assert frame.loc[frame["cooks_distance"].idxmax(), "level"] == "b07"
    assert list(frame.loc[frame["chance_p"] < 0.05, "level"]) == ["b07"]
    assert found.severity in ("note", "warning")
    assert "b07 stands out" in " ".join(found.sentences())


def test_a_decision_that_hangs_on_an_outlier_asks_for_action():
    table = planted(0.0, effect=1.5).to_frame()
    hit = (table["benchmark"] == "b07") & (table["algorithm"] == "C")
    fit = lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", as_runs(table.assign(loss=table["loss"] - 25.0 * hit)))
    found = influence(fit, "benchmark")
    assert found.severity == "warning"
    assert " ".join(found.sentences()).startswith("Without b07, ")
    assert flipping(found)["b07"] > 0
    assert "Check the runs of b07 (failed runs, units, mixed-up names)" in " ".join(found.sentences())


def on_clean_table(seed):
    table = make_table(benchmarks=9, seed=seed, effect=0.9)
    found = influence(lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", as_runs(table)), "benchmark")
    assert not (found.table["chance_p"] < 0.05).any()
    return found


def test_a_close_call_is_named_as_such_and_fine():
    found = on_clean_table(9)
    assert found.table["n_changed"].any()
    assert not found.table["n_clear"].any()
    moved = found.comparisons[found.comparisons["decision_changes"]]
    assert (np.maximum(moved["p_value"], found.whole["p_value"][0]) <= 0.1).all()
    assert found.severity == "fine"
    assert re.match(
        r"Without b0\d, 1 of 1 comparison changes its decision at 5 % \(A - B, p ", " ".join(found.sentences())
    )
    assert " ".join(found.sentences()).endswith(
        "No benchmark stands out more than chance explains and no p-value moves beyond 10 %, so these are close "
        "calls: report the p-values, not the decisions."
    )


def test_a_clear_change_deserves_a_look():
    found = on_clean_table(19)
    first = found.table.loc[found.table["n_clear"].argmax(), "level"]
    p = found.comparisons.set_index("level").loc[first, "p_value"]
    assert min(p, found.whole["p_value"][0]) < 0.05
    assert max(p, found.whole["p_value"][0]) > 0.1
    assert found.severity == "note"
    assert "call these comparisons undecided, or add more levels." in " ".join(found.sentences())


def test_a_benchmark_that_holds_the_noise_is_named():
    table = make_table(benchmarks=8, seeds=6, seed=13)
    rng = np.random.default_rng(1)
    loud = table["benchmark"] == "b05"
    table["loss"] += 8 * loud * rng.normal(size=len(table))
    found = influence(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table), "benchmark")
    assert found.table.set_index("level").loc["b05", "residual_ratio"] < 0.5
    assert found.severity in ("note", "warning")
    assert re.search(
        r"Without b05 the residual variance falls by \d\d %: most of the noise is there", " ".join(found.sentences())
    )


def test_a_model_without_the_differences_per_benchmark_is_told_of_them():
    runs = planted(12.0)
    hint = "The model takes differences to be the same for every benchmark: try it with (1 | benchmark:algorithm)."
    assert hint in influence(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", runs), "benchmark").sentences()
    for term in (CROSSED, "(1 + algorithm|benchmark)"):
        found = influence(lt.fit_lmm(f"loss ~ algorithm + {term}", runs), "benchmark")
        assert "The model takes differences" not in " ".join(found.sentences())


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 300])
def test_clean_tables_are_fine_and_rarely_ask_for_action(n):
    severities, outlying = [], 0
    for seed in range(n):
        fit = lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", make_table(benchmarks=8, seeds=2, seed=1000 + seed))
        found = influence(fit, "benchmark")
        severities.append(found.severity)
        outlying += int((found.table["chance_p"] < 0.05).any())
    assert severities.count("fine") > 0.6 * n
    assert outlying <= stats.binom.ppf(0.9999, n, 0.05)
    assert severities.count("warning") <= stats.binom.ppf(0.9999, n, 0.05)


def test_a_covariate_alone_is_looked_at_as_a_coefficient(reference_input):
    fit = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", reference_input("sleepstudy"))
    found = influence(fit, "Subject")
    assert (found.specs, found.adjust) == ((), "none")
    assert found.whole["left"].tolist() == ["Days"]
    assert found.whole["p_value"][0] == approx(fit.to_frame()["p_value"][1])
    assert found.severity == "fine"
    assert " ".join(found.sentences()).startswith(
        "The decision does not depend on a single Subject: leaving out any one of the 18 levels does not change it at "
        "5 %; the largest shift is "
    )


def test_a_model_of_the_mean_alone_tests_nothing(reference_input):
    found = influence(lt.fit_lmm("Yield ~ 1 + (1|Batch)", reference_input("Dyestuff")), "Batch")
    assert len(found.comparisons) == 0
    assert " ".join(found.sentences()) == "Leaving out any one of the 6 levels of Batch changes nothing that is tested."


# ---------------------------------------------------------------------- what cannot be left out


def test_a_fixed_factor_may_lose_a_level():
    table = make_table(benchmarks=5, seeds=4, algorithms="ABC", seed=3)
    formula = "loss ~ algorithm * benchmark + (1|benchmark:seed)"
    found = influence(lt.fit_lmm(formula, table), "benchmark")
    fresh = lt.fit_lmm(formula, table[table["benchmark"] != "b00"])  # the reference level
    want = emmeans(fresh, "algorithm").pairs().to_frame()
    here = found.comparisons.query("level == 'b00'")
    np.testing.assert_allclose(here["estimate"], want["estimate"], rtol=1e-7)
    np.testing.assert_allclose(here["p_value"], want["p_value"], rtol=1e-4, atol=1e-9)
    frame = found.table.set_index("level")
    assert frame.loc["b00", "reason"].startswith("the other levels do not identify Intercept, ")
    assert frame.loc["b03", "reason"] == (
        "the other levels do not identify benchmark[T.b03], algorithm[T.B]:benchmark[T.b03], "
        "algorithm[T.C]:benchmark[T.b03]"
    )
    effects = found.effects.set_index(["level", "term"])["estimate"]
    assert np.isnan(effects["b03", "benchmark[T.b03]"])
    assert effects["b03", "benchmark[T.b02]"] == approx(
        lt.fit_lmm(formula, table[table["benchmark"] != "b03"]).params["benchmark[T.b02]"], rel=1e-6
    )


def test_what_is_compared_cannot_be_left_out():
    table = make_table(benchmarks=6, algorithms="ABC", seed=4)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    message = (
        "group='algorithm' is what is compared, and without one of its levels there is no comparison with it whose "
        "decision could change. Use group='benchmark'; to see what a level does to the comparisons of the others, fit "
        "the model without its rows. specs=() looks at the coefficients instead."
    )
    refuses(ArgumentError, f"^{re.escape(message)}$", influence, fit, "algorithm")
    assert influence(fit, "algorithm", specs=()).specs == ()


def test_comparisons_without_a_test_are_not_called_stable():
    table = make_table(benchmarks=5, seeds=4, algorithms="AB", seed=3).assign(
        x=lambda t: np.where(t["seed"] > 1, "u", "v")
    )
    table = table[(table["algorithm"] == "A") | (table["x"] == "u")]
    fit = lt.fit_lmm("loss ~ algorithm * x + (1|benchmark)", table)
    found = influence(fit, "benchmark", specs="algorithm")
    assert found.severity == "note"
    assert " ".join(found.sentences()) == (
        "None of the 1 comparisons has a test in the whole table, because the data do not identify it, so there is no "
        "decision that a single benchmark could change. Compare what the design has: within levels of another factor, "
        "or without the empty cells."
    )


def test_the_result_names_the_residual_variances_of_its_model():
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", make_table(), dispersion="benchmark")
    assert "residual variance by benchmark; refitted without" in influence(fit, "seed").summary()


def test_leaving_out_an_algorithm_loses_its_effects():
    table = make_table(benchmarks=6, algorithms="ABC", seed=4)
    fit = lt.fit_lmm("loss ~ algorithm + (0 + algorithm|benchmark)", table)
    found = influence(fit, "algorithm", specs=())
    fresh = lt.fit_lmm("loss ~ algorithm + (0 + algorithm|benchmark)", table[table["algorithm"] != "C"])
    effects = found.effects.query("level == 'C'").set_index("term")["estimate"]
    assert effects["algorithm[T.B]"] == approx(fresh.params["algorithm[T.B]"], rel=1e-6)
    assert np.isnan(effects["algorithm[T.C]"])
    assert found.table["reason"].iloc[2].endswith("algorithm[T.C], (0 + algorithm | benchmark)")
    parts = found.components.query("level == 'C' and group == 'benchmark'")
    assert parts["variance"].isna().all()


def test_a_level_that_the_model_needs_is_a_row_with_the_reason():
    table = make_table(benchmarks=4, seed=5)
    table["lab"] = table["benchmark"].map({"b00": "x", "b01": "y", "b02": "z", "b03": "z"})
    table["task"] = table["benchmark"].map({"b00": "s", "b01": "s", "b02": "t", "b03": "t"})
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|task)", table)
    found = influence(fit, "lab")
    frame = found.table.set_index("level")
    assert frame["cooks_distance"].isna().tolist() == [False, False, True]
    assert frame.loc["z", "reason"].startswith("the random effect (1 | task) has one level")
    assert found.severity != "fine"
    assert " ".join(found.sentences()).endswith("it rests on this level.")
    assert np.isnan(found.comparisons.query("level == 'z'")["p_value"]).all()


def test_two_levels_are_too_few():
    table = make_table(benchmarks=2, seeds=4)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    message = (
        "group='benchmark' has 2 levels in the data; leaving one out tells something from 3 levels on. Choose a finer "
        "group, such as the seed, or add more levels of 'benchmark'."
    )
    refuses(DataError, f"^{re.escape(message)}$", influence, fit, "benchmark")


@pytest.fixture(scope="module")
def fit():
    return lt.fit_lmm(f"loss ~ algorithm + {CROSSED}", make_table())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"group": "benchmrk"}, UnknownColumnError,
         "group names the column 'benchmrk', which is not in the data. Columns: benchmark, algorithm, seed, loss. "
         "Did you mean 'benchmark'?"),
        ({"group": 3}, ArgumentError, "group must be a column, or columns joined by ':', got int."),
        ({"group": "loss"}, ArgumentError,
         "group='loss' is the score itself. Name what the scores belong to, such as the benchmark or the seed."),
        ({"group": "seed", "adjust": "mvt"}, ArgumentError,
         "adjust must be 'tukey' or 'holm' or 'sidak' or 'bonferroni' or 'fdr' or 'none', got 'mvt'."),
        ({"group": "seed", "specs": "prior"}, UnknownColumnError,
         "specs names 'prior', not in the fixed part of the model. Factors: algorithm."),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(fit, arguments, error, message):
    refuses(error, f"^{re.escape(message)}$", influence, fit, **arguments)


def test_several_factors_need_a_choice():
    table = make_table().assign(prior=lambda t: np.where(t["seed"] > 0, "good", "bad"))
    fit = lt.fit_lmm("loss ~ algorithm + prior + (1|benchmark)", table)
    message = (
        "specs must say what is compared, because the fixed part has several factors: algorithm, prior. Write for "
        "instance specs='algorithm'."
    )
    refuses(ArgumentError, f"^{re.escape(message)}$", influence, fit, "benchmark")
    assert influence(fit, "benchmark", specs="prior").specs == ("prior",)
    runs = as_runs(table, metafeatures=())
    by_role = influence(lt.fit_lmm("loss ~ algorithm + prior + (1|benchmark)", runs), "benchmark")
    assert by_role.specs == ("algorithm",)


def test_a_fit_without_its_data_can_lose_what_its_cells_know(fit):
    light = dataclasses.replace(fit, data=None)
    assert influence(light, "benchmark").table["n_rows"].sum() == fit.nobs
    refuses(UnknownColumnError, "group names the column 'seed', which is not in the data", influence, light, "seed")


def test_the_result_shows_itself(fit):
    found = influence(fit, "benchmark")
    text = found.summary()
    assert text.startswith("Influence of each benchmark\n")
    assert " ".join(found.sentences()) in text
    assert "refitted without each level of benchmark. Satterthwaite degrees of freedom" in text
    assert found.to_frame() is not found.table


def test_priorband_single_benchmarks_and_seeds(data_dir):
    roles = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed", "budget": "used_fidelity"}
    runs = lt.read_runs(data_dir / "priorband.parquet", score="value", direction="minimize", **roles)
    fit = lt.fit_lmm("value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)", runs)
    by_benchmark, by_seed = influence(fit, "benchmark"), influence(fit, "seed")
    assert (by_benchmark.table["n_rows"] == 7200).all()
    assert (len(by_seed.table), int(by_seed.table["n_rows"].iloc[0])) == (50, 1728)
    assert set(by_benchmark.table.nlargest(3, "cooks_distance")["level"]) == {"JAHS-C10", "JAHS-CH", "JAHS-FM"}
    assert by_seed.severity == "fine"
