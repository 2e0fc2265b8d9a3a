"""`StreamSorter.from_stack` and `OrderedConsumer.from_stack`: a stack's name is all that one must know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest

from stream_sort import (
    AccessDenied,
    CredentialsError,
    OrderedConsumer,
    SettingsError,
    StoreUnavailable,
    StreamSorter,
    StreamSortError,
)
from stream_sort.aws import accounts
from stream_sort.local import report
from tests.functional.cloudformation import Account, an_account
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functional.conftest import Table


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no local stack of whoever runs the tests."""
    monkeypatch.setattr(accounts, "_local", lambda: None)
    monkeypatch.setattr(report, "refuse_dead_stack", lambda: None)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")


@pytest.fixture
def account() -> Iterator[Account]:
    with an_account() as account:
        yield account


def error_of(account: Account, name: str = "mine", **options: Any) -> StreamSortError:
    with pytest.raises(StreamSortError) as caught:
        StreamSorter.from_stack(name, endpoint_url=account.endpoint, **options)
    return caught.value


def test_a_stack_says_its_tables_keys_first_seq_and_gap_policy(account: Account, dynamo: Table) -> None:
    account.parameters["GapPolicy"] = "skip after 60 seconds"
    account.outputs |= {"ItemsTable": "Mine", "CursorTable": "MyCursor"}
    sorter = StreamSorter.from_stack("mine", endpoint_url=account.endpoint, client=dynamo.client)
    sorter.create_tables()
    assert sorter.put({"lane": "ada", "n": 5}).new == 5
    assert dynamo.client.scan(TableName="Mine")["Items"][0]["lane"] == {"S": "ada"}
    assert dynamo.client.scan(TableName="MyCursor")["Items"][0]["n"] == {"N": "5"}
    assert str(sorter.options.gap_policy) == "skip after 60 seconds"


def test_settings_of_a_program_are_taken_and_those_of_the_stack_are_not(account: Account, dynamo: Table) -> None:
    given: dict[str, Any] = {"endpoint_url": account.endpoint, "client": dynamo.client}
    sorter = StreamSorter.from_stack("mine", on_conflict="raise", window=7, **given)
    assert (sorter.options.raise_conflicts, sorter.options.window) == (True, 7)
    with pytest.raises(SettingsError, match="queue_key is what the stack says; leave it out"):
        StreamSorter.from_stack("mine", queue_key="other", **given)
    with pytest.raises(SettingsError, match="no such setting: colour"):
        StreamSorter.from_stack("mine", colour=1, **given)


def test_variables_of_the_environment_change_nothing(
    account: Account, dynamo: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_SORT_QUEUE_KEY", "other")
    sorter = StreamSorter.from_stack("mine", endpoint_url=account.endpoint, client=dynamo.client)
    assert sorter.options.keys.queue == "lane"


def test_a_consumer_takes_its_name_table_and_settings_from_the_stack(account: Account, dynamo: Table) -> None:
    account.parameters |= {"Consumer": "billing", "BatchSize": "2", "MaxAttempts": "3", "OnPoison": "dead_letter"}
    account.outputs |= {"ItemsTable": "Mine", "CursorTable": "MyCursor", "ControlTable": "MyControl"}
    given: list[list[int]] = []
    consumer = OrderedConsumer.from_stack(
        "mine",
        lambda batch: given.append([message["n"] for message in batch]),
        endpoint_url=account.endpoint,
        client=dynamo.client,
    )
    sorter = StreamSorter.from_stack("mine", endpoint_url=account.endpoint, client=dynamo.client)
    sorter.create_tables()
    consumer.create_tables()
    sorter.put_many({"lane": "ada", "n": seq} for seq in (5, 6, 7))
    assert (consumer.name, consumer.catch_up("ada"), given) == ("billing", 3, [[5, 6], [7]])
    assert "MyControl" in dynamo.client.list_tables()["TableNames"]


def test_a_consumer_of_another_name_has_its_own_checkpoint(account: Account, dynamo: Table) -> None:
    given: dict[str, Any] = {"endpoint_url": account.endpoint, "client": dynamo.client}
    sorter = StreamSorter.from_stack("mine", **given)
    sorter.create_tables()
    sorter.put({"lane": "ada", "n": 5})
    first = OrderedConsumer.from_stack("mine", lambda _: None, **given)
    first.create_tables()
    second = OrderedConsumer.from_stack("mine", lambda _: None, consumer="audit", batch_size=1, **given)
    assert (first.name, second.name) == ("process", "audit")
    assert (first.catch_up("ada"), second.catch_up("ada")) == (1, 1)


def test_one_lookup_serves_a_consumer_and_its_sorter(account: Account, dynamo: Table) -> None:
    OrderedConsumer.from_stack("mine", endpoint_url=account.endpoint, client=dynamo.client)
    assert account.asked == 1


def test_a_session_or_a_region_says_where_to_look(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    session = boto3.session.Session("key", "secret", region_name="ap-south-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    told = error_of(account, "other", session=session)
    assert str(told).startswith("stack 'other': there is no stack of that name in ap-south-1; ")
    assert "in us-west-2; " in str(error_of(account, "other", session=session, region="us-west-2"))
    with pytest.raises(SettingsError, match="give session= or profile=, not both"):
        StreamSorter.from_stack("mine", session=session, profile="nobody")


def test_the_region_of_a_client_is_where_its_stack_is(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    client = boto3.client("dynamodb", region_name="sa-east-1")
    assert "no stack of that name in sa-east-1" in str(error_of(account, "other", client=client))
    client.close()


def test_a_stack_that_is_not_there_says_where_it_was_looked_for_and_what_to_check(account: Account) -> None:
    told = error_of(account, "other")
    assert isinstance(told, SettingsError)
    assert str(told) == (
        "stack 'other': there is no stack of that name in eu-west-1; check the name, region= and profile="
    )


def test_a_missing_right_is_named_with_the_way_around_it(account: Account) -> None:
    account.refusal = (403, "AccessDenied", "User: me is not authorized to perform: cloudformation:DescribeStacks")
    told = error_of(account)
    assert isinstance(told, AccessDenied)
    assert (told.code, told.operation) == ("AccessDenied", "DescribeStacks")
    assert str(told).startswith("stack 'mine': not allowed to call cloudformation:DescribeStacks in eu-west-1; ")
    assert "or name the tables: StreamSorter(items_table=..., cursor_table=...)" in str(told)


def test_expired_credentials_are_named(account: Account) -> None:
    account.refusal = (403, "ExpiredToken", "The security token included in the request is expired")
    told = error_of(account)
    assert isinstance(told, CredentialsError)
    assert str(told).startswith("stack 'mine': no usable AWS credentials: The security token")


def test_a_throttle_may_be_tried_again(account: Account) -> None:
    account.refusal = (400, "Throttling", "Rate exceeded")
    told = error_of(account)
    assert isinstance(told, StoreUnavailable)
    assert told.retryable


@pytest.mark.parametrize("missing", ["ItemsTable", "CursorTable"])
def test_a_stack_of_somebody_else_is_not_taken_for_ours(account: Account, missing: str) -> None:
    del account.outputs[missing]
    told = error_of(account)
    assert isinstance(told, SettingsError)
    assert str(told) == f"stack 'mine': it has no output {missing}; is it a stack of stream_sort?"


@pytest.mark.parametrize("status", ["ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"])
def test_a_stack_that_failed_and_is_rolled_back_says_so_and_what_to_do(account: Account, status: str) -> None:
    account.status, account.outputs = status, {}
    told = error_of(account)
    assert isinstance(told, SettingsError)
    assert str(told).startswith(f"stack 'mine': it could not be created ({status})")
    assert "aws cloudformation describe-stack-events --stack-name mine" in str(told)


def test_a_stack_that_is_being_created_may_be_tried_again(account: Account) -> None:
    account.status, account.outputs = "CREATE_IN_PROGRESS", {}
    told = error_of(account)
    assert told.retryable
    assert str(told).startswith("stack 'mine': it is still being created (CREATE_IN_PROGRESS); wait for it: aws ")


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"])
def test_a_stack_that_is_deleted_is_not_used(account: Account, status: str) -> None:
    account.status = status
    assert str(error_of(account)).startswith(f"stack 'mine': it is deleted, or about to be ({status})")


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"])
def test_a_stack_whose_update_is_under_way_or_rolled_back_keeps_its_tables(
    account: Account, dynamo: Table, status: str
) -> None:
    account.status = status
    assert StreamSorter.from_stack("mine", endpoint_url=account.endpoint, client=dynamo.client)


def test_no_region_and_no_profile_are_told_in_words_of_python(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert str(error_of(account)) == "no AWS region is set; give region=, or set AWS_REGION"
    assert str(error_of(account, profile="nobody")).startswith("profile=nobody: ")


@pytest.mark.parametrize("name", ["", None, 7])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(SettingsError, match="must be the name of a stack"):
        StreamSorter.from_stack(name)


class Near:
    """A local stack that is up, as one who looks for it finds it."""

    home = "/some/where"
    outputs: dict[str, str] = {"ItemsTable": "its", "CursorTable": "crs"}  # noqa: RUF012  # a stand-in

    class record:  # noqa: N801  # as its own
        parameters: dict[str, str] = {"SeqKey": "n"}  # noqa: RUF012  # a stand-in

    endpoint = "http://127.0.0.1:9"


def test_the_local_stack_is_called_local_here_and_on_the_command_line(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = error_of(account, "local")
    assert "there is no stack of that name" in str(told)
    monkeypatch.setattr(accounts, "_local", Near)
    sorter = StreamSorter.from_stack("local")
    assert sorter.options.keys.seq == "n"
    assert "127.0.0.1:9" in Line().error("status", "--stack", "local")


def test_where_no_local_stack_is_up_one_is_told_how_to_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(SettingsError, match=r"no local stack is up; start one: stream-sort local up"):
        StreamSorter.from_stack("local")


def test_who_means_aws_while_a_local_stack_is_up_is_told_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_local", Near)
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(SettingsError, match=r"\(a local stack is up: to mean that one, name it 'local'\)$"):
        StreamSorter.from_stack("other")


@pytest.mark.parametrize(("option", "made"), [("client", "dynamodb"), ("session", "boto3.Session")])
def test_what_is_no_client_or_session_is_named(account: Account, option: str, made: str) -> None:
    told = error_of(account, **{option: "nonsense"})
    assert isinstance(told, SettingsError)
    assert str(told).startswith(f"{option} is 'nonsense'; it must be ")
    assert made in str(told)


def test_a_stack_without_a_control_table_has_a_sorter_and_no_consumer(account: Account, dynamo: Table) -> None:
    del account.outputs["ControlTable"]
    given: dict[str, Any] = {"endpoint_url": account.endpoint, "client": dynamo.client}
    assert StreamSorter.from_stack("mine", **given)
    with pytest.raises(SettingsError, match="stack 'mine': it has no output ControlTable"):
        OrderedConsumer.from_stack("mine", **given)
