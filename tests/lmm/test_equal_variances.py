"""Bartlett's test from sums of squares is SciPy's of the samples."""

import numpy as np
import pytest
from pytest import approx
from scipy import stats

from lmemtest.lmm.hypotheses.variances import bartlett


@pytest.mark.parametrize("sizes", [(10, 15, 8), (2, 2), (3, 40, 2, 7, 7)])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_bartletts_p_value_is_that_of_scipy(sizes, unit):
    rng = np.random.default_rng(1)
    samples = [unit * (i + 1.0) * rng.normal(size=n) for i, n in enumerate(sizes)]
    squares = np.array([((x - x.mean()) ** 2).sum() for x in samples])
    want = stats.bartlett(*(x / unit for x in samples)).pvalue
    assert bartlett(squares, np.array(sizes) - 1.0) == approx(want, rel=1e-10)


def test_equal_variances_have_no_evidence_against_them():
    assert bartlett(np.full(7, 0.3), np.full(7, 3.0)) == 1.0
