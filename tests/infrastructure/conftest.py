"""The template, as it is written and as AWS sees it once SAM has expanded it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml
from samtranslator.translator.transform import transform

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(ROOT / "template.yaml"))))
    return loaded


@pytest.fixture(scope="session")
def expanded(template: dict[str, Any]) -> dict[str, Any]:
    source = deepcopy(template)
    for resource in source["Resources"].values():
        for name in {"CodeUri", "ContentUri"} & set(resource["Properties"]):
            resource["Properties"][name] = f"s3://bucket/{name}"  # as `sam package` does
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        result: dict[str, Any] = transform(source, {}, SimpleNamespace(load=dict))
    return result


@pytest.fixture(scope="session")
def resources(expanded: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = expanded["Resources"]
    return found


@pytest.fixture(scope="session")
def defaults(template: dict[str, Any]) -> dict[str, str]:
    """What the parameters are if nobody says otherwise."""
    return {name: str(parameter["Default"]) for name, parameter in template["Parameters"].items()}
