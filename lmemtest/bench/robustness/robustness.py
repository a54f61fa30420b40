"""Which decisions stay if the analysis is done in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.failures import refuse_without_failures
from lmemtest.bench.data.normalise import METHODS
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.robustness.algorithms import by_algorithms
from lmemtest.bench.robustness.policies import by_policies
from lmemtest.bench.robustness.variants import by_populations, by_scores
from lmemtest.core.hints import guided
from lmemtest.core.replicates import check_replicates
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, resolve_rng
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.replicates import Executor
    from lmemtest.core.result import Answer

# What is varied, and which options of it
OF: dict[str, tuple[str, ...]] = {
    "score": ("variants",),
    "failures": ("variants", "reference"),
    "population": (),
    "test": (),
    "benchmarks": (),
    "algorithms": ("variants", "reference"),
}


@guided
@one_blas_thread()
def robustness(
    runs: Runs,
    of: str = "score",
    *,
    variants: Sequence[Any] | Mapping[str, Any] | str | None = None,
    reference: Any = None,
    alpha: float = 0.05,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """Compare the algorithms in several ways, and say which decisions depend on the way.

    Parameters
    ----------
    runs : Runs
        As they were measured, or as `Runs.normalize` or `Runs.score_failures` returns them.
    of : {"score", "failures", "population", "test", "benchmarks", "algorithms"}
        What is varied. "score": the raw score and normalised ones. "failures": what a failed run counts; the runs need
        the role ``failed``. "population": claims about new families of benchmarks, and about new benchmarks of these.
        "test": the mixed model, classical tests and a Bayesian one, as ``rank(runs, "all")``. "benchmarks": the ranking
        without each benchmark, and without each algorithm, as ``rank(runs).stability()``. "algorithms": the scores are
        normalised again without each algorithm, and the others compared.
    variants : str, sequence or mapping of str, optional
        Of "score": methods of `Runs.normalize`; by default that of the runs, or "rank". Of "failures": two or more
        policies of `Runs.score_failures` and "rank" (ranks within the benchmark, failed runs last); a mapping gives
        them names; by default "worst", "rank", "drop", "baseline" where `reference` is given, and the policy that the
        runs have been scored by. Of "algorithms": one method of `Runs.normalize`; by default that of the runs, or
        "rank".
    reference : optional
        Of "failures": the algorithm of the policy "baseline". Of "algorithms": a baseline, a name, number or mapping;
        the score relative to it is looked at beside the others.
    alpha : float in (0, 1)
        Level of the decisions, in each way for all pairs together; of "algorithms" for each pair by itself.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; only "algorithms" needs
        them. A progress bar, by default on a terminal after two seconds.
    rng : int, numpy.random.Generator or None
        Source of the posterior draws and of the exchanged tables of "test"; nothing else is random.

    Returns
    -------
    Variants, or Answer of "benchmarks" and "algorithms"
        ``to_frame()`` says who is better of each pair in each way. Of scores, failures and populations
        ``to_frame("decisions")`` has the numbers; of tests see `rank`; of benchmarks see `Ranking.stability`. Of
        algorithms it has one row per score and algorithm left out: ``score``, ``left_out``; ``pairs`` that remain;
        ``order_changed``, of how many the one that is ahead changes; ``decisions_changed``, of how many the decision
        changes; ``leader``, who is ahead of all others then, and ``leader_before``, of those who remain in the whole
        table. ``to_frame("changes")`` has one row per change: ``score``, ``left_out``, ``left`` (ahead in the whole
        table), ``right``; ``order`` ("same", "reversed"); ``p_before`` and ``p_after``, not adjusted; ``decision``:
        "reversed" (significant in both directions), "lost", "found", "same".

    Raises
    ------
    ArgumentError
        If `runs` is a plain table, `variants` or `reference` does not go with `of`, or no role says which runs failed.
    DataError
        If the scores cannot be normalised, no run failed, or fewer than two policies can be applied.
    DesignError
        If there are no two populations, fewer than three algorithms of which one is left out, or too few benchmarks
        for a ranking.

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

    >>> table = [(task, tool, loss) for task in "abcde" for tool, loss in
    ...          zip("XYZ" if task in "de" else "YXZ", (0.1, 0.3, 0.2) if task in "de" else (0.1, 0.2, 0.3))]
    >>> columns = dict(zip(["task", "tool", "loss"], zip(*table)))
    >>> runs = lt.Runs(columns, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> lt.robustness(runs, of="algorithms", variants="rank").sentences()[-1]
    'Without Z, Y is ahead of X by mean loss_rank (p = 0.704); with it X is ahead (p = 0.799).'
    """
    require_runs(runs)
    check_choice(of, "of", tuple(OF))
    alpha = check_fraction(alpha, "alpha")
    check_replicates(n_jobs=n_jobs, executor=executor, progress=progress)
    generator = resolve_rng(rng)
    for name, value in (("variants", variants), ("reference", reference)):
        if value is not None and name not in OF[of]:
            which = joined([f"of={kind!r}" for kind, names in OF.items() if name in names])
            raise ArgumentError(f"{name} is for {which}, got of={of!r}. Leave it out.")
    if of == "failures":
        refuse_without_failures(runs)
        return by_policies(runs, variants, reference, alpha)  # type: ignore[arg-type]
    if of == "score":
        return by_scores(runs, _methods(variants), alpha)
    if of == "population":
        return by_populations(runs, alpha)
    if of == "algorithms":
        jobs: dict[str, Any] = {"n_jobs": n_jobs, "executor": executor, "progress": progress}
        return by_algorithms(runs, variants, reference, alpha, **jobs)  # type: ignore[arg-type]
    from lmemtest.bench.ranking.rank import rank

    if of == "test":
        return rank(runs, "all", alpha=alpha, rng=generator)  # type: ignore[return-value]
    return rank(runs, "lmem", alpha=alpha).stability(progress=progress)  # type: ignore[union-attr]


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
