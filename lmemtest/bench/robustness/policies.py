"""What the verdict owes to what a failed run counts: the same comparison under several policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.failures import (
    check_reference,
    compared_within,
    count_failures,
    failures_by_kind,
    has_kinds,
    rows_or_runs,
)
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.robustness.variants import Variants, compared, side_by_side
from lmemtest.core.rounding import written
from lmemtest.core.words import joined, percent
from lmemtest.errors import ArgumentError, DataError, LmemtestError

if TYPE_CHECKING:
    from lmemtest.bench.data.failures import Failures
    from lmemtest.bench.robustness.variants import Way

RANK = "rank"
USUAL = ("worst", RANK, "drop")
BY_KIND = "by kind"
MOST_KINDS = 4  # that are each left out by itself
MEANING = {
    "worst": "a failed run has the worst score of {its}",
    RANK: "scores are ranks within {the}, and a failed run is the last",
    "drop": "failed runs are left out",
    "retry": "failed runs are left out until they are run again",
    "baseline": "a failed run has the mean score of {reference} on {its}",
}


def by_policies(
    runs: Runs, policies: Sequence[Any] | Mapping[str, Any] | None, reference: Any, alpha: float
) -> Variants:
    """The verdict under several policies for failed runs, each by its recommended model.

    Policies are those of `Runs.score_failures`, and "rank": ranks within the benchmark with failed runs last. By
    default "worst", "rank", "drop", "baseline" where `reference` is given, and the policy that the runs have been
    scored by; of two to four kinds of failures also each left out by itself, the others with the worst score. A policy
    that cannot be applied (every run of a benchmark failed, so there is no worst score) is left out, which a note says.
    """
    failures, source = runs.failures, runs if runs.failures is None else runs.failures.source
    if reference is not None:
        check_reference(source, reference)
    named = _named(policies, reference, failures, source)
    failed = int(count_failures(source)[1].sum())
    if not failed:
        raise DataError("No run failed, so there is nothing that depends on a policy: compare the runs as they are.")
    if failed == source.n_rows:
        raise DataError(
            f"All {failed:,} {rows_or_runs(source)} failed, so no policy has a score to compare. Does the column of "
            "scores, or of failures, hold what it should?"
        )
    ways: dict[str, Way] = {}
    notes, last = [], None
    where = compared_within(source)
    for name, (policy, of) in named.items():
        try:
            scored = _scored(runs, source, policy, of)
            meaning = _meaning(policy, of, where)
            if isinstance(policy, Mapping) and has_kinds(source):
                meaning = "; ".join(f"{kind}: {_meaning(each, of, where)}" for kind, each in policy.items())
            _, pairs = compared(scored.with_named_algorithms(), {"alpha": alpha})
            ways[name] = (f"under {name}", meaning, pairs, scored.direction)
        except ArgumentError:
            raise
        except LmemtestError as error:
            notes.append(f"{name} could not be applied: {error}")
            last = error
    if len(ways) < 2:
        raise DataError(f"Fewer than two policies could be applied, so there is nothing to compare. {last}")
    noun, n = rows_or_runs(source), source.n_rows
    return side_by_side(
        ways,
        of="failures",
        among=f"under the policies {joined(list(ways), most=8)}",
        alpha=alpha,
        lead=f"{failed:,} of {n:,} {noun} failed ({percent(failed / n)})",
        notes=(*source.study.sampled.notes, *notes),
    )


def by_usual_policies(runs: Runs, alpha: float) -> Variants | None:
    """The verdicts under the usual policies; None where only one can be applied."""
    try:
        return by_policies(runs, None, None, alpha)
    except LmemtestError:  # another policy may have no model
        return None


def _named(policies: Any, reference: Any, failures: Failures | None, source: Runs) -> dict[str, tuple[Any, Any]]:
    """The policies with their references, by the names that the result gives them."""
    if policies is None:
        policies_and_references: list[tuple[Any, Any]] = [
            (name, None) for name in USUAL if source.benchmark is not None or name != RANK
        ]
        policies_and_references += [("baseline", reference)] if reference is not None else []
        if failures is not None and (failures.policy, failures.reference) not in policies_and_references:
            policies_and_references.insert(0, (failures.policy, failures.reference))
        named = {_name(policy, of, source): (policy, of) for policy, of in policies_and_references}
        kinds = failures_by_kind(source)["kind"].unique().tolist() if has_kinds(source) else []
        for kind in kinds if 1 < len(kinds) <= MOST_KINDS else []:
            one_out = ({other: "drop" if other == kind else "worst" for other in kinds}, None)
            if one_out not in policies_and_references:
                named[f"drop {kind}"] = one_out
        return named
    if isinstance(policies, str) or not isinstance(policies, (Mapping, Sequence)):
        raise ArgumentError(f"variants must be several policies, such as ('worst', 'drop'), got {policies!r}.")
    if isinstance(policies, Mapping):
        items = [(str(name), policy) for name, policy in policies.items()]
    else:
        items = [(_name(policy, reference, source), policy) for policy in policies]
    named = {name: (policy, reference if _uses_baseline(policy) else None) for name, policy in items}
    if len(items) < 2 or len(named) < len(items):
        raise ArgumentError(
            "variants must be two or more policies of different names, got "
            f"{joined([name for name, _ in items], most=8) if items else 'none'}. Name them: variants={{name: policy}}."
        )
    return named


def _is(policy: Any, word: str) -> bool:
    return isinstance(policy, str) and policy == word


def _uses_baseline(policy: Any) -> bool:
    return any(_is(given, "baseline") for given in (policy.values() if isinstance(policy, Mapping) else [policy]))


def _name(policy: Any, reference: Any, source: Runs) -> str:
    """What tables call a policy."""
    if _is(policy, "baseline"):
        return f"baseline {reference}" if reference is not None else "baseline"
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Mapping):
        return BY_KIND if has_kinds(source) else "given values"
    if callable(policy):
        return str(getattr(policy, "__name__", "function")).replace("<lambda>", "function")
    return f"score {written(float(policy), '.6g')}"


def _meaning(policy: Any, reference: Any, where: str) -> str:
    if isinstance(policy, str):
        its = f"its {where}" if where != "table" else "the table"
        return MEANING[policy].format(its=its, the=f"the {where}", reference=reference)
    if isinstance(policy, Mapping) or callable(policy):
        return "a failed run has a value of its benchmark"
    return f"a failed run has the score {written(float(policy), '.6g')}"


def _scored(runs: Runs, source: Runs, policy: Any, reference: Any) -> Runs:
    """The runs under a policy, with what was done with them since they were scored."""
    if not _is(policy, RANK):
        failures = runs.failures
        return (
            source.score_failures(policy, reference=reference)
            if failures is None
            else failures.under(policy, reference)
        )
    steps = () if runs.failures is None else runs.failures.then
    ends = source.study.groups(())
    span = float(ends.high[0] - ends.low[0]) + 1.0
    scored = source.score_failures(float(ends.high[0] + span if source.direction == "minimize" else ends.low[0] - span))
    for step in steps:
        if getattr(step, "func", None) is not Runs.normalize:  # ranks take the place of another normalisation
            scored = step(scored)
    return scored.normalize("rank")
