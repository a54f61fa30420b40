"""ModelBuilder: formulas from roles, terms in words, refusals, comparisons."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal

import lmemtest as lt
from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.errors import ArgumentError, DesignError, FormulaError, NestingError, UnknownColumnError
from lmemtest.lmm.formula import bars


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(1)
    rows = [
        (tool, task, seed, step, prior, rng.normal() + task + 0.3 * (tool == "PB") - 0.1 * step)
        for tool in ("HB", "PB", "RS")
        for task in range(6)
        for prior in ("bad", "good")
        for seed in range(4)
        for step in (1.0, 2.0, 4.0)
    ]
    table = pd.DataFrame(rows, columns=["tool", "task", "seed", "step", "prior", "loss"])
    table["suite"] = np.where(table["task"] < 3, "one", "two")
    table["version"] = "v1"
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "budget": "step", "metafeatures": ("prior",)}
    return lt.Runs(table, score="loss", direction="minimize", **roles)


@pytest.fixture(scope="module")
def builder(runs):
    return ModelBuilder(runs)


def test_roles_become_columns_and_numbers_that_are_names_become_factors(runs, builder):
    model = builder.fixed("benchmark").interaction("algorithm", "budget").random("seed")
    assert model.formula() == "loss ~ tool + C(task) + step + tool:step + (1 | seed)"
    lazy = lt.Runs(pytest.importorskip("polars").from_pandas(runs.to_frame()).lazy(), **runs.roles())
    again = ModelBuilder(lazy).fixed("benchmark").interaction("algorithm", "budget").random("seed")
    assert again.formula() == model.formula()
    assert (builder.formula(), builder.spec.dispersion) == ("loss ~ tool", None)  # nothing is changed in place


@pytest.mark.parametrize(
    ("compose", "formula"),
    [
        (lambda b: b.fixed("budget", "prior"), "loss ~ tool + step + prior"),
        (lambda b: b.fixed("algorithm * prior"), "loss ~ tool + prior + tool:prior"),
        (lambda b: b.fixed("poly(budget, degree=2)"), "loss ~ tool + poly(step, degree=2)"),
        (lambda b: b.fixed("prior", "log(step)"), "loss ~ tool + prior + log(step)"),
        (lambda b: b.fixed("algorithm"), "loss ~ tool"),
        (lambda b: b.fixed("prior:algorithm").fixed("algorithm:prior"), "loss ~ tool + prior:tool"),
        (lambda b: b.interaction("algorithm", "C(budget)"), "loss ~ tool + C(step) + tool:C(step)"),
        (lambda b: b.random("benchmark", "benchmark:seed"), "loss ~ tool + (1 | task) + (1 | task:seed)"),
        (lambda b: b.random("benchmark/seed"), "loss ~ tool + (1 | task) + (1 | task:seed)"),
        (lambda b: b.random("(0 + prior | benchmark)"), "loss ~ tool + (0 + prior | task)"),
        (lambda b: b.random("(1 | benchmark) + (1 | seed)"), "loss ~ tool + (1 | task) + (1 | seed)"),
        (lambda b: b.random("(budget || benchmark)"), "loss ~ tool + (1 | task) + (0 + step | task)"),
        (lambda b: b.slope("budget", "benchmark"), "loss ~ tool + (1 + step | task)"),
        (lambda b: b.random("benchmark").slope("budget", "benchmark"), "loss ~ tool + (1 + step | task)"),
        (lambda b: b.slope("budget", "benchmark").slope("algorithm", "benchmark"),
         "loss ~ tool + (1 + step + tool | task)"),
        (lambda b: b.random("benchmark").slope("budget", "benchmark", correlated=False),
         "loss ~ tool + (1 | task) + (0 + step | task)"),
        (lambda b: b.random("benchmark").random("benchmark"), "loss ~ tool + (1 | task)"),
        (lambda b: b.slope("budget", "benchmark").random("benchmark"), "loss ~ tool + (1 + step | task)"),
        (lambda b: b.random("benchmark").random("(1 + budget | benchmark)"), "loss ~ tool + (1 + step | task)"),
        (lambda b: b.random("(1 + budget | benchmark)", "benchmark"), "loss ~ tool + (1 + step | task)"),
        (lambda b: b.random("algorithm:benchmark").random("benchmark:algorithm"), "loss ~ tool + (1 | tool:task)"),
        (lambda b: b.random("seed", "benchmark:algorithm").drop("(1 | algorithm:benchmark)"),
         "loss ~ tool + (1 | seed)"),
        (lambda b: b.slope("budget", "algorithm:benchmark").random("benchmark:algorithm"),
         "loss ~ tool + (1 + step | tool:task)"),
        (lambda b: b.slope("budget", "benchmark", correlated=False).random("benchmark"),
         "loss ~ tool + (0 + step | task) + (1 | task)"),
        (lambda b: b.slope("algorithm:budget", "benchmark").slope("budget:algorithm", "benchmark"),
         "loss ~ tool + (1 + tool:step | task)"),
        (lambda b: b.interaction("algorithm", "prior", "budget"),
         "loss ~ tool + prior + step + tool:prior + tool:step + prior:step + tool:prior:step"),
        (lambda b: b.fixed("budget").drop("step"), "loss ~ tool"),
        (lambda b: b.drop("algorithm"), "loss ~ 1"),
        (lambda b: b.random("benchmark").drop("benchmark"), "loss ~ tool"),
        (lambda b: b.random("benchmark", "seed").drop("(1 | benchmark)"), "loss ~ tool + (1 | seed)"),
    ],
)  # fmt: skip
def test_composition(builder, compose, formula):
    assert compose(builder).formula() == formula


def test_the_formula_fits(runs, builder):
    model = builder.interaction("algorithm", "budget").random("benchmark", "benchmark:algorithm").dispersion("prior")
    got, want = model.fit(), lt.fit_lmm(model.formula(), runs, dispersion="prior")
    assert got.llf == want.llf
    assert got.dispersion == "prior"
    assert model.dispersion(None).fit(reml=False).dispersion is None


def test_a_builder_begins_with_the_model_of_another(runs, builder):
    model = builder.interaction("algorithm", "budget").random("benchmark").dispersion("benchmark")
    assert ModelBuilder.of(runs, model.spec).spec == model.spec
    one = runs.filter(**{runs.benchmark: runs.levels(runs.benchmark)[0]})
    assert refusal(lambda: ModelBuilder.of(one, model.dispersion(None).spec), DesignError) == (
        "the random effect (1 | task) has one group only (0), so a variance between groups cannot be estimated. Leave "
        "it out, or add more levels of task."
    )


def test_each_term_given_as_text_is_read_once(builder, monkeypatch):
    read = []
    for reader in (bars.parse_sum, bars.parse_tree):
        monkeypatch.setattr(bars, reader.__name__, lambda text, reader=reader: read.append(text) or reader(text))
    bars.parse_right.cache_clear()
    bars._parse.cache_clear()
    model = builder.random("benchmark").interaction("algorithm", "budget").random("benchmark:algorithm")
    model = model.dispersion("benchmark")
    assert read == ["(1 | task)", "tool", "step", "(1 | task:tool)"]
    model.explain()
    model.recommended().explain()
    repr(model)
    assert len(read) == 4
    model.slope("budget", "benchmark").explain()
    assert len(read) == 4  # its effect and its groups are terms that were given before


def test_the_recommended_model_is_that_of_recommend_and_fits(runs, builder):
    assert builder.recommended().formula() == lt.recommend(runs, curves="model").formula
    assert "Left out of this model" not in builder.recommended().explain()
    bundled = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    model = ModelBuilder(bundled).recommended()
    assert model.formula() == lt.recommend(bundled).formula
    assert model.fit().converged


# ---------------------------------------------------------------------- words


def test_terms_are_explained(builder):
    model = (
        builder.interaction("algorithm", "budget")
        .interaction("algorithm", "prior")
        .random("benchmark", "benchmark:algorithm", "benchmark:seed")
        .dispersion("benchmark")
    )
    assert model.explain().splitlines() == [
        "loss ~ tool + step + tool:step + prior + tool:prior + (1 | task) + (1 | task:tool) + (1 | task:seed)",
        "  tool: the mean of each algorithm, which is what is compared",
        "  step: the score goes up or down with step in a straight line, equally steep for all algorithms",
        "  tool:step: each algorithm follows step in its own way, so which is better can change with step",
        "  prior: each level of prior has its own mean, the same amount higher or lower for all algorithms",
        "  tool:prior: the differences between algorithms may differ between levels of prior",
        "  (1 | task): each benchmark has its own level of difficulty; benchmarks are a sample of benchmarks like them",
        "  (1 | task:tool): an algorithm does better on some benchmarks than on others, all algorithms to the same "
        "degree; so the number of benchmarks limits the precision of a comparison",
        "  (1 | task:seed): runs with the same seed on one benchmark may deviate together, whatever the algorithm",
        "  residual: a separate variance for each level of task",
        "  The formula does not show the residual variances by task: .fit() has them, and so does "
        "fit_lmm(formula, runs, dispersion='task').",
        "  Left out of this model: (1 | task:prior:seed), which would say that runs with the same seed on one "
        "instance may deviate together, whatever the algorithm.",
        "  Left out of this model: (1 | task:prior:tool:seed), which would say that rows of one run are alike: one "
        "curve, not independent observations.",
    ]


def test_what_the_formula_does_not_show_is_said(builder):
    plain = builder.random("benchmark")
    model = plain.dispersion("benchmark")
    assert model.formula() == plain.formula()
    note = "The formula does not show the residual variances by task: .fit() has them, and so does fit_lmm(formula, ru"
    assert note in repr(model) == model.summary()
    assert "does not show" not in repr(plain)
    assert plain.to_frame()["kind"].tolist() == ["fixed", "random", "residual"]


@pytest.mark.parametrize(
    ("compose", "words"),
    [
        (lambda b: b.fixed("poly(budget, degree=2)"), "the score follows a curve in step (poly(step, degree=2))"),
        (lambda b: b.fixed("prior:step"), "the effect of prior may be another for each value of step"),
        (lambda b: b.random("seed"), "runs with the same seed on all benchmarks may deviate together"),
        (lambda b: b.random("budget"), "scores at the same budget are higher or lower together"),
        (lambda b: b.random("suite:seed"), "rows of the same suite x seed are alike"),
        (lambda b: b.random("benchmark:prior"), "each task x prior has its own level of difficulty"),
        (lambda b: b.random("benchmark:algorithm:seed"), "rows of one run are alike"),
        (lambda b: b.slope("budget", "benchmark"), "each benchmark has its own level and its own effect of step"),
        (lambda b: b.slope("budget", "benchmark", correlated=False),
         "each benchmark has its own effect of step, normally distributed, independent of its level"),
        (lambda b: b.random("(0 + prior | benchmark)"), "each benchmark has its own deviation at each level of prior"),
    ],
)  # fmt: skip
def test_words_of_a_term(builder, compose, words):
    assert words in compose(builder).explain()


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("compose", "error", "message"),
    [
        (lambda b: b.random("task:tool:seed:step:prior"), DesignError,
         "the random effect (1 | task:tool:seed:step:prior) cannot be distinguished from the residual: its 432 "
         "groups are single rows of the 432, as many as there are residuals. The residual takes its place; leave it "
         "out, or add repeated runs."),
        (lambda b: b.slope("algorithm", "benchmark:seed:budget:prior"), DesignError,
         "the random effect (1 + tool | task:seed:step:prior) cannot be distinguished from the residual: 144 groups "
         "with 3 effects each are 432 numbers from 432 rows. The residual takes its place; leave it out, or add "
         "repeated runs."),
        (lambda b: b.random("version"), DesignError,
         "the random effect (1 | version) has one group only (v1), so a variance between groups cannot be "
         "estimated. Leave it out, or add more levels of version."),
        (lambda b: b.slope("suite", "benchmark"), DesignError,
         "the slope of suite in (1 + suite | task) cannot be estimated: 'suite' is constant within every group of "
         "task. Choose groups within which it varies."),
        (lambda b: b.fixed("version"), DesignError,
         "'version' has the same value v1 in all rows, so it has no effect that could be seen. Leave it out."),
        (lambda b: b.fixed("benchmark").fixed("suite"), DesignError,
         "the fixed term 'suite' adds nothing: the terms before it already determine its levels. Drop one of them."),
        (lambda b: b.fixed("benchmark").random("benchmark"), DesignError,
         "the random effect (1 | task) cannot be estimated beside the fixed terms, which give each of its groups a "
         "mean of its own (Intercept, tool, C(task)). Keep one of them."),
        (lambda b: b.random("benchmark", "benchmark:version"), DesignError,
         "the random effects (1 | task) and (1 | task:version) have the same groups in these runs, so their "
         "variances are not identified. Keep one of them."),
        (lambda b: b.dispersion("version"), DesignError,
         "'version' has one level only, so it has one residual variance, as every model. Leave it."),
        (lambda b: b.random("benchmrk"), UnknownColumnError,
         "the model names 'benchmrk', which is not a column or role of the runs. Columns: tool, task, seed, step, "
         "prior, loss, suite, version. Did you mean 'benchmark'?"),
        (lambda b: b.fixed("(1 | benchmark)"), ArgumentError,
         "'(1 | benchmark)' is a random effect; add it with .random() or .slope()."),
        (lambda b: b.random("(1 | benchmark) + budget"), ArgumentError,
         "'(1 | benchmark) + budget' has fixed terms besides its random effects; add them with .fixed()."),
        (lambda b: b.fixed("0 + budget"), ArgumentError,
         "'0 + budget' removes the intercept, which every model of a builder has; leave the 0 out."),
        (lambda b: b.fixed("loss ~ budget"), FormulaError,
         "a fixed term is a part of the right side, without '~'; got 'loss ~ budget'."),
        (lambda b: b.fixed(), ArgumentError, "fixed() needs at least one term, for example fixed('budget')."),
        (lambda b: b.random(3), ArgumentError,
         "a random effect must be text like 'benchmark' or 'benchmark:seed', got 3."),
        (lambda b: b.slope("budget", "benchmark/seed"), ArgumentError,
         "group must be one group like 'benchmark' or 'benchmark:seed', got 'benchmark/seed'."),
        *[(compose, DesignError,
           f"the random effects ({one}) and ({two}) have the same groups in these runs and overlap in what varies "
           "between them, so their variances are not identified. Keep one of them, or write both as one term.")
          for compose, one, two in (
              (lambda b: b.random("benchmark").slope("prior", "benchmark", correlated=False),
               "0 + prior | task", "1 | task"),
              (lambda b: b.slope("prior", "benchmark", correlated=False).random("benchmark"),
               "0 + prior | task", "1 | task"),
              (lambda b: b.slope("budget", "benchmark").slope("budget", "benchmark", correlated=False),
               "0 + step | task", "1 + step | task"),
              (lambda b: b.slope("budget", "benchmark", correlated=False).slope("budget", "benchmark"),
               "0 + step | task", "1 + step | task"))],
        (lambda b: b.interaction("algorithm", "tool"), ArgumentError,
         "an interaction is of different terms, got 'algorithm' and 'tool', which are both about tool. Name terms "
         "that have nothing in common."),
        (lambda b: b.interaction("budget", "prior", "algorithm:budget"), ArgumentError,
         "an interaction is of different terms, got 'budget' and 'algorithm:budget', which are both about step. "
         "Name terms that have nothing in common."),
        (lambda b: b.interaction("algorithm", "prior", "budget + seed"), ArgumentError,
         "an interaction is of one term with another; got 'algorithm', 'prior' and 'budget + seed'."),
        (lambda b: b.interaction("algorithm", "budget + prior"), ArgumentError,
         "an interaction is of one term with another; got 'algorithm' and 'budget + prior'."),
        (lambda b: b.drop("budget"), ArgumentError, "the model has no term 'budget' to drop. Its terms: tool."),
        (lambda b: b.random("benchmark", "(0 + step | benchmark)").drop("benchmark"), ArgumentError,
         "the model has several random effects of 'benchmark': (1 | task), (0 + step | task). Name one of them."),
        (lambda b: b.fit(dispersion="prior"), ArgumentError,
         "dispersion is a part of the model here: builder.dispersion(column).fit()."),
        (lambda b: b.compare("loss ~ 1"), ArgumentError, "other must be a ModelBuilder of the same runs, got str."),
    ],
)  # fmt: skip
def test_refusals(builder, compose, error, message):
    assert refusal(lambda: compose(builder), error) == message


def test_a_role_that_was_not_named_is_refused(runs):
    plain = ModelBuilder(lt.Runs(runs.to_frame(), score="loss", direction="minimize", algorithm="tool"))
    assert refusal(lambda: plain.random("benchmark"), UnknownColumnError) == (
        "the runs have no benchmark: no column was named for it. Say which one it is: Runs(..., benchmark=...). "
        "Columns: tool, task, seed, step, prior, loss, suite, version."
    )
    assert plain.random("task").formula() == "loss ~ tool + (1 | task)"


def test_a_column_with_the_name_of_another_role_needs_backticks(runs):
    table = runs.to_frame().rename(columns={"suite": "benchmark"})
    builder = ModelBuilder(
        lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="seed")
    )
    assert refusal(lambda: builder.random("benchmark"), ArgumentError) == (
        "'benchmark' is a column and also the role of the column 'task'. Write `benchmark` in backticks "
        "for the column, or 'task' for the role."
    )
    assert builder.random("`benchmark`").formula() == "loss ~ tool + (1 | benchmark)"


def test_dispersion_needs_two_rows_per_level():
    table = pd.DataFrame({"a": ["p", "q"] * 3, "g": ["x", "x", "x", "y", "y", "z"], "y": [1.0, 2, 3, 4, 5, 7]})
    assert refusal(
        lambda: ModelBuilder(lt.Runs(table, score="y", direction="minimize", algorithm="a")).dispersion("g"),
        DesignError,
    ) == ("a residual variance per level of 'g' needs at least two rows of each; z has one. Take a coarser column.")


def test_awkward_names_are_quoted():
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"my tool": ["p", "q"] * 8, "a|b": np.repeat(list("wxyz"), 4), "1-acc": rng.normal(size=16)})
    runs = lt.Runs(table, score="1-acc", direction="minimize", algorithm="my tool", benchmark="a|b")
    model = ModelBuilder(runs).random("benchmark")
    assert model.formula() == "`1-acc` ~ `my tool` + (1 | `a|b`)"
    assert ModelBuilder(runs).interaction("algorithm", "benchmark").drop("`my tool`:`a|b`").formula() == (
        "`1-acc` ~ `my tool` + `a|b`"
    )
    assert model.fit().nobs == 16


# ---------------------------------------------------------------------- comparing


def test_compare_finds_the_order_of_nested_models(builder):
    small = builder.random("benchmark")
    large = small.fixed("budget")
    one, two = small.compare(large), large.compare(small)
    assert one.statistic == two.statistic > 0
    assert (one.null, one.alternative) == (two.null, two.alternative) == (small.formula(), large.formula())
    want = lt.glrt(small.fit(), large.fit())
    assert (one.p_value, one.df) == (want.p_value, want.df)
    drawn = small.compare(builder, "bootstrap", n_draws=19, rng=1)
    assert (drawn.reference, len(drawn.draws)) == ("bootstrap", 19)


def test_models_that_are_not_nested_are_not_compared(builder):
    with pytest.raises(NestingError, match=r"^The null model \(loss ~ tool \+ step\) is not nested in the alternative"):
        builder.fixed("budget").compare(builder.fixed("prior"))


def test_every_selection_begins_with_the_model_of_the_builder(builder):
    small = ModelBuilder(builder.runs.filter(step=list(builder.runs.levels("step"))[:2])).random("benchmark")
    options = {"candidates": ["(1 | benchmark:algorithm)", "prior"], "criterion": "bic"}
    path, models = small.select(**options), small.select(method="best", **options)
    assert path.start == models.start == small.spec
    assert path.formula == models.formula


def test_builders_have_the_methods_that_build_and_use_a_model_and_no_other():
    composing = {"fixed", "interaction", "random", "slope", "dispersion", "drop", "recommended", "of"}
    reading = {"formula", "explain", "title", "notes", "parts", "shown", "runs", "spec"}
    using = {"fit", "compare", "select"}
    assert {name for name in vars(ModelBuilder) if not name.startswith("_")} == composing | reading | using
