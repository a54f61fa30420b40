"""Decisions of adastop on seeds of one task, and how many runs it takes: beside `monitor(unit="seed")`.

pip install adastop==0.1.3
python adastop_seeds.py > adastop_seeds.json
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import numpy as np
from adastop.compare_agents import MultipleAgentsComparator

GROUP, LOOKS, PERMUTATIONS, STUDIES = 5, 5, 10_000, 200
DESIGNS = {  # how far agents are ahead, in standard deviations of a run
    "3 equal agents": [0.0, 0.0, 0.0],
    "5 equal agents": [0.0] * 5,
    "3 agents, one 1 sd ahead": [0.0, 0.0, 1.0],
    "5 agents, 0 to 2 sd ahead": [0.0, 0.0, 0.5, 1.0, 2.0],
}


def study(ahead: list[float], k: int) -> dict[str, float]:
    """Whether any equal pair is called different, the share of unlike pairs found, and of all runs that were made."""
    scores = np.random.default_rng([k, 44]).standard_normal((GROUP * LOOKS, len(ahead))) + ahead
    test = MultipleAgentsComparator(GROUP, LOOKS, PERMUTATIONS, None, 0.05, 0.0, k)
    used = np.zeros(len(ahead))
    for look in range(1, LOOKS + 1):
        active = np.unique(test.current_comparisons) if look > 1 else np.arange(len(ahead))
        used[active] = GROUP * look
        test.partial_compare({str(i): scores[: int(used[i]), i] for i in range(len(ahead))}, False)
        if "continue" not in test.decisions.values():
            break
    found = np.array([test.decisions[str(pair)] in ("larger", "smaller") for pair in test.comparisons])
    equal = np.array([ahead[i] == ahead[j] for i, j in test.comparisons])
    power = float(found[~equal].mean()) if not equal.all() else 0.0
    return {"false": float((found & equal).any()), "power": power, "runs": float(used.sum() / scores.size)}


def main() -> None:
    """Write everything to standard output."""
    everything = {
        "versions": {name: version(name) for name in ("adastop", "numpy")},
        "group": GROUP,
        "looks": LOOKS,
        "permutations": PERMUTATIONS,
        "studies": STUDIES,
        "designs": {},
    }
    for name, ahead in DESIGNS.items():
        studies = [study(ahead, k) for k in range(STUDIES)]
        rates = {key: float(np.mean([one[key] for one in studies])) for key in studies[0]}
        everything["designs"][name] = {"ahead": ahead, **rates}
    json.dump(everything, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
