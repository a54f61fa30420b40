"""The algebra of terms: a sum of the formula -> its list of terms.

Which terms `a*b - a` or `(a + b)**2` stand for is decided by formulaic's parser. It is handed stand-in names
(v0, v1, ...), so no text of the user or of the data reaches it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from lmemtest.errors import FormulaError
from lmemtest.lmm.formula.functions import read_call
from lmemtest.lmm.formula.syntax import Atom, Call, Joined, Literal, Name, Node, children

MOST_COLUMNS = 8  # in one interaction; the search for its coding grows sixfold per factor: 0.15 s at 8
_MOST_TERMS = 5000  # a*b*...*m of 13 columns has 8191; beyond this a formula is a slip, and memory is at risk


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A product of columns and calls: the intercept (of none), a main effect (of one), an interaction (of several).

    Terms are equal if they are products of the same factors, in whatever order.
    """

    factors: tuple[Atom, ...]  # as written, from the left

    @classmethod
    def of(cls, *factors: Term | str) -> Term:
        """The product of terms and of columns as they are: ``Term.of("algorithm", "budget")`` is their interaction."""
        atoms = [f.factors if isinstance(f, Term) else (Name(f, 0, 0),) for f in factors]
        return cls(tuple({str(atom): atom for group in atoms for atom in group}.values()))

    @classmethod
    def levels(cls, column: str) -> Term:
        """The levels of a column, whatever it holds: ``C(column)``."""
        return cls((Call("C", (Name(column, 0, 0),), (), 0, 0, 0),))

    @property
    def label(self) -> str:
        """The term in formula syntax."""
        return ":".join(map(str, self.factors)) or "1"

    @property
    def name(self) -> str:
        """The term as tables of a fit have it: plain columns without backticks."""
        plain = (factor.value if isinstance(factor, Name) else str(factor) for factor in self.factors)
        return ":".join(plain) if self.factors else "Intercept"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in order."""
        return tuple(dict.fromkeys(name.value for factor in self.factors for name in factor.reads))

    @property
    def is_plain(self) -> bool:
        """Whether it is one column as it is."""
        return len(self.factors) == 1 and isinstance(self.factors[0], Name)

    @property
    def margins(self) -> tuple[Term, ...]:
        """The lower terms of an interaction: its main effects, then its interactions of fewer factors."""
        sizes = range(1, len(self.factors))
        return tuple(Term(part) for size in sizes for part in itertools.combinations(self.factors, size))

    @property
    def key(self) -> frozenset[str]:
        """What it is a product of."""
        return frozenset(map(str, self.factors))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.label


INTERCEPT = Term(())


def by_degree(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Terms once each, main effects first, and then as given."""
    return tuple(dict.fromkeys(sorted(terms, key=lambda term: len(term.factors))))


def atoms_of(terms: Iterable[Term]) -> tuple[Atom, ...]:
    """The distinct columns and calls of some terms, in the order in which a text has them."""
    atoms = {str(factor): factor for term in terms for factor in term.factors}
    return tuple(sorted(atoms.values(), key=lambda atom: atom.start))


def mentions(terms: Iterable[Term]) -> Iterator[Name]:
    """Yield every column of some terms with its place in the text."""
    for atom in atoms_of(terms):
        yield from atom.reads


def expand(node: Joined) -> tuple[Term, ...]:
    """List the terms of a sum that holds no random-effect term.

    Examples
    --------
    >>> from lmemtest.lmm.formula.syntax import parse_sum
    >>> [term.label for term in expand(parse_sum("(a + b)**2 - b"))]
    ['1', 'a', 'a:b']
    """
    if _count(node) > _MOST_TERMS:
        raise FormulaError(f"the formula stands for more than {_MOST_TERMS} terms.").at((0, None))
    atoms: dict[str, Atom] = {}
    _check_constants(node)
    stand_in = _render(node, atoms)
    atoms = {text: read_call(atom) if isinstance(atom, Call) else atom for text, atom in atoms.items()}
    terms = _summed(node, atoms) or _multiplied(stand_in, atoms)
    if max((len(term.factors) for term in terms), default=0) > MOST_COLUMNS:
        message = f"an interaction has more than {MOST_COLUMNS} columns; leave some out or join them in the table."
        raise FormulaError(message).at((0, None))
    return tuple(dict.fromkeys(terms))


def _summed(node: Joined, atoms: dict[str, Atom]) -> list[Term]:
    """The terms of a sum of columns, perhaps after 0 or 1, which needs no algebra; empty if it is another sum."""
    signs, items = zip(*node.items, strict=True)
    start = items[0]
    summands = items[1:] if isinstance(start, Literal) else items
    if "-" in signs or not all(isinstance(item, (Name, Call)) for item in summands):
        return []
    without = isinstance(start, Literal) and start.value == 0
    return [*([] if without else [INTERCEPT]), *(Term((atoms[str(item)],)) for item in summands)]


def _multiplied(stand_in: str, atoms: dict[str, Atom]) -> list[Term]:
    """The terms of any sum, as formulaic's parser has them."""
    from formulaic import Formula  # a fifth of a second, which sums of columns need not wait for
    from formulaic.errors import FormulaParsingError

    try:
        listed = list(Formula(stand_in))  # type: ignore[call-overload]
    except FormulaParsingError as error:  # pragma: no cover - our grammar is narrower than formulaic's
        raise FormulaError("the terms cannot be combined like this.").at((0, None)) from error
    stood_for = {f"v{i}": atom for i, atom in enumerate(atoms.values())}
    return [Term(tuple(stood_for[f.expr] for f in term.factors if f.expr in stood_for)) for term in listed]


def states_intercept(node: Joined) -> bool:
    """Tell whether 0, 1 or -1 is written as a term of its own."""
    return any(isinstance(item, Literal) for _, item in node.items)


def _check_constants(node: Node, *, inside: bool = False) -> None:
    """Refuse 0 and 1 in brackets and interactions, where R and formulaic read them differently."""
    if isinstance(node, Literal) and inside:
        raise FormulaError(f"{node} (the intercept) stands as a term of its own, outside brackets; take it out.").at(
            node
        )
    top = isinstance(node, Joined) and node.is_sum and not node.bracketed
    for item in children(node):
        _check_constants(item, inside=inside or not top)


def _render(node: Node, atoms: dict[str, Atom]) -> str:
    if isinstance(node, (Name, Call)):
        key = str(node)
        atoms.setdefault(key, node)
        return f"v{list(atoms).index(key)}"
    if isinstance(node, Literal):
        return str(node.value)
    if isinstance(node, Joined):
        text = " ".join(f"{sign} {_render(item, atoms)}" for sign, item in node.items).removeprefix("+").lstrip()
        return f"({text})" if node.bracketed else text
    raise TypeError(f"{type(node).__name__} is not a term")


def _count(node: Node) -> int:
    """Bound the number of terms from above."""
    if not isinstance(node, Joined):
        return 1
    if node.is_sum:
        return sum(_count(item) for _, item in node.items)
    total = _count(node.items[0][1])
    for operator, item in node.items[1:]:
        if operator == "**":
            exponent = cast(
                int, cast(Literal, item).value
            )  # compared before the power is taken: 9**9**9 must not be computed
            return max(total, 2) ** exponent if exponent <= 13 else _MOST_TERMS + 1
        other = _count(item)
        total = {"*": total * other + total + other, "/": total + other, ":": total * other}[operator]
        if total > _MOST_TERMS:
            return total
    return total
