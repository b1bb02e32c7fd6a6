"""Configure Sphinx, which builds a site from the Markdown pages: `make docs`. Warnings are errors.

The pages are the same as in the repository, but docs/api.md also has the docstrings of functions.
The checkout is the source of the site, so links work as in the repository: README.md and
config/README.md are also pages of the site, and other files that a page links to are copied into
it.
"""

import re

from bwarp import __version__

project = "bwarp"
author = "the bwarp developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/README.md", "docs/*.md"]
exclude_patterns = [".*", "[!CRcd]*"]  # folders without pages are skipped
root_doc = "docs/index"
myst_heading_anchors = 3  # the anchors that the web view of a repository gives to headings

# docs/api.md has one argument per line.
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"bwarp {version}"
html_show_sourcelink = False
html_show_copyright = False
html_additional_pages = {"index": "first_page.html"}
templates_path = ["site"]


def setup(app):
    app.connect("source-read", add_contents)


def add_contents(app, docname, source):
    """Make the site's table of contents from the links in docs/index.md, in their order.

    A page without a link there causes a warning, so none is forgotten.
    """
    if docname != root_doc:
        return
    for heading, section in re.findall(r"^## (.*)\n([^#]*)", source[0], re.MULTILINE):
        pages = re.findall(r"^- \[.*?\]\(([^)#]+)\.md\)", section, re.MULTILINE)
        if pages:
            options = ["{toctree}", ":hidden:", f":caption: {heading}", ""]
            source[0] += "\n".join(["", "```" + options[0], *options[1:], *pages, "```", ""])
