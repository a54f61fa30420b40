"""The result of an evaluation, and what can be asked of it: groups of models, variances, and the next study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.evaluation.questions import ITEMS, LIKE, QUESTIONS, THESE
from lmemtest.bench.power.draw import StudyDesign, smallest_effect
from lmemtest.bench.power.plan import Plan, plan
from lmemtest.bench.power.variance_components import Pilot, VarianceComponents
from lmemtest.core.result import Answer, result
from lmemtest.core.validate import check_choice
from lmemtest.core.words import plural, spoken
from lmemtest.errors import DesignError
from lmemtest.lmm.means.decisions import MOST_LETTERED

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.model import LmmFit

SAME_RATIOS = (
    "There is no answer for tasks like these: the models have the same odds ratios on every task, so nothing shows how "
    "they vary from task to task. Accuracies can be compared there, since their items vary: leave out the scale."
)
ONE_TASK = (
    "One task says nothing about tasks like it: how much differences change from task to task is not known. Add "
    "tasks to ask for that."
)
NO_ODDS_OF_RUNS = (
    "On exactly these items there is no answer by odds: an item that a model always solves shows no noise of runs."
)
_MANY = 10_000  # tasks whose critical value is that of the normal distribution


@result
class Evaluation(Answer):
    """What an evaluation says of its models: on these tasks, for tasks like these, and on exactly these items.

    Attributes
    ----------
    pairs : pandas.DataFrame
        One row per pair of models: ``left``, ``right``, ``n_differ`` (items on which their scores differ), and for
        every question, ending in ``_these``, ``_like`` and ``_items``: ``estimate`` (left - right, a risk difference
        for 0/1 scores), ``se``, ``df``, ``p_value``, ``ci_low``, ``ci_high`` (cut at the largest
        possible; they exclude zero where `differ` is true) and ``differ``, the decision (missing where there is no
        test). With ``scale="odds"`` ``odds_ratio`` (left over right) in place of ``estimate``, its ends, which exclude
        one, and ``se`` of its logarithm.
    models : pandas.DataFrame
        One row per model, best first: ``model``, ``n_tasks``, ``n_items``, and for every question ``accuracy``,
        ``ci_low``, ``ci_high`` (not simultaneous), ``rank_low`` and ``rank_high`` (the set of ranks that the decisions
        leave open), and ``letters`` of up to 12 models: those that share one cannot be distinguished.
    noise : pandas.DataFrame
        One row per model: ``n_epochs``, ``sd_run`` of the accuracy of one run (one epoch), ``sd_difference`` of two
        identical runs, ``largest_usual`` (95 % of such differences are smaller), ``sd_here`` (of two runs with as many
        epochs as here). No rows without repeated answers.
    detectable : pandas.DataFrame
        One row per question: ``question``, ``se``, ``df``, ``critical`` of the middle pair, ``smallest``: the
        difference, or odds ratio, that is found with probability `power`.
    sources : pandas.DataFrame
        ``source``, ``sd``, ``meaning``: standard deviations of the linear mixed model. No rows with one task, or
        by another.
    judges : pandas.DataFrame
        One row per judge and model: ``judge``, ``model``, ``accuracy``. No rows without judges.
    clusters : pandas.DataFrame
        One row: ``cluster`` (its column), ``n_clusters``, ``n_items``, ``design_effect``: the variance of a difference
        on these tasks over that of independent items (median over the pairs), ``n_effective``: so many independent
        items would tell as much. No rows without clusters.
    failures : pandas.DataFrame
        One row per kind of failure and model: ``kind``, ``model``, ``n_failed`` of ``n_answers``, and ``count``: the
        score, "drop" or "retry". No rows without failures.
    to_repeat : pandas.DataFrame
        The answers to be run again, by model, task and item, where failures count "retry".
    sensitivity : Variants or None
        The decisions (for tasks like these, or on one task) beside those with the worst score for every failed answer,
        and without them. None where none failed.
    disagreement : float
        Share of the answers that judges scored differently; NaN without judges.
    these, like, items : Comparisons
        The pairs by every question, with all that follows from them; `like` is None with one task, `items` where not
        all answers were repeated. By odds they are of ``log(odds)``, and ``ratios()`` has the odds ratios.
    fit : LmmFit or None
        The mixed model of `like`, of means over epochs; a `GlmmFit` of the binomial model.
    variances : dict of str to float
        Variances by source, as in `sources`; empty with one task, by odds, or by the binomial model.
    pilot : Pilot or None
        What the variances come from.
    design : dict of str to int
        Tasks, items of each (harmonic mean), epochs of each answer where they are repeated. With families as the sample
        their number, and the tasks of each (mean).
    alpha, power : float
    adjust, score, direction : str
    ends : (2,) float
        Of the scale of the scores, and of the results: 0 and 1 of right and wrong answers.
    noun : str
        What the mean scores are called.
    scale, effect : str
        "accuracy" or "odds"; the column of `pairs` that follows from it, "estimate" or "odds_ratio".
    method : str
        "linear" or "binomial": the mixed model of accuracies for tasks like these.
    populations, samples : dict of str to str
        By the suffix of the columns of either question: which tasks it is about, and what it takes for the sample.
    intervals : str
        The level of the intervals of pairs, and how these and p-values are adjusted.
    """

    these: Comparisons
    like: Comparisons | None
    items: Comparisons | None
    fit: LmmFit | None
    variances: Mapping[str, float]
    pilot: Pilot | None

    @property
    def lettered(self) -> bool:
        """Whether groups of models are shown by letters; of more models sets of ranks are."""
        return len(self.models) <= MOST_LETTERED

    def decisions(self, question: str = THESE) -> Decisions:
        """Groups of models that cannot be distinguished.

        Parameters
        ----------
        question : {"these tasks", "tasks like these", "these items"}
            The second is about tasks of suites like these where families are the sample; the third about the runs of
            models on exactly these items.

        Returns
        -------
        Decisions

        Raises
        ------
        DesignError
            If the table does not answer the question: one task, or answers that were not repeated.
        """
        return self._asked(question).decisions(self.alpha, direction=self.direction)

    def components(self) -> VarianceComponents:
        """The variances in the words of `power` and `plan`: tasks are benchmarks, and items with one epoch are seeds.

        Returns
        -------
        VarianceComponents
        """
        sd = {name: variance**0.5 for name, variance in self._variances().items()}
        both = self.variances["item:model"] + self.variances["epoch"]
        return VarianceComponents(
            family_interaction_sd=sd.get("family:model"),
            family_sd=sd.get("family"),
            interaction_sd=sd["task:model"],
            residual_sd=max(both, np.finfo(float).tiny) ** 0.5,
            seed_sd=sd["item"],
            benchmark_sd=sd["task"],
            pilot=self.pilot,
        )

    def plan(
        self,
        *,
        question: str = LIKE,
        budget: float | None = None,
        target: float | None = None,
        effect: float | None = None,
        costs: float | Mapping[str, float] = 1.0,
        fixed: Mapping[str, int] | None = None,
        at_most: Mapping[str, int] | None = None,
    ) -> Plan:
        """How many tasks, items of each and epochs of each answer the next evaluation should have.

        Parameters
        ----------
        question : {"tasks like these", "these tasks"}
            With "these tasks" their number stays.
        budget, target, effect : float > 0, optional
            What may be spent on all models together, the standard error of a difference, or the difference that is to
            be found with the power of this evaluation. By default the budget is the cost of this evaluation.
        costs : float or mapping of str to float
            Of one attempt, or by stage: ``{"task": 50.0, "item": 1.0, "epoch": 0.1}``.
        fixed, at_most : mapping of str to int, optional
            Stages with a given, or a largest, number of units.

        Returns
        -------
        Plan
            See `lmemtest.plan`.

        Raises
        ------
        DesignError
            With one task, which does not tell how much advantages change between tasks; with clusters of items.
        """
        check_choice(question, "question", (THESE, LIKE))
        variances, design, these = self._variances(), dict(self.design), question == THESE
        if these and "family" in design:
            design = {**design, "task": self.n_tasks}
            del design["family"]
        # on these tasks the advantages of models on them are no part of the error
        of_stage = {**variances, "task": 0.0 if these else variances["task:model"], "item": variances["item:model"]}
        of_stage["family"] = variances.get("family:model", 0.0)
        fixed = fixed if not these else {"task": design["task"], **(fixed or {})}
        n_models = len(self.models)
        if these and effect is not None:
            test = StudyDesign(n_algorithms=n_models, n_benchmarks=_MANY, n_seeds=1)
            critical = test.critical(self.alpha, "tukey")
            target, effect = effect / smallest_effect(self.power, 1.0, test.df, critical), None
        best = plan(
            {name: of_stage[name] ** 0.5 for name in design},
            stages=tuple(design),
            n_algorithms=n_models,
            effect=effect,
            power=self.power,
            alpha=self.alpha,
            current={**design, **{name: n for name, n in (fixed or {}).items() if name in design}},
            budget=budget,
            target=target,
            costs=costs,
            fixed=fixed,
            at_most=at_most,
        )
        anew = "Families and their tasks are" if "family" in design else "Tasks are"
        where = "Tasks are these and stay" if these else f"{anew} drawn anew"
        notes = (
            "The standard deviations are those of this evaluation, taken as known.",
            f"{where}; all models answer the same items, so what they share of tasks and items cancels.",
        )
        return replace(best, noun="model", notes=notes)

    def _variances(self) -> Mapping[str, float]:
        """Those of tasks like these, where items are independent draws."""
        self._asked(LIKE)
        if not self.variances:
            what, name = ("by odds", "scale") if self.scale == "odds" else ("by a binomial model", "method")
            raise DesignError(
                f"A plan needs the variances of accuracies, and this evaluation is {what}. Call evaluate(...) without "
                f"{name}= for it."
            )
        if len(self.clusters):
            column = self.clusters["cluster"].iloc[0]
            passage = spoken(column)
            raise DesignError(
                f"Items come in {plural(column)}, and a plan takes items for independent draws. Plan the "
                f"number of {plural(column)}: average the scores of each {passage} and model, and call "
                f"evaluate(..., item={column!r}) without cluster=."
            )
        return self.variances

    @property
    def these_alone(self) -> str:
        """Why there is no answer for tasks like these."""
        return ONE_TASK if self.n_tasks == 1 else SAME_RATIOS

    def _asked(self, question: str) -> Comparisons:
        check_choice(question, "question", QUESTIONS)
        if question == THESE:
            return self.these
        if question == ITEMS:
            if self.scale == "odds":
                raise DesignError(f"{NO_ODDS_OF_RUNS} Leave out scale=.")
            if self.items is None:
                raise DesignError(
                    "claims about exactly these items need the noise of a run: two runs of each model on every item at "
                    "least, in rows of their own with a column that numbers them, evaluate(..., epoch=...)."
                )
            return self.items
        if self.like is None:
            raise DesignError(self.these_alone)
        return self.like
