"""The figures of anytime performance show the numbers and the decisions of the result."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from figures import foot
from matplotlib.colors import to_hex
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import set_along
from lmemtest.plots.anytime import _axis, anytime_differences_plot, anytime_plot, cd_ribbon, spans_of


def anytime(runs, **options):
    return lt.anytime(runs, **{"rng": 0, **options})


FIGURES = (anytime_plot, anytime_differences_plot, cd_ribbon)
BUDGETS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 120)
LONG = ("a very long algorithm name with $\\alpha$ and <b> 1", "a very long algorithm name with $\\alpha$ and <b> 2",
        "漢字 optimizer", "x_1", "naïve Bayes № 7")  # fmt: skip


def table(names, budgets=BUDGETS, *, direction="minimize", last=None, score="loss", n=12) -> lt.Runs:
    """One curve per benchmark and algorithm; `last` has the last budget of some."""
    rng = np.random.default_rng(1)
    x = np.log(np.asarray(budgets, dtype=float) / budgets[0])
    rate, floor = rng.uniform(0.4, 1.2, len(names)), rng.uniform(0.0, 0.7, len(names))
    parts = []
    for benchmark in range(n):
        hard = rng.normal()
        for i, name in enumerate(names):
            y = hard + 2.0 * np.exp(-rate[i] * x) + floor[i] + rng.normal(0, 0.15) + rng.normal(0, 0.05, len(x))
            y = -y if direction == "maximize" else y
            rows = pd.DataFrame({"benchmark": f"b{benchmark}", "algorithm": name, "budget": budgets, score: y})
            parts.append(rows[rows["budget"] <= (last or {}).get(name, np.inf)])
    return lt.Runs(
        pd.concat(parts),
        score=score,
        direction=direction,
        algorithm="algorithm",
        benchmark="benchmark",
        budget="budget",
    )


MAKERS = {
    "two": lambda: anytime(table(("HB", "RS")), columns=4),
    "five": lambda: anytime(table(("HB", "RS", "TPE", "PB", "BOHB")), columns=5, vcov="model"),
    "maximise": lambda: anytime(
        table(("HB", "RS", "TPE", "PB", "BOHB"), direction="maximize"), columns="budgets", vcov="model"
    ),
    "twenty": lambda: anytime(table([f"optimizer_{i:02d}" for i in range(20)]), columns="budgets", vcov="model"),
    "long": lambda: anytime(table(LONG, score="a long name of a score with $"), columns=5),
    "shorter": lambda: anytime(table(("HB", "RS", "TPE"), last={"TPE": 21, "RS": 55}), columns=4),
    "linear": lambda: anytime(table(("HB", "RS", "TPE"), tuple(range(20, 50))), columns="budgets", vcov="model"),
    "narrow log": lambda: anytime(table(("HB", "RS"), tuple(range(21, 50))), columns=3, scale="log"),
}


@cache
def result_of(case):
    return MAKERS[case]()


def labelled(box, label):
    return [artist for artist in (*box.lines, *box.collections) if artist.get_label() == label]


def span_of(area):
    box = area.get_paths()[0].get_extents()
    return box.x0, box.x1


@pytest.mark.parametrize("case", MAKERS)
@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.__name__)
def test_names_and_words_fit_for_every_kind_of_result(figure, case, assert_fits):
    assert_fits(lambda ax: figure(result_of(case), ax=ax), (3.6, 3.2))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.__name__)
def test_results_of_other_functions_and_axes_without_room_are_refused(figure):
    with pytest.raises(ArgumentError, match=r"^result must be the result of anytime\(\), got dict\.$"):
        figure({})
    with pytest.raises(ArgumentError, match=r"^ax must be one matplotlib Axes with straight axes or None, got int\."):
        figure(result_of("two"), ax=3)
    with pytest.raises(ArgumentError, match=r"^ax is too small: a plot of .* needs larger axes, it is 0\.8 x 0\.4 in"):
        figure(result_of("five"), ax=_canvas.new_axes(0.8, 0.4))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.__name__)
def test_the_budget_axis_has_the_scale_of_the_result_and_a_tick_at_each_observed_budget(figure):
    for case, scale in (("two", "log"), ("linear", "linear"), ("narrow log", "log")):
        box = figure(result_of(case)).child_axes[-1]
        assert box.get_xscale() == scale == result_of(case).scale
        assert set(result_of(case).observed) <= {*box.get_xticks(), *box.get_xticks(minor=True)}
        assert len([label for label in box.get_xticklabels() if label.get_text()]) >= 2


# ------------------------------------------------------------------------------------------------- mean curves


@pytest.mark.parametrize(("step", "whole"), [(1, True), (1.01, False)])
def test_whole_budgets_have_whole_numbers_and_others_need_not(step, whole):
    budgets = step * np.arange(1.0, 22.0)
    axis = _axis(SimpleNamespace(budgets=budgets, observed=budgets, scale="linear"))
    box = _canvas.new_axes(8.0, 3.0)
    set_along(box, axis, 400.0, 9.0)
    assert (box.get_xticks() == box.get_xticks().round()).all() == whole


def test_curves_and_bands_are_the_numbers():
    result = result_of("five")
    box = anytime_plot(result).child_axes[0]
    for i, name in enumerate(result.algorithms):
        rows = result.curves[result.curves["algorithm"] == name]
        line, area = labelled(box, "_mean")[i], labelled(box, "_band")[i]
        assert list(line.get_xdata()) == list(result.budgets)
        assert list(line.get_ydata()) == approx(rows["mean"].to_list())
        corners = area.get_paths()[0].vertices
        assert corners[:, 1].min() == approx(rows["band_low"].min())
        assert corners[:, 1].max() == approx(rows["band_high"].max())
    assert {text.get_text() for text in box.texts} == set(result.algorithms)


def test_words_say_which_end_is_better_and_what_the_bands_hold_for():
    words = {text.get_text().replace("\u00a0", " ") for text in anytime_plot(result_of("two")).texts}
    assert "Mean loss (lower is better)" in words
    assert any(text.startswith("Bands: 95 % confidence for all algorithms and budgets at once") for text in words)
    words = " ".join(text.get_text() for text in anytime_plot(result_of("maximise")).texts)
    assert "(higher is better)" in words
    assert "there are no estimates between" in words


def test_names_are_at_the_height_of_the_ends_in_their_order_and_colour():
    result = result_of("five")
    box = anytime_plot(result).child_axes[0]
    last = dict(zip(result.algorithms, result.means()[:, -1], strict=True))
    heights = {text.get_text(): text.get_position()[1] for text in box.texts}
    assert sorted(heights, key=heights.__getitem__) == sorted(last, key=last.__getitem__)
    colours = {text.get_text(): text.get_color() for text in box.texts}
    assert colours == {name: _style.as_text(_style.colour(i)) for i, name in enumerate(result.algorithms)}


def test_of_many_algorithms_the_best_five_have_bands_and_the_others_are_grey():
    result = result_of("twenty")
    ax = anytime_plot(result)
    assert len(labelled(ax.child_axes[0], "_band")) == 5
    last = result.means()[:, -1] * (1 if result.direction == "minimize" else -1)
    best = {result.algorithms[i] for i in np.argsort(last)[:5]}
    front = {
        name
        for name, line in zip(result.algorithms, labelled(ax.child_axes[0], "_mean"), strict=True)
        if line.get_color() != _style.NEUTRAL
    }
    assert front == best
    assert "Grey, without bands: all but the 5 with the best means at the largest budget." in foot(ax)
    assert "=[" not in foot(ax)


def test_those_that_are_asked_for_have_bands():
    result = result_of("twenty")
    chosen = ["optimizer_03", "optimizer_11"]
    ax = anytime_plot(result, algorithms=chosen)
    assert len(labelled(ax.child_axes[0], "_band")) == 2
    coloured = {
        name
        for name, line in zip(result.algorithms, labelled(ax.child_axes[0], "_mean"), strict=True)
        if line.get_color() != _style.NEUTRAL
    }
    assert coloured == set(chosen)


def test_algorithms_must_be_names_of_the_result():
    with pytest.raises(ArgumentError) as caught:
        anytime_plot(result_of("two"), algorithms=["HB", "rs"])
    assert str(caught.value) == (
        "algorithms must name algorithms of the result, got 'rs'. Did you mean 'RS'? It has HB, RS."
    )
    with pytest.raises(ArgumentError, match=r"^algorithms must be a list of names or None, got 'HB'\. For one: alg"):
        anytime_plot(result_of("two"), algorithms="HB")


def test_a_curve_that_ends_earlier_is_named_at_the_edge():
    result = result_of("shorter")
    box = anytime_plot(result).child_axes[0]
    ends = {name: line.get_xdata()[np.isfinite(line.get_ydata())][-1] for name, line in
            zip(result.algorithms, labelled(box, "_mean"), strict=True)}  # fmt: skip
    assert ends["TPE"] == 21
    assert ends["HB"] == 120
    leads = labelled(box, "_lead")
    assert sorted(len(lead.get_xdata()) for lead in leads) == [2, 3, 3]


# ------------------------------------------------------------------------------------------------- differences


def test_differences_are_the_numbers_and_stretches_those_of_the_table():
    result = result_of("five")
    pairs = [("HB", "RS"), ("TPE", "BOHB")]
    ax = anytime_differences_plot(result, pairs=pairs)
    means = dict(zip(result.algorithms, result.means(), strict=True))
    for box, (left, right) in zip(ax.child_axes, pairs, strict=True):
        assert list(labelled(box, "_difference")[0].get_ydata()) == approx(list(means[left] - means[right]))
        table_ = result.differences[result.differences[["left", "right"]].isin((left, right)).all(axis=1)]
        half = (table_["band_high"] - table_["estimate"]).to_numpy()
        corners = labelled(box, "_band")[0].get_paths()[0].get_extents()
        assert (corners.y0, corners.y1) == approx(
            ((means[left] - means[right] - half).min(), (means[left] - means[right] + half).max())
        )
        own = result.stretches[result.stretches[["better", "worse"]].isin((left, right)).all(axis=1)]
        bars = {
            (*span_of(bar), to_hex(bar.get_facecolor()[0], keep_alpha=False).upper()) for bar in labelled(box, "_bar")
        }
        assert len(own) > 0
        expected = [
            (row["budget_from"], row["budget_to"], _style.ACCENT if row["better"] == left else _style.WARM)
            for row in own.to_dict("records")
        ]
        assert [b[2] for b in sorted(bars)] == [e[2] for e in sorted(expected)]
        for bar, wanted in zip(sorted(bars), sorted(expected), strict=True):
            assert bar[:2] == approx(wanted[:2])
        for line, (start, end, colour) in zip(labelled(box, "_shown"), expected, strict=True):
            assert (line.get_xdata()[0], line.get_xdata()[-1]) == approx((start, end))
            assert line.get_color() == colour


def test_a_pair_far_apart_does_not_flatten_the_others():
    runs = table(("HB", "RS", "worst"), (1, 3, 9))
    loss = runs.to_frame()
    loss.loc[loss[runs.algorithm] == "worst", runs.score] *= 1000.0
    result = anytime(lt.Runs(loss, **runs.roles()))
    ax = anytime_differences_plot(result)
    heights = {box.get_title(loc="left"): np.ptp(box.get_ylim()) for box in ax.child_axes}
    assert heights["HB − RS"] < 0.01 * heights["HB − worst"]
    assert any("Each panel has an axis of its own." in text.get_text() for text in ax.texts)
    rows = result.differences[(result.differences["left"] == "HB") & (result.differences["right"] == "RS")]
    assert heights["HB − RS"] < 3.0 * (rows["band_high"].max() - min(rows["band_low"].min(), 0.0))


def test_the_order_of_a_pair_turns_the_sign_and_the_colours():
    result = result_of("five")
    one, other = anytime_differences_plot(result, pairs=[("HB", "RS"), ("RS", "HB")]).child_axes
    values = [labelled(box, "_difference")[0].get_ydata() for box in (one, other)]
    assert list(values[0]) == approx(list(-values[1]))
    assert [box.get_title(loc="left") for box in (one, other)] == ["HB − RS", "RS − HB"]
    assert labelled(one, "_shown")[0].get_color() != labelled(other, "_shown")[0].get_color()


@pytest.mark.parametrize(("case", "above"), [("five", "RS better"), ("maximise", "HB better")])
def test_the_side_of_each_algorithm_follows_the_direction(case, above):
    box = anytime_differences_plot(result_of(case), pairs=[("HB", "RS")]).child_axes[0]
    words = sorted(box.texts, key=lambda text: -text.get_position()[1])
    assert words[0].get_text() == above
    assert {text.get_text(): text.get_color() for text in words} == {
        "HB better": _style.ACCENT,
        "RS better": _style.as_text(_style.WARM),
    }


def test_budgets_by_themselves_are_coloured_as_decided():
    result = result_of("maximise")
    left, right = (result.algorithms.index(name) for name in ("HB", "TPE"))
    box = anytime_differences_plot(result, pairs=[("HB", "TPE")]).child_axes[0]
    verdict = result.decisions[left, right]
    assert set(verdict) == {0, 1}
    shown = {line.get_color(): list(line.get_xdata()) for line in labelled(box, "_shown") if len(line.get_xdata())}
    assert shown == {_style.ACCENT: list(result.budgets[verdict == 1])}
    assert list(labelled(box, "_not_shown")[0].get_xdata()) == list(result.budgets[verdict == 0])
    assert len(labelled(box, "_bar")) == (verdict == 1).sum()


def test_of_many_pairs_the_clearest_six_are_drawn_and_panels_share_their_scale():
    result = result_of("twenty")
    ax = anytime_differences_plot(result)
    largest = result.differences.assign(t=result.differences["t_ratio"].abs()).groupby(["left", "right"])["t"].max()
    assert {box.get_title(loc="left") for box in ax.child_axes} == {" − ".join(p) for p in largest.nlargest(6).index}
    assert len({box.get_ylim() for box in ax.child_axes}) == 1
    assert "Drawn: of 190 pairs the 6 with the largest |t| at a budget." in foot(ax)
    assert "=[" not in foot(ax)


@pytest.mark.parametrize(("case", "drawn"), [("five", "Bands"), ("maximise", "Bars")])
def test_the_foot_of_differences_calls_the_intervals_what_they_look_like(case, drawn):
    ax = anytime_differences_plot(result_of(case))
    assert f"{drawn}: 95 % confidence for all 10 pairs" in foot(ax)
    assert ("Coloured" in foot(ax)) == any(labelled(box, "_bar") for box in ax.child_axes)


def test_a_foot_does_not_explain_a_colour_that_is_nowhere():
    ax = anytime_differences_plot(anytime(table(("HB", "RS"), n=3), columns=4), pairs=[("HB", "RS")])
    assert labelled(ax.child_axes[0], "_bar") == []
    assert "No algorithm is significantly better at any budget." in foot(ax)
    assert len(anytime_differences_plot(result_of("shorter")).child_axes) == 3


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("HB", "pairs must hold pairs of names, such as [('A', 'B')], got 'HB'."),
        (
            [],
            "pairs must hold pairs of names, such as [('A', 'B')], got none. pairs=None draws those that differ most.",
        ),
        (["HB"], "pairs must hold pairs of names, such as [('A', 'B')], got 'HB'."),
        ([("HB", "RS", "HB")], "pairs must hold pairs of names, such as [('A', 'B')], got ('HB', 'RS', 'HB')."),
        ([("HB", "HB")], "pairs must hold pairs of different algorithms, got ('HB', 'HB')."),
        ([("HB", "PB")], "pairs must name algorithms of the result, got 'PB'. It has HB, RS."),
    ],
)
def test_pairs_must_be_pairs_of_algorithms(pairs, message):
    with pytest.raises(ArgumentError) as caught:
        anytime_differences_plot(result_of("two"), pairs=pairs)
    assert str(caught.value).replace(" Did you mean 'HB'?", "") == message


# ------------------------------------------------------------------------------------------------- ribbon


@pytest.mark.parametrize("case", ["two", "five", "maximise", "twenty", "linear"])
def test_ribbon_and_strip_agree_where_standard_errors_are_equal(case):
    result = result_of(case)
    curves, _ = cd_ribbon(result).child_axes
    low, high = result.critical_difference()
    assert list(low) == approx(list(high), rel=1e-6)
    behind = np.array([line.get_ydata() for line in labelled(curves, "_behind")])
    assert (behind.min(axis=0) == 0.0).all()
    assert labelled(curves, "_ribbon_range") == []
    assert ((behind <= low) == result.candidates()).all()


@pytest.mark.parametrize("case", ["two", "maximise", "shorter"])
def test_rows_are_filled_as_the_decisions_say(case):
    result = result_of(case)
    _, strip = cd_ribbon(result).child_axes
    assert [text.get_text() for text in strip.texts] == rows_of(result)
    expected = {"_best": set(), "_candidate": set(), "_absent": set()}
    known, candidates = np.isfinite(result.means()), result.candidates()
    for row, name in enumerate(rows_of(result)):
        i = result.algorithms.index(name)
        for x in range(len(result.budgets)):
            others = known[:, x].sum() - 1
            best = known[i, x] and others > 0 and (result.decisions[i, :, x] == 1).sum() == others
            state = "_absent" if not known[i, x] else "_best" if best else "_candidate" if candidates[i, x] else None
            if state:
                expected[state].add((row, x))
    for label, cells in expected.items():
        drawn = set()
        for area in labelled(strip, label):
            extents = area.get_paths()[0].get_extents()
            inside = (result.budgets >= extents.x0 * (1 - 1e-9)) & (result.budgets <= extents.x1 * (1 + 1e-9))
            drawn |= {(int(extents.y0), int(x)) for x in np.flatnonzero(inside)}
        assert drawn == cells
    assert expected["_best"] or case == "maximise"


def rows_of(result):
    """Best mean of the curves over the axis first, among the budgets that all have."""
    means = result.means()
    everywhere = np.isfinite(means).all(axis=0)
    x = (np.log(result.budgets) if result.scale == "log" else result.budgets)[everywhere]
    heights = means[:, everywhere]
    total = ((heights[:, 1:] + heights[:, :-1]) / 2 * np.diff(x)).sum(axis=1)
    sign = 1.0 if result.direction == "minimize" else -1.0
    return [result.algorithms[i] for i in np.argsort(sign * total)]


def test_hatched_rows_have_no_scores_and_the_ribbon_ends_with_the_comparison():
    result = result_of("shorter")
    ax = cd_ribbon(result)
    curves, strip = ax.child_axes
    ends = sorted(span_of(area)[1] for area in labelled(strip, "_absent"))
    assert ends == approx([120.0, 120.0])
    assert span_of(labelled(curves, "_ribbon")[0])[1] == approx(55.0)
    key = [text.get_text() for text in ax.get_legend().get_texts()]
    assert key[-1] == "no scores"
    assert "no scores" not in [text.get_text() for text in cd_ribbon(result_of("two")).get_legend().get_texts()]


def test_unequal_standard_errors_widen_the_ribbon_and_are_told():
    result = result_of("five")
    assert "Standard errors differ" not in " ".join(text.get_text() for text in cd_ribbon(result).texts)
    differences = result.differences.copy()
    differences.loc[differences["left"] == "BOHB", "se"] *= 1.3
    uneven = replace(result)
    vars(uneven)["_made"] = {**result._made, "differences": differences}
    ax = cd_ribbon(uneven)
    assert "Standard errors differ between pairs" in " ".join(text.get_text() for text in ax.texts).replace("\n", " ")
    low, high = uneven.critical_difference()
    inner, outer = (labelled(ax.child_axes[0], label)[0].get_paths()[0] for label in ("_ribbon", "_ribbon_range"))
    assert inner.get_extents().y1 == approx(low.max())
    assert outer.get_extents().y1 == approx(high.max())


def test_of_many_algorithms_those_that_can_be_the_best_are_named():
    result = result_of("twenty")
    curves, strip = cd_ribbon(result).child_axes
    able = {name for name, anywhere in zip(result.algorithms, result.candidates().any(axis=1), strict=True) if anywhere}
    assert {text.get_text() for text in curves.texts} == able
    assert len(able) < 20
    assert {text.get_text() for text in strip.texts} == able  # rows of the others would be empty
    assert f"Grey, without a row: {20 - len(able)} that cannot be the best" in foot(cd_ribbon(result))


def test_losses_far_apart_have_a_logarithmic_axis():
    result = result_of("two")
    assert anytime_plot(result).child_axes[0].get_yscale() == "linear"
    curves = result.curves.copy()
    columns = ["mean", "band_low", "band_high"]
    curves[columns] = np.exp(3.0 * (curves[columns] - curves[columns].min().min()))
    wide = replace(result)
    vars(wide)["_made"] = {**result._made, "curves": curves}
    assert anytime_plot(wide).child_axes[0].get_yscale() == "log"
    assert anytime_plot(wide, y_scale="linear").child_axes[0].get_yscale() == "linear"
    vars(wide)["_made"] = {**result._made, "curves": curves.assign(band_low=-1.0)}
    assert anytime_plot(wide).child_axes[0].get_yscale() == "linear"
    with pytest.raises(
        ArgumentError, match=r"^y_scale='log' needs means and bands above zero\. Use y_scale='linear'\.$"
    ):
        anytime_plot(wide, y_scale="log")


def test_spans_join_neighbours_only_where_curves_go_on():
    points = np.array([1.0, 2.0, 4.0, 8.0])
    mask = np.array([True, True, False, True])
    joined = SimpleNamespace(budgets=points, observed=points, scale="log", columns="a curve")
    assert np.array(spans_of(joined, mask)) == approx(np.array([[1.0, 2.0 * 2**0.5], [4.0 * 2**0.5, 8.0]]))
    alone = SimpleNamespace(budgets=points, observed=points, scale="log", columns=None)
    spans = spans_of(alone, mask)
    assert len(spans) == 3
    assert spans[1] == approx((2.0 / 2**0.36, 2.0 * 2**0.36))
    low, high = _axis(alone).limits
    assert low <= spans[0][0] * (1 + 1e-12)
    assert spans[-1][1] <= high * (1 + 1e-12)
