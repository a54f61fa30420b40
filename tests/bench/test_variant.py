"""A variant of an analysis: the numbers of the whole analysis of the reduced table, and what it shares."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import KINDS, refusal
from study import make_runs

import lmemtest as lt
from lmemtest.errors import FormulaError


def runs():
    return make_runs(5)


def with_families():
    """Nine families of benchmarks, with gaps."""
    return make_runs(5, families=[3] * 8 + [5], missing=0.05)


def curves():
    return make_runs(4, budgets=3)


CASES = {
    "a benchmark": (runs, {"without": {"benchmark": "b03"}}, {}),
    "two algorithms and a seed": (runs, {"without": {"algorithm": ["A", "B"], "seed": 1}}, {}),
    "a family": (with_families, {"without": {"family": "f3"}}, {}),
    "a benchmark of a family": (with_families, {"without": {"benchmark": "b04"}}, {}),
    "an algorithm": (with_families, {"without": {"algorithm": "C"}}, {}),
    "three families": (with_families, {"only": {"family": ["f1", "f5", "f8"]}}, {}),
    "benchmarks as the sample": (with_families, {}, {"population": "benchmark"}),
    "these benchmarks": (runs, {"without": {"benchmark": "b00"}}, {"population": "run"}),
    "one budget": (curves, {"only": {"budget": 2}}, {}),
    "a benchmark, of curves": (curves, {"without": {"benchmark": "b05"}}, {}),
    "the last score, of curves": (curves, {"without": {"algorithm": "A"}}, {"curves": "last"}),
    "the errors of the model": (with_families, {"without": {"benchmark": "b07"}}, {"vcov": "model", "adjust": "holm"}),
    "another level": (runs, {}, {"alpha": 0.01}),
    "a formula": (runs, {"without": {"benchmark": "b03"}}, {"formula": "loss ~ algorithm + (1 | benchmark)"}),
    "residual variances": (runs, {"without": {"algorithm": "A"}}, {"dispersion": "benchmark"}),
    "Kenward-Roger": (runs, {"without": {"algorithm": "B"}}, {"ddf": "kenward-roger", "vcov": "model"}),
}


def reduced(runs, without=None, only=None):
    """The rows that are left as a table of its own."""
    table = runs.to_frame()
    for column, levels in (without or {}).items():
        table = table[~table[column].isin([levels] if np.isscalar(levels) else levels)]
    for column, levels in (only or {}).items():
        table = table[table[column].isin([levels] if np.isscalar(levels) else levels)]
    return lt.Runs(table.reset_index(drop=True), **runs.roles())


def equal(pairs, whole):
    """Whether two tables of pairs hold the same numbers."""
    mine, theirs = pairs.to_frame(), whole.to_frame()
    assert [*mine] == [*theirs]
    for name in mine:
        if mine[name].dtype.kind == "f":
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-8, atol=1e-10, err_msg=name)
        else:
            assert mine[name].tolist() == theirs[name].tolist()


QUICK = ("a benchmark", "an algorithm")


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.level(2)) for case in CASES]
)
def test_a_variant_has_the_numbers_of_the_whole_analysis_of_what_is_left(case):
    made, part, options = CASES[case]
    table = made()
    lt.recommend(table)  # rows are grouped: variants take what they need from there
    pairs = lt.variant(table, **part, **options)
    analysis = lt.analyze(reduced(table, **part), **options)
    equal(pairs, analysis.pairs)
    equal(pairs.estimates, analysis.means)
    alpha = options.get("alpha", 0.05)
    np.testing.assert_array_equal(pairs.decisions(alpha=alpha).codes, analysis.decisions.codes)


def test_scores_are_normalised_among_those_who_are_left():
    table = runs()
    pairs = lt.variant(table, without={"algorithm": "B"}, scale="rank")
    equal(pairs, lt.analyze(reduced(table, without={"algorithm": "B"}).normalize("rank")).pairs)
    ranks = table.normalize("rank")
    equal(lt.variant(ranks, without={"algorithm": "B"}, scale="rank"), pairs)
    kept = lt.variant(ranks, without={"algorithm": "B"})  # among all of them
    equal(kept, lt.analyze(ranks.filter(algorithm=[name for name in table.algorithms if name != "B"])).pairs)
    assert not np.allclose(kept.to_frame()["estimate"], pairs.to_frame()["estimate"])


def test_a_variant_of_a_seen_table_reads_no_rows(monkeypatch):
    table = with_families()
    lt.recommend(table)
    monkeypatch.setattr("lmemtest.bench.data.study.aggregate", None)
    assert len(lt.variant(table, without={"benchmark": "b04"}, population="benchmark").table) == 10


def test_a_variant_says_what_is_another_one():
    table, two = with_families(), ["b01", "b02"]
    pairs = lt.variant(table, without={"benchmark": two}, only={"algorithm": ["A", "C"]}, population="benchmark")
    assert pairs.notes[-1] == (
        "A variant of the analysis: without benchmark b01 and b02, only algorithm A and C, for new benchmarks of these "
        "9 families. Its level holds for this one variant."
    )
    assert not any("variant" in note for note in lt.variant(table).notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"without": {"algorithm": "Z"}},
         "without: 'Z' does not occur in the column 'algorithm'. Its values: 'A', 'B'"),
        ({"only": {"algorithm": "A"}}, "The column 'algorithm' holds one algorithm only, 'A'"),
        ({"without": {"benchmark": [f"b{i:02d}" for i in range(8)]}}, "The table has no rows"),
        ({"without": 3},
         "without must be a mapping of columns or roles to values, such as {'benchmark': 'b00'}, got 3"),
        ({"only": {"task": 3}}, "only names the column 'task', which is not in the data"),
        ({"formula": "loss ~ 1"}, "formula must have the algorithm 'algorithm' in its fixed part"),
        ({"formula": "loss ~ algorithm", "population": "run"}, "and formula each choose the model: give one of them"),
        ({"formula": "loss ~ algorithm", "scale": "rank"}, "models 'loss', but the score of these runs is 'loss_rank'"),
        ({"scale": "baseline"}, "scale must be 'minmax' or "),
    ],
)  # fmt: skip
def test_what_cannot_be_left_out_is_refused(options, words):
    assert words in refusal(lambda: lt.variant(runs(), **options), (*KINDS, FormulaError))
