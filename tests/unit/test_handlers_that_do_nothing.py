"""Handlers that look right and do nothing, or too much, are named before they lose anything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InvalidInput, OrderedConsumer, Pace, QueueDamaged, SettingsError, StreamSorter
from stream_sort.testing import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.stores.memory.tables import MemoryTables


async def sleeps(batch: Any) -> None:
    raise RuntimeError(batch)


def yields(batch: Any) -> Iterator[Any]:
    yield from batch


class Async:
    async def __call__(self, batch: Any) -> None:
        raise RuntimeError(batch)


def consumer(handler: Any, **options: Any) -> tuple[StreamSorter, OrderedConsumer]:
    sorter = StreamSorter.in_memory()
    sorter.put_many({"queue": "q", "seq": seq} for seq in range(4))
    return sorter, OrderedConsumer("c", handler, sorter=sorter, pace=Pace(sleep=lambda _: None), **options)


@pytest.mark.parametrize("handler", [sleeps, yields, Async()])
def test_a_coroutine_or_a_generator_is_no_handler(handler: Any) -> None:
    with pytest.raises(SettingsError, match="coroutine or a generator"):
        consumer(handler)
    with pytest.raises(SettingsError, match="coroutine or a generator"):
        simulate(handler)


@pytest.mark.parametrize("hidden", [sleeps, yields])
def test_what_answers_with_one_has_not_done_its_batch(hidden: Any) -> None:
    _, one = consumer(lambda batch: hidden(batch))  # noqa: PLW0108  # hidden from those who look
    assert one.catch_up("q") == 0
    assert one.checkpoint("q") == -1
    assert "nothing ran" in one.parked()[0].error


def test_a_handler_that_ends_the_process_has_failed() -> None:
    _, one = consumer(lambda _: sys.exit(3))
    assert one.catch_up("q") == 0
    assert "SystemExit(3)" in one.parked()[0].error


def test_effects_keep_the_values_they_were_given() -> None:
    values: dict[str, Any] = {}

    def handle(batch: Any) -> None:
        for message in batch:
            values[":n"] = message["seq"]
            batch.transaction.update("T", {"id": message["seq"]}, "SET n = :n", ExpressionAttributeValues=values)

    sorter, one = consumer(handle)
    assert one.catch_up("q") == 4
    tables: MemoryTables = sorter.stores.control.__self__  # type: ignore[attr-defined]  # the tables behind it
    effects = tables.controls["Control"].effects
    assert [effect.request["ExpressionAttributeValues"] for effect in effects] == [{":n": seq} for seq in range(4)]


def test_a_queue_with_a_lost_cursor_has_no_message_to_discard() -> None:
    sorter, one = consumer(lambda _: None)
    one.catch_up("q")
    tables: MemoryTables = sorter.stores.control.__self__  # type: ignore[attr-defined]  # the tables behind it
    del tables.cursors["q"]
    with pytest.raises(Exception, match="had a cursor row"):
        one.catch_up("q")
    (parked,) = one.parked()
    with pytest.raises(QueueDamaged):
        one.discard("q", parked.seq, reason="not there")
    assert one.checkpoint("q") == 3


def test_the_checkpoint_of_an_unknown_queue_is_where_it_would_start() -> None:
    _, one = consumer(lambda _: None, start=100)
    assert one.checkpoint("unknown") == 99


@pytest.mark.parametrize("wrong", [{"start": []}, {"start": 1.5}, {"start": True}, {"sorter": "x"}, {"sorter": 5}])
def test_wrong_arguments_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        OrderedConsumer("c", print, **{"sorter": StreamSorter.in_memory(), **wrong})


@pytest.mark.parametrize("seeds", [0, -1, "x", None, 1.5, True])
def test_a_simulation_of_no_seeds_is_refused(seeds: Any) -> None:
    with pytest.raises(InvalidInput):
        simulate(lambda _: None, seeds=seeds)
