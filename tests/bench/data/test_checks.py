"""Every defect that is planted in a clean table is found, counted, and comes with a next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lmemtest.bench.checks.copies import _chance, copied_runs, copy_findings
from lmemtest.bench.checks.findings import RunsCheck
from lmemtest.bench.data.runs import Runs
from lmemtest.core.verdicts import SEVERITIES, Finding

DUCK = duckdb.connect()  # a relation lives no longer than its connection
ROLES: dict[str, Any] = {
    "score": "loss",
    "direction": "minimize",
    "algorithm": "tool",
    "benchmark": "task",
    "seed": "seed",
    "budget": "epochs",
    "metafeatures": ["prior"],
}


def clean_frame() -> pd.DataFrame:
    """Best-so-far losses of 3 tools on 4 tasks x 2 priors, 5 seeds, 3 budgets: 360 rows."""
    index = pd.MultiIndex.from_product(
        [["HB", "RS", "TPE"], ["t1", "t2", "t3", "t4"], ["bad", "good"], range(5), [1, 3, 9]],
        names=["tool", "task", "prior", "seed", "epochs"],
    )
    frame = index.to_frame(index=False)
    frame["loss"] = np.random.default_rng(4).random(len(frame)) - frame["epochs"]
    return frame


@pytest.fixture
def frame() -> pd.DataFrame:
    return clean_frame()


def check(frame: Any, **roles: Any) -> RunsCheck:
    return Runs(frame, **{**ROLES, **roles}).check(rules_only=True)


def only(found: RunsCheck, kind: str) -> list[Finding]:
    """The findings of the one kind that there is."""
    assert {finding.kind for finding in found.findings} == {kind}, found.summary()
    for finding in found.findings:
        assert finding.severity in SEVERITIES
        assert finding.message[-1] == finding.advice[-1] == "."
    return list(found.findings)


def cell(found: RunsCheck, task: str, tool: str) -> pd.Series:
    rows = found.cells[(found.cells["benchmark"] == task) & (found.cells["algorithm"] == tool)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_a_clean_table_has_no_findings(frame: pd.DataFrame) -> None:
    found = check(frame)
    assert found.findings == found.problems == ()
    assert found.ok
    assert found.summary().startswith(
        "Checks: 360 rows: 3 algorithms, 4 benchmarks, 8 instances, 5 seeds, 3 budgets; complete and balanced.\n"
    )
    assert found.sentences() == ("Nothing has to be fixed before an analysis.",)
    assert list(found.to_frame().columns) == [*("priority", "stage", "check", "severity", "found", "advice", "level")]
    assert list(found.to_frame("findings").columns) == [
        *("severity", "kind", "benchmark", "algorithm", "count", "message", "advice")
    ]
    assert set(found.to_frame()["severity"]) == {"fine"}
    assert found.cells.shape == (12, 11)
    assert (found.cells[["n", "seeds", "budgets", "missing", "duplicates", "non_finite"]] == [30, 5, 3, 0, 0, 0]).all(
        axis=None
    )
    want = frame.groupby(["task", "tool"])["loss"].agg(["nunique", "mean", "std"])
    assert found.cells["distinct"].tolist() == want["nunique"].tolist()
    np.testing.assert_allclose(found.cells[["mean", "sd"]], want[["mean", "std"]], rtol=1e-12)
    elsewhere = frame.assign(seed=frame["seed"] + frame["task"].map({"t1": 0, "t2": 100, "t3": 200, "t4": 300}))
    assert check(elsewhere).findings == ()  # seeds may differ between benchmarks
    repeated = check(frame.drop(columns="seed"), seed=None)  # rows without seeds are repetitions
    assert repeated.findings == ()
    assert (repeated.cells[["duplicates", "distinct"]] == [0, 30]).all(axis=None)


def test_missing_and_infinite_scores_are_errors_with_counts(frame: pd.DataFrame) -> None:
    rows = frame.index[(frame["tool"] == "HB") & (frame["task"] == "t2")]
    frame.loc[rows[:3], "loss"] = [np.nan, np.inf, -np.inf]
    frame.loc[frame.index[(frame["tool"] == "RS") & (frame["task"] == "t1")][0], "loss"] = np.nan
    found = check(frame)
    first, second = only(found, "non_finite")
    assert (first.severity, first.benchmark, first.algorithm, first.count) == ("error", "t2", "HB", 3)
    assert first.message == ("3 of 30 scores of 'HB' on 't2' are missing or infinite, so no model can be fitted.")
    assert first.advice == (
        "If these runs failed, give them the worst possible score (the largest one), because a failure is a "
        "result, for instance with Runs(..., failed='nonfinite') and runs.score_failures('worst'); drop "
        "them with runs.drop_missing() only if failing has nothing to do with the algorithm."
    )
    assert (second.benchmark, second.algorithm, second.count) == ("t1", "RS", 1)
    assert "the smallest one" in check(frame.assign(loss=-frame["loss"]), direction="maximize").findings[0].advice
    assert cell(found, "t2", "HB")["non_finite"] == 3
    assert cell(found, "t2", "HB")["distinct"] == 27
    status = np.where(np.isfinite(frame["loss"]), "ok", "timeout")
    assert "failed='status')" in only(check(frame.assign(status=status)), "non_finite")[0].advice
    status[0] = "timeout"  # of a run with a score
    assert "failed='nonfinite')" in only(check(frame.assign(status=status)), "non_finite")[0].advice
    assert cell(found, "t2", "HB")["n"] == 30


def test_a_table_without_any_finite_score_is_still_reported(frame: pd.DataFrame) -> None:
    found = check(frame.assign(loss=np.nan))
    assert len(only(found, "non_finite")) == 12
    assert np.isnan(found.scale_ratio)
    assert found.cells["mean"].isna().all()


def test_an_algorithm_that_never_ran_on_a_benchmark(frame: pd.DataFrame) -> None:
    found = check(frame[(frame["tool"] != "HB") | (frame["task"] != "t3")])
    (finding,) = only(found, "missing_cells")
    assert (finding.severity, finding.benchmark, finding.algorithm, finding.count) == ("warning", "t3", "HB", 2)
    assert finding.message == ("'HB' has no runs on 't3' for 2 of 2 values of prior, where other algorithms have.")
    assert cell(found, "t3", "HB")["missing"] == 30
    assert cell(found, "t3", "HB")["n"] == 0
    assert found.overview.endswith("; not balanced.")


def test_seeds_that_one_algorithm_lacks(frame: pd.DataFrame) -> None:
    gone = (frame["tool"] == "RS") & (frame["task"] == "t1") & (frame["seed"] == 3) & (frame["prior"] == "bad")
    found = check(frame[~gone])
    (finding,) = only(found, "unpaired_seeds")
    assert (finding.severity, finding.benchmark, finding.count) == ("warning", "t1", 1)
    assert finding.message == (
        "1 of 10 combinations of seed and prior on 't1' was not run by every algorithm (such as seed 3; "
        "'RS' lacks most)."
    )
    assert cell(found, "t1", "RS")["missing"] == 3
    plain = check(frame[~(gone | (frame["prior"] == "good"))], metafeatures=[])
    assert (
        plain.findings[0].message
        == "1 of 5 seeds on 't1' was not run by every algorithm (such as seed 3; 'RS' lacks most)."
    )


def test_budgets_that_a_run_lacks(frame: pd.DataFrame) -> None:
    gone = (frame["tool"] == "TPE") & (frame["task"] == "t4") & (frame["seed"] < 2) & (frame["epochs"] == 9)
    found = check(frame[~gone])
    (finding,) = only(found, "missing_budgets")
    assert (finding.benchmark, finding.algorithm, finding.count) == ("t4", "TPE", 4)
    assert finding.message == ("'TPE' on 't4' lacks 4 of the 30 scores that its runs would have at all budgets.")
    assert cell(found, "t4", "TPE")["missing"] == 4


def test_budgets_without_a_grid_are_not_missing(frame: pd.DataFrame) -> None:
    frame["epochs"] += np.random.default_rng(0).random(len(frame)) / 10  # wall-clock times, in the same range
    found = check(frame)
    assert found.overview.endswith("360 budgets; not balanced: runs have few budgets in common.")
    (finding,) = only(found, "irregular_budgets")
    assert finding.count == 360
    assert found.ok
    assert (found.cells["missing"] == 0).all()


@pytest.mark.parametrize("same", [True, False])
def test_duplicates_and_what_they_are(frame: pd.DataFrame, same: bool) -> None:
    copies = frame[(frame["tool"] == "RS") & (frame["task"] == "t2")][:4]
    if not same:
        copies = copies.assign(loss=copies["loss"] - 1e-9)
    found = check(pd.concat([frame, copies, copies[:1]], ignore_index=True))
    (finding,) = only(found, "duplicates" if same else "reruns")
    assert (finding.severity, finding.benchmark, finding.algorithm, finding.count) == ("warning", "t2", "RS", 5)
    what = "are copies of another: {} and score" if same else "repeat another with a different score: {}"
    assert finding.message == f"5 rows of 'RS' on 't2' {what.format('tool, task, prior, seed, epochs')} are the same."
    assert ("drop them" in finding.advice) == same
    row = cell(found, "t2", "RS")
    assert (row["duplicates"], row["n"], row["distinct"]) == (5, 35, 30 if same else 34)


def test_a_forgotten_budget_shows_as_duplicates(frame: pd.DataFrame) -> None:
    found = check(frame.drop(columns="epochs"), budget=None)
    assert len(only(found, "reruns")) == 12
    assert "(a budget, a metafeature) was not named" in found.findings[0].advice
    assert found.cells["distinct"].tolist() == [30] * 12


def test_constant_scores_of_an_algorithm_and_of_a_benchmark(frame: pd.DataFrame) -> None:
    frame.loc[(frame["tool"] == "HB") & (frame["task"] == "t1"), "loss"] = 0.25
    frame.loc[frame["task"] == "t2", "loss"] = 1.0
    found = check(frame)
    constant = [finding for finding in found.findings if finding.kind == "constant_scores"]
    assert [(f.severity, f.benchmark, f.algorithm, f.count) for f in constant] == [
        ("warning", "t2", None, 90),
        ("warning", "t1", "HB", 30),
    ]
    assert constant[0].message == "All scores on 't2' are 1.000, in 90 rows and for every algorithm."
    assert constant[1].message == "All 30 scores of 'HB' on 't1' are 0.2500."
    assert np.isfinite(found.scale_ratio)
    assert {f.kind for f in found.findings} == {"constant_scores", "ties"}  # t2 is one large tie


def test_ties_are_counted_between_algorithms(frame: pd.DataFrame) -> None:
    frame = frame.set_index(["tool", "task", "prior", "seed", "epochs"]).sort_index()
    early = frame.loc[("HB", "t1")].query("epochs == 1")
    for key, loss in early["loss"].items():
        frame.loc[("RS", "t1", *key), "loss"] = loss
    found = check(frame.reset_index())
    (finding,) = only(found, "ties")
    assert (finding.severity, finding.benchmark, finding.count) == ("note", "t1", 10)
    assert finding.message == (  # 30 points, 3 pairs each
        "11 % of the comparisons of two algorithms on 't1' at the same seed and budget are exact ties "
        "(80 different values in 90 scores)."
    )
    assert found.tied_share == pytest.approx(10 / 360)
    assert found.ok


def test_scales_are_compared_within_algorithm_instance_and_budget(frame: pd.DataFrame) -> None:
    frame.loc[frame["task"] == "t3", "loss"] *= 50
    found = check(frame)
    (finding,) = only(found, "score_scale")
    groups = frame.groupby(["task", "tool", "prior", "epochs"])["loss"]
    sd = np.sqrt(groups.var().groupby("task").mean())  # balanced: the pooled variance is the mean one
    np.testing.assert_allclose(found.scales["residual_sd"], sd, rtol=1e-12)
    assert found.scales["df"].tolist() == [72] * 4
    assert found.scale_ratio == pytest.approx(sd["t3"] / sd.min(), rel=1e-12)
    pd.testing.assert_frame_equal(check(frame, seed=None).scales, found.scales, rtol=1e-12)
    assert (finding.benchmark, finding.count) == ("t3", 1)
    assert "Compare a score that means the same everywhere" in finding.advice
    assert f"Scores scatter {found.scale_ratio:.1f} times as much between seeds on 't3'" in finding.message


def test_scores_that_get_worse_with_the_budget(frame: pd.DataFrame) -> None:
    rows = (frame["tool"] == "HB") & (frame["seed"] == 0) & (frame["epochs"] == 9)
    frame.loc[rows, "loss"] += 20
    found = check(frame)
    finding = next(f for f in found.findings if f.kind == "broken_trace")
    assert (finding.severity, finding.count) == ("warning", 8)
    assert finding.message.startswith(
        "112 of 120 curves never get worse, so they are best-so-far curves; the other 8 are broken (such as HB on t"
    )
    assert "take the running minimum" in finding.advice
    upward = clean_frame().rename(columns={"loss": "score"}).assign(score=lambda f: -f["score"])
    assert check(upward, score="score", direction="maximize").findings == ()
    downward = check(clean_frame(), direction="maximize")
    assert [finding.count for finding in downward.findings if finding.kind == "not_best_so_far"] == [120]
    assert "take the running maximum" in downward.findings[-1].advice


def long_form(**scores: Any) -> pd.DataFrame:
    """A column of scores per tool, one row per task."""
    return pd.DataFrame(scores).rename_axis("task").reset_index().melt("task", var_name="tool", value_name="loss")


COPY_ROLES: dict[str, Any] = {"seed": None, "budget": None, "metafeatures": []}


def copies_in(table: pd.DataFrame) -> list[str]:
    """The messages of `check` on algorithms that are copies; those of the recipe are the same."""
    runs = Runs(table, **{**ROLES, **COPY_ROLES})
    said = [f for f in runs.check(rules_only=True).findings if f.kind == "copied_algorithms"]
    found = copy_findings(copied_runs(runs).table, runs)
    assert said == [finding for finding in found if finding.kind == "copied_algorithms"]
    return [f.message for f in said]


def test_an_algorithm_under_two_names_is_a_copy(frame: pd.DataFrame) -> None:
    frame.loc[frame["tool"] == "TPE", "loss"] = frame.loc[frame["tool"] == "HB", "loss"].to_numpy()
    found = [f for f in check(frame).findings if f.kind == "copied_algorithms"]
    assert [(f.severity, f.message) for f in found] == [
        ("warning", "'TPE' has the same scores as 'HB' in 40 of 40 runs.")
    ]
    x, z = np.random.default_rng(0).normal(size=(2, 40))
    assert copies_in(long_form(A=x, B=x, C=z)) == ["'B' has the same scores as 'A' in 40 of 40 runs."]
    assert copies_in(long_form(A=x, B=x + 1e-12, C=z)) == []


def test_equal_scores_by_nature_are_copies_only_if_all_agree_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    chance = rng.beta(0.5, 0.5, 200)
    answers = (rng.random((6, 200)) < chance).astype(int)
    a, c = answers[:2]
    message = ["'B' has the same scores as 'A' in 200 of 200 runs."]
    assert copies_in(long_form(A=a, B=a, C=c)) == message
    assert copies_in(long_form(A=a, B=a)) == message
    almost = np.where(np.arange(200) == 3, 1 - a, a)
    assert copies_in(long_form(A=a, B=almost, C=c)) == []  # in all runs but one
    assert copies_in(long_form(**dict(zip("ABCDEF", answers, strict=True)))) == []
    easy = (chance > 0.5).astype(int)  # questions that all can answer or none
    assert copies_in(long_form(A=easy, B=easy, C=np.where(np.arange(200) < 3, 1 - easy, easy), D=easy)) == []
    assert copies_in(long_form(A=np.ones(200), B=np.ones(200), C=c)) == []  # both are always right
    counts, other = rng.poisson(8, (2, 60))
    message = ["'B' has the same scores as 'A' in 60 of 60 runs."]
    assert copies_in(long_form(A=counts, B=counts, C=other)) == message
    assert copies_in(long_form(A=counts, B=counts + (np.arange(60) < 2), C=other)) == []
    ranks = pd.DataFrame({"A": counts, "B": counts, "C": other}).rank(axis=1)
    assert copies_in(long_form(**ranks)) == message
    assert copies_in(long_form(**pd.DataFrame(rng.random((60, 3)), columns=list("ABC")).rank(axis=1))) == []


def test_copies_by_agreement_of_shuffled_runs() -> None:
    """The chance is that of one arrangement among all: 1 / 10 for 2 of 5, times 1 / 6 for three different ones."""
    curve, others = np.array([1, 1, 0, 0, 0, 1, 2, 3]), np.array([4, 4, 4, 4, 4, 7, 7, 7])
    assert _chance(curve, others) == pytest.approx(1 / 60, rel=1e-12)


@pytest.mark.parametrize("other", ["hb ", "HB\N{NO-BREAK SPACE}", "HB\N{ZERO WIDTH SPACE}"])
def test_levels_that_look_alike(frame: pd.DataFrame, other: str) -> None:
    frame.loc[(frame["tool"] == "HB") & (frame["seed"] == 0), "tool"] = other
    found = check(frame)
    finding = next(f for f in found.findings if f.kind == "similar_levels")
    assert finding.message == f"The column 'tool' holds 'HB' and {other!r}, which count as different."


def test_findings_come_by_severity_and_the_summary_stays_short(frame: pd.DataFrame) -> None:
    frame.loc[frame["task"] == "t1", "loss"] *= 100
    frame.loc[frame["seed"] == 1, "loss"] = np.nan
    frame = pd.concat([frame, frame[frame["seed"] == 2]])
    found = check(frame)
    ranks = [SEVERITIES.index(f.severity) for f in found.findings]
    assert ranks == sorted(ranks)
    assert found.findings[0].kind == "non_finite"
    assert len(found.to_frame("findings")) == len(found.findings) == 12 + 12 + 1
    assert len(found.summary().splitlines()) < 35
    assert "  ... and 10 more; see to_frame()." in found.summary()
    assert repr(found) == found.summary()
    assert "<table" in found._repr_html_()


def test_a_table_with_scores_and_algorithms_only() -> None:
    table = {"tool": list("aabb"), "loss": [1.0, 2.0, 3.0, 4.0]}
    roles: dict[str, Any] = {"score": "loss", "direction": "minimize", "algorithm": "tool"}
    found = Runs(table, **roles).check(rules_only=True)
    assert found.findings == ()
    assert found.overview == "4 rows: 2 algorithms; complete and balanced."
    assert found.cells["benchmark"].tolist() == [None, None]
    found = Runs({**table, "loss": [1.0, np.nan, 3.0, 3.0]}, **roles).check(rules_only=True)
    assert [f.message for f in found.findings] == [
        "1 of 2 scores of 'a' is missing or infinite, so no model can be fitted.",
        "All 2 scores of 'b' are 3.000.",
    ]


@pytest.mark.daily(2)
@pytest.mark.parametrize("backend", ["polars", "lazy", "pyarrow", "duckdb", "shuffled"])
def test_findings_do_not_depend_on_the_backend(frame: pd.DataFrame, backend: str) -> None:
    frame.loc[frame["task"] == "t3", "loss"] *= 50
    frame.loc[(frame["tool"] == "HB") & (frame["seed"] == 1), "loss"] = np.nan
    frame.loc[(frame["tool"] == "RS") & (frame["task"] == "t1"), "loss"] = 0.1
    frame = pd.concat([frame[5:], frame[frame["seed"] == 2]], ignore_index=True)
    polars = pl.from_pandas(frame, nan_to_null=False)
    data = {
        "polars": polars,
        "lazy": polars.lazy(),
        "pyarrow": pa.Table.from_pandas(frame),
        "duckdb": DUCK.from_arrow(polars.to_arrow()),
        "shuffled": frame.sample(frac=1, random_state=0),
    }[backend]
    want, got = check(frame), check(data)
    pd.testing.assert_frame_equal(got.to_frame("findings"), want.to_frame("findings"))
    pd.testing.assert_frame_equal(got.cells, want.cells, rtol=1e-12, check_dtype=False)
    assert len({f.kind for f in want.findings}) > 4


@pytest.fixture(scope="module")
def priorband(data_dir: Path) -> pd.DataFrame:
    return pd.read_parquet(data_dir / "priorband.parquet")


def test_priorband_is_balanced_and_its_scales_differ(priorband: pd.DataFrame) -> None:
    roles = {"score": "value", "algorithm": "algorithm", "benchmark": "benchmark", "budget": "used_fidelity"}
    runs = Runs(priorband, **{**ROLES, **roles})
    found = runs.check(rules_only=True)
    assert found.overview == (
        "86,400 rows: 3 algorithms, 12 benchmarks, 24 instances, 50 seeds, 24 budgets; complete and balanced."
    )
    assert [f.kind for f in found.problems] == ["score_scale"]
    assert found.scale_ratio == pytest.approx(173.75, abs=0.01)


def test_a_setting_is_not_a_budget(frame: pd.DataFrame) -> None:
    frame = frame[frame["epochs"] == 1].assign(epochs=lambda f: np.arange(len(f)) % 7)
    (finding,) = only(check(frame), "irregular_budgets")
    assert finding.message == "Every run has a score at one budget only, while 'epochs' takes 7 values."
    assert "name it as a metafeature" in finding.advice


def one_seed(scales: dict[str, float], tools: str = "abc", seed: int = 0) -> pd.DataFrame:
    """One score per benchmark and tool, at the given scales."""
    rng = np.random.default_rng(seed)
    rows = [(tool, task, 0, scale * rng.normal()) for task, scale in scales.items() for tool in tools]
    return pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"])


PLAIN: dict[str, Any] = {"budget": None, "metafeatures": []}


def test_without_repetitions_scales_are_those_of_the_differences() -> None:
    table = one_seed({"t1": 1, "t2": 1, "t3": 100, "t4": 1})
    found = check(table, **PLAIN)
    (finding,) = only(found, "score_scale")
    sd = table.groupby("task")["loss"].std()
    ratio = sd["t3"] / sd.drop("t3").min()
    assert (finding.severity, finding.benchmark) == ("warning", "t3")
    assert finding.message.startswith(f"Scores of different algorithms lie {ratio:.0f}")
    assert "no run was repeated" in finding.message
    assert finding.advice.startswith(
        "Compare a score that means the same everywhere: after runs.normalize('minmax') (1"
    )
    assert found.scale_ratio == pytest.approx(ratio)
    assert only(check(table.drop(columns="seed"), **PLAIN, seed=None), "score_scale")
    assert only(check(table.assign(epochs=1), metafeatures=[]), "score_scale")


@pytest.mark.slow
def test_differences_that_vary_by_chance_are_no_scales() -> None:
    tables = [one_seed({f"t{i}": 1 for i in range(10)}, seed=seed) for seed in range(200)]
    alarms = sum(not check(table, **PLAIN).ok for table in tables)
    assert 1 <= alarms <= 20  # 5 % of 200; the largest SD is more than 3 times the smallest in nearly all of them


def test_an_algorithm_with_seeds_of_its_own_lacks_none(frame: pd.DataFrame) -> None:
    frame.loc[frame["tool"] == "TPE", "seed"] += 100
    found = check(frame)
    findings = only(found, "unpaired_seeds")
    assert [f.benchmark for f in findings] == ["t1", "t2", "t3", "t4"]
    assert found.ok
    assert findings[0].message == "'TPE' on 't1' runs on seeds that no other algorithm uses."
    assert "not paired" in findings[0].advice
    assert findings[0].count == 30  # runs on t1
    assert (found.cells["missing"] == 0).all()
    assert found.overview.endswith("; complete and balanced.")
    fewer = check(frame[(frame["tool"] != "RS") | (frame["seed"] != 3) | (frame["task"] != "t1")])
    warning = fewer.problems[0]
    assert (warning.benchmark, warning.count) == ("t1", 2)
    assert "not run by every algorithm that shares seeds (such as seed 3; 'RS' lacks most)" in warning.message
    assert fewer.cells["missing"].tolist() == [0, 6, 0] + [0] * 9


def test_seeds_of_ones_own_are_a_note_and_nothing_is_missing(frame: pd.DataFrame) -> None:
    frame["seed"] += frame["tool"].map({"HB": 0, "RS": 100, "TPE": 200})
    found = check(frame)
    assert [f.message for f in only(found, "unpaired_seeds")] == [
        f"No seed on 't{i}' is used by more than one algorithm." for i in range(1, 5)
    ]
    assert found.ok
    assert (found.cells["missing"] == 0).all()
    assert found.overview.endswith("; complete and balanced.")
    assert check(frame[frame["seed"] != 102]).overview.endswith("; not balanced.")


def test_groups_of_algorithms_without_common_seeds(frame: pd.DataFrame) -> None:
    frame = pd.concat([frame, frame[frame["tool"] == "TPE"].assign(tool="X", loss=lambda f: f["loss"] + 0.001)])
    frame.loc[frame["tool"].isin(["TPE", "X"]), "seed"] += 100
    found = check(frame, benchmark=None, metafeatures=["prior", "task"])
    assert found.ok
    (finding,) = only(found, "unpaired_seeds")
    assert finding.message == "The algorithms form 2 groups without a common seed: HB, RS; TPE, X."


def test_missing_scores_are_not_complete(frame: pd.DataFrame) -> None:
    frame.loc[3, "loss"] = np.nan
    assert check(frame).overview.endswith("; balanced, but 1 score is missing or infinite.")
    frame.loc[4, "loss"] = np.inf
    assert check(frame).overview.endswith("; balanced, but 2 scores are missing or infinite.")
    assert check(frame[1:]).overview.endswith("; not balanced.")


def test_one_value_is_one_value() -> None:
    table = one_seed({"t1": 0, "t2": 1})
    (tied,) = (f for f in check(table, **PLAIN).findings if f.kind == "ties")
    assert "(1 different value in 3 scores)" in tied.message
    table.loc[0, "loss"] = np.nan
    assert check(table, **PLAIN).findings[0].message.startswith("1 of 1 score of 'a' on 't1' is missing")


@pytest.mark.parametrize("kind", ["number", "date", "category"])
def test_ranges_of_budgets_that_differ_between_algorithms(frame: pd.DataFrame, kind: str) -> None:
    frame["epochs"] = frame["epochs"].astype(float) + np.random.default_rng(0).random(len(frame)) / 10
    frame.loc[(frame["tool"] == "RS") & (frame["task"] == "t2"), "epochs"] *= 100
    if kind == "date":
        frame["epochs"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["epochs"], "D")
    if kind == "category":
        frame["epochs"] = pd.Categorical(frame["epochs"], ordered=True)
    found = check(frame)
    finding = next(f for f in found.findings if f.kind == "irregular_budgets")
    assert [f.kind for f in found.problems] == ["irregular_budgets"]
    assert (finding.severity, finding.benchmark, finding.count) == ("warning", "t2", 90)
    assert finding.message.startswith("Scores on 't2' were taken at different ranges of 'epochs' ('HB' at ")
    assert "so a comparison of all rows mixes budgets" in finding.message
    assert finding.advice.startswith(
        "Compare at budgets that all runs reached: runs.at_budgets([...]) has the last score of each run up to them, "
        if kind == "number"
        else "Compare at common budgets: for each run and budget, take the last score up to it."
    )
    if kind == "number":
        assert "'RS' at 100.1 to 908.6" in finding.message


def test_a_single_budget_per_run_that_depends_on_the_algorithm() -> None:
    table = pd.concat([one_seed({"t1": 1}, seed=i).assign(seed=i, epochs=np.arange(3) * 40 + i) for i in range(40)])
    found = check(table, metafeatures=[])
    assert found.overview == (
        "120 rows: 3 algorithms, 1 benchmark, 40 seeds, 120 budgets; not balanced: runs have few budgets in common."
    )
    (finding,) = found.problems
    assert finding.message == (
        "Scores on 't1' were taken at different ranges of 'epochs' ('a' at 0 to 39, 'c' at 80 to 119), so a "
        "comparison of all rows mixes budgets: more budget may pass for a better algorithm."
    )
