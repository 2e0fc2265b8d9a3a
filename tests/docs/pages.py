"""The documents as data: each page with its code, its commands, its links and its anchors."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Page:
    """A document of this repository."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        """The contents of all fences that begin with these words."""
        return re.findall(rf"^```{re.escape(language)}\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)

    def commands(self) -> list[str]:
        """Every command of the console blocks, without what is shown below it."""
        typed = [part for block in self.blocks("console") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
        return [_first_command(part.replace("\\\n", " ").splitlines()) for part in typed]

    def links(self) -> list[str]:
        """Where the page's links lead, those to other sites left out."""
        prose = INLINE.sub("``", FENCE.sub("", self.text))
        return [link for link in LINK.findall(prose) if "://" not in link]

    def code(self) -> list[str]:
        """Every text in the prose that is set as code."""
        return [text.strip("`") for text in INLINE.findall(FENCE.sub("", self.text))]

    def anchors(self) -> set[str]:
        """The anchors of its headings, made as GitHub and the site make them."""
        return {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", self.text), re.MULTILINE)}


def anchor_of(heading: str) -> str:
    """The anchor of a heading; one that GitHub and the site would not make alike has none."""
    plain = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    github, site = plain.replace(" ", "-"), re.sub(r"[-\s]+", "-", plain)
    return github if github == site else f"no anchor for {heading!r}"


def _first_command(lines: list[str]) -> str:
    """The first line, and those after it in which its quotes go on."""
    for end in range(1, len(lines)):
        command = "\n".join(lines[:end])
        with suppress(ValueError):
            shlex.split(command, comments=True)
            return command
    return "\n".join(lines)


def words_of(command: str) -> list[str]:
    """The words of a command up to its comment, its pipe or its redirection."""
    words = shlex.split(command, comments=True)
    ends = [at for at, word in enumerate(words) if word in {"|", ">", "&&"}]
    return words[: ends[0]] if ends else words


def all_pages() -> list[Page]:
    """The pages of the site, and those at the root that speak of today; the changelog speaks of the past."""
    at_root = [path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"]
    return [Page(path) for path in [*at_root, *sorted(DOCS.rglob("*.md"))]]


def page(name: str) -> Page:
    """The page of this name, such as docs/cost.md."""
    return Page(ROOT / name)
