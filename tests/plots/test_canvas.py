"""Where figures come from, what stays untouched, and the text kit."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from lmemtest.plots import _canvas, _layout, _names, _style, cd_diagram, detached_figures, emmeans_plot

CHECK = """
import sys
import lmemtest.plots
assert not any(name.startswith("matplotlib") for name in sys.modules), "matplotlib is loaded too early"
from lmemtest.plots._canvas import new_axes
ax = new_axes(3, 2)
ax.figure.canvas.draw()
assert "matplotlib.pyplot" not in sys.modules, "pyplot is loaded without need"
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
assert plt.get_fignums() == []
ax = new_axes(3, 2)
assert plt.figure(plt.get_fignums()[0]) is ax.figure
with lmemtest.plots.detached_figures():
    new_axes(3, 2)
assert len(plt.get_fignums()) == 1
"""


def test_matplotlib_loads_with_the_first_figure_and_pyplot_only_if_in_use():
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_figures_are_listed():
    import re
    from pathlib import Path

    import lmemtest.plots

    folder = Path(lmemtest.plots.__file__).parent
    defined = {
        name
        for path in folder.glob("*.py")
        for name in re.findall(
            r"^def ([a-z]\w*(?:_plot|_diagrams?|_tikz|_ribbon))\(", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert defined | {"detached_figures", "gallery"} == set(lmemtest.plots.__all__)
    assert set(lmemtest.plots.gallery().figures["figure"]) == defined - {"cd_diagram_tikz"}


def test_a_notebook_gets_a_pyplot_figure(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not _canvas._pyplot_in_use()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))
    assert _canvas._pyplot_in_use()


def test_detached_figures_ends_with_its_block():
    before = _canvas._detached.get()
    with detached_figures():
        assert _canvas._detached.get()
    assert _canvas._detached.get() == before


@pytest.mark.parametrize("style", ["default", "ggplot", "dark_background", "seaborn-v0_8-whitegrid"])
def test_style_sheets_neither_hide_nor_clip_anything(make, assert_readable, style):
    path = mpl.get_data_path() + f"/stylelib/{style}.mplstyle"
    with mpl.rc_context(fname=None if style == "default" else path):
        before = mpl.rcParams.copy()
        ax = cd_diagram(make.decisions(*make.cases["three"]))
        assert_readable(ax)
        assert mpl.rcParams.copy() == before
        assert ax.figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("setting", ["figure.constrained_layout.use", "figure.autolayout"])
def test_layout_settings_do_not_move_new_figures(make, assert_readable, setting):
    with mpl.rc_context({setting: True}):
        ax = emmeans_plot(make.means(*make.cases["long names"]))
        place = ax.get_position().bounds
        assert_readable(ax)
    assert ax.get_position().bounds == place


def test_large_fonts_are_followed(make, assert_readable):
    with mpl.rc_context({"font.size": 18}):
        ax = cd_diagram(make.decisions(*make.cases["five"]))
        assert_readable(ax)
    assert max(text.get_fontsize() for text in ax.texts) == pytest.approx(0.9 * 18)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_figures_save_in_every_format(make, tmp_path, kind):
    ax = cd_diagram(make.decisions(*make.cases["long names"]))
    ax.figure.savefig(tmp_path / f"figure.{kind}")
    assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


def test_svg_contains_no_markup_from_names(make, tmp_path):
    ax = cd_diagram(make.decisions(("<script>x</script>", "&amp;"), (1.0, 2.0), 0.1))
    with mpl.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_ticks_enclose_or_lie_inside_and_never_touch():
    ax = Figure(figsize=(6, 2)).subplots()
    ruler = _style.Ruler(ax, 9)
    rng = np.random.default_rng(4)
    for _ in range(60):
        low = rng.normal() * 10.0 ** rng.integers(-8, 8)
        high = low + abs(rng.normal()) * 10.0 ** rng.integers(-8, 8) + 1e-9 * abs(low)
        for cover in (True, False):
            values, labels = _layout.choose_ticks(low, high, 300.0, ruler, cover=cover)
            assert len(set(labels)) == len(labels)
            slack = 1e-6 * (high - low)
            if cover:
                assert values[0] <= low + slack
                assert values[-1] >= high - slack
            else:
                assert values[0] >= low - slack
                assert values[-1] <= high + slack


def test_shortened_names_fit_and_stay_distinct():
    ruler = _style.Ruler(Figure().subplots(), 9)
    names = ["short", "x" * 80, "x" * 79 + "y", "y" + "x" * 79, "x" * 40 + "y" + "x" * 39]
    short = _names.shorten(names, 60.0, ruler)
    assert short[0] == "short"
    assert len(set(short)) == len(names)
    assert ruler.widest(short) <= 60.0


@pytest.mark.parametrize("size", [6.0, 6.5, 7.0, 7.5, 8.0, 9.0])
def test_small_text_is_not_wider_at_another_resolution_than_its_ruler_says(size):
    text = "[5] benchmark 02 of the suite (OpenML 167192): all pairs differ significantly (step-down, moderated)"
    figure = Figure()
    ruler = _style.Ruler(figure.subplots(), size)
    written = figure.text(0, 0, text, **_style.text_style(size))
    for dpi in (72, 96, 100, 110, 150, 200, 300, 600):
        figure.set_dpi(dpi)
        assert written.get_window_extent().width * 72 / dpi <= ruler.width(text), dpi


def test_long_words_are_broken_after_their_signs():
    ruler = _style.Ruler(Figure().subplots(), 9)
    name = "very_long_optimizer_name_00_with_prior_and_restart"
    lines = _style.wrap(f"Bands. [1]\u00a0{name}. 95 % of all", ruler.width("very_long_optimizer_name_00"), ruler)
    assert lines[:3] == ["Bands. [1]\u00a0very_long_", "optimizer_name_00_with_", "prior_and_restart. 95 % of all"]
    assert _style.wrap("lies in 95 % of all", ruler.width("lies in 95"), ruler)[0] == "lies in"


def test_a_legend_of_names_on_two_lines_is_as_high_as_it_is_drawn():
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(3.3, 4))
    ax, size = figure.subplots(), 8.0
    names = [f"AutoGluon of the best quality for {n} hours" for n in range(1, 6)]
    written, columns, rows, key = _layout.legend_rows(names, 150.0, _style.Ruler(ax, size))
    assert (columns, key) == (1, [])
    _layout.draw_legend(ax, [Line2D([], []) for _ in names], written, columns, size)
    for dpi in (72, 100, 150):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        high = ax.get_legend().get_window_extent().height * 72 / dpi
        assert 0.85 * rows <= high / (_layout.KEY_LINE * size) <= rows


def test_wrapped_lines_fit_and_keep_the_words():
    ruler = _style.Ruler(Figure().subplots(), 9)
    text = "Marginal means of value. " + _style.nobreak("p < 0.05") + " and so on, and so forth"
    lines = _style.wrap(text, 90.0, ruler)
    assert " ".join(lines) == text
    assert ruler.widest(lines) <= 90.0


def test_no_line_ends_beside_a_sign_between_two_words():
    ruler = _style.Ruler(Figure().subplots(), 9)
    text = "a band of intervals for n = 20 scores, with p < 0.05 where k ≥ 3"
    for room in range(60, 200, 5):
        lines = _style.wrap(text, room, ruler)
        assert " ".join(lines) == text
        assert not [line for line in lines if line[0] in "=<≥" or line[-1] in "=<≥"], room


def test_characters_without_a_glyph_are_written_as_codes():
    assert _style.one_line("\U0010fffd a\x00") == "<U+10FFFD> a<U+0000>"
    assert _style.one_line("naïve Ω кириллица — №") == "naïve Ω кириллица — №"


@pytest.mark.parametrize("high", [1.0, 3.0, 5.1, 6.0, 9.0, 10.2, 26.0, 51.0, 130.0, 4000.0])
@pytest.mark.parametrize("room", [40.0, 150.0, 450.0])
def test_axes_that_count_have_whole_ticks(high, room):
    ruler = _style.Ruler(Figure().subplots(), 9.0)
    values, labels = _layout.choose_ticks(0.0, high, room, ruler, cover=False, whole=True)
    assert [float(label) for label in labels] == [round(value) for value in values]
    assert len(set(labels)) == len(labels) >= 1
    assert min(values) >= 0
    assert max(values) <= high


def test_axes_that_count_nothing_keep_their_halves():
    ruler = _style.Ruler(Figure().subplots(), 9.0)
    assert 2.5 in _layout.choose_ticks(0.0, 20.4, 380.0, ruler, cover=False)[0]
    assert 2.5 not in _layout.choose_ticks(0.0, 20.4, 380.0, ruler, cover=False, whole=True)[0]


def test_a_range_without_a_whole_number_still_has_a_tick():
    ruler = _style.Ruler(Figure().subplots(), 9.0)
    assert _layout.choose_ticks(5.2, 5.8, 100.0, ruler, cover=False, whole=True)[0] == (5.5,)
    assert _layout.choose_ticks(5.2, 6.1, 100.0, ruler, cover=False, whole=True)[0] == (6.0,)


def test_chinese_lines_are_summed_from_pairs_each_laid_out_once(monkeypatch):
    laid_out, original = [], _style.Ruler._laid_out
    monkeypatch.setattr(_style.Ruler, "_laid_out", lambda self, line: (laid_out.append(line), original(self, line))[1])
    ruler = _style.Ruler(Figure().subplots(), 9.7)
    name = "贝叶斯优化与随机搜索（第二版）"
    whole = max(ruler.width(name[at:] + name[:at] + " v1") for at in range(len(name)))
    assert whole > 10 * 9.7
    assert max(map(len, laid_out)) == 2


@pytest.mark.parametrize("size", [4.0, 6.25, 9.0, 16.2])
@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_widths_are_those_of_the_layout(size, weight):
    figure = Figure(dpi=100)
    ruler = _style.Ruler(figure.subplots(), size, fontweight=weight)
    rng = np.random.default_rng(8)
    alphabet = [*map(chr, range(32, 127)), *"äöüßéçåøÆŁžř…−–—№ΩμαΔ≤×кириЖЮя“”½²°é\u0301\u0308"]
    words = ["office", "fluffy", "affinity", "AVATAR", "To", "Type", "ffl", "fjord", "漢字", "שלום"]
    texts = [
        *("".join(rng.choice(alphabet, 40)) for _ in range(20)),
        *(" ".join(rng.choice(words, 6)) for _ in range(20)),
    ]
    for text in map(_style.one_line, texts):
        whole = Text(0, 0, text, **_style.text_style(size, fontweight=weight, **_style.font_for([text])))
        whole.set_figure(figure)
        want = whole.get_window_extent().width
        got = ruler.width(text) * 100 / 72 / ruler.slack
        assert got == pytest.approx(want, rel=0.005, abs=1.0), text


def test_a_name_is_fitted_without_laying_out_its_cuts(monkeypatch):
    ruler = _style.Ruler(Figure().subplots(), 7.1)
    calls = []
    lay_out = RendererAgg.get_text_width_height_descent
    monkeypatch.setattr(
        RendererAgg, "get_text_width_height_descent", lambda self, s, *rest: calls.append(s) or lay_out(self, s, *rest)
    )
    names = [f"a benchmark with a long name, number {i:03d} of many" for i in range(300)]
    _names.shorten(names, 90.0, ruler)
    assert max(map(len, calls)) <= 2  # pairs of letters, each once
    assert len(calls) == len(set(calls)) < 300


NAMES = [
    "optimizer=bayesian,kernel=matern52,acquisition=lognei,init=sobol",
    "iiiiiiiiiiiiWWWWWWWWWWWW",
    "a b  c d e f",
    "ü" * 30,
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("head", [0.5, 0.75, 0.25, 1.0, 0.0])
def test_the_most_characters_that_fit_are_kept(name, head):
    ruler = _style.Ruler(_canvas.scratch_axes(), 9.0)
    for room in np.linspace(5.0, ruler.width(name) - 1.0, 9):
        cuts = [_names._cut(name, keep, head) for keep in range(len(name))]
        fitting = [cut for cut in cuts if ruler.width(cut) <= room] or cuts[:1]
        assert _names.ellipsis(name, room, ruler, head) == fitting[-1]


def test_a_long_name_is_measured_a_few_times(monkeypatch):
    ruler = _style.Ruler(_canvas.scratch_axes(), 9.0)
    measured, width = [], _style.Ruler.width
    monkeypatch.setattr(_style.Ruler, "width", lambda self, text: measured.append(text) or width(self, text))
    _names.ellipsis(NAMES[0] * 40, 150.0, ruler, 0.5)
    assert len(measured) <= 5
