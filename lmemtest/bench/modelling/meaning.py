"""What each term of a model assumes, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lmemtest.bench.modelling.reading import is_factor
from lmemtest.core.words import GROUPS, plural, spoken
from lmemtest.lmm.formula import Bar, Term

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

_SAMPLE = "so a comparison is as sure as the number of benchmarks allows"
_ADVANTAGE = "an algorithm does better on some benchmarks than on others"


def meaning(term: Term | Bar, runs: Runs, beside: Iterable[Bar] = ()) -> str:
    """What a term assumes about the runs, by their roles, `beside` the random terms of its model."""
    if isinstance(term, Term):
        return _of_fixed(term, runs)
    if kind_of(term.groups, runs) != "interaction":
        return _of_bar(term, runs)
    of_families = any(kind_of(bar.groups, runs) == "family_interaction" for bar in beside)
    # with families these are what there must be more of
    return _of_bar(term, runs, ", beyond what the family explains" if of_families else f"; {_SAMPLE}")


def of_residual(column: str | None) -> str:
    """What a model assumes about what is left, which may have a variance for each level of a column."""
    if column is None:
        return "what is left varies equally for all rows, and rows are independent given the terms above"
    return f"what is left has a variance of its own for each level of {column}"


def _of_fixed(term: Term, runs: Runs) -> str:
    if len(term.factors) > 1:
        return _of_interaction(term, runs)
    column = term.columns[0]
    if term.columns == (runs.algorithm,):
        return "the mean of each algorithm, which is what is compared"
    if is_factor(term, runs):
        return f"each level of {column} has a mean of its own, the same amount higher or lower for all algorithms"
    if term.is_plain:
        return f"the score goes up or down with {column} in a straight line, equally steep for all algorithms"
    return f"the score follows a curve in {column} ({term}), the same for all algorithms"


def _of_interaction(term: Term, runs: Runs) -> str:
    parts = [Term((factor,)) for factor in term.factors]
    names = [part.columns[0] for part in parts]
    others = [name for name in names if name != runs.algorithm]
    curved = [name for name, part in zip(names, parts, strict=True) if not is_factor(part, runs)]
    if runs.algorithm in names and len(others) == 1:
        if curved:
            return f"each algorithm follows {curved[0]} in its own way, so which is better can change with {curved[0]}"
        return f"the differences between algorithms may be others at each level of {others[0]}"
    return f"the effect of {names[0]} may be another for each value of {' and '.join(names[1:])} ({term})"


def _of_bar(bar: Bar, runs: Runs, sample: str = f"; {_SAMPLE}") -> str:
    """`sample`: what an advantage on benchmarks says of how sure a comparison is."""
    if not bar.slopes:
        return _of_intercept(bar, runs, sample)
    noun = _noun(bar, runs)
    what = " and ".join(effect.label for effect in bar.slopes)
    levels = not bar.has_intercept and len(bar.slopes) == 1 and is_factor(bar.slopes[0], runs)
    of_pairs = set(bar.groups) == {runs.benchmark, runs.algorithm}
    if bar.diagonal:
        if bar.slopes[0].columns == (runs.algorithm,) and set(bar.groups) == {runs.benchmark}:
            return (
                f"{_ADVANTAGE}, each algorithm to a degree of its own (a variance each); so a comparison is as sure as "
                "the benchmarks show these two algorithms to be"
            )
        return (
            f"each {noun} has its own deviation at each level of {what}, independent of the others, with a variance "
            f"for each level of {what}"
        )
    column = bar.slopes[0].columns[0]
    if levels and of_pairs:
        return f"{_ADVANTAGE}, which may depend on {column}, all algorithms to the same degree{sample}"
    if levels:
        return (
            f"each {noun} has its own deviation at each level of {column}, normally distributed, correlated in any way"
        )
    if bar.has_intercept:
        return f"each {noun} has its own level and its own effect of {what}, normally distributed and correlated"
    return f"each {noun} has its own effect of {what}, normally distributed, independent of its level"


def _of_intercept(bar: Bar, runs: Runs, sample: str) -> str:
    groups, kind = set(bar.groups), kind_of(bar.groups, runs)
    if kind in ("family", "family_interaction"):
        finest = next(name for name in reversed(bar.groups) if name in runs.family)
        return GROUPS[kind][0].format(groups=spoken(finest), noun=plural(finest))
    rest = groups - set(runs.instance)
    beside = {"seed": {runs.seed}, "run": {runs.algorithm, runs.seed}, "luck": {runs.algorithm, runs.seed}}
    by_instance = bool(groups & set(runs.instance))
    if rest != beside.get(kind, rest) or (kind == "budget" and len(groups) > 1) or (kind == "luck" and by_instance):
        kind = "other"
    at = "benchmark" if groups <= {runs.benchmark, runs.algorithm, runs.seed} else "instance"
    where = f" on one {at}" if by_instance else "" if runs.benchmark is None else " on all benchmarks"
    text = GROUPS[kind][0].format(groups=_noun(bar, runs), noun=at, where=where)
    if groups == {runs.benchmark}:
        return f"{text}; benchmarks are a sample of benchmarks like them"
    if kind != "interaction":
        return text
    return f"{text}{sample}" if at == "benchmark" else f"{text}, beyond what the benchmark explains"


def kind_of(groups: Iterable[str], runs: Runs) -> str:
    """What some columns group rows into, by their roles: a key of `words.GROUPS`."""
    own = set(groups)
    if runs.budget in own:
        return "budget"
    if runs.seed in own:
        everywhere = runs.benchmark is not None and runs.benchmark not in own
        return "seed" if runs.algorithm not in own else "luck" if everywhere else "run"
    others = own - {runs.algorithm}
    if others and others <= set(runs.family):
        return "family_interaction" if runs.algorithm in own else "family"
    if not others or not others <= set(runs.instance) or (runs.benchmark is not None and runs.benchmark not in others):
        return "other"
    return "interaction" if runs.algorithm in own else "benchmark"


def _noun(bar: Bar, runs: Runs) -> str:
    return "benchmark" if set(bar.groups) == {runs.benchmark} else " x ".join(bar.groups)
