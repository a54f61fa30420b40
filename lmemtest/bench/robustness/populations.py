"""The same comparison for new families of benchmarks and for new benchmarks of these families."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.modelling.recommend import POPULATIONS, recommend
from lmemtest.bench.robustness.variants import Variants, side_by_side
from lmemtest.errors import DesignError, LmemtestError
from lmemtest.lmm.means.emmeans import emmeans

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.lmm.means.comparisons import Comparisons

__all__ = ["by_populations", "populations_compared"]


def by_populations(runs: Runs, alpha: float) -> Variants:
    """The pairs of the recommended model for new families and for new benchmarks of these families.

    Raises
    ------
    DesignError
        If there are no families, too few, or one of the models is not identified.
    """
    used = recommend(runs, curves="model")
    pairs = emmeans(used.spec.fit(runs), runs.algorithm, alpha=alpha).pairs()
    found = populations_compared(runs, used, pairs, alpha=alpha, adjust=None, ddf="satterthwaite")
    if found is None:
        raise DesignError(
            "of='population' compares claims about new families and about new benchmarks of these, and the runs have "
            f"no families, fewer than {FEWEST_FAMILIES}, or too few benchmarks in them for one of the two models. Name "
            "them: Runs(..., family=...)."
        )
    return found


def populations_compared(
    runs: Runs,
    used: Answer,
    pairs: Comparisons,
    *,
    alpha: float,
    adjust: str | None,
    ddf: str,
    se: str | None = None,
) -> Variants | None:
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
        means = emmeans(model.spec.fit(runs), runs.algorithm, ddf=ddf, alpha=alpha)
        compared = {used.population: pairs, other: means.pairs(adjust=adjust, se=se)}
    except LmemtestError:  # too few families, or a model that these runs do not identify
        return None
    models = {used.population: used, other: model}
    claims = {name: models[name].claim for name in POPULATIONS}
    ways = {
        name: (f"for {claim}", f"claims about {claim}, by {models[name].formula}", compared[name], runs.direction)
        for name, claim in claims.items()
    }
    among = " and ".join(f"for {claim}" for claim in claims.values())
    return side_by_side(ways, of="population", among=among, alpha=alpha)
