"""Estimated marginal means: against emmeans, on their reference grids, weights, levels, intervals, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from references import values
from refusals import refuses

from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.lmm.hypotheses.glrt import glrt
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import fit_lmm

CROSSED = "y ~ algorithm * prior + fidelity + (1|benchmark) + (1|benchmark:seed)"


@pytest.fixture
def crossed(fitted):
    return fitted("bench_prior_unbalanced", CROSSED)


def test_frame_has_levels_in_factor_order_and_the_promised_columns(crossed):
    frame = emmeans(crossed, "algorithm", by="prior").to_frame()
    assert list(frame.columns) == ["algorithm", "prior", "emmean", "se", "df", "ci_low", "ci_high"]
    levels = crossed.design.factors["algorithm"]
    assert list(frame["algorithm"]) == list(levels) * len(crossed.design.factors["prior"])


def test_equal_weights_average_the_means_by_group(crossed):
    by_prior = emmeans(crossed, "algorithm", by="prior").to_frame()
    overall = emmeans(crossed, "algorithm").to_frame()
    np.testing.assert_allclose(overall["emmean"], by_prior.groupby("algorithm", sort=True)["emmean"].mean(), rtol=1e-12)


def test_cells_weights_reproduce_row_means_of_the_fixed_part(crossed, reference_input):
    data = reference_input("bench_prior_unbalanced")
    fixed = crossed.design.rows(data.assign(fidelity=crossed.design.numeric["fidelity"])) @ crossed.params.to_numpy()
    want = pd.Series(fixed).groupby(data["algorithm"].to_numpy()).mean()
    got = emmeans(crossed, "algorithm", weights="cells").to_frame()
    np.testing.assert_allclose(got["emmean"], want, rtol=1e-12)


def test_intervals_use_the_degrees_of_freedom_that_were_asked_for(crossed):
    residual = emmeans(crossed, "algorithm", ddf="residual", alpha=0.1)
    assert np.all(residual.df == crossed.nobs - crossed.rank)
    normal = emmeans(crossed, "algorithm", ddf="asymptotic")
    np.testing.assert_allclose((normal.ci_high - normal.ci_low) / normal.se, 2 * 1.959963984540054)


def test_means_are_invariant_to_the_coding_of_factors(reference_input):
    data = reference_input("bench_prior_unbalanced")
    treatment = emmeans(fit_lmm("y ~ algorithm * prior + (1|benchmark)", data), "algorithm")
    sums = emmeans(fit_lmm("y ~ C(algorithm, contr.sum) * C(prior, contr.sum) + (1|benchmark)", data), "algorithm")
    np.testing.assert_allclose(treatment.estimate, sums.estimate, rtol=1e-9)
    np.testing.assert_allclose(treatment.se, sums.se, rtol=1e-6)


def test_numeric_columns_are_held_at_their_row_mean_or_at_the_values_given(crossed, reference_input):
    mean = reference_input("bench_prior_unbalanced")["fidelity"].mean()
    default = emmeans(crossed, "algorithm")
    assert default.covariates["fidelity"] == pytest.approx((mean,))
    np.testing.assert_allclose(default.estimate, emmeans(crossed, "algorithm", at={"fidelity": mean}).estimate)
    two = emmeans(crossed, "algorithm", at={"fidelity": [0.0, 2 * mean]})
    np.testing.assert_allclose(default.estimate, two.estimate, rtol=1e-12)
    slope = emmeans(crossed, "fidelity", at={"fidelity": [1.0, 2.0]})
    assert np.diff(slope.estimate)[0] == pytest.approx(crossed.params["fidelity"])


def test_at_keeps_the_levels_named_in_factor_order(crossed):
    levels = crossed.design.factors["algorithm"]
    em = emmeans(crossed, "algorithm", at={"algorithm": [levels[1], levels[0]]})
    assert list(em.frame["algorithm"]) == list(levels[:2])


def test_cells_that_data_do_not_identify_are_nan_with_the_reason(fitted):
    fit = fitted("rank_deficient", "y ~ a * b + (1|g)")
    em = emmeans(fit, "a", by="b")
    assert np.isnan(em.estimate).any()
    assert not np.isnan(em.estimate).all()
    reason = next(note for note in em.notes if note.startswith("Not estimable"))
    row = em.frame[np.isnan(em.estimate)].iloc[0]
    assert f"a = {row['a']} and b = {row['b']}" in reason
    assert "empty cells" in reason


def test_a_mean_without_rows_to_average_over_is_nan(fitted):
    fit = fitted("rank_deficient", "y ~ a + b + (1|g)")
    counts = pd.crosstab(fit.cells.frame["a"], fit.cells.frame["b"])
    empty = [(a, b) for a in counts.index for b in counts.columns if counts.loc[a, b] == 0]
    a, b = empty[0]
    em = emmeans(fit, "a", at={"b": [b]}, weights="cells")
    assert np.isnan(em.estimate[list(em.frame["a"]).index(a)])
    assert any(note.startswith("No rows to average over") and f"a = {a}" in note for note in em.notes)


def test_notes_name_what_was_averaged_over_and_warn_of_interactions(crossed, fitted):
    notes = " ".join(emmeans(crossed, "algorithm").notes)
    assert "Averaged over prior (" in notes
    assert "fidelity is held at its mean over the rows" in notes
    assert "Differences between the levels of algorithm depend on prior in this model (interaction)" in notes
    assert "Compare at each level: fit.emmeans('algorithm', by='prior')." in notes
    assert "Compare at each level" not in " ".join(crossed.emmeans("algorithm", by="prior").notes)
    additive = fitted("bench_prior_unbalanced", "y ~ algorithm + prior + fidelity + (1|benchmark)")
    assert "interaction" not in " ".join(emmeans(additive, "algorithm").notes)
    slopes = fitted("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark)")
    notes = " ".join(emmeans(slopes, "algorithm").notes)
    assert "they are shown at fidelity = " in notes
    call = notes.partition("Look elsewhere, too: fit.emmeans(")[2].partition(").")[0]
    at = float(call.removeprefix("'algorithm', at={'fidelity': ").removesuffix("}"))
    assert at == slopes.cells.frame["fidelity"].max()
    assert slopes.emmeans("algorithm", at={"fidelity": at}).notes != emmeans(slopes, "algorithm").notes


def test_direction_comes_from_runs_and_follows_increasing_transforms():
    table = pd.DataFrame(
        {"a": list("pqr") * 8, "b": np.repeat(list("wxyz"), 6), "v": np.random.default_rng(3).gamma(3, size=24)}
    )
    table["direction"] = 1.0  # a column of this name must not be taken for the direction
    runs = Runs(table, score="v", direction="maximize", algorithm="a", benchmark="b")
    assert emmeans(fit_lmm("v ~ a + (1|b)", runs), "a").direction == "maximize"
    logged = emmeans(fit_lmm("log(v) ~ a + (1|b)", runs), "a")
    assert (logged.direction, logged.score) == ("maximize", "log(v)")
    assert any("on the scale of log(v)" in note for note in logged.notes)
    assert emmeans(fit_lmm("square(v) ~ a + (1|b)", runs), "a").direction is None
    assert emmeans(fit_lmm("v ~ a + (1|b)", table), "a").direction is None


def test_labels_join_levels_of_several_specs(crossed):
    labels = emmeans(crossed, ["algorithm", "prior"]).labels()
    a, b = crossed.design.factors["algorithm"], crossed.design.factors["prior"]
    assert labels[0] == f"{a[0]}, {b[0]}"
    assert len(set(labels)) == len(a) * len(b)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ({"specs": "algoritm"}, UnknownColumnError, "Factors: algorithm, prior. Numeric columns: fidelity. Did you"),
        ({"specs": "benchmark"}, UnknownColumnError, "'benchmark' is a grouping factor of the random part"),
        ({"specs": "fidelity"}, ArgumentError, "a numeric column; give the values .* at={'fidelity': "),
        ({"specs": "algorithm", "by": "algorithm"}, ArgumentError, "'algorithm' is in both specs and by"),
        ({"specs": ["prior", "prior"]}, ArgumentError, "specs names 'prior' twice"),
        ({"specs": []}, ArgumentError, "specs must name at least one factor"),
        ({"specs": 3}, ArgumentError, r"^specs must be a name or several names of columns, got 3\.$"),
        ({"specs": [3]}, ArgumentError, r"^specs must name columns by strings, got 3 of type int\.$"),
        ({"specs": "prior", "by": 3}, ArgumentError, r"^by must be a name or several names of columns, got 3\.$"),
        ({"specs": "prior", "at": 3}, ArgumentError,
         r"^at must be a dict of column names and values, got 3\. Write for instance at={'algorithm': \['A', "),
        ({"specs": "prior", "at": {"seeds": 1}}, UnknownColumnError, "at names 'seeds', not in the fixed part"),
        ({"specs": "prior", "at": {"prior": "goood"}}, ArgumentError, r"at\['prior'\] has no level 'goood'. Levels: "),
        ({"specs": "prior", "at": {"prior": []}}, ArgumentError, r"at\['prior'\] is empty"),
        ({"specs": "prior", "at": {"fidelity": "x"}}, ArgumentError, r"at\['fidelity'\] must be one or more finite"),
        ({"specs": "prior", "weights": "outer"}, ArgumentError, "weights must be 'equal' or 'proportional' or"),
    ],
)  # fmt: skip
def test_errors_name_the_argument_the_value_and_the_next_step(crossed, call, error, message):
    refuses(error, message, emmeans, crossed, **call)


def test_the_summary_shows_the_means_and_the_notes(crossed):
    em = emmeans(crossed, "algorithm")
    assert "Averaged over prior" in em.summary()


def test_results_do_not_change_with_the_frame_that_was_handed_out(crossed):
    em = emmeans(crossed, "algorithm")
    handed_out = em.to_frame()
    handed_out.loc[:, "emmean"] = 0.0
    assert not np.any(em.to_frame()["emmean"] == 0.0)


@pytest.mark.parametrize("call", [lambda: emmeans("fit", "a"), lambda: glrt("null", "alternative")])
def test_what_is_not_a_fit_is_named(call):
    refuses(ArgumentError, "must be a fitted model, got str", call)


# ---------------------------------------------------------------------- against emmeans (tests/reference/emm.R)


MODELS = values("emm")["models"]
GRIDS = [
    pytest.param(i, j, method, id=f"{model['data']}-{i}-{'+'.join(g['specs'])}-{j}-{method}")
    for i, model in enumerate(MODELS)
    for j, g in enumerate(model["grids"])
    for method in ("satterthwaite", "asymptotic")
]
# lmerTest differentiates numerically; its df carries about 1e-5 relative on regular fits.
DF_TOLERANCE = 1e-3


def number(value):
    return np.nan if value is None else float(value)


def marginal_means(fitted, i, j, ddf):
    model = MODELS[i]
    fit = fitted(model["data"], model["formula"], True, model["weights"])
    grid = model["grids"][j]
    at = dict(grid["at"])
    for name in grid["specs"]:  # emmeans takes a numeric column without values to mean its average
        if name in fit.design.numeric and name not in at:
            at[name] = [fit.design.numeric[name]]
    return emmeans(fit, grid["specs"], by=grid["by"] or None, at=at, weights=grid["weights"], ddf=ddf)


def keyed(rows, names):
    def text(value):
        return value if isinstance(value, str) else f"{value:g}"

    return {tuple(text(row[name]) for name in names): row for row in rows}


def assert_close(got, want, name, rel, scale=0.0):
    got, want = number(got), number(want)
    if np.isnan(want):
        assert np.isnan(got), name
    else:
        assert got == pytest.approx(want, rel=rel, abs=rel * scale), name


@pytest.mark.daily(60)
@pytest.mark.parametrize(("i", "j", "ddf"), GRIDS)
def test_means_and_pairs_match_emmeans(fitted, i, j, ddf):
    em = marginal_means(fitted, i, j, ddf)
    names = [*em.by, *em.specs]
    got = keyed(em.to_frame().to_dict("records"), names)
    want = keyed(MODELS[i]["grids"][j][ddf]["means"], names)
    assert got.keys() == want.keys()
    for key, row in want.items():
        se = number(row["se"])
        assert_close(got[key]["emmean"], row["emmean"], "emmean", 1e-5, se)
        assert_close(got[key]["se"], row["se"], "se", 1e-5)
        assert_close(got[key]["df"], row["df"], "df", DF_TOLERANCE)
        assert_close(got[key]["ci_low"], row["ci_low"], "ci_low", 1e-5, 10 * se)
        assert_close(got[key]["ci_high"], row["ci_high"], "ci_high", 1e-5, 10 * se)
    for adjust, rows in MODELS[i]["grids"][j][ddf].get("pairs", {}).items():  # of one mean there are none
        pw = em.pairs(adjust=adjust)
        if pw.intervals in ("stepwise", "selected"):  # beside these p-values R prints the limits of the first step
            half = pw.half_widths(pw.alpha, first_step=True)
            pw = replace(
                pw, table=pw.table.assign(ci_low=pw.table["estimate"] - half, ci_high=pw.table["estimate"] + half)
            )
        got = keyed(
            [
                {**row, "left": row["left"].replace(", ", " "), "right": row["right"].replace(", ", " ")}
                for row in pw.to_frame().to_dict("records")
            ],
            [*em.by, "left", "right"],
        )
        assert len(got) == len(rows)
        for row in rows:
            assert_pair(got, row, em.by)


def assert_pair(got, row, by):
    """Compare one pair; combinations of several factors come in another order in R, so the sign may flip."""
    where = tuple(row[name] if isinstance(row[name], str) else f"{row[name]:g}" for name in by)
    left, right = (v if isinstance(v, str) else f"{v:g}" for v in (row["left"], row["right"]))
    sign = 1.0 if (*where, left, right) in got else -1.0
    ours = got[(*where, left, right) if sign > 0 else (*where, right, left)]
    se = number(row["se"])
    low, high = ("ci_low", "ci_high") if sign > 0 else ("ci_high", "ci_low")
    assert_close(sign * ours["estimate"], row["estimate"], "estimate", 1e-5, se)
    assert_close(ours["se"], row["se"], "se", 1e-5)
    assert_close(ours["df"], row["df"], "df", DF_TOLERANCE)
    # emmeans rounds all df to integers for Tukey if one pair of the table is NaN: 1.1e-5 in p at 76 df
    assert_close(ours["p_value"], row["p_value"], "p_value", 1e-4, 0.2)
    # R's qtukey stops at a step of 1e-4 in q below 10 df or so
    assert_close(sign * ours[low], row["ci_low"], "ci_low", 1e-4, 5 * se)
    assert_close(sign * ours[high], row["ci_high"], "ci_high", 1e-4, 5 * se)
