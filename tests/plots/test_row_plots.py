"""Rows of marginal means, pairs and benchmark effects show the numbers of their results."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from figures import CASES, asides, lines, row_labels, words_below
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.core.words import format_p
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.plots import _style, benchmark_effects_plot, emmeans_plot, pairs_matrix_plot, pairs_plot

SIZES = [None, (4.5, 4.0)]
WIDE = ("two", "twenty", "long names")  # drawn in a new figure too


def axes_of(size):
    return None if size is None else Figure(figsize=size).subplots()


@pytest.mark.parametrize("case", CASES)
def test_marginal_means_are_readable(make, assert_readable, case):
    means = make.means(*make.cases[case])
    for size in SIZES if case in WIDE else SIZES[-1:]:
        assert_readable(emmeans_plot(means, ax=axes_of(size)))


def test_words_that_would_break_below_the_axis_take_the_width_of_the_figure(make):
    names = [f"a name of many words and a number {i}" for i in range(5)]
    means = dataclasses.replace(make.means(names, np.arange(5.0), np.ones(5)), score="test value")
    narrow, wide = (emmeans_plot(means, intervals="mean", width=width) for width in ("column", "page"))
    for ax in (narrow, wide):
        ax.figure.draw_without_rendering()
        label = ax.xaxis.label
        box = label.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= ax.figure.bbox.x1
    assert narrow.xaxis.label.get_window_extent().width > 0.8 * narrow.figure.bbox.width
    assert words_below(narrow) == words_below(wide)


def test_rows_cells_and_labels_are_parts_of_their_algorithms(make):
    pairs = make.pairs(*make.cases["three"], direction=None)
    ax = pairs_plot(pairs)
    names = list(zip(pairs.table["left"], pairs.table["right"], strict=True))
    veils = [patch for patch in ax.patches if patch.get_label() == "_veil"]
    assert [veil.get_gid() for veil in veils] == [_style.part(*pair).replace("part", "veil", 1) for pair in names]
    assert [label.get_gid() for label in ax.get_yticklabels()] == [_style.part(*pair) for pair in names]
    assert {veil.get_alpha() for veil in veils} == {0.0}
    cells = [patch.get_gid() for patch in pairs_matrix_plot(pairs).patches if patch.get_label() == "_veil"]
    told = {frozenset(bytes.fromhex(one).decode() for one in gid.removeprefix("veil-").split(".")) for gid in cells}
    assert told == set(map(frozenset, names))


@pytest.mark.parametrize("direction", ["minimize", "maximize", None])
def test_marginal_means_are_dots_with_their_intervals_best_first(make, direction):
    em = make.means(*make.cases["five"], direction=direction)
    ax = emmeans_plot(em, intervals="mean")
    sign = {"minimize": 1, "maximize": -1, None: 0}[direction]
    order = np.argsort(sign * em.estimate, kind="stable")
    assert row_labels(ax) == [em.labels()[i] for i in order]
    (dots,) = lines(ax, "_estimates")
    at = dict(zip(dots.get_ydata(), dots.get_xdata(), strict=True))
    np.testing.assert_array_equal([at[row] for row in range(5)], em.estimate[order])
    spans = {line.get_ydata()[0]: line.get_xdata() for line in lines(ax, "_interval")}
    np.testing.assert_array_equal([spans[row][0] for row in range(5)], em.ci_low[order])
    np.testing.assert_array_equal([spans[row][1] for row in range(5)], em.ci_high[order])
    assert ax.yaxis_inverted()


def test_by_default_the_intervals_are_those_to_compare_means_by(make):
    em = make.means(*make.cases["five"])
    ax = emmeans_plot(em)
    want = em.pairs().comparison_intervals().to_frame().set_index("level").loc[row_labels(ax)]
    spans = {line.get_ydata()[0]: line.get_xdata() for line in lines(ax, "_interval")}
    np.testing.assert_array_equal([spans[row] for row in range(5)], want[["ci_low", "ci_high"]])
    label = words_below(ax)
    assert "No overlap: significant difference (Tukey, α = 0.05)." in label
    bonferroni = em.pairs(adjust="bonferroni", alpha=0.01)
    words = words_below(emmeans_plot(em, pairs=bonferroni))
    assert "(Bonferroni, α = 0.01)" in words
    with pytest.raises(ArgumentError, match=r"^pairs must be the result of em\.pairs\(\), of the same means\.$"):
        emmeans_plot(em, pairs=make.pairs(*make.cases["two"]))


def test_pairs_that_cannot_be_drawn_as_overlap_are_counted(make):
    em = make.means(tuple("ABCD"), (0.0, 1.22, 5.0, 9.0), (0.3, 0.3, 0.01, 0.01))
    odd = em.pairs().comparison_intervals()
    assert len(odd.exceptions) > 0
    words = words_below(emmeans_plot(em))
    assert f"but for {len(odd.exceptions)} of 6 pairs" in words


def test_groups_have_their_own_colour_and_lane_and_a_legend_that_hides_nothing(make, assert_readable):
    em = make.means(("HB", "PB"), (1.0, 2.0, 1.5, np.nan), 0.1, groups=("_good", "$bad$"))
    ax = emmeans_plot(em)
    assert_readable(ax)
    series = lines(ax, "_estimates")
    assert len({to_hex(line.get_color()) for line in series}) == len({line.get_marker() for line in series}) == 2
    heights = np.concatenate([line.get_ydata() for line in series])
    assert len(set(heights)) == 4
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["prior = _good", "prior = $bad$"]
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 1


def test_many_groups_with_long_names_are_readable(make, assert_readable):
    groups = [f"group with quite a long name, number {i}" for i in range(9)]
    means = np.random.default_rng(2).normal(size=27)
    assert_readable(emmeans_plot(make.means(tuple("ABC"), means, 0.3, groups=groups)))


def test_a_mean_that_is_missing_says_so(make, texts_of):
    em = make.means(*make.cases["missing"])
    ax = emmeans_plot(em)
    assert row_labels(ax) == ["A", "C", "D", "B"]
    assert [text.get_text() for text in texts_of(ax)].count("not estimable") == 1
    assert len(lines(ax, "_interval")) == 3


@pytest.mark.parametrize(("case", "size"), [("five", 5), ("twenty", 20)])
def test_letters_of_a_few_and_ranks_of_many_come_from_the_decisions(make, assert_readable, case, size):
    em, sep = make.means(*make.cases[case]), make.decisions(*make.cases[case])
    ax = emmeans_plot(em, decisions=sep)
    assert_readable(ax)
    shown = {text.xy[1]: text.get_text() for text in asides(ax)}
    ranks = [f"{low}–{high}" if low < high else f"{low}" for low, high in zip(sep.rank_low, sep.rank_high, strict=True)]
    words = words_below(ax)
    assert ("At the right: the ranks that" if size > 12 else "Means that share a letter: no significant") in words
    assert [shown[row] for row in range(size)] == (ranks if size > 12 else [sep.letters[level] for level in sep.levels])
    assert row_labels(ax) == list(sep.levels)


def test_axis_label_names_response_level_and_direction(make):
    label = words_below(emmeans_plot(make.means(*make.cases["two"]), intervals="mean"))
    assert label == "Marginal mean of value (lower is better) Individual 95 % intervals."


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("twenty",)])
def test_pairs_are_readable(make, assert_readable, case):
    pairs = make.pairs(*make.cases[case])
    for size in (None, (5.0, 5.0)) if case in WIDE else ((5.0, 5.0),):
        assert_readable(pairs_plot(pairs, ax=axes_of(size)))


def test_pairs_show_difference_interval_decision_and_p(make):
    pw = make.pairs(*make.cases["five"], direction=None)
    table = pw.to_frame()
    ax = pairs_plot(pw)
    assert row_labels(ax) == [f"{a} − {b}" for a, b in zip(table["left"], table["right"], strict=True)]
    for line in lines(ax, "_estimates"):
        significant = to_hex(line.get_color()) == to_hex(_style.ACCENT)
        part = table[(table["p_value"] < 0.05) == significant]
        np.testing.assert_array_equal(line.get_xdata(), part["estimate"])
        np.testing.assert_array_equal(line.get_ydata(), part.index)
    spans = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in lines(ax, "_interval")}
    assert [spans[row] for row in table.index] == list(zip(table["ci_low"], table["ci_high"], strict=True))
    shown = {text.xy[1]: text.get_text() for text in asides(ax) if text.get_text() != "p-value"}
    assert [shown[row] for row in table.index] == [format_p(p) for p in table["p_value"]]
    assert lines(ax, "_reference")[0].get_xdata()[0] == 0.0


@pytest.mark.parametrize(("direction", "sign"), [("minimize", -1), ("maximize", 1)])
def test_of_pairs_with_a_direction_the_better_mean_comes_first(make, direction, sign):
    em = make.means(("A", "B", "C"), (3.0, 1.0, 2.0), 0.2, direction=direction)
    pairs = em.pairs()
    ax = pairs_plot(pairs)
    best = ("B", "C", "A") if direction == "minimize" else ("A", "C", "B")
    assert row_labels(ax) == [f"{best[i]} − {best[j]}" for i, j in ((0, 1), (0, 2), (1, 2))]
    at = {
        dots.get_ydata()[i]: dots.get_xdata()[i]
        for dots in lines(ax, "_estimates")
        for i in range(len(dots.get_ydata()))
    }
    assert [at[row] for row in range(3)] == pytest.approx([sign, 2 * sign, sign])
    table = pairs.to_frame().set_index(["left", "right"])
    spans = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in lines(ax, "_interval")}
    for row, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        known = (best[i], best[j]) in table.index
        low, high = table.loc[(best[i], best[j]) if known else (best[j], best[i]), ["ci_low", "ci_high"]]
        assert spans[row] == pytest.approx((low, high) if known else (-high, -low))
    assert f"({'negative' if sign < 0 else 'positive'}: the first is better)" in words_below(ax)


def test_a_map_of_twenty_long_names_fits_a_column(make, assert_readable):
    names = [f"an algorithm with a long name and the number {i}" for i in range(20)]
    pairs = make.pairs(names, np.arange(20.0), 0.2)
    ax = pairs_matrix_plot(pairs, width="column")
    assert_readable(ax)
    assert ax.figure.get_size_inches()[0] == 3.3
    key = words_below(ax)
    assert all(name in key or name in {label.get_text() for label in ax.get_xticklabels()} for name in names)
    (scale,) = ax.child_axes
    assert scale.get_position().y0 > ax.get_position().y1  # above the map
    (wide,) = pairs_matrix_plot(pairs, width="page").child_axes
    assert wide.get_position().height > wide.get_position().width


def test_pairs_in_groups_have_headings(make, assert_readable):
    pw = make.pairs(("HB", "PB", "RS"), (1, 2, 3, 1.5, 1.6, np.nan), 0.2, groups=("good", "bad"))
    ax = pairs_plot(pw)
    assert_readable(ax)
    assert row_labels(ax)[::4] == ["prior = good", "prior = bad"]
    assert len(lines(ax, "_interval")) == 4


def test_too_many_pairs_are_drawn_as_a_matrix_or_asked_for_by_group(make):
    pairs = make.pairs(*make.cases["twenty"])
    assert row_labels(pairs_plot(pairs)) == row_labels(pairs_matrix_plot(pairs))
    names = [f"m{i}" for i in range(10)]
    grouped = make.pairs(names, range(20), 0.2, groups=("good", "bad"))
    rule = "pairs_plot draws at most 66 differences in groups, got 90. Select one group: pairs.select(prior='good')."
    with pytest.raises(ArgumentError, match=f"^{re.escape(rule)}$"):
        pairs_plot(grouped)


@pytest.mark.parametrize("case", CASES)
def test_the_matrix_is_readable(make, assert_readable, case):
    pairs = make.pairs(*make.cases[case])
    for size in (None, (5.0, 4.0)) if case in WIDE else ((5.0, 4.0),):
        assert_readable(pairs_matrix_plot(pairs, ax=axes_of(size)))


@pytest.mark.parametrize("direction", ["minimize", "maximize", None])
def test_the_matrix_shows_by_how_much_the_better_mean_is_better(make, direction):
    em = make.means(*make.cases["five"], direction=direction)
    pw = make.pairs(*make.cases["five"], direction=direction)
    ax = pairs_matrix_plot(pw)
    order = np.argsort(em.estimate if direction != "maximize" else -em.estimate)
    names = [em.labels()[i] for i in order]
    assert row_labels(ax) == names[1:]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names[:-1]
    p = {frozenset((r.left, r.right)): r.p_value for r in pw.to_frame().itertuples()}
    values = next(mesh for mesh in ax.collections if mesh.get_label() == "_cells").get_array()
    cells = {text.get_position(): text.get_text() for text in ax.texts}
    assert len(cells) == 10
    for row in range(4):
        for column in range(row + 1):
            gap = abs(em.estimate[order[row + 1]] - em.estimate[order[column]])
            chance = p[frozenset((names[row + 1], names[column]))]
            assert bool(np.ma.getmaskarray(values)[row, column]) == (not chance < 0.05)
            if chance < 0.05:
                assert values[row, column] == pytest.approx(gap, rel=1e-12)
            assert cells[column, row].split("\n")[0] == f"{gap:.2f}"


def test_the_matrix_is_for_one_group(make):
    pw = make.pairs(("HB", "PB"), (1, 2, 1.5, 1.6), 0.2, groups=("good", "bad"))
    with pytest.raises(ArgumentError, match=re.escape("Select one first: pairs.select(prior='good').")):
        pairs_matrix_plot(pw)
    assert len(pairs_matrix_plot(pw.select(prior="bad")).texts) == 1


@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 2), (5.0, 5.0)), ((12, 3), None), ((12, 7), (5.0, 5.0)), ((36, 20), None), ((36, 20), (12.0, 9.0))],
)
def test_effects_are_readable(make, assert_readable, shape, size):
    assert_readable(benchmark_effects_plot(make.effects(*shape), direction="minimize", ax=axes_of(size)))


def test_effects_are_drawn_as_intervals_or_as_a_map(make):
    table = make.effects(12, 3)
    dots = lines(benchmark_effects_plot(table), "_estimates")
    for name, line in zip(["alg_0", "alg_1", "alg_2"], dots, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), table.loc[table["algorithm"] == name, "effect"])
    ax = benchmark_effects_plot(table, kind="heatmap")
    cells = {text.get_position(): text for text in ax.texts}
    for index, row in enumerate(table.itertuples()):
        text = cells[index % 3, index // 3]
        assert float(text.get_text().replace("−", "-")) == pytest.approx(row.effect, abs=0.005 + 1e-12)
        assert (text.get_fontweight() == "bold") == (row.ci_low > 0 or row.ci_high < 0)


@pytest.mark.parametrize("size", [(3.3, 5.0), (7.0, 8.0)])
@pytest.mark.parametrize("algorithms", [2, 5, 20])
def test_the_foot_of_a_map_names_the_mark_that_is_drawn(make, algorithms, size):
    table = make.effects(36, algorithms)
    clear = (table["ci_low"] > 0) | (table["ci_high"] < 0)
    ax = benchmark_effects_plot(table, kind="heatmap", ax=axes_of(size))
    bold = {(y, x) for x, y in (text.get_position() for text in ax.texts if text.get_fontweight() == "bold")}
    dots = {(y, x) for c in ax.collections if c.get_label() == "_emphasised" for x, y in c.get_offsets()}
    found, mark = (bold, "Bold") if ax.texts else (dots, "Dot")
    assert {(i // algorithms, i % algorithms) for i in np.flatnonzero(clear)} == found
    assert words_below(ax) == f"{mark}: the interval excludes zero."
    nowhere = benchmark_effects_plot(table.assign(ci_low=-9.0, ci_high=9.0), kind="heatmap", ax=axes_of(size))
    assert words_below(nowhere) == "Every interval shown includes zero."


@pytest.mark.parametrize("kind", ["intervals", "heatmap"])
def test_of_many_benchmarks_those_with_the_largest_effects_are_drawn(make, assert_readable, kind):
    table = make.effects(120, 3)
    table.loc[0, "effect"] = np.nan
    ax = benchmark_effects_plot(table, kind=kind)
    size = table["effect"].abs().groupby(table["benchmark"], sort=False).max()
    largest = set(size.nlargest(60).index)
    assert row_labels(ax) == [name for name in size.index if name in largest]
    words = words_below(ax)
    assert words.endswith("60 of 120 benchmarks, those with smaller effects, are left out.")
    assert_readable(ax)
    whole = benchmark_effects_plot(table, kind=kind, max_rows=120)
    assert row_labels(whole) == list(size.index)
    assert "left out" not in words_below(whole)
    assert min(tick.get_fontsize() for tick in whole.get_yticklabels()) >= 6
    assert_readable(whole)


def test_rows_get_thinner_before_a_figure_outgrows_its_page(make):
    heights = {n: benchmark_effects_plot(make.effects(n, 1)).figure.get_size_inches()[1] for n in (10, 30, 45, 60)}
    assert heights[10] < heights[30] < heights[45] == heights[60] == 9.5


@pytest.mark.parametrize("kind", ["intervals", "heatmap"])
def test_missing_effects_are_shown_as_missing(make, assert_readable, texts_of, kind):
    table = make.effects(3, 3).drop(index=4)
    table.loc[0, ["effect", "ci_low", "ci_high"]] = np.nan
    ax = benchmark_effects_plot(table, kind=kind)
    assert_readable(ax)
    texts = [text.get_text() for text in texts_of(ax)]
    assert texts.count("not estimable" if kind == "intervals" else "–") == (1 if kind == "intervals" else 2)


def test_blue_is_better(make):
    table = make.effects(3, 3)
    maps = [benchmark_effects_plot(table, kind="heatmap", direction=d) for d in ("minimize", "maximize")]
    ends = [next(m for m in ax.collections if m.get_label() == "_cells").cmap([0.0, 1.0]) for ax in maps]
    assert ends[0][0][2] > ends[0][0][0]
    assert ends[1][1][2] > ends[1][1][0]


def test_wrong_arguments_are_refused(make):
    table = make.effects(2, 2)
    with pytest.raises(ArgumentError, match=re.escape("em must be the result of emmeans(), got NoneType.")):
        emmeans_plot(None)
    with pytest.raises(ArgumentError, match=re.escape("pairs must be the result of pairs(), got DataFrame.")):
        pairs_plot(table)
    with pytest.raises(ArgumentError, match=re.escape("decisions must come from the pairs of em, but em has HB, PB")):
        emmeans_plot(make.means(*make.cases["two"]), decisions=make.decisions(*make.cases["three"]))
    grouped = make.means(("HB", "PB"), (1, 2, 1.5, 1.6), 0.2, groups=("good", "bad"))
    with pytest.raises(ArgumentError, match="em has groups by prior"):
        emmeans_plot(grouped, decisions=make.decisions(*make.cases["two"]))
    with pytest.raises(ArgumentError, match=r"^kind must be 'auto' or .*, got 'bars'"):
        benchmark_effects_plot(table, kind="bars")
    with pytest.raises(ArgumentError, match=r"^direction must be 'minimize' or 'maximize', got 'up'"):
        benchmark_effects_plot(table, direction="up")
    with pytest.raises(UnknownColumnError, match="'ci_low' is not in benchmark, algorithm, effect, ci_high"):
        benchmark_effects_plot(table.drop(columns="ci_low"))
    with pytest.raises(ArgumentError, match="got several for 'LC-167190' and 'alg_0'"):
        benchmark_effects_plot(table.iloc[[0, 0]])
    with pytest.raises(ArgumentError, match="at least one row"):
        benchmark_effects_plot(table.iloc[:0])


@pytest.mark.parametrize("draw", ["emmeans", "pairs", "matrix", "effects", "map"])
def test_a_plot_stays_in_the_axes_it_was_given_whatever_lays_them_out(make, assert_readable, draw):
    with pytest.raises(ArgumentError, match="ax is too small"):
        plot(make, draw, Figure(figsize=(1.2, 0.5)).subplots())
    axes = Figure(figsize=(12, 6)).subplots(1, 2)
    slot = axes[0].get_window_extent().frozen()
    assert plot(make, draw, axes[0]) is axes[0]
    low, high = axes[0].get_tightbbox().get_points()
    assert (low >= slot.p0 - 0.5).all()
    assert (high <= slot.p1 + 0.5).all()
    assert not axes[1].has_data()
    ax = Figure(figsize=(9, 6), layout="constrained").subplots()
    plot(make, draw, ax)
    assert_readable(ax)


def plot(make, draw, ax):
    five = make.cases["five"]
    return {
        "emmeans": lambda: emmeans_plot(make.means(*five), decisions=make.decisions(*five), ax=ax),
        "pairs": lambda: pairs_plot(make.pairs(*five), ax=ax),
        "matrix": lambda: pairs_matrix_plot(make.pairs(*five), ax=ax),
        "effects": lambda: benchmark_effects_plot(make.effects(6, 3), ax=ax),
        "map": lambda: benchmark_effects_plot(make.effects(6, 3), kind="heatmap", ax=ax),
    }[draw]()


def test_a_pair_without_a_test_is_called_undecided_and_not_insignificant(make, texts_of):
    pw = make.pairs(("A", "B", "C"), (1.0, 1.5, 3.0), 0.1)
    untested = dataclasses.replace(pw, table=pw.table.assign(p_value=pw.table["p_value"].where([True, False, True])))
    cells = [text.get_text() for text in texts_of(pairs_matrix_plot(untested))]
    assert sum(text.endswith("no test") for text in cells) == 1
    assert "1 of 3 pairs has no test: undecided." in " ".join(" ".join(cells).split())
    rows = [text.get_text() for text in texts_of(pairs_plot(untested))]
    assert "no test" in rows
    assert not any("no test" in text.get_text() for text in texts_of(pairs_matrix_plot(pw)))


def test_effects_of_a_result_begin_with_the_largest_and_with_the_best_algorithm():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good", model="svm")
    effects = lt.benchmark_effects(runs)
    ax = benchmark_effects_plot(effects, kind="heatmap")
    largest = effects.table["estimate"].abs().groupby(effects.table["benchmark"]).max()
    assert row_labels(ax) == largest.sort_values(ascending=False).index.tolist()
    overall = effects.table.groupby("algorithm")["overall"].first().sort_values()
    assert [label.get_text().replace("\n", "") for label in ax.get_xticklabels()] == overall.index.tolist()
    assert ax.child_axes[0].get_ylabel().replace("\n", " ").endswith("(in loss, negative is better)")


def test_rows_of_pairs_name_the_kind_of_their_intervals_and_p_values_have_the_digits_of_the_level():
    runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    for adjust, kind in (
        ("tukey", "Simultaneous 95 % intervals (Tukey"),
        ("none", "Individual 95 % intervals (unadjusted"),
        ("holm", "95 % intervals of the step-down tests (Holm"),
    ):
        drawn = pairs_plot(means.pairs(adjust=adjust))
        assert kind in words_below(drawn).replace("\u00a0", " "), adjust
    steps = words_below(pairs_plot(means.pairs(adjust="stepdown")))
    assert steps.count("step-down") == 1
    p = float(means.pairs(adjust="none").to_frame()["p_value"].median())
    near = round(p, 4) + 1e-4  # a level that three decimals do not part from this p-value
    drawn = pairs_plot(means.pairs(adjust="none", alpha=near))
    assert format_p(p, level=near) in {text.get_text() for text in asides(drawn)}
