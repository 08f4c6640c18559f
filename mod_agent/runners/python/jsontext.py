# SPDX-License-Identifier: Apache-2.0
"""Values as JSON text under the rules of the protocol.

`dumps` renders what graphs have: messages and pydantic models flat, dataclasses
and named tuples as objects, sets as arrays, dates in ISO 8601, bytes in base64,
NaN as null, decimals as numbers, numbers below 1e-308 as 0, keys as text. A value without a form in JSON is refused
(`NotRenderedError`), or becomes its text with `lenient`. LangGraph itself
depends on orjson.
"""

import base64
import dataclasses
import datetime
import decimal
import enum
import functools
import ipaddress
import json
import math
import re
import uuid
from collections import deque
from pathlib import PurePath
from typing import Any, Iterable, Mapping

import orjson

from .errors import NotRenderedError
from .text import clean_text, text_of

# The protocol admits 128 levels of a line; a line has some of its own.
LEVELS_MAX = 110
# A text of fewer bytes cannot have more levels: each has two brackets.
SHORT_BYTES = 2 * (LEVELS_MAX + 1)
# Digits of an integer; the protocol admits 348.
DIGITS_MAX = 300
# Of the namespace of a subgraph, as UTF-8, and of the name of an event with it.
NAMESPACE_BYTES_MAX = 2048
EVENT_BYTES_MAX = 4096

_ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
              ipaddress.IPv4Interface, ipaddress.IPv6Interface)
# In a text of _without_escapes(). An alternative in the repetition would take memory for each byte of a string.
_STRINGS = re.compile(rb'"[^"]*"')
# Numbers with an exponent beyond 308, which the protocol does not admit: all are almost 0.
_TINY = re.compile(rb"e-3(?:09|[1-9][0-9])")
_STRING_OR_TINY = re.compile(rb'"[^"]*"|(-?[0-9][0-9.]*e-3(?:09|[1-9][0-9]))')
# Quotes, backslashes, control characters, line separators and surrogates.
_NOT_IN_NAMES = re.compile('["\\\\\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_BRACKETS_ONLY = bytes(c for c in range(256) if c not in b"[]{}")


def _default(value: Any) -> Any:
    """Called by orjson for what it does not know."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump()
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, (set, frozenset, deque)):
        return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if isinstance(value, decimal.Decimal):
        return _number_of(value)
    if isinstance(value, (complex, PurePath, re.Pattern, datetime.tzinfo, *_ADDRESSES)):
        return str(value)
    if callable(to_list := getattr(value, "tolist", None)) and not isinstance(value, type):
        # Arrays of the standard library and of NumPy, and its numbers.
        return to_list()
    return _slots_of(value)


def _number_of(value: decimal.Decimal) -> int | float | None:
    if not value.is_finite():
        return None
    # A large exponent would be as many digits.
    return int(value) if value.adjusted() < DIGITS_MAX and value == value.to_integral_value() else float(value)


def _slots_of(value: Any) -> Any:
    """Objects of the library that are not dataclasses: Send, Interrupt of old versions."""
    names = getattr(type(value), "__slots__", None)
    if type(value).__module__.startswith("langgraph.") and names:
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    dump = getattr(value, "dict", None)
    if callable(dump) and hasattr(type(value), "__fields__"):
        return dump()
    raise NotRenderedError(f"a value of type {type(value).__module__}.{type(value).__qualname__} has no form in JSON")


def _lenient(value: Any) -> Any:
    try:
        return _default(value)
    except Exception:  # pylint: disable=broad-except
        return text_of(value)


def dumps(value: Any, lenient: bool = False) -> bytes:
    """The JSON text of a value; raises NotRenderedError."""
    if type(value) is str:
        return orjson.dumps(clean_text(value))
    try:
        text = orjson.dumps(value, default=_lenient if lenient else _default)
        # Most texts have neither of these, and are too short for so many levels.
        if not _has_nul(text):
            if b"e-3" in text:
                text = _without_tiny(text)
            return text if len(text) < SHORT_BYTES else _check_levels(text)
    except NotRenderedError:
        raise
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, NotRenderedError):
            raise error.__cause__ from None
        if error.__cause__ is not None and not isinstance(error.__cause__, (TypeError, ValueError)):
            raise NotRenderedError(str(error.__cause__)) from error
    try:
        text = json.dumps(_plain(value, lenient, 0), ensure_ascii=False, separators=(",", ":")).encode()
    except RecursionError:
        raise NotRenderedError(f"a value refers to itself or has more than {LEVELS_MAX} levels") from None
    return _check_levels(_without_tiny(text))


def _has_nul(text: bytes) -> bool:
    """Whether JSON has U+0000: in the text of its escape that a user has typed, the backslash is escaped itself."""
    return b"\\u0000" in text and b"\\u0000" in text.replace(b"\\\\", b"")


def _without_escapes(text: bytes) -> bytes:
    """JSON of the same length, whose strings end at their next quote."""
    return text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")


def without_strings(text: bytes) -> bytes:
    return _STRINGS.sub(b"", _without_escapes(text))


def _without_tiny(text: bytes) -> bytes:
    if not _TINY.search(text):
        return text
    pieces: list[bytes] = []
    end = 0
    for found in _STRING_OR_TINY.finditer(_without_escapes(text)):
        if found[1]:
            pieces += [text[end:found.start()], b"0"]
            end = found.end()
    return b"".join(pieces) + text[end:]


def _plain(value: Any, lenient: bool, level: int) -> Any:
    """A value that orjson refuses: keys that are not text, surrogates, U+0000, large integers."""
    if level > LEVELS_MAX:
        raise NotRenderedError(f"a value has more than {LEVELS_MAX} levels")
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        if abs(value) >= 10 ** DIGITS_MAX:
            raise NotRenderedError(f"an integer of more than {DIGITS_MAX} digits")
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, lenient, level + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_plain(item, lenient, level + 1) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _plain(fields, lenient, level)
    return _plain((_lenient if lenient else _default)(value), lenient, level + 1)


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    return clean_text(key if isinstance(key, str) else text_of(key))


def _check_levels(text: bytes) -> bytes:
    if text.count(b"[") + text.count(b"{") <= LEVELS_MAX:
        return text
    if _is_deep(text.translate(None, _BRACKETS_ONLY)) and \
            _is_deep(without_strings(text).translate(None, _BRACKETS_ONLY)):
        raise NotRenderedError(f"a value has more than {LEVELS_MAX} levels")
    return text


def _is_deep(brackets: bytes) -> bool:
    """Each round removes the innermost level."""
    for _ in range(LEVELS_MAX):
        before = len(brackets)
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return False
        if len(brackets) == before:
            return True
    return True


def members(fields: Iterable[tuple[str, bytes]]) -> bytes:
    """An object of members whose values are JSON text already."""
    return b"{" + b",".join([_member_name(name) + text for name, text in fields]) + b"}"


@functools.lru_cache(maxsize=1024)
def _member_name(name: str) -> bytes:
    return orjson.dumps(clean_text(name)) + b":"


def plain(text: str) -> bytes:
    """The JSON of a text of letters, digits and hyphens, as ids have."""
    return b'"%b"' % text.encode()


def array(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


@functools.lru_cache(maxsize=256)
def name_of(name: str, limit: int) -> bytes:
    """The text of an event's name or a namespace, for which the protocol has rules; raises NotRenderedError."""
    if _NOT_IN_NAMES.search(name) or name != name.strip(" ") or len(name.encode()) > limit:
        raise NotRenderedError(f"a name of more than {limit} bytes, or with characters that are not admitted: {name[:80]!r}")
    return b'"' + name.encode() + b'"'
