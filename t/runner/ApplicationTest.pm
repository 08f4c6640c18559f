# SPDX-License-Identifier: Apache-2.0
# Drives a runner of applications: RunnerTest with another program, and with records
# for what the graph library saves, over several runs of a thread.
package ApplicationTest;
use strict;
use warnings;
use Cpanel::JSON::XS;
use RecordStore;
use parent -norequire, 'RunnerTest';
use RunnerTest ();

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# new(command => [...], directory => the application's, graphs => {name => path}, records => RecordStore,
#     store => sub { my ($request) = @_; ...; return the line of the reply }, in place of the records' own items)
sub new {
    my ($class, %args) = @_;
    my ($records, $paths, $store) = delete @args{qw(records graphs store)};
    my $self = RunnerTest::new($class, %args);
    @{$self}{qw(records store)} = ($records || RecordStore->new, $store);
    $self->send({ type => 'hello', protocol => 2, limits => { line => 8_388_608, blob_part => 4_194_304 },
        application => { name => 'test', directory => $args{directory} },
        graphs => { map { $_ => { kind => 'langgraph', path => $paths->{$_}, description => undef } } keys %{$paths} } });
    $self->{ready} = $self->expect('ready');
    return $self;
}

sub records { return shift->{records} }

sub send {    ## no critic (Subroutines::ProhibitBuiltinHomonyms)
    my ($self, @messages) = @_;
    for my $message (grep { $_->{type} =~ /\A(?:start|call)\z/ } @messages) {
        $self->{records}->begin($message);
        delete $self->{ended}{ $message->{run_id} };
    }
    return $self->SUPER::send(@messages);
}

sub take_line {
    my ($self, $line) = @_;
    return $self->SUPER::take_line($line) if $line->{type} =~ /\A(?:importing|ready)\z/;
    my $run_id = $line->{run_id} // '';
    die "a line of a run that has ended: $line->{' text'}\n" if $self->{ended}{$run_id};
    $self->{ended}{$run_id} = 1 if $line->{type} eq 'end';
    $self->SUPER::take_line($line);
    $self->{records}->take($line);
    push @{ $self->{to_acknowledge} }, $line if defined $line->{ack} && !$self->{is_withholding_acks};
    return;
}

# Records are acknowledged when all lines that were there are read: then those of parallel tasks are open together.
sub take_output {
    my ($self) = @_;
    $self->SUPER::take_output;
    $self->acknowledge($_) for splice @{ $self->{to_acknowledge} //= [] };
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
    return $self->send({ type => 'reply', %{$line}{qw(run_id epoch)}, id => $line->{ack}, ok => \1, result => undef, cursor => undef });
}

sub reply_to {
    my ($self, $line, $id, $reply) = @_;
    return $json->encode({ type => 'reply', id => $id, %{$line}{qw(run_id epoch)}, %{$reply} }) . "\n";
}

sub answer {
    my ($self, $request) = @_;
    push @{ $self->{requests}{ $request->{run_id} } }, $request;
    return $self->{store}->($request) if $self->{store} && $request->{op} eq 'store';
    return $self->reply_to($request, $request->{id}, $self->{records}->answer($request));
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
    my $thread = $self->{records}->thread($thread_id);
    my $head = $thread->{checkpoints}{ $checkpoint_id // $thread->{head} // '' };
    return (thread_id => $thread_id) if !$head;
    return (thread_id => $thread_id, checkpoint => { %{$head}{qw(checkpoint_id next run_id format)},
        step => $head->{metadata}{step}, bytes => 2 });
}

1;
