"""Tables that no evaluation is made from: what is wrong with them, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from lmemtest.core.caller import advice, named
from lmemtest.core.frames import collected
from lmemtest.core.rounding import written
from lmemtest.core.validate import is_size
from lmemtest.core.words import counted, format_level, joined, listed
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.cells import Groups

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index, Mask

_RIGHT = ("correct", "right", "true", "yes", "passed", "pass", "c")  # marks of a right answer
_MARKS = 6  # different marks at most: more are something else


def refuse_marks(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], score: str) -> None:
    """Scores that are words, such as "correct", with the numbers to write for them."""
    if frame.collect_schema()[score].is_numeric():
        return
    few = collected(frame.lazy().select(nw.col(score)).unique().head(_MARKS + 2))
    marks = [mark for mark in few.get_column(score).to_list() if isinstance(mark, str)]
    right = [mark for name in _RIGHT for mark in marks if mark.strip().lower() == name]
    if not right or len(marks) > _MARKS:
        return
    others = [repr(mark) for mark in sorted(marks) if mark != right[0]]
    rest = f"0 for {others[0]}" if len(others) == 1 else "what they are worth for the others"
    held = listed(map(repr, sorted(marks)))
    change = f"table[{score!r}] = (table[{score!r}] == {right[0]!r}) * 1.0"
    raise DataError(
        f"{named('score')} must hold numbers from 0 to 1, and {score!r} holds words: {held}. "
        f"Write 1 for {right[0]!r} and {rest}" + (advice("pandas", code=change) if len(others) < 2 else "") + "."
    )


def check_scale(low: Any, high: Any) -> tuple[float, float]:
    """The ends of a scale of scores."""
    for name, end in (("min_score", low), ("max_score", high)):
        if not is_size(end):
            raise ArgumentError(f"{named(name)} must be a finite number, got {end!r}.")
    if not low < high:
        raise ArgumentError(
            f"{named('max_score')} must be above {named('min_score')}, got {written(high, '.6g')} and "
            f"{written(low, '.6g')}."
        )
    return float(low), float(high)


def refuse_off_scale(frame: Any, score: str, scale: tuple[float, float]) -> None:
    """Scores beyond the ends that were given."""
    ends = collected(frame.lazy().select(nw.col(score).min().alias("low"), nw.col(score).max().alias("high"))).row(0)
    beyond = [value for value, out in zip(ends, (ends[0] < scale[0], ends[1] > scale[1]), strict=True) if out]
    if beyond:
        raise DataError(
            f"Column {score!r} must hold scores from {scale[0]:g} to {scale[1]:g} ({named('min_score')} and "
            f"{named('max_score')}), got {written(beyond[0], '.6g')}."
        )


def refuse_scores(groups: Groups, score: str, model: Index, models: Sequence[str], scale: tuple[float, float]) -> None:
    """Scores that are missing, or beyond the ends of a scale: no shares of 1 where none was given."""
    if groups.n_bad.any():
        missing, rows = int(groups.n_bad.sum()), int(groups.n.sum())
        of = joined([models[i] for i in np.unique(model[groups.n_bad > 0])])
        raise DataError(
            f"Column {score!r} has no finite score in {missing:,} of {rows:,} rows (of {of}). An answer that failed is "
            "not one that was never asked for. Say what it counts, 0 if the model is to blame, and leave it out only "
            "if it is not: " + advice("failed_answers")
        )
    y = groups.mean
    low, high = float(groups.low.min()), float(groups.high.max())
    if low >= scale[0] and high <= scale[1]:
        return
    if low < 0.0:
        raise DataError(
            f"Column {score!r} must hold scores from 0 to 1, got {written(low, '.6g')} "
            f"({int((y < 0.0).sum()):,} below 0). {_ends(low, high)} For scores without ends use Runs and analyze."
        )
    beyond = int((y > 1.0).sum())
    if high <= 100.0 and ((y == 0.0) | (y > 1.0)).all():
        raise DataError(
            f"Column {score!r} must hold scores from 0 to 1, and looks like percentages: {beyond:,} of {len(y):,} are "
            f"above 1, up to {written(high, '.6g')}. Divide the column by 100."
        )
    above = np.unique(model[y > 1.0])
    whose = f", all of {joined([models[i] for i in above])}" if len(above) < len(models) else ""
    raise DataError(
        f"Column {score!r} must hold scores from 0 to 1; {beyond:,} of {len(y):,} are above 1, up to "
        f"{written(high, '.6g')}{whose}. If shares and percentages are mixed, as where models come from different "
        f"tools, divide the percentages by 100 and leave the shares as they are. {_ends(low, high)} Else "
        "divide by the most points of the item."
    )


def _ends(low: float, high: float) -> str:
    ends = advice("ends", low=int(np.floor(low)), high=int(np.ceil(high)))
    return f"If all items have one scale, give its ends; from the lowest to the highest score here: {ends}."


def refuse_copies(groups: Groups, used: dict[str, str]) -> None:
    """Several rows of one answer."""
    several = groups.n > 1
    if not several.any():
        return
    at = int(np.flatnonzero(several)[0])
    frame = groups.keys.frame()
    example = ", ".join(f"{name}={format_level(frame[name].iloc[at])}" for name in used.values())
    what = f"{counted(int(several.sum()), 'answer')} of {len(several):,} have several rows, for instance {example}"
    if "epoch" in used:
        raise DataError(
            f"{what}. Rows must be unique: drop the copies, or name what else distinguishes them (judge=...)."
        )
    tasks = (
        "if items of several tasks have the same names, " + advice("column", role="task") + "; "
        if "task" not in used
        else ""
    )
    raise DataError(
        f"{what}. If they are repeated attempts, "
        + f"name their column: {advice('column', role='epoch')}"
        + f" (add one that numbers them if there is none); {tasks}if they are scores of several judges, "
        + advice("column", role="judge")
        + "; else keep one of them, "
        + advice("last_duplicate")
        + "."
    )


def refuse_counting(score: str, name: str, value: str, *, graded: bool, n_judges: int) -> None:
    """Scores of which nothing is counted, and judges who are a sample, where an argument is for counts."""
    leave = f"Leave out {advice('value', name=name, value=value)}"
    if graded:
        raise DataError(
            f"{named(name)} {value!r} is for scores of 0 and 1, which are counted, and {score!r} has scores between. "
            f"{leave}, or write 1 for what counts as right and 0 for the rest."
        )
    if n_judges:
        raise DesignError(
            f"{named(name)} {value!r} counts right answers, and the {n_judges} judges are a sample who need not agree "
            f"on them. {leave}, or give each answer one score, such as that of most judges."
        )


def refuse_partial_judging(by_judge: Array, judges: Sequence[str], models: Sequence[str]) -> None:
    """Every judge must have scored what any judge has scored."""
    seen = ~np.isnan(by_judge)
    lacking = (seen.any(axis=0) & ~seen).sum(axis=(1, 2))
    if not lacking.any():
        return
    rated: Mask = np.any(seen, axis=2)  # (judges, models)
    of_some = np.flatnonzero(~rated.all(axis=1))
    if len(of_some):
        at = int(of_some[rated[of_some].sum(axis=1).argmin()])
        whom = joined([name for name, there in zip(models, rated[at], strict=True) if there])
        raise DesignError(
            f"Judge {judges[at]} has scored answers of {whom} alone, so differences between models cannot be told from "
            "differences between judges. Let every judge score all models"
            + (", or keep the judges that did." if rated.all(axis=1).any() else ".")
        )
    worst = int(lacking.argmax())
    raise DesignError(
        f"Judge {judges[worst]} has not scored {int(lacking[worst]):,} of {int(seen.any(axis=0).sum()):,} pairs of "
        "model and item that others have, so judges and items cannot be distinguished. Keep what all judges scored, "
        "or one judge."
    )


def refuse_nothing(blocks: Blocks) -> None:
    """Answers that do not vary in what would be compared."""
    scores, starts = blocks.means, np.searchsorted(blocks.block, np.arange(len(blocks.names)))
    several = bool((np.add.reduceat(blocks.n_runs > 0, starts, axis=0, dtype=np.intp) > 1).any())
    low, high = np.nanmin(scores), np.nanmax(scores)
    if low == high:
        raise DesignError(
            f"All scores are {low:g}, so the models cannot be distinguished. Add items that some model gets wrong."
            if low > 0.0
            else "All scores are 0, so the models cannot be distinguished. Add items that some model gets right."
        )
    if len(blocks.names) == 1 and not several:
        raise DesignError("There is one item, which says nothing about others. Add items.")
    if np.ptp(scores, axis=1).max() <= 1e-12:  # NaN where an answer is missing
        raise DesignError(
            "All models have the same score on every item, so there is nothing to compare. Were the answers of one "
            "model copied? Otherwise add items on which they differ."
        )
    highest, lowest = (by.reduceat(scores, starts, axis=0) for by in (np.fmax, np.fmin))
    if len(blocks.names) > 1 and several and np.nanmax(highest - lowest) <= 1e-12:
        within = np.nanmax(highest, axis=0) - np.nanmin(lowest, axis=0)
        if within.max() > 1e-12:
            raise DesignError(
                "Each model has one and the same score on all items of a task: these are scores of tasks, not answers "
                "to items. Keep one row per model and task, with the task as its item."
            )
    if (np.nanmax(scores, axis=0) - np.nanmin(scores, axis=0)).max() <= 1e-12:
        means = ", ".join(
            f"{name} {mean:.3g}" for name, mean in zip(blocks.algorithms, np.nanmean(scores, axis=0), strict=True)
        )
        raise DesignError(
            f"Each model has one and the same score on all its items ({means}), so nothing shows how uncertain their "
            "difference is. Add items that a model gets right and wrong by turns."
        )
