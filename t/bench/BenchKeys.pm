# SPDX-License-Identifier: Apache-2.0
# The cost of an API key: POST /threads and GET /threads/{id} in a location that is open,
# and in one that needs a key of the same deployment: one key, which children have
# verified less than 2 s ago but for one request in 2 s, and then more keys than a child
# remembers, of which each is verified by a statement. Short rounds, each of all three, in
# changing order, since the speed of the machine changes from second to second.
package BenchKeys;
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Env qw(root write_file);
use BenchHttp qw(request);
use BenchRates qw(median quartiles run_wrk);
use BenchServer;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use File::Temp qw(tempdir);
use List::Util qw(shuffle sum);

our @EXPORT_OK = qw(measure_keys);

my $ACCOUNT = '00000000-0000-0000-0000-00000000000a';
# AGENT_KEY_CACHE_SIZE is 4,096 for each of two children, and two threads of wrk use each key.
my $KEYS = 20_000;
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

# {create => {rates, warm, cold}, get => ...}; rates: requests per second without a key,
# with a key and with a new one; warm, cold: see compare_rounds().
sub measure_keys {
    my (undef, $plan) = @_;
    my $server = BenchServer->new(config => BenchServer::default_config() . $CONFIG);
    my $dir = tempdir('/tmp/agent-bench.XXXXXX', CLEANUP => 1);
    my $work = { server => $server, round_sec => $plan->{keys_sec}, rounds => $plan->{keys_rounds} };
    my $key = make_key($server);
    local $ENV{BENCH_KEY_FILE} = make_keys($server, "$dir/keys");
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

# Writes the texts of many keys to a file, and returns its name. They were used in this
# hour, so that none is written.
sub make_keys {
    my ($server, $file) = @_;
    my $secret = random_digits(43);
    $server->sql(<<"SQL" =~ s/\s+/ /gr);
with made as (insert into agent.api_keys (key_id, account_id, digest, kind, name, scopes, created_at, last_used_at)
    select lpad(n::text, 22, '0'), '$ACCOUNT', '\\x@{[ sha256_hex($secret) ]}', 'service', 'bench', '{read,run}', now(), date_trunc('hour', now())
      from generate_series(1, $KEYS) n returning 1)
select count(*) from made
SQL
    return write_file($file, map { print_key('sk', sprintf('%022d', $_), $secret) . "\n" } 1 .. $KEYS);
}

sub compare {
    my ($work, $key, $path, @options) = @_;
    my $url = $work->{server}->url;
    my %case = (
        none => { wrk => [ @options, "$url/open$path" ] },
        warm => { wrk => [ @options, '-H', "x-api-key: $key", "$url/keyed$path" ] },
        cold => { wrk => [ '-s', root() . '/t/bench/keys.lua', "$url/keyed$path" ], is_get => !@options },
    );
    my @rounds;
    for (0 .. $work->{rounds}) {
        my %round = map { $_ => run_wrk($work, $case{$_}) } shuffle sort keys %case;
        # The first one warms up.
        push @rounds, \%round if $_ > 0;
    }
    return {
        rates => { map { my $name = $_; ($name => median(map { $_->{$name}{rate} } @rounds)) } keys %case },
        map { $_ => compare_rounds($_, @rounds) } qw(warm cold),
    };
}

# {total, ratio, quartiles, httpd, postgres}: requests of all rounds with a key to those
# without one; median and quartiles of the ratios of rounds; microseconds of processor
# time more for each request, the median.
sub compare_rounds {
    my ($name, @rounds) = @_;
    my @ratios = map { $_->{$name}{rate} / $_->{none}{rate} } @rounds;
    return {
        total     => sum(map { $_->{$name}{rate} } @rounds) / sum(map { $_->{none}{rate} } @rounds),
        ratio     => median(@ratios),
        quartiles => [ quartiles(@ratios) ],
        map { my $role = $_; ($role => median(map { $_->{$name}{cpu}{$role} - $_->{none}{cpu}{$role} } @rounds)) } qw(httpd postgres),
    };
}

1;
