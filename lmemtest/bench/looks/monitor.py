"""`monitor`: what the runs so far decide, at a level that holds however often one looks."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs, require_runs
from lmemtest.bench.looks.ahead import extension, next_runs
from lmemtest.bench.looks.ledger import EXTENSION, LOOK, add_to_ledger, ledger_path
from lmemtest.bench.looks.sample import pair_tests, sample_of, seed_effects, spread_of
from lmemtest.bench.looks.schedule import (
    ENDED,
    EXPECTED,
    FUTILE,
    GO_ON,
    STOP,
    UNITS,
    Look,
    Schedule,
    ended,
    read_study,
    schedule_of,
)
from lmemtest.bench.power.plan import Plan
from lmemtest.bench.power.stages import BENCHMARK, FAMILY, SEED, TASK
from lmemtest.core.caller import named
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice
from lmemtest.core.verdicts import Verdict
from lmemtest.core.words import (
    capitalised,
    counted,
    format_level,
    format_number,
    joined,
    listed,
    p_text,
    percent,
    plural,
)
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.means.decisions import decisions_of
from lmemtest.lmm.sequential.brownian import critical_scores, estimate_at_end, upper_p
from lmemtest.lmm.sequential.spending import SPENDING_NAMES
from lmemtest.lmm.sequential.successive_t import score_of

if TYPE_CHECKING:
    from lmemtest.lmm.means.decisions import Decisions


@result
class Monitoring(Result):
    """What the looks at a growing study decide; made by `monitor`.

    Attributes
    ----------
    schedule : Schedule
        The rules: maximum, planned looks, method, level, goal.
    looks : tuple of Look
        What each look saw, the last one being this.
    pairs : pandas.DataFrame
        One row per pair of the family: ``left``, ``right``, ``estimate`` (left less right), ``se``, ``df``, ``ci_low``,
        ``ci_high`` (simultaneous over pairs and looks), ``p_look`` (of this look alone), ``p_repeated`` (allows for all
        looks, the smallest so far), ``p_value`` (that, adjusted for the pairs), ``decided``, ``n`` (units at the
        last look that tested it), ``predicted_power`` (of open pairs: the chance to be decided at the end).
    decisions : Decisions
        Who is better, over all looks so far.
    decision : {"stop", "go on", "cannot be decided", "undecided at the end"}
        What to do now.
    notes : tuple of str
    """

    schedule: Schedule
    looks: tuple[Look, ...]
    pairs: pd.DataFrame
    decisions: Decisions
    decision: str
    notes: tuple[str, ...] = ()

    parts: ClassVar[dict[str, str]] = {"pairs": "pairs", "looks": "_looks", "path": "_path", "boundary": "_boundary",
                                    "final": "final"}  # fmt: skip
    figure: ClassVar[str | None] = "looks_plot"

    next = next_runs
    extension = extension

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units at each look."""
        return tuple(look.n for look in self.looks)

    @property
    def remaining(self) -> tuple[int, ...]:
        """Units at the planned looks that are still to come."""
        return tuple(n for n in self.schedule.planned if n > self.sizes[-1])

    def _looks(self) -> pd.DataFrame:
        plan, sizes = self.schedule, self.sizes
        rows = []
        for k in range(len(sizes)):
            table = plan.tested(self.looks[: k + 1])
            rows.append({"look": k + 1, "n": sizes[k], "decided": int(table["decided"].sum()),
                         "open": int(plan.open_pairs(table).sum()), "decision": self.looks[k].decision})  # fmt: skip
        return pd.DataFrame(rows)

    def _path(self) -> pd.DataFrame:
        """Signed normal scores of the tests of each look alone, positive where the left has the higher mean."""
        rows = [(look.n, *pair[:3], pair[5]) for look in self.looks for pair in look.pairs]
        table = pd.DataFrame(rows, columns=["n", "left", "right", "estimate", "p_look"])
        return table.assign(z=np.copysign(score_of(table.pop("p_look")), table["estimate"]))

    def _boundary(self) -> pd.DataFrame:
        """The score that a first pair needs at looks so far and at planned ones; missing where none is enough."""
        sizes = (*self.sizes, *self.remaining)
        z = self.schedule.critical(sizes, self.schedule.first_level)
        done = [n <= self.sizes[-1] for n in sizes]
        return pd.DataFrame({"n": sizes, "z": np.where(np.isfinite(z), z, np.nan), "done": done})

    def final(self) -> pd.DataFrame:
        """Estimates at the end of a study with planned looks: where one stops because one is large, it is too large.

        Each pair ends at the look where it reached the boundary of the first step, which it has to itself, or at the
        last one that tested it. Outcomes are ordered by stages. Where the rest cannot be decided, the end is now.

        Returns
        -------
        pandas.DataFrame
            One row per pair: ``left``, ``right``, ``n`` (units at its end), ``estimate`` (median-unbiased), ``ci_low``,
            ``ci_high`` (simultaneous over pairs), ``p_value`` (stage-wise, of this pair alone). No rows before the end.
        """
        plan, rows = self.schedule, []
        if plan.method == "spending" and plan.maximum and self.decision != GO_ON:
            level, now = plan.first_level, self.looks[-1]
            shares = (now.information(np.array(self.sizes)) / now.information(plan.maximum)).tolist()
            critical = plan.critical(self.sizes, level)
            # Brownian boundaries that spend the same, since the ends are those of Brownian motion
            brownian = critical_scores([n / plan.maximum for n in self.sizes], level, plan.spending).tolist()
            for names in plan.family:
                tests = {i: pair[2:] for i, look in enumerate(self.looks) for pair in look.pairs if pair[:2] == names}
                scores = {i: float(score_of(test[3])) for i, test in tests.items()}
                k = next((i for i in tests if scores[i] >= critical[i]), max(tests))
                so_far = [i for i in tests if i <= k]  # an algorithm may have left out a look
                stages = [shares[i] for i in so_far], [brownian[i] for i in so_far[:-1]]
                ends = estimate_at_end(*tests[k][:3], *stages, level)
                p_value = min(1.0, 2.0 * upper_p(scores[k], *stages))
                rows.append((*names, self.sizes[k], *ends, p_value))
        return pd.DataFrame(rows, columns=["left", "right", "n", "estimate", "ci_low", "ci_high", "p_value"])

    @property
    def title(self) -> str:
        sizes, unit = self.sizes, self.schedule.unit
        of = "" if self.schedule.maximum is None else f" of {self.schedule.maximum}"
        return f"Look {len(sizes)}, at {sizes[-1]}{of} {plural(unit)}: {self.decision}"

    def sentences(self) -> tuple[str, ...]:
        """The decision, who is better, and what it is about."""
        plan, table, n = self.schedule, self.pairs, self.sizes[-1]
        still = table[plan.open_pairs(table)]
        decided = int(table["decided"].sum())
        units = "" if plan.maximum is None else counted(plan.maximum - n, plan.unit)
        pairs = counted(len(table), "pair")
        done = f"{decided} of {pairs} {'is' if 1 in (decided, len(table)) else 'are'} decided"
        all_pairs = f"all {pairs} are" if len(table) > 1 else "the pair is"
        first = {
            STOP: f"Stop: {all_pairs} decided." if plan.goal == "all"
            else f"Stop: {self.decisions.top()[1][0]} is the best.",
            GO_ON: f"Go on: {done}.",
            FUTILE: f"What is open cannot be decided with the {units} left: {done}, and no other reaches a predicted "
            f"power of {percent(plan.futility)}. Going on is allowed.",
            ENDED: f"The study is at its end: {done}, and nothing is left to spend.",
        }[self.decision]  # fmt: skip
        sentences = [first]
        sentences += [f"{name} is better than {joined(worse)}." for name in self.decisions.levels
                      if (worse := self._beaten(name))]  # fmt: skip
        for row in self.final().to_dict("records") if len(table) == 1 else ():
            value, low, high = (format_number(row[key]) for key in ("estimate", "ci_low", "ci_high"))
            sentences.append(
                f"{row['left']} less {row['right']}: median-unbiased estimate {value} ({percent(1.0 - plan.alpha)} CI "
                f"{low} to {high}, stage-wise {p_text(row['p_value'])})."
            )
        if len(still) and self.remaining and self.decision != STOP:
            sentences.append(f"Next planned look: {self.remaining[0]} {plural(plan.unit)}.")
        return (*sentences, self._claim())

    def _beaten(self, name: str) -> list[str]:
        """The algorithms that one is better than, in the order of the decisions."""
        row = self.decisions.codes[self.decisions.levels.index(name)]
        return [other for other, code in zip(self.decisions.levels, row, strict=True) if code == Verdict.BETTER]

    def _claim(self) -> str:
        """What the unit that is added decides of the claim."""
        plan = self.schedule
        if plan.unit == "seed":
            these = "these benchmarks" if len(plan.benchmarks) > 1 else "this benchmark"
            return f"The claim is about {these}: further seeds say nothing about others."
        if hidden := self.looks[-1].hidden:
            return (
                f"The claim is about {plural(plan.unit)} like these, run with these seeds: an effect that runs with "
                f"the same seed share across benchmarks may go unseen ({hidden})."
            )
        return f"The claim is about {plural(plan.unit)} like these, of which they are taken for a sample."

    @property
    def facts(self) -> tuple[str, ...]:
        plan, pairs = self.schedule, len(self.pairs)
        adjusted = f"; {ADJUSTMENT_NAMES[plan.adjust]} adjustment for {pairs} pairs" if pairs > 1 else ""
        if plan.method == "evalue":
            how = f"e-values of t-tests (standardised differences of variance {EXPECTED:g} expected), valid at any look"
        else:
            how = (
                f"{SPENDING_NAMES[plan.spending]} spending by the share of {plan.maximum} {plural(plan.unit)}, "
                "boundaries of successive t-tests"
            )
        return (
            f"{capitalised(how)}{adjusted}: any false difference in the whole study has probability "
            f"{percent(plan.alpha)} at most.",
            f"ci_low, ci_high: simultaneous for all pairs and looks{self._of_another_procedure()}.",
        )

    def _of_another_procedure(self) -> str:
        """How many pairs p-values decide, by steps and over all looks, that the intervals of this look do not."""
        pairs = self.pairs
        hold = int((pairs["decided"] & (pairs["ci_low"] <= 0.0) & (pairs["ci_high"] >= 0.0)).sum())
        include = "includes" if hold == 1 else "include"
        return f"; {counted(hold, 'interval')} {include} zero for a pair decided by steps or earlier" if hold else ""

    def shown(self) -> pd.DataFrame:
        return self.pairs[["left", "right", "estimate", "ci_low", "ci_high", "p_value", "decided", "predicted_power"]]


@guided
@one_blas_thread()
def monitor(
    runs: Runs,
    *,
    maximum: int | None = None,
    looks: int | Sequence[int] | None = None,
    plan: Plan | None = None,
    unit: str = "benchmark",
    goal: str = "all",
    control: str | None = None,
    method: str = "spending",
    spending: str = "obrien_fleming",
    alpha: float = 0.05,
    futility: float = 0.1,
    ledger: str | os.PathLike[str] | None = None,
    earlier: Monitoring | None = None,
) -> Monitoring:
    """Look at a study while runs come in: stop, go on, or cannot be decided with what is left.

    Parameters
    ----------
    runs : Runs
        All runs so far. From look to look benchmarks (or seeds) are added, and nothing else changes.
    maximum : int >= 2, optional
        Units at the end, planned before the first look. Required there unless `method` is "evalue"; at later looks it
        and `looks` are those of the first, if left out.
    looks : int, or sequence of int, optional
        Planned looks: every so many units, or at these numbers of them. They need not be kept to, as long as results do
        not move them; each look spends by what there is.
    plan : Plan, optional
        From `lmemtest.plan`, instead of `maximum`: its number of benchmarks (or seeds), with looks at every quarter
        unless `looks` says otherwise.
    unit : {"benchmark", "seed"}
        What is added. Benchmarks: the claim is about benchmarks like these. Seeds, on fixed benchmarks: about these.
    goal : {"all", "best"}
        When to stop: all pairs decided, or one algorithm better than all others.
    control : str, optional
        Only comparisons with this algorithm count.
    method : {"spending", "evalue"}
        Alpha spending, up to a maximum; or e-values, which need no plan and find less.
    spending : {"obrien_fleming", "pocock"}
        Little early and nearly all at the end, or about evenly.
    alpha : float in (0, 1)
        Largest probability of any false difference in the whole study.
    futility : float in (0, 1)
        "cannot be decided": no open pair has a predicted power of this. It does not bind.
    ledger : path, optional
        File that holds the looks: made at the first, added to at each further one, never rewritten.
    earlier : Monitoring, optional
        The look before, instead of a ledger.

    Returns
    -------
    Monitoring
        ``decision``, ``decisions``, ``to_frame()`` (pairs), ``to_frame("looks")``, ``next(n)``, ``extension(runs)``.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule, or the maximum is passed.
    NestingError
        If units vanished, or runs of an earlier look changed.
    DesignError
        If the study has ended, or algorithms lack runs.
    DataError
        If the ledger was changed.

    Notes
    -----
    Tests are those of means of the units: with two algorithms paired t-tests, with more t-tests with moderated standard
    errors. Boundaries are exact for successive t-tests of normal differences (Jennison & Turnbull 1991). The p-value of
    a pair is the smallest level at which a boundary was reached so far; these are adjusted by Shaffer's steps (1986;
    Holm's with a control), which keep the level at every look whatever the correlation of pairs. E-values are of paired
    t-tests. Predicted power supposes a flat prior, Brownian motion, and the last look alone.

    References
    ----------
    Lan & DeMets (1983), doi:10.1093/biomet/70.3.659; Jennison & Turnbull (1991), doi:10.1093/biomet/78.1.133;
    Maurer & Bretz (2013), doi:10.1080/19466315.2013.807748; Wang & Ramdas (2025), arXiv:2310.03722

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, prior="good")
    >>> names = runs.levels("benchmark")
    >>> first = lt.monitor(runs.filter(benchmark=names[:3]), maximum=6, looks=3)
    >>> first.decision
    'go on'
    >>> lt.monitor(runs.filter(benchmark=names[:6]), maximum=6, looks=3, earlier=first).sizes
    (3, 6)
    """
    require_runs(runs, "lmemtest.monitor({})")
    runs.study.require_algorithms()
    check_choice(unit, "unit", UNITS)
    if ledger is not None and earlier is not None:
        raise ArgumentError(f"{named('ledger')} holds the earlier looks: leave {named('earlier')} out.")
    if earlier is not None and not isinstance(earlier, Monitoring):
        raise ArgumentError(f"earlier must be the result of monitor at the look before, got {earlier!r:.60}.")
    if plan is not None:
        maximum = _maximum_of(plan, unit, maximum)
        looks = -(-maximum // 4) if looks is None else looks
    path = None if ledger is None else ledger_path(ledger)
    so_far = (None, (), None) if earlier is None else (earlier.schedule, earlier.looks, None)
    made, looked, extended = so_far if path is None else read_study(path)
    if made is not None:
        maximum = made.maximum if maximum is None else maximum
        looks = (made.planned or None) if looks is None else looks
    blocks = sample_of(runs, unit)
    schedule = schedule_of(
        algorithms=made.algorithms if made else blocks.algorithms,
        unit=blocks.unit,
        maximum=maximum,
        looks=looks,
        goal=goal,
        control=None if control is None else format_level(control),
        method=method,
        spending=spending,
        alpha=alpha,
        futility=futility,
        score=runs.score,
        direction=runs.direction,
        benchmarks=tuple(format_level(level) for level in runs.levels(runs.benchmark))
        if unit == "seed" and runs.benchmark
        else (),
    )
    if made is not None:
        schedule.require_plan(made)
    n = len(blocks.names)
    if looked and schedule.require_nested(blocks, looked[-1]):
        return _monitoring(schedule, looked)  # the same look again
    if extended:
        raise ended((*looked[:-1], replace(looked[-1], decision="extended")), schedule.unit)
    if looked and looked[-1].decision in (STOP, ENDED):
        raise ended(looked, schedule.unit)
    schedule.require_within(n)
    shared, df_shared, test, hidden = seed_effects(runs, blocks)
    pairs, part = pair_tests(blocks, schedule, shared, df_shared, first=not looked)
    look = Look(
        n=n,
        units=blocks.names,
        instances=len(blocks.instances) / n,
        benchmarks=tuple(map(format_level, runs.levels(runs.benchmark)))
        if blocks.unit == "family" and runs.benchmark and not runs.study.crossed
        else (),
        means={name: float(x.mean()) for name, x in zip(blocks.algorithms, blocks.scores.T, strict=True)
               if np.isfinite(x).all()},
        pairs=pairs,
        spread=spread_of(blocks),
        shared=part,
        hidden=hidden,
    )  # fmt: skip
    monitoring = _monitoring(schedule, (*looked, look))
    if path is not None:
        add_to_ledger(path, asdict(schedule), {LOOK: asdict(monitoring.looks[-1])})
    alone = f"This is taken as the first look: earlier ones count if {named('ledger')} holds them."
    first = path is None and earlier is None
    of_seeds = (
        f"Runs with the same seed share an effect across benchmarks ({test}): {percent(part)} of the error variance, "
        "which further benchmarks do not average out. Run these with new seeds."
    )
    noted = (
        f"The ledger holds {counted(len(looked), 'earlier look')} (at {listed([look.n for look in looked])} "
        f"{plural(schedule.unit)}). It cannot show whether later ones were cut off its end: compare the number with "
        "your own."
    )
    notes = (*(of_seeds,) * bool(test), *(alone,) * first, *(noted,) * (path is not None and bool(looked)))
    return replace(monitoring, notes=(*notes, *monitoring.notes))


def extend(runs: Runs, ledger: str | os.PathLike[str]) -> Answer:
    """The extension of the study of a ledger by the runs with further units, which ends it; `Monitoring.extension`."""
    plan, looked, made = read_study(path := ledger_path(ledger))
    if plan is None:
        raise ArgumentError(f"{named('ledger')}: there is no file {str(ledger)!r}, so no looks to extend.")
    answer = _monitoring(plan, looked).extension(runs)
    record = {"units": list(answer.units), "pairs": answer.to_frame().to_dict("records")}
    if made is not None and made["units"] != record["units"]:
        raise DesignError(
            f"the study was extended by {counted(len(made['units']), plan.unit)}, whose number was fixed before they "
            "ran, and its level is spent. Begin a new study with new units."
        )
    if made is None:
        add_to_ledger(path, asdict(plan), {EXTENSION: record})
    return answer


# ---------------------------------------------------------------------- parts


def _maximum_of(plan: Any, unit: str, maximum: Any) -> int:
    """The number of benchmarks, of all families, or of seeds that a plan has."""
    stages = (FAMILY, BENCHMARK, TASK) if unit == "benchmark" else (SEED,)
    if not isinstance(plan, Plan) or maximum is not None:
        raise ArgumentError(f"plan must be the result of lmemtest.plan, and maximum left out: it is that of the plan, "
                            f"got {plan!r:.60}.")  # fmt: skip
    if not {*stages[-2:]} & {*plan.names}:
        raise ArgumentError(f"plan has no number of {plural(unit)}: it is of {joined(plan.names)}. Give maximum=.")
    return math.prod(plan.best[name] for name in stages if name in plan.names)


def _monitoring(plan: Schedule, looks: tuple[Look, ...]) -> Monitoring:
    """The result of the looks so far; the decision of the last one is written into it."""
    sizes, table = tuple(look.n for look in looks), plan.tested(looks)
    open_pairs = plan.open_pairs(table)
    table["predicted_power"] = plan.predicted_power(table, looks, open_pairs, plan.maximum)
    hopeless = table.loc[open_pairs, "predicted_power"].lt(plan.futility)
    ended = plan.maximum is not None and sizes[-1] >= plan.maximum
    decision = STOP if not open_pairs.any() else ENDED if ended else FUTILE if hopeless.all() else GO_ON
    looks = (*looks[:-1], replace(looks[-1], decision=decision))
    names = [name for name in plan.algorithms if any(name in look.means for look in looks)]
    means = [next(look.means[name] for look in reversed(looks) if name in look.means) for name in names]
    decided = decisions_of(
        levels=names,
        means=means,
        se=np.full(len(names), np.nan),
        tests=table,
        half_widths=np.full(1, np.nan),
        alpha=plan.alpha,
        direction=plan.direction,
        ahead=table["left_ahead"].to_numpy(),
        adjust=plan.adjust,
        ddf="",
        score=plan.score,
        statistic="mean",
        factor="algorithm",
        test="t-tests at several looks",
    )
    dropped = [name for name in plan.algorithms if name not in looks[-1].means]
    notes = []
    if dropped:
        notes.append(
            f"{joined(dropped)} did not run on all {plural(plan.unit)}: what was decided stays, open pairs stay open."
        )
    if plan.method == "spending" and sizes[-1] not in plan.planned:
        notes.append(f"A look at {sizes[-1]} was not planned: it holds if results did not choose its time.")
    return Monitoring(schedule=plan, looks=looks, pairs=table, decisions=decided, decision=decision, notes=tuple(notes))
