"""Results of significance-analysis 0.2.4 (MIT) on small tables, for tests/compat; writes significance_analysis.json.

Needs R with lme4, lmerTest and emmeans, and a Python with significance-analysis 0.2.4, pymer4 0.8.2, rpy2 3.5, pandas
2.2, numpy 1.26, matplotlib 3.8 and autorank 1.2. With LMEMTEST_DATA set to the folder of priorband.parquet its numbers
are stored too (the rows are not). Two minutes without it, twelve with it.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import significance_analysis as sa  # noqa: E402 - after the filters

HERE = Path(__file__).parent
ALGORITHMS = ("PB", "HB", "RS")
PRIORS = ("good", "bad")


def crossed(benchmarks: int, seeds: int, budgets: int) -> pd.DataFrame:
    """A complete cross of benchmarks, priors, algorithms, seeds and budgets, without scores."""
    names = [
        f"{kind}-{number}" for number, kind in zip(range(benchmarks), ["svm", "mlp", "net", "gbt"] * 5, strict=False)
    ]
    axes = [names, PRIORS, ALGORITHMS, range(seeds), range(1, budgets + 1)]
    frame = pd.MultiIndex.from_product(axes, names=["benchmark", "prior", "algorithm", "seed", "used_fidelity"])
    return frame.to_frame(index=False).astype({"used_fidelity": float})


def drawn(frame: pd.DataFrame, columns: list[str], sd: float, rng: np.random.Generator) -> np.ndarray:
    """A normal effect of each combination of columns, by row."""
    codes = frame.groupby(columns, sort=False).ngroup().to_numpy()
    return rng.normal(0.0, sd, codes.max() + 1)[codes]


def real_effects() -> pd.DataFrame:
    """Algorithms, prior and budget matter."""
    rng = np.random.default_rng(20241)
    frame = crossed(benchmarks=4, seeds=5, budgets=4)
    effect = {("PB", "good"): -0.35, ("PB", "bad"): 0.2, ("RS", "good"): 0.12, ("RS", "bad"): 0.12}
    value = np.array([effect.get(key, 0.0) for key in zip(frame["algorithm"], frame["prior"], strict=True)])
    value += 2.0 - 0.08 * frame["used_fidelity"].to_numpy()
    value += drawn(frame, ["benchmark"], 0.5, rng) + drawn(frame, ["benchmark", "algorithm"], 0.15, rng)
    value += drawn(frame, ["benchmark", "prior", "algorithm", "seed"], 0.1, rng)
    return frame.assign(value=np.round(value + rng.normal(0.0, 0.12, len(frame)), 6))


def no_effects() -> pd.DataFrame:
    """Nothing matters on average: runs differ by chance, and budgets by benchmark, around zero."""
    rng = np.random.default_rng(1)
    frame = crossed(benchmarks=6, seeds=5, budgets=8)
    value = 2.0 + drawn(frame, ["benchmark"], 0.5, rng) + rng.normal(0.0, 0.05, len(frame))
    value += drawn(frame, ["benchmark", "prior", "algorithm", "seed"], 0.2, rng)
    value += drawn(frame, ["benchmark"], 0.05, rng) * (frame["used_fidelity"].to_numpy() - 4.5)
    return frame.assign(value=np.round(value, 6))


def seed_effects() -> pd.DataFrame:
    """The seed decides part of the score of PB, and of PB alone."""
    rng = np.random.default_rng(11)
    frame = crossed(benchmarks=4, seeds=10, budgets=1)
    frame = frame[frame["prior"] == "good"].drop(columns=["prior", "used_fidelity"]).reset_index(drop=True)
    value = frame["algorithm"].map({"PB": 0.0, "HB": 0.8, "RS": 1.6}).to_numpy() + rng.normal(0.0, 0.1, len(frame))
    value = value + np.where(frame["algorithm"] == "PB", drawn(frame, ["seed"], 0.25, rng), 0.0)
    return frame.assign(value=np.round(value, 6))


def odd_names() -> pd.DataFrame:
    """Names with signs, two budgets in unequal numbers, lost rows."""
    rng = np.random.default_rng(5)
    frame = crossed(benchmarks=5, seeds=4, budgets=2)
    frame["algorithm"] = frame["algorithm"].map({"PB": "HB+prior", "HB": "HB", "RS": "random search"})
    value = frame["algorithm"].map({"HB+prior": 0.0, "HB": 0.1, "random search": 0.3}).to_numpy()
    value = value * frame["used_fidelity"].to_numpy() + drawn(frame, ["benchmark"], 0.4, rng)
    value = value + rng.normal(0.0, 0.2, len(frame))
    kept = rng.random(len(frame)) < np.where(frame["used_fidelity"] == 1.0, 0.95, 0.6)
    return frame.assign(value=np.round(value, 6))[kept].reset_index(drop=True)


TABLES = {"real": real_effects(), "null": no_effects(), "seeded": seed_effects(), "odd": odd_names()}

# name -> table, formula, further arguments of model(), calls of post_hoc
MODELS: dict[str, tuple[str, str, dict[str, Any], list[dict[str, Any]]]] = {
    "readme": (
        "real",
        "value ~ algorithm + (1|benchmark) + prior",
        {},
        [{"marginal_vars": "algorithm"}, {"marginal_vars": ["algorithm"], "p_adjust": "bonf"}],
    ),
    "slopes": (
        "real",
        "value ~ algorithm*prior + (1+prior|benchmark) + (1|benchmark:seed)",
        {"factor": "prior"},
        [
            {"marginal_vars": "algorithm"},
            {"marginal_vars": "algorithm", "grouping_vars": "prior"},
            {"marginal_vars": ["algorithm", "prior"], "p_adjust": "holm"},
            {"marginal_vars": "algorithm", "p_adjust": "fdr"},
            {"marginal_vars": "algorithm", "p_adjust": None},
            {"marginal_vars": "algorithm", "dof_asymptotic_at": 100},
        ],
    ),
    "interaction": (
        "real",
        "value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + used_fidelity",
        {"factor": ["prior"]},
        [{"marginal_vars": "algorithm"}],
    ),
    "trend": (
        "real",
        "value ~ algorithm*used_fidelity + (1|benchmark)",
        {},
        [{"marginal_vars": "algorithm"}, {"marginal_vars": "used_fidelity", "grouping_vars": "algorithm"}],
    ),
    "by_algorithm": ("seeded", "value ~ benchmark + (0+algorithm|seed)", {}, []),
    "two_budgets": ("odd", "value ~ algorithm*used_fidelity + (1|benchmark)", {}, [{"marginal_vars": "algorithm"}]),
    "prior_system": ("real", "value ~ prior + (1|benchmark)", {"system_id": "prior"}, [{"marginal_vars": "prior"}]),
    "dummy": ("real", "value ~ algorithm", {}, [{"marginal_vars": "algorithm"}]),
    "mean": ("real", "value ~ 1", {}, []),
    "no_dummy": ("real", "value ~ algorithm", {"dummy": False}, []),
    "benchmark_effect": ("real", "value ~ algorithm + (1|benchmark)", {}, []),
}
GLRTS = [
    ("dummy", "mean"),  # as the README has it: the larger model first
    ("mean", "dummy"),
    ("dummy", "benchmark_effect"),
    ("benchmark_effect", "readme"),
    ("readme", "interaction"),  # not nested
]


def table_of(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as JSON: columns, dtypes, index and values."""
    return {
        "columns": list(frame.columns),
        "dtypes": [str(dtype) for dtype in frame.dtypes],
        "index": [str(label) for label in frame.index],
        "data": {name: [plain(v) for v in frame[name]] for name in frame.columns},
    }


def plain(value: Any) -> Any:
    """A scalar that JSON has."""
    if isinstance(value, (float, np.floating)):
        return None if np.isnan(value) else ("Inf" if np.isinf(value) else float(value))
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return int(value) if isinstance(value, (int, np.integer)) else str(value)


def tables_of(frames: Any) -> list[dict[str, Any]]:
    """One or several frames."""
    if frames is None:
        return []
    return [table_of(frame) for frame in (frames if isinstance(frames, (list, tuple)) else [frames])]


def quiet(function: Any, *args: Any, **options: Any) -> tuple[Any, str]:
    """What a call returns, and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = function(*args, **options)
    return result, out.getvalue()


def crash(function: Any, *args: Any, **options: Any) -> dict[str, str]:
    """How a call ends; it must be an error."""
    try:
        quiet(function, *args, **options)
    except Exception as error:  # whatever it is, it is recorded
        return {"error": type(error).__name__, "message": re.sub(r"\s+", " ", str(error))[:200]}
    raise AssertionError(f"{function} was expected to fail")


def describe(name: str, fits: dict[str, Any]) -> dict[str, Any]:
    """Everything that is compared of one model."""
    table, formula, options, calls = MODELS[name]
    frame = TABLES[table].copy()
    fit = fits[name] = sa.model(formula, frame, **options)
    out: dict[str, Any] = {
        "table": table,
        "formula": formula,
        "options": options,
        "class": type(fit).__name__,
        "kept_formula": fit.formula,
        "columns_after": list(frame.columns),
        **{key: float(getattr(fit, key)) for key in ("logLike", "AIC", "BIC")},
        "coefs": tables_of(fit.coefs),
        "fits": [float(v) for v in fit.fits][:10],
        "residuals": [float(v) for v in fit.residuals][:10],
        "data_columns": list(fit.data.columns),
        "warnings": [str(w) for w in fit.warnings],
        "design_columns": list(fit.design_matrix.columns),
        "summary": tables_of(quiet(fit.summary)[0]),
        "post_hoc": [],
    }
    if hasattr(fit, "ranef_var"):
        out |= {
            "grps": fit.grps,
            "ranef": tables_of(fit.ranef),
            "fixef": tables_of(fit.fixef),
            "ranef_var": tables_of(fit.ranef_var),
            "ranef_corr": tables_of(fit.ranef_corr),
        }
        if name != "mean":
            out["anova"] = tables_of(quiet(fit.anova)[0])
    for call in calls:
        returned, printed = quiet(fit.post_hoc, **call)
        out["post_hoc"].append(
            {
                "call": call,
                "printed": printed,
                "returned": tables_of(returned),
                "estimates": table_of(fit.marginal_estimates),
                "contrasts": table_of(fit.marginal_contrasts),
            }
        )
    return out


def checks() -> dict[str, Any]:
    """The sanity checks and the metafeature analysis."""
    out: dict[str, Any] = {}
    seeds = {"real": TABLES["real"], "seeded": TABLES["seeded"], "null": TABLES["null"]}
    out["seed"] = {name: quiet(sa.seed_dependency_check, frame.copy()) for name, frame in seeds.items()}
    information = {"real": TABLES["real"], "null": TABLES["null"]}
    out["benchmark"] = {name: quiet(sa.benchmark_information_check, t.copy()) for name, t in information.items()}
    out["benchmark_rank"] = crash(sa.benchmark_information_check, TABLES["real"].copy(), rank_benchmarks=True)
    out["fidelity"] = {name: quiet(sa.fidelity_check, t.copy()) for name, t in information.items()}
    out["metafeature"] = {}
    for name, frame in information.items():
        changed = frame.copy()
        found = sa.metafeature_analysis(changed, ("PB", "HB"), "prior", verbose=False)
        out["metafeature"][name] = {"tables": tables_of(found), "columns_after": list(changed.columns)}
    renamed = TABLES["real"].rename(columns={"algorithm": "tool"})
    out["metafeature_renamed"] = crash(
        sa.metafeature_analysis, renamed, ("PB", "HB"), "prior", algorithm_var="tool", verbose=False
    )
    return out


def conversions() -> dict[str, Any]:
    """Validation and autorank's shape."""
    frame = TABLES["seeded"].copy()
    (validated, columns), printed = quiet(sa.dataframe_validator, frame)
    shuffled = TABLES["seeded"].sample(frac=1.0, random_state=1)
    given = sa.dataframe_validator(TABLES["real"].copy(), verbose=False)
    return {
        "validator": {
            "columns": columns,
            "printed": printed,
            "dtypes": {name: str(dtype) for name, dtype in validated.dtypes.items()},
            "same_object": validated is frame,
        },
        "readme": {
            "model": crash(sa.model, "value ~ algorithm + (1|benchmark) + prior", given),
            "seed_dependency_check": crash(sa.seed_dependency_check, given),
            "metafeature_analysis": crash(sa.metafeature_analysis, given, ("HB", "PB"), "prior"),
        },
        "autorank": table_of(sa.convert_to_autorank(TABLES["seeded"])),
        "autorank_shuffled_order": [int(i) for i in shuffled.index],
        "autorank_shuffled": table_of(sa.convert_to_autorank(shuffled)),
    }


def diagram(result: tuple[pd.DataFrame, pd.DataFrame]) -> list[list[float]]:
    """The x of both ends of every thick line of the peer's diagram, in units of the axes."""
    import matplotlib

    matplotlib.use("Agg")
    figure = sa.cd_diagram(tuple(frame.copy() for frame in result))
    return [[float(x) for x in line.get_xdata()] for line in figure.axes[0].lines if line.get_linewidth() == 2.5]


def gap_case() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A and C do not differ, B lies between them and differs from both."""
    estimates = pd.DataFrame({"algorithm": list("ABC"), "Estimate": [1.0, 1.5, 2.0]})
    estimates = estimates.assign(**{"2.5_ci": [0.5, 1.0, 1.5], "97.5_ci": [1.5, 2.0, 2.5], "SE": 0.25, "DF": 20.0})
    contrasts = pd.DataFrame({"Contrast": ["A - B", "A - C", "B - C"], "Estimate": [-0.5, -1.0, -0.5]})
    contrasts = contrasts.assign(**{"SE": [0.1, 0.6, 0.1], "DF": [20.0, 4.0, 20.0], "P-val": [0.001, 0.3, 0.001]})
    return estimates, contrasts


def priorband() -> dict[str, Any]:
    """Numbers of the PriorBand table."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return {}
    data = pd.read_parquet(Path(folder) / "priorband.parquet")
    data = data.astype({name: object for name in data.columns if data[name].dtype.kind not in "fi"})
    fit = sa.model("value ~ algorithm + (1|benchmark) + prior", data.copy())
    quiet(fit.post_hoc, "algorithm")
    out = {
        "logLike": float(fit.logLike),
        "coefs": table_of(fit.coefs),
        "ranef_var": table_of(fit.ranef_var),
        "estimates": table_of(fit.marginal_estimates),
        "contrasts": table_of(fit.marginal_contrasts),
        "seed": quiet(sa.seed_dependency_check, data.copy()),
        "benchmark": quiet(sa.benchmark_information_check, data.copy()),
        "fidelity": quiet(sa.fidelity_check, data.copy()),
    }
    contrasts = sa.metafeature_analysis(data.copy(), ("HB", "PB"), "prior", verbose=False)[1]
    sides = contrasts["Contrast"].str.replace(r"[()]", "", regex=True).str.split(" - ", expand=True)
    same = sides[0].str.rsplit(" x ", n=1).str[0] == sides[1].str.rsplit(" x ", n=1).str[0]
    out["metafeature_within"] = table_of(contrasts[same])
    return out


def main() -> None:
    """Write the JSON."""
    fits: dict[str, Any] = {}
    models = {name: describe(name, fits) for name in MODELS}
    glrts = [dict(zip(("result", "printed"), quiet(sa.glrt, fits[a], fits[b], True), strict=True)) for a, b in GLRTS]
    content = {
        "about": "significance-analysis 0.2.4 with pymer4 0.8.2; made by compat_significance_analysis.py",
        "tables": {name: {c: [plain(v) for v in t[c]] for c in t.columns} for name, t in TABLES.items()},
        "models": models,
        "glrt": [{"models": list(pair), **found} for pair, found in zip(GLRTS, glrts, strict=True)],
        "checks": checks(),
        "conversions": conversions(),
        "diagram_with_gap": diagram(gap_case()),
        "priorband": priorband(),
    }
    text = json.dumps(content, default=plain, allow_nan=True)
    text = text.replace("NaN", "null").replace("-Infinity", '"-Inf"').replace("Infinity", '"Inf"')
    (HERE / "significance_analysis.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
