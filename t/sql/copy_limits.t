# SPDX-License-Identifier: Apache-2.0
# Limits of accounts and copies of threads: what is under way counts as a thread, and its bytes as they are copied.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Accounts qw(use_accounts account limit kept_count counted_anew measured measure);

my $db = AgentSQL->new('-v', "operator_role=$AgentSQL::OPERATOR");
my $session = $db->session;
use_accounts($session, $db->session($AgentSQL::OPERATOR));

# A thread with these many checkpoints, each with a value of these many bytes that does not compress.
sub thread_of {
    my ($client, $checkpoints, $bytes) = @_;
    $bytes //= 4096;
    my $in = $client->thread;
    my $id = sub { "md5('$in' || $_[0])::uuid" };
    $session->query("insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, channels,
            next, tasks, metadata, state_bytes, created_at)
        select '@{[ $client->deployment ]}', '$in', '', @{[ $id->('n') ]}, case when n > 1 then @{[ $id->('(n - 1)') ]} end,
            array[row('text', null, $bytes + 4, null, null, null, to_json(t.text)::text)::agent.channel_value], '[]', '[]', '{}', $bytes + 4, now()
          from generate_series(1, $checkpoints) n
         cross join lateral (select string_agg(md5(n::text || i), '') as text from generate_series(1, $bytes / 32) i) t");
    $session->query("update agent.threads set head_checkpoint_id = @{[ $id->($checkpoints) ]} where thread_id = '$in'");
    return $in;
}

# One call: (code, body).
sub call {
    my ($client, $in, $copy, $continued, $changed) = @_;
    return [ ($client->api('copy_thread', $in, $copy, $continued ? 'true' : 'false', $changed))[ 0, 1 ] ];
}

# One piece: (code, body). The first call of an account with limits copies nothing.
sub piece {
    my ($client, $in, $copy, $continued, $changed) = @_;
    my $result = call(@_);
    my $has_begun = !$continued && ($result->[1] // '') eq 'more' && $session->value("select count(*) from agent.checkpoints where thread_id = '$copy'") == 0;
    return $has_begun ? call($client, $in, $copy, 1) : $result;
}

# All pieces, or those that are left: the code of the last one.
sub copied {
    my ($client, $in, $copy, $continued) = @_;
    while (1) {
        my ($code, $body) = @{ piece($client, $in, $copy, $continued) };
        return $code if ($body // '') ne 'more';
        $continued = 1;
    }
}

# Makes a copy one that was abandoned.
sub expire {
    my ($copy) = @_;
    $session->query("update agent.thread_copies set expires_at = agent.now() where thread_id = '$copy'");
    return;
}

# The count of threads, as it is kept and as it is counted anew.
sub threads_are {
    my ($account, $count, $title) = @_;
    is kept_count($account, 'threads'), $count, "kept: $title";
    is counted_anew($account, 'threads'), $count, "counted anew: $title";
    return;
}

sub sweep {
    1 while $session->value('select agent.sweep_copies()');
    return;
}

# A limit that is not reached, and the first request that stores: the account is measured from then on.
sub begin_measures {
    my ($account, $client, $in) = @_;
    limit($account, stored_bytes => 1_000_000_000);
    is +($client->api('update_thread', $in, '{"metadata":{"a":1}}'))[0], 'ok', 'a request stores';
    return;
}

my $MORE = [ 'ok', 'more' ];
my $FULL = [ 'limit_exceeded', 'threads 3' ];

subtest 'a copy counts as a thread from its first piece on: no more of them begin than the limit permits' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    my $in = thread_of($shop, 2000);
    my ($first, $second, $third) = map { AgentSQL::uuid() } 1 .. 3;
    is_deeply piece($shop, $in, $_), $MORE for $first, $second;
    threads_are($account, 3, 'the thread and two copies');
    is_deeply piece($shop, $in, $third), $FULL, 'the third copy is refused';
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'limit_exceeded', 'a thread beside the copies is refused';
    threads_are($account, 3, 'what is refused does not count');
    is_deeply piece($shop, $in, $first, 1), $MORE, 'one that has begun goes on at the limit';
    copied($shop, $in, $first, 1);
    is +($shop->api('get_thread', $first))[0], 'ok';
    threads_are($account, 3, 'one that has ended counts once');

    expire($second);
    threads_are($account, 3, 'one that is abandoned, until it is deleted');
    sweep();
    threads_are($account, 2, 'no longer');
    is_deeply piece($shop, $in, $third), $MORE, 'a copy takes the room of a deleted one';
    sweep();
    threads_are($account, 3, 'one that goes on is not swept');
    limit($account, threads => undef);
};

subtest 'a copy counts before it copies anything, so that copies which begin together find each other' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    my $in = thread_of($shop, 1);
    my @copies = map { AgentSQL::uuid() } 1 .. 2;
    is_deeply call($shop, $in, $_), $MORE, 'a copy of a small thread begins' for @copies;
    is $session->value("select count(*) from agent.checkpoints where thread_id = any ('{@{[ join ',', @copies ]}}')"), 0, 'copies that have begun have copied nothing';
    threads_are($account, 3, 'the thread and two copies');
    is_deeply call($shop, $in, AgentSQL::uuid()), $FULL, 'the third copy is refused';
    is_deeply call($shop, $in, $_, 1), [ 'ok', '' ], 'the next call copies all' for @copies;
    threads_are($account, 3, 'as before');
    limit($account, threads => undef);
};

subtest 'a copy whose client has left counts until its rows are gone' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    my $in = thread_of($shop, 2000);
    my @begun;
    for (1 .. 12) {
        my $copy = AgentSQL::uuid();
        my $piece = piece($shop, $in, $copy);
        if ($piece->[0] eq 'ok') { push @begun, $copy } else { is_deeply $piece, $FULL }
        $shop->api('abandon_copy', $copy);
    }
    is @begun, 2, 'two copies beside the thread';
    threads_are($account, 3, 'the thread and two copies');
    is piece($shop, $in, $_, 1)->[0], 'thread_changed', 'none goes on' for @begun;
    sweep();
    threads_are($account, 1, 'the thread');
    is $session->value('select count(*) from agent.checkpoints where thread_id = any (\'{' . join(',', @begun) . '}\')'), 0, 'nothing is left';
    is_deeply piece($shop, $in, AgentSQL::uuid()), $MORE, 'there is room again';
    limit($account, threads => undef);
};

subtest 'so does one that was given up since its account has stored as many bytes as it may' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 2000);
    limit($account, threads => 2);
    begin_measures($account, $shop, $in);
    my $of_one = measure($account);
    limit($account, stored_bytes => $of_one + 1);
    my $copy = AgentSQL::uuid();
    is_deeply piece($shop, $in, $copy), $MORE;
    is piece($shop, $in, $copy, 1)->[0], 'limit_exceeded';
    threads_are($account, 2, 'the thread and the copy');
    $shop->api('abandon_copy', $copy);
    sweep();
    threads_are($account, 1, 'the thread');
    limit($account, threads => undef, stored_bytes => undef);
};

subtest 'a copy that met a deletion counts until its rows are gone, and its request may begin one more at the limit' => sub {
    my ($account, $shop) = account();
    limit($account, threads => 3);
    my $in = thread_of($shop, 2000);
    my $other = $shop->thread;
    my @copies = map { AgentSQL::uuid() } 1 .. 2;
    my $changed;
    for my $copy (@copies) {
        is_deeply piece($shop, $in, $copy, 0, $changed), $MORE, 'a copy begins';
        $session->query("update agent.threads set state_deletions = state_deletions + 1 where thread_id = '$in'");
        is piece($shop, $in, $copy, 1)->[0], 'thread_changed', 'a part of the thread was deleted';
        is piece($shop, $in, $copy, 1)->[0], 'thread_changed', 'it does not go on';
        is_deeply piece($shop, $other, AgentSQL::uuid(), 0, $copy), $FULL, 'no copy of another thread begins in its place';
        $changed = $copy;
    }
    threads_are($account, 4, 'two threads and both copies');
    is_deeply piece($shop, $in, AgentSQL::uuid(), 0, $_), $FULL, 'no further copy is begun, whichever it follows' for @copies;
    is_deeply piece($shop, $in, AgentSQL::uuid()), $FULL, 'another request begins none';
    sweep();
    threads_are($account, 2, 'the threads');
    is $session->value("select count(*) from agent.checkpoints where thread_id = any ('{@{[ join ',', @copies ]}}')"), 0, 'nothing is left of the copies';
    my $next = AgentSQL::uuid();
    is_deeply piece($shop, $in, $next, 0, $changed), $MORE, 'there is room again';
    is_deeply piece($shop, $in, AgentSQL::uuid(), 0, $changed), $FULL, 'for one: a copy that is gone makes no room';
    limit($account, threads => undef);
};

subtest 'the first count of an account has the copies that are under way' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 2000);
    my $copy = AgentSQL::uuid();
    is_deeply piece($shop, $in, $copy), $MORE;
    limit($account, threads => 2);
    is +($shop->api('create_thread', AgentSQL::uuid(), 'raise', '{}'))[0], 'limit_exceeded';
    threads_are($account, 2, 'the thread and its copy');
    limit($account, threads => undef);
    copied($shop, $in, $copy, 1);
    is +($shop->api('get_thread', $copy))[0], 'ok', 'a copy outlives the limit under which it began';
};

subtest 'copies that are under way together store hardly more than the limit, whatever was measured before' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 1500);
    begin_measures($account, $shop, $in);
    my $of_one = measure($account);
    cmp_ok $of_one, '>', 6_000_000;
    my $most = 4 * $of_one;
    limit($account, stored_bytes => $most);
    my @copies = map { AgentSQL::uuid() } 1 .. 10;
    my %result = map { $_ => piece($shop, $in, $_) } @copies;
    while (my @left = grep { $result{$_}[1] eq 'more' } @copies) {
        $result{$_} = piece($shop, $in, $_, 1) for @left;
    }
    my @done = grep { $result{$_}[0] eq 'ok' } @copies;
    my @refused = grep { $result{$_}[0] eq 'limit_exceeded' } @copies;
    is @done + @refused, 10, 'copies: ' . @done . ', refused: ' . @refused;
    is_deeply $result{$_}, [ 'limit_exceeded', "stored_bytes $most" ], 'refused during the copy' for @refused;
    is +($shop->api('get_thread', $_))[0], 'thread_not_found', 'a refused copy does not exist' for @refused;
    my $kept = measured($account);
    my $stored = measure($account);
    cmp_ok $stored, '<', $most + 4_000_000, "together they have stored $stored bytes, the limit is $most";
    cmp_ok abs($kept - $stored), '<', 0.1 * $stored, "the sum was known before the next measure: $kept";
    sweep();
    my $after = measure($account);
    cmp_ok $after, '<', $stored, 'what the refused ones have copied is deleted';
    is measure($account), $after, 'bytes of copies count once';
    limit($account, stored_bytes => undef);
};

subtest 'bytes that are copied during a measure are in its result' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 300);
    begin_measures($account, $shop, $in);
    my $before = measure($account);
    # At the last table: what the copy writes into earlier ones is not found.
    $session->query("update agent.account_measures set began_at = now(), sum_bytes = $before, copied_bytes = 0, at_deployment_id = '@{[ $shop->deployment ]}',
        table_number = (select max(number) from agent.list_exported_tables()), last_key = null, due_at = now() where account_id = '$account'");
    is piece($shop, $in, AgentSQL::uuid())->[0], 'ok';
    my $measured = measure($account);
    cmp_ok $measured, '>', 1.9 * $before;
    cmp_ok abs(measure($account) - $measured), '<', 0.1 * $measured, 'as the next one finds';
    limit($account, stored_bytes => undef);
};

subtest 'bytes that are copied before a measure comes to them count once' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 1500);
    begin_measures($account, $shop, $in);
    my $of_one = measure($account);
    my %places = (
        'that has only begun' => [ 'null', 'null', 'null', 0 ],
        'in an earlier table' => [ "'@{[ $shop->deployment ]}'", 10, 'null', 0 ],
        'at an earlier thread' => [ "'@{[ $shop->deployment ]}'", 11, q('{00000000-0000-0000-0000-000000000000,"",00000000-0000-0000-0000-000000000000}'), 0 ],
        'at a later thread' => [ "'@{[ $shop->deployment ]}'", 11, q('{ffffffff-ffff-ffff-ffff-ffffffffffff,"",00000000-0000-0000-0000-000000000000}'), 1 ],
        'in a later table' => [ "'@{[ $shop->deployment ]}'", 12, 'null', 1 ],
        'in a later deployment' => [ "'ffffffff-ffff-ffff-ffff-ffffffffffff'", 11, 'null', 1 ],
    );
    for my $place (sort keys %places) {
        my ($deployment, $table, $key, $is_passed) = @{ $places{$place} };
        $session->query("update agent.account_measures set began_at = now(), sum_bytes = 0, copied_bytes = 0, at_deployment_id = $deployment,
            table_number = $table, last_key = $key where account_id = '$account'");
        my $copy = AgentSQL::uuid();
        is copied($shop, $in, $copy), 'ok';
        my $copied = $session->value("select copied_bytes from agent.account_measures where account_id = '$account'");
        cmp_ok abs($copied - $is_passed * $of_one), '<', 0.1 * $of_one, "beside a measure $place: $copied";
        if ($place eq 'that has only begun') {
            my $measured = measure($account);
            cmp_ok abs(measure($account) - $measured), '<', 0.1 * $of_one, 'its result is what the next one finds';
        }
    }
    limit($account, stored_bytes => undef);
};

subtest 'a copy adds the bytes that the next measure finds, whatever the size of its rows' => sub {
    for my $bytes (32, 512, 4096) {
        my ($account, $shop) = account();
        my $in = thread_of($shop, 1500, $bytes);
        begin_measures($account, $shop, $in);
        my $before = measure($account);
        my $copy = AgentSQL::uuid();
        is copied($shop, $in, $copy), 'ok';
        my $added = measured($account) - $before;
        my $found = measure($account) - $before;
        cmp_ok abs($added - $found), '<', 0.02 * $found, "rows of $bytes bytes and more: $added, found $found";
        limit($account, stored_bytes => undef);
    }
};

subtest 'bytes of copies that were given up leave the measure with them' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 1500);
    begin_measures($account, $shop, $in);
    my $before = measure($account);
    for my $attempt (1 .. 3) {
        my $copy = AgentSQL::uuid();
        is piece($shop, $in, $copy)->[1], 'more';
        cmp_ok measured($account), '>', 1.2 * $before, 'they count';
        $session->query("update agent.threads set state_deletions = state_deletions + 1 where thread_id = '$in'");
        is piece($shop, $in, $copy, 1)->[0], 'thread_changed';
        sweep();
        is measured($account), $before, 'deleted copies leave the measure';
    }
    cmp_ok abs(measure($account) - $before), '<', 0.01 * $before, 'as the next measure finds';
    limit($account, stored_bytes => undef);
};

# Begins a measure, or continues it, until it has read 5,000 rows of which the last is of this copy.
sub measure_into {
    my ($account, $copy) = @_;
    $session->query("update agent.account_measures set began_at = now(), sum_bytes = 0, copied_bytes = 0, at_deployment_id = null, table_number = null, last_key = null
        where account_id = '$account'");
    for (1 .. 100) {
        my $at = $session->value("update agent.account_measures m set (sum_bytes, at_deployment_id, table_number, last_key) =
                (select r.sum_bytes, r.at_deployment_id, r.table_number, r.last_key from agent.measure_rows(m) r)
            where account_id = '$account' returning last_key[1]");
        return pass('a measure stands at the copy') if ($at // '') eq $copy;
    }
    return fail('a measure stands at the copy');
}

# Ends a measure that is under way; its result is the one of a measure that begins afterwards.
sub measure_is_exact {
    my ($account, $title) = @_;
    my $result = measure($account);
    my $anew = measure($account);
    cmp_ok abs($result - $anew), '<', 0.01 * $anew, "$title: $result, anew $anew";
    return;
}

subtest 'a copy counts once where a measure stands within its rows' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 6500, 64);
    begin_measures($account, $shop, $in);
    measure($account);
    my %end = (
        'it goes on and ends' => sub { copied($shop, $in, $_[0], 1) },
        'it goes on' => sub { piece($shop, $in, $_[0], 1) },
        'it is abandoned and swept' => sub { expire($_[0]); sweep() },
    );
    for my $end (sort keys %end) {
        my $copy = AgentSQL::uuid();
        my $pieces = 0;
        1 while piece($shop, $in, $copy, $pieces++)->[1] eq 'more' && $session->value("select count(*) from agent.checkpoints where thread_id = '$copy'") < 5000;
        measure_into($account, $copy);
        $end{$end}->($copy);
        measure_is_exact($account, $end);
    }
    limit($account, stored_bytes => undef);
};

subtest 'a copy that a measure has seen half deleted leaves it with what it had there' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 3000);
    begin_measures($account, $shop, $in);
    my $before = measure($account);
    my $copy = AgentSQL::uuid();
    my $pieces = 0;
    is piece($shop, $in, $copy, $pieces++)->[1], 'more' for 1 .. 3;
    my $copied = measured($account) - $before;
    expire($copy);
    is $session->value('select agent.sweep_copies()'), 1;
    cmp_ok $session->value("select count(*) from agent.checkpoints where thread_id = '$copy'"), '>', 0, 'a part is left';
    is measure($account) - $before, $copied, 'all of it counts until the last piece';
    sweep();
    is measured($account), $before, 'a deleted copy counts nothing';
    is measure($account), $before, 'as the next measure finds';
    limit($account, stored_bytes => undef);
};

subtest 'bytes that a copy has stored without a limit count with the first limit' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 3000);
    my ($abandoned, $ended) = map { AgentSQL::uuid() } 1 .. 2;
    is_deeply piece($shop, $in, $_), $MORE for $abandoned, $ended;
    begin_measures($account, $shop, $in);
    cmp_ok measured($account), '>', 4_000_000, 'before the first measure';
    copied($shop, $in, $ended, 1);
    measure_is_exact($account, 'one has ended');
    expire($abandoned);
    sweep();
    my $known = measured($account);
    is measure($account), $known, 'the other one is swept';
    limit($account, stored_bytes => undef);
};

subtest 'writes of tasks count as they are stored' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 1, 32);
    $session->query("insert into agent.checkpoint_snapshots (deployment_id, thread_id, checkpoint_ns, checkpoint_id, channels, checkpoint, metadata, created_at)
        select '@{[ $shop->deployment ]}', thread_id, '', head_checkpoint_id, '{}', '{}', '{}', now() from agent.threads where thread_id = '$in'");
    $session->query("insert into agent.checkpoint_writes (deployment_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_seq, task_path, channel, digests, is_list)
        select '@{[ $shop->deployment ]}', thread_id, '', head_checkpoint_id, 'task', n, 0, 'path', 'messages', '{}', false
          from agent.threads, generate_series(1, 3000) n where thread_id = '$in'");
    begin_measures($account, $shop, $in);
    my $before = measure($account);
    my $copy = AgentSQL::uuid();
    is copied($shop, $in, $copy), 'ok';
    is $session->value("select count(*) from agent.checkpoint_writes where thread_id = '$copy'"), 3000;
    my $added = measured($account) - $before;
    my $found = measure($account) - $before;
    cmp_ok abs($added - $found), '<', 0.1 * $found, "added $added, found $found";
    limit($account, stored_bytes => undef);
};

subtest 'the pending writes of a copy count as they are stored' => sub {
    my ($account, $shop) = account();
    my $in = thread_of($shop, 1, 32);
    $session->query("insert into agent.checkpoint_tasks (deployment_id, thread_id, checkpoint_id, task_id, run_id, checkpoint_ns, task, saved_at)
        select '@{[ $shop->deployment ]}', thread_id, head_checkpoint_id, agent.pending_id(), thread_id, '', json_build_object('values',
            json_build_object('text', (select string_agg(md5(i::text), '') from generate_series(1, 30000) i)), 'next', '[]'::json), now()
          from agent.threads where thread_id = '$in'");
    begin_measures($account, $shop, $in);
    my $before = measure($account);
    my $copy = AgentSQL::uuid();
    is copied($shop, $in, $copy), 'ok';
    my $added = measured($account) - $before;
    my $found = measure($account) - $before;
    cmp_ok $found, '>', 900_000;
    cmp_ok abs($added - $found), '<', 0.1 * $found, "added $added, found $found";

    for my $place ([ 'before', 9, 0 ], [ 'after', 13, 1 ]) {
        my ($word, $table, $is_passed) = @$place;
        $session->query("update agent.account_measures set began_at = now(), sum_bytes = 0, copied_bytes = 0, at_deployment_id = '@{[ $shop->deployment ]}',
            table_number = $table, last_key = null where account_id = '$account'");
        is copied($shop, $in, AgentSQL::uuid()), 'ok';
        my $copied = $session->value("select copied_bytes from agent.account_measures where account_id = '$account'");
        cmp_ok abs($copied - $is_passed * $found), '<', 0.1 * $found, "beside a measure that stands $word them: $copied";
    }
    limit($account, stored_bytes => undef);
};

done_testing;
