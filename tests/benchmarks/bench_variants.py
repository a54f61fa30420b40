"""Milliseconds of variants of an analysis: without each benchmark, family or algorithm in turn, and at other options.

Run `python tests/benchmarks/bench_variants.py [--repeats 3]`. The whole table was analysed before, as a page that
shows variants has done. A line holds the shape, what is varied, the median and the 95th percentile of the clock and of
the processor, and the time of the whole analysis of the reduced table as a multiple of that of the variant.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from shapes import runs, timed

import lmemtest as lt

SHAPES = {
    "6 x 20 x 25": ((6, 20, 25), {}, 30.0),
    "13 x 86 x 5, 16 families": ((13, 86, 5), {"families": 16}, 100.0),
    "13 x 86 x 5, 16 families, a tenth missing": ((13, 86, 5, 0.1), {"families": 16}, 100.0),
    "25 x 80 x 5": ((25, 80, 5), {}, None),
}
SCALES = ("rank", "minmax", "zscore")


def variants(table: lt.Runs) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is varied, and the options."""
    for role in ("benchmark", "family", "algorithm", "seed"):
        column = table.family[0] if role == "family" and table.family else getattr(table, role)
        if column:
            yield from ((f"without a {role}", {"without": {column: level}}) for level in table.levels(column)[:40])
    yield from ((f"by {scale}", {"scale": scale}) for scale in SCALES)
    yield "at 1 %", {"alpha": 0.01}
    yield "for these benchmarks", {"population": "run"}
    if table.family:
        yield "for new benchmarks", {"population": "benchmark"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="parts of shapes")
    options = parser.parse_args()
    print(f"{'shape':<44}{'variant':<22}{'n':>4}{'clock':>8}{'95 %':>7}{'cpu':>8}{'95 %':>7}{'goal':>6}{'whole':>8}")
    for name, (shape, more, goal) in SHAPES.items():
        if options.only and not any(part in name for part in options.only):
            continue
        table = runs(*shape, **more)
        lt.analyze(table)
        seen: dict[str, list[tuple[float, float]]] = {}
        last: dict[str, dict[str, Any]] = {}
        for kind, changes in [*variants(table)] * options.repeats:
            last[kind] = changes
            call = partial(lt.variant, table, **changes)
            seen.setdefault(kind, []).append(timed(lambda call=call: call().decisions().codes))
        for kind, times in seen.items():
            (clock, clock_95), (cpu, cpu_95) = (
                [*np.percentile(column, [50, 95])] for column in zip(*times, strict=True)
            )
            rest = last[kind].get("without")
            whole = ""
            if rest:
                ((column, level),) = rest.items()
                left = table.filter(**{column: [one for one in table.levels(column) if one != level]})
                whole = f"{timed(partial(lt.analyze, left))[1] / cpu:.1f}"
            numbers = f"{len(times):>4}{clock:>8.1f}{clock_95:>7.1f}{cpu:>8.1f}{cpu_95:>7.1f}"
            print(f"{name:<44}{kind:<22}{numbers}{'' if goal is None else f'{goal:.0f}':>6}{whole:>8}", flush=True)


if __name__ == "__main__":
    main()
