"""What MkDocs needs to show pages that lie elsewhere in the repository, beside what they describe."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {
    "README.md": "index.md",
    "config/README.md": "configuration.md",
    "results/README.md": "results.md",
    "resources/README.md": "resources.md",
    "benchmarks/README.md": "benchmarks.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Page in the repository -> page of the site."""

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from elsewhere."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to pages of the site; what is not on it stays as text."""
    here = {site: source for source, site in ELSEWHERE.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return LINK.sub(lambda link: _link(link, posixpath.dirname(here)), markdown)


def _link(link: re.Match[str], folder: str) -> str:
    target, anchor = link["target"], link["anchor"] or ""
    if not target or "://" in target:
        return link[0]
    place = posixpath.normpath(posixpath.join(folder, target))
    page = ELSEWHERE.get(place) or (place.removeprefix("docs/") if place.startswith("docs/") else None)
    return f"{link['image']}[{link['text']}]({page}{anchor})" if page else link["text"]
