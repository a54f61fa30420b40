"""Choose on one half of the benchmarks, test on the other: p-values that do not know about the choice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest._result import Result, result
from lmemtest._validate import check_choice, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.formula import Bar
from lmemtest.inference.means.comparisons import Comparisons
from lmemtest.inference.means.contrasts import pairs
from lmemtest.inference.means.emmeans import emmeans
from lmemtest.studies.modelling.identify import refusal, unidentified
from lmemtest.words import p_text

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit
    from lmemtest.model.spec import ModelSpec

VALIDATIONS = ("half",)
FEWEST = 8  # benchmarks: four in each half, the least that shows how advantages differ between benchmarks
OPTIMISM = (
    "The data chose these terms, so p-values and intervals of the chosen model, taken from the same data, are too "
    "optimistic. Use validate='half' for a test on benchmarks that had no part in the choice, or take the model from "
    "the design (lmemtest.recommend)."
)

Halves = tuple[tuple[Any, ...], tuple[Any, ...]]


@result
class Holdout(Result):
    """The chosen model on benchmarks that had no part in choosing it.

    Attributes
    ----------
    chosen_on, tested_on : tuple
        Benchmarks.
    formula : str
        The model that was tested.
    fit : LmmFit
        By restricted maximum likelihood, on the benchmarks of `tested_on`.
    pairs : Comparisons
        All differences between algorithms there (Tukey's adjustment, Satterthwaite's degrees of freedom); the rows of
        ``to_frame()``.
    notes : tuple of str
    """

    chosen_on: tuple[Any, ...]
    tested_on: tuple[Any, ...]
    formula: str
    fit: LmmFit
    pairs: Comparisons
    notes: tuple[str, ...] = ()

    parts: ClassVar = {"pairs": "_rows"}

    @property
    def title(self) -> str:
        """What the table is about."""
        return "Algorithms on the benchmarks held out"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model."""
        return (f"Model: {self.formula}.",)

    def sentences(self) -> tuple[str, ...]:
        """What the other half says about the algorithms."""
        p = self._rows()["p_value"]
        known = p.dropna()
        least = f" (the smallest: {p_text(float(known.min()))})" if len(known) else ""
        return (
            f"The terms were chosen on {len(self.chosen_on)} benchmarks; on the other {len(self.tested_on)}, "
            f"{int((known < 0.05).sum())} of {len(p)} differences between algorithms have an adjusted p-value below "
            f"0.05{least}.",
        )

    def _rows(self) -> pd.DataFrame:
        return self.pairs.to_frame()


def split(runs: Runs, validate: str | None, rng: np.random.Generator) -> Halves | None:
    """The halves of the benchmarks, if asked for."""
    if validate is None:
        return None
    check_choice(validate, "validate", VALIDATIONS)
    return halves(runs, rng)


def optimism(held: Halves | None) -> tuple[str, ...]:
    """The warning that belongs to every model that data chose."""
    if held is None:
        return (OPTIMISM,)
    return (
        f"The terms were chosen on {len(held[0])} benchmarks: p-values from there, and those of fit() on all runs, are "
        "too optimistic, because the data chose the model. Those of holdout are not.",
    )


def halves(runs: Runs, rng: int | np.random.Generator | None) -> Halves:
    """The benchmarks in two random halves; the second has one more where their number is odd."""
    levels = () if runs.benchmark is None else runs.levels(runs.benchmark)
    if len(levels) < FEWEST:
        found = f"has {len(levels)} benchmark{'s' * (len(levels) != 1)}" if levels else "names no benchmarks"
        raise ArgumentError(
            f"validate='half' needs at least {FEWEST} benchmarks, four to choose the terms on and four to test them, "
            f"and this table {found}. Use validate=None and take the model from the design (lmemtest.recommend), or "
            "bring more benchmarks."
        )
    order = resolve_rng(rng).permutation(len(levels))
    first = len(levels) // 2
    return tuple(levels[i] for i in sorted(order[:first])), tuple(levels[i] for i in sorted(order[first:]))


def held_out(runs: Runs, held: Halves | None, spec: ModelSpec) -> Holdout | None:
    """The algorithms by a model on the benchmarks that did not choose it, without what they cannot identify.

    Advantages that differ between benchmarks belong to the design and not to the choice: ``(1 |
    benchmark:algorithm)`` is in the test even if the choice went without it.
    """
    if held is None:
        return None
    if runs.algorithm not in spec.fixed_columns:
        raise ArgumentError(
            "validate='half' tests the differences between algorithms, and the start has no term for them. Add it: "
            "builder.fixed('algorithm')."
        )
    others = runs.filter(**{str(runs.benchmark): list(held[1])})
    notes = []
    of_pair = Bar.of((str(runs.benchmark), runs.algorithm))
    if not spec.grouped_by(of_pair.groups) and not refusal(replace(spec, dispersion=None).with_term(of_pair), others):
        spec = spec.with_term(of_pair)
        notes.append(
            f"{of_pair} was not chosen and is in the test all the same: benchmarks are the sample, and without it "
            "rows would be."
        )
    gone = unidentified(spec, others)
    spec = spec.without(*gone)
    notes += [f"{part} is not identified on these benchmarks and was left out." for part in gone]
    fit = spec.fit(others)
    return Holdout(
        chosen_on=held[0],
        tested_on=held[1],
        formula=spec.formula,
        fit=fit,
        pairs=pairs(emmeans(fit, runs.algorithm)),
        notes=tuple(notes),
    )
