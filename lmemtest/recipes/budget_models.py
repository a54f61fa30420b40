"""Three nested models of scores over a budget: without it, with one effect for all, with one effect per algorithm.

What makes the tests honest is the random part, which is the same in all three. The scores of a run at several budgets
are one curve, so runs have levels and slopes of their own; benchmarks and algorithms on benchmarks have them too, since
on one benchmark budget may help and on the next it may not, and nothing of that is an effect in general.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._validate import check_columns, listed
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, DataError
from lmemtest.formula.tokens import quote_name
from lmemtest.inference.reference import format_level
from lmemtest.recipes.instances import instance_columns
from lmemtest.recipes.recommended import relative_to
from lmemtest.recipes.term_text import as_factor

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

FORMS = ("linear", "categorical", "spline")
SPLINE_DF = 4  # a cubic with one inner knot: bends twice, as learning curves do
MOST_BUDGETS = 50  # more levels than this are a continuum: one effect each would eat the data
FEWEST_FOR_SPLINE = SPLINE_DF + 1
_SAME = 1e-9  # of the spread of the scores: means that differ by less are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetModels:
    """Formulas of the three models.

    Attributes
    ----------
    runs : Runs
        The runs, with the budget in its role.
    form : {"linear", "categorical", "spline"}
    simple, fidelity, interaction : str
        ``~ algorithm``, ``+ budget`` and ``+ algorithm:budget``, all with the same random part. The first two are the
        same where the scores are relative to the benchmark at every budget.
    relative : bool
        Scores are relative to the benchmark at every budget: their mean over the algorithms is known.
    clusters : str
        What the budget effects are a sample over, in words.
    n_clusters : int
    notes : tuple of str
    """

    runs: Runs
    form: str
    simple: str
    fidelity: str
    interaction: str
    relative: bool
    clusters: str
    n_clusters: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """Distinct combinations of the roles, with the number of rows of each and their mean score."""

    runs: Runs
    instance: tuple[str, ...]
    frame: pd.DataFrame
    rows: np.ndarray
    means: np.ndarray

    def count(self, columns: tuple[str, ...]) -> int:
        return len(self.frame[list(dict.fromkeys(columns))].drop_duplicates())

    @property
    def generalises(self) -> bool:
        return self.runs.benchmark is not None and self.count((self.runs.benchmark,)) > 1

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())


def budget_models(runs: Runs, fidelity_var: str | None, form: str) -> BudgetModels:
    """Write the three models for a table of runs.

    Parameters
    ----------
    runs : Runs
    fidelity_var : str or None
        The column of the budget; that of the runs by default.
    form : {"linear", "categorical", "spline"}
        How the mean score depends on the budget.

    Returns
    -------
    BudgetModels

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there is no budget, or the form does not fit it.
    DataError
        If the budget effect cannot be identified: one budget, nothing repeated, or algorithms without common budgets.
    """
    require_runs(runs)
    runs = _with_budget(runs, fidelity_var)
    design = _design(runs)
    form, notes = _checked_form(design, form)
    _check_common(design, form)
    if form != "linear":  # a line leaves the bend of the mean curve in the residual, which only many rows can tell
        runs, averaged = _benchmark_means(runs)
        design, notes = _design(runs), [*notes, *averaged]
    blocks = relative_to(runs)
    everywhere = bool(blocks) and _relative_at_every_budget(design)
    random, more = _random(design, form, blocks, everywhere)
    notes = [*notes, *_ranges(design), *more]
    algorithm = as_factor(runs, runs.algorithm)
    budget = _effect(runs, form)
    base = [algorithm]
    if blocks:
        base.append(" * ".join([*(as_factor(runs, name) for name in blocks), *([budget] if everywhere else [])]))
        notes.append(_RELATIVE_EVERYWHERE.format(budget=runs.budget) if everywhere else _RELATIVE)
    if not design.generalises:
        for name in design.instance:
            if name != runs.benchmark:
                base += [as_factor(runs, name), f"{algorithm}:{as_factor(runs, name)}"]

    def formula(*terms: str) -> str:
        return f"{quote_name(runs.score)} ~ {' + '.join([*base, *terms, *random])}"

    shared = [] if everywhere else [budget]
    clusters, n = _clusters(design)
    return BudgetModels(
        runs=runs,
        form=form,
        simple=formula(),
        fidelity=formula(*shared),
        interaction=formula(*shared, f"{algorithm}:{budget}"),
        relative=everywhere,
        clusters=clusters,
        n_clusters=n,
        notes=tuple(notes),
    )


def _with_budget(runs: Runs, name: str | None) -> Runs:
    if name is None:
        if runs.budget is None:
            raise ArgumentError(
                "runs has no budget column, so there is no fidelity to test. Name it: Runs(table, ..., budget=...), "
                f"or fidelity_var=... Columns: {listed(runs.columns)}."
            )
        return runs
    check_columns((name,), runs.columns, argument="fidelity_var")
    taken = {runs.score: "score", runs.algorithm: "algorithm", runs.benchmark: "benchmark", runs.seed: "seed"}
    if name in taken:
        raise ArgumentError(f"fidelity_var must not be the {taken[name]} column, got {name!r}.")
    rest = tuple(m for m in runs.metafeatures if m != name)
    return dataclasses.replace(runs, budget=name, metafeatures=rest)


def _design(runs: Runs) -> _Design:
    from lmemtest.data.cells import compress

    instance = instance_columns(runs)
    keys = [*instance, runs.algorithm, *((runs.seed,) if runs.seed else ()), runs.budget]
    cells = compress(runs, by=[key for key in keys if key is not None], score=runs.score)
    return _Design(runs, instance, cells.frame, np.asarray(cells.n), np.asarray(cells.mean))


def _benchmark_means(runs: Runs) -> tuple[Runs, tuple[str, ...]]:
    """The runs, or their means per algorithm and benchmark, which say the same about the budget in less time."""
    from lmemtest.data.runs import Runs
    from lmemtest.recipes.run_table import benchmark_means, run_table

    table, notes = benchmark_means(run_table(runs))
    if table.seed == runs.seed and len(table.conditions) == len(runs.metafeatures):
        return runs, notes
    means = Runs(
        table.frame,
        score=table.score,
        direction=runs.direction,
        algorithm=table.algorithm,
        benchmark=table.benchmark,
        seed=table.seed,
        budget=table.budget,
        metafeatures=table.conditions,
    )
    return means, notes


def _numeric(design: _Design) -> bool:
    column = design.frame[design.runs.budget]
    return bool(pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column))


def _checked_form(design: _Design, form: str) -> tuple[str, list[str]]:
    name = design.runs.budget
    budgets = design.frame[name].drop_duplicates()
    n = len(budgets)
    if n < 2:
        raise DataError(
            f"There is one budget only ({name} = {format_level(budgets.iloc[0])}), so its effect cannot be tested. "
            "Bring scores of the same runs at other budgets."
        )
    if form != "categorical" and not _numeric(design):
        raise ArgumentError(f"form={form!r} needs numbers as budgets, and {name!r} has none. Use form='categorical'.")
    if form == "categorical" and n > MOST_BUDGETS:
        raise ArgumentError(
            f"form='categorical' has one effect per budget, and there are {n:,} budgets, more than {MOST_BUDGETS}. "
            "Use form='spline', or filter the runs to fewer budgets."
        )
    if n == 2 and form != "linear" and _numeric(design):
        return "linear", [f"With two budgets form={form!r} is the same as form='linear', which was fitted."]
    if form == "spline" and n < FEWEST_FOR_SPLINE:
        raise ArgumentError(
            f"form='spline' needs at least {FEWEST_FOR_SPLINE} budgets, there are {n}. Use form='categorical'."
        )
    return form, []


def _check_common(design: _Design, form: str) -> None:
    """Algorithms must be seen at budgets that others have as well: else algorithm and budget are one and the same."""
    runs = design.runs
    sets = {a: set(part[runs.budget]) for a, part in design.frame.groupby(runs.algorithm, observed=True)}
    everywhere = set.union(*sets.values())
    alone = [a for a, own in sets.items() if len(own) < 2]
    if alone:
        raise DataError(
            f"{listed(map(repr, map(str, alone)))} ran at one budget only, so how budget acts on it is not known. "
            f"Leave it out, runs.filter({runs.algorithm}=[...]), or bring its scores at other budgets."
        )
    common = set.intersection(*sets.values())
    if form == "categorical" and len(common) < len(everywhere):
        raise DataError(
            f"form='categorical' compares algorithms at every budget, but they share {len(common)} of "
            f"{len(everywhere)} budgets. Filter the runs to the shared ones, runs.filter({runs.budget}=[...]), or use "
            "form='linear' or 'spline'."
        )
    if form == "categorical":
        return
    ends = [(min(own), max(own)) for own in sets.values()]
    if min(high for _, high in ends) <= max(low for low, _ in ends):
        raise DataError(
            f"The budgets of the algorithms do not overlap ({_ranges_text(sets)}), so the effect of {runs.budget} "
            "cannot be told from that of the algorithm. Bring scores of all algorithms at common budgets."
        )


def _ranges(design: _Design) -> list[str]:
    runs = design.runs
    sets = {a: set(part[runs.budget]) for a, part in design.frame.groupby(runs.algorithm, observed=True)}
    if len({(min(own), max(own)) for own in sets.values()}) == 1:
        return []
    return [
        f"Algorithms have different ranges of {runs.budget} ({_ranges_text(sets)}); beyond its own range an "
        "algorithm's curve is extrapolated."
    ]


def _ranges_text(sets: dict[Any, set[Any]]) -> str:
    return listed([f"{a}: {format_level(min(s))} to {format_level(max(s))}" for a, s in sets.items()], most=4)


def _effect(runs: Runs, form: str) -> str:
    name = quote_name(str(runs.budget))
    if form == "linear":
        return name
    return f"bs({name}, df={SPLINE_DF})" if form == "spline" else as_factor(runs, str(runs.budget))


def _clusters(design: _Design) -> tuple[str, int]:
    runs = design.runs
    if design.generalises:
        assert runs.benchmark is not None
        return "benchmarks", design.count((runs.benchmark,))
    return "runs", design.count((*design.instance, runs.algorithm, *((runs.seed,) if runs.seed else ())))


def _relative_at_every_budget(design: _Design) -> bool:
    """Whether benchmarks (instances) have the same mean over the algorithms at every budget, as ranks do.

    Where runs are missing the means are others, so most of them have to be the same: those of raw scores never are.
    """
    runs = design.runs
    algorithms = design.count((runs.algorithm,))
    table = design.frame.assign(**{"\0mean": design.means})
    spread = float(np.ptp(design.means))
    for place in dict.fromkeys([design.instance[:1], design.instance]):
        keys = [*place, str(runs.budget)]
        cells = table.groupby([*keys, runs.algorithm], observed=True)["\0mean"].mean()
        means = cells.groupby(keys, observed=True).agg(["mean", "size"])
        complete = means.loc[means["size"] == algorithms, "mean"].to_numpy()
        if 2 * len(complete) < len(means):
            continue
        same = np.abs(complete - np.median(complete)) <= _SAME * spread
        if same.mean() > 0.5:
            return True
    return False


_RELATIVE = (
    "Scores are relative to the benchmark (ranks, for instance): what one algorithm gains there others lose, so the "
    "levels of benchmarks are fixed effects. Their courses over the budget are random ones: if algorithms gain what "
    "others lose at every budget too, and only some of them were kept, the tests are too sure."
)
_RELATIVE_EVERYWHERE = (
    "Scores are relative to the benchmark at every {budget} (ranks, for instance), so {budget} cannot change their "
    "mean, only the share of each algorithm: whether it does so is the one question that is tested."
)


def _random(design: _Design, form: str, blocks: tuple[str, ...], everywhere: bool) -> tuple[list[str], list[str]]:
    """The random part: levels and courses over the budget of benchmarks, algorithms on benchmarks, and runs.

    Levels of `blocks` are fixed effects, and so are their courses if scores are relative to them `everywhere`.
    """
    runs, instance = design.runs, design.instance
    course, width = _course(design, form)
    slope_groups: list[tuple[str, ...]] = []
    level_groups: list[tuple[str, ...]] = []
    if design.generalises:
        assert runs.benchmark is not None
        for place in dict.fromkeys([(runs.benchmark,), instance]):
            slope_groups += [place, (*place, runs.algorithm)]
    if runs.seed is not None:
        # With one benchmark the seeds are the sample: what they share over algorithms is a slope, too.
        (level_groups if design.generalises else slope_groups).append((*instance, runs.seed))
        slope_groups.append((*instance, runs.algorithm, runs.seed))
    _check_repeated(design)
    terms: list[str] = []
    notes: list[str] = []
    kept: list[tuple[str, ...]] = [blocks] if blocks else []
    for group in sorted([*slope_groups, *level_groups], key=len):
        n = design.count(group)
        fixed = set(group) <= set(blocks)
        if fixed and everywhere:
            continue
        if n < 2 or n >= design.n_rows or any(set(k) < set(group) and design.count(k) == n for k in kept):
            continue
        kept.append(group)
        label = ":".join(map(quote_name, group))
        sloped = group in slope_groups and width > 0 and _course_identified(design, group, n, width)
        if sloped:
            terms.append(f"({0 if fixed else 1} + {course} | {label})")
        elif not fixed:
            terms.append(f"(1 | {label})")
    if form != "linear" or not _numeric(design):
        terms += _bends(design, everywhere)
    if not _numeric(design):
        notes.append(
            f"{runs.budget} has no numbers, so how runs go from one budget to the next is taken to vary without order."
        )
    return terms, notes


def _course(design: _Design, form: str) -> tuple[str, int]:
    """How groups may differ over the budget, as a term and its number of columns: a line, or a spline for a curve."""
    name = quote_name(str(design.runs.budget))
    if not _numeric(design):
        return "", 0
    columns = min(SPLINE_DF, design.count((str(design.runs.budget),)) - 2)
    if form == "linear" or columns < 2:
        return name, 1
    return (f"bs({name}, df={columns})" if columns >= 3 else f"bs({name}, df=2, degree=2)"), columns


def _course_identified(design: _Design, group: tuple[str, ...], n: int, width: int) -> bool:
    """A group needs more budgets than its course has columns, and points that leave an error beside it."""
    points = design.count((*group, str(design.runs.budget)))
    return points >= (width + 0.5) * n and design.n_rows > (width + 1) * n


def _bends(design: _Design, everywhere: bool) -> list[str]:
    """Departures of benchmarks from their curves, budget by budget; none where scores are relative to them."""
    if not design.generalises:
        return []
    runs, out = design.runs, []
    groups: list[tuple[str, ...]] = [] if everywhere else [(str(runs.benchmark), str(runs.budget))]
    if not _numeric(design):  # no curves of algorithms on benchmarks that would take these up
        groups.append((str(runs.benchmark), runs.algorithm, str(runs.budget)))
    for group in groups:
        if 1 < design.count(group) < design.n_rows:
            out.append(f"(1 | {':'.join(map(quote_name, group))})")
    return out


def _check_repeated(design: _Design) -> None:
    """Something must be repeated, and rows of one run must be known as such."""
    runs = design.runs
    if design.generalises:
        return
    curve = (*design.instance, runs.algorithm, *((runs.seed,) if runs.seed else ()))
    if runs.seed is None and (design.rows > 1).any():
        raise DataError(
            "Which rows belong to one run is not known, and with one benchmark the runs are the sample. Name the seed "
            "column: Runs(table, ..., seed=...)."
        )
    if design.count(curve) == design.count((*design.instance, runs.algorithm)):
        raise DataError(
            "There is one benchmark and one run per algorithm, so the course of a run cannot be told from an effect of "
            f"{runs.budget}. Bring more seeds (they show what holds on this benchmark) or more benchmarks."
        )
