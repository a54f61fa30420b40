"""ModelBuilder: a mixed model composed from the roles of a table, one checked term at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.modelling.terms import (
    check_identified,
    column_of,
    column_term,
    diagonal_bars,
    fixed_terms,
    is_random,
    meaning,
    of_residual,
    one_factor,
    one_group,
    random_bars,
)
from lmemtest.core.hints import guided_arguments
from lmemtest.core.result import Answer, Result
from lmemtest.core.words import joined, listed
from lmemtest.errors import ArgumentError, FormulaError, NestingError
from lmemtest.lmm.formula import INTERCEPT, Bar, Term
from lmemtest.lmm.formula.terms import MOST_COLUMNS
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.modelling.select_model import ChosenModel
    from lmemtest.lmm.model import LmmFit


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelBuilder(Result):
    """A mixed model of a table of runs, composed from roles and columns.

    Every method returns a new builder; a term that the design cannot identify is refused when it is added.

    Parameters
    ----------
    runs : Runs
        The table. The first model is ``score ~ algorithm``.

    Attributes
    ----------
    spec : ModelSpec
        The model as objects: fixed terms, random effects, and the column whose levels have residual variances of
        their own (``spec.dispersion``).

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
    >>> from lmemtest.bench.modelling.builder import ModelBuilder
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
    spec: ModelSpec = field(init=False)

    parts: ClassVar = {"terms": "_rows"}

    def __post_init__(self) -> None:
        require_runs(self.runs)
        algorithm = column_term(self.runs.algorithm, self.runs)
        object.__setattr__(self, "spec", ModelSpec(response=self.runs.score, terms=(algorithm,)))

    @classmethod
    def of(cls, runs: Runs, spec: ModelSpec) -> ModelBuilder:
        """A builder that begins with a model.

        Parameters
        ----------
        runs : Runs
            The table.
        spec : ModelSpec
            Such as the one of another builder, of a recommendation, or of a search.

        Raises
        ------
        DesignError
            If the runs cannot identify one of its terms.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = lt.datasets.load_hpo_runs()
        >>> model = lt.ModelBuilder(runs).random("benchmark")
        >>> lt.ModelBuilder.of(runs.filter(prior="good"), model.spec).formula()
        'loss ~ algorithm + (1 | benchmark)'
        """
        new = cls(runs)
        object.__setattr__(new, "spec", spec)
        check_identified(spec, runs)
        return new

    # ------------------------------------------------------------------ composing

    def fixed(self, *terms: str) -> ModelBuilder:
        """Add fixed terms.

        Parameters
        ----------
        *terms : str
            ``"budget"``, ``"algorithm:budget"``, ``"C(budget)"``, ``"prior + poly(budget, 2)"``. Terms that the model
            has already change nothing.

        Raises
        ------
        UnknownColumnError, FormulaError, ArgumentError
            If a name is not a column or role, or the text is not a fixed term.
        DesignError
            If a term has one value, or repeats what other terms say.
        """
        _check_some(terms, "fixed", "'budget'")
        return self._to(self.spec.with_term(*(t for text in terms for t in fixed_terms(text, self.runs))))

    def interaction(self, a: str, b: str, *more: str) -> ModelBuilder:
        """Add an interaction of two or more terms, with all that it is made of where the model lacks it.

        Parameters
        ----------
        a, b, *more : str
            Columns, roles or calls such as ``"C(budget)"``. Three of them add their main effects, the interactions of
            every two, and that of all three.

        Raises
        ------
        ArgumentError
            If one of them is several terms, or two have a column in common in the same form.
        """
        texts = (a, b, *more)
        read = [fixed_terms(text, self.runs) for text in texts]
        if any(len(terms) != 1 for terms in read):
            raise ArgumentError(f"an interaction is of one term with another; got {joined(map(repr, texts), most=99)}.")
        terms = [term for (term,) in read]
        for (x, first), (y, second) in combinations(zip(texts, terms, strict=True), 2):
            if both := sorted(first.key & second.key):
                raise ArgumentError(
                    f"an interaction is of different terms, got {x!r} and {y!r}, which are both about {listed(both)}. "
                    "Name terms that have nothing in common."
                )
        if len(Term.of(*terms).factors) > MOST_COLUMNS:
            raise FormulaError(
                f"an interaction has more than {MOST_COLUMNS} columns; leave some out or join them in the table."
            )
        return self._to(self.spec.with_crossed(*terms))

    def random(self, *groups: str, by: str | None = None) -> ModelBuilder:
        """Add random intercepts: levels of groups that are a sample.

        Parameters
        ----------
        *groups : str
            ``"benchmark"``, ``"benchmark:seed"``, ``"benchmark/seed"`` (both), or a whole term such as
            ``"(0 + prior | benchmark)"``. Terms that the model has already change nothing: ``"seed:benchmark"`` is
            ``"benchmark:seed"``, and the intercepts of ``"benchmark"`` are a part of ``(1 + budget | benchmark)``.
        by : str, optional
            A column or role with levels, such as "algorithm": each of its levels has deviations of its own in these
            groups, with a variance of its own, ``diag(algorithm | benchmark)``. It takes the place of the one variance
            of all of them, ``(1 | benchmark:algorithm)``, where the model has that.

        Raises
        ------
        DesignError
            If there is one group, groups are single rows, or another term says the same of the same groups.
        """
        _check_some(groups, "random", "'benchmark'")
        if by is None:
            return self._to(self.spec.with_term(*(b for text in groups for b in random_bars(text, self.runs))))
        factor = one_factor(by, self.runs)
        bars = [bar for text in groups for bar in diagonal_bars(factor, text, self.runs)]
        replaced = {frozenset(bar.columns) for bar in bars}
        one_for_all = [b for b in self.spec.bars if b.effects == (INTERCEPT,) and frozenset(b.groups) in replaced]
        return self._to(self.spec.without(*one_for_all).with_term(*bars))

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

        Raises
        ------
        DesignError
            If the effect is constant within every group, or has too many effects for the rows.
        """
        terms = fixed_terms(effect, self.runs)
        groups = one_group(group, self.runs)
        for column in (column for term in terms for column in term.columns):
            if column in groups:
                raise FormulaError(
                    f"'{column}' is a group of the slope of {effect} and cannot vary within itself; name another group."
                )
        if not correlated:
            return self._to(self.spec.with_term(Bar.of(groups, terms)))
        spec = self.spec
        for term in terms:
            spec = spec.with_slope(term, *groups)
        return self._to(spec)

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
        if column is not None and not isinstance(column, str):
            raise ArgumentError(f"column must be the name of a column or role, got {column!r}.")
        name = None if column is None else column_of(column, self.runs)
        return self._to(replace(self.spec, dispersion=name))

    def drop(self, term: str) -> ModelBuilder:
        """Remove a term.

        Parameters
        ----------
        term : str
            A fixed term such as ``"algorithm:budget"``, a random effect such as ``"(1 | benchmark)"``, or the groups of
            a random effect if no fixed term has this name.

        Raises
        ------
        ArgumentError
            If the model has no such term, or several.
        """
        if is_random(term):
            hit: tuple[Term | Bar, ...] = tuple(b for b in random_bars(term, self.runs) if b in self.spec)
        else:
            terms = fixed_terms(str(term), self.runs)
            hit = tuple(part for part in terms if part in self.spec)
            if not hit:
                hit = self.spec.grouped_by(column for part in terms for column in part.columns)
                if len(hit) > 1:
                    raise ArgumentError(
                        f"the model has several random effects of {term!r}: {listed(hit)}. Name one of them."
                    )
        if not hit:
            have = listed([*self.spec.terms, *self.spec.bars])
            raise ArgumentError(f"the model has no term {term!r} to drop. Its terms: {have}.")
        return self._to(self.spec.without(*hit))

    def recommended(self, population: str | None = None) -> ModelBuilder:
        """The model that a benchmark study can defend (see `recommend`), as a builder.

        Of runs with curves over a budget it is the one that has the budget (``curves="model"``); for one score per run
        begin with ``runs.per_run(...)``.

        Parameters
        ----------
        population : {"family", "benchmark", "run"}, optional
            What claims are about, new families or new benchmarks of these; by default families, if they are enough.
        """
        from lmemtest.bench.modelling.recommend import recommend

        return self._to(recommend(self.runs, population=population, curves="model").spec)

    # ------------------------------------------------------------------ reading

    def formula(self) -> str:
        """The model in lme4's syntax, ready for `fit_lmm`.

        Returns
        -------
        str
            Terms and random effects. Residual variances of their own (`dispersion`) are no part of a formula: give
            them beside it, ``fit_lmm(model.formula(), runs, dispersion=model.spec.dispersion)``, as `fit` does.
        """
        return self.spec.formula

    @property
    def title(self) -> str:
        """The formula."""
        return self.formula()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the formula does not show, and the random effects of the recommended model that this one lacks."""
        from lmemtest.bench.modelling.recommend import recommend

        spec = self.spec
        mine = {frozenset(bar.columns if bar.diagonal else bar.groups) for bar in spec.bars}
        mine |= {frozenset(bar.groups) for bar in spec.bars}
        hidden = (
            f"The formula does not show the residual variances by {spec.dispersion}: .fit() has them, and so does "
            f"fit_lmm(formula, runs, dispersion={spec.dispersion!r})."
        )
        return (
            *(() if spec.dispersion is None else (hidden,)),
            *(
                f"Left out of this model: {bar}, which would say that {meaning(bar, self.runs)}."
                for bar in recommend(self.runs, curves="model").spec.bars
                if frozenset(bar.groups) not in mine and self.runs.budget not in bar.groups
            ),
        )

    def _rows(self) -> pd.DataFrame:
        """One row per term: ``term``, ``kind`` ("fixed", "random", "residual"), ``meaning``."""
        import pandas as pd

        rows = [(str(term), "fixed", meaning(term, self.runs)) for term in self.spec.terms]
        rows += [(str(bar), "random", meaning(bar, self.runs, self.spec.bars)) for bar in self.spec.bars]
        rows.append(("residual", "residual", of_residual(self.spec.dispersion)))
        return pd.DataFrame(rows, columns=["term", "kind", "meaning"])

    def shown(self) -> pd.DataFrame:
        """Terms and their meaning."""
        return self._rows().drop(columns="kind")

    def explain(self) -> str:
        """What each term assumes, and what the model takes for granted because terms are missing."""
        lines = [f"  {row.term}: {row.meaning}" for row in self._rows().itertuples()]
        return "\n".join([self.formula(), *lines, *(f"  {note}" for note in self.notes)])

    # ------------------------------------------------------------------ using

    def fit(self, **options: Any) -> LmmFit:
        """Fit the model.

        Parameters
        ----------
        **options
            Of `fit_lmm`: ``reml``, ``weights``, ``restarts``; with ``family=``, ``link=`` or ``trials=`` those of
            `fit_glmm`.

        Returns
        -------
        LmmFit
            A `GlmmFit` with a family.
        """
        if "dispersion" in options:
            raise ArgumentError("dispersion is a part of the model here: builder.dispersion(column).fit().")
        return self.spec.fit(self.runs, **options)

    def compare(self, other: ModelBuilder, reference: str = "auto", **options: Any) -> Answer:
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
        Answer
            Its null is the model that the other one contains, whichever of the two that is.

        Raises
        ------
        NestingError
            If neither model contains the other.
        """
        from lmemtest.lmm.hypotheses.glrt import check_nesting, glrt

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

    def select(self, **options: Any) -> ChosenModel:
        """Choose further terms by the data. See `select_model` for the options."""
        from lmemtest.bench.modelling.select_model import select_model

        return select_model(self.runs, start=self.spec, **options)

    def _to(self, spec: ModelSpec) -> ModelBuilder:
        return ModelBuilder.of(self.runs, spec)


guided_arguments(ModelBuilder)


def _check_some(terms: tuple[str, ...], method: str, example: str) -> None:
    if not terms:
        raise ArgumentError(f"{method}() needs at least one term, for example {method}({example}).")
