"""Result types of evaluations, verdicts, comparisons, learning curves and slices.

They are immutable and offer only what needs no further computation: order, marks, remarks, tables. They are computed in the
rooms above; how they are written is in ``*_words``, in `calviz.text`, the report, the command line and the app.
"""
