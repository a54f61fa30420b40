"""Following the advice of the checks must not make the answer worse: right winners, and findings where there are none.

The tables are complete, so that the comparison of the recommended model is the analysis of variance of the means per
benchmark and algorithm, which takes microseconds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from harness import answers_of, rate_of
from scipy import stats
from study import make_scores, runs_of_scores

TOOLS, TASKS, SEEDS = 4, 15, 4
AXES = "algorithm benchmark seed"
FIRST = (np.arange(TOOLS) == 0)[:, None, None]  # the algorithm that may be ahead
COUNTS = {"algorithm": TOOLS, "benchmark": TASKS, "seed": SEEDS}


def answer(runs):
    """The algorithm with the best mean, and the p-value of the F-test against algorithm by benchmark."""
    means = runs.to_frame().groupby(["benchmark", "algorithm"])[runs.score].mean().unstack().to_numpy()
    n, k = means.shape
    residual = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    f = n * means.mean(axis=0).var(ddof=1) / ((residual**2).sum() / ((n - 1) * (k - 1)))
    best = means.mean(axis=0).argmin() if runs.direction == "minimize" else means.mean(axis=0).argmax()
    return int(best), float(stats.f.sf(f, k - 1, (n - 1) * (k - 1)))


def games(rng, lead):
    """Returns in units of each game, over five powers of ten."""
    y = make_scores(rng, COUNTS, {"benchmark": 1.0, "algorithm:benchmark": 0.4}, noise=0.5) + lead * FIRST
    return runs_of_scores(y * 10.0 ** rng.uniform(0, 5, TASKS)[:, None], AXES, direction="maximize")


def times(rng, lead):
    """Runtimes over six powers of e; an algorithm is faster by a factor."""
    log = 5.0 + make_scores(rng, COUNTS, {"benchmark": 2.0, "algorithm:benchmark": 0.3}, noise=0.6) - lead * FIRST
    return runs_of_scores(np.exp(log), AXES)


def test_what_is_followed_here_is_what_is_advised():
    for make, methods in ((games, ("minmax", "rank")), (times, ("minmax", "log", "rank"))):
        for seed in range(3):
            findings = make(np.random.default_rng(seed), 0.4).check(rules_only=True).findings
            advice = next(f.advice for f in findings if f.kind == "score_scale")
            assert [m for m in ("minmax", "log", "rank") if f"runs.normalize({m!r})" in advice] == list(methods)


def rates(make, lead, methods, n):
    """Of n tables each: share in which the first wins where it is ahead, and of findings where nothing differs."""

    def scales(runs):
        return {"as it is": runs, **{method: runs.normalize(method) for method in methods}}

    def right(rng):
        return {name: answer(runs)[0] == 0 for name, runs in scales(make(rng, lead)).items()}

    def false(rng):
        return {name: answer(runs)[1] < 0.05 for name, runs in scales(make(rng, 0.0)).items()}

    return pd.DataFrame({"right": rate_of(right, n, lambda k: k), "false": rate_of(false, n, lambda k: 10**6 + k)})


def upper(n):
    """The largest share of findings that 5 % allow in n tables, with 4 standard errors."""
    return 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


def test_normalisations_that_are_advised_find_the_winner_more_often_and_keep_the_level():
    found = rates(games, 0.4, ("regret", "minmax", "rank"), 150)
    assert found.loc[["minmax", "rank"], "right"].min() > found.loc["as it is", "right"] + 0.15
    assert found.loc["regret", "right"] == found.loc["as it is", "right"]  # which is why it is not advised
    assert found.loc[["minmax", "rank"], "false"].max() <= upper(150)


def test_the_logarithm_of_times_finds_the_winner_more_often_and_keeps_the_level():
    found = rates(times, 0.3, ("log", "minmax", "rank"), 150)
    assert found.loc[["log", "minmax", "rank"], "right"].min() > found.loc["as it is", "right"] + 0.15
    assert found.loc[["log", "minmax", "rank"], "false"].max() <= upper(150)


def limited(rng, lead):
    """Solvers of equal median; the first is steady, others now and then take very long, which the limit hides."""
    heavy = 0.4 + 1.6 * (lead > 0) * ~FIRST  # without a lead all are alike
    log = rng.normal(6.5, 0.7, 30)[:, None] + heavy * rng.normal(size=(TOOLS, 30, 3)) - 0.6 * (heavy > 1)
    return np.exp(log)


def penalised(times, limit, factor):
    return runs_of_scores(np.where(times < limit, times, limit * factor), AXES)


def test_penalties_for_timeouts_bring_back_the_order_that_the_limit_hides():
    """True means, without the limit, favour the first; means of capped times the others, which hit it more often."""
    for k in range(3):
        findings = penalised(limited(np.random.default_rng(k), 1.0), 3600, 1).check(rules_only=True).findings
        assert "PAR2 and PAR10" in next(f.advice for f in findings if f.kind == "capped_scores")

    def study(rng):
        times = limited(rng, 1.0)
        tables = {"true": runs_of_scores(times, AXES)}
        tables |= {f"PAR{factor}": penalised(times, 3600, factor) for factor in (1, 2, 10)}
        return {name: answer(runs)[0] == 0 for name, runs in tables.items()}

    right = rate_of(study, 40, lambda k: k)
    assert right["true"] > 0.9
    assert right["PAR10"] >= right["PAR2"] > right["PAR1"] + 0.1
    assert right["PAR10"] > 0.9


@pytest.mark.parametrize("factor", [1, 2, 10])
def test_penalties_keep_the_level_where_solvers_are_alike(factor):
    false = rate_of(lambda rng: answer(penalised(limited(rng, 0.0), 1500, factor))[1] < 0.05, 100, lambda k: k)
    assert false <= upper(100)


def test_leaving_out_questions_that_all_answer_alike_makes_differences_larger_than_they_are():
    """The advice of old: the difference of two proportions grows by the share of questions left out."""

    def study(rng):  # right or wrong answers of models to questions, one each; each question is as hard for all
        p = 1 / (1 + np.exp(-(np.array([0.0, 0.2, 0.5, 1.0]) - rng.normal(0, 3, 300)[:, None])))
        y = (rng.random(p.shape) < p).astype(float)
        telling = y.min(axis=1) < y.max(axis=1)
        return [z[:, 3].mean() - z[:, 0].mean() for z in (p, y, y[telling])]

    truth, kept, dropped = np.transpose(answers_of(study, 200, lambda k: k))
    error = np.std(kept - truth) / np.sqrt(200)
    assert np.mean(kept) == pytest.approx(np.mean(truth), abs=4 * error)
    assert np.mean(dropped) > 1.4 * np.mean(truth)


def test_constant_benchmarks_that_are_kept_leave_differences_as_they_are():
    """Differences of losses, some benchmarks of which no algorithm can improve on."""
    rng = np.random.default_rng(1)
    hidden = rng.random(2000) < 0.3
    advantage = np.where(hidden, 0.0, rng.normal(1, 0.5, 2000))
    assert advantage.mean() == pytest.approx(0.7, abs=4 * 0.6 / np.sqrt(2000))
    assert advantage[~hidden].mean() > 1.3 * advantage.mean()


def differences_by_split(rng, splits, *, n=60, p=10):
    """Differences of the errors of two least-squares models that are equally good over data sets of this kind.

    Each sees its own half of the features, all of which matter alike; `splits` gives the rows to test on.
    """
    x = rng.normal(size=(n, 2 * p))
    y = x.sum(axis=1) / np.sqrt(2 * p) + rng.normal(size=n)
    out = []
    for test in splits(rng, n):
        errors = []
        for half in (x[:, :p], x[:, p:]):
            b = np.linalg.lstsq(half[~test], y[~test], rcond=None)[0]
            errors.append(np.mean((y[test] - half[test] @ b) ** 2))
        out.append(errors[0] - errors[1])
    return np.array(out)


def folds(rng, n):
    """One cross-validation of ten folds."""
    fold = rng.permutation(np.arange(n) % 10)
    return [fold == f for f in range(10)]


def random_splits(rng, n):
    """Ten times a random tenth."""
    tests = np.zeros((10, n), dtype=bool)
    for test in tests:
        test[rng.choice(n, n // 10, replace=False)] = True
    return tests


def repeated(rng, n):
    """Five cross-validations of ten folds."""
    return [test for _ in range(5) for test in folds(rng, n)]


@pytest.mark.parametrize(
    ("splits", "low", "high"), [(folds, 0.04, 0.14), (random_splits, 0.10, 0.22), (repeated, 0.25, 0.55)]
)
def test_splits_of_one_data_set_find_too_much_and_data_sets_do_not(splits, low, high):
    """What the finding on folds says: on one data set the level is lost, over ten data sets it is kept."""
    d = np.array(answers_of(lambda rng: [differences_by_split(rng, splits) for _ in range(10)], 60, 1))
    alone = np.mean(stats.ttest_1samp(d, 0, axis=2).pvalue < 0.05)
    over = np.mean(stats.ttest_1samp(d.mean(axis=2), 0, axis=1).pvalue < 0.05)
    assert low < alone < high
    assert over <= upper(60)
