# SPDX-License-Identifier: Apache-2.0
# The clock of the store is set while hosts are connected to it, under clients that send bursts to
# all of them.
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use GroupTest::Clock;
use GroupTest::Proxy;
use GroupTest::Traffic;
use Test::More;

my $HOUR_MS = 3_600_000;
my $redis = GroupTest::Redis->new;
my $clock = GroupTest::Clock->new($redis);
my $proxy = GroupTest::Proxy->new(ports => 2, to => $clock->{port});
my $region = GroupTest->new(hosts => 2, store => $redis, ports => $proxy->{ports}, rules => <<'CONF')->start;
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRule two =/two key=api-key us=10/2
CONF
my $traffic = GroupTest::Traffic->new(ports => [ map { $_->{port} } @{ $region->{hosts} } ], limit => 10,
    intervals => { '/ten' => 10, '/two' => 2 });

# Until clients that send to these hosts have been admitted more often; the most in any interval so far.
sub see_admissions {
    my ($path, $count, @hosts) = @_;
    my $admitted = 0;
    wait_for("$count admissions of $path", sub {
        my %is_one = map { $_ => 1 } @hosts;
        $admitted += grep { $_->{admitted} && $_->{path} eq $path && $is_one{ $_->{host} } } @{ $traffic->log };
        $admitted >= $count;
    });
    return $traffic->most;
}

# --- Steps -----------------------------------------------------------------------------------

# Each by how much it is ahead then. The last key of an interval has been used before each.
$traffic->start;
see_admissions('/ten', 20, 0, 1);
for my $ahead (11_000, 11_400, 0, -$HOUR_MS, 100, 2 * $HOUR_MS, 0) {
    $clock->set($ahead);
    my $most = see_admissions('/two', 40, 0, 1);
    is $most, 10, "the clock of the store is $ahead ms ahead then: never more than N in T, and N again";
}
like slurp($region->{hosts}[0]->dir . '/logs/error_log'), qr/RLR0126: the clock of the store was set/, 'the log says that it was set';

# --- A host that is cut off ------------------------------------------------------------------

$proxy->set(1, 'hold');
$clock->set(-$HOUR_MS);
is see_admissions('/two', 15, 1), 10,
    'the clock is set back an hour while a host is cut off, which then admits its share: never more than N in T with the others';
$traffic->stop;

done_testing;
