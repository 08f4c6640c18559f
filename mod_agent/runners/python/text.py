# SPDX-License-Identifier: Apache-2.0
"""Strings that the protocol allows."""

import re
from typing import Any

import orjson

_BAD_TEXT = re.compile("\0|[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Without U+0000 and surrogates, which PostgreSQL refuses."""
    if text.isascii() and "\0" not in text:
        return text
    return _BAD_TEXT.sub("\ufffd", text)


def cut_text(text: str, most: int) -> bytes:
    """The JSON of a prefix of the text, at most `most` bytes long without its quotes."""
    found = orjson.dumps(clean_text(text[:most]))
    while len(found) - 2 > most:
        text = text[:min(len(text), most) - 64]
        found = orjson.dumps(clean_text(text))
    return found


def text_of(value: Any) -> str:
    try:
        return str(value)
    except (Exception, SystemExit):  # pylint: disable=broad-except
        return f"<{type(value).__qualname__}>"
