# SPDX-License-Identifier: Apache-2.0
# Threads: creation, reading, deletion.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Play;

my $db = AgentSQL->new;
my $play = AgentSQL::Play->new($db->session);
subtest 'a new thread is idle and empty, with the fields of the API' => sub {
    my $id = AgentSQL::uuid();
    my ($code, $body) = $play->session->call('create_thread', $AgentSQL::DEPLOYMENT, $id, 'raise', '{}');
    is $code, 'ok';
    my $record = AgentSQL::decode($body);
    is_deeply [ sort keys %$record ],
        [ sort qw(thread_id created_at updated_at metadata status config values state_updated_at interrupts) ];
    is $record->{thread_id}, $id;
    is $record->{status}, 'idle';
    is_deeply $record->{$_}, {}, "$_ is an empty object" for qw(metadata config interrupts);
    is $record->{values}, undef;
    like $record->{$_}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/, $_ for qw(created_at updated_at);
    my (undef, $same) = $play->session->call('get_thread', $AgentSQL::DEPLOYMENT, $id);
    is $same, $body, 'get_thread shows the same text';
};

subtest 'metadata of the request is stored' => sub {
    my $thread = $play->thread(metadata => { a => { b => 1 } }, unknown => 1);
    is_deeply $play->body('get_thread', $thread)->{metadata}, { a => { b => 1 } };
};

subtest 'an id that is taken is refused; with do_nothing the existing thread is returned' => sub {
    my $thread = $play->thread(metadata => { first => 1 });
    my @again = ($thread, 'raise', '{"metadata":{"second":1}}');
    is +($play->api('create_thread', @again))[0], 'thread_exists';
    $again[1] = 'do_nothing';
    is_deeply $play->body('create_thread', @again)->{metadata}, { first => 1 };
};

subtest 'metadata are merged' => sub {
    my $session = $play->session;
    my $thread = $play->thread(metadata => { a => 1, b => { c => 1 } });
    my $update = sub { return $play->api('update_thread', $thread, AgentSQL::encode({ metadata => $_[0] })) };
    my ($code, $record) = $update->({ b => 2, d => undef });
    is_deeply [ $code, $record->{metadata} ], [ 'ok', { a => 1, b => 2, d => undef } ], 'members replace those of the thread';
    is_deeply $play->body('get_thread', $thread), $record, 'the result is the record';
    is_deeply +($play->api('update_thread', $thread, '{}'))[1]{metadata}, $record->{metadata}, 'without metadata nothing is changed';
    is_deeply +($update->(undef))[1]{metadata}, $record->{metadata}, 'null is the same';
    is +($update->({ map { ("k$_" => 1) } 1 .. 61 }))[0], 'ok', '64 members';
    is_deeply [ $update->({ e => 1 }) ], [ 'invalid_value', '/metadata: expected at most 64 keys, those of the thread included.' ],
        'one more is refused';
    is +($update->({ graph_id => 'agent', a => 3 }))[0], 'ok', 'those of the server do not count';
    is $session->value("select metadata ->> 'a' from agent.threads where thread_id = '$thread'"), 3, 'a member is changed at the limit';
    is +($play->api('update_thread', AgentSQL::uuid(), '{}'))[0], 'thread_not_found', 'an unknown thread';
};

subtest 'an unknown thread is thread_not_found' => sub {
    my $id = AgentSQL::uuid();
    is +($play->api('get_thread', $id))[0], 'thread_not_found';
    is +($play->api('get_state', $id, undef))[0], 'thread_not_found';
    is +($play->api('delete_thread', $id))[0], 'thread_not_found';
};

subtest 'a deleted thread leaves no row but usage' => sub {
    my $worker = $play->worker;
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim, messages => [1]),
        AgentSQL::Play::finish($claim));
    $play->run($thread);
    is +($play->api('delete_thread', $thread))[0], 'ok';
    for my $table (qw(threads runs run_queue checkpoints checkpoint_items)) {
        is $play->session->value("select count(*) from agent.$table where thread_id = '$thread'"), 0, $table;
    }
    is $play->session->value("select count(*) from agent.run_events where run_id = '$claim->{run_id}'"), 0,
        'run_events';
    is $play->session->value("select count(*) from agent.usage_events where thread_id = '$thread'"), 1,
        'usage_events';
    is +($play->api('get_thread', $thread))[0], 'thread_not_found';
};

subtest 'a deletion that somebody else completed leaves the thread that was created again' => sub {
    my $thread = $play->thread;
    $play->run($thread);
    is_deeply [ ($play->api('delete_thread', $thread, 'true'))[0, 1] ], [ 'ok', '' ], 'the next piece finds nothing to delete';
    is +($play->api('get_thread', $thread))[0], 'ok', 'the thread is left';
    is $play->session->value("select count(*) from agent.run_queue where thread_id = '$thread'"), 1, 'and its run';
    is +($play->api('delete_thread', $thread))[0], 'ok', 'until it is deleted itself';
};

subtest 'the worker of a run whose thread was deleted is fenced' => sub {
    my $worker = $play->worker;
    my $thread = $play->thread;
    $play->run($thread);
    my ($claim) = $play->claim($worker);
    is +($play->api('delete_thread', $thread))[0], 'ok';
    is_deeply $play->check($worker, $claim), { $claim->{run_id} => 'lost' };
    is_deeply $play->save($worker,
        AgentSQL::Play::event($claim, 0, 'metadata', {}),
        AgentSQL::Play::checkpoint($claim),
        AgentSQL::Play::finish($claim)), { $claim->{run_id} => [ 'fenced', 'f' ] };
    is $play->session->value("select count(*) from agent.checkpoints where thread_id = '$thread'"), 0;
    is_deeply $play->release($worker, 'true', $claim), { $claim->{run_id} => 'gone' };
};

done_testing;
