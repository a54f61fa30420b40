"""TensorBoard: the scalars of event files as curves, a run for each folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pandas as pd

from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import imported, one_of
from lmemtest.bench.importers.sources import by_pattern, checked_pattern, one_type, parts_of
from lmemtest.core.caller import named, setting
from lmemtest.core.environment import extra_package
from lmemtest.errors import ArgumentError, DataError

ROLES = "{algorithm}/{benchmark}/{seed}"
EVENTS = "*tfevents*"


def tensorboard(
    logs: Any,
    *,
    score: str | None = None,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    names: str = ROLES,
) -> Runs:
    """Runs of TensorBoard's event files: a row per run and step.

    Parameters
    ----------
    logs : path or list of paths
        A folder of event files (``runs``), or single ones. The package tensorboard reads them.
    score : str, optional
        The tag of the scalar, such as "rollout/ep_rew_mean"; required where there are several.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good. Required.
    names : str, default "{algorithm}/{benchmark}/{seed}"
        What the folders of a run are, the last ones of its path: "sac/pendulum/3", or with ``"{algorithm}_{seed}"``
        the last folder alone, "sac_3".

    Returns
    -------
    Runs
        Scores at the steps at which they were logged, which are the budget. Of a step that was logged twice, as after a
        restart, the last value counts. Runs that were logged at different steps meet on a common grid by
        `lmemtest.trajectories`.

    Raises
    ------
    ArgumentError
        If tensorboard is not installed, there is no such tag, or several and none is named.
    DataError
        If a folder does not fit `names`, or there are no scalars.
    """
    direction, pattern = required_direction(direction), checked_pattern(names)
    if pattern is None:
        raise ArgumentError(f"{named('names')} must say what the folders are: {setting('names', ROLES)}.")
    extra_package("tensorboard", extra="tensorboard", purpose="read event files", otherwise="")
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, TENSORS, EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    depth, rows, tags = pattern.count("/") + 1, list[dict[str, Any]](), dict[str, None]()
    for part in parts_of(logs, argument="logs", keys=(), files=EVENTS):
        if part.path is None:
            raise ArgumentError(f"logs must be a folder of event files or paths of them, got {part.content!r:.60}.")
        events = EventAccumulator(str(part.path), size_guidance={SCALARS: 0, TENSORS: 0}).Reload()
        run = by_pattern(pattern, "/".join(Path(part.path).resolve().parent.parts[-depth:]))
        for tag in events.Tags()["scalars"]:
            tags[tag] = None
            rows += [
                {**run, "tag": tag, "step": e.step, "value": e.value, "at": e.wall_time} for e in events.Scalars(tag)
            ]
        for tag in events.Tags()["tensors"]:  # as TensorFlow 2 writes scalars
            for event in events.Tensors(tag):
                array = make_ndarray(event.tensor_proto)
                if array.size == 1 and array.dtype.kind in "fiu":
                    tags[tag] = None
                    rows.append(
                        {**run, "tag": tag, "step": event.step, "value": float(array.item()), "at": event.wall_time}
                    )
    if not rows:
        raise DataError("logs hold no scalars, and other kinds of events are not read. Log the score by add_scalar.")
    score = one_of(list(tags), score, argument="score", what="scalars", origin="logs")
    table = pd.DataFrame(rows)
    table = table[table["tag"] == score].sort_values("at", kind="stable")
    keys = [role for role in ("algorithm", "benchmark", "seed") if role in table]
    logged = len(table)
    table = table.drop_duplicates([*keys, "step"], keep="last").sort_values([*keys, "step"], kind="stable")
    if "seed" in table:
        table["seed"] = one_type(table["seed"].tolist())
    again = logged - len(table)
    return imported(
        table.rename(columns={"value": score}),
        source="Event files of TensorBoard",
        score=score,
        direction=direction,
        algorithm="algorithm",
        benchmark="benchmark" if "benchmark" in table else None,
        seed="seed" if "seed" in table else None,
        budget="step",
        said=dict.fromkeys(keys, "in the names of folders") | {"budget": "the step"},
        notes=[f"{again:,} values were logged again at the same step: the last one counts."] if again else [],
        alone="Give the folder above the algorithms.",
    )
