"""`make recording`: real commands on the local stack, in a terminal of their own, recorded as docs/demo.svg for README.

Nothing in it is made up but the typing; pauses are cut short, and the folder of the checkout is shown as ~/stream_sort.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import random
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.local.stack import LocalStack
from tests.docs.animation import COLUMNS, ROWS, Written, develop, draw

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "demo.svg"
TITLE = "stream-sort: messages go in shuffled and come out in order; a queue is stuck, why it is, and how it is freed"
PROMPT = "\x1b[1;32m$\x1b[0m "
MISSING, LENGTH = 217, 500
COMMANDS = (
    "stream-sort local up",
    "head -4 messages.jsonl",
    "stream-sort put messages.jsonl",
    "stream-sort status --deep",
    "stream-sort explain ada",
    f'stream-sort skip ada {MISSING} --reason "lost by the partner" --yes',
    f"stream-sort read ada --after {MISSING - 3} --through {MISSING + 3}",
    "stream-sort status --deep",
    "stream-sort local down",
)
# How long the poster is shown before the first command is typed.
OPENING = 5.0
A_KEY, LONGEST_PAUSE, TO_READ, AT_THE_END = 0.12, 0.7, 2.2, 5.0
KEYS_AT_ONCE = 3
# What comes within so short a time is seen at once.
GLANCE = 0.08


def main() -> None:
    """Record it; whatever local stack is up stays as it is."""
    if LocalStack.find() is not None:
        sys.exit("recording: a local stack is up; end it first: stream-sort local down")
    with tempfile.TemporaryDirectory() as folder:
        _write_messages(Path(folder) / "messages.jsonl")
        try:
            film = develop(_merged(_session(Path(folder))), AT_THE_END)
        finally:
            LocalStack.take_down()
    TARGET.write_text(draw(film, TITLE, OPENING), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name}: {film.seconds:.0f} s, {TARGET.stat().st_size // 1024} KB\n")


def _write_messages(file: Path) -> None:
    """Three queues, shuffled; one message is missing."""
    rng = random.Random(4)
    messages = [
        {"queue": queue, "seq": seq, "text": f"message {seq} of {queue}"}
        for queue in ("ada", "bob", "cleo")
        for seq in range(LENGTH)
        if (queue, seq) != ("ada", MISSING)
    ]
    messages.sort(key=lambda message: message["seq"] + rng.uniform(0, LENGTH / 4))
    file.write_text("".join(json.dumps(message) + "\n" for message in messages))


def _session(folder: Path) -> Iterator[Written]:
    """All commands, one after the other, as a terminal gets them."""
    now = OPENING + 0.5
    for command in COMMANDS:
        yield Written(now, PROMPT)
        now += 0.6
        for at in range(0, len(command), KEYS_AT_ONCE):
            yield Written(now, command[at : at + KEYS_AT_ONCE])
            now += A_KEY
        yield Written(now + 0.2, "\r\n")
        for passed, text in _output(shlex.split(command), folder):
            now += min(passed, LONGEST_PAUSE)
            yield Written(now, text.replace(str(ROOT), "~/stream_sort").replace(str(folder), "."))
        now += TO_READ
        # Whoever reads and types takes as long, and the functions go on meanwhile.
        time.sleep(TO_READ + A_KEY * len(command) / KEYS_AT_ONCE)
    yield Written(now, PROMPT)


def _output(command: list[str], folder: Path) -> Iterator[tuple[float, str]]:
    """What a command writes to a terminal, each part with the seconds since the one before."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    bin_ = Path(sys.executable).parent
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "STREAM_SORT_"))}
    env = {**known, "PATH": f"{bin_}:{os.environ['PATH']}", "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        env.pop(name, None)
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield from _parts(ours)
        if process.wait() != 0:
            raise SystemExit(f"recording: {shlex.join(command)} ended with {process.returncode}")
    finally:
        os.close(ours)
        process.kill()
        process.wait()


def _parts(terminal: int) -> Iterator[tuple[float, str]]:
    last = time.monotonic()
    while True:
        select.select([terminal], [], [])
        try:
            data = os.read(terminal, 65_536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return  # whoever wrote has ended
        if not data:
            return
        now = time.monotonic()
        yield now - last, data.decode(errors="replace")
        last = now


def _merged(written: Iterator[Written]) -> Iterator[Written]:
    """The same, with what comes at a glance as one."""
    held: Written | None = None
    for one in written:
        if held is not None and one.at - held.at < GLANCE:
            held = Written(held.at, held.text + one.text)
            continue
        if held is not None:
            yield held
        held = one
    if held is not None:
        yield held


if __name__ == "__main__":
    main()
