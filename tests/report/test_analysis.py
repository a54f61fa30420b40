"""`analyze`: what it computes, refuses and saves."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from study import make_runs

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, FormulaError, UnknownColumnError
from lmemtest.report import wording
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.files import SUFFIXES, check_report_path
from lmemtest.report.sections import _plotted

Make = Callable[..., Any]


def test_it_is_the_sum_of_its_parts(three: Analysis) -> None:
    fit = lt.fit_lmm(lt.recommend(three.runs).formula, three.runs)
    em = fit.emmeans("tool")
    pairs = em.pairs()
    assert three.fit.llf == approx(fit.llf)
    pd.testing.assert_frame_equal(three.means.to_frame(), em.to_frame())
    pd.testing.assert_frame_equal(three.pairs.to_frame(), pairs.to_frame())
    assert three.decisions.letters == pairs.decisions().letters
    assert not three.own_formula


def test_the_frame_has_one_row_per_algorithm_best_first(three: Analysis) -> None:
    frame = three.to_frame()
    assert list(frame["algorithm"]) == ["A", "B", "C"]
    columns = ["algorithm", "emmean", "se", "df", "ci_low", "ci_high"]
    columns += ["rank_low", "rank_high", "letters", "worse_than_best"]
    assert list(frame.columns) == columns
    assert list(frame["worse_than_best"]) == [False, True, True]


def test_direction_decides_who_is_best(table: Make, as_runs: Make) -> None:
    low, high = (analyze(as_runs(table(), direction=d)) for d in ("minimize", "maximize"))
    assert low.headline().startswith("A is the best of the 3 algorithms: its mean loss is the lowest and differs ")
    assert high.headline().startswith("C is the best of the 3 algorithms: its mean loss is the highest and differs ")
    assert wording.advantage(low, "A", "B")[0] == approx(wording.advantage(high, "B", "A")[0])
    assert wording.advantage(low, "A", "B")[0] > 0


def test_the_headline_says_the_numbers_of_the_pairs(three: Analysis) -> None:
    row = three.pairs.to_frame().query("left == 'A' and right == 'B'").iloc[0]
    lead = f"is {-row['estimate']:.2f} (95 % CI {-row['ci_high']:.2f} to {-row['ci_low']:.2f}, p < 0.001)."
    assert f"Its estimated lead over the runner-up, B, {lead}" in three.headline()


@pytest.mark.parametrize(
    ("shift", "start"),
    [
        (1.0, "A is better than B: its mean loss is significantly lower. Its estimated lead over B is "),
        (0.0, "A and B are not distinguishable: A has the lower mean loss, but the difference is not significant. "),
    ],
)
def test_two_algorithms_read_naturally(shift: float, start: str, table: Make, as_runs: Make) -> None:
    frame = table(("A", "B"))
    gap = frame.groupby("tool")["loss"].mean().diff().iloc[-1]
    frame.loc[frame["tool"] == "B", "loss"] += shift + 0.01 - gap
    analysis = analyze(as_runs(frame))
    assert analysis.headline().startswith(start)
    assert "all pairs" not in analysis.headline()


def test_a_best_that_is_not_alone(table: Make, as_runs: Make) -> None:
    frame = table()
    frame.loc[frame["tool"] == "B", "loss"] -= 1.0
    text = analyze(as_runs(frame)).headline()
    first = text.split(":")[0].removesuffix(" has the lowest mean loss")
    other = {"A": "B", "B": "A"}[first]
    assert f"it is significantly better than C, but is not distinguishable from {other}." in text
    assert "; over C, the best of those that it is significantly better than, it is " in text


def test_one_benchmark_allows_no_generalisation(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table(benchmarks=("only",), seeds=8)))
    assert "This is about new runs on this one benchmark and says nothing about others" in analysis.headline()
    assert "No generalisation over benchmarks." in analysis.to_text()


def test_few_benchmarks_are_said_to_be_few(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table(benchmarks=("x", "y", "z"))))
    assert "With only 3 benchmarks, generalising to others is risky." in analysis.headline()
    assert "Only 3 benchmarks." in analysis.to_text()


def test_runs_without_a_benchmark_say_so(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table(benchmarks=("only",)), benchmark=None))
    assert analysis.effects is None
    assert "new runs on this one benchmark (no benchmark column was given)" in analysis.headline()
    assert "nothing to compare between benchmarks" in analysis.to_text()


def test_runs_without_seeds_and_single_rows_work(table: Make, as_runs: Make) -> None:
    repeated = analyze(as_runs(table().drop(columns="seed"), seed=None))
    assert "No seeds." in repeated.to_text()
    single = analyze(as_runs(table(seeds=1).drop(columns="seed"), seed=None))
    assert single.formula == "loss ~ tool + (1 | task)"
    assert single.sample.varies  # the residual is what changes between benchmarks
    assert "without intervals" in single.to_text()


def test_budgets_are_named_as_a_limitation(table: Make, as_runs: Make) -> None:
    frame = pd.concat([table().assign(budget=b, loss=lambda d, b=b: d["loss"] - b) for b in (1, 2, 3)])
    text = analyze(as_runs(frame, budget="budget")).to_text()
    assert "Each run counts once, with its mean over 3 values of budget. This compares whole curves" in text


def test_a_model_without_the_interaction_is_said_not_to_generalise(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table()), formula="loss ~ tool + (1 | task)")
    assert analysis.own_formula
    assert "This is about exactly these 8 benchmarks" in analysis.headline()
    assert "far too small for a claim about new ones" in analysis.to_text().replace("\n  ", " ")


def test_algorithms_that_are_numbers_are_names(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table((1, 2, 10))))
    assert list(analysis.to_frame()["algorithm"]) == ["1", "2", "10"]


def test_different_scales_are_a_reservation_in_the_headline(table: Make, as_runs: Make) -> None:
    frame = table()
    wild = frame["task"] == "task0"
    frame.loc[wild, "loss"] = 5 + 40 * (frame.loc[wild, "loss"] - 5)
    analysis = analyze(as_runs(frame))
    assert "Unequal scales: the scatter of scores differs " in analysis.headline()
    assert "Scores are on different scales." in analysis.to_text()
    assert wording.order_sentence(analysis) == ""


def test_residual_variances_by_benchmark_are_told(table: Make, as_runs: Make) -> None:
    frame = table()
    frame.loc[frame["task"] == "task3", "loss"] += np.random.default_rng(1).normal(0.0, 30.0, 12)
    analysis = analyze(as_runs(frame), dispersion="task")
    assert analysis.fit.dispersion == "task"
    assert "dispersion='task'" in analysis.call
    total = sum(analysis.components["variance"])
    residual = next(c for c in analysis.components.itertuples() if c.kind == "residual")
    assert residual.variance == pytest.approx(analysis.fit.mean_residual_variance)
    assert residual.share == pytest.approx(residual.variance / total)
    text = " ".join(analysis.to_text().split())
    assert "a residual variance for each of the 8 levels of task (Pinheiro & Bates 2000)" in text
    assert "Residual variance by task" in text
    assert "Each level of task has its own residual variance" in text
    assert "every row the same residual variance" not in text
    finding = next(f for f in analysis.check.findings if f.kind == "score_scale")
    assert finding.severity == "note"
    assert finding.message.endswith(
        "for which the model gives each benchmark a variance of its own; advantages have one."
    )
    assert "noisiest" not in analysis.headline()
    of_rows = next(f for f in analyze(as_runs(frame)).check.findings if f.kind == "score_scale")
    assert (of_rows.severity, "noisiest benchmarks would decide" in of_rows.message) == ("warning", True)


def test_effects_on_different_scales_are_drawn_in_units_of_their_scatter(table: Make, as_runs: Make) -> None:
    frame = table()
    wild = frame["task"] == "task0"
    frame.loc[wild, "loss"] = 40 * frame.loc[wild, "loss"]
    analysis = analyze(as_runs(frame))
    assert analysis.effects is not None
    drawn = _plotted(analysis, analysis.effects).set_index(["benchmark", "algorithm"])
    raw = analysis.effects.to_frame().set_index(["benchmark", "algorithm"])
    scale = analysis.check.scales.set_index("benchmark")["residual_sd"]
    for key in (("task0", "B"), ("task3", "A")):
        assert drawn.loc[key, "effect"] == approx(raw.loc[key, "effect"] / scale[key[0]])
        assert drawn.loc[key, "ci_low"] == approx(raw.loc[key, "ci_low"] / scale[key[0]])
    assert "Deviations are in units of the scatter" in analysis.to_html()


def test_means_that_cannot_be_estimated_do_not_stop_the_report(table: Make, as_runs: Make) -> None:
    frame = table(("A", "B")).assign(kind=lambda d: d["seed"].map(lambda s: "even" if s % 2 == 0 else "odd"))
    frame = frame[~((frame["tool"] == "B") & (frame["kind"] == "odd"))]
    analysis = analyze(as_runs(frame), formula="loss ~ tool * kind + (1 | task)")
    assert analysis.joint is None
    assert analysis.headline().startswith("The algorithms cannot be compared")
    assert "not possible" in analysis.to_text()


def test_a_log_score_is_named(table: Make, as_runs: Make) -> None:
    frame = table()
    frame["loss"] = np.exp(frame["loss"] / 5)
    analysis = analyze(as_runs(frame), formula="log(loss) ~ tool + (1 | task) + (1 | task:tool)")
    assert "its mean log(loss) is the lowest" in analysis.headline()
    logs = frame.assign(loss=np.log(frame["loss"])).groupby(["task", "tool"])["loss"].mean()
    assert analysis.effects is not None
    assert analysis.effects.to_frame()["mean"].to_numpy() == approx(logs.to_numpy())


# ----------------------------------------------------------------------------------------------------- refusals


def test_a_plain_table_is_refused(table: Make) -> None:
    with pytest.raises(ArgumentError) as error:
        analyze(table())
    assert str(error.value) == (
        "analyze takes Runs, or a dataframe and the roles of its columns; got DataFrame alone. Columns: tool, task, "
        "seed, loss. By names and structure:\n  lmemtest.analyze(df, score='loss', direction='minimize', "
        "algorithm='tool', benchmark='task', "
        "seed='seed')"
    )


@pytest.mark.parametrize(
    ("formula", "error", "message"),
    [
        ("seed ~ tool + (1 | task)", FormulaError,
         "formula models 'seed', but the score of these runs is 'loss'. Write 'loss' on the left, or give the runs "
         "another score."),
        ("loss ~ 1 + (1 | task)", FormulaError,
         "formula must have the algorithm 'tool' in its fixed part, because its means are compared; got "
         "'loss ~ 1 + (1 | task)'. Write for instance 'loss ~ tool + (1 | task) + (1 | task:tool) + "
         "(1 | task:seed)'."),
        ("loss ~ tol + (1 | task)", UnknownColumnError,
         "formula uses 'tol' (position 8), not in data. Columns: tool, task, seed, loss. Did you mean 'tool'?\n"
         "    loss ~ tol + (1 | task)\n           ^^^"),
    ],
)  # fmt: skip
def test_formulas_that_do_not_fit_are_refused(formula, error, message, three):
    with pytest.raises(error) as caught:
        analyze(three.runs, formula=formula)
    assert str(caught.value) == message


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 5}, {"adjust": "tuky"}, {"ddf": "kr"}])
def test_options_are_checked(options: dict[str, Any], three: Analysis) -> None:
    refuses(ArgumentError, next(iter(options)), analyze, three.runs, **options)


def test_missing_scores_are_refused_with_their_count(table: Make, as_runs: Make) -> None:
    frame = table()
    frame.loc[3, "loss"] = np.nan
    refuses(DataError, "1 ", analyze, as_runs(frame))


# ------------------------------------------------------------------------------------------------------- saving


def test_saving_writes_the_whole_report_and_nothing_else(three: Analysis, three_html: str, tmp_path: Path) -> None:
    path = three.save(tmp_path / "out.html")
    assert path == tmp_path / "out.html"
    assert path.read_text(encoding="utf-8") == three_html
    assert os.listdir(tmp_path) == ["out.html"]


def test_a_report_that_fails_leaves_the_old_one(three, tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    path.write_text("old", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("lmemtest.report.analysis.os.replace", fail)
    monkeypatch.setattr("lmemtest.report.render.render_html", lambda *_: "new")
    refuses(OSError, "the disk is full", three.save, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["out.html"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_is_full_in_the_middle_of_a_file_leaves_the_old_one(three, tmp_path, monkeypatch):
    import resource

    path = tmp_path / "out.html"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(Analysis, "to_html", lambda *_, **__: "new" * 10_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        refuses(OSError, r"File too large; nothing was written: '.*out\.html'", three.save, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["out.html"]


def test_replacing_keeps_permissions_and_links(three, tmp_path, monkeypatch):
    monkeypatch.setattr("lmemtest.report.render.render_html", lambda *_: "new")
    path, link = tmp_path / "out.html", tmp_path / "link.html"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    link.symlink_to(path)
    three.save(link)
    assert (path.read_text(encoding="utf-8"), link.is_symlink()) == ("new", True)
    assert path.stat().st_mode & 0o777 == 0o640


def test_paths_are_checked(tmp_path: Path) -> None:
    folder = tmp_path / "a.html"
    folder.mkdir()
    cases = {
        "out.pdf": f"path must end in one of {', '.join(SUFFIXES)}, got 'out.pdf'. Write 'out.html'.",
        "out": f"path must end in one of {', '.join(SUFFIXES)}, got 'out'. Write 'out.html'.",
        str(folder): f"path must be a file, but {str(folder)!r} is a folder. Add a file name.",
        "no/such/out.html": "path must be in a folder that exists, but 'no/such' does not. Create it first.",
    }
    for path, message in cases.items():
        with pytest.raises(ArgumentError) as error:
            check_report_path(path)
        assert str(error.value) == message


@pytest.mark.parametrize("path", [None, 3, b"out.html", "/proc/out.html", f"{'a' * 300}.html", "a\0b.html"])
def test_paths_that_cannot_be_written_are_refused_in_words(table: Make, as_runs: Make, path: Any) -> None:
    with pytest.raises(ArgumentError, match=r"path (must be a path|must be in a folder that can|cannot be)"):
        analyze(as_runs(table())).save(path)


HOSTILE = "a_{\\input{x}} % & <b>$x$</b> `**c**` | \\end{quote}"


def test_every_format_escapes_what_comes_from_data(table: Make, as_runs: Make, tmp_path: Path) -> None:
    frame = table(("A", "B"))
    analysis = analyze(as_runs(frame.assign(tool=frame["tool"].map({"A": HOSTILE, "B": "B"}))))
    latex = analysis.to_latex()
    assert "\\input{" not in latex
    assert latex.count("\\begin{") == latex.count("\\end{")
    assert latex.count("\\begin{quote}") == latex.count("\\end{quote}")
    markdown = analysis.to_markdown()
    assert "<b>" not in "\n".join(line for line in markdown.splitlines() if "`" not in line)
    assert analysis.to_csv().startswith("algorithm,")
    found = json.loads(analysis.to_json())
    assert {row["algorithm"] for row in found["ranking"]} == {HOSTILE, "B"}
    assert found["ranking"][0]["emmean"] == analysis.to_frame()["emmean"][0]  # all digits
    for suffix in (".md", ".txt", ".tex", ".csv", ".json", ".png", ".htm"):
        path = analysis.save(tmp_path / f"out{suffix}")
        assert path.stat().st_size > 100
    for name, suffix in (("out.md", "svg"), ("out.tex", "pdf")):
        shown = re.findall(rf"out_files/\w+\.{suffix}", (tmp_path / name).read_text(encoding="utf-8"))
        assert len(set(shown)) == len(shown) >= 4
        assert all((tmp_path / file).stat().st_size > 1000 for file in shown)
    assert "out_files" not in latex + markdown  # texts without a folder have the words on the figures


def test_a_copy_of_an_analysis_does_not_wait_for_the_diagnosis_of_the_original(three: Analysis) -> None:
    asked = []
    waiting = replace(three, diagnosing=lambda: asked.append(1) or three.diagnosis)  # a lambda cannot be sent
    copied = pickle.loads(pickle.dumps(waiting))
    assert copied.diagnosis.to_frame().equals(three.diagnosis.to_frame())
    assert not asked
    assert waiting.diagnosis is waiting.diagnosis is three.diagnosis
    assert asked == [1]  # once
    without = replace(three, diagnosing=None)
    assert without.diagnosis is None
    assert pickle.loads(pickle.dumps(without)).diagnosis is None


def test_progress_names_the_steps(table: Make, as_runs: Make) -> None:
    steps: list[str] = []
    analysis = analyze(as_runs(table()), progress=steps.append)
    assert steps == list(analysis.timings)
    analysis.document(progress=steps.append)
    assert "drawing the critical-difference diagram" in steps


def test_priorband_is_told_as_it_is(data_dir: Path) -> None:
    runs = lt.read_runs(
        data_dir / "priorband.parquet",
        score="value",
        direction="minimize",
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed",
        budget="used_fidelity",
        metafeatures=["prior"],
    )
    analysis = analyze(runs)
    headline = analysis.headline()
    assert (
        "No algorithm can be called best: RS has the lowest mean value over used_fidelity, but it does not differ "
        "significantly" in headline
    )
    # three of twelve benchmarks decide; the paired t-test over benchmark means has p = 0.107
    by_model = analyze(runs, adjust="tukey", vcov="model")
    assert "RS has the lowest mean value over used_fidelity: it is significantly better than PB" in by_model.headline()
    assert "does not confirm that RS is better than PB: claim no difference there" in by_model.headline()
    assert "Unequal scales" in headline
    assert "A cautious check over benchmark means" in by_model.to_html()


def test_a_text_draws_no_figures(three: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    html = three.to_html()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a figure was drawn for a text")

    monkeypatch.setattr(Figure, "savefig", refuse)
    assert three.to_text().count("[Figure:") == html.count("<figure")
    refuses(AssertionError, "a figure was drawn", three.to_html)


def test_a_pair_without_a_test_is_neither_different_nor_alike(three: Analysis) -> None:
    """Before, what could not be tested was "not significantly different" from the best."""
    p_values = three.pairs.table["p_value"].where(three.pairs.table["right"] != "C")  # A - B is tested alone
    pairs = replace(three.pairs, table=three.pairs.table.assign(p_value=p_values))
    analysis = replace(three, pairs=pairs, decisions=pairs.decisions())
    assert analysis.headline().startswith(
        "A has the lowest mean loss: it is significantly better than B; C could not be tested against it, so nothing "
        "is claimed there."
    )
    text = " ".join(analysis.to_text().split())
    assert "1 of 3 differences is significant at 5 %" in text
    assert "2 pairs have no test and are undecided. A group says nothing about them." in text
    assert analysis.to_frame()["worse_than_best"].tolist() == [False, True, pd.NA]


@pytest.mark.level(2)
def test_a_reduced_score_has_one_name_outside_the_formula() -> None:
    text = analyze(make_runs(3, 6, 2, budgets=3)).to_text()
    assert "by loss over budget" in text
    assert all("~" in line for line in text.splitlines() if "loss_mean" in line)
