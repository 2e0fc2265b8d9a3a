"""`stream-sort doctor` on tables alone: what is wrong with tables and queues is found, and what to do is said."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from stream_sort import StreamSorter, Sweeper
from stream_sort.aws import accounts
from stream_sort.cli.connection import connect
from stream_sort.insight import doubts
from stream_sort.insight.checkup.standing import read_standings
from stream_sort.model.consumption import Checkpoint, Subscription
from stream_sort.model.message import KeyNames, take_message
from stream_sort.model.records import Arrival
from stream_sort.stores.dynamodb.control_rows import key_of, place_of
from stream_sort.stores.dynamodb.items import DynamoItemStore
from stream_sort.stores.dynamodb.tables import TableNames, cursor_table, items_table
from tests.functional.command_line import VARIABLES, Line
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from tests.functional.conftest import Table

KEYS = KeyNames("queue", "seq")


@pytest.fixture(autouse=True)
def where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_local", lambda: None)
    monkeypatch.setattr("stream_sort.insight.checkup.standing.PAUSE", 0.0)
    for name, value in {**VARIABLES, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def desk(sorter: StreamSorter) -> OperatorDesk:
    return OperatorDesk(sorter)


def findings(*words: str, code: int = 0) -> list[dict[str, str]]:
    """What is not well, but for what cannot be checked without a stack."""
    found: list[dict[str, str]] = Line().json("doctor", *words, code=code)["findings"]
    return [one for one in found if one["level"] != "OK" and "no stack is named" not in one["text"]]


def only(found: list[dict[str, str]]) -> tuple[str, str, str, str]:
    (one,) = found
    return one["level"], one["area"], one["text"], one["remedy"]


def table(client: Any, request: dict[str, Any]) -> None:
    client.delete_table(TableName=request["TableName"])
    client.create_table(**request)


def test_tables_that_are_well_are_well_and_what_needs_a_stack_is_named(desk: OperatorDesk) -> None:
    desk.put("ada", 0, 1)
    told = Line().json("doctor")
    assert {one["level"] for one in told["findings"]} == {"OK", "not checked"}
    (left,) = [one["text"] for one in told["findings"] if one["level"] == "not checked"]
    assert left.startswith("functions, versions, dead letters, mappings, roles, schedules, alarms: no stack is named")
    assert told["counts"]["OK"] == sum(one["level"] == "OK" for one in told["findings"])
    shown = Line().run("doctor").stdout
    assert "OK           queues        none of 1 queue holds back what it could release" in shown
    assert shown.splitlines()[-1] == f"{len(told['findings'])} checks: {told['counts']['OK']} OK, 1 not checked"


@pytest.mark.parametrize("name", ["Items", "Cursor", "Control"])
@pytest.mark.usefixtures("desk")
def test_a_table_that_is_gone_is_named(name: str, dynamo: Table) -> None:
    dynamo.client.delete_table(TableName=name)
    gone, queues = findings(code=1)
    assert gone["level"] == "FAIL"
    assert gone["text"] == f"there is no {name.lower()} table {name!r} in eu-west-1"
    assert gone["remedy"].endswith(f"aws dynamodb list-backups --table-name {name} --backup-type SYSTEM")
    assert (queues["level"], queues["text"]) == ("not checked", "a table is missing, see above")


@pytest.mark.usefixtures("desk")
def test_a_table_with_other_keys_is_told_with_both(dynamo: Table) -> None:
    other = items_table(TableNames("Items", "Cursor", KeyNames("lane", "n")))
    table(dynamo.client, other)
    wrong = findings(code=1)[0]
    assert wrong["text"] == "items table 'Items' has the keys lane (S), n (N), not queue (S), seq (N)"
    assert "--queue-key" in wrong["remedy"]


@pytest.mark.usefixtures("desk")
def test_a_key_of_another_type_is_found(dynamo: Table) -> None:
    request = items_table(TableNames("Items", "Cursor", KEYS))
    request["AttributeDefinitions"] = [{**one, "AttributeType": "S"} for one in request["AttributeDefinitions"]]
    table(dynamo.client, request)
    assert findings(code=1)[0]["text"] == "items table 'Items' has the keys queue (S), seq (S), not queue (S), seq (N)"


@pytest.mark.usefixtures("desk")
def test_a_cursor_table_without_a_stream_wakes_nobody(dynamo: Table) -> None:
    request = cursor_table(TableNames("Items", "Cursor", KEYS))
    del request["StreamSpecification"]
    table(dynamo.client, request)
    level, area, text, remedy = only(findings(code=1))
    assert (level, area) == ("FAIL", "streams")
    assert text == "cursor table 'Cursor' has no stream: it wakes nobody"
    assert "StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES" in remedy


@pytest.mark.usefixtures("desk")
def test_a_stream_without_the_old_images_is_found(dynamo: Table) -> None:
    request = cursor_table(TableNames("Items", "Cursor", KEYS))
    request["StreamSpecification"]["StreamViewType"] = "KEYS_ONLY"
    table(dynamo.client, request)
    assert only(findings(code=1))[2] == "cursor table 'Cursor' has a stream of KEYS_ONLY, not of NEW_AND_OLD_IMAGES"


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(("name", "place", "level"), [("waiting", 0, "FAIL"), ("active", 1, "WARN")])
def test_a_missing_index_is_found(name: str, place: int, level: str, dynamo: Table) -> None:
    request = cursor_table(TableNames("Items", "Cursor", KEYS))
    lost = {key["AttributeName"] for key in request["GlobalSecondaryIndexes"].pop(place)["KeySchema"]}
    request["AttributeDefinitions"] = [
        one for one in request["AttributeDefinitions"] if one["AttributeName"] not in lost
    ]
    table(dynamo.client, request)
    told, _, text, remedy = only(findings(code=1 if level == "FAIL" else 0))
    assert (told, text.split(":")[0]) == (level, f"cursor table 'Cursor' lacks its index {name!r}")
    *words, definitions, attributes, updates, created = shlex.split(remedy)
    assert words == ["aws", "dynamodb", "update-table", "--table-name", "Cursor"]
    assert (definitions, updates) == ("--attribute-definitions", "--global-secondary-index-updates")
    dynamo.client.update_table(
        TableName="Cursor",
        AttributeDefinitions=json.loads(attributes),
        GlobalSecondaryIndexUpdates=json.loads(created),
    )
    assert findings() == []


def test_a_stuck_queue_is_found_and_freed_by_the_command_that_is_given(desk: OperatorDesk) -> None:
    desk.put("ada", 0)
    # A writer that died before it could advance.
    message = take_message({"queue": "ada", "seq": 1}, KEYS)
    desk.sorter.stores.items.put(Arrival(message, 0), 0.0)
    level, area, text, remedy = only(findings(code=1))
    assert (level, area, text) == ("FAIL", "queues", "'ada' is stuck: seq 1 is stored, and its position stays 0")
    assert remedy == "stream-sort advance ada"
    Line().run(*shlex.split(remedy)[1:], "--yes")
    assert findings() == []


@pytest.mark.parametrize("name", ["Cursor", "Control"])
def test_a_row_that_cannot_be_read_is_named_by_doctor_and_status(desk: OperatorDesk, dynamo: Table, name: str) -> None:
    desk.put("ada", 0)
    desk.put("bob", 0)
    desk.deliver("ada", "bob")
    key = {"queue": {"S": "ada"}} if name == "Cursor" else key_of(*place_of("billing", "ada"))
    dynamo.client.update_item(
        TableName=name, Key=key, UpdateExpression="REMOVE #it", ExpressionAttributeNames={"#it": "seq"}
    )
    level, area, text, remedy = only(findings(code=1))
    assert (level, area, remedy) == ("FAIL", "queues", "stream-sort explain ada")
    assert text.startswith("'ada' could not be looked at: the ")
    told = Line().run("status").stdout
    assert "2 queues" in told
    assert "1 could not be looked at" in told


def test_a_row_that_cannot_be_read_is_named_though_its_queue_is_parked_as_damaged(
    desk: OperatorDesk, dynamo: Table
) -> None:
    desk.put("ada", 0, 1)
    desk.put("bob", 0)
    dynamo.client.delete_item(TableName="Items", Key={"queue": {"S": "ada"}, "seq": {"N": "1"}})
    desk.deliver("ada")
    dynamo.client.update_item(
        TableName="Cursor",
        Key={"queue": {"S": "ada"}},
        UpdateExpression="REMOVE #it",
        ExpressionAttributeNames={"#it": "seq"},
    )
    assert any(one["text"].startswith("'ada' could not be looked at: the ") for one in findings(code=1))
    assert "1 could not be looked at" in Line().run("status").stdout


def test_a_queue_that_moves_meanwhile_is_not_stuck(desk: OperatorDesk) -> None:
    desk.put("ada", 0)
    desk.sorter.stores.items.put(Arrival(take_message({"queue": "ada", "seq": 1}, KEYS), 0), 0.0)
    connection = connect()
    found = read_standings(connection.sources, "*", 60.0, sleep=lambda _: desk.put("ada", 2))
    connection.close()
    assert found.stuck == ()


def test_a_position_beyond_the_items_is_found_and_mended_by_putting_them_again(
    desk: OperatorDesk, dynamo: Table
) -> None:
    desk.put("ada", 0, 1)
    desk.put("bob", 0)
    dynamo.client.delete_item(TableName="Items", Key={"queue": {"S": "ada"}, "seq": {"N": "1"}})
    level, _, text, remedy = only(findings(code=1))
    assert (level, text) == ("FAIL", "'ada' is released through seq 1, but that is not stored: items are lost")
    assert remedy.startswith("put what is missing again")
    assert "stream-sort explain ada names it, stream-sort audit --out report.json names all" in remedy
    desk.put("ada", 1)
    assert findings() == []


def test_what_is_trimmed_or_has_not_begun_is_not_lost(desk: OperatorDesk) -> None:
    desk.put("ada", *range(5))
    desk.deliver("ada")
    desk.sorter.trim("ada", 3, control_table="Control")
    desk.sorter.open("bob", first_seq=7)
    assert findings() == []


def test_a_parked_queue_is_told_with_its_error_and_its_redrive(desk: OperatorDesk) -> None:
    desk.put("a b", 0, 1)
    desk.clerk.poison = {1}
    desk.deliver("a b")
    level, area, text, remedy = only(findings())
    assert (level, area) == ("WARN", "consumers")
    assert text.startswith("'billing' is parked at seq 1 of 'a b'")
    assert remedy.endswith("stream-sort parked redrive 'a b' --consumer billing")


def test_a_dead_letter_is_counted(desk: OperatorDesk) -> None:
    desk.put("ada", 0, 1)
    desk.bury("ada", 1)
    assert only(findings())[2:] == ("'billing' keeps 1 dead letter", "stream-sort dead list --consumer billing")


def test_an_old_gap_is_told_and_a_young_one_is_not(desk: OperatorDesk) -> None:
    desk.put("ada", 1)
    assert findings() == []
    level, area, text, remedy = only(findings("--old-gap", "0"))
    assert (level, area, remedy) == ("WARN", "queues", "stream-sort explain ada")
    assert re.fullmatch(r"'ada' has waited for seq 0 for \d+ s; gap policy: wait", text)


def test_young_gaps_are_counted_where_nothing_is_wrong(desk: OperatorDesk) -> None:
    desk.put("zoe", 0)
    assert "queues        no queue waits for a seq\n" in Line().run("doctor").stdout
    desk.put("ada", 1)
    assert "1 queue waits for a seq, none for over 60 min: stream-sort status" in Line().run("doctor").stdout
    desk.put("bob", 1)
    desk.put("eve", 1, 0)
    shown = Line().run("doctor").stdout
    assert "OK           queues        2 queues wait for a seq, none for over 60 min" in shown


def test_what_may_wait_is_read_up_to_a_bound_and_the_rest_is_told(
    desk: OperatorDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ada", "bob", "eve"):
        desk.put(name, 0, 2, 4)
        desk.put(name, 1)
    assert "OK           queues        3 queues wait for a seq, none for over" in Line().run("doctor").stdout
    monkeypatch.setattr(doubts, "DOUBTS", 1)
    assert "OK           queues        1 queue waits for a seq and 2 may, none for over" in Line().run("doctor").stdout


def test_a_mark_that_is_out_of_date_is_no_gap(desk: OperatorDesk) -> None:
    desk.put("ada", 1)
    desk.put("ada", 0)
    assert desk.sorter.stores.cursors.get("ada").waiting_since is not None  # type: ignore[union-attr]
    assert findings("--old-gap", "0") == []


@pytest.mark.usefixtures("desk")
def test_a_policy_that_should_have_acted_asks_for_the_sweep(dynamo: Table) -> None:
    long_ago = StreamSorter(client=dynamo.client, clock=lambda: 1_000_000.0)
    long_ago.put({"queue": "ada", "seq": 1})
    long_ago.set_policy("ada", skip_after=60)
    waits = [one for one in findings() if one["area"] == "queues"]
    assert only(waits)[2].endswith("which should have acted by now: does the sweep run?")


@pytest.mark.usefixtures("desk")
def test_a_gap_that_no_policy_skips_does_not_ask_for_the_sweep(dynamo: Table) -> None:
    long_ago = StreamSorter(client=dynamo.client, clock=lambda: 1_000_000.0)
    long_ago.put({"queue": "ada", "seq": 20_000})
    long_ago.set_policy("ada", skip_after=60)
    Sweeper(long_ago).sweep()
    waits = [one for one in findings() if one["area"] == "queues"]
    assert only(waits)[2].endswith("but no policy skips a gap of over 10,000 seqs")


@pytest.mark.usefixtures("desk")
def test_a_consumer_that_sleeps_is_nudged(dynamo: Table) -> None:
    long_ago = StreamSorter(client=dynamo.client, clock=lambda: 1_000_000.0)
    long_ago.put_many({"queue": "ada", "seq": seq} for seq in range(3))
    long_ago.stores.control("Control").subscriptions.register(Subscription("billing", "earliest", 0.0))
    level, area, text, remedy = only(findings())
    assert (level, area, remedy) == ("WARN", "consumers", "stream-sort nudge ada")
    assert text.startswith("'billing' is 3 seqs behind in 'ada' and has not moved for")


def test_a_cursor_table_older_than_the_checkpoints_is_found(desk: OperatorDesk) -> None:
    desk.put("ada", 0)
    desk.deliver("ada")
    control = desk.sorter.stores.control("Control")
    old = control.checkpoints.of_queues("billing", ["ada"]).whole()["ada"]
    control.checkpoints.commit(old, Checkpoint("billing", "ada", 9, old.version + 1, "run", 1.0))
    level, area, text, remedy = only(findings(code=1))
    assert (level, area) == ("FAIL", "consumers")
    assert text == (
        "'billing' has done everything through seq 9 of 'ada', whose position is 0: "
        "the cursor table is older than the control table"
    )
    assert "stream-sort advance ada" in remedy


def test_a_lost_cursor_row_is_found_by_who_was_parked_for_it(desk: OperatorDesk, dynamo: Table) -> None:
    desk.put("ada", 0)
    desk.deliver("ada")
    desk.put("ada", 1)
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "ada"}})
    desk.deliver("ada")
    lost = [one for one in findings(code=1) if "lost its cursor row" in one["text"]]
    level, area, text, remedy = only(lost)
    assert (level, area, remedy) == ("FAIL", "queues", "stream-sort recover ada")
    assert text == "'ada' has lost its cursor row: nothing can be stored in it or released until the row is restored"
    Line().run(*shlex.split(remedy)[1:], "--yes")
    desk.consumer.catch_up("ada", force=True)
    assert findings() == []


@pytest.mark.parametrize("words", [("explain", "ada"), ("advance", "ada", "--yes")])
def test_a_lost_cursor_row_is_told_with_the_command_that_leads_to_the_same_tables(
    words: tuple[str, ...], desk: OperatorDesk, dynamo: Table
) -> None:
    desk.put("ada", 0)
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "ada"}})
    told = Line().run(*words, "--region", "eu-west-1", code=1).stderr
    assert told.endswith("what its consumers have done: stream-sort recover ada --region eu-west-1\n")


def test_many_stuck_queues_are_counted_and_few_are_named(desk: OperatorDesk) -> None:
    for number in range(8):
        desk.put(f"q{number}", 0)
        desk.sorter.stores.items.put(Arrival(take_message({"queue": f"q{number}", "seq": 1}, KEYS), 0), 0.0)
    found = findings(code=1)
    assert len(found) == 6
    assert found[-1]["text"] == "8 queues are stuck in all"
    assert found[-1]["remedy"] == "stream-sort advance --all"
    assert findings("--match", "q3", code=1)[0]["remedy"] == "stream-sort advance q3"


def test_slots_are_read_by_key_and_the_items_table_is_never_scanned(
    desk: OperatorDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        desk.put(f"q{number}", 0)
    asked: list[tuple[str, Any]] = []
    made = boto3.session.Session.client

    def client(*arguments: Any, **options: Any) -> Any:
        one = made(*arguments, **options)
        one.meta.events.register("before-call.dynamodb", lambda model, params, **_: asked.append((model.name, params)))
        return one

    monkeypatch.setattr(boto3.session.Session, "client", client)
    assert findings() == []
    on_items = [name for name, params in asked if name != "DescribeTable" and '"Items"' in str(params["body"])]
    print(f"doctor over 60 queues: {len(asked)} requests, {len(on_items)} of them to the items table")
    # Two slots a queue, a hundred a request.
    assert [name for name in on_items if name != "DescribeContinuousBackups"] == ["BatchGetItem"] * 2


def test_control_characters_in_names_are_shown(desk: OperatorDesk) -> None:
    desk.put("a\u202eb", 1)
    shown = Line().run("doctor", "--old-gap", "0").stdout
    assert "\u202e" not in shown
    assert r"\u202e" in shown
    json.loads(Line().run("doctor", "--old-gap", "0", "--json").stdout)


@pytest.mark.usefixtures("desk")
def test_an_aws_that_cannot_be_reached_is_one_line() -> None:
    assert "did not succeed" in Line().error("doctor", "--endpoint-url", "http://127.0.0.1:9")


def test_without_a_control_table_the_rest_is_checked(desk: OperatorDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAM_SORT_CONTROL_TABLE")
    desk.put("ada", 0)
    assert only(findings())[2] == "no control table is named; give --control-table"


@pytest.mark.usefixtures("desk")
def test_i7_an_unforeseen_error_in_one_queue_is_a_finding_of_it_and_hides_no_other(
    dynamo: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = StreamSorter(client=dynamo.client, clock=lambda: 1_000_000.0)
    for queue in ("ada", "bad", "eve"):
        long_ago.put({"queue": queue, "seq": 1})
    arrivals = DynamoItemStore.arrivals

    def failing(self: DynamoItemStore, queue: str, *args: int) -> object:
        if queue == "bad":
            raise ZeroDivisionError("in the middle")
        return arrivals(self, queue, *args)

    monkeypatch.setattr(DynamoItemStore, "arrivals", failing)
    found = [one for one in findings(code=1) if one["area"] == "queues"]
    texts = [one["text"] for one in found]
    assert [text.split(" ")[0] for text in texts] == ["'ada'", "'eve'", "'bad'"]
    assert texts[0].startswith("'ada' has waited for seq 0 for")
    assert "could not be looked at: queue 'bad': unexpected ZeroDivisionError('in the middle')" in texts[2]
    assert found[2]["remedy"] == "stream-sort explain bad"


def test_i7_an_unforeseen_error_in_one_check_ends_no_other(desk: OperatorDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("ada", 0)
    desk.sorter.stores.control("Control").subscriptions.register(Subscription("billing", "earliest", 0.0))

    def failing(*_: object) -> list[object]:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr("stream_sort.insight.checkup.examination.check_queues", failing)
    told = Line().json("doctor")["findings"]
    assert any("unexpected ZeroDivisionError('in the middle'); this is a bug" in one["text"] for one in told)
    assert {"tables", "consumers"} <= {one["area"] for one in told if one["level"] == "OK"}


@pytest.mark.usefixtures("desk")
def test_a_gap_is_as_old_for_doctor_as_what_is_stored_beyond_it(dynamo: Table, sorter: StreamSorter) -> None:
    long_ago = StreamSorter(client=dynamo.client, clock=lambda: 1_000_000.0)
    long_ago.put({"queue": "ada", "seq": 1})
    sorter.put_many({"queue": "ada", "seq": seq} for seq in (0, 3))
    assert [one for one in findings() if one["area"] == "queues"] == [], "the old gap is closed, the new one is young"
