# SPDX-License-Identifier: Apache-2.0
# The query parameter namespace of run streams: events of these graphs only. The
# test plays a worker whose graph has subgraphs.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../sql/lib";
use AgentSQL::Play;
use AgentSQL::Session;
use AgentTest::Client qw(run_path);
use AgentTest::Server;
use AgentTest::Wait;
use Test::More;

my ($server, $client) = AgentTest::Server->start_with_client('AgentRunner /bin/false');
my $play = AgentSQL::Play->new(AgentSQL::Session->new({}));
my $worker = $play->worker(node => 'test', lease_sec => 3600);

# Ten levels of subgraphs, of any characters, in 4,096 bytes.
my $DEEP = join '|', map { "der n\x{e4}chste Schritt \x{20ac}$_:" . AgentSQL::uuid() } 1 .. 10;
my $LONG = "updates|$DEEP|";
utf8::encode(my $bytes = $LONG);
$LONG .= 'x' x (4096 - length $bytes);
my $deep_bytes = substr $LONG, length 'updates|';
utf8::encode($_) for $deep_bytes, my $long_bytes = $LONG;

my @ALL = ('metadata', 'values', 'lifecycle|a:1', 'values|a:1', 'updates|a:1', 'values|a:1|b:2',
    'values|a:10', 'custom', $LONG);

# The worker's part: claims the run, saves all events, ends it
# and notifies those who wait.
sub execute {
    my $claim;
    wait_for('a run', sub { ($claim) = $play->claim($worker) });
    $play->save($worker,
        (map { AgentSQL::Play::event($claim, $_, $ALL[$_], {}) } 0 .. $#ALL),
        AgentSQL::Play::finish($claim));
    $play->session->query("select agent.notify_runs('{$claim->{run_id}!,$claim->{thread_id}}')");
    return;
}

sub names {
    my ($answer) = @_;
    # The clients break lines at more characters than \n.
    utf8::decode(my $text = $answer->{body});
    my @names = map { /\Aevent: (.*)\z/s ? $1 : () } split /\r\n|[\n\r\x{b}\x{c}\x{1c}-\x{1e}\x{85}\x{2028}\x{2029}]/, $text;
    utf8::encode($_) for @names;
    return \@names;
}

my $body = { assistant_id => 'agent', input => {}, stream_subgraphs => \1 };
my $run = $client->create_run($client->new_thread, undef, %{$body});
execute();
my $stream = run_path($run) . '/stream';
is_deeply names($client->get($stream)), [ @ALL[ 0 .. 7 ], $long_bytes ], 'namespace: without it events of all graphs are sent';
my %WANTED = (
    'namespace='                       => [qw(metadata values custom)],
    'namespace=a%3A1'                  => [qw(metadata lifecycle|a:1 values|a:1 updates|a:1)],
    'namespace=a%3A1%7Cb%3A2'          => [qw(metadata values|a:1|b:2)],
    'namespace=&namespace=a%3A10'      => [qw(metadata values values|a:10 custom)],
    'namespace=a%3A1&stream_mode=values' => [qw(metadata values|a:1)],
    'namespace=none'                   => [qw(metadata)],
    'namespace=' . $deep_bytes =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ger => [ 'metadata', $long_bytes ],
);
for my $query (sort keys %WANTED) {
    is_deeply names($client->get("$stream?$query")), $WANTED{$query},
        "namespace: $query selects events";
    is_deeply names($client->get("/runs/$run->{run_id}/stream?$query")), $WANTED{$query},
        "namespace: $query selects events of a stateless stream";
}

my $created = $client->begin(POST => '/runs/stream?namespace=', $body);
execute();
is_deeply names($client->finish($created)), [qw(metadata values custom)],
    'namespace: the request that creates a run selects events';
is $client->get('/info')->{json}{flags}{stream_namespaces}, Cpanel::JSON::XS::true(),
    'namespace: /info has the flag stream_namespaces';

undef $server;
done_testing;
