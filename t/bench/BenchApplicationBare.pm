# SPDX-License-Identifier: Apache-2.0
# A process that executes a run of the bare library whenever it is told to.
package BenchApplicationBare;
use strict;
use warnings;
use IPC::Open2 qw(open2);

# application: one of BenchApplications::prepare().
sub new {
    my ($class, $application) = @_;
    my ($directory, $program, $bare) = @{$application}{qw(directory program bare)};
    my $pid = open2(my $from, my $to, qq(cd '$directory' && exec '$program' $bare lines));
    return bless { pid => $pid, from => $from, to => $to, runs => 0 }, $class;
}

sub pid { return shift->{pid} }

# Executes a run, on a thread of its own.
sub execute {
    my ($self) = @_;
    $self->{runs}++;
    syswrite $self->{to}, "$self->{runs}\n";
    defined readline $self->{from} or die "the bare library failed\n";
    return;
}

sub stop {
    my ($self) = @_;
    close $self->{to};
    waitpid $self->{pid}, 0;
    return;
}

1;
