"""What the functions of a formula compute, and its derivative: arithmetic, elementwise functions, stateful transforms.

Stateful ones (centre, scale, orthogonal polynomials, B-splines and natural splines) are fitted to rows with weights.
Each fitted object is a function of new values, and `slope` is its derivative.

Every fit takes the distinct values `x` and how many rows `counts` carry each, and gives what the same
transform gives on the rows themselves, to rounding. A fitted object maps new values without refitting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.validate import is_number
from lmemtest.errors import DataError, FormulaError
from lmemtest.lmm.formula.functions import ELEMENTWISE, SEVERAL_COLUMNS, STATEFUL
from lmemtest.lmm.formula.syntax import Call, Expression, Literal, Name, Operation


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Polynomials by a three-term recurrence: orthonormal over rows, the raw powers, or one that centres and scales.

    p_0 = 1,  p_1 = x - a_1,  p_{k+1} = (x - a_{k+1}) p_k - r_k p_{k-1};  column k is p_k / s_k.

    Orthonormal: r_k = n_k / n_{k-1} and s_k = sqrt(n_k), n_k being the sum of p_k^2 over rows.
    """

    alpha: tuple[float, ...]
    ratio: tuple[float, ...]
    size: tuple[float, ...]

    def __call__(self, x: Array) -> Array:
        previous, current = np.zeros_like(x), np.ones_like(x)
        columns = []
        for alpha, ratio, size in zip(self.alpha, self.ratio, self.size, strict=True):
            previous, current = current, (x - alpha) * current - ratio * previous
            columns.append(current / size)
        return np.column_stack(columns)

    def slope(self, x: Array) -> Array:
        """Derivative at `x`: the recurrence differentiated."""
        zero = np.zeros_like(x)
        values, slopes = (zero, np.ones_like(x)), (zero, zero)  # of the previous polynomial and the current one
        columns = []
        for alpha, ratio, size in zip(self.alpha, self.ratio, self.size, strict=True):
            slopes = slopes[1], values[1] + (x - alpha) * slopes[1] - ratio * slopes[0]
            values = values[1], (x - alpha) * values[1] - ratio * values[0]
            columns.append(slopes[1] / size)
        return np.column_stack(columns)


def fit_affine(x: Array, counts: Array, center: bool | float, scale: bool | float) -> Polynomial:
    """Centre at the mean and divide by the standard deviation (n - 1), as R's `scale`."""
    shift = float(counts @ x / counts.sum()) if center is True else float(center)
    if scale is True:
        width = float(np.sqrt(counts @ (x - shift) ** 2 / max(counts.sum() - 1.0, 1.0)))
    else:
        width = 1.0 if scale is False else float(scale)
    return Polynomial((shift,), (0.0,), (width,))


def fit_polynomial(x: Array, counts: Array, degree: int) -> Polynomial:
    """Fit R's `poly(x, degree)` (Kennedy & Gentle 1980, pp. 343-344) by the Stieltjes procedure."""
    alpha, ratio, norm2 = list[float](), list[float](), [float(counts.sum())]
    previous, current = np.zeros_like(x), np.ones_like(x)
    for k in range(degree):
        alpha.append(float(counts @ (x * current**2)) / norm2[-1])
        ratio.append(norm2[k] / norm2[k - 1] if k else 0.0)
        previous, current = current, (x - alpha[-1]) * current - ratio[-1] * previous
        norm2.append(float(counts @ current**2))
    return Polynomial(tuple(alpha), tuple(ratio), tuple(np.sqrt(norm2[1:]).tolist()))


def raw_powers(degree: int) -> Polynomial:
    """The powers x, x**2, ..., x**degree."""
    return Polynomial((0.0,) * degree, (0.0,) * degree, (1.0,) * degree)


@dataclass(frozen=True, slots=True)
class Spline:
    """B-spline basis without its first column; outside the boundary the end polynomials continue.

    Natural splines are combinations of cubic ones whose second derivative is zero at the bounds, and which go on as
    straight lines beyond them.
    """

    knots: tuple[float, ...]
    degree: int
    natural: tuple[tuple[float, ...], ...] = ()  # one row per B-spline, one column per natural spline

    def __call__(self, x: Array) -> Array:
        if not self.natural:
            return self.derivative(x, 0)
        inside = self._inside(x)
        beyond = (x - inside)[:, None] * self.derivative(inside, 1)
        return (self.derivative(inside, 0) + beyond) @ np.asarray(self.natural)

    def slope(self, x: Array) -> Array:
        """Derivative at `x`, at a knot that of the piece to the right."""
        if not self.natural:
            return self.derivative(x, 1)
        return self.derivative(self._inside(x), 1) @ np.asarray(self.natural)

    def derivative(self, x: Array, order: int) -> Array:
        """Derivative of the B-splines, of an order up to the degree.

        (B_i,q)' = q (B_i,q-1 / (t_i+q - t_i) - the same of i + 1).
        """
        knots, pieces = np.asarray(self.knots), self._pieces(x, self.degree - order)
        for q in range(self.degree - order + 1, self.degree + 1):
            width = knots[q:] - knots[: len(knots) - q]
            shares = q * pieces[: len(knots) - q] / np.where(width > 0, width, np.inf)[:, None]
            pieces = shares[:-1] - shares[1:]
        return np.ascontiguousarray(pieces[1 : len(knots) - self.degree - 1].T)

    def _inside(self, x: Array) -> Array:
        return np.clip(x, self.knots[0], self.knots[-1])

    def _pieces(self, x: Array, degree: int) -> Array:
        """The B-splines of a degree on the knots, one per row; rows beyond their number are without meaning."""
        knots = np.asarray(self.knots)
        last = len(knots) - self.degree - 2
        interval = np.clip(np.searchsorted(knots, x, side="right") - 1, self.degree, last)
        basis = np.zeros((len(knots) - 1, len(x)))
        basis[interval, np.arange(len(x))] = 1.0
        for order in range(1, degree + 1):  # Cox-de Boor, in place from the left
            for i in range(len(knots) - order - 1):
                rise, fall = knots[i + order] - knots[i], knots[i + order + 1] - knots[i + 1]
                left = (x - knots[i]) / rise * basis[i] if rise > 0 else 0.0
                right = (knots[i + order + 1] - x) / fall * basis[i + 1] if fall > 0 else 0.0
                basis[i] = left + right
        return basis


def fit_natural(cubic: Spline) -> Spline:
    """Combine cubic B-splines as R's `splines::ns`: by the Householder reflections that meet the two conditions."""
    bounds = np.array([cubic.knots[0], cubic.knots[-1]])
    Q = np.linalg.qr(cubic.derivative(bounds, 2).T, mode="complete")[0]
    return replace(cubic, natural=tuple(map(tuple, Q[:, 2:].tolist())))


def fit_spline(
    x: Array,
    counts: Array,
    *,
    n_inner: int,
    inner: tuple[float, ...] | None,
    degree: int,
    lower: float | None,
    upper: float | None,
) -> Spline:
    """Fit the knots of R's `splines::bs`."""
    low = float(x.min()) if lower is None else lower
    high = float(x.max()) if upper is None else upper
    if inner is None:
        inside = (x >= low) & (x <= high)
        shares = np.linspace(0.0, 1.0, n_inner + 2)[1:-1]
        inner = tuple(row_quantiles(x[inside], counts[inside], shares)) if n_inner else ()
    return Spline((low,) * (degree + 1) + tuple(sorted(inner)) + (high,) * (degree + 1), degree)


def row_quantiles(x: Array, counts: Array, shares: Array) -> list[float]:
    """Quantiles of the rows (linear interpolation, R's type 7) from values and their counts.

    Examples
    --------
    >>> row_quantiles(np.array([1.0, 4.0]), np.array([3.0, 1.0]), np.array([0.5, 1.0]))
    [1.0, 4.0]
    """
    order = np.argsort(x, kind="stable")
    values, upto = x[order], np.cumsum(counts[order])
    rank = shares * (upto[-1] - 1.0)
    # 4 eps of slack as R's quantile.default has it: 3 * (1/3) must be rank 1, not 0.9999
    low = np.floor(rank + 4 * np.finfo(float).eps)
    part = rank - low
    part[np.abs(part) < 4 * np.finfo(float).eps] = 0.0
    at = np.minimum(np.searchsorted(upto, low, side="right"), len(values) - 1)
    following = np.minimum(np.searchsorted(upto, low + 1.0, side="right"), len(values) - 1)
    return [float(q) for q in values[at] + part * (values[following] - values[at])]


# the calls of a formula -----------------------------------------------------------------------------


def fitted(call: Call, x: Array, counts: Array) -> Polynomial | Spline:
    """The transform of a call, fitted to values and their counts.

    Options that it does not take are refused with their place in the formula.
    """
    if call.function == "center":
        return fit_affine(x, counts, True, False)
    if call.function == "scale":
        return _fit_scale(call, x, counts)
    if call.function == "poly":
        return _fit_poly(call, x, counts)
    if call.function == "ns":
        # a natural spline with no knot inside is a line, a cubic one has three columns
        return fit_natural(_fit_bs(call, x, counts, n_fixed=1))
    return _fit_bs(call, x, counts, n_fixed=call.options.get("degree", 3))


def _fit_scale(call: Call, x: Array, counts: Array) -> Polynomial:
    for name, option in call.options.items():
        if not isinstance(option, (bool, int, float)):
            raise FormulaError(f"{name}= of scale() is True, False or a number, not {option!r}.").at(call)
    fitted = fit_affine(x, counts, call.options.get("center", True), call.options.get("scale", True))
    if fitted.size[0] == 0:
        message = f"{call} divides by zero: {call.arguments[0]} is the same in every row; remove the term."
        raise DataError(message).at(call)
    return fitted


def _fit_poly(call: Call, x: Array, counts: Array) -> Polynomial:
    degree, raw = call.options.get("degree", 1), call.options.get("raw", False)
    if not _is_whole(degree) or degree < 1:
        raise FormulaError(f"the degree of poly() is a whole number from 1, not {degree!r}.").at(call)
    if not isinstance(raw, bool):
        raise FormulaError("raw= of poly() is True or False.").at(call)
    if raw:
        return raw_powers(degree)
    distinct = len(np.unique(x))
    if degree >= distinct:
        message = (
            f"poly() of degree {degree} needs more than {degree} distinct values, and {call.arguments[0]} "
            f"has {distinct}; lower the degree."
        )
        raise DataError(message).at(call)
    return fit_polynomial(x, counts, degree)


def _fit_bs(call: Call, x: Array, counts: Array, *, n_fixed: int) -> Spline:
    """Knots of bs() or ns(); `n_fixed` columns are there without knots inside."""
    name, options = call.function, call.options
    degree, df, knots = options.get("degree", 3), options.get("df"), options.get("knots")
    if not _is_whole(degree) or degree < 1:
        raise FormulaError(f"the degree of bs() is a whole number from 1, not {degree!r}.").at(call)
    if knots is not None and not isinstance(knots, tuple):
        knots = (knots,)
    if knots is not None and not all(is_number(knot) for knot in knots):
        raise FormulaError(f"knots= of {name}() takes numbers, for example knots=[1, 10].").at(call)
    if df is not None and (not _is_whole(df) or df < n_fixed):
        least = f"the degree ({degree})" if name == "bs" else "1"
        raise FormulaError(f"df= of {name}() is a whole number from {least}, not {df!r}.").at(call)
    if df is not None and knots is not None:
        raise FormulaError(f"{name}() takes df= or knots=, not both.").at(call)
    lower, upper = options.get("lower_bound"), options.get("upper_bound")
    if not all(bound is None or is_number(bound) for bound in (lower, upper)):
        raise FormulaError(f"lower_bound= and upper_bound= of {name}() are numbers.").at(call)
    low, high = x.min() if lower is None else lower, x.max() if upper is None else upper
    if not low < high or not all(low < knot < high for knot in knots or ()):
        message = f"{name}() needs lower bound < knots < upper bound; the bounds are {low:g} and {high:g}."
        raise DataError(message).at(call)
    fitted = fit_spline(
        x, counts, n_inner=(df or n_fixed) - n_fixed, inner=knots, degree=degree, lower=lower, upper=upper
    )
    if not all(low < knot < high for knot in fitted.knots[degree + 1 : -degree - 1]):
        message = f"so many rows share a value that a knot of {call} falls on its boundary; give knots=[...]."
        raise DataError(message).at(call)
    return fitted


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# expressions and their derivatives -----------------------------------------------------------------------------------

_SLOPES: dict[str, Callable[[Array], Array]] = {
    "log": lambda x: 1.0 / x,
    "log2": lambda x: 1.0 / (x * np.log(2.0)),
    "log10": lambda x: 1.0 / (x * np.log(10.0)),
    "log1p": lambda x: 1.0 / (1.0 + x),
    "exp": np.exp,
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "abs": lambda x: np.where(x == 0, np.nan, np.sign(x)),
    "square": lambda x: 2.0 * x,
}
_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
}


def evaluate(node: Expression, numbers: Mapping[str, Array], state: dict[str, Any], counts: Array | None) -> Array:
    """Compute a checked expression, ``(n,)`` or ``(n, k)``; NaN and infinities are left for the caller to report.

    ``state`` has the fitted transforms by their text: filled where ``counts`` of the rows are given, read otherwise.
    """

    def value(inner: Expression) -> Any:
        return evaluate(inner, numbers, state, counts)

    if isinstance(node, Name):
        return numbers[node.value]
    if isinstance(node, Literal):
        return np.float64(node.value)  # type: ignore[arg-type, return-value]
    if isinstance(node, Operation):
        *before, last = map(value, node.operands)
        if before:
            return _ARITHMETIC[node.operator](before[0], last)
        return -last if node.operator == "-" else last
    if isinstance(node, Call):
        if node.function in STATEFUL:
            return _transform(node, value(node.arguments[0]), state, counts)
        if node.function == "pow":
            return np.power(value(node.arguments[0]), value(node.arguments[1]))
        inner_value = value(node.arguments[0])
        return inner_value if node.function in ("I", "offset") else ELEMENTWISE[node.function](inner_value)
    raise TypeError(f"{type(node).__name__} has no value")  # reading lets none of these through


def differentiate(node: Expression, name: str, numbers: Mapping[str, Array], state: dict[str, Any]) -> tuple[Any, Any]:
    """Compute a checked expression and its derivative in one column, exactly; not finite where it has none."""

    def both(inner: Expression) -> tuple[Any, Any]:
        return differentiate(inner, name, numbers, state)

    if isinstance(node, Operation):
        *before, (value, slope) = map(both, node.operands)
        if before:
            return _arithmetic_slope(node.operator, before[0], (value, slope))
        return (-value, -slope) if node.operator == "-" else (value, slope)
    if isinstance(node, Call):
        value, slope = both(node.arguments[0])
        if node.function == "I":
            return value, slope
        if node.function == "pow":
            return _arithmetic_slope("**", (value, slope), both(node.arguments[1]))
        if node.function in STATEFUL:
            transform = state[str(node)]
            values, of_transform = _shaped(node, transform(value)), _shaped(node, transform.slope(value))
            return values, of_transform * (slope if of_transform.ndim == 1 else slope[:, None])
        return ELEMENTWISE[node.function](value), _SLOPES[node.function](value) * slope
    value = evaluate(node, numbers, state, None)
    own_column = isinstance(node, Name) and node.value == name
    return value, np.ones_like(value) if own_column else np.zeros_like(value)


def _arithmetic_slope(operator: str, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    (a, da), (b, db) = left, right
    value = _ARITHMETIC[operator](a, b)
    if operator == "*":
        return value, da * b + a * db
    if operator == "/":
        return value, (da - value * db) / b
    if operator == "**":
        by_base = np.where(b == 0, 0.0, b * np.power(a, b - 1.0)) * da
        return value, by_base if np.all(db == 0) else by_base + value * np.log(a) * db
    return value, da + db if operator == "+" else da - db


def _transform(call: Call, x: Array, state: dict[str, Any], counts: Array | None) -> Array:
    key = str(call)
    if counts is not None and key not in state:
        if not np.all(np.isfinite(x)):
            return np.full(len(x), np.nan)  # reported by the caller, which knows the columns
        state[key] = fitted(call, x, counts)
    return _shaped(call, state[key](x))


def _shaped(call: Call, columns: Array) -> Array:
    """The columns of a transform; one that is a number to other functions has no second axis."""
    return columns if call.function in SEVERAL_COLUMNS else columns[:, 0]
