# SPDX-License-Identifier: Apache-2.0
# The lines that agentctl build prints for webhooks.headers, in httpd: a receiver gets
# exactly the values of the file and of the environment, whatever bytes they have.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Client qw(run_body);
use AgentTest::Env qw(build_dir);
use AgentTest::Postgres;
use AgentTest::Receiver;
use AgentTest::Server;
use CtlTest qw(application build_python);
use Test::More;

# The lines for httpd.conf, but AgentApplication.
sub lines_of {
    my (%webhooks) = @_;
    my $output = build_python(application({ webhooks => \%webhooks }))->{output};
    return $output =~ /^AgentApplication .*\n((?:.*\n)+?)(?:\z|==>|agentctl:)/m ? $1 : die "no lines: $output";
}

my $cluster = AgentTest::Postgres->new;

sub server_with {
    my ($lines) = @_;
    return AgentTest::Server->new(database => $cluster->conninfo('agent', 'agent'), config => <<"CONF");
AgentRunner "@{[ build_dir() ]}/agent-runner"
AgentWebhookAllow 127.0.0.1
AgentWebhookPorts 1024-65535
<AgentGraph agent>
    AgentModel demo
</AgentGraph>
<Location "/">
    SetHandler agent
</Location>
$lines
CONF
}

my %VALUE = (
    'X-Quotes' => q(a "b" 'c'), 'X-Backslashes' => 'a\\b\\\\c\\', 'X-Both' => '\\"\\\\"', 'X-Marks' => '$b {c} #d %e %{f} <g>',
    'X-Bytes' => "b\xc3\xa4cker \xe2\x82\xac");
my %SECRET = (QUOTES => q(s"3'cr"et"), BACKSLASHES => 'x\\y\\\\z\\', LINE => '" "${HOME} %{osenv:HOME} #');

my $lines = lines_of(headers => {
    (map { utf8::decode(my $value = $VALUE{$_}); ($_ => $value) } keys %VALUE),
    (map { ("X-Secret-$_" => "Bearer \${{ env.LG_WEBHOOK_$_ }}") } keys %SECRET),
    'X-Two' => '${{ env.LG_WEBHOOK_QUOTES }}-${{env.LG_WEBHOOK_BACKSLASHES}}' });
local @ENV{ map { "LG_WEBHOOK_$_" } keys %SECRET } = values %SECRET;
my $server = server_with($lines);
my ($ok, $output) = $server->check_config;
ok $ok, 'webhooks: httpd takes the lines' or diag "$lines\n$output";
$server->start;
my $receiver = AgentTest::Receiver->new(200);
AgentTest::Client->new(url => $server->url)->post('/runs', run_body('hello', webhook => $receiver->url('/')));
my ($request) = $receiver->wait_requests(1);
is $request->{headers}{ lc $_ }, $VALUE{$_}, "webhooks: the receiver gets the value of $_" for sort keys %VALUE;
is $request->{headers}{ lc "X-Secret-$_" }, "Bearer $SECRET{$_}", "webhooks: the receiver gets the variable $_" for sort keys %SECRET;
is $request->{headers}{'x-two'}, "$SECRET{QUOTES}-$SECRET{BACKSLASHES}", 'webhooks: a value may have several variables';

my $unset = server_with(lines_of(headers => { a => '${{ env.LG_WEBHOOK_UNSET }}' }));
($ok, $output) = $unset->check_config;
ok !$ok, 'webhooks: httpd does not start without a variable';
like $output, qr/AgentWebhookHeader: expected .* whose variables httpd knows, as the value of 'a'/, 'webhooks: the message names the header';

for my $text ('%{osenv:HOME}', "a\x{85}b") {
    my $built = build_python(application({ webhooks => { headers => { a => $text } } }));
    unlike $built->{output}, qr/^AgentWebhookHeader/m, 'webhooks: a text that httpd would read as another one is left out';
    like $built->{output}, qr/webhooks\.headers is left out for "a"/, 'webhooks: the message names it';
}

undef $server;
undef $unset;
done_testing;
