"""Does the comparison of the algorithms depend on a metafeature? The test behind every sentence that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import below, written
from lmemtest.errors import LmemtestError
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.studies.modelling.adequacy import columns_of
from lmemtest.studies.modelling.recommend import recommend
from lmemtest.words import format_p

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

__all__ = ["Interaction", "interactions", "without_properties_of_algorithms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """F-test that the differences between algorithms are the same at all levels of a metafeature.

    Attributes
    ----------
    metafeature : str
    f_ratio, df_num, df_den : float
        NaN where there is no test.
    p_value : float
        Adjusted by Holm's method for the number of metafeatures; NaN where there is no test.
    tests : int
        How many metafeatures were tested.
    formula : str
        The model of the test.
    reason : str
        Why there is no test; empty where there is one.
    """

    metafeature: str
    f_ratio: float
    df_num: float
    df_den: float
    p_value: float
    tests: int
    formula: str
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
        p = format_p(self.p_value)
        p = f"p < {p[1:]}" if p.startswith("<") else f"p = {p}"
        holm = f", Holm-adjusted for {self.tests} metafeatures" if self.tests > 1 else ""
        return f"interaction with the algorithm: F({self.df_num:g}, {den}) = {written(self.f_ratio, '.2f')}, {p}{holm}"


def interactions(runs: Runs, response: str, *, ddf: str) -> dict[str, Interaction]:
    """Test each metafeature for an interaction with the algorithm, by the model that its design calls for.

    Parameters
    ----------
    runs : Runs
    response : str
        Left side of the formula, such as ``log(loss)``.
    ddf : str
        Denominator degrees of freedom.

    Returns
    -------
    dict of str to Interaction
        By metafeature.

    Notes
    -----
    The model is the one of `recommend` for the runs with this metafeature alone, with its means and its interaction
    with the algorithm in the fixed part. Advantages may then vary between benchmarks, and between the levels of the
    metafeature on one benchmark, so the test is as sure as these allow: a metafeature that is constant on benchmarks
    is tested against the variation of advantages between benchmarks.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, algorithm=["HB", "HB+prior", "RS"])
    >>> found = interactions(runs, "regret", ddf="satterthwaite")["prior"]
    >>> found.df_num, found.significant(0.05)
    (2, True)
    """
    found = [_tested(runs, name, response, ddf) for name in runs.metafeatures]
    known = [test for test in found if not test.reason]
    raw = np.array([test.p_value for test in known])
    adjusted = adjust_raw(raw, "holm", len(known)) if known else raw
    p = dict(zip((test.metafeature for test in known), adjusted.tolist(), strict=True))
    return {
        test.metafeature: Interaction(
            metafeature=test.metafeature,
            f_ratio=test.f_ratio,
            df_num=test.df_num,
            df_den=test.df_den,
            p_value=p.get(test.metafeature, float("nan")),
            tests=len(known),
            formula=test.formula,
            reason=test.reason,
        )
        for test in found
    }


def without_properties_of_algorithms(runs: Runs) -> Runs:
    """The runs without metafeatures that every algorithm has one value of: these are no conditions of a comparison."""
    own = runs.study.properties
    if not own:
        return runs
    left = tuple(name for name in runs.metafeatures if name not in own)
    return runs.with_metafeatures(*left)


def _tested(runs: Runs, metafeature: str, response: str, ddf: str) -> Interaction:
    formula, reason = "", ""
    try:
        alone = runs.with_metafeatures(metafeature)
        formula = _formula(alone, metafeature, response)
        test = _f_test(alone, metafeature, formula, ddf)
        if test is not None:
            return Interaction(metafeature=metafeature, tests=1, formula=formula, **test)
        reason = "this design does not identify it"
    except LmemtestError:
        reason = "this design does not identify it"
    nan = float("nan")
    return Interaction(
        metafeature=metafeature,
        f_ratio=nan,
        df_num=nan,
        df_den=nan,
        p_value=nan,
        tests=0,
        formula=formula,
        reason=reason,
    )


def _formula(runs: Runs, metafeature: str, response: str) -> str:
    from lmemtest.studies.modelling.builder import ModelBuilder

    spec = recommend(runs).spec
    if metafeature not in spec.fixed_columns:
        spec = ModelBuilder.of(runs, spec).interaction(runs.algorithm, metafeature).spec
    return f"{response} ~ {spec.formula.split('~', 1)[1].strip()}"


def _f_test(runs: Runs, metafeature: str, formula: str, ddf: str) -> dict[str, Any] | None:
    """The F-test of the interaction; None if the data do not identify it."""
    from lmemtest.inference.means.joint import anova

    fit = _fitted(formula, runs)
    table = anova(fit, ddf=ddf).to_frame()
    wanted = {runs.algorithm, metafeature}
    labels = [label for label in table["term"] if columns_of(str(label)) == wanted]
    if not labels:
        return None
    row = table.set_index("term").loc[labels[0]]
    if not np.isfinite(row["p_value"]) or row["df_num"] < 1:
        return None
    return {
        "f_ratio": float(row["f_ratio"]),
        "df_num": int(row["df_num"]),
        "df_den": float(row["df_den"]),
        "p_value": float(row["p_value"]),
    }


def _fitted(formula: str, runs: Runs) -> LmmFit:
    import warnings

    from lmemtest.errors import ConvergenceWarning
    from lmemtest.model import fit_lmm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_lmm(formula, runs)
