# SPDX-License-Identifier: Apache-2.0
# POST /runs/cancel: by ids and by status. On a separate database, because a
# status selects all runs of the deployment.
use strict;
use warnings;
use AgentTest::Client qw(run_path);
use AgentTest::Database;
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;

my $server = AgentTest::Server->new;
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub cancel { my ($body, $query) = @_; return $client->post('/runs/cancel' . ($query // ''), $body) }
sub statuses { return [ map { $client->get(run_path($_))->{json}{status} // 'gone' } @_ ] }

# A thread with a run that executes and others that wait for it.
sub busy_thread {
    my $thread = $client->new_thread;
    my @runs = map { $client->create_run($thread, 'sleep 60000', multitask_strategy => 'enqueue') } 1 .. 3;
    wait_for('the first run to execute', sub {
        poll("select state = 'leased' from agent.run_queue where run_id = '$runs[0]{run_id}'") eq 't' });
    return ($thread, @runs);
}

sub by_ids {
    my ($runs, $query) = @_;
    return cancel({ thread_id => $runs->[0]{thread_id}, run_ids => [ map { $_->{run_id} } @$runs ] }, $query);
}

my ($thread, @runs) = busy_thread();
my $answer = by_ids([ @runs[ 1, 2 ] ]);
is $answer->{status}, 204, 'cancel many: runs of a thread by id are 204';
is $answer->{body} // '', '', 'cancel many: the response has no body';
is_deeply statuses(@runs), [qw(pending interrupted interrupted)], 'cancel many: only the named runs are interrupted';
my $refused = by_ids([@runs], '?reason=x');
is $refused->{status}, 422, 'cancel many: a reason is 422';
is $refused->{json}{detail}, 'Query parameter reason: expected none: it is that of one run.', 'cancel many: the detail says why a reason is refused';
is by_ids([@runs])->{status}, 204, 'cancel many: finished runs among them are accepted';
$client->join_run($_) for @runs;
is_deeply statuses(@runs), [ ('interrupted') x 3 ], 'cancel many: an executing run is interrupted';
is cancel({ thread_id => uc $thread, run_ids => [ uc $runs[0]{run_id} ] })->{status}, 204, 'cancel many: ids may be in upper case';

($thread, @runs) = busy_thread();
is by_ids(\@runs, '?action=rollback')->{status}, 204, 'cancel many: action=rollback is accepted';
wait_for('the runs to be removed', sub { "@{ statuses(@runs) }" eq 'gone gone gone' });
pass 'cancel many: rollback removes the runs';
is $client->get("/threads/$thread")->{json}{status}, 'idle', 'cancel many: rollback leaves the thread idle';

# ---- by status ----
my @all = (busy_thread(), busy_thread());
my @executing = grep { ref } @all[ 1, 5 ];
my @waiting = grep { ref } @all[ 2, 3, 6, 7 ];
is cancel({ status => 'pending' })->{status}, 204, 'cancel many: status pending is accepted';
is_deeply statuses(@waiting), [ ('interrupted') x 4 ], 'cancel many: status pending interrupts all queued runs';
is_deeply statuses(@executing), [ ('pending') x 2 ], 'cancel many: status pending does not affect executing runs';
is cancel({ status => 'running' })->{status}, 204, 'cancel many: status running is accepted';
$client->join_run($_) for @executing;
is_deeply statuses(@executing), [ ('interrupted') x 2 ], 'cancel many: status running interrupts executing runs';
@all = grep { ref } busy_thread();
is cancel({ status => 'all' }, '?action=rollback')->{status}, 204, 'cancel many: status all with rollback is accepted';
wait_for('the runs to be removed', sub { "@{ statuses(@all) }" eq 'gone gone gone' });
pass 'cancel many: status all with rollback removes queued and executing runs';

# ---- more runs than one transaction cancels ----
($thread, @runs) = busy_thread();
push @runs, map { $client->create_run($thread, 'Hello', multitask_strategy => 'enqueue') } 1 .. 110;
is by_ids([ @runs[ 13 .. 112 ] ])->{status}, 204, 'cancel many: a hundred ids are accepted';
is_deeply statuses(@runs[ 12, 13, 112 ]), [qw(pending interrupted interrupted)], 'cancel many: all of a hundred runs are interrupted, and no other';
push @runs, map { $client->create_run($thread, 'Hello', multitask_strategy => 'enqueue') } 1 .. 110;
my $new = $client->create_run($thread, 'Hello', multitask_strategy => 'interrupt');
is_deeply statuses(@runs[ 1, 113, 222 ]), [ ('interrupted') x 3 ], 'a run that interrupts more than a hundred runs is created when all are interrupted';
$client->join_run($_) for $runs[0], $new;
is_deeply statuses($runs[0], $new), [qw(interrupted success)], 'a run that interrupts more than a hundred runs is executed after the executing one';

# ---- more bytes than one transaction cancels ----
sub large_runs { return map { $client->create_run($_[0], 'x' x 2_000_000, multitask_strategy => 'enqueue') } 1 .. 5 }

($thread, @runs) = busy_thread();
my @large = large_runs($thread);
is by_ids(\@large)->{status}, 204, 'cancel many: ids of 10 MB are accepted';
is_deeply statuses(@large), [ ('interrupted') x 5 ], 'cancel many: all of 10 MB are interrupted';

# A client that enqueues a run as fast as a transaction ends runs.
@large = large_runs($thread);
sql("create function agent.enqueue() returns trigger language plpgsql as \$\$ begin
        perform agent.create_run('00000000-0000-0000-0000-000000000001', '$thread', gen_random_uuid(), gen_random_uuid(), 'agent', '{agent}',
            'enqueue', '', null, null, '{\"metadata\": {\"is\": \"later\"}, \"input\": {\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}}');
        return null; end \$\$;
    create trigger enqueue after insert on agent.usage_events for each statement execute function agent.enqueue()");
$new = $client->create_run($thread, 'Hello', multitask_strategy => 'interrupt');
sql('drop trigger enqueue on agent.usage_events; drop function agent.enqueue()');
is_deeply statuses(@large), [ ('interrupted') x 5 ], 'a run that interrupts runs of 10 MB ends all';
my @later = map { { thread_id => $thread, run_id => $_ } }
    sql("select run_id from agent.runs where metadata ->> 'is' = 'later' order by thread_seq");
cmp_ok scalar @later, '>', 2, 'runs that are created between the transactions of an interrupting run exist';
$client->join_run($_) for @later, $new;
is_deeply statuses(@later, $new), [ ('success') x (@later + 1) ], 'are executed';

# ---- nothing to cancel, and bad requests ----
my $none = cancel({ status => 'all' });
is $none->{status}, 404, 'cancel many: 404 when no run has the status';
is $none->{json}{code}, 'run_not_found', 'cancel many: the code for no run is run_not_found';
my $id = '01890000-0000-7000-8000-000000000000';
is cancel({ thread_id => $id, run_ids => [$id] })->{status}, 404, 'cancel many: unknown ids are 404';
for my $case (
    [ {}, '/' ], [ { thread_id => $id }, '/' ], [ { run_ids => [$id] }, '/' ],
    [ { status => 'all', thread_id => $id, run_ids => [$id] }, '/' ],
    [ { status => 'all', run_ids => [$id] }, '/' ],
    [ { status => 'some' }, '/status' ], [ { thread_id => 'x', run_ids => [$id] }, '/thread_id' ],
    [ { thread_id => $id, run_ids => [] }, '/run_ids' ], [ { thread_id => $id, run_ids => $id }, '/run_ids' ],
    [ { thread_id => $id, run_ids => [ $id, 7 ] }, '/run_ids/1' ],
    [ { thread_id => $id, run_ids => [ ($id) x 1001 ] }, '/run_ids' ], [ [], '/' ],
) {
    my ($body, $pointer) = @$case;
    my $refused = cancel($body);
    my $shown = encode_json($body) =~ s/.{40}\K.*/.../r;
    is $refused->{status}, 422, "cancel many: $shown is 422";
    like $refused->{json}{detail}, qr/\A\Q$pointer\E: expected/, "cancel many: the detail of $shown points at $pointer";
}
is cancel({ status => 'all' }, '?action=stop')->{status}, 422, 'cancel many: an unknown action is 422';
is cancel('{')->{status}, 400, 'cancel many: a body that is not JSON is 400';

undef $server;
done_testing;
