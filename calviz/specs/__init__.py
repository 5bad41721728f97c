"""What can be registered (metrics, recalibrators, figures, checks, conventions), and their registries.

A spec holds everything that others have to know about an entry, so that nobody asks for its key. What an entry computes is in its
own room. Two registries are elsewhere, beside what they hold: formats in `calviz.data.format`, sections in `calviz.report.section`.
"""
