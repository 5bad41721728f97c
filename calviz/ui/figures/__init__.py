"""The page Figures: chosen panels, put beside each other. How they are drawn is in `calviz.figures`."""
