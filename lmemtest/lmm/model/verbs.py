"""What can be asked of a fitted model, and where the answer is written: `fit.emmeans("a")` is `emmeans(fit, "a")`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.result import Answer
    from lmemtest.lmm.diagnostics.diagnose import Diagnosis
    from lmemtest.lmm.intervals.cluster_robust import ClusterRobust
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.means.moderated import Moderated

R = TypeVar("R")


class Verb(Generic[R]):
    """A method that is written as a function of a higher layer, which is imported when it is first asked for."""

    def __init__(self, place: str) -> None:
        self.module, self.function = place.split(":")

    def __get__(self, fit: object, owner: type) -> Callable[..., R]:
        function = getattr(importlib.import_module(f"lmemtest.lmm.{self.module}"), self.function)
        return function if fit is None else MethodType(function, fit)


class Verbs:
    """The methods of a fit that inference defines, each documented at its function."""

    anova: Verb[Answer] = Verb("means.f_tests:anova")
    bootstrap: Verb[Answer] = Verb("intervals.bootstrap:bootstrap")
    cluster_robust: Verb[ClusterRobust] = Verb("intervals.cluster_robust:cluster_robust")
    diagnose: Verb[Diagnosis] = Verb("diagnostics.diagnose:diagnose")
    emmeans: Verb[Estimates] = Verb("means.emmeans:emmeans")
    emtrends: Verb[Estimates] = Verb("means.emmeans:emtrends")
    icc: Verb[float] = Verb("diagnostics.explained_variance:icc")
    influence: Verb[Answer] = Verb("diagnostics.influence:influence")
    joint_tests: Verb[Answer] = Verb("means.f_tests:joint_tests")
    moderated: Verb[Moderated] = Verb("means.moderated:moderated")
    profile: Verb[Answer] = Verb("intervals.profile:profile")
    r2: Verb[pd.Series[float]] = Verb("diagnostics.explained_variance:r2")
    random_effects: Verb[Answer] = Verb("intervals.random_effects:random_effects")
    ranova: Verb[Answer] = Verb("hypotheses.ranova:ranova")
