"""The same answers under two kernels of the linear algebra library, and without numpy's vector instructions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECORD = Path(__file__).with_name("record.py")
# Estimates agree to this, relative to the largest value of their column.
SAME = 1e-7


def recorded(**environment: str) -> dict[str, Any]:
    """What `record.py` prints in a process of its own."""
    own = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES")}
    done = subprocess.run(
        [sys.executable, str(RECORD)], env={**own, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def vector_instructions() -> str:
    """Those that numpy would use here beyond its baseline."""
    from numpy._core import _multiarray_umath as umath

    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name))


def differences(first: Any, second: Any, where: str = "") -> list[str]:
    """Places where two records differ by more than rounding."""
    if isinstance(first, dict) and isinstance(second, dict) and list(first) == list(second):
        return [text for key in first for text in differences(first[key], second[key], f"{where}/{key}")]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        if all(isinstance(x, float) for x in [*first, *second]):
            a, b = np.array(first), np.array(second)
            known = np.isfinite(a)
            size = np.abs(a[known]).max(initial=0.0)
            same = np.array_equal(a[~known], b[~known], equal_nan=True) and np.isfinite(b[known]).all()
            if same and np.all(np.abs(a[known] - b[known]) <= SAME * (np.abs(a[known]) + 1e-3 * size)):
                return []
            return [f"{where}: {first} != {second}"]
        return [
            text
            for i, pair in enumerate(zip(first, second, strict=True))
            for text in differences(*pair, f"{where}/{i}")
        ]
    if isinstance(first, float) and isinstance(second, float):
        return differences([first], [second], where)
    return [] if first == second else [f"{where}: {first} != {second}"]


def test_the_comparison_sees_what_it_should():
    assert differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 + 1e-9]}) == []
    assert len(differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 + 1e-5]})) == 1
    assert len(differences([float("nan")], [1.0])) == 1
    assert len(differences({"order": ["x", "y"]}, {"order": ["y", "x"]})) == 2


def test_two_kernels_give_the_same_answers():
    own = recorded()
    if own["machine"]["libraries"] != ["openblas"]:
        pytest.skip(f"kernels can be chosen in OpenBLAS only; this is {own['machine']['libraries']}")
    other = "Prescott" if "Nehalem" in own["machine"]["kernels"] else "Nehalem"
    found = recorded(OPENBLAS_CORETYPE=other, NPY_DISABLE_CPU_FEATURES=vector_instructions())
    if found["machine"]["kernels"] == own["machine"]["kernels"]:
        pytest.skip(f"this machine has no other kernel than {own['machine']['kernels'][0]}")
    assert set(found["machine"]["kernels"]) == {other}  # numpy's and scipy's library
    assert differences(own["answers"], found["answers"]) == []
