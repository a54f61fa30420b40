"""The doors of the explorer: a page that only this computer can open, and the same page in a notebook.

The server answers on 127.0.0.1 at a port that is free, below a path that nobody can guess, to GET alone, and only where
a request names this server as its host and comes from its own page. There are no files behind it.
"""

from __future__ import annotations

import importlib
import json
import secrets
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from lmemtest.errors import ArgumentError
from lmemtest.report.explore import explorer, plan_of
from lmemtest.report.render import explorer_page, resource

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

Ask = Callable[[str, str], dict[str, Any]]

LONGEST = 60_000  # characters of an address: more levels than a page has boxes for


@contextmanager
def serving(ask: Ask, title: str) -> Iterator[str]:
    """A page that shows what `ask` answers, at the address that is yielded, until the block ends.

    Parameters
    ----------
    ask : callable
        Of `explorer`.
    title : str
        Of the page.
    """
    token = secrets.token_urlsafe(24)
    page, policy = explorer_page(title)
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }

    class Page(BaseHTTPRequestHandler):
        """The page, and its questions."""

        server_version, sys_version = "lmemtest", ""
        timeout = 30

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            given, *place = path.removeprefix("/").split("/")
            host = f"127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            own = self.headers.get("Origin", f"http://{host}") == f"http://{host}"
            site, mode = (self.headers.get(f"Sec-Fetch-{name}", "none") for name in ("Site", "Mode"))
            own = own and (site in ("none", "same-origin") or (mode == "navigate" and place == [""]))  # a link to it
            if self.headers.get("Host") != host or not own:
                self.answer(403, b"This page is for its own address alone.\n", "text/plain")
            elif len(self.path) > LONGEST:
                self.answer(414, b"The address is too long.\n", "text/plain")
            elif not secrets.compare_digest(given.encode(), token.encode()) or len(place) != 1:
                self.answer(404, b"There is nothing here. The address is printed where it was started.\n", "text/plain")
            elif place[0] == "":
                self.answer(200, page.encode(), "text/html")
            elif place[0] in ("answer", "checks"):
                try:
                    body = json.dumps(ask(place[0], query), allow_nan=False)
                except Exception as error:  # ours: it is told on the page, in full in the terminal
                    traceback.print_exc()
                    text = f"An error of lmemtest, {type(error).__name__}: the terminal shows it. Please report it."
                    self.answer(500, text.encode(), "text/plain")
                else:
                    self.answer(200, body.encode(), "application/json")
            else:
                self.answer(404, b"There is nothing here.\n", "text/plain")

        def answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # a newer question has been asked

        def log_message(self, *_: Any) -> None:
            """Nothing: an address says what is looked at."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{token}/"
    finally:
        server.shutdown()
        server.server_close()


def until_interrupted() -> None:
    """Wait for Ctrl-C."""
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def widget(analysis: Analysis) -> Any:
    """The explorer of an analysis in a notebook, where the plan is the analysis: `Analysis.explore`."""
    try:
        anywidget, traitlets = (importlib.import_module(name) for name in ("anywidget", "traitlets"))
    except ImportError:
        raise ArgumentError(
            "explore() needs the package anywidget, which is not installed: pip install 'lmemtest[explore]'. Without a "
            "notebook: lmemtest explore RUNS at the command line."
        ) from None
    ask = explorer(analysis.table, plan=plan_of(analysis))
    traits = {
        "_esm": f"{resource('report.js')}\n{resource('explore.js')}\nexport default {{ render: inNotebook }};\n",
        "style_text": traitlets.Unicode(f"{resource('report.css')}\n{resource('explore.css')}").tag(sync=True),
        "title": traitlets.Unicode(analysis.title).tag(sync=True),
        "state": traitlets.Unicode("").tag(sync=True),
        "answer": traitlets.Dict(ask("answer", "")).tag(sync=True),
        "wanted": traitlets.Unicode("").tag(sync=True),
        "checks": traitlets.Dict().tag(sync=True),
    }
    shown = type("Explorer", (anywidget.AnyWidget,), traits)()
    shown.observe(lambda change: setattr(shown, "answer", ask("answer", change["new"])), names="state")
    shown.observe(lambda change: setattr(shown, "checks", ask("checks", change["new"])), names="wanted")
    return shown
