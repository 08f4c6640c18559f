# SPDX-License-Identifier: Apache-2.0
# A process that executes a part of the test, and ends with the object:
#
#   my $child = AgentTest::Child->new(sub { ... });
#   my $server = AgentTest::Child->serve($listener, sub { my ($socket) = @_; ... });
#
# Nothing of the end of the test happens in it. It is killed with the processes that it has made.
package AgentTest::Child;
use strict;
use warnings;
use Carp qw(croak);
use POSIX ();

sub new {
    my ($class, $code) = @_;
    my $self = bless { owner => $$ }, $class;
    $self->{pid} = fork // croak "fork: $!";
    if ($self->{pid} == 0) {
        POSIX::setpgid(0, 0);
        execute($code);
    }
    return $self;
}

# A server with a process for each connection.
sub serve {
    my ($class, $listener, $answer) = @_;
    return $class->new(sub {
        local $SIG{CHLD} = 'IGNORE';
        while (my $socket = $listener->accept) {
            my $pid = fork // croak "fork: $!";
            next if $pid;
            close $listener;
            execute(sub { $answer->($socket) });
        }
    });
}

sub execute {
    my ($code) = @_;
    eval { $code->(); 1 } or warn $@;
    return POSIX::_exit(0);
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $!, $@);
    # The process may have no group of its own yet.
    kill 'KILL', -$self->{pid}, $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
