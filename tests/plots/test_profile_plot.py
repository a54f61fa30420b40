"""The panels show the numbers of the result, readable in every size."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from figures import lines
from matplotlib.figure import Figure
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.intervals.profile import profile, profile_answer
from lmemtest.plots.model import profile_plot


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    g = np.repeat(np.arange(8), 6)
    x = np.tile(np.arange(6.0), 8)
    y = (1 + rng.normal(size=8))[g] + (0.5 + 0.4 * rng.normal(size=8))[g] * x + 0.5 * rng.normal(size=48)
    return profile(lt.fit_lmm("y ~ x + (x | g)", {"y": y, "x": x, "g": g}))


def test_a_panel_shows_curve_interval_estimate_and_cut(result):
    ax = profile_plot(result)
    assert [panel.get_title(loc="left") for panel in ax.child_axes] == list(result.labels)
    for panel, row in zip(ax.child_axes, result.to_frame().itertuples(), strict=True):
        (interval,) = lines(panel, "_interval")
        assert list(interval.get_xdata()) == [row.ci_low, row.ci_high]
        (estimate,) = lines(panel, "_estimate")
        assert list(estimate.get_xdata()) == [row.estimate]
        assert [line.get_ydata()[0] for line in lines(panel, "_cut")] == approx([-result.cut, result.cut])
        (curve,) = lines(panel, "_profile")
        x, y = curve.get_xdata(), curve.get_ydata()
        assert np.interp(row.ci_high, x, y) == approx(result.cut, abs=2e-3)
        assert np.interp(row.estimate, x, y) == approx(0, abs=1e-3)
        low, high = panel.get_xlim()
        assert low < row.ci_low < row.ci_high < high


def test_the_curve_goes_through_every_exact_point(result):
    ax = profile_plot(result)
    points = result.curves[result.curves["kind"] == "residual sd"]
    (curve,) = lines(ax.child_axes[3], "_profile")
    for value, zeta in zip(points["value"], points["zeta"], strict=True):
        nearest = np.abs(curve.get_xdata() - value).argmin()
        assert curve.get_ydata()[nearest] == approx(zeta, abs=1e-4)


def test_the_deviance_is_the_square_of_zeta(result):
    ax = profile_plot(result, scale="deviance")
    panel = ax.child_axes[0]
    assert [line.get_ydata()[0] for line in lines(panel, "_cut")] == approx([result.cut**2])
    assert lines(panel, "_profile")[0].get_ydata().min() == approx(0, abs=1e-6)
    (grey,) = lines(panel, "_symmetric")
    slope = result.curves.loc[result.curves["zeta"] == 0, "slope"].iloc[0]
    estimate = result.table["estimate"].iloc[0]
    assert grey.get_ydata() == approx((slope * (grey.get_xdata() - estimate)) ** 2)


def test_text_is_readable_in_every_shape(result, assert_readable):
    for size, scale in (((4.0, 3.0), "zeta"), ((3.0, 6.0), "deviance"), ((10.0, 2.0), "zeta")):
        assert_readable(profile_plot(result, scale=scale, ax=Figure(size).add_axes((0, 0, 1, 1))))


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_new_figure_grows_with_the_parameters(result, assert_readable, count):
    keep = result.table.iloc[:count]
    part = profile_answer(
        table=keep,
        curves=result.curves,
        alpha=result.alpha,
        likelihood=result.likelihood,
        formula=result.formula,
        evaluations=1,
    )
    ax = profile_plot(part)
    assert len(ax.child_axes) == count
    assert_readable(ax)


def test_names_of_any_kind_are_shown_literally(assert_readable):
    curve = pd.DataFrame(
        {"value": [-1e-7, 0.0, 1e-7], "zeta": [-2.0, 0.0, 2.0], "slope": [2e7] * 3, "kind": "fixed", "group": ""}
    )
    names = ["cost_$x$ with a name that is far too long for one small panel of a page", "<b>", "漢字"]
    tables = [curve.assign(name1=name, name2="") for name in names]
    table = pd.DataFrame(
        {"kind": "fixed", "group": "", "name1": names, "name2": "", "estimate": 0.0, "ci_low": -1e-7, "ci_high": 1e-7}
    )
    made = profile_answer(
        table=table,
        curves=pd.concat(tables),
        alpha=0.05,
        likelihood="restricted maximum likelihood",
        formula="y ~ 1",
        evaluations=1,
    )
    ax = profile_plot(made)
    assert_readable(ax)
    assert "Profiles of the restricted likelihood." in " ".join(text.get_text() for text in ax.texts)


def made_of(names):
    curve = pd.DataFrame(
        {"value": [-1.0, 0.0, 1.0], "zeta": [-2.0, 0.0, 2.0], "slope": [2.0] * 3, "kind": "fixed", "group": ""}
    )
    table = pd.DataFrame(
        {"kind": "fixed", "group": "", "name1": names, "name2": "", "estimate": 0.0, "ci_low": -1.0, "ci_high": 1.0}
    )
    return profile_answer(
        table=table,
        curves=pd.concat([curve.assign(name1=name, name2="") for name in names]),
        alpha=0.05,
        likelihood="restricted maximum likelihood",
        formula="y ~ 1",
        evaluations=1,
    )


NAMES = (
    "sd Intercept | benchmark:algorithm",
    "corr Intercept, budget | benchmark",
    "algorithm[T.random search]:prior[T.good]",
    "a_name_without_any_space_or_colon_to_break_at",
    "x",
)


@pytest.mark.parametrize("size", [None, (5.5, 6.0), (9.0, 4.0)])
def test_long_names_take_two_lines_and_are_whole(assert_readable, size):
    result = made_of(NAMES)
    ax = profile_plot(result, ax=None if size is None else Figure(size).add_axes((0, 0, 1, 1)))
    titles = [panel.get_title(loc="left") for panel in ax.child_axes]
    assert [title.replace("\n", "").replace(" ", "") for title in titles] == [name.replace(" ", "") for name in NAMES]
    assert all(title.count("\n") <= 1 for title in titles)
    assert any("\n" in title for title in titles)
    assert_readable(ax)


def test_names_break_at_spaces_and_colons_first():
    titles = [panel.get_title(loc="left") for panel in profile_plot(made_of(NAMES)).child_axes]
    assert titles[0] == "sd Intercept |\nbenchmark:algorithm"
    assert titles[2] == "algorithm[T.random\nsearch]:prior[T.good]"


def test_names_too_long_for_two_lines_have_a_number_and_stand_below(assert_readable):
    names = [f"a name {'that goes on and on ' * 8}{end}" for end in ("first", "second")]
    ax = profile_plot(made_of(names), ax=Figure((4.0, 3.0)).add_axes((0, 0, 1, 1)))
    titles = [panel.get_title(loc="left") for panel in ax.child_axes]
    assert len(set(titles)) == 2
    assert [title[-9:] for title in titles] == ["first [1]", "econd [2]"]  # as they begin alike, their ends are shown
    assert_readable(ax)


def test_an_undefined_parameter_has_an_empty_panel(result, assert_readable):
    table = result.table.copy()
    table.loc[2, ["estimate", "ci_low", "ci_high"]] = np.nan
    made = profile_answer(
        table=table,
        curves=result.curves[result.curves["kind"] != "corr"],
        alpha=result.alpha,
        likelihood=result.likelihood,
        formula=result.formula,
        evaluations=1,
    )
    ax = profile_plot(made)
    assert [text.get_text() for text in ax.child_axes[2].texts] == ["no profile"]
    assert_readable(ax)


def test_an_interval_that_begins_at_zero_ends_the_curve_there(reference_input, assert_readable):
    result = profile(lt.fit_lmm("strength ~ 1 + (1 | batch / cask)", reference_input("Pastes")), "sd")
    ax = profile_plot(result)
    (curve,) = lines(ax.child_axes[0], "_profile")
    assert curve.get_xdata()[0] == 0.0
    assert (np.diff(curve.get_ydata()) > -1e-9).all()
    assert_readable(ax)


def test_bad_arguments_are_named(result):
    with pytest.raises(ArgumentError, match=re.escape("result must be the result of profile(), got dict.")):
        profile_plot({})
    with pytest.raises(ArgumentError, match=re.escape("scale must be 'zeta' or 'deviance', got 'zetas'.")):
        profile_plot(result, scale="zetas")
    message = (
        "ax is too small: 6 panels needs larger axes, it is 0.8 x 0.6 inches. Pass larger axes, or ax=None for a "
        "figure that grows with its content."
    )
    with pytest.raises(ArgumentError, match=re.escape(message)):
        profile_plot(result, ax=Figure((0.8, 0.6)).add_axes((0, 0, 1, 1)))
