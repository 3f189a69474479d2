"""Sphinx configuration; the build needs no network."""

import jepatlas

project = "jepatlas"
author = "The jepatlas authors"
release = jepatlas.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"jepatlas {release}"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
# Methods that scikit-learn adds to estimators; their docstrings refer to its own documentation.
SKLEARN = ", ".join(
    f"set_{method}_request" for method in ("fit", "partial_fit", "transform", "inverse_transform", "score")
)
autodoc_default_options = {"members": True, "undoc-members": True, "exclude-members": SKLEARN}
suppress_warnings = ["docutils", "ref.python"]
