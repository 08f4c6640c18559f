# SPDX-License-Identifier: Apache-2.0
# Valid bodies of hostile shapes, at every route with a body: the memory and time
# of the httpd child that reads them (mod_agent/README.md has the bounds), and
# other requests that the same child serves.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Cost;
use AgentTest::Process qw(httpd_children);
use AgentTest::Server;
use Test::More;

# The largest AgentMaxBody.
my $MOST = 7_340_032;
# Memory limit of a request: a multiple of its body, and the buffers of a
# connection to httpd and one to PostgreSQL.
my ($TIMES, $BASE_BYTES) = (4, 4 << 20);
# About ten times the slowest, and much less than quadratic time.
my $CPU_SEC = 3 * memory_scale();

my ($server, $client)
    = AgentTest::Server->start_with_client("AgentMaxBody $MOST");

# The response without its JSON being decoded, which would take too long.
sub send_body {
    my ($path, $body) = @_;
    my $bytes = $client->exchange("POST $path HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\nContent-Type: application/json\r\n"
        . 'Content-Length: ' . length($body) . "\r\n\r\n$body");
    my ($status) = $bytes =~ m{\AHTTP/1\.1 (\d+)};
    return { status => $status // 0, start => substr $bytes, 0, 2000 };
}

# Sends a body to a route and checks status, error, memory and time.
sub check_cost {
    my ($title, $path, $body, $status, $error) = @_;
    my @children = httpd_children($server->httpd_pid);
    my $cost = cost_of(\@children, sub { send_body($path, $body) });
    my $answer = $cost->{result};
    my $most = memory_scale() * ($TIMES * length($body) + $BASE_BYTES);
    my $shown = $path =~ s{[0-9a-f-]{36}}{{id}}r;
    my $what = "costs: $shown, $title, " . length($body) . ' bytes';
    subtest $what => sub {
        is $answer->{status}, $status, "$what: the status is $status"
            or diag $answer->{start};
        like $answer->{start}, $error, "$what: the detail names the error" if $error;
        cmp_ok $cost->{peak_bytes}, '<', $most, "$what: memory is linear in the size";
        cmp_ok $cost->{cpu_sec}, '<', $CPU_SEC, "$what: time is linear in the size";
    };
    return;
}

# Other requests and runs are served beside expensive requests.
sub check_beside {
    my ($title, $action) = @_;
    return served_beside($client, 10,
        "costs: other requests and runs are served beside $title", $action);
}

# --- Shapes -------------------------------------------------------------------

# An item, repeated to fill a number of bytes, joined by commas.
sub fill {
    my ($item, $bytes) = @_;
    return join ',', ($item) x ($bytes / (1 + length $item));
}

sub make_members {
    my ($bytes, $format, $value) = @_;
    my $count = $bytes / (length(sprintf $format, 1e6) + length($value) + 4);
    return '{' . join(',', map { sprintf(qq("$format":), $_) . $value } 1 .. $count)
        . '}';
}

# Keys with the same sum under the usual hash of multiplier 31.
sub make_colliding {
    my ($bytes) = @_;
    my @keys = ('');
    @keys = map { ("Aa$_", "BB$_") } @keys
        while @keys * 2 * (length($keys[0]) + 9) < $bytes;
    return '{' . join(',', map { qq("$_":null) } @keys) . '}';
}

my $HEAVY = qr/has too many values/;

# title => [ constructor from a number of bytes, whether the largest is refused ]
my %SHAPES = (
    'a long key over many empty arrays' => [ sub {
        '{"' . 'k' x ($_[0] / 2) . '":[' . fill('[]', $_[0] / 2) . ']}' }, 1 ],
    'a long key over many nulls' => [ sub {
        '{"' . 'k' x ($_[0] / 2) . '":[' . fill('null', $_[0] / 2) . ']}' } ],
    'empty objects' => [ sub { '[' . fill('{}', $_[0]) . ']' }, 1 ],
    'empty arrays' => [ sub { '[' . fill('[]', $_[0]) . ']' }, 1 ],
    'arrays 100 deep' => [ sub {
        '[' . fill('[' x 100 . ']' x 100, $_[0]) . ']' }, 1 ],
    'objects 100 deep with a key each' => [ sub {
        '[' . fill('{"key":' x 100 . '0' . '}' x 100, $_[0]) . ']' }, 1 ],
    'one object with many keys' => [ sub { make_members($_[0], '%x', 'null') } ],
    'one object with many escaped keys' => [ sub {
        make_members($_[0], '\u0041%x', 'null') } ],
    'one object with keys that collide' => [ sub { make_colliding($_[0]) } ],
    'objects of seventeen members' => [ sub { '['
        . fill('{' . join(',', map { qq("$_":0) } 'a' .. 'q') . '}', $_[0])
        . ']' }, 1 ],
    'a long string' => [ sub { '"' . 'a' x $_[0] . '"' } ],
    'a string of escapes' => [ sub { '"' . '\u0041' x ($_[0] / 6) . '"' } ],
    'long numbers' => [ sub { '[' . fill('1' x 40, $_[0]) . ']' } ],
    'a number with a long exponent' => [ sub { '1e' . '0' x $_[0] } ],
    'white space' => [ sub { '[' . ' ' x $_[0] . ']' } ],
);

# A run that says hello, or that never begins, with a member after it.
my $HELLO = '"assistant_id":"agent",'
    . '"input":{"messages":[{"role":"user","content":"hello"}]}';
my $LATER = '"assistant_id":"agent","after_seconds":31536000';
my $thread = $client->new_thread;

# The request around the shape; true if it must be answered 200, else 422 is
# accepted too.
my @ROUTES = (
    [ '/threads', '{"x":', '}' ],
    [ "/threads/$thread/runs", qq({$LATER,"input":{"x":), '}}' ],
    [ "/threads/$thread/runs/wait", qq({$HELLO,"multitask_strategy":"rollback","x":), '}' ],
    [ "/threads/$thread/runs/stream", qq({$HELLO,"x":), '}' ],
    [ '/runs', qq({$LATER,"input":{"x":), '}}' ],
    [ '/runs/wait', qq({$HELLO,"x":), '}' ],
    [ '/runs/stream', qq({$HELLO,"x":), '}' ],
    [ '/runs/batch', qq([{$LATER,"context":{"x":), '}}]' ],
    [ '/runs/cancel', '{"x":', '}', qr/expected either status/ ],
);

# --- Every shape --------------------------------------------------------------

for my $title (sort keys %SHAPES) {
    my ($make, $is_heavy) = @{ $SHAPES{$title} };
    check_beside($title, sub {
        check_cost($title, '/threads', '{"x":' . $make->($_) . '}', 200)
            for 50_000, 140_000;
        check_cost($title, '/runs', qq({$LATER,"context":{"x":)
            . $make->(400_000) . '}}', 200)
            if !$is_heavy;
        my $shape = $make->($MOST - 300);
        check_cost($title, '/threads', qq({"x":$shape}),
            $is_heavy ? (422, $HEAVY) : 200);
    });
}

# --- Every route --------------------------------------------------------------

for my $title ('a long key over many nulls', 'one object with many keys') {
    my $shape = $SHAPES{$title}[0]->($MOST - 300);
    check_beside("$title at every route", sub {
        for my $route (@ROUTES) {
            my ($path, $before, $after, $refused) = @{$route};
            check_cost($title, $path, $before . $shape . $after,
                $refused ? (422, $refused) : 200);
        }
    });
}
{
    my $shape = '[' . fill('{}', $MOST - 300) . ']';
    check_beside('empty objects at every route', sub {
        check_cost('empty objects', $_->[0], $_->[1] . $shape . $_->[2], 422, $HEAVY)
            for @ROUTES;
    });
}

# --- Members that are parsed --------------------------------------------------

my $ROOM = $MOST - 300;
my $UUID = '"018f2d6e-7c4b-7abc-9def-0123456789ab"';

# member => [ its value, 200 or the error ]
my @MEMBERS = (
    [ assistant_id => '"' . 'a' x $ROOM . '"', qr{/assistant_id: expected a string of} ],
    [ webhook => '"https://example.com/' . 'a' x $ROOM . '"', qr{/webhook: expected a URL of at most} ],
    [ checkpoint_id => '"' . '\u0041' x ($ROOM / 6) . '"', qr{/checkpoint_id: expected a UUID} ],
    [ multitask_strategy => '"' . 'enqueue' x ($ROOM / 7) . '"', qr{/multitask_strategy: expected} ],
    [ after_seconds => '1e' . '0' x $ROOM, qr{/after_seconds: expected a number} ],
    [ stream_mode => '[' . fill('"values"', $ROOM) . ']', qr{/stream_mode: expected at most 64} ],
    [ feedback_keys => '[' . fill('"k"', $ROOM / 2) . ']', qr{/feedback_keys: expected at most 64} ],
    [ interrupt_before => '[' . fill('"tools"', $ROOM) . ']', 200 ],
    [ config => '{"tags":[' . fill('"a tag"', $ROOM) . ']}', qr{/metadata: expected at most 16384 bytes} ],
    [ config => '{"configurable":{"x":[' . fill('null', $ROOM) . ']}}', qr{/config/configurable: expected at most 65536 bytes} ],
    [ command => '{"resume":[' . fill('null', $ROOM) . ']}', 200 ],
    [ metadata => '{' . join(',', map { qq("k$_":[) . fill('{}', $ROOM / 100) . ']' } 1 .. 64)
        . '}', $HEAVY ],
    [ metadata => make_members($ROOM, '%x', 'null'), qr{/metadata: expected at most 64} ],
);

check_beside('members of the largest size', sub {
    for my $member (@MEMBERS) {
        my ($key, $value, $expected) = @{$member};
        my $run = join ',', map { qq("$_->[0]":$_->[1]) }
            grep { $_->[0] ne $key || $key eq 'input' }
            [ assistant_id => '"agent"' ], [ after_seconds => 31_536_000 ];
        check_cost($key, '/runs', qq({$run,"$key":$value}),
            ref $expected ? (422, $expected) : $expected);
    }
    check_cost('thread_id', '/threads', '{"thread_id":"' . 'a' x $ROOM . '"}',
        422, qr{/thread_id: expected a UUID});
    check_cost('run_ids', '/runs/cancel',
        qq({"thread_id":$UUID,"run_ids":[) . fill($UUID, $ROOM) . ']}',
        422, qr{/run_ids: expected an array of 1 to 1000});
});

# --- Lists of runs and messages -----------------------------------------------

check_beside('lists', sub {
    my $run = qq({$LATER});
    my $message = '{"role":"user","content":"hello there"}';
    my $room = int($ROOM / 1000) - 2;
    check_cost('a batch of too many runs', '/runs/batch',
        '[' . fill($run, 1_000_000) . ']', 422, qr/expected an array of 1 to 1000 runs/);
    check_cost('a batch of nulls', '/runs/batch', '[' . fill('null', $ROOM) . ']',
        422, qr/expected an array of 1 to 1000 runs/);
    check_cost('a batch of large runs', '/runs/batch', '['
        . join(',', (qq({$LATER,"x":") . 'x' x ($room - 70) . '"}') x 1000) . ']', 200);
    check_cost('messages', '/runs', qq({$LATER,"input":{"messages":[)
        . fill($message, 2_000_000) . ']}}', 200);
    check_cost('content blocks', '/runs', qq({$LATER,"input":{"messages":[{"role":"user",)
        . '"content":[' . fill('"a"', 2_000_000) . ']}]}}', 200);
});

# --- Duplicate keys -----------------------------------------------------------

check_beside('duplicate keys', sub {
    my $wide = make_members($ROOM - 100, '%x', 'null');
    chop $wide;
    check_cost('the first key repeated as the last', '/threads', qq({"x":$wide,"1":0}}),
        422, qr{/x/1: is a duplicate key});
    check_cost('the first key repeated as the last, escaped', '/threads', qq({"x":$wide,"\\u0031":0}}),
        422, qr{/x/\\\\u0031: is a duplicate key});
    check_cost('a long key twice', '/threads', '{"' . 'k' x ($ROOM / 2) . '":1,"'
        . 'k' x ($ROOM / 2) . '":2}', 422, qr{"/k{64}: is a duplicate key});
});

undef $server;
done_testing;
