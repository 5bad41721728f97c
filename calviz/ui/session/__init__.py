"""The state of a visitor's session: open files, settings, results computed for them, and running jobs.

Caches, navigation and the server's resources (memory, temporary files, the queue of jobs) belong here. This folder draws
nothing but the navigation; everything else on screen is in ``widgets`` and in the folders of the pages.
"""
