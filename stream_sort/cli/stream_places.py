"""Reads again what stands at a place of a stream, Kinesis's or a table's, for as long as the stream has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.aws_lambda.refused_events import StreamPlace

# What AWS answers for a place that a stream no longer has, or never had.
GONE = frozenset({"InvalidArgumentException", "ResourceNotFoundException", "TrimmedDataAccessException"})
# A shard may answer with nothing many times before it comes to a record.
MOST_ANSWERS = 1_000


class PlaceUnreadable(Exception):
    """AWS did not say what stands at a place: a right is missing, a stream is throttled, or there is no way to it."""


def kinesis_records(client: Any, place: StreamPlace) -> list[tuple[str, bytes]] | None:
    """Return the sequence number and data of each record; None if the stream does not have all of them any more.

    PlaceUnreadable if that cannot be known now.

    Between them may be some that were not given up: a shard is read by several runs at once.
    """
    start = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": place.first}
    found = _records(client, place, {"StreamARN": place.stream, "ShardId": place.shard, **start})
    records = [(str(one["SequenceNumber"]), bytes(one["Data"])) for one in found]
    return _whole(records, place)


def table_queues(client: Any, place: StreamPlace, queue_key: str) -> list[str] | None:
    """Return the queues that records of a table's stream name; None if it does not have all of them any more.

    PlaceUnreadable if that cannot be known now.
    """
    start = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": place.first}
    found = _records(client, place, {"StreamArn": place.stream, "ShardId": place.shard, **start})
    records = [(one["dynamodb"]["SequenceNumber"], one["dynamodb"].get("Keys", {})) for one in found]
    if _whole(records, place) is None:
        return None
    named = (keys.get(queue_key, {}).get("S") for _, keys in records)
    return list(dict.fromkeys(queue for queue in named if queue))


def _records(client: Any, place: StreamPlace, start: dict[str, Any]) -> list[dict[str, Any]]:
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError  # noqa: PLC0415  # as all imports of commands

    try:
        return list(_read(client, place, start))
    except ParamValidationError:
        # No place that a stream could have.
        return []
    except ClientError as error:
        if error.response["Error"]["Code"] not in GONE:
            raise _unreadable(error) from error
        return []
    except BotoCoreError as error:
        raise _unreadable(error) from error


def _unreadable(why: object) -> PlaceUnreadable:
    return PlaceUnreadable(f"its stream could not be read: {why}")


def _read(client: Any, place: StreamPlace, start: dict[str, Any]) -> Iterator[dict[str, Any]]:
    iterator, last = client.get_shard_iterator(**start).get("ShardIterator"), int(place.last)
    where = {"StreamARN": place.stream} if place.is_kinesis else {}
    for _ in range(MOST_ANSWERS):
        if iterator is None:
            return
        answer = client.get_records(ShardIterator=iterator, **where)
        for one in answer["Records"]:
            number = int(one["dynamodb"]["SequenceNumber"] if "dynamodb" in one else one["SequenceNumber"])
            if number <= last:
                yield one
            if number >= last:
                return
        if not answer["Records"] and answer.get("MillisBehindLatest") == 0:
            # The end of all that the shard has.
            return
        iterator = answer.get("NextShardIterator")
    if place.is_kinesis:
        # A stream of a table does not say how far it is from its end; what is missed there is found otherwise.
        raise _unreadable(f"{MOST_ANSWERS:,} answers, and none of them came to it; try it again")


def _whole(records: list[tuple[str, Any]], place: StreamPlace) -> list[tuple[str, Any]] | None:
    """Return the records if both ends are there: a stream drops the oldest first."""
    if not records or int(records[0][0]) != int(place.first) or int(records[-1][0]) != int(place.last):
        return None
    return records
