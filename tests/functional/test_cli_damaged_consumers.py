"""One consumer whose registration cannot be read: it is named, and the others are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from stream_sort import StreamSorter
    from tests.functional.conftest import Table


OVERWRITTEN = {"start": {"N": "7"}}
MISSPELLED = {"start": {"S": "yesterday"}, "since": {"N": "0"}, "ready": {"BOOL": True}}


@pytest.fixture(params=[OVERWRITTEN, MISSPELLED], ids=["overwritten", "with a start that is none"])
def desk(sorter: StreamSorter, dynamo: Table, request: pytest.FixtureRequest) -> OperatorDesk:
    """Billing reads the queue; somebody has written over the registration of search."""
    desk = OperatorDesk(sorter)
    desk.put("ada", 0, 1, 3)
    desk.deliver("ada")
    row: dict[str, Any] = {"pk": {"S": "consumers"}, "sk": {"S": "search"}, **request.param}
    dynamo.client.put_item(TableName="Control", Item=row)
    return desk


def test_status_shows_the_lag_of_all_other_consumers(desk: OperatorDesk) -> None:
    done = desk.run("status")
    assert done.exit_code == 0, done.output
    assert "lag billing" in done.stdout
    assert "consumer search is left out: " in done.stdout
    told = json.loads(desk.run("status", "--json").stdout)
    assert (told["consumers"], list(told["unreadable"])) == (["billing"], ["search"])


def test_explain_tells_of_all_other_consumers(desk: OperatorDesk) -> None:
    done = desk.run("explain", "ada")
    assert done.exit_code == 0, done.output
    assert "Consumer 'search' could not be looked at: " in done.stdout
    assert "Consumer 'billing' " in done.stdout


def test_consumers_list_shows_all_others_and_fails(desk: OperatorDesk) -> None:
    done = desk.run("consumers", "list")
    assert done.exit_code == 1, done.output
    assert "billing" in done.stdout
    assert "consumer search is left out: " in done.stderr


def test_another_consumer_can_be_retired(desk: OperatorDesk) -> None:
    done = desk.run("consumers", "retire", "billing", "--yes")
    assert (done.exit_code, done.stdout) == (0, "retired: billing\n"), done.output


def test_doctor_names_it_and_goes_on(desk: OperatorDesk) -> None:
    told = json.loads(desk.run("doctor", "--json").stdout)["findings"]
    (found,) = [one for one in told if "'search' could not be looked at" in one["text"]]
    assert (found["level"], found["area"]) == ("FAIL", "consumers")
    assert found["remedy"].startswith("repair that row: ")
    assert "Delete it only if no such consumer runs" in found["remedy"]
    assert "queues" in {one["area"] for one in told}


def test_its_next_run_registers_a_consumer_again_whose_row_was_deleted(desk: OperatorDesk, dynamo: Table) -> None:
    key = {"pk": {"S": "consumers"}, "sk": {"S": "search"}}
    dynamo.client.delete_item(TableName="Control", Key=key)
    desk.hire("park", "search").catch_up("ada")
    assert json.loads(desk.run("status", "--json").stdout)["lines"][0]["lag"] == {"billing": 0, "search": 0}


def test_a_checkpoint_that_cannot_be_read_keeps_no_consumer_from_being_listed_and_retired(
    sorter: StreamSorter, dynamo: Table
) -> None:
    desk = OperatorDesk(sorter)
    for queue in ("ada", "bob"):
        desk.put(queue, 0)
        desk.deliver(queue)
    key = {"pk": {"S": "billing#ada"}, "sk": {"S": "checkpoint"}}
    dynamo.client.put_item(TableName="Control", Item=key)
    done = desk.run("consumers", "list", "--json")
    (billing,) = json.loads(done.stdout)
    assert (done.exit_code, billing["consumer"], billing["lag"]) == (1, "billing", 0)
    assert "queue ada of consumer billing is left out: " in done.stderr
    assert desk.run("consumers", "retire", "billing", "--yes").stdout == "retired: billing\n"


def test_explain_tells_of_the_queue_and_all_others_where_a_checkpoint_cannot_be_read(
    sorter: StreamSorter, dynamo: Table
) -> None:
    desk = OperatorDesk(sorter)
    desk.put("ada", 0)
    desk.deliver("ada")
    desk.hire("park", "search").catch_up("ada")
    key = {"pk": {"S": "billing#ada"}, "sk": {"S": "checkpoint"}}
    dynamo.client.put_item(TableName="Control", Item=key)
    done = desk.run("explain", "ada")
    assert done.exit_code == 0, done.output
    assert "Nothing waits: all that is stored is released." in done.stdout
    assert "Consumer 'billing' could not be looked at: " in done.stdout
    assert "Consumer 'search' is up to date (seq 0)." in done.stdout
