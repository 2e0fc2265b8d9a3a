"""Where refused events are kept: queues and a bucket. What is received is hidden, and shown again at the end."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from stream_sort.aws_lambda.parcels import RecordParcel
from stream_sort.aws_lambda.refused_events import RefusedEvent, Wrapping, unwrap
from stream_sort.cli.output import interrupted_later, tell
from stream_sort.errors import InvalidInput
from stream_sort.formats.json_text import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stream_sort.cli.connection import Connection
    from stream_sort.model.message import KeyNames

# As many as SQS hands out, or takes, at once.
PAGE = 10
# How long what was received stays hidden if nobody lives to show it again.
LOOK = 60
# A poll that waits asks all of SQS's servers; one that does not may find nothing where there is something.
WAIT = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """A refused event where it is kept. `id` names it in commands, `handle` in its source.

    One that is not `seen` could not be read, and its `event` says why.
    """

    id: str
    source: str
    since: float | None
    event: RefusedEvent
    body: str
    handle: str
    seen: bool = True


@dataclass
class RefusedSource:
    """Something that keeps refused events."""

    name: str

    def kept(self, hide: int) -> Iterator[Kept]:
        """Go through what it keeps; each is hidden from others for so many seconds, or until the end."""
        raise NotImplementedError

    def delete(self, some: Iterable[Kept]) -> dict[str, str]:
        """Delete events for good. Return, by id, why one is still there."""
        raise NotImplementedError

    def elsewhere(self) -> int:
        """Count roughly, before anything is looked at, what is hidden: by others, or by a command that was killed."""
        return 0

    def tidy(self) -> None:
        """Delete what only speaks of events that are deleted."""

    def close(self) -> None:
        """Show again what was hidden and not deleted. Never raises for AWS: what stays hidden is only reported."""


@dataclass
class QueueSource(RefusedSource):
    """An SQS queue."""

    url: str
    client: Any
    keys: KeyNames
    hidden: dict[str, str] = field(default_factory=dict)
    hidden_for: int = LOOK

    def kept(self, hide: int) -> Iterator[Kept]:
        """See RefusedSource. Where it takes longer than they can be hidden, what was seen comes again, perhaps first.

        So it ends when as many came again, one after the other, as there are, or none comes.
        """
        seen: set[str] = set()
        again = 0
        self.hidden_for = hide
        while again <= len(seen) and (page := self._receive(hide)):
            fresh = [one for one in page if one["MessageId"] not in seen]
            seen |= {one["MessageId"] for one in page}
            again = 0 if fresh else again + len(page)
            yield from map(self._opened, fresh)

    def elsewhere(self) -> int:
        """See RefusedSource. What cannot be counted is told, and counts as nothing."""
        wanted = "ApproximateNumberOfMessagesNotVisible"
        try:
            answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=[wanted])
        except _refusals() as error:
            tell(f"whether more is hidden in {self.name} is not known: {error}")
            return 0
        return int(answer.get("Attributes", {}).get(wanted, 0))

    def delete(self, some: Iterable[Kept]) -> dict[str, str]:
        """See RefusedSource."""
        kept: dict[str, str] = {}
        for page in _pages(list(some)):
            # The handle of the last receive, should it have come twice.
            entries = self._entries({one.id: self.hidden.get(one.id, one.handle) for one in page})
            failed = self._failures(self.client.delete_message_batch, entries)
            kept |= {page[number].id: why for number, why in failed.items()}
            for number, one in enumerate(page):
                if number not in failed:
                    self.hidden.pop(one.id, None)
        return kept

    def close(self) -> None:
        """See RefusedSource."""
        left: list[str] = []
        for page in _pages(list(self.hidden.items())):
            entries = [one | {"VisibilityTimeout": 0} for one in self._entries(dict(page))]
            # A fault of ours is a handle that is of no use: somebody else can see it, or could already.
            left += self._failures(self.client.change_message_visibility_batch, entries, own_faults=False).values()
            for name, _ in page:
                self.hidden.pop(name)
        if left:
            time = "a minute" if self.hidden_for <= LOOK else f"{self.hidden_for // 60} minutes"
            tell(f"{len(left):,} of {self.name} will be hidden for up to {time}: {left[0]}")

    def _failures(
        self, call: Callable[..., Any], entries: list[dict[str, Any]], *, own_faults: bool = True
    ) -> dict[int, str]:
        """Make a call for a page. Return, by the number of each entry, why it was not done."""
        try:
            failed = call(QueueUrl=self.url, Entries=entries).get("Failed", ())
        except _refusals() as error:
            return dict.fromkeys(range(len(entries)), str(error))
        return {
            int(one["Id"]): ": ".join(str(one[name]) for name in ("Code", "Message") if one.get(name))
            for one in failed
            if own_faults or not one.get("SenderFault")
        }

    def _receive(self, hide: int) -> list[dict[str, Any]]:
        # A page that SQS has handed out is hidden, whether it is noted here or not.
        with interrupted_later():
            answer = self.client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=PAGE,
                VisibilityTimeout=hide,
                WaitTimeSeconds=WAIT,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            found: list[dict[str, Any]] = answer.get("Messages", [])
            self.hidden |= {one["MessageId"]: one["ReceiptHandle"] for one in found}
        return found

    def _opened(self, one: dict[str, Any]) -> Kept:
        attributes = {
            name: value["StringValue"]
            for name, value in one.get("MessageAttributes", {}).items()
            if "StringValue" in value
        }
        sent = one.get("Attributes", {}).get("SentTimestamp")
        since = int(sent) / 1000 if sent else None
        event = unwrap(one["Body"], attributes, self.keys)
        return Kept(one["MessageId"], self.name, since, event, one["Body"], one["ReceiptHandle"])

    def _entries(self, handles: dict[str, str]) -> list[dict[str, Any]]:
        return [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles.values())]


@dataclass
class BucketSource(RefusedSource):
    """A bucket with an object for each batch, and the queue that has a note of each."""

    bucket: str
    client: Any
    keys: KeyNames
    notes: QueueSource | None = None

    def kept(self, hide: int) -> Iterator[Kept]:  # noqa: ARG002  # objects are not hidden: the same batch twice does no harm
        """See RefusedSource."""
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for one in page.get("Contents", ()):
                if (found := self._found(one["Key"], one["LastModified"].timestamp())) is not None:
                    yield found

    def delete(self, some: Iterable[Kept]) -> dict[str, str]:
        """See RefusedSource."""
        kept: dict[str, str] = {}
        for one in some:
            if not one.seen:
                kept[one.id] = "it cannot be read, so what would be lost is not known"
                continue
            try:
                self.client.delete_object(Bucket=self.bucket, Key=one.handle)
            except _refusals() as error:
                kept[one.id] = str(error)
        return kept

    def tidy(self) -> None:
        """See RefusedSource: notes of objects that are gone raise an alarm for what somebody has seen to."""
        if self.notes is None:
            return
        try:
            gone = [note for note in self.notes.kept(LOOK) if self._is_gone(note.body)]
            if kept := self.notes.delete(gone):
                tell(f"{len(kept):,} of the notes in {self.notes.name} could not be deleted: {min(kept.values())}")
        finally:
            self.notes.close()

    def _is_gone(self, note: str) -> bool:
        """Return True if a note names an object that is not there; what is no note is left alone."""
        try:
            key = loads(note)["detail"]["object"]["key"]
            names = {key, unquote_plus(key)}
        except (InvalidInput, AttributeError, KeyError, TypeError):
            return False
        return not any(self._is_there(name) for name in names)

    def _is_there(self, key: str) -> bool:
        listed = self.client.list_objects_v2(Bucket=self.bucket, Prefix=key, MaxKeys=1)
        return any(one["Key"] == key for one in listed.get("Contents", ()))

    def _found(self, key: str, since: float) -> Kept | None:
        """Return what an object holds, or why it cannot be read; None if somebody else has seen to it meanwhile."""
        try:
            text = self._text(key)
        except _refusals() as error:
            why = InvalidInput(f"it cannot be read now: {error}")
            event = RefusedEvent(Wrapping.BATCH, "", (RecordParcel(key, error=why),))
            return Kept(key, self.name, since, event, "", key, seen=False)
        return None if text is None else Kept(key, self.name, since, unwrap(text, {}, self.keys), text, key)

    def _text(self, key: str) -> str | None:
        """Return what an object holds; None if it is gone."""
        from botocore.exceptions import ClientError  # noqa: PLC0415  # as all imports of commands

        try:
            body: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            return None
        return body.decode(errors="replace")


def _pages(some: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (some[start : start + PAGE] for start in range(0, len(some), PAGE))


def _refusals() -> tuple[type[Exception], ...]:
    """Return what AWS, or the way to it, answers with instead of doing what it was asked."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # as all imports of commands

    return BotoCoreError, ClientError


@contextmanager
def sources_of(connection: Connection, url: str | None, bucket: str | None) -> Iterator[list[RefusedSource]]:
    """Open the sources of a stack, or the queue and bucket that are named. What is left at the end is shown again."""
    keys = connection.sorter.options.keys
    found: list[RefusedSource] = []
    if url is not None:
        found.append(QueueSource(url.rpartition("/")[2], url, connection.client("sqs"), keys))
    if bucket is not None:
        found.append(BucketSource(bucket, bucket, connection.client("s3"), keys))
    if not found:
        found = list(_of_stack(connection, keys))
    with ExitStack() as end:
        for one in found:
            end.callback(one.close)
        yield found


def _of_stack(connection: Connection, keys: KeyNames) -> Iterator[RefusedSource]:
    sqs, outputs = connection.client("sqs"), connection.stack.outputs
    yield QueueSource("EnqueueDeadLetters", connection.output("EnqueueDeadLettersUrl"), sqs, keys)
    if bucket := outputs.get("KinesisFailuresBucket"):
        noted = outputs.get("KinesisFailuresUrl")
        notes = QueueSource("KinesisFailures", noted, sqs, keys) if noted else None
        yield BucketSource("KinesisFailuresBucket", bucket, connection.client("s3"), keys, notes)
    if failures := outputs.get("StreamFailuresUrl"):
        yield QueueSource("StreamFailures", failures, sqs, keys)


def every(sources: Iterable[RefusedSource], hide: int) -> Iterator[tuple[RefusedSource, Kept]]:
    """Return all that the sources keep."""
    return ((source, one) for source in sources for one in source.kept(hide))


def named(
    sources: Iterable[RefusedSource], ids: Iterable[str], hide: int, see: str
) -> Iterator[tuple[RefusedSource, Kept]]:
    """Yield those of these ids; InvalidInput at the end if one is not there, with the command to see."""
    wanted = set(ids)
    found = ((source, one) for source, one in every(sources, hide) if one.id in wanted)
    for source, one in islice(found, len(wanted)):
        wanted.discard(one.id)
        yield source, one
    if wanted:
        raise InvalidInput(f"no dead letter has the id {min(wanted)!r}; see {see}")
