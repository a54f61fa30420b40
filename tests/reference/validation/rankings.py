"""Rankings: classical tests, effect sizes, ratings, posterior probabilities, aggregate scores, Autorank."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.anova import AnovaRM

import lmemtest as lt
from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking import classical
from lmemtest.bench.ranking.bayesian import signed_rank
from lmemtest.bench.ranking.bradley_terry import ratings
from lmemtest.compat.autorank import autorank

from .common import Line, load, relative, suite_module

SHAPES = ((2, 2), (6, 3), (12, 4), (20, 10), (50, 6))  # blocks x algorithms
TESTS = "tests/bench/ranking/test_"


def tables(tied: bool = False) -> list[np.ndarray]:
    """Random tables of every shape."""
    rng = np.random.default_rng(20)
    drawn = [rng.normal(size=shape) + rng.normal(size=(shape[0], 1)) for shape in SHAPES]
    return [np.round(x) for x in drawn[1:]] if tied else drawn


def pairs_of(x: np.ndarray, test: str) -> pd.DataFrame:
    """Unadjusted tests of all pairs, columns in order."""
    names = [f"a{i:02}" for i in range(x.shape[1])]
    blocks = blocks_of(lt.Runs.from_wide(pd.DataFrame(x, columns=names), direction="maximize"))
    if test == "wilcoxon":
        return classical.wilcoxon_pairs(blocks, adjust="none", alpha=0.05)
    return classical.block_estimates(blocks, test, 0.05).pairs(adjust="none").to_frame()


def omnibus_lines() -> list[Line]:
    """Compare the tests of all algorithms at once with SciPy, statsmodels and a published value."""
    TESTS + "classical.py::test_"
    f = Line("Friedman's test, F of Iman and Davenport, ties or not", "SciPy, friedmanchisquare", " rel.")  # fmt: skip
    same = Line("Skillings-Mack, complete blocks", "SciPy, friedmanchisquare", " rel.")  # fmt: skip
    for x in [*tables()[1:], *tables(tied=True)]:
        n, k = x.shape
        chi2 = stats.friedmanchisquare(*x.T).statistic
        found = classical.friedman(classical.ranked(x), 0.05)
        f.add(relative(found.statistic, (n - 1) * chi2 / (n * (k - 1) - chi2)))
        same.add(relative(classical.skillings_mack(x, 0.05).statistic, chi2))
    anova = Line("repeated-measures ANOVA: F", "statsmodels, AnovaRM", " rel.")  # fmt: skip
    for x in tables():
        long = pd.DataFrame(x).stack().reset_index()
        long.columns = ["block", "algorithm", "y"]
        table = AnovaRM(long, "y", "block", within=["algorithm"]).fit().anova_table
        anova.add(relative(classical.repeated_measures_anova(x, 0.05).statistic, table["F Value"].iat[0]))
    published = Line("Skillings-Mack, 9 blocks with gaps", "15.493, Skillings & Mack (1981)", "")  # fmt: skip
    x = np.array(suite_module("bench/ranking/test_classical.py").ASSEMBLY)
    published.add(classical.skillings_mack(x, 0.05).statistic - 15.493)
    return [f, anova, same, published]


def pair_lines() -> list[Line]:
    """Compare the tests of pairs with SciPy, enumeration and published critical values."""
    TESTS + "classical.py::test_estimates_of_each_test_have_its_covariance"
    paired = Line("paired t: p-values", "SciPy, ttest_rel", " rel.")
    exact = Line("signed ranks: exact p-values", "SciPy, wilcoxon", " rel.")  # fmt: skip
    for x in tables():
        for i, j, p in zip(*np.triu_indices(x.shape[1], 1), pairs_of(x, "t")["p_value"], strict=True):
            paired.add(relative(p, stats.ttest_rel(x[:, i], x[:, j]).pvalue))
        for i, j, p in zip(*np.triu_indices(x.shape[1], 1), pairs_of(x, "wilcoxon")["p_value"], strict=True):
            exact.add(relative(p, stats.wilcoxon(x[:, i] - x[:, j], method="exact").pvalue))
    tied = Line("signed ranks with ties and zeros: p-values", "all sign changes", " rel.")  # fmt: skip
    rng = np.random.default_rng(4)
    for _ in range(20):
        d = rng.integers(-4, 6, size=10).astype(float)
        ranks = stats.rankdata(np.abs(d[d != 0]))
        signs = np.array(list(itertools.product([False, True], repeat=len(ranks))))
        least = min(ranks[d[d != 0] > 0].sum(), ranks[d[d != 0] < 0].sum())
        want = min(1.0, 2.0 * float(np.mean(signs @ ranks <= least)))
        tied.add(relative(classical.wilcoxon(d)[1], want))
    shift = Line("shift of a pair and its interval", "R, wilcox.test", "")  # fmt: skip
    d = np.array([0.3, 1.2, -0.4, 2.1, 0.9, 1.5, 3.0, 0.6, -0.1])
    for got, want in zip(classical.shift_intervals(d[None], np.array([0.95]))[0], (0.9, 0.10, 1.95), strict=True):
        shift.add(got - want)
    tests = suite_module("bench/ranking/test_classical.py")
    demsar = Line("Nemenyi's critical values, three decimals", "Demšar (2006), table 5", "")  # fmt: skip
    for k, q in tests.CRITICAL:
        x = np.random.default_rng(k).normal(size=(14, k))
        wide = pd.DataFrame(x).add_prefix("a")
        pairs = classical.block_estimates(
            blocks_of(lt.Runs.from_wide(wide, direction="minimize")), "nemenyi", 0.05
        ).pairs(adjust="tukey")
        demsar.add(float(pairs.half_widths(0.05)[0]) / np.sqrt(k * (k + 1) / (6 * 14)) - q)
    return [paired, exact, tied, shift, demsar]


def size_and_rating_lines() -> list[Line]:
    """Compare effect sizes and ratings with R."""
    value = Line("effect sizes of two samples", "R", "")
    limits = Line("their intervals", "R", "")
    for case in load("effect_sizes")["samples"]:
        for want in case["effects"]:
            got = lt.outperforming(case["a"], case["b"], want["kind"], paired=case["paired"], rng=0, n_draws=99)
            value.add(got.estimate - want["estimate"])
            if want["ci_low"] is not None:
                limits.add(got.ci_low - want["ci_low"])
                limits.add(got.ci_high - want["ci_high"])
    theta = Line("Bradley-Terry ratings, ties as half a win", "R, glm", "")  # fmt: skip
    for table in load("bradley_terry")["tables"]:
        found = ratings(np.array(table["wins"]))
        for got, want in zip(found - found[-1], table["theta"], strict=True):
            theta.add(got - want)
    baseball = Line("the same of 7 baseball teams, three decimals", "Agresti (2002), table 10.10", "")  # fmt: skip
    tests = suite_module("bench/ranking/test_classical.py")
    found = ratings(tests.BASEBALL)
    for got, want in zip(found - found[-1], tests.PUBLISHED, strict=True):
        baseball.add(got - want)
    return [value, limits, theta, baseball]


def vote_lines() -> list[Line]:
    """Compare ratings by votes, and their sandwich errors, with survival's conditional logit and with arena-rank."""
    tests, n = suite_module("bench/votes/test_votes.py"), 400
    R, their = Line("ratings by votes: ties, first place, style, voters", "R, survival", " rel."), "arena-rank 0.1.1"
    rating, error = Line("ratings by votes without ties", their, " rel."), Line("their standard errors", their, " rel.")
    table = tests.simulated().replace({"y": {1.0: "a", -1.0: "b", 0.0: "tie"}})
    want, contrasts = load("votes")["choice"], np.eye(4)[:3] - np.eye(4)[3]
    found = lt.rate_votes(table.drop(columns=["won", "prompt"]), winner="y", style="length").ratings
    V = contrasts @ found.V @ contrasts.T / tests.ELO**2 / (15 / 14 * (n - 1) / (n - 6))
    for got, value in zip(contrasts @ found.b / tests.ELO, want["coefficients"][:3], strict=True):
        R.add(relative(got, value))
    for got, value in zip(V.ravel(), np.array(want["voter"])[:3, :3].ravel(), strict=True):
        R.add(relative(got, value))
    for case, options in {"plain": {"position": False}, "styled": {"style": "length"}}.items():
        want = load("arena_rank_votes")[case]
        models = lt.rate_votes(table[["model_a", "model_b", "length", "won"]], winner="won", **options).to_frame()
        models = models.set_index("model").sort_index()
        factor = np.sqrt(n / (n - 3 - len(want["covariates"])))
        for got, se, a, b in zip(models["rating"], models["se"], want["rating"], want["se"], strict=True):
            rating.add(relative(got, a))
            error.add(relative(se, factor * b))
    return [R, rating, error]


def draw_lines() -> list[Line]:
    """Compare posterior probabilities with baycomp and aggregate scores with rliable."""
    n = 50_000
    bayes = Line("Bayesian signed ranks, 50,000 draws: probabilities", "baycomp, 200,000 draws",
                 " of the largest Monte-Carlo SE")  # fmt: skip
    error = np.sqrt(0.25 * (1.0 / n + 1.0 / 200_000))
    for case in load("baycomp_signed_rank")["cases"]:
        z = np.array(case["x"]) - np.array(case["y"])
        rng = np.random.default_rng(4)
        found = signed_rank(z[None], np.array([case["rope"]]), n_draws=n, rng=rng, tie=1e-12)[0]
        for got, want in zip(found, case["p"], strict=True):
            bayes.add((got - want) / error)
    tests, stored = suite_module("bench/ranking/test_aggregates.py"), load("rliable_aggregates")
    TESTS + "aggregates.py::test_estimates_profiles_and_improvement_are_rliables"
    aggregate = Line("interquartile mean, median, mean, optimality gap", "rliable", " rel.")
    chance = Line("probability of improvement", "rliable", " rel.")
    scores = {name: np.array(values) for name, values in stored["scores"].items()}
    found = lt.aggregate_scores(tests.runs_of(scores), rng=1, n_draws=39)
    by_name = found.to_frame().set_index(["measure", "algorithm"])["estimate"]
    for measure, wanted in stored["estimates"].items():
        for name, want in wanted.items():
            aggregate.add(relative(by_name[measure, name], want))
    for pair, want in stored["improvement"].items():
        chance.add(relative(found.improvement().matrix.loc[tuple(pair.split(","))], want))
    return [bayes, aggregate, chance]


def autorank_lines() -> list[Line]:
    """Compare the drop-in with Autorank where that is right."""
    tests = suite_module("compat/autorank/test_autorank_numbers.py")
    p = Line("compat.autorank: p-value of all populations", "autorank 1.3.0", " rel.")
    centre = Line("compat.autorank: mean ranks, centres and spreads", "autorank 1.3.0", "")
    stored = load("autorank")
    for name in tests.CLASSICAL:
        case = stored["cases"][name]
        found, answer = autorank(pd.DataFrame(stored["tables"][case["table"]]), **case["options"]), case["answer"]
        if "wilcoxon" not in name:  # one-sided there
            p.add(relative(found.pvalue, answer["pvalue"]))
        data = answer["rankdf"]["data"]
        for column in ("meanrank", "mean", "std", "median", "mad"):
            if column in data and not (column in ("median", "mad") and "mean" in data):
                theirs = dict(zip(answer["rankdf"]["index"], data[column], strict=True))
                for label, value in found.rankdf[column].items():
                    centre.add(value - float(theirs[label]))
    return [p, centre]


SECTIONS = [omnibus_lines, pair_lines, size_and_rating_lines, vote_lines, draw_lines, autorank_lines]
