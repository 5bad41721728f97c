"""Code that builds the documentation site: ``mkdocs build`` calls `documentation.site`.

The contents come from ``docs`` (pages), ``examples`` (notebooks, shown with their output), the docstrings of the public names and the
registries. A file here turns one of these into pages. Nothing here is part of the package.
"""
