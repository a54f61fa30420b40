"""Marginal means and pairwise tests against emmeans and lmerTest (tests/reference/emm.R)."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lmemtest.lmm.means.emmeans import emmeans

MODELS = json.loads((Path(__file__).parent.parent / "reference" / "emm.json").read_text())["models"]
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


@pytest.mark.parametrize(("i", "j", "ddf"), GRIDS)
def test_means_match_emmeans(fitted, i, j, ddf):
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


@pytest.mark.parametrize(("i", "j", "ddf"), GRIDS)
def test_pairs_match_emmeans(fitted, i, j, ddf):
    reference = MODELS[i]["grids"][j][ddf].get("pairs")
    if reference is None:
        return  # one mean only: nothing to compare
    em = marginal_means(fitted, i, j, ddf)
    for adjust, rows in reference.items():
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
