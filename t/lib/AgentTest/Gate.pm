# SPDX-License-Identifier: Apache-2.0
# A tool that answers when the test opens it, and a graph with that tool: a run
# with the input "use gate {}" executes until then, on a machine of any speed.
#
#   my $gate = AgentTest::Gate->new;
#   ... config => AgentTest::Server::shared_config() . $gate->graph
#   my $run = $client->create_run($thread, 'use gate {}', assistant_id => 'gated');
#   $gate->wait_calls(1);     # the run is executing ...
#   $gate->open;              # ... and ends
#
# The runner's time-out of a tool is 30 s.
package AgentTest::Gate;
use strict;
use warnings;
use Carp qw(croak);
use File::Temp;
use IO::Select;
use IO::Socket::INET;

my $LIMIT_SEC = 120;

sub new {
    my ($class) = @_;
    my $listener = IO::Socket::INET->new(Listen => 128, LocalAddr => '127.0.0.1')
        // croak "listen: $!";
    my $schema = File::Temp->new;
    print {$schema} '{"type":"object","properties":{}}';
    close $schema or croak "$schema: $!";
    return bless { listener => $listener, schema => $schema, calls => [] }, $class;
}

# Lines of httpd.conf: the graph `gated`.
sub graph {
    my ($self) = @_;
    my $url = 'http://127.0.0.1:' . $self->{listener}->sockport . '/';
    return "<AgentGraph gated>\nAgentModel demo\n"
        . "AgentTool gate POST $url $self->{schema} \"A gate\"\n</AgentGraph>\n";
}

# Waits until $count calls are unanswered.
sub wait_calls {
    my ($self, $count) = @_;
    my $calls = $self->{calls};
    while (@{$calls} < $count) {
        IO::Select->new($self->{listener})->can_read($LIMIT_SEC)
            or croak 'gave up waiting for a call of the gate';
        push @{$calls}, $self->{listener}->accept // croak "accept: $!";
    }
    return;
}

# Answers the waiting calls.
sub open {    ## no critic (Subroutines::ProhibitBuiltinHomonyms)
    my ($self) = @_;
    my $answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        . "Content-Length: 4\r\nConnection: close\r\n\r\nopen";
    local $SIG{PIPE} = 'IGNORE';
    for my $call (splice @{ $self->{calls} }) {
        my $request = '';
        1 while $request !~ /\r\n\r\n\{/
            && sysread $call, $request, 65_536, length $request;
        syswrite $call, $answer;
        close $call;
    }
    return;
}

1;
