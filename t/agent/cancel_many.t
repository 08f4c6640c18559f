# SPDX-License-Identifier: Apache-2.0
# POST /runs/cancel: by ids and by status. On a database of its own, because a
# status means all runs that there are.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Database;
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my $server = AgentTest::Server->new;
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

sub cancel { my ($body, $query) = @_; return $client->post('/runs/cancel' . ($query // ''), $body) }
sub statuses { return [ map { $client->get(AgentTest::Client::run_path($_))->{json}{status} // 'gone' } @_ ] }

# A thread with a run that executes and others that wait for it.
sub busy_thread {
    my $thread = $client->create_thread->{thread_id};
    my @runs = map { $client->create_run($thread, 'sleep 60000', multitask_strategy => 'enqueue') } 1 .. 3;
    wait_for('the first one to execute', sub {
        sql("select state = 'leased' from agent.run_queue where run_id = '$runs[0]{run_id}'") eq 't' });
    return ($thread, @runs);
}

sub by_ids {
    my ($runs, $query) = @_;
    return cancel({ thread_id => $runs->[0]{thread_id}, run_ids => [ map { $_->{run_id} } @$runs ] }, $query);
}

my ($thread, @runs) = busy_thread();
my $answer = by_ids([ @runs[ 1, 2 ] ]);
is $answer->{status}, 204, 'runs of a thread are cancelled by their ids';
is $answer->{body} // '', '', 'with nothing to say';
is_deeply statuses(@runs), [qw(pending interrupted interrupted)], 'those, and no other';
is by_ids([@runs])->{status}, 204, 'with those that have ended already';
$client->join_run($_) for @runs;
is_deeply statuses(@runs), [ ('interrupted') x 3 ], 'a run that executes stops too';
is cancel({ thread_id => uc $thread, run_ids => [ uc $runs[0]{run_id} ] })->{status}, 204, 'ids may be of any case';

($thread, @runs) = busy_thread();
is by_ids(\@runs, '?action=rollback')->{status}, 204, 'rollback is an action';
wait_for('them to be gone', sub { "@{ statuses(@runs) }" eq 'gone gone gone' });
pass 'that removes the runs';
is $client->get("/threads/$thread")->{json}{status}, 'idle', 'and leaves the thread idle';

# ---- by status ----
my @all = (busy_thread(), busy_thread());
my @executing = grep { ref } @all[ 1, 5 ];
my @waiting = grep { ref } @all[ 2, 3, 6, 7 ];
is cancel({ status => 'pending' })->{status}, 204, 'status pending means runs that have not begun';
is_deeply statuses(@waiting), [ ('interrupted') x 4 ], 'all of them';
is_deeply statuses(@executing), [ ('pending') x 2 ], 'and none that executes';
is cancel({ status => 'running' })->{status}, 204, 'status running those that execute';
$client->join_run($_) for @executing;
is_deeply statuses(@executing), [ ('interrupted') x 2 ], 'they stop';
@all = grep { ref } busy_thread();
is cancel({ status => 'all' }, '?action=rollback')->{status}, 204, 'status all means both';
wait_for('them to be gone', sub { "@{ statuses(@all) }" eq 'gone gone gone' });
pass 'with either action';

# ---- nothing to cancel, and bad requests ----
my $none = cancel({ status => 'all' });
is $none->{status}, 404, 'nothing to cancel is 404';
is $none->{json}{code}, 'run_not_found', 'with its code';
my $id = '01890000-0000-7000-8000-000000000000';
is cancel({ thread_id => $id, run_ids => [$id] })->{status}, 404, 'unknown runs too';
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
    is $refused->{status}, 422, 'a bad body is refused';
    like $refused->{json}{detail}, qr/\A\Q$pointer\E: expected/, "at $pointer";
}
is cancel({ status => 'all' }, '?action=stop')->{status}, 422, 'an unknown action is refused';
is cancel('{')->{status}, 400, 'what is not JSON is 400';

undef $server;
done_testing;
