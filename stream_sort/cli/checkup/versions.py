"""Do all functions run the same stream_sort, and is it the one that looks at them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stream_sort.cli.checkup.finding import Finding, fail, ok, warn
from stream_sort.cli.checkup.remedies import restore, update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.cli.checkup.asking import Aws
    from stream_sort.cli.checkup.functions import Configs

AREA = "versions"
# The layer's description begins with it.
NAMED = re.compile(r"stream_sort (\d+\.\d+\.\d+\S*?),")


def layers_of(configs: Configs) -> dict[str, tuple[str, ...]]:
    """The layers of each step's function."""
    return {
        step: tuple(layer["Arn"] for layer in config.get("Layers", ()))
        for step, config in configs.items()
        if config is not None
    }


def check_layers(layers: dict[str, tuple[str, ...]], aws: Aws) -> Iterator[Finding]:
    """Whether all functions have the same layers."""
    if len(set(layers.values())) > 1:
        told = "; ".join(f"{step} has {', '.join(arns) or 'none'}" for step, arns in layers.items())
        yield fail(AREA, f"the functions have different layers: {told}", restore(aws))
    elif any(layers.values()):
        yield ok(AREA, f"all functions have the layer {next(iter(layers.values()))[0].partition(':layer:')[2]}")
    elif layers:
        yield fail(AREA, "no function has the layer with stream_sort in it", restore(aws))


def check_version(description: str, ours: str, aws: Aws) -> Iterator[Finding]:
    """Whether the layer's stream_sort is the one of this command."""
    match = NAMED.search(description)
    if match is None:
        yield warn(AREA, f"the layer does not say which stream_sort it holds; this is {ours}", update(aws))
    elif match[1] != ours:
        yield warn(AREA, f"the functions run stream_sort {match[1]}, this command is {ours}", update(aws))
    else:
        yield ok(AREA, f"the functions run stream_sort {ours}, as this command")
