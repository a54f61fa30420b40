"""Types of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]  # places in another array, codes of levels, counts
Mask = NDArray[np.bool_]
Codes = NDArray[np.int8]  # verdicts: 1, 0, -1
