"""The metafeature analysis in the package's form."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from lmemtest._validate import check_columns, listed
from lmemtest.compat.significance_analysis import r_names
from lmemtest.compat.significance_analysis.messages import errors_of
from lmemtest.compat.significance_analysis.roles import find_roles, warn
from lmemtest.compat.significance_analysis.tables import ALGORITHM, BENCHMARK, BUDGET, VALUE, to_table
from lmemtest.data.runs import Runs
from lmemtest.errors import DataWarning
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
    *,
    seed_var: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare which of two algorithms wins between the levels of a metafeature, on each benchmark.

    Parameters
    ----------
    dataset : dataframe
        One row per run and budget. It is not changed.
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
    seed_var : str, optional
        Column that tells the runs apart, which the package does not know. By default it is looked for by name and
        content, as the page for users of the package says.

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

    Warns
    -----
    DataWarning
        If the column of the seeds was found by guess.

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
    check_columns([*named, *([seed_var] if seed_var is not None else [])], frame.columns, argument="dataset")
    with errors_of("metafeature_analysis", "dataset"):
        runs = _runs(frame, algorithm_var, benchmark_var, loss_var, fidelity_var, metafeature_var, seed_var)
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


def _runs(
    frame: pd.DataFrame, algorithm: str, benchmark: str, loss: str, budget: str, metafeature: str, seed: str | None
) -> Runs:
    """The runs, which are told apart by their seeds; all other columns play no part."""
    given = {"benchmark": benchmark, "budget": budget, "seed": seed}
    roles = find_roles(
        frame, "metafeature_analysis", algorithm=algorithm, loss=loss, given=given, metafeatures=[metafeature]
    )
    others = roles.metafeatures[1:]
    if others:
        warnings.warn(
            f"{listed(map(repr, others))} varies within runs too. metafeature_analysis takes the mean of each run over "
            "it; to keep its levels apart, call it on the rows of one level.",
            DataWarning,
            stacklevel=3,
        )
    roles.guessed = {name: role for name, role in roles.guessed.items() if role == "seed"}
    roles.loose = []
    if seed is None:
        warn(roles, "metafeature_analysis", ["seed_var"], level=4)
    return Runs(
        frame, score=loss, direction="minimize", algorithm=algorithm, metafeatures=(metafeature,), **roles.columns
    )


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
