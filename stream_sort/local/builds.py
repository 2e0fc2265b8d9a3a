"""Keep what `sam build` made of the checkout's sources: who wants the same again gets a copy, and does not build."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.local.sources import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.local.sam import Sam

# Beside what `make build` makes; `make clean` removes both.
KEPT = Path(".aws-sam", "local")
# What the template calls it; so is its folder.
LAYER = "StreamSortLayer"


def build(sam: Sam, sources: str, report: Callable[[str], None]) -> None:
    """Put what sam makes of the sources with this fingerprint into the build folder of `sam`.

    The last build is kept, whole or not at all. Who comes while another one builds waits, and gets the same.
    """
    kept = sam.root / KEPT
    kept.mkdir(parents=True, exist_ok=True)
    with _locked(kept, report):
        made = kept / sources
        if made.is_dir():
            report("taking the layer and the functions as they were built before")
        else:
            report("building the layer and the functions (sam build)")
            made = _build_anew(sam, made)
        shutil.rmtree(sam.build_dir, ignore_errors=True)
        # The layer is large, and nobody changes it; into a function's folder a handler may be put.
        shutil.copytree(made, sam.build_dir, copy_function=_link_layer)


def _link_layer(source: str, target: str) -> None:
    if LAYER in Path(source).parts:
        with suppress(OSError):
            os.link(source, target)
            return
    shutil.copy2(source, target)


def _build_anew(sam: Sam, made: Path) -> Path:
    for other in made.parent.iterdir():
        shutil.rmtree(other, ignore_errors=True)
    unfinished = made.with_name("unfinished")
    replace(sam, build_dir=unfinished).build()
    # Of sources that were changed meanwhile, nobody knows what was built.
    return unfinished.rename(made) if fingerprint(sam.root) == made.name else unfinished


@contextmanager
def _locked(folder: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Be the only one to build; the lock goes with the process that holds it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another command, which is building the same")
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
