"""Which comparisons of normalised scores change when another algorithm leaves the table.

Ranks, min-max and z-scores of an algorithm are made of the scores of all, so leaving out one that nobody asks about can
turn the order of two others. Raw scores and scores relative to a baseline keep their means: what changes there are
standard errors, which draw on all algorithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.normalise import ALL_METHODS
from lmemtest.bench.data.per_run import reduced
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.robustness.variants import advantages, raw_runs
from lmemtest.core.caller import advice
from lmemtest.core.replicates import Failure, replicate
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.validate import check_choice, free_name
from lmemtest.core.words import counted, p_text
from lmemtest.errors import ArgumentError, DataWarning, DesignError
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

    Scaled = Callable[[Runs], Runs]  # the runs with a score that is made of the raw one
    Left = tuple[Scaled, str, str, Any]  # how scores are made, the model, what a curve counts, who is left out

_COLUMNS = ["score", "left_out", "pairs", "order_changed", "decisions_changed", "leader", "leader_before"]
_OF_CHANGES = ["score", "left_out", "left", "right", "order", "p_before", "p_after", "decision"]


def by_algorithms(runs: Runs, method: str | None, reference: Any, alpha: float, **replicates: Any) -> Answer:
    """Leave out each algorithm in turn, normalise again, and see which comparisons of the others change.

    The scores are the normalised one (by default that of the runs, or ranks), the raw one, and that relative to a
    baseline if there is a `reference`. The model is the recommended one of the whole table throughout, so that scores
    alone change. On the raw score, and on one relative to a baseline that stays in, means of complete tables do not.
    """
    if method is not None:
        check_choice(method, "variants", ALL_METHODS)
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
    anchors = dict(before.arguments or {}) if before is not None and same else {}
    if method == "baseline" and not anchors:
        anchors = {"reference": reference}
    elif method in ("gap", "improvability") and not anchors:
        how = advice("best_known", method=method)
        raise ArgumentError(f"variants={method!r} needs the best known values: give runs that have them, {how}.")
    kinds: list[tuple[str | None, Any, dict[str, Any]]] = [(method, by, anchors), (None, None, {})]
    if reference is not None and method != "baseline":
        kinds.append(("baseline", by, {"reference": reference}))
    notes: list[str] = []
    everyone: dict[str, pd.DataFrame] = {}  # the pairs of all algorithms, by score
    labels: list[str] = []
    left_out: list[Left] = []
    for name, groups, options in kinds:
        of_score = raw.score if name is None else free_name(f"{raw.score}_{name}", raw.columns)
        scale = partial(_scaled, method=name, by=groups, name=of_score, options=options)
        whole = scale(raw)
        model = recommend(whole)
        label = runs.score if same and name == method else whole.score
        everyone[label] = _pairs(model.formula, model.runs)
        curves = "model" if model.runs.curve is None else model.runs.curve.how
        needed = set(map(str, options.values()))
        for level in raw.algorithms:
            if str(level) in needed:
                notes.append(f"Without {level} there is no {label}, so it was not left out.")
            else:
                left_out.append((scale, model.formula, curves, level))
                labels.append(label)
    # one of each score in turn, so that the time of the first tells that of all
    turns = sorted(range(len(left_out)), key=lambda i: raw.algorithms.index(left_out[i][-1]))
    # the refits draw nothing; replicate() brings processes, the progress bar and failures that are kept
    task = partial(_pairs_without, raw=raw, left_out=[left_out[i] for i in turns])
    refits = replicate(task, len(turns), rng=0, label="Without each algorithm", fewer=None, **replicates)
    of_turn = dict(zip(turns, refits, strict=True))
    rows, changes = [], []
    for i, label in enumerate(labels):
        level, after = left_out[i][-1], of_turn[i]
        if isinstance(after, Failure):  # such as ranks that are the same on all benchmarks
            notes.append(f"Without {level} mean {label} was not compared: {after.message}")
            continue
        row, changed = _compared(everyone[label].join(after.add_suffix("_after"), how="inner"), alpha)
        rows.append({"score": label, "left_out": level, **row})
        changes.append(changed.assign(score=label, left_out=level))
    table = pd.DataFrame(rows, columns=_COLUMNS)
    changed = pd.concat(changes, ignore_index=True)[_OF_CHANGES] if changes else pd.DataFrame(columns=_OF_CHANGES)
    return Answer(
        question="robustness",
        title="Comparisons of the other algorithms, with each left out in turn",
        tables={"table": table, "changes": changed},
        values={"of": "algorithms", "scores": tuple(everyone), "alpha": alpha},
        facts=(
            f"Decisions at alpha = {alpha:.3g} for each pair separately, so that fewer pairs alone change none. "
            "Standard errors draw on all algorithms and may change on any score.",
        ),
        findings=_findings(table, changed, tuple(everyone)),
        notes=tuple(notes),
        formats={"p_before": "p", "p_after": "p"},
    )


def _findings(table: pd.DataFrame, changes: pd.DataFrame, scores: tuple[str, ...]) -> tuple[str, ...]:
    """How many pairs change on each score, and each order that is reversed."""
    sentences = []
    reversed_ = changes["order"] == "reversed"
    for score in scores:
        of_score = changes["score"] == score
        orders = len(changes.loc[of_score & reversed_, ["left", "right"]].drop_duplicates())
        decided = len(changes.loc[of_score & (changes["decision"] != "same"), ["left", "right"]].drop_duplicates())
        leaders = table[table["score"] == score]
        moved = int((leaders["leader"] != leaders["leader_before"]).sum())
        head = f"By mean {score}, leaving out one other algorithm changes"
        if not (orders or decided or moved):
            sentences.append(f"{head} neither the order of a pair nor a decision.")
            continue
        first = f", and who is ahead of all others in {moved:,} of {len(leaders):,} cases" if moved else ""
        sentences.append(f"{head} the order of {counted(orders, 'pair')} and the decision on {decided:,}{first}.")
    for row in changes[reversed_].to_dict("records"):
        sentences.append(
            f"Without {row['left_out']}, {row['right']} is ahead of {row['left']} by mean {row['score']} "
            f"({p_text(row['p_after'])}); with it {row['left']} is ahead ({p_text(row['p_before'])})."
        )
    return tuple(sentences)


def _scaled(runs: Runs, method: str | None, by: Any, name: str, options: dict[str, Any]) -> Runs:
    if method is None:
        return runs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of the whole table they were given when it was normalised
        return runs.normalize(method, by, name=name, **options)


def _pairs_without(rng: np.random.Generator, raw: Runs, left_out: list[Left]) -> pd.DataFrame:
    """Pairs by a score without an algorithm, by the number of the replicate."""
    scale, formula, curves, level = left_out[rng.bit_generator.seed_seq.spawn_key[-1]]  # type: ignore[attr-defined]
    rest = raw.filter(**{raw.algorithm: [name for name in raw.algorithms if name != level]})
    return _pairs(formula, reduced(scale(rest), curves))


def _pairs(formula: str, runs: Runs) -> pd.DataFrame:
    """By how much left is better, with its p-value, by pair."""
    pairs = emmeans(fit_lmm(formula, runs), runs.algorithm).pairs(adjust="none").to_frame()
    frame = pairs[["left", "right"]].assign(gap=advantages(pairs, runs.direction), p=pairs["p_value"])
    return frame.set_index(["left", "right"])


def _compared(both: pd.DataFrame, alpha: float) -> tuple[dict[str, Any], pd.DataFrame]:
    """Counts of what changes, and the pairs that do."""
    gap, gap_after = both["gap"].to_numpy(), both["gap_after"].to_numpy()
    p, p_after = both["p"].to_numpy(), both["p_after"].to_numpy()
    significant, shown_after = below(p, alpha), below(p_after, alpha)
    reversed_ = gap * gap_after < 0
    decision = np.select(
        [significant & shown_after & reversed_, significant & ~shown_after, ~significant & shown_after],
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
