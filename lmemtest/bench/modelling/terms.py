"""Terms of a model of runs: read in the caller's words, called for by a design, identified by it, and what they assume.

This is the only place where a study reads text; all that follows works on `Term`, `Bar` and `ModelSpec`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.core.caller import advice
from lmemtest.core.frames import column_type
from lmemtest.core.words import GROUPS, listed, plural, spoken, suggest
from lmemtest.errors import ArgumentError, DesignError, FormulaError, UnknownColumnError
from lmemtest.lmm.formula import INTERCEPT, Bar, Term, parse_right
from lmemtest.lmm.formula.design import held_by_fixed
from lmemtest.lmm.formula.syntax import DIAGONAL, Call
from lmemtest.lmm.formula.tokens import CONSTANTS, Token, quote_name, tokenize
from lmemtest.lmm.model.fitting import check_variances, same_partition
from lmemtest.lmm.model.spec import ModelSpec

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.formula.design import Design, RandomDesign


ROLES = ("algorithm", "benchmark", "family", "seed", "budget")
_BARS = ("|", "||")
_SAMPLE = "so the number of benchmarks limits the precision of a comparison"
_ADVANTAGE = "an algorithm does better on some benchmarks than on others"


# ---------------------------------------------------------------------- columns


def is_numeric(column: str, runs: Runs) -> bool:
    """Whether a column holds numbers."""
    return bool(column_type(runs.frame, column).is_numeric())


def factor_term(column: str, runs: Runs) -> Term:
    """The levels of a column; numbers that stand for levels (1, 2, 3) must not become a slope."""
    return Term.levels(column) if is_numeric(column, runs) else Term.of(column)


def column_term(column: str, runs: Runs) -> Term:
    """The column as a fixed term: numeric algorithms, benchmarks and seeds are names, other numbers a slope."""
    return factor_term(column, runs) if column in named_by(runs) else Term.of(column)


def named_by(runs: Runs) -> set[str | None]:
    """Columns whose numbers are names, never a slope."""
    return {runs.algorithm, runs.benchmark, *runs.family, runs.seed}


def is_factor(term: Term, runs: Runs) -> bool:
    """Whether a term stands for the levels of one column."""
    if len(term.factors) != 1:
        return False
    (atom,) = term.factors
    return atom.function == "C" if isinstance(atom, Call) else not is_numeric(atom.value, runs)


def column_of(name: str, runs: Runs, *, quoted: bool = False) -> str:
    """The column that a word of the user names: a column, a role, or in backticks (`quoted`) always a column."""
    columns = runs.columns
    role = _column_with(name, runs) if name in ROLES and not quoted else None
    if role is not None and name in columns and role != name:
        raise ArgumentError(
            f"'{name}' is a column and also the role of the column '{role}'. Write `{name}` in backticks "
            f"for the column, or '{role}' for the role."
        )
    if role is not None:
        return str(role)
    if name in ROLES and name not in columns:
        raise UnknownColumnError(
            f"the runs have no {name}: no column was named for it. Say which one it is: Runs(..., {name}=...). "
            f"Columns: {listed(columns)}."
        )
    if name not in columns:
        check = [*columns, *(r for r in ROLES if getattr(runs, r))]
        raise UnknownColumnError(
            f"the model names '{name}', which is not a column or role of the runs. Columns: {listed(columns)}."
            f"{suggest(name, check)}"
        )
    return name


def _column_with(role: str, runs: Runs) -> str | None:
    """The column that has a role; None for one that is not given."""
    if role != "family":
        column: str | None = getattr(runs, role)
        return column
    if len(runs.family) > 1:
        raise ArgumentError(
            f"'family' stands for one column, but these runs have several: {listed(runs.family)}. Name the one that "
            f"you mean; the finest families are {':'.join(map(quote_name, runs.family))!r}."
        )
    return next(iter(runs.family), None)


def with_columns(text: str, runs: Runs, *, factors: bool = True) -> str:
    """The same terms with roles replaced by their columns.

    With `factors`, numeric algorithms, benchmarks and seeds are written as ``C(column)``, since their numbers are
    names; not within a call, and not as the group of a random effect, where every column is a factor.
    """
    tokens = tokenize(text)
    names = named_by(runs)
    out, position = [], 0
    brackets: list[str] = []  # "call", "sum", or "group" once its bar has been passed
    before: Token | None = None
    for token, after in pairwise(tokens):
        if token.kind == "operator":
            if token.value == "(":
                called = before is not None and before.kind == "name" and not before.quoted
                brackets.append("call" if called and before.value != DIAGONAL else "sum")  # type: ignore[union-attr]
            elif token.value == ")" and brackets:
                brackets.pop()
            elif token.value in _BARS and brackets:
                brackets[-1] = "group"
        elif _is_column(token, after, "call" in brackets):
            column = column_of(token.value, runs, quoted=token.quoted)
            level = factors and not {"call", "group"} & set(brackets) and column in names
            new = f"C({quote_name(column)})" if level and is_numeric(column, runs) else quote_name(column)
            out += [text[position : token.start], new]
            position = token.end
        before = token
    return "".join([*out, text[position:]])


def _is_column(token: Token, after: Token, inside: bool) -> bool:
    if token.kind != "name" or (token.value in CONSTANTS and not token.quoted):
        return False
    called = after.value == "(" and after.kind == "operator" and not token.quoted
    option = inside and after.value in ("=", ".") and after.kind == "operator"
    return not (called or option)


# ---------------------------------------------------------------------- terms


def is_random(text: object) -> bool:
    """Whether a text is a random effect in brackets."""
    return isinstance(text, str) and any(t.kind == "operator" and t.value in _BARS for t in tokenize(text))


def fixed_terms(text: str, runs: Runs, what: str = "a fixed term") -> tuple[Term, ...]:
    """The fixed terms that a text such as ``"algorithm * budget"`` stands for."""
    if is_random(_checked(text, what)):
        raise ArgumentError(f"'{text}' is a random effect; add it with .random() or .slope().")
    terms, _ = _read(with_columns(text, runs), runs)
    if INTERCEPT not in terms:
        raise ArgumentError(f"'{text}' removes the intercept, which every model of a builder has; leave the 0 out.")
    return tuple(term for term in terms if term != INTERCEPT)


def random_bars(text: str, runs: Runs) -> tuple[Bar, ...]:
    """The random effects that a text stands for: groups like ``"benchmark:seed"``, or a term in brackets."""
    bars = text if is_random(_checked(text, "a random effect")) else f"(1 | {text})"
    terms, effects = _read(with_columns(bars, runs), runs)
    if terms != (INTERCEPT,):
        raise ArgumentError(f"{text!r} has fixed terms besides its random effects; add them with .fixed().")
    return effects


def one_factor(text: str, runs: Runs) -> Term:
    """The factor whose levels vary, each with a variance of its own."""
    terms = fixed_terms(text, runs, "by")
    if len(terms) != 1:
        raise ArgumentError(f"by must be one column or role, such as 'algorithm', got {text!r}.")
    return terms[0]


def diagonal_bars(factor: Term, group: str, runs: Runs) -> tuple[Bar, ...]:
    """Independent effects of every level of a factor, with a variance each, in groups like ``"benchmark:seed"``."""
    if is_random(_checked(group, "a random effect")):
        raise ArgumentError(f"by is of groups like 'benchmark'; {group!r} is a whole term, which says what varies.")
    return _read(f"{DIAGONAL}({factor} | {with_columns(group, runs, factors=False)})", runs)[1]


def one_group(text: str, runs: Runs) -> tuple[str, ...]:
    """The columns of one grouping such as ``"benchmark:seed"``."""
    _, bars = _read(f"(1 | {with_columns(_checked(text, 'group'), runs, factors=False)})", runs)
    if len(bars) != 1:
        raise ArgumentError(f"group must be one group like 'benchmark' or 'benchmark:seed', got {text!r}.")
    return bars[0].groups


def dispersion_column(text: str, runs: Runs) -> str | None:
    """The column of ``dispersion(column)``, or None where a text is something else."""
    tokens = tokenize(text)
    if [t.value for t in tokens[:2]] != ["dispersion", "("] or [t.value for t in tokens[3:4]] != [")"]:
        return None
    return column_of(tokens[2].value, runs, quoted=tokens[2].quoted)


def _read(text: str, runs: Runs) -> tuple[tuple[Term, ...], tuple[Bar, ...]]:
    terms, bars = parse_right(text)
    if any(runs.score in columns for columns in (*(t.columns for t in terms), *(b.columns for b in bars))):
        raise FormulaError(f"the response '{runs.score}' cannot also stand on the right side; remove it there.")
    return terms, bars


def _checked(text: object, what: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError(f"{what} must be text like 'benchmark' or 'benchmark:seed', got {text!r}.")
    if "~" in text:
        raise FormulaError(f"{what} is a part of the right side, without '~'; got {text!r}.")
    return text


# ---------------------------------------------------------------------- terms that a design calls for

# More budgets than this are a continuum: one effect each would eat the data; and so would more of algorithms at them.
_MANY_BUDGETS, _MANY_EFFECTS = 50, 200
# Beyond this the covariances of the effects at the levels of a metafeature (10 for four) eat the benchmarks.
_MOST_CONDITIONS, _FEWEST_BENCHMARKS = 4, 6


def called_for(
    runs: Runs,
    blocks: tuple[str, ...],
    of_seeds: Iterable[Term | Bar],
    *,
    families: Iterable[tuple[str, ...]],
    fixed_family: str | None,
    exactly: bool,
) -> tuple[ModelSpec, str, list[tuple[str, str]], list[str], list[str]]:
    """The model of runs, its formula as it is shown, what each term assumes, the terms that are not identified, notes.

    The columns of `blocks` have fixed effects, `of_seeds` are those of seeds across benchmarks, `families` have random
    effects and `fixed_family` means of its own; `exactly` these benchmarks are what a claim is about.
    """
    study = runs.study
    candidates = [bar for bar in _candidates(runs, families) if not exactly or runs.seed in bar.groups]
    of_seeds = list(of_seeds)
    bars_of_seeds = [part for part in of_seeds if isinstance(part, Bar)]
    kept, left_out = _identified(runs, [*candidates, *bars_of_seeds], blocks)
    if not study.several_benchmarks:
        rows = runs.budget is not None and runs.seed is None
        rows = rows and study.count(*study.run) < runs.n_rows == study.count(*study.run, str(runs.budget))
        if rows or (runs.curve is not None and study.count(*study.instance, runs.algorithm) == runs.n_rows):
            raise _nothing_repeated(runs)
    fixed, notes = _fixed(runs, fixed_family, blocks)
    fixed += [part for part in of_seeds if isinstance(part, Term)]
    factors = [factor_term(column, runs) for column in blocks]
    if exactly:  # each has means of its own, and so at its instances
        factors, fixed = [fixed[0], *factors], [term for term in fixed[1:] if not {*term.columns} & {*blocks}]
    written_as = [term.label for term in fixed] + [" * ".join(term.label for term in factors)] * bool(blocks)
    crossed = [Term.of(*part) for size in range(1, len(factors) + 1) for part in combinations(factors, size)]
    terms = tuple(sorted(dict.fromkeys([*fixed, *crossed]), key=lambda term: len(term.factors)))
    columns = prod(study.count(name) for name in {name for term in terms for name in term.columns})  # at most
    for bar in list(kept):  # a fit would call the variance of what the fixed effects hold already arbitrary
        if study.count(*bar.groups) <= columns and _held(terms, bar, runs):
            if runs.algorithm in bar.groups:
                raise _nothing_repeated(runs)
            kept.remove(bar)
            left_out.append(f"{bar}: the fixed effects hold it already, so its variance would be arbitrary.")
    parts: list[Term | Bar] = [*terms, *kept]
    spec = ModelSpec(response=runs.score, terms=terms, bars=tuple(kept), dispersion=runs.benchmark if exactly else None)
    formula = f"{quote_name(runs.score)} ~ {' + '.join([*written_as, *map(str, kept)])}"
    return spec, formula, [(str(part), meaning(part, runs, kept)) for part in parts], left_out, notes


def _nothing_repeated(runs: Runs) -> DesignError:
    """The error of runs of which each algorithm has one under each condition."""
    where = " under each condition" if len(runs.study.instance) > bool(runs.benchmark) else ""
    budget = runs.budget if runs.curve is None else runs.curve.budget
    name = (
        "" if runs.seed is not None else " If several runs are in the table, name the column that distinguishes them."
    )
    return DesignError(
        f"Each algorithm has one run{where}, so a difference between algorithms cannot be distinguished from one "
        f"between runs, however many values of {budget!r} a run was scored at. Add more seeds, or more "
        f"benchmarks.{name} If the rows are trials of a search, compare tuning curves: {advice('trials')}."
    )


def _fixed(runs: Runs, family: str | None, blocks: tuple[str, ...]) -> tuple[list[Term], list[str]]:
    """The algorithm, families and conditions with their interactions, and the budget where runs were not scored at the
    same ones."""
    algorithm = factor_term(runs.algorithm, runs)
    terms = [algorithm]
    if family is not None:
        of_family = factor_term(family, runs)
        terms += [Term.of(algorithm, of_family)] if blocks else [of_family, Term.of(algorithm, of_family)]
    alone = tuple(name for name in runs.metafeatures if name not in runs.study.properties)
    for name in (_condition(runs),) if runs.study.several_benchmarks else alone:
        if name is not None and runs.study.count(name) > 1:
            levels = factor_term(name, runs)
            terms += [*([] if name in blocks else [levels]), Term.of(algorithm, levels)]
    if runs.budget is None:
        return terms, []
    budgets = runs.study.count(runs.budget)
    if runs.study.scored_alike:
        note = (
            f"Every run has a score at the same {budgets} budgets, so algorithms are compared by their mean over the "
            "budgets. Filter the runs to one budget to compare them there."
        )
        if 1 < budgets <= _MANY_BUDGETS and budgets * len(runs.algorithms) <= _MANY_EFFECTS:
            at = Term.levels(runs.budget)
            terms = sorted([*terms, at, Term.of(algorithm, at)], key=lambda term: len(term.factors))
        elif budgets > 1:
            note += " The model has no term for so many, and their course counts as error: reduce the curves instead."
        return terms, [note] * (budgets > 1)
    if budgets <= _MANY_BUDGETS:
        return [*terms, Term.levels(runs.budget)], []
    note = (
        f"Runs were scored at different budgets ({budgets:,} distinct values), which this model does not adjust for. "
        "Compare the runs at budgets that all of them reached."
    )
    return terms, [note]


def _candidates(runs: Runs, levels: Iterable[tuple[str, ...]]) -> list[Bar]:
    """Random effects from coarse to fine; each is nested in none that follows."""
    study, algorithm, seed = runs.study, runs.algorithm, runs.seed
    instance = study.instance
    out: list[Bar] = []
    for families in levels:
        out += [Bar.of(families), Bar.of((*families, algorithm))]
    metafeature = _condition(runs)
    if metafeature is not None:
        effects = (factor_term(metafeature, runs),)
        out += [Bar.of(instance[:1], effects), Bar.of((*instance[:1], algorithm), effects)]
    elif study.several_benchmarks:
        in_families = instance[: 1 + len(study.crossed)]
        for places in dict.fromkeys([instance[:1], in_families, instance]):
            out += [Bar.of(places), Bar.of((*places, algorithm))]
    if seed is not None:
        out.append(Bar.of((*instance, seed)))
        if runs.budget is not None:
            out.append(Bar.of((*instance, algorithm, seed)))
    several_budgets = runs.budget is not None and study.count(runs.budget) > 1
    if several_budgets and study.several_benchmarks and study.scored_alike:
        out += [Bar.of((*instance, str(runs.budget))), Bar.of((*instance, algorithm, str(runs.budget)))]
    return out


def _condition(runs: Runs) -> str | None:
    """The one metafeature whose levels are conditions that benchmarks go through, if its effects are identified."""
    study, instance = runs.study, runs.study.instance
    if not study.several_benchmarks or len(instance) != 2 or study.crossed:
        return None
    benchmark, metafeature = instance
    levels, benchmarks = runs.study.count(metafeature), runs.study.count(benchmark)
    cells = study.count(benchmark, metafeature, runs.algorithm)
    most = 2 * study.count(*instance) > (1 + levels) * benchmarks  # most benchmarks have most levels
    identified = levels <= _MOST_CONDITIONS and benchmarks >= _FEWEST_BENCHMARKS and cells < runs.n_rows
    return metafeature if most and identified else None


def _identified(runs: Runs, bars: list[Bar], blocks: tuple[str, ...]) -> tuple[list[Bar], list[str]]:
    """The candidates that the numbers of their groups allow; the groups of `blocks` have fixed effects."""
    kept: dict[Bar, int] = {}
    left_out = []
    n_blocks = runs.study.count(*blocks) if blocks else 0
    for bar in bars:
        groups = set(bar.groups)
        of_benchmarks = groups <= {*blocks, *runs.family}
        if blocks and of_benchmarks and runs.study.count(*blocks, *bar.groups) == n_blocks:
            continue
        levels = runs.study.count(*bar.groups)
        width = prod(runs.study.count(column) for effect in bar.slopes for column in effect.columns)
        same = next((k for k, n in kept.items() if set(k.groups) < groups and n == levels), None)
        if reason := of_groups(bar, levels, width, runs.n_rows):
            left_out.append(f"{reason[0].upper()}{reason[1:]}")
        elif set(blocks) < groups and levels == n_blocks:
            left_out.append(
                f"{bar}: its groups are those of {':'.join(map(quote_name, blocks))}, whose effects are fixed."
            )
        elif same is not None:
            left_out.append(f"{bar}: its groups are those of {same}, which takes its place.")
        else:
            kept[bar] = levels
    return list(kept), left_out


# ---------------------------------------------------------------------- what a term assumes


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
        return "the same variance for all rows; rows are independent given the terms above"
    return f"a separate variance for each level of {column}"


def _of_fixed(term: Term, runs: Runs) -> str:
    if len(term.factors) > 1:
        return _of_interaction(term, runs)
    column = term.columns[0]
    if term.columns == (runs.algorithm,):
        return "the mean of each algorithm, which is what is compared"
    if is_factor(term, runs):
        return f"each level of {column} has its own mean, the same amount higher or lower for all algorithms"
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
        return f"the differences between algorithms may differ between levels of {others[0]}"
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
                f"{_ADVANTAGE}, each algorithm to its own degree (a variance each); so the precision of a comparison "
                "depends on how these two algorithms vary between benchmarks"
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
    columns = set(groups)
    if runs.budget in columns:
        return "budget"
    if runs.seed in columns:
        everywhere = runs.benchmark is not None and runs.benchmark not in columns
        return "seed" if runs.algorithm not in columns else "luck" if everywhere else "run"
    others = columns - {runs.algorithm}
    if others and others <= set(runs.family):
        return "family_interaction" if runs.algorithm in columns else "family"
    if not others or not others <= set(runs.instance) or (runs.benchmark is not None and runs.benchmark not in others):
        return "other"
    return "interaction" if runs.algorithm in columns else "benchmark"


def _noun(bar: Bar, runs: Runs) -> str:
    return "benchmark" if set(bar.groups) == {runs.benchmark} else " x ".join(bar.groups)


# --------------------------------------------------------------------------------------------- what a design identifies


_TOLERANCE = 1e-7  # of the rank decisions of a fit, relative to the length of a column


def check_identified(spec: ModelSpec, runs: Runs) -> None:
    """Refuse a model that the design cannot identify."""
    if spec.dispersion is not None:
        check_dispersion(spec.dispersion, runs)
    for reason in unidentified(spec, runs).values():
        raise DesignError(reason)


def refusal(spec: ModelSpec, runs: Runs) -> str:
    """Why the design cannot identify a model; empty if it can."""
    try:
        check_identified(spec, runs)
    except DesignError as error:
        return str(error)
    return ""


def unidentified(spec: ModelSpec, runs: Runs) -> dict[Term | Bar, str]:
    """The terms that add nothing to those before them, in the order of the model, and why."""
    if not (spec.terms or spec.bars):
        return {}
    reasons: dict[Term | Bar, str] = {}
    cells, counts = _combinations(runs, list(spec.parsed.columns))
    for column in spec.parsed.columns:
        if cells[column].nunique() < 2 and all(column not in bar.groups for bar in spec.bars):
            reason = (
                f"'{column}' has the same value {cells[column].iloc[0]} in all rows, so it has no effect that could "
                "be seen. Leave it out."
            )
            parts: list[Term | Bar] = [*spec.terms, *spec.bars]
            reasons |= {part: reason for part in parts if column in part.columns}
    rest = spec.without(*reasons)
    design = rest.design(cells, counts)
    reasons |= _of_fixed_terms(rest, design)
    kept: list[int] = []
    for index, bar in enumerate(rest.bars):
        others = [design.random[i] for i in kept]
        reason = _of_random(bar, design, design.random[index], others, cells, int(counts.sum()))
        if reason:
            reasons[bar] = reason
        else:
            kept.append(index)
    return reasons


def of_groups(bar: Bar, levels: int, width: int, n_rows: int, only: str = "") -> str:
    """Why groups cannot show a variance, by their number alone; empty if they may."""
    if levels < 2:
        one = f" ({only})" if only else ""
        return (
            f"the random effect {bar} has one group only{one}, so a variance between groups cannot be estimated. "
            f"Leave it out, or add more levels of {bar.group}."
        )
    if bar.diagonal or levels * width < n_rows:
        return ""
    if width == 1:
        what = f"its {levels:,} groups are single rows of the {n_rows:,}, as many as there are residuals"
    else:
        what = f"{levels:,} groups with {width} effects each are {levels * width:,} numbers from {n_rows:,} rows"
    return (
        f"the random effect {bar} cannot be distinguished from the residual: {what}. The residual takes its place; "
        "leave it out, or add repeated runs."
    )


def _held(terms: tuple[Term, ...], bar: Bar, runs: Runs) -> bool:
    """Whether fixed terms hold a random effect already, so that its variance would be arbitrary."""
    spec = ModelSpec(response=runs.score, terms=terms, bars=(bar,))
    design = spec.design(*_combinations(runs, list(spec.parsed.columns)))
    return held_by_fixed(design, design.random[-1]) is not None


def check_dispersion(column: str, runs: Runs) -> None:
    """Refuse residual variances by a column whose levels cannot show one."""
    frame, counts = _combinations(runs, [column])
    if len(frame) < 2:
        raise DesignError(f"'{column}' has one level only, so it has one residual variance, as every model. Leave it.")
    single = frame.loc[counts < 2, column].tolist()
    if single:
        raise DesignError(
            f"a residual variance per level of '{column}' needs at least two rows of each; {listed(single)} "
            f"{'has' if len(single) == 1 else 'have'} one. Take a coarser column."
        )


def _combinations(runs: Runs, columns: list[str]) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Distinct combinations of columns and their rows."""
    groups = runs.study.groups(columns)
    return groups.keys.frame(), groups.n.astype(np.int64)


def _of_fixed_terms(spec: ModelSpec, design: Design) -> dict[Term | Bar, str]:
    X = design.X / np.maximum(np.linalg.norm(design.X, axis=0), np.finfo(float).tiny)
    before = np.ones((len(X), 1)) / np.sqrt(len(X))
    by_label = {term.label: term for term in spec.terms}
    reasons: dict[Term | Bar, str] = {}
    for label, columns in design.terms:
        rest = X[:, columns] - before @ (before.T @ X[:, columns])
        basis, values, _ = np.linalg.svd(rest, full_matrices=False)
        new = basis[:, values > _TOLERANCE]
        if new.shape[1] == 0 and label != "Intercept":
            reasons[by_label[label]] = (
                f"the fixed term '{label}' adds nothing: the terms before it already determine its levels. Drop one "
                "of them."
            )
        before = np.hstack([before, new])
    return reasons


def _of_random(
    bar: Bar, design: Design, term: RandomDesign, others: list[RandomDesign], cells: pd.DataFrame, n_rows: int
) -> str:
    """Why a random effect cannot be estimated beside the fixed terms and other random effects; empty if it can."""
    if reason := of_groups(bar, len(term.levels), len(term.names), n_rows, term.levels[0]):
        return reason
    if term.diagonal:
        try:
            check_variances(design, term, n_rows)
        except DesignError as error:
            return str(error)
    for factor in dict.fromkeys(factor for effect in bar.effects for factor in effect.factors):
        for name in factor.reads:
            if cells.groupby(term.codes)[name.value].nunique().max() < 2:
                return (
                    f"the slope of {factor} in {bar} cannot be estimated: '{name.value}' is constant within every "
                    f"group of {bar.group}. Choose groups within which it varies."
                )
    for other in others:
        if not same_partition(other.codes, term.codes):
            continue
        both = " and ".join(sorted([other.label, str(bar)]))
        if other.names == term.names:
            return (
                f"the random effects {both} have the same groups in these runs, so their variances are not identified. "
                "Keep one of them."
            )
        if _overlap(other, term):
            return (
                f"the random effects {both} have the same groups in these runs and overlap in what varies between "
                "them, so their variances are not identified. Keep one of them, or write both as one term."
            )
    held = held_by_fixed(design, term)
    return "" if held is None else f"{held}. Keep one of them."


def _overlap(first: RandomDesign, second: RandomDesign) -> bool:
    """Whether two covariance matrices of the same groups have a direction in common.

    That of a `diag` term has no directions but its columns: beside a variance of all levels together it is identified.
    """
    if first.diagonal or second.diagonal:
        wide, apart = (first, second) if second.diagonal else (second, first)
        columns = [wide.basis[:, [j]] for j in range(wide.basis.shape[1])] if wide.diagonal else [wide.basis]
        return any(_rank(np.column_stack([column, c])) == _rank(column) for column in columns for c in apart.basis.T)
    return _rank(np.hstack([first.basis, second.basis])) < _rank(first.basis) + _rank(second.basis)


def _rank(columns: Array) -> int:
    scaled = columns / np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    values = np.linalg.svd(scaled, compute_uv=False)
    return int((values > _TOLERANCE * values[0]).sum())
