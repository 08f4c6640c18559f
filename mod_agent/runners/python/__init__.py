# SPDX-License-Identifier: Apache-2.0
"""The runner of LangGraph applications in Python; see README.md."""

VERSION = "1"
