"""Whether a verdict holds elsewhere: what other analyses decide otherwise than the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from study import make_runs

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.document import plain
from lmemtest.report.elsewhere import variants
from lmemtest.report.explore import explorer
from lmemtest.report.first_screen import badges
from lmemtest.report.ways import MARKS, row_of_decisions, ways

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def close(table: Make, as_runs: Make) -> Analysis:
    return analyze(as_runs(table(("A", "B", "C", "D"), tuple(f"task{i}" for i in range(6)), spread=1.3)))


def changed(ours: Any, theirs: Any) -> int:
    pairs = combinations([name for name in ours.levels if name in theirs.levels], 2)
    return sum(ours.decision.loc[pair] != theirs.decision.loc[pair] for pair in pairs)


def test_a_variant_is_the_analysis_of_the_table_without_the_part(close: Analysis) -> None:
    rows = variants(close).set_index("analysis")
    table, runs = close.table.to_frame(), close.table
    for column in ("task", "tool"):
        for level in table[column].unique():
            part = analyze(type(runs)(table[table[column] != level].reset_index(drop=True), **runs.roles()))
            row = rows.loc[f"without {level}"]
            count = changed(close.decisions, part.decisions)
            n = len(part.pairs.to_frame())
            assert (row["changed"], row["total"], len(row["changes"])) == (count, n, count)
            best = close.comparable[0]
            for name, mark in row["marks"].items():
                significant = part.decisions.significant.loc[best, name]
                assert (mark == MARKS[0]) == (not significant)
    for alpha in (0.01, 0.1):
        other = analyze(runs, alpha=alpha).decisions
        assert rows.loc[f"at {100 * alpha:g} %", "changed"] == changed(close.decisions, other)


def test_what_a_page_shows_of_a_variant_is_what_the_explorer_answers(close: Analysis) -> None:
    ask = explorer(close.table)
    for variant in variants(close).itertuples():
        page = json.loads(json.dumps(variant.page, allow_nan=False))
        answer = json.loads(json.dumps(ask("answer", page["query"])))
        assert answer["problems"] == []
        ours, theirs = page.pop("forest"), answer["forest"]
        assert page == {name: answer[name] for name in page}
        for row, other in zip(ours.pop("rows"), theirs.pop("rows"), strict=True):
            assert [x and pytest.approx(x, rel=5e-4) for x in row.pop("ends")] == other.pop("ends")
            assert row == other
        assert ours == theirs
        assert len(json.dumps(variant.page, separators=(",", ":"))) < 1500


def test_ways_count_what_other_tests_decide_otherwise(close: Analysis) -> None:
    table = ways(close)
    assert close.classical is not None
    assert len(table) >= len(close.classical.tests) - 1
    for row in table.itertuples():
        assert 0 <= row.reversed <= row.changed <= row.total <= 6


def test_a_pair_is_reversed_where_the_other_one_wins(close: Analysis) -> None:
    assert (n_decided := int(np.triu(close.decisions.significant.to_numpy()).sum()))
    opposite = replace(close.decisions, codes=-close.decisions.codes)  # not significant is 0
    row = row_of_decisions("turned", opposite, close)
    assert (row["changed"], row["reversed"]) == (n_decided, n_decided)
    nobody = replace(close.decisions, codes=np.where(np.abs(close.decisions.codes) == 1, 0, close.decisions.codes))
    row = row_of_decisions("nobody", nobody, close)
    assert (row["changed"], row["reversed"]) == (n_decided, 0)


def test_the_score_of_the_report_is_no_other_analysis_of_it() -> None:
    """Scores reduced from curves have a name in words beside that of their column."""
    runs = make_runs(3, 6, 3, 2, shift=[0.0, 0.2, 0.6])
    frame = runs.to_frame()
    frame["loss"] = np.exp(frame["loss"]) * np.where(frame["benchmark"].isin(["b00", "b01"]), 1e3, 1.0)
    analysis = analyze(lt.Runs(frame, **runs.roles()))
    assert analysis.on_ranks is not None
    assert analysis.runs.score != analysis.means.score
    names = ways(analysis)["analysis"].tolist()
    assert names.count("by ranks") == 1
    assert len(set(names)) == len(names)


def test_the_badge_counts_the_analyses_that_differ_and_names_the_one_that_differs_most(close: Analysis) -> None:
    table = ways(close)
    unlike = table[table["changed"] > 0]
    (text,) = (badge.text for badge in badges(close) if badge.anchor == "elsewhere")
    most = unlike.loc[unlike["changed"].idxmax()]
    assert len(unlike) > 1
    assert text == (
        f"{len(unlike)} of {len(table)} other analyses decide differently, on at most {most['changed']} of 6 pairs "
        f"({most['analysis']})"
    )


@pytest.mark.level(2)
def test_which_variants_are_wanted(close: Analysis) -> None:
    none = analyze(close.runs, variants="none")
    assert variants(none).empty
    every = variants(analyze(close.runs, variants="all"))
    assert {"by minmax scores", "by rank scores"} <= set(every["analysis"])
    with pytest.raises(ArgumentError, match="variants"):
        analyze(close.runs, variants="some")
    (section,) = (part for part in close.document().sections if part.anchor == "elsewhere")
    picture = section.blocks[0].frame.set_index("analysis")  # type: ignore[union-attr]
    best, *others = close.decisions.levels
    for name in others:
        significant = close.decisions.significant.loc[best, name]
        assert picture.loc["this report", name] == MARKS[int(significant)]
    assert plain(section.summary)
