"""What every document says is so: its code runs, its commands and files are there, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from typing import Any

import pytest

from stream_sort.cli.lazy_group import COMMANDS, GROUPS
from tests.docs.pages import DOCS, ROOT, Page, all_pages, words_of
from tests.functional.command_line import Line

PAGES = all_pages()
OWN_FILE = re.compile(r"(?:stream_sort|functions|spark|events|tests|docs)/[\w./-]*")
OWN_COMMAND = re.compile(r"stream-sort ([a-z][a-z-]*)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda one: one.name)


@each_page
def test_the_code_of_a_page_runs_from_top_to_bottom(page: Page) -> None:
    exec(compile("\n".join(page.blocks("python")), page.name, "exec"), {})
    for block in page.blocks("python no-run"):
        compile(block, page.name, "exec")


def test_most_pages_that_show_python_run_it() -> None:
    run = {page.name for page in PAGES if page.blocks("python")}
    subjects = ("index", "handlers", "queues", "testing", "cost")
    assert run >= {"README.md", *(f"docs/{subject}.md" for subject in subjects)}


@each_page
def test_no_python_hides_from_these_tests_under_another_name(page: Page) -> None:
    opened = set(re.findall(r"^\s*```(py.*)$", page.text, re.MULTILINE))
    assert opened <= {"python", "python no-run"}


@pytest.mark.parametrize("page", [*PAGES, Page(ROOT / "CHANGELOG.md")], ids=lambda one: one.name)
def test_every_link_of_a_page_leads_to_a_page_or_a_heading(page: Page) -> None:
    broken = []
    for link in page.links():
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        if not target.exists() or (anchor and anchor not in Page(target).anchors()):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [one for one in PAGES if DOCS in one.path.parents], ids=lambda one: one.name)
def test_a_page_of_the_site_links_to_nothing_outside_it(page: Page) -> None:
    targets = [(page.path.parent / link.partition("#")[0]).resolve() for link in page.links()]
    assert [target for target in targets if DOCS not in [target, *target.parents]] == []


def test_every_page_of_the_site_is_in_its_navigation() -> None:
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    listed = set(_leaves(project["nav"]))
    decisions = {path.name for path in (DOCS / "decisions").glob("*.md")} - {"index.md"}
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert pages - {f"decisions/{name}" for name in decisions} == listed
    assert set(Page(DOCS / "decisions" / "index.md").links()) == decisions


def _leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [leaf for part in parts for leaf in _leaves(part)]


@each_page
def test_every_file_that_a_page_names_is_there(page: Page) -> None:
    named = [text for text in page.code() if OWN_FILE.fullmatch(text)]
    assert [name for name in named if not (ROOT / name).exists()] == []


@each_page
def test_every_command_that_a_page_names_is_there(page: Page) -> None:
    assert set(OWN_COMMAND.findall(page.text)) - set(COMMANDS) == set()


@each_page
def test_every_command_that_a_page_shows_takes_its_options(page: Page) -> None:
    for command in page.commands():
        program, *words = words_of(command)
        if program.removeprefix(".venv/bin/") != "stream-sort" or words[0].startswith("-"):
            continue
        path = words[:2] if words[0] in GROUPS and len(words) > 1 and not words[1].startswith("-") else words[:1]
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options_of(*path), command


@cache
def options_of(*path: str) -> set[str]:
    """The options of a command, as its help lists them."""
    return set(re.findall(r"--[a-z][a-z-]*", Line().run(*path, "--help").stdout))


@each_page
def test_every_target_of_make_that_a_page_names_is_there(page: Page) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][\w./-]*):", makefile, re.MULTILINE)) | {"invoke-enqueue"}
    shown = [words[1:] for command in page.commands() if (words := words_of(command))[0] == "make"]
    shown += [shlex.split(text)[1:] for text in page.code() if text.startswith("make ")]
    assert {word for words in shown for word in words if "=" not in word} - targets == set()


@pytest.mark.parametrize("name", ["handlers", "operate", "queues", "spark"])
def test_a_page_says_which_aws_command_it_means(name: str) -> None:
    page = Page(DOCS / f"{name}.md")
    assert any(command.startswith("aws ") for command in page.commands())
    assert "AWS CLI, version 2" in " ".join(page.text.split())


def test_the_readme_is_short_and_says_how_to_begin() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 180
    assert {"demo", "test", "deploy"} <= {words[1] for words in map(words_of, Page(ROOT / "README.md").commands())}


def test_every_target_of_the_makefile_is_explained() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    assert targets == set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
