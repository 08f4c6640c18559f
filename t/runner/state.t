# SPDX-License-Identifier: Apache-2.0
# The state from which a run starts: it is requested part by part, or kept from
# the thread's last run.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use Cpanel::JSON::XS;
use RunnerTest qw(graph start_line human new_uuid lines_of messages_of last_message continue_from);
use Test::More;

my %graphs = (agent => graph(), other => graph());

# A runner whose requests the test answers.
sub fresh {
    my $runner = RunnerTest->new(graphs => \%graphs);
    $runner->withhold_state;
    return $runner;
}

my @OLD = map { { type => 'human', content => "message $_", id => "id-$_", name => undef,
    additional_kwargs => {}, response_metadata => {}, example => Cpanel::JSON::XS::false } } 1 .. 5;

sub part {
    my ($keep, @items) = @_;
    return { values => { messages => { '$list' => { keep => $keep, items => \@items } } } };
}

sub reply {
    my ($runner, $request, %members) = @_;
    return $runner->send({ type => 'reply', ok => \1, cursor => undef,
        (map { $_ => $request->{$_} } qw(run_id epoch id)), %members });
}

# A start message of a thread with a state.
sub start_of {
    my (%fields) = @_;
    my $start = start_line(input => human('Hello'),
        checkpoint => { checkpoint_id => new_uuid(), step => 3, next => [], bytes => 2000 }, %fields);
    my $bytes = $start->{checkpoint}{bytes};
    RunnerState::set_state($start, encode_json({ messages => \@OLD }));
    $start->{checkpoint}{bytes} = $bytes;
    return $start;
}

subtest 'cold: a run requests its state part by part' => sub {
    my $runner = fresh();
    my $start = start_of();
    RunnerState::set_state($start, encode_json({ messages => \@OLD, other => { '$list' => 1 }, plain => [1] }));
    $runner->send($start);
    my $first = $runner->expect('request');
    is_deeply [ @{$first}{qw(run_id epoch op cursor)} ], [ $start->{run_id}, 1, 'state.get', undef ], 'state: the first request has no cursor';
    reply($runner, $first, result => part(0, @OLD[ 0 .. 1 ]), cursor => '0.2');
    my $second = $runner->expect('request');
    is $second->{cursor}, '0.2', 'state: the next part is requested with the cursor of the reply';
    isnt $second->{id}, $first->{id}, 'state: each request of a run has another id';
    my $more = part(2, @OLD[ 2 .. 4 ]);
    $more->{values}{other} = { '$value' => { '$list' => 1 } };
    $more->{values}{plain} = [1];
    reply($runner, $second, result => $more);
    my @lines = $runner->lines_of_run($start->{run_id});
    is_deeply [ (messages_of(@lines))[ 0 .. 4 ] ], \@OLD, 'state: lists have the elements of all parts';
    my ($last) = reverse lines_of('checkpoint', @lines);
    is_deeply [ @{ $last->{values} }{qw(other plain)} ], [ { '$list' => 1 }, [1] ], 'state: values that are not lists are those of the last part';
    is $last->{metadata}{step}, 6, 'state: the steps continue after that of the checkpoint';
};

# A message of the state as JSON text, of another spelling than the runner's.
sub stored { return sprintf '{ "id" : "%s", "type":"%s" , "content": %s, "additional_kwargs": {"n": 1.50, "\\u0065": "\\/"}%s}', @_ }

# A turn after those messages; returns its lines.
sub turn_after {
    my ($runner, $texts, %fields) = @_;
    my $start = start_of(%fields);
    delete $start->{input} if exists $fields{input} && !defined $fields{input};
    $runner->send($start);
    my $request = $runner->expect('request');
    $runner->send_raw(qq({"result":{"values":{"messages":{"\$list":{"items":[) . join(' , ', @{$texts}) . qq(] , "keep" : 0}}}},"ok":true,"cursor":null,)
        . qq("run_id":"$start->{run_id}","epoch":1,"id":$request->{id},"type":"reply"}\n));
    RunnerState::set_state($start, '{"messages":[' . join(',', @{$texts}) . ']}');
    return $runner->lines_of_run($start->{run_id});
}

subtest 'cold: messages of the state are kept as they were stored' => sub {
    my $runner = fresh();
    my @texts = (stored('a', 'human', '"one \\"two\\" \\u0074hree"', ''), stored('b', 'ai', '[{"type":"text","text":"four "},{"type":"text","text":"five"}]', ''));
    my @lines = turn_after($runner, \@texts, input => human('six'), stream_modes => ['events']);
    my ($event) = grep { $_->{data}{event} eq 'on_chat_model_start' } lines_of('event', @lines);
    like $event->{' text'}, qr/\Q$_\E/, 'stored messages: the input of the model has their bytes' for @texts;
    @lines = turn_after($runner, \@texts, input => human('six'));
    is last_message(@lines)->{usage_metadata}{input_tokens}, 6, 'stored messages: the model reads their words';
    like last_message(@lines)->{content}, qr/number 2 .* you said "one "two" three"/, 'stored messages: the model reads the last one';
    @lines = turn_after($runner, \@texts, input => { messages => [ { role => 'user', content => 'else', id => 'a' }, 'six' ] });
    is_deeply [ map { $_->{id} } (messages_of(@lines))[ 0, 1 ] ], [qw(a b)], 'stored messages: an input message with the id of one replaces it';
    like +(lines_of('checkpoint', @lines))[1]{' text'}, qr/\Q$texts[1]\E/, 'stored messages: those after a replaced one are sent as they were';
    is last_message(@lines)->{usage_metadata}{input_tokens}, 4, 'stored messages: the model reads the one that replaces another';
    @lines = turn_after($runner, \@texts, input => { messages => [ { type => 'remove', id => 'none' } ] });
    like $lines[-1]{error}{message}, qr/There is no message with the id "none"/, 'stored messages: the removal of an id that is not there is an error';
};

subtest 'format: the state of an application is not continued' => sub {
    my $checkpoint = { checkpoint_id => new_uuid(), step => 3, next => [], bytes => 2000, format => 'python' };
    for my $input (human('x'), undef) {
        my @lines = turn_after(fresh(), [ stored('a', 'human', '"one"', '') ], input => $input, checkpoint => $checkpoint);
        is_deeply [ $lines[-1]{error}{error}, scalar lines_of('checkpoint', @lines) ], [ 'ForeignStateError', 0 ], 'format: a run ends with ForeignStateError and no checkpoint';
    }
};

subtest 'cold: a run continues with the tool calls of a stored message' => sub {
    my $runner = fresh();
    my $calls = join ',', map { qq({"name":"calculator","args":{"expression":"1 + $_"},"id":"c$_","type":"tool_call"}) } 1, 2;
    my @texts = (stored('a', 'human', '"x"', ''), stored('b', 'ai', '""', qq(,"tool_calls":[$calls])),
        stored('c', 'tool', '"2"', ',"tool_call_id":"c1","name":"calculator"'));
    my @lines = turn_after($runner, \@texts, input => undef,
        checkpoint => { checkpoint_id => new_uuid(), step => 3, next => ['tools'], bytes => 2000 });
    is_deeply [ map { $_->{tool_call_id} } grep { $_->{type} eq 'tool' } messages_of(@lines) ], [qw(c1 c2)], 'stored calls: the one without a result is made';
    is last_message(@lines)->{content}, 'The tool calculator answered: 2 The tool calculator answered: 3', 'stored calls: the model reads the results of all';
};

subtest 'cold: messages that another graph stored are converted' => sub {
    my $runner = fresh();
    my @lines = turn_after($runner, [ stored('a', 'human', '"x"', ''), '{"role":"user","content":"no id"}' ]);
    is_deeply [ map { $_->{type} } messages_of(@lines) ], [qw(human human human ai)], 'other messages: one of the form {role, content} is converted';
    ok((messages_of(@lines))[1]{id}, 'other messages: one without an id gets one');
    @lines = turn_after($runner, [ stored('a', 'human', '"x"', ''), '"text"' ]);
    is_deeply [ map { $_->{content} } (messages_of(@lines))[ 0 .. 2 ] ], [qw(x text Hello)], 'other messages: a text is a message of the user';
    for my $element ('false', 'null', '7', '{"role":"none"}') {
        @lines = turn_after($runner, [ stored('a', 'human', '"x"', ''), $element ]);
        like $lines[-1]{error}{message}, qr{\AThe state's messages/1}, "other messages: $element is refused";
    }
};

subtest 'cold: messages that no one changes are not parsed' => sub {
    my $runner = fresh();
    my @texts = map { stored("id-$_", 'human', '"' . 'word ' x 4 . '"', '') } 1 .. 8000;
    my $cost = cost_of([ $runner->pid ], sub { turn_after($runner, \@texts) });
    my $bytes = length join '', @texts;
    # 12 times their text as trees.
    cmp_ok $cost->{peak_bytes}, '<', 7 * $bytes * memory_scale(), "unchanged messages: memory of $cost->{peak_bytes} bytes for a state of $bytes";
};

subtest 'cold: a run without a checkpoint requests nothing' => sub {
    my $runner = fresh();
    my $start = start_line(input => human('Hello'));
    $runner->send($start);
    is scalar(lines_of('request', $runner->lines_of_run($start->{run_id}))), 0, 'no checkpoint: nothing is requested';
};

# A run that creates a thread; returns its lines.
sub first_run {
    my ($runner, %fields) = @_;
    my $start = start_line(input => human('Hello'), %fields);
    $runner->send($start);
    my @lines = $runner->lines_of_run($start->{run_id});
    return ($start, @lines);
}

# The next run of that thread, without its state.
sub next_of {
    my ($first, @lines) = @_;
    my %next = (continue_from(@lines), thread_id => $first->{thread_id}, input => human('Again'));
    delete $next{values};
    return \%next;
}

subtest 'warm: the next run of a thread requests nothing' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    for (1 .. 3) {
        my $start = start_line(%{ next_of($first, @lines) });
        my @before = messages_of(@lines);
        $runner->send($start);
        @lines = $runner->lines_of_run($start->{run_id});
        is scalar(lines_of('request', @lines)), 0, 'next run: nothing is requested';
        my @after = messages_of(@lines);
        is_deeply [ @after[ 0 .. $#before ] ], \@before, 'next run: its state begins with the one before';
        is scalar(@after), @before + 2, 'next run: its state has two messages more';
    }
};

subtest 'warm: a state is used for its own checkpoint, thread and graph only' => sub {
    for my $case ([ 'another checkpoint', checkpoint => { checkpoint_id => new_uuid(), step => 1, next => [] } ],
        [ 'another thread', thread_id => new_uuid() ], [ 'another graph', graph_id => 'other' ]) {
        my ($what, %fields) = @{$case};
        my $runner = fresh();
        my ($first, @lines) = first_run($runner);
        my $start = start_line(%{ next_of($first, @lines) }, %fields);
        RunnerState::set_state($start, encode_json({ messages => [ $OLD[0] ] }));
        $runner->send($start);
        my $request = $runner->expect('request');
        reply($runner, $request, result => part(0, $OLD[0]));
        @lines = $runner->lines_of_run($start->{run_id});
        is_deeply [ map { $_->{content} } (messages_of(@lines))[ 0, 1 ] ], [ 'message 1', 'Again' ], "kept state: the state of $what is requested";
    }
};

subtest 'warm: a state is used once, and kept again' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    my $next = next_of($first, @lines);
    my $start = start_line(%{$next});
    $runner->send($start);
    $runner->lines_of_run($start->{run_id});
    # The thread has gone on: this is an older checkpoint now.
    $start = start_line(%{$next});
    RunnerState::set_state($start, encode_json({ messages => [ $OLD[0] ] }));
    $runner->send($start);
    reply($runner, $runner->expect('request'), result => part(0, $OLD[0]));
    my @again = $runner->lines_of_run($start->{run_id});
    is scalar(messages_of(@again)), 3, 'kept state: that of an older checkpoint is requested';
};

subtest 'warm: a run that was cancelled or has failed leaves its last checkpoint' => sub {
    my $runner = fresh();
    my $start = start_line(input => human('sleep 60000'), stream_modes => ['messages-tuple']);
    $runner->send($start);
    $runner->lines_until(sub { ($_[0]{event} // '') eq 'messages' });
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    my @lines = $runner->lines_of_run($start->{run_id});
    my @before = messages_of(@lines);
    is scalar(@before), 2, 'cancelled run: its partial answer is saved';
    my $next = start_line(%{ next_of($start, @lines) });
    $runner->send($next);
    my @after = messages_of($runner->lines_of_run($next->{run_id}));
    is_deeply [ @after[ 0, 1 ] ], \@before, 'cancelled run: its partial answer is in the next run of the thread';

    ($start, @lines) = first_run($runner, input => human('fail'));
    is $lines[-1]{status}, 'error', 'failed run: it ends with an error';
    $next = start_line(%{ next_of($start, @lines) });
    $runner->send($next);
    @lines = $runner->lines_of_run($next->{run_id});
    is $lines[-1]{status}, 'success', 'failed run: the next run of the thread succeeds';
    is scalar(messages_of(@lines)), 3, 'failed run: its input is in the next run of the thread';
};

subtest 'a run that waits for its state can be cancelled' => sub {
    my $runner = fresh();
    my $start = start_of();
    $runner->send($start);
    my $request = $runner->expect('request');
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    is $runner->expect('end')->{status}, 'interrupted', 'cancel: a run that waits for its state ends';
    reply($runner, $request, result => part(0, @OLD));
    my ($other) = first_run($runner);
    ok $other, 'cancel: a reply that crosses the end of its run is ignored';
};

subtest 'a state that cannot be read ends the run in error' => sub {
    for my $case ([ state_timeout => 'StateUnavailableError' ], [ state_too_large => 'StateTooLargeError' ]) {
        my ($code, $name) = @{$case};
        my $runner = fresh();
        my $start = start_of();
        $runner->send($start);
        reply($runner, $runner->expect('request'), ok => \0, error => { code => $code, message => 'Why.' });
        my ($end) = reverse $runner->lines_of_run($start->{run_id});
        is_deeply [ $end->{status}, $end->{error} ], [ 'error', { error => $name, message => 'Why.' } ], "unreadable state: $code ends the run in error";
    }
};

sub breaks {
    my ($what, %members) = @_;
    subtest "a reply that breaks the protocol ends the runner ($what)" => sub {
        my $runner = fresh();
        $runner->send(start_of());
        reply($runner, $runner->expect('request'), result => part(0, @OLD), %members);
        is $runner->finish >> 8, 2, "breach: a reply with $what ends the runner with status 2";
        like $runner->log_text, qr/the supervisor broke the protocol: a reply/, "breach: a reply with $what is logged";
    };
    return;
}

breaks('another id', id => 99);
breaks('no result', result => undef);
breaks('no values', result => {});
breaks('values that are an array', result => { values => [] });
breaks('elements that are missing', result => part(1, @OLD));
breaks('elements twice', result => part(-1, @OLD));
breaks('items that are an object', result => { values => { messages => { '$list' => { keep => 0, items => {} } } } });
breaks('a long cursor', cursor => 'x' x 128);

subtest 'of the runs with a large state one reads at a time, the others do not wait' => sub {
    my $runner = fresh();
    my @large = map { start_of(checkpoint => { checkpoint_id => new_uuid(), step => 1, next => [], bytes => 5_000_000 }) } 1 .. 3;
    my @small = map { start_of() } 1 .. 3;
    $runner->send(@large, @small);
    my %requests = map { my $line = $runner->expect('request'); $line->{run_id} => $line } 1 .. 4;
    is scalar(grep { $requests{ $_->{run_id} } } @small), 3, 'large states: runs with small ones request theirs at once';
    my ($first) = grep { $requests{ $_->{run_id} } } @large;
    ok $first, 'large states: one run at a time requests one';
    for my $number (1 .. 3) {
        reply($runner, $requests{ $first->{run_id} }, result => part(0, @OLD));
        last if $number == 3;
        my ($line) = grep { $_->{type} eq 'request' } $runner->lines_until(sub { $_[0]{type} eq 'request' });
        ($first) = grep { $_->{run_id} eq $line->{run_id} } @large;
        $requests{ $line->{run_id} } = $line;
        ok $first, 'large states: the next one is requested when one has been read';
    }
};

subtest 'a checkpoint has what changed since its parent' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    my @counts = map { [ $_->{sent}{messages}{'$list'}{keep}, scalar @{ $_->{sent}{messages}{'$list'}{items} } ] } lines_of('checkpoint', @lines);
    is_deeply \@counts, [ [ 0, 0 ], [ 0, 1 ], [ 1, 1 ] ], 'changes: a checkpoint has the messages of its step';

    my $start = start_of();
    RunnerState::set_state($start, encode_json({ messages => \@OLD, other => 'x' }));
    $start->{input} = { messages => [ { role => 'user', content => 'changed', id => 'id-3' }, 'new' ] };
    $runner->send($start);
    reply($runner, $runner->expect('request'), result => { values => { other => 'x', %{ part(0, @OLD)->{values} } } });
    @lines = lines_of('checkpoint', $runner->lines_of_run($start->{run_id}));
    is_deeply [ map { $_->{sent}{messages}{'$list'}{keep} } @lines ], [ 5, 2, 6 ], 'changes: a checkpoint has the messages from the first one that was replaced';
    is_deeply [ map { $_->{sent}{other} } @lines ], [ ({ '$same' => Cpanel::JSON::XS::true }) x 3 ], 'changes: values that did not change are not sent again';
    is_deeply [ map { $_->{content} } messages_of(@lines) ], [ 'message 1', 'message 2', 'changed', 'message 4', 'message 5', 'new',
        last_message(@lines)->{content} ], 'changes: the state has all messages in their order';
};

subtest 'the last turn of a chat of 200 sends at most 1.2 times the bytes of the tenth' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    my @bytes;
    for my $turn (2 .. 200) {
        my $start = start_line(%{ next_of($first, @lines) }, input => human("This is turn number $turn."));
        my $bytes = length encode_json($start);
        $runner->send($start);
        @lines = $runner->lines_of_run($start->{run_id});
        $bytes += length $_->{' text'} for @lines;
        $bytes[$turn] = $bytes;
    }
    is scalar(messages_of(@lines)), 400, 'turns of a chat: the state has all messages after 200';
    cmp_ok $bytes[200], '<', 1.2 * $bytes[10], "turns of a chat: $bytes[10] bytes of the tenth and $bytes[200] of the last, to the runner and from it";
};

# Replies to the requests of a run, a thousand messages in each part.
sub give_state {
    my ($runner, $messages) = @_;
    for (my $at = 0; $at < @{$messages}; $at += 1000) {
        my $end = $at + 999 < $#{$messages} ? $at + 999 : $#{$messages};
        reply($runner, $runner->expect('request'), result => part($at, @{$messages}[ $at .. $end ]),
            cursor => $end < $#{$messages} ? "0.$end" : undef);
    }
    return;
}

subtest 'a turn after 10,000 sends at most 1.2 times the bytes of the tenth, in every stream mode' => sub {
    my %modes = (stream_modes => [qw(values updates messages messages-tuple tasks checkpoints debug custom tools)]);
    my $runner = fresh();
    my ($first, @lines) = first_run($runner, %modes);
    my $turn = sub {
        my $start = start_line(%{ next_of($first, @lines) }, input => human('This is another turn.'), %modes, @_);
        $runner->send($start);
        @lines = $runner->lines_of_run($start->{run_id});
        is $lines[-1]{status}, 'success', 'turns of a chat: one succeeds' or diag encode_json($lines[-1]{error});
        my $bytes = 0;
        $bytes += length $_->{' text'} for @lines;
        return $bytes;
    };
    my $tenth = 0;
    $tenth = $turn->() for 2 .. 10;

    # Those of the last turn, again and again.
    my @two = (messages_of(@lines))[ -2, -1 ];
    my @old = map { { %{ $two[ $_ % 2 ] }, id => "00000000-0000-7000-8000-" . sprintf '%012d', $_ } } 0 .. 19_997;
    my $start = start_line(input => human('This is another turn.'), %modes,
        checkpoint => { checkpoint_id => new_uuid(), step => 3, next => [] });
    my $text = encode_json({ messages => \@old });
    cmp_ok length $text, '>', 8_500_000, 'turns of a chat: a state of 10,000 is longer than a line';
    RunnerState::set_state($start, $text);
    $runner->send($start);
    give_state($runner, \@old);
    @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'turns of a chat: one follows 9,999 others';
    $first = $start;
    my $bytes = $turn->();
    cmp_ok $bytes, '<', 1.2 * $tenth, "turns of a chat: $tenth bytes of the tenth and $bytes after 10,000";
    is scalar(messages_of(@lines)), 20_002, 'turns of a chat: the state has all messages after 10,000';
    for my $name (qw(values checkpoints)) {
        my ($last) = reverse grep { $_->{event} eq $name } lines_of('event', @lines);
        is $last->{checkpoint_id}, +(lines_of('checkpoint', @lines))[-1]{checkpoint_id}, "turns of a chat: the event $name names the last checkpoint";
    }

    $turn->(interrupt_before => ['agent']);
    my ($values) = reverse grep { $_->{event} eq 'values' } lines_of('event', @lines);
    is_deeply [ sort keys %{ $values->{data} } ], [qw(__interrupt__ messages)], 'breakpoint: its values have __interrupt__';
    is scalar @{ $values->{data}{messages} }, 20_003, 'breakpoint: its values have all messages';
};

subtest 'warm: a turn after 10,000 costs what it adds' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    my @two = messages_of(@lines);
    my @old = map { { %{ $two[ $_ % 2 ] }, id => "id-$_" } } 0 .. 19_997;
    my $start = start_line(input => human('Hello'), stream_modes => [], checkpoint => { checkpoint_id => new_uuid(), step => 3, next => [] });
    RunnerState::set_state($start, encode_json({ messages => \@old }));
    $runner->send($start);
    give_state($runner, \@old);
    @lines = $runner->lines_of_run($start->{run_id});
    my $cost = cost_of([ $runner->pid ], sub {
        for (1 .. 50) {
            my $next = start_line(%{ next_of($start, @lines) }, stream_modes => []);
            $runner->send($next);
            @lines = $runner->lines_of_run($next->{run_id});
        }
    });
    is scalar(messages_of(@lines)), 20_100, 'long chat: 50 turns are added';
    # 1 s when each turn reads the whole chat.
    cmp_ok $cost->{cpu_sec}, '<', 0.3 * memory_scale(), "long chat: $cost->{cpu_sec} s of processor time for 50 turns";
};

subtest 'warm: the demo model counts the messages of the state, whatever a client changes in it' => sub {
    my $runner = fresh();
    my ($start, @lines) = first_run($runner);
    my %update = (
        append  => [ { role => 'user', content => 'one two three' } ],
        replace => [ { role => 'user', content => 'four words are here', id => 'first' } ],
        remove  => [ { type => 'remove', id => 'first' }, { role => 'user', content => 'five' } ],
        clear   => [ { type => 'remove', id => '__remove_all__' }, { role => 'user', content => 'six seven' } ]);
    my @steps = ([ add => [ { role => 'user', content => 'a b', id => 'first' } ] ], [ append => $update{append} ], [ append => $update{append} ],
        [ replace => $update{replace} ], [ append => $update{append} ], [ remove => $update{remove} ], [ append => $update{append} ],
        [ clear => $update{clear} ], [ append => $update{append} ]);
    for my $step (@steps) {
        my ($name, $messages) = @{$step};
        my $next = start_line(%{ next_of($start, @lines) }, input => { messages => $messages });
        $runner->send($next);
        @lines = $runner->lines_of_run($next->{run_id});
        my @all = messages_of(@lines);
        my $answer = pop @all;
        my $words = 0;
        $words += () = $_->{content} =~ /\S+/g for @all;
        is $answer->{usage_metadata}{input_tokens}, $words, "demo model: it counts the words after $name";
        my $humans = grep { $_->{type} eq 'human' } @all;
        like $answer->{content}, qr/your message number $humans in/, "demo model: it counts the messages after $name" if $humans > 1;
    }
};

subtest 'a message of a long chat can be replaced' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    my @old = map { { %{ (messages_of(@lines))[1] }, id => "id-$_", content => 'x' x 1000 } } 1 .. 9000;
    my $start = start_line(input => { messages => [ { role => 'user', content => 'changed', id => 'id-8990' } ] },
        checkpoint => { checkpoint_id => new_uuid(), step => 3, next => [] });
    my $text = encode_json({ messages => \@old });
    cmp_ok length $text, '>', 8_500_000, 'long chat: its state is longer than a line';
    RunnerState::set_state($start, $text);
    $runner->send($start);
    give_state($runner, \@old);
    @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'long chat: a run that replaces one message succeeds';
    is_deeply [ map { $_->{sent}{messages}{'$list'}{keep} } lines_of('checkpoint', @lines) ], [ 9000, 8989, 9000 ],
        'long chat: the messages from the changed one on are sent';
};

subtest 'a state of more than 32 MiB ends the run in error' => sub {
    my $runner = fresh();
    my ($first, @lines) = first_run($runner);
    for my $megabytes (4, 8, 12, 16, 20, 24, 28) {
        my $start = start_line(%{ next_of($first, @lines) }, input => human('x' x 4_100_000));
        $runner->send($start);
        my @more = $runner->lines_of_run($start->{run_id});
        is $more[-1]{status}, 'success', "large state: a run that makes $megabytes MB succeeds";
        @lines = @more;
    }
    my $start = start_line(%{ next_of($first, @lines) }, input => human('x' x 5_000_000));
    $runner->send($start);
    my @more = $runner->lines_of_run($start->{run_id});
    is $more[-1]{error}{error}, 'StateTooLargeError', 'large state: a run that makes more than 32 MiB ends in error';
};

done_testing;
