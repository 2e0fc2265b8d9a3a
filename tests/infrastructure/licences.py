"""The licences of what an installation brings along: the locked dependencies of the package and of each extra."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
PACKAGE = "stream-sort"
# Without an extra.
PLAIN = "(always)"
ALLOWED = frozenset(
    [
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "HPND", "ISC", "MIT", "MIT-CMU"),
        *("MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
    ]
)
# What packages say that do not use the names of SPDX; in classifiers, or as a text.
SAID = {
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
UNKNOWN = "unknown"
NOT_HERE = "not installed on this kind of machine"


@dataclass(frozen=True, slots=True, order=True)
class Licensed:
    """A dependency and its licence, as an SPDX expression where that is known."""

    name: str
    version: str
    licence: str

    @property
    def is_allowed(self) -> bool:
        """Whether it may be used; of what is not installed here, the machine that installs it tells."""
        return self.licence == NOT_HERE or is_allowed(self.licence)


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression can be kept to by a licence, or by several together, that are all allowed."""
    choices = re.sub("[()]", "", expression).split(" OR ")
    return any(all(part.strip() in ALLOWED for part in choice.split(" AND ")) for choice in choices)


def licences() -> dict[str, list[Licensed]]:
    """The locked dependencies of each extra, with those of the package itself first; each is told once."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    packages: dict[str, list[dict[str, Any]]] = {}
    for package in lock["package"]:
        packages.setdefault(package["name"], []).append(package)
    (own,) = packages[PACKAGE]
    roots = {PLAIN: own["dependencies"], **dict(sorted(own["optional-dependencies"].items()))}
    told: set[str] = set()
    listed = {}
    for extra, needed in roots.items():
        found = dict(_needed(needed, packages))
        listed[extra] = sorted(_licensed(name, version) for name, version in found.items() if name not in told)
        told |= found.keys()
    return listed


def licence_of(told: Any) -> str:
    """The licence that a package's metadata tells of: its expression, else its classifiers, else its text."""
    if expression := told.get("License-Expression"):
        return str(expression)
    classifiers = [
        one.rpartition(" :: ")[2] for one in told.get_all("Classifier") or () if one.startswith("License ::")
    ]
    # Several of them are a choice, by the custom of those who write them.
    if classifiers:
        return " OR ".join(SAID.get(one, one) for one in classifiers)
    line = (told.get("License") or "").strip().partition("\n")[0]
    return SAID.get(line, line) or UNKNOWN


def _needed(
    wanted: list[dict[str, Any]], packages: Mapping[str, list[dict[str, Any]]], seen: set[str] | None = None
) -> Iterator[tuple[str, str]]:
    """What some dependencies bring along, by name and version; a version is NOT_HERE where a marker says so."""
    seen = set() if seen is None else seen
    for one in wanted:
        is_here = Marker(one["marker"]).evaluate() if "marker" in one else True
        if one["name"] in seen:
            continue
        seen.add(one["name"])
        for package in packages[one["name"]]:
            if one.get("version", package["version"]) == package["version"]:
                yield one["name"], package["version"] if is_here else NOT_HERE
                extras = package.get("optional-dependencies", {})
                inner = [
                    *package.get("dependencies", ()),
                    *(two for extra in one.get("extra", ()) for two in extras[extra]),
                ]
                yield from _needed(inner if is_here else [], packages, seen)


def _licensed(name: str, version: str) -> Licensed:
    if version == NOT_HERE:
        return Licensed(name, "", NOT_HERE)
    try:
        return Licensed(name, version, licence_of(metadata(name)))
    except PackageNotFoundError:
        return Licensed(name, version, UNKNOWN)


def main() -> int:
    """Print them all; 1 if one is not allowed."""
    refused = []
    for extra, found in licences().items():
        print(extra)
        for one in found:
            print(f"  {one.name:24} {one.version:14} {one.licence}")
            refused += [] if one.is_allowed else [one]
    for one in refused:
        print(f"{one.name} {one.version}: {one.licence} is not among {', '.join(sorted(ALLOWED))}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
