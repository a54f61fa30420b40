"""Which terms a model needs: chosen by the data from a family of models, and tested where they had no part in it.

What the data chose, the data then seem to confirm: p-values and intervals of the chosen model are too optimistic (Berk
et al. 2013). Every result says so; with ``validate="half"`` the terms are chosen on one half of the benchmarks and the
algorithms compared on the other, by p-values that do not know about the choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.requirements import of_these_families
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.modelling.menu import Candidate, Family, Model, family_of
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.modelling.search import Fitted, Search, backward, best, forward
from lmemtest.bench.modelling.terms import refusal, unidentified
from lmemtest.core.hints import guided
from lmemtest.core.replicates import Executor, check_replicates
from lmemtest.core.result import Answer, result
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_number, check_positive_int, resolve_rng
from lmemtest.core.words import counted, listed, p_text
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.formula import INTERCEPT, Bar
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import LmmFit
from lmemtest.lmm.model.spec import ModelSpec

# What each method may choose by, its default first.
METHODS = {"forward": ("glrt", "aic", "bic"), "best": ("bic", "aic"), "backward": ("glrt",)}
ADJUSTMENTS = ("holm", "none")
SAMPLE_SIZES = ("rows", "benchmarks")
FEWEST = 8  # benchmarks: four in each half, the least that shows how advantages differ between benchmarks
# Families up to this size are fitted whole; larger ones are counted no further than this.
EXHAUSTIVE, _COUNTED = 32, 100_000
# A regular fit is preferred to a singular one unless its weight is less than e^-3, a twentieth, of it.
CLEARLY_WORSE = 6.0
_OF_STEPS = ["step", "term", "kind", "llf", "n_params", "statistic", "df", "p_raw", "aic", "bic", "decision"]
_OF_MODELS = ["rank", "model", "n_params", "llf", "aic", "bic", "delta", "weight", "singular", "distance"]


@result
class ChosenModel(Answer):
    """A model that the data chose from a family; what was tried is in its tables, how it was chosen in its values.

    Attributes
    ----------
    runs : Runs
    start, spec : ModelSpec
        The model at the beginning and the chosen one; ``ModelBuilder.of(runs, spec)`` goes on from there.
    holdout : Answer or None
        The algorithms compared on the benchmarks held out; None without validation. Its values: ``chosen_on`` and
        ``tested_on`` (benchmarks), ``formula`` (the model that was tested), ``fit`` (by restricted maximum likelihood,
        on the benchmarks of `tested_on`), ``pairs`` (`Comparisons`: all differences between algorithms there, Tukey's
        adjustment, Satterthwaite's degrees of freedom), of which its table has the rows.
    """

    runs: Runs
    start: ModelSpec
    spec: ModelSpec
    holdout: Answer | None = None
    figure: str | None = "selection_plot"  # type: ignore[misc]

    @property
    def formula(self) -> str:
        """The chosen model in lme4's syntax."""
        return self.spec.formula

    def fit(self, **options: Any) -> LmmFit:
        """Fit the chosen model to all runs; options are those of `fit_lmm`."""
        return self.spec.fit(self.runs, **options)


@guided
@one_blas_thread()
def select_model(
    runs: Runs,
    *,
    method: str = "forward",
    start: ModelSpec | None = None,
    candidates: Iterable[str] | None = None,
    criterion: str | None = None,
    alpha: float = 0.05,
    adjust: str = "holm",
    depth: int | None = None,
    max_steps: int | None = None,
    within: float = 6.0,
    max_models: int = 200,
    bic_n: str = "rows",
    validate: str | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> ChosenModel:
    """Choose the terms of a model by the data.

    Parameters
    ----------
    runs : Runs
    method : {"forward", "best", "backward"}
        "forward": from a small model on, add the term that improves it most, one at a time, until none does. "best":
        the best model of all that the candidates make, ranked beside its rivals. "backward": from the largest model
        down, drop the term with the largest p-value as long as it is above `alpha`.
    start : ModelSpec, optional
        The smallest model, for example ``recommend(runs).spec``; ``builder.select()`` starts at the model of a builder.
        By default ``score ~ algorithm + (1 | benchmark)``, without the random effect where there is one benchmark.
    candidates : iterable of str, optional
        Columns or roles (``"prior"``: its fixed effect, its interaction with the algorithm, intercepts and slopes of
        benchmarks), whole terms (``"algorithm:prior"``, ``"C(prior)"``, ``"(1 | benchmark:seed)"``), or
        ``"dispersion(benchmark)"``. By default all terms that the roles of the table suggest.
    criterion : {"glrt", "aic", "bic"}, optional
        What chooses: likelihood-ratio tests ("forward", where it is the default, and "backward"), AIC or BIC ("forward"
        and "best", whose default is BIC). "forward" adds the term with the smallest p-value while it is at most
        `alpha`, or the one that lowers AIC or BIC most.
    alpha : float in (0, 1)
        Level of each test.
    adjust : {"holm", "none"}
        For "forward" by tests. "holm" multiplies the smallest p-value of a step by the number of its candidates, so
        that a step without anything to find adds something with probability at most `alpha`, however many candidates
        there are, as far as each test holds its level (see the notes).
    depth : int, optional
        The most columns that may meet in one term: in an interaction, in the groups of a random effect, in a slope and
        its groups.
    max_steps : int, optional
        The most terms that "forward" adds.
    within : float >= 0
        "best" finds all models whose criterion is at most this far from the best; ``inf`` for every model. Families of
        up to 32 models are always fitted whole.
    max_models : int
        The most models that "best" fits; the result says whether they were enough.
    bic_n : {"rows", "benchmarks"}
        The sample size in BIC's penalty, log(n) per parameter.
    validate : {None, "half"}
        "half": choose on a random half of the benchmarks (at least 8 are needed) and compare the algorithms on the
        other half, see ``holdout``.
    rng : int, numpy.random.Generator or None
        Draws the halves, and simulates the exact null distribution of a single variance in unbalanced tables.
    n_jobs : int
        Processes; -1 for one per processor. The result does not depend on it.
    executor : object with a ``map``, optional
        What computes instead, such as one of concurrent.futures or a client of Dask.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    ChosenModel
        ``formula``, ``spec`` and ``fit()`` are the chosen model, ``chosen`` its terms beyond the start. Values of every
        method: ``method``, ``criterion``, ``bic_n``, ``n_fits`` (models that were fitted).

        "forward" has the tables ``path`` and ``steps`` (its rows that are in the model: the start, and each term as it
        was added). One row per step and candidate: ``step`` (0 is the start), ``term``, ``kind``, ``llf`` (maximum
        likelihood), ``n_params``, ``statistic``, ``df``, ``reference``, ``p_raw``, ``p_value`` (against the model of
        the step before), ``aic``, ``bic``, ``singular``, ``converged``, ``chosen``, ``decision`` (why, in words).
        Numbers are NaN where a term cannot be identified. Values: ``alpha``, ``adjust``.

        "best" and "backward" have the table ``models``, one row per fitted model, the best first: ``rank``,
        ``formula``, ``terms`` (a tuple: what it has beyond the start), ``n_params``, ``llf`` (maximum likelihood),
        ``aic``, ``bic``, ``delta_aic``, ``delta_bic``, ``delta`` (of the criterion; of AIC for "backward"), ``weight``
        (Akaike weight over this table, from ``delta``), ``p_value`` (for "backward": of the step down to this model),
        ``singular``, ``converged``, ``distance`` (terms that the recommended model has and this one lacks, and the
        other way round), ``best``. The best one is the first whose fit is not singular, unless a singular one is better
        by more than 6. Values: ``terms`` (that models of the family may have, in order), ``n_models`` (of the family,
        counted up to 100,000), ``within`` and ``complete`` (whether the search came to its end, so that every model
        within reach is in the table; False if `max_models` stopped it), ``not_identified`` (terms that the design
        cannot identify, and why).

    Raises
    ------
    ArgumentError
        If an option is unknown, there is nothing to choose from, or too few benchmarks to hold half of them out.

    Notes
    -----
    All models are fitted by maximum likelihood to the same rows, so likelihoods, AIC and BIC can be compared. Tests
    are those of `glrt` with ``reference="auto"``: chi-squared for fixed effects, the exact distribution or the mixture
    for a variance on its boundary. P-values too small for a double are ranked by their logarithm. Terms that are
    equally good to 1e-6 are ranked by their number of parameters, then by their text, so the order of the candidates
    does not matter. The chi-squared tests of fixed effects that vary between benchmarks reject too often where there
    are few: a metafeature without a general effect entered at a nominal 5 % in 12 % of simulated tables with 5
    benchmarks, 9 % with 10 and 8 % with 20. The chosen model is for looking; test with its F-tests on other benchmarks.

    The family has the terms of the start and any of the candidates. A term enters after the terms that it needs: a
    slope after its intercept and its fixed effect, groups of several columns after the coarser ones; the main effects
    of an interaction come along with it, in one test. What the design cannot identify is listed with the reason. A
    larger model of the family never has a smaller likelihood, which bounds the criterion of all models between two, so
    that for "best" most need not be fitted (Furnival & Wilson 1974).

    Akaike weights, exp(-delta / 2) over their sum, compare the models of the table: from AIC they are the relative
    support (Burnham & Anderson 2002), from BIC approximate posterior probabilities with equal priors. What BIC should
    count where rows share benchmarks is unsettled (Delattre, Lavielle & Poursat 2014): rows are lme4's convention and
    ask more of every term than benchmarks do. AIC, where it counts a variance on its boundary as a parameter, prefers
    models without it (Greven & Kneib 2010).

    References
    ----------
    Geburek et al. (2024), arXiv:2408.02533, section 4.4; Berk, Brown, Buja, Zhang & Zhao (2013) on inference after
    selection, doi:10.1214/12-AOS1077; Holm (1979), https://www.jstor.org/stable/4615733; Furnival & Wilson (1974),
    Technometrics 16, 499-511; Burnham & Anderson (2002), doi:10.1007/b97636; Delattre, Lavielle & Poursat (2014),
    doi:10.1214/14-EJS890; Greven & Kneib (2010), Biometrika 97, 773-789; Matuschek et al. (2017) on dropping random
    effects, doi:10.1016/j.jml.2017.01.001

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8)
    >>> start = lt.ModelBuilder(runs).random("benchmark", "benchmark:algorithm")
    >>> start.select(candidates=["prior"], criterion="bic").chosen
    ('algorithm:prior', '(1 | benchmark:prior)', '(1 + prior | benchmark:algorithm)')
    >>> found = lt.select_model(runs.filter(prior="good"), method="best")
    >>> found.formula
    'loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)'
    >>> found.n_models, found.complete
    (8, True)
    """
    check_choice(method, "method", tuple(METHODS))
    criterion = _checked_criterion(criterion, method)
    check_choice(adjust, "adjust", ADJUSTMENTS)
    check_choice(bic_n, "bic_n", SAMPLE_SIZES)
    alpha = check_fraction(alpha, "alpha")
    max_steps = None if max_steps is None else check_positive_int(max_steps, "max_steps")
    max_models = check_positive_int(max_models, "max_models")
    within = check_number(within, "within", low=0, high=np.inf, meaning="inf takes in every model")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    family = family_of(runs, start, candidates)
    if depth is not None:
        family = _shallow(family, check_positive_int(depth, "depth"))
    generator = resolve_rng(rng)
    rows, halves = runs, None
    if validate is not None:
        check_choice(validate, "validate", ("half",))
        halves = _halves(runs, generator)
        rows = runs.filter(**{str(runs.benchmark): list(halves[0])})
    search = Search(
        family=family.on(rows),
        criterion=criterion,
        n=_sample_size(rows, bic_n),
        seed=int(generator.integers(2**31)),
        processes={"n_jobs": n_jobs, "executor": executor, "progress": progress},
    )
    if method == "forward":
        spec, words = _stepwise(search, alpha=alpha, adjust=adjust, max_steps=max_steps, bic_n=bic_n)
    else:
        identified, refused = _identified(search.family)
        search = replace(search, family=identified)
        spec, words = _ranked(search, refused, method, alpha=alpha, within=within, max_models=max_models, bic_n=bic_n)
    holdout = None if halves is None else _held_out(spec, runs, *halves)
    return ChosenModel(
        question="select_model",
        title=words["title"],
        tables=words["tables"],
        values={"method": method, "criterion": criterion, "bic_n": bic_n, **words["values"]},
        facts=words.get("facts", ()),
        findings=(words["finding"], *(() if holdout is None else holdout.findings)),
        notes=(*words["notes"], *_reservations(search.family, halves)),
        printed=words["printed"],
        formats={"llf": ".2f", "aic": ".2f", "bic": ".2f", **words["formats"]},
        runs=runs,
        start=search.family.start,
        spec=spec,
        holdout=holdout,
    )


# ---------------------------------------------------------------------- arguments


def _checked_criterion(criterion: str | None, method: str) -> str:
    if criterion is None:
        return METHODS[method][0]
    check_choice(criterion, "criterion", METHODS["forward"])
    if criterion not in METHODS[method]:
        others = "method='forward' or 'backward'" if criterion == "glrt" else "method='forward' or 'best'"
        raise ArgumentError(
            f"criterion of method={method!r} must be {' or '.join(map(repr, METHODS[method]))}, got {criterion!r}, "
            f"which is for {others}."
        )
    return criterion


def _shallow(family: Family, depth: int) -> Family:
    """The family without terms in which more columns meet."""
    shallow = family.without(c for c in family.candidates if c.depth > depth and c not in family.base)
    if not shallow.offered:
        least = min(c.depth for c in family.offered)
        raise ArgumentError(f"depth={depth} leaves no term to choose; the simplest has a depth of {least}.")
    return shallow


def _halves(runs: Runs, rng: np.random.Generator) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The benchmarks in two random halves; the second has one more where their number is odd."""
    levels = () if runs.benchmark is None else runs.levels(runs.benchmark)
    if len(levels) < FEWEST:
        count = f"has {counted(len(levels), 'benchmark')}" if levels else "names no benchmarks"
        raise ArgumentError(
            f"validate='half' needs at least {FEWEST} benchmarks, four to choose the terms on and four to test them, "
            f"and this table {count}. Use validate=None and take the model from the design (lmemtest.recommend), or "
            "add more benchmarks."
        )
    order = rng.permutation(len(levels))
    first = len(levels) // 2
    return tuple(levels[i] for i in sorted(order[:first])), tuple(levels[i] for i in sorted(order[first:]))


def _sample_size(runs: Runs, bic_n: str) -> int:
    """What BIC takes the logarithm of."""
    if bic_n == "rows":
        return runs.n_rows
    count = 0 if runs.benchmark is None else len(runs.levels(runs.benchmark))
    if count < 2:
        raise ArgumentError(
            f"bic_n='benchmarks' needs at least two benchmarks, and there {'is one' if count else 'are none'}. Use "
            "bic_n='rows'."
        )
    return count


# ---------------------------------------------------------------------- one term at a time


def _stepwise(
    search: Search, *, alpha: float, adjust: str, max_steps: int | None, bic_n: str
) -> tuple[ModelSpec, dict[str, Any]]:
    """The model that `forward` ends with, and what to say of its path."""
    path, terms, model, last, n_fits = forward(search, alpha=alpha, adjust=adjust, max_steps=max_steps)
    spec, criterion = search.family.spec(model), search.criterion
    chosen = tuple(c.text for c in terms)
    rule = f"likelihood-ratio tests at {alpha:g}" if criterion == "glrt" else _name(criterion, bic_n)
    finding = f"By {rule} no candidate improves {search.family.start.formula}."
    if chosen:
        added = f"{counted(len(chosen), 'term')} {'was' if len(chosen) == 1 else 'were'} added"
        finding = f"By {rule} {added}: {listed(chosen)}. The model: {spec.formula}."
    notes = [
        f"The chosen fit is singular: {label} has a variance of zero or a correlation of one, so a simpler term would "
        "do."
        for label in last.singular
    ]
    if not last.converged:
        notes.append("The search for the optimum of the chosen model is not certified; look at fit().certificate().")
    notes.append("All models are fitted by maximum likelihood to the same rows.")
    if criterion == "glrt" and adjust == "holm":
        notes.append(
            "The p-values of a step are Holm-adjusted over its candidates, so that a step without anything to find "
            f"adds a term with probability at most {alpha:g}, as far as each test holds its level (with few "
            "benchmarks those of fixed effects reject more often)."
        )
    elif criterion == "glrt":
        notes.append(
            f"P-values are not adjusted for the number of candidates, so more than {100 * alpha:g} % of "
            "the steps without anything to find add a term."
        )
    elif criterion == "bic":
        what = "rows, as in lme4" if bic_n == "rows" else "benchmarks"
        notes.append(f"BIC counts {what}: log(n) per parameter.")
    in_model, at_last = path["chosen"], path["step"] == path["step"].max()
    return spec, {
        "title": "Forward selection",
        "tables": {"path": path, "steps": path[in_model].reset_index(drop=True)},
        "printed": path.loc[in_model | at_last, _OF_STEPS].reset_index(drop=True),
        "values": {"chosen": chosen, "n_fits": n_fits, "alpha": alpha, "adjust": adjust},
        "finding": finding,
        "notes": notes,
        "formats": {"statistic": ".3f"},
    }


def _name(criterion: str, bic_n: str) -> str:
    return "AIC" if criterion == "aic" else f"BIC (n = {bic_n})"


# ---------------------------------------------------------------------- all models of a family


def _identified(family: Family) -> tuple[Family, dict[str, str]]:
    """The family without terms that the design cannot identify even in the smallest model that has them, and why."""
    refused: dict[Candidate, str] = {}
    for candidate in family.offered:
        down = family.down(candidate)
        if not refused.keys() & down and (why := refusal(family.spec(down), family.runs)):
            refused[candidate] = why
    identified = family.without(refused)
    if not identified.offered:
        first, why = next(iter(refused.items()))
        raise ArgumentError(
            f"there is nothing to choose from: the design identifies none of the candidates. {first.text}: {why}"
        )
    return identified, {c.text: why for c, why in refused.items()}


def _ranked(
    search: Search,
    refused: dict[str, str],
    method: str,
    *,
    alpha: float,
    within: float,
    max_models: int,
    bic_n: str,
) -> tuple[ModelSpec, dict[str, Any]]:
    """The best model by `best` or `backward`, and what to say of all."""
    family, criterion, complete = search.family, search.criterion, True
    n_models = family.count(_COUNTED)
    within = math.inf if n_models <= EXHAUSTIVE else within
    p_values: dict[Model, float] = {}
    if method == "backward":
        order, p_values = backward(search, alpha)
        how = (
            f"From the largest model down, the term with the largest p-value is dropped while it is above {alpha:g}; "
            "the p-values are not adjusted."
        )
    else:
        order, complete = best(search, within, max_models)
        if not complete:
            how = f"The search stopped after max_models={max_models} fits, so a better model may have been missed."
        elif n_models <= EXHAUSTIVE:
            how = "Every model of the family was fitted."
        else:
            how = (
                f"Every model of the family whose {criterion.upper()} is within {within:g} of the smallest is in the "
                "table: what was not fitted is bounded by larger models that were."
            )
    model, notes = _regular(search, order)
    table = _table(search, order, model, p_values)
    spec = family.spec(model)
    rule = "dropping terms by likelihood-ratio tests" if method == "backward" else _name(criterion, bic_n)
    rivals = int((table["delta"] <= 2.0).sum()) - 1
    if method == "backward":
        rest = ""
    elif not complete:
        rest = ", as far as the search went"
    elif rivals > 0:
        rest = f"; {rivals} other{'s are' if rivals != 1 else ' is'} within 2 of it"
    else:
        rest = "; no other is within 2 of it"
    many = f"{n_models:,}" if n_models < _COUNTED else f"more than {_COUNTED:,}"
    (chosen,) = table.loc[table["best"], "terms"]
    values = {
        "chosen": chosen,
        "terms": tuple(c.text for c in family.offered),
        "not_identified": tuple(refused.items()),
    }
    values |= {"within": within, "complete": complete, "n_models": n_models, "n_fits": len(search.fits)}
    more = len(table) - 10
    return spec, {
        "title": "Models, by the terms that they have beyond the best one (+) or lack (−)",
        "tables": {"models": table},
        "printed": _beside_the_best(table.head(10), chosen),
        "facts": (f"{more} more models in to_frame().",) if more > 0 else (),
        "values": values,
        "finding": f"The best of {many} models by {rule} is {spec.formula} ({len(search.fits)} fits){rest}.",
        "notes": (
            *notes,
            "All models are fitted by maximum likelihood to the same rows.",
            how,
            *(f"Not identifiable: {text} ({why})" for text, why in refused.items()),
        ),
        "formats": {"delta": ".2f", "weight": ".3f"},
    }


def _beside_the_best(table: pd.DataFrame, chosen: tuple[str, ...]) -> pd.DataFrame:
    """Some models by their difference from the best."""
    names = [
        ", ".join([*(f"+ {t}" for t in terms if t not in chosen), *(f"− {t}" for t in chosen if t not in terms)])
        for terms in table["terms"]
    ]
    return table.assign(model=[name or "the best" for name in names])[_OF_MODELS].reset_index(drop=True)


def _regular(search: Search, order: list[Model]) -> tuple[Model, list[str]]:
    """The best model: the first that is not singular, and what to say of those before it."""
    fits = search.fits
    if not order:
        reasons = [fitted.problem for fitted in fits.values()]
        raise DesignError(f"no model of the family could be fitted. {reasons[0]}")
    first = fits[order[0]]
    if search.criterion == "glrt":
        return order[0], _singular_note(first, "The model")
    regular = next((m for m in order if not fits[m].singular and fits[m].converged), None)
    if regular == order[0]:
        return regular, []
    name = search.criterion.upper()
    notes = _singular_note(first, f"The model with the smallest {name}, {first.formula},")
    if regular is None:
        return order[0], [*notes, "No model of the table has a regular fit."]
    gap = search.value(fits[regular]) - search.value(first)
    if gap > CLEARLY_WORSE:
        better = f"the best regular one, {fits[regular].formula}, has a {name} that is {written(gap, '.4g')} higher"
        return order[0], [*notes, f"It is kept all the same, since {better}."]
    return regular, [*notes, f"The best regular one is taken instead, whose {name} is {written(gap, '.3g')} higher."]


def _singular_note(fitted: Fitted, subject: str) -> list[str]:
    if not fitted.singular:
        return []
    which = listed(fitted.singular)
    return [
        f"{subject} is singular: {which} has a variance of zero or a correlation of one. Drop it or make it simpler."
    ]


def _table(search: Search, order: list[Model], best: Model, p_values: dict[Model, float]) -> pd.DataFrame:
    """One row per model."""
    family, fits = search.family, [search.fits[m] for m in order]
    aic, bic = np.array([f.aic for f in fits]), np.array([f.bic(search.n) for f in fits])
    delta = bic if search.criterion == "bic" else aic
    delta = delta - delta.min()
    weight = np.exp(-delta / 2.0)
    absorbed = [{part for c in m for part in c.absorbs} for m in order]  # what larger terms of a model hold
    recommended = _features(recommend(family.runs, curves="model").spec)
    return pd.DataFrame(
        {
            "rank": np.arange(1, len(order) + 1),
            "formula": [f.formula for f in fits],
            "terms": [
                tuple(c.text for c in family.offered if c in m and c.part not in inside)
                for m, inside in zip(order, absorbed, strict=True)
            ],
            "n_params": [f.n_params for f in fits],
            "llf": [f.llf for f in fits],
            "aic": aic,
            "bic": bic,
            "delta_aic": aic - aic.min(),
            "delta_bic": bic - bic.min(),
            "delta": delta,
            "weight": weight / weight.sum(),
            "p_value": [p_values.get(m, math.nan) for m in order],
            "singular": [bool(f.singular) for f in fits],
            "converged": [f.converged for f in fits],
            "distance": [len(_features(family.spec(m)) ^ recommended) for m in order],
            "best": [m == best for m in order],
        }
    )


def _features(spec: ModelSpec) -> frozenset[object]:
    """A model as a set of fixed terms, intercepts and slopes of groups."""
    of_bars = {(frozenset(bar.groups), effect) for bar in spec.bars for effect in (INTERCEPT, *bar.slopes)}
    return frozenset([*spec.terms, *of_bars])


# ---------------------------------------------------------------------- the honest test


def _held_out(spec: ModelSpec, runs: Runs, chosen_on: tuple[Any, ...], tested_on: tuple[Any, ...]) -> Answer:
    """The algorithms by a model on the benchmarks that did not choose it, without what they cannot identify.

    Advantages that differ between benchmarks belong to the design and not to the choice: ``(1 | benchmark:algorithm)``
    is in the test even if the choice went without it.
    """
    if runs.algorithm not in spec.fixed_columns:
        raise ArgumentError(
            "validate='half' tests the differences between algorithms, and the start has no term for them. Add it: "
            "builder.fixed('algorithm')."
        )
    others = runs.filter(**{str(runs.benchmark): list(tested_on)})
    of_pair = Bar.of((str(runs.benchmark), runs.algorithm))
    beside = replace(spec, dispersion=None).with_term(of_pair)
    notes = []
    if not spec.grouped_by(of_pair.groups) and not refusal(beside, others):
        spec = spec.with_term(of_pair)
        notes.append(
            f"{of_pair} was not chosen and is in the test all the same: benchmarks are the sample, and without it "
            "rows would be."
        )
    gone = unidentified(spec, others)
    spec = spec.without(*gone)
    fit = spec.fit(others)
    pairs = emmeans(fit, runs.algorithm).pairs()
    table = pairs.to_frame()
    p = table["p_value"].dropna()
    least = f" (the smallest: {p_text(float(p.min()))})" if len(p) else ""
    return Answer(
        question="select_model",
        title="Algorithms on the benchmarks held out",
        tables={"table": table},
        values={"chosen_on": chosen_on, "tested_on": tested_on, "formula": spec.formula, "fit": fit, "pairs": pairs},
        facts=(f"Model: {spec.formula}.",),
        findings=(
            f"The terms were chosen on {len(chosen_on)} benchmarks; on the other {len(tested_on)}, "
            f"{int((p < 0.05).sum())} of {len(table)} differences between algorithms have an adjusted p-value below "
            f"0.05{least}.",
        ),
        notes=(*notes, *(f"{part} is not identified on these benchmarks and was left out." for part in gone)),
    )


def _reservations(family: Family, halves: tuple[tuple[Any, ...], tuple[Any, ...]] | None) -> tuple[str, ...]:
    """Terms that were not offered, and the warning that belongs to every model that data chose."""
    if halves is None:
        warning = (
            "The data chose these terms, so p-values and intervals of the chosen model, taken from the same data, are "
            "too optimistic. Use validate='half' for a test on benchmarks that had no part in the choice, or take the "
            "model from the design (lmemtest.recommend)."
        )
    else:
        warning = (
            f"The terms were chosen on {len(halves[0])} benchmarks: p-values from there, and those of fit() on "
            "all runs, are too optimistic, because the data chose the model. Those of holdout are not."
        )
    parts = (family.start, *(candidate.part for candidate in family.candidates))
    named = {name for part in parts for name in part.columns} & set(family.runs.family)
    families = () if named else of_these_families(family.runs)
    return *(f"Not tried: {part} ({why})." for part, why in family.left_out), *families, warning
