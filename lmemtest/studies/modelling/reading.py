"""The terms that a user names, with roles or columns -> terms of a formula about columns."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING

from lmemtest._validate import check_columns
from lmemtest.errors import ArgumentError, FormulaError, UnknownColumnError
from lmemtest.formula import parse_bars, parse_formula, parse_terms
from lmemtest.formula.syntax import DIAGONAL
from lmemtest.formula.tokens import CONSTANTS, Token, quote_name, tokenize
from lmemtest.words import listed, suggest

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.formula.bars import Bar, ParsedFormula

ROLES = ("algorithm", "benchmark", "seed", "budget")
_BARS = ("|", "||")
NAMES = ("algorithm", "benchmark", "seed")  # roles whose numbers are names: never a slope


def as_factor(runs: Runs, column: str) -> str:
    """The column in formula syntax; numbers that are names (1, 2, 3) must not become a slope."""
    numeric = runs.frame.collect_schema()[column].is_numeric()
    return f"C({quote_name(column)})" if numeric else quote_name(column)


def column_of(name: str, runs: Runs, *, quoted: bool = False) -> str:
    """The column that a word of the user names.

    Parameters
    ----------
    name : str
        A column, or a role: "algorithm", "benchmark", "seed", "budget".
    runs : Runs
    quoted : bool
        Whether it stood in backticks, which always name a column.

    Returns
    -------
    str

    Raises
    ------
    UnknownColumnError, ArgumentError
        If there is no such column or role, or both and they differ.
    """
    columns = runs.columns
    role = getattr(runs, name) if name in ROLES and not quoted else None
    if role is not None and name in columns and role != name:
        raise ArgumentError(
            f"'{name}' is a column of its own and also the role of the column '{role}'. Write `{name}` in backticks "
            f"for the column, or '{role}' for the role."
        )
    if role is not None:
        return str(role)
    if name in ROLES and name not in columns:
        raise UnknownColumnError(
            f"the runs have no {name}: no column was named for it. Say which one it is: Runs(..., {name}=...). "
            f"Columns: {listed(columns)}."
        )
    if name not in columns:
        check = [*columns, *(r for r in ROLES if getattr(runs, r) is not None)]
        raise UnknownColumnError(
            f"the model names '{name}', which is not a column or role of the runs. Columns: {listed(columns)}."
            f"{suggest(name, check)}"
        )
    return name


def with_columns(text: str, runs: Runs, *, factors: bool) -> str:
    """The same terms with roles replaced by their columns.

    Parameters
    ----------
    text : str
        Terms of a formula.
    runs : Runs
    factors : bool
        Write numeric algorithms, benchmarks and seeds as ``C(column)``, since their numbers are names; not within a
        call, and not as the group of a random effect, where every column is a factor.

    Returns
    -------
    str
    """
    tokens = tokenize(text)
    out, position = [], 0
    brackets: list[str] = []  # "call", "sum", or "group" once its bar has been passed
    for token, after in pairwise(tokens):
        if token.kind == "operator":
            _follow(token, tokens, brackets)
        if not _is_column(token, after, "call" in brackets):
            continue
        column = column_of(token.value, runs, quoted=token.quoted)
        name = factors and not {"call", "group"} & set(brackets) and column in _names(runs)
        wrap = name and _is_numeric(column, runs)
        out += [text[position : token.start], f"C({quote_name(column)})" if wrap else quote_name(column)]
        position = token.end
    return "".join([*out, text[position:]])


def _follow(token: Token, tokens: list[Token], brackets: list[str]) -> None:
    """Keep track of what the open brackets hold."""
    if token.value == "(":
        brackets.append("call" if _is_call(tokens, token) else "sum")
    elif token.value == ")" and brackets:
        brackets.pop()
    elif token.value in _BARS and brackets:
        brackets[-1] = "group"


def _is_call(tokens: list[Token], bracket: Token) -> bool:
    at = tokens.index(bracket)
    before = tokens[at - 1] if at else None
    return before is not None and before.kind == "name" and not before.quoted and before.value != DIAGONAL


def _is_column(token: Token, after: Token, inside: bool) -> bool:
    if token.kind != "name" or (token.value in CONSTANTS and not token.quoted):
        return False
    called = after.value == "(" and after.kind == "operator" and not token.quoted
    option = inside and after.value in ("=", ".") and after.kind == "operator"
    return not (called or option)


def _has_bar(text: str) -> bool:
    return any(token.kind == "operator" and token.value in _BARS for token in tokenize(text))


def _names(runs: Runs) -> set[str | None]:
    return {getattr(runs, role) for role in NAMES}


def _is_numeric(column: str, runs: Runs) -> bool:
    return bool(runs.frame.collect_schema()[column].is_numeric())


def fixed_labels(text: str, runs: Runs) -> tuple[str, ...]:
    """The fixed terms that a text stands for, one by one.

    Parameters
    ----------
    text : str
        For example ``"algorithm * budget"``.
    runs : Runs

    Returns
    -------
    tuple of str
        For example ``("algorithm", "budget", "algorithm:budget")``.
    """
    text = _text(text, "a fixed term")
    if _has_bar(text):
        raise ArgumentError(f"'{text}' is a random effect; add it with .random() or .slope().")
    parsed = _parse(with_columns(text, runs, factors=True), runs)
    if not parsed.terms.has_intercept:
        raise ArgumentError(f"'{text}' removes the intercept, which every model of a builder has; leave the 0 out.")
    return labels_of(parsed)


def labels_of(parsed: ParsedFormula) -> tuple[str, ...]:
    """The fixed terms of a formula without its intercept."""
    return tuple(term.label for term in parsed.fixed_terms)


def random_bars(text: str, runs: Runs) -> tuple[Bar, ...]:
    """The random effects that a text stands for: groups like ``"benchmark:seed"``, or a term in brackets."""
    text = _text(text, "a random effect")
    bars = text if _has_bar(text) else f"(1 | {text})"
    parsed = _parse(f"1 + {with_columns(bars, runs, factors=True)}", runs)
    if labels_of(parsed):
        raise ArgumentError(f"{text!r} has fixed terms besides its random effects; add them with .fixed().")
    return parsed.bars


def diagonal_bars(factor: str, group: str, runs: Runs) -> tuple[Bar, ...]:
    """Independent effects of every level of a factor, with a variance each, in groups like ``"benchmark:seed"``."""
    labels = fixed_labels(_text(factor, "per"), runs)
    if len(labels) != 1:
        raise ArgumentError(f"per must be one column or role, such as 'algorithm', got {factor!r}.")
    if _has_bar(_text(group, "a random effect")):
        raise ArgumentError(f"per is of groups like 'benchmark'; {group!r} is a whole term, which says what varies.")
    return _parse(f"1 + {DIAGONAL}({labels[0]} | {with_columns(group, runs, factors=False)})", runs).bars


def is_random(text: object) -> bool:
    """Whether a text is a random effect in brackets."""
    return isinstance(text, str) and _has_bar(text)


def slope_bar(effect: str, group: str, runs: Runs, *, correlated: bool) -> Bar:
    """The random slope of an effect."""
    inner = " + ".join(fixed_labels(effect, runs))
    groups = with_columns(_text(group, "group"), runs, factors=False)
    bars = _parse(f"1 + ({'1' if correlated else '0'} + {inner} | {groups})", runs).bars
    if len(bars) != 1:
        raise ArgumentError(f"group must be one group like 'benchmark' or 'benchmark:seed', got {group!r}.")
    return bars[0]


def same_term(first: str, second: str) -> bool:
    """Whether two labels are one interaction, in any order."""
    return _atoms(first) == _atoms(second)


def _atoms(label: str) -> frozenset[str]:
    return frozenset().union(*(term.key for term in parse_terms(label)))


def plain_columns(label: str) -> tuple[str, ...]:
    """The columns of a term, in order."""
    columns = [term.columns for term in parse_terms(label)] + [bar.columns for bar in parse_bars(label)]
    return tuple(dict.fromkeys(chain(*columns)))


def is_plain(label: str) -> bool:
    """Whether a term is one column as it is."""
    terms = parse_terms(label)
    return len(terms) == 1 and terms[0].is_plain


def _parse(right: str, runs: Runs) -> ParsedFormula:
    parsed = parse_formula(f"{quote_name(runs.score)} ~ {right}")
    if parsed.offsets:
        raise ArgumentError(f"{parsed.offsets[0]} is no term that can be tested; subtract it from the score instead.")
    return parsed


def _text(text: object, what: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError(f"{what} must be text like 'benchmark' or 'benchmark:seed', got {text!r}.")
    if "~" in text:
        raise FormulaError(f"{what} is a part of the right side, without '~'; got {text!r}.")
    return text


def dispersion_column(name: object, runs: Runs) -> str:
    """The column of `ModelBuilder.dispersion`."""
    if not isinstance(name, str):
        raise ArgumentError(f"column must be the name of a column or role, got {name!r}.")
    column = column_of(name, runs)
    check_columns(column, runs.columns, argument="column")
    return column
