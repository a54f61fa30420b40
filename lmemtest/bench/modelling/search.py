"""What a forward selection and a search of all models share: fits, tests, criterion, result, and the honest test.

What the data chose, the data then seem to confirm: p-values and intervals of the chosen model are too optimistic (Berk
et al. 2013). Every result says so; with ``validate="half"`` the terms are chosen on one half of the benchmarks and the
algorithms compared on the other, by p-values that do not know about the choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.sampled import of_these_families
from lmemtest.bench.modelling.identify import check_identified, refusal, unidentified
from lmemtest.bench.modelling.menu import Family
from lmemtest.core.executors import Executor
from lmemtest.core.replicates import Failure, replicate
from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_choice, resolve_rng
from lmemtest.core.words import counted, p_text
from lmemtest.errors import ArgumentError, DesignError, EstimationError, NestingError
from lmemtest.lmm.cells import compress
from lmemtest.lmm.engine.blocks import Shape
from lmemtest.lmm.engine.theta import lower_root, pack, unpack
from lmemtest.lmm.formula import Bar
from lmemtest.lmm.hypotheses.glrt import glrt
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import LmmFit
from lmemtest.lmm.model.fitting import fit_cells
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    from typing_extensions import Self

    from lmemtest.core.arrays import Array


CRITERIA = ("glrt", "aic", "bic")
SAMPLE_SIZES = ("rows", "benchmarks")
FEWEST = 8  # benchmarks: four in each half, the least that shows how advantages differ between benchmarks
OPTIMISM = (
    "The data chose these terms, so p-values and intervals of the chosen model, taken from the same data, are too "
    "optimistic. Use validate='half' for a test on benchmarks that had no part in the choice, or take the model from "
    "the design (lmemtest.recommend)."
)

# Where a new standard deviation begins, in residual ones: not zero, where the search sees no slope.
_NEW_ROOT = 0.3
# Below this a p-value of quadrature or of a product of small numbers is rounding; its chi-squared tail is used to rank.
_TRUSTED = 1e-12
_UNDERFLOW = 1e-290
_ZERO = 1e-6  # likelihoods of two searches agree to about this
# Models whose criteria differ by less are equally good: the optimiser's last digits do not choose.
TIE = 1e-6

Halves = tuple[tuple[Any, ...], tuple[Any, ...]]


# ---------------------------------------------------------------------- results


@result
class Holdout(Result):
    """The chosen model on benchmarks that had no part in choosing it.

    Attributes
    ----------
    chosen_on, tested_on : tuple
        Benchmarks.
    formula : str
        The model that was tested.
    fit : LmmFit
        By restricted maximum likelihood, on the benchmarks of `tested_on`.
    pairs : Comparisons
        All differences between algorithms there (Tukey's adjustment, Satterthwaite's degrees of freedom); the rows of
        ``to_frame()``.
    notes : tuple of str
    """

    chosen_on: tuple[Any, ...]
    tested_on: tuple[Any, ...]
    formula: str
    fit: LmmFit
    pairs: Comparisons
    notes: tuple[str, ...] = ()

    parts: ClassVar = {"pairs": "_rows"}

    @property
    def title(self) -> str:
        """What the table is about."""
        return "Algorithms on the benchmarks held out"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model."""
        return (f"Model: {self.formula}.",)

    def sentences(self) -> tuple[str, ...]:
        """What the other half says about the algorithms."""
        p = self._rows()["p_value"]
        known = p.dropna()
        least = f" (the smallest: {p_text(float(known.min()))})" if len(known) else ""
        return (
            f"The terms were chosen on {len(self.chosen_on)} benchmarks; on the other {len(self.tested_on)}, "
            f"{int((known < 0.05).sum())} of {len(p)} differences between algorithms have an adjusted p-value below "
            f"0.05{least}.",
        )

    def _rows(self) -> pd.DataFrame:
        return self.pairs.to_frame()


@result
class ChosenModel(Result):
    """A model that the data chose from a family.

    Attributes
    ----------
    runs : Runs
    start, spec : ModelSpec
        The model at the beginning and the chosen one; ``ModelBuilder.of(runs, spec)`` goes on from there.
    criterion : {"glrt", "aic", "bic"}
    bic_n : {"rows", "benchmarks"}
        What BIC counts.
    n_fits : int
        Models that were fitted.
    holdout : Holdout or None
        The algorithms compared on the benchmarks held out; None without validation.
    notes : tuple of str
    """

    runs: Runs
    start: ModelSpec
    spec: ModelSpec
    criterion: str
    bic_n: str
    n_fits: int
    holdout: Holdout | None = None
    notes: tuple[str, ...] = ()

    figure: ClassVar = "selection_plot"

    @property
    def formula(self) -> str:
        """The chosen model in lme4's syntax."""
        return self.spec.formula

    def fit(self, **options: Any) -> LmmFit:
        """Fit the chosen model to all runs; options are those of `fit_lmm`."""
        return self.spec.fit(self.runs, **options)

    def sentences(self) -> tuple[str, ...]:
        """What was chosen, and what the benchmarks held out say."""
        rule = {"aic": "AIC", "bic": f"BIC (n = {self.bic_n})"}.get(self.criterion, "")
        return (self._choice(rule), *(() if self.holdout is None else self.holdout.sentences()))

    def _choice(self, rule: str) -> str:
        raise NotImplementedError


# ---------------------------------------------------------------------- fits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """What is kept of a fit by maximum likelihood, or why there is none (`problem`).

    `singular` lists random effects with a variance of zero or a correlation of one; `factors` has effects and relative
    Cholesky factor by groups, where a neighbour's search begins.
    """

    formula: str
    problem: str = ""
    llf: float = math.nan
    n_params: int = 0
    singular: tuple[str, ...] = ()
    converged: bool = True
    factors: Mapping[frozenset[str], tuple[tuple[str, ...], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, fit: LmmFit) -> Fitted:
        """What is kept of a fit."""
        factors = unpack(fit.theta, fit.problem.shapes)
        return cls(
            formula=fit.formula,
            llf=float(fit.llf),
            n_params=int(fit.n_params),
            singular=fit.singular_terms,
            converged=bool(fit.converged),
            factors={
                frozenset(term.group.split(":")): (tuple(term.names), L)
                for term, L in zip(fit.design.random, factors, strict=True)
            },
        )

    @classmethod
    def failed(cls, model: ModelSpec, problem: str) -> Fitted:
        """What is said of a model that has no fit."""
        return cls(formula=model.formula, problem=problem, converged=False)

    @property
    def ok(self) -> bool:
        return not self.problem

    @property
    def aic(self) -> float:
        return -2.0 * self.llf + 2.0 * self.n_params

    def bic(self, n: int) -> float:
        return -2.0 * self.llf + math.log(n) * self.n_params


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """A likelihood-ratio test between neighbours; NaN where one is not contained in the other."""

    statistic: float
    df: int
    p_value: float
    reference: str
    log_p: float


# ---------------------------------------------------------------------- one fit


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


# ---------------------------------------------------------------------- tests


def compare(null: LmmFit, alternative: LmmFit, *, inside: bool = False, seed: int = 0) -> Comparison:
    """`glrt` with its automatic reference, and the logarithm of the p-value, which ranks where p is zero."""
    df = int(alternative.n_params - null.n_params)
    if inside:
        # the variances that the null has are free in the alternative, in the interior of its covariance matrix
        statistic = max(0.0, 2.0 * (float(alternative.llf) - float(null.llf)))
        components: tuple[tuple[float, int], ...] = ((1.0, df),)
        p, reference = math.exp(log_tail(statistic, components)), "chi2"
    else:
        try:
            test = glrt(null, alternative, rng=seed)
        except NestingError:
            return Comparison(statistic=math.nan, df=df, p_value=math.nan, reference="not nested", log_p=math.nan)
        statistic, p, reference = test.statistic, test.p_value, test.reference
        components = test.components or ((0.5, 0), (0.5, df))
    if statistic <= _ZERO:  # a mixture has 0.5 just above 0 and 1 at 0, and rounding must not choose
        return Comparison(statistic=0.0, df=df, p_value=1.0, reference=reference, log_p=0.0)
    log_p = math.log(p) if p > _TRUSTED else min(log_tail(statistic, components), math.log(_TRUSTED))
    return Comparison(statistic=statistic, df=df, p_value=p, reference=reference, log_p=log_p)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A model to fit, and to test against a neighbour.

    `inside`: the smaller one has intercepts of cells that become a free covariance matrix of the larger one, which no
    column of its random effects shows. `check`: whether to check that the runs identify the model.
    """

    model: ModelSpec
    inside: bool = False
    check: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """Fit the question with the number of the replicate; picklable, so that processes can be spawned."""

    questions: Sequence[Question]
    runs: Runs
    near: Fitted | None
    neighbour: LmmFit | None
    neighbour_is_null: bool
    seed: int

    def __call__(self, rng: np.random.Generator) -> tuple[Fitted, Comparison | None]:
        question = self.questions[rng.bit_generator.seed_seq.spawn_key[-1]]  # type: ignore[attr-defined]
        try:
            fit = fit_ml(question.model, self.runs, self.near, check=question.check)
        except DesignError as error:
            return Fitted.failed(question.model, f"not identifiable: {error}"), None
        except EstimationError as error:
            return Fitted.failed(question.model, f"could not be fitted: {error}"), None
        if self.neighbour is None:
            return Fitted.of(fit), None
        null, alternative = (self.neighbour, fit) if self.neighbour_is_null else (fit, self.neighbour)
        return Fitted.of(fit), compare(null, alternative, inside=question.inside, seed=self.seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """The models of a family on the rows that choose among them.

    `n` is what BIC counts, `held` the benchmarks that choose and those that test, and `seed` that of simulated null
    distributions.
    """

    family: Family
    criterion: str
    n: int
    seed: int = 0
    held: Halves | None = None
    n_jobs: int = 1
    executor: Executor | None = None
    progress: bool | None = None

    @classmethod
    def of(
        cls, family: Family, *, bic_n: str, validate: str | None, rng: int | np.random.Generator | None, **options: Any
    ) -> Self:
        """The search on all rows, or on those of a random half of the benchmarks."""
        generator = resolve_rng(rng)
        runs, held = family.runs, None
        if validate is not None:
            check_choice(validate, "validate", ("half",))
            held = _halves(runs, generator)
            runs = runs.filter(**{str(runs.benchmark): list(held[0])})
        family, n = family.on(runs), _sample_size(runs, bic_n)
        return cls(family=family, n=n, held=held, seed=int(generator.integers(2**31)), **options)

    def value(self, fitted: Fitted) -> float:
        """The criterion of a model; AIC beside tests, infinite where it could not be fitted."""
        if not fitted.ok:
            return math.inf
        return fitted.bic(self.n) if self.criterion == "bic" else fitted.aic

    def answer(
        self,
        questions: Sequence[Question],
        *,
        near: Fitted | None,
        neighbour: LmmFit | None = None,
        neighbour_is_null: bool = True,
        label: str = "Models",
    ) -> list[tuple[Fitted, Comparison | None]]:
        """Fit models, and test each against one neighbour.

        The answers do not depend on the number of processes, nor on the order of the questions.
        """
        if not questions:
            return []
        task = _Answer(questions, self.family.runs, near, neighbour, neighbour_is_null, self.seed)
        # the fits draw nothing; replicate() brings processes, the progress bar and failures that are kept
        results = replicate(
            task,
            len(questions),
            rng=0,
            n_jobs=self.n_jobs,
            executor=self.executor,
            progress=self.progress,
            label=label,
            fewer=None,
        )
        return [
            (Fitted.failed(question.model, f"could not be fitted: {found.reason}"), None)
            if isinstance(found, Failure)
            else found
            for question, found in zip(questions, results, strict=True)
        ]

    def test(self, spec: ModelSpec, runs: Runs) -> Holdout | None:
        """The algorithms by a model on the benchmarks that did not choose it, without what they cannot identify.

        Advantages that differ between benchmarks belong to the design and not to the choice: ``(1 |
        benchmark:algorithm)`` is in the test even if the choice went without it.
        """
        if self.held is None:
            return None
        if runs.algorithm not in spec.fixed_columns:
            raise ArgumentError(
                "validate='half' tests the differences between algorithms, and the start has no term for them. Add it: "
                "builder.fixed('algorithm')."
            )
        others = runs.filter(**{str(runs.benchmark): list(self.held[1])})
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
        return Holdout(
            chosen_on=self.held[0],
            tested_on=self.held[1],
            formula=spec.formula,
            fit=fit,
            pairs=emmeans(fit, runs.algorithm).pairs(),
            notes=(*notes, *(f"{part} is not identified on these benchmarks and was left out." for part in gone)),
        )

    def reservations(self) -> tuple[str, ...]:
        """Terms that were not offered, and the warning that belongs to every model that data chose."""
        warning = OPTIMISM
        if self.held is not None:
            warning = (
                f"The terms were chosen on {len(self.held[0])} benchmarks: p-values from there, and those of fit() on "
                "all runs, are too optimistic, because the data chose the model. Those of holdout are not."
            )
        parts = (self.family.start, *(candidate.part for candidate in self.family.candidates))
        runs = self.family.runs
        known = {name for part in parts for name in part.columns} & set(runs.family)
        families = () if known else of_these_families(runs)
        return *(f"Not tried: {part} ({why})." for part, why in self.family.left_out), *families, warning


def _halves(runs: Runs, rng: np.random.Generator) -> Halves:
    """The benchmarks in two random halves; the second has one more where their number is odd."""
    levels = () if runs.benchmark is None else runs.levels(runs.benchmark)
    if len(levels) < FEWEST:
        found = f"has {counted(len(levels), 'benchmark')}" if levels else "names no benchmarks"
        raise ArgumentError(
            f"validate='half' needs at least {FEWEST} benchmarks, four to choose the terms on and four to test them, "
            f"and this table {found}. Use validate=None and take the model from the design (lmemtest.recommend), or "
            "bring more benchmarks."
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
