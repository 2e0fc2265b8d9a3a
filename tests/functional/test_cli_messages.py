from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stream_sort import AccessDenied, PutResult, StoreUnavailable, StreamSorter
from stream_sort.cli import messages
from stream_sort.cli.message_file import Rejects
from tests.functional.command_line import VARIABLES, Line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.functional.conftest import Table


@pytest.fixture
def line(dynamo: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    assert dynamo.client
    return Line()


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(one) for one in text.splitlines()]


def test_put_takes_json_lines_and_run_again_stores_nothing_twice(
    line: Line, tmp_path: Path, sorter: StreamSorter
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text("\n".join(json.dumps({"queue": "ada", "seq": seq}) for seq in (2, 0, 1)) + "\n\n")
    assert line.run("put", str(file)).stdout.startswith("3 accepted, 0 duplicates, 0 conflicts, 0 late, 0 rejected; 3 ")
    again = line.json("put", str(file))
    assert (again["accepted"], again["duplicates"], again["rejects"]) == (0, 3, None)
    assert sorter.position("ada") == 2
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("text", ['[{"queue":"ada","seq":0}]', '\ufeff\n [\n{"queue":"ada","seq":0}\n]\n'])
def test_put_takes_an_array_from_stdin(line: Line, text: str, sorter: StreamSorter) -> None:
    assert "1 accepted" in line.run("put", "-", given=text.encode()).stdout
    assert sorter.position("ada") == 0


def test_put_names_the_first_conflicts_on_the_screen(line: Line, tmp_path: Path, sorter: StreamSorter) -> None:
    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(9))
    file = tmp_path / "in.jsonl"
    file.write_text("\n".join(json.dumps({"queue": "ada", "seq": seq, "text": "new"}) for seq in range(2, 9)))
    result = line.run("put", str(file), code=1)
    assert "7 conflicts" in result.stdout
    assert result.stderr.splitlines()[0] == (
        "conflicts, another message is stored there and stays: queue ada, seq 2 (line 1); queue ada, seq 3 (line 2); "
        "queue ada, seq 4 (line 3); queue ada, seq 5 (line 4); queue ada, seq 6 (line 5) and 2 more"
    )
    told = line.json("put", str(file), code=1)
    assert told["first_conflicts"][0] == {"queue": "ada", "seq": 2, "place": 1, "unit": "line"}
    assert len(told["first_conflicts"]) == 5
    file.write_text('[{"queue": "bob", "seq": 0}, {"queue": "bob", "seq": 0, "text": "new"}]')
    one = line.run("put", str(file), code=1).stderr.splitlines()[0]
    assert one == ("conflict, another message is stored there and stays: queue bob, seq 0 (element 2)")


def test_put_without_a_conflict_names_none(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"queue": "ada", "seq": 0}\n{"queue": "ada"}\n')
    assert "stays" not in line.run("put", str(file), code=1).stderr
    assert line.json("put", str(file), code=1)["first_conflicts"] == []


def test_what_is_refused_is_in_a_file_with_its_line_and_reason(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    given = ({"queue": "ada", "seq": 0}, "", {"queue": "ada"}, {"queue": "ada", "seq": 0, "x": 1}, [1])
    lines = [json.dumps(one) if one else "{broken" for one in (*given, {"queue": "ada", "seq": 1})]
    file.write_text("\n".join(lines))
    result = line.run("put", str(file), code=1)
    assert "2 accepted, 0 duplicates, 1 conflict, 0 late, 3 rejected" in result.stdout
    assert "in.jsonl.rejects" in result.stderr
    rejects = lines_of((tmp_path / "in.jsonl.rejects").read_text())
    assert [one["line"] for one in rejects] == [2, 3, 4, 5]
    by_line = {one["line"]: one for one in rejects}
    assert "not JSON" in str(by_line[2]["reason"])
    assert by_line[2]["message"] == "{broken"
    assert "seq" in str(by_line[3]["reason"])
    assert "conflict" in str(by_line[4]["reason"])
    assert by_line[4]["message"] == {"queue": "ada", "seq": 0, "x": 1}


def test_a_message_over_several_lines_is_refused_with_the_next_step(line: Line, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps({"queue": "ada", "seq": 0}, indent=2))
    told = line.run("put", "one.json", code=1).stderr
    assert "the first, line 1: not JSON" in told
    assert "; is it a message over several lines? Put it on one line, or into [ ]" in told


def test_what_is_refused_of_an_array_is_told_by_its_element(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text(json.dumps([{"queue": "ada", "seq": 0}, {"queue": "ada"}], indent=2))
    assert "the first, element 2: " in line.run("put", "in.json", code=1).stderr
    (refused,) = lines_of((tmp_path / "in.json.rejects").read_text())
    assert list(refused) == ["element", "reason", "message"]
    told = line.run("put", "in.json.rejects", code=1).stderr
    assert "line 1: a line of a rejects file; " in told
    file.write_text('[{"queue": "ada", "seq": 0}]')
    line.run("put", "in.json")
    assert not (tmp_path / "in.json.rejects").exists()


def test_elements_that_are_alike_are_told_by_their_own_places(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    file.write_text('[5, 5, {"queue": "ada", "seq": 0}, 5]')
    line.run("put", str(file), code=1)
    lines = (tmp_path / "messages.json.rejects").read_text().splitlines()
    assert [json.loads(one)["element"] for one in lines] == [1, 2, 4]


def test_a_file_without_messages_is_told(line: Line, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    assert "empty.jsonl holds no message" in line.run("put", "empty.jsonl").stderr


def test_rejects_go_where_they_are_wanted(line: Line, tmp_path: Path) -> None:
    line.run("put", "-", "--rejects", str(tmp_path / "bad"), given="nonsense", code=1)
    assert [one["line"] for one in lines_of((tmp_path / "bad").read_text())] == [1]


@pytest.mark.parametrize("text", ["[", "[1,]", '[{"queue": "ada", "seq": NaN}]'])
def test_a_broken_array_is_bad_usage(line: Line, text: str) -> None:
    result = line.run("put", "-", given=text, code=2)
    assert result.stderr.startswith("stream-sort: stdin: not ")


def test_a_broken_array_is_told_with_the_name_of_its_file(line: Line, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('[{"queue": "ada"')
    assert line.error("put", "cut.json", code=2).startswith("cut.json: not JSON: ")


@pytest.mark.parametrize("link", ["same", "hard", "symbolic", "default"])
def test_the_file_that_is_put_is_not_where_rejects_go(line: Line, tmp_path: Path, link: str) -> None:
    file, rejects = tmp_path / "in.jsonl", tmp_path / ("in.jsonl.rejects" if link == "default" else "other")
    file.write_text("nonsense\n")
    if link == "hard":
        rejects.hardlink_to(file)
    elif link == "same":
        rejects = tmp_path / "." / "in.jsonl"
    else:
        rejects.symlink_to(file)
    words = [] if link == "default" else ["--rejects", str(rejects)]
    assert "that is the file to put" in line.error("put", "in.jsonl", *words, code=2)
    assert file.read_text() == "nonsense\n"


def test_the_file_on_stdin_is_not_where_rejects_go(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text("nonsense\n")
    program = [sys.executable, "-c", "from stream_sort.cli.app import main; main()"]
    words = ["put", "-", "--rejects", str(file), "--items-table", "Items", "--cursor-table", "Cursor"]
    with file.open("rb") as given:
        done = subprocess.run([*program, *words], stdin=given, capture_output=True, text=True, check=False)
    assert (done.returncode, file.read_text()) == (2, "nonsense\n")
    assert "that is the file to put" in done.stderr


def test_rejects_of_an_earlier_run_go_when_nothing_is_refused(line: Line, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("nonsense")
    line.run("put", "in.jsonl", code=1)
    assert (tmp_path / "in.jsonl.rejects").exists()
    (tmp_path / "in.jsonl").write_text('{"queue": "ada", "seq": 0}')
    line.run("put", "in.jsonl")
    assert not (tmp_path / "in.jsonl.rejects").exists()


@pytest.mark.parametrize(("words", "names"), [([], "stdin{}.rejects"), (["--rejects", "bad"], "bad{}")])
def test_rejects_of_stdin_are_nowhere_else_and_stay(line: Line, tmp_path: Path, words: list[str], names: str) -> None:
    for run, number in enumerate(("", "-2", "-3")):
        told = line.run("put", "-", *words, given=f"nonsense {run}", code=1).stderr
        assert f"the reasons: {names.format(number)}; " in told
        line.run("put", "-", *words, given='{"queue": "ada", "seq": 0}')
    kept = {file.name: lines_of(file.read_text())[0]["message"] for file in tmp_path.iterdir()}
    assert kept == {names.format(number): f"nonsense {run}" for run, number in enumerate(("", "-2", "-3"))}


def test_rejects_of_stdin_go_to_a_file_that_was_made_for_them(line: Line, tmp_path: Path) -> None:
    (tmp_path / "bad").touch()
    line.run("put", "-", "--rejects", "bad", given="nonsense", code=1)
    assert [file.name for file in tmp_path.iterdir()] == ["bad"]
    assert line.json("put", "-", "--rejects", "/dev/null", code=0)["rejects"] is None


@pytest.mark.parametrize("where", ["nowhere/x", "in.jsonl/x", "."])
def test_rejects_that_cannot_be_written_are_told_before_the_first_message(
    line: Line, tmp_path: Path, sorter: StreamSorter, where: str
) -> None:
    (tmp_path / "in.jsonl").write_text('{"queue": "ada", "seq": 0}\nnonsense\n')
    assert line.error("put", "in.jsonl", "--rejects", where, code=2).startswith(f"--rejects {where}: ")
    assert sorter.stores.items.highest("ada") is None
    line.run("put", "in.jsonl", "--rejects", "bad", code=1)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad", "in.jsonl"]


def test_a_check_of_the_rejects_leaves_no_file(line: Line, tmp_path: Path) -> None:
    line.run("put", "-", "--rejects", "bad", given='{"queue": "ada", "seq": 0}')
    assert list(tmp_path.iterdir()) == []


def test_rejects_that_cannot_be_written_after_all_are_not_said_to_be_there(line: Line, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('nonsense\n{"queue": "ada", "seq": 0}\n')
    (tmp_path / "in.jsonl.rejects").mkdir()
    told = line.run("put", "in.jsonl", code=2)
    assert "the reasons" not in told.stderr
    assert "in.jsonl.rejects: Is a directory" in told.stderr


def test_what_a_shell_pipes_in_by_name_is_as_stdin(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"nonsense\n")
    os.close(write)
    rejects = Rejects.of(f"/dev/fd/{read}", None)
    os.close(read)
    assert str(rejects.path) == "stdin.rejects"
    assert not list(tmp_path.iterdir())


REPLAYED = {"queue": "lo", "seq": 1, "item": {"amount": 6, "queue": "lo", "seq": 1}}


def test_a_line_of_a_backfill_is_refused_with_the_next_step(line: Line, tmp_path: Path, sorter: StreamSorter) -> None:
    (tmp_path / "part.jsonl").write_text(json.dumps(REPLAYED))
    told = line.run("put", "part.jsonl", code=1)
    assert "0 accepted, 0 duplicates, 0 conflicts, 0 late, 1 rejected" in told.stdout
    assert "line 1: a line of backfill --sink jsonl; the message is its item: use backfill --sink table" in told.stderr
    assert "jq -c .item" in told.stderr
    assert sorter.stores.items.highest("lo") is None


@pytest.mark.parametrize(
    "changed", [{"more": 1}, {"item": 5}, {"item": {"queue": "lo", "seq": 2}}, {"item": {"text": "x"}}], ids=str
)
def test_a_message_that_only_looks_like_a_line_of_a_backfill_is_taken(line: Line, changed: dict[str, object]) -> None:
    assert "1 accepted" in line.run("put", "-", given=json.dumps(REPLAYED | changed)).stdout


def test_a_line_of_rejects_is_refused_with_the_next_step(line: Line, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"queue": "ada"}')
    line.run("put", "in.jsonl", code=1)
    told = line.run("put", "in.jsonl.rejects", code=1).stderr
    assert "line 1: a line of a rejects file; put the message in it, once it is corrected: jq -c .message" in told


@pytest.mark.parametrize("text", ["", "mine", '{"line": 1}\n', "[1]\n"])
def test_a_file_that_is_none_of_rejects_stays(line: Line, tmp_path: Path, text: str) -> None:
    (tmp_path / "notes").write_text(text)
    line.run("put", "-", "--rejects", "notes", given='{"queue": "ada", "seq": 0}')
    assert (tmp_path / "notes").read_text() == text


def test_put_ends_where_nobody_answers_and_says_how_to_go_on(line: Line, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(f'{{"queue": "q{seq}", "seq": 0}}\n' for seq in range(2_000)))
    told = line.error("put", "in.jsonl", "--endpoint-url", "http://127.0.0.1:9")
    assert told.startswith("stopped after 0 messages; run it again to go on. ")
    assert "127.0.0.1:9" in told
    assert [one.name for one in tmp_path.iterdir()] == ["in.jsonl"]


def test_put_ends_when_the_tables_go_out_of_reach_half_way(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_SORT_WINDOW", "2")
    store, calls = StreamSorter.put_many, []

    def put_many(sorter: StreamSorter, messages: Iterable[dict[str, object]]) -> PutResult:
        calls.append(1)
        if len(calls) < 3:
            return store(sorter, messages)
        return PutResult(rejected=[(one, StoreUnavailable("gone")) for one in messages])

    monkeypatch.setattr(StreamSorter, "put_many", put_many)
    (tmp_path / "in.jsonl").write_text("".join(f'{{"queue": "ada", "seq": {seq}}}\n' for seq in range(20)))
    result = line.run("put", "in.jsonl", code=1)
    assert result.stdout.startswith("3 accepted, ")
    assert result.stderr == "stream-sort: stopped after 3 messages; run it again to go on. gone\n"


def out_of_reach_after(monkeypatch: pytest.MonkeyPatch, windows: int, error: BaseException) -> None:
    """From the window after these on, the tables do not answer, or the run is interrupted."""
    monkeypatch.setenv("STREAM_SORT_WINDOW", "2")
    store, calls = StreamSorter.put_many, []

    def put_many(sorter: StreamSorter, messages: Iterable[dict[str, object]]) -> PutResult:
        calls.append(1)
        if len(calls) <= windows:
            return store(sorter, messages)
        if not isinstance(error, StoreUnavailable):
            raise error
        return PutResult(rejected=[(one, error) for one in messages])

    monkeypatch.setattr(StreamSorter, "put_many", put_many)


@pytest.mark.parametrize(
    ("error", "code"), [(StoreUnavailable("gone"), 1), (AccessDenied("not allowed"), 1), (KeyboardInterrupt(), 130)]
)
def test_what_was_read_from_a_pipe_and_not_stored_is_kept_when_put_stops(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    out_of_reach_after(monkeypatch, 2, error)
    given = [{"queue": "ada", "seq": seq} for seq in range(20)]
    told = line.run("put", "-", given="\n".join(map(json.dumps, given)), code=code).stderr
    kept = lines_of((tmp_path / "stdin.rejects").read_text())
    assert [(one["line"], one["message"]) for one in kept] == [(4, given[3]), (5, given[4])]
    assert all("put it again" in str(one["reason"]) for one in kept)
    assert "2 messages read but not known to be stored: kept in stdin.rejects" in told
    assert "what follows line 5 was not read" in told
    assert "run it again" not in told


def test_the_rest_of_an_array_from_a_pipe_is_kept_when_put_stops(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out_of_reach_after(monkeypatch, 2, StoreUnavailable("gone"))
    given = [{"queue": "ada", "seq": seq} for seq in range(20)]
    told = line.run("put", "-", given=json.dumps(given), code=1).stderr
    kept = lines_of((tmp_path / "stdin.rejects").read_text())
    assert [(one["element"], one["message"]) for one in kept] == list(enumerate(given, 1))[3:]
    assert "17 messages read but not known to be stored: kept in stdin.rejects" in told
    assert "was not read" not in told


def test_put_into_a_table_with_other_keys_is_one_line_without_a_guess(line: Line) -> None:
    result = line.run("put", "-", "--queue-key", "lane", given='{"lane": "ada", "seq": 0}', code=2)
    assert "check queue_key and seq_key" in result.stderr


@pytest.mark.parametrize("table", ["Nowhere", "OtherCursor"])
def test_a_file_for_a_wrong_items_table_is_one_line_and_none_of_its_messages_is_tried(
    line: Line, tmp_path: Path, dynamo: Table, sorter: StreamSorter, table: str
) -> None:
    sorter.put_many({"queue": f"q{number}", "seq": 0} for number in range(40))
    StreamSorter("OtherItems", "OtherCursor", client=dynamo.client).create_tables()
    (tmp_path / "in.jsonl").write_text("".join(f'{{"queue": "q{at % 40}", "seq": {at // 40}}}\n' for at in range(400)))
    told = line.error("put", "in.jsonl", "--items-table", table, code=1 if table == "Nowhere" else 2)
    assert f"table '{table}' in eu-west-1" in told
    assert [one.name for one in tmp_path.iterdir()] == ["in.jsonl"]
    assert not dynamo.client.scan(TableName="OtherCursor")["Items"]


def test_a_file_that_is_not_there_is_one_line(line: Line) -> None:
    assert "nothing.jsonl: No such file" in line.error("put", "nothing.jsonl", code=2)
    assert "Is a directory" in line.error("put", ".", code=2)


def test_ctrl_c_ends_put_cleanly(line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamSorter, "put_many", interrupted)
    (tmp_path / "in.jsonl").write_text('{"queue": "ada", "seq": 0}')
    assert "run it again to go on" in line.run("put", "in.jsonl", code=130).stderr


def test_ctrl_c_tells_the_last_refusal(line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StreamSorter.put_many

    def once(sorter: StreamSorter, messages: Iterable[dict[str, object]]) -> PutResult:
        monkeypatch.setattr(StreamSorter, "put_many", interrupted)
        return store(sorter, messages)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamSorter, "put_many", once)
    (tmp_path / "in.jsonl").write_text('{"queue": "ada"}\n{"queue": "ada", "seq": 0}\n')
    told = line.run("put", "in.jsonl", code=130).stderr
    assert (
        "stopped after at least 1 message; run it again to go on. The last that was refused: message (queue 'ada'"
        in told
    )


def test_put_counts_what_came_late(line: Line, sorter: StreamSorter) -> None:
    sorter.skip("ada", 0)
    told = line.run("put", "-", given='{"queue": "ada", "seq": 0}')
    assert "1 late" in told.stdout
    kept = "late: their seqs were skipped; they are kept, and never delivered: see stream-sort late list"
    assert told.stderr.splitlines() == [kept]


def test_read_prints_a_range_in_order(line: Line, sorter: StreamSorter) -> None:
    sorter.put_many({"queue": "ada", "seq": seq, "data": b"\x00\xff"} for seq in (3, 1, 0, 2, 5))
    assert [one["seq"] for one in lines_of(line.run("read", "ada").stdout)] == [0, 1, 2, 3]
    some = lines_of(line.run("read", "ada", "--after", "0", "--through", "2").stdout)
    assert some == [{"queue": "ada", "seq": seq, "data": "AP8="} for seq in (1, 2)]


def test_what_is_read_from_the_table_before_a_restore_is_put_back(
    line: Line, dynamo: Table, sorter: StreamSorter
) -> None:
    sorter.put_many({"queue": "eve", "seq": seq, "amount": seq} for seq in range(7))
    before = StreamSorter("Before", "Unused", client=dynamo.client, in_flight=1)
    before.create_tables()
    before.put_many(sorter.read("eve"))
    for seq in (5, 6):
        dynamo.client.delete_item(TableName="Items", Key={"queue": {"S": "eve"}, "seq": {"N": str(seq)}})
    found = line.run("read", "eve", "--after", "4", "--through", "6", "--items-table", "Before").stdout
    assert "2 accepted" in line.run("put", "-", given=found).stdout
    assert [one["amount"] for one in sorter.read("eve")] == list(range(7))


def test_read_says_what_it_cannot_read(line: Line, sorter: StreamSorter) -> None:
    sorter.put({"queue": "ada", "seq": 0})
    assert "bob" in line.error("read", "bob")
    result = line.run("read", "ada", "--through", "1", code=1)
    assert len(result.stderr.splitlines()) == 1
    line.run("read", "ada", "--after", "x", code=2)


def test_read_says_what_is_trimmed(line: Line, sorter: StreamSorter) -> None:
    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(3))
    sorter.put({"queue": "bob", "seq": 0})
    sorter.skip("bob", 1)
    sorter.trim("bob", 0, control_table=None)
    sorter.trim("ada", 1, control_table=None)
    shown = line.run("read", "ada")
    assert shown.stderr == "ada: seqs up to 1 are trimmed and not shown\n"
    assert [one["seq"] for one in lines_of(shown.stdout)] == [2]
    assert line.run("read", "ada", "--after", "1").stderr == ""
    assert "bob: seqs up to 0 are trimmed" in line.run("read", "bob").stderr


def test_payloads_are_shown_and_not_obeyed(line: Line, sorter: StreamSorter) -> None:
    text = "\x1b]0;owned\x07\x9b2J\u202e\u2028"
    sorter.put({"queue": "ada", "seq": 0, "text": text, "name": "né"})
    told = line.run("read", "ada").stdout
    assert told.count("\n") == 1
    assert not set(told) & set(text) - set("]0;owned2J")
    assert "né" in told
    assert json.loads(told)["text"] == text


def test_tail_follows_queues_and_those_that_begin_later(
    line: Line, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps = []

    def nap(_: float) -> None:
        naps.append(1)
        if len(naps) > 2:
            raise KeyboardInterrupt
        sorter.put_many({"queue": name, "seq": len(naps)} for name in ("ada", "bob"))
        sorter.put({"queue": "new", "seq": len(naps) - 1})

    sorter.put_many({"queue": name, "seq": 0} for name in ("ada", "bob"))
    monkeypatch.setattr(messages, "sleep", nap)
    done = line.run("tail", code=130)
    assert done.stderr.startswith("all queues: messages released from now on; Ctrl-C ends it")
    told = lines_of(done.stdout)
    assert sorted((str(one["queue"]), one["seq"]) for one in told) == [
        *[("ada", 1), ("ada", 2)],
        *[("bob", 1), ("bob", 2)],
        *[("new", 0), ("new", 1)],
    ]


def test_tail_begins_where_it_is_told(line: Line, sorter: StreamSorter) -> None:
    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(5))
    sorter.put({"queue": "bob", "seq": 0})
    shown = {
        since: [one["seq"] for one in lines_of(line.run("tail", "ada", "--since", since, "--once").stdout)]
        for since in ("earliest", "3", "9", "latest")
    }
    assert shown == {"earliest": [0, 1, 2, 3, 4], "3": [3, 4], "9": [], "latest": []}
    assert "earliest" in line.error("tail", "--since", "yesterday", code=2)


def test_tail_tells_of_a_queue_that_is_not_there(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    assert "there is no queue 'beaa'" in line.error("tail", "beaa", "--once")
    monkeypatch.setattr(messages, "sleep", interrupted)
    assert "beaa: there is no such queue yet; it is shown once it begins" in line.run("tail", "beaa", code=130).stderr


LOST = "queue 'ada' had a cursor row and it is gone"


@pytest.mark.parametrize("words", [["read"], ["read", "--after", "0"], ["tail"], ["tail", "--once"]], ids=" ".join)
def test_a_lost_cursor_row_is_no_queue_without_messages(
    line: Line, dynamo: Table, sorter: StreamSorter, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(3))
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "ada"}})
    monkeypatch.setattr(messages, "sleep", interrupted)
    told = line.error(words[0], "ada", *words[1:])
    assert told.startswith(LOST)
    assert "stream-sort recover ada" in told


def test_a_cursor_row_that_is_lost_while_tail_follows_it_is_told(
    line: Line, dynamo: Table, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps = []

    def nap(_: float) -> None:
        naps.append(1)
        if len(naps) > 1:
            raise KeyboardInterrupt
        dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "ada"}})

    sorter.put({"queue": "ada", "seq": 0})
    monkeypatch.setattr(messages, "sleep", nap)
    done = line.run("tail", "ada", code=1)
    announced, told = done.stderr.splitlines()
    assert announced.startswith("ada: messages released from now on")
    assert told.startswith(f"stream-sort: {LOST}")


def test_tail_says_what_was_trimmed_and_goes_on(
    line: Line, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nap(_: float) -> None:
        if sorter.position("ada") == 9:
            raise KeyboardInterrupt
        sorter.put_many({"queue": "ada", "seq": seq} for seq in range(5, 10))
        sorter.trim("ada", 7, control_table=None)

    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(5))
    monkeypatch.setattr(messages, "sleep", nap)
    result = line.run("tail", "ada", code=130)
    assert "ada: seqs up to 7 are trimmed" in result.stderr
    assert [one["seq"] for one in lines_of(result.stdout)] == [8, 9]
