"""A variance for each level, `diag(f | g)`: against lme4 and nlme (tests/reference/diagonal.R), and closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal, refuses
from study import make_scores, table_of_scores

import lmemtest as lt
from lmemtest.errors import DesignError, FormulaError, NestingError

CASES = [pytest.param(i, m, id=f"{i}-{m}") for i in range(5) for m in ("ML", "REML")]
SPREAD = "y ~ algorithm + (1 | benchmark) + diag(algorithm | benchmark)"
EQUAL = "y ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)"


@pytest.mark.parametrize(("i", "method"), CASES)
def test_fits_agree_with_lme4_and_nlme(reference, reference_input, i, method):
    case = reference("diagonal")["fits"][i]
    want = case[method]
    fit = lt.fit_lmm(case["formula"], reference_input(case["data"]), reml=method == "REML")
    assert fit.converged
    assert fit.n_params == want["n_params"]
    assert fit.llf == approx(want["llf"], abs=1e-10)
    assert fit.llf > want.get("nlme_llf", -np.inf) - 1e-8
    assert fit.llf == approx(want.get("nlme_llf", fit.llf), abs=1e-6)
    assert fit.covariances[-1].diagonal() == approx(np.array(want["variances"]), abs=1e-6 * fit.scale)
    assert not (fit.covariances[-1] - np.diag(fit.covariances[-1].diagonal())).any()
    assert fit.scale == approx(want["scale"], rel=1e-6)
    assert fit.params.to_numpy() == approx(np.array(want["fixef"]), abs=1e-7 * fit.bse.max())
    assert fit.bse.to_numpy() == approx(np.array(want["se"]), rel=1e-6)


@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
@pytest.mark.parametrize("i", range(5))
def test_pairs_agree_with_emmeans(reference, reference_input, i, ddf):
    case = reference("diagonal")["fits"][i]
    fit = lt.fit_lmm(case["formula"], reference_input(case["data"]))
    got = fit.emmeans("algorithm", ddf=ddf).pairs().to_frame()
    want = pd.DataFrame(case["REML"]["pairs"][ddf.replace("-", "_")])
    assert got["estimate"].to_numpy() == approx(want["estimate"].to_numpy(), abs=1e-7)
    assert got["se"].to_numpy() == approx(want["se"].to_numpy(), rel=1e-6)
    assert got["df"].to_numpy() == approx(want["df"].to_numpy(), rel=1e-5)


def table(algorithms: int, benchmarks: int, runs: int, seed: int = 1) -> pd.DataFrame:
    """A balanced table whose last algorithm depends on the benchmark more than the others."""
    sd = np.where(np.arange(algorithms) == algorithms - 1, 2.5, 0.5)[:, None]
    counts = {"algorithm": algorithms, "benchmark": benchmarks, "seed": runs}
    scores = make_scores(np.random.default_rng(seed), counts, {"algorithm:benchmark": sd, "benchmark": 2.0}, noise=0.5)
    names = {"algorithm": [f"a{k}" for k in range(algorithms)], "benchmark": [f"b{k:02d}" for k in range(benchmarks)]}
    columns = {f"d{k}": np.eye(algorithms)[:, k, None, None] for k in range(algorithms)}
    return table_of_scores(scores, " ".join(counts), "y", **names, **columns)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return table(4, 12, 5)


@pytest.fixture(scope="module")
def both(runs) -> tuple[lt.LmmFit, lt.LmmFit]:
    """With one column per algorithm, and with `diag`."""
    columns = " + ".join(f"(0 + d{k} | benchmark)" for k in range(4))
    return lt.fit_lmm(f"y ~ algorithm + (1 | benchmark) + {columns}", runs), lt.fit_lmm(SPREAD, runs)


def test_two_algorithms_in_a_balanced_table_have_the_variances_of_their_means():
    runs = table(2, 20, 5)
    fit = lt.fit_lmm(SPREAD, runs)
    cells = runs.pivot_table(index="benchmark", columns="algorithm", values="y")
    within = runs.groupby(["benchmark", "algorithm"])["y"].var().mean()
    S = cells.cov().to_numpy()
    common, spread = S[0, 1], S.diagonal() - S[0, 1] - within / 5
    assert min(common, spread.min()) > 0
    assert fit.scale == approx(within, rel=1e-7)
    assert fit.covariances[0][0, 0] == approx(common, rel=1e-6)
    assert fit.covariances[1].diagonal() == approx(spread, rel=1e-6)
    # by an orthonormal change of the rows: root 5 times the cell means, and what is within the cells
    n, inside, S_log = 20, 160, np.linalg.slogdet(S)[1]
    log_V = n * (S_log + 2 * np.log(5)) + inside * np.log(within)
    log_XVX = 2 * np.log(n) - S_log
    assert -2 * fit.llf == approx(log_V + log_XVX + (200 - 2) * np.log(2 * np.pi) + 2 * (n - 1) + inside, rel=1e-10)


def test_it_is_the_model_with_one_column_per_level(both):
    columns, diagonal = both
    assert diagonal.n_params == columns.n_params
    assert diagonal.llf == approx(columns.llf, abs=1e-10)
    assert np.diag(diagonal.covariances[1]) == approx([S[0, 0] for S in columns.covariances[1:]], rel=1e-8)
    assert diagonal.theta == approx(columns.theta, rel=1e-8)
    for ddf in ("satterthwaite", "kenward-roger"):
        got, want = (fit.to_frame(ddf=ddf)[["estimate", "se", "df"]].to_numpy() for fit in (diagonal, columns))
        assert got == approx(want, rel=1e-9)
    got, want = (fit.curvature.hessian for fit in (diagonal, columns))
    assert got == approx(want, abs=1e-8 * np.abs(want).max())
    got, want = (fit.conditional_modes("benchmark").to_numpy() for fit in (diagonal, columns))
    assert got == approx(want, abs=1e-9)
    new = pd.DataFrame({"algorithm": ["a0", "a3"], "benchmark": ["b00", "new"], "d0": [1, 0], "d3": [0, 1]})
    new = new.assign(d1=0.0, d2=0.0)
    got, want = (fit.prediction_intervals(new).to_numpy() for fit in (diagonal, columns))
    assert got == approx(want, rel=1e-7)


def test_profiles_and_simulated_tables_are_those_of_one_column_per_level(both):
    columns, diagonal = both
    got, want = (
        fit.profile(["sd"]).to_frame()[["estimate", "ci_low", "ci_high"]].to_numpy() for fit in (diagonal, columns)
    )
    assert len(got) == 5  # no correlations to profile
    assert got == approx(want, rel=1e-5, abs=1e-6)
    tables = [fit.simulate(rng=3) for fit in (diagonal, columns)]
    again = [fit.refit(cells=cells).llf for fit, cells in zip((diagonal, columns), tables, strict=True)]
    assert np.isfinite(again).all()


def test_components_are_named_by_level(both):
    _, diagonal = both
    frame = diagonal.varcorr
    assert frame["name1"].tolist() == ["Intercept", *(f"algorithm[a{k}]" for k in range(4)), ""]
    assert frame["corr"].isna().all()
    assert list(diagonal.conditional_modes("benchmark").columns) == frame["name1"].tolist()[:-1]


def test_a_variance_of_zero_is_named():
    runs = table(4, 12, 5)
    effect = runs.groupby("benchmark")["y"].transform("mean")
    flat = runs["algorithm"] == "a1"
    runs.loc[flat, "y"] = (effect + 0.5 * np.random.default_rng(2).normal(size=len(runs)))[flat]
    fit = lt.fit_lmm(SPREAD, runs)
    assert fit.singular_terms == ("diag(algorithm | benchmark)",)
    (note,) = fit.notes
    assert note == (
        "diag(algorithm | benchmark): the variance of algorithm[a1] is estimated as zero, so the data show no more "
        "variation of this level between groups than the other terms hold."
    )


def test_the_dummy_columns_may_come_in_any_order_of_the_levels(runs):
    renamed = runs.assign(algorithm=runs["algorithm"].map({"a0": "z", "a1": "c", "a2": "b", "a3": "a"}))
    first, second = lt.fit_lmm(SPREAD, runs), lt.fit_lmm(SPREAD, renamed)
    assert second.llf == approx(first.llf, abs=1e-9)
    assert second.covariances[1].diagonal()[::-1] == approx(first.covariances[1].diagonal(), abs=1e-7 * first.scale)


# ---------------------------------------------------------------------- nested models


def test_equal_variances_are_inside_and_not_on_a_boundary(runs):
    equal, spread = lt.fit_lmm(EQUAL, runs), lt.fit_lmm(SPREAD, runs)
    test = lt.glrt(equal, spread)
    assert (test.df, test.reference, test.method, test.notes) == (3, "chi2", "REML", ())
    assert test.statistic == approx(2 * (spread.llf - equal.llf), rel=1e-12)
    refuses(NestingError, "wrong order", lt.glrt, spread, equal)


def test_the_larger_model_starts_from_the_smaller_one_where_it_is_it(runs):
    from lmemtest.lmm.hypotheses.glrt import check_nesting

    equal, spread = lt.fit_lmm(EQUAL, runs), lt.fit_lmm(SPREAD, runs)
    start = check_nesting(equal, spread).theta_of_null(equal, spread)
    assert start == approx([equal.theta[0], *[equal.theta[1]] * 4], rel=1e-12)
    at_start = spread.problem.evaluate(spread.problem.point(spread.problem.to_white(start)))
    assert -0.5 * (at_start.value + spread.problem.deviance_shift) == approx(equal.llf, rel=1e-12)


@pytest.mark.parametrize(
    ("null", "alternative", "df", "reference"),
    [
        ("diag(algorithm | benchmark)", "(1 | benchmark) + diag(algorithm | benchmark)", 1, "mixture"),
        ("diag(algorithm | benchmark)", "(0 + algorithm | benchmark)", 6, "chi2"),
        ("(1 | benchmark) + diag(algorithm | benchmark)", "(0 + algorithm | benchmark)", 5, "chi2"),
        ("(1 | benchmark)", "(1 | benchmark) + diag(algorithm | benchmark)", 4, "chi2"),
        ("(0 + d1 | benchmark)", "diag(algorithm | benchmark)", 3, "chi2"),
    ],
)
def test_nested_models_are_recognised(runs, null, alternative, df, reference):
    test = lt.glrt(*(lt.fit_lmm(f"y ~ algorithm + {part}", runs) for part in (null, alternative)))
    assert (test.df, test.reference) == (df, reference)


@pytest.mark.parametrize("null", ["(1 | benchmark)", "(0 + d0 + d1 | benchmark)", "(1 | benchmark:seed)"])
def test_what_independent_levels_do_not_contain_is_refused(runs, null):
    with pytest.raises(NestingError, match="no random term of the alternative contains"):
        lt.glrt(*(lt.fit_lmm(f"y ~ algorithm + {part}", runs) for part in (null, "diag(algorithm | benchmark)")))


def test_a_null_variance_of_zero_is_a_boundary_and_is_said():
    rng = np.random.default_rng(8)
    runs = table(4, 12, 5)
    runs["y"] = rng.normal(size=len(runs))
    equal, spread = lt.fit_lmm(EQUAL, runs), lt.fit_lmm(SPREAD, runs)
    assert equal.covariances[1][0, 0] == 0.0
    test = lt.glrt(equal, spread)
    assert test.reference == "chi2"
    assert test.notes == (
        "The variance of (1 | benchmark:algorithm) is estimated as zero, where the chi-squared reference is "
        "conservative: the p-value is too large. A parametric bootstrap gives the right reference: "
        "reference='bootstrap'.",
    )


# ---------------------------------------------------------------------- what makes no sense


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("diag(1 | benchmark)", "no intercept; write (1 | benchmark)."),
        ("diag(1 + algorithm | benchmark)", "no intercept; write (1 | benchmark) + diag(algorithm | benchmark)."),
        ("diag(algorithm + seed | benchmark)", "write diag(algorithm | benchmark) + diag(seed | benchmark)."),
        ("diag(algorithm || benchmark)", "independent as it is; write it with one '|'."),
        ("diag(algorithm)", "diag() is a random-effect term; write diag(algorithm | benchmark)."),
        ("diag(d0 | benchmark)", "or diag(C(d0) | benchmark) for a variance at each value."),
        ("diag(exp(d0) | benchmark)", "write (0 + exp(d0) | benchmark) for a slope that varies."),
        ("diag(benchmark | benchmark:seed)", "'benchmark' is a group of this term"),
        ("diag(algorithm | benchmark) + diag(algorithm | benchmark)", "is in the formula twice"),
    ],
)
def test_terms_that_make_no_sense_are_refused_in_place(runs, term, message):
    with pytest.raises(FormulaError) as error:
        lt.fit_lmm(f"y ~ {term}", runs)
    assert message in str(error.value)
    assert "^" in str(error.value)


def test_variances_that_the_rows_cannot_show_are_refused(runs):
    with pytest.raises(DesignError, match=r"has 240 effects for 240 rows.*dispersion="):
        lt.fit_lmm("y ~ algorithm + diag(algorithm | benchmark:seed)", runs)
    with pytest.raises(
        DesignError, match=r"one variance for all levels and one for each.*Leave out \(1 \| benchmark:alg"
    ):
        lt.fit_lmm(f"{EQUAL} + diag(algorithm | benchmark)", runs)
    rare = runs[(runs["algorithm"] != "a3") | (runs["benchmark"] == "b01")]
    with pytest.raises(DesignError, match=r"needs at least two levels of benchmark.*algorithm\[a3\] \(1\) has fewer"):
        lt.fit_lmm(SPREAD, rare)
    single = runs.drop_duplicates(["algorithm", "benchmark"]).iloc[1:]
    refuses(DesignError, "has 47 effects for 47 rows", lt.fit_lmm, SPREAD, single)


def test_two_bars_leave_a_factor_its_covariances(runs):
    full = lt.fit_lmm("y ~ algorithm + (0 + algorithm || benchmark)", runs)
    assert full.n_params == 4 + 10 + 1
    assert lt.fit_lmm("y ~ algorithm + diag(0 + algorithm | benchmark)", runs).n_params == 4 + 4 + 1


# ---------------------------------------------------------------------- the builder


@pytest.fixture
def builder(runs) -> lt.ModelBuilder:
    table = runs[["algorithm", "benchmark", "seed", "y"]]
    roles = {"score": "y", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed"}
    return lt.ModelBuilder(lt.Runs(table, **roles))


def test_a_variance_per_algorithm_takes_the_place_of_one_for_all(builder):
    equal = builder.random("benchmark", "benchmark:algorithm")
    spread = equal.random("benchmark", by="algorithm")
    assert spread.formula() == SPREAD
    assert spread.random("benchmark", by="algorithm").formula() == SPREAD
    assert builder.random("benchmark", "diag(algorithm | benchmark)").formula() == SPREAD
    assert spread.drop("diag(algorithm | benchmark)").formula() == "y ~ algorithm + (1 | benchmark)"
    assert equal.compare(spread).df == 3
    meaning = dict(zip(spread.to_frame()["term"], spread.to_frame()["meaning"], strict=True))
    assert "each algorithm to its own degree" in meaning["diag(algorithm | benchmark)"]
    assert "benchmark:algorithm" not in spread.explain()


def test_numbers_that_are_names_are_levels(runs):
    table = runs.assign(algorithm=runs["algorithm"].str[1:].astype(int))[["algorithm", "benchmark", "y"]]
    roles = {"score": "y", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    model = lt.ModelBuilder(lt.Runs(table, **roles)).random("benchmark")
    wanted = "y ~ C(algorithm) + (1 | benchmark) + diag(C(algorithm) | benchmark)"
    assert model.random("benchmark", by="algorithm").formula() == wanted
    assert model.random("diag(algorithm | benchmark)").formula() == wanted


@pytest.mark.parametrize(
    ("group", "by", "message"),
    [
        ("benchmark:seed", "algorithm", "has 240 effects for 240 rows"),
        ("(1 | benchmark)", "algorithm", "by is of groups like 'benchmark'"),
        ("benchmark", "algorithm + seed", "by must be one column or role"),
        ("benchmark", 3, "by must be text"),
    ],
)
def test_refusals_of_the_builder(builder, group, by, message):
    assert message in refusal(lambda: builder.random(group, by=by), (lt.errors.ArgumentError, DesignError))


def test_one_variance_beside_one_for_each_is_refused_when_it_is_added(builder):
    with pytest.raises(DesignError, match="one variance for all levels and one for each"):
        builder.random("benchmark", by="algorithm").random("benchmark:algorithm")
