# SPDX-License-Identifier: Apache-2.0
# Workers that continue to write after their leases were taken away: none of it may be stored, and every
# acknowledged write must be.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use AgentSQL;
use AgentSQL::Program;

my $zombies = AgentSQL::Program->build('zombies.c');
my $db = AgentSQL->new;
my $session = $db->session;

# Records the transaction that ended each lease, to compare commit times with it.
$session->query($_) for
    'create table public.stress_log (run_id uuid, epoch integer, token bigint, outcome text)',
    'create table public.fences (run_id uuid, epoch integer)',
    'create function public.note_fence() returns trigger language plpgsql as $$
        begin insert into public.fences values (old.run_id, old.epoch); return null; end $$',
    "create trigger note_fence after update on agent.run_queue for each row
        when (old.state = 'leased' and new.state <> 'leased') execute function public.note_fence()";

my $runs = $ENV{AGENT_ZOMBIE_RUNS} || 2000;
my ($status, $stolen) = $zombies->run($db, $runs, 8);
is $status, 0 or BAIL_OUT($stolen);
chomp $stolen;

cmp_ok $stolen, '>', $runs / 20, "leases were stolen ($stolen)";
cmp_ok $session->value("select count(*) from stress_log where outcome = 'fenced'"), '>', $stolen / 20,
    'former holders of leases continued to write';

sub none { is $session->value("select count(*) from $_[0]"), 0, $_[1] }

none("agent.runs where status <> 'success'", 'every run reached its final status');
none("agent.threads where status <> 'idle'", 'every thread is idle again');
none('agent.runs r where (select count(*) from agent.usage_events u where u.run_id = r.run_id) <> 1',
    'every run ended once');
none("agent.runs r where not exists (select from agent.webhook_outbox o
    where o.run_id = r.run_id and o.body::json ->> 'status' = r.status)", 'every ended run has its webhook');
none("stress_log l where outcome = 'saved' and not exists (
    select from agent.run_events e where e.run_id = l.run_id and e.epoch = l.epoch and e.data = l.token::text)",
    'every acknowledged event is stored');
none("agent.run_events e where not exists (
    select from stress_log l where l.outcome = 'saved' and l.run_id = e.run_id and l.token::text = e.data)",
    'no other event is stored');
none("stress_log l where outcome = 'fenced' and exists (
    select from agent.checkpoints c where c.checkpoint_id =
        ('00000000-0000-7000-8000-' || lpad(to_hex(l.token), 12, '0'))::uuid)",
    'no checkpoint of a fenced writer is stored');
none('(select count(*) as n, min(seq) as low, max(seq) as high from agent.run_events group by run_id) x
    where low <> 0 or high <> n - 1', 'the events of each run are numbered without gap');
none('agent.runs r join (select run_id, max(seq) as seq from agent.run_events group by run_id) e using (run_id)
    where r.last_event_seq <> e.seq', 'the record has the number of the last event');
none('(select epoch < lag(epoch) over (partition by run_id order by seq) as back from agent.run_events) x where back',
    'attempts do not interleave');
none('(select finished_at < lag(finished_at) over (partition by thread_id order by thread_seq) as back
    from agent.runs) x where back', 'the runs of each thread ended in order');

SKIP: {
    skip 'needs track_commit_timestamp', 1 if $session->value('show track_commit_timestamp') ne 'on';
    none('agent.run_events e join fences f on f.run_id = e.run_id and f.epoch = e.epoch
        where pg_xact_commit_timestamp(e.xmin) > pg_xact_commit_timestamp(f.xmin)',
        'no event was committed after its lease ended');
}

done_testing;
