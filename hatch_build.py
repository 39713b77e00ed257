"""What a package says about itself on PyPI: the README with absolute links, and addresses of the repository.

The address of the repository is in the variable REPOSITORY_URL, which `packages.yml` sets. Without it, such as in a
build from a clone, the README is unchanged.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")
PAGES = {
    "Documentation": "docs/tutorial.md",
    "Changelog": "CHANGELOG.md",
    "Security": "SECURITY.md",
}


class CustomMetadataHook(MetadataHookInterface):
    """Sets the fields `readme` and `urls`."""

    def update(self, metadata: dict) -> None:
        """Set the fields of the package's metadata."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get("REPOSITORY_URL", "").rstrip("/"):
            version = metadata["version"]
            commit = "HEAD" if "dev" in version else f"v{version}"
            readme = with_absolute_links(readme, repository, commit)
            metadata["urls"] = {"Source": repository, "Issues": f"{repository}/issues"}
            for name, path in PAGES.items():
                metadata["urls"][name] = f"{repository}/blob/{commit}/{path}"
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def with_absolute_links(text: str, repository: str, commit: str) -> str:
    """Return Markdown whose links to files and pictures of the repository are absolute."""

    def absolute(link: re.Match[str]) -> str:
        view = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}({repository}/{view}/{commit}/{link[3]})"

    return LINK.sub(absolute, text)
