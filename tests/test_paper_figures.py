"""Figures of the papers on their own data: what they say, beside what the papers say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from paper_figures.coverage import simulate_coverage
from pytest import approx

import lmemtest as lt
from lmemtest import tuning
from lmemtest.core.result import Answer
from lmemtest.plots import detached_figures

pytestmark = pytest.mark.level(2)
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script of the examples as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def load(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


def words(figure: Figure) -> str:
    """All that is written in a figure."""
    texts = [*figure.texts, *(text for ax in figure.axes for text in ax.texts)]
    return " ".join(text.get_text().replace("\u00a0", " ") for text in texts)


def curves_of(data: Any, **options: Any) -> Answer:
    (one, first), (two, second) = data.model, data.baseline
    return tuning.compare(first[:48], second[:48], direction="maximize", names=(one, two), n_draws=0, **options)


@pytest.mark.usefixtures("data_dir")
def test_figure_3_is_strong_from_three_trials_and_that_is_the_sample(script: Any) -> None:
    module = script("tuning_curves_figures")
    data = module.searches()
    found = curves_of(data)
    assert list(found.segments) == [("weak", "DeBERTaV3", 1.0, 2.0), ("strong", "DeBERTaV3", 3.0, 8.0)]
    with detached_figures():
        said = words(module.compared(found, data, 3))
    assert "for 3 to 8 trials" in said
    assert "weak evidence that DeBERTaV3 is better at 1 to 2 trials" in said
    assert 'The paper: "strong evidence DeBERTaV3 beats DeBERTa for all budgets".' in said
    strong = module.blocks(data)
    assert [len(strong), *(int(strong.loc[:, k:].all(axis=1).sum()) for k in (1, 2, 3))] == [21, 10, 20, 21]


@pytest.mark.usefixtures("data_dir")
def test_figure_4_has_no_evidence_where_the_paper_finds_it_weak(script: Any) -> None:
    module = script("tuning_curves_figures")
    data = module.searches()
    tuned, default, *values = data.fixed
    costs = {"cost_a": values[2], "cost_b": float(values[3][0])}
    found = tuning.compare(values[0], values[1], direction="maximize", names=(tuned, default), n_draws=0, **costs)
    assert (found.label, found.segments, int(found.usable.sum())) == ("none", (), 64)
    with detached_figures():
        assert "weak evidence that the default wins" in words(module.compared(found, data, 4))


def test_figure_10_has_another_line_than_six_and_a_quarter(script: Any) -> None:
    said = script("tuning_curves_figures").reach()
    assert said.startswith("0.1395 n + 1.79 explains 99.96 %")  # the paper: 99.95 %
    assert "5.63 with 32 scores, 7.05 with 512" in said  # the paper: 6.25


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize("target", ["median", "cdf"])
def test_figures_6_and_12_lie_on_the_line(script: Any, target: str) -> None:
    module = script("tuning_curves_appendix")
    with detached_figures():
        figure = module.figure_6(module.searches(), 1024, target)
    (panel,) = figure.axes
    (line,) = (line for line in panel.lines if line.get_label() == "_reference")
    assert list(line.get_xdata()) == list(line.get_ydata()) == [0, 100]
    levels = np.array([10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99])
    bars = np.concatenate([bars.get_segments() for bars in panel.collections])
    assert len(bars) == 22  # 11 levels of two laws, nothing between them
    claimed = levels[np.abs(bars[:, 0, :1] - levels).argmin(axis=1)]  # bars stand side by side
    outside = (claimed < bars[:, 0, 1]) | (claimed > bars[:, 1, 1])
    assert outside.sum() <= 1  # of 22 exact 99 % intervals, of which those of one law are dependent


@pytest.mark.usefixtures("data_dir")
def test_bands_of_the_curve_and_of_the_distribution_hold_together(script: Any) -> None:
    module = script("tuning_curves_appendix")
    (law, *_) = module.laws(module.searches()).values()
    rates = [
        simulate_coverage(law, 48, target=target, level=(0.2, 0.8), n_draws=200, rng=1)["coverage"]
        for target in ("median", "cdf")
    ]
    np.testing.assert_array_equal(*rates)


@pytest.mark.usefixtures("data_dir")
def test_figure_5_falls_for_both_statistics(script: Any) -> None:
    module = script("tuning_curves_appendix")
    with detached_figures():
        figure = module.figure_5(module.searches(), 256)
    (panel,) = figure.axes
    curves = [line.get_ydata() for line in panel.lines if line.get_label() != "_reference"]
    names = [text.get_text() for text in panel.get_legend().get_texts()]
    assert names == ["LSTM, U-statistic", "LSTM, V-statistic", "MLP, U-statistic", "MLP, V-statistic"]
    for curve in curves:  # "close to the desired coverage" at the start, then it "plummets"
        assert curve[0] > 88.0
        assert curve[-1] < 65.0


@pytest.mark.usefixtures("data_dir")
def test_figure_9_has_one_scale_and_the_band_of_the_mean_is_wider(script: Any) -> None:
    module = script("tuning_curves_appendix")
    data = module.searches()
    with detached_figures():
        figure = module.figure_9(data, 0)
    mean, median = (ax.child_axes[0] for ax in figure.axes[:2])
    assert mean.get_ylim() == median.get_ylim()
    widths = {}
    for statistic in ("mean", "median"):
        curve = module.median(data.model[1][:48], statistic=statistic)
        widths[statistic] = (curve.band_high - curve.band_low)[curve.k == 4][0]
    assert widths["mean"] > 5 * widths["median"]


@pytest.mark.usefixtures("data_dir")
def test_figure_20_shows_weak_evidence_that_its_foot_names(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = script("tuning_curves_appendix")
    with detached_figures():
        said = words(module.figure_20(module.searches(), 0))
    assert "No evidence over at least half of the 64 budgets" in said
    assert "weak evidence that 3 epochs is better at a cost of 9.439, 14.59, 36.48 to 46.79, 50.65 to 51.94." in said
    printed = capsys.readouterr().out
    assert printed.count("weak for 3 epochs") == 4
    assert module.PAPER_20 in printed
    assert module.PAPER_20 in said


def test_of_a_pair_of_which_one_is_always_better_u_errs_most(script: Any) -> None:
    module = script("tuning_estimators_study")
    rng = np.random.default_rng(2021)
    pair = module.simulated_pair(rng)
    assert (np.sort(pair["A"]) > np.sort(pair["B"])).all()  # so its expected best is better at every budget
    wrong = module.wrong_conclusions(pair, rng)
    assert set(wrong["better"]) == {"A"}
    rates = wrong.pivot(index="B", columns="estimator", values="wrong")
    assert (rates["U"] > rates["V"]).all()
    assert (rates["V"] > rates["W"]).mean() > 0.9


@pytest.mark.usefixtures("data_dir")
def test_figure_12_has_three_of_the_five_contrasts_that_the_paper_prints(script: Any) -> None:
    module = script("metafeature_analysis")
    runs, algorithms = module.study()
    outcomes = lt.metafeature_effect(runs, algorithms, "prior", method="outcomes", rng=0)
    ours = outcomes.contrasts.set_index("benchmark")["contrast"]
    assert {name: round(ours[name] * 24) for name in module.PAPER} == {
        "LC-167190": 3, "LC-126026": -16, "LC-168330": -12, "LC-168910": -2, "PD1-LM1B": -29,
    }  # fmt: skip
    assert {name: round(value * 24) for name, value in module.PAPER.items()} == {
        "LC-167190": 3, "LC-126026": -17, "LC-168330": -12, "LC-168910": -3, "PD1-LM1B": -29,
    }  # fmt: skip
    assert "LC-126026 and LC-168910 differ, by one of 24 budgets each." in module.beside_paper(outcomes)
    assert outcomes.singled_out == ("LC-167190", "LC-168910")


@pytest.mark.usefixtures("data_dir")
def test_figure_6_has_the_relative_ranks_of_the_table_over_a_logarithmic_axis(script: Any) -> None:
    runs = script("paper_figure_06").study()
    ranks = lt.anytime(runs).ranks(by="prior", unit="seeds")
    theirs = runs.to_frame().groupby([runs.algorithm, runs.budget])["rel_rank"].mean()
    ours = ranks.table[ranks.table["prior"] == "all"].set_index(["algorithm", "budget"])["rank"]
    assert ours.sort_index().to_numpy() == approx(theirs.sort_index().to_numpy(), abs=1e-12)
    assert {panel.get_xscale() for panel in ranks.plot().child_axes} == {"log"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_script_says_how_it_is_called(path, script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    with pytest.raises(SystemExit) as done:
        script(path.stem).main()
    assert done.value.code == 0
    said = capsys.readouterr().out
    writes = path.stem not in ("compare_models", "four_verdicts")
    assert ("[folder]" in said) == writes
    assert ("(default: out)" in said) == writes
