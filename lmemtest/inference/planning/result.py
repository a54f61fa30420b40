"""The result of `power`: a table of designs, and what follows from it for planning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._validate import check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.inference.means.adjust import ADJUSTMENT_NAMES
from lmemtest.inference.planning.closed_form import (
    MOST_BENCHMARKS,
    Operating,
    operating,
    smallest_count,
    smallest_effect,
)
from lmemtest.inference.planning.components import VarianceComponents
from lmemtest.inference.planning.study import StudyDesign
from lmemtest.words import listed, percent

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest._table import ResultTable

USUAL_POWER = 0.8
LEVEL = 0.95  # of the intervals for the simulation's own error, and for what a pilot determines


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class PlanTable(Tabular):
    """Answers to one planning question, one row per design.

    Attributes
    ----------
    title : str
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    notes : tuple of str
        How the numbers were made and what they leave out.
    """

    title: str
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """The rows."""
        return self.table.copy()

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        return ResultTable(title=self.title, frame=self.to_frame(), notes=self.notes)


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class PowerResult(Tabular):
    """Power of a comparison of two algorithms over numbers of benchmarks and seeds.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
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
    n_sim : int
        Simulated studies per design; 0 for the closed form.
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    components: VarianceComponents
    effect: float
    n_algorithms: int
    alpha: float
    adjust: str
    test: str
    ddf: str
    method: str
    n_sim: int
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per design.

        Returns
        -------
        pandas.DataFrame
            n_benchmarks, n_seeds, effect, power (share of significant results, of either sign), ci_low, ci_high
            (95 %, Clopper-Pearson, the simulation's own error; NaN for the closed form), type_s (share of them with
            the wrong sign), type_m (their mean absolute estimate over the effect), exact, exact_type_s, exact_type_m
            (closed form), no_interaction (share of the studies whose interaction is estimated as zero), n_failed
            (studies that could not be analysed; counted as not significant).
        """
        return self.table.copy()

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
            this result by its `power`; missing if none reaches it), n_low and n_high (n_benchmarks at the ends of the
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
        whole = ["n_benchmarks", "reached_at", "n_low", "n_high"]
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
            notes.append("n_low and n_high: what the variance could be, by the size of the pilot study (95 %).")
        title = f"Benchmarks needed to find a difference of {self.effect:g}"
        return PlanTable(title=title, table=table, notes=tuple(notes))

    def detectable(self, power: float = USUAL_POWER) -> PlanTable:
        """The smallest difference that each design finds with a given power (closed form).

        Parameters
        ----------
        power : float in (alpha, 1)

        Returns
        -------
        PlanTable
            n_benchmarks, n_seeds, effect, effect_low, effect_high (at the ends of the 95 % interval of the variance;
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
        table = pd.DataFrame(rows, columns=["n_benchmarks", "n_seeds", "effect", "effect_low", "effect_high"])
        notes = (f"{self._test_in_words()}; {percent(power)} power.",)
        return PlanTable(title="Smallest difference that is found", table=table, notes=notes)

    @property
    def sentence(self) -> str:
        """The answer in words, for 80 % power."""
        first = self.table.iloc[0]
        if self.effect == 0:
            return (
                f"Without a difference, two algorithms differ significantly in {percent(float(first['power']))} of "
                f"the studies with {size_in_words(first)}."
            )
        needed = self.needed().to_frame()
        known = needed.dropna(subset="n_benchmarks")
        if known.empty:
            answer = f"cannot be reached with {MOST_BENCHMARKS:,} benchmarks"
        else:
            parts = [
                f"{row.n_benchmarks:,} benchmarks with {seeds_in_words(row.n_seeds)} each" for row in known.itertuples()
            ]
            answer = f"takes {either(parts)}"
        weakest = self.table.iloc[int(self.table["power"].argmin())]
        text = f"To find a difference of {self.effect:g} with {percent(USUAL_POWER)} power {answer}."
        if weakest["power"] < USUAL_POWER and np.isfinite(weakest["exact_type_m"]):
            chance, size = percent(float(weakest["power"])), weakest["exact_type_m"]
            text += (
                f" With {size_in_words(weakest)} the power is {chance}, and a significant result overstates the "
                f"difference {written(size, '.2g')} times on average and has the wrong sign in "
                f"{percent(float(weakest['exact_type_s']))} of the cases."
            )
        return text

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        how = (
            f"{self.n_sim:,} simulated studies per design, 95 % intervals for the simulation's own error; exact: "
            "closed form of the test on means."
            if self.method == "simulation"
            else "Closed form of the test on means."
        )
        sds = ", ".join(f"{name} {written(value, '.4g')}" for name, value in self._sds())
        facts = (f"{self._test_in_words()}.", how, f"Planned with {sds}.", self.sentence)
        share = dict.fromkeys(("power", "ci_low", "ci_high", "exact", "no_interaction"), ".3f")
        formats = share | {"type_s": ".4f", "exact_type_s": ".4f", "type_m": ".2f", "exact_type_m": ".2f"}
        frame = self.to_frame()
        if self.method == "closed_form":
            frame = frame[["n_benchmarks", "n_seeds", "effect", "power", "type_s", "type_m"]]
        elif self.test == "means":
            frame = frame.drop(columns="no_interaction")
        title = f"Power to find a difference of {self.effect:g}"
        return ResultTable(title=title, frame=frame, notes=facts + self.notes, formats=formats)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _sds(self) -> list[tuple[str, float]]:
        c = self.components
        return [("interaction_sd", c.interaction_sd), ("residual_sd", c.residual_sd), ("seed_sd", c.seed_sd)]

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
            "n_low": at_low,
            "n_high": at_high,
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
    return f"{int(row['n_benchmarks']):,} benchmarks and {seeds_in_words(row['n_seeds'])}"


def seeds_in_words(n: Any) -> str:
    """A number of seeds with its noun."""
    return f"{int(n):,} seed{'s' * (int(n) > 1)}"


def count_in_words(n: Any) -> str:
    """A number of benchmarks that may be missing."""
    import pandas as pd

    return f"more than {MOST_BENCHMARKS:,}" if pd.isna(n) else f"{int(n):,}"


def either(parts: Sequence[str]) -> str:
    """A list with "or" before its last part."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
