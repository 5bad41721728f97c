"""The parts of the page Compare models: which models, their tables and figures, and models by recalibrators."""
