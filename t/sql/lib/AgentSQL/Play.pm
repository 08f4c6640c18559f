# SPDX-License-Identifier: Apache-2.0
# Plays a client and a worker in one session.
package AgentSQL::Play;

use strict;
use warnings;

use Digest::SHA ();
use AgentSQL;

sub new {
    my ($class, $session, %options) = @_;
    # The database of a server has no function for tests.
    $session->query("\\i $AgentSQL::ROOT/t/sql/lib/save_items.sql\nselect 1")
        if $session->value("select to_regproc('public.save_items') is null") eq 't';
    return bless { session => $session, deployment => $AgentSQL::DEPLOYMENT, %options }, $class;
}

sub session { return $_[0]{session} }
sub deployment { return $_[0]{deployment} }

# ---- client ----

sub thread {
    my ($self, %request) = @_;
    return $self->thread_with(undef, %request);
}

# A thread of a server with that AgentThreadTTL.
sub thread_with {
    my ($self, $ttl, %request) = @_;
    my $id = AgentSQL::uuid();
    my ($code, $body) = $self->{session}->call(
        'create_thread', $self->{deployment}, $id, 'raise', AgentSQL::encode(\%request), $ttl);
    die "create_thread: $code" if $code ne 'ok';
    return $id;
}

# (code, body, run_id); request is a hash or the exact text.
sub try_run {
    my ($self, $thread, %with) = @_;
    my $run = $with{run} || AgentSQL::uuid();
    my $request = defined $with{request} ? $with{request} : {};
    my ($code, $body) = $self->{session}->call(
        'create_run', $self->{deployment}, $thread, $run,
        $with{assistant} || $AgentSQL::ASSISTANT,
        exists $with{graph} ? $with{graph} : 'agent', $with{graphs} || ['agent'],
        $with{strategy} || 'enqueue', $with{user}, $with{key}, $with{hash},
        ref $request ? AgentSQL::encode($request) : $request, $with{feedback}, $with{before}, $with{ttl}, $with{headers});
    return ($code, $body, $run);
}

sub run {
    my ($self, $thread, %with) = @_;
    my ($code, $body, $run) = $self->try_run($thread, %with);
    die "create_run: $code" if $code ne 'ok';
    return $run;
}

# A run without a thread: (code, body, run_id, thread_id).
sub try_stateless {
    my ($self, %with) = @_;
    my ($thread, $run) = map { AgentSQL::uuid() } 1, 2;
    my ($code, $body) = $self->{session}->call(
        'create_stateless_run', $self->{deployment}, $thread, $run,
        $with{assistant} || $AgentSQL::ASSISTANT,
        exists $with{graph} ? $with{graph} : 'agent', ['agent'],
        $with{user}, $with{key}, $with{hash},
        AgentSQL::encode($with{request} || {}), $with{feedback}, $with{ttl}, $with{headers});
    return ($code, $body, $run, $thread);
}

# (thread_id, run_id) of one.
sub stateless {
    my ($self, %request) = @_;
    my ($code, undef, $run, $thread) = $self->try_stateless(request => \%request);
    die "create_stateless_run: $code" if $code ne 'ok';
    return ($thread, $run);
}

# A batch of runs without a thread: (code, body, run_ids, thread_ids).
sub try_batch {
    my ($self, @requests) = @_;
    my (@threads, @runs);
    push @threads, AgentSQL::uuid() and push @runs, AgentSQL::uuid() for @requests;
    my @assistants = map { $_->{assistant_id} || $AgentSQL::ASSISTANT } @requests;
    my ($code, $body) = $self->{session}->call(
        'create_stateless_runs', $self->{deployment}, \@threads, \@runs, \@assistants,
        [ map { $_ eq $AgentSQL::ASSISTANT ? 'agent' : '' } @assistants ], ['agent'], 'u1',
        AgentSQL::encode(\@requests), undef);
    return ($code, $body, \@runs, \@threads);
}

# Calls a function of the API with the deployment first: (code, body), the body decoded when it is JSON.
sub api {
    my ($self, $name, @arguments) = @_;
    my ($code, $body) = $self->{session}->call($name, $self->{deployment}, @arguments);
    $body = AgentSQL::decode($body) if $code eq 'ok' && $body =~ /^[\[{"]/;
    return ($code, $body);
}

# Only the body.
sub body {
    my ($self, @call) = @_;
    return ($self->api(@call))[1];
}

# The status that the API shows, or the code when there is no such run.
sub status {
    my ($self, $thread, $run) = @_;
    my ($code, $body) = $self->api('get_run', $thread, $run);
    return $code eq 'ok' ? $body->{status} : $code;
}

sub thread_status {
    my ($self, $thread) = @_;
    return $self->body('get_thread', $thread)->{status};
}

# The contents of the messages in the current state.
sub messages {
    my ($self, $thread) = @_;
    my $state = $self->body('get_state', $thread, undef);
    return [ map { $_->{content} } @{ $state->{values}{messages} || [] } ];
}

sub join {
    my ($self, $thread, $run) = @_;
    return $self->{session}->call('join_run', $self->{deployment}, $thread, $run);
}

sub events {
    my ($self, $thread, $run, $after) = @_;
    return $self->{session}->query(sprintf(
        "select seq, event, data from agent.read_events('%s', '%s', '%s', %d, 1000) where event is not null",
        $self->{deployment}, $thread, $run, defined $after ? $after : -1));
}

# Rows of read_events: seq, event, data, status, more.
sub poll {
    my ($self, $thread, $run, $after, %with) = @_;
    return $self->{session}->query(sprintf(
        "select seq, event, data, status, more from agent.read_events('%s', '%s', '%s', %d, %d, %s)",
        $self->{deployment}, $thread, $run, $after, $with{limit} || 1000,
        AgentSQL::Session::literal($with{events})));
}

# Rows of read_thread_events after an id: id, run_id, event, data, status, checkpoint_id, more.
sub thread_events {
    my ($self, $thread, $after, %with) = @_;
    my ($run, $seq) = ($after || '0--1') =~ /^(\d+)-(-?\d+)$/;
    return $self->{session}->query(sprintf(
        "select id, run_id, event, data, status, checkpoint_id, more from agent.read_thread_events('%s', '%s', %d, %d, %d, %s)",
        $self->{deployment}, $thread, $run, $seq, $with{limit} || 1000,
        AgentSQL::Session::literal($with{events})));
}

# The queue row of a run as a hash, undef for none.
sub queue {
    my ($self, $run) = @_;
    my $text = $self->{session}->value("select row_to_json(q) from agent.run_queue q where run_id = '$run'");
    return defined $text ? AgentSQL::decode($text) : undef;
}

# The rows of the deployment: table => their number and a digest.
sub rows {
    my ($self) = @_;
    my @tables = map { $_->[0] } $self->{session}->query("select c.relname from pg_class c
          join pg_attribute a on a.attrelid = c.oid and a.attname = 'deployment_id'
         where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition");
    return { map { $_ => $self->{session}->value("select count(*) || ' ' || md5(coalesce(string_agg(x::text, '|' order by x::text), ''))
            from agent.$_ x where deployment_id = '$self->{deployment}'") } @tables };
}

# ---- worker ----

sub worker {
    my ($self, %with) = @_;
    return $self->{session}->value(sprintf(
        "select worker_id from agent.register_worker('%s', 'boot', %d, %d, 10, %d, '{default}', '{agent}')",
        $with{node} || 'node', $with{pid} || 1, $with{pid_start} || 1, $with{lease_sec} || 20));
}

# Claimed runs as hashes, of this deployment or of those whose ids are given, of each at most limit, or one
# of limits; all together at most most. accounts, running: of the pool of each deployment.
sub claim {
    my ($self, $worker, %with) = @_;
    my @deployments = @{ $with{deployments} // [ $self->{deployment} ] };
    my $limit = $with{limit} // 50;
    my @limits = @{ $with{limits} // [ ($limit) x @deployments ] };
    return map { AgentSQL::decode($_->[0]) } $self->{session}->query(sprintf(
        "select row_to_json(c) from (
            select array_agg(d.deployment_id) as ids, array_agg(g) as graphs, array_agg(%d::bigint) as marks,
                   array_agg(d.pool::integer) as pools
              from unnest('{%s}'::uuid[]) with ordinality d (deployment_id, pool), unnest('%s'::text[]) g) k
         cross join lateral agent.claim_runs(%d, k.ids, k.graphs, k.marks, k.pools, '{%s}', '{%s}', %d, %d,
                   '{%s}', '{%s}') c",
        $with{min} || 0, CORE::join(',', @deployments), $with{graphs} || '{agent}', $worker, CORE::join(',', @limits),
        CORE::join(",", ($with{quarantined} // 16) x @deployments), $with{most} // ($limit || 16), $with{max_bytes} // 1_000_000,
        CORE::join(',', @{ $with{accounts} // [] }), CORE::join(',', @{ $with{running} // [] })));
}

# The values of the checkpoint from which a claimed run starts, as its runner
# reads them; {} without one.
sub start_values {
    my ($self, $claim) = @_;
    my $id = (AgentSQL::decode($claim->{start})->{checkpoint} // return {})->{checkpoint_id};
    my @rows = $self->{session}->query(
        "select body from agent.read_state('$claim->{deployment_id}', '$claim->{thread_id}', '$id', null, 100000000)");
    my %values = %{ AgentSQL::decode(CORE::join '', map { $_->[0] } @rows)->{values} };
    for my $value (values %values) {
        $value = $value->{'$list'}{items} if ref $value eq 'HASH' && $value->{'$list'};
    }
    return \%values;
}

# Creates a run, claims what is ready, and returns the claim of that run.
sub leased {
    my ($self, $worker, $thread, %with) = @_;
    my $run = $self->run($thread, %with);
    my ($claim) = grep { $_->{run_id} eq $run } $self->claim($worker);
    return $claim // die "run $run cannot be claimed\n";
}

# Claims and ends all runs that are ready, with status success.
sub finish_all {
    my ($self, $worker) = @_;
    while (my @claims = $self->claim($worker)) {
        $self->save($worker, map { finish($_) } @claims);
    }
    return;
}

# Sends a batch; returns {run_id => [outcome, finished]}.
sub save {
    my ($self, $worker, @items) = @_;
    my $text = AgentSQL::Session::literal(AgentSQL::encode(\@items));
    return { map { $_->[0] => [ $_->[1], $_->[2] ] }
            $self->{session}->query("select * from public.save_items($worker, $text)") };
}

# {run_id => outcome} of release_runs.
sub release {
    my ($self, $worker, $counted, @runs) = @_;
    my $items = AgentSQL::encode([ map { item($_) } @runs ]);
    return { map { @$_ } $self->{session}->query(
            "select run_id, outcome from agent.release_runs($worker, '$items', $counted, 'its runner was killed', null)") };
}

# {run_id => outcome} of check_leases.
sub check {
    my ($self, $worker, @runs) = @_;
    my $items = AgentSQL::encode([ map { item($_) } @runs ]);
    return { map { @$_ } $self->{session}->query("select run_id, outcome from agent.check_leases($worker, '$items', null)") };
}

# The leases of the worker other than these, as rows of claim.
sub unknown {
    my ($self, $worker, @runs) = @_;
    my $items = AgentSQL::encode([ map { item($_) } @runs ]);
    my @rows = $self->{session}->query("select deployment_id, run_id, epoch, outcome from agent.check_leases($worker, '[]', '$items')");
    return map { { deployment_id => $_->[0], run_id => $_->[1], epoch => $_->[2] } } grep { $_->[3] eq 'unknown' } @rows;
}

# ---- items of a batch; $claim is a row of claim ----

sub item {
    my ($claim, %more) = @_;
    return { d => $claim->{deployment_id}, r => $claim->{run_id}, e => $claim->{epoch}, %more };
}

sub event {
    my ($claim, $seq, $event, $data) = @_;
    return item($claim, s => $seq, type => 'event', event => $event, data => $data);
}

sub values_event {
    my ($claim, $seq, $checkpoint) = @_;
    return item($claim, s => $seq, type => 'event', event => 'values', checkpoint_id => $checkpoint);
}

# As long as real ones: an array of shorter elements is not split.
sub human { return { type => 'human', content => $_[0], additional_kwargs => {}, response_metadata => {} } }

# %with: ns, id, parent, messages (texts), values, next, tasks, step, source, writes, parents
sub checkpoint {
    my ($claim, %with) = @_;
    my $values = $with{values} || { messages => [ map { human($_) } @{ $with{messages} || [] } ] };
    return item($claim, s => undef,
        type => 'checkpoint',
        ns => $with{ns},
        checkpoint_id => $with{id} || AgentSQL::uuid(),
        parent => $with{parent},
        values => $values,
        next => $with{next} || [],
        tasks => $with{tasks} || [],
        metadata => {
            source => $with{source} || 'loop',
            step => defined $with{step} ? $with{step} : 1,
            writes => $with{writes},
            parents => $with{parents} || {},
        },
        format => $with{format});
}

# The digest of a value, as the protocol has it.
sub digest {
    my ($type, $bytes) = @_;
    return substr(Digest::SHA::sha256_hex("$type\n$bytes"), 0, 32) =~ s/^(.{8})(.{4})(.{4})(.{4})/$1-$2-$3-$4-/r;
}

# A value of type json: (its digest, its item).
sub blob {
    my ($claim, $text) = @_;
    my $digest = digest('json', $text);
    return ($digest, item($claim, s => undef, type => 'blob', digest => $digest, value_type => 'json', text => $text));
}

# %with: ns, id, parent, checkpoint, metadata, channels (references)
sub put {
    my ($claim, %with) = @_;
    return item($claim, s => undef,
        type => 'put',
        ns => $with{ns} // '',
        checkpoint_id => $with{id} || AgentSQL::uuid(),
        parent => $with{parent},
        checkpoint => $with{checkpoint} || { v => 4 },
        metadata => $with{metadata} || { source => 'loop', step => 1 },
        channels => $with{channels} || {});
}

# %with: ns, id, task, path, writes
sub put_writes {
    my ($claim, %with) = @_;
    return item($claim, s => undef,
        type => 'put_writes',
        ns => $with{ns} // '',
        checkpoint_id => $with{id},
        task_id => $with{task} // 'task',
        task_path => $with{path} // '',
        writes => $with{writes});
}

# A report about a task of the checkpoint; %with: ns
sub task {
    my ($claim, $checkpoint, $task, %with) = @_;
    return item($claim, s => undef, type => 'task', ns => $with{ns}, checkpoint_id => $checkpoint, task => $task);
}

sub finish {
    my ($claim, $status, $error) = @_;
    return item($claim, s => undef, type => 'end', status => $status || 'success', error => $error);
}

1;
