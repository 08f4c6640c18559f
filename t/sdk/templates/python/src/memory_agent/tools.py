# SPDX-License-Identifier: Apache-2.0
"""The tool that remembers."""

import uuid
from typing import Annotated

from langchain_core.tools import InjectedToolArg
from langgraph.store.base import BaseStore


async def upsert_memory(content: str, *, user_id: Annotated[str, InjectedToolArg],
                        store: Annotated[BaseStore, InjectedToolArg]) -> str:
    await store.aput(("memories", user_id), key=str(uuid.uuid4()), value={"content": content})
    return f"Stored {content}"
