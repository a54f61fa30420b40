"""Curves over a budget are reduced to one score per run before the model: the answer is that of averaging by hand."""

from __future__ import annotations

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from levels import first
from refusals import refuses
from study import as_runs

import lmemtest as lt
from lmemtest.bench.data.per_run import curve_of, reduced
from lmemtest.errors import ArgumentError, DataError, DesignError, UnknownColumnError

KEYS = ["task", "tool", "seed"]


def curves(tasks: int = 3, seeds: int = 3, steps: int = 20, tools: str = "ABC", rng: int = 0) -> pd.DataFrame:
    """Learning curves: a level and a speed of each tool on each task, luck of each run, noise that is a random walk."""
    draw = np.random.default_rng(rng)
    at = np.arange(steps) / steps
    rows = []
    for task in range(tasks):
        shared = 0.02 * draw.normal(size=seeds)
        for i, tool in enumerate(tools):
            level, speed = 0.7 + 0.02 * i + 0.05 * draw.normal(), 3.0 + draw.random()
            for seed in range(seeds):
                walk = 0.005 * draw.normal(size=steps).cumsum()
                acc = level * (1 - np.exp(-speed * at)) + shared[seed] + 0.01 * draw.normal() + walk
                rows.append(
                    pd.DataFrame(
                        {"task": f"t{task}", "tool": tool, "seed": seed, "step": 10 * np.arange(steps), "acc": acc}
                    )
                )
    return pd.concat(rows, ignore_index=True)


of = partial(as_runs, direction="maximize")


def by_hand(frame: pd.DataFrame, how: str = "mean", **roles) -> lt.Runs:
    return of(frame.groupby(KEYS, as_index=False)["acc"].agg(how), **roles)


def pairs(model, **options) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lt.errors.ConvergenceWarning)
        fit = lt.fit_lmm(model.formula, model.runs)
    return fit.emmeans("tool").pairs(**options).to_frame().select_dtypes("number").to_numpy()


# ------------------------------------------------------------------ the same as by hand


@pytest.mark.daily(4)
@pytest.mark.parametrize(
    ("tasks", "seeds", "steps"),
    first([(1, 3, 20), (2, 1, 5), (6, 5, 5), (1, 10, 200), (2, 3, 20), (3, 3, 50), (3, 1, 200), (12, 2, 20),
           (20, 10, 5)], 3),
)  # fmt: skip
@pytest.mark.parametrize("how", ["mean", "last", "best"])
def test_reducing_curves_by_hand_gives_the_same_pairs(tasks, seeds, steps, how):
    frame = curves(tasks, seeds, steps)
    hand = {"mean": "mean", "last": "last", "best": "max"}[how]
    mine, theirs = lt.recommend(of(frame), curves=how), lt.recommend(by_hand(frame, hand))
    assert mine.formula.replace(f"acc_{how}", "acc") == theirs.formula
    np.testing.assert_allclose(pairs(mine), pairs(theirs), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("tasks", "seeds"), first([(3, 3), (1, 3), (8, 2)]))
def test_a_report_on_curves_is_the_report_on_their_means(tasks, seeds):
    frame = curves(tasks, seeds)
    mine, theirs = lt.analyze(of(frame)), lt.analyze(by_hand(frame))
    for part in ("pairs", "means"):
        found, wanted = (getattr(a, part).to_frame().select_dtypes("number") for a in (mine, theirs))
        np.testing.assert_allclose(found.to_numpy(), wanted.to_numpy(), rtol=1e-8, atol=1e-10)
    assert mine.decisions.decision.equals(theirs.decisions.decision)
    assert (mine.check.scale_ratio, mine.on_ranks is None) == (
        pytest.approx(theirs.check.scale_ratio, nan_ok=True),
        theirs.on_ranks is None,
    )
    said = "Each run counts once, with its mean over 20 values of step. This compares whole curves, not final scores. "
    mine_as_theirs = mine.headline().replace(said, "").replace("acc over step", "acc").replace("acc_mean", "acc")
    assert mine_as_theirs.replace("rank of acc", "acc_rank") == theirs.headline()


@pytest.mark.parametrize("method", ["lmem", "frequentist"])
def test_a_ranking_of_curves_is_that_of_their_means(method):
    frame = curves(6)
    mine, theirs = lt.rank(of(frame), method), lt.rank(by_hand(frame), method)
    wanted = theirs.to_frame("pairs").select_dtypes("number")
    np.testing.assert_allclose(mine.to_frame("pairs").select_dtypes("number"), wanted, rtol=1e-8, atol=1e-10)
    assert mine.notes[-1] == "Each run counts once, with its mean over 20 values of step."
    assert lt.rank(of(frame), method, curves="last").score == "acc_last"


def test_two_methods_with_three_seeds_are_told_apart_as_by_a_t_test_of_curve_means():
    """The shape of the curve was the residual: p = 0.576, where the t-test of the six curve means has p < 0.001."""
    from scipy.stats import ttest_ind

    steps, rng = np.arange(0, 1000, 50), np.random.default_rng(0)
    rows = [
        (tool, seed, t, level * (1 - np.exp(-t / 200)) + rng.normal(0, 0.005))
        for tool, level in [("base", 0.8), ("ours", 0.83)]
        for seed in range(3)
        for t in steps
    ]
    frame = pd.DataFrame(rows, columns=["tool", "seed", "step", "acc"])
    runs = of(frame, benchmark=None, seed_shared=False)
    model = lt.recommend(runs)
    assert model.formula == "acc_mean ~ tool + (1 | seed)"
    means = frame.groupby(["tool", "seed"])["acc"].mean()
    found = lt.fit_lmm("acc_mean ~ tool", model.runs).emmeans("tool").pairs().to_frame()
    assert found["p_value"].item() == pytest.approx(ttest_ind(means["base"], means["ours"]).pvalue, rel=1e-9)
    assert lt.analyze(runs).headline().startswith("ours is better than base: its mean acc over step is significantly")
    whole = lt.ModelBuilder(runs).recommended()
    assert whole.formula() == "acc ~ tool + C(step) + tool:C(step) + (1 | seed) + (1 | tool:seed)"
    with_budget = whole.fit().emmeans("tool").pairs().to_frame()
    assert with_budget["se"].item() == pytest.approx(found["se"].item(), rel=0.5)


# ------------------------------------------------------------------ what a curve counts


def test_the_four_ways_to_reduce_a_curve():
    frame = curves(2, 2, 7)
    runs = of(frame)
    groups = frame.groupby(KEYS, sort=True)
    wanted = {
        "mean": groups["acc"].mean(),
        "last": groups["acc"].last(),
        "best": groups["acc"].max(),
        "area": groups[["step", "acc"]].apply(lambda g: np.trapezoid(g["acc"], g["step"]) / 60.0),
    }
    for how, values in wanted.items():
        got = runs.per_run(how)
        table = got.to_frame().set_index(KEYS)[f"acc_{how}"].sort_index()
        np.testing.assert_allclose(table, values, rtol=1e-12)
        assert (got.budget, got.score, got.direction, got.curve.how) == (None, f"acc_{how}", "maximize", how)
    low = of(frame, direction="minimize").per_run("best").to_frame().set_index(KEYS)["acc_best"].sort_index()
    np.testing.assert_allclose(low, groups["acc"].min())


def test_an_area_does_not_depend_on_where_a_straight_line_is_looked_at():
    rng = np.random.default_rng(3)
    rows = []
    for tool, slope in (("A", 1.0), ("B", 2.0)):
        for seed in range(3):
            at = np.sort(np.r_[0.0, rng.uniform(0, 12, 9), rng.uniform(12, 15)])
            rows += [("t", tool, seed, t, slope * t * (-1) ** seed) for t in at]
    runs = of(pd.DataFrame(rows, columns=["task", "tool", "seed", "step", "acc"]))
    end = runs.to_frame().groupby(KEYS)["step"].max().min()
    got = reduced(runs)
    assert got.curve.how == "area"
    table = got.to_frame().set_index(["tool", "seed"])["acc_area"]
    for tool, slope in (("A", 1.0), ("B", 2.0)):
        for seed in range(3):
            assert table[tool, seed] == pytest.approx(slope * end / 2 * (-1) ** seed)
    assert "the area under its curve (straight lines between its scores) divided by the length" in got.notes[0]


def test_the_area_of_a_best_so_far_holds_each_score_until_the_next():
    at = [0.0, 5.5, 9.0, 9.5, 12.0, 0.0, 2.0, 3.0, 4.0, 10.0]
    table = {"tool": ["A"] * 5 + ["B"] * 5, "step": at, "acc": [0.0, 0.0, 1.0, 2.0, 3.0, 0.5, 0.5, 0.5, 0.5, 0.5]}
    got = lt.Runs(table, score="acc", direction="maximize", algorithm="tool", budget="step").per_run("area")
    np.testing.assert_allclose(got.to_frame()["acc_area"], [(0.5 * 1.0 + 0.5 * 2.0) / 10.0, 0.5])
    assert got.curve.by_steps


def test_a_run_that_ends_early_is_compared_up_to_there_and_said():
    frame = curves(2, 3, 20)
    early = (frame["task"] == "t0") & (frame["tool"] == "B") & (frame["seed"] == 1) & (frame["step"] > 60)
    runs = of(frame[~early])
    here = frame[(frame["step"] <= 60) | (frame["task"] == "t1")]
    np.testing.assert_allclose(pairs(lt.recommend(runs)), pairs(lt.recommend(by_hand(here))), rtol=1e-8, atol=1e-10)
    last = runs.per_run("last").to_frame().set_index(KEYS)["acc_last"].sort_index()
    np.testing.assert_allclose(last, here.groupby(KEYS)["acc"].last())
    np.testing.assert_allclose(runs.per_run("best").to_frame()["acc_best"].sum(), here.groupby(KEYS)["acc"].max().sum())
    text = lt.analyze(runs).headline()
    assert (
        "Each run counts once, with its mean over 7 to 20 values of step. Others, which some runs of the instance do "
        "not have, were left out. This compares whole curves, not final scores. Runs that stop early: 1 of 18 runs "
        "ends early, at step 60 of 190, and what the other runs of the same instance did after that does not count."
    ) in text


@pytest.mark.parametrize(
    ("name", "make", "how"),
    [
        ("epoch", lambda f: f, "mean"),
        ("step", lambda f: f.assign(acc=f.groupby(KEYS)["acc"].cummax()), "mean"),
        ("trial", lambda f: f.assign(step=f["step"] // 10, acc=np.random.default_rng(1).random(len(f))), "best"),
        ("seconds", lambda f: f.assign(step=f["step"] + np.random.default_rng(1).random(len(f))), "area"),
        ("step", lambda f: f[f["step"] == 50], None),
        ("step", lambda f: f.assign(step=f["step"] + 1000 * (f["tool"] == "B")), None),
    ],
)
def test_the_default_follows_from_what_the_column_looks_like(name, make, how):
    runs = of(make(curves()).rename(columns={"step": name}), budget=name)
    assert curve_of(runs) == how
    assert (reduced(runs).curve is None) == (how is None)
    assert reduced(runs, "model") is runs


# ------------------------------------------------------------------ what is kept, and what is refused


@pytest.mark.parametrize("backend", ["polars", "duckdb"])
def test_a_lazy_table_is_reduced_where_it_lives(backend):
    frame = curves(2, 2, 6)
    if backend == "polars":
        lazy = pl.from_pandas(frame).lazy()
    else:
        import duckdb

        lazy = duckdb.from_df(frame)
    for how in ("mean", "last", "best", "area"):
        pd.testing.assert_frame_equal(
            of(lazy).per_run(how).to_frame(), of(frame).per_run(how).to_frame(), check_dtype=False
        )


def test_roles_scales_and_failures_survive():
    frame = curves(6, 2, 5)
    frame["suite"] = frame["task"].map(lambda t: "s" + str(int(t[1:]) // 2))
    frame = pd.concat([frame.assign(prior=p, acc=frame["acc"] + 0.01 * (p == "good")) for p in ("bad", "good")])
    runs = of(frame, family="suite", metafeatures=["prior"], seed_shared=False)
    got = runs.per_run("mean")
    assert {**runs.roles(), "score": "acc_mean", "budget": None} == got.roles()
    for changed in (got.filter(prior="bad"), got.with_metafeatures("prior"), got.normalize("rank")):
        assert changed.curve == got.curve
    scaled = runs.normalize("minmax").per_run("mean")  # the raw score goes along
    assert scaled.scale.score == "acc_mean"
    np.testing.assert_allclose(scaled.to_frame()["acc_mean"], got.to_frame()["acc_mean"])
    assert len(lt.robustness(runs.normalize("minmax")).to_frame()) == 3
    lost = frame.assign(acc=frame["acc"].where(frame.index != 7))
    done = of(lost, family="suite", metafeatures=["prior"], failed="missing").score_failures(0.0).per_run("mean")
    assert done.failures.n_failed == 2
    assert "2 failed" in done.notes[-1]


def test_a_score_that_is_missing_within_a_curve_is_told():
    frame = curves(2, 3, 5)
    frame.loc[[3, 4, 8], "acc"] = np.nan
    runs = of(frame)
    with pytest.raises(DataError) as error:
        lt.recommend(runs)
    assert str(error.value).startswith(
        "2 of 18 runs have a score that is missing or infinite (first: task t0, seed 0, tool A, step 30), so the mean "
        "of such a curve would be over other budgets than that of the others. If the runs failed there, say what they "
        "count"
    )
    assert "take the best score of each run, which passes over them: curves='best'" in str(error.value)
    found = runs.per_run("best").to_frame().set_index(KEYS)["acc_best"].sort_index()
    np.testing.assert_allclose(found, frame.groupby(KEYS)["acc"].max())
    kept = runs.drop_missing().per_run("mean")
    assert kept.curve.n == (3, 5)


def test_what_cannot_be_reduced_is_refused():
    frame = curves(2, 3, 5)
    runs = of(frame)
    refuses(DataError, "per_run needs the column of the budget", by_hand(frame).per_run, "mean")
    refuses(ArgumentError, "curve must be 'mean' or 'last' or 'best' or 'area', got 'first'", runs.per_run, "first")
    with pytest.raises(ArgumentError, match="curves says what the scores of a run over its budget count, so it needs"):
        lt.analyze(by_hand(frame), curves="last")
    refuses(ArgumentError, "were reduced already \\(mean\\)", lt.analyze, runs.per_run("mean"), curves="last")
    with pytest.raises(ArgumentError, match="and formula is for the rows as they are"):
        lt.analyze(runs, curves="last", formula="acc ~ tool")
    with pytest.raises(ArgumentError, match="curves='model' keeps curves in the mixed model"):
        lt.rank(runs, "frequentist", curves="model")
    with pytest.raises(ArgumentError, match="dispersion='step' is no column of one score per run"):
        lt.analyze(runs, curves="mean", dispersion="step")
    words = of(frame.assign(step=pd.Categorical(frame["step"].map(lambda s: "abcde"[s // 10]), ordered=True)))
    refuses(DataError, "an area needs a budget in numbers, but 'step' holds 'a'", words.per_run, "area")
    apart = of(frame.assign(step=frame["step"] + 1000 * (frame["tool"] == "B")))
    refuses(DataError, "the runs of t0, t1 have no budget in common", apart.per_run, "mean")
    with pytest.raises(
        DesignError, match=r"name the column that distinguishes them\..* tuning curves: lmemtest\.tuning\.curves"
    ):
        lt.recommend(
            lt.Runs(frame[["tool", "step", "acc"]], score="acc", direction="maximize", algorithm="tool", budget="step")
        )


def test_a_model_of_one_score_per_run_is_not_fitted_to_the_rows_of_the_curves():
    runs = of(curves(6))
    formula = lt.recommend(runs).formula
    with pytest.raises(
        UnknownColumnError, match=re.escape("Fit it to recommend(runs).runs, which is runs.per_run('mean')")
    ):
        lt.fit_lmm(formula, runs)
    taken = of(curves(6).assign(acc_mean=1.0), ignore=["acc_mean"])  # nor to a column that happens to be called so
    assert lt.recommend(taken).formula.startswith("acc_mean_ ~ ")


# ------------------------------------------------------------------ what is said


def test_a_report_says_what_was_done_and_how_to_do_it_again():
    frame = curves(4)
    analysis = lt.analyze(of(frame), curves="last")
    text = analysis.to_text()
    assert "the highest mean last acc" in analysis.headline()
    assert "Each run counts once, with its last score, at step 190." in analysis.headline()
    assert re.search(r"budget +step +20: 0, 10, 20", text)  # the table as it was given
    assert "x 3 seeds x 20 budgets. Each run counts once, with its last score, at step 190. We" in " ".join(
        text.split()
    )
    assert "This compares final results" in " ".join(text.split())
    again = eval(analysis.call, {"lmemtest": lt, "table": frame})
    assert again.headline() == analysis.headline()
    assert '"curves": "last"' in analysis.to_json()


def test_findings_that_one_score_per_run_settles_are_not_found():
    frame = curves(3).assign(step=lambda f: f["step"] // 10, acc=lambda f: np.random.default_rng(1).random(len(f)))
    runs = of(frame.rename(columns={"step": "trial"}), budget="trial")
    assert "single_trials" in {finding.kind for finding in runs.check(rules_only=True).findings}
    analysis = lt.analyze(runs)
    assert "single_trials" not in {finding.kind for finding in analysis.check.findings}
    assert "Each run counts once, with its best score up to trial 19." in analysis.headline()


def test_smooth_learning_curves_are_no_broken_best_so_far():
    found = lt.check(of(curves(3, 3)), rules_only=True)
    assert {finding.kind for finding in found.findings} == {"not_best_so_far"}


def test_one_budget_is_no_curve():
    model = lt.recommend(of(curves(6, 3, 6)).filter(step=50))
    assert model.runs.curve is None
    assert not any("step" in text for text in model.left_out)


def test_questions_about_budgets_keep_the_curves():
    runs = of(curves(6, 3, 6))
    found = lt.anytime(runs)
    assert len(found.at().horizons) > 1
    assert found.budget == "step"
    assert lt.analyze(runs).table.budget == "step"
