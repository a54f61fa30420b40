"""The difference of two versions on one metric: over tasks like these, or on these tasks.

*Tasks like these*: the tasks are a sample. The recommended mixed model with the version as its algorithm, and the
standard error of the difference from its own scatter over the tasks, never less than the model's; in complete tables
that is the paired t-test over the means of tasks.

*These tasks*: what would further runs on the same tasks show? With the difference d_t of the means on task t, from n_t
pairs of runs with the same seed (or from independent runs), its squared error v_t and its degrees of freedom f_t,

    difference = sum d_t / T,    se^2 = sum v_t / T^2,    df = (sum v_t)^2 / sum(v_t^2 / f_t)

(Satterthwaite 1946, doi:10.2307/3002019), so that each task may have noise of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.gate.versions import Versions, place_names
from lmemtest.bench.modelling.population import Population
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.caller import advice
from lmemtest.core.rounding import tolerance
from lmemtest.core.words import spoken
from lmemtest.errors import LmemtestError

if TYPE_CHECKING:
    import pandas as pd

LIKE_THESE, THESE = "like these", "these"
POPULATIONS = (LIKE_THESE, THESE)
_NO_SCATTER = 1e-9  # of the largest score: what is below it is rounding
_CONSTANT = "the differences do not vary at all, so nothing says how sure they are"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """New less old, on the scale of the score.

    Attributes
    ----------
    estimate, se, df : float
    n_units : int
        Units of the sample: tasks, or families of tasks; with `THESE` the fewest runs of a version on a task.
    unit : str
        What one of them is called.
    columns : tuple of str
        Columns of the families that are the units; none where tasks or runs are.
    claim : str
        What the difference is about, in the words of the recommended model; empty unless tasks come in families.
    scales : bool
        Whether the error falls with the number of these units alone.
    model : str
        How it was obtained.
    notes : tuple of str
    """

    estimate: float
    se: float
    df: float
    n_units: int
    unit: str = "task"
    columns: tuple[str, ...] = ()
    claim: str = ""
    scales: bool
    model: str
    notes: tuple[str, ...] = ()


def difference(rows: pd.DataFrame, versions: Versions, tasks: str) -> Difference | str:
    """The difference, or the reason why there is none."""
    size = float(np.abs(rows["score"]).max())
    if _spread_of_pairs(rows, versions) <= _NO_SCATTER * size:
        return _CONSTANT
    found = _these(rows, versions) if tasks == THESE else _like_these(rows, versions)
    return _CONSTANT if isinstance(found, Difference) and found.se <= _NO_SCATTER * size else found


def _spread_of_pairs(rows: pd.DataFrame, versions: Versions) -> float:
    """Range of the differences of pairs of runs; infinite where runs are no pairs."""
    keys = versions.keys
    if not keys or rows.duplicated([versions.version, *keys]).any():
        return np.inf
    new, old = (
        rows[rows[versions.version] == version].set_index(keys)["score"] for version in (versions.new, versions.old)
    )
    pairs = new.sub(old).dropna().to_numpy()
    return float(np.ptp(pairs)) if len(pairs) > 1 else np.inf


def _like_these(rows: pd.DataFrame, versions: Versions) -> Difference | str:
    benchmark, version = versions.roles["benchmark"], versions.version
    n_tasks = 1 if benchmark is None else rows[benchmark].nunique()
    if n_tasks < 2:
        return "one task says nothing about tasks like it"
    runs = Runs(rows, score="score", direction="maximize", **versions.roles)
    try:
        advised = recommend(runs)
        found = advised.spec.fit(runs).emmeans(version, vcov="moderated").against(versions.old, adjust="none").table
    except LmemtestError as error:
        return str(error)[:1].lower() + str(error)[1:].removesuffix(".")
    row = found.iloc[0]
    if not np.isfinite([row["estimate"], row["se"], row["df"]]).all():
        return "these runs do not identify the difference or its standard error"
    population = Population.of(runs)
    families = population.families[0] if population.families else ()
    units = runs.study.count(*families) if families else n_tasks
    # what versions do not share is new with every unit: that of a family, and that of a task within one family
    new = [set(families)] * bool(families) + [{benchmark}] * (not families or not runs.study.crossed)
    own = [set(bar.groups) for bar in advised.spec.bars if version in bar.groups]
    return Difference(
        estimate=float(row["estimate"]),
        se=float(row["se"]),
        df=min(float(row["df"]), units - 1.0),  # luck with shared seeds has more, if it was found by chance
        n_units=int(units),
        unit=spoken(families[-1]) if families else "task",
        columns=tuple(families),
        claim=population.claim if runs.family else "",
        scales=all(any(unit <= groups for unit in new) for groups in own),
        model=advised.formula,
    )


def _these(rows: pd.DataFrame, versions: Versions) -> Difference | str:
    benchmark, seed = versions.roles["benchmark"], versions.roles["seed"]
    groups = [("all", rows)] if benchmark is None else list(rows.groupby(benchmark, observed=True, sort=False))
    parts, thin, unpaired = [], [], 0
    for task, own in groups:
        new, old = (own[own[versions.version] == label] for label in (versions.new, versions.old))
        part, alone = _on_task(new, old, seed)
        unpaired += alone
        if part is None:
            thin.append(task)
        else:
            parts.append(part)
    if thin:
        return (
            f"on these tasks a version has a single run, which shows no scatter: {place_names(thin)}. Run it there "
            "twice or more" + f", or ask about tasks like these: {advice('like_these')}" * (len(groups) > 1)
        )
    d, v, f, n = (np.array(column, dtype=float) for column in zip(*parts, strict=True))
    v = np.where(v <= tolerance(rows["score"]) ** 2, 0.0, v)
    total = float(v.sum())
    df = total**2 / float(np.sum(v**2 / f)) if total > 0 else float("nan")
    notes = (f"{unpaired:,} runs whose seed only one version has on a task are left out.",) if unpaired else ()
    return Difference(
        estimate=float(d.mean()),
        se=float(np.sqrt(total)) / len(d),
        df=df,
        n_units=int(n.min()),
        unit="run",
        scales=True,
        model="mean over tasks of the differences between the versions, each with its own variance between runs",
        notes=notes,
    )


def _on_task(new: pd.DataFrame, old: pd.DataFrame, seed: Any) -> tuple[tuple[float, float, float, int] | None, int]:
    """Difference, squared error, degrees of freedom and runs on one task; and the runs that have no partner."""
    if seed is not None:
        pairs = new.set_index(seed)["score"].sub(old.set_index(seed)["score"]).dropna().to_numpy()
        n = len(pairs)
        if n:
            alone = len(new) + len(old) - 2 * n
            return (None if n < 2 else (pairs.mean(), pairs.var(ddof=1) / n, n - 1, n)), alone
    a, b = new["score"].to_numpy(), old["score"].to_numpy()
    if min(len(a), len(b)) < 2:
        return None, 0
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    both = va + vb
    df = both**2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)) if both > 0 else len(a) + len(b) - 2
    return (a.mean() - b.mean(), both, df, min(len(a), len(b))), 0
