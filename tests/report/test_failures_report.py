"""The report says what failed runs count, and what the verdict owes to that."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt


@pytest.mark.level(2)
def test_the_report_says_what_failed_runs_count() -> None:
    frame = pd.DataFrame(list(product("ABC", range(8), range(4))), columns=["tool", "task", "seed"])
    noise = 0.1 * np.random.default_rng(3).normal(size=len(frame))
    frame["loss"] = frame["task"] / 4 + frame["tool"].map({"A": 0.0, "B": 0.2, "C": 0.5}) + noise
    frame.loc[(frame["tool"] == "A") & (frame["task"] % 4 == 0) & (frame["seed"] > 0), "loss"] = np.nan
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    runs = lt.Runs(frame, failed="missing", **roles)
    analysis = lt.analyze(runs.score_failures("worst"))
    text = analysis.to_markdown()
    assert {"**Policy.**", "**What to do:**"} <= set(re.findall(r"\*\*\S[^*]*\S\*\*(?= )", text))  # bold for Markdown
    assert analysis.sensitivity is not None
    assert "Failed runs matter" in analysis.headline()
    assert text.count("6 failed runs of 1 algorithm were given the worst score of their benchmark.") >= 3
    assert analysis.sensitivity.overview in text
    assert "## Failed runs" in text
    assert "## Failed runs" not in lt.analyze(runs.filter(task=[1, 2, 3]).score_failures("worst")).to_markdown()
