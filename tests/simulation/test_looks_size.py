"""Looks while runs come in: false differences over whole studies, power, units saved, coverage at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, Array, about, at_most, each, printed, rate_of
from scipy import stats
from study import NAMES

import lmemtest as lt
from lmemtest.lmm.means.adjust import adjust_raw

SIZES = {  # algorithms, benchmarks at the end, every so many, what is unusual, studies
    "3 algorithms, 12 benchmarks, looks every 1": (3, range(3, 13), "", 400),
    "4 algorithms, 40 benchmarks, looks every 2": (4, range(6, 41, 2), "", 300),
    "5 algorithms, 40 benchmarks, looks every 5": (5, range(5, 41, 5), "", 400),
    "10 algorithms, 20 benchmarks, looks every 5": (10, range(5, 21, 5), "", 400),
    "20 algorithms, 12 benchmarks, looks every 3": (20, range(3, 13, 3), "", 300),
    "5 algorithms, two variants of one": (5, range(5, 21, 5), "correlated", 400),
    "5 algorithms, one erratic": (5, range(5, 21, 5), "erratic", 400),
    "5 algorithms, shared seeds": (5, range(5, 21, 5), "seeds", 300),
}


def scores_of(rng: np.random.Generator, k: int, n: int, kind: str = "", apart: Sequence[float] = ()) -> Array:
    """Benchmarks x algorithms x seeds: each algorithm has its own luck on each benchmark."""
    own = rng.standard_normal((n, k, 1))
    if kind == "correlated":
        own[:, 1] = own[:, 0] + 0.1 * rng.standard_normal((n, 1))
    if kind == "erratic":
        own[:, 0] *= 6.0
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
        if found.verdict == "stop":
            break
    return found


def naive(x: Array, sizes: Sequence[int]) -> bool:
    """Whether any of the looks finds a pair by t-tests with Holm's adjustment, as if it were the only one."""
    means, (i, j) = x.mean(axis=2), np.triu_indices(x.shape[1], 1)
    for n in sizes:
        p = stats.ttest_rel(means[:n, i], means[:n, j]).pvalue
        if adjust_raw(p, "holm", len(p)).min() < ALPHA:
            return True
    return False


def false_differences(k: int, sizes: range, kind: str, n: int) -> dict[str, float]:
    """Studies with any, by method."""

    def study(rng: np.random.Generator) -> dict[str, float]:
        x = scores_of(rng, k, sizes[-1], kind)
        return {
            "spending": looked_at(x, sizes, maximum=sizes[-1]).pairs["decided"].any(),
            "e-values": looked_at(x, sizes, method="evalue").pairs["decided"].any(),
            "as if each look were the only one": naive(x, sizes),
        }

    return dict(rate_of(study, n, each(32)))


@pytest.mark.parametrize("case", SIZES)
def test_any_false_difference_over_the_whole_study(case: str) -> None:
    found = false_differences(*SIZES[case])
    assert at_most(found["spending"], SIZES[case][-1])
    assert at_most(found["e-values"], SIZES[case][-1])
    assert found["as if each look were the only one"] > 0.05


def power_and_size(n: int = 300) -> dict[str, float]:
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
    assert rates["spending benchmarks"] < 34.0
    assert rates["evalue power"] < rates["spending power"]


def coverage(spending: str, apart: float, n: int) -> float:
    """Of the final interval of two algorithms, looks every 4 of 16 benchmarks."""

    def study(rng: np.random.Generator) -> float:
        x = scores_of(rng, 2, 16, apart=(apart, 0.0))
        end = looked_at(x, (4, 8, 12, 16), maximum=16, spending=spending).final
        return bool(end["ci_low"] <= apart <= end["ci_high"])

    return float(rate_of(study, n, each(34)))


COVERAGE = [(spending, apart, 500) for spending in ("obrien_fleming", "pocock") for apart in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(("spending", "apart", "n"), COVERAGE)
def test_the_final_interval_covers(spending: str, apart: float, n: int) -> None:
    assert about(coverage(spending, apart, n), n, 0.95)


if __name__ == "__main__":
    printed(false_differences, SIZES)
    printed(power_and_size, {"four algorithms, the last one worse": (500,)})
    printed(coverage, COVERAGE)
