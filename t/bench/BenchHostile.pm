# SPDX-License-Identifier: Apache-2.0
# The slowdown of a bystander beside one hostile client with valid input, and the
# children's memory afterwards.
#
# Each attack is a process that repeats itself until it is killed, for as long as
# the bystander is measured. Quiet rounds and rounds beside the attack alternate;
# a figure is the median of the rounds' ratios.
package BenchHostile;
use strict;
use warnings;
use AgentTest::Env qw(slurp);
use AgentTest::Wait;
use BenchHttp qw(request);
use BenchProcess qw(memory_kb);
use BenchRates qw(median);
use BenchRuns qw(at call_200 create_and_join make_threads timed_ms);
use BenchServer;
use Exporter 'import';
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(sleep);

our @EXPORT_OK = qw(measure_hostile);

# As the quick start has it.
my $CONFIG = <<'CONF';
LogLevel warn agent:warn
StartServers 2
ServerLimit 6
ThreadsPerChild 64
MinSpareThreads 1
MaxSpareThreads 128
MaxRequestWorkers 128
AsyncRequestWorkerFactor 160
MaxConnectionsPerChild 0
MaxKeepAliveRequests 0
DBDMax 16
CONF

my $BODY_BYTES = 4_000_000;
my $SLOW_CLIENTS = 300;
my $SLOW_BYTES_SEC = 600;
my $STALLED_READERS = 100;
my $LARGE_RUNS = 20;
my $LIST_CLIENTS = 100;
my $LIST_BYTES = 2_000_000;
my $LARGE_STATE_BYTES = 6_000_000;
# As many as there are threads.
my $WARM_UP_CLIENTS = 128;
my $WARM_UP_ROUNDS = 20;
my $RETURN_POLL_SEC = 1;
# GET /ok before each of the bystander's runs: both are spread over the attack.
my $REQUESTS_PER_RUN = 5;

# [title, preparation, attack]. The attack gets the result of the preparation, calls
# its last argument once it has begun, and is killed at the end.
my @ATTACKS = (
    [ 'no client: a busy process on each processor', undef, \&spin ],
    [ 'bodies of 4 MB, one long key over many arrays', undef, sub {
        repeat_post($_[0], '/threads', long_key_body(), $_[2]) } ],
    [ 'bodies of 4 MB, empty objects', undef, sub {
        repeat_post($_[0], '/threads', '{"metadata":{},"x":['
            . join(',', ('{}') x ($BODY_BYTES / 3)) . ']}', $_[2]) } ],
    [ 'bodies of 1 MB in chunks of a byte', undef, \&repeat_chunks ],
    [ 'messages of 100,000 text blocks', undef, \&repeat_blocks ],
    [ 'lists of 20 runs of 4 MB each', sub { make_runs($_[0], $LARGE_RUNS, $BODY_BYTES) }, sub {
        repeat_get($_[0], "/threads/$_[1]/runs?limit=1000", $_[2]) } ],
    [ '100 lists of 2 MB at once', sub { make_runs($_[0], 1, $LIST_BYTES) }, \&repeat_lists ],
    [ 'runs on threads of 6 MB', \&make_large_threads, \&repeat_large_starts ],
    [ '100 readers of large events that stall', \&make_large_events,
        \&stall_readers ],
    [ '300 bodies at 600 bytes a second', undef, \&send_slowly ],
);

# [{title, ok => {p50, p99}, run => {p50, p99}, memory => ratio}, ...]:
# ratios to the quiet rounds beside them.
sub measure_hostile {
    my (undef, $plan) = @_;
    return [ map {
        my ($title, @attack) = @{$_};
        print {*STDERR} "  beside $title ...\n";
        # An attack that fails does not discard the figures of the others.
        my $result = eval { measure_attack($plan, @attack) } // { failed => $@ };
        warn $result->{failed} if $result->{failed};
        +{ %{$result}, title => $title }
    } @ATTACKS ];
}

# A new server for each attack, so that they do not affect one another.
sub measure_attack {
    my ($plan, $prepare, $attack) = @_;
    my $server = BenchServer->new(config => $CONFIG);
    my $prepared = $prepare ? $prepare->($server) : undef;
    warm_up($server);
    my @threads = make_threads($server,
        (2 * $plan->{hostile_rounds} + 1) * $plan->{hostile_runs});
    my $measure = sub {
        bystander($server, $plan, [ splice @threads, 0, $plan->{hostile_runs} ])
    };
    $measure->();
    my @children = @{ $server->processes->{httpd} };
    my $before = memory_kb(@children)->{private};
    my (%ratios, %quiet, %beside);
    for my $round (1 .. $plan->{hostile_rounds}) {
        my $pid;
        my @sides = (
            sub { %quiet = %{ $measure->() } },
            sub {
                $pid = start_attack($server, $prepared, $attack);
                my $measured = eval { $measure->() };
                my $error = $@;
                # It has a copy of each of our descriptors.
                end_attack($pid);
                %beside = %{ $measured // die $error };
                wait_until_idle($server);
            },
        );
        $_->() for $round % 2 ? @sides : reverse @sides;
        push @{ $ratios{$_} }, $beside{$_} / $quiet{$_} for keys %quiet;
    }
    my $result = { (map { $_ => median(@{ $ratios{$_} }) } keys %ratios),
        memory => memory_after($before, $plan->{hostile_return_sec}, @children) };
    $server->stop;
    return $result;
}

# Uses every thread and every connection to the database, so that the memory that
# each keeps does not count as the attack's.
sub warm_up {
    my ($server) = @_;
    my $bytes = with_close(request('POST', '/threads', '{}'));
    for (1 .. $WARM_UP_ROUNDS) {
        my @sockets = map { open_connection($server->port) } 1 .. $WARM_UP_CLIENTS;
        syswrite $_, $bytes for @sockets;
        for my $socket (@sockets) {
            1 while sysread $socket, my $answer, 65_536;
        }
    }
    return;
}

# The next round must not execute runs of the attack.
sub wait_until_idle {
    my ($server) = @_;
    wait_for('no run to be left', sub {
        $server->sql('select count(*) from agent.run_queue '
            . 'where not_before is null') == 0
    });
    sleep 1;
    return;
}

# {ok_p50, ok_p99, run_p50, run_p99} in milliseconds.
sub bystander {
    my ($server, $plan, $threads) = @_;
    my $client = BenchHttp->new($server->port);
    my %times;
    for my $thread (@{$threads}) {
        push @{ $times{ok} },
            timed_ms(sub { call_200($client, request('GET', '/ok')) })
            for 1 .. $REQUESTS_PER_RUN;
        push @{ $times{run} }, timed_ms(sub { create_and_join($client, $thread) });
    }
    my %figures;
    for my $name (keys %times) {
        my @sorted = sort { $a <=> $b } @{ $times{$name} };
        $figures{"${name}_p50"} = at(0.50, @sorted);
        $figures{"${name}_p99"} = at(0.99, @sorted);
    }
    return \%figures;
}

# Ratio of resident memory to that before, once it has returned, or after some time.
sub memory_after {
    my ($before, $sec, @children) = @_;
    my $ratio = 0;
    eval {
        wait_for('memory to be returned', sub {
            sleep $RETURN_POLL_SEC;
            $ratio = memory_kb(@children)->{private} / $before;
            return $ratio <= 1.2;
        }, $sec);
    };
    return $ratio;
}

# --- Attacks --------------------------------------------------------------------

my %attacks;

sub start_attack {
    my ($server, $prepared, $attack) = @_;
    pipe my $reader, my $writer or die "pipe: $!\n";
    my $port = $server->port;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        close $reader;
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        eval {
            $attack->($port, $prepared,
                sub { syswrite $writer, '.'; close $writer });
            1;
        } or warn "attack: $@";
        # Not exit: the servers are the parent's to stop.
        POSIX::_exit(1);
    }
    close $writer;
    $attacks{$pid} = 1;
    sysread($reader, my $byte, 1) or die "the attack did not begin\n";
    return $pid;
}

sub end_attack {
    my ($pid) = @_;
    local $?;
    kill KILL => $pid;
    waitpid $pid, 0;
    delete $attacks{$pid};
    return;
}

END { end_attack($_) for keys %attacks }

sub open_connection {
    my ($port) = @_;
    return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 10)
        // die "no connection: $!\n";
}

# The server closes the connection after its answer. The client must not close it
# earlier: the server would treat it as disconnected, and its run would go on alone.
sub send_and_read {
    my ($port, $bytes) = @_;
    my $socket = open_connection($port);
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $bytes;
    1 while sysread $socket, my $answer, 1_048_576;
    return;
}

# Shows what sharing the processors costs by itself.
sub spin {
    my (undef, undef, $begun) = @_;
    my @processors = grep { /\Aprocessor\s/ } split /\n/, slurp('/proc/cpuinfo');
    my $parent = $$;
    for (1 .. $#processors) {
        last if !fork // die "fork: $!\n";
    }
    $begun->() if $$ == $parent;
    # The parent is killed at the end of the round.
    1 while $$ == $parent || getppid == $parent;
    return;
}

sub repeat_bytes {
    my ($port, $begun, $bytes) = @_;
    while (1) {
        $begun->();
        $begun = sub { };
        send_and_read($port, $bytes);
    }
    return;
}

sub with_close { return $_[0] =~ s/\r\nHost: /\r\nConnection: close\r\nHost: /r }

sub repeat_post {
    my ($port, $path, $body, $begun) = @_;
    return repeat_bytes($port, $begun, with_close(request('POST', $path, $body)));
}

sub repeat_get {
    my ($port, $path, $begun) = @_;
    return repeat_bytes($port, $begun, with_close(request('GET', $path)));
}

sub long_key_body {
    my $half = $BODY_BYTES / 2;
    return '{"' . 'k' x $half . '":[' . join(',', ('[]') x ($half / 3)) . ']}';
}

sub repeat_chunks {
    my ($port, undef, $begun) = @_;
    my $body = '{"metadata":{"k":"' . 'x' x 1_000_000 . '"}}';
    my $head = "POST /threads HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\nContent-Type: application/json\r\n"
        . "Transfer-Encoding: chunked\r\n\r\n";
    return repeat_bytes($port, $begun, $head
        . join('', map { "1\r\n$_\r\n" } split //, $body) . "0\r\n\r\n");
}

sub message_run {
    my ($content) = @_;
    return '{"assistant_id":"agent","input":{"messages":[{"role":"user",'
        . qq("content":$content}]}});
}

sub repeat_blocks {
    my ($port, undef, $begun) = @_;
    return repeat_post($port, '/runs/wait',
        message_run('[' . join(',', ('"a"') x 100_000) . ']'), $begun);
}

sub new_thread {
    my ($server) = @_;
    return (make_threads($server, 1))[0];
}

# Due tomorrow, so that nothing executes them.
sub make_runs {
    my ($server, $count, $bytes) = @_;
    my $thread = new_thread($server);
    my $client = BenchHttp->new($server->port);
    my $body = '{"assistant_id":"agent","multitask_strategy":"enqueue",'
        . '"after_seconds":86400,"input":{"x":"' . 'x' x $bytes . '"}}';
    call_200($client, request('POST', "/threads/$thread/runs", $body))
        for 1 .. $count;
    return $thread;
}

# All clients send their requests before the first response is read.
sub repeat_lists {
    my ($port, $thread, $begun) = @_;
    my $bytes = with_close(request('GET', "/threads/$thread/runs"));
    while (1) {
        my @clients = map { open_connection($port) } 1 .. $LIST_CLIENTS;
        syswrite $_, $bytes for @clients;
        $begun->();
        $begun = sub { };
        for my $client (@clients) {
            1 while sysread $client, my $answer, 1_048_576;
        }
    }
    return;
}

# Threads whose state has a message of this size.
sub make_large_threads {
    my ($server) = @_;
    my $client = BenchHttp->new($server->port);
    my $part = '"' . 'x' x ($LARGE_STATE_BYTES / 2) . '"';
    my @threads = make_threads($server, $LARGE_RUNS);
    for my $thread (@threads) {
        call_200($client, request('POST', "/threads/$thread/runs/wait",
            message_run($part)));
    }
    return \@threads;
}

sub repeat_large_starts {
    my ($port, $threads, $begun) = @_;
    my @bytes = map { with_close(request('POST', "/threads/$_/runs",
        '{"assistant_id":"agent","multitask_strategy":"rollback","input":'
            . '{"messages":[{"role":"user","content":"sleep 200"}]}}'))
    } @{$threads};
    while (1) {
        for my $bytes (@bytes) {
            send_and_read($port, $bytes);
            $begun->();
            $begun = sub { };
        }
    }
    return;
}

sub make_large_events {
    my ($server) = @_;
    my $thread = new_thread($server);
    my $client = BenchHttp->new($server->port);
    my $made = call_200($client, request('POST', "/threads/$thread/runs",
        message_run('"' . 'x' x 3_000_000 . '"')));
    my ($run) = $made->{bytes} =~ /"run_id"\s*:\s*"([0-9a-f-]{36})"/;
    call_200($client, request('GET', "/threads/$thread/runs/$run/join"));
    return "/threads/$thread/runs/$run/stream";
}

sub stall_readers {
    my ($port, $path, $begun) = @_;
    my $bytes = "GET $path HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: -1\r\n\r\n";
    my @readers = map { open_connection($port) } 1 .. $STALLED_READERS;
    syswrite $_, $bytes for @readers;
    $begun->();
    sleep 3600;
    return;
}

sub send_slowly {
    my ($port, undef, $begun) = @_;
    my $head = "POST /threads HTTP/1.1\r\nHost: localhost\r\n"
        . "Content-Type: application/json\r\nContent-Length: $BODY_BYTES\r\n\r\n";
    my $open = sub {
        my $socket = open_connection($port);
        syswrite $socket, $head;
        return $socket;
    };
    local $SIG{PIPE} = 'IGNORE';
    my @clients = map { $open->() } 1 .. $SLOW_CLIENTS;
    $begun->();
    while (1) {
        for my $client (@clients) {
            $client = $open->() if !syswrite $client, ' ' x ($SLOW_BYTES_SEC / 2);
        }
        sleep 0.5;
    }
    return;
}

1;
