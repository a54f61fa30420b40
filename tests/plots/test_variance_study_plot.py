"""The figures of a variance study show the numbers of its results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import lmemtest as lt
from lmemtest.bench.variation.binomial_noise import binomial_noise
from lmemtest.errors import ArgumentError
from lmemtest.plots import binomial_noise_plot, source_normality_plot, variance_study_plot


def studied(groups, n=12, **options):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"data": [*range(n), *[0] * (n + 3)], "init": [*[0] * n, *range(1, n), *[0] * 4]})
    parts = [
        table.assign(tool=name, acc=np.round(0.8 + 0.05 * rng.normal(size=len(table)) * (table["data"] > 0), 2))
        for name in groups
    ]
    return lt.variance_study(
        pd.concat(parts).assign(acc=lambda t: t["acc"] + 0.001 * rng.normal(size=len(t))),
        score="acc", sources=["data", "init"], algorithm="tool", **options,
    )  # fmt: skip


def drawn(ax, label):
    return np.concatenate([line.get_xdata() for line in ax.lines if line.get_label() == label])


def test_variances_relative_to_the_split_by_study():
    study = studied(["A", "B $x$"])
    ax = study.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["data", "init", "noise"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A", "B $x$"]
    assert_allclose(drawn(ax, "_estimates"), study.table["relative"])
    ends = drawn(ax, "_interval").reshape(-1, 2)
    assert_allclose(ends, study.table[["relative_low", "relative_high"]].clip(upper=4.0))
    assert "over that of data" in ax.get_xlabel()
    assert_allclose(drawn(variance_study_plot(study, values="sd"), "_estimates"), study.table["sd"])
    with pytest.raises(ArgumentError, match="values must be 'relative' or 'share' or 'sd'"):
        variance_study_plot(study, values="variance")


def test_many_studies_have_a_row_each():
    study = studied([f"pipeline {i}" for i in range(8)])
    ax = study.plot(values="share")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[:2] == ["data", "pipeline 0"]
    assert len(labels) == 27
    assert "Share of the variance" in ax.get_xlabel()


def test_points_of_the_test_set_stand_beside_their_curves():
    rng = np.random.default_rng(2)
    noise = binomial_noise({name: rng.binomial(100, 0.8, 20) / 100 for name in "ab"}, {"a": 100, "b": 100})
    (panel,) = binomial_noise_plot(noise).child_axes
    lines = {label: [line for line in panel.lines if line.get_label() == label] for label in ("_binomial", "_observed")}
    for line, name in zip(lines["_binomial"], "ab", strict=True):
        assert_allclose(line.get_ydata(), noise.curves.loc[noise.curves["name"] == name, "binomial_sd"])
    assert_allclose([line.get_ydata()[0] for line in lines["_observed"]], noise.table["sd"])
    x = np.array([line.get_xdata()[0] for line in lines["_observed"]])
    assert_allclose([x.prod() ** 0.5, x[1] / x[0]], [100.0, 1.06])


def test_densities_are_those_of_the_result():
    shapes = studied(["A", "B", "C"], n=30).normality()
    ax = source_normality_plot(shapes)
    assert [panel.get_title(loc="left") for panel in ax.child_axes] == ["A", "B", "C"]
    for panel, name in zip(ax.child_axes, "ABC", strict=True):
        curves = shapes.densities[shapes.densities["algorithm"] == name]
        normals = [line for line in panel.lines if line.get_label() == "_normal"]
        assert_allclose(np.concatenate([line.get_xdata() for line in normals]), curves["score"])
        stars = [line for line in panel.lines if line.get_label() == "_star"]
        rows = shapes.table[shapes.table["algorithm"] == name]
        assert len(stars) == (rows["p_value"] <= 0.05).sum()
        assert len(panel.collections) == len(normals) == 2
