# SPDX-License-Identifier: Apache-2.0
"""Tests the server with the published Python SDK; prints TAP. Takes the topics,
by default all."""

import asyncio
import importlib
import sys
import warnings

from tap import play_all

TOPICS = ["assistants", "threads", "runs", "streams", "ends", "cuts", "thread_streams", "waits",
          "stateless", "store"]

for topic in sys.argv[1:] or TOPICS:
    importlib.import_module(topic)

# Warnings of the SDK when it resumes a response, which is tested.
warnings.filterwarnings("ignore", message="Request failed, attempting reconnect")
warnings.filterwarnings("ignore", message="Reconnecting without a Last-Event-ID")

asyncio.run(play_all())
