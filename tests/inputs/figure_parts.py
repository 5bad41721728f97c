"""The texts that a figure shows, and the contrast of two colours (WCAG 2.1)."""


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


def parts(colour):
    """Red, green and blue of a colour that is written in hexadecimal digits, from 0 to 255."""
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def contrast(one, other):
    """The ratio of relative luminances, from 1 to 21."""

    def luminance(colour):
        linear = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
            for v in (c / 255 for c in colour)
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
