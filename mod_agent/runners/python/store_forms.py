# SPDX-License-Identifier: Apache-2.0
"""Operations of the store as JSON of the protocol, validated by the server's rules.

One invalid operation fails the whole request, and many failed requests of a run are a
breach, which kills the process: so the error is raised here, in the node.
"""

import re
from typing import Any, Mapping, Sequence

import orjson
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from . import jsontext

PAGE = 1000

_LABELS_MAX = 32
_NAME_BYTES = 1024
_VALUE_BYTES = 1 << 20
# As jsonb, which writes numbers without exponents.
_JSONB_BYTES = 4 << 20
_TTL_MINUTES = 5_256_000
_FILTER_BYTES = 16_384
_CONDITIONS_MAX = 32
_OPERATORS = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}
_INTEGER_MAX = 2_147_483_647

_EXPONENTS = re.compile(rb"[0-9][eE][+-]?([0-9]+)")


def text_of(op: Any) -> bytes:
    """The JSON of an operation; raises ValueError and NotRenderedError."""
    if isinstance(op, GetOp):
        form = {"op": "get", "namespace": _namespace(op.namespace, 1), "key": _key(op.key),
                "refresh_ttl": getattr(op, "refresh_ttl", True) is not False}
    elif isinstance(op, PutOp):
        form = {"op": "put", "namespace": _namespace(op.namespace, 1), "key": _key(op.key), "value": _value(op.value),
                "ttl": _ttl(getattr(op, "ttl", None))}
    elif isinstance(op, SearchOp):
        form = {"op": "search", "namespace_prefix": _namespace(op.namespace_prefix, 0), "filter": _filter(op.filter),
                "limit": min(_integer("limit", op.limit, 0), PAGE), "offset": _integer("offset", op.offset, 0),
                "refresh_ttl": getattr(op, "refresh_ttl", True) is not False}
    elif isinstance(op, ListNamespacesOp):
        conditions = _conditions(op.match_conditions or ())
        form = {"op": "list", "prefix": conditions.get("prefix"), "suffix": conditions.get("suffix"),
                "max_depth": None if op.max_depth is None else _integer("max_depth", op.max_depth, 1),
                "limit": min(_integer("limit", op.limit, 0), PAGE), "offset": _integer("offset", op.offset, 0)}
    else:
        raise ValueError(f"an operation that the store does not know: {type(op).__name__}")
    return jsontext.members((name, value if isinstance(value, bytes) else jsontext.dumps(value))
                            for name, value in form.items())


def _bytes_of(text: str) -> int:
    """As the text is sent."""
    return len(jsontext.clean(text).encode())


def _namespace(labels: Sequence[Any], least: int) -> list[Any]:
    found = list(labels)
    if not least <= len(found) <= _LABELS_MAX or \
            not all(isinstance(label, str) and label and "." not in label for label in found) or \
            sum(map(_bytes_of, found)) > _NAME_BYTES:
        raise ValueError(f"a namespace has {least} to {_LABELS_MAX} labels without periods, "
                         f"{_NAME_BYTES} bytes together")
    return found


def _key(key: Any) -> str:
    text = str(key)
    if not 1 <= _bytes_of(text) <= _NAME_BYTES:
        raise ValueError(f"a key of the store has 1 to {_NAME_BYTES} bytes")
    return text


def _value(value: Any) -> bytes:
    if value is None:
        return b"null"
    text = jsontext.dumps(value)
    if not text.startswith(b"{"):
        raise ValueError("a value of the store is an object")
    if len(text) > _VALUE_BYTES or _jsonb_bytes(text) > _JSONB_BYTES:
        raise ValueError(f"a value of the store has at most {_VALUE_BYTES} bytes, "
                         f"and {_JSONB_BYTES} with numbers written without exponents")
    return text


def _jsonb_bytes(text: bytes) -> int:
    """An upper bound of the length of the jsonb text, which has spaces after commas and colons, and no exponents."""
    bare = jsontext.without_strings(text)
    digits = sum(int(exponent) + 2 for exponent in _EXPONENTS.findall(bare))
    return len(text) + bare.count(b",") + bare.count(b":") + digits


def _ttl(ttl: Any) -> float | int | None:
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl <= _TTL_MINUTES or ttl < 1e-300:
        raise ValueError(f"a time to live is a number of minutes greater than 0, at most {_TTL_MINUTES}")
    return ttl


def _filter(wanted: Any) -> bytes:
    if not wanted:
        return b"null"
    text = jsontext.dumps(wanted)
    if not text.startswith(b"{"):
        raise ValueError("a filter of the store is an object")
    tests = [_tests(value) for value in orjson.loads(text).values()]
    if sum(map(len, tests)) > _CONDITIONS_MAX or _jsonb_bytes(text) > _FILTER_BYTES:
        raise ValueError(f"a filter has at most {_CONDITIONS_MAX} conditions and {_FILTER_BYTES} bytes")
    unknown = {name for names in tests for name in names} - _OPERATORS
    if unknown:
        raise ValueError(f"an operator that the store does not know: {sorted(unknown)[0][:80]}")
    return text


def _tests(value: Any) -> list[str]:
    """The operators of one member of a filter."""
    if isinstance(value, Mapping) and any(name.startswith("$") for name in value):
        return list(value)
    return ["$eq"]


def _integer(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _INTEGER_MAX:
        raise ValueError(f"{name} is a number from {least} to {_INTEGER_MAX}")
    return value


def _conditions(conditions: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for condition in conditions:
        if condition.match_type in found:
            raise ValueError(f"namespaces are listed with one {condition.match_type} at most")
        found[condition.match_type] = _namespace(condition.path, 0)
    return found
