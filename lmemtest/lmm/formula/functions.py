"""The functions a formula may call, and nothing else, and what they take.

A call is read once, with the formula: what passes never reaches a name outside the lists below, and has its options as
values. No text is ever run as code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.validate import is_number
from lmemtest.core.words import suggest
from lmemtest.errors import FormulaError
from lmemtest.lmm.formula.syntax import Call, Expression, Literal, Name, Operation

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


# reading --------------------------------------------------------------------------------------------


def read_call(call: Call) -> Call:
    """A call with its options; one that is not on the list, or is not called as it should be, is refused."""
    if call.function != "C":
        return _read_function(call, outermost=True)
    if not call.arguments or not isinstance(call.arguments[0], Name):
        raise FormulaError("C() takes a column first, for example C(algorithm, contr.sum).").at(call)
    return replace(call, options={**_contrast(call), "levels": _levels(call)})


def read_offset(call: Call) -> Call:
    """An `offset(...)` of one number per row made from columns; anything else is refused."""
    if len(call.arguments) != 1 or call.keywords:
        raise FormulaError("offset() takes 1 argument without a name.").at(call)
    call = replace(call, arguments=(_read_number(call.arguments[0]),))
    if not call.reads:
        raise FormulaError(f"{call} uses no column, so it is the same in every row; leave it out.").at(call)
    return call


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


def _read_number(node: Expression) -> Expression:
    """Arithmetic with columns, numbers and calls."""
    if isinstance(node, Operation):
        return replace(node, operands=tuple(map(_read_number, node.operands)))
    if isinstance(node, Literal) and not is_number(node.value):
        raise FormulaError(f"{node} is not a number; arithmetic takes columns and numbers.").at(node)
    return _read_function(node, outermost=False) if isinstance(node, Call) else node


def _read_function(call: Call, *, outermost: bool) -> Call:
    """A call that gives numbers."""
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
        options = _options(call, STATEFUL[name])
        call = replace(call, arguments=(_read_number(call.arguments[0]), *call.arguments[1:]), options=options)
    else:
        wanted = 2 if name == "pow" else 1
        if len(call.arguments) != wanted or call.keywords:
            raise FormulaError(f"{name}() takes {wanted} argument{'s' if wanted > 1 else ''} without a name.").at(call)
        call = replace(call, arguments=tuple(map(_read_number, call.arguments)))
    if not call.reads:
        raise FormulaError(f"{call} uses no column, so it is the same in every row.").at(call)
    return call


def _contrast(call: Call) -> dict[str, Any]:
    """The contrast of `C(...)`, by its name in formulaic's registry, and its options."""
    choices = list(call.arguments[1:]) + [value for name, value in call.keywords if name in ("contr", "contrasts")]
    if len(choices) > 1:
        raise FormulaError("C() takes one contrast.").at(choices[1])
    unknown = [name for name, _ in call.keywords if name not in ("contr", "contrasts", "levels", "base")]
    if unknown:
        raise FormulaError(f"C() has no argument '{unknown[0]}'. Arguments: contr, levels, base.").at(call)
    base = {name: _constant(value) for name, value in call.keywords if name == "base"}
    if not choices:
        return {"contrast": "treatment", **base}
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
    return {"contrast": registered, **values}


def _levels(call: Call) -> tuple[Any, ...] | None:
    """The list in `levels=[...]` of `C(...)`."""
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
