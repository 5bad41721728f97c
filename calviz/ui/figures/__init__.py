"""The page Figures: panels that are chosen and put beside each other. How they are drawn is in `calviz.figures`."""
