"""Best-so-far curves that get worse: where most runs never do, those that do are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.data.broken_traces import Traces, traces_of
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

__all__ = ["Traces", "broken_traces"]


def broken_traces(runs: Runs) -> Traces:
    """Look for best-so-far curves that get worse at a higher budget.

    Parameters
    ----------
    runs : Runs
        With budget and seed.

    Returns
    -------
    Traces

    Raises
    ------
    ArgumentError
        If there is no budget or no seed column.

    Notes
    -----
    A rule, not a test: if at least half of the curves with three or more budgets never get worse, the score is taken as
    the best so far (independent scores at k budgets are in order with probability 1/k!), and every step to the worse is
    an error of recording, sorting or joining.

    Examples
    --------
    >>> from lmemtest.data.runs import Runs
    >>> from lmemtest.studies.checks.traces import broken_traces
    >>> table = {"tool": ["HB"] * 6 + ["RS"] * 3, "seed": [0] * 3 + [1] * 3 + [0] * 3, "budget": [1, 2, 3] * 3,
    ...          "loss": [3, 2, 1, 3, 3, 2, 3, 1, 2]}
    >>> found = broken_traces(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed",
    ...                            budget="budget"))
    >>> found.verdict, found.examples
    ('broken', ('RS, seed 0: worse by 1.000 at budget 3',))
    """
    require_runs(runs)
    for role in ("budget", "seed"):
        if getattr(runs, role) is None:
            raise ArgumentError(f"runs has no {role} column, so there are no curves. Name it: Runs(..., {role}=...).")
    return traces_of(runs.study.points)
