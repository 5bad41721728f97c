"""Parts of the page Learn: the entries with their texts, and the picture of three simulated models."""
