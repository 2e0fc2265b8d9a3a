"""The command line: every command with every option and hostile words, on tables of moto's that hold hostile names."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, chdir, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import boto3
from hypothesis import strategies as st
from moto import mock_aws
from typer.testing import CliRunner

from stream_sort import OrderedConsumer, Pace, StreamSorter
from stream_sort.cli.app import app
from stream_sort.cli.lazy_group import COMMANDS, load
from stream_sort.formats.terminal_text import UNSAFE
from stream_sort.model.consumption import Wake
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.backfill.options import BackfillOptions
from stream_sort.replay.engine.options import JobParser
from tests.properties.fuzz.target import Target
from tests.properties.fuzz.values import HOSTILE, TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn

JOBS = {
    "backfill": BackfillOptions.of,
    "audit": AuditOptions.of,
    "archive": ArchiveOptions.of,
}
# These start or end processes; the words of the jobs are read below, without Spark.
LEFT_OUT = {"demo", "local up", "local reset", "local down", *JOBS}
# These never end by themselves.
FOR_EVER = {"--watch", "--follow", "-f"}
NOWHERE = "http://127.0.0.1:1"
ELSEWHERE = {"--endpoint-url": [NOWHERE, "nonsense", "http://", "http://[", "127.0.0.1:1"]}
QUEUES = [
    "a",
    "b",
    "#x",
    ":v",
    "'; DELETE FROM Items--",
    "../../x",
    "{x,y}",
    "\u202eabc",
    "[red]x[/red]",
    "=1+1",
    "x" * 1_024,
]
# What a shell can pass on: no NUL. Nothing that names a file elsewhere, because some commands write files.
WORDS = (
    (TEXTS | st.sampled_from(QUEUES) | st.integers(-3, 9).map(str))
    .map(lambda text: text.replace("\x00", "").replace("/", ""))
    .filter(lambda text: ".." not in text)
)
ANSWERS = st.sampled_from(["", "y\n", "n\n"])


@cache
def _commands() -> dict[str, Any]:
    """Every command that can be run here, by its words."""
    found = {}
    for name in COMMANDS:
        command = load(name)
        inner = getattr(command, "commands", None)
        found |= {f"{name} {one}": inner[one] for one in inner} if inner else {name: command}
    return {words: command for words, command in found.items() if words not in LEFT_OUT}


@st.composite
def lines(draw: DrawFn) -> list[Any]:
    """The words of a command, and what is typed in answer."""
    name = draw(st.sampled_from(sorted(_commands())))
    words: list[str] = []
    for parameter in _commands()[name].params:
        if parameter.param_type_name == "argument":
            words += draw(st.lists(WORDS.filter(lambda word: not word.startswith("-")), max_size=2))
        elif draw(st.integers(0, 3)) == 0 and not FOR_EVER & set(parameter.opts):
            words += _option(draw, parameter)
    words = draw(st.permutations(words)) if draw(st.booleans()) and not name.startswith("local") else words
    last = {"tail": ["--once"], "local": ["--home", "nothing-here"]}.get(name.partition(" ")[0], [])
    return [[*name.split(), *[word for word in words if word not in FOR_EVER], *last], draw(ANSWERS)]


def _option(draw: DrawFn, parameter: Any) -> list[str]:
    option = parameter.opts[0]
    if getattr(parameter, "is_flag", False):
        return [option]
    return [option, draw(st.sampled_from(ELSEWHERE[option]) if option in ELSEWHERE else WORDS)]


def check_line(line: list[Any]) -> None:
    """Ends with 0, 1 or 2, without a traceback; says what is wrong; and nothing that a terminal would obey."""
    words, answer = line
    result = CliRunner().invoke(app, words, input=answer, prog_name="stream-sort")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in {0, 1, 2}
    for told in (result.stdout, result.stderr):
        assert UNSAFE.search(told.replace("\n", "")) is None
    if result.exit_code:
        assert "stream-sort: " in result.stderr or "Usage: " in result.output or result.stdout


@st.composite
def job_lines(draw: DrawFn) -> list[Any]:
    """The words of a job."""
    job = draw(st.sampled_from(sorted(JOBS)))
    words: list[str] = []
    for action in JobParser(job)._actions:
        if action.option_strings and (action.required or draw(st.integers(0, 4)) == 0):
            words.append(action.option_strings[-1])
            choices = list(action.choices or ELSEWHERE.get(action.option_strings[-1].replace("to-", ""), []))
            words += [draw(st.sampled_from(choices) if choices else WORDS)] if action.nargs is None else []
    return [job, words]


def check_job_line(line: list[Any]) -> None:
    """Is a job, or refused by name; only --help ends here."""
    job, words = line
    try:
        JOBS[job](JobParser(job).parse_args(words))
    except SystemExit as end:
        if end.code:
            raise


@contextmanager
def _elsewhere() -> Iterator[None]:
    """An empty folder to write to, and no AWS anywhere."""
    told = {
        "STREAM_SORT_ITEMS_TABLE": "Items",
        "STREAM_SORT_CURSOR_TABLE": "Cursor",
        "STREAM_SORT_CONTROL_TABLE": "Control",
        "STREAM_SORT_IN_FLIGHT": "1",
        "STREAM_SORT_DEADLINE": "0.05",
        "AWS_DEFAULT_REGION": "eu-west-1",
        # To the emulator, a region that AWS has not is a KeyError.
        "MOTO_ALLOW_NONEXISTENT_REGION": "true",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_CONFIG_FILE": "nothing",
        **{f"AWS_ENDPOINT_URL_{name}": NOWHERE for name in ("LAMBDA", "CLOUDFORMATION", "SQS", "EVENTS", "SCHEDULER")},
    }
    with ExitStack() as stack:
        stack.enter_context(chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.enter_context(patch.dict(os.environ, told))
        yield


@contextmanager
def _desk() -> Iterator[None]:
    """Tables with hostile names in every state there is: waiting, parked, dead, late."""
    with _elsewhere(), mock_aws():
        _fill()
        yield


def _fill() -> None:
    sorter = StreamSorter(client=boto3.client("dynamodb"), in_flight=1)
    sorter.create_tables()
    texts = [text for text in HOSTILE if text.isprintable() and len(text) < 100]
    for queue in QUEUES:
        sorter.put_many({"queue": queue, "seq": seq, "text": texts[seq % len(texts)]} for seq in (0, 1, 3, 5))
        sorter.skip(queue, [2], reason="\x1b[2J\u202e")
        sorter.put({"queue": queue, "seq": 2, "text": "\x1b]0;late\x07"})

    def fail(batch: Any) -> None:
        raise RuntimeError(f"\x1b[2J\u202e{batch.queue}")

    for on_poison in ("park", "dead_letter"):
        pace = Pace(sleep=lambda _: None)
        consumer = OrderedConsumer(on_poison, fail, sorter=sorter, on_poison=on_poison, max_attempts=1, pace=pace)
        consumer.create_tables()
        consumer.process([Wake(queue) for queue in QUEUES[:4]])


TARGETS = (
    Target("command_line", lines(), check_line, _desk),
    Target("job_options", job_lines(), check_job_line, _elsewhere),
)
