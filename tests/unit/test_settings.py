from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, SettingsError, StreamSorter, Sweeper
from stream_sort.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = {"STREAM_SORT_ITEMS_TABLE": "my-items", "STREAM_SORT_CURSOR_TABLE": "my-cursor"}


def test_every_setting_has_its_variable() -> None:
    settings = Settings.from_env({**TABLES, "STREAM_SORT_FIRST_SEQ": "1", "STREAM_SORT_DEADLINE": "2.5"})
    assert settings == Settings(items_table="my-items", cursor_table="my-cursor", first_seq=1, deadline=2.5)


@pytest.mark.parametrize("missing", TABLES)
def test_a_missing_table_name_is_asked_for_by_its_variable(missing: str) -> None:
    with pytest.raises(SettingsError, match=missing):
        Settings.from_env({name: value for name, value in TABLES.items() if name != missing})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FIRST_SEQ", "one"),
        ("FIRST_SEQ", "1.5"),
        ("DEADLINE", "soon"),
        ("DEADLINE", "0"),
        ("DEADLINE", "nan"),
        ("IN_FLIGHT", "0"),
        ("WINDOW", "-1"),
        ("ON_CONFLICT", "ignore"),
        ("GAP_POLICY", "hope"),
        ("QUEUE_KEY", "seq"),
        ("QUEUE_KEY", ""),
    ],
)
def test_a_setting_that_cannot_work_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    for name, text in {**TABLES, f"STREAM_SORT_{variable}": value, "AWS_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(SettingsError):
        StreamSorter.from_env()


@pytest.mark.parametrize(
    "setting",
    [
        {"window": "5"},
        {"window": 1.5},
        {"window": None},
        {"in_flight": True},
        {"deadline": "x"},
        {"deadline": float("inf")},
        {"on_conflict": []},
        {"first_seq": 0.5},
        {"gap_policy": 5},
        {"queue_key": 7},
    ],
    ids=str,
)
def test_a_setting_of_another_type_is_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(setting)).replace("_", ".")):
        StreamSorter.in_memory(**setting)


def test_a_sorter_is_made_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {**TABLES, "STREAM_SORT_GAP_POLICY": "skip after 60 seconds", "AWS_DEFAULT_REGION": "eu-west-1"}
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    assert str(StreamSorter.from_env().options.gap_policy) == "skip after 60 seconds"


@pytest.mark.parametrize("client", ["x", 5, {}, pytest.param(object(), id="object")], ids=str)
def test_a_client_that_is_none_is_refused(client: Any) -> None:
    with pytest.raises(SettingsError, match="boto3"):
        StreamSorter(client=client)


@pytest.mark.parametrize("clock", [5, None, "now"])
def test_a_clock_that_is_none_is_refused(clock: Any) -> None:
    with pytest.raises(SettingsError, match="clock is"):
        StreamSorter.in_memory(clock=clock)


@pytest.mark.parametrize("now", [float("nan"), float("inf"), 1e60, "now", None, True], ids=str)
def test_i9_a_clock_that_tells_no_time_is_named_by_whatever_asks_it(now: Any) -> None:
    sorter = StreamSorter.in_memory(clock=lambda: now)
    calls: list[Callable[[], object]] = [
        lambda: sorter.put({"queue": "q", "seq": 0}),
        lambda: sorter.put_many([{"queue": "q", "seq": 0}]),
        lambda: sorter.skip("q", 0),
        lambda: Sweeper(sorter).sweep(),
        lambda: OrderedConsumer("billing", print, sorter=sorter).catch_up("q"),
    ]
    for call in calls:
        with pytest.raises(SettingsError, match="the clock says"):
            call()
    assert sorter.position("q") == -1


def test_a_setting_that_does_not_exist_is_named() -> None:
    with pytest.raises(SettingsError, match="no such setting: windows"):
        StreamSorter.in_memory(windows=5)  # type: ignore[call-arg]
