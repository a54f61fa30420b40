"""What all figures have in common: widths, labels, sizes of text, one look for each algorithm.

The figures are those of `examples/gallery.py`, so a new figure must be in the gallery and is in the tests.
"""

from __future__ import annotations

import functools
import html
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style, detached_figures

pytestmark = pytest.mark.level(2)
EXAMPLE = Path(__file__).parents[2] / "examples" / "gallery.py"
WIDTHS = {"column": 3.3, "page": 7.0, 4.5: 4.5}


@functools.cache
def gallery() -> Any:
    return loaded()


def loaded() -> Any:
    found = importlib.util.spec_from_file_location("gallery", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@functools.cache
def result(name: str) -> Any:
    return gallery().calls()[name]()


def draw(name: str, **options: Any) -> Any:
    with detached_figures():
        return getattr(lt.plots, name)(result(name), **options)


def texts_of(ax: Any) -> list[Text]:
    drawn: list[Text] = []
    original = Text.draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", lambda self, renderer: (drawn.append(self), original(self, renderer))[1])
        ax.figure.figure.draw_without_rendering()
    return [text for text in drawn if text.get_visible() and text.get_text().strip()]


NAMES = lt.plots.gallery().figures["figure"].tolist()


def test_the_gallery_has_every_figure() -> None:
    assert sorted(gallery().calls()) == NAMES


def test_the_gallery_is_a_page_of_its_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gallery.py", str(tmp_path / "out"), "--width", "column"])
    own = loaded()
    two = {name: functools.partial(result, name) for name in ("qq_plot", "cd_ribbon")}
    monkeypatch.setattr(own, "calls", lambda: two)
    own.main()
    page = (tmp_path / "out" / "gallery.html").read_text(encoding="utf-8")
    draws = lt.plots.gallery().figures.set_index("figure")["draws"]
    for name in two:
        assert f'<h2 id="{name}">{name}</h2>\n<p>{html.escape(draws[name])}' in page
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"2 figures in {tmp_path / 'out' / 'gallery.html'}.\n"


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_the_width_that_is_asked_for_and_text_of_six_points(name: str) -> None:
    for width, inches in WIDTHS.items():
        ax = draw(name, width=width)
        figure = ax.figure.figure
        assert figure.get_size_inches()[0] == pytest.approx(inches)
        texts = texts_of(ax)
        assert min(text.get_fontsize() for text in texts) >= 6.0 - 1e-9
        whole = figure.bbox
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= -1 and box.x1 <= whole.x1 + 1, (width, text.get_text())  # noqa: PT018
            assert box.y0 >= -1 and box.y1 <= whole.y1 + 1, (width, text.get_text())  # noqa: PT018


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_refuses_what_is_no_width_and_no_labels(name: str) -> None:
    for bad in (0, -3.3, float("nan"), True, [3.3]):
        with pytest.raises(ArgumentError, match=r"^width must be .*: the inches of a new figure, or \"column\" or"):
            draw(name, width=bad)
    with pytest.raises(ArgumentError, match=r"^width must be .*column.*page.*got 'wide'"):
        draw(name, width="wide")
    with pytest.raises(ArgumentError, match=r"^width is of a new figure, and ax is given\. Leave one of them out\.$"):
        draw(name, width="page", ax=Figure().subplots())
    with pytest.raises(ArgumentError, match=r"^labels must be a dict such as .*, got list\.$"):
        draw(name, labels=["HB"])
    with pytest.raises(ArgumentError, match=r"^labels has 'nobody at all', which the figure does not show\."):
        draw(name, labels={"nobody at all": "x"})


@pytest.mark.parametrize("name", [name for name in NAMES if name != "profile_plot"])
def test_every_figure_of_algorithms_writes_their_labels(name: str) -> None:
    before = {text.get_text() for text in texts_of(draw(name))}
    if not any("HB+prior" in text or "TPE" in text for text in before):
        pytest.skip("shows no algorithm")
    shown = "HB+prior" if any("HB+prior" in text for text in before) else "TPE"
    after = " ".join(text.get_text() for text in texts_of(draw(name, labels={shown: "Zebra"})))
    assert "Zebra" in after


@pytest.mark.parametrize("name", NAMES)
def test_every_text_has_the_contrast_that_readers_need(name: str) -> None:
    figure = draw(name).figure.figure
    texts = texts_of(figure.axes[0])
    boxes = [text.get_window_extent().extents.round().astype(int) for text in texts]
    for text in texts:
        text.set_alpha(0.0)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3] / 255.0
    for text, (left, bottom, right, top) in zip(texts, boxes, strict=True):
        ground = np.median(pixels[bottom:top, left:right].reshape(-1, 3), axis=0)
        light, dark = sorted((float(_style.light(ground)), float(_style.light(to_rgb(text.get_color())))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.49, text.get_text()  # 4.5, of colours in 256 steps


LONG = tuple(f"gradient boosting, Bayesian optimisation, warm start v{i}" for i in range(1, 19))
LONG += (
    "случайный поиск с априорным распределением и остановкой",
    "贝叶斯优化与多保真度超参数搜索（早停策略，第二版，含先验知识）",
)
CROWDED = ("aggregate_scores_plot", "anytime_differences_plot", "anytime_plot", "benchmark_effects_plot",
           "budget_effect_plot", "cd_diagram", "cd_diagrams", "cd_ribbon", "comparison_matrix_plot", "emmeans_plot",
           "forest_plot", "horizons_plot", "improvement_plot", "leaderboard_plot", "p_value_plot", "pairs_plot",
           "performance_profile_plot", "posterior_maps_plot", "relative_ranks_plot", "score_distributions_plot",
           "seed_effect_plot", "win_rate_plot")  # fmt: skip


PARTIAL = ("anytime_differences_plot", "anytime_plot", "cd_ribbon", "improvement_plot")  # which draw some of so many


@functools.cache
def crowded() -> dict[str, Any]:
    """The gallery with twenty algorithms of long names, which begin alike, at two budgets."""
    rng = np.random.default_rng(1)
    cells = [(a, f"b{b}", s, t) for a in LONG for b in range(5) for s in range(3) for t in (1, 3, 10)]
    table = pd.DataFrame(cells, columns=["algorithm", "benchmark", "seed", "budget"])
    effect = table["algorithm"].map({name: 0.1 * i for i, name in enumerate(LONG)})
    table["loss"] = 9.0 + effect - np.log(table["budget"]) + rng.normal(0, 0.5, len(table))
    every = lt.Runs(table, algorithm="algorithm", benchmark="benchmark", seed="seed", budget="budget", score="loss",
                    direction="minimize")  # fmt: skip
    own = loaded()
    own.every, own.runs = (lambda: every), functools.cache(lambda: every.filter(budget=10))
    return {name: functools.cache(make) for name, make in own.calls().items()}


@pytest.mark.parametrize("width", ["column", "page"])
@pytest.mark.parametrize("name", CROWDED)
def test_twenty_long_names_are_readable_and_lead_to_the_whole_name(name: str, width: str) -> None:
    with detached_figures():
        ax = getattr(lt.plots, name)(crowded()[name](), width=width)
    texts = sorted(texts_of(ax), key=lambda text: -text.get_window_extent().y1)  # from the top
    words = [text.get_text() for text in texts]
    boxes = np.array([text.get_window_extent().extents for text in texts])
    assert min(text.get_fontsize() for text in texts) >= 6.0 - 1e-9
    assert (boxes[:, :2] >= -1).all()
    assert (boxes[:, 2:] <= np.array(ax.figure.figure.bbox.size) + 1).all()
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    touching = np.triu((high - low > 1.5).all(axis=2), k=1)  # boxes include the leading of the line
    assert [(words[i], words[j]) for i, j in np.argwhere(touching)] == []
    key = {number for text in words for number in re.findall(r"\[(\d+)\]\u00a0", text)}
    for text in words:  # what is cut has a number, under which the whole name stands
        if "…" in text:
            assert re.search(r"(^|\W)…\S.* \[\d+\]|… \[\d+\]", text), text
            assert set(re.findall(r"\[(\d+)\]", text)) <= key, text
    joined = "".join("".join(words).split())
    for whole in re.findall(r"\[\d+\]\u00a0([^\[]*)\.", " ".join(words)):
        assert "…" not in whole
    assert all("".join(one.split()) in joined for one in LONG if key and name not in PARTIAL)


def test_headings_and_names_of_a_column_are_whole_where_a_smaller_font_holds_them() -> None:
    ax = draw("aggregate_scores_plot", width="column")
    assert not [text.get_text() for text in texts_of(ax) if "…" in text.get_text() or "[" in text.get_text()]
    assert [box.get_title(loc="left") for box in ax.child_axes] == ["IQM", "Median", "Mean", "Optimality\ngap"]


def test_a_number_stands_for_one_name() -> None:
    names = {name: f"{name}, an optimiser of hyperparameters" for name in ("HB", "RS")}
    words = [text.get_text() for text in texts_of(draw("aggregate_scores_plot", width="column", labels=names))]
    keyed = [text.replace("\u00a0", " ") for text in words if text.startswith("[")]
    assert sorted(keyed) == [f"[{number}] {name}." for number, name in enumerate(names.values(), 1)]


def test_labels_must_tell_names_apart() -> None:
    for labels, rule in (
        ({"HB": "RS"}, r"^labels writes 'RS' for 'HB', and 'RS' is a name itself\. Use other texts\.$"),
        ({"HB": "x", "RS": "x"}, r"^labels must be different, and 'x' is written for several names\.$"),
        ({"HB": " "}, r"^labels must hold a text for 'HB', got ' '\.$"),
        ({}, r"^labels must be a dict such as .*, got an empty one\.$"),
    ):
        with pytest.raises(ArgumentError, match=rule):
            draw("cd_diagram", labels=labels)


def test_labels_are_shown_as_they_are() -> None:
    ax = draw("cd_diagram", labels={"HB": "<b>$x$</b> & _y_"})
    (text,) = [text for text in texts_of(ax) if "<b>" in text.get_text()]
    assert text.get_text() == "<b>$x$</b> & _y_"
    assert not text.get_parse_math()


def test_a_figure_leaves_no_width_behind() -> None:
    draw("emmeans_plot", width="column")
    assert draw("emmeans_plot").figure.get_size_inches()[0] == _canvas.FIGURE_WIDTH
    with pytest.raises(ArgumentError):
        draw("emmeans_plot", width="column", labels={"nobody": "x"})
    assert draw("emmeans_plot").figure.get_size_inches()[0] == _canvas.FIGURE_WIDTH


@functools.cache
def looks_of(name: str, kept: tuple[str, ...] | None) -> dict[str, tuple[str, str]]:
    """Colour and marker of each algorithm in a figure of the runs of a gallery, or of those of some algorithms."""
    runs = gallery().every()
    runs = runs if kept is None else runs.filter(algorithm=list(kept))
    last = runs.filter(budget=runs.frame[runs.budget].max())
    made = {
        "forest_plot": lambda: lt.fit_lmm(lt.recommend(last).formula, last).emmeans(runs.algorithm).pairs(),
        "anytime_plot": lambda: lt.anytime(runs, rng=1),
        "cd_ribbon": lambda: lt.anytime(runs, rng=1),
        "relative_ranks_plot": lambda: lt.anytime(runs, rng=1).ranks(),
        "budget_effect_plot": lambda: lt.budget_effect(runs),
        "performance_profile_plot": lambda: lt.aggregate_scores(last, n_draws=50, rng=1).profiles(),
        "score_distributions_plot": lambda: lt.score_distributions(last, by=["prior", runs.algorithm]),
    }
    with detached_figures():
        ax = getattr(lt.plots, name)(made[name]())
    looks: dict[str, set[tuple[str, str]]] = {}
    for panel in (ax, *ax.child_axes):
        for artist in panel.lines:
            if (gid := artist.get_gid() or "").startswith("part-") and "." not in gid:
                own = bytes.fromhex(gid.removeprefix("part-")).decode()
                marker = artist.get_marker() if artist.get_label() in ("_estimates", "_mean", "_rank") else "None"
                looks.setdefault(own, set()).add((str(artist.get_color()), str(marker).replace("none", "None")))
    return {own: next(iter(sorted(found, key=lambda look: look[1] == "None"))) for own, found in looks.items()}


COLOURED = ("forest_plot", "anytime_plot", "cd_ribbon", "relative_ranks_plot", "budget_effect_plot",
            "performance_profile_plot")  # fmt: skip


@pytest.mark.parametrize("name", COLOURED)
def test_an_algorithm_keeps_its_look_where_others_are_left_out_and_in_every_figure(name: str) -> None:
    whole, part = looks_of(name, None), looks_of(name, ("HB+prior", "TPE"))
    assert set(part) == {"HB+prior", "TPE"}
    assert part == {own: whole[own] for own in part}
    assert len({colour for colour, _ in whole.values()}) == len(whole) == 4
    forest = looks_of("forest_plot", None)
    assert {own: colour for own, (colour, _) in whole.items()} == {own: colour for own, (colour, _) in forest.items()}


def test_entries_of_legends_and_violins_are_parts_of_their_algorithm() -> None:
    runs = gallery().runs()
    with detached_figures():
        ax = lt.plots.score_distributions_plot(lt.score_distributions(runs, by=[runs.benchmark, runs.algorithm]))
        lying = lt.plots.score_distributions_plot(lt.score_distributions(runs, by=[runs.algorithm]))
        profile = lt.plots.performance_profile_plot(result("performance_profile_plot"))
    parts = {name: _style.part(name) for name in runs.algorithms}
    for drawn in (ax, profile):
        legend = drawn.get_legend()
        assert {text.get_text(): text.get_gid() for text in legend.get_texts()} == parts
        assert [handle.get_gid() for handle in legend.legend_handles] == [t.get_gid() for t in legend.get_texts()]
    for drawn in (ax, lying):
        of_violins = {artist.get_gid() for box in drawn.child_axes for artist in box.collections}
        assert of_violins - {None} == set(parts.values())
    assert [label.get_gid() for label in lying.child_axes[0].get_xticklabels()] == list(parts.values())
