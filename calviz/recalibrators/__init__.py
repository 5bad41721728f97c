"""Recalibrators, one file each; each registers itself."""
