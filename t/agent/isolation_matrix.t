# SPDX-License-Identifier: Apache-2.0
# The isolation matrix: each operation of both APIs, tried with the ids of the own
# objects, of another account, of another deployment of the account, and with ids that do
# not exist, in the path, in the body and in the query; and with keys that do not belong
# there. A new route needs a row here.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(parse_response read_to_end read_until run_body);
use AgentTest::Conf qw(demo_graph key_location location one_child platform_location);
use AgentTest::Database;
use AgentTest::Env qw(free_port is_sanitized);
use AgentTest::Postgres;
use AgentTest::Routes;
use AgentTest::Server;
use AgentTest::Statements;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use Test::More;

my $JSON = Cpanel::JSON::XS->new->utf8->allow_nonref->canonical;
my $UNKNOWN = '01900000-0000-7000-8000-00000000000f';

my $postgres = AgentTest::Postgres->new;
local $ENV{PGHOST} = $postgres->host;
my ($mine, $theirs) = map { create_account() } 1 .. 2;
my $statements = AgentTest::Statements->new($postgres);
my %port = map { $_ => free_port() } qw(desk theirs);
my $hosts = join '', map {
    my ($name, $deployment, $account) = @{$_};
    <<"CONF";
Listen 127.0.0.1:$port{$name}
<VirtualHost 127.0.0.1:$port{$name}>
    AgentDeployment $deployment account=$account
    <AgentGraph agent>
        AgentModel demo
    </AgentGraph>
</VirtualHost>
CONF
} [ 'desk', 'desk', $mine ], [ 'theirs', 'till', $theirs ];
my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', one_child(40), demo_graph(), key_location(), <<"CONF",
# One connection too: what is prepared there does not depend on which one is asked.
DBDMax 1
DBDKeep 1
DBDInitSQL "select 1"
AgentDBPoolWait 60s
AgentRegionURL us https://us.example.com https://us.api.example.com
AgentDeployment shop account=$mine
$hosts
CONF
    location('/nobody', "AgentDeployment shop account=$UNKNOWN"), platform_location('AgentSignUp On'));
$server->start;
my $client = AgentTest::Client->new(url => $server->url);
my %key = map { $_ => create_key($_) } $mine, $theirs;
# Sign-ups are limited by address.
my $address = 1;

# ask($method, $path, $body, $key): the answer; of a stream that goes on, its head. A path
# that begins with /desk or /theirs is one of that virtual host.
sub ask {
    my ($method, $path, $body, $key) = @_;
    my $host = $path =~ s{\A/(desk|theirs)(?=/)}{} ? "127.0.0.1:$port{$1}" : $client->{address};
    my $content = defined $body ? $JSON->encode($body) : '';
    my $head = "$method $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        . (defined $key ? "x-api-key: $key\r\n" : '') . (defined $body ? 'Content-Length: ' . length($content) . "\r\n" : '');
    $address++ if $path =~ m{/v1/accounts};
    my $socket = $client->connection(PeerAddr => $host, LocalAddr => '127.1.' . int($address / 250) . '.' . ($address % 250 + 1));
    syswrite $socket, "$head\r\n$content";
    my $bytes = read_until($socket, qr/\r\n\r\n/);
    $bytes .= read_to_end($socket) if $bytes !~ m{\AHTTP/1.1 200 } || $path !~ m{/threads/[^/]+/stream\b};
    return { %{ parse_response($bytes) }, bytes => $bytes };
}

# "404 thread_not_found"
sub outcome {
    my ($answer) = @_;
    return "$answer->{status} " . (ref $answer->{json} eq 'HASH' ? $answer->{json}{code} // '-' : '-');
}

sub made {
    my ($method, $path, $body, $key) = @_;
    my $answer = ask($method, $path, $body, $key);
    $answer->{status} =~ /\A2/ or die "$method $path was answered $answer->{bytes}\n";
    return $answer->{json};
}

my %LATER = (after_seconds => 1_000_000);

# ---- the objects of a deployment: {thread_id, run_id, ...}, with texts that no one else may see ----
sub objects_of {
    my ($of, $account, $deployment, $secret) = @_;
    my $key = $key{$account};
    wait_for_graphs($deployment, 1);
    my $assistant = made('POST', "$of/assistants", { graph_id => 'agent', name => $secret, metadata => { label => "label-$deployment" },
        config => { tags => [$secret] } }, $key)->{assistant_id};
    my $thread = made('POST', "$of/threads", { metadata => { label => "label-$deployment", secret => $secret } }, $key)->{thread_id};
    my $run = made('POST', "$of/threads/$thread/runs", run_body($secret, assistant_id => $assistant), $key)->{run_id};
    made('GET', "$of/threads/$thread/runs/$run/join", undef, $key);
    my $stateless = made('POST', "$of/runs", run_body($secret, on_completion => 'keep'), $key)->{run_id};
    made('GET', "$of/runs/$stateless/join", undef, $key);
    my $waiting = made('POST', "$of/threads", { metadata => { secret => $secret } }, $key)->{thread_id};
    made('POST', "$of/threads/$waiting/runs", run_body($secret, %LATER), $key);
    made('PUT', "$of/store/items", { namespace => ["space-$deployment"], key => 'k', value => { secret => $secret } }, $key);
    my $named = create_key($account, deployment => $deployment);
    sql("update agent.api_keys set name = '$secret' where key_id = '@{[ key_id($named) ]}'");
    return { of => $of, key => $key, secret => $secret, thread_id => $thread, run_id => $run, assistant_id => $assistant,
        checkpoint_id => made('GET', "$of/threads/$thread/state", undef, $key)->{checkpoint}{checkpoint_id}, stateless => $stateless,
        waiting => $waiting, key_id => key_id($named), account_id => $account, label => "label-$deployment", space => "space-$deployment",
        deployment => $deployment, deployment_id => scalar sql("select deployment_id from agent.deployments where name = '$deployment'") };
}
sql("update agent.accounts set name = 'secret-of-theirs' where account_id = '$theirs'");
my $own = objects_of('', $mine, 'shop', 'secret-of-own');
my %other = ('another account' => objects_of('/theirs', $theirs, 'till', 'secret-of-theirs'),
    'another deployment' => objects_of('/desk', $mine, 'desk', 'secret-of-desk'));
# Ids of nothing, in the form of the others.
my $nothings = 0;
sub nothing {
    my $id = sprintf '01900000-0000-7000-8000-%012x', ++$nothings;
    return { deployment => 'none', label => 'label-none', space => 'space-none', key_id => sprintf('%022d', $nothings),
        map { $_ => $id } qw(thread_id run_id assistant_id checkpoint_id stateless waiting account_id deployment_id) };
}

# ---- the rows ----

# Route => its body with own objects, made for each request. No body: undef.
my $none = sub { return undef };    # Also in a list.
my $empty = sub { return {} };
my $later = sub { return run_body('hello', %LATER) };
my $hello = sub { return run_body('hello') };
my %row = (
    server => {
        (map { ("GET $_" => $none) } '/ok', '/info', '/store/items', '/runs/{run_id}/join', '/runs/{run_id}/stream',
            map { "/assistants/{assistant_id}$_" } '', qw(/graph /schemas /subgraphs /subgraphs/{namespace})),
        (map { ("GET /threads/{thread_id}$_" => $none) } '', qw(/storage /stream /state /state/{checkpoint_id} /history /runs
            /runs/{run_id} /runs/{run_id}/join /runs/{run_id}/stream)),
        (map { ("POST $_/search" => $empty, "POST $_/count" => $empty) } qw(/assistants /threads)),
        (map { ("DELETE $_" => $none) } qw(/assistants/{assistant_id} /threads/{thread_id} /threads/{thread_id}/runs/{run_id})),
        (map { ("POST $_" => $later) } qw(/runs /threads/{thread_id}/runs)),
        (map { ("POST $_" => $hello) } map { ("$_/wait", "$_/stream") } qw(/runs /threads/{thread_id}/runs)),
        (map { ("POST $_" => $empty) } qw(/threads /assistants/{assistant_id}/versions /threads/{thread_id}/history /store/items/search /store/namespaces)),
        (map { ("POST /threads/{thread_id}$_" => $none) } qw(/copy /runs/{run_id}/cancel)),
        'POST /assistants'                            => sub { return { graph_id => 'agent' } },
        'PATCH /assistants/{assistant_id}'            => sub { return { name => 'x' } },
        'POST /assistants/{assistant_id}/latest'      => sub { return { version => 1 } },
        'POST /threads/prune'                         => sub { return { thread_ids => [ new_thread() ] } },
        'PATCH /threads/{thread_id}'                  => sub { return { metadata => { x => 1 } } },
        'POST /threads/{thread_id}/state'             => sub { return { values => { messages => [] } } },
        'POST /threads/{thread_id}/state/checkpoint'  => sub { return { checkpoint => { checkpoint_id => $own->{checkpoint_id} } } },
        'POST /runs/batch'                            => sub { return [ $later->() ] },
        'POST /runs/cancel'                           => sub { my $run = new_run(); return { thread_id => $run->{thread_id}, run_ids => [ $run->{run_id} ] } },
        'PUT /store/items'                            => sub { return { namespace => ['own'], key => 'k', value => {} } },
        'DELETE /store/items'                         => sub { return { namespace => ['own'], key => 'k' } },
    },
    platform => {
        (map { ("GET $_" => $none) } qw(/ /ok /info /.well-known/agent-addresses /auth /v1/account /v1/account/deletion /v1/account/export /v1/account/keys
            /v1/account/usage /v1/account/audit)),
        # Without `confirm`, which is the id of the own account.
        'DELETE /v1/account'                    => $empty,
        'DELETE /v1/account/keys/{key_id}'      => $none,
        'POST /v1/account/keys/{key_id}/rotate' => $empty,
        map { ($_ => sub { return { name => 'own' } }) } 'POST /v1/accounts', 'PATCH /v1/account', 'POST /v1/account/keys',
    },
);
# They need a query, a member or a header.
my %EXPECTED = ('GET /store/items' => qr/\A422 /, 'DELETE /v1/account' => qr/\A422 /, 'GET /v1/account/deletion' => qr/\A422 /);

sub new_thread { return made('POST', '/threads', {}, $key{$mine})->{thread_id} }
sub new_run { return made('POST', '/threads/' . new_thread() . '/runs', run_body('hello', %LATER), $key{$mine}) }

sub ended_run {
    my ($thread) = @_;
    my $run = made('POST', "/threads/$thread/runs", run_body('hello', multitask_strategy => 'interrupt'), $key{$mine})->{run_id};
    made('GET', "/threads/$thread/runs/$run/join", undef, $key{$mine});
    return $run;
}

# Own ids for the path of a route, new ones where the operation changes or needs them.
sub own_ids {
    my ($route) = @_;
    my %ids = (%{$own}, namespace => 'x');
    my ($method, $path) = @{$route}{qw(method path)};
    if ($path =~ m{\A/threads/\{thread_id\}} && ($method eq 'DELETE' || $path =~ m{/runs/\{run_id\}/cancel|/runs(?:/wait|/stream)?\z|/state\z})) {
        $ids{thread_id} = new_thread();
        @ids{qw(thread_id run_id)} = @{ new_run() }{qw(thread_id run_id)} if $path =~ /run_id/;
        $ids{thread_id} = $own->{thread_id} if $path =~ m{/state\z};
    }
    $ids{run_id} = ended_run($ids{thread_id}) if $path =~ /run_id/ && $method eq 'DELETE';
    $ids{assistant_id} = made('POST', '/assistants', { graph_id => 'agent' }, $key{$mine})->{assistant_id}
        if $path =~ /assistant_id/ && $method eq 'DELETE';
    $ids{key_id} = key_id(create_key($mine)) if $path =~ /key_id/;
    $ids{run_id} = $own->{stateless} if $path =~ m{\A/runs/};
    return \%ids;
}

# The ids of others for the path.
sub path_ids {
    my ($route, $other) = @_;
    return { %{$other}, namespace => 'x', $route->{path} =~ m{\A/runs/} ? (run_id => $other->{stateless}) : () };
}

sub fill {
    my ($route, $ids) = @_;
    return $route->{path} =~ s/\{(\w+)\}/$ids->{$1}/gr;
}

# Members that name objects: [where it is put, its value with the ids of another].
sub members_of {
    my ($route, $other) = @_;
    my $configurable = { map { $_ => $other->{$_} } qw(thread_id run_id assistant_id checkpoint_id) };
    return (
        (map { [ $_ => $other->{$_} ] } qw(thread_id run_id assistant_id checkpoint_id key_id account_id deployment_id deployment)),
        [ confirm => $other->{account_id} ], [ run_ids => [ $other->{run_id} ] ], [ thread_ids => [ $other->{thread_id} ] ], [ ids => [ $other->{thread_id} ] ],
        [ checkpoint => { thread_id => $other->{thread_id}, checkpoint_id => $other->{checkpoint_id}, checkpoint_ns => '' } ],
        [ checkpoint => { checkpoint_id => $other->{checkpoint_id} } ], [ before => { configurable => $configurable } ],
        [ config => { configurable => $configurable } ], [ namespace => [ $other->{space} ] ],
        [ namespace_prefix => [ $other->{space} ] ], [ prefix => [ $other->{space} ] ],
        # Elsewhere these are text for own objects.
        $route->{name} =~ m{/(?:search|count)\z} ? map { [ $_ => { label => $other->{label} } ] } qw(metadata filter values) : (),
    );
}

sub queries_of {
    my ($other) = @_;
    return ((map { "$_=$other->{$_}" } qw(thread_id run_id assistant_id checkpoint_id key_id account_id deployment_id deployment)),
        "namespace=$other->{space}&key=k", "after=$other->{key_id}", "after=$other->{run_id}", "before=$other->{checkpoint_id}", "ids=$other->{thread_id}",
        "delete_threads=true&thread_id=$other->{thread_id}");
}

sub with_member {
    my ($body, $member) = @_;
    my ($name, $value) = @{$member};
    my $object = ref $body eq 'ARRAY' ? $body->[0] : $body;
    $object->{$name} = $value;
    return $body;
}

# ---- what is compared ----

my @tables = sql(q{select c.table_name, bool_or(c.column_name = 'deployment_id'), bool_or(c.column_name = 'account_id')
    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
    where table_schema = 'agent' and table_type = 'BASE TABLE' and column_name in ('deployment_id', 'account_id') group by 1 order by 1});
my $rows_of_others = join ' union all ', map {
    my ($table, $has_deployment, $has_account) = split /\t/;
    my @own = (($has_deployment eq 't' ? "deployment_id in ('$other{'another account'}{deployment_id}', '$other{'another deployment'}{deployment_id}')" : ()),
        ($has_account eq 't' ? "account_id = '$theirs'" : ()));
    # The hour of the last use is that of the requests that made the objects.
    "select '$table ' || (to_jsonb(t) - 'last_used_at')::text from agent.$table t where " . join(' or ', @own);
} @tables;

# All rows that belong to others: row => 1.
sub rows_of_others {
    return { map { $_ => 1 } sql($rows_of_others) };
}

# The rows that one of the two has alone, and which.
sub differences {
    my ($before, $after) = @_;
    return map { substr $_, 0, 1000 } (map { "gone: $_" } grep { !$after->{$_} } sort keys %{$before}), (map { "new: $_" } grep { !$before->{$_} } sort keys %{$after});
}

# The answer without what differs between any two requests.
sub shape_of {
    my ($answer) = @_;
    my $body = $answer->{body};
    $body =~ s/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/ID/g;
    $body =~ s/ag1_\w+_[0-9A-Za-z_]+|"[0-9A-Za-z]{22}"/KEY/g;
    $body =~ s/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?/TIME/g;
    $body =~ s/"version" : \d+/VERSION/g;
    $body =~ s/(?:label|space)-(?:till|desk|none)|(?<=no deployment )(?:till|desk|none)\b|"(?:till|desk|none)"/NAME/g;
    return outcome($answer) . " $body";
}

# Parts of another's objects that an answer has and the request has not.
sub leaks {
    my ($request, $answer) = @_;
    my @found;
    # A platform host shows all deployments of the account.
    for my $other (map { $other{$_} } grep { $request !~ m{ /platform/} || /account/ } sort keys %other) {
        push @found, grep { index($answer->{bytes}, $_) >= 0 && index($request, $_) < 0 }
            @{$other}{qw(secret thread_id run_id assistant_id checkpoint_id stateless waiting key_id deployment_id)},
            $other->{account_id} eq $mine ? () : $other->{account_id};
    }
    return @found;
}

# Clients choose ids: own objects that a request made with those of another.
sub forget {
    my ($other) = @_;
    ask('DELETE', "/threads/$other->{thread_id}", undef, $key{$mine});
    ask('DELETE', "/assistants/$other->{assistant_id}", undef, $key{$mine});
    ask('DELETE', '/store/items', { namespace => [ $_->{space} ], key => 'k' }, $key{$mine}) for $other, nothing();
    return;
}

my @problems;

# Sends a request twice: with the ids of another, and with ids that do not exist.
sub compare {
    my ($route, $where, $other, $make) = @_;
    my (@answers, @texts);
    for my $ids ($other, nothing()) {
        my ($path, $body) = $make->($ids);
        my $request = "$route->{method} $path " . (defined $body ? $JSON->encode($body) : '');
        my $answer;
        my $send = sub { $answer = ask($route->{method}, $path, $body, $key{$mine}) };
        push @texts, $statements ? join "\n", $statements->of($send) : $send->() && '';
        push @answers, $answer;
        push @problems, map { "$where: $request was answered with $_" } leaks($request, $answer);
        push @problems, "$where: $request was answered $answer->{status}" if $answer->{status} !~ /\A[234]/;
    }
    forget($other) if $route->{name} =~ m{\A(?:POST /(?:threads|assistants)|PUT .*)\z};
    my @shapes = map { shape_of($_) } @answers;
    # Pages of own records that begin at another's id, and all that the account has at that time.
    return if $answers[0]{status} == 200 && $answers[1]{status} == 200 && ($where =~ /after=|before/ || $route->{path} =~ /export/);
    push @problems, "$where: not yours and not there are answered\n$shapes[0]\n$shapes[1]" if $shapes[0] ne $shapes[1];
    # A request that waits repeats its statements as often as it takes.
    push @problems, "$where: not yours and not there execute\n$texts[0]\n  and\n$texts[1]"
        if $texts[0] ne $texts[1] && ($answers[0]{status} !~ /\A2/ || $route->{path} !~ m{/(?:wait|stream|join|state)\z});
    return;
}

# ---- the matrix ----

sub check_own {
    my ($api, $route) = @_;
    my $answer = ask($route->{method}, ($api eq 'platform' ? '/platform' : '') . fill($route, own_ids($route)), $row{$api}{ $route->{name} }->(), $key{$mine});
    like outcome($answer), $EXPECTED{ $route->{name} } // qr/\A2/, "matrix: $route->{name} with own objects";
    return;
}

sub check_ids {
    my ($api, $route) = @_;
    my $start = $api eq 'platform' ? '/platform' : '';
    my $body = $row{$api}{ $route->{name} };
    @problems = ();
    # A platform host serves the whole account. Whose the ids are, only SQL tells: in C
    # those of another deployment execute what those of another account do.
    for my $whose (sort grep { ($api eq 'server' && !is_sanitized()) || /account/ } keys %other) {
        my $other = $other{$whose};
        compare($route, "the path, of $whose", $other, sub { return ($start . fill($route, path_ids($route, $_[0])), $body->()) }) if $route->{path} =~ /\{/;
        my @members = $body->() ? members_of($route, $other) : ();
        for my $index (0 .. $#members) {
            compare($route, "$members[$index][0] of the body, of $whose", $other,
                sub { return ($start . fill($route, own_ids($route)), with_member($body->(), (members_of($route, $_[0]))[$index])) });
        }
        my @queries = queries_of($other);
        for my $index (0 .. $#queries) {
            compare($route, "$queries[$index] of the query, of $whose", $other,
                sub { return ($start . fill($route, own_ids($route)) . '?' . (queries_of($_[0]))[$index], $body->()) });
        }
    }
    # Each may have a page of statements.
    @problems = ((map { substr $_, 0, 2000 } @problems[ 0 .. 4 ]), 'further ones') if @problems > 5;
    is join("\n", @problems), '', "matrix: $route->{name} does not tell another's objects from none";
    return;
}

my $bound = create_key($mine, kind => 'deployment', deployment => 'desk');
my $of_us = print_key('sk', random_digits(22), random_digits(43), 'us');
# A key in the wrong place: [whose place, key, outcome, a place that does not exist].
my @DOORS = (
    [ 'a key of another account',    '',        $key{$theirs}, '404 deployment_not_found' ],
    [ 'the place of another account', '/theirs', $key{$mine},   '404 deployment_not_found' ],
    [ 'a key of another deployment', '',        $bound,        '404 deployment_not_found' ],
    [ 'no key',                      '',        undef,         '401 unauthorized' ],
    [ 'a key of another region',     '',        $of_us,        '403 wrong_region' ],
);

# Of a deployment, with ids that exist there.
sub check_doors {
    my ($route) = @_;
    my @wrong;
    for my $door (@DOORS) {
        my ($what, $of, $key, $expected) = @{$door};
        my (@answers, @texts);
        for my $place ($of, '/nobody') {
            my $ids = path_ids($route, $place eq '/theirs' ? $other{'another account'} : $own);
            my $send = sub { push @answers, ask($route->{method}, $place . fill($route, $ids), $row{server}{ $route->{name} }->(), $key) };
            my $body_is_made = $row{server}{ $route->{name} } == $none || $row{server}{ $route->{name} } == $empty;
            push @texts, $statements && $body_is_made ? join "\n", $statements->of($send) : $send->() && '';
        }
        push @wrong, "$what: " . outcome($answers[0]) if outcome($answers[0]) ne $expected;
        push @wrong, "$what: $answers[0]{body} and $answers[1]{body}" if $answers[0]{body} ne $answers[1]{body};
        push @wrong, "$what executes\n$texts[0]\n  and\n$texts[1]" if $texts[0] ne $texts[1];
        push @wrong, map { "$what shows $_" } leaks('', $answers[0]), grep { index($answers[0]{bytes}, $_) >= 0 } 'secret-of-own';
    }
    is join("\n", @wrong), '', "matrix: $route->{name} is closed to keys that do not belong there, as if it did not exist";
    return;
}

my $before = rows_of_others();
# The platform first: an export has all that the other requests make.
for my $api (qw(platform server)) {
    my @routes = routes($api);
    is_deeply [ sort keys %{ $row{$api} } ], [ sort map { $_->{name} } @routes ], "matrix: each route of the API $api has a row";
    for my $route (grep { $row{$api}{ $_->{name} } } @routes) {
        check_own($api, $route);
        check_ids($api, $route);
        check_doors($route) if $route->{macro} eq 'DATA';
        is outcome(ask($route->{method}, '/platform' . fill($route, own_ids($route)), $row{$api}{ $route->{name} }->(), $of_us)),
            '403 wrong_region', "matrix: $route->{name} with a key of another region" if $route->{macro} =~ /\A(?:ACCOUNT|KEYLESS)\z/;
        my $after = rows_of_others();
        is join("\n", differences($before, $after)), '', "matrix: $route->{name} changes no row of others";
        $before = $after;
    }
}

SKIP: {
    skip 'PostgreSQL has no auto_explain here', 2 if !$statements;
    my @texts = $statements->of(sub { ask('GET', "/threads/$own->{thread_id}", undef, $key{$mine}) });
    cmp_ok scalar @texts, '>', 1, 'matrix: statements are seen, and those inside of functions';
    my $cancel = sub { return [ $statements->of(sub { ask('POST', '/runs/cancel', { thread_id => $UNKNOWN, run_ids => [$UNKNOWN] }, $key{$mine}) }) ] };
    my $warm = $cancel->();
    sql('create schema other; drop schema other');
    is_deeply $cancel->(), $warm, 'matrix: the statements of a request do not depend on when PostgreSQL makes its plans';
}

undef $server;
done_testing;
