"""The texts that a figure shows."""


def texts(value):
    """Yield all texts in the JSON of a figure."""
    if isinstance(value, dict):
        # Packed numbers may spell anything.
        for v in (v for k, v in value.items() if k != "bdata"):
            yield from texts(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v)
    elif isinstance(value, str):
        yield value
