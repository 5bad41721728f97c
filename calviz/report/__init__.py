"""Reports: results written for others, as HTML, Markdown, JSON and a ZIP file of tables.

A section yields blocks, and each writer renders the same blocks in its format. The JSON of results (``json`` and the files named
``..._json``) is here as well: the command line and the app write the same JSON. Nothing slow is computed here; the page
or the command passes such results in a `calviz.report.subject.Subject`.
"""
