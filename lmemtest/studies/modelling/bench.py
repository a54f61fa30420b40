"""The fits of a model search: a lattice of nested models, searched with a proof or from the largest model down.

A larger model never fits worse, so in a box of models between a smallest ``lo`` and a largest ``hi``

    criterion(m)  >=  -2 llf(hi) + penalty(lo)    for every m in the box,

and a box whose bound is beyond the best model's criterion by more than `within` holds nothing of interest ("leaps and
bounds", Furnival & Wilson 1974, for least squares). Terms that matter and terms that do not are settled by one fit
each; what costs is the doubtful middle.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._rounding import at_most, written
from lmemtest.data.runs import Runs
from lmemtest.engine.blocks import Shape
from lmemtest.errors import DesignError
from lmemtest.formula import build_design, parse_bar, parse_formula
from lmemtest.formula.tokens import quote_name
from lmemtest.studies.modelling.fits import Comparison, Fitted, Question, answer, fit_ml, summary_of
from lmemtest.studies.modelling.menu import Family
from lmemtest.studies.modelling.recommend import recommend
from lmemtest.studies.modelling.start import TIE
from lmemtest.words import listed

if TYPE_CHECKING:
    from lmemtest.model import LmmFit

# Log-likelihoods of two searches agree to this; a bound may be off by as much.
_SLACK = 1e-3
_BOXES = 20_000
# A regular fit is preferred to a singular one unless its weight is less than e^-3, a twentieth, of it.
CLEARLY_WORSE = 6.0

Terms = frozenset[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """The fits of a search, each made once."""

    family: Family
    runs: Runs
    n: int
    criterion: str
    n_jobs: int
    progress: bool | None
    seed: int
    fits: dict[Terms, Fitted] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)  # of a term, in twice the log-likelihood
    _ranks: dict[tuple[str, ...], int] = field(default_factory=dict)
    _widths: dict[str, int] = field(default_factory=dict)

    def value(self, model: Terms) -> float:
        """The criterion of a fitted model; infinite where it could not be fitted."""
        fitted = self.fits[model]
        if not fitted.ok:
            return math.inf
        return fitted.aic if self.criterion == "aic" else fitted.bic(self.n)

    def penalty(self, model: Terms) -> float:
        per = 2.0 if self.criterion == "aic" else math.log(self.n)
        return per * self.n_params(model)

    def fit(self, models: Iterable[Terms], near: Fitted | None) -> None:
        new = [m for m in dict.fromkeys(models) if m not in self.fits]
        found = answer(
            [Question(model=self.family.formula(m)) for m in new],
            self.runs,
            near=near,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self.fits.update({m: fitted for m, (fitted, _) in zip(new, found, strict=True)})

    @cached_property
    def everything(self) -> Terms:
        return frozenset(self.family.offered)

    def branch_and_bound(self, within: float, most: int) -> bool:
        """Fit what may be within reach of the best; whether nothing was left open."""
        empty: Terms = frozenset()
        self.fit([empty, self.everything], None)
        boxes: list[tuple[float, int, Terms, Terms]] = [(-math.inf, 0, empty, self.everything)]
        count = 1
        while boxes:
            if len(self.fits) >= most or count > _BOXES:
                return False
            inherited, _, lo, hi = heapq.heappop(boxes)
            self.fit([hi], self._near())
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
        return min(self.value(m) for m in self.fits) + within + _SLACK

    def _near(self) -> Fitted | None:
        """The estimates of the largest model that could be fitted: where other searches begin."""
        known = [f for f in self.fits.values() if f.ok]
        return max(known, key=lambda f: f.n_params) if known else None

    def _bound(self, lo: Terms, hi: Terms) -> float:
        """No model between the two has a smaller criterion."""
        fitted = self.fits.get(hi)
        if fitted is None or not fitted.ok:
            return -math.inf
        return -2.0 * fitted.llf + self.penalty(lo)

    def _halves(self, lo: Terms, hi: Terms) -> list[tuple[Terms, Terms]]:
        """The models without a term on which no other builds, and those with it.

        The term is the one that counts most: the models without it are then out of reach, and with it the penalty of
        all others rises. Were the doubtful terms first, both sides would stay open.
        """
        free = [text for text in self.family.removable(hi) if text not in lo]
        new = [text for text in free if text not in self.gains]
        if self.fits[hi].ok and new:
            self.fit([hi - {text} for text in new], self.fits[hi])
            for text in new:
                without = self.fits[hi - {text}]
                self.gains[text] = 2.0 * (self.fits[hi].llf - without.llf) if without.ok else 0.0
        text = max(free, key=lambda t: (round(self.gains.get(t, 0.0) / _SLACK), free.index(t)))
        return [(lo, hi - {text}), (lo | self.family.down(text), hi)]

    def n_params(self, model: Terms) -> int:
        """The parameters of a model, fitted or not."""
        fitted = self.fits.get(model)
        if fitted is not None and fitted.ok:
            return fitted.n_params
        terms, bars, residual = self.family.parts(model)
        variances = 1 if residual is None else len(self.runs.levels(residual))
        count = self._rank(terms) + variances
        for bar in map(parse_bar, bars):
            k = sum(1 if not term else self._width(bar.terms.label(term), bar.left) for term in bar.terms.terms)
            count += Shape(k, bar.diagonal).n_theta
        return count

    def _rank(self, terms: tuple[str, ...]) -> int:
        if terms not in self._ranks:
            X = self._columns(" + ".join(terms or ("1",)))
            self._ranks[terms] = int(np.linalg.matrix_rank(X / np.maximum(np.linalg.norm(X, axis=0), 1e-300)))
        return self._ranks[terms]

    def _width(self, label: str, left: str) -> int:
        """Columns of an effect beside an intercept, or of a factor instead of it."""
        key = label if left.startswith("1") else f"0 + {label}"
        if key not in self._widths:
            self._widths[key] = self._columns(key).shape[1] - (not key.startswith("0"))
        return self._widths[key]

    def _columns(self, right: str) -> np.ndarray:
        parsed = parse_formula(f"{quote_name(self.runs.score)} ~ {right}")
        names = list(parsed.columns)
        frame = self.runs.study.distinct(names) if names else None
        frame = pd.DataFrame(index=pd.RangeIndex(1)) if frame is None else frame
        return np.asarray(build_design(parsed, frame, np.ones(len(frame))).X)

    # ------------------------------------------------------------------ downwards

    def backwards(self, alpha: float) -> tuple[list[Terms], dict[Terms, float]]:
        """Drop the least significant term until all are significant; models from the last back to the first."""
        model, current = self._largest()
        self.fits[model] = summary_of(current)
        path, p_values = [model], dict[Terms, float]()
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
            model = min(tied, key=lambda m: (self.fits[m].n_params, sorted(m)))
            path.append(model)
            current = fit_ml(self.family.formula(model), self.runs, self.fits[model], check=False)
        rest = sorted((m for m in self.fits if m not in path and self.fits[m].ok), key=lambda m: p_values.get(m, 1.0))
        return [*reversed(path), *rest], p_values

    def _largest(self) -> tuple[Terms, LmmFit]:
        """The largest model that can be fitted, dropping the last terms of the menu first."""
        model = self.everything
        while True:
            try:
                return model, fit_ml(self.family.formula(model), self.runs)
            except DesignError:
                if not model:
                    raise
                model = model - {self.family.removable(model)[-1]}

    def _smaller(self, model: Terms, current: LmmFit) -> list[tuple[Terms, Comparison | None]]:
        texts = self.family.removable(model)
        models, questions = [], []
        for text in texts:
            candidate = self.family.by_text[text]
            smaller = model - {text}
            inside = bool(set(candidate.absorbs) & (model | self.family.base))
            if inside and candidate.kind == "fixed effect":
                smaller -= set(candidate.absorbs) - self.family.base  # the random version is no null of the fixed one
                if any(self.family.up(gone) & smaller for gone in model - smaller):
                    continue
                inside = False
            models.append(smaller)
            questions.append(Question(model=self.family.formula(smaller), contains="inside" if inside else ""))
        found = answer(
            questions,
            self.runs,
            near=self.fits[model],
            neighbour=current,
            neighbour_is_null=False,
            seed=self.seed,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self.fits.update({m: fitted for m, (fitted, _) in zip(models, found, strict=True)})
        return [(m, test) for m, (_, test) in zip(models, found, strict=True)]

    # ------------------------------------------------------------------ results

    def ranking(self) -> list[Terms]:
        """Fitted models, the best first; of equally good ones the one with fewer parameters, then by its text."""
        known = [m for m, fitted in self.fits.items() if fitted.ok]
        return sorted(known, key=lambda m: (round(self.value(m) / TIE), self.fits[m].n_params, self.fits[m].formula))

    def choice(self, order: list[Terms]) -> tuple[Terms, list[str]]:
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
        gap = self.value(regular) - self.value(order[0])
        if gap > CLEARLY_WORSE:
            better = (
                f"the best regular one, {self.fits[regular].formula}, has a {name} that is {written(gap, '.4g')} higher"
            )
            return order[0], [*notes, f"It is kept all the same, since {better}."]
        return regular, [
            *notes,
            f"The best regular one is taken instead, whose {name} is {written(gap, '.3g')} higher.",
        ]

    def table(self, order: list[Terms], best: Terms, p_values: dict[Terms, float]) -> pd.DataFrame:
        """One row per model."""
        fits = [self.fits[m] for m in order]
        aic, bic = np.array([f.aic for f in fits]), np.array([f.bic(self.n) for f in fits])
        delta = {"aic": aic, "bic": bic, "glrt": aic}[self.criterion]
        delta = delta - delta.min()
        weight = np.exp(-delta / 2.0)
        wanted = _features(recommend(self.runs).formula)
        names = [tuple(t for t in self.family.offered if t in m) for m in order]
        shown = [tuple(t for t in added if not self._absorbed(t, m)) for added, m in zip(names, order, strict=True)]
        return pd.DataFrame(
            {
                "rank": np.arange(1, len(order) + 1),
                "formula": [f.formula for f in fits],
                "terms": shown,
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
                "distance": [len(_features(f.formula) ^ wanted) for f in fits],
                "best": [m == best for m in order],
            }
        )

    def _absorbed(self, text: str, model: Terms) -> bool:
        return any(text in self.family.by_text[other].absorbs for other in model)


def _singular_note(fitted: Fitted, subject: str) -> list[str]:
    if not fitted.singular:
        return []
    which = listed(fitted.singular)
    return [
        f"{subject} is singular: {which} has a variance of zero or a correlation of one. Drop it or make it simpler."
    ]


def _features(formula: str) -> frozenset[str]:
    """A model as a set of fixed terms, intercepts and slopes of groups."""
    parsed = parse_formula(formula)
    out = {":".join(sorted(str(parsed.terms.atoms[i]) for i in term)) for term in parsed.terms.terms if term}
    for bar in parsed.bars:
        group = ":".join(sorted(bar.groups))
        labels = [bar.terms.label(term) for term in bar.terms.terms]
        out |= {f"{label} | {group}" for label in labels if label != "1"}
        out.add(f"1 | {group}")
    return frozenset(out)
