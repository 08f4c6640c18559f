# SPDX-License-Identifier: Apache-2.0
# Runners that send lines by the thousand, odd ones and then a breach of the protocol: each is ended, the supervisor and
# an honest run continue. Others send one line each that differs from a valid one in a member: of runs, of their requests to
# the store, and of calls. AGENT_TEST_LONG=1 (make faults-long) sends a million lines, each breach with each message, and
# all of these forms.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized);
use AgentTest::Wait;
use Cpanel::JSON::XS qw(encode_json);
use File::Temp qw(tempdir);
use HostileLines qw(odd_lines refused_line breaches forms store_forms call_forms sequences);
use List::Util qw(max min);
use Test::More;
use TestSupervisor;

use constant POOLS => $ENV{AGENT_TEST_LONG} ? 80 : 20;
# How often a runner sends all odd lines.
use constant TIMES => $ENV{AGENT_TEST_LONG} ? 2 : 1;
# The suite takes each 61st form: a prime, unlike the number of forms of a member.
use constant STEP => $ENV{AGENT_TEST_LONG} ? 1 : 61;

my $pg = start_cluster();
my %ids = map { ("h$_" => sql("select agent.ensure_deployment('h$_')")) } 1 .. POOLS;
my @names = sort keys %ids;
my $dir = tempdir('/tmp/agent-test-lines.XXXXXX', CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!";

my $sv = TestSupervisor->start($pg,
    graphs => { agent => {}, map { ("$_/agent" => {}) } @names },
    pools => { map { $_ => { runner => scripted_runner('hostile_runner.pl'), slots => 1 } } @names },
    # Runners do not answer while they attack.
    timing_ms => { %{ fast_timing() }, ping_interval => 3_600_000, cancel_grace => 600_000 });
$sv->wait_runners(1 + POOLS);

sub count_breaches { return scalar(() = $sv->log_text =~ /AGT0332/g) }

my $files = 0;
my ($sent, %distinct) = (0);

sub lines_file {
    my (@lines) = @_;
    my $path = "$dir/" . ++$files;
    open my $file, '>:raw', $path or die "$path: $!";
    print {$file} map { "$_\n" } @lines;
    close $file or die "$path: $!";
    $distinct{$_} = 1 for @lines;
    return $path;
}

# The arguments of create_run for a run that sends these lines.
sub hostile_run {
    my ($deployment, $lines, %how) = @_;
    $sent += @{$lines};
    return [ { path => lines_file(@{$lines}), %how }, deployment => $ids{$deployment} ];
}

my @odd = odd_lines();
my $odd = lines_file(@odd);
my @events = odd_lines('event');

# The database refuses the first line: the others are about a run that the
# runner has lost.
sub lose_and_break {
    my ($deployment, $breach) = @_;
    $sent += TIMES * @odd;
    return hostile_run($deployment, [ refused_line(), $breach ], odd => $odd, times => TIMES, breach => \1);
}

sub store_and_break { return hostile_run($_[0], [ @events, $_[1] ], breach => \1) }

my $gate = make_gate();
my $honest = $sv->start_run({ do => 'gate', path => $gate, count => 1000 });
my @left = breaches($ENV{AGENT_TEST_LONG});
my ($total, @expected, @kb) = (0);
while (my @wave = splice @left, 0, POOLS) {
    my $kept = int((@wave + 3) / 4);
    my @runs = create_all(map { $_ < $kept ? store_and_break($names[$_], $wave[$_][0]) : lose_and_break($names[$_], $wave[$_][0]) }
        0 .. $#wave);
    $sv->wake;
    $total += @wave;
    push @expected, map { $_->[1] } @wave;
    wait_for("$total runners to be ended", sub { count_breaches() >= $total });
    wait_all_final('success', @runs[ 0 .. $kept - 1 ]);
    wait_all_final('error', @runs[ $kept .. $#runs ]) if $kept < @runs;
    wait_status(create_run({ do => 'noop' }), 'success');
    push @kb, $sv->memory;
}
is count_breaches(), $total, 'each runner that breaks the protocol is ended, and logged once';
my @reasons = $sv->log_text =~ /AGT0332: runner \d+ broke the protocol \((.*?)\): it is killed/g;
my @unlogged;
for my $reason (@expected) {
    my ($at) = grep { $reasons[$_] =~ $reason } 0 .. $#reasons;
    if (defined $at) { splice @reasons, $at, 1 }
    else             { push @unlogged, $reason }
}
is "@unlogged @reasons", ' ', 'the log names the reason of each';

SKIP: {
    skip 'a sanitizer keeps freed memory', 1 if is_sanitized();
    my ($first, $last) = (max(@kb[ 0 .. @kb / 3 ]), min(@kb[ -@kb / 3 .. -1 ]));
    cmp_ok $last, '<', $first + 2048, 'the memory of the supervisor does not grow';
}

# Whether a run has been executed twice: its runner was ended.
sub broken_of {
    my (@runs) = @_;
    my %attempts = map { split /\t/ } sql('select run_id, attempts from agent.usage_events where run_id in (' . quoted(@runs) . ')');
    return map { ($attempts{$_} // 0) > 1 ? 1 : 0 } @runs;
}

sub wait_all_over {
    my (@runs) = @_;
    my $list = quoted(@runs);
    return wait_for('all runs to be final', sub {
        poll("select count(*) from agent.runs where finished_at is not null and run_id in ($list)") == @runs;
    }, 600);
}

my @all = (forms(), store_forms());
my @forms = map { $all[ $_ * STEP ] } 0 .. $#all / STEP;
my (@runs, @broken);
for (my $from = 0; $from < @forms; $from += 1000) {
    my $to = min($from + 999, $#forms);
    @runs = create_all(map { hostile_run($names[ $_ % POOLS ], [ $forms[$_][0] ], is_end => $forms[$_][2] ? \1 : \0,
        awaits => $forms[$_][3] ? \1 : \0) } $from .. $to);
    $sv->wake;
    wait_all_over(@runs);
    push @broken, broken_of(@runs);
}
my @other = grep { defined $forms[$_][1] && $broken[$_] != $forms[$_][1] } 0 .. $#forms;
is_deeply [ map { ($broken[$_] ? 'ended: ' : 'taken: ') . substr $forms[$_][0], 0, 300 } @other ], [],
    'a line that differs in a member ends its runner or is taken, as the protocol says';
my $ended = grep { $_ } @broken;
cmp_ok $ended, '>', @forms / 2, 'most forms are breaches';
cmp_ok $ended, '<', @forms, 'some forms are not breaches';

# ---- calls ----

# The leases under which they ended: their rows are deleted a minute later.
sql('create table ended_calls (call_id uuid primary key, epoch integer);
    create function note_end() returns trigger language plpgsql security definer set search_path = public as $$ begin
        insert into ended_calls values (new.call_id, new.epoch); return null; end $$;
    create trigger note_end after update of finished_at on agent.calls for each row execute function note_end();
    create function create_call(uuid, uuid, text, jsonb) returns text language sql as $$
        insert into agent.calls (deployment_id, call_id, thread_id, graph_id, op, arguments, config, created_at, deadline_at)
        values ($1, $2, $2, \'agent\', $3, \'{}\', $4, now(), now() + interval \'1 hour\');
        insert into agent.run_queue (deployment_id, run_id, thread_id, thread_seq, graph_id, state, ready_seq, events_bucket, op)
        values ($1, $2, $2, 0, \'agent\', \'ready\', nextval(\'agent.run_ready_seq\'), current_date, $3) returning \'ok\' $$');

# A call whose runner sends this line: (its id, the statement that creates it).
sub hostile_call {
    my ($deployment, $op, $line, $is_end) = @_;
    my ($call, $id, $thread) = (uuid(), $ids{$deployment}, uuid());
    my $input = { path => lines_file($line), is_end => $is_end ? \1 : \0 };
    $sent++;
    return [ $call, "select create_call('$id', '$call', '$op', " . literal(encode_json({ configurable => $input })) . ')' ] if $op ne 'update';
    return [ $call, "select code from agent.create_thread('$id', '$thread', 'raise', '{\"metadata\":{\"graph_id\":\"agent\"}}'); "
        . "select code from agent.update_state('$id', '$thread', '$call', 'u1', 3600, " . literal(encode_json({ values => $input })) . ')' ];
}

# Of the suite, one line of each type too.
my @all_calls = call_forms();
my @calls = map { $all_calls[$_] } STEP == 1 ? () : (0 .. 32), grep { $_ % STEP == 0 } 0 .. $#all_calls;
my %ended_calls;
while (my @wave = splice @calls, 0, 1000) {
    my @made = map { hostile_call($names[ $_ % POOLS ], @{ $wave[$_] }[ 0, 1, 3 ]) } 0 .. $#wave;
    my @statements = map { "begin; $_->[1]; commit;" } @made;
    my @wrong;
    while (my @some = splice @statements, 0, 100) { push @wrong, grep { $_ ne 'ok' } sql("@some") }
    is "@wrong", '', 'the calls are created';
    $sv->wake;
    wait_for('all calls to end', sub { poll('select count(*) from agent.run_queue where op is not null') == 0 }, 600);
    my %epochs = map { split /\t/ } sql('select call_id, epoch from ended_calls where call_id in (' . quoted(map { $_->[0] } @made) . ')');
    is scalar keys %epochs, scalar @made, 'each has a result';
    $ended_calls{ $wave[$_][0] . ' ' . $wave[$_][1] } = [ $wave[$_][2], $epochs{ $made[$_][0] } > 1 ? 1 : 0 ] for 0 .. $#wave;
}
@other = grep { defined $ended_calls{$_}[0] && $ended_calls{$_}[0] != $ended_calls{$_}[1] } sort keys %ended_calls;
is_deeply [ map { ($ended_calls{$_}[1] ? 'ended: ' : 'taken: ') . substr $_, 0, 300 } @other ], [],
    'a line of a call ends its runner or is taken, as the protocol says';
my $ended_by_calls = grep { $_->[1] } values %ended_calls;

# One of each runner: a breach after the end of a run would count for the next one.
my @sequences = sequences();
my @wrong;
while (my @wave = splice @sequences, 0, POOLS) {
    my $breaches = count_breaches();
    @runs = create_all(map { hostile_run($names[$_], $wave[$_][0], is_end => $wave[$_][1] ? \1 : \0) } 0 .. $#wave);
    $sv->wake;
    wait_all_over(@runs);
    my @is_broken = broken_of(@runs);
    my @outcomes = map { status_of($runs[$_]) . ($is_broken[$_] ? ' ended' : '') } 0 .. $#wave;
    push @wrong, map { "$outcomes[$_]: @{ $wave[$_][0] }" } grep { $outcomes[$_] !~ ($wave[$_][2] // qr/\Asuccess\z/) } 0 .. $#wave;
    # Each line after an end ends the runner, and no attempt of a run counts.
    $breaches += grep { $_ } @is_broken, map { $_->[1] } @wave;
    wait_for('the runners to be ended', sub { count_breaches() >= $breaches });
    is count_breaches(), $breaches, 'no other runner is ended';
}
is_deeply [ map { substr $_, 0, 300 } @wrong ], [], 'lines in a wrong order end their run, or the runner, or are taken, as the protocol says';
note "$sent lines, ", scalar keys %distinct, " distinct ones; $total runners ended by breaches, $ended by ", scalar @forms, ' forms of ', scalar @all,
    ", $ended_by_calls by ", scalar keys %ended_calls, ' lines of calls of ', scalar @all_calls, "; private memory of the supervisor: @kb KB";

open_gate($gate);
wait_status($honest, 'success');
is attempts_of($honest), 1, 'an honest run beside them ends at its first attempt';
is $sv->stop, 0, 'the supervisor exits with status 0';

done_testing;
