from __future__ import annotations

import threading
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InvalidInput, InvalidMessage, SequenceConflict, StreamSorter
from stream_sort.ports.in_flight import InFlight
from stream_sort.release.position_cache import Hint, Hints
from stream_sort.testing import MovableClock
from tests.unit.queues import message

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("window", [1, 2, 7, 1_000])
def test_queues_mix_and_each_is_released(window: int) -> None:
    sorter = StreamSorter.in_memory(window=window)
    result = sorter.put_many(message(seq, queue) for seq in (2, 0, 1, 3) for queue in "abc")
    assert result.accepted == 12
    assert [(advance.queue, advance.old, advance.new, len(advance)) for advance in result.advances] == [
        (queue, -1, 3, 4) for queue in "abc"
    ]


@pytest.mark.parametrize("window", [1, 3, 1_000])
def test_i6_outcomes_inside_one_call_are_those_of_single_puts(window: int) -> None:
    sorter = StreamSorter.in_memory(window=window)
    sorter.put(message(0))
    sorter.skip("q", 1)
    result = sorter.put_many(
        [
            message(0),
            message(1, body="late"),
            message(1, body="late"),
            message(2, body="first"),
            message(2, body="first"),
            message(2, body="other"),
        ]
    )
    assert result.accepted == 1
    assert result.duplicates == [message(0), message(2, body="first")]
    assert result.conflicts == [message(2, body="other")]
    assert result.late == [message(1, body="late")] * 2
    assert result.rejected == []
    assert sorter.position("q") == 2


def test_i9_a_bad_message_is_rejected_with_its_error_and_affects_no_other() -> None:
    sorter = StreamSorter.in_memory()
    bad: list[Any] = ["text", message(1, body={1}), {"queue": "", "seq": 0}, message(-1), {"queue": "q", "seq": True}]
    result = sorter.put_many([message(0), *bad, message(1)])
    assert result.accepted == 2
    assert sorter.position("q") == 1
    assert sorted(map(str, (refused for refused, _ in result.rejected))) == sorted(map(str, bad))
    assert all(isinstance(error, InvalidMessage) for _, error in result.rejected)


def test_conflicts_raise_after_the_whole_call_if_so_wished() -> None:
    sorter = StreamSorter.in_memory(on_conflict="raise")
    with pytest.raises(SequenceConflict, match="and 1 more") as caught:
        sorter.put_many([message(0, body=1), message(0, body=2), message(0, body=3), message(1)])
    assert sorter.position("q") == 1
    assert caught.value.result is not None
    assert len(caught.value.result.conflicts) == 2


def test_nothing_is_no_error() -> None:
    result = StreamSorter.in_memory().put_many([])
    assert (result.accepted, result.advances) == (0, [])


@pytest.mark.parametrize("single", [{"queue": "q", "seq": 0}, "text", b"bytes", None, 5])
def test_a_single_message_is_sent_to_put(single: Any) -> None:
    with pytest.raises(InvalidInput, match="use put"):
        StreamSorter.in_memory().put_many(single)


def test_messages_are_pulled_lazily_and_released_as_they_come() -> None:
    sorter = StreamSorter.in_memory(window=10)
    seen: list[int] = []

    def source() -> Iterator[dict[str, Any]]:
        for seq in range(35):
            seen.append(sorter.position("q"))
            yield message(seq)

    sorter.put_many(source())
    assert seen[10] == 9
    assert seen[34] == 29


def test_a_slow_source_is_released_every_second() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock)
    seen: list[int] = []

    def source() -> Iterator[dict[str, Any]]:
        for seq in range(4):
            seen.append(sorter.position("q"))
            clock.move(0.6)
            yield message(seq)

    sorter.put_many(source())
    assert seen == [-1, -1, 1, 1]


def test_large_messages_are_stored_before_they_fill_the_memory() -> None:
    sorter = StreamSorter.in_memory()
    sizes: list[int] = []
    put_many = sorter.stores.items.put_many

    def weighed(arrivals: Any, now: float) -> Any:
        sizes.append(sum(arrival.message.size for arrival in arrivals))
        return put_many(arrivals, now)

    sorter.stores.items.put_many = weighed  # type: ignore[method-assign]
    assert sorter.put_many(message(seq, body="x" * 400_000) for seq in range(50)).accepted == 50
    assert len(sizes) > 2
    assert max(sizes) < 9_000_000


def test_calls_in_flight_run_at_once_and_answer_in_order() -> None:
    together = threading.Barrier(3, timeout=60)

    def call(job: int) -> int:
        together.wait()
        return job * 2

    assert InFlight(3).map(call, [1, 2, 3]) == [2, 4, 6]
    assert InFlight(1).map(lambda _: threading.current_thread(), [1, 2]) == [threading.current_thread()] * 2


def test_only_so_many_queues_are_remembered_and_the_oldest_are_forgotten() -> None:
    hints = Hints(limit=2)
    for queue in "abac":
        hints.remember(queue, Hint(None))
    assert [queue for queue in "abc" if hints.recall(queue)] == ["a", "c"]


def test_what_a_broken_source_gave_before_is_stored() -> None:
    sorter = StreamSorter.in_memory(window=3)

    def source() -> Iterator[dict[str, Any]]:
        yield from (message(seq) for seq in range(4))
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="the file ends here"):
        sorter.put_many(source())
    assert sorter.position("q") == 3


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_messages() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put(message(0))
    held = sorter.stores.items._tables  # type: ignore[attr-defined]
    grown: list[int] = []

    def source() -> Iterator[dict[str, Any]]:
        for seq in range(1, 60_001):
            if seq % 10_000 == 1:
                queue = held.queues["q"]
                # What is released is dropped, so that what is left is what put_many itself holds.
                for old in queue.firsts[:-1]:
                    queue.slots.pop(old, None)
                    queue.seen.pop(old, None)
                del queue.firsts[:-1]
                grown.append(tracemalloc.get_traced_memory()[0])
            yield message(seq, body=str(seq))

    tracemalloc.start()
    try:
        result = sorter.put_many(source())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.accepted == 60_000
    assert max(grown) - min(grown) < 6_000_000
    print(f"resident between windows: {min(grown):,} to {max(grown):,} bytes; peak with 10,000 stored: {peak:,}")


def test_a_source_that_gives_one_dict_again_and_again_is_stored_as_it_was_each_time() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put(message(2, body=["another"]))

    def source() -> Iterator[dict[str, Any]]:
        document: dict[str, Any] = {"queue": "q", "body": []}
        for seq in (0, 1, 2, 2, 3, 3):
            document["seq"] = seq
            document["body"].append(seq)
            yield document

    result = sorter.put_many(source())
    bodies = [[0], [0, 1], ["another"], [0, 1, 2, 2, 3]]
    assert list(sorter.read("q")) == [message(seq, body=body) for seq, body in enumerate(bodies)]
    assert result.accepted == 3
    assert result.conflicts == [
        message(2, body=[0, 1, 2]),
        message(2, body=[0, 1, 2, 2]),
        message(3, body=[0, 1, 2, 2, 3, 3]),
    ]


def test_outcomes_name_the_objects_that_were_given() -> None:
    sorter = StreamSorter.in_memory()
    given = [message(0), message(0), message(0, body=1), message(-1), {"queue": "q"}]
    result = sorter.put_many(given)
    named = [*result.duplicates, *result.conflicts, *(document for document, _ in result.rejected)]
    assert [id(document) for document in named] == [id(document) for document in given[1:]]
