"""Wide tables of published results: a row per data set, a column per algorithm, each number a mean of some runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.column import number_in, sums_up
from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.sources import frame_of, names_of, parts_of
from lmemtest.core.caller import advice, named
from lmemtest.core.validate import check_names, check_positive_int
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError

_FAILED = ("fail", "failed", "oom", "timeout")


def wide(
    table: Any,
    *,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    averaged: int | None = None,
    benchmark: str | None = None,
    algorithms: Sequence[str] | None = None,
    score: str = "score",
) -> Runs:
    """Runs of a table of results as papers print it: a row per data set, a column per algorithm.

    `Runs.from_wide` does the same with numbers alone. This takes cells such as ``0.93 ± 0.02``, ``0.93 (0.02)`` and
    ``**0.93**``, leaves out rows of averages and ranks, and says what the numbers cannot tell.

    Parameters
    ----------
    table : dataframe or path
        The table, in memory or in a file.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good. Required.
    averaged : int, optional
        How many runs each number is the mean of, for the notes.
    benchmark : str, optional
        The column that names the rows. By default the first one.
    algorithms : sequence of str, optional
        The columns of scores. By default all others.
    score : str, default "score"
        What to call the column of the scores.

    Returns
    -------
    Runs
        One row per number: the mean. What stands behind ± is in the column ``spread``, without a role.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule.
    DataError
        If a cell is no number, or fewer than two columns of scores are left.

    Examples
    --------
    >>> table = {"data": ["iris", "wine", "Average"], "RF": ["0.95 ± 0.01", "0.97 ± 0.02", "0.96"],
    ...          "NN": ["**0.96**", "", "0.96"]}
    >>> wide(table, direction="maximize").to_frame()
       data algorithm  score  spread
    0  iris        RF   0.95    0.01
    1  wine        RF   0.97    0.02
    2  iris        NN   0.96     NaN
    3  wine        NN    NaN     NaN
    """
    direction = required_direction(direction)
    if averaged is not None:
        averaged = check_positive_int(averaged, "averaged")
    if not isinstance(score, str) or not score:
        raise ArgumentError(f"{named('score')} must be a name for the column of scores, got {score!r}.")
    parts = parts_of(table, argument="table", keys=(), is_content=lambda thing: hasattr(thing, "keys"))
    if len(parts) > 1:
        raise ArgumentError(f"table must be one table, got {len(parts)}. Join them first, or give one after the other.")
    frame = frame_of(parts[0], argument="table")
    names = names_of(frame)
    if frame.empty:
        raise DataError("table must have a column that names its rows, and one per algorithm, but it is empty.")
    rows = names[0] if benchmark is None else benchmark
    if not isinstance(rows, str) or rows not in names:
        raise ArgumentError(
            f"{named('benchmark')} must be a column of the table, got {benchmark!r}. Columns: {listed(names)}."
        )
    if parts[0].path is not None:  # again, with the names of rows as they are written: 01 and NA
        frame = frame_of(parts[0], argument="table", labels=[rows])
    frame = frame.set_axis(names, axis=1)
    others = [name for name in names if name != rows]
    chosen = check_names(others if algorithms is None else algorithms, "algorithms")
    is_summary = frame[rows].map(lambda name: isinstance(name, str) and sums_up(name))
    summaries = frame.loc[is_summary, rows].tolist()
    frame = frame[~is_summary].reset_index(drop=True)
    twice = frame.loc[frame[rows].duplicated(), rows].unique().tolist()
    if twice:
        raise DataError(
            f"The column {rows!r} must name every row by itself, but {listed(twice, most=3)} "
            f"{'stands' if len(twice) == 1 else 'stand'} in several. Give a column that distinguishes them, "
            + advice("argument", name="benchmark")
            + ", or average them first."
        )
    cells = {name: [_cell(value, name) for value in frame[name]] for name in chosen if name in frame}
    means = pd.DataFrame({name: [mean for mean, _ in found] for name, found in cells.items()}, dtype=float)
    spreads = np.array([[spread for _, spread in found] for found in cells.values()], dtype=float)
    runs = Runs.from_wide(
        pd.concat([frame[[rows]], means], axis=1),
        direction=direction,
        score=score,
        benchmark=rows,
        algorithms=chosen,
    )
    if not np.isfinite(means.to_numpy()).any():
        raise DataError("table has no finite score: there is nothing to compare. Does its first column name the rows?")
    notes = [
        f"A table of results: benchmark is {rows}; algorithms are columns; score is the number in a cell; {direction}."
    ]
    if summaries:
        notes.append(f"Left out: rows that sum up the others ({listed(summaries)}).")
    if np.isfinite(spreads).any():
        long = runs.to_frame().assign(spread=spreads.ravel())
        runs = Runs(long, **{**runs.roles(), "ignore": ("spread",)})
        notes.append(
            "What stands behind a number (a standard deviation, or error: the table does not say) is in the column "
            "spread and is not used."
        )
    many = "an unknown number of" if averaged is None else f"{averaged:,}"
    notes.append(
        f"Each number is taken as the mean of {many} runs, so the variation between runs is not in the table: "
        "comparisons are over benchmarks, and nothing can be said of single runs or seeds."
    )
    missing = int(means.isna().to_numpy().sum())
    if missing:
        have = "has" if missing == 1 else "have"
        notes.append(
            f"{missing:,} of {means.size:,} cells {have} no score. Where runs failed, say what a failure counts; drop "
            "them only if their scores are missing by chance."
        )
    return runs.remembering(notes=notes)


def _cell(value: Any, column: str) -> tuple[float, float]:
    """The number in a cell and the one behind ± or in brackets."""
    found = number_in(value)
    if found is not None:
        return found[1:]
    if str(value).strip().lower() in _FAILED:
        return float("nan"), float("nan")
    raise DataError(
        f"The column {column!r} holds {str(value)!r}, which is no number such as 0.93 or 0.93 ± 0.02. If it is no "
        f"algorithm, name those that are: {advice('algorithms')}."
    )
