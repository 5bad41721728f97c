"""What all rooms build on, and nothing that knows how a number is judged: predictions and their columns, events and reductions, arrays in blocks, words for people, errors, limits, the specs and registries, kernels on plain arrays that two rooms share, the type `Profile`.

Not here: reading, resampling, anything that only one room uses. `errors`, `registry`, `version`
import no numpy (`import calviz` stays cheap); `table_export` imports pandas and stays alone.
"""
