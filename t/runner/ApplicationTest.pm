# SPDX-License-Identifier: Apache-2.0
# Drives a runner of applications: RunnerTest with another program and a store
# for what the graph library saves, over several runs of a thread.
package ApplicationTest;
use strict;
use warnings;
use Cpanel::JSON::XS;
use RecordStore;
use parent -norequire, 'RunnerTest';
use RunnerTest ();

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# new(command => [...], directory => ..., graphs => {name => path}, store => RecordStore)
sub new {
    my ($class, %args) = @_;
    my $store = delete $args{store} || RecordStore->new;
    my $paths = delete $args{graphs};
    my $self = RunnerTest::new($class, %args);
    @{$self}{qw(store threads)} = ($store, {});
    if ($paths) {
        $self->hello({ map { $_ => { kind => 'langgraph', path => $paths->{$_}, description => undef } } keys %{$paths} });
    }
    return $self;
}

sub store { return shift->{store} }

# Starts and calls tell the threads of runs.
sub send {    ## no critic (Subroutines::ProhibitBuiltinHomonyms)
    my ($self, @messages) = @_;
    $self->{threads}{ $_->{run_id} } = $_->{thread_id} for grep { $_->{thread_id} } @messages;
    return $self->SUPER::send(@messages);
}

sub take_line {
    my ($self, $line) = @_;
    $self->SUPER::take_line($line);
    my $thread_id = $self->{threads}{ $line->{run_id} // '' } or return;
    $self->{store}->take($thread_id, $line);
    $self->acknowledge($line) if defined $line->{ack} && !$self->{is_withholding_acks};
    return;
}

# Records are acknowledged by the test.
sub withhold_acks {
    my ($self) = @_;
    $self->{is_withholding_acks} = 1;
    return;
}

sub acknowledge {
    my ($self, $line) = @_;
    return $self->send_raw($self->reply_to($line, $line->{ack}, { ok => \1, result => undef, cursor => undef }));
}

sub reply_to {
    my ($self, $line, $id, $reply) = @_;
    return $json->encode({ type => 'reply', id => $id, %{$line}{qw(run_id epoch)}, %{$reply} }) . "\n";
}

sub answer {
    my ($self, $request) = @_;
    my $thread_id = $self->{threads}{ $request->{run_id} };
    push @{ $self->{requests}{ $request->{run_id} } }, $request;
    return $self->reply_to($request, $request->{id}, $self->{store}->answer($thread_id, $request));
}

# The requests of a run.
sub requests_of {
    my ($self, $run_id) = @_;
    return @{ $self->{requests}{$run_id} || [] };
}

# The next line of that type; the others stay.
sub expect_type {
    my ($self, $type) = @_;
    my @lines = $self->lines_until(sub { $_[0]{type} eq $type });
    unshift @{ $self->{lines} }, @lines[ 0 .. $#lines - 1 ];
    return $lines[-1];
}

# The fields of the next run of the thread, from its head or the checkpoint with that id.
sub next_run {
    my ($self, $thread_id, $checkpoint_id) = @_;
    my $thread = $self->{store}->thread($thread_id);
    my $head = $thread->{checkpoints}{ $checkpoint_id // $thread->{head} // '' };
    return (thread_id => $thread_id) if !$head;
    return (thread_id => $thread_id, checkpoint => { %{$head}{qw(checkpoint_id next run_id)},
        step => $head->{metadata}{step}, bytes => 2 });
}

1;
