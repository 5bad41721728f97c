"""File formats, one per module; each announces itself in `calviz.data.format.FORMATS`."""
