# SPDX-License-Identifier: Apache-2.0
"""Operations of the store as JSON of the protocol, validated by the server's rules.

One invalid operation fails the whole request, and many failed requests of a run are a
breach, which kills the process: so the error is raised here, in the node.
"""

import itertools
import re
from typing import Any, Mapping, Sequence

import orjson
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from . import jsontext, log
from .text import clean_text

PAGE = 1000

LABELS_MAX = 32
NAME_BYTES_MAX = 1024
VALUE_BYTES_MAX = 1 << 20
# As jsonb, which writes numbers without exponents.
JSONB_BYTES_MAX = 4 << 20
TTL_MINUTES_MAX = 5_256_000
FILTER_BYTES_MAX = 16_384
CONDITIONS_MAX = 32
OPERATORS = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}
NUMBER_MAX = 2_147_483_647
# In a condition, any label.
ANY = "*"
# Options without effect that the log has named.
_warned: set[str] = set()

EXPONENTS = re.compile(rb"[0-9][eE][+-]?([0-9]+)")


def to_op(op: Any) -> bytes:
    """The JSON of an operation; raises ValueError and NotRenderedError."""
    if isinstance(op, GetOp):
        form = {"op": "get", "namespace": check_namespace(op.namespace, 1), "key": check_key(op.key),
                "refresh_ttl": getattr(op, "refresh_ttl", True) is not False}
    elif isinstance(op, PutOp):
        warn_of("index of a put", op.index)
        form = {"op": "put", "namespace": check_namespace(op.namespace, 1), "key": check_key(op.key), "value": check_value(op.value),
                "ttl": check_ttl(getattr(op, "ttl", None))}
    elif isinstance(op, SearchOp):
        warn_of("query of a search", op.query)
        form = {"op": "search", "namespace_prefix": check_namespace(op.namespace_prefix, 0), "filter": check_filter(op.filter),
                "limit": min(check_number("limit", op.limit, 0), PAGE), "offset": check_number("offset", op.offset, 0),
                "refresh_ttl": getattr(op, "refresh_ttl", True) is not False}
    elif isinstance(op, ListNamespacesOp):
        conditions = conditions_of(op.match_conditions or ())
        limit = min(check_number("limit", op.limit, 0), PAGE)
        form = {"op": "list", **(conditions or {}),
                "max_depth": None if op.max_depth is None else check_number("max_depth", op.max_depth, 1),
                "limit": 0 if conditions is None else limit, "offset": check_number("offset", op.offset, 0)}
    else:
        raise ValueError(f"an operation that the store does not know: {type(op).__name__}")
    return jsontext.members((name, value if isinstance(value, bytes) else jsontext.dumps(value))
                            for name, value in form.items())


def bytes_of(text: str) -> int:
    """As the text is sent."""
    return len(clean_text(text).encode())


def check_namespace(labels: Sequence[Any], least: int) -> list[Any]:
    found = list(labels)
    if not least <= len(found) <= LABELS_MAX or \
            not all(isinstance(label, str) and label and "." not in label for label in found) or \
            sum(map(bytes_of, found)) > NAME_BYTES_MAX:
        raise InvalidNamespaceError(f"a namespace has {least} to {LABELS_MAX} labels without periods, "
                                    f"{NAME_BYTES_MAX} bytes together")
    return found


def check_key(key: Any) -> str:
    text = str(key)
    if not 1 <= bytes_of(text) <= NAME_BYTES_MAX:
        raise ValueError(f"a key of the store has 1 to {NAME_BYTES_MAX} bytes")
    return text


def check_value(value: Any) -> bytes:
    if value is None:
        return b"null"
    text = jsontext.dumps(value)
    if not text.startswith(b"{"):
        raise ValueError("a value of the store is an object")
    if len(text) > VALUE_BYTES_MAX or jsonb_bytes(text) > JSONB_BYTES_MAX:
        raise ValueError(f"a value of the store has at most {VALUE_BYTES_MAX} bytes, "
                         f"and {JSONB_BYTES_MAX} with numbers written without exponents")
    return text


def jsonb_bytes(text: bytes) -> int:
    """An upper bound of the length of the jsonb text, which has spaces after commas and colons, and no exponents."""
    bare = jsontext.without_strings(text)
    digits = sum(int(exponent) + 2 for exponent in EXPONENTS.findall(bare))
    return len(text) + bare.count(b",") + bare.count(b":") + digits


def check_ttl(ttl: Any) -> float | int | None:
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl <= TTL_MINUTES_MAX or ttl < 1e-300:
        raise ValueError(f"a time to live is a number of minutes greater than 0, at most {TTL_MINUTES_MAX}")
    return ttl


def check_filter(wanted: Any) -> bytes:
    if not wanted:
        return b"null"
    text = jsontext.dumps(wanted)
    if not text.startswith(b"{"):
        raise ValueError("a filter of the store is an object")
    operators = [operators_of(value) for value in orjson.loads(text).values()]
    if sum(map(len, operators)) > CONDITIONS_MAX or jsonb_bytes(text) > FILTER_BYTES_MAX:
        raise ValueError(f"a filter has at most {CONDITIONS_MAX} conditions and {FILTER_BYTES_MAX} bytes")
    unknown = {name for names in operators for name in names} - OPERATORS
    if unknown:
        raise ValueError(f"an operator that the store does not know: {sorted(unknown)[0][:80]}")
    return text


def operators_of(value: Any) -> list[str]:
    """The operators of one member of a filter."""
    if isinstance(value, Mapping) and any(name.startswith("$") for name in value):
        return list(value)
    return ["$eq"]


def check_number(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= NUMBER_MAX:
        raise ValueError(f"{name} is an integer from {least} to {NUMBER_MAX}")
    return value


def conditions_of(conditions: Sequence[Any]) -> dict[str, list[Any]] | None:
    """The prefix and the suffix that a namespace must have; None if none can meet all conditions."""
    found: dict[str, list[Any]] = {}
    for condition in conditions:
        labels = check_namespace(condition.path, 0)
        if condition.match_type == "prefix":
            both = both_of(found.get("prefix", []), labels)
        elif condition.match_type == "suffix":
            both = both_of(found.get("suffix", [])[::-1], labels[::-1])
            both = both and both[::-1]
        else:
            raise ValueError(f"namespaces are listed by prefix and suffix, not by {str(condition.match_type)[:80]}")
        if both is None:
            return None
        found[condition.match_type] = both
    return found


def both_of(one: list[Any], other: list[Any]) -> list[Any] | None:
    """The beginning that meets both; None if they contradict each other."""
    found = []
    for label, second in itertools.zip_longest(one, other, fillvalue=ANY):
        if ANY not in (label, second) and label != second:
            return None
        found.append(second if label == ANY else label)
    return found


def warn_of(option: str, value: Any) -> None:
    """Logs once that the store has no index, as the library's own stores accept these options without one."""
    if value and option not in _warned:
        _warned.add(option)
        log.write(f"the store has no index: {option} has no effect")
