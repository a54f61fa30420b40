"""The best model of a family of nested models, ranked beside its rivals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._replicates import check_replicates
from lmemtest._table import ResultTable, Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.data.runs import Runs
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.studies.modelling.bench import Bench
from lmemtest.studies.modelling.builder import ModelBuilder, assemble
from lmemtest.studies.modelling.fits import check_model
from lmemtest.studies.modelling.holdout import Holdout, held_out
from lmemtest.studies.modelling.menu import Family
from lmemtest.studies.modelling.start import (
    CRITERIA,
    SAMPLE_SIZES,
    family_of,
    left_out,
    on,
    optimism,
    sample_size,
    split,
    start_of,
)

if TYPE_CHECKING:
    from lmemtest.model import LmmFit

# Families up to this size are fitted whole; larger ones are counted no further than this.
EXHAUSTIVE, _COUNTED = 32, 100_000
_SHOWN = ["rank", "model", "n_params", "llf", "aic", "bic", "delta", "weight", "singular", "distance"]


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult(Tabular):
    """The models of a family, ranked.

    Attributes
    ----------
    start, builder : ModelBuilder
        The smallest model and the best one.
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    terms : tuple of str
        The terms that models of the family may have, in order.
    criterion : {"bic", "aic", "glrt"}
    n_obs : {"rows", "benchmarks"}
        What BIC counts.
    within : float
        Every model whose criterion is at most this far from the best one is in the table, if `complete`.
    complete : bool
        Whether the search came to its end; False if `most` stopped it.
    n_models, n_fits : int
        Models of the family (counted up to 100,000), and fits that it took.
    not_identified : tuple of (str, str)
        Terms that the design cannot identify, and why.
    holdout : Holdout or None
    notes : tuple of str
    """

    start: ModelBuilder
    builder: ModelBuilder
    table: pd.DataFrame
    terms: tuple[str, ...]
    criterion: str
    n_obs: str
    within: float
    complete: bool
    n_models: int
    n_fits: int
    not_identified: tuple[tuple[str, str], ...]
    holdout: Holdout | None = None
    notes: tuple[str, ...] = ()

    @property
    def formula(self) -> str:
        """The best model in lme4's syntax."""
        return self.builder.formula()

    def fit(self, **options: Any) -> LmmFit:
        """Fit the best model to all runs; options are those of `fit_lmm`."""
        return self.builder.fit(**options)

    def to_frame(self) -> pd.DataFrame:
        """One row per fitted model, the best first.

        Returns
        -------
        pandas.DataFrame
            ``rank``, ``formula``, ``terms`` (a tuple: what it has beyond the start), ``n_params``, ``llf`` (maximum
            likelihood), ``aic``, ``bic``, ``delta_aic``, ``delta_bic``, ``delta`` (of the criterion; of AIC for
            "glrt"), ``weight`` (Akaike weight over this table, from ``delta``), ``p_value`` (for "glrt": of the step
            down to this model), ``singular``, ``converged``, ``distance`` (terms that the recommended model has and
            this one lacks, and the other way round), ``best``.
        """
        return self.table.copy()

    @property
    def sentence(self) -> str:
        """The best model in words."""
        rule = {
            "bic": f"BIC (n = {self.n_obs})",
            "aic": "AIC",
            "glrt": "dropping terms by likelihood-ratio tests",
        }[self.criterion]
        family = f"{self.n_models:,}" if self.n_models < _COUNTED else f"more than {_COUNTED:,}"
        head = f"The best of {family} models by {rule} is {self.formula} ({self.n_fits} fits)"
        if self.criterion == "glrt":
            return head + "."
        if not self.complete:
            return head + ", as far as the search went."
        rivals = int((self.table["delta"] <= 2.0).sum()) - 1
        return head + (
            f"; {rivals} other{'s are' if rivals != 1 else ' is'} within 2 of it."
            if rivals > 0
            else "; no other is within 2 of it."
        )

    def sentences(self) -> tuple[str, ...]:
        """The best model, and what the benchmarks held out say."""
        return (self.sentence, *(() if self.holdout is None else (self.holdout.sentence,)))

    def to_table(self) -> ResultTable:
        """The ten best models as a table."""
        shown = self.table.head(10)
        shown = shown.assign(model=self._against_best(shown))
        formats = {"llf": ".2f", "aic": ".2f", "bic": ".2f", "delta": ".2f", "weight": ".3f"}
        more = len(self.table) - len(shown)
        rest = (f"{more} more models in to_frame().",) if more > 0 else ()
        return ResultTable(
            title="Models, by the terms that they have beyond the best one (+) or lack (−)",
            frame=shown[_SHOWN].reset_index(drop=True),
            notes=(*self.sentences(), *rest, *self.notes),
            formats=formats,
        )

    def _against_best(self, shown: pd.DataFrame) -> list[str]:
        """The models by their difference from the best."""
        (own,) = self.table.loc[self.table["best"], "terms"]
        out = []
        for terms in shown["terms"]:
            more = [f"+ {text}" for text in terms if text not in own]
            less = [f"− {text}" for text in own if text not in terms]
            out.append(", ".join([*more, *less]) or "the best")
        return out


@one_blas_thread()
def search_models(
    runs_or_builder: Runs | ModelBuilder,
    *,
    candidates: Iterable[str] | None = None,
    criterion: str = "bic",
    depth: int | None = None,
    within: float = 6.0,
    alpha: float = 0.05,
    n_obs: str = "rows",
    most: int = 200,
    validate: str | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> SearchResult:
    """Search the best hierarchical model of a table.

    Parameters
    ----------
    runs_or_builder : Runs or ModelBuilder
        The smallest model of the family: a builder as it is, or runs for ``score ~ algorithm + (1 | benchmark)``.
    candidates : iterable of str, optional
        Columns, roles and terms that models may have, as in `select_terms`.
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
    n_obs : {"rows", "benchmarks"}
        The sample size in BIC's penalty, log(n) per parameter.
    most : int
        The most fits; the result says whether they were enough.
    validate : {None, "half"}
        "half": search on a random half of the benchmarks and compare the algorithms on the other half.
    rng : int, numpy.random.Generator or None
        Draws the halves, and simulates the exact null distribution of a single variance in unbalanced tables.
    n_jobs : int
        Processes; -1 for one per processor. The result does not depend on it.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    SearchResult
        ``to_frame()`` ranks the models; ``formula``, ``builder`` and ``fit()`` are the best one: the first whose fit
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
    >>> from lmemtest.studies.modelling.lattice import search_models
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> found = search_models(runs)
    >>> found.formula
    'loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)'
    >>> found.n_models, found.complete
    (8, True)
    """
    check_choice(criterion, "criterion", ("bic", *[c for c in CRITERIA if c != "bic"]))
    check_choice(n_obs, "n_obs", SAMPLE_SIZES)
    alpha = check_fraction(alpha, "alpha")
    most = check_positive_int(most, "most")
    within = _checked_within(within)
    check_replicates(rng=rng, n_jobs=n_jobs, progress=progress)
    start = start_of(runs_or_builder)
    family = _no_deeper(family_of(start, candidates), depth)
    generator = resolve_rng(rng)
    held = split(start.runs, validate, generator)
    runs = start.runs if held is None else start.runs.filter(**{str(start.runs.benchmark): list(held[0])})
    part, refused = _identified(on(family, runs))
    bench = Bench(
        family=part,
        runs=runs,
        n=sample_size(runs, n_obs),
        criterion=criterion,
        n_jobs=n_jobs,
        progress=progress,
        seed=int(generator.integers(2**31)),
    )
    n_models = part.count(_COUNTED)
    if criterion == "glrt":
        order, p_values = bench.backwards(alpha)
        complete = True
    else:
        complete = bench.branch_and_bound(math.inf if n_models <= EXHAUSTIVE else within, most)
        order, p_values = bench.ranking(), {}
    best, notes = bench.choice(order)
    terms, bars, residual = part.parts(best)
    return SearchResult(
        start=start,
        builder=assemble(start.runs, terms, bars, residual),
        table=bench.table(order, best, p_values),
        terms=part.offered,
        criterion=criterion,
        n_obs=n_obs,
        within=math.inf if n_models <= EXHAUSTIVE else within,
        complete=complete,
        n_models=n_models,
        n_fits=len(bench.fits),
        not_identified=refused,
        holdout=None if held is None else held_out(start.runs, held, terms, bars, residual),
        notes=(
            *notes,
            *_proof(criterion, complete, n_models, within, most, alpha),
            *_not_tried(family, refused),
            *optimism(held),
        ),
    )


def _checked_within(within: Any) -> float:
    try:
        value = float(within)
    except (TypeError, ValueError):
        value = math.nan
    if not value >= 0 or isinstance(within, bool):
        raise ArgumentError(f"within must be a number of at least 0, or inf for every model, got {within!r}.")
    return value


def _no_deeper(family: Family, depth: int | None) -> Family:
    """The family without terms of too many columns."""
    if depth is None:
        return family
    depth = check_positive_int(depth, "depth")
    out = family.without(c.text for c in family.candidates if c.depth > depth and c.text not in family.base)
    if not out.offered:
        least = min(c.depth for c in family.candidates if c.text in family.offered)
        raise ArgumentError(f"depth={depth} leaves no term to choose; the simplest has a depth of {least}.")
    return out


def _identified(family: Family) -> tuple[Family, tuple[tuple[str, str], ...]]:
    """The family without terms that the design cannot identify even in the smallest model that has them."""
    refused: dict[str, str] = {}
    for text in family.offered:
        if any(other in refused for other in family.down(text)):
            continue
        try:
            check_model(family.formula(family.down(text)), family.start.runs)
        except DesignError as error:
            refused[text] = str(error)
    out = family.without(refused)
    if not out.offered:
        raise ArgumentError(
            f"there is nothing to choose from: the design identifies none of the candidates. {next(iter(refused))}: "
            f"{next(iter(refused.values()))}"
        )
    return out, tuple(refused.items())


def _not_tried(family: Family, refused: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    notes = [f"Not identifiable: {text} ({why})" for text, why in refused]
    return (*notes, *left_out(family))


def _proof(criterion: str, complete: bool, n_models: int, within: float, most: int, alpha: float) -> tuple[str, ...]:
    fits = "All models are fitted by maximum likelihood to the same rows."
    if criterion == "glrt":
        return (
            fits,
            f"From the largest model down, the term with the largest p-value is dropped while it is above {alpha:g}; "
            "the p-values are not adjusted.",
        )
    if not complete:
        return (fits, f"The search stopped after most={most} fits, so a better model may have been missed.")
    if n_models <= EXHAUSTIVE:
        return (fits, "Every model of the family was fitted.")
    name = criterion.upper()
    return (
        fits,
        f"Every model of the family whose {name} is within {within:g} of the smallest is in the table: what was not "
        "fitted is bounded by larger models that were.",
    )
