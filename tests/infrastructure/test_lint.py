"""The template is valid: as it is written, and as SAM expands it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cfnlint.api import lint, lint_file

ROOT = Path(__file__).parents[2]


def test_the_template_has_no_finding_of_cfn_lint() -> None:
    assert [str(finding) for finding in lint_file(ROOT / "template.yaml")] == []


def test_the_expanded_template_has_no_finding_of_cfn_lint(expanded: dict[str, Any]) -> None:
    assert [str(finding) for finding in lint(json.dumps(expanded), regions=["eu-west-1"])] == []


def test_every_parameter_is_explained_grouped_and_used(template: dict[str, Any]) -> None:
    interface = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in interface for name in group["Parameters"]]
    used = json.dumps({part: template[part] for part in ("Conditions", "Globals", "Resources")})
    assert sorted(grouped) == sorted(template["Parameters"])
    for name, parameter in template["Parameters"].items():
        assert parameter["Description"], name
        assert "Default" in parameter, name
        assert f'{{"Ref": "{name}"}}' in used, name
