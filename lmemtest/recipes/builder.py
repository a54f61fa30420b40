"""ModelBuilder: a mixed model composed from the roles of a table, one checked term at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmemtest._table import ResultTable, Tabular
from lmemtest._validate import listed
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, NestingError
from lmemtest.formula import parse_formula
from lmemtest.formula.tokens import quote_name
from lmemtest.recipes import term_text
from lmemtest.recipes.identification import check_dispersion, check_identified
from lmemtest.recipes.term_words import fixed_words, random_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from lmemtest.data.runs import Runs
    from lmemtest.formula.bars import Bar
    from lmemtest.inference.glrt import GlrtResult
    from lmemtest.model import LmmFit
    from lmemtest.recipes.anytime import Anytime
    from lmemtest.recipes.budgets import FidelityResult
    from lmemtest.recipes.clustering import BenchmarkClusters
    from lmemtest.recipes.horizons import Horizons
    from lmemtest.recipes.information import BenchmarkInformation
    from lmemtest.recipes.metafeatures import MetafeatureAnalysis
    from lmemtest.recipes.model_search import SearchResult
    from lmemtest.recipes.reliability import RankingReliability
    from lmemtest.recipes.sanity_report import SanityReport
    from lmemtest.recipes.seeds import SeedDependency
    from lmemtest.recipes.selection import SelectionResult
    from lmemtest.recipes.shrinkage import ShrunkenEffects
    from lmemtest.recipes.variation import VarianceSources


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelBuilder(Tabular):
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
    >>> from lmemtest.recipes.builder import ModelBuilder
    >>> runs = lt.datasets.load_hpo_runs().filter(prior="good")
    >>> simple = ModelBuilder(runs).random("benchmark")
    >>> simple.formula()
    'loss ~ algorithm + (1 | benchmark)'
    >>> richer = simple.interaction("algorithm", "budget").random("benchmark:algorithm", "benchmark:seed")
    >>> richer.drop("algorithm:budget").formula()
    'loss ~ algorithm + budget + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)'
    >>> simple.compare(simple.random("benchmark:algorithm")).pvalue < 0.001
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

    def interaction(self, a: str, b: str) -> ModelBuilder:
        """Add an interaction of two terms, with their main effects where the model lacks them.

        Parameters
        ----------
        a, b : str
            Columns, roles or calls such as ``"C(budget)"``.

        Returns
        -------
        ModelBuilder
        """
        first, second = (term_text.fixed_labels(text, self.runs) for text in (a, b))
        if len(first) != 1 or len(second) != 1:
            raise ArgumentError(f"an interaction is of one term with another; got {a!r} and {b!r}.")
        return self.fixed(f"{_as_columns(first[0])} * {_as_columns(second[0])}")

    def random(self, *groups: str) -> ModelBuilder:
        """Add random intercepts: levels of groups that are a sample.

        Parameters
        ----------
        *groups : str
            ``"benchmark"``, ``"benchmark:seed"``, ``"benchmark/seed"`` (both), or a whole term such as
            ``"(0 + prior | benchmark)"``.

        Returns
        -------
        ModelBuilder

        Raises
        ------
        DesignError
            If there is one group, groups are single rows, or another term has the same groups.
        """
        _check_some(groups, "random", "'benchmark'")
        bars = [str(bar) for text in groups for bar in term_text.random_bars(text, self.runs)]
        return self._with(bars=tuple(dict.fromkeys([*self.bars, *bars])))

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
            it. False adds ``(0 + effect | group)``, independent of it.

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
            return self._with(bars=tuple(dict.fromkeys([*self.bars, str(new)])))
        for i, bar in enumerate(self._bars()):
            if set(bar.groups) == set(new.groups) and () in bar.terms.terms:
                inner = [new.terms.label(term) for term in new.terms.terms if term]
                inner = [label for label in inner if label not in bar.left.split(" + ")]
                merged = f"({' + '.join([bar.left, *inner])} | {bar.group})"
                return self._with(bars=(*self.bars[:i], merged, *self.bars[i + 1 :]))
        return self._with(bars=(*self.bars, str(new)))

    def dispersion(self, column: str | None) -> ModelBuilder:
        """Give the levels of a column residual variances of their own.

        Parameters
        ----------
        column : str or None
            Column or role, for example "benchmark" or "algorithm"; None for one variance.

        Returns
        -------
        ModelBuilder

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
            wanted = {str(bar) for bar in term_text.random_bars(term, self.runs)}
            hit = tuple(bar for bar in self.bars if bar in wanted)
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
        from lmemtest.recipes.recommended import recommend

        parsed = parse_formula(recommend(self.runs).formula)
        return self._with(terms=term_text.labels_of(parsed), bars=tuple(map(str, parsed.bars)), residual_by=None)

    # ------------------------------------------------------------------ reading

    def formula(self) -> str:
        """The model in lme4's syntax, ready for `fit_lmm`."""
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
        return "\n".join([self.formula(), *lines, *(f"  {note}" for note in self._missing())])

    def result_table(self) -> ResultTable:
        """Formula, terms and their meaning as a table for text, markdown, html and latex."""
        return ResultTable(self.formula(), self.to_frame().drop(columns="kind"), notes=self._missing())

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
            Of `glrt`: ``rng``, ``n_boot``, ``n_jobs`` and others.

        Returns
        -------
        GlrtResult
            Its null is the model that the other one contains, whichever of the two that is.

        Raises
        ------
        NestingError
            If neither model contains the other.
        """
        from lmemtest.inference.glrt import glrt
        from lmemtest.inference.nesting import check_nesting

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

    def test_seed_dependency(self, **options: Any) -> SeedDependency:
        """Does the seed decide the score? See `seed_dependency`, which takes the same options."""
        from lmemtest.recipes.seeds import seed_dependency

        return seed_dependency(self.runs, **options)

    def test_benchmark_information(self, rank_benchmarks: bool = False, **options: Any) -> BenchmarkInformation:
        """Which benchmarks tell the algorithms apart? See `benchmark_information`, which takes the same options."""
        from lmemtest.recipes.information import benchmark_information

        return benchmark_information(self.runs, rank_benchmarks=rank_benchmarks, **options)

    def test_fidelity(self, fidelity_var: str | None = None, **options: Any) -> FidelityResult:
        """Does the budget matter, and for all algorithms alike? See `fidelity`, which takes the same options."""
        from lmemtest.recipes.budgets import fidelity

        return fidelity(self.runs, fidelity_var=fidelity_var, **options)

    def check_all(self, **options: Any) -> SanityReport:
        """All sanity checks as one tree, with what to fix first. See `check_all`, which takes the same options."""
        from lmemtest.recipes.sanity import check_all

        return check_all(self.runs, **options)

    def metafeature_analysis(self, algorithms: Sequence[Any], metafeature: str, **options: Any) -> MetafeatureAnalysis:
        """How a metafeature changes who wins on each benchmark. See `metafeature_analysis` for the options."""
        from lmemtest.recipes.metafeatures import metafeature_analysis

        return metafeature_analysis(self.runs, algorithms=algorithms, metafeature=metafeature, **options)

    def variance_sources(self, **options: Any) -> VarianceSources:
        """Where the variation comes from. See `variance_sources`, which takes the same options."""
        from lmemtest.recipes.variation import variance_sources

        return variance_sources(self.runs, **options)

    def select(self, **options: Any) -> SelectionResult:
        """Add the terms that improve the model, one at a time. See `select_terms`, which takes the same options."""
        from lmemtest.recipes.selection import select_terms

        return select_terms(self, **options)

    def search(self, **options: Any) -> SearchResult:
        """The best hierarchical model of a family. See `search_models`, which takes the same options."""
        from lmemtest.recipes.model_search import search_models

        return search_models(self, **options)

    def anytime(self, **options: Any) -> Anytime:
        """Which algorithm is better over all budgets at once? See `anytime`, which takes the same options."""
        from lmemtest.recipes.anytime import anytime

        return anytime(self.runs, **options)

    def horizons(self, budgets: Sequence[Any] | None = None, **options: Any) -> Horizons:
        """Which algorithm is better at which budget, and does that change? See `horizons` for the options."""
        from lmemtest.recipes.horizons import horizons

        return horizons(self.runs, budgets, **options)

    def ranking_reliability(self, **options: Any) -> RankingReliability:
        """Would the ranking hold up on other benchmarks? See `ranking_reliability`, which takes the same options."""
        from lmemtest.recipes.reliability import ranking_reliability

        return ranking_reliability(self.runs, **options)

    def benchmark_effects(self, **options: Any) -> ShrunkenEffects:
        """On which benchmarks does an algorithm win? See `benchmark_effects`, which takes the same options."""
        from lmemtest.recipes.shrinkage import benchmark_effects

        return benchmark_effects(self.runs, **options)

    def benchmark_clusters(self, **options: Any) -> BenchmarkClusters:
        """Which benchmarks favour the same algorithms? See `benchmark_clusters`, which takes the same options."""
        from lmemtest.recipes.clustering import benchmark_clusters

        return benchmark_clusters(self.runs, **options)

    # ------------------------------------------------------------------ within

    def _bars(self) -> tuple[Bar, ...]:
        return parse_formula(self.formula()).bars

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

    def _missing(self) -> tuple[str, ...]:
        """Random effects of the recommended model that this one lacks."""
        from lmemtest.recipes.recommended import recommend

        mine = {frozenset(bar.groups) for bar in self._bars()}
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
    >>> from lmemtest.recipes.builder import ModelBuilder, assemble
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
