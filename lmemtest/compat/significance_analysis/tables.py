"""Tables of the package's format: the types and the roles of their columns, and where they come from and go to.

The package fits its models to all rows of a table and never asks which of them belong to one run. The checks here must
know. A role that no argument gives has the column with the package's own name for it (``benchmark``, ``seed``,
``used_fidelity``, and ``prior`` for a metafeature), else the one that `lmemtest.bench.data.roles` finds by name or by
how it lays out the rows, with a warning; where two columns could be it, none is taken.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from lmemtest.bench.data.column import is_text
from lmemtest.bench.data.datasets import fetch_priorband
from lmemtest.bench.data.roles import Unnamed, unnamed_columns, with_roles
from lmemtest.bench.data.runs import Runs
from lmemtest.core.environment import extra_package
from lmemtest.core.frames import collected
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.core.words import listed
from lmemtest.errors import DataError, DataWarning

# The names that columns have in the package unless told otherwise.
ALGORITHM, VALUE, SEED, BUDGET, BENCHMARK, PRIOR = "algorithm", "value", "seed", "used_fidelity", "benchmark", "prior"
OWN = {"benchmark": BENCHMARK, "budget": BUDGET, "seed": SEED}
# The arguments of the package for the roles of this one.
ARGUMENTS = {
    "score": "loss_var",
    "algorithm": "algorithm_var",
    "benchmark": "benchmark_var",
    "seed": "seed_var",
    "budget": "fidelity_var",
    "metafeatures": "metafeature_var",
}
TARGET = Path("dataset") / "priorband_data.parquet"


def dataframe_validator(
    data: pd.DataFrame,
    algorithm_var: str = ALGORITHM,
    benchmark_var: str = BENCHMARK,
    loss_var: str = VALUE,
    fidelity_var: str = BUDGET,
    seed_var: str = SEED,
    verbose: bool = True,
    **extra_vars: str,
) -> tuple[pd.DataFrame, list[str]]:
    """Bring the columns of a table to the types that the analysis expects.

    Parameters
    ----------
    data : dataframe
        One row per run and budget. It is not changed.
    algorithm_var, benchmark_var, seed_var : str
        Columns of labels, which become ``object``. One that the table lacks is passed over.
    loss_var, fidelity_var : str
        Columns of numbers, which become ``float64`` unless they are float or int already.
    verbose : bool
        Print what was converted.
    **extra_vars : str
        Further columns: numbers become ``float64``, all else ``object``.

    Returns
    -------
    tuple of (pandas.DataFrame, list of str)
        A converted copy, and the columns that are valid. Every function of this module also takes the tuple.

    Raises
    ------
    ArgumentError
        If `data` is not a table.
    UnknownColumnError
        If one of `extra_vars` is not a column.

    Warns
    -----
    DataWarning
        If a column of numbers holds something else; it is left as it is and not listed.

    Examples
    --------
    >>> table = pd.DataFrame({"algorithm": ["A", "B"], "seed": [1, 2], "value": [1, 2]})
    >>> frame, columns = dataframe_validator(table)
    Converted column seed to object.
    >>> columns
    ['algorithm', 'seed', 'value']
    """
    frame = to_table(data).copy()
    check_columns(list(extra_vars.values()), frame.columns, argument="extra_vars")
    valid = []
    for name in (algorithm_var, seed_var, benchmark_var):
        if name in frame.columns:
            if verbose and not (frame[name].dtype == object or isinstance(frame[name].dtype, pd.StringDtype)):
                print(f"Converted column {name} to object.")
            frame[name] = frame[name].astype(object)
            valid.append(name)
    for name in (loss_var, fidelity_var):
        if name not in frame.columns:
            continue
        try:
            is_number = frame[name].dtype in (np.dtype(np.float64), np.dtype(np.int64))
            frame[name] = frame[name] if is_number else frame[name].astype(np.float64)
        except (TypeError, ValueError) as error:
            warnings.warn(
                f"the column {name!r} holds something that is not a number ({error}), so it stays as it is. Correct "
                "its values, or name the column of numbers.",
                DataWarning,
                stacklevel=2,
            )
            continue
        if verbose and not is_number:
            print(f"Converted column {name} to float.")
        valid.append(name)
    for name in extra_vars.values():
        frame[name] = frame[name].astype(np.float64 if is_numeric_dtype(frame[name]) else object)
        valid.append(name)
    return frame, valid


def to_table(data: Any) -> pd.DataFrame:
    """The pandas frame behind a table or the result of `dataframe_validator`: perhaps the caller's: do not change."""
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], list):
        data = data[0]
    if isinstance(data, pd.DataFrame):
        as_frame(data)  # refuses repeated column names
        return data
    return collected(as_frame(data)).to_pandas()


def convert_to_autorank(
    data: pd.DataFrame,
    algorithm_variable: str = ALGORITHM,
    value_variable: str = VALUE,
) -> pd.DataFrame:
    """Bring a table to the shape of the autorank package: a column per algorithm, high is good.

    Parameters
    ----------
    data : dataframe
        One row per run and budget.
    algorithm_variable, value_variable : str
        Columns of the algorithms and of the losses.

    Returns
    -------
    pandas.DataFrame
        Losses with the sign changed. A row holds the scores of the algorithms under the same conditions: benchmark,
        seed, budget and what else tells rows apart. NaN where an algorithm lacks them.

    Raises
    ------
    DataError
        If there is one algorithm, or nothing says which rows of two belong together and their numbers differ.

    Examples
    --------
    >>> table = pd.DataFrame({"algorithm": list("ABBA"), "seed": [1, 2, 1, 2], "value": [0.1, 0.4, 0.3, 0.2]})
    >>> convert_to_autorank(table)
         A    B
    0 -0.1 -0.3
    1 -0.2 -0.4
    """
    frame = to_table(data)
    check_columns([algorithm_variable, value_variable], frame.columns, argument="data")
    coded: dict[str, Any] = {BUDGET: pd.factorize(frame[BUDGET])[0]} if BUDGET in frame.columns else {}  # maybe words
    coded |= {value_variable: np.zeros(len(frame))}
    runs, columns = guessed(frame.assign(**coded), algorithm=algorithm_variable, loss=value_variable)
    roles = dict.fromkeys([*runs.study.columns, *runs.seeds, *(column.name for column in columns)])
    keys = [name for name in roles if name in frame.columns and name != algorithm_variable]
    count = frame[algorithm_variable].value_counts()
    if not keys and count.nunique() > 1:
        raise DataError(
            f"the algorithms have different numbers of rows ({count.min():,} to {count.max():,}) and no column says "
            "which of them belong together. Add the columns of benchmark and seed."
        )
    repeat = frame.groupby([algorithm_variable, *keys], observed=True, sort=False, dropna=False).cumcount()
    places = frame[keys].assign(**{"\0repeat": repeat.to_numpy()})
    row = places.groupby(list(places.columns), observed=True, sort=False, dropna=False).ngroup().to_numpy()
    column, names = pd.factorize(frame[algorithm_variable], use_na_sentinel=False)
    scores = np.full((row.max() + 1, len(names)), np.nan)
    scores[row, column] = -frame[value_variable].to_numpy(dtype=float)
    return pd.DataFrame(scores, columns=list(names))


# ---------------------------------------------------------------------- roles


def as_runs(
    data: Any, function: str, *, algorithm: str, loss: str, metafeature: str | None = None, **given: str | None
) -> Runs:
    """Give the columns of a table their roles; `given` are benchmark, budget and seed, None to be looked for.

    Metafeatures are looked for where none is given. Warns with `DataWarning` if a role was guessed, and says how to
    name it; raises `DataError` where several columns could have it.
    """
    frame, given = to_table(data), {role: given.get(role) for role in OWN}
    named = [name for name in (algorithm, loss, metafeature, *given.values()) if name is not None]
    check_columns(named, frame.columns, argument="data")
    runs, columns = guessed(frame, algorithm=algorithm, loss=loss, metafeature=metafeature, **given)
    for column in columns:
        rivals = [c.name for c in columns if not c.by_name and is_text(frame[c.name]) == is_text(frame[column.name])]
        if column.role in ("benchmark", "seed") and not column.by_name and len(rivals) > 1:
            raise DataError(
                f"no column has the name of a {column.role}, and {listed(map(repr, rivals))} could each be it. "
                f"Name the columns: {function}(..., {', '.join(f'{ARGUMENTS[role]}=...' for role in given)})."
            )
    others = [column.name for column in columns if column.role == "metafeatures" and metafeature is not None]
    columns = tuple(column for column in columns if column.name not in others)
    if others:
        warnings.warn(
            f"{listed(map(repr, others))} varies within runs too. {function} takes the mean of each run over "
            "it; to keep its levels apart, call it on the rows of one level.",
            DataWarning,
            stacklevel=3,
        )
    if columns:
        guesses = ", ".join(f"{c.name!r} for the {c.role.removesuffix('s')}" for c in columns)
        how = ", ".join(f"{ARGUMENTS[role]}=..." for role, name in given.items() if name is None)
        warnings.warn(
            f"no argument says what some columns are, so {function} takes {guesses}. If that is wrong, name the "
            f"columns, {function}(..., {how}), or leave those out of the table that play no part.",
            DataWarning,
            stacklevel=3,
        )
    runs = Runs(frame, **with_roles(runs, columns))
    loose = [] if runs.budget is not None or runs.seed is None else _numbers_within_runs(runs, frame)
    if loose:
        warnings.warn(
            f"rows of one run ({runs.seed}) differ in {listed(map(repr, loose))}, and each of them counts as a run "
            f"of its own. If they are one run at several budgets, name that column: {function}(..., fidelity_var=...).",
            DataWarning,
            stacklevel=3,
        )
    return runs


def guessed(
    frame: pd.DataFrame, *, algorithm: str, loss: str, metafeature: str | None = None, **given: str | None
) -> tuple[Runs, tuple[Unnamed, ...]]:
    """Runs with the roles that are given or have the package's own names; other columns that could have one."""
    frame = frame.infer_objects()  # the validator makes objects of seeds
    taken = {algorithm, loss, metafeature, *given.values()}
    own = {name for name in (*OWN.values(), PRIOR) if name in frame.columns and name not in taken}
    vary = {name for name in own if frame[name].nunique() > 1}
    roles: dict[str, Any] = {role: given.get(role) or (name if name in vary else None) for role, name in OWN.items()}
    roles["metafeatures"] = metafeature or (PRIOR if PRIOR in vary else ())
    runs = Runs(frame, score=loss, direction="minimize", algorithm=algorithm, **roles)
    columns = unnamed_columns(runs)
    filled = {column.role for column in columns}
    constant = {role: name for role, name in OWN.items() if not roles[role] and name in own and role not in filled}
    return Runs(frame, **{**runs.roles(), **constant}) if constant else runs, columns


def _numbers_within_runs(runs: Runs, frame: pd.DataFrame) -> list[str]:
    """Columns of numbers without a role that differ between rows with the same roles."""
    by = frame.groupby(list(dict.fromkeys([*runs.study.columns, *runs.seeds])), observed=True)
    return [name for name in runs.unused if not is_text(frame[name]) and (by[name].nunique() > 1).any()]


# ---------------------------------------------------------------------- download


def download_priorband_data() -> None:
    """Download the PriorBand table from figshare to ``dataset/priorband_data.parquet``.

    Nothing happens if the file is there. It appears only when it is complete; the table is the one that
    `lmemtest.datasets.fetch_priorband` downloads once, checks by its SHA-256, and keeps in its cache.

    Raises
    ------
    DownloadError
        No network, or an answer that is not the table.
    ArgumentError
        Without pooch, which downloads, or pyarrow, which writes parquet files.

    Examples
    --------
    >>> download_priorband_data()  # doctest: +SKIP
    """
    if TARGET.exists():
        return
    extra_package("pyarrow", extra="download", purpose=f"write {TARGET}", otherwise="Or use fetch_priorband().")
    table = fetch_priorband(select="all").to_frame()
    # written beside the target, then renamed, so that no one ever sees a part of the file
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET.parent) as folder:
        part = Path(folder) / TARGET.name
        table.to_parquet(part)
        os.replace(part, TARGET)
