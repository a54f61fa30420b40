"""The old default comparison and the new one on the same tables: the numbers of docs/developers/default-comparison.md.

`python tests/test_default_comparison.py` prints the counts and the changed pairs of all tables; those of PriorBand and
HPO-B need LMEMTEST_DATA.
"""

from __future__ import annotations

import os
import re
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pytest import approx
from study import as_runs

import lmemtest as lt

BUDGETS = (2, 8, 32)
SCALES = ("raw", "rank", "regret", "minmax")


def sides(runs: lt.Runs) -> pd.DataFrame:
    """All pairs by Tukey's test on the model's standard errors, by the default, and with their scatter alone."""
    fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
    new = fit.emmeans(runs.algorithm).pairs().to_frame()
    old = fit.emmeans(runs.algorithm).pairs(adjust="tukey", vcov="model").to_frame()
    robust = fit.moderated().robust
    own = robust.fit.emmeans(runs.algorithm, vcov=robust).pairs(adjust="none").to_frame()
    found = old[["left", "right", "estimate"]].copy()
    for name, frame in (("old", old), ("own", own), ("new", new)):
        found[[f"se_{name}", f"df_{name}"]] = frame[["se", "df"]]
    found["p_old"], found["p_new"] = old["p_value"], new["p_value"]
    return found


def counts(found: pd.DataFrame) -> tuple[int, int, int]:
    """Pairs significant by both, by the old default only, by the new one only."""
    old, new = found["p_old"] < 0.05, found["p_new"] < 0.05
    return int((old & new).sum()), int((old & ~new).sum()), int((new & ~old).sum())


def changed(found: pd.DataFrame) -> pd.DataFrame:
    return found[(found["p_old"] < 0.05) != (found["p_new"] < 0.05)]


def bundled(prior: str, budget: int, scale: str) -> lt.Runs:
    runs = lt.datasets.load_hpo_runs().filter(prior=prior, budget=budget)
    return runs if scale == "raw" else runs.normalize(scale)


def priorband(folder: Path, score: str, budget: int) -> lt.Runs:
    table = pd.read_parquet(folder / "priorband.parquet")
    return as_runs(table[table["used_fidelity"] == budget], score=score)


def hpob(folder: Path, scale: str) -> lt.Runs:
    """13 complete methods at trial 50; a task is a data set in a search space."""
    table = pd.read_parquet(folder / "hpob.parquet")
    table = table[(table["trial"] == 50) & (table["method"] != "RF")].copy()
    table["task"] = table["search_space"].astype(str) + "/" + table["dataset"].astype(str)
    table = table[["method", "task", "seed", "best_accuracy"]]
    runs = as_runs(table, "maximize", score="best_accuracy", algorithm="method")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lt.errors.DataWarning)  # 2 tasks on which all scores are equal
        return runs if scale == "raw" else runs.normalize(scale)


@pytest.mark.parametrize(
    ("prior", "budget", "scale", "want"), [("bad", 8, "raw", (2, 3, 2)), ("good", 32, "minmax", (4, 1, 3))]
)
def test_bundled_verdicts_change_as_the_docs_say(prior, budget, scale, want):
    assert counts(sides(bundled(prior, budget, scale))) == want


def test_the_erratic_algorithm_loses_a_verdict_and_the_others_gain_one():
    found = sides(bundled("bad", 8, "raw")).set_index(["left", "right"])
    lost, gained = found.loc[("RS", "RS+prior")], found.loc[("HB", "TPE+prior")]
    assert lost[["se_old", "se_own", "se_new"]].tolist() == approx([0.00374, 0.00570, 0.00584], abs=1e-5)
    assert gained[["se_old", "se_own", "se_new"]].tolist() == approx([0.00374, 0.00262, 0.00297], abs=1e-5)
    assert lost[["p_old", "p_new"]].tolist() == approx([0.0006, 0.0981], abs=1e-4)
    assert gained[["p_old", "p_new"]].tolist() == approx([0.0615, 0.0177], abs=1e-4)


@pytest.mark.parametrize(
    ("score", "budget", "want"),
    [("value", 5, (0, 0, 0)), ("value", 10, (0, 1, 0)), ("normalized_regret", 5, (2, 0, 0)),
     ("normalized_regret", 10, (2, 0, 0))],
)  # fmt: skip
def test_priorband_verdicts_change_as_the_docs_say(data_dir, score, budget, want):
    assert counts(sides(priorband(data_dir, score, budget))) == want


@pytest.mark.parametrize(
    ("scale", "want"), [("raw", (7, 6, 1)), ("rank", (24, 4, 7)), ("normalized_regret", (17, 6, 10))]
)
def test_hpob_verdicts_change_as_the_docs_say(data_dir, scale, want):
    assert counts(sides(hpob(data_dir, scale))) == want


def tables() -> Iterator[tuple[str, lt.Runs]]:
    for prior in ("good", "bad"):
        for budget in BUDGETS:
            for scale in SCALES:
                yield f"bundled, prior {prior}, budget {budget}, {scale}", bundled(prior, budget, scale)
    if "LMEMTEST_DATA" in os.environ:
        folder = Path(os.environ["LMEMTEST_DATA"])
        for score in ("value", "normalized_regret"):
            for budget in (5, 10):
                yield f"PriorBand, {score}, budget {budget}", priorband(folder, score, budget)
        for scale in ("raw", "rank", "normalized_regret"):
            yield f"HPO-B, {scale}", hpob(folder, scale)


# ------------------------------------------------------------ the verdicts of docs/developers/benchmark-effects.md


SCRIPT = Path(__file__).parents[1] / "examples" / "four_verdicts.py"


@pytest.mark.level(2)
@pytest.mark.usefixtures("data_dir")
def test_one_table_has_the_verdicts_of_the_page(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [SCRIPT.name])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    found = [int(n) for n in re.findall(r"(\d+) of 78 pairs differ", capsys.readouterr().out)]
    assert found == [41, 28, 31, 28, 14, 19, 27, 8, 18, 6]


if __name__ == "__main__":
    for name, runs in tables():
        found = sides(runs)
        print(
            f"{name}: significant by both {counts(found)[0]}, old only {counts(found)[1]}, new only {counts(found)[2]}"
        )
        if len(changed(found)):
            print(changed(found).to_string(index=False, float_format="{:.3g}".format))
