# SPDX-License-Identifier: Apache-2.0
# Runs with large states or output, and the limit of their cost to the
# supervisor.
package TestLarge;
use strict;
use warnings;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Wait;
use Exporter 'import';
use Test::More;
use TestSupervisor;

our @EXPORT = qw(create_large_runs patient_timing is_linear last_end hold_output $MB);

our $MB = 1024 * 1024;

# Creates $count threads with one run each. The state of a thread has $messages
# messages of $bytes, 10 KB by default: strings, or with chat => 1 the objects of
# a conversation. Other arguments are those of create_run.
sub create_large_runs {
    my ($count, $messages, $input, %args) = @_;
    my $bytes = delete $args{bytes} // 10_000;
    my $content = !delete $args{chat} ? "to_json(repeat('x', $bytes) || n)::text"
        : "json_build_object('type', 'human', 'content', repeat('x', $bytes - 150), 'id', n::text, 'name', null, "
        . "'additional_kwargs', '{}'::json, 'response_metadata', '{}'::json, 'example', false)::text";
    my @threads = map { uuid() } 1 .. $count;
    sql(join '; ', map { "select code from agent.create_thread('$TestSupervisor::DEPLOYMENT', '$_', 'raise', '{}')" } @threads);
    my $list = join ', ', map { "('$_'::uuid)" } @threads;
    sql(<<"SQL");
        with k (thread_id) as (values $list),
        b as (
            insert into agent.checkpoint_items (deployment_id, thread_id, list_id, position, elements, end_bytes, content)
            select '$TestSupervisor::DEPLOYMENT', k.thread_id, 1, c.n - 1, 1, c.n * $bytes, c.content
              from k
             cross join lateral (
                    select n, $content as content
                      from generate_series(1, $messages) n
                   ) c
            returning thread_id
        ),
        c as (
            insert into agent.checkpoints (deployment_id, thread_id, checkpoint_ns, checkpoint_id, run_id, channels, next, tasks,
                metadata, state_bytes, created_at)
            select '$TestSupervisor::DEPLOYMENT', b.thread_id, '', b.thread_id, b.thread_id,
                   array[row('messages', $messages, $messages * $bytes, '{1}', array[$messages], 0, null)::agent.channel_value],
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

# For runners that write or read megabytes before they answer a ping. Used with
# a lease of 240 s, so that no statement times out while a test locks rows: a
# busy machine takes long to write 32 MB.
sub patient_timing { return { %{ fast_timing() }, ping_timeout => 60_000 } }

# Tests that a cost is at most a second and 50 ns a byte: five times the usual,
# since other processes share the caches.
sub is_linear {
    my ($cost, $bytes, $title) = @_;
    note sprintf 'processor %.2f s', $cost->{cpu_sec};
    return cmp_ok $cost->{cpu_sec}, '<', (1 + 50e-9 * $bytes) * memory_scale(), $title;
}

# When the last of these runs ended, in seconds.
sub last_end {
    return sql('select extract(epoch from max(finished_at)) from agent.runs where run_id in (' . quoted(@_) . ')');
}

# Opens the gate of runs whose output cannot be saved until release_lock().
sub hold_output {
    my ($gate, @runs) = @_;
    my $lock = hold_lock('select from agent.run_queue where run_id in (' . quoted(@runs) . ') for update');
    open_gate($gate);
    wait_blocked('save_batch');
    return $lock;
}

1;
