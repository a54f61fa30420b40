"""What autorank 1.3.0 gives on generated tables: where it is right, and where it is wrong.

Run `python tests/reference/compat_autorank.py` with an interpreter that has autorank 1.3.0; it writes autorank.json
beside this file. No code of the package is in it, only its answers.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import io
import itertools
import json
import math
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import autorank as module
import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from autorank import _util
from statsmodels.stats.multicomp import MultiComparison

FUNCTIONS = ("autorank", "plot_stats", "plot_posterior_maps", "create_report", "latex_table", "latex_report")
PRIVATE = ("get_sorted_rank_groups", "rank_multiple_nonparametric", "test_normality", "cd_diagram", "rank_two",
           "rank_multiple_normal_homoscedastic", "rank_bayesian", "ci_plot", "posterior_maps")  # fmt: skip


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(2024)

    def normal(n: int, means: list[float], sds: list[float], block: float = 0.0) -> pd.DataFrame:
        shared = block * rng.standard_normal(n)
        return pd.DataFrame(
            {f"pop_{i}": rng.normal(m, s, n) + shared for i, (m, s) in enumerate(zip(means, sds, strict=True))}
        ).round(4)

    same = [0.15] * 6
    skewed = normal(40, [0.35, 0.2, 0.55, 0.8, 0.9, 0.5], [0.3] * 6).clip(0.0, 1.0)
    whole = pd.DataFrame({f"pop_{i}": rng.integers(0, 4 + i, 20).astype(float) for i in range(4)})
    return {
        "normal": normal(30, [0.45, 0.2, 0.5, 0.6, 0.35], same[:5]),
        "unequal": normal(30, [0.5, 0.3, 0.6, 0.45], [0.05, 0.4, 0.1, 0.2]),
        "skewed": skewed,
        "two_normal": normal(25, [0.4, 0.5], same[:2]),
        "two_skewed": skewed[["pop_0", "pop_1"]],
        "ties": whole,
        "blocks": normal(12, [0.0, 0.06, 0.12], [0.05] * 3, block=1.0),  # rows differ much more than populations
        "few": normal(8, [0.5, 0.7, 0.9], [0.1] * 3),
    }


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "anova": ("normal", {}),
    "anova, low alpha": ("normal", {"alpha": 0.01}),
    "anova, low is good": ("normal", {"order": "ascending"}),
    "anova, order of the plot": ("normal", {"plot_order": ["pop_1", "pop_0", "pop_2", "pop_4", "pop_3"]}),
    "ranks of normal": ("normal", {"force_mode": "nonparametric"}),
    "unequal variances": ("unequal", {}),
    "unequal variances, low is good": ("unequal", {"order": "ascending", "effect_size": "akinshin_gamma"}),
    "friedman": ("skewed", {}),
    "friedman, low is good": ("skewed", {"order": "ascending"}),
    "friedman, cliff": ("skewed", {"effect_size": "cliff_delta", "order": "ascending"}),
    "means of skewed": ("skewed", {"force_mode": "parametric"}),
    "ties": ("ties", {}),
    "ties, low is good": ("ties", {"order": "ascending", "alpha": 0.1}),
    "t": ("two_normal", {}),
    "t, low is good": ("two_normal", {"order": "ascending"}),
    "wilcoxon": ("two_skewed", {}),
    "wilcoxon of normal": ("two_normal", {"force_mode": "nonparametric"}),
    "t of skewed": ("two_skewed", {"force_mode": "parametric"}),
    "few": ("few", {}),
    "blocks": ("blocks", {}),
    "bayesian": ("skewed", {"approach": "bayesian", "random_state": 1, "nsamples": 20000}),
    "bayesian, normal": ("normal", {"approach": "bayesian", "random_state": 1, "nsamples": 20000}),
    "bayesian, absolute": (
        "normal",
        {"approach": "bayesian", "rope": 0.05, "rope_mode": "absolute", "random_state": 1, "nsamples": 20000},
    ),
    "bayesian, low is good": (
        "two_skewed",
        {"approach": "bayesian", "random_state": 1, "nsamples": 20000, "order": "ascending"},
    ),
}


def quiet(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, str]:
    """The answer and what was printed; the type of the error in place of the answer, if there is one."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = function(*args, **kwargs)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
    plt.close("all")
    return answer, out.getvalue()


def plain(value: Any) -> Any:
    """What json can hold; NaN as None."""
    if isinstance(value, pd.DataFrame):
        return {
            "index": [str(name) for name in value.index],
            "columns": list(map(str, value.columns)),
            "dtypes": [str(kind) for kind in value.dtypes],
            "data": {str(name): [plain(cell) for cell in value[name]] for name in value.columns},
        }
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else float(value)
    return value if value is None or isinstance(value, str) else type(value).__name__


# What the tests look for in texts, which are not kept themselves.
PHRASES = (
    "the posterior probability is at least alpha=0.050",
    "we assume",
    "are equal,",
    "all normal.",
    "homoscedastic",
    "assume that",
    "no difference in",
    "is normal",
    "We reject the null hypothesis (p=nan)",
    "x & y (p=",
    "is significantly larger than the mean value of",
    "\\caption{Plot of the results}",
    "magnitude_above",
)


def seen(text: str) -> dict[str, list[str]]:
    """The phrases that a text holds, and the populations that it names with a p-value."""
    return {"phrases": [phrase for phrase in PHRASES if phrase in text], "named": re.findall(r"(\w+) \(p=", text)}


def answer(data: pd.DataFrame, options: dict[str, Any]) -> dict[str, Any]:
    result, _ = quiet(module.autorank, data, **options)
    found = {name: plain(value) for name, value in result._asdict().items() if name != "sample_matrix"}
    found["type of sample_matrix"] = type(result.sample_matrix).__name__
    found["shapiro by column"] = plain(_util.test_normality(data, 0.05, False)[1])
    found["report"] = seen(quiet(module.create_report, result)[1])
    if result.posthoc in ("nemenyi", "tukeyhsd"):
        for reverse in (False, True):
            ranks, names, groups = _util.get_sorted_rank_groups(result, reverse) if not (
                reverse and result.cd is None) else (pd.Series(dtype=float), [], [])  # fmt: skip
            found[f"groups{' reversed' if reverse else ''}"] = [plain(list(ranks)), names, plain(groups)]
    return found


def defects(data: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Calls that crash, and answers that are wrong, each by itself."""
    found: dict[str, Any] = {}
    bayes, _ = quiet(module.autorank, data["skewed"], approach="bayesian", nsamples=500, random_state=1)
    nothing, _ = quiet(module.autorank, data["ties"])
    found["latex_table(above)"] = quiet(module.latex_table, nothing, effect_size_relation="above")[0]
    axes = list(plt.subplots(2, 2)[1].ravel())
    found["plot_posterior_maps(axes)"] = quiet(module.plot_posterior_maps, bayes, axes=axes)[0]
    with_nan = data["skewed"].copy()
    with_nan.iloc[3, 2] = np.nan
    result, _ = quiet(module.autorank, with_nan)
    found["nan"] = result if isinstance(result, str) else [plain(result.pvalue), plain(result.rankdf)]
    found["report of nan"] = seen(quiet(module.create_report, result)[1])
    equal = data["two_normal"].assign(pop_1=data["two_normal"]["pop_0"])
    result, _ = quiet(module.autorank, equal)
    found["equal columns"] = [plain(result.pvalue), seen(quiet(module.create_report, result)[1])]
    flat = data["skewed"].copy()
    flat["pop_4"] = np.where(np.arange(len(flat)) < 30, 1.0, flat["pop_4"])
    flat["pop_3"] = np.where(np.arange(len(flat)) < 30, 1.0, flat["pop_3"])
    worst_first, _ = quiet(module.autorank, flat[["pop_3", "pop_4", "pop_1"]])
    found["mad 0"] = {
        "data": {name: flat[name].tolist() for name in ("pop_3", "pop_4", "pop_1")},
        "rankdf": plain(worst_first.rankdf),
    }
    numbered = data["skewed"].set_axis(range(6), axis=1)
    result, _ = quiet(module.autorank, numbered)
    found["report of numbered columns"] = quiet(module.create_report, result)[0]
    special = data["skewed"].set_axis(["50%", "a_b", "x & y", "c#", "{d}", "e"], axis=1)
    result, _ = quiet(module.autorank, special)
    found["latex of special names"] = seen(quiet(module.latex_report, result, generate_plots=False)[1])
    out, printed = quiet(module.autorank, data["normal"])
    found["printed"] = seen(printed)
    zero, _ = quiet(module.autorank, data["skewed"], approach="bayesian", rope=0.0, nsamples=500, random_state=1)
    found["rope 0"] = {"rankdf": plain(zero.rankdf), "posterior_matrix": plain(zero.posterior_matrix)}
    found["maps"] = maps(bayes)
    found["unpaired Tukey"] = {name: unpaired_tukey(data[name]) for name in ("normal", "blocks")}
    found["whiskers of a t-test"] = whiskers(quiet(module.autorank, two_spreads())[0])
    found["latex_report of anova"] = seen(quiet(module.latex_report, out, figure_path=tempfile.gettempdir())[1])
    found["wilcoxon plot"] = plain(quiet(module.plot_stats, quiet(module.autorank, data["two_skewed"])[0],
                                         allow_insignificant=True)[0])  # fmt: skip
    return found


def unpaired_tukey(data: pd.DataFrame) -> dict[str, float]:
    """Adjusted p-values of Tukey's HSD for independent samples, which is what autorank calls."""
    long = data.melt()
    found = MultiComparison(long["value"], long["variable"]).tukeyhsd()
    pairs = itertools.combinations(found.groupsunique, 2)
    return {f"{a} - {b}": float(p) for (a, b), p in zip(pairs, found.pvalues, strict=True)}


def two_spreads() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame({"narrow": rng.normal(0.0, 0.1, 20), "wide": rng.normal(1.0, 0.6, 20)})


def whiskers(result: Any) -> dict[str, Any]:
    """Half lengths that are drawn, beside those of the table."""
    _, axes = plt.subplots()
    drawn = _util.ci_plot(result, True, axes, 6).containers[0].lines[2][0].get_segments()
    table = result.rankdf.iloc[::-1]
    return {
        "drawn": [float(line[1][0] - line[0][0]) / 2 for line in drawn],
        "table": [float(v) / 2 for v in table.ci_upper - table.ci_lower],
    }


def maps(result: Any) -> dict[str, Any]:
    """Titles of the four maps with the values in their first row, beside the probabilities of the first pair."""
    with contextlib.redirect_stdout(io.StringIO()):
        module.plot_posterior_maps(result)
    drawn = {}
    for axes in plt.gcf().axes:
        if axes.images and axes.get_title():
            drawn[axes.get_title()] = [plain(v) for v in np.asarray(axes.images[0].get_array())[0]]
    plt.close("all")
    return {"drawn": drawn, "posterior_matrix": plain(result.posterior_matrix)}


def main() -> None:
    data = tables()
    names = ("autorank", "scipy", "statsmodels", "baycomp", "numpy", "pandas")
    found = {
        "versions": {name: importlib.metadata.version(name) for name in names},
        "signatures": {name: str(inspect.signature(getattr(module, name))) for name in FUNCTIONS},
        "private signatures": {name: str(inspect.signature(getattr(_util, name))) for name in PRIVATE},
        "fields": list(_util.RankResult._fields),
        "tables": {name: {column: table[column].tolist() for column in table} for name, table in data.items()},
        "cases": {
            name: {"table": table, "options": options, "answer": answer(data[table], options)}
            for name, (table, options) in CASES.items()
        },
        "defects": defects(data),
    }
    path = Path(__file__).with_name("autorank.json")
    path.write_text(json.dumps(found, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
