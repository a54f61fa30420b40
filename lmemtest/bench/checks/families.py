"""Rules for families of benchmarks: whether they can be a sample, and columns that look like families."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.data.column import role_of
from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.core.caller import advice
from lmemtest.core.frames import collected
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import counted, format_level, listed, plural, spoken
from lmemtest.errors import DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

_UNEQUAL = 5  # times as many benchmarks in the largest family as in the smallest
_SHOWN = 4
_LOOKED_AT = 20  # columns without a role


def family_findings(runs: Runs) -> list[Finding]:
    """What a reader must know of the families, and which columns may be families."""
    if runs.benchmark is None or not runs.study.several_benchmarks:
        return []
    if not runs.family:
        return _likely(runs)
    return [*_sizes(runs), *_crossed(runs), *_unequal(runs), *_absent(runs)]


def _likely(runs: Runs) -> list[Finding]:
    """Metafeatures, and columns without a role, whatever they are called, that group the benchmarks."""
    study, schema = runs.study, runs.frame.collect_schema()
    others = [name for name in runs.unused if not schema[name].is_numeric()][:_LOOKED_AT]
    lazy = _families_in(runs, others) if runs.is_lazy and others else {}
    benchmarks = study.count(runs.benchmark)
    found = []
    for name in (*study.kinds, *(lazy if runs.is_lazy else others)):
        if schema[name].is_numeric() or role_of(name) == "choice":
            continue
        try:
            n = lazy[name] if name in lazy else study.count(name)
            several = name not in lazy and study.count(runs.benchmark, name) > benchmarks
        except DataError:  # missing values, lists: nothing that groups
            continue
        if several or not 1 < n <= benchmarks / 2:
            continue
        families, tasks = plural(name), plural(str(runs.benchmark))
        give = advice("role_of", role="family", column=name)
        found.append(
            _note(
                f"The {n} values of {name!r} group the {benchmarks} {tasks}. Claims are about new "
                f"{tasks} drawn from all of them alike.",
                f"If {families} are a sample, too, and claims are about new {families}, give it the role: {give}.",
            )
        )
    return found


def _families_in(runs: Runs, names: list[str]) -> dict[str, int]:
    """The columns of a lazy table with one value on each benchmark, and how many values; one query for all of them."""
    schema, benchmark = runs.frame.collect_schema(), str(runs.benchmark)
    names = [name for name in names if isinstance(schema[name], (nw.String, nw.Categorical, nw.Enum))]
    if not names:
        return {}
    columns = [(nw.col(name).cast(nw.String), i) for i, name in enumerate(names)]
    query = runs.frame.group_by(benchmark).agg(
        *(column.min().alias(f"low{i}") for column, i in columns),
        *(column.max().alias(f"high{i}") for column, i in columns),
        *(column.count().alias(f"n{i}") for column, i in columns),
        nw.len().alias("n"),
    )
    table = collected(query).to_pandas()
    return {
        name: int(table[f"low{i}"].nunique())
        for i, name in enumerate(names)
        if (table[f"n{i}"] == table["n"]).all() and (table[f"low{i}"] == table[f"high{i}"]).all()
    }


def _sizes(runs: Runs) -> list[Finding]:
    """Columns that are no families, and families that are too few."""
    study, tasks = runs.study, plural(str(runs.benchmark))
    known = {columns[-1] for columns in study.families}
    found = []
    for name in runs.family:
        n, families = study.count(name), plural(name)
        if name in known:
            continue
        if n == 1:
            text = f"The family {name!r} has one level, so it groups nothing and says nothing about other {families}."
            advice = "Add runs on others, or leave the role out."
        elif n >= study.count(runs.benchmark, *study.crossed):
            text = f"Each of the {n} levels of the family {name!r} holds one benchmark: the {tasks} are the families."
            advice = f"Leave the role out; claims are about new {tasks}, which is the same here."
        else:
            text = f"The family {name!r} makes the same groups as a coarser family."
            advice = "Leave one of them out."
        found.append(_note(text, advice))
    if study.families and study.sampled.noun != "family":
        name = study.families[-1][-1]
        found.append(
            _note(
                study.sampled.notes[0],
                f"Add runs on others: {FEWEST_FAMILIES} {plural(name)} or more are a sample.",
                count=study.count(name),
            )
        )
    return found


def _crossed(runs: Runs) -> list[Finding]:
    """Benchmarks in several families: the same thing there, or numbers without a meaning."""
    study, benchmark = runs.study, str(runs.benchmark)
    if not study.crossed:
        return []
    name = study.crossed[-1]
    seen = study.distinct([benchmark, name]).groupby(benchmark, observed=True).size()
    several, tasks = int((seen > 1).sum()), plural(benchmark)
    numbers = pd.api.types.is_numeric_dtype(seen.index.dtype) and int(np.max(seen.index)) < 2 * len(seen)
    which = advice("joined", fine=benchmark, coarse=name)
    message = (
        f"{several:,} of {len(seen):,} {tasks} are in several {plural(name)} (such as "
        f"{format_level(seen.idxmax())!r}), and each is taken as the same {spoken(benchmark)} there."
    )
    remedy = f"If the labels only number the {tasks} of each {spoken(name)}, give them unique names: {which}."
    severity = "warning" if numbers else "note"
    return [Finding(severity, "families", message, remedy, count=several)]


def _unequal(runs: Runs) -> list[Finding]:
    sample = runs.study.sampled
    if sample.noun != "family":
        return []
    name, tasks = str(sample.column), plural(str(runs.benchmark))
    sizes = runs.study.distinct([name, *runs.study.instance[:1]]).groupby(name, observed=True).size()
    if sizes.max() < _UNEQUAL * sizes.min():
        return []
    return [
        _note(
            f"The {len(sizes)} {plural(name)} hold {sizes.min()} to {sizes.max()} {tasks}.",
            f"Where each {spoken(name)} counts the same, a {spoken(str(runs.benchmark))} of a small one decides more. "
            f"Compare with the answer for new {tasks} of these {plural(name)}.",
            count=int(sizes.max()),
        )
    ]


def _absent(runs: Runs) -> list[Finding]:
    """Algorithms without any run on whole families."""
    found = []
    for columns in runs.study.families:
        name = columns[-1]
        ran = runs.study.distinct([name, runs.algorithm])
        counts = pd.crosstab(ran[name], ran[runs.algorithm])
        for algorithm in counts.columns[(counts == 0).any()]:
            lacking = [format_level(level) for level in counts.index[counts[algorithm] == 0]]
            found.append(
                Finding(
                    severity="warning",
                    kind="missing_families",
                    algorithm=algorithm,
                    count=len(lacking),
                    message=f"{str(algorithm)!r} has no runs on any {spoken(str(runs.benchmark))} of "
                    f"{counted(len(lacking), spoken(name)) if len(lacking) == 1 else f'{len(lacking)} {plural(name)}'} "
                    f"({listed(lacking, _SHOWN)}), where other algorithms have.",
                    advice=f"Run what is missing: conclusions about it apply to {plural(name)} like those it ran on.",
                )
            )
    return found


def _note(message: str, advice: str, count: int = 1) -> Finding:
    return Finding("note", "families", message, advice, count=count)
