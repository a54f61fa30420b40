"""What is planned before the first look, and what each look saw: the records that a ledger holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.looks.ledger import Record, ledger_path, not_a_ledger, read_ledger, require_kept
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.rounding import below, tolerance
from lmemtest.core.validate import among, check_choice, check_fraction, check_positive_int, several
from lmemtest.core.words import counted, format_level, format_number, joined, listed, plural
from lmemtest.errors import ArgumentError, DesignError, NestingError
from lmemtest.lmm.distributions.student import t_quantile, upper_tail
from lmemtest.lmm.means.adjust import adjust_raw, level_of_pairs, step_down
from lmemtest.lmm.sequential.brownian import critical_scores
from lmemtest.lmm.sequential.evalues import critical_t, log_evalue
from lmemtest.lmm.sequential.spending import SPENDING, SPENDING_NAMES, check_spending
from lmemtest.lmm.sequential.successive_t import boundaries, planned_among, repeated_p, require_level, score_of

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array

UNITS = ("benchmark", "seed")
GOALS = ("all", "best")
METHODS = ("spending", "evalue")
STOP, GO_ON, FUTILE, ENDED = "stop", "go on", "cannot be decided", "undecided at the end"
EXPECTED = 1.0  # variance of the standardised differences that e-values expect


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look saw.

    Attributes
    ----------
    n : int
        Units of the sample so far.
    units : tuple of str
        Their names.
    instances : float
        Benchmarks of a unit, in the mean: more than one where units are families.
    means : dict of str to float
        Mean scores of the algorithms that ran on all of them.
    spread : dict of str to (float, float)
        Of an algorithm with several runs on benchmarks: variance of a run, and runs on a benchmark.
    shared : float
        Which part of the error variance is of effects that seeds share across benchmarks, the mean over pairs.
    hidden : str
        Why such effects may go unseen, so that the claim is about these seeds.
    pairs : tuple of (str, str, float, float, float, float)
        Left, right, estimate of left less right, its standard error, degrees of freedom, p-value of this look alone.
    decision : str
    benchmarks : tuple of str
        Where units are families that benchmarks are nested in: those that ran.
    """

    n: int
    units: tuple[str, ...]
    means: Mapping[str, float]
    pairs: tuple[tuple[str, str, float, float, float, float], ...]
    decision: str = GO_ON
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shared: float = 0.0
    hidden: str = ""
    instances: float = 1.0
    benchmarks: tuple[str, ...] = ()

    def information(self, n: Array | int) -> Array:
        """Of n units over that of these: effects of shared seeds are as large with more units."""
        return np.asarray(n / (self.n + self.shared * (n - self.n)))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The rules of a study, which no look changes.

    Attributes
    ----------
    algorithms : tuple of str
        The family that is compared.
    unit : {"benchmark", "seed"}
        What is added from look to look.
    maximum : int or None
        Units at the end; None with e-values that have none.
    planned : tuple of int
        Units at the looks that are planned, the maximum included.
    goal : {"all", "best"}
    control : str or None
    method, spending : str
    alpha, futility : float
    score, direction : str
    benchmarks : tuple of str
        Those that seeds are added on.
    """

    algorithms: tuple[str, ...]
    unit: str
    maximum: int | None
    planned: tuple[int, ...]
    goal: str
    control: str | None
    method: str
    spending: str
    alpha: float
    futility: float
    score: str
    direction: str
    benchmarks: tuple[str, ...] = field(default=())

    @property
    def family(self) -> list[tuple[str, str]]:
        """The pairs that the adjustment counts."""
        k = len(self.algorithms)
        pairs = [(self.algorithms[i], self.algorithms[j]) for i in range(k) for j in range(i + 1, k)]
        return pairs if self.control is None else [pair for pair in pairs if self.control in pair]

    @property
    def adjust(self) -> str:
        """Shaffer's steps of all pairs, Holm's of comparisons with a control: closed tests of any p-values."""
        return "shaffer" if self.control is None else "holm"

    def critical(self, sizes: Sequence[int], level: float) -> Array:
        """Critical normal scores of looks at these sizes, one test at a level; infinite where nothing is enough."""
        if self.method == "spending":
            return np.asarray(boundaries(sizes, self._total, level, self.spending)[0])
        t = np.array([critical_t(level, n, EXPECTED) for n in sizes], dtype=float)
        return np.where(np.isinf(t), np.inf, score_of(2.0 * upper_tail(t, np.array(sizes) - 1.0)))

    @property
    def first_level(self) -> float:
        """What the first pair of the family is tested at."""
        return self.alpha / len(self.family)

    def at_look(self, sizes: tuple[int, ...], look: Look) -> Array:
        """p-values of a look that allow for all looks so far, in the order of its pairs."""
        p = np.array([pair[5] for pair in look.pairs], dtype=float)
        if self.method == "spending":
            return repeated_p(p, sizes, self._total, self.spending)
        t = t_quantile(0.5 * np.maximum(p, 1e-300), look.n - 1.0)  # the ratio itself, unless seeds share effects
        return np.exp(np.minimum(0.0, -log_evalue(t, look.n, EXPECTED)))

    def tested(self, looks: tuple[Look, ...]) -> pd.DataFrame:
        """One row per pair of the family: its last test, ``p_repeated``, smallest so far, and ``p_value``, adjusted."""
        rows = {pair: {"left": pair[0], "right": pair[1], "p_repeated": np.nan, "left_ahead": False, "n": 0}
                for pair in self.family}  # fmt: skip
        sizes = tuple(look.n for look in looks)
        for k, look in enumerate(looks):
            for (left, right, estimate, se, df, p_look), p in zip(look.pairs, self.at_look(sizes[: k + 1], look),
                                                                 strict=True):  # fmt: skip
                if (row := rows.get((left, right))) is None:
                    continue
                row |= {"estimate": estimate, "se": se, "df": df, "p_look": p_look, "n": look.n}
                if not row["p_repeated"] <= p:  # NaN before the first
                    row |= {"p_repeated": p, "left_ahead": (estimate > 0.0) == (self.direction == "maximize")}
        table = pd.DataFrame(rows.values())
        p_repeated = table["p_repeated"].to_numpy(dtype=float)
        if self.adjust == "shaffer":
            table["p_value"] = step_down(p_repeated, len(self.algorithms), first_by_range=False)
        else:
            table["p_value"] = adjust_raw(p_repeated, "holm", len(table))
        tail = special.ndtr(-self.critical(sizes, self.first_level)[-1])
        ratio = t_quantile(np.maximum(tail, 1e-300), table["df"].to_numpy(dtype=float)) if tail > 0.0 else np.inf
        half = ratio * table["se"].where(table["n"] == sizes[-1])
        table["ci_low"], table["ci_high"] = (table["estimate"] + sign * half for sign in (-1.0, 1.0))
        table["decided"] = below(table["p_value"], self.alpha)
        return table

    def open_pairs(self, table: pd.DataFrame) -> pd.Series:
        """Which pairs are not decided and matter for the goal."""
        if self.goal == "all":
            return ~table["decided"]
        worse = np.where(table["left_ahead"], table["right"], table["left"])[table["decided"]]
        return ~table["decided"] & ~table["left"].isin(worse) & ~table["right"].isin(worse)

    def predicted_power(
        self, table: pd.DataFrame, looks: tuple[Look, ...], open_pairs: pd.Series, at: int | None, worth: Any = 1.0
    ) -> Array:
        """The chance that an open pair is significant at so many units, if it goes on as it went.

        With Brownian motion and a flat prior, scores at the information I2 given z at I1 are normal: mean
        z sqrt(I2 / I1), variance I2 / I1 - 1. A further unit is worth so many of the earlier ones to each pair.
        """
        sizes = tuple(look.n for look in looks)
        if at is None or sizes[-1] >= at or not open_pairs.any():
            return np.full(len(table), np.nan)
        level, ahead = self.alpha / open_pairs.sum(), (*(n for n in self.planned if sizes[-1] < n < at), at)
        if self.method == "evalue":
            last = self.critical((at,), level)[-1]
        else:  # of Brownian motion: to predict it is near enough
            last = critical_scores([n / self._total for n in (*sizes, *ahead)], level, self.spending)[-1]
        more = looks[-1].information(sizes[-1] + worth * (at - sizes[-1]))
        mean, sd = score_of(table["p_look"]) * np.sqrt(more), np.sqrt(np.maximum(more - 1.0, 1e-12))
        power = special.ndtr((mean - last) / sd) + special.ndtr((-mean - last) / sd)
        return np.where(open_pairs & (table["n"] == sizes[-1]), power, np.nan)

    @property
    def _total(self) -> int:
        return int(self.maximum or 0)

    def require_within(self, n: int) -> None:
        """Refuse more units than the maximum."""
        if self.maximum is not None and n > self.maximum:
            raise ArgumentError(
                f"{n} {plural(self.unit)} are more than the planned maximum of {self.maximum}. From a look before it "
                f"an extension is possible at the level that is left: {advice('extension')}. At the maximum nothing is "
                "left."
            )

    def require_plan(self, plan: Schedule) -> None:
        """Refuse to change the plan of the first look."""
        was, now = asdict(plan), asdict(self)
        if {plan.unit, self.unit} == {"benchmark", "family"}:
            raise ArgumentError(
                f"the looks so far are by {plan.unit}, and these runs are a sample of {plural(self.unit)}: families "
                f"are the units from {FEWEST_FAMILIES} on. Name no family, so that the claim is about benchmarks; or "
                f"begin another study, whose first look has {FEWEST_FAMILIES} families."
            )
        for name in was:
            if was[name] != now[name]:
                raise ArgumentError(
                    f"the plan was made at the first look and is kept: {name} was {_written(was[name])}, and is "
                    f"{_written(now[name])} now."
                )

    def require_nested(self, blocks: Blocks, last: Look) -> bool:
        """Refuse runs that do not hold those of the last look, unchanged; whether they are just these."""
        new = [name for name in blocks.algorithms if name not in self.algorithms]
        if new:
            raise DesignError(
                f"{joined(new)} came after the first look. The family of pairs is fixed there: begin another study for "
                "further algorithms."
            )
        require_kept(last.units, blocks.names, self.unit, "these runs")
        at = np.isin(blocks.names, last.units)
        for name, x in zip(blocks.algorithms, blocks.scores[at].T, strict=True):
            if name in last.means and not abs(float(x.mean()) - last.means[name]) <= tolerance([*x, last.means[name]]):
                raise NestingError(
                    f"the mean of {name} on the {counted(last.n, self.unit)} of the last look was "
                    f"{format_number(last.means[name])} and is {format_number(float(x.mean()))} now. Looks must be "
                    f"nested: add {plural(self.unit)}, and leave the runs on earlier ones as they were."
                )
        return bool(at.all())


def ended(looks: tuple[Look, ...], unit: str) -> DesignError:
    """Says that no level is left for a further look."""
    return DesignError(
        f"The study ended at look {len(looks)} with {counted(looks[-1].n, unit)}: {looks[-1].decision}. No level is "
        "left for a further look. Begin a new study with new units; or next time plan a larger maximum, extend before "
        f"the last look ({advice('extension')}), or use {setting('method', 'evalue')}, which has no end."
    )


def _written(value: Any) -> str:
    return listed(value) if isinstance(value, tuple | list) else repr(value)


def read_study(path: Path) -> tuple[Schedule | None, tuple[Look, ...], Record | None]:
    """The schedule, the looks and the extension of a ledger; none where there is no file."""
    plan, looks, extension = read_ledger(path, "planned")
    if plan is None:
        return None, (), None
    lists = ("algorithms", "planned", "benchmarks")
    try:
        schedule = Schedule(**{**plan, **{name: tuple(plan[name]) for name in lists}})
        made = (
            Look(
                **{
                    **look,
                    "units": tuple(look["units"]),
                    "pairs": tuple(map(tuple, look["pairs"])),
                    "benchmarks": tuple(look.get("benchmarks", ())),
                }
            )
            for look in looks
        )
        return schedule, tuple(made), extension
    except (KeyError, TypeError) as error:
        raise not_a_ledger(path, error) from None


@dataclass(frozen=True, kw_only=True)
class OneLook:
    """Which of several looks at a study a table is, and the level that it has.

    Attributes
    ----------
    sizes : tuple of int
        Units at all looks, planned or in the ledger; empty where nothing was planned.
    place : int
        Which of them this is, from 1.
    unit : {"benchmark", "family"}
    spending : str
        Its name; empty where nothing was planned.
    alpha, level : float
        Of the whole study, and of this look.
    maximum : int or None
        Units at the end, where looks come when they like up to it: after every number of them.
    in_ledger : bool
        Whether the looks are those of a ledger.
    """

    sizes: tuple[int, ...]
    place: int
    unit: str
    spending: str
    alpha: float
    level: float
    maximum: int | None = None
    in_ledger: bool = False


def one_look(
    runs: Runs, *, looks: Any, maximum: Any, looked: Any, spending: Any, alpha: float, adjust: str | None
) -> OneLook:
    """The look that a table is: one of those planned, noted in a ledger, or the last of so many without a plan."""
    if looked is not None and (looks is not None or maximum is not None):
        raise ArgumentError(
            f"{named('looks')} and {named('maximum')} are planned, and {named('looked')} are counted or in a ledger: "
            "give one."
        )
    spending = check_spending(spending, planned=looks is not None or maximum is not None)
    sample = runs.study.sampled
    n, unit = runs.study.count(sample.column), sample.noun
    if looked is not None and not isinstance(looked, str | os.PathLike):
        place = check_positive_int(looked, "looked")
        level = alpha / (place * (place + 1))  # of looks 1, 2, ... without an end: they add up to alpha
        return OneLook(sizes=(), place=place, unit=unit, spending="", alpha=alpha, level=level)
    if looked is None:
        sizes, _ = planned_among(looks, maximum, n, plural(unit), "these runs")
    else:
        plan, made, extended = read_study(path := ledger_path(looked, "looked"))
        if plan is None or plan.method != "spending" or plan.unit != unit or plan.alpha != alpha:
            raise ArgumentError(
                f"{named('looked')} must be a number, or the ledger of planned looks by {unit} at alpha {alpha:g}, got "
                f"{path.name!r}. Decisions by e-values, and by looks of another kind, are those of monitor."
            )
        if extended:
            raise ArgumentError(
                f"{named('looked')}: {path.name!r} holds an extension, which spent what was left of alpha. What it "
                "decided is the end of the study."
            )
        for now, was in ((map(format_level, runs.algorithms), plan.algorithms), (sample.units, made[-1].units)):
            if other := sorted({*now} ^ {*was}):
                raise ArgumentError(
                    f"{named('looked')} must be the ledger of these runs, and {listed(other)} "
                    f"{'is' if len(other) == 1 else 'are'} in only one of the two. Name the ledger of this study, and "
                    f"give all runs that {path.name!r} is of."
                )
        sizes, spending = (*(look.n for look in made), *(m for m in plan.planned if m > n)), plan.spending
    family = 2 if adjust == "none" else len(runs.algorithms)
    level = require_level(level_of_pairs(n, sizes, alpha, family, spending), n, sizes, plural(unit))
    name = SPENDING_NAMES[spending]
    of_look = {"sizes": sizes, "place": sizes.index(n) + 1, "maximum": maximum, "in_ledger": looked is not None}
    return OneLook(**of_look, unit=unit, spending=name, alpha=alpha, level=level)


def schedule_of(*, looks: Any, maximum: Any, **facts: Any) -> Schedule:
    """The schedule that arguments ask for, checked; `facts` are the other attributes."""
    unit, goal, control, algorithms = (facts[name] for name in ("unit", "goal", "control", "algorithms"))
    for name, options in (("goal", GOALS), ("method", METHODS), ("spending", tuple(SPENDING))):
        check_choice(facts[name], name, options)
    facts |= {name: check_fraction(facts[name], name) for name in ("alpha", "futility")}
    if facts["method"] == "evalue" and facts["spending"] != "obrien_fleming":
        raise ArgumentError(
            f"{named('spending')} is how planned looks spend alpha, and e-values spend none: leave it out, or "
            f"{setting('method', 'spending')}."
        )
    if maximum is None and facts["method"] == "spending":
        raise ArgumentError(
            f"{named('maximum')} must be given, the number of {plural(unit)} at the end, planned before the first look "
            f"(without an end: {setting('method', 'evalue')})."
        )
    maximum = None if maximum is None else check_positive_int(maximum, "maximum", minimum=2)
    if control is not None and not among(control, algorithms):
        raise ArgumentError(f"control must be one of the algorithms ({', '.join(algorithms)}), got {control!r}.")
    if control is not None and goal != "all":
        raise ArgumentError(f"{named('control')} asks for all comparisons with it: leave {named('goal')} out.")
    return Schedule(maximum=maximum, planned=planned_sizes(looks, maximum), **facts)


def planned_sizes(looks: Any, maximum: int | None) -> tuple[int, ...]:
    """The numbers of units at the planned looks: every so many, or these."""
    end = () if maximum is None else (maximum,)
    if looks is None:
        return end
    if not several(looks):
        step = check_positive_int(looks, "looks")
        if maximum is None:
            raise ArgumentError(f"{named('looks')}={step} means every {step} up to {named('maximum')}: give that, too.")
        return (*range(max(step, 2), maximum, step), maximum)
    sizes = tuple(check_positive_int(n, "looks", minimum=2, maximum=maximum or 10**9) for n in looks)
    if not sizes or list(sizes) != sorted(set(sizes)):
        raise ArgumentError(f"{named('looks')} must ascend, got {', '.join(map(str, sizes)) or 'none'}.")
    return sizes if sizes[-1:] == end else (*sizes, *end)
