"""`stream-sort consumers | trim` on moto's tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StoreUnavailable
from stream_sort.stores.dynamodb.checkpoints import DynamoCheckpoints
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from stream_sort import StreamSorter


@pytest.fixture
def desk(sorter: StreamSorter) -> OperatorDesk:
    """Two queues, all consumed by billing, which was left alone since."""
    desk = OperatorDesk(sorter)
    desk.put("ada", 0, 1, 2, 3)
    desk.put("bob", 0, 1)
    desk.deliver("ada", "bob")
    leave_alone(desk, "ada", "bob")
    return desk


def leave_alone(desk: OperatorDesk, *queues: str) -> None:
    """Let the last commits of queues lie an hour back."""
    control = desk.sorter.stores.control("Control")
    for row in control.checkpoints.of_queues("billing", queues).whole().values():
        control.checkpoints.commit(
            row, replace(row, version=row.version + 1, committed_at=(row.committed_at or 0.0) - 3_600)
        )


def checkpoints(desk: OperatorDesk) -> tuple[int, int]:
    return desk.consumer.checkpoint("ada"), desk.consumer.checkpoint("bob")


def test_consumers_are_listed_with_their_lag_and_troubles(desk: OperatorDesk) -> None:
    desk.put("ada", 4, 5)
    desk.put("bob", 2)
    desk.bury("ada", 4)
    desk.clerk.poison = {2}
    desk.consumer = desk.hire("park")
    desk.deliver("bob")
    (one,) = desk.told("consumers", "list")
    counts = [one[name] for name in ("consumer", "start", "queues", "behind", "lag", "parked", "dead")]
    assert counts == ["billing", "earliest", 2, 1, 1, 1, 1]
    shown = desk.run("consumers", "list").stdout
    assert re.search(r"billing +earliest +\S+ \S+Z +2 +1 +1 +1 +1 +\S+ \S+Z", shown)


def test_a_retired_consumer_is_listed_as_such(desk: OperatorDesk) -> None:
    assert desk.run("consumers", "retire", "billing", "--yes").exit_code == 0
    assert desk.told("consumers", "list") == []
    (one,) = desk.told("consumers", "list", "--retired")
    assert one["retired_at"] is not None
    assert "billing (retired)" in desk.run("consumers", "list", "--retired").stdout
    assert desk.run("parked", "list").exit_code == 0
    desk.consumer = desk.hire("park")
    desk.deliver("ada")
    assert desk.told("consumers", "list")[0]["retired_at"] is None


def test_where_nobody_consumes_the_list_says_so(sorter: StreamSorter) -> None:
    assert OperatorDesk(sorter).run("consumers", "list").stdout.startswith("no consumer is registered")


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (("ada", "--to", "earliest"), (-1, 1)),
        (("--all", "--to", "1"), (0, 0)),
        (("--match", "b*", "--by", "-1"), (3, 0)),
        (("ada", "bob", "--by", "-9"), (-1, -1)),
    ],
)
def test_a_reset_moves_the_checkpoints_it_names(
    desk: OperatorDesk, target: tuple[str, ...], after: tuple[int, int]
) -> None:
    done = desk.run("consumers", "reset", *target, "--yes")
    assert done.exit_code == 0, done.output
    assert checkpoints(desk) == after


def test_a_reset_says_what_it_does_and_shows_what_it_did(desk: OperatorDesk) -> None:
    done = desk.run("consumers", "reset", "--all", "--to", "earliest", "--yes")
    assert "Reset consumer billing in 2 queues: " in done.stderr
    assert "6 messages will come again, 0 will be passed over." in done.stderr
    assert re.search(r"ada +3 +-1 +3 +reset", done.stdout)
    desk.deliver("ada")
    assert desk.clerk.seqs("ada") == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_dry_run_asks_nothing_and_changes_nothing(desk: OperatorDesk) -> None:
    (one,) = desk.told("consumers", "reset", "ada", "--to", "1", "--dry-run")
    assert [one[name] for name in ("queue", "old", "new", "outcome")] == ["ada", 3, 0, "planned"]
    assert checkpoints(desk) == (3, 1)


def test_a_dry_run_tells_what_comes_again_and_what_is_passed_over(desk: OperatorDesk) -> None:
    shown = desk.run("consumers", "reset", "ada", "--to", "1", "--dry-run")
    assert "3 messages will come again, 0 will be passed over." in shown.stderr
    assert desk.run("consumers", "reset", "ada", "--to", "latest", "--dry-run").stderr.startswith("nothing to reset")


def test_a_no_changes_nothing(desk: OperatorDesk) -> None:
    done = desk.run("consumers", "reset", "--all", "--to", "earliest", answer="n\n")
    assert (done.exit_code, checkpoints(desk)) == (1, (3, 1))


def test_a_consumer_at_work_is_reset_by_force_only(desk: OperatorDesk) -> None:
    desk.put("ada", 4)
    desk.deliver("ada")
    asked = desk.run("consumers", "reset", "ada", "--to", "earliest", "--yes")
    assert asked.exit_code == 1
    (line,) = asked.stderr.splitlines()
    assert line.startswith("stream-sort: consumer 'billing' is at work: queue 'ada' moved within the last 300 seconds")
    assert "force the reset (--force): " in line
    assert checkpoints(desk) == (4, 1)
    assert desk.run("consumers", "reset", "ada", "--to", "earliest", "--yes", "--force").exit_code == 0
    assert checkpoints(desk) == (-1, 1)


MEANT = "there is no queue 'billing', but a consumer of that name: did you mean --consumer billing?"


@pytest.mark.parametrize(
    "words",
    [
        ["consumers", "reset", "billing"],
        ["consumers", "reset", "billing", "--to", "earliest"],
        ["consumers", "reset", "ada", "billing", "--to", "earliest", "--dry-run"],
        ["parked", "list", "billing"],
        ["parked", "redrive", "billing"],
        ["parked", "discard", "billing", "1", "--reason", "x"],
        ["dead", "list", "billing"],
        ["dead", "show", "billing", "1"],
        ["dead", "redrive", "billing"],
        ["dead", "discard", "billing", "--reason", "x"],
    ],
    ids=" ".join,
)
def test_a_consumer_named_in_place_of_a_queue_gets_a_did_you_mean(desk: OperatorDesk, words: list[str]) -> None:
    done = desk.run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"stream-sort: {MEANT}")


def test_a_queue_that_has_the_name_of_a_consumer_is_a_queue(desk: OperatorDesk) -> None:
    desk.put("billing", 0, 1)
    desk.deliver("billing")
    (one,) = desk.told("consumers", "reset", "billing", "--to", "earliest", "--dry-run")
    assert (one["queue"], one["new"]) == ("billing", -1)
    assert desk.told("parked", "list", "billing") == []


def test_a_reset_that_fails_in_one_queue_resets_the_others_says_why_and_fails(
    desk: OperatorDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = DynamoCheckpoints.commit

    def fails_for_ada(store: Any, old: Any, new: Any) -> Any:
        if new.queue == "ada":
            raise StoreUnavailable("throttled")
        return commit(store, old, new)

    monkeypatch.setattr(DynamoCheckpoints, "commit", fails_for_ada)
    done = desk.run("consumers", "reset", "--all", "--to", "earliest", "--yes")
    assert (done.exit_code, checkpoints(desk)) == (1, (3, -1))
    assert re.search(r"bob +1 +-1 +1 +reset", done.stdout)
    assert "queue ada: perhaps not reset, try it again: StoreUnavailable: throttled" in done.stderr


def test_a_reset_with_nothing_to_do_says_so(desk: OperatorDesk) -> None:
    done = desk.run("consumers", "reset", "--all", "--to", "latest")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "nothing to reset: every checkpoint is there already\n"
    assert desk.told("consumers", "reset", "--match", "zzz*", "--to", "earliest") == []


def test_a_reset_beyond_what_is_there_says_what_it_was_taken_for(desk: OperatorDesk) -> None:
    done = desk.run("consumers", "reset", "ada", "--to", "99")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == (
        "nothing to reset: every checkpoint is there already; --to 99 is beyond ada at position 3, and is taken as the "
        "seq after it\n"
    )
    assert desk.run("consumers", "reset", "--all", "--to", "earliest", "--yes").exit_code == 0
    told = desk.run("consumers", "reset", "--all", "--to", "-5").stderr
    assert "; --to -5 is before the first seq of ada (0), bob (0), and is taken as that" in told
    assert "taken" not in desk.run("consumers", "reset", "--all", "--to", "0").stderr


def test_a_retired_consumer_is_listed_no_more(desk: OperatorDesk) -> None:
    desk.put("ada", 4)
    done = desk.run("consumers", "retire", "billing", "--yes")
    assert (done.exit_code, done.stdout) == (0, "retired: billing\n")
    for again in (("retire", "billing"), ("reset", "--all", "--consumer", "billing", "--to", "earliest")):
        refused = desk.run("consumers", *again, "--yes")
        assert refused.exit_code == 1
        assert "consumer 'billing' is retired" in refused.stderr
    assert "it lags by 1 message in 1 queue" in done.stderr
    assert desk.told("consumers", "list") == []


def test_a_trim_deletes_what_all_consumers_passed_and_refuses_the_rest(desk: OperatorDesk) -> None:
    desk.put("ada", 4)
    refused = desk.run("trim", "ada", "--through", "4", "--yes")
    assert refused.exit_code == 1
    assert "stream-sort: queue 'ada' cannot be trimmed through 4: consumer 'billing' stands at 3" in refused.stderr
    assert desk.told("trim", "ada", "--through", "2", "--yes") == {"queue": "ada", "through": 2, "deleted": 3}
    assert [one["seq"] for one in desk.sorter.read("ada")] == [3, 4]


def test_a_trim_asks_first(desk: OperatorDesk) -> None:
    done = desk.run("trim", "ada", "--through", "2", answer="n\n")
    assert done.exit_code == 1
    assert "Delete the messages of queue ada through seq 2, for good; it stands at 3." in done.stderr
    assert len(list(desk.sorter.read("ada"))) == 4


def test_without_a_control_table_a_trim_wants_to_hear_that_there_are_no_consumers(desk: OperatorDesk) -> None:
    del desk.env["STREAM_SORT_CONTROL_TABLE"]
    told = desk.run("trim", "ada", "--through", "2", "--yes").stderr
    assert "no control table is named" in told
    assert "--no-consumers if nobody consumes" in told
    assert desk.run("trim", "ada", "--through", "2", "--yes", "--no-consumers").exit_code == 0
    assert len(list(desk.sorter.read("ada"))) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["consumers", "reset", "--to", "earliest"], 2, "which queues?"),
        (["consumers", "reset", "ada"], 2, "give one of --to earliest"),
        (["consumers", "reset", "ada", "--to", "1", "--by", "1"], 2, "give one of --to earliest"),
        (["consumers", "reset", "ada", "--to", "noon"], 2, "it must be 'earliest', 'latest' or a seq"),
        (["consumers", "reset", "eve", "--to", "latest"], 1, "there is no queue 'eve'"),
        (["consumers", "reset", "ada", "--to", "0", "--consumer", "x"], 1, "no consumer 'x' is registered"),
        (["consumers", "reset", "ada", "--to", "0", "--consumer", "a b"], 2, "a name has 1 to 64 letters"),
        (["consumers", "retire", "biling", "--yes"], 1, "no consumer 'biling' is registered; there are 'billing'"),
        (["trim", "ada", "--through", "1", "--no-consumers"], 2, "the control table is Control"),
        (["trim", "eve", "--through", "1", "--yes"], 1, "there is no queue 'eve'"),
        (["trim", "eve", "--through", "1"], 1, "there is no queue 'eve'"),
        (["trim", "ada", "--through", "9", "--yes"], 1, "released up to seq 3"),
    ],
)
def test_what_cannot_be_is_one_clear_line(desk: OperatorDesk, arguments: list[str], code: int, told: str) -> None:
    done = desk.run(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("stream-sort: ")
    assert told in line


def test_a_hostile_queue_name_reaches_no_terminal(desk: OperatorDesk) -> None:
    name = "a [red]b[/red] \u202ec"
    desk.put(name, 0)
    for arguments in (("consumers", "reset", name, "--to", "latest", "--yes"), ("late", "list", name)):
        done = desk.run(*arguments)
        assert done.exit_code == 0
        assert "\u202e" not in done.output
    shown = desk.run("consumers", "reset", "--all", "--by", "-9", "--dry-run")
    assert "a [red]b[/red] \\u202ec" in shown.stdout
    raw = desk.run("consumers", "reset", name, "--by", "-9", "--dry-run", "--json").stdout
    assert "\u202e" not in raw
    assert json.loads(raw)[0]["queue"] == name


@pytest.mark.parametrize("back", [("--by-duration", "1h"), ("--to-time", "2020-01-01T00:00Z")], ids=lambda it: it[0])
def test_a_reset_by_time_brings_back_what_arrived_since(desk: OperatorDesk, back: tuple[str, str]) -> None:
    assert desk.run("consumers", "reset", "ada", *back, "--yes").exit_code == 0
    assert checkpoints(desk) == (-1, 1)
    assert desk.consumer.catch_up("ada") == 4


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--to-time", "2026-11-01T12:00", "has no time zone; write it as 2026-11-01T12:00Z"),
        ("--to-time", "2026-11-01", "has no time zone; write it as 2026-11-01T00:00Z"),
        ("--to-time", "2026-W44", "has no time zone; write it as 2026-10-26T00:00Z"),
        ("--to-time", "2026-11-01T12:00:01.5", "has no time zone; write it as 2026-11-01T12:00:01.500000Z"),
        ("--to-time", "yesterday", "'yesterday' is not a time; write it as 2026-11-01T12:00Z"),
        ("--to-time", "9999-01-01T00:00Z", "'9999-01-01T00:00Z' is in the future; for new messages only: --to latest"),
        ("--by-duration", "2 fortnights", "is no duration; write one as 30s, 5m, 1h, 7d or 1d12h"),
        ("--by-duration", "", "is no duration"),
        ("--by-duration", "0s", "is too short"),
    ],
)
def test_what_is_no_time_is_told_in_one_line(desk: OperatorDesk, option: str, text: str, told: str) -> None:
    done = desk.run("consumers", "reset", "ada", option, text, "--yes")
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert checkpoints(desk) == (3, 1)


def test_a_reset_takes_one_target(desk: OperatorDesk) -> None:
    for target in ((), ("--to", "latest", "--by-duration", "1h"), ("--to-time", "2020-01-01T00:00Z", "--by", "1")):
        done = desk.run("consumers", "reset", "ada", *target, "--yes")
        assert "give one of --to earliest|latest|SEQ, --by N, --to-time TIME and --by-duration DURATION" in done.stderr


@pytest.mark.parametrize(
    "back",
    [
        ("--to-time", "0001-01-01T00:00Z"),
        ("--by-duration", "30000d"),
        ("--by-duration", "999999999d"),
        ("--by-duration", "999999999d999999999h"),
    ],
    ids=lambda it: it[1],
)
def test_a_time_long_before_all_messages_brings_back_all_of_them(desk: OperatorDesk, back: tuple[str, str]) -> None:
    done = desk.run("consumers", "reset", "ada", *back, "--yes")
    assert (done.exit_code, done.exception) == (0, None), done.stderr
    assert checkpoints(desk) == (-1, 1)


@pytest.mark.parametrize("text", ["2020-01-01", "20200101", "2020-W01", "2020-01-01T12", "2020-01-01 12:00:01.25"])
def test_the_time_that_an_error_advises_is_taken(desk: OperatorDesk, text: str) -> None:
    refused = desk.run("consumers", "reset", "ada", "--to-time", text, "--yes")
    (advised,) = re.findall(r"write it as (\S+) for UTC", refused.stderr)
    assert desk.run("consumers", "reset", "ada", "--to-time", advised, "--yes").exit_code == 0
    assert checkpoints(desk) == (-1, 1)
