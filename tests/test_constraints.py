"""constraints.txt pins everything that is installed, what others bring included, and what builds
the package."""

import importlib.metadata
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins() -> dict[str, Version]:
    lines = [
        line.partition("#")[0].strip()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    ]
    pairs = [line.split("==") for line in lines if line]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def required() -> list[Requirement]:
    """By the project itself, with all extras, and by what builds it."""
    project = PROJECT["project"]
    groups = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        PROJECT["build-system"]["requires"],
    ]
    return [Requirement(text) for texts in groups for text in texts]


def installed() -> dict[str, Version]:
    """Of what the project requires, directly or not: what is there."""
    requirements = required()
    found: dict[str, Version] = {}
    seen: set[tuple[str, str]] = set()
    while requirements:
        requirement = requirements.pop()
        name = canonicalize_name(requirement.name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that was not chosen
        # torch 2.13.0+cpu is torch 2.13.0
        found[name] = Version(Version(distribution.version).public)
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            needed = [Requirement(text) for text in distribution.requires or ()]
            requirements += [
                n for n in needed if n.marker is None or n.marker.evaluate({"extra": extra})
            ]
    return found


def test_every_package_is_pinned_to_the_version_that_is_installed():
    pinned, found = pins(), installed()
    assert len(found) > 50
    assert not {name: str(version) for name, version in found.items() if name not in pinned}
    wrong = {
        name: f"{found[name]} is installed, {pinned[name]} is pinned"
        for name in found
        if found[name] != pinned[name]
    }
    assert not wrong


def test_what_is_required_directly_is_pinned_whether_it_is_installed_or_not():
    pinned = pins()
    assert not [r.name for r in required() if canonicalize_name(r.name) not in pinned]
    assert not [
        str(r) for r in required() if not r.specifier.contains(pinned[canonicalize_name(r.name)])
    ]
