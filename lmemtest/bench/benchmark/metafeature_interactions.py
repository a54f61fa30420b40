"""Does the comparison of the algorithms depend on a metafeature? The test behind every sentence that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.modelling.recommend import model_of
from lmemtest.core.rounding import below, written
from lmemtest.core.words import p_text
from lmemtest.errors import LmemtestError
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.model.fitting import fitted_quietly

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.model import LmmFit


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """F-test that the differences between algorithms are the same at all levels of a metafeature.

    Attributes
    ----------
    metafeature, formula : str
        What is tested, and the model of the test.
    f_ratio, df_num, df_den : float
        NaN where there is no test.
    p_value : float
        Adjusted by Holm's method for the number of metafeatures; NaN where there is no test.
    tests : int
        How many metafeatures were tested.
    reason : str
        Why there is no test; empty where there is one.
    """

    metafeature: str
    formula: str
    f_ratio: float = math.nan
    df_num: float = math.nan
    df_den: float = math.nan
    p_value: float = math.nan
    tests: int = 0
    reason: str = ""

    def significant(self, alpha: float) -> bool:
        """Whether the test rejects at this level."""
        return below(self.p_value, alpha)

    @property
    def result(self) -> str:
        """The test in brackets."""
        if self.reason:
            return f"not tested: {self.reason}"
        den = "∞" if np.isinf(self.df_den) else written(self.df_den, ".1f")
        holm = f", Holm-adjusted for {self.tests} metafeatures" if self.tests > 1 else ""
        return (
            f"interaction with the algorithm: F({self.df_num:g}, {den}) = {written(self.f_ratio, '.2f')}, "
            f"{p_text(self.p_value)}{holm}"
        )


def interactions(
    runs: Runs, *, ddf: str, function: str | None = None, fit: LmmFit | None = None
) -> dict[str, Interaction]:
    """Test each metafeature for an interaction with the algorithm, by the model that its design calls for.

    The model is the one of `recommend` for the runs with this metafeature alone, with its means and its interaction
    with the algorithm in the fixed part; `function` is applied to every score, such as "log", and `fit` is a fit of
    these runs, which is taken where its model is the same one. Advantages may then vary between benchmarks, and
    between the levels of the metafeature on one benchmark, so the test is as sure as these allow: a metafeature that
    is constant on benchmarks is tested against the variation of advantages between benchmarks.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, algorithm=["HB", "HB+prior", "RS"])
    >>> found = interactions(runs, ddf="satterthwaite")["prior"]
    >>> found.df_num, found.significant(0.05)
    (2, False)
    """
    tests = [_tested(runs, name, function, ddf, fit) for name in runs.metafeatures]
    testable = [test for test in tests if not test.reason]
    adjusted = adjust_raw(np.array([test.p_value for test in testable]), "holm", max(len(testable), 1))
    p = dict(zip((test.metafeature for test in testable), adjusted.tolist(), strict=True))
    return {
        test.metafeature: replace(test, p_value=p.get(test.metafeature, math.nan), tests=len(testable))
        for test in tests
    }


def _tested(runs: Runs, metafeature: str, function: str | None, ddf: str, fit: LmmFit | None) -> Interaction:
    """The F-test of one interaction; the reason where the data do not identify it."""
    from lmemtest.bench.modelling.builder import ModelBuilder
    from lmemtest.lmm.means.f_tests import term_test

    untested = Interaction(metafeature=metafeature, formula="", reason="this design does not identify it")
    try:
        alone = runs.with_metafeatures(metafeature)
        spec = model_of(alone).spec
        if metafeature not in spec.fixed_columns:
            spec = ModelBuilder.of(alone, spec).interaction(alone.algorithm, metafeature).spec
        spec = replace(spec, response_function=function, dispersion=None)
        untested = replace(untested, formula=spec.formula)
        if fit is None or fit.formula != spec.formula or fit.dispersion is not None or not fit.reml:
            fit = fitted_quietly(spec.parsed, alone)
        test = term_test(fit, (runs.algorithm, metafeature), ddf=ddf)
    except LmemtestError:
        return untested
    if test is None or not np.isfinite(test.p_value):
        return untested
    numbers = {name: getattr(test, name) for name in ("f_ratio", "df_num", "df_den", "p_value")}
    return replace(untested, reason="", **numbers)
