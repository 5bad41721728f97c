"""The parts of the page Risk-coverage: the threshold, its costs, the curves of other models, and after recalibration."""
