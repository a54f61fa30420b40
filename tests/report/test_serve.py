"""The server of the explorer by itself, and the widget: who is answered, and what."""

from __future__ import annotations

import functools
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from study import make_runs

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.report.explore import explorer
from lmemtest.report.serve import LONGEST, serving


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(explorer(make_runs(3, 8, 3)), "</title><script>alert(1)</script>") as opened:
        yield opened


def get(address: str, more: str = "", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body; a header is named with underscores."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.putrequest(method, f"{parts.path}{more}", skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body


def test_the_page_is_of_this_computer_alone_and_loads_nothing(address: str) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[-\w]{32}/", address)
    status, headers, page = get(address)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "&lt;/title&gt;&lt;script&gt;alert(1)" in page
    policy = headers["content-security-policy"]
    for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)", page)
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


def test_answers_are_those_of_the_explorer(address: str) -> None:
    status, headers, body = get(address, "answer?without.benchmark=b01&alpha=0.01")
    assert (status, headers["content-type"]) == (200, "application/json; charset=utf-8")
    answer = json.loads(body)
    assert answer["query"] == "without.benchmark=b01&alpha=0.01"
    assert answer["changes"] == ["without benchmark b01", "at alpha = 0.01"]
    assert json.loads(get(address, "checks?alpha=0.01")[2])["badges"]
    assert "error" in json.loads(get(address, "answer?only.algorithm=A")[2])


@pytest.mark.parametrize(
    ("status", "more", "headers"),
    [
        (403, "answer", {"Host": "evil.example"}),
        (403, "answer", {"Host": "localhost:1"}),
        (403, "answer", {"Origin": "https://evil.example"}),
        (403, "answer", {"Origin": "null"}),
        (403, "answer", {"Sec_Fetch_Site": "cross-site"}),
        (403, "answer", {"Sec_Fetch_Site": "same-site"}),
        (403, "answer", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}),
        (200, "", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}),  # a link in a notebook's terminal
        (200, "answer", {"Sec_Fetch_Site": "same-origin"}),
        (404, "../answer", {}),
        (404, "answer/", {}),
        (404, "report.js", {}),
        (404, "../../etc/passwd", {}),
        (414, f"answer?{'a' * LONGEST}", {}),
    ],
)
def test_nobody_else_is_answered(address: str, status: int, more: str, headers: dict[str, str]) -> None:
    assert get(address, more, **headers)[0] == status


def test_a_wrong_token_and_other_methods_are_refused(address: str) -> None:
    root = address.rsplit("/", 2)[0]
    assert get(f"{root}/")[0] == 404
    assert get(f"{root}/{'A' * 32}/")[0] == 404
    assert get(f"{root}/{'A' * 32}/answer")[0] == 404
    assert get(f"{root}/%c3%a9/answer")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert get(address, "answer", method)[0] == 501


def test_an_error_of_our_own_is_told_there_and_here(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: str) -> Any:
        raise RuntimeError("of our own")

    with serving(broken, "broken") as opened:
        status, _, body = get(opened, "answer")
    assert (status, body) == (500, "An error of lmemtest, RuntimeError: the terminal shows it. Please report it.")
    assert "RuntimeError: of our own" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["GET x HTTP/1.1", "GET http://[ HTTP/1.1", "GET // HTTP/1.1", "\x16\x03\x01"])
def test_what_is_no_request_of_a_page_is_refused(address: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(f"{line}\r\nHost: {parts.netloc}\r\n\r\n".encode("latin-1"))
        assert re.search(rb"HTTP/1.0 40[04]|Error code: 400", connection.recv(4096))
    assert "Traceback" not in capsys.readouterr().err


def test_the_server_ends_with_the_block() -> None:
    with serving(explorer(make_runs(3, 8, 3)), "short") as opened:
        assert get(opened)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        get(opened)


@pytest.mark.level(2)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGHUP])
def test_the_command_prints_the_address_and_ends_with_its_terminal(tmp_path: Path, end: signal.Signals) -> None:
    make_runs(3, 8, 3).to_frame().to_csv(tmp_path / "runs.csv", index=False)
    command = [sys.executable, "-m", "lmemtest", "explore", "runs.csv", "--yes", "--no-browser", "--alpha", "0.01"]
    piped: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # what runs these tests may ignore the signal, as nohup does, and a process inherits that
    heard = functools.partial(signal.signal, end, signal.SIG_DFL)
    with subprocess.Popen(command, cwd=tmp_path, preexec_fn=heard, **piped) as process:
        opened = process.stdout.readline().strip()
        answer = json.loads(get(opened, "answer?without.benchmark=b01")[2])
        process.send_signal(end)
        errors = process.communicate(timeout=30)[1]
    assert answer["controls"]["alpha"] == "0.01"
    assert answer["code"]["command"] == (
        "lmemtest report runs.csv --score loss --direction minimize --algorithm algorithm --benchmark benchmark "
        "--seed seed --where 'benchmark!=b01' --alpha 0.01"
    )
    assert process.returncode == (0 if end == signal.SIGINT else -signal.SIGHUP)
    assert "Traceback" not in errors


def test_without_the_extra_the_widget_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ArgumentError, match=r"pip install 'lmemtest\[explore\]'"):
        lt.analyze(make_runs(3, 8, 3)).explore()


def test_the_widget_answers_a_state() -> None:
    pytest.importorskip("anywidget", reason="an extra: lmemtest[explore]")
    analysis: Any = lt.analyze(make_runs(3, 8, 3), alpha=0.01)
    widget = analysis.explore()
    assert widget.answer["matrix"]["codes"] == analysis.decisions.codes.tolist()
    assert widget.answer["controls"]["alpha"] == "0.01"
    widget.state = "without.benchmark=b01"
    assert widget.answer["changes"] == ["without benchmark b01"]
    widget.wanted = "without.benchmark=b01"
    assert widget.checks["query"] == "without.benchmark=b01"
    assert widget.checks["badges"]
    assert "export default" in widget._esm
