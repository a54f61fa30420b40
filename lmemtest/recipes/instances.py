"""What tells the instances of a table of runs apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.data.crossing import properties_of_algorithms

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs


def instance_columns(runs: Runs) -> tuple[str, ...]:
    """The benchmark, and the metafeatures that have several levels on one benchmark.

    A metafeature that is constant within benchmarks says what kind of benchmark a benchmark is; it makes no instances
    of it, and neither does one that is constant within algorithms. Without a benchmark column, or with one benchmark,
    every other metafeature that varies counts.
    """
    benchmark = (runs.benchmark,) if runs.benchmark else ()
    whole, of_algorithms = count(runs, benchmark), properties_of_algorithms(runs)
    return (
        *benchmark,
        *(name for name in runs.metafeatures if name not in of_algorithms and count(runs, (*benchmark, name)) > whole),
    )


def kinds_of_benchmarks(runs: Runs) -> tuple[str, ...]:
    """Metafeatures that vary, but not within benchmarks."""
    own = (*instance_columns(runs), *properties_of_algorithms(runs))
    return tuple(name for name in runs.metafeatures if name not in own and count(runs, (name,)) > 1)


def count(runs: Runs, columns: tuple[str, ...]) -> int:
    """Distinct combinations of some columns; one of none."""
    if not columns:
        return 1
    return len(runs.frame.lazy().select(list(dict.fromkeys(columns))).unique().collect())
