# SPDX-License-Identifier: Apache-2.0
"""The agent that remembers."""

from memory_agent.graph import graph

__all__ = ["graph"]
