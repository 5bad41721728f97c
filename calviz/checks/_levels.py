"""How the false alarms of a calibrated file are divided; the numbers stand in `calviz.core.levels`."""

from __future__ import annotations

from calviz.core.levels import CLASS_TEST, CLASSES, FILE, OVERALL, SLICES, class_level

__all__ = ["CLASSES", "CLASS_TEST", "FILE", "OVERALL", "SLICES", "class_level"]
