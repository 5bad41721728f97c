"""The parts of the page Decisions: the cutoff and what it leads to, the curves, before and after recalibration, and grades."""
