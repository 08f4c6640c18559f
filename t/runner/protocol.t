# SPDX-License-Identifier: Apache-2.0
# Messages, breaches of the protocol, and the ends of the runner.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cpanel::JSON::XS;
use POSIX ();
use RunnerTest qw(graph start_line human new_uuid lines_of last_message);
use Test::More;

my %graphs = (agent => graph());

sub fresh { return RunnerTest->new(graphs => {%graphs}, @_) }

# Sends bytes to a runner, which must exit with status 2 and log the reason.
sub breaks {
    my ($title, $runner, $bytes, $reason) = @_;
    $runner->send_raw($bytes);
    is $runner->finish >> 8, 2, "$title: the runner exits with status 2";
    like $runner->log_text, $reason, "$title: the log has the reason";
    return;
}

sub line_of { return encode_json(shift) . "\n" }

# --- Durability -------------------------------------------------------------

{
    my $runner = fresh();
    my $start = start_line(input => human('use clock {}'), durability => 'sync', stream_modes => ['tasks']);
    my $commit = sub { $runner->send({ type => 'reply', ok => \1, result => undef, cursor => undef, id => $_[0],
        map { $_ => $start->{$_} } qw(run_id epoch) }) };
    $runner->send($start);
    for my $node (qw(agent tools agent)) {
        my @lines = $runner->lines_until(sub { $_[0]{type} eq 'checkpoint' && $_[0]{metadata}{source} eq 'loop' });
        my $ack = $lines[-1]{ack};
        # An earlier one is not enough.
        $commit->($ack - 1);
        for my $id (1, 2) {
            $runner->send({ type => 'ping', id => $id });
            is $runner->expect('pong')->{id}, $id, "durability sync: $node does not begin before the checkpoint is committed";
        }
        $commit->($ack);
        is $runner->expect('event')->{data}{name}, $node, "durability sync: then $node begins";
    }
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'durability sync: the end waits for nothing';
    is_deeply [ map { $_->{ack} } lines_of('checkpoint', $runner->run(input => human('Hello'))) ], [ (undef) x 3 ],
        'durability: another run asks for no reply';
}
{
    my $runner = fresh();
    my $start = start_line(input => human('Hello'), durability => 'sync');
    $runner->send($start);
    $runner->lines_until(sub { $_[0]{type} eq 'checkpoint' && $_[0]{metadata}{step} == 0 });
    $runner->send({ type => 'cancel', run_id => $start->{run_id}, epoch => 1 });
    is +($runner->lines_of_run($start->{run_id}))[-1]{status}, 'interrupted', 'durability sync: a run that waits can be cancelled';
}

# --- Greeting ----------------------------------------------------------------

{
    my $runner = RunnerTest->new;
    $runner->send({ type => 'ping', id => 1 });
    is $runner->expect('pong')->{id}, 1, 'ping: answered before hello';
    my $ready = $runner->hello({
        agent => graph(),
        plain => graph(tools => []),
        shop  => { kind => 'langgraph' },
        lost  => graph(model => { provider => 'nobody' }) });
    is $ready->{slots}, 100, 'ready: the default number of slots';
    is_deeply [ sort keys %{ $ready->{graphs} } ], [qw(agent lost plain)],
        'ready: has the graphs of the kind builtin';
    is_deeply $ready->{graphs}{lost}, { error => { error => 'InvalidGraph', message => 'unknown model provider "nobody"' } },
        'ready: a graph that cannot be executed has an error';
    is $ready->{runtime}{language}, 'C', 'ready: the runtime has the language of the runner';
    my $agent = $ready->{graphs}{agent};
    is_deeply [ map { $_->{id} } @{ $agent->{drawing}{nodes} } ],
        [qw(__start__ agent tools __end__)], 'ready: the drawing has all nodes';
    is scalar @{ $ready->{graphs}{plain}{drawing}{nodes} }, 3,
        'ready: a graph without tools has no node tools';
    is_deeply [ sort keys %{ $agent->{schemas} } ],
        [qw(config_schema context_schema input_schema output_schema state_schema)],
        'ready: has all schemas';
    $runner->send({ type => 'ping', id => 9_007_199_254_740_993 });
    is $runner->expect('pong')->{id}, 9_007_199_254_740_993, 'pong: repeats the id of the ping';
    my @lines = $runner->run(graph_id => 'lost', input => human('Hello'));
    is $lines[-1]{error}{error}, 'GraphNotFound', 'start: a run of an unknown graph ends with status error';
    $runner->send({ type => 'reply', id => 1, value => undef },
        { type => 'cancel', run_id => new_uuid(), epoch => 1 }, { type => 'ping', id => 2 });
    is $runner->expect('pong')->{id}, 2, 'reply, cancel: those for no run are ignored';
    $runner->finish if $runner->close_input || 1;
    like $runner->log_text, qr/graph lost cannot be served: unknown model provider "nobody"/,
        'hello: the log has the reason why a graph is not executed';
}

# --- Ends --------------------------------------------------------------------

{
    my $runner = fresh();
    $runner->send(start_line(input => human('sleep 30000')));
    $runner->expect('checkpoint');
    $runner->close_input;
    is $runner->finish, 0, 'end of file: ends the runner and its runs';
}
{
    my $runner = fresh();
    my $start = start_line(input => human('sleep 300'));
    $runner->send($start, { type => 'drain' });
    my @lines = $runner->lines_of_run($start->{run_id});
    is $lines[-1]{status}, 'success', 'drain: active runs are completed';
    is $runner->finish, 0, 'drain: the runner exits after its last run';
}
{
    my $runner = fresh();
    $runner->send({ type => 'drain' });
    is $runner->finish, 0, 'drain: an idle runner exits at once';
}
{
    # The runner's parent is a process that is killed; the pipes stay open.
    pipe my $in, my $to_runner or die;
    pipe my $from_runner, my $out or die;
    my $parent = fork() // die;
    if ($parent == 0) {
        my $child = fork() // die;
        if ($child == 0) {
            RunnerTest::exec_runner($in, $out, \*STDERR);
        }
        pipe my $wait, my $never or die;
        <$wait>;
        POSIX::_exit(0);
    }
    close $in;
    close $out;
    syswrite $to_runner, line_of({ type => 'ping', id => 1 });
    like scalar <$from_runner>, qr/pong/, 'parent: a runner answers ping while its parent is alive';
    kill 'KILL', $parent;
    waitpid $parent, 0;
    is scalar <$from_runner>, undef, 'parent: a runner exits with its parent while the pipes are open';
}

# --- Breaches ----------------------------------------------------------------

my $start = start_line(input => human('sleep 30000'));
my %bad_start = (
    'a start without run_id'       => { run_id => undef },
    'a start with a bad run_id'    => { run_id => 'x' },
    'a start without thread_id'    => { thread_id => undef },
    'a start without epoch'        => { epoch => undef },
    'a start with a string as epoch' => { epoch => '1' },
);
breaks('garbage', fresh(), "garbage\n", qr/protocol/);
breaks('an empty line', fresh(), "\n", qr/protocol/);
breaks('an array', fresh(), "[]\n", qr/unknown type/);
breaks('an object without type', fresh(), "{}\n", qr/unknown type/);
breaks('an unknown type', fresh(), line_of({ type => 'dance' }), qr/unknown type/);
breaks('U+0000', fresh(), qq({"type":"ping","id":"\\u0000"}\n), qr/U\+0000/);
breaks('invalid UTF-8', fresh(), qq({"type":"ping","id":"\xff"}\n), qr/UTF-8/);
breaks('a duplicate key', fresh(), qq({"type":"ping","type":"ping"}\n), qr/duplicate key/);
breaks('129 levels', fresh(), '[' x 129 . ']' x 129 . "\n", qr/128 levels/);
breaks('a second hello', fresh(),
    line_of({ type => 'hello', protocol => 2, graphs => {} }), qr/second hello/);
breaks('a start before hello', RunnerTest->new, line_of($start), qr/before hello/);
breaks('another protocol', RunnerTest->new,
    line_of({ type => 'hello', protocol => 1, graphs => {} }), qr/protocol other than 2/);
breaks('hello without graphs', RunnerTest->new,
    line_of({ type => 'hello', protocol => 2 }), qr/without graphs/);
breaks('a start of a run that is running', fresh(), line_of($start) x 2, qr/already running/);
breaks('a start after drain', fresh(),
    line_of($start) . line_of({ type => 'drain' }) . line_of(start_line()), qr/after drain/);
breaks('one run more than there are slots', fresh(arguments => [ '--slots', 1 ]),
    line_of($start) . line_of(start_line(input => human('Hello'))), qr/all slots are in use/);
breaks($_, fresh(), line_of({ %{$start}, %{ $bad_start{$_} } }), qr/start without/)
    for sort keys %bad_start;
breaks("a start from the checkpoint $_", fresh(), line_of({ %{$start}, checkpoint => { checkpoint_id => $_ } }), qr/start from a checkpoint/)
    for '', 'x', '01890000-0000-7000-8000-0000000000', 7;
{
    my $runner = fresh();
    $runner->send_raw('"' . 'x' x (8 * 1024 * 1024 + 65_536));
    is $runner->finish >> 8, 2, 'a line of more than 8 MiB: the runner exits with status 2';
    like $runner->log_text, qr/more than 8 MiB/, 'a line of more than 8 MiB: the runner refuses it before its end';
}

# --- Lines in pieces ---------------------------------------------------------

{
    my $runner = fresh();
    my $text = line_of(start_line(input => human("Gr\x{fc}\x{df}e")));
    $runner->send_raw($_) for split //, $text;
    my @lines = $runner->lines_until(sub { $_[0]{type} eq 'end' });
    is $lines[-1]{status}, 'success', 'lines: one may arrive in single bytes';
}
{
    my $runner = fresh();
    # With all fields they are longer than a line.
    my @many = map { { role => 'user', content => 'x' x 90 } } 1 .. 36_000;
    my @lines = $runner->run(input => { messages => \@many });
    is $lines[-1]{status}, 'error', 'state: an input of more than 8 MiB with all fields ends the run with status error';
    is $lines[-1]{error}{error}, 'StateTooLargeError', 'state: the error of the input is StateTooLargeError';
    my %sent = map { $_->{checkpoint_id} => 1 } lines_of('checkpoint', @lines);
    ok !(grep { $_->{checkpoint_id} && !$sent{ $_->{checkpoint_id} } } lines_of('event', @lines)),
        'state: no event names a checkpoint that was not sent';
    @lines = $runner->run(input => human('word ' x 600_000));
    is $lines[-1]{status}, 'success', 'state: a message of 3 MB is answered';
    is last_message(@lines)->{usage_metadata}{input_tokens}, 600_000, 'state: the words of a message of 3 MB are counted';
}

# --- Command line ------------------------------------------------------------

is fresh(arguments => [ '--slots', 7 ])->{ready}{slots}, 7, 'command line: --slots sets the number of slots';
for my $arguments ([ '--slots', 0 ], [ '--slots', 'x' ], ['--slots'], ['--help']) {
    my $runner = RunnerTest->new(arguments => $arguments);
    is $runner->finish >> 8, 64, "command line: @{$arguments} is refused";
    like $runner->log_text, qr/usage: /, "command line: @{$arguments} prints the usage";
}

done_testing;
