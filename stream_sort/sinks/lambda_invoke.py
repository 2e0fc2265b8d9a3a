"""To a Lambda function, synchronously: `{"queue", "after", "through", "seqs", "messages"}`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import UnreadableAnswer, answered
from stream_sort.errors import HandlerProblem, TryLater, shown
from stream_sort.sinks.progress import SinkEntry, SinkProgress, check_size, cut, entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.model.batch import Batch

# Lambda takes 6 MB (6,291,456 bytes); what is left is for the queue's name, the seqs and the brackets.
MAX_BYTES = 6_000_000
MAX_COUNT = 10_000
# What Lambda says of a function whose code could not be loaded: no message got as far as that.
NEVER_BEGAN = frozenset(
    {
        "Runtime.HandlerNotFound",
        "Runtime.ImportModuleError",
        "Runtime.InvalidEntrypoint",
        "Runtime.InvalidWorkingDir",
        "Runtime.MalformedHandlerName",
        "Runtime.UserCodeSyntaxError",
    }
)


class LambdaSink:
    """Invokes the function for each part of a batch that fits into one call, the next when the one before is done.

    Any answer means that all was done, unless it is an error or says `{"last_done": seq}`: then what is behind
    that seq comes again. The function sees a message again after a failure, and when its answer was lost.
    """

    def __init__(self, target: str, client: Any) -> None:
        self._function = target
        self._client = client

    def __call__(self, batch: Batch) -> int | None:
        """Invoke the function; return the last seq it did when that is not all, or raise with it."""
        after = batch.after
        with SinkProgress(batch, f"Lambda function {self._function}") as progress:
            for piece, through in _pieces(batch):
                done = self._invoke(batch.queue, after, through, piece)
                if done < piece[-1].seq:
                    return done
                progress.last_done = piece[-1].seq
                after = through
        return None

    def _invoke(self, queue: str, after: int, through: int, piece: list[SinkEntry]) -> int:
        check_size(max(entry.size for entry in piece), MAX_BYTES)
        answer = answered(
            self._client.invoke,
            "Payload",
            FunctionName=self._function,
            InvocationType="RequestResponse",
            Payload=_payload(queue, after, through, piece),
        )
        payload = answer["Payload"].read()
        said = _document(payload)
        if said is None:
            # A runtime of one's own may answer with what is no JSON, and Lambda names the version that ran.
            if "ExecutedVersion" not in answer:
                raise UnreadableAnswer(problem=shown(payload))
            said = {}
        if answer.get("FunctionError"):
            problem = f"the function failed: {said.get('errorType')}: {said.get('errorMessage')}"
            raise TryLater(problem) if said.get("errorType") in NEVER_BEGAN else HandlerProblem(problem)
        return _last_done(said.get("last_done"), after, through)


def _pieces(batch: Batch) -> Iterator[tuple[list[SinkEntry], int]]:
    """Yield the parts of a batch and the seq that each goes through; the last covers what was skipped at the end."""
    last = batch.seqs[-1] if batch.seqs else None
    for piece in cut(entries(batch), MAX_BYTES, MAX_COUNT):
        yield piece, batch.through if piece[-1].seq == last else piece[-1].seq


def _payload(queue: str, after: int, through: int, piece: list[SinkEntry]) -> bytes:
    seqs = ",".join(str(entry.seq) for entry in piece)
    messages = ",".join(entry.text for entry in piece)
    head = f'"queue":{json.dumps(queue)},"after":{after},"through":{through}'
    return f'{{{head},"seqs":[{seqs}],"messages":[{messages}]}}'.encode()


def _document(payload: bytes) -> dict[str, Any] | None:
    """Return what a function answered, empty if it is no object; None if it is no JSON."""
    try:
        said = json.loads(payload)
    except ValueError:
        return None
    return said if isinstance(said, dict) else {}


def _last_done(seq: object, after: int, through: int) -> int:
    if seq is None:
        return through
    if isinstance(seq, bool) or not isinstance(seq, int) or not after <= seq <= through:
        raise HandlerProblem(f"the function's last_done is {shown(seq)}; it must be a seq of {after} to {through}")
    if seq == after:
        raise HandlerProblem("the function says that it did none of the messages")
    return seq
