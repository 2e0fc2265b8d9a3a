"""What fuzzing found, one file a case: the target, what was raised, and the example. Read by every test run."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, NamedTuple

CASES = Path(__file__).parents[1] / "cases"
BYTES = "base64 of bytes"


class Case(NamedTuple):
    """An example that once did what it must not."""

    target: str
    found: str
    example: Any


def keep(case: Case, folder: Path = CASES) -> Path:
    """Write a case down; the same example, the same file."""
    document = {"target": case.target, "found": case.found, "example": _plain(case.example)}
    name = hashlib.sha256(json.dumps(document["example"]).encode()).hexdigest()[:10]
    path = folder / f"{case.target}-{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def read(path: Path) -> Case:
    """The case of a file."""
    document = json.loads(path.read_text())
    return Case(document["target"], document["found"], _with_bytes(document["example"]))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {BYTES: b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _with_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {BYTES}:
            return b64decode(value[BYTES])
        return {name: _with_bytes(inner) for name, inner in value.items()}
    return [_with_bytes(inner) for inner in value] if isinstance(value, list) else value
