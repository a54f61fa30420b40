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

For which population a comparison is made: new families of benchmarks, new benchmarks of these, or new runs.
The sample decides what the error of a comparison is made of. Where benchmarks come in families (search spaces, suites)
an algorithm's advantage is shared by the benchmarks of a family, so that a claim about further families is as sure as
the number of families allows; a claim about further benchmarks of these families is surer, and says less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.per_run import reduced
from lmemtest.bench.data.requirements import FEWEST_FAMILIES, enough_families
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.modelling.shared_seeds import terms_of_seeds
from lmemtest.bench.modelling.terms import called_for
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, percent, plural, spoken
from lmemtest.errors import ArgumentError, DesignError, FormulaError
from lmemtest.lmm.formula import Bar
from lmemtest.lmm.formula.columns import refuse_unknown
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.model.fitting import fitted_quietly

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.formula import ParsedFormula
    from lmemtest.lmm.model import LmmFit

    Level = tuple[str, ...]


@guided
@one_blas_thread()
def recommend(runs: Runs, *, population: str | None = None, curves: str | None = None) -> Answer:
    """Recommend a mixed model for a table of runs.

    Parameters
    ----------
    runs : Runs
        Roles decide the terms: benchmark (with its metafeatures: the instance), its families, seed, budget.
    population : {"family", "benchmark", "run"}, optional
        What claims are about. "family": new families of benchmarks, which count as the sample. "benchmark": new
        benchmarks of these families, which have means of their own. "run": exactly these benchmarks, each with means of
        its own and a residual variance (``spec.dispersion``), which takes two runs of every algorithm on each. By
        default families where there are five or more.
    curves : {"mean", "last", "best", "area", "model"}, optional
        What the scores of a run over its budgets count, see `Runs.per_run`; "model" keeps them, and the budget is in
        the model. By default "mean"; "best" where rows look like the single trials of a search; "area" where runs have
        few budgets in common; and "model" where they have no range of budgets in common.

    Returns
    -------
    Answer
        Its table ``terms`` has each ``term`` of the formula with its ``meaning``, what it assumes. Values: ``formula``
        (ready for `fit_lmm`, with `runs`), ``spec`` (the same model as a `ModelSpec`), ``runs`` (what to fit it to:
        the runs that were given, and of curves over a budget one score per run (`Runs.per_run`), in a column of its
        own, so that the formula does not fit the rows of the curves by mistake), ``left_out`` (terms that this design
        cannot identify, and why), ``tested`` (terms that it identifies and that a test left out, with the test),
        ``seeds`` (the test of what runs with the same seed share on all benchmarks; None where there is nothing to
        test), ``population`` ("family", "benchmark" or "run": what counts as the sample) and ``claim`` (what a claim
        from this model is about, such as "new search spaces" or "new tasks of these 16 search spaces"). The notes say
        what a reader must know about the scope of the answer.

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
    ``(1|benchmark) + (1|benchmark:algorithm) + (1|instance) + (1|instance:algorithm)``, which is conservative.

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
    return model_of(reduced(runs, curves), population)


def model_of(runs: Runs, population: str | None = None, *, hold_seeds: bool = False) -> Answer:
    """`recommend` for the scores that runs have; with `hold_seeds` what seeds share is in the model untested."""
    runs.study.require_crossing()
    sample = Population.of(runs, population)
    exactly = population == "run" and runs.study.several_benchmarks  # each benchmark has means of its own
    blocks = runs.study.instance if exactly else runs.study.relative_to
    of_seeds, seeds, no_luck, tested = terms_of_seeds(runs, always=hold_seeds)
    spec, formula, terms, left_out, budget_notes = called_for(
        runs, blocks, of_seeds, families=sample.families, fixed_family=sample.fixed, exactly=exactly
    )
    not_identified = (*sample.left_out, *left_out, *no_luck)
    values = {"formula": formula, "runs": runs, "spec": spec, "left_out": not_identified, "tested": tested}
    return Answer(
        question="recommend",
        title=formula,
        tables={"terms": pd.DataFrame(terms, columns=["term", "meaning"])},
        values={**values, "seeds": seeds, "population": sample.role, "claim": sample.claim},
        facts=(
            f"For {sample.claim}.",
            *(f"Not identified: {text}" for text in not_identified),
            *(f"Tested and left out: {text}" for text in tested),
        ),
        notes=(
            *_scope(runs, blocks, spec.bars, sample, seeds),
            # what was done with curves
            *(() if runs.curve is None else filter(None, (runs.curve.sentence, runs.curve.early))),
            *budget_notes,
        ),
    )


def as_written(model: Answer) -> ParsedFormula:
    """The recommended model ready to be fitted, with the formula in which it is shown."""
    return replace(model.spec.parsed, text=model.formula)


def fitted(model: Answer, runs: Runs, parsed: ParsedFormula | None = None, dispersion: str | None = None) -> LmmFit:
    """The recommended model, or one's own; residual variances are one's own too, or as recommended.

    Raises
    ------
    FormulaError
        If one's own is of another score, of columns that are not there, or without the algorithms.
    """
    if parsed is None:
        parsed, dispersion = as_written(model), dispersion or model.spec.dispersion
    else:
        _check_formula(parsed, runs)
    return fitted_quietly(parsed, runs, dispersion)


def _check_formula(parsed: ParsedFormula, runs: Runs) -> None:
    """Refuse a formula of another score, of columns that are not there, or without the algorithms."""
    if parsed.response != runs.score:
        raise FormulaError(
            f"{named('formula')} models {parsed.response!r}, but the score of these runs is {runs.score!r}. Write "
            f"{runs.score!r} on the left, or give the runs another score."
        )
    refuse_unknown(parsed, runs.columns)
    if runs.algorithm not in {name for term in parsed.terms for name in term.columns}:
        raise FormulaError(
            f"{named('formula')} must have the algorithm {runs.algorithm!r} in its fixed part, because its means are "
            f"compared; got {parsed.text!r}. Write for instance {recommend(runs, curves='model').formula!r}."
        )


# ---------------------------------------------------------------------- what a reader must know


def _scope(
    runs: Runs, blocks: tuple[str, ...], kept: Iterable[Bar], population: Population, of_seeds: Answer | None
) -> list[str]:
    """What a reader must know: of benchmarks, then of seeds, then of kinds of algorithms."""
    of_these = population.role == "run" and runs.study.several_benchmarks
    notes = [*population.notes, *(() if of_these else _of_benchmarks(runs, blocks))]
    pair = {str(runs.seed), runs.algorithm}
    if of_seeds is not None and any(set(bar.groups) == pair for bar in kept):
        remedy = advice("seed_own")
        if of_seeds.verdict == "shown":
            notes.append(
                f"Runs of an algorithm with the same seed deviate together on all benchmarks ({of_seeds.test}), so the "
                f"{of_seeds.n_seeds} seeds are a sample, too: more benchmarks alone do not make the answer more "
                f"certain, more seeds do. If seeds only number the repetitions on a benchmark, say so: {remedy}."
            )
        else:
            notes.append(
                "Runs of an algorithm with the same seed may deviate together on all benchmarks. That is not shown "
                f"({of_seeds.test}), and the model allows for it as a precaution, because a weak effect would be "
                f"missed too often. If seeds only number the repetitions on a benchmark, say so: {remedy}."
            )
        if of_seeds.n_seeds == 2:
            notes.append(
                "With two seeds this is estimated from very little: in simulations a nominal 5 % was up to 12 %."
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
    if blocks and runs.study.has_baseline:
        notes += _of_baseline(runs)
    elif blocks:
        notes.append(
            "Scores are relative to the benchmark (ranks, for instance): what one algorithm gains there others lose, "
            "so algorithms are compared within benchmarks."
        )
    benchmarks = runs.study.count(runs.benchmark)
    if benchmarks < 6:
        notes.append(
            f"There are only {benchmarks} benchmarks: differences between benchmarks are estimated poorly, and only "
            "large and consistent advantages can be detected."
        )
    kinds = [name for name in runs.study.kinds if 2 * runs.study.count(name) <= benchmarks]
    if kinds and not blocks:
        question = f"{quote_name(runs.algorithm)!r}, {quote_name(kinds[0])!r}"
        notes.append(
            f"Each benchmark has one level of {' and '.join(kinds)}, which distinguishes kinds of benchmarks and is "
            "not in the model. To ask whether kinds differ in who is better: "
            f"lmemtest.ModelBuilder(runs).recommended().interaction({question})."
        )
    conditions, crossed = runs.study.conditions, runs.study.crossed
    if conditions:
        notes.append(
            f"Benchmarks count as the sample. The instances of one benchmark ({' x '.join(runs.study.instance)}) share "
            f"it, so more levels of {' and '.join(conditions)} do not make the answer more precise for new benchmarks."
        )
    if crossed:
        notes.append(
            f"The same {spoken(str(runs.benchmark))} occurs in several {' and '.join(map(plural, crossed))}: what an "
            "algorithm gains on it is shared there, so it does not count as a new one each time."
        )
    return notes


def _of_baseline(runs: Runs) -> list[str]:
    """What scores relative to an algorithm share, and how much of it is chance."""
    if runs.scale is None or not runs.scale.reference:
        return []
    baseline, noise = runs.scale.reference, runs.scale.noise
    notes = [
        f"Scores are relative to the mean of {baseline}, whose chance deviations all scores of a benchmark share: "
        f"algorithms are compared within benchmarks, where they cancel, and the runs of {baseline} stay in the model, "
        "where they count."
    ]
    if noise is not None and np.isfinite(noise.error):
        what = "it" if not runs.scale.target else f"its distance from {runs.scale.target}"
        alike = ", if its runs scatter as those of the others" * noise.borrowed
        notes.append(
            f"The mean of {baseline} on a benchmark rests on {counted(noise.runs, 'run')} or more; "
            f"its standard error is {percent(noise.error)} of {what} (root mean square over benchmarks{alike})."
        )
    return notes


# --------------------------------------------------------------------------------------- the population of a comparison


POPULATIONS = ("family", "benchmark", "run")
# A variance between two families has one degree of freedom, which no comparison survives.
_FEWEST_ASKED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What is the sample, and what that makes of the claims.

    Attributes
    ----------
    role : {"family", "benchmark", "run"}
        What counts as the sample.
    families : tuple of tuple of str
        Levels of families with random effects, from coarse to fine, each by its columns; empty unless they are the
        sample.
    fixed : str or None
        Column of the families that have means of their own, where benchmarks are the sample within them.
    claim : str
        What a claim is about, such as "new tasks of these 16 search spaces".
    left_out : tuple of str
        Levels of families that are too few to be a sample.
    notes : tuple of str
    """

    role: Literal["family", "benchmark", "run"]
    families: tuple[Level, ...] = ()
    fixed: str | None = None
    claim: str
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: Runs, wanted: str | None = None) -> Population:
        """The population that was asked for; by default families where there are enough of them."""
        if wanted is not None:
            check_choice(wanted, "population", POPULATIONS)
            _require(runs, wanted)
        if not runs.study.several_benchmarks:
            return cls(role="run", claim="these benchmarks" if runs.benchmark is None else _these(runs, runs.benchmark))
        if wanted == "run":
            these, task = _these(runs, str(runs.benchmark)), spoken(str(runs.benchmark))
            note = (
                f"Runs count as the sample, and each {task} has its own means and residual variance, so the "
                f"answer holds for {these} and says nothing about other {plural(str(runs.benchmark))}."
            )
            return cls(role="run", claim=these, notes=(note,))
        enough = enough_families(runs, _FEWEST_ASKED if wanted == "family" else FEWEST_FAMILIES)
        few = tuple(level for level in runs.study.families if level not in enough)
        if wanted == "benchmark" or not enough:
            return _population_of_benchmarks(runs, few if wanted is None else ())
        over = f" of {_these(runs, few[-1][-1])}" if few else ""
        claim = f"new {plural(enough[0][-1])}{over}"
        n, name = runs.study.count(*enough[0]), plural(enough[0][-1])
        notes = [
            f"{name[0].upper()}{name[1:]} count as the sample ({n} of them), so the answer holds for {claim}. More "
            f"{plural(str(runs.benchmark))} of the same {name} make it hardly more precise; more {name} do. "
            f"{advice('value', name='population', value='benchmark')} asks about new {plural(str(runs.benchmark))} of "
            f"these {name}."
        ]
        if n < FEWEST_FAMILIES:
            notes.append(
                f"With {n} {name} the variance between them is estimated from very little: only large and consistent "
                "advantages can be detected."
            )
        return cls(
            role="family",
            families=enough,
            claim=claim,
            left_out=tuple(_too_few(runs, level) for level in few),
            notes=tuple(notes),
        )


def _population_of_benchmarks(runs: Runs, few: tuple[Level, ...]) -> Population:
    """Benchmarks are the sample, within the finest families that can have means of their own."""
    tasks = plural(str(runs.benchmark))
    levels = runs.study.families
    if not levels:
        return Population(role="benchmark", claim=f"new {tasks}", notes=_of_no_families(runs))
    finest = levels[-1][-1]
    claim = f"new {tasks} of {_these(runs, finest)}"
    fixed = next((level[-1] for level in reversed(levels) if _why_no_means(runs, level) is None), None)
    spaces = plural(finest)
    if few:
        start = (
            f"There are too few {spaces} to be a sample ({runs.study.count(*few[-1])}; {FEWEST_FAMILIES} or more are "
            f"taken for one), so the answer holds for {claim} and says nothing about other {spaces}."
        )
    else:
        start = f"The answer holds for {claim}, and says nothing about other {spaces}."
    if fixed is not None:
        how = (
            f" Each level of {fixed} has its own means, and the mean of an algorithm is over them, each weighted by "
            f"its number of {tasks}."
        )
    else:
        how = f" {spaces[0].upper()}{spaces[1:]} are not in the model, because {_why_no_means(runs, levels[-1])}."
    return Population(role="benchmark", fixed=fixed, claim=claim, notes=(start + how,))


def _why_no_means(runs: Runs, level: Level) -> str | None:
    """Why these families have no means of their own, and what that makes of the claim; None where they have."""
    study, column, tasks = runs.study, level[-1], plural(str(runs.benchmark))
    alike = f"{tasks} count as drawn from all {plural(column)} alike"
    cells = study.distinct([column, runs.algorithm, str(runs.benchmark)])
    sizes = cells.groupby([column, runs.algorithm], observed=True).size()
    if len(sizes) != study.count(column) * study.count(runs.algorithm):
        return (
            f"some algorithm has no runs in some of them: {alike}, so a comparison with it is fair only if its "
            f"advantage in the {plural(column)} without its runs is no other than in the rest"
        )
    if sizes.min() > 1:
        return None
    return f"some have too few {tasks} for means of their own: {alike}, which is conservative"


def _require(runs: Runs, wanted: str) -> None:
    """Refuse a population that these runs cannot be a sample of."""
    if wanted == "run":
        _require_repeated(runs)
        return
    study = runs.study
    study.require("benchmark", f"{plural(wanted)} cannot be a sample")
    asked = setting("population", wanted)
    if not study.several_benchmarks:
        raise DesignError(
            f"{asked} needs several benchmarks, and the runs have one level of {runs.benchmark!r}: the answer holds "
            f"for it alone. Leave {named('population')} out, or add more benchmarks."
        )
    if wanted != "family":
        return
    if not runs.family:
        raise ArgumentError(
            f"{asked} needs runs with families of benchmarks, and no column is named as their family. "
            f"Name it: {advice('role', role='family')}. Columns: {', '.join(runs.columns)}."
        )
    if not study.families:
        raise DesignError(
            f"{asked} is not possible: {' '.join(_of_no_families(runs))} Leave {named('population')} out: the "
            f"answer then holds for new {plural(str(runs.benchmark))}."
        )
    if not enough_families(runs, _FEWEST_ASKED):
        level = study.families[-1]
        raise DesignError(
            f"{asked} needs {_FEWEST_ASKED} families or more, and there are {study.count(*level)} levels "
            f"of {':'.join(level)}. Take {advice('value', name='population', value='benchmark')} for claims about "
            "these, or add benchmarks of others."
        )


def _require_repeated(runs: Runs) -> None:
    """Refuse runs that do not show by how much two runs of an algorithm differ on each benchmark."""
    study, place = runs.study, [*runs.study.instance, runs.algorithm]
    if not study.several_benchmarks:
        return
    study.require("seed", "runs cannot be a sample")
    n_runs = study.distinct([*place, str(runs.seed)]).groupby(place, observed=True).size()
    n_runs = n_runs.reindex(pd.MultiIndex.from_product([runs.levels(name) for name in place]), fill_value=0)
    few = n_runs[n_runs < 2]
    if few.empty:
        return
    *where, algorithm = few.index[0]
    others = f", and so {counted(len(few) - 1, 'other')}" if len(few) > 1 else ""
    lacks = f"{algorithm} has {'one' if few.iloc[0] else 'none'} on {' x '.join(map(str, where))}{others}"
    raise DesignError(
        f"{setting('population', 'run')} needs two runs of every algorithm on every {' x '.join(study.instance)}, to "
        f"see how much runs differ, and {lacks}. "
        f"Add more seeds, leave out what lacks them, or leave {named('population')} out: the answer then holds for "
        f"new {plural(str(runs.benchmark))}."
    )


def _of_no_families(runs: Runs) -> tuple[str, ...]:
    """Why the families that were named are none."""
    reasons = []
    for name in runs.family:
        n = runs.study.count(name)
        why = (
            "has one level, so it says nothing about other families"
            if n == 1
            else f"holds one benchmark in each of its {n} levels, so the benchmarks themselves are the families"
        )
        reasons.append(f"The family {name!r} {why}: it is not in the model.")
    return tuple(reasons)


def _too_few(runs: Runs, level: Level) -> str:
    name = ":".join(level)
    return (
        f"(1 | {name}) and (1 | {name}:{runs.algorithm}): there are {runs.study.count(*level)} levels of {name}, too "
        f"few for a variance between them, so the answer says nothing about other {plural(level[-1])}."
    )


def _these(runs: Runs, column: str) -> str:
    n = runs.study.count(column)
    return f"these {n} {plural(column)}" if n > 1 else f"this {spoken(column)}"
