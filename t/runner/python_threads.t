# SPDX-License-Identifier: Apache-2.0
# The Python runner: the threads of plain functions, of which no run takes all, and those that a run leaves behind.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);
use PythonRunner qw(python in_all_versions);
use RunnerTest qw(lines_of events_of);
use Test::More;

# With so many slots the process has 68 threads, and as many again for those that are lost.
use constant SLOTS => 3;
use constant SHARE => 33;
use constant LOST  => 68;

my $CUSTOM = { stream_modes => ['custom'] };

sub make_pipe {
    my $path = tempdir(CLEANUP => 1) . '/pipe';
    mkfifo($path, oct 600) or die "$path: $!\n";
    return $path;
}

sub runner { return PythonRunner->new(graphs => [qw(crowd forks nests plain seizes)], slots => SLOTS, @_) }

# A run of $n functions that wait for the pipe, of which $at_once have begun.
sub start_crowd {
    my ($runner, $pipe, $n, $at_once) = @_;
    my $start = $runner->start_of('crowd', input => { do => $pipe, n => $n }, %{$CUSTOM});
    $runner->send($start);
    $runner->lines_until(sub { ($_[0]{data} // '') eq 'holding' && $_[0]{run_id} eq $start->{run_id} && --$at_once == 0 });
    return $start;
}

# Runs that are cancelled while their functions wait, until so many threads are lost.
sub lose {
    my ($runner, $pipe, @counts) = @_;
    my @runs;
    for my $count (@counts) {
        my $start = start_crowd($runner, $pipe, $count, $count);
        $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
        is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'interrupted', "a run with $count functions that do not return is cancelled";
        push @runs, $start->{run_id};
    }
    return @runs;
}

# The answer to a ping.
sub pong {
    my ($runner, $id) = @_;
    $runner->send({ type => 'ping', id => $id });
    return ($runner->lines_until(sub { $_[0]{type} eq 'pong' }))[-1];
}

sub status { my ($runner, %input) = @_; return ($runner->run(graph_id => 'plain', input => {%input}))[-1]{status} }

# The output of a case of executor_cases.py.
sub found {
    my ($case) = @_;
    open my $out, '-|', 'timeout', '-s', 'KILL', '60', python(), "$FindBin::Bin/executor_cases.py", $case or die "python: $!\n";
    chomp(my @lines = <$out>);
    close $out;
    return join "\n", @lines;
}

subtest 'the executor gives each function a thread, or an error' => sub {
    is found('recover'), 'requests: [True, False]', 'a request for another process is withdrawn when threads return';
    is found('refuse'), 'values: True 0 1 2 3 4 refused: True', 'functions for which no thread can be started wait for one that executes another';
    is found('refuse_first'), qq{first: [RuntimeError("can't start new thread")]}, 'without any thread a function fails';
    is found('refuse_lost'), 'values: True 2 refused: True', 'when the only threads execute code of runs that have ended, the process ends unless they return';
    is found('meet'), 'values: True 2 3 calls: 2 3', 'a thread that becomes free while another one cannot be started executes the function once';
    is found('interrupt'), "value: 0\nvalue: 1", 'a thread without a function in which another one raises an exception executes the next';
    is found('storm'), 'ended: True busy: 0 0 0 owners: 0 turns: 0 idle: True threads: True',
        'exceptions that other threads raise at any instruction, 2,000 of them, leave each function with a result and each thread free';
    is found('fork'), 'status: 2', 'a forked process ends with its function, whatever locks other threads of its parent have held';
    is found('stacks'), 'stacks in MiB: 4 x 8, 1 x 2', 'threads have large stacks as far as half of the memory has room for them';
    like found('block'), qr/^log: agent runner: runs wait for threads, .*: 33 execute and 1 wait of run blocked of graph graph$/,
        'the log names a run whose functions wait for each other';
};

in_all_versions(sub {
    my (undef, $version) = @_;
    my @version = $version eq 'newest' ? () : (version => $version);

    subtest 'a run with more functions than threads leaves some for the others' => sub {
        my $runner = runner(@version);
        my $pipe = make_pipe();
        my $first = start_crowd($runner, $pipe, 140, SHARE);
        is status($runner), 'success', 'another run is executed beside it';
        my $second = start_crowd($runner, $pipe, 140, (SHARE + 1) / 2);
        is status($runner), 'success', 'another run is executed beside two of them';
        open my $opened, '+<', $pipe or die "$pipe: $!\n";
        my %left = map { $_->{run_id} => 1 } $first, $second;
        my @lines;
        # No more than a pipe holds.
        syswrite $opened, 'x' x 280;
        $runner->lines_until(sub { push @lines, $_[0]; delete $left{ $_[0]{run_id} } if $_[0]{type} eq 'end'; return !%left });
        is_deeply [ map { $_->{status} } lines_of('end', @lines) ], [ ('success') x 2 ], 'all of its functions are executed in the end';
        close $opened;
    };

    subtest 'an endless recursion through C is an error of its run alone' => sub {
        my $runner = runner(@version);
        my $pipe = make_pipe();
        my $beside = start_crowd($runner, $pipe, 1, 1);
        for my $place (qw(sorted pydantic)) {
            my $end = ($runner->run(graph_id => 'plain', input => { do => "recurse in $place" }))[-1];
            is "$end->{status} $end->{error}{error}", 'error RecursionError', "$place: the run ends with the error";
        }
        open my $opened, '+<', $pipe or die "$pipe: $!\n";
        syswrite $opened, 'x';
        is +($runner->lines_of_run($beside->{run_id}))[-1]{status}, 'success', 'a run beside them goes on';
        close $opened;
    };

    subtest 'a process without descriptors asks for another one' => sub {
        for my $do ('leave files open', 'lower the limit') {
            my $runner = runner(@version);
            is status($runner), 'success', 'a run leaves none open';
            ok !pong($runner, 1)->{spent}, 'the process goes on';
            is status($runner, do => $do), 'success', "$do: the run goes on";
            is pong($runner, 2)->{spent}, Cpanel::JSON::XS::true, "$do: pong says spent";
            like $runner->log_text, qr/almost all descriptors are in use at the end of run \S+ of graph plain/, "$do: the log names the run";
        }
    };

    subtest 'code of a graph does not replace the threads and tasks of other runs' => sub {
        my $runner = runner(@version);
        my $start = $runner->start_of('seizes', input => {});
        $runner->send($start);
        is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'success', 'the run goes on';
        for my $call (qw(set_default_executor shutdown_default_executor set_task_factory)) {
            like $runner->log_text, qr/^(?:run \S+: )?agent runner: $call\(\) in code of run $start->{run_id} of graph seizes is ignored/m,
                "$call: the log names the run";
        }
        ok start_crowd($runner, make_pipe(), SHARE, SHARE), 'another run has as many threads as before';
    };

    subtest 'a process that a function forks executes no other one' => sub {
        my $runner = runner(@version);
        for my $case ([ 'forks', 'return' ], [ 'forks', 'raise' ], [ 'nests', 'return' ], [ 'nests', 'raise' ]) {
            my ($graph, $do) = @{$case};
            my $path = tempdir(CLEANUP => 1) . '/calls';
            my @lines = $runner->run(graph_id => $graph, input => { do => $do, path => $path, n => 40 });
            is_deeply [ sort { $a <=> $b } @{ (lines_of('checkpoint', @lines))[-1]{values}{results} } ], [ (0) x 39, 2 ], "$graph, $do: it ends";
            open my $calls, '<', $path or die "$path: $!\n";
            is_deeply [ sort { $a <=> $b } map { $_ + 0 } <$calls> ], [ 0 .. 39 ], "$graph, $do: each function is executed once";
            close $calls;
        }
    };

    subtest 'threads of runs that have ended are replaced' => sub {
        my $runner = runner(@version);
        my $pipe = make_pipe();
        is status($runner, do => 'report soon'), 'success', 'the runner reports soon';
        # One after the other, as users do who stop a tool that hangs.
        my ($first) = lose($runner, $pipe, (1) x 4, LOST / 2 - 4);
        $runner->wait_for_io while $runner->log_text !~ /threads execute code of runs that have ended/;
        like $runner->log_text, qr/^agent runner: \d+ threads? .*: 1 of run $first of graph crowd/m, 'the log names a run';
        ok !pong($runner, 1)->{spent}, 'the process is not replaced for half of those that it can replace';
        lose($runner, $pipe, 1);
        $runner->wait_for_io while $runner->log_text !~ /should get no more runs/;
        is pong($runner, 2)->{spent}, Cpanel::JSON::XS::true, 'pong says spent when more threads are lost';
        lose($runner, $pipe, SHARE, SHARE);
        is status($runner), 'success', 'runs are executed nevertheless';
        open my $opened, '+<', $pipe or die "$pipe: $!\n";
        syswrite $opened, 'x' x (LOST + SHARE);
        ok start_crowd($runner, make_pipe(), SHARE, SHARE), 'threads that return are used again';
        close $opened;
    };

    subtest 'threads of many runs that return soon do not make the process ask for another' => sub {
        my $runner = runner(@version);
        my $pipe = make_pipe();
        lose($runner, $pipe, SHARE, SHARE, 2);
        ok !pong($runner, 1)->{spent}, 'no replacement is asked for before a line of the log has named them';
        is status($runner, do => 'report soon'), 'success', 'the runner reports soon';
        lose($runner, make_pipe(), 1);
        open my $opened, '+<', $pipe or die "$pipe: $!\n";
        syswrite $opened, 'x' x (2 * SHARE + 2);
        ok start_crowd($runner, make_pipe(), SHARE, SHARE), 'the threads are used again';
        ok !pong($runner, 2)->{spent}, 'pong does not say spent after the threads have returned';
        close $opened;
    };

    subtest 'a request for another process is taken back before it was sent' => sub {
        my $runner = runner(@version);
        my $pipe = make_pipe();
        is status($runner, do => 'report soon'), 'success', 'the runner reports soon';
        lose($runner, $pipe, SHARE, 2);
        $runner->wait_for_io while $runner->log_text !~ /should get no more runs/;
        open my $opened, '+<', $pipe or die "$pipe: $!\n";
        syswrite $opened, 'x' x (SHARE + 2);
        $runner->wait_for_io while $runner->log_text !~ /is taken back/;
        ok !pong($runner, 1)->{spent}, 'pong has no request';
        lose($runner, make_pipe(), SHARE, 2);
        $runner->wait_for_io while $runner->log_text !~ /should get no more runs.*should get no more runs/s;
        is pong($runner, 2)->{spent}, Cpanel::JSON::XS::true, 'pong has the next one';
        close $opened;
    };

    subtest 'a process without a thread for a run ends' => sub {
        my $runner = runner(@version);
        my $pipe = make_pipe();
        is status($runner, do => 'report soon'), 'success', 'the runner reports soon';
        lose($runner, $pipe, SHARE, SHARE, LOST - 2 * SHARE, SHARE, 16, 8, 4, 2, (1) x 4);
        is status($runner), 'success', 'with one left, runs are executed';
        lose($runner, $pipe, 1);
        $runner->send($runner->start_of('plain', input => {}));
        is $runner->finish >> 8, 3, 'a runner without threads ends with status 3 when a run waits';
        like $runner->log_text, qr/^agent runner: these threads leave none for other runs: the process ends$/m, 'the log says why';
    };
});

done_testing;
