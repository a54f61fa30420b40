"""Forward selection: the right terms, the right numbers, the same answer however it is asked."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from levels import first
from pytest import approx
from refusals import refusal
from scipy.stats import chi2
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.bench.modelling.menu import Family, candidates_of
from lmemtest.bench.modelling.search import log_tail
from lmemtest.bench.modelling.select_model import select_model
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.lmm.formula import parse_bar, parse_term
from lmemtest.lmm.model.spec import ModelSpec

GROUPS = {
    "pair": "benchmark:algorithm",
    "instance": "benchmark:prior",
    "slope_pair": "benchmark:algorithm:prior",
    "seed": "benchmark:seed",
    "run": "benchmark:algorithm:prior:seed",
    "budget": "budget",
}


def table(rng=1, *, k=3, b=10, n=4, budgets=None, prior=0.0, interaction=0.0, algorithm=0.0, **sds):
    """A balanced table with a metafeature of two levels and chosen standard deviations (benchmarks 1, residual 1)."""
    sizes = [f"A{i}" for i in range(k)], [f"t{i}" for i in range(b)], n, budgets
    sds = {"benchmark": 1.0} | {GROUPS[name]: sd for name, sd in sds.items()}
    columns = {"algorithm": "tool", "benchmark": "task", "budget": "step", "score": "y"}
    frame = make_table(*sizes, priors=2, sds=sds, shift=algorithm * np.arange(k), rng=rng, **columns)
    frame["y"] += (frame["prior"] == "p1") * (prior + interaction * (frame["tool"] == "A1"))
    return frame


def design(runs):
    return ModelBuilder(runs).random("benchmark", "benchmark:algorithm")


# ---------------------------------------------------------------------- the right terms


@pytest.mark.daily(2)
@pytest.mark.parametrize("criterion", first(["glrt", "bic"]))
@pytest.mark.parametrize(
    ("truth", "formula"),
    [
        ({}, "y ~ tool + (1 | task)"),
        ({"pair": 1.0}, "y ~ tool + (1 | task) + (1 | task:tool)"),
        ({"seed": 1.0}, "y ~ tool + (1 | task) + (1 | task:seed)"),
        ({"pair": 1.0, "instance": 1.0}, "y ~ tool + (1 | task) + (1 | task:tool) + (1 | task:prior)"),
        ({"prior": 1.0, "interaction": 2.0}, "y ~ tool + prior + tool:prior + (1 | task)"),
    ],
)  # fmt: skip
def test_the_truth_is_selected(criterion, truth, formula):
    found = select_model(as_runs(table(4, **truth)), criterion=criterion)
    assert found.formula == formula
    assert ModelBuilder.of(found.runs, found.spec).formula() == found.formula
    assert found.fit().formula == found.formula


def test_a_slope_takes_the_place_of_the_instances():
    """Benchmarks differ at one level of the metafeature only: unequal variances, which instances cannot say."""
    frame = table(5, b=30, n=6)
    rng = np.random.default_rng(0)
    frame["y"] += 3 * rng.normal(size=30)[frame["task"].str[1:].astype(int)] * (frame["prior"] == "p1")
    found = select_model(
        as_runs(frame), candidates=["(1 | benchmark:prior)", "(1 + prior | benchmark)"], criterion="bic"
    )
    assert found.chosen == ("(1 + prior | task)",)  # the instances and the fixed effect are in it or come along
    assert found.formula == "y ~ tool + prior + (1 + prior | task)"


def test_runs_and_budgets_are_told_apart():
    """Runs whose rows are alike are no advantages on benchmarks, and no luck of seeds."""
    found = select_model(as_runs(table(2, b=6, n=3, budgets=5, run=1.0, budget=2.0), budget="step"))
    assert found.chosen == ("C(step)", "(1 | task:prior:tool:seed)")
    frame = table(2, b=12, n=3, budgets=4, run=1.0, budget=2.0, pair=1.5)
    found = select_model(as_runs(frame, budget="step"), criterion="bic")
    assert set(found.chosen) == {"C(step)", "(1 | task:tool)", "(1 | task:prior:tool:seed)"}


# ---------------------------------------------------------------------- the right numbers


@pytest.mark.parametrize("name", ["bench_prior", "bench_prior_unbalanced"])
def test_likelihood_and_criteria_are_those_of_lme4(name, reference, reference_input):
    frame = reference_input(name)
    runs = as_runs(frame)
    want = {m["formula"].replace("|", " | "): m for m in reference("selection")["models"] if m["data"] == name}
    path = select_model(runs, criterion="bic", rng=1).to_frame()
    checked = 0
    for row in path.itertuples():
        if row.step == 0:
            key = "y ~ algorithm + (1 | benchmark)"
        elif row.step == 1:
            key = f"y ~ algorithm + (1 | benchmark) + {row.term}"
        else:
            continue
        if key in want:
            # both searches stop at about 1e-8 of the deviance
            assert [row.llf, row.aic, row.bic] == approx([want[key][v] for v in ("llf", "aic", "bic")], rel=1e-7)
            assert row.n_params == want[key]["n_params"]
            checked += 1
    assert checked == 4


def test_p_values_are_those_of_glrt():
    runs = as_runs(table(1, pair=0.5, instance=0.4))
    found = select_model(runs, rng=1).to_frame()
    first = found[(found["step"] == 1) & found["p_raw"].notna()]
    null = lt.fit_lmm("y ~ tool + (1 | task)", runs, reml=False)
    for row in first.itertuples():
        test = lt.glrt(null, lt.fit_lmm(f"y ~ tool + (1 | task) + {row.term}", runs, reml=False))
        assert (row.statistic, row.p_raw) == approx((test.statistic, test.p_value), abs=1e-6)
        assert (row.df, row.reference) == (test.df, test.reference)
    holm = np.maximum.accumulate(np.sort(first["p_raw"]) * np.arange(len(first), 0, -1))
    assert np.sort(first["p_value"]) == approx(np.minimum(holm, 1.0))


def test_a_single_variance_has_its_exact_distribution():
    runs = as_runs(table(1, b=5, pair=0.3)).filter(prior="p0")
    start = ModelBuilder(runs)
    found = start.select(candidates=["(1 | benchmark)"]).to_frame()
    row = found[found["term"] == "(1 | task)"].iloc[0]
    test = lt.glrt(start.fit(reml=False), start.random("benchmark").fit(reml=False))
    assert (row["reference"], row["p_raw"]) == ("exact", approx(test.p_value, rel=1e-6))


def test_instances_within_a_free_covariance_have_a_chi_squared_test():
    runs = as_runs(table(5, b=20, n=6, instance=1.0, prior=1.0))
    start = ModelBuilder(runs).random("benchmark", "benchmark:prior").fixed("prior")
    row = start.select(candidates=["prior"]).to_frame().set_index("term").loc["(1 + prior | task)"]
    small = lt.fit_lmm("y ~ tool + prior + (1 | task) + (1 | task:prior)", runs, reml=False)
    large = lt.fit_lmm("y ~ tool + prior + (1 + prior | task)", runs, reml=False)
    statistic = 2 * (large.llf - small.llf)
    assert (row["statistic"], row["df"], row["reference"]) == (approx(statistic, abs=1e-6), 1, "chi2")
    assert row["p_raw"] == approx(chi2.sf(statistic, 1), rel=1e-5)


def test_tails_beyond_a_double_keep_their_order():
    for df, x in itertools.product((1, 2, 7, 40), (0.5, 30.0, 600.0)):
        assert log_tail(x, [(1.0, df)]) == approx(chi2.logsf(x, df), rel=1e-9)
        assert log_tail(x, [(0.5, df), (0.5, df + 1)]) == approx(
            math.log(0.5 * chi2.sf(x, df) + 0.5 * chi2.sf(x, df + 1)), rel=1e-9
        )
    # where chdtrc is zero the continued fraction takes over; both agree where both are known
    assert log_tail(1400.0, [(1.0, 5)]) == approx(chi2.logsf(1400.0, 5), rel=1e-12)
    far = [log_tail(x, [(1.0, 3)]) for x in (1500.0, 3000.0, 1e5, 1e7)]
    assert all(np.isfinite(far))
    # chi2(2) has the tail exp(-x / 2)
    assert log_tail(1e6, [(1.0, 2)]) == approx(-5e5, rel=1e-12)
    assert log_tail(0.0, [(0.5, 0), (0.5, 1)]) == 0.0


def test_each_step_is_the_best_of_its_candidates_and_the_start_of_the_next():
    found = select_model(as_runs(table(1, pair=1.0, instance=1.0, prior=2.0, interaction=1.0)), criterion="bic")
    path = found.to_frame()
    assert tuple(found.steps["term"]) == ("start", *found.chosen)
    assert (np.diff(found.steps["bic"]) < 0).all()
    assert (np.diff(found.steps["llf"]) > 0).all()
    for step in range(1, len(found.chosen) + 1):
        now = path[path["step"] == step]
        assert now.loc[now["chosen"], "bic"].item() == now["bic"].min()
        before = found.steps.loc[found.steps["step"] == step - 1, "llf"].item()
        tested = now[now["statistic"].notna()]
        assert tested["statistic"].to_numpy() == approx(2 * (tested["llf"].to_numpy() - before), abs=1e-5)
    last = path[path["step"] == path["step"].max()]
    assert not last["chosen"].any()
    assert not (last["bic"] < found.steps["bic"].iloc[-1] - 1e-6).any()


def test_bic_can_count_benchmarks():
    runs = as_runs(table(1))
    rows, benchmarks = (select_model(runs, criterion="bic", bic_n=n).to_frame().iloc[0] for n in ("rows", "benchmarks"))
    assert rows["bic"] - benchmarks["bic"] == approx(rows["n_params"] * math.log(runs.n_rows / 10))
    without = as_runs(table(1), benchmark=None)
    assert refusal(lambda: select_model(without, criterion="bic", bic_n="benchmarks")) == (
        "bic_n='benchmarks' needs at least two benchmarks, and there are none. Use bic_n='rows'."
    )


# ---------------------------------------------------------------------- the same answer


def test_the_order_of_candidates_does_not_matter():
    runs = as_runs(table(1, pair=0.7, instance=0.5).sample(frac=0.9, random_state=np.random.default_rng(1)))
    names = ["prior", "(1 | benchmark:seed)", "(1 | benchmark:algorithm)", "seed"]
    one, other = (select_model(runs, candidates=c, rng=3) for c in (names, names[::-1]))
    assert other.formula == one.formula
    tables = (found.to_frame().sort_values(["step", "term"], ignore_index=True) for found in (other, one))
    pd.testing.assert_frame_equal(*tables)


def test_equally_good_terms_are_ranked_by_size_and_text():
    frame = table(1, prior=3.0)
    frame["copy"] = frame["prior"]
    runs = as_runs(frame)
    for names in (["C(prior)", "C(copy)"], ["C(copy)", "C(prior)"]):
        found = select_model(runs, candidates=names)
        assert found.chosen == ("C(copy)",)
        assert found.to_frame()["decision"].iloc[-1] == "adds nothing to the terms that are in"


def test_most_stops_the_path():
    found = select_model(as_runs(table(1, pair=1.0, instance=1.0)), max_steps=1)
    assert len(found.chosen) == 1
    assert "the most terms are in" in set(found.to_frame()["decision"])


def test_a_builder_is_the_start_as_it_is():
    runs = as_runs(table(1, pair=1.0))
    start = design(runs).fixed("prior")
    found = start.select(candidates=["prior"])
    assert found.start.formula == "y ~ tool + prior + (1 | task) + (1 | task:tool)"
    assert "prior" not in set(found.to_frame()["term"])


def test_the_recommended_model_is_recognised():
    """Its ``(0 + prior | task)`` holds intercepts, instances and slopes, none of which is offered again."""
    frame = table(1, pair=1.0, instance=1.0)
    found = ModelBuilder(as_runs(frame)).recommended().select(criterion="bic")
    tried = set(found.to_frame()["term"])
    assert tried <= {"start", "(1 | seed)", "(1 | task:seed)"}
    assert found.formula.startswith("y ~ tool + prior + tool:prior + (0 + prior | task) + (0 + prior | task:tool)")


# ---------------------------------------------------------------------- tables of all kinds


def test_a_metafeature_of_the_benchmark_has_no_slope_by_benchmark():
    frame = table(1).drop(columns="prior").drop_duplicates(["tool", "task", "seed"])
    frame["size"] = np.where(frame["task"] < "t5", "small", "large")
    found = select_model(as_runs(frame, metafeatures=["size"]), criterion="aic")
    verdict = found.to_frame().groupby("term")["decision"].last()
    assert verdict["(1 | task:size)"].startswith("not identifiable: the random effects (1 | task) and (1 | task:size)")
    forced = design(as_runs(frame, metafeatures=["size"])).fixed("size").select(candidates=["(1 + size | task)"])
    why = forced.to_frame().set_index("term").loc["(1 + size | task)", "decision"]
    assert why == (
        "not identifiable: the slope of size in (1 + size | task) cannot be estimated: 'size' is constant within every "
        "group of task. Choose groups within which it varies."
    )


def test_ranks_start_without_a_variance_of_benchmarks():
    """Ranks have no levels of benchmarks: the start (1 | task) had variance zero, so every model was singular."""
    raw = as_runs(table(prior=1.0, pair=1.0, interaction=2.0))
    ranks = raw.normalize("rank", by=("task", "prior"))
    path = select_model(ranks)
    fixed = ("tool", "task", "prior", "prior:task")
    assert set(path.start.terms) == {parse_term(term) for term in fixed}
    assert path.start.bars == ()
    family = Family(path.start, ranks, candidates_of(ranks, None)[0])
    held = [c for part, c in family.by_part.items() if {"task"} <= set(part.columns) <= {"task", "prior"}]
    assert {"(1 | task)", "(1 | task:prior)", "(1 + prior | task)"} <= {c.text for c in held}
    assert not set(held) & set(family.offered)
    assert family.by_part[parse_bar("(1 | tool:task)")] in family.offered
    assert not path.fit().is_singular
    assert set(path.fit().varcorr["variance"] > 1e-6) == {True}
    models = select_model(ranks, method="best").to_frame()
    assert not models["singular"].all()
    assert not models.loc[models["best"], "singular"].any()
    assert select_model(raw, max_steps=1).start.bars == (parse_bar("(1 | task)"),)


def test_one_benchmark_two_algorithms_one_seed():
    frame = table(1, k=2, prior=2.0)
    one = as_runs(frame[frame["task"] == "t0"])
    assert select_model(one).start.formula == "y ~ tool"
    assert "prior" in select_model(one).chosen
    assert select_model(as_runs(frame.drop(columns="seed"), seed=None)).chosen
    single = select_model(as_runs(frame[frame["seed"] == 0]))
    assert "prior" in single.chosen
    assert set(single.to_frame()["term"]) >= {"(1 | seed)"}


def test_numeric_names_and_numeric_metafeatures():
    frame = table(1, prior=1.0)
    frame["tool"] = frame["tool"].str[1:].astype(int)
    frame["size"] = (frame["prior"] == "p1") * 2.0
    found = select_model(as_runs(frame, metafeatures=["size"]))
    assert found.formula == "y ~ C(tool) + size + (1 | task)"
    assert not any("task:size" in term for term in found.to_frame()["term"])


def test_candidates_by_name_by_term_and_with_margins():
    runs = as_runs(table(1))
    texts = lambda names: [c.text for c in candidates_of(runs, names)[0]]  # noqa: E731
    assert texts(["seed"]) == ["(1 | seed)", "(1 | task:seed)"]
    assert texts("benchmark") == ["(1 | task)", "(1 | task:tool)"]
    assert texts(["algorithm:prior"]) == ["prior", "tool:prior"]
    assert texts(["dispersion(algorithm)"]) == texts([" dispersion( `tool` ) "]) == ["residual variance by tool"]
    one, two = (candidates_of(runs, [t])[0] for t in ("(1 | benchmark:algorithm)", "(1 | algorithm:benchmark)"))
    assert [c.part for c in one] == [c.part for c in two]
    noisy = runs.to_frame().assign(y=lambda t: t["y"] * np.where(t["tool"] == "A0", 3.0, 1.0))
    found = select_model(as_runs(noisy), candidates=["dispersion(algorithm)"])
    assert found.chosen == ("residual variance by tool",)
    assert found.spec.dispersion == found.fit().dispersion == "tool"
    found = select_model(runs, candidates=["algorithm:prior"])
    assert set(found.to_frame()["term"]) == {"start", "tool:prior"}
    assert found.to_frame()["n_params"].tolist()[1] == found.to_frame()["n_params"].tolist()[0] + 3


def test_an_interaction_brings_its_main_effects():
    """In ranks a metafeature has no mean effect at all, which must not hide that it decides who is better."""
    frame = table(1)
    frame["y"] += 2.0 * (frame["prior"] == "p1") * frame["tool"].map({"A0": 1.0, "A1": -1.0, "A2": 0.0})
    ranks = as_runs(frame).normalize("rank", by=("task", "prior"))
    found = design(ranks).select(candidates=["prior"])
    assert found.chosen == ("tool:prior",)
    assert found.formula == "y_rank ~ tool + prior + tool:prior + (1 | task) + (1 | task:tool)"
    row = found.steps.iloc[1]
    assert row["df"] == 3
    assert row["decision"].endswith(", with prior")


def test_waiting_terms_say_what_they_need():
    found = select_model(as_runs(table(1)))
    verdict = found.to_frame().groupby("term")["decision"].last()
    assert verdict["(1 + prior | task)"] == "needs prior first"
    assert verdict["(1 | task:prior:tool)"] == "needs (1 | task:prior), (1 | task:tool) first"
    stranded = select_model(as_runs(table(1)), candidates=["prior"]).to_frame().groupby("term")["decision"].last()
    assert stranded["(1 | task:prior:tool)"] == "needs (1 | task:tool), which is neither in the start nor a candidate"


def test_models_form_a_lattice_with_more_likelihood_above():
    runs = as_runs(table(3, b=8, n=3, budgets=3, pair=0.5, run=0.5, instance=0.5), budget="step")
    offered, _ = candidates_of(runs, None)
    family = Family(ModelBuilder(runs).random("benchmark").spec, runs, offered)
    rng = np.random.default_rng(0)
    for _ in range(12):
        model = frozenset()
        for _ in range(4):
            free = [c for c in family.offered if c not in model]
            model |= family.down(free[rng.integers(len(free))])
        term = family.removable(model)[0]
        large, small = (family.spec(m).fit(runs, reml=False) for m in (model, model - {term}))
        assert large.llf >= small.llf - 1e-6, term.text
        assert large.n_params >= small.n_params


# ---------------------------------------------------------------------- held out


def test_half_of_the_benchmarks_are_held_out():
    runs = as_runs(table(1, b=11, pair=1.0, algorithm=1.0))
    found = select_model(runs, validate="half", rng=5)
    held = found.holdout
    assert (len(held.chosen_on), len(held.tested_on)) == (5, 6)
    assert set(held.chosen_on) | set(held.tested_on) == set(runs.levels("task"))
    there = runs.filter(task=list(held.tested_on))
    fit = lt.fit_lmm(held.formula, there)
    want = fit.emmeans("tool").pairs().to_frame()
    pd.testing.assert_frame_equal(held.to_frame(), want)
    here = select_model(runs.filter(task=list(held.chosen_on)), rng=5)
    assert here.chosen == found.chosen
    assert select_model(runs, validate="half", rng=5).holdout.tested_on == held.tested_on
    assert found.sentences()[1:] == held.sentences()
    assert held.sentences()[0].startswith("The terms were chosen on 5 benchmarks; on the other 6, ")


def test_advantages_of_benchmarks_are_in_the_test_even_if_not_chosen():
    found = select_model(as_runs(table(1, b=8)), validate="half", rng=1)
    assert "(1 | task:tool)" not in found.formula
    assert "(1 | task:tool)" in found.holdout.formula
    assert found.holdout.notes[0] == (
        "(1 | task:tool) was not chosen and is in the test all the same: benchmarks are the sample, and without it "
        "rows would be."
    )


def test_too_few_benchmarks_are_refused():
    assert refusal(lambda: select_model(as_runs(table(1, b=7)), validate="half")) == (
        "validate='half' needs at least 8 benchmarks, four to choose the terms on and four to test them, and this "
        "table has 7 benchmarks. Use validate=None and take the model from the design (lmemtest.recommend), or "
        "add more benchmarks."
    )
    words = refusal(lambda: select_model(as_runs(table(1), benchmark=None), validate="half"))
    assert "and this table names no benchmarks." in words
    start = ModelBuilder(as_runs(table(1))).drop("algorithm").random("benchmark")
    words = refusal(lambda: start.select(validate="half"))
    assert words.startswith("validate='half' tests the differences between algorithms, and the")


# ---------------------------------------------------------------------- words and errors


def test_every_result_warns_of_itself():
    found = select_model(as_runs(table(1, pair=1.0)))
    assert found.notes[-1].startswith("The data chose these terms, so p-values and intervals of the chosen model")
    assert "too optimistic" in found.summary()
    assert "too optimistic" in select_model(as_runs(table(1, b=8)), validate="half", rng=1).notes[-1]
    assert found.sentences()[0] == (
        "By likelihood-ratio tests at 0.05 1 term was added: (1 | task:tool). The model: y ~ tool + (1 | task) + "
        "(1 | task:tool)."
    )
    nothing = select_model(as_runs(table(1)), criterion="bic")
    assert nothing.sentences()[0] == "By BIC (n = rows) no candidate improves y ~ tool + (1 | task)."


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"criterion": "p"}, ArgumentError, r"^criterion must be 'glrt' or 'aic' or 'bic', got 'p'\.$"),
        ({"adjust": "fdr"}, ArgumentError, r"^adjust must be 'holm' or 'none', got 'fdr'\.$"),
        ({"max_steps": 0}, ArgumentError, r"^max_steps must be a whole number of at least 1, got 0\.$"),
        ({"validate": "cv"}, ArgumentError, r"^validate must be 'half', got 'cv'\.$"),
        ({"candidates": ["priors"]}, UnknownColumnError,
         r"the model names 'priors', which is not a column or role of the runs\..* Did you mean 'prior'\?"),
        ({"candidates": []}, ArgumentError,
         r"^candidates must name columns, roles or terms, for example \['prior', '\(1 \| benchmark:seed\)'\], got "
         r"\[\]\. Leave it out for all terms that the roles of the table suggest\.$"),
        ({"candidates": ["(1 | benchmark)"]}, ArgumentError,
         r"^candidates must name at least one term that the start y ~ tool \+ \(1 \| task\) lacks and can take, got"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(options, error, message):
    with pytest.raises(error, match=message):
        select_model(as_runs(table(1)), **options)


def test_nothing_to_choose_from():
    assert refusal(lambda: select_model(as_runs(table(1)[["tool", "y"]]))) == (
        "there is nothing to choose from: the roles of the table (algorithm, benchmark, seed, budget, "
        "metafeatures) suggest no term that y ~ tool lacks. Name columns or terms in candidates, or give "
        "the table its metafeatures: Runs(..., metafeatures=[...]). Columns: tool, y."
    )


@pytest.mark.parametrize(("start", "got"), [("y ~ tool", "str"), (ModelSpec.parse("z ~ tool"), "z ~ tool")])
def test_a_start_is_a_model_of_the_score(start, got):
    assert refusal(lambda: select_model(as_runs(table(1)), start=start)) == (
        f"start must be a ModelSpec of the score 'y', such as recommend(runs).spec, got {got}. From a "
        "ModelBuilder: builder.select()."
    )
