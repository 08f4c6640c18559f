# SPDX-License-Identifier: Apache-2.0
# A server of models and tools with hostile replies. The first part of the path
# selects the action; each connection has its own process:
#
#   my $server = HostileServer->new;
#   graph(model => $server->model('openai', 'ids'))
#   $server->tool('json')          # a tool for a graph
#   $server->wait_requests(16)     # of /gate/ and /stall/, which are held, /page/, /book/ and /prose/
#   $server->release(1)            # answers one of those that are held
package HostileServer;
use strict;
use warnings;
use AgentTest::Child;
use AgentTest::Env qw(free_port);
use IO::Handle;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);

use constant TIMEOUT => 120;

# Actions: ($socket, $path, $self, $body).
my %actions = (
    ok    => sub { send_stream($_[0], answer_of($_[1], 'fine')) },
    bytes => \&send_bytes,
    ids   => sub { send_endless($_[0], sub { qq({"id":"$_[0]","choices":[]}) }) },
    names => sub { send_endless($_[0], sub { call_chunk($_[0]) }) },
    calls => sub { send_stream($_[0], join '', map { event(call_chunk("tool$_", $_)) } 1 .. 200) },
    args  => \&send_args,
    json  => \&send_json,
    lines => \&send_lines,
    long  => \&send_long,
    page  => sub { send_text($_[0], $_[2], 'x' x 66_000) },
    book  => sub { send_text($_[0], $_[2], 'x' x ((1 << 20) - 300)) },
    prose => sub { send_text($_[0], $_[2], 'word ' x 200_000) },
    stall => \&send_slowly,
    storm => \&send_storm,
    gate  => \&send_gated,
    silent => \&send_storm_then_wait,
);

sub new {
    my ($class) = @_;
    my $port = free_port();
    my $listener = IO::Socket::INET->new(Listen => 512, LocalAddr => '127.0.0.1',
        LocalPort => $port, ReuseAddr => 1) or die "listen: $!\n";
    pipe my $log, my $log_in or die "pipe: $!\n";
    pipe my $gate_out, my $gate or die "pipe: $!\n";
    my $self = bless { port => $port, seen => 0, log => $log,
        gate => $gate, log_in => $log_in, gate_out => $gate_out }, $class;
    $self->{child} = AgentTest::Child->serve($listener, sub { answer_to($self, $_[0]) });
    close $_ for $listener, $log_in;
    $self->{gate_rest} = $gate_out;
    return $self;
}

sub model {
    my ($self, $vendor, $action, %fields) = @_;
    return { provider => $vendor, name => 'm', url => "http://127.0.0.1:$self->{port}/$action",
        %fields };
}

sub tool {
    my ($self, $action) = @_;
    return { name => $action, kind => 'http', url => "http://127.0.0.1:$self->{port}/$action/tool",
        method => 'POST', timeout_ms => 120_000 };
}

# Waits until $count requests of /gate/ have arrived; returns their number.
sub wait_requests {
    my ($self, $count) = @_;
    while ($self->{seen} < $count) {
        die "only $self->{seen} of $count requests arrived\n"
            if !IO::Select->new($self->{log})->can_read(TIMEOUT);
        $self->count_requests;
    }
    return $self->{seen};
}

# The number of requests of /gate/ so far.
sub count_requests {
    my ($self) = @_;
    while (IO::Select->new($self->{log})->can_read(0)) {
        $self->{seen} += sysread($self->{log}, my $bytes, 4096) || die "the server ended\n";
    }
    return $self->{seen};
}

sub release {
    my ($self, $count) = @_;
    syswrite $self->{gate}, 'x' x $count;
    return;
}

# Closes the gate: takes back unused releases.
sub drain {
    my ($self) = @_;
    while (IO::Select->new($self->{gate_rest})->can_read(0)) {
        sysread $self->{gate_rest}, my $bytes, 4096;
    }
    return;
}

# ---- the server ----

# In the process of a connection.
sub answer_to {
    my ($self, $socket) = @_;
    close $_ for $self->{log}, $self->{gate};
    local $SIG{PIPE} = 'IGNORE';
    my ($path, $body) = read_request($socket);
    my ($action) = $path =~ m{^/(\w+)/};
    $actions{$action}->($socket, $path, $self, $body) if $actions{$action};
    return shutdown $socket, 1;
}

sub read_request {
    my ($socket) = @_;
    my ($text, $path, $length) = ('');
    while ($text !~ /\r\n\r\n/) {
        sysread $socket, $text, 65_536, length $text or POSIX::_exit(0);
    }
    ($path) = $text =~ /^\S+ (\S+)/;
    ($length) = $text =~ /^content-length: (\d+)/mi;
    my $missing = ($length // 0) - (length($text) - index($text, "\r\n\r\n") - 4);
    while ($missing > 0) {
        $missing -= sysread($socket, $text, 1 << 20, length $text) || POSIX::_exit(0);
    }
    return ($path, $text =~ s/\A.*?\r\n\r\n//sr);
}

sub send_all {
    my ($socket, $bytes) = @_;
    my $at = 0;
    while ($at < length $bytes) {
        my $sent = syswrite $socket, $bytes, 1 << 18, $at;
        POSIX::_exit(0) if !$sent;
        $at += $sent;
    }
    return;
}

sub head {
    my ($type) = @_;
    return "HTTP/1.1 200 OK\r\nContent-Type: $type\r\nConnection: close\r\n\r\n";
}

sub event { return "data: $_[0]\n\n" }

# A complete answer with that text in the format of the path.
sub answer_of {
    my ($path, $text) = @_;
    return event(qq({"choices":[{"delta":{"content":"$text"},"finish_reason":"stop"}]}))
        . event('[DONE]')
        if $path =~ /completions/;
    return join '', map { event($_) } '{"type":"message_start","message":{"id":"i"}}',
        qq({"type":"content_block_start","index":0,"content_block":{"type":"text","text":"$text"}}),
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}', '{"type":"message_stop"}';
}

sub call_chunk {
    my ($name, $index) = @_;
    $index //= 0;
    return qq({"choices":[{"delta":{"tool_calls":[{"index":$index,"id":"i$index",)
        . qq("function":{"name":"$name","arguments":"{}"}}]}}]});
}

sub send_stream {
    my ($socket, $events) = @_;
    return send_all($socket, head('text/event-stream') . $events);
}

sub send_bytes {
    my ($socket, $path) = @_;
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
    my $stream = head('text/event-stream') . answer_of($path, 'word ' x 4000);
    syswrite $socket, substr $stream, $_, 1 for 0 .. length($stream) - 1;
    return;
}

# Events of nearly 1 MiB, each with another word, for as long as they are read.
sub send_endless {
    my ($socket, $make) = @_;
    send_all($socket, head('text/event-stream'));
    send_all($socket, event($make->($_ . 'x' x 900_000))) for 1 .. 1_000_000;
    return;
}

# A progress line of 1 MiB: a long key over many containers.
sub send_json {
    my ($socket) = @_;
    my $text = '{"result":{"' . 'k' x 400_000 . '":[' . join(',', ('[]') x 200_000) . ']}}';
    return send_all($socket, head('application/x-ndjson') . "$text\n");
}

# An object of 225 KB; json-c's tree of it takes 61 MB.
my $nested = '{"a":[' . join(',', ('{}') x 75_000) . ']}';

sub quote { return '"' . ($_[0] =~ s/(["\\])/\\$1/gr) . '"' }

# A call of the tool clock with those arguments, in pieces; of the path /args/whole,
# in one event as an object. Then an answer.
sub send_args {
    my ($socket, $path, undef, $body) = @_;
    return send_stream($socket, answer_of($path, 'fine')) if $body =~ /"tool_call_id"|"tool_result"/;
    my $is_whole = $path =~ m{/whole/};
    my @pieces = $is_whole ? $nested : map { quote($_) } $nested =~ /(.{1,16000})/g;
    if ($path =~ /completions/) {
        return send_stream($socket, join '',
            event('{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"clock"}}]}}]}'),
            (map { event(qq({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":$_}}]}}]})) } @pieces),
            event('{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}'), event('[DONE]'));
    }
    my $input = $is_whole ? shift @pieces : '{}';
    return send_stream($socket, join '', map { event($_) } '{"type":"message_start","message":{"id":"i"}}',
        qq({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"i","name":"clock","input":$input}}),
        (map { qq({"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":$_}}) } @pieces),
        '{"type":"message_delta","delta":{"stop_reason":"tool_use"}}', '{"type":"message_stop"}');
}

# 128 calls of the tool clock, in every answer.
sub send_storm {
    my ($socket) = @_;
    return send_stream($socket, join '', map { event($_) } '{"type":"message_start","message":{"id":"i"}}',
        (map { qq({"type":"content_block_start","index":$_,"content_block":{"type":"tool_use","name":"clock","input":{}}}) } 1 .. 128),
        '{"type":"message_delta","delta":{"stop_reason":"tool_use"}}', '{"type":"message_stop"}');
}

# The same until the run has grown, then an answer that waits for the gate.
sub send_storm_then_wait {
    my ($socket, $path, $self, $body) = @_;
    return length $body > 300_000 ? send_gated($socket, $path, $self) : send_storm($socket);
}

# Progress and a result of that shape.
sub send_lines {
    my ($socket) = @_;
    return send_all($socket, head('application/x-ndjson')
        . qq({"custom":$nested}\n{"result":$nested}\n));
}

# An answer of nearly 2 MiB.
sub send_long {
    my ($socket) = @_;
    my $piece = event('{"choices":[{"delta":{"content":"' . 'word ' x 3200 . '"}}]}');
    return send_stream($socket, $piece x 130 . answer_of('completions', '.'));
}

sub send_text {
    my ($socket, $self, $text) = @_;
    syswrite $self->{log_in}, 'x';
    return send_all($socket, head('text/plain') . $text);
}

# Most of a reply of 1 MB, the rest once it is released.
sub send_slowly {
    my ($socket, $path, $self) = @_;
    send_text($socket, $self, 'x' x 999_000);
    sysread $self->{gate_out}, my $byte, 1;
    return send_all($socket, 'x' x 1000);
}

sub send_gated {
    my ($socket, $path, $self) = @_;
    syswrite $self->{log_in}, 'x';
    sysread $self->{gate_out}, my $byte, 1;
    return send_all($socket, head('text/plain') . 'through');
}

1;
