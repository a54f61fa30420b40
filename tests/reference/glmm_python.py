"""Log-likelihoods (Laplace) of the package glmm on the tables of glmm.json.

pip install glmm==0.6.2 pandas
python glmm_python.py > glmm_python.json
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import glmm
import numpy as np
import pandas as pd

FAMILIES = {"nbinom2": "negativebinomial"}
GROUPS = ("task", "item", "herd", "subject", "id", "location", "brood", "chick", "district", "child", "nest", "site",
          "community", "mom", "female", "partner")  # fmt: skip
OFFSET = " + offset(log(size))"


def log_likelihood(case: dict[str, Any]) -> float:
    """The largest that glmm finds."""
    table = pd.DataFrame(case["data"])
    table = table.assign(**{name: table[name].astype(str) for name in GROUPS if name in table})
    formula, options = case["formula"], dict[str, Any]()
    if case["trials"]:
        table["failed"] = table[case["trials"]] - table["y"]
        formula = formula.replace("y ~", "cbind(y, failed) ~")
    if OFFSET in formula:
        formula, options["offset"] = formula.replace(OFFSET, ""), np.log(table["size"].to_numpy(float))
    if case["link"] not in ("logit", "log"):
        options["link"] = case["link"]
    return float(glmm.fit(table, formula, FAMILIES.get(case["family"], case["family"]), **options).loglik)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cases = json.loads((Path(__file__).parent / "glmm.json").read_text(encoding="utf-8"))["cases"]
    found = {
        "generated_by": "tests/reference/glmm_python.py",
        "versions": {"Python": sys.version.split()[0], "glmm": version("glmm")},
        "llf": {case["name"]: log_likelihood(case) for case in cases},
    }
    print(json.dumps(found, indent=1))
