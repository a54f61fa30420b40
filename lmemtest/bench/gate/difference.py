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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.gate.versions import keys_of, of_each, place_names, runs_of
from lmemtest.bench.modelling.recommend import Population, recommend
from lmemtest.core.caller import advice
from lmemtest.core.rounding import tolerance
from lmemtest.core.words import plural, spoken
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

LIKE_THESE, THESE = "like these", "these"
POPULATIONS = (LIKE_THESE, THESE)
_NO_SCATTER = 1e-9  # of the largest score: what is below it is rounding
_CONSTANT = "the differences do not vary at all, so their uncertainty cannot be estimated"


def difference(
    name: str, rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str], tasks: str
) -> tuple[dict[str, Any], bool, tuple[str, ...]]:
    """New less old on one metric, on the scale of the score; a `DesignError` says why there is none.

    The first has `estimate`, `se`, `df`; `unit` and `n`: what the sample is of (tasks, families of tasks, or runs) and
    its size, of runs the fewest of a version on a task; `claim`: what it is about, in the words of the recommended
    model, where tasks come in families. Then whether the error falls with the number of these units alone; and notes.
    """
    size = float(np.abs(rows["score"]).max())
    if _spread_of_pairs(rows, runs, names) <= _NO_SCATTER * size:
        raise DesignError(_CONSTANT)
    about, scales, (model, *notes) = (_these if tasks == THESE else _like_these)(rows, runs, names)
    if about["se"] <= _NO_SCATTER * size:
        raise DesignError(_CONSTANT)
    if not scales:
        notes.append(
            f"{name}: runs of a version with one seed share its effect over {plural(about['unit'])}, and more of these "
            "do not make it smaller."
        )
    return about, scales, (f"{name}: {model}.", *notes)


def _spread_of_pairs(rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]) -> float:
    """Range of the differences of pairs of runs; infinite where runs are no pairs."""
    keys = keys_of(runs)
    if not keys or rows.duplicated([runs.algorithm, *keys]).any():
        return np.inf
    new, old = (part.set_index(keys)["score"] for part in of_each(rows, runs, names))
    pairs = new.sub(old).dropna().to_numpy()
    return float(np.ptp(pairs)) if len(pairs) > 1 else np.inf


def _like_these(
    rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]
) -> tuple[dict[str, Any], bool, tuple[str, ...]]:
    version, benchmark, (_, old) = runs.algorithm, runs.benchmark, names
    n_tasks = 1 if benchmark is None else rows[benchmark].nunique()
    if n_tasks < 2:
        this = advice("value", name="tasks", value="these")
        raise DesignError(f"one task says nothing about tasks like it. Run more tasks, or ask about this one: {this}")
    runs = runs_of(rows, runs)
    advised = recommend(runs)
    row = advised.spec.fit(runs).emmeans(version, vcov="moderated").against(old, adjust="none").table.iloc[0]
    if not np.isfinite([row["estimate"], row["se"], row["df"]]).all():
        raise DesignError("these runs do not identify the difference or its standard error")
    population = Population.of(runs)
    families = units_of(runs)
    n = runs.study.count(*families) if families else n_tasks
    # what versions do not share is new with every unit: that of a family, and that of a task within one family
    new = [set(families)] * bool(families) + [{benchmark}] * (not families or not runs.study.crossed)
    own = [set(bar.groups) for bar in advised.spec.bars if version in bar.groups]
    about = {
        "estimate": float(row["estimate"]),
        "se": float(row["se"]),
        "df": min(float(row["df"]), n - 1.0),  # luck with shared seeds has more, if it was found by chance
        "unit": spoken(families[-1]) if families else "task",
        "n": int(n),
        "claim": population.claim if runs.family else "",
    }
    return about, all(any(unit <= groups for unit in new) for groups in own), (advised.formula,)


def units_of(runs: Runs) -> tuple[str, ...]:
    """The columns of the families that are the sample; none where tasks are."""
    families = Population.of(runs).families
    return families[0] if families else ()


def _these(rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]) -> tuple[dict[str, Any], bool, tuple[str, ...]]:
    parts, thin, unpaired = [], [], 0
    groups = rows.groupby(runs.benchmark or (lambda _: "all"), observed=True, sort=False)
    for task, own in groups:
        new, old = of_each(own, runs, names)
        part, alone = _on_task(new, old, runs.seed)
        unpaired += alone
        if part is None:
            thin.append(task)
        else:
            parts.append(part)
    if thin:
        like_these = f", or ask about tasks like these: {advice('like_these')}"
        raise DesignError(
            f"on these tasks a version has a single run, which shows no scatter: {place_names(thin)}. Run it there "
            "twice or more" + like_these * (len(groups) > 1)
        )
    d, v, f, n = (np.array(column, dtype=float) for column in zip(*parts, strict=True))
    v = np.where(v <= tolerance(rows["score"]) ** 2, 0.0, v)
    total = float(v.sum())
    about = {
        "estimate": float(d.mean()),
        "se": float(np.sqrt(total)) / len(d),
        "df": total**2 / float(np.sum(v**2 / f)) if total > 0 else float("nan"),
        "unit": "run",
        "n": int(n.min()),
        "claim": "",
    }
    model = "mean over tasks of the differences between the versions, each with its own variance between runs"
    left_out = [f"{unpaired:,} runs whose seed only one version has on a task are left out."] * bool(unpaired)
    return about, True, (model, *left_out)


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
