"""Tables of the package's format: the types and the roles of their columns, and where they come from and go to.

The package fits its models to all rows of a table and never asks which of them belong to one run. The checks here must
know. A role that no argument gives is looked for in this order:

1. the name that the package uses: ``benchmark``, ``seed``, ``used_fidelity``, and ``prior`` for a metafeature;
2. other usual names of the same thing (`NAMES`);
3. if no column is named like a seed, the column of whole numbers that alone makes all rows different is the seed;
4. any other column that tells rows apart, with values that algorithms have in common, is a metafeature.

Only an argument or its name makes a column the budget: a seed that is taken for it leaves one run per algorithm.
"""

from __future__ import annotations

import http.client
import os
import re
import tempfile
import urllib.request
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from lmemtest.bench.data.datasets import checked_priorband
from lmemtest.bench.data.runs import Runs
from lmemtest.core.frames import collected
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.core.words import listed
from lmemtest.errors import DataError, DataWarning, DownloadError

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
_BENCHMARK = ("benchmark", "task", "dataset", "problem", "instance", "function")
# Compared as `_plain` writes them. The first that a table has, and that varies, is taken.
NAMES: Mapping[str, tuple[str, ...]] = {
    "benchmark": (*_BENCHMARK, *(f"{name}name" for name in _BENCHMARK), *(f"{name}id" for name in _BENCHMARK)),
    "budget": (
        *("usedfidelity", "fidelity", "budget", "epoch", "iter", "iteration", "step"),
        *("evaluation", "eval", "nevaluation", "neval"),
    ),
    "seed": (
        *("seed", "seedid", "randomseed", "randomstate"),
        *("rep", "repeat", "repetition", "replicate", "replication", "run", "runid"),
    ),
}
URL = "https://api.figshare.com/v2/file/download/49732203"
TARGET = Path("dataset") / "priorband_data.parquet"
_BY_HAND = f"Download that address on a machine with a network and save the file as {TARGET.as_posix()}."
_TIMEOUT = 60.0  # seconds without an answer
_MARK = b"PAR1"  # first and last bytes of a parquet file


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


def conditions(frame: pd.DataFrame, algorithm: str, loss: str, named: list[str]) -> list[str]:
    """The columns that say what a row is a score of, next to the algorithm.

    `named`, then others as long as two rows agree in all of them: labels first, then whole numbers, then other numbers
    of which all algorithms have the same. Columns that tell nothing more apart are left out, as are measurements.
    """

    def rank(column: pd.Series) -> int:
        return 0 if not is_numeric_dtype(column) else 1 if bool((column % 1 == 0).all()) else 2

    ranks = {name: rank(frame[name]) for name in frame.columns if name not in (algorithm, loss, *named)}
    others = [name for name, rank in ranks.items() if rank < 2 or same_values(frame, algorithm, name)]
    return [*named, *telling_apart(frame, [algorithm, *named], sorted(others, key=lambda name: ranks[name]))]


def telling_apart(frame: pd.DataFrame, keys: list[str], names: list[str]) -> list[str]:
    """Those of the columns, in their order, that divide the rows further than all before them."""
    dividing, count = list[str](), groups(frame, keys)
    for name in names:
        finer = count if count == len(frame) else groups(frame, [*keys, *dividing, name])
        if finer > count:
            dividing, count = [*dividing, name], finer
    return dividing


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
    column, names = pd.factorize(frame[algorithm_variable], use_na_sentinel=False)
    scores = np.full((row.max() + 1, len(names)), np.nan)
    scores[row, column] = -frame[value_variable].to_numpy(dtype=float)
    return pd.DataFrame(scores, columns=list(names))


# ---------------------------------------------------------------------- roles


def as_runs(data: Any, function: str, *, algorithm: str, loss: str, **given: str | None) -> Runs:
    """Give the columns of a table their roles; `given` are benchmark, budget and seed, None to be looked for.

    Warns with `DataWarning` if a role was guessed, and says how to name it.
    """
    frame = to_table(data)
    given = {role: given.get(role) for role in OWN}
    named = [algorithm, loss, *(name for name in given.values() if name is not None)]
    check_columns(named, frame.columns, argument="data")
    roles, guessed, loose = find_roles(frame, function, algorithm=algorithm, loss=loss, given=given)
    warn(function, guessed, [ARGUMENTS[role] for role in given if given[role] is None], level=4)
    if loose:
        warnings.warn(
            f"rows of one run ({roles['seed']}) differ in {listed(map(repr, loose))}, and each of them counts as a run "
            f"of its own. If they are one run at several budgets, name that column: {function}(..., fidelity_var=...).",
            DataWarning,
            stacklevel=3,
        )
    return Runs(frame, score=loss, direction="minimize", algorithm=algorithm, **roles)


def find_roles(
    frame: pd.DataFrame,
    function: str,
    *,
    algorithm: str,
    loss: str,
    given: Mapping[str, str | None],
    metafeatures: Iterable[str] = (),
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Find the roles that arguments leave open, by the rule above, or raise `DataError` where several columns fit.

    Returns the roles; the columns whose role neither an argument nor the package's own name gave, with that role; and
    columns of numbers that tell rows of one run apart, but whose values the algorithms do not share.
    """
    columns, levels, guessed = dict(given), list(metafeatures), dict[str, str]()

    def keys() -> list[str]:
        """The algorithm and all columns that have a role."""
        return [algorithm, *(name for name in columns.values() if name is not None), *levels]

    candidates = [name for name in frame.columns if name not in (loss, *keys()) and _can_be_grouped(frame[name])]

    def free() -> list[str]:
        """Columns that have no role yet."""
        return [name for name in candidates if name not in keys()]

    def dividing(names: list[str]) -> list[str]:
        """Those of the columns that divide the rows further than the roles and all before them."""
        return telling_apart(frame, keys(), names)

    def shared(names: list[str]) -> list[str]:
        return [name for name in names if same_values(frame, algorithm, name)]

    def joins_budgets(name: str) -> bool:
        """Whether a seed comes back at the other budgets of its run."""
        budget = columns["budget"]
        if budget is None or frame[budget].nunique() < 2:
            return True
        run = [key for key in [*keys(), name] if key != budget]
        return groups(frame, run) < groups(frame, [*run, budget])

    def is_number(name: str) -> bool:
        """Whether a column holds numbers as such, not as text."""
        return is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])

    # by name: budgets must be numbers, and seeds come back, unless they have the package's own name
    for role in NAMES:
        if columns[role] is not None:
            continue
        names = [name for name in free() if _plain(name) in NAMES[role]]
        names.sort(key=lambda name: (name != OWN[role], NAMES[role].index(_plain(name))))
        fits = {"seed": joins_budgets, "budget": is_number}.get(role, lambda _: True)
        names = [name for name in names if name == OWN[role] or fits(name)]
        varying = [name for name in names if frame[name].nunique() > 1]
        for name in (varying or names)[:1]:
            columns[role] = name
            if name != OWN[role] and varying:
                guessed[name] = role

    # labels are metafeatures, or the benchmark if there is none yet and only one can be it
    labels = [name for name in free() if _is_label(frame[name]) and _plain(name) not in NAMES["seed"]]
    labels.sort(key=lambda name: (name != PRIOR, -frame[name].nunique()))  # the finest before those it contains
    by_value = {name: frame.groupby(name, observed=True)[algorithm] for name in labels}
    # names of runs and the like occur with one algorithm each
    labels = dividing([name for name in labels if (by_value[name].nunique() > 1).any()])
    others = [name for name in labels if name != PRIOR]
    if columns["benchmark"] is None and others:
        if len(others) > 1:
            raise DataError(
                f"no column has the name of a benchmark, and {listed(map(repr, others))} could each be it. Name it: "
                f"{function}(..., benchmark_var=...)."
            )
        columns["benchmark"] = others[0]
        guessed[others[0]] = "benchmark"
        labels, others = [name for name in labels if name == PRIOR], []
    levels += labels
    guessed |= dict.fromkeys(others, "metafeature")

    # the seed is the column of whole numbers that alone makes all rows different: one of which all algorithms have the
    # same goes first, as the others may be numbers of rows; several that do so together are a seed and something else
    if columns["seed"] is None and groups(frame, keys()) < len(frame):
        whole = [name for name in free() if _is_number(frame[name])]
        whole = [name for name in whole if (pd.to_numeric(frame[name]) % 1 == 0).all()]
        whole.sort(key=lambda name: -frame[name].nunique())
        seeds = dividing(shared(whole))
        if len(seeds) > 1:
            budget = "" if columns["budget"] else ", and the budget with fidelity_var= if one of them is that"
            raise DataError(
                f"no column has the name of a seed, and {listed(map(repr, seeds))} distinguish rows only together. "
                f"Name the seed, {function}(..., seed_var=...){budget}."
            )
        for name in seeds or dividing(whole):
            if groups(frame, [*keys(), name]) == len(frame) and joins_budgets(name):
                columns["seed"] = name
                guessed[name] = "seed"
                break

    # numbers of which all algorithms have the same are metafeatures; others are measurements, or budgets
    numbers = [name for name in free() if _is_number(frame[name]) and _plain(name) not in NAMES["seed"]]
    common = shared(numbers)
    numbered = dividing(common)
    levels += numbered
    guessed |= dict.fromkeys(numbered, "metafeature")
    has_budgets = columns["seed"] is None or columns["budget"] is not None
    loose = [] if has_budgets else dividing([name for name in numbers if name not in common])
    return {**columns, "metafeatures": tuple(levels)}, guessed, loose


def warn(function: str, guessed: Mapping[str, str], arguments: list[str], *, level: int) -> None:
    """Say which columns were taken for what, and the way to say otherwise."""
    if guessed:
        guesses = ", ".join(f"{name!r} for the {role}" for name, role in guessed.items())
        how = ", ".join(f"{name}=..." for name in arguments)
        warnings.warn(
            f"no argument says what some columns are, so {function} takes {guesses}. If that is wrong, name the "
            f"columns, {function}(..., {how}), or leave those out of the table that play no part.",
            DataWarning,
            stacklevel=level,
        )


def _plain(name: Any) -> str:
    """A name without case, spaces, hyphens, underscores and the s of a plural."""
    return re.sub(r"[\s_-]+", "", str(name)).lower().removesuffix("s")


def _can_be_grouped(column: pd.Series) -> bool:
    try:
        column.nunique()
    except TypeError:  # lists and dicts have no hash
        return False
    return True


def _is_number(column: pd.Series) -> bool:
    """Numbers, also as text or objects: the validator makes objects of seeds."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        return infer_dtype(column) != "boolean" and bool(pd.to_numeric(column, errors="coerce").notna().all())
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _is_label(column: pd.Series) -> bool:
    return not _is_number(column) and not is_datetime64_any_dtype(column)


# ---------------------------------------------------------------------- download


def download_priorband_data() -> None:
    """Download the PriorBand table from figshare to ``dataset/priorband_data.parquet``.

    Nothing happens if the file is there. It appears only when it is complete and holds the numbers of the study, which
    is checked as `lmemtest.datasets.fetch_priorband` does: by their SHA-256.

    Raises
    ------
    DownloadError
        No network, an answer that is not a parquet file, or one with another table.

    Examples
    --------
    >>> download_priorband_data()  # doctest: +SKIP
    """
    if TARGET.exists():
        return
    try:
        with urllib.request.urlopen(URL, timeout=_TIMEOUT) as response:
            content = response.read()
    except (OSError, http.client.HTTPException) as error:  # of the network, time-outs, answers that break off
        raise DownloadError(f"could not download the PriorBand table from {URL} ({error}). {_BY_HAND}") from error
    if len(content) < 3 * len(_MARK) or not (content.startswith(_MARK) and content.endswith(_MARK)):
        raise DownloadError(
            f"{URL} answered with {len(content):,} bytes that are not a complete parquet file, so nothing was saved. "
            f"{_BY_HAND}"
        )
    # written beside the target, then renamed, so that no one ever sees a part of the file
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET.parent) as folder:
        part = Path(folder) / TARGET.name
        part.write_bytes(content)
        try:
            checked_priorband(part, "study")
        except DownloadError as error:
            raise DownloadError(f"what {URL} answered with was not saved. {error}") from error
        os.replace(part, TARGET)
