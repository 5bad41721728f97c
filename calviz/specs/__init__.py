"""What can be registered (metrics, recalibrators, figures, checks, conventions), and their registries.

A spec holds everything that other code needs to know about an entry, so that no code tests for particular keys. The computation
itself is in the entry's own room. Two registries are elsewhere, beside their entries: formats in `calviz.data.format`, sections in
`calviz.report.section`.
"""
