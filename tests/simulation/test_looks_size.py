"""Looks while runs come in: false differences over whole studies, power, units saved, coverage at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, Array, at_most, each, printed, rate_of
from scipy import special, stats
from study import NAMES, runs_of_scores

import lmemtest as lt
from lmemtest.lmm.means.adjust import level_of_pairs, range_p
from lmemtest.lmm.sequential.brownian import critical_scores, estimate_at_end
from lmemtest.lmm.sequential.evalues import log_evalue
from lmemtest.lmm.sequential.successive_t import boundaries, level_of_look, repeated_p

DESIGNS = {  # algorithms, looks, what is unusual
    "2 algorithms, 3 to 10 benchmarks, looks every 1": (2, range(3, 11), ""),
    "3 algorithms, 3 to 12 benchmarks, looks every 1": (3, range(3, 13), ""),
    "4 algorithms, 6 to 40 benchmarks, looks every 2": (4, range(6, 41, 2), ""),
    "5 algorithms, 5 to 40 benchmarks, looks every 5": (5, range(5, 41, 5), ""),
    "10 algorithms, 5 to 20 benchmarks, looks every 5": (10, range(5, 21, 5), ""),
    "20 algorithms, 6 to 40 benchmarks, looks every 2": (20, range(6, 41, 2), ""),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, two variants of one": (5, range(6, 41), "correlated"),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, one erratic": (5, range(6, 41), "erratic"),
}
FAR_FROM_NORMAL = {  # one algorithm of the same mean: heavy tails on both sides, or rare large losses
    "2 algorithms, 3 to 10 benchmarks, looks every 1, heavy tails": (2, range(3, 11), "heavy"),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, heavy tails": (5, range(6, 41), "heavy"),
    "2 algorithms, 3 to 10 benchmarks, looks every 1, skewed": (2, range(3, 11), "skewed"),
    "5 algorithms, 5 to 40 benchmarks, looks every 5, skewed": (5, range(5, 41, 5), "skewed"),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, skewed": (5, range(6, 41), "skewed"),
}
CALLS = {  # through the public call, with moderated standard errors
    "5 algorithms, looks every 5 of 20 benchmarks": (5, range(5, 21, 5), ""),
    "5 algorithms, one erratic": (5, range(5, 21, 5), "erratic"),
    "5 algorithms, two variants of one": (5, range(5, 21, 5), "correlated"),
    "5 algorithms, shared seeds": (5, range(5, 21, 5), "seeds"),
    "12 algorithms, looks at 4, 8, 12 benchmarks": (12, range(4, 13, 4), ""),
}


def scores_of(rng: np.random.Generator, k: int, n: int, kind: str = "", apart: Sequence[float] = ()) -> Array:
    """Benchmarks x algorithms x seeds: each algorithm has its own luck on each benchmark."""
    own = rng.standard_normal((n, k, 1))
    if kind == "correlated":
        own[:, 1] = own[:, 0] + 0.1 * rng.standard_normal((n, 1))
    if kind == "erratic":
        own[:, 0] *= 6.0
    if kind == "heavy":
        own[:, 0] += 2.0 * rng.standard_t(2, (n, 1))
    if kind == "skewed":
        own[:, 0] += 2.0 * (np.exp(rng.standard_normal((n, 1))) - np.exp(0.5))
    luck = rng.standard_normal((1, k, 3)) if kind == "seeds" else 0.0
    x = own + 3.0 * rng.standard_normal((n, 1, 1)) + 0.5 * rng.standard_normal((n, k, 3)) + 0.05 * luck
    if len(apart):
        x += np.asarray(apart)[:, None]
    return x


def looked_at(x: Array, sizes: Sequence[int], **options: Any) -> Any:
    """The last look of a study of these scores."""
    found, (n, k, seeds) = None, x.shape
    table = pd.DataFrame({"task": np.repeat(np.arange(n), k * seeds), "tool": np.tile(np.repeat(NAMES[:k], seeds), n),
                          "rep": np.tile(np.arange(seeds), n * k), "loss": x.ravel()})  # fmt: skip
    for size in sizes:
        runs = lt.Runs(table[: size * k * seeds], score="loss", direction="minimize", algorithm="tool",
                       benchmark="task", seed="rep")  # fmt: skip
        found = lt.monitor(runs, earlier=found, **options)
        if found.decision == "stop":
            break
    return found


def of_t_tests(k: int, sizes: range, kind: str, n: int = 4000) -> dict[str, float]:
    """Studies with a false pair by paired t-tests of one score per benchmark: at looks, by e-values, as if alone."""
    rng, (i, j) = np.random.default_rng(32), np.triu_indices(k, 1)
    x = np.array([scores_of(rng, k, sizes[-1], kind)[:, :, 0] for _ in range(n)])
    gaps = x[:, :, i] - x[:, :, j]
    names = ("O'Brien-Fleming", "Pocock", "e-values", "as if alone", "at the end alone")
    false = {name: np.zeros(n, dtype=bool) for name in names}
    for look, size in enumerate(sizes):
        test = stats.ttest_1samp(gaps[:, :size], 0.0, axis=1)
        for name, spending in (("O'Brien-Fleming", "obrien_fleming"), ("Pocock", "pocock")):
            p = repeated_p(test.pvalue.min(axis=1), sizes[: look + 1], sizes[-1], spending)
            false[name] |= p * len(i) < ALPHA
        false["e-values"] |= log_evalue(np.abs(test.statistic).max(axis=1), size, 1.0) > np.log(len(i) / ALPHA)
        false["as if alone"] |= test.pvalue.min(axis=1) * len(i) < ALPHA
    false["at the end alone"] = test.pvalue.min(axis=1) * len(i) < ALPHA
    return {name: float(found.mean()) for name, found in false.items()}


@pytest.mark.parametrize("design", DESIGNS)
def test_any_false_difference_over_the_whole_study(design: str) -> None:
    found = of_t_tests(*DESIGNS[design])
    for name in ("O'Brien-Fleming", "Pocock", "e-values"):
        assert at_most(found[name], 4000)
    assert found["as if alone"] > 0.075


@pytest.mark.parametrize("design", FAR_FROM_NORMAL)
def test_heavy_tails_keep_the_level_and_skewness_harms_looks_more_than_one_test(design: str) -> None:
    found = of_t_tests(*FAR_FROM_NORMAL[design])
    if FAR_FROM_NORMAL[design][2] == "heavy":
        assert all(at_most(found[name], 4000) for name in ("O'Brien-Fleming", "Pocock", "e-values"))
    else:
        assert found["e-values"] < min(found["O'Brien-Fleming"], found["Pocock"])
        assert ALPHA < found["at the end alone"] < found["O'Brien-Fleming"] < 0.15


def of_calls(k: int, sizes: range, kind: str, n: int = 200) -> float:
    """The same through `monitor`."""

    def study(rng: np.random.Generator) -> bool:
        return bool(looked_at(scores_of(rng, k, sizes[-1], kind), sizes, maximum=sizes[-1]).pairs["decided"].any())

    return float(rate_of(study, n, each(32)))


@pytest.mark.parametrize("design", CALLS)
def test_the_call_keeps_the_level(design: str) -> None:
    assert at_most(of_calls(*CALLS[design]), 200)


def of_pairs(k: int, sizes: tuple[int, ...], kind: str, n: int = 150) -> float:
    """Studies with a false pair where each look is `pairs(looks=)` with its defaults: moderated, step-down."""

    def study(rng: np.random.Generator) -> bool:
        x = scores_of(rng, k, sizes[-1], kind)
        for size in sizes:
            runs = runs_of_scores(x[:size])
            means = lt.recommend(runs).spec.fit(runs).emmeans("algorithm", vcov="moderated")
            if (found := means.pairs(looks=sizes)).table["p_value"].min() < found.alpha:
                return True
        return False

    return float(rate_of(study, n, each(37)))


PAIRS = {
    "4 algorithms, looks at 10, 20, 30, 40": (4, (10, 20, 30, 40), ""),
    "12 algorithms, looks at 10, 20, 40": (12, (10, 20, 40), ""),
    "5 algorithms, one erratic, looks every 5": (5, tuple(range(10, 41, 5)), "erratic"),
}


@pytest.mark.parametrize("design", PAIRS)
def test_pairs_at_planned_looks_keep_the_level(design: str) -> None:
    assert at_most(of_pairs(*PAIRS[design]), 150)


def of_range_tests(k: int, sizes: range, n: int = 4000) -> dict[str, float]:
    """Studies with a false pair by Tukey's test of means, each pair spending for itself, or the family as one test."""
    rng, reached = np.random.default_rng(38), np.zeros((n, 3), dtype=bool)
    each_pair = [level_of_pairs(size, sizes, ALPHA, k) for size in sizes]
    family = [level_of_look(size, sizes, ALPHA) for size in sizes]
    for part in np.array_split(np.arange(n), 20):
        x = rng.standard_normal((len(part), sizes[-1], k))
        for i, size in enumerate(sizes):
            mean = x[:, :size].mean(axis=1)
            rest = (
                x[:, :size] - mean[:, None] - x[:, :size].mean(axis=2, keepdims=True) + mean.mean(axis=1)[:, None, None]
            )
            df = (size - 1) * (k - 1)
            t = np.ptp(mean, axis=1) / np.sqrt(2.0 * (rest**2).sum(axis=(1, 2)) / df / size)
            p = range_p(2.0 * stats.t.sf(t, df), k)
            reached[part] |= np.array([p < each_pair[i], p < family[i], (p < ALPHA) & (size == sizes[-1])]).T
    names = ("each pair spends", "the family spends", "at the end alone")
    return dict(zip(names, reached.mean(axis=0).tolist(), strict=True))


RANGES = {
    "4 algorithms, looks every 2 from 6 to 40": (4, range(6, 41, 2)),
    "20 algorithms, looks every 2 from 6 to 40": (20, range(6, 41, 2)),
}


@pytest.mark.parametrize("design", RANGES)
def test_each_pair_spends_for_itself(design: str) -> None:
    """A family that spends as one test lets 6 % of studies pass with 20 algorithms and 18 looks."""
    found = of_range_tests(*RANGES[design])
    assert at_most(found["each pair spends"], 4000)
    assert found["each pair spends"] < found["the family spends"]


def of_gates(lost: float, sizes: tuple[int, ...], options: dict[str, Any], n: int = 200) -> dict[str, float]:
    """Studies whose gate passes, or fails, at some look; the margin is 0.5, half of the sd between tasks."""
    passed, failed = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for k in range(n):
        gains = np.random.default_rng([k, 39]).normal(-lost, 1.0, sizes[-1])
        old = pd.DataFrame({"task": np.arange(sizes[-1]), "reward": np.zeros(sizes[-1])})
        for size in sizes:
            found = lt.gate(old.assign(reward=gains)[:size], old[:size], margin=0.5, score="reward", benchmark="task",
                            direction="maximize", **options)  # fmt: skip
            passed[k] |= found.decision == "not worse"
            failed[k] |= found.decision == "worse"
    return {"passed": float(passed.mean()), "failed": float(failed.mean())}


LOOKS_OF_A_GATE = (10, 20, 30, 40)
GATES = {
    "planned looks, at the border": (0.5, LOOKS_OF_A_GATE, {"looks": LOOKS_OF_A_GATE}),
    "e-values, at the border, looks every 4": (0.5, tuple(range(4, 41, 4)), {"method": "evalue"}),
    "planned looks, equal versions": (0.0, LOOKS_OF_A_GATE, {"looks": LOOKS_OF_A_GATE}),
    "e-values, equal versions": (0.0, LOOKS_OF_A_GATE, {"method": "evalue"}),
    "each look taken for the only one, at the border": (0.5, tuple(range(4, 41, 4)), {}),
}


@pytest.mark.parametrize("design", GATES)
def test_a_gate_that_is_looked_at_again_keeps_its_levels(design: str) -> None:
    found = of_gates(*GATES[design])
    if "only one" in design:
        assert min(found.values()) > 0.06
    elif "border" in design:
        assert at_most(found["passed"], 200)
        assert at_most(found["failed"], 200)
    else:
        assert found["passed"] > 0.5


def extended(n: int = 400) -> float:
    """Two equal algorithms, looks at 5 and 10 of 20 benchmarks; who sees nothing then adds 15 and tests them alone."""

    def study(rng: np.random.Generator) -> bool:
        x = scores_of(rng, 2, 25)
        found = looked_at(x[:10], (5, 10), maximum=20, looks=5)
        if found.decision == "stop":
            return True
        table = pd.DataFrame({"task": np.repeat(np.arange(25), 6), "tool": np.tile(np.repeat(NAMES[:2], 3), 25),
                              "rep": np.tile(np.arange(3), 50), "loss": x.ravel()})  # fmt: skip
        runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="rep")
        return bool(found.extension(runs).to_frame()["decided"].any())

    return float(rate_of(study, n, each(36)))


def test_an_extension_keeps_the_level_of_the_whole_study() -> None:
    assert at_most(extended(), 400)


def power_and_size(n: int = 150) -> dict[str, float]:
    """Four algorithms, the last one worse: looks at 10, 20, 30, 40 against one test at 40."""
    sizes, apart = (10, 20, 30, 40), (0.0, 0.0, 0.0, 0.9)

    def study(rng: np.random.Generator) -> dict[str, float]:
        x = scores_of(rng, 4, 40, apart=apart)
        out: dict[str, float] = {}
        for name, looks, options in (("fixed", (40,), {"maximum": 40}), ("spending", sizes, {"maximum": 40}),
                                     ("pocock", sizes, {"maximum": 40, "spending": "pocock"}),
                                     ("evalue", sizes, {"method": "evalue"})):  # fmt: skip
            found = looked_at(x, looks, control="D", **options)
            out[f"{name} power"] = float(found.pairs["decided"].mean())
            out[f"{name} benchmarks"] = found.sizes[-1]
        return out

    return dict(rate_of(study, n, each(33)))


def test_looks_cost_little_power_and_save_benchmarks() -> None:
    rates = power_and_size()
    assert rates["spending power"] > rates["fixed power"] - 0.05
    assert rates["spending benchmarks"] < 36.0  # of 40
    assert rates["evalue power"] < rates["spending power"]


def coverage(spending: str, apart: float, n: int = 2000) -> float:
    """Of the interval at the end of a study of two algorithms that stops by itself, looks every 4 of 16 benchmarks."""
    sizes = np.array([4, 8, 12, 16])
    critical, brownian = boundaries(sizes, 16, ALPHA, spending)[0], critical_scores(sizes / 16, ALPHA, spending)

    def study(rng: np.random.Generator) -> bool:
        x = rng.normal(apart, 1.0, 16)
        for look, size in enumerate(sizes):
            mean, se = float(x[:size].mean()), float(x[:size].std(ddof=1) / np.sqrt(size))
            if abs(mean) / se > stats.t.isf(special.ndtr(-critical[look]), size - 1):
                break
        shares = (sizes[: look + 1] / 16).tolist()
        _, low, high = estimate_at_end(mean, se, size - 1.0, shares, brownian[:look].tolist(), ALPHA)
        return low <= apart <= high

    return float(rate_of(study, n, each(34)))


COVERAGE = [(spending, apart) for spending in ("obrien_fleming", "pocock") for apart in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(("spending", "apart"), COVERAGE)
def test_the_final_interval_covers(spending: str, apart: float) -> None:
    share = coverage(spending, apart)
    assert 0.93 <= share <= 0.97


if __name__ == "__main__":
    printed(of_t_tests, DESIGNS)
    printed(of_t_tests, FAR_FROM_NORMAL)
    printed(coverage, COVERAGE)
    printed(power_and_size, {"four algorithms, the last one worse": ()})
    printed(of_calls, CALLS)
    printed(of_pairs, PAIRS)
    printed(of_range_tests, RANGES)
    printed(of_gates, GATES)
