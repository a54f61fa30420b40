"""The section of a report on what a study of its size could find: against the analysis itself and `power`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.report.document import plain
from lmemtest.report.sections import study_size_section

ROLES = {"score": "acc", "direction": "maximize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}


def analysis(benchmarks: int = 8, seeds: int = 5, gap: float = 0.0, **options: object) -> lt.Analysis:
    rng = np.random.default_rng(4)
    own = rng.normal(0.0, 0.5, size=(benchmarks, 3))
    rows = [
        (tool, f"t{t}", s, gap * i + own[t, i] + rng.normal())
        for i, tool in enumerate("ABC")
        for t in range(benchmarks)
        for s in range(seeds)
    ]
    return lt.analyze(lt.Runs(pd.DataFrame(rows, columns=["tool", "task", "seed", "acc"]), **ROLES), **options)


def test_a_balanced_study_of_the_same_size_has_the_error_of_the_analysis_and_the_power_asked_for():
    found = analysis()
    section = study_size_section(found)
    frame = section.blocks[1].frame
    assert frame[["benchmarks", "runs"]].to_numpy().tolist() == [[8, 5], [16, 5], [8, 10]]
    se = frame["SE of a difference"]
    assert se[0] == pytest.approx(np.sqrt(found.fit.cov(np.array([[0.0, 1.0, 0.0]]))[0, 0]), rel=1e-5)
    assert se[1] == pytest.approx(se[0] / np.sqrt(2.0))
    smallest = float(frame["smallest difference"].iat[0])
    plan = {"n_benchmarks": 8, "n_seeds": 5, "alpha": found.alpha, "method": "closed_form"}
    assert lt.power(found.fit, effect=smallest, **plan).table["exact"].iat[0] == pytest.approx(0.8, abs=1e-6)
    text = plain(section.blocks[0])
    assert text.startswith("3 of the 3 differences between algorithms are not significant.")
    assert "(8 benchmarks with 5 runs of each algorithm)" in text
    assert "What was observed is not the true difference" in text


def test_it_is_about_what_is_open_and_what_the_model_tells():
    assert study_size_section(analysis(gap=9.0)) is None  # all are significant
    assert study_size_section(analysis(benchmarks=1)) is None  # nothing is known of other benchmarks
    some = analysis(benchmarks=20, gap=9.0).runs.to_frame()
    some.loc[some["tool"] == "B", "acc"] -= 9.0  # like A
    text = plain(study_size_section(lt.analyze(lt.Runs(some, **ROLES))).blocks[0])
    assert text.startswith("1 of the 3 differences between algorithms is not significant.")
    two = some[some["tool"] != "C"]
    text = plain(study_size_section(lt.analyze(lt.Runs(two, **ROLES))).blocks[0])
    assert text.startswith("The difference between the algorithms is not significant.")
    uneven = some.drop(some.index[[0, 7, 30]])
    assert "with about 5 runs" in plain(study_size_section(lt.analyze(lt.Runs(uneven, **ROLES))).blocks[0])


def test_seeds_that_are_a_sample_are_planned_anew_and_a_note_says_so():
    rng = np.random.default_rng(1)
    table = analysis(benchmarks=6).runs.to_frame()
    shared = dict(zip([(a, s) for a in "ABC" for s in range(5)], rng.normal(scale=2.0, size=15), strict=True))
    table["acc"] += [shared[pair] for pair in zip(table["tool"], table["seed"], strict=True)]
    section = study_size_section(lt.analyze(lt.Runs(table, **ROLES, seed_shared=True)))
    assert "planned study has its own seeds" in " ".join(section.blocks[1].notes)


def test_a_variance_of_zero_is_said_to_make_the_numbers_too_small():
    rng = np.random.default_rng(3)
    frame = analysis().runs.to_frame()
    assert "too small" not in " ".join(study_size_section(analysis()).blocks[1].notes)
    cells = frame.groupby(["tool", "task"])["acc"]
    level = dict(zip([f"t{t}" for t in range(8)], rng.normal(size=8), strict=True))
    frame["acc"] += frame["task"].map(level) - 0.9 * cells.transform("mean")  # means vary less than by chance
    section = study_size_section(lt.analyze(lt.Runs(frame, **ROLES)))
    assert "all differences here are too small" in " ".join(section.blocks[1].notes)


@pytest.mark.level(2)
def test_where_families_are_the_sample_more_of_them_are_planned() -> None:
    rng = np.random.default_rng(5)
    own, within = rng.normal(0.0, 0.7, size=(6, 3)), rng.normal(0.0, 0.3, size=(6, 3, 3))
    level = 2.0 * rng.normal(size=6)[:, None] + rng.normal(size=(6, 3))
    rows = [
        (f"s{f}", f"s{f}-{t}", tool, f"{f}{t}{s}", level[f, t] + own[f, i] + within[f, t, i] + 0.2 * rng.normal())
        for f in range(6)
        for t in range(3)
        for i, tool in enumerate("AB")
        for s in range(2)
    ]
    frame = pd.DataFrame(rows, columns=["space", "task", "tool", "seed", "acc"])
    found = lt.analyze(lt.Runs(frame, **ROLES, family="space"))
    section = study_size_section(found)
    table = section.blocks[1].frame
    sizes = [[6, 3, 2], [12, 3, 2], [6, 6, 2], [6, 3, 4]]
    assert table[["families", "benchmarks of each", "runs"]].to_numpy().tolist() == sizes
    se = table["SE of a difference"]
    assert se[0] == pytest.approx(np.sqrt(found.fit.cov(np.array([[0.0, 1.0]]))[0, 0]), rel=1e-5)
    assert se[1] == pytest.approx(se[0] / np.sqrt(2.0))
    assert min(se[2:]) > se[1]
    assert max(se[2:]) < se[0]
    smallest = float(table["smallest difference"].iat[0])
    plan = {"n_families": [6, 12], "n_benchmarks": 3, "n_seeds": 2, "alpha": found.alpha, "method": "closed_form"}
    half = lt.power(found.fit, effect=0.5 * smallest, **plan)
    needed = half.needed().to_frame()["n_families"].item()
    text = plain(section.blocks[0])
    assert "(6 families of 3 benchmarks with 2 runs of each algorithm)" in text
    assert "With twice as many families that would be" in text
    assert f"takes {needed} families like these." in text
    assert lt.power(found.fit, effect=smallest, **plan).table["power"].iat[0] == pytest.approx(0.8, abs=1e-6)
