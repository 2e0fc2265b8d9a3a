"""Items that others wrote with a seq that is no whole number: in no slot, so they hold up nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter

if TYPE_CHECKING:
    from tests.unit.faulty import Faulty


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, in_flight=1, deadline=0.1)


def write(client: Faulty, *numbers: str) -> None:
    for number in numbers:
        client.put_item(TableName="Items", Item={"queue": {"S": "q"}, "seq": {"N": number}})


def message(seq: int) -> dict[str, Any]:
    return {"queue": "q", "seq": seq}


def test_a_message_is_accepted_and_released_though_strange_items_lie_around_it(
    client: Faulty, sorter: StreamSorter
) -> None:
    write(client, "-0.5", "0.5", "1.5", "2.25", "7.5")
    assert sorter.put(message(0)).status == "accepted"
    assert sorter.put(message(2)).status == "accepted"
    assert len(sorter.put(message(1))) == 2
    assert [one["seq"] for one in sorter.read("q")] == [0, 1, 2]


def test_a_strange_item_is_no_gap_and_nothing_waits_for_it(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    write(client, "0.5", "1.5", "9.5")
    state = sorter.explain("q")
    assert (state.position, state.gaps, state.highest_stored) == (0, [], 0)
    assert sorter.advance("q").new == 0


def test_a_page_of_nothing_but_strange_items_is_not_the_end(client: Faulty, sorter: StreamSorter) -> None:
    write(client, *(f"0.{number}" for number in range(1, 100)), "1", "2")
    sorter.put(message(0))
    assert sorter.position("q") == 2
