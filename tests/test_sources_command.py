"""The command for sources of variation: its answer is that of Python, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study import table_of_scores

import lmemtest as lt

ROLES = ("--score", "score", "--model", "model", "--source", "item", "--source", "judge")


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 12, 1)) + rng.normal(size=(3, 1, 4)) + rng.normal(size=(3, 12, 4))
    table_of_scores(scores, "model item judge", score="score").to_csv("answers.csv", index=False)


def test_sources_and_their_projection_are_those_of_python(run: Callable[..., Any]) -> None:
    table = pd.read_csv("answers.csv")
    study = lt.variance_sources(table, score="score", sources=["item", "judge"], model="model")
    found = json.loads(run("sources", "answers.csv", *ROLES, "--json").out)
    assert [row["variance"] for row in found["sources"]] == pytest.approx(study.sources["variance"].tolist())
    given = (
        "--current",
        "judge=3",
        "--current",
        "item=20",
        "--cost",
        "item=2",
        "--cost",
        "score=0.5",
        "--budget",
        "90",
    )
    plan = study.project(current={"judge": 3, "item": 20}, costs={"item": 2.0, "score": 0.5}, budget=90.0)
    words = ["sources", "answers.csv", *ROLES, "--project", *given, "--at-most=item=500"]
    assert json.loads(run(*words, "--json").out)["designs"] == json.loads(plan.to_json())["designs"]
    assert run(*words, "-o", "plan.png").code == 0
    assert Path("plan.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (ROLES[2:], "--score must be given"),
        (ROLES[:4], "--source must be given"),
        ((*ROLES, "--budget", "9"), "--current, --cost, --at-most"),
        ((*ROLES, "--project", "--current", "item=2.5"), "must be a whole number"),
        ((*ROLES, "--project", "--cost", "item"), "is not NAME=NUMBER"),
    ],
)
def test_what_is_wrong_is_named(run: Callable[..., Any], words: tuple[str, ...], message: str) -> None:
    outcome = run("sources", "answers.csv", *words)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.replace("\u2502", " ").split())
