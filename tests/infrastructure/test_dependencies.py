"""What an installation brings along may be used; an audit that asked nobody is not one that found nothing."""

from __future__ import annotations

import json
import tomllib
from email.message import Message

import pytest

from tests.infrastructure.licences import PLAIN, ROOT, UNKNOWN, is_allowed, licence_of, licences
from tests.infrastructure.vulnerabilities import CLEAN, NOT_AUDITED, VULNERABLE, verdict


def test_every_locked_dependency_of_every_extra_has_a_licence_that_is_allowed() -> None:
    found = licences()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert found.keys() == {PLAIN, *project["optional-dependencies"]}
    assert {"boto3", "botocore"} <= {one.name for one in found[PLAIN]}
    assert {"pyspark", "py4j"} <= {one.name for one in found["spark"]}
    assert "aws-xray-sdk" in {one.name for one in found["lambda"]}, "the extra of a dependency is followed"
    assert [one for held in found.values() for one in held if not one.is_allowed] == []


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("(BSD-3-Clause AND 0BSD) OR AGPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-or-later", False),
        ("Proprietary", False),
        (UNKNOWN, False),
        ("", False),
    ],
)
def test_a_licence_is_allowed_if_one_choice_is_allowed_whole(expression: str, allowed: bool) -> None:  # noqa: FBT001
    assert is_allowed(expression) is allowed


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License-Expression": "MIT", "License": "GPL"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: Apache Software License"}, "Apache-2.0"),
        (
            {"Classifier": "License :: OSI Approved :: GNU General Public License (GPL)"},
            "GNU General Public License (GPL)",
        ),
        ({"License": "ISC License"}, "ISC"),
        ({"License": "Copyright (c) 2015, somebody\nAll rights reserved"}, "Copyright (c) 2015, somebody"),
        ({}, UNKNOWN),
    ],
)
def test_a_licence_is_what_the_metadata_says_in_that_order(fields: dict[str, str], licence: str) -> None:
    told = Message()
    for name, value in fields.items():
        told[name] = value
    assert licence_of(told) == licence


SOUND = {"name": "boto3", "version": "1.44.0", "vulns": []}
FLAWED = {"name": "six", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
UNHEARD = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"}


@pytest.mark.parametrize(
    ("dependencies", "code", "told"),
    [
        ([SOUND], CLEAN, "1 packages, no known vulnerability"),
        ([SOUND, FLAWED], VULNERABLE, "six 1.0: PYSEC-1; mended in 1.1"),
        ([SOUND, UNHEARD], NOT_AUDITED, "NOT AUDITED: of 1 of 2 packages the service knew nothing: rich"),
        ([FLAWED, UNHEARD], VULNERABLE, "six 1.0: PYSEC-1; mended in 1.1"),
        ([], NOT_AUDITED, "NOT AUDITED"),
    ],
)
def test_what_the_service_does_not_know_is_not_audited(dependencies: list[object], code: int, told: str) -> None:
    found = verdict(json.dumps({"dependencies": dependencies}), "")
    assert found.code == code
    assert found.told[0].startswith(told)


def test_a_service_that_cannot_be_reached_is_told_in_words() -> None:
    code, told = verdict("", "Traceback\n ...\nConnectionError: no route to the service")
    assert code == NOT_AUDITED
    assert told == [
        "NOT AUDITED: no service with vulnerabilities could be reached (ConnectionError: no route to the service)"
    ]
