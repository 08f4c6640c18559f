# SPDX-License-Identifier: Apache-2.0
# Runs that are large or slow, and the bound of their cost to the supervisor.
package TestLarge;
use strict;
use warnings;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Wait;
use Exporter 'import';
use Test::More;
use TestSupervisor;

our @EXPORT = qw(create_large_runs patient_timing is_linear last_end start_run wait_running
    lock_out cancel $MB);

our $MB = 1024 * 1024;

# Threads whose state has so many messages of 10 KB, with one run each. With
# chat => 1 they are those of a conversation, $bytes long each; other arguments
# are those of create_run.
sub create_large_runs {
    my ($count, $messages, $input, %args) = @_;
    my $bytes = delete $args{bytes} // 10_000;
    my $content = !delete $args{chat} ? "to_json(repeat('x', $bytes) || n)::text"
        : "json_build_object('type', 'human', 'content', repeat('x', $bytes - 150), 'id', n::text, 'name', null, "
        . "'additional_kwargs', '{}'::json, 'response_metadata', '{}'::json, 'example', false)::text";
    my @threads = map { uuid() } 1 .. $count;
    sql(join '; ', map { "select code from agent.create_thread('$TestSupervisor::ACCOUNT', '$_', 'raise', '{}')" } @threads);
    my $list = join ', ', map { "('$_'::uuid)" } @threads;
    sql(<<"SQL");
        with k (thread_id) as (values $list),
        b as (
            insert into agent.checkpoint_blobs (account_id, thread_id, digest, content)
            select '$TestSupervisor::ACCOUNT', k.thread_id, agent.digest_text(c.content), c.content
              from k
             cross join lateral (
                    select $content as content
                      from generate_series(1, $messages) n
                   ) c
            returning thread_id, digest
        ),
        c as (
            insert into agent.checkpoints (account_id, thread_id, checkpoint_id, run_id, channels, next, tasks,
                metadata, state_bytes, created_at)
            select '$TestSupervisor::ACCOUNT', b.thread_id, b.thread_id, b.thread_id,
                   array[row('messages', true, array_agg(b.digest))::agent.channel_value],
                   '[]', '[]', '{}', $messages * $bytes, now()
              from b
             group by b.thread_id
            returning thread_id
        )
        update agent.threads t
           set head_checkpoint_id = c.thread_id, head_run_id = c.thread_id
          from c
         where t.thread_id = c.thread_id
SQL
    return create_all(map { [ $input, %args, thread => $_ ] } @threads);
}

# Their runners have megabytes to write, or to read, before they answer a ping.
# Used with a lease of 240 s, so that no statement times out while a test locks
# rows: a busy machine takes long to write 32 MB.
sub patient_timing { return { %{ fast_timing() }, ping_timeout => 60_000 } }

# At most a second, and 50 ns for each byte: five times the usual, since other
# processes share the caches.
sub is_linear {
    my ($cost, $bytes, $title) = @_;
    note sprintf 'processor %.2f s', $cost->{cpu_sec};
    return cmp_ok $cost->{cpu_sec}, '<', (1 + 50e-9 * $bytes) * memory_scale(), $title;
}

# When the last of them ended, in seconds.
sub last_end {
    return sql('select extract(epoch from max(finished_at)) from agent.runs where run_id in (' . quoted(@_) . ')');
}

sub cancel {
    my ($sv, @runs) = @_;
    sql("select x.code from agent.runs r cross join lateral agent.cancel_run('$TestSupervisor::ACCOUNT', r.thread_id, "
        . "r.run_id, 'interrupt') x where r.run_id in (" . quoted(@runs) . ')');
    return $sv->wake('C');
}

# The runs send 7 MB each, which cannot be saved until the lock is closed.
sub lock_out {
    my ($gate, @runs) = @_;
    open my $lock, '|-', 'psql', '-Xq', '-o', '/dev/null' or die "psql: $!\n";
    # The comment: pg_stat_activity shows only the first kilobyte of a query.
    print {$lock} 'begin; select /* for update */ from agent.run_queue where run_id in (' . quoted(@runs) . ") for update;\n";
    $lock->flush;
    wait_for('the lock', sub {
        sql("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%for update%'");
    });
    open_gate($gate);
    wait_for('the first to wait for it', sub {
        sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%save_batch%'");
    });
    return $lock;
}

sub wait_running {
    my (@runs) = @_;
    return wait_for('all to run', sub {
        @runs == sql('select count(*) from agent.run_events where seq = 1 and run_id in (' . quoted(@runs) . ')');
    });
}

sub start_run {
    my ($sv, $input) = @_;
    my $run = create_run($input);
    $sv->wake;
    wait_running($run);
    return $run;
}

1;
