"""Every recipe on every thin design: a result that can be read, or an error that says what to do; nothing else."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study import table_of_scores

import lmemtest as lt
from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.compat import significance_analysis as sa
from lmemtest.core.result import Result
from lmemtest.errors import LmemtestError, LmemtestWarning
from lmemtest.lmm.model import LmmFit

polars = pytest.importorskip("polars")

ROLES = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed", "budget": "used_fidelity"}


def make_table(*, algorithms=3, benchmarks=4, seeds=3, budgets=3, levels=1, seed=0) -> pd.DataFrame:
    """Runs whose scores improve over the budget, with names in the order of their codes."""
    rng, shape = np.random.default_rng(seed), (algorithms, benchmarks, seeds, budgets, levels)
    a, _, _, t, m = np.ix_(*map(range, shape))
    base = rng.normal(size=(benchmarks, 1, 1, 1)) - 0.2 * t + 0.2 * m * (a == 0)
    effects = 0.3 * a + rng.normal(scale=0.3, size=(algorithms, benchmarks, 1, 1, 1))
    runs = rng.normal(scale=0.3, size=(algorithms, benchmarks, seeds, 1, levels))
    scores = base + effects + runs + rng.normal(scale=0.1, size=shape)
    names = {"algorithm": [f"A{i:02d}" for i in range(algorithms)], "benchmark": [f"b{i}" for i in range(benchmarks)]}
    names |= {"used_fidelity": np.arange(budgets) + 1, "prior": ["bad", "good"]}
    return table_of_scores(scores, "algorithm benchmark seed used_fidelity prior", "value", **names)


def make_runs(table: Any, direction: str = "minimize") -> lt.Runs:
    """Runs with the roles of the columns that are there."""
    columns = list(table.collect_schema()) if isinstance(table, polars.LazyFrame) else list(table.columns)
    roles = {role: name for role, name in ROLES.items() if name in columns}
    named = tuple(name for name in columns if name not in (*roles.values(), "value"))
    return lt.Runs(table, score="value", direction=direction, metafeatures=named, **roles)


# ---------------------------------------------------------------------- designs


def without(table, *columns):
    return table.drop(columns=list(columns))


def constant_metafeature(table):
    """Every benchmark has one level of the metafeature."""
    table = table[table["prior"] == "bad"]
    return table.assign(prior=table["benchmark"].map(lambda name: ("bad", "good")[int(name[1]) % 2]))


def metafeature_missing_on_some(table):
    return table[~(table["benchmark"].isin(["b0", "b1"]) & (table["prior"] == "good"))]


def failed_runs(table):
    keys = ["algorithm", "benchmark", "seed", "prior"]
    runs = table[keys].drop_duplicates()
    return table.merge(runs[np.random.default_rng(1).random(len(runs)) > 0.2])


def numeric_names(table):
    numbers = {name: table[name].str.strip("Ab").astype(int) for name in ("algorithm", "benchmark")}
    return table.assign(**numbers)


ODD = {
    "algorithm": {"A00": "a `tick` 'one'", "A01": 'b <b>bold</b> & "two"', "A02": "naïve Ω % _$ \\x [T.z]:"},
    "benchmark": {f"b{i}": f'<b>{i}</b> `é` "q" _' for i in range(4)},
}


def odd_names(table):
    return table.assign(**{name: table[name].map(names) for name, names in ODD.items()})


def names_with_numbers(table):
    """Names without leading zeros: in the order in which people count, not in the order of their letters."""
    names = {
        "algorithm": {f"A{i:02d}": f"A{9 + i}" for i in range(20)},
        "benchmark": {f"b{i}": f"b{9 + i}" for i in range(4)},
        "prior": {"bad": "p9", "good": "p10"},
    }
    return table.assign(**{name: table[name].map(levels) for name, levels in names.items()})


def scores(value, benchmark=None):
    def fill(table):
        rows = slice(None) if benchmark is None else table["benchmark"] == benchmark
        out = table.copy()
        out.loc[rows, "value"] = value
        return out

    return fill


def identity(table):
    return table


# name: sizes of the table, what is done to it, what is done to its runs
Design = tuple[dict[str, int], Callable[[pd.DataFrame], Any], Callable[[Any], lt.Runs]]
DESIGNS: dict[str, Design] = {
    "complete": ({}, identity, make_runs),
    "one seed": ({"seeds": 1}, identity, make_runs),
    "no seed column": ({}, lambda t: without(t, "seed"), make_runs),
    "no seed column, one row": ({"seeds": 1}, lambda t: without(t, "seed"), make_runs),
    "one benchmark": ({"benchmarks": 1}, identity, make_runs),
    "no benchmark column": ({"benchmarks": 1}, lambda t: without(t, "benchmark"), make_runs),
    "two benchmarks": ({"benchmarks": 2}, identity, make_runs),
    "two algorithms": ({"algorithms": 2}, identity, make_runs),
    "20 algorithms": ({"algorithms": 20, "benchmarks": 3, "seeds": 2}, identity, make_runs),
    "metafeature of benchmarks": ({"levels": 2}, constant_metafeature, make_runs),
    "metafeature missing on some": ({"levels": 2}, metafeature_missing_on_some, make_runs),
    "metafeature constant": ({"levels": 2}, lambda t: t[t["prior"] == "bad"], make_runs),
    "budgets differ": ({}, lambda t: t[~((t["algorithm"] == "A01") & (t["used_fidelity"] > 2))], make_runs),
    "budgets apart": ({}, lambda t: t.assign(used_fidelity=t["used_fidelity"] + 10 * (t["algorithm"] == "A01")),
     make_runs),
    "one budget": ({"budgets": 1}, identity, make_runs),
    "no budget column": ({"budgets": 1}, lambda t: without(t, "used_fidelity"), make_runs),
    "two budgets": ({"budgets": 2}, identity, make_runs),
    "failed runs missing": ({}, failed_runs, make_runs),
    "algorithm missing on one": ({}, lambda t: t[~((t["algorithm"] == "A02") & (t["benchmark"] == "b1"))], make_runs),
    "missing score": ({}, lambda t: t.assign(value=t["value"].where(t.index != 3)), make_runs),
    "ranks": ({}, identity, lambda t: make_runs(t).normalize("rank")),
    "constant on one": ({}, scores(0.5, "b1"), make_runs),
    "all equal": ({}, scores(0.5), make_runs),
    "copies": ({"algorithms": 2}, lambda t: t.assign(value=np.tile(t["value"][: len(t) // 2], 2)), make_runs),
    "maximize": ({}, identity, lambda t: make_runs(t, "maximize")),
    "numeric names": ({}, numeric_names, make_runs),
    "odd names": ({}, odd_names, make_runs),
    "names with numbers": ({}, names_with_numbers, make_runs),
    "categories": ({}, lambda t: t.assign(algorithm=pd.Categorical(t["algorithm"], ["A02", "A00", "A01", "none"])),
     make_runs),
    "polars": ({}, polars.from_pandas, make_runs),
    "lazy polars": ({}, lambda t: polars.from_pandas(t).lazy(), make_runs),
    "duplicated rows": ({}, lambda t: pd.concat([t, t.iloc[:10]], ignore_index=True), make_runs),
    "one row each": ({"seeds": 1, "budgets": 1}, lambda t: t[["algorithm", "benchmark", "value"]], make_runs),
    "two rows": ({"algorithms": 2, "benchmarks": 1, "seeds": 1, "budgets": 1}, lambda t: t[["algorithm", "value"]],
     make_runs),
}  # fmt: skip
# These hold what "complete" holds: names and kinds of table change no number.
SAME = ("numeric names", "odd names", "names with numbers", "polars", "lazy polars")


def runs_of(name: str, **sizes: int) -> lt.Runs:
    given, change, finish = DESIGNS[name]
    given = sizes | given if given.get("levels", 0) < 2 else {**sizes, **given}
    return finish(change(make_table(**given)))


# ---------------------------------------------------------------------- studies


def quiet(call):
    with contextlib.redirect_stdout(io.StringIO()):
        return call()


def native(r):
    """The table as the user has it; lazy ones are collected, since the compatibility module takes frames."""
    frame = r.frame.to_native()
    return frame.collect() if isinstance(frame, polars.LazyFrame) else frame


def compat(function, **options):
    """A function of the compatibility module on the native table."""
    return lambda r: quiet(lambda: function(native(r), loss_var=r.score, **options))


def compat_model(formula, use):
    def call(r):
        return quiet(lambda: use(sa.model(f"{r.score} ~ {formula}", native(r))))

    return call


def compat_glrt(r):
    models = [sa.model(f"{r.score} ~ {text}", native(r)) for text in ("algorithm", "algorithm + (1|benchmark)")]
    return quiet(lambda: sa.glrt(*models))


def pair(r):
    return {"algorithms": r.algorithms[:2], "metafeature": "prior"}


# name: call, sizes that the recipe needs, columns of its table that are finite whenever there is a result
def with_curves(result):
    """What has no curves is refused at the first look."""
    result.curves  # noqa: B018
    return result


RECIPES: dict[str, tuple[Callable[[lt.Runs], Any], dict[str, int], tuple[str, ...]]] = {
    "seed_effect": (lambda r: lt.seed_effect(r, rng=0), {}, ()),
    "benchmark_information": (lambda r: lt.benchmark_information(r, rank_benchmarks=True), {}, ()),
    "budget_effect linear": (lambda r: lt.budget_effect(r), {}, ("p_raw", "p_value")),
    "budget_effect spline": (lambda r: lt.budget_effect(r, form="spline"), {"budgets": 5, "seeds": 2}, ("p_value",)),
    "budget_effect categorical": (lambda r: lt.budget_effect(r, form="categorical"), {}, ("p_value",)),
    "check": (lambda r: lt.check(r, rng=0), {}, ()),
    "metafeature_effect outcomes": (
     lambda r: lt.metafeature_effect(r, **pair(r), method="outcomes", rng=0, n_draws=199),
     {"levels": 2}, ()),
    "metafeature_effect": (lambda r: lt.metafeature_effect(r, **pair(r), rng=0), {"levels": 2}, ("contrast",)),
    "variance_sources": (lt.variance_sources, {}, ("variance", "share")),
    "ranking_reliability": (lt.ranking_reliability, {}, ()),
    "benchmark_effects": (lambda r: lt.benchmark_effects(r, rng=0), {}, ("overall",)),
    "benchmark_clusters": (lambda r: lt.benchmark_clusters(r, rng=0, n_draws=20), {}, ()),
    "anytime": (lambda r: with_curves(lt.anytime(r, n_draws=1000, rng=0)), {},
     ("estimate", "se", "t_ratio", "p_value", "band_low")),
    "horizons": (lambda r: lt.anytime(r).at(), {}, ("estimate", "se")),
    "relative_ranks": (lambda r: lt.anytime(r).ranks(), {}, ()),
    "score_distributions": (lt.score_distributions, {}, ("mean", "median", "q1", "q3", "min", "max")),
    "aggregate_scores": (lambda r: lt.aggregate_scores(r, n_draws=50, rng=0), {}, ("estimate",)),
    "stochastic_order": (lambda r: lt.outperforming(r, measure="stochastic_order", rng=0), {}, ()),
    "outperforming": (lt.outperforming, {}, ("mean", "estimate")),
    "rank lmem": (lt.rank, {}, ()),
    "rank frequentist": (lambda r: lt.rank(r, "frequentist"), {}, ()),
    "rank bayesian": (lambda r: lt.rank(r, "bayesian", test="hierarchical"), {}, ()),
    "select_model forward": (lambda r: lt.select_model(r, progress=False), {}, ()),
    "select_model best": (lambda r: lt.select_model(r, method="best", progress=False, max_models=20), {}, ()),
    "recommended": (lambda r: ModelBuilder(r).recommended().fit(), {}, ()),
    "compat validator": (compat(sa.dataframe_validator), {}, ()),
    "compat seeds": (compat(sa.seed_dependency_check), {}, ()),
    "compat information": (compat(sa.benchmark_information_check, rank_benchmarks=True), {}, ()),
    "compat fidelity": (compat(sa.fidelity_check), {}, ()),
    "compat metafeature": (
     lambda r: quiet(lambda: sa.metafeature_analysis(native(r), r.algorithms[:2], "prior", loss_var=r.score)),
     {"levels": 2}, ()),
    "compat post_hoc": (compat_model("algorithm + (1|benchmark)", lambda m: m.post_hoc("algorithm")), {}, ()),
    "compat summary": (compat_model("algorithm + (1|benchmark)", lambda m: m.summary()), {}, ()),
    "compat cd_diagram": (compat_model("algorithm", lambda m: sa.cd_diagram(m.post_hoc("algorithm"))), {}, ()),
    "compat glrt": (compat_glrt, {}, ()),
    "compat autorank": (lambda r: sa.convert_to_autorank(native(r), value_variable=r.score), {}, ()),
}  # fmt: skip

# recipe: the beginning of each error that it gives, and the designs that get it. All other designs get a result.
# these leave out a missing score, of which the others say so
TAKE_WHAT_IS_THERE = ("check", "compat validator", "compat post_hoc", "compat summary", "compat cd_diagram",
                      "compat glrt", "compat autorank")  # fmt: skip
# what several recipes say of the same designs
SAMPLES = {
    "the runs of b0, b1, b2, b3 have no budget in common, so one score per": ("budgets apart",),
    "every algorithm must have run on every benchmark, and there is no run": ("algorithm missing on one",),
}  # fmt: skip
RANKS = {
    "the runs of b0, b1, b2, b3 have no budget in common, so one score per": ("budgets apart",),
    "a ranking compares algorithms on the same blocks, several benchmarks or": ("two rows",),
}  # fmt: skip
BUDGETS = {
    "There is one budget only (used_fidelity = 1), so its effect cannot be": ("one budget",),
    "runs has no budget column, so it has no effect to test. Name it:": ("no budget column", "one row each",
     "two rows"),
    "No score changes with used_fidelity: it is the same at every budget, s": ("all equal",),
}  # fmt: skip
SOURCES = {
    "runs has scores at 3 budgets but no seed column, so scores of one run": ("no seed column",
     "no seed column, one row"),
    "runs has no benchmark column, so nothing says what differs": ("no benchmark column", "two rows"),
    "not every run has a score at each of the 3 budgets, so means over the": ("budgets differ",),
    "not every run has a score at each of the 6 budgets, so means over the": ("budgets apart",),
}  # fmt: skip
PAIRS = {
    "There is one run (seed) per algorithm and instance, so a difference": ("one seed",),
    "runs has no seed column, so runs cannot be distinguished. Name it:": ("no seed column", "no seed column, one row",
     "one row each"),
    "runs has no benchmark column, so nothing is contrasted within one.": ("no benchmark column", "two rows"),
    "prior is constant within every benchmark (benchmark) on which both": ("metafeature of benchmarks",),
    "metafeature 'prior' has one level only, 'bad'; contrasts need two or": ("metafeature constant",),
    "No benchmark has a budget (used_fidelity) at which all runs of A00 and": ("budgets apart",),
}  # fmt: skip
SEEDS = {
    "there is one seed only (0), so its effect cannot be distinguished from that of": ("one seed",),
    "there is one benchmark and one run per algorithm and seed (the scores": ("one benchmark", "no benchmark column"),
    "the effect of the seed cannot be distinguished from chance: no algorithm": ("20 algorithms", "all equal"),
    "the runs of b0, b1, b2, b3 have no budget in common, so one score per": ("budgets apart",),
    "the model explains the score exactly: no residual variance is left, so": ("copies",),
}  # fmt: skip
INFORMATION = {
    "no benchmark can be tested: b0, b1, b2 and b3: fewer than two": ("one seed", "no seed column",
     "no seed column, one row", "one row each"),
    "the runs of b0, b1, b2, b3 have no budget in common, so one score per": ("budgets apart",),
    "no benchmark can be tested: b0, b1, b2 and b3: all runs have the same": ("all equal",),
}  # fmt: skip
MODELS = {
    "the random effect (1 | benchmark) has one level, so its variance cannot": ("one benchmark",),
    "formula uses 'benchmark' (position 24), not in data. Columns:": ("no benchmark column", "two rows"),
    "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
}  # fmt: skip
ERRORS: dict[str, dict[str, tuple[str, ...]]] = {
    "aggregate_scores": SAMPLES | {
        "every algorithm has one run on each benchmark, so there are no runs to": ("one seed", "no seed column",
         "no seed column, one row", "one row each", "two rows"),
    },
    "stochastic_order": SAMPLES | {
        "every algorithm has one run on each benchmark, which has no distribution": ("one seed", "no seed column",
         "no seed column, one row", "one row each", "two rows"),
    },
    "outperforming": {
        "runs has no seed column, so no run of one algorithm belongs to one of": ("no seed column",
         "no seed column, one row", "one row each", "two rows"),
        "the runs of b0, b1, b2, b3 have no budget in common, so one score per": ("budgets apart",),
    },
    "rank lmem": RANKS | {
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "the model explains the score exactly: no residual variance is left, so": ("copies",),
    },
    "rank frequentist": RANKS,
    "rank bayesian": RANKS,
    "seed_effect": SEEDS | {
        "runs has no seed column, so nothing can depend on it. Name it: Runs(...": ("no seed column",
         "no seed column, one row", "one row each", "two rows"),
    },
    "benchmark_information": INFORMATION | {
        "no benchmark can be tested: all runs: fewer than two algorithms ran": ("two rows",),
    },
    "budget_effect linear": BUDGETS | {
        "The budgets of the algorithms do not overlap (A00: 1 to 3, A01: 11 to": ("budgets apart",),
    },
    "budget_effect spline": BUDGETS | {
        "Some algorithm lacks budgets that form='spline' needs, so its curve is": ("budgets differ",),
        "The budgets of the algorithms do not overlap (A00: 1 to 5, A01: 11 to": ("budgets apart",),
    },
    "budget_effect categorical": BUDGETS | {
        "form='categorical' compares algorithms at every budget, but they share": ("budgets differ", "budgets apart"),
    },
    "metafeature_effect outcomes": PAIRS,
    "metafeature_effect": PAIRS | {
        "A model of benchmarks as a sample needs three or more, there are 1.": ("one benchmark",),
        "A model of benchmarks as a sample needs three or more, there are 2.": ("two benchmarks",),
        "No two levels of prior were run on 3 common benchmarks, so nothing can": ("metafeature missing on some",),
        "the difference between A00 and A01 does not vary between runs, so there": ("all equal", "copies"),
    },
    "variance_sources": SOURCES | {
        "runs has one benchmark only, 'b0', and the variation is taken apart by": ("one benchmark",),
        "all scores of 'value' are equal, so there is no variation to take apart.": ("all equal",),
        "nothing is left to chance: runs of one algorithm on one benchmark have": ("copies",),
    },
    "ranking_reliability": SOURCES | {
        "runs has one benchmark only, 'b0', and reliability is judged by what": ("one benchmark",),
        "all scores of 'value' are equal, so there is no variation to take apart.": ("all equal",),
        "nothing is left to chance: runs of one algorithm on one benchmark have": ("copies",),
    },
    "benchmark_effects": SOURCES | {
        "the model 'value ~ algorithm + (1 | benchmark)' lets no difference": ("one seed", "one row each"),
        "runs has one benchmark only, 'b0', and benchmarks are compared by what": ("one benchmark",),
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "the model explains the score exactly: no residual variance is left, so": ("copies",),
    },
    "benchmark_clusters": SOURCES | {
        "runs has one benchmark only, 'b0', and benchmarks are grouped by what": ("one benchmark",),
        "runs has 2 benchmarks, and groups of so few say nothing. Give at least": ("two benchmarks",),
        "runs has 3 benchmarks, and groups of so few say nothing. Give at least": ("20 algorithms",),
        "algorithm 'A00' was not run on 'b0' at prior 'good', so its relative": ("metafeature missing on some",),
        "algorithm 'A02' was not run on 'b1', so its relative performance there": ("algorithm missing on one",),
        "all scores of 'value' are equal, so there is no variation to take apart.": ("all equal",),
        "nothing is left to chance: runs of one algorithm on one benchmark have": ("copies",),
    },
    "anytime": {
        "A01 has scores at fewer than 3 budgets, which is no curve. Leave it": ("budgets differ",),
        "The budgets of the algorithms do not overlap (A00: 1 to 3, A01: 11 to": ("budgets apart",),
        "A curve needs scores at 3 budgets or more, 'used_fidelity' has 1.": ("one budget",),
        "runs has no budget column, so there are no curves. Name it: Runs(...": ("no budget column", "one row each",
         "two rows"),
        "A curve needs scores at 3 budgets or more, 'used_fidelity' has 2.": ("two budgets",),
        "the differences between algorithms are the same for all benchmarks, so": ("all equal", "copies"),
    },
    "horizons": {
        "No budget is common to all runs, and the scores are not best-so-far": ("budgets apart",),
        "There is one budget only (used_fidelity = 1), so there are no horizons": ("one budget",),
        "runs has no budget column, so there are no horizons. Name it: Runs(...": ("no budget column", "one row each",
         "two rows"),
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "the model explains the score exactly: no residual variance is left, so": ("copies", "duplicated rows"),
    },
    "relative_ranks": {
        "the runs have no value of 'used_fidelity' in common, so there is no": ("budgets apart",),
        "'A02' has no run on b1 / bad (1 such gaps in all), so ranks there would": ("algorithm missing on one",),
        "one benchmark leaves the seeds as the sample, which needs at least 2": ("two rows",),
    },
    "score_distributions": {
        "the groups have no value of 'used_fidelity' in common, so their scores": ("budgets apart",),
    },
    "select_model forward": {
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "there is nothing to choose from: the roles of the table (algorithm,": ("two rows",),
    },
    "select_model best": {
        "no model of the family could be fitted. not identifiable: the fixed": ("all equal",),
        "there is nothing to choose from: the design identifies none of the": ("one row each",),
        "there is nothing to choose from: the roles of the table (algorithm,": ("two rows",),
    },
    "recommended": {
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "the table has 2 rows and the fixed part 2 independent columns, so": ("two rows",),
    },
    "compat seeds": SEEDS | {
        "data names the column 'seed', which is not in the data. Columns:": ("no seed column",
         "no seed column, one row", "one row each", "two rows"),
    },
    "compat information": INFORMATION | {
        "data names the column 'benchmark', which is not in the data. Columns:": ("no benchmark column", "two rows"),
    },
    "compat fidelity": {
        "data names the column 'benchmark', which is not in the data. Columns:": ("no benchmark column", "two rows"),
        "The budgets of the algorithms do not overlap (A00: 1 to 3, A01: 11 to": ("budgets apart",),
        "There is one budget only (used_fidelity = 1), so its effect cannot be": ("one budget",),
        "data names the column 'used_fidelity', which is not in the data.": ("no budget column", "one row each"),
        "No score changes with used_fidelity: it is the same at every budget, s": ("all equal",),
    },
    "compat metafeature": {
        "There is one run (seed) per algorithm and instance, so a difference": ("one seed",),
        "runs has no seed column, so runs cannot be distinguished. Name it:": ("no seed column",
         "no seed column, one row"),
        "dataset names the column 'benchmark', which is not in the data.": ("no benchmark column", "two rows"),
        "prior is constant within every benchmark (benchmark) on which both": ("metafeature of benchmarks",),
        "metafeature 'prior' has one level only, 'bad'; contrasts need two or": ("metafeature constant",),
        "No benchmark has a budget (used_fidelity) at which all runs of A01 and": ("budgets apart",),
        "dataset names the column 'used_fidelity', which is not in the data.": ("no budget column", "one row each"),
    },
    "compat post_hoc": MODELS,
    "compat summary": MODELS,
    "compat cd_diagram": {
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "the table has 2 rows and the fixed part 2 independent columns, so": ("two rows",),
    },
    "compat glrt": {
        "the random effect (1 | benchmark) has one level, so its variance cannot": ("one benchmark",),
        "formula uses 'benchmark' (position 24), not in data. Columns:": ("no benchmark column",),
        "the fixed part explains the score exactly (its residuals are zero), so": ("all equal",),
        "the table has 2 rows and the fixed part 2 independent columns, so": ("two rows",),
    },
}  # fmt: skip


def expected_error(design: str, recipe: str) -> str | None:
    if design == "missing score":
        return None if recipe in TAKE_WHAT_IS_THERE else "1 of "
    return next((start for start, designs in ERRORS.get(recipe, {}).items() if design in designs), None)


# ---------------------------------------------------------------------- tests


def level(design: str, recipe: str) -> int:
    """Every refusal of a recipe once, every recipe on the complete design and every design with a fit: every day."""
    refused = {designs[0] for designs in ERRORS.get(recipe, {}).values()}
    return 1 if design in refused | {"complete"} or recipe == "recommended" else 2


COMBINATIONS = [pytest.param(d, r, marks=pytest.mark.level(level(d, r))) for r in RECIPES for d in DESIGNS]


def check_text(text: str) -> None:
    """Nothing that was not computed is shown as if it were."""
    assert text.strip()
    assert not re.search(r"\bnan\b|p ?= ?–|– to –", text), text


def check_decisions(frame: pd.DataFrame) -> None:
    """No decision without a p-value."""
    p = next((frame[name] for name in ("p_adjusted", "p_value") if name in frame), None)
    for name in ("significant", "affected", "informative"):
        if name in frame and p is not None:
            assert not frame.loc[p.isna(), name].fillna(False).any()


def check_result(result: Any, columns: tuple[str, ...]) -> None:
    if isinstance(result, LmmFit):
        assert np.isfinite(result.llf)
        assert result.summary()
    if not isinstance(result, Result):
        return
    frame = result.to_frame()
    check_decisions(frame)
    for name in columns:
        assert np.isfinite(frame[name].to_numpy(dtype=float)).all(), name
    assert str(result.summary()).strip()
    sentences = getattr(result, "sentences", None) or (result.sentence if hasattr(result, "sentence") else ())
    sentences = sentences() if callable(sentences) else sentences
    for sentence in [sentences] if isinstance(sentences, str) else sentences:
        check_text(sentence)
    html, latex = result._repr_html_(), result.to_table().to_latex()
    assert "<b>" not in html
    assert latex


@functools.cache
def complete(recipe: str) -> pd.DataFrame:
    call, sizes, _ = RECIPES[recipe]
    return numbers_of(call(runs_of("complete", **sizes)))


def numbers_of(result: Any) -> pd.DataFrame:
    return result.to_frame().select_dtypes(float)


@pytest.mark.parametrize(("design", "recipe"), COMBINATIONS)
def test_a_thin_design_gives_a_result_or_says_what_to_do(design, recipe):
    call, sizes, columns = RECIPES[recipe]
    runs = runs_of(design, **sizes)
    start = expected_error(design, recipe)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if start is None:
            result = call(runs)
            check_result(result, columns)
            if design in SAME and not recipe.startswith("compat"):
                plain, other = complete(recipe), numbers_of(result)
                assert plain.shape == other.shape
                np.testing.assert_allclose(other, plain, rtol=1e-3, atol=1e-6)
        else:
            with pytest.raises(LmemtestError, match=re.escape(start)) as error:
                call(runs)
            assert str(error.value).startswith(start)
            assert len(str(error.value)) < 600
    strange = [warning for warning in caught if not issubclass(warning.category, LmemtestWarning)]
    assert not strange, strange[0]
