"""Planned studies of families: the standard error that a pilot predicts over the one that is observed.

`python tests/simulation/test_family_planning.py [TABLES]` prints the table of docs/validation.md.
"""

from __future__ import annotations

import math
import sys
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.bench.power.components import VarianceComponents
from lmemtest.bench.power.draw import StudyDesign

pytestmark = pytest.mark.level(3)
TRUTH = VarianceComponents(
    interaction_sd=1.0, residual_sd=1.0, family_interaction_sd=0.7, family_sd=1.0, benchmark_sd=1.0
)
K, SEEDS = 3, 2
FORMULA = "score ~ tool + (1 | space) + (1 | space:tool) + (1 | task) + (1 | task:tool) + (1 | task:seed)"


class Found(NamedTuple):
    """Of all tables of one design."""

    observed: float  # standard deviation of the differences of two equal algorithms
    known: float  # their standard error from the true components
    predicted: np.ndarray  # the same from those of each table
    covered: float  # share of the tables whose interval of it holds the one from the true components


def simulated(families: int, unequal: bool, tables: int, rng: np.random.Generator) -> Found:
    """Tables of families of 4 benchmarks, or of 1 to 10."""
    sizes = np.round(np.geomspace(1, 10, families)).astype(int) if unequal else np.full(families, 4)
    family = np.repeat(np.arange(families), sizes)
    n, each = len(family), len(family) / families
    known = math.sqrt(TRUTH.of_difference(SEEDS, each) / families)
    index = [i.ravel() for i in np.indices((n, K, SEEDS))]
    labels = {"space": family[index[0]], "task": index[0], "tool": np.array(list("ABC"))[index[1]], "seed": index[2]}
    frame = pd.DataFrame({name: [f"{name}{value}" for value in values] for name, values in labels.items()})
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "family": "space", "seed_shared": False}
    differences, predicted, covered = [], [], 0
    for _ in range(tables):
        level = rng.normal(size=(families, 1))[family] + rng.normal(size=(n, 1))
        own = 0.7 * rng.normal(size=(families, K))[family] + rng.normal(size=(n, K))
        frame["score"] = ((level + own)[:, :, None] + rng.normal(size=(n, K, SEEDS))).ravel()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = lt.fit_lmm(FORMULA, lt.Runs(frame, score="score", direction="minimize", **roles))
        components = VarianceComponents.of(fit)
        design = StudyDesign(n_algorithms=2, n_families=families, n_benchmarks=4, n_seeds=SEEDS)
        differences.append(float(fit.estimate(np.array([[0.0, 1.0, 0.0]]))[0]))
        predicted.append(math.sqrt(components.of_difference(SEEDS, each) / families))
        if not unequal:
            assert predicted[-1] == pytest.approx(design.se(components))
        low, high = (math.sqrt(2.0 * v / families) for v in components.limits(SEEDS, 0.05, each))
        covered += low <= known <= high
    return Found(float(np.std(differences, ddof=1)), known, np.array(predicted), covered / tables)


@pytest.mark.parametrize("families", [8, 16])
def test_a_pilot_of_families_predicts_the_standard_error_that_is_observed(families: int) -> None:
    tables = 200
    found = simulated(families, unequal=False, tables=tables, rng=np.random.default_rng(families))
    error = 1.0 / math.sqrt(2.0 * tables)  # of an observed standard deviation, relative
    assert abs(found.known / found.observed - 1.0) < 4.0 * error
    own = math.sqrt(0.5 / ((K - 1) * (families - 1) * tables))  # of the mean of predicted ones, relative
    assert abs(np.sqrt(np.mean(found.predicted**2)) / found.known - 1.0) < 4.0 * own
    assert found.covered > 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / tables)


def main(tables: int) -> None:
    for families in (8, 16):
        for unequal in (False, True):
            found = simulated(families, unequal, tables, np.random.default_rng(families))
            ratio = found.predicted / found.observed
            print(
                f"{families} families of {'1 to 10' if unequal else '4'}: true components {found.known:.3f} over "
                f"observed {found.observed:.3f} = {found.known / found.observed:.3f}; pilots: root mean square "
                f"{math.sqrt(np.mean(ratio**2)):.3f}, 5 % {np.quantile(ratio, 0.05):.2f}, 95 % "
                f"{np.quantile(ratio, 0.95):.2f}; intervals hold it in {found.covered:.1%}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
