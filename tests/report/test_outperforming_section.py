"""The section of a report on single runs: numbers of the study, and what it says beside the means."""

from __future__ import annotations

import json

import numpy as np
import pytest
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.report.document import Section, figures_as, plain
from lmemtest.report.documents import outperforming_section
from lmemtest.report.files import content_of

ROLES = {"score": "acc", "direction": "maximize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}


def runs(shifts: dict[str, np.ndarray], seeds: int = 6, noise: float = 0.3, **roles: object) -> lt.Runs:
    """Normal scores: a column of shifts by benchmark for each algorithm."""
    rng = np.random.default_rng(2)
    means = np.array([*shifts.values()], dtype=float)[..., None]
    names = {"tool": [*shifts], "task": [f"t{t}" for t in range(means.shape[1])]}
    scores = means + noise * rng.normal(size=(*means.shape[:2], seeds))
    return as_runs(table_of_scores(scores, "tool task seed", "acc", **names), **{"direction": "maximize", **roles})


def section_of(table: lt.Runs) -> Section:
    with figures_as("words"):
        found = outperforming_section(lt.analyze(table))
    assert found is not None
    return found


def said(section: Section, block: int) -> str:
    return plain(section.blocks[block])


def test_the_best_is_compared_with_the_others_at_the_level_of_all_pairs():
    table = runs({"A": np.full(8, 1.0), "B": np.full(8, 0.8), "C": np.zeros(8)})
    section = section_of(table)
    frame = section.blocks[2].frame
    own = lt.outperforming(table).table.set_index(["left", "right"])
    assert frame["A over"].tolist() == ["B", "C"]
    for row, name in enumerate("BC"):
        want = own.loc[("A", name)]
        assert frame.loc[row, ["probability", "conclusion"]].tolist() == want[["estimate", "conclusion"]].tolist()
        assert frame.iloc[row, 3] == f"{want['ci_low']:.3f} to {want['ci_high']:.3f}"
    assert "with the same seed" in said(section, 0)
    assert "for 3 pairs" in section.blocks[2].notes[1]


def test_a_mean_of_few_large_differences_is_not_a_frequent_advantage():
    rare = runs({"A": np.array([9.0, 9, 9, 0, 0, 0, 0, 0]), "B": np.array([0.0, 0, 0, 0.3, 0.3, 0.3, 0.3, 0.3])})
    assert "The decisions on the means are the same." in said(section_of(rare), 1)  # neither is shown
    often = runs({"A": np.array([0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 9.0]), "B": np.zeros(8)}, noise=0.1)
    text = said(section_of(often), 1)
    assert "runs of A are significantly more often better than those of B, but its mean is not shown to be" in text
    assert "Both can be true" in text


def test_without_seeds_in_common_all_runs_are_compared():
    table = runs({"A": np.full(6, 1.0), "B": np.zeros(6)}).to_frame()
    table.loc[table["tool"] == "B", "seed"] += 100
    section = section_of(lt.Runs(table, **ROLES))
    assert "No seeds pair the runs of different algorithms" in said(section, 0)
    assert "comparisons" in section.blocks[2].frame


def test_a_table_of_results_is_not_told_of_runs():
    table = runs({"A": np.full(6, 1.0), "B": np.zeros(6)}, seeds=1).to_frame().drop(columns="seed")
    analysis = lt.analyze(lt.Runs(table, **{role: name for role, name in ROLES.items() if role != "seed"}))
    section = outperforming_section(analysis)
    assert section.title == "Single results"
    assert plain(section.summary).startswith("A result of A is better than one of B with probability 1.00")
    assert "says nothing about single runs" in said(section, 0)
    assert "Results, not runs." in analysis.to_text()
    assert lt.outperforming(analysis.runs, paired=False).sentences()[0].startswith("A result of A is better")


def test_the_next_ones_are_compared_and_those_without_a_common_benchmark_are_not():
    shifts = {f"A{i:02}": np.full(4, -0.1 * i) for i in range(15)}
    table = runs(shifts, seeds=3, noise=0.05).to_frame()
    apart = (table["tool"] == "A01") & (table["task"] != "t3") | (table["tool"] == "A00") & (table["task"] == "t3")
    section = section_of(lt.Runs(table[~apart], **ROLES))
    assert section.blocks[2].frame["A00 over"].tolist() == [f"A{i:02}" for i in range(2, 14)]
    assert "each of the next 12 of 15 algorithms" in said(section, 0)


def test_a_section_says_why_single_runs_are_not_compared():
    table = runs({"A": np.full(6, 1.0), "B": np.zeros(6)}).to_frame()
    table["size"] = table["seed"] % 2
    section = section_of(lt.Runs(table.drop(columns="seed"), **{**ROLES, "seed": None}, metafeatures=["size"]))
    assert plain(section.summary).startswith("Single runs are not compared: benchmarks have several instances")
    assert not section.blocks


def test_right_or_wrong_answers_have_their_risk_difference_beside():
    table = runs({"A": np.full(6, 1.2), "B": np.zeros(6)}, noise=1.0).to_frame()
    table["acc"] = (table["acc"] > 0.5).astype(float)
    frame = section_of(lt.Runs(table, **ROLES)).blocks[2].frame
    means = table.groupby("tool")["acc"].mean()
    assert frame["difference of the shares"].tolist() == pytest.approx([means["A"] - means["B"]], abs=1e-6)


def test_documents_hold_the_pairs_and_each_benchmark():
    found = lt.outperforming(runs({"A_1": np.full(6, 1.0), "<B>": np.zeros(6)}))
    text = content_of(found, ".md")
    assert text.startswith("# Probability that a run is better on the same benchmark, in acc")
    assert "Each benchmark separately" in text
    assert "A\\_1" in content_of(found, ".tex")
    assert "<B>" not in content_of(found, ".html")
    assert json.loads(content_of(found, ".json"))["table"][0]["ci_low"] == found.table["ci_low"].iat[0]
    assert content_of(found, ".png").startswith(b"\x89PNG")


@pytest.mark.level(2)
def test_the_section_names_the_families_it_is_about():
    draw = np.random.default_rng(1)
    by_family = np.repeat(draw.normal(size=(6, 2)), 2, axis=0) + draw.normal(size=(12, 2))
    table = runs({"A": by_family[:, 0] + 1.0, "B": by_family[:, 1]}, seeds=3)
    families = table.frame.to_native().assign(space=lambda d: "s" + (d["task"].str[1:].astype(int) // 2).astype(str))
    new, these = (
        lt.analyze(lt.Runs(families, **ROLES, family="space"), population=population)
        for population in ("family", "benchmark")
    )
    with figures_as("words"):
        of_new, of_these = (outperforming_section(analysis) for analysis in (new, these))
    assert "on the same benchmark of spaces like these with the same seed?" in said(of_new, 0)
    assert "the means are about those studied here" not in said(of_new, 0)
    assert "This is about new spaces, and the means are about those studied here." in said(of_these, 0)


def test_a_page_of_many_pairs_shows_the_clearest_ones_and_where_the_others_are():
    table = runs({f"tool{i:02}": np.arange(4.0) + i % 5 for i in range(30)}, seeds=2)
    found = lt.outperforming(table)
    page = content_of(found, ".txt")
    assert "The 300 of 435 pairs with the highest lower ends; to_frame('table') has all." in page
    assert "300 of 435 pairs in words" in page
    assert "The first 300 of 1,740; to_frame('benchmarks') has all." in page
    lowest = found.table["ci_low"].sort_values(ascending=False, kind="stable")
    for place, shown in ((lowest.index[0], True), (lowest.index[-1], False)):
        left, right = found.table.loc[place, ["left", "right"]]
        assert (f"A run of {left} is better than one of {right} " in " ".join(page.split())) == shown
