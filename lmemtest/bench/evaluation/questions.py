"""The questions of an evaluation, by population: these items, items like these on these tasks, tasks like these.

*These items.* The accuracy of a model is what it would score on exactly these items over runs without end, and its runs
(epochs) are the sample. With s_i^2 the variance of the E_i scores of a model at item i, and a_i the share of the item
in its mean over tasks of means over items, models are independent and

    V = sum_i a_i^2 s_i^2 / E_i,    df(c) = (sum_m c_m^2 V_m)^2 / sum_m c_m^4 sum_i (a_i^2 s_i^2 / E_i)^2 / (E_i - 1).

NIST AI 800-3 calls it benchmark accuracy, and the accuracy over items like these generalized accuracy.

*These tasks.* The accuracy of a model is the mean over the tasks of its means over items, and items are the sample.
With C_t the covariance matrix of the models' means over the n_t items of task t,

    V = sum_t C_t / T^2,    df(c) = (sum_t c' C_t c)^2 / sum_t (c' C_t c)^2 / (n_t - 1)    (Satterthwaite).

Every difference has its own variance: that of differences on the same items where models share them, the sum of two
variances where they do not.

Two items hardly tell how accuracies vary over the items of a task: their variance is often zero, and has one degree of
freedom. So each task's variance of an item, S_t = n_t C_t, is drawn towards what all tasks say, as in Smyth (2004,
Stat. Appl. Genet. Mol. Biol. 3, 3) and with d = 2 prior degrees of freedom:

    a_t S_t + (1 - a_t) S,    a_t = (n_t - 1) / (n_t - 1 + d),    S = sum_u a_u S_u / sum_u a_u

stands for S_t. That multiplies C_t in both formulas above by r_t = a_t (1 + n_t sum_u (1 - a_u) / n_u / sum_u a_u),
which is 1 where tasks are of one size and near 1 where all have many items. With d = 0 each task has its own variance;
the larger d, the nearer they are to one pooled variance, which is too small where the large tasks are easy and the
small ones are not. By odds each task keeps its own.

Where items come in clusters (questions on one passage), these are the sample of a task: with e_c the sum over cluster c
of a model's scores less their mean, and h_c the share of the task's n items that are in it,

    C_t = sum_c e_c e_c' / (1 - h_c) / n^2    (CR2: Bell & McCaffrey 2002, Survey Methodology 28, 169-181)

with their degrees of freedom, which are the number of clusters less one where these are equally large.

*Tasks like these.* Tasks are the sample as well: the mixed model

    score ~ model + (1 | task) + (1 | task:model) + (1 | task:item)

of means over epochs, with ``(1 | family) + (1 | family:model)`` where there are enough families of tasks: then they are
the sample, and their tasks with them. Where there are enough judges, they are a sample for both questions.

*Odds.* With k of the n items of task t right, the empirical logit of a model and its variance are

    z_t = log((k + 1/2) / (n - k + 1/2)),    v_t = 1 / (k + 1/2) + 1 / (n - k + 1/2)

(Gart & Zweifel 1967, Biometrika 54, 181-187). On these tasks the mean of z_t has the errors of the delta method: with
the slopes g_t = n v_t of the models in the diagonal of G_t, G_t C_t G_t stands for C_t. Its diagonal gets what v_t has
more than the binomial g_t^2 k (n - k) / n^3, so that a model without an error has a variance, too. For tasks like these
``z ~ model + (1 | task)`` is fitted to one z by task and model. With epochs k is the sum of the means of items. Where
few errors are expected the half answers draw z towards zero, by several of its standard errors on many tasks of two
items: for either question that is taken away (`log_odds`), and errors are stretched with what remains.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.evaluation.answers import answered, by_task, noise_of, sampled, starts, sums_by, task_means
from lmemtest.bench.evaluation.log_odds import empirical_logits, unbiased_logits
from lmemtest.core.codes import in_order
from lmemtest.lmm.engine.functions import Functions, OfFunctions, asked
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.model import fit_lmm
from lmemtest.lmm.model.glmm import GlmmFit, fit_glmm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.model import LmmFit


ITEMS, THESE, LIKE = "these items", "these tasks", "tasks like these"
QUESTIONS = (THESE, LIKE, ITEMS)
SUFFIX = {THESE: "these", LIKE: "like", ITEMS: "items"}  # of columns
LOG_ODDS = "log(odds)"  # the response of comparisons by odds, whose ratios are odds ratios
_MANY = 50_000  # answers that a mixed model is fitted to in half a second
_FEWEST_BLOCKS = 10  # of a task
_ANSWERED = 0.8  # of the items of a task, by each model
_PRIOR_DF = 2.0  # of a task's variance between items: with 0 and with 10 some intervals hold in 91 and 88 %


def on_these_tasks(
    blocks: Blocks, judges: Mapping[str, Array], cluster: Index | None, *, odds: bool = False, **facts: Any
) -> Estimates:
    """Accuracies as means over these tasks, with errors from their items, and from judges who are a sample.

    With `odds` the means of their empirical logits without their bias, where judges are no sample.
    """
    counts, n_tasks = answered(blocks), len(blocks.names)
    complete, known = (np.all(n > least, axis=1) for n, least in ((counts, 0), (sampled(blocks, cluster), 1)))
    of_task = [(blocks.means[blocks.block == t].T, blocks.block == t) for t in range(n_tasks)]
    if cluster is None:
        parts = np.stack([_covariance(scores) for scores, _ in of_task])  # (T, k, k)
        freedom = np.maximum(counts.T - 1.0, 0.0)  # (T, k)
    else:
        by_cluster = [_of_clusters(scores, cluster[own]) for scores, own in of_task]
        parts, freedom = (np.stack(part) for part in zip(*by_cluster, strict=True))
    centre = task_means(blocks)
    if not odds:  # the variance of a logit is known from its task alone
        root = np.sqrt(_borrowed(counts.T, freedom))
        parts = parts * root[:, :, None] * root[:, None, :]
    else:
        p, binomial = centre, empirical_logits(blocks)[1]
        centre, stretch, _ = unbiased_logits(blocks)
        slope = counts * binomial
        more = np.nan_to_num(binomial - slope**2 * p * (1.0 - p) / counts)  # of half an answer right, half a wrong one
        parts = np.einsum("it,jt,tij->tij", slope, slope, np.nan_to_num(parts)) + np.eye(len(p)) * more.T[:, None]
        parts = stretch**2 * parts
    parts = np.nan_to_num(parts) / n_tasks**2
    if judges:
        of_judge = judge_means(blocks, judges)  # (J, k)
        of_judges = np.asarray(np.cov(of_judge, rowvar=False) / len(of_judge))
        parts = np.concatenate([parts, of_judges[None]])
        freedom = np.concatenate([freedom, np.full((1, len(complete)), len(of_judge) - 1.0)])
    return Estimates.of(
        {"model": list(blocks.algorithms)},
        b=np.where(complete, np.nan_to_num(centre).mean(axis=1), 0.0),
        V=parts.sum(axis=0),
        df=partial(_satterthwaite, parts, freedom),
        estimable_function=partial(_only_of, complete),
        variance_function=partial(_only_of, known),
        **facts,
    )


def on_these_items(blocks: Blocks, judges: Mapping[str, Array], **facts: Any) -> Estimates:
    """Accuracies on exactly these items, with errors from repeated runs, and from judges who are a sample."""
    counts, epochs, n_tasks = answered(blocks), blocks.n_runs.T, len(blocks.names)
    complete = np.all(counts > 0, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 1.0 / (counts[:, blocks.block] * n_tasks)
        parts = np.where(epochs > 0, share**2 * noise_of(blocks) / epochs, 0.0)  # (k, m)
        V, doubt = parts.sum(axis=1), np.where(epochs > 0, parts**2 / (epochs - 1.0), 0.0).sum(axis=1)
    errors = np.diag(V)[None]
    if judges:
        of_judge = judge_means(blocks, judges)
        errors = np.stack([errors[0], np.asarray(np.cov(of_judge, rowvar=False) / len(of_judge))])
    return Estimates.of(
        {"model": list(blocks.algorithms)},
        b=np.where(complete, np.nan_to_num(task_means(blocks)).mean(axis=1), 0.0),
        V=errors.sum(axis=0),
        df=partial(_df_over_runs, errors, doubt, len(judges) - 1.0),
        estimable_function=partial(_only_of, complete),
        variance_function=partial(_varies, errors),
        **facts,
    )


def _df_over_runs(errors: Array, doubt: Array, df_of_judges: float, L: Array) -> Array:
    """Satterthwaite's degrees of freedom where models are independent but for judges, the second part of `errors`."""
    parts = Functions.of(L).quadratic_forms(errors)  # (1 or 2, rows)
    least = L**4 @ doubt + (parts[1:] ** 2).sum(axis=0) / max(df_of_judges, 1.0)
    return np.divide(parts.sum(axis=0) ** 2, least, out=np.full(len(L), np.inf), where=least > 0.0)


def _varies(errors: Array, L: Array) -> Mask:
    return np.asarray(Functions.of(L).quadratic_forms(errors).sum(axis=0) > 0.0)


def has_runs_of_items(blocks: Blocks) -> bool:
    """Whether every answer was repeated, so that the noise of runs is known at each item."""
    return bool((blocks.n_runs[blocks.n_runs > 0] > 1).all())


def judge_means(blocks: Blocks, judges: Mapping[str, Array], empty: float = 0.0) -> Array:
    """Mean over tasks by judge and model, where a task without answers has `empty`, or is left out of it if NaN."""
    by_judge = by_task(blocks, np.nan_to_num(np.stack([*judges.values()])))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = by_judge / answered(blocks)
    return np.asarray(np.nanmean(np.where(np.isnan(means), empty, means), axis=2))


def _borrowed(n: Index, freedom: Array) -> Array:
    """By task and model, how much of a mean's variance stands on that of the task: r_t, from its items, ``(T, k)``."""
    own = freedom / (freedom + _PRIOR_DF)
    with np.errstate(invalid="ignore", divide="ignore"):
        lent = np.where(n > 0, (1.0 - own) / n, 0.0).sum(axis=0) / own.sum(axis=0)
        return np.nan_to_num(own * (1.0 + n * lent), posinf=0.0)


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


def _only_of(models: Mask, L: Array) -> Mask:
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


def _of_clusters(scores: Array, cluster: Index) -> tuple[Array, Array]:
    """Covariance of the means of the rows over their columns, by clusters of columns; degrees of freedom."""
    has = ~np.isnan(scores)
    n = has.sum(axis=1, keepdims=True).astype(float)
    cluster = np.unique(cluster, return_inverse=True)[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(has, scores - np.nansum(scores, axis=1, keepdims=True) / n, 0.0)
        size = sums_by(cluster, has)
        rest = 1.0 - size / n
        root = np.where(rest > 1e-12, sums_by(cluster, centred) / np.sqrt(rest) / n, 0.0)
        ratio = np.where(rest > 1e-12, size**2 / rest, 0.0) / n
        both = ratio.sum(axis=1) ** 2 - (ratio**2).sum(axis=1)  # over pairs of different clusters
        df = n[:, 0] ** 2 / ((size**2).sum(axis=1) + both)
    return root @ root.T, np.where((size > 0).sum(axis=1) > 1, df, 0.0)


def design_effect(clustered: Estimates, independent: Estimates, cluster: Index, name: str) -> list[dict[str, Any]]:
    """What clusters change: one row with ``cluster``, ``n_clusters``, ``n_items``, ``design_effect``, ``n_effective``.

    The design effect is the variance of the difference of two models over that of independent items, its median over
    the pairs; so many independent items would tell as much.
    """
    i, j = np.triu_indices(len(clustered.b), k=1)
    variances = [V[i, i] + V[j, j] - 2.0 * V[i, j] for V in (clustered.V, independent.V)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = variances[0] / variances[1]
    known = ratio[np.isfinite(ratio)]
    effect, items = float(np.median(known)) if len(known) else np.nan, len(cluster)
    row = {"cluster": name, "n_clusters": int(cluster.max()) + 1, "n_items": items}
    return [row | {"design_effect": effect, "n_effective": items / effect if effect > 0 else np.nan}]


def fit_of(
    blocks: Blocks, judges: Mapping[str, Array], *, odds: bool = False, binomial: bool = False
) -> tuple[LmmFit, float]:
    """The mixed model with tasks as a sample, fitted to means over epochs; and how many answers such a mean is of.

    Of very many answers the rows are blocks of items of a task, which differ by one item at most. The mean of a model
    over them is moved to that over its items, so the means of tasks are the same, and variances between thousands of
    items are known as well from hundreds of blocks. Not where a model has answered few of the items: its blocks would
    be smaller than those of others. With judges who are a sample there is a row for each of them. With `odds` there is
    one row by task and model, and with `binomial` the model is one of right and wrong answers, where judges are no
    sample.
    """
    counts, task, scores, per_row = answered(blocks), blocks.block, blocks.means.T, 1.0
    several_items, paired = bool((counts > 1).any()), bool(((blocks.n_runs > 0).sum(axis=1) > 1).any())
    sizes = np.bincount(task)
    share = counts / sizes
    most = min(-(-scores.size // _MANY), int(sizes.min()) // _FEWEST_BLOCKS)
    if judges:
        by_judge = np.stack([*judges.values()])
        judge, model, item = np.nonzero(~np.isnan(by_judge))
        score = by_judge[judge, model, item]
    else:
        if odds:
            scores, task, several_items = np.exp(unbiased_logits(blocks)[0]), np.arange(len(blocks.names)), False
        elif most > 1 and not binomial and share[share > 0.0].min() >= _ANSWERED:
            n_blocks = np.rint(sizes / most).astype(np.intp)
            per_row = float(counts.sum() / ((counts > 0).sum(axis=0) @ n_blocks))
            scores, task = _over_blocks(blocks, n_blocks)
        model, item = np.nonzero(~np.isnan(scores))
        score = scores[model, item]

    def named(codes: Index, names: Sequence[str]) -> pd.Categorical:
        return pd.Categorical.from_codes(codes, categories=pd.Index(names), ordered=True)

    rows: dict[str, Any] = {"model": named(model, blocks.algorithms), "task": named(task[item], blocks.names)}
    name, response = ("odds", LOG_ODDS) if odds else ("score", "score")
    rows |= {"item": item, name: score}
    terms, roles = [f"{response} ~ model"], dict[str, Any]()
    if blocks.family is not None:
        families = in_order(set(blocks.family))
        rows["family"] = pd.Categorical(blocks.family[starts(blocks)][task[item]], categories=families, ordered=True)
        terms, roles = [*terms, "(1 | family)", "(1 | family:model)"], {"family": "family"}
    terms += ["(1 | task)", *["(1 | task:model)"] * several_items, *["(1 | task:item)"] * (several_items and paired)]
    if judges:
        rows["judge"] = named(judge, [*judges])
        terms, roles = (
            [*terms, "(1 | task:item:model)", "(1 | judge)", "(1 | judge:model)"],
            roles | {"metafeatures": ("judge",)},
        )
    if binomial:
        rows["asked"] = blocks.n_runs.T[model, item]
        rows["score"] = np.rint(score * rows["asked"])
        terms += ["(1 | task:item:model)"] * bool((rows["asked"] > 1).any())
    runs = Runs(
        pd.DataFrame(rows),
        score=name,
        direction=blocks.direction,  # type: ignore[arg-type]
        algorithm="model",
        benchmark="task",
        seed="item",
        seed_shared=False,
        **roles,
    )
    formula = " + ".join(terms)
    return fit_glmm(formula, runs, trials="asked") if binomial else fit_lmm(formula, runs), per_row


def _over_blocks(blocks: Blocks, n_blocks: Index) -> tuple[Array, Index]:
    """Means over so many blocks of items of each task, ``(n_models, n_blocks)``, and the task of each block."""
    sizes, items, scores = np.bincount(blocks.block), blocks.block, blocks.means.T
    first = np.cumsum(n_blocks) - n_blocks
    place = np.arange(len(items)) - (np.cumsum(sizes) - sizes)[items]
    of_item = first[items] + place * n_blocks[items] // sizes[items]
    task = np.repeat(np.arange(len(sizes)), n_blocks)
    begin = np.searchsorted(of_item, np.arange(len(task)))
    has = ~np.isnan(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.add.reduceat(np.nan_to_num(scores), begin, axis=1) / np.add.reduceat(has, begin, axis=1, dtype=float)
        there = np.add.reduceat(~np.isnan(means), first, axis=1, dtype=float)
        moved = task_means(blocks) - np.add.reduceat(np.nan_to_num(means), first, axis=1) / there
    return means + moved[:, task], task


def on_tasks_like_these(fit: LmmFit, blocks: Blocks, **facts: Any) -> Estimates:
    """Accuracies on a task of the population that these are drawn from.

    Where the variance of tasks, or of advantages, happens to be estimated as zero, the model takes the degrees of
    freedom of the items. There are not more than those of k models' means over T tasks: k (T - 1), and (k - 1) (T - 1)
    of differences, whose standard errors are moderated by each pair's own scatter from three tasks on (in a binomial
    model never below the model's, with its degrees of freedom). Accuracies of a binomial model are averaged over its
    random effects.
    """
    binomial = isinstance(fit, GlmmFit)
    found = fit.emmeans("model", **{"type": "response"} if binomial else {}, **facts)
    units = blocks.names if blocks.family is None else set(blocks.family)
    k, df = len(blocks.algorithms), len(units) - 1.0
    of_differences: Array = found.L[1:] - found.L[:1]
    constant = np.linalg.svd(of_differences)[2][len(of_differences) :]  # what no difference is a function of
    most = (k - 1.0) * df if binomial or found.moderate is None else np.inf, k * df
    return found.with_errors(df_function=OfFunctions(partial(_at_most, found.df_function, most, constant)))


def _at_most(df: Callable[[Any], Array], most: tuple[float, float], constant: Array, rows: Functions) -> Array:
    """Degrees of freedom, at most so many: of differences, which have nothing of ``constant``, and of others."""
    apart = (np.abs(rows.times(constant.T)) <= 1e-9 * rows.largest()[:, None]).all(axis=1)
    return np.minimum(asked(df, rows), np.where(apart, *most))
