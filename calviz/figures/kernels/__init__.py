"""Curves and tables that only figures, and the pages around them, show: arrays in, arrays out, no plotly."""
