"""The first screen: the verdict, its badges, figure and table say what was decided, and of the same algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from figures import words_below

from lmemtest.errors import ArgumentError
from lmemtest.report import wording
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.document import Section, figure_or_reason, figures_as, plain
from lmemtest.report.elsewhere import _options, variants
from lmemtest.report.first_screen import badges, bare_verdict, ranking_table, verdict
from lmemtest.report.methods import digest_of, reproduction_section
from lmemtest.report.prose import texts

Make = Callable[..., Any]


def section_of(analysis: Analysis, anchor: str) -> Section:
    with figures_as("words"):
        (section,) = (part for part in analysis.document().sections if part.anchor == anchor)
    return section


def said(analysis: Analysis) -> str:
    return " ".join(plain(text) for text in verdict(analysis))


@pytest.mark.daily(2)
@pytest.mark.parametrize(("spread", "seed"), [(0.2, 0), (1.0, 1), (2.5, 2), (6.0, 3)])
def test_the_verdict_names_who_is_worse_and_who_may_be_as_good(table, as_runs, spread, seed):
    frame = table(("A", "B", "C", "D"), spread=spread)
    frame["loss"] += np.random.default_rng(seed).normal(size=len(frame))
    analysis = analyze(as_runs(frame))
    best, worse, level, untested = wording.against_the_best(analysis)
    text = said(analysis)
    assert text.startswith((best, "No algorithm can be called best"))
    assert not untested
    if worse and level:
        for names, words in ((worse, "worse."), (level, "not distinguishable from it.")):
            sentence = text[: text.index(words)].rpartition(". ")[2]
            assert all(name in sentence for name in names)
    assert ("better than each of the other 3" in text) == (len(worse) == 3)
    assert ("No algorithm can be called best" in text) == (not worse)
    over = worse[0] if worse else wording.runner_up(analysis)
    gap, low, high, *_ = wording.advantage(analysis, best, over)
    assert f"{best} is ahead of {over} by" in text
    assert (low > 0) == bool(worse)  # a difference that is called one has an interval without zero
    assert low < gap < high


def test_an_assumption_that_is_broken_is_in_the_verdict(table: Make, as_runs: Make) -> None:
    frame = table(("A", "B"), ("w", "x", "y"), seeds=40, spread=1.0)
    rng = np.random.default_rng(11)  # three benchmarks, advantages of which are so alike that their variance is zero
    frame["loss"] = frame["task"].map({"w": 1.0, "x": 2.0, "y": 4.0}) + rng.normal(size=len(frame))
    shift = frame["task"].map({"w": 0.35, "x": 0.2, "y": 0.5})
    frame["loss"] += np.where(frame["tool"] == "B", shift, 0.0)
    analysis = analyze(as_runs(frame))
    assert wording.rests_on(analysis) == "rows"
    _, worse, *_ = wording.against_the_best(analysis)
    check = wording.cautious(analysis)
    assert check is not None
    p = dict(zip(check.table["algorithm"], check.table["p_value"], strict=True))
    lost = [name for name in worse if p[name] >= analysis.alpha]
    assert wording.unconfirmed(analysis) == lost
    texts = {badge.text for badge in badges(analysis)}
    assert ("a cautious check disagrees" in texts) == bool(lost)
    assert ("few benchmarks: tests may be optimistic" in texts) == (not lost)
    assert ("claim no difference there" in said(analysis)) == bool(lost)


def test_verdict_table_and_figure_are_about_the_same_best_one(table: Make, as_runs: Make) -> None:
    from lmemtest.plots import forest_plot

    frame = table(("A", "B", "C", "D"), tuple(f"task{i}" for i in range(9)))
    alone = frame["task"].isin(["task0", "task1"])  # D, with the lowest scores, met nobody
    frame.loc[(frame["tool"] == "D") & alone, "loss"] = frame.loc[(frame["tool"] == "D") & alone, "loss"] - 50.0
    frame = frame[alone == (frame["tool"] == "D")]
    analysis = analyze(as_runs(frame))
    assert analysis.comparable == ("A", "B", "C")
    shown = ranking_table(analysis).frame.set_index("tool")
    gap = next(name for name in shown if name.startswith("behind"))
    assert shown.loc["A", gap] == shown.loc["D", gap] == "–"
    assert (shown.loc[["B", "C"], gap] != "–").all()
    assert plain(bare_verdict(analysis)[0]).startswith("A ")
    words = "better than each of the 2 algorithms that can be compared with it. D could not be compared with it."
    assert words in said(analysis)
    ax = forest_plot(analysis.pairs, decisions=analysis.decisions, reference="A")
    assert words_below(ax).startswith("Mean loss: behind A")


def test_nothing_is_said_of_parts_that_were_not_left_out(table: Make, as_runs: Make) -> None:
    good, bad = table(spread=0.05, seeds=2), table(("C", "B", "A"), spread=0.05, seeds=2)
    frame = pd.concat([good.assign(prior="good"), bad.assign(prior="bad")], ignore_index=True)
    analysis = analyze(as_runs(frame, metafeatures=["prior"]))
    assert any(len(term.names) > 1 for term in analysis.fit.design.random)
    beside = variants(analysis)
    assert not beside["refit"].any()
    assert len(beside) == 2  # other levels
    section = section_of(analysis, "elsewhere")
    assert "variant" not in plain(section.summary)
    assert "variants='all' leaves out each benchmark" in section.blocks[0].notes[-1]


def test_metafeatures_have_their_leaders_and_what_was_tested(table: Make, as_runs: Make) -> None:
    good, bad = table(spread=0.05, seeds=2), table(("C", "B", "A"), spread=0.05, seeds=2)
    turned = pd.concat([good.assign(prior="good"), bad.assign(prior="bad")], ignore_index=True)
    same = pd.concat([good.assign(prior="good"), good.assign(prior="bad")], ignore_index=True)
    for frame, leaders_of, words in (
        (turned, ["C", "A"], "The comparison depends on prior (interaction with the algorithm: F("),
        (same, ["A", "A"], "The same algorithm is most often first at all levels of prior."),
    ):
        analysis = analyze(as_runs(frame, metafeatures=["prior"]))
        section = section_of(analysis, "metafeatures")
        assert plain(section.summary).startswith(words)
        rows = section.blocks[0].frame.set_index("level")
        assert rows.loc[["bad", "good"], "most often first"].tolist() == leaders_of


@pytest.mark.parametrize(
    "options",
    [
        {"formula": "loss ~ tool + (1 | task) + (1 | task:tool)"},
        pytest.param({"dispersion": "task"}, marks=pytest.mark.level(2)),
        pytest.param({"vcov": "model"}, marks=pytest.mark.level(2)),
    ],
)
def test_variants_are_of_the_model_of_the_report(table: Make, as_runs: Make, options: dict[str, str]) -> None:
    frame = table(("A", "B", "C"), spread=1.5)
    analysis = analyze(as_runs(frame), **options)
    row = variants(analysis).set_index("analysis").loc["without task0"]
    part = analyze(as_runs(frame[frame["task"] != "task0"]), **options)
    same = [
        analysis.decisions.decision.loc[pair] == part.decisions.decision.loc[pair]
        for pair in (("A", "B"), ("A", "C"), ("B", "C"))
    ]
    assert row["changed"] == 3 - sum(same)
    assert _options(analysis)["formula"] == options.get("formula")


def test_a_figure_that_cannot_be_drawn_says_why() -> None:
    def refuse() -> None:
        raise ArgumentError("too many names.")

    assert plain(figure_or_reason(refuse, alt="", caption=())) == "No figure: too many names."


def test_the_digest_is_of_the_scores_as_they_were_measured(three: Analysis) -> None:
    def digest(analysis: Analysis) -> str:
        return str(reproduction_section(analysis).blocks[2].text)

    assert digest(analyze(three.runs.normalize("zscore"))) == digest(three)
    table = three.table.to_frame()
    other = table.assign(loss=table["loss"] + 1e-12)
    assert digest_of(table) == digest_of(table.astype({"task": object})) != digest_of(other)


def test_a_verdict_names_two_that_a_cautious_check_does_not_confirm_and_counts_more() -> None:
    def but(*names: str) -> str:
        (text,) = texts("verdict.but", lacking=(), errors=[], unconfirmed=names, best="A", by_ranks=None, nouns="tasks")
        return plain(text)

    assert (
        but("B", "C") == "A cautious check does not confirm that A is better than B and C: claim no difference there."
    )
    assert but("B", "C", "D") == "A cautious check does not confirm 3 of these differences: claim none there."


def test_p_values_beside_the_level_in_use_say_on_which_side_they_lie(three: Analysis) -> None:
    pairs = three.pairs.to_frame()
    level = 0.02
    table = pairs.assign(p_value=np.linspace(0.01996, 0.0204, len(pairs)))
    beside = replace(three, pairs=replace(three.pairs, table=table), decisions=replace(three.decisions, alpha=level))
    cells = {name: texts for name, texts, _ in ranking_table(beside).rendered()}
    written = [float(text) for text in cells["p"] if text != "–"]
    assert written
    assert level not in written


def test_unequal_advantages_are_no_warning_where_pairs_have_their_own_variances(three: Analysis) -> None:
    assert three.diagnosis is not None
    (unequal,) = (check for check in three.diagnosis.checks if check.kind == "advantages")
    checks = tuple(
        replace(check, severity="warning" if check is unequal else "fine") for check in three.diagnosis.checks
    )
    diagnosis = replace(three.diagnosis, checks=checks)
    assert three.pairs.errors == "moderated"
    assert wording.fit_warnings(replace(three, diagnosing=lambda: diagnosis)) == []
    by_model = replace(three, diagnosing=lambda: diagnosis, pairs=three.means.pairs(vcov="model"))
    assert wording.fit_warnings(by_model) == ["the variance of the advantages by tool"]
