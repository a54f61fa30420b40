"""`monitor`: what the runs so far decide, at a level that holds however often one looks."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.data.requirements import FEWEST_FAMILIES, check_algorithms
from lmemtest.bench.data.runs import Runs, require_runs
from lmemtest.bench.looks.ledger import EXTENSION, LOOK, add_to_ledger, ledger_path, require_kept
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
    read_study,
    schedule_of,
)
from lmemtest.bench.power.plan import Plan
from lmemtest.bench.power.stages import BENCHMARK, FAMILY, SEED, TASK
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import below, in_tie_order, tolerance
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_number, check_positive_int, several
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
    suggest,
)
from lmemtest.errors import ArgumentError, DesignError, NestingError
from lmemtest.lmm.means.decisions import decisions_of
from lmemtest.lmm.sequential.brownian import critical_scores, estimate_at_end, upper_p
from lmemtest.lmm.sequential.spending import SPENDING_NAMES
from lmemtest.lmm.sequential.successive_t import crossing, score_of

if TYPE_CHECKING:
    from lmemtest.lmm.means.decisions import Decisions

_LEAST_BETWEEN = 0.01  # of the variance of a unit's difference: what is never taken to be of runs alone
_MOST_SEEDS = 100
_SOME = 0.01  # pairs that a look is expected to decide, below which it is said to decide none


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
                own = [i for i in tests if i <= k]  # an algorithm may have left out a look
                stages = [shares[i] for i in own], [brownian[i] for i in own[:-1]]
                ends = estimate_at_end(*tests[k][:3], *stages, level)
                p_value = min(1.0, 2.0 * upper_p(scores[k], *stages))
                rows.append((*names, self.sizes[k], *ends, p_value))
        return pd.DataFrame(rows, columns=["left", "right", "n", "estimate", "ci_low", "ci_high", "p_value"])

    def next(
        self,
        n: int | None = None,
        *,
        costs: float | Mapping[str, float] = 1.0,
        unit_cost: float | None = None,
        benchmarks: Mapping[Any, Any] | Sequence[Any] | None = None,
    ) -> Answer:
        """The runs that the next look needs: of algorithms that can still change the answer, where, and how many.

        New units are exchangeable before they are run: none tells more than another, and only costs order them.
        Algorithms differ in what they tell, and on each new benchmark as many seeds as on the earlier ones need not be
        best.

        Parameters
        ----------
        n : int >= 1, optional
            Units to add; by default as many as the next planned look has more.
        costs : float > 0, or mapping of str to float > 0
            Of an algorithm on one unit, with as many seeds as so far.
        unit_cost : float > 0, optional
            What a further benchmark costs beside its runs, in the unit of `costs`. With it the numbers of seeds are
            those that tell most for the cost; without it they stay. A further seed has one run on each benchmark,
            whatever it costs.
        benchmarks : sequence, or mapping to float > 0, optional
            Those not yet run, with what each costs. Where families are the units, a mapping of new families to these.

        Returns
        -------
        Answer
            One row per algorithm: ``algorithm``, ``run`` (whether a pair of it that matters is open),
            ``predicted_power`` (to be decided at the end, the largest of these pairs), ``expected`` (how many of these
            pairs the next look decides, in the mean), ``n_new`` (units on which it is to run), ``seeds`` (its runs on
            each benchmark; 1 where they were not counted), ``cost``. With `benchmarks` there is a table of these:
            ``unit``, ``benchmark``, ``cost`` of the unit, ``run``, the cheapest units first, and of each family at most
            as many benchmarks as families have so far, its cheapest: families count the same, however many they have.

        Raises
        ------
        ArgumentError
            If an argument breaks its rule, or more units than the maximum would be had.
        DesignError
            If the runs do not show what a seed adds: a single run on each benchmark.

        Notes
        -----
        With advantages of variance v_a between benchmarks and runs of variance s_a, the open algorithms' means have
        together the variance sum(v_a + s_a / n_a) over the number of benchmarks. Per unit of cost it is least for
        n_a = sqrt(s_a / c_a * unit_cost / sum(v_a)), c_a the cost of a run (Cochran 1977, chapter 10).

        Examples
        --------
        >>> import lmemtest as lt
        >>> losses = [1.0, 2, 9, 2, 1, 8, 1, 2, 7, 3, 1, 9, 2, 2, 8]
        >>> rows = {"tool": list("ABC") * 5, "task": sorted("vwxyz" * 3), "loss": losses}
        >>> runs = lt.Runs(rows, score="loss", direction="minimize", algorithm="tool", benchmark="task")
        >>> lt.monitor(runs, maximum=10).next().to_frame()["n_new"].tolist()
        [5, 5, 0]
        """
        ahead = self.remaining[0] - self.sizes[-1] if self.remaining else 0
        over = self.decision in (STOP, ENDED)
        n = ahead if n is None and (ahead or over) else check_positive_int(n, "n")
        plan, at = self.schedule, self.sizes[-1] + n
        _require_within(at, plan)
        cost_of = _costs_of(costs, plan.algorithms)
        still = plan.open_pairs(self.pairs) & (not over)
        open_names = [name for name in plan.algorithms if self.pairs[still][["left", "right"]].eq(name).any(axis=None)]
        seeds, worth = self._seeds(open_names, cost_of, unit_cost)
        decided_then = plan.predicted_power(self.pairs, self.looks, still, at, worth)
        rows = []
        for name in plan.algorithms:
            own = still & (self.pairs["left"].eq(name) | self.pairs["right"].eq(name))
            n_new = n * (name in open_names)
            rows.append({"algorithm": name, "run": name in open_names,
                         "predicted_power": self.pairs.loc[own, "predicted_power"].max(),
                         "expected": float(np.nansum(decided_then[own])), "n_new": n_new, "seeds": seeds[name][0],
                         "cost": n_new * cost_of[name] * seeds[name][1]})  # fmt: skip
        table, unit = pd.DataFrame(rows), plan.unit
        needed = table.loc[table["run"], "algorithm"].tolist()
        left = table.loc[~table["run"], "algorithm"].tolist()
        units = unit if n == 1 else plural(unit)
        findings = [f"Run {joined(needed)} on {n:,} further {units}." if needed else "No further runs."]
        findings += [f"{joined(left)} cannot change the answer any more." for _ in left[:1] if needed]
        if unit_cost is not None and needed:
            numbers = joined([f"{name} {counted(seeds[name][0], 'seed')}" for name in needed])
            findings.append(
                "A further seed has one run on each benchmark: its cost leaves nothing to choose."
                if unit == "seed"
                else f"Most informative for the cost on each further {unit}: {numbers}."
            )
        if len(needed) > 2:
            ratios = table[table["run"]].assign(ratio=table["expected"] / table["cost"]).to_dict("records")
            first = in_tie_order(ratios, lambda row: float(row["ratio"]), descending=True)[0]
            findings.append(
                f"{first['algorithm']} is the most informative for its cost: on average "
                f"{format_number(first['expected'], 2)} of its pairs will be decided at that look."
                if first["expected"] >= _SOME
                else "No pair is likely to be decided at that look."
            )
        tables = {"runs": table}
        if benchmarks is not None:
            tables["benchmarks"], where = self._where(n, benchmarks)
            findings += [where] if needed else []
        return Answer(question="monitor", title="The next runs", tables=tables, findings=tuple(findings),
                      values={"unit": unit, "n": n})  # fmt: skip

    def _where(self, n: int, benchmarks: Any) -> tuple[pd.DataFrame, str]:
        """The units that may be run next, the cheapest first, and in words which of them to take."""
        last, unit = self.looks[-1], self.schedule.unit
        if unit == "seed" or (unit == "family" and not isinstance(benchmarks, Mapping)):
            rule = "be left out where seeds are added" if unit == "seed" else "map new families to their benchmarks"
            raise ArgumentError(f"{named('benchmarks')} must {rule}, got {benchmarks!r:.60}.")
        if unit == "family":
            offered = {format_level(family): _priced(of_it) for family, of_it in benchmarks.items()}
        else:
            offered = {name: {name: cost} for name, cost in _priced(benchmarks).items()}
        seen = [name for name in offered if name in last.units]
        seen += [one for of_it in offered.values() for one in of_it if unit == "family" and one in last.benchmarks]
        if seen or len(offered) < max(n, 1):
            fault = f"{listed(seen)} ran already" if seen else f"{len(offered)} are fewer than the next {n}"
            raise ArgumentError(f"{named('benchmarks')} must be {plural(unit)} not yet run, for {n} at least: {fault}.")
        most = max(round(last.instances), 1)
        chosen = {name: in_tie_order(of_it, of_it.__getitem__)[:most] for name, of_it in offered.items()}
        cost = {name: sum(offered[name][one] for one in chosen[name]) for name in offered}
        order = sorted(in_tie_order(offered, cost.__getitem__), key=lambda name: len(chosen[name]) < most)
        rows = [{"unit": name, "benchmark": one, "cost": cost[name], "run": i < n}
                for i, name in enumerate(order) for one in chosen[name]]  # fmt: skip
        alike = f"Further {plural(unit)} are exchangeable before they are run"
        if np.ptp([*cost.values()]) <= tolerance([*cost.values()]):
            return pd.DataFrame(rows), f"{alike}, and cost the same: draw {n} of them at random."
        return pd.DataFrame(rows), (
            f"{alike}; the cheapest are {listed(order[:n])}. If these may differ from the others, draw at random."
        )

    def _seeds(
        self, names: Sequence[str], cost_of: Mapping[str, float], unit_cost: float | None
    ) -> tuple[dict[str, tuple[int, float]], Any]:
        """Runs of an algorithm on a new unit, and over those on earlier ones; a new unit's worth in these to each pair.

        A unit's difference has the variance of its pair's squared error times the number of units.
        """
        plan, spread = self.schedule, self.looks[-1].spread
        seeds = {name: (max(round(spread.get(name, (0.0, 1.0))[1]), 1), 1.0) for name in plan.algorithms}
        if unit_cost is None:
            return seeds, 1.0
        check_number(unit_cost, "unit_cost", low=0.0, open="low", meaning=f"of a further {plan.unit} beside its runs")
        if plan.unit == "seed":
            return seeds, 1.0
        if plan.unit == "family" or not set(names) <= set(spread):
            raise DesignError(
                f"{named('unit_cost')} asks for numbers of seeds on benchmarks, which needs several runs of each "
                "algorithm on some benchmark, and benchmarks as what is added. Leave it out."
            )
        left, right = self.pairs["left"], self.pairs["right"]
        of_unit = self.pairs["se"] ** 2 * self.pairs["n"] * (1.0 - self.looks[-1].shared)
        total = 0.5 * len(names) * float(of_unit[left.isin(names) & right.isin(names)].mean())
        between = max(total - sum(spread[name][0] / spread[name][1] for name in names), _LEAST_BETWEEN * total)
        change = dict.fromkeys(plan.algorithms, 0.0)
        for name in names:
            of_run, runs = spread[name]
            best = math.sqrt(of_run * runs / cost_of[name] * unit_cost / between)
            more = min(max(round(best), 1), _MOST_SEEDS)
            seeds[name], change[name] = (more, more / runs), of_run * (1.0 / more - 1.0 / runs)
        new = np.maximum(of_unit + left.map(change) + right.map(change), _LEAST_BETWEEN * of_unit)
        return seeds, (of_unit / new).to_numpy()

    def extension(self, runs: Runs | None = None) -> Answer:
        """More units than were planned: what level is left for them, and what they show.

        The level of a pair is its conditional error: the probability, without a difference, that the planned looks that
        are still to come would have decided it, given what was seen. At that level the further units may be tested by
        themselves, however many there are. The number must be fixed before they run.

        Parameters
        ----------
        runs : Runs, optional
            The runs with the further units; without them only the levels are given.

        Returns
        -------
        Answer
            One row per open pair: ``left``, ``right``, ``level``, and with `runs` ``estimate``, ``se``, ``df``,
            ``p_value`` (of the further units alone) and ``decided``. Levels are of tests at `alpha` over the number of
            pairs.

        Raises
        ------
        DesignError
            If no planned look is to come, so that nothing is left; or if further units have seeds of those seen, whose
            effects show.
        NestingError
            If the runs do not hold those of this look, unchanged.

        References
        ----------
        Mueller & Schaefer (2001), doi:10.1111/j.0006-341X.2001.00886.x

        Examples
        --------
        >>> import lmemtest as lt
        >>> rows = {"tool": list("AB") * 5, "task": sorted("vwxyz" * 2), "loss": [1.0, 2, 1, 4, 2, 2, 2, 3, 1, 3]}
        >>> runs = lt.Runs(rows, score="loss", direction="minimize", algorithm="tool", benchmark="task")
        >>> lt.monitor(runs, maximum=10).extension().to_frame().round(3)
          left right  level
        0    A     B  0.208
        """
        plan, sizes = self.schedule, self.sizes
        if plan.method != "spending":
            raise DesignError("an extension is for planned looks; e-values hold for as many units as one likes.")
        if not self.remaining or self.decision == STOP:
            raise _over(self.looks, plan.unit)
        ahead = (sizes[-1], *self.remaining)
        critical = plan.critical((*sizes, *self.remaining), plan.alpha / len(plan.family))[len(sizes) :]
        table = self.pairs[self.pairs["n"].eq(sizes[-1]) & ~self.pairs["decided"]][["left", "right", "p_look"]]
        z = score_of(table.pop("p_look"))
        table = table.assign(level=[crossing(at, ahead, critical) for at in z])
        units: tuple[str, ...] = ()
        if runs is not None:
            require_runs(runs, "monitoring.extension({})")
            blocks = sample_of(runs, plan.unit)
            _require_nested(blocks, self.looks[-1], plan)
            seen_at = np.isin(blocks.names, self.looks[-1].units)
            new = blocks.where(~seen_at)
            units, (shared, df_shared, test, _) = new.names, seed_effects(runs, new)
            old, more = blocks.where(seen_at).seeds, new.seeds
            if test and old is not None and more is not None and np.isin(more[more >= 0], old).any():
                raise DesignError(
                    f"an extension takes further {plural(plan.unit)} to be independent of those seen, and runs with "
                    f"the same seed share an effect across benchmarks ({test}). Run the further ones with new seeds."
                )
            if len(units) < 2:
                raise DesignError(f"an extension needs 2 further {plural(plan.unit)} at least, got {len(units)}.")
            tests, _ = pair_tests(new, plan, shared, df_shared)
            seen = pd.DataFrame(tests, columns=["left", "right", "estimate", "se", "df", "p_value"])
            table = table.merge(seen, on=["left", "right"])
            table["decided"] = below(table["p_value"], table["level"])
        table = table.reset_index(drop=True)
        left = f"{percent(table['level'].min())} to {percent(table['level'].max())}" if len(table) > 1 else ""
        findings = [
            f"What is left of the level for further {plural(plan.unit)}: {left or percent(table['level'].max())}."
        ]
        if runs is not None:
            findings += [
                f"{row['left']} and {row['right']} differ significantly ({p_text(row['p_value'])}, level "
                f"{percent(row['level'])})."
                for row in table[table["decided"]].to_dict("records")
            ]
        return Answer(
            question="monitor",
            title="Extension of a study",
            tables={"pairs": table},
            facts=("Conditional error of the looks that were planned; further units are tested by themselves.",),
            findings=tuple(findings),
            values={"units": units},
        )

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
            "ci_low, ci_high: simultaneous for all pairs and looks.",
        )

    def shown(self) -> pd.DataFrame:
        return self.pairs[["left", "right", "estimate", "ci_low", "ci_high", "p_value", "decided", "predicted_power"]]


def _over(looks: tuple[Look, ...], unit: str) -> DesignError:
    return DesignError(
        f"The study ended at look {len(looks)} with {counted(looks[-1].n, unit)}: {looks[-1].decision}. No level is "
        "left for a further look. Begin a new study with new units; or next time plan a larger maximum, extend before "
        f"the last look ({advice('extension')}), or use {setting('method', 'evalue')}, which has no end."
    )


def _costs_of(costs: Any, names: Sequence[str]) -> dict[str, float]:
    """What an algorithm on one unit costs, by its name."""
    given = _priced(costs if isinstance(costs, Mapping) else dict.fromkeys(names, costs), "costs")
    for name in given:
        if name not in names:
            raise ArgumentError(f"costs are by algorithm ({listed(names)}), got {name!r}.{suggest(name, names)}")
    return dict.fromkeys(names, 1.0) | given


def _priced(given: Any, called: str = "benchmarks") -> dict[str, float]:
    """What each costs, by its name."""
    names = [*map(format_level, given)] if several(given) and not isinstance(given, str) else []
    if not names or len({*names}) < len(names):
        raise ArgumentError(f"{named(called)} must be names, each once, or map them to costs, got {given!r:.60}.")
    costs = given if isinstance(given, Mapping) else dict.fromkeys(names, 1.0)
    return {format_level(name): check_number(cost, called, low=0.0, open="low", meaning=f"of {name}")
            for name, cost in costs.items()}  # fmt: skip


def _require_within(n: int, plan: Schedule) -> None:
    if plan.maximum is not None and n > plan.maximum:
        raise ArgumentError(
            f"{n} {plural(plan.unit)} are more than the planned maximum of {plan.maximum}. From a look before it an "
            f"extension is possible at the level that is left: {advice('extension')}. At the maximum nothing is left."
        )


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
    check_algorithms(runs)
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
        _require_same_plan(schedule, made)
    n = len(blocks.names)
    if looked and _require_nested(blocks, looked[-1], schedule):
        return _monitoring(schedule, looked)  # the same look again
    if extended:
        raise _over((*looked[:-1], replace(looked[-1], decision="extended")), schedule.unit)
    if looked and looked[-1].decision in (STOP, ENDED):
        raise _over(looked, schedule.unit)
    _require_within(n, schedule)
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
    found = _monitoring(schedule, (*looked, look))
    if path is not None:
        add_to_ledger(path, asdict(schedule), {LOOK: asdict(found.looks[-1])})
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
    return replace(found, notes=(*notes, *found.notes))


def extend(runs: Runs, ledger: str | os.PathLike[str]) -> Answer:
    """The extension of the study of a ledger by the runs with further units, which ends it; `Monitoring.extension`."""
    plan, looked, made = read_study(path := ledger_path(ledger))
    if plan is None:
        raise ArgumentError(f"{named('ledger')}: there is no file {str(ledger)!r}, so no looks to extend.")
    found = _monitoring(plan, looked).extension(runs)
    record = {"units": list(found.units), "pairs": found.to_frame().to_dict("records")}
    if made is not None and made["units"] != record["units"]:
        raise DesignError(
            f"the study was extended by {counted(len(made['units']), plan.unit)}, whose number was fixed before they "
            "ran, and its level is spent. Begin a new study with new units."
        )
    if made is None:
        add_to_ledger(path, asdict(plan), {EXTENSION: record})
    return found


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


def _require_same_plan(now: Schedule, plan: Schedule) -> None:
    was, given = asdict(plan), asdict(now)
    if {plan.unit, now.unit} == {"benchmark", "family"}:
        raise ArgumentError(
            f"the looks so far are by {plan.unit}, and these runs are a sample of {plural(now.unit)}: families are the "
            f"units from {FEWEST_FAMILIES} on. Name no family, so that the claim is about benchmarks; or begin another "
            f"study, whose first look has {FEWEST_FAMILIES} families."
        )
    for name in was:
        if was[name] != given[name]:
            raise ArgumentError(
                f"the plan was made at the first look and is kept: {name} was {_written(was[name])}, and is "
                f"{_written(given[name])} now."
            )


def _written(value: Any) -> str:
    return listed(value) if isinstance(value, tuple | list) else repr(value)


def _require_nested(blocks: Blocks, last: Look, plan: Schedule) -> bool:
    """Refuse runs that do not hold those of the last look, unchanged; whether they are just these."""
    new = [name for name in blocks.algorithms if name not in plan.algorithms]
    if new:
        raise DesignError(
            f"{joined(new)} came after the first look. The family of pairs is fixed there: begin another study for "
            "further algorithms."
        )
    require_kept(last.units, blocks.names, plan.unit, "these runs")
    at = np.isin(blocks.names, last.units)
    for name, x in zip(blocks.algorithms, blocks.scores[at].T, strict=True):
        if name in last.means and not abs(float(x.mean()) - last.means[name]) <= tolerance([*x, last.means[name]]):
            raise NestingError(
                f"the mean of {name} on the {counted(last.n, plan.unit)} of the last look was "
                f"{format_number(last.means[name])} and is {format_number(float(x.mean()))} now. Looks must be nested: "
                f"add {plural(plan.unit)}, and leave the runs on earlier ones as they were."
            )
    return bool(at.all())


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
