"""The indexes of the cursor table: what is listed under several keys, and tables that lack one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stream_sort import StreamSorter
from stream_sort.model.activity import HOUR, SHARES, hour_of, share_of
from stream_sort.model.message import KeyNames
from stream_sort.model.records import Cursor
from stream_sort.stores.dynamodb.tables import TableNames, cursor_table
from tests.unit.faulty import Faulty, refusal

NOW = 1_700_000_000.0


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    sorter = StreamSorter(client=client, in_flight=1)
    sorter.create_tables()
    return sorter


def put_row(client: Faulty, queue: str, **attributes: Any) -> None:
    client.put_item(TableName="Cursor", Item={"queue": {"S": queue}, "seq": {"N": "4"}, **attributes})


def test_marks_that_an_earlier_version_set_under_one_key_are_found(client: Faulty, sorter: StreamSorter) -> None:
    names = [f"queue {number}" for number in range(12)]
    for number, name in enumerate(names):
        put_row(client, name, _ss_waiting={"S": "y"}, _ss_waiting_since={"N": str(number)})
    assert {share_of(name) for name in names} == set(range(SHARES))
    assert sorter.stores.cursors.waiting(NOW).queues == tuple(names)


@pytest.mark.parametrize("index", ["waiting", "active"])
def test_no_key_of_an_index_takes_more_than_its_share_of_the_writes(
    index: str, client: Faulty, sorter: StreamSorter
) -> None:
    cursors = sorter.stores.cursors
    for number in range(200):
        cursors.create(Cursor(f"queue {number}", -1, 0, waiting_since=NOW, moved_at=NOW))
    (keys,) = (one["KeySchema"] for one in described(client)["GlobalSecondaryIndexes"] if one["IndexName"] == index)
    rows = client.scan(TableName="Cursor", IndexName=index)["Items"]
    counted = Counter(row[keys[0]["AttributeName"]]["S"] for row in rows)
    assert len(counted) == SHARES
    assert max(counted.values()) < 2 * 200 / SHARES


def test_queues_that_move_all_day_are_written_to_the_index_once_an_hour_and_at_any_second_of_it() -> None:
    changes = Counter[int]()
    for number in range(600):
        queue = f"queue {number}"
        hours = [hour_of(queue, NOW + second) for second in range(0, 2 * HOUR, 60)]
        assert len(set(hours)) in {2, 3}
        changes.update(minute % 60 for minute in range(1, 120) if hours[minute] != hours[minute - 1])
    # 600 queues, twice each, over 60 minutes: 20 a minute.
    assert max(changes.values()) < 60


def test_a_move_and_a_nudge_within_the_hour_leave_the_index_as_it_is(client: Faulty, sorter: StreamSorter) -> None:
    cursors = sorter.stores.cursors
    cursors.create(Cursor("q", 4, 0, moved_at=NOW))
    keys = listed(client)
    cursors.move(Cursor("q", 4, 0), 5, NOW + 1)
    cursors.nudge("q", NOW + 2)
    assert listed(client) == keys
    cursors.move(Cursor("q", 5, 0), 6, NOW + HOUR)
    assert listed(client) != keys


@pytest.mark.parametrize(
    "says",
    [
        "The table does not have the specified index: active",
        "Cannot read from backfilling global secondary index: active",
    ],
)
def test_a_table_whose_index_is_not_there_yet_lists_no_active_queues_and_is_no_error(
    says: str, client: Faulty, sorter: StreamSorter
) -> None:
    client.before = {"query": [refusal("ValidationException", says=says)]}
    assert sorter.stores.cursors.active(NOW) is None


def test_a_query_of_the_index_that_is_not_allowed_is_an_error(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"query": [refusal("AccessDeniedException", says="not on table/Cursor/index/active")]}
    with pytest.raises(Exception, match="not allowed to call dynamodb:Query"):
        sorter.stores.cursors.active(NOW)


def test_tables_of_an_earlier_version_are_taken_as_they_are(client: Faulty) -> None:
    request = cursor_table(TableNames("Items", "Before", KeyNames()))
    request["GlobalSecondaryIndexes"] = request["GlobalSecondaryIndexes"][:1]
    request["AttributeDefinitions"] = request["AttributeDefinitions"][:3]
    client.create_table(**request)
    sorter = StreamSorter(cursor_table="Before", client=client, in_flight=1)
    sorter.create_tables()
    assert sorter.put({"queue": "q", "seq": 0}).new == 0


def test_every_share_is_asked_for_its_next_page(client: Faulty, sorter: StreamSorter) -> None:
    names = {f"queue {number}" for number in range(12)}
    for name in names:
        sorter.stores.cursors.create(Cursor(name, 4, 0, waiting_since=NOW, moved_at=NOW))
    found: set[str] = set()
    pages = []
    for listing in (sorter.stores.cursors.waiting, sorter.stores.cursors.active):
        found, start, count = set(), None, 0
        while True:
            client.answers = {"query": [lambda request: short(client, request)] * SHARES}
            page = listing(NOW, start)
            assert page is not None
            found |= set(page.queues)
            start, count = page.next, count + 1
            if start is None:
                break
        pages.append(count)
        assert found == names
    client.answers = {}
    assert min(pages) > 2


def short(client: Faulty, request: dict[str, Any]) -> dict[str, Any]:
    """One row a page."""
    body: dict[str, Any] = client._client.query(**request, Limit=1)
    return body


def described(client: Faulty) -> dict[str, Any]:
    table: dict[str, Any] = client.describe_table(TableName="Cursor")["Table"]
    return table


def listed(client: Faulty) -> list[tuple[str, str]]:
    rows = client.scan(TableName="Cursor")["Items"]
    return [(row["_ss_share"]["S"], row["_ss_hour"]["N"]) for row in rows]
