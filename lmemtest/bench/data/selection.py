"""Some of the rows: of runs, with the same roles (`Runs.filter`, `drop_missing`, `drop_duplicates`), and of a table.

Conditions on rows as text, such as ``prior=good`` or ``epoch<=27``, are compared by type, never evaluated.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw

from lmemtest.bench.data.requirements import SINGLE_ROLES
from lmemtest.bench.data.study import subset
from lmemtest.core.caller import named
from lmemtest.core.validate import check_choice, check_columns
from lmemtest.core.words import joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs


def filtered(runs: Runs, conditions: Mapping[str, Any]) -> Runs:
    """`Runs.filter`: the definition is there."""
    columns = runs.columns
    roles = {role: getattr(runs, role) for role in SINGLE_ROLES if role not in columns and getattr(runs, role)}
    if len(runs.family) == 1 and "family" not in columns:
        roles["family"] = runs.family[0]
    conditions = {roles.get(name, name): wanted for name, wanted in conditions.items()}
    check_columns(tuple(conditions), columns, argument="filter")
    frame, wanted = runs.frame, dict[str, Any]()
    for column, given in conditions.items():
        several = isinstance(given, (Sequence, set, frozenset)) or (hasattr(given, "__array__") and given.ndim == 1)
        values = list(given) if several and not isinstance(given, str) else [given]
        values = [value.item() if hasattr(value, "item") else value for value in values]  # numpy's scalars
        levels = runs.levels(column)
        for value in values:
            if value not in set(levels):
                raise DataError(
                    f"filter: {value!r} does not occur in the column {column!r}. "
                    f"Its values: {listed(map(repr, levels))}.{suggest(str(value), map(str, levels))}"
                )
        frame = frame.filter(nw.col(column).is_in(values))
        wanted[column] = values
    known = runs.study.seen(wanted) if runs.is_lazy else ()
    one = runs.algorithm in wanted  # asked for: looked at, not compared
    if known:
        found = runs.restricted(frame, [subset(groups, wanted) for groups in known], several=not one)
    else:
        found = runs._with(frame, several=not one)
    return found.following(runs, lambda runs: runs.filter(**wanted))


def without_missing(runs: Runs) -> tuple[Runs, tuple[str, ...]]:
    """`Runs.drop_missing`: the definition is there; and its notes."""
    finite = nw.col(runs.score).cast(nw.Float64).is_finite().fill_null(False)
    if runs.failed is not None:
        found = runs.score_failures("drop").drop_missing()
        return found, found.notes
    found = runs._with(runs.frame.filter(finite)).following(runs, type(runs).drop_missing)
    if found.n_rows < runs.n_rows:
        left_out = (
            f"{runs.n_rows - found.n_rows:,} of {runs.n_rows:,} rows without a finite score were left out, which "
            "is right only if they are missing for reasons that have nothing to do with the algorithm."
        )
        return found, (*found.notes, left_out)
    return found, found.notes


def without_duplicates(runs: Runs, keep: Literal["first", "last", "mean"]) -> tuple[Runs, tuple[str, ...]]:
    """`Runs.drop_duplicates`: the definition is there; and its notes."""
    check_choice(keep, "drop_duplicates", ("first", "last", "mean"))
    if runs.is_lazy:
        raise ArgumentError(
            f"{named('drop_duplicates')} needs a table in memory: the rows of a lazy one have no order."
        )
    keys = [name for name in (runs.algorithm, runs.benchmark, *runs.family, runs.seed, runs.budget) if name]
    keys += runs.metafeatures
    score = nw.col(runs.score).cast(nw.Float64)
    frame = runs.frame
    if keep == "mean":
        finite = score.is_finite().fill_null(False).cast(nw.Float64)
        share = frame.select(finite.mean().over(*keys).alias("share"))["share"].to_numpy()
        if ((share > 0.0) & (share < 1.0)).any():
            raise DataError(
                f"{named('drop_duplicates')}={keep!r} needs the scores of all rows of a run, and some have none "
                "(failed or missing). Keep 'first' or 'last', or say before what a failure counts."
            )
        frame = frame.with_columns(score.mean().over(*keys).alias(runs.score))
    which = "last" if keep == "last" else "first"
    found = runs._with(frame.unique(keys, keep=which, maintain_order=True))
    more = runs.n_rows - found.n_rows
    found = found.following(runs, partial(type(runs).drop_duplicates, keep=keep))
    if not more:
        return found, found.notes
    copies = runs.n_rows - len(runs.frame.unique([*keys, runs.score]))
    parts = [f"{n:,} {what}" for n, what in ((copies, "exact copies"), (more - copies, "with other scores")) if n]
    kept = "the mean of its scores" if keep == "mean" else f"its {keep} row"
    note = f"{more:,} of {runs.n_rows:,} rows repeat a run (the same {joined(keys)}): {' and '.join(parts)}. "
    note += f"Of each such run {kept} was kept."
    return found, tuple(dict.fromkeys((*runs.notes, *found.notes, note)))


# ------------------------------------------------------------------------------------------------- conditions as text


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_SIGN = re.compile(r"<=|>=|!=|=|<|>")


def rows_where(table: pd.DataFrame, conditions: Sequence[str], roles: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that meet all conditions, each a column or role, one of ``= != < <= > >=`` and a value.

    Several ``column=value`` on one column mean any of the values.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"prior": ["good", "bad", "good"], "epoch": [1, 1, 27]})
    >>> rows_where(table, ["prior=good", "epoch<27"], {})
      prior  epoch
    0  good      1
    """
    import numpy as np

    keep = np.ones(len(table), dtype=bool)
    wanted: dict[str, list[Any]] = {}  # any of these
    for condition in conditions:
        column, sign, value = _parts(condition, table, roles)
        typed = _typed(table[column], value, condition)
        if sign == "=":
            wanted.setdefault(column, []).append(typed)
            continue
        values = _comparable(table[column])
        keep &= (_COMPARE[sign](values, typed) & values.notna()).to_numpy(dtype=bool)
    for column, allowed in wanted.items():
        levels = _comparable(table[column])
        for value in allowed:
            if not (levels == value).any():
                known = [str(level) for level in levels.dropna().unique()]
                raise DataError(
                    f"{named('where')}: {str(value)!r} does not occur in the column {column!r}. "
                    f"Its values: {listed(map(repr, known))}.{suggest(str(value), known)}"
                )
        keep &= levels.isin(allowed).to_numpy(dtype=bool)
    if not keep.any():
        raise DataError(f"{named('where')}: no row meets all of {listed(map(repr, conditions))}.")
    return table[keep].reset_index(drop=True)


def _parts(condition: str, table: pd.DataFrame, roles: Mapping[str, Any]) -> tuple[str, str, str]:
    """Column, sign and value; a sign within the name of a column belongs to the name."""
    columns = [str(name) for name in table.columns]
    first = _SIGN.search(condition)
    if first is None:
        raise ArgumentError(
            f"{named('where')} must be a condition such as 'column=value' or 'epoch<=27', got {condition!r}."
        )
    for found in _SIGN.finditer(condition):
        name = condition[: found.start()].strip()
        if name in columns:
            return name, found.group(), condition[found.end() :].strip()
    name = condition[: first.start()].strip()
    if isinstance(roles.get(name), str):
        return roles[name], first.group(), condition[first.end() :].strip()
    raise UnknownColumnError(
        f"{named('where')} names the column {name!r}, which is not in the data. Columns: {listed(columns)}."
        f"{suggest(name, columns)}"
    )


def _typed(column: pd.Series[Any], value: str, condition: str) -> Any:
    """The value as the column holds its own."""
    import pandas as pd

    kind = column.dtype
    try:
        if pd.api.types.is_bool_dtype(kind):
            return {"true": True, "false": False, "1": True, "0": False}[value.lower()]
        if pd.api.types.is_numeric_dtype(kind):
            whole = pd.api.types.is_integer_dtype(kind) and re.fullmatch(r"[+-]?[0-9]+", value)
            return int(value) if whole else float(value)
        if pd.api.types.is_datetime64_any_dtype(kind):
            return pd.Timestamp(value)
    except (ValueError, KeyError):
        example = column.head(1).tolist()[0]
        raise DataError(
            f"{named('where')}: the column {str(column.name)!r} has type {kind} (for example {example!r}), and "
            f"{value!r} in {condition!r} is no such value."
        ) from None
    return value


def _comparable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers, dates and truth values as they are, everything else as text."""
    import pandas as pd

    types = pd.api.types
    kind = column.dtype
    if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind) or types.is_datetime64_any_dtype(kind):
        return column
    return column.map(str, na_action="ignore").astype(object)
