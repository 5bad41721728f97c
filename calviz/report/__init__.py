"""Results written for others: sections of blocks -> HTML, Markdown, JSON, PDF, ZIP; glossary, guide and reference of terms.

Not here: computing what is shown.
"""
