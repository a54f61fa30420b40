"""Argument checks. Each returns the checked value, or raises an error that says what to write instead."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lmemtest.core.caller import named
from lmemtest.core.options import DIRECTION_WORDS, DIRECTIONS
from lmemtest.core.rounding import written
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DataError, DesignError, UnknownColumnError

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np

LARGEST_SCORE = 1e100  # its square times a billion rows is far from the largest double
SMALLEST_RATE = 2.2250738585072014e-308  # smaller doubles have few digits, and their halves none
LARGEST_COUNT = 10_000_000  # replicates, draws or trials: beyond it a call ends in no memory or after days


def check_choice(value: Any, name: str, options: Sequence[str]) -> str:
    """Check that `value` is one of `options`.

    Parameters
    ----------
    value : object
        The argument.
    name : str
        Its name, for the message.
    options : sequence of str
        The values that are allowed.

    Returns
    -------
    str
        `value`.

    Raises
    ------
    ArgumentError
        If `value` is not one of `options`.

    Examples
    --------
    >>> check_choice("minimize", "direction", ("minimize", "maximize"))
    'minimize'
    """
    if isinstance(value, str) and value in options:
        return value
    quoted = " or ".join(repr(option) for option in options)
    hint = suggest(value, options) if isinstance(value, str) else ""
    raise ArgumentError(f"{named(name)} must be {quoted}, got {value!r}.{hint}")


def check_options_of(argument: str, choice: str, *options: tuple[str, Any, Any, Sequence[str]]) -> None:
    """Check that options which belong to other choices of an argument are left out.

    Parameters
    ----------
    argument, choice : str
        The argument, such as "measure", and its value.
    *options : tuple
        Of each option its name, its value, its default, and the choices that it belongs to.

    Raises
    ------
    ArgumentError
        If an option of another choice is not its default.

    Examples
    --------
    >>> check_options_of("exchange", "signs", ("unit", None, None, ("labels",)))
    """
    for name, value, default, choices in options:
        if choice not in choices and repr(value) != repr(default):
            raise ArgumentError(
                f"{name} is an option of {argument}={' or '.join(map(repr, choices))}, got {name}={value!r:.60} with "
                f"{argument}={choice!r}. Leave it out."
            )


def check_direction(value: Any, name: str = "direction") -> str:
    """Check that `value` says which scores are good, and write it in Optuna's words.

    Parameters
    ----------
    value : object
        The argument: "minimize", "maximize", or another word for it, such as "min", "lower" or "higher is better".
    name : str
        Its name, for the message.

    Returns
    -------
    str
        "minimize" or "maximize".

    Raises
    ------
    ArgumentError
        If `value` is no such word.

    Examples
    --------
    >>> check_direction("max"), check_direction("lower is better"), check_direction("Minimise")
    ('maximize', 'minimize', 'minimize')
    """
    if isinstance(value, str):
        word = value.strip().lower().replace(" ", "_").replace("-", "_")
        for direction, words in DIRECTION_WORDS.items():
            if word in words.split():
                return direction
    return check_choice(value, name, DIRECTIONS)


def check_fraction(value: Any, name: str) -> float:
    """Check that `value` lies strictly between 0 and 1.

    Parameters
    ----------
    value : float
        The argument.
    name : str
        Its name, for the message.

    Returns
    -------
    float
        `value`.

    Raises
    ------
    ArgumentError
        If `value` is not a number with 0 < value < 1.

    Examples
    --------
    >>> check_fraction(0.95, "level")
    0.95
    """
    numeric = is_number(value)
    if numeric and 0.0 < float(value) < 1.0:
        if type(value).__name__ == "longdouble":  # scipy's functions do not take it, and callers may go on with it
            raise ArgumentError(
                f"{named(name)} must be a number of Python or a double, got {value!r}. Write {float(value):g}."
            )
        if float(value) < SMALLEST_RATE:
            raise ArgumentError(
                f"{named(name)} must be a probability that a double holds exactly, got {value!r}. Write 0.05?"
            )
        return float(value)
    percent = f" Write {float(value) / 100:g}?" if numeric and 1.0 < float(value) < 100.0 else ""
    raise ArgumentError(f"{named(name)} must be a number between 0 and 1 (both excluded), got {value!r}.{percent}")


def check_number(
    value: Any,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
    open: Literal["low", "high", "both"] | None = None,
    meaning: str = "",
) -> float:
    """Check that `value` is a real number between two limits.

    Parameters
    ----------
    value : float
        The argument.
    name : str
        Its name, for the message.
    low, high : float, optional
        The limits. Without one any finite number is taken on that side; with ``high=inf`` infinity is one as well, and
        with ``LARGEST_SCORE`` a message says "finite" of what has a square.
    open : {"low", "high", "both"}, optional
        The limits that are excluded.
    meaning : str
        What the number is, for the end of the message.

    Returns
    -------
    float
        `value`.

    Raises
    ------
    ArgumentError
        If `value` is no number, NaN, or beyond a limit.

    Examples
    --------
    >>> check_number(0.5, "tau", low=0, high=0.5, open="low")
    0.5
    >>> check_number(-1, "rope", low=0, meaning="the largest difference that does not matter")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: rope must be a finite number of at least 0, got -1: the largest difference that ...
    """
    number = _double(value) if is_number(value) else math.nan
    inside = (
        number > (-math.inf if low is None else low) or (number == low and open not in ("low", "both")),
        number < (math.inf if high is None else high) or (number == high and open not in ("high", "both")),
    )
    if all(inside):
        return number
    limits = []
    if low is not None:
        limits.append(f"{'above' if open in ('low', 'both') else 'at least'} {low:g}")
    if high is not None and high not in (math.inf, LARGEST_SCORE):
        limits.append(f"{'below' if open in ('high', 'both') else 'at most'} {high:g}")
    kind = "a finite number" if low is None or high in (None, LARGEST_SCORE) else "a number"
    rule = f"{kind} {'of ' * limits[0].startswith('at')}{' and '.join(limits)}" if limits else kind
    raise ArgumentError(f"{named(name)} must be {rule}, got {value!r}{': ' * bool(meaning)}{meaning}.")


def check_rope(rope: Any) -> float:
    """Half the width of a region of practical equivalence."""
    return check_number(rope, "rope", low=0, meaning="the largest difference that does not matter")


def check_flag(value: Any, name: str) -> bool:
    """Check that `value` is True or False, and not merely something that Python takes for one of them.

    Parameters
    ----------
    value : bool
        The argument; numpy's booleans are accepted.
    name : str
        Its name, for the message.

    Returns
    -------
    bool
        `value`.

    Raises
    ------
    ArgumentError
        If `value` is not a boolean.

    Examples
    --------
    >>> check_flag(True, "reml")
    True
    >>> check_flag("ML", "reml")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: reml must be True or False, got 'ML'.
    """
    if _is_bool(value):
        return bool(value)
    raise ArgumentError(f"{name} must be True or False, got {value!r}.")


def check_callable(value: Any, name: str, takes: str) -> None:
    """Check that `value` is None or can be called; `takes` says with what, for the message.

    Examples
    --------
    >>> check_callable("bar", "progress", "the name of each step")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: progress must be a function of the name of each step, or None, got 'bar'.
    """
    if value is not None and not callable(value):
        raise ArgumentError(f"{name} must be a function of {takes}, or None, got {value!r}.")


def check_positive_int(value: Any, name: str, minimum: int = 1, maximum: int = LARGEST_COUNT) -> int:
    """Check that `value` is a whole number of at least `minimum` and at most `maximum`.

    Parameters
    ----------
    value : int
        The argument; numpy integers and whole floats such as ``1e4`` are accepted.
    name : str
        Its name, for the message.
    minimum, maximum : int
        The smallest and the largest value allowed.

    Returns
    -------
    int
        `value`.

    Raises
    ------
    ArgumentError
        If `value` is not a whole number, or lies outside of the two limits.

    Examples
    --------
    >>> check_positive_int(1e4, "n_draws")
    10000
    """
    whole = is_number(value) and float(value).is_integer()
    if whole and int(value) > maximum:
        raise ArgumentError(f"{named(name)} must be a whole number of at most {maximum:,}, got {int(value):,}.")
    if whole and int(value) >= minimum:
        return int(value)
    raise ArgumentError(f"{named(name)} must be a whole number of at least {minimum}, got {value!r}.")


def several(value: Any) -> bool:
    """Whether there are values to go through; an array without a dimension claims it and fails.

    Examples
    --------
    >>> import numpy as np
    >>> several(["a"]), several(np.array(3.0)), several(np.True_)
    (True, False, False)
    """
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def among(value: Any, options: Iterable[Any]) -> bool:
    """Whether it is one of them; what cannot be compared, such as pandas.NA or an array, is not.

    Examples
    --------
    >>> import pandas as pd
    >>> among("A", ("A", "B")), among(pd.NA, ("A", "B"))
    (True, False)
    """
    try:
        return bool(value in tuple(options))
    except (TypeError, ValueError):
        return False


def is_number(value: Any) -> bool:
    """Whether it is a real number, which a boolean is not here; NaN and infinities are.

    Examples
    --------
    >>> is_number(2), is_number(float("inf")), is_number(True), is_number("2")
    (True, True, False, False)
    """
    return isinstance(value, numbers.Real) and not _is_bool(value)


def is_finite(value: Any) -> bool:
    """Whether it is a real number that a double can hold.

    Examples
    --------
    >>> is_finite(2), is_finite(float("nan")), is_finite(10**400), is_finite(True)
    (True, False, False, False)
    """
    return is_number(value) and math.isfinite(_double(value))


def is_size(value: Any) -> bool:
    """Whether it is a real number that can be squared.

    Examples
    --------
    >>> is_size(2**70), is_size(1e308), is_size(True)
    (True, False, False)
    """
    number: Any = value  # not float(value), which an integer of 400 digits overflows
    return is_number(value) and bool(abs(number) < LARGEST_SCORE)


def real(values: Any) -> np.ndarray:
    """An array of doubles, the same one where it is one already.

    Raises
    ------
    TypeError, ValueError
        If the values are no real numbers: numpy would drop imaginary parts, and count days.

    Examples
    --------
    >>> real([1, 2])
    array([1., 2.])
    """
    import numpy as np

    array = np.asarray(values)
    if array.dtype.kind in "cmM":
        raise TypeError(f"not real numbers: {array.dtype}")
    return array.astype(np.float64, copy=False)


def check_names(names: Any, argument: str) -> tuple[str, ...]:
    """One name or several as a tuple of strings; there may be none.

    Examples
    --------
    >>> check_names("seed", "by"), check_names(["seed", "prior"], "by")
    (('seed',), ('seed', 'prior'))
    """
    one = isinstance(names, (str, bytes, Mapping)) or not several(names)
    columns = (names,) if one else tuple(names)
    for name in columns:
        if not isinstance(name, str):
            raise ArgumentError(
                f"{named(argument)} must name columns by strings, got {name!r} of type {type(name).__name__}."
            )
    return columns


def check_columns(names: str | Iterable[str], available: Iterable[Any], *, argument: str) -> tuple[str, ...]:
    """Check that every name is a column of the data.

    Parameters
    ----------
    names : str or iterable of str
        The columns asked for; there may be none.
    available : iterable of str
        The columns of the data.
    argument : str
        The name of the argument that asked, for the message.

    Returns
    -------
    tuple of str
        `names`.

    Raises
    ------
    ArgumentError
        If a name is not a string.
    UnknownColumnError
        If a name is not a column.

    Examples
    --------
    >>> check_columns("seed", ["algorithm", "seed"], argument="by")
    ('seed',)
    """
    names = check_names(names, argument)
    available = list(available)
    for name in names:
        if name not in available:
            raise UnknownColumnError(
                f"{named(argument)} names the column {name!r}, which is not in the data. "
                f"Columns: {listed(available)}.{suggest(name, map(str, available))}"
            )
    return names


def free_name(name: str, taken: Collection[str]) -> str:
    """The name for a new column of a table: with underlines where its columns have it already."""
    while name in taken:
        name += "_"
    return name


def check_column(name: Any, available: Iterable[Any], *, argument: str) -> str:
    """Check that `name` is one column of the data.

    Examples
    --------
    >>> check_column("prior", ["algorithm", "prior"], argument="by")
    'prior'
    """
    if not isinstance(name, str):
        raise ArgumentError(f"{named(argument)} must be the name of one column, got {name!r}.")
    return check_columns(name, available, argument=argument)[0]


def check_magnitude(scores: np.ndarray, smallest: float = 0.0) -> None:
    """Refuse scores whose squares a double cannot hold to full precision, all of them below `smallest` included."""
    import numpy as np

    largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
    if largest >= LARGEST_SCORE or 0 < largest <= smallest:
        raise DesignError(
            f"the largest score is {written(largest, '.3g')} in absolute value, and the square of such a number "
            f"cannot be "
            "computed to full precision. Give the score in another unit."
        )


def resolve_rng(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Turn the argument ``rng`` into a random generator.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        A seed, a generator (used as it is, so its state moves on), or None for fresh entropy.

    Returns
    -------
    numpy.random.Generator
        The generator.

    Raises
    ------
    ArgumentError
        If `rng` is something else; a legacy ``RandomState`` gets advice.

    Examples
    --------
    >>> int(resolve_rng(7).integers(100)) == int(resolve_rng(7).integers(100))
    True
    """
    import numpy as np

    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (isinstance(rng, numbers.Integral) and not _is_bool(rng) and int(rng) >= 0):
        return np.random.default_rng(None if rng is None else int(rng))
    advice = (
        " A RandomState is the legacy generator: pass numpy.random.default_rng(seed)."
        if isinstance(rng, np.random.RandomState)
        else ""
    )
    raise ArgumentError(
        f"rng must be a seed (a whole number of at least 0), a numpy.random.Generator or None, got {rng!r}.{advice}"
    )


def as_frame(data: Any, *, argument: str = "data") -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Wrap a table of any kind as a Narwhals frame, without copying and without running a lazy query.

    Parameters
    ----------
    data : Runs, dataframe or mapping
        ``Runs``, anything that Narwhals accepts (pandas, polars, pyarrow, duckdb, ibis, dask, pyspark, eager or
        lazy), or a mapping of column names to columns of one length.
    argument : str
        The name of the argument, for the message.

    Returns
    -------
    narwhals.DataFrame or narwhals.LazyFrame
        The same table.

    Raises
    ------
    ArgumentError
        If `data` is not a table.
    DataError
        If two columns have the same name, or the columns of a mapping differ in length.

    Examples
    --------
    >>> as_frame({"algorithm": ["RS", "HB"], "loss": [0.3, 0.2]}).columns
    ['algorithm', 'loss']
    """
    import narwhals as nw

    if isinstance(data, (nw.DataFrame, nw.LazyFrame)):
        return data
    if isinstance(data, Mapping):
        data = _frame_of_mapping(data, argument)
    elif hasattr(data, "roles") and hasattr(data, "frame"):  # Runs; named by what it can do to avoid a cycle
        data = data.frame
    _check_unique_names(data, argument)
    try:
        with warnings.catch_warnings():  # that its Dask reader will move to a package of its own is not for our callers
            warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
            frame = nw.from_native(data)
    except (TypeError, ValueError, NotImplementedError):  # Series, arrays, lists, paths
        path = " To read a file, use lmemtest.read_runs." if isinstance(data, str) else ""
        raise ArgumentError(
            f"{argument} must be a dataframe (pandas, polars, pyarrow, duckdb, ibis, dask or pyspark) or a dict of "
            f"columns, got {type(data).__module__}.{type(data).__qualname__}.{path}"
        ) from None
    return frame


def _frame_of_mapping(data: Mapping[Any, Any], argument: str) -> Any:
    import pandas as pd

    try:
        return pd.DataFrame(dict(data))
    except (ValueError, TypeError) as error:
        raise DataError(f"{argument}: the columns of the dict do not form a table ({error}).") from None


def _check_unique_names(data: Any, argument: str) -> None:
    """Refuse repeated names before Narwhals does, with a next step."""
    names = getattr(data, "column_names", None)  # pyarrow
    if names is None:
        # the schema of a lazy polars frame is not a list and costs a query plan; its names are unique
        names = getattr(data, "columns", None) if type(data).__module__.startswith("pandas") else None
    if names is None:
        return
    names = list(names)
    if len(set(names)) == len(names):
        return
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    raise DataError(
        f"{argument} has more than one column named {listed(map(repr, twice))}; "
        f"every name must occur once. Rename or drop the copies."
    )


def _double(value: Any) -> float:
    """A real number as a double, infinite where it is a whole number beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_bool(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's, without importing numpy
