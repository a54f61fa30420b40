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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtr

from lmemtest._caller import in_words_of
from lmemtest._rounding import written
from lmemtest._threads import one_blas_thread
from lmemtest.data.crossing import require_crossing
from lmemtest.data.runs import require_runs
from lmemtest.errors import DesignError
from lmemtest.formula.bars import parse_formula
from lmemtest.formula.tokens import quote_name
from lmemtest.studies.modelling.identify import held_in
from lmemtest.studies.modelling.reading import as_factor
from lmemtest.studies.modelling.shared_seeds import SharedSeeds, seeds_cross, shared_seeds
from lmemtest.words import format_p

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The recommended model of a table of runs.

    Attributes
    ----------
    formula : str
        Ready for `fit_lmm`.
    terms : tuple of ModelTerm
        Each term with its meaning.
    left_out : tuple of str
        Terms that this design cannot identify, and why.
    notes : tuple of str
        What a reader must know about the scope of the answer.
    """

    formula: str
    terms: tuple[ModelTerm, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per term: ``term``, ``meaning``."""
        import pandas as pd

        return pd.DataFrame([(t.text, t.meaning) for t in self.terms], columns=["term", "meaning"])

    def summary(self) -> str:
        """The formula, its terms in words, and what was left out."""
        lines = [self.formula, *(f"  {t.text}: {t.meaning}" for t in self.terms)]
        lines += [f"  left out: {text}" for text in self.left_out]
        return "\n".join([*lines, *(f"  note: {text}" for text in self.notes)])

    def __repr__(self) -> str:
        return self.summary()


@dataclass(frozen=True)
class _Candidate:
    """Random effects that the design might identify: an intercept, or one effect per level of a metafeature."""

    columns: tuple[str, ...]
    meaning: str
    effects: str = "1"
    width: int = 1  # effects per group

    @property
    def text(self) -> str:
        return f"({self.effects} | {':'.join(map(quote_name, self.columns))})"


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
    crossed, why_not = _crossed_seeds(runs)
    candidates = [*_candidates(runs), *crossed]
    blocks = relative_to(runs)
    kept, left_out = _identified(runs, candidates, blocks)
    if _one_curve_each(runs):
        raise _nothing_repeated(runs)
    fixed, budget_notes = _fixed(runs)
    if blocks:
        fixed.append(_block_term(runs, blocks))
    kept, held = _beside_the_fixed(runs, fixed, kept)
    left_out += [*held, *why_not]
    text = " + ".join([t.text for t in fixed] + [c.text for c in kept])
    return Recommendation(
        formula=f"{quote_name(runs.score)} ~ {text}",
        terms=(*fixed, *(ModelTerm(text=c.text, meaning=c.meaning) for c in kept)),
        left_out=tuple(left_out),
        notes=(*_scope(runs, blocks), *_of_seeds(runs, kept), *_of_algorithms(runs), *budget_notes),
    )


def relative_to(runs: Runs) -> tuple[str, ...]:
    """What scores are relative to: columns of benchmarks (instances) whose difficulty would have a negative variance.

    Parameters
    ----------
    runs : Runs

    Returns
    -------
    tuple of str
        Empty where benchmarks differ in their means, as raw scores do, or where there is one benchmark.
    """
    instance = runs.study.instance
    if not _generalises(runs):
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


def _block_term(runs: Runs, blocks: tuple[str, ...]) -> ModelTerm:
    return ModelTerm(
        text=" * ".join(as_factor(runs, column) for column in blocks),
        meaning="scores are relative to the benchmark (ranks, for instance): what one algorithm gains there others "
        "lose, so algorithms are compared within benchmarks",
    )


def _candidates(runs: Runs) -> list[_Candidate]:
    """Random intercepts from coarse to fine; each is nested in none that follows."""
    instance = runs.study.instance
    out = []
    condition = _condition(runs)
    if condition is not None:
        out += _of_conditions(runs, instance[0], condition)
    elif _generalises(runs):
        out += _of_sample(runs, instance[:1], "benchmark")
        if len(instance) > 1:
            out += _of_sample(runs, instance, f"instance ({' x '.join(instance)})")
    if runs.seed is not None:
        where = f" on one {'benchmark' if len(instance) == 1 else 'instance'}" if instance else ""
        out.append(_Candidate((*instance, runs.seed), f"runs with the same seed{where} share their luck"))
        if runs.budget is not None:
            out.append(
                _Candidate(
                    (*instance, runs.algorithm, runs.seed),
                    "the scores of one run at several budgets are one curve, not independent observations",
                )
            )
    return out


def _crossed_seeds(runs: Runs) -> tuple[list[_Candidate], list[str]]:
    """What runs with the same seed share on all benchmarks, where that shows; else why it is not in the model."""
    if not _generalises(runs) or not seeds_cross(runs):
        return [], []
    seed = str(runs.seed)
    pair = _Candidate(
        (seed, runs.algorithm),
        "an algorithm is lucky with some seeds on all benchmarks; so a comparison is as sure as the number of seeds "
        "allows, too",
    )
    try:
        found = shared_seeds(runs)
    except DesignError as error:
        return [], [f"{pair.text}: {str(error).removesuffix('.')}."]
    if not found.shows:
        return [], [
            f"{pair.text}: {_test_of_seeds(found)} shows no luck that runs of an algorithm with the same seed share "
            f"across benchmarks (the term is held where p < {found.level:g})."
        ]
    return [_Candidate((seed,), "runs with the same seed share their luck on all benchmarks"), pair], []


def _test_of_seeds(found: SharedSeeds) -> str:
    statistic, p = written(found.statistic, ".2f"), format_p(found.p_value)
    return f"an F-test (F({found.df_num}, {found.df_den}) = {statistic}, p {p})"


def _of_seeds(runs: Runs, kept: list[_Candidate]) -> list[str]:
    """What a reader must know where runs with the same seed share their luck on all benchmarks."""
    if not any(runs.seed in c.columns and runs.benchmark not in c.columns for c in kept):
        return []
    seeds = len(runs.levels(str(runs.seed)))
    notes = [
        f"Runs with the same seed have something in common on all benchmarks, so the {seeds} seeds are a sample, too: "
        "more benchmarks alone do not make the answer surer, more seeds do. If seeds only number the repetitions on "
        f"a benchmark, say so: {in_words_of(python='Runs(..., seed_shared=False)', command_line='--seed-own')}."
    ]
    if seeds == 2:
        notes.append(
            "With two seeds such luck is estimated from very little: in simulations a nominal 5 % was up to 12 %."
        )
    return notes


def _condition(runs: Runs) -> str | None:
    """The one metafeature whose levels are conditions that benchmarks go through, if its effects can be told apart."""
    instance = runs.study.instance
    if not _generalises(runs) or len(instance) != 2:
        return None
    benchmark, metafeature = instance
    levels, benchmarks = len(runs.levels(metafeature)), len(runs.levels(benchmark))
    cells = runs.study.count(*(benchmark, metafeature, runs.algorithm))
    crossed = 2 * runs.study.count(*instance) > (1 + levels) * benchmarks  # most benchmarks have most levels
    identified = levels <= _MOST_CONDITIONS and benchmarks >= _FEWEST_BENCHMARKS and cells < runs.n_rows
    return metafeature if crossed and identified else None


def _of_conditions(runs: Runs, benchmark: str, metafeature: str) -> list[_Candidate]:
    """Difficulty and advantages of benchmarks at each level of a metafeature, dependent in any way."""
    effects, width = f"0 + {as_factor(runs, metafeature)}", len(runs.levels(metafeature))
    return [
        _Candidate(
            (benchmark,), f"each benchmark has its own level of difficulty at each {metafeature}", effects, width
        ),
        _Candidate(
            (benchmark, runs.algorithm),
            f"an algorithm does better on some benchmarks than on others, which may depend on {metafeature}, for all "
            "algorithms to the same degree; so a comparison is as sure as the number of benchmarks allows, not the "
            "number of rows",
            effects,
            width,
        ),
    ]


def _of_sample(runs: Runs, columns: tuple[str, ...], noun: str) -> list[_Candidate]:
    """Difficulty and advantages of benchmarks, or of instances within benchmarks."""
    plural = "benchmarks" if len(columns) == 1 else "instances of a benchmark"
    conclusion = (
        "; so a comparison is as sure as the number of benchmarks allows, not the number of rows"
        if len(columns) == 1
        else ", beyond what the benchmark explains"
    )
    return [
        _Candidate(columns, f"each {noun} has its own level of difficulty"),
        _Candidate(
            (*columns, runs.algorithm),
            f"an algorithm does better on some {plural} than on others, for all algorithms to the same "
            f"degree{conclusion}",
        ),
    ]


def _generalises(runs: Runs) -> bool:
    """Whether there are several benchmarks, so that they can stand for others."""
    return runs.benchmark is not None and len(runs.levels(runs.benchmark)) > 1


def _identified(
    runs: Runs, candidates: list[_Candidate], blocks: tuple[str, ...]
) -> tuple[list[_Candidate], list[str]]:
    """The candidates that the design can tell apart; the groups of `blocks` have fixed effects."""
    kept: list[_Candidate] = []
    left_out = []
    counts: dict[frozenset[str], int] = {}
    n_blocks = runs.study.count(*blocks) if blocks else 0
    for candidate in candidates:
        if set(candidate.columns) <= set(blocks):
            continue
        levels = runs.study.count(*candidate.columns)
        same = next(
            (k for k in kept if set(k.columns) < set(candidate.columns) and counts[frozenset(k.columns)] == levels),
            None,
        )
        if levels < 2:
            left_out.append(f"{candidate.text}: there is only one such group.")
        elif levels * candidate.width >= runs.n_rows:
            left_out.append(
                f"{candidate.text}: each of its groups is a single row, so it cannot be distinguished from the "
                "residual, which takes its place."
            )
        elif set(blocks) < set(candidate.columns) and levels == n_blocks:
            left_out.append(
                f"{candidate.text}: its groups are those of {':'.join(map(quote_name, blocks))}, whose effects are "
                "fixed."
            )
        elif same is not None:
            left_out.append(f"{candidate.text}: its groups are those of {same.text}, which takes its place.")
        else:
            kept.append(candidate)
            counts[frozenset(candidate.columns)] = levels
    return kept, left_out


def _one_curve_each(runs: Runs) -> bool:
    """Whether rows at several budgets are all there is: without seeds, on one benchmark."""
    if runs.budget is None or runs.seed is not None or _generalises(runs):
        return False
    run = (*runs.study.instance, runs.algorithm)
    return runs.study.count(*run) < runs.n_rows == runs.study.count(*(*run, runs.budget))


def _beside_the_fixed(runs: Runs, fixed: list[ModelTerm], kept: list[_Candidate]) -> tuple[list[_Candidate], list[str]]:
    """The candidates that the fixed effects do not hold already; a fit would call their variances arbitrary."""
    text = f"{quote_name(runs.score)} ~ {' + '.join(term.text for term in fixed)}"
    columns = _n_columns(runs, text)
    free: list[_Candidate] = []
    left_out = []
    for candidate in kept:
        few = runs.study.count(*candidate.columns) <= columns
        if not few or held_in(f"{text} + {candidate.text}", runs) is None:
            free.append(candidate)
        elif runs.algorithm in candidate.columns:
            raise _nothing_repeated(runs)
        else:
            left_out.append(f"{candidate.text}: the fixed effects hold it already, so its variance would be arbitrary.")
    return free, left_out


def _nothing_repeated(runs: Runs) -> DesignError:
    """The error of runs of which each algorithm has one under each condition."""
    where = " under each condition" if len(runs.study.instance) > bool(runs.benchmark) else ""
    return DesignError(
        f"Each algorithm has one run{where}, so a difference between algorithms cannot be told from one between runs, "
        f"however many values of {runs.budget!r} a run was scored at. Bring more seeds, or more benchmarks."
    )


def _n_columns(runs: Runs, formula: str) -> int:
    """An upper limit of the fixed effects of a formula."""
    levels = [len(runs.levels(name)) for name in parse_formula(formula).columns if name != runs.score]
    return int(np.prod(levels, dtype=float)) if levels else 1


def _fixed(runs: Runs) -> tuple[list[ModelTerm], list[str]]:
    algorithm = as_factor(runs, runs.algorithm)
    terms = [ModelTerm(text=algorithm, meaning="the mean of each algorithm, which is what is compared")]
    own = runs.study.properties
    alone = tuple(name for name in runs.metafeatures if name not in own)
    conditions = alone if not _generalises(runs) else (_condition(runs),)
    if any(conditions):
        terms += [
            ModelTerm(
                text=f"{as_factor(runs, name)} + {algorithm}:{as_factor(runs, name)}",
                meaning=f"each level of {name} has its own means; algorithms are compared by their average over levels",
            )
            for name in conditions
            if name is not None and len(runs.levels(name)) > 1
        ]
    budget, notes = _budget(runs)
    return [*terms, *budget], notes


def _budget(runs: Runs) -> tuple[list[ModelTerm], list[str]]:
    """Fixed effect of the budget, where runs were not all scored at the same ones."""
    if runs.budget is None:
        return [], []
    budgets = len(runs.levels(runs.budget))
    run = tuple(c for c in (*runs.study.instance, runs.algorithm, runs.seed) if c is not None)
    if runs.study.count(*(*run, runs.budget)) == budgets * runs.study.count(*run):
        note = (
            f"Every run has a score at the same {budgets} budgets, so algorithms are compared by their mean over the "
            "budgets. Filter the runs to one budget to compare them there."
        )
        return [], [note] * (budgets > 1)
    name = quote_name(runs.budget)
    if budgets <= _MANY_BUDGETS:
        meaning = "runs were scored at different budgets, so each budget has its own mean"
        return [ModelTerm(text=f"C({name})", meaning=meaning)], []
    note = (
        f"Runs were scored at different budgets ({budgets:,} distinct values), which this model does not adjust for. "
        "Compare the runs at budgets that all of them reached."
    )
    return [], [note]


def _of_algorithms(runs: Runs) -> list[str]:
    own = runs.study.properties
    if not own:
        return []
    return [
        f"Each algorithm has one value of {' and '.join(own)}, which tells kinds of algorithms apart and not "
        "circumstances of their runs, so it is not in the model."
    ]


def _scope(runs: Runs, blocks: tuple[str, ...]) -> list[str]:
    if runs.benchmark is None or not _generalises(runs):
        here = "There is one benchmark" if runs.benchmark is not None else "No benchmark column was named"
        return [
            f"{here}, so the answer holds for what was measured and says nothing about other benchmarks. "
            "More seeds do not change that; more benchmarks do."
        ]
    notes = []
    benchmarks = len(runs.levels(runs.benchmark))
    if benchmarks < 6:
        notes.append(
            f"There are only {benchmarks} benchmarks: differences between benchmarks are estimated poorly, and only "
            "large and consistent advantages can be told from chance."
        )
    kinds = [name for name in runs.study.kinds if 2 * runs.study.count(*(name,)) <= benchmarks]
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
