"""Evaluation of models by items of tasks: what holds on these tasks, and what holds for tasks like these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest.bench.evaluation.answers import (
    FEWEST_JUDGES,
    answered,
    as_shares,
    has_counts,
    read_answers,
    without_tasks,
)
from lmemtest.bench.evaluation.evaluation_result import Evaluation
from lmemtest.bench.evaluation.failed import failures_table, notes_on_failures, under_policies
from lmemtest.bench.evaluation.log_odds import same_ratios
from lmemtest.bench.evaluation.questions import (
    ITEMS,
    LIKE,
    LOG_ODDS,
    SUFFIX,
    THESE,
    design_effect,
    fit_of,
    has_runs_of_items,
    on_tasks_like_these,
    on_these_items,
    on_these_tasks,
)
from lmemtest.bench.evaluation.refusals import check_scale, refuse_counting, refuse_nothing
from lmemtest.bench.evaluation.reservations import binomial_is_sharper, notes_on
from lmemtest.bench.evaluation.tables import (
    detectable_of,
    judges_table,
    models_table,
    noise_floor,
    pairs_table,
    sources_table,
    variances_of,
)
from lmemtest.bench.evaluation.words import with_words
from lmemtest.bench.power.power import USUAL_POWER
from lmemtest.bench.power.variance_components import Pilot
from lmemtest.core.caller import advice, named
from lmemtest.core.hints import guided
from lmemtest.core.options import REPORT_ADJUSTMENTS, VCOV
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_direction, check_fraction
from lmemtest.core.words import counted
from lmemtest.errors import ArgumentError
from lmemtest.lmm.model.glmm import GlmmFit, notes_of_answers

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.model import LmmFit

SCALES = ("accuracy", "odds")
METHODS = ("linear", "binomial", "auto")


@guided
@one_blas_thread()
def evaluate(
    table: Any,
    *,
    model: str | Sequence[str] | None = None,
    item: str | None = None,
    task: str | None = None,
    score: str | None = None,
    epoch: str | None = None,
    judge: str | None = None,
    family: str | None = None,
    cluster: str | None = None,
    min_score: float = 0.0,
    max_score: float = 1.0,
    scale: str = "accuracy",
    method: str = "linear",
    drop_duplicates: str | None = None,
    failed: str | None = None,
    score_failures: Any = None,
    direction: str = "maximize",
    adjust: str | None = None,
    vcov: str | None = None,
    alpha: float = 0.05,
    power: float = USUAL_POWER,
) -> Evaluation:
    """Compare models by their scores on the items of tasks: on these items, items like these, and tasks like these.

    Parameters
    ----------
    table : dataframe or mapping
        One row per answer (and judge), with scores of 0 and 1 or between them; or one row per item with a column of
        scores for each model.
    model : str or sequence of str
        Column of the models; or the columns of their scores, and then `score` is left out. Required: without it the
        error has the call that columns suggest.
    item, score : str
        Columns of the items (questions, prompts, instances) and of the scores. Where each model has a column, rows are
        the items if `item` is left out.
    task : str, optional
        Column of the tasks (benchmarks, subjects); items belong to their task, also where names repeat. Without it all
        items are of one task.
    epoch : str, optional
        Column that numbers repeated attempts at an item.
    judge : str, optional
        Column of who scored. Every judge must have scored what any judge did. Fewer than five are taken as they are;
        five or more are a sample, and results hold for judges like them.
    family : str, optional
        Column of the families (suites) that tasks belong to, each task to one. From five on, with several tasks in
        some, they are a sample: the second question is about tasks of suites like these.
    cluster : str, optional
        Column of what items of a task have in common, such as the passage or conversation that they are about; each is
        of one task. Items of one are no independent draws: they are the sample of the first question then.
    min_score, max_score : float
        The ends of the scale of the scores, such as 1 and 10 of ratings, on which all results are. Where all scores are
        at its ends, these are wrong and right.
    scale : {"accuracy", "odds"}
        "odds" compares models by the odds of a right answer in place of the accuracy: for scores of 0 and 1 on tasks
        of unequal difficulty near 1 or 0, where a difference of accuracies is large on hard tasks alone.
    method : {"linear", "binomial", "auto"}
        The mixed model of accuracies for tasks like these. "binomial" is one of right and wrong answers, whose
        accuracies are averaged over tasks and items: it finds more near 1 or 0 with few tasks. "auto" takes it there,
        by the answers of all models together, and says so.
    drop_duplicates : {"first", "last", "mean"}, optional
        Which of several rows of one answer is kept, in the order of the table, or the first with the mean score; a note
        says how many were dropped. Without it several rows of an answer are refused.
    failed : str, optional
        Which answers failed: a column of true and false, or of text that says in which way ("timeout", "infra"), as in
        `Runs`; the column of scores itself, whose words are the kinds then, and "missing" an empty cell; or "missing"
        for those without a score.
    score_failures : {"worst", "drop", "retry"}, float or mapping, optional
        What failed answers count: "worst", the worst end of the scale; a score on it; "drop", left out; "retry", left
        out until they are run again, and listed in ``to_frame("to_repeat")``. With a column of kinds a mapping has one
        of these for every kind, ``{"timeout": 0, "infra": "drop"}``. Needed with `failed`.
    direction : {"maximize", "minimize"}
    adjust : {"stepdown", "singlestep", "tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of pairs, as in `pairs`; "stepdown" by default.
    vcov : {"moderated", "model"}, optional
        Standard errors for tasks like these, as in `pairs`; those on these tasks come from the items.
    alpha : float in (0, 1)
        Of decisions; intervals are at 1 - alpha.
    power : float in (0, 1)
        For the smallest difference that is found.

    Returns
    -------
    Evaluation
        ``to_frame()`` has one row per pair with both answers; ``to_frame("models")`` the accuracies.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or names a column that does not exist.
    DataError
        If scores lie outside of [min_score, max_score] or are missing, answers have several rows, there is one model
        only, or a cluster is in several tasks; with "odds" and "binomial" also if scores are not 0 or 1.
    DesignError
        If all scores are equal, no model has two items in a task, judges scored different answers, or each task has
        one cluster; with "odds" and "binomial" also if judges are a sample.

    Notes
    -----
    Each population has its columns. ``_these``: on these tasks, for items like these (*generalized accuracy* in the
    words of NIST AI 800-3); ``_like``: for tasks like these, with two tasks at least; ``_items``: on exactly these
    items (*benchmark accuracy*), where all answers were repeated: else the noise of a run is not known.

    On these tasks: means over tasks of means over items; their covariance from the items of each task, pairwise, so
    that models with the same items are compared by differences; with `cluster`, from the clusters of each task (CR2 and
    its degrees of freedom). Where tasks have unequal numbers of items the variance between the items of each is drawn
    towards that of all (two prior degrees of freedom), since a few items hardly show it; by odds it is not. For tasks
    like these: the mixed model ``score ~ model + (1 | task) + (1 | task:model) + (1 | task:item)`` of means over
    epochs, standard errors moderated towards each pair's own scatter over tasks, as `analyze` does. On these items: the
    variances of the runs at each item, models independent, Satterthwaite's degrees of freedom. Where families are the
    sample it has ``(1 | family) + (1 | family:model)`` as well, and the scatter is that over families. Intervals of
    accuracies are Wilson's with as many answers as the variance of the mean amounts to, on these tasks that with one
    item more, half right and half wrong (few items may hold none of those that are hardly ever solved, or failed); of a
    model that solved all or nothing, with the number of items (of tasks, or families, for the second question). When
    the linear model is enough is measured on the page "Evaluations".

    With ``method="binomial"`` the model for tasks like these is `fit_glmm` of the same formula, by restricted
    pseudo-likelihood; ``(1 | task:item:model)`` joins it where answers were repeated. Its accuracies are probabilities
    averaged over the random effects, and standard errors of differences the larger of the model's and moderated ones.

    With ``scale="odds"`` every task and model has one empirical logit, log((k + 1/2) / (n - k + 1/2)) of k right of n
    items, and every task counts the same. On these tasks errors are those of the delta method; for tasks like these
    the model is ``log(odds) ~ model + (1 | task)``. Pairs have odds ratios, geometric means over tasks; accuracies are
    those at the mean log odds. Where a model has no error on some task, half an answer draws odds towards one; that is
    corrected, with log odds of tasks taken for normal, but not of repeated attempts, nor of a model without any error,
    of whose accuracy the interval goes to the end then. On exactly these items there is no answer: an item always
    solved shows no noise.

    References
    ----------
    Miller (2024), Adding error bars to evals, arXiv:2411.00640; Wilson (1927), J. Am. Stat. Assoc. 22, 209-212;
    Gart & Zweifel (1967), Biometrika 54, 181-187 (empirical logits)

    Examples
    --------
    >>> import itertools
    >>> import lmemtest as lt
    >>> rows = list(itertools.product(["A", "B"], ["algebra", "logic", "poetry"], range(20)))
    >>> table = {"model": [m for m, _, _ in rows], "task": [t for _, t, _ in rows], "item": [i for _, _, i in rows],
    ...          "correct": [int(i % 4 > 0 or (m == "B" and t != "logic")) for m, t, i in rows]}
    >>> found = lt.evaluate(table, model="model", task="task", item="item", score="correct")
    >>> found.to_frame("models")[["model", "accuracy_these", "letters_these"]].round(3)
      model  accuracy_these letters_these
    0     B           0.917             a
    1     A           0.750             b
    """
    direction = check_direction(direction)
    if vcov is not None:
        check_choice(vcov, "vcov", VCOV)
    adjust = "stepdown" if adjust is None else check_choice(adjust, "adjust", REPORT_ADJUSTMENTS)
    alpha, power = check_fraction(alpha, "alpha"), check_fraction(power, "power")
    odds, method = check_choice(scale, "scale", SCALES) == "odds", check_choice(method, "method", METHODS)
    if odds and method == "binomial":
        raise ArgumentError(
            f"{named('method')} 'binomial' is of accuracies, and odds have a model of their own. Leave out "
            f"{advice('argument', name='scale')}, or take fit_glmm for odds given the task and the item."
        )
    ends = check_scale(min_score, max_score)
    roles: dict[str, Any] = {"model": model, "item": item, "task": task, "score": score, "epoch": epoch, "judge": judge}
    roles |= {"family": family, "cluster": cluster, "scale": ends, "drop_duplicates": drop_duplicates}
    roles |= {"failed": failed, "score_failures": score_failures}
    blocks, judges, of_item, about = read_answers(table, **roles, direction=direction)
    given_ends = ends
    if not about["graded"]:
        (blocks, judges), ends = as_shares(blocks, judges, ends), (0.0, 1.0)
    refuse_nothing(blocks)
    sample = judges if len(judges) >= FEWEST_JUDGES else {}
    graded = about["graded"] or not (odds or has_counts(blocks))
    binomial = _takes_binomial(blocks, method, vcov, odds=odds, graded=graded, n_judges=len(sample))
    options: dict[str, Any] = {"score": LOG_ODDS if odds else blocks.score, "direction": direction, "alpha": alpha}
    options |= {"ddf": "satterthwaite", "n_obs": about["n_rows"]}
    design = _design(blocks, about["n_families"])
    means, fit, per_row = _means_of(blocks, sample, of_item, odds=odds, binomial=binomial, **options)
    variances = {} if fit is None or odds or binomial else variances_of(fit, blocks, sample, per_row)
    clusters: list[dict[str, Any]] = []
    if of_item is not None:
        independent = on_these_tasks(blocks, sample, None, odds=odds, **options)
        clusters = design_effect(means[THESE], independent, of_item, str(cluster))
    pairs = {
        question: own.pairs(adjust=adjust, vcov=vcov if own.errors else None, alpha=alpha)
        for question, own in means.items()
    }
    done = about["failures"]

    def again(runs: Runs) -> Comparisons:
        columns: dict[str, Any] = {"epoch": epoch, "judge": judge, "family": family, "cluster": cluster, "task": task}
        columns |= {"model": runs.algorithm, "item": runs.seed, "score": runs.score, "drop_duplicates": drop_duplicates}
        columns |= {"scale": scale, "method": "binomial" if binomial else "linear"}
        options: dict[str, Any] = {"direction": direction, "adjust": adjust, "vcov": vcov, "alpha": alpha}
        other = evaluate(runs.frame, min_score=min_score, max_score=max_score, **columns, **options)
        return other.like or other.these

    effect = "odds_ratio" if odds else "estimate"
    compared = pairs_table(blocks, pairs, alpha, effect, ends)
    detectable = [{"question": question, **detectable_of(own, alpha, power)} for question, own in pairs.items()]
    evaluation = Evaluation(
        question="evaluate",
        title=f"Evaluation of {counted(len(blocks.algorithms), 'model')} on {counted(len(blocks.block), 'item')} of "
        f"{counted(len(blocks.names), 'task')}, by {blocks.score}",
        tables={
            "pairs": compared,
            "models": models_table(blocks, means, pairs, of_item, alpha, ends),
            "noise": noise_floor(blocks) if "epoch" in design else pd.DataFrame(),
            "detectable": pd.DataFrame(detectable),
            "sources": sources_table(variances, "epoch" in design) if variances else pd.DataFrame(),
            "judges": judges_table(blocks, judges),
            "clusters": pd.DataFrame(clusters),
            "failures": failures_table(done),
            "to_repeat": pd.DataFrame() if done is None else done.to_repeat,
        },
        values={
            "disagreement": about["disagreement"],
            "design": {stage: round(n) for stage, n in design.items()},
            "alpha": alpha,
            "power": power,
            "adjust": adjust,
            "score": blocks.score,
            "ends": ends,
            "scale": scale,
            "method": "binomial" if binomial else "linear",
            "effect": effect,
            "direction": direction,
            "n_tasks": len(blocks.names),
            "sensitivity": under_policies(done, pairs.get(LIKE, pairs[THESE]), again, given_ends, alpha),
        },
        notes=(
            *notes_on(
                blocks,
                compared,
                variances,
                of_item,
                {**roles, **about, "n_judges": len(judges), "odds": odds, "binomial": binomial, "method": method},
            ),
            *((*[fit.unfinished] * (not fit.converged), *notes_of_answers(fit)) if isinstance(fit, GlmmFit) else ()),
            *notes_on_failures(done, alpha),
        ),
        formats={
            f"{name}_{suffix}": "p" if name == "p_value" else ".3f"
            for name in (effect, "accuracy", "ci_low", "ci_high", "p_value")
            for suffix in SUFFIX.values()
        },
        figure="evaluation_plot",
        these=pairs[THESE],
        like=pairs.get(LIKE),
        items=pairs.get(ITEMS),
        fit=fit,
        variances=variances,
        pilot=Pilot(
            n_algorithms=len(blocks.algorithms),
            n_benchmarks=len(blocks.names),
            n_seeds=design["item"],
            n_families=design.get("family"),
        )
        if variances
        else None,
    )
    read = {**about, "family": family, "cluster": cluster, "judges_are_sample": bool(sample), "per_row": per_row}
    return with_words(evaluation, without_tasks(blocks), read)


def _takes_binomial(blocks: Blocks, method: str, vcov: str | None, *, odds: bool, graded: bool, n_judges: int) -> bool:
    """Whether accuracies for tasks like these are by the binomial model; refused where scores or errors do not fit."""
    if odds or method == "binomial":
        counting = ("scale", "odds") if odds else ("method", "binomial")
        refuse_counting(blocks.score, *counting, graded=graded, n_judges=n_judges)
    countable = not (odds or graded or n_judges)
    binomial = method == "binomial" or (method == "auto" and countable and binomial_is_sharper(blocks))
    if binomial and vcov == "moderated":
        raise ArgumentError(
            f"{named('vcov')} 'moderated' is of the linear model, and accuracies for tasks like these are by the "
            "binomial one, whose standard errors are the larger of the model's and moderated ones. Leave out "
            f"{advice('argument', name='vcov')}, or write {advice('value', name='method', value='linear')}."
        )
    return binomial


def _means_of(
    blocks: Blocks, judges: Mapping[str, Array], of_item: Index | None, *, odds: bool, binomial: bool, **options: Any
) -> tuple[dict[str, Estimates], LmmFit | None, float]:
    """The means of each question that these answers have, and of tasks like these their mixed model.

    The last is how many answers a row of that model is the mean of, as `fit_of` says.
    """
    means = {THESE: on_these_tasks(blocks, judges, of_item, odds=odds, **options)}
    fit, per_row = None, 1.0
    if len(blocks.names) > 1 and not (odds and same_ratios(blocks)):
        fit, per_row = fit_of(blocks, judges, odds=odds, binomial=binomial)
        means[LIKE] = on_tasks_like_these(fit, blocks, alpha=options["alpha"])
    if has_runs_of_items(blocks) and not odds:
        means[ITEMS] = on_these_items(blocks, judges, **options)
    return means, fit, per_row


def _design(blocks: Blocks, n_families: int) -> dict[str, Any]:
    """Units by stage: families as the sample, tasks of one (mean), items of a task and epochs (harmonic means)."""
    families = 0 if blocks.family is None else n_families
    out: dict[str, Any] = {"family": families} if families else {}
    out |= {"task": len(blocks.names) / max(families, 1), "item": _harmonic_mean(answered(blocks))}
    return out | ({"epoch": _harmonic_mean(blocks.n_runs)} if (blocks.n_runs > 1).any() else {})


def _harmonic_mean(counts: Index) -> float:
    """Of counts that are not zero."""
    known = counts[counts > 0]
    return float(known.size / (1.0 / known).sum())
