"""lme4's random-effect syntax: a formula text -> fixed part and bars.

`(x | g)` implies the intercept; `(x || g)` is `(1 | g) + (0 + x | g)`, one bar per term, so that a factor
keeps its full covariance; `(1 | a/b)` is `(1 | a) + (1 | a:b)` (Bates et al. 2015, J. Stat. Softw. 67(1),
table 2). `diag(f | g)` gives every level of the factor `f` independent effects with a variance of its own: the
`diag(0 + f | g)` of glmmTMB (Brooks et al. 2017, R J. 9(2)), which `||` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lmemtest.errors import ArgumentError, FormulaError, pointing
from lmemtest.lmm.formula.functions import ELEMENTWISE, check_response, read_offset
from lmemtest.lmm.formula.syntax import (
    DIAGONAL,
    Atom,
    Call,
    Joined,
    Literal,
    Name,
    Node,
    Variation,
    children,
    parse_sum,
    parse_tree,
)
from lmemtest.lmm.formula.terms import INTERCEPT, Term, atoms_of, by_degree, expand, mentions, states_intercept
from lmemtest.lmm.formula.tokens import quote_name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bar:
    """One random-effect term after all short forms are written out.

    Bars are equal if the same effects vary between the same groups, in whatever order they are written.
    """

    left: str  # what varies, with its intercept stated, e.g. "1 + x" or "0 + x"
    diagonal: bool  # of `diag(left | group)`: the levels vary independently, each with a variance of its own
    effects: tuple[Term, ...] = field(repr=False)  # what varies: the intercept, if it does, then slopes
    group_names: tuple[Name, ...] = field(repr=False)
    start: int = 0  # start, end: 0-based half-open range of the part of the formula that it comes from
    end: int | None = None

    @classmethod
    def of(cls, groups: Sequence[str], effects: Sequence[Term] = (INTERCEPT,)) -> Bar:
        """The bar of some effects that vary between the combinations of some columns, correlated in any way."""
        left = " + ".join(["1" if INTERCEPT in effects else "0", *(e.label for e in effects if e != INTERCEPT)])
        return cls(
            left=left,
            diagonal=False,
            effects=by_degree(effects),
            group_names=tuple(Name(column, 0, 0) for column in groups),
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """Columns whose combinations are the groups: ("a", "b") for a:b."""
        return tuple(name.value for name in self.group_names)

    @property
    def group(self) -> str:
        """The group side in formula syntax, backticks where a name needs them."""
        return ":".join(map(quote_name, self.groups))

    @property
    def slopes(self) -> tuple[Term, ...]:
        """What varies besides the intercept."""
        return tuple(effect for effect in self.effects if effect != INTERCEPT)

    @property
    def has_intercept(self) -> bool:
        """Whether the groups have levels of their own."""
        return INTERCEPT in self.effects

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of what varies, then those of the groups."""
        return tuple(dict.fromkeys([*(name.value for name in mentions(self.effects)), *self.groups]))

    @property
    def key(self) -> tuple[frozenset[str], frozenset[Term], bool]:
        """Groups, what varies between them, and whether independently."""
        return frozenset(self.groups), frozenset(self.effects), self.diagonal

    def within(self, other: Bar) -> bool:
        """Whether it is the same as another bar, or the intercept that the other one has as well."""
        if self == other:
            return True
        lone = self.effects == (INTERCEPT,)
        return lone and set(self.groups) == set(other.groups) and other.has_intercept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bar) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{DIAGONAL if self.diagonal else ''}({self.left} | {self.group})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFormula:
    """A formula, read and checked, before it meets data."""

    text: str  # the formula as it was written
    response_function: str | None  # function applied to every score, e.g. "log"
    fixed: str  # fixed part in formulaic's syntax, names in backticks where they need them
    bars: tuple[Bar, ...]  # the random-effect terms
    terms: tuple[Term, ...] = field(repr=False, compare=False)  # of the fixed part, the intercept among them
    response_name: Name = field(repr=False, compare=False)
    offsets: tuple[Call, ...] = field(default=(), repr=False)  # the parts that are known, `offset(...)`

    @property
    def response(self) -> str:
        """The response column."""
        return self.response_name.value

    @property
    def fixed_terms(self) -> tuple[Term, ...]:
        """The terms of the fixed part, without the intercept."""
        return tuple(term for term in self.terms if term != INTERCEPT)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns but the response, in order of appearance."""
        return tuple(dict.fromkeys(name.value for name in self.names))

    @property
    def response_transform(self) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
        """The function behind `response_function`, or None."""
        return ELEMENTWISE[self.response_function] if self.response_function else None

    @property
    def score(self) -> str:
        """The response with its function, as results name it: "log(loss)"."""
        return f"{self.response_function}({self.response})" if self.response_function else self.response

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Columns and calls that meet a table: those of the fixed part, of what varies, and offsets."""
        parts = (self.terms, *(bar.effects for bar in self.bars))
        return (*(atom for terms in parts for atom in atoms_of(terms)), *self.offsets)

    @property
    def fixed_names(self) -> tuple[Name, ...]:
        """The columns of the fixed part, at each of their uses."""
        return tuple(mentions(self.terms))

    @property
    def names(self) -> tuple[Name, ...]:
        """Every use of a column on the right side, with its place in the text."""
        offsets = (name for offset in self.offsets for name in offset.reads)
        bars = (name for bar in self.bars for name in (*mentions(bar.effects), *bar.group_names))
        return (*self.fixed_names, *offsets, *bars)

    def with_bars(self, bars: Iterable[Bar]) -> ParsedFormula:
        """The formula with other random effects of its columns."""
        changed = replace(self, bars=tuple(bars))
        return replace(changed, text=str(changed))

    def __str__(self) -> str:
        response = quote_name(self.response)
        left = f"{self.response_function}({response})" if self.response_function else response
        return f"{left} ~ {' + '.join([self.fixed, *map(str, self.offsets), *map(str, self.bars)])}"


def parse_formula(text: str) -> ParsedFormula:
    """Read a two-sided mixed-model formula; `str()` of the parts is the canonical text, which reads back to the same.

    Names that are not plain words stand in backticks; a backtick inside them is doubled. A `FormulaError` points into
    the text.

    Notes
    -----
    Nothing is evaluated: the text is read by our own grammar, functions come from a fixed list, and columns
    are only ever looked up by name.

    References
    ----------
    .. [1] Bates, Mächler, Bolker & Walker (2015). Fitting linear mixed-effects models using lme4. Journal of
       Statistical Software 67(1). doi:10.18637/jss.v067.i01

    Examples
    --------
    >>> parsed = parse_formula("value ~ algorithm + (budget || benchmark/seed)")
    >>> print(parsed.fixed)
    algorithm
    >>> for bar in parsed.bars:
    ...     print(bar)
    (1 | benchmark)
    (0 + budget | benchmark)
    (1 | benchmark:seed)
    (0 + budget | benchmark:seed)
    """
    if not isinstance(text, str):
        raise ArgumentError(f"formula must be text like 'score ~ algorithm'; got {type(text).__name__}.")
    if not text.strip():
        raise FormulaError("the formula is empty; write 'response ~ terms', for example 'score ~ algorithm'.")
    return _parse(text)


@lru_cache(maxsize=512)
def _parse(text: str) -> ParsedFormula:
    with pointing(text):
        left, right = parse_tree(text)
        response, response_function = check_response(left)
        fixed_sum, terms, offsets, bars = _right_side(right)
        parsed = ParsedFormula(
            text=text,
            response_function=response_function,
            fixed=str(fixed_sum),
            bars=bars,
            terms=terms,
            response_name=response,
            offsets=offsets,
        )
        for name in parsed.names:
            if name.value == response.value:
                message = f"the response '{response.value}' cannot also stand on the right side; remove it there."
                raise FormulaError(message).at(name)
        return parsed


def parse_term(text: str) -> Term:
    """Read one term of the fixed part, such as ``"algorithm:C(budget)"``.

    Examples
    --------
    >>> term = parse_term("algorithm:C(budget)")
    >>> term.columns, term == parse_term("C(budget):algorithm")
    (('algorithm', 'budget'), True)
    """
    terms, bars = parse_terms(text), parse_bars(text)
    if len(terms) != 1 or bars:
        raise FormulaError(f"'{text}' stands for {len(terms) + len(bars)} terms where one fixed term is expected.")
    return terms[0]


def parse_terms(text: str) -> tuple[Term, ...]:
    """Read the terms that a text such as ``"algorithm * budget"`` stands for.

    The intercept is left out, unless it is all there is.
    """
    terms = parse_right(text)[0]
    return tuple(term for term in terms if term != INTERCEPT) or terms


def parse_bar(text: str) -> Bar:
    """Read one random-effect term, such as ``"(1 + budget | benchmark:seed)"``.

    Examples
    --------
    >>> bar = parse_bar("(1 + budget | benchmark:seed)")
    >>> bar.groups, [effect.label for effect in bar.effects]
    (('benchmark', 'seed'), ['1', 'budget'])
    """
    bars = parse_bars(text)
    if len(bars) != 1:
        raise FormulaError(f"'{text}' stands for {len(bars)} random effects where one is expected.")
    return bars[0]


def parse_bars(text: str) -> tuple[Bar, ...]:
    """Read the random-effect terms that a text such as ``"(budget || benchmark/seed)"`` stands for."""
    return parse_right(text)[1]


@lru_cache(maxsize=512)
def parse_right(text: str) -> tuple[tuple[Term, ...], tuple[Bar, ...]]:
    """Read the fixed terms, an intercept among them unless it is removed, and the random effects of a text."""
    with pointing(text):
        _, terms, offsets, bars = _right_side(parse_sum(text))
        if offsets:
            message = "offset(...) is a known part of the mean: no term that has an effect. Give it in a whole formula."
            raise FormulaError(message).at(offsets[0])
    return terms, bars


# fixed part and random-effect terms ------------------------------------------------------------------


def _right_side(node: Joined) -> tuple[Joined, tuple[Term, ...], tuple[Call, ...], tuple[Bar, ...]]:
    """The fixed part as written and as terms, the offsets, and the random-effect terms."""
    variations: list[Variation] = []
    fixed = _without_bars(node, variations) or Joined((("+", Literal(1, 0, 0)),))
    fixed, offsets = _without_offsets(fixed)
    bars = tuple(bar for variation in variations for bar in _unfold(variation))
    for i, bar in enumerate(bars):
        if bar in bars[:i]:
            message = f"the random-effect term {bar} is in the formula twice; remove one."
            raise FormulaError(message).at(bar)
    return fixed, expand(fixed), offsets, bars


def _without_offsets(node: Joined) -> tuple[Joined, tuple[Call, ...]]:
    """Take the known parts out of the fixed part."""
    kept: list[tuple[str, Node]] = []
    offsets: list[Call] = []
    for sign, item in node.items:
        if not isinstance(item, Call) or item.function != "offset":
            kept.append((sign, item))
            continue
        if sign == "-":
            message = (
                f"offset(...) can only be added; write + offset(-1 * ({item.arguments[0] if item.arguments else ''}))."
            )
            raise FormulaError(message).at(item)
        offsets.append(read_offset(item))
    return Joined(tuple(kept)) if kept else Joined((("+", Literal(1, 0, 0)),)), tuple(offsets)


def _without_bars(node: Joined, bars: list[Variation]) -> Joined | None:
    kept: list[tuple[str, Node]] = []
    for sign, item in node.items:
        inside = list(_bars_in(item))
        if not inside:
            kept.append((sign, item))
        elif sign == "-" or not (isinstance(item, Variation) or (isinstance(item, Joined) and item.bracketed)):
            message = "a random-effect term can only be added; join it to the other terms with '+'."
            raise FormulaError(message).at(inside[0])
        elif isinstance(item, Variation):
            bars.append(item)
        else:
            rest = _without_bars(item, bars)
            if rest is not None:
                kept.append((sign, replace(rest, bracketed=True)))
    return Joined(tuple(kept)) if kept else None


def _bars_in(node: Node) -> Iterator[Variation]:
    if isinstance(node, Variation):
        yield node
    for item in children(node):
        yield from _bars_in(item)


# short forms ----------------------------------------------------------------------------------------


def _unfold(variation: Variation) -> Iterator[Bar]:
    """Write out `||` and `/`."""
    nested = next((bar for _, item in variation.left.items for bar in _bars_in(item)), None)
    if nested is not None:
        raise FormulaError("a random-effect term cannot stand inside another one.").at(nested)
    terms = expand(variation.left)
    if not terms:
        raise FormulaError("nothing varies in this term; write (1 | group) for a random intercept.").at(variation)
    if variation.diagonal:
        _check_diagonal(variation, terms)
    if variation.diagonal:
        factor = next(term for term in terms if term != INTERCEPT)
        parts: list[tuple[str, tuple[Term, ...]]] = [(factor.label, (factor,))]
    elif not variation.correlated:
        parts = [("1" if term == INTERCEPT else f"0 + {term.label}", (term,)) for term in terms]
    else:
        parts = [(f"{'' if states_intercept(variation.left) else '1 + '}{variation.left}", terms)]
    for groups in variation.groups:
        members = {name.value for name in groups}
        for name in mentions(terms):
            if name.value in members:
                message = f"'{name.value}' is a group of this term and cannot vary within itself; remove it."
                raise FormulaError(message).at(name)
        for left, part in parts:
            yield Bar(
                left=left,
                diagonal=variation.diagonal,
                effects=part,
                group_names=groups,
                start=variation.start,
                end=variation.end,
            )


def _check_diagonal(variation: Variation, terms: tuple[Term, ...]) -> None:
    """One factor, or one interaction of factors, without an intercept."""
    group = ":".join(quote_name(name.value) for name in variation.groups[0])
    factors = [term.label for term in terms if term != INTERCEPT]
    if INTERCEPT in terms and (not factors or states_intercept(variation.left)):
        apart = " + ".join([f"(1 | {group})", *(f"{DIAGONAL}({label} | {group})" for label in factors)])
        message = f"{DIAGONAL}() has a variance for each level of a factor and no intercept; write {apart}."
    elif len(factors) > 1:
        apart = " + ".join(f"{DIAGONAL}({label} | {group})" for label in factors)
        message = f"{DIAGONAL}() takes one factor, or the combinations a:b of several; write {apart}."
    else:
        return
    raise FormulaError(message).at(variation)
