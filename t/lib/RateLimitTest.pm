# SPDX-License-Identifier: Apache-2.0
# An httpd with the limiter and few other modules, and clients fast enough to
# reach its limits:
#
#   my $server = RateLimitTest->new(config => $lines);
#   $server->start;
#   my $answer = $server->ask('POST', '/runs/query', { 'x-api-key' => 'k' });
#   $answer->{status}, {headers}{'retry-after'}, {body}, {json}
#   my %count = $server->flood(2001, 'POST', '/runs/batch', \%headers);
#   $count{admitted}, $count{refused}, $count{first}  # the first refusal's index
#   %count = $server->flood_with(70_000, sub { $server->request_text(...) });
#
# It has a second port; ->second is the same server seen through it.
package RateLimitTest;
use strict;
use warnings;
use parent 'AgentTest::Server';

use AgentTest::Client;
use AgentTest::Env qw(root build_dir modules_dir is_root free_port slurp write_file);
use AgentTest::Wait;
use Carp qw(croak);
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Scalar::Util qw(weaken);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

our @EXPORT = qw(table modules rule_of left hash_of wait_ms next_key
    next_address);

# Requests in flight in a flood.
my $BATCH = 100;

# Servers to stop before global destruction.
my @servers;

# config => lines after the frame; defines => names for <IfDefine>.
sub new {
    my ($class, %args) = @_;
    my $dir = tempdir('/tmp/agent-test-limit.XXXXXX', CLEANUP => 0);
    chmod 0755, $dir or die "$dir: $!\n";
    my $self = bless { dir => $dir, port => free_port(), port_2 => free_port(),
        pid => $$, defines => $args{defines} // [] }, $class;
    make_path(map { "$dir/$_" } qw(conf logs htdocs));
    $self->configure($args{config} // '');
    push @servers, $self;
    weaken $servers[-1];
    return $self;
}

# Writes the configuration, at first or for a restart.
sub configure {
    my ($self, $config) = @_;
    my %define = (
        ROOT    => root(),
        MODULE  => build_dir() . '/mod_ratelimit_regional.so',
        MODULES => modules_dir(),
        DIR     => $self->{dir},
        PORT    => $self->{port},
        PORT_2  => $self->{port_2},
    );
    $self->{conf} = write_file("$self->{dir}/conf/httpd.conf",
        (map { qq(Define $_ "$define{$_}"\n) } sort keys %define),
        (map { "Define $_\n" } @{ $self->{defines} }, is_root() ? 'AS_ROOT' : ()),
        qq(Include "\${ROOT}/t/conf/ratelimit.conf"\n), $config, "\n");
    return;
}

sub second {
    my ($self) = @_;
    # Not blessed into this class: only one object may stop the server.
    return bless { %{$self}, port => $self->{port_2} }, 'RateLimitTest::Second';
}

END {
    for my $server (grep { defined && $_->{pid} == $$ } @servers) {
        $server->DESTROY;
        $server->{pid} = 0;
    }
}

sub dir { return $_[0]{dir} }

# Writes a file to serve.
sub put {
    my ($self, $name, $text) = @_;
    return write_file("$self->{dir}/htdocs/$name", $text);
}

# LoadModule lines of modules that the frame does not load.
sub modules {
    return join '', map { qq(LoadModule ${_}_module "\${MODULES}/mod_$_.so"\n) } @_;
}

# Returns the access log once it matches; it is written after the response.
sub access_log {
    my ($self, $pattern) = @_;
    return wait_for("$pattern in the access log", sub {
        my $log = slurp("$self->{dir}/logs/access_log");
        return $log =~ $pattern ? $log : undef;
    });
}

# The shipped table, of region us.
sub table { return qq(Include "\${ROOT}/conf/ratelimit_regional.conf"\nRateLimitRegion us\n) }

# --- One request ----------------------------------------------------------------

sub connection {
    my ($self) = @_;
    return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}",
        Timeout => 120) // croak "no connection: $!";
}

sub request_text {
    my ($self, $method, $path, $headers, $body) = @_;
    my %headers = (Host => 'localhost', %{ $headers // {} });
    $headers{'Content-Length'} = length $body if defined $body;
    return "$method $path HTTP/1.1\r\n"
        . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers)
        . "\r\n" . ($body // '');
}

sub ask {
    my ($self, $method, $path, $headers, $body) = @_;
    return $self->exchange($self->request_text($method, $path,
        { Connection => 'close', %{ $headers // {} } }, $body));
}

# Sends bytes unchanged; parses the response.
sub exchange {
    my ($self, $bytes) = @_;
    my $socket = $self->connection;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $bytes;
    return AgentTest::Client::parse_response(
        AgentTest::Client::read_to_end($socket));
}

# The rule that a response's RateLimit-Policy names.
sub rule_of {
    my ($answer) = @_;
    my ($name) = ($answer->{headers}{'ratelimit-policy'} // '') =~ /\A"([^"]+)"/;
    return $name // 'none';
}

# The remaining quota of a response.
sub left {
    my ($answer) = @_;
    return ($answer->{headers}{ratelimit} // '') =~ /;r=(\d+)/ ? $1 : undef;
}

# --- Many requests ----------------------------------------------------------------

# Sends a request $count times on one connection and counts the responses with
# 429. $result{sec} is the duration.
sub flood {
    my ($self, $count, $method, $path, $headers, $body) = @_;
    my $text = $self->request_text($method, $path, $headers, $body);
    return $self->flood_with($count, sub { return $text });
}

# Likewise, with requests that the sub makes.
sub flood_with {
    my ($self, $count, $make_text) = @_;
    my %result = (admitted => 0, refused => 0, index => 0);
    my $started = clock_gettime(CLOCK_MONOTONIC);
    my $left = $count;
    $self->{socket} = undef;
    while ($left > 0) {
        my $batch = $left < $BATCH ? $left : $BATCH;
        $left -= $self->send_batch(\%result, $make_text, $batch);
    }
    close delete $self->{socket};
    $result{sec} = clock_gettime(CLOCK_MONOTONIC) - $started;
    return %result;
}

# Returns the number of responses: httpd may close the connection early.
sub send_batch {
    my ($self, $result, $make_text, $batch) = @_;
    my $socket = $self->{socket} //= $self->connection;
    my ($buffer, $done) = ('', 0);
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{ALRM} = sub { croak "no answer; so far: $buffer" };
    alarm 120;
    print {$socket} map { $make_text->() } 1 .. $batch;
    $socket->flush;
    while ($done < $batch) {
        last if !take_answer($result, $socket, \$buffer);
        $done++;
    }
    alarm 0;
    $self->{socket} = undef if $done < $batch;
    return $done;
}

sub take_answer {
    my ($result, $socket, $buffer) = @_;
    my $end;
    while (($end = index ${$buffer}, "\r\n\r\n") < 0) {
        sysread $socket, ${$buffer}, 65_536, length ${$buffer} or return 0;
    }
    my $head = substr ${$buffer}, 0, $end + 4, '';
    my ($length) = $head =~ /^Content-Length: (\d+)/mi;
    while (length ${$buffer} < ($length // 0)) {
        sysread $socket, ${$buffer}, 65_536, length ${$buffer} or return 0;
    }
    substr ${$buffer}, 0, $length // 0, '';
    count_answer($result, $head);
    return 1;
}

sub count_answer {
    my ($result, $head) = @_;
    my $refused = $head =~ m{\AHTTP/1\.1 429 };
    $result->{ $refused ? 'refused' : 'admitted' }++;
    if ($refused && !defined $result->{first}) {
        $result->{first} = $result->{index};
        ($result->{wait_ms}) = $head =~ /^Retry-After-Ms: (\d+)/mi;
        $result->{refused_at} = clock_gettime(CLOCK_MONOTONIC);
    }
    $result->{index}++;
    return;
}

# Sleeps for a refusal's Retry-After-Ms: the interval is under test.
sub wait_ms {
    my ($ms) = @_;
    sleep(($ms + 1) / 1000);
    return;
}

# --- Identities ---------------------------------------------------------------------

my $last = 0;

sub next_key { return sprintf 'test-key-%d-%d', $$, ++$last }

sub next_address {
    my $number = ++$last;
    return sprintf '10.%d.%d.%d', $number >> 16 & 255, $number >> 8 & 255,
        $number & 255;
}

# The hash of a key as operators write it.
sub hash_of { return 'sha256:' . substr sha256_hex($_[0]), 0, 32 }

package RateLimitTest::Second;
use strict;
use warnings;
our @ISA = ('RateLimitTest');

sub DESTROY { return }

1;
