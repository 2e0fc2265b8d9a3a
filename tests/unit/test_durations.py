"""Durations as people write them: 30s, 5m, 1h, 7d; a plain number is in seconds, wherever seconds are taken."""

from __future__ import annotations

import pytest

from stream_sort import GapPolicy, InvalidInput, SettingsError, StreamSorter
from stream_sort.local.parameters import check_parameters, plain_values
from stream_sort.model.durations import duration_text, seconds_of
from stream_sort.settings import Settings

TABLES = {"STREAM_SORT_ITEMS_TABLE": "Items", "STREAM_SORT_CURSOR_TABLE": "Cursor"}


@pytest.mark.parametrize("text", ["1d12h", "90d", "1h", "1m30s", "59s", "0s", "0.5s", "1.25s", "1d1h1m1s"])
def test_a_duration_is_shown_as_people_write_it(text: str) -> None:
    assert duration_text(seconds_of(text)) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h", 3_600.0),
        ("7d", 604_800.0),
        ("1d12h", 129_600.0),
        ("1h 30m", 5_400.0),
        ("1.5h", 5_400.0),
        ("250ms", 0.25),
        ("45", 45.0),
        ("0.5", 0.5),
        ("0", 0.0),
        (" 90 ", 90.0),
        ("2 hours", 7_200.0),
        ("1 minute", 60.0),
        ("3600 seconds", 3_600.0),
        ("1D", 86_400.0),
    ],
)
def test_a_duration_is_taken_as_people_write_it(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-5m", "5x", "m", "30s1h", "1h1h", "5 5", "5m5", "1e3s", "nan", "inf", "٣s", "1..5h", "9" * 400],
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="write one as 30s, 5m, 1h, 7d or 1d12h, or as a number of seconds"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("skip after 1h", 3_600), ("skip after 1d12h", 129_600), ("skip after 30 s", 30), ("Skip after 5 minutes", 300)],
)
def test_a_gap_policy_takes_a_duration_and_is_kept_in_seconds(text: str, seconds: int) -> None:
    policy = GapPolicy.parse(text)
    assert policy.skip_after == seconds
    assert str(policy) == f"skip after {seconds} seconds", "an older version reads it, too"


def test_settings_take_durations() -> None:
    given = {**TABLES, "STREAM_SORT_DEADLINE": "1m", "STREAM_SORT_GAP_POLICY": "skip after 7d"}
    assert Settings.from_env(given).deadline == 60.0
    assert StreamSorter.in_memory(gap_policy="skip after 7d").options.gap_policy.skip_after == 604_800


def test_a_deadline_that_is_no_duration_is_refused_by_its_variable() -> None:
    with pytest.raises(
        SettingsError, match=r"STREAM_SORT_DEADLINE is 'soon'; it must be a number of seconds, or .* 30s"
    ):
        Settings.from_env({**TABLES, "STREAM_SORT_DEADLINE": "soon"})
    with pytest.raises(SettingsError, match="STREAM_SORT_WINDOW is '5m'; it must be a whole number"):
        Settings.from_env({**TABLES, "STREAM_SORT_WINDOW": "5m"})


def test_parameters_of_the_template_take_durations_where_they_are_in_seconds_or_days() -> None:
    given = {"GapAgeAlarm": "1h", "ProcessTimeout": "2m", "LogRetention": "30d", "SweepSchedule": "5m", "Sink": "log"}
    plain = plain_values(given)
    assert plain == {
        "GapAgeAlarm": "3600",
        "ProcessTimeout": "120",
        "LogRetention": "30",
        "SweepSchedule": "rate(5 minutes)",
        "Sink": "log",
    }
    check_parameters(plain)
    same = {
        "GapAgeAlarm": "3600",
        "BatchSize": "5m",
        "GapPolicy": "skip after 1h",
        "Unknown": "1h",
        "VisibilityTimeout": "",
    }
    assert plain_values(same) == same


@pytest.mark.parametrize(
    "text", ["skip after 30s", "skip after 1.5h", "skip after 7d", "skip after 60 seconds", "wait"]
)
def test_a_gap_policy_that_the_template_lets_through_is_one_that_the_functions_can_read(text: str) -> None:
    check_parameters({"GapPolicy": text})
    assert GapPolicy.parse(text)


@pytest.mark.parametrize("text", ["skip after 1h30", "skip after 1 h", "skip after soon", "skip after 1m1h"])
def test_a_gap_policy_that_the_functions_might_not_read_is_refused_by_the_template(text: str) -> None:
    with pytest.raises(InvalidInput):
        check_parameters({"GapPolicy": text})
