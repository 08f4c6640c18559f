-- SPDX-License-Identifier: Apache-2.0
-- wrk: POST the body of BENCH_BODY as JSON.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = os.getenv("BENCH_BODY")
