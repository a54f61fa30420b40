"""The model that a benchmark study can defend: benchmarks are a sample, runs are clusters.

An algorithm's advantage differs from benchmark to benchmark, so a mean over benchmarks is only as sure as the number
of benchmarks allows; the scores of one run at several budgets are one curve, not many observations, and are reduced to
one number before the model. A model that does not know this counts rows as if they were independent and finds
differences that are not there (on the PriorBand table with shuffled labels `score ~ algorithm + (1|benchmark)` rejects
in 84 % of the cases at a nominal 5 %).

References
----------
Barr, Levy, Scheepers & Tily (2013). Random effects structure for confirmatory hypothesis testing: keep it maximal.
J. Mem. Lang. 68(3), doi:10.1016/j.jml.2012.11.001; Matuschek et al. (2017) on its price in power,
doi:10.1016/j.jml.2017.01.001.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, ClassVar

from lmemtest.bench.data.crossing import require_crossing
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.modelling import identify
from lmemtest.bench.modelling.curves import reduced
from lmemtest.bench.modelling.meaning import meaning
from lmemtest.bench.modelling.population import Population
from lmemtest.bench.modelling.random_terms import candidates, condition, crossed_seeds, identified, left_out_by_test
from lmemtest.bench.modelling.reading import factor_term
from lmemtest.bench.modelling.relative import relative_to
from lmemtest.bench.modelling.scope import scope
from lmemtest.core.result import Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.errors import DesignError
from lmemtest.lmm.formula import Bar, Term
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.modelling.shared_seeds import SharedSeeds

# More budgets than this are a continuum: one effect each would eat the data; and so would more of algorithms at them.
_MANY_BUDGETS, _MANY_EFFECTS = 50, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTerm:
    """One term of a formula and what it assumes, in one sentence."""

    text: str
    meaning: str


@result
class Recommendation(Result):
    """The recommended model of a table of runs.

    Attributes
    ----------
    formula : str
        Ready for `fit_lmm`, with `runs`.
    runs : Runs
        What to fit it to: the runs that were given, and of curves over a budget one score per run (`Runs.per_run`),
        in a column of its own, so that the formula does not fit the rows of the curves by mistake.
    spec : ModelSpec
        The same model as objects.
    terms : tuple of ModelTerm
        Each term with its meaning.
    left_out : tuple of str
        Terms that this design cannot identify, and why.
    tested : tuple of str
        Terms that it identifies and that a test left out, with the test.
    seeds : SharedSeeds or None
        The test of what runs with the same seed share on all benchmarks; None where there is nothing to test.
    notes : tuple of str
        What a reader must know about the scope of the answer.
    population : {"family", "benchmark", "run"}
        What counts as the sample.
    claim : str
        What a claim from this model is about, such as "new search spaces" or "new tasks of these 16 search spaces".
    """

    formula: str
    runs: Runs
    spec: ModelSpec
    terms: tuple[ModelTerm, ...]
    left_out: tuple[str, ...]
    tested: tuple[str, ...]
    seeds: SharedSeeds | None
    notes: tuple[str, ...]
    population: str
    claim: str

    parts: ClassVar = {"terms": "_rows"}

    @property
    def title(self) -> str:
        """The formula."""
        return self.formula

    @property
    def facts(self) -> tuple[str, ...]:
        """What claims are about, and what was left out."""
        return (
            f"For {self.claim}.",
            *(f"Not identified: {text}" for text in self.left_out),
            *(f"Tested and left out: {text}" for text in self.tested),
        )

    def _rows(self) -> pd.DataFrame:
        """One row per term: ``term``, ``meaning``."""
        import pandas as pd

        return pd.DataFrame([(t.text, t.meaning) for t in self.terms], columns=["term", "meaning"])


@one_blas_thread()
def recommend(runs: Runs, *, population: str | None = None, curves: str | None = None) -> Recommendation:
    """Recommend a mixed model for a table of runs.

    Parameters
    ----------
    runs : Runs
        Roles decide the terms: benchmark (with its metafeatures: the instance), its families, seed, budget.
    population : {"family", "benchmark"}, optional
        What claims are about. "family": new families of benchmarks, which count as the sample. "benchmark": new
        benchmarks of these families, which have means of their own. By default families where there are five or more.
    curves : {"mean", "last", "best", "area", "model"}, optional
        What the scores of a run over its budgets count, see `Runs.per_run`; "model" keeps them, and the budget is in
        the model. By default "mean"; "best" where rows look like the single trials of a search; "area" where runs have
        few budgets in common; and "model" where they have no range of budgets in common.

    Returns
    -------
    Recommendation

    Raises
    ------
    ArgumentError
        If `population` is none of these, or asks for a role that the runs do not have.
    DesignError
        If the families are too few to be a sample, or hold one benchmark each; if no two algorithms have a benchmark
        in common, or each has one run only: nothing can be said about them by any model.

    Notes
    -----
    With everything present: ``score ~ algorithm * metafeature + (0 + metafeature | benchmark) + (0 + metafeature |
    benchmark:algorithm) + (1 | instance:seed)``. An instance is a benchmark at one level of the metafeature. Without a
    metafeature: ``score ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)``. With
    ``curves="model"`` the run is a term, ``(1 | instance:algorithm:seed)``, the fixed part has ``algorithm * budget``,
    and ``(1 | instance:budget) + (1 | instance:algorithm:budget)`` let every instance have a course of its own. A term
    is left out where its groups are single rows or the same groups as another term's.

    A seed with the same label on several benchmarks can be the same luck there: the configurations of a random search,
    one trained model. Then ``(1|seed) + (1|seed:algorithm)`` are in the model, too, where an exact F-test of the second
    has p < 0.2 (0.3 with fewer than five seeds; up from 0.05 as a precaution, which a note says), and else `tested`
    says so. In simulations (12 benchmarks, 6
    algorithms, 5 seeds, such luck as large as the residual) any false difference is found in 53 % of the tables
    without and in 5 % with them; where seeds share nothing the rule costs one point of power (67 to 66 %), two to five
    with three seeds. With two seeds the rate is up to 12 % where they share luck.
    ``Runs(..., seed_shared=False)`` says that seeds only number the repetitions on a benchmark.

    The levels of a metafeature are conditions that all benchmarks go through, so they have means of their own, and
    the advantages at its levels may depend on each other in any way: helped by a good prior where a bad one hurts,
    for instance. Where that is too much to ask of the data (several metafeatures, more than four levels, single runs,
    fewer than six benchmarks) the instances of a benchmark are taken to differ to the same degree:
    ``(1|benchmark) + (1|benchmark:algorithm) + (1|instance) + (1|instance:algorithm)``, which is on the safe side.

    Where benchmarks differ less in their mean scores than the algorithms' advantages on them would make them differ by
    chance, their difficulties are fixed effects. Ranks and z-scores are so by construction: what one algorithm gains
    another loses, a negative correlation that no variance of benchmarks can express. With a variance of zero in its
    place the errors of two algorithms would be too small by 29 % (of k by a factor of sqrt(1 - 1/k)).

    Families of benchmarks (search spaces, suites) that count as the sample have random effects, ``(1|family) +
    (1|family:algorithm)`` at each of their levels, beside those of the benchmarks. If benchmarks of these families are
    the sample, the fixed part is ``algorithm * family``, and means are over the families, by their number of
    benchmarks. A benchmark that is in several families has effects of its own and of each instance.

    Instances alone are not the sample: an algorithm's advantage on a benchmark is largely shared by its instances. In
    simulations with 10 benchmarks x 2 instances and advantages that belong to the benchmark, a model without
    ``benchmark:algorithm`` rejects in 16 to 20 % of the cases at a nominal 5 %, this one in 5 to 7 %.

    Examples
    --------
    >>> import lmemtest as lt
    >>> lt.recommend(lt.datasets.load_hpo_runs().filter(budget=8, prior="good")).formula
    'loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)'
    """
    require_runs(runs)
    require_crossing(runs)
    runs = reduced(runs, curves)
    sample = Population.of(runs, population)
    blocks = relative_to(runs)
    of_seeds, seeds, no_luck = crossed_seeds(runs)
    kept, left_out = identified(runs, [*candidates(runs, sample), *of_seeds], blocks)
    study, run = runs.study, runs.study.run
    if not study.several_benchmarks:
        rows = runs.budget is not None and runs.seed is None
        rows = rows and study.count(*run) < runs.n_rows == study.count(*run, str(runs.budget))
        if rows or (runs.curve is not None and study.count(*study.instance, runs.algorithm) == runs.n_rows):
            raise _nothing_repeated(runs)
    fixed, budget_notes = _fixed(runs, sample.fixed, blocks)
    factors = [factor_term(column, runs) for column in blocks]
    written_as = [term.label for term in fixed] + [" * ".join(term.label for term in factors)] * bool(blocks)
    spec = ModelSpec(response=runs.score, terms=tuple(fixed)).with_crossed(*factors)
    spec = replace(spec, terms=tuple(sorted(spec.terms, key=lambda term: len(term.factors))))
    columns = prod(len(runs.levels(name)) for name in spec.fixed_columns)  # at most
    for bar in list(kept):  # a fit would call the variance of what the fixed effects hold already arbitrary
        if study.count(*bar.groups) <= columns and identify.held_in(spec, bar, runs):
            if runs.algorithm in bar.groups:
                raise _nothing_repeated(runs)
            kept.remove(bar)
            left_out.append(f"{bar}: the fixed effects hold it already, so its variance would be arbitrary.")
    spec = spec.with_term(*kept)
    parts: list[Term | Bar] = [*spec.terms, *spec.bars]
    return Recommendation(
        formula=f"{quote_name(runs.score)} ~ {' + '.join([*written_as, *map(str, kept)])}",
        runs=runs,
        spec=spec,
        terms=tuple(ModelTerm(text=str(term), meaning=meaning(term, runs, spec.bars)) for term in parts),
        left_out=(*sample.left_out, *left_out, *no_luck),
        tested=left_out_by_test(runs, seeds),
        seeds=seeds,
        notes=(*scope(runs, blocks, kept, sample, seeds), *_of_curve(runs), *budget_notes),
        population=sample.role,
        claim=sample.claim,
    )


def _nothing_repeated(runs: Runs) -> DesignError:
    """The error of runs of which each algorithm has one under each condition."""
    where = " under each condition" if len(runs.study.instance) > bool(runs.benchmark) else ""
    budget = runs.budget if runs.curve is None else runs.curve.budget
    name = "" if runs.seed is not None else " If several runs are in the table, name the column that tells them apart."
    return DesignError(
        f"Each algorithm has one run{where}, so a difference between algorithms cannot be distinguished from one "
        f"between runs, however many values of {budget!r} a run was scored at. Bring more seeds, or more "
        f"benchmarks.{name}"
    )


def _of_curve(runs: Runs) -> tuple[str, ...]:
    """What was done with curves."""
    return () if runs.curve is None else tuple(filter(None, (runs.curve.sentence, runs.curve.early)))


def _fixed(runs: Runs, family: str | None, blocks: tuple[str, ...]) -> tuple[list[Term], list[str]]:
    """The algorithm, families and conditions with their interactions, and the budget where runs were not scored at the
    same ones."""
    algorithm = factor_term(runs.algorithm, runs)
    terms = [algorithm]
    if family is not None:
        own = factor_term(family, runs)
        terms += [Term.of(algorithm, own)] if blocks else [own, Term.of(algorithm, own)]
    alone = tuple(name for name in runs.metafeatures if name not in runs.study.properties)
    for name in (condition(runs),) if runs.study.several_benchmarks else alone:
        if name is not None and len(runs.levels(name)) > 1:
            levels = factor_term(name, runs)
            terms += [levels, Term.of(algorithm, levels)]
    if runs.budget is None:
        return terms, []
    budgets = len(runs.levels(runs.budget))
    if runs.study.scored_alike:
        note = (
            f"Every run has a score at the same {budgets} budgets, so algorithms are compared by their mean over the "
            "budgets. Filter the runs to one budget to compare them there."
        )
        if 1 < budgets <= _MANY_BUDGETS and budgets * len(runs.algorithms) <= _MANY_EFFECTS:
            at = Term.levels(runs.budget)
            terms = sorted([*terms, at, Term.of(algorithm, at)], key=lambda term: len(term.factors))
        elif budgets > 1:
            note += " The model has no term for so many, and their course counts as error: reduce the curves instead."
        return terms, [note] * (budgets > 1)
    if budgets <= _MANY_BUDGETS:
        return [*terms, Term.levels(runs.budget)], []
    note = (
        f"Runs were scored at different budgets ({budgets:,} distinct values), which this model does not adjust for. "
        "Compare the runs at budgets that all of them reached."
    )
    return terms, [note]
