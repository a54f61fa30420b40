"""Real benchmark results: three bundled tables, and PriorBand's table by download.

The bundled tables come from models that were really trained. Those of hyperparameter optimisation have the data card
`bundled/README.md` and the program `examples/bundled_data`; the study of sources of variation has
`bundled/pipeline_study.md` and `examples/pipeline_study`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmemtest.core.environment import extra_package
from lmemtest.core.validate import check_choice
from lmemtest.errors import DownloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from lmemtest.bench.data.runs import Runs

__all__ = ["fetch_priorband", "load_hpo_runs", "load_hpo_trials", "load_pipeline_study"]

PRIORBAND_URL = "https://ndownloader.figshare.com/files/49732203"
PRIORBAND_FILE = "priorband-49732203"  # no suffix: whether it is parquet or csv shows in its first bytes
CACHE_VARIABLE = "LMEMTEST_CACHE"

# The study that the package reproduces, by column: a complete cross with 12 benchmarks and 50 seeds.
STUDY_LEVELS: dict[str, tuple[str, ...] | tuple[int, ...]] = {
    "algorithm": ("HB", "PB", "RS"),
    "prior": ("at25", "bad"),
    "used_fidelity": tuple(range(1, 25)),
}
STUDY_KEY = ["benchmark", "prior", "algorithm", "used_fidelity", "seed"]
STUDY_ROWS = 86_400
TEXT_COLUMNS = ("benchmark", "prior", "algorithm")
NUMBER_COLUMNS = ("used_fidelity", "value", "seed")
# SHA-256 of the key and score of the study, as `_sum_of` writes them.
STUDY_SHA256 = "951f8b6ac509072cde941ff413c43dd57e2bf92b6d4bceea8ebedec737727029"


def load_hpo_runs() -> Runs:
    """Load bundled runs of six hyperparameter optimisers on 20 benchmarks.

    Random search (RS), Hyperband (HB) and Optuna's TPE, each with and without a prior, replayed on tables of
    really trained scikit-learn models: 20 benchmarks (5 model families x 4 data sets), a good and a bad
    prior, 25 seeds, 10 budgets.  The design is balanced and complete.

    Returns
    -------
    Runs
        60,000 rows with the roles score ``loss`` (minimize), algorithm, benchmark, seed, budget and
        metafeature ``prior``.  Columns:

        ========= ===================================================================================
        algorithm HB, HB+prior, RS, RS+prior, TPE, TPE+prior
        benchmark model and data set, such as ``svm-digits``
        model     boosting, forest, mlp, sgd, svm
        dataset   cancer, diabetes, digits, vote
        prior     good, bad; algorithms without ``+prior`` ignore it, their rows are independent replicates
        seed      0 to 24
        budget    1, 2, 3, 4, 6, 8, 12, 16, 24, 32; unit: one full training of one configuration
        loss      best validation loss so far: error rate, or (diabetes) squared error relative to the mean's
        regret    (loss - best of the table) / (median configuration - best of the table)
        test_loss loss of that best model on held-out data
        ========= ===================================================================================

    Notes
    -----
    Runs with the same model, prior and seed draw configurations in the same order, so seed is a real block.
    RS and TPE start with the same six configurations, so their rows agree up to budget 6, and so do those of
    RS+prior and TPE+prior.

    Examples
    --------
    >>> from lmemtest.bench.data.datasets import load_hpo_runs
    >>> runs = load_hpo_runs()
    >>> runs.n_rows, len(runs.levels("benchmark"))
    (60000, 20)
    """
    from lmemtest.bench.data.runs import Runs

    return Runs(
        _read_bundled("hpo_runs.csv.gz"),
        score="loss",
        direction="minimize",
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed",
        budget="budget",
        metafeatures=("prior",),
    )


def load_hpo_trials(*, all_fidelities: bool = False) -> pd.DataFrame:
    """Load bundled random-search trials: every configuration that was trained, with its score and cost.

    Parameters
    ----------
    all_fidelities : bool, default False
        Also return the rows of the three low fidelities (1/27, 1/9, 1/3 of a full training).

    Returns
    -------
    pandas.DataFrame
        5,120 rows (20 benchmarks x 256 independent random configurations), four times as many with
        `all_fidelities`.  Columns:

        ========== ==================================================================================
        benchmark  model and data set, such as ``svm-digits``
        model      boosting, forest, mlp, sgd, svm
        dataset    cancer, diabetes, digits, vote
        trial      0 to 255; the same trial of a model is the same configuration on every data set
        fidelity   share of a full training: 1.0, or one of 1/27, 1/9, 1/3, 1.0
        valid_loss 3-fold cross-validation: error rate, or (diabetes) squared error relative to the mean's
        test_loss  the same on held-out data, averaged over the three fits
        cost       counted work of the three fits in millions of operations, comparable within a model
        others     hyperparameters; missing where a model does not have it
        ========== ==================================================================================

    Examples
    --------
    >>> from lmemtest.bench.data.datasets import load_hpo_trials
    >>> trials = load_hpo_trials()
    >>> len(trials), trials["benchmark"].nunique()
    (5120, 20)
    """
    trials = _read_bundled("hpo_trials.csv.gz")
    return trials if all_fidelities else trials[trials["fidelity"] == 1.0].reset_index(drop=True)


def load_pipeline_study() -> pd.DataFrame:
    """Load a bundled study of where the variation of a test score comes from: every source has a seed of its own.

    Two learning pipelines on three data sets, tuned by random search (25 trials) and trained, with the same seeds for
    both pipelines: each source of variation by itself, everything new, and estimators with fixed tuning.

    Returns
    -------
    pandas.DataFrame
        9,900 rows, one per final training.  Columns:

        ============= ================================================================================
        pipeline      linear (softmax regression), mlp (one hidden layer); both trained in mini-batches
        dataset       cancer, digits, wine
        design        "one at a time": one source new in each row, all else at a reference;
                      "ideal": everything new and tuned in each row;
                      "fixed tuning": 20 tuning runs, each followed by 20 trainings with its result
        varied        the source that is new: data, init, order, augment, tuning, or "nothing"
                      (one training repeated with all its seeds); "all"; with fixed tuning init, data or all
        tuning        seed of the random search: equal numbers with equal `tuned_on` are the same search
        tuned_on      the `data` seed of the split that the search was run on
        data          seed of the out-of-bootstrap split
        init          seed of the weights before training
        order         seed of the order of the observations, and so of the mini-batches
        augment       seed of the noise added to the inputs in training
        learning_rate what the search found, as are alpha (the L2 penalty), noise and hidden_units (0 for `linear`),
                      each in a column of its own
        score         accuracy on the test set, higher is better
        n_test        observations of the test set
        ============= ================================================================================

    Notes
    -----
    Rows of the two pipelines with equal seeds are pairs. Equal seeds of two data sets have nothing in common. Runs with
    all seeds equal have equal scores to the last digit on one processor, so numerical noise is zero here.

    Examples
    --------
    >>> from lmemtest.bench.data.datasets import load_pipeline_study
    >>> study = load_pipeline_study()
    >>> ideal = study[study["design"] == "ideal"]
    >>> ideal.groupby("dataset")["score"].size().to_dict()
    {'cancer': 120, 'digits': 120, 'wine': 120}
    """
    return _read_bundled("pipeline_study.csv.gz")


def fetch_priorband(path: str | os.PathLike[str] | None = None, *, select: Literal["study", "all"] = "study") -> Runs:
    """Fetch the results of the PriorBand study (figshare file 49732203).

    Downloads the file once into a cache folder and checks it.  The folder is the value of the environment
    variable ``LMEMTEST_CACHE`` or else the operating system's cache folder for ``lmemtest``.

    Parameters
    ----------
    path : path, optional
        A file that was downloaded by hand: no network is used, and the same checks apply.
    select : {"study", "all"}, default "study"
        "study" keeps the table analysed by the study of mixed models for benchmarks that this package builds
        on: algorithms HB, PB and RS, priors at25 and bad, ``used_fidelity`` 1 to 24, on 12 benchmarks with 50
        seeds, 86,400 rows.  "all" keeps every row of the file.

    Returns
    -------
    Runs
        Roles: score ``value`` (minimize), algorithm, benchmark, seed, budget ``used_fidelity``, metafeature
        ``prior``.  Further columns of the file are kept.

    Raises
    ------
    DownloadError
        No network, or a file that is cut off, of another format, or not the table that was expected.  A file
        that fails its check is removed from the cache; one that you give as `path` is left alone.

    Notes
    -----
    What is checked is the content: required columns, their types, no missing score, the complete design of 86,400
    rows, and the SHA-256 of the numbers of the study.  That sum is one of values, not of bytes of a file: the same
    table passes as parquet, as csv, sorted otherwise, or with more rows and columns, and a table with one changed
    score does not.  With ``select="all"`` the rows beyond the study have no sum.  Parquet and csv (plain or gzip) are
    recognised by their first bytes.  A pickle is refused: opening one runs its code.

    In this table the rows of HB and RS are the same under both priors, because they do not use it.

    Examples
    --------
    >>> from lmemtest.bench.data.datasets import fetch_priorband
    >>> runs = fetch_priorband()  # doctest: +SKIP
    >>> runs.n_rows  # doctest: +SKIP
    86400
    """
    from lmemtest.bench.data.runs import Runs

    check_choice(select, "select", ("study", "all"))
    frame = checked_priorband(Path(path), select) if path is not None else _cached_priorband(select)
    return Runs(
        frame,
        score="value",
        direction="minimize",
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed",
        budget="used_fidelity",
        metafeatures=("prior",),
    )


def _read_bundled(name: str) -> pd.DataFrame:
    """A table of the package; every float is read as it was written."""
    import pandas as pd

    exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    options: dict[str, Any] = {} if exact else {"float_precision": "round_trip"}
    with (files("lmemtest") / "bench" / "data" / "bundled" / name).open("rb") as stream:
        table: pd.DataFrame = pd.read_csv(stream, compression="gzip", **options)  # type: ignore[assignment]
    return table


def _pooch() -> Any:
    """The library that downloads and caches."""
    return extra_package(
        "pooch",
        extra="download",
        purpose="download the PriorBand table",
        otherwise="Or download it by hand and give its path: fetch_priorband(path='...').",
    )


def _cache_folder() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(os.path.expanduser(chosen)) if chosen else Path(_pooch().os_cache("lmemtest"))


def _cached_priorband(select: str) -> pd.DataFrame:
    """Read the cached file; a cached file that fails its check is downloaded again, once."""
    cached = _cache_folder() / PRIORBAND_FILE
    was_there = cached.is_file()
    if not was_there:
        _download(cached)
    try:
        return checked_priorband(cached, select)
    except DownloadError:
        cached.unlink(missing_ok=True)
        if not was_there:
            raise
    return _cached_priorband(select)


def _download(target: Path) -> None:
    """Download to `target`, through a temporary file of pooch's: an interruption leaves nothing behind."""
    pooch = _pooch()
    try:
        with _quiet_pooch():
            pooch.retrieve(
                PRIORBAND_URL,
                known_hash=None,
                fname=target.name,
                path=target.parent,
                downloader=_downloader(),
            )
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, pooch's own are ValueErrors
        raise DownloadError(
            f"could not download the PriorBand table from {PRIORBAND_URL} to {target.parent} "
            f"({type(error).__name__}: {error}). {_by_hand()} "
            f"To use another cache folder, set the environment variable {CACHE_VARIABLE}."
        ) from error


def _by_hand() -> str:
    return (
        f"Without a network: download {PRIORBAND_URL} by hand on a machine that has one, copy the file here "
        "and pass it as fetch_priorband(path='...')."
    )


def _downloader() -> Callable[..., object]:
    downloader: Callable[..., object] = _pooch().HTTPDownloader(timeout=60)
    return downloader


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Hide pooch's advice to pin the hash of the file, which is meant for us and not for the user."""
    logger = _pooch().get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)


def checked_priorband(path: Path, select: str) -> pd.DataFrame:
    """The rows of a file that holds the PriorBand study, whatever its format; any other file is refused."""
    frame = _read_any(path)
    _check_columns(frame, path)
    kept = frame
    for column, levels in STUDY_LEVELS.items():
        kept = kept[kept[column].isin(levels)]
    _check_study(kept, frame, path)
    return frame if select == "all" else kept.reset_index(drop=True)


def _read_any(path: Path) -> pd.DataFrame:
    """Read parquet or csv by content, without the index columns that pandas may have written."""
    import pandas as pd

    if not path.is_file():
        raise DownloadError(f"path {str(path)!r} is not a file. {_by_hand()}")
    kind = _sniff(path)
    try:
        if kind == "parquet":
            extra_package("pyarrow", extra="parquet", purpose=f"read {str(path)!r}", otherwise="Or save it as csv.")
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(
                path,
                sep=_separator(path, kind),
                compression="gzip" if kind == "csv.gz" else None,
                dtype={"value": object},  # pandas before 3.1 reads numbers that are wrong in the last digit
            )
            with suppress(KeyError, ValueError):  # columns are checked later
                frame["value"] = frame["value"].astype(float)
    except (OSError, EOFError, ValueError) as error:  # pyarrow's, gzip's, and pandas' errors of damaged files
        problem = f"it cannot be read as {kind} and is probably cut off ({type(error).__name__}: {error})"
        raise _unexpected(path, problem) from error
    spurious = [name for name in frame.columns if str(name).startswith(("Unnamed:", "__index_level_"))]
    return frame.drop(columns=spurious).reset_index(drop=True)


def _sniff(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(512)
    if not head:
        raise _unexpected(path, "it is empty")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x1f\x8b"):
        return "csv.gz"
    if head.startswith(b"\x80"):
        raise _unexpected(path, "it is a Python pickle, which is never opened because that would run its code")
    if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
        raise _unexpected(path, "it is a web page, not a table")
    if b"\x00" in head:
        raise _unexpected(path, "it is neither parquet nor csv")
    return "csv"


def _separator(path: Path, kind: str) -> str:
    import gzip

    opener = gzip.open if kind == "csv.gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        header = stream.readline()
    return max(",;\t", key=header.count)


def _check_columns(frame: pd.DataFrame, path: Path) -> None:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    missing = [name for name in (*TEXT_COLUMNS, *NUMBER_COLUMNS) if name not in frame.columns]
    if missing:
        raise _unexpected(path, f"columns {missing} are missing; it has {[str(c) for c in frame.columns]}")
    numbers = {
        name: is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name]) for name in TEXT_COLUMNS + NUMBER_COLUMNS
    }
    wrong = [f"{name} should be numbers" for name in NUMBER_COLUMNS if not numbers[name]]
    wrong += [f"{name} should be text" for name in TEXT_COLUMNS if numbers[name]]
    if wrong:
        raise _unexpected(path, ", ".join(wrong))
    if (frame["seed"] % 1 != 0).any():  # a missing seed is caught too: NaN differs from 0
        raise _unexpected(path, "seed should be whole numbers without gaps")


def _check_study(kept: pd.DataFrame, frame: pd.DataFrame, path: Path) -> None:
    import numpy as np

    distinct = len(kept.drop_duplicates(STUDY_KEY))
    if not len(kept) == distinct == STUDY_ROWS:
        found = {name: sorted(frame[name].dropna().astype(str).unique())[:12] for name in ("algorithm", "prior")}
        raise _unexpected(
            path,
            f"the study table has {STUDY_ROWS:,} distinct rows (algorithms HB, PB, RS; priors at25, bad; "
            f"used_fidelity 1 to 24). Found: {len(kept):,} such rows, {distinct:,} of them distinct, in a "
            f"file of {len(frame):,} rows with algorithms {found['algorithm']} and priors {found['prior']}",
        )
    broken = int((~np.isfinite(kept["value"].to_numpy(dtype=float))).sum())
    if broken:
        raise _unexpected(path, f"value is missing or infinite in {broken:,} rows of the study table")
    found_sum = _sum_of(kept)
    if found_sum != STUDY_SHA256:
        raise DownloadError(
            f"{str(path)!r} has the design of the PriorBand study, but other numbers: the SHA-256 of its study table "
            f"is {found_sum}, and {STUDY_SHA256} is expected. Download the file again; if the sum stays, the published "
            "table has changed or the file was edited. A table that you trust needs no check: read it with pandas and "
            "give it to lmemtest.Runs."
        )


def _sum_of(study: pd.DataFrame) -> str:
    """SHA-256 of key and score in the order of the key: of a text its sorted levels and their numbers."""
    import hashlib

    import numpy as np
    import pandas as pd

    levels, columns = {}, {}
    for name in (*STUDY_KEY, "value"):
        if name in TEXT_COLUMNS:
            columns[name], found = pd.factorize(study[name].astype(object), sort=True)
            levels[name] = "\n".join(map(str, found))
        else:
            columns[name] = study[name].to_numpy(dtype=float)
    order = np.lexsort([columns[name] for name in reversed(STUDY_KEY)])
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(levels.get(name, "").encode() + column[order].astype("<f8").tobytes())
    return digest.hexdigest()


def _unexpected(path: Path, problem: str) -> DownloadError:
    return DownloadError(f"{str(path)!r} is not the PriorBand table: {problem}. {_by_hand()}")
