# SPDX-License-Identifier: Apache-2.0
# Memory of httpd's children, the supervisor and the runner after a growing number
# of requests of every kind. Growth between the last two measurements is a leak:
# memory kept per thread or connection is allocated long before.
package BenchMemory;
use strict;
use warnings;
use AgentTest::Wait;
use BenchHttp qw(request drive);
use Exporter 'import';

our @EXPORT_OK = qw(measure_memory);

my $CONNECTIONS = 16;
my $UNKNOWN = '01890000-0000-7000-8000-000000000000';

# The life of a thread, with every operation of the API and some errors: [expected
# status, method, path, body, id to keep].
my @STEPS = (
    [ 200, 'POST', '/threads', '{"metadata":{"purpose":"benchmark"}}',
        'thread_id' ],
    [ 200, 'GET', '/threads/{thread_id}' ],
    [ 200, 'POST', '/threads/{thread_id}/runs', run('hello'), 'run_id' ],
    [ 200, 'GET', '/threads/{thread_id}/runs/{run_id}' ],
    [ 200, 'GET', '/threads/{thread_id}/runs/{run_id}/join' ],
    [ 200, 'GET', '/threads/{thread_id}/state', undef, 'checkpoint_id' ],
    [ 200, 'GET', '/threads/{thread_id}/state/{checkpoint_id}' ],
    [ 200, 'GET', '/threads/{thread_id}/runs?limit=5&status=success' ],
    [ 200, 'GET', '/threads/{thread_id}/runs/{run_id}/stream' ],
    [ 200, 'POST', '/threads/{thread_id}/runs/stream', run('use clock {}') ],
    [ 200, 'POST', '/threads/{thread_id}/runs', run('sleep 60000'), 'run_id' ],
    [ 409, 'POST', '/threads/{thread_id}/runs', run('busy') ],
    [ 204, 'POST', '/threads/{thread_id}/runs/{run_id}/cancel?wait=1' ],
    [ 204, 'DELETE', '/threads/{thread_id}/runs/{run_id}' ],
    [ 422, 'POST', '/threads/{thread_id}/runs', '{"assistant_id":17}' ],
    [ 400, 'POST', '/threads/{thread_id}/runs', '{"assistant_id":"agent",' ],
    [ 404, 'GET', "/threads/$UNKNOWN/state" ],
    [ 200, 'GET', '/ok?check_db=1' ],
    [ 200, 'GET', '/info' ],
    [ 204, 'DELETE', '/threads/{thread_id}' ],
);

sub run {
    my ($text) = @_;
    return '{"assistant_id":"agent","input":{"messages":[{"role":"user",'
        . qq("content":"$text"}]}});
}

# [{requests, of => {httpd => {pss, private}, ...}}, ...], one for each number
# of requests of the plan, measured when the server is idle.
sub measure_memory {
    my ($server, $plan) = @_;
    my @clients = map { BenchHttp->new($server->port) } 1 .. $CONNECTIONS;
    my @lives = map { { step => 0 } } @clients;
    my $processes = identity($server);
    my ($done, @samples) = (0);
    for my $target (@{ $plan->{memory_requests} }) {
        drive(\@clients, sub {
            my ($index, $answer) = @_;
            my $life = $lives[$index];
            check_answer($life, $answer) if $answer;
            return if $life->{step} == 0 && $done >= $target;
            $done++;
            return next_request($life);
        });
        wait_for('no run to be left', sub {
            $server->sql('select count(*) from agent.run_queue') == 0
        });
        identity($server) eq $processes or die "a process was replaced\n";
        push @samples, { requests => $target, of => $server->memory };
    }
    return \@samples;
}

sub next_request {
    my ($life) = @_;
    my (undef, $method, $path, $body) = @{ $STEPS[ $life->{step} ] };
    $path =~ s/\{(\w+)\}/$life->{$1}/g;
    return request($method, $path, $body);
}

sub check_answer {
    my ($life, $answer) = @_;
    my ($status, $method, $path, undef, $id) = @{ $STEPS[ $life->{step} ] };
    die "$method $path was answered:\n$answer->{bytes}\n"
        if $answer->{status} != $status;
    if ($id) {
        ($life->{$id}) = $answer->{bytes} =~ /"$id"\s*:\s*"([0-9a-f-]{36})"/
            or die "no $id in: $answer->{bytes}\n";
    }
    $life->{step} = ($life->{step} + 1) % @STEPS;
    return;
}

# The process ids, to detect a process that was replaced.
sub identity {
    my ($server) = @_;
    my $of = $server->processes;
    return join ' ', map { ($_, sort @{ $of->{$_} }) } qw(httpd supervisor runner);
}

1;
