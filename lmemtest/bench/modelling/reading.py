"""The terms that a user names, with roles or columns -> terms of a model about columns.

This is the only place where a study reads text; all that follows works on `Term`, `Bar` and `ModelSpec`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, FormulaError, UnknownColumnError
from lmemtest.lmm.formula import INTERCEPT, Bar, Term, parse_right
from lmemtest.lmm.formula.syntax import DIAGONAL, Call
from lmemtest.lmm.formula.tokens import CONSTANTS, Token, quote_name, tokenize

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

ROLES = ("algorithm", "benchmark", "family", "seed", "budget")
_BARS = ("|", "||")


# ---------------------------------------------------------------------- columns


def is_numeric(column: str, runs: Runs) -> bool:
    """Whether a column holds numbers."""
    return bool(runs.frame.collect_schema()[column].is_numeric())


def factor_term(column: str, runs: Runs) -> Term:
    """The levels of a column; numbers that stand for levels (1, 2, 3) must not become a slope."""
    return Term.levels(column) if is_numeric(column, runs) else Term.of(column)


def column_term(column: str, runs: Runs) -> Term:
    """The column as a fixed term: numeric algorithms, benchmarks and seeds are names, other numbers a slope."""
    return factor_term(column, runs) if column in named_by(runs) else Term.of(column)


def named_by(runs: Runs) -> set[str | None]:
    """Columns whose numbers are names, never a slope."""
    return {runs.algorithm, runs.benchmark, *runs.family, runs.seed}


def is_factor(term: Term, runs: Runs) -> bool:
    """Whether a term stands for the levels of one column."""
    if len(term.factors) != 1:
        return False
    (atom,) = term.factors
    return atom.function == "C" if isinstance(atom, Call) else not is_numeric(atom.value, runs)


def column_of(name: str, runs: Runs, *, quoted: bool = False) -> str:
    """The column that a word of the user names: a column, a role, or in backticks (`quoted`) always a column."""
    columns = runs.columns
    role = _column_with(name, runs) if name in ROLES and not quoted else None
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
        check = [*columns, *(r for r in ROLES if getattr(runs, r))]
        raise UnknownColumnError(
            f"the model names '{name}', which is not a column or role of the runs. Columns: {listed(columns)}."
            f"{suggest(name, check)}"
        )
    return name


def _column_with(role: str, runs: Runs) -> str | None:
    """The column that has a role; None for one that is not given."""
    if role != "family":
        column: str | None = getattr(runs, role)
        return column
    if len(runs.family) > 1:
        raise ArgumentError(
            f"'family' stands for one column, but these runs have several: {listed(runs.family)}. Name the one that "
            f"you mean; the finest families are {':'.join(map(quote_name, runs.family))!r}."
        )
    return next(iter(runs.family), None)


def with_columns(text: str, runs: Runs, *, factors: bool = True) -> str:
    """The same terms with roles replaced by their columns.

    With `factors`, numeric algorithms, benchmarks and seeds are written as ``C(column)``, since their numbers are
    names; not within a call, and not as the group of a random effect, where every column is a factor.
    """
    tokens = tokenize(text)
    names = named_by(runs)
    out, position = [], 0
    brackets: list[str] = []  # "call", "sum", or "group" once its bar has been passed
    before: Token | None = None
    for token, after in pairwise(tokens):
        if token.kind == "operator":
            if token.value == "(":
                called = before is not None and before.kind == "name" and not before.quoted
                brackets.append("call" if called and before.value != DIAGONAL else "sum")  # type: ignore[union-attr]
            elif token.value == ")" and brackets:
                brackets.pop()
            elif token.value in _BARS and brackets:
                brackets[-1] = "group"
        elif _is_column(token, after, "call" in brackets):
            column = column_of(token.value, runs, quoted=token.quoted)
            level = factors and not {"call", "group"} & set(brackets) and column in names
            new = f"C({quote_name(column)})" if level and is_numeric(column, runs) else quote_name(column)
            out += [text[position : token.start], new]
            position = token.end
        before = token
    return "".join([*out, text[position:]])


def _is_column(token: Token, after: Token, inside: bool) -> bool:
    if token.kind != "name" or (token.value in CONSTANTS and not token.quoted):
        return False
    called = after.value == "(" and after.kind == "operator" and not token.quoted
    option = inside and after.value in ("=", ".") and after.kind == "operator"
    return not (called or option)


# ---------------------------------------------------------------------- terms


def is_random(text: object) -> bool:
    """Whether a text is a random effect in brackets."""
    return isinstance(text, str) and any(t.kind == "operator" and t.value in _BARS for t in tokenize(text))


def fixed_terms(text: str, runs: Runs, what: str = "a fixed term") -> tuple[Term, ...]:
    """The fixed terms that a text such as ``"algorithm * budget"`` stands for."""
    if is_random(_checked(text, what)):
        raise ArgumentError(f"'{text}' is a random effect; add it with .random() or .slope().")
    terms, _ = _read(with_columns(text, runs), runs)
    if INTERCEPT not in terms:
        raise ArgumentError(f"'{text}' removes the intercept, which every model of a builder has; leave the 0 out.")
    return tuple(term for term in terms if term != INTERCEPT)


def random_bars(text: str, runs: Runs) -> tuple[Bar, ...]:
    """The random effects that a text stands for: groups like ``"benchmark:seed"``, or a term in brackets."""
    bars = text if is_random(_checked(text, "a random effect")) else f"(1 | {text})"
    terms, found = _read(with_columns(bars, runs), runs)
    if terms != (INTERCEPT,):
        raise ArgumentError(f"{text!r} has fixed terms besides its random effects; add them with .fixed().")
    return found


def one_factor(text: str, runs: Runs) -> Term:
    """The factor whose levels vary, each with a variance of its own."""
    terms = fixed_terms(text, runs, "by")
    if len(terms) != 1:
        raise ArgumentError(f"by must be one column or role, such as 'algorithm', got {text!r}.")
    return terms[0]


def diagonal_bars(factor: Term, group: str, runs: Runs) -> tuple[Bar, ...]:
    """Independent effects of every level of a factor, with a variance each, in groups like ``"benchmark:seed"``."""
    if is_random(_checked(group, "a random effect")):
        raise ArgumentError(f"by is of groups like 'benchmark'; {group!r} is a whole term, which says what varies.")
    return _read(f"{DIAGONAL}({factor} | {with_columns(group, runs, factors=False)})", runs)[1]


def one_group(text: str, runs: Runs) -> tuple[str, ...]:
    """The columns of one grouping such as ``"benchmark:seed"``."""
    _, bars = _read(f"(1 | {with_columns(_checked(text, 'group'), runs, factors=False)})", runs)
    if len(bars) != 1:
        raise ArgumentError(f"group must be one group like 'benchmark' or 'benchmark:seed', got {text!r}.")
    return bars[0].groups


def dispersion_column(text: str, runs: Runs) -> str | None:
    """The column of ``dispersion(column)``, or None where a text is something else."""
    tokens = tokenize(text)
    if [t.value for t in tokens[:2]] != ["dispersion", "("] or [t.value for t in tokens[3:4]] != [")"]:
        return None
    return column_of(tokens[2].value, runs, quoted=tokens[2].quoted)


def _read(text: str, runs: Runs) -> tuple[tuple[Term, ...], tuple[Bar, ...]]:
    terms, bars = parse_right(text)
    if any(runs.score in columns for columns in (*(t.columns for t in terms), *(b.columns for b in bars))):
        raise FormulaError(f"the response '{runs.score}' cannot also stand on the right side; remove it there.")
    return terms, bars


def _checked(text: object, what: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError(f"{what} must be text like 'benchmark' or 'benchmark:seed', got {text!r}.")
    if "~" in text:
        raise FormulaError(f"{what} is a part of the right side, without '~'; got {text!r}.")
    return text
