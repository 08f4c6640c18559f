# SPDX-License-Identifier: Apache-2.0
# Inputs of legal size that are made to be expensive: what they may cost the
# runner in memory and processor time, and that another run of the same runner
# ends well beside them.
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
    tools  => graph(tools => [ map { $server->tool($_) } qw(json gate) ]),
    get    => graph(tools => [ { %{ $server->tool('gate') }, method => 'GET' } ]),
    map { $_ => graph(model => $server->model('openai', $_)) } qw(bytes ids names calls));

# A start line; JSON text stands where a field is a reference to it.
sub line_of {
    my (%fields) = @_;
    my %raw = map { ref $fields{$_} eq 'SCALAR' ? ($_ => ${ delete $fields{$_} }) : () }
        keys %fields;
    my $start = start_line(%fields, map { $_ => "<$_>" } keys %raw);
    my $text = encode_json($start);
    $text =~ s/"<$_>"/$raw{$_}/ for keys %raw;
    return ($start->{run_id}, "$text\n");
}

# Measures one run beside a small one, in a runner that has kept no memory of
# others: {status, error} of its end.
sub cost_of_run {
    my (%fields) = @_;
    my $runner = RunnerTest->new(graphs => \%graphs);
    my ($other, $small) = line_of(input => human('Hello'));
    my ($run_id, $line) = line_of(%fields);
    my $ends;
    my $cost = cost_of([ $runner->pid ], sub { $ends = $runner->ends_of($line . $small, 2) });
    return { %{$cost}, %{ $ends->{$run_id} }, bytes => length $line,
        beside => $ends->{$other}{status} };
}

# A run ends as it should, within $per_byte bytes of memory and a microsecond
# of the processor for each byte of its start line, and 8 MB and 1 s for all.
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
        is $cost->{status}, $status, 'its end';
        is $cost->{beside}, 'success', 'a run beside it ends well';
        cmp_ok $cost->{peak_bytes}, '<', $peak, sprintf 'memory: %.1f MB for %.2f MB',
            $cost->{peak_bytes} / MB, $cost->{bytes} / MB;
        cmp_ok $cost->{cpu_sec}, '<', $cpu, "processor: $cost->{cpu_sec} s";
    };
    return $cost;
}

sub messages { return \('{"messages":[' . join(',', @_) . ']}') }

# ---- from a client ----

my $blocks = messages('{"role":"user","content":[' . join(',', ('"a"') x 100_000) . ']}');
is_cheap("$_: a message of 100,000 text blocks costs what it is long", 600, 'success',
    graph_id => $_, input => $blocks) for qw(agent openai claude);

my $systems = messages('{"role":"user","content":"Hi"}',
    ('{"role":"system","content":"ab"}') x 30_000);
is_cheap("$_: 30,000 system messages cost what they are long", 400, 'success',
    graph_id => $_, input => $systems) for qw(openai claude);

my $answers = messages('{"role":"user","content":"Hi"}', map {
    qq({"role":"tool","tool_call_id":"d$_","name":"clock","content":"a"}) } 1 .. 21_000);
is_cheap('the demo model reads 21,000 answers of tools', 200, 'success', input => $answers);

my $calls = join ',', map { qq({"name":"a","args":{},"id":"c$_"}) } 1 .. 20_000;
my $pairs = messages(qq({"role":"ai","content":"","tool_calls":[$calls]}), (map {
    qq({"role":"tool","tool_call_id":"d$_","content":""}) } 1 .. 15_000),
    '{"role":"user","content":"Hi"}');
is_cheap("$_: 20,000 calls of tools beside 15,000 answers to others", 400, 'success',
    graph_id => $_, input => $pairs) for qw(openai claude);

my $functions = join ',', ('{"function":{"name":"a","arguments":"{}"}}') x 40_000;
is_cheap('40,000 calls in the form of functions', 400, 'success',
    input => messages(qq({"role":"ai","content":"","tool_calls":[$functions]}),
        '{"role":"user","content":"Hi"}'));

my $long_ids = messages(map { '{"role":"user","content":"a","id":"' . $_ x (1 << 20) . '"}' } 'a' .. 'c');
is_cheap("$_: ids of 1 MiB", 30, 'success', graph_id => $_, input => $long_ids)
    for qw(agent claude);

# ---- to the demo model ----

for my $size (20_000, 250_000) {
    my $object = '{"' . 'k' x $size . '":[' . join(',', ('[]') x $size) . ']}';
    for my $word ('use clock', 'custom') {
        is_cheap("the demo model is told to `$word` with a key of $size bytes over as many lists",
            120, 'success', input => human("$word $object"));
    }
}

my $cost = is_cheap('the demo model is told to use 100,000 tools', 30, 'error',
    input => human('use clock {} ' x 100_000));
is $cost->{error}{message}, 'The demo model was asked for more than 128 calls of tools.',
    '... and says how many it may use';

my $objects = join ',', ('{}') x 600_000;
is_cheap('the demo model is told to use a tool with 600,000 objects', 30, 'success',
    input => human(qq(use clock {"a":[$objects]})));
is_cheap('a call in the form of a function has 600,000 objects for arguments', 30, 'error',
    input => messages(qq({"role":"ai","content":"","tool_calls":[{"function":{"name":"a",)
        . qq("arguments":"{\\"a\\":[$objects]}"}}]})));

# ---- tools ----

my $storm = join ',', map { qq({"name":"gate","args":{},"id":"c$_"}) } 1 .. 60_000;
$cost = is_cheap('a command goes to the node tools with 60,000 calls', 250, 'error',
    graph_id => 'tools', command => \(qq({"goto":"tools","update":{"messages":[)
        . qq({"role":"ai","content":"","tool_calls":[$storm]}]}})));
is $cost->{error}{error}, 'ToolCallLimitExceededError', '... and is told that they are too many';
is $server->count_requests, 0, '... no tool was called';

my $arguments = join ',', map { qq("argument$_":$_) } 1 .. 100_000;
is_cheap('the arguments of a tool are too many for a URL', 100, 'success',
    graph_id => 'get', command => \(qq({"goto":"tools","update":{"messages":[)
        . qq({"role":"ai","content":"","tool_calls":[{"name":"gate","args":{$arguments},"id":"c"}]}]}})));
is $server->count_requests, 0, '... it is not called';

# Its start line is short: what counts is the reply, which has 1 MiB.
{
    my $cost = cost_of_run(graph_id => 'tools', input => human('use json {}'));
    is $cost->{status}, 'success', 'a tool answers with a long key over 200,000 lists';
    cmp_ok $cost->{peak_bytes}, '<', 80 * MB * memory_scale(), '... which costs what it is long';
}

# Sends pings until one is answered that was sent after all that came before.
sub settle {
    my ($runner) = @_;
    for my $id (1 .. 20) {
        $runner->send({ type => 'ping', id => $id });
        $runner->lines_until(sub { $_[0]{type} eq 'pong' && $_[0]{id} == $id });
    }
    return;
}

# A runner in a shell that has set a limit.
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

sub storm_of {
    my ($count) = @_;
    return { goto => 'tools', update => { messages => [ { role => 'ai', content => '',
        tool_calls => [ map { { name => 'gate', args => {}, id => "c$_" } } 1 .. $count ] } ] } };
}

sub end_of {
    my ($runner, $run_id) = @_;
    my @lines = $runner->lines_of_run($run_id);
    return $lines[-1]{status};
}

subtest 'a run calls 16 tools at once, the others of its message wait' => sub {
    my $runner = RunnerTest->new(graphs => \%graphs);
    my $start = start_line(graph_id => 'tools', command => storm_of(128));
    my $before = $server->count_requests;
    $runner->send($start);
    $server->wait_requests($before + 16);
    settle($runner);
    is $server->count_requests - $before, 16, 'so many requests come';
    $server->release(5);
    $server->wait_requests($before + 21);
    settle($runner);
    is $server->count_requests - $before, 21, 'one more for each that is answered';
    $server->release(128);
    is end_of($runner, $start->{run_id}), 'success', 'all are answered in the end';
    is $server->count_requests - $before, 128, 'each was called once';
    $server->drain;
};

subtest 'all runs together have as many connections as the process may open' => sub {
    # 32 descriptors for other things, three for each.
    my $runner = limited_runner('-n 92');
    my @starts = map { start_line(graph_id => 'tools', command => storm_of(16)) } 1 .. 4;
    my $before = $server->count_requests;
    $runner->send(@starts);
    $server->wait_requests($before + 20);
    settle($runner);
    is $server->count_requests - $before, 20, 'the others wait';
    $runner->send(start_line(input => human('Hello')));
    $runner->lines_until(sub { $_[0]{type} eq 'end' && $_[0]{status} eq 'success' });
    $runner->send({ type => 'cancel', run_id => $starts[0]{run_id}, epoch => 1 });
    is end_of($runner, $starts[0]{run_id}), 'interrupted', 'a run is cancelled';
    $server->wait_requests($before + 36);
    settle($runner);
    is $server->count_requests - $before, 36, 'others take the places of its calls';
    $server->release(200);
    my %ended;
    $runner->lines_until(sub {
        $ended{ $_[0]{run_id} } = $_[0]{status} if $_[0]{type} eq 'end';
        return keys %ended == 3;
    });
    is_deeply [ sort values %ended ], [ ('success') x 3 ], 'the others end well';
    $server->drain;
};

# ---- many at once ----

# Each holds some 90 MB while it goes on.
sub large_line {
    my ($text) = @_;
    my $message = '{"type":"human","content":"a","id":"%d","name":null,"additional_kwargs":{},'
        . '"response_metadata":{},"example":false}';
    return line_of(input => human($text), checkpoint => undef,
        values => \('{"messages":[' . join(',', map { sprintf $message, $_ } 1 .. 20_000) . ']}'));
}

subtest 'large runs wait for one another, small ones do not' => sub {
    plan skip_all => 'a sanitizer takes more than any limit' if is_sanitized();
    my $runner = limited_runner('-d 420000');
    my %large = map { large_line('sleep 300') } 1 .. 12;
    my %small = map { line_of(input => human('Hello')) } 1 .. 3;
    my $ends;
    my $cost = cost_of([ $runner->pid ], sub {
        $ends = $runner->ends_of(join('', values %large, values %small), 15);
    });
    is_deeply [ map { $ends->{$_}{status} } keys %large, keys %small ], [ ('success') x 15 ],
        'all end well';
    cmp_ok $cost->{peak_bytes}, '<', 400 * MB, '12 of 90 MB within 400 MB';

    my ($first, $first_line) = large_line('sleep 600000');
    my ($second, $second_line) = large_line('sleep 600000');
    my ($third, $third_line) = large_line('sleep 600000');
    $runner->send_raw($first_line . $second_line . $third_line);
    settle($runner);
    my ($other, $line) = line_of(input => human('Hello'));
    $runner->send_raw($line);
    is end_of($runner, $other), 'success', 'a small one passes those that wait';
    $runner->send({ type => 'cancel', run_id => $third, epoch => 1 });
    is end_of($runner, $third), 'interrupted', 'one that waits can be cancelled';
    $runner->send({ type => 'drain' });
    $runner->send(map { { type => 'cancel', run_id => $_, epoch => 1 } } $first, $second);
    is $runner->finish, 0, 'after a drain the runner ends';
};

# Each weighs 82 MB as a tree; its text names another run.
sub heavy_line {
    my ($note) = @_;
    return line_of(input => \('{"messages":[{"role":"user","content":"sleep 600000"}],'
        . qq("note":"$note","run_id":"$note","x":[) . join(',', ('{}') x 100_000) . ']}'));
}

subtest 'a run that waits for memory is cancelled without it, and no other run takes its place' => sub {
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
        'its end is all that it says';
    cmp_ok $cost->{peak_bytes}, '<', 300 * MB, 'runs whose input has its id wait on';
    for my $run ($small, map { $_->[0] } reverse @first) {
        $runner->send({ type => 'cancel', run_id => $run, epoch => 1 });
        is end_of($runner, $run), 'interrupted', 'each of the others goes on until it is cancelled';
    }
    $runner->send({ type => 'drain' });
    is $runner->finish, 0, 'the runner is idle afterwards';
};

subtest 'start lines of 7 MB wait while a runner has no memory for them' => sub {
    my $count = is_sanitized() ? 10 : 60;
    my $runner = is_sanitized() ? RunnerTest->new(graphs => \%graphs) : limited_runner('-d 262144');
    my $message = '{"type":"human","content":"' . 'a' x 10_000 . '","id":"%d","name":null,'
        . '"additional_kwargs":{},"response_metadata":{},"example":false}';
    my $values = '{"messages":[' . join(',', map { sprintf $message, $_ } 1 .. 690) . ']}';
    # It holds some 90 MB of the 128 MB that runs and lines may have together.
    my @lines = (large_line('sleep 10000'))[1];
    my $left = $count;
    my $ends;
    my $cost = cost_of([ $runner->pid ], sub {
        $ends = $runner->ends_of('', $count + 1, sub {
            my ($ended) = @_;
            return shift @lines if @lines;
            # An eighth of its memory, as the supervisor does.
            return if $left == 0 || $count - $left - $ended >= 4;
            $left--;
            return (line_of(input => human('Hello'), stream_modes => [], durability => 'exit',
                values => \$values))[1];
        });
    });
    is scalar(grep { $_->{status} eq 'success' } values %{$ends}), $count + 1, 'all end well';
    cmp_ok $cost->{peak_bytes}, '<', 192 * MB * memory_scale(), 'the runner stays below its limit';
    cmp_ok $cost->{cpu_sec}, '<', (1 + 1e-7 * $count * length $values) * memory_scale(),
        'a tenth of a microsecond of the processor for each byte';
    note sprintf 'peak %.0f MB, processor %.1f s', $cost->{peak_bytes} / MB, $cost->{cpu_sec};
};

# ---- a model server ----

is_cheap('a model server sends its answer byte by byte', 100, 'success', graph_id => 'bytes',
    input => human('Hi'));
for my $deed (qw(ids names)) {
    $cost = is_cheap("a model server sends $deed of 900 KB without end", 100, 'error',
        graph_id => $deed, input => human('Hi'));
    like $cost->{error}{message}, qr/more than 512 bytes/, '... and the run says why it failed';
}
$cost = is_cheap('a model server asks for 200 tools', 100, 'error', graph_id => 'calls',
    input => human('Hi'));
like $cost->{error}{message}, qr/more than 128 calls of tools/, '... and the run says why it failed';

done_testing;
