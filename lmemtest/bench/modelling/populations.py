"""The same comparison for new families of benchmarks and for new benchmarks of these families, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.bench.modelling.population import POPULATIONS
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.words import counted, joined
from lmemtest.errors import LmemtestError
from lmemtest.lmm.means.emmeans import emmeans

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.modelling.recommend import Recommendation
    from lmemtest.lmm.means.comparisons import Comparisons


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What the pairs are claims about, and the model behind them."""

    about: str
    formula: str


@result
class Populations(Result):
    """The decisions about all pairs for two populations.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair of algorithms: ``left``, ``right``; ``family_advantage`` and ``family_p_value`` for new
        families, ``benchmark_advantage`` and ``benchmark_p_value`` for new benchmarks of these families (advantages are
        positive where left is better, p-values adjusted); ``decision``: both significant ("both", "opposite"), one
        ("family only", "benchmark only"), "neither", or "not tested".
    claims : dict of str to Claims
        For "family" and "benchmark".
    alpha : float
        Level of the decisions, for each population for all pairs.
    """

    formats = {"family_p_value": "p", "benchmark_p_value": "p"}

    table: pd.DataFrame
    claims: Mapping[str, Claims]
    alpha: float

    def disagreements(self) -> pd.DataFrame:
        """The rows of pairs that are decided otherwise."""
        return self.table[self.table["decision"].isin(["opposite", "family only", "benchmark only"])]

    def count(self, population: str) -> int:
        """How many pairs differ significantly for a population."""
        return int(self.table["decision"].isin(["both", "opposite", f"{population} only"]).sum())

    def overview(self) -> str:
        """How many pairs differ significantly for each population."""
        n = int((self.table["decision"] != "not tested").sum())
        first, second = (self.claims[name].about for name in POPULATIONS)
        if self.disagreements().empty:
            both = self.count("family")
            if not both:
                none = "The pair does not differ" if n == 1 else f"None of {n:,} pairs differs"
                return f"{none} significantly, either for {first} or for {second}."
            return (
                f"For {first} and for {second} the same {both:,} of {counted(n, 'pair')} {_differ(both)} significantly."
            )
        wide = self.count("family")
        return (
            f"For {first} {wide:,} of {counted(n, 'pair')} {_differ(wide)} significantly, for {second} "
            f"{self.count('benchmark'):,}."
        )

    def sentences(self) -> tuple[str, ...]:
        """How many pairs differ for each population, and which differ for one only."""
        found = [self.overview()]
        for name in POPULATIONS:
            rows = self.table[self.table["decision"] == f"{name} only"]
            pairs = [f"{left} – {right}" for left, right in zip(rows["left"], rows["right"], strict=True)]
            if pairs:
                found.append(f"For {self.claims[name].about} only: {joined(pairs)}.")
        return tuple(found)

    @property
    def title(self) -> str:
        """Of the decisions."""
        return f"Decisions for {' and for '.join(self.claims[name].about for name in POPULATIONS)}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What is tested for each population."""
        models = [f"{name}: {claims.about}, by {claims.formula}." for name, claims in self.claims.items()]
        return (
            *models,
            f"Advantages are positive where left is better; p-values are adjusted for each population, and decisions "
            f"at alpha = {self.alpha:.3g}.",
        )


def _differ(count: int) -> str:
    return "differs" if count == 1 else "differ"


def populations_compared(
    runs: Runs,
    used: Recommendation,
    pairs: Comparisons,
    *,
    alpha: float,
    adjust: str | None,
    ddf: str,
    se: str | None = None,
) -> Populations | None:
    """The pairs of the recommended model beside those for the other population; None where there is no other one.

    Families that are too few to be taken for a sample are none.
    """
    families = runs.study.families
    if not families or used.population not in POPULATIONS:
        return None
    if used.population == "benchmark" and max(runs.study.count(*level) for level in families) < FEWEST_FAMILIES:
        return None
    other = next(name for name in POPULATIONS if name != used.population)
    try:
        model = recommend(runs, population=other, curves="model")
        means = emmeans(model.spec.fit(runs), runs.algorithm, ddf=ddf, level=1.0 - alpha)
        found = {used.population: pairs, other: means.pairs(adjust=adjust, se=se)}
    except LmemtestError:  # too few families, or a model that these runs do not identify
        return None
    claims = {used.population: used, other: model}
    tables = {name: found[name].to_frame() for name in POPULATIONS}
    sign = -1.0 if runs.direction == "minimize" else 1.0
    gap = {name: sign * table["estimate"].to_numpy(dtype=float) for name, table in tables.items()}
    p = {name: table["p_value"].to_numpy(dtype=float) for name, table in tables.items()}
    family, benchmark = (below(p[name], alpha) for name in POPULATIONS)
    decision = np.select(
        [
            np.isnan(p["family"] + p["benchmark"]),
            family & benchmark & (gap["family"] * gap["benchmark"] > 0),
            family & benchmark,
            family,
            benchmark,
        ],
        ["not tested", "both", "opposite", "family only", "benchmark only"],
        "neither",
    )
    columns = {f"{name}_{what}": of[name] for name in POPULATIONS for what, of in (("advantage", gap), ("p_value", p))}
    return Populations(
        table=tables["family"][["left", "right"]].assign(**columns, decision=decision.astype(object)),
        claims={name: Claims(about=claims[name].claim, formula=claims[name].formula) for name in POPULATIONS},
        alpha=alpha,
    )
