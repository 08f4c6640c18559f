# SPDX-License-Identifier: Apache-2.0
# The numbers of the store on the status page: leases, round trips, decisions by this host alone.
use strict;
use warnings;
use RateLimitTest;
use GroupTest;
use Sys::Hostname qw(hostname);
use Test::More;
use AgentTest::Wait;

my $region = GroupTest->new(hosts => 2, rules => <<'CONF', directives => "RateLimitStoreShareTime 1s\n")->start;
RateLimitRule ten   =/ten   key=api-key us=10/10
RateLimitRule large =/large key=api-key us=6400/1h
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
my $name = hostname() . "/127.0.0.1:$region->{hosts}[0]{port}";

sub see { return $region->{hosts}[ $_[0] ]->ask('GET', '/limits' . ($_[1] // '')) }
sub store { return see($_[0])->{json}{store} }
sub requests { return see($_[0])->{json}{regions}[0]{store} }

# --- With the store ----------------------------------------------------------------------------

my $before = requests(0);
$region->send(0, '/ten', 'first') for 1 .. 12;
my $after = requests(0);
is $after->{asked} - $before->{asked} + $after->{cached} - $before->{cached}, 12,
    'requests under a small limit are decided by the store, and refusals by its last reply';
cmp_ok $after->{cached}, '>', $before->{cached}, 'refusals are counted apart';
wait_for('a request by a lease', sub { $region->send(0, '/large', 'first'); requests(0)->{leased} > 0 });
pass 'requests that a lease admits are counted apart';
# It ends after a second.
my $store = wait_for('a lease', sub {
    $region->send(0, '/large', 'first') for 1 .. 2;
    my $seen = store(0);
    return $seen->{leases} > 0 && $seen->{leased_requests} > 0 && $seen;
});
pass 'a lease is seen while the host has it, with the requests that it admits';
is $store->{state}, 'member', 'a host that is connected to all partitions is a member';
is_deeply [ $store->@{qw(host hosts partitions connected missing_hosts reserved_shares)} ], [ $name, 2, 16, 16, 0, 0 ],
    'the page names the host, and says that none is missing';
cmp_ok $store->{round_trips_us} / $store->{round_trips}, '>', 1, 'round trips have a duration';

my $page = see(0)->{json};
cmp_ok $page->{live_keys}, '>=', 2, 'with a store the live keys are those whose admissions by this host count';
cmp_ok $page->{store}{table_keys}, '>=', 2, 'the page has the number of keys that the store was asked for';
cmp_ok $page->{store}{table_slots}, '>=', 65_536, 'the page has the slots that these keys may have';
cmp_ok $page->{slots}, '>=', 65_536, 'with a store the slots are those of its leases';
ok !exists $page->{regions}[0]{rules}[0]{live_keys}, 'with a store a rule has no number of live keys';

# --- Metrics and HTML ----------------------------------------------------------------------------

my $metrics = see(0, '?format=prometheus')->{body};
like $metrics, qr/^ratelimit_store_requests_total\{region="us",host="\Q$name\E",decision="asked"\} [1-9]/m,
    'metrics have decisions by region and host';
like $metrics, qr/^ratelimit_store_round_trip_seconds_bucket\{host="\Q$name\E",le="0\.001"\} \d+$/m,
    'metrics have a histogram of round trips';
my ($infinite) = $metrics =~ /^ratelimit_store_round_trip_seconds_bucket\{host="\Q$name\E",le="\+Inf"\} (\d+)$/m;
my ($count) = $metrics =~ /^ratelimit_store_round_trip_seconds_count\{host="\Q$name\E"\} (\d+)$/m;
is $infinite, $count, 'the last bucket of a histogram has all round trips';
like $metrics, qr/^ratelimit_store_\Q$_\E\{host="\Q$name\E"\} \d+$/m, "metrics have $_"
    for qw(errors_total leases leased_requests table_slots table_keys connected_partitions missing_hosts reserved_shares);
like see(0, '?format=html')->{body}, qr{<h2>Store <b>member</b>.*\Q$name\E.*one of 2}, 'HTML has the store';

# --- Without it ------------------------------------------------------------------------------------

$region->{redis}->stop;
wait_for('the store to be away', sub { store(1)->{state} eq 'away' });
$before = requests(1);
$region->send(1, '/ten', 'second') for 1 .. 3;
$after = requests(1);
is $after->{alone_refused} + $after->{alone_admitted} - $before->{alone_refused} - $before->{alone_admitted}, 3,
    'requests that the host decides alone are counted';
is $after->{away} + $after->{late} + $after->{busy} - $before->{away} - $before->{late} - $before->{busy}, 3,
    'requests that the store does not decide are counted by the reason';
# The sum over the labels of each.
my $away = see(1, '?format=prometheus')->{body};
my %sum;
$sum{$1} += $2 while $away =~ /^(ratelimit_store_(?:requests|alone)_total)\{.*\} (\d+)$/mg;
is $sum{ratelimit_store_requests_total}, $after->{leased} + $after->{cached} + $after->{asked} + $after->{alone_admitted} + $after->{alone_refused},
    'the metric of decisions counts each request once';
is $sum{ratelimit_store_alone_total}, $after->{away} + $after->{late} + $after->{busy}, 'metrics have why requests were decided without the store';
my $errors = store(1)->{errors};
wait_for('further errors', sub { store(1)->{errors} > $errors + 2 });
pass 'attempts to connect with an error are counted';
is see(1, '?format=html')->{status}, 200, 'the page is there without the store';

# --- A server without a store ------------------------------------------------------------------------

my $alone = RateLimitTest->new(config => <<'CONF');
RateLimitRegion us
RateLimitRule ten =/ten key=api-key us=10/10
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
$alone->start;
my $json = $alone->ask('GET', '/limits')->{json};
is $json->{store}, undef, 'without RateLimitStore there are no numbers of a store';
unlike $alone->ask('GET', '/limits?format=prometheus')->{body}, qr/ratelimit_store/, 'without RateLimitStore there are no metrics of a store';
unlike $alone->ask('GET', '/limits?format=html')->{body}, qr/<h2>Store/, 'without RateLimitStore the page has no part for it';

done_testing;
