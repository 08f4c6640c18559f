# SPDX-License-Identifier: Apache-2.0
# Hosts that return to a store that has kept its data while they were at another one, and hosts that
# were refused after a reload.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::Redis;
use Test::More;

my $lines = "RateLimitRule ten =/ten key=api-key us=10/10\nRateLimitRule leased =/leased key=api-key us=960/1h\n";
my $rules = "RateLimitRegion us\n$lines";
my $region = GroupTest->new(hosts => 2, rules => $lines)->start;
my @hosts = @{ $region->{hosts} };
my ($former, $other) = ($region->{redis}, GroupTest::Redis->new);

# The configuration of a host with that store.
sub lines_of {
    my ($redis, $more) = @_;
    return $rules . <<"CONF" . ($more // '');
RateLimitStore redis://127.0.0.1:$redis->{port}
RateLimitStoreHosts 2
RateLimitStoreTimeout 1s
CONF
}

sub log_of { return slurp($_[0]->dir . '/logs/error_log') }

sub restart {
    my ($redis, $more) = @_;
    $_->stop for @hosts;
    $_->configure(lines_of($redis, $more)) for @hosts;
    $_->start for @hosts;
    $region->{redis} = $redis;
    return;
}

sub reload {
    my ($redis, $more) = @_;
    for my $host (@hosts) {
        $host->configure(lines_of($redis, $more));
        my ($status, $output) = $host->control('-k', 'graceful');
        $status == 0 or BAIL_OUT $output;
    }
    $region->{redis} = $redis;
    return;
}

# --- Another store, and back -----------------------------------------------------------------

restart($other);
$region->wait_for_grants;
is scalar(grep { $region->send($_ % 2, '/ten', 'key') } 1 .. 12), 10, 'hosts that are started with another store admit N after the interval';
restart($former);
$region->wait_for_grants;
$region->send($_ % 2, '/ten', 'key') for 1 .. 12;
is $region->most('/ten', 'key', 10), 10, 'back at the former store they admit no more than N in an interval';

# --- A reboot of the machine with hosts and store, whose data are restored ----------------------

$_->stop for @hosts;
$former->run('SAVE');
$former->stop;
$former->start;
isnt $former->run('DBSIZE'), ":0\r\n", 'the store has its data again';
$_->start for @hosts;
$region->wait_for_grants;
pass 'hosts that are started with a restarted store, which has kept its data, admit requests after the interval';

# --- After a reload with another address -----------------------------------------------------

reload($other);
$region->settle;
restart($former);
$region->wait_for_grants;
pass 'hosts that were reloaded with another store, stopped and started with the former one admit requests';
unlike log_of($_), qr/RLR0121/, 'they are not refused' for @hosts;

# --- After a reload with another configuration ------------------------------------------------

reload($former, "RateLimitStoreShareTime 30m\n");
wait_for('refusals of all hosts', sub { @hosts == grep { log_of($_) =~ /RLR0121/ } @hosts });
my $idle = "local time = redis.call('TIME'); return time[1] - redis.call('HGET', KEYS[1], 'last') / 1000 > 4 and 1 or 0";
wait_for('four seconds without a host', sub { 16 == grep { $former->run('EVAL', $idle, 1, "rlr:{$_}") eq ":1\r\n" } 0 .. 15 });
my @left = map { scalar(() = log_of($_) =~ /RLR0120/g) } @hosts;
restart($former, "RateLimitStoreShareTime 30m\n");
is scalar(() = log_of($hosts[$_]) =~ /RLR0120/g), $left[$_] + 1, "host $_ leaves the store, which refuses its changed configuration" for 0, 1;
$region->wait_for_grants;
pass 'hosts that were refused, stopped and started with the changed configuration admit requests';

done_testing;
