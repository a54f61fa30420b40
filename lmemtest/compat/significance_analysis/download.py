"""The PriorBand table, as a file in the working directory."""

from __future__ import annotations

import http.client
import os
import tempfile
import urllib.request
from pathlib import Path

from lmemtest.bench.data.datasets import checked_priorband
from lmemtest.errors import DownloadError

URL = "https://api.figshare.com/v2/file/download/49732203"
TARGET = Path("dataset") / "priorband_data.parquet"

_BY_HAND = f"Download that address on a machine with a network and save the file as {TARGET.as_posix()}."
_TIMEOUT = 60.0  # seconds without an answer
_MARK = b"PAR1"  # first and last bytes of a parquet file


def download_priorband_data() -> None:
    """Download the PriorBand table from figshare to ``dataset/priorband_data.parquet``.

    Nothing happens if the file is there. It appears only when it is complete and holds the numbers of the study, which
    is checked as `lmemtest.datasets.fetch_priorband` does: by their SHA-256.

    Raises
    ------
    DownloadError
        No network, an answer that is not a parquet file, or one with another table.

    Examples
    --------
    >>> download_priorband_data()  # doctest: +SKIP
    """
    if TARGET.exists():
        return
    try:
        with urllib.request.urlopen(URL, timeout=_TIMEOUT) as response:
            content = response.read()
    except (OSError, http.client.HTTPException) as error:  # of the network, time-outs, answers that break off
        raise DownloadError(f"could not download the PriorBand table from {URL} ({error}). {_BY_HAND}") from error
    if len(content) < 3 * len(_MARK) or not (content.startswith(_MARK) and content.endswith(_MARK)):
        raise DownloadError(
            f"{URL} answered with {len(content):,} bytes that are not a complete parquet file, so nothing was saved. "
            f"{_BY_HAND}"
        )
    # written beside the target, then renamed, so that no one ever sees a part of the file
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=TARGET.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        checked_priorband(Path(name), "study")
        os.replace(name, TARGET)
    except DownloadError as error:
        Path(name).unlink(missing_ok=True)
        raise DownloadError(f"what {URL} answered with was not saved. {error}") from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
