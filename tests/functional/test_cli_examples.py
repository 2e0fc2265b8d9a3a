"""What the help of `parked`, `dead`, `late`, `consumers` and `trim` gives as an example does what it says."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.cli.lazy_group import load
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import StreamSorter


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


def consumed(desk: OperatorDesk) -> None:
    desk.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(50))
    desk.deliver("ada")


SCENES: dict[str, Callable[[OperatorDesk], None]] = {
    "parked": parked,
    "dead": dead,
    "late": late,
    "consumers": consumed,
    "trim": consumed,
}


def commands() -> list[Any]:
    found = []
    for name in SCENES:
        group = load(name)
        inner = getattr(group, "commands", None) or {"": group}
        found += [pytest.param(name, one, id=f"{name} {inside}".strip()) for inside, one in inner.items()]
    return found


@pytest.mark.parametrize(("scene", "command"), commands())
def test_the_example_of_every_command_runs(scene: str, command: Any, sorter: StreamSorter) -> None:
    desk = OperatorDesk(sorter)
    SCENES[scene](desk)
    (example,) = re.findall(r"Example: stream-sort (.+)", command.help)
    # There is no stack here, but the function of one.
    words = shlex.split(example.replace("--stack orders", "--function orders" if "redrive" in example else ""))
    assert words[0] == scene
    assert " ".join(f"Example: stream-sort {example}".split()) in " ".join(desk.run(*words, "--help").stdout.split())
    with desk.function():
        done = desk.run(*words, "--json")
    assert done.exit_code == 0, done.output
    json.loads(done.stdout)


def test_there_are_as_many_examples_as_commands() -> None:
    assert len(commands()) == 13
