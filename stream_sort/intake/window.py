"""Messages that are stored together: what was given, and what became of each. Stores nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreUnavailable, StreamSortError, Trimmed
from stream_sort.model.message import same_value
from stream_sort.model.outcomes import Status
from stream_sort.release.queue_errors import HOPELESS, WRONG_TABLE

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from stream_sort.model.message import Message
    from stream_sort.release.position_cache import Hint

Outcome = Status | StreamSortError


@dataclass(slots=True)
class Window:
    """Messages that are stored together: what was given, what was taken from it, and what became of each.

    `waited` is how long their source took to give them, in seconds. `hints` are what was last known of their queues,
    `walked_from` what was known before the first of a queue was stored: from there it is known which slots are filled.
    """

    size: int = 0
    waited: float = 0.0
    given: list[Any] = field(default_factory=list)
    messages: dict[int, Message] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    hints: dict[str, Hint] = field(default_factory=dict)
    walked_from: dict[str, Hint] = field(default_factory=dict)

    def absorb(self, other: Window) -> int:
        """Take over what another window was given after this one; return where that begins."""
        offset = len(self.given)
        self.given += other.given
        self.messages |= {offset + index: message for index, message in other.messages.items()}
        self.outcomes |= {offset + index: outcome for index, outcome in other.outcomes.items()}
        self.hints |= other.hints
        self.size += other.size
        return offset

    def await_twins(self, first: int) -> None:
        """Let messages from an index on wait for one before them that has their slot, and could not be stored yet."""
        slots: dict[tuple[str, int], Outcome] = {}
        for index, message in self.messages.items():
            slot, outcome = (message.queue, message.seq), self.outcomes.get(index)
            if index < first and isinstance(outcome, StoreUnavailable):
                slots[slot] = outcome
            elif index >= first and slot in slots:
                self.outcomes[index] = slots[slot]

    def seqs(self) -> dict[str, set[int]]:
        """For each queue, the seqs of its messages."""
        seqs: dict[str, set[int]] = {}
        for message in self.messages.values():
            seqs.setdefault(message.queue, set()).add(message.seq)
        return seqs

    def untold_of(self, queues: Container[str]) -> dict[int, Message]:
        """Return the messages of some queues that have no outcome yet, by their indexes."""
        found = self.messages_of(queues)
        return {index: message for index, message in found.items() if index not in self.outcomes}

    def messages_of(self, queues: Container[str]) -> dict[int, Message]:
        """Return the messages of some queues, by their indexes."""
        return {index: message for index, message in self.messages.items() if message.queue in queues}

    def stuck(self, queues: Container[str]) -> set[str]:
        """Return those of these queues of which a message could not be stored for now."""
        found = self.messages_of(queues)
        return {message.queue for index, message in found.items() if isinstance(self.outcomes[index], StoreUnavailable)}

    def take_back(self, queues: Container[str]) -> dict[int, Message]:
        """Return the messages of these queues that could not be stored for now; they have no outcome then."""
        found = self.messages_of(queues)
        failed = {index: one for index, one in found.items() if isinstance(self.outcomes[index], StoreUnavailable)}
        for index in failed:
            del self.outcomes[index]
        return failed

    def taken(self, queues: Container[str]) -> dict[str, set[int]]:
        """For each of these queues that is to be advanced, the seqs whose slots are known to be taken.

        A trimmed message may be a repeat, whose first writer died before it looked on: its queue is advanced, too. So
        is that of a message whose store ended the call: it may be stored, unless there is no table to store it in.
        """
        seqs: dict[str, set[int]] = {}
        for index, message in self.messages_of(queues).items():
            outcome = self.outcomes[index]
            if isinstance(outcome, (Status, Trimmed, *HOPELESS)) and not isinstance(outcome, WRONG_TABLE):
                seqs.setdefault(message.queue, set()).update({message.seq} if isinstance(outcome, Status) else ())
        return seqs

    def answers(self) -> Iterator[tuple[Any, Outcome]]:
        """Yield each message with its outcome, in the order they came.

        A message is the very object that was given, unless that was changed since: then it is what was taken from it.
        """
        for index, given in enumerate(self.given):
            message, outcome = self.messages.get(index), self.outcomes[index]
            if message is None or outcome is Status.ACCEPTED or same_value(message.document, given):
                yield given, outcome
            else:
                yield message.document, outcome
