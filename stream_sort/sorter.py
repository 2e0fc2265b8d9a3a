"""Service: store, then advance as far as it goes. The whole of what a sorter can do, on any store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, SequenceConflict, StreamSortError, Trimmed, shown
from stream_sort.insight.inspector import Inspector
from stream_sort.insight.released_range import ReleasedRange
from stream_sort.intake.batch_put import BatchPut
from stream_sort.intake.storing import Intake
from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.message import KeyNames, check_queue, check_seq, is_text, take_message
from stream_sort.model.outcomes import Advance, LateMessage, PutResult, QueueState, Skip, Status
from stream_sort.ports.in_flight import InFlight
from stream_sort.release.advancer import Advancer, Limits, Reach
from stream_sort.release.opener import Opener
from stream_sort.release.position_cache import Hints
from stream_sort.release.queue_errors import raise_hopeless
from stream_sort.release.queues import Queues
from stream_sort.release.releaser import Releaser
from stream_sort.release.time_budget import CallTime, TimeBudget
from stream_sort.upkeep.recoverer import Recoverer, Recovery
from stream_sort.upkeep.skipper import Skipper
from stream_sort.upkeep.trimmer import Trimmer
from stream_sort.upkeep.withdrawer import Withdrawer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.insight.sources import Sources
    from stream_sort.intake.window import Window
    from stream_sort.model.slots import Entry
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.ports import Clock, ControlStores, Home, Homes

MAX_REASON_BYTES = 256


def check_reason(reason: object) -> str:
    """Return a reason that can be kept, or raise InvalidInput."""
    if not isinstance(reason, str) or not is_text(reason) or len(reason.encode()) > MAX_REASON_BYTES:
        raise InvalidInput(f"a reason is text of at most {MAX_REASON_BYTES} bytes")
    return reason


@dataclass(frozen=True, slots=True)
class Options:
    """How a sorter behaves, whatever it stores in."""

    keys: KeyNames = field(default_factory=KeyNames)
    first_seq: int = 0
    raise_conflicts: bool = False
    gap_policy: GapPolicy = GapPolicy.WAIT
    limits: Limits = field(default_factory=Limits)
    window: int = 1_000
    in_flight: int = 4
    deadline: float = 10.0


class Sorter:
    """Stores messages as they come and releases each queue in order.

    Any number of sorters may work on the same tables at once, in any number of processes. Each call leaves
    a state from which any later call on the queue, or a sweep, goes on; nothing depends on this object's memory.
    """

    def __init__(self, homes: Homes, options: Options, clock: Clock) -> None:
        self._homes = homes
        self._options = options
        self._clock = clock
        in_flight, hints, home = InFlight(options.in_flight), Hints(), homes.only
        self._inspector = Inspector(home.items, options.first_seq)
        self._intake = Intake(home.items, home.cursors, hints, options.keys, options.first_seq, clock, in_flight)
        self._advancer = Advancer(home.items, home.cursors, home.heads, hints, clock, options.first_seq, options.limits)
        self._queues = Queues(
            items=home.items,
            cursors=home.cursors,
            advancer=self._advancer,
            clock=clock,
            in_flight=in_flight,
            gap_policy=options.gap_policy,
            first_seq=options.first_seq,
            deadline=options.deadline,
        )
        self._opener = Opener(self._queues, hints)
        self._skipper = Skipper(self._queues)
        self._withdrawer = Withdrawer(home.items, home.withdrawals, self._advancer, clock)

    @property
    def homes(self) -> Homes:
        """The tables behind this sorter."""
        return self._homes

    @property
    def stores(self) -> Home:
        """The tables of its only home."""
        return self._homes.only

    def requests(self) -> int:
        """Return how many requests were made to the tables so far."""
        return sum(home.requests() for home in self._homes.all())

    @property
    def options(self) -> Options:
        """How this sorter behaves."""
        return self._options

    @property
    def queues(self) -> Queues:
        """Its queues, as the services see them that look after them."""
        return self._queues

    @property
    def in_flight(self) -> InFlight:
        """How this sorter makes several calls at once."""
        return self._queues.in_flight

    @property
    def clock(self) -> Clock:
        """The clock this sorter goes by."""
        return self._clock

    def sources(self, control_table: str | None = None) -> Sources:
        """Return what read models read: these tables, and the control table if one is named."""
        from stream_sort.insight.sources import Sources  # noqa: PLC0415  # no function of the app asks for it

        home, options = self._homes.only, self._options
        return Sources(
            items=home.items,
            cursors=home.cursors,
            heads=home.heads,
            open_control=None if control_table is None else partial(home.control, control_table),
            cursor_table=home.cursor_table,
            keys=options.keys,
            first_seq=options.first_seq,
            gap_policy=options.gap_policy,
            clock=self._clock,
            in_flight=self.in_flight,
            requests=self.requests,
            explain=self.explain,
        )

    def put(self, message: dict[str, Any]) -> Advance:
        """Store one message and release what it makes contiguous; `.status` is its outcome.

        When this returns, the message (or the one that was there first) is stored durably. When it raises a
        retryable error the outcome is not known: put it again, as often as needed.
        """
        checked = take_message(message, self._options.keys)
        seqs = {checked.seq}
        hint = self._intake.begin(checked.queue, seqs, self._intake.learn(checked.queue))
        try:
            status = self._intake.store(checked, hint)
        except Trimmed:
            # It may be a repeat, whose first writer died before it looked on.
            self._advancer.advance(checked.queue, (), hint)
            raise
        reach = self._advancer.advance(checked.queue, seqs, hint, checked.size)
        self._intake.confirm(checked, hint, reach.cursor)
        if status is Status.CONFLICT and self._options.raise_conflicts:
            raise SequenceConflict(checked.queue, checked.seq)
        return replace(reach.advance, status=status)

    def put_many(self, messages: Iterable[dict[str, Any]], time_left: Callable[[], float] | None = None) -> PutResult:
        """Store many messages of any queues and release what they make contiguous.

        Takes any iterable, lazily, in windows; each window is stored and released before the next is pulled. With
        `time_left` it is only stored before that, and what takes long comes when all are stored, or 8 MB of them, or
        their source is slow.
        A bad or not stored message is in `.rejected` with its error and affects no other one. Errors that no
        message can escape (no table, no permission) are raised, after what is stored was released or marked.

        `time_left` is asked for seconds. When they run short, what is not stored is rejected with a retryable error;
        what is stored counts as such, and its queue is marked for the sweep, which releases the rest (`.unreleased`).
        The source is pulled to its end all the same, so that every message has its outcome: give it one that ends.
        """
        if isinstance(messages, dict | str | bytes) or not isinstance(messages, Iterable):
            raise InvalidInput("put_many takes an iterable of messages; use put for a single one")
        result = PutResult()
        batch = BatchPut(self._intake, self._advancer, self._queues.in_flight, self._call_time(time_left))
        batch.put(self._windows(messages), result)
        if result.conflicts and self._options.raise_conflicts:
            first = result.conflicts[0]
            keys = self._options.keys
            raise SequenceConflict(first[keys.queue], first[keys.seq], result=result)
        return result

    def _windows(self, messages: Iterable[dict[str, Any]]) -> Iterator[Window]:
        """Meet a wrong items table before each queue's cursor row is read; a single queue soon meets it itself."""
        for window in self._intake.windows(messages, self._options.window):
            queues = window.seqs()
            if len(queues) > 1:
                self._homes.only.check_items(next(iter(queues)))
            yield window

    def advance(self, queue: str) -> Advance:
        """Release what is contiguous; for when a writer died, or items were written by other means."""
        return self.reach(queue).advance

    def reach(self, queue: str, *, is_over: Callable[[], bool] | None = None) -> Reach:
        """Advance, and return what was found at the end: the row, and what waits beyond a gap.

        `is_over` is asked before each step: once it returns True the queue is marked for the sweep, and the reach is
        not complete.
        """
        return self._queues.reach(queue, is_over=is_over)

    def advance_many(
        self, queues: Iterable[str], *, time_left: Callable[[], float] | None = None
    ) -> dict[str, Reach | StreamSortError]:
        """Advance queues side by side; for each how far it came, or its error.

        `time_left` is asked for seconds: where they do not suffice, the queue is marked for the sweep, and its reach is
        not complete. Errors that no queue can escape (no table, no permission) are raised, after all had their turn.
        """
        answers: dict[str, Reach | StreamSortError] = {}
        walks = {}
        for queue in queues:
            try:
                walks[queue] = self._advancer.walk(check_queue(queue))
            except InvalidInput as error:
                answers[queue] = error
        answers |= Releaser(self._advancer, self._queues.in_flight, self._call_time(time_left)).release(walks, {})
        raise_hopeless(answers.values())
        return answers

    def position(self, queue: str) -> int:
        """Return the highest released seq, read consistently; `first_seq - 1` before anything is released."""
        return self._queues.cursor(queue).position

    def read(self, queue: str, after: int | None = None, through: int | None = None) -> Iterator[dict[str, Any]]:
        """Return the messages of `(after, through]` in order, without tombstones; by default all that is released.

        A hole raises MissingItems where it is met, and what is trimmed Trimmed; nothing is ever passed over.
        A `through` beyond the position is refused at once, with MissingItems: who asks for a range relies on all of it.
        QueueNotFound for a queue that never was.
        """
        return iter(ReleasedRange.of(self._queues, queue, after, through))

    def gaps(self, queue: str) -> list[range]:
        """Return all runs of missing seqs between position and highest stored seq; QueueNotFound if it never was."""
        return self._inspector.gaps(queue, self._queues.known(queue).position)

    def explain(self, queue: str, limit: int = 10_000) -> QueueState:
        """Say why the queue is where it is, and what would free it; looks at about `limit` slots.

        QueueNotFound for a queue that never was.
        """
        if check_seq(limit, "limit") < 1:
            raise InvalidInput(f"limit is {limit}; it must be at least 1")
        cursor = self._queues.known(queue)
        return self._inspector.explain(cursor, self._queues.policy(cursor), limit, self._clock())

    def late(self, queue: str, limit: int = 10_000) -> list[LateMessage]:
        """Messages that came after their seqs were skipped, lowest seq first; looks at the highest `limit` slots.

        QueueNotFound for a queue that never was.
        """
        if check_seq(limit, "limit") < 1:
            raise InvalidInput(f"limit is {limit}; it must be at least 1")
        return self._inspector.late(self._queues.known(queue), limit)

    def slot(self, queue: str, seq: int) -> Entry | None:
        """Return what is stored at a seq, released or not: a message, a tombstone, perhaps a late message; or None."""
        found = self._homes.of(check_queue(queue)).items.holding(queue, check_seq(seq))
        return None if found is None else found.at(seq)

    def skip(self, queue: str, seqs: int | Iterable[int], reason: str = "skipped by hand") -> Skip:
        """Give up on those of `seqs` that are missing: put tombstones into their slots, then advance.

        A slot that holds a message is left as it is. Nothing at or below the position is touched, and nothing at all
        if one of `seqs` is no seq, or there are more than 1,000,000 of them.
        """
        check_reason(reason)
        return self._skipper.skip(queue, seqs, reason)

    def withdraw(self, queue: str, seq: int, reason: str = "withdrawn by hand") -> Withdrawal:
        """Take a stored message that is not released out of its slot, and keep it with the reason.

        For a wrong seq, such as a time, behind which nothing will ever come. Raises NotWithdrawn, and changes nothing,
        if the message is released, or the slot before it is filled: then it could be released any moment. A stray run
        is withdrawn from its lowest seq on. Put again, the same message is a new one: stop its producer first.
        """
        check_reason(reason)
        return self._withdrawer.withdraw(check_queue(queue), check_seq(seq), reason)

    def withdrawn(self, queue: str) -> list[Withdrawal]:
        """Return what was withdrawn from a queue, the first one first; QueueNotFound if it never was."""
        kept = list(self._withdrawer.kept(check_queue(queue)))
        if not kept:
            self._queues.known(queue)
        return kept

    def open(self, queue: str, *, first_seq: int) -> Advance:
        """Let a queue start at another seq than the sorter's `first_seq`; again with the same one is no error.

        Raises QueueExists once it has begun: something was released, or is stored below the new start, or it was opened
        at yet another seq. Opened at the sorter's own `first_seq` it is as it was, and may still be opened elsewhere.
        """
        check_seq(first_seq, "first_seq")
        self._opener.open(check_queue(queue), first_seq)
        return self.advance(queue)

    def trim(self, queue: str, through: int, *, control_table: str | None) -> int:
        """Delete the messages of a queue up to `through`, late ones, too; returns how many slots this call emptied.

        Nothing is deleted that is not released (NotReleased), or that a consumer of the control table has not passed or
        keeps as a dead letter (NotConsumed); None says that there are no consumers. The message at the position stays
        until the next one is released: it is the proof that the queue had begun, should its cursor row be lost.
        Killed or failed anywhere, the same call finishes it.
        """
        home = self._homes.of(check_queue(queue))
        trimmer = Trimmer(home.items, home.cursors, self._control(control_table))
        return trimmer.trim(queue, check_seq(through, "through"))

    def recover(
        self, queue: str, *, control_table: str | None, position: int | None = None, dry_run: bool = False
    ) -> Recovery:
        """Put a lost cursor row back where the furthest consumer stands, or at `position`, then advance.

        Never moves a row that is there, and never passes over what a consumer of the control table has not done; None
        says that there are no consumers. The queue's own gap policy is lost with its row: the default holds until it is
        set again.
        """
        recoverer = Recoverer(self._queues, self._homes.only.withdrawals, self._control(control_table))
        at = None if position is None else check_seq(position, "position")
        return recoverer.recover(check_queue(queue), at, dry_run=dry_run)

    def policy(self, queue: str) -> GapPolicy:
        """Return what happens to a gap of this queue that stays."""
        return self._queues.policy(self._queues.cursor(queue))

    def set_policy(
        self, queue: str, policy: GapPolicy | str | None = None, *, skip_after: float | None = None
    ) -> GapPolicy:
        """Set the gap policy of a queue: `"wait"`, `"skip after 30 seconds"` or `skip_after=30`.

        It is kept on the cursor row, begun or not, and applied by the sweep.
        """
        chosen = GapPolicy.of(policy, skip_after)
        self._queues.set_policy(queue, chosen)
        return chosen

    def nudge(self, queue: str) -> None:
        """Wake the consumers of a queue: touch its cursor row, so that the stream carries it again."""
        self._queues.nudge(queue)

    def _call_time(self, time_left: Callable[[], float] | None) -> CallTime:
        if time_left is not None and not callable(time_left):
            raise InvalidInput(f"time_left is a function that returns the seconds left, not {shown(time_left)}")
        return CallTime(TimeBudget.of(time_left), self._options.deadline)

    def _control(self, table: str | None) -> ControlStores | None:
        if table is None:
            return None
        home = self._homes.only
        home.check_control(table)
        return home.control(table)
