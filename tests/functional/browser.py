"""A page in a real browser: what it loads, says and runs, where things are, and what colour they have."""

from __future__ import annotations

import io
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

# As in the Makefile, which installs the first.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
Colour = tuple[int, int, int]


def program() -> str:
    """The browser on this machine; without one, the test is skipped."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and not MACOS.exists():
        pytest.skip(
            "no Chromium or Chrome on this machine (Debian: apt install chromium); make test tries to install it"
        )
    return found or str(MACOS)


@contextmanager
def a_browser() -> Iterator[Browser]:
    executable = program()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Sight:
    """A page as it was opened, with all that it asked for and said."""

    page: Page
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def shoot(self, path: Path) -> Screenshot:
        """Take a picture of the whole page."""
        taken = self.page.screenshot(path=path, full_page=True)
        return Screenshot(Image.open(io.BytesIO(taken)).convert("RGB"))

    def colour(self, variable: str) -> Colour:
        """What the page's style says."""
        script = "name => getComputedStyle(document.documentElement).getPropertyValue(name)"
        text = self.page.evaluate(script, variable).strip().removeprefix("#")
        return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)

    def tipped(self, words: str, figure: str = "figure.wide") -> Locator:
        """What says this when it is pointed at."""
        return self.page.locator(f"{figure} svg :has(> title)").filter(has_text=words)


@dataclass(frozen=True)
class Screenshot:
    """The pixels of a page."""

    image: Image.Image

    def at_middle(self, thing: Locator) -> Colour:
        x, y, width, height = box(thing)
        pixel: Any = self.image.getpixel((round(x + width / 2), round(y + height / 2)))
        return pixel

    def count(self, thing: Locator, colour: Colour) -> int:
        """How many pixels of a thing have a colour."""
        x, y, width, height = map(round, box(thing))
        part = self.image.crop((x, y, x + width, y + height))
        return sum(count for count, pixel in part.getcolors(part.width * part.height) or [] if pixel == colour)


def box(thing: Locator) -> tuple[float, float, float, float]:
    found = thing.bounding_box()
    assert found is not None, "it is not to be seen"
    return found["x"], found["y"], found["width"], found["height"]


@contextmanager
def open_page(browser: Browser, path: Path, *, width: int = 1200, scheme: Any = "light") -> Iterator[Sight]:
    """A page in a window of its own, watched from its first byte on."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    # A machine that is busy with other tests takes its time to open a page.
    context.set_default_timeout(60_000)
    page = context.new_page()
    sight = Sight(page)
    page.on("request", lambda request: sight.requests.append(request.url))
    page.on("console", lambda message: sight.said.append(message.text))
    page.on("pageerror", lambda error: sight.said.append(str(error)))

    def shut(dialog: Any) -> None:
        sight.said.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", shut)
    page.goto(path.as_uri())
    yield sight
    context.close()
