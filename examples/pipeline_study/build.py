"""Build the bundled table of the pipeline study: two pipelines, three data sets, every seed known.

    python examples/pipeline_study/build.py            # everything, about 18 minutes of one core
    python examples/pipeline_study/build.py --check    # tune and train 20 rows again, compare with the file

Needs scikit-learn (the extra `data`). With the library versions that the file records, a second run writes the same
bytes. All scores come from `ideal_estimator` and `fixed_tuning_estimator`, with the same seeds for both pipelines.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # sums in one order; must be set before numpy is loaded

import argparse
import functools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from pipelines import LOADERS, PIPELINES, SOURCES, Hyperparameters, Study, split  # isort: skip: it finds paper_figures
from paper_figures.estimators import TUNING, Estimate, fixed_tuning_estimator, ideal_estimator

TARGET = Path(__file__).resolve().parents[2] / "lmemtest" / "bench" / "data" / "bundled" / "pipeline_study.csv.gz"
LIBRARIES = ("numpy", "scipy", "scikit-learn")
COLUMNS = [
    *("pipeline", "dataset", "design", "varied"),
    *(TUNING, "tuned_on", *SOURCES),
    *Hyperparameters._fields,
    *("score", "n_test"),
]
N_ONE_AT_A_TIME = 80
N_TUNING = 60  # searches with all else at the reference
N_REPEATS = 10  # of one training with all its seeds
N_IDEAL = 60
N_REALISATIONS, N_SCORES = 20, 20  # of each estimator with fixed tuning
REFERENCE, IDEAL, REALISATION = 0, 1, 100  # where the generators of a data set start, in each thousand


def designs(study: Study) -> Iterator[pd.DataFrame]:
    """All rows of one pipeline on one data set, design by design."""
    first = 1000 * list(LOADERS).index(study.dataset)
    both = {"sources": SOURCES, "objective": study.validation_score}
    fixed = functools.partial(fixed_tuning_estimator, study.test_score, study.search, **both)

    repeated = fixed(N_REPEATS, randomize=(), rng=first + REFERENCE)
    yield rows(study, "one at a time", "nothing", repeated)
    reference = seeds_of(repeated)
    for source in SOURCES:
        found = fixed(N_ONE_AT_A_TIME, randomize=source, rng=first + REFERENCE)
        yield rows(study, "one at a time", source, found, reference["data"])
    found = ideal_estimator(
        lambda hyperparameters, seeds: study.test_score(hyperparameters, {**seeds, **reference}),
        lambda train, seeds: study.search(train, {**seeds, **reference}),
        N_TUNING,
        **both,
        rng=first + REFERENCE,
    )
    found = replace(found, table=found.table.assign(**{f"seed_{name}": seed for name, seed in reference.items()}))
    yield rows(study, "one at a time", TUNING, found)

    found = ideal_estimator(study.test_score, study.search, N_IDEAL, **both, rng=first + IDEAL)
    yield rows(study, "ideal", "all", found)

    for rng in range(first + REALISATION, first + REALISATION + N_REALISATIONS):
        tuned_on = seeds_of(fixed(1, randomize=(), rng=rng))["data"]
        for varied in ("init", "data", "all"):
            yield rows(study, "fixed tuning", varied, fixed(N_SCORES, randomize=varied, rng=rng), tuned_on)


def seeds_of(found: Estimate) -> dict[str, int]:
    """The seeds of the pipeline's sources in the first repetition."""
    return {name: int(found.table[f"seed_{name}"].iloc[0]) for name in SOURCES}


def rows(study: Study, design: str, varied: str, found: Estimate, tuned_on: int | None = None) -> pd.DataFrame:
    """One row per repetition; tuned on the repetition's own data unless `tuned_on` says otherwise."""
    if found.table["failure"].notna().any():
        raise RuntimeError("\n".join(found.table["failure"].dropna()))
    frame = found.table.rename(columns={f"seed_{name}": name for name in (*SOURCES, TUNING)})
    chosen = [*found.hyperparameters] * (len(frame) // len(found.hyperparameters))
    return frame.assign(
        pipeline=study.pipeline,
        dataset=study.dataset,
        design=design,
        varied=varied,
        tuned_on=frame["data"] if tuned_on is None else tuned_on,
        n_test=[len(split(study.dataset, seed).test) for seed in frame["data"]],
        **pd.DataFrame(chosen, columns=Hyperparameters._fields),
    )[COLUMNS]


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write one packed csv whose bytes depend on the content only, and keep the versions that it was built with."""
    packing = {"method": "gzip", "compresslevel": 9, "mtime": 0}
    frame.to_csv(path, index=False, lineterminator="\n", compression=packing)
    versions = path.parent / "built_with.json"
    known = json.loads(versions.read_text(encoding="utf-8")) if versions.is_file() else {}
    known["pipeline_study"] = {name: version(name) for name in LIBRARIES}
    versions.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(frame):,} rows, {path.stat().st_size / 1024:.0f} kB", flush=True)


def build(path: Path) -> None:
    """Train everything and write the table."""
    parts = []
    for dataset in LOADERS:
        for pipeline in PIPELINES:
            parts += designs(Study(pipeline, dataset))
            print(f"trained {pipeline} on {dataset}", flush=True)
    write(pd.concat(parts, ignore_index=True), path)


def again(row: pd.Series) -> tuple[Hyperparameters, float]:
    """Tune and train once more with the seeds of a row: what the search finds, and the score."""
    study = Study(row["pipeline"], row["dataset"])
    seeds = {name: int(row[name]) for name in (*SOURCES, TUNING)}
    found = study.search(study.validation_score, {**seeds, "data": int(row["tuned_on"])})
    return found, study.test_score(found, seeds)


def check(path: Path, n: int) -> list[str]:
    """Make n rows again; say which differ."""
    drawn = pd.read_csv(path).sample(n, random_state=1)
    problems = []
    for place, row in drawn.iterrows():
        found, score = again(row)
        if found != tuple(row[list(Hyperparameters._fields)]) or score != row["score"]:
            problems.append(f"row {place}: {found} with score {score} instead of\n{row.to_dict()}")
    print(f"{len(drawn)} rows made again, {len(drawn) - len(problems)} of them identical")
    return problems


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=int, nargs="?", const=20, metavar="N", help="make N rows again (default: 20)")
    parser.add_argument("-o", "--output", type=Path, default=TARGET, help="the table")
    arguments = parser.parse_args()
    if arguments.check is None:
        build(arguments.output)
        return 0
    problems = check(arguments.output, arguments.check)
    recorded = json.loads((arguments.output.parent / "built_with.json").read_text(encoding="utf-8"))["pipeline_study"]
    changes = [f"{name} {old} -> {version(name)}" for name, old in recorded.items() if version(name) != old]
    if problems and changes:
        problems.append("library versions have changed, which can change scores: " + ", ".join(changes))
    print("\n".join(problems) or "check passed")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
