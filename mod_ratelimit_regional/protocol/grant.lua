-- SPDX-License-Identifier: Apache-2.0
-- One call of a host to a partition of the store. README.md has the rules (R1 to R10),
-- PROOF.md their proof. Everything is in one hash, KEYS[1]: it is lost as a whole or
-- not at all. Its fields:
--
--   m         the epoch
--   m0 ...    the members: {id, heartbeat, base, attested base, joined, kind, name}
--   i, id     the number of the member with that id
--   last      when a member was connected last
--   unsettled the members whose shares may be reserved
--   16 bytes  a key: its marks, {expires I6, amount I4, tag I6} each
--
-- ARGV: kind, id, the epoch that it is for, latest time, members, share time (ms), flags, number,
-- offset of the base, offset of the joining, name; then the items:
--   heartbeat   digest, count, interval (s), wanted, waiting, tag, closed tag, its use
--   report    digest, amount, milliseconds until it expires
--   reset     digest, tag
--   publish   the host's rules, or nothing
--   read
-- Reply: {status, time, epoch, number, base - time, complete, joined - time, and of a heartbeat: missing
-- hosts, reserved shares, milliseconds until none is, names, milliseconds since the start of the
-- group: -1 none is known, 0 not all hosts are there}, and for each item of a
-- heartbeat {granted, milliseconds until one is free, not granted, milliseconds until a
-- mark expires}; of read {milliseconds since it was sent, name, text}.

local CALL_MS, TIMEOUT_MS, REPLACE_MS, TWO_STORES_MS, HEARTBEAT_MS = 500, 3000, 60000, 60000, 2000
-- Before that nothing is granted in an epoch that no member has brought its number to.
local CONFIRM_MS = TIMEOUT_MS + 2 * CALL_MS
local LEASE_MAX_MS, MARKS_MAX, NEVER = 1000, 64, 2 ^ 45
local SWEEP, SWEEPS_MAX, SCAN_MS = 3, 32, 1000
local IS_NEW, USED, ATTEST, STAYED, BRING, LEAVE, CLOCK = 1, 2, 4, 8, 16, 32, 64
-- Kinds of members.
local NEW, ATTESTED, BROUGHT, MOVED, LEFT = 1, 2, 3, 4, 5

local partition = KEYS[1]
local kind, id, target = ARGV[1], ARGV[2], ARGV[3]
local latest, members, share_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local flags, number_of_host = tonumber(ARGV[7]), tonumber(ARGV[8])
local number = number_of_host
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- How long after its last heartbeat a host may admit its share, or bring its number to another
-- server (B), for that RateLimitStoreShareTime.
local function get_bring_ms(share)
    return math.max(share, REPLACE_MS - HEARTBEAT_MS)
end

-- After this time without a heartbeat a host has ended (B + K + A + G).
local function get_end_ms(share)
    local bring_ms = get_bring_ms(share)
    return bring_ms + math.ceil(bring_ms / 512) + HEARTBEAT_MS + CALL_MS + TWO_STORES_MS
end

local end_ms = get_end_ms(share_ms)

local function has_flag(flag)
    return math.floor(flags / flag) % 2 == 1
end

local function lease_ms(interval_sec)
    return math.min(LEASE_MAX_MS, math.floor(interval_sec * 1000 / 64))
end

local function settle_ms(interval_sec)
    return TIMEOUT_MS + CALL_MS + lease_ms(interval_sec) + interval_sec * 1000
end

-- ---- The rules of hosts, for operators ----

-- They are in a hash of their own, by the number of the host: {time, name, text}.
if kind == 'publish' then
    if ARGV[12] == '' then
        redis.call('HDEL', partition, number)
    else
        redis.call('HSET', partition, number, cmsgpack.pack({ now, ARGV[11], ARGV[12] }))
    end
    return { { 'ok', now, '', -1, 0, 0, 0 } }
end
if kind == 'read' then
    local text = redis.call('HGET', partition, number)
    local rules = text and cmsgpack.unpack(text) or { now, '', '' }
    return { { 'ok', now, '', -1, 0, 0, 0 }, { math.max(0, now - rules[1]), rules[2], rules[3] } }
end

-- ---- The epoch (R4) ----

local replication = redis.call('INFO', 'replication')
local stored = redis.call('HMGET', partition, 'm', 'last')
local packed, last = stored[1], tonumber(stored[2] or 0)
local epoch = packed and cmsgpack.unpack(packed)
local is_changed = false

-- The server's id. A pattern is slow: the text nearly always has the id of the epoch.
local function find_server()
    if epoch and string.find(replication, 'master_replid:' .. epoch.server, 1, true) then
        return epoch.server
    end
    return string.match(replication, 'master_replid:(%x+)')
end

local server = find_server()

-- {id, heartbeat, base, attested base, joined, kind, name}. Without a field, the member of a number,
-- if there is one, has not been connected since the epoch began; in an epoch that follows the
-- end of all hosts there is none. A call reads each once.
local all_members = {}

local function read_member(i)
    if not all_members[i] then
        local text = redis.call('HGET', partition, 'm' .. i)
        all_members[i] = text and cmsgpack.unpack(text) or epoch.follows and { '', 0, 0, 0, 0, 0, '' }
            or { '', epoch.start, epoch.start, 0, 0, 0, '' }
    end
    return all_members[i]
end

local function write_member(i, member)
    redis.call('HSET', partition, 'm' .. i, cmsgpack.pack(member))
end

local function has_no_host(member)
    return member[6] == LEFT or member[6] == 0 and epoch.follows
end

-- R8: whether a host with one of the epoch's numbers may admit anything, or bring the
-- number to another epoch.
local function is_in_use()
    local used_ms = get_end_ms(epoch.share_ms)
    -- All hosts had left the epoch before, and this one has granted nothing.
    local had_none = epoch.continued and epoch.complete == 0 and epoch.old == 0
    for i = 0, epoch.members - 1 do
        local member = read_member(i)
        local has_none = has_no_host(member) or had_none and member[6] == 0
        if not had_none and now < member[3] or not has_none and now < math.max(member[2], epoch.back) + used_ms then
            return true
        end
    end
    return false
end

-- `follows`: all hosts with the former configuration have ended. `continued`: marks remain.
local function begin_epoch(members_of, share_ms_of, follows, continued)
    for i = 0, continued and epoch.members - 1 or -1 do
        redis.call('HDEL', partition, 'm' .. i, 'i' .. read_member(i)[1], 'unsettled')
    end
    if not continued then
        redis.call('UNLINK', partition)
    end
    all_members, last = {}, now
    epoch = { server = server, start = now, members = members_of, share_ms = share_ms_of, complete = follows and 1 or 0,
        follows = follows, old = 0, scan = 0, ready = 0, known = follows and now or 0, listed = 0,
        kinds = { 0, 0, 0, 0, 0 }, free = 0, left = members_of, full_until = 0, confirmed = 0, longest = 0, scanned = 0,
        missing = 0, reserved = 0, reserved_until = 0, names = '', resets = {}, back = now + TWO_STORES_MS, continued = continued,
        name = string.sub(redis.sha1hex(server .. now .. id .. (epoch and epoch.name or '')), 1, 16) }
    redis.call('HSET', partition, 'm', cmsgpack.pack(epoch), 'last', now)
end

-- A duration by the clock of another server is not longer.
local function drift(ms)
    return ms + math.ceil(ms / 256)
end

-- R10: for which rules the epoch knows all admissions that count, if all hosts have left it: those
-- with an L + T of `from` to `to`, if all M hosts are there again less than that after `last`.
local function find_continued()
    local before, waited, base = epoch.continued, last - epoch.known, 0
    if epoch.complete == 0 then
        -- It has granted nothing.
        return epoch.old == 0 and now < epoch.start + get_end_ms(epoch.share_ms) and before
    end
    if epoch.kinds[LEFT] < members then
        return false
    end
    for i = 0, members - 1 do
        base = math.max(base, read_member(i)[3])
    end
    local from, to = 0, waited
    if before and waited < before.from then
        from, to = before.from, before.to
    elseif before then
        to = math.max(waited, before.to)
    end
    -- No mark has the admissions of a share from before the base.
    return { last = last, from = from, to = math.min(to, last - base - TIMEOUT_MS - CALL_MS) }
end

-- R10: whether hosts may have been connected elsewhere since one was connected to this epoch.
local function is_abandoned()
    if now < last + CONFIRM_MS or has_flag(LEAVE) then
        return false
    end
    local has_numbers = epoch.kinds[LEFT] == 0
    for i = 0, epoch.follows and members - 1 or -1 do
        has_numbers = has_numbers and not has_no_host(read_member(i))
    end
    return target ~= epoch.name or not has_flag(STAYED) or not has_numbers or now >= last + get_bring_ms(share_ms)
end

if not epoch or epoch.server ~= server then
    begin_epoch(members, share_ms, false)
elseif target == epoch.name and has_flag(CLOCK) then
    -- R9: the data have times of another clock. Its hosts keep their configuration.
    begin_epoch(epoch.members, epoch.share_ms, false)
end
if epoch.members ~= members or epoch.share_ms ~= share_ms then
    -- The server has kept the data of hosts with another configuration. A host that does not
    -- know the clock cannot tell whether they have ended: it asks again.
    local refusal = is_in_use() and 'other' or (now > latest or has_flag(LEAVE)) and 'late'
    if refusal then
        return { { refusal, now, epoch.name, -1, 0, 0, 0 } }
    end
    begin_epoch(members, share_ms, true)
end
if (kind == 'hello' or now <= latest and target == epoch.name) and is_abandoned() then
    begin_epoch(members, share_ms, false, find_continued())
end

-- Lets the data expire once nothing in it counts, so that a region that has ended leaves nothing.
local function keep()
    redis.call('PEXPIRE', partition, end_ms + 2 * 86400000)
end

-- Removes expired keys, of a random few; more while most of these have expired. Before the
-- first write: a store that is full lets a script write only after it has removed something.
local function sweep(count)
    for _ = 1, SWEEPS_MAX do
        local found = redis.call('HRANDFIELD', partition, count, 'WITHVALUES')
        local expired = {}
        for i = 1, #found, 2 do
            local text = found[i + 1]
            if #found[i] == 16 and (struct.unpack('>I6', text, #text - 15)) <= now then
                expired[#expired + 1] = found[i]
            end
        end
        if #expired > 0 then
            redis.call('HDEL', partition, unpack(expired))
        end
        if #expired * 2 < count then
            return
        end
    end
end

if kind == 'hello' or kind == 'heartbeat' then
    sweep(SWEEP)
end
-- A store that cannot write fails here, and the host counts it as away.
if kind == 'hello' then
    redis.call('HSET', partition, 'm', cmsgpack.pack(epoch))
    keep()
    return { { 'ok', now, epoch.name, -1, 0, epoch.complete, 0 } }
end
if now > latest or target ~= epoch.name then
    return { { 'late', now, epoch.name, -1, 0, epoch.complete, 0 } }
end

-- ---- Marks ----

-- Appends the mark, and joins the oldest two of too many: the later time counts.
local function add_mark(marks, expires, amount, tag)
    local at = #marks + 1
    while at > 1 and marks[at - 1][1] > expires do
        at = at - 1
    end
    table.insert(marks, at, { expires, amount, tag })
    if #marks > MARKS_MAX * 2 then
        marks[2] = { marks[2][1], marks[1][2] + marks[2][2], 0 }
        table.remove(marks, 1)
    end
end

-- The live marks of a key, oldest first, and their sum.
local function read_marks(digest)
    local text = redis.call('HGET', partition, digest) or ''
    local marks, sum = {}, 0
    for at = 1, #text, 16 do
        local expires, amount, tag = struct.unpack('>I6I4I6', text, at)
        if expires > now then
            marks[#marks + 1] = { expires, amount, tag }
            sum = sum + amount
        end
    end
    return marks, sum, text ~= ''
end

local function write_marks(digest, marks, existed)
    local parts = {}
    for i, mark in ipairs(marks) do
        if mark[2] > 0 then
            parts[#parts + 1] = struct.pack('>I6I4I6', mark[1], mark[2], mark[3])
        end
    end
    if #parts > 0 then
        redis.call('HSET', partition, digest, table.concat(parts))
    elseif existed then
        redis.call('HDEL', partition, digest)
    end
end

local function write_epoch()
    if is_changed then
        redis.call('HSET', partition, 'm', cmsgpack.pack(epoch))
    end
end

-- A host is connected. After a time without one the others may be connected elsewhere,
-- as after the beginning of the epoch, until epoch.back.
local function touch()
    if now >= last + CONFIRM_MS then
        epoch.back, is_changed = now + TWO_STORES_MS, true
    end
    redis.call('HSET', partition, 'last', now)
end

if kind == 'report' then
    for at = 12, #ARGV, 3 do
        local marks, _, existed = read_marks(ARGV[at])
        add_mark(marks, now + 1 + tonumber(ARGV[at + 2]), tonumber(ARGV[at + 1]), 0)
        write_marks(ARGV[at], marks, existed)
    end
    -- The report may be an old one, of a host that has left since.
    if epoch.kinds[LEFT] == 0 and not epoch.follows then
        touch()
    end
    write_epoch()
    return { { 'ok', now, epoch.name, -1, 0, epoch.complete, 0 } }
end
if kind == 'reset' then
    -- A repeated call would remove the grants made in between.
    local resets, is_known = {}, {}
    for _, reset in ipairs(epoch.resets) do
        if reset[2] >= now then
            resets[#resets + 1], is_known[reset[1]] = reset, true
        end
    end
    for at = 12, #ARGV, 2 do
        if not is_known[ARGV[at + 1]] then
            redis.call('HDEL', partition, ARGV[at])
            resets[#resets + 1] = { ARGV[at + 1], now + CALL_MS }
        end
    end
    epoch.resets = resets
    redis.call('HSET', partition, 'm', cmsgpack.pack(epoch))
    return { { 'ok', now, epoch.name, -1, 0, epoch.complete, 0 } }
end

-- ---- Members (R1, R2) ----

-- Only one call a second takes longer with more members: the epoch has the number of members
-- of each kind, and lower bounds for the numbers that are searched.

-- The lowest number without a member, or nil.
local function find_free()
    while epoch.free < members and read_member(epoch.free)[1] ~= '' do
        epoch.free, is_changed = epoch.free + 1, true
    end
    return epoch.free < members and epoch.free or nil
end

-- The lowest number whose host has left, or nil.
local function find_left()
    if epoch.kinds[LEFT] == 0 then
        return nil
    end
    while read_member(epoch.left)[6] ~= LEFT do
        epoch.left, is_changed = epoch.left + 1, true
    end
    return epoch.left
end

-- The lowest number that may be given to another host, or nil.
local function find_timed_out()
    local oldest = NEVER
    for i = 0, now >= epoch.full_until and members - 1 or -1 do
        local heartbeat = read_member(i)[2]
        if now >= heartbeat + REPLACE_MS then
            return i
        end
        oldest = math.min(oldest, heartbeat)
    end
    if now >= epoch.full_until then
        epoch.full_until, is_changed = oldest + REPLACE_MS, true
    end
    return nil
end

-- The member's number, or one for a new member; nil if all are in use.
local function find_number()
    if number >= 0 and number < members and read_member(number)[1] == id then
        return number
    end
    local own = redis.call('HGET', partition, 'i' .. id)
    if own then
        return tonumber(own)
    end
    if number >= 0 and number < members and has_flag(BRING) then
        local member = read_member(number)
        -- A member that has brought its number may take it from a new one.
        if member[1] == '' or (member[6] == MOVED or member[6] == NEW)
            and epoch.complete == 0 and now < epoch.start + REPLACE_MS then
            return number
        end
    end
    return find_left() or find_free() or find_timed_out()
end

local function change_kind(member, kind_now)
    if member[6] > 0 then
        epoch.kinds[member[6]] = epoch.kinds[member[6]] - 1
    end
    epoch.kinds[kind_now] = epoch.kinds[kind_now] + 1
    member[6] = kind_now
end

-- Sets the kind of a member whose previous heartbeat was not with this epoch.
local function set_kind(member, keeps)
    member[4] = now + tonumber(ARGV[9])
    member[5] = keeps and now + tonumber(ARGV[10]) or now
    change_kind(member, keeps and has_flag(ATTEST) and ATTESTED or has_flag(IS_NEW) and NEW or keeps and BROUGHT or MOVED)
    if not has_flag(IS_NEW) then
        epoch.old = 1
    end
end

-- Until when a host with that last heartbeat may be connected to another store; 0: no host has the number.
local function elsewhere_until(heartbeat)
    return heartbeat > 0 and math.max(heartbeat, epoch.back) + end_ms or 0
end

local function join(i, member)
    local keeps = i == number_of_host and has_flag(BRING) and not has_no_host(member)
    if keeps then
        member[3] = math.max(now, now + tonumber(ARGV[9]))
    elseif not has_no_host(member) or not has_flag(IS_NEW) then
        member[3] = math.max(member[3], elsewhere_until(member[2]), now + TWO_STORES_MS + CALL_MS)
    end
    redis.call('HDEL', partition, 'i' .. member[1])
    redis.call('HSET', partition, 'i' .. id, i)
    member[1], member[7] = id, ARGV[11]
    set_kind(member, keeps)
end

-- R5: all members have attested, or are new.
local function is_ready()
    return epoch.kinds[ATTESTED] == members or epoch.kinds[NEW] == members and epoch.old == 0
end

-- All members have been connected since other epochs can have granted anything.
local function complete()
    for i = 0, members - 1 do
        local member = read_member(i)
        if member[6] == ATTESTED then
            member[3] = member[4]
            epoch.known = math.max(epoch.known, member[5])
        else
            -- Hosts that run now had no part in earlier epochs: others may have, until now.
            member[3], member[5] = 0, epoch.ready
            epoch.known = epoch.ready
        end
        write_member(i, member)
    end
    if epoch.kinds[ATTESTED] == members then
        epoch.continued = false
    elseif epoch.continued then
        epoch.continued.from = math.max(epoch.continued.from, drift(epoch.ready - epoch.continued.last) + 1)
    end
    epoch.complete = 1
end

-- Counts a member that is connected again once others have timed out in other epochs; true
-- if it is the last one. `before` is its last heartbeat.
local function confirm(before)
    local at = epoch.ready + CONFIRM_MS
    if epoch.complete == 1 or epoch.ready == 0 or now < at or before >= at then
        return false
    end
    epoch.confirmed, is_changed = epoch.confirmed + 1, true
    return epoch.confirmed == members
end

local function is_unsettled(base, heartbeat, interval_sec)
    local settle = settle_ms(interval_sec)
    return now < base + settle or now >= heartbeat + TIMEOUT_MS and now < elsewhere_until(heartbeat) + settle
end

-- Counts a member that is not connected, or whose share is reserved.
local function count_for_operators(member, names)
    local is_missing = not has_no_host(member) and (member[1] == '' or now >= member[2] + TIMEOUT_MS)
    local reserved_until = is_missing and math.max(member[3], elsewhere_until(member[2])) or member[3]
    if is_missing then
        epoch.missing = epoch.missing + 1
        names[#names + 1] = member[7] ~= '' and member[7] or nil
    end
    if reserved_until > now then
        epoch.reserved = epoch.reserved + 1
        epoch.reserved_until = math.max(epoch.reserved_until, reserved_until)
    end
end

-- Lists the members that are not settled for the longest interval in use; the list is valid
-- until the next one may time out. It has a field of its own: {number, base, heartbeat}.
local function scan()
    local names, parts = {}, {}
    epoch.scan, epoch.scanned = NEVER, now
    epoch.missing, epoch.reserved, epoch.reserved_until = 0, 0, 0
    for i = 0, members - 1 do
        local member = read_member(i)
        count_for_operators(member, names)
        if is_unsettled(member[3], member[2], epoch.longest) then
            parts[#parts + 1] = struct.pack('>I2I6I6', i, member[3], member[2])
        end
        if now < member[2] + TIMEOUT_MS then
            epoch.scan = math.min(epoch.scan, member[2] + TIMEOUT_MS)
        end
    end
    epoch.names = string.sub(table.concat(names, ', '), 1, 190)
    if #parts > 0 then
        redis.call('HSET', partition, 'unsettled', table.concat(parts))
    elseif epoch.listed > 0 then
        redis.call('HDEL', partition, 'unsettled')
    end
    epoch.listed, is_changed = #parts, true
end

-- Puts the changed member on the list: the last entry of a number counts.
local function list_member(i, member)
    if now >= math.min(epoch.scan, epoch.scanned + SCAN_MS) or epoch.listed > 2 * members then
        return scan()
    end
    local text = epoch.listed > 0 and redis.call('HGET', partition, 'unsettled') or ''
    redis.call('HSET', partition, 'unsettled', text .. struct.pack('>I2I6I6', i, member[3], member[2]))
    epoch.listed, is_changed = epoch.listed + 1, true
    if now < member[2] + TIMEOUT_MS then
        epoch.scan = math.min(epoch.scan, member[2] + TIMEOUT_MS)
    end
end

-- Takes the heartbeat of the member; returns its base, and when it got the number.
local function renew()
    local member = read_member(number)
    local is_other = member[1] ~= id
    local has_used_share = has_flag(USED) or not has_flag(STAYED)
    local sets_base = is_other or has_used_share
    local had_timed_out = now >= member[2] + TIMEOUT_MS
    if is_other then
        join(number, member)
    elseif has_used_share then
        member[3] = math.max(member[3], now)
        set_kind(member, number == number_of_host and has_flag(BRING))
    end
    if sets_base or now >= member[2] + 200 then
        local is_last = not sets_base and confirm(member[2])
        member[2] = now
        write_member(number, member)
        if not has_flag(LEAVE) or now < last + CONFIRM_MS then
            touch()
        end
        keep()
        if sets_base then
            epoch.ready, epoch.confirmed = epoch.complete == 0 and is_ready() and now or 0, 0
        end
        if is_last then
            complete()
            scan()
        end
    end
    if now >= epoch.scan then
        scan()
    elseif sets_base or had_timed_out then
        list_member(number, member)
    end
    return member[3], member[5]
end

-- R7: the number has no host, and its share is not reserved once its base is old enough.
local function leave()
    local member = read_member(number)
    member[2] = 0
    change_kind(member, LEFT)
    write_member(number, member)
    epoch.ready, epoch.left = 0, math.min(epoch.left, number)
    scan()
end

local number_found = find_number()
if not number_found then
    write_epoch()
    return { { 'full', now, epoch.name, -1, 0, epoch.complete, 0 } }
end
number = number_found
local found = read_member(number)
-- A host that has left sends nothing: this is a call from before, or repeated.
if found[1] == id and found[6] == LEFT or found[1] ~= id and has_flag(LEAVE) then
    return { { 'late', now, epoch.name, -1, 0, epoch.complete, 0 } }
end
local base, joined = renew()
if has_flag(LEAVE) and not ARGV[12] then
    leave()
end

-- ---- Grants (R3) ----

local unsettled = {}

-- The numbers that are unsettled for an interval: {until when, number}, in order of time;
-- and before[n], how many of them are below n.
local function find_unsettled(interval_sec)
    if unsettled[interval_sec] then
        return unsettled[interval_sec]
    end
    if interval_sec > epoch.longest then
        epoch.longest = interval_sec
        scan()
    end
    local text = epoch.listed > 0 and redis.call('HGET', partition, 'unsettled') or ''
    local last, numbers, before, settle = {}, {}, {}, settle_ms(interval_sec)
    for at = 1, #text, 14 do
        local i, since, heartbeat = struct.unpack('>I2I6I6', text, at)
        last[i] = { since, heartbeat }
    end
    for i = 0, text ~= '' and members - 1 or -1 do
        local entry = last[i]
        before[i] = #numbers
        if entry and is_unsettled(entry[1], entry[2], interval_sec) then
            local ends = entry[1] + settle
            if now >= entry[2] + TIMEOUT_MS then
                ends = math.max(ends, elsewhere_until(entry[2]) + settle)
            end
            numbers[#numbers + 1] = { ends, i }
        end
    end
    before[members] = #numbers
    table.sort(numbers, function(a, b) return a[1] < b[1] end)
    unsettled[interval_sec] = { numbers = numbers, before = before }
    return unsettled[interval_sec]
end

-- The sum of the shares of a key that are reserved. The first of the numbers, from the one
-- that the key begins with, have one more.
local function reserve(digest, count, interval_sec)
    local found, rest = find_unsettled(interval_sec), count % members
    local before, from = found.before, -string.byte(digest) % members
    if #found.numbers == 0 then
        return 0
    end
    local sum = #found.numbers * math.floor(count / members) - before[from]
    if from + rest <= members then
        return sum + before[from + rest]
    end
    return sum + before[members] + before[from + rest - members]
end

-- How long until `needed` of the marks and of the reserved shares are free, if nothing changes.
local function wait_for(marks, digest, count, interval_sec, needed)
    local numbers, first = find_unsettled(interval_sec).numbers, string.byte(digest)
    local base, rest = math.floor(count / members), count % members
    local i, k = 1, 1
    while needed > 0 and (marks[i] or numbers[k]) do
        local at
        if not numbers[k] or marks[i] and marks[i][1] <= numbers[k][1] then
            at, needed, i = marks[i][1], needed - marks[i][2], i + 1
        else
            local more = (numbers[k][2] + first) % members < rest and 1 or 0
            at, needed, k = numbers[k][1], needed - base - more, k + 1
        end
        if needed <= 0 then
            return at - now
        end
    end
    return needed > 0 and -1 or 0
end

-- R10: whether the epoch goes on for rules with that L + T where its hosts left an earlier one.
local function is_continued(period, from)
    local rules = epoch.continued
    return rules and period >= rules.from and period <= rules.to and period > drift(from - rules.last)
end

-- The same, if the epoch is complete before that.
local function wait_for_epoch(wait, interval_sec)
    if epoch.complete == 1 or epoch.ready == 0 then
        return wait
    end
    local at, period = epoch.ready + CONFIRM_MS, lease_ms(interval_sec) + interval_sec * 1000
    if epoch.old == 0 and not is_continued(period, epoch.ready) then
        at = math.max(at, epoch.ready + period)
    end
    return math.min(wait, math.max(1, at - now))
end

local function grant(at)
    local digest, count, interval_sec = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    local wanted, waiting = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local closed, used = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
    local lease = count > MARKS_MAX and lease_ms(interval_sec) or 0
    local marks, sum, existed = read_marks(digest)
    for _, mark in ipairs(marks) do
        if closed ~= 0 and mark[3] == closed and mark[2] > used then
            sum = sum - mark[2] + used
            mark[2] = used
        end
    end
    local available = count - sum - reserve(digest, count, interval_sec)
    local period = lease_ms(interval_sec) + interval_sec * 1000
    local known = is_continued(period, epoch.known) and 0 or epoch.known + math.max(period, CONFIRM_MS) - now
    local free = known > 0 and 0 or available
    local granted = math.max(0, math.min(wanted, free, math.max(waiting, math.floor(free / (2 * members)))))
    local wait = 0
    if granted > 0 then
        add_mark(marks, now + 1 + lease + interval_sec * 1000, granted, tonumber(ARGV[at + 5]))
    end
    if granted > 0 or closed ~= 0 then
        write_marks(digest, marks, existed)
        -- Removes more than one key for each new one.
        if not existed then
            sweep(SWEEP)
        end
    end
    if granted < waiting then
        wait = wait_for_epoch(wait_for(marks, digest, count, interval_sec, 1 - available + granted), interval_sec)
    end
    return { granted, math.max(wait, granted < waiting and known or 0), math.max(0, free - granted),
        marks[1] and marks[1][1] - now or 0 }
end

-- Nothing is granted of a key until its interval has passed since then.
local function time_since_start()
    if epoch.continued and epoch.continued.from <= epoch.continued.to then
        return -1
    elseif epoch.known > 0 then
        return now - epoch.known
    end
    return epoch.complete == 0 and epoch.ready == 0 and epoch.reserved == members and 0 or -1
end

-- An epoch that is about to be complete is not worth a warning.
local is_short = epoch.complete == 0 and epoch.ready > 0
local reply = { { 'ok', now, epoch.name, number, base - now, epoch.complete, joined - now,
    is_short and 0 or epoch.missing, is_short and 0 or epoch.reserved, math.max(0, epoch.reserved_until - now),
    epoch.names, time_since_start() } }
for at = 12, #ARGV, 8 do
    reply[#reply + 1] = grant(at)
end
write_epoch()
return reply
