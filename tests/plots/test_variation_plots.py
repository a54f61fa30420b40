"""Figures of variation, reliability and benchmarks show the numbers of their results."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest
from figures import lines, row_labels, words_below
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from pytest import approx
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.benchmark.benchmark_clusters import benchmark_clusters
from lmemtest.bench.benchmark.benchmark_effects import benchmark_effects
from lmemtest.bench.variation.ranking_reliability import ranking_reliability
from lmemtest.bench.variation.variance_sources import variance_sources
from lmemtest.errors import ArgumentError
from lmemtest.plots.benchmark_clusters import benchmark_clusters_plot
from lmemtest.plots.benchmark_effects import benchmark_effects_plot
from lmemtest.plots.variation import ranking_reliability_plot, variance_sources_plot


def make_runs(k: int = 4, *, long: bool = False) -> lt.Runs:
    rng = np.random.default_rng(k)
    A, B, AB = 0.5 * rng.normal(size=k), 2.0 * rng.normal(size=9), rng.normal(size=(k, 9))
    tool = [f"a very long algorithm name with $x$ and <b> {i}" if long else f"A{i}" for i in range(k)]
    task = [f"benchmark {'with a long name ' * long}{j}" for j in range(9)]
    scores = (A[:, None] + B + AB)[..., None] + rng.normal(size=(k, 9, 4))
    return as_runs(table_of_scores(scores, "tool task seed", "loss", tool=tool, task=task))


def clusters(runs: lt.Runs):
    return benchmark_clusters(runs, n_draws=20, rng=1)


PLOTS = {
    "variation": (variance_sources, variance_sources_plot, {}),
    "reliability": (ranking_reliability, ranking_reliability_plot, {}),
    "heatmap": (benchmark_effects, benchmark_effects_plot, {}),
    "caterpillar": (benchmark_effects, benchmark_effects_plot, {"kind": "caterpillar"}),
    "dendrogram": (clusters, benchmark_clusters_plot, {}),
    "together": (
        clusters,
        benchmark_clusters_plot,
        {"kind": "together"},
    ),
}


@functools.cache
def result_of(compute, k, *, long):
    return compute(make_runs(k, long=long))


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_is_readable(name, assert_readable) -> None:
    compute, draw, options = PLOTS[name]
    assert_readable(draw(result_of(compute, 2, long=False), **options))
    size = (9, 7) if name in ("heatmap", "together") else (6.5, 4.5)
    assert_readable(draw(result_of(compute, 5, long=True), ax=Figure(figsize=size).subplots(), **options))
    many = result_of(compute, 20, long=True)
    for ax in (None, Figure(figsize=size).subplots()):
        assert_readable(draw(many, ax=ax, **options))


def test_variation_draws_standard_deviations_and_says_what_it_leaves_out() -> None:
    found = variance_sources(make_runs())
    ax = variance_sources_plot(found)
    (drawn,) = lines(ax, "_estimates")
    assert drawn.get_xdata() == approx(found.to_frame()["sd"].to_numpy())
    ends = np.array([line.get_xdata() for line in lines(ax, "_interval")])
    assert ends == approx(found.to_frame()[["ci_low", "ci_high"]].to_numpy())
    ax = variance_sources_plot(found, leave_out=["task"])
    assert "task" not in row_labels(ax)
    assert "Not drawn: task (" in words_below(ax)


def test_reliability_draws_the_closed_form_and_the_study() -> None:
    found = ranking_reliability(make_runs(), n_benchmarks=[30], n_seeds=[1, 4])
    ax = ranking_reliability_plot(found).child_axes[0]
    for line, n in zip(lines(ax, "_curve"), (1, 4), strict=True):
        x, y = line.get_data()
        assert y == approx(np.array([found.at(b, n) for b in x]))
    (dot,) = lines(ax, "_study")
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == approx((9, found.reliability))


@pytest.mark.parametrize("n", [9, 20, 40])
@pytest.mark.parametrize("size", [(7.0, 4.0), (3.5, 3.0)])
def test_reliability_has_no_ticks_at_half_benchmarks(n, size) -> None:
    found = ranking_reliability(make_runs(), n_benchmarks=[n], n_seeds=[1])
    ax = ranking_reliability_plot(found, ax=Figure(figsize=size).subplots()).child_axes[0]
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert all(tick.isdecimal() for tick in ticks)
    assert len(set(ticks)) == len(ticks) >= 2


def test_extrapolated_differences_are_marked(assert_readable) -> None:
    runs = make_runs(3)
    table = runs.to_frame()
    gone = (table["tool"] == "A0") & (table["task"] == "benchmark 4")
    found = benchmark_effects(dataclasses.replace(runs, frame=table[~gone]), contrast="pairs")
    ax = benchmark_effects_plot(found, kind="caterpillar", comparison="A0 - A1")
    assert "extrapolated (not run there)" in [t.get_text() for t in ax.get_legend().get_texts()]
    triangle = [line for line in lines(ax, "_estimates") if line.get_marker() == "^"]
    assert [list(line.get_xdata()) for line in triangle] == [
        approx(found.table.query("extrapolated and versus == 'A1'")["estimate"].tolist())
    ]
    assert_readable(ax)
    ax = benchmark_effects_plot(found)
    assert "Grey: extrapolated, because an algorithm was not run there." in words_below(ax)
    (cells,) = (c for c in ax.collections if c.get_label() == "_cells")
    rows, columns = ([tick.get_text() for tick in ticks] for ticks in (ax.get_yticklabels(), ax.get_xticklabels()))
    empty = np.ma.getmaskarray(cells.get_array()).reshape(9, 3)
    assert [columns[j] for j in np.flatnonzero(empty[rows.index("benchmark 4")])] == [c for c in columns if "A0" in c]
    assert empty.sum() == 2
    assert_readable(ax)


def test_of_many_benchmarks_the_ends_or_the_largest_are_drawn(assert_readable) -> None:
    found = benchmark_effects(make_runs(2), contrast="pairs")
    part = found.to_frame().sort_values("estimate", kind="stable")
    ax = benchmark_effects_plot(found, kind="caterpillar", max_rows=4)
    names = part["benchmark"].tolist()
    assert row_labels(ax) == [*names[:2], "… 5 more …", *names[-2:]]
    drawn = sorted((y, x) for line in lines(ax, "_estimates")[1:] for x, y in zip(*line.get_data(), strict=True))
    assert [y for y, _ in drawn] == [0, 1, 3, 4]
    assert [x for _, x in drawn] == approx(part["estimate"].iloc[[0, 1, -2, -1]].tolist())
    words = words_below(ax)
    assert words.endswith("5 of 9 benchmarks, those in the middle, are left out.")
    assert_readable(ax)
    ax = benchmark_effects_plot(found, max_rows=4)
    largest = found.to_frame().set_index("benchmark")["estimate"].abs().nlargest(4).index
    assert {t.get_text() for t in ax.get_yticklabels()} == set(largest)
    words = words_below(ax)
    assert words.endswith("5 of 9 benchmarks, those with smaller effects, are left out.")
    assert_readable(ax)


def test_effects_are_drawn_where_they_are() -> None:
    found = benchmark_effects(make_runs(), contrast="pairs")
    ax = benchmark_effects_plot(found)
    mesh = next(c for c in ax.collections if c.get_label() == "_cells")
    table = found.to_frame().assign(pair=lambda t: t["algorithm"].str.cat(t["versus"], sep=" − "))
    rows, columns = ([tick.get_text() for tick in ticks] for ticks in (ax.get_yticklabels(), ax.get_xticklabels()))
    largest = table["estimate"].abs().groupby(table["benchmark"]).max().sort_values(ascending=False).index
    assert rows == largest.tolist()
    want = table.pivot(index="benchmark", columns="pair", values="estimate").loc[rows, columns]
    assert np.asarray(mesh.get_array()).reshape(9, 6) == approx(want.to_numpy())
    ax = benchmark_effects_plot(found, kind="caterpillar", comparison="A1 - A3")
    part = found.to_frame().query("algorithm == 'A1' and versus == 'A3'").sort_values("estimate")
    assert row_labels(ax) == part["benchmark"].tolist()
    drawn = sorted((y, x) for line in lines(ax, "_estimates")[1:] for x, y in zip(*line.get_data(), strict=True))
    assert [x for _, x in drawn] == approx(part["estimate"].tolist())
    (overall,) = lines(ax, "_overall")
    assert overall.get_xdata()[0] == approx(part["overall"].iloc[0])


def test_the_tree_has_its_merges() -> None:
    found = benchmark_clusters(make_runs(), n_draws=20, rng=1)
    ax = benchmark_clusters_plot(found)
    assert row_labels(ax) == found.to_frame()["benchmark"].tolist()
    upright = [line.get_xdata()[0] for line in lines(ax, "_branch") if line.get_xdata()[0] == line.get_xdata()[1]]
    assert sorted(upright) == approx(sorted(found.linkage[:, 2]))


@pytest.mark.parametrize(
    "draw", [variance_sources_plot, ranking_reliability_plot, benchmark_effects_plot, benchmark_clusters_plot]
)
def test_other_results_are_refused(draw) -> None:
    with pytest.raises(lt.errors.ArgumentError, match=r"must be the result of \w+\(\).*, got int"):
        draw(3)


def test_bad_options() -> None:
    runs = make_runs()
    sources = variance_sources(runs)
    with pytest.raises(lt.errors.ArgumentError, match="leave_out must be"):
        variance_sources_plot(sources, leave_out="nothing")
    with pytest.raises(lt.errors.ArgumentError, match="leave_out names all sources"):
        variance_sources_plot(sources, leave_out=sources.sources["source"])
    with pytest.raises(lt.errors.ArgumentError, match="values='share' is for sources of trainings; of runs"):
        variance_sources_plot(sources, values="share")
    effects = benchmark_effects(runs)
    with pytest.raises(lt.errors.ArgumentError, match="kind must be"):
        benchmark_effects_plot(effects, kind="pie")
    with pytest.raises(lt.errors.ArgumentError, match="comparison must be"):
        benchmark_effects_plot(effects, comparison="A0 - A1")
    with pytest.raises(lt.errors.ArgumentError, match="kind='together' needs redrawn tables"):
        benchmark_clusters_plot(benchmark_clusters(runs, n_draws=0), kind="together")


def studied(groups, n=12, **options):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"data": [*range(n), *[0] * (n + 3)], "init": [*[0] * n, *range(1, n), *[0] * 4]})
    parts = [
        table.assign(tool=name, acc=np.round(0.8 + 0.05 * rng.normal(size=len(table)) * (table["data"] > 0), 2))
        for name in groups
    ]
    return lt.variance_sources(
        pd.concat(parts).assign(acc=lambda t: t["acc"] + 0.001 * rng.normal(size=len(t))),
        score="acc", sources=["data", "init"], algorithm="tool", **options,
    )  # fmt: skip


def drawn(ax, label):
    return np.concatenate([line.get_xdata() for line in ax.lines if line.get_label() == label])


def test_variances_relative_to_the_split_by_study():
    study = studied(["A", "B $x$"])
    ax = study.plot()
    assert row_labels(ax) == ["data", "init", "noise"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A", "B $x$"]
    assert_allclose(drawn(ax, "_estimates"), study.sources["relative"])
    ends = drawn(ax, "_interval").reshape(-1, 2)
    assert_allclose(ends, study.sources[["relative_low", "relative_high"]].clip(upper=4.0))
    assert "over that of data" in words_below(ax)
    assert_allclose(drawn(variance_sources_plot(study, values="sd"), "_estimates"), study.sources["sd"])
    with pytest.raises(ArgumentError, match="values must be 'relative' or 'share' or 'sd'"):
        variance_sources_plot(study, values="variance")


def test_many_studies_have_a_row_each():
    study = studied([f"pipeline {i}" for i in range(8)])
    ax = study.plot(values="share")
    labels = row_labels(ax)
    assert labels[:2] == ["data", "pipeline 0"]
    assert len(labels) == 27
    assert "Share of the variance" in words_below(ax)
