"""`approach="lmem"` is `lmemtest.rank(data, "lmem")` in the tables of Autorank."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.bench.ranking.rank import rank
from lmemtest.compat.autorank import autorank, create_report, latex_table, plot_stats
from lmemtest.compat.autorank._util import get_sorted_rank_groups


def interacting(n_benchmarks=4, n_seeds=15):
    """Which algorithm is better depends on the benchmark; seeds differ little."""
    rng = np.random.default_rng(2)
    rows = pd.MultiIndex.from_product([[f"b{i}" for i in range(n_benchmarks)], range(n_seeds)])
    by_benchmark = np.repeat(rng.normal([0.0, 0.15, 0.25], 0.3, (n_benchmarks, 3)), n_seeds, axis=0)
    return pd.DataFrame(by_benchmark + rng.normal(0.0, 0.05, by_benchmark.shape), rows, ["A", "B", "C"])


@pytest.mark.parametrize("order", ["descending", "ascending"])
def test_it_is_the_ranking_of_the_package(order, table):
    data = table("normal")
    result = autorank(data, approach="lmem", order=order)
    direction = "maximize" if order == "descending" else "minimize"
    found = rank(data.rename_axis("row").reset_index().astype({"row": str}), "lmem", direction=direction)
    assert list(result.rankdf.index) == list(found.levels)
    assert result.rankdf["mean"].tolist() == approx(found.table["mean"].tolist())
    assert result.rankdf[["ci_lower", "ci_upper"]].to_numpy() == approx(found.table[["ci_low", "ci_high"]].to_numpy())
    assert result.pvalue == approx(found.pairs["p_value"].min())
    decided = result.decision_matrix.isin(["smaller", "larger"])
    assert decided.equals(found.decisions.significant.astype(bool))
    classical = autorank(data, order=order).rankdf
    pd.testing.assert_frame_equal(
        result.rankdf.drop(columns=["ci_lower", "ci_upper"]), classical.drop(columns=["ci_lower", "ci_upper"])
    )
    upper = [result.decision_matrix.iloc[i, j] for i in range(5) for j in range(i + 1, 5)]
    assert set(upper) == {"inconclusive", "smaller" if order == "descending" else "larger"}


def test_rows_of_one_benchmark_are_not_independent(capsys):
    """What the others take for 60 samples are runs on 4 benchmarks, on which the algorithms change places."""
    data = interacting()
    as_if_independent = autorank(data, force_mode="nonparametric")
    assert as_if_independent.pvalue < 1e-6
    result = autorank(data, approach="lmem")
    assert result.pvalue > 0.2
    assert set(result.decision_matrix.to_numpy()[np.triu_indices(3, 1)]) == {"inconclusive"}
    runs = lt.Runs(
        data.rename_axis(["benchmark", "seed"]).reset_index().melt(["benchmark", "seed"], var_name="algorithm"),
        score="value", direction="maximize", algorithm="algorithm", benchmark="benchmark", seed="seed",
    )  # fmt: skip
    assert result.pvalue == approx(rank(runs, "lmem").pairs["p_value"].min(), rel=1e-6)
    repeated = autorank(
        data.droplevel(1), approach="lmem"
    )  # labels that come back: seeds of their own on each benchmark
    assert repeated.pvalue > 0.2
    create_report(result)
    assert "The data show no difference between the populations, which is not evidence" in capsys.readouterr().out


def test_labels_of_any_kind_are_kept():
    data = interacting().set_axis([1, "seed", "seed"], axis=1)
    result = autorank(data, approach="lmem")
    assert sorted(map(str, result.rankdf.index)) == ["1", "seed", "seed"]
    with pytest.raises(ValueError, match="3 levels"):
        autorank(data.set_index(pd.MultiIndex.from_product([range(4), range(5), range(3)])), approach="lmem")


@pytest.mark.level(2)
def test_two_populations_are_written_and_drawn(table, capsys):
    result = autorank(table("two_normal"), approach="lmem")
    assert (result.omnibus, result.posthoc, result.cd) == ("lmem", "lmem", None)
    create_report(result)
    latex_table(result)
    out = capsys.readouterr().out
    assert "The mean value of pop_1 is significantly larger than that of pop_0" in out
    assert r"pop\_0 & " in out
    words = [text.get_text() for text in plot_stats(result).texts]
    assert "higher is better →" in words
    assert get_sorted_rank_groups(result, False)[1:] == (["pop_1", "pop_0"], [])
