"""What an evaluation, a verdict, a comparison, a learning curve or a look at slices returns.

Immutable values, and what can be said of them without computing: order, marks, remarks, tables. What computes them is in the
rooms above; how they are written is in `calviz.text`, and in the report, the command line and the app.
"""
