# SPDX-License-Identifier: Apache-2.0
"""The choices of a run, or of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Annotated

from . import prompts


@dataclass(kw_only=True)
class Context:
    system_prompt: str = field(default=prompts.SYSTEM_PROMPT, metadata={"description": "The beginning of each conversation"})
    model: Annotated[str, {"__template_metadata__": {"kind": "llm"}}] = field(
        default="demo/scripted", metadata={"description": "provider/model"})
    max_search_results: int = field(default=10, metadata={"description": "The most results of a search"})

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.init and getattr(self, one.name) == one.default:
                setattr(self, one.name, os.environ.get(one.name.upper(), one.default))
