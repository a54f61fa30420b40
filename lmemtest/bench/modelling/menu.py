"""The terms that a search may choose from, and the models that they make.

A candidate says which terms it needs before it (an interaction its main effects, a slope its intercept and its fixed
effect, fine groups the coarse ones) and which simpler terms it absorbs: ``(1 + prior | benchmark)`` takes the place of
``(1 | benchmark:prior)``, and ``C(budget)`` that of ``(1 | budget)``. With both relations the models form a
distributive lattice: unions and intersections of models are models, and a larger one never fits worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lmemtest.bench.data.runs import Runs, require_runs
from lmemtest.bench.modelling.terms import (
    ROLES,
    check_identified,
    column_of,
    column_term,
    dispersion_column,
    factor_term,
    fixed_terms,
    is_factor,
    is_random,
    random_bars,
    refusal,
)
from lmemtest.core.validate import several
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.formula import INTERCEPT, Bar, Term
from lmemtest.lmm.model.spec import ModelSpec

# More budgets than this are a continuum; more columns of an interaction cost more than they explain; more benchmarks
# x budgets take seconds per fit.
MANY_BUDGETS, MANY_COLUMNS, MANY_CELLS = 50, 40, 100
_BY_HAND = "name it in candidates to have it tried"


@dataclass(frozen=True, slots=True)
class Dispersion:
    """Residual variances by the levels of a column, as a term."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def __str__(self) -> str:
        return f"residual variance by {self.column}"


Part = Term | Bar | Dispersion


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A term that may be added."""

    part: Part
    needs: tuple[Part, ...] = ()  # terms that must be in the model before
    absorbs: tuple[Part, ...] = ()  # simpler terms that it contains
    offered: bool = True  # False for terms that only come along with others

    @property
    def text(self) -> str:
        """As a formula has it; "residual variance by ..." for a dispersion."""
        return str(self.part)

    @property
    def kind(self) -> str:
        """One of "fixed effect", "random intercept", "random slope", "residual variance"."""
        if isinstance(self.part, Bar):
            return "random slope" if self.part.slopes else "random intercept"
        return "fixed effect" if isinstance(self.part, Term) else "residual variance"

    @property
    def depth(self) -> int:
        """How many columns meet in it: those of an interaction, of groups, of a slope and its groups."""
        return len(self.part.columns)


Model = frozenset[Candidate]


def intercept(*groups: str) -> Bar:
    """A random intercept."""
    return Bar.of(groups)


def slope(effect: Term, *groups: str) -> Bar:
    """A random slope, correlated with the intercept of its groups."""
    return Bar.of(groups, (INTERCEPT, effect))


# ---------------------------------------------------------------------- what a table offers


# Terms in the order in which they are shown, simple ones before those that need them; others, and why not.
Offer = tuple[tuple[Candidate, ...], tuple[tuple[Part, str], ...]]


def menu(runs: Runs, metafeatures: Sequence[str]) -> Offer:
    """The terms for the roles of a table and some metafeatures."""
    task = runs.benchmark if runs.study.several_benchmarks else None
    varying = [name for name in metafeatures if len(runs.levels(name)) > 1]
    left_out: list[tuple[Part, str]] = [
        (column_term(name, runs), "it has one value only") for name in metafeatures if name not in varying
    ]
    out: list[Candidate] = []
    if task is not None:
        out += [Candidate(intercept(task)), Candidate(intercept(task, runs.algorithm), needs=(intercept(task),))]
    for name in varying:
        out += _of_metafeature(name, task, runs)
    factors = [name for name in varying if is_factor(column_term(name, runs), runs)]
    instance = (*(() if task is None else (task,)), *factors)
    if task is not None and len(factors) > 1:
        out.append(Candidate(intercept(*instance), needs=tuple(intercept(task, name) for name in factors)))
    several_budgets = runs.budget is not None and len(runs.levels(runs.budget)) > 1
    if runs.seed is not None:
        out.append(Candidate(intercept(runs.seed)))
        if task is not None:
            out.append(Candidate(intercept(task, runs.seed), needs=(intercept(task),)))
        if factors:
            shared = intercept(*instance) if task is not None else intercept(runs.seed)
            out.append(Candidate(intercept(*instance, runs.seed), needs=(shared,)))
        if several_budgets:  # the run, the unit of replication: without it other terms stand in for its luck
            out.append(Candidate(intercept(*instance, runs.algorithm, runs.seed)))
    if several_budgets:
        of_budget, refused = _of_budget(str(runs.budget), task, runs)
        out += of_budget
        left_out += refused
    return tuple(out), tuple(left_out)


def _of_metafeature(name: str, task: str | None, runs: Runs) -> list[Candidate]:
    """Fixed effect, interaction with the algorithm, instances, and what differs between benchmarks."""
    effect, algorithm = column_term(name, runs), runs.algorithm
    both = Term.of(column_term(algorithm, runs), effect)
    out = [Candidate(effect), Candidate(both, needs=(effect,))]
    if task is None:
        return out
    of_task, of_pair = intercept(task), intercept(task, algorithm)
    if not is_factor(effect, runs):
        slopes = Candidate(slope(effect, task, algorithm), needs=(of_pair, both))
        return [*out, Candidate(slope(effect, task), needs=(of_task, effect)), slopes]
    inside, inside_pair = intercept(task, name), intercept(task, name, algorithm)
    return [
        *out,
        Candidate(inside, needs=(of_task,)),
        Candidate(slope(effect, task), needs=(of_task, effect), absorbs=(inside,)),
        Candidate(inside_pair, needs=(inside, of_pair)),
        Candidate(slope(effect, task, algorithm), needs=(of_pair, both, inside), absorbs=(inside_pair,)),
    ]


def _of_budget(budget: str, task: str | None, runs: Runs) -> tuple[list[Candidate], list[tuple[Part, str]]]:
    """The budget as a sample of budgets or as levels of interest, for all algorithms alike or for each."""
    levels, k = len(runs.levels(budget)), len(runs.algorithms)
    of_budget, of_both = intercept(budget), intercept(runs.algorithm, budget)
    effect = column_term(budget, runs)
    effect = effect if is_factor(effect, runs) else Term.levels(budget)
    both = Term.of(column_term(runs.algorithm, runs), effect)
    out, left_out = [Candidate(of_budget)], list[tuple[Part, str]]()
    if levels > MANY_BUDGETS:
        left_out.append((effect, f"{levels} budgets would take as many effects; add bs({budget}, df=4) by hand"))
    else:
        out.append(Candidate(effect, absorbs=(of_budget,)))
    out.append(Candidate(of_both, needs=(of_budget,)))
    columns = (levels - 1) * (k - 1)
    if levels <= MANY_BUDGETS and columns <= MANY_COLUMNS:
        out.append(Candidate(both, needs=(effect,), absorbs=(of_both,)))
    elif levels <= MANY_BUDGETS:
        left_out.append((both, f"it has {columns} effects; {_BY_HAND}"))
    if task is not None:
        cells, where = len(runs.levels(task)) * levels, intercept(task, budget)
        if cells <= MANY_CELLS:
            out.append(Candidate(where, needs=(intercept(task), of_budget)))
        else:
            left_out.append((where, f"{cells:,} groups across the runs take long; {_BY_HAND}"))
    return out, left_out


# ---------------------------------------------------------------------- what the caller asks for


def candidates_of(runs: Runs, names: Iterable[str] | None) -> Offer:
    """The terms to choose from: by columns and roles (all their terms), whole terms, or None for the whole menu."""
    if names is None:
        return menu(runs, runs.metafeatures)
    texts = [names] if isinstance(names, str) else list(names) if several(names) else []
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ArgumentError(
            f"candidates must name columns, roles or terms, for example ['prior', '(1 | benchmark:seed)'], got "
            f"{names!r}. Leave it out for all terms that the roles of the table suggest."
        )
    roles = {role: getattr(runs, role) for role in ROLES}
    bare = {t: column_of(t, runs) for t in texts if t in runs.columns or roles.get(t) is not None}
    new = [column for column in bare.values() if column not in (*roles.values(), *runs.metafeatures)]
    whole, left_out = menu(runs, [*runs.metafeatures, *dict.fromkeys(new)])
    by_part = {c.part: c for c in whole}
    named = set(bare.values())
    free = named | {runs.algorithm, runs.benchmark}
    chosen = {p: c for p, c in by_part.items() if named & set(p.columns) and set(p.columns) <= free}
    for text in texts:
        for candidate in () if text in bare else _terms_of(text, by_part, runs):
            if candidate.offered or candidate.part not in chosen:
                chosen[candidate.part] = candidate
    order = {part: i for i, part in enumerate(by_part)}
    ranked = sorted(chosen.values(), key=lambda c: (order.get(c.part, len(order)), c.text))
    return tuple(ranked), tuple((part, why) for part, why in left_out if named & set(part.columns))


def _terms_of(text: str, by_part: dict[Part, Candidate], runs: Runs) -> list[Candidate]:
    """The candidates that one text of the caller stands for, with the margins that come along."""
    column = dispersion_column(text, runs)
    if column is not None:
        return [Candidate(Dispersion(column))]
    if is_random(text):
        return [c for bar in random_bars(text, runs) for c in _of_bar(bar, by_part, runs)]
    algorithm = column_term(runs.algorithm, runs)
    out = []
    for term in fixed_terms(text, runs):
        margins = tuple(lower for lower in term.margins if lower != algorithm)
        out += [Candidate(lower, offered=False) for lower in margins]
        out.append(Candidate(term, needs=margins))
    return out


def _of_bar(bar: Bar, by_part: dict[Part, Candidate], runs: Runs) -> list[Candidate]:
    """A random effect; a slope comes with its intercept and its fixed effect."""
    if bar.effects == (INTERCEPT,):
        return [by_part.get(bar, Candidate(bar))]
    if not bar.has_intercept or len(bar.slopes) != 1:
        return [Candidate(bar)]
    (effect,) = bar.slopes
    lower: list[Part] = [] if effect == column_term(runs.algorithm, runs) else [effect]
    lower.append(intercept(*bar.groups))
    inside = (intercept(*bar.groups, *effect.columns),) if is_factor(effect, runs) else ()
    absorbs = by_part[bar].absorbs if bar in by_part else inside
    sloped = Candidate(slope(effect, *bar.groups), needs=tuple(reversed(lower)), absorbs=absorbs)
    return [*(Candidate(part, offered=False) for part in lower), sloped]


# ---------------------------------------------------------------------- models as sets of terms


@dataclass(frozen=True, eq=False)
class Family:
    """The models between a start and all candidates."""

    start: ModelSpec
    runs: Runs
    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[Part, str], ...] = ()

    @cached_property
    def by_part(self) -> dict[Part, Candidate]:
        """The candidates by what they add."""
        return {c.part: c for c in self.candidates}

    @cached_property
    def base(self) -> Model:
        """Candidates that the start has already."""
        has = [c for c in self.candidates if self._in_start(c.part)]
        return frozenset[Candidate]().union(*(self.closure(c) for c in has))

    @cached_property
    def stranded(self) -> dict[Candidate, Part]:
        """Candidates that nothing leads to, and the term that is missing."""
        missing = {c: [need for need in c.needs if not self._reachable(need)] for c in self.candidates}
        return {c: parts[0] for c, parts in missing.items() if parts and c not in self.base}

    @cached_property
    def offered(self) -> tuple[Candidate, ...]:
        """Candidates that may be added, in the order of the menu."""
        return tuple(c for c in self.candidates if c not in self.base and c not in self.stranded)

    def without(self, refused: Iterable[Candidate]) -> Family:
        """The family without some candidates and all that need them."""
        gone = set(refused)
        return replace(self, candidates=tuple(c for c in self.candidates if not self.closure(c) & gone))

    def on(self, runs: Runs) -> Family:
        """The same family on a part of the runs."""
        if runs is not self.runs:
            check_identified(self.start, runs)
        return replace(self, runs=runs)

    def _reachable(self, part: Part) -> bool:
        candidate = self.by_part.get(part)
        if self._in_start(part) or candidate in self.base:
            return True
        return candidate is not None and all(map(self._reachable, candidate.needs))

    def _in_start(self, part: Part) -> bool:
        """Whether the start has a term, or terms that leave it nothing to explain."""
        if isinstance(part, Dispersion):
            return self.start.dispersion == part.column
        if isinstance(part, Term):
            return part in self.start.terms
        if any(set(part.columns) == set(term.columns) for term in self.start.terms):
            return True
        same = self.start.grouped_by(part.groups)
        if not part.slopes:
            return any(bar.has_intercept or self._is_whole(bar) for bar in same)
        return any(set(part.slopes) <= set(bar.effects) and part.diagonal == bar.diagonal for bar in same)

    def _is_whole(self, bar: Bar) -> bool:
        """Whether ``(0 + factor | group)`` holds the intercepts too."""
        return len(bar.effects) == 1 and is_factor(bar.effects[0], self.runs)

    @cached_property
    def _closures(self) -> dict[Candidate, Model]:
        return {}

    def closure(self, candidate: Candidate) -> Model:
        """A candidate with all candidates that it needs or absorbs."""
        if candidate not in self._closures:
            below = [self.by_part[part] for part in (*candidate.needs, *candidate.absorbs) if part in self.by_part]
            self._closures[candidate] = frozenset([candidate]).union(*map(self.closure, below))
        return self._closures[candidate]

    def down(self, candidate: Candidate) -> Model:
        """The candidate with all that must be there before it."""
        return self.closure(candidate) - self.base

    def up(self, candidate: Candidate) -> Model:
        """The candidate with all that build on it."""
        return frozenset(other for other in self.offered if candidate in self.closure(other))

    def steps(self, model: Model) -> tuple[Candidate, ...]:
        """The candidates that can be added to a model: what they need is there.

        The main effects of an interaction come along with it: one that changes nothing on average (a score in ranks)
        would hide the interaction for ever.
        """
        have = model | self.base | {c for c in self.candidates if not c.offered}
        return tuple(c for c in self.offered if c not in model and c.offered and self._needed(c) <= have)

    def _needed(self, candidate: Candidate) -> Model:
        inside = [self.by_part[part] for part in candidate.absorbs if part in self.by_part]
        parts = {*candidate.needs, *(need for c in inside for need in c.needs)} - {*candidate.absorbs}
        needed = {self.by_part[part] for part in parts if part in self.by_part}
        if candidate.kind == "fixed effect":
            return frozenset(c for c in needed if c.kind != "fixed effect")
        return frozenset(needed)

    def company(self, candidate: Candidate, model: Model) -> tuple[str, ...]:
        """The terms that come along when one is added, without those that it absorbs."""
        down = self.down(candidate)
        absorbed = {part for c in down for part in c.absorbs}
        return tuple(sorted(c.text for c in down - model - {candidate} if c.part not in absorbed))

    def removable(self, model: Model) -> tuple[Candidate, ...]:
        """The candidates of a model on which no other of its terms builds."""
        return tuple(c for c in self.offered if c in model and not (self.up(c) & model) - {c})

    def contains(self, candidate: Candidate, model: Model) -> bool:
        """Whether a candidate absorbs a term that a model has."""
        return any(self.by_part.get(part) in model | self.base for part in candidate.absorbs)

    def count(self, most: int) -> int:
        """The number of models, counted no further than `most`."""
        seen = {frozenset[Candidate]()}
        edge = list(seen)
        while edge and len(seen) < most:
            model = edge.pop()
            for candidate in self.offered:
                larger = model | self.down(candidate)
                if candidate not in model and larger not in seen:
                    seen.add(larger)
                    edge.append(larger)
        return min(len(seen), most)

    def spec(self, model: Model) -> ModelSpec:
        """A model as it is fitted; each set of candidates has one way to be written."""
        spec = self.start
        for candidate in self.candidates:
            if candidate in model:
                spec = _with(spec, candidate.part)
        absorbed = {part for candidate in model | self.base for part in candidate.absorbs}
        return replace(spec, bars=tuple(bar for bar in spec.bars if bar not in absorbed))


def _with(spec: ModelSpec, part: Part) -> ModelSpec:
    """A model with one more term; a slope joins the random effects of its groups."""
    if isinstance(part, Dispersion):
        return replace(spec, dispersion=part.column)
    same = () if isinstance(part, Term) else spec.grouped_by(part.groups)
    if isinstance(part, Term) or not (same and part.slopes and part.has_intercept):
        return spec.with_term(part)
    first = same[0]
    wider = Bar.of(first.groups, tuple(dict.fromkeys([INTERCEPT, *first.effects, *part.slopes])))
    return replace(spec, bars=tuple(wider if bar is first else bar for bar in spec.bars))


# ---------------------------------------------------------------------- where a search starts


def start_of(runs: Runs, start: ModelSpec | None) -> ModelSpec:
    """The model to begin with: benchmarks are a sample, or fixed where scores are relative to them (ranks).

    A variance of benchmarks that ranks cannot have would be zero in every model.
    """
    require_runs(runs)
    if start is not None:
        if not isinstance(start, ModelSpec) or start.response != runs.score:
            got = start.formula if isinstance(start, ModelSpec) else type(start).__name__
            raise ArgumentError(
                f"start must be a ModelSpec of the score {runs.score!r}, such as recommend(runs).spec, got {got}. From "
                "a ModelBuilder: builder.select()."
            )
        check_identified(start, runs)
        return start
    spec = ModelSpec(response=runs.score, terms=(column_term(runs.algorithm, runs),))
    if runs.benchmark is None:
        return spec
    if blocks := runs.study.relative_to:
        return spec.with_crossed(*(factor_term(column, runs) for column in blocks))
    sample = spec.with_term(intercept(runs.benchmark))
    return spec if refusal(sample, runs) else sample  # one benchmark, or one row of each


def family_of(runs: Runs, start: ModelSpec | None, candidates: Iterable[str] | None) -> Family:
    """The models to choose from, at least two."""
    begin = start_of(runs, start)
    family = Family(begin, runs, *candidates_of(runs, candidates))
    if family.offered:
        return family
    if candidates is None:
        raise ArgumentError(
            f"there is nothing to choose from: the roles of the table (algorithm, benchmark, seed, budget, "
            f"metafeatures) suggest no term that {begin.formula} lacks. Name columns or terms in candidates, or give "
            f"the table its metafeatures: Runs(..., metafeatures=[...]). Columns: {listed(runs.columns)}."
        )
    stranded = [f"{c.text} needs {missing}" for c, missing in family.stranded.items()]
    why = f" ({'; '.join(stranded)})" if stranded else ""
    raise ArgumentError(
        f"candidates must name at least one term that the start {begin.formula} lacks and can take{why}, got "
        f"{candidates!r}. Begin with a builder that has what they need, or leave candidates out."
    )
