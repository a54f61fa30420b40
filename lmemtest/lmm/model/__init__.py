"""`fit_lmm`, or `fit_glmm` of `glmm`: a formula and a table of runs -> a fitted mixed model.

===========  =======================================================================
spec         a model that is not fitted yet, `ModelSpec`
fitting      the way from a formula and a table to a fit; how long a search takes
fit          the fit: estimates, covariances, degrees of freedom, draws
glmm         the same of answers and counts: a family and its link
predictions  conditional modes, predictions with their error, residuals row by row
given        what is given as a fit, or refused: `check_fit`
verbs        what can be asked of a fit, and which function answers
===========  =======================================================================
"""

from lmemtest.lmm.model.fit import DDF_METHODS, DdfMethod, LmmFit
from lmemtest.lmm.model.fitting import fit_lmm
from lmemtest.lmm.model.spec import ModelSpec

__all__ = ["DDF_METHODS", "DdfMethod", "LmmFit", "ModelSpec", "fit_lmm"]
