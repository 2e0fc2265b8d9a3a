"""What disorder costs is the average over all orders of arrival, and what a sorter asks of its stores."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter
from stream_sort.insight.costing.disorder import LookAhead, releases
from stream_sort.insight.costing.formula import OWN_BYTES, Load, monthly
from stream_sort.insight.costing.work import Work, read_units, write_units
from stream_sort.ports import Homes
from stream_sort.sorter import Sorter

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = LookAhead(first_page=64, item_bytes=100)
# Of random orders, an average over so many blocks of 10 is within 3 % of that of all orders: three standard errors.
BLOCKS, TOLERANCE = 2_000, 0.03


class Counted:
    """A store that notes what its calls would cost in DynamoDB: each of these is one request there."""

    def __init__(self, store: Any, cost: Callable[[str, Any], Work], ledger: list[Work]) -> None:
        self._store, self._cost, self._ledger = store, cost, ledger

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            answer = getattr(self._store, name)(*given)
            self._ledger.append(self._cost(name, answer))
            return answer

        return call


def counted_sorter(item_bytes: int, ledger: list[Work]) -> Sorter:
    def items(name: str, answer: Any) -> Work:
        if name == "put":
            return Work(1, write_units(item_bytes), 0)
        return Work(1, 0, read_units(len(answer.seqs) * item_bytes))

    def cursors(name: str, _: Any) -> Work:
        return {"get": Work(1, 0, 1), "create": Work(1, 1, 0), "move": Work(1, 1, 0), "set_waiting": Work(1, 2, 0)}[
            name
        ]

    plain = StreamSorter.in_memory()
    stores = replace(
        plain.stores,
        items=Counted(plain.stores.items, items, ledger),
        cursors=Counted(plain.stores.cursors, cursors, ledger),
        heads=Counted(plain.stores.heads, lambda *_: Work(1, 0, 2), ledger),
    )
    return Sorter(Homes(stores), plain.options, plain.clock)


def lengths_of(order: tuple[int, ...]) -> list[int]:
    """How many messages each arrival of an order releases."""
    position, there, released = 0, set[int](), []
    for seq in order:
        there.add(seq)
        before = position
        while position + 1 in there:
            position += 1
        released.append(position - before)
    return released


@pytest.mark.parametrize("shuffled", [1, 2, 3, 4, 5, 6])
def test_releases_are_those_of_all_orders_of_arrival(shuffled: int) -> None:
    every = [length for order in itertools.permutations(range(1, shuffled + 1)) for length in lengths_of(order)]
    expected = {length: float(Fraction(every.count(length), len(every))) for length in every}
    found: dict[int, float] = {}
    for share, release in releases(shuffled, SMALL):
        found[int(release.length)] = found.get(int(release.length), 0.0) + share
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("shuffled", [10, 50, 100])
def test_the_shares_add_up_and_every_message_is_released_once(shuffled: int) -> None:
    found = list(releases(shuffled, SMALL))
    assert sum(share for share, _ in found) == pytest.approx(1, rel=1e-4)
    assert sum(share * release.length for share, release in found) == pytest.approx(1, rel=1e-4)


def test_large_messages_make_looks_dearer_and_small_ones_do_not() -> None:
    small, large = (
        sum(share * release.work.read_units for share, release in releases(10, look))
        for look in (SMALL, LookAhead(first_page=2, item_bytes=40_000))
    )
    assert small == pytest.approx(2 - 1 / 10, rel=1e-4)
    assert large > 5 * small


@pytest.mark.parametrize("size", [300, 3_000, 40_000])
def test_the_average_of_many_orders_is_what_a_sorter_asks_of_its_stores(size: int) -> None:
    ledger: list[Work] = []
    sorter = counted_sorter(size + OWN_BYTES, ledger)
    rng = random.Random(5)
    body = "x" * (size - len("queue" + "q" + "seq" + "body") - 4)
    for seq in (0, 2, 1):
        # Known, and marked: that is paid once.
        sorter.put({"queue": "q", "seq": seq, "body": body})
    ledger.clear()
    for block in range(BLOCKS):
        for place in rng.sample(range(10), 10):
            sorter.put({"queue": "q", "seq": 3 + 10 * block + place, "body": body})
    asked = sum(ledger, Work()) * (1 / (10 * BLOCKS))
    steps = monthly(Load(1e12, size=size, shuffled=10))
    formula = (steps["enqueue"] + steps["advance"]) * 1e-12
    print(f"shuffled by 10, {size} bytes: asked {asked}, formula {formula}")
    assert asked.requests == pytest.approx(formula.requests, rel=TOLERANCE)
    assert asked.write_units == pytest.approx(formula.write_units, rel=TOLERANCE)
    assert asked.read_units == pytest.approx(formula.read_units, rel=TOLERANCE)
