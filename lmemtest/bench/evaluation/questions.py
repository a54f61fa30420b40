"""The two questions of an evaluation: about these tasks, and about tasks like these.

*These tasks.* The accuracy of a model is the mean over the tasks of its means over items, and items are the sample.
With C_t the covariance matrix of the models' means over the n_t items of task t,

    V = sum_t C_t / T^2,    df(c) = (sum_t c' C_t c)^2 / sum_t (c' C_t c)^2 / (n_t - 1)    (Satterthwaite).

Every difference has its own variance: that of differences on the same items where models share them, the sum of two
variances where they do not.

Where items come in clusters (questions on one passage), these are the sample of a task: with e_c the sum over cluster c
of a model's scores less their mean, and h_c the share of the task's n items that are in it,

    C_t = sum_c e_c e_c' / (1 - h_c) / n^2    (CR2: Bell & McCaffrey 2002, Survey Methodology 28, 169-181)

with their degrees of freedom, which are the number of clusters less one where these are equally large.

*Tasks like these.* Tasks are the sample as well: the mixed model

    score ~ model + (1 | task) + (1 | task:model) + (1 | task:item)

of means over epochs, with ``(1 | family) + (1 | family:model)`` where there are enough families of tasks: then they are
the sample, and their tasks with them. Where there are enough judges, they are a sample for both questions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.evaluation.answers import Answers, answers_by, item_rows
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.model import LmmFit


THESE, LIKE = "these tasks", "tasks like these"
QUESTIONS = (THESE, LIKE)
SUFFIX = {THESE: "these", LIKE: "like"}  # of columns


def on_these_tasks(answers: Answers, **facts: Any) -> Estimates:
    """Accuracies as means over these tasks, with errors from their items."""
    counts = answers.n_items
    complete: NDArray[np.bool_] = np.all(counts > 0, axis=1)
    known: NDArray[np.bool_] = np.all(answers.n_sampled > 1, axis=1)
    n_tasks = len(answers.tasks)
    of_task = [answers.task == t for t in range(n_tasks)]
    if answers.clustered:
        found = [_of_clusters(answers.scores[:, own], answers.cluster[own]) for own in of_task]
        parts, freedom = (np.stack(part) for part in zip(*found, strict=True))
    else:
        parts = np.stack([_covariance(answers.scores[:, own]) for own in of_task])  # (T, k, k)
        freedom = np.maximum(counts.T - 1.0, 0.0)  # (T, k)
    parts = np.nan_to_num(parts) / n_tasks**2
    if answers.judges_are_sample:
        parts = np.concatenate([parts, _of_judges(answers)[None]])
        freedom = np.concatenate([freedom, np.full((1, len(complete)), len(answers.judges) - 1.0)])

    means = answers.task_means()
    return Estimates.of(
        {"model": list(answers.models)},
        b=np.where(complete, np.nan_to_num(means).mean(axis=1), 0.0),
        V=parts.sum(axis=0),
        df=partial(_satterthwaite, parts, freedom),
        estimable_function=partial(_only_of, complete),
        variance_function=partial(_only_of, known),
        n_obs=answers.n_rows,
        **facts,
    )


def _least(L: Array, freedom: Array) -> Array:
    """By row of ``L`` (r, k), the fewest degrees of freedom (T, k) of the models that it has, ``(r, T)``."""
    rows, columns = np.nonzero(L)
    out = np.full((len(L), len(freedom)), np.inf)
    if len(rows):
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        out[rows[first]] = np.minimum.reduceat(freedom.T[columns], first, axis=0)
    return out


def _satterthwaite(parts: Array, freedom: Array, L: Array) -> Array:
    """Degrees of freedom of functions of models whose variances are sums of ``parts``, ``(T, k, k)``."""
    squares = np.maximum(Functions.of(L).quadratic_forms(parts).T, 0.0)
    least = _least(L, freedom)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = squares.sum(axis=1) ** 2 / (squares**2 / least).sum(axis=1, where=least > 0.0)
    return np.where(np.isfinite(found), found, least.sum(axis=1))


def _only_of(models: NDArray[np.bool_], L: Array) -> NDArray[np.bool_]:
    """Whether functions are of these models alone."""
    return ~(L[:, ~models] != 0.0).any(axis=1)


def _covariance(scores: Array) -> Array:
    """Of the means of the rows over the columns that each of them has, from the columns that two share."""
    has = ~np.isnan(scores)
    n = has.sum(axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(has, scores - (np.nansum(scores, axis=1) / n)[:, None], 0.0)
        both = has.astype(float) @ has.T
        found: Array = centred @ centred.T * both / (both - 1.0) / np.outer(n, n)
    return np.where(both > 1.0, found, 0.0)


def _of_clusters(scores: Array, cluster: NDArray[np.intp]) -> tuple[Array, Array]:
    """Covariance of the means of the rows over their columns, by clusters of columns; degrees of freedom."""
    has = ~np.isnan(scores)
    n = has.sum(axis=1, keepdims=True).astype(float)
    cluster = np.unique(cluster, return_inverse=True)[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(has, scores - np.nansum(scores, axis=1, keepdims=True) / n, 0.0)
        size = answers_by(cluster, has)
        rest = 1.0 - size / n
        root = np.where(rest > 1e-12, answers_by(cluster, centred) / np.sqrt(rest) / n, 0.0)
        ratio = np.where(rest > 1e-12, size**2 / rest, 0.0) / n
        both = ratio.sum(axis=1) ** 2 - (ratio**2).sum(axis=1)  # over pairs of different clusters
        df = n[:, 0] ** 2 / ((size**2).sum(axis=1) + both)
    return root @ root.T, np.where((size > 0).sum(axis=1) > 1, df, 0.0)


def design_effect(answers: Answers, clustered: Estimates, **facts: Any) -> pd.DataFrame:
    """What clusters change: one row with ``cluster``, ``n_clusters``, ``n_items``, ``design_effect``, ``n_effective``.

    The design effect is the variance of the difference of two models over that of independent items, its median over
    the pairs; so many independent items would tell as much.
    """
    if not answers.clustered:
        return pd.DataFrame()
    independent = on_these_tasks(replace(answers, cluster=answers.cluster[:0]), **facts)
    i, j = np.triu_indices(len(answers.models), k=1)
    variances = [V[i, i] + V[j, j] - 2.0 * V[i, j] for V in (clustered.V, independent.V)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = variances[0] / variances[1]
    known = ratio[np.isfinite(ratio)]
    effect, items = float(np.median(known)) if len(known) else np.nan, len(answers.task)
    row = {"cluster": answers.passage, "n_clusters": int(answers.cluster.max()) + 1, "n_items": items}
    return pd.DataFrame([row | {"design_effect": effect, "n_effective": items / effect if effect > 0 else np.nan}])


def _of_judges(answers: Answers) -> Array:
    """Covariance of the models' accuracies that comes from which judges there are."""
    sums = np.add.reduceat(np.nan_to_num(answers.by_judge), answers.starts, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_judge = np.nan_to_num(sums / answers.n_items[None]).mean(axis=2)  # (J, k)
    return np.asarray(np.cov(by_judge, rowvar=False) / len(by_judge))


def formula_of(answers: Answers) -> str:
    """The mixed model that the answers identify."""
    several_items, paired = bool((answers.n_items > 1).any()), answers.paired
    terms = ["score ~ model", *["(1 | family)", "(1 | family:model)"] * answers.families_are_sample, "(1 | task)"]
    terms += ["(1 | task:model)"] * several_items
    terms += ["(1 | task:item)"] * (several_items and paired)
    if answers.judges_are_sample:
        terms += ["(1 | task:item:model)", "(1 | judge)", "(1 | judge:model)"]
    return " + ".join(terms)


def fit_of(answers: Answers, direction: str) -> LmmFit:
    """The mixed model with tasks as a sample, fitted to means over epochs."""
    roles: dict[str, Any] = {"metafeatures": ("judge",)} if answers.judges_are_sample else {}
    roles |= {"family": "family"} if answers.families_are_sample else {}
    runs = Runs(
        item_rows(answers),
        score="score",
        direction=direction,  # type: ignore[arg-type]
        algorithm="model",
        benchmark="task",
        seed="item",
        seed_shared=False,
        **roles,
    )
    return fit_lmm(formula_of(answers), runs)


def on_tasks_like_these(fit: LmmFit, answers: Answers, **facts: Any) -> Estimates:
    """Accuracies on a task of the population that these are drawn from.

    With two tasks there is no scatter to moderate standard errors by, and if the variance of advantages happens to be
    estimated as zero, the model takes the degrees of freedom of the items. Differences have those of the tasks then.
    """
    found = fit.emmeans("model", **facts)
    if found.moderate is not None:
        return found
    n_units = len(answers.families) if answers.families_are_sample else len(answers.tasks)
    most = (n_units - 1.0) * (len(answers.models) - 1.0)
    of_differences: NDArray[np.float64] = found.L[1:] - found.L[:1]
    constant = np.linalg.svd(of_differences)[2][len(of_differences) :]  # what no difference is a function of
    return found.with_errors(df_function=partial(_at_most, found.df_function, most, constant))


def _at_most(df: Callable[[Array], Array], most: float, constant: Array, L: Array) -> Array:
    """Degrees of freedom, of differences at most so many: of functions that have nothing of ``constant``."""
    apart = np.abs(L @ constant.T).max(axis=1, initial=0.0) <= 1e-9 * np.abs(L).max(axis=1)
    found = df(L)
    return np.where(apart, np.minimum(found, most), found)
