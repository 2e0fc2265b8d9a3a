"""Known vulnerabilities of the locked dependencies: asks pip-audit, and never takes no answer for a good one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
UV = str(ROOT / ".tools/bin/uv")
PIP_AUDIT = "pip-audit==2.10.1"
EXPORT = ("export", "--quiet", "--frozen", "--no-dev", "--all-extras", "--no-emit-project", "--output-file")
CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 2


class Verdict(NamedTuple):
    """What came of it: an exit code, and what to say."""

    code: int
    told: list[str]


def verdict(answer: str, problem: str) -> Verdict:
    """What an answer of pip-audit means: it ends with 0, too, where the service knew none of the packages."""
    try:
        dependencies = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        why = problem.strip().rpartition("\n")[2] or "no answer"
        return Verdict(NOT_AUDITED, [f"NOT AUDITED: no service with vulnerabilities could be reached ({why})"])
    found = [
        f"{one['name']} {one['version']}: {flaw['id']}; mended in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for one in dependencies
        for flaw in one.get("vulns", ())
    ]
    unknown = [one["name"] for one in dependencies if "skip_reason" in one]
    if unknown or not dependencies:
        told = f"NOT AUDITED: of {len(unknown)} of {len(dependencies)} packages the service knew nothing"
        hint = "is the index a mirror that has no vulnerabilities? Run it where pypi.org can be reached"
        return Verdict(VULNERABLE if found else NOT_AUDITED, [*found, f"{told}: {', '.join(unknown)}; {hint}"])
    return Verdict(VULNERABLE if found else CLEAN, found or [f"{len(dependencies)} packages, no known vulnerability"])


def main() -> int:
    """Audit what is locked: 0 if nothing is known, 1 if something is, 2 if nobody could be asked."""
    with tempfile.TemporaryDirectory() as folder:
        locked = str(Path(folder) / "requirements.txt")
        subprocess.run([UV, *EXPORT, locked], cwd=ROOT, check=True)
        audit = [UV, "tool", "run", "--from", PIP_AUDIT, "pip-audit", "--disable-pip", "--require-hashes"]
        done = subprocess.run(
            [*audit, "-r", locked, "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=False
        )
    code, told = verdict(done.stdout, done.stderr)
    print("\n".join(told), file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
