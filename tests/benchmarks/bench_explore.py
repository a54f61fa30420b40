"""Milliseconds that the explorer takes at the server, of 100 different states of each shape.

Run `python tests/benchmarks/bench_explore.py [--only 6]`. A line holds the shape, what was asked ("over http" is the
answer with its way through the server), the median and the 95th percentile of the clock and of the processor.
"""

from __future__ import annotations

import argparse
import itertools
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import numpy as np
from shapes import runs, timed

import lmemtest as lt
from lmemtest.report.explore import explorer
from lmemtest.report.serve import serving

SHAPES = {"6 x 20 x 25": ((6, 20, 25), 30.0), "13 x 86 x 5": ((13, 86, 5), 100.0)}
OPTIONS = ({}, {"alpha": "0.01"}, {"adjust": "holm"}, {"vcov": "model"}, {"scale": "rank"}, {"scale": "minmax"})


def states(table: lt.Runs) -> Iterator[str]:
    """A hundred states: without each benchmark or algorithm, at each of some options."""
    columns = [(column, level) for column in (table.benchmark, table.algorithm) for level in table.levels(column)]
    every = itertools.product(OPTIONS, columns)
    for options, (column, level) in itertools.islice(every, 100) if len(columns) >= 100 else _spread(every):
        yield urlencode({f"without.{column}": level, **options})


def _spread(every: Iterator) -> list:
    """A hundred of them, at even distances."""
    listed = list(every)
    return [listed[i] for i in np.linspace(0, len(listed) - 1, 100).round().astype(int)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    print(f"{'shape':<16}{'asked':<22}{'n':>4}{'clock':>8}{'95 %':>8}{'cpu':>8}{'95 %':>8}{'goal':>6}")
    for name, (shape, goal) in SHAPES.items():
        if not name.startswith(only):
            continue
        table = runs(*shape)
        for asked in ("answer", "over http", "checks"):
            ask = explorer(table)
            ask("answer", ""), ask("checks", "")
            with serving(ask, "speed") as address:

                def call(query: str, asked: str = asked, ask: Callable = ask, address: str = address) -> object:
                    if asked == "over http":
                        return urllib.request.urlopen(f"{address}answer?{query}", timeout=30).read()
                    return ask(asked, query)

                times = [timed(lambda query=query: call(query)) for query in dict.fromkeys(states(table))]
            scaled = ["scale=" in query for query in dict.fromkeys(states(table))]
            parts = {"": [True] * len(scaled), ", as it is": [not one for one in scaled], ", scaled": scaled}
            for part, kept in parts.items():
                columns = np.compress(kept, times, axis=0).T
                numbers = [value for column in columns for value in np.percentile(column, [50, 95])]
                row = f"{sum(kept):>4}{''.join(f'{value:>8.1f}' for value in numbers)}{goal:>6.0f}"
                print(f"{name:<16}{asked + part:<22}{row}", flush=True)


if __name__ == "__main__":
    main()
