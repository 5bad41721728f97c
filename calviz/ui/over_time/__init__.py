"""Parts of the page Over time; what other pages show as well is in `calviz.ui.widgets`."""
