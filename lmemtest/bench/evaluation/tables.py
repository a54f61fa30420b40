"""The tables of an evaluation: pairs and models, variances by source, what repetition changes, what would be found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit

from lmemtest.bench.evaluation.answers import answered, by_task, noise_of, sampled, starts, task_means, without_tasks
from lmemtest.bench.evaluation.questions import ITEMS, LIKE, LOG_ODDS, SUFFIX, THESE, judge_means
from lmemtest.bench.power.draw import smallest_effect
from lmemtest.core.proportions import wilson
from lmemtest.core.rounding import below, tie_order
from lmemtest.core.words import rank_span
from lmemtest.lmm.distributions.student import t_quantile

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.model import LmmFit

_SAME, _FEW_VALUES = 1e-12, 8  # scores this close are the same; so few values are counted one by one, by products
_USUAL = 1.959963984540054  # standard deviations that hold 95 % of a normal distribution
_MEANING = {
    "family": "difficulty of families of tasks; cancels from differences",
    "family:model": "advantages of models that change from family to family",
    "task": "difficulty of tasks; cancels from differences",
    "task:model": "advantages of models that change from task to task",
    "item": "difficulty of items of one task; cancels from differences",
    "item:model": "advantages of models that change from item to item of one task",
    "epoch": "one attempt against another of the same model at the same item",
}
_CHANCE_TOO = ", and chance: each answer was given once"


def pairs_table(
    blocks: Blocks,
    pairs: Mapping[str, Comparisons],
    alpha: float,
    effect: str = "estimate",
    ends: tuple[float, float] = (0.0, 1.0),
) -> pd.DataFrame:
    """One row per pair; `effect` is "estimate", of differences of scores between two `ends`, or "odds_ratio"."""
    largest = ends[1] - ends[0]
    i, j = np.triu_indices(len(blocks.algorithms), k=1)
    names = np.array(blocks.algorithms, dtype=object)
    differ, shared = differing(blocks.means.T, i, j)
    n_differ = pd.array(differ, dtype="Int64")
    n_differ[shared == 0] = pd.NA
    out = pd.DataFrame({"left": names[i], "right": names[j], "n_differ": n_differ})
    for question, compared in pairs.items():
        suffix = SUFFIX[question]
        for column in ("estimate", "se", "df", "p_value", "ci_low", "ci_high"):
            values = compared.table[column].to_numpy(dtype=float)
            if column in ("estimate", "ci_low", "ci_high") and effect == "odds_ratio":
                values = np.exp(values)
            elif column in ("ci_low", "ci_high"):
                values = values.clip(-largest, largest)
            out[f"{effect if column == 'estimate' else column}_{suffix}"] = values
        p = out[f"p_value_{suffix}"]
        out[f"differ_{suffix}"] = pd.array(below(p.to_numpy(), alpha), dtype="boolean")
        out.loc[p.isna(), f"differ_{suffix}"] = pd.NA
    return out


def best_first(pairs: pd.DataFrame, models: Iterable[str]) -> pd.DataFrame:
    """A table of pairs in the order of these models, each of the better one against the other.

    Examples
    --------
    >>> pairs = pd.DataFrame({"left": ["A"], "right": ["B"], "estimate_these": [-0.2], "ci_low_these": [-0.3],
    ...                       "ci_high_these": [-0.1], "p_value_these": [0.01]})
    >>> best_first(pairs, ["B", "A"]).to_dict("list")
    {'left': ['B'], 'right': ['A'], 'estimate_these': [0.2], 'ci_low_these': [0.1], 'ci_high_these': [0.3],
    'p_value_these': [0.01]}
    """
    place = {name: rank for rank, name in enumerate(models)}
    ends = {f"ci_{end}_{suffix}": f"ci_{other}_{suffix}" for suffix in SUFFIX.values()
            for end, other in (("low", "high"), ("high", "low"))}  # fmt: skip
    other = pairs.rename(columns={"left": "right", "right": "left", **ends})
    odds = any(name.startswith("odds_ratio") for name in pairs.columns)
    signed = [name for name in other.columns if name.startswith(("estimate_", "odds_ratio_", "ci_"))]
    other[signed] = 1.0 / other[signed] if odds else -other[signed]
    turned = pairs["left"].map(place).to_numpy() > pairs["right"].map(place).to_numpy()
    both = pd.concat([pairs[~turned], other.loc[turned, pairs.columns]])
    return both.iloc[np.lexsort([both["right"].map(place), both["left"].map(place)])].reset_index(drop=True)


def differing(y: Array, i: Index, j: Index) -> tuple[Index, Index]:
    """In how many columns the rows i and j of ``(k, n)`` differ, and how many both have; NaN is not known.

    Examples
    --------
    >>> y = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, np.nan]])
    >>> [counts.tolist() for counts in differing(y, np.array([0]), np.array([1]))]
    [[1], [2]]
    """

    def both(mask: Mask) -> Index:
        ones = mask.astype(float)
        return (ones @ ones.T)[i, j].astype(np.intp)

    known = ~np.isnan(y)
    values, shared = np.unique(y[known]), both(known)
    if len(values) <= _FEW_VALUES and (np.diff(values) > _SAME).all():
        return shared - sum((both(y == value) for value in values), start=np.zeros_like(shared)), shared
    gaps = (np.abs(y[a] - y[b]) for a, b in zip(i, j, strict=True))
    return np.fromiter(((gap > _SAME).sum() for gap in gaps), np.intp, len(i)), shared


def models_table(
    blocks: Blocks,
    means: Mapping[str, Estimates],
    pairs: Mapping[str, Comparisons],
    cluster: Index | None,
    alpha: float,
    ends: tuple[float, float] = (0.0, 1.0),
) -> pd.DataFrame:
    counts, units = answered(blocks), sampled(blocks, cluster)
    has, of_tasks = counts > 0, task_means(blocks).mean(axis=1)
    out = pd.DataFrame({"model": list(blocks.algorithms), "n_tasks": has.sum(axis=1), "n_items": counts.sum(axis=1)})
    # a mean of scores between two ends varies at most as one of so many right and wrong answers
    fewest = {THESE: len(blocks.names) * np.where(units > 0, units, units.max()).min(axis=1), LIKE: has.sum(axis=1)}
    fewest[ITEMS] = counts.sum(axis=1)
    if blocks.family is not None:
        family = blocks.family[starts(blocks)]
        fewest[LIKE] = sum(has[:, family == name].any(axis=1).astype(int) for name in set(family))
    outside = without_tasks(blocks)
    decisions = {question: pairs[question].decisions(alpha, direction=blocks.direction) for question in means}
    for question, estimates in means.items():
        suffix, columns = SUFFIX[question], decisions[question].columns(blocks.algorithms)
        if estimates.score == LOG_ODDS:
            mean, low, high = expit([estimates.estimate, estimates.ci_low, estimates.ci_high])
            scores = blocks.means.T  # where nothing was wrong, or right, no log odds are too far out
            low = np.where(np.nanmax(scores, axis=1) == 0.0, 0.0, low)
            high = np.where(np.nanmin(scores, axis=1) == 1.0, 1.0, high)
        else:
            mean = estimates.estimate if question == LIKE else of_tasks
            items = len(blocks.names) * counts.min(axis=1) if question == THESE else np.inf
            low, high = _accuracy_interval(estimates, fewest[question], alpha, ends, items)
        out[f"accuracy_{suffix}"] = mean
        out[f"ci_low_{suffix}"], out[f"ci_high_{suffix}"] = low, high
        hidden = {} if question == LIKE else outside
        for name, values in columns.items():
            out[f"{name}_{suffix}"] = values
        if "letters" in columns:
            out.loc[out["model"].isin(hidden), f"letters_{suffix}"] = ""
    if all(np.isfinite(decisions[THESE].means)):
        return out.set_index("model").loc[list(decisions[THESE].levels)].reset_index()
    return out.iloc[tie_order(of_tasks, descending=blocks.direction == "maximize")].reset_index(drop=True)


def groups_column(models: pd.DataFrame, suffix: str) -> list[str]:
    """What tables and figures show beside the models: letters of a few, the sets of ranks of many."""
    if f"letters_{suffix}" in models:
        return models[f"letters_{suffix}"].tolist()
    return [rank_span(*ends) for ends in zip(models[f"rank_low_{suffix}"], models[f"rank_high_{suffix}"], strict=True)]


def _accuracy_interval(
    means: Estimates, fewest: Any, alpha: float, ends: tuple[float, float], items: Any
) -> tuple[Any, Any]:
    """Wilson's interval of as many answers as the variance of the mean amounts to, `fewest` at least.

    A variance of few items is too small where those that would raise it were not drawn: of pass@k near 1, an item that
    is hardly ever solved. So it is that of one item more, half right and half wrong, beside so many `items`; scores of
    0 and 1 on one task tell as much as their items then, whatever their mean. Infinitely many: the variance as it is.
    """
    floor, width = ends[0], ends[1] - ends[0]
    p, V = np.clip((means.estimate - floor) / width, 0.0, 1.0), (np.asarray(means.se) / width) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        half = 0.5 / (items + 1.0)
        m = p + half * (1.0 - 2.0 * p)  # mean of items + 1
        squares = (items - 1.0) * V + (p - m) ** 2 + 0.5 / items * ((1.0 - m) ** 2 + m**2)
        size = np.fmax(m * (1.0 - m) / np.where(np.isinf(items), V, squares / (items + 1.0)), fewest)
    size = np.where(np.isfinite(size) & (V > 0.0), size, fewest)
    quantile: Any = t_quantile(0.5 * alpha, means.df)
    low, high = (floor + width * end for end in wilson(p, size, quantile))
    known = np.isfinite(means.se) & np.isfinite(means.estimate)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def variances_of(fit: LmmFit, blocks: Blocks, judges: Mapping[str, Array], per_row: float) -> dict[str, float]:
    """Variances by source: task, task:model, item, item:model, epoch (0 where answers were not repeated).

    With families as the sample also family and family:model. `per_row` answers are in a row of the fit.
    """
    of = {row["group"]: float(row["variance"]) for row in fit.varcorr.to_dict("records")}
    for name in {"Residual", "task:item"} & set(of):
        of[name] *= per_row
    noise, epochs = noise_of(blocks), blocks.n_runs.T
    known = np.isfinite(noise)
    epoch = float((noise[known] * (epochs[known] - 1.0)).sum() / (epochs[known] - 1.0).sum()) if known.any() else 0.0
    if judges:
        of_pair = of["task:item:model"]
    else:
        of_pair = max(of["Residual"] - epoch * float((1.0 / epochs[epochs > 0]).mean()), 0.0)
    names = ("family", "family:model") if blocks.family is not None else ()
    shared = {name: of.get(name, 0.0) for name in (*names, "task", "task:model")}
    return {**shared, "item": of.get("task:item", 0.0), "item:model": of_pair, "epoch": epoch}


def sources_table(variances: Mapping[str, float], has_epochs: bool) -> pd.DataFrame:
    """Standard deviations by source with what each is; without repeated answers chance is part of the last one."""
    kept = {name: value for name, value in variances.items() if name != "epoch" or has_epochs}
    meaning = _MEANING if has_epochs else {**_MEANING, "item:model": f"{_MEANING['item:model']}{_CHANCE_TOO}"}
    return pd.DataFrame(
        {"source": list(kept), "sd": np.sqrt(list(kept.values())), "meaning": [meaning[name] for name in kept]}
    )


def judges_table(blocks: Blocks, judges: Mapping[str, Array]) -> pd.DataFrame:
    if not judges:
        return pd.DataFrame()
    means = judge_means(blocks, judges, np.nan)
    judge, model = np.indices(means.shape)
    names = {"judge": np.array([*judges])[judge.ravel()], "model": np.array(blocks.algorithms)[model.ravel()]}
    return pd.DataFrame({**names, "accuracy": means.ravel()})


def noise_floor(blocks: Blocks) -> pd.DataFrame:
    """Standard deviation of the accuracy of a model over runs of it, from the scatter of its epochs.

    One row per model: ``model``, ``n_epochs`` (harmonic mean), ``sd_run`` of the accuracy of one run (one epoch of each
    item), ``sd_difference`` of two such runs, ``largest_usual``: 95 % of differences of two runs are smaller;
    ``sd_here``: of the difference of two runs with as many epochs as here. NaN without repeated answers.
    """
    noise, epochs, n_items = noise_of(blocks), blocks.n_runs.T, answered(blocks)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = by_task(blocks, np.nan_to_num(noise)) / by_task(blocks, np.isfinite(noise).astype(float))
        of_task = np.where(n_items > 0, mean / n_items, 0.0)  # variance of the accuracy of one run on a task
        variance = of_task.sum(axis=1) / (n_items > 0).sum(axis=1) ** 2
        n_epochs = n_items.sum(axis=1) / np.where(epochs > 0, 1.0 / epochs, 0.0).sum(axis=1)
    sd = np.sqrt(variance)
    both = np.sqrt(2.0) * sd
    return pd.DataFrame(
        {
            "model": list(blocks.algorithms),
            "n_epochs": n_epochs,
            "sd_run": sd,
            "sd_difference": both,
            "largest_usual": _USUAL * both,
            "sd_here": both / np.sqrt(n_epochs),
        }
    )


def detectable_of(pairs: Comparisons, alpha: float, power: float) -> dict[str, float]:
    """Of the middle pair: standard error, degrees of freedom, critical t, smallest difference (odds ratio) found."""
    table = pairs.table
    tested = table["p_value"].notna().to_numpy()
    if not tested.any():
        return dict.fromkeys(["se", "df", "critical", "smallest"], np.nan)
    se, df = (table[name].to_numpy(dtype=float)[tested] for name in ("se", "df"))
    critical = pairs.half_widths(alpha, first_step=True)[tested] / se
    middle = int(np.argsort(se, kind="stable")[len(se) // 2])
    found = {"se": float(se[middle]), "df": float(df[middle]), "critical": float(critical[middle])}
    smallest = smallest_effect(power, found["se"], found["df"], found["critical"])
    return {**found, "smallest": float(np.exp(smallest)) if pairs.estimates.score == LOG_ODDS else smallest}
