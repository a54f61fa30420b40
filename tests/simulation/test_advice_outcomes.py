"""Following the advice of the checks must not make the answer worse: right winners, and findings where there are none.

The tables are complete, so that the comparison of the recommended model is the analysis of variance of the means per
benchmark and algorithm, which takes microseconds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lmemtest.bench.data.runs import Runs

pytestmark = pytest.mark.slow
TOOLS, TASKS, SEEDS = 4, 15, 4
ROLES = {"algorithm": "tool", "benchmark": "task", "seed": "seed"}


def grid(tools=TOOLS, tasks=TASKS, seeds=SEEDS):
    levels = [[f"s{i}" for i in range(tools)], range(tasks), range(seeds)]
    return pd.MultiIndex.from_product(levels, names=["tool", "task", "seed"]).to_frame(index=False)


def code(frame):
    return frame["tool"].str[1:].astype(int).to_numpy()


def answer(runs):
    """The algorithm with the best mean, and the p-value of the F-test against algorithm by benchmark."""
    means = runs.to_frame().groupby(["task", "tool"])[runs.score].mean().unstack().to_numpy()
    n, k = means.shape
    residual = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    f = n * means.mean(axis=0).var(ddof=1) / ((residual**2).sum() / ((n - 1) * (k - 1)))
    best = means.mean(axis=0).argmin() if runs.direction == "minimize" else means.mean(axis=0).argmax()
    return int(best), float(stats.f.sf(f, k - 1, (n - 1) * (k - 1)))


def rates(make, lead, variants, n):
    """Of n tables each: share in which s0 wins where it is ahead, and share of findings where nothing differs."""
    right, false = dict.fromkeys(variants, 0), dict.fromkeys(variants, 0)
    for seed in range(n):
        ahead, null = make(np.random.default_rng(seed), lead), make(np.random.default_rng(10**6 + seed), 0.0)
        for name, follow in variants.items():
            right[name] += answer(follow(ahead))[0] == 0
            false[name] += answer(follow(null))[1] < 0.05
    return pd.DataFrame({"right": right, "false": false}) / n


def test_what_is_followed_here_is_what_is_advised():
    for make, methods in ((games, ("minmax", "rank")), (times, ("minmax", "log", "rank"))):
        for seed in range(3):
            findings = make(np.random.default_rng(seed), 0.4).check(rules_only=True).findings
            advice = next(f.advice for f in findings if f.kind == "score_scale")
            assert [m for m in ("minmax", "log", "rank") if f"runs.normalize({m!r})" in advice] == list(methods)


def games(rng, lead):
    """Returns in units of each game, over five powers of ten."""
    frame = grid()
    y = rng.normal(0, 1, TASKS)[frame["task"]] + lead * (frame["tool"] == "s0")
    y = y + rng.normal(0, 0.4, (TOOLS, TASKS))[code(frame), frame["task"]] + rng.normal(0, 0.5, len(frame))
    return Runs(frame.assign(score=y * 10.0 ** rng.uniform(0, 5, TASKS)[frame["task"]]), score="score",
                direction="maximize", **ROLES)  # fmt: skip


def times(rng, lead):
    """Runtimes over six powers of e; an algorithm is faster by a factor."""
    frame = grid()
    log = rng.normal(5, 2, TASKS)[frame["task"]] - lead * (frame["tool"] == "s0")
    log = log + rng.normal(0, 0.3, (TOOLS, TASKS))[code(frame), frame["task"]] + rng.normal(0, 0.6, len(frame))
    return Runs(frame.assign(score=np.exp(log)), score="score", direction="minimize", **ROLES)


def upper(n):
    """The largest share of findings that 5 % allow in n tables, with 4 standard errors."""
    return 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


def test_normalisations_that_are_advised_find_the_winner_more_often_and_keep_the_level():
    n = 150
    variants = {
        "as it is": lambda runs: runs,
        "regret": lambda runs: runs.normalize("regret"),
        "minmax": lambda runs: runs.normalize("minmax"),
        "rank": lambda runs: runs.normalize("rank"),
    }
    found = rates(games, 0.4, variants, n)
    assert found.loc[["minmax", "rank"], "right"].min() > found.loc["as it is", "right"] + 0.15
    assert found.loc["regret", "right"] == found.loc["as it is", "right"]  # which is why it is not advised
    assert found.loc[["minmax", "rank"], "false"].max() <= upper(n)


def test_the_logarithm_of_times_finds_the_winner_more_often_and_keeps_the_level():
    n = 150
    variants = {"as it is": lambda runs: runs} | {
        method: (lambda runs, method=method: runs.normalize(method)) for method in ("log", "minmax", "rank")
    }
    found = rates(times, 0.3, variants, n)
    assert found.loc[["log", "minmax", "rank"], "right"].min() > found.loc["as it is", "right"] + 0.15
    assert found.loc[["log", "minmax", "rank"], "false"].max() <= upper(n)


def limited(rng, lead):
    """Solvers of equal median; s0 is steady, the others now and then take very long, which the limit hides."""
    frame = grid(TOOLS, 30, 3)
    heavy = 0.4 + 1.6 * (lead > 0) * (frame["tool"] != "s0")  # without a lead all are alike
    log = rng.normal(6.5, 0.7, 30)[frame["task"]] + heavy * rng.normal(0, 1, len(frame)) - 0.6 * (heavy > 1)
    return frame.assign(score=np.exp(log))


def test_penalties_for_timeouts_bring_back_the_order_that_the_limit_hides():
    """True means, without the limit, favour s0; means of capped times the others, which hit the limit more often."""
    right = {"true": 0, "capped": 0, "PAR2": 0, "PAR10": 0}
    n = 40
    for seed in range(n):
        frame = limited(np.random.default_rng(seed), 1.0)
        capped = Runs(frame.assign(score=frame["score"].clip(upper=3600)), score="score", direction="minimize", **ROLES)
        if seed < 3:
            assert "PAR2 and PAR10" in next(
                f.advice for f in capped.check(rules_only=True).findings if f.kind == "capped_scores"
            )
        tables = {"true": frame["score"], "capped": capped.to_frame()["score"]}
        for name, factor in (("PAR2", 2), ("PAR10", 10)):
            tables[name] = frame["score"].where(frame["score"] < 3600, 3600 * factor)
        for name, score in tables.items():
            right[name] += answer(Runs(frame.assign(score=score), score="score", direction="minimize", **ROLES))[0] == 0
    assert right["true"] > 0.9 * n
    assert right["PAR10"] >= right["PAR2"] > right["capped"] + 0.1 * n
    assert right["PAR10"] > 0.9 * n


@pytest.mark.parametrize("factor", [1, 2, 10])
def test_penalties_keep_the_level_where_solvers_are_alike(factor):
    n, false = 100, 0
    for seed in range(n):
        frame = limited(np.random.default_rng(seed), 0.0)
        frame["score"] = frame["score"].where(frame["score"] < 1500, 1500 * factor)
        false += answer(Runs(frame, score="score", direction="minimize", **ROLES))[1] < 0.05
    assert false / n <= upper(n)


def answers(rng, ability):
    """Right or wrong answers of models to questions, one each; each question is as hard for all."""
    p = 1 / (1 + np.exp(-(np.asarray(ability)[None, :] - rng.normal(0, 3, 300)[:, None])))
    return (rng.random(p.shape) < p).astype(float), p


def test_leaving_out_questions_that_all_answer_alike_makes_differences_larger_than_they_are():
    """The advice of old: the difference of two proportions grows by the share of questions left out."""
    kept, dropped, truth = [], [], []
    for seed in range(200):
        y, p = answers(np.random.default_rng(seed), [0.0, 0.2, 0.5, 1.0])
        telling = y.min(axis=1) < y.max(axis=1)
        truth.append(p[:, 3].mean() - p[:, 0].mean())
        kept.append(y[:, 3].mean() - y[:, 0].mean())
        dropped.append(y[telling, 3].mean() - y[telling, 0].mean())
    error = np.std(np.subtract(kept, truth)) / np.sqrt(200)
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
    rng, n = np.random.default_rng(1), 60
    d = np.array([[differences_by_split(rng, splits) for _ in range(10)] for _ in range(n)])
    alone = np.mean(stats.ttest_1samp(d, 0, axis=2).pvalue < 0.05)
    over = np.mean(stats.ttest_1samp(d.mean(axis=2), 0, axis=1).pvalue < 0.05)
    assert low < alone < high
    assert over <= upper(n)
