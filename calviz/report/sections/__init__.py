"""The sections of a report; each registers itself in `calviz.report.content.SECTIONS`.

A section describes its content as blocks and leaves the format to the writers. It takes numbers from `calviz.verdicts.analysis`, figures from
`calviz.figures` and definitions from `calviz.report.reference`, and computes none of its own.
"""
