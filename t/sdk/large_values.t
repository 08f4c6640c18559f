# SPDX-License-Identifier: Apache-2.0
# Large values of applications in both languages, served through httpd: a state of
# 20 MB that grows step by step, and what is too large for one line of a runner.
use strict;
use warnings;
use AgentTest::Client qw(read_events);
use AgentTest::Wait;
use FindBin;
use lib $FindBin::Bin;
use SdkTest;
use Test::More;

my %file_of = (python => 'large/graph.py', javascript => 'large/graph.mjs');

# The lengths of what a state has.
sub sizes { return [ scalar @{ $_[0]{parts} }, length($_[0]{text} // '') ] }

for my $language (qw(python javascript)) {
    my ($folder, $packages) = SdkTest::with_graph($language, $file_of{$language}, 'pile');
    subtest $language => sub {
        plan skip_all => "the user of runners may not read $packages" if !SdkTest::is_readable($packages);
        my $sdk = SdkTest->serve({ large => $folder }, ['pile']);
        my $client = $sdk->client;
        my $stream = sub {
            my ($thread, $do) = @_;
            my $answer = $client->post("/threads/$thread/runs/stream",
                { assistant_id => 'pile', input => { do => $do }, stream_mode => [qw(values custom)] });
            return read_events($answer->{body});
        };

        my $thread = $client->new_thread;
        my @events = $stream->($thread, 'pile');
        is $events[-1]{event}, 'values', 'large values: a run makes a state of 20 MB';
        is_deeply sizes($events[-1]{data}), [ 750, 6_000_000 ], 'large values: its stream has the whole state';
        is_deeply sizes($client->get_state($thread)->{values}), [ 750, 6_000_000 ], 'large values: so has the state of the thread';
        $sdk->server->graceful;
        # A connection of the children before may close under a request; no POST is repeated.
        wait_for('the new children', sub { $client->get('/ok')->{status} == 200 });
        @events = $stream->($thread, 'add');
        is_deeply sizes($events[-1]{data}), [ 751, 6_000_000 ], 'large values: a run of another process goes on from it';

        my $waiting = $client->start_run(undef, assistant_id => 'pile', input => { do => 'wait' });
        my %what = ('write too much' => 'an event "custom"', 'return too much' => '(?:the result of a task|what a step changes in the state)');
        for my $do (sort keys %what) {
            my ($error) = grep { $_->{event} eq 'error' } $stream->($thread, $do);
            is $error->{data}{error}, 'ValueTooLargeError', "large values: a node that shall $do";
            like $error->{data}{message}, qr/\A$what{$do} has \d+ bytes in a line to the server, more than 8388608\z/,
                "large values: the error of a node that shall $do names the limit";
            like $sdk->server->error_log, qr/run [-\da-f]+: .*ValueTooLargeError: $what{$do}/, "large values: the log has the error of a node that shall $do";
        }
        is $client->get("/threads/$thread")->{json}{status}, 'error', 'large values: the thread is in error';
        is_deeply sizes($client->get_state($thread)->{values}), [ 751, 6_000_000 ], 'large values: its state is that before';
        is_deeply sizes(($stream->($thread, 'add'))[-1]{data}), [ 752, 6_000_000 ], 'large values: the next run goes on from it';
        is $client->get_run($waiting)->{status}, 'pending', 'large values: another run of the process goes on';
        $sdk->finish;
    };
}
done_testing;
