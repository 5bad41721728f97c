"""What all rooms build on, and nothing that knows how a number is judged: predictions and their columns, events and reductions, arrays in blocks, words for people, errors, limits, the specs and registries, kernels on plain arrays that two rooms share, the type `Profile`.

Not here: reading, resampling, anything that only one room uses. `errors` and `registry` import no numpy
(`import calviz` stays cheap).
"""

__version__ = "0.2.0"
