"""Tables that have other keys than they were said to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter
from stream_sort.errors import OtherKeys, RowDamaged, StreamSortError, TableNotFound
from stream_sort.replay.backfill.targets.senders import TableSender
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.ranges import Selection
from tests.unit.faulty import Faulty, message

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def listed(client: Faulty, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The queues that are found in tables with three messages of one queue."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    StreamSorter(client=client).put_many(map(message, range(3)))

    def listed(*names: str) -> list[str]:
        access = TableAccess(*names, region="eu-west-1")
        return [cursor.queue for cursor in access.cursors(Selection())]

    return listed


def test_tables_with_these_keys_are_listed(listed: Callable[..., list[str]]) -> None:
    assert listed("Items", "Cursor", "queue", "seq") == ["q"]


def test_a_queue_whose_cursor_row_cannot_be_read_is_not_left_out_without_a_word(
    client: Faulty, listed: Callable[..., list[str]]
) -> None:
    client.put_item(TableName="Cursor", Item={"queue": {"S": "b"}, "seq": {"S": "none"}})
    with pytest.raises(RowDamaged, match="holds a row without 'seq'"):
        listed("Items", "Cursor")
    noted = dict[str, StreamSortError]()
    access = TableAccess("Items", "Cursor", region="eu-west-1")
    assert [cursor.queue for cursor in access.cursors(Selection(), noted)] == ["q"]
    assert [*noted] == ["b"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("Items", "Cursor", "queue", "number"), "items table Items has the key 'queue' and 'seq'; it should be"),
        (("Items", "Cursor", "lane", "seq"), "it should be 'lane' and 'seq'"),
        (("Items", "Cursor", "seq", "queue"), "it should be 'seq' and 'queue'"),
        (("Cursor", "Items"), "items table Cursor has the key 'queue'; .* are the tables swapped"),
    ],
)
def test_a_listing_of_tables_with_other_keys_is_an_error_and_not_empty(
    listed: Callable[..., list[str]], names: tuple[str, ...], told: str
) -> None:
    with pytest.raises(OtherKeys, match=told) as met:
        listed(*names)
    assert "looked for in eu-west-1 (https://dynamodb.eu-west-1" in str(met.value)


def test_a_table_that_is_not_there_is_named(listed: Callable[..., list[str]]) -> None:
    with pytest.raises(TableNotFound, match="Nowhere"):
        listed("Nowhere", "Cursor")


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("table", "told"), [("Nowhere", "no table 'Nowhere'"), ("Other", "items table Other has the key")]
)
def test_a_backfill_into_a_wrong_items_table_names_it_before_the_first_message(
    client: Faulty, table: str, told: str
) -> None:
    key = {"AttributeName": "queue"}
    client.create_table(
        TableName="Other",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[key | {"KeyType": "HASH"}],
        AttributeDefinitions=[key | {"AttributeType": "S"}],
    )
    # The cursor table knows the queue: nothing has to be looked up in the items table.
    sender = TableSender(TableAccess(table, "Cursor", region="eu-west-1"))
    with pytest.raises(StreamSortError, match=told):
        sender.check("q")
    assert not client.scan(TableName="Other")["Items"]
