"""Plain misconfiguration, and what others wrote into the tables, on real tables of moto's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.exceptions import (
    CredentialRetrievalError,
    NoCredentialsError,
    SSOTokenLoadError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from stream_sort import (
    AccessDenied,
    CredentialsError,
    OrderedConsumer,
    SettingsError,
    StoreError,
    StreamSorter,
    Sweeper,
    TableNotFound,
)
from stream_sort.aws.clients import make_client
from stream_sort.model.message import KeyNames
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb.tables import TableNames, cursor_table, items_table
from tests.unit.faulty import Faulty, message, refusal


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, deadline=0.5, in_flight=1)


NO_SCHEMA = "The provided key element does not match the schema"


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (refusal("ResourceNotFoundException"), TableNotFound, "no table 'Cursor' in eu-west-1"),
        (refusal("AccessDeniedException"), AccessDenied, "dynamodb:GetItem on table 'Cursor'"),
        (refusal("ExpiredTokenException"), CredentialsError, "log in again"),
        (NoCredentialsError(), CredentialsError, "AWS_PROFILE"),
        (CredentialRetrievalError(provider="custom-process", error_msg="exit 1"), CredentialsError, "log in again"),
        (SSOTokenLoadError(profile_name="work", error_msg="no token"), CredentialsError, "log in again"),
        (UnauthorizedSSOTokenError(), CredentialsError, "log in again"),
        (TokenRetrievalError(provider="sso", error_msg="expired"), CredentialsError, "log in again"),
        (refusal("ValidationException", says=NO_SCHEMA), SettingsError, "check queue_key and seq_key"),
    ],
    ids=str,
)
def test_what_no_retry_cures_says_what_to_do_at_once(
    client: Faulty, sorter: StreamSorter, error: Exception, kind: type[Exception], says: str
) -> None:
    client.before = {"get_item": [error] * 9}
    with pytest.raises(kind, match=says):
        sorter.put(message(0))
    assert client.calls == ["get_item"]
    with pytest.raises(kind, match=says):
        sorter.put_many([message(0)])


def test_a_missing_table_is_named_with_its_region(client: Faulty) -> None:
    with pytest.raises(TableNotFound, match="no table 'Nowhere' in eu-west-1"):
        StreamSorter("Nowhere", client=client, in_flight=1).put(message(0))
    with pytest.raises(TableNotFound, match="no table 'Nowhere'"):
        StreamSorter("Nowhere", client=client, in_flight=1).put_many([message(0), message(1)])


def test_a_missing_control_table_is_named_with_what_makes_it(sorter: StreamSorter) -> None:
    consumer = OrderedConsumer("billing", print, sorter=sorter, control_table="Nowhere")
    with pytest.raises(TableNotFound, match=r"no table 'Nowhere'.*consumer\.create_tables\(\)"):
        consumer.catch_up("q")
    consumer.create_tables()
    assert consumer.catch_up("q") == 0


def test_of_two_tables_that_are_read_together_each_is_named_by_itself(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"batch_get_item": [refusal("ResourceNotFoundException")]}
    with pytest.raises(TableNotFound, match="no table 'Cursor' or no table 'Items' in eu-west-1"):
        sorter.stores.heads.peek("q", 0)


def test_other_key_names_than_the_table_has_are_named(client: Faulty) -> None:
    with pytest.raises(SettingsError, match="check queue_key and seq_key"):
        StreamSorter(client=client, seq_key="n").put({"queue": "q", "n": 0})
    with pytest.raises(SettingsError, match="exists with other keys"):
        StreamSorter(client=client, seq_key="n").create_tables()


def test_our_own_client_waits_no_longer_than_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    config = make_client(Settings(deadline=1.5)).meta.config
    assert (config.connect_timeout, config.read_timeout) == (1.5, 1.5)
    assert config.retries["total_max_attempts"] == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("x", "it has 1 character, and must have 3 to 255"),
        ("x" * 2000, "it has 2,000 characters, and must have 3 to 255"),
        ('a"b', "it has '\"', and may have letters, digits, _, - and . only"),
        ("a b", "it has ' ', and may have"),
        ("täg", "it has 'ä', and may have"),
    ],
)
def test_a_table_name_that_cannot_be_one_is_refused(client: Faulty, name: Any, why: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(why)):
        StreamSorter(items_table=name, client=client)
    with pytest.raises(SettingsError, match="items_table is None; it must be of type str"):
        StreamSorter(items_table=None, client=client)  # type: ignore[arg-type]


def test_one_table_cannot_be_both(client: Faulty) -> None:
    with pytest.raises(SettingsError, match="both 'Items'"):
        StreamSorter("Items", "Items", client=client)


def test_rows_that_others_wrote_are_named_not_stumbled_over(client: Faulty, sorter: StreamSorter) -> None:
    client.put_item(TableName="Cursor", Item={"queue": {"S": "foreign"}})
    client.put_item(TableName="Cursor", Item={"queue": {"S": "half"}, "seq": {"N": "0.5"}})
    with pytest.raises(StoreError, match="without 'seq'"):
        sorter.position("foreign")
    with pytest.raises(StoreError, match=r"'seq' = 0\.5, which is no whole number"):
        sorter.position("half")


def test_a_policy_in_unknown_words_skips_nothing_and_stops_nobody(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    change = {"TableName": "Cursor", "Key": {"queue": {"S": "q"}}, "UpdateExpression": "SET #p = :p"}
    names, values = {"#p": "_ss_policy"}, {":p": {"S": "skip when it rains"}}
    client.update_item(**change, ExpressionAttributeNames=names, ExpressionAttributeValues=values)
    assert sorter.put(message(1)).new == 1
    assert str(sorter.policy("q")) == "wait"


def test_a_cursor_table_without_its_index_or_with_other_types_is_refused(client: Faulty) -> None:
    request = cursor_table(TableNames("Items", "Bare", KeyNames()))
    del request["GlobalSecondaryIndexes"]
    client.create_table(**{**request, "AttributeDefinitions": request["AttributeDefinitions"][:1]})
    with pytest.raises(SettingsError, match="without the index 'waiting'"):
        StreamSorter(cursor_table="Bare", client=client).create_tables()
    request = items_table(TableNames("Texts", "Cursor", KeyNames()))
    request["AttributeDefinitions"][1]["AttributeType"] = "S"
    client.create_table(**request)
    with pytest.raises(SettingsError, match="exists with other keys"):
        StreamSorter("Texts", client=client).create_tables()


def test_no_region_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(SettingsError, match="AWS_REGION"):
        StreamSorter()


def test_an_error_nobody_knows_is_that_of_its_queue(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"get_item": [refusal("SomethingNew")] * 9}
    with pytest.raises(StoreError, match="SomethingNew"):
        sorter.put(message(0))
    ((_, error),) = sorter.put_many([message(0)]).rejected
    assert (type(error), "SomethingNew" in str(error)) == (StoreError, True)


def test_i7_a_row_that_others_wrote_keeps_no_other_queue_from_being_put(client: Faulty, sorter: StreamSorter) -> None:
    client.put_item(TableName="Cursor", Item={"queue": {"S": "foreign"}})
    client.put_item(TableName="Cursor", Item={"queue": {"S": "half"}, "seq": {"N": "1.5"}})
    result = sorter.put_many([*({"queue": queue, "seq": 0} for queue in ("foreign", "half")), message(0), message(1)])
    assert (result.accepted, [document["queue"] for document, _ in result.rejected]) == (2, ["foreign", "half"])
    assert sorter.position("q") == 1


def test_a_sweep_without_the_index_says_what_is_missing(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {
        "query": [refusal("ValidationException", says="The table does not have the specified index: waiting")]
    }
    with pytest.raises(SettingsError, match="lacks an index that create_tables would make"):
        Sweeper(sorter).sweep()


@pytest.mark.parametrize(
    "stream", [None, {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}], ids=["none", "other"]
)
def test_a_cursor_table_without_the_stream_that_consumers_follow_is_refused(client: Faulty, stream: Any) -> None:
    request = cursor_table(TableNames("Items", "Silent", KeyNames()))
    del request["StreamSpecification"]
    client.create_table(**request, **({} if stream is None else {"StreamSpecification": stream}))
    with pytest.raises(SettingsError, match="without the stream that consumers follow"):
        StreamSorter(cursor_table="Silent", client=client).create_tables()
