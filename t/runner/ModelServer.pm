# SPDX-License-Identifier: Apache-2.0
# Starts the model test server (model-server/) and reads its log.
package ModelServer;
use strict;
use warnings;
use AgentTest::Env qw(root);
use HTTP::Tiny;
use Cpanel::JSON::XS;
use POSIX ();

my %KEYS = (anthropic => 'test-key-anthropic', openai => 'test-key-openai');

# new(arguments => [key file, certificate file])
sub new {
    my ($class, %args) = @_;
    pipe my $their_in, my $stop or die "pipe: $!\n";
    pipe my $out, my $their_out or die "pipe: $!\n";
    my $pid = fork() // die "fork: $!\n";
    if ($pid == 0) {
        open STDIN,  '<&', $their_in  or POSIX::_exit(1);
        open STDOUT, '>&', $their_out or POSIX::_exit(1);
        close $_ for $stop, $out;
        exec 'node', root() . '/t/runner/model-server/main.js',
            @{ $args{arguments} || [] } or POSIX::_exit(127);
    }
    close $_ for $their_in, $their_out;
    my $url = <$out> // die "the model server did not start\n";
    chomp $url;
    return bless { url => $url, pid => $pid, stop => $stop, owner => $$ }, $class;
}

# The server exits at the end of its stdin, also when this process is killed.
sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner};
    local $?;
    close $self->{stop};
    waitpid $self->{pid}, 0;
    return;
}

sub url { return shift->{url} }

# The `model` of a graph that uses this server with a vendor's format.
sub model {
    my ($self, $vendor, %fields) = @_;
    return {
        provider   => $vendor,
        name       => "$vendor-test",
        url        => $self->{url} . ($vendor eq 'openai' ? '/v1' : ''),
        key        => $KEYS{$vendor},
        timeout_ms => 120_000,
        max_tokens => 1000,
        %fields };
}

sub tool {
    my ($self, $name, %fields) = @_;
    return {
        name        => $name,
        kind        => 'http',
        method      => 'POST',
        url         => "$self->{url}/tool/$name",
        description => "The tool $name",
        schema      => { type => 'object', properties => { city => { type => 'string' } } },
        timeout_ms  => 30_000,
        %fields };
}

sub get {
    my ($self, $path) = @_;
    my $response = HTTP::Tiny->new(timeout => 120)->get($self->{url} . $path);
    die "GET $path: $response->{status} $response->{content}\n" if !$response->{success};
    return decode_json($response->{content});
}

# The calls with that key, in order.
sub calls {
    my ($self, $key) = @_;
    return @{ $self->get("/log?key=$key") };
}

# Waits for a call with that key; returns it.
sub seen {
    my ($self, $key) = @_;
    return $self->get("/seen?key=$key");
}

# Waits until the last call with that key is over; returns it.
sub closed {
    my ($self, $key) = @_;
    return $self->get("/closed?key=$key");
}

1;
