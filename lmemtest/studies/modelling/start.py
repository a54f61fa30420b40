"""Where a selection starts, what it may choose from, and what belongs to every model that data chose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lmemtest._validate import check_choice
from lmemtest.data.runs import Runs, require_runs
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.studies.modelling.builder import ModelBuilder, assemble
from lmemtest.studies.modelling.holdout import VALIDATIONS, halves
from lmemtest.studies.modelling.menu import Family, candidates_of
from lmemtest.studies.modelling.reading import as_factor
from lmemtest.studies.modelling.recommend import relative_to
from lmemtest.words import listed

CRITERIA = ("glrt", "aic", "bic")
SAMPLE_SIZES = ("rows", "benchmarks")
# Models whose criteria differ by less are equally good: the optimiser's last digits do not choose.
TIE = 1e-6
OPTIMISM = (
    "The data chose these terms, so p-values and intervals of the chosen model, taken from the same data, are too "
    "optimistic. Use validate='half' for a test on benchmarks that had no part in the choice, or take the model from "
    "the design (lmemtest.recommend)."
)


def start_of(runs_or_builder: Runs | ModelBuilder) -> ModelBuilder:
    """The model to begin with: benchmarks are a sample, or fixed where scores are relative to them (ranks).

    A variance of benchmarks that ranks cannot have would be zero in every model.
    """
    if isinstance(runs_or_builder, ModelBuilder):
        return runs_or_builder
    require_runs(runs_or_builder)
    builder = ModelBuilder(runs_or_builder)
    if runs_or_builder.benchmark is None:
        return builder
    if blocks := relative_to(runs_or_builder):
        return builder.fixed(" * ".join(as_factor(runs_or_builder, column) for column in blocks))
    try:
        return builder.random("`" + runs_or_builder.benchmark.replace("`", "``") + "`")
    except DesignError:  # one benchmark, or one row of each
        return builder


def family_of(start: ModelBuilder, candidates: Iterable[str] | None) -> Family:
    """The models to choose from, at least two."""
    offer = candidates_of(start.runs, candidates)
    family = Family(start, offer.candidates, offer.left_out)
    if family.offered:
        return family
    if candidates is None:
        raise ArgumentError(
            f"there is nothing to choose from: the roles of the table (algorithm, benchmark, seed, budget, "
            f"metafeatures) suggest no term that {start.formula()} lacks. Name columns or terms in candidates, or give "
            f"the table its metafeatures: Runs(..., metafeatures=[...]). Columns: {listed(start.runs.columns)}."
        )
    stranded = [f"{text} needs {missing}" for text, missing in family.stranded.items()]
    why = f" ({'; '.join(stranded)})" if stranded else ""
    raise ArgumentError(
        f"candidates must name at least one term that the start {start.formula()} lacks and can take{why}, got "
        f"{candidates!r}. Begin with a builder that has what they need, or leave candidates out."
    )


def on(family: Family, runs: Runs) -> Family:
    """The same family on a part of the runs."""
    start = family.start
    if runs is start.runs:
        return family
    part = assemble(runs, start.terms, start.bars, start.residual_by)
    return Family(part, family.candidates, family.left_out)


def split(
    runs: Runs, validate: str | None, generator: np.random.Generator
) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """The halves of the benchmarks, if asked for."""
    if validate is None:
        return None
    check_choice(validate, "validate", VALIDATIONS)
    return halves(runs, generator)


def optimism(held: tuple[tuple[Any, ...], tuple[Any, ...]] | None) -> tuple[str, ...]:
    """The warning that belongs to every model that data chose."""
    if held is None:
        return (OPTIMISM,)
    return (
        f"The terms were chosen on {len(held[0])} benchmarks: p-values from there, and those of fit() on all runs, are "
        "too optimistic, because the data chose the model. Those of holdout are not.",
    )


def benchmarks_of(runs: Runs) -> int:
    return 0 if runs.benchmark is None else len(runs.levels(runs.benchmark))


def sample_size(runs: Runs, n_obs: str) -> int:
    """What BIC takes the logarithm of."""
    if n_obs == "rows":
        return runs.n_rows
    count = benchmarks_of(runs)
    if count < 2:
        raise ArgumentError(
            f"n_obs='benchmarks' needs at least two benchmarks, and there {'is one' if count else 'are none'}. Use "
            "n_obs='rows'."
        )
    return count


def left_out(family: Family) -> tuple[str, ...]:
    return tuple(f"Not tried: {text} ({why})." for text, why in family.left_out)
