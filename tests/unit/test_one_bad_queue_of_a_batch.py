"""A bug of ours, or an error that no call escapes, met by one queue of a batch: what it costs the others."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import AccessDenied, InternalError, StreamSorter, StreamSortError
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from stream_sort.release.advancer import Reach
from tests.unit.queues import message

METHODS = [
    ("cursors", "get"),
    ("cursors", "move"),
    ("cursors", "set_waiting"),
    ("items", "put"),
    ("items", "put_many"),
    ("items", "keep_late"),
    ("items", "look"),
    ("heads", "peek"),
]


def sorter_with(in_flight: int = 1) -> StreamSorter:
    sorter = StreamSorter.in_memory(in_flight=in_flight)
    for queue in ("bad", "good", "last"):
        sorter.put(message(0, queue))
    sorter.put(message(3, "bad"))
    sorter.skip("bad", [2])
    row = sorter.stores.cursors.get("bad")
    assert row is not None
    sorter.stores.cursors.set_waiting(row, None)
    for queue in ("bad", "good", "last"):
        sorter._intake.hints.forget(queue)
    return sorter


def spoil(sorter: StreamSorter, where: str, method: str, error: Exception) -> None:
    """Let a method of a store fail for the queue 'bad'."""
    store = getattr(sorter.stores, where)
    call = getattr(store, method)

    def failing(subject: Any, *args: Any) -> Any:
        if "'bad'" in repr(subject):
            raise error
        return call(subject, *args)

    object.__setattr__(store, method, failing)


BATCH = [*(message(seq, "bad") for seq in (2, 5, 1)), message(1, "good"), message(1, "last")]


def is_cared_for(sorter: StreamSorter, queue: str) -> bool:
    """Whether what is stored at seq 1 is released, or marked for the sweep, or not stored at all."""
    row = sorter.stores.cursors.get(queue)
    assert row is not None
    return row.position >= 1 or row.is_marked or sorter.slot(queue, 1) is None


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize(("where", "method"), METHODS)
def test_i7_a_bug_in_one_queue_of_a_batch_is_named_and_costs_no_other_its_release(
    where: str, method: str, in_flight: int
) -> None:
    sorter = sorter_with(in_flight)
    spoil(sorter, where, method, ZeroDivisionError("a bug"))
    result = sorter.put_many(BATCH)
    assert (sorter.position("good"), sorter.position("last")) == (1, 1)
    errors = [*result.rejected, *result.stalled]
    # What cannot be stored together is put one by one.
    assert bool(errors) is (method != "put_many")
    assert all(isinstance(error, InternalError) and error.queue == "bad" for _, error in errors)


def test_i7_a_message_on_which_the_store_stumbles_is_refused_alone() -> None:
    sorter = sorter_with()
    for method in ("put", "put_many"):
        spoil(sorter, "items", method, ZeroDivisionError("a bug"))
    result = sorter.put_many(BATCH)
    assert [type(one) for one in result.outcomes if isinstance(one, StreamSortError)] == [InternalError] * 3
    assert (result.accepted, sorter.position("good")) == (2, 1)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_i7_a_bug_while_one_queue_is_marked_keeps_no_other_from_its_mark(in_flight: int) -> None:
    sorter = sorter_with(in_flight)
    spoil(sorter, "cursors", "set_waiting", ZeroDivisionError("a bug"))
    answers = sorter.advance_many(["bad", "good", "last"], time_left=lambda: 0.0)
    assert isinstance(answers["bad"], InternalError)
    for queue in ("good", "last"):
        reach = answers[queue]
        assert isinstance(reach, Reach)
        assert reach.cursor.is_marked


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize(("where", "method"), METHODS)
def test_i7_an_error_that_no_call_escapes_is_raised_after_what_is_stored_was_released_or_marked(
    where: str, method: str, in_flight: int
) -> None:
    sorter = sorter_with(in_flight)
    spoil(sorter, where, method, AccessDenied("not allowed"))
    with pytest.raises(AccessDenied):
        sorter.put_many(BATCH)
    assert all(is_cared_for(sorter, queue) for queue in ("good", "last"))


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize(("where", "method"), [("cursors", "get"), ("cursors", "move"), ("items", "look")])
def test_i7_advance_many_raises_what_no_queue_escapes_after_all_had_their_turn(
    where: str, method: str, in_flight: int
) -> None:
    sorter = sorter_with(in_flight)
    # As writers do that died before they advanced.
    for queue in ("bad", "good", "last"):
        sorter.stores.items.put(Arrival(check_message(message(1, queue), KeyNames()), None), 1.0)
    spoil(sorter, where, method, AccessDenied("not allowed"))
    with pytest.raises(AccessDenied):
        sorter.advance_many(["bad", "good", "last"])
    assert (sorter.position("good"), sorter.position("last")) == (1, 1)


@pytest.mark.parametrize(("time_left", "tried"), [(lambda: 60.0, [100]), (None, [500])])
def test_nothing_more_is_stored_once_the_store_said_no(time_left: Any, tried: list[int]) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    calls: list[int] = []

    def denied(arrivals: Any, _: float) -> Any:
        calls.append(len(arrivals))
        raise AccessDenied("no PutItem")

    object.__setattr__(sorter.stores.items, "put_many", denied)
    with pytest.raises(AccessDenied, match="no PutItem"):
        sorter.put_many((message(seq) for seq in range(500)), time_left=time_left)
    assert calls == tried
