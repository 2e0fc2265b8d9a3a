"""Whatever is poison, it is found, and every other message is delivered exactly once and in order."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pytest

from stream_sort import Batch, PartlyDone
from stream_sort.model.chunks import ChunkSize
from tests.consumers import Clerk, Office, wake

if TYPE_CHECKING:
    from collections.abc import Iterable

SLOTS = 6


def subsets(of: int) -> list[frozenset[int]]:
    choices = (itertools.combinations(range(of), size) for size in range(of + 1))
    return [frozenset(chosen) for chosen in itertools.chain.from_iterable(choices)]


def in_one(batch: Batch, poison: Iterable[int]) -> None:
    """All of the batch, with effects in its transaction; or nothing."""
    for seq in batch.seqs:
        batch.transaction.put("Effects", {"id": str(seq)})
        if seq in poison:
            raise ValueError(f"poison {seq}")


def in_parts(batch: Batch, poison: Iterable[int]) -> None:
    """As far as it goes, and then it says so."""
    for seq in batch.seqs:
        if seq in poison:
            last = max([batch.after, *(done for done in batch.seqs if done < seq)])
            raise PartlyDone(last) from ValueError(f"poison {seq}")
        batch.transaction.put("Effects", {"id": str(seq)})


@pytest.mark.parametrize("handle", [in_one, in_parts])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 6, 10])
def test_i4_for_every_set_of_poison_and_tombstones_all_else_happens_once_in_order(
    handle: object, batch_size: int
) -> None:
    for poison, skipped in itertools.product(subsets(SLOTS), ([], [0, 2, 3], [5])):
        office = Office()
        office.put(*(seq for seq in range(SLOTS) if seq not in skipped))
        office.sorter.skip("q", skipped)
        consumer = office.hire(
            lambda batch, poison=poison: handle(batch, poison),  # type: ignore[operator]
            batch_size=batch_size,
            on_poison="dead_letter",
            max_attempts=1,
        )
        (served,) = wake(consumer)
        effects = office.sorter.stores.control("Control").checkpoints._control.effects  # type: ignore[attr-defined]
        good = [seq for seq in range(SLOTS) if seq not in skipped and seq not in poison]
        bad = [seq for seq in range(SLOTS) if seq not in skipped and seq in poison]
        assert [int(effect.request["Item"]["id"]) for effect in effects] == good
        assert [letter.seq for letter in served.dead] == bad
        assert (served.delivered, served.ended, consumer.checkpoint("q")) == (len(good), "done", SLOTS - 1)


@pytest.mark.parametrize("poison", range(0, 100, 7))
def test_one_poison_message_of_a_hundred_costs_about_its_logarithm(poison: int) -> None:
    office, clerk = Office(), Clerk(poison={poison})
    office.put(*range(100))
    consumer = office.hire(clerk)
    (served,) = wake(consumer)
    assert (served.ended, clerk.seqs()) == ("parked", list(range(poison)))
    assert served.handler_failures <= math.ceil(math.log2(100)) + 2
    assert len(clerk.batches) <= 2 * math.ceil(math.log2(100)) + 2


def test_chunks_grow_again_behind_the_suspects() -> None:
    chunk = ChunkSize(8)
    chunk.halve(range(8))
    assert chunk.size == 4
    chunk.grow(3)
    assert chunk.size == 4
    chunk.grow(7)
    chunk.grow(15)
    assert chunk.size == 8


def test_chunks_that_are_too_large_stay_smaller() -> None:
    chunk = ChunkSize(8)
    chunk.limit(range(8))
    for done in (3, 7, 11):
        chunk.grow(done)
    assert (chunk.size, chunk.most) == (4, 4)


def test_a_chunk_reaches_to_the_message_at_fault_and_no_further() -> None:
    chunk = ChunkSize(8)
    for after, seq, size in ((4, 5, 1), (4, 7, 3), (4, 50, 8), (4, 4, 1)):
        chunk.focus(after, seq)
        assert chunk.size == size
    chunk.focus(4, 5)
    chunk.reset()
    assert chunk.size == 8
