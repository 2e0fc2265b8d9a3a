"""How far a batch got at a sink, and the named error when it got no further. Knows no service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from stream_sort.aws.errors import code_of, said_of, status_of
from stream_sort.errors import HandlerProblem, PartlyDone, StreamSortError, TryLater
from stream_sort.formats.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from stream_sort.model.batch import Batch

REASON_LENGTH = 500
TOO_LARGE = 413
# What targets say of a message that they will never take. All else is their own state, or the network's: it passes, or
# somebody mends it.
OWN_FAULTS = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidArgument",
        "InvalidArgumentException",
        "InvalidAttributeValue",
        "InvalidMessageContents",
        "InvalidParameter",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "InvalidRequestContentException",
        "MalformedDetail",
        "ParameterValueInvalid",
        "RequestTooLargeException",
        "ValidationError",
        "ValidationException",
    }
)


# The same codes are of the target where the sentence begins with it: SNS says so of a topic of another region.
OF_THE_TARGET = re.compile(r"Invalid parameter: (?:TopicArn|TargetArn)\b")


@dataclass(frozen=True, slots=True)
class SinkEntry:
    """One message as JSON text; `size` is its bytes in UTF-8."""

    seq: int
    text: str
    size: int


class SinkProgress:
    """Notes the last message that is known to be delivered with all before it; use it around the sending.

    An error of AWS, or one of ours, leaves as a HandlerProblem that names queue, seq and sink when nothing
    was done, else as PartlyDone from it. So the next try starts at the message that failed. What is not the
    message's own fault is a TryLater.
    """

    def __init__(self, batch: Batch, sink: str) -> None:
        self.last_done: int | None = None
        self._batch = batch
        self._sink = sink

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, ClientError | BotoCoreError | StreamSortError):
            return
        kind = HandlerProblem if _is_own_fault(error) else TryLater
        problem = kind(
            f"queue {self._batch.queue!r}, seq {self._failed()}: {self._sink}: {_reason(error)[:REASON_LENGTH]}"
        )
        problem.__cause__ = error
        if self.last_done is None:
            raise problem
        raise PartlyDone(self.last_done) from problem

    def _failed(self) -> int | None:
        return next((seq for seq in self._batch.seqs if self.last_done is None or seq > self.last_done), None)


def entries(batch: Batch) -> Iterator[SinkEntry]:
    """Yield the messages of a batch as text, one at a time and in order."""
    for seq, message in zip(batch.seqs, batch.messages, strict=True):
        text = dumps(message)
        yield SinkEntry(seq, text, len(text.encode()))


def cut(whole: Iterable[SinkEntry], max_bytes: int, max_count: int) -> Iterator[list[SinkEntry]]:
    """Pieces that fit into one call each; an entry that fits into none stands alone, for `check_size` to name."""
    piece: list[SinkEntry] = []
    size = 0
    for entry in whole:
        if piece and (len(piece) == max_count or size + entry.size > max_bytes):
            yield piece
            piece, size = [], 0
        piece.append(entry)
        size += entry.size
    if piece:
        yield piece


def check_size(size: int, limit: int) -> None:
    """Raise HandlerProblem when a message is larger than the sink can ever take."""
    if size > limit:
        raise HandlerProblem(
            f"the message takes {size:,} bytes as JSON, over the limit of {limit:,}; "
            "put the payload into S3 and its address into the message, or discard it"
        )


def refused(code: object, text: str) -> HandlerProblem:
    """Return the error for what a target answered with a code: the message's own fault, or not."""
    return HandlerProblem(text) if code in OWN_FAULTS else TryLater(text)


def _is_own_fault(error: Exception) -> bool:
    if isinstance(error, ClientError):
        is_of_message = code_of(error) in OWN_FAULTS and not OF_THE_TARGET.match(said_of(error))
        return is_of_message or status_of(error) == TOO_LARGE
    if isinstance(error, StreamSortError):
        return not isinstance(error, TryLater)
    return isinstance(error, ParamValidationError)


def _reason(error: Exception) -> str:
    if isinstance(error, ClientError):
        answer = error.response.get("Error", {})
        return f"{error.operation_name} was refused: {answer.get('Code')}: {answer.get('Message')}"
    return str(error)
