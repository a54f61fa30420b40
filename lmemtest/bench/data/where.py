"""Conditions on rows as text, such as ``prior=good`` or ``epoch<=27``: compared by type, never evaluated."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmemtest.core.caller import named
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rows_where"]

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
