from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer
from stream_sort.cli import report
from stream_sort.cli.output import visible
from stream_sort.insight import doubts
from tests.functional.command_line import VARIABLES, Line, examples_of
from tests.functional.report_scene import HOSTILE, POISON, WRITTEN_PAST_US, Scene, TakenApart

if TYPE_CHECKING:
    from stream_sort import StreamSorter
    from tests.functional.conftest import Table

# All that a page may consist of; nothing of it can load or run anything.
HTML = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "footer",
    "section",
    "div",
    "span",
    "p",
    "b",
}
HTML |= {"h1", "h2", "dl", "dt", "dd", "ul", "li", "figure", "figcaption", "bdi", "code"}
HTML |= {"table", "thead", "tbody", "tr", "th", "td"}
SVG = {"svg", "path", "text", "rect"}


@pytest.fixture
def line(dynamo: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert dynamo.client
    monkeypatch.chdir(tmp_path)
    return Line()


@pytest.fixture
def scene(dynamo: Table) -> Scene:
    scene = Scene(dynamo.client)
    scene.play()
    return scene


def page_of(line: Line, *words: str) -> TakenApart:
    return TakenApart(line.run("report", "-o", "-", *words).stdout)


def test_the_page_says_what_is_in_trouble_and_what_to_do(line: Line, scene: Scene) -> None:
    assert scene
    told = line.run("report")
    assert told.stdout.startswith("2 of 5 queues are in trouble: 1 parked, 1 waiting for a seq, 3 not all consumed (")
    text = " ".join(TakenApart(Path("report.html").read_text("utf-8")).texts)
    assert "2 of 5 queues are in trouble" in text
    assert re.search(r"Waits for seq 2-3, since 20..-..-.. ..:..:..Z \(\d+ min\)\. Policy: wait", text)
    assert re.search(r"Parked for billing at seq 2, since .* after 1 attempt; ", text)
    assert "stream-sort explain stuck" in text


def test_the_worst_queues_come_first(line: Line, scene: Scene) -> None:
    assert scene
    listed = page_of(line).texts
    names = listed[listed.index("All queues") :]
    order = [names.index(name) for name in ("stuck", "gapped", "behind", "half", "mended")]
    assert order == sorted(order)


def test_a_queue_with_a_dead_letter_is_not_well(line: Line, scene: Scene) -> None:
    scene.poison.add(("zed", 0))
    scene.put("zed", 0, 1)
    keen = scene.hire("keen", "dead_letter")
    for name in ("zed", "stuck", "gapped", "mended", "behind", "half"):
        keen.catch_up(name)
    for consumer in (scene.billing, scene.archive):
        consumer.retire()
    told = line.run("report").stdout
    assert told.startswith("3 of 6 queues are in trouble: 0 parked, 2 with dead letters, 1 waiting for a seq, 0 not ")
    texts = TakenApart(Path("report.html").read_text("utf-8")).texts
    text = " ".join(texts)
    assert "1 dead letter of keen: given up on, not delivered." in text
    assert texts.count("dead letters") == 2
    assert "every consumer is up to date, except for 2 dead letters." in text
    assert "stream-sort explain zed" in text
    keen.discard("zed", 0, "no such account")
    keen.discard("stuck", 2, "no such account")
    text = " ".join(page_of(line).texts)
    assert "dead letter" not in text
    assert "every consumer is up to date." in text


def test_no_name_error_or_payload_becomes_markup(line: Line, scene: Scene) -> None:
    scene.add_hostile()
    page = page_of(line)
    assert page.tags <= HTML | SVG
    loading = {"src", "srcset", "style", "action", "formaction", "background", "ping"}
    assert not [one for one in page.attributes if one[1] in loading or one[1].startswith("on")]
    assert all(value.startswith("#") for _, name, value in page.attributes if name.endswith("href"))
    for name in (*HOSTILE, WRITTEN_PAST_US):
        assert visible(name) in page.texts
    assert f"ValueError: {POISON}" in page.texts


def test_the_policy_of_the_page_forbids_all_but_its_own_style(line: Line, scene: Scene) -> None:
    assert scene
    (policy,) = [value for tag, name, value in page_of(line).attributes if tag == "meta" and "default-src" in value]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'", policy
    )


def test_nothing_but_names_errors_and_numbers_is_on_the_page(line: Line, scene: Scene) -> None:
    scene.sorter.put({"queue": "secret", "seq": 0, "card": "4111 1111"})
    assert "4111 1111" not in line.run("report", "-o", "-").stdout


def test_a_stack_without_queues_has_a_page_too(line: Line, sorter: StreamSorter) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    text = " ".join(page_of(line).texts)
    for told in ("No queues yet", "No message has arrived.", "No queue waited for a seq.", "No consumer is known."):
        assert told in text


def test_tables_without_a_control_table_have_a_page_too(
    line: Line, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAM_SORT_CONTROL_TABLE")
    sorter.put({"queue": "ada", "seq": 0})
    text = " ".join(page_of(line).texts)
    assert "The one queue is well" in text
    assert "No consumer is known." in text


def test_of_many_queues_only_the_worst_are_looked_at_closely(line: Line, dynamo: Table, sorter: StreamSorter) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    for number in range(500):
        row = {"queue": {"S": f"queue-{number:03}"}, "seq": {"N": "9"}, "_ss_first_seq": {"N": "0"}}
        dynamo.client.put_item(TableName="Cursor", Item=row)
    sorter.put_many({"queue": "worst", "seq": seq} for seq in (0, 1, 5))
    told = line.json("report", "--queues", "3", "--rows", "20")
    # The rows, the consumers, what waits in the one that no sweep has measured, two ranges of each of three queues, and
    # what arrived in the one that was active.
    assert told["requests"] == 1 + 1 + 1 + 2 * 3 + 1
    assert (told["verdict"]["queues"], told["verdict"]["waiting"], told["looked_at_closely"]) == (501, 1, 3)
    page = TakenApart(Path("report.html").read_text("utf-8"))
    assert len([text for text in page.texts if text.startswith("queue-")]) < 30
    assert "481 more queues are not shown; see --rows." in page.texts
    assert any("the worst 3 queues at most" in text for text in page.texts)


def test_all_of_500_queues_fit_onto_one_page(line: Line, dynamo: Table, sorter: StreamSorter) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    names = [f"queue-{number:03}" for number in range(500)]
    for name in names:
        dynamo.client.put_item(
            TableName="Cursor", Item={"queue": {"S": name}, "seq": {"N": "9"}, "_ss_first_seq": {"N": "0"}}
        )
    told = line.json("report")
    assert set(names) <= set(TakenApart(Path("report.html").read_text("utf-8")).texts)
    assert told["bytes"] < 1_000_000


def test_seqs_beyond_what_floats_hold_are_told_exactly(line: Line, sorter: StreamSorter) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    sorter.open("far", first_seq=2**62)
    sorter.put_many({"queue": "far", "seq": 2**62 + place} for place in (0, 1, 2, 4))
    text = " ".join(page_of(line).texts)
    assert f"Waits for seq {2**62 + 3}," in text
    assert f"{2**62 + 2:,}" in text


def test_the_axes_of_a_single_message_tell_no_number_twice(line: Line, sorter: StreamSorter) -> None:
    consumer = OrderedConsumer("process", lambda _: None, sorter=sorter)
    consumer.create_tables()
    consumer.catch_up("other")
    sorter.open("one", first_seq=7_654_321)
    sorter.put({"queue": "one", "seq": 7_654_321})
    page = line.run("report", "-o", "-").stdout
    written = {name: _labels(page, name) for name in ("panel-", "traffic-", "lag-")}
    assert written["panel-"] == ["7,654,321"]
    assert written["traffic-"] == ["1", "0", "1"]
    # The last is beside the bar.
    assert written["lag-"] == ["0", "1", "1"]


def _labels(page: str, name: str) -> list[str]:
    """The numbers in the first drawing of a name."""
    drawn = next(one for one in page.split("<svg")[1:] if f"drawing {name}" in one)
    return re.findall(r">([0-9,]+)</text>", drawn.partition("</svg>")[0])


def test_messages_without_a_time_of_arrival_are_left_out_and_counted(
    line: Line, dynamo: Table, sorter: StreamSorter
) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    for seq in range(3):
        dynamo.client.put_item(TableName="Items", Item={"queue": {"S": "theirs"}, "seq": {"N": str(seq)}})
    sorter.advance("theirs")
    sorter.put({"queue": "theirs", "seq": 3})
    assert "Left out, because their time of arrival is not usable: 3 messages." in page_of(line).texts


def test_a_doubt_that_a_close_look_settles_is_no_doubt_on_the_page(line: Line, sorter: StreamSorter) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    sorter.put_many({"queue": "gone", "seq": seq} for seq in (0, 2))
    sorter.put({"queue": "gone", "seq": 1})
    sorter.put_many({"queue": "there", "seq": seq} for seq in (0, 2, 4))
    sorter.put({"queue": "there", "seq": 1})
    assert {row.queue for row in sorter.stores.cursors.rows().rows if row.in_doubt} == {"gone", "there"}
    told = line.json("report", "--queues", "0")["verdict"]
    assert (told["queues"], told["waiting"]) == (2, 1)
    assert not [text for text in page_of(line).texts if "?" in text]


def test_doubts_are_settled_up_to_a_bound_and_the_rest_are_told(
    line: Line, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    OrderedConsumer("process", sorter=sorter).create_tables()
    for name in ("ada", "bob", "cleo"):
        sorter.put_many({"queue": name, "seq": seq} for seq in (0, 2, 4))
        sorter.put({"queue": name, "seq": 1})
    monkeypatch.setattr(doubts, "DOUBTS", 2)
    assert line.json("report")["verdict"]["waiting"] == 2
    texts = page_of(line).texts
    assert texts.count("waiting?") == 1
    assert [text for text in texts if "the items of 2 such queues were read, not of this one" in text]
    assert "0 not all consumed, 1 in doubt" in line.run("report").stdout


def test_json_tells_what_was_written(line: Line, scene: Scene) -> None:
    assert scene
    told = line.json("report", "-o", "page.html")
    assert told["report"] == str(Path("page.html").resolve())
    assert told["bytes"] == Path("page.html").stat().st_size
    assert told["headline"] == "2 of 5 queues are in trouble"
    verdict = {"queues": 5, "in_trouble": 2, "parked": 1, "dead": 0, "waiting": 1, "behind": 3, "due": 27}
    assert told["verdict"] == verdict | {"dead_letters": 0}


def test_a_report_is_replaced_and_no_other_file(line: Line, scene: Scene) -> None:
    assert scene
    notes = Path("notes.html")
    notes.write_text("mine")
    assert "not a report of stream-sort" in line.error("report", "-o", "notes.html", code=2)
    assert notes.read_text() == "mine"
    line.run("report", "-o", "notes.html", "--force")
    first = notes.read_text("utf-8")
    scene.put("fine", 0)
    line.run("report", "-o", "notes.html")
    assert "of 6 queues" in notes.read_text("utf-8")
    assert "of 5 queues" in first
    assert list(Path().iterdir()) == [notes]


def test_who_has_the_old_page_open_keeps_it_whole(line: Line, scene: Scene) -> None:
    line.run("report")
    with Path("report.html").open(encoding="utf-8") as old:
        scene.put("fine", 0)
        line.run("report")
        told = old.read()
        assert "of 5 queues" in told
        assert told.endswith("</html>\n")


def test_a_link_stays_a_link(line: Line, scene: Scene) -> None:
    assert scene
    line.run("report", "-o", "page.html")
    Path("link.html").symlink_to("page.html")
    Path("page.html").write_text(Path("page.html").read_text("utf-8").replace("2 of 5", "old"))
    line.run("report", "-o", "link.html")
    assert Path("link.html").is_symlink()
    assert "2 of 5" in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-o", "."], ". is a folder; name a file in it, such as report.html"),
        (["-o", "no/such/page.html"], "there is no folder no/such; make it, or name another with -o"),
        (["-o", "-", "--json"], "-o - prints the page, --json prints what was written; give one of them"),
        (["--messages", "0"], "Invalid value for '--messages': "),
    ],
)
def test_what_cannot_be_written_is_one_line(line: Line, words: list[str], told: str, scene: Scene) -> None:
    assert scene
    assert line.error("report", *words, code=2).startswith(told)
    assert not list(Path().iterdir())


def test_the_example_runs(line: Line, scene: Scene) -> None:
    assert scene
    (example,) = examples_of(report.report.__doc__ or "")
    words: list[Any] = shlex.split(example)[1:]
    assert example in " ".join(line.run("report", "--help").stdout.split())
    assert json.loads(line.run(*words, "--json").stdout)["bytes"] > 10_000
