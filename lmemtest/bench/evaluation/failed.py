"""Answers that failed: what each kind of failure counts, and whether the verdict depends on it.

A job that was killed is no wrong answer, and a refusal may be one: who evaluates says which kind counts what. `Runs`
holds the failures and scores them; here are the limits of a scale, and the words for models and answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest.bench.data.failures import LEFT_OUT, count_failures, failures_by_kind, has_kinds
from lmemtest.bench.failures.counts import alike_p_values, failure_counts
from lmemtest.bench.robustness.variants import Variants, side_by_side
from lmemtest.core.caller import named
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import is_size
from lmemtest.core.words import joined, p_text, percent
from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    from lmemtest.bench.data.failures import Failures
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.means.comparisons import Comparisons

_AWAY = {"drop": "were left out", "retry": "were left out until they are run again, so the verdict is provisional"}


def failure_policy(policy: Any, runs: Runs, scale: tuple[float, float]) -> Any:
    """What failed answers count, as `Runs.score_failures` takes it; the worst score is the end of the scale."""
    by_kind, (low, high) = isinstance(policy, Mapping) and has_kinds(runs), scale
    counts = {
        kind: (low if runs.direction == "maximize" else high) if isinstance(given, str) and given == "worst" else given
        for kind, given in (policy if by_kind else {"": policy}).items()
    }
    for given in counts.values():
        if not (isinstance(given, str) and given in LEFT_OUT) and not (is_size(given) and low <= given <= high):
            raise ArgumentError(
                f"{named('score_failures')} must be 'worst', 'drop', 'retry' or a score from {low:g} to {high:g}, or, "
                f"where failed is a column of kinds, a mapping of each kind to one of these, got {given!r}."
            )
    return counts if by_kind else counts[""]


def failures_table(done: Failures | None) -> pd.DataFrame:
    """``kind``, ``model``, ``n_failed`` of ``n_answers``, and what they ``count``; no rows where none failed."""
    if done is None:
        return pd.DataFrame()
    names, failed, rows = count_failures(done.source, [done.source.algorithm])
    models = names[done.source.algorithm].tolist()
    table = failures_by_kind(done.source).rename(columns={"algorithm": "model"})
    if not has_kinds(done.source):
        table = pd.DataFrame({"kind": str(done.source.failed), "model": models, "n_failed": failed})[failed > 0]
    treatments = done.policy if isinstance(done.policy, Mapping) else dict.fromkeys(table["kind"], done.policy)
    of_model = dict(zip(models, rows.tolist(), strict=True))
    return table.assign(n_answers=table["model"].map(of_model), count=table["kind"].map(treatments))


def under_policies(
    done: Failures | None,
    compared: Comparisons,
    again: Callable[[Runs], Comparisons],
    scale: tuple[float, float],
    alpha: float,
) -> Variants | None:
    """The pairs as the policy has it, with the worst score for all failures, and without them; None of one way."""
    if done is None:
        return None
    worst, notes = failure_policy("worst", done.source, scale), []
    ways = {"as stated": ("as stated", "each kind as the policy says", compared, done.source.direction)}
    meanings = {"worst": "every failed answer has the worst score", "drop": "failed answers are left out"}
    for name, policy in {"worst": worst, "drop": "drop"}.items():
        if policy != done.policy:
            try:
                pairs = again(done.under(policy))
            except LmemtestError as error:  # a model of which every answer failed cannot be compared without them
                notes.append(f"{name} could not be applied: {error}")
                continue
            ways[name] = (f"under {name}", meanings[name], pairs, done.source.direction)
    lead = f"{done.n_failed:,} of {done.n_rows:,} answers failed ({percent(done.n_failed / done.n_rows)})"
    if len(ways) == 1:
        return None
    return side_by_side(ways, of="failures", alpha=alpha, lead=lead, notes=tuple(notes), noun="model")


def on_failures(table: pd.DataFrame, sensitivity: Variants | None) -> Iterator[str]:
    """What failed answers of each kind count, of whom they are, and which decisions depend on it."""
    for kind, rows in table.groupby("kind", sort=False) if len(table) else ():
        each = zip(rows["model"], rows["n_failed"], rows["n_answers"], strict=True)
        given = rows["count"].iloc[0]
        how = _AWAY.get(given) or f"count {written(float(given), '.6g')}"
        yield f"Failed answers ({kind}) {how}: {joined([f'{name} {k:,} of {n:,}' for name, k, n in each], most=8)}."
    if sensitivity is not None:
        yield from (sensitivity.overview, *sensitivity.changes, *sensitivity.notes)


def notes_on_failures(done: Failures | None, alpha: float) -> Iterator[str]:
    """Where answers that were left out are not spread over the models by chance."""
    left_out = None if done is None else done.left_out
    if left_out is None:
        return
    failed, ran, _, family = failure_counts(left_out)
    shown = [(where, p) for where, p in alike_p_values(failed, ran, family).items() if below(p, alpha)]
    for where, p in shown[-1:]:
        condition = " if answers fail independently" * (where == "run")
        yield (
            f"How many answers were left out depends on the model ({p_text(p)}, exact test{condition}). Means of the "
            "others compare models on what each could finish: run those answers again, or say what they count."
        )
