"""What the conclusions of a fit rest on: shapes, scales, groups, explained variance, collinearity, influence."""

from __future__ import annotations

from lmemtest.inference.diagnostics.collinearity import Collinearity, collinearity
from lmemtest.inference.diagnostics.diagnose import Diagnosis, diagnose
from lmemtest.inference.diagnostics.explained import Explained, explained_variance

__all__ = ["Collinearity", "Diagnosis", "Explained", "collinearity", "diagnose", "explained_variance"]
