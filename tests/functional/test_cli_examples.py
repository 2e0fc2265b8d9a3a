"""Every command has the same manners: an example in its help that runs, JSON that parses, one line for bad usage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.cli.lazy_group import COMMANDS, load
from tests.functional.command_line import Line, example_of
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from stream_sort import StreamSorter

TESTS = Path(__file__).parents[1]


def queues(desk: OperatorDesk) -> None:
    for queue in ("ada", "bob"):
        desk.sorter.put_many({"queue": queue, "seq": seq} for seq in range(100))
    Path("messages.jsonl").write_text('{"queue": "ada", "seq": 100}\n')


def parked(desk: OperatorDesk) -> None:
    for queue in ("ada", "bob"):
        desk.sorter.put_many({"queue": queue, "seq": seq} for seq in range(9))
    desk.clerk.poison = {7}
    desk.deliver("ada", "bob")
    desk.clerk.poison = set()


def dead(desk: OperatorDesk) -> None:
    desk.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(9))
    desk.bury("ada", 7)
    desk.clerk.poison = set()


def late(desk: OperatorDesk) -> None:
    desk.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(9) if seq != 7)
    desk.sorter.skip("ada", 7)
    desk.put("ada", 7)


def stray(desk: OperatorDesk) -> None:
    desk.put("ada", 0, 1_700_000_000_000)


def withdrawn(desk: OperatorDesk) -> None:
    stray(desk)
    desk.sorter.withdraw("ada", 1_700_000_000_000)


def consumed(desk: OperatorDesk) -> None:
    desk.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(50))
    desk.deliver("ada")


SCENES: dict[str, Callable[[OperatorDesk], None]] = {
    **dict.fromkeys(("put", "read", "tail", "status", "explain", "gaps", "skip", "policy", "nudge", "advance"), queues),
    "parked": parked,
    "dead": dead,
    "late": late,
    "withdraw": stray,
    "withdrawn": withdrawn,
    "consumers": consumed,
    "trim": consumed,
}
# Who runs the examples that need a stack, or Spark, or a scene that only they know how to set.
ELSEWHERE = {
    "backfill": "spark/test_job_examples.py",
    "audit": "spark/test_job_examples.py",
    "archive": "spark/test_job_examples.py",
    "local": "local_stack/test_local_command.py",
    "demo": "local_stack/test_demo.py",
    "doctor": "functional/test_cli_doctor_stack.py",
    "dead-letters": "functional/test_cli_dead_letters.py",
    "report": "functional/test_cli_report.py",
    "cost": "functional/test_cli_cost.py",
    "open": "functional/test_cli_cursor_rows.py",
    "recover": "functional/test_cli_cursor_rows.py",
}


def commands(*names: str) -> list[Any]:
    """All commands of these names, those inside groups one by one."""
    found = []
    for name in names:
        inner = getattr(load(name), "commands", None)
        paths = [(name, inside) for inside in inner] if inner else [(name,)]
        found += [pytest.param(path, id=" ".join(path)) for path in paths]
    return found


def parsed(text: str) -> Any:
    """One document, or one a line."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def completed(words: str) -> Result:
    count = len(words.split()) - 1
    env = {"_STREAM_SORT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    return Line().runner.invoke(Line.app, prog_name="stream-sort", env=env)


@pytest.mark.parametrize("path", commands(*SCENES))
def test_the_example_of_every_command_runs(
    path: tuple[str, ...], sorter: StreamSorter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = OperatorDesk(sorter)
    desk.env |= {"STREAM_SORT_IN_FLIGHT": "1"}
    SCENES[path[0]](desk)
    words = example_of(*path)
    if "--stack" in words:
        # There is no stack here, but the function of one.
        at = words.index("--stack")
        words[at : at + 2] = ["--function", "orders"] if "redrive" in words else []
    with desk.function():
        done = desk.run(*words, "--json")
    assert done.exit_code == 0, done.output
    parsed(done.stdout)


@pytest.mark.parametrize("path", commands(*(name for name in COMMANDS if name not in SCENES)))
def test_an_example_that_needs_more_is_run_by_who_has_it(path: tuple[str, ...]) -> None:
    assert example_of(*path)
    assert path[0] in ELSEWHERE, "give it a scene here, or name the test that runs its example"
    text = (TESTS / ELSEWHERE[path[0]]).read_text()
    assert "example_of(" in text or "examples_of(" in text
    assert path[-1] in text


@pytest.mark.parametrize("path", commands(*COMMANDS))
def test_bad_usage_of_any_command_is_one_line_and_exit_code_2(path: tuple[str, ...]) -> None:
    told = Line().error(*path, "--no-such-option", code=2)
    assert "--no-such-option" in told or "Missing argument" in told or "required" in told
    assert told.endswith(f"; see stream-sort {' '.join(path)} --help")


@pytest.mark.parametrize("path", commands(*COMMANDS))
def test_every_command_speaks_json_and_the_shell_completes_it(path: tuple[str, ...]) -> None:
    assert "--json" in Line().run(*path, "--help").stdout
    assert completed(f"stream-sort {' '.join(path)} --js").stdout.split() == ["--json"]


LISTS = ["parked", "dead", "late", "withdrawn", "consumers"]


@pytest.mark.parametrize("group", LISTS)
def test_a_group_by_itself_lists(group: str, sorter: StreamSorter) -> None:
    desk = OperatorDesk(sorter)
    SCENES[group](desk)
    for options in ([], ["--json"], ["--json", "--control-table", "Control"]):
        listed, bare = desk.run(group, "list", *options), desk.run(group, *options)
        assert (bare.exit_code, bare.stdout, bare.stderr) == (0, listed.stdout, listed.stderr), bare.output
        assert "ada" in bare.stdout or group == "consumers"
    assert desk.run(group, "--no-such-option").exit_code == 2
    assert "Usage: " in desk.run(group, "--help").stdout


@pytest.mark.parametrize("group", LISTS)
def test_the_shell_still_completes_what_a_group_has(group: str) -> None:
    assert "list" in completed(f"stream-sort {group} li").stdout.split()
