"""The modules that Lambda imports: built from the environment alone, they handle real payloads."""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import SettingsError, StreamSorter

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Table

FUNCTIONS = Path(__file__).parents[2] / "functions"
ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "y",
    "STREAM_SORT_ITEMS_TABLE": "Items",
    "STREAM_SORT_CURSOR_TABLE": "Cursor",
    "STREAM_SORT_CONTROL_TABLE": "Control",
    "STREAM_SORT_IN_FLIGHT": "1",
}


@pytest.fixture
def handler_of(
    dynamo: Table,  # noqa: ARG001  # the tables are there
    telemetries: dict[str, Telemetry],  # noqa: ARG001  # and so is stdout
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], Any]:
    """Imports a function's app.py as Lambda does, and answers its handler."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def load(step: str) -> Any:
        spec = importlib.util.spec_from_file_location("app", FUNCTIONS / step / "app.py")
        assert spec is not None
        assert spec.loader is not None
        app = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(app)
        return app.handler

    return load


def test_enqueue_and_advance_work_on_the_tables_that_the_environment_names(
    handler_of: Any, sample: Any, context: Context, dynamo: Table, sorter: StreamSorter
) -> None:
    assert handler_of("enqueue")(sample("enqueue_sqs"), context) == {"batchItemFailures": []}
    assert sorter.position("orders-17") == 3
    dynamo.client.put_item(TableName="Items", Item={"queue": {"S": "orders-17"}, "seq": {"N": "4"}})
    assert handler_of("advance")(sample("advance_items_stream"), context) == {"batchItemFailures": []}
    assert sorter.position("orders-17") == 4


@pytest.mark.parametrize("step", ["enqueue", "advance", "process", "sweep"])
def test_garbage_is_collected_again_once_a_function_is_loaded(handler_of: Any, step: str) -> None:
    handler_of(step)
    gc.unfreeze()
    assert gc.isenabled()


@pytest.mark.parametrize("step", ["enqueue", "advance", "process", "sweep"])
def test_i9_a_function_without_a_table_says_which_variable_to_set(
    handler_of: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.delenv("STREAM_SORT_CURSOR_TABLE")
    with pytest.raises(SettingsError, match="STREAM_SORT_CURSOR_TABLE is not set"):
        handler_of(step)
    gc.enable()
