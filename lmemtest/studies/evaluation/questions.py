"""The two questions of an evaluation: about these tasks, and about tasks like these.

*These tasks.* The accuracy of a model is the mean over the tasks of its means over items, and items are the sample.
With C_t the covariance matrix of the models' means over the n_t items of task t,

    V = sum_t C_t / T^2,    df(c) = (sum_t c' C_t c)^2 / sum_t (c' C_t c)^2 / (n_t - 1)    (Satterthwaite).

Every difference has its own variance: that of differences on the same items where models share them, the sum of two
variances where they do not.

*Tasks like these.* Tasks are the sample as well: the mixed model

    score ~ model + (1 | task) + (1 | task:model) + (1 | task:item)

of means over epochs, with ``(1 | family) + (1 | family:model)`` where there are enough families of tasks: then they are
the sample, and their tasks with them. Where there are enough judges, they are a sample for both questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.data.runs import Runs
from lmemtest.inference.means.estimates import Estimates
from lmemtest.model import fit_lmm
from lmemtest.studies.evaluation.answers import Answers, item_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

THESE, LIKE = "these tasks", "tasks like these"
QUESTIONS = (THESE, LIKE)
SUFFIX = {THESE: "these", LIKE: "like"}  # of columns


def on_these_tasks(answers: Answers, **facts: Any) -> Estimates:
    """Accuracies as means over these tasks, with errors from their items."""
    counts = answers.n_items
    complete: NDArray[np.bool_] = np.all(counts > 0, axis=1)
    known: NDArray[np.bool_] = np.all(counts > 1, axis=1)
    n_tasks = len(answers.tasks)
    parts = np.stack([_covariance(answers.scores[:, answers.task == t]) for t in range(n_tasks)])  # (T, k, k)
    parts = np.nan_to_num(parts) / n_tasks**2
    freedom = np.maximum(counts.T - 1.0, 0.0)  # (T, k)
    if answers.judges_are_sample:
        parts = np.concatenate([parts, _of_judges(answers)[None]])
        freedom = np.concatenate([freedom, np.full((1, len(complete)), len(answers.judges) - 1.0)])

    def df(L: Array) -> Array:
        squares = np.maximum(np.einsum("ri,tij,rj->rt", L, parts, L), 0.0)
        least = np.where(L[:, None, :] != 0.0, freedom[None], np.inf).min(axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = squares.sum(axis=1) ** 2 / (squares**2 / least).sum(axis=1, where=least > 0.0)
        return np.where(np.isfinite(found), found, least.sum(axis=1))

    means = answers.task_means()
    return Estimates.of(
        {"model": list(answers.models)},
        b=np.where(complete, np.nan_to_num(means).mean(axis=1), 0.0),
        V=parts.sum(axis=0),
        df=df,
        estimable_function=lambda L: ~(L[:, ~complete] != 0.0).any(axis=1),
        variance_function=lambda L: ~(L[:, ~known] != 0.0).any(axis=1),
        n_obs=answers.n_rows,
        **facts,
    )


def _covariance(scores: Array) -> Array:
    """Of the means of the rows over the columns that each of them has, from the columns that two share."""
    has = ~np.isnan(scores)
    n = has.sum(axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(has, scores - (np.nansum(scores, axis=1) / n)[:, None], 0.0)
        both = has.astype(float) @ has.T
        found: Array = centred @ centred.T * both / (both - 1.0) / np.outer(n, n)
    return np.where(both > 1.0, found, 0.0)


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

    def df(L: Array) -> Array:
        apart = np.abs(L @ constant.T).max(axis=1, initial=0.0) <= 1e-9 * np.abs(L).max(axis=1)
        return np.where(apart, np.minimum(found.df_function(L), most), found.df_function(L))

    return found.with_errors(df_function=df)
