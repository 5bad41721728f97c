"""Figures, one file each; each registers itself."""
