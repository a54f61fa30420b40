"""The grammar of a formula: tokens -> a tree. No data, no evaluation, no meaning of functions.

formula  := expression "~" sum
sum      := [+|-] product ((+|-) product)*
product  := colon ((*|/) colon)*
colon    := power (":" power)*
power    := primary [(^|**) integer]
primary  := column | 0 | 1 | call | "(" sum ")" | "(" sum ("|" or "||") groups ")" | "diag" "(" sum "|" groups ")"
groups   := joined ("/" joined)*;   joined := group (":" group)*;   group := column | "(" groups ")"
call     := name "(" [argument ("," argument)*] ")";   argument := [name "="] expression
expression: arithmetic with + - * / ** (or ^), numbers, texts, lists, columns and calls
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lmemtest.errors import FormulaError, LmemtestError
from lmemtest.lmm.formula.tokens import CONSTANTS, Token, quote_name, tokenize

DIAGONAL = "diag"  # the random-effect term with a variance for each level, as glmmTMB calls it
_DEEPEST = 50  # nested brackets; far above any model, far below Python's recursion limit
_MOST_GROUPED = 20  # columns crossed in one group, and groups that one bar unfolds into
_DIGITS = 18  # of a whole number: within 64 bits, and below what Python refuses to read
_LONGEST = 200  # arithmetic operators in one formula, for the same reason


@dataclass(frozen=True, slots=True)
class Name:
    """A column (or, inside `C`, a contrast) by its name."""

    value: str
    start: int
    end: int
    quoted: bool = False

    @property
    def reads(self) -> tuple[Name, ...]:
        """The columns that it reads, in order of appearance."""
        return (self,)

    def __str__(self) -> str:
        return quote_name(self.value)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, text, True, False, None, or a bracketed list."""

    value: int | float | str | bool | tuple[Expression, ...] | None
    start: int
    end: int

    @property
    def reads(self) -> tuple[Name, ...]:
        """No column."""
        return ()

    def __str__(self) -> str:
        if isinstance(self.value, tuple):
            return "[" + ", ".join(map(str, self.value)) + "]"
        if isinstance(self.value, str):  # as the tokenizer reads it back, which repr() is not for a line break
            return "'" + self.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic on two expressions, a sign in front of one, or "(" around one."""

    operator: str
    operands: tuple[Expression, ...]
    start: int
    end: int

    @property
    def reads(self) -> tuple[Name, ...]:
        """The columns of its operands."""
        return tuple(name for operand in self.operands for name in operand.reads)

    def __str__(self) -> str:
        *before, last = map(str, self.operands)
        if self.operator == "(":
            return f"({last})"
        return f"{before[0]} {self.operator} {last}" if before else f"{self.operator}{last}"


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; `keywords` pairs (name, expression), `options` what those of a read call say."""

    function: str
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...]
    start: int
    end: int
    name_end: int
    options: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def reads(self) -> tuple[Name, ...]:
        """The columns of its arguments, of `C` the first: a contrast is none."""
        arguments = self.arguments[:1] if self.function == "C" else self.arguments
        return tuple(name for argument in arguments for name in argument.reads)

    def __str__(self) -> str:
        parts = [str(argument) for argument in self.arguments]
        parts += [f"{name}={value}" for name, value in self.keywords]
        return f"{self.function}({', '.join(parts)})"


Expression = Name | Literal | Operation | Call
Atom = Name | Call  # what a term is a product of


@dataclass(frozen=True, slots=True)
class Joined:
    """Terms with the operator before each: signs in a sum, else "*", "/", ":" or "**", read from the left.

    In a sum the first has a sign too, of which "+" is not written; in all else it has no operator.
    """

    items: tuple[tuple[str, Node], ...]
    bracketed: bool = False

    @property
    def is_sum(self) -> bool:
        """Whether terms are added."""
        return bool(self.items[0][0])

    def __str__(self) -> str:
        text = "".join(f"{sign}{node}" if sign in ("", ":", "**") else f" {sign} {node}" for sign, node in self.items)
        text = f"-{text[3:]}" if text.startswith(" - ") else text.removeprefix(" + ")
        return f"({text})" if self.bracketed else text


@dataclass(frozen=True, slots=True)
class Variation:
    """A random-effect term `(left | groups)`; `groups` are the interactions that "/" unfolds into."""

    left: Joined
    groups: tuple[tuple[Name, ...], ...]
    correlated: bool
    start: int
    end: int
    diagonal: bool = False


# a Literal among terms is the 0 or 1 that removes or states the intercept
Node = Name | Call | Literal | Joined | Variation


def children(node: Node) -> tuple[Node, ...]:
    """What the algebra of terms joins in a node."""
    return tuple(item for operator, item in node.items if operator != "**") if isinstance(node, Joined) else ()


def parse_tree(text: str) -> tuple[Expression, Joined]:
    """Read both sides of a formula.

    Examples
    --------
    >>> left, right = parse_tree("y ~ a*b + (1|g)")
    >>> print(left, "|", right.items[0][1])
    y | a * b
    """
    return _Reader(text).formula()


def parse_sum(text: str) -> Joined:
    """Read one side of a formula: a sum of terms without ``~``."""
    reader = _Reader(text)
    terms = reader.sum()
    if reader.token.kind != "end":
        raise reader.misplaced()
    return terms


class _Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenize(text)
        self.index = 0
        self.open: list[Token] = []
        self.arithmetic = 0

    # reading tokens ------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def at(self, *operators: str) -> bool:
        return self.token.kind == "operator" and self.token.value in operators

    def take(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def fail(self, message: str, token: Token | None = None) -> LmemtestError:
        token = token or self.token
        return FormulaError(message).at(token)

    def enter(self) -> Token:
        if len(self.open) == _DEEPEST:
            raise self.fail(f"brackets are nested deeper than {_DEEPEST}; simplify the formula.")
        self.open.append(self.take())
        return self.open[-1]

    def leave(self, closer: str) -> Token:
        if self.token.kind == "end":
            opener = self.open[-1]
            raise self.fail(f"'{opener.value}' is never closed; add '{closer}'.", opener)
        if not self.at(closer):
            raise self.misplaced()
        self.open.pop()
        return self.take()

    def misplaced(self) -> LmemtestError:
        """Explain a token that cannot stand where it stands."""
        token = self.token
        before = self.tokens[self.index - 1] if self.index else None
        if token.kind == "operator" and token.value in ")]":
            return self.fail(f"'{token.value}' closes a bracket that was never opened; remove it.")
        if self.at("~"):
            return self.fail("a formula has one '~', between the response and the terms; remove this one.")
        if self.at("|", "||"):
            return self.fail("a random-effect term stands in its own brackets and has one '|': write (1 | group).")
        if self.at(".") and before is not None and before.value in (")", "]"):
            return self.fail("'.' after a bracket is attribute access, which formulas do not run; remove it.")
        if self.at("["):
            return self.fail('\'[...]\' is only allowed as an option, such as levels=["b", "a"]; remove it.')
        if self.at("."):
            return self.fail("'.' is not supported; name the columns, for example y ~ algorithm + (1 | benchmark).")
        if before is not None and before.kind == "name" and token.kind in ("name", "number", "string"):
            word = before if keyword.iskeyword(before.value) and not before.quoted else token
            if keyword.iskeyword(word.value) and not word.quoted:
                return self.fail(f"'{word.value}' is Python code, which formulas do not run; remove it.", word)
            return self.fail(
                f"an operator is missing before '{token.value}'; join terms with '+', "
                "or put a name that contains spaces in backticks."
            )
        if token.kind == "string":
            return self.fail("a text cannot be a term; column names take no quotes or stand in backticks.")
        if token.kind == "end":
            return self.fail("the formula ends too early; a column or term is missing here.")
        return self.fail(f"'{token.value}' cannot stand here; a column, term or operator is expected.")

    # the formula ---------------------------------------------------------------------------------

    def formula(self) -> tuple[Expression, Joined]:
        if not any(token.kind == "operator" and token.value == "~" for token in self.tokens):
            raise self.fail("a formula has two sides: write 'response ~ terms'.", self.tokens[-1])
        if self.at("~"):
            raise self.fail("the left side is empty; write the response column before '~'.")
        left = self.expression()
        if not self.at("~"):
            raise self.misplaced()
        tilde = self.take()
        if self.token.kind == "end":
            raise self.fail("the right side is empty; write 'response ~ 1' for a mean only.", tilde)
        right = self.sum()
        if self.token.kind != "end":
            raise self.misplaced()
        return left, right

    def sum(self) -> Joined:
        items: list[tuple[str, Node]] = [(self.take().value if self.at("+", "-") else "+", self.product())]
        while self.at("+", "-"):
            items.append((self.take().value, self.product()))
        return Joined(tuple(items))

    def product(self) -> Node:
        return self.chain(self.colon, "*", "/")

    def colon(self) -> Node:
        return self.chain(self.power, ":")

    def chain(self, operand: Callable[[], Node], *operators: str) -> Node:
        items: list[tuple[str, Node]] = [("", operand())]
        while self.at(*operators):
            items.append((self.take().value, operand()))
        return Joined(tuple(items)) if len(items) > 1 else items[0][1]

    def power(self) -> Node:
        start = self.token.start
        base = self.primary()
        if not self.at("**", "^"):
            return base
        self.take()
        exponent = self.token
        if exponent.kind != "number" or not exponent.value.isdecimal() or not exponent.value.strip("0"):
            raise self.fail("the exponent of a term is a whole number from 1, for example (a + b + c)**2.")
        if len(exponent.value) > _DIGITS:
            raise self.fail("the exponent is too large; it is the number of columns that one interaction may join.")
        self.take()
        if isinstance(base, (Name, Call, Literal)):
            message = (
                f"a power of one term is that term again; write the square of a column as I({base}**2) "
                f"or poly({base}, 2)."
            )
            raise FormulaError(message).at((start, exponent.end))
        return Joined((("", base), ("**", Literal(int(exponent.value), exponent.start, exponent.end))))

    def primary(self) -> Node:
        token = self.token
        if token.kind == "name":
            if not self.calls():
                return self.column()
            return self.independent() if token.value == DIAGONAL else self.call()
        if token.kind == "number":
            if token.value not in ("0", "1"):
                raise self.fail(
                    f"the number {token.value} cannot be a term; only 1 and 0 (the intercept) can. "
                    "Write arithmetic as I(...)."
                )
            self.take()
            return Literal(int(token.value), token.start, token.end)
        if self.at("("):
            return self.brackets()
        raise self.misplaced()

    def calls(self) -> bool:
        following = self.tokens[self.index + 1]
        return not self.token.quoted and following.kind == "operator" and following.value == "("

    def column(self) -> Name:
        token = self.take()
        return Name(token.value, token.start, token.end, token.quoted)

    def brackets(self) -> Node:
        opener = self.enter()
        if self.at(")"):
            raise self.fail("the brackets are empty; put a term between them.")
        if self.at("|", "||"):
            raise self.fail("nothing stands before '|'; write (1 | group) for a random intercept.")
        inner = self.sum()
        if not self.at("|", "||"):
            self.leave(")")
            return replace(inner, bracketed=True)
        bar = self.take()
        if self.at(")") or self.token.kind == "end":
            raise self.fail(f"no grouping column stands after '{bar.value}'; write ({inner} {bar.value} group).", bar)
        groups = self.groups()
        closer = self.leave_groups()
        return Variation(inner, tuple(groups), bar.value == "|", opener.start, closer.end)

    def independent(self) -> Node:
        """``diag(factor | groups)``."""
        name = self.take()
        inner = self.brackets()
        if not isinstance(inner, Variation):
            raise self.fail(f"{DIAGONAL}() is a random-effect term; write {DIAGONAL}(algorithm | benchmark).", name)
        if not inner.correlated:
            raise self.fail(f"the effects of {DIAGONAL}() are independent as it is; write it with one '|'.", name)
        return replace(inner, start=name.start, diagonal=True)

    # the group side ------------------------------------------------------------------------------

    def leave_groups(self) -> Token:
        if self.at(")") or self.token.kind == "end":
            return self.leave(")")
        if self.at("+", "*"):
            raise self.fail(
                f"'{self.token.value}' cannot join groups; write one term per group, "
                "(1 | a) + (1 | b), or join columns with ':' or '/'."
            )
        raise self.misplaced()

    def groups(self) -> list[tuple[Name, ...]]:
        left = self.joined()
        while self.at("/"):
            self.take()
            whole = tuple(name for columns in left for name in columns)
            left = left + [_distinct(whole + inner) for inner in self.joined()]
            self.check_groups(left)
        return left

    def check_groups(self, groups: list[tuple[Name, ...]]) -> None:
        if len(groups) > _MOST_GROUPED or any(len(names) > _MOST_GROUPED for names in groups):
            raise self.fail(f"more than {_MOST_GROUPED} columns or levels of nesting in one group; leave some out.")

    def joined(self) -> list[tuple[Name, ...]]:
        left = self.group()
        while self.at(":"):
            self.take()
            right = self.group()
            left = [_distinct(a + b) for a in left for b in right]
            self.check_groups(left)
        return left

    def group(self) -> list[tuple[Name, ...]]:
        if self.at("("):
            self.enter()
            inner = self.groups()
            if not self.at(")"):
                self.leave_groups()
            else:
                self.leave(")")
            return inner
        if self.token.kind != "name":
            if self.token.kind == "end":
                self.leave(")")
            raise self.fail("a grouping column is expected here, for example (1 | benchmark).")
        if self.calls():
            raise self.fail(
                f"'{self.token.value}(...)' cannot be a group; groups are columns, and every column "
                "(numbers too) is taken as a factor there."
            )
        return [(self.column(),)]

    # functions -----------------------------------------------------------------------------------

    def call(self) -> Call:
        name = self.take()
        self.enter()
        arguments: list[Expression] = []
        keywords: list[tuple[str, Expression]] = []
        while not self.at(")") and self.token.kind != "end":
            following = self.tokens[self.index + 1]
            if self.token.kind == "name" and following.kind == "operator" and following.value == "=":
                keyword_token = self.take()
                if keyword_token.value in dict(keywords):
                    raise self.fail(f"argument '{keyword_token.value}' is given twice.", keyword_token)
                self.take()
                keywords.append((keyword_token.value, self.expression()))
            elif keywords:
                raise self.fail("an argument without a name cannot follow one with a name.")
            else:
                arguments.append(self.expression())
            if not self.at(","):
                break
            self.take()
        closer = self.leave(")")
        return Call(name.value, tuple(arguments), tuple(keywords), name.start, closer.end, name.end)

    def expression(self) -> Expression:
        return self.arithmetic_of(self.factors, "+", "-")

    def factors(self) -> Expression:
        return self.arithmetic_of(self.signed, "*", "/")

    def arithmetic_of(self, operand: Callable[[], Expression], *operators: str) -> Expression:
        left = operand()
        while self.at(*operators):
            self.arithmetic += 1
            if self.arithmetic > _LONGEST:
                raise self.fail(f"more than {_LONGEST} arithmetic operators; add the result to the table as a column.")
            operator, right = self.take().value, operand()
            left = Operation(operator, (left, right), left.start, right.end)
        return left

    def signed(self) -> Expression:
        signs = []
        while self.at("+", "-"):
            signs.append(self.take())
            if len(signs) > _DEEPEST:
                raise self.fail("too many signs in a row; simplify the formula.")
        value = self.exponential()
        for sign in reversed(signs):
            value = Operation(sign.value, (value,), sign.start, value.end)
        return value

    def exponential(self) -> Expression:
        base = self.atom()
        if not self.at("**", "^"):
            return base
        self.take()
        self.open.append(self.token)  # x**y**z nests to the right: bounded like brackets
        if len(self.open) > _DEEPEST:
            raise self.fail(f"powers are nested deeper than {_DEEPEST}; simplify the formula.")
        exponent = self.signed()
        self.open.pop()
        return Operation("**", (base, exponent), base.start, exponent.end)

    def atom(self) -> Expression:
        token = self.token
        if token.kind == "name":
            if self.calls():
                return self.call()
            if token.value in CONSTANTS and not token.quoted:
                self.take()
                return Literal(CONSTANTS[token.value], token.start, token.end)
            return self.column()
        if token.kind == "string":
            self.take()
            return Literal(token.value, token.start, token.end)
        if token.kind == "number":
            return self.number()
        if self.at("("):
            opener = self.enter()
            inner = self.expression()
            closer = self.leave(")")
            return Operation("(", (inner,), opener.start, closer.end)
        if self.at("["):
            return self.sequence()
        raise self.misplaced()

    def number(self) -> Literal:
        token = self.take()
        whole = token.value.isdecimal()
        if whole and len(token.value) > _DIGITS:
            raise self.fail("the number is too long; write it as a decimal, like 1e20.", token)
        return Literal(int(token.value) if whole else float(token.value), token.start, token.end)

    def sequence(self) -> Literal:
        opener = self.enter()
        items: list[Expression] = []
        while not self.at("]") and self.token.kind != "end":
            items.append(self.expression())
            if not self.at(","):
                break
            self.take()
        closer = self.leave("]")
        return Literal(tuple(items), opener.start, closer.end)


def _distinct(names: tuple[Name, ...]) -> tuple[Name, ...]:
    seen: dict[str, Name] = {}
    for name in names:
        seen.setdefault(name.value, name)
    return tuple(seen.values())
