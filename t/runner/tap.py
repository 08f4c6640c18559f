# SPDX-License-Identifier: Apache-2.0
"""Results as TAP, for parts.t."""

_count = 0


def equal(found, expected, title):
    global _count  # pylint: disable=global-statement
    _count += 1
    print(f"{'ok' if found == expected else 'not ok'} {_count} - python: {title}")
    if found != expected:
        print(f"# got {found!r}, expected {expected!r}")


def print_plan():
    print(f"1..{_count}")
