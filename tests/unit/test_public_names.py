from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import stream_sort
from stream_sort import InvalidQueue, StreamSorter, StreamSortError, errors, testing

if TYPE_CHECKING:
    from types import ModuleType


def loaded_by(code: str) -> set[str]:
    script = f"{code}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stdout)}


def test_importing_the_package_loads_no_sdk() -> None:
    loaded = loaded_by(
        "import stream_sort; stream_sort.StreamSorter.from_stack, stream_sort.OrderedConsumer.from_stack, "
        "stream_sort.Sweeper, stream_sort.StreamSortError"
    )
    assert not loaded & {"boto3", "botocore", "pynamodb", "pyspark", "pyarrow", "pydantic", "rich", "typer"}


def test_a_sorter_in_memory_needs_no_sdk() -> None:
    assert "botocore" not in loaded_by("from stream_sort import StreamSorter; StreamSorter.in_memory()")


def test_a_sorter_on_dynamodb_loads_boto3_and_little_more() -> None:
    code = "import os; os.environ['AWS_REGION']='eu-west-1'; from stream_sort import StreamSorter; StreamSorter()"
    assert not loaded_by(code) & {"pynamodb", "pyspark", "pyarrow", "pydantic", "rich", "typer"}


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in (stream_sort, testing) for name in package.__all__]
)
def test_every_public_name_is_there_and_where_it_is_looked_for_first_thereafter(package: ModuleType, name: str) -> None:
    assert getattr(package, name) is vars(package)[name]


@pytest.mark.parametrize("package", [stream_sort, testing])
def test_a_package_lists_its_public_names_and_no_other(package: ModuleType) -> None:
    assert dir(package) == sorted(package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Nothing'"):
        _ = package.Nothing


@pytest.mark.parametrize(
    "error",
    [
        stream_sort.QueueExists("q", 3, 0),
        stream_sort.InvalidQueue("", "empty"),
        stream_sort.InvalidMessage("bad", queue="q", seq=1, field="a"),
        stream_sort.MissingItems("q", [range(3)]),
        stream_sort.CursorLost("q", known_position=4),
        stream_sort.StoreUnavailable("slow", table="Items", operation="Query"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_keeps_its_facts_from_process_to_process(error: StreamSortError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("kind", [StreamSorter, stream_sort.OrderedConsumer])
def test_both_public_objects_are_made_by_hand_from_the_environment_and_from_a_stack(kind: type) -> None:
    access = {"region", "profile", "endpoint_url", "session", "client"}
    assert access <= inspect.signature(kind.from_stack).parameters.keys()  # type: ignore[attr-defined]
    assert callable(kind.from_env)  # type: ignore[attr-defined]


def test_every_error_is_public_drawn_in_the_tree_and_says_whether_to_retry() -> None:
    assert errors.__doc__
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, StreamSortError)
        assert isinstance(kind.retryable, bool)
        assert name in errors.__doc__
        assert name in stream_sort.__all__
    defined = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__}
    assert defined == set(errors.__all__)


@pytest.mark.parametrize(
    "bad", [(number for number in ()), lambda: 1, threading.Lock()], ids=["generator", "lambda", "lock"]
)
def test_an_error_about_a_value_that_cannot_be_pickled_can_be(bad: object) -> None:
    result = StreamSorter.in_memory().put_many([{"queue": bad, "seq": 0}, {"queue": "q", "seq": bad}])
    errors_of_it = [error for _, error in result.rejected]
    assert [str(pickle.loads(pickle.dumps(error))) for error in errors_of_it] == list(map(str, errors_of_it))
    with pytest.raises(InvalidQueue) as caught:
        StreamSorter.in_memory().position(bad)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(caught.value)).queue == caught.value.queue


def test_the_movable_clock_is_a_public_name_of_the_testing_package() -> None:
    assert testing.MovableClock(5.0)() == 5.0
