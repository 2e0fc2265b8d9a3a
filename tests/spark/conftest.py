"""One Spark session for the whole suite, and tables to read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter
from stream_sort.replay import register
from stream_sort.replay.engine.session import spark_session
from stream_sort.replay.origins.access import TableAccess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from stream_sort.local.ministack import MiniStack
    from tests.conftest import Tables


ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """Its workers see the local AWS's credentials: they are made from the environment of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        session = spark_session("tests")
        register(session)
        yield session
        session.stop()


@pytest.fixture
def access(ministack: MiniStack, tables: Tables) -> TableAccess:
    return TableAccess(tables.items, tables.cursor, region="us-east-1", endpoint_url=ministack.url)


@pytest.fixture
def sorter(tables: Tables, dynamodb: Any) -> StreamSorter:
    return StreamSorter(tables.items, tables.cursor, client=dynamodb)
