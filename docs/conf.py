"""How the documentation is built: Sphinx reading Markdown, every warning an error (`tox -e docs`)."""

from __future__ import annotations

import re
from pathlib import Path

project = "Qiju"
author = "The Qiju founders"
release = re.findall(
    r'__version__ = "(.+?)"', (Path(__file__).parent.parent / "qiju" / "__init__.py").read_text(encoding="utf-8")
)[0]
version = release

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # an example may hold what is no valid JSON on purpose

html_theme = "furo"
html_title = f"Qiju {release}"
html_copy_source = False
