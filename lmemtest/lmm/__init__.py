"""Mixed models that know no benchmark: a formula and a table -> a fit -> means -> comparisons, with their errors.

============  =====================================================================================
cells         rows to cells: counts, means and sums of squares, which are all that a likelihood needs
formula       lme4's formulas, and the matrices that they give on cells
families      distributions of answers and counts, with their links
engine        the profiled likelihood, its derivatives and its maximum; arrays only
model         `fit`: a formula and a table to a fit; `LmmFit`, `ModelSpec`
means         marginal means with their covariance, and every comparison of them
hypotheses    likelihood-ratio tests, tests of random effects, simulated null distributions
intervals     profile, bootstrap, random effects, robust standard errors
diagnostics   what the conclusions of a fit rest on
distributions the laws of maxima, ranges and quadratic forms behind tests and intervals
============  =====================================================================================

>>> from lmemtest import lmm
>>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
>>> fit = lmm.fit("y ~ a + (1 | g)", table)
>>> fit.emmeans("a").pairs().to_frame()[["left", "right", "estimate"]].round(4)
  left right  estimate
0    p     q      -1.3
"""

from typing import Any as _Any

import lazy_loader as _lazy

from lmemtest.core.hints import called as _called

_called(__name__, "lmemtest.fit_lmm(formula, data), or lmemtest.lmm.fit(formula, data)")
_load, _names, _public = _lazy.attach(
    __name__,
    submod_attrs={
        "diagnostics.diagnose": ["diagnose"],
        "diagnostics.influence": ["influence"],
        "diagnostics.explained_variance": ["explained_variance"],
        "diagnostics.structure": ["collinearity"],
        "formula": ["parse_formula"],
        "hypotheses.glrt": ["glrt"],
        "hypotheses.ranova": ["ranova"],
        "intervals.bootstrap": ["bootstrap"],
        "intervals.cluster_robust": ["cluster_robust"],
        "intervals.profile": ["profile"],
        "intervals.random_effects": ["random_effects"],
        "means.contrasts": ["against", "best", "contrast", "pairs"],
        "means.decisions": ["Decisions"],
        "means.emmeans": ["emmeans", "emtrends"],
        "means.estimates": ["Estimates"],
        "means.f_tests": ["joint_tests"],
        "means.moderated": ["moderated"],
        "model": ["LmmFit", "ModelSpec", "fit_lmm"],
        "model.glmm": ["GlmmFit", "fit_glmm"],
    },
)
__all__ = ["fit", *_public]


def __getattr__(name: str) -> _Any:
    return _load("fit_lmm" if name == "fit" else name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
