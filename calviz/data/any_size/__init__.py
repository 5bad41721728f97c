"""Sources of any size, summed and sampled without being held in memory.

Reading a small file belongs in `data`; what a sum means belongs in `core.profile` and `sample`.
"""
