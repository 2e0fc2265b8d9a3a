"""Every control store keeps its port's guarantees: memory, moto, MiniStack."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from boto3.dynamodb.types import TypeDeserializer
from moto import mock_aws

from stream_sort.settings import Settings
from stream_sort.stores.dynamodb import connect
from stream_sort.stores.memory.tables import MemoryTables
from stream_sort.testing.control_contract import ControlBench, ControlConditionContract, ControlStoreContract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.ports import Home


class TestInMemory(ControlStoreContract, ControlConditionContract):
    @pytest.fixture
    def bench(self) -> ControlBench:
        tables = MemoryTables()
        control = tables.control("Control")

        def written() -> dict[str, dict[str, Any]]:
            effects = tables.controls["Control"].effects
            return {effect.request["Item"]["id"]: effect.request["Item"] for effect in effects}

        return ControlBench(control, tables.home(), "Effects", written)


class TestOnMoto(ControlStoreContract, ControlConditionContract):
    @pytest.fixture
    def bench(self) -> Iterator[ControlBench]:
        with mock_aws():
            client = boto3.client(
                "dynamodb", region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test"
            )
            stores = connect(Settings(in_flight=1), client)
            stores.create_tables()
            yield on_dynamodb(stores, client)
            client.close()


class TestOnMiniStack(ControlStoreContract, ControlConditionContract):
    @pytest.fixture
    def bench(self, dynamodb: Any, tables: Any) -> ControlBench:
        stores = connect(Settings(items_table=tables.items, cursor_table=tables.cursor), dynamodb)
        return on_dynamodb(stores, dynamodb)


def on_dynamodb(stores: Home, client: Any) -> ControlBench:
    name = uuid.uuid4().hex[:12]
    control = stores.control(f"control-{name}")
    control.create_table()
    table = f"effects-{name}"
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    return ControlBench(control, stores, table, partial(items_of, client, table))


def items_of(client: Any, table: str) -> dict[str, dict[str, Any]]:
    read = TypeDeserializer().deserialize
    items = client.scan(TableName=table, ConsistentRead=True)["Items"]
    return {item["id"]["S"]: {name: read(value) for name, value in item.items()} for item in items}
