# SPDX-License-Identifier: Apache-2.0
"""The agent that reasons and acts."""

from react_agent.graph import graph

__all__ = ["graph"]
