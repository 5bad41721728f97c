"""The sections of a report, one file each, which registers itself in `calviz.report.section.SECTIONS`.

A section says what it shows, as blocks, and leaves the format to the writers. It takes numbers from `calviz.analysis`, figures from
`calviz.figures` and definitions from `calviz.learn`, and computes none of its own.
"""
