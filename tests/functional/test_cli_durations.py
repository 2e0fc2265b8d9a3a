"""Every option that takes seconds, or another span of time, takes 30s, 5m, 1h and 7d."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stream_sort.cli import messages, status
from tests.functional.command_line import Line
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from stream_sort import StreamSorter

NO_DURATION = "is no duration; write one as 30s, 5m, 1h, 7d or 1d12h, or as a number of seconds"


@pytest.fixture
def desk(sorter: StreamSorter) -> OperatorDesk:
    desk = OperatorDesk(sorter)
    desk.put("ada", 0, 1, 3)
    desk.deliver("ada")
    return desk


@pytest.mark.parametrize(
    ("module", "words"),
    [(status, ["status", "--watch", "--json"]), (messages, ["tail", "ada"])],
    ids=["status", "tail"],
)
@pytest.mark.parametrize(("text", "seconds"), [("5m", 300.0), ("1h", 3_600.0), ("0.5", 0.5), ("7", 7.0)])
def test_how_often_to_look_is_a_duration(  # noqa: PLR0913, PLR0917  # two cases crossed
    desk: OperatorDesk,
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    words: list[str],
    text: str,
    seconds: float,
) -> None:
    slept: list[float] = []

    def sleep(pause: float) -> None:
        slept.append(pause)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "sleep", sleep)
    assert desk.run(*words, "--every", text).exit_code == 130
    assert slept == [seconds]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["status", "--every", "soon"], f"--every 'soon' {NO_DURATION}"),
        (["status", "--every", "0.1"], "--every '0.1' is too short; give at least 200ms"),
        (["tail", "--every", "10ms", "--once"], "--every '10ms' is too short; give at least 100ms"),
        (["doctor", "--old-gap", "-5"], f"--old-gap '-5' {NO_DURATION}"),
        (["consumers", "reset", "ada", "--by-duration", "soon"], f"--by-duration 'soon' {NO_DURATION}"),
        (["consumers", "reset", "ada", "--to-time", "2h"], "for a time span: --by-duration 2h"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",
)
def test_what_is_no_duration_is_one_line_that_names_the_option(desk: OperatorDesk, words: list[str], told: str) -> None:
    done = desk.run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert told in line


@pytest.mark.parametrize("text", ["1h", "60m", "3600s", "3600", "skip after 1h"])
def test_a_policy_is_set_with_a_duration(desk: OperatorDesk, text: str) -> None:
    wanted = text if text.startswith("skip") else f"skip after {text}"
    assert desk.told("policy", "ada", "--set", wanted, "--yes") == {"ada": "skip after 3600 seconds"}
    assert "skip after 1h " in desk.run("policy", "ada").stdout


@pytest.mark.parametrize("text", ["1h", "3600", "1 hour"])
def test_a_reset_goes_back_by_a_duration(desk: OperatorDesk, text: str) -> None:
    done = desk.run("consumers", "reset", "ada", "--by-duration", text, "--force", "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert [(one["queue"], one["new"]) for one in json.loads(done.stdout)] == [("ada", -1)]


@pytest.mark.parametrize(("text", "fails"), [("0s", True), ("0", True), ("7d", False), ("604800", False)])
def test_doctor_takes_the_age_of_a_gap_as_a_duration(desk: OperatorDesk, text: str, *, fails: bool) -> None:
    told = desk.run("doctor", "--old-gap", text).stdout
    assert ("has waited for seq 2" in told) is fails, told


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (["--sweep-minutes", "5m"], ("load", "sweep_minutes"), 5),
        (["--sweep-minutes", "5"], ("load", "sweep_minutes"), 5),
        (["--sweep-minutes", "1h"], ("load", "sweep_minutes"), 60),
        (["--keep-days", "7d"], ("terms", "keep_days"), 7.0),
        (["--keep-days", "7"], ("terms", "keep_days"), 7.0),
        (["--keep-days", "36h"], ("terms", "keep_days"), 1.5),
        (["--request-ms", "20ms"], ("terms", "request_ms"), 20.0),
        (["--request-ms", "20"], ("terms", "request_ms"), 20.0),
        (["--request-ms", "1s"], ("terms", "request_ms"), 1_000.0),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",
)
def test_cost_takes_durations_beside_plain_numbers_of_its_own_units(
    given: list[str], field: tuple[str, str], value: float
) -> None:
    told = Line().json("cost", "--messages", "1M", *given)
    assert told[field[0]][field[1]] == value


def test_cost_refuses_minutes_that_are_not_whole() -> None:
    told = Line().error("cost", "--messages", "1M", "--sweep-minutes", "90s", code=2)
    assert told == "--sweep-minutes '90s' is 1.5 minutes; it must be whole minutes"
