"""Do benchmarks that nobody called families share their advantages? Groups by names and columns, and their test.

Benchmarks named ``space1-adult``, ``space1-bank``, or with a column that is the same on several of them, may be
families. If advantages are shared within them and nobody says so, claims about new families are too certain: with 5
families of 4 benchmarks that hold 30 % of the variance of advantages, some of three equal algorithms differ in 15 % of
the tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np

from lmemtest.bench.data.normalise import new_column
from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.codes import group_codes
from lmemtest.core.rounding import below, written
from lmemtest.core.words import format_level, joined, p_text, plural
from lmemtest.errors import LmemtestError
from lmemtest.lmm.hypotheses.mean_vectors import MeanTest, between_groups
from lmemtest.lmm.means.emmeans import emmeans

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.model import LmmFit

_SEPARATORS = re.compile(r"[-_/:.\s]+")
_IN_GROUPS = 0.8  # of the benchmarks share their group with another one, where names make groups
_MOST_COLUMNS = 20  # without a role, that are looked at
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeclaredFamilies:
    """Groups of benchmarks by a column (None: by their names), and the test whether advantages differ between them.

    ``families`` has the group of each benchmark, by the benchmark; ``p_value`` is adjusted for the groupings tried.
    ``significant`` is the number of pairs of algorithms that differ significantly with these families as the sample;
    None where they were not taken for one.
    """

    column: str | None
    families: dict[object, str]
    test: MeanTest
    p_value: float
    level: float
    significant: int | None = None

    @property
    def n_families(self) -> int:
        """How many groups there are."""
        return len(set(self.families.values()))

    @property
    def shows(self) -> bool:
        """Whether advantages differ between the groups by more than within them."""
        return bool(below(self.p_value, self.level))

    def overview(self, benchmark: str) -> str:
        """What groups the benchmarks, and whether advantages are shared within the groups."""
        names = joined([f"'{name}'" for name in dict.fromkeys(self.families.values())], most=_SHOWN)
        what = f"the values of {self.column!r}" if self.column else f"the names of the {plural(benchmark)} ({names})"
        test = (
            f"F({written(self.test.df_num, '.1f')}, {written(self.test.df_den, '.1f')}) = "
            f"{written(self.test.f_ratio, '.2f')}, {p_text(self.p_value)}"
        )
        return f"{what} group the {len(self.families)} {plural(benchmark)} into {self.n_families} ({test})"


def undeclared_families(
    fit: LmmFit, runs: Runs, pairs: Comparisons, *, alpha: float, adjust: str | None, se: str | None = None
) -> UndeclaredFamilies | None:
    """The grouping of the benchmarks in which advantages differ most; None where nothing groups them, or families have
    a role, or errors do not count benchmarks.
    """
    means = pairs.estimates
    moderate = means.moderate
    if runs.family or moderate is None or moderate.robust.cluster != (runs.benchmark,):
        return None
    keys = group_codes([fit.cells.frame[str(runs.benchmark)]], len(fit.cells.n))[1]
    benchmarks = list(keys.frame()[str(runs.benchmark)])
    groupings = _groupings(runs, benchmarks)
    L = moderate.L[np.isfinite(moderate.L).all(axis=1)]
    if not groupings or len(L) < 2:
        return None
    scores = moderate.robust.contributions(L - L.mean(axis=0))
    found = []
    for column, families in groupings.items():
        groups = np.unique([families[b] for b in benchmarks], return_inverse=True)[1]
        found.append((column, families, between_groups(scores, groups)))
    column, families, test = min(found, key=lambda item: np.nan_to_num(item[2].p_value, nan=2.0))
    if np.isnan(test.p_value):
        return None
    adjusted = min(1.0, len(found) * test.p_value)
    result = UndeclaredFamilies(column=column or None, families=families, test=test, p_value=adjusted, level=alpha)
    if not result.shows or result.n_families < FEWEST_FAMILIES or isinstance(runs.frame, nw.LazyFrame):
        return result
    with_roles = _with_families(runs, result)
    try:
        model = recommend(with_roles, curves="model")
        means = emmeans(model.spec.fit(with_roles), runs.algorithm, ddf=means.ddf, level=1.0 - alpha)
        decided = means.pairs(adjust=adjust, se=se).decisions(alpha=alpha, direction=runs.direction)
    except LmemtestError:  # a report is not lost because these families have no model
        return result
    return replace(result, significant=int(np.triu(decided.significant.to_numpy()).sum()))


def _with_families(runs: Runs, found: UndeclaredFamilies) -> Runs:
    """The runs with the groups as families."""
    frame, roles = runs.frame, runs.roles()
    column = found.column
    if column is None:
        column = new_column(runs, None, f"{runs.benchmark}_family")
        groups = [found.families[b] for b in frame[str(runs.benchmark)].to_list()]
        frame = frame.with_columns(nw.new_series(column, groups, nw.String(), backend=frame.implementation))
    roles["metafeatures"] = tuple(name for name in roles["metafeatures"] if name != column)
    roles["ignore"] = tuple(name for name in roles["ignore"] if name != column)
    return type(runs)(frame, **{**roles, "family": (column,)})


def _groupings(runs: Runs, benchmarks: list[object]) -> dict[str, dict[object, str]]:
    """The group of each benchmark, by the column that makes the groups ("" for the names of the benchmarks)."""
    name, study = str(runs.benchmark), runs.study
    schema = runs.frame.collect_schema()
    others = [] if isinstance(runs.frame, nw.LazyFrame) else [
        column for column in runs.columns if column not in (*study.columns, runs.score, runs.failed)
    ]  # fmt: skip
    text = [column for column in dict.fromkeys((*study.kinds, *others)) if not schema[column].is_numeric()]
    found = {}
    for column in text[:_MOST_COLUMNS]:
        if not 1 < study.count(column) <= len(benchmarks) / 2 or study.count(name, column) != len(benchmarks):
            continue
        pairs = study.distinct([name, column])
        found[column] = dict(zip(pairs[name], map(format_level, pairs[column]), strict=True))
    by_names = name_groups([b if isinstance(b, str) else "" for b in benchmarks])
    if by_names is not None and not any(_same(by_names, [f[b] for b in benchmarks]) for f in found.values()):
        found[""] = dict(zip(benchmarks, by_names, strict=True))
    return found


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
        sizes = {group: groups.count(group) for group in groups}
        if 2 <= len(sizes) <= len(names) / 2 and sum(sizes[g] > 1 for g in groups) >= _IN_GROUPS * len(groups):
            return groups
    return None
