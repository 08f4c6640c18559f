# SPDX-License-Identifier: Apache-2.0
# A first start: nothing is admitted until the interval has passed. The log, the status page and its
# queries say so, and a dry run until then refuses nothing.
use strict;
use warnings;
use AgentTest::Env qw(slurp write_file);
use AgentTest::Wait;
use RateLimitTest;
use GroupTest;
use Test::More;

my $region = GroupTest->new(hosts => 1, rules => <<"CONF", directives => "RateLimitEngine DryRun\n");
RateLimitRule ten  =/ten  key=api-key us=10/10
RateLimitRule hour =/hour key=api-key us=9/1h
RateLimitOverride @{[hash_of('customer')]} hour 9/7900
<Location /limits>
    SetHandler ratelimit-status
</Location>
CONF
my $host = $region->{hosts}[0];

sub see { return $host->ask('GET', '/limits' . ($_[0] // ''))->{json} }
sub ask_for { return see("?path=$_[0]&api-key=" . hash_of($_[1])) }
sub reload { $host->control('-k', 'graceful'); return }

sub logged {
    my ($pattern) = @_;
    return wait_for("$pattern", sub { slurp($host->dir . '/logs/error_log') =~ $pattern ? $1 : 0 });
}

# --- The start -------------------------------------------------------------------------------

$region->begin;
like logged(qr/(RLR0124: the hosts of the store have started \d+ s ago: nothing is admitted under a rule until .*)/),
    qr/ of 7900 s, for 7[0-9]{3} s more/, 'the log of a first start says for how long the limit of the longest interval, here an override, admits nothing';
isnt $region->send(0, '/hour', 'first'), 0, 'in a dry run a request is served during the start';
my $store = see()->{store};
is $store->{state}, 'starting', 'the page has the state of a first start';
cmp_ok $store->{starting_ms}, '>', 7_000_000, 'the page says for how long the limit of the longest interval admits nothing';
like $host->ask('GET', '/limits?format=prometheus')->{body}, qr/^ratelimit_store_starting_seconds\{host="[^"]+"\} 7[0-9]{3}$/m,
    'metrics say for how long the limit of the longest interval admits nothing';
like $host->ask('GET', '/limits?format=html')->{body}, qr{<h2>Store <b>starting</b>.*The hosts have just started}s, 'the HTML page has the state of a first start';

# --- Queries -----------------------------------------------------------------------------------

for my $key (qw(first never)) {
    my $answer = ask_for('/hour', $key);
    is $answer->{outcome}, 'would-refuse', "during the start a query says that a request would be refused ($key)";
    cmp_ok $answer->{wait_ms}, '>', 3_000_000, "during the start a query says how long a request would wait ($key)";
}

# --- The dry run until then ----------------------------------------------------------------------

wait_for('the end of the interval', sub { $region->send(0, '/ten', 'dry'); ask_for('/ten', 'new')->{outcome} eq 'admitted' });
write_file($host->{conf}, slurp($host->{conf}) =~ s/RateLimitEngine DryRun//r);
reload();
wait_for('the reload', sub { see()->{regions}[0]{rules}[0]{engine} eq 'on' });
is $region->send(0, '/ten', 'second'), 1, 'once the interval has passed the dry run is removed by a reload, and requests are admitted';
my $refused = 0;
$refused += 1 - $region->send(0, '/ten', 'second') for 1 .. 12;
is $refused, 3, 'the limit is enforced then';
is ask_for('/ten', 'second')->{outcome}, 'refused', 'a query says that a key that has used its limit is refused';
is $region->send(0, '/hour', 'second'), 0, 'a rule of a longer interval refuses after the dry run until that has passed';
is ask_for('/hour', 'second')->{outcome}, 'refused', 'a query says that a rule of a longer interval refuses after the dry run';
is scalar(() = slurp($host->dir . '/logs/error_log') =~ /RLR0124/g), 1, 'a start is logged once';
$region->age;
is ask_for('/hour', 'third')->{outcome}, 'admitted', 'a query says that a request is admitted, once the start is over';
is see()->{store}{state}, 'member', 'the state is that of a member, once the start is over';

# --- Without the store ---------------------------------------------------------------------------

$region->{redis}->stop;
wait_for('the store to be away', sub { see()->{store}{state} eq 'away' });
my $sent = $region->send(0, '/ten', 'away');
is ask_for('/ten', 'away')->{outcome}, $sent ? 'admitted' : 'refused', 'while the store is away a query says what the next request gets';
is $sent, 0, 'a host that was just cut off refuses';

done_testing;
