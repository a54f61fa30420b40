"""The audit: exact intervals, rejections that are those of `pairs`, and words that say what the numbers say."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from refusals import refusal
from scipy.stats import binom, binomtest
from study import make_runs

import lmemtest as lt
from lmemtest.bench.checks.audit import _rejects, _row, audit, tables_needed
from lmemtest.bench.permutation.permutation import find_relabelling, fit_for_comparison
from lmemtest.errors import ArgumentError, DataError


def runs_of(tasks=10, seeds=6, **roles):
    names = {"algorithm": "tool", "benchmark": "task"}
    return make_runs("ABC", range(tasks), seeds, sds={"benchmark:algorithm": 1.0}, rng=0, **{**names, **roles})


@pytest.fixture(scope="module")
def result():
    return audit(runs_of(), n_draws=60, rng=1)


@pytest.mark.parametrize("unit", ["benchmark", "run"])
def test_a_rejection_is_one_that_pairs_would_report(unit, monkeypatch):
    runs = runs_of()
    fit = fit_for_comparison(runs, lt.recommend(runs).formula)
    exchange = find_relabelling(runs, unit, fit.design.parsed.columns, score="loss")
    rejects = _rejects(runs, fit, exchange, 0.3, "recommended")
    rng = np.random.default_rng(1)
    verdicts = []
    monkeypatch.setattr(
        "lmemtest.bench.checks.audit.emmeans", None
    )  # the grid is that of the table, and its means are not asked for
    for _ in range(20):
        taken = exchange.draw(rng)
        refit = rejects.table.refit(taken)
        means = refit.emmeans("tool", vcov=refit.moderated("task"))
        p = means.pairs().to_frame()["p_value"]
        verdicts.append(bool((p < 0.3).any()))
        assert rejects(taken) == (verdicts[-1], True)
        assert rejects._moderated(refit).pairs().table["p_value"].to_numpy() == approx(p.to_numpy(), rel=1e-12)
    assert len(set(verdicts)) == 2
    monkeypatch.undo()
    naive = _rejects(runs, fit, exchange, 0.3, "naive")  # by its own standard errors, as it would be reported
    assert naive.cluster is None
    taken = exchange.draw(rng)
    p = naive.table.refit(taken).emmeans("tool", vcov="model").pairs().to_frame()["p_value"]
    assert naive(taken)[0] == bool((p < 0.3).any())


def test_the_naive_and_the_recommended_model_stand_side_by_side(result):
    frame = result.to_frame()
    assert list(frame.columns) == [
        "unit", "model", "rate", "ci_low", "ci_high", "n_draws", "rejected", "failed", "unconverged", "decision",
        "formula",
    ]  # fmt: skip
    assert frame["unit"].tolist() == ["benchmark", "benchmark", "run", "run"]
    assert frame["model"].tolist() == ["naive", "recommended"] * 2
    assert frame["formula"][0] == "loss ~ tool + (1 | task)"
    assert frame["formula"][1] == lt.recommend(runs_of()).formula


def test_rows_counted_as_independent_reject_where_benchmarks_are_the_sample(result):
    naive, recommended, by_run, _ = result.rates.itertuples()
    assert naive.ci_low > 0.3
    assert naive.decision == "too often"
    assert binomtest(recommended.rejected, 60, 0.05).pvalue > 0.001
    assert binomtest(by_run.rejected, 60, 0.05).pvalue > 0.001  # without differences the naive model is right


def test_sentences_are_for_readers_without_statistics(result):
    rate = result.rates.iloc[0]
    sentence = result.sentences()[0]
    assert sentence.startswith(
        "When the algorithms' names are swapped at random on each benchmark, so that all are alike, the naive model "
        "still reports a significant difference in "
    )
    assert f"{rate['rate'] / 0.05:.1f} times the nominal 5 %, so do not trust its p-values here." in sentence
    assert sentence in result.summary()
    assert "exchanged are the names of the algorithms, all their runs together, within each of 10" in result.summary()


def test_a_model_of_ones_own_takes_the_place_of_the_naive_one():
    runs = runs_of()
    fit = lt.fit_lmm("loss ~ tool + (1|task:tool)", runs)
    got = audit(runs, fit, n_draws=5, unit="benchmark", rng=1)
    assert got.rates["model"].tolist() == ["yours", "recommended"]
    assert got.rates["formula"][0] == fit.formula
    assert "your model" in got.sentences()[0]
    fit = lt.fit_lmm("loss ~ tool + (1 | task)", runs, dispersion="task")
    got = audit(runs, fit, n_draws=2, unit="benchmark", rng=1)
    assert got.rates["formula"][0] == "loss ~ tool + (1 | task), residual variance by task"


def test_a_placebo_is_one_algorithm_against_itself():
    got = audit(runs_of(), n_draws=40, rng=1, placebo="B")
    assert got.rates["unit"].tolist() == ["run", "run"]
    assert "whole runs on the same instance (task), in 10 such groups" in got.exchanged["run"]
    assert got.notes[0] == "Placebo: all runs are of 'B'; their names are made up."
    assert all(binomtest(n, 40, 0.05).pvalue > 0.001 for n in got.rates["rejected"])


def test_a_unit_without_its_column_is_left_out_with_a_note():
    got = audit(runs_of(seed=None), n_draws=3, rng=1)
    assert set(got.rates["unit"]) == {"benchmark"}
    assert got.notes == ("No exchange by run: the table has no seed column.",)


def rate_of(rejected, n, alpha=0.05):
    return _row("run", "naive", {"n_draws": n, "rejected": rejected, "failed": 0, "unconverged": 0}, "", alpha)


@pytest.mark.parametrize(
    ("rejected", "n", "verdict"),
    [
        (0, 5, "cannot tell"),  # 0 to 52 %
        (2, 40, "cannot tell"),  # 0.6 to 16.9 %
        (5, 100, "cannot tell"),  # 1.6 to 11.3 %
        (50, 1000, "nominal"),
        (0, 40, "nominal"),  # 0 to 8.8 %
        (0, 100, "too rarely"),
        (5, 20, "too often"),
    ],
)
def test_a_verdict_needs_an_interval_that_excludes_twice_the_level(rejected, n, verdict):
    assert rate_of(rejected, n)["decision"] == verdict


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.25])
def test_a_model_that_keeps_its_level_is_told_from_the_number_of_tables_that_is_named(alpha):
    n, step = tables_needed(alpha), round(1 / alpha)
    few, many = (n - 1) // step, -(-n // step)  # rejections at the nearest numbers of tables of which alpha is whole
    assert rate_of(few, step * few, alpha)["decision"] == "cannot tell"
    assert rate_of(many, step * many, alpha)["decision"] == "nominal"
    assert binom.cdf(few, step * few, 2 * alpha) > 0.025 >= binom.cdf(many, step * many, 2 * alpha)


def test_too_few_tables_are_said_to_be_too_few():
    got = audit(runs_of(), n_draws=3, unit="benchmark", rng=1)
    assert got.sentences()[1].endswith(
        "too few tables to tell whether that is the nominal 5 %; n_draws=142 would tell for a model that keeps its "
        "level."
    )


def test_few_benchmarks_allow_few_relabellings_which_is_said():
    got = audit(runs_of(tasks=3), n_draws=3, unit="benchmark", rng=1)
    assert got.notes == (
        "There are only 216 distinct relabellings by benchmark, so tables repeat: the rate is one over these 216, "
        "however many are drawn, and says little about tables like this one. More benchmarks would help.",
    )


def test_the_recommended_model_has_the_response_of_yours():
    runs = runs_of()
    table = runs.to_frame().assign(loss=lambda t: np.exp(t["loss"]))
    runs = lt.Runs(table, **runs.roles())
    got = audit(runs, "log(loss) ~ tool + (1 | task)", n_draws=2, unit="benchmark", rng=1)
    assert got.rates["formula"][1] == "log" + lt.recommend(runs).formula.replace("loss", "(loss)", 1)
    assert "The recommended model has the response of yours, log(loss)." in got.notes


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"seeds": 1},
         "placebo='A' splits the runs of one algorithm on each benchmark into two names, and there is one run only. "
         "Choose an algorithm with two or more runs (values of 'seed') on each benchmark, or audit without "
         "placebo=."),
        ({"seeds": 2, "tasks": 1},
         "placebo='A' leaves the 2 rows of one algorithm, split into two, which are too few for a model: the table "
         "has 2 rows and the fixed part 2 independent columns, so nothing is left to estimate the residual variance "
         "from. Use fewer fixed effects or more runs. Choose an algorithm with more runs, or audit without "
         "placebo=."),
    ],
)  # fmt: skip
def test_a_placebo_needs_several_runs(size, message):
    assert refusal(lambda: audit(runs_of(**size), placebo="A", n_draws=2, rng=1), DataError) == message


def test_failures_are_not_in_the_rate():
    rate = _row("run", "naive", {"n_draws": 50, "rejected": 4, "failed": 10, "unconverged": 0}, "", 0.05)
    assert rate["rate"] == 0.1
    assert (rate["ci_low"], rate["ci_high"]) == approx(tuple(binomtest(4, 40).proportion_ci(method="exact")), rel=1e-10)


@pytest.mark.parametrize(
    ("roles", "options", "message"),
    [
        ({}, {"n_draws": 0}, "n_draws must be a whole number of at least 1, got 0."),
        ({}, {"unit": "seed"}, "got 'seed'. Runs with the same seed are the blocks within which unit='run' exchanges"),
        ({}, {"unit": ("run", "seed")}, "use unit='run'."),
        ({}, {"unit": ()}, "unit must name at least one of family, benchmark, instance, run, got none."),
        ({}, {"placebo": "Z"}, "placebo='Z' is not an algorithm of the table. Algorithms: 'A', 'B', 'C'."),
        ({"seed": None}, {"placebo": "A"}, r"placebo= splits whole runs, and the table has no seed column."),
        ({"seed": None}, {"unit": "run"}, "the table has no column that distinguishes them"),
        ({"seed": None, "benchmark": None}, {}, "the table has neither a benchmark nor a seed column"),
        ({}, {"model": "loss ~ 1 + (1|tool)"}, "model must compare the algorithms: 'tool' is not a factor"),
    ],
)
def test_bad_input_is_named(roles, options, message):
    with pytest.raises(ArgumentError, match=message):
        audit(runs_of(**roles), **{"n_draws": 2, "rng": 1, **options})
