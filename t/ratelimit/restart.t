# SPDX-License-Identifier: Apache-2.0
# Counters over restarts: graceful and ordinary ones, under load, with changed
# rules, limits and table sizes, after a killed child; and a second httpd.
use strict;
use warnings;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Process;
use AgentTest::Wait;
use RateLimitTest;
use Test::More;

my $RULES = <<'CONF';
RateLimitRegion us
RateLimitRule first  /first  key=api-key us=100/3600
RateLimitRule second /second key=api-key us=100/3600
RateLimitRule many   /many   key=api-key us=100000/3600
RateLimitRule all    *       key=ip      us=100000/3600
CONF
my $SERVE = "Redirect 204 /\n";

my $server = RateLimitTest->new(config => $RULES . $SERVE);
$server->start;

my ($key, $other) = (next_key(), next_key());
sub rest {
    my ($path, $who) = @_;
    return left($server->ask('GET', $path // '/first', { 'x-api-key' => $who // $key }));
}

# Waits until all children of the old configuration have exited.
sub restart {
    my ($how, $config) = @_;
    my %old = map { $_ => 1 } httpd_children($server->httpd_pid);
    $server->configure($config) if $config;
    my ($status, $output) = $server->control('-k', $how);
    is $status, 0, "$how restart" or diag $output;
    wait_for('new children only', sub {
        my @now = httpd_children($server->httpd_pid);
        return @now >= 2 && !grep { $old{$_} } @now;
    });
    return;
}

$server->ask('GET', '/first', { 'x-api-key' => $key }) for 1 .. 10;
is rest(), 89, 'eleven requests of a hundred are counted';

restart('graceful');
is rest(), 88, 'a graceful restart keeps counters';
restart('restart');
is rest(), 87, 'an ordinary restart keeps counters';

# ---- rules ----
(my $inserted = $RULES) =~ s/^(RateLimitRule first)/RateLimitRule new \/new key=api-key us=7\/3600\n$1/m;
restart('graceful', $inserted . $SERVE);
is rest(), 86, 'a rule inserted before another leaves its counters';
is rest('/new'), 6, 'an inserted rule has its own counters';
(my $turned = $RULES) =~ s/^(RateLimitRule first.*\n)(RateLimitRule second.*\n)/$2$1/m;
restart('graceful', $turned . $SERVE);
is rest(), 85, 'rules that change places keep their counters';
is rest('/second'), 99, 'rules that change places do not swap counters';

(my $smaller = $RULES) =~ s{(first.*us=)100/3600}{${1}50/3600};
restart('graceful', $smaller . $SERVE);
is rest(), 34, 'a smaller limit counts earlier admissions';
(my $smallest = $RULES) =~ s{(first.*us=)100/3600}{${1}5/3600};
restart('graceful', $smallest . $SERVE);
is $server->ask('GET', '/first', { 'x-api-key' => $key })->{status}, 429,
    'a limit below the earlier admissions refuses';
restart('graceful', $RULES . $SERVE);
cmp_ok rest(), '<=', 95, 'a larger limit does not restart the interval';

# ---- the table's size ----
for my $slots (1_000, 200_000) {
    my $before = rest('/second', $other);
    restart('graceful', "RateLimitTable $slots\n" . $RULES . $SERVE);
    is rest('/second', $other), $before - 1, "RateLimitTable $slots carries counters over";
}
like $server->error_log, qr/RLR0110: the shared table was replaced by one of 200000 slots/,
    'a replaced table is logged';

# The leases of a store are in use until all children have ended.
my $store = "RateLimitStore redis://127.0.0.1:1\nRateLimitStoreHosts 1\nRateLimitStoreFailure open\n";
restart('graceful', "RateLimitTable 200000\n$store$RULES$SERVE");
unlike $server->error_log, qr/RLR0129/, 'leases have the size of the table with which the store is switched on';
restart('graceful', "RateLimitTable 300000\n$store$RULES$SERVE");
like $server->error_log, qr/RLR0129: RateLimitTable 300000: the leases of RateLimitStore remain those of 200000 until httpd is stopped and started/,
    'a table size that leases cannot have is logged';
restart('graceful', "RateLimitTable 200000\n$RULES$SERVE");

my @rules = map { "RateLimitRule extra-$_ /extra/$_ key=api-key us=9/3600\n" } 1 .. 300;
my $before = rest('/second', $other);
restart('graceful', "RateLimitTable 200000\n$RULES@rules$SERVE");
is rest('/second', $other), $before - 1, '300 more rules keep the counters';
restart('graceful', $RULES . $SERVE);
is rest('/second', $other), $before - 2, '300 fewer rules keep the counters';

SKIP: {
    skip 'a sanitizer takes more by itself', 4 if is_sanitized();
    # Less than the next table takes, and enough for everything else.
    system 'prlimit', '--pid', $server->httpd_pid, '--as=4000000000' and die 'prlimit';
    restart('graceful', "RateLimitTable 16000000\n" . $RULES . $SERVE);
    is rest('/second', $other), $before - 3, 'a table size beyond the memory keeps the old table';
    restart('graceful', "RateLimitTable 16000000\n$RULES@rules"
        . join('', map { "RateLimitRule further-$_ /further/$_ key=api-key us=9/3600\n" } 1 .. 300) . $SERVE);
    is rest('/second', $other), $before - 4, 'a table size beyond the memory keeps the counters with more rules';
    is scalar(() = $server->error_log =~ /RLR0107: RateLimitTable 16000000: no shared memory/g), 2,
        'missing shared memory is logged';
    like $server->error_log, qr/RLR0103: .* 604 rules, slots for 65536 keys/, 'the size in use is logged';
    restart('graceful', $RULES . $SERVE);
    $before -= 2;
}

# ---- under load ----
# Requests of one key until the first is refused: a few at a time, until USR1
# says that the restarts are over.
sub spend {
    my ($who, $write) = @_;
    my ($admitted, $batch) = (0, 20);
    local $SIG{USR1} = sub { $batch = 100 };
    my %flood = (refused => 0);
    while (!$flood{refused}) {
        %flood = $server->flood($batch, 'GET', '/many', { 'x-api-key' => $who });
        $admitted += $flood{admitted};
        wait_ms(10) if $batch == 20;
    }
    print {$write} "$admitted\n";
    close $write;
    return;
}

my $busy = next_key();
my @clients;
for my $client (1 .. 4) {
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        spend($busy, $write);
        require POSIX;
        POSIX::_exit(0);
    }
    push @clients, { pid => $pid, read => $read };
}
for (1 .. 3) {
    my $started = rest('/many', $busy);
    restart('graceful');
    cmp_ok rest('/many', $busy), '<', $started - 1, 'requests are counted over a restart under load';
}
kill USR1 => $_->{pid} for @clients;
my $admitted = 0;
for my $client (@clients) {
    $admitted += readline $client->{read};
    waitpid $client->{pid}, 0;
}
# Responses lost at the exit of a child were charged.
cmp_ok $admitted, '<=', 100_000, 'restarts under load admit no more than the limit';
cmp_ok $admitted, '>=', 90_000, 'restarts under load lose few responses';
is $server->ask('GET', '/many', { 'x-api-key' => $busy })->{status}, 429, 'restarts under load leave no quota';

# ---- a killed child ----
my $left = rest('/second', $other);
kill_and_replace('a child', sub { (httpd_children($server->httpd_pid))[0] });
is rest('/second', $other), $left - 1, 'a killed child loses no counter';

# ---- a second httpd ----
my $neighbour = RateLimitTest->new(config => $RULES . $SERVE);
$neighbour->start;
is left($neighbour->ask('GET', '/second', { 'x-api-key' => $other })), 99,
    'a second httpd has its own counters';
is rest('/second', $other), $left - 2, 'a second httpd does not change the counters of the first';

# ---- stop ----
$server->stop;
$server->start;
is rest('/second', $other), 99, 'a stop removes the counters';

done_testing;
