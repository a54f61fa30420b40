"""The result of `power`: a table of designs, and what follows from it for planning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest._options import ADJUSTMENT_NAMES
from lmemtest._result import Result, result
from lmemtest._rounding import written
from lmemtest._validate import check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.inference.power.closed_form import (
    MOST_BENCHMARKS,
    Operating,
    operating,
    smallest_count,
    smallest_effect,
)
from lmemtest.inference.power.components import VarianceComponents
from lmemtest.inference.power.draw import StudyDesign
from lmemtest.words import counted, listed, percent

if TYPE_CHECKING:
    import pandas as pd

USUAL_POWER = 0.8
LEVEL = 0.95  # of the intervals for the simulation's own error, and for what a pilot determines


@result
class PlanTable(Result):
    """Answers to one planning question, one row per design.

    Attributes
    ----------
    heading : str
        What the table answers.
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    notes : tuple of str
        How the numbers were made and what they leave out.
    """

    heading: str
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """One line above the table."""
        return self.heading


@result
class PowerResult(Result):
    """Power of a comparison of two algorithms over numbers of benchmarks and seeds.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per design:
        n_benchmarks, n_seeds, effect, power (share of significant results, of either sign), ci_low, ci_high
        (95 %, Clopper-Pearson, the simulation's own error; NaN for the closed form), type_s (share of them with
        the wrong sign), type_m (their mean absolute estimate over the effect), exact, exact_type_s, exact_type_m
        (closed form), no_interaction (share of the studies whose interaction is estimated as zero), n_failed
        (studies that could not be analysed; counted as not significant).
    components : VarianceComponents
        What was planned with.
    effect : float
        The true difference of the two algorithms, on the score's scale.
    n_algorithms : int
        Algorithms in the study; all pairs of them are compared.
    alpha : float
        Level of the family of comparisons.
    adjust : str
        Adjustment for their number.
    test : {"mixed", "means"}
        Analysis of the study.
    ddf : {"satterthwaite", "kenward-roger"}
        Degrees of freedom of the mixed model.
    method : {"simulation", "closed_form"}
        Where power, type_s and type_m come from.
    n_draws : int
        Simulated studies per design; 0 for the closed form.
    notes : tuple of str
        What a reader must know.
    """

    formats = {
        **dict.fromkeys(("power", "ci_low", "ci_high", "exact", "no_interaction"), ".3f"),
        "type_s": ".4f",
        "exact_type_s": ".4f",
        "type_m": ".2f",
        "exact_type_m": ".2f",
    }
    figure = "power_plot"

    table: pd.DataFrame
    components: VarianceComponents
    effect: float
    n_algorithms: int
    alpha: float
    adjust: str
    test: str
    ddf: str
    method: str
    n_draws: int
    notes: tuple[str, ...] = ()

    def needed(self, power: float = USUAL_POWER) -> PlanTable:
        """The fewest benchmarks with which a difference of `effect` is found with a given power.

        Parameters
        ----------
        power : float in (alpha, 1)

        Returns
        -------
        PlanTable
            One row per number of seeds: n_seeds, n_benchmarks (closed form, also beyond the designs of this result;
            missing if a million are too few), exact (the power there), reached_at (the fewest among the designs of
            this result by its `power`; missing if none reaches it), ci_low and ci_high (n_benchmarks at the ends of the
            95 % interval of the variance; missing unless the components come from a pilot study).

        Raises
        ------
        ArgumentError
            If the effect is zero, or the power is not above alpha.
        """
        import pandas as pd

        power = self._checked_power(power)
        rows = [self._needed_row(int(n), power) for n in dict.fromkeys(self.table["n_seeds"])]
        table = pd.DataFrame(rows)
        whole = ["n_benchmarks", "reached_at", "ci_low", "ci_high"]
        table[whole] = table[whole].astype("Int64")
        fewest = self._benchmarks_at(self.components.interaction_sd**2, 1, power)
        notes = [f"{self._test_in_words()}; {percent(power)} power."]
        notes.append(
            f"No number of seeds makes fewer than {fewest:,} benchmarks enough."
            if fewest is not None
            else f"Not even {MOST_BENCHMARKS:,} benchmarks are enough."
        )
        unreached = [str(row["n_seeds"]) for row in rows if row["reached_at"] is None]
        if unreached:
            notes.append(
                f"With {listed(unreached)} seeds no design of this result reaches {percent(power)}; n_benchmarks is "
                "from the closed form."
            )
        if self.components.pilot is not None:
            notes.append("ci_low and ci_high: what the variance could be, by the size of the pilot study (95 %).")
        title = f"Benchmarks needed to find a difference of {self.effect:g}"
        return PlanTable(heading=title, table=table, notes=tuple(notes))

    def detectable(self, power: float = USUAL_POWER) -> PlanTable:
        """The smallest difference that each design finds with a given power (closed form).

        Parameters
        ----------
        power : float in (alpha, 1)

        Returns
        -------
        PlanTable
            n_benchmarks, n_seeds, effect, ci_low, ci_high (at the ends of the 95 % interval of the variance;
            NaN unless the components come from a pilot study).
        """
        import pandas as pd

        power = self._checked_power(power, effect_matters=False)
        rows = []
        for b, n in zip(self.table["n_benchmarks"], self.table["n_seeds"], strict=True):
            design = self._design(int(b), int(n))
            critical = design.critical(self.alpha, self.adjust)
            unit = smallest_effect(power, 1.0, design.df, critical)
            v, (low, high) = self.components.of_mean(int(n)), self.components.limits(int(n), LEVEL)
            found = [unit * math.sqrt(2.0 * value / int(b)) for value in (v, low, high)]
            rows.append((int(b), int(n), *found))
        table = pd.DataFrame(rows, columns=["n_benchmarks", "n_seeds", "effect", "ci_low", "ci_high"])
        notes = (f"{self._test_in_words()}; {percent(power)} power.",)
        return PlanTable(heading="Smallest difference that is found", table=table, notes=notes)

    def sentences(self) -> tuple[str, ...]:
        """The answer in words, for 80 % power."""
        first = self.table.iloc[0]
        if self.effect == 0:
            return (
                f"Without a difference, two algorithms differ significantly in {percent(float(first['power']))} of "
                f"the studies with {size_in_words(first)}.",
            )
        needed = self.needed().to_frame()
        known = needed.dropna(subset="n_benchmarks")
        if known.empty:
            answer = f"cannot be reached with {MOST_BENCHMARKS:,} benchmarks"
        else:
            parts = [
                f"{row.n_benchmarks:,} benchmarks with {counted(int(row.n_seeds), 'seed')} each"
                for row in known.itertuples()
            ]
            answer = f"takes {either(parts)}"
        weakest = self.table.iloc[int(self.table["power"].argmin())]
        found = [f"To find a difference of {self.effect:g} with {percent(USUAL_POWER)} power {answer}."]
        if weakest["power"] < USUAL_POWER and np.isfinite(weakest["exact_type_m"]):
            chance, size = percent(float(weakest["power"])), weakest["exact_type_m"]
            found.append(
                f"With {size_in_words(weakest)} the power is {chance}, and a significant result overstates the "
                f"difference {written(size, '.2g')} times on average and has the wrong sign in "
                f"{percent(float(weakest['exact_type_s']))} of the cases."
            )
        return tuple(found)

    @property
    def title(self) -> str:
        """One line above the table."""
        return f"Power to find a difference of {self.effect:g}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The planned analysis, where the numbers come from, and what they were planned with."""
        how = "Closed form of the test on means."
        if self.method == "simulation":
            how = (
                f"{self.n_draws:,} simulated studies per design, 95 % intervals for the simulation's own error; exact: "
                "closed form of the test on means."
            )
        names = ("interaction_sd", "residual_sd", "seed_sd")
        sds = ", ".join(f"{name} {written(getattr(self.components, name), '.4g')}" for name in names)
        return f"{self._test_in_words()}.", how, f"Planned with {sds}."

    def shown(self) -> pd.DataFrame:
        """The columns that differ."""
        if self.method == "closed_form":
            return self.table[["n_benchmarks", "n_seeds", "effect", "power", "type_s", "type_m"]]
        return self.table.drop(columns="no_interaction") if self.test == "means" else self.table

    # -- parts ----------------------------------------------------------------------------------------------------

    def _test_in_words(self) -> str:
        analysis = (
            f"mixed model (REML, {'Satterthwaite' if self.ddf == 'satterthwaite' else 'Kenward-Roger'} df)"
            if self.test == "mixed"
            else "analysis of variance of means on benchmarks"
        )
        level = f"two-sided alpha = {self.alpha:g}"
        if self.n_algorithms == 2:
            return f"Two algorithms, {analysis}, {level}"
        adjustment = f"{ADJUSTMENT_NAMES[self.adjust]} adjustment for all pairs"
        return f"Two of {self.n_algorithms} algorithms, {analysis}, {level} with {adjustment}"

    def _design(self, n_benchmarks: int, n_seeds: int) -> StudyDesign:
        return StudyDesign(n_algorithms=self.n_algorithms, n_benchmarks=n_benchmarks, n_seeds=n_seeds)

    def _checked_power(self, power: Any, *, effect_matters: bool = True) -> float:
        power = check_fraction(power, "power")
        if effect_matters and self.effect == 0:
            raise ArgumentError(
                "effect is 0, and no number of benchmarks finds a difference that is not there. Plan with the smallest "
                "difference that would matter: power(..., effect=...)."
            )
        if power <= self.alpha:
            raise ArgumentError(
                f"power must be above alpha = {self.alpha:g}, which a test reaches without any effect, got {power:g}."
            )
        return power

    def _needed_row(self, n_seeds: int, power: float) -> dict[str, Any]:
        v, (low, high) = self.components.of_mean(n_seeds), self.components.limits(n_seeds, LEVEL)
        count, at_low, at_high = (self._benchmarks_at(value, n_seeds, power) for value in (v, low, high))
        reached = self.table[(self.table["n_seeds"] == n_seeds) & (self.table["power"] >= power)]["n_benchmarks"]
        exact = math.nan if count is None else self._exact_at(v, self._design(count, n_seeds)).power
        return {
            "n_seeds": n_seeds,
            "n_benchmarks": count,
            "exact": exact,
            "reached_at": int(reached.min()) if len(reached) else None,
            "ci_low": at_low,
            "ci_high": at_high,
        }

    def _benchmarks_at(self, v: float, n_seeds: int, power: float) -> int | None:
        """Fewest benchmarks where a mean of one algorithm on one benchmark varies by ``v``."""
        if math.isnan(v):
            return None
        return smallest_count(
            lambda b: self._exact_at(v, self._design(b, n_seeds)).power >= power,
            first=2,
            guess=self._guessed_benchmarks(v, power),
        )

    def _guessed_benchmarks(self, v: float, power: float) -> int:
        """By the normal distribution, with the usual correction for an estimated variance: off by one or two."""
        critical = self._design(2, 1).critical(self.alpha, self.adjust, math.inf)
        known = 2.0 * v * ((critical + float(special.ndtri(power))) / self.effect) ** 2
        return math.ceil(min(known, MOST_BENCHMARKS) + 0.5 * critical**2 / (self.n_algorithms - 1))

    def _exact_at(self, v: float, design: StudyDesign) -> Operating:
        if v == 0.0:
            return Operating(power=1.0, type_s=0.0, type_m=1.0)
        se = math.sqrt(2.0 * v / design.n_benchmarks)
        return operating(self.effect, se, design.df, design.critical(self.alpha, self.adjust))


# ---------------------------------------------------------------------- words


def size_in_words(row: Any) -> str:
    """The size of a design."""
    return f"{int(row['n_benchmarks']):,} benchmarks and {counted(int(row['n_seeds']), 'seed')}"


def count_in_words(n: Any) -> str:
    """A number of benchmarks that may be missing."""
    import pandas as pd

    return f"more than {MOST_BENCHMARKS:,}" if pd.isna(n) else f"{int(n):,}"


def either(parts: Sequence[str]) -> str:
    """A list with "or" before its last part."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
