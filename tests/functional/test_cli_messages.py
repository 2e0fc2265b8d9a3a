from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter
from stream_sort.cli import messages
from tests.functional.command_line import VARIABLES, Line

if TYPE_CHECKING:
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


def test_what_is_refused_is_in_a_file_with_its_line_and_reason(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    given = ({"queue": "ada", "seq": 0}, "", {"queue": "ada"}, {"queue": "ada", "seq": 0, "x": 1}, [1])
    lines = [json.dumps(one) if one else "{broken" for one in (*given, {"queue": "ada", "seq": 1})]
    file.write_text("\n".join(lines))
    result = line.run("put", str(file), code=1)
    assert "2 accepted, 0 duplicates, 1 conflicts, 0 late, 3 rejected" in result.stdout
    assert "in.jsonl.rejects" in result.stderr
    rejects = lines_of((tmp_path / "in.jsonl.rejects").read_text())
    assert sorted(one["line"] for one in rejects) == [2, 3, 4, 5]
    by_line = {one["line"]: one for one in rejects}
    assert "not JSON" in str(by_line[2]["reason"])
    assert by_line[2]["message"] == "{broken"
    assert "seq" in str(by_line[3]["reason"])
    assert "conflict" in str(by_line[4]["reason"])
    assert by_line[4]["message"] == {"queue": "ada", "seq": 0, "x": 1}


def test_rejects_go_where_they_are_wanted(line: Line, tmp_path: Path) -> None:
    line.run("put", "-", "--rejects", str(tmp_path / "bad"), given="nonsense", code=1)
    assert [one["line"] for one in lines_of((tmp_path / "bad").read_text())] == [1]


@pytest.mark.parametrize("text", ["[", "[1,]", '[{"queue": "ada", "seq": NaN}]'])
def test_a_broken_array_is_bad_usage(line: Line, text: str) -> None:
    result = line.run("put", "-", given=text, code=2)
    assert result.stderr.startswith("stream-sort: not ")


def test_a_file_that_is_not_there_is_one_line(line: Line) -> None:
    assert "nothing.jsonl: No such file" in line.error("put", "nothing.jsonl", code=2)
    assert "Is a directory" in line.error("put", ".", code=2)


def test_ctrl_c_ends_put_cleanly(line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamSorter, "put_many", interrupted)
    (tmp_path / "in.jsonl").write_text('{"queue": "ada", "seq": 0}')
    assert "run it again to go on" in line.run("put", "in.jsonl", code=130).stderr


def test_put_counts_what_came_late(line: Line, sorter: StreamSorter) -> None:
    sorter.skip("ada", 0)
    assert "1 late" in line.run("put", "-", given='{"queue": "ada", "seq": 0}').stdout


def test_read_prints_a_range_in_order(line: Line, sorter: StreamSorter) -> None:
    sorter.put_many({"queue": "ada", "seq": seq, "data": b"\x00\xff"} for seq in (3, 1, 0, 2, 5))
    assert [one["seq"] for one in lines_of(line.run("read", "ada").stdout)] == [0, 1, 2, 3]
    some = lines_of(line.run("read", "ada", "--after", "0", "--through", "2").stdout)
    assert some == [{"queue": "ada", "seq": seq, "data": "AP8="} for seq in (1, 2)]


def test_read_says_what_it_cannot_read(line: Line, sorter: StreamSorter) -> None:
    sorter.put({"queue": "ada", "seq": 0})
    assert "bob" in line.error("read", "bob")
    result = line.run("read", "ada", "--through", "1", code=1)
    assert len(result.stderr.splitlines()) == 1
    line.run("read", "ada", "--after", "x", code=2)


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
    monkeypatch.setattr(messages.time, "sleep", nap)
    told = lines_of(line.run("tail", code=130).stdout)
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


def test_tail_says_what_was_trimmed_and_goes_on(
    line: Line, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nap(_: float) -> None:
        if sorter.position("ada") == 9:
            raise KeyboardInterrupt
        sorter.put_many({"queue": "ada", "seq": seq} for seq in range(5, 10))
        sorter.trim("ada", 7, control_table=None)

    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(5))
    monkeypatch.setattr(messages.time, "sleep", nap)
    result = line.run("tail", "ada", code=130)
    assert "ada: seqs up to 7 are trimmed" in result.stderr
    assert [one["seq"] for one in lines_of(result.stdout)] == [8, 9]
