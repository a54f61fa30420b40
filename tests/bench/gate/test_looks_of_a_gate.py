"""A gate that is looked at while tasks are added: levels of planned looks, e-values, the ledger, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, NestingError
from lmemtest.lmm.sequential.evalues import critical_one_sided, log_evalue
from lmemtest.lmm.sequential.successive_t import level_of_look

MARGIN = 0.5
GAINS = np.random.default_rng(2).normal(0.1, 0.5, 30)


def tables(n: int, gains: np.ndarray = GAINS) -> tuple[pd.DataFrame, pd.DataFrame]:
    tasks = [f"t{i:02}" for i in range(n)]
    old = pd.DataFrame({"task": tasks, "accuracy": np.arange(float(n))})
    return old.assign(accuracy=old["accuracy"] + gains[:n]), old


def gate(n: int, gains: np.ndarray = GAINS, **options: Any) -> Any:
    margin = options.pop("margin", MARGIN)
    return lt.gate(*tables(n, gains), margin=margin, score="accuracy", benchmark="task", **options)


def test_a_planned_look_has_the_level_of_spending_on_one_side() -> None:
    found = gate(10, looks=(10, 20, 30))
    level = 0.5 * level_of_look(10, (10, 20, 30), 0.1)
    assert found.alpha == pytest.approx(level)
    row, half = found.to_frame().iloc[0], stats.t.isf(level, 9) * GAINS[:10].std(ddof=1) / np.sqrt(10)
    assert row["ci_low"] == pytest.approx(GAINS[:10].mean() - half)
    assert row["p_not_worse"] == gate(10).to_frame().iloc[0]["p_not_worse"]
    assert found.look == "Look 1 of 3 that are planned, by O'Brien-Fleming-like spending of 0.05."
    assert gate(30, looks=(30,)).alpha == pytest.approx(0.05, rel=1e-3)


def test_planned_looks_may_spend_evenly() -> None:
    found = gate(10, looks=(10, 20, 30), spending="pocock")
    assert found.alpha == pytest.approx(0.5 * level_of_look(10, (10, 20, 30), 0.1, "pocock"))
    assert found.alpha > gate(10, looks=(10, 20, 30)).alpha
    assert found.look == "Look 1 of 3 that are planned, by Pocock-like spending of 0.05."
    with pytest.raises(ArgumentError, match=r"spending is how planned looks spend alpha, and none are planned: give"):
        gate(10, spending="pocock")
    refuses(ArgumentError, r"spending must be .*got 'early'", gate, 10, looks=(10, 20), spending="early")


@pytest.mark.parametrize("options", [{"looks": (10, 20, 30)}, {"maximum": 30}])
def test_a_planned_look_needs_the_tasks_of_the_level_at_the_end(options: dict[str, Any]) -> None:
    sizes = options.get("looks") or range(2, 31)
    at_end = 0.5 * level_of_look(30, sizes, 0.1)
    found = gate(10, margin=0.3, **options)
    needed = int(found.to_frame()["n_needed"][0])
    assert needed == gate(10, margin=0.3, alpha=at_end).to_frame()["n_needed"][0]
    assert needed < gate(10, margin=0.3, alpha=found.alpha).to_frame()["n_needed"][0]  # of this look: too many
    assert found.n_end == 30 < needed
    assert found.sentences()[-1].startswith(f"{needed} tasks are needed for equal versions to pass at the last look")
    assert found.sentences()[-1].endswith(
        "and 30 are planned: it may stay open. No level is left beyond a plan, so plan more for the next version."
    )


def test_an_early_look_says_go_on_and_not_that_there_may_be_a_loss() -> None:
    gains = np.where(np.arange(30) % 2, 0.3, -0.3)
    early, last = gate(10, gains, looks=(10, 40)), gate(20, gains - 0.4, looks=(10, 20))
    assert early.to_frame()["n_needed"][0] <= 10
    assert early.sentences()[-1].endswith("and 40 are planned: go on.")
    assert last.sentences()[-1].endswith("there may be a loss, and more would tell.")
    rules = {"critical": {"accuracy": {"margin": MARGIN}}}
    found = lt.gate(*tables(10, gains), policy=rules, benchmark="task", looks=(10, 40))
    assert found.metrics["next_step"][0].endswith("and 40 are planned: go on.")
    assert not any(sentence.startswith("To settle it") for sentence in found.sentences())


def test_with_a_maximum_alone_looks_come_when_they_like() -> None:
    found = gate(12, maximum=30)
    assert found.alpha == pytest.approx(0.5 * level_of_look(12, range(2, 31), 0.1))
    assert 0.0 < found.alpha < gate(12, looks=(12, 30)).alpha
    where = "A look at 12 of up to 30 tasks, after any number of them"
    assert found.look == f"{where}, by O'Brien-Fleming-like spending of 0.05."


def test_each_of_several_metrics_spends_for_itself() -> None:
    (new, old), (other, _) = tables(12), tables(12, GAINS[::-1])
    new, old = new.assign(f1=other["accuracy"]), old.assign(f1=old["accuracy"])
    margins = {"accuracy": MARGIN, "f1": MARGIN}
    found = lt.gate(new, old, margin=margins, score=[*margins], benchmark="task", looks=range(2, 31))
    assert found.alpha == pytest.approx(level_of_look(12, range(2, 31), 0.05))
    assert 0.5 * found.alpha == pytest.approx(0.5 * level_of_look(12, range(2, 31), 2.0 * 0.05 / 2))


def in_families(n: int, **options: Any) -> Any:
    new, old = (table.assign(kind=np.arange(n) // 3) for table in tables(n))
    return lt.gate(new, old, margin=MARGIN, score="accuracy", benchmark="task", family="kind", **options)


def test_looks_at_families_count_families() -> None:
    found = in_families(24, looks=(8, 10))
    assert found.alpha == pytest.approx(0.5 * level_of_look(8, (8, 10), 0.1))
    assert found.to_frame()["n"].tolist() == [8]
    alone = in_families(24, alpha=found.alpha).to_frame()
    assert found.to_frame()["ci_low"][0] == alone["ci_low"][0]
    with pytest.raises(ArgumentError, match=r"the numbers of families at all planned looks, .* these tables, 8: got"):
        in_families(24, looks=(24, 30))
    with pytest.raises(ArgumentError, match=r"the numbers of tasks at all planned looks, .* these tables, 6: got"):
        in_families(6, looks=(2, 10))  # two families are no sample
    with pytest.raises(ArgumentError, match=r"without e-values over families: plan numbers of families, looks"):
        in_families(24, method="evalue")
    bar = {"critical": {"accuracy": {"bar": 0.5, "share": "60 %"}}}
    with pytest.raises(ArgumentError, match=r"without a bar: ask for it once, at the last look, in a gate of its own"):
        lt.gate(*tables(12), policy=bar, benchmark="task", looks=(12, 20))


def test_e_values_are_of_independent_tasks() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2, 12, 3)) + rng.normal(size=(2, 1, 3))  # versions, tasks, seeds that are shared by tasks
    place = {"task": np.repeat(np.arange(12), 3), "seed": np.tile(range(3), 12)}
    shared = [pd.DataFrame({**place, "accuracy": of_version.ravel()}) for of_version in x]
    options = {"margin": MARGIN, "score": "accuracy", "benchmark": "task", "seed": "seed", "method": "evalue"}
    found = lt.gate(*shared, **options)
    assert found.decision == "cannot say"
    assert found.to_frame()["reason"][0].startswith(
        "e-values need tasks that are independent, and here runs with one seed"
    )
    own = lt.gate(*shared, seed_shared=False, **options).to_frame().iloc[0]
    gains = np.subtract(*x.mean(axis=2))
    assert own["ci_high"] - gains.mean() == pytest.approx(
        critical_one_sided(0.05, 12, 1.0) * gains.std(ddof=1) / np.sqrt(12)
    )


def test_bounds_of_a_relative_margin_hold_at_any_time_above_the_border(tmp_path: Path) -> None:
    (new, old), n = tables(20), 12
    old, new = old.assign(accuracy=old["accuracy"] + 5.0), new.assign(accuracy=new["accuracy"] + 5.0)

    def at(size: int, **options: Any) -> pd.Series:
        roles = {"margin": "4%", "score": "accuracy", "benchmark": "task", "method": "evalue"}
        return lt.gate(new[:size], old[:size], **roles, **options).to_frame().iloc[0]

    x, gains = (new["accuracy"] - 0.96 * old["accuracy"])[:n], GAINS[:n]
    row = at(n)
    se = x.std(ddof=1) / np.sqrt(n)
    half = critical_one_sided(0.05, n, 1.0) * se
    np.testing.assert_allclose(
        row[["ci_low", "ci_high"]].to_numpy(float) + row["margin"], [x.mean() - half, x.mean() + half]
    )
    ratios = [x.mean() / se, -gains.mean() / gains.std(ddof=1) * np.sqrt(n)]
    wanted = np.exp(np.minimum(0.0, -log_evalue(ratios, n, 1.0, one_sided=True)))
    np.testing.assert_allclose(row[["p_not_worse", "p_any_loss"]].to_numpy(float), wanted)
    ledger = tmp_path / "gate.jsonl"
    first, alone, later = at(n, ledger=ledger), at(20), at(20, ledger=ledger)
    both = [first["ci_low"] + first["margin"], alone["ci_low"] + alone["margin"]]
    assert later["ci_low"] + later["margin"] == pytest.approx(max(both), rel=1e-12)
    old, new = old.assign(accuracy=old["accuracy"] - 100.0 * (old.index == 20)), new
    old.loc[19, "accuracy"] -= 1000.0
    new.loc[19, "accuracy"] -= 1000.0
    refuses(NestingError, r"mean accuracy of the old version has changed its sign", at, 20, ledger=ledger)


def test_e_values_are_of_one_sided_t_tests_at_the_border() -> None:
    row = gate(12, method="evalue").to_frame().iloc[0]
    x, se = GAINS[:12], GAINS[:12].std(ddof=1) / np.sqrt(12)
    at_border = log_evalue([(x.mean() + MARGIN) / se, -(x.mean() + MARGIN) / se, -x.mean() / se], 12, 1.0,
                           one_sided=True)  # fmt: skip
    np.testing.assert_allclose(row[["p_not_worse", "p_worse", "p_any_loss"]].to_numpy(float),
                               np.exp(np.minimum(0.0, -at_border)))  # fmt: skip
    assert row["ci_high"] - x.mean() == pytest.approx(critical_one_sided(0.05, 12, 1.0) * se)
    assert (row["ci_low"] > -MARGIN) == (row["decision"] == "not worse")
    assert row["n_needed"] > gate(12).to_frame().iloc[0]["n_needed"]


def test_what_was_shown_stays_shown(tmp_path: Path) -> None:
    ledger = tmp_path / "gate.jsonl"
    gains = np.append(GAINS[:12] + 0.2, np.full(8, -0.9) + 0.01 * np.arange(8))
    first = gate(12, gains, method="evalue", ledger=ledger)
    assert first.decision == "not worse"
    assert first.look == "E-values of one-sided t-tests hold at every look, as long as tasks are only added."
    later = gate(20, gains, method="evalue", ledger=ledger)
    assert later.look == f"Look 2, p-values the smallest so far. {first.look}"
    assert later.to_frame()["p_not_worse"][0] == first.to_frame()["p_not_worse"][0]
    assert gate(20, gains, method="evalue").to_frame()["p_not_worse"][0] > later.to_frame()["p_not_worse"][0]
    gate(20, gains, method="evalue", ledger=ledger)
    assert len(ledger.read_text().splitlines()) == 3  # the rules and two looks


def test_bounds_are_the_tightest_so_far_and_agree_with_the_decision(tmp_path: Path) -> None:
    ledger = tmp_path / "gate.jsonl"
    gains = np.append(GAINS[:12] + 0.2, np.full(8, -0.9) + 0.01 * np.arange(8))
    first = gate(12, gains, method="evalue", ledger=ledger).to_frame().iloc[0]
    later = gate(20, gains, method="evalue", ledger=ledger).to_frame().iloc[0]
    alone = gate(20, gains, method="evalue").to_frame().iloc[0]
    assert later["ci_low"] == max(first["ci_low"], alone["ci_low"]) > -MARGIN >= alone["ci_low"]
    assert later["ci_high"] == min(first["ci_high"], alone["ci_high"])


def test_a_version_whose_runs_failed_does_not_pass_by_an_earlier_look(tmp_path: Path) -> None:
    ledger, gains = tmp_path / "gate.jsonl", np.append(GAINS[:20] * 0.1 + 0.2, GAINS[20:])
    assert gate(20, gains, method="evalue", ledger=ledger).decision == "not worse"
    failed = gains.copy()
    failed[25] = np.nan
    assert (
        gate(30, failed, method="evalue").decision
        == gate(30, failed, method="evalue", ledger=ledger).decision
        != ("not worse")
    )
    assert gate(30, failed, method="evalue", ledger=ledger).look.startswith("Look 2")
    assert gate(30, gains, method="evalue", ledger=ledger).decision == "not worse"  # run again


def test_looks_are_nested_in_every_metric(tmp_path: Path) -> None:
    def both(n: int, f1: np.ndarray) -> Any:
        (new, old), (other, _) = tables(n), tables(n, f1)
        new, old = new.assign(f1=other["accuracy"]), old.assign(f1=old["accuracy"])
        roles = {"score": ["accuracy", "f1"], "benchmark": "task", "method": "evalue"}
        return lt.gate(new, old, margin={"accuracy": MARGIN, "f1": MARGIN}, ledger=tmp_path / "gate.jsonl", **roles)

    both(20, GAINS)
    refuses(NestingError, "the difference of f1 on t00 is not that of the last look", both, 30, GAINS + 1.0)


def test_looks_of_a_gate_are_nested_and_errors_leave_the_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "gate.jsonl"
    gate(12, method="evalue", ledger=ledger)
    whole = ledger.read_bytes()
    changed = GAINS.copy()
    changed[3] += 1.0
    calls: list[tuple[type[Exception], str, int, dict[str, Any]]] = [
        (NestingError, r"2 tasks of the last look are not in these tables: t10, t11", 10, {}),
        (NestingError, r"the difference of accuracy on t03 is not that of the last look", 14, {"gains": changed}),
        (ArgumentError, r"the rules were made at the first look and are kept", 14, {"margin": 0.2}),
    ]
    for error, words, n, options in calls:
        refuses(error, words, gate, n, method="evalue", ledger=ledger, **options)
        assert ledger.read_bytes() == whole
    lt.monitor(lt.Runs({"tool": list("AB") * 5, "task": sorted("vwxyz" * 2), "loss": [1.0, 2, 1, 4, 2, 2, 2, 3, 1, 3]},
                       score="loss", direction="minimize", algorithm="tool", benchmark="task"),
               maximum=10, ledger=tmp_path / "monitor.jsonl")  # fmt: skip
    with pytest.raises(DataError, match=r"monitor.jsonl is not a ledger of such looks"):
        gate(12, method="evalue", ledger=tmp_path / "monitor.jsonl")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (
            r"looks must ascend, the numbers of tasks at all planned looks, and have .* 12: got \(10, 20\)",
            {"looks": (10, 20)},
        ),
        (r"looks must ascend", {"looks": (20, 12)}),
        (r"looks must ascend", {"looks": 12}),
        (r"at 12 of 2000 tasks nothing can be spent yet: look later", {"looks": (12, 2000)}),
        (r"Give one of them", {"looks": (12, 20), "method": "evalue"}),
        (r"ledger holds looks without a plan: method='evalue'", {"ledger": "a.jsonl", "looks": (12, 20)}),
        (r"without tasks = 'these': leave it out, or look once", {"method": "evalue", "tasks": "these"}),
        (r"without max_broken: ask for it once, at the last look", {"looks": (12, 20), "max_broken": 0.1}),
        (r"maximum alone plans the end, and looks come when they like: give one", {"looks": (12, 20), "maximum": 20}),
        (r"maximum must be the number of tasks at the end, .* these tables, 12: got 10", {"maximum": 10}),
        (r"Give one of them", {"maximum": 20, "method": "evalue"}),
    ],
)
def test_refusals(words: str, options: dict[str, Any]) -> None:
    refuses(ArgumentError, words, gate, 12, **options)
