"""The configuration of Sphinx. The site loads nothing from elsewhere."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import translucid  # noqa: E402

project = "Translucid"
author = copyright = "The Translucid contributors"
release = version = translucid.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "extension"]
exclude_patterns = ["**/*.json"]

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "ref.python"]

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
autodoc_mock_imports = ["ray"]
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
viewcode_follow_imported_members = False
toc_object_entries = False
add_module_names = False
maximum_signature_line_length = 90
highlight_language = "text"
smartquotes = False  # would replace two dashes by one
default_role = "code"

html_theme = "furo"
html_title = f"Translucid {version}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_search_summary = False  # the summary needs a request, which fails for local files
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "navigation_with_keys": True,
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#1d4e89", "color-brand-content": "#1d4e89"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ee", "color-brand-content": "#8ab8ee"},
}
