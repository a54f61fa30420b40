"""Which algorithms met on a benchmark: the rule that decides whether two of them can be compared.

A difference between algorithms that share no benchmark is at the same time one between benchmarks. A model with random
effects of the benchmarks gives it a number all the same, from how benchmarks vary among themselves: right only if
chance had assigned the benchmarks to the algorithms, which nothing in a table shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.requirements import check_algorithms
from lmemtest.core.caller import advice
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs

__all__ = ["Crossing", "crossing", "require_crossing"]

EXAMPLES = 3  # pairs that a sentence names


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossing:
    """How many benchmarks each two algorithms have in common; on the diagonal of `common` those of one algorithm."""

    benchmark: str
    algorithm: str
    algorithms: tuple[Any, ...]
    common: NDArray[np.int64]
    n_benchmarks: int
    n_rows: int

    @cached_property
    def apart(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of algorithms without a common benchmark, in the order of the levels."""
        left, right = np.nonzero(np.triu(self.common == 0, k=1))
        return tuple((self.algorithms[i], self.algorithms[j]) for i, j in zip(left, right, strict=True))

    @property
    def n_pairs(self) -> int:
        """Pairs of algorithms."""
        k = len(self.algorithms)
        return k * (k - 1) // 2

    @property
    def none_meet(self) -> bool:
        """Whether no two algorithms have a benchmark in common."""
        return len(self.apart) == self.n_pairs

    def meet(self, levels: Sequence[Any]) -> NDArray[np.bool_]:
        """Whether the algorithms at two places of a sequence have a benchmark in common, for all two places."""
        at = {level: i for i, level in enumerate(self.algorithms)}
        codes = np.array([at[level] for level in levels], dtype=np.intp)
        return np.asarray(self.common[np.ix_(codes, codes)] > 0)

    def reason(self) -> str:
        """What is wrong with a table in which no two algorithms meet."""
        if self.n_benchmarks == self.n_rows:
            return (
                f"no benchmark has two algorithms: each of the {self.n_rows:,} rows has a {self.benchmark!r} of its "
                "own, as the id of a run has"
            )
        return (
            f"no benchmark has two algorithms: each of the {self.n_benchmarks:,} values of {self.benchmark!r} belongs "
            "to one of them, so a difference between algorithms cannot be distinguished from one between benchmarks"
        )

    def advice(self) -> str:
        """The way out of a table in which no two algorithms meet."""
        problem = advice("argument", name="benchmark")
        if self.n_benchmarks == self.n_rows:
            return (
                f"Give {problem} the column of the problem that was solved (a data set, a task), and name the id of a "
                f"run with {advice('argument', name='seed')}."
            )
        return (
            f"If {self.benchmark!r} names experiments, give {problem} the column of the problem that was solved (a "
            "data set, a task); if the algorithms did run on different problems, run them on the same ones."
        )

    def shown(self) -> str:
        """Some of the pairs without a common benchmark, in words."""
        named = "; ".join(f"{left} and {right}" for left, right in self.apart[:EXAMPLES])
        return named if len(self.apart) <= EXAMPLES else f"such as {named}"


def crossing(runs: Runs) -> Crossing | None:
    """How many benchmarks each two algorithms have in common; None without benchmarks, where all rows are compared.

    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["A", "B", "B", "C"], "task": ["t1", "t1", "t2", "t2"], "loss": [1.0, 2.0, 3.0, 4.0]}
    >>> found = crossing(Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task"))
    >>> found.apart, found.none_meet
    ((('A', 'C'),), False)
    """
    if runs.benchmark is None:
        return None
    import pandas as pd
    from scipy.sparse import csr_array

    cells = runs.study.distinct([runs.benchmark, runs.algorithm])
    at = {level: i for i, level in enumerate(runs.algorithms)}
    algorithm = np.array([at[level] for level in cells[runs.algorithm].tolist()], dtype=np.intp)
    benchmark, levels = pd.factorize(cells[runs.benchmark])
    ran = csr_array((np.ones(len(cells), dtype=np.int64), (algorithm, benchmark)), shape=(len(at), len(levels)))
    return Crossing(
        benchmark=runs.benchmark,
        algorithm=runs.algorithm,
        algorithms=runs.algorithms,
        common=(ran @ ran.T).toarray(),
        n_benchmarks=len(levels),
        n_rows=runs.n_rows,
    )


def require_crossing(runs: Runs) -> None:
    """Refuse runs in which no two algorithms have a benchmark in common, with the reason and the next step."""
    check_algorithms(runs)
    found = runs.study.crossing
    if found is not None and found.none_meet:
        raise DesignError(f"The algorithms cannot be compared: {found.reason()}. {found.advice()}")
