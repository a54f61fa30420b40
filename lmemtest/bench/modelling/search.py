"""Three searches of the models of a family: upwards, downwards, and for the best with a proof.

`forward` adds the term that improves a model most until none does; `backward` drops the least significant one from the
largest model until all are significant. The models form a lattice (`menu.Family`), and a larger one never fits worse,
so that in a box of models between a smallest ``lo`` and a largest ``hi``

    criterion(m)  >=  -2 llf(hi) + penalty(lo)    for every m in the box,

and a box whose bound is beyond the best model's criterion by more than `within` holds nothing of interest ("leaps and
bounds", Furnival & Wilson 1974, for least squares). Terms that matter and terms that do not are settled by one fit
each; what costs is the doubtful middle (`best`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.modelling.menu import Candidate, Family, Model
from lmemtest.bench.modelling.terms import check_identified
from lmemtest.core.replicates import Failure, replicate
from lmemtest.core.rounding import at_most
from lmemtest.core.words import format_number, listed, p_text
from lmemtest.errors import DesignError, EstimationError, NestingError
from lmemtest.lmm.cells import compress
from lmemtest.lmm.engine.structure import Shape
from lmemtest.lmm.engine.theta import lower_root, pack, unpack
from lmemtest.lmm.formula import INTERCEPT, Term
from lmemtest.lmm.hypotheses.glrt import glrt
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.model import LmmFit
from lmemtest.lmm.model.fitting import fit_cells
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array

# Where a new standard deviation begins, in residual ones: not zero, where the search sees no slope.
_NEW_ROOT = 0.3
# Below this a p-value of quadrature or of a product of small numbers is rounding; its chi-squared tail is used to rank.
_TRUSTED = 1e-12
_UNDERFLOW = 1e-290
_ZERO = 1e-6  # likelihoods of two searches agree to about this
# Models whose criteria differ by less are equally good: the optimiser's last digits do not choose.
TIE = 1e-6
# Log-likelihoods of two searches agree to this; a bound may be off by as much.
_SLACK = 1e-3
_BOXES = 20_000


# ---------------------------------------------------------------------- one fit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """What is kept of a fit by maximum likelihood, or why there is none (`problem`), and its test against a neighbour.

    `singular` lists random effects with a variance of zero or a correlation of one; `factors` has effects and relative
    Cholesky factor by groups, where a neighbour's search begins. The test is a likelihood-ratio test; its numbers are
    NaN where there is none, or one model is not contained in the other.
    """

    formula: str = ""
    problem: str = ""
    llf: float = math.nan
    n_params: int = 0
    singular: tuple[str, ...] = ()
    converged: bool = False
    factors: Mapping[frozenset[str], tuple[tuple[str, ...], Any]] = field(default_factory=dict)
    statistic: float = math.nan
    df: float = math.nan
    reference: str = ""
    p_value: float = math.nan
    log_p: float = math.nan

    @classmethod
    def of(cls, fit: LmmFit, **test: Any) -> Fitted:
        """What is kept of a fit, and of its test."""
        roots = unpack(fit.theta, fit.problem.shapes)
        return cls(
            formula=fit.formula,
            llf=float(fit.llf),
            n_params=int(fit.n_params),
            singular=fit.singular_terms,
            converged=bool(fit.converged),
            factors={
                frozenset(term.group.split(":")): (tuple(term.names), L)
                for term, L in zip(fit.design.random, roots, strict=True)
            },
            **test,
        )

    @property
    def ok(self) -> bool:
        return not self.problem

    @property
    def aic(self) -> float:
        return -2.0 * self.llf + 2.0 * self.n_params

    def bic(self, n: int) -> float:
        return -2.0 * self.llf + math.log(n) * self.n_params


def fit_ml(model: ModelSpec, runs: Runs, near: Fitted | None = None, *, check: bool = True) -> LmmFit:
    """Fit a model by maximum likelihood, from the estimates of a neighbour."""
    if check:
        check_identified(model, runs)
    cells = compress(runs, by=model.columns, score=model.response, transform=model.parsed.response_transform)
    design = model.design(cells.frame, cells.n)
    start = None if near is None or not design.random else _start(design.random, near)
    return fit_cells(
        model.formula,
        design,
        cells,
        data=runs,
        weights=None,
        dispersion=model.dispersion,
        reml=False,
        start=start,
        restarts=None if near is None else 0,  # a neighbour's estimates are a better start than three others
    )


def _start(random: Sequence[Any], near: Fitted) -> Array:
    """Factors of a neighbour, with moderate standard deviations for what it lacks."""
    parts = []
    for term in random:
        names, root = near.factors.get(frozenset(term.group.split(":")), ((), np.empty((0, 0))))
        spread = np.sqrt(np.mean(term.basis**2, axis=0))
        L = np.diag(_NEW_ROOT / np.where(spread > 0, spread, 1.0))
        shared = [name for name in names if name in term.names]
        mine, theirs = ([list(where).index(name) for name in shared] for where in (term.names, names))
        if shared:
            S = L @ L.T
            S[np.ix_(mine, mine)] = (root @ root.T)[np.ix_(theirs, theirs)]
            L = lower_root(np.linalg.cholesky(S + 1e-8 * np.diag(np.diag(S) + 1e-8)))
        parts.append(L)
    return pack(parts, [Shape(len(L), term.diagonal) for L, term in zip(parts, random, strict=True)])


# ---------------------------------------------------------------------- one test


def _test(null: LmmFit, alternative: LmmFit, *, inside: bool, seed: int) -> dict[str, Any]:
    """`glrt` with its automatic reference, and the logarithm of the p-value, which ranks where p is zero.

    `inside`: the null has intercepts of cells that become a free covariance matrix of the alternative, in whose
    interior its variances are, which no column of random effects shows.
    """
    df = int(alternative.n_params - null.n_params)
    if inside:
        statistic = max(0.0, 2.0 * (float(alternative.llf) - float(null.llf)))
        components: tuple[tuple[float, int], ...] = ((1.0, df),)
        p, reference = math.exp(log_tail(statistic, components)), "chi2"
    else:
        try:
            test = glrt(null, alternative, rng=seed)
        except NestingError:
            return {"df": float(df), "reference": "not nested"}
        statistic, p, reference = test.statistic, test.p_value, test.reference
        components = test.components or ((0.5, 0), (0.5, df))
    if statistic <= _ZERO:  # a mixture has 0.5 just above 0 and 1 at 0, and rounding must not choose
        statistic, p, log_p = 0.0, 1.0, 0.0
    else:
        log_p = math.log(p) if p > _TRUSTED else min(log_tail(statistic, components), math.log(_TRUSTED))
    return {"statistic": statistic, "df": float(df), "reference": reference, "p_value": p, "log_p": log_p}


def log_tail(statistic: float, components: Sequence[tuple[float, int]]) -> float:
    """Logarithm of the upper tail of a mixture of chi-squared distributions, however small it is.

    >>> round(log_tail(3.841458820694124, [(1.0, 1)]), 6), round(log_tail(5000.0, [(0.5, 0), (0.5, 1)]), 3)
    (-2.995732, -2505.178)
    """
    if statistic <= 0:
        return 0.0
    logs = [math.log(weight) + _log_chi2_tail(statistic, df) for weight, df in components if df > 0]
    return float(special.logsumexp(logs)) if logs else -math.inf


def _log_chi2_tail(x: float, df: int) -> float:
    tail = float(special.chdtrc(df, x))
    if tail > _UNDERFLOW:
        return math.log(tail)
    a, z = df / 2.0, x / 2.0
    # Gamma(a, z) = exp(-z) z^a / (z + 1 - a - 1 (1 - a) / (z + 3 - a - 2 (2 - a) / ...)), here from far inside
    fraction = 0.0
    for i in range(200, 0, -1):
        fraction = i * (i - a) / (z + 2 * i + 1 - a - fraction)
    return -z + a * math.log(z) - math.log(z + 1 - a - fraction) - float(special.gammaln(a))


# ---------------------------------------------------------------------- many fits


def _fit_one(
    models: Sequence[tuple[ModelSpec, bool, bool]],
    runs: Runs,
    near: Fitted | None,
    neighbour: LmmFit | None,
    upwards: bool,
    seed: int,
    rng: np.random.Generator,
) -> Fitted:
    """Fit the model with the number of the replicate; of the module, so that processes can be spawned."""
    model, inside, check = models[rng.bit_generator.seed_seq.spawn_key[-1]]  # type: ignore[attr-defined]
    try:
        fit = fit_ml(model, runs, near, check=check)
    except DesignError as error:
        return Fitted(formula=model.formula, problem=f"not identifiable: {error}")
    except EstimationError as error:
        return Fitted(formula=model.formula, problem=f"could not be fitted: {error}")
    if neighbour is None:
        return Fitted.of(fit)
    null, alternative = (neighbour, fit) if upwards else (fit, neighbour)
    return Fitted.of(fit, **_test(null, alternative, inside=inside, seed=seed))


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """The models of a family on the rows that choose among them, each fitted once.

    `n` is what BIC counts, `seed` that of simulated null distributions, and `processes` has options of `replicate`.
    """

    family: Family
    criterion: str
    n: int
    seed: int = 0
    processes: Mapping[str, Any] = field(default_factory=dict)
    fits: dict[Model, Fitted] = field(default_factory=dict)
    _gains: dict[Candidate, float] = field(default_factory=dict)  # of a term, in twice the log-likelihood
    _sizes: dict[tuple[Term, ...], tuple[int, int]] = field(default_factory=dict)

    def value(self, fitted: Fitted) -> float:
        """The criterion of a model; AIC beside tests, infinite where it could not be fitted."""
        if not fitted.ok:
            return math.inf
        return fitted.bic(self.n) if self.criterion == "bic" else fitted.aic

    def fit(
        self,
        models: Iterable[Model],
        near: Fitted | None,
        *,
        neighbour: LmmFit | None = None,
        upwards: bool = True,
        inside: AbstractSet[Model] = frozenset(),
        identified: AbstractSet[Model] = frozenset(),
        label: str = "Models",
    ) -> list[Fitted]:
        """Fit models, and test each against one neighbour, which is smaller than they are if the search goes upwards.

        Of those `inside` the smaller one is in the interior of the larger one (see `_test`); those `identified` are
        not checked again. The fits do not depend on the number of processes, nor on the order of the models.
        """
        wanted = list(models)
        if not wanted:
            return []
        questions = [(self.family.spec(model), model in inside, model not in identified) for model in wanted]
        # the fits draw nothing; replicate() brings processes, the progress bar and failures that are kept
        outcomes = replicate(
            partial(_fit_one, questions, self.family.runs, near, neighbour, upwards, self.seed),
            len(wanted),
            rng=0,
            label=label,
            fewer=None,
            **self.processes,
        )
        fits = [
            Fitted(formula=spec.formula, problem=f"could not be fitted: {outcome.reason}")
            if isinstance(outcome, Failure)
            else outcome
            for (spec, *_), outcome in zip(questions, outcomes, strict=True)
        ]
        self.fits.update(zip(wanted, fits, strict=True))
        return fits

    def fit_new(self, models: Iterable[Model], near: Fitted | None) -> None:
        """Fit those models that have no fit."""
        self.fit((model for model in dict.fromkeys(models) if model not in self.fits), near)

    def final(self, model: Model) -> LmmFit:
        """The fit of a model that has one, from its estimates."""
        return fit_ml(self.family.spec(model), self.family.runs, self.fits[model], check=False)

    @cached_property
    def everything(self) -> Model:
        """The largest model."""
        return frozenset(self.family.offered)

    # ------------------------------------------------------------------ bounds

    def limit(self, within: float) -> float:
        """No model with a larger criterion is within reach of the best so far."""
        return min(map(self.value, self.fits.values())) + within + _SLACK

    def bound(self, lo: Model, hi: Model) -> float:
        """No model between the two has a smaller criterion."""
        fitted = self.fits.get(hi)
        if fitted is None or not fitted.ok:
            return -math.inf
        per_parameter = 2.0 if self.criterion == "aic" else math.log(self.n)
        return -2.0 * fitted.llf + per_parameter * self.n_params(lo)

    def halves(self, lo: Model, hi: Model) -> list[tuple[Model, Model]]:
        """The models without a term on which no other builds, and those with it.

        The term is the one that counts most: the models without it are then out of reach, and with it the penalty of
        all others rises. Were the doubtful terms first, both sides would stay open.
        """
        free = [c for c in self.family.removable(hi) if c not in lo]
        new = [c for c in free if c not in self._gains]
        if self.fits[hi].ok and new:
            self.fit_new([hi - {c} for c in new], self.fits[hi])
            for c in new:
                without = self.fits[hi - {c}]
                self._gains[c] = 2.0 * (self.fits[hi].llf - without.llf) if without.ok else 0.0
        most = max(free, key=lambda c: (round(self._gains.get(c, 0.0) / _SLACK), free.index(c)))
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


# ---------------------------------------------------------------------- the best


def best(search: Search, within: float, max_models: int) -> tuple[list[Model], bool]:
    """Fitted models, the best first, and whether all within reach of it are among them.

    Of equally good ones the one with fewer parameters is first, then the first by its text.
    """
    complete = _branch_and_bound(search, within, max_models)

    def rank(model: Model) -> tuple[int, int, str]:
        fitted = search.fits[model]
        return round(search.value(fitted) / TIE), fitted.n_params, fitted.formula

    return sorted((m for m, fitted in search.fits.items() if fitted.ok), key=rank), complete


def _branch_and_bound(search: Search, within: float, max_models: int) -> bool:
    """Fit what may be within reach of the best; whether nothing was left open."""
    empty: Model = frozenset()
    search.fit_new([empty, search.everything], None)
    boxes: list[tuple[float, int, Model, Model]] = [(-math.inf, 0, empty, search.everything)]
    count = 1
    while boxes:
        if len(search.fits) >= max_models or count > _BOXES:
            return False
        inherited, _, lo, hi = heapq.heappop(boxes)
        fitted = [f for f in search.fits.values() if f.ok]  # other searches begin at the largest model that has a fit
        search.fit_new([hi], max(fitted, key=lambda f: f.n_params, default=None))
        bound = max(inherited, search.bound(lo, hi))
        if lo == hi or bound > search.limit(within):
            continue
        for low, high in search.halves(lo, hi):
            below = max(bound, search.bound(low, high))
            if below <= search.limit(within):
                heapq.heappush(boxes, (below, count, low, high))
                count += 1
    return True


# ---------------------------------------------------------------------- downwards


def backward(search: Search, alpha: float) -> tuple[list[Model], dict[Model, float]]:
    """Drop the least significant term until all are significant; models from the last back to the first, p-values."""
    model, current = _largest(search)
    search.fits[model] = Fitted.of(current)
    path, p_values = [model], dict[Model, float]()
    while True:
        tested = {m: p for m, p in _smaller(search, model, current).items() if math.isfinite(p)}
        p_values |= tested
        droppable = {m: p for m, p in tested.items() if not at_most(p, alpha)}
        if not droppable:
            break
        # equal p-values (variances of zero have 1 each): the larger term goes first, then the last in the menu
        most = max(droppable.values())
        tied = [m for m, p in droppable.items() if p >= most - TIE]
        model = min(tied, key=lambda m: (search.fits[m].n_params, sorted(c.text for c in m)))
        path.append(model)
        current = search.final(model)
    rest = sorted((m for m in search.fits if m not in path and search.fits[m].ok), key=lambda m: p_values.get(m, 1.0))
    return [*reversed(path), *rest], p_values


def _largest(search: Search) -> tuple[Model, LmmFit]:
    """The largest model that can be fitted, dropping the last terms of the menu first."""
    model = search.everything
    while True:
        try:
            return model, fit_ml(search.family.spec(model), search.family.runs)
        except DesignError:
            if not model:
                raise
            model = model - {search.family.removable(model)[-1]}


def _smaller(search: Search, model: Model, current: LmmFit) -> dict[Model, float]:
    """The models with one term less, and the p-values of what they lack."""
    family, models, inside = search.family, list[Model](), set[Model]()
    for candidate in family.removable(model):
        smaller = model - {candidate}
        if family.contains(candidate, model):
            if candidate.kind != "fixed effect":
                inside.add(smaller)
            else:  # the random version is no null of the fixed one
                smaller -= {family.by_part.get(part) for part in candidate.absorbs} - family.base
                if any(family.up(gone) & smaller for gone in model - smaller):
                    continue
        models.append(smaller)
    fits = search.fit(models, search.fits[model], neighbour=current, upwards=False, inside=inside)
    return {m: fitted.p_value for m, fitted in zip(models, fits, strict=True)}


# ---------------------------------------------------------------------- upwards


def forward(
    search: Search, *, alpha: float, adjust: str, max_steps: int | None
) -> tuple[pd.DataFrame, list[Candidate], Model, Fitted, int]:
    """Add the best term until none improves the model: path, terms in their order, model, its fit, number of fits."""
    family = search.family
    model: Model = frozenset()
    fit = fit_ml(family.start, family.runs, check=False)
    current = Fitted.of(fit)
    rows = [_row(search, 0, None, current, chosen=True, decision=current.formula)]
    chosen: list[Candidate] = []
    refused, tried = set[Candidate](), set[Candidate]()
    n_fits = 1
    while True:
        step = len(chosen) + 1
        candidates = [c for c in family.steps(model) if c not in refused]
        full = max_steps is not None and len(chosen) >= max_steps
        if full or not candidates:
            rows += _waiting(search, step, model, refused, "the most terms are in" if full else "not reached")
            break
        larger = {c: model | family.down(c) for c in candidates}
        inside = {larger[c] for c in candidates if c.kind == "random slope" and family.contains(c, model)}
        # what was identified in a smaller model is not checked again
        identified = {larger[c] for c in candidates if c in tried}
        fits = search.fit(
            larger.values(), current, neighbour=fit, inside=inside, identified=identified, label=f"Step {step}"
        )
        fitted = dict(zip(candidates, fits, strict=True))
        tried |= set(candidates)
        n_fits += sum(f.ok for f in fits)
        refused |= {c for c, f in fitted.items() if not f.ok}
        p = adjust_raw(np.array([f.p_value for f in fits]), adjust, sum(math.isfinite(f.p_value) for f in fits))
        adjusted = dict(zip(candidates, p.tolist(), strict=True))
        best = _best_of(search, fitted, adjusted, current, alpha)
        for c, f in fitted.items():
            decision = _decision(search, f, adjusted[c], current, alpha, adjust, taken=c is best, none=best is None)
            company = family.company(c, model)
            decision += f", with {listed(company)}" if company else ""
            rows.append(_row(search, step, c, f, adjusted[c], chosen=c is best, decision=decision))
        if best is None:
            rows += _waiting(search, step, model, refused | set(candidates), "not reached")
            break
        model = larger[best]
        chosen.append(best)
        fit = search.final(model)
        current = Fitted.of(fit)
        n_fits += 1
    return pd.DataFrame(rows), chosen, model, current, n_fits


def _best_of(
    search: Search, fitted: Mapping[Candidate, Fitted], p: Mapping[Candidate, float], current: Fitted, alpha: float
) -> Candidate | None:
    """The term to add, if any: of equally good ones that with fewer parameters, then the first in the alphabet."""
    by_test = search.criterion == "glrt"
    values = {c: f.log_p if by_test else search.value(f) for c, f in fitted.items()}
    values = {c: value for c, value in values.items() if math.isfinite(value)}
    least = min(values.values(), default=math.nan)
    tied = [c for c, value in values.items() if value <= least + TIE]
    best = min(tied, key=lambda c: (fitted[c].n_params, c.text), default=None)
    if best is None:
        return None
    improves = at_most(p[best], alpha) if by_test else values[best] < search.value(current) - TIE
    return best if improves else None


def _decision(
    search: Search, f: Fitted, p: float, current: Fitted, alpha: float, adjust: str, *, taken: bool, none: bool
) -> str:
    """Why a term was added (`taken`) or not, where another one was, or `none`."""
    if not f.ok:
        return f.problem
    if search.criterion == "glrt":
        if math.isnan(f.p_value):
            if f.n_params <= current.n_params:
                return "adds nothing to the terms that are in"
            return "not nested in the model so far: compare by aic or bic"
        text = f"{'Holm-adjusted ' if adjust == 'holm' else ''}{p_text(p)}"
        if taken:
            return f"chosen: smallest p-value, {text}"
        if not at_most(p, alpha):
            return f"not significant ({text})"
        return "not significant" if none else "a larger p-value"
    name = search.criterion.upper()
    change = search.value(f) - search.value(current)
    if taken:
        return f"chosen: {name} falls by {format_number(-change, 3)}"
    return f"{name} does not fall" if change >= -TIE else f"{name} falls by {format_number(-change, 3)} only"


def _waiting(search: Search, step: int, model: Model, had: set[Candidate], why: str) -> list[dict[str, Any]]:
    """Candidates that never had their turn, and what they were waiting for."""
    family, have = search.family, model | search.family.base
    rows = []
    for candidate in (*family.offered, *family.stranded):
        if candidate in have or candidate in had or not candidate.offered:
            continue
        missing = family.closure(candidate) - have - {candidate}
        lacking = sorted(c.text for c in missing if c.part not in candidate.absorbs)
        reason = f"needs {listed(lacking)} first" if lacking else why
        if candidate in family.stranded:
            reason = f"needs {family.stranded[candidate]}, which is neither in the start nor a candidate"
        rows.append(_row(search, step, candidate, Fitted(problem=reason), decision=reason))
    return rows


def _row(
    search: Search,
    step: int,
    candidate: Candidate | None,
    fitted: Fitted,
    p_value: float = math.nan,
    *,
    chosen: bool = False,
    decision: str,
) -> dict[str, Any]:
    """A row of the path; the start is no candidate."""
    row: dict[str, Any] = {"step": step, "term": "start", "kind": ""}
    if candidate is not None:
        row |= {"term": candidate.text, "kind": candidate.kind}
    row |= {"llf": fitted.llf, "n_params": float(fitted.n_params) if fitted.ok else math.nan}
    row |= {"statistic": fitted.statistic, "df": fitted.df, "reference": fitted.reference, "p_raw": fitted.p_value}
    row |= {"p_value": p_value, "aic": fitted.aic, "bic": fitted.bic(search.n), "singular": bool(fitted.singular)}
    return row | {"converged": fitted.converged, "chosen": chosen, "decision": decision}
