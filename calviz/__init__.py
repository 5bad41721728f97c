"""calviz: can I trust these probabilities?"""

from calviz.analysis import evaluate
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.core.reduction import Reduction

__version__ = "0.1.0"

__all__ = ["ConfidencePredictions", "Predictions", "Reduction", "__version__", "evaluate"]
