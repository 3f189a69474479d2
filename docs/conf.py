"""Sphinx configuration. Neither the build nor the pages need a network: equations are MathML, which browsers draw."""

import contextlib
import io
import os
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import jepatlas
from jepatlas.cli import COMMANDS, HELP, main

project = "jepatlas"
author = "The jepatlas authors"
release = jepatlas.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "notebooks"]
html_theme = "furo"
html_show_copyright = False
html_math_renderer = "mathml"
html_title = f"jepatlas {release}"
smartquotes = False  # quotes and -- in docstrings are often code
autodoc_member_order = "bysource"
autodoc_typehints = "description"
# Methods that scikit-learn adds to estimators; their docstrings refer to its own documentation.
SKLEARN = ", ".join(
    f"set_{method}_request" for method in ("fit", "partial_fit", "transform", "inverse_transform", "score")
)
autodoc_default_options = {"members": True, "undoc-members": True, "exclude-members": SKLEARN}
suppress_warnings = ["docutils", "ref.python"]

COMMANDS_PAGE = "reference/commands"
HELP_MARK = "<!-- help of all commands -->"
HELP_COLUMNS = "88"
NESTING = ("- ", "* ", ":", "..")  # the indented paragraphs after these belong to a list, a field or a directive


def insert_help(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the help of all commands, as the parser prints it, on their page."""
    if page == COMMANDS_PAGE:
        parts = [f"## jepatlas\n\n```text\n{HELP}```"]
        parts += [f"## {command}\n\n```text\n{help_of(command)}```" for command in COMMANDS]
        source[0] = source[0].replace(HELP_MARK, "\n\n".join(parts))


def help_of(command: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    return text.getvalue()


def literal_blocks(app: Sphinx, *arguments: Any) -> None:
    """Show indented paragraphs of docstrings, which are code and equations, as they are written."""
    lines: list[str] = arguments[-1]
    found: list[str] = []
    unindented = ""
    inside = False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        after_blank = number > 0 and not lines[number - 1].strip()
        if indented and after_blank and not inside and not unindented.startswith(NESTING):
            found += ["::", ""]
        if line.strip():
            inside = indented
            unindented = unindented if indented else line
        found.append(line)
    lines[:] = found


def inline_equation(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed_equation(translator: HTML5Translator, node: nodes.math_block) -> None:
    equation = latex2mathml.tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math">{equation}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    os.environ["COLUMNS"] = HELP_COLUMNS
    app.connect("source-read", insert_help)
    app.connect("autodoc-process-docstring", literal_blocks)
    app.add_html_math_renderer("mathml", (inline_equation, None), (displayed_equation, None))
