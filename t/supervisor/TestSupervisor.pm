# SPDX-License-Identifier: Apache-2.0
# Starts a supervisor for a test, on a private cluster and with the scripted
# runner of this folder; creates runs and waits for them.
package TestSupervisor;
use strict;
use warnings;
use AgentTest::Database;
use AgentTest::Env qw(root variant build_dir is_root is_sanitized is_counted server_user slurp write_file);
use AgentTest::Postgres;
use AgentTest::Process qw(children_of descendants_of);
use AgentTest::Wait;
use Carp qw(croak);
use Exporter 'import';
use Fcntl qw(F_SETFD LOCK_EX);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Handle;
use IO::Socket::UNIX;
use Cpanel::JSON::XS;
use POSIX qw(WNOHANG mkfifo);
use Socket qw(SOCK_DGRAM);

our @EXPORT = qw(start_cluster create_thread create_run create_each create_all create_runs run_field
    status_of error_of attempts_of quoted wait_status wait_final wait_all_final wait_events events_of
    scripted_runner make_gate open_gate release_lock wait_blocked uuid build program fast_timing start_listener
    listen_once wrap_function count_calls calls_of);

our $DEPLOYMENT = '00000000-0000-0000-0000-000000000001';

# The user of runners, when the tests are run by root.
my $RUNNER_USER = 'nobody';
my %running;

# All logs are kept when a test of the file fails or wait_for gives up.
my $has_failed;
my $say_error = $SIG{__DIE__};
$SIG{__DIE__} = sub {
    my ($message) = @_;
    $has_failed = 1 if "$message" =~ /\Agave up waiting/;
    $say_error->($message) if $say_error;
};

sub has_failed {
    # Test::More is gone then; END has called this before.
    return $has_failed if ${^GLOBAL_PHASE} eq 'DESTRUCT';
    $has_failed ||= !Test::More->builder->is_passing;
    return $has_failed;
}

# ---- building ----

sub program { return build_dir() . "/supervisor/$_[0]" }

# Builds programs of this folder that are not up to date: once in a suite, because make
# reads the beginnings of all C programs of the tests.
sub build {
    my @programs = map { ".build/" . variant() . "/supervisor/$_" } @_;
    chdir root() or croak root() . ": $!";
    # Several test files may run at the same time, but only one make.
    make_path(build_dir());
    my $file = build_dir() . '/supervisor.lock';
    open my $lock, '>>', $file or croak "$file: $!";
    flock $lock, LOCK_EX or croak "flock: $!";
    my $suite = $ENV{AGENT_TEST_TALLY} // '';
    my %built = map { $_ => 1 } grep { length $suite && /\A\Q$suite\E / } split /\n/, slurp($file);
    my @missing = grep { !$built{"$suite $_"} } @programs or return;
    # The tests may have been started by make: this is not a sub-make of it.
    local @ENV{qw(MAKEFLAGS MAKELEVEL)};
    my @command = ('make', '-s', '-f', 'Makefile.apxs', 'VARIANT=' . variant(), @missing);
    open my $make, '-|', "@command 2>&1" or croak "make: $!";
    my $output = join '', <$make>;
    close $make or croak "@command failed:\n$output";
    write_file($file, map { "$_\n" } keys %built, map { "$suite $_" } @missing);
    return;
}

# ---- the cluster ----

# Timeouts of seconds instead of half minutes, long enough for a busy machine.
sub fast_timing {
    return { ping_interval => 500, ping_timeout => 5000, cancel_grace => 4000,
        drain_grace => 4000, ready_timeout => 15_000 };
}

sub start_cluster {
    build(qw(standalone fake_runner));
    my $pg = AgentTest::Postgres->new;
    @ENV{qw(PGHOST PGUSER PGDATABASE)} = ($pg->host, 'postgres', 'agent');
    return $pg;
}

# A runner written in Perl, a file of this folder, with the module that it uses. All its
# processes read the program from the same descriptor.
sub scripted_runner {
    my ($name) = @_;
    my ($module, $text) = map { slurp(root() . "/t/supervisor/$_") } 'ScriptedRunner.pm', $name;
    $text =~ s/^(?=use ScriptedRunner;\n)/BEGIN { \$INC{'ScriptedRunner.pm'} = 1;\n$module}\n/m or return root() . "/t/supervisor/$name";
    my $dir = tempdir('/tmp/agent-test-script.XXXXXX', CLEANUP => 1);
    write_file("$dir/$name", $text);
    chmod 0755, $dir, "$dir/$name";
    return "$dir/$name";
}

# ---- the supervisor ----

# start($cluster, members of standalone.c's configuration ...), and
# life_pipe => [read end, write end]; within => [words of a command that
# executes the rest of its command line].
sub start {
    my ($class, $pg, %config) = @_;
    my $dir = tempdir('/tmp/agent-test-sv.XXXXXX', CLEANUP => 0);
    chmod 0755, $dir or croak "$dir: $!";
    my $self = bless { dir => $dir, log => "$dir/log", owner => $$ }, $class;
    my %users = is_root() ? users() : ();
    my $life = delete $config{life_pipe};
    $self->{within} = delete $config{within} // [];
    %config = (
        conninfo => $pg->conninfo, node => 'node-1', runner => program('fake_runner'),
        graphs   => { agent => { kind => 'builtin' } }, runners => 1, slots => 100,
        lease_sec => 20, wake => "$dir/wake", %users, %config,
    );
    $config{life_fd} = fileno $life->[0] if $life;
    open my $out, '>', "$dir/config.json" or croak "$dir: $!";
    print {$out} encode_json(\%config);
    close $out or croak "$dir: $!";
    $self->{wake} = $config{wake};
    $self->launch($life);
    return $self;
}

sub users {
    my @daemon = (getpwnam server_user())[2, 3];
    my @runner = (getpwnam $RUNNER_USER)[2, 3];
    return (uid => $daemon[0], gid => $daemon[1], runner_uid => $runner[0],
        runner_gid => $runner[1]);
}

sub launch {
    my ($self, $life) = @_;
    my $pid = fork // croak "fork: $!";
    if (!$pid) {
        fcntl $life->[0], F_SETFD, 0 if $life;
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  '/dev/null';
        open STDERR, '>>', $self->{log};
        exec @{ $self->{within} }, program('standalone'), "$self->{dir}/config.json"
            or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    $running{$pid} = 1;
    return;
}

sub pid { return $_[0]{pid} }
sub log_text { return slurp($_[0]{log}) }

sub wait_log {
    my ($self, $pattern, $seconds) = @_;
    return wait_for("$pattern in the log", sub { $self->log_text =~ $pattern }, $seconds);
}

sub wait_ready {
    my ($self) = @_;
    $self->wait_log(qr/AGT0330/);
    return $self->wait_log(qr/AGT0320/);
}

# Waits until so many runners have become ready since the start.
sub wait_runners {
    my ($self, $count) = @_;
    return wait_for("$count runners to be ready", sub { $count <= (() = $self->log_text =~ /AGT0330/g) });
}

sub spawner_pid { my ($pid) = children_of($_[0]{pid}); return $pid }

sub runner_pids {
    my ($self) = @_;
    my $spawner = $self->spawner_pid;
    return $spawner ? children_of($spawner) : ();
}

# Sends a datagram, as httpd's children do after a commit.
sub wake {
    my ($self, $byte) = @_;
    my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => $self->{wake})
        or croak "$self->{wake}: $!";
    return $socket->send($byte // 'R');
}

# Creates runs as create_each does, and waits until each has sent an event; the
# first one is `metadata`, which the supervisor writes.
sub start_runs {
    my ($self, $count, @run) = @_;
    my @runs = create_each($count, @run);
    $self->wake;
    wait_events('all runs to begin', 2, @runs);
    return @runs;
}

sub start_run {
    my ($self, @run) = @_;
    return ($self->start_runs(1, @run))[0];
}

# Cancels runs, with the action interrupt.
sub cancel {
    my ($self, @runs) = @_;
    sql("select x.code from agent.runs r cross join lateral agent.cancel_run(r.deployment_id, r.thread_id, r.run_id, "
        . "'interrupt') x where r.run_id in (" . quoted(@runs) . ')');
    return $self->wake('C');
}

sub signal {
    my ($self, $name) = @_;
    return kill $name => $self->{pid};
}

# Waits for its end; returns its status, as $?.
sub wait_exit {
    my ($self, $seconds) = @_;
    my $status;
    wait_for('the supervisor to end', sub {
        return 1 if defined $status;
        return 0 if waitpid($self->{pid}, WNOHANG) != $self->{pid};
        $status = $?;
        return 1;
    }, $seconds);
    delete $running{ $self->{pid} };
    $self->{ended} = 1;
    return $status;
}

sub stop {
    my ($self, $name) = @_;
    $self->signal($name // 'TERM');
    return $self->wait_exit;
}

# Kilobytes of private memory in use.
sub memory {
    my ($self) = @_;
    my ($kb) = slurp("/proc/$self->{pid}/status") =~ /^RssAnon:\s+(\d+)/m;
    return $kb;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $@, $!);
    end_counted($self) if is_counted() && !$self->{ended};
    if (!$self->{ended}) {
        kill_all($self->{pid});
        waitpid $self->{pid}, 0;
        delete $running{ $self->{pid} };
    }
    report_sanitizer($self);
    if (has_failed()) {
        print {*STDERR} "# the log of the supervisor is kept: $self->{log}\n";
    }
    else {
        remove_tree($self->{dir});
    }
    return;
}

# Ends as a stop of httpd ends it.
sub end_counted {
    my ($self) = @_;
    kill CONT => $self->{pid}, descendants_of($self->{pid});
    $self->signal('TERM');
    eval { $self->wait_exit(10) };
    return;
}

# A sanitizer's report fails the test that caused it.
sub report_sanitizer {
    my ($self) = @_;
    my $log = $self->log_text;
    if ($log =~ /((?:ERROR: \w+Sanitizer|runtime error:).*)/s) {
        Test::More::fail('no sanitizer report');
        Test::More::diag($1);
    }
    return;
}

# Kills their runners and spawners too: one that a test has stopped would not
# end by itself.
sub kill_all {
    my (@supervisors) = @_;
    return kill KILL => map { ($_, descendants_of($_)) } @supervisors;
}

END {
    my $status = $?;
    has_failed();
    kill_all(keys %running) if %running;
    $? = $status;
}

# ---- runs ----

sub uuid {
    my @parts = map { int rand 65536 } 1 .. 8;
    return sprintf '%04x%04x-%04x-4%03x-8%03x-%04x%04x%04x', @parts[0 .. 2],
        $parts[3] & 0xfff, $parts[4] & 0xfff, @parts[5 .. 7];
}

sub create_thread {
    my ($thread) = @_;
    return sql("select code from agent.create_thread('$DEPLOYMENT', '$thread', 'raise', '{}')");
}

# create_run({ do => ... } [, thread => id, strategy => ..., webhook => url, graph => name, deployment => id]):
# the run's id. pad => N makes the input N bytes longer, objects => N adds N empty
# objects to it; request => {...} adds fields to the request.
sub create_run { return create_each(1, @_) }

# Creates $count runs, each on a thread of its own; returns their ids.
sub create_each {
    my ($count, @run) = @_;
    return create_all(map { [@run] } 1 .. $count);
}

# create_all([arguments of create_run], ...): creates these runs in this order.
sub create_all {
    my (@runs, @statements);
    for (@_) {
        my ($input, %args) = @{$_};
        my $thread = $args{thread} // uuid();
        my $deployment = $args{deployment} // $DEPLOYMENT;
        push @statements, "select code from agent.create_thread('$deployment', '$thread', 'raise', '{}')" if !$args{thread};
        push @runs, uuid();
        push @statements, create_statement($runs[-1], $thread, $input, %args);
    }
    # The longest argument of a program is 128 KB.
    while (my @some = splice @statements, 0, 100) {
        my @wrong = grep { $_ ne 'ok' } sql(join ' ', map { "begin; $_; commit;" } @some);
        croak "create_run: @wrong" if @wrong;
    }
    return wantarray ? @runs : $runs[0];
}

sub create_statement {
    my ($run, $thread, $input, %args) = @_;
    my $request = literal(encode_json(
        { input => { %{$input}, pad => '@', objects => ['#'] }, webhook => $args{webhook},
            %{ $args{request} // {} } }));
    my $objects = "'{}' || repeat(',{}', " . ($args{objects} // 0) . ')';
    $request = "replace(replace($request, '\"#\"', $objects), '\@', repeat('x', "
        . ($args{pad} // 0) . '))::json';
    my $strategy = $args{strategy} // 'reject';
    my $graph = $args{graph} // 'agent';
    my $deployment = $args{deployment} // $DEPLOYMENT;
    return "select code from agent.create_run('$deployment', '$thread', '$run', '" . uuid()
        . "', '$graph', array['$graph'], '$strategy', '', null, null, $request)";
}

# Creates many runs, each on its own thread, in one transaction; returns their
# number.
sub create_runs {
    my ($count, $input) = @_;
    my $request = literal(encode_json({ input => $input }));
    return sql(<<"SQL");
        with k as materialized (
            select gen_random_uuid() as t, gen_random_uuid() as r, gen_random_uuid() as a
              from generate_series(1, $count)
        ), c as materialized (
            select k.*, x.code
              from k cross join lateral agent.create_thread('$DEPLOYMENT', k.t, 'raise', '{}') x
        )
        select count(*)
          from c cross join lateral agent.create_run('$DEPLOYMENT', c.t, c.r, c.a, 'agent',
                   array['agent'], 'reject', case when c.code = 'ok' then '' end, null, null,
                   $request) x
         where x.code = 'ok'
SQL
}

sub run_field {
    my ($run, $field) = @_;
    return poll("select $field from agent.runs where run_id = '$run'");
}

sub status_of { return run_field($_[0], 'status') }
sub error_of  { return run_field($_[0], "error->>'error'") }

# The counted attempts of runs that have ended: those of the one with most.
sub attempts_of { return poll('select max(attempts) from agent.usage_events where run_id in (' . quoted(@_) . ')') }

sub wait_final {
    my ($run, $seconds) = @_;
    wait_for("run $run to be final", sub {
        return (run_field($run, 'finished_at is not null') // '') eq 't';
    }, $seconds);
    return status_of($run);
}

sub wait_status {
    my ($run, $status, $seconds) = @_;
    my $got = wait_final($run, $seconds);
    return Test::More::is($got, $status, "the run ends with status $status");
}

sub quoted { return join ', ', map { "'$_'" } @_ }

# Waits until each of the runs has $count events, with one query for all.
sub wait_events {
    my ($what, $count, @runs) = @_;
    my $list = quoted(@runs);
    wait_for($what, sub {
        poll("select count(*) from (select run_id from agent.run_events where run_id in ($list) "
            . "group by run_id having count(*) >= $count) x") == @runs;
    });
    return;
}

# Waits until all of the runs have ended, and tests that they have this status.
sub wait_all_final {
    my ($status, @runs) = @_;
    my $list = quoted(@runs);
    wait_for('all runs to be final', sub {
        poll("select count(*) from agent.runs where finished_at is not null and run_id in ($list)") == @runs;
    }, 600);
    return Test::More::is(sql("select count(*) from agent.runs where status = '$status' and run_id in ($list)"),
        scalar @runs, "all runs end with status $status");
}

# [event, data] pairs in order; dies when a number is missing.
sub events_of {
    my ($run) = @_;
    my @events;
    for (sql("select seq, event, data from agent.run_events where run_id = '$run' order by seq")) {
        my ($seq, $event, $data) = split /\t/, $_, 3;
        croak "event $seq of $run stands at " . scalar @events if $seq != @events;
        push @events, [ $event, length $data ? Cpanel::JSON::XS->new->allow_nonref->decode($data) : undef ];
    }
    return @events;
}

# ---- calls of functions ----

# From the next start of a supervisor on, each call of the function executes the
# statement before.
sub wrap_function {
    my ($name, $statement) = @_;
    my ($row) = sql('select oidvectortypes(proargtypes), pronargs, pg_get_function_result(oid) '
        . "from pg_proc where oid = 'agent.$name'::regproc");
    my ($types, $count, $result) = split /\t/, $row;
    my $params = join ', ', map { "\$$_" } 1 .. $count;
    sql("alter function agent.$name($types) rename to ${name}_kept;
        create function agent.$name($types) returns $result language plpgsql security definer as \$wrapper\$
            begin
                $statement;
                return query select * from agent.${name}_kept($params);
            end\$wrapper\$");
    return;
}

# Counts its calls from the next start of a supervisor on: those that have begun, of
# transactions in flight too. The statistics of the server are not complete at once.
sub count_calls {
    sql("create sequence agent.calls_of_$_[0]");
    return wrap_function($_[0], "perform nextval('agent.calls_of_$_[0]')");
}

sub calls_of { return poll("select last_value - (not is_called)::integer from agent.calls_of_$_[0]") }

# ---- locks and gates ----

# Ends what hold_lock() began.
sub release_lock {
    my ($lock) = @_;
    return close($lock) || croak 'psql failed';
}

# Waits until a statement that calls agent.NAME waits for a lock.
sub wait_blocked {
    my ($name) = @_;
    return wait_for("$name to wait for a lock", sub {
        poll("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%agent.$name(%'");
    });
}

# A gate: a run with { do => 'gate', path => ... } ends when it is opened.
sub make_gate {
    my $dir = tempdir('/tmp/agent-test-gate.XXXXXX', CLEANUP => 1);
    chmod 0755, $dir;
    mkfifo("$dir/gate", 0644) or croak "$dir/gate: $!";
    chmod 0644, "$dir/gate";
    return "$dir/gate";
}

sub open_gate {
    my ($path) = @_;
    open my $gate, '>', $path or croak "$path: $!";
    return close $gate;
}

1;
