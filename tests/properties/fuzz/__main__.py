"""Fuzzes all targets, or those that are named, each for its share of the time: `python -m tests.properties.fuzz`.

Every target runs in a process of its own, so that one that dies, or eats its memory, is a finding as well. Exit code 1
if there is any finding.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from tests.properties.fuzz.cases import CASES

BOTH = ("hypothesis", "atheris")
# What no example needs, and a machine can spare.
MEMORY = 4 * 1024**3
# To load what a target needs, and to make a finding small.
GRACE = 360
COVERED = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+)")


def main() -> int:
    """Run, and tell what was found."""
    given = _parser().parse_args()
    if given.child:
        return _child(given)
    names = given.targets or _names()
    engines = [given.engine] if given.engine else [name for name in BOTH if name == "hypothesis" or find_spec(name)]
    if not given.engine and "atheris" not in engines:
        print("atheris is not installed here: hypothesis looks alone")
    share = given.minutes * 60 / len(names) / len(engines)
    print(f"{len(names)} targets, {share:.0f} s each by {' and by '.join(engines)}", flush=True)
    found = [name for name in names for engine in engines if not _is_clean(name, engine, share, given)]
    print(f"findings: {', '.join(found)}; see {given.cases}" if found else "nothing found")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.properties.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all of them, if none is named")
    parser.add_argument("--minutes", type=float, default=15.0, help="for all targets together (%(default)s)")
    parser.add_argument("--engine", choices=BOTH, help="both, if atheris is installed")
    parser.add_argument("--cases", type=Path, default=CASES, metavar="FOLDER", help="where findings are kept")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="where hypothesis begins")
    parser.add_argument("--diary", action="store_true", help="keep each example while it is tried: slow")
    parser.add_argument("--child", type=float, metavar="SECONDS", help=argparse.SUPPRESS)
    return parser


def _names() -> list[str]:
    from tests.properties.fuzz.targets import TARGETS  # noqa: PLC0415  # a child loads them itself, some instrumented

    return list(TARGETS)


def _is_clean(name: str, engine: str, seconds: float, given: argparse.Namespace) -> bool:
    """Fuzz one target in a process; whether nothing was found."""
    began = time.monotonic()
    words = [name, "--engine", engine, "--seed", str(given.seed), "--cases", str(given.cases)]
    code, told = _run(*words, "--child", str(seconds))
    if code < 0 and engine == "hypothesis":
        # The same once more; what it died of is then the case that is left.
        code, again = _run(*words, "--child", str(3 * seconds), "--diary")
        told += f"died of signal {-code}; seed {given.seed}\n{again}"
        code = code or 1
    print(f"{name:17} {engine:10} {time.monotonic() - began:5.0f} s  {_summary(told, is_clean=code == 0)}", flush=True)
    return code == 0


def _run(*words: str) -> tuple[int, str]:
    """The exit code of a child, which is negative if a signal ended it, and what it said."""
    # Neither libFuzzer nor a signal lets a process tidy up behind itself.
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.properties.fuzz", *words],
                env={**os.environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=float(words[words.index("--child") + 1]) + GRACE,
            )
        except subprocess.TimeoutExpired:
            return 1, "it did not come to its end, and was killed"
    return done.returncode, done.stdout + done.stderr


def _summary(told: str, *, is_clean: bool) -> str:
    covered = COVERED.findall(told)
    if not is_clean:
        return told[-2_000:].strip()
    return f"{int(covered[-1][0]):,} examples, {covered[-1][1]} edges" if covered else told.strip()


def _child(given: argparse.Namespace) -> int:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    (name,) = given.targets
    if given.engine == "atheris":
        import atheris  # noqa: PLC0415  # where it is installed

        with atheris.instrument_imports(include=["stream_sort"], enable_loader_override=False):
            from tests.properties.fuzz.targets import TARGETS  # noqa: PLC0415
    else:
        from tests.properties.fuzz.targets import TARGETS  # noqa: PLC0415
    from tests.properties.fuzz.engine import hunt, hunt_with_atheris  # noqa: PLC0415  # after what is instrumented

    if given.engine == "atheris":
        hunt_with_atheris(TARGETS[name], given.child, given.cases)
    diary = given.cases if given.diary else None
    trial, finding = hunt(TARGETS[name], given.child, given.cases, number=given.seed, diary=diary)
    if finding is None:
        print(f"{trial.tried:,} examples")
        return 0
    print(f"after {trial.tried:,} examples: {finding.problem}\n  {finding.path}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
