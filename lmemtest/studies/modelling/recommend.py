"""The model that a benchmark study can defend: benchmarks are a sample, runs are clusters.

An algorithm's advantage differs from benchmark to benchmark, so a mean over benchmarks is only as sure as the number
of benchmarks allows; the scores of one run at several budgets are one curve, not many observations. A model without
these terms counts rows as if they were independent and finds differences that are not there (on the PriorBand table
with shuffled labels `score ~ algorithm + (1|benchmark)` rejects in 84 % of the cases at a nominal 5 %).

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

import numpy as np
from scipy.special import fdtr

from lmemtest._caller import in_words_of
from lmemtest._result import Result, result
from lmemtest._rounding import written
from lmemtest._threads import one_blas_thread
from lmemtest.data.crossing import require_crossing
from lmemtest.data.runs import require_runs
from lmemtest.errors import DesignError
from lmemtest.formula import Bar, Term
from lmemtest.formula.tokens import quote_name
from lmemtest.model.spec import ModelSpec
from lmemtest.studies.modelling import identify
from lmemtest.studies.modelling.meaning import meaning
from lmemtest.studies.modelling.reading import factor_term
from lmemtest.studies.modelling.shared_seeds import seeds_cross, shared_seeds
from lmemtest.words import p_text

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.data.runs import Runs

# Beyond this the covariances of the effects at the levels of a metafeature (10 for four) eat the benchmarks.
_MOST_CONDITIONS, _FEWEST_BENCHMARKS = 4, 6
# Of means that differ by so little, where difficulties do vary independently of advantages.
_CHANCE = 0.05
# More budgets than this are a continuum: one effect each would eat the data.
_MANY_BUDGETS = 50


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
        Ready for `fit_lmm`.
    spec : ModelSpec
        The same model as objects.
    terms : tuple of ModelTerm
        Each term with its meaning.
    left_out : tuple of str
        Terms that this design cannot identify, and why.
    notes : tuple of str
        What a reader must know about the scope of the answer.
    """

    formula: str
    spec: ModelSpec
    terms: tuple[ModelTerm, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    parts: ClassVar = {"terms": "_rows"}

    @property
    def title(self) -> str:
        """The formula."""
        return self.formula

    @property
    def facts(self) -> tuple[str, ...]:
        """What was left out."""
        return tuple(f"Left out: {text}" for text in self.left_out)

    def _rows(self) -> pd.DataFrame:
        """One row per term: ``term``, ``meaning``."""
        import pandas as pd

        return pd.DataFrame([(t.text, t.meaning) for t in self.terms], columns=["term", "meaning"])


@one_blas_thread()
def recommend(runs: Runs) -> Recommendation:
    """Recommend a mixed model for a table of runs.

    Parameters
    ----------
    runs : Runs
        Roles decide the terms: benchmark (with its metafeatures: the instance), seed, budget.

    Returns
    -------
    Recommendation

    Raises
    ------
    DesignError
        If no two algorithms have a benchmark in common, or each has one run only: nothing can be said about them by
        any model.

    Notes
    -----
    With everything present: ``score ~ algorithm * metafeature + (0 + metafeature | benchmark) + (0 + metafeature |
    benchmark:algorithm) + (1 | instance:seed) + (1 | instance:algorithm:seed)``. An instance is a benchmark at one
    level of the metafeature; the last term (the run) needs scores at several budgets. Without a metafeature:
    ``score ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed) +
    (1|benchmark:algorithm:seed)``. A term is left out where its groups are single rows or the same groups as another
    term's.

    A seed with the same label on several benchmarks can be the same luck there: the configurations of a random search,
    one trained model. Then ``(1|seed) + (1|seed:algorithm)`` are in the model, too, where an exact F-test of the second
    has p < 0.2 (0.3 with fewer than five seeds), and else `left_out` says so. In simulations (12 benchmarks, 6
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
    blocks = relative_to(runs)
    of_seeds, no_luck = _crossed_seeds(runs)
    kept, left_out = _identified(runs, [*_candidates(runs), *of_seeds], blocks)
    study, run = runs.study, runs.study.run
    curves_alone = runs.budget is not None and runs.seed is None and not study.several_benchmarks
    if curves_alone and study.count(*run) < runs.n_rows == study.count(*run, str(runs.budget)):
        raise _nothing_repeated(runs)
    fixed, budget_notes = _fixed(runs)
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
        spec=spec,
        terms=tuple(ModelTerm(text=str(term), meaning=meaning(term, runs)) for term in parts),
        left_out=(*left_out, *no_luck),
        notes=(*_scope(runs, blocks, kept), *budget_notes),
    )


def relative_to(runs: Runs) -> tuple[str, ...]:
    """What scores are relative to: columns of benchmarks (instances) whose difficulty would have a negative variance.

    Empty where benchmarks differ in their means, as raw scores do, or where there is one benchmark.
    """
    instance = runs.study.instance
    if not runs.study.several_benchmarks:
        return ()
    from lmemtest.data.compress import compress

    cells = compress(runs, by=[*instance, runs.algorithm], score=runs.score)
    means = cells.frame.assign(score=cells.mean)
    conditions = list(instance[1:])
    if conditions:  # what a condition does to an algorithm everywhere is no difficulty of benchmarks
        means["score"] -= means.groupby([*conditions, runs.algorithm], observed=True)["score"].transform("mean")
    relative = any(
        _varies_less_than_by_chance(means.pivot_table("score", list(places), runs.algorithm, observed=True))
        for places in dict.fromkeys([instance[:1], instance])
    )
    return instance if relative else ()


def _varies_less_than_by_chance(scores: pd.DataFrame) -> bool:
    """Whether the means of the rows differ less than independent deviations within rows would make them (F-test)."""
    y = scores.dropna().to_numpy()
    n, k = y.shape
    if n < 3 or k < 2:
        return False
    centre = y.mean(axis=1)
    around = y - centre[:, None] - (y - centre[:, None]).mean(axis=0)
    within = np.square(around).sum() / ((n - 1) * (k - 1))
    return bool(within > 0 and fdtr(n - 1, (n - 1) * (k - 1), k * centre.var(ddof=1) / within) < _CHANCE)


def _candidates(runs: Runs) -> list[Bar]:
    """Random effects from coarse to fine; each is nested in none that follows."""
    instance, algorithm, seed = runs.study.instance, runs.algorithm, runs.seed
    out: list[Bar] = []
    condition = _condition(runs)
    if condition is not None:
        effects = (factor_term(condition, runs),)
        out += [Bar.of(instance[:1], effects), Bar.of((*instance[:1], algorithm), effects)]
    elif runs.study.several_benchmarks:
        for places in dict.fromkeys([instance[:1], instance]):
            out += [Bar.of(places), Bar.of((*places, algorithm))]
    if seed is not None:
        out.append(Bar.of((*instance, seed)))
        if runs.budget is not None:
            out.append(Bar.of((*instance, algorithm, seed)))
    return out


def _crossed_seeds(runs: Runs) -> tuple[list[Bar], list[str]]:
    """What runs with the same seed share on all benchmarks, where that shows; else why it is not in the model."""
    if not runs.study.several_benchmarks or not seeds_cross(runs):
        return [], []
    seed = str(runs.seed)
    pair = Bar.of((seed, runs.algorithm))
    try:
        found = shared_seeds(runs)
    except DesignError as error:
        return [], [f"{pair}: {str(error).removesuffix('.')}."]
    if found.shows:
        return [Bar.of((seed,)), pair], []
    test = f"an F-test (F({found.df_num}, {found.df_den}) = {written(found.statistic, '.2f')}, {p_text(found.p_value)})"
    return [], [
        f"{pair}: {test} shows no luck that runs of an algorithm with the same seed share across benchmarks (the term "
        f"is held where p < {found.level:g})."
    ]


def _condition(runs: Runs) -> str | None:
    """The one metafeature whose levels are conditions that benchmarks go through, if its effects are identified."""
    study, instance = runs.study, runs.study.instance
    if not study.several_benchmarks or len(instance) != 2:
        return None
    benchmark, metafeature = instance
    levels, benchmarks = len(runs.levels(metafeature)), len(runs.levels(benchmark))
    cells = study.count(benchmark, metafeature, runs.algorithm)
    most = 2 * study.count(*instance) > (1 + levels) * benchmarks  # most benchmarks have most levels
    identified = levels <= _MOST_CONDITIONS and benchmarks >= _FEWEST_BENCHMARKS and cells < runs.n_rows
    return metafeature if most and identified else None


def _identified(runs: Runs, candidates: list[Bar], blocks: tuple[str, ...]) -> tuple[list[Bar], list[str]]:
    """The candidates that the numbers of their groups allow; the groups of `blocks` have fixed effects."""
    kept: dict[Bar, int] = {}
    left_out = []
    n_blocks = runs.study.count(*blocks) if blocks else 0
    for bar in candidates:
        groups = set(bar.groups)
        if groups <= set(blocks):
            continue
        levels = runs.study.count(*bar.groups)
        width = prod(len(runs.levels(column)) for effect in bar.slopes for column in effect.columns)
        same = next((k for k, n in kept.items() if set(k.groups) < groups and n == levels), None)
        if reason := identify.of_groups(bar, levels, width, runs.n_rows):
            left_out.append(f"{reason[0].upper()}{reason[1:]}")
        elif set(blocks) < groups and levels == n_blocks:
            left_out.append(
                f"{bar}: its groups are those of {':'.join(map(quote_name, blocks))}, whose effects are fixed."
            )
        elif same is not None:
            left_out.append(f"{bar}: its groups are those of {same}, which takes its place.")
        else:
            kept[bar] = levels
    return list(kept), left_out


def _nothing_repeated(runs: Runs) -> DesignError:
    """The error of runs of which each algorithm has one under each condition."""
    where = " under each condition" if len(runs.study.instance) > bool(runs.benchmark) else ""
    return DesignError(
        f"Each algorithm has one run{where}, so a difference between algorithms cannot be distinguished from one "
        f"between runs, however many values of {runs.budget!r} a run was scored at. Bring more seeds, or more "
        "benchmarks."
    )


def _fixed(runs: Runs) -> tuple[list[Term], list[str]]:
    """The algorithm, conditions with their interaction, and the budget where runs were not scored at the same ones."""
    algorithm = factor_term(runs.algorithm, runs)
    terms = [algorithm]
    alone = tuple(name for name in runs.metafeatures if name not in runs.study.properties)
    for name in (_condition(runs),) if runs.study.several_benchmarks else alone:
        if name is not None and len(runs.levels(name)) > 1:
            condition = factor_term(name, runs)
            terms += [condition, Term.of(algorithm, condition)]
    if runs.budget is None:
        return terms, []
    budgets = len(runs.levels(runs.budget))
    if runs.study.scored_alike:
        note = (
            f"Every run has a score at the same {budgets} budgets, so algorithms are compared by their mean over the "
            "budgets. Filter the runs to one budget to compare them there."
        )
        return terms, [note] * (budgets > 1)
    if budgets <= _MANY_BUDGETS:
        return [*terms, Term.levels(runs.budget)], []
    note = (
        f"Runs were scored at different budgets ({budgets:,} distinct values), which this model does not adjust for. "
        "Compare the runs at budgets that all of them reached."
    )
    return terms, [note]


def _scope(runs: Runs, blocks: tuple[str, ...], kept: list[Bar]) -> list[str]:
    """What a reader must know: of benchmarks, then of seeds, then of kinds of algorithms."""
    notes = _of_benchmarks(runs, blocks)
    if any(runs.seed in bar.groups and runs.benchmark not in bar.groups for bar in kept):
        seeds = len(runs.levels(str(runs.seed)))
        notes.append(
            f"Runs with the same seed have something in common on all benchmarks, so the {seeds} seeds are a sample, "
            "too: more benchmarks alone do not make the answer surer, more seeds do. If seeds only number the "
            "repetitions on a benchmark, say so: "
            f"{in_words_of(python='Runs(..., seed_shared=False)', command_line='--seed-own')}."
        )
        if seeds == 2:
            notes.append(
                "With two seeds such luck is estimated from very little: in simulations a nominal 5 % was up to 12 %."
            )
    if runs.study.properties:
        notes.append(
            f"Each algorithm has one value of {' and '.join(runs.study.properties)}, which tells kinds of algorithms "
            "apart and not circumstances of their runs, so it is not in the model."
        )
    return notes


def _of_benchmarks(runs: Runs, blocks: tuple[str, ...]) -> list[str]:
    if runs.benchmark is None or not runs.study.several_benchmarks:
        here = "There is one benchmark" if runs.benchmark is not None else "No benchmark column was named"
        return [
            f"{here}, so the answer holds for what was measured and says nothing about other benchmarks. "
            "More seeds do not change that; more benchmarks do."
        ]
    notes = []
    if blocks:
        notes.append(
            "Scores are relative to the benchmark (ranks, for instance): what one algorithm gains there others lose, "
            "so algorithms are compared within benchmarks."
        )
    benchmarks = len(runs.levels(runs.benchmark))
    if benchmarks < 6:
        notes.append(
            f"There are only {benchmarks} benchmarks: differences between benchmarks are estimated poorly, and only "
            "large and consistent advantages can be detected."
        )
    kinds = [name for name in runs.study.kinds if 2 * runs.study.count(name) <= benchmarks]
    if kinds and not blocks:
        question = f"{quote_name(runs.algorithm)!r}, {quote_name(kinds[0])!r}"
        notes.append(
            f"Each benchmark has one level of {' and '.join(kinds)}, which tells kinds of benchmarks apart and is not "
            "in the model. To ask whether kinds differ in who is better: "
            f"lmemtest.ModelBuilder(runs).recommended().interaction({question})."
        )
    instance = runs.study.instance
    if len(instance) > 1:
        notes.append(
            f"Benchmarks count as the sample. The instances of one benchmark ({' x '.join(instance)}) share it, "
            f"so more levels of {' and '.join(instance[1:])} do not make the answer surer for new benchmarks."
        )
    return notes
