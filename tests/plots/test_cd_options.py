"""What a diagram shows on request, of decisions from anywhere and in every format: the decisions, nothing clipped."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figures import lines
from matplotlib.backends.backend_pdf import PdfFile, RendererPdf
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure

from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import cd_diagram, cd_diagram_tikz, cd_diagrams

NAMES = (
    "a very long algorithm name, with $\\alpha$ and _under_ #1",
    "DeepAR + PatchTST ensemble (tuned, 100 trials) & 5 % more",
    "naïve {braces} № 7 — ~^|<>",
    "漢字 optimizer",
    "x",
    "RandomForest[n_estimators=2000, max_features='sqrt']",
)
MEANS = np.array([1.9, 2.5, 2.9, 3.8, 4.5, 5.4])
OPTIONS = {"values": True, "whiskers": True, "highlight": NAMES[1]}
GIVEN = {
    "direction": "minimize",
    "alpha": 0.05,
    "critical_difference": (0.9, 1.3),
    "omnibus_p": 0.2,
    "interval_alpha": 0.05,
}


def means(names=NAMES):
    return pd.DataFrame({"mean": MEANS, "ci_low": MEANS - 0.4, "ci_high": MEANS + 0.5}, index=list(names))


def p_values(names=NAMES):
    """Small beyond a distance of 1.5, for one pair out of turn, and missing for one."""
    p = np.where(np.abs(MEANS[:, None] - MEANS) > 1.5, 0.01, 0.4)
    p[0, 1] = p[1, 0] = 0.02
    p[2, 4] = p[4, 2] = np.nan
    return pd.DataFrame(p, index=list(names), columns=list(names))


def drawn_groups(ax):
    """Members of the bars, by the place of their lines from the left."""
    found = set()
    for bar in lines(ax, "_group"):
        at = [np.interp(-bar.get_ydata()[0], -np.array(e.get_ydata()), e.get_xdata()) for e in lines(ax, "_elbow")]
        found.add(tuple(int(np.argmin(np.abs(np.array(at) - x))) for x in bar.get_xdata()))
    return found


def groups_of(p, alpha=0.05):
    """Maximal cliques by brute force, of the places in ascending order."""
    joined = ~(p.to_numpy() < alpha)
    sets = [[i for i in range(6) if code >> i & 1] for code in range(1, 64)]
    cliques = [set(s) for s in sets if joined[np.ix_(s, s)].all()]
    return {tuple(sorted(c)) for c in cliques if len(c) > 1 and not any(c < other for other in cliques)}


def test_means_and_a_matrix_from_anywhere_are_drawn_as_they_decide(texts_of):
    ax = cd_diagram(means(), p_values(), test="Conover", statistic="mean rank", **GIVEN)
    assert drawn_groups(ax) == groups_of(p_values())
    words = " ".join(text.get_text() for text in texts_of(ax)).replace("\u00a0", " ")
    assert "Mean ranks of the score. Dots on one bar: no significant difference (Conover, α = 0.05)." in words
    flags = (p_values() < 0.05).astype("boolean").mask(p_values().isna())
    by_flags = cd_diagram(dict(zip(NAMES, MEANS, strict=True)), flags)
    assert drawn_groups(by_flags) == groups_of(p_values())
    words = " ".join(text.get_text() for text in texts_of(by_flags))
    assert "α" not in words.replace("$\\alpha$", "")
    assert "CD" not in words  # none was given, so none is drawn
    assert not lines(by_flags, "_cd max")


def test_the_order_of_the_columns_changes_nothing_and_the_other_direction_mirrors():
    rng = np.random.default_rng(3)
    want = cd_diagram(means(), p_values(), **GIVEN)
    shuffled = [list(rng.permutation(NAMES)) for _ in range(3)]
    found = cd_diagram(means().loc[shuffled[0]], p_values().loc[shuffled[1], shuffled[2]], **GIVEN)
    assert [t.get_text() for t in found.texts] == [t.get_text() for t in want.texts]
    for one, other in zip(found.lines, want.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    flipped = -means()[["mean"]]
    mirrored = cd_diagram(flipped, p_values(), **GIVEN | {"direction": "maximize"})
    assert drawn_groups(mirrored) == {tuple(sorted(5 - i for i in group)) for group in groups_of(p_values())}
    np.testing.assert_array_equal(lines(mirrored, "_means")[0].get_xdata(), -MEANS[::-1])


@pytest.mark.parametrize("left_only", [False, True])
def test_with_everything_on_request_all_text_is_readable_also_in_small_axes(assert_fits, left_only):
    sep = Decisions.of(means(), p_values(), **GIVEN)
    assert_fits(lambda ax: cd_diagram(sep, ax=ax, left_only=left_only, **OPTIONS), small=(4.2, 3.6))


@pytest.mark.parametrize("count", [2, 25])
def test_two_and_many_algorithms_are_readable_with_values_and_whiskers(assert_readable, count):
    rng = np.random.default_rng(1)
    centre = rng.normal(size=count)
    names = [f"optimizer_{i:02d}" for i in range(count)]
    frame = pd.DataFrame({"mean": centre, "ci_low": centre - 0.3, "ci_high": centre + 0.3}, index=names)
    p = pd.DataFrame(np.where(np.abs(centre[:, None] - centre) > 0.6, 0.01, 0.5), index=names, columns=names)
    for size in (None, (6.0, 6.0)):
        ax = None if size is None else Figure(figsize=size).add_axes((0, 0, 1, 1))
        assert_readable(cd_diagram(frame, p, values=True, whiskers=True, direction="minimize", ax=ax))


def test_values_whiskers_and_names_stand_where_they_belong(texts_of):
    ax = cd_diagram(means("ABCDEF"), p_values("ABCDEF"), highlight=["B"], values=True, whiskers=True)
    spans = [tuple(line.get_xdata()) for line in lines(ax, "_whisker")]
    np.testing.assert_allclose(sorted(spans), np.c_[MEANS - 0.4, MEANS + 0.5])
    texts = texts_of(ax)
    height = {text.get_text(): text.get_position()[1] for text in texts}
    place = {text.get_text(): text.get_window_extent().x0 for text in texts}
    for name, value in zip("ABCDEF", ("1.90", "2.50", "2.90", "3.80", "4.50", "5.40"), strict=True):
        assert height[name] == height[value]
        assert (place[name] < place[value]) == (name in "ABC")  # values are next to the axis
    (bold,) = [text.get_text() for text in texts if text.get_fontweight() == "bold"]
    assert bold == "B"


def test_all_names_can_be_on_the_left():
    ax = cd_diagram(means("ABCDEF"), p_values("ABCDEF"), left_only=True)
    labels = [text for text in ax.texts if text.get_text() in set("ABCDEF")]
    assert {text.get_ha() for text in labels} == {"right"}
    assert [text.get_text() for text in sorted(labels, key=lambda t: -t.get_position()[1])] == list("ABCDEF")


def test_an_omnibus_test_that_is_not_significant_is_marked(texts_of):
    def marked(p):
        ax = cd_diagram(means(), p_values(), **GIVEN | {"omnibus_p": p})
        return [text.get_text() for text in texts_of(ax) if "Omnibus" in text.get_text()]

    assert marked(0.2) == ["Omnibus test: not significant, p = 0.200."]
    assert marked(0.001) == marked(None) == []


def test_options_that_cannot_be_met_are_refused():
    sep = Decisions.of(means()[["mean"]], p_values())
    with pytest.raises(ArgumentError, match="whiskers asks for intervals of the means, and these decisions have none"):
        cd_diagram(sep, whiskers=True)
    with pytest.raises(ArgumentError, match="highlight names 'y', which is not one of"):
        cd_diagram(sep, highlight="y")
    with pytest.raises(ArgumentError, match=r"highlight names '3\.0', which is not one of"):
        cd_diagram(sep, highlight=np.array(3.0))
    with pytest.raises(ArgumentError, match="values must be True or False"):
        cd_diagram(sep, values="yes")
    with pytest.raises(ArgumentError, match="alpha is for means from elsewhere"):
        cd_diagram(sep, alpha=0.1)
    with pytest.raises(ArgumentError, match=r"no option 'alhpa' .* Did you mean 'alpha'"):
        cd_diagram(means(), p_values(), alhpa=0.1)


def test_figures_are_saved_in_every_format_and_nothing_is_clipped():
    figure = cd_diagram(means(), p_values(), **GIVEN, **OPTIONS).figure.figure
    for kind, start in {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}.items():
        saved = io.BytesIO()
        figure.savefig(saved, format=kind)
        assert saved.getvalue().startswith(start)
    wide, high = 72 * figure.get_size_inches()
    figure.set_dpi(72)
    pdf = PdfFile(io.BytesIO())
    for renderer in (RendererSVG(wide, high, io.StringIO()), RendererPdf(pdf, 72, high, wide)):
        box = figure.axes[0].get_tightbbox(renderer)
        assert min(box.x0, box.y0, wide - box.x1, high - box.y1) > -0.5


# ------------------------------------------------------------------------------------------------ several diagrams


def two():
    first = Decisions.of(means("ABCDEF"), p_values("ABCDEF"), direction="minimize")
    return {"small": first, "large": Decisions.of(means("ABCDEF") + 1.0, p_values("ABCDEF"), direction="minimize")}


@pytest.mark.parametrize("layout", ["stacked", "beside"])
def test_several_diagrams_share_their_axis_unless_they_must_not(assert_readable, layout):
    def ticks(ax):
        return [[t.get_text() for t in one.texts if t.get_va() == "bottom"] for one in ax.child_axes]

    ax = cd_diagrams(two(), layout=layout, values=True)
    assert_readable(ax)
    assert ticks(ax)[0] == ticks(ax)[1]
    assert [drawn_groups(one) for one in ax.child_axes] == [groups_of(p_values())] * 2
    own = ticks(cd_diagrams(two(), layout=layout, share_axis=False))
    assert own[0] != own[1]


def test_diagrams_of_different_scores_cannot_share_an_axis():
    other = Decisions.of(means("ABCDEF"), p_values("ABCDEF"), score="seconds")
    with pytest.raises(ArgumentError, match=r"cannot share an axis: mean of seconds, mean of the score\. Pass share_a"):
        cd_diagrams(two() | {"time": other})
    assert len(cd_diagrams(two() | {"time": other}, share_axis=False).child_axes) == 3
    with pytest.raises(ArgumentError, match=r"panels must be a dict .* got an empty one"):
        cd_diagrams({})


# ---------------------------------------------------------------------------------------------------------- TikZ


def tikz(**options):
    return cd_diagram_tikz(means(), p_values(), **GIVEN, **OPTIONS, **options)


def test_the_tikzpicture_has_the_groups_of_the_figure_and_escaped_names():
    tested = p_values().fillna(0.4)
    text = cd_diagram_tikz(means(), tested, width="30cm", title="100 % & more", **GIVEN, **OPTIONS)
    elbows = re.findall(r"line join=round\] .* -- \(([\d.]+),-[\d.]+\) -- \([-\d.]+,-[\d.]+\);", text)
    place = {x: i for i, x in enumerate(elbows)}
    bars = re.findall(r"\\draw\[color=cdaccent, .*?\] \(([\d.]+),(-[\d.]+)\) -- \(([\d.]+),\2\);", text)
    steps = sorted((place[left], place[right]) for left, _, right in bars)
    assert steps == sorted(pair for group in groups_of(tested) for pair in pairwise(group))
    dots = re.findall(r"\\filldraw\[color=cdaccent, fill=cdaccent, .*?\] \(([\d.]+),-[\d.]+\) circle", text)
    assert sorted(place[x] for x in dots) == sorted(i for group in groups_of(tested) for i in group)
    text = tikz(width="60cm", title="100 % & more")
    assert r"\$\textbackslash{}alpha\$ and \_under\_ \#1" in text
    assert r"(tuned, 100 trials) \& 5 \% more" in text
    assert r"100 \% \& more" in text
    assert "Omnibus test: not significant, p = 0.200." in text
    assert r"$\leftarrow$ lower is better" in text


def test_the_width_of_a_tikzpicture_is_in_units_of_tex():
    def reach(width):
        return max(float(x) for x in re.findall(r"\(([\d.]+),-?[\d.]+\)", tikz(width=width)))

    assert reach("30cm") == pytest.approx(reach("300mm"))
    assert reach("10in") < 720.0
    for wrong in ("wide", "12", "12em", 12, "0cm"):
        with pytest.raises(ArgumentError, match="width must be a number with one of the units"):
            tikz(width=wrong)
    with pytest.raises(
        ArgumentError, match="font must be a number of at least 3 and at most 30, got 0: a size in points"
    ):
        tikz(font=0)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_the_tikzpicture_compiles(tmp_path: Path):
    if subprocess.run(["kpsewhich", "tikz.sty"], capture_output=True, check=False).returncode:
        pytest.skip("tikz is not installed")
    names = [*NAMES[:2], "~^|<> {braces}", "\\input{x}", "x", "a_b"]
    body = cd_diagram_tikz(means(names), p_values(names), **GIVEN, **OPTIONS)
    source = r"\documentclass{article}\usepackage{tikz}\begin{document}" + body + r"\end{document}"
    (tmp_path / "figure.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "figure.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
