"""Whoever follows the cursor stream today, with no more than the tables, keeps I3 and I4."""

from __future__ import annotations

import random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stream_sort import StreamSorter
from tests.local_stack.streams import cursor_changes

QUEUES = ("ada", "bob")
MESSAGES = 120


@pytest.fixture
def sorter(dynamodb: Any, tables: Any) -> StreamSorter:
    sorter = StreamSorter(tables.items, tables.cursor, client=dynamodb, max_advance=7)
    messages = [{"queue": queue, "seq": seq, "amount": seq} for queue in QUEUES for seq in range(MESSAGES)]
    random.Random(5).shuffle(messages)
    for message in messages[:80]:
        sorter.put(message)
    sorter.put_many(messages)
    return sorter


def test_i3_the_ranges_of_the_stream_hold_every_message_once_and_in_order(
    sorter: StreamSorter, dynamodb_streams: Any, tables: Any
) -> None:
    seen: dict[str, list[int]] = {queue: [] for queue in QUEUES}
    for change in cursor_changes(dynamodb_streams, tables.cursor):
        after = -1 if change.old is None else change.old
        seen[change.queue] += [message["seq"] for message in sorter.read(change.queue, after, change.new)]
    assert seen == {queue: list(range(MESSAGES)) for queue in QUEUES}


def test_i4_an_effect_committed_with_its_checkpoint_is_applied_once_though_records_repeat_and_mix(
    sorter: StreamSorter, dynamodb: Any, dynamodb_streams: Any, tables: Any
) -> None:
    ledger = f"ledger-{tables.items}"
    key = {"AttributeName": "queue", "KeyType": "HASH"}
    kind = {"AttributeName": "queue", "AttributeType": "S"}
    dynamodb.create_table(TableName=ledger, KeySchema=[key], AttributeDefinitions=[kind], BillingMode="PAY_PER_REQUEST")
    wakes = list(cursor_changes(dynamodb_streams, tables.cursor)) * 2
    random.Random(6).shuffle(wakes)
    for wake in wakes:
        deliver(sorter, dynamodb, ledger, wake.queue)
    for queue in QUEUES:
        row = dynamodb.get_item(TableName=ledger, Key={"queue": {"S": queue}})["Item"]
        assert row["total"] == {"N": str(sum(range(MESSAGES)))}
        assert row["checkpoint"] == {"N": str(MESSAGES - 1)}


def deliver(sorter: StreamSorter, dynamodb: Any, ledger: str, queue: str) -> None:
    """Deliver what the tables say is due; a record only wakes. Every commit is tried twice, as after a lost reply."""
    row = dynamodb.get_item(TableName=ledger, Key={"queue": {"S": queue}}, ConsistentRead=True).get("Item", {})
    checkpoint = int(row["checkpoint"]["N"]) if row else -1
    chunk = list(sorter.read(queue, after=checkpoint))[:25]
    if not chunk:
        return
    change = {
        "TableName": ledger,
        "Key": {"queue": {"S": queue}},
        "UpdateExpression": "SET checkpoint = :new ADD #total :amount",
        "ConditionExpression": "checkpoint = :old" if row else "attribute_not_exists(checkpoint)",
        "ExpressionAttributeNames": {"#total": "total"},
        "ExpressionAttributeValues": {
            ":new": {"N": str(chunk[-1]["seq"])},
            ":amount": {"N": str(sum(message["amount"] for message in chunk))},
            **({":old": {"N": str(checkpoint)}} if row else {}),
        },
    }
    dynamodb.transact_write_items(TransactItems=[{"Update": change}])
    with pytest.raises(ClientError, match="TransactionCanceled"):
        dynamodb.transact_write_items(TransactItems=[{"Update": change}])
