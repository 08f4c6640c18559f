# SPDX-License-Identifier: Apache-2.0
# POST /threads and GET /threads/{id}/state through httpd, against pgbench with
# the very statements that the module sends. Both sides hold 32 connections and
# share the processors with what they measure; rounds alternate, and the figure
# is the median of the rounds' ratios, because the speed of the machine changes
# from minute to minute.
package BenchRates;
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use BenchHttp qw(request);
use Exporter 'import';
use File::Temp qw(tempdir);
use POSIX ();
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure_rates get_state_case median quartiles run_wrk);

my $CONNECTIONS = 32;
my $DEPLOYMENT = '00000000-0000-0000-0000-000000000001';
my $BODY = '{"metadata":{"purpose":"benchmark"}}';

# The current load generator, which ends with this process.
my $child;

sub measure_rates {
    my ($server, $plan) = @_;
    my $work = {
        server => $server,
        dir  => tempdir('/tmp/agent-bench.XXXXXX', CLEANUP => 1),
        %{$plan},
    };
    return { create => measure($work, create_thread_case($work)),
        state => measure($work, get_state_case($work)) };
}

sub measure {
    my ($work, $case) = @_;
    my @rounds;
    if ($work->{warm_up_sec}) {
        run_wrk({ %{$work}, round_sec => 1 }, $case);
        run_pgbench({ %{$work}, round_sec => 1 }, $case);
    }
    for (1 .. $work->{rounds}) {
        my $http = run_wrk($work, $case);
        my $base = run_pgbench($work, $case);
        push @rounds, { http => $http, base => $base,
            ratio => $http->{rate} / $base->{rate} };
    }
    return { rounds => \@rounds, ratio => median(map { $_->{ratio} } @rounds),
        http => summary(map { $_->{http} } @rounds),
        base => summary(map { $_->{base} } @rounds) };
}

sub summary {
    my (@results) = @_;
    my %cpu = map {
        my $kind = $_;
        ($kind => median(map { $_->{cpu}{$kind} } @results))
    } keys %{ $results[0]{cpu} };
    return { rate => median(map { $_->{rate} } @results), cpu => \%cpu };
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    my $half = int @sorted / 2;
    return @sorted % 2 ? $sorted[$half]
        : ($sorted[ $half - 1 ] + $sorted[$half]) / 2;
}

# The medians of the lower and of the upper half.
sub quartiles {
    my @sorted = sort { $a <=> $b } @_;
    my $half = int((@sorted + 1) / 2);
    return (median(@sorted[ 0 .. $half - 1 ]), median(@sorted[ -$half .. -1 ]));
}

# --- The two cases --------------------------------------------------------------

# A case: the request of wrk, the statement of pgbench, its name in the module.
sub create_thread_case {
    my ($work) = @_;
    return {
        name => 'create_thread',
        wrk  => [ '-s', root() . '/t/bench/create_thread.lua',
            $work->{server}->url . '/threads' ],
        # Ids as the module makes them: the time, then a unique part, so
        # that both fill the index at its end.
        script => "\\set n :n + 1\n"
            . "\\set id 1000000000000000000 + :n * 64 + :client_id\n"
            . statement('create_thread', ':deployment',
                '(:time_part::text || :id::text)::uuid', ':if_exists', ':body', 'null'),
        define => sub { (n => 0, if_exists => 'raise', body => $BODY,
            time_part => sprintf '%012x7', time * 1000) },
    };
}

# A run has created the thread and its state of two messages.
sub get_state_case {
    my ($work) = @_;
    my $client = BenchHttp->new($work->{server}->port);
    my $thread = read_id($client->call(request('POST', '/threads', $BODY)),
        'thread_id');
    my $run = read_id($client->call(request('POST', "/threads/$thread/runs",
        '{"assistant_id":"agent","input":{"messages":'
            . '[{"role":"user","content":"hello"}]}}')), 'run_id');
    $client->call(request('GET', "/threads/$thread/runs/$run/join"));
    my $script = statement('get_state', ':deployment', ':thread', 'null', '262144', 'null');
    check_state($work->{server}, $client, $thread, $script);
    return {
        name => 'get_state',
        wrk  => [ $work->{server}->url . "/threads/$thread/state" ],
        script => $script,
        define => sub { (thread => $thread) },
    };
}

sub read_id {
    my ($answer, $name) = @_;
    my ($id) = $answer->{bytes} =~ /"$name"\s*:\s*"([0-9a-f-]{36})"/;
    die "no $name in: $answer->{bytes}\n" if $answer->{status} != 200 || !$id;
    return $id;
}

# Both sides must return the same text, with both messages.
sub check_state {
    my ($server, $client, $thread, $script) = @_;
    my $answer = $client->call(request('GET', "/threads/$thread/state"));
    my $body = substr $answer->{bytes}, $answer->{body_at};
    die "not a state of two messages: $body\n"
        if $body !~ /"values"\s*:\s*\{"messages":\[\{"type":"human",
            [^][]*(?:\[\][^][]*)*\},\{"type":"ai",/x;
    my %value = (deployment => $DEPLOYMENT, thread => $thread);
    $script =~ s/(?<!:):(\w+)/'$value{$1}'/g;
    $script =~ s/;\s*\z//;
    $script =~ s/\Aselect code, body, cursor/select code || body/;
    $server->sql($script) eq "ok$body" or die "httpd and SQL differ: $body\n";
    return;
}

# A statement of the module as pgbench takes it: values by name.
sub statement {
    my ($id, @values) = @_;
    my $source = join '', map { slurp($_) } glob root() . '/mod_agent/model/*.c';
    my ($count, $strings) = $source =~ /"agent_\Q$id\E",\s*\.params\ =\ (\d+),
        [^"]*\.sql\ =\s*((?:"[^"]*"\s*)+)\}/x
        or die "mod_agent/model has no statement $id\n";
    die "$id takes $count values\n" if $count != @values;
    my $sql = join '', $strings =~ /"([^"]*)"/g;
    $sql =~ s/\$(\d+)/$values[$1 - 1]/g;
    return "$sql;\n";
}

# --- The load generators --------------------------------------------------------

# {rate, cpu}: requests per second, and the processor time of one by role.
# {cut}: requests lost with their connections, in cases with allows_cuts. is_get: of a
# script that sends BENCH_BODY.
sub run_wrk {
    my ($work, $case) = @_;
    my $before = $work->{server}->cpu;
    local $ENV{BENCH_BODY} = $BODY;
    delete $ENV{BENCH_BODY} if $case->{is_get};
    my $output = run_tool('wrk', '-t', 2, '-c', $CONNECTIONS, '-d',
        "$work->{round_sec}s", @{ $case->{wrk} });
    my ($cut) = $output =~ /Socket errors: connect 0, read (\d+), write 0,/;
    die "requests failed:\n$output" if $output =~ /Non-2xx/
        || ($output =~ /Socket errors/ && !($case->{allows_cuts} && $cut));
    my ($count) = $output =~ /(\d+) requests in/;
    my ($rate) = $output =~ m{Requests/sec:\s+([\d.]+)};
    die "wrk:\n$output" if !$rate;
    return { rate => $rate, cut => $cut // 0,
        cpu => $work->{server}->cpu_usec_each($before, $count) };
}

sub run_pgbench {
    my ($work, $case) = @_;
    my $script = "$work->{dir}/$case->{name}.sql";
    write_file($script, $case->{script});
    my %define = (deployment => $DEPLOYMENT, $case->{define}->());
    my $sessions = $work->{server}->sessions;
    my $before = $work->{server}->cpu;
    my $output = run_tool(bin('pgbench'), '--no-vacuum', '-M', 'prepared',
        '-c', $CONNECTIONS, '-j', 2, '-T', $work->{round_sec}, '-f', $script,
        (map { ('-D', "$_=$define{$_}") } sort keys %define),
        $work->{server}->conninfo);
    my ($count) = $output =~ /actually processed: (\d+)/;
    my ($rate) = $output =~ /tps = ([\d.]+)/;
    die "pgbench:\n$output"
        if !$rate || $output !~ /failed transactions: 0 /;
    $work->{server}->wait_for_sessions($sessions);
    my $cpu = $work->{server}->cpu_usec_each($before, $count);
    check_rows($work->{server}, $define{time_part}, $count) if $define{time_part};
    return { rate => $rate, cpu => $cpu };
}

# pgbench does not check the code of the result, so its rows are counted. Only
# its own: httpd may still serve connections that wrk has closed.
sub check_rows {
    my ($server, $time_part, $count) = @_;
    my $made = $server->sql("select count(*) from agent.threads where deployment_id = '$DEPLOYMENT' "
        . "and thread_id between '${time_part}1000000000000000000' and '${time_part}1000000009999999999'");
    die "$count statements made $made threads\n" if $made != $count;
    return;
}

sub bin {
    my ($name) = @_;
    chomp(my $dir = qx(pg_config --bindir));
    return "$dir/$name";
}

sub run_tool {
    my (@command) = @_;
    $child = open(my $tool, '-|') // die "fork: $!\n";
    if (!$child) {
        open STDERR, '>&', \*STDOUT;
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    my $output = do { local $/; <$tool> };
    my $ended = close $tool;
    $child = undef;
    die "@command:\n$output" if !$ended;
    return $output;
}

END { kill TERM => $child if $child }

1;
