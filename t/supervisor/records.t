# SPDX-License-Identifier: Apache-2.0
# Records of a graph library: written by a run, read by its next attempt, replied
# to after the commit; what ends a run, and what a runner.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Wait;
use Test::More;
use TestLarge;
use TestSupervisor;

my $pg = start_cluster();

sub start_supervisor {
    my (%args) = @_;
    my $sv = TestSupervisor->start($pg, lease_sec => 60, runner => scripted_runner('record_runner.pl'),
        timing_ms => patient_timing(), %args);
    $sv->wait_ready;
    return $sv;
}

my $sv = start_supervisor();

my @IDS = map { "0190a1b2-0000-6000-8000-00000000000$_" } 1 .. 9;

sub put {
    my ($id, $parent, %channels) = @_;
    return (type => 'put', ns => '', checkpoint_id => $id, parent => $parent, metadata => { source => 'loop', step => 0 },
        checkpoint => { v => 4, id => $id, channel_versions => { map { $_ => '1' } keys %channels }, versions_seen => {} },
        channels => \%channels);
}

sub writes {
    my ($id, @writes) = @_;
    return (type => 'put_writes', ns => '', checkpoint_id => $id, task_id => 'task 1', task_path => '~pull', writes => \@writes);
}

# The data of the events of a run that has ended, without the first two.
sub replies_of {
    my ($run) = @_;
    wait_status($run, 'success');
    my @data = map { $_->[1] } grep { $_->[0] eq 'custom' } events_of($run);
    return grep { ref } @data;
}

# Runs these steps; returns the run.
sub run_steps {
    my (@steps) = @_;
    my $run = create_run({ first => \@steps });
    $sv->wake;
    return $run;
}

subtest 'the next attempt of a run reads what the killed one wrote, byte for byte' => sub {
    my @values = ('#state:msgpack:30', '#text:json:5000', '#empty:null:0', '#write:bytes:100000', '#item:msgpack:1');
    my $run = create_run({
        first => [
            (map { [ blob => s/\A#//r ] } @values),
            [ send => put($IDS[0], undef, state => $values[0], text => $values[1], empty => $values[2], none => undef,
                list => { list => { keep => 0, items => [ $values[4], $values[0] ] } }) ],
            [ ack => 1000, writes($IDS[0], [ 0, 'state', $values[3] ], [ -1, '__error__', undef ]) ],
            ['die'],
        ],
        later => [
            [ request => 'checkpoint.get', { ns => '', checkpoint_id => $IDS[0] } ],
            [ request => 'checkpoint.get', { ns => '', checkpoint_id => undef } ],
            [ request => 'blob.get', { digests => \@values } ],
        ],
    });
    $sv->wake;
    my ($get, $last, @parts) = replies_of($run);
    is attempts_of($run), 2, 'next attempt: it succeeds';
    my $tuple = $get->{result}{tuple};
    is $tuple->{checkpoint_id}, $IDS[0], 'next attempt: checkpoint.get finds the checkpoint of the killed one';
    is $last->{result}{tuple}, undef, 'next attempt: the checkpoint of the killed one is not the last one of the thread';
    my $channels = $get->{result}{channels};
    is_deeply { map { $_ => $channels->{$_} } grep { defined $channels->{$_} } keys %{$channels} },
        { state => $values[0], text => $values[1], empty => $values[2],
            list => { list => { keep => 0, items => [ $values[4], $values[0] ] } } }, 'next attempt: the channels refer to the values';
    is_deeply [ @{$tuple}{qw(ns parent checkpoint metadata)} ], [ @{ { put($IDS[0], undef, state => 1, text => 1, empty => 1,
        none => 1, list => 1) } }{qw(ns parent checkpoint metadata)} ], 'next attempt: the checkpoint has what was put';
    is_deeply [ sort { $a->[1] <=> $b->[1] } @{ $get->{result}{writes} } ],
        [ [ 'task 1', -1, '__error__', undef, '~pull', $run ], [ 'task 1', 0, 'state', $values[3], '~pull', $run ] ], 'next attempt: checkpoint.get has the writes, with their run';
    is_deeply { map { %{ $_->{blobs} } } @parts }, { map { $_ => (split /:/)[1] } @values }, 'next attempt: blob.get has the values';
};

subtest 'a value of 20 MB is written and read in parts' => sub {
    my $value = '#large:msgpack:20000000';
    my @replies = replies_of(run_steps([ blob => substr($value, 1), 5 ], [ send => put($IDS[0], undef, large => $value) ],
        [ request => 'blob.get', { digests => [$value] } ]));
    is_deeply { map { %{ $_->{blobs} } } @replies }, { $value => 'msgpack' }, 'a value of 20 MB: it is read as it was written';
    cmp_ok scalar @replies, '>=', 5, 'a value of 20 MB: it is read in at least as many replies as it has parts';
};

subtest 'a request sees the records that the run sent before it' => sub {
    my ($get) = replies_of(run_steps([ send => put($IDS[1], undef) ], [ request => 'checkpoint.get', { ns => '' } ]));
    is $get->{result}{tuple}{checkpoint_id}, $IDS[1], 'a request sees a checkpoint that the run put without ack';
};

subtest 'the reply to a record follows its commit' => sub {
    my $lock = hold_lock('lock table agent.checkpoint_snapshots in access exclusive mode');
    my $run = run_steps([ send => put($IDS[2], undef), ack => 2000 ], [ request => 'state.get' ], [ ack => 2001, writes($IDS[2]) ]);
    wait_blocked('save_batch');
    $sv->wait_log(qr/reply 1\b/);
    unlike $sv->log_text, qr/reply 2000/, 'ack: none while the put waits for a lock, though a request is answered';
    release_lock($lock);
    $sv->wait_log(qr/reply 2000/);
    is sql("select count(*) from agent.checkpoint_snapshots where checkpoint_id = '$IDS[2]'"), 1,
        'ack: when it arrives, the checkpoint is visible to others';
    wait_status($run, 'success');
    like $sv->log_text, qr/reply 2000.*reply 2001/s, 'ack: that of the next record follows';
};

subtest 'requests read the thread of the run' => sub {
    my $other = create_run({ first => [ [ blob => 'secret:bytes:20' ], [ ack => 3000, put($IDS[3], undef, a => '#secret:bytes:20') ] ] });
    $sv->wake;
    wait_status($other, 'success');
    my $thread = run_field($other, 'thread_id');
    my @replies = replies_of(run_steps(
        [ request => 'checkpoint.get', { ns => '', thread_id => $thread, checkpoint_id => undef } ],
        [ request => 'checkpoint.get', { ns => '', thread_id => $thread, checkpoint_id => $IDS[3] } ],
        [ request => 'checkpoint.list', { ns => undef, thread_id => $thread } ],
        [ request => 'blob.get', { digests => ['#secret:bytes:20'], thread_id => $thread } ]));
    is_deeply [ map { $_->{result}{tuple} } @replies[ 0, 1 ] ], [ undef, undef ], 'other threads: checkpoint.get finds no checkpoint of one';
    is_deeply $replies[2]{result}{tuples}, [], 'other threads: checkpoint.list finds no checkpoint of one';
    is $replies[3]{code}, 'not_found', 'other threads: blob.get finds no value of one';
};

subtest 'arguments that the database cannot read are refused' => sub {
    my @replies = replies_of(run_steps(map { [ request => @{$_} ] } [ 'checkpoint.get', { ns => '', checkpoint_id => 'x' } ],
        [ 'checkpoint.delta', { ns => '', checkpoint_id => $IDS[0], channels => 'x' } ], [ 'blob.get', { digests => 1 } ]));
    is_deeply [ map { $_->{code} } @replies ], [ ('invalid_args') x 3 ], 'arguments that the database cannot read: invalid_args';
};

subtest 'a delta does not go on at a checkpoint that was deleted since' => sub {
    my ($reply) = replies_of(run_steps([ request => 'checkpoint.delta', { ns => '', checkpoint_id => $IDS[0], channels => ['x'] }, "$IDS[8].1.w0" ]));
    is $reply->{code}, 'invalid_cursor', 'a delta at a checkpoint that was deleted: invalid_cursor, since it would seem to be the end';
};

subtest 'a run whose state has too many channels is told the limit' => sub {
    my $run = run_steps([ send => put($IDS[6], undef, map { ("c$_" => undef) } 1 .. 1025) ]);
    wait_status($run, 'error');
    is error_of($run), 'InvalidOutputError', 'the output of a run with too many channels is refused';
    like +(events_of($run))[-1][1]{message}, qr/more than 1,024 channels/, 'the error of a run with too many channels names the limit';
};

subtest 'a run that refers to a value that its thread does not have ends in error alone' => sub {
    my $beside = run_steps([ ack => 4000, put($IDS[4], undef) ], [ request => 'checkpoint.get', { ns => '' } ]);
    my $run = run_steps([ send => put($IDS[5], undef, bad => '#absent:bytes:9') ]);
    wait_status($run, 'error');
    is error_of($run), 'InvalidOutputError', 'an absent value: the output of the run that refers to it is refused';
    is scalar(replies_of($beside)), 1, 'an absent value: the other run of the runner ends';
    is attempts_of($beside), 1, 'an absent value: the other run of the runner ends at its first attempt';
};

sub expect_breach {
    my ($title, $reason, @steps) = @_;
    subtest "$title ends the runner, and the run is executed again" => sub {
        my $run = create_run({ first => [ @steps, ['mute'] ] });
        $sv->wake;
        wait_status($run, 'success');
        is attempts_of($run), 2, "$title: the run succeeds at its second attempt";
        ok $sv->wait_log(qr/AGT0332: .*$reason/), "$title: the reason is logged";
    };
    return;
}

expect_breach('a value without a digest', 'its line has no valid digest', [ send => type => 'blob', value_type => 'x', text => '' ]);
expect_breach('a part beyond the last one', 'its line has no valid part',
    [ send => type => 'blob', digest => $IDS[0], value_type => 'x', text => '', part => 1, parts => 1 ]);
expect_breach('a checkpoint without channels', 'its line has no channels', [ send => put($IDS[0], undef), channels => undef ]);
expect_breach('a write without a task', 'its line has no valid task_id', [ send => writes($IDS[0]), task_id => '' ]);
expect_breach('a record of another run', 'a run that it does not execute', [ send => put($IDS[0], undef), run_id => $IDS[0] ]);
expect_breach('the seventeenth record whose reply was not read', 'too many records with ack',
    map { [ send => writes($IDS[0]), ack => 5000 + $_ ] } 1 .. 17);
expect_breach('arguments of more than 4 KiB', 'its line has args of more than 4 KiB',
    [ request => 'checkpoint.list', { filter => { a => 'x' x 4096 } } ]);

subtest 'a runner that does not read its replies delays no other runner' => sub {
    my $two = start_supervisor(runners => 2, node => 'node-2', graphs => { two => {} },
        timing_ms => { %{ patient_timing() }, ping_timeout => 3_600_000 });
    $two->wait_runners(2);
    my $value = '#value:bytes:900000';
    my $mute = create_run({ first => [ [ blob => substr $value, 1 ], [ ack => 6000, put($IDS[6], undef, a => $value) ], ['event', 'saved'],
        (map { [ send => type => 'request', id => $_, op => 'blob.get', args => { digests => [$value] } ] } 1), ['mute'] ] },
        graph => 'two');
    $two->wake;
    wait_events('the mute run to send its request', 3, $mute);
    for my $number (1 .. 3) {
        my $run = create_run({ first => [ [ blob => substr $value, 1 ], [ ack => 6001, put($IDS[6], undef, a => $value) ],
            [ request => 'blob.get', { digests => [$value] } ] ] }, graph => 'two');
        $two->wake;
        is_deeply [ map { %{ $_->{blobs} } } replies_of($run) ], [ $value => 'bytes' ], 'an unread reply: a run of another runner reads its value';
        is attempts_of($run), 1, 'an unread reply: a run of another runner ends at its first attempt';
    }
    kill KILL => $two->pid;
    sql('delete from agent.run_queue');
};

is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
