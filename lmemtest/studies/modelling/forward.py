"""Forward selection of model terms, with its path and an honest test on benchmarks that had no part in it.

From a small model on, the term that improves it most is added until none does. What the data chose, the data then
seem to confirm: p-values and intervals of the chosen model are too optimistic (Berk et al. 2013), which every result
says, and which a test on the other half of the benchmarks avoids.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._replicates import check_replicates
from lmemtest._rounding import at_most
from lmemtest._table import ResultTable, Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_flag, check_fraction, check_positive_int, resolve_rng
from lmemtest.data.runs import Runs
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.studies.modelling.builder import ModelBuilder, assemble
from lmemtest.studies.modelling.fits import Comparison, Fitted, Question, answer, fit_ml, summary_of
from lmemtest.studies.modelling.holdout import Holdout, held_out
from lmemtest.studies.modelling.menu import Family
from lmemtest.studies.modelling.start import (
    CRITERIA,
    SAMPLE_SIZES,
    TIE,
    family_of,
    left_out,
    on,
    optimism,
    sample_size,
    split,
    start_of,
)
from lmemtest.words import format_number, format_p, listed

if TYPE_CHECKING:
    from lmemtest.model import LmmFit

ADJUSTMENTS = ("holm", "none")
_SHOWN = ["step", "term", "kind", "llf", "n_params", "statistic", "df", "p_value", "aic", "bic", "verdict"]


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class SelectionResult(Tabular):
    """A forward selection: what was tried at each step, and what was chosen.

    Attributes
    ----------
    start, builder : ModelBuilder
        The model at the beginning and the chosen one, of all runs.
    chosen : tuple of str
        The terms that were added, in order.
    path : pandas.DataFrame
        Behind `to_frame`; do not change it.
    criterion : {"glrt", "aic", "bic"}
    alpha : float
        Level of a step; for "glrt".
    adjust : {"holm", "none"}
        How p-values of a step are adjusted for the number of its candidates.
    n_obs : {"rows", "benchmarks"}
        What BIC counts.
    n_fits : int
        Models that were fitted.
    holdout : Holdout or None
        The algorithms compared on the benchmarks held out; None without validation.
    notes : tuple of str
    """

    start: ModelBuilder
    builder: ModelBuilder
    chosen: tuple[str, ...]
    path: pd.DataFrame
    criterion: str
    alpha: float
    adjust: str
    n_obs: str
    n_fits: int
    holdout: Holdout | None = None
    notes: tuple[str, ...] = ()

    @property
    def formula(self) -> str:
        """The chosen model in lme4's syntax."""
        return self.builder.formula()

    def fit(self, **options: Any) -> LmmFit:
        """Fit the chosen model to all runs; options are those of `fit_lmm`."""
        return self.builder.fit(**options)

    @property
    def steps(self) -> pd.DataFrame:
        """The rows of the path that are in the model: the start and each term as it was added."""
        return self.path[self.path["chosen"]].reset_index(drop=True)

    def to_frame(self) -> pd.DataFrame:
        """The whole path, one row per step and candidate.

        Returns
        -------
        pandas.DataFrame
            ``step`` (0 is the start), ``term``, ``kind``, ``llf`` (maximum likelihood), ``n_params``, ``statistic``,
            ``df``, ``reference``, ``p_value``, ``p_adjusted`` (against the model of the step before), ``aic``,
            ``bic``, ``singular``, ``converged``, ``chosen``, ``verdict`` (why, in words). Numbers are NaN where a
            term cannot be identified.
        """
        return self.path.copy()

    @property
    def sentence(self) -> str:
        """What was chosen, in words."""
        rule = {
            "glrt": f"likelihood-ratio tests at {self.alpha:g}",
            "aic": "AIC",
            "bic": f"BIC (n = {self.n_obs})",
        }[self.criterion]
        if not self.chosen:
            return f"By {rule} no candidate improves {self.start.formula()}."
        added = "1 term was" if len(self.chosen) == 1 else f"{len(self.chosen)} terms were"
        return f"By {rule} {added} added: {listed(self.chosen)}. The model: {self.formula}."

    def sentences(self) -> tuple[str, ...]:
        """What was chosen, and what the benchmarks held out say."""
        return (self.sentence, *(() if self.holdout is None else (self.holdout.sentence,)))

    def to_table(self) -> ResultTable:
        """The steps, and what was left at the last of them, as a table."""
        last = self.path["step"].max()
        shown = self.path[self.path["chosen"] | (self.path["step"] == last)]
        formats = {"llf": ".2f", "aic": ".2f", "bic": ".2f", "statistic": ".3f"}
        return ResultTable(
            title="Forward selection",
            frame=shown[_SHOWN].reset_index(drop=True),
            notes=(*self.sentences(), *self.notes),
            formats=formats,
        )


@one_blas_thread()
def select_terms(
    runs_or_builder: Runs | ModelBuilder,
    *,
    candidates: Iterable[str] | None = None,
    criterion: str = "glrt",
    alpha: float = 0.05,
    adjust: str = "holm",
    n_obs: str = "rows",
    most: int | None = None,
    validate: str | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    verbose: bool = False,
) -> SelectionResult:
    """Add the terms to a model that improve it most, one at a time.

    Parameters
    ----------
    runs_or_builder : Runs or ModelBuilder
        Where to start: a builder as it is, or runs from ``score ~ algorithm + (1 | benchmark)`` (without the random
        effect where there is one benchmark).
    candidates : iterable of str, optional
        Columns or roles (``"prior"``: its fixed effect, its interaction with the algorithm, intercepts and slopes of
        benchmarks), whole terms (``"algorithm:prior"``, ``"C(prior)"``, ``"(1 | benchmark:seed)"``), or
        ``"dispersion(benchmark)"``. By default all terms that the roles of the table suggest.
    criterion : {"glrt", "aic", "bic"}
        Add the term with the smallest p-value while it is at most `alpha`, or the one that lowers AIC or BIC most.
    alpha : float in (0, 1)
        Level of each step.
    adjust : {"holm", "none"}
        "holm" multiplies the smallest p-value of a step by the number of its candidates, so that a step without
        anything to find adds something with probability at most `alpha`, however many candidates there are, as far as
        each test holds its level (see the notes).
    n_obs : {"rows", "benchmarks"}
        The sample size in BIC's penalty, log(n) per parameter.
    most : int, optional
        The most terms to add.
    validate : {None, "half"}
        "half": choose on a random half of the benchmarks (at least 8 are needed) and compare the algorithms on the
        other half, see ``holdout``.
    rng : int, numpy.random.Generator or None
        Draws the halves, and simulates the exact null distribution of a single variance in unbalanced tables.
    n_jobs : int
        Processes; -1 for one per processor. The result does not depend on it.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.
    verbose : bool
        Print each step.

    Returns
    -------
    SelectionResult
        ``to_frame()`` has every candidate of every step with its test; ``formula``, ``builder`` and ``fit()`` are the
        chosen model.

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

    A term enters after the terms that it needs: a slope after its intercept and its fixed effect, groups of several
    columns after the coarser ones; the main effects of an interaction come along with it, in one test. What the design
    cannot identify is listed with the reason.

    References
    ----------
    Geburek et al. (2024), arXiv:2408.02533, section 4.4; Berk, Brown, Buja, Zhang & Zhao (2013) on inference after
    selection, doi:10.1214/12-AOS1077; Holm (1979), https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.modelling.forward import select_terms
    >>> start = lt.ModelBuilder(lt.datasets.load_hpo_runs().filter(budget=8)).random("benchmark", "benchmark:algorithm")
    >>> found = select_terms(start, candidates=["prior"], criterion="bic")
    >>> found.chosen
    ('algorithm:prior', '(1 | benchmark:prior)', '(1 + prior | benchmark:algorithm)')
    """
    options = _Options.checked(
        criterion=criterion,
        alpha=alpha,
        adjust=adjust,
        n_obs=n_obs,
        most=most,
        n_jobs=n_jobs,
        progress=progress,
        verbose=verbose,
    )
    start = start_of(runs_or_builder)
    family = family_of(start, candidates)
    generator = resolve_rng(rng)
    held = split(start.runs, validate, generator)
    runs = start.runs if held is None else start.runs.filter(**{str(start.runs.benchmark): list(held[0])})
    search = _Forward(family=on(family, runs), runs=runs, options=options, seed=int(generator.integers(2**31)))
    path, model, chosen, n_fits, notes = search.run()
    terms, bars, residual = family.parts(model)
    return SelectionResult(
        start=start,
        builder=assemble(start.runs, terms, bars, residual),
        chosen=chosen,
        path=path,
        criterion=options.criterion,
        alpha=options.alpha,
        adjust=options.adjust,
        n_obs=options.n_obs,
        n_fits=n_fits,
        holdout=None if held is None else held_out(start.runs, held, terms, bars, residual),
        notes=(*notes, *_rules(options), *left_out(family), *optimism(held)),
    )


# ---------------------------------------------------------------------- the search


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    criterion: str
    alpha: float
    adjust: str
    n_obs: str
    most: int | None
    n_jobs: int
    progress: bool | None
    verbose: bool

    @classmethod
    def checked(cls, **given: Any) -> _Options:
        check_choice(given["criterion"], "criterion", CRITERIA)
        check_choice(given["adjust"], "adjust", ADJUSTMENTS)
        check_choice(given["n_obs"], "n_obs", SAMPLE_SIZES)
        given["alpha"] = check_fraction(given["alpha"], "alpha")
        if given["most"] is not None:
            given["most"] = check_positive_int(given["most"], "most")
        check_replicates(n_jobs=given["n_jobs"], progress=given["progress"])
        given["verbose"] = check_flag(given["verbose"], "verbose")
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Try:
    """One candidate of one step."""

    term: str
    fitted: Fitted
    test: Comparison | None

    def value(self, criterion: str, n: int) -> float:
        if criterion == "glrt":
            return math.nan if self.test is None else self.test.log_p
        return self.fitted.aic if criterion == "aic" else self.fitted.bic(n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Forward:
    family: Family
    runs: Runs
    options: _Options
    seed: int

    def run(self) -> tuple[pd.DataFrame, frozenset[str], tuple[str, ...], int, list[str]]:
        """The path, the model as a set of terms, the terms in order, fits, notes."""
        n = sample_size(self.runs, self.options.n_obs)
        model: frozenset[str] = frozenset()
        current = fit_ml(self.family.formula(model), self.runs, check=False)
        rows = [_start_row(summary_of(current), n)]
        chosen: list[str] = []
        refused: set[str] = set()
        seen: set[str] = set()
        n_fits = 1
        if self.options.verbose:
            print(f"Start: {current.formula}")
        while True:
            step = len(chosen) + 1
            open_terms = [t for t in self.family.steps(model) if t not in refused]
            full = self.options.most is not None and len(chosen) >= self.options.most
            if full or not open_terms:
                rows += self._waiting(step, model, refused, "the most terms are in" if full else None)
                break
            tries = self._try(open_terms, model, current, step, seen)
            seen |= set(open_terms)
            n_fits += sum(t.fitted.ok for t in tries)
            refused |= {t.term for t in tries if not t.fitted.ok}
            best, block = self._judge(tries, model, summary_of(current), n, step)
            rows += block
            if best is None:
                rows += self._waiting(step, model, refused | {t.term for t in tries}, None)
                break
            model |= self.family.down(best.term)
            chosen.append(best.term)
            if self.options.verbose:
                print(f"Step {step}: {best.term} ({next(r['verdict'] for r in block if r['chosen'])})")
            current = fit_ml(self.family.formula(model), self.runs, best.fitted, check=False)
            n_fits += 1
        if self.options.verbose:
            print(f"Chosen: {current.formula}")
        return pd.DataFrame(rows), model, tuple(chosen), n_fits, _about(summary_of(current))

    def _try(self, terms: list[str], model: frozenset[str], current: LmmFit, step: int, seen: set[str]) -> list[_Try]:
        """Fit and test the candidates of a step; what was identified in a smaller model is not checked again."""
        questions = []
        for term in terms:
            inside = set(self.family.by_text[term].absorbs) & (model | self.family.base)
            contains = "inside" if inside and self.family.by_text[term].kind == "random slope" else ""
            larger = self.family.formula(model | self.family.down(term))
            questions.append(Question(model=larger, contains=contains, check=term not in seen))
        found = answer(
            questions,
            self.runs,
            near=summary_of(current),
            neighbour=current,
            seed=self.seed,
            n_jobs=self.options.n_jobs,
            progress=self.options.progress,
            label=f"Step {step}",
        )
        return [_Try(term=t, fitted=f, test=test) for t, (f, test) in zip(terms, found, strict=True)]

    def _judge(
        self, tries: list[_Try], model: frozenset[str], current: Fitted, n: int, step: int
    ) -> tuple[_Try | None, list[dict[str, Any]]]:
        """The term to add, if any, and the rows of the step with reasons."""
        raw = np.array([math.nan if t.test is None else t.test.p_value for t in tries])
        adjusted = adjust_raw(raw, self.options.adjust, int(np.isfinite(raw).sum()))
        values = [t.value(self.options.criterion, n) for t in tries]
        best = _first(tries, values)
        if best is not None and not self._improves(best, values, adjusted, tries, current, n):
            best = None
        rows = [
            _row(step, t, self.family.by_text[t.term].kind, p, n)
            | {"chosen": t is best, "verdict": self._verdict(t, best, float(p), current, n) + self._with(t.term, model)}
            for t, p in zip(tries, adjusted, strict=True)
        ]
        return best, rows

    def _improves(
        self, best: _Try, values: list[float], adjusted: Any, tries: list[_Try], current: Fitted, n: int
    ) -> bool:
        at = tries.index(best)
        if self.options.criterion == "glrt":
            return bool(at_most(adjusted[at], self.options.alpha))
        now = current.aic if self.options.criterion == "aic" else current.bic(n)
        return values[at] < now - TIE

    def _with(self, term: str, model: frozenset[str]) -> str:
        company = self.family.company(term, model)
        return f", with {listed(company)}" if company else ""

    def _verdict(self, t: _Try, best: _Try | None, p: float, current: Fitted, n: int) -> str:
        if not t.fitted.ok:
            return t.fitted.problem
        if self.options.criterion == "glrt":
            if t.test is None or math.isnan(t.test.p_value):
                if t.fitted.n_params <= current.n_params:
                    return "adds nothing to the terms that are in"
                return "not nested in the model so far: compare by aic or bic"
            if t is best:
                return f"chosen: smallest p-value, {_adjusted(self.options.adjust)}{format_p(p)}"
            if not at_most(p, self.options.alpha):
                return f"not significant ({_adjusted(self.options.adjust)}{format_p(p)})"
            return "a larger p-value" if best is not None else "not significant"
        name = self.options.criterion.upper()
        change = t.value(self.options.criterion, n) - (current.aic if name == "AIC" else current.bic(n))
        if t is best:
            return f"chosen: {name} falls by {format_number(-change, 3)}"
        if change >= -TIE:
            return f"{name} does not fall"
        return f"{name} falls by {format_number(-change, 3)} only"

    def _waiting(self, step: int, model: frozenset[str], seen: set[str], why: str | None) -> list[dict[str, Any]]:
        """Candidates that never had their turn, and what they were waiting for."""
        have = model | self.family.base
        rows = []
        for text in (*self.family.offered, *self.family.stranded):
            candidate = self.family.by_text[text]
            if text in have or text in seen or not candidate.offered:
                continue
            if text in self.family.stranded:
                reason = f"needs {self.family.stranded[text]}, which is neither in the start nor a candidate"
            else:
                lacking = sorted(self.family.down(text) - {text} - have - set(candidate.absorbs))
                reason = f"needs {listed(lacking)} first" if lacking else (why or "not reached")
            rows.append(_row(step, None, candidate.kind, math.nan, 1) | {"term": text, "verdict": reason})
        return rows


def _adjusted(adjust: str) -> str:
    return "Holm-adjusted p " if adjust == "holm" else "p "


def _first(tries: list[_Try], values: list[float]) -> _Try | None:
    """The best candidate; of equally good ones the one with fewer parameters, then the first in the alphabet."""
    known = [(value, t) for value, t in zip(values, tries, strict=True) if math.isfinite(value)]
    if not known:
        return None
    least = min(value for value, _ in known)
    tied = [t for value, t in known if value <= least + TIE]
    return min(tied, key=lambda t: (t.fitted.n_params, t.term))


def _start_row(fitted: Fitted, n: int) -> dict[str, Any]:
    start = _Try(term="", fitted=fitted, test=None)
    return _row(0, start, "", math.nan, n) | {"term": "start", "chosen": True, "verdict": fitted.formula}


def _row(step: int, t: _Try | None, kind: str, p_adjusted: float, n: int) -> dict[str, Any]:
    ok = t is not None and t.fitted.ok
    test = t.test if t is not None else None
    return {
        "step": step,
        "term": t.term if t is not None else "",
        "kind": kind,
        "llf": t.fitted.llf if t is not None and ok else math.nan,
        "n_params": float(t.fitted.n_params) if t is not None and ok else math.nan,
        "statistic": math.nan if test is None else test.statistic,
        "df": math.nan if test is None else float(test.df),
        "reference": "" if test is None else test.reference,
        "p_value": math.nan if test is None else test.p_value,
        "p_adjusted": p_adjusted,
        "aic": t.fitted.aic if t is not None and ok else math.nan,
        "bic": t.fitted.bic(n) if t is not None and ok else math.nan,
        "singular": bool(t is not None and t.fitted.singular),
        "converged": bool(t is not None and t.fitted.converged),
        "chosen": False,
        "verdict": "",
    }


def _about(fitted: Fitted) -> list[str]:
    notes = [
        f"The chosen fit is singular: {label} has a variance of zero or a correlation of one, so a simpler term would "
        "do."
        for label in fitted.singular
    ]
    if not fitted.converged:
        notes.append("The search for the optimum of the chosen model is not certified; look at fit().certificate().")
    return notes


def _rules(options: _Options) -> tuple[str, ...]:
    notes = ["All models are fitted by maximum likelihood to the same rows."]
    if options.criterion == "glrt":
        how = (
            "The p-values of a step are Holm-adjusted over its candidates, so that a step without anything to find "
            f"adds a term with probability at most {options.alpha:g}, as far as each test holds its level (with few "
            "benchmarks those of fixed effects reject more often)."
            if options.adjust == "holm"
            else f"P-values are not adjusted for the number of candidates, so more than {100 * options.alpha:g} % of "
            "the steps without anything to find add a term."
        )
        notes.append(how)
    if options.criterion == "bic":
        what = "rows, as in lme4" if options.n_obs == "rows" else "benchmarks"
        notes.append(f"BIC counts {what}: log(n) per parameter.")
    return tuple(notes)
