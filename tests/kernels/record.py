"""Print estimates, errors, degrees of freedom, p-values, orders and texts of several designs as one JSON line.

`test_kernels.py` runs this file under two kernels of the linear algebra library and compares what comes out.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt


def study(*, algorithms: int = 5, benchmarks: int = 8, seeds: int = 4, spread: float = 2.0) -> pd.DataFrame:
    """A complete table: algorithms by benchmarks by priors by seeds."""
    rng = np.random.default_rng(7)
    axes = {
        "algorithm": [f"A{i}" for i in range(algorithms)],
        "benchmark": [f"task{i}" for i in range(benchmarks)],
        "prior": ["bad", "good"],
        "seed": range(seeds),
    }
    frame = pd.MultiIndex.from_product(axes.values(), names=list(axes)).to_frame(index=False)
    own = rng.normal(size=(algorithms, benchmarks))
    a, b = frame["algorithm"].str[1:].astype(int), frame["benchmark"].str[4:].astype(int)
    frame["loss"] = 0.3 * a + own[a, b] + spread * rng.normal(size=benchmarks)[b] + rng.normal(size=len(frame))
    return frame


def runs(frame: pd.DataFrame, **roles: Any) -> lt.Runs:
    known = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed", "metafeatures": ["prior"]}
    return lt.Runs(frame, score="loss", direction="minimize", **(known | roles))


def holes(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[np.random.default_rng(3).random(len(frame)) < 0.7]


def traces() -> pd.DataFrame:
    frame = study(algorithms=3, seeds=3)
    steps = [frame.assign(budget=k, loss=frame["loss"] + 3.0 / k) for k in (1, 2, 4, 8)]
    return pd.concat(steps, ignore_index=True)


def of_fit(fit: lt.LmmFit, *, ddf: str = "satterthwaite") -> dict[str, Any]:
    means = fit.emmeans("algorithm", ddf=ddf)
    pairs = means.pairs()
    return {
        "llf": fit.llf,
        "fixed": fit.to_frame(ddf=ddf),
        "theta": list(fit.theta),
        "scale": fit.scale,
        "means": means.to_frame(),
        "pairs": pairs.to_frame(),
        "decisions": pairs.decisions().to_frame(),
        "text": pairs.decisions().summary(),
        "tests": fit.anova(ddf=ddf).to_frame(),
    }


CROSSED = "loss ~ algorithm + prior + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
SLOPES = "loss ~ algorithm * prior + (1 + prior|benchmark) + (1|benchmark:algorithm)"


def designs() -> dict[str, Callable[[], Any]]:
    """Name -> what is recorded of it."""
    full, part = study(), holes(study())
    far = study(spread=100.0)
    fit = lt.fit_lmm(CROSSED, runs(full))
    ml = [
        lt.fit_lmm(f"loss ~ {fixed} + (1|benchmark)", runs(full), reml=False) for fixed in ("prior", "algorithm+prior")
    ]
    equal = full.assign(loss=(full["seed"] + full["algorithm"].str[1:].astype(int) // 3) / 10)
    return {
        "balanced": lambda: of_fit(fit),
        "unbalanced": lambda: of_fit(lt.fit_lmm(CROSSED, runs(part))),
        "slopes": lambda: of_fit(lt.fit_lmm(SLOPES, runs(part))),
        "no random effects, equal means": lambda: of_fit(lt.fit_lmm("loss ~ algorithm", runs(equal))),
        "dispersion": lambda: of_fit(lt.fit_lmm(CROSSED, runs(part), dispersion="prior")),
        "kenward-roger": lambda: of_fit(lt.fit_lmm(CROSSED, runs(part)), ddf="kenward-roger"),
        "cluster-robust": lambda: fit.cluster_robust("benchmark").to_frame(),
        "glrt": lambda: [lt.glrt(*ml).statistic, lt.glrt(*ml).p_value],
        "mvt": lambda: (
            lt.fit_lmm(CROSSED, runs(part)).emmeans("algorithm").pairs(adjust="mvt", vcov="model", rng=1).to_frame()
        ),
        "best": lambda: fit.emmeans("algorithm").best(rng=1).to_frame(),
        "predictions": lambda: lt.fit_lmm(CROSSED, runs(far)).prediction_intervals(far.iloc[:20]),
        "random effects": lambda: fit.random_effects("benchmark", simultaneous=False).to_frame(),
        "shrinkage": lambda: lt.benchmark_effects(runs(full), simultaneous=False).to_frame(),
        "profile": lambda: ml[1].profile("sd").to_frame(),
        "bootstrap": lambda: fit.bootstrap(lambda drawn: drawn.params, 10, rng=1).to_frame(),
        "permutation": lambda: (
            lt.permutation_test(runs(full), "loss ~ algorithm + (1|benchmark)", n_draws=19, rng=1).p_value
        ),
        "clusters": lambda: lt.benchmark_clusters(runs(full), rng=1, n_draws=20).to_frame(),
        "variance": lambda: lt.variance_sources(runs(full)).to_frame(),
        "anytime": lambda: lt.anytime(runs(traces(), budget="budget"), rng=0).to_frame(),
        "horizons": lambda: lt.anytime(runs(traces(), budget="budget")).at().to_frame(),
        "tuning bands": lambda: lt.tuning.curve(full["loss"], direction="minimize").to_frame(),
        "parametric curves": lambda: str(lt.tuning.fit(full["loss"].to_numpy()[:60], direction="minimize")),
        "recommended": lambda: [lt.recommend(runs(full)).formula, lt.recommend(runs(part)).formula],
    }


def plain(value: Any) -> Any:
    """The same in lists, numbers, strings and None."""
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(list(value[name])) for name in value}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    return str(value)


def machine() -> dict[str, Any]:
    """The kernels that numpy's and scipy's linear algebra run on."""
    import scipy.linalg  # noqa: F401 - loads scipy's library
    import threadpoolctl

    found = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    return {
        "libraries": sorted({lib["internal_api"] for lib in found}),
        "kernels": [str(lib.get("architecture")) for lib in found],
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answers = {name: plain(made()) for name, made in designs().items()}
    json.dump({"machine": machine(), "answers": answers}, sys.stdout)
