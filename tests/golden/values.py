"""What the golden record holds of a value: columns of numbers and words under names, `{path: [value, ...]}`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

DIGITS = 12
LONG, KEPT = 1000, 40  # longer columns are held as their size, mean, sd and this many values at equal steps
DEPTH = 4
# Of a fit: properties, and methods without arguments.
FIT = ("llf", "aic", "bic", "scale", "theta", "residual_variances", "cov_params", "varcorr")

ANSWER = {"question", "title", "tables", "values", "facts", "findings", "notes", "printed", "formats", "figure"}
# Fields that hold no answer: a bound on standard errors that are rounding, a count of columns behind it, seconds.
LEFT_OUT = ("largest_se", "n_known", "timings")


def described(value: Any) -> dict[str, list[Any]]:
    """The columns of a value.

    A result of the package gives the columns of its `to_frame()` (and of methods named `..._frame`), its public
    numbers and words as `.name`, and its public tables and results in the same way below `name`. An object without
    `to_frame` gives its public arrays too.
    """
    out: dict[str, list[Any]] = {}
    _walk(value, "", out, [], 0)
    return out


def is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (bool, np.bool_, int, float, np.integer, np.floating, str))


def is_ours(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "lmemtest" and not isinstance(value, type)


def is_recorded(value: Any) -> bool:
    """Whether a variable of a page is worth a record: numbers, arrays, tables and results."""
    if is_scalar(value):
        return not isinstance(value, str) and value is not None
    return isinstance(value, (np.ndarray, pd.DataFrame, pd.Series)) or (is_ours(value) and hasattr(value, "to_frame"))


def plain(value: Any) -> Any:
    """A number of 12 digits, a bool, a word or None."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else float(f"{float(value):.{DIGITS}g}")
    return str(value)


def _column(values: Any) -> list[Any]:
    values = list(values)
    if len(values) <= LONG:
        return [plain(value) for value in values]
    some = [values[i] for i in np.linspace(0, len(values) - 1, KEPT).astype(int)]
    whole: list[Any] = [len(values)]
    if all(isinstance(v, (int, float, np.integer, np.floating)) for v in some):
        array = np.array(values, dtype=float)
        array = array[np.isfinite(array)]
        whole += [len(array), float(array.mean()), float(array.std())] if len(array) else [0]
    return [plain(value) for value in [*whole, *some]]


def _below(path: str, name: Any) -> str:
    return f"{path}/{name}" if path else str(name)


def _walk(value: Any, path: str, out: dict[str, list[Any]], seen: list[Any], depth: int) -> None:
    if is_scalar(value):
        out[path or "(value)"] = [plain(value)]
    elif isinstance(value, pd.DataFrame):
        _frame(value, path, out)
    elif isinstance(value, pd.Series):
        _frame(value.to_frame("(values)"), path, out)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "fiubUO":
            out[path or "(values)"] = _column(value.ravel().tolist())
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _walk(item, _below(path, key), out, seen, depth)
    elif isinstance(value, (list, tuple)):
        if all(map(is_scalar, value)):
            out[path or "(values)"] = _column(value)
        else:
            for i, item in enumerate(value):
                _walk(item, _below(path, i), out, seen, depth)
    elif is_ours(value) and depth < DEPTH and not any(value is other for other in seen):
        seen.append(value)  # a result that several parts hold is recorded once
        _object(value, path, out, seen, depth)


def _frame(frame: pd.DataFrame, path: str, out: dict[str, list[Any]]) -> None:
    if not isinstance(frame.index, pd.RangeIndex):
        out[_below(path, "(index)")] = _column(map(str, frame.index))
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        values = column.to_numpy(dtype=float, na_value=np.nan) if column.dtype.kind == "f" else column
        out[_below(path, name)] = _column(values)


def _object(value: Any, path: str, out: dict[str, list[Any]], seen: list[Any], depth: int) -> None:
    out[_below(path, "(class)")] = [type(value).__name__]
    if hasattr(value, "llf") and hasattr(value, "theta"):
        _fit(value, path, out, nested=depth > 0)
        return
    if hasattr(value, "metafeatures") and hasattr(value, "frame"):  # a table of runs
        if depth == 0:
            native = value.frame.to_native()
            native = native.collect() if hasattr(native, "collect") else native
            _frame(native if isinstance(native, pd.DataFrame) else native.to_pandas(), path, out)
        return
    has_frame = False
    for name in dir(type(value)):
        if name.endswith("_frame") and not name.startswith("_"):
            try:
                frame = getattr(value, name)()
            except Exception:  # it needs arguments, or there is none in this result
                continue
            if isinstance(frame, pd.DataFrame):
                has_frame = True
                _frame(frame, path if name == "to_frame" else _below(path, f"{name}()"), out)
    for name in list(getattr(value, "parts", ()))[1:]:
        try:
            frame = value.to_frame(name)
        except Exception:  # it was not asked for in this result
            continue
        _frame(frame, _below(path, f"{name}()"), out)
    for name in _fields(value):
        item = getattr(value, name)
        if is_scalar(item):
            if item is not None:
                out[_below(path, f".{name}")] = [plain(item)]
        elif not has_frame or _is_part(item):
            part: dict[str, list[Any]] = {}
            _walk(item, _below(path, name), part, seen, depth + 1)
            if has_frame and isinstance(item, pd.DataFrame):  # often the table that to_frame() copies
                part = {p: v for p, v in part.items() if out.get(_below(path, p.rsplit("/", 1)[-1])) != v}
            out.update(part)


def _fields(value: Any) -> list[str]:
    """Names of public fields; of an answer its values and tables."""
    if hasattr(value, "tables") and hasattr(value, "findings"):
        own = [f.name for f in dataclasses.fields(value) if f.name not in ANSWER]
        return [name for name in (*value.values, *value.tables, *own, "notes") if name not in LEFT_OUT]
    names = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else list(vars(value))
    return [name for name in names if name[0] != "_" and name not in LEFT_OUT and hasattr(value, name)]


def _is_part(item: Any) -> bool:
    """Whether a field of a result with a table of its own is a result, a table or text, and no array behind it."""
    if isinstance(item, Mapping):
        item = list(item.values())
    if isinstance(item, (list, tuple)):
        return bool(item) and all(is_scalar(x) or _is_part(x) for x in item)
    return isinstance(item, (pd.DataFrame, pd.Series)) or (is_ours(item) and hasattr(item, "to_frame"))


def _fit(fit: Any, path: str, out: dict[str, list[Any]], *, nested: bool) -> None:
    for name in FIT[:5] if nested else FIT:
        item = getattr(fit, name)
        _walk(item() if callable(item) else item, _below(path, f".{name}"), out, [], 0)
    if not nested:
        out[_below(path, ".formula")] = [fit.formula]
        out[_below(path, ".notes")] = [str(note) for note in fit.notes]
        _frame(fit.to_frame(), path, out)
