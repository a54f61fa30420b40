"""What is begun beside a process is what it would have done itself."""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

import lmemtest as lt
from lmemtest.cli.rendering import load_drawing
from lmemtest.core import replicates as module
from lmemtest.core.replicates import begun, process_context, second_process
from lmemtest.errors import ArgumentError

HOME = os.getpid()


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    if process_context().get_start_method() != "fork":
        pytest.skip("no process can be forked here")
    monkeypatch.setattr(module, "check_jobs", lambda _: 2)


def refuse() -> None:
    raise ArgumentError("too many names.")


def where_it_survives() -> int:
    """Ends every process but the first."""
    if os.getpid() != HOME:
        os._exit(1)
    return HOME


def importer_of(name: str) -> tuple[int, int]:
    """Who is asked, and who imported the module."""
    return os.getpid(), importlib.import_module(name).IMPORTER


def test_without_a_second_process_a_call_waits_until_it_is_asked_for() -> None:
    assert begun(os.getpid) is os.getpid


@pytest.mark.usefixtures("two_processors")
def test_what_can_be_sent_is_done_beside_and_a_lambda_here() -> None:
    with second_process():
        assert begun(os.getpid)() != HOME
        assert begun(lambda: os.getpid())() == HOME
    assert begun(os.getpid)() == HOME


@pytest.mark.usefixtures("two_processors")
def test_an_error_comes_back_as_it_is() -> None:
    with second_process(), pytest.raises(ArgumentError, match=r"^too many names\.$"):
        begun(refuse)()


@pytest.mark.usefixtures("two_processors")
def test_what_a_lost_process_was_to_do_is_done_here() -> None:
    with second_process():
        assert begun(where_it_survives)() == HOME
        assert begun(partial(max, 2, 3))() == 3


def test_one_processor_does_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_jobs", lambda _: 1)
    with second_process():
        assert begun(os.getpid)() == HOME


def loading(folder, monkeypatch: pytest.MonkeyPatch, text: str) -> partial:
    """A call that loads a module with this text."""
    (folder / "loaded_beside.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return partial(importlib.import_module, "loaded_beside")


@pytest.mark.usefixtures("two_processors")
def test_it_loads_for_itself_before_it_is_asked(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = tmp_path / "loaded"
    text = f"import os, pathlib\nIMPORTER = os.getpid()\npathlib.Path({str(done)!r}).touch()\n"
    with second_process(loading(tmp_path, monkeypatch, text)):
        deadline = time.monotonic() + 30
        while not done.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert done.exists()
        asked, importer = begun(partial(importer_of, "loaded_beside"))()
        assert asked == importer != HOME


@pytest.mark.usefixtures("two_processors")
def test_what_still_loads_when_nothing_was_begun_is_ended(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = loading(tmp_path, monkeypatch, "import time\ntime.sleep(60)\n")
    before = {*multiprocessing.active_children()}
    with second_process(slow):
        (child,) = {*multiprocessing.active_children()} - before
    deadline = time.monotonic() + 30
    while child.is_alive() and time.monotonic() < deadline:  # the thread of the pool may take its exit code first
        time.sleep(0.01)
    assert not child.is_alive()


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("asked", [False, True])
def test_no_thread_of_it_is_left_for_the_end_of_the_interpreter(asked: bool, monkeypatch, tmp_path) -> None:
    slow = loading(tmp_path, monkeypatch, "import time\ntime.sleep(0.1)\n")
    before = {*threading.enumerate()}
    with second_process(slow):
        if asked:
            begun(os.getpid)()
    assert {*threading.enumerate()} <= before


@pytest.mark.usefixtures("two_processors")
def test_what_is_needed_soon_is_not_sent_to_a_process_that_still_loads(tmp_path, monkeypatch) -> None:
    end = tmp_path / "end"
    text = f"import pathlib, time\nwhile not pathlib.Path({str(end)!r}).exists():\n    time.sleep(0.01)\n"
    with second_process(loading(tmp_path, monkeypatch, text)):
        assert begun(os.getpid, if_loaded=True)() == HOME
        end.touch()
        assert begun(os.getpid)() != HOME
        elsewhere = begun(os.getpid, if_loaded=True)
        assert begun(partial(bool, 1))()  # once this is answered, what was begun before it is done
        assert elsewhere() != HOME


@pytest.mark.usefixtures("two_processors")
def test_what_waits_in_the_queue_when_it_is_asked_for_is_done_here() -> None:
    with second_process():
        assert begun(os.getpid)() != HOME
        busy = [begun(partial(time.sleep, 0.05)) for _ in range(3)]  # one is done, one is next, one waits
        last = begun(os.getpid, if_loaded=True)
        assert last() == HOME
        assert [call() for call in busy] == [None] * 3


NUMPY_WHOLE = """
import sys
from lmemtest.cli.rendering import load_scipy
load_scipy()
unneeded = [name for name in ("numpy.f2py", "numpy.testing", "unittest") if name in sys.modules]
import numpy as np
from scipy import special
print(unneeded, np.testing.assert_equal(special.ndtr(0.0), 0.5), np.f2py.__name__)
"""


def test_numpy_is_whole_after_scipy_was_loaded_without_a_part_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", NUMPY_WHOLE], capture_output=True, text=True, check=True)
    assert done.stdout == "[] None numpy.f2py\n"


KILLED = """
import os, time
from lmemtest.core import replicates as module
module.check_jobs = lambda _: 2
with module.second_process():
    print(module.begun(os.getpid)(), flush=True)
    time.sleep(60)
"""


@pytest.mark.level(2)
@pytest.mark.usefixtures("two_processors")
def test_it_ends_with_the_process_that_it_works_for() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        second = int(first.stdout.readline())
        first.send_signal(signal.SIGKILL)
        first.wait()
        for _ in range(200):
            try:
                os.kill(second, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
    pytest.fail("the second process goes on alone")


@pytest.mark.level(2)
@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("suffix", [".html", ".tex"])
def test_a_report_has_the_same_bytes(suffix: str, tmp_path) -> None:
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")

    def written(name: str) -> dict[str, bytes]:
        (tmp_path / name).mkdir()
        lt.analyze(runs).save(tmp_path / name / f"report{suffix}")
        return {file.name: file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file()}

    here = written("here")
    with second_process(load_drawing):
        assert written("beside") == here
