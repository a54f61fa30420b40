"""The functions a formula may call, and nothing else: what they take, and what they compute when they meet a table.

A call is checked when the formula is read (`check_call`), so that a formula which passes never reaches a
name outside the lists below. Evaluation walks our own syntax tree; no text is ever run as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmemtest.core.arrays import Array, Index
from lmemtest.core.validate import is_number
from lmemtest.core.words import listed, suggest
from lmemtest.errors import DataError, FormulaError
from lmemtest.lmm.formula import smooth
from lmemtest.lmm.formula.columns import Columns, Levels, level_label, placed
from lmemtest.lmm.formula.syntax import Atom, Call, Expression, Literal, Name, Operation

ELEMENTWISE: dict[str, Callable[[Array], Array]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "square": np.square,
}
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
# stateful function -> its options, in the order in which they may be given without a name
STATEFUL: dict[str, tuple[str, ...]] = {
    "center": (),
    "scale": ("center", "scale"),
    "poly": ("degree", "raw"),
    "bs": ("df", "knots", "degree", "lower_bound", "upper_bound"),
    "ns": ("df", "knots", "lower_bound", "upper_bound"),
}
SEVERAL_COLUMNS = ("poly", "bs", "ns")
# contrast -> (name in formulaic's registry, options in order)
CONTRASTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "contr.treatment": ("treatment", ("base",)),
    "contr.SAS": ("SAS", ("base",)),
    "contr.sum": ("sum", ()),
    "contr.helmert": ("helmert", ("reverse", "scale")),
    "contr.diff": ("diff", ("backward",)),
    "contr.poly": ("poly", ("scores",)),
    "Treatment": ("treatment", ("reference",)),
    "Sum": ("sum", ()),
    "Helmert": ("helmert", ()),
    "Diff": ("diff", ()),
    "Poly": ("poly", ("scores",)),
}
ALLOWED = (*ELEMENTWISE, "pow", "I", "C", *STATEFUL)
_ELSEWHERE = {
    "offset": "offset(...) is added as a term of its own in the fixed part, as in y ~ a + offset(x).",
    "factor": "write C(column) for a column that is to be taken as a factor.",
    "as.factor": "write C(column) for a column that is to be taken as a factor.",
    "standardize": "write scale(column).",
    "cr": "write ns(column, df=...) for a natural spline.",
}


# checking -------------------------------------------------------------------------------------------


def columns_of(node: Expression) -> Iterator[Name]:
    """Yield the columns an expression reads, in order of appearance."""
    if isinstance(node, Name):
        yield node
        return
    inside: tuple[Expression, ...] = ()
    if isinstance(node, Call):
        # only the first argument of C and of the stateful functions is data, the others are options
        inside = node.arguments[:1] if node.function == "C" or node.function in STATEFUL else node.arguments
    elif isinstance(node, Operation):
        inside = node.operands
    for part in inside:
        yield from columns_of(part)


def check_call(call: Call) -> None:
    """Refuse a call that is not on the allow-list or is not called as it should be."""
    if call.function == "C":
        if not call.arguments or not isinstance(call.arguments[0], Name):
            raise FormulaError("C() takes a column first, for example C(algorithm, contr.sum).").at(call)
        contrast_of(call)
        levels_of(call)
    else:
        _check_numeric(call, outermost=True)


def check_offset(call: Call) -> None:
    """Refuse an `offset(...)` that is not one number per row made from columns."""
    if len(call.arguments) != 1 or call.keywords:
        raise FormulaError("offset() takes 1 argument without a name.").at(call)
    _check_numeric(call.arguments[0])
    if not any(columns_of(call)):
        raise FormulaError(f"{call} uses no column, so it is the same in every row; leave it out.").at(call)


def check_response(node: Expression) -> tuple[Name, str | None]:
    """Read the left side, a column or an elementwise function of one: the column, and the function if there is one."""
    if isinstance(node, Name):
        return node, None
    allowed = ", ".join(ELEMENTWISE)
    if isinstance(node, Call):
        argument = node.arguments[0] if len(node.arguments) == 1 and not node.keywords else None
        if node.function in ELEMENTWISE and isinstance(argument, Name):
            return argument, node.function
        if node.function not in ELEMENTWISE:
            message = f"function '{node.function}' is not allowed for the response; allowed: {allowed}."
            raise FormulaError(message).at(Name(node.function, node.start, node.name_end))
    message = (
        f"the response is one column or a function of one column ({allowed}); "
        "add anything else to the table as a column."
    )
    raise FormulaError(message).at(node)


def _check_numeric(node: Expression, *, outermost: bool = False) -> None:
    if isinstance(node, Operation):
        for operand in node.operands:
            _check_numeric(operand)
    elif isinstance(node, Literal) and not is_number(node.value):
        raise FormulaError(f"{node} is not a number; arithmetic takes columns and numbers.").at(node)
    elif isinstance(node, Call):
        _check_function(node, outermost)


def _check_function(call: Call, outermost: bool) -> None:
    name = call.function
    if name == "C":
        raise FormulaError("C(...) makes a factor, which no other function takes.").at(call)
    if name not in ALLOWED:
        advice = _ELSEWHERE.get(name)
        hint = f" {advice[0].upper()}{advice[1:]}" if advice else suggest(name, ALLOWED)
        message = f"function '{name}' is not allowed. Allowed: {', '.join(ALLOWED)}.{hint}"
        raise FormulaError(message).at(Name(name, call.start, call.name_end))
    if name in SEVERAL_COLUMNS and not outermost:
        message = f"{name}(...) gives several columns and cannot stand inside another function; make it a term."
        raise FormulaError(message).at(call)
    if name in STATEFUL:
        _options(call, STATEFUL[name])
        _check_numeric(call.arguments[0])
    else:
        wanted = 2 if name == "pow" else 1
        if len(call.arguments) != wanted or call.keywords:
            raise FormulaError(f"{name}() takes {wanted} argument{'s' if wanted > 1 else ''} without a name.").at(call)
        for argument in call.arguments:
            _check_numeric(argument)
    if not any(columns_of(call)):
        raise FormulaError(f"{call} uses no column, so it is the same in every row.").at(call)


def contrast_of(call: Call) -> tuple[str, dict[str, Any]]:
    """Read the contrast of `C(...)`: its name in formulaic's registry and its options."""
    choices = list(call.arguments[1:]) + [value for name, value in call.keywords if name in ("contr", "contrasts")]
    if len(choices) > 1:
        raise FormulaError("C() takes one contrast.").at(choices[1])
    unknown = [name for name, _ in call.keywords if name not in ("contr", "contrasts", "levels", "base")]
    if unknown:
        raise FormulaError(f"C() has no argument '{unknown[0]}'. Arguments: contr, levels, base.").at(call)
    base = {name: _constant(value) for name, value in call.keywords if name == "base"}
    if not choices:
        return "treatment", base
    node = choices[0]
    name = node.value if isinstance(node, Name) else node.function if isinstance(node, Call) else None
    if name not in CONTRASTS or name is None:
        hint = suggest(str(name), list(CONTRASTS))
        raise FormulaError(f"unknown contrast {node}. Contrasts: {', '.join(CONTRASTS)}.{hint}").at(node)
    registered, options = CONTRASTS[name]
    values = _options(node, options, first=0) if isinstance(node, Call) else {}
    values = {("base" if key == "reference" else key): value for key, value in values.items()} | base
    if base and registered not in ("treatment", "SAS"):
        raise FormulaError(f"{name} has no base level; remove base=.").at(call)
    return registered, values


def levels_of(call: Call) -> tuple[Any, ...] | None:
    """Read `levels=[...]` of `C(...)`."""
    for name, value in call.keywords:
        if name == "levels":
            if not isinstance(value, Literal) or not isinstance(value.value, tuple) or not value.value:
                raise FormulaError('levels= takes a list, for example levels=["b", "a"].').at(value)
            return tuple(_constant(item) for item in value.value)
    return None


def _options(call: Call, names: tuple[str, ...], first: int = 1) -> dict[str, Any]:
    """Constant options of a call, by name; the first `first` arguments are data."""
    if len(call.arguments) < first:
        raise FormulaError(f"{call.function}() takes a column or an expression first.").at(call)
    positional = call.arguments[first:]
    takes = f"takes {', '.join(names)}" if names else "takes no options"
    if len(positional) > len(names):
        extra = positional[len(names)]
        raise FormulaError(f"{call.function}() {takes}; there is one argument too many.").at(extra)
    values = {name: _constant(value) for name, value in zip(names, positional, strict=False)}
    for name, node in call.keywords:
        if name not in names or name in values:
            problem = "is given twice" if name in values else "is unknown"
            raise FormulaError(f"{call.function}() {takes}; argument '{name}' {problem}.").at(node)
        values[name] = _constant(node)
    return values


def _constant(node: Expression) -> Any:
    if isinstance(node, Literal):
        value = node.value
        return tuple(_constant(item) for item in value) if isinstance(value, tuple) else value
    if isinstance(node, Operation) and len(node.operands) == 1 and node.operator != "(":
        operand = node.operands[0]
        if isinstance(operand, Literal) and is_number(operand.value):
            return -operand.value if node.operator == "-" else operand.value  # type: ignore[operator]
    raise FormulaError(f"{node} is not a constant; options are numbers, texts, True, False or lists of these.").at(node)


# columns and calls that meet a table ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coding:
    """A factor and its two codings."""

    column: Name  # the column
    levels: Levels  # levels of the fit
    # full, contrasts: (n_levels, k), one row per level: all dummies, or one column less
    full: Array
    contrasts: Array
    # full_names, contrast_names: names of their columns
    full_names: tuple[str, ...]
    contrast_names: tuple[str, ...]

    @property
    def uses(self) -> tuple[Name, ...]:
        """The columns that it reads."""
        return (self.column,)

    def values(self, columns: Columns) -> Index:
        """Place a table's values among the levels."""
        return columns.codes(self.column, self.levels)

    def columns(self, codes: Index, reduced: bool) -> Array:
        """Code the values."""
        return (self.contrasts if reduced else self.full)[codes]

    def names(self, reduced: bool) -> tuple[str, ...]:
        """Name the columns of `columns`."""
        return self.contrast_names if reduced else self.full_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """A numeric column or expression, with the state of its stateful transforms."""

    atom: Atom
    uses: tuple[Name, ...]  # the columns that it reads
    state: dict[str, Any]
    column_names: tuple[str, ...]

    def values(self, columns: Columns) -> Array:
        """Compute the expression for a table, as `(n, k)`."""
        return _compute(self.atom, _numbers(self.atom, columns), self.state, None)

    def slopes(self, columns: Columns, name: str) -> Array:
        """Derivatives with respect to one column, as `(n, k)`."""
        numbers = _numbers(self.atom, columns)
        with np.errstate(all="ignore"):
            derivative = np.asarray(differentiate(self.atom, name, numbers, self.state)[1], dtype=np.float64)
        slopes = np.broadcast_to(derivative, len(columns)) if derivative.ndim == 0 else derivative
        slopes = slopes[:, None] if slopes.ndim == 1 else slopes
        return _finite(slopes, self.atom, numbers, f"the slope of {self.atom}")

    def columns(self, values: Array, reduced: bool) -> Array:  # noqa: ARG002 - a measure has one coding
        """Return the values: a measure has one coding."""
        return values

    def names(self, reduced: bool) -> tuple[str, ...]:  # noqa: ARG002
        """Name the columns of `columns`."""
        return self.column_names


Fitted = Coding | Measure  # an atom that met a table


def fit_atoms(atoms: Iterable[Atom], columns: Columns, weights: Array) -> dict[str, tuple[Fitted, Any]]:
    """Columns and calls by their text: what each is fitted to the rows of a table, and its values there.

    What several terms share is fitted once; `weights` are the rows behind each row of the table.
    """
    state: dict[str, Any] = {}  # of transforms
    met: dict[str, tuple[Fitted, Any]] = {}
    for atom in atoms:
        if (key := str(atom)) in met:
            continue
        column = atom.arguments[0] if isinstance(atom, Call) and atom.function == "C" else atom
        if isinstance(column, Name) and (column is not atom or not columns.is_numeric(column)):
            met[key] = _coded(atom, column, *columns.factor(column))
        else:
            met[key] = _measured(atom, _numbers(atom, columns), weights, state)
    return met


def _numbers(atom: Atom, columns: Columns) -> dict[str, Array]:
    """The columns that an atom reads, as numbers."""
    return {name.value: columns.numbers(name) for name in columns_of(atom)}


def _measured(atom: Atom, numbers: Mapping[str, Array], weights: Array, state: dict[str, Any]) -> tuple[Measure, Array]:
    """A numeric atom."""
    values = _compute(atom, numbers, state, weights)
    name = atom.value if isinstance(atom, Name) else str(atom)
    several = isinstance(atom, Call) and atom.function in SEVERAL_COLUMNS
    names = tuple(f"{name}[{k + 1}]" for k in range(values.shape[1])) if several else (name,)
    return Measure(atom=atom, uses=tuple(columns_of(atom)), state=state, column_names=names), values


def _compute(atom: Atom, numbers: Mapping[str, Array], state: dict[str, Any], weights: Array | None) -> Array:
    with np.errstate(all="ignore"):  # what is not finite is reported below, with names
        values = np.asarray(evaluate(atom, numbers, state, weights), dtype=np.float64)
    return _finite(values[:, None] if values.ndim == 1 else values, atom, numbers, str(atom))


def _finite(values: Array, atom: Atom, numbers: Mapping[str, Array], what: str) -> Array:
    bad: NDArray[np.bool_] = np.any(~np.isfinite(values), axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        where = ", ".join(f"{name} = {column[first]:g}" for name, column in numbers.items())
        message = (
            f"{what} is not a finite number in {int(bad.sum())} of {len(bad)} rows of the table "
            f"(first where {where}); change the expression or drop these rows."
        )
        raise DataError(message).at(atom)
    return values


def _coded(atom: Atom, column: Name, codes: Index, levels: Levels) -> tuple[Coding, Index]:
    """A factor: a column, or `C(column, contrast, levels=...)`."""
    if isinstance(atom, Name):
        return _treatment(atom, atom.value, levels, 0), codes
    (kind, options), wanted = contrast_of(atom), levels_of(atom)
    if wanted is not None:
        codes, levels = _reorder(atom, column, codes, levels, wanted)
    if kind in ("treatment", "SAS"):
        base = options.get("base")
        place = (0 if kind == "treatment" else len(levels) - 1) if base is None else levels.get(base)
        if place is None:
            message = f"the base level {base!r} is not in the data. Levels: {listed(map(level_label, levels))}."
            raise DataError(message).at(atom)
        return _treatment(column, str(atom), levels, place), codes
    return _contrasts(atom, column, levels, kind, options), codes


def _treatment(column: Name, name: str, levels: Levels, base: int) -> Coding:
    dummies = np.eye(len(levels))
    labels = [str(value) for value in levels]
    return Coding(
        column=column,
        levels=levels,
        full=dummies,
        contrasts=np.delete(dummies, base, axis=1),
        full_names=tuple(f"{name}[{label}]" for label in labels),
        contrast_names=tuple(f"{name}[T.{label}]" for i, label in enumerate(labels) if i != base),
    )


def _contrasts(call: Call, column: Name, levels: Levels, kind: str, options: dict[str, Any]) -> Coding:
    """Take a contrast matrix from formulaic."""
    if len(levels) == 1:
        matrix, fields, pattern = np.zeros((1, 0)), [], "{name}[{field}]"
    else:
        from formulaic.transforms.contrasts import ContrastsRegistry

        values = list(levels)
        try:
            contrast = getattr(ContrastsRegistry, kind)(**options)
            matrix = np.asarray(contrast.get_coding_matrix(values, reduced_rank=True), dtype=np.float64)
        except (TypeError, ValueError) as error:
            message = f"contrast '{kind}' with these options does not fit {len(levels)} levels; change them."
            raise DataError(message).at(call) from error
        fields = list(contrast.get_coding_column_names(values, reduced_rank=True))
        pattern = contrast.get_factor_format(values, reduced_rank=True)
    names = tuple(pattern.format(name=str(call), field=field) for field in fields)
    return replace(_treatment(column, str(call), levels, 0), contrasts=matrix, contrast_names=names)


def _reorder(call: Call, column: Name, codes: Index, levels: Levels, wanted: tuple[Any, ...]) -> tuple[Index, Levels]:
    """Put the levels in the order of `levels=[...]`; listed levels that do not occur are dropped."""
    missing = [value for value in levels if value not in wanted]
    if missing or len(set(wanted)) < len(wanted):
        problem = f"does not list {missing[0]!r}" if missing else "lists a level twice"
        message = f"levels= {problem}; list every level of '{column.value}' once: {listed(map(level_label, levels))}."
        raise DataError(message).at(call)
    values = list(levels)
    ordered = placed(values[levels[value]] for value in wanted if value in levels)
    place = np.array([ordered[value] for value in values], dtype=np.intp)
    return place[codes], ordered


# evaluation -----------------------------------------------------------------------------------------


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
    raise TypeError(f"{type(node).__name__} has no value")  # check_call lets none of these through


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
        options = _options(call, STATEFUL[call.function])
        state[key] = smooth.fitted(call, options, x, counts)
    return _shaped(call, state[key](x))


def _shaped(call: Call, columns: Array) -> Array:
    """The columns of a transform; one that is a number to other functions has no second axis."""
    return columns if call.function in SEVERAL_COLUMNS else columns[:, 0]
