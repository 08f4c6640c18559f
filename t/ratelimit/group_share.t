# SPDX-License-Identifier: Apache-2.0
# Hosts without their store: the share of `local`, also with a full table, and `closed`.
use strict;
use warnings;
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use Test::More;
use Time::HiRes qw(time);

my $rule = "RateLimitRule ten =/ten key=api-key us=10/10\n";
my $local = GroupTest->new(hosts => 2, rules => "RateLimitTable 1024\n$rule");
my $closed = GroupTest->new(hosts => 2, rules => $rule, directives => "RateLimitStoreFailure closed\n");
$_->start for $local, $closed;
my $began = time;
$_->{redis}->stop for $local, $closed;

# Requests of a new key from one address after the other; how many are admitted.
sub send_from_addresses {
    my ($host) = @_;
    my ($key, $admitted) = (next_key(), 0);
    for (1 .. 60) {
        my $address = next_address();
        $admitted += $host->ask('GET', '/ten', { 'x-api-key' => $key, 'X-Forwarded-For' => $address })->{status} != 429 for 1 .. 5;
    }
    return $admitted;
}

# --- closed -------------------------------------------------------------------------

my $host = $local->{hosts}[0];
my $closed_admitted = 0;
my $first;
wait_for('the share of a host', sub {
    $closed_admitted += $closed->send($_, '/ten', 'key') for 0, 1;
    $first = time;
    return $host->ask('GET', '/ten', { 'x-api-key' => 'calm' })->{status} != 429;
});
$closed_admitted += $closed->send($_, '/ten', 'key') for 0, 1;
is $closed_admitted, 0, 'closed: nothing is admitted while a host with `local` waits for its share, and after that';

# --- local --------------------------------------------------------------------------

my $calm = grep { $host->ask('GET', '/ten', { 'x-api-key' => 'calm' })->{status} != 429 } 1 .. 8;
is 1 + $calm, 5, 'local: half of N is admitted by one of two hosts';
my $refusal = $host->ask('GET', '/ten', { 'x-api-key' => 'calm' });
cmp_ok $refusal->{headers}{'retry-after-ms'} + 1000 * (time - $first), '>=', 10_990,
    'the share is counted for longer than the interval, as clocks may differ';

# Other keys have nearly all slots: a counter of several keys would admit the share once from
# each address.
$host->flood_with(972, sub {
    $host->request_text('GET', '/ten', { 'x-api-key' => next_key(), 'X-Forwarded-For' => next_address() });
});
cmp_ok send_from_addresses($host), '<=', 5, 'with a full table a key from 60 addresses has the share of the host once';

# --- The log ------------------------------------------------------------------------

my $minutes = 1 + int((time - $began) / 60);
for my $region ($local, $closed) {
    cmp_ok scalar(() = $_->error_log =~ /RLR0115/g), '<=', $minutes, 'a store that is away is logged once a minute' for @{ $region->{hosts} };
}

done_testing;
