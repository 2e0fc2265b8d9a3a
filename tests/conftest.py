"""The local AWS for the suite: started when the first test asks for it, gone when the suite ends."""

from __future__ import annotations

import gc
import os
import signal
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from botocore.loaders import JSONFileLoader, Loader
from hypothesis import settings
from hypothesis.internal.conjecture.providers import Constants, HypothesisProvider
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.serialize import ResponseSerializer
from xdist.scheduler import LoadFileScheduling

from stream_sort import StreamSorter
from stream_sort.local.ministack import MiniStack

if TYPE_CHECKING:
    from collections.abc import Iterator


HERE = Path(__file__).parent
# Tests that start jobs as processes of their own, and those that share a session.
SPARK = ("tests/spark/processes/", "tests/spark/")
EMULATED = {"ministack": "ministack", "client": "moto"}
# They are begun first.
LONGEST = ("spark", "local_stack", "simulation", "functional")
# A JVM of a test ends before a second, better compilation pays. Spark takes this in silence, not JAVA_TOOL_OPTIONS.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Tables(NamedTuple):
    items: str
    cursor: str


# Nothing random decides whether the suite passes: `make fuzz` and `make soak` explore, or HYPOTHESIS_PROFILE=default.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_configure() -> None:
    # What a shell runs in the background hears no Ctrl-C, nor would the commands that tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rooms = {item: item.path.relative_to(HERE).parts[0] for item in items}
    items.sort(key=lambda item: LONGEST.index(rooms[item]) if rooms[item] in LONGEST else len(LONGEST))
    for item in items:
        for fixture, mark in EMULATED.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)


def pytest_collection_finish() -> None:
    # What is loaded by now stays; to look through it for garbage again and again takes an eighth of the tests' time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


class OneSpark(LoadFileScheduling):
    """Gives a file to one process, and all files that share a Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in SPARK if nodeid.startswith(folder)), super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark:
    return OneSpark(config, log)


@pytest.fixture(scope="session", autouse=True)
def _examples_are_the_same_whatever_is_loaded() -> Iterator[None]:
    """Hypothesis draws constants of all code that this process has loaded by then: in each run, others."""
    with pytest.MonkeyPatch.context() as patch:
        if settings().derandomize:
            patch.setattr(HypothesisProvider, "_local_constants", Constants())
        yield


@pytest.fixture(scope="session", autouse=True)
def _jvms_start_fast() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", JVM)
        yield


@pytest.fixture(scope="session", autouse=True)
def _descriptions_of_services_are_read_once() -> Iterator[None]:
    """botocore reads and lists them anew for each session, and moto makes one a test: most of those tests' time."""
    known: dict[Any, Any] = {}
    read, find = JSONFileLoader.load_file, Loader.list_available_services

    def load_file(loader: JSONFileLoader, path: str) -> Any:
        if path not in known:
            known[path] = read(loader, path)
        return known[path]

    def list_available_services(loader: Loader, type_name: str) -> Any:
        key = (type_name, *loader.search_paths)
        if key not in known:
            known[key] = find(loader, type_name)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", load_file)
        patch.setattr(Loader, "list_available_services", list_available_services)
        yield


@pytest.fixture(scope="session", autouse=True)
def _moto_takes_one_request_at_a_time() -> Iterator[None]:
    """Its tables are not made for threads: of two that put the first messages of a queue at once, one's are lost."""
    answer, turn = BotocoreStubber.__call__, threading.RLock()

    def answer_alone(stubber: BotocoreStubber, *args: Any, **named: Any) -> Any:
        with turn:
            return answer(stubber, *args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BotocoreStubber, "__call__", answer_alone)
        yield


@pytest.fixture(scope="session", autouse=True)
def _moto_looks_up_attributes_of_items_as_they_are() -> Iterator[None]:
    """It would look for each type that a value could have under all names that a class of moto's might give it."""
    picked = ResponseSerializer.get_value

    def get_value(serializer: ResponseSerializer, value: Any, key: str, shape: Any) -> Any:
        if type(value) is dict and shape.parent.name == "AttributeValue":
            return value.get(key)
        return picked(serializer, value, key, shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ResponseSerializer, "get_value", get_value)
        yield


@pytest.fixture(scope="session")
def ministack() -> Iterator[MiniStack]:
    with MiniStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def dynamodb(ministack: MiniStack) -> Iterator[Any]:
    client = ministack.client("dynamodb")
    yield client
    client.close()


@pytest.fixture(scope="session")
def dynamodb_streams(ministack: MiniStack) -> Iterator[Any]:
    client = ministack.client("dynamodbstreams")
    yield client
    client.close()


@pytest.fixture
def tables(dynamodb: Any) -> Tables:
    """A fresh pair of tables; they vanish with the local AWS."""
    name = uuid.uuid4().hex[:12]
    pair = Tables(f"items-{name}", f"cursor-{name}")
    StreamSorter(items_table=pair.items, cursor_table=pair.cursor, client=dynamodb).create_tables()
    return pair
