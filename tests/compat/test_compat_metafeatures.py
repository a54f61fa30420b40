"""The metafeature analysis: wins as the peer's, p-values from runs instead of budgets."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy import stats

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
from lmemtest.compat.significance_analysis import cd_diagram, metafeature_analysis, post_hoc
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def within(stored, frame_of):
    """The peer's contrasts between levels of one benchmark."""
    contrasts = frame_of(stored)
    sides = contrasts["Contrast"].str.strip("()").str.split(r"\) - \(", expand=True)
    same = sides[0].str.rsplit(" x ", n=1).str[0] == sides[1].str.rsplit(" x ", n=1).str[0]
    return contrasts[same]


@pytest.mark.parametrize("name", ["real", "null"])
def test_shape_and_order_are_the_peers(peer, table, frame_of, name):
    estimates, contrasts = metafeature_analysis(table(name), ("PB", "HB"), "prior", verbose=False)
    theirs = peer["checks"]["metafeature"][name]["tables"]
    assert list(estimates.columns) == theirs[0]["columns"]
    assert [str(dtype) for dtype in estimates.dtypes] == theirs[0]["dtypes"]
    assert estimates["benchmark_variant"].tolist() == theirs[0]["data"]["benchmark_variant"]
    assert list(contrasts.columns) == theirs[1]["columns"]
    assert [str(dtype) for dtype in contrasts.dtypes] == theirs[1]["dtypes"]
    assert contrasts["Contrast"].tolist() == frame_of(theirs[1])["Contrast"].tolist()
    assert len(contrasts) == len(estimates) * (len(estimates) - 1) // 2
    assert contrasts.notna().all(axis=None)
    assert estimates.notna().all(axis=None)


def test_the_conclusion_of_each_benchmark_is_printed(table, capsys):
    metafeature_analysis(table("real"), ("PB", "HB"), "prior")
    lines = capsys.readouterr().out.splitlines()
    pattern = r"=> .+: \w+ - \w+ = -?\d\.\d{3}, p [=<] \d\.\d{3}, .+\."
    assert len([line for line in lines if re.fullmatch(pattern, line)]) == table("real")["benchmark"].nunique()


def test_wins_are_counted_by_exact_tests(table):
    """A win of the first algorithm is -1: its losses are significantly lower in a two-sample t-test."""
    frame = table("real")
    estimates, contrasts = metafeature_analysis(frame, ("PB", "HB"), "prior", verbose=False)
    expected = {}
    for (benchmark, prior, _), part in frame.groupby(["benchmark", "prior", "used_fidelity"]):
        first, second = (part.loc[part["algorithm"] == a, "value"] for a in ("PB", "HB"))
        test = stats.ttest_ind(first, second)
        win = 0 if test.pvalue >= 0.05 else np.sign(test.statistic)
        expected.setdefault(f"{benchmark} x {prior}", []).append(win)
    means = {name: np.mean(wins) for name, wins in expected.items()}
    ours = dict(zip(estimates["benchmark_variant"], estimates["Estimate"], strict=True))
    assert ours == approx(means)
    for row in contrasts.itertuples():
        left, right = (side.strip("()") for side in row.Contrast.split(") - ("))
        assert row.Estimate == approx(means[left] - means[right])


def test_variances_divided_by_n_count_more_wins(peer, table):
    """Peer: 10 degrees of freedom and a divisor of 10 for two groups of five runs, and the first row apart."""
    stored = peer["checks"]["metafeature"]["real"]["tables"][0]["data"]
    theirs = dict(zip(stored["benchmark_variant"], stored["Estimate"], strict=True))
    estimates, _ = metafeature_analysis(table("real"), ("PB", "HB"), "prior", verbose=False)
    ours = dict(zip(estimates["benchmark_variant"], estimates["Estimate"], strict=True))
    assert theirs["gbt-3 x bad"] == 1.0
    assert ours["gbt-3 x bad"] == 0.5
    assert all(abs(ours[name]) <= abs(theirs[name]) + 1e-9 for name in ours)


def test_budgets_of_the_same_runs_are_no_sample(peer, table, frame_of):
    """Peer: where nothing matters a difference of runs lasts over eight budgets, and is certain."""
    theirs = within(peer["checks"]["metafeature"]["null"]["tables"][1], frame_of)
    assert (theirs["P-val"] < 0.001).sum() == 1
    _, contrasts = metafeature_analysis(table("null"), ("PB", "HB"), "prior", verbose=False)
    assert (contrasts["P-val"] > 0.05).all()
    assert set(contrasts["Sig"]) == {""}


def test_intervals_p_values_and_diagram_decide_the_same(table):
    """Games-Howell: Tukey's range with the error and the degrees of freedom of each pair."""
    result = metafeature_analysis(table("real"), ("PB", "HB"), "prior", verbose=False)
    contrasts, k = result[1], len(result[0])
    t = contrasts["Estimate"] / contrasts["SE"]
    assert contrasts["T-stat"].tolist() == approx(t.tolist())
    assert contrasts["P-val"].tolist() == approx(
        stats.studentized_range.sf(np.sqrt(2) * t.abs(), k, contrasts["DF"]).tolist(), abs=1e-6
    )
    excludes = (contrasts["2.5_ci"] > 0) | (contrasts["97.5_ci"] < 0)
    assert (excludes == (contrasts["P-val"] < 0.05)).all()
    assert excludes.any()
    found = post_hoc._of_tables(*result, "benchmark_variant")
    assert not found.undecided.any(axis=None)
    assert found.significant.to_numpy().sum() == 2 * excludes.sum()


def test_one_call_has_one_sign(table, capsys):
    """Before, the tables counted the wins of the second algorithm and the printed lines those of the first."""
    estimates, _ = metafeature_analysis(table("real"), ("PB", "HB"), "prior")
    wins = dict(zip(estimates["benchmark_variant"].astype(str), estimates["Estimate"], strict=True))
    lines = re.findall(r"=> (\S+): (\S+) - (\S+) = (\S+), p", capsys.readouterr().out)
    assert len(lines) == 4
    for benchmark, level, reference, value in lines:
        assert float(value) == approx(wins[f"{benchmark} x {level}"] - wins[f"{benchmark} x {reference}"], abs=5e-4)
    assert any(float(value) for *_, value in lines)


def test_contrasts_within_benchmarks_are_those_of_the_recipe(table):
    frame = table("real")
    _, contrasts = metafeature_analysis(frame, ("PB", "HB"), "prior", verbose=False)
    roles = {"score": "value", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    runs = lt.Runs(frame, **roles, seed="seed", budget="used_fidelity", metafeatures=("prior",))
    native = metafeature_outcomes(
        runs, algorithms=("PB", "HB"), metafeature="prior", levels=["good", "bad"], rng=0
    ).to_frame()
    native = native.set_index("benchmark")
    sides = contrasts["Contrast"].str.strip("()").str.split(r"\) - \(", expand=True)
    of = sides.apply(lambda side: side.str.rsplit(" x ", n=1).str[0])
    same = contrasts[of[0] == of[1]].assign(benchmark=of[0])
    assert len(same) == 4
    for row in same.to_dict("records"):
        assert row["Estimate"] == approx(native.loc[row["benchmark"], "contrast"])


def test_the_table_of_the_caller_is_not_changed(peer, table):
    assert peer["checks"]["metafeature"]["real"]["columns_after"][-1] == "benchmark_variant"
    frame = table("real")
    before = frame.copy()
    metafeature_analysis(frame, ("PB", "HB"), "prior", verbose=False)
    pd.testing.assert_frame_equal(frame, before)


def test_other_names_of_columns_work(peer, table):
    """Peer: its validator is not told them."""
    assert peer["checks"]["metafeature_renamed"]["error"] == "ValueError"
    names = {"algorithm": "tool", "benchmark": "task", "value": "loss", "used_fidelity": "epochs"}
    roles = {"algorithm_var": "tool", "benchmark_var": "task", "loss_var": "loss", "fidelity_var": "epochs"}
    renamed = metafeature_analysis(table("real").rename(columns=names), ("PB", "HB"), "prior", **roles, verbose=False)
    plain = metafeature_analysis(table("real"), ("PB", "HB"), "prior", verbose=False)
    pd.testing.assert_frame_equal(renamed[0], plain[0])
    pd.testing.assert_frame_equal(renamed[1], plain[1])


def test_wins_are_saved(table, tmp_path, capsys):
    estimates, _ = metafeature_analysis(table("real"), ("PB", "HB"), "prior", path=str(tmp_path / "wins"))
    assert "=> Over 4 benchmarks" in capsys.readouterr().out
    wins = pd.read_parquet(tmp_path / "wins.parquet")
    assert list(wins.columns) == ["benchmark_variant", "wins", "fidelity", "benchmark", "metafeature"]
    assert len(wins) == 4 * 2 * 4
    means = wins.groupby("benchmark_variant")["wins"].mean()
    assert means[estimates["benchmark_variant"].astype(str)].tolist() == approx(estimates["Estimate"].tolist())


def test_a_figure_is_drawn(table, plt):
    before = plt.get_fignums()
    result = metafeature_analysis(table("real"), ("PB", "HB"), "prior", plot=True, verbose=False)
    assert len(plt.get_fignums()) == len(before) + 1
    plt.close("all")
    figure = cd_diagram(result, system_id="benchmark_variant")
    assert not [line for line in figure.axes[0].lines if line.get_label() == "_open bar"]
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert "svm-0 x good" in labels
    assert not any("no test" in text for text in labels)


def test_bad_input(table):
    frame = table("real")
    text = "dataset names the column 'piror', which is not in the data. Columns: benchmark, prior, algorithm, seed, "
    refuses(UnknownColumnError, re.escape(text), metafeature_analysis, frame, ("PB", "HB"), "piror")
    with pytest.raises(ArgumentError, match="'XX'") as caught:
        metafeature_analysis(frame, ("PB", "XX"), "prior")
    assert isinstance(caught.value, ValueError)
    constant = frame[(frame["prior"] == "good") == frame["benchmark"].isin(["svm-0", "mlp-1"])]
    refuses(DataError, "constant", metafeature_analysis, constant, ("PB", "HB"), "prior")


def test_names_with_an_operator_count_as_any(table):
    """The peer compares ``A-1`` with emmeans' ``(A-1)``, so that such an algorithm never wins there."""
    frame = table("real")
    renamed = frame.assign(algorithm=frame["algorithm"].replace({"PB": "A-1", "HB": "HB+prior"}))
    plain = metafeature_analysis(frame, ("PB", "HB"), "prior", verbose=False)
    signed = metafeature_analysis(renamed, ("A-1", "HB+prior"), "prior", verbose=False)
    for ours, want in zip(signed, plain, strict=True):
        pd.testing.assert_frame_equal(ours, want)
    assert (plain[0]["Estimate"] < 0).any()
