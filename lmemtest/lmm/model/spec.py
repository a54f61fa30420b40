"""A model that is not fitted yet: its terms as objects, its formula as text where a person reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.formula import (
    INTERCEPT,
    Bar,
    ParsedFormula,
    Term,
    build_design,
    parse_formula,
    parse_right,
    parse_terms,
)
from lmemtest.lmm.formula.syntax import Call, Name
from lmemtest.lmm.formula.terms import by_degree
from lmemtest.lmm.formula.tokens import quote_name

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.lmm.formula import Design
    from lmemtest.lmm.model.fit import LmmFit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelSpec:
    """What a mixed model consists of.

    Models are equal if they have the same terms, in whatever order and form these are written.

    Attributes
    ----------
    response : str
        The score column.
    terms : tuple of Term
        Fixed terms without the intercept.
    bars : tuple of Bar
        Random effects.
    dispersion : str or None
        Column whose levels have residual variances of their own; no formula shows it.
    offsets : tuple of Call
        Known parts of the mean.
    response_function : str or None
        Applied to every score, such as "log".
    intercept : bool
        Whether the fixed part has one.

    Examples
    --------
    >>> model = ModelSpec.parse("value ~ algorithm * budget + (1 | benchmark)")
    >>> model.formula
    'value ~ algorithm + budget + algorithm:budget + (1 | benchmark)'
    >>> model.without("algorithm:budget").with_slope("budget", "benchmark").formula
    'value ~ algorithm + budget + (1 + budget | benchmark)'
    >>> model == ModelSpec.parse("value ~ budget * algorithm + (1 | benchmark)")
    True
    """

    response: str
    terms: tuple[Term, ...] = ()
    bars: tuple[Bar, ...] = ()
    dispersion: str | None = None
    offsets: tuple[Call, ...] = ()
    response_function: str | None = None
    intercept: bool = True

    @classmethod
    def parse(cls, formula: str, dispersion: str | None = None) -> ModelSpec:
        """The model that a formula stands for; see `parse_formula` for what it raises."""
        return cls.of(parse_formula(formula), dispersion)

    @classmethod
    def of(cls, parsed: ParsedFormula, dispersion: str | None = None) -> ModelSpec:
        """The model of a formula that has been read."""
        return cls(
            response=parsed.response,
            terms=parsed.fixed_terms,
            bars=parsed.bars,
            dispersion=dispersion,
            offsets=parsed.offsets,
            response_function=parsed.response_function,
            intercept=INTERCEPT in parsed.terms,
        )

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def formula(self) -> str:
        """The model in lme4's syntax, ready for `fit_lmm` beside `dispersion`."""
        response = quote_name(self.response)
        if self.response_function is not None:
            response = f"{self.response_function}({response})"
        fixed = [term.label for term in self.terms]
        if not self.intercept or not fixed:
            fixed.insert(0, "1" if self.intercept else "0")
        return f"{response} ~ {' + '.join([*fixed, *map(str, self.offsets), *map(str, self.bars)])}"

    @property
    def parsed(self) -> ParsedFormula:
        """The formula in its parts, put together from the terms: no text is read again."""
        return ParsedFormula(
            text=self.formula,
            response_function=self.response_function,
            fixed=" + ".join([*([] if self.intercept else ["0"]), *(term.label for term in self.terms)]) or "1",
            bars=self.bars,
            terms=by_degree([*([INTERCEPT] if self.intercept else []), *self.terms]),
            response_name=Name(self.response, 0, 0),
            offsets=self.offsets,
        )

    def design(self, table: pd.DataFrame, n: Any) -> Design:
        """The matrices of the model on combinations of its columns, with the rows of each; see `build_design`."""
        return build_design(self.parsed, table, n)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns but the score: of the formula in the order of appearance, then that of the dispersion."""
        names = [*self.parsed.columns, *([] if self.dispersion is None else [self.dispersion])]
        return tuple(dict.fromkeys(names))

    @property
    def fixed_columns(self) -> frozenset[str]:
        """The columns of the fixed terms."""
        return frozenset(column for term in self.terms for column in term.columns)

    def grouped_by(self, groups: Iterable[str]) -> tuple[Bar, ...]:
        """The random effects of the groups that some columns make together."""
        wanted = frozenset(groups)
        return tuple(bar for bar in self.bars if frozenset(bar.groups) == wanted)

    def __contains__(self, term: Term | Bar | str) -> bool:
        return all(part in self.terms or part in self.bars for part in _parts(term))

    # -- composing ----------------------------------------------------------------------------------------------

    def with_term(self, *terms: Term | Bar | str) -> ModelSpec:
        """The model with further terms; a text may be several, ``"algorithm * budget"``, ``"(1 | benchmark/seed)"``.

        A term that is there already changes nothing. A random intercept is a part of other random effects of the same
        groups that have one: it is not added beside them, and they take its place.
        """
        fixed, bars = list(self.terms), list(self.bars)
        for part in (part for term in terms for part in _parts(term)):
            if isinstance(part, Term):
                fixed += [] if part in fixed or part == INTERCEPT else [part]
            elif not any(part.within(bar) for bar in bars):
                bars = [part if bar.within(part) else bar for bar in bars]
                bars += [] if part in bars else [part]
        return replace(self, terms=tuple(fixed), bars=tuple(bars))

    def with_crossed(self, *terms: Term | str) -> ModelSpec:
        """The model with some terms and all their interactions, ``a * b * c``; a text is the name of a column.

        Examples
        --------
        >>> ModelSpec(response="loss").with_crossed("algorithm", Term.levels("budget")).formula
        'loss ~ algorithm + C(budget) + algorithm:C(budget)'
        """
        some = [Term.of(*part) for size in range(1, len(terms) + 1) for part in combinations(terms, size)]
        return self.with_term(*sorted(some, key=lambda term: len(term.factors)))

    def with_random(self, *groups: str) -> ModelSpec:
        """The model with a random intercept of the combinations of some columns, whatever their names."""
        return self.with_term(Bar.of(groups))

    def with_slope(self, effect: Term | str, *groups: str) -> ModelSpec:
        """The model in which an effect differs between the combinations of some columns; of several terms each does.

        The slope joins the random effects of these groups that have an intercept, or brings its own.
        """
        new = (effect,) if isinstance(effect, Term) else parse_terms(effect)
        for i, bar in enumerate(self.bars):
            if set(bar.groups) == set(groups) and bar.has_intercept:
                effects = dict.fromkeys([*bar.effects, *new])
                wider = bar if len(effects) == len(bar.effects) else Bar.of(bar.groups, tuple(effects))
                return replace(self, bars=(*self.bars[:i], wider, *self.bars[i + 1 :]))
        return self.with_term(Bar.of(groups, (INTERCEPT, *new)))

    def without(self, *terms: Term | Bar | str) -> ModelSpec:
        """The model without some of its terms; an `ArgumentError` names those that it has not."""
        gone = [part for term in terms for part in _parts(term)]
        for part in gone:
            if part not in self:
                have = [*(term.label for term in self.terms), *map(str, self.bars)]
                raise ArgumentError(f"the model has no term {str(part)!r} to drop. Its terms: {listed(have)}.")
        return replace(
            self,
            terms=tuple(term for term in self.terms if term not in gone),
            bars=tuple(bar for bar in self.bars if bar not in gone),
        )

    # -- using --------------------------------------------------------------------------------------------------

    def fit(self, data: Any, **options: Any) -> LmmFit:
        """Fit the model to runs or a dataframe; options are those of `fit_lmm`, or with a family of `fit_glmm`."""
        from lmemtest.lmm.model.fitting import fit_parsed
        from lmemtest.lmm.model.glmm import fit_glmm

        if {"family", "link", "trials"} & {*options}:
            if self.dispersion is not None:
                raise ArgumentError(
                    f"a family of answers or counts has no residual variance, and the model has one by "
                    f"{self.dispersion}. Leave the dispersion out."
                )
            return fit_glmm(self.formula, data, **options)
        return fit_parsed(self.parsed, data, dispersion=self.dispersion, **options)

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two models the same."""
        score = (self.response, self.response_function, frozenset(map(str, self.offsets)))
        return (*score, self.intercept, frozenset(self.terms), frozenset(self.bars), self.dispersion)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelSpec) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.formula + ("" if self.dispersion is None else f", residual variance by {self.dispersion}")


def _parts(term: Term | Bar | str) -> tuple[Term | Bar, ...]:
    """The terms that one argument stands for."""
    if not isinstance(term, str):
        return (term,)
    right, bars = parse_right(term)
    terms = tuple(part for part in right if part != INTERCEPT)
    return (*terms, *bars) or (INTERCEPT,)
