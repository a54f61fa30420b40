"""The figures of a variance study show the numbers of its results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import variance_sources_plot


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
    assert [text.get_text() for text in ax.get_yticklabels()] == ["data", "init", "noise"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A", "B $x$"]
    assert_allclose(drawn(ax, "_estimates"), study.sources["relative"])
    ends = drawn(ax, "_interval").reshape(-1, 2)
    assert_allclose(ends, study.sources[["relative_low", "relative_high"]].clip(upper=4.0))
    assert "over that of data" in ax.get_xlabel()
    assert_allclose(drawn(variance_sources_plot(study, values="sd"), "_estimates"), study.sources["sd"])
    with pytest.raises(ArgumentError, match="values must be 'relative' or 'share' or 'sd'"):
        variance_sources_plot(study, values="variance")


def test_many_studies_have_a_row_each():
    study = studied([f"pipeline {i}" for i in range(8)])
    ax = study.plot(values="share")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[:2] == ["data", "pipeline 0"]
    assert len(labels) == 27
    assert "Share of the variance" in ax.get_xlabel()
