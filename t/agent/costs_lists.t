# SPDX-License-Identifier: Apache-2.0
# The memory and time of a list whose records have the largest size.
use strict;
use warnings;
use AgentTest::Client;
use AgentTest::Cost;
use AgentTest::Database;
use AgentTest::Postgres;
use AgentTest::Process;
use AgentTest::Server;
use HTTP::Tiny;
use List::Util qw(max);
use Test::More;

my $RUNS = 60;
# Compressible, so that 240 MB of answers take little to store.
my $INPUT_BYTES = 4_000_000;
my $MB = 1_000_000;
# Some six times what it takes; all 240 MB would take more than twice as much.
my $CPU_SEC = 1.5 * memory_scale();

# One child and one connection, so that one httpd and one backend do all the
# work. With DBDInitSQL the connection is kept; otherwise each of these answers
# is followed by a new connection, and the backend that was measured ends. The
# other requests wait for the connection, longer beside a sanitizer.
my ($server, $client) = AgentTest::Server->start_with_client('DBDMax 1', 'DBDKeep 1', 'DBDInitSQL "select 1"',
    'AgentDBPoolWait 60s', 'AgentDBQueryTimeout 60s');
my $thread = $client->new_thread;

sub backend_pids {
    return sql("select pid from pg_stat_activity where datname = current_database() and usename = 'agent'
        and query like '%agent.read_page%'");
}

# Not AgentTest::Client, which would take minutes to decode these answers.
my $http = HTTP::Tiny->new(timeout => 120);
my $runs_url = $server->url . "/threads/$thread/runs";

# The answer; {next}: its X-Pagination-Next; {runs}: the ids in it.
sub list {
    my ($query) = @_;
    my $answer = $http->get("$runs_url?$query");
    $answer->{next} = $answer->{headers}{'x-pagination-next'};
    $answer->{runs} = [ $answer->{content} =~ /\{ ?"run_id" : "([^"]+)"/g ];
    return $answer;
}

my $body = '{"assistant_id": "agent", "multitask_strategy": "enqueue", "after_seconds": 86400, "input": {"text": "'
    . 'a' x $INPUT_BYTES . '"}}';
for (1 .. $RUNS) {
    my $made = $http->post($runs_url,
        { headers => { 'Content-Type' => 'application/json' }, content => $body });
    die "a run was answered $made->{status}\n" if $made->{status} != 200;
}

list('limit=1');
my @pids = (httpd_children($server->httpd_pid), backend_pids());
cmp_ok scalar @pids, '>=', 2, 'lists: a child and its backend are found';
my @costs;
served_beside($client, 5, 'lists: other requests and runs are served beside lists of large runs',
    sub { push @costs, cost_of(\@pids, sub { list('limit=1000') }) });
my $answer = $costs[0]{result};
is $answer->{status}, 200, 'lists: a list of large runs is answered';
cmp_ok length $answer->{content}, '<', 20 * $MB, 'lists: a list of runs is limited to about 16 MB';
cmp_ok length $answer->{content}, '>', 10 * $MB, 'lists: a list of runs may have more than 10 MB';
my $peak_bytes = max(map { $_->{peak_bytes} } @costs);
my $cpu_sec = max(map { $_->{cpu_sec} } @costs);
note sprintf 'peak of child and backend: %.0f MB, %.2f s', $peak_bytes / $MB, $cpu_sec;
cmp_ok $peak_bytes, '<', 60 * $MB * memory_scale(), 'lists: the memory of a list of large runs is limited';
cmp_ok $cpu_sec, '<', $CPU_SEC, 'lists: the processor time of a list of large runs is limited';

subtest 'lists: X-Pagination-Next leads through all runs' => sub {
    my %seen;
    my $pages = 0;
    for (my $next = 0; defined $next && $pages < $RUNS; $pages++) {
        my $page = list("limit=1000&offset=$next");
        my @runs = @{ $page->{runs} };
        $seen{$_}++ for @runs;
        is $page->{next}, $next + @runs, "lists: X-Pagination-Next is the offset of the next run, after $next" if defined $page->{next};
        $next = $page->{next};
    }
    is scalar keys %seen, $RUNS, 'lists: all pages together list each run';
    is_deeply [ grep { $_ != 1 } values %seen ], [], 'lists: all pages together list each run once';
    cmp_ok $pages, '<', $RUNS, 'lists: a page has several large runs';
};

subtest 'lists: X-Pagination-Next is the sum of offset and limit' => sub {
    is list('limit=2')->{next}, 2, 'lists: the page of the first two runs leads to the third';
    is list('limit=2&offset=1')->{next}, 3, 'lists: the page of the second and third run leads to the fourth';
    my $last = $RUNS - 1;
    is list("limit=2&offset=$last")->{next}, undef, 'lists: the last page has no X-Pagination-Next';
};

subtest 'lists: selected fields do not change the size of a page' => sub {
    my $page = list('limit=1000&select=run_id');
    cmp_ok scalar @{ $page->{runs} }, '<', $RUNS, 'lists: a list of ids of large runs has the same limit';
    is $page->{next}, scalar @{ $page->{runs} }, 'lists: a list of ids leads to the next run';
};

undef $server;
done_testing;
