"""stream_sort as it is without a checkout: its wheel, in an environment of its own, and a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from stream_sort.local.tools import find_uv

ROOT = Path(__file__).parents[1]
# They would lead back to the checkout, or to an AWS of the user's.
FOREIGN = ("AWS_", "PYTHON", "STREAM_SORT_", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Installed:
    """A folder with `dist` (sdist and wheel), `env` (a Python that has the wheel and what it needs) and `home`."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Self:
        """Build the wheel and install it with its extra `cli`, all else in the versions that are locked."""
        made = cls(folder)
        made.home.mkdir(parents=True)
        locked, uv = folder / "locked.txt", find_uv()
        _run("make", "wheel", f"DIST={folder / 'dist'}")
        export = ("export", "--frozen", "--no-dev", "--extra", "cli", "--no-emit-project", "--no-hashes")
        _run(uv, *export, "--output-file", str(locked))
        _run(uv, "venv", "--python", sys.executable, str(folder / "env"))
        python = str(folder / "env" / "bin" / "python")
        _run(uv, "pip", "install", "--python", python, "--constraints", str(locked), f"{made.wheel}[cli]")
        return made

    @property
    def wheel(self) -> Path:
        """The file that was built."""
        (wheel,) = (self.folder / "dist").glob("*.whl")
        return wheel

    @property
    def home(self) -> Path:
        """What the programs take for the user's home."""
        return self.folder / "home"

    @property
    def package(self) -> Path:
        """The folder of the installed package."""
        (found,) = (self.folder / "env").glob("lib/python*/site-packages/stream_sort")
        return found

    def run(self, program: str, *words: str) -> str:
        """Run a program of the environment in the home; return what it prints."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        cache = _run(find_uv(), "cache", "dir").strip()
        done = subprocess.run(
            [str(self.folder / "env" / "bin" / program), *words],
            cwd=self.home,
            env={**kept, "HOME": str(self.home), "UV_CACHE_DIR": cache, "PATH": os.defpath},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _run(*words: str) -> str:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
