# SPDX-License-Identifier: Apache-2.0
# Drives the runner as the supervisor does: a child with the protocol on its
# descriptors 3 and 4. Each line that it sends is checked as strictly as the
# supervisor does. A wait for it ends after TIMEOUT seconds.
package RunnerTest;
use strict;
use warnings;
use AgentTest::Env qw(build_dir is_sanitized is_counted);
use Encode qw(decode);
use Exporter 'import';
use Fcntl qw(F_DUPFD F_SETFL F_GETFL O_NONBLOCK);
use IO::Handle;
use IO::Select;
use Cpanel::JSON::XS;
use POSIX qw(:sys_wait_h);
use RunnerState qw(set_state resolve place_values reply_line);

our @EXPORT_OK = qw(graph start_line human new_uuid run_graph messages_of
    last_message events_of metadata_of_events lines_of lists_of continue_from script is_sanitized);

use constant TIMEOUT => 120;
use constant LINE_MAX => 8 * 1024 * 1024;
use constant ACKS_MAX => 16;

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

# The program under test.
sub program { return $ENV{AGENT_TEST_RUNNER} || build_dir() . '/agent-runner' }

# --- The process -------------------------------------------------------------

# new(arguments => [...], graphs => {...}): without graphs no hello is sent. Another
# program: command => [path, arguments], directory => its working directory.
sub new {
    my ($class, %args) = @_;
    pipe my $their_in, my $our_out or die "pipe: $!\n";
    pipe my $our_in, my $their_out or die "pipe: $!\n";
    pipe my $log, my $their_log or die "pipe: $!\n";
    my $pid = fork() // die "fork: $!\n";
    if ($pid == 0) {
        chdir $args{directory} or POSIX::_exit(126) if $args{directory};
        my @command = @{ $args{command} || [ program() ] };
        exec_runner($their_in, $their_out, $their_log, @command, @{ $args{arguments} || [] });
    }
    close $_ for $their_in, $their_out, $their_log;
    my $self = bless { pid => $pid, out => $our_out, in => $our_in, log => $log,
        owner => $$, buffer => '', lines => [], log_text => '',
        unsent => '' }, $class;
    $_->blocking(0) for $our_out, $our_in, $log;
    local $SIG{PIPE} = 'IGNORE';
    $self->hello($args{graphs}) if $args{graphs};
    return $self;
}

sub exec_runner {
    my ($in, $out, $log, @command) = @_;
    @command = program() if !@command;
    # High first: a pipe may already be descriptor 3 or 4.
    my @high = map { fcntl($_, F_DUPFD, 64) // die "dup: $!\n" } $in, $out, $log;
    POSIX::dup2($high[0], 3);
    POSIX::dup2($high[1], 4);
    POSIX::dup2($high[2], 1);
    POSIX::dup2($high[2], 2);
    POSIX::close($_) for 5 .. 80;
    exec { $command[0] } @command or POSIX::_exit(127);
}

sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner} || defined $self->{status};
    local $?;
    if (is_counted()) {
        close $_ for @{$self}{qw(out in log)};
        kill 'CONT', $self->{pid};
    }
    else {
        kill 'KILL', $self->{pid};
    }
    waitpid $self->{pid}, 0;
    return;
}

sub pid { return shift->{pid} }

# hello, and the ready that follows; returns it.
sub hello {
    my ($self, $graphs) = @_;
    $self->send({ type => 'hello', protocol => 2, graphs => $graphs });
    return $self->{ready} = $self->expect('ready');
}

# --- Lines -------------------------------------------------------------------

sub send {    ## no critic (Subroutines::ProhibitBuiltinHomonyms)
    my ($self, @messages) = @_;
    delete $self->{open_acks}{ $_->{run_id} }{ $_->{id} } for grep { $_->{type} eq 'reply' } @messages;
    return $self->send_raw(join '', map { prepare($_) } @messages);
}

# The line of a message; `values` of a start message is the state.
sub prepare {
    my ($message) = @_;
    my %line = %{$message};
    my $values = delete $line{values};
    set_state(\%line, $json->encode($values)) if $values;
    return $json->encode(\%line) . "\n";
}

# Writes all bytes, and reads while the pipe is full, so that neither side blocks
# the other. A call during a write appends to the bytes that are being written.
sub send_raw {
    my ($self, $bytes) = @_;
    $self->{unsent} .= $bytes;
    return 1 if $self->{is_sending};
    local $self->{is_sending} = 1;
    local $SIG{PIPE} = 'IGNORE';
    while (length $self->{unsent}) {
        my $written = syswrite $self->{out}, $self->{unsent};
        if (defined $written) {
            substr $self->{unsent}, 0, $written, '';
        }
        else {
            return 0 if $!{EPIPE};
            $self->wait_for_io($self->{out});
        }
    }
    return 1;
}

# The `go` for a `want`.
sub go_line {
    my ($want) = @_;
    return $json->encode({ type => 'go', run_id => $want->{run_id}, epoch => $want->{epoch} }) . "\n";
}

# The `go` lines for all `want` lines of a text.
sub go_lines {
    my ($lines) = @_;
    return join '', map { go_line($json->decode($_)) } $lines =~ /^(\{"type":"want"[^\n]*)/gm;
}

# Takes the credit that a line needs.
sub spend {
    my ($self, $run, $length) = @_;
    my $left = $self->{credit}{$run} // 0;
    if ($length > $left) {
        die "a long line without credit: $length bytes, $left left\n" if $length > 64 * 1024 + 1;
        die "the run has sent $self->{sent}{$run} bytes without credit\n"
            if ($self->{sent}{$run} // 0) + $length > 256 * 1024 + 1;
    }
    $self->{credit}{$run} = $left > $length ? $left - $length : 0;
    $self->{sent}{$run} += $length;
    return;
}

# Takes a line: dies when its run has no credit for it; grants credit, unless the
# test does (withhold_credit()).
sub take_line {
    my ($self, $line) = @_;
    return push @{ $self->{importing} }, $line->{graph_id} if $line->{type} eq 'importing';
    # Reports about graphs need no credit.
    return push @{ $self->{lines} }, $line if $line->{type} eq 'ready';
    my $run = $line->{run_id} // '';
    my $length = 1 + length $line->{' text'};
    $self->count_ack($line) if defined $line->{ack};
    resolve($line) if $line->{type} eq 'checkpoint';
    place_values($line) if $line->{path};
    $self->spend($run, $length) if $line->{type} eq 'request' && $length > 64 * 1024 + 1;
    if ($line->{type} eq 'request' && !$self->{is_withholding_state}) {
        $self->send_raw($self->answer($line));
        return;
    }
    if ($line->{type} ne 'want' && $line->{type} ne 'request') {
        $self->spend($run, $length);
        push @{ $self->{lines} }, $line;
        return;
    }
    if ($line->{type} eq 'request') {
        push @{ $self->{lines} }, $line;
        return;
    }
    die "a run with credit left requests more\n" if $self->{credit}{$run};
    $self->{credit}{$run} = $line->{bytes};
    $self->{sent}{$run} = 0;
    if ($self->{is_withholding}) {
        push @{ $self->{lines} }, $line;
    }
    else {
        $self->send_raw(go_line($line));
    }
    return;
}

# Dies for a record too many whose reply the run has not got.
sub count_ack {
    my ($self, $line) = @_;
    my $open = $self->{open_acks}{ $line->{run_id} } //= {};
    $open->{ $line->{ack} } = 1;
    die "more than ${\ACKS_MAX} records with ack are open\n" if keys %{$open} > ACKS_MAX;
    return;
}

# The line that answers a request.
sub answer {
    my ($self, $request) = @_;
    return reply_line($request);
}

sub withhold_credit {
    my ($self) = @_;
    $self->{is_withholding} = 1;
    return;
}

# The test replies to requests.
sub withhold_state {
    my ($self) = @_;
    $self->{is_withholding_state} = 1;
    return;
}

# Grants the credit of a `want`.
sub give_credit {
    my ($self, $want) = @_;
    return $self->send_raw(go_line($want));
}

sub close_input {
    my ($self) = @_;
    close $self->{out};
    return;
}

# Waits until the runner reads (when given a handle to write to), writes or
# logs; takes what it wrote, by default with take_output.
sub wait_for_io {
    my ($self, $writer, $take) = @_;
    my ($read, $write) = ('', '');
    vec($read, fileno $_, 1) = 1 for grep { defined fileno $_ } $self->{in}, $self->{log};
    vec($write, fileno $writer, 1) = 1 if $writer;
    my $found = select $read, $write, undef, TIMEOUT;
    die "the runner did nothing for ${\TIMEOUT} s\n$self->{log_text}" if !$found;
    $take ||= sub { $self->take_output };
    $take->() if defined fileno $self->{in} && vec $read, fileno $self->{in}, 1;
    $self->take_log if defined fileno $self->{log} && vec $read, fileno $self->{log}, 1;
    return;
}

sub take_output {
    my ($self) = @_;
    my $count = sysread $self->{in}, $self->{buffer}, 1 << 18, length $self->{buffer};
    if (defined $count && $count == 0) {
        close $self->{in};
        die "the runner's last line has no end\n" if length $self->{buffer};
    }
    while ($self->{buffer} =~ s/\A([^\n]*)\n//) {
        $self->take_line(check_line($1));
    }
    return;
}

sub take_log {
    my ($self) = @_;
    my $count = sysread $self->{log}, $self->{log_text}, 1 << 16, length $self->{log_text};
    close $self->{log} if defined $count && $count == 0;
    return;
}

# Decodes a line. Dies when the supervisor would refuse it: invalid UTF-8, U+0000,
# unpaired surrogates, numbers beyond a double, a line that is too long.
sub check_line {
    my ($text) = @_;
    die "a line of more than 8 MiB\n" if length $text > LINE_MAX;
    decode('UTF-8', my $copy = $text, Encode::FB_CROAK);
    die "U+0000 in $text\n" if $text =~ /(?<!\\)(?:\\\\)*\\u0000/;
    die "a surrogate in $text\n"
        if $text =~ /(?<!\\)(?:\\\\)*\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])/;
    (my $bare = $text) =~ s/"(?:[^"\\]++|\\.)*+"//g;
    die "a number in $text\n" if $bare =~ /[eE][+-]?(?:309|3[1-9]\d|[4-9]\d\d|\d{4})|\d{41}/;
    my $message = $json->decode($text);
    die "no type in $text\n" if ref $message ne 'HASH' || !defined $message->{type};
    $message->{' text'} = $text;
    return $message;
}

# The next line; undef at the end.
sub line {
    my ($self) = @_;
    while (!@{ $self->{lines} }) {
        return if !defined fileno $self->{in};
        $self->wait_for_io;
    }
    return shift @{ $self->{lines} };
}

# The next line, which has to be of that type.
sub expect {
    my ($self, $type) = @_;
    my $line = $self->line or die "the runner ended before $type: $self->{log_text}\n";
    die "expected $type, got $line->{' text'}\n" if $line->{type} ne $type;
    return $line;
}

# Lines up to the first one that meets the condition, which is included.
sub lines_until {
    my ($self, $condition) = @_;
    my @lines;
    while (my $line = $self->line) {
        push @lines, $line;
        return @lines if $condition->($line);
    }
    die "the runner ended too early: $self->{log_text}\n";
}

# All lines of a run, from the next one to its end; those of other runs are lost.
sub lines_of_run {
    my ($self, $run_id) = @_;
    return grep { ($_->{run_id} // '') eq $run_id }
        $self->lines_until(sub { $_[0]{type} eq 'end' && $_[0]{run_id} eq $run_id });
}

# Starts a run and returns its lines: run({...fields of start...})
sub run {
    my ($self, %fields) = @_;
    my $start = start_line(%fields);
    $self->send($start);
    return $self->lines_of_run($start->{run_id});
}

# Starts runs, all at once; returns a reference to the lines of each.
sub run_all {
    my ($self, @starts) = @_;
    my (%lines, $ended);
    $self->send(@starts);
    $self->lines_until(sub {
        push @{ $lines{ $_[0]{run_id} } }, $_[0];
        $ended++ if $_[0]{type} eq 'end';
        return $ended && $ended == @starts;
    });
    return map { $lines{ $_->{run_id} } } @starts;
}

# Sends lines as they are, and reads until $count runs have ended. Returns their
# `end` lines, by run, and in list context the number of bytes read. Other lines
# are not decoded, for output that would take Perl's JSON too long. $more returns
# the next lines to send, and undef after the last ones; it gets the number of
# runs that have ended.
sub ends_of {
    my ($self, $bytes, $count, $more) = @_;
    my (%ends, $sent);
    my $total = 0;
    my $text = '';
    local $SIG{PIPE} = 'IGNORE';
    while (keys %ends < $count) {
        $bytes = $more->(scalar keys %ends) // '' if $more && !length $bytes;
        $sent = length $bytes ? syswrite $self->{out}, $bytes, 1 << 18 : 0;
        die "the runner ended: $self->{log_text}\n" if !defined $sent && $!{EPIPE};
        substr $bytes, 0, $sent, '' if $sent;
        next if $sent;
        $self->wait_for_io(length $bytes ? $self->{out} : undef, sub {
            my $read = sysread $self->{in}, $text, 1 << 18, length $text;
            die "the runner ended too early: $self->{log_text}\n" if defined $read && $read == 0;
            $total += $read // 0;
        });
        my $lines = substr $text, 0, rindex($text, "\n") + 1, '';
        $bytes .= go_lines($lines) . join '', map { reply_line($json->decode($_)) } $lines =~ /^(\{"type":"request"[^\n]*)/gm;
        for my $end ($lines =~ /^(\{"type":"end"[^\n]*)/gm) {
            my $line = $json->decode($end);
            $ends{ $line->{run_id} } = { %{$line}, number => 1 + keys %ends };
        }
    }
    return wantarray ? (\%ends, $total) : \%ends;
}

# Waits for the process; returns its exit status as $? has it.
sub finish {
    my ($self) = @_;
    while (defined fileno $self->{in} || defined fileno $self->{log}) {
        $self->wait_for_io;
    }
    waitpid $self->{pid}, 0;
    return $self->{status} = $?;
}

# The log so far; after finish() the whole log.
sub log_text { return shift->{log_text} }

# --- Messages ----------------------------------------------------------------

# A graph with the demo model and both built-in tools; fields of the model may
# be given as model => {...}.
sub graph {
    my (%fields) = @_;
    my $model = delete $fields{model} || {};
    return {
        kind  => 'builtin',
        model => {
            provider => 'demo', name => undef, url => undef, key => undef,
            timeout_ms => 30_000, max_tokens => 1000, %{$model} },
        system_prompt => undef,
        max_steps     => 25,
        tools => [ map { { name => $_, kind => 'builtin' } } qw(clock calculator) ],
        %fields };
}

my $counter = 0;

sub new_uuid {
    return sprintf '%08x-0000-7000-8000-%012x', $$, ++$counter;
}

sub human {
    my ($text) = @_;
    return { messages => [ { role => 'user', content => $text } ] };
}

# A message with a script for the model test server.
sub script { return human('script ' . Cpanel::JSON::XS->new->canonical->encode({@_})) }

sub start_line {
    my (%fields) = @_;
    return {
        type => 'start', run_id => new_uuid(), epoch => 1, attempt => 1,
        thread_id => new_uuid(), graph_id => 'agent', assistant_id => new_uuid(),
        input => undef, command => undef, config => {}, context => {},
        stream_modes => ['values'], interrupt_before => undef,
        interrupt_after => undef, checkpoint => undef,
        %fields };
}

# The fields of the next run of the thread: run(continue_from(@lines), ...)
sub continue_from {
    my (@lines) = @_;
    my ($last) = reverse lines_of('checkpoint', @lines);
    return (
        thread_id  => $last->{thread_id} // new_uuid(),
        values     => $last->{values},
        checkpoint => {
            checkpoint_id => $last->{checkpoint_id},
            step          => $last->{metadata}{step},
            next          => $last->{next} });
}

# One run in its own runner.
sub run_graph {
    my ($graph, %fields) = @_;
    return __PACKAGE__->new(graphs => { agent => $graph })->run(%fields);
}

# --- Lines of a run ----------------------------------------------------------

sub lines_of {
    my ($type, @lines) = @_;
    return grep { $_->{type} eq $type } @lines;
}

# Snapshots in which the list of a channel has grown: [elements kept, elements sent].
sub lists_of {
    my ($channel, @lines) = @_;
    my @lists = map { $_->{list} } grep { ref } map { $_->{channels}{$channel} } lines_of('put', @lines);
    return grep { $_->[1] } map { [ $_->{keep}, scalar @{ $_->{items} } ] } @lists;
}

# The data of the events of that name.
sub events_of {
    my ($name, @lines) = @_;
    return map { $_->{data} } grep { $_->{event} eq $name } lines_of('event', @lines);
}

# The metadata in the events of the modes messages-tuple, events and messages.
sub metadata_of_events {
    my (@lines) = @_;
    return (map { $_->[1] } events_of('messages', @lines)), (map { $_->{metadata} } events_of('events', @lines)),
        map { map { $_->{metadata} } values %{$_} } events_of('messages/metadata', @lines);
}

# The messages of the last checkpoint.
sub messages_of {
    my (@lines) = @_;
    my ($last) = reverse lines_of('checkpoint', @lines);
    return @{ $last ? $last->{values}{messages} : [] };
}

sub last_message { return (messages_of(@_))[-1] }

1;
