"""Classical tests beside a model: the decisions of `rank`, and nothing that they do not need."""

import numpy as np
import pandas as pd
import pytest
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.outperforming import effect_size
from lmemtest.bench.ranking import classical, compare
from lmemtest.bench.ranking.compare import beside

COUNTS = ("n_rows", "n_blocks", "n_significant")


def runs(missing: float = 0.0, algorithms: int = 5, digits: int = 9) -> lt.Runs:
    rng = np.random.default_rng(4)
    shape = (14, algorithms, 3)
    y = 0.5 * np.arange(algorithms)[:, None] + rng.normal(size=14)[:, None, None]
    y = (y + rng.normal(size=shape[:2])[..., None] + 0.3 * rng.normal(size=shape)).round(digits)
    table = table_of_scores(y, "task tool seed", "loss").astype({"tool": str, "task": str})
    return as_runs(table[np.repeat(rng.random(shape[:2]) >= missing, 3)])


@pytest.mark.parametrize(("benchmarks", "left_out"), [(7, True), (8, False)])
def test_signed_ranks_that_cannot_be_significant_are_left_out_and_it_is_said(benchmarks, left_out):
    table = runs(algorithms=3).filter(task=[str(task) for task in range(benchmarks)])
    pairs = lt.fit_lmm("loss ~ tool + (1|task) + (1|task:tool)", table).emmeans("tool").pairs()
    alpha = 0.04  # three pairs on seven benchmarks: 3 / 64 = 0.047 at least, on eight 3 / 128 = 0.023
    found = beside(pairs, pairs.decisions(direction="minimize").levels, table, alpha)
    assert ("wilcoxon" not in found.tests) == left_out
    assert (
        found.notes
        == ("Wilcoxon signed-rank tests are left out: with 7 benchmarks and 3 pairs none can be significant at 4 %.",)
        * left_out
    )
    wilcoxon = lt.rank(table, "frequentist", test="wilcoxon", alpha=alpha)
    assert any("no signed-rank test can be significant" in note for note in wilcoxon.notes) == left_out


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "table",
    [runs(), runs(0.2), runs(algorithms=2), runs(digits=0)],
    ids=["complete", "missing", "two algorithms", "ties"],
)
def test_decisions_are_those_of_rank(table, monkeypatch):
    recommended = lt.recommend(table)
    pairs = lt.fit_lmm(recommended.formula, table).emmeans("tool").pairs()
    expected = lt.rank(table, "all", rng=0, n_draws=1000)
    for module, name in ((classical, "shift_intervals"), (effect_size, "effect_sizes")):
        monkeypatch.setattr(module, name, None)  # what is not needed is not called
    found = beside(pairs, pairs.decisions(direction="minimize").levels, table, 0.05)
    columns = ["left", "right", *found.tests]
    pd.testing.assert_frame_equal(found.table[columns], expected.table[columns], check_dtype=False)
    trap, whole = found.rows_as_blocks, expected.rows_as_blocks
    assert [trap[name] for name in COUNTS] == [whole[name] for name in COUNTS]


class Counted:
    """A generator that counts its numbers."""

    def __init__(self) -> None:
        self.rng, self.count, self.most = np.random.default_rng(0), 0, 0

    def random(self, shape):
        self.count, self.most = self.count + int(np.prod(shape)), max(self.most, int(np.prod(shape)))
        return self.rng.random(shape)


def test_exchanges_of_many_blocks_have_the_share_of_normal_sums(monkeypatch):
    sums = np.random.default_rng(1).permuted(np.tile(np.arange(1.0, 6.0), (300, 1)), axis=1)
    drawn, normal = Counted(), Counted()
    share, low, high = compare._false_alarms(sums, 300, 0.1, drawn)
    monkeypatch.setattr(compare, "_EXCHANGED", 1000)
    assert low < compare._false_alarms(sums, 300, 0.1, normal)[0] < high
    assert (drawn.count, normal.count) == (compare.EXCHANGES * sums.size, 0)
    assert low < share < high


def test_exchanges_of_few_blocks_are_bounded_in_number_and_memory(monkeypatch):
    sums = np.random.default_rng(1).permuted(np.tile(np.arange(1.0, 41.0), (10, 1)), axis=1)
    whole = compare._false_alarms(sums, 10, 0.1, Counted())
    counted = Counted()
    monkeypatch.setattr(compare, "_AT_ONCE", 4000)
    assert compare._false_alarms(sums, 10, 0.1, counted) == whole  # in parts, the same draws
    assert counted.most <= 4000
    counted = Counted()
    monkeypatch.setattr(compare, "_EXCHANGED", 200_000)
    compare._false_alarms(sums, 10, 0.1, counted)
    assert counted.count <= 200_000


@pytest.mark.parametrize("n", [7, 60])
def test_pairs_without_ties_share_one_null_distribution(n, monkeypatch):
    rng = np.random.default_rng(n)
    d = rng.normal(size=(40, n))
    d[0, 0], d[1, :2] = 0.0, (0.5, -0.5)
    sizes = np.zeros((40, 1))
    expected = [classical.wilcoxon(row) for row in d]
    calls = []
    original = classical.null_of_sums
    monkeypatch.setattr(classical, "null_of_sums", lambda ranks: calls.append(1) or original(ranks))
    statistic, p = classical._signed_ranks(d, sizes)
    counts = np.count_nonzero(d, axis=1)
    assert statistic.tolist() == [2 * s - c * (c + 1) / 2 for (s, _), c in zip(expected, counts, strict=True)]
    np.testing.assert_allclose(p, [p for _, p in expected], rtol=1e-14)
    assert len(calls) <= 3
