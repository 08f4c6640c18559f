# SPDX-License-Identifier: Apache-2.0
# Calls of tools that never reply, and the calls of other runs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use HostileServer;
use RunnerTest qw(graph human start_line);
use Test::More;

my $silent = HostileServer->new;
my $other = HostileServer->new;
# Its time-out is longer than the test waits.
my $gate = { %{ $silent->tool('gate') }, timeout_ms => 600_000 };
my %graphs = (
    silent => graph(tools => [$gate]),
    model => graph(model => $silent->model('openai', 'ok')),
    both => graph(tools => [ $gate, $other->tool('page') ]));

# A command that calls tools.
sub calls_of {
    my (@names) = @_;
    my $id = 0;
    return { goto => 'tools', update => { messages => [ { role => 'ai', content => '',
        tool_calls => [ map { { name => $_, args => {}, id => 'c' . ++$id } } @names ] } ] } };
}

# A runner with runs that wait for a silent tool, with at least half of all transfers.
sub flooded_runner {
    my ($count) = @_;
    my $runner = RunnerTest->new(graphs => \%graphs);
    my $before = $silent->count_requests;
    $runner->send(map { start_line(graph_id => 'silent', command => calls_of(('gate') x 16)) } 1 .. $count);
    $silent->wait_requests($before + 128);
    $runner->send({ type => 'ping', id => 1 });
    $runner->lines_until(sub { $_[0]{type} eq 'pong' });
    return $runner;
}

# The statuses of the runs' ends.
sub statuses_of {
    my ($runner, @starts) = @_;
    my %status = map { $_->{run_id} => undef } @starts;
    $runner->send(@starts);
    $runner->lines_until(sub {
        my ($line) = @_;
        $status{ $line->{run_id} } = $line->{status}
            if $line->{type} eq 'end' && exists $status{ $line->{run_id} };
        return !grep { !defined } values %status;
    });
    return [ values %status ];
}

for my $count (16, 90) {
    my $runner = flooded_runner($count);
    is_deeply statuses_of($runner, map { start_line(graph_id => 'model', input => human('Hi')) } 1 .. 10),
        [ ('success') x 10 ], "$count runs with a silent tool: 10 runs with a model at its host end";
}

{
    my $runner = flooded_runner(50);
    my $before = $other->count_requests;
    my $start = start_line(graph_id => 'both', command => calls_of('gate', ('page') x 15));
    $runner->send($start);
    is $other->wait_requests($before + 15), $before + 15,
        'a silent tool: the calls of a run to another host do not wait for it';
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'interrupted', 'a silent tool: a run that waits for it can be cancelled';
}

{
    my $runner = flooded_runner(16);
    my $before = $silent->count_requests;
    my $start = start_line(graph_id => 'silent', command => calls_of(('gate') x 3));
    $runner->send($start);
    $silent->wait_requests($before + 1);
    my @others = map { start_line(graph_id => 'model', input => human('Hi')) } 1 .. 3;
    is_deeply statuses_of($runner, @others), [ ('success') x 3 ],
        'a silent tool: other runs end while its calls wait';
    $silent->release(2000);
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'a silent tool: waiting calls start when others have ended';
    $silent->drain;
}

done_testing;
