"""A queue whose cursor row was lost and put back goes on as its twin does, which never lost it; or it is refused."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from stream_sort import (
    InvalidInput,
    MissingItems,
    NotConsumed,
    NotReleased,
    OrderedConsumer,
    QueueExists,
    QueueNotFound,
    StreamSorter,
)
from stream_sort.errors import StreamSortError
from tests.unit.queues import beside, message, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.model.slots import Entry

SEQS = st.integers(0, 12)
STARTS = {"first": "earliest", "last": "latest", "fourth": "4"}
NAMES = st.sampled_from(sorted(STARTS))
STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(SEQS, min_size=1, max_size=8)),
    st.tuples(st.just("put"), st.tuples(SEQS, SEQS).map(lambda ends: list(range(min(ends), max(ends) + 1)))),
    st.tuples(st.just("skip"), st.lists(SEQS, max_size=2)),
    st.tuples(st.just("consume"), NAMES),
    st.tuples(st.just("register"), NAMES),
    st.tuples(st.just("trim"), SEQS),
)
OPENED = st.tuples(st.just("open"), st.integers(-3, 5))
HISTORIES = st.one_of(
    st.lists(STEPS, min_size=1, max_size=12),
    st.tuples(st.lists(STEPS, max_size=2), OPENED, st.lists(STEPS, min_size=1, max_size=10)).map(
        lambda parts: [*parts[0], parts[1], *parts[2]]
    ),
)


class World:
    """One set of tables, and what each consumer got of the queue."""

    def __init__(self, history: Iterable[tuple[str, Any]]) -> None:
        self.sorter = StreamSorter.in_memory()
        self.sorter.stores.control("Control").create_table()
        self.got: defaultdict[str, list[int]] = defaultdict(list)
        self.known: set[str] = set()
        self.trimmed = False
        for step, what in history:
            getattr(self, step)(what)

    def put(self, seqs: list[int]) -> None:
        self.sorter.put_many(message(seq) for seq in seqs)

    def open(self, first_seq: int) -> None:
        with suppress(QueueExists):
            self.sorter.open("q", first_seq=first_seq)

    @property
    def has_begun(self) -> bool:
        """Whether there is a row to lose, and something stored that tells of it."""
        tables = tables_of(self.sorter)
        return "q" in tables.cursors and "q" in tables.queues and bool(tables.queues["q"].slots)

    @property
    def first_seq(self) -> int:
        return tables_of(self.sorter).cursors["q"].first_seq

    def skip(self, seqs: list[int]) -> None:
        self.sorter.skip("q", seqs)

    def consume(self, name: str) -> None:
        if "q" in tables_of(self.sorter).cursors:
            self._run(name, "q")

    def register(self, name: str) -> None:
        """It has begun elsewhere, and not here."""
        self.sorter.put(message(0, queue="other"))
        self._run(name, "other")

    def trim(self, seq: int) -> None:
        try:
            self.sorter.trim("q", seq, control_table="Control")
            self.trimmed = True
        except (NotConsumed, NotReleased, QueueNotFound):
            pass

    def lose(self) -> None:
        """Lose the row; from now on another process works, which knows nothing."""
        del tables_of(self.sorter).cursors["q"]
        self.sorter = beside(self.sorter)

    def delete(self, seq: int) -> None:
        """Delete a slot past us."""
        there = tables_of(self.sorter).queues["q"]
        there.empty(seq)

    def owed(self, name: str) -> list[list[int]]:
        """What a consumer got; without the first, if that was trimmed, and is still there as the queue's proof."""
        return [self.got[name], self.got[name][1:]] if self.trimmed else [self.got[name]]

    def stored(self) -> dict[int, Entry]:
        return dict(sorted(tables_of(self.sorter).queues["q"].entries().items()))

    def seen(self) -> set[int]:
        """The positions that writers found."""
        return {*tables_of(self.sorter).queues["q"].seen.values()}

    def _run(self, name: str, queue: str) -> None:
        def note(batch: Any) -> None:
            self.got[name] += [one["seq"] for one in batch if batch.queue == "q"]

        self.known.add(name)
        OrderedConsumer(name, note, sorter=self.sorter, start=STARTS[name], control_table="Control").catch_up(queue)


@settings(max_examples=400, deadline=None)
@given(HISTORIES, st.one_of(st.none(), st.integers(0, 4)))
def test_i2_i3_what_is_put_back_goes_on_as_if_nothing_had_happened(
    history: list[tuple[str, Any]], behind: int | None
) -> None:
    world, twin = World(history), World(history)
    assume(world.has_begun)
    truth = twin.sorter.position("q")
    unbegun = twin.first_seq - 1
    position = None if behind is None else max(truth - behind, unbegun)
    # An operator must not say that nothing was ever released where something was trimmed: slots may not tell.
    assume(position != unbegun or not world.trimmed)
    world.lose()
    try:
        done = world.sorter.recover("q", control_table="Control", position=position)
    except (InvalidInput, MissingItems, QueueNotFound) as error:
        event(type(error).__name__)
        assert "q" not in tables_of(world.sorter).cursors
        # That it was opened elsewhere is only known if somebody has put something since.
        is_untold = truth == unbegun and truth not in world.seen()
        assert world.trimmed or position != truth or is_untold
        return
    event("recovered")
    assert done.position == world.sorter.position("q") == truth
    for one in (world, twin):
        one.put(list(range(truth + 1, 15)))
        for name in STARTS:
            one.consume(name)
    for name in STARTS:
        assert twin.got[name] in world.owed(name)
    assert world.sorter.position("q") == twin.sorter.position("q")


@settings(max_examples=400, deadline=None)
@given(HISTORIES, st.data())
def test_i3_what_was_deleted_past_us_is_missed_by_whoever_has_not_got_it(
    history: list[tuple[str, Any]], data: st.DataObject
) -> None:
    world, twin = World(history), World(history)
    assume(world.has_begun)
    # Without its lowest slots, but for those with late messages, a queue looks as if it was trimmed; without its
    # highest, as if they never came.
    slots = world.stored()
    first = next((index for index, item in enumerate(slots.values()) if item.late is None), len(slots))
    assume(first + 2 < len(slots))
    lost = data.draw(st.sampled_from(list(slots)[first + 1 : -1]))
    world.delete(lost)
    world.lose()
    try:
        world.sorter.recover("q", control_table="Control")
    except StreamSortError as error:
        event(type(error).__name__)
        assert "q" not in tables_of(world.sorter).cursors
        return
    event("recovered")
    waits = any(lost in gap for gap in world.sorter.gaps("q"))
    for name in sorted(world.known):
        twin.consume(name)
        try:
            world.consume(name)
        except MissingItems:
            waits = True
        wanted = twin.got[name]
        assert any(got == wanted[: len(got)] for got in world.owed(name))
        assert waits or wanted in world.owed(name)
