"""What the conclusions of a fit rest on: shapes, scales, groups, explained variance, collinearity, influence.

==================  ===============================================================
diagnose            every check of one fit in one table
generalised         the same of answers and counts, by tables drawn from the fit and fitted again
scores              the rows behind the cells, where they can still be read, the kind of the score, scores on a bound
draws               residuals and random effects of tables drawn from the fit
normality           shapes of residuals and random effects; Shapiro and Wilk's test
scale               residual variances by level of a column
advantages          how much the advantage of each algorithm varies over benchmarks; few that decide, skewed ones
structure           levels of the random terms and the end of the search; variance inflation
explained_variance  R2 and ICC
influence           the fit without each level of a group, and which results change
left_out            the refits behind it; the fit of a large table, to whole repetitions at equal steps
==================  ===============================================================
"""

from __future__ import annotations

from lmemtest.lmm.diagnostics.diagnose import Diagnosis, diagnose
from lmemtest.lmm.diagnostics.explained_variance import explained_variance
from lmemtest.lmm.diagnostics.structure import collinearity

__all__ = ["Diagnosis", "collinearity", "diagnose", "explained_variance"]
