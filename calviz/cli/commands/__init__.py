"""The commands, one file each, which holds a click command named ``command``; the group finds it by itself.

A command reads its options, calls the library, and prints or writes. What two commands need belongs in ``calviz/cli``.
"""
