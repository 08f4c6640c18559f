# SPDX-License-Identifier: Apache-2.0
# Stateless runs: their thread, its expiry and its deletion.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use List::Util qw(sum);
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
my $worker = $play->worker;
# A statement that waits for a lock which it should not wait for fails.
$session->query("set lock_timeout = '1min'");

sub at { return $session->query("set agent.now = '2030-01-01T$_[0]Z'") }

# How many threads were examined.
sub expire { return scalar $session->query('select agent.expire_threads()') }

# A function that returns a thread again and again is stopped.
sub expire_all {
    my $all = 0;
    for (1 .. 100) {
        my $count = expire() or return $all;
        $all += $count;
    }
    die "expire_threads() does not end\n";
}

sub thread_there { return ($play->api('get_thread', $_[0]))[0] }

# A stateless run that has executed: (thread, run, claim).
sub executed {
    my (%request) = @_;
    my ($thread, $run) = $play->stateless(%request);
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim, messages => [ 'q', 'a' ]),
        AgentSQL::Play::finish($claim));
    return ($thread, $run, $claim);
}

at('12:00:00');

subtest 'a stateless run is created with a new, busy thread in one call' => sub {
    my ($code, $body, $run, $thread) = $play->try_stateless(user => 'u1', request => { input => 'q' });
    is $code, 'ok';
    my $record = AgentSQL::decode($body);
    is $record->{thread_id}, $thread;
    is $record->{run_id}, $run;
    is $record->{status}, 'pending';
    is $record->{multitask_strategy}, 'reject';
    ok $record->{kwargs}{temporary}, 'kwargs.temporary is true';
    is $record->{kwargs}{config}{configurable}{thread_id}, $thread;
    is $record->{kwargs}{config}{configurable}{user_id}, 'u1';
    is $play->thread_status($thread), 'busy';
    is $play->body('find_run_thread', $run), $thread, 'the run names its thread';
    my ($claim) = $play->claim($worker);
    is $claim->{run_id}, $run, 'a stateless run is claimed like any other run';
    is AgentSQL::decode($claim->{start})->{input}, 'q';
    $play->save($worker, AgentSQL::Play::finish($claim));
};

subtest 'the thread of a stateless run is deleted 120 seconds after its end, with all its rows' => sub {
    my ($thread, $run) = executed();
    at('12:01:59');
    expire_all();
    is thread_there($thread), 'ok', 'the thread can be read until then';
    is scalar $play->events($thread, $run), 1;
    is_deeply $play->body('join_run', $thread, $run)->{messages}[1], AgentSQL::Play::human('a');
    at('12:02:00');
    cmp_ok expire_all(), '>=', 1;
    is thread_there($thread), 'thread_not_found';
    is +($play->api('find_run_thread', $run))[0], 'run_not_found';
    for my $table (qw(runs run_queue run_events checkpoints checkpoint_items thread_expiries)) {
        is $session->value("select count(*) from agent.$table"), 0, "nothing is left in $table";
    }
    is $session->value("select status from agent.usage_events where run_id = '$run'"), 'success', 'usage stays';
};

subtest 'on_completion keep keeps the thread' => sub {
    my ($thread, $run) = executed(on_completion => 'keep');
    ok !$play->body('get_run', $thread, $run)->{kwargs}{temporary};
    at('13:00:00');
    expire_all();
    is thread_there($thread), 'ok';
};

subtest 'the thread of a run that was rolled back, cancelled or failed is deleted too' => sub {
    my ($back) = my @back = $play->stateless;
    $play->api('cancel_run', @back, 'rollback');
    my ($cancelled) = my @cancelled = $play->stateless;
    $play->api('cancel_run', @cancelled, 'interrupt');
    my ($failed) = $play->stateless;
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::finish($claim, 'error'));
    at('13:02:00');
    expire_all();
    is thread_there($_), 'thread_not_found' for $back, $cancelled, $failed;
};

subtest 'a thread with an unfinished run is kept' => sub {
    my ($thread, $run) = executed();
    my $second = $play->run($thread);
    at('13:10:00');
    expire_all();
    is thread_there($thread), 'ok', 'the thread is kept while the second run waits';
    my ($claim) = $play->claim($worker);
    $play->save($worker, AgentSQL::Play::finish($claim));
    at('13:11:59');
    is expire(), 0;
    is thread_there($thread), 'ok';
    at('13:12:00');
    expire_all();
    is thread_there($thread), 'thread_not_found', 'the thread is deleted 120 seconds after the end of the second run';
};

subtest 'a concurrent end postpones the deletion' => sub {
    my ($thread) = executed();
    at('13:20:00');
    my $other = $db->session;
    $other->query('begin');
    $other->query("update agent.thread_expiries set expires_at = '2030-01-01T13:21:00Z' where thread_id = '$thread'");
    $session->send('select count(*) from agent.expire_threads()');
    ok $session->waits_for($other), 'the deletion waits for the end';
    $other->query('commit');
    is $session->receive, 1;
    is thread_there($thread), 'ok';
    at('13:21:00');
    expire_all();
    is thread_there($thread), 'thread_not_found';
};

subtest 'a locked thread is left to the next call' => sub {
    my ($thread) = executed();
    at('13:30:00');
    my $other = $db->session;
    $other->query('begin');
    $other->query("select 1 from agent.threads where thread_id = '$thread' for update");
    expire_all();
    is thread_there($thread), 'ok';
    $other->query('commit');
    expire_all();
    is thread_there($thread), 'thread_not_found';
};

subtest 'a large backlog is deleted in batches of 25' => sub {
    my @threads = map { (executed())[0] } 1 .. 30;
    at('13:40:00');
    # A statement takes 25, or those that it can delete in two seconds.
    my @counts = expire();
    push @counts, scalar expire() while $counts[-1];
    cmp_ok $_, '<=', 25, 'a statement deletes at most 25' for @counts;
    is sum(@counts), 30, 'further ones delete the others';
    is thread_there($_), 'thread_not_found' for @threads[ 0, 29 ];
};

subtest 'a repeated request returns the stored run while it exists' => sub {
    my ($code, $body, $run, $thread) = $play->try_stateless(key => 'k', hash => 'h');
    my ($again, $same) = $play->try_stateless(key => 'k', hash => 'h');
    is $again, 'ok';
    is $same, $body, 'the repeated request names the same thread';
    is +($play->try_stateless(key => 'k', hash => 'other'))[0], 'idempotency_mismatch';
    is +($play->try_run($thread, key => 'k', hash => 'h2'))[0], 'idempotency_mismatch';
    $play->api('cancel_run', $thread, $run, 'interrupt');
    at('13:50:00');
    expire_all();
    is +($play->try_stateless(key => 'k', hash => 'other'))[0], 'ok', 'the key is free after the deletion of the thread';
};

subtest 'an unknown assistant creates no thread' => sub {
    my $before = $session->value('select count(*) from agent.threads');
    my ($code) = $play->try_stateless(assistant => AgentSQL::uuid(), graph => undef);
    is $code, 'assistant_not_found';
    is $session->value('select count(*) from agent.threads'), $before;
};

subtest 'a batch creates all of its runs, in the order of the requests' => sub {
    my ($code, $body, $runs, $threads) = $play->try_batch(map { { input => $_, on_completion => $_ % 2 ? 'keep' : 'delete' } } 1 .. 50);
    is $code, 'ok';
    my @records = @{ AgentSQL::decode($body) };
    is_deeply [ map { $_->{run_id} } @records ], $runs;
    is_deeply [ map { $_->{thread_id} } @records ], $threads;
    is_deeply [ map { $_->{kwargs}{input} } @records ], [ 1 .. 50 ];
    is_deeply [ map { $_->{kwargs}{temporary} ? 1 : 0 } @records ], [ map { $_ % 2 ? 0 : 1 } 1 .. 50 ];
    is $records[0]{kwargs}{config}{configurable}{user_id}, 'u1';
    my $list = "'{" . join(',', @$threads) . "}'::uuid[]";
    is $session->value("select count(*) from agent.threads where status = 'busy' and thread_id = any($list)"), 50;
    my @claims = $play->claim($worker, limit => 100);
    my %claimed = map { $_->{run_id} => 1 } @claims;
    is_deeply [ grep { !$claimed{$_} } @$runs ], [], 'all runs of the batch are ready';
    $play->save($worker, map { AgentSQL::Play::finish($_) } @claims);
};

subtest 'a batch with an unknown assistant creates nothing' => sub {
    my $before = $session->value('select count(*) from agent.threads');
    my $unknown = AgentSQL::uuid();
    my ($code, $body) = $play->try_batch({ input => 1 }, { assistant_id => $unknown }, { input => 3 });
    is $code, 'assistant_not_found';
    like $body, qr/$unknown/, 'the error names the assistant';
    is $session->value('select count(*) from agent.threads'), $before;
};

subtest 'a run with metadata and tags of more than 16 KB creates nothing, nor does a batch with one' => sub {
    my $before = $session->value('select count(*) from agent.threads');
    my $long = { config => { tags => [ 'x' x 16_384 ] } };
    is +($play->try_stateless(request => $long))[0], 'invalid_value', 'a run';
    my ($code, $body) = $play->try_batch({ input => 1 }, $long, { input => 3 });
    is $code, 'invalid_value', 'a batch';
    like $body, qr{\A/1/metadata: expected at most 16384 bytes}, 'the error names the run';
    is $session->value('select count(*) from agent.threads'), $before, 'no thread was created';
};

subtest 'members that concern other runs or checkpoints are ignored' => sub {
    my ($code, $body) = $play->try_stateless(request => {
        checkpoint_id => AgentSQL::uuid(), checkpoint => { checkpoint_id => AgentSQL::uuid() },
        multitask_strategy => 'rollback', if_not_exists => 'reject' });
    is $code, 'ok';
    is AgentSQL::decode($body)->{kwargs}{config}{configurable}{checkpoint_id}, undef;
};

subtest 'locked threads do not prevent others from being deleted' => sub {
    my $other = $db->session;
    at('22:00:00');
    expire_all();
    my @runs = map { [ $play->stateless ] } 1 .. 27;
    is +($play->api('cancel_run', @{$_}, 'interrupt'))[0], 'ok' for @runs;
    at('23:00:00');
    $other->query('begin');
    $other->query("select from agent.threads where thread_id in ('"
        . join("', '", map { $_->[0] } @runs[ 0 .. 24 ]) . "') for update");
    is expire_all(), 2, 'the others are deleted, the locked ones are not returned';
    $other->query('rollback');
    is expire_all(), 25, 'the locked threads are deleted later';
    $session->query('reset agent.now');
};

subtest 'a thread that cannot be deleted in time does not prevent others from being deleted' => sub {
    at('22:00:00');
    my @runs = map { [ $play->stateless ] } 1 .. 5;
    $play->api('cancel_run', @{$_}, 'interrupt') for @runs;
    my ($slow, @others) = map { $_->[0] } @runs;
    $session->query("alter function agent.delete_thread(uuid, uuid, boolean) rename to delete_thread_kept;
        create function agent.delete_thread(a uuid, t uuid, c boolean default false, out code text, out body text, out changed text)
        language plpgsql as 'begin if t = ''$slow'' then perform pg_sleep(3600); end if;
            select * into code, body, changed from agent.delete_thread_kept(a, t, c); end'");
    at('23:00:00');
    $session->query("update agent.thread_expiries set expires_at = agent.now() - interval '1 day' where thread_id = '$slow'");
    $session->query("set statement_timeout = '1s'");
    expire_all();
    $session->query('reset statement_timeout');
    is thread_there($_), 'thread_not_found', 'another thread is deleted' for @others;
    is thread_there($slow), 'ok', 'the slow one is there';
    is $session->value("select expires_at > agent.now() from agent.thread_expiries where thread_id = '$slow'"), 't',
        'the deletion of the slow thread is tried again later';
    $session->query('drop function agent.delete_thread(uuid, uuid, boolean);
        alter function agent.delete_thread_kept(uuid, uuid, boolean) rename to delete_thread');
    at('23:59:59');
    $session->query("update agent.thread_expiries set expires_at = agent.now() where thread_id = '$slow'");
    expire_all();
    is thread_there($slow), 'thread_not_found', 'the slow thread is deleted in the end';
    $session->query('reset agent.now');
};

done_testing;
