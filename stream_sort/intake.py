"""Service: store messages, first write wins, and tell what became of each. Moves no cursor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.core.message import KeyNames, Message, check_message, same_value
from stream_sort.core.outcomes import Status
from stream_sort.core.records import Arrival, Cursor
from stream_sort.errors import CursorLost, InvalidMessage, StoreMisconfigured, StoreUnavailable, StreamSortError
from stream_sort.hints import Hint, Hints
from stream_sort.proof import had_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_sort.core.records import Item
    from stream_sort.inflight import InFlight
    from stream_sort.ports import Clock, CursorStore, ItemStore

WINDOW_BYTES = 8 * 1024 * 1024
WINDOW_SECONDS = 1.0


@dataclass(slots=True)
class Window:
    """Messages that are stored together: what was given, and what became of each."""

    opened_at: float
    size: int = 0
    outcomes: list[tuple[Any, Status | StreamSortError | None]] = field(default_factory=list)
    messages: list[tuple[int, Message]] = field(default_factory=list)
    hints: dict[str, Hint | StreamSortError] = field(default_factory=dict)

    def taken(self) -> dict[str, set[int]]:
        """For each queue, the seqs whose slots are known to be taken."""
        seqs: dict[str, set[int]] = {}
        for index, message in self.messages:
            if isinstance(self.outcomes[index][1], Status):
                seqs.setdefault(message.queue, set()).add(message.seq)
        return seqs

    def refuse_before(self, queue: str, first_seq: int, check: Callable[[Message, int], None]) -> None:
        """Refuse what was stored while its queue was opened further on: it will never be released."""
        for index, message in self.messages:
            stored = isinstance(self.outcomes[index][1], Status)
            if stored and message.queue == queue and message.seq < first_seq:
                try:
                    check(message, first_seq)
                except InvalidMessage as error:
                    self.outcomes[index] = (message.document, error)


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
        return Hint(self.cursors.get(queue)) if hint is None else hint

    def begin(self, message: Message, hint: Hint) -> Hint:
        """Make sure that the queue of a message has a cursor row before the message is stored.

        So every message carries the proof that there was a row, should it ever be lost.
        """
        row = hint.cursor
        if row is not None and message.seq < row.first_seq:
            # What is remembered may be old, and to refuse is a decision: it needs a read.
            row = self.cursors.get(message.queue)
        self.check_start(message, self.first_seq if row is None else row.first_seq)
        if row is None:
            row = self._create(message.queue)
            self.check_start(message, row.first_seq)
        known = hint if row is hint.cursor else Hint(row)
        self.hints.remember(message.queue, known)
        return known

    def check_start(self, message: Message, first_seq: int) -> None:
        """Refuse a message from before the start of its queue."""
        if message.seq < first_seq:
            problem = f"the queue starts at {first_seq}"
            raise InvalidMessage(problem, queue=message.queue, seq=message.seq, field=self.keys.seq)

    def _create(self, queue: str) -> Cursor:
        if not had_cursor(self.items, queue):
            return self.cursors.create(Cursor(queue, self.first_seq - 1, self.first_seq)).cursor
        # Somebody saw a row: it was made just now, or it is lost.
        row = self.cursors.get(queue)
        if row is None:
            raise CursorLost(queue)
        return row

    def store(self, message: Message, hint: Hint) -> Status:
        """Store one message, or raise."""
        there = self.items.put(_arrival(message, hint), self.clock())
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
            if len(window.outcomes) >= length or window.size >= WINDOW_BYTES or aged:
                yield window
                window = Window(self.clock())
        yield window

    def store_window(self, window: Window) -> None:
        """Store the messages of a window and note the outcome of each."""
        self._learn_all(window)
        arrivals: dict[tuple[str, int], Arrival] = {}
        for index, message in window.messages:
            hint = window.hints[message.queue]
            try:
                if isinstance(hint, StreamSortError):
                    raise hint
                hint = window.hints[message.queue] = self.begin(message, hint)
            except StoreMisconfigured:
                raise
            except StreamSortError as error:
                window.outcomes[index] = (message.document, error)
            else:
                arrivals.setdefault((message.queue, message.seq), _arrival(message, hint))
        answers = dict(zip(arrivals, self.items.put_many(list(arrivals.values()), self.clock()), strict=True))
        for index, message in window.messages:
            slot = (message.queue, message.seq)
            if window.outcomes[index][1] is None:
                outcome = self._outcome(message, arrivals[slot].message, answers[slot])
                window.outcomes[index] = (message.document, outcome)

    def _learn_all(self, window: Window) -> None:
        queues = list(dict.fromkeys(message.queue for _, message in window.messages))
        window.hints.update(zip(queues, self.in_flight.map(self._try_learn, queues), strict=True))

    def _try_learn(self, queue: str) -> Hint | StreamSortError:
        try:
            return self.learn(queue)
        except StoreUnavailable as error:
            return error

    def _admit(self, window: Window, document: Any) -> None:
        outcome: StreamSortError | None = None
        try:
            message = check_message(document, self.keys)
        except InvalidMessage as error:
            outcome = error
        else:
            window.messages.append((len(window.outcomes), message))
            window.size += message.size
        window.outcomes.append((document, outcome))

    def _outcome(
        self, message: Message, first: Message, answer: Item | StreamSortError | None
    ) -> Status | StreamSortError:
        """The outcome of a message whose slot was tried by `first`: itself, or its twin in the window."""
        if isinstance(answer, StreamSortError):
            return answer
        if answer is None and message is not first:
            same = same_value(message.document, first.document)
            return Status.DUPLICATE if same else Status.CONFLICT
        try:
            return self._judge(message, answer)
        except StoreMisconfigured:
            raise
        except StreamSortError as error:
            return error

    def _judge(self, message: Message, there: Item | None) -> Status:
        if there is None:
            return Status.ACCEPTED
        if not there.is_tombstone:
            return Status.DUPLICATE if same_value(there.document, message.document) else Status.CONFLICT
        if there.late is None:
            there = self.items.keep_late(message, self.clock())
        return Status.LATE if same_value(there.late, message.document) else Status.CONFLICT


def _arrival(message: Message, hint: Hint) -> Arrival:
    return Arrival(message, None if hint.cursor is None else hint.cursor.position)
