# SPDX-License-Identifier: Apache-2.0
# Chats of many turns through agent-runner, without a supervisor: bytes on its
# pipes and processor time of a turn. The time is that of the process, from the
# kernel's scheduler, so that other load on the machine changes it little.
package BenchChatRunner;
use strict;
use warnings;
use AgentTest::Env qw(build_dir);
use Cpanel::JSON::XS;
use Fcntl qw(F_DUPFD);
use List::Util qw(min sum);
use POSIX ();

# Turns of a figure.
my $TURNS = 21;
# Elements in a part of a state; a part may have 1 MB.
my $PART = 2_000;

my $json = Cpanel::JSON::XS->new->utf8->allow_nonref;

sub new {
    my ($class) = @_;
    pipe my $their_in, my $out or die "pipe: $!\n";
    pipe my $in, my $their_out or die "pipe: $!\n";
    my $pid = fork() // die "fork: $!\n";
    if ($pid == 0) {
        my @high = map { fcntl($_, F_DUPFD, 64) // die "dup: $!\n" } $their_in, $their_out;
        POSIX::dup2($high[$_], 3 + $_) for 0, 1;
        exec build_dir() . '/agent-runner' or POSIX::_exit(127);
    }
    close $_ for $their_in, $their_out;
    $out->autoflush(1);
    my $self = bless { pid => $pid, in => $in, out => $out, number => 0, bytes => 0 }, $class;
    $self->send({ type => 'hello', protocol => 2, graphs => { agent => { kind => 'builtin', max_steps => 25, tools => [],
        model => { provider => 'demo', timeout_ms => 30_000, max_tokens => 1000 } } } });
    $self->line;
    return $self;
}

sub stop {
    my ($self) = @_;
    close $_ for @{$self}{qw(out in)};
    waitpid $self->{pid}, 0;
    return;
}

sub send {    ## no critic (Subroutines::ProhibitBuiltinHomonyms)
    my ($self, $message) = @_;
    my $text = (ref $message ? $json->encode($message) : $message) . "\n";
    $self->{bytes} += length $text;
    print { $self->{out} } $text or die "the runner has ended\n";
    return;
}

sub line {
    my ($self) = @_;
    my $text = readline $self->{in} // die "the runner has ended\n";
    $self->{bytes} += length $text;
    return $json->decode($text);
}

sub new_id {
    my ($self) = @_;
    return sprintf '%08x-0000-7000-8000-%012x', $$, ++$self->{number};
}

# Milliseconds of processor time so far.
sub cpu_ms {
    my ($self) = @_;
    open my $file, '<', "/proc/$self->{pid}/schedstat" or die "schedstat: $!\n";
    my ($ns) = split ' ', readline $file;
    return $ns / 1e6;
}

# A turn of a chat, { id, checkpoint, step, list of the last turn's messages }.
# The state is given in parts when the runner requests it. Returns the bytes on
# both pipes and the time.
sub turn {
    my ($self, $chat, @parts) = @_;
    my $run = $self->new_id;
    my ($since, $bytes) = ($self->cpu_ms, $self->{bytes});
    $self->send({ type => 'start', run_id => $run, epoch => 1, attempt => 1, thread_id => $chat->{id}, graph_id => 'agent',
        assistant_id => $chat->{id}, input => { messages => [ { role => 'user', content => 'Please tell me a bit more. ' x 8 } ] },
        stream_modes => [qw(values updates checkpoints)], config => {},
        checkpoint => $chat->{checkpoint} && { checkpoint_id => $chat->{checkpoint}, step => 1, next => [], bytes => 0 + (sum(map { length } @parts) // 0) } });
    $chat->{messages} = [];
    while (1) {
        my $line = $self->line;
        if ($line->{type} eq 'request') {
            my $part = shift @parts;
            my $cursor = @parts ? '"0.1"' : 'null';
            $self->send(qq({"type":"reply","run_id":"$run","epoch":1,"id":$line->{id},"ok":true,"cursor":$cursor,"result":$part}));
        }
        elsif ($line->{type} eq 'want') {
            $self->send({ type => 'go', run_id => $run, epoch => 1 });
        }
        elsif ($line->{type} eq 'checkpoint') {
            $chat->{checkpoint} = $line->{checkpoint_id};
            push @{ $chat->{messages} }, @{ $line->{values}{messages}{'$list'}{items} };
        }
        elsif ($line->{type} eq 'end') {
            die "a run has failed: $line->{error}{message}\n" if $line->{status} ne 'success';
            last;
        }
    }
    return ($self->{bytes} - $bytes, $self->cpu_ms - $since);
}

sub median { return (sort { $a <=> $b } @_)[ $#_ / 2 ] }

# The parts of a state with these messages, which are JSON.
sub make_parts {
    my (@messages) = @_;
    my @parts;
    for (my $at = 0; $at < @messages; $at += $PART) {
        my $end = min($at + $PART, scalar @messages);
        push @parts, qq({"values":{"messages":{"\$list":{"keep":$at,"items":[) . join(',', @messages[ $at .. $end - 1 ]) . ']}}}}';
    }
    return @parts;
}

# The tenth turn of a new chat, and the last ones of a chat of $turns, each of which is a
# run: hashes with bytes and ms; cold: the milliseconds that a turn takes longer without
# the state.
sub measure {
    my ($turns) = @_;
    my $self = __PACKAGE__->new;
    my (@tenth, @all, @messages, @cold);
    for (1 .. $TURNS) {
        my $chat = { id => $self->new_id };
        $self->turn($chat) for 1 .. 9;
        push @tenth, [ $self->turn($chat) ];
    }
    my $chat = { id => $self->new_id };
    for (1 .. $turns) {
        push @all, [ $self->turn($chat) ];
        push @messages, map { $json->encode($_) } @{ $chat->{messages} };
    }
    my @last = @all > $TURNS ? @all[ -$TURNS .. -1 ] : @all;
    my @parts = make_parts(@messages);
    push @cold, +($self->turn({ id => $self->new_id, checkpoint => $self->new_id }, @parts))[1] for 1 .. 5;
    $self->stop;
    my ($tenth, $last) = map { my $turns_of = $_;
        { bytes => median(map { $_->[0] } @{$turns_of}), ms => median(map { $_->[1] } @{$turns_of}) } } \@tenth, \@last;
    return { tenth => $tenth, last => $last, cold => min(@cold) - $last->{ms} };
}

1;
