"""Tables that have other keys than they were said to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter
from stream_sort.errors import SettingsError, TableNotFound
from stream_sort.replay.access import TableAccess
from stream_sort.replay.selection import Selection
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
    with pytest.raises(SettingsError, match=told):
        listed(*names)


def test_a_table_that_is_not_there_is_named(listed: Callable[..., list[str]]) -> None:
    with pytest.raises(TableNotFound, match="Nowhere"):
        listed("Nowhere", "Cursor")
