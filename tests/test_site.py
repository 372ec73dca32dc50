"""The documentation as a site: every page of docs/ is on it, and it builds without a warning."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml


def pages(entries) -> set[str]:
    """The pages below an entry of the navigation."""
    if isinstance(entries, str):
        return {entries}
    parts = entries.values() if isinstance(entries, dict) else entries
    return set().union(*map(pages, parts))


def test_every_page_is_in_the_navigation(root):
    there = {path.name for path in (root / "docs").glob("*.md")}
    assert there <= pages(yaml.safe_load((root / "mkdocs.yml").read_text())["nav"])


@pytest.mark.skipif(not find_spec("mkdocs"), reason="mkdocs is not installed: pip install 'forgefield[docs]'")
def test_it_builds_without_a_warning(root, tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    configuration = (tmp_path / "configuration" / "index.html").read_text()
    assert "training.schedule" in configuration
    api = (tmp_path / "python_api" / "index.html").read_text()
    for name in ("ForgefieldCalculator", "ForceMatching", "UserError"):
        assert f".{name}" in api
