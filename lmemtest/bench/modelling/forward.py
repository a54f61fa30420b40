"""Forward selection: from a small model on, the term that improves it most is added until none does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.modelling.menu import Candidate, Model, family_of
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
from lmemtest.core.rounding import at_most
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int
from lmemtest.core.words import counted, format_number, listed, p_text
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    from lmemtest.lmm.model import LmmFit

ADJUSTMENTS = ("holm", "none")
_SHOWN = ["step", "term", "kind", "llf", "n_params", "statistic", "df", "p_raw", "aic", "bic", "decision"]


@result
class SelectionResult(ChosenModel):
    """A forward selection: what was tried at each step, and what was chosen.

    Attributes
    ----------
    runs, start, spec, criterion, bic_n, n_fits, holdout, notes
        Of `ChosenModel`: the table, the first model and the chosen one, how it was chosen, and how it was tested.
    chosen : tuple of str
        The terms that were added, in order.
    path : pandas.DataFrame
        One row per step and candidate: ``step`` (0 is the start), ``term``, ``kind``, ``llf`` (maximum likelihood),
        ``n_params``, ``statistic``, ``df``, ``reference``, ``p_raw``, ``p_value`` (against the model of the step
        before), ``aic``, ``bic``, ``singular``, ``converged``, ``chosen``, ``decision`` (why, in words). Numbers are
        NaN where a term cannot be identified.
    alpha : float
        Level of a step; for "glrt".
    adjust : {"holm", "none"}
        How p-values of a step are adjusted for the number of its candidates.
    """

    chosen: tuple[str, ...]
    path: pd.DataFrame
    alpha: float
    adjust: str

    figure = "selection_plot"
    parts: ClassVar = {"path": "path"}
    formats: ClassVar = {"llf": ".2f", "aic": ".2f", "bic": ".2f", "statistic": ".3f"}

    @property
    def steps(self) -> pd.DataFrame:
        """The rows of the path that are in the model: the start and each term as it was added."""
        return self.path[self.path["chosen"]].reset_index(drop=True)

    @property
    def title(self) -> str:
        """What the table is about."""
        return "Forward selection"

    def _choice(self, rule: str) -> str:
        rule = rule or f"likelihood-ratio tests at {self.alpha:g}"
        if not self.chosen:
            return f"By {rule} no candidate improves {self.start.formula}."
        added = f"{counted(len(self.chosen), 'term')} {'was' if len(self.chosen) == 1 else 'were'} added"
        return f"By {rule} {added}: {listed(self.chosen)}. The model: {self.formula}."

    def shown(self) -> pd.DataFrame:
        """The steps, and what was left at the last of them."""
        last = self.path["step"].max()
        return self.path.loc[self.path["chosen"] | (self.path["step"] == last), _SHOWN].reset_index(drop=True)


@one_blas_thread()
def select_terms(
    runs: Runs,
    *,
    start: ModelSpec | None = None,
    candidates: Iterable[str] | None = None,
    criterion: str = "glrt",
    alpha: float = 0.05,
    adjust: str = "holm",
    bic_n: str = "rows",
    max_steps: int | None = None,
    validate: str | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> SelectionResult:
    """Add the terms to a model that improve it most, one at a time.

    Parameters
    ----------
    runs : Runs
    start : ModelSpec, optional
        Where to start, for example ``recommend(runs).spec``; ``builder.select()`` starts at the model of a builder. By
        default ``score ~ algorithm + (1 | benchmark)``, without the random effect where there is one benchmark.
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
    bic_n : {"rows", "benchmarks"}
        The sample size in BIC's penalty, log(n) per parameter.
    max_steps : int, optional
        The most terms to add.
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
    SelectionResult
        ``to_frame()`` has every candidate of every step with its test; ``formula``, ``spec`` and ``fit()`` are the
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
    >>> start = lt.ModelBuilder(lt.datasets.load_hpo_runs().filter(budget=8)).random("benchmark", "benchmark:algorithm")
    >>> found = start.select(candidates=["prior"], criterion="bic")
    >>> found.chosen
    ('algorithm:prior', '(1 | benchmark:prior)', '(1 + prior | benchmark:algorithm)')
    """
    check_choice(criterion, "criterion", CRITERIA)
    check_choice(adjust, "adjust", ADJUSTMENTS)
    check_choice(bic_n, "bic_n", SAMPLE_SIZES)
    alpha = check_fraction(alpha, "alpha")
    max_steps = None if max_steps is None else check_positive_int(max_steps, "max_steps")
    check_replicates(n_jobs=n_jobs, executor=executor, progress=progress)
    search = _Forward.of(
        family_of(runs, start, candidates),
        criterion=criterion,
        bic_n=bic_n,
        validate=validate,
        rng=rng,
        n_jobs=n_jobs,
        executor=executor,
        progress=progress,
        alpha=alpha,
        adjust=adjust,
        max_steps=max_steps,
    )
    path, model, chosen, n_fits, notes = search.run()
    spec = search.family.spec(model)
    return SelectionResult(
        runs=runs,
        start=search.family.start,
        spec=spec,
        chosen=tuple(c.text for c in chosen),
        path=path,
        criterion=criterion,
        alpha=alpha,
        adjust=adjust,
        bic_n=bic_n,
        n_fits=n_fits,
        holdout=search.test(spec, runs),
        notes=(*notes, *_rules(criterion, alpha, adjust, bic_n), *search.reservations()),
    )


# ---------------------------------------------------------------------- the search


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Try:
    """One candidate of one step; the start has none."""

    candidate: Candidate | None
    fitted: Fitted
    test: Comparison | None = None

    @property
    def term(self) -> str:
        return "start" if self.candidate is None else self.candidate.text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Forward(Search):
    alpha: float
    adjust: str
    max_steps: int | None

    def run(self) -> tuple[pd.DataFrame, Model, list[Candidate], int, list[str]]:
        """The path, the model, its terms in order, fits, notes."""
        model: Model = frozenset()
        current = fit_ml(self.family.start, self.family.runs, check=False)
        start = _Try(candidate=None, fitted=Fitted.of(current))
        rows = [self._row(0, start, math.nan) | {"chosen": True, "decision": current.formula}]
        chosen: list[Candidate] = []
        refused, seen = set[Candidate](), set[Candidate]()
        n_fits = 1
        while True:
            step = len(chosen) + 1
            open_terms = [c for c in self.family.steps(model) if c not in refused]
            full = self.max_steps is not None and len(chosen) >= self.max_steps
            if full or not open_terms:
                rows += self._waiting(step, model, refused, "the most terms are in" if full else "not reached")
                break
            tries = self._try(open_terms, model, current, step, seen)
            seen |= set(open_terms)
            n_fits += sum(t.fitted.ok for t in tries)
            refused |= {t.candidate for t in tries if t.candidate is not None and not t.fitted.ok}
            best, block = self._judge(tries, model, Fitted.of(current), step)
            rows += block
            if best is None or best.candidate is None:
                rows += self._waiting(step, model, refused | set(open_terms), "not reached")
                break
            model |= self.family.down(best.candidate)
            chosen.append(best.candidate)
            current = fit_ml(self.family.spec(model), self.family.runs, best.fitted, check=False)
            n_fits += 1
        return pd.DataFrame(rows), model, chosen, n_fits, _about(Fitted.of(current))

    def _try(
        self, candidates: list[Candidate], model: Model, current: LmmFit, step: int, seen: set[Candidate]
    ) -> list[_Try]:
        """Fit and test the candidates of a step; what was identified in a smaller model is not checked again."""
        questions = [
            Question(
                model=self.family.spec(model | self.family.down(c)),
                inside=c.kind == "random slope" and self.family.contains(c, model),
                check=c not in seen,
            )
            for c in candidates
        ]
        found = self.answer(questions, near=Fitted.of(current), neighbour=current, label=f"Step {step}")
        return [_Try(candidate=c, fitted=f, test=test) for c, (f, test) in zip(candidates, found, strict=True)]

    def _judge(
        self, tries: list[_Try], model: Model, current: Fitted, step: int
    ) -> tuple[_Try | None, list[dict[str, Any]]]:
        """The term to add, if any, and the rows of the step with reasons."""
        raw = np.array([math.nan if t.test is None else t.test.p_value for t in tries])
        adjusted = dict(zip(tries, adjust_raw(raw, self.adjust, int(np.isfinite(raw).sum())).tolist(), strict=True))
        if self.criterion == "glrt":
            values = {t: math.nan if t.test is None else t.test.log_p for t in tries}
        else:
            values = {t: self.value(t.fitted) for t in tries}
        known = {t: value for t, value in values.items() if math.isfinite(value)}
        least = min(known.values(), default=math.nan)
        # of equally good candidates the one with fewer parameters, then the first in the alphabet
        tied = [t for t, value in known.items() if value <= least + TIE]
        best = min(tied, key=lambda t: (t.fitted.n_params, t.term), default=None)
        if best is not None:
            small = at_most(adjusted[best], self.alpha)
            improves = small if self.criterion == "glrt" else values[best] < self.value(current) - TIE
            best = best if improves else None
        rows = []
        for t, p in adjusted.items():
            company = () if t.candidate is None else self.family.company(t.candidate, model)
            verdict = self._verdict(t, best, p, current) + (f", with {listed(company)}" if company else "")
            rows.append(self._row(step, t, p) | {"chosen": t is best, "decision": verdict})
        return best, rows

    def _verdict(self, t: _Try, best: _Try | None, p: float, current: Fitted) -> str:
        if not t.fitted.ok:
            return t.fitted.problem
        if self.criterion == "glrt":
            if t.test is None or math.isnan(t.test.p_value):
                if t.fitted.n_params <= current.n_params:
                    return "adds nothing to the terms that are in"
                return "not nested in the model so far: compare by aic or bic"
            shown = f"{'Holm-adjusted ' if self.adjust == 'holm' else ''}{p_text(p)}"
            if t is best:
                return f"chosen: smallest p-value, {shown}"
            if not at_most(p, self.alpha):
                return f"not significant ({shown})"
            return "a larger p-value" if best is not None else "not significant"
        name = self.criterion.upper()
        change = self.value(t.fitted) - self.value(current)
        if t is best:
            return f"chosen: {name} falls by {format_number(-change, 3)}"
        return f"{name} does not fall" if change >= -TIE else f"{name} falls by {format_number(-change, 3)} only"

    def _waiting(self, step: int, model: Model, seen: set[Candidate], why: str) -> list[dict[str, Any]]:
        """Candidates that never had their turn, and what they were waiting for."""
        family, have = self.family, model | self.family.base
        rows = []
        for candidate in (*family.offered, *family.stranded):
            if candidate in have or candidate in seen or not candidate.offered:
                continue
            missing = family.closure(candidate) - have - {candidate}
            lacking = sorted(c.text for c in missing if c.part not in candidate.absorbs)
            reason = f"needs {listed(lacking)} first" if lacking else why
            if candidate in family.stranded:
                reason = f"needs {family.stranded[candidate]}, which is neither in the start nor a candidate"
            never = _Try(candidate=candidate, fitted=Fitted(formula="", problem=reason, converged=False))
            rows.append(self._row(step, never, math.nan) | {"decision": reason})
        return rows

    def _row(self, step: int, t: _Try, p_value: float) -> dict[str, Any]:
        fitted, test = t.fitted, t.test
        return {
            "step": step,
            "term": t.term,
            "kind": "" if t.candidate is None else t.candidate.kind,
            "llf": fitted.llf,
            "n_params": float(fitted.n_params) if fitted.ok else math.nan,
            "statistic": math.nan if test is None else test.statistic,
            "df": math.nan if test is None else float(test.df),
            "reference": "" if test is None else test.reference,
            "p_raw": math.nan if test is None else test.p_value,
            "p_value": p_value,
            "aic": fitted.aic,
            "bic": fitted.bic(self.n),
            "singular": bool(fitted.singular),
            "converged": fitted.converged,
            "chosen": False,
            "decision": "",
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


def _rules(criterion: str, alpha: float, adjust: str, bic_n: str) -> tuple[str, ...]:
    notes = ["All models are fitted by maximum likelihood to the same rows."]
    if criterion == "glrt":
        how = (
            "The p-values of a step are Holm-adjusted over its candidates, so that a step without anything to find "
            f"adds a term with probability at most {alpha:g}, as far as each test holds its level (with few "
            "benchmarks those of fixed effects reject more often)."
            if adjust == "holm"
            else f"P-values are not adjusted for the number of candidates, so more than {100 * alpha:g} % of "
            "the steps without anything to find add a term."
        )
        notes.append(how)
    if criterion == "bic":
        what = "rows, as in lme4" if bic_n == "rows" else "benchmarks"
        notes.append(f"BIC counts {what}: log(n) per parameter.")
    return tuple(notes)
