"""The metafeature figures draw what the analyses found, inside their rectangle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from figures import lines, row_labels, words_below
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
from lmemtest.plots import detached_figures
from lmemtest.plots.metafeature_effect import metafeature_effect_plot


def runs_of(tasks: int, levels: tuple[str, ...] = ("bad", "good"), name: str = "task {:02d}") -> lt.Runs:
    rng = np.random.default_rng(6)
    effect = np.where(np.arange(tasks) % 6 == 2, 0.0, 2.0)[:, None, None] * np.arange(len(levels))[:, None] * [0, 1]
    of_runs = effect[..., None] + 0.3 * rng.normal(size=(tasks, len(levels), 2, 10))
    scores = of_runs[..., None] + 0.3 * rng.normal(size=(*of_runs.shape, 3))
    names = {"task": [name.format(i) for i in range(tasks)], "prior": levels, "tool": ["A", "B"]}
    return as_runs(table_of_scores(scores, "task prior tool seed budget", "loss", **names))


LONG = "a very long name of a benchmark with $x$ and <b> number {:02d}"


@pytest.fixture(scope="module")
def analysis():
    return metafeature_outcomes(runs_of(12), algorithms=("A", "B"), metafeature="prior", n_draws=999, rng=1)


@pytest.fixture(scope="module")
def model():
    return metafeature_effect(runs_of(12), algorithms=("A", "B"), metafeature="prior", rng=1)


def draw(result, size=None, layout=None):
    with detached_figures():
        if size is None:
            ax = metafeature_effect_plot(result)
        else:
            figure = Figure(figsize=size, layout=layout)
            FigureCanvasAgg(figure)
            ax = metafeature_effect_plot(result, ax=figure.add_subplot())
    ax.figure.canvas.draw()
    return ax


def inside(ax) -> None:
    """All ink of the axes, children included, lies in the figure."""
    tight, figure = ax.get_tightbbox(), ax.figure.bbox
    assert tight.x0 >= figure.x0 - 0.5
    assert tight.y0 >= figure.y0 - 0.5
    assert tight.x1 <= figure.x1 + 0.5
    assert tight.y1 <= figure.y1 + 0.5


def tree(ax):
    return next(child for child in ax.child_axes if child.get_label() == "_dendrogram")


def test_rows_are_in_the_order_of_the_tree_and_cells_hold_the_mean_outcomes(analysis):
    ax = draw(analysis)
    labels = row_labels(ax)
    assert labels == [analysis.benchmarks[i] for i in analysis.order]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["bad", "good"]
    cells = next(c for c in ax.collections if c.get_label() == "_cells")
    want = analysis.instances.pivot(index="benchmark", columns="level", values="outcome").loc[labels]
    assert np.asarray(cells.get_array()).reshape(want.shape) == pytest.approx(want.to_numpy())


def test_triangles_mark_the_benchmarks_that_are_singled_out(analysis):
    ax = draw(analysis)
    marks = next(line for line in ax.get_lines() if line.get_label() == "_singled_out")
    labels = row_labels(ax)
    assert {labels[int(row)] for row in marks.get_ydata()} == set(analysis.singled_out) == {"task 02", "task 08"}
    assert "singled out: 2 of 12" in words_below(ax)


def test_the_tree_has_its_leaves_at_the_rows_and_its_heights_are_the_distances(analysis):
    ax = draw(analysis)
    strokes = np.array(next(c for c in tree(ax).collections if c.get_label() == "_tree").get_segments())
    assert len(strokes) == 3 * 11
    assert strokes[..., 0].max() == pytest.approx(analysis.linkage[:, 2].max())
    leaves = strokes[strokes[:, 0, 0] < 0.0]  # also where the first merger is at distance zero
    assert sorted(np.round(leaves[:, 0, 1], 9)) == list(range(12))
    assert (leaves[:, 1, 0] >= 0.0).all()
    assert strokes[2::3, 0, 0] == pytest.approx(analysis.linkage[:, 2])
    assert (analysis.linkage[:, 2] == 0.0).any()
    assert tree(ax).get_ylim() == ax.get_ylim()


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("size", [(3.6, 3.2), (9.0, 7.0)])
def test_the_tree_ends_before_the_labels_whatever_the_size(analysis, size, layout):
    ax = draw(analysis, size, layout)
    right = tree(ax).get_window_extent().x1
    assert right < min(text.get_window_extent().x0 for text in ax.get_yticklabels())
    inside(ax)
    ax.figure.set_size_inches(size[0] * 1.4, size[1] * 1.2)
    ax.figure.canvas.draw()
    assert tree(ax).get_window_extent().x1 < min(text.get_window_extent().x0 for text in ax.get_yticklabels())


@pytest.mark.parametrize("size", [None, (7.0, 8.0)])
def test_forty_benchmarks_with_long_names_fit(size):
    runs = runs_of(40, ("bad", "good", "none at all"), LONG)
    result = metafeature_outcomes(runs, algorithms=("A", "B"), metafeature="prior", unit="budget")
    ax = draw(result, size)
    inside(ax)
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert len(boxes) == 40
    assert all(upper.y0 >= lower.y1 - 1.0 for upper, lower in itertools.pairwise(boxes))


def test_one_benchmark_has_no_tree():
    result = metafeature_outcomes(runs_of(1), algorithms=("A", "B"), metafeature="prior", n_draws=99, rng=1)
    ax = draw(result)
    assert [child.get_label() for child in ax.child_axes if child.get_label() == "_dendrogram"] == []
    inside(ax)


def test_the_model_draws_contrasts_intervals_and_the_means_by_themselves(model):
    ax = draw(model)
    labels = row_labels(ax)
    assert labels[0] == "mean over benchmarks"
    table = model.to_frame().sort_values("contrast")
    assert labels[1:] == table["benchmark"].tolist()
    points = lines(ax, "_estimates")
    drawn = {(round(y), round(x, 9)) for line in points for x, y in zip(*line.get_data(), strict=True)}
    want = {(0, round(model.overall["contrast"].item(), 9))}
    for column in ("contrast", "raw"):
        want |= {(row, round(value, 9)) for row, value in enumerate(table[column], start=1)}
    assert drawn == want
    hollow = [line for line in points if line.get_markerfacecolor() == "white"]
    assert {labels[round(y)] for line in hollow for y in line.get_ydata()} == set(model.singled_out)
    inside(ax)


def test_three_levels_have_a_heading_each():
    result = metafeature_effect(runs_of(8, ("a", "b", "c")), algorithms=("A", "B"), metafeature="prior", rng=1)
    labels = [text.get_text() for text in draw(result).get_yticklabels()]
    assert [labels[i] for i in (0, 10, 20)] == ["b − a", "c − a", "c − b"]


def test_what_is_refused(model):
    with pytest.raises(
        lt.errors.ArgumentError,
        match=r"result must be the result of metafeature_effect\(\), got int",
    ):
        metafeature_effect_plot(3)
    with pytest.raises(lt.errors.ArgumentError, match="ax must be one matplotlib Axes"):
        metafeature_effect_plot(model, ax=3)
    many = metafeature_effect(runs_of(30, ("a", "b", "c")), algorithms=("A", "B"), metafeature="prior", rng=1)
    with pytest.raises(lt.errors.ArgumentError, match="draws at most 80 contrasts, got 90"):
        metafeature_effect_plot(many)
