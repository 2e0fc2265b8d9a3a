"""DynamoDB as moto plays it, for tests that make it fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from stream_sort import StreamSorter
from tests.unit.faulty import Faulty

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def client() -> Iterator[Faulty]:
    with mock_aws():
        real = boto3.client("dynamodb", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
        StreamSorter(client=real).create_tables()
        yield Faulty(real)
        real.close()
