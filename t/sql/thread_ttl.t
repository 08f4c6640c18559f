# SPDX-License-Identifier: Apache-2.0
# Threads with a ttl: what begins its time, and their deletion.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $session = $db->session;
my $play = AgentSQL::Play->new($session);
$session->query("set lock_timeout = '1min'");
$session->query("select agent.save_graphs('" . $play->deployment . "', '[{\"graph_id\":\"agent\",\"assistant_id\":\"$AgentSQL::ASSISTANT\"}]')");

sub at { return $session->query("set agent.now = '2030-01-01T$_[0]Z'") }

sub expire_all {
    for (1 .. 100) {
        return if !$session->query('select agent.expire_threads()');
    }
    die "expire_threads() does not end\n";
}

sub is_there { my ($thread) = @_; expire_all(); return ($play->api('get_thread', $thread))[0] eq 'ok' }

# The member ttl of the record.
sub ttl_of { return $play->body('get_thread', $_[0], undef, 't')->{ttl} }

# A worker that lives at that time executes all runs.
sub execute {
    my $worker = $play->worker;
    for my $claim ($play->claim($worker)) {
        $play->save($worker, AgentSQL::Play::checkpoint($claim, messages => ['a']), AgentSQL::Play::finish($claim));
    }
    return;
}

# It is there until that second, and no longer.
sub is_deleted_at {
    my ($thread, $before, $then, $title) = @_;
    at($before);
    ok is_there($thread), "$title: it is there before";
    at($then);
    ok !is_there($thread), "$title: it is deleted";
    return;
}

at('12:00:00');

subtest 'a thread is deleted when its ttl is over, with all its rows' => sub {
    my $thread = $play->thread(ttl => { ttl => 10, strategy => 'delete' });
    is_deleted_at($thread, '12:09:59', '12:10:00', 'ttl as an object');
    is $session->value("select count(*) from agent.$_"), 0, "nothing is left in $_" for qw(threads thread_expiries);
};

subtest 'a ttl may be a number of minutes, and less than one' => sub {
    is_deleted_at($play->thread(ttl => 0.5), '12:10:29', '12:10:30', 'half a minute');
};

subtest 'a thread without a ttl does not expire, and has no row in thread_expiries' => sub {
    my @threads = map { $play->thread(%{$_}) } {}, { ttl => undef }, { ttl => {} };
    is $session->value('select count(*) from agent.thread_expiries'), 0;
    $session->query("set agent.now = '2031-01-01T00:00:00Z'");
    ok is_there($_) for @threads;
};

subtest 'the server has a ttl for threads whose request has none' => sub {
    at('13:00:00');
    my $short = $play->thread_with('1 hour', ttl => 1);
    is_deleted_at($short, '13:00:59', '13:01:00', 'the ttl of the request counts');
    at('13:00:00');
    is_deleted_at($play->thread_with('1 hour'), '13:59:59', '14:00:00', 'the ttl of the server');
};

subtest 'a thread that exists keeps its ttl' => sub {
    my $thread = $play->thread;
    $play->api('create_thread', $thread, 'do_nothing', AgentSQL::encode({ ttl => 1 }), '1 min');
    is ttl_of($thread), undef;
};

subtest 'the record shows the ttl when it is asked for' => sub {
    at('14:00:00');
    my $thread = $play->thread(ttl => 1.5, metadata => { a => 1 });
    is_deeply ttl_of($thread), { strategy => 'delete', ttl_minutes => 1.5, expires_at => '2030-01-01T14:01:30.000000+00:00' };
    my $record = $play->body('get_thread', $thread, undef, 't');
    is_deeply [ @{$record}{qw(thread_id status metadata values)} ], [ $thread, 'idle', { a => 1 }, undef ], 'the other members stay';
    ok !exists $play->body('get_thread', $thread)->{ttl}, 'it is left out otherwise';
    ok !exists $play->body('get_thread', $play->thread, undef, 't')->{ttl}, 'a thread without a ttl has no such member';
};

subtest 'a thread with an unfinished run is kept, and the end of the run restarts its time to live' => sub {
    at('15:00:00');
    my $thread = $play->thread(ttl => 10);
    $play->run($thread);
    at('15:30:00');
    ok is_there($thread), 'it is kept while the run waits';
    is ttl_of($thread)->{expires_at}, '2030-01-01T15:40:00.000000+00:00', 'it would expire a ttl from now';
    execute();
    is_deleted_at($thread, '15:39:59', '15:40:00', 'ten minutes after the end of the run');
};

subtest 'a run that is created after the time is over, and before the deletion, keeps the thread' => sub {
    at('16:00:00');
    my $thread = $play->thread(ttl => 10);
    at('16:20:00');
    $play->run($thread);
    ok is_there($thread);
    execute();
    is_deleted_at($thread, '16:29:59', '16:30:00', 'ten minutes after the end of the run');
};

subtest 'a run that is cancelled or rolled back restarts its time to live' => sub {
    for my $action (qw(interrupt rollback)) {
        at('17:00:00');
        my $thread = $play->thread(ttl => 10);
        my $run = $play->run($thread);
        at('17:05:00');
        $play->api('cancel_run', $thread, $run, $action);
        is_deleted_at($thread, '17:14:59', '17:15:00', $action);
    }
};

subtest 'an update of the state restarts the time to live' => sub {
    at('18:00:00');
    my $thread = $play->thread(ttl => 10, metadata => { graph_id => 'agent' });
    at('18:05:00');
    $play->worker;
    my ($code) = $session->call('update_state', $play->deployment, $thread, AgentSQL::uuid(), 'u', 10,
        AgentSQL::encode({ values => { messages => [] } }));
    is $code, 'ok';
    execute();
    is_deleted_at($thread, '18:14:59', '18:15:00', 'ten minutes after the update');
};

subtest 'a thread that is made with supersteps has a ttl too' => sub {
    at('18:30:00');
    my @ids = map { AgentSQL::uuid() } 1, 2;
    my %request = (metadata => { graph_id => 'agent' }, supersteps => [ { updates => [ { values => {}, as_node => 'model' } ] } ]);
    $play->worker;
    my ($code) = $session->call('create_thread_state', $play->deployment, @ids, 'u', 'raise', 10, AgentSQL::encode(\%request), '10 min');
    is $code, 'ok';
    execute();
    is_deleted_at($ids[0], '18:39:59', '18:40:00', 'ten minutes after its state was made');
    my @refused = map { AgentSQL::uuid() } 1, 2;
    ($code) = $session->call('create_thread_state', $play->deployment, @refused, 'u', 'raise', 10, AgentSQL::encode({ supersteps => [] }), '10 min');
    is $code, 'no_graph';
    is $session->value("select count(*) from agent.thread_expiries where thread_id = '$refused[0]'"), 0, 'one that was refused leaves nothing';
};

subtest 'a thread that a run creates has the ttl of the server' => sub {
    at('19:00:00');
    my $thread = AgentSQL::uuid();
    $play->run($thread, request => { if_not_exists => 'create' }, ttl => '10 min');
    at('19:30:00');
    ok is_there($thread), 'it is kept while the run waits';
    execute();
    is_deleted_at($thread, '19:39:59', '19:40:00', 'ten minutes after the end of the run');
    my $other = $play->thread;
    $play->run($other, request => { if_not_exists => 'create' }, ttl => '10 min');
    is ttl_of($other), undef, 'a thread that exists gets none';
    execute();
};

subtest 'a thread of a stateless run that is kept has the ttl of the server, a temporary one has 120 seconds' => sub {
    at('20:00:00');
    my %with = (ttl => '10 min');
    my $kept = ($play->try_stateless(%with, request => { on_completion => 'keep' }))[3];
    my $temporary = ($play->try_stateless(%with))[3];
    execute();
    is_deleted_at($temporary, '20:01:59', '20:02:00', 'the temporary one');
    is_deleted_at($kept, '20:09:59', '20:10:00', 'the one that is kept');
};

subtest 'an update of a thread sets its ttl, and its time begins' => sub {
    at('21:00:00');
    my $thread = $play->thread;
    at('21:05:00');
    is +($play->api('update_thread', $thread, AgentSQL::encode({ ttl => { ttl => 10, strategy => 'delete' } })))[0], 'ok';
    at('21:10:00');
    $play->api('update_thread', $thread, AgentSQL::encode({ metadata => { a => 1 } }));
    is ttl_of($thread)->{ttl_minutes}, 10, 'an update without ttl keeps it';
    is_deleted_at($thread, '21:14:59', '21:15:00', 'ten minutes after the update with ttl');
    at('21:20:00');
    my ($temporary) = $play->stateless;
    $play->api('update_thread', $temporary, AgentSQL::encode({ ttl => 1000 }));
    execute();
    is_deleted_at($temporary, '21:21:59', '21:22:00', 'a temporary thread has 120 seconds');
};

subtest 'an update with a ttl without minutes ends it: the thread is kept' => sub {
    for my $ttl (undef, { ttl => undef }, {}) {
        my $title = AgentSQL::encode({ ttl => $ttl });
        at('21:30:00');
        my $thread = $play->thread_with('10 min');
        is +($play->api('update_thread', $thread, $title))[0], 'ok', $title;
        is ttl_of($thread), undef, "$title: it has none, nor that of the server";
        is $session->value("select count(*) from agent.thread_expiries where thread_id = '$thread'"), 0, "$title: the thread has no time of its end";
        $play->run($thread);
        execute();
        at('23:59:00');
        ok is_there($thread), "$title: it is kept, also after a run";
    }
    at('21:30:00');
    my ($temporary) = $play->stateless;
    $play->api('update_thread', $temporary, '{"ttl":null}');
    execute();
    is_deleted_at($temporary, '21:31:59', '21:32:00', 'a temporary thread keeps its 120 seconds');
    my $waiting = ($play->stateless)[0];
    execute();
    $play->api('update_thread', $waiting, '{"ttl":null}');
    is_deleted_at($waiting, '21:33:59', '21:34:00', 'a temporary thread whose run has ended keeps them too');
};

subtest 'a copy has the ttl of the thread, and a time of its own' => sub {
    at('22:00:00');
    my $thread = $play->thread(ttl => 10);
    $play->run($thread);
    execute();
    at('22:05:00');
    my $copy = AgentSQL::uuid();
    is +($play->api('copy_thread', $thread, $copy, 'f', undef))[0], 'ok';
    is_deleted_at($copy, '22:14:59', '22:15:00', 'the copy');
    ok !is_there($thread);
};

subtest 'a deletion leaves no row in thread_expiries' => sub {
    my $thread = $play->thread(ttl => 10);
    is +($play->api('delete_thread', $thread))[0], 'ok';
    is $session->value('select count(*) from agent.thread_expiries'), 0;
};

done_testing;
