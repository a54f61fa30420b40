"""The command line: what it prints where, what it writes, and with which exit code it stops."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lmemtest
from lmemtest import cli
from lmemtest.cli import app
from lmemtest.tuning.by_benchmark import tuning_curves

ROLES = ["--score", "loss", "--direction", "minimize", "--algorithm", "tool", "--benchmark", "task", "--seed", "rep"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with runs.csv, which is the current one."""
    rng = np.random.default_rng(5)
    rows = [
        (tool, f"task{task}", rep, task + step + rng.normal(0.0, 0.2))
        for task in range(7)
        for step, tool in enumerate(["HB", "RS"])
        for rep in range(3)
    ]
    pd.DataFrame(rows, columns=["tool", "task", "rep", "loss"]).to_csv(tmp_path / "runs.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not decide what a test reads on standard error."""
    monkeypatch.setattr(cli, "INTERVAL", 1e6)


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["lmemtest", *arguments])
        with pytest.raises(SystemExit) as stop:
            app(list(arguments), prog_name="lmemtest")
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call


# ------------------------------------------------------------------------------------------------------- report


def test_report_writes_the_page_and_prints_its_path_last(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("report", "runs.csv", *ROLES, "-o", "out.html")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "HB is better than RS: its mean loss is significantly lower."
    assert lines[-1] == str(folder / "out.html")
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert "lmemtest report runs.csv --score loss --direction minimize" in page
    assert page.rstrip().endswith("</html>")


def test_report_takes_formula_and_alpha(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("report", "runs.csv", *ROLES, "--formula", "loss ~ tool + (1 | task)", "--alpha", "0.01")
    assert outcome.code == 0
    page = (folder / "lmemtest-report.html").read_text(encoding="utf-8")
    assert "This model was given by the user" in page
    assert "99 % CI low" in page


def test_report_and_fit_take_residual_variances_by_benchmark(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("report", "runs.csv", *ROLES, "--dispersion", "task")
    assert outcome.code == 0
    page = (folder / "lmemtest-report.html").read_text(encoding="utf-8")
    assert "Residual variance by task" in page
    assert "--dispersion task" in page
    outcome = run("fit", "runs.csv", "loss ~ tool + (1 | task)", "--dispersion", "task")
    table = pd.read_csv(folder / "runs.csv")
    assert outcome.out == f"{lmemtest.fit_lmm('loss ~ tool + (1 | task)', table, dispersion='task').summary()}\n"
    outcome = run("report", "runs.csv", *ROLES, "--dispersion", "tsak")
    assert outcome.code == 2
    assert "dispersion names the column 'tsak', which is not in the data." in outcome.err


def test_demo_needs_no_data(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("demo")
    assert (outcome.code, outcome.err) == (0, "")
    path = Path(outcome.out.splitlines()[-1])
    assert path == folder / "lmemtest-demo.html"
    assert path.stat().st_size > 100_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["report", "runs.csv"],
            "error: --score, --direction and --algorithm must be given. Columns of runs.csv: tool, task, rep, loss.\n",
        ),
        (
            ["report", "runs.csv", *ROLES[:-1], "reps"],
            "error: seed names the column 'reps', which is not in the data. Columns: tool, task, rep, loss. "
            "Did you mean 'rep'?\n",
        ),
        (
            ["report", "run.csv", *ROLES],
            "error: There is no file 'run.csv' in the folder '.'. Did you mean 'runs.csv'?\n",
        ),
        (
            ["report", "runs.csv", *ROLES, "-o", "no/out.html"],
            "error: path must be in a folder that exists, but 'no' does not. Create it first.\n",
        ),
        (
            ["demo", "-o", "demo.pdf"],
            "error: path must end in .html or .htm, got 'demo.pdf'. Write 'demo.html'.\n",
        ),
        (
            ["report", "runs.csv", *ROLES, "--alpha", "5"],
            "error: alpha must be a number between 0 and 1 (both excluded), got 5.0. Write 0.05?\n",
        ),
        (
            ["fit", "runs.csv", "loss ~ tol + (1 | task)"],
            "error: formula uses 'tol' (position 8), not in data. Columns: tool, task, rep, loss. "
            "Did you mean 'tool'?\n    loss ~ tol + (1 | task)\n           ^^^\n",
        ),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_two(  # type: ignore[no-untyped-def]
    arguments: list[str], message: str, run, folder: Path
) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", message)
    assert [path.name for path in folder.iterdir()] == ["runs.csv"]


@pytest.mark.usefixtures("folder")
def test_wrong_options_are_explained(run) -> None:  # type: ignore[no-untyped-def]
    outcome = run("report", "runs.csv", *ROLES[:2], "--direction", "down", "--algorithm", "tool")
    assert outcome.code == 2
    assert "--direction" in outcome.err
    assert "minimize" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_failed_report_leaves_the_old_one(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "out.html").write_text("old", encoding="utf-8")
    outcome = run("report", "runs.csv", *ROLES, "--formula", "loss ~ 1 + (1 | task)", "-o", "out.html")
    assert outcome.code == 2
    assert outcome.err.startswith("error: formula must have the algorithm 'tool' in its fixed part")
    assert (folder / "out.html").read_text(encoding="utf-8") == "old"


def test_a_folder_without_permission_is_an_error(  # type: ignore[no-untyped-def]
    run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("lmemtest.report.files.tempfile.mkstemp", refuse)
    outcome = run("report", "runs.csv", *ROLES)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: Permission denied: {str(folder)!r}\n")


# --------------------------------------------------------------------------------------------------- check, fit


@pytest.mark.usefixtures("folder")
def test_check_prints_the_findings(run) -> None:  # type: ignore[no-untyped-def]
    outcome = run("check", "runs.csv", *ROLES)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == ("42 rows: 2 algorithms, 7 benchmarks, 3 seeds; complete and balanced.\nNo problems found.\n")


def test_check_stops_with_one_where_a_fit_is_impossible(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    frame = pd.read_csv(folder / "runs.csv")
    frame.loc[0, "loss"] = np.nan
    frame.to_csv(folder / "runs.csv", index=False)
    outcome = run("check", "runs.csv", *ROLES)
    assert (outcome.code, outcome.err) == (1, "")
    assert "ERROR" in outcome.out


def test_fit_prints_both_tables(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("fit", "runs.csv", "loss ~ tool + (1 | task)", "--ml")
    expected = lmemtest.fit_lmm("loss ~ tool + (1 | task)", pd.read_csv(folder / "runs.csv"), reml=False).summary()
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{expected}\n", "")


# -------------------------------------------------------------------------------------------------------- bands

TRIALS = ["trials.csv", "--score", "loss", "--direction", "minimize"]
BY = ["--algorithm", "tool", "--benchmark", "task"]


@pytest.fixture
def trials(folder: Path) -> pd.DataFrame:
    """A table of trials, in the current folder as trials.csv."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        [
            (tool, f"task{task}", trial, rng.gamma(2.0 + step), rng.lognormal(0.0, 0.2))
            for task in range(2)
            for step, tool in enumerate(["new", "old"])
            for trial in range(30)
        ],
        columns=["tool", "task", "trial", "loss", "seconds"],
    )
    frame.to_csv(folder / "trials.csv", index=False)
    return pd.read_csv(folder / "trials.csv")


def test_bands_writes_table_and_figures_and_prints_their_paths_last(  # type: ignore[no-untyped-def]
    run, folder: Path, trials: pd.DataFrame
) -> None:
    outcome = run("bands", *TRIALS, *BY, "-o", "out")
    assert (outcome.code, outcome.err) == (0, "")
    names = ["tuning-curves.csv", "tuning-labels.csv", "tuning-curves.png", "tuning-curves.svg"]
    lines = outcome.out.splitlines()
    assert lines[-4:] == [str(folder / "out" / name) for name in names]
    assert sorted(os.listdir(folder / "out")) == sorted(names)
    assert lines[0].startswith("Tuning curves of 2 algorithms on 2 benchmarks by loss, minimize. Median of the")
    assert lines[1].startswith("new and old, 2 benchmarks: ")
    curves = tuning_curves(trials, score="loss", direction="minimize", by=["task", "tool"])
    written = pd.read_csv(folder / "out" / names[0])
    pd.testing.assert_frame_equal(written, curves.to_frame(), check_dtype=False)
    labels = pd.read_csv(folder / "out" / names[1], keep_default_na=False)
    assert labels.columns.tolist() == ["task", "first", "second", "evidence", "better", "portion", "budgets"]
    assert (folder / "out" / names[2]).read_bytes().startswith(b"\x89PNG")
    assert (folder / "out" / names[3]).read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_bands_takes_its_options(run, folder: Path, trials: pd.DataFrame) -> None:  # type: ignore[no-untyped-def]
    options = ["--statistic", "mean", "--bounds", "0", "50", "--confidence", "0.9", "--method", "ks", "--k-max", "5"]
    assert run("bands", *TRIALS, *BY, *options, "--adjust", "bonferroni").code == 0
    want = tuning_curves(
        trials,
        score="loss",
        direction="minimize",
        by=["task", "tool"],
        statistic="mean",
        bounds=(0, 50),
        confidence=0.9,
        band="ks",
        k=[1, 2, 3, 4, 5],
        adjust="bonferroni",
    ).to_frame()
    written = pd.read_csv(folder / "lmemtest-bands" / "tuning-curves.csv")
    pd.testing.assert_frame_equal(written, want, check_dtype=False)
    assert run("bands", *TRIALS, *BY, "--cost", "seconds", "--statistic", "0.9", "-o", "cost").code == 0
    assert "cost" in pd.read_csv(folder / "cost" / "tuning-curves.csv").columns


@pytest.mark.usefixtures("trials")
def test_bands_without_an_algorithm_take_all_trials_together(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run("bands", *TRIALS, "--benchmark", "task", "-o", "out")
    assert outcome.code == 0
    assert outcome.out.startswith("Tuning curves of 1 algorithm on 2 benchmarks by loss, minimize.")
    assert sorted(os.listdir(folder / "out")) == ["tuning-curves.csv", "tuning-curves.png", "tuning-curves.svg"]
    table = pd.read_csv(folder / "out" / "tuning-curves.csv")
    assert table["algorithm"].unique().tolist() == ["all trials"]
    pd.read_csv(folder / "trials.csv").rename(columns={"tool": "algorithm"}).to_csv(folder / "trials.csv", index=False)
    outcome = run("bands", *TRIALS, "--benchmark", "task")
    assert outcome.err == (
        "error: --algorithm must be given, because trials.csv has a column 'algorithm'. To take its levels together, "
        "remove the column.\n"
    )


def test_bands_over_seeds(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    frame = pd.concat(
        [pd.read_csv(folder / "runs.csv").assign(epochs=e, loss=lambda f, e=e: f["loss"] - e) for e in (1, 2)]
    )
    frame.to_csv(folder / "trials.csv", index=False)
    seeds = ["--over", "seed", "--seed", "rep", "--budget", "epochs", "--confidence", "0.5", "--pointwise"]
    outcome = run("bands", *TRIALS, *BY, *seeds, "-o", "out")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Curves over seeds of 2 algorithms on 7 benchmarks by loss, minimize. Median over")
    assert "Bands over trials are for random search" in outcome.out
    assert "at each budget by itself" in outcome.out
    assert "budget" in pd.read_csv(folder / "out" / "tuning-curves.csv").columns


@pytest.mark.usefixtures("trials")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["trials.csv"],
            "--score and --direction must be given. Columns of trials.csv: tool, task, trial, loss, seconds.",
        ),
        (
            [*TRIALS, "--algorithm", "tol"],
            "by names the column 'tol', which is not in the data. Columns: tool, task, trial, loss, seconds. Did you "
            "mean 'tool'?",
        ),
        (
            [*TRIALS, *BY, "-o", "no/out"],
            "output must be a folder in one that exists, but 'no' does not. Create it first.",
        ),
        (
            [*TRIALS, *BY, "-o", "runs.csv"],
            "output must be a folder, but 'runs.csv' is a file. Name a folder for several files.",
        ),
        ([*TRIALS, *BY, "--k-max", "0"], "--k-max must be a whole number of at least 1, got 0."),
        (
            [*TRIALS, *BY, "--k-max", "5", "--cost", "seconds"],
            "--k-max counts trials, but with --cost budgets are no trials. Leave it out.",
        ),
        (
            [*TRIALS, *BY, "--statistic", "mode"],
            "statistic must be 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got 'mode'.",
        ),
    ],
)
def test_wrong_input_of_bands_writes_nothing(  # type: ignore[no-untyped-def]
    arguments: list[str], message: str, run, folder: Path
) -> None:
    outcome = run("bands", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")
    assert sorted(path.name for path in folder.iterdir()) == ["runs.csv", "trials.csv"]


@pytest.mark.usefixtures("trials")
def test_failing_bands_leave_the_old_files(  # type: ignore[no-untyped-def]
    run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("bands", *TRIALS, *BY, "-o", "out").code == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("lmemtest.report.files.os.replace", fail)
    outcome = run("bands", *TRIALS, *BY, "--confidence", "0.5", "-o", "out")
    assert (outcome.code, outcome.err) == (2, "error: the disk is full\n")
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


# ---------------------------------------------------------------------------------------------------- as a whole


def test_help_is_the_manual(run) -> None:  # type: ignore[no-untyped-def]
    outcome = run("--help")
    assert outcome.code == 0
    for command in ("report", "demo", "check", "fit", "bands"):
        assert f"  {command} " in outcome.out
        manual = run(command, "--help").out
        assert "Example:\n    lmemtest " in manual
        assert "\x1b" not in manual


def test_python_m_is_the_same_and_help_loads_nothing_heavy() -> None:
    package = str(Path(lmemtest.__file__).parent.parent)
    program = f"import sys; sys.path.insert(0, {package!r}); from lmemtest.cli import main; sys.argv[1:] = ['--help']"
    code = (
        f"{program}\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'pandas', 'numpy', 'scipy', 'matplotlib', 'narwhals', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    env_free = subprocess.run(
        [sys.executable, "-c", f"import sys, runpy; sys.path.insert(0, {package!r}); sys.argv[1:] = ['--version']; "
         "runpy.run_module('lmemtest', run_name='__main__')"],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    assert env_free.stdout == f"lmemtest {lmemtest.__version__}\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [["check", "runs.csv", *ROLES], pytest.param(["report", "runs.csv", *ROLES], marks=pytest.mark.slow)],
)
def test_a_reader_who_goes_is_no_error(arguments: list[str]) -> None:
    package = str(Path(lmemtest.__file__).parent.parent)
    program = f"import sys; sys.path.insert(0, {package!r}); from lmemtest import cli; cli.INTERVAL = 1e6; cli.main()"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_piped_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "INTERVAL", 0.01)
    with cli._progress() as step:
        step("fitting the model")
        printed = _printed(capsys, "fitting the model ... (")
        step("drawing the figures")
        printed += _printed(capsys, "drawing the figures ... (")
    capsys.readouterr()
    assert printed.splitlines()[-1].endswith(" s)")
    assert capsys.readouterr() == ("", "")  # nothing after the end


def test_a_quick_command_that_is_piped_says_nothing_of_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with cli._progress() as step:
        step("fitting the model")
    assert capsys.readouterr() == ("", "")


def _printed(capsys: pytest.CaptureFixture[str], text: str) -> str:
    """What standard error has as soon as the text is there."""
    found = ""
    for _ in range(6000):
        found += capsys.readouterr().err
        if text in found:
            return found
        time.sleep(0.01)
    pytest.fail(f"no {text!r} within a minute")
