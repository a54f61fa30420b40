"""Blocks of a ranking: which runs count together, and what is missing."""

import numpy as np
import pandas as pd
import pytest
from study import as_runs

from lmemtest.bench.data.blocks import blocks_of
from lmemtest.errors import DesignError


def table(rows):
    return pd.DataFrame(rows, columns=["tool", "task", "prior", "seed", "loss"])


def test_instances_count_equally_whatever_their_number_of_runs():
    rows = [("A", "x", "good", s, 1.0) for s in range(5)] + [("A", "x", "bad", 0, 4.0), ("A", "y", "good", 0, 7.0)]
    rows += [("B", task, prior, 0, 2.0) for task, prior in [("x", "good"), ("x", "bad"), ("y", "good")]]
    blocks = blocks_of(as_runs(table(rows), benchmark="task", seed="seed", metafeatures=["prior"]))
    assert blocks.names == ("x", "y")
    assert blocks.unit == "benchmark"
    assert blocks.instances == ("x / bad", "x / good", "y / good")
    assert blocks.block.tolist() == [0, 0, 1]
    assert blocks.scores.tolist() == [[2.5, 2.0], [7.0, 2.0]]
    assert blocks.gains.tolist() == [[-2.5, -2.0], [-7.0, -2.0]]
    assert blocks.n_runs.tolist() == [[1, 1], [5, 1], [1, 1]]


def test_runs_of_a_cell_are_in_the_order_of_their_seeds():
    rows = [("A", "x", "good", s, 10.0 * s) for s in (3, 1)] + [("B", "x", "good", s, s) for s in (1, 3, 2)]
    rows += [(tool, "y", "good", 1, 0.0) for tool in "AB"]
    blocks = blocks_of(as_runs(table(rows), benchmark="task", seed="seed", ignore=["prior"]))
    np.testing.assert_array_equal(blocks.runs[0], [[10.0, 30.0, np.nan], [1.0, 2.0, 3.0]])
    assert blocks.seeds[0].tolist() == [[0, 2, -1], [0, 1, 2]]
    kept = blocks.of(["B"]).where(np.array([False, True]))
    assert kept.seeds.tolist() == [[[0, -1, -1]]]


def test_a_missing_instance_leaves_its_block_incomplete():
    rows = [(tool, task, prior, 0, 1.0) for tool in "AB" for task in "xy" for prior in ("good", "bad")]
    blocks = blocks_of(as_runs(table(rows[:-1]), benchmark="task", metafeatures=["prior"], ignore=["seed"]))
    assert blocks.complete.tolist() == [True, False]
    assert np.isnan(blocks.scores[1, 1])
    assert blocks.where(blocks.complete).names == ("x",)
    assert blocks.of(["A"]).complete.all()


def test_seeds_of_one_benchmark_are_the_blocks():
    rows = [(tool, "x", "good", seed, float(seed)) for tool in "AB" for seed in range(3)]
    blocks = blocks_of(as_runs(table(rows), benchmark="task", seed="seed", ignore=["prior"]))
    assert blocks.unit == "seed"
    assert blocks.names == ("0", "1", "2")
    assert blocks.scores.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert "says nothing about others" in blocks.notes[-1]


def test_runs_without_blocks_are_refused():
    rows = [(tool, "x", "good", seed, float(seed)) for tool in "AB" for seed in range(3)]
    with pytest.raises(DesignError, match="several seeds of one benchmark"):
        blocks_of(as_runs(table(rows), benchmark="task", ignore=["prior", "seed"]))
