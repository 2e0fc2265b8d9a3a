"""Service: store messages, first write wins, and tell what became of each. Moves no cursor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.core.message import KeyNames, Message, same_value, take_message
from stream_sort.core.outcomes import Status
from stream_sort.core.records import Arrival, Cursor
from stream_sort.errors import (
    InvalidMessage,
    SettingsError,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSortError,
)
from stream_sort.hints import Hint, Hints
from stream_sort.proof import find_row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from stream_sort.core.records import Item
    from stream_sort.inflight import InFlight
    from stream_sort.ports import Clock, CursorStore, ItemStore

WINDOW_BYTES = 8 * 1024 * 1024
WINDOW_SECONDS = 1.0
# No message of a call escapes these, so they end it.
HOPELESS = (StoreMisconfigured, SettingsError)

Outcome = Status | StreamSortError


@dataclass(slots=True)
class Window:
    """Messages that are stored together: what was given, what was taken from it, and what became of each."""

    opened_at: float
    size: int = 0
    given: list[Any] = field(default_factory=list)
    messages: dict[int, Message] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    hints: dict[str, Hint | StreamSortError] = field(default_factory=dict)

    def seqs(self) -> dict[str, set[int]]:
        """For each queue, the seqs of its messages."""
        return _by_queue(self.messages.values())

    def taken(self) -> dict[str, set[int]]:
        """For each queue, the seqs whose slots are known to be taken."""
        return _by_queue(
            message for index, message in self.messages.items() if isinstance(self.outcomes[index], Status)
        )

    def refuse_before(self, queue: str, first_seq: int, check: Callable[..., None]) -> None:
        """Refuse what was stored while its queue was opened further on: it will never be released."""
        for index, message in self.messages.items():
            if message.queue == queue and isinstance(self.outcomes[index], Status):
                try:
                    check(message, first_seq, stored=True)
                except InvalidMessage as error:
                    self.outcomes[index] = error

    def told(self) -> Iterator[tuple[Any, Outcome]]:
        """Each message with its outcome, in the order they came.

        A message is the very object that was given, unless that was changed since: then it is what was taken from it.
        """
        for index, given in enumerate(self.given):
            message, outcome = self.messages.get(index), self.outcomes[index]
            if message is None or outcome is Status.ACCEPTED or same_value(message.document, given):
                yield given, outcome
            else:
                yield message.document, outcome


@dataclass(frozen=True, slots=True)
class Intake:
    """Stores messages. A slot is never overwritten; what did not get in is named, never dropped."""

    items: ItemStore
    cursors: CursorStore
    hints: Hints
    keys: KeyNames
    first_seq: int
    clock: Clock
    in_flight: InFlight

    def learn(self, queue: str) -> Hint:
        """What is known of a queue; read once a process. It decides nothing: what decides is read after the store."""
        hint = self.hints.recall(queue)
        return Hint(find_row(self.items, self.cursors, queue)) if hint is None else hint

    def begin(self, queue: str, seqs: Collection[int], hint: Hint) -> Hint:
        """Make sure that a queue has a cursor row before any of these seqs is filled, unless all lie before its start.

        So every slot carries the proof that there was a row, should it ever be lost.
        """
        row = hint.cursor
        if row is not None and min(seqs) < row.first_seq:
            # What is remembered may be old, and to refuse is a decision: it needs a read.
            row = find_row(self.items, self.cursors, queue)
        if row is None and max(seqs) >= self.first_seq:
            row = self.create(queue)
        known = hint if row is hint.cursor else Hint(row)
        if row is not None:
            self.hints.remember(queue, known)
        return known

    def create(self, queue: str) -> Cursor:
        """Make the row of a queue that never had one; answers the row that stands, whoever made it."""
        return self.cursors.create(Cursor(queue, self.first_seq - 1, self.first_seq)).cursor

    def check_start(self, message: Message, first_seq: int, *, stored: bool = False) -> None:
        """Refuse a message from before the start of its queue; `stored` if that was seen too late."""
        if message.seq >= first_seq:
            return
        problem = f"the queue starts at {first_seq}"
        if stored:
            problem += "; it was opened there by somebody else, so the message is stored but will not be released"
        raise InvalidMessage(problem, queue=message.queue, seq=message.seq, field=self.keys.seq, stored=stored)

    def store(self, message: Message, hint: Hint) -> Status:
        """Store one message, or raise."""
        there = self.items.put(self._arrival(message, hint), self.clock())
        return self._judge(message, there)

    def windows(self, documents: Iterable[Any], length: int) -> Iterator[Window]:
        """Cut a stream of messages into windows, lazily: bounded in number, in bytes and in time."""
        window = Window(self.clock())
        source = iter(documents)
        while True:
            try:
                document = next(source)
            except StopIteration:
                break
            except Exception:
                # What the source gave before it broke is stored all the same.
                yield window
                raise
            self._admit(window, document)
            aged = self.clock() - window.opened_at >= WINDOW_SECONDS
            if len(window.given) >= length or window.size >= WINDOW_BYTES or aged:
                yield window
                window = Window(self.clock())
        yield window

    def store_window(self, window: Window) -> None:
        """Store the messages of a window and note the outcome of each."""
        self._begin_all(window)
        arrivals: dict[tuple[str, int], Arrival] = {}
        for index, message in window.messages.items():
            hint = window.hints[message.queue]
            try:
                if isinstance(hint, StreamSortError):
                    raise hint
                arrival = self._arrival(message, hint)
            except StreamSortError as error:
                window.outcomes[index] = error
            else:
                arrivals.setdefault((message.queue, message.seq), arrival)
        answers = dict(zip(arrivals, self.items.put_many(list(arrivals.values()), self.clock()), strict=True))
        stuck: dict[str, StreamSortError] = {}
        for index, message in window.messages.items():
            slot = (message.queue, message.seq)
            if index not in window.outcomes:
                answer = stuck.get(message.queue, answers[slot]) if _is_to_keep(answers[slot]) else answers[slot]
                outcome = self._outcome(message, arrivals[slot].message, answer)
                if isinstance(outcome, StoreUnavailable):
                    stuck[message.queue] = outcome
                window.outcomes[index] = outcome

    def _begin_all(self, window: Window) -> None:
        """Begin every queue once; one that cannot be begun now costs its own messages one wait, and others none."""
        queues = window.seqs()
        begun = self.in_flight.map(lambda queue: self._try_begin(queue, queues[queue]), list(queues))
        window.hints.update(zip(queues, begun, strict=True))

    def _try_begin(self, queue: str, seqs: Collection[int]) -> Hint | StreamSortError:
        try:
            return self.begin(queue, seqs, self.learn(queue))
        except HOPELESS:
            raise
        except StreamSortError as error:
            return error

    def _arrival(self, message: Message, hint: Hint) -> Arrival:
        """A message on its way in, unless it lies before the start of its queue."""
        row = hint.cursor
        self.check_start(message, self.first_seq if row is None else row.first_seq)
        return Arrival(message, None if row is None else row.position)

    def _admit(self, window: Window, document: Any) -> None:
        index = len(window.given)
        window.given.append(document)
        try:
            message = take_message(document, self.keys)
        except InvalidMessage as error:
            window.outcomes[index] = error
        else:
            window.messages[index] = message
            window.size += message.size

    def _outcome(self, message: Message, first: Message, answer: Item | StreamSortError | None) -> Outcome:
        """The outcome of a message whose slot was tried by `first`: itself, or its twin in the window."""
        if isinstance(answer, StreamSortError):
            return answer
        if answer is None and message is not first:
            same = same_value(message.document, first.document)
            return Status.DUPLICATE if same else Status.CONFLICT
        try:
            return self._judge(message, answer)
        except HOPELESS:
            raise
        except StreamSortError as error:
            return error

    def _judge(self, message: Message, there: Item | None) -> Status:
        if there is None:
            return Status.ACCEPTED
        if not there.is_tombstone:
            return Status.DUPLICATE if same_value(there.document, message.document) else Status.CONFLICT
        if _is_to_keep(there):
            there = self.items.keep_late(message, self.clock())
        return Status.LATE if same_value(there.late, message.document) else Status.CONFLICT


def _is_to_keep(there: Item | StreamSortError | None) -> bool:
    """Whether a slot holds a tombstone and no late message beside it: the next one is kept there."""
    return not isinstance(there, StreamSortError | None) and there.is_tombstone and there.late is None


def _by_queue(messages: Iterable[Message]) -> dict[str, set[int]]:
    seqs: dict[str, set[int]] = {}
    for message in messages:
        seqs.setdefault(message.queue, set()).add(message.seq)
    return seqs
