"""Choose on one half of the benchmarks, test on the other: p-values that do not know about the choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import ResultTable, Tabular
from lmemtest._validate import resolve_rng
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.formula import parse_bar, parse_formula, parse_term
from lmemtest.formula.tokens import quote_name
from lmemtest.inference.means.comparisons import Comparisons
from lmemtest.inference.means.contrasts import pairs
from lmemtest.inference.means.emmeans import emmeans
from lmemtest.model import fit_lmm
from lmemtest.studies.modelling.identify import check_identified
from lmemtest.studies.modelling.menu import intercept
from lmemtest.words import format_p

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

VALIDATIONS = ("half",)
FEWEST = 8  # benchmarks: four in each half, the least that shows how advantages differ between benchmarks


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class Holdout(Tabular):
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
        All differences between algorithms there (Tukey's adjustment, Satterthwaite's degrees of freedom).
    notes : tuple of str
    """

    chosen_on: tuple[Any, ...]
    tested_on: tuple[Any, ...]
    formula: str
    fit: LmmFit
    pairs: Comparisons
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of algorithms, as `Comparisons.to_frame`."""
        return self.pairs.to_frame()

    @property
    def sentence(self) -> str:
        """What the other half says about the algorithms."""
        table = self.to_frame()
        known = table["p_value"].dropna()
        head = (
            f"The terms were chosen on {len(self.chosen_on)} benchmarks; on the other {len(self.tested_on)}, "
            f"{int((known < 0.05).sum())} of {len(table)} differences between algorithms have an adjusted p-value "
            "below 0.05"
        )
        return head + (f" (the smallest is {format_p(float(known.min()))})." if len(known) else ".")

    def to_table(self) -> ResultTable:
        """The result as a table."""
        notes = (self.sentence, f"Model: {self.formula}.", *self.notes)
        return ResultTable("Algorithms on the benchmarks held out", self.to_frame(), notes=notes)


def halves(runs: Runs, rng: int | np.random.Generator | None) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
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


def held_out(
    runs: Runs,
    held: tuple[tuple[Any, ...], tuple[Any, ...]],
    terms: tuple[str, ...],
    bars: tuple[str, ...],
    residual: str | None,
) -> Holdout:
    """The algorithms on the benchmarks that did not choose."""
    others = runs.filter(**{str(runs.benchmark): list(held[1])})
    formula, fit, differences, notes = refitted_on(others, terms, bars, residual)
    return Holdout(chosen_on=held[0], tested_on=held[1], formula=formula, fit=fit, pairs=differences, notes=notes)


def refitted_on(runs: Runs, terms: tuple[str, ...], bars: tuple[str, ...], residual_by: str | None) -> tuple[Any, ...]:
    """Fit a model to the benchmarks held out, without what they cannot identify.

    Advantages that differ between benchmarks belong to the design and not to the choice: ``(1 |
    benchmark:algorithm)`` is in the test even if the choice went without it.

    Returns
    -------
    tuple
        Formula, fit, pairs, notes.
    """
    notes: list[str] = []
    if not any(runs.algorithm in parse_term(label).columns for label in terms):
        raise ArgumentError(
            "validate='half' tests the differences between algorithms, and the start has no term for them. Add it: "
            "builder.fixed('algorithm')."
        )
    response = quote_name(runs.score)
    groups = [set(parse_bar(text).groups) for text in bars]
    of_pair = intercept(str(runs.benchmark), runs.algorithm)
    if set(of_pair.groups) not in groups and _fits(runs, terms, (*bars, of_pair.text)):
        bars = (*bars, of_pair.text)
        notes.append(
            f"{of_pair.text} was not chosen and is in the test all the same: benchmarks are the sample, and without "
            "it rows would be."
        )
    for text in [*reversed(bars), *reversed(terms)]:
        if _fits(runs, terms, bars):
            break
        terms, bars = tuple(t for t in terms if t != text), tuple(b for b in bars if b != text)
        notes.append(f"{text} is not identified on these benchmarks and was left out.")
    formula = f"{response} ~ {' + '.join([*(terms or ('1',)), *bars])}"
    fit = fit_lmm(formula, runs, dispersion=residual_by)
    return formula, fit, pairs(emmeans(fit, runs.algorithm)), tuple(notes)


def _fits(runs: Runs, terms: tuple[str, ...], bars: tuple[str, ...]) -> bool:
    try:
        check_identified(parse_formula(f"{quote_name(runs.score)} ~ {' + '.join([*(terms or ('1',)), *bars])}"), runs)
    except DesignError:
        return False
    return True
