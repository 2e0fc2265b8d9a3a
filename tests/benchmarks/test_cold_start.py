"""A cold function loads what it needs and no more. Seconds are for `cold_start.py`; modules are the same everywhere."""

from __future__ import annotations

import pytest

from tests.benchmarks.cold_start import HANDLERS, Handler, modules_of

# Loaded when the first SQS event comes, or not at all.
HEAVY = {
    "aws_lambda_powertools.utilities.batch",
    "aws_lambda_powertools.utilities.data_classes",
    "aws_lambda_powertools.utilities.parser",
    "aws_xray_sdk",
    "asyncio",
    "hypothesis",
    "moto",
    "pyarrow",
    "pydantic",
    "pynamodb",
    "pyspark",
    "rich",
    "stream_sort.stores.memory.tables",
    "stream_sort.testing",
    "typer",
}


@pytest.mark.parametrize(
    "handler", [one for one in HANDLERS if one.step in {"enqueue", "advance"}], ids=lambda handler: handler.step
)
def test_importing_a_function_of_the_hot_path_loads_boto3_powertools_and_little_more(handler: Handler) -> None:
    loaded = modules_of(handler)
    assert {"boto3", "aws_lambda_powertools.logging", "stream_sort.stores.dynamodb"} <= loaded
    assert not loaded & HEAVY
