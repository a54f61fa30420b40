"""The tables of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.evaluation.answers import Answers
from lmemtest.bench.evaluation.noise import variances_of
from lmemtest.bench.evaluation.questions import LIKE, SUFFIX, THESE
from lmemtest.core.proportions import wilson
from lmemtest.core.rounding import below, tie_order
from lmemtest.lmm.distributions.student import t_quantile

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.model import LmmFit

_MEANING = {
    "family": "difficulty of families of tasks; cancels from differences",
    "family:model": "advantages of models that change from family to family",
    "task": "difficulty of tasks; cancels from differences",
    "task:model": "advantages of models that change from task to task",
    "item": "difficulty of items of one task; cancels from differences",
    "item:model": "advantages of models that change from item to item of one task",
    "epoch": "one attempt against another of the same model at the same item",
}


def pairs_table(answers: Answers, pairs: Mapping[str, Comparisons], alpha: float) -> pd.DataFrame:
    i, j = np.triu_indices(len(answers.models), k=1)
    names = np.array(answers.models, dtype=object)
    y = answers.scores
    differ = [
        int((np.abs(y[a] - y[b]) > 1e-12).sum()) if have_common(y[a], y[b]) else None for a, b in zip(i, j, strict=True)
    ]
    out = pd.DataFrame({"left": names[i], "right": names[j], "n_differ": pd.array(differ, dtype="Int64")})
    for question, found in pairs.items():
        suffix = SUFFIX[question]
        for column in ("estimate", "se", "df", "p_value", "ci_low", "ci_high"):
            values = found.table[column].to_numpy(dtype=float)
            out[f"{column}_{suffix}"] = values.clip(-1.0, 1.0) if column.startswith("ci") else values
        p = out[f"p_value_{suffix}"]
        out[f"differ_{suffix}"] = pd.array(below(p.to_numpy(), alpha), dtype="boolean")
        out.loc[p.isna(), f"differ_{suffix}"] = pd.NA
    return out


def have_common(a: Any, b: Any) -> bool:
    return bool((~np.isnan(a) & ~np.isnan(b)).any())


def models_table(
    answers: Answers,
    asked: Mapping[str, Estimates | None],
    pairs: Mapping[str, Comparisons],
    alpha: float,
    direction: str,
) -> pd.DataFrame:
    counts = answers.n_items
    out = pd.DataFrame(
        {"model": list(answers.models), "n_tasks": (counts > 0).sum(axis=1), "n_items": counts.sum(axis=1)}
    )
    # a mean of scores in [0, 1] varies at most as one of so many right and wrong answers
    sampled = answers.n_sampled
    fewest = {THESE: len(answers.tasks) * np.where(sampled > 0, sampled, sampled.max()).min(axis=1)}
    has = counts > 0
    if answers.families_are_sample:
        has = np.stack([has[:, answers.family == f].any(axis=1) for f in range(len(answers.families))], axis=1)
    fewest[LIKE] = has.sum(axis=1)
    for question, means in asked.items():
        if means is None:
            continue
        suffix, found = SUFFIX[question], pairs[question].decisions(alpha, direction=direction)
        low, high = _accuracy_interval(means, fewest[question], alpha)
        out[f"accuracy_{suffix}"] = answers.task_means().mean(axis=1) if question == THESE else means.estimate
        out[f"ci_low_{suffix}"], out[f"ci_high_{suffix}"] = low, high
        outside = answers.without_tasks if question == THESE else {}
        out[f"letters_{suffix}"] = ["" if name in outside else found.letters[name] for name in answers.models]
    found = pairs[THESE].decisions(alpha, direction=direction)
    if all(np.isfinite(found.means)):
        return out.set_index("model").loc[list(found.levels)].reset_index()
    best_first = tie_order(answers.task_means().mean(axis=1), descending=direction == "maximize")
    return out.iloc[best_first].reset_index(drop=True)


def _accuracy_interval(means: Estimates, fewest: Any, alpha: float) -> tuple[Any, Any]:
    """Wilson's interval of as many answers as the variance of the mean amounts to."""
    p = np.clip(means.estimate, 0.0, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.fmax(p * (1.0 - p) / means.se**2, fewest)
    size = np.where(np.isfinite(size), size, fewest)
    quantile: Any = t_quantile(0.5 * alpha, means.df)
    low, high = wilson(p, size, quantile)
    known = np.isfinite(means.se) & np.isfinite(means.estimate)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def sources_table(fit: LmmFit, answers: Answers) -> pd.DataFrame:
    found = variances_of(fit, answers)
    kept = {name: value for name, value in found.items() if name != "epoch" or answers.has_epochs}
    return pd.DataFrame(
        {"source": list(kept), "sd": np.sqrt(list(kept.values())), "meaning": [_MEANING[name] for name in kept]}
    )


def judges_table(answers: Answers) -> pd.DataFrame:
    if not answers.judges:
        return pd.DataFrame()
    sums = np.add.reduceat(np.nan_to_num(answers.by_judge), answers.starts, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.nanmean(sums / answers.n_items[None], axis=2)
    judge, model = np.indices(means.shape)
    names = {"judge": np.array(answers.judges)[judge.ravel()], "model": np.array(answers.models)[model.ravel()]}
    return pd.DataFrame({**names, "accuracy": means.ravel()})
