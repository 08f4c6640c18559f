# SPDX-License-Identifier: Apache-2.0
"""Whose memories they are."""

import os
from dataclasses import dataclass, field, fields
from typing import Annotated, Any


@dataclass(kw_only=True, init=False)
class Context:
    user_id: str = "default"
    model: Annotated[str, {"__template_metadata__": {"kind": "llm"}}] = field(default="demo/scripted", metadata={"description": "The model"})

    def __init__(self, **given: Any) -> None:
        for one in fields(self):
            setattr(self, one.name, os.environ.get(one.name.upper(), given.get(one.name, one.default)))
