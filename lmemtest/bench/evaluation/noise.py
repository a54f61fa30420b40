"""What repetition alone changes, and the smallest difference that a design finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.evaluation.answers import Answers
from lmemtest.bench.power.closed_form import smallest_effect
from lmemtest.bench.power.components import Pilot, VarianceComponents
from lmemtest.core.rounding import written

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.model import LmmFit

_USUAL = 1.959963984540054  # standard deviations that hold 95 % of a normal distribution


def noise_floor(answers: Answers) -> pd.DataFrame:
    """Standard deviation of the accuracy of a model over runs of it, from the scatter of its epochs.

    One row per model: ``model``, ``n_epochs`` (harmonic mean), ``sd_run`` of the accuracy of one run (one epoch of each
    item), ``sd_difference`` of two such runs, ``largest_usual``: 95 % of differences of two runs are smaller;
    ``sd_here``: of the difference of two runs with as many epochs as here. NaN without repeated answers.
    """
    known = np.isfinite(answers.noise)
    answered = ~np.isnan(answers.scores)
    sums, n_known, n_items = (
        np.add.reduceat(part.astype(float), answers.starts, axis=1)
        for part in (np.where(known, answers.noise, 0.0), known, answered)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        of_task = np.where(n_items > 0, sums / n_known / n_items, 0.0)  # variance of the accuracy of one run on a task
        variance = of_task.sum(axis=1) / (n_items > 0).sum(axis=1) ** 2
        n_epochs = answered.sum(axis=1) / np.where(answered, 1.0 / answers.epochs, 0.0).sum(axis=1)
    sd = np.sqrt(variance)
    both = np.sqrt(2.0) * sd
    return pd.DataFrame(
        {
            "model": list(answers.models),
            "n_epochs": n_epochs,
            "sd_run": sd,
            "sd_difference": both,
            "largest_usual": _USUAL * both,
            "sd_here": both / np.sqrt(n_epochs),
        }
    )


def epoch_variance(answers: Answers) -> float:
    """Variance of one epoch about the mean of its model and item; NaN without repeated answers."""
    known = np.isfinite(answers.noise)
    freedom = np.where(known, answers.epochs - 1.0, 0.0)
    return float((np.where(known, answers.noise, 0.0) * freedom).sum() / freedom.sum()) if known.any() else np.nan


def detectable_of(pairs: Comparisons, alpha: float, power: float) -> dict[str, float]:
    """Of the middle pair: its standard error, degrees of freedom, critical t, and the smallest difference found."""
    table = pairs.table
    tested = table["p_value"].notna().to_numpy()
    if not tested.any():
        return dict.fromkeys(["se", "df", "critical", "smallest"], np.nan)
    se, df = (table[name].to_numpy(dtype=float)[tested] for name in ("se", "df"))
    critical = pairs.half_widths(1.0 - alpha, first_step=True)[tested] / se
    middle = int(np.argsort(se, kind="stable")[len(se) // 2])
    found = {"se": float(se[middle]), "df": float(df[middle]), "critical": float(critical[middle])}
    return {**found, "smallest": smallest_effect(power, found["se"], found["df"], found["critical"])}


def plan_components(fit: LmmFit, answers: Answers) -> VarianceComponents:
    """The variances of the mixed model in the words of a plan: tasks are benchmarks, items seeds."""
    parts = variances_of(fit, answers)
    between = parts["family:model"] ** 0.5 if answers.families_are_sample else None
    items = float(answers.n_items[answers.n_items > 0].size / (1.0 / answers.n_items[answers.n_items > 0]).sum())
    return VarianceComponents(
        family_interaction_sd=between,
        family_sd=None if between is None else parts["family"] ** 0.5,
        interaction_sd=parts["task:model"] ** 0.5,
        residual_sd=max(parts["item:model"] + parts["epoch"], np.finfo(float).tiny) ** 0.5,
        seed_sd=parts["item"] ** 0.5,
        benchmark_sd=parts["task"] ** 0.5,
        pilot=Pilot(
            n_algorithms=len(answers.models),
            n_benchmarks=len(answers.tasks),
            n_seeds=items,
            n_families=len(answers.families) if answers.families_are_sample else None,
        ),
    )


def variances_of(fit: LmmFit, answers: Answers) -> dict[str, float]:
    """Variances by source: task, task:model, item, item:model, epoch (0 where answers were not repeated).

    With families as the sample also family and family:model.
    """
    found = {row["group"]: float(row["variance"]) for row in fit.varcorr.to_dict("records")}
    for name in {"Residual", "task:item"} & set(found):
        found[name] *= answers.per_block
    rest, epoch = found["Residual"], epoch_variance(answers)
    epoch = 0.0 if np.isnan(epoch) else epoch
    if answers.judges_are_sample:
        of_pair = found["task:item:model"]
    else:
        counts = answers.epochs[answers.epochs > 0]
        of_pair = max(rest - epoch * float((1.0 / counts).mean()), 0.0)
    families = ("family", "family:model") if answers.families_are_sample else ()
    return {
        **{name: found.get(name, 0.0) for name in families},
        "task": found.get("task", 0.0),
        "task:model": found.get("task:model", 0.0),
        "item": found.get("task:item", 0.0),
        "item:model": of_pair,
        "epoch": epoch,
    }


def points(x: float) -> str:
    """A difference of accuracies.

    >>> points(0.0312), points(0.00042)
    ('0.031', '0.0004')
    """
    return written(float(x), ".3f") if abs(x) >= 0.0005 else written(float(x), ".1g")
