"""The best model of a family of nested models, ranked beside its rivals.

The models form a lattice, searched with a proof or from the largest model down. A larger model never fits worse, so in
a box of models between a smallest ``lo`` and a largest ``hi``

    criterion(m)  >=  -2 llf(hi) + penalty(lo)    for every m in the box,

and a box whose bound is beyond the best model's criterion by more than `within` holds nothing of interest ("leaps and
bounds", Furnival & Wilson 1974, for least squares). Terms that matter and terms that do not are settled by one fit
each; what costs is the doubtful middle.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.modelling.identify import refusal
from lmemtest.bench.modelling.menu import Candidate, Family, Model, family_of
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.modelling.search import (
    CRITERIA,
    SAMPLE_SIZES,
    TIE,
    ChosenModel,
    Comparison,
    Fitted,
    Question,
    Search,
    fit_ml,
)
from lmemtest.core.executors import Executor
from lmemtest.core.replicates import check_replicates
from lmemtest.core.result import result
from lmemtest.core.rounding import at_most, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_number, check_positive_int
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.engine.blocks import Shape
from lmemtest.lmm.formula import INTERCEPT, Term
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    from lmemtest.lmm.model import LmmFit

# Families up to this size are fitted whole; larger ones are counted no further than this.
EXHAUSTIVE, _COUNTED = 32, 100_000
# Log-likelihoods of two searches agree to this; a bound may be off by as much.
_SLACK = 1e-3
_BOXES = 20_000
# A regular fit is preferred to a singular one unless its weight is less than e^-3, a twentieth, of it.
CLEARLY_WORSE = 6.0
_SHOWN = ["rank", "model", "n_params", "llf", "aic", "bic", "delta", "weight", "singular", "distance"]


@result
class SearchResult(ChosenModel):
    """The models of a family, ranked.

    Attributes
    ----------
    runs, start, spec, criterion, bic_n, n_fits, holdout, notes
        Of `ChosenModel`: the table, the smallest model and the best one, how it was chosen, and how it was tested.
    table : pandas.DataFrame
        One row per fitted model, the best first: ``rank``, ``formula``, ``terms`` (a tuple: what it has beyond the
        start), ``n_params``, ``llf`` (maximum likelihood), ``aic``, ``bic``, ``delta_aic``, ``delta_bic``, ``delta``
        (of the criterion; of AIC for "glrt"), ``weight`` (Akaike weight over this table, from ``delta``), ``p_value``
        (for "glrt": of the step down to this model), ``singular``, ``converged``, ``distance`` (terms that the
        recommended model has and this one lacks, and the other way round), ``best``.
    terms : tuple of str
        The terms that models of the family may have, in order.
    within : float
        Every model whose criterion is at most this far from the best one is in the table, if `complete`.
    complete : bool
        Whether the search came to its end; False if `max_models` stopped it.
    n_models : int
        Models of the family, counted up to 100,000.
    not_identified : tuple of (str, str)
        Terms that the design cannot identify, and why.
    """

    table: pd.DataFrame
    terms: tuple[str, ...]
    within: float
    complete: bool
    n_models: int
    not_identified: tuple[tuple[str, str], ...]

    figure = "selection_plot"
    formats: ClassVar = {"llf": ".2f", "aic": ".2f", "bic": ".2f", "delta": ".2f", "weight": ".3f"}

    @property
    def title(self) -> str:
        """How the models are written."""
        return "Models, by the terms that they have beyond the best one (+) or lack (−)"

    @property
    def facts(self) -> tuple[str, ...]:
        """How many models are not shown."""
        more = len(self.table) - 10
        return (f"{more} more models in to_frame().",) if more > 0 else ()

    def _choice(self, rule: str) -> str:
        family = f"{self.n_models:,}" if self.n_models < _COUNTED else f"more than {_COUNTED:,}"
        rivals = int((self.table["delta"] <= 2.0).sum()) - 1
        if self.criterion == "glrt":
            rule, rest = "dropping terms by likelihood-ratio tests", ""
        elif not self.complete:
            rest = ", as far as the search went"
        elif rivals > 0:
            rest = f"; {rivals} other{'s are' if rivals != 1 else ' is'} within 2 of it"
        else:
            rest = "; no other is within 2 of it"
        return f"The best of {family} models by {rule} is {self.formula} ({self.n_fits} fits){rest}."

    def shown(self) -> pd.DataFrame:
        """The ten best models, by their difference from the best."""
        (own,) = self.table.loc[self.table["best"], "terms"]
        rows = self.table.head(10)
        named = [
            ", ".join([*(f"+ {t}" for t in terms if t not in own), *(f"− {t}" for t in own if t not in terms)])
            for terms in rows["terms"]
        ]
        return rows.assign(model=[name or "the best" for name in named])[_SHOWN].reset_index(drop=True)


@one_blas_thread()
def search_models(
    runs: Runs,
    *,
    start: ModelSpec | None = None,
    candidates: Iterable[str] | None = None,
    criterion: str = "bic",
    depth: int | None = None,
    within: float = 6.0,
    alpha: float = 0.05,
    bic_n: str = "rows",
    max_models: int = 200,
    validate: str | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> SearchResult:
    """Search the best hierarchical model of a table.

    Parameters
    ----------
    runs : Runs
    start : ModelSpec, optional
        The smallest model of the family; ``builder.search()`` takes the model of a builder. By default ``score ~
        algorithm + (1 | benchmark)``, without the random effect where there is one benchmark.
    criterion : {"bic", "aic", "glrt"}
        What is smallest in the best model. "glrt" goes down from the largest model instead, dropping the term with
        the largest p-value as long as it is above `alpha`.
    depth : int, optional
        The most columns that may meet in one term: in an interaction, in the groups of a random effect, in a slope and
        its groups.
    within : float >= 0
        Find all models whose criterion is at most this far from the best; ``inf`` for every model. Families of up to
        32 models are always fitted whole.
    alpha : float in (0, 1)
        Level of "glrt".
    max_models : int
        The most models to fit; the result says whether they were enough.
    candidates, bic_n, validate, rng, n_jobs, executor, progress
        As in `select_terms`: the terms that models may have, the sample size that BIC counts, benchmarks held out for
        the comparison of the algorithms, randomness, processes and the progress bar.

    Returns
    -------
    SearchResult
        ``to_frame()`` ranks the models; ``formula``, ``spec`` and ``fit()`` are the best one: the first whose fit
        is not singular, unless a singular one is better by more than 6.

    Raises
    ------
    ArgumentError
        If an option is unknown, there is nothing to choose from, or too few benchmarks to hold half of them out.

    Notes
    -----
    The family has the terms of the start and any of the candidates, an interaction only with its main effects, a slope
    only with its intercept and its fixed effect, groups of several columns only beside the coarser ones. A larger
    model of it never has a smaller likelihood, which bounds the criterion of all models between two, so that most need
    not be fitted (Furnival & Wilson 1974).

    Akaike weights, exp(-delta / 2) over their sum, compare the models of the table: from AIC they are the relative
    support (Burnham & Anderson 2002), from BIC approximate posterior probabilities with equal priors. What BIC should
    count where rows share benchmarks is unsettled (Delattre, Lavielle & Poursat 2014): rows are lme4's convention and
    ask more of every term than benchmarks do. AIC, where it counts a variance on its boundary as a parameter, prefers
    models without it (Greven & Kneib 2010).

    References
    ----------
    Furnival & Wilson (1974), Technometrics 16, 499-511; Burnham & Anderson (2002), doi:10.1007/b97636;
    Delattre, Lavielle & Poursat (2014), doi:10.1214/14-EJS890; Greven & Kneib (2010), Biometrika 97, 773-789;
    Matuschek et al. (2017) on dropping random effects, doi:10.1016/j.jml.2017.01.001

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.modelling.lattice import search_models
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> found = search_models(runs)
    >>> found.formula
    'loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)'
    >>> found.n_models, found.complete
    (8, True)
    """
    check_choice(criterion, "criterion", ("bic", *[c for c in CRITERIA if c != "bic"]))
    check_choice(bic_n, "bic_n", SAMPLE_SIZES)
    alpha = check_fraction(alpha, "alpha")
    max_models = check_positive_int(max_models, "max_models")
    within = check_number(within, "within", low=0, high=np.inf, meaning="inf takes in every model")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    family = family_of(runs, start, candidates)
    if depth is not None:
        depth = check_positive_int(depth, "depth")
        shallow = family.without(c for c in family.candidates if c.depth > depth and c not in family.base)
        if not shallow.offered:
            least = min(c.depth for c in family.offered)
            raise ArgumentError(f"depth={depth} leaves no term to choose; the simplest has a depth of {least}.")
        family = shallow
    search = Lattice.of(
        family,
        criterion=criterion,
        bic_n=bic_n,
        validate=validate,
        rng=rng,
        n_jobs=n_jobs,
        executor=executor,
        progress=progress,
    )
    part, refused = _identified(search.family)
    search = replace(search, family=part)
    n_models = part.count(_COUNTED)
    within = math.inf if n_models <= EXHAUSTIVE else within
    if criterion == "glrt":
        order, p_values = search.backwards(alpha)
        complete = True
    else:
        complete = search.branch_and_bound(within, max_models)
        order, p_values = search.ranking(), {}
    best, notes = search.choice(order)
    spec = part.spec(best)
    how = ["All models are fitted by maximum likelihood to the same rows."]
    if criterion == "glrt":
        how.append(
            f"From the largest model down, the term with the largest p-value is dropped while it is above {alpha:g}; "
            "the p-values are not adjusted."
        )
    elif not complete:
        how.append(f"The search stopped after max_models={max_models} fits, so a better model may have been missed.")
    elif n_models <= EXHAUSTIVE:
        how.append("Every model of the family was fitted.")
    else:
        how.append(
            f"Every model of the family whose {criterion.upper()} is within {within:g} of the smallest is in the "
            "table: what was not fitted is bounded by larger models that were."
        )
    not_identified = tuple((c.text, why) for c, why in refused.items())
    return SearchResult(
        runs=runs,
        start=part.start,
        spec=spec,
        table=search.table(order, best, p_values),
        terms=tuple(c.text for c in part.offered),
        criterion=criterion,
        bic_n=bic_n,
        within=within,
        complete=complete,
        n_models=n_models,
        n_fits=len(search.fits),
        not_identified=not_identified,
        holdout=search.test(spec, runs),
        notes=(
            *notes,
            *how,
            *(f"Not identifiable: {text} ({why})" for text, why in not_identified),
            *search.reservations(),
        ),
    )


def _identified(family: Family) -> tuple[Family, dict[Candidate, str]]:
    """The family without terms that the design cannot identify even in the smallest model that has them, and why."""
    refused: dict[Candidate, str] = {}
    for candidate in family.offered:
        down = family.down(candidate)
        if not refused.keys() & down and (why := refusal(family.spec(down), family.runs)):
            refused[candidate] = why
    out = family.without(refused)
    if not out.offered:
        first, why = next(iter(refused.items()))
        raise ArgumentError(
            f"there is nothing to choose from: the design identifies none of the candidates. {first.text}: {why}"
        )
    return out, refused


# ---------------------------------------------------------------------- the fits


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice(Search):
    """The models of a family, each fitted once."""

    fits: dict[Model, Fitted] = field(default_factory=dict)
    gains: dict[Candidate, float] = field(default_factory=dict)  # of a term, in twice the log-likelihood
    _sizes: dict[tuple[Term, ...], tuple[int, int]] = field(default_factory=dict)

    def fit(self, models: Iterable[Model], near: Fitted | None) -> None:
        new = [m for m in dict.fromkeys(models) if m not in self.fits]
        found = self.answer([Question(model=self.family.spec(m)) for m in new], near=near)
        self.fits.update({m: fitted for m, (fitted, _) in zip(new, found, strict=True)})

    @cached_property
    def everything(self) -> Model:
        return frozenset(self.family.offered)

    def branch_and_bound(self, within: float, max_models: int) -> bool:
        """Fit what may be within reach of the best; whether nothing was left open."""
        empty: Model = frozenset()
        self.fit([empty, self.everything], None)
        boxes: list[tuple[float, int, Model, Model]] = [(-math.inf, 0, empty, self.everything)]
        count = 1
        while boxes:
            if len(self.fits) >= max_models or count > _BOXES:
                return False
            inherited, _, lo, hi = heapq.heappop(boxes)
            known = [f for f in self.fits.values() if f.ok]  # other searches begin at the largest model that has a fit
            self.fit([hi], max(known, key=lambda f: f.n_params, default=None))
            bound = max(inherited, self._bound(lo, hi))
            if lo == hi or bound > self._limit(within):
                continue
            for low, high in self._halves(lo, hi):
                below = max(bound, self._bound(low, high))
                if below <= self._limit(within):
                    heapq.heappush(boxes, (below, count, low, high))
                    count += 1
        return True

    def _limit(self, within: float) -> float:
        return min(map(self.value, self.fits.values())) + within + _SLACK

    def _bound(self, lo: Model, hi: Model) -> float:
        """No model between the two has a smaller criterion."""
        fitted = self.fits.get(hi)
        if fitted is None or not fitted.ok:
            return -math.inf
        per_parameter = 2.0 if self.criterion == "aic" else math.log(self.n)
        return -2.0 * fitted.llf + per_parameter * self.n_params(lo)

    def _halves(self, lo: Model, hi: Model) -> list[tuple[Model, Model]]:
        """The models without a term on which no other builds, and those with it.

        The term is the one that counts most: the models without it are then out of reach, and with it the penalty of
        all others rises. Were the doubtful terms first, both sides would stay open.
        """
        free = [c for c in self.family.removable(hi) if c not in lo]
        new = [c for c in free if c not in self.gains]
        if self.fits[hi].ok and new:
            self.fit([hi - {c} for c in new], self.fits[hi])
            for c in new:
                without = self.fits[hi - {c}]
                self.gains[c] = 2.0 * (self.fits[hi].llf - without.llf) if without.ok else 0.0
        most = max(free, key=lambda c: (round(self.gains.get(c, 0.0) / _SLACK), free.index(c)))
        return [(lo, hi - {most}), (lo | self.family.down(most), hi)]

    def n_params(self, model: Model) -> int:
        """The parameters of a model, fitted or not."""
        fitted = self.fits.get(model)
        if fitted is not None and fitted.ok:
            return fitted.n_params
        spec = self.family.spec(model)
        variances = 1 if spec.dispersion is None else len(self.family.runs.levels(spec.dispersion))
        rank, _ = self._size((INTERCEPT, *spec.terms))
        return rank + variances + sum(Shape(self._size(bar.effects)[1], bar.diagonal).n_theta for bar in spec.bars)

    def _size(self, terms: tuple[Term, ...]) -> tuple[int, int]:
        """The rank and the number of the columns of some terms."""
        if terms not in self._sizes:
            some = tuple(term for term in terms if term != INTERCEPT)
            spec = ModelSpec(response=self.family.start.response, terms=some, intercept=INTERCEPT in terms)
            names = list(spec.parsed.columns)
            table = self.family.runs.study.distinct(names) if names else pd.DataFrame(index=pd.RangeIndex(1))
            X = spec.design(table, np.ones(len(table))).X
            rank = np.linalg.matrix_rank(X / np.maximum(np.linalg.norm(X, axis=0), 1e-300))
            self._sizes[terms] = int(rank), X.shape[1]
        return self._sizes[terms]

    # ------------------------------------------------------------------ downwards

    def backwards(self, alpha: float) -> tuple[list[Model], dict[Model, float]]:
        """Drop the least significant term until all are significant; models from the last back to the first."""
        model, current = self._largest()
        self.fits[model] = Fitted.of(current)
        path, p_values = [model], dict[Model, float]()
        while True:
            tries = self._smaller(model, current)
            known = [(m, test) for m, test in tries if test is not None and math.isfinite(test.p_value)]
            for m, test in known:
                p_values[m] = test.p_value
            droppable = [(m, test) for m, test in known if not at_most(test.p_value, alpha)]
            if not droppable:
                break
            # equal p-values (variances of zero have 1 each): the larger term goes first, then the last in the menu
            most = max(test.p_value for _, test in droppable)
            tied = [m for m, test in droppable if test.p_value >= most - TIE]
            model = min(tied, key=lambda m: (self.fits[m].n_params, sorted(c.text for c in m)))
            path.append(model)
            current = fit_ml(self.family.spec(model), self.family.runs, self.fits[model], check=False)
        rest = sorted((m for m in self.fits if m not in path and self.fits[m].ok), key=lambda m: p_values.get(m, 1.0))
        return [*reversed(path), *rest], p_values

    def _largest(self) -> tuple[Model, LmmFit]:
        """The largest model that can be fitted, dropping the last terms of the menu first."""
        model = self.everything
        while True:
            try:
                return model, fit_ml(self.family.spec(model), self.family.runs)
            except DesignError:
                if not model:
                    raise
                model = model - {self.family.removable(model)[-1]}

    def _smaller(self, model: Model, current: LmmFit) -> list[tuple[Model, Comparison | None]]:
        models, questions = [], []
        for candidate in self.family.removable(model):
            smaller = model - {candidate}
            inside = self.family.contains(candidate, model)
            if inside and candidate.kind == "fixed effect":
                # the random version is no null of the fixed one
                smaller -= {self.family.by_part.get(part) for part in candidate.absorbs} - self.family.base
                if any(self.family.up(gone) & smaller for gone in model - smaller):
                    continue
                inside = False
            models.append(smaller)
            questions.append(Question(model=self.family.spec(smaller), inside=inside))
        found = self.answer(questions, near=self.fits[model], neighbour=current, neighbour_is_null=False)
        self.fits.update({m: fitted for m, (fitted, _) in zip(models, found, strict=True)})
        return [(m, test) for m, (_, test) in zip(models, found, strict=True)]

    # ------------------------------------------------------------------ results

    def ranking(self) -> list[Model]:
        """Fitted models, the best first; of equally good ones the one with fewer parameters, then by its text."""

        def rank(model: Model) -> tuple[int, int, str]:
            fitted = self.fits[model]
            return round(self.value(fitted) / TIE), fitted.n_params, fitted.formula

        return sorted((m for m, fitted in self.fits.items() if fitted.ok), key=rank)

    def choice(self, order: list[Model]) -> tuple[Model, list[str]]:
        """The best model: the first that is not singular, and what to say of those before it."""
        if not order:
            reasons = [fitted.problem for fitted in self.fits.values()]
            raise DesignError(f"no model of the family could be fitted. {reasons[0]}")
        if self.criterion == "glrt":
            return order[0], _singular_note(self.fits[order[0]], "The model")
        regular = next((m for m in order if not self.fits[m].singular and self.fits[m].converged), None)
        if regular == order[0]:
            return regular, []
        name, first = self.criterion.upper(), self.fits[order[0]]
        notes = _singular_note(first, f"The model with the smallest {name}, {first.formula},")
        if regular is None:
            return order[0], [*notes, "No model of the table has a regular fit."]
        gap = self.value(self.fits[regular]) - self.value(first)
        if gap > CLEARLY_WORSE:
            better = (
                f"the best regular one, {self.fits[regular].formula}, has a {name} that is {written(gap, '.4g')} higher"
            )
            return order[0], [*notes, f"It is kept all the same, since {better}."]
        return regular, [
            *notes,
            f"The best regular one is taken instead, whose {name} is {written(gap, '.3g')} higher.",
        ]

    def table(self, order: list[Model], best: Model, p_values: dict[Model, float]) -> pd.DataFrame:
        """One row per model."""
        fits = [self.fits[m] for m in order]
        aic, bic = np.array([f.aic for f in fits]), np.array([f.bic(self.n) for f in fits])
        delta = {"aic": aic, "bic": bic, "glrt": aic}[self.criterion]
        delta = delta - delta.min()
        weight = np.exp(-delta / 2.0)
        offered = self.family.offered
        absorbed = [{part for c in m for part in c.absorbs} for m in order]  # what larger terms of a model hold
        wanted = _features(recommend(self.family.runs, curves="model").spec)
        distance = [len(_features(self.family.spec(m)) ^ wanted) for m in order]
        return pd.DataFrame(
            {
                "rank": np.arange(1, len(order) + 1),
                "formula": [f.formula for f in fits],
                "terms": [
                    tuple(c.text for c in offered if c in m and c.part not in inside)
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
                "distance": distance,
                "best": [m == best for m in order],
            }
        )


def _singular_note(fitted: Fitted, subject: str) -> list[str]:
    if not fitted.singular:
        return []
    which = listed(fitted.singular)
    return [
        f"{subject} is singular: {which} has a variance of zero or a correlation of one. Drop it or make it simpler."
    ]


def _features(spec: ModelSpec) -> frozenset[object]:
    """A model as a set of fixed terms, intercepts and slopes of groups."""
    of_bars = {(frozenset(bar.groups), effect) for bar in spec.bars for effect in (INTERCEPT, *bar.slopes)}
    return frozenset([*spec.terms, *of_bars])
