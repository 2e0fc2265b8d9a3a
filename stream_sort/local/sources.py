"""Tell whether what `sam build` builds is what was built before: then there is nothing to build."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stream_sort.local.sam import PYTHON, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = ("template.yaml", "Makefile", "pyproject.toml", "uv.lock")
FOLDERS = ("functions", "stream_sort")
# Not in the layer; a test compares it with the Makefile.
LEFT_OUT = ("stream_sort/cli", "stream_sort/local", "stream_sort/replay", "stream_sort/testing")


def fingerprint(root: Path) -> str:
    """Return a text that is another one if a source of the layer, of a function or of the template is."""
    found = hashlib.sha256(f"{VERSION} {PYTHON}".encode())
    for path in sorted(_sources(root)):
        text = path.read_bytes()
        found.update(f"{path.relative_to(root)} {len(text)}\n".encode() + text)
    return found.hexdigest()


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in FILES if (root / name).is_file())
    left_out = tuple(root / name for name in LEFT_OUT)
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not any(map(path.is_relative_to, left_out)):
                yield path
