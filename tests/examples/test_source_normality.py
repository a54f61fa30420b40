"""Shapes of the scores of each source, against scipy and simulated intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from paper_figures.source_normality import samples, source_normality, source_normality_plot
from scipy import stats

import lmemtest as lt
from lmemtest.errors import DesignError


def studied(n=30, draw=lambda rng, n: rng.normal(size=n), tools=("A",)) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    seeds = pd.DataFrame({"data": [*range(n), *[0] * n], "init": [*[0] * n, *range(1, n + 1)]})
    table = pd.concat([seeds.assign(tool=tool) for tool in tools])
    table["acc"] = draw(rng, len(table))
    return samples(lt.variance_sources(table, score="acc", sources=["data", "init"], algorithm="tool"))


def test_shapes_are_those_of_scipy():
    scores = studied()
    shapes = source_normality(scores).set_index("source")
    assert list(shapes.index) == ["data", "init"]
    for source, row in shapes.iterrows():
        x = scores.loc[scores["source"] == source, "score"]
        assert_allclose([row["skewness"], row["excess_kurtosis"]], [stats.skew(x), stats.kurtosis(x)])
        assert_allclose(row["p_raw"], stats.shapiro(x).pvalue)
        assert (row["n"], row["distinct"], row["coarse"]) == (len(x), len(x), False)


def test_a_grid_of_few_scores_is_named_as_the_reason():
    shapes = source_normality(studied(300, lambda rng, n: rng.binomial(30, 0.8, size=n) / 30))
    assert shapes["coarse"].all()
    assert shapes["distinct"].max() < 30
    assert (shapes["p_value"] < 0.05).all()


def test_scores_with_a_long_tail_are_skewed_for_their_number():
    p = (np.arange(30) + 0.5) / 30
    laws = {"normal": stats.norm.ppf(p), "long": stats.expon.ppf(p) ** 2}
    scores = pd.concat(pd.DataFrame({"source": name, "score": x}) for name, x in laws.items())
    assert source_normality(scores).set_index("source")["skewed"].to_dict() == {"normal": False, "long": True}


def test_what_has_no_shape_is_refused():
    crossed = {"data": [0, 0, 1, 1], "init": [0, 1, 0, 1], "acc": [0.0, 1.0, 0.5, 1.2]}
    with pytest.raises(DesignError, match="normality needs samples in which one source varies"):
        samples(lt.variance_sources(crossed, score="acc", sources=["data", "init"]))
    with pytest.raises(DesignError, match="no source varies the score"):
        source_normality(pd.DataFrame({"source": "data", "score": [1.0, 1.0, 1.0]}))


@pytest.mark.level(2)
def test_densities_are_drawn_with_stars_where_the_shape_is_not_normal():
    scores = studied(30, lambda rng, n: rng.exponential(size=n), tools=("A", "B", "C"))
    shapes = source_normality(scores)
    axes = source_normality_plot(scores).axes
    assert [ax.get_title(loc="left") for ax in axes] == ["A", "B", "C"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["data", "init"]
    for ax, tool in zip(axes, "ABC", strict=True):
        rows = shapes[shapes["algorithm"] == tool]
        stars = [line for line in ax.lines if line.get_label() == "_star"]
        assert len(stars) == (rows["p_value"] <= 0.05).sum()
        normals = [line for line in ax.lines if line.get_label() == "_normal"]
        assert len(ax.collections) == len(normals) == 2
        middle = scores[scores["algorithm"] == tool].groupby("source")["score"].quantile([0.025, 0.975])
        assert ax.get_xlim()[0] <= middle.min() < middle.max() <= ax.get_xlim()[1]
        for normal, source in zip(normals, ("data", "init"), strict=True):
            x = scores.loc[(scores["algorithm"] == tool) & (scores["source"] == source), "score"]
            assert normal.get_xdata()[normal.get_ydata().argmax()] == pytest.approx(x.mean(), abs=0.05)


@pytest.mark.level(2)
def test_a_source_without_variation_has_a_row_that_says_so():
    scores = studied(30, lambda rng, n: rng.normal(size=n), tools=("A", "B"))
    same = (scores["algorithm"] == "A") & (scores["source"] == "init")
    scores.loc[same, "score"] = 1.0
    first, second = source_normality_plot(scores).axes
    assert [text.get_text() for text in first.texts] == ["no variation"]
    assert not second.texts
