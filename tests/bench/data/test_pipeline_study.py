"""The bundled study of pipelines: designs vary what they say and nothing else, and rows can be made again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lmemtest.bench.data.datasets import load_pipeline_study

BUILDER = Path(__file__).parents[3] / "examples" / "pipeline_study" / "build.py"
SOURCES = ["tuning", "data", "init", "order", "augment"]
FOUND = ["learning_rate", "alpha", "noise", "hidden_units"]
GROUP = ["pipeline", "dataset"]


@pytest.fixture(scope="module")
def study() -> pd.DataFrame:
    return load_pipeline_study()


def design(study, name, varied=None):
    part = study[study["design"] == name]
    return part if varied is None else part[part["varied"] == varied]


def test_columns_and_sizes_are_those_of_the_docstring(study):
    sources = ["tuning", "tuned_on", *SOURCES[1:]]
    assert list(study.columns) == [*GROUP, "design", "varied", *sources, *FOUND, "score", "n_test"]
    sizes = study.groupby(["design", "varied"]).size() / 6
    assert sizes.to_dict() == {
        **{("one at a time", source): 80 for source in SOURCES[1:]},
        ("one at a time", "tuning"): 60,
        ("one at a time", "nothing"): 10,
        ("ideal", "all"): 60,
        **{("fixed tuning", varied): 400 for varied in ("init", "data", "all")},
    }
    assert set(study["pipeline"]) == {"linear", "mlp"}
    assert set(study["dataset"]) == {"cancer", "digits", "wine"}
    assert not study.isna().any(axis=None)


def test_scores_are_shares_of_the_test_set(study):
    right = study["score"] * study["n_test"]
    np.testing.assert_allclose(right, right.round(), atol=1e-8)
    assert study["score"].between(0, 1).all()


def test_both_pipelines_have_the_same_seeds_and_test_sets(study):
    keys = ["dataset", "design", "varied", *SOURCES, "tuned_on", "n_test"]
    linear, mlp = (study.loc[study["pipeline"] == name, keys].reset_index(drop=True) for name in ("linear", "mlp"))
    pd.testing.assert_frame_equal(linear, mlp)


@pytest.mark.parametrize("source", SOURCES)
def test_one_at_a_time_varies_one_source(study, source):
    part = design(study, "one at a time", source).groupby(GROUP)
    seeds = part[[*SOURCES, "tuned_on"]].nunique()
    assert (seeds.pop(source) == part.size()).all()
    assert (seeds == 1).all(axis=None)
    found = part[FOUND].nunique()
    assert (found["learning_rate"] > 10).all() if source == "tuning" else (found == 1).all(axis=None)


def test_all_designs_one_at_a_time_start_from_the_repeated_training(study):
    reference = design(study, "one at a time", "nothing").groupby(GROUP)
    assert (reference[[*SOURCES, "tuned_on", *FOUND, "score"]].nunique() == 1).all(axis=None)
    for _, part in design(study, "one at a time").groupby(GROUP):
        modes = part[[*SOURCES, *FOUND]].mode().iloc[0]
        same = part[part["varied"] == "nothing"].iloc[0][[*SOURCES, *FOUND]]
        assert (modes.astype(float) == same.astype(float)).all()


def test_the_ideal_design_shares_nothing(study):
    part = design(study, "ideal")
    assert (part.groupby(GROUP)[SOURCES].nunique() == 60).all(axis=None)
    assert (part["tuned_on"] == part["data"]).all()


@pytest.mark.parametrize(("varied", "new"), [("init", ["init"]), ("data", ["data"]), ("all", SOURCES[1:])])
def test_fixed_tuning_shares_all_but_what_is_new(study, varied, new):
    part = design(study, "fixed tuning", varied)
    assert (part.groupby(GROUP)["tuning"].nunique() == 20).all()
    runs = part.groupby([*GROUP, "tuning"])[[*SOURCES, "tuned_on", *FOUND]].nunique()
    assert (runs[new] == 20).all(axis=None)
    assert (runs.drop(columns=new) == 1).all(axis=None)


def test_a_search_is_a_function_of_its_seed_and_its_data(study):
    found = study.groupby([*GROUP, "tuning", "tuned_on"])[FOUND].nunique()
    assert (found == 1).all(axis=None)
    assert len(found) == 6 * (1 + 60 + 60 + 20)
    linear = study["pipeline"] == "linear"
    assert (study.loc[linear, "hidden_units"] == 0).all()
    assert study.loc[~linear, "hidden_units"].between(8, 64).all()


def test_the_test_set_depends_on_the_data_seed_alone(study):
    assert (study.groupby(["dataset", "data"])["n_test"].nunique() == 1).all()


@pytest.mark.level(2)
def test_rows_can_be_made_again_from_their_seeds():
    pytest.importorskip("sklearn", reason="training again needs the extra 'data'")
    command = [sys.executable, str(BUILDER), "--check", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "library versions have changed" in done.stdout:
        pytest.skip("the file was built with other library versions: " + done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
