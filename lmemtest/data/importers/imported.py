"""The long table of an importer as runs, with notes of what was taken for what and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import check_columns
from lmemtest.data.runs import Runs, check_direction, with_notes
from lmemtest.errors import ArgumentError, DataError
from lmemtest.words import counted, format_level, listed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["imported", "needs_columns", "numbers_in", "one_of"]

ROLES = ("algorithm", "benchmark", "seed", "budget")


def needs_columns(table: pd.DataFrame, names: Sequence[str], *, shown: str, what: str, advice: str) -> None:
    """Refuse a table without the columns that its tool writes."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(
            f"{shown} is not {what}: it has no column {listed(map(repr, missing))}. Columns: {listed(table.columns)}. "
            f"{advice}"
        )


def one_of(found: Sequence[str], given: str | None, *, argument: str, what: str, shown: str) -> str:
    """The one that is given, or the only one there is."""
    if given is not None:
        return check_columns(given, found, argument=argument)[0]
    if len(found) == 1:
        return found[0]
    raise ArgumentError(f"{shown} holds {len(found)} {what}: {listed(found)}. Say which: {argument}={found[0]!r}.")


def numbers_in(column: pd.Series[Any], *, name: str, advice: str) -> np.ndarray:
    """A column as numbers, NaN where there is none; text that is no number is refused."""
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce")
    text = column[values.isna() & column.notna()]
    text = text[~text.map(lambda value: str(value).strip().lower() in ("", "nan", "none", "null", "na"))]
    if len(text):
        rows = f"{counted(len(text), 'row')} hold{'s' if len(text) == 1 else ''}"
        raise DataError(f"The column {name!r} must hold numbers, but {rows} something else: {text.iloc[0]!r}. {advice}")
    return np.asarray(values, dtype=float)


def imported(
    table: pd.DataFrame,
    *,
    source: str,
    score: str,
    direction: Any,
    algorithm: str,
    benchmark: str | None = None,
    seed: str | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
    ignore: Sequence[str] = (),
    within: Sequence[str] = (),
    seed_shared: bool = True,
    said: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    repeated: str | None = None,
    alone: str,
) -> Runs:
    """Runs of the columns that have a role or are ignored; the others are left out.

    `said` tells where roles came from that are no columns of the source; `alone` what to do if there is one algorithm
    only; `repeated` what to do with several rows of one run, told apart by `within`, None where there can be none.
    """
    check_direction(direction)
    given = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed, "budget": budget}
    roles = {role: name for role, name in given.items() if name is not None}
    kept = list(dict.fromkeys([*roles.values(), *metafeatures, score, *ignore]))
    table = table[kept].reset_index(drop=True)
    levels = table[algorithm].dropna().unique()
    if len(levels) == 1:
        raise DataError(
            f"{source} with one algorithm only, {format_level(levels[0])!r}: there is nothing to compare. {alone}"
        )
    if repeated is not None:
        _refuse_repeated(table, [*roles.values(), *metafeatures, *within], source, repeated)
    runs = Runs(
        table,
        score=score,
        direction=direction,
        benchmark=benchmark,
        seed=seed,
        budget=budget,
        algorithm=algorithm,
        metafeatures=tuple(metafeatures),
        ignore=tuple(ignore),
        seed_shared=seed_shared,
    )
    taken = {**roles, **({"metafeatures": listed(metafeatures)} if metafeatures else {}), "score": score}
    where = {role: (said or {}).get(role, name) for role, name in taken.items()}
    first = f"{source}: {'; '.join(f'{role} is {text}' for role, text in where.items())}; {direction}."
    return with_notes(runs, [first, *notes, *_missing(table, score, algorithm)])


def _refuse_repeated(table: pd.DataFrame, keys: list[str], source: str, advice: str) -> None:
    again = table.duplicated(keys)
    if again.any():
        row = table.loc[again, keys].iloc[0]
        run = ", ".join(f"{name} = {format_level(value)}" for name, value in row.items())
        raise DataError(
            f"{source}: {counted(int(again.sum()), 'row')} repeat{'s' if again.sum() == 1 else ''} a run that is there "
            f"already, such as {run}. {advice}"
        )


def _missing(table: pd.DataFrame, score: str, algorithm: str) -> list[str]:
    """A note on scores that are missing or infinite, by algorithm."""
    bad = ~np.isfinite(table[score].to_numpy(dtype=float, na_value=np.nan))
    if not bad.any():
        return []
    by = table.loc[bad, algorithm].value_counts(sort=False)
    each = listed(
        f"{format_level(name)} {count:,}" for name, count in sorted(by.items(), key=lambda item: str(item[0]))
    )
    return [
        f"{int(bad.sum()):,} of {len(table):,} rows have no finite score ({each}). They are kept, as missing: a failed "
        "run is a bad one, and leaving it out makes its algorithm look better than it is."
    ]
