"""The section on tuning curves says what the curves say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lmemtest import tuning
from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.curves import headline, save_curves

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def trials() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = [
        (tool, f"task{task}", step + rng.gamma(2.0))
        for task in range(3)
        for step, tool in enumerate("ABC")
        for _ in range(24)
    ]
    return pd.DataFrame(rows, columns=["tool", "task", "loss"])


def test_trials_add_a_section_with_the_counts(trials: pd.DataFrame, three: Analysis) -> None:
    curves = tuning.curves(trials, score="loss", direction="minimize", by=["task", "tool"], level=0.9)
    analysis = analyze(three.runs, trials=curves)
    assert analysis.trials is curves
    page, text = analysis.to_html(), " ".join(analysis.to_text().split())
    assert ">Tuning curves</h2>" in page
    for sentence in curves.labels(rng=1).sentences():
        assert sentence in text
    assert "with 90 % LD band of highest-density intervals" in text
    assert "doi:10.18653/v1/2024.naacl-long.189" in text
    assert (
        "random numbers are drawn for the p-values of the checks of the assumptions and the rates of false labels only"
        in text
    )
    assert (
        "trials=lmemtest.tuning.curves(trials, score='loss', direction='minimize', by=('task', 'tool'), "
        "statistic='median', level=0.9, band='ld_highest_density')"
    ) in analysis.call
    assert analysis.to_html() == page
    assert "Tuning curves" not in three.to_html()
    assert "random numbers are drawn for the p-values of the checks of the assumptions only" in three.to_html()


def test_a_table_with_the_columns_of_the_runs_is_enough(trials: pd.DataFrame, three: Analysis) -> None:
    want = tuning.curves(trials, score="loss", direction="minimize", by=["task", "tool"]).to_frame()
    table = analyze(three.runs, trials=trials).trials
    runs = analyze(
        three.runs, trials=Runs(trials, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    ).trials
    for found in (table, runs):
        assert found is not None
        pd.testing.assert_frame_equal(found.to_frame(), want)


def test_curves_over_seeds_are_called_so(table: Make, as_runs: Make) -> None:
    frame = pd.concat([table(seeds=8).assign(epochs=e, loss=lambda f, e=e: f["loss"] / e) for e in (1, 2)])
    runs = as_runs(frame, budget="epochs")
    analysis = analyze(runs, trials=tuning.curves(runs, unit="seed"))
    text = " ".join(analysis.to_text().split())
    assert "Curves over seeds" in text
    assert "an adaptive optimiser learns from its scores" in text
    assert "random numbers are drawn for the p-values of the checks of the assumptions only" in text
    assert "unit='seed', simultaneous=True, seed='seed', budget='epochs'" in analysis.call


def test_one_algorithm_has_curves_without_labels(trials: pd.DataFrame, three: Analysis) -> None:
    alone = analyze(three.runs, trials=trials[trials["tool"] == "A"])
    assert "Evidence between tuning curves" not in alone.to_text()
    assert "Tuning curves of loss" in alone.to_text()


def test_names_are_escaped(nasty_names: tuple[str, ...], three: Analysis, trials: pd.DataFrame) -> None:
    odd = trials.assign(tool=trials["tool"].map(dict(zip("ABC", nasty_names, strict=False))))
    odd = odd.assign(task=odd["task"].map(lambda name: f"<i>{name}</i>"))
    page = analyze(three.runs, trials=odd).to_html()
    assert "<script>" not in page
    assert "<i>" not in page


def test_what_is_no_table_of_trials_is_refused(three: Analysis, trials: pd.DataFrame) -> None:
    with pytest.raises(ArgumentError, match="trials must be a dataframe"):
        analyze(three.runs, trials=[1, 2, 3])
    with pytest.raises(UnknownColumnError) as caught:
        analyze(three.runs, trials=trials.rename(columns={"loss": "los"}))
    assert str(caught.value) == (
        "trials names the column 'loss', which is not in the data. Columns: tool, task, los. Did you mean 'los'?"
    )


def test_files_are_the_same_each_time(trials: pd.DataFrame, tmp_path: Any) -> None:
    curves = tuning.curves(trials, score="loss", direction="minimize", by=["task", "tool"])
    first = {path.name: path.read_bytes() for path in save_curves(curves, tmp_path / "a")}
    second = {path.name: path.read_bytes() for path in save_curves(curves, tmp_path / "b")}
    assert first == second
    assert sorted(first) == ["tuning-curves.csv", "tuning-curves.png", "tuning-curves.svg", "tuning-labels.csv"]


def test_many_pairs_are_a_table_instead_of_sentences(three: Analysis) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"tool": np.repeat([f"t{i}" for i in range(8)], 12), "loss": rng.random(96)})
    curves = tuning.curves(table, score="loss", direction="minimize", by="tool")
    said = headline(curves)
    assert len(said) == 12
    assert said[-1] == "... and 18 more pairs: see tuning-labels.csv."
    page = analyze(three.runs, trials=curves).to_html()
    assert "Table of the evidence</summary>" in page
    assert said[1] not in page
