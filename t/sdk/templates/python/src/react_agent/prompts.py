# SPDX-License-Identifier: Apache-2.0
"""The first message to the model."""

SYSTEM_PROMPT = "You are a helpful assistant. The time is {system_time}."
