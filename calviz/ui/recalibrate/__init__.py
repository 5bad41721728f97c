"""The parts of the page Recalibrate."""
