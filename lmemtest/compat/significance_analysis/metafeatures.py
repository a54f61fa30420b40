"""The metafeature analysis in the package's form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from lmemtest._validate import check_columns
from lmemtest.compat.significance_analysis import r_names
from lmemtest.compat.significance_analysis.tables import (
    ALGORITHM,
    BENCHMARK,
    BUDGET,
    SEED,
    VALUE,
    as_runs,
    to_table,
)
from lmemtest.inference.reference import format_level
from lmemtest.recipes import metafeatures as recipe

VARIANT = "benchmark_variant"
_MISSING = ("2.5_ci", "97.5_ci", "SE", "DF")


def metafeature_analysis(
    dataset: pd.DataFrame,
    algorithms: tuple[str, str],
    metafeature_var: str,
    algorithm_var: str = ALGORITHM,
    benchmark_var: str = BENCHMARK,
    loss_var: str = VALUE,
    fidelity_var: str = BUDGET,
    path: str = "",
    plot: bool = False,
    verbose: bool = True,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare which of two algorithms wins between the levels of a metafeature, on each benchmark.

    Parameters
    ----------
    dataset : dataframe
        One row per run and budget, with a column ``seed``. It is not changed.
    algorithms : tuple of two str
        A win of the first counts -1 (its losses are lower), a win of the second 1, neither 0.
    metafeature_var : str
        Column of the levels.
    algorithm_var, benchmark_var, loss_var, fidelity_var : str
        Columns.
    path : str
        Where to save the wins at every benchmark, level and budget, as parquet.
    plot : bool
        Draw the outcomes and the clusters of the benchmarks.
    verbose : bool
        Print the conclusion.

    Returns
    -------
    tuple of (pandas.DataFrame, pandas.DataFrame)
        Estimates: ``benchmark_variant`` ("benchmark x level") and ``Estimate``, the mean win over the budgets.
        Contrasts: one row per pair of levels of a benchmark, with ``Contrast``, ``Estimate`` and ``P-val`` (sign flips
        of whole runs, Holm over all contrasts) and ``Sig``. Standard errors, intervals and degrees of freedom are NaN:
        budgets of the same runs are no sample from which they could be had.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a name is unknown.
    DataError
        If the metafeature is constant within benchmarks, an algorithm is missing on a level, or there is one run only.

    See Also
    --------
    lmemtest.metafeature_analysis : the same analysis with the benchmarks that are singled out, and its sentences.
    lmemtest.metafeature_model : one model of the losses themselves.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(model="forest").to_frame()
    >>> names = {"loss_var": "loss", "fidelity_var": "budget", "verbose": False}
    >>> estimates, contrasts = metafeature_analysis(data, ("HB+prior", "HB"), "prior", **names)
    >>> contrasts.loc[0, "Contrast"], float(contrasts.loc[0, "Estimate"].round(2))
    ('(forest-cancer x bad) - (forest-cancer x good)', 0.9)
    """
    frame = to_table(dataset)
    named = [algorithm_var, benchmark_var, loss_var, fidelity_var, metafeature_var]
    check_columns(named, frame.columns, argument="dataset")
    # all else must be the same within a benchmark and level: seeds are the runs
    roles = [*named, *([SEED] if SEED in frame.columns and SEED not in named else [])]
    runs = as_runs(
        frame[list(dict.fromkeys(roles))],
        algorithm=algorithm_var,
        loss=loss_var,
        benchmark=benchmark_var,
        budget=fidelity_var,
        metafeatures=(metafeature_var,),
    )
    levels = list(frame[metafeature_var].dropna().unique())
    found = recipe.metafeature_analysis(
        runs, algorithms=algorithms, metafeature=metafeature_var, levels=levels, rng=0, verbose=verbose
    )
    if path:
        _wins(found).to_parquet(path if path.endswith(".parquet") else f"{path}.parquet")
    if plot:
        from lmemtest.plots import metafeature_plot

        metafeature_plot(found)
    order = _variants(frame[frame[algorithm_var].isin(list(algorithms))], benchmark_var, metafeature_var)
    return _estimates(found, order), _contrasts(found, order)


def _variants(frame: pd.DataFrame, benchmark: str, metafeature: str) -> dict[tuple[Any, Any], int]:
    """Benchmarks at their levels in the order of their first rows, which is how differences are directed."""
    pairs = frame[[benchmark, metafeature]].drop_duplicates()
    return {pair: i for i, pair in enumerate(pairs.itertuples(index=False, name=None))}


def _variant(benchmark: Any, level: Any) -> str:
    return f"{format_level(benchmark)} x {format_level(level)}"


def _wins(found: recipe.MetafeatureAnalysis) -> pd.DataFrame:
    """Outcomes at every point, in the columns that the package saves."""
    points = found.points[found.points["outcome"].notna()]
    benchmark = [format_level(value) for value in points["benchmark"]]
    level = [format_level(value) for value in points["level"]]
    return pd.DataFrame(
        {
            VARIANT: [f"{b} x {v}" for b, v in zip(benchmark, level, strict=True)],
            "wins": 0.0 - points["outcome"].to_numpy(dtype=float),
            "fidelity": points["budget"].to_numpy(),
            "benchmark": benchmark,
            "metafeature": level,
        }
    )


def _estimates(found: recipe.MetafeatureAnalysis, order: dict[tuple[Any, Any], int]) -> pd.DataFrame:
    rows = found.instances[found.instances["outcome"].notna()]
    at = [order[pair] for pair in zip(rows["benchmark"], rows["level"], strict=True)]
    rows = rows.iloc[np.argsort(at)]
    names = [_variant(b, v) for b, v in zip(rows["benchmark"], rows["level"], strict=True)]
    table = {VARIANT: pd.Categorical(names, categories=names), "Estimate": 0.0 - rows["outcome"].to_numpy(dtype=float)}
    return pd.DataFrame(table | dict.fromkeys(_MISSING, np.full(len(names), np.nan)))


def _contrasts(found: recipe.MetafeatureAnalysis, order: dict[tuple[Any, Any], int]) -> pd.DataFrame:
    """Wins of the second algorithm at the variant that comes first in the data, minus those at the other."""
    out = []
    for row in found.to_frame().to_dict("records"):
        late, early = (row["benchmark"], row["level"]), (row["benchmark"], row["reference"])
        first, second, sign = (early, late, 1.0) if order[early] < order[late] else (late, early, -1.0)
        label = r_names.contrast(_variant(*first), _variant(*second))
        p = float(row["p_value"])
        out.append((order[first], order[second], label, sign * row["contrast"] + 0.0, p, r_names.stars(p)))
    table = pd.DataFrame(sorted(out), columns=["a", "b", "Contrast", "Estimate", "P-val", "Sig"]).drop(
        columns=["a", "b"]
    )
    table = table.assign(**dict.fromkeys((*_MISSING, "T-stat"), np.nan)).astype({"Contrast": object, "Sig": object})
    return table[["Contrast", "Estimate", *_MISSING, "T-stat", "P-val", "Sig"]]
