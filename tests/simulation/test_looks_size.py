"""Looks while runs come in: false differences over whole studies, power, units saved, coverage at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, Array, at_most, each, printed, rate_of
from scipy import special, stats
from study import NAMES

import lmemtest as lt
from lmemtest.lmm.sequential.brownian import critical_scores, estimate_at_end
from lmemtest.lmm.sequential.evalues import log_evalue
from lmemtest.lmm.sequential.successive_t import boundaries, repeated_p

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
