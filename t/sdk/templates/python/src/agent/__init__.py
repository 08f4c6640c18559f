# SPDX-License-Identifier: Apache-2.0
"""The new project."""

from agent.graph import graph

__all__ = ["graph"]
