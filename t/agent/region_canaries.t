# SPDX-License-Identifier: Apache-2.0
# Two regions on one machine. Each field that a customer can write in `eu` gets a text of
# its own; none of them occurs in `us`: in the files of its database, its logs, its folders,
# the memory or core dumps of its processes, or the traffic of its sockets. The fields are those of the tables of routes
# and members and the columns of the schema: a new one is written to as well, or fails the test.
use strict;
use warnings;
use AgentTest::ApiKey;
use AgentTest::Applications qw(python);
use AgentTest::Client qw(parse_response read_to_end run_body);
use AgentTest::Conf qw(demo_graph key_location platform_location);
use AgentTest::Database;
use AgentTest::Env qw(is_sanitized is_counted root slurp write_file);
use AgentTest::Postgres;
use AgentTest::Process qw(descendants_of);
use AgentTest::Receiver;
use AgentTest::Routes;
use AgentTest::Server;
use AgentTest::Traffic;
use AgentTest::Wait;
use Cpanel::JSON::XS;
use File::Find qw(find);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;

# The runner in Python has no such build, and the memory of a sanitizer is some terabytes.
plan skip_all => 'the release build is examined' if is_sanitized() || is_counted();

# Its packages need the network, which the namespace does not have.
python();
my $is_isolated = AgentTest::Traffic::isolate();

# All texts have this beginning, which this process says to `eu` only.
my $MARK = join '', 'canary', map { ('a' .. 'z')[ rand 26 ] } 1 .. 16;
my %planted;
# canary('a-field'): its text.
sub canary { my ($field) = @_; $planted{$field} = 1; return "$MARK-$field-end" }

# An application that says what it got in each way that a graph has, and writes it into temporary files, one of which has no name.
my $LOUD = <<'PYTHON';
import sys
import tempfile
from typing import Any
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

unnamed = tempfile.TemporaryFile("w")


class State(TypedDict, total=False):
    text: Any


async def say(state: State) -> Any:
    """Says it, and fails."""
    print("stdout", state["text"], flush=True)
    print("stderr", state["text"], file=sys.stderr, flush=True)
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        print("file", state["text"], file=file)
    print("unnamed", state["text"], file=unnamed, flush=True)
    if state["text"] != "quiet":
        raise ValueError(state["text"])
    return {}


graph = StateGraph(State).add_node("say", say).add_edge(START, "say").compile()
PYTHON

# A folder that each user may write to.
sub make_folder {
    my ($name, $mode) = @_;
    my $folder = tempdir("/tmp/agent-test-$name.XXXXXX", CLEANUP => 1);
    chmod $mode, $folder or die "$folder: $!\n";
    return $folder;
}

# The application of a region; runners have their environment from its langgraph.json.
sub write_application {
    my ($temporary) = @_;
    my $code = make_folder('loud', 0755);
    write_file("$code/langgraph.json", encode_json({ dependencies => ['.'], graphs => { loud => './loud.py:graph' }, env => { TMPDIR => $temporary } }));
    write_file("$code/loud.py", $LOUD);
    return $code;
}

my $receiver = AgentTest::Receiver->new;
my %region = map { $_ => start_region($_) } qw(us eu);

# {postgres, server, client, account, key, temporary} of a region; temporary: the folder of the temporary files of all its processes.
sub start_region {
    my ($name) = @_;
    my $temporary = make_folder("tmp-$name", 01777);
    my $code = write_application($temporary);
    local $ENV{TMPDIR} = $temporary;
    my $postgres = AgentTest::Postgres->new;
    local $ENV{PGHOST} = $postgres->host;
    sql("set session_replication_role = replica; update agent.region set region = '$name'; update agent.accounts set home_region = '$name'");
    my $account = create_account();
    my $server = AgentTest::Server->new(database => $postgres->conninfo, config => join '', demo_graph(), key_location(), platform_location('AgentSignUp On'), <<"CONF");
# At level debug httpd's own modules write the Referer of each request.
LogLevel warn agent:debug
LogFormat "%h %r %{x-api-key}i %{User-Agent}i %{x-anything}i %U %q %>s" all
CustomLog "\${DIR}/logs/access_log" all env=!agent_wrong_region
AgentRegion $name
AgentRegionURL us https://us.example.com https://us.api.example.com
AgentRegionURL eu https://eu.example.com https://eu.api.example.com
AgentPythonProgram "@{[ python() ]}"
AgentWebhookAllow 127.0.0.1
AgentWebhookPorts 1024-65535
AgentConfigurableHeaders x-*
AgentDeployment shop account=$account
AgentApplication loud $code
CONF
    $server->start;
    my $of = { postgres => $postgres, server => $server, temporary => $temporary, client => AgentTest::Client->new(url => $server->url), account => $account,
        key => create_key($account, kind => 'personal', user => $name eq 'eu' ? canary('user-id') : 'someone') };
    wait_for("the graphs of $name to be reported", sub { @{ ask($of, 'POST', '/assistants/search', {})->{json} } == 2 });
    return $of;
}

# A request with the region's key; headers: more of them.
sub ask {
    my ($of, $method, $path, $body, $headers) = @_;
    return $of->{client}->request($method, $path, $body, { 'x-api-key' => $of->{key}, %{ $headers // {} } });
}

sub made {
    my ($of, @request) = @_;
    my $answer = ask($of, @request);
    $answer->{status} =~ /\A2/ or die "$request[0] $request[1] was answered $answer->{status}: $answer->{body}\n";
    return $answer->{json};
}

# ---- a day of a customer, with a text for each field ----
sub live {
    my ($of, $text) = @_;
    my %headers = ('x-anything' => $text->('header'), 'User-Agent' => $text->('user-agent'), 'Idempotency-Key' => $text->('idempotency-key'),
        Cookie => $text->('cookie'), Referer => 'https://x/' . $text->('referer'));
    my $assistant = made($of, 'POST', '/assistants', { graph_id => 'agent', name => $text->('assistant-name'), description => $text->('assistant-description'),
        metadata => { a => $text->('assistant-metadata') }, config => { tags => [ $text->('assistant-tag') ], configurable => { c => $text->('assistant-config') } } })->{assistant_id};
    made($of, 'PATCH', "/assistants/$assistant", { context => { c => $text->('assistant-context') } });
    my $thread = made($of, 'POST', '/threads', { metadata => { m => $text->('thread-metadata') } })->{thread_id};
    my $run = made($of, 'POST', "/threads/$thread/runs", run_body($text->('run-input'), assistant_id => $assistant, metadata => { r => $text->('run-metadata') },
        config => { tags => [ $text->('run-tag') ], configurable => { c => $text->('run-configurable') } }, webhook => $receiver->url('/' . $text->('webhook'))), \%headers);
    made($of, 'GET', "/threads/$thread/runs/$run->{run_id}/join");
    made($of, 'POST', "/threads/$thread/state", { values => { messages => [ { role => 'user', content => $text->('state') } ] }, as_node => 'agent' });
    made($of, 'POST', '/threads/search', { metadata => { m => $text->('search') } });
    made($of, 'POST', '/threads/' . $thread . '/copy', {});
    made($of, 'PUT', '/store/items', { namespace => [ $text->('namespace') ], key => $text->('item-key'), value => { v => $text->('item-value') } });
    ask($of, 'POST', '/runs/wait', { assistant_id => 'loud', input => { text => $text->('failing-graph') } });
    ask($of, 'POST', "/threads/$thread/runs/wait", { assistant_id => 'agent', input => { messages => [ { role => 'user', content => 'use ' . $text->('unknown-tool') . ' {}' } ] } });
    my $later = made($of, 'POST', "/threads/$thread/runs", run_body('sleep 600000', assistant_id => 'agent'));
    ask($of, 'POST', "/threads/$thread/runs/$later->{run_id}/cancel?wait=true&reason=" . $text->('cancel-reason'));
    my $fresh = made($of, 'POST', '/threads', {})->{thread_id};
    my $resumed = made($of, 'POST', "/threads/$fresh/runs", { assistant_id => 'agent', command => { resume => $text->('resume') },
        interrupt_before => [ $text->('interrupt-before') ], interrupt_after => [ $text->('interrupt-after') ], feedback_keys => [ $text->('feedback-key') ] });
    ask($of, 'GET', "/threads/$fresh/runs/$resumed->{run_id}/join");
    # Requests that fail.
    ask($of, 'GET', '/threads/' . $text->('path'));
    ask($of, 'GET', "/threads/$thread/runs?limit=" . $text->('query'));
    ask($of, 'POST', '/threads', '{"metadata": "' . $text->('not-json'));
    ask($of, 'POST', '/threads', { metadata => $text->('wrong-type') });
    ask($of, 'POST', '/runs', { assistant_id => $text->('unknown-assistant') });
    ask($of, 'GET', '/threads', undef, { 'x-api-key' => $text->('wrong-key') });
    # The platform, whose changes need a key of the whole account.
    my $all = { %{$of}, key => do { local $ENV{PGHOST} = $of->{postgres}->host; create_key($of->{account}) } };
    made($all, 'PATCH', '/platform/v1/account', { name => $text->('account-name') });
    made($all, 'POST', '/platform/v1/account/keys', { name => $text->('key-name'), kind => 'personal', user_id => $text->('key-user') });
    ask($all, 'DELETE', '/platform/v1/account/keys/' . $text->('key-id'));
    made($all, 'GET', '/platform/v1/account/export');
    made($all, 'POST', '/platform/v1/accounts', { name => $text->('sign-up') });
    return;
}

# The members of all bodies, read from the tables that check them.
sub members {
    my %keys = map { ($_ => 1) } map { slurp($_) =~ /\.key = "(\w+)"/g } glob root() . '/mod_agent/model/schema*.c';
    keys %keys > 60 or die "the tables of members were not found\n";
    return sort keys %keys;
}

# Each route of both APIs once more, with a text in each parameter of its path, in its query, in each header that is read
# and in each member that any body has.
sub visit_routes {
    my ($of, $text) = @_;
    for my $api (qw(server platform)) {
        for my $route (routes($api)) {
            my $name = lc "any-$route->{name}" =~ s/\W+/-/gr =~ s/-\z//r;
            my $path = $route->{path} =~ s/\{(\w+)\}/$text->("$name-$1")/ger;
            my $body = { map { ($_ => $text->("$name-body")) } members() };
            ask($of, $route->{method}, ($api eq 'platform' ? '/platform' : '') . "$path?q=" . $text->("$name-query"), $route->{method} eq 'GET' ? undef : $body,
                { map { ($_ => $text->("$name-header")) } qw(x-anything x-user-id x-deletion-token Idempotency-Key Last-Event-ID Prefer Origin) });
        }
    }
    return;
}

# The columns of the schema that hold texts or JSON, and those of them that have the pattern: "threads.metadata".
sub text_columns {
    my ($of) = @_;
    local $ENV{PGHOST} = $of->{postgres}->host;
    my @columns = sql(q{select c.relname || '.' || a.attname || '.' || t.typname from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
        where c.relnamespace = 'agent'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and a.attnum > 0 and not a.attisdropped
          and t.typname in ('text', '_text', 'json', 'jsonb', 'bytea', 'varchar', 'name') order by 1});
    my (@with, @without);
    for (@columns) {
        my ($table, $column, $type) = split /\./;
        my $test = $type eq 'bytea' ? qq(position(convert_to('$MARK', 'UTF8') in "$column") > 0) : qq("$column"::text like '%$MARK%');
        push @{ sql("select exists (select from agent.$table where $test)") eq 't' ? \@with : \@without }, "$table.$column";
    }
    return (\@with, \@without);
}

# ---- where a text can be ----

# Files below the folders of a region that have the pattern.
sub files_with {
    my ($of, $pattern) = @_;
    local $ENV{PGHOST} = $of->{postgres}->host;
    sql('checkpoint');
    my @found;
    find({ no_chdir => 1, wanted => sub {
        push @found, $_ if -f $_ && slurp($_) =~ $pattern;
    } }, $of->{postgres}->host, $of->{temporary}, $of->{server}{dir});
    return @found, grep { file_has($_, $pattern) } map { unnamed_files($_) } processes_of($of);
}

# Temporary files without a name, which a process has open.
sub unnamed_files {
    my ($pid) = @_;
    return grep { -f && (readlink // '') =~ / \(deleted\)\z/ } glob "/proc/$pid/fd/*";
}

sub processes_of {
    my ($of) = @_;
    return map { ($_, descendants_of($_)) } $of->{server}->httpd_pid, $of->{postgres}->postmaster_pid;
}

# Parts of memory that are larger than a piece are read in pieces that overlap.
my $PIECE = 16 << 20;

sub memory_has {
    my ($pid, $pattern) = @_;
    open my $memory, '<:raw', "/proc/$pid/mem" or return;
    for my $line (split /\n/, slurp("/proc/$pid/maps")) {
        my ($begin, $end, $rights) = $line =~ /\A([0-9a-f]+)-([0-9a-f]+) (\S+)/;
        next if $rights !~ /\Arw/ || $line =~ /\[v(?:var|dso|syscall)\]/;
        no warnings 'portable';
        for (my $at = hex $begin; $at < hex $end; $at += $PIECE - 200) {
            my $size = hex($end) - $at;
            sysseek $memory, $at, 0 or last;
            sysread $memory, my $bytes, $size < $PIECE ? $size : $PIECE or last;
            return "process $pid (" . (slurp("/proc/$pid/cmdline") =~ tr/\0/ /r) . ')' if $bytes =~ $pattern;
        }
    }
    return;
}

# A core dump, as a crash leaves it, but written by gcore, and the process goes on: a process that really crashes fails
# every test here, and the machine decides where its core dump goes (core_pattern). It has the memory of the process,
# that which it shares included, and its registers.
sub core_has {
    my ($pid, $pattern) = @_;
    my $dir = tempdir('/tmp/agent-test-cores.XXXXXX', CLEANUP => 1);
    my $output = qx(gcore -o $dir/core $pid 2>&1);
    my $file = "$dir/core.$pid";
    die "gcore $pid: $output\n" if !-s $file && -e "/proc/$pid";
    my $is_found = -e $file && file_has($file, $pattern);
    unlink $file;
    return $is_found ? "core of process $pid (" . (slurp("/proc/$pid/cmdline") =~ tr/\0/ /r) . ')' : undef;
}

# In pieces that overlap.
sub file_has {
    my ($path, $pattern) = @_;
    # A process may have ended.
    open my $file, '<:raw', $path or return 0;
    my $rest = '';
    while (sysread $file, my $bytes, $PIECE) {
        return 1 if "$rest$bytes" =~ $pattern;
        $rest = substr $bytes, -200;
    }
    return 0;
}

sub cores_with {
    my ($pattern, @pids) = @_;
    return grep { defined } map { core_has($_, $pattern) } @pids;
}

sub memory_with {
    my ($of, $pattern) = @_;
    return grep { defined } map { memory_has($_, $pattern) } processes_of($of);
}

# ---- the test ----

my $rest = AgentTest::Traffic->new_without($region{eu}{server}{port}, $receiver->port);
my %traffic = map { $_ => AgentTest::Traffic->new($region{$_}{server}{port}) } qw(us eu);
# Both regions do the same work, so that the same code has run in both.
live($region{us}, sub { return 'plain' });
live($region{eu}, \&canary);
my @kept = sort keys %planted;
visit_routes($region{us}, sub { return 'plain' });
visit_routes($region{eu}, \&canary);
$receiver->wait_requests(2);
my @us = processes_of($region{us});
cmp_ok scalar(@us), '>', 10, 'canaries: the processes of us are found';

subtest 'canaries: eu has them where customers\' data belongs' => sub {
    my %is_of = (files => [ files_with($region{eu}, qr/\Q$MARK/) ], memory => [ memory_with($region{eu}, qr/\Q$MARK/) ]);
    cmp_ok scalar(grep { m{/data/(?:base|pg_wal)/} } @{ $is_of{files} }), '>', 1, 'canaries: the search finds them in the files of the database of eu';
    cmp_ok scalar @{ $is_of{memory} }, '>', 2, 'canaries: the search finds them in the memory of processes of eu';
    cmp_ok scalar(grep { m{\A\Q$region{eu}{temporary}/} } @{ $is_of{files} }), '>=', 1, 'canaries: in its temporary files';
    cmp_ok scalar(grep { m{\A/proc/} } @{ $is_of{files} }), '>=', 1, 'canaries: in those that have no name';
    my $rows = join '', map { slurp($_) } grep { m{/data/} } @{ $is_of{files} };
    # These are in no row: of requests that fail, and headers that nothing keeps.
    my @not_stored = grep { $rows !~ /\Q$MARK-$_-end/ } @kept;
    is join(' ', @not_stored), 'cookie key-id not-json path query referer search unknown-assistant user-agent wrong-key wrong-type',
        'canaries: each field was stored, but those of failed requests';
};

# Columns of texts or JSON in which no customer's own text need be: words, ids and digests of servers, names of graphs and what their code
# says, what operators write, and tables whose rows go away. A new column fails the test until a request above writes a text into it, or it is
# one of these.
my %is_excepted = map { $_ => 1 } qw(
    account_counts.name account_deletions.actor account_deletions.deleted_rows account_deletions.digest account_limits.name
    account_measures.last_key accounts.home_region api_keys.digest api_keys.key_id api_keys.kind api_keys.scopes assistant_versions.graph_id
    assistants.graph_id audit_log.action audit_log.actor audit_log.object calls.arguments calls.body calls.checkpoint_ns calls.code
    calls.context calls.description_key calls.graph_id calls.op calls.thread_status checkpoint_blobs.type checkpoint_snapshots.checkpoint
    checkpoint_snapshots.checkpoint_ns checkpoint_tasks.checkpoint_ns checkpoint_tasks.task_id checkpoint_writes.channel
    checkpoint_writes.checkpoint_ns checkpoint_writes.task_id checkpoint_writes.task_path checkpoints.checkpoint_ns checkpoints.format
    checkpoints.next checkpoints.tasks deployments.name graphs.description graphs.drawing graphs.error graphs.graph_id graphs.runtime
    graphs.schemas inherited_items.checkpoint_ns invitations.created_by invitations.digest invitations.revoked_by region.region run_events.event
    run_queue.cancel_reason run_queue.graph_id runs.durability runs.feedback runs.graph_id runs.request_hash runs.start_map runs.stream_mode
    schema_version.name thread_copies.checkpoint_ns thread_copies.config thread_copies.metadata thread_copies.snapshot_ns threads.config
    usage_events.graph_id usage_events.status webhook_outbox.body webhook_outbox.last_error webhook_outbox.url workers.failing_graph_ids
    workers.graph_ids workers.host_boot_id workers.node_name workers.state write_sweeps.checkpoint_ns
);
subtest 'canaries: each column that a customer can write has one' => sub {
    my ($with, $without) = text_columns($region{eu});
    cmp_ok scalar @{$with}, '>', 20, 'canaries: columns with one';
    is join(' ', grep { !$is_excepted{$_} } @{$without}), '', 'canaries: no column is without one, but the exceptions';
    my %is_there = map { $_ => 1 } @{$with}, @{$without};
    is join(' ', grep { !$is_there{$_} } sort keys %is_excepted), '', 'canaries: the exceptions are columns';
};

subtest 'canaries: us has none of them' => sub {
    is join(' ', files_with($region{us}, qr/\Q$MARK/)), '', 'canaries: in the database files, the WAL, the logs and the folders of us';
    is join(' ', memory_with($region{us}, qr/\Q$MARK/)), '', 'canaries: in the memory of the processes of us';
    my %now = map { $_ => 1 } processes_of($region{us});
    is scalar(grep { $now{$_} } @us) > 10, 1, 'canaries: its processes are those that did the work';
};

subtest 'canaries: no core dump of us has them' => sub {
    my ($keeper) = $region{eu}{postgres}->postmaster_pid;
    is scalar(cores_with(qr/\Q$MARK/, $keeper)), 1, 'canaries: that of the postmaster of eu, whose shared memory is in it, has them';
    my @pids = processes_of($region{us});
    is scalar(cores_with(qr/agent-test-|plain/, $pids[0])), 1, 'canaries: that of a process of us has other texts';
    is join(' ', cores_with(qr/\Q$MARK/, @pids)), '', 'canaries: that of no process of us';
};

subtest 'canaries: no socket of us has carried them' => sub {
    plan skip_all => 'this user may not capture packets' if !$traffic{us};
    $_->stop for values %traffic;
    like $traffic{eu}->received, qr/\Q$MARK/, 'canaries: the capture finds them at eu';
    like $traffic{us}->received, qr/plain/, 'canaries: the capture has the requests to us';
    unlike $traffic{us}->sent . $traffic{us}->received, qr/\Q$MARK/, 'canaries: none came to us, or left it';
    SKIP: {
        skip 'this user may make no network namespace', 3 if !$is_isolated;
        my $probe = IO::Socket::INET->new(Proto => 'udp', PeerAddr => '127.0.0.1', PeerPort => 9) or die "socket: $!\n";
        $probe->send('probe of the capture') for 1 .. 3;
        wait_for('the probe', sub { $rest->sent =~ /probe of the capture/ });
        $rest->stop;
        pass 'canaries: the capture has all packets of the network namespace of both regions';
        like $rest->sent, qr/plain/, 'canaries: packets of region us are captured';
        unlike $rest->sent, qr/\Q$MARK/, 'canaries: only packets to eu and its webhooks have one';
    }
};

# ---- sent to the wrong region ----

subtest 'canaries: a request with a key of eu leaves nothing in us but key ID and region' => sub {
    my $us = $region{us}{client};
    my $capture = AgentTest::Traffic->new($region{us}{server}{port});
    my $key = $region{eu}{key};
    my %headers = ('x-api-key' => $key, map { $_ => canary("wrong-$_") } qw(x-anything User-Agent Cookie Referer Idempotency-Key x-user-id));
    my $body = '{"metadata":{"m":"' . canary('wrong-body') . '"}}';
    for my $request ([ 'POST', '/threads' ], [ 'POST', '/runs/wait' ], [ 'GET', '/threads/' . canary('wrong-path') . '?q=' . canary('wrong-query') ],
        [ 'PUT', '/store/items' ], [ 'POST', '/platform/v1/accounts' ], [ 'PATCH', '/platform/v1/account' ], [ 'GET', '/platform/auth' ])
    {
        my ($method, $path) = @{$request};
        my $answer = $us->request($method, $path, $method eq 'GET' ? undef : $body, \%headers);
        is "$answer->{status} $answer->{json}{code} $answer->{json}{home_region}", '403 wrong_region eu', "canaries: $method $path is refused";
    }
    my $bearer = $us->get('/threads/' . canary('wrong-bearer'), undef, { Authorization => "Bearer $key" });
    is $bearer->{json}{code}, 'wrong_region', 'canaries: so is a Bearer token';
    my ($id, $secret) = map { key_id($key, $_) } 3, 4;
    is join(' ', files_with($region{us}, qr/\Q$MARK\E|\Q$secret/)), '', 'canaries: no file of us has a part of the request, or the secret';
    my @lines = grep { /\Q$id/ } split /\n/, $region{us}{server}->error_log;
    is scalar(grep { /\] AGT0105: wrong_region: key \Q$id\E of region eu\z/ } @lines), scalar @lines, 'canaries: the log has key ID and region';
    cmp_ok scalar @lines, '>', 0, 'canaries: the log says that there was a request';
    SKIP: {
        skip 'this user may not capture packets', 1 if !$capture;
        $capture->stop;
        unlike $capture->sent, qr/\Q$MARK/, 'canaries: us sends nothing of it back or on';
    }
};

delete $region{$_}{server} for keys %region;
done_testing;
