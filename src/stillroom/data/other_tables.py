"""Tables that are no CSV file with commas and UTF-8: each is refused by its name."""

from __future__ import annotations

from stillroom.errors import BadInput

OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_WORKBOOK = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/", b"mimetypeapplication/")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
NAME_AT = 30
"""Where the name of its first file begins in a zip file."""


def refuse_workbook(start: bytes) -> None:
    """Refuse a spreadsheet's own file, whatever it is called.

    Args:
        start: how the file begins.

    Raises:
        BadInput: it is one.
    """
    zipped = start[:2] == b"PK" and start[NAME_AT:].startswith(_WORKBOOK)
    if zipped or start[:4] == _OLD_OFFICE:
        raise BadInput(
            "the file is a workbook of Excel or another spreadsheet, not a CSV file",
            why="sheets, formulas and hidden cells are not read: it must be plain what a record is",
            remedy="open it, save the one sheet as `CSV UTF-8 (comma delimited)`, and give that "
            "file",
        )


def refuse_utf_16(start: bytes) -> None:
    """Refuse a text in UTF-16, which some programs export.

    Raises:
        BadInput: it is one.
    """
    if start[:2] in _UTF_16:
        raise not_utf_8("UTF-16", "utf-16")


def is_text(content: bytes) -> bool:
    """Whether bytes may be a text in some encoding: they hold no control characters.

    >>> is_text("größe".encode("latin-1")), is_text(bytes([0xFF, 0xD8, 0xFF, 0xE0, 0, 16]))
    (True, False)
    """
    return not any(byte < ord("\t") or ord("\r") < byte < ord(" ") for byte in content)


def not_utf_8(said: str = "Latin-1 (Windows), it seems", code: str = "latin1") -> BadInput:
    """The refusal of a text in another encoding."""
    return BadInput(
        f"the text is not in UTF-8, but in {said}",
        why="letters would be taken for others, and the same name for two persons",
        remedy=f"`iconv -f {code} -t utf-8 OLD.csv > NEW.csv` turns it into UTF-8",
    )


def refuse_other_separator(header: list[str], where: str) -> None:
    """Refuse a table whose cells are not separated by commas.

    Raises:
        BadInput: the first line is one cell, and holds another separator.
    """
    if len(header) != 1:
        return
    for mark, name in OTHER_SEPARATORS.items():
        if mark in header[0]:
            raise BadInput(
                f"the cells are separated by {name}, not by commas",
                where=where,
                why="the whole line would be one cell",
                remedy="export the table again with commas between the cells, and with points in "
                "numbers (1.5)",
            )


def is_record(header: list[str]) -> bool:
    """Whether the first line looks like a record: most of its cells are numbers.

    >>> is_record(["52", "1.5", "ill"]), is_record(["age", "dose", "label"])
    (True, False)
    """
    return 2 * sum(map(_is_number, header)) > len(header)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
