# SPDX-License-Identifier: Apache-2.0
# Expensive inputs of legal size: their memory and processor time in the runner
# are bounded, and other runs of the same runner end with success.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Cost;
use File::Temp qw(tempdir);
use HostileServer;
use Cpanel::JSON::XS;
use RunnerTest qw(graph human start_line is_sanitized);
use Test::More;

use constant MB => 1024 * 1024;

my $server = HostileServer->new;
my %graphs = (
    agent  => graph(),
    openai => graph(model => $server->model('openai', 'ok')),
    claude => graph(model => $server->model('anthropic', 'ok')),
    tools  => graph(tools => [ map { $server->tool($_) } qw(json gate book) ]),
    get    => graph(tools => [ { %{ $server->tool('gate') }, method => 'GET' } ]),
    slow   => graph(model => $server->model('openai', 'ok'),
        tools => [ map { $server->tool($_) } qw(stall book) ]),
    storm  => graph(model => $server->model('anthropic', 'storm')),
    silent => graph(model => $server->model('anthropic', 'silent', timeout_ms => 600_000)),
    prose  => graph(tools => [ $server->tool('prose') ]),
    lines  => graph(tools => [ $server->tool('lines') ]),
    (map { ("$_ args" => graph(model => $server->model($_, 'args')),
        "$_ whole" => graph(model => $server->model($_, 'args/whole'))) } qw(openai anthropic)),
    map { $_ => graph(model => $server->model('openai', $_)) } qw(bytes ids names calls long));

# A start line; a field may be a reference to JSON text.
sub line_of {
    my (%fields) = @_;
    my %raw = map { ref $fields{$_} eq 'SCALAR' ? ($_ => ${ delete $fields{$_} }) : () }
        keys %fields;
    my $values = delete $raw{values};
    my $start = start_line(%fields, map { $_ => "<$_>" } keys %raw);
    RunnerState::set_state($start, $values) if $values;
    my $text = encode_json($start);
    $text =~ s/"<$_>"/$raw{$_}/ for keys %raw;
    return ($start->{run_id}, "$text\n");
}

# Measures one run, with small ones at the same time, in a new runner; returns
# the cost with status and error of its end.
sub cost_of_run {
    my (%fields) = @_;
    my $runner = RunnerTest->new(graphs => \%graphs);
    my %small = map { line_of(graph_id => $_, input => human('Hello')) } qw(agent openai claude);
    my ($run_id, $line) = line_of(%fields);
    my $ends;
    my $cost = cost_of([ $runner->pid ], sub { $ends = $runner->ends_of(join('', $line, values %small), 4) });
    return { %{$cost}, %{ $ends->{$run_id} }, bytes => length $line,
        others => [ map { $ends->{$_}{status} } keys %small ] };
}

# Tests that a run ends with a status, and that it takes at most $per_byte bytes of
# memory and a microsecond of processor time for each byte of its start line,
# besides 8 MB and 1 s.
sub is_cheap {
    my ($title, $per_byte, $status, %fields) = @_;
    my $cost = eval { cost_of_run(%fields) };
    if (!$cost) {
        fail($title);
        diag $@;
        return {};
    }
    my $peak = ($per_byte * $cost->{bytes} + 8 * MB) * memory_scale();
    my $cpu = (1 + 1e-6 * $cost->{bytes}) * memory_scale();
    subtest $title => sub {
        is $cost->{status}, $status, "the run ends with status $status";
        is_deeply $cost->{others}, [ ('success') x 3 ], 'other runs end with success';
        cmp_ok $cost->{peak_bytes}, '<', $peak, sprintf 'memory: %.1f MB for %.2f MB',
            $cost->{peak_bytes} / MB, $cost->{bytes} / MB;
        cmp_ok $cost->{cpu_sec}, '<', $cpu, "processor: $cost->{cpu_sec} s";
    };
    return $cost;
}

sub messages { return \('{"messages":[' . join(',', @_) . ']}') }

# ---- from a client ----

my $blocks = messages('{"role":"user","content":[' . join(',', ('"a"') x 100_000) . ']}');
is_cheap("$_: a message of 100,000 text blocks", 600, 'success',
    graph_id => $_, input => $blocks) for qw(agent openai claude);

my $systems = messages('{"role":"user","content":"Hi"}',
    ('{"role":"system","content":"ab"}') x 30_000);
is_cheap("$_: 30,000 system messages", 400, 'success',
    graph_id => $_, input => $systems) for qw(openai claude);

my $answers = messages('{"role":"user","content":"Hi"}', map {
    qq({"role":"tool","tool_call_id":"d$_","name":"clock","content":"a"}) } 1 .. 21_000);
is_cheap('demo: 21,000 results of tools', 200, 'success', input => $answers);

my $calls = join ',', map { qq({"name":"a","args":{},"id":"c$_"}) } 1 .. 20_000;
my $pairs = messages(qq({"role":"ai","content":"","tool_calls":[$calls]}), (map {
    qq({"role":"tool","tool_call_id":"d$_","content":""}) } 1 .. 15_000),
    '{"role":"user","content":"Hi"}');
is_cheap("$_: 20,000 tool calls with 15,000 results of others", 400, 'success',
    graph_id => $_, input => $pairs) for qw(openai claude);

my $functions = join ',', ('{"function":{"name":"a","arguments":"{}"}}') x 40_000;
is_cheap("40,000 calls in OpenAI's form", 400, 'success',
    input => messages(qq({"role":"ai","content":"","tool_calls":[$functions]}),
        '{"role":"user","content":"Hi"}'));

my $long_ids = messages(map { '{"role":"user","content":"a","id":"' . $_ x (1 << 20) . '"}' } 'a' .. 'c');
is_cheap("$_: ids of 1 MiB", 30, 'success', graph_id => $_, input => $long_ids)
    for qw(agent claude);

# ---- to the demo model ----

for my $size (20_000, 250_000) {
    my $object = '{"' . 'k' x $size . '":[' . join(',', ('[]') x $size) . ']}';
    for my $word ('use clock', 'custom') {
        is_cheap("demo: `$word` with a key of $size bytes and as many lists",
            120, 'success', input => human("$word $object"));
    }
}

my $cost = is_cheap('demo: `use` of 100,000 tools', 30, 'error',
    input => human('use clock {} ' x 100_000));
is $cost->{error}{message}, 'The demo model was asked for more than 128 calls of tools.',
    'demo: the error has the limit of calls';

my $objects = join ',', ('{}') x 600_000;
is_cheap('demo: `use` with 600,000 objects', 30, 'success',
    input => human(qq(use clock {"a":[$objects]})));
is_cheap("a call in OpenAI's form with 600,000 objects", 30, 'error',
    input => messages(qq({"role":"ai","content":"","tool_calls":[{"function":{"name":"a",)
        . qq("arguments":"{\\"a\\":[$objects]}"}}]})));

# ---- tools ----

my $storm = join ',', map { qq({"name":"gate","args":{},"id":"c$_"}) } 1 .. 60_000;
$cost = is_cheap('goto tools: 60,000 calls', 250, 'error',
    graph_id => 'tools', command => \(qq({"goto":"tools","update":{"messages":[)
        . qq({"role":"ai","content":"","tool_calls":[$storm]}]}})));
is $cost->{error}{error}, 'ToolCallLimitExceededError', 'goto tools: the error is ToolCallLimitExceededError';
is $server->count_requests, 0, 'goto tools: no tool is called';

my $arguments = join ',', map { qq("argument$_":$_) } 1 .. 100_000;
is_cheap('GET: arguments that are too long for a URL', 100, 'success',
    graph_id => 'get', command => \(qq({"goto":"tools","update":{"messages":[)
        . qq({"role":"ai","content":"","tool_calls":[{"name":"gate","args":{$arguments},"id":"c"}]}]}})));
is $server->count_requests, 0, 'GET: the tool is not called';

# The start line is short: the limit is for the reply of 1 MiB.
{
    my $cost = cost_of_run(graph_id => 'tools', input => human('use json {}'));
    is $cost->{status}, 'success', 'a reply with a long key and 200,000 lists: the run ends with success';
    cmp_ok $cost->{peak_bytes}, '<', 80 * MB * memory_scale(), 'a reply with a long key and 200,000 lists: the run takes less than 80 MB';
}

# Waits until the runner has processed all input so far.
sub settle {
    my ($runner) = @_;
    for my $id (1 .. 20) {
        $runner->send({ type => 'ping', id => $id });
        $runner->lines_until(sub { $_[0]{type} eq 'pong' && $_[0]{id} == $id });
    }
    return;
}

# A runner with a resource limit of the shell.
sub limited_runner {
    my ($limit) = @_;
    my $program = RunnerTest::program();
    my $script = tempdir(CLEANUP => 1) . '/runner';
    open my $out, '>', $script or die "$script: $!\n";
    print {$out} "#!/bin/sh\nulimit $limit\nexec $program\n";
    close $out;
    chmod 0755, $script;
    local $ENV{AGENT_TEST_RUNNER} = $script;
    return RunnerTest->new(graphs => \%graphs);
}

# A command that calls a tool $count times.
sub storm_of {
    my ($count, $name) = @_;
    $name //= 'gate';
    return { goto => 'tools', update => { messages => [ { role => 'ai', content => '',
        tool_calls => [ map { { name => $name, args => {}, id => "c$_" } } 1 .. $count ] } ] } };
}

sub end_of {
    my ($runner, $run_id) = @_;
    my @lines = $runner->lines_of_run($run_id);
    return $lines[-1]{status};
}

subtest '16 calls of a message run at once' => sub {
    my $runner = RunnerTest->new(graphs => \%graphs);
    my $start = start_line(graph_id => 'tools', command => storm_of(128));
    my $before = $server->count_requests;
    $runner->send($start);
    $server->wait_requests($before + 16);
    settle($runner);
    is $server->count_requests - $before, 16, '16 requests of 128 calls arrive';
    $server->release(5);
    $server->wait_requests($before + 21);
    settle($runner);
    is $server->count_requests - $before, 21, 'each reply starts another call';
    $server->release(128);
    is end_of($runner, $start->{run_id}), 'success', 'the run ends with success';
    is $server->count_requests - $before, 128, 'each call is executed once';
    $server->drain;
};

subtest 'transfers of all runs are limited by the open files' => sub {
    # 32 descriptors for other purposes, three for each of 20 transfers. Half of
    # them are kept for runs that have none; a host leaves a quarter to others.
    my $runner = limited_runner('-n 92');
    my @starts = map { start_line(graph_id => 'tools', command => storm_of(16)) } 1 .. 4;
    my $before = $server->count_requests;
    $runner->send(@starts);
    $server->wait_requests($before + 12);
    settle($runner);
    is $server->count_requests - $before, 12, '12 requests arrive: of each run one, and eight others';
    $runner->send(start_line(input => human('Hello')));
    $runner->lines_until(sub { $_[0]{type} eq 'end' && $_[0]{status} eq 'success' });
    $runner->send({ type => 'cancel', run_id => $starts[0]{run_id}, epoch => 1 });
    is end_of($runner, $starts[0]{run_id}), 'interrupted', 'a run with calls is cancelled';
    $server->wait_requests($before + 19);
    settle($runner);
    is $server->count_requests - $before, 19, 'calls of other runs start after a cancel';
    $server->release(200);
    my %ended;
    $runner->lines_until(sub {
        $ended{ $_[0]{run_id} } = $_[0]{status} if $_[0]{type} eq 'end';
        return keys %ended == 3;
    });
    is_deeply [ sort values %ended ], [ ('success') x 3 ], 'runs that are not cancelled end with success';
    $server->drain;
};

# ---- many at once ----

# Each takes some 90 MB until it ends.
sub large_line {
    my ($text) = @_;
    my $message = '{"type":"human","content":"a","id":"%d","name":null,"additional_kwargs":{},'
        . '"response_metadata":{},"example":false}';
    return line_of(input => human($text),
        values => \('{"messages":[' . join(',', map { sprintf $message, $_ } 1 .. 20_000) . ']}'));
}

subtest 'large runs wait for memory, small ones do not' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $runner = limited_runner('-d 420000');
    my %large = map { large_line('sleep 300') } 1 .. 12;
    my %small = map { line_of(input => human('Hello')) } 1 .. 3;
    my $ends;
    my $cost = cost_of([ $runner->pid ], sub {
        $ends = $runner->ends_of(join('', values %large, values %small), 15);
    });
    is_deeply [ map { $ends->{$_}{status} } keys %large, keys %small ], [ ('success') x 15 ],
        '12 runs of 90 MB and three small ones end with success';
    cmp_ok $cost->{peak_bytes}, '<', 400 * MB, '12 runs of 90 MB take less than 400 MB';

    my ($first, $first_line) = large_line('sleep 600000');
    my ($second, $second_line) = large_line('sleep 600000');
    my ($third, $third_line) = large_line('sleep 600000');
    $runner->send_raw($first_line . $second_line . $third_line);
    settle($runner);
    my ($other, $line) = line_of(input => human('Hello'));
    $runner->send_raw($line);
    is end_of($runner, $other), 'success', 'a small run overtakes the queued ones';
    $runner->send({ type => 'cancel', run_id => $third, epoch => 1 });
    is end_of($runner, $third), 'interrupted', 'a queued run can be cancelled';
    $runner->send({ type => 'drain' });
    $runner->send(map { { type => 'cancel', run_id => $_, epoch => 1 } } $first, $second);
    is $runner->finish, 0, 'drain: the runner exits after its queued runs';
};

subtest 'runs wait for the memory that their inputs take once they are applied' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $letters = join ',', ('"a"') x 100_000;
    my $texts = join ',', ('"a"') x 30_000;
    for my $shape ([ 'blocks', qq({"messages":[{"role":"user","content":[$letters]}]}) ],
        [ 'messages', qq({"messages":[$texts]}) ]) {
        my ($name, $input) = @{$shape};
        my $runner = limited_runner('-d 420000');
        my %large = map { line_of(input => \$input, stream_modes => []) } 1 .. 12;
        my ($small, $small_line) = line_of(input => human('Hello'));
        my $ends;
        my $cost = cost_of([ $runner->pid ], sub {
            $ends = $runner->ends_of(join('', values %large, $small_line), 13);
        });
        is_deeply [ map { $ends->{$_}{status} } keys %large, $small ], [ ('success') x 13 ],
            "12 runs of many $name succeed";
        cmp_ok $cost->{peak_bytes}, '<', 400 * MB, "12 runs of many $name take at most 400 MB";
        note sprintf 'peak %.0f MB', $cost->{peak_bytes} / MB;
    }
};

# Each takes 82 MB as a tree; its input has the id of another run.
sub heavy_line {
    my ($note) = @_;
    return line_of(input => \('{"messages":[{"role":"user","content":"sleep 600000"}],'
        . qq("note":"$note","run_id":"$note","x":[) . join(',', ('{}') x 100_000) . ']}'));
}

subtest 'a queued run that is cancelled ends without being parsed' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $runner = limited_runner('-d 420000');
    my ($small, $small_line) = line_of(input => human('sleep 600000'));
    my ($last, $last_line) = heavy_line('none');
    my @first = map { [ heavy_line($last) ] } 1 .. 8;
    my @lines;
    my $cost = cost_of([ $runner->pid ], sub {
        $runner->send_raw(join '', $small_line, (map { $_->[1] } @first), $last_line);
        settle($runner);
        $runner->send({ type => 'cancel', run_id => $last, epoch => 2 },
            { type => 'cancel', run_id => $last, epoch => 1 });
        @lines = $runner->lines_of_run($last);
        settle($runner);
    });
    delete $_->{' text'} for @lines;
    is_deeply \@lines, [ { type => 'end', run_id => $last, epoch => 1, status => 'interrupted', error => undef } ],
        'a queued run that is cancelled has no other line than its end';
    cmp_ok $cost->{peak_bytes}, '<', 300 * MB, 'queued runs whose input has the id of the cancelled run stay queued';
    for my $run ($small, map { $_->[0] } reverse @first) {
        $runner->send({ type => 'cancel', run_id => $run, epoch => 1 });
        is end_of($runner, $run), 'interrupted', 'a run that was not cancelled runs until it is';
    }
    $runner->send({ type => 'drain' });
    is $runner->finish, 0, 'drain: the runner exits after cancelled runs';
};

subtest 'start lines of 7 MB are queued while memory is short' => sub {
    my $count = is_sanitized() ? 10 : 60;
    my $runner = is_sanitized() ? RunnerTest->new(graphs => \%graphs) : limited_runner('-d 262144');
    my $message = '{"type":"human","content":"' . 'a' x 10_000 . '","id":"%d","name":null,'
        . '"additional_kwargs":{},"response_metadata":{},"example":false}';
    my $values = '{"messages":[' . join(',', map { sprintf $message, $_ } 1 .. 690) . ']}';
    # This run takes some 90 MB of the 128 MB for runs and queued lines.
    my @lines = (large_line('sleep 10000'))[1];
    my $left = $count;
    my $ends;
    my $cost = cost_of([ $runner->pid ], sub {
        $ends = $runner->ends_of('', $count + 1, sub {
            my ($ended) = @_;
            return shift @lines if @lines;
            # At most an eighth of the memory, as the supervisor sends.
            return if $left == 0 || $count - $left - $ended >= 4;
            $left--;
            return (line_of(input => human('Hello'), stream_modes => [], durability => 'exit',
                values => \$values))[1];
        });
    });
    is scalar(grep { $_->{status} eq 'success' } values %{$ends}), $count + 1, "$count queued runs and a large one end with success";
    cmp_ok $cost->{peak_bytes}, '<', 192 * MB * memory_scale(), 'queued runs of 7 MB: the memory stays below the limit';
    cmp_ok $cost->{cpu_sec}, '<', (1 + 1e-7 * $count * length $values) * memory_scale(),
        'queued runs of 7 MB: the processor time is less than 0.1 us a byte';
    note sprintf 'peak %.0f MB, processor %.1f s', $cost->{peak_bytes} / MB, $cost->{cpu_sec};
};

subtest 'many runs with large replies at once' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    for my $shape ([ 'tools', 'use book {} ' x 4 ], [ 'long', 'Hi' ]) {
        my ($graph, $text) = @{$shape};
        my $runner = limited_runner('-d 420000');
        my %large = map {
            line_of(graph_id => $graph, input => human($text), stream_modes => [qw(updates events)])
        } 1 .. 30;
        my %small = map { line_of(input => human($_)) } 'sleep 2000', 'Hello', 'use clock {}';
        my $ends;
        my $cost = cost_of([ $runner->pid ], sub {
            $ends = eval { $runner->ends_of(join('', values %large, values %small), 33) } // {};
        });
        is scalar(keys %{$ends}), 33, "$graph: all runs end";
        is_deeply [ map { $ends->{$_}{status} } keys %small ], [ ('success') x 3 ],
            "$graph: small runs end with success";
        cmp_ok $cost->{peak_bytes}, '<', 250 * MB, "$graph: 30 runs take less than 250 MB";
        note sprintf 'peak %.0f MB', $cost->{peak_bytes} / MB;
    }
};

my $MANY = 15;

# Executes $count runs in a runner of 420 MB, with small ones after the first four.
sub is_bounded_together {
    my ($count, $title, $most, %fields) = @_;
    return subtest "$count runs: $title" => sub {
        my $runner = limited_runner('-d 420000');
        my %large = map { line_of(%fields) } 1 .. $count;
        my %small = map { line_of(input => human($_)) } 'Hello', 'use clock {}', 'custom {"done": 1}';
        my $all = $count + keys %small;
        my @lines = values %large;
        splice @lines, 4, 0, values %small;
        my $ends = {};
        my $cost = eval {
            cost_of([ $runner->pid ], sub { $ends = $runner->ends_of(join('', @lines), $all) });
        } // do { diag $@; { peak_bytes => 1e12, cpu_sec => 1e6 } };
        is scalar(grep { $_->{status} eq 'success' } values %{$ends}), $all,
            "$count runs and three small ones end with success";
        is scalar(grep { ($ends->{$_}{number} // $all) < $all } keys %small), 3, 'no small run ends last';
        cmp_ok $cost->{peak_bytes}, '<', $most * MB, "$count runs and three small ones take less than $most MB";
        cmp_ok $cost->{cpu_sec}, '<', $count, "$count runs take less than $count s of processor time";
        note sprintf 'peak %.0f MB, processor %.1f s', $cost->{peak_bytes} / MB, $cost->{cpu_sec};
    };
}

SKIP: {
    skip 'a sanitizer takes more than any limit', 1 if is_sanitized();
    # A run takes some 60 MB as a tree: ten exceed each bound.
    my $nested = '{"a":[' . join(',', ('{}') x 75_000) . ']}';
    my %together = (stream_modes => [qw(updates custom)]);
    is_bounded_together($MANY, 'the demo model calls a tool with 75,000 objects', 100, %together,
        input => human("use clock $nested"));
    is_bounded_together($MANY, 'the demo model sends an event of 75,000 objects', 100, %together,
        input => human("custom $nested"));
    is_bounded_together($MANY, "a client's call in OpenAI's form has 75,000 objects", 100, %together,
        input => { messages => [ { role => 'ai', content => '', tool_calls => [ { function => {
            name => 'clock', arguments => $nested } } ] }, { role => 'user', content => 'Hi' } ] });
    is_bounded_together($MANY, "additional_kwargs has 75,000 objects", 320, %together, input =>
        \qq({"messages":[{"role":"user","content":"Hi","additional_kwargs":$nested}]}));
    is_bounded_together($MANY, 'a tool sends an event and a result of 75,000 objects', 100, %together,
        graph_id => 'lines', input => human('use lines {}'));
    for my $vendor (qw(openai anthropic)) {
        is_bounded_together($MANY, "$vendor streams arguments of 75,000 objects", 100, %together,
            graph_id => "$vendor args", input => human('Hi'));
        is_bounded_together($MANY, "$vendor sends arguments of 75,000 objects in one event", 250, %together,
            graph_id => "$vendor whole", input => human('Hi'));
    }
    is_bounded_together(40, 'the demo model repeats 200,000 words of a tool', 250,
        graph_id => 'prose', input => human('use prose {}'), stream_modes => []);
}

subtest 'runs that a model lets grow wait for each other' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $runner = limited_runner('-d 262144');
    # Each grows to 9 MB: 12 answers of 128 calls.
    my %large = map { line_of(graph_id => 'storm', input => human('Hi'), stream_modes => []) } 1 .. 40;
    my ($small, $small_line) = line_of(input => human('sleep 1000'));
    my $ends = {};
    my $cost = eval {
        cost_of([ $runner->pid ], sub { $ends = $runner->ends_of(join('', values %large, $small_line), 41) });
    } // do { diag $@; { peak_bytes => 1e12 } };
    is_deeply [ map { $ends->{$_}{error}{error} // '' } keys %large ], [ ('GraphRecursionError') x 40 ],
        'each run takes all its steps';
    is $ends->{$small}{status}, 'success', 'a small run ends with success';
    cmp_ok $cost->{peak_bytes}, '<', 240 * MB, '40 runs of 9 MB take less than 240 MB';
    note sprintf 'peak %.0f MB', $cost->{peak_bytes} / MB;
};

subtest 'runs that have grown do not wait for others whose model is silent' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $runner = limited_runner('-d 262144');
    my $before = $server->count_requests;
    my %silent = map { line_of(graph_id => 'silent', input => human('Hi'), stream_modes => []) } 1 .. 3;
    my %large = map { line_of(graph_id => 'storm', input => human('Hi'), stream_modes => []) } 1 .. 37;
    my $ends = $runner->ends_of(join('', values %silent, values %large), 37);
    is_deeply [ map { $ends->{$_}{error}{error} // '' } keys %large ], [ ('GraphRecursionError') x 37 ],
        '37 runs take all their steps while the models of three are silent';
    $server->wait_requests($before + 3);
    $server->release(3);
    $ends = $runner->ends_of('', 3);
    is_deeply [ sort keys %{$ends} ], [ sort keys %silent ], 'three runs end when their models have answered';
    $server->drain;
};

subtest 'a slow tool does not hold up the large replies of another run' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    # 3 MiB for replies of all runs.
    my $runner = limited_runner('-d 49152');
    my ($slow, $slow_line) = line_of(graph_id => 'slow', command => storm_of(4, 'stall'));
    my ($other, $other_line) = line_of(graph_id => 'slow', command => storm_of(1, 'book'));
    my $before = $server->count_requests;
    $runner->send_raw($slow_line);
    $server->wait_requests($before + 4);
    settle($runner);
    $runner->send_raw($other_line);
    is end_of($runner, $other), 'success', 'another run reads its reply while the tool is silent';
    $server->release(4);
    is end_of($runner, $slow), 'success', 'the run with the slow tool ends with success';
    $server->drain;
};

# ---- a model server ----

is_cheap('a model server sends its answer in single bytes', 100, 'success', graph_id => 'bytes',
    input => human('Hi'));
for my $part (qw(ids names)) {
    $cost = is_cheap("a model server sends $part of 900 KB", 100, 'error',
        graph_id => $part, input => human('Hi'));
    like $cost->{error}{message}, qr/more than 512 bytes/, "a model server sends $part of 900 KB: the error has the limit";
}
$cost = is_cheap('a model server requests 200 tools', 100, 'error', graph_id => 'calls',
    input => human('Hi'));
like $cost->{error}{message}, qr/more than 128 calls of tools/, 'a model server requests 200 tools: the error has the limit';

done_testing;
