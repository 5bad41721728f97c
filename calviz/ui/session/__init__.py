"""What a visitor has open: files, settings, results computed for them, and the jobs that run for them.

Caches, navigation and what the server needs (memory, temporary files, the queue of jobs) belong here. Nothing here
draws more than the navigation; what is shown is in ``widgets`` and in the folders of the pages.
"""
