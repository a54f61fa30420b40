"""ModelBuilder: a mixed model composed from the roles of a table, one checked term at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from lmemtest._table import ResultTable, Tabular
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, NestingError
from lmemtest.formula import parse_formula, parse_term
from lmemtest.formula.tokens import quote_name
from lmemtest.studies.modelling import reading as term_text
from lmemtest.studies.modelling.builder_questions import Questions
from lmemtest.studies.modelling.identify import check_dispersion, check_identified
from lmemtest.studies.modelling.meaning import fixed_words, random_words
from lmemtest.words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from lmemtest.data.runs import Runs
    from lmemtest.formula.bars import Bar
    from lmemtest.inference.hypotheses.glrt import GlrtResult
    from lmemtest.model import LmmFit
    from lmemtest.studies.modelling.forward import SelectionResult
    from lmemtest.studies.modelling.lattice import SearchResult


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelBuilder(Questions, Tabular):
    """A mixed model of a table of runs, composed from roles and columns.

    Every method returns a new builder; a term that the design cannot identify is refused when it is added.

    Parameters
    ----------
    runs : Runs
        The table. The first model is ``score ~ algorithm``.

    Attributes
    ----------
    terms : tuple of str
        Fixed terms.
    bars : tuple of str
        Random effects.
    residual_by : str or None
        Column whose levels have residual variances of their own.

    Raises
    ------
    ArgumentError
        If `runs` is not `Runs`.

    Notes
    -----
    Terms name columns or roles: "algorithm", "benchmark", "seed", "budget". Where a column has the name of another
    column's role, backticks mean the column. Numeric algorithms, benchmarks and seeds are names, so they enter as
    ``C(column)``; a numeric budget is a straight line unless it is written ``C(budget)`` or ``bs(budget, df=4)``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.modelling.builder import ModelBuilder
    >>> runs = lt.datasets.load_hpo_runs().filter(prior="good")
    >>> simple = ModelBuilder(runs).random("benchmark")
    >>> simple.formula()
    'loss ~ algorithm + (1 | benchmark)'
    >>> richer = simple.interaction("algorithm", "budget").random("benchmark:algorithm", "benchmark:seed")
    >>> richer.drop("algorithm:budget").formula()
    'loss ~ algorithm + budget + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)'
    >>> simple.compare(simple.random("benchmark:algorithm")).p_value < 0.001
    True
    """

    runs: Runs
    terms: tuple[str, ...] = field(init=False, default=())
    bars: tuple[str, ...] = field(init=False, default=())
    residual_by: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        require_runs(self.runs)
        object.__setattr__(self, "terms", term_text.fixed_labels("`" + self.runs.algorithm + "`", self.runs))

    # ------------------------------------------------------------------ composing

    def fixed(self, *terms: str) -> ModelBuilder:
        """Add fixed terms.

        Parameters
        ----------
        *terms : str
            ``"budget"``, ``"algorithm:budget"``, ``"C(budget)"``, ``"prior + poly(budget, 2)"``. Terms that the model
            has already change nothing.

        Returns
        -------
        ModelBuilder

        Raises
        ------
        UnknownColumnError, FormulaError, ArgumentError
            If a name is not a column or role, or the text is not a fixed term.
        DesignError
            If a term has one value, or repeats what other terms say.
        """
        _check_some(terms, "fixed", "'budget'")
        labels = [label for text in terms for label in term_text.fixed_labels(text, self.runs)]
        return self._with(terms=_joined(self.terms, labels))

    def interaction(self, a: str, b: str, *more: str) -> ModelBuilder:
        """Add an interaction of two or more terms, with all that it is made of where the model lacks it.

        Parameters
        ----------
        a, b, *more : str
            Columns, roles or calls such as ``"C(budget)"``. Three of them add their main effects, the interactions of
            every two, and that of all three.

        Returns
        -------
        ModelBuilder

        Raises
        ------
        ArgumentError
            If one of them is several terms, or two have a column in common in the same form.
        """
        given = (a, b, *more)
        labels = [term_text.fixed_labels(text, self.runs) for text in given]
        if any(len(label) != 1 for label in labels):
            raise ArgumentError(f"an interaction is of one term with another; got {_and_words(given)}.")
        for (x, first), (y, second) in combinations(zip(given, (label[0] for label in labels), strict=True), 2):
            if _factors(first) & _factors(second):
                raise ArgumentError(
                    f"an interaction is of different terms, got {x!r} and {y!r}, which are both about "
                    f"{listed(sorted(_factors(first) & _factors(second)))}. Name terms that have nothing in common."
                )
        return self.fixed(" * ".join(_as_columns(label[0]) for label in labels))

    def random(self, *groups: str, per: str | None = None) -> ModelBuilder:
        """Add random intercepts: levels of groups that are a sample.

        Parameters
        ----------
        *groups : str
            ``"benchmark"``, ``"benchmark:seed"``, ``"benchmark/seed"`` (both), or a whole term such as
            ``"(0 + prior | benchmark)"``. Terms that the model has already change nothing: ``"seed:benchmark"`` is
            ``"benchmark:seed"``, and the intercepts of ``"benchmark"`` are a part of ``(1 + budget | benchmark)``.
        per : str, optional
            A column or role with levels, such as "algorithm": each of its levels has deviations of its own in these
            groups, with a variance of its own, ``diag(algorithm | benchmark)``. It takes the place of the one variance
            of all of them, ``(1 | benchmark:algorithm)``, where the model has that.

        Returns
        -------
        ModelBuilder

        Raises
        ------
        DesignError
            If there is one group, groups are single rows, or another term says the same of the same groups.
        """
        _check_some(groups, "random", "'benchmark'")
        if per is None:
            return self._and([bar for text in groups for bar in term_text.random_bars(text, self.runs)])
        bars = [bar for text in groups for bar in term_text.diagonal_bars(per, text, self.runs)]
        replaced = set(map(_cells, bars))
        one_for_all = [bar for bar in self._bars() if bar.left == "1" and frozenset(bar.groups) in replaced]
        return self._without(tuple(map(str, one_for_all)))._and(bars)

    def slope(self, effect: str, group: str, *, correlated: bool = True) -> ModelBuilder:
        """Let an effect differ between groups.

        Parameters
        ----------
        effect : str
            What differs, for example "algorithm", "budget" or a metafeature.
        group : str
            Between what, for example "benchmark".
        correlated : bool
            Add the slope to the intercept of the same groups, ``(1 + effect | group)``, which may be correlated with
            it. False adds ``(0 + effect | group)``, independent of it; if the effect has levels ("algorithm"), this
            term gives each of them a deviation and holds the intercept, so a ``(1 | group)`` beside it is refused.

        Returns
        -------
        ModelBuilder

        Raises
        ------
        DesignError
            If the effect is constant within every group, or has too many effects for the rows.
        """
        new = term_text.slope_bar(effect, group, self.runs, correlated=correlated)
        if not correlated:
            return self._and([new])
        for i, bar in enumerate(self._bars()):
            if set(bar.groups) == set(new.groups) and () in bar.terms.terms:
                inner = [new.terms.label(term) for term in new.terms.terms if term]
                known = [bar.terms.label(term) for term in bar.terms.terms if term]
                inner = [label for label in inner if not any(term_text.same_term(label, other) for other in known)]
                merged = f"({' + '.join([bar.left, *inner])} | {bar.group})"
                return self._with(bars=(*self.bars[:i], merged, *self.bars[i + 1 :]))
        return self._and([new])

    def dispersion(self, column: str | None) -> ModelBuilder:
        """Give the levels of a column residual variances of their own.

        Parameters
        ----------
        column : str or None
            Column or role, for example "benchmark" or "algorithm"; None for one variance.

        Returns
        -------
        ModelBuilder
            Its table has them in the row "residual", and a note says so; `formula` does not show them.

        Raises
        ------
        DesignError
            If the column has one level, or a level with a single row.
        """
        if column is None:
            return self._with(residual_by=None)
        name = term_text.dispersion_column(column, self.runs)
        check_dispersion(name, self.runs)
        return self._with(residual_by=name)

    def drop(self, term: str) -> ModelBuilder:
        """Remove a term.

        Parameters
        ----------
        term : str
            A fixed term such as ``"algorithm:budget"``, a random effect such as ``"(1 | benchmark)"``, or the groups of
            a random effect if no fixed term has this name.

        Returns
        -------
        ModelBuilder

        Raises
        ------
        ArgumentError
            If the model has no such term, or several.
        """
        if term_text.is_random(term):
            wanted = term_text.random_bars(term, self.runs)
            hit = tuple(str(bar) for bar in self._bars() if bar in wanted)
            return self._without(hit) if hit else self._no_such(term)
        text = term_text.with_columns(str(term), self.runs, factors=True)
        hit = tuple(label for label in self.terms if term_text.same_term(label, text))
        if hit:
            return self._with(terms=tuple(label for label in self.terms if label not in hit))
        groups = set(term_text.plain_columns(term_text.with_columns(str(term), self.runs, factors=False)))
        hit = tuple(str(bar) for bar in self._bars() if set(bar.groups) == groups)
        if len(hit) > 1:
            raise ArgumentError(f"the model has several random effects of {term!r}: {listed(hit)}. Name one of them.")
        return self._without(hit) if hit else self._no_such(term)

    def recommended(self) -> ModelBuilder:
        """The model that a benchmark study can defend (see `recommend`), as a builder.

        Returns
        -------
        ModelBuilder
        """
        from lmemtest.studies.modelling.recommend import recommend

        parsed = parse_formula(recommend(self.runs).formula)
        return self._with(terms=term_text.labels_of(parsed), bars=tuple(map(str, parsed.bars)), residual_by=None)

    # ------------------------------------------------------------------ reading

    def formula(self) -> str:
        """The model in lme4's syntax, ready for `fit_lmm`.

        Returns
        -------
        str
            Terms and random effects. Residual variances of their own (`dispersion`) are no part of a formula: give
            them beside it, ``fit_lmm(model.formula(), runs, dispersion=model.residual_by)``, as `fit` does.
        """
        return f"{quote_name(self.runs.score)} ~ {' + '.join([*(self.terms or ('1',)), *self.bars])}"

    def to_frame(self) -> pd.DataFrame:
        """One row per term: ``term``, ``kind`` ("fixed", "random", "residual"), ``meaning``."""
        import pandas as pd

        rows = [(label, "fixed", fixed_words(label, self.runs)) for label in self.terms]
        rows += [(str(bar), "random", random_words(bar, self.runs)) for bar in self._bars()]
        rows.append(("residual", "residual", self._residual_words()))
        return pd.DataFrame(rows, columns=["term", "kind", "meaning"])

    def explain(self) -> str:
        """What each term assumes, and what the model takes for granted because terms are missing."""
        rows = self.to_frame()
        lines = [f"  {term}: {text}" for term, text in zip(rows["term"], rows["meaning"], strict=True)]
        return "\n".join([self.formula(), *lines, *(f"  {note}" for note in self._notes())])

    def to_table(self) -> ResultTable:
        """Formula, terms and their meaning as a table for text, markdown, html and latex."""
        return ResultTable(self.formula(), self.to_frame().drop(columns="kind"), notes=self._notes())

    # ------------------------------------------------------------------ using

    def fit(self, **options: Any) -> LmmFit:
        """Fit the model.

        Parameters
        ----------
        **options
            Of `fit_lmm`: ``reml``, ``weights``, ``restarts``.

        Returns
        -------
        LmmFit
        """
        from lmemtest.model import fit_lmm

        if "dispersion" in options:
            raise ArgumentError("dispersion is a part of the model here: builder.dispersion(column).fit().")
        return fit_lmm(self.formula(), self.runs, dispersion=self.residual_by, **options)

    def compare(self, other: ModelBuilder, reference: str = "auto", **options: Any) -> GlrtResult:
        """Test the smaller of two nested models against the larger one.

        Parameters
        ----------
        other : ModelBuilder
            Of the same runs.
        reference : {"auto", "chi2", "mixture", "exact", "bootstrap"}
            Null distribution, see `glrt`.
        **options
            Of `glrt`: ``rng``, ``n_draws``, ``n_jobs`` and others.

        Returns
        -------
        GlrtResult
            Its null is the model that the other one contains, whichever of the two that is.

        Raises
        ------
        NestingError
            If neither model contains the other.
        """
        from lmemtest.inference.hypotheses.glrt import glrt
        from lmemtest.inference.hypotheses.nesting import check_nesting

        if not isinstance(other, ModelBuilder):
            raise ArgumentError(f"other must be a ModelBuilder of the same runs, got {type(other).__name__}.")
        mine, theirs = self.fit(), other.fit()
        try:
            check_nesting(mine, theirs)
        except NestingError:
            try:
                check_nesting(theirs, mine)
            except NestingError:
                pass  # glrt says why, in the order that was asked for
            else:
                mine, theirs = theirs, mine
        return glrt(mine, theirs, reference, **options)

    def select(self, **options: Any) -> SelectionResult:
        """Add the terms that improve the model, one at a time. See `select_terms`, which takes the same options."""
        from lmemtest.studies.modelling.forward import select_terms

        return select_terms(self, **options)

    def search(self, **options: Any) -> SearchResult:
        """The best hierarchical model of a family. See `search_models`, which takes the same options."""
        from lmemtest.studies.modelling.lattice import search_models

        return search_models(self, **options)

    # ------------------------------------------------------------------ within

    def _bars(self) -> tuple[Bar, ...]:
        return parse_formula(self.formula()).bars

    def _and(self, new: Sequence[Bar]) -> ModelBuilder:
        """The model with further random effects, without those that are a part of others of the same groups."""
        bars: list[Bar] = list(self._bars())
        for bar in new:
            if not any(bar.within(other) for other in bars):
                bars = [bar if other.within(bar) else other for other in bars]
                bars = bars if bar in bars else [*bars, bar]
        return self._with(bars=tuple(map(str, bars)))

    def _with(self, **changes: Any) -> ModelBuilder:
        parts = {name: changes.get(name, getattr(self, name)) for name in ("terms", "bars", "residual_by")}
        return assemble(self.runs, **parts)

    def _without(self, bars: tuple[str, ...]) -> ModelBuilder:
        return self._with(bars=tuple(bar for bar in self.bars if bar not in bars))

    def _no_such(self, term: str) -> ModelBuilder:
        raise ArgumentError(f"the model has no term {term!r} to drop. Its terms: {listed([*self.terms, *self.bars])}.")

    def _residual_words(self) -> str:
        if self.residual_by is None:
            return "what is left varies equally for all rows, and rows are independent given the terms above"
        return f"what is left has a variance of its own for each level of {self.residual_by}"

    def _notes(self) -> tuple[str, ...]:
        return (*self._beside_the_formula(), *self._missing())

    def _beside_the_formula(self) -> tuple[str, ...]:
        """What the formula does not show."""
        if self.residual_by is None:
            return ()
        return (
            f"The formula does not show the residual variances by {self.residual_by}: .fit() has them, and so does "
            f"fit_lmm(formula, runs, dispersion={self.residual_by!r}).",
        )

    def _missing(self) -> tuple[str, ...]:
        """Random effects of the recommended model that this one lacks."""
        from lmemtest.studies.modelling.recommend import recommend

        mine = {frozenset(bar.groups) for bar in self._bars()}
        mine |= {_cells(bar) for bar in self._bars() if bar.diagonal}
        wanted = parse_formula(recommend(self.runs).formula).bars
        return tuple(
            f"Left out of this model: {bar}, which would say that {random_words(bar, self.runs)}."
            for bar in wanted
            if frozenset(bar.groups) not in mine
        )


def assemble(runs: Runs, terms: tuple[str, ...], bars: tuple[str, ...], residual_by: str | None) -> ModelBuilder:
    """A builder from the parts of a model, for what chooses terms by itself.

    Parameters
    ----------
    runs : Runs
        The table.
    terms, bars : tuple of str
        Fixed terms and random effects as a formula has them, like `ModelBuilder.terms` and `ModelBuilder.bars`.
    residual_by : str or None
        Column whose levels have residual variances of their own.

    Returns
    -------
    ModelBuilder

    Raises
    ------
    DesignError
        If the runs cannot identify one of the parts.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.modelling.builder import ModelBuilder, assemble
    >>> runs = lt.datasets.load_hpo_runs()
    >>> model = ModelBuilder(runs).random("benchmark")
    >>> good = runs.filter(prior="good")
    >>> assemble(good, model.terms, model.bars, model.residual_by).formula()
    'loss ~ algorithm + (1 | benchmark)'
    """
    new = ModelBuilder(runs)
    for name, value in (("terms", terms), ("bars", bars), ("residual_by", residual_by)):
        object.__setattr__(new, name, value)
    check_identified(parse_formula(new.formula()), runs)
    return new


def _check_some(given: tuple[str, ...], method: str, example: str) -> None:
    if not given:
        raise ArgumentError(f"{method}() needs at least one term, for example {method}({example}).")


def _and_words(given: Sequence[str]) -> str:
    return " and ".join([", ".join(map(repr, given[:-1])), repr(given[-1])])


def _factors(label: str) -> set[str]:
    """What a term is a product of: columns and calls."""
    return set(parse_term(label).key)


def _cells(bar: Bar) -> frozenset[str]:
    """Columns of the groups and of the levels that vary between them: whose one variance is ``(1 | groups:levels)``."""
    return frozenset([*bar.groups, *(name.value for name in bar.terms.columns())])


def _joined(old: tuple[str, ...], new: list[str]) -> tuple[str, ...]:
    out = list(old)
    for label in new:
        if not any(term_text.same_term(label, known) for known in out):
            out.append(label)
    return tuple(out)


def _as_columns(label: str) -> str:
    """A label whose plain name is read as a column again, not as a role."""
    columns = term_text.plain_columns(label)
    return f"`{columns[0].replace('`', '``')}`" if term_text.is_plain(label) else label
