# SPDX-License-Identifier: Apache-2.0
"""Requests over HTTP/2 with large bodies; prints the status and the code of each response.

http2.py URL PATH [PATH...]
"""

import sys

import httpx

URL, *PATHS = sys.argv[1:]
# More than the windows of the stream and the connection.
BODY = b"x" * 4_000_000

for path in PATHS:
    with httpx.Client(http1=False, http2=True, timeout=None) as client:
        response = client.post(URL + path, content=BODY, headers={"content-type": "application/json"})
        print(path, response.http_version, response.status_code, response.json()["code"])
