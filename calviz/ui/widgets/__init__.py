"""The parts that several pages show: cards, tables, diagrams, the uploader, the sidebar, the progress of long work.

A part that only one page shows belongs in that page's folder.
"""
