# SPDX-License-Identifier: Apache-2.0
# Calls to the store that arrive twice.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use GroupTest::Redis;
use Test::More;

my ($NEW, $STAYED) = (1, 8);
my ($KEY, $OTHER) = ('key0000000000001', 'key0000000000002');
my $redis = GroupTest::Redis->new;
my ($sha) = $redis->run('SCRIPT', 'LOAD', slurp(root() . '/mod_ratelimit_regional/protocol/grant.lua')) =~ /([0-9a-f]{40})/;
my $tag = 0;

# A call of the only host; the reply.
sub call {
    my ($kind, $epoch, $flags, @items) = @_;
    return $redis->run('EVALSHA', $sha, 1, 'rlr:{0}', $kind, 'host000000000001', $epoch, 9e15, 1, 3_600_000, $flags, -1, 0, 0, 'name', @items);
}

my ($epoch) = call('hello', '', $NEW) =~ /\r\n([0-9a-f]{16})\r\n/;
call('heartbeat', $epoch, $NEW);
# As if the host had been there for longer than an interval.
$redis->run('EVAL', <<'LUA', 1, 'rlr:{0}');
local epoch = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm'))
epoch.known, epoch.complete = 0, 1
redis.call('HSET', KEYS[1], 'm', cmsgpack.pack(epoch))
local member = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'm0'))
member[3], member[5] = 0, 0
redis.call('HSET', KEYS[1], 'm0', cmsgpack.pack(member))
return redis.call('HDEL', KEYS[1], 'unsettled')
LUA

sub grant { return call('heartbeat', $epoch, $STAYED, $_[0], 10, 10, 1, 1, ++$tag, 0, 0) }
sub has_marks { return $redis->run('HEXISTS', 'rlr:{0}', $_[0]) =~ /^:1/ }

grant($_) for $KEY, $OTHER;
ok has_marks($KEY), 'an admission counts';
call('reset', $epoch, $STAYED, $KEY, 71);
ok !has_marks($KEY), 'a reset of a key forgets its admissions';
ok has_marks($OTHER), 'a reset of a key does not forget those of another one';
grant($KEY);
call('reset', $epoch, $STAYED, $KEY, 71);
ok has_marks($KEY), 'a reset that comes twice does not forget what was granted in between';
call('reset', $epoch, $STAYED, $KEY, 72);
ok !has_marks($KEY), 'another reset of the key forgets its admissions';

done_testing;
