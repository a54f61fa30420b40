"""The metafeature analysis in the package's form."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.instance_contrasts import InstanceContrasts, instance_contrasts
from lmemtest.bench.benchmark.metafeature_outcomes import MetafeatureOutcomes, metafeature_outcomes
from lmemtest.bench.benchmark.pair_scores import pair_scores
from lmemtest.bench.data.runs import Runs
from lmemtest.compat.significance_analysis import r_names
from lmemtest.compat.significance_analysis.diagram import VARIANT, cd_diagram
from lmemtest.compat.significance_analysis.messages import errors_of
from lmemtest.compat.significance_analysis.roles import find_roles, warn
from lmemtest.compat.significance_analysis.tables import ALGORITHM, BENCHMARK, BUDGET, VALUE, to_table
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_columns
from lmemtest.core.words import format_level, listed, p_text
from lmemtest.errors import DataWarning


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
    """Compare which of two algorithms wins between all variants: the benchmarks, each at the levels of a metafeature.

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
        Draw the critical-difference diagram of the variants.
    verbose : bool
        Print the conclusion on each benchmark and over all, with the sign of the tables.
    seed_var : str, optional
        Column that tells the runs apart, which the package does not know. By default it is looked for by name and
        content, with a `DataWarning` where that is a guess.

    Returns
    -------
    tuple of (pandas.DataFrame, pandas.DataFrame)
        Estimates: ``benchmark_variant`` ("benchmark x level"), ``Estimate``, the mean win over the budgets, with its
        95 % interval, standard error and degrees of freedom. Contrasts: one row per pair of variants, with
        ``Contrast``, ``Estimate``, interval, ``SE``, ``DF``, ``T-stat``, ``P-val`` and ``Sig``. Standard errors are
        those of repeating whole runs, as budgets of the same runs are no sample; intervals and p-values hold for all
        pairs at once (Games-Howell: Tukey's range with the error and the degrees of freedom of each pair).

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a name is unknown.
    DataError
        If the metafeature is constant within benchmarks, an algorithm is missing on a level, or there is one run only.

    See Also
    --------
    lmemtest.metafeature_effect : contrasts within benchmarks alone, those that are singled out, and sentences; or one
        model of the losses themselves.

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
        # a win of the second counts 1, and what comes first in the data is the minuend
        against = tuple(reversed(algorithms)) if len(algorithms) == 2 else algorithms
        levels = list(frame[metafeature_var].dropna().unique())[::-1]
        found = metafeature_outcomes(runs, algorithms=against, metafeature=metafeature_var, levels=levels, rng=0)
        compared = instance_contrasts(pair_scores(runs, against, metafeature_var, levels), rng=np.random.default_rng(0))
    if verbose:
        print("\n".join(_lines(found)))
    if path:
        _wins(found).to_parquet(path if path.endswith(".parquet") else f"{path}.parquet")
    # a variant comes before those that come later in the data, which is how differences are directed
    both = frame.loc[frame[algorithm_var].isin(list(algorithms)), [benchmark_var, metafeature_var]].drop_duplicates()
    tables = _tables(compared, {pair: i for i, pair in enumerate(both.itertuples(index=False, name=None))})
    if plot:
        cd_diagram(tables, system_id=VARIANT)
    return tables


def _lines(result: MetafeatureOutcomes) -> list[str]:
    lines = []
    for row in result.contrasts.to_dict("records"):
        odd = ", singled out" if row["singled_out"] else ""
        name, level, reference = (format_level(row[key]) for key in ("benchmark", "level", "reference"))
        lines.append(
            f"=> {name}: {level} - {reference} = {written(row['contrast'], '.3f')}, {p_text(row['p_value'])}, "
            f"{row['decision']}{odd}."
        )
    return [*lines, *(f"=> {text}" for text in result.sentences())]


def _runs(
    frame: pd.DataFrame, algorithm: str, benchmark: str, loss: str, budget: str, metafeature: str, seed: str | None
) -> Runs:
    """The runs, which are distinguished by their seeds; all other columns play no part."""
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
    seeds = {name: role for name, role in roles.guessed.items() if role == "seed"}
    roles = replace(roles, metafeatures=[metafeature], guessed=seeds, loose=[])
    if seed is None:
        warn(roles, ["seed_var"], level=4)
    return roles.runs()


def _variant(benchmark: Any, level: Any) -> str:
    return f"{format_level(benchmark)} x {format_level(level)}"


def _wins(found: MetafeatureOutcomes) -> pd.DataFrame:
    """Outcomes at every point, in the columns that the package saves."""
    points = found.points[found.points["outcome"].notna()]
    pairs = list(zip(points["benchmark"], points["level"], strict=True))
    return pd.DataFrame(
        {
            VARIANT: [_variant(*pair) for pair in pairs],
            "wins": points["outcome"].to_numpy(dtype=float),
            "fidelity": points["budget"].to_numpy(),
            "benchmark": [format_level(benchmark) for benchmark, _ in pairs],
            "metafeature": [format_level(level) for _, level in pairs],
        }
    )


def _tables(found: InstanceContrasts, order: dict[tuple[Any, Any], int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Estimates and contrasts, a variant before those that come later in the data."""
    keys = list(zip(found.instances["benchmark"], found.instances["level"], strict=True))
    place = np.array([order[key] for key in keys])
    first = np.argsort(place, kind="stable")
    names = np.array([_variant(*key) for key in keys], dtype=object)
    numbers = r_names.numbers(found.instances.rename(columns={"outcome": "estimate"}).iloc[first])
    estimates = numbers.reset_index(drop=True)
    estimates.insert(0, VARIANT, pd.Categorical(names[first], categories=names[first]))
    left, right = found.pairs["left"].to_numpy(), found.pairs["right"].to_numpy()
    swap = place[left] > place[right]
    left, right, sign = np.where(swap, right, left), np.where(swap, left, right), np.where(swap, -1.0, 1.0)
    ends = [sign * found.pairs[end].to_numpy() for end in ("ci_low", "ci_high")]
    contrasts = r_names.numbers(
        found.pairs.assign(
            estimate=sign * found.pairs["contrast"] + 0.0,
            ci_low=np.minimum(*ends),
            ci_high=np.maximum(*ends),
            t_ratio=sign * found.pairs["t_ratio"] + 0.0,
        )
    )
    texts = [r_names.contrast(names[i], names[j]) for i, j in zip(left, right, strict=True)]
    contrasts.insert(0, "Contrast", pd.Series(texts, index=contrasts.index, dtype=object))
    return estimates, contrasts.iloc[np.lexsort((place[right], place[left]))].reset_index(drop=True)
