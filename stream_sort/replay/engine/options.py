"""The options of all jobs, each declared once: `stream-sort backfill | audit | archive` and `spark/*.py` read them so.

Knows no Spark. What the values of a job are, and which go together, its own `options` module says.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from stream_sort.errors import SettingsError
from stream_sort.replay.ranges import ROWS_PER_PART
from stream_sort.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_SINKS = ("parquet", "jsonl")
DELIVERING_SINKS = ("table", "sqs-fifo", "kinesis", "lambda")
ON_GAP = ("fail", "report", "skip")
BATCH_SIZE = 100
DETAIL_FORMS = ("parquet", "json")
SEGMENT_ROWS = 100_000
TABLES = {
    "items_table": "the table with the messages",
    "cursor_table": "the table with the positions",
    "control_table": "the table with consumers and checkpoints",
}
# What variables and stacks may name as well.
NAMES = {
    **TABLES,
    "queue_key": "the field that names a message's queue",
    "seq_key": "the field that holds its place",
}
# An option's names, and what argparse is to know of it.
Options = dict[str, dict[str, Any]]


def option_name(name: str) -> str:
    """Return an option as it is given, by the name of its value."""
    return f"--{name.replace('_', '-')}"


def place_name(text: str) -> str:
    """Return the name of a file or a folder; an empty one is a variable that was not set."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name a place, or leave the option out")
    return text


def positive(text: str) -> int:
    """Return a whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def positive_rate(text: str) -> float:
    """Return a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _value(metavar: str, text: str, **how: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": text, **how}


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


PLACE: Options = {
    "--stack": _value("NAME", "the CloudFormation stack whose tables are meant"),
    **{option_name(name): _value("NAME", f"{text}; or {PREFIX}{name.upper()}") for name, text in NAMES.items()},
    "--profile": _value("NAME", "the AWS profile; executors elsewhere have roles of their own"),
    "--region": _value("NAME", "the AWS region; that of the environment when left out"),
    "--endpoint-url": _value("URL", "another endpoint than AWS's own"),
}
SOURCE: Options = {
    **PLACE,
    "--export": _value("URI", "a point-in-time export: its folder or bucket prefix", default=""),
    "--archive": _value("URI", "an archive: its folder or bucket prefix", default=""),
}
QUEUE: Options = {"--queue": _value("NAME", "only this queue; may be given often", action="append")}
RANGE: Options = {
    **QUEUE,
    "--from-seq": _value("SEQ", "only from this seq on"),
    "--to-seq": _value("SEQ", "only up to this seq, included"),
    "--since": _value("TIME", "only what arrived then or later: ISO 8601, or epoch seconds"),
    "--until": _value("TIME", "only what arrived before then"),
}
SINK: Options = {
    "--sink": {"required": True, "choices": FILE_SINKS + DELIVERING_SINKS, "help": "where messages go"},
    "--out": _value("DIR", "the folder or bucket prefix for parquet and jsonl", default=""),
    "--gzip": _flag("compress JSON lines"),
    "--target": _value("NAME", "a queue's URL, a stream's or a function's name", default=""),
    "--to-items-table": _value("NAME", "for --sink table", default=""),
    "--to-cursor-table": _value("NAME", "for --sink table", default=""),
    "--to-endpoint-url": _value("URL", "that of the source when left out"),
    "--to-region": _value("NAME", "that of the source when left out"),
}
BACKFILL: Options = {
    "--checkpoint": _value("DIR", "where progress is kept; files: DIR/_stream_sort", type=place_name),
    "--on-gap": {"default": "fail", "choices": ON_GAP, "help": "what a hole does (%(default)s)"},
    "--batch-size": _value("N", f"messages a commit, delivering ({BATCH_SIZE})", type=positive),
    "--until-position": _flag("then let --consumer go on live, with no seam"),
    "--consumer": _value("NAME", "who goes on live; needs --control-table", default=""),
    "--dry-run": _flag("print the plan and its cost, read no message"),
}
AUDIT: Options = {
    **QUEUE,
    "--out": _value("FILE", "write the report there, as JSON; the same as --report", type=place_name),
    "--detail": _value("URI", "write one row a queue, with all its gaps, there", type=place_name),
    "--detail-format": {"choices": DETAIL_FORMS, "help": f"the form of the detail ({DETAIL_FORMS[0]})"},
    "--repair": _flag("advance the queues that are stuck"),
    "--yes -y": _flag("repair without asking; a script never asks"),
    "--first-seq": _value("SEQ", "where queues start (0) that never began; or STREAM_SORT_FIRST_SEQ"),
}
ARCHIVE: Options = {
    "--archive": _value("URI", "the archive: a folder or s3://bucket/prefix", required=True),
    **QUEUE,
    "--segment-rows": _value("N", "rows of one file (%(default)s)", type=positive, default=SEGMENT_ROWS),
    "--min-rows": _value("N", "leave queues with less to archive for later", type=positive, default=1),
    "--trim": _flag("then compare what is archived with the items table, and delete it there"),
    "--yes -y": _flag("trim without asking; a script never asks"),
    "--dry-run": _flag("print the plan and its cost, write nothing"),
}
RUNNING: Options = {
    "--max-read-units": _value("N", "read units a second that the whole job keeps to", type=positive_rate),
    "--eventual": _flag("read eventually consistent: half the cost; for ranges long released"),
    "--report": _value("FILE", "write the report there too, as JSON", type=place_name),
    "--json": _flag("print the report as JSON, for programs"),
    "--wide": _flag("cut nothing in the table, however wide it is"),
    "--quiet": _flag("no progress and no table, errors only"),
}
PARTS: Options = {
    "--rows-per-part": _value("N", "rows of one part (%(default)s)", type=positive, default=ROWS_PER_PART),
    **RUNNING,
}
FROM = "source (a pair of tables, an export or an archive)"


@dataclass(frozen=True, slots=True)
class JobCommandLine:
    """What one job takes: what it is for, an example, and its options in groups."""

    summary: str
    example: str
    groups: Mapping[str, Options]


COMMAND_LINES = {
    "backfill": JobCommandLine(
        "Replay ordered ranges of queues into files, tables or a sink.",
        "stream-sort backfill --stack orders --queue ada --sink jsonl --out history",
        {
            FROM: SOURCE,
            "range (everything that is released when left out)": RANGE,
            "sink": SINK,
            "job": BACKFILL,
            "running": PARTS,
        },
    ),
    "audit": JobCommandLine(
        "Check that every queue is complete: nothing missing, nothing twice, nothing stuck.",
        "stream-sort audit --stack orders --detail gaps",
        {FROM: SOURCE, "running": RUNNING, "audit": AUDIT},
    ),
    "archive": JobCommandLine(
        "Write what is released and everywhere consumed to ordered Parquet segments.",
        "stream-sort archive --stack orders --archive archived --dry-run",
        {"tables": PLACE, "archive": ARCHIVE, "running": PARTS},
    ),
}


class JobParser(argparse.ArgumentParser):
    """A job's command line; what is wrong with the options is raised as a SettingsError."""

    def __init__(self, job: str) -> None:
        line = COMMAND_LINES[job]
        example = f"Example: {line.example}"
        super().__init__(prog=f"stream-sort {job}", description=line.summary, epilog=example, allow_abbrev=False)
        for title, options in line.groups.items():
            group = self.add_argument_group(title)
            for names, how in options.items():
                group.add_argument(*names.split(), **how)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the options; report a mistyped one before those that are missing for it."""
        known = self._option_string_actions
        for word in sys.argv[1:] if args is None else args:
            name = word.partition("=")[0]
            if name.startswith("--") and name != "--" and name not in known:
                close = get_close_matches(name, known, n=1)
                if close:
                    raise SettingsError(f"no such option: {name}; did you mean {close[0]}? See {self.prog} --help")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise instead of leaving the process."""
        raise SettingsError(f"{message}; see {self.prog} --help")
