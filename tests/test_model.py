"""Fits against lme4, from tests/reference/fits.R."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pytest import approx
from refusals import refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, ConvergenceWarning, DataError, DesignError, UnknownColumnError


@pytest.mark.parametrize("method", ["ML", "REML"])
@pytest.mark.parametrize("i", range(41))
def test_a_fit_agrees_with_lme4(reference, reference_input, i, method):
    """Its likelihood is the best that lme4 finds; so are its estimates, their errors, the variances and the modes."""
    case = reference("fits")["fits"][i]
    table, want = reference_input(case["data"]), case[method]
    fit = lt.fit_lmm(case["formula"], table, reml=method == "REML", weights=case["weights"])
    assert fit.llf == approx(want["llf"], abs=1e-6)
    assert fit.converged
    assert (fit.nobs, fit.n_params) == (want["nobs"], want["n_params"])
    assert (fit.aic, fit.bic) == approx((want["aic"], want["bic"]), rel=1e-9)
    for row in want["fixef"]:
        if row["estimate"] is None:
            assert np.isnan(fit.params[row["name"]])
        else:
            assert fit.params[row["name"]] == approx(row["estimate"], rel=1e-5, abs=1e-5 * row["se"])
            assert fit.bse[row["name"]] == approx(row["se"], rel=1e-5)
    assert np.sqrt(fit.scale) == approx(want["sigma"], rel=1e-5)
    if want["flat_directions"]:
        return  # the terms are not identified apart from each other: their sum is what was compared
    for row in want["varcorr"]:
        S, a, b = _covariance(fit, row)
        size = np.sqrt(S[a, a] * S[b, b])
        assert S[a, b] == approx(row["vcov"], rel=1e-5, abs=1e-5 * size + 1e-9 * fit.scale)
    for group in want.get("ranef") or []:
        ours = fit.conditional_modes(_same_group(fit, group["group"]))
        rows = [_same_level(ours.index, level) for level in group["levels"]]
        theirs = np.array(group["values"], dtype=float)
        assert ours.loc[rows, group["names"]].to_numpy() == approx(theirs, rel=1e-4, abs=1e-5 * np.sqrt(fit.scale))


def _covariance(fit, row):
    for term, S in zip(fit.design.random, fit.covariances, strict=True):
        if set(term.group.split(":")) == set(row["group"].split(":")) and {row["name1"], row["name2"]} <= set(
            term.names
        ):
            return S, term.names.index(row["name1"]), term.names.index(row["name2"])
    raise AssertionError(row)


def _same_group(fit, group):
    return next(t.group for t in fit.design.random if set(t.group.split(":")) == set(group.split(":")))


def _same_level(index, level):
    return next(x for x in (level, ":".join(reversed(level.split(":")))) if x in index)


@pytest.fixture
def crossed(reference_input):
    return reference_input("bench_unbalanced")


FORMULA = "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"


def test_rows_in_another_order_give_the_same_fit(crossed):
    first = lt.fit_lmm(FORMULA, crossed)
    second = lt.fit_lmm(FORMULA, crossed.sample(frac=1, random_state=3))
    assert first.llf == second.llf
    assert first.params.to_dict() == second.params.to_dict()


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e7), (-3.0, 50.0)])
def test_another_unit_of_the_score_changes_only_the_unit(crossed, scale, shift):
    fit = lt.fit_lmm(FORMULA, crossed)
    other = lt.fit_lmm(FORMULA, crossed.assign(y=scale * crossed["y"] + shift))
    n = fit.nobs - fit.rank  # REML
    assert other.llf == approx(fit.llf - n * np.log(abs(scale)), abs=1e-5)
    assert other.bse.to_numpy() == approx(abs(scale) * fit.bse.to_numpy(), rel=1e-5)
    assert other.params.to_numpy()[1:] == approx(scale * fit.params.to_numpy()[1:], rel=1e-5)


def test_the_coding_of_the_factor_does_not_change_the_ml_fit(crossed):
    treatment = lt.fit_lmm(FORMULA, crossed, reml=False)
    zero_sum = lt.fit_lmm(FORMULA.replace("~ algorithm", "~ C(algorithm, contr.sum)"), crossed, reml=False)
    assert zero_sum.llf == approx(treatment.llf, abs=1e-9)
    assert zero_sum.predict() == approx(treatment.predict(), rel=1e-6)


def test_a_shifted_slope_column_gives_the_same_fit(reference_input):
    table = reference_input("sleepstudy")
    near = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", table)
    far = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", table.assign(Days=table["Days"] + 2000))
    assert far.llf == approx(near.llf, abs=1e-6)
    assert far.bse["Days"] == approx(near.bse["Days"], rel=1e-5)


def test_compressed_and_repeated_rows_are_one_model(crossed):
    doubled = crossed.loc[crossed.index.repeat(2)].reset_index(drop=True)
    doubled["y"] += np.tile([0.1, -0.1], len(crossed))
    fit = lt.fit_lmm(FORMULA, doubled)
    rows = lt.fit_lmm(FORMULA, doubled.assign(row=np.arange(len(doubled)) * 1.0), restarts=3)
    assert len(fit.cells.n) == len(crossed)
    assert fit.llf == approx(rows.llf, abs=1e-8)
    # a covariate that makes every row its own cell and explains nothing leaves the other estimates alone
    own = lt.fit_lmm(FORMULA + " + I(0 * row)", doubled.assign(row=np.arange(len(doubled)) * 1.0))
    assert len(own.cells.n) == len(doubled)
    assert own.llf == approx(fit.llf, abs=1e-8)


def test_a_refit_leaves_the_first_fit_alone(crossed):
    reml = lt.fit_lmm(FORMULA, crossed)
    before = (reml.llf, reml.params.to_dict(), reml.reml)
    ml = reml.refit(reml=False)
    assert (reml.llf, reml.params.to_dict(), reml.reml) == before
    assert ml.llf == approx(lt.fit_lmm(FORMULA, crossed, reml=False).llf, abs=1e-9)


def test_simulated_cells_come_from_the_fitted_model(reference_input):
    fit = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", reference_input("sleepstudy"))
    rng = np.random.default_rng(11)
    refits = [fit.refit(cells=fit.simulate(rng=rng)) for _ in range(200)]
    slopes = np.array([r.params["Days"] for r in refits])
    assert slopes.mean() == approx(fit.params["Days"], abs=4 * fit.bse["Days"] / np.sqrt(200))
    assert slopes.std() == approx(fit.bse["Days"], rel=0.2)
    assert np.mean([r.scale for r in refits]) == approx(fit.scale, rel=0.05)
    again = fit.simulate(rng=5)
    assert np.array_equal(again.mean, fit.simulate(rng=5).mean)


def test_predictions_for_known_and_new_groups(reference_input):
    table = reference_input("sleepstudy")
    fit = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", table)
    new = table.head(2).assign(Subject=["308", "stranger"])
    known, stranger = fit.predict(new)
    modes = fit.conditional_modes("Subject").loc["308"]
    assert known == approx(fit.params["Intercept"] + modes["Intercept"] + 0 * modes["Days"], rel=1e-9)
    assert stranger == approx(fit.params["Intercept"] + fit.params["Days"], rel=1e-9)
    assert fit.residuals().mean() == approx(0, abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"weights": "w"}, {"dispersion": "b"}])
@pytest.mark.parametrize("response", ["y", "log(y)"])
def test_fitted_values_and_residuals_are_in_the_order_of_the_rows(options, response):
    """Of rows in any order, several to a cell: the cells are sorted, and fewer."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"a": rng.choice(list("pqr"), 60), "b": rng.integers(0, 5, 60), "w": rng.choice([1.0, 2.0], 60)}
    )
    table["y"] = np.exp(rng.normal(size=60) + table["b"] / 3.0)
    table.index = rng.permutation(60) + 100
    fit = lt.fit_lmm(f"{response} ~ a + (1 | b)", table, **options)
    score = table["y"] if response == "y" else np.log(table["y"])
    assert len(fit.cells.n) < len(table)
    for random in (True, False):
        np.testing.assert_allclose(fit.predict(random=random), fit.predict(table, random=random), rtol=1e-12)
    pd.testing.assert_series_equal(fit.fittedvalues, pd.Series(fit.predict(table), index=table.index, name="fitted"))
    pd.testing.assert_series_equal(fit.resid, (score - fit.predict(table)).rename("residual"))
    assert fit.residuals() == approx(fit.resid.to_numpy(), rel=1e-15)
    pd.testing.assert_frame_equal(fit.prediction_intervals(), fit.prediction_intervals(table))
    by_cell = np.average(fit.cells.mean - fit.cell_predictions(), weights=fit.cells.n)
    assert fit.resid.mean() == approx(by_cell, abs=1e-12)
    assert np.average(fit.cell_residuals(), weights=fit.cells.n) == approx(by_cell, abs=1e-12)


def test_rows_of_any_table_are_known_or_refused(crossed):
    fit = lt.fit_lmm(FORMULA, crossed)
    want = fit.resid.to_numpy()
    roles = {"score": "y", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    for data in (pl.from_pandas(crossed), dict(crossed), lt.Runs(crossed, **roles)):
        assert lt.fit_lmm(FORMULA, data).resid.to_numpy() == approx(want, rel=1e-10)
    assert isinstance(lt.fit_lmm(FORMULA, crossed).fittedvalues, pd.Series)
    lazy = lt.fit_lmm(FORMULA, pl.from_pandas(crossed).lazy())
    for ask in (lazy.predict, lazy.residuals, lambda: lazy.fittedvalues, lazy.prediction_intervals):
        refuses(ArgumentError, r"^The table of this fit is a query, and its rows have no order", ask)
    assert lazy.cell_residuals() == approx(fit.cell_residuals())
    drawn = fit.refit(cells=fit.simulate(rng=1))
    assert drawn.predict() == approx(drawn.predict(crossed))
    refuses(ArgumentError, r"^The scores of this fit are not those of its table: they were simulated", drawn.residuals)
    own = crossed.copy()
    kept = lt.fit_lmm(FORMULA, own)
    own["y"], own["algorithm"] = 0.0, "A"
    assert kept.resid.to_numpy() == approx(want, rel=1e-12)
    for changed in (own, own.drop(columns="algorithm"), own.head(5)):
        with pytest.raises(ArgumentError, match=r"^The table of this fit is not the one that its cells come from"):
            dataclasses.replace(fit, data=changed).predict()


def test_the_certificate_says_what_is_known(reference_input):
    singular = lt.fit_lmm("Yield ~ 1 + (1|Batch)", reference_input("Dyestuff2"))
    assert singular.is_singular
    assert "Singular fit: (1 | Batch)" in singular.notes[0]
    checks = singular.certificate().set_index("check")["value"]
    assert checks["boundary_slope"] > 0
    assert checks["starts_agreeing"] == checks["starts"] == 3
    assert checks["smallest_curvature"] > 0


@pytest.mark.parametrize("reml", [True, False])
def test_a_random_effect_of_groups_with_fixed_means_is_named(reference_input, reml):
    """Its criterion is flat (REML) or falls everywhere; what does not depend on its variance is as without it."""
    table = reference_input("Penicillin")
    plain = lt.fit_lmm("diameter ~ sample + plate", table, reml=reml)
    fit = lt.fit_lmm("diameter ~ sample + plate + (1|plate)", table, reml=reml)
    assert len(fit.notes) == 1
    assert fit.notes[0].startswith("The random effect (1 | plate) cannot be estimated beside the fixed terms")
    assert ("is arbitrary" in fit.notes[0]) == reml
    assert fit.llf == approx(plain.llf, abs=1e-8)
    within, alone = (f.emmeans("sample").pairs().to_frame() for f in (fit, plain))
    for column in ("estimate", "se", "df"):
        assert within[column].to_numpy() == approx(alone[column].to_numpy(), rel=1e-6, abs=1e-10)


def test_a_slope_that_the_fixed_effects_give_to_each_group_is_named(reference_input):
    table = reference_input("sleepstudy")
    fit = lt.fit_lmm("Reaction ~ Days * Subject + (1 + Days|Subject)", table)
    assert "Intercept, Days in (1 + Days | Subject) cannot be estimated" in fit.notes[0]
    fit = lt.fit_lmm("Reaction ~ Days + Subject + (0 + Days|Subject)", table)
    assert fit.notes == ()


def test_ranks_in_the_same_order_everywhere_are_told_as_what_they_are() -> None:
    table = pd.DataFrame({"tool": list("ABC") * 5, "task": np.repeat(list("vwxyz"), 3), "loss": np.arange(15.0)})
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task").normalize("rank")
    refuses(DesignError, r"'tool' have the same ranks .* order never changes", lt.analyze, runs)
    advised = lt.rank(runs, test="wilcoxon").pairs["p_value"].to_numpy()
    np.testing.assert_allclose(advised, 3 * 2 / 2**5, rtol=1e-12)  # all signs alike, one of three pairs


def test_answers_that_no_seed_changes_are_said_to_be_explained() -> None:
    """The finest random effect holds every row: the search ends nowhere, and a next step is named."""
    solved = np.random.default_rng(0).random((3, 8)) > 0.4
    rows = [(f"a{i}", f"b{j}", float(solved[i, j])) for i in range(3) for j in range(8) for _ in range(3)]
    table = pd.DataFrame(rows, columns=["a", "b", "y"])
    with pytest.raises(DesignError, match=r"explains the score exactly.*leave out the finest random effect"):
        lt.fit_lmm("y ~ a + (1 | b) + (1 | b:a)", table)


@pytest.mark.parametrize(
    ("formula", "change", "error", "text"),
    [
        ("y ~ a + (1|g)", {"g": 1}, DesignError, r"\(1 \| g\) has one level"),
        ("y ~ a + (1|row)", {}, DesignError, "30 levels x 1 effects = 30 columns for 30 rows"),
        ("y ~ a + (1|g)", {"y": 3.0}, DesignError, "explains the score exactly"),
        ("y ~ 1 + (1|g)", {"y": "g"}, DesignError, "no residual variance is left"),
        ("y ~ C(row)", {}, DesignError, "30 rows and the fixed part 30 independent columns"),
        ("y ~ a + (1|g)", {"y": 1e200}, DesignError, "cannot be computed to full precision"),
        ("y ~ a + (1|g)", {"y": "far"}, DesignError, "too little to be distinguished from rounding error"),
        ("y ~ b + (1|g)", {}, UnknownColumnError, r"formula uses 'b' \(position 5\)"),
        ("a ~ y + (1|g)", {}, DataError, "must be a numeric column, but 'a' has type"),
    ],
)
def test_bad_input_is_explained(formula, change, error, text):
    g, a = np.repeat(np.arange(6), 5), np.tile(list("pqrst"), 6)
    table = pd.DataFrame({"g": g, "a": a, "row": np.arange(30), "y": np.random.default_rng(0).normal(size=30) + g})
    table["far"] = table["y"] + 1e12
    for column, value in change.items():
        table[column] = table[value] * 1.0 if isinstance(value, str) else value
    refuses(error, text, lt.fit_lmm, formula, table)


def test_missing_scores_are_refused_with_advice(crossed):
    crossed.loc[3, "y"] = np.nan
    refuses(DataError, "A failed run is not a missing run", lt.fit_lmm, FORMULA, crossed)


def test_what_copies_share_has_no_estimate_and_the_note_names_it(reference_input) -> None:
    table = reference_input("sleepstudy").assign(twice=lambda t: 2 * t["Days"])
    fit = lt.fit_lmm("Reaction ~ Days + twice + (1 | Subject)", table)
    rows = fit.to_frame().set_index("term")
    assert rows.loc[["Days", "twice"]].isna().all(axis=None)
    alone = lt.fit_lmm("Reaction ~ Days + (1 | Subject)", table).to_frame().set_index("term")
    pd.testing.assert_series_equal(rows.loc["Intercept"], alone.loc["Intercept"], rtol=1e-9)
    assert fit.estimate([[0.0, 1.0, 2.0]]) == pytest.approx(alone.loc["Days", "estimate"], rel=1e-9)
    assert fit.notes[0] == (
        "The fixed part is rank-deficient: twice depends on earlier columns and was dropped, so Days has no estimate "
        "of its own. Means that need it are not estimable."
    )


@pytest.mark.level(2)
def test_a_random_term_with_an_empty_cell_is_fitted_as_lme4_does(reference_input):
    table = reference_input("rank_deficient")
    full = lt.fit_lmm("y ~ x + (0+a|g)", table)
    some = table[~((table["a"] == "a2") & (table["b"] == table["b"].iloc[0]))]
    empty = lt.fit_lmm("y ~ x + (0+a:b|g)", some)
    k = len(empty.design.random[0].names)
    assert empty.problem.n_theta == k * (k + 1) // 2  # lme4 counts the parameters of the empty cell too
    assert np.isfinite(empty.llf)
    assert full.converged


@pytest.mark.parametrize("restarts", [-1, 1.5, "many"])
def test_restarts_must_be_a_count(crossed, restarts):
    refuses(ArgumentError, "restarts", lt.fit_lmm, FORMULA, crossed, restarts=restarts)


def test_a_start_of_the_wrong_length_is_explained(crossed):
    refuses(ArgumentError, "theta_start must have 3 elements", lt.fit_lmm(FORMULA, crossed).refit, theta_start=[1.0])


def test_algorithms_that_are_numbers_are_noted():
    table = {"tool": [1, 2, 10] * 4, "task": list("aaabbbcccddd"), "loss": np.random.default_rng(1).normal(size=12)}
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    assert lt.fit_lmm("loss ~ tool", runs).notes == (
        "What is compared are numbers (tool), and the formula takes them for a covariate with one slope. Write C(tool) "
        "to compare them as names.",
    )
    assert lt.fit_lmm("loss ~ C(tool)", runs).notes == ()


# ---------------------------------------------------------------------- generated models of many shapes


@pytest.fixture(scope="module")
def tables(reference_input):
    frame = reference_input("generated")
    return dict(iter(frame.groupby("id", sort=False)))


@pytest.mark.parametrize("method", ["ML", "REML"])
def test_log_likelihood_is_never_below_the_best_of_lme4s_optimisers(reference, tables, method):
    models = reference("generated")["models"]
    assert len(models) >= 100
    worse, uncertified = [], []
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = lt.fit_lmm(model["formula"], _own_columns(tables[model["id"]]), reml=method == "REML")
        best = model[method]["llf"]
        if fit.llf < best - 1e-6 * abs(best):
            worse.append((model["id"], model["shape"], model["formula"], fit.llf - best))
        if not fit.converged:
            uncertified.append((model["id"], model["formula"], fit.optim.message))
    assert worse == []
    assert uncertified == []


def _own_columns(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="id")
