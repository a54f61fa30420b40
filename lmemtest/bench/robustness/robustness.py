"""Which decisions stay if the analysis is done in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.normalise import METHODS
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.robustness.failures import by_policies
from lmemtest.bench.robustness.populations import by_populations
from lmemtest.bench.robustness.scores import by_scores
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.robustness.variants import Variants

__all__ = ["robustness"]

OF = ("score", "failures", "population")


@one_blas_thread()
def robustness(
    runs: Runs,
    of: str = "score",
    *,
    variants: Sequence[Any] | Mapping[str, Any] | str | None = None,
    reference: Any = None,
    alpha: float = 0.05,
) -> Variants:
    """Compare the algorithms in several ways, and say which decisions depend on the way.

    Parameters
    ----------
    runs : Runs
        As they were measured, or as `Runs.normalize` or `Runs.score_failures` returns them.
    of : {"score", "failures", "population"}
        What is varied. "score": the raw score and normalised ones. "failures": what a failed run counts; the runs need
        the role ``failed``. "population": claims about new families of benchmarks, and about new benchmarks of these.
    variants : str, sequence or mapping of str, optional
        Of "score": methods of `Runs.normalize`; by default that of the runs, or "rank". Of "failures": two or more
        policies of `Runs.score_failures` and "rank" (ranks within the benchmark, failed runs last); a mapping gives
        them names; by default "worst", "rank", "drop", "baseline" where `reference` is given, and the policy that the
        runs have been scored by.
    reference : optional
        The algorithm of the policy "baseline".
    alpha : float in (0, 1)
        Level of the decisions, in each way for all pairs together.

    Returns
    -------
    Variants
        ``to_frame()`` says who is better of each pair in each way; ``to_frame("decisions")`` has the numbers.

    Raises
    ------
    ArgumentError
        If `runs` is a plain table, an option is unknown or does not go with `of`, or no role says which runs failed.
    DataError
        If the scores cannot be normalised, no run failed, or fewer than two policies can be applied.
    DesignError
        If there are no two populations.

    Notes
    -----
    In each way the recommended model is fitted and all pairs are tested. The ways ask different questions: a mean rank,
    a mean of min-max scores and a mean score have one answer where algorithms differ by a shift, and need not where one
    is more erratic than the others or scores end at a bound; "drop" asks who is better when it works, "worst" and
    "baseline" who is better for somebody who starts it. That decisions differ does not show that one is wrong, and that
    only one way finds a difference does not show that the ways disagree: the other test may lack power.

    In simulated accuracies near 1, with equal mean scores and one erratic algorithm of three or six, a test of mean
    ranks finds a difference in 22 to 76 % of the tables, of min-max or z-scores in 18 to 59 %: mean ranks and mean
    normalised scores do differ there. With alike algorithms each finds one in 3 to 6 %.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = [(f"t{b}", tool, 0.1 * b + (tool == "B") * (0.1 if b % 5 else -3.0) + 0.001 * b % 0.01)
    ...          for b in range(40) for tool in "AB"]
    >>> columns = dict(zip(["task", "tool", "loss"], zip(*table)))
    >>> runs = lt.Runs(columns, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> lt.robustness(runs, of="score").sentences()[-1]
    'A is better than B by mean loss_rank (p < 0.001); B is better than A by mean loss (p = 0.012).'
    """
    require_runs(runs)
    check_choice(of, "of", OF)
    alpha = check_fraction(alpha, "alpha")
    if reference is not None and of != "failures":
        raise ArgumentError(f"reference is for of='failures', got of={of!r}. Leave it out.")
    if of == "failures":
        return by_policies(runs, variants, reference, alpha)  # type: ignore[arg-type]
    if of == "score":
        return by_scores(runs, _methods(variants), alpha)
    if variants is not None:
        raise ArgumentError("variants is for of='score' and of='failures'; there are two populations. Leave it out.")
    return by_populations(runs, alpha)


def _methods(variants: Any) -> tuple[str, ...] | None:
    """Normalisations by their names."""
    if variants is None:
        return None
    names = (variants,) if isinstance(variants, str) else variants
    if isinstance(names, Mapping) or not isinstance(names, Sequence) or not names:
        raise ArgumentError(f"variants must name methods of normalize, such as ('rank', 'minmax'), got {variants!r}.")
    methods = tuple(check_choice(name, "variants", METHODS) for name in names)
    if len(set(methods)) < len(methods):
        raise ArgumentError(f"variants must name each method of normalize once, got {', '.join(methods)}.")
    return methods
