"""The small cases that are searched exhaustively: three writers, three messages, one queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.consume.consumer import Consumer
from stream_sort.consume.context import ConsumerContext, DeliveryTerms, Nudger
from stream_sort.consume.registration import Registration
from stream_sort.model.gap_policy import GapPolicy
from stream_sort.ports.in_flight import InFlight
from stream_sort.testing.simulation.consumers import CHUNK, CONTROL, PACE
from stream_sort.testing.simulation.operations import Operation

if TYPE_CHECKING:
    from stream_sort.sorter import Sorter
    from stream_sort.testing.simulation.calls import Recorder

QUEUE = "q"


@dataclass(frozen=True, slots=True)
class Case:
    """Operations that run at once, each by a process of its own, after `before` ran one by one.

    With `stale`, every process remembers the queue as it was after the first operation of `before`. Up to so many
    crashes and requests sent again are searched at every place.
    """

    name: str
    operations: tuple[Operation, ...]
    before: tuple[Operation, ...] = ()
    stale: bool = False
    crashes: int = 1
    repeats: int = 1


def message(seq: int, body: str = "first") -> dict[str, Any]:
    """A message of the one queue there is."""
    return {"queue": QUEUE, "seq": seq, "body": body}


def put(seq: int, body: str = "first") -> Operation:
    """A put of one message."""
    return Operation("put", messages=(message(seq, body),))


def put_many(*seqs: int) -> Operation:
    """A put of several messages."""
    return Operation("put_many", messages=tuple(map(message, seqs)))


def trim(through: int) -> Operation:
    """A trim of the queue."""
    return Operation("trim", QUEUE, argument=through)


@dataclass(frozen=True, slots=True)
class CatchUp(Operation):
    """A run of our own consumer, under the name of its argument, with a handler that does nothing."""

    def run(self, sorter: Sorter, recorder: Recorder) -> int:
        """Let it catch up; return how many messages were delivered."""
        queues, clock, control = sorter.queues, recorder.clock, sorter.stores.control(CONTROL)
        terms, waker = DeliveryTerms("billing", batch_size=CHUNK), Nudger(queues)
        checkpoints, letters = control.checkpoints, control.dead_letters
        context = ConsumerContext(
            terms, queues, checkpoints, letters, lambda _: None, waker, clock, lambda: self.argument
        )
        registration = Registration(control.subscriptions, checkpoints, sorter.stores.cursors, clock, InFlight(1))
        return Consumer(context, registration, PACE).catch_up(self.queue)


def deliver(run: str) -> Operation:
    """A run of our own consumer, under this name."""
    return CatchUp("deliver", QUEUE, argument=run)


def withdraw(seq: int) -> Operation:
    """A withdrawal of one message."""
    return Operation("withdraw", QUEUE, argument=seq)


CONSUME = Operation("consume", QUEUE, argument="billing")
GIVE_UP_AT_ONCE = Operation("set_policy", QUEUE, argument=GapPolicy(0.0))

# The smallest searches first.
CASES = (
    Case("a trim and a new consumer", (trim(1), CONSUME), before=(put(0), put(1), put(2))),
    Case("a trim, a message and a new consumer", (trim(0), put(0), CONSUME)),
    Case(
        "a trim and two runs of a consumer",
        (trim(1), deliver("one"), deliver("other")),
        before=(put(0), put(1), put(2)),
        crashes=0,
        repeats=0,
    ),
    Case("a trim and two readers of one name", (trim(1), CONSUME, CONSUME), before=(put(0), put(1), put(2)), repeats=0),
    Case("two trims and a new consumer", (trim(1), trim(1), CONSUME), before=(put(0), put(1), put(2)), repeats=0),
    Case("a trim and a repeat, stale memory", (trim(1), put(0), put(3)), before=(put(0), put(1), put(2)), stale=True),
    Case("a withdrawal and a trim", (withdraw(2), trim(1), put(4)), before=(put(0), put(1), put(2))),
    Case("a withdrawal and a batch", (withdraw(2), put_many(2, 3, 1)), before=(put(0),)),
    Case("a withdrawal and a batch, stale memory", (withdraw(2), put_many(2, 3, 1)), before=(put(0),), stale=True),
    Case("a withdrawal and a batch, fresh queue", (withdraw(1), put_many(1, 0))),
    Case(
        "a withdrawal, a skip and a message",
        (withdraw(2), Operation("skip", QUEUE, argument=(1,)), put(3)),
        before=(put(0), put(2)),
    ),
    Case(
        "a withdrawal and a sweep that gives up",
        (withdraw(3), Operation("sweep_all"), put(1)),
        before=(put(0), put(3), GIVE_UP_AT_ONCE),
        repeats=0,
    ),
    Case("a withdrawal and another message", (withdraw(2), put(2, "other"), put(1)), before=(put(0), put(2))),
    Case("two withdrawals and a message", (withdraw(2), withdraw(2), put(1)), before=(put(0), put(2))),
    Case("a withdrawal, its message and the one before", (withdraw(2), put(2), put(1)), before=(put(0),)),
    Case("a batch and a message", (put_many(0, 2), put(1))),
    Case("a batch before a gap", (put_many(1, 2), put(4)), before=(put(0),)),
    Case("two batches, stale memory", (put_many(2, 3), put_many(4, 6)), before=(put(0), put(1)), stale=True),
    Case("a sweep and two messages", (Operation("sweep"), put(4), put(5)), before=(put(0), put(2), put(1))),
    Case(
        "two sweeps and a message",
        (Operation("sweep"), Operation("sweep"), put(4)),
        before=(put(0), put(2), put(1)),
    ),
    Case("an opening and a batch", (Operation("open", QUEUE, argument=2), put_many(0, 3))),
    Case(
        "an opening, a sweep and a message",
        (Operation("open", QUEUE, argument=2), Operation("sweep"), put(5)),
        before=(put(3),),
    ),
    Case("three messages beyond a gap", (put(1), put(2), put(3))),
    Case("a skip and its message", (Operation("skip", QUEUE, argument=(0,)), put(0), put(1))),
    Case("a duplicate", (put(0), put(0), put(1))),
    Case("a conflict", (put(0), put(0, "other"), put(1))),
    Case("three messages, stale memory", (put(2), put(3), put(4)), before=(put(0), put(1)), stale=True),
    Case("three messages, begun queue", (put(1), put(2), put(3)), before=(put(0),)),
    Case("two messages, fresh queue", (put(0), put(1))),
    Case("three messages, fresh queue, a crash", (put(0), put(1), put(2)), repeats=0),
)
# Minutes, and gigabytes.
SLOW_CASES = (Case("three messages, fresh queue", (put(0), put(1), put(2))),)
