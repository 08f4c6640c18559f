# SPDX-License-Identifier: Apache-2.0
"""The authenticated user of a run, as the server sends it."""

from typing import Any

# Its member of `configurable`.
USER = "langgraph_auth_user"


class User(dict[str, Any]):
    """Its members are attributes too, for langgraph_sdk's protocol BaseUser and the library's `Runtime.server_info`."""

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def display_name(self) -> Any:
        return self.get("display_name", self.get("identity"))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None
