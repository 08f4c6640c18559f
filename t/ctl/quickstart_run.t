# SPDX-License-Identifier: Apache-2.0
# The quick start itself, in a copy of the checkout: two regions, each with an httpd, a
# cluster and a run folder, a customer of one of them, a second start, and the stop.
use strict;
use warnings;
use AgentTest::Database;
use AgentTest::Env qw(build_dir is_counted is_sanitized root slurp write_file);
use AgentTest::Process qw(descendants_of httpd_children is_alive);
use AgentTest::Wait;
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;

plan skip_all => 'the quick start runs the release build' if is_sanitized() || is_counted();

# The build is there, and the examples, which need a package registry, are not.
my $top = tempdir('/tmp/agent-test-quick.XXXXXX', CLEANUP => 0);
chmod 0755, $top or die "$top: $!\n";
make_path("$top/.build", "$top/bin");
system('cp', '-R', root() . '/conf', root() . '/sql', $top) == 0 or die "cp failed\n";
remove_tree("$top/conf/quickstart/examples");
symlink build_dir(), "$top/.build/release" or die "symlink: $!\n";
write_file("$top/bin/make", "#!/bin/sh\n");
chmod 0755, "$top/bin/make" or die "chmod: $!\n";

# The first of three free ports.
sub free_ports {
    for my $port (map { 10_000 + ($$ + 7 * $_) % 20_000 } 1 .. 1000) {
        my @open = grep { defined } map { IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port + $_, Listen => 1) } 0 .. 2;
        return $port if @open == 3;
    }
    die "no free ports\n";
}
my $port = free_ports();

# The exit status and the output of run.sh.
sub quickstart {
    my ($word) = @_;
    delete @ENV{qw(PGHOST PGUSER PGDATABASE)};
    my $output = qx(cd '$top' && env -u OPENAI_BASE_URL PATH='$top/bin':"\$PATH" PORT=$port bash conf/quickstart/run.sh $word 2>&1 </dev/null);
    return ($? >> 8, $output);
}

# The stop, also when this test fails.
my $owner = $$;
END {
    if ($owner && $owner == $$) {
        local $?;
        quickstart('purge');
        remove_tree($top);
    }
}

sub pid_of { my ($folder) = @_; return 0 + (slurp("$top/.run$folder/httpd.pid") || 0) }

# A value of the database of a region.
sub value_of {
    my ($folder, $select) = @_;
    local @ENV{qw(PGHOST PGUSER PGDATABASE)} = ("$top/.run$folder/postgres", 'postgres', 'agent');
    return scalar sql($select);
}

my ($status, $output) = quickstart('start');
is $status, 0, 'quick start: it succeeds' or diag $output;
my ($url) = $output =~ m{The server keeps running on (http://127\.0\.0\.1:\d+)$}m;
is $url, "http://127.0.0.1:$port", 'quick start: the agent server is on PORT';
is value_of('', 'select region from agent.region') . ' ' . value_of('/eu', 'select region from agent.region'), 'us eu', 'quick start: each region has a cluster';
isnt pid_of(''), pid_of('/eu'), 'quick start: each region has an httpd';
my @steps = $output =~ /^(\d+)\. /mg;
is_deeply \@steps, [ 1 .. 11 ], 'quick start: its steps have one numbering';
like $output, qr{404 is a request within the limit.*\n  \$ curl .*/runs/stats\n    HTTP/1\.1 404 .*\n(?:    .*\n)*  \$ curl .*/runs/stats\n    HTTP/1\.1 429 },
    'quick start: it says why the platform host answers 404 before 429';
my ($account, $key) = split ' ', slurp("$top/.run/eu/demo.key");
like $key, qr/\Aag1_eu_sk_/, 'quick start: the customer of eu has a key of eu';
is sprintf('%o', (stat "$top/.run/eu/demo.key")[2] & 0777), '600', 'quick start: nobody else can read it';
is value_of('/eu', "select name from agent.accounts where account_id = '$account'"), 'Demo', 'quick start: the account is in eu';
is value_of('', 'select count(*) from agent.accounts'), 1, 'quick start: us has none but its own';
like $output, qr/^  \$ \.build\/release\/agentctl invite create --database 'host=\S+\/eu\/postgres user=operator dbname=agent'\n    inv1_/m, 'quick start: the operator invites the customer';
like $output, qr{^    ai: The tool calculator answered: 42$}m, 'quick start: the key opens the deployment of its account';
like $output, qr{/deployments/demo/threads/\S+\n    HTTP/1\.1 401 }, 'quick start: nothing opens without it';
like $output, qr{127\.0\.0\.1:@{[ $port + 1 ]}/auth\n    HTTP/1\.1 403 Forbidden\n    X-Agent-Home-Region: eu\n    \{.*"api_url":"http://127\.0\.0\.1:@{[ $port + 2 ]}"}m,
    'quick start: us refuses the key, and says where to go';

sub get { my ($at, $path, @options) = @_; return qx(curl -s --max-time 30 @options http://127.0.0.1:$at$path) }
like get($port, '/info'), qr/"region":"us"/, 'quick start: PORT is the agent server of us';
like get($port + 1, '/info'), qr/"region":"us"/, 'quick start: PORT+1 is the platform of us';
like get($port + 2, '/info'), qr/"region":"eu"/, 'quick start: PORT+2 is the platform of eu';
like get($port + 2, '/auth', '-H', "'x-api-key: $key'"), qr/"account_id"\s*:\s*"\Q$account/, 'quick start: the key says whose it is';

my @all = map { ($_, descendants_of($_)) } pid_of(''), pid_of('/eu');
SKIP: {
    skip 'not as root', 1 if $>;
    is scalar(grep { slurp("/proc/$_/status") =~ /^Uid:\s+0\s/m } map { httpd_children(pid_of($_)) } '', '/eu'), 0, 'quick start: no child of httpd is root';
}
my %listens = map { $_ => 1 } grep { /:(?:@{[ join '|', map { sprintf '%04X', $port + $_ } 0 .. 2 ]})\z/ }
    map { (split)[3] eq '0A' ? (split)[1] : () } grep { /:/ } split /\n/, slurp('/proc/net/tcp');
is_deeply [ sort keys %listens ], [ map { sprintf '0100007F:%04X', $port + $_ } 0 .. 2 ], 'quick start: the ports listen on 127.0.0.1 only';

# A region that ended alone.
kill TERM => pid_of('/eu');
wait_for('httpd of eu to end', sub { !is_alive($all[0]) || !get($port + 2, '/ok') });
($status, $output) = quickstart('start');
is $status, 0, 'second start: a region that has ended comes back' or diag $output;
unlike $output, qr/agentctl invite/, 'second start: the account is there';
like $output, qr{^    ai: The tool calculator answered: 42$}m, 'second start: its key opens the deployment';
($status, $output) = quickstart('start');
like $output, qr/already runs on http:/, 'third start: both regions run already';
write_file("$top/.run/conf.d/added.conf", "<AgentGraph added>\n    AgentModel demo\n</AgentGraph>\n");
($status, $output) = quickstart('start');
is $status, 0, 'conf.d: a run while the server runs succeeds' or diag $output;
wait_for('the graph', sub { get($port, '/assistants/added') =~ /"graph_id"\s*:\s*"added"/ });
pass 'conf.d: a run while the server runs serves the graphs of a new file';

# The customer closes the account, and the user declares a graph.
value_of('/eu', "select code from agent.close_account('$account')");
write_file("$top/.run/conf.d/mine.conf", "<AgentGraph agent>\n    AgentModel demo\n</AgentGraph>\n"
    . qq(<LocationMatch "^/store(/|\$)">\n    Require all denied\n</LocationMatch>\n)
    . qq(<LocationMatch "^(/|\$)">\n    Header always set Access-Control-Max-Age 7\n</LocationMatch>\n));
write_file("$top/.run/conf.d/broken.conf", "Nonsense on\n");
my @httpd = map { pid_of($_) } '', '/eu';
kill TERM => @httpd;
wait_for('both httpd to end', sub { !grep { is_alive($_) } @httpd });
($status, $output) = quickstart('start');
is $status, 0, 'closed account: the next start succeeds' or diag $output;
like $output, qr/agentctl invite/, 'closed account: another customer signs up';
isnt +(split ' ', slurp("$top/.run/eu/demo.key"))[0], $account, 'closed account: it has another account';
like $output, qr{^    ai: The tool calculator answered: 42$}m, 'closed account: its key opens the deployment';
like get($port, '/assistants/agent'), qr/"graph_id"\s*:\s*"agent"/, 'conf.d: a start serves the graphs that its files declare, also one with the name that the templates use';
sub is_served {
    my ($graph) = @_;
    return system("cd '$top' && bash -c '. conf/quickstart/lib.sh; . conf/quickstart/server.sh; . conf/quickstart/applications.sh; RUN_DIR=\$(readlink -f .run); graph_is_served \"\$1\"' x '$graph'") == 0;
}
ok is_served('agent') && !is_served('my/own?'), 'conf.d: a graph is found by its name';
like $output, qr{^    httpd refuses \S*/conf\.d/broken\.conf, which is left out:\n.*\n +Invalid command .Nonsense}m, 'conf.d: a start names a file that httpd refuses, and goes on';
like get($port, '/store/namespaces', '-d', '{}', '-w', '%{http_code}'), qr/403\z/, 'conf.d: a start closes the paths that its files close';
like get($port, '/ok', '-H', 'Origin:http://localhost:1', '-D', '-'), qr/^access-control-max-age: 7\r$/mi, 'conf.d: its files may have lines of mod_headers';

@all = map { ($_, descendants_of($_)) } pid_of(''), pid_of('/eu');
my @postmasters = map { slurp("$top/.run$_/postgres/data/postmaster.pid") =~ /\A(\d+)/ } '', '/eu';
($status, $output) = quickstart('stop');
is $status, 0, 'stop: it succeeds';
wait_for('the processes to end', sub { !grep { is_alive($_) } @all, @postmasters });
pass 'stop: the processes of both regions have ended';
like +(quickstart('stop'))[1], qr/^No agent server of this checkout is running/, 'stop: a second one has nothing to do';

done_testing;
