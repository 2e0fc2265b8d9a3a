"""Every adapter of ArchiveMarks keeps the port's guarantees: memory, MiniStack."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from stream_sort.errors import SettingsError, TableNotFound
from stream_sort.model.consumption import Checkpoint, Subscription
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb import connect
from stream_sort.stores.dynamodb.archive_marks import DynamoArchiveMarks
from stream_sort.stores.dynamodb.calls import Calls
from tests.archive_marks import MemoryArchiveMarks
from tests.contract.archive_contract import ArchiveMarksContract


class TestInMemory(ArchiveMarksContract):
    @pytest.fixture
    def others(self) -> dict[str, MemoryArchiveMarks]:
        return {"/b": MemoryArchiveMarks(), "/a": MemoryArchiveMarks()}

    @pytest.fixture
    def marks(self, others: dict[str, MemoryArchiveMarks]) -> MemoryArchiveMarks:
        return MemoryArchiveMarks(others)


class TestOnMiniStack(ArchiveMarksContract):
    @pytest.fixture
    def marks(self, dynamodb: Any, table: str) -> DynamoArchiveMarks:
        return DynamoArchiveMarks(Calls(dynamodb, 10.0), table, "s3://bucket/archive")

    @pytest.fixture
    def others(self, dynamodb: Any, table: str) -> dict[str, DynamoArchiveMarks]:
        addresses = [f"s3://bucket/{number:04}/{'x' * 900}" for number in range(30)]
        return {address: DynamoArchiveMarks(Calls(dynamodb, 10.0), table, address) for address in addresses}

    def test_4_archives_do_not_touch_each_other(self, dynamodb: Any, table: str, marks: DynamoArchiveMarks) -> None:
        other = DynamoArchiveMarks(Calls(dynamodb, 10.0), table, "s3://bucket/other")
        marks.set_watermark("q", None, 4)
        assert other.watermark("q") is None
        assert other.set_watermark("q", None, 5)
        assert (marks.watermark("q"), other.watermark("q")) == (4, 5)

    def test_4_a_consumer_called_archive_does_not_touch_it(
        self, dynamodb: Any, tables: Any, table: str, marks: DynamoArchiveMarks
    ) -> None:
        stores = connect(Settings(items_table=tables.items, cursor_table=tables.cursor), dynamodb)
        control = stores.control(table)
        control.subscriptions.register(Subscription("archive", "earliest", 0.0))
        control.checkpoints.create(Checkpoint("archive", "q", 7))
        marks.set_watermark("q", None, 4)
        assert (control.checkpoints.of_queues("archive", ["q"]).whole()["q"].seq, marks.watermark("q")) == (7, 4)
        assert [consumer.name for consumer in control.subscriptions.consumers()] == ["archive"]


@pytest.fixture
def table(dynamodb: Any, tables: Any) -> str:
    name = f"control-{uuid.uuid4().hex[:12]}"
    settings = Settings(items_table=tables.items, cursor_table=tables.cursor)
    connect(settings, dynamodb).control(name).create_table()
    return name


def test_a_table_that_is_not_there_is_named(dynamodb: Any) -> None:
    marks = DynamoArchiveMarks(Calls(dynamodb, 10.0), "no-such-table", "/archive")
    for use in (
        lambda: marks.watermark("q"),
        lambda: marks.archived(["q"]),
        lambda: marks.elsewhere("q"),
        lambda: marks.set_watermark("q", None, 1),
    ):
        with pytest.raises(TableNotFound, match="no-such-table"):
            use()


def test_an_address_that_fits_no_key_is_refused(dynamodb: Any) -> None:
    with pytest.raises(SettingsError, match="it may have 1000"):
        DynamoArchiveMarks(Calls(dynamodb, 10.0), "control", "/x" * 600)
