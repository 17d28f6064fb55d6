"""How the documentation site is built: `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the examples' matrices are small

from docutils import nodes

import unbraid

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))  # gallery_order.py

project = "unbraid"
author = "the unbraid developers"
version = release = unbraid.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "gallery/**/*.json"]
smartquotes_action = "D"  # dashes only: g' is a derivative
nitpicky = False  # NumPy's types would need its inventory, from the network
default_role = "py:obj"  # `Problem` in a docstring is a link where there is such a name
highlight_language = "none"  # formulas stand in code blocks
pygments_style = "tango"

# Pages are Markdown, and read on code hosts as well.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# The reference: numpydoc docstrings, types from the signatures.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": ".py",
    "within_subsection_order": "gallery_order.Order",
    "run_stale_examples": True,  # the library may have changed where an example has not
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,  # its table asks the network for scripts
    "capture_repr": (),  # what is shown is printed
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = f"unbraid {release}"
html_static_path = ["_static"]
html_sidebars = {"index": [], "start": [], "method": []}  # they have no pages below them
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}

ROOT_PAGES = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
"""Pages that are files beside the README: those of this folder only point there."""
ELSEWHERE = {
    "../README.md": "index.md",
    "../examples": "gallery/index.rst",
    **{f"../{path}": f"{name}.md" for name, path in ROOT_PAGES.items()},
}
"""What a link on a code host points to, and its page on the site."""


def from_root(page: str) -> str:
    """The text of a page beside the README, with links as they are from here."""
    return re.sub(r"\]\((?![a-z]+:|#)", "](../", page).replace("](../docs/", "](")


def on_the_site(page: str) -> str:
    """The text of a page with links to files of the repository turned to the pages that show them."""
    for link, target in ELSEWHERE.items():
        page = page.replace(f"]({link})", f"]({target})")
    return re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](gallery/\1.rst)", page)


TYPES = {"npt.NDArray": "ndarray", "npt.ArrayLike": "array_like", "np.random.": "", "np.float64": "float"}
"""What types are called in the source, and what a reader of the reference calls them."""


def name_types(app, doctree):
    """Types in lists of parameters and results, by names that need no import."""
    for field in doctree.findall(nodes.field_body):
        for text in list(field.findall(nodes.Text)):
            named = text
            for said, name in TYPES.items():
                named = named.replace(said, name)
            if named != text and not isinstance(text.parent, nodes.literal):
                text.parent.replace(text, nodes.Text(named))


def setup(app):
    """Called by Sphinx."""
    app.connect("doctree-read", name_types)

    def read(app, name, source):
        if name in ROOT_PAGES:
            path = ROOT / ROOT_PAGES[name]
            app.env.note_dependency(path)
            source[0] = from_root(path.read_text(encoding="utf-8"))
        source[0] = on_the_site(source[0])

    app.connect("source-read", read)
