# SPDX-License-Identifier: Apache-2.0
# Four hosts with one Redis: one limit for all.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use Test::More;

my $rules = <<'CONF';
RateLimitRule ten   =/ten   key=api-key us=10/10
RateLimitRule one   =/one   key=api-key us=1/10
RateLimitRule large =/large key=api-key us=200/10
RateLimitRule hour  =/hour  key=api-key us=7/1h
CONF
my $region = GroupTest->new(rules => $rules, directives => <<'CONF')->begin;
<Location "/status">
    SetHandler ratelimit-status
</Location>
CONF

my $next = 0;

# Requests to the hosts in turn; how many were admitted.
sub send_to_all {
    my ($path, $key, $count) = @_;
    my $admitted = 0;
    $admitted += $region->send($_ % 4, $path, $key) for 1 .. $count;
    return $admitted;
}

# Repeats the scenario, with a new key, until it admits as many: on a busy machine the store
# may grant what comes too late for its request. Never more.
sub admits {
    my ($expected, $title, $scenario) = @_;
    my $admitted;
    wait_for($title, sub { ($admitted = $scenario->('key' . $next++)) >= $expected });
    return is $admitted, $expected, $title;
}

# Requests to the hosts until each has admitted one more; how many were admitted.
sub send_until_all_admit {
    my ($path, $key, @hosts) = @_;
    my %left = map { $_ => 1 } @hosts;
    my $admitted = 0;
    wait_for('an admission at each host', sub {
        for my $host (sort keys %left) {
            next if !$region->send($host, $path, $key);
            delete $left{$host};
            $admitted++;
        }
        return !%left;
    });
    return $admitted;
}

# --- A first start ------------------------------------------------------------------

# Of /hour nothing is admitted for an hour: that these hosts know of no admission does not
# mean that there were none.
is send_to_all('/hour', 'first', 8), 0, 'nothing is granted until an interval has passed since all hosts were there';
$region->age;
$region->wait_for_grants;

# --- One limit ---------------------------------------------------------------------

admits(7, 'four hosts together admit N requests of a key, and each key has its own limit', sub { send_to_all('/hour', $_[0], 24) });
my $answer = $region->{last};
is $answer->{status}, 429, 'a request over the limit of the region is refused, at any host';
cmp_ok $answer->{headers}{'retry-after'}, '<=', 3600, 'a refusal by the store has a wait of at most the interval';

# Bursts to each host in turn, until more than two intervals must have passed.
my $round = 0;
wait_for('admissions of three intervals', sub {
    for my $host (0 .. 3) {
        $region->send(($round + $host) % 4, '/ten', 'burst') for 1 .. 3;
    }
    $region->send($round % 4, '/one', 'burst') for 1 .. 3;
    wait_ms(300);
    return $round++ > 30 && @{ $region->{log}{'/ten burst'} // [] } > 20;
});
cmp_ok $region->most('/ten', 'burst', 10), '<=', 10, 'never an eleventh request in any 10 s, with bursts to each host in turn';
pass 'admissions return after the interval';
cmp_ok $region->most('/one', 'burst', 10), '<=', 1, 'a limit below the number of hosts is kept too';

my $large = send_to_all('/large', 'lease', 320);
cmp_ok $region->most('/large', 'lease', 10), '<=', 200, 'leases: never more than N';
# Each of four hosts may keep N / 32 that it does not use.
cmp_ok $large, '>=', 150, 'leases: most of N are admitted';

# --- Reset -------------------------------------------------------------------------

admits(7, 'a key that an operator resets at one host has its whole limit at all hosts', sub {
    my ($key) = @_;
    send_to_all('/hour', $key, 10);
    # The store may answer late on a busy machine.
    wait_for('an admission at another host', sub {
        $region->{hosts}[1]->ask('POST', '/status', { 'Content-Type' => 'application/x-www-form-urlencoded' },
            'action=reset&api-key=' . hash_of($key));
        return $region->send(2, '/hour', $key);
    });
    # At each, or two of them could admit all.
    return 1 + send_until_all_admit('/hour', $key, 0, 1, 3) + send_to_all('/hour', $key, 16);
});

# --- The store loses its data --------------------------------------------------------

# Four of seven admissions, the loss, and the rest.
sub admitted_around {
    my ($lose) = @_;
    return sub {
        my ($key) = @_;
        my $before = send_to_all('/hour', $key, 4);
        $region->settle;
        $lose->();
        $region->settle;
        return $before + send_to_all('/hour', $key, 20);
    };
}

admits(7, 'a store that is emptied: the hosts report what they have admitted, and the rest is granted',
    admitted_around(sub { $region->{redis}->run('FLUSHALL') }));
admits(7, 'a store that is restarted without its data: the hosts report what they have admitted', admitted_around(sub {
    $region->{redis}->stop;
    $region->{redis}->start;
}));

# --- The store is away ---------------------------------------------------------------

send_to_all('/ten', 'cut', 12);
$region->{redis}->stop;
send_until_all_admit('/ten', 'cut', 0 .. 3);
pass 'local: hosts that are cut off admit their shares';
like slurp($region->{hosts}[$_]->dir . '/logs/error_log'), qr/RLR0115: .*store does not answer/, "the log of host $_ says that the store is away"
    for 0 .. 3;
$region->{redis}->start;
send_until_all_admit('/ten', 'cut', 0 .. 3) for 1 .. 2;
pass 'hosts that return to the store are granted admissions again';
cmp_ok $region->most('/ten', 'cut', 10), '<=', 10, 'never an eleventh request in any 10 s, while hosts are cut off and return';

done_testing;
