# SPDX-License-Identifier: Apache-2.0
# "Running a platform" of mod_agent/PLATFORM.md, as far as one machine can: its examples of httpd.conf with TLS and a certificate of
# the test, and its commands, from the schema up to a customer's first request; then the locations of
# "Keys" in mod_agent/CONFIGURATION.md.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(run_body);
use AgentTest::Database qw(psql sql);
use AgentTest::Env qw(build_dir free_port root slurp write_file);
use AgentTest::Postgres;
use AgentTest::Server;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use List::Util qw(uniq);
use Test::More;

# Of Debian's package apache2, for a2enmod and others; the modules are files.
my %DEBIAN = (a2disconf => { map { $_ => 1 } qw(other-vhosts-access-log) }, a2dissite => { map { $_ => 1 } qw(000-default) });
my @HOSTS  = qw(eu.example.com eu.api.example.com us.example.com us.api.example.com shop.eu.example.com shop.example.com);

my $pages = join '', map { slurp(root() . "/mod_agent/$_.md") } qw(CONFIGURATION PLATFORM);
my %blocks;    # section -> language -> its blocks, without their indentation
for my $section ('Running a platform', 'Keys') {
    my ($text) = $pages =~ /^## $section\n(.*?)^## /ms or die "no section $section\n";
    while ($text =~ /^( *)```(\w+)\n(.*?)^ *```$/msg) {
        my ($indent, $language, $block) = ($1, $2, $3);
        push @{ $blocks{$section}{$language} }, $block =~ s/^$indent//mgr;
    }
}
my ($platform, $deployment) = @{ $blocks{'Running a platform'}{apache} };
my ($schema, $debian, $customer, $first_request) = @{ $blocks{'Running a platform'}{sh} };

# ---- the machine ----

my $dir = tempdir(CLEANUP => 1);
chmod 0755, $dir or die "$dir: $!\n";
my $names = join ',', map { "DNS:$_" } @HOSTS;
my $made = qx(openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=readme -addext subjectAltName=$names -keyout $dir/key -out $dir/cert 2>&1);
is $?, 0, 'platform: a certificate for all hosts' or diag $made;
chmod 0644, "$dir/key" or die "$dir/key: $!\n";

my $postgres = AgentTest::Postgres->new(schema => 0);
local @ENV{qw(PGHOST PGUSER PGDATABASE)} = ($postgres->host, 'postgres', 'postgres');
# The files and the ports of the test.
sub conf_of {
    my ($text, $plain) = @_;
    $text =~ s{/usr/lib/apache2/modules/mod_ratelimit_regional\.so}{"\${BUILD_DIR}/mod_ratelimit_regional.so"};
    $text =~ s{/usr/lib/apache2/modules/}{\${MODULES}/}g;
    $text =~ s{/usr/local/share/mod_agent/conf/}{root() . '/conf/'}e;
    $text =~ s{\$\{APACHE_LOG_DIR\}/access\.log}{"\${DIR}/logs/access_log"};
    $text =~ s{/etc/ssl/certs/\S+}{$dir/cert}g;
    $text =~ s{/etc/ssl/private/\S+}{$dir/key}g;
    $text =~ s{\*:443}{*:\${PORT}}g;
    $text =~ s{^(<VirtualHost \*:)80>}{Listen 127.0.0.1:$plain\n${1}$plain>}m;
    $text =~ s{^ *AgentApplication .*\n}{<AgentGraph agent>\nAgentModel demo\n</AgentGraph>\n}m;
    return $text;
}

my %port;    # region -> [its port for TLS, its other one]

sub start { return start_region('eu', @_) }

sub start_region {
    my ($region, @parts) = @_;
    my $plain = free_port();
    my $server = AgentTest::Server->new(database => $postgres->conninfo('agent', database_of($region)),
        config => qq(AgentRunner "\${BUILD_DIR}/agent-runner"\nLoadModule ssl_module "\${MODULES}/mod_ssl.so"\n) . join "\n", map { conf_of($_, $plain) } @parts);
    $server->start;
    $port{$region} = [ $server->url =~ /:(\d+)/, $plain ];
    # The programs of the page: curl finds the hosts here and trusts their certificate.
    my $places = join ' ', map {
        my ($tls, $other) = @{ $port{/^us\./ ? 'us' : 'eu'} // [] };
        $tls ? "--connect-to $_:443:127.0.0.1:$tls --connect-to $_:80:127.0.0.1:$other" : ()
    } @HOSTS;
    program('curl', qq(exec /usr/bin/curl --cacert $dir/cert $places "\$@"));
    return $server;
}

# The two machines are one here: a database for each region.
sub database_of { return $_[0] eq 'us' ? 'agent_us' : 'agent' }

# "The machine for `us` has the same with `us`; both have both lines of AgentRegionURL."
sub for_us {
    my ($text) = @_;
    return join '', map { /^AgentRegionURL/ ? $_ : s/\beu\b/us/gr } split /^/, $text;
}

sub program {
    my ($name, $line) = @_;
    write_file("$dir/bin/$name", "#!/bin/sh\n$line\n");
    return chmod 0755, "$dir/bin/$name";
}

mkdir "$dir/bin" or die "$dir/bin: $!\n";
program('sudo', q([ "$1" = -u ] && shift 2; exec "$@"));
program('psql', 'exec ' . psql() . ' "$@"');
program('agentctl', 'exec ' . build_dir() . '/agentctl "$@"');

# The output of lines of the page.
sub shell {
    my ($lines, %variables) = @_;
    local @ENV{ 'PATH', keys %variables } = ("$dir/bin:$ENV{PATH}", values %variables);
    write_file("$dir/lines", "set -e\n$lines");
    my $output = qx(sh $dir/lines 2>$dir/errors);
    is $?, 0, 'platform: ' . ($lines =~ /^(.{1,60})/)[0] or diag slurp("$dir/errors"), $output;
    return $output;
}

# (status, body)
sub ask {
    my ($url, @words) = @_;
    local $ENV{PATH} = "$dir/bin:$ENV{PATH}";
    open my $answer, '-|', 'curl', '-s', '-w', "\n%{http_code}", @words, $url or die "curl: $!\n";
    my $text = join '', <$answer>;
    close $answer or return ('failed', '');
    my ($body, $status) = $text =~ /\A(.*)\n(\d+)\z/s;
    return ($status, $body);
}

# ---- its steps ----

$schema =~ s{/usr/local/share/mod_agent/}{root() . '/'}e;
$schema =~ s{app_role=www-data}{app_role=agent};
sql($_) for 'create role agent login', 'create database agent';
shell($schema);
local $ENV{PGDATABASE} = 'agent';
is sql('select region from agent.region'), 'eu', 'platform: the schema is installed for the region';
sql($_) for 'create role operator login', 'grant agent_operator to operator';

my @commands = $debian =~ /^sudo (a2\w+ [\w-]+)/mg;
cmp_ok scalar @commands, '>=', 3, 'platform: commands of Debian';
my $modules = dirname(qx(apxs -q LIBEXECDIR) =~ s/\s+\z//r . '/x');
for ($pages =~ /\bsudo (a2(?:enmod|disconf|dissite) [\w-]+)/g) {
    my ($command, $name) = split;
    ok $command eq 'a2enmod' ? -e "$modules/mod_$name.so" : $DEBIAN{$command}{$name}, "platform: $_ names something of Debian";
}

my @certified = map { /`([\w.]+)`/g } $pages =~ /names of the certificate: (.*?)\.\s/s;
is_deeply [ sort { $a cmp $b } @certified ], [ sort { $a cmp $b } uniq(map { /^ *Server(?:Name|Alias) +(\S+)$/mg } $platform, $deployment) ],
    'platform: the certificate has the names of all hosts';
my ($check_name) = $pages =~ /`(openssl x509[^`]*)`/;
like shell(conf_of($check_name) =~ s/\n */ /r), qr/does match certificate/, 'platform: openssl finds a name of a certificate';
like shell(conf_of($check_name) =~ s/\n */ /r =~ s/eu\.example\.com -in/other.example.com -in/r), qr/does NOT match/, 'platform: openssl finds no other name';

my $server = start($platform);
my ($status, $body) = ask('https://eu.api.example.com/info');
is "$status " . decode_json($body)->{region}, '200 eu', 'platform: /info names the region';
is +(ask('https://eu.api.example.com/ok'))[0], 200, 'platform: /ok needs no key';
is +(ask('https://eu.api.example.com/auth'))[0], 401, 'platform: anybody may ask, and needs a key';
for my $host (qw(eu.example.com eu.api.example.com)) {
    my ($moved, $place) = ask("http://$host/info", '-o', "$dir/moved", '-w', "%{redirect_url}\n%{http_code}");
    is "$moved $place", '301 https://eu.example.com/info', "platform: port 80 of $host leads to HTTPS";
}
my %operator = (PGUSER => 'operator');
my ($check) = $pages =~ /`(agentctl region check eu)`/;
shell($check, %operator);
my $created = decode_json(shell($customer, %operator));
like $created->{key}, qr/\Aag1_eu_sk_/, 'platform: an invitation creates an account, with its first key';
my $account = $created->{account_id} // $created->{account}{account_id};

# ---- the page of the regions, on both machines ----

sql('create database ' . database_of('us'));
shell(for_us($schema) =~ s/-d agent\b/'-d ' . database_of('us')/er);
my $us = start_region('us', for_us($platform));
for my $region (qw(eu us)) {
    for my $host ("$region.api.example.com", "$region.example.com") {
        my ($found, $page) = ask("https://$host/");
        is $found, 200, "page: https://$host/ is one";
        my @links = $page =~ /href="([^"]*)"/g;
        is scalar @links, 2, "page: that of $host links both regions";
        for my $link (@links) {
            my ($reached, $linked) = ask($link);
            is $reached, 200, "page: that of $host leads to $link";
            my ($own) = $linked =~ m{">(\w+)</a> \(this site\)};
            is "https://$own.example.com", $link, "page: $link is the site of its region";
        }
    }
    my $info = decode_json((ask("https://$region.api.example.com/info"))[1]);
    for my $member (qw(web_url api_url)) {
        is decode_json((ask("$info->{$member}/info"))[1])->{region}, $region, "page: $member of /info of $region leads to this region";
    }
}
undef $us;
undef $server;

$server = start($platform, $deployment =~ s/\bID\b/$account/gr);
my $shop = 'https://shop.eu.example.com';
my @json = ('-H', 'Content-Type: application/json');
is +(ask("$shop/threads", @json, '-d', '{}'))[0], 401, 'deployment: a request without a key is refused';
my ($request) = $first_request =~ /^(curl .*)/m;
my ($example, $directory) = $first_request =~ /\bcp -r (\S+) (\S+)/;
ok -e root() . "/$example/langgraph.json", 'deployment: the application that is copied exists';
like $deployment, qr/^ *AgentApplication shop \Q$directory\E$/m, 'deployment: the copy is the application of the example';
wait_for('the graph', sub {
    return (ask("$shop/runs/wait", @json, '-H', "x-api-key: $created->{key}", '-d', encode_json(run_body('hello'))))[0] == 200;
});
is decode_json(shell($request, key => $created->{key}))->[0]{graph_id}, 'agent', 'deployment: the key of the customer shows its graphs';
my ($answer, $text) = ask("$shop/runs/wait", @json, '-H', "x-api-key: $created->{key}", '-d', encode_json(run_body('hello')));
is $answer, 200, 'deployment: the key of the customer creates a run';
like $text, qr/You said \\"hello\\"/, 'deployment: a run with the key of the customer is executed';
undef $server;

# ---- the locations of "Keys" ----

my ($keyed, $reports) = @{ $blocks{Keys}{apache} };
$keyed =~ s/\bID\b/$account/g;
$keyed =~ s{(</VirtualHost>)}{$reports$1};
mkdir "$dir/reports" or die "$dir/reports: $!\n";
write_file("$dir/reports/index.html", 'a report');
$keyed =~ s{(</VirtualHost>)}{Alias /reports $dir/reports\n$1};
$server = start(($platform =~ /(.*?)^# No line/ms)[0], $keyed);
$shop = 'https://shop.example.com';
my @key = ('-H', "x-api-key: $created->{key}");
is +(ask("$shop/ok"))[0], 200, 'keys: /ok of a deployment without a key, for health checks';
is +(ask("$shop/threads/01900000-0000-7000-8000-000000000000"))[0], 401, 'keys: all other paths of a deployment need a key';
is +(ask("$shop/threads/01900000-0000-7000-8000-000000000000", @key))[0], 404, 'keys: a deployment admits a key of its account';
unlike $server->error_log, qr/AGT0444/, 'keys: the deployment has a graph';
my @run = ("$shop/runs/wait", @json, @key, '-d', encode_json(run_body('hello')));
is wait_for('the graph', sub { my ($ran) = ask(@run); return $ran ne '404' && $ran }), 200, 'keys: the deployment executes a run of its graph';
is +(ask("$shop/reports/index.html"))[0], 401, 'keys: another service asks for a key';
local $ENV{PGHOST} = $postgres->host;
my $runner = create_key($account, scopes => ['run']);
is +(ask("$shop/reports/index.html", '-H', "x-api-key: $runner"))[0], 403, 'keys: another service refuses a key that may not read';
is_deeply [ ask("$shop/reports/index.html", @key) ], [ 200, 'a report' ], 'keys: another service admits a key that may read';

done_testing;
