"""For which population: new families or new benchmarks, and families that nobody has named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.robustness.variants import Variants, compared, side_by_side
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import free_name
from lmemtest.core.words import format_level, joined, p_text, plural
from lmemtest.errors import DesignError, LmemtestError
from lmemtest.lmm.hypotheses.mean_vectors import between_groups

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.means.comparisons import Comparisons

__all__ = ["by_populations", "name_groups", "populations_compared", "undeclared_families"]

_SAMPLES = ("family", "benchmark")  # populations beyond these benchmarks
_SEPARATORS = re.compile(r"[-_/:.\s]+")
_IN_GROUPS = 0.8  # of the benchmarks share their group with another one, where names make groups
_MOST_COLUMNS = 20  # without a role, that are looked at
_SHOWN = 3


def by_populations(runs: Runs, alpha: float) -> Variants:
    """The pairs of the recommended model for new families and for new benchmarks of these families.

    Raises
    ------
    DesignError
        If there are no families, too few, or one of the models is not identified.
    """
    used, _, pairs = compared(runs, {"alpha": alpha}, curves="model")
    variants = populations_compared(runs, used, pairs, {"alpha": alpha})
    if variants is None:
        raise DesignError(
            "of='population' compares claims about new families and about new benchmarks of these, and the runs have "
            f"no families, fewer than {FEWEST_FAMILIES}, or too few benchmarks in them for one of the two models. Name "
            "them: Runs(..., family=...)."
        )
    return variants


def populations_compared(runs: Runs, used: Answer, pairs: Comparisons, options: Mapping[str, Any]) -> Variants | None:
    """The pairs of the recommended model beside those for the other population; None where there is no other one.

    Families that are too few to be taken for a sample are none. `options` are those of the pairs, as in `compared`.
    """
    families = runs.study.families
    if not families or used.population not in _SAMPLES:
        return None
    if used.population == "benchmark" and max(runs.study.count(*level) for level in families) < FEWEST_FAMILIES:
        return None
    other = next(name for name in _SAMPLES if name != used.population)
    try:
        model, _, beside = compared(runs, options, population=other, curves="model")
    except LmemtestError:  # too few families, or a model that these runs do not identify
        return None
    both = {used.population: (used, pairs), other: (model, beside)}
    claims = {name: both[name][0].claim for name in _SAMPLES}
    ways = {
        name: (f"for {claim}", f"claims about {claim}, by {both[name][0].formula}", both[name][1], runs.direction)
        for name, claim in claims.items()
    }
    among = " and ".join(f"for {claim}" for claim in claims.values())
    return side_by_side(ways, of="population", among=among, alpha=options["alpha"])


# ---------------------------------------------------------------------- families that nobody named


def undeclared_families(runs: Runs, pairs: Comparisons, options: Mapping[str, Any]) -> Answer | None:
    """Do benchmarks that nobody called families share their advantages? Groups by names and columns, and their test.

    Benchmarks named ``space1-adult``, ``space1-bank``, or with a column that is the same on several of them, may be
    families. If advantages are shared within them and nobody says so, claims about new families are too certain: with 5
    families of 4 benchmarks that hold 30 % of the variance of advantages, some of three equal algorithms differ in 15 %
    of the tables.

    Returns
    -------
    Answer or None
        The grouping in which advantages differ most; None where nothing groups the benchmarks, or families have a role,
        or errors do not count benchmarks. Its table has the family of each benchmark. Values: ``column`` that makes the
        groups (None: the names of the benchmarks), ``n_families``, ``test`` (`FTest`: whether advantages differ
        between the groups by more than within them), ``p_value`` (adjusted for the groupings tried), ``shows`` (whether
        it is below `alpha`), ``significant`` (pairs of algorithms that differ significantly with these families as the
        sample; None where they were not taken for one).
    """
    moderate, alpha = pairs.estimates.moderate, options["alpha"]
    if runs.family or moderate is None or moderate.robust.cluster != (runs.benchmark,):
        return None
    benchmarks = list(runs.study.levels(str(runs.benchmark)))  # in the order of the clusters
    groupings = _groupings(runs, benchmarks)
    L = moderate.L[np.isfinite(moderate.L).all(axis=1)]
    if not groupings or len(L) < 2:
        return None
    scores = moderate.robust.contributions(L - L.mean(axis=0))
    tests = []
    for column, families in groupings.items():
        groups = np.unique([families[b] for b in benchmarks], return_inverse=True)[1]
        tests.append((column, families, between_groups(scores, groups)))
    column, families, test = min(tests, key=lambda item: np.nan_to_num(item[2].p_value, nan=2.0))
    if np.isnan(test.p_value):
        return None
    p = min(1.0, len(tests) * test.p_value)
    shows, n_families = bool(below(p, alpha)), len(set(families.values()))
    significant = None
    if shows and n_families >= FEWEST_FAMILIES and not isinstance(runs.frame, nw.LazyFrame):
        significant = _significant_with(runs, column or None, families, options)
    nouns = plural(str(runs.benchmark))
    names = joined([f"'{name}'" for name in dict.fromkeys(families.values())], most=_SHOWN)
    what = f"the values of {column!r}" if column else f"the names of the {nouns} ({names})"
    values = {"column": column or None, "n_families": n_families, "test": test}
    f_test = f"F({written(test.df_num, '.1f')}, {written(test.df_den, '.1f')}) = {written(test.f_ratio, '.2f')}"
    return Answer(
        question="undeclared_families",
        title=f"Groups of {nouns} that have no role as families",
        tables={"families": pd.DataFrame({"benchmark": list(families), "family": list(families.values())})},
        values={**values, "p_value": p, "level": alpha, "shows": shows, "significant": significant},
        findings=(f"{what} group the {len(families)} {nouns} into {n_families} ({f_test}, {p_text(p)})",),
    )


def _significant_with(
    runs: Runs, column: str | None, families: dict[object, str], options: Mapping[str, Any]
) -> int | None:
    """Pairs that differ with these groups as families; None where they have no model: a report is not lost by that."""
    frame, roles = runs.frame, runs.roles()
    if column is None:
        column = free_name(f"{runs.benchmark}_family", runs.columns)
        groups = [families[b] for b in frame[str(runs.benchmark)].to_list()]
        frame = frame.with_columns(nw.new_series(column, groups, nw.String(), backend=frame.implementation))
    roles["metafeatures"] = tuple(name for name in roles["metafeatures"] if name != column)
    roles["ignore"] = tuple(name for name in roles["ignore"] if name != column)
    with_roles = type(runs)(frame, **{**roles, "family": (column,)})
    try:
        *_, pairs = compared(with_roles, options, curves="model")
        decided = pairs.decisions(alpha=options["alpha"], direction=runs.direction)
    except LmemtestError:
        return None
    return int(np.triu(decided.significant.to_numpy()).sum())


def _groupings(runs: Runs, benchmarks: list[object]) -> dict[str, dict[object, str]]:
    """The group of each benchmark, by the column that makes the groups ("" for the names of the benchmarks)."""
    name, study = str(runs.benchmark), runs.study
    schema = runs.frame.collect_schema()
    others = [] if isinstance(runs.frame, nw.LazyFrame) else [
        column for column in runs.columns
        if column not in (*study.columns, runs.score, runs.failed) and not runs.frame[column].is_null().any()
    ]  # fmt: skip
    text = [column for column in dict.fromkeys((*study.kinds, *others)) if not schema[column].is_numeric()]
    groupings = {}
    for column in text[:_MOST_COLUMNS]:
        if not 1 < study.count(column) <= len(benchmarks) / 2 or study.count(name, column) != len(benchmarks):
            continue
        pairs = study.distinct([name, column])
        groupings[column] = dict(zip(pairs[name], map(format_level, pairs[column]), strict=True))
    by_names = name_groups([b if isinstance(b, str) else "" for b in benchmarks])
    if by_names is not None and not any(_same(by_names, [f[b] for b in benchmarks]) for f in groupings.values()):
        groupings[""] = dict(zip(benchmarks, by_names, strict=True))
    return groupings


def _same(first: list[str], second: list[str]) -> bool:
    """Whether two columns make the same groups."""
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def name_groups(names: Sequence[str]) -> list[str] | None:
    """The groups that the first parts of names make, else the last parts; None where they make none.

    Examples
    --------
    >>> name_groups(["f1_d2", "f1_d5", "f2_d2", "f2_d5"])
    ['f1', 'f1', 'f2', 'f2']
    >>> name_groups(["adult", "bank-marketing", "car", "letter"]), name_groups(["task1", "task2", "task3", "task4"])
    (None, None)
    """
    parts = [[part for part in _SEPARATORS.split(name) if part] for name in names]
    if any(len(part) < 2 for part in parts):
        return None
    for end in (0, -1):
        groups = [part[end] for part in parts]
        sizes = Counter(groups)
        if 2 <= len(sizes) <= len(names) / 2 and sum(sizes[g] > 1 for g in groups) >= _IN_GROUPS * len(groups):
            return groups
    return None
