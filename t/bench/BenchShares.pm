# SPDX-License-Identifier: Apache-2.0
# Shares of accounts: how long runs of small accounts wait for their start, on an empty server, and beside an account
# with a large backlog in many deployments, which executes as many runs as its limit.
package BenchShares;
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Wait;
use BenchHttp qw(request);
use BenchRuns qw(call_200 one_step_run);
use BenchServer;
use Exporter 'import';

our @EXPORT_OK = qw(measure_shares);

my $LARGE = '01900000-0000-7000-8000-0000000000ff';
# The system assistant of the graph `agent`.
my $ASSISTANT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
# Runs of the large account that execute at once; each takes as long as the demo model sleeps (ms), so that 80 a second
# end at most.
my $LIMIT = 8;
my $BACKLOG_RUN = one_step_run() =~ s/hello/sleep 100/r;
# Runs that one statement creates.
my $BATCH = 100;

my $HOST = <<'CONF';
<VirtualHost *:1>
    AgentDeployment NAME account=ACCOUNT
    <AgentGraph agent>
        AgentModel demo
    </AgentGraph>
</VirtualHost>
CONF
my $LOCATION = <<'CONF';
<Location "/ACCOUNT">
    AgentPrefix /ACCOUNT
    AgentDeployment NAME account=ACCOUNT
    AuthType AgentKey
    Require agent-account ACCOUNT
</Location>
CONF

# {accounts, deployments, queued, empty => {count, p50, p99}, beside => ...}: milliseconds from the creation of a run
# to its start, by the clock of the database.
sub measure_shares {
    my (undef, $plan) = @_;
    my @small = map { sprintf '01900000-0000-7000-8000-%012x', $_ } 1 .. $plan->{shares_accounts};
    my $server = BenchServer->new(config => configure($plan, @small), prepare => sub { make_accounts($_[0], $LARGE, @small) });
    my %key = map { $_ => make_key($server, $_) } @small;
    wait_for('the limit', sub { $server->sql('select count(*) from agent.account_limits') == 1 });
    wait_for('the reports of all runners', sub {
        $server->sql('select count(*) from agent.graphs') == 1 + @small + $plan->{shares_pools} }, 120);
    my %result = (accounts => scalar @small, deployments => $plan->{shares_deployments}, queued => $plan->{shares_queued});
    run_round($server, 1, %key);
    $result{empty} = measure($server, $plan->{shares_rounds}, %key);
    fill_queue($server, $plan);
    wait_for('the large account to be at its limit', sub { running($server) == $LIMIT });
    $result{beside} = measure($server, $plan->{shares_rounds}, %key);
    # It has been at its limit throughout: what this server executes of it has not run out.
    die "$LARGE has no run to execute\n" if queued($server, $plan) == 0;
    die "$LARGE executes fewer runs than it may\n" if running($server) < $LIMIT / 2;
    $server->stop;
    return \%result;
}

sub configure {
    my ($plan, @small) = @_;
    my $fill = sub { my ($text, $name, $account) = @_; return $text =~ s/NAME/$name/gr =~ s/ACCOUNT/$account/gr };
    return BenchServer::default_config()
        . "LoadModule authn_core_module \"\${MODULES}/mod_authn_core.so\"\nAgentLimit running_runs $LIMIT account=$LARGE\n"
        . join '', (map { $fill->($HOST, "large-$_", $LARGE) } 1 .. $plan->{shares_pools}),
        map { $fill->($HOST, 'small', $_), $fill->($LOCATION, 'small', $_) } @small;
}

sub with_database {
    my ($conninfo, $work) = @_;
    my ($host) = $conninfo =~ /host=(\S+)/;
    local @ENV{qw(PGHOST PGUSER PGDATABASE)} = ($host, 'postgres', 'agent');
    return $work->();
}

sub make_accounts {
    my ($conninfo, @ids) = @_;
    return with_database($conninfo, sub { create_account($_) for @ids });
}

sub make_key {
    my ($server, $account) = @_;
    return with_database($server->conninfo, sub { create_key($account) });
}

# One run after the other, each of another account, and waits for its end.
sub run_round {
    my ($server, $rounds, %key) = @_;
    my $client = BenchHttp->new($server->port);
    for my $account ((sort keys %key) x $rounds) {
        my $send = sub { return call_200($client, request(@_) =~ s/\r\n/\r\nx-api-key: $key{$account}\r\n/r) };
        my ($thread) = $send->('POST', "/$account/threads", '{}')->{bytes} =~ /"thread_id"\s*:\s*"([0-9a-f-]{36})"/;
        my ($run) = $send->('POST', "/$account/threads/$thread/runs", one_step_run())->{bytes} =~ /"run_id"\s*:\s*"([0-9a-f-]{36})"/;
        $send->('GET', "/$account/threads/$thread/runs/$run/join");
    }
    return;
}

sub measure {
    my ($server, $rounds, %key) = @_;
    my $since = $server->sql('select clock_timestamp()');
    run_round($server, $rounds, %key);
    my ($count, @times) = split / /, $server->sql(<<"SQL");
select concat_ws(' ', count(*), percentile_disc(array[0.5, 0.99]) within group (order by 1000 * extract(epoch from u.started_at - u.created_at)))
  from agent.usage_events u
  join agent.deployments d using (deployment_id)
 where d.account_id <> '$LARGE'
   and u.created_at >= '$since'
SQL
    my ($p50, $p99) = split /,/, $times[0] =~ s/[{}]//gr;
    return { count => $count, p50 => $p50, p99 => $p99 };
}

# Half of the queue is of the deployments that this server executes, half of the others.
sub fill_queue {
    my ($server, $plan) = @_;
    my $batches = $plan->{shares_queued} / $BATCH;
    my $others = $plan->{shares_deployments} - $plan->{shares_pools};
    $server->sql(<<"SQL" =~ s/\s+/ /gr);
select count(*)
  from generate_series(0, $batches - 1) b
 cross join lateral agent.ensure_deployment('large-' || case b % 2 when 0 then b / 2 % $plan->{shares_pools}
        else $plan->{shares_pools} + b / 2 % $others end + 1, '$LARGE') d
 cross join lateral agent.create_stateless_runs(
        d, array(select gen_random_uuid() from generate_series(1, $BATCH) where b >= 0),
        array(select gen_random_uuid() from generate_series(1, $BATCH) where b >= 0),
        array_fill('$ASSISTANT'::uuid, array[$BATCH]), array_fill('agent'::text, array[$BATCH]), '{agent}', '',
        (select json_agg('$BACKLOG_RUN'::json) from generate_series(1, $BATCH))) r
 where r.code = 'ok'
SQL
    return;
}

# The runs that it could execute here, without those under way.
sub queued {
    my ($server, $plan) = @_;
    return $server->sql("select count(*) from agent.run_queue q join agent.deployments d using (deployment_id)
        where q.state = 'ready' and d.account_id = '$LARGE' and substr(d.name, 7)::int <= $plan->{shares_pools}" =~ s/\s+/ /gr);
}

sub running {
    my ($server) = @_;
    return $server->sql("select count(*) from agent.run_queue q join agent.deployments d using (deployment_id)
        where q.worker_id is not null and d.account_id = '$LARGE'" =~ s/\s+/ /gr);
}

1;
