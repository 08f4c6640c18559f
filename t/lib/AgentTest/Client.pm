# SPDX-License-Identifier: Apache-2.0
# A client of the deployment API for tests: JSON over HTTP, the steps that most
# tests begin with, and raw bytes that a proper client would not send.
#
#   my $client = AgentTest::Client->new;          # the server under test, or url => ...;
#                                                 # tls => options of IO::Socket::SSL
#   my $answer = $client->post('/threads', {});
#   $answer->{status}, {headers}{'content-type'}, {body}, {json}
#   my $run = $client->create_run($client->new_thread, 'hello');
package AgentTest::Client;
use strict;
use warnings;
use Carp qw(croak);
use Cpanel::JSON::XS;
use Exporter 'import';
use HTTP::Tiny;
use IO::Select;
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_RCVBUF);

our @EXPORT_OK = qw(parse_response read_all read_events read_to_end read_until run_body
    run_path unchunk);

my $TIMEOUT_SEC = 120;
my $JSON = Cpanel::JSON::XS->new->utf8->allow_nonref->canonical;

sub new {
    my ($class, %args) = @_;
    my $url = $args{url} // $ENV{AGENT_TEST_URL}
        // croak 'no server: run tests through t/TEST.PL';
    my ($address) = $url =~ m{\Ahttps?://([^/]+)};
    my $http = HTTP::Tiny->new(
        timeout => $args{timeout} // $TIMEOUT_SEC,
        keep_alive => 0,
        max_redirect => 0,
        no_proxy => ['127.0.0.1'],
        ($args{local_address} ? (local_address => $args{local_address}) : ()),
        ($args{tls} ? (verify_SSL => 0, SSL_options => $args{tls}) : ()),
    );
    return bless { url => $url, address => $address, local_address => $args{local_address}, http => $http }, $class;
}

sub url { return $_[0]{url} }

# --- Requests -----------------------------------------------------------------

# The body is a structure to encode, or a string that is sent as it is.
sub request {
    my ($self, $method, $path, $body, $headers) = @_;
    my %headers = %{ $headers || {} };
    my %options = (headers => \%headers);
    if (defined $body) {
        $headers{'Content-Type'} //= 'application/json';
        $options{content} = ref $body ? $JSON->encode($body) : $body;
    }
    my $answer = $self->{http}->request($method, $self->{url} . $path, \%options);
    croak "$method $path: $answer->{content}" if $answer->{status} == 599;
    return answer(@{$answer}{qw(status headers content)});
}

sub get    { my ($self, @rest) = @_; return $self->request('GET', @rest) }
sub post   { my ($self, @rest) = @_; return $self->request('POST', @rest) }
sub delete { my ($self, @rest) = @_; return $self->request('DELETE', @rest) }

sub answer {
    my ($status, $headers, $body) = @_;
    my $json = eval { $JSON->decode($body) };
    return { status => $status, headers => $headers, body => $body,
        json => $json };
}

# --- Raw bytes ----------------------------------------------------------------

# From local_address, or connection(LocalAddr => '127.0.0.2'): as a client of that address.
sub connection {
    my ($self, %options) = @_;
    return IO::Socket::INET->new(PeerAddr => $self->{address},
        ($self->{local_address} ? (LocalAddr => $self->{local_address}) : ()), Timeout => $TIMEOUT_SEC, %options) // croak "no connection to $self->{address}: $!";
}

# Sends the bytes and returns all that is received until the server closes.
sub exchange {
    my ($self, $bytes) = @_;
    my $socket = $self->connection;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $bytes;
    return read_to_end($socket);
}

sub read_to_end {
    my ($socket) = @_;
    my $all = '';
    local $SIG{ALRM} = sub { croak "no end of the answer; so far: $all" };
    alarm $TIMEOUT_SEC;
    1 while sysread $socket, $all, 65_536, length $all;
    alarm 0;
    return $all;
}

# Reads several to their end at the same time, each as soon as there is something.
sub read_all {
    my (@sockets) = @_;
    my $select = IO::Select->new(@sockets);
    my %read = map { (fileno $_) => '' } @sockets;
    my @order = map { fileno $_ } @sockets;
    while (my @ready = $select->can_read) {
        for my $socket (@ready) {
            my $id = fileno $socket;
            sysread($socket, $read{$id}, 262_144, length $read{$id}) or $select->remove($socket);
        }
    }
    return @read{@order};
}

# Reads until the bytes match the pattern; returns them.
sub read_until {
    my ($socket, $pattern) = @_;
    my $seen = '';
    local $SIG{ALRM} = sub { croak "not seen: $pattern, but: " . substr $seen, -200 };
    alarm $TIMEOUT_SEC;
    while ($seen !~ $pattern) {
        sysread $socket, $seen, 65_536, length $seen
            or croak 'cut: ' . substr $seen, -200;
    }
    alarm 0;
    return $seen;
}

# begin(...) sends a request and returns its connection at once; finish(...) waits
# for the answer. receive_bytes: of the receive buffer; last_event_id: the header.
sub begin {
    my ($self, $method, $path, $body, %with) = @_;
    my $socket = $self->connection;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', $with{receive_bytes} if $with{receive_bytes};
    my $content = !defined $body ? '' : ref $body ? $JSON->encode($body) : $body;
    my $head = "$method $path HTTP/1.1\r\nHost: $self->{address}\r\n"
        . "Connection: close\r\n";
    $head .= "Last-Event-ID: $with{last_event_id}\r\n" if defined $with{last_event_id};
    $head .= 'Content-Length: ' . length($content) . "\r\n" if defined $body;
    syswrite $socket, "$head\r\n$content";
    return $socket;
}

sub finish {
    my ($self, $socket) = @_;
    return parse_response(read_to_end($socket));
}

# status 0 when the server closed without an answer
sub parse_response {
    my ($bytes) = @_;
    my ($head, $body) = split /\r\n\r\n/, $bytes, 2;
    my ($first, @lines) = split /\r\n/, $head // '';
    my ($status) = ($first // '') =~ m{\AHTTP/1\.1 (\d+)};
    return answer(0, {}, $bytes) if !$status;
    my %headers = map { /\A([^:]+):\s*(.*)\z/ ? (lc $1 => $2) : () } @lines;
    $body = unchunk($body) if ($headers{'transfer-encoding'} // '') eq 'chunked';
    return answer($status, \%headers, $body);
}

sub unchunk {
    my ($rest) = @_;
    my $body = '';
    while ($rest =~ s/\A([0-9A-Fa-f]+)[^\r\n]*\r\n//) {
        my $size = hex $1;
        $body .= substr $rest, 0, $size, '';
        $rest =~ s/\A\r\n//;
        last if !$size;
    }
    return $body;
}

# The complete events of a stream's body: {event, id, data}, data decoded.
sub read_events {
    my ($body) = @_;
    return map {
        my %event = /^(event|data|id): (.*)$/mg;
        $event{data} = $JSON->decode($event{data});
        \%event;
    } grep { /^event:/m } $body =~ /(.*?)\n\n/gs;
}

# --- Steps --------------------------------------------------------------------

sub expect_200 {
    my ($what, $answer) = @_;
    croak "$what was answered $answer->{status}: $answer->{body}"
        if $answer->{status} != 200;
    return $answer->{json};
}

sub create_thread {
    my ($self, %body) = @_;
    return expect_200('create thread', $self->post('/threads', \%body));
}

# The id of a new thread.
sub new_thread {
    my ($self) = @_;
    return $self->create_thread->{thread_id};
}

# run_body('text of the user', %more_fields): the body of a request that
# creates a run; without a text it has no input.
sub run_body {
    my ($text, %more) = @_;
    my %body = (assistant_id => 'agent', %more);
    $body{input} = { messages => [ { role => 'user', content => $text } ] }
        if defined $text;
    return \%body;
}

# create_run($thread_id, 'text of the user', %more_fields)
sub create_run {
    my ($self, $thread_id, $text, %more) = @_;
    return expect_200('create run',
        $self->post("/threads/$thread_id/runs", run_body($text, %more)));
}

# The same on a new thread.
sub start_run {
    my ($self, $text, %more) = @_;
    return $self->create_run($self->new_thread, $text, %more);
}

sub get_run {
    my ($self, $run) = @_;
    return expect_200('get run', $self->get(run_path($run)));
}

# The result of the run, once it has finished.
sub join_run {
    my ($self, $run) = @_;
    return expect_200('join', $self->get(run_path($run) . '/join'));
}

sub get_state {
    my ($self, $thread_id) = @_;
    return expect_200('get state', $self->get("/threads/$thread_id/state"));
}

# The path of a run, given its record.
sub run_path {
    my ($run) = @_;
    return "/threads/$run->{thread_id}/runs/$run->{run_id}";
}

1;
