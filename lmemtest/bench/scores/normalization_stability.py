"""Whether decisions on normalised scores hang on which algorithms take part: each is left out in turn.

Ranks, min-max and z-scores of an algorithm are made of the scores of all, so leaving out one that nobody asks about can
turn the order of two others. Raw scores and scores relative to a baseline keep their means: what changes there are
standard errors, which draw on all algorithms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.normalise import ALL_METHODS
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.modelling.scores import reduced
from lmemtest.bench.robustness.scores import free_name, raw_runs
from lmemtest.bench.robustness.variants import advantages
from lmemtest.core.caller import advice
from lmemtest.core.replicates import Failure, check_replicates, replicate
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import counted, p_text
from lmemtest.errors import ArgumentError, DataWarning, DesignError
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.executors import Executor

__all__ = ["NormalizationStability", "normalization_stability"]

_COLUMNS = ["score", "left_out", "pairs", "order_changed", "decisions_changed", "leader", "leader_before"]
_OF_CHANGES = ["score", "left_out", "left", "right", "order", "p_before", "p_after", "decision"]


@result
class NormalizationStability(Result):
    """What leaving out one algorithm does to the comparisons of the others.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per score and algorithm left out: ``score``, ``left_out``; ``pairs`` that remain; ``order_changed``,
        of how many the one that is ahead changes; ``decisions_changed``, of how many the decision changes; ``leader``,
        who is ahead of all others then, and ``leader_before``, of those who remain in the whole table.
    changes : pandas.DataFrame
        One row per change: ``score``, ``left_out``, ``left`` (ahead in the whole table), ``right``; ``order`` ("same",
        "reversed"); ``p_before`` and ``p_after``, not adjusted; ``decision``: "reversed" (significant in both
        directions), "lost", "found", "same".
    scores : tuple of str
        What was compared: the normalised score, the raw one, and that relative to a baseline if there is one.
    alpha : float
        Level of each decision.
    notes : tuple of str
        Where an algorithm could not be left out.
    """

    parts = {"stability": "table", "changes": "changes"}
    formats = {"p_before": "p", "p_after": "p"}

    table: pd.DataFrame
    changes: pd.DataFrame
    scores: tuple[str, ...]
    alpha: float
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return "Comparisons of the other algorithms, with each left out in turn"

    @property
    def facts(self) -> tuple[str, ...]:
        return (
            f"Decisions at alpha = {self.alpha:.3g} for each pair by itself, so that fewer pairs alone change none. "
            "Standard errors draw on all algorithms and may change on any score.",
        )

    def sentences(self) -> tuple[str, ...]:
        """How many pairs change on each score, and each order that is reversed."""
        turned: list[Any] = self.changes[self.changes["order"] == "reversed"].to_dict("records")
        return (*(self._overview(score) for score in self.scores), *(self._reversal(row) for row in turned))

    def _overview(self, score: str) -> str:
        """On one score: pairs by whether some other algorithm, left out, changes them."""
        found = self.changes[self.changes["score"] == score]
        orders = len(found.loc[found["order"] == "reversed", ["left", "right"]].drop_duplicates())
        decided = len(found.loc[found["decision"] != "same", ["left", "right"]].drop_duplicates())
        led = self.table[self.table["score"] == score]
        moved = int((led["leader"] != led["leader_before"]).sum())
        if not (orders or decided or moved):
            return (
                f"By mean {score}, leaving out one other algorithm changes neither the order of a pair nor a decision."
            )
        known = f", and who is ahead of all others in {moved:,} of {len(led):,} cases" if moved else ""
        return (
            f"By mean {score}, leaving out one other algorithm changes the order of {counted(orders, 'pair')} and the "
            f"decision on {decided:,}{known}."
        )

    def _reversal(self, row: Mapping[str, Any]) -> str:
        return (
            f"Without {row['left_out']}, {row['right']} is ahead of {row['left']} by mean {row['score']} "
            f"({p_text(row['p_after'])}); with it {row['left']} is ahead ({p_text(row['p_before'])})."
        )


@one_blas_thread()
def normalization_stability(
    runs: Runs,
    method: str | None = None,
    *,
    reference: Any = None,
    alpha: float = 0.05,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> NormalizationStability:
    """Leave out each algorithm in turn, normalise again, and see which comparisons of the others change.

    Parameters
    ----------
    runs : Runs
        As they were measured, or as `Runs.normalize` returns them; three algorithms or more.
    method : str, optional
        The normalisation, of `Runs.normalize`; by default that of the runs, or "rank" for runs as measured.
    reference : str, float or mapping, optional
        A baseline: the score relative to it is looked at beside the others.
    alpha : float in (0, 1)
        Level of each decision, by itself.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress bar, by
        default on a terminal after two seconds.

    Returns
    -------
    NormalizationStability

    Raises
    ------
    ArgumentError
        If `runs` is a plain table or an option is unknown.
    DesignError
        If fewer than three algorithms take part.
    DataError
        If the scores cannot be normalised.

    Notes
    -----
    The model is the recommended one of the whole table throughout, so that scores alone change. On the raw score, and
    on one relative to a baseline that stays in, means of complete tables do not change.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = [(task, tool, loss) for task in "abcde" for tool, loss in
    ...          zip("XYZ" if task in "de" else "YXZ", (0.1, 0.3, 0.2) if task in "de" else (0.1, 0.2, 0.3))]
    >>> columns = dict(zip(["task", "tool", "loss"], zip(*table)))
    >>> runs = lt.Runs(columns, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> lt.normalization_stability(runs, "rank").sentences()[-1]
    'Without Z, Y is ahead of X by mean loss_rank (p = 0.704); with it X is ahead (p = 0.799).'
    """
    require_runs(runs)
    if method is not None:
        check_choice(method, "method", ALL_METHODS)
    alpha = check_fraction(alpha, "alpha")
    check_replicates(n_jobs=n_jobs, executor=executor, progress=progress)
    if len(runs.algorithms) < 3:
        raise DesignError(
            f"runs must have three algorithms or more, as one is left out and two are compared, got "
            f"{len(runs.algorithms)}."
        )
    raw = raw_runs(runs) or runs
    if raw.is_lazy:  # one query instead of several for each algorithm
        raw = type(raw)(raw.to_frame(), **raw.roles())
    before = runs.scale
    if method is None:
        method = "rank" if before is None else before.method
    same = before is not None and before.method == method
    by = before.by if before is not None and same and before.by else None
    given = dict(before.anchors.given) if before is not None and same and before.anchors is not None else {}
    if method == "baseline" and not given:
        given = {"reference": reference}
    elif method in ("gap", "improvability") and not given:
        how = advice("best_known", method=method)
        raise ArgumentError(f"method={method!r} needs the best known values: give runs that have them, {how}.")
    asked: list[tuple[str | None, Any, dict[str, Any]]] = [(method, by, given), (None, None, {})]
    if reference is not None and method != "baseline":
        asked.append(("baseline", by, {"reference": reference}))
    scores = [
        _Score.of(raw, name, groups, options, runs.score if same and name == method else None)
        for name, groups, options in asked
    ]
    left_out = [(score, level) for score in scores for level in score.may_leave(raw)]
    # one of each score in turn, so that the time of the first tells that of all
    turns = sorted(range(len(left_out)), key=lambda i: raw.algorithms.index(left_out[i][1]))
    # the refits draw nothing; replicate() brings processes, the progress bar and failures that are kept
    refits = replicate(
        _LeftOut(raw, [left_out[i] for i in turns]),
        len(turns),
        rng=0,
        n_jobs=n_jobs,
        executor=executor,
        progress=progress,
        label="Without each algorithm",
        fewer=None,
    )
    rows, changes, notes = [], [], [note for score in scores for note in score.notes(raw)]
    found = dict(zip(turns, refits, strict=True))
    for i, (score, level) in enumerate(left_out):
        after = found[i]
        if isinstance(after, Failure):  # such as ranks that are the same on all benchmarks
            notes.append(f"Without {level} mean {score.label} was not compared: {after.message}")
            continue
        row, changed = _compared(score.everyone.join(after.add_suffix("_after"), how="inner"), alpha)
        rows.append({"score": score.label, "left_out": level, **row})
        changes.append(changed.assign(score=score.label, left_out=level))
    return NormalizationStability(
        table=pd.DataFrame(rows, columns=_COLUMNS),
        changes=pd.concat(changes, ignore_index=True)[_OF_CHANGES] if changes else pd.DataFrame(columns=_OF_CHANGES),
        scores=tuple(score.label for score in scores),
        alpha=alpha,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Score:
    """A score that is made of the raw one, its name, its model, and the pairs of all algorithms."""

    method: str | None
    by: Any
    given: dict[str, Any]
    name: str
    label: str
    formula: str
    curves: str  # what a curve over the budget counts; "model" where there are none
    everyone: pd.DataFrame

    @classmethod
    def of(cls, raw: Runs, method: str | None, by: Any, given: dict[str, Any], label: str | None) -> _Score:
        name = raw.score if method is None else free_name(raw, method)
        whole = _scaled(raw, method, by, name, given)
        model = recommend(whole)
        curves = "model" if model.runs.curve is None else model.runs.curve.how
        return cls(
            method=method, by=by, given=given, name=name, label=label or whole.score, formula=model.formula,
            curves=curves, everyone=_pairs(model.formula, model.runs),
        )  # fmt: skip

    def may_leave(self, raw: Runs) -> list[Any]:
        """Algorithms without which the score exists."""
        needed = set(map(str, self.given.values()))
        return [level for level in raw.algorithms if str(level) not in needed]

    def notes(self, raw: Runs) -> list[str]:
        kept = self.may_leave(raw)
        needed = [level for level in raw.algorithms if level not in kept]
        return [f"Without {level} there is no {self.label}, so it was not left out." for level in needed]

    def pairs_without(self, raw: Runs, level: Any) -> pd.DataFrame:
        rest = raw.filter(**{raw.algorithm: [name for name in raw.algorithms if name != level]})
        scaled = _scaled(rest, self.method, self.by, self.name, self.given)
        return _pairs(self.formula, reduced(scaled, self.curves))


@dataclass(frozen=True, slots=True, eq=False)
class _LeftOut:
    """Pairs by a score without an algorithm, by the number of the replicate; picklable, so processes can be spawned."""

    raw: Runs
    pairs: list[tuple[_Score, Any]]

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        score, level = self.pairs[rng.bit_generator.seed_seq.spawn_key[-1]]  # type: ignore[attr-defined]
        return score.pairs_without(self.raw, level)


def _scaled(runs: Runs, method: str | None, by: Any, name: str, given: dict[str, Any]) -> Runs:
    if method is None:
        return runs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of the whole table they were given when it was normalised
        return runs.normalize(method, by, name=name, **given)


def _pairs(formula: str, runs: Runs) -> pd.DataFrame:
    """By how much left is better, with its p-value, by pair."""
    pairs = emmeans(fit_lmm(formula, runs), runs.algorithm).pairs(adjust="none").to_frame()
    frame = pairs[["left", "right"]].assign(gap=advantages(pairs, runs.direction), p=pairs["p_value"])
    return frame.set_index(["left", "right"])


def _compared(both: pd.DataFrame, alpha: float) -> tuple[dict[str, Any], pd.DataFrame]:
    """Counts of what changes, and the pairs that do."""
    gap, gap_after = both["gap"].to_numpy(), both["gap_after"].to_numpy()
    p, p_after = both["p"].to_numpy(), both["p_after"].to_numpy()
    shown, shown_after = below(p, alpha), below(p_after, alpha)
    reversed_ = gap * gap_after < 0
    decision = np.select(
        [shown & shown_after & reversed_, shown & ~shown_after, ~shown & shown_after],
        ["reversed", "lost", "found"],
        "same",
    )
    left, right = (both.index.get_level_values(side).to_numpy() for side in ("left", "right"))
    swap = gap < 0
    changes = pd.DataFrame(
        {
            "left": np.where(swap, right, left),
            "right": np.where(swap, left, right),
            "order": np.where(reversed_, "reversed", "same"),
            "p_before": p,
            "p_after": p_after,
            "decision": decision,
        }
    )
    row = {
        "pairs": len(both),
        "order_changed": int(reversed_.sum()),
        "decisions_changed": int((decision != "same").sum()),
        "leader": _leader(left, right, gap_after),
        "leader_before": _leader(left, right, gap),
    }
    return row, changes[reversed_ | (decision != "same")]


def _leader(left: Any, right: Any, gap: Any) -> str:
    """Who is ahead most often: of all others, where means are compared."""
    ahead = pd.Series(np.concatenate([left[gap > 0], right[gap < 0]]), dtype=object).value_counts()
    most = ahead[ahead == ahead.max()].index.astype(str) if len(ahead) else []
    return min(most, default="")
