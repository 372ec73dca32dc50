"""The doctor's list of packages against pyproject.toml."""

import tomllib

from packaging.requirements import Requirement

from forgefield.doctor.packages import GROUPS


def test_groups_are_the_extras_of_the_project(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = {"base": project["dependencies"], **project["optional-dependencies"]}
    for group, packages in GROUPS.items():
        names = {Requirement(line).name for line in declared[group]}
        assert {package.distribution for package in packages} <= names, group
    assert {package.distribution for package in GROUPS["base"]} == {Requirement(line).name for line in declared["base"]}
