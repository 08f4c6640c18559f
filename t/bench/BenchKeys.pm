# SPDX-License-Identifier: Apache-2.0
# The cost of an API key: POST /threads and GET /threads/{id} in a location that is open,
# and in one that needs a key of the same deployment; rounds alternate.
package BenchKeys;
use strict;
use warnings;
use AgentTest::ApiKey;
use BenchRates qw(median run_wrk);
use BenchServer;
use AgentTest::Env qw(root);
use BenchHttp qw(request);
use Exporter 'import';

our @EXPORT_OK = qw(measure_keys);

my $ACCOUNT = '00000000-0000-0000-0000-00000000000a';
my $CONFIG = <<"CONF";
LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"
# httpd merges two sections for either.
<Location "/open">
    AgentPrefix /open
</Location>
<Location "/keyed">
    AgentPrefix /keyed
    AuthType AgentKey
    Require agent-account $ACCOUNT
</Location>
CONF

# {create => {with, without, ratio, cpu}, get => ...}: requests per second; cpu: of
# httpd, in microseconds more for each request.
sub measure_keys {
    my (undef, $plan) = @_;
    my $server = BenchServer->new(config => BenchServer::default_config() . $CONFIG);
    my $work = { %{$plan}, server => $server };
    my $key = make_key($server);
    my $answer = BenchHttp->new($server->port)->call(request('POST', '/threads', '{}'));
    my ($thread) = $answer->{bytes} =~ /"thread_id"\s*:\s*"([0-9a-f-]{36})"/;
    my %result = (
        create => compare($work, $key, '/threads', '-s', root() . '/t/bench/create_thread.lua'),
        get    => compare($work, $key, "/threads/$thread"),
    );
    $server->stop;
    return \%result;
}

sub make_key {
    my ($server) = @_;
    my ($host) = $server->conninfo =~ /host=(\S+)/;
    local @ENV{qw(PGHOST PGUSER PGDATABASE)} = ($host, 'postgres', 'agent');
    return create_key($ACCOUNT);
}

sub compare {
    my ($work, $key, $path, @options) = @_;
    my %case = (
        without => { wrk => [ @options, $work->{server}->url . "/open$path" ] },
        with    => { wrk => [ @options, '-H', "x-api-key: $key", $work->{server}->url . "/keyed$path" ] },
    );
    my (%rates, @ratios, @more);
    run_wrk({ %{$work}, round_sec => 1 }, $case{$_}) for $work->{warm_up_sec} ? sort keys %case : ();
    for (1 .. $work->{rounds}) {
        my %round = map { $_ => run_wrk($work, $case{$_}) } sort keys %case;
        push @{ $rates{$_} }, $round{$_}{rate} for keys %round;
        push @ratios, $round{with}{rate} / $round{without}{rate};
        push @more, $round{with}{cpu}{httpd} - $round{without}{cpu}{httpd};
    }
    return { (map { $_ => median(@{ $rates{$_} }) } keys %rates), ratio => median(@ratios), cpu => median(@more) };
}

1;
