"""Checks, one file each; each registers itself."""
