"""Figures show what the result says."""

from __future__ import annotations

import shutil
import subprocess

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
from figures import words_below
from pytest import approx

from lmemtest.compat.autorank import autorank, latex_report, plot_posterior_maps, plot_stats
from lmemtest.compat.autorank._util import cd_diagram, ci_plot

pytestmark = pytest.mark.level(2)


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def tall(width=6.4, height=4.8, n=1):
    figure = matplotlib.figure.Figure(figsize=(width, height))
    return figure.subplots(n, n)


@pytest.mark.level(1)
def test_the_diagram_has_the_best_at_the_right(ours):
    ax = plot_stats(ours("friedman"))
    low, high = ax.get_xlim()
    assert low > high  # ranks fall from left to right
    places = sorted(lines(ax, "_means")[0].get_xdata())
    assert places == approx(sorted(ours("friedman").rankdf["meanrank"]))
    assert "lower is better →" in texts(ax)
    assert "← lower is better" in texts(cd_diagram(ours("friedman"), False, None, None))
    assert ax.figure.get_size_inches()[0] > 6.9
    assert plot_stats(ours("friedman"), width=4).figure.get_size_inches()[0] == 4


def test_a_diagram_is_drawn_where_asked(ours):
    ax = tall()
    assert plot_stats(ours("friedman"), ax=ax) is ax
    with pytest.warns(UserWarning, match="width is not used"):
        plot_stats(ours("friedman"), ax=tall(), width=5)


@pytest.mark.parametrize("case", ["anova", "anova, low is good", "anova, order of the plot", "t"])
def test_intervals_are_those_of_the_table(case, ours):
    result = ours(case)
    ax = plot_stats(result)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == (result.plot_order or list(result.rankdf.index))
    ends = np.array([line.get_xdata() for line in lines(ax, "_interval")])
    assert ends == approx(result.rankdf.loc[names, ["ci_lower", "ci_upper"]].to_numpy())
    assert ci_plot(result, False, None, None).get_yticklabels()[0].get_text() == names[-1]
    words = words_below(ax)
    assert ("Tukey HSD, alpha = 0.05" if result.omnibus == "anova" else "97.5 % CI Paired t-test: p = 0.014") in words


def test_every_interval_has_its_own_length(peer):
    """There all have that of the first row."""
    drawn, table = (peer["defects"]["whiskers of a t-test"][key] for key in ("drawn", "table"))
    assert drawn == approx([table[0]] * 2)
    assert table[1] < table[0] / 4
    rng = np.random.default_rng(5)
    result = autorank(pd.DataFrame({"narrow": rng.normal(0.0, 0.1, 20), "wide": rng.normal(1.0, 0.6, 20)}))
    lengths = [np.ptp(line.get_xdata()) / 2 for line in lines(plot_stats(result), "_interval")]
    assert lengths == approx(table)


def test_what_is_not_significant_is_drawn_when_asked(ours):
    with pytest.raises(ValueError, match="result is not significant"):
        plot_stats(ours("ties"))
    ax = plot_stats(ours("ties"), allow_insignificant=True)
    assert any("not significant" in text for text in texts(ax))


def test_the_signed_rank_test_has_a_diagram(ours, peer):
    """There is none in the peer."""
    assert peer["defects"]["wilcoxon plot"] is None
    ax = plot_stats(ours("wilcoxon"))
    assert any("All pairs differ significantly (Wilcoxon signed-rank test" in text for text in texts(ax))


def test_maps_say_what_the_matrix_says(ours, peer):
    """There P(A < B) holds the probabilities that the row, A, is larger."""
    stored = peer["defects"]["maps"]
    best, second = stored["posterior_matrix"]["index"][:2]
    smaller, _, larger = stored["posterior_matrix"]["data"][second][0]  # the column beside the row
    assert smaller > 0.99 > 0.01 > larger
    assert stored["drawn"]["(a) $P(A < B)$"][0] == smaller
    result = ours("bayesian")
    assert list(result.rankdf.index[:2]) == [best, second]
    maps = plot_posterior_maps(result)
    assert [ax.get_title(loc="left")[:12] for ax in maps[:3]] == ["(a) P(A < B)", "(b) P(A ≈ B)", "(c) P(A > B)"]
    for ax in maps:
        assert [label.get_text() for label in ax.get_yticklabels()] == list(result.rankdf.index[:-1])
        assert [label.get_text().replace("\n", "") for label in ax.get_xticklabels()] == list(result.rankdf.index[1:])
    drawn = [np.ma.filled(ax.collections[0].get_array(), np.nan) for ax in maps[:3]]
    for i in range(5):
        for j in range(1, 6):
            cell = result.posterior_matrix.iloc[i, j]
            expected = cell[::-1] if i < j else (np.nan,) * 3
            assert tuple(values[i, j - 1] for values in drawn) == approx(expected, nan_ok=True)
    signs = {text.get_position(): text.get_text() for text in maps[3].texts}
    meaning = {"smaller": ">", "equal": "≈", "larger": "<", "inconclusive": "?"}  # of the column, of A
    assert signs == {(j - 1, i): meaning[result.decision_matrix.iloc[i, j]] for i in range(6) for j in range(i + 1, 6)}
    numbers = {text.get_position(): float(text.get_text()) for text in maps[2].texts}
    assert numbers[(0, 0)] == approx(result.posterior_matrix.iloc[0, 1][0], abs=0.0051)


def test_maps_are_drawn_where_asked_and_in_the_colours_of_the_caller(ours, peer):
    """The peer crashes with axes."""
    assert peer["defects"]["plot_posterior_maps(axes)"].startswith("UnboundLocalError")
    places = list(tall(10, 10, 2).ravel())
    colours = ["Blues", "Oranges", "Greys", "viridis"]
    found = plot_posterior_maps(ours("bayesian, low is good"), axes=places, cmaps=colours,
                                annot_colors=[("red", "yellow")] * 4)  # fmt: skip
    assert found == places
    assert [ax.collections[0].cmap.name for ax in found[:3]] == colours[:3]
    assert found[3].collections[0].cmap.N == 4
    assert {text.get_color() for ax in found for text in ax.texts} <= {"red", "yellow"}
    assert plot_posterior_maps(ours("bayesian"), width=6)[0].figure.get_size_inches().tolist() == [6, 6]


def test_a_report_has_the_figure_of_a_significant_result(ours, tmp_path, capsys, peer):
    latex_report(ours("anova"), figure_path=str(tmp_path), prefix="my_")
    out = capsys.readouterr().out
    assert rf"\includegraphics[width=\linewidth]{{{tmp_path}/my_stat_results.pdf}}" in out
    assert (tmp_path / "my_stat_results.pdf").read_bytes().startswith(b"%PDF")
    theirs = peer["defects"]["latex_report of anova"]["phrases"]
    assert r"\caption{Plot of the results}" in theirs  # the other branch is never reached
    assert r"\caption{Mean values with comparison intervals" in out
    latex_report(ours("ties"), figure_path=str(tmp_path), prefix="none")
    latex_report(ours("bayesian"), figure_path=str(tmp_path), prefix="none")
    assert "includegraphics" not in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["my_stat_results.pdf"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_reports_are_latex(table, tmp_path, capsys):
    data = table("skewed").set_axis(["50%", "a_b", "x & y", "c#", "{d}", "é ~^"], axis=1)
    for name, options in {
        "ranks": {},
        "means": {"force_mode": "parametric"},
        "bayes": {"approach": "bayesian"},
    }.items():
        latex_report(autorank(data, nsamples=100, **options), figure_path=str(tmp_path), prefix=f"{name}_")
        (tmp_path / f"{name}.tex").write_text(capsys.readouterr().out, encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]


def test_draws_of_a_pair_are_drawn(ours, table):
    """As a histogram without draws of equivalence, as a triangle with them."""
    result = autorank(table("skewed"), approach="bayesian", rope=0, nsamples=20000, random_state=1)
    posterior = result.sample_matrix.iloc[0, 1]
    axes = posterior.plot().axes[0]
    counts = [patch.get_height() for patch in axes.patches]
    assert sum(counts) == 20000
    chances = posterior.probs()
    assert f"P(pop_4 larger): {chances[0]:.3f}" in texts(axes)
    wide = ours("bayesian, absolute").sample_matrix.iloc[2, 3]
    axes = wide.plot(names=("one", "two")).axes[0]
    assert [text.split(" ")[0] for text in texts(axes)] == ["P(one", "P(equivalent):", "P(two"]
    assert axes.collections[0].get_array().sum() == 20000


@pytest.mark.parametrize("k", [2, 25])
def test_few_and_many_populations_are_drawn(k):
    rng = np.random.default_rng(1)
    data = pd.DataFrame(rng.normal(np.linspace(0, 1, k), 0.3, (40, k))).add_prefix("method ")
    for mode in ("parametric", "nonparametric"):
        result = autorank(data, force_mode=mode)
        ax = plot_stats(result, allow_insignificant=True)
        shown = {*texts(ax), *(label.get_text() for label in ax.get_yticklabels())}
        assert {f"method {i}" for i in range(k)} <= shown
    maps = plot_posterior_maps(autorank(data, approach="bayesian", nsamples=100, random_state=1))
    assert len(maps[3].texts) == k * (k - 1) // 2
