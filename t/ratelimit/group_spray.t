# SPDX-License-Identifier: Apache-2.0
# A new API key with each request, and what the store keeps of them.
use strict;
use warnings;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use Test::More;

# Of a partition: the keys of clients in it.
my $KEYS = <<'LUA';
local keys = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if #field == 16 then keys = keys + 1 end
end
return keys
LUA

# The keys at the store of the region.
sub keys_of {
    my ($region) = @_;
    my $sum = 0;
    for my $partition (0 .. 15) {
        my ($keys) = ($region->{redis}->run('EVAL', $KEYS, 1, "rlr:{$partition}") // '') =~ /^:(\d+)/;
        $sum += $keys // 0;
    }
    return $sum;
}

sub begin {
    my ($slots, $interval) = @_;
    return GroupTest->new(hosts => 1, rules => <<"CONF")->start;
RateLimitTable $slots
RateLimitRule ten =/ten key=api-key us=10/$interval
RateLimitRule day =/day key=api-key us=10/1d
RedirectMatch 204 ^/
CONF
}

# New keys of one address; how many are admitted.
sub spray {
    my ($region, $path, $count) = @_;
    my ($host, $address) = ($region->{hosts}[0], next_address());
    my %result = $host->flood_with($count, sub {
        return $host->request_text('GET', $path, { 'x-api-key' => next_key(), 'X-Forwarded-For' => $address });
    });
    return $result{admitted};
}

# --- An address -------------------------------------------------------------------

my $region = begin(4096, 10);
my $before = keys_of($region);
my $admitted = spray($region, '/day', 2000);
cmp_ok $admitted, '<=', 4096 / 16, 'an address has a sixteenth of the table, with a store too';
cmp_ok $admitted, '>', 0, 'new keys of an address are admitted up to its share';
cmp_ok keys_of($region) - $before, '<=', 4096 / 16, 'the store keeps no more keys of an address than that';
like $region->{hosts}[0]->error_log, qr/RLR0206/, 'the log says that an address has its share';
wait_for('an admission of another address', sub {
    return $region->{hosts}[0]->ask('GET', '/ten', { 'x-api-key' => next_key(), 'X-Forwarded-For' => next_address() })->{status} == 204;
});
pass 'new keys of other addresses are admitted';

# --- Expired keys -----------------------------------------------------------------

$region = begin(65_536, 1);
spray($region, '/ten', 4000);
wait_for('no expired keys at the store', sub { keys_of($region) == 0 });
pass 'the heartbeats of hosts without requests remove expired keys';
for my $partition (0 .. 15) {
    my ($ms) = $region->{redis}->run('PTTL', "rlr:{$partition}") =~ /^:(\d+)/;
    $before = $partition == 0 || $ms < $before ? $ms : $before;
}
cmp_ok $before, '>', 2 * 86_400_000, 'the store keeps what may count, and for longer than any interval';
my ($ms) = $region->{redis}->run('PTTL', 'rlr:{0}') =~ /^:(\d+)/;
cmp_ok $ms, '<', 3 * 86_400_000, 'the data at the store expires';

# --- A store that is full -----------------------------------------------------------

$region = begin(65_536, 3);
my ($used) = $region->{redis}->run('INFO', 'memory') =~ /used_memory:(\d+)/;
$region->{redis}->run('CONFIG', 'SET', 'maxmemory', $used + 200_000);
spray($region, '/ten', 4000);
like $region->{redis}->run('EVAL', "return redis.pcall('SET', 'x', 'x').err or 'none'", 0), qr/OOM/, 'a client with new keys has filled the store'
    or diag keys_of($region);
wait_for('a grant', sub { $region->{hosts}[0]->ask('GET', '/ten', { 'x-api-key' => next_key() })->{status} == 204 });
pass 'a store without room goes on when its keys have expired';

done_testing;
