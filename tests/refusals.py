"""What is refused, and in which words: `from refusals import message`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def message(call: Callable[[], object]) -> str:
    """The words in which a call is refused."""
    with pytest.raises((ArgumentError, DataError, UnknownColumnError)) as caught:
        call()
    return str(caught.value)
