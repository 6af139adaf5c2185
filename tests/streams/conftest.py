"""Named streams in folders of a test's own."""

from __future__ import annotations

import pytest

from tests.streams.recorded import NUMBERS, ORDERS
from windrow.streams import NamedStream


@pytest.fixture
def orders(tmp_path) -> NamedStream:
    return NamedStream.create(tmp_path / "orders", ORDERS, "ts")


@pytest.fixture
def numbers(tmp_path) -> NamedStream:
    return NamedStream.create(tmp_path / "numbers", NUMBERS, "at", unit="seconds")
