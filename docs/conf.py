"""The site: `make docs` builds it, strictly, into build/site.

What is made of the package is written into `generated` before Sphinx reads the pages (`site_pages.py`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import site_pages  # noqa: E402

import lmemtest  # noqa: E402

project = "lmemtest"
copyright = "the authors of lmemtest"
release = version = lmemtest.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
nitpicky = True

# What docstrings name of other projects. Addresses of our own: inventories would need the network.
ELSEWHERE = {
    "numpy.ndarray": "https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html",
    "numpy.random.Generator": "https://numpy.org/doc/stable/reference/random/generator.html",
    "pandas.DataFrame": "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.html",
    "pandas.Series": "https://pandas.pydata.org/docs/reference/api/pandas.Series.html",
    "matplotlib.axes.Axes": "https://matplotlib.org/stable/api/_as_gen/matplotlib.axes.Axes.html",
    "matplotlib.figure.Figure": "https://matplotlib.org/stable/api/_as_gen/matplotlib.figure.Figure.html",
}

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page made of the parts of two may skip a level

autodoc_typehints = "none"  # numpydoc says them in the field's words
numpydoc_show_class_members = False
numpydoc_xref_param_type, numpydoc_xref_ignore = True, "all"
numpydoc_xref_aliases = {name.rpartition(".")[2]: name for name in ELSEWHERE} | {name: name for name in ELSEWHERE}
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "lmemtest"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_extra_path = ["generated/extra"]
html_show_sourcelink = False
html_sidebars = {"**": ["globaltoc"]}
html_theme_options = {
    "navbar_center": [],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
}
html_context = {"default_mode": "light"}
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    """Write the pages that are made of the package, and link the names of the API page to theirs."""
    # before Sphinx looks for the folders that the settings name
    app.connect("config-inited", lambda app, _: site_pages.write(Path(app.srcdir)), priority=100)
    app.connect("source-read", site_pages.linked)
    app.connect("missing-reference", elsewhere)


def elsewhere(_app, _env, node, contnode):
    """A link to what another project documents; types of Python and numpy that numpydoc knows need none."""
    target = node.get("reftarget", "")
    if target.startswith(("python:", "numpy:")):
        return nodes.inline("", contnode.astext().partition(":")[2] or contnode.astext())
    return nodes.reference("", "", contnode, internal=False, refuri=ELSEWHERE[target]) if target in ELSEWHERE else None
