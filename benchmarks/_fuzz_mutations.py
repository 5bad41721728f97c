"""Ways to damage a file: bytes, numbers, chunks, and the contents of gzip and zip."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from _fuzz_seeds import members

Mutation = Callable[[bytes, random.Random], bytes]

#: Number of bytes at both ends where formats keep their structure.
_EDGE = 160
_LONGEST = 1 << 18
_WHOLE = (0, 1, 2, 3, 7, 8, 23, 25, 127, 128, 255, 256, 32_767, 65_535, 65_536)
_LARGE = (2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**48, 2**63 - 1, 2**64 - 1)
_WORDS = (
    b"nan", b"NaN", b"inf", b"-inf", b"1e309", b"-1e309", b"1e-320", b"1e400", b"-1", b"-0", b"0", b"1", b"2",
    b"", b"NA", b"null", b"None", b"true", b"9" * 400, b"9" * 5_000, b"0x10", b"1_0", b"1.5", b"0,5", b"+.5",
    b".", b"-", b"\xd9\xa3", b"\xc2\xb2", b"\xef\xbc\x95", b"1e5", b"100", b"18446744073709551616", b"1.0",
    b"label", b"p_cat", b"probs", b"logits", b"(24,)", b"(-1, 3)", b"(0, 3)", b"(10**9, 3)", b"(99999999, 3)",
    b"'|O'", b"'<U0'", b"'|S0'", b"'|V8'", b"'<M8[D]'", b"'<c16'", b"'<f2'", b"'>f8'", b"'|b1'", b"'<U9999'",
    b"True", b"False", b"[('a', '<f8')]", b"()", b"(24, 3, 1)", b"[]", b"{}", b'{"a": 1}', b"[[1]]", b'"x"',
)  # fmt: skip
_TOKENS = (
    b",", b";", b"\t", b"|", b" ", b":", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b"\0", b"#", b"\xff", b"\xfe",
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"\xe2\x80\xae", b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b"=cmd|' /C'!A0",
    b"<script>", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY\x01\x00", b"PAR1", b"ARROW1", b"\x1f\x8b",
    b"\xff\xff\xff\xff", b"\x80\x04", b"sep=;\n", b"\n\n\n", b"\x1a", b"\x85", b"\xe2\x80\xa8", b"\x1c",
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def _place(data: bytes, rng: random.Random) -> int:
    """Draw a position in the data, half of the time near an end, where headers and footers are."""
    n = max(1, len(data))
    if rng.random() < 0.5:
        return rng.randrange(n)
    near = rng.randrange(min(n, _EDGE * (1 + 3 * (rng.random() < 0.5))))
    return near if rng.random() < 0.4 else n - 1 - near


def _flip(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if out:
            out[_place(data, rng)] ^= 1 << rng.randrange(8)
    return bytes(out)


def _byte(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if out:
            out[_place(data, rng)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(out)


def _binary_number(data: bytes, rng: random.Random) -> bytes:
    size = rng.choice((1, 2, 4, 8))
    at = _place(data, rng)
    value = rng.choice((*_WHOLE, *_LARGE, len(data), at, rng.getrandbits(8 * size)))
    if rng.random() < 0.3 and at + size <= len(data):
        old = int.from_bytes(data[at : at + size], "little")
        value = old + rng.choice((-1, 1, -8, 8, 256, old))
    order = "little" if rng.random() < 0.9 else "big"
    raw = (value % (1 << 8 * size)).to_bytes(size, order)
    return data[:at] + raw + data[at + size :]


def _float(data: bytes, rng: random.Random) -> bytes:
    value = rng.choice(
        (float("nan"), float("inf"), -1.0, 2.0, 1e-320, 1e308, -1e308, 1e4, 50.0, 0.0)
    )
    raw = (
        struct.pack("<d", value)
        if rng.random() < 0.5
        else struct.pack("<f", min(max(value, -3e38), 3e38))
    )
    at = _place(data, rng)
    return data[:at] + raw + data[at + len(raw) :]


def _text_number(data: bytes, rng: random.Random) -> bytes:
    matches = list(_NUMBER.finditer(data[:65_536]))
    if not matches:
        return _token(data, rng)
    for match in sorted(
        rng.sample(matches, min(len(matches), rng.choice((1, 1, 2, 5)))), key=lambda m: -m.start()
    ):
        data = data[: match.start()] + rng.choice(_WORDS) + data[match.end() :]
    return data


def _word(data: bytes, rng: random.Random) -> bytes:
    """Replace a word, such as a name or a key, by another one."""
    matches = list(re.finditer(rb"[A-Za-z_|<>']{2,}", data[:65_536]))
    if not matches:
        return _token(data, rng)
    match = rng.choice(matches)
    return data[: match.start()] + rng.choice(_WORDS) + data[match.end() :]


def _token(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    over = rng.choice((0, 0, 1, 2))
    return data[:at] + rng.choice(_TOKENS) + data[at + over :]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] if rng.random() < 0.8 else data[at:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + rng.choice((1, 2, 4, 8, 30, 100, 400)) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    at, size = _place(data, rng), rng.choice((1, 2, 4, 8, 30, 100, 400))
    times = rng.choice((1, 2, 3, 16, 64, 300))
    return (data[:at] + data[at : at + size] * times + data[at:])[:_LONGEST]


def _noise(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.randbytes(rng.choice((1, 4, 16, 64))) + data[at:]


def _swap(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((_place(data, rng), _place(data, rng)))
    size = rng.choice((1, 4, 8, 40))
    return (
        data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]
    )


SIMPLE: tuple[Mutation, ...] = (
    _flip, _byte, _binary_number, _binary_number, _float, _text_number, _text_number, _word, _token, _truncate, _cut,
    _repeat, _noise, _swap,
)  # fmt: skip


def _inside_gzip(data: bytes, rng: random.Random) -> bytes:
    """Damage the compressed text, with correct checksums."""
    try:
        inner = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return data
    return gzip.compress(rng.choice(SIMPLE)(inner, rng), compresslevel=1, mtime=0)


_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_MEMBERS = (
    "probs.npy", "labels.npy", "logits.npy", "../x.npy", "/etc/x.npy", "", "a\0.npy", ".npy", "x.txt", "é.npy",
    "split.npy", "val_probs.npy", "=1+1.npy", "<b>.npy", "class_names.npy", "y" * 5_000 + ".npy",
)  # fmt: skip


def _inside_zip(data: bytes, rng: random.Random) -> bytes:
    """Damage an array, its name or its compression type, with correct checksums."""
    try:
        parts = list(members(data).items())
    except Exception:  # data that are no zip file any more are returned unchanged
        return data
    at = rng.randrange(len(parts)) if parts else 0
    method = rng.choice(_METHODS) if rng.random() < 0.2 else _METHODS[rng.randrange(2)]
    if parts and rng.random() < 0.75:
        name, content = parts[at]
        head = rng.random() < 0.6
        content = (
            rng.choice(SIMPLE)(content[:128], rng) + content[128:]
            if head
            else rng.choice(SIMPLE)(content, rng)
        )
        parts[at] = (name, content)
    elif parts and rng.random() < 0.6:
        parts[at] = (rng.choice(_MEMBERS), parts[at][1])
    elif parts:
        parts.append((rng.choice(_MEMBERS), parts[at][1]))
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")  # two members with the same name
        for name, content in parts:
            archive.writestr(name or "x", content)
    return stream.getvalue()


#: Values that are valid in JSON but unexpected anywhere.
_VALUES = (
    None, True, False, 0, 1, -1, 2, 1e308, float("nan"), float("inf"), 10**400, "", "A", "C", "\ud800", "0", "x" * 3_000,
    [], {}, [[]], [None], {"a": None}, [["-1", "True"]], {"logprob": "a"},
)  # fmt: skip
_KEYS = ("task", "label", "id", "metadata", "confidence", "scores")


def _inside_json(data: bytes, rng: random.Random) -> bytes:
    """Change values, keys and lengths in text that stays valid JSON; other text is returned unchanged."""
    try:
        value = (
            [json.loads(line) for line in data.splitlines()]
            if data.count(b"\n{")
            else json.loads(data)
        )
    except (ValueError, RecursionError):
        return data
    changed = _changed(value, rng)
    if data.count(b"\n{") and isinstance(changed, list):
        return b"\n".join(json.dumps(row).encode() for row in changed)
    return json.dumps(changed, indent=1).encode()


def _changed(value: Any, rng: random.Random) -> Any:
    """Return the value with one element changed, at any depth."""
    if not isinstance(value, dict | list) or not value or rng.random() > 0.85:
        return copy.deepcopy(rng.choice(_VALUES))
    at = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    kind = rng.random()
    if kind < 0.1:
        value.pop(at)
    elif kind < 0.2 and isinstance(value, dict):
        value[rng.choice(_KEYS)] = value.pop(at)
    elif kind < 0.2:
        value.append(copy.deepcopy(value[at]))
    else:
        value[at] = _changed(value[at], rng)
    return value


def _splice(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others)
    return data[: _place(data, rng)] + other[_place(other, rng) :]


def mutate(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Return a damaged version of the data: one to four changes, those inside containers first."""
    if data[:2] == b"\x1f\x8b" and rng.random() < 0.6:
        data = _inside_gzip(data, rng)
    elif data[:4] == b"PK\x03\x04" and rng.random() < 0.6:
        data = _inside_zip(data, rng)
    elif data[:1] in (b"{", b"[") and rng.random() < 0.5:
        return _inside_json(data, rng)[:_LONGEST]
    elif rng.random() < 0.06:
        data = _splice(data, others, rng)
    else:
        data = rng.choice(SIMPLE)(data, rng)
    for _ in range(rng.choice((0, 0, 0, 1, 2, 3))):
        data = rng.choice(SIMPLE)(data, rng)
    return data[:_LONGEST]
