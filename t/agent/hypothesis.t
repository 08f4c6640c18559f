# SPDX-License-Identifier: Apache-2.0
# Requests to each route of both APIs that Hypothesis generates (hypothesis_requests.py):
# never a 5xx, never a closed connection, each error in the API's own body, and no crash.
# AGENT_TEST_LONG=1 (make faults-long) sends other requests, ten times as many.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Client qw(run_body);
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized root);
use AgentTest::Packages qw(install_once make_venv);
use AgentTest::Process qw(httpd_children);
use AgentTest::Routes;
use AgentTest::Server;
use Cpanel::JSON::XS;
use File::Temp;
use Test::More;

my $HERE = root() . '/t/agent';
my $folder = install_once(root() . '/.build/hypothesis', ["$HERE/hypothesis.txt"], sub { make_venv($_[0], "$HERE/hypothesis.txt") });
my $EXAMPLES = $ENV{AGENT_TEST_LONG} ? 400 : is_sanitized() ? 15 : 40;

my $server = AgentTest::Server->new(config => AgentTest::Server::shared_config() . <<'CONF');
LoadModule authn_core_module "${MODULES}/mod_authn_core.so"
AgentMaxWaitersPerAddress 0
AgentWebhooks Off
<Location "/platform">
    SetHandler agent-platform
    AgentPrefix /platform
    AgentSignUp On
</Location>
CONF
$server->start;
my $client = AgentTest::Client->new(url => $server->url);

# Objects whose ids valid requests have.
my $thread = $client->new_thread;
my $run = $client->create_run($thread, 'hello');
$client->join_run($run);
my $stateless = $client->post('/runs', run_body('hello', on_completion => 'keep'))->{json};
my %ids = (thread_id => [$thread], run_id => [ $run->{run_id}, $stateless->{run_id} ],
    checkpoint_id => [ $client->get_state($thread)->{checkpoint}{checkpoint_id} ],
    assistant_id => [ 'agent', $client->post('/assistants', { graph_id => 'agent' })->{json}{assistant_id} ]);
my $key = create_key(create_account());

my @children = httpd_children($server->httpd_pid);
for my $api (qw(server platform)) {
    my $input = File::Temp->new;
    print {$input} encode_json({ url => $server->url, prefix => $api eq 'platform' ? '/platform' : '', key => $api eq 'platform' ? $key : undef,
        routes => [ map { [ @{$_}{qw(method path)} ] } routes($api) ], ids => \%ids, examples => $EXAMPLES,
        is_random => $ENV{AGENT_TEST_LONG} ? Cpanel::JSON::XS::true : Cpanel::JSON::XS::false });
    close $input or die "$input: $!\n";
    # Hypothesis keeps what it finds in the folder in which it is started.
    open my $lines, '-|', "cd '$folder' && bin/python -B '$HERE/hypothesis_requests.py' '$input' 2>&1" or die "python: $!\n";
    my $seen = 0;
    while (my $line = <$lines>) {
        my ($is_ok, $title, $text) = $line =~ /\A(ok|not ok) ([A-Z]+ \S+) ?(.*)\n/ or diag($line), next;
        $seen++;
        ok $is_ok eq 'ok', "hypothesis: $title of the API $api, whatever the request" or diag $text =~ s/\\n/\n/gr;
    }
    close $lines;
    is $seen, scalar(() = routes($api)), "hypothesis: each route of the API $api was tried";
}
is_deeply [ httpd_children($server->httpd_pid) ], \@children, 'hypothesis: no child has ended';
is $client->join_run($client->start_run('hello'))->{messages}[0]{content}, 'hello', 'hypothesis: the server still serves';

undef $server;
done_testing;
