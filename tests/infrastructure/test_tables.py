"""The tables of the template are those that the code makes and reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stream_sort.model.message import KeyNames
from stream_sort.stores.dynamodb import tables

NAMES = tables.TableNames("Items", "Cursor", KeyNames("queue", "seq"))
CREATED = {
    "ItemsTable": tables.items_table(NAMES),
    "CursorTable": tables.cursor_table(NAMES),
    "ControlTable": tables.control_table("Control"),
}


def filled(value: Any, defaults: dict[str, str]) -> Any:
    """The same with its parameters at their defaults, and on-demand."""
    match value:
        case {"Ref": name}:
            return defaults.get(name)
        case {"Fn::If": ["Provisioned", _, otherwise]}:
            return filled(otherwise, defaults)
        case dict():
            inner = {key: filled(one, defaults) for key, one in value.items()}
            return {key: one for key, one in inner.items() if one is not None}
        case list():
            return [filled(one, defaults) for one in value]
    return value


@pytest.mark.parametrize("name", CREATED)
def test_a_table_has_the_keys_and_indexes_that_the_code_makes(
    name: str, resources: dict[str, Any], defaults: dict[str, str]
) -> None:
    properties = filled(resources[name]["Properties"], defaults)
    for part in ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "BillingMode"):
        assert properties.get(part) == CREATED[name].get(part), part


def test_all_tables_of_the_template_are_compared(resources: dict[str, Any]) -> None:
    assert {name for name, one in resources.items() if one["Type"] == "AWS::DynamoDB::Table"} == set(CREATED)


def test_the_streams_carry_what_their_readers_need(resources: dict[str, Any]) -> None:
    streams = {name: resources[name]["Properties"].get("StreamSpecification") for name in CREATED}
    cursor = CREATED["CursorTable"]["StreamSpecification"]["StreamViewType"]
    assert streams == {
        "ItemsTable": {"StreamViewType": "KEYS_ONLY"},
        "CursorTable": {"StreamViewType": cursor},
        "ControlTable": None,
    }


@pytest.mark.parametrize("name", CREATED)
def test_a_table_outlives_its_stack_and_can_be_restored(name: str, resources: dict[str, Any]) -> None:
    table = resources[name]
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["Properties"]["SSESpecification"] == {"SSEEnabled": True}
    assert table["Properties"]["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    assert "TableName" not in table["Properties"], "a name of its own would be in the way of a second stack"


@pytest.mark.parametrize("name", CREATED)
def test_a_provisioned_table_has_capacity_for_itself_and_its_indexes(name: str, resources: dict[str, Any]) -> None:
    properties = resources[name]["Properties"]
    for place in (properties, *properties.get("GlobalSecondaryIndexes", ())):
        condition, units, otherwise = place["ProvisionedThroughput"]["Fn::If"]
        assert (condition, otherwise) == ("Provisioned", {"Ref": "AWS::NoValue"})
        assert units == {"ReadCapacityUnits": {"Ref": "ReadCapacity"}, "WriteCapacityUnits": {"Ref": "WriteCapacity"}}


def test_nothing_vanishes_by_time_to_live(resources: dict[str, Any]) -> None:
    assert not [name for name in CREATED if "TimeToLiveSpecification" in resources[name]["Properties"]]


@pytest.mark.parametrize("name", CREATED)
def test_the_library_page_names_the_keys_and_indexes_of_every_table_for_those_who_make_them_themselves(
    name: str,
) -> None:
    (told,) = (
        one
        for one in (Path(__file__).parents[2] / "docs" / "library.md").read_text().split("\n\n")
        if one.startswith("The tables:")
    )
    made = CREATED[name]
    names = {one["AttributeName"] for one in made["AttributeDefinitions"]}
    names |= {one["IndexName"] for one in made.get("GlobalSecondaryIndexes", ())}
    assert [one for one in sorted(names) if f"`{one}`" not in told] == []
