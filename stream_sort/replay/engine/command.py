"""A job as a command: options in, a report out, and an exit code; errors in one line. Knows no job and no Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.errors import (
    ArchiveDamaged,
    CredentialsError,
    ExportDamaged,
    InvalidInput,
    QueueNotFound,
    SettingsError,
    StoreMisconfigured,
    StreamSortError,
    shown,
)
from stream_sort.formats.terminal_text import visible
from stream_sort.replay.engine.interrupts import interrupts_told
from stream_sort.replay.engine.options import JobParser
from stream_sort.replay.engine.places import located

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stream_sort.replay.engine.places import FindNearby
    from stream_sort.replay.engine.report import JobReport

COMPLETE, INCOMPLETE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
# What no second run can cure before somebody changes what was asked for.
MISTAKES = (ArchiveDamaged, ExportDamaged, InvalidInput, QueueNotFound, SettingsError, StoreMisconfigured)
# Says what will be done and asks, unless the answer is given; leaves by an exception if it is no.
Confirm = Callable[[str, bool], None]


def run_main(
    job: str,
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
        given = JobParser(job).parse_args(argv)
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


def ask_first(text: str, given: argparse.Namespace, confirm: Confirm | None) -> None:
    """Have somebody agree to what a job is to change; a script has nobody to ask, and --quiet is not told its --yes."""
    if confirm is not None and not (given.yes and given.quiet):
        confirm(text, given.yes)


def deliver(report: JobReport, given: argparse.Namespace, *files: str | None) -> int:
    """Write a report to files, print it unless --quiet is given, and return the exit code."""
    for path in dict.fromkeys(files):
        if path:
            report.write(path, given)
    if given.json or not given.quiet:
        sys.stdout.write(report.shown(given))
    elif not report.complete:
        queue = report.queues[0] if report.queues else {}
        worst = report.worst or f"queue {queue['queue']!r}: {queue['problem'] or queue['gaps']}"
        complain(f"not complete: {worst}")
    return COMPLETE if report.complete else INCOMPLETE


def complain(text: str) -> None:
    """Write the one line of an error."""
    sys.stderr.write(f"stream-sort: {visible(' '.join(text.split()))}\n")


def check_report_file(path: str | None, option: str = "--report") -> None:
    """Raise before hours of work if the report could not be written at the end."""
    if not path or "://" in path:
        return
    if not is_there(path, option, _is_in_a_folder):
        raise SettingsError(f"{option} {path}: its folder is not there, or cannot be written to")
    if is_there(path, option, Path.is_dir):
        raise SettingsError(f"{option} {path} is a folder; name a file")


def is_there(path: str, option: str, ask: Callable[[Path], bool]) -> bool:
    """Return True if a path is what is asked, such as Path.is_dir; SettingsError for a name that nothing can have."""
    try:
        return ask(Path(path))
    except OSError as error:
        raise SettingsError(f"{option} {shown(path)}: {error.strerror}") from None
    except ValueError:
        raise SettingsError(f"{option} {shown(path)}: no file can have that name") from None


def _is_in_a_folder(path: Path) -> bool:
    return os.access(path.resolve().parent, os.W_OK)
