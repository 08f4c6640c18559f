-- SPDX-License-Identifier: Apache-2.0
-- wrk: GET or POST, each request with the next API key of the file BENCH_KEY_FILE,
-- one in a line. BENCH_BODY: of a POST; without it the requests are GETs. The
-- threads begin at different keys.
local threads = 0

function setup(thread)
    thread:set("thread", threads)
    threads = threads + 1
end

local made = {}
local number = 0

function init()
    local body = os.getenv("BENCH_BODY")
    local headers = { ["Content-Type"] = "application/json" }
    for key in io.lines(os.getenv("BENCH_KEY_FILE")) do
        headers["x-api-key"] = key
        made[#made + 1] = wrk.format(body and "POST" or "GET", nil, headers, body)
    end
    number = math.floor(#made / 2) * thread
end

function request()
    number = number % #made + 1
    return made[number]
end
