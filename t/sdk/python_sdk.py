# SPDX-License-Identifier: Apache-2.0
"""What the published Python SDK sees of the server; prints TAP."""

import asyncio
import warnings

import cuts  # noqa: F401
import runs  # noqa: F401
import stateless  # noqa: F401
import streams  # noqa: F401
import thread_streams  # noqa: F401
import threads  # noqa: F401
import waits  # noqa: F401
from tap import play_all

# The SDK says so when it takes a response up again, which is what is tested.
warnings.filterwarnings("ignore", message="Request failed, attempting reconnect")
warnings.filterwarnings("ignore", message="Reconnecting without a Last-Event-ID")

asyncio.run(play_all())
