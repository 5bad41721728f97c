"""How the documentation site is made: ``mkdocs build`` calls `documentation.site`.

What people read is in ``docs`` (pages), ``examples`` (notebooks, which the site shows with what they print and draw), the docstrings of
the public names and the registries. A file here turns one of these into pages. Nothing here travels in the package.
"""
