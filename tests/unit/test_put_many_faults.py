"""What fails for one queue of a put_many, and what that does to the others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import SettingsError, StoreError, StoreUnavailable, StreamSorter
from tests.unit.queues import message

if TYPE_CHECKING:
    from collections.abc import Callable


class Broken:
    """Makes a method of a store fail for the queue "bad", and counts how often it was tried."""

    def __init__(self, store: Any, method: str, error: Exception) -> None:
        self._call: Callable[..., Any] = getattr(store, method)
        self._error = error
        self.tries = 0
        setattr(store, method, self)

    def __call__(self, subject: Any, *rest: Any) -> Any:
        if getattr(subject, "queue", subject) == "bad":
            self.tries += 1
            raise self._error
        return self._call(subject, *rest)


THROTTLED = StoreUnavailable("throttled", table="Cursor", operation="GetItem")


def test_i10_an_unreadable_cursor_rejects_its_queue_and_no_other() -> None:
    sorter = StreamSorter.in_memory()
    cursors = sorter.stores.cursors
    get = cursors.get

    def failing(queue: str) -> Any:
        if queue == "bad":
            raise StoreUnavailable("throttled", table="Cursor", operation="GetItem")
        return get(queue)

    cursors.get = failing  # type: ignore[method-assign]
    result = sorter.put_many([message(0, "bad"), message(0, "good"), message(1, "bad")])
    assert [document["seq"] for document, _ in result.rejected] == [0, 1]
    assert all(isinstance(error, StoreUnavailable) and error.retryable for _, error in result.rejected)
    assert sorter.position("good") == 0
    assert sorter.stores.items.highest("bad") is None


def test_i7_a_queue_that_cannot_be_advanced_is_named_and_delays_no_other() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put(message(0, "bad"))
    items = sorter.stores.items
    look = items.look

    def failing(queue: str, after: int, limit: int) -> Any:
        if queue == "bad":
            raise StoreUnavailable("throttled", table="Items", operation="Query")
        return look(queue, after, limit)

    items.look = failing  # type: ignore[method-assign]
    result = sorter.put_many([message(1, "bad"), message(0, "good")])
    assert result.accepted == 2
    assert [queue for queue, _ in result.stalled] == ["bad"]
    assert sorter.position("good") == 0


def test_i7_a_queue_whose_row_is_unreadable_rejects_its_own_messages_only() -> None:
    sorter = StreamSorter.in_memory()
    Broken(sorter.stores.cursors, "get", StoreError("the table holds 'seq' = 1.5, which is no whole number"))
    result = sorter.put_many([message(0, "bad"), message(0, "good")])
    assert [(document["queue"], type(error)) for document, error in result.rejected] == [("bad", StoreError)]
    assert sorter.position("good") == 0


def test_what_no_message_escapes_is_raised() -> None:
    sorter = StreamSorter.in_memory()
    Broken(sorter.stores.cursors, "get", SettingsError("other keys"))
    with pytest.raises(SettingsError):
        sorter.put_many([message(0, "bad"), message(0, "good")])


@pytest.mark.parametrize("method", ["get", "create"])
def test_i7_a_queue_that_cannot_be_begun_is_tried_twice_however_many_messages_it_has(method: str) -> None:
    # At once, and again when all other queues had their turn.
    sorter = StreamSorter.in_memory()
    broken = Broken(sorter.stores.cursors, method, THROTTLED)
    result = sorter.put_many([*(message(seq, "bad") for seq in range(20)), message(0, "good")])
    assert (broken.tries, len(result.rejected), result.accepted) == (2, 20, 1)
    assert {type(error) for _, error in result.rejected} == {StoreUnavailable}
    assert sorter.stores.items.highest("bad") is None


def test_i7_late_messages_that_cannot_be_kept_are_tried_twice_a_queue() -> None:
    # At once, and again when all other queues had their turn.
    sorter = StreamSorter.in_memory()
    for queue in ("bad", "good"):
        sorter.skip(queue, range(20))
    broken = Broken(sorter.stores.items, "keep_late", THROTTLED)
    result = sorter.put_many(message(seq, queue) for seq in range(20) for queue in ("bad", "good"))
    assert (broken.tries, len(result.rejected), len(result.late)) == (2, 20, 20)


def test_queues_are_begun_at_once() -> None:
    sorter = StreamSorter.in_memory(in_flight=3)
    together = threading.Barrier(3, timeout=60)
    create = sorter.stores.cursors.create

    def slow(cursor: Any) -> Any:
        together.wait()
        return create(cursor)

    sorter.stores.cursors.create = slow  # type: ignore[method-assign]
    assert sorter.put_many(message(0, queue) for queue in "abc").accepted == 3
