"""The parts of the page Decisions: the cutoff and its consequences, the curves, before and after recalibration, and grades."""
