"""Shares that a simulation holds against a rate go with its report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import SEEN


@pytest.fixture(autouse=True)
def _rates(request: pytest.FixtureRequest) -> Iterator[None]:
    SEEN.clear()
    yield
    request.node.user_properties.append(("rates", [*SEEN]))
