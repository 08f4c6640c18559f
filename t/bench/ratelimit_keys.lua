-- SPDX-License-Identifier: Apache-2.0
-- wrk: GET BENCH_PATH with a key. BENCH_KEYS is the number of keys, BENCH_NAME the
-- name of a single one; 0 makes a new key for each request, from BENCH_FIRST on.
-- Limiters by address get the number of the key as an address; a single key has
-- eight of them, because mod_qos counts to 32767 only. With BENCH_DESCRIPTOR: what
-- Envoy would ask its service, in JSON.
local path = os.getenv("BENCH_PATH")
local keys = tonumber(os.getenv("BENCH_KEYS"))
local number = tonumber(os.getenv("BENCH_FIRST"))
local name = os.getenv("BENCH_NAME")
if keys == 1 and not name then
    keys, name = 8, "0000000000"
end

local descriptor = os.getenv("BENCH_DESCRIPTOR")

local function json(n)
    local body = string.format('{"domain":"bench","descriptors":[{"entries":[{"key":"%s","value":"%s"}]}]}',
        descriptor, name or string.format("%010d", n))
    return string.format("POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        .. "Content-Length: %d\r\n\r\n%s", #body, body)
end

local function text(n)
    if descriptor then
        return json(n)
    end
    return string.format("GET %s HTTP/1.1\r\nHost: localhost\r\n"
        .. "x-api-key: lsv2_pt_bench_%s\r\nx-client-ip: %d.%d.%d.%d\r\n\r\n",
        path, name or string.format("%010d", n), 10 + math.floor(n / 16777216),
        math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256)
end

-- Made before the requests, because wrk shares the processors with the server.
local made = {}
for i = 0, keys - 1 do
    made[i] = text(i)
end

function request()
    number = number + 1
    if keys == 0 then
        return text(number)
    end
    -- A step without a common divisor: all keys, but never neighbours.
    return made[number * 7919 % keys]
end
