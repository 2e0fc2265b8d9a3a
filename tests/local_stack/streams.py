"""Read a table's stream from its beginning: what the cursors did, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class CursorChange:
    """One record of the cursor stream: `(old, new]` was released; `old` is None when the row was made."""

    queue: str
    old: int | None
    new: int


def stream_records(streams: Any, table: str) -> Iterator[dict[str, Any]]:
    """All records of a table's stream so far, shard by shard; `streams` is a boto3 dynamodbstreams client.

    Stops at the first empty page, which on a local AWS is the end; in AWS a page may be empty before it.
    """
    for stream in streams.list_streams(TableName=table)["Streams"]:
        arn = stream["StreamArn"]
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator:
                page = streams.get_records(ShardIterator=iterator)
                yield from page["Records"]
                iterator = page.get("NextShardIterator") if page["Records"] else None


def cursor_changes(
    streams: Any, table: str, *, queue_key: str = "queue", seq_key: str = "seq"
) -> Iterator[CursorChange]:
    """The same, read as what happened to positions; the position stands under the seq key's name."""
    for record in stream_records(streams, table):
        images = record["dynamodb"]
        old, new = images.get("OldImage"), images["NewImage"]
        yield CursorChange(
            queue=new[queue_key]["S"],
            old=None if old is None else int(old[seq_key]["N"]),
            new=int(new[seq_key]["N"]),
        )


def broken_link(changes: list[CursorChange], first_seq: int = 0) -> str | None:
    """What is wrong with the chain of one queue's changes; None when each begins where the one before ended."""
    position: int | None = None
    for number, change in enumerate(changes, start=1):
        if change.old != position:
            return f"record {number} starts at {change.old}, the one before ended at {position}"
        if change.new < (first_seq - 1 if position is None else position):
            return f"record {number} goes backwards, from {position} to {change.new}"
        position = change.new
    return None
