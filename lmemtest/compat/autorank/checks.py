"""Checks of arguments: Autorank's rules and types of errors, with words that say what to write instead."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmemtest.compat.autorank.result import RankResult
from lmemtest.errors import ArgumentError, DataError, LmemtestError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

ORDERS = ("ascending", "descending")
APPROACHES = ("frequentist", "bayesian", "lmem")
ROPE_MODES = ("effsize", "absolute")
EFFECT_SIZES = ("cohen_d", "cliff_delta", "akinshin_gamma")
FORCE_MODES = ("parametric", "nonparametric")
RELATIONS = ("best", "above", "both")
FEWEST_ROWS = 5


class WrongTypeError(LmemtestError, TypeError):
    """An argument has a type that its rule does not allow."""


def check_data(data: Any) -> pd.DataFrame:
    """A table of two or more numeric columns and five or more rows, none of its cells missing."""
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        raise WrongTypeError(f"data must be a pandas DataFrame, got {type(data).__name__}. Use pandas.DataFrame(data).")
    if data.shape[1] < 2:
        raise DataError(f"data must have a column for each of two or more populations, got {data.shape[1]}.")
    if len(data) < FEWEST_ROWS:
        raise DataError(f"data must have at least {FEWEST_ROWS} rows, the paired samples, got {len(data)}.")
    return pd.DataFrame(complete(data), columns=data.columns.to_flat_index().rename(None))


def complete(data: pd.DataFrame) -> NDArray[np.float64]:
    """The numbers of a table, none of which may be missing: ranks of a row with a gap are no ranks."""
    import numpy as np

    from lmemtest.core.validate import check_magnitude

    try:
        values = data.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        kinds = ", ".join(f"{name!r} ({kind})" for name, kind in zip(data.columns, data.dtypes, strict=True))
        raise DataError(f"data must hold numbers, and some column has other values: {kinds}.") from None
    bad = ~np.isfinite(values)
    if bad.any():
        column = data.columns[int(np.flatnonzero(bad.any(axis=0))[0])]
        raise DataError(
            f"data must have a finite number in every cell, and {int(bad.sum())} of {bad.size} are missing or infinite "
            f"(in column {column!r}, for instance). Drop their rows, data.dropna(), or fit a mixed model, "
            "lmemtest.rank(runs), which uses all runs there are."
        )
    check_magnitude(values)
    return values


def check_autorank(
    data: Any,
    alpha: Any,
    verbose: Any,
    order: Any,
    approach: Any,
    rope: Any,
    rope_mode: Any,
    nsamples: Any,
    effect_size: Any,
    force_mode: Any,
    plot_order: Any,
) -> pd.DataFrame:
    """All arguments of `autorank`; returns the data without names of its index and columns, as floats."""
    table = check_data(data)
    if not isinstance(alpha, float):
        raise WrongTypeError(f"alpha must be a float such as 0.05, got {alpha!r}.")
    if not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha must be between 0 and 1 (both excluded), got {alpha!r}.")
    if not isinstance(verbose, bool):
        raise WrongTypeError(f"verbose must be True or False, got {verbose!r}.")
    _check_word(order, "order", ORDERS)
    _check_word(approach, "approach", APPROACHES)
    if not isinstance(rope, numbers.Real):
        raise WrongTypeError(f"rope must be a number, got {rope!r}.")
    if not float(rope) >= 0.0:
        raise ArgumentError(f"rope must not be negative, got {rope!r}.")
    _check_word(rope_mode, "rope_mode", ROPE_MODES)
    if not isinstance(nsamples, numbers.Integral):
        raise WrongTypeError(f"nsamples must be a whole number, got {nsamples!r}.")
    if int(nsamples) < 1:
        raise ArgumentError(f"nsamples must be at least 1, got {nsamples!r}.")
    if effect_size is not None:
        _check_word(effect_size, "effect_size", EFFECT_SIZES)
    if force_mode is not None:
        _check_word(force_mode, "force_mode", FORCE_MODES)
    if plot_order is not None:
        _check_plot_order(plot_order, list(data.columns))
    return table


def _check_word(value: Any, name: str, options: Sequence[str]) -> None:
    quoted = " or ".join(repr(option) for option in options)
    if not isinstance(value, str):
        raise WrongTypeError(f"{name} must be {quoted}, got {value!r}.")
    if value not in options:
        raise ArgumentError(f"{name} must be {quoted}, got {value!r}.")


def _check_plot_order(plot_order: Any, columns: list[Any]) -> None:
    if not isinstance(plot_order, list):
        raise WrongTypeError(f"plot_order must be a list of the columns of data, got {type(plot_order).__name__}.")
    if len(plot_order) != len(columns):
        raise ArgumentError(f"plot_order must name all {len(columns)} columns of data, got {len(plot_order)} names.")
    for name in plot_order:
        if name not in columns:
            wrong = ArgumentError if isinstance(name, str) else WrongTypeError
            raise wrong(f"plot_order must name columns of data, and {name!r} is none of {columns!r}.")
    if any(plot_order.count(name) > 1 for name in plot_order):
        raise ArgumentError("plot_order must name every column once; it has a name twice.")


def check_result(result: Any) -> None:
    """Refuse what `autorank` did not return, and what is not built as its result."""
    if not isinstance(result, RankResult):
        raise WrongTypeError(f"result must be a RankResult, the return value of autorank, got {type(result).__name__}.")


def check_relation(value: Any, name: str) -> None:
    """One of the rows with which a row is compared."""
    if not isinstance(value, str) or value not in RELATIONS:
        raise ArgumentError(f"{name} must be {' or '.join(map(repr, RELATIONS))}, got {value!r}.")


def check_decimal_places(value: Any) -> int:
    """Decimals of the numbers in a report."""
    if not isinstance(value, numbers.Integral):
        raise WrongTypeError(f"decimal_places must be a whole number, got {value!r}.")
    if not 0 <= int(value) <= 15:
        raise ArgumentError(f"decimal_places must be between 0 and 15, got {value!r}.")
    return int(value)


def check_maps(width: Any, cmaps: Any, annot_colors: Any, axes: Any) -> float:
    """Arguments of `plot_posterior_maps`; returns the width."""
    width = 10 if width is None else width
    if not isinstance(width, numbers.Real):
        raise WrongTypeError(f"width must be a number of inches or None, got {width!r}.")
    if not float(width) > 0:
        raise ArgumentError(f"width must be positive, got {width!r}.")
    for value, name in ((cmaps, "cmaps"), (annot_colors, "annot_colors"), (axes, "axes")):
        if value is None:
            continue
        if not isinstance(value, list):
            raise WrongTypeError(f"{name} must be a list of 4, one for each map, or None, got {type(value).__name__}.")
        if len(value) != 4:
            raise ArgumentError(f"{name} must have 4 elements, one for each map, got {len(value)}.")
    return float(width)
