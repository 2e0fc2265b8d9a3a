"""Withdrawals on real tables of moto's: lost replies, missing rights, the largest message, whole-table readers."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from stream_sort import AccessDenied, MessageTooLarge, NotWithdrawn, StoreError, StoreUnavailable, StreamSorter
from stream_sort.model.item_size import item_size
from stream_sort.model.message import MAX_MESSAGE_BYTES, KeyNames, check_message
from stream_sort.model.records import Arrival
from stream_sort.model.withdrawal import Withdrawal
from stream_sort.replay.audit.table_survey import keys_batch
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.export.files import read_keys, read_slots
from stream_sort.replay.origins.export.manifest import open_export
from stream_sort.stores.dynamodb.items import _record
from stream_sort.stores.dynamodb.tables import TableNames
from stream_sort.stores.dynamodb.values import encode
from stream_sort.stores.dynamodb.withdrawals import DynamoWithdrawalStore
from tests.spark.exports import make_export
from tests.unit.faulty import THROTTLE, Faulty, message, refusal

if TYPE_CHECKING:
    from pathlib import Path

LOST = ReadTimeoutError(endpoint_url="http://slow")
LARGEST_ITEM = 400 * 1024


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    sorter = StreamSorter(client=client, deadline=0.5, in_flight=1)
    sorter.put_many([message(0), message(7, body="stray")])
    return sorter


def scanned(client: Faulty) -> list[dict[str, Any]]:
    return list(client.scan(TableName="Items")["Items"])


def test_a_reply_that_is_lost_is_no_withdrawal_too_many(client: Faulty, sorter: StreamSorter) -> None:
    client.after = {"transact_write_items": [LOST, LOST]}
    assert sorter.withdraw("q", 7, reason="a time").message == message(7, body="stray")
    assert [one.number for one in sorter.withdrawn("q")] == [1]


def test_every_try_of_a_transaction_has_the_same_token(client: Faulty, sorter: StreamSorter) -> None:
    tokens: list[str] = []

    def watch(method: str, request: dict[str, Any]) -> None:
        tokens.extend([request["ClientRequestToken"]] if method == "transact_write_items" else [])

    client.watch = watch
    client.before = {"transact_write_items": [refusal(THROTTLE)] * 3}
    sorter.withdraw("q", 7)
    assert len(tokens) == 4
    assert len(set(tokens)) == 1


def test_an_unknown_outcome_is_told_and_the_same_call_finds_out(client: Faulty, sorter: StreamSorter) -> None:
    client.after = {"transact_write_items": [LOST]}
    client.before = {"transact_write_items": []}

    def fail_later(method: str, _: dict[str, Any]) -> None:
        if method == "transact_write_items" and client.calls.count(method) == 2:
            client.before[method] = [refusal(THROTTLE)] * 1_000

    client.watch = fail_later
    with pytest.raises(StoreUnavailable, match="may or may not have been done"):
        sorter.withdraw("q", 7)
    client.before = {}
    assert sorter.withdraw("q", 7).number == 1


def test_a_missing_right_names_all_that_a_withdrawal_needs(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"transact_write_items": [refusal("AccessDeniedException", says="no way")]}
    with pytest.raises(AccessDenied, match=r"PutItem, DeleteItem and ConditionCheckItem on table 'Items'.*no way"):
        sorter.withdraw("q", 7)
    assert sorter.slot("q", 7) is not None


def test_a_transaction_that_is_cancelled_for_another_reason_is_an_error(client: Faulty, sorter: StreamSorter) -> None:
    cancelled = refusal("TransactionCanceledException")
    cancelled.response["CancellationReasons"] = [{"Code": "None"}] * 3 + [{"Code": "ValidationError"}]
    client.before = {"transact_write_items": [cancelled]}
    with pytest.raises(StoreError, match="ValidationError"):
        sorter.withdraw("q", 7)


def test_what_was_put_there_since_it_was_read_is_not_withdrawn(client: Faulty, sorter: StreamSorter) -> None:
    def replace_it(method: str, _: dict[str, Any]) -> None:
        if method == "transact_write_items" and client.calls.count(method) == 1:
            other = {"queue": {"S": "q"}, "seq": {"N": "7"}, "body": {"S": "other"}}
            client._client.put_item(TableName="Items", Item=other)

    client.watch = replace_it
    assert sorter.withdraw("q", 7).message == message(7, body="other")
    assert client.calls.count("transact_write_items") == 2


@pytest.mark.parametrize("queue", ["q", "ü" * 512])
@pytest.mark.parametrize("fields", [{}, {"float": 1.0}, {f"field {n}": n / 2 for n in range(2_000)}], ids=len)
def test_the_largest_message_fits_where_it_is_kept(queue: str, fields: dict[str, Any]) -> None:
    seq, keys = 2**63 - 1, KeyNames()
    document: dict[str, Any] = {"queue": queue, "seq": seq, "text": "", **fields}
    document["text"] = "x" * (MAX_MESSAGE_BYTES - item_size(document))
    largest = check_message(document, keys)
    with pytest.raises(MessageTooLarge):
        check_message(document | {"text": document["text"] + "x"}, keys)
    slot = _record(Arrival(largest, -(2**62)), 4e9)
    store = DynamoWithdrawalStore(None, TableNames("Items", "Cursor", keys))  # type: ignore[arg-type]  # calls nobody
    kept = store._record(Withdrawal(queue, 2**40, seq, "x" * 256, 4e9), slot)
    assert MAX_MESSAGE_BYTES < wire_size(kept) <= LARGEST_ITEM


def wire_size(item: dict[str, Any]) -> int:
    """The size of an item by DynamoDB's rules."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: dict[str, Any]) -> int:
    ((kind, inner),) = value.items()
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_size(one) for name, one in inner.items())
    return len(inner) // 2 + 2 if kind == "N" else len(inner.encode())


def test_what_is_withdrawn_on_a_table_reads_as_it_was(client: Faulty) -> None:
    sorter = StreamSorter(client=client, in_flight=1)
    sorter.put({"queue": "ü" * 512, "seq": 2**63 - 1, "float": 1.0, "text": "x" * 300_000})
    kept = sorter.withdraw("ü" * 512, 2**63 - 1, reason="x" * 256)
    assert (kept.message["float"].hex(), len(kept.message["text"])) == ((1.0).hex(), 300_000)
    assert sorter.withdrawn("ü" * 512) == [kept]


def test_a_message_of_others_is_kept_with_all_that_they_wrote(client: Faulty, sorter: StreamSorter) -> None:
    tags = {"SS": ["a", "b"]}
    client.put_item(TableName="Items", Item={"queue": {"S": "q"}, "seq": {"N": "9"}, "tags": tags})
    sorter.withdraw("q", 9)
    (kept,) = [item for item in scanned(client) if "_ss_withdrawn" in item]
    assert sorted(kept["_ss_withdrawn"]["M"]["tags"]["SS"]) == ["a", "b"]


def test_other_key_names_serve_as_well(client: Faulty) -> None:
    sorter = StreamSorter("Mine", "MyCursor", queue_key="author", seq_key="n", client=client, in_flight=1)
    sorter.create_tables()
    sorter.put({"author": "ada", "n": 5, "queue": "mine", "seq": "too"})
    assert sorter.withdraw("ada", 5).message == {"author": "ada", "n": 5, "queue": "mine", "seq": "too"}
    with pytest.raises(NotWithdrawn, match="withdrawn before"):
        sorter.withdraw("ada", 5, reason="another")


def test_an_audit_passes_withdrawals_over(client: Faulty, sorter: StreamSorter) -> None:
    sorter.withdraw("q", 7)
    no_slot: Counter[str] = Counter()
    found = keys_batch(scanned(client), KeyNames(), no_slot)
    assert (found["queue"].to_pylist(), found["seq"].to_pylist(), no_slot) == (["q"], [0], Counter())


def test_an_export_passes_withdrawals_over(tmp_path: Path, client: Faulty, sorter: StreamSorter) -> None:
    sorter.withdraw("q", 7)
    items = json.loads(json.dumps(scanned(client)))
    assert len(items) == 2
    export = open_export(Storage(str(make_export(tmp_path, [items]).folder)))
    no_slot: Counter[str] = Counter()
    for batches in (
        read_keys(export, export.files[0], KeyNames(), no_slot),
        read_slots(export, export.files[0], KeyNames()),
    ):
        assert [queue for batch in batches for queue in batch["queue"].to_pylist()] == ["q"]
    assert no_slot == Counter()


def test_withdrawals_are_no_queue(sorter: StreamSorter) -> None:
    sorter.withdraw("q", 7)
    assert sorter.stores.cursors.queues().queues == ("q",)
    assert encode(sorter.withdrawn("q")[0].message)[1] is None


def test_the_lowest_seq_of_a_run_of_more_than_a_page_is_named(client: Faulty) -> None:
    sorter = StreamSorter(client=client, in_flight=1)
    sorter.put_many({"queue": "q", "seq": 1_000_000 + number, "body": "x" * 8_000} for number in range(150))
    for number in (149, 50):
        with pytest.raises(NotWithdrawn, match="withdraw the run from its lowest seq on: 1000000") as caught:
            sorter.withdraw("q", 1_000_000 + number)
        assert caught.value.lowest == 1_000_000
