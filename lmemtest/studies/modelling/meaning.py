"""What each term of a model assumes, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.formula import parse_term
from lmemtest.studies.modelling.reading import plain_columns

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.formula.bars import Bar


def fixed_words(label: str, runs: Runs) -> str:
    """What a fixed term assumes.

    Parameters
    ----------
    label : str
        For example "algorithm:budget".
    runs : Runs

    Returns
    -------
    str
    """
    columns = plain_columns(label)
    atoms = list(map(str, parse_term(label).factors))
    if len(atoms) > 1:
        return _interaction(atoms, label, runs)
    if columns == (runs.algorithm,):
        return "the mean of each algorithm, which is what is compared"
    what = columns[0]
    if _is_factor(atoms[0], runs):
        return f"each level of {what} has a mean of its own, the same amount higher or lower for all algorithms"
    if atoms[0] in (what, f"`{what}`"):
        return f"the score goes up or down with {what} in a straight line, equally steep for all algorithms"
    return f"the score follows a curve in {what} ({atoms[0]}), the same for all algorithms"


def _interaction(atoms: list[str], label: str, runs: Runs) -> str:
    names = [plain_columns(atom)[0] for atom in atoms]
    others = [name for name in names if name != runs.algorithm]
    curved = [name for name, atom in zip(names, atoms, strict=True) if not _is_factor(atom, runs)]
    if runs.algorithm in names and len(others) == 1:
        if curved:
            return f"each algorithm follows {curved[0]} in its own way, so which is better can change with {curved[0]}"
        return f"the differences between algorithms may be others at each level of {others[0]}"
    return f"the effect of {names[0]} may be another for each value of {' and '.join(names[1:])} ({label})"


def _is_factor(atom: str, runs: Runs) -> bool:
    if atom.startswith("C("):
        return True
    name = plain_columns(atom)[0]
    plain = atom in (name, f"`{name}`")
    return plain and not runs.frame.collect_schema()[name].is_numeric()


def random_words(bar: Bar, runs: Runs) -> str:
    """What a random-effect term assumes.

    Parameters
    ----------
    bar : Bar
    runs : Runs

    Returns
    -------
    str
    """
    effects = [bar.terms.label(term) for term in bar.terms.terms if term]
    whose = f"each {_noun(bar, runs)}"
    if not effects:
        return _intercept(bar, runs)
    what = " and ".join(effects)
    if bar.diagonal:
        return _variances(bar, what, runs)
    if () in bar.terms.terms:
        return f"{whose} has its own level and its own effect of {what}, normally distributed and correlated"
    if len(effects) == 1 and _is_factor(effects[0], runs):
        return f"{whose} has its own deviation at each level of {what}, normally distributed, correlated in any way"
    return f"{whose} has its own effect of {what}, normally distributed, independent of its level"


def _variances(bar: Bar, what: str, runs: Runs) -> str:
    levels = {name.value for name in bar.terms.columns()}
    if levels == {runs.algorithm} and set(bar.groups) == {runs.benchmark}:
        return (
            "an algorithm does better on some benchmarks than on others, each algorithm to a degree of its own (a "
            "variance each); so a comparison is as sure as the benchmarks show these two algorithms to be"
        )
    whose = f"each {_noun(bar, runs)} has its own deviation at each level of {what}"
    return f"{whose}, independent of the others, with a variance for each level of {what}"


def _intercept(bar: Bar, runs: Runs) -> str:
    groups = set(bar.groups)
    instance, run = set(runs.instance), {runs.algorithm, runs.seed}
    rest = groups - instance
    noun = _noun(bar, runs)
    if groups == {runs.benchmark}:
        return "each benchmark has its own level of difficulty; benchmarks are a sample of benchmarks like them"
    if runs.benchmark in groups and not rest:
        return f"each {noun} has its own level of difficulty"
    if runs.benchmark in groups and rest == {runs.algorithm}:
        return (
            "an algorithm does better on some benchmarks than on others, all algorithms to the same degree; so a "
            "comparison is as sure as the number of benchmarks allows"
        )
    if runs.benchmark in groups and rest == {runs.seed}:
        return "runs with the same seed on one benchmark share their luck, whatever the algorithm"
    if rest == run and (runs.benchmark is None or runs.benchmark in groups):
        return "rows of one run are alike: one curve, not independent observations"
    if groups == run:
        return (
            "an algorithm is lucky with some seeds on all benchmarks; so a comparison is as sure as the number of "
            "seeds allows, too"
        )
    if groups == {runs.seed}:
        return "runs with the same seed are alike on all benchmarks and for all algorithms"
    if groups == {runs.budget}:
        return "scores at the same budget are higher or lower together, without a trend over budgets"
    return f"rows of the same {noun} are alike: they share a deviation, drawn from a normal distribution"


def _noun(bar: Bar, runs: Runs) -> str:
    return "benchmark" if set(bar.groups) == {runs.benchmark} else " x ".join(bar.groups)
