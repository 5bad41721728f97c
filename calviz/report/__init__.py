"""Reports: results written down for others, as HTML, Markdown, JSON and a ZIP file of tables.

A section yields blocks, and each writer writes the same blocks in its format. The JSON of results (``json`` and the files named
``..._json``) belongs here as well: the command line and the app write the same. Nothing that takes long is computed here; the page
or the command hands it over in a `calviz.report.subject.Subject`.
"""
