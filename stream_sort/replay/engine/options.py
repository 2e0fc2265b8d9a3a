"""The options that the jobs share: where to read, what of it, how to run. Knows no Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from stream_sort.errors import (
    ArchiveDamaged,
    CredentialsError,
    ExportDamaged,
    InvalidInput,
    QueueNotFound,
    SettingsError,
    StoreMisconfigured,
    StreamSortError,
)
from stream_sort.formats.terminal_text import visible
from stream_sort.model.message import KeyNames
from stream_sort.replay.engine.interrupts import interrupts_told
from stream_sort.replay.engine.places import located
from stream_sort.replay.selection import Selection, moment, seq_number
from stream_sort.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.replay.engine.places import FindNearby

COMPLETE, INCOMPLETE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
# What no second run can cure before somebody changes what was asked for.
MISTAKES = (ArchiveDamaged, ExportDamaged, InvalidInput, QueueNotFound, SettingsError, StoreMisconfigured)
# Says what will be done and asks, unless the answer is given; leaves by an exception if it is no.
Confirm = Callable[[str, bool], None]
# What variables and stacks may name as well.
NAMES = {
    "items_table": "the table with the messages",
    "cursor_table": "the table with the positions",
    "control_table": "the table with consumers and checkpoints",
    "queue_key": "the field that names a message's queue",
    "seq_key": "the field that holds its place",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where history is read from: a pair of tables, a point-in-time export or an archive.

    Tables may also be named beside an export or an archive, for what a job needs besides the messages.
    """

    items_table: str = ""
    cursor_table: str = ""
    control_table: str = ""
    queue_key: str = "queue"
    seq_key: str = "seq"
    endpoint_url: str | None = None
    region: str | None = None
    export: str = ""
    archive: str = ""

    def __post_init__(self) -> None:
        if self.export and self.archive:
            raise SettingsError("--export and --archive are both given; history is read from one place")
        for name in ("items_table", "cursor_table"):
            if self.kind == "table" and not getattr(self, name):
                raise missing_table(name, "; or read --export or --archive")

    @property
    def kind(self) -> str:
        """`table`, `export` or `archive`."""
        return "export" if self.export else "archive" if self.archive else "table"

    @property
    def keys(self) -> KeyNames:
        """The names under which messages carry queue and seq."""
        return KeyNames(self.queue_key, self.seq_key)

    def __str__(self) -> str:
        if self.kind == "table":
            return f"tables {self.items_table} and {self.cursor_table}"
        return f"{self.kind} {self.export or self.archive}"


class JobParser(argparse.ArgumentParser):
    """A parser that raises what is wrong with the options as a SettingsError."""

    def __init__(self, job: str, description: str, example: str) -> None:
        super().__init__(
            prog=f"stream-sort {job}", description=description, epilog=f"Example: {example}", allow_abbrev=False
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the options; one that is mistyped is told before those that are missing for it."""
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


def add_place(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """Add the options of `jobs.places`; what they leave out comes from variables or a stack."""
    group = parser.add_argument_group(title)
    group.add_argument("--stack", metavar="NAME", help="the CloudFormation stack whose tables are meant")
    for name, told in NAMES.items():
        variable = PREFIX + name.upper()
        group.add_argument(f"--{name.replace('_', '-')}", metavar="NAME", help=f"{told}; or {variable}")
    group.add_argument("--profile", metavar="NAME", help="the AWS profile; executors elsewhere have roles of their own")
    group.add_argument("--region", metavar="NAME", help="the AWS region; that of the environment when left out")
    group.add_argument("--endpoint-url", metavar="URL", help="another endpoint than AWS's own")
    return group


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options of `source_of`."""
    group = add_place(parser, "source (a pair of tables, an export or an archive)")
    group.add_argument(
        "--export", default="", metavar="URI", help="a point-in-time export: its folder or bucket prefix"
    )
    group.add_argument("--archive", default="", metavar="URI", help="an archive: its folder or bucket prefix")


def source_of(given: argparse.Namespace) -> Source:
    """Return the source that the options name."""
    named = {name: getattr(given, name) for name in Source.__dataclass_fields__}
    return Source(**{name: value for name, value in named.items() if value})


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add the options of `selection_of`."""
    group = parser.add_argument_group("range (everything that is released when left out)")
    group.add_argument("--queue", action="append", metavar="NAME", help="only this queue; may be given often")
    group.add_argument("--from-seq", metavar="SEQ", help="only from this seq on")
    group.add_argument("--to-seq", metavar="SEQ", help="only up to this seq, included")
    group.add_argument("--since", metavar="TIME", help="only what arrived then or later: ISO 8601, or epoch seconds")
    group.add_argument("--until", metavar="TIME", help="only what arrived before then")


def selection_of(given: argparse.Namespace, *, released: bool = True) -> Selection:
    """Return the selection that the options make."""
    return Selection(
        queues=tuple(given.queue) if given.queue else None,
        from_seq=None if given.from_seq is None else seq_number(given.from_seq, "--from-seq"),
        to_seq=None if given.to_seq is None else seq_number(given.to_seq, "--to-seq"),
        since=None if given.since is None else moment(given.since, "--since"),
        until=None if given.until is None else moment(given.until, "--until"),
        released=released,
    )


def add_running(parser: argparse.ArgumentParser, rows_per_part: int | None = None) -> None:
    """Add the options that say how a job runs: part size, where a job has parts of its own; rate, report."""
    group = parser.add_argument_group("running")
    if rows_per_part is not None:
        group.add_argument(
            "--rows-per-part", type=positive, default=rows_per_part, metavar="N", help="rows of one part (%(default)s)"
        )
    group.add_argument(
        "--max-read-units", type=positive_rate, metavar="N", help="read units a second that the whole job keeps to"
    )
    group.add_argument(
        "--eventual", action="store_true", help="read eventually consistent: half the cost; for ranges long released"
    )
    group.add_argument("--report", type=place_name, metavar="FILE", help="write the report there too, as JSON")
    group.add_argument("--json", action="store_true", help="print the report as JSON, for programs")
    group.add_argument("--wide", action="store_true", help="cut nothing in the table, however wide it is")
    group.add_argument("--quiet", action="store_true", help="no progress and no table, errors only")


def ask_first(text: str, given: argparse.Namespace, confirm: Confirm | None) -> None:
    """Have somebody agree to what a job is to change; a script has nobody to ask, and --quiet is not told its --yes."""
    if confirm is not None and not (given.yes and given.quiet):
        confirm(text, given.yes)


def missing_table(name: str, otherwise: str = "") -> SettingsError:
    """Return what is said where nothing names a table that is needed."""
    option = f"--{name.replace('_', '-')}"
    return SettingsError(f"{option} is missing; give it, or {PREFIX}{name.upper()}, or --stack NAME{otherwise}")


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


def run_main(
    parser: JobParser,
    run: Callable[[argparse.Namespace], int],
    argv: Sequence[str] | None = None,
    *,
    resume: str = "run it again",
    find_nearby: FindNearby | None = None,
) -> int:
    """Parse, run, and turn what is raised into one line on stderr and an exit code; `resume` says how to go on.

    `find_nearby` finds the local stack that is meant where nothing else is said; a script for a cluster has none.
    """
    try:
        given = parser.parse_args(argv)
        with interrupts_told(), located(given, find_nearby):
            return run(given)
    except KeyboardInterrupt:
        complain(f"interrupted; to go on: {resume}")
        return INTERRUPTED
    except StreamSortError as error:
        complain(str(error))
        # As of every command: nobody gave credentials, and those of a long job may end before it.
        is_mistake = isinstance(error, MISTAKES) and not isinstance(error, CredentialsError)
        return BAD_INPUT if is_mistake else INCOMPLETE
    except Exception as error:
        # Known by its module, so that nothing of AWS is loaded for it.
        if not type(error).__module__.startswith("botocore"):
            raise
        complain(f"AWS: {error}")
        return INCOMPLETE


def complain(text: str) -> None:
    """Write the one line of an error."""
    sys.stderr.write(f"stream-sort: {visible(' '.join(text.split()))}\n")
