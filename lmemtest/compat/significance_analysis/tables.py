"""Tables in the package's format: validation, what tells their rows apart, and autorank's shape."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from lmemtest.core.frames import collected
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.errors import DataError, DataWarning

# The names that columns have in the package unless told otherwise.
ALGORITHM = "algorithm"
VALUE = "value"
SEED = "seed"
BUDGET = "used_fidelity"
BENCHMARK = "benchmark"


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
        if name in frame.columns and _to_number(frame, name, verbose):
            valid.append(name)
    for name in extra_vars.values():
        frame[name] = frame[name].astype(np.float64 if is_numeric_dtype(frame[name]) else object)
        valid.append(name)
    return frame, valid


def _to_number(frame: pd.DataFrame, name: str, verbose: bool) -> bool:
    """Make a column of numbers one of type float; whether that was possible."""
    if frame[name].dtype in (np.dtype(np.float64), np.dtype(np.int64)):
        return True
    try:
        frame[name] = frame[name].astype(np.float64)
    except (TypeError, ValueError) as error:
        warnings.warn(
            f"the column {name!r} holds something that is not a number ({error}), so it stays as it is. Correct its "
            "values, or name the column of numbers.",
            DataWarning,
            stacklevel=3,
        )
        return False
    if verbose:
        print(f"Converted column {name} to float.")
    return True


def to_table(data: Any) -> pd.DataFrame:
    """The pandas frame behind a table or the result of `dataframe_validator`: perhaps the caller's: do not change."""
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], list):
        data = data[0]
    if isinstance(data, pd.DataFrame):
        as_frame(data)  # refuses repeated column names
        return data
    return collected(as_frame(data)).to_pandas()


def conditions(frame: pd.DataFrame, algorithm: str, loss: str, named: list[str]) -> list[str]:
    """The columns that say what a row is a score of, next to the algorithm.

    `named`, then others as long as two rows agree in all of them: labels first, then whole numbers, then other numbers
    of which all algorithms have the same. Columns that tell nothing more apart are left out, as are measurements.
    """
    ranks = {name: _rank(frame[name]) for name in frame.columns if name not in (algorithm, loss, *named)}
    others = [name for name, rank in ranks.items() if rank < 2 or same_values(frame, algorithm, name)]
    return [*named, *telling_apart(frame, [algorithm, *named], sorted(others, key=lambda name: ranks[name]))]


def _rank(column: pd.Series) -> int:
    if not is_numeric_dtype(column):
        return 0
    return 1 if bool((column % 1 == 0).all()) else 2


def telling_apart(frame: pd.DataFrame, keys: list[str], names: list[str]) -> list[str]:
    """Those of the columns, in their order, that divide the rows further than all before them."""
    found: list[str] = []
    count = groups(frame, keys)
    for name in names:
        if count == len(frame):
            break
        finer = groups(frame, [*keys, *found, name])
        if finer > count:
            found, count = [*found, name], finer
    return found


def same_values(frame: pd.DataFrame, algorithm: str, name: str) -> bool:
    """Whether all algorithms have the same values of a column."""
    sets = [frozenset(part) for _, part in frame.groupby(algorithm, observed=True)[name]]
    return all(values == sets[0] for values in sets)


def groups(frame: pd.DataFrame, keys: list[str]) -> int:
    """The number of different combinations of values."""
    return int(frame.groupby(keys, observed=True, sort=False, dropna=False).ngroups) if keys else 1


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
        If nothing in the table says which rows of two algorithms belong together and their numbers differ.

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
    named = [name for name in (BENCHMARK, SEED, BUDGET) if name in frame.columns and name != algorithm_variable]
    keys = conditions(frame, algorithm_variable, value_variable, [name for name in named if name != value_variable])
    count = frame[algorithm_variable].value_counts()
    if not keys and count.nunique() > 1:
        raise DataError(
            f"the algorithms have different numbers of rows ({count.min():,} to {count.max():,}) and no column says "
            "which of them belong together. Add the columns of benchmark and seed."
        )
    repeat = frame.groupby([algorithm_variable, *keys], observed=True, sort=False, dropna=False).cumcount()
    places = frame[keys].assign(**{"\0repeat": repeat.to_numpy()})
    row = places.groupby(list(places.columns), observed=True, sort=False, dropna=False).ngroup().to_numpy()
    out = {}
    for name in frame[algorithm_variable].unique():
        mine = (frame[algorithm_variable] == name).to_numpy()
        values = np.full(row.max() + 1, np.nan)
        values[row[mine]] = -frame.loc[mine, value_variable].to_numpy(dtype=float)
        out[name] = values
    return pd.DataFrame(out)
