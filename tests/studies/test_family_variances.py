"""Variation between families of benchmarks, and studies planned with it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.studies.variation.run_layout import layout_of
from lmemtest.studies.variation.variance_sources import run_components

ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed",
}  # fmt: skip
F, B, K, N = 6, 4, 3, 2


def study(rng: int = 1, families: int = F) -> pd.DataFrame:
    """Six spaces of four tasks, three tools and two seeds: each space has advantages, and each task."""
    draw = np.random.default_rng(rng)
    space, task, tool, seed = (
        1.0 * draw.normal(size=(families, 1, 1, 1)) + draw.normal(size=(families, 1, K, 1)),
        0.8 * draw.normal(size=(families, B, 1, 1)),
        0.5 * draw.normal(size=(families, B, K, 1)),
        0.4 * draw.normal(size=(families, B, 1, N)),
    )
    loss = (space + task + tool + seed + 0.3 * draw.normal(size=(families, B, K, N))).ravel()
    keys = product(range(families), range(B), "ABC", range(N))
    rows = [(f"s{f}", f"s{f}-{b}", k, n) for f, b, k, n in keys]
    return pd.DataFrame(rows, columns=["space", "task", "tool", "seed"]).assign(loss=loss)


def as_runs(frame: pd.DataFrame, **roles: Any) -> lt.Runs:
    return lt.Runs(frame, **{**ROLES, "family": "space", **roles})


FRAME = study()
FOUND = lt.variance_sources(as_runs(FRAME))


def test_families_have_the_variances_of_analysis_of_variance() -> None:
    got = FOUND.to_frame().set_index("source")["variance"]
    y = FRAME["loss"].to_numpy().reshape(F, B, K, N)
    of_tool, cell, task, seed = y.mean((1, 3)), y.mean(3), y.mean((2, 3)), y.mean(2)
    space, tool = y.mean((1, 2, 3)), y.mean((0, 1, 3))
    ms_space = B * K * N * space.var(ddof=1)
    ms_task = K * N * ((task - space[:, None]) ** 2).sum() / F / (B - 1)
    ms_space_tool = B * N * ((of_tool - space[:, None] - tool + y.mean()) ** 2).sum() / (F - 1) / (K - 1)
    inner = cell - task[:, :, None] - of_tool[:, None] + space[:, None, None]
    ms_task_tool = N * (inner**2).sum() / F / (B - 1) / (K - 1)
    ms_seed = K * ((seed - task[:, :, None]) ** 2).sum() / F / B / (N - 1)
    rest = y - cell[..., None] - seed[:, :, None] + task[:, :, None, None]
    ms_run = (rest**2).sum() / F / B / (K - 1) / (N - 1)
    assert FOUND.balanced
    assert got["run"] == approx(ms_run, rel=1e-6)
    assert got["task:seed"] == approx((ms_seed - ms_run) / K, rel=1e-6)
    assert got["task:tool"] == approx((ms_task_tool - ms_run) / N, rel=1e-6)
    assert got["space:tool"] == approx((ms_space_tool - ms_task_tool) / B / N, rel=1e-6)
    assert got["task"] == approx((ms_task - ms_task_tool - ms_seed + ms_run) / K / N, rel=1e-6)
    assert got["space"] == approx((ms_space - ms_space_tool - ms_task + ms_task_tool) / B / K / N, rel=1e-6)
    # the error of a tool's mean is that of families, however many tasks each has
    assert got["tool"] == approx(max(B * F * N * tool.var(ddof=1) - ms_space_tool, 0.0) / B / F / N, rel=1e-6)


@pytest.mark.parametrize("way", ["nested", "crossed"])
def test_unequal_families_have_the_variances_of_lme4(way: str, reference, reference_input) -> None:
    frame = reference_input("nested_slopes")
    a, b, t = (pd.factorize(frame[name], sort=True)[0] + 1 for name in ("a", "b", "treatment"))
    frame["y"] += 2 * np.sin(3 * a * t) + 2 * np.sin(5 * b * t) + 3 * np.sin(7 * a * b * t)
    frame["task"] = frame["a"] + frame["b"] if way == "nested" else frame["b"]
    names = {"score": "y", "algorithm": "treatment", "benchmark": "task", "family": "a"}
    layout = layout_of(lt.Runs(frame, direction="minimize", **names), task="", families=True)
    variances = run_components(layout, level=None).variances
    got = {":".join(sorted(layout.label(factors).split(":"))): variance for factors, variance in variances.items()}
    label = "task" if way == "nested" else "a:task"
    ours = {"a:b": label, "a:b:treatment": f"{label}:treatment", "b": "task", "b:treatment": "task:treatment"}
    want = reference("families")[way]
    for group, variance in zip(want["groups"], want["variances"], strict=True):
        name = "run" if group == "Residual" else ours.get(group, group)
        assert got[name] == approx(variance, rel=2e-4, abs=1e-6), group


def test_words_of_families_say_who_the_numbers_are_for() -> None:
    assert FOUND.n_families == F
    assert FOUND.notes[0].startswith("The 6 spaces are the sample: what is said holds for new spaces.")
    meaning = FOUND.to_frame().set_index("source")["meaning"]
    assert meaning["space:tool"] == "advantages of algorithms that change between spaces"
    assert meaning["task:tool"] == "advantages of algorithms that change from benchmark to benchmark of one space"
    share = FOUND.variance("family_interaction") / (
        FOUND.variance("family_interaction") + FOUND.variance("interaction")
    )
    assert FOUND.sentences()[-1] == (
        f"Of the variance of the advantages, an estimated {100 * share:.0f} % lies between families (space:tool)."
    )


def test_too_few_families_leave_the_sources_as_they_are_without() -> None:
    frame = study(families=4)
    few, none = (lt.variance_sources(as_runs(frame, family=family)) for family in ("space", None))
    pd.testing.assert_frame_equal(few.to_frame(), none.to_frame())
    assert "too few spaces to be a sample (4;" in few.notes[0]
    assert few.n_families is None
