"""The terms that a search may choose from, and the models that they make.

A candidate says which terms it needs before it (an interaction its main effects, a slope its intercept and its fixed
effect, fine groups the coarse ones) and which simpler terms it absorbs: ``(1 + prior | benchmark)`` takes the place of
``(1 | benchmark:prior)``, and ``C(budget)`` that of ``(1 | budget)``. With both relations the models form a
distributive lattice: unions and intersections of models are models, and a larger one never fits worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lmemtest._validate import check_columns
from lmemtest.errors import ArgumentError
from lmemtest.formula import parse_bar, parse_formula, parse_term
from lmemtest.formula.tokens import quote_name
from lmemtest.studies.modelling import reading as term_text

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.formula.bars import Bar
    from lmemtest.studies.modelling.builder import ModelBuilder

# More budgets than this are a continuum; more columns of an interaction cost more than they explain; more benchmarks
# x budgets take seconds per fit.
MANY_BUDGETS, MANY_COLUMNS, MANY_CELLS = 50, 40, 100
_BY_HAND = "name it in candidates to have it tried"
_DISPERSION = re.compile(r"\s*dispersion\((?P<column>.+)\)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A term that may be added.

    Attributes
    ----------
    text : str
        As a formula has it; "residual variance by ..." for a dispersion.
    kind : {"fixed effect", "random intercept", "random slope", "residual variance"}
    columns : tuple of str
        What it reads; for a slope, the effect's columns and then the groups'.
    groups : tuple of str
        Of a random effect.
    effect : str
        The label of a slope's effect; empty for an intercept.
    needs : tuple of str
        Texts of terms that must be in the model before.
    absorbs : tuple of str
        Texts of simpler terms that it contains.
    offered : bool
        False for terms that only come along with others.
    """

    text: str
    kind: str
    columns: tuple[str, ...]
    groups: tuple[str, ...] = ()
    effect: str = ""
    needs: tuple[str, ...] = ()
    absorbs: tuple[str, ...] = ()
    offered: bool = True

    @property
    def depth(self) -> int:
        """How many columns meet in it: those of an interaction, of groups, of a slope and its groups."""
        return len(set(self.columns))


def fixed(label: str, **more: tuple[str, ...] | bool) -> Candidate:
    """A fixed term."""
    return Candidate(text=label, kind="fixed effect", columns=term_text.plain_columns(label), **more)  # type: ignore[arg-type]


def intercept(*groups: str, **more: tuple[str, ...] | bool) -> Candidate:
    """A random intercept."""
    text = f"(1 | {':'.join(map(quote_name, groups))})"
    return Candidate(text=text, kind="random intercept", columns=groups, groups=groups, **more)  # type: ignore[arg-type]


def slope(effect: str, *groups: str, **more: tuple[str, ...] | bool) -> Candidate:
    """A random slope, correlated with the intercept of its groups."""
    text = f"(1 + {effect} | {':'.join(map(quote_name, groups))})"
    columns = (*term_text.plain_columns(effect), *groups)
    return Candidate(text=text, kind="random slope", columns=columns, groups=groups, effect=effect, **more)  # type: ignore[arg-type]


def dispersion(column: str) -> Candidate:
    """Residual variances by the levels of a column."""
    return Candidate(text=f"residual variance by {column}", kind="residual variance", columns=(column,))


# ---------------------------------------------------------------------- what a table offers


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """All terms that the roles of a table suggest.

    Attributes
    ----------
    candidates : tuple of Candidate
        Simple ones before those that need them.
    left_out : tuple of (str, str)
        Terms that are not offered, and why.
    """

    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[str, str], ...]


def menu(runs: Runs, metafeatures: Sequence[str]) -> Menu:
    """The terms for the roles of a table and some metafeatures."""
    tool, task = label_of(runs.algorithm, runs), _benchmark(runs)
    where = () if task is None else (task,)
    known = [name for name in metafeatures if len(runs.levels(name)) > 1]
    left_out = [(quote_name(name), "it has one value only") for name in metafeatures if name not in known]
    out: list[Candidate] = []
    if task is not None:
        out += [intercept(task), intercept(task, runs.algorithm, needs=(intercept(task).text,))]
    for name in known:
        out += _of_metafeature(name, tool, task, runs)
    factors = [name for name in known if is_factor(label_of(name, runs), runs)]
    instance = (*where, *factors)
    if task is not None and len(factors) > 1:
        out.append(intercept(*instance, needs=tuple(intercept(task, name).text for name in factors)))
    if runs.seed is not None:
        out += _of_seed(runs.seed, task, instance, runs)
    if runs.budget is not None and len(runs.levels(runs.budget)) > 1:
        of_budget, refused = _of_budget(runs.budget, tool, task, runs)
        out += of_budget
        left_out += refused
    return Menu(tuple(out), tuple(left_out))


def _of_metafeature(name: str, tool: str, task: str | None, runs: Runs) -> list[Candidate]:
    """Fixed effect, interaction with the algorithm, instances, and what differs between benchmarks."""
    label, algorithm = label_of(name, runs), runs.algorithm
    both = f"{tool}:{label}"
    out = [fixed(label), fixed(both, needs=(label,))]
    if task is None:
        return out
    of_task, of_pair = intercept(task).text, intercept(task, algorithm).text
    inside: tuple[str, ...] = ()
    inside_pair: tuple[str, ...] = ()
    if is_factor(label, runs):
        out.append(intercept(task, name, needs=(of_task,)))
        inside = (out[-1].text,)
    out.append(slope(label, task, needs=(of_task, label), absorbs=inside))
    if is_factor(label, runs):
        out.append(intercept(task, name, algorithm, needs=(*inside, of_pair)))
        inside_pair = (out[-1].text,)
    out.append(slope(label, task, algorithm, needs=(of_pair, both, *inside), absorbs=inside_pair))
    return out


def _of_seed(seed: str, task: str | None, instance: tuple[str, ...], runs: Runs) -> list[Candidate]:
    """Luck that runs share, and the run itself where it has several scores."""
    out = [intercept(seed)]
    run = (*instance, runs.algorithm, seed)
    if task is not None:
        out.append(intercept(task, seed, needs=(intercept(task).text,)))
    if len(instance) > (task is not None):
        shared = (intercept(*instance).text,) if task is not None else (intercept(seed).text,)
        out.append(intercept(*instance, seed, needs=shared))
    if runs.budget is not None and len(runs.levels(runs.budget)) > 1:
        out.append(intercept(*run))  # the unit of replication: without it other terms stand in for its luck
    return out


def _of_budget(budget: str, tool: str, task: str | None, runs: Runs) -> tuple[list[Candidate], list[tuple[str, str]]]:
    """The budget as a sample of budgets or as levels of interest, for all algorithms alike or for each."""
    levels, k = len(runs.levels(budget)), len(runs.algorithms)
    of_budget, of_both = intercept(budget).text, intercept(runs.algorithm, budget).text
    name = label_of(budget, runs)
    label = name if is_factor(name, runs) else f"C({quote_name(budget)})"
    out = [intercept(budget)]
    left_out = []
    if levels > MANY_BUDGETS:
        left_out.append((label, f"{levels} budgets would take as many effects; add bs({budget}, df=4) by hand"))
    else:
        out.append(fixed(label, absorbs=(of_budget,)))
    out.append(intercept(runs.algorithm, budget, needs=(of_budget,)))
    columns = (levels - 1) * (k - 1)
    if levels <= MANY_BUDGETS and columns <= MANY_COLUMNS:
        out.append(fixed(f"{tool}:{label}", needs=(label,), absorbs=(of_both,)))
    elif levels <= MANY_BUDGETS:
        left_out.append((f"{tool}:{label}", f"it has {columns} effects; {_BY_HAND}"))
    if task is not None:
        cells = len(runs.levels(task)) * levels
        crossed = intercept(task, budget, needs=(intercept(task).text, of_budget))
        if cells <= MANY_CELLS:
            out.append(crossed)
        else:
            left_out.append((crossed.text, f"{cells:,} groups across the runs take long; {_BY_HAND}"))
    return out, left_out


def _benchmark(runs: Runs) -> str | None:
    """The benchmark column, if there are several."""
    return runs.benchmark if runs.benchmark is not None and len(runs.levels(runs.benchmark)) > 1 else None


def label_of(column: str, runs: Runs) -> str:
    """The column as a fixed term; numeric algorithms, benchmarks and seeds are names."""
    return term_text.fixed_labels("`" + column.replace("`", "``") + "`", runs)[0]


def is_factor(label: str, runs: Runs) -> bool:
    """Whether a label of one column stands for its levels."""
    if label.startswith("C("):
        return True
    columns = term_text.plain_columns(label)
    plain = len(columns) == 1 and label in (columns[0], quote_name(columns[0]))
    return plain and not runs.frame.collect_schema()[columns[0]].is_numeric()


# ---------------------------------------------------------------------- what the caller asks for


def candidates_of(runs: Runs, names: Iterable[str] | None) -> Menu:
    """The terms to choose from.

    Parameters
    ----------
    runs : Runs
    names : iterable of str or None
        Columns and roles (all their terms), whole terms, or None for the roles of the table.
    """
    if names is None:
        return menu(runs, runs.metafeatures)
    texts = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else []
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ArgumentError(
            f"candidates must name columns, roles or terms, for example ['prior', '(1 | benchmark:seed)'], got "
            f"{names!r}. Leave it out for all terms that the roles of the table suggest."
        )
    bare = {text: term_text.column_of(text, runs) for text in texts if _is_name(text, runs)}
    roles = {runs.algorithm, runs.benchmark, runs.seed, runs.budget}
    new = [column for column in bare.values() if column not in roles and column not in runs.metafeatures]
    whole = menu(runs, [*runs.metafeatures, *dict.fromkeys(new)])
    named = set(bare.values())
    free = named | {runs.algorithm, runs.benchmark}
    chosen = {c.text: c for c in whole.candidates if named & set(c.columns) and set(c.columns) <= free}
    left_out = [(text, why) for text, why in whole.left_out if named & set(term_text.plain_columns(text))]
    for text in texts:
        if text not in bare:
            for candidate in _terms_of(text, runs, whole):
                if candidate.offered or candidate.text not in chosen:
                    chosen[candidate.text] = candidate
    order = {c.text: i for i, c in enumerate(whole.candidates)}
    ranked = sorted(chosen.values(), key=lambda c: (order.get(c.text, len(order)), c.text))
    return Menu(tuple(ranked), tuple(left_out))


def _is_name(text: str, runs: Runs) -> bool:
    return text in runs.columns or (text in term_text.ROLES and getattr(runs, text) is not None)


def _terms_of(text: str, runs: Runs, whole: Menu) -> list[Candidate]:
    """The candidates that one text of the caller stands for, with the margins that come along."""
    match = _DISPERSION.fullmatch(text)
    if match is not None:
        column = term_text.column_of(match["column"].strip(" `'\""), runs)
        check_columns(column, runs.columns, argument="candidates")
        return [dispersion(column)]
    known = {c.text: c for c in whole.candidates}
    if not term_text.is_random(text):
        return [c for label in term_text.fixed_labels(text, runs) for c in _fixed_with_margins(label, runs)]
    return [c for bar in term_text.random_bars(text, runs) for c in _of_bar(bar, known, runs)]


def _fixed_with_margins(label: str, runs: Runs) -> list[Candidate]:
    """A fixed term, and the lower terms of an interaction, which come along where the model lacks them."""
    tool = label_of(runs.algorithm, runs)
    lower = [term.label for term in parse_term(label).margins]
    margins = [fixed(text, offered=False) for text in lower if not term_text.same_term(text, tool)]
    return [*margins, fixed(label, needs=tuple(c.text for c in margins))]


def _of_bar(bar: Bar, known: dict[str, Candidate], runs: Runs) -> list[Candidate]:
    """A random effect; a slope comes with its intercept and its fixed effect."""
    effects = [bar.terms.label(term) for term in bar.terms.terms if term]
    if () in bar.terms.terms and not effects:
        own = intercept(*bar.groups)
        return [known.get(own.text, own)]
    if () in bar.terms.terms and len(effects) == 1:
        (label,) = effects
        first = intercept(*bar.groups, offered=False)
        fixed_part = [] if label == label_of(runs.algorithm, runs) else [fixed(label, offered=False)]
        like = known.get(slope(label, *bar.groups).text)
        absorbs = like.absorbs if like is not None else _inside(label, bar.groups, runs)
        lower = (first.text, *(c.text for c in fixed_part))
        return [*fixed_part, first, slope(label, *bar.groups, needs=lower, absorbs=absorbs)]
    columns = tuple(dict.fromkeys([name.value for name in bar.terms.columns()] + list(bar.groups)))
    return [Candidate(text=str(bar), kind="random slope", columns=columns, groups=bar.groups, effect=bar.left)]


def _inside(label: str, groups: tuple[str, ...], runs: Runs) -> tuple[str, ...]:
    """The intercepts of cells that a slope of a factor contains, in the way that the menu writes them."""
    if not is_factor(label, runs):
        return ()
    (column,) = term_text.plain_columns(label)
    wanted = {*groups, column}
    like = [c.text for c in menu(runs, runs.metafeatures).candidates if set(c.groups) == wanted and not c.effect]
    return tuple(like) or (intercept(*groups, column).text,)


# ---------------------------------------------------------------------- models as sets of terms


@dataclass(frozen=True, eq=False)
class Family:
    """The models between a start and all candidates.

    Parameters
    ----------
    start : ModelBuilder
        In every model.
    candidates : tuple of Candidate
    left_out : tuple of (str, str)
        Terms that are not offered, and why.

    Attributes
    ----------
    base : frozenset of str
        Candidates that the start has already.
    stranded : dict
        Candidates that nothing leads to, and the term that is missing.
    """

    start: ModelBuilder
    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    base: frozenset[str] = field(init=False)
    stranded: dict[str, str] = field(init=False)
    by_text: dict[str, Candidate] = field(init=False)

    def __post_init__(self) -> None:
        known = {c.text: c for c in self.candidates}
        object.__setattr__(self, "by_text", known)
        has = {text for text, c in known.items() if self._in_start(c)}
        for text in list(has):
            has |= self._closure(text)
        object.__setattr__(self, "base", frozenset(has & set(known)))
        object.__setattr__(self, "stranded", {})
        for text, candidate in known.items():
            missing = [n for n in candidate.needs if not self._reachable(n)]
            if missing and text not in has:
                self.stranded[text] = missing[0]

    @cached_property
    def offered(self) -> tuple[str, ...]:
        """Terms that may be added, in the order of the menu."""
        return tuple(c.text for c in self.candidates if c.text not in self.base and c.text not in self.stranded)

    def without(self, refused: Iterable[str]) -> Family:
        """The family without some terms and all that need them."""
        gone = set(refused)
        gone |= {text for text in self.by_text if self._closure(text) & gone}
        return Family(self.start, tuple(c for c in self.candidates if c.text not in gone), self.left_out)

    def _reachable(self, text: str) -> bool:
        if text in self.base or self._start_has(text):
            return True
        candidate = self.by_text.get(text)
        return candidate is not None and all(map(self._reachable, candidate.needs))

    def _start_has(self, text: str) -> bool:
        """Whether the start has a term that is no candidate."""
        if any(term_text.is_random(text) is False and term_text.same_term(text, own) for own in self.start.terms):
            return True
        if not term_text.is_random(text):
            return False
        groups = {frozenset(bar.groups) for bar in self._bars if () in bar.terms.terms or _is_whole(bar, self.start)}
        groups |= self._fixed
        bar = parse_bar(text)
        return bar.left == "1" and frozenset(bar.groups) in groups

    @cached_property
    def _bars(self) -> tuple[Bar, ...]:
        return parse_formula(self.start.formula()).bars

    @cached_property
    def _fixed(self) -> frozenset[frozenset[str]]:
        """Columns of each fixed term: a random effect of the same columns has nothing left to explain."""
        return frozenset(frozenset(term_text.plain_columns(label)) for label in self.start.terms)

    def _in_start(self, c: Candidate) -> bool:
        if c.kind == "residual variance":
            return self.start.residual_by == c.columns[0]
        if c.kind == "fixed effect":
            return any(term_text.same_term(c.text, own) for own in self.start.terms)
        if frozenset(c.columns) in self._fixed:
            return True
        same = [bar for bar in self._bars if set(bar.groups) == set(c.groups)]
        if c.kind == "random intercept":
            return any(() in bar.terms.terms or _is_whole(bar, self.start) for bar in same)
        return any(c.effect in map(bar.terms.label, bar.terms.terms) or bar.left == c.effect for bar in same)

    def _closure(self, text: str) -> set[str]:
        out = {text}
        for other in (*self.by_text[text].needs, *self.by_text[text].absorbs):
            if other in self.by_text:
                out |= self._closure(other)
        return out

    def down(self, text: str) -> frozenset[str]:
        """The term with all that must be there before it."""
        return frozenset(self._closure(text)) - self.base

    def up(self, text: str) -> frozenset[str]:
        """The term with all that build on it."""
        return frozenset(other for other in self.offered if text in self._closure(other))

    def steps(self, model: frozenset[str]) -> tuple[str, ...]:
        """The terms that can be added to a model: what they need is there.

        The main effects of an interaction come along with it: one that changes nothing on average (a score in ranks)
        would hide the interaction for ever.
        """
        have = model | self.base | {c.text for c in self.candidates if not c.offered}
        return tuple(
            text
            for text in self.offered
            if text not in model and self.by_text[text].offered and self._needed(self.by_text[text]) <= have
        )

    def _needed(self, candidate: Candidate) -> set[str]:
        absorbed = {need for text in candidate.absorbs if text in self.by_text for need in self.by_text[text].needs}
        needed = ({*candidate.needs, *absorbed} & set(self.by_text)) - set(candidate.absorbs)
        if candidate.kind == "fixed effect":
            return {text for text in needed if self.by_text[text].kind != "fixed effect"}
        return needed

    def company(self, text: str, model: frozenset[str]) -> tuple[str, ...]:
        """The terms that come along when one is added, without those that it absorbs."""
        absorbed = {other for t in self.down(text) for other in self.by_text[t].absorbs}
        return tuple(sorted(self.down(text) - model - {text} - absorbed))

    def removable(self, model: frozenset[str]) -> tuple[str, ...]:
        """The terms of a model on which no other of its terms builds."""
        return tuple(t for t in self.offered if t in model and not (self.up(t) & model) - {t})

    def count(self, most: int) -> int:
        """The number of models, counted no further than `most`."""
        seen = {frozenset[str]()}
        edge = list(seen)
        while edge and len(seen) < most:
            model = edge.pop()
            for text in self.offered:
                larger = model | self.down(text)
                if text not in model and larger not in seen:
                    seen.add(larger)
                    edge.append(larger)
        return min(len(seen), most)

    def parts(self, model: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
        """Fixed terms, random effects and dispersion of a model; each set of terms has one way to be written."""
        added = [c for c in self.candidates if c.text in model]
        terms = (*self.start.terms, *(c.text for c in added if c.kind == "fixed effect"))
        absorbed = {a for text in (*model, *self.base) for a in self.by_text[text].absorbs}
        bars = [_Bar(bar.groups, tuple(map(bar.terms.label, bar.terms.terms)), str(bar)) for bar in self._bars]
        for c in added:
            if c.groups:
                bars = _with(bars, c)
        texts = tuple(bar.text for bar in bars if bar.text not in absorbed)
        residual = next((c.columns[0] for c in added if c.kind == "residual variance"), self.start.residual_by)
        return terms, texts, residual

    def formula(self, model: frozenset[str]) -> tuple[str, str | None]:
        """A model as lme4 writes it, and the column of its residual variances."""
        terms, bars, residual = self.parts(model)
        right = " + ".join([*(terms or ("1",)), *bars])
        return f"{quote_name(self.start.runs.score)} ~ {right}", residual


@dataclass(frozen=True, slots=True)
class _Bar:
    groups: tuple[str, ...]
    effects: tuple[str, ...]
    text: str


def _with(bars: list[_Bar], c: Candidate) -> list[_Bar]:
    """Random effects with one more; a slope joins the intercept of its groups."""
    group = ":".join(map(quote_name, c.groups))
    at = next((i for i, bar in enumerate(bars) if set(bar.groups) == set(c.groups)), None)
    if c.kind == "random intercept":
        return bars if at is not None else [*bars, _Bar(c.groups, ("1",), c.text)]
    if at is None or c.text.startswith("(0"):
        return [*bars, _Bar(c.groups, ("1", c.effect), c.text)]
    if c.effect in bars[at].effects:
        return bars
    effects = tuple(dict.fromkeys(("1", *bars[at].effects, c.effect)))
    return [*bars[:at], _Bar(bars[at].groups, effects, f"({' + '.join(effects)} | {group})"), *bars[at + 1 :]]


def _is_whole(bar: Bar, builder: ModelBuilder) -> bool:
    """Whether ``(0 + factor | group)`` holds the intercepts too."""
    labels = list(map(bar.terms.label, bar.terms.terms))
    return len(labels) == 1 and is_factor(labels[0], builder.runs)
