"""What the verdict owes to what a failed run counts: the same comparison under several policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.metafeature_interactions import fitted_quietly
from lmemtest.bench.data.failure_policies import check_reference, compared_within
from lmemtest.bench.data.failures import count_failures, refuse_without_failures, rows_or_runs
from lmemtest.bench.data.runs import Runs, require_runs, with_named_algorithms
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.table import Format
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_fraction
from lmemtest.core.words import counted, format_p, joined, p_text, percent
from lmemtest.errors import ArgumentError, DataError, LmemtestError
from lmemtest.lmm.means.emmeans import emmeans

if TYPE_CHECKING:
    from lmemtest.bench.data.failures import Failures
    from lmemtest.lmm.means.comparisons import Comparisons

__all__ = ["FailureSensitivity", "failure_sensitivity", "sensitivity_if_any"]

RANK = "rank"
USUAL = ("worst", RANK, "drop")
MEANING = {
    "worst": "a failed run has the worst score of {its}",
    RANK: "scores are ranks within {the}, and a failed run is the last",
    "drop": "failed runs are left out",
    "baseline": "a failed run has the mean score of {reference} on {its}",
}
NOBODY = "-"


@result
class FailureSensitivity(Result):
    """The verdict under each policy for failed runs.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair of algorithms: ``left``, ``right``, ``alike`` (whether all policies that test it decide it
        alike), ``opposite`` (whether two policies find opposite winners), ``n_policies`` (that test it), ``n_left``,
        ``n_right`` (how many find left, or right, significantly better).
    decisions : pandas.DataFrame
        One row per policy and pair: ``policy``, ``left``, ``right``, ``advantage`` (positive where left is better, on
        the scale of the policy), ``p_value`` (adjusted within the policy), ``better`` (who is significantly better;
        None where neither is, or the pair was not tested).
    means : pandas.DataFrame
        One row per policy and algorithm, best first: ``policy``, ``algorithm``, ``place``, ``mean``, ``se``.
    policies : dict
        What each policy does.
    n_failed, n_rows : int
        Failed rows, and all.
    noun : str
        What failed: "runs", or "scores" where a run was scored at several budgets.
    alpha : float
        Level of the decisions, under each policy for all pairs together.
    notes : tuple of str
        For which population the decisions hold, with families; policies that could not be applied, and why.
    """

    parts: ClassVar[Mapping[str, str]] = {"table": "table", "decisions": "decisions", "means": "means"}
    formats: ClassVar[Mapping[str, Format]] = {"p_value": format_p}

    table: pd.DataFrame
    decisions: pd.DataFrame
    means: pd.DataFrame
    policies: Mapping[str, str]
    n_failed: int
    n_rows: int
    noun: str
    alpha: float
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return "Who is better, under each policy for failed runs"

    @property
    def facts(self) -> tuple[str, ...]:
        return (
            f"{NOBODY}: neither is significantly better at alpha = {self.alpha:.3g}, for all pairs of a policy "
            "together, by its recommended model.",
            f"{'; '.join(f'{name}: {said}' for name, said in self.policies.items())}.",
        )

    def shown(self) -> pd.DataFrame:
        """One row per pair, one column per policy: who is better."""
        found = self.decisions.assign(better=self.decisions["better"].fillna(NOBODY))
        found.loc[found["p_value"].isna(), "better"] = "not tested"
        wide = found.pivot_table("better", ["left", "right"], "policy", aggfunc="first", sort=False)
        wide = wide[list(self.policies)].reset_index()
        alike = self.table["alike"].map({True: "yes", False: "no"}).to_numpy()
        return wide.rename_axis(columns=None).assign(alike=alike)

    def sentences(self) -> tuple[str, ...]:
        """How many pairs are decided alike, who is best under which policy, and each pair that depends on it."""
        changed = self.table[~self.table["alike"]]
        return (self.overview(), *self._first(), *(self._change(row) for row in changed.to_dict("records")))

    def overview(self) -> str:
        """How many pairs are decided alike: the sentence for a paper."""
        tested = self.table[self.table["n_policies"] > 1]
        alike, count, policies = int(tested["alike"].sum()), len(tested), joined(self.policies, most=8)
        share = f"{self.n_failed:,} of {self.n_rows:,} {self.noun} failed ({percent(self.n_failed / self.n_rows)})"
        if not count:
            return f"{share}; no pair of algorithms can be tested under two of the policies {policies}."
        thin = int((self.table["n_policies"] < len(self.policies)).sum())
        if thin:
            policies += (
                f" that test {'it' if count == 1 else 'them'} ({counted(thin, 'pair')} cannot be tested under all)"
            )
        if alike == count:
            which = f"all {count:,} pairs of algorithms are" if count > 1 else "the pair of algorithms is"
            return f"{share}; {which} decided alike under the policies {policies}."
        opposite = int(tested["opposite"].sum())
        more = f", and {opposite:,} in opposite directions" if opposite else ""
        return (
            f"{share}; {alike:,} of {counted(count, 'pair')} of algorithms {'is' if alike == 1 else 'are'} decided "
            f"alike under the policies {policies}{more}."
        )

    def _first(self) -> list[str]:
        best = self.means[self.means["place"] == 1]
        names: dict[Any, list[str]] = {}
        for row in best.to_dict("records"):
            names.setdefault(row["algorithm"], []).append(row["policy"])
        if len(names) == 1:
            return [f"{next(iter(names))} has the best mean under every policy."]
        parts = [f"{name} under {joined(under, most=8)}" for name, under in names.items()]
        return [f"Which algorithm has the best mean depends on the policy: {joined(parts, most=8)}."]

    def _change(self, row: dict[Any, Any]) -> str:
        own = self.decisions[(self.decisions["left"] == row["left"]) & (self.decisions["right"] == row["right"])]
        own = own[own["p_value"].notna()]
        parts = []
        for winner in (row["left"], row["right"]):
            rows = own[own["better"] == winner].to_dict("records")
            if rows:
                loser = row["right"] if winner == row["left"] else row["left"]
                under = joined([f"{one['policy']} ({p_text(one['p_value'])})" for one in rows], most=8)
                parts.append(f"{winner} is better than {loser} under {under}")
        rows = own[own["better"].isna()].to_dict("records")
        if rows:
            under = joined([f"{one['policy']} ({p_text(one['p_value'])})" for one in rows], most=8)
            parts.append(f"no difference is found under {under}")
        return f"{'; '.join(parts)}."


@one_blas_thread()
def failure_sensitivity(
    runs: Runs,
    policies: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    reference: Any = None,
    alpha: float = 0.05,
) -> FailureSensitivity:
    """Compare algorithms under several policies for failed runs, and say which decisions depend on the policy.

    Parameters
    ----------
    runs : Runs
        With the role ``failed``, or as `Runs.score_failures` returns them: then what was done with the runs after that
        is done under each policy.
    policies : sequence, or mapping of str, optional
        Policies of `Runs.score_failures`, and "rank": ranks within the benchmark with failed runs last. A mapping gives
        them names. By default "worst", "rank", "drop", "baseline" where `reference` is given, and the policy that the
        runs have been scored by.
    reference : optional
        The algorithm of policy "baseline".
    alpha : float in (0, 1)
        Level of the decisions, under each policy for all pairs together.

    Returns
    -------
    FailureSensitivity

    Raises
    ------
    ArgumentError
        If the runs do not say which of them failed, or a policy is unknown.
    DataError
        If no run failed, or fewer than two of the policies can be applied.

    Notes
    -----
    Under each policy the recommended model is fitted and all pairs are tested. A policy that cannot be applied (every
    run of a benchmark failed, so there is no worst score) is left out, which a note says.

    The policies ask different questions: "drop" who is better when it works, "worst" and "baseline" who is better for
    somebody who starts it, "rank" who is ahead more often. That decisions differ does not show that one is wrong.

    Examples
    --------
    >>> import lmemtest as lt
    >>> cells = [(b, tool) for b in range(20) for tool in "ABC"]
    >>> table = {"task": [f"t{b}" for b, _ in cells], "tool": [tool for _, tool in cells]}
    >>> table["loss"] = [0.1 * b + (tool != "A") * 0.1 + 0.01 * (7 * b * ord(tool) % 10) for b, tool in cells]
    >>> table["crashed"] = [tool == "A" and b % 4 == 0 for b, tool in cells]
    >>> roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    >>> runs = lt.Runs(table, failed="crashed", **roles)
    >>> lt.failure_sensitivity(runs).overview()
    '5 of 60 runs failed (8.3 %); 1 of 3 pairs of algorithms is decided alike under the policies worst, rank and drop.'
    """
    require_runs(runs)
    refuse_without_failures(runs)
    alpha = check_fraction(alpha, "alpha")
    known, source = runs.failures, runs if runs.failures is None else runs.failures.source
    if reference is not None:
        check_reference(source, reference)
    named = _named(policies, reference, known, source.benchmark is not None)
    failed = int(count_failures(source)[1].sum())
    if not failed:
        raise DataError("No run failed, so there is nothing that depends on a policy: compare the runs as they are.")
    if failed == source.n_rows:
        raise DataError(
            f"All {failed:,} {rows_or_runs(source)} failed, so no policy has a score to compare. Does the column of "
            "scores, or of failures, hold what it should?"
        )
    verdicts: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}
    notes, last = [], None
    for name, (policy, of) in named.items():
        try:
            verdicts[name] = _verdict(_scored(runs, source, policy, of), alpha)
        except ArgumentError:
            raise
        except LmemtestError as error:
            notes.append(f"{name} could not be applied: {error}")
            last = error
    if len(verdicts) < 2:
        raise DataError(f"Fewer than two policies could be applied, so there is nothing to compare. {last}")
    decisions = pd.concat([pairs.assign(policy=name) for name, (pairs, _) in verdicts.items()], ignore_index=True)
    means = pd.concat([means.assign(policy=name) for name, (_, means) in verdicts.items()], ignore_index=True)
    return FailureSensitivity(
        table=_compared(decisions),
        decisions=decisions[["policy", "left", "right", "advantage", "p_value", "better"]],
        means=means[["policy", "algorithm", "place", "mean", "se"]],
        policies={name: _meaning(*named[name], compared_within(source)) for name in verdicts},
        n_failed=failed,
        n_rows=source.n_rows,
        noun=rows_or_runs(source),
        alpha=alpha,
        notes=(*source.study.sampled.notes, *notes),
    )


def sensitivity_if_any(runs: Runs, alpha: float) -> FailureSensitivity | None:
    """The verdicts under several policies; None where no run failed, or only one policy can be applied."""
    if runs.failures is None or not runs.failures.n_failed:
        return None
    try:
        return failure_sensitivity(runs, alpha=alpha)
    except LmemtestError:  # another policy may have no model
        return None


def _named(policies: Any, reference: Any, known: Failures | None, ranks: bool) -> dict[str, tuple[Any, Any]]:
    """The policies with their references, by the names that the result gives them."""
    if policies is None:
        found: list[tuple[Any, Any]] = [(name, None) for name in USUAL if ranks or name != RANK]
        found += [("baseline", reference)] if reference is not None else []
        if known is not None and (known.policy, known.reference) not in found:
            found.insert(0, (known.policy, known.reference))
        return {_name(policy, of): (policy, of) for policy, of in found}
    if isinstance(policies, str) or not isinstance(policies, (Mapping, Sequence)):
        raise ArgumentError(f"policies must be several, such as ('worst', 'drop'), got {policies!r}.")
    if isinstance(policies, Mapping):
        items = [(str(name), policy) for name, policy in policies.items()]
    else:
        items = [(_name(policy, reference), policy) for policy in policies]
    named = {name: (policy, reference if _is(policy, "baseline") else None) for name, policy in items}
    if len(items) < 2 or len(named) < len(items):
        raise ArgumentError(
            "policies must be two or more of different names, got "
            f"{joined([name for name, _ in items], most=8) if items else 'none'}. Name them: policies={{name: policy}}."
        )
    return named


def _is(policy: Any, word: str) -> bool:
    return isinstance(policy, str) and policy == word


def _name(policy: Any, reference: Any) -> str:
    """What tables call a policy."""
    if _is(policy, "baseline"):
        return f"baseline {reference}" if reference is not None else "baseline"
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Mapping):
        return "given values"
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
        own = runs.failures
        return source.score_failures(policy, reference=reference) if own is None else own.under(policy, reference)
    steps = () if runs.failures is None else runs.failures.then
    ends = source.study.groups(())
    span = float(ends.high[0] - ends.low[0]) + 1.0
    scored = source.score_failures(float(ends.high[0] + span if source.direction == "minimize" else ends.low[0] - span))
    for step in steps:
        if getattr(step, "func", None) is not Runs.normalize:  # ranks take the place of another normalisation
            scored = step(scored)
    name = f"{scored.score}_rank"
    while name in scored.columns:
        name += "_"
    return scored.normalize("rank", name=name)


def _verdict(runs: Runs, alpha: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The pairs, and the means from best to worst, by the recommended model."""
    runs = with_named_algorithms(runs)
    model = recommend(runs)
    fit = fitted_quietly(model.formula, model.runs)
    means = emmeans(fit, runs.algorithm, level=1.0 - alpha)
    pairs: Comparisons = means.pairs()
    frame, sign = pairs.to_frame(), -1.0 if runs.direction == "minimize" else 1.0
    gap, p = sign * frame["estimate"].to_numpy(dtype=float), frame["p_value"].to_numpy(dtype=float)
    found = np.nan_to_num(gap) != 0
    better = pd.Series(np.where(gap > 0, frame["left"], frame["right"]), dtype=object)
    decided = frame[["left", "right"]].assign(advantage=gap, p_value=p, better=better.where(found & below(p, alpha)))
    order = list(pairs.decisions(alpha=alpha, direction=runs.direction).levels)
    own = dict(zip(means.labels(), zip(means.estimate, means.se, strict=True), strict=True))
    rows = [(name, place, *own[name]) for place, name in enumerate(order, start=1)]
    return decided, pd.DataFrame(rows, columns=["algorithm", "place", "mean", "se"])


def _compared(decisions: pd.DataFrame) -> pd.DataFrame:
    """For each pair how many policies find whom better."""
    rows = []
    for (left, right), own in decisions.groupby(["left", "right"], sort=False):
        tested = own[own["p_value"].notna()]
        n_left, n_right = (int((tested["better"] == name).sum()) for name in (left, right))
        alike = len(set(tested["better"].fillna(NOBODY))) <= 1
        rows.append((left, right, alike, n_left > 0 and n_right > 0, len(tested), n_left, n_right))
    columns = ["left", "right", "alike", "opposite", "n_policies", "n_left", "n_right"]
    return pd.DataFrame(rows, columns=columns)
