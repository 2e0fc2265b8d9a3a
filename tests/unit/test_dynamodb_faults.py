"""Throttles, lost replies, partial batches and plain misconfiguration, on a real table of moto's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from moto import mock_aws

from stream_sort import (
    AccessDenied,
    CredentialsError,
    MessageTooLarge,
    SettingsError,
    StoreError,
    StoreUnavailable,
    StreamSorter,
    TableNotFound,
)
from stream_sort.core.message import KeyNames, Message, check_message
from stream_sort.core.records import Arrival
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.connection import make_client
from stream_sort.stores.dynamodb.tables import TableNames, cursor_table, items_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def refusal(code: str, status: int = 400, operation: str = "PutItem") -> ClientError:
    error = {"Error": {"Code": code, "Message": "so it is"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(error, operation)  # type: ignore[arg-type]


class Faulty:
    """A client that fails as it is told to, before or after a call was done."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.meta = client.meta
        self.before: dict[str, list[Exception]] = {}
        self.after: dict[str, list[Exception]] = {}
        self.answers: dict[str, list[Callable[[dict[str, Any]], dict[str, Any]]]] = {}
        self.calls: list[str] = []
        self.watch: Callable[[str, dict[str, Any]], None] = lambda *_: None

    def __getattr__(self, method: str) -> Any:
        def call(**request: Any) -> Any:
            self.calls.append(method)
            self.watch(method, request)
            if self.before.get(method):
                raise self.before[method].pop(0)
            if self.answers.get(method):
                return self.answers[method].pop(0)(request)
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
        yield Faulty(real)
        real.close()


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, deadline=0.5, in_flight=1)


def message(seq: int, **fields: Any) -> dict[str, Any]:
    return {"queue": "q", "seq": seq, **fields}


THROTTLE = "ProvisionedThroughputExceededException"


@pytest.mark.parametrize(
    "error",
    [
        refusal(THROTTLE),
        refusal("ThrottlingException"),
        refusal("InternalServerError", 500),
        refusal("Whatever", 503),
        EndpointConnectionError(endpoint_url="http://nowhere"),
        ReadTimeoutError(endpoint_url="http://slow"),
    ],
    ids=str,
)
def test_a_passing_fault_is_retried(client: Faulty, sorter: StreamSorter, error: Exception) -> None:
    client.before = {"get_item": [error], "put_item": [error, error], "query": [error]}
    assert sorter.put(message(0)).status == "accepted"
    assert sorter.position("q") == 0


def test_i6_a_lost_reply_makes_our_own_message_a_duplicate_and_is_released_all_the_same(
    client: Faulty, sorter: StreamSorter
) -> None:
    sorter.put(message(0))
    lost = ReadTimeoutError(endpoint_url="http://slow")
    client.after = {"put_item": [lost], "update_item": [lost]}
    advance = sorter.put(message(1))
    assert (advance.status, advance.new) == ("duplicate", 1)


@pytest.mark.parametrize("method", ["get_item", "put_item", "query", "update_item", "batch_get_item"])
def test_i10_a_fault_that_stays_is_named_with_table_and_operation_and_never_read_as_empty(
    client: Faulty, sorter: StreamSorter, method: str
) -> None:
    if method in {"update_item", "batch_get_item"}:
        sorter.put(message(0))
    client.before = {method: [refusal(THROTTLE)] * 1_000}
    with pytest.raises(StoreUnavailable, match="tries") as caught:
        sorter.put(message(2 if method == "batch_get_item" else 1 if method == "update_item" else 0))
    assert caught.value.retryable
    assert caught.value.operation == "".join(part.title() for part in method.split("_"))
    assert caught.value.table
    client.before = {}
    sorter.put_many([message(0), message(1)])
    assert sorter.position("q") >= 1


def test_pauses_grow_with_jitter_and_end_at_the_deadline(client: Faulty) -> None:
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    calls = Calls(client, 10.0, sleep, lambda: now[0], lambda: 0.5)
    client.before = {"get_item": [refusal(THROTTLE)] * 100}
    with pytest.raises(StoreUnavailable):
        calls("get_item", "Cursor", TableName="Cursor", Key={"queue": {"S": "q"}})
    assert pauses[:4] == [0.025, 0.05, 0.1, 0.2]
    assert max(pauses) == 0.5
    assert 9 < sum(pauses) < 10


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (refusal("ResourceNotFoundException"), TableNotFound, "no table 'Cursor' in eu-west-1"),
        (refusal("AccessDeniedException"), AccessDenied, "dynamodb:GetItem on table 'Cursor'"),
        (refusal("ExpiredTokenException"), CredentialsError, "log in again"),
        (NoCredentialsError(), CredentialsError, "AWS_PROFILE"),
        (refusal("SomethingNew"), StoreError, "SomethingNew"),
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


def test_other_key_names_than_the_table_has_are_named(client: Faulty) -> None:
    with pytest.raises(SettingsError, match="check queue_key and seq_key"):
        StreamSorter(client=client, seq_key="n").put({"queue": "q", "n": 0})
    with pytest.raises(SettingsError, match="exists with other keys"):
        StreamSorter(client=client, seq_key="n").create_tables()


def test_a_message_only_the_table_finds_too_large_is_named(sorter: StreamSorter) -> None:
    large = Arrival(Message("q", 0, message(0, body="x" * 420_000), 10), None)
    with pytest.raises(MessageTooLarge):
        sorter.stores.items.put(large, 0.0)
    (answer,) = sorter.stores.items.put_many([large], 0.0)
    assert isinstance(answer, MessageTooLarge)


def statements(request: dict[str, Any], *answers: dict[str, Any]) -> dict[str, Any]:
    assert len(request["Statements"]) == len(answers)
    return {"Responses": list(answers)}


def test_statements_that_were_throttled_are_sent_again_and_the_others_are_not(
    client: Faulty, sorter: StreamSorter
) -> None:
    throttled = {"Error": {"Code": "ThrottlingError"}}
    client.answers["batch_execute_statement"] = [
        lambda request: statements(request, {}, throttled, {}),
        lambda request: statements(request, {}),
    ]
    result = sorter.put_many(message(seq) for seq in range(3))
    assert result.accepted == 3


def test_what_stays_throttled_is_reported_and_the_rest_is_stored(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    throttled = {"Error": {"Code": "ThrottlingError"}}

    def one_through(request: dict[str, Any]) -> dict[str, Any]:
        answers = [{} if statement["Parameters"][1] == {"N": "1"} else throttled for statement in request["Statements"]]
        return {"Responses": answers}

    client.answers["batch_execute_statement"] = [one_through] * 1_000
    result = sorter.put_many([message(1), message(2)])
    assert result.accepted == 1
    assert [(document["seq"], type(error)) for document, error in result.rejected] == [(2, StoreUnavailable)]


def test_a_duplicate_that_was_not_shown_is_fetched(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many([message(0, body="first"), message(1)])
    sorter = StreamSorter(client=client, in_flight=1)
    duplicate = {"Error": {"Code": "DuplicateItem"}}
    client.answers["batch_execute_statement"] = [lambda request: statements(request, duplicate, duplicate)]
    result = sorter.put_many([message(0, body="second"), message(1)])
    assert (result.conflicts, result.duplicates) == ([message(0, body="second")], [message(1)])
    assert "batch_get_item" in client.calls


def test_without_the_permission_for_batches_messages_are_stored_one_by_one(
    client: Faulty, sorter: StreamSorter
) -> None:
    client.before = {"batch_execute_statement": [refusal("AccessDeniedException")] * 9}
    assert sorter.put_many(message(seq) for seq in range(60)).accepted == 60
    assert client.calls.count("batch_execute_statement") == 1
    assert client.calls.count("put_item") >= 60


def test_field_names_never_become_part_of_a_statement_unless_they_are_plain(
    client: Faulty, sorter: StreamSorter
) -> None:
    hostile = {"x':1}; DELETE": 1, "it's": 2, 'a"b': 3, "ünï": 4, "a,b": 5}
    assert sorter.put_many(message(seq, **hostile) for seq in range(3)).accepted == 3
    assert "batch_execute_statement" not in client.calls
    assert list(sorter.read("q")) == [message(seq, **hostile) for seq in range(3)]


def test_keys_that_were_not_processed_are_read_again(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    client.answers["batch_get_item"] = [lambda request: {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}]
    assert sorter.put(message(2)).new == 0
    assert client.calls.count("batch_get_item") == 2


def test_i10_every_read_that_decides_is_strongly_consistent(client: Faulty, sorter: StreamSorter) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    client.watch = lambda method, request: asked.append((method, request))
    sorter.put(message(0))
    sorter.put_many([message(2), message(0)])
    duplicate = {"Error": {"Code": "DuplicateItem"}}
    client.answers["batch_execute_statement"] = [lambda request: statements(request, duplicate, duplicate)]
    StreamSorter(client=client, in_flight=1).put_many([message(0), message(2)])
    sorter.skip("q", 1)
    sorter.explain("q")
    list(sorter.read("q"))
    reads = [request for method, request in asked if method in {"get_item", "query"}]
    reads += [
        table for method, request in asked if method == "batch_get_item" for table in request["RequestItems"].values()
    ]
    assert len(reads) > 10
    assert all(read["ConsistentRead"] is True for read in reads)


def test_duplicates_that_were_not_processed_are_fetched_again(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1)])
    duplicate = {"Error": {"Code": "DuplicateItem"}}
    client.answers["batch_execute_statement"] = [lambda request: statements(request, duplicate, duplicate)]
    client.answers["batch_get_item"] = [lambda request: {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}]
    fresh = StreamSorter(client=client, in_flight=1)
    before = client.calls.count("put_item")
    answers = fresh.stores.items.put_many([arrival(0), arrival(1)], 0.0)
    assert [getattr(answer, "seq", None) for answer in answers] == [0, 1]
    assert client.calls.count("put_item") == before


@pytest.mark.parametrize(("method", "listing"), [("query", "waiting"), ("scan", "queues")])
def test_a_listing_goes_on_where_its_last_page_ended(
    client: Faulty, sorter: StreamSorter, method: str, listing: str
) -> None:
    last = {"queue": {"S": "a"}}
    client.answers[method] = [
        lambda _: {"Items": [{"queue": {"S": "a"}}], "LastEvaluatedKey": last},
        lambda request: {"Items": [{"queue": {"S": "b" if request["ExclusiveStartKey"] == last else "?"}}]},
    ]
    ask: Any = getattr(sorter.stores.cursors, listing)
    times = (0.0,) if listing == "waiting" else ()
    page = ask(*times)
    assert (page.queues, ask(*times, page.next).queues) == (("a",), ("b",))


def test_our_own_client_waits_no_longer_than_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    config = make_client(Settings(deadline=1.5)).meta.config
    assert (config.connect_timeout, config.read_timeout) == (1.5, 1.5)
    assert config.retries["total_max_attempts"] == 1


def test_an_empty_page_that_goes_on_is_not_the_end(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(3))
    client.answers["query"] = [lambda _: {"Items": [], "LastEvaluatedKey": {"queue": {"S": "q"}, "seq": {"N": "-1"}}}]
    assert sorter.stores.items.look("q", -1, 5).seqs == (0, 1, 2)
    client.answers["query"] = [lambda _: {"Items": [], "LastEvaluatedKey": {"queue": {"S": "q"}, "seq": {"N": "-1"}}}]
    assert [found["seq"] for found in sorter.read("q")] == [0, 1, 2]


@pytest.mark.parametrize("name", ["", "x", 'a"b', "a b"])
def test_a_table_name_that_cannot_be_one_is_refused(client: Faulty, name: Any) -> None:
    with pytest.raises(SettingsError, match="table name"):
        StreamSorter(items_table=name, client=client)
    with pytest.raises(SettingsError, match="items_table is None; it must be of type str"):
        StreamSorter(items_table=None, client=client)  # type: ignore[arg-type]


def test_one_table_cannot_be_both(client: Faulty) -> None:
    with pytest.raises(SettingsError, match="both 'Items'"):
        StreamSorter("Items", "Items", client=client)


def test_rows_that_others_wrote_are_named_not_stumbled_over(client: Faulty, sorter: StreamSorter) -> None:
    client.put_item(TableName="Cursor", Item={"queue": {"S": "foreign"}})
    client.put_item(TableName="Items", Item={"queue": {"S": "half"}, "seq": {"N": "0.5"}})
    with pytest.raises(SettingsError, match="without 'seq'"):
        sorter.position("foreign")
    with pytest.raises(StoreError, match=r"'seq' = 0\.5, which is no whole number"):
        sorter.gaps("half")


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


def test_a_duplicate_that_cannot_be_fetched_is_reported_alone(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1)])
    duplicate = {"Error": {"Code": "DuplicateItem"}}
    client.answers["batch_execute_statement"] = [lambda request: statements(request, duplicate, {})]
    client.before = {"batch_get_item": [refusal(THROTTLE)] * 1_000}
    fresh = StreamSorter(client=client, deadline=0.3, in_flight=1)
    answers = fresh.stores.items.put_many([arrival(0), arrival(2)], 0.0)
    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1] is None


def arrival(seq: int) -> Arrival:
    return Arrival(check_message(message(seq), KeyNames()), -1)


def test_expired_credentials_do_not_end_batching(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"batch_execute_statement": [refusal("ExpiredTokenException")]}
    with pytest.raises(CredentialsError):
        sorter.put_many([message(0), message(1)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, {}, {})]
    assert sorter.put_many([message(0), message(1)]).accepted == 2


def test_no_region_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(SettingsError, match="AWS_REGION"):
        StreamSorter()
