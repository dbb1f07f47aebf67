"""What an ONNX file says beside its graph, read without the package `onnx`.

Only the outermost fields of the file are walked over: few, and each says how long it is.
"""

from __future__ import annotations

METADATA = 14
"""The number of `metadata_props` in the protocol buffer of a model; 1 and 2 are key and value."""
MOST_FIELDS = 10_000
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def metadata_of(content: bytes) -> dict[str, bytes]:
    """The texts beside the graph, by their keys.

    Raises:
        ValueError: the file is no protocol buffer, or says something twice.

    >>> metadata_of(bytes([0x72, 8, 0x0A, 1]) + b"k" + bytes([0x12, 3]) + b"abc")
    {'k': b'abc'}
    """
    found: dict[str, bytes] = {}
    for number, value in _fields(memoryview(content)):
        if number == METADATA:
            entry = {inner: bytes(text) for inner, text in _fields(value)}
            key = entry.get(1, b"").decode("utf-8")
            if key in found:
                raise ValueError("an ONNX file says something twice")
            found[key] = entry.get(2, b"")
    return found


def _fields(content: memoryview) -> list[tuple[int, memoryview]]:
    """The fields of a message that hold bytes; others are skipped. Nothing is copied."""
    found: list[tuple[int, memoryview]] = []
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _, at = _varint(content, at)
            continue
        if kind == _BYTES:
            size, at = _varint(content, at)
        elif kind in (_EIGHT, _FOUR):
            size = 8 if kind == _EIGHT else 4
        else:
            raise ValueError("it is not an ONNX file")
        if at + size > len(content) or len(found) >= MOST_FIELDS:
            raise ValueError("it is not an ONNX file")
        if kind == _BYTES:
            found.append((number, content[at : at + size]))
        at += size
    return found


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(content):
            break
        byte = content[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("it is not an ONNX file")
