"""The PriorBand table: log-likelihoods to reproduce, and the false positives of pseudo-replication."""

from __future__ import annotations

import pandas as pd
import pytest
from pytest import approx
from references import values

import lmemtest as lt

TABLE = values("priorband_table")


@pytest.fixture(scope="module")
def priorband(data_dir):
    return pd.read_parquet(data_dir / "priorband.parquet")


@pytest.mark.parametrize("row", TABLE["models"], ids=lambda row: row["formula"])
def test_published_log_likelihoods_are_reproduced(priorband, row):
    fit = lt.fit_lmm(row["formula"], priorband, reml=False)
    assert fit.converged
    if row["at_least"]:
        assert fit.llf > row["llf"] - 1e-4
    else:
        assert fit.llf == approx(row["llf"], abs=1e-4)
    if row["is_singular"] is not None:
        assert fit.is_singular == row["is_singular"]


@pytest.mark.parametrize(
    ("benchmark", "null", "alternative"),
    [("LC-167190", 12884.4064, 13113.7332), ("JAHS-C10", -25493.0466, -25478.2102)],
)
def test_per_benchmark_pairs_of_the_notebook_of_paper_003(priorband, benchmark, null, alternative):
    one = priorband[priorband["benchmark"] == benchmark]
    assert lt.fit_lmm("value ~ 1", one, reml=False).llf == approx(null, abs=1e-4)
    assert lt.fit_lmm("value ~ algorithm", one, reml=False).llf == approx(alternative, abs=1e-4)


def test_the_false_optimum_with_a_zero_diagonal_is_escaped(priorband):
    fit = lt.fit_lmm("value ~ algorithm + (algorithm|benchmark) + (1|seed)", priorband, reml=False, restarts=0)
    assert fit.llf > -244058.0859  # the stationary point with a zero diagonal is at -244061.007


def test_luck_of_the_seed_is_counted_and_one_verdict_falls_as_the_docs_say(priorband):
    roles = {"direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed"}
    found = {}
    for score, budget in (("normalized_regret", 10), ("value", 5)):
        table = priorband[priorband["used_fidelity"] == budget]
        for shared in (False, True):
            runs = lt.Runs(table, score=score, metafeatures=("prior",), seed_shared=shared, **roles)
            fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
            assert ("(1 | seed:algorithm)" in fit.formula) == shared
            found[score, shared] = fit.emmeans("algorithm", vcov="model").pairs().to_frame()
    assert [round(found["value", shared]["p_value"][2], 3) for shared in (False, True)] == [0.032, 0.05]
    assert found["value", True]["p_value"][2] > 0.05
    rise = found["normalized_regret", True]["se"][0] / found["normalized_regret", False]["se"][0]
    assert rise == approx(1.128, abs=2e-3)


def test_cells_not_rows_are_fitted(priorband):
    assert len(lt.fit_lmm("value ~ algorithm * benchmark", priorband).cells.n) == 36


def test_residual_variances_per_benchmark_change_the_answer_as_the_docs_say(priorband):
    table = priorband[priorband["used_fidelity"] == 10]
    formula = "value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
    one = lt.fit_lmm(formula, table, reml=False)
    own = lt.fit_lmm(formula, table, reml=False, dispersion="benchmark")
    assert (one.params["algorithm[T.RS]"], one.bse["algorithm[T.RS]"]) == approx((0.0809, 0.0472), abs=1e-4)
    assert (own.params["algorithm[T.RS]"], own.bse["algorithm[T.RS]"]) == approx((0.0183, 0.0029), abs=1e-4)
    assert own.llf == approx(5396.857, abs=1e-2)
