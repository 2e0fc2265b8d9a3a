"""A redrive that somebody asks of `process` by a direct invoke: of one queue, or of all that are parked."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.aws_lambda.failures import facts_of
from stream_sort.errors import InvalidInput, NotParked, named_error, shown
from stream_sort.model.message import check_queue, check_seq
from stream_sort.model.retries import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.consumption import DeadLetter, Parked

MARK = "redrive"
ALL_PARKED = "parked"
SHAPES = '{"redrive": {"queue": "..."}}, with a "seq" if only that one is meant, or {"redrive": "parked"}'
# So many failures are listed one by one; all are counted.
MOST_LISTED = 100
# What is kept of the time of a run: a queue that was begun hands over what is left of it.
RESERVED_SHARE = 0.2
LONGEST_RESERVE = 10.0


class Redriving(Protocol):
    """The consumer whose queues are redriven."""

    def parked(self) -> list[Parked]:
        """Queues that wait behind a message that failed."""

    def stuck(self, queue: str, seq: int | None = None) -> list[Parked | DeadLetter]:
        """Return what is parked or dead in one queue, or at one seq of it, as it stands now."""

    def redrive(
        self,
        queue: str,
        seq: int | None = None,
        *,
        time_left: Callable[[], float] | None = None,
        on_failure: Callable[[Exception], None] = ...,
    ) -> int:
        """Try again what is parked or dead; returns how many messages were delivered."""


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """What is to be redriven: a queue, or one seq of it; all parked queues if none is named."""

    queue: str | None = None
    seq: int | None = None


@dataclass(slots=True)
class Redriven:
    """What came of it: queues tried, messages delivered, what failed again, and the queues left for want of time.

    `places` has the place in the user's code of each that failed, for the log.
    """

    queues: int = 0
    delivered: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    left: int = 0
    places: list[dict[str, str]] = field(default_factory=list)

    def add(self, failed: dict[str, Any], cause: Exception | None) -> None:
        """Note what failed again, and what the handler raised."""
        self.failed.append(failed)
        self.places.append(facts_of(cause, failed["error"]))

    def answer(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "queues": self.queues,
            "delivered": self.delivered,
            "failed": len(self.failed),
            "errors": self.failed[:MOST_LISTED],
            "left": self.left,
        }


def wanted_by(event: object) -> RedriveRequest | None:
    """Return what an event wants to be redriven; None for an event of another kind. InvalidInput for what cannot be."""
    if not isinstance(event, dict) or MARK not in event:
        return None
    wanted = event[MARK]
    if event.keys() == {MARK} and wanted == ALL_PARKED:
        return RedriveRequest()
    named = wanted.keys() if isinstance(wanted, dict) else set()
    if event.keys() != {MARK} or "queue" not in named or not named <= {"queue", "seq"}:
        raise InvalidInput(f"a redrive of an unknown shape: {shown(event, 200)}; it is {SHAPES}")
    seq = wanted.get("seq")
    return RedriveRequest(check_queue(wanted["queue"]), None if seq is None else check_seq(seq))


def redrive(consumer: Redriving, wanted: RedriveRequest, time_left: Callable[[], float] | None) -> Redriven:
    """Redrive what is wanted, as far as the time goes; NotParked if a queue was named that needs none."""
    done = Redriven()
    if wanted.queue is not None:
        _redrive_one(consumer, wanted.queue, wanted.seq, done, time_left)
        return done
    parked = consumer.parked()
    reserve = min(LONGEST_RESERVE, RESERVED_SHARE * time_left()) if time_left else 0.0
    longest = 0.0
    for index, one in enumerate(parked):
        if time_left and time_left() < max(reserve, 2 * longest):
            done.left = len(parked) - index
            break
        began = monotonic()
        try:
            _redrive_one(consumer, one.queue, one.seq, done, time_left)
        except NotParked:
            # Somebody else freed it meanwhile.
            continue
        longest = max(longest, monotonic() - began)
    return done


def _redrive_one(
    consumer: Redriving, queue: str, seq: int | None, done: Redriven, time_left: Callable[[], float] | None
) -> None:
    causes: list[Exception] = []
    try:
        done.delivered += consumer.redrive(queue, seq, time_left=time_left, on_failure=causes.append)
        for one in consumer.stuck(queue, seq)[:1]:
            # The last of them may be another message's.
            cause = next((cause for cause in reversed(causes) if text_of(cause) == one.error), None)
            done.add(_as_json(one), cause)
    except NotParked:
        raise
    except Exception as unnamed:  # noqa: BLE001  # a bug of ours in one queue must not stop the others
        error = named_error(queue, unnamed)
        done.add({"queue": queue, "seq": seq, "error": f"{type(error).__name__}: {error}"}, None)
    done.queues += 1


def _as_json(one: Parked | DeadLetter) -> dict[str, Any]:
    return {
        "queue": one.queue,
        "seq": one.seq,
        "error": one.error,
        "attempts": one.attempts,
        "next_try": one.next_try,
    }
