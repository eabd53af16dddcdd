"""The documentation site: Markdown pages, and the API from docstrings. It loads nothing from outside."""

from importlib import metadata

_package = metadata.metadata("pytorch-memlab-c")
_links = dict(link.split(", ", 1) for link in _package.get_all("Project-URL") or [])

project = "pytorch_memlab_c"
release = version = _package["Version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["requirements.txt"]

html_theme = "furo"
html_title = f"{project} {release}"
html_theme_options = {
    "source_repository": _links["Source"],
    "source_branch": "main",
    "source_directory": "docs/",
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False

# `name` in a docstring is code.
default_role = "code"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_preprocess_types = False
