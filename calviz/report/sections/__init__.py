"""The sections of a report, one file each; each registers itself in `calviz.report.section.SECTIONS`.

A section describes its content as blocks and leaves the format to the writers. It takes numbers from `calviz.analysis`, figures from
`calviz.figures` and definitions from `calviz.learn`, and computes none of its own.
"""
