"""Configuration of the documentation site; `make docs` builds it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import judgekit  # noqa: E402  # the checkout, and no other installation

project = "judgekit"
author = "The judgekit developers"
copyright = "2026, the judgekit developers"  # the name is Sphinx's
version = release = judgekit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated_pages"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6
suppress_warnings = ["myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_use_rtype = False

html_theme = "furo"
html_title = "judgekit"
html_static_path: list[str] = []
html_show_sphinx = False
