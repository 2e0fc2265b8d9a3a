"""Throttles, lost replies, cancelled transactions and effects that cannot be, on real tables of moto's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws

from stream_sort import (
    CredentialsError,
    EffectRefused,
    SettingsError,
    StoreError,
    StoreUnavailable,
    StreamSorter,
    TransactionTooLarge,
    TryLater,
)
from stream_sort.model.batch import Transaction
from stream_sort.model.consumption import Checkpoint, DeadLetter, Subscription
from stream_sort.model.retries import text_of
from tests.consumers import OnePort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.ports import ControlStores

ROW = Checkpoint("billing", "q", 4, run="run 1")
NEW = replace(ROW, seq=5, version=1)
LETTER = DeadLetter("q", 5, "ValueError: no", 5, 1_700_000_000.0)
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
LOST_REPLY = ReadTimeoutError(endpoint_url="http://slow")


def failure(code: str, *reasons: str) -> ClientError:
    response: dict[str, Any] = {"Error": {"Code": code, "Message": "so it is"}, "ResponseMetadata": {}}
    if reasons:
        response["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    return ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]


class Faulty:
    """A client that fails as it is told to, before or after a call was done."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.meta = client.meta
        self.before: dict[str, list[Exception]] = {}
        self.after: dict[str, list[Exception]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, method: str) -> Any:
        def call(**request: Any) -> Any:
            self.requests.append((method, request))
            if self.before.get(method):
                raise self.before[method].pop(0)
            body = getattr(self._client, method)(**request)
            if self.after.get(method):
                raise self.after[method].pop(0)
            return body

        return call


@pytest.fixture
def client() -> Iterator[Faulty]:
    with mock_aws():
        real = boto3.client("dynamodb", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
        StreamSorter(client=real).create_tables()
        real.create_table(
            TableName="Effects",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        )
        yield Faulty(real)
        real.close()


@pytest.fixture
def control(client: Faulty) -> ControlStores:
    control = StreamSorter(client=client, deadline=0.5, in_flight=1).stores.control("Control")
    control.create_table()
    control.checkpoints.create(ROW)
    client.requests.clear()
    return control


def put(*names: str, table: str = "Effects", **fields: Any) -> Transaction:
    transaction = Transaction()
    for name in names:
        transaction.put(table, {"id": name, **fields})
    return transaction


def standing(control: ControlStores) -> Checkpoint | None:
    return control.checkpoints.standing("billing", "q").checkpoint


def test_i8_a_commit_whose_reply_was_lost_is_known_as_our_own(client: Faulty, control: ControlStores) -> None:
    client.after = {"put_item": [LOST_REPLY]}
    commit = control.checkpoints.commit(ROW, NEW)
    assert (commit.checkpoint, commit.put(NEW)) == (NEW, True)
    client.after = {"put_item": [LOST_REPLY]}
    assert not control.checkpoints.commit(ROW, replace(NEW, run="run 2")).put(replace(NEW, run="run 2"))


def test_i4_a_transaction_whose_reply_was_lost_is_sent_again_under_the_same_token(
    client: Faulty, control: ControlStores
) -> None:
    client.after = {"transact_write_items": [LOST_REPLY]}
    assert control.checkpoints.commit(ROW, NEW, put("a").effects).put(NEW)
    tokens = [request["ClientRequestToken"] for method, request in client.requests if method == "transact_write_items"]
    assert len(tokens) == 2
    assert len(set(tokens)) == 1
    assert standing(control) == NEW


@pytest.mark.parametrize(
    "fault",
    [
        failure("TransactionCanceledException", "None", "TransactionConflict"),
        failure("TransactionCanceledException", "ThrottlingError", "None"),
        failure("TransactionInProgressException"),
        failure("ProvisionedThroughputExceededException"),
    ],
    ids=str,
)
def test_a_transaction_that_met_another_one_is_tried_again(
    client: Faulty, control: ControlStores, fault: ClientError
) -> None:
    client.before = {"transact_write_items": [fault, fault]}
    assert control.checkpoints.commit(ROW, NEW, put("a").effects).won
    assert standing(control) == NEW


def test_a_transaction_that_never_gets_through_is_unavailable_not_refused(
    client: Faulty, control: ControlStores
) -> None:
    client.before = {"transact_write_items": [failure("TransactionCanceledException", "TransactionConflict")] * 99}
    with pytest.raises(StoreUnavailable, match="tries"):
        control.checkpoints.commit(ROW, NEW, put("a").effects)
    assert standing(control) == ROW


def test_a_condition_that_does_not_hold_counts_before_a_conflict(client: Faulty, control: ControlStores) -> None:
    fault = failure("TransactionCanceledException", "TransactionConflict", "ConditionalCheckFailed")
    client.before = {"transact_write_items": [fault]}
    with pytest.raises(EffectRefused, match="Put on table 'Effects'"):
        control.checkpoints.commit(ROW, NEW, put("a").effects)


@pytest.mark.parametrize("method", ["standing", "commit", "of_queues", "of_queue", "register"])
def test_i10_a_fault_that_stays_is_never_read_as_empty(client: Faulty, control: ControlStores, method: str) -> None:
    throttled = [failure("ThrottlingException")] * 99
    client.before = {name: list(throttled) for name in ("batch_get_item", "put_item", "query", "get_item")}
    arguments: dict[str, tuple[Any, ...]] = {
        "commit": (ROW, NEW),
        "of_queues": ("billing", ["q"]),
        "register": (Subscription("billing", "earliest", 0.0),),
    }
    with pytest.raises(StoreUnavailable, match="Throttling"):
        getattr(OnePort(control.checkpoints, control.dead_letters, control.subscriptions), method)(
            *arguments.get(method, ("billing", "q"))
        )


def test_keys_that_were_not_processed_are_asked_for_again(
    client: Faulty, control: ControlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = client._client.batch_get_item

    def partly(**request: Any) -> Any:
        tables = request["RequestItems"]
        first, *rest = tables
        body = real(RequestItems={first: tables[first]})
        return body | {"UnprocessedKeys": {table: tables[table] for table in rest}}

    monkeypatch.setattr(client._client, "batch_get_item", partly)
    assert control.checkpoints.standing("billing", "q", 0).checkpoint == ROW
    assert [method for method, _ in client.requests] == ["batch_get_item"] * 3


def test_two_puts_of_one_item_are_too_large_a_transaction(control: ControlStores) -> None:
    with pytest.raises(TransactionTooLarge, match="two effects on the item id = 'a' of table 'Effects'"):
        control.checkpoints.commit(ROW, NEW, put("a", "a").effects)
    assert standing(control) == ROW


def test_puts_on_condition_of_what_is_no_key_are_items_of_their_own(control: ControlStores) -> None:
    transaction = Transaction()
    for name in "ab":
        transaction.put("Effects", {"id": name, "paid_on": "1st"}, ConditionExpression="attribute_not_exists(paid_on)")
    assert control.checkpoints.commit(ROW, NEW, transaction.effects).won


def test_more_than_4_mb_is_too_large_a_transaction(control: ControlStores) -> None:
    names = [str(number) for number in range(11)]
    assert control.checkpoints.commit(ROW, NEW, put(*names[:10], body="x" * 390_000).effects).won
    with pytest.raises(TransactionTooLarge, match=r"4,290,\d+ bytes"):
        control.checkpoints.commit(NEW, replace(NEW, version=2), put(*names, body="ü" * 195_000).effects)


@pytest.mark.parametrize(
    ("transaction", "said"),
    [
        (put("a", body=float("nan")), "Item"),
        (put("a", body=object()), "a value of type object"),
        (put("a", body=10**200), "Item"),
        (put("a", body="x" * 420_000), "maximum allowed size"),
        (put("a", body="cut \ud83d"), "surrogates not allowed"),
        (put("a", body={"cut \ud83d": 1}), "surrogates not allowed"),
        (put("cut \ud83d"), "surrogates not allowed"),
        (put("a", body=CIRCLE), "nested deeper"),
    ],
    ids=[
        "nan",
        "an object",
        "a huge int",
        "an item too large",
        "a cut emoji",
        "a cut emoji in a name",
        "a cut emoji in a key",
        "an item that holds itself",
    ],
)
def test_an_effect_that_cannot_be_is_the_handlers_fault(
    control: ControlStores, transaction: Transaction, said: str
) -> None:
    with pytest.raises((EffectRefused, TransactionTooLarge), match=said):
        control.checkpoints.commit(ROW, NEW, transaction.effects)
    assert standing(control) == ROW


@pytest.mark.parametrize("code", ["ValidationException", "ResourceNotFoundException", "AccessDeniedException"])
def test_an_error_of_a_transaction_is_an_effects_fault_only_if_it_has_effects(
    client: Faulty, control: ControlStores, code: str
) -> None:
    message = "The provided key element does not match the schema"
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
    client.before = {"transact_write_items": [ClientError(response, "TransactWriteItems")] * 2}
    with pytest.raises((EffectRefused, TryLater), match=r"key element|no table|not allowed"):
        control.checkpoints.commit(ROW, NEW, put("a").effects)
    with pytest.raises((StoreError, SettingsError)) as caught:
        control.checkpoints.commit(ROW, NEW, dead=LETTER)
    assert not isinstance(caught.value, EffectRefused)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("ResourceNotFoundException", "Put on table 'Effects': no table of that name in this region and account"),
        ("AccessDeniedException", "the role needs dynamodb:PutItem on table 'Effects' (see HandlerPolicy)"),
    ],
)
def test_a_missing_table_or_right_of_an_effect_is_told_as_what_it_is(
    client: Faulty, control: ControlStores, code: str, said: str
) -> None:
    client.before = {"transact_write_items": [failure(code)]}
    with pytest.raises(TryLater) as caught:
        control.checkpoints.commit(ROW, NEW, put("a").effects)
    kept = text_of(caught.value)
    assert said in kept
    assert code in kept
    assert "ontrol" not in kept
    assert standing(control) == ROW


def test_of_several_tables_none_is_said_to_be_the_missing_one(client: Faulty, control: ControlStores) -> None:
    client.before = {"transact_write_items": [failure("ResourceNotFoundException")]}
    effects = [*put("a").effects, *put("b", table="Totals").effects]
    with pytest.raises(TryLater, match="'Effects', Put on table 'Totals': one of these is no table in this region"):
        control.checkpoints.commit(ROW, NEW, effects)


def test_missing_credentials_are_no_effects_fault(client: Faulty, control: ControlStores) -> None:
    client.before = {"transact_write_items": [failure("ExpiredTokenException")]}
    with pytest.raises(CredentialsError):
        control.checkpoints.commit(ROW, NEW, put("a").effects)


def test_values_of_effects_are_plain_python_ones(client: Faulty, control: ControlStores) -> None:
    value = {"list": [1, 2.5, (True, None)], "bytes": b"\x00", "texts": {"a", "b"}, "floats": {0.5}}
    control.checkpoints.commit(ROW, NEW, put("a", value=value).effects)
    item = client.get_item(TableName="Effects", Key={"id": {"S": "a"}})["Item"]["value"]["M"]
    assert item["list"] == {"L": [{"N": "1"}, {"N": "2.5"}, {"L": [{"BOOL": True}, {"NULL": True}]}]}
    assert (item["bytes"], sorted(item["texts"]["SS"]), item["floats"]) == ({"B": b"\x00"}, ["a", "b"], {"NS": ["0.5"]})


@pytest.mark.parametrize("row", [{}, {"seq": {"S": "five"}}, {"seq": {"N": "5"}}], ids=["empty", "text", "half"])
def test_a_row_that_others_wrote_is_named_and_no_end_of_the_world(
    client: Faulty, control: ControlStores, row: dict[str, Any]
) -> None:
    client.put_item(TableName="Control", Item={"pk": {"S": "billing#q"}, "sk": {"S": "checkpoint"}, **row})
    with pytest.raises(StoreError, match="the control table holds a row"):
        control.checkpoints.standing("billing", "q")


def test_attributes_of_a_later_version_are_let_be(client: Faulty, control: ControlStores) -> None:
    client.update_item(
        TableName="Control",
        Key={"pk": {"S": "billing#q"}, "sk": {"S": "checkpoint"}},
        UpdateExpression="SET mood = :m",
        ExpressionAttributeValues={":m": {"S": "fine"}},
    )
    assert standing(control) == ROW


def test_the_control_table_has_a_name_of_its_own(client: Faulty) -> None:
    with pytest.raises(SettingsError, match="name of its own"):
        StreamSorter(client=client).stores.control("Cursor")
