"""The bundled tables are what their card says; the PriorBand download keeps nothing that is damaged."""

from __future__ import annotations

import gzip
import importlib
import itertools
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from levels import first
from refusals import refusal, refuses

from lmemtest.bench.data import datasets
from lmemtest.bench.data.datasets import load_pipeline_study
from lmemtest.errors import ArgumentError, DownloadError

BUNDLED = Path(datasets.__file__).parent / "bundled"
BUILDER = Path(__file__).parents[3] / "examples" / "bundled_data" / "build.py"
RUN_KEY = ["algorithm", "benchmark", "prior", "seed", "budget"]


# ---------------------------------------------------------------- bundled runs


@pytest.fixture(scope="module")
def hpo_runs() -> pd.DataFrame:
    return datasets.load_hpo_runs().to_frame()


@pytest.fixture(scope="module")
def trials() -> pd.DataFrame:
    return datasets.load_hpo_trials()


@pytest.fixture(scope="module")
def all_trials() -> pd.DataFrame:
    return datasets.load_hpo_trials(all_fidelities=True)


def test_hpo_runs_have_their_roles():
    runs = datasets.load_hpo_runs()
    assert (runs.score, runs.direction) == ("loss", "minimize")
    assert (runs.algorithm, runs.benchmark, runs.seed, runs.budget) == ("algorithm", "benchmark", "seed", "budget")
    assert tuple(runs.metafeatures) == ("prior",)


def test_hpo_runs_are_a_complete_balanced_cross(hpo_runs):
    sizes = {name: hpo_runs[name].nunique() for name in RUN_KEY}
    assert sizes == {"algorithm": 6, "benchmark": 20, "prior": 2, "seed": 25, "budget": 10}
    assert len(hpo_runs) == np.prod(list(sizes.values())) == 60_000
    assert not hpo_runs.duplicated(RUN_KEY).any()
    assert (hpo_runs["benchmark"] == hpo_runs["model"] + "-" + hpo_runs["dataset"]).all()


def test_hpo_runs_have_finite_scores_that_never_get_worse_with_budget(hpo_runs):
    assert np.isfinite(hpo_runs[["loss", "regret", "test_loss"]]).all(axis=None)
    ordered = hpo_runs.sort_values(RUN_KEY)
    steps = ordered.groupby(RUN_KEY[:-1])["loss"].diff().dropna()
    assert (steps <= 0).all()
    assert hpo_runs["regret"].min() >= 0


def test_every_loss_of_the_runs_is_a_score_of_the_trial_table(hpo_runs, all_trials):
    scores = all_trials.groupby("benchmark")["valid_loss"].agg(set)
    seen = hpo_runs.groupby("benchmark")["loss"].agg(set)
    assert all(seen[name] <= scores[name] for name in scores.index)


def test_regret_is_zero_at_the_best_and_one_at_the_median_configuration(hpo_runs, all_trials):
    best = all_trials.groupby("benchmark")["valid_loss"].min()
    full = all_trials[all_trials["fidelity"] == 1.0]
    middle = full.groupby("benchmark")["valid_loss"].median()
    floor, scale = hpo_runs["benchmark"].map(best), hpo_runs["benchmark"].map(middle - best)
    np.testing.assert_allclose(hpo_runs["regret"], (hpo_runs["loss"] - floor) / scale, atol=1e-6)


def test_algorithms_that_ignore_the_prior_were_replayed_independently_under_both(hpo_runs):
    plain = hpo_runs[~hpo_runs["algorithm"].str.contains("prior") & (hpo_runs["budget"] == 1)]
    wide = plain.pivot_table(index=["algorithm", "benchmark", "seed"], columns="prior", values="loss")
    assert (wide["good"] != wide["bad"]).mean() > 0.8


def test_random_search_and_tpe_share_their_first_six_configurations(hpo_runs):
    wide = hpo_runs.pivot_table(index=["benchmark", "prior", "seed", "budget"], columns="algorithm", values="loss")
    early = wide[wide.index.get_level_values("budget") <= 6]
    late = wide[wide.index.get_level_values("budget") == 32]
    for suffix in ("", "+prior"):
        assert (early["RS" + suffix] == early["TPE" + suffix]).all()
        assert (late["RS" + suffix] != late["TPE" + suffix]).mean() > 0.3


def test_a_good_prior_helps_and_a_bad_one_hurts_the_algorithms_that_use_it(hpo_runs):
    means = hpo_runs[hpo_runs["budget"] <= 4].pivot_table(index="algorithm", columns="prior", values="regret")
    for name in ("RS", "HB", "TPE"):
        assert means.loc[f"{name}+prior", "good"] < means.loc[name, "good"]
        assert means.loc[f"{name}+prior", "bad"] > means.loc[name, "bad"]


def test_no_benchmark_of_the_runs_is_constant(hpo_runs):
    assert (hpo_runs.groupby(["benchmark", "algorithm"])["loss"].nunique() >= 3).all()


# ---------------------------------------------------------------- bundled trials


def test_trials_are_256_configurations_per_benchmark(trials):
    assert len(trials) == 5_120
    assert (trials.groupby("benchmark")["trial"].agg(lambda t: sorted(t) == list(range(256)))).all()
    assert (trials["fidelity"] == 1.0).all()
    assert np.isfinite(trials[["valid_loss", "test_loss", "cost"]]).all(axis=None)
    assert (trials["cost"] > 0).all()


def test_trials_with_all_fidelities_hold_four_levels_each(all_trials):
    levels = all_trials.groupby(["benchmark", "trial"])["fidelity"].agg(tuple)
    assert set(levels) == {(1 / 27, 1 / 9, 1 / 3, 1.0)}


def test_a_trial_is_the_same_configuration_on_every_data_set(trials):
    hyperparameters = list(trials.columns[trials.columns.get_loc("cost") + 1 :])
    assert (trials.groupby(["model", "trial"])[hyperparameters].nunique() <= 1).all(axis=None)
    used = trials.groupby("model")[hyperparameters].agg(lambda column: column.notna().mean())
    assert used.isin([0.0, 1.0]).all(axis=None)


def test_cost_grows_with_fidelity(all_trials):
    cost = all_trials.sort_values("fidelity").groupby(["benchmark", "trial"])["cost"]
    assert cost.agg(lambda c: c.is_monotonic_increasing).mean() > 0.99


def test_trial_scores_spread_and_tie_but_do_not_degenerate(trials):
    by_benchmark = trials.groupby("benchmark")["valid_loss"]
    assert (by_benchmark.nunique() >= 20).all()
    assert (by_benchmark.quantile(0.9) > 1.05 * by_benchmark.min()).all()


def test_bundled_files_are_small_and_documented():
    files = sorted(p.name for p in BUNDLED.iterdir() if not p.name.startswith((".", "__")))
    tables = ["hpo_runs.csv.gz", "hpo_trials.csv.gz", "pipeline_study.csv.gz"]
    assert files == sorted(["README.md", "built_with.json", "pipeline_study.md", *tables])
    assert sum((BUNDLED / name).stat().st_size for name in files) < 1_000_000


def test_data_card_names_every_column_and_level(hpo_runs, all_trials):
    card = (BUNDLED / "README.md").read_text(encoding="utf-8")
    names = [*hpo_runs.columns, *all_trials.columns, *hpo_runs["model"].unique(), *hpo_runs["dataset"].unique()]
    assert [name for name in names if f"`{name}`" not in card] == []


@pytest.mark.slow
def test_builder_reproduces_a_part_of_the_bundled_tables():
    pytest.importorskip("sklearn", reason="rebuilding needs the extra 'data'")
    pytest.importorskip("optuna", reason="rebuilding needs the extra 'data'")
    done = subprocess.run([sys.executable, str(BUILDER), "--check"], capture_output=True, text=True, check=False)
    if "library versions have changed" in done.stdout:
        pytest.skip("the files were built with other library versions: " + done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- PriorBand: reading a file


def study_table() -> pd.DataFrame:
    """A table with the design of the study and made-up values."""
    levels = {
        "benchmark": [f"B{i:02d}" for i in range(12)],
        "prior": ["at25", "bad"],
        "algorithm": ["HB", "PB", "RS"],
        "used_fidelity": [float(i) for i in range(1, 25)],
        "seed": list(range(50)),
    }
    frame = pd.MultiIndex.from_product(levels.values(), names=levels.keys()).to_frame(index=False)
    return frame.assign(value=np.linspace(0.1, 3.0, len(frame)).round(4))


@pytest.fixture(scope="module")
def study() -> pd.DataFrame:
    return study_table()


@pytest.fixture(scope="module")
def study_file(study, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("priorband") / "study"
    study.to_parquet(path)
    return path


@pytest.fixture(scope="module")
def study_sum(study) -> str:
    return datasets._sum_of(study)


@pytest.fixture(autouse=True)
def _the_made_up_study_is_the_one_expected(request, monkeypatch):
    if {"study", "study_file"} & set(request.fixturenames):
        monkeypatch.setattr(datasets, "STUDY_SHA256", request.getfixturevalue("study_sum"))


def test_fetch_reads_a_local_file_with_its_roles(study_file):
    runs = datasets.fetch_priorband(study_file)
    assert runs.n_rows == 86_400
    assert (runs.score, runs.direction, runs.budget) == ("value", "minimize", "used_fidelity")
    assert (runs.algorithm, runs.benchmark, runs.seed) == ("algorithm", "benchmark", "seed")
    assert tuple(runs.metafeatures) == ("prior",)


@pytest.mark.parametrize("kind", first(["parquet", "csv.gz", "csv", "semicolon", "bom"], 2))
def test_fetch_tells_formats_apart_by_content(kind, study, tmp_path):
    path = tmp_path / "file-without-suffix"
    if kind == "parquet":
        study.to_parquet(path)
    elif kind == "csv.gz":
        study.to_csv(path, compression="gzip")  # with pandas' unnamed index column, which is dropped
    else:
        options = {"sep": ";"} if kind == "semicolon" else {}
        study.to_csv(path, index=False, encoding="utf-8-sig" if kind == "bom" else "utf-8", **options)
    frame = datasets.fetch_priorband(path).to_frame()
    pd.testing.assert_frame_equal(frame[list(study.columns)], study, check_dtype=False)
    assert list(frame.columns) == list(study.columns)


def test_fetch_selects_the_study_out_of_a_larger_file(study, tmp_path):
    others = study.iloc[:5000].assign(algorithm="BOHB")
    finer = study.iloc[:700].assign(used_fidelity=0.5)
    path = tmp_path / "all.parquet"
    pd.concat([others, study, finer]).sample(frac=1, random_state=0).to_parquet(path)
    runs = datasets.fetch_priorband(path)
    assert runs.n_rows == 86_400
    assert runs.levels("algorithm") == ("HB", "PB", "RS")
    assert datasets.fetch_priorband(path, select="all").n_rows == 86_400 + 5_700


def test_fetch_rejects_an_unknown_selection(study_file):
    refuses(ArgumentError, r"select.*study.*all", datasets.fetch_priorband, study_file, select="most")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.drop(columns="value"), r"columns \['value'\] are missing; it has \['benchmark', "),
        (lambda d: d.assign(value="high"), r"value should be numbers\."),
        (lambda d: d.assign(algorithm=1), r"algorithm should be text\."),
        (lambda d: d.assign(seed=d["seed"] + 0.5), r"seed should be whole numbers"),
        (lambda d: d.assign(seed=d["seed"].where(d["seed"] > 0)), r"seed should be whole numbers"),
        (lambda d: d.iloc[:-1], r"Found: 86,399 such rows, 86,399 of them distinct, in a file of 86,399 rows"),
        (lambda d: pd.concat([d.iloc[1:], d.iloc[[-1]]]), r"Found: 86,400 such rows, 86,399 of them distinct"),
        (lambda d: d.assign(algorithm=d["algorithm"].replace("PB", "priorband")),
         r"algorithms \['HB', 'RS', 'priorband'\] and priors \['at25', 'bad'\]\. Without a network"),
        (lambda d: d.assign(value=d["value"].where(d.index > 2)),
         r"value is missing or infinite in 3 rows of the study table\.")
    ],
    ids=["missing", "text score", "number algorithm", "half seeds", "no seeds", "short", "double", "names", "nan"]
)  # fmt: skip
def test_fetch_names_what_is_wrong_with_a_table(change, message, study, tmp_path):
    path = tmp_path / "changed"
    change(study).to_parquet(path)
    with pytest.raises(DownloadError, match=re.escape(f"'{path}' is not the PriorBand table: ")) as caught:
        datasets.fetch_priorband(path)
    assert re.search(message, str(caught.value))
    assert "fetch_priorband(path='...')" in str(caught.value)


@pytest.mark.parametrize("select", ["study", "all"])
def test_fetch_of_a_table_with_one_changed_score_gives_both_sums(select, study, study_sum, tmp_path):
    changed = study.assign(value=study["value"].where(study.index != 77, np.nextafter(study["value"], 9)))
    path = tmp_path / "changed"
    changed.to_parquet(path)
    assert refusal(lambda: datasets.fetch_priorband(path, select=select), DownloadError) == (
        f"'{path}' has the design of the PriorBand study, but other numbers: the SHA-256 of its study table is "
        f"{datasets._sum_of(changed)}, and {study_sum} is expected. Download the file again; if the sum stays, the "
        "published table has changed or the file was edited. A table that you trust needs no check: read it with "
        "pandas and give it to lmemtest.Runs."
    )
    assert path.exists()


def test_the_sum_is_that_of_the_values_whatever_their_order_and_types(study, study_sum):
    types = {"used_fidelity": int, "seed": "Int64", "algorithm": "category"}
    other = study.sample(frac=1, random_state=2).astype(types)
    assert datasets._sum_of(other) == study_sum
    renamed = study.assign(benchmark=study["benchmark"].replace("B00", "A00"))
    assert datasets._sum_of(renamed) != study_sum


def test_fetch_of_every_row_still_needs_as_many_as_the_study(study, tmp_path):
    path = tmp_path / "short"
    study.iloc[:1000].to_parquet(path)
    with pytest.raises(DownloadError, match=r"the study table has 86,400 distinct rows .* Found: 1,000 such rows"):
        datasets.fetch_priorband(path, select="all")


def cut_parquet(study: pd.DataFrame, path: Path) -> None:
    study.to_parquet(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_gzip(study: pd.DataFrame, path: Path) -> None:
    content = gzip.compress(study.to_csv(index=False).encode(), mtime=0)
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (cut_parquet, r"cannot be read as parquet and is probably cut off"),
        (cut_gzip, r"cannot be read as csv\.gz and is probably cut off"),
        (lambda _, path: path.write_bytes(b""), r"it is empty"),
        (lambda _, path: path.write_bytes(b"\n<!DOCTYPE html><p>wait"), r"it is a web page, not a table"),
        (lambda _, path: path.write_bytes(pickle.dumps([1], protocol=4)), r"it is a Python pickle, which is never"),
        (lambda _, path: path.write_bytes(b"\x7fELF\x00\x00"), r"it is neither parquet nor csv"),
        (lambda _, path: path.write_bytes(b"a,b\n1,\xff\xfe\n"), r"cannot be read as csv"),
        (lambda _, path: path.write_bytes(b"a,b\n1,2,3\n4,5,6,7\n"), r"cannot be read as csv"),
        (lambda _, path: path.write_bytes(b"just a line of text"), r"columns \['benchmark', .* are missing")
    ],
    ids=["parquet", "gzip", "empty", "html", "pickle", "binary", "latin", "ragged", "prose"]
)  # fmt: skip
def test_fetch_names_a_damaged_or_foreign_file(make, message, study, tmp_path):
    path = tmp_path / "damaged"
    make(study, path)
    refuses(DownloadError, message, datasets.fetch_priorband, path)
    assert path.exists(), "a file of the user's is never removed"


def test_fetch_names_a_path_that_is_not_there(tmp_path):
    with pytest.raises(DownloadError, match=re.escape(f"path '{tmp_path / 'none'}' is not a file.")):
        datasets.fetch_priorband(tmp_path / "none")


# ---------------------------------------------------------------- PriorBand: downloading


class FakeNetwork:
    """Stands in for pooch's HTTP downloader: writes `content`, or part of it and then raises `error`."""

    def __init__(self, content: bytes = b"", error: BaseException | None = None) -> None:
        self.content, self.error, self.urls = content, error, []

    def __call__(self, url: str, output_file: str, _pooch: object) -> None:
        self.urls.append(url)
        Path(output_file).write_bytes(self.content)
        if self.error is not None:
            raise self.error


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("LMEMTEST_CACHE", str(folder))
    return folder


@pytest.fixture
def connect(monkeypatch):
    def use(network: FakeNetwork) -> FakeNetwork:
        monkeypatch.setattr(datasets, "_downloader", lambda: network)
        return network

    return use


def test_fetch_downloads_once_reads_the_cache_and_prints_nothing(study_file, cache, connect, capfd):
    network = connect(FakeNetwork(study_file.read_bytes()))
    assert datasets.fetch_priorband().n_rows == 86_400
    assert datasets.fetch_priorband().n_rows == 86_400
    assert network.urls == ["https://ndownloader.figshare.com/files/49732203"]
    assert [p.name for p in cache.iterdir()] == ["priorband-49732203"]
    assert capfd.readouterr() == ("", "")


def test_fetch_without_a_network_says_what_to_do(cache, connect):
    requests = pytest.importorskip("requests")
    connect(FakeNetwork(error=requests.exceptions.ConnectionError("no route to host")))
    assert refusal(lambda: datasets.fetch_priorband(), DownloadError) == (
        "could not download the PriorBand table from https://ndownloader.figshare.com/files/49732203 to "
        f"{cache} (ConnectionError: no route to host). Without a network: download "
        "https://ndownloader.figshare.com/files/49732203 by hand on a machine that has one, copy the file "
        "here and pass it as fetch_priorband(path='...'). To use another cache folder, set the environment "
        "variable LMEMTEST_CACHE."
    )
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ConnectionResetError("reset"), ValueError("hash")])
def test_an_interrupted_download_leaves_nothing_in_the_cache(error, study_file, cache, connect):
    connect(FakeNetwork(study_file.read_bytes()[:1000], error=error))
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else DownloadError
    with pytest.raises(expected):
        datasets.fetch_priorband()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(("size", "checksum", "words"), [
    (5000, None, "probably cut off"),
    (None, "0" * 64, r"other numbers: the SHA-256 .* and 0{64} is expected\. Download the file"),
])  # fmt: skip
def test_a_download_that_fails_its_check_is_not_kept(study_file, cache, connect, monkeypatch, size, checksum, words):
    monkeypatch.setattr(datasets, "STUDY_SHA256", checksum or datasets.STUDY_SHA256)
    network = connect(FakeNetwork(study_file.read_bytes()[:size]))
    refuses(DownloadError, words, datasets.fetch_priorband)
    assert len(network.urls) == 1
    assert list(cache.iterdir()) == []


def test_a_damaged_cached_file_is_downloaded_again(study_file, cache, connect):
    cache.mkdir()
    (cache / "priorband-49732203").write_bytes(study_file.read_bytes()[:5000])
    network = connect(FakeNetwork(study_file.read_bytes()))
    assert datasets.fetch_priorband().n_rows == 86_400
    assert len(network.urls) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user who can be denied a folder")
def test_a_cache_that_cannot_be_written_names_the_variable_to_set(cache, connect, study_file):
    cache.mkdir(mode=0o500)
    connect(FakeNetwork(study_file.read_bytes()))
    refuses(DownloadError, r"PermissionError.*LMEMTEST_CACHE", datasets.fetch_priorband)


def test_cache_folder_defaults_to_that_of_the_operating_system(monkeypatch):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("LMEMTEST_CACHE", raising=False)
    assert datasets._cache_folder() == Path(pooch.os_cache("lmemtest"))


def test_the_downloader_is_pooch_over_http_with_a_time_limit():
    pooch = pytest.importorskip("pooch")
    downloader = datasets._downloader()
    assert isinstance(downloader, pooch.HTTPDownloader)
    assert downloader.kwargs["timeout"] == 60


def test_fetch_reads_the_real_study_table():
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        pytest.skip("LMEMTEST_DATA is not set")
    runs = datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    means = runs.to_frame().groupby(["algorithm", "prior"])["value"].mean().round(6)
    assert means.to_dict() == {
        ("HB", "at25"): 2.263434,
        ("HB", "bad"): 2.263434,
        ("PB", "at25"): 1.901244,
        ("PB", "bad"): 3.212304,
        ("RS", "at25"): 2.163396,
        ("RS", "bad"): 2.163396,
    }


# ---------------------------------------------------------------- the program that replays optimisers


@pytest.fixture
def replay_module(monkeypatch):
    pytest.importorskip("sklearn", reason="the builder needs the extra 'data'")
    monkeypatch.syspath_prepend(str(BUILDER.parent))
    module = importlib.import_module("replay")
    yield module
    for name in ("replay", "models", "tasks"):
        sys.modules.pop(name, None)


@pytest.fixture
def made_up_table(replay_module):
    rng = np.random.default_rng(0)
    valid = np.sort(rng.random((256, 4)), axis=1)[:, ::-1]  # every configuration improves with fidelity
    return replay_module.Table(
        benchmark="a-b", model="a", dataset="b", points=rng.random((256, 2)), valid=valid, test=valid
    )


def test_hyperband_evaluates_the_published_brackets(replay_module, made_up_table):
    order = iter(range(256))
    evaluations = list(itertools.islice(replay_module._hyperband(made_up_table, lambda _: next(order)), 69))
    sizes = [len(list(rung)) for _, rung in itertools.groupby(evaluations, key=lambda pair: pair[1])]
    # Li et al. (2018) with R = 27 and eta = 3: brackets 27-9-3-1, 12-4-1, 6-2 and 4; the last rung of 6-2 and
    # the bracket of 4 are both at full fidelity, so they count as one group here
    assert sizes == [27, 9, 3, 1, 12, 4, 1, 6, 2 + 4]
    first_rung = [made_up_table.valid[config, 0] for config, _ in evaluations[:27]]
    kept = {config for config, _ in evaluations[27:36]}
    assert kept == {evaluations[i][0] for i in np.argsort(first_rung)[:9]}


def test_budgets_count_full_trainings_and_only_finished_ones(replay_module, made_up_table):
    evaluations = ((config, 3 if config % 2 else 2) for config in range(256))  # 9 and 27 parts in turn
    rows = replay_module._best_so_far(made_up_table, evaluations)
    spent = np.cumsum([27 if config % 2 else 9 for config in range(256)])
    scores = np.array([made_up_table.valid[config, 3 if config % 2 else 2] for config in range(256)])
    want = [scores[spent <= budget * 27].min() for budget in replay_module.BUDGETS]
    assert [row["loss"] for row in rows] == want
    assert [row["budget"] for row in rows] == list(replay_module.BUDGETS)


def test_a_prior_is_tried_first_and_then_used_half_of_the_time(replay_module, made_up_table):
    centre = replay_module.prior_centre(made_up_table, "good")
    order = list(range(256))
    near = replay_module.prior_weights(made_up_table, centre) > 1e-4
    firsts, from_order = set(), []
    for seed in range(200):
        draw = replay_module._drawer(made_up_table, order, centre, np.random.default_rng(seed))
        firsts.add(draw(set()))
        from_order.append(draw({centre}) == (1 if centre == 0 else 0))
    assert firsts == {centre}
    assert 0.38 < np.mean(from_order) < 0.62  # 200 fair coins: 0.5 within 3.4 standard errors
    assert 0.05 < near.mean() < 1.0


def test_prior_centres_are_a_good_and_a_bad_configuration(replay_module, made_up_table):
    rank = made_up_table.valid[:, -1].argsort().argsort()
    assert rank[replay_module.prior_centre(made_up_table, "good")] == 9
    assert rank[replay_module.prior_centre(made_up_table, "bad")] == 256 - 10


# ---------------------------------------------------------------------- pipeline study


BUILDER_OF_PIPELINE_STUDY = Path(__file__).parents[3] / "examples" / "pipeline_study" / "build.py"
SOURCES = ["tuning", "data", "init", "order", "augment"]
FOUND = ["learning_rate", "alpha", "noise", "hidden_units"]
GROUP = ["pipeline", "dataset"]


@pytest.fixture(scope="module")
def study_of_pipeline_study() -> pd.DataFrame:
    return load_pipeline_study()


def design(study, name, varied=None):
    part = study[study["design"] == name]
    return part if varied is None else part[part["varied"] == varied]


def test_columns_and_sizes_are_those_of_the_docstring(study_of_pipeline_study):
    sources = ["tuning", "tuned_on", *SOURCES[1:]]
    assert list(study_of_pipeline_study.columns) == [*GROUP, "design", "varied", *sources, *FOUND, "score", "n_test"]
    sizes = study_of_pipeline_study.groupby(["design", "varied"]).size() / 6
    assert sizes.to_dict() == {
        **{("one at a time", source): 80 for source in SOURCES[1:]},
        ("one at a time", "tuning"): 60,
        ("one at a time", "nothing"): 10,
        ("ideal", "all"): 60,
        **{("fixed tuning", varied): 400 for varied in ("init", "data", "all")},
    }
    assert set(study_of_pipeline_study["pipeline"]) == {"linear", "mlp"}
    assert set(study_of_pipeline_study["dataset"]) == {"cancer", "digits", "wine"}
    assert not study_of_pipeline_study.isna().any(axis=None)


def test_scores_are_shares_of_the_test_set(study_of_pipeline_study):
    right = study_of_pipeline_study["score"] * study_of_pipeline_study["n_test"]
    np.testing.assert_allclose(right, right.round(), atol=1e-8)
    assert study_of_pipeline_study["score"].between(0, 1).all()


def test_both_pipelines_have_the_same_seeds_and_test_sets(study_of_pipeline_study):
    keys = ["dataset", "design", "varied", *SOURCES, "tuned_on", "n_test"]
    linear, mlp = (
        study_of_pipeline_study.loc[study_of_pipeline_study["pipeline"] == name, keys].reset_index(drop=True)
        for name in ("linear", "mlp")
    )
    pd.testing.assert_frame_equal(linear, mlp)


@pytest.mark.parametrize("source", SOURCES)
def test_one_at_a_time_varies_one_source(study_of_pipeline_study, source):
    part = design(study_of_pipeline_study, "one at a time", source).groupby(GROUP)
    seeds = part[[*SOURCES, "tuned_on"]].nunique()
    assert (seeds.pop(source) == part.size()).all()
    assert (seeds == 1).all(axis=None)
    found = part[FOUND].nunique()
    assert (found["learning_rate"] > 10).all() if source == "tuning" else (found == 1).all(axis=None)


def test_all_designs_one_at_a_time_start_from_the_repeated_training(study_of_pipeline_study):
    reference = design(study_of_pipeline_study, "one at a time", "nothing").groupby(GROUP)
    assert (reference[[*SOURCES, "tuned_on", *FOUND, "score"]].nunique() == 1).all(axis=None)
    for _, part in design(study_of_pipeline_study, "one at a time").groupby(GROUP):
        modes = part[[*SOURCES, *FOUND]].mode().iloc[0]
        same = part[part["varied"] == "nothing"].iloc[0][[*SOURCES, *FOUND]]
        assert (modes.astype(float) == same.astype(float)).all()


def test_the_ideal_design_shares_nothing(study_of_pipeline_study):
    part = design(study_of_pipeline_study, "ideal")
    assert (part.groupby(GROUP)[SOURCES].nunique() == 60).all(axis=None)
    assert (part["tuned_on"] == part["data"]).all()


@pytest.mark.parametrize(("varied", "new"), [("init", ["init"]), ("data", ["data"]), ("all", SOURCES[1:])])
def test_fixed_tuning_shares_all_but_what_is_new(study_of_pipeline_study, varied, new):
    part = design(study_of_pipeline_study, "fixed tuning", varied)
    assert (part.groupby(GROUP)["tuning"].nunique() == 20).all()
    runs = part.groupby([*GROUP, "tuning"])[[*SOURCES, "tuned_on", *FOUND]].nunique()
    assert (runs[new] == 20).all(axis=None)
    assert (runs.drop(columns=new) == 1).all(axis=None)


def test_a_search_is_a_function_of_its_seed_and_its_data(study_of_pipeline_study):
    found = study_of_pipeline_study.groupby([*GROUP, "tuning", "tuned_on"])[FOUND].nunique()
    assert (found == 1).all(axis=None)
    assert len(found) == 6 * (1 + 60 + 60 + 20)
    linear = study_of_pipeline_study["pipeline"] == "linear"
    assert (study_of_pipeline_study.loc[linear, "hidden_units"] == 0).all()
    assert study_of_pipeline_study.loc[~linear, "hidden_units"].between(8, 64).all()


def test_the_test_set_depends_on_the_data_seed_alone(study_of_pipeline_study):
    assert (study_of_pipeline_study.groupby(["dataset", "data"])["n_test"].nunique() == 1).all()


@pytest.mark.level(2)
def test_rows_can_be_made_again_from_their_seeds():
    pytest.importorskip("sklearn", reason="training again needs the extra 'data'")
    command = [sys.executable, str(BUILDER_OF_PIPELINE_STUDY), "--check", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "library versions have changed" in done.stdout:
        pytest.skip("the file was built with other library versions: " + done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
