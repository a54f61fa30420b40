"""Repeated attempts at items: pass@k, pass^k, the majority of k, how often attempts agree, and how many are worth it.

A model is right in c of its n attempts at an item. Of k of these, drawn at random, x are right with the chance

    C(c, x) C(n - c, k - x) / C(n, k)    (hypergeometric),

and the mean of any function of x is an unbiased estimate of its mean over k further attempts: pass@k of x > 0 (Chen et
al. 2021: 1 - C(n - c, k) / C(n, k)), pass^k of x = k (Yao et al. 2024), maj@k of 2 x > k with ties counted by half, and
agreement of x = 0 or x = k. Each is a score in [0, 1] of a model on an item, and `evaluate` has the questions that
are asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.evaluation.answers import answered, by_task, noise_of, read_answers
from lmemtest.bench.evaluation.questions import LIKE, THESE, fit_of, on_tasks_like_these, on_these_items, on_these_tasks
from lmemtest.bench.evaluation.refusals import check_scale, refuse_nothing
from lmemtest.bench.evaluation.reservations import notes_on
from lmemtest.bench.evaluation.tables import models_table, noise_floor, pairs_table, variances_of
from lmemtest.bench.power.plan import Plan, plan
from lmemtest.core.caller import advice, named
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES, REPORT_ADJUSTMENTS
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_number, check_positive_int
from lmemtest.core.words import counted, joined, percent, plural
from lmemtest.errors import ArgumentError, DataError, DesignError

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.estimates import Estimates

AGREEMENT = "agree@k"
# what x right attempts of k are worth
_WORTH: dict[str, Any] = {
    "pass@k": lambda x, _: x > 0,
    "pass^k": lambda x, k: x == k,
    "maj@k": lambda x, k: (np.sign(2 * x - k) + 1.0) / 2.0,
    AGREEMENT: lambda x, k: (x == 0) | (x == k),
}
_FIRST = {"pass@k": 1, "pass^k": 2, "maj@k": 3}  # below it the same as pass@1
_USUAL = (1, 2, 3, 5, 10, 20, 50, 100)
_MOST = 1000  # attempts that are drawn
_REPEATS = (1, 2, 3, 5, 10, 20, np.inf)
_STAGES = ("item", "epoch")
_MORE_ITEMS = (1, 2, 4)


@guided
@one_blas_thread()
def repeated_attempts(
    table: Any,
    *,
    model: str | Sequence[str] | None = None,
    item: str | None = None,
    task: str | None = None,
    score: str | None = None,
    epoch: str | None = None,
    k: int | Sequence[int] | None = None,
    threshold: float | None = None,
    costs: float | Mapping[str, float] = 1.0,
    judge: str | None = None,
    family: str | None = None,
    cluster: str | None = None,
    min_score: float = 0.0,
    max_score: float = 1.0,
    drop_duplicates: str | None = None,
    adjust: str | None = None,
    alpha: float = 0.05,
) -> Answer:
    """Compare models by repeated attempts: pass@k, pass^k, maj@k, agreement; and how many attempts are worth it.

    Parameters
    ----------
    table, model, item, task, score, judge, family, cluster, min_score, max_score, drop_duplicates
        As in `evaluate`. Scores are 0 and 1 unless `threshold` is given.
    epoch : str
        Column that numbers the attempts at an item. All answers need two attempts or more; their number may differ.
    k : int or sequence of int in [1, 1000], optional
        Numbers of attempts; 1 is always among them. By default 1, 2, 3, 5, 10, 20, 50 and 100, as far as every model
        has so many attempts at every item that it answered.
    threshold : float, optional
        The score from which on an attempt is right, on the scale of the column, above its lowest score. Needed where
        scores are graded, or differ between judges.
    costs : float > 0 or mapping of str to float >= 0
        Of one attempt, or ``{"item": 20.0, "epoch": 1.0}`` with what an item costs besides its attempts.
    adjust : {"stepdown", "singlestep", "tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of pairs, for every statistic and k by itself; "stepdown" by default.
    alpha : float in (0, 1)
        Of decisions; intervals are at 1 - alpha.

    Returns
    -------
    Answer
        ``models``: one row per statistic, k and model, best first: ``statistic`` (pass@k: at least one of k attempts is
        right; pass^k: all are; maj@k: most are, ties counted by half; agree@k: all k are scored alike, for k = 2),
        ``k``, ``model``, ``n_tasks``, ``n_items``, and for each population, ``_these`` and ``_like``, ``estimate``,
        ``ci_low``, ``ci_high`` (not simultaneous), ``rank_low``, ``rank_high``, ``letters``, as in `evaluate`. With k =
        1 all but the last are the accuracy, which stands once as pass@1; so does maj@2.
        ``pairs``: ``statistic``, ``k`` and the columns of the pairs of `evaluate`.
        ``noise``: one row per model: the noise floor of `evaluate`, ``sd_items`` and ``sd_attempts``, ``icc``.
        ``repeats``: ``question``, ``n_items``, ``n_attempts``, and the standard errors of accuracies: ``se_model`` of
        one model and ``se_difference`` of two, by the variances of these answers, means over models and pairs.
        ``plan`` is the `Plan` of the number of items and attempts, on these tasks, for what these attempts cost;
        None where items do not vary beyond the noise of attempts.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, names a column that does not exist, or `epoch` is missing.
    DataError
        If scores are graded and there is no `threshold`, or as in `evaluate`.
    DesignError
        If some answer has fewer attempts than 2 or the largest `k`, or as in `evaluate`.

    Notes
    -----
    Each statistic is a score of a model on an item, the mean over all draws of k of its attempts, which is unbiased;
    populations, errors and tests are those of `evaluate`: ``_these`` takes the items (clusters) of these tasks for the
    sample, ``_like`` the tasks, of which there must be two. Attempts must be independent: with one temperature, without
    memory. Attempts that share an error, such as a broken tool, repeat it in every k.

    ``sd_items`` and ``sd_attempts`` are of items of one task and of attempts at one item, by mean squares within tasks;
    ``icc`` is the share of the first in the sum of both variances. With r attempts the variance of a mean is
    ``(items + attempts / r) / n_items`` (and what tasks add, for tasks like these). What an item costs besides its
    attempts, c attempts, decides on their number: sqrt(c attempts / items) (Cochran 1977, chapter 10).

    References
    ----------
    Chen et al. (2021), Evaluating large language models trained on code, arXiv:2107.03374; Yao et al. (2024),
    tau-bench, arXiv:2406.12045; Hoeffding (1948), Ann. Math. Stat. 19, 293-325

    Examples
    --------
    >>> import itertools
    >>> import lmemtest as lt
    >>> rows = list(itertools.product(["A", "B"], range(30), range(4)))
    >>> table = {"model": [m for m, _, _ in rows], "item": [i for _, i, _ in rows], "attempt": [e for _, _, e in rows],
    ...          "right": [int((7 * i + 3 * e + i * e) % 5 > (2 if m == "A" else 3)) for m, i, e in rows]}
    >>> found = lt.repeated_attempts(table, model="model", item="item", epoch="attempt", score="right", k=[1, 3])
    >>> found.to_frame()[["statistic", "k", "model", "estimate_these"]].round(3).head(4)
      statistic  k model  estimate_these
    0    pass@k  1     A            0.55
    1    pass@k  1     B            0.40
    2    pass@k  3     A            0.95
    3    pass@k  3     B            0.80
    """
    adjust = "stepdown" if adjust is None else check_choice(adjust, "adjust", REPORT_ADJUSTMENTS)
    alpha, scale = check_fraction(alpha, "alpha"), check_scale(min_score, max_score)
    listed: Any = k.tolist() if isinstance(k, np.ndarray) and k.ndim else k
    listed = listed if isinstance(listed, (list, tuple, range)) else [1 if k is None else listed]
    asked = sorted({1, *(check_positive_int(value, "k", maximum=_MOST) for value in listed)})
    plan(dict.fromkeys(_STAGES, 1.0), stages=_STAGES, costs=costs, current={"item": 1})  # refuses costs at once
    if threshold is not None:
        check_number(threshold, "threshold", low=scale[0], high=scale[1], open="low")
    if epoch is None:
        raise ArgumentError(
            f"{named('epoch')} must be the name of the column that numbers the attempts of a model at an item, got "
            f"None. Name it, or add one: {advice('column', role='epoch')}. Single answers are compared by evaluate."
        )
    roles: dict[str, Any] = {"model": model, "item": item, "task": task, "score": score, "epoch": epoch, "judge": judge}
    roles |= {"family": family, "cluster": cluster, "scale": scale, "drop_duplicates": drop_duplicates}
    blocks, judges, of_item, about = read_answers(table, **roles, direction="maximize")
    blocks = replace(blocks, runs=_right(blocks, threshold, scale))
    fewest = _fewest(blocks, max(2, *asked))
    refuse_nothing(blocks)
    counts = asked if k is not None else [n for n in _USUAL if n <= fewest]
    wanted = [(name, n) for name, first in _FIRST.items() for n in counts if n >= first] + [(AGREEMENT, 2)]
    options: dict[str, Any] = {"score": blocks.score, "direction": "maximize", "ddf": "satterthwaite", "alpha": alpha}
    first = on_these_tasks(blocks, {}, of_item, **options)
    variances, models, pairs, alike = dict[str, float](), [], [], []
    for name, n in wanted:
        part = replace(blocks, runs=_scores(blocks.runs, name, n)[..., None])
        means = {THESE: on_these_tasks(part, {}, of_item, n_obs=about["n_rows"], **options)}
        try:
            refuse_nothing(part)
        except DesignError:
            alike.append(name.replace("k", str(n)))
        else:
            if len(blocks.names) > 1:
                fit, per_row = fit_of(part, {})
                means[LIKE] = on_tasks_like_these(fit, part, alpha=alpha)
                variances = variances or variances_of(fit, blocks, {}, per_row)
        compared = {question: own.pairs(adjust=adjust, alpha=alpha) for question, own in means.items()}
        models.append(models_table(part, means, compared, of_item, alpha).assign(statistic=name, k=n))
        pairs.append(pairs_table(part, compared, alpha).assign(statistic=name, k=n))
    tables = {"models": _stacked(models), "pairs": _stacked(pairs), "noise": _noise(blocks)}
    errors = _errors(blocks, first, variances if of_item is None else {})
    tables["repeats"], best = _repeats(errors, len(blocks.instances)), _plan(blocks, errors, costs)
    elsewhere = dict.fromkeys(["odds", "binomial"], False) | {"n_judges": 0, "epoch": None, "graded": True}
    notes = notes_on(blocks, pairs[0], variances, of_item, {**roles, **about, **elsewhere})
    if alike:
        notes += (f"{joined(alike)}: models do not differ, or have the same score on all items, so there is no test.",)
    if best is None:
        notes += (
            "There is no plan: no two models are compared here, or items do not vary beyond the noise of attempts.",
        )
    if judges:
        notes += (f"An attempt has the mean score of {counted(len(judges), 'judge')}, and results hold for them.",)
    if of_item is not None and variances:
        notes += (f"Items are in {plural(str(cluster))}, so errors by attempts are given on these tasks alone.",)
    where = {"these": "on this task" if len(blocks.names) == 1 else "on these tasks"}
    if variances:
        families = "" if blocks.family is None else f"of {plural(str(family))} "
        where["like"] = f"for tasks {families}like these"
    numbers = [f"{column}_{end}" for end in where for column in ("estimate", "ci_low", "ci_high", "letters")]
    columns = [column for column in numbers if column in tables["models"]]
    printed = tables["models"][["statistic", "k", "model", *columns]]
    printed = printed[printed["k"].isin([1, counts[-1]]) | (printed["statistic"] == AGREEMENT)]
    ends = joined([str(n) for n in sorted({1, counts[-1]})])
    return Answer(
        question="repeated_attempts",
        title=f"Repeated attempts of {counted(len(blocks.algorithms), 'model')} at "
        f"{counted(len(blocks.instances), 'item')} of {counted(len(blocks.names), 'task')}, by {blocks.score}",
        tables=tables,
        values={"k": tuple(counts), "alpha": alpha, "adjust": adjust, "where": where, "plan": best},
        facts=(
            "pass@k: at least one of k attempts is right; pass^k: all are; maj@k: most are, ties counted by half; "
            "agree@k: all are scored alike. All are unbiased means over the draws of k attempts.",
            f"{percent(1.0 - alpha)} intervals, not simultaneous; shown for k = {ends}, the others are in to_frame(). "
            f"Pairs, in to_frame('pairs'): {ADJUSTMENT_NAMES[adjust]} adjustment, for each statistic and k separately;"
            " models that share a letter cannot be distinguished, pairs without a test included.",
        ),
        findings=(*_differences(tables["pairs"], counts[-1], where), *_worth(tables, best)),
        notes=notes,
        printed=printed,
        formats=dict.fromkeys([column for column in columns if "letters" not in column], ".3f"),
        figure="repeated_attempts_plot",
    )


# ---------------------------------------------------------------------- scores of items


def _right(blocks: Blocks, threshold: float | None, scale: tuple[float, float]) -> Array:
    """Attempts as right (1) and wrong (0), ``(n_items, n_models, n_attempts)``; NaN where there is none."""
    y, (low, high) = blocks.runs, scale
    if threshold is not None:
        least = threshold - 1e-12 * (high - low)  # a mean over judges may be a digit below
        return np.where(np.isnan(y), np.nan, y >= least)
    graded = y[(y > low) & (y < high)]
    if len(graded):
        raise DataError(
            f"An attempt must be right (1) or wrong (0), and {len(graded):,} of {int(blocks.n_runs.sum()):,} scores in "
            f"column {blocks.score!r} are between, such as {written(graded[0], '.6g')}. Say from "
            f"which score on it is right, such as {advice('value', name='threshold', value=(low + high) / 2.0)}."
        )
    return (y - low) / (high - low)


def _fewest(blocks: Blocks, k: int) -> int:
    """The fewest attempts of an answer; refused below k."""
    attempts, has = blocks.n_runs, blocks.n_runs > 0
    short, fewest = np.argwhere(has & (attempts < k)), int(attempts[has].min())
    if not len(short):
        return fewest
    if attempts.max() == 1:
        raise DesignError(
            "Every answer was given once, so nothing says how attempts vary. Ask each model several times and number "
            "the attempts, or compare single answers by evaluate."
        )
    at, j = short[0]
    item = f"item {blocks.instances[at]}" + f" of {blocks.names[blocks.block[at]]}" * (len(blocks.names) > 1)
    smaller = f"ask for k up to {fewest}, " * (fewest > 1)
    rule = "Every answer needs 2 attempts" if k == 2 else f"{named('k')} is {k}, so every answer needs {k} attempts"
    raise DesignError(
        f"{rule}, and {len(short):,} of {int(has.sum()):,} have fewer: {blocks.algorithms[j]} has "
        f"{counted(int(attempts[at, j]), 'attempt')} at {item}. Add attempts, {smaller}"
        "or leave out these items for all models."
    )


def chances(right: Array, attempts: Array, k: int) -> Array:
    """Chance that x = 0, ..., k of k attempts are right, drawn without replacement, ``(n_items, k + 1)``."""
    chance, x = np.zeros((len(right), k + 1)), np.arange(k + 1)
    chance[:, 0] = 1.0
    for drawn in range(k):
        left = np.maximum(attempts - drawn, 1)[:, None]
        one_more = chance * (right[:, None] - x) / left
        chance *= ((attempts - right)[:, None] - (drawn - x)) / left
        chance[:, 1:] += one_more[:, :-1]
    return chance


def _scores(right: Array, statistic: str, k: int) -> Array:
    """What k attempts at each item are worth, ``(n_items, n_models)``; NaN where there are none."""
    attempts = np.isfinite(right).sum(axis=2)
    counts = np.stack([np.nansum(right, axis=2).ravel(), attempts.ravel()])
    (c, n), place = np.unique(counts, axis=1, return_inverse=True)
    # without rounding errors, which would be a variance where all draws are worth the same
    worth = (chances(c, n, k) * _WORTH[statistic](np.arange(k + 1), k)).sum(axis=1).round(12)
    return np.where(n > 0, worth, np.nan)[place.ravel()].reshape(attempts.shape)


def _stacked(tables: list[pd.DataFrame]) -> pd.DataFrame:
    out = pd.concat(tables, ignore_index=True).rename(columns=lambda name: name.replace("accuracy", "estimate"))
    return out[["statistic", "k", *(name for name in out if name not in ("statistic", "k"))]]


# ---------------------------------------------------------------------- what attempts are worth


def _noise(blocks: Blocks) -> pd.DataFrame:
    """The noise floor, with the mean squares of items within tasks and of attempts at an item."""
    n, y, noise = answered(blocks), blocks.means.T, np.nan_to_num(noise_of(blocks))
    free = np.maximum(n - 1.0, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.nan_to_num(y - (by_task(blocks, np.nan_to_num(y)) / n)[:, blocks.block])
        of_mean = np.where(blocks.n_runs.T > 0, noise / blocks.n_runs.T, 0.0)
        attempts, error = (np.nansum(free * by_task(blocks, of) / n, axis=1) for of in (noise, of_mean))
        items = np.maximum((centred**2).sum(axis=1) - error, 0.0)
        columns = {"sd_items": np.sqrt(items / free.sum(axis=1)), "sd_attempts": np.sqrt(attempts / free.sum(axis=1))}
        return noise_floor(blocks).assign(**columns, icc=items / (items + attempts))


def _errors(blocks: Blocks, means: Estimates, variances: Mapping[str, float]) -> pd.DataFrame:
    """Parts of the variance of one model's accuracy and of the difference of two, rows by question and by which.

    With f times as many items and r attempts at each the variance is ``fixed + (items + attempt / r) / f``.
    """
    known = np.isfinite(means.se) & np.isfinite(means.estimate)
    if known.sum() < 2:
        return pd.DataFrame()
    V, of_runs = (own.V[np.ix_(known, known)] for own in (means, on_these_items(blocks, {}, score="", direction="")))
    i, j = np.triu_indices(len(V), k=1)
    two = np.array([1.0, 2.0])
    now, one = float(np.diag(of_runs).mean()), float((noise_floor(blocks)["sd_run"][known] ** 2).mean())
    items = np.array([np.diag(V).mean(), (V[i, i] + V[j, j] - 2.0 * V[i, j]).mean()]) - two * now
    parts = {"of": ["model", "difference"], "items": np.maximum(items, 0.0), "attempt": two * one}
    found = [pd.DataFrame({"question": THESE, "fixed": 0.0, **parts})]
    if variances:
        n_families = 1 if blocks.family is None else len(set(blocks.family))
        own, shared = (
            variances.get(f"family{of}", 0.0) / n_families + variances[f"task{of}"] / len(blocks.names)
            for of in (":model", "")
        )
        found.append(pd.DataFrame({"question": LIKE, "fixed": [own + shared, 2.0 * own], **parts}))
    return pd.concat(found, ignore_index=True)


def _repeats(errors: pd.DataFrame, n_items: int) -> pd.DataFrame:
    """Standard errors by question, items and attempts."""
    if errors.empty:
        return errors
    sizes = pd.DataFrame([(n_items * more, r, more) for more in _MORE_ITEMS for r in _REPEATS])
    rows = errors.merge(sizes.set_axis(["n_items", "n_attempts", "more"], axis=1), how="cross")
    rows["se"] = np.sqrt(rows["fixed"] + (rows["items"] + rows["attempt"] / rows["n_attempts"]) / rows["more"])
    by = ["question", "n_items", "n_attempts"]
    model, difference = (rows[rows["of"] == of].set_index(by)["se"] for of in ("model", "difference"))
    return pd.DataFrame({"se_model": model, "se_difference": difference}).reset_index()


def _plan(blocks: Blocks, errors: pd.DataFrame, costs: float | Mapping[str, float]) -> Plan | None:
    """The number of items and attempts for a difference on these tasks, for what these attempts cost."""
    if errors.empty or errors["items"].min() == 0.0:
        return None
    n_items, epochs = len(blocks.instances), blocks.n_runs[blocks.n_runs > 0]
    row = errors[(errors["question"] == THESE) & (errors["of"] == "difference")].iloc[0]
    found = plan(
        {"item": (0.5 * n_items * row["items"]) ** 0.5, "epoch": (0.5 * n_items * row["attempt"]) ** 0.5},
        stages=_STAGES,
        n_algorithms=len(blocks.algorithms),
        costs=costs,
        current={"item": n_items, "epoch": round(float(epochs.size / (1.0 / epochs).sum()))},
    )
    notes = ("The standard deviations are those of these attempts, means over models, taken as known.",)
    return replace(found, noun="model", notes=notes)


# ---------------------------------------------------------------------- words


def _differences(pairs: pd.DataFrame, last: int, where: Mapping[str, str]) -> Iterator[str]:
    """How many pairs the decisions tell apart, at single attempts and at the most."""
    for (name, k), part in pairs.groupby(["statistic", "k"], sort=False):
        if k in (1, last) or name == AGREEMENT:
            differ = {words: part[f"differ_{suffix}"].dropna() for suffix, words in where.items()}
            said = [f"{int(of.sum()):,} of {len(of):,} {words}" for words, of in differ.items() if len(of)]
            label = str(name).replace("k", str(k))
            yield f"Pairs that differ in {label}: {', '.join(said)}." if said else f"{label}: no pair is tested."


def _worth(tables: Mapping[str, pd.DataFrame], best: Plan | None) -> Iterator[str]:
    """How often attempts agree, and what more of them change."""
    models = tables["models"]
    alike = models[(models["statistic"] == AGREEMENT) & models["estimate_these"].notna()].sort_values(
        "estimate_these", kind="stable"
    )
    if len(alike):  # every model may lack some task, and have no mean over these tasks
        ends = [f"{written(row.estimate_these, '.3f')} ({row.model})" for row in alike.iloc[[0, -1]].itertuples()]
        yield f"Two attempts of a model at one item are scored alike with a probability of {ends[0]} to {ends[1]}."
    if best is None:
        return
    repeats = tables["repeats"]
    here = repeats[repeats["question"] == THESE].set_index(["n_items", "n_attempts"])["se_difference"]
    n = int(repeats["n_items"].iloc[0])
    once, five, ever, twice = (written(here[at], ".4f") for at in ((n, 1), (n, 5), (n, np.inf), (2 * n, 1)))
    yield (
        f"A difference of accuracies on these tasks has a standard error of {once} with one attempt at each of {n:,} "
        f"items, {five} with 5 attempts, {ever} with attempts without end; with one at twice as many items {twice}."
    )
    yield best.sentences()[0]
