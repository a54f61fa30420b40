"""The result of an evaluation: tables of pairs and models, what follows from them, and its sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.evaluation.answers import Answers
from lmemtest.bench.evaluation.noise import plan_components, points, variances_of
from lmemtest.bench.evaluation.planning import planned
from lmemtest.bench.evaluation.questions import LIKE, QUESTIONS, SUFFIX, THESE
from lmemtest.bench.power.components import VarianceComponents
from lmemtest.bench.power.plan import Plan
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, joined, percent, plural, spoken
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.model import LmmFit

_OF_CLUSTERS = (("design_effect", ".2f"), ("n_effective", ",.0f"))
MOST_PAIRS = 45  # of ten models: more are not read in a summary
ONE_TASK = (
    "One task says nothing about tasks like it: how much differences change from task to task is not known. Add "
    "tasks to ask for that."
)


@result
class Evaluation(Result):
    """What an evaluation says of its models: on these tasks, and for tasks like these.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair of models: ``left``, ``right``, ``n_differ`` (items on which their scores differ), and for
        either question, ending in ``_these`` and ``_like``: ``estimate`` (left - right, a risk difference for 0/1
        scores), ``se``, ``df``, ``p_value``, ``ci_low``, ``ci_high`` (cut at -1 and 1; they exclude zero where `differ`
        is true) and ``differ``, the decision (missing where there is no test).
    models : pandas.DataFrame
        One row per model, best first: ``model``, ``n_tasks``, ``n_items``, and for either question ``accuracy``,
        ``ci_low``, ``ci_high`` (each by itself) and ``letters``: models that share a letter cannot be distinguished.
    noise : pandas.DataFrame
        One row per model: ``n_epochs``, ``sd_run`` of the accuracy of one run (one epoch), ``sd_difference`` of two
        identical runs, ``largest_usual`` (95 % of such differences are smaller), ``sd_here`` (of two runs with as many
        epochs as here). No rows without repeated answers.
    detectable : pandas.DataFrame
        One row per question: ``question``, ``se``, ``df``, ``critical`` of the middle pair, ``smallest``: the
        difference that is found with probability `power`.
    sources : pandas.DataFrame
        ``source``, ``sd``, ``meaning``: standard deviations of the mixed model. No rows with one task.
    judges : pandas.DataFrame
        One row per judge and model: ``judge``, ``model``, ``accuracy``. No rows without judges.
    clusters : pandas.DataFrame
        One row: ``cluster`` (its column), ``n_clusters``, ``n_items``, ``design_effect``: the variance of a difference
        on these tasks over that of independent items (median over the pairs), ``n_effective``: so many independent
        items would tell as much. No rows without clusters.
    disagreement : float
        Share of the answers that judges scored differently; NaN without judges.
    these, like : Comparisons
        The pairs by either question, with all that follows from them; `like` is None with one task.
    fit : LmmFit or None
        The mixed model of `like`, of means over epochs.
    design : dict of str to int
        Tasks, items of each (harmonic mean), epochs of each answer where they are repeated. With families as the sample
        their number, and the tasks of each (mean).
    alpha, power : float
    adjust, score, direction : str
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "evaluation_plot"
    parts: ClassVar[Mapping[str, str]] = {
        "pairs": "table",
        **{name: name for name in ("models", "noise", "detectable", "sources", "judges", "clusters")},
    }
    formats: ClassVar = {
        f"{name}_{suffix}": "p" if name == "p_value" else ".3f"
        for name in ("estimate", "accuracy", "ci_low", "ci_high", "p_value")
        for suffix in SUFFIX.values()
    }

    table: pd.DataFrame
    models: pd.DataFrame
    noise: pd.DataFrame
    detectable: pd.DataFrame
    sources: pd.DataFrame
    judges: pd.DataFrame
    clusters: pd.DataFrame
    disagreement: float
    these: Comparisons
    like: Comparisons | None
    fit: LmmFit | None
    design: Mapping[str, int]
    alpha: float
    power: float
    adjust: str
    score: str
    direction: str
    answers: Answers
    notes: tuple[str, ...] = ()

    # -- what follows ---------------------------------------------------------------------------------------------

    def decisions(self, question: str = THESE) -> Decisions:
        """Groups of models that cannot be distinguished.

        Parameters
        ----------
        question : {"these tasks", "tasks like these"}
            The second is about tasks of suites like these where families are the sample.

        Returns
        -------
        Decisions
        """
        return self._asked(question).decisions(self.alpha, direction=self.direction)

    def components(self) -> VarianceComponents:
        """The variances in the words of `power` and `plan`: tasks are benchmarks, and items with one epoch are seeds.

        Returns
        -------
        VarianceComponents
        """
        self._asked(LIKE)
        self._refuse_clusters()
        return plan_components(self.fit, self.answers)  # type: ignore[arg-type]

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
        check_choice(question, "question", QUESTIONS)
        self._asked(LIKE)
        self._refuse_clusters()
        variances = variances_of(self.fit, self.answers)  # type: ignore[arg-type]
        design = dict(self.design)
        if question == THESE and "family" in design:
            design = {**design, "task": len(self.answers.tasks)}
            del design["family"]
        return planned(
            variances,
            design,
            n_models=len(self.answers.models),
            fixed_tasks=question == THESE,
            effect=effect,
            power=self.power,
            alpha=self.alpha,
            budget=budget,
            target=target,
            costs=costs,
            fixed=fixed,
            at_most=at_most,
        )

    def _refuse_clusters(self) -> None:
        """A plan takes items for independent."""
        if self.answers.clustered:
            passage = spoken(self.answers.passage)
            raise DesignError(
                f"Items come in {plural(self.answers.passage)}, and a plan takes items for independent draws. Plan the "
                f"number of {plural(self.answers.passage)}: average the scores of each {passage} and model, and call "
                f"evaluate(..., item={self.answers.passage!r}) without cluster=."
            )

    def _asked(self, question: str) -> Comparisons:
        check_choice(question, "question", QUESTIONS)
        if question == THESE:
            return self.these
        if self.like is None:
            raise DesignError(ONE_TASK)
        return self.like

    # -- words ----------------------------------------------------------------------------------------------------

    @property
    def noun(self) -> str:
        """What the mean scores are called."""
        return "accuracy" if self.direction == "maximize" and not self.answers.graded else "mean score"

    @property
    def title(self) -> str:
        """What was evaluated."""
        tasks, items = len(self.answers.tasks), len(self.answers.task)
        return (
            f"Evaluation of {counted(len(self.answers.models), 'model')} on {counted(items, 'item')} of "
            f"{counted(tasks, 'task')}, by {self.score}"
        )

    @property
    def samples(self) -> dict[str, str]:
        """What either question takes for the sample, by the suffix of its columns."""
        judges = " and judges" if self.answers.judges_are_sample else ""
        families = f"{plural(self.answers.noun)}, " if self.answers.families_are_sample else ""
        one = len(self.answers.tasks) == 1
        mean = "over" if self.noun == "mean score" else "as the mean over"
        where = "on this task" if one else f"{mean} these tasks"
        said = {
            "these": f"{self.noun} {where}; {self._sampled}{judges} are the sample. Standard errors of each pair by "
            "itself, Satterthwaite degrees of freedom."
        }
        if self.fit is not None:
            over = ["epochs"] * self.answers.has_epochs
            per_block = self.answers.per_block
            over += [f"blocks of {per_block:.0f} items"] * (per_block > 1.0)
            judged = ", judges" if judges else ""
            said["like"] = (
                f"{families}tasks{judged} and items are the sample: {self.fit.formula}"
                f"{f', of means over {joined(over)}' if over else ''}."
            )
        return said

    @property
    def facts(self) -> tuple[str, ...]:
        """What either question takes for the sample, and how the tests were adjusted."""
        said, how = [f"_{suffix}: {text}" for suffix, text in self.samples.items()], ADJUSTMENT_NAMES[self.these.adjust]
        level = percent(1.0 - self.alpha)
        if len(self.table) == 1:
            return (*said, f"{level} intervals.")
        adjusted = f"p-values with {how} adjustment for {len(self.table):,} pairs, {level} intervals for all."
        if len(self.table) <= MOST_PAIRS:
            return (*said, adjusted)
        models = (
            "The pairs are in to_frame(); here are the models with intervals one by one, and letters that those share "
            "which cannot be distinguished."
        )
        return (*said, adjusted, models)

    @property
    def _sampled(self) -> str:
        """What is drawn of a task."""
        return f"{plural(self.answers.passage)} of items" if self.answers.clustered else "items"

    def shown(self) -> pd.DataFrame:
        """Differences, intervals and p-values of either question; of many models their accuracies."""
        if len(self.table) > MOST_PAIRS:
            return self.models.drop(columns=["n_tasks"])
        names = [
            f"{name}_{suffix}" for suffix in SUFFIX.values() for name in ("estimate", "ci_low", "ci_high", "p_value")
        ]
        return self.table[["left", "right", *(name for name in names if name in self.table.columns)]]

    def sentences(self) -> tuple[str, ...]:
        """Who leads by either question, where the answers differ, what repetition changes, what could be found."""
        return (
            *self._leads(),
            *self._decisions(),
            *self._groups(),
            *self._of_judges(),
            *self._of_clusters(),
            *self._noise(),
            *self._smallest(),
        )

    def _questions(self) -> Iterator[tuple[str, str, Decisions]]:
        """Suffix, beginning of a sentence and decisions of the questions that are answered."""
        tasks = counted(len(self.answers.tasks), "task")
        where = "On this task" if len(self.answers.tasks) == 1 else f"On these {tasks}"
        yield "these", where, self.decisions(THESE)
        if self.like is not None:
            yield "like", f"For {self.answers.like}", self.decisions(LIKE)

    def _leads(self) -> Iterator[str]:
        most = "highest" if self.direction == "maximize" else "lowest"
        for suffix, where, found in self._questions():
            rows = self.models.set_index("model")
            means = rows[f"accuracy_{suffix}"]
            order = [name for name in (found.levels if suffix == "like" else rows.index) if not math.isnan(means[name])]
            if not order:
                continue
            name = order[0]
            row = rows.loc[name]
            first = [other for other in order if abs(means[other] - means[name]) <= 1e-9]
            ends = f"{written(row[f'ci_low_{suffix}'], '.3f')} to {written(row[f'ci_high_{suffix}'], '.3f')}"
            known = "" if math.isnan(row[f"ci_low_{suffix}"]) else f" ({percent(1.0 - self.alpha)} interval {ends})"
            lead = f"the {most} {self.noun}, {written(row[f'accuracy_{suffix}'], '.3f')}"
            if len(first) > 1:
                yield f"{where} {joined(first)} have {lead}{known}."
                continue
            better = [other for other in order[1:] if found.significant.loc[name, other]]
            others = [other for other in order[1:] if other not in better]
            if self.table[f"p_value_{suffix}"].isna().all():
                than = "nothing is tested"
            elif not better:
                than = f"it is not shown to be better than {'any other model' if len(others) > 1 else others[0]}"
            elif others:
                rest = f"not shown to be better than {joined(others)}"
                than = f"it is significantly better than {joined(better)}, and {rest}"
            else:
                than = f"it is significantly better than {'all others' if len(better) > 1 else better[0]}"
            yield f"{where} {name} has {lead}{known}; {than}."
        lacking = self.answers.without_tasks
        if lacking:
            each = [f"{name} (no answers on {joined(tasks, most=3)})" for name, tasks in lacking.items()]
            yield f"Not compared on these tasks: {joined(each, most=8)}."
        if self.like is None:
            yield ONE_TASK

    def _decisions(self) -> Iterator[str]:
        if self.like is None:
            return
        here, there = (self.table[f"differ_{suffix}"] for suffix in SUFFIX.values())
        tested_here, tested_there = (int(differ.notna().sum()) for differ in (here, there))
        if tested_here and len(here) > 1:
            of = "" if tested_there == tested_here else f" of {tested_there:,}"
            yield (
                f"Pairs of models that differ significantly: {int(here.sum()):,} of {tested_here:,} on these tasks, "
                f"{int(there.sum()):,}{of} for {self.answers.like}."
            )
        names = np.array([f"{a} and {b}" for a, b in zip(self.table["left"], self.table["right"], strict=True)])
        for which, text in ((here & ~there, f"on these tasks but not for {self.answers.like}"),
                            (there & ~here, f"for {self.answers.like} but not on these tasks")):  # fmt: skip
            chosen = names[which.fillna(False).to_numpy(dtype=bool)]
            if len(chosen):
                more = f"; and {len(chosen) - 5:,} more pairs" if len(chosen) > 5 else ""
                yield f"A difference is shown {text}: {'; '.join(chosen[:5])}{more}."

    def _groups(self) -> Iterator[str]:
        if len(self.answers.models) == 2:  # said of the one that leads
            return
        for suffix, where, found in self._questions():
            outside = self.answers.without_tasks if suffix == "these" else {}
            compared = [tuple(name for name in group if name not in outside) for group in found.groups]
            groups = [group for group in compared if len(group) > 1]
            if not groups or self.table[f"differ_{suffix}"].isna().all():
                continue
            kept = groups[:3] if len(groups) <= 3 else groups[:1]
            said = "; nor among ".join(joined(group, most=8) for group in kept)
            left = len(groups) - len(kept)
            more = f"; nor within {left} groups more, which letters show" if left else ""
            kept_in = [name for name in found.levels if name not in outside]
            undecided = found.undecided.loc[kept_in, kept_in].to_numpy()
            untested = " (pairs without a test included)" * bool(undecided.any())
            yield f"{where} no difference is shown among {said}{more}{untested}."

    def _of_judges(self) -> Iterator[str]:
        if len(self.answers.judges) < 2:
            return
        best = {}
        for judge, part in self.judges.groupby("judge", sort=False):
            values = part["accuracy"]
            at = int(values.argmax() if self.direction == "maximize" else values.argmin())
            best[judge] = str(part["model"].iloc[at])
        first = self.models["model"].iloc[0]
        same = sum(name == first for name in best.values())
        yield (
            f"Judges score {percent(self.disagreement)} of the answers differently; {first} comes first by {same} of "
            f"{counted(len(best), 'judge')}."
        )

    def _of_clusters(self) -> Iterator[str]:
        for row in self.clusters.to_dict("records"):
            if math.isnan(row["design_effect"]):
                continue
            effect, as_many = (written(row[key], form) for key, form in _OF_CLUSTERS)
            which = "" if len(self.table) == 1 else " (the median over the pairs)"
            yield (
                f"{row['n_items']:,} items in {row['n_clusters']:,} {plural(row['cluster'])}: the variance of a "
                f"difference on {self.answers.here} is {effect} times that of independent items{which}, so they tell "
                f"as much as {as_many} of these."
            )

    def _noise(self) -> Iterator[str]:
        if self.noise.empty:
            return
        sd, usual = (self.noise[name].to_numpy(dtype=float) for name in ("sd_difference", "largest_usual"))
        at = int(np.nanargmax(sd))
        if sd[at] == 0.0:
            yield "Repeated attempts were scored alike throughout: runs of one model show no noise."
            return
        yield (
            f"Two identical runs of one model (one epoch each) differ in {self.noun} with a standard deviation of "
            f"{points(sd[at])} at most ({self.noise['model'].iloc[at]}); 95 % of such differences are below "
            f"{points(usual[at])}."
        )

    def _smallest(self) -> Iterator[str]:
        found = self.detectable.set_index("question")["smallest"].dropna()
        words = {THESE: f"on {self.answers.here}", LIKE: f"for {self.answers.like}"}
        which = " (the middle pair, adjusted for all pairs)" * (len(self.table) > 1)
        within = [f"{points(found[question])} {words[question]}" for question in found.index if found[question] <= 1.0]
        beyond = [words[question] for question in found.index if found[question] > 1.0]
        if within:
            also = f"; {joined(beyond)} not even one of 1" if beyond else ""
            yield (
                f"With {percent(self.power)} power such an evaluation finds a difference of {' and of '.join(within)}"
                f"{which}{also}."
            )
        elif beyond:
            yield (
                f"With {percent(self.power)} power such an evaluation finds no difference {joined(beyond)}, not even "
                f"one of 1{which}."
            )
