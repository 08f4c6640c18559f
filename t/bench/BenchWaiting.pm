# SPDX-License-Identifier: Apache-2.0
# Thousands of joins parked in one child of 64 threads: memory of each, latency of
# waking it, and throughput left for requests that do not wait. joins.c holds them;
# their runs are due tomorrow, so nothing else is executed.
package BenchWaiting;
use strict;
use warnings;
use AgentTest::Env qw(build_dir slurp);
use AgentTest::Process qw(count_descriptors);
use AgentTest::Wait;
use BenchHttp qw(request drive);
use BenchProcess qw(memory_kb);
use BenchRates qw(get_state_case median run_wrk);
use BenchRuns qw(at make_threads);
use BenchServer;
use Exporter 'import';
use IPC::Open2 qw(open2);
use List::Util qw(min sum);
use Time::HiRes qw(sleep);

our @EXPORT_OK = qw(measure_waiting);

my $DEPLOYMENT = '00000000-0000-0000-0000-000000000001';
my $RUN = '{"assistant_id":"agent","after_seconds":86400,"input":null}';
my $CONNECTIONS = 16;
my $THREADS = 64;
my $MAX_WAITERS = 6000;
# Open files of a child that does not wait are fewer.
my $FILES_OTHER = 500;
# Each waiter has had a heartbeat.
my $SETTLE_SEC = 6;

# The only child, so that all of them are in it.
my $CONFIG = <<"CONF";
LogLevel warn agent:warn
StartServers 1
ServerLimit 4
ThreadsPerChild $THREADS
MinSpareThreads 1
MaxSpareThreads $THREADS
MaxRequestWorkers $THREADS
AsyncRequestWorkerFactor 160
MaxConnectionsPerChild 0
MaxKeepAliveRequests 0
DBDKeep $THREADS
DBDMax $THREADS
AgentMaxWaiters $MAX_WAITERS
AgentMaxWaitersPerAddress 0
CONF

# {waiters, kb_each, one => [microseconds, sorted], all => the same,
# rates => {ok => result of summary(), state => ...}}, or {skipped => reason}.
sub measure_waiting {
    my (undef, $plan) = @_;
    raise_file_limit($plan);
    my $server = BenchServer->new(config => $CONFIG);
    my $waiters = min($plan->{waiters}, find_slots($server) - $plan->{wakes});
    my $result = $waiters > $plan->{wakes} ? measure_parked($server, $plan, $waiters)
        : { skipped => 'too few open files are allowed (ulimit -Hn)' };
    $server->stop;
    return $result;
}

sub measure_parked {
    my ($server, $plan, $waiters) = @_;
    my $work = { server => $server, %{$plan}, round_sec => $plan->{waiting_sec} };
    my @runs = make_runs($server, $waiters + $plan->{wakes});
    my @parked = @runs[ 0 .. $waiters - 1 ];
    return {
        waiters => $waiters,
        rates($work, \@parked),
        wakes($work, \@runs),
    };
}

# The limit of this process is that of all it starts.
sub raise_file_limit {
    my ($plan) = @_;
    my ($hard) = slurp('/proc/self/limits') =~ /^Max open files\s+\d+\s+(\d+)/m
        or return;
    my $soft = min($hard, $plan->{waiting_files} // $hard);
    system('prlimit', '--pid', $$, "--nofile=$soft:$hard") == 0
        or die "prlimit failed\n";
    return;
}

# Requests that may wait in the child: the server says so (AGT0410) if the limit
# of open files allows fewer than its configuration.
sub find_slots {
    my ($server) = @_;
    my ($slots) = $server->error_log =~ /AGT0410.* so (\d+) requests/;
    return $slots // $MAX_WAITERS;
}

# ["THREAD RUN", ...]
sub make_runs {
    my ($server, $count) = @_;
    my @threads = make_threads($server, $count);
    my @clients = map { BenchHttp->new($server->port) } 1 .. $CONNECTIONS;
    my (@asked, @runs);
    drive(\@clients, sub {
        my ($index, $answer) = @_;
        push @runs, "$asked[$index] " . read_run($answer) if $answer;
        $asked[$index] = shift @threads // return;
        return request('POST', "/threads/$asked[$index]/runs", $RUN);
    });
    return @runs;
}

sub read_run {
    my ($answer) = @_;
    my ($run) = $answer->{bytes} =~ /"run_id"\s*:\s*"([0-9a-f-]{36})"/;
    die "no run: $answer->{bytes}\n" if $answer->{status} != 200 || !$run;
    return $run;
}

# --- The waiting clients ----------------------------------------------------------

my $joins;

sub park {
    my ($server, @runs) = @_;
    my $pid = open2(my $out, my $in, build_dir() . '/bench/joins',
        $server->port, $server->conninfo, $DEPLOYMENT);
    $joins = { pid => $pid, in => $in, out => $out };
    print {$in} map { "$_\n" } @runs, '';
    $in->flush;
    (readline($out) // '') eq "parked\n" or die "joins did not park\n";
    return;
}

# Microseconds, one for each response.
sub wake {
    my ($command) = @_;
    print { $joins->{in} } "$command\n";
    $joins->{in}->flush;
    return split ' ', readline($joins->{out}) // die "joins ended\n";
}

# Waits until the child has noticed that they disconnected.
sub unpark {
    my ($child) = @_;
    end_joins();
    wait_for('the child to close the connections of its waiters',
        sub { count_descriptors($child) < $FILES_OTHER });
    return;
}

sub end_joins {
    my $ended = $joins // return;
    local $?;
    undef $joins;
    close $ended->{in};
    waitpid $ended->{pid}, 0;
    return;
}

END { end_joins() }

# --- Measurements -------------------------------------------------------------------

# Rounds alternate their order. Memory is that of the first round: later the
# allocators keep memory.
sub rates {
    my ($work, $runs) = @_;
    my $server = $work->{server};
    my ($child) = @{ $server->processes->{httpd} };
    my %case = (
        ok => { wrk => [ $server->url . '/ok' ] },
        state => get_state_case($work),
    );
    $_->{allows_cuts} = 1 for values %case;
    warm_up($work, $child, \%case, $runs);
    my (%rounds, $kb_each, %result);
    my $run = sub { map { ($_ => run_wrk($work, $case{$_})) } sort keys %case };
    my @sides = (
        sub { $result{without} = { $run->() } },
        sub {
            $kb_each //= park_and_weigh($server, $child, $runs);
            park($server, @{$runs}) if !$joins;
            $result{with} = { $run->() };
            unpark($child);
        },
    );
    for (1 .. $work->{waiting_rounds}) {
        $_->() for @sides;
        @sides = reverse @sides;
        push @{ $rounds{$_} }, compare($_, \%result) for keys %case;
    }
    return (kb_each => $kb_each, rates => { map { $_ => summary($rounds{$_}) }
        keys %rounds });
}

sub park_and_weigh {
    my ($server, $child, $runs) = @_;
    my $before = memory_kb($child);
    park($server, @{$runs});
    sleep $SETTLE_SEC;
    return (memory_kb($child)->{private} - $before->{private}) / @{$runs};
}

sub compare {
    my ($name, $result) = @_;
    my %round = map { $_ => $result->{$_}{$name} } qw(with without);
    return { %round, ratio => $round{with}{rate} / $round{without}{rate} };
}

# Every thread has had a connection of the database, and has parked a request.
sub warm_up {
    my ($work, $child, $case, $runs) = @_;
    run_wrk({ %{$work}, round_sec => 1 }, $case->{$_}) for qw(ok state);
    park($work->{server}, @{$runs}[ 0 .. $THREADS - 1 ]);
    unpark($child);
    return;
}

# {with, without, ratio}: medians; {cut_with, cut_without}: sums.
sub summary {
    my ($rounds) = @_;
    my %summary = (each => [ map { $_->{ratio} } @{$rounds} ]);
    $summary{ratio} = median(@{ $summary{each} });
    for my $side (qw(with without)) {
        my @results = map { $_->{$side} } @{$rounds};
        $summary{$side} = median(map { $_->{rate} } @results);
        $summary{"cut_$side"} = sum(map { $_->{cut} } @results);
    }
    return \%summary;
}

# One after the other, then the rest together.
sub wakes {
    my ($work, $runs) = @_;
    my ($child) = @{ $work->{server}->processes->{httpd} };
    park($work->{server}, @{$runs});
    my @one = sort { $a <=> $b } map { wake('one') } 1 .. $work->{wakes};
    my @all = sort { $a <=> $b } wake('all');
    unpark($child);
    return (one => \@one, all => \@all);
}

1;
