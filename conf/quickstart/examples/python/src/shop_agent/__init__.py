# SPDX-License-Identifier: Apache-2.0
"""An agent with tools that asks before it orders."""
