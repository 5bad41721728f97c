"""The commands: each file holds a click command named ``command``, which the group finds by itself.

A command reads its options, calls the library, and prints or writes the result. Code shared by commands belongs in ``calviz/cli``.
"""
