"""Service: store messages, first write wins, and tell what became of each. Moves no cursor."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from stream_sort.errors import (
    AccessDenied,
    InvalidMessage,
    StoreUnavailable,
    StreamSortError,
    Trimmed,
)
from stream_sort.intake.window import Outcome, Window
from stream_sort.model.message import KeyNames, Message, same_value, take_message
from stream_sort.model.outcomes import Status
from stream_sort.model.records import Arrival, Cursor
from stream_sort.release.lost_cursor import find_row
from stream_sort.release.position_cache import Hint, Hints
from stream_sort.release.queue_errors import HOPELESS, FailingQueues, hopeless_of, tried

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from stream_sort.model.slots import Entry
    from stream_sort.ports import Clock, CursorStore, ItemStore
    from stream_sort.ports.in_flight import InFlight
    from stream_sort.release.time_budget import CallTime

    Place = tuple[str, int]
    Answered = Entry | StreamSortError | None

Job = TypeVar("Job")

WINDOW_BYTES = 8 * 1024 * 1024
WINDOW_SECONDS = 1.0
# How many messages are stored before the time is asked for: some calls at once, each of them full.
STORED_AT_ONCE = 100
# Of the time left, what may go into storing again what failed.
FOR_STORING = 0.5


def out_of_time(queue: str) -> StoreUnavailable:
    """Return the error of a message that was not tried, because the caller's time was over before its turn."""
    return StoreUnavailable(
        f"queue {queue!r}: not stored, because the time of this call was over before its turn came; put it again"
    )


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
        """Return what is known of a queue, read once a process: a hint. What decides is read after the store."""
        hint = self.hints.recall(queue)
        return Hint(find_row(self.items, self.cursors, queue)) if hint is None else hint

    def begin(self, queue: str, seqs: Collection[int], hint: Hint) -> Hint:
        """Make sure that a queue has a cursor row before any of these seqs is filled, unless all lie before its start.

        So every slot carries the proof that there was a row, should it ever be lost.
        """
        row = hint.cursor
        if row is not None and min(seqs) <= row.start:
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

    def store(self, message: Message, hint: Hint) -> Status:
        """Store one message, or raise."""
        arrival = self._arrival(message, hint)
        return self._judge(arrival, self.items.put(arrival, self.clock()))

    def confirm(self, message: Message, hint: Hint, row: Cursor) -> None:
        """Refuse a message that is stored, but for which its queue has no place, as a row read after the store shows.

        The queue was opened further on meanwhile, or it is trimmed, and nobody remembered that.
        """
        try:
            self._check_place(message, row, stored=True)
        except Trimmed:
            self._take_back(message, hint)
            raise

    def confirm_window(self, window: Window, rows: Mapping[str, Cursor]) -> None:
        """Confirm all messages of a window whose queues have these rows."""
        for index, message in window.messages_of(rows).items():
            row, hint = rows.get(message.queue), window.hints.get(message.queue)
            if row is not None and hint is not None and isinstance(window.outcomes[index], Status):
                refusal = tried(message.queue, partial(self.confirm, message, hint, row))
                window.outcomes[index] = refusal or window.outcomes[index]

    def windows(self, documents: Iterable[Any], length: int) -> Iterator[Window]:
        """Cut a stream of messages into windows, lazily: bounded in number, in bytes and in what the source takes."""
        window = Window()
        source = iter(documents)
        while True:
            asked = self.clock()
            try:
                document = next(source)
            except StopIteration:
                break
            except Exception:
                # What the source gave before it broke is stored all the same.
                yield window
                raise
            window.waited += self.clock() - asked
            self._admit(window, document)
            if len(window.given) >= length or window.size >= WINDOW_BYTES or window.waited >= WINDOW_SECONDS:
                yield window
                window = Window()
        yield window

    def store_window(self, window: Window, queues: Collection[str], time: CallTime) -> None:
        """Store the messages of these queues of a window, each tried once, and note the outcome of each.

        What has not had its turn when the time is over is not tried.
        """
        # Who has all the time there is waits for no part: the calls for all of them overlap.
        messages = window.untold_of(queues)
        with time.once():
            self._store(window, messages, time, STORED_AT_ONCE if time.budget.is_limited else len(messages))

    def store_again(self, window: Window, queues: Collection[str], time: CallTime) -> None:
        """Store what could not be stored for now, with patience, and note the outcome of each."""
        # What is stored by now is to be released as well: that has half of the time that is left.
        rest = time.part(FOR_STORING)
        messages = window.take_back(queues)
        last = sorted(messages, key=lambda index: self.hints.is_failing(messages[index].queue))
        with rest.patiently():
            for indexes in _parts(last, STORED_AT_ONCE):
                self._store(window, {index: messages[index] for index in indexes}, rest, STORED_AT_ONCE)

    def _store(self, window: Window, messages: Mapping[int, Message], time: CallTime, size: int) -> None:
        """Store messages in parts; a queue that fails goes last from then on, and is left once it failed in two."""
        arrivals = self._arrivals(window, messages)
        answers: dict[Place, Answered] = {}
        failing = FailingQueues()
        for slots in _parts(sorted(arrivals, key=lambda slot: self.hints.is_failing(slot[0])), size):
            answers |= self._store_part(slots, arrivals, failing, time)
            if error := hopeless_of(answers.values()):
                # It ends the call: nothing more is tried. What is stored is answered so, and released.
                answers |= dict.fromkeys(arrivals.keys() - answers.keys(), error)
                break
        for queue in failing:
            self.hints.note_failing(queue)
        self._note_outcomes(window, messages, arrivals, answers, time)

    def _arrivals(self, window: Window, messages: Mapping[int, Message]) -> dict[Place, Arrival]:
        """Return what is to be stored, and note the outcome of what is not."""
        arrivals: dict[Place, Arrival] = {}
        for index, message in messages.items():
            arrival = tried(message.queue, partial(self._arrival, message, window.hints[message.queue]))
            if isinstance(arrival, StreamSortError):
                window.outcomes[index] = arrival
            else:
                arrivals.setdefault((message.queue, message.seq), arrival)
        return arrivals

    def _store_part(
        self, slots: Sequence[Place], arrivals: Mapping[Place, Arrival], failing: FailingQueues, time: CallTime
    ) -> dict[Place, Answered]:
        if time.is_over():
            return {slot: out_of_time(slot[0]) for slot in slots}
        left_out = failing.left_out(slots)
        tried_now = self._put([slot for slot in slots if slot not in left_out], arrivals)
        failing.note(tried_now)
        return left_out | tried_now

    def _put(self, slots: Sequence[Place], arrivals: Mapping[Place, Arrival]) -> dict[Place, Answered]:
        try:
            answers = self.items.put_many([arrivals[slot] for slot in slots], self.clock())
        except HOPELESS as error:
            return dict.fromkeys(slots, error)
        except Exception:  # noqa: BLE001  # a bug of ours: alone, each meets its own
            one = lambda slot: self.items.put(arrivals[slot], self.clock())  # noqa: E731  # for this part only
            answers = [tried(slot[0], partial(one, slot)) for slot in slots]
        return dict(zip(slots, answers, strict=True))

    def _note_outcomes(
        self,
        window: Window,
        messages: Mapping[int, Message],
        arrivals: Mapping[Place, Arrival],
        answers: Mapping[Place, Answered],
        time: CallTime,
    ) -> None:
        stuck: dict[str, StreamSortError] = {}
        for index, message in messages.items():
            slot = (message.queue, message.seq)
            if index not in window.outcomes:
                answer = answers[slot]
                if _is_to_keep(answer):
                    # To keep a late message is a call of its own.
                    answer = out_of_time(message.queue) if time.is_over() else stuck.get(message.queue, answer)
                outcome = self._outcome(message, arrivals[slot], answer)
                if isinstance(outcome, StoreUnavailable):
                    stuck[message.queue] = outcome
                window.outcomes[index] = outcome

    def _arrival(self, message: Message, hint: Hint) -> Arrival:
        """Return a message on its way in; raise if its queue has no place for it."""
        row = hint.cursor
        self._check_place(message, row)
        return Arrival(message, None if row is None else row.position)

    def _check_place(self, message: Message, row: Cursor | None, *, stored: bool = False) -> None:
        """Refuse a message from before the start of its queue, or a trimmed one; `stored` if that was seen too late."""
        first_seq = self.first_seq if row is None else row.first_seq
        if message.seq < first_seq:
            problem = f"the queue starts at {first_seq}"
            if stored:
                problem += "; it was opened there by somebody else, so the message is stored but will not be released"
            raise InvalidMessage(problem, queue=message.queue, seq=message.seq, field=self.keys.seq, stored=stored)
        if row is not None and message.seq <= row.start:
            raise Trimmed(message.queue, row.start, seq=message.seq)

    def _take_back(self, message: Message, hint: Hint) -> None:
        """Empty the slot again, if the message was released before we stored it: then its slot had been trimmed.

        Otherwise ours may be the message that was released, and consumers that registered while the queue was being
        trimmed may have to read it still. What stays is read by nobody, and the next trim removes it.
        """
        if hint.cursor is not None and hint.cursor.position >= message.seq:
            with suppress(AccessDenied):
                self.items.take_back(message.queue, message.seq)

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

    def _outcome(self, message: Message, first: Arrival, answer: Entry | StreamSortError | None) -> Outcome:
        """Return the outcome of a message whose slot was tried by `first`: itself, or its twin in the window."""
        if isinstance(answer, StreamSortError):
            return answer
        if answer is None and message is not first.message:
            same = same_value(message.document, first.message.document)
            return Status.DUPLICATE if same else Status.CONFLICT
        return tried(message.queue, lambda: self._judge(replace(first, message=message), answer))

    def _judge(self, arrival: Arrival, there: Entry | None) -> Status:
        message = arrival.message
        while there is not None and _is_to_keep(there):
            # A slot that was emptied in between is tried as any other.
            there = self.items.keep_late(message, self.clock()) or self.items.put(arrival, self.clock())
        if there is None:
            return Status.ACCEPTED
        is_same = same_value(there.late if there.is_tombstone else there.document, message.document)
        if not is_same:
            return Status.CONFLICT
        return Status.LATE if there.is_tombstone else Status.DUPLICATE


def _parts(jobs: Sequence[Job], size: int) -> Iterator[Sequence[Job]]:
    return (jobs[start : start + size] for start in range(0, len(jobs), max(1, size)))


def _is_to_keep(there: Entry | StreamSortError | None) -> bool:
    """Return True if a slot holds a tombstone and no late message beside it: the next one is kept there."""
    return not isinstance(there, StreamSortError | None) and there.is_tombstone and there.late is None
