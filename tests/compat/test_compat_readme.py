"""Scripts as users of significance-analysis 0.2.4 have them: the code of its README, another import line."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest import approx

from lmemtest.compat.significance_analysis import convert_to_autorank, metafeature_analysis, model

# The code of the README of significance-analysis 0.2.4 (MIT licence), without its comments.
SIGNIFICANCE = """
import pandas as pd
from significance_analysis import dataframe_validator, model, cd_diagram

data = dataframe_validator(pd.read_parquet("datasets/priorband_data.parquet"))
mod = model("value ~ algorithm + (1|benchmark) + prior", data)
post_hoc_results = mod.post_hoc("algorithm")
cd_diagram(post_hoc_results)
"""
HYPOTHESES = """
import pandas as pd
from significance_analysis import (
    dataframe_validator,
    glrt,
    model,
    seed_dependency_check,
    benchmark_information_check,
    fidelity_check,
)

data = dataframe_validator(pd.read_parquet("datasets/priorband_data.parquet"))
seed_dependency_check(data)
benchmark_information_check(data)
fidelity_check(data)
model_1 = model("value ~ algorithm", data)
model_2 = model("value ~ 1", data)
glrt(model_1, model_2)
"""
METAFEATURES = """
import pandas as pd
from significance_analysis import dataframe_validator, metafeature_analysis

data = dataframe_validator(pd.read_parquet("datasets/priorband_data.parquet"))
scores = metafeature_analysis(data, ("HB", "PB"), "prior")
"""
NAMES = {"LC-167190", "LC-168910"}


def run(script, path):
    """Run a script with only the import line and the path changed."""
    changed = script.replace("from significance_analysis", "from lmemtest.compat.significance_analysis")
    namespace = {}
    exec(changed.replace("datasets/priorband_data.parquet", path.as_posix()), namespace)
    return namespace


@pytest.fixture
def small(table, tmp_path):
    path = tmp_path / "priorband_data.parquet"
    table("real").to_parquet(path)
    return path


@pytest.fixture(scope="module")
def large(data_dir):
    return data_dir / "priorband.parquet"


def test_the_peer_does_not_run_its_own_readme(peer):
    """Its validator returns a tuple, which its functions do not take."""
    assert {name: stored["error"] for name, stored in peer["conversions"]["readme"].items()} == {
        "model": "TypeError",
        "seed_dependency_check": "TypeError",
        "metafeature_analysis": "AttributeError",
    }


def test_significance_on_a_small_table(small, capsys, plt):
    found = run(SIGNIFICANCE, small)
    assert len(found["post_hoc_results"]) == 2
    assert isinstance(plt.gcf(), Figure)
    assert plt.gcf().axes
    assert capsys.readouterr().out == (
        "Converted column seed to object.\nP-values adjusted by tukey method for a family of 3 estimates\n"
    )


def test_hypotheses_on_a_small_table(small, capsys):
    run(HYPOTHESES, small)
    out = capsys.readouterr().out
    assert "=> Seed is not a significant effect" in out
    assert "=> Benchmark svm-0 is informative." in out


def test_metafeatures_on_a_small_table(small, capsys):
    estimates, contrasts = run(METAFEATURES, small)["scores"]
    assert (len(estimates), len(contrasts)) == (8, 28)  # all pairs of 8 instances
    assert contrasts["Contrast"][0] == "(svm-0 x good) - (svm-0 x bad)"
    assert "=> svm-0: good - bad = 1.750" in capsys.readouterr().out  # the sign of the table


# ---------------------------------------------------------------- PriorBand


def test_significance_on_priorband(large, peer, assert_like):
    found = run(SIGNIFICANCE, large)
    stored = peer["priorband"]
    estimates, contrasts = found["post_hoc_results"]
    assert found["mod"].logLike == approx(stored["logLike"], abs=1e-6)
    # lmerTest differentiates numerically: its degrees of freedom are off by 1e-4 of themselves
    assert_like(estimates, stored["estimates"], rel=5e-4)
    assert_like(contrasts, stored["contrasts"], rel=1e-4, skip=("P-val",))
    assert contrasts["P-val"].tolist() == approx(stored["contrasts"]["data"]["P-val"], rel=5e-4, abs=1e-10)
    assert_like(found["mod"].coefs, stored["coefs"], rel=1e-3, skip=("2.5_ci", "97.5_ci", "P-val"))
    assert_like(found["mod"].ranef_var, stored["ranef_var"], rel=1e-4)


@pytest.mark.slow
def test_hypotheses_on_priorband(large, peer, capsys):
    """The seed check tests each algorithm; the budget acts differently on them, as the package finds, too."""
    run(HYPOTHESES, large)
    out = capsys.readouterr().out
    stored = peer["priorband"]
    assert stored["seed"][0] == []
    assert "likely influenced algorithms: ['RS']" in out
    assert all(stored["benchmark"][0].values())
    assert out.count("is informative.") == 12
    assert stored["fidelity"][0] == "interaction_effect"
    assert "=> used_fidelity changes value differently for different algorithms" in out
    assert "direction: better on 12 of 12 benchmarks" in out


def test_metafeatures_on_priorband(large, peer, frame_of):
    """The twelve numbers of the paper but for its dummy row; two benchmarks do not follow the others."""
    estimates, contrasts = run(METAFEATURES, large)["scores"]
    assert len(estimates) == 24
    theirs = frame_of(peer["priorband"]["metafeature_within"]).set_index("Contrast")
    assert len(contrasts) == 276  # all pairs of 24 instances, those of the paper within benchmarks among them
    contrasts = contrasts.set_index("Contrast").loc[theirs.index].reset_index()
    apart = (contrasts.set_index("Contrast")["Estimate"] - theirs["Estimate"]).abs()
    assert apart.max() < 1 / 24 + 1e-3  # one budget
    assert (apart < 1e-3).sum() == 10
    assert (theirs["P-val"] < 0.05).sum() == 10
    ours = contrasts.set_index("Contrast")["P-val"]
    assert (ours < 0.05).sum() == 7  # adjusted for all 276 pairs; 8 of the 12 by themselves follow
    nothing = {name.strip("(").split(" x ")[0] for name in ours.index[ours > 0.99]}
    assert nothing == NAMES


def test_autorank_on_priorband(large):
    data = pd.read_parquet(large)
    ranks = convert_to_autorank(data)
    assert ranks.shape == (28_800, 3)
    assert not ranks.isna().any(axis=None)
    keys = ["benchmark", "prior", "used_fidelity", "seed"]
    same = data[(data[keys] == data[keys].iloc[0]).all(axis=1)]
    assert ranks.iloc[0].to_dict() == (-same.set_index("algorithm")["value"]).to_dict()


def test_one_level_of_the_metafeature_is_no_analysis(large):
    data = pd.read_parquet(large)
    with pytest.raises(ValueError, match="prior"):
        metafeature_analysis(data[data["prior"] == "bad"], ("HB", "PB"), "prior", verbose=False)


def test_models_do_not_keep_what_they_are_given(small):
    frame = pd.read_parquet(small)
    fit = model("value ~ algorithm + (1|benchmark)", frame)
    frame["value"] = 0.0
    assert fit.data["value"].std() > 0
