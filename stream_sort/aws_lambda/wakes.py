"""From records to wakes: which queues the cursor table's stream, or the retry queue, asks a consumer to look at.

A record only wakes. Its images may be old, partial or missing: of OldImage nothing is read, of NewImage the position
as a hint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, RowDamaged
from stream_sort.formats.json_text import loads
from stream_sort.model.consumption import Wake
from stream_sort.model.message import check_queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.consumption import Served
    from stream_sort.model.message import KeyNames

STREAM = "aws:dynamodb"
SQS = "aws:sqs"
INT = re.compile(r"-?[0-9]{1,20}")


@dataclass(slots=True)
class Wakes:
    """The wakes of an event, and why some of its records wake nobody."""

    wakes: list[Wake] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WakeReader:
    """Reads the wakes of one consumer out of events."""

    consumer: str
    cursor_table: str
    keys: KeyNames

    def read(self, event: object) -> Wakes:
        """Return the wakes of an event, in its order; InvalidInput if it is no batch of records."""
        records = event.get("Records") if isinstance(event, dict) else None
        if not isinstance(records, list):
            raise InvalidInput(
                "no batch of records: a consumer is woken by its cursor table's stream or its retry queue; "
                'by hand, {"redrive": {"queue": "..."}} or {"redrive": "parked"} tries again what is parked'
            )
        found = Wakes()
        for record in records:
            try:
                found.wakes.append(self._wake(record))
            except InvalidInput as reason:
                found.ignored.append(str(reason))
        return found

    def _wake(self, record: Any) -> Wake:
        source = record.get("eventSource") if isinstance(record, dict) else None
        if source == STREAM:
            return self._from_stream(record)
        if source == SQS:
            return self._from_retry_queue(record)
        raise InvalidInput(f"a record of {source!r} wakes nobody")

    def _from_stream(self, record: dict[str, Any]) -> Wake:
        table = _table_of(record.get("eventSourceARN"))
        if self.cursor_table and table not in {None, self.cursor_table}:
            raise InvalidInput(f"a record of table {table!r}, not of {self.cursor_table!r}")
        body = _map(record, "dynamodb")
        queue = _map(_map(body, "Keys"), self.keys.queue).get("S")
        number = _map(_map(body, "NewImage"), self.keys.seq).get("N")
        return Wake(check_queue(queue), _int(number), _names(body.get("SequenceNumber")))

    def _from_retry_queue(self, record: dict[str, Any]) -> Wake:
        body = loads(str(record.get("body")))
        if not isinstance(body, dict) or body.get("consumer") != self.consumer:
            raise InvalidInput(f"a message of the retry queue that is not for consumer {self.consumer!r}")
        return Wake(check_queue(body.get("queue")), None, _names(record.get("messageId")))


def batch_response(wakes: Sequence[Wake], served: Sequence[Served]) -> dict[str, Any]:
    """Say which records to send again, because their queue's failure could not be recorded.

    If that goes for all of them, or a failed one has no record with a name, the error is raised: all come again.
    """
    failed = {one.queue: one.error for one in served if comes_again(one)}
    nameless = any(wake.queue in failed and not wake.records for wake in wakes)
    if failed and (nameless or len(failed) == len(served)):
        raise next(error for error in failed.values() if error is not None)
    names = [name for wake in wakes if wake.queue in failed for name in wake.records]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


def comes_again(served: Served) -> bool:
    """Return True if a queue failed, and its records are to be sent again.

    Not those of a queue with a row that cannot be read: they would hold up their shard, and nothing else is gained. A
    sweep names it until the row is mended, and wakes the queue then.
    """
    return served.ended == "failed" and not isinstance(served.error, RowDamaged)


def _table_of(arn: object) -> str | None:
    """Return the table in a stream's ARN; None where there is no ARN."""
    parts = arn.split("/") if isinstance(arn, str) else []
    return parts[1] if len(parts) > 1 else None


def _map(holder: dict[str, Any], name: str) -> dict[str, Any]:
    inner = holder.get(name)
    return inner if isinstance(inner, dict) else {}


def _int(text: object) -> int | None:
    return int(text) if isinstance(text, str) and INT.fullmatch(text) else None


def _names(name: object) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) and name else ()
