"""Sphinx: `make docs` lays out the pages (tools/docs/build.py) and calls it with these settings."""

import tiercel

project = "tiercel"
author = "the tiercel developers"
release = version = tiercel.__version__
extensions = ["myst_parser"]
root_doc = "docs/index"
exclude_patterns = ["**/LICENSE*"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # excerpts of YAML and Python with ... for the rest

html_theme = "furo"
html_title = f"tiercel {release}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
templates_path = ["templates"]
html_additional_pages = {"index": "to-the-start.html"}
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
