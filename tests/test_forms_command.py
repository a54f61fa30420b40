"""The command line reads tables in all their forms, says what it read as what, and names the option that is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

METHODS, DATA_SETS = ["Ours", "XGBoost", "kNN"], ["adult", "bank", "car", "eeg", "higgs", "letter"]


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Scores, a row per method; the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(4).normal(0.0, 0.5, (3, 6))
    scores = 80.0 + 2.0 * np.arange(6) - 3.0 * np.arange(3)[:, None] + noise
    return pd.DataFrame(scores.round(1), index=pd.Index(METHODS, name="Method"), columns=DATA_SETS)


def means_of(out: str) -> dict[str, float]:
    return {row["algorithm"]: row["mean"] for row in json.loads(out)["ranking"]}


WIDE = ("--wide", "--direction", "maximize", "--json")


def test_a_table_of_a_paper_is_read_and_said(paper: pd.DataFrame, run: Any) -> None:
    pytest.importorskip("openpyxl")
    printed = paper.map(lambda x: f"{x:.1f} ± 0.4").assign(**{"Avg.": paper.mean(axis=1).round(1)}).reset_index()
    with pd.ExcelWriter("paper.xlsx") as book:
        printed.to_excel(book, sheet_name="Table 2", index=False, startrow=2)
        book.sheets["Table 2"].cell(1, 1, "Table 2: accuracy (%)")
        pd.DataFrame({"note": ["text"]}).to_excel(book, sheet_name="README", index=False)
    code, out, err = run("rank", "paper.xlsx", *WIDE)
    assert code == 0
    assert err.splitlines()[0] == (
        "Read as: the sheet 'Table 2', one of 2; the table below 1 row of title ('Table 2: accuracy (%)'), left out; "
        "means in 18 cells such as '"
        + f"{paper.iloc[0, 0]:.1f} ± 0.4', without what stands behind them; 'Avg.' left out, which sums up other "
        "columns; methods in rows ('Method') and data sets in columns (adult, bank and 4 others)."
    )
    assert means_of(out) == pytest.approx(paper.mean(axis=1).to_dict())
    assert means_of(run("rank", "paper.xlsx", *WIDE, "--sheet", "1")[1]) == means_of(out)
    code, text, _ = run("report", "paper.xlsx", "--wide", "--direction", "maximize", "-o", "a.txt")
    assert code == 0
    assert text.startswith("Ours is")
    assert "methods in rows ('Method')" in " ".join(Path("a.txt").read_text().split())
    code, out, err = run("rank", "paper.xlsx", *WIDE, "--sheet", "3")
    assert (code, err) == (2, "error: The file 'paper.xlsx' has no sheet '3'. Its sheets: 1 'Table 2', 2 'README'.\n")


def test_where_the_methods_are_is_an_option_or_asked(paper, run, monkeypatch):
    unsure = paper.set_axis([f"s{i}" for i in range(6)], axis=1).set_axis(pd.Index(["p", "q", "r"], name="x"))
    unsure.to_csv("a.csv")
    _, out, err = run("rank", "a.csv", *WIDE)
    assert "Read as: methods in columns (s0, s1 and 4 others) and data sets in rows ('x')." in err
    assert set(means_of(out)) == set(unsure.columns)
    assert set(means_of(run("rank", "a.csv", *WIDE, "--methods", "rows")[1])) == {"p", "q", "r"}
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question, **_: "s0, s1" not in question)
    _, out, err = run("rank", "a.csv", *WIDE)
    assert set(means_of(out)) == {"p", "q", "r"}
    assert "methods in rows ('x')" in err


def test_words_for_failures_lead_to_the_policy(paper: pd.DataFrame, run: Any) -> None:
    long = paper.reset_index().melt("Method", var_name="dataset", value_name="acc")
    long["acc"] = long["acc"].astype(object)
    long.loc[[3, 7], "acc"] = "OOM"
    long.loc[5, "acc"] = "timeout"
    long.to_csv("a.csv", index=False)
    code, _, err = run("rank", "a.csv", "--yes")
    option = "--failed OOM --failed timeout"
    assert code == 2
    assert "'acc' must hold numbers, but 3 cells of 18 hold words ('OOM' 2, 'timeout' 1). " in err
    assert option in err
    code, _, err = run("rank", "a.csv", "--yes", *option.split())
    assert "Read as: failed runs in 3 cells ('OOM' 2, 'timeout' 1)." in err
    assert "3 of 18 runs failed" in err
    assert "--score-failures worst" in err
    code, out, _ = run("rank", "a.csv", "--yes", *option.split(), "--score-failures", "0", "--json")
    filled = pd.to_numeric(long["acc"], errors="coerce").fillna(0.0).groupby(long["Method"]).mean()
    assert means_of(out) == pytest.approx(filled.to_dict())


def test_repeated_rows_are_dropped_as_asked(paper: pd.DataFrame, run: Any) -> None:
    long = paper.reset_index().melt("Method", var_name="dataset", value_name="acc").assign(seed=1)
    twice = pd.concat([long, long.head(4), long.tail(2).assign(acc=0.0)])
    twice.to_csv("a.csv", index=False)
    roles = ("--yes", "--seed", "seed", "--benchmark", "dataset", "--json")
    code, out, err = run("rank", "a.csv", *roles, "--drop-duplicates", "first")
    assert code == 0
    assert "6 of 24 rows repeat a run (the same Method, dataset and seed): 4 exact copies and 2 with other" in err
    assert means_of(out) == pytest.approx(paper.mean(axis=1).to_dict())
    code, _, err = run("rank", "a.csv", *roles, "--drop-duplicates", "some")
    assert code == 2


def test_ordinary_tables_are_not_talked_about(paper: pd.DataFrame, run: Any) -> None:
    paper.T.rename_axis("dataset").to_csv("wide.csv")
    paper.reset_index().melt("Method", var_name="dataset", value_name="acc").to_csv("long.csv", index=False)
    assert "Read as" not in run("rank", "wide.csv", *WIDE)[2]
    assert "Read as" not in run("rank", "long.csv", "--yes")[2]
