# SPDX-License-Identifier: Apache-2.0
"""What the published Python SDK sees of the server; prints TAP. Takes the
topics, else plays all."""

import asyncio
import importlib
import sys
import warnings

from tap import play_all

TOPICS = ["threads", "runs", "streams", "cuts", "thread_streams", "waits", "stateless"]

for topic in sys.argv[1:] or TOPICS:
    importlib.import_module(topic)

# The SDK says so when it takes a response up again, which is what is tested.
warnings.filterwarnings("ignore", message="Request failed, attempting reconnect")
warnings.filterwarnings("ignore", message="Reconnecting without a Last-Event-ID")

asyncio.run(play_all())
