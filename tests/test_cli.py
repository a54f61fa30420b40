"""The command line: what it prints where, what it writes, and with which exit code it stops."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import shlex
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from study import make_runs

import lmemtest
from lmemtest import tuning
from lmemtest.cli import app, main, rendering
from lmemtest.cli.command import function_at
from lmemtest.cli.options import IN_PYTHON, OPTIONS, RUNS, options_of

IN_ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "rep"}
ROLES = [word for role, column in IN_ROLES.items() for word in (f"--{role}", column)]


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


# -------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("command", ["rank", "check", pytest.param("report", marks=pytest.mark.level(2))])
def test_each_file_that_is_asked_for_is_written(run, folder, command):
    asked = [command, "runs.csv", *ROLES, "-o", "a.json", "-o", "b.md"]
    names = {folder / "a.json", folder / "b.md"}
    assert {Path(line) for line in run(*asked).out.splitlines()[-2:]} == names <= {*folder.iterdir()}
    json.loads(run(*asked, "--json").out)  # and nothing else


@pytest.mark.parametrize("command", [["rank", *ROLES, "--score", "rep"], ["paper", *ROLES, "-o", "a", "-o", "b"]])
def test_an_option_of_one_value_is_refused_when_it_has_several(run, folder, command):
    outcome = run(command[0], "runs.csv", *command[1:])
    assert outcome.code == 2
    assert "it takes one value, and was given 2 times. Give it once." in " ".join(outcome.err.split())
    assert [path.name for path in folder.iterdir()] == ["runs.csv"]


# ------------------------------------------------------------------------------------------------------- report


def test_report_writes_the_page_and_prints_its_path_last(run, folder):
    outcome = run("report", "runs.csv", *ROLES, "-o", "out.html")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("HB is better than RS. HB is ahead of RS by 1.045 (95 % CI 0.881 to 1.209, p < 0.001)")
    assert lines[-1] == str(folder / "out.html")
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert "lmemtest report runs.csv --score loss --direction minimize" in page
    assert page.rstrip().endswith("</html>")


def test_report_takes_formula_and_alpha(run, folder):
    outcome = run("report", "runs.csv", *ROLES, "--formula", "loss ~ tool + (1 | task)", "--alpha", "0.01")
    assert outcome.code == 0
    page = (folder / "lmemtest-report.html").read_text(encoding="utf-8")
    assert "This model was given by the user" in page
    assert "99 % CI low" in page


def test_report_and_fit_take_residual_variances_by_benchmark(run, folder):
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


def test_demo_needs_no_data(run, folder):
    outcome = run("demo")
    assert (outcome.code, outcome.err) == (0, "")
    path = Path(outcome.out.splitlines()[-1])
    assert path == folder / "lmemtest-demo.html"
    assert path.stat().st_size > 100_000


def test_a_failed_report_leaves_the_old_one(run, folder):
    (folder / "out.html").write_text("old", encoding="utf-8")
    outcome = run("report", "runs.csv", *ROLES, "--formula", "loss ~ 1 + (1 | task)", "-o", "out.html")
    assert outcome.code == 2
    assert outcome.err.startswith("error: --formula must have the algorithm 'tool' in its fixed part")
    assert (folder / "out.html").read_text(encoding="utf-8") == "old"


def test_a_folder_without_permission_is_an_error(run, folder, monkeypatch):
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("lmemtest.report.files.tempfile.mkstemp", refuse)
    outcome = run("report", "runs.csv", *ROLES)
    message = f"error: -o must be in a folder that can be written to, but {str(folder)!r} cannot (Permission denied)."
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"{message} Choose another one.\n")


# --------------------------------------------------------------------------------------------------- check, fit


@pytest.mark.usefixtures("folder")
def test_check_prints_the_findings(run):
    outcome = run("check", "runs.csv", *ROLES)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("What runs.csv can answer\n  Roles: --score loss --direction minimize")
    assert "\n\nChecks: 42 rows: 2 algorithms, 7 benchmarks, 3 seeds; complete and balanced.\n" in outcome.out
    assert "\nNothing was found that has to be fixed; 3 of 17 checks could not be made" in outcome.out


def test_check_stops_with_one_where_a_fit_is_impossible(run, folder):
    frame = pd.read_csv(folder / "runs.csv")
    frame.loc[0, "loss"] = np.nan
    frame.to_csv(folder / "runs.csv", index=False)
    outcome = run("check", "runs.csv", *ROLES)
    assert (outcome.code, outcome.err) == (1, "")
    assert "scores              error    1 of 3 scores of " in outcome.out


def test_fit_prints_both_tables(run, folder):
    outcome = run("fit", "runs.csv", "loss ~ tool + (1 | task)", "--ml")
    expected = lmemtest.fit_lmm("loss ~ tool + (1 | task)", pd.read_csv(folder / "runs.csv"), reml=False).summary()
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{expected}\n", "")


# -------------------------------------------------------------------------------------------------------- bands

TRIALS = ["trials.csv", *ROLES[:4]]
BY = ROLES[4:8]


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


def test_bands_writes_table_and_figures_and_prints_their_paths_last(run, folder, trials):
    outcome = run("bands", *TRIALS, *BY, "-o", "out")
    assert (outcome.code, outcome.err) == (0, "")
    names = ["tuning-curves.csv", "tuning-labels.csv", "tuning-curves.png", "tuning-curves.svg"]
    lines = outcome.out.splitlines()
    assert lines[-4:] == [str(folder / "out" / name) for name in names]
    assert sorted(os.listdir(folder / "out")) == sorted(names)
    assert lines[0].startswith("Tuning curves of 2 algorithms on 2 benchmarks by loss, minimize. Median of the")
    assert lines[1].startswith("new and old, 2 benchmarks: ")
    curves = tuning.curves(trials, score="loss", direction="minimize", by=["task", "tool"])
    written = pd.read_csv(folder / "out" / names[0])
    pd.testing.assert_frame_equal(written, curves.to_frame(), check_dtype=False)
    labels = pd.read_csv(folder / "out" / names[1], keep_default_na=False)
    assert labels.columns.tolist() == ["task", "first", "second", "evidence", "better", "portion", "budgets"]
    assert (folder / "out" / names[2]).read_bytes().startswith(b"\x89PNG")
    assert (folder / "out" / names[3]).read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_bands_takes_its_options(run, folder, trials):
    options = ["--statistic", "mean", "--bounds", "0", "50", "--level", "0.9", "--band", "ks", "--k-max", "5"]
    assert run("bands", *TRIALS, *BY, *options, "--adjust", "bonferroni").code == 0
    asked = {"statistic": "mean", "bounds": (0, 50), "level": 0.9, "band": "ks", "k": [1, 2, 3, 4, 5]}
    roles = {"score": "loss", "direction": "minimize", "by": ["task", "tool"]}
    want = tuning.curves(trials, **roles, **asked, adjust="bonferroni").to_frame()
    written = pd.read_csv(folder / "lmemtest-bands" / "tuning-curves.csv")
    pd.testing.assert_frame_equal(written, want, check_dtype=False)
    assert run("bands", *TRIALS, *BY, "--cost", "seconds", "--statistic", "0.9", "-o", "cost").code == 0
    assert "cost" in pd.read_csv(folder / "cost" / "tuning-curves.csv").columns


@pytest.mark.usefixtures("trials")
def test_bands_without_an_algorithm_take_all_trials_together(run, folder):
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


def test_bands_over_seeds(run, folder):
    frame = pd.concat(
        [pd.read_csv(folder / "runs.csv").assign(epochs=e, loss=lambda f, e=e: f["loss"] - e) for e in (1, 2)]
    )
    frame.to_csv(folder / "trials.csv", index=False)
    seeds = ["--unit", "seed", "--seed", "rep", "--budget", "epochs", "--level", "0.5", "--pointwise"]
    outcome = run("bands", *TRIALS, *BY, *seeds, "-o", "out")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Curves over seeds of 2 algorithms on 7 benchmarks by loss, minimize. Median over")
    assert "Bands over trials are for random search" in outcome.out
    assert "at each budget separately" in outcome.out
    assert "budget" in pd.read_csv(folder / "out" / "tuning-curves.csv").columns


@pytest.mark.usefixtures("trials")
def test_failing_bands_leave_the_old_files(run, folder, monkeypatch):
    assert run("bands", *TRIALS, *BY, "-o", "out").code == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("lmemtest.report.files.os.replace", fail)
    outcome = run("bands", *TRIALS, *BY, "--level", "0.5", "-o", "out")
    assert (outcome.code, outcome.err) == (2, "error: the disk is full\n")
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_too_little_memory_is_a_message(run, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 10.7 GiB")

    monkeypatch.setattr("lmemtest.bench.data.readers.open_table", fail)
    outcome = run("check", "runs.csv", "--score", "loss", "--direction", "minimize", "--algorithm", "tool")
    assert (outcome.code, outcome.err) == (
        2,
        "error: There is not enough memory for this (Unable to allocate 10.7 GiB). Take fewer rows with --where; or "
        "give Runs a lazy table in Python, such as polars.scan_parquet(path).\n",
    )


# ----------------------------------------------------------------------------------------------------- refusals

TABLE, BANDS = " ".join(["runs.csv", *ROLES]), " ".join(["bands", *TRIALS, *BY])
SDS = "--sd tuning=0.4 --sd data=0.9 --sd seed=0.3"
FAILED = "--failed crashed --score-failures"
# By the tables that are there: a command and its message, whole where it ends its line.
REFUSED = {
    "folder": [
        ("report runs.csv", "error: --score, --direction and --algorithm must be given. Columns of runs.csv: tool, "
         "task, rep, loss. By names and structure:\n  lmemtest report runs.csv --score loss --direction minimize "
         "--algorithm tool --benchmark task --seed rep\n--yes takes these roles without asking.\n"),
        (f"report {TABLE}s", "error: --seed names the column 'reps', which is not in the data. Columns: tool, task, "
         "rep, loss. Did you mean 'rep'?\n"),
        ("report runs.csv --score loss --direction down --algorithm tool", "'minimize' or 'maximize', got 'down'"),
        (f"report {TABLE[:2]}{TABLE[3:]}", "error: There is no file 'rus.csv' in the folder '.'. Did you mean "
         "'runs.csv'?\n"),
        (f"report {TABLE} -o no/out.html",
         "error: -o must be in a folder that exists, but 'no' does not. Create it first.\n"),
        (f"report {TABLE} -o /proc/x.html", "error: -o must be in a folder that can be written to, but '/proc' can"),
        (f"report {TABLE} -o {'a' * 300}.html", "error: -o cannot be 'aaa"),
        (f"report {TABLE} -o .", "error: -o must end in one of"),
        ("demo -o demo.pdf", "error: -o must end in one of .html, .htm, .md, .txt, .tex, .csv, .json, .png, got "
         "'demo.pdf'. Write 'demo.html'.\n"),
        (f"report {TABLE} --alpha 5",
         "error: --alpha must be a number between 0 and 1 (both excluded), got 5.0. Write 0.05?\n"),
        (f"report {TABLE} --alpha abc", "'abc' is not a number"),
        ("fit runs.csv 'loss ~ tol + (1 | task)'", "error: formula uses 'tol' (position 8), not in data. Columns: "
         "tool, task, rep, loss. Did you mean 'tool'?\n    loss ~ tol + (1 | task)\n           ^^^\n"),
        (f"outperform {TABLE} --only XY --only RS",
         "error: --only names 'XY', which is not in the runs. Algorithms: HB, RS"),
        (f"outperform {TABLE} --only RS", "error: --only must be two different names or more"),
        (f"outperform {TABLE} --control XY", "error: --control must be one of the algorithms (HB, RS)"),
        (f"outperform {TABLE} --gamma 0.4", "error: --gamma must be a number between 0.5 and 1 (both excluded)"),
        (f"outperform {TABLE} --method bca", "error: --method must be 'auto' or 'mixed' or 'percentile', got 'bca'"),
        (f"outperform {TABLE.removesuffix('--seed rep')} --ignore rep", "error: runs has no seed column"),
        (f"outperform {TABLE.removesuffix('--seed rep')} --ignore rep",
         "Name it: --seed COLUMN, or compare all runs with --unpaired."),
        (f"plan {SDS} --budget 60", "error: --trials must be given: how many trainings a tuning run takes"),
        ("plan --budget 60",
         "error: --sd NAME=NUMBER must be given, or a table of runs that tells how much scores vary."),
        ("plan --sd tuning --budget 60", "'tuning' is not NAME=NUMBER, such as data=3."),
        (f"plan {SDS} --trials 5 --budget 9 --at-most date=1", "error: --at-most names 'date', which is no stage."),
        (f"plan {SDS} --trials 5", "plan takes one of --budget, --target and --effect (or --current, to plan for its"),
        (f"plan {SDS} --trials 5 --budget 1", "error: --budget is 1, and the smallest design, 1 tuning run x 1"),
        (f"plan {SDS} --sd data=0.3 --trials 5 --budget 9", "'data' has two numbers."),
        (f"plan study.csv {SDS} --trials 5 --budget 60", "given by --sd or estimated from a table, not both."),
        ("plan study.csv --source data --budget 9", "error: --score must be given, the column of the scores."),
    ],
    "trials": [
        ("bands trials.csv",
         "error: --score and --direction must be given. Columns of trials.csv: tool, task, trial, loss, seconds.\n"),
        (f"bands {' '.join(TRIALS)} --algorithm tol", "error: by names the column 'tol', which is not in the data. "
         "Columns: tool, task, trial, loss, seconds. Did you mean 'tool'?\n"),
        (f"{BANDS} -o no/out", "error: -o must be a folder in one that exists, but 'no' does not. Create it first.\n"),
        (f"{BANDS} -o runs.csv",
         "error: -o must be a folder, but 'runs.csv' is a file. Name a folder for several files.\n"),
        (f"{BANDS} -o bands.png", "error: -o must be a folder, which holds several files, got 'bands.png', the name "
         "of a file. Leave out '.png'.\n"),
        (f"{BANDS} --k-max 0", "error: --k-max must be a whole number of at least 1, got 0.\n"),
        (f"{BANDS} --k-max 5 --cost seconds",
         "error: --k-max counts trials, but with --cost budgets are no trials. Leave it out.\n"),
        (f"{BANDS} --statistic mode",
         "error: statistic must be 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got 'mode'.\n"),
    ],
    "failing": [
        (f"check {TABLE} --normalize baseline",
         "error: --normalize baseline needs --reference: an algorithm, a column or a number,"),
        (f"check {TABLE} --normalize rank --target 2",
         "error: --target is not an argument of --normalize rank. Leave it out."),
        (f"check {TABLE} --best-known 2", "error: --best-known is used by --normalize only. Add --normalize gap."),
        (f"check {TABLE} --normalize baseline --reference R",
         "error: --reference must be an algorithm, a column or a number, got 'R'."),
        (f"check {TABLE} --score-failures worst",
         "error: --score-failures needs to know which runs failed: --failed missing for scores"),
        (f"check {TABLE} --failed crashd",
         "error: --failed names 'crashd', which is neither a column nor one of 'missing', 'nonfinite', "),
        (f"check {TABLE} --failed task",
         "error: --failed and --benchmark both name the column 'task'; every role needs its own column."),
        (f"rank {TABLE} --failed crashed", "error: 2 of 42 runs failed (HB 2) and have no score, and what a failure "
         "counts decides the comparison. Say it: --score-failures worst gives it the worst score"),
        (f"rank {TABLE} {FAILED} wors",
         "error: --score-failures must be worst, baseline=NAME, drop, retry, or a number, got '"),
        (f"rank {TABLE} {FAILED} nan", "error: --score-failures must be a finite number, got nan."),
        (f"rank {TABLE} {FAILED} baseline",
         "error: --score-failures baseline needs a name, baseline=NAME, the algorithm whose"),
        (f"rank {TABLE} {FAILED} baseline=RSS", "error: --score-failures baseline=RSS names no algorithm of the "
         "table. Algorithms: 'HB', 'RS'. Did you mean 'RS'?"),
        (f"rank {TABLE} --where rep=0 --where task=task0 {FAILED} baseline=HB", "error: The reference 'HB' has no "
         "score itself on task0, where runs failed. Take another reference, leave it out with --where, or give "
         "failed runs a number: --score-failures NUMBER."),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("tables", "command", "message"), [(t, *row) for t, rows in REFUSED.items() for row in rows])
def test_wrong_input_is_one_message_and_exit_code_two(run, folder, tables, command, message, request, monkeypatch):
    request.getfixturevalue(tables)
    before = {*folder.iterdir()}
    if "-o" in command:  # paths are looked at before any work
        monkeypatch.setattr("lmemtest.report.analysis.analyze", None)
    outcome = run(*shlex.split(command))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == message if message.endswith("\n") else message in outcome.err
    assert "Traceback" not in outcome.err
    assert {*folder.iterdir()} == before


# ---------------------------------------------------------------------------------------------------- as a whole


PAPER = (
    *("figure.pdf", "differences.pdf", "ranking.tex", "pairs.tex", "sentence.tex", "sentence.txt", "methods.tex"),
    *("references.bib", "article.tex", "supplement.tex", "files.sha256"),
)


def test_paper_writes_its_pieces_and_prints_their_paths_last(run, folder):
    outcome = run("paper", "runs.csv", *ROLES, "--alpha", "0.01")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("HB is better than RS.")
    assert lines[-11:] == [str(folder / "lmemtest-paper" / name) for name in PAPER]
    assert sorted(os.listdir(folder / "lmemtest-paper")) == sorted(PAPER)
    assert "-{}-alpha 0.01" in (folder / "lmemtest-paper" / "supplement.tex").read_text(encoding="utf-8")
    assert "99 \\% CI" in (folder / "lmemtest-paper" / "ranking.tex").read_text(encoding="utf-8")


def test_paper_replaces_no_file_of_others(run, folder):
    (folder / "out").mkdir()
    (folder / "out" / "figure.pdf").write_text("mine", encoding="utf-8")
    outcome = run("paper", "runs.csv", *ROLES, "-o", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error: -o must be a folder without files of others: figure.pdf of {str(folder / 'out')!r} was not written "
        "here, or changed since. Choose another folder, or replace them with --overwrite.\n"
    )
    assert os.listdir(folder / "out") == ["figure.pdf"]
    assert run("paper", "runs.csv", *ROLES, "-o", "out", "--overwrite").code == 0
    assert (folder / "out" / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_help_is_the_manual(run):
    outcome = run("--help")
    assert outcome.code == 0
    for command in ("report", "paper", "demo", "check", "fit", "bands"):
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
    "arguments", [["check", "runs.csv", *ROLES], pytest.param(["report", "runs.csv", *ROLES], marks=pytest.mark.slow)]
)
def test_a_reader_who_goes_is_no_error(arguments: list[str]) -> None:
    package = str(Path(lmemtest.__file__).parent.parent)
    quiet = "from lmemtest.cli import main, rendering; rendering.INTERVAL = 1e6; main()"
    program = f"import sys; sys.path.insert(0, {package!r}); {quiet}"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_piped_progress_is_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(rendering, "INTERVAL", 0.01)
    with rendering.progress() as step:
        step("fitting the model")
        printed = _printed(capsys, "fitting the model ... (")
        step("drawing the figures")
        printed += _printed(capsys, "drawing the figures ... (")
    capsys.readouterr()
    assert printed.splitlines()[-1].endswith(" s)")
    assert capsys.readouterr() == ("", "")  # nothing after the end


def test_a_quick_command_that_is_piped_says_nothing_of_its_progress(capsys, monkeypatch):
    monkeypatch.setattr(rendering, "INTERVAL", 1e6)  # quick on a busy machine, too
    with rendering.progress() as step:
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


# ------------------------------------------------------------------------------------------- roles, rows and formats


def test_missing_roles_are_guessed_shown_and_taken_with_yes(run, folder):
    outcome = run("report", "runs.csv", "--yes", "-o", "out.csv")
    assert outcome.code == 0
    guessed = "--score loss --direction minimize --algorithm tool --benchmark task --seed rep"
    assert outcome.err == f"taking {guessed}\n"
    named = run("report", "runs.csv", *ROLES, "-o", "same.csv")
    assert named.out.splitlines()[:-1] == outcome.out.splitlines()[:-1]
    assert (folder / "out.csv").read_text() == (folder / "same.csv").read_text()


@pytest.mark.usefixtures("folder")
def test_a_terminal_is_asked(run, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    answers = iter([False, True])
    monkeypatch.setattr("typer.confirm", lambda *_, **__: next(answers))
    refused = run("rank", "runs.csv")
    assert refused.code == 2
    assert "  --algorithm    tool\n" in refused.err
    assert "HB" in run("rank", "runs.csv").out


def curves_in(folder: Path) -> list[str]:
    """`runs.csv` with every run scored at three epochs; the options that name its roles."""
    frame = pd.read_csv(folder / "runs.csv")
    curves = pd.concat([frame.assign(epoch=epoch, loss=frame["loss"] + 1 / epoch) for epoch in (1, 3, 9)])
    curves.to_csv(folder / "curves.csv", index=False)
    return ["curves.csv", *ROLES, "--budget", "epoch"]


def test_what_a_curve_counts_is_shown_and_may_be_chosen(run, folder):
    given = curves_in(folder)
    shown = "taking --curves mean: each run counts once, with the mean over its budgets: whole curves\n"
    outcome = run("report", *given, "-o", "out.json")
    assert (outcome.code, outcome.err) == (0, shown)
    assert "Each run counts once, with its mean over 3 values of epoch." in outcome.out
    assert json.loads((folder / "out.json").read_text())["curves"] == "mean"
    last = run("rank", *given, "--curves", "last")
    assert (last.err, last.out.splitlines()[0][:22]) == ("", "Ranking by loss_last (")
    assert run("rank", *given, "--curves", "lst").err.startswith("error: --curves must be 'mean' or 'last' or 'best'")
    assert run("report", "runs.csv", *ROLES, "--curves", "last").err.startswith("error: --curves says what the scores")
    own = run("report", *given, "--formula", "loss ~ tool + (1 | task/tool)", "-o", "own.csv")
    assert (own.code, own.err) == (0, "")


def test_a_terminal_is_asked_what_a_curve_counts(run, folder, monkeypatch):
    given = curves_in(folder)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("typer.prompt", lambda text, **options: asked.append((text, options["default"])) or "best")
    outcome = run("rank", *given)
    assert asked == [("Curves", "mean")]
    assert "Runs have scores at several values of epoch. What does each run count?\n  mean   the mean" in outcome.err
    assert outcome.out.startswith("Ranking by loss_best (")


def test_what_cannot_be_guessed_is_asked_for(run, folder):
    frame = pd.read_csv(folder / "runs.csv").rename(columns={"loss": "value"})
    frame.to_csv(folder / "runs.csv", index=False)
    outcome = run("report", "runs.csv", "--yes")
    assert outcome.code == 2
    roles = "--score value --direction {} --algorithm tool --benchmark task --seed rep"
    assert outcome.err.endswith(
        "\nOnly you can say whether low or high scores are good.\n"
        f"If a high 'value' is good:\n  lmemtest report runs.csv --yes {roles.format('maximize')}\n"
        f"If a low 'value' is good:\n  lmemtest report runs.csv --yes {roles.format('minimize')}\n"
    )


def test_columns_without_a_role_stop_the_report_until_they_are_named_or_ignored(run, folder):
    few = ["runs.csv", *ROLES[:6]]
    outcome = run("report", *few)
    assert (outcome.code, outcome.out) == (2, "")
    command = "lmemtest report runs.csv --score loss --direction minimize --algorithm tool"
    assert f"{command} --benchmark task --seed rep (or the same command with --yes)" in outcome.err
    assert f"{command} --ignore task --ignore rep." in outcome.err
    checked = run("check", *few)
    assert checked.code == 0
    assert "roles               warning  The column" in checked.out
    assert "lmemtest check runs.csv --score loss" in checked.out
    assert run("report", *few, "--yes").out.splitlines()[0].startswith("HB is better than RS")
    meant = run("report", *few, "--ignore", "task", "--ignore", "rep", "-o", "out.md")
    assert meant.code == 0
    assert "warning: columns left out may make rows dependent" in meant.out
    assert "left out on purpose" in (folder / "out.md").read_text()


def test_rows_are_chosen_by_type(run, folder):
    outcome = run("check", "runs.csv", *ROLES, "--where", "task=task1", "--where", "task=task2", "--where", "rep<2")
    assert "\nChecks: 8 rows: 2 algorithms, 2 benchmarks, 2 seeds; complete" in outcome.out
    by_role = run("check", "runs.csv", *ROLES, "--where", "benchmark=task1", "--where", "seed!=0")
    assert "\nChecks: 4 rows: 2 algorithms, 1 benchmark, 2 seeds; complete" in by_role.out
    for condition, message in (
        ("task=task9", "--where: 'task9' does not occur in the column 'task'. Its values: 'task0'"),
        ("rep=x", "--where: the column 'rep' has type int64 (for example 0), and 'x' in 'rep=x' is no such value."),
        ("tsk=1", "--where names the column 'tsk', which is not in the data. Columns: tool, task, rep, loss. Did you"),
        ("task", "--where must be a condition such as 'column=value' or 'epoch<=27', got 'task'."),
        ("loss>1e9", "--where: no row meets all of 'loss>1e9'."),
        ("__import__('os').system('touch gone')=1", "--where names the column"),
    ):
        outcome = run("check", "runs.csv", *ROLES, "--where", condition)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {message}")
    assert not (folder / "gone").exists()
    fitted = run("fit", "runs.csv", "loss ~ tool + (1 | task)", "--where", "rep=0")
    assert "14 rows" in fitted.out


def test_missing_scores_are_left_out_when_asked_and_told(run, folder):
    frame = pd.read_csv(folder / "runs.csv")
    frame.loc[0, "loss"] = np.nan
    frame.to_csv(folder / "runs.csv", index=False)
    assert run("check", "runs.csv", *ROLES).code == 1
    outcome = run("check", "runs.csv", *ROLES, "--drop-missing")
    assert outcome.code == 0
    assert outcome.err == "left out: 1 of 42 rows without a finite score\n"


def test_normalize_adjust_and_ddf(run, folder):
    options = ["--normalize", "rank", "--adjust", "holm", "--ddf", "kenward-roger", "-o", "out.json"]
    outcome = run("report", "runs.csv", *ROLES, *options)
    assert outcome.code == 0
    found = json.loads((folder / "out.json").read_text())
    assert (found["roles"]["score"], found["adjust"], found["ddf"]) == ("loss_rank", "holm", "kenward-roger")
    for option in ("--normalize", "--adjust", "--ddf"):
        wrong = run("report", "runs.csv", *ROLES, option, "nonsense")
        assert wrong.code == 2
        assert wrong.err.startswith(f"error: {option} must be '")


def test_scores_relative_to_a_baseline(run, folder):
    frame = pd.read_csv(folder / "runs.csv").assign(perfect=-1.5)
    frame["loss"] += 10
    frame.to_csv(folder / "runs.csv", index=False)
    r = frame[frame["tool"] == "RS"].groupby("task")["loss"].mean()[frame["task"]].to_numpy()
    x = frame["loss"]
    for options, scores in (
        (["baseline", "--reference", "RS"], 1 - x / r),
        (["baseline", "--reference", "RS", "--target", "perfect"], (x - r) / (-1.5 - r)),
        (["baseline", "--reference", "20", "--target", "-4"], (x - 20) / -24),
        (["gap", "--best-known", "perfect"], (x + 1.5) / 1.5),
    ):
        outcome = run("report", "runs.csv", *ROLES, "--ignore", "perfect", "--json", "--normalize", *options)
        means = {row["algorithm"]: row["emmean"] for row in json.loads(outcome.out)["ranking"]}
        assert means == pytest.approx(scores.groupby(frame["tool"]).mean().to_dict(), abs=1e-8)


@pytest.fixture
def failing(folder: Path) -> pd.DataFrame:
    """The runs with a column crashed; missing.csv without their scores, wide.csv with the first runs of each tool."""
    frame = pd.read_csv(folder / "runs.csv")
    frame["loss"] += 10
    frame["crashed"] = (frame["tool"] == "HB") & (frame["rep"] == 0) & frame["task"].isin(["task0", "task3"])
    frame.to_csv(folder / "runs.csv", index=False)
    missing = frame.assign(loss=frame["loss"].mask(frame["crashed"])).drop(columns="crashed")
    missing.to_csv(folder / "missing.csv", index=False)
    first = missing[missing["rep"] == 0].pivot_table("loss", "task", "tool", dropna=False)
    first.reset_index().to_csv(folder / "wide.csv", index=False)
    return frame


def scored(frame: pd.DataFrame, policy: str) -> pd.Series:
    """The scores under a policy, by hand."""
    kept = frame["loss"].mask(frame["crashed"])
    if policy == "worst":
        return kept.fillna(kept.groupby(frame["task"]).transform("max"))
    if policy == "baseline=RS":
        return kept.fillna(kept.where(frame["tool"] == "RS").groupby(frame["task"]).transform("mean"))
    return kept if policy == "drop" else kept.fillna(float(policy))


def means_of(outcome: Any) -> dict[str, float]:
    assert outcome.code == 0
    return {row["algorithm"]: row["mean"] for row in json.loads(outcome.out)["ranking"]}


@pytest.mark.parametrize("policy", ["worst", "baseline=RS", "20"])
def test_failed_runs_are_scored_as_asked(run, failing, policy):
    outcome = run("rank", "runs.csv", *ROLES, "--failed", "crashed", "--score-failures", policy, "--json")
    assert outcome.err.startswith("2 failed runs of 1 algorithm were given the ")
    assert means_of(outcome) == pytest.approx(scored(failing, policy).groupby(failing["tool"]).mean().to_dict())


def test_failed_runs_are_left_out_if_asked(run, failing):
    outcome = run("rank", "missing.csv", *ROLES, "--failed", "missing", "--score-failures", "drop", "--json")
    assert outcome.err.startswith("2 failed runs of 1 algorithm were left out, which is right only if")
    kept = lmemtest.Runs(failing[~failing["crashed"]], ignore="crashed", **IN_ROLES)
    want = {row["algorithm"]: row["mean"] for row in lmemtest.rank(kept).to_frame().to_dict("records")}
    assert means_of(outcome) == pytest.approx(want)


def test_each_kind_of_failure_has_an_option(run, failing):
    kinds = failing.assign(
        status=np.where(failing["crashed"], failing["task"].map({"task0": "slow"}).fillna("lost"), "ok")
    )
    kinds.drop(columns="crashed").to_csv("kinds.csv", index=False)
    options = ["--failed", "status", "--failed", "slow=20", "--failed", "lost=drop"]
    outcome = run("rank", "kinds.csv", *ROLES, *options, "--json")
    kept = failing.assign(loss=scored(failing, "20"))[kinds["status"] != "lost"]
    want = lmemtest.rank(lmemtest.Runs(kept, ignore="crashed", **IN_ROLES)).to_frame().to_dict("records")
    assert means_of(outcome) == pytest.approx({row["algorithm"]: row["mean"] for row in want})
    assert "Give one of them" in run("rank", "kinds.csv", *ROLES, *options, "--score-failures", "drop").err


def test_wide_tables_have_failed_runs_and_baselines_too(run, failing):
    options = ["--wide", "--direction", "minimize", "--benchmark", "task", "--failed", "missing", "--json"]
    first = failing[failing["rep"] == 0]
    x = scored(first, "worst")
    options += ["--score-failures", "worst"]
    assert means_of(run("rank", "wide.csv", *options)) == pytest.approx(x.groupby(first["tool"]).mean().to_dict())
    r = x.where(first["tool"] == "RS").groupby(first["task"]).transform("max")
    want = (1 - x / r).groupby(first["tool"]).mean().to_dict()
    found = means_of(run("rank", "wide.csv", *options, "--normalize", "baseline", "--reference", "RS"))
    assert found == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("baseline --reference RS", "RS has no score in 1 of 7 groups of task: task2, so scores there have nothing to "
         "be compared with. Keep the others only (--where 'task!=...'), or give values that are known: --reference"),
        ("baseline --reference best", "The column 'best' has 3 missing values (first at row 12, counted from 0)."),
        ("gap --best-known 99", "--best-known must be at least as good as every score, but 7 groups of task have"),
        ("baseline --reference 9 --target 99", "--target (99.00) must be better than --reference (9.000), but"),
        ("gap --best-known 0", "A gap is a share of the best known value, which is 0 on task0. Use --normalize"),
    ],
)  # fmt: skip
def test_a_baseline_that_some_benchmarks_lack(run, failing, options, error):
    lacking = failing["task"] == "task2"
    table = failing.assign(best=np.where(lacking, np.nan, 1.0))[~lacking | (failing["tool"] != "RS")]
    table.to_csv("runs.csv", index=False)
    outcome = run(
        "check", "runs.csv", *ROLES, "--ignore", "best", "--ignore", "crashed", "--normalize", *options.split()
    )
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {error}")


def test_json_goes_to_standard_output(run, folder):
    outcome = run("report", "runs.csv", *ROLES, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    analysis = lmemtest.analyze(pd.read_csv(folder / "runs.csv"), **IN_ROLES)
    assert found["ranking"] == json.loads(analysis.to_json())["ranking"]
    assert found["pairs"][0]["estimate"] == analysis.pairs.to_frame()["estimate"][0]
    assert found["call"] == f"lmemtest report runs.csv {' '.join(ROLES)} --json"
    assert [path.name for path in folder.iterdir()] == ["runs.csv"]
    checked = run("check", "runs.csv", *ROLES[:8], "--json")
    said = json.loads(checked.out)
    assert [finding["kind"] for finding in said["findings"]][:1] == ["unnamed_columns"]
    assert (said["answers"][0]["question"], said["others"]) == ("like_these", [])


@pytest.mark.usefixtures("folder")
def test_seeds_can_be_said_to_be_their_own(run):
    given, own = (json.loads(run("report", "runs.csv", *ROLES, *more, "--json").out) for more in ((), ("--seed-own",)))
    assert (given["roles"]["seed_shared"], own["roles"]["seed_shared"]) == (True, False)
    assert own["call"].endswith("--seed-own --json")


DRAWN = [pytest.param(suffix, marks=pytest.mark.level(2)) for suffix in ("md", "tex")]  # with all figures


@pytest.mark.parametrize("suffix", ["txt", "csv", "json", "png", *DRAWN])
def test_the_suffix_decides_what_is_written(run, folder, suffix):
    outcome = run("report", "runs.csv", *ROLES, "-o", f"out.{suffix}")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == str(folder / f"out.{suffix}")
    content = (folder / f"out.{suffix}").read_bytes()
    begins = {"md": b"# Comp", "txt": b"Comparison", "tex": b"\\documentclass", "csv": b"algorithm,", "json": b"{"}
    assert content.startswith((begins | {"png": b"\x89PNG"})[suffix])


def test_wide_tables(run, folder):
    frame = pd.read_csv(folder / "runs.csv")
    frame.groupby(["task", "tool"])["loss"].mean().unstack().reset_index().to_csv(folder / "wide.csv", index=False)
    outcome = run("check", "wide.csv", "--wide", "--direction", "minimize")
    assert "\nChecks: 14 rows: 2 algorithms, 7 benchmarks; complete and balanced." in outcome.out
    assert "--wide" in run("check", "wide.csv").err
    assert run("check", "wide.csv", "--wide").err.startswith("There are no findings: --direction must be given")


def test_rank_prints_the_ranking_and_writes_it(run, folder):
    options = ("--method", "frequentist", "--test", "wilcoxon")
    outcome = run("rank", "runs.csv", *ROLES, *options, "-o", "out.tex")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Ranking by loss (lower is better), Wilcoxon signed-rank tests")
    assert outcome.out.splitlines()[-1] == str(folder / "out.tex")
    assert (folder / "out.tex").read_text(encoding="utf-8").startswith("\\documentclass")
    pairs = json.loads(run("rank", "runs.csv", *ROLES, *options, "--json").out)["pairs"]
    assert [(row["left"], row["right"]) for row in pairs] == [("HB", "RS")]
    wrong = run("rank", "runs.csv", *ROLES, "--control", "XY")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("error: --control must be one of the algorithms (HB, RS)")


def test_outperform_prints_the_conclusion_and_writes_it(run, folder):
    outcome = run("outperform", "runs.csv", *ROLES, "-o", "out.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Probability that a run is better on the same benchmark, in loss")
    assert "A run of HB is better than one of RS on the same benchmark with probability 1.00" in outcome.out
    assert outcome.out.splitlines()[-1] == str(folder / "out.csv")
    assert pd.read_csv(folder / "out.csv").loc[0, ["left", "n_pairs"]].tolist() == ["HB", 21]
    turned = json.loads(run("outperform", "runs.csv", *ROLES, "--only", "RS", "--only", "HB", "--json").out)["table"]
    assert (turned[0]["left"], turned[0]["estimate"]) == ("RS", 0.0)
    every = json.loads(run("outperform", "runs.csv", *ROLES, "--unpaired", "--json").out)["table"]
    assert every[0]["n_pairs"] == 63


def test_excel_exports_are_read(run, folder):
    frame = pd.read_csv(folder / "runs.csv")
    text = frame.to_csv(index=False, sep=";", decimal=",")
    wanted = run("check", "runs.csv", *ROLES).out.partition("\n\n")[2]
    for content in (text.encode("utf-8-sig"), text.replace(";", "\t").encode("utf-16"), text.encode("latin-1")):
        (folder / "export.csv").write_bytes(content)
        assert run("check", "export.csv", *ROLES).out.partition("\n\n")[2] == wanted


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("command", "imported"),
    [
        (f"report nope.csv {' '.join(ROLES)}", []),
        (f"report {TABLE} -o x.pdf", []),
        (f"report {TABLE} --alpha 7", []),
        (f"report {TABLE}s", ["pandas"]),  # which reads the table
        ("report runs.csv", ["pandas"]),
        ("paper nope.csv --yes", []),
        ("bands nope.csv --score loss --direction minimize", []),
    ],
    ids=["file", "suffix", "level", "column", "roles", "paper", "bands"],
)
def test_errors_do_not_wait_for_what_is_slow_to_import(folder, command, imported):
    """Plotting and fitting never are."""
    code = (
        "import sys\nfrom lmemtest.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit as stop:\n    code = stop.code\n"
        "print(code, *sorted(m for m in sys.modules if m in "
        "('pandas', 'matplotlib', 'scipy.stats', 'scipy.optimize', 'formulaic', 'lmemtest.report.analysis')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, cwd=folder, check=True
    )
    assert done.stdout.split() == ["2", *imported]


def test_trials_and_logs_are_compared_by_options(run, tmp_path):
    """The advice of the headline, typed."""
    rng = np.random.default_rng(0)
    rows = [(a, t, s, i, rng.exponential()) for a in "AB" for t in "uvwxyz" for s in range(3) for i in range(20)]
    path = tmp_path / "trials.csv"
    pd.DataFrame(rows, columns=["tool", "task", "seed", "number", "loss"]).to_csv(path, index=False)
    args = ["check", str(path), *ROLES[:8], "--seed", "seed", "--budget", "number"]
    found = run(*args).out
    assert "single trials" in found
    assert "Compare the best so far: --best-so-far" in " ".join(found.split())
    assert "single trials" not in run(*args, "--best-so-far").out
    last = run(*args, "--best-so-far", "--at-budget", "9", "--at-budget", "19").out
    assert "72 rows" in last
    assert "2 budgets" in last


# --------------------------------------------------------------------------------------------------------- plan


def test_plan_takes_standard_deviations(run, folder):
    options = "--trials 50 --hours-per-training 0.5 --budget 60 --current seed=3 --cost data=1"
    outcome = run("plan", *SDS.split(), *options.split(), "-o", "plan.csv")
    want = lmemtest.plan(
        {"tuning": 0.4, "data": 0.9, "seed": 0.3},
        costs={"training": 0.5, "data": 1.0},
        trials=50,
        budget=60,
        current={"seed": 3},
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"{want.summary()}\n{folder / 'plan.csv'}\n"
    pd.testing.assert_frame_equal(pd.read_csv(folder / "plan.csv"), want.to_frame())


@pytest.mark.usefixtures("folder")
def test_plan_takes_a_table_of_runs_or_of_a_variance_study(run):
    outcome = run("plan", "runs.csv", *ROLES, "--algorithms", "2", "--budget", "40", "--at-most", "benchmark=9")
    runs = lmemtest.read_runs("runs.csv", **IN_ROLES)
    components = lmemtest.VarianceComponents.of(lmemtest.fit_lmm(lmemtest.recommend(runs).formula, runs))
    want = lmemtest.plan(components, n_algorithms=2, budget=40, at_most={"benchmark": 9})
    assert (outcome.code, outcome.err, outcome.out) == (0, "", f"{want.summary()}\n")
    rng, rows = np.random.default_rng(1), list(product(range(5), range(2), "AB", range(2)))
    families = pd.DataFrame(rows, columns=["space", "t", "tool", "n"])
    families["task"] = families["space"].astype(str) + "-" + families["t"].astype(str)
    families["loss"] = rng.normal(size=(5, 2))[families["space"], pd.factorize(families["tool"])[0]]
    families["loss"] += rng.normal(size=len(families)) + families["space"]
    families["run"] = range(len(families))
    families.to_csv("families.csv", index=False)
    costs = ["--cost", "family=20", "--cost", "benchmark=5", "--budget", "400"]
    outcome = run("plan", "families.csv", *ROLES[:-1], "run", "--family", "space", *costs)
    runs = lmemtest.read_runs("families.csv", **IN_ROLES | {"seed": "run"}, family="space")
    found = lmemtest.VarianceComponents.of(lmemtest.fit_lmm(lmemtest.recommend(runs).formula, runs))
    want = lmemtest.plan(found, budget=400, costs={"training": 1, "family": 20, "benchmark": 5})
    assert want.names == ("family", "benchmark", "seed")
    assert (outcome.code, outcome.err, outcome.out) == (0, "", f"{want.summary()}\n")
    study = pd.DataFrame({"data": [*range(9), *[0] * 9], "init": [*[0] * 9, *range(9)]})
    study["score"] = np.sin(np.arange(1.0, 19.0) ** 2)
    study.to_csv("study.csv", index=False)
    outcome = run("plan", "study.csv", "--score", "score", "--source", "data", "--source", "init", "--budget", "12")
    found = lmemtest.variance_sources(study, score="score", sources=["data", "init"])
    assert (outcome.code, outcome.out) == (0, f"{lmemtest.plan(found, budget=12).summary()}\n")


@pytest.mark.parametrize("column", ["tool", "task", "loss"])
def test_half_a_character_in_a_name_is_a_message(run, tmp_path, column):
    """A lone surrogate, which json can hold and no file, as a level and as a name of a column."""
    rows = [{"tool": a, "task": t, "loss": i + j / 4} for i, a in enumerate("AB") for j, t in enumerate("xyz")]
    half = "\ud800"
    in_cell = [{**row, column: half} for row in rows]
    in_name = [{name + half * (name == column): value for name, value in row.items()} for row in rows]
    for table in (in_cell, in_name):
        (tmp_path / "runs.json").write_text(json.dumps(table))
        found = run("rank", str(tmp_path / "runs.json"), *ROLES[:8])
        assert (found.code, found.out, found.err[:7]) == (2, "", "error: ")


@pytest.mark.parametrize("words", [["rank", "~nouser/x.csv"], ["convert", "optuna", "~nouser/x.csv"]])
def test_the_home_of_nobody_is_no_folder(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*words).err == "error: There is no file '~nouser/x.csv': the folder '~nouser' does not exist.\n"
    asked = run("demo", "-o", "~nouser/x.html").err
    assert "-o must be in a folder that exists, but '~nouser' does not. Create it first." in asked


def test_a_name_of_a_file_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    """The json holds the command, and so the name; its bytes stand there by their numbers."""
    from lmemtest.report.files import json_text, write_atomically

    target = tmp_path / os.fsdecode(b"n\xff.json")
    write_atomically(target, json_text({"call": str(target)}))
    assert json.loads(target.read_text(encoding="utf-8")) == {"call": str(target)}


def test_an_interruption_before_a_command_has_begun_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.Typer.__call__", interrupted)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130


# Of these a command makes an argument by another name.
MADE = {
    *("k_max", "min_score", "max_score", "item", "unpaired", "pointwise", "source", "hours_per_training", "markdown"),
    "overwrite",  # of the files, once the function has answered
}


@pytest.mark.parametrize("name", ["report", "paper", "rank", "outperform", "bands", "evaluate", "plan", "gate"])
def test_the_options_of_a_command_are_the_arguments_of_its_function(name):
    command = typer.main.get_command(app).commands[name]
    options = {parameter.name for parameter in command.params}
    parameters = inspect.signature(function_at(command.calls)).parameters
    arguments = {name if name in options else IN_PYTHON.get(name, name) for name in parameters}
    assert not options - arguments - MADE - {*RUNS, *options_of("WRITTEN")}
    assert not (arguments & set(OPTIONS)) - options - {"trials", "variants"}  # a table of trials in two of them


def test_a_help_shows_the_defaults_of_the_function(run):
    assert "[default: 0.05]" in " ".join(run("rank", "--help").out.split())


def test_an_answer_that_is_no_way_to_count_curves_is_asked_again(monkeypatch, capsys) -> None:
    from lmemtest.cli.reading import _curves

    monkeypatch.setattr("sys.stdin", io.StringIO("median\nbest\n"))
    assert typer.prompt("Curves", default="mean", value_proc=_curves, err=True) == "best"
    assert "'median' is not one of mean, last, best, area" in capsys.readouterr().err


@pytest.mark.level(2)
def test_the_explorer_takes_the_first_of_several_readings_and_says_so(run, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from lmemtest.report import serve

    asked = {}

    @contextlib.contextmanager
    def serving(ask, title):  # type: ignore[no-untyped-def]
        asked[""] = ask("answer", "")
        yield title

    monkeypatch.setattr(serve, "serving", serving)
    monkeypatch.setattr(serve, "until_interrupted", lambda: None)
    long = make_runs(3, 6, 2).to_frame().assign(rmse=lambda table: table["loss"] ** 2)
    wide = long.pivot_table("loss", "benchmark", "algorithm").reset_index()
    parts = long.melt(["algorithm", "benchmark", "seed"], ["loss", "rmse"], var_name="metric", value_name="value")
    usual = "--direction minimize --algorithm algorithm --benchmark benchmark"
    for name, table, options, told, words in (
        ("two", long, (), "'rmse' is the score", f"--score loss {usual} --seed seed"),
        ("parts", parts, (), "in the terminal", f"--where metric=loss --score value {usual} --seed seed"),
        ("wide", wide, ("--direction", "minimize", "--yes"), "", f"--wide --score score {usual}"),
    ):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        outcome = run("explore", str(tmp_path / f"{name}.csv"), "--no-browser", *options)
        assert outcome.code == 0, outcome.err
        assert "taking " in outcome.err
        assert told in asked[""]["doubts"]
        assert bool(told) == bool(asked[""]["doubts"])
        command = asked[""]["code"]["command"]
        assert command.endswith(f"{name}.csv {words}")
        again = run(*shlex.split(command)[1:], "--json")
        assert again.code == 0, again.err
        assert json.loads(again.out)["formula"] == asked[""]["formula"]
