"""Every adapter keeps its port's guarantees: memory, moto, MiniStack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from stream_sort.settings import Settings
from stream_sort.stores.dynamodb import connect
from stream_sort.stores.memory.tables import MemoryTables
from stream_sort.testing.contracts import CursorStoreContract, HeadReaderContract, ItemStoreContract
from stream_sort.testing.withdrawal_contract import WithdrawalStoreContract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.ports import Home


class InMemory:
    @pytest.fixture
    def stores(self) -> Home:
        return MemoryTables().home()


class OnMoto:
    @pytest.fixture
    def stores(self) -> Iterator[Home]:
        with mock_aws():
            client = boto3.client(
                "dynamodb", region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test"
            )
            # moto's conditional writes are not atomic between threads
            stores = connect(Settings(in_flight=1), client)
            stores.create_tables()
            yield stores
            client.close()


class OnMiniStack:
    @pytest.fixture
    def stores(self, dynamodb: Any, tables: Any) -> Home:
        return connect(Settings(items_table=tables.items, cursor_table=tables.cursor), dynamodb)


class TestItemsInMemory(InMemory, ItemStoreContract): ...


class TestItemsOnMoto(OnMoto, ItemStoreContract): ...


class TestItemsOnMiniStack(OnMiniStack, ItemStoreContract): ...


class TestCursorsInMemory(InMemory, CursorStoreContract): ...


class TestCursorsOnMoto(OnMoto, CursorStoreContract): ...


class TestCursorsOnMiniStack(OnMiniStack, CursorStoreContract): ...


class TestHeadsInMemory(InMemory, HeadReaderContract): ...


class TestHeadsOnMoto(OnMoto, HeadReaderContract): ...


class TestHeadsOnMiniStack(OnMiniStack, HeadReaderContract): ...


class TestWithdrawalsInMemory(InMemory, WithdrawalStoreContract): ...


class TestWithdrawalsOnMoto(OnMoto, WithdrawalStoreContract): ...


class TestWithdrawalsOnMiniStack(OnMiniStack, WithdrawalStoreContract): ...
