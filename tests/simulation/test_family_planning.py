"""Planned studies of families: the standard error that a pilot predicts over the one that is observed.

`python tests/simulation/test_family_planning.py [TABLES]` prints the table of docs/developers/validation.md.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from harness import answers_of, printed
from study import runs_of_scores

import lmemtest as lt
from lmemtest.bench.power.draw import StudyDesign
from lmemtest.bench.power.variance_components import VarianceComponents

TRUTH = VarianceComponents(
    interaction_sd=1.0, residual_sd=1.0, family_interaction_sd=0.7, family_sd=1.0, benchmark_sd=1.0
)
K, SEEDS = 3, 2
FORMULA = (
    "score ~ algorithm + (1 | family) + (1 | family:algorithm) + (1 | benchmark) + (1 | benchmark:algorithm)"
    " + (1 | benchmark:seed)"
)


def simulated(families: int, unequal: bool, tables: int) -> tuple[float, float, np.ndarray, float]:
    """Of tables of families of 4 benchmarks, or of 1 to 10.

    Observed standard deviation of the differences of two equal algorithms; their standard error from the true
    components; that from the components of each table; share of the tables whose interval of it holds the true one.
    """
    sizes = np.round(np.geomspace(1, 10, families)).astype(int) if unequal else np.full(families, 4)
    family = np.repeat(np.arange(families), sizes)
    n, average = len(family), len(family) / families
    known = math.sqrt(TRUTH.of_difference(SEEDS, average) / families)

    def study(rng: np.random.Generator) -> tuple[float, float, bool]:
        level = rng.normal(size=(families, 1))[family] + rng.normal(size=(n, 1))
        own = 0.7 * rng.normal(size=(families, K))[family] + rng.normal(size=(n, K))
        scores = (level + own)[:, :, None] + rng.normal(size=(n, K, SEEDS))
        fit = lt.fit_lmm(FORMULA, runs_of_scores(scores, family=family[:, None, None], seed_shared=False))
        components = VarianceComponents.of(fit)
        predicted = math.sqrt(components.of_difference(SEEDS, average) / families)
        if not unequal:
            design = StudyDesign(n_algorithms=2, n_families=families, n_benchmarks=4, n_seeds=SEEDS)
            assert predicted == pytest.approx(design.se(components))
        low, high = (math.sqrt(2.0 * v / families) for v in components.limits(SEEDS, 0.05, average))
        return float(fit.estimate(np.array([[0.0, 1.0, 0.0]]))[0]), predicted, low <= known <= high

    difference, predicted, holds = np.transpose(answers_of(study, tables, families))
    return float(np.std(difference, ddof=1)), known, predicted, float(holds.mean())


@pytest.mark.parametrize("families", [8, 16])
def test_a_pilot_of_families_predicts_the_standard_error_that_is_observed(families: int) -> None:
    tables = 200
    observed, known, predicted, covered = simulated(families, False, tables)
    error = 1.0 / math.sqrt(2.0 * tables)  # of an observed standard deviation, relative
    assert abs(known / observed - 1.0) < 4.0 * error
    own = math.sqrt(0.5 / ((K - 1) * (families - 1) * tables))  # of the mean of predicted ones, relative
    assert abs(np.sqrt(np.mean(predicted**2)) / known - 1.0) < 4.0 * own
    assert covered > 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / tables)


def ratios(families: int, unequal: bool, tables: int) -> dict[str, float]:
    observed, known, predicted, covered = simulated(families, unequal, tables)
    ratio = predicted / observed
    limits = {f"{100 * q:.0f} % of pilots": np.quantile(ratio, q) for q in (0.05, 0.95)}
    return {"true / observed": known / observed, "pilots": math.sqrt(np.mean(ratio**2)), **limits, "hold": covered}


if __name__ == "__main__":
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    printed(ratios, [(families, unequal, tables) for families in (8, 16) for unequal in (False, True)])
