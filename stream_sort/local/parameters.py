"""The parameters of template.yaml: their names and the values they allow, read without CloudFormation's own parser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream_sort.errors import LocalStackFailed
from stream_sort.local.project import project_root

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = re.compile(r"^Parameters:\n(.*?)^\S", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"^  (\w+):\n((?:    .*\n|\n)*)", re.MULTILINE)
ALLOWED = re.compile(r"^    AllowedValues: \[(.*)\]$", re.MULTILINE)


def known_parameters() -> dict[str, list[str]]:
    """Every parameter and the values it allows; an empty list allows any."""
    found = SECTION.search((project_root() / "template.yaml").read_text(encoding="utf-8"))
    bodies = PARAMETER.findall(found[1] if found else "")
    return {name: [value.strip(" \"'") for value in _allowed(body)] for name, body in bodies}


def check_parameters(given: Mapping[str, str]) -> None:
    """Raise LocalStackFailed for a parameter that the template has not, or a value that it does not allow."""
    known = known_parameters() if given else {}
    for name, value in given.items():
        if name not in known:
            raise LocalStackFailed(f"template.yaml has no parameter {name!r}; there are {', '.join(known)}")
        if known[name] and value not in known[name]:
            raise LocalStackFailed(f"parameter {name} is {value!r}; it must be one of {', '.join(known[name])}")


def _allowed(body: str) -> list[str]:
    listed = ALLOWED.search(body)
    return listed[1].split(",") if listed else []
