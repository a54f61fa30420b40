"""What a report shows of many algorithms and benchmarks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.report.analysis import Analysis
from lmemtest.report.leaders import (
    LEADERS,
    MOST_BENCHMARKS,
    MOST_TABLE_ROWS,
    TELLING,
    first_rows,
    leaders,
    left_out,
    pictured,
    telling,
)
from lmemtest.report.render import MOST_PRINTED
from lmemtest.report.wording import measured

NAMES = tuple(f"tool{i:02d}" for i in range(40))


@pytest.fixture(scope="module")
def many(table: Callable[..., pd.DataFrame], as_runs: Callable[..., lt.Runs]) -> Analysis:
    frame = table(NAMES, tuple(f"task{i}" for i in range(6)), 2, spread=1.5)
    return lt.analyze(as_runs(frame))


@pytest.fixture(scope="module")
def page(many: Analysis) -> str:
    return many.to_html()


def test_few_algorithms_are_all_shown(three: Analysis) -> None:
    assert leaders(three) is three
    assert left_out(three) == ""


def test_the_leaders_keep_the_decisions_of_the_whole_family(many: Analysis) -> None:
    shown = leaders(many)
    best = many.decisions.levels[:LEADERS]
    assert shown.decisions.levels == best
    assert shown.decisions.significant.equals(many.decisions.significant.loc[list(best), list(best)])
    both = many.pairs.table["left"].isin(best) & many.pairs.table["right"].isin(best)
    pd.testing.assert_frame_equal(shown.pairs.to_frame(), many.pairs.to_frame()[both].reset_index(drop=True))
    assert shown.pairs.family_size == len(NAMES)
    assert set(shown.means.labels()) == set(best)
    assert shown.to_frame()["algorithm"].tolist() == list(best)


def test_letters_of_the_leaders_say_what_the_matrix_says(many: Analysis) -> None:
    shown = leaders(many).decisions
    for left in shown.levels:
        for right in shown.levels:
            apart = not set(shown.letters[left]) & set(shown.letters[right])
            assert apart == bool(many.decisions.significant.loc[left, right])


def test_ranks_are_those_that_the_decisions_leave_open(many: Analysis) -> None:
    matrix, levels = many.decisions.significant, many.decisions.levels
    means = dict(zip(levels, many.decisions.means, strict=True))
    for level, low, high in zip(levels, many.decisions.rank_low, many.decisions.rank_high, strict=True):
        others = [other for other in levels if matrix.loc[level, other]]
        assert low == 1 + sum(means[other] < means[level] for other in others)
        assert high == len(levels) - sum(means[other] > means[level] for other in others)
    head = leaders(many).decisions
    assert head.rank_high == many.decisions.rank_high[: len(head.levels)]  # of all levels, not of those that are shown


def test_a_matrix_without_a_decision_is_not_drawn(many: Analysis) -> None:
    """The best of many algorithms are often alike: a grey triangle would be the largest figure of the report."""
    from lmemtest.report.sections import _pairs

    alike = replace(many.decisions, codes=np.zeros_like(many.decisions.codes))
    assert len(_pairs(replace(many, decisions=alike)).blocks) == len(_pairs(many).blocks) - 1


@pytest.mark.level(2)
def test_the_page_names_the_leaders_and_says_where_the_others_are(many: Analysis, page: str) -> None:
    assert f"{len(NAMES) - LEADERS} more are left out" in page
    assert "analysis.pairs.to_frame()" in page
    last = many.decisions.levels[-1]
    tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
    first = tables[0]
    assert first.count("<tr>") == 1 + LEADERS  # with the head
    (whole,) = (table for table in tables if f">{last}<" in table)  # the ranking of all, which is folded
    assert whole.count("<tr>") == 1 + len(NAMES)
    folded = page[: page.index(whole)].rpartition("<details")[2]
    assert f"Ranking of all {len(NAMES)} algorithms" in folded
    assert (' class="long"' in folded) == (len(NAMES) > MOST_PRINTED)
    assert "Critical-difference diagram, best first" in page
    assert "No figure" not in page
    assert "worse than the best" in page


@pytest.mark.level(2)
def test_the_page_of_many_algorithms_stays_small(page: str) -> None:
    assert len(page) < 2_000_000  # 200 algorithms had 34 MB


def test_the_best_of_a_benchmark_is_that_of_all_algorithms(many: Analysis) -> None:
    from lmemtest.report.sections import _wide_table

    assert many.effects is not None
    frame = _wide_table(many, many.effects, leaders(many).decisions.levels).frame
    means = many.effects.to_frame().pivot(index="benchmark", columns="algorithm", values="mean")
    assert frame["best"].tolist() == means.idxmin(axis=1)[frame["benchmark"]].tolist()
    assert list(frame.columns[1:-1]) == list(many.decisions.levels[:LEADERS])


def effects_of(sizes: list[float], half: float = np.nan) -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = [
        (f"task{i}", name, sign * size, sign * size - half, sign * size + half)
        for i, size in enumerate(sizes)
        for name, sign in (("A", 1.0), ("B", -1.0))
    ]
    return pd.DataFrame(rows, columns=["benchmark", "algorithm", "effect", "ci_low", "ci_high"])


def test_telling_benchmarks_are_those_with_most_intervals_off_zero() -> None:
    sizes = np.random.default_rng(1).permutation(np.linspace(0.1, 2.0, 100)).tolist()
    shown, rule = telling(effects_of(sizes, half=1.0))
    want = {f"task{i}" for i in np.argsort(sizes)[-TELLING:]}
    assert set(shown) == want
    assert shown == sorted(shown, key=lambda name: int(name[4:]))
    assert rule == f" Shown are {TELLING} of 100: those with the most intervals that exclude zero and then the " \
        "largest deviation."  # fmt: skip


def test_a_rule_that_leaves_ties_says_so() -> None:
    shown, rule = telling(effects_of([0.25] * 70 + [0.75] * 10))
    assert shown == [*(f"task{i}" for i in range(30)), *(f"task{i}" for i in range(70, 80))]
    assert (
        rule == f" Shown are {TELLING} of 80: those with the largest deviations, of equal ones the first in the table."
    )


def test_up_to_sixty_benchmarks_are_all_shown() -> None:
    shown, rule = telling(effects_of([1.0] * MOST_BENCHMARKS))
    assert (len(shown), rule) == (MOST_BENCHMARKS, "")


def test_long_tables_are_cut_and_say_where_the_rest_is() -> None:
    assert first_rows(range(5), "x") == ([0, 1, 2, 3, 4], ())
    rows, notes = first_rows(range(1000), "x.to_frame()")
    assert (rows, notes) == (list(range(MOST_TABLE_ROWS)), ("The first 300 of 1,000; x.to_frame() has all.",))


def test_the_summary_of_many_algorithms_lists_the_leaders(many: Analysis) -> None:
    text = many.summary()
    assert text.endswith(left_out(many))
    assert many.decisions.levels[-1] not in text
    assert len(text.splitlines()) < 300


def test_figures_name_a_score_that_was_reduced_as_sentences_do(table: Callable[..., pd.DataFrame]) -> None:
    one = table(("A", "B"), ("t1", "t2", "t3", "t4"), 2, spread=1.5)
    curves = pd.concat([one.assign(epoch=epoch, loss=one["loss"] / epoch) for epoch in (1, 2, 3)])
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "score": "loss", "budget": "epoch"}
    analysis = lt.analyze(lt.Runs(curves, **roles, direction="minimize"), curves="last")
    means, pairs, decisions = pictured(analysis)
    assert {means.score, pairs.estimates.score, decisions.score} == {measured(analysis)} == {"last loss"}
