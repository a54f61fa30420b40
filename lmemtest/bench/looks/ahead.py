"""What follows from a look: the runs that the next one needs, and an extension beyond the plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs, require_runs
from lmemtest.bench.looks.sample import pair_tests, sample_of, seed_effects
from lmemtest.bench.looks.schedule import ENDED, STOP, ended
from lmemtest.core.caller import named
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, in_tie_order, tolerance
from lmemtest.core.validate import check_number, check_positive_int, several
from lmemtest.core.words import counted, format_level, format_number, joined, listed, p_text, percent, plural, suggest
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.sequential.successive_t import crossing, score_of

if TYPE_CHECKING:
    from lmemtest.bench.looks.monitor import Monitoring

_LEAST_BETWEEN = 0.01  # of the variance of a unit's difference: what is never taken to be of runs alone
_MOST_SEEDS = 100
_SOME = 0.01  # pairs that a look is expected to decide, below which it is said to decide none


def next_runs(
    monitoring: Monitoring,
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
    ahead = monitoring.remaining[0] - monitoring.sizes[-1] if monitoring.remaining else 0
    over = monitoring.decision in (STOP, ENDED)
    n = ahead if n is None and (ahead or over) else check_positive_int(n, "n")
    plan, at = monitoring.schedule, monitoring.sizes[-1] + n
    plan.require_within(at)
    cost_of, pairs = _costs_of(costs, plan.algorithms), monitoring.pairs
    still = plan.open_pairs(pairs) & (not over)
    open_names = [name for name in plan.algorithms if pairs[still][["left", "right"]].eq(name).any(axis=None)]
    seeds, worth = _seeds(monitoring, open_names, cost_of, unit_cost)
    decided_then = plan.predicted_power(pairs, monitoring.looks, still, at, worth)
    rows = []
    for name in plan.algorithms:
        with_it = still & (pairs["left"].eq(name) | pairs["right"].eq(name))
        n_new = n * (name in open_names)
        rows.append({"algorithm": name, "run": name in open_names,
                     "predicted_power": pairs.loc[with_it, "predicted_power"].max(),
                     "expected": float(np.nansum(decided_then[with_it])), "n_new": n_new, "seeds": seeds[name][0],
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
        tables["benchmarks"], where = _where(monitoring, n, benchmarks)
        findings += [where] if needed else []
    return Answer(question="monitor", title="The next runs", tables=tables, findings=tuple(findings),
                  values={"unit": unit, "n": n})  # fmt: skip


def _where(monitoring: Monitoring, n: int, benchmarks: Any) -> tuple[pd.DataFrame, str]:
    """The units that may be run next, the cheapest first, and in words which of them to take."""
    last, unit = monitoring.looks[-1], monitoring.schedule.unit
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
    monitoring: Monitoring, names: Sequence[str], cost_of: Mapping[str, float], unit_cost: float | None
) -> tuple[dict[str, tuple[int, float]], Any]:
    """Runs of an algorithm on a new unit, and over those on earlier ones; a new unit's worth in these to each pair.

    A unit's difference has the variance of its pair's squared error times the number of units.
    """
    plan, spread = monitoring.schedule, monitoring.looks[-1].spread
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
    left, right = monitoring.pairs["left"], monitoring.pairs["right"]
    of_unit = monitoring.pairs["se"] ** 2 * monitoring.pairs["n"] * (1.0 - monitoring.looks[-1].shared)
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


def _costs_of(costs: Any, names: Sequence[str]) -> dict[str, float]:
    """What an algorithm on one unit costs, by its name."""
    prices = _priced(costs if isinstance(costs, Mapping) else dict.fromkeys(names, costs), "costs")
    for name in prices:
        if name not in names:
            raise ArgumentError(f"costs are by algorithm ({listed(names)}), got {name!r}.{suggest(name, names)}")
    return dict.fromkeys(names, 1.0) | prices


def _priced(prices: Any, called: str = "benchmarks") -> dict[str, float]:
    """What each costs, by its name."""
    names = [*map(format_level, prices)] if several(prices) and not isinstance(prices, str) else []
    if not names or len({*names}) < len(names):
        raise ArgumentError(f"{named(called)} must be names, each once, or map them to costs, got {prices!r:.60}.")
    costs = prices if isinstance(prices, Mapping) else dict.fromkeys(names, 1.0)
    return {format_level(name): check_number(cost, called, low=0.0, open="low", meaning=f"of {name}")
            for name, cost in costs.items()}  # fmt: skip


def extension(monitoring: Monitoring, runs: Runs | None = None) -> Answer:
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
        One row per open pair: ``left``, ``right``, ``level`` (0 where no planned look can decide it any more), and
        with `runs` ``estimate``, ``se``, ``df``, ``p_value`` (of the further units alone) and ``decided``. Levels are
        of tests at `alpha` over the number of pairs.

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
    plan, sizes = monitoring.schedule, monitoring.sizes
    if plan.method != "spending":
        raise DesignError("an extension is for planned looks; e-values hold for as many units as one likes.")
    if not monitoring.remaining or monitoring.decision == STOP:
        raise ended(monitoring.looks, plan.unit)
    ahead = (sizes[-1], *monitoring.remaining)
    critical = plan.critical((*sizes, *monitoring.remaining), plan.alpha / len(plan.family))[len(sizes) :]
    table = monitoring.pairs
    table = table[table["n"].eq(sizes[-1]) & ~table["decided"]][["left", "right", "p_look"]]
    z = score_of(table.pop("p_look"))
    table = table.assign(level=[crossing(at, ahead, critical) for at in z])
    units: tuple[str, ...] = ()
    if runs is not None:
        require_runs(runs, "monitoring.extension({})")
        blocks = sample_of(runs, plan.unit)
        plan.require_nested(blocks, monitoring.looks[-1])
        seen_at = np.isin(blocks.names, monitoring.looks[-1].units)
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
    ends = dict.fromkeys(percent(end) for end in (table["level"].min(), table["level"].max()))
    findings = [
        f"What is left of the level for further {plural(plan.unit)}: {' to '.join(ends)}."
        if table["level"].max() > 0.0
        else f"No level is left for further {plural(plan.unit)}: no look that was planned could decide an open pair "
        "any more, whatever it showed. Begin a new study with new ones."
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
