#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures chats of 200, 2,000 and 10,000 turns: in the database alone, through
# the functions that server and supervisor call, in the runner alone, over its
# pipes, and a turn of a new runner in a server. Prints one block of Markdown.
# Each figure is a ratio to the tenth turn of the same chat, or to the aim.
# With --records it measures those of a graph's library in the database instead.
#   t/bench/chats.pl [--records] [TURNS...]
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use AgentTest::Env qw(root);
use BenchChatRunner;
use BenchChatServer;
use BenchPostgres;

my $RECORDS = @ARGV && $ARGV[0] eq '--records' && shift @ARGV;
my @CHATS = @ARGV ? @ARGV : (200, 2_000, 10_000);

delete @ENV{ grep { /\APG/ } keys %ENV };
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
my $cluster = BenchPostgres->new(schema => 0);
@ENV{qw(PGHOST PGUSER PGDATABASE)} = ($cluster->host, 'postgres', 'postgres');

# Runs psql; returns its output.
sub psql {
    my (@arguments) = @_;
    open my $out, '-|', qw(psql -X -q -t -A -v ON_ERROR_STOP=1), @arguments or die "psql: $!\n";
    my $text = do { local $/ = undef; readline $out };
    close $out or die "psql failed: @arguments\n";
    chomp $text;
    return $text;
}

# Notes the processor time of a server process that executes statements and
# sends their rows.
sub measure_statements {
    my ($turns, $name, @statements) = @_;
    my $rounds = 10 + int(20_000 / $turns);
    my $round = join '', map { "$_;\n" } @statements;
    open my $in, '|-', qw(psql -X -q -v ON_ERROR_STOP=1) or die "psql: $!\n";
    print {$in} "set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off;\n\\o /dev/null\n$round",
        "select bench.cpu_ms() as since \\gset\n", $round x $rounds,
        "insert into bench.figures (name, chat, cpu_ms) values ('$name', $turns, (bench.cpu_ms() - :since) / $rounds);\n";
    close $in or die "psql failed: @statements\n";
    return;
}

# A figure of a chat: the median of its rows, or another aggregate.
sub figure {
    my ($turns, $name, $column, $aggregate) = @_;
    my $expression = $aggregate ? "$aggregate($column)" : "percentile_cont(0.5) within group (order by $column)";
    return psql('-c', "select $expression from bench.figures where chat = $turns and name = '$name'");
}

# The transactions of a copy or a deletion.
sub pieces {
    my ($turns, $name) = @_;
    return sprintf '%d, %.0f ms (%.0f ms of processor time); %.1f s together', figure($turns, "$name piece", 'ms', 'count'),
        (map { figure($turns, "$name piece", $_, 'max') } qw(ms cpu_ms)), figure($turns, "$name chat", 'ms') / 1000;
}

psql('-f', root() . '/sql/install.sql');
psql('-f', root() . '/t/sql/lib/save_items.sql');
psql('-f', "$FindBin::Bin/chats.sql");
psql('-f', "$FindBin::Bin/records.sql") if $RECORDS;
psql('-c', "select agent.save_graphs(bench.deployment(), '[{\"graph_id\":\"agent\",\"assistant_id\":\"fe096781-5601-53d2-b2f6-0d3403f7e9ca\"}]')");
my $worker = psql('-c', q(select worker_id from agent.register_worker('node', 'boot', 1, 1, 1, 86400, '{default}', '{agent}')));

my @rows = (
    [ 'database: bytes stored, last turn to the tenth (aim 1.2)', sub {
        my ($n) = @_;
        return sprintf '%.2f (%.1f KB)', figure($n, 'last', 'bytes') / figure($n, 'tenth', 'bytes'), figure($n, 'last', 'bytes') / 1024;
    } ],
    [ 'database: time of saving, last turn to the tenth (aim 1.5)', sub {
        my ($n) = @_;
        return sprintf '%.2f (%.2f ms)', figure($n, 'last', 'ms') / figure($n, 'tenth', 'ms'), figure($n, 'last', 'ms');
    } ],
    $RECORDS ? [ 'database: a snapshot read in parts, for 1,000 messages, best of ten', sub {
        my ($n) = @_;
        return sprintf '%.2f ms', figure($n, 'read', 'ms', 'min') * 1000 / (2 * $n);
    } ] : (
    [ 'pipes of the runner: bytes, last turn to the tenth (aim 1.2)', sub {
        my (undef, $runner) = @_;
        return sprintf '%.2f (%.1f KB)', $runner->{last}{bytes} / $runner->{tenth}{bytes}, $runner->{last}{bytes} / 1024;
    } ],
    [ 'runner, warm: processor time, last turn to the tenth (aim 1.5)', sub {
        my (undef, $runner) = @_;
        return sprintf '%.2f (%.2f ms)', $runner->{last}{ms} / $runner->{tenth}{ms}, $runner->{last}{ms};
    } ],
    [ 'cold, for 1,000 messages: database + runner, processor time (aim 5 ms together)', sub {
        my ($n, $runner) = @_;
        return sprintf '%.2f + %.2f ms', map { $_ * 1000 / (2 * $n) } figure($n, 'read', 'cpu_ms'), $runner->{cold};
    } ],
    [ 'cold, in a server, for 1,000 messages: database + supervisor + runner, processor time; time that passes', sub {
        my ($n, undef, $server) = @_;
        return sprintf '%.2f + %.2f + %.2f ms; %.1f ms', map { $server->{$_} * 1000 / (2 * $n) } qw(postgres supervisor runner ms);
    } ],
    [ 'the database\'s part to a bare `select` of the rows', sub {
        my ($n) = @_;
        return sprintf '%.1f', figure($n, 'read', 'cpu_ms') / (figure($n, 'select', 'cpu_ms') || 1);
    } ]),
    [ 'rollback, deletion of a run: longest', sub {
        my ($n) = @_;
        return sprintf '%.1f ms, %.1f ms', figure($n, 'rollback', 'ms', 'max'), figure($n, 'delete run', 'ms', 'max');
    } ],
    [ 'copy of the chat: transactions, the longest (aim 100 ms)', sub { pieces($_[0], 'copy') } ],
    [ 'deletion of the chat: transactions, the longest (aim 100 ms)', sub { pieces($_[0], 'delete') } ]);

my @columns;
for my $number (0 .. $#CHATS) {
    my $turns = $CHATS[$number];
    my $thread = sprintf "'00000000-0000-7000-8000-%012d'", $number;
    print {*STDERR} "$turns turns ...\n";
    psql('-c', "call bench.chat($worker, $thread, $turns)");
    psql('-c', 'vacuum analyze');
    if ($RECORDS) {
        psql('-c', "call bench.read($thread, $turns)");
    }
    else {
        measure_statements($turns, 'read', split /\n/, psql('-c', "select bench.make_reads($thread)"));
        measure_statements($turns, 'select', psql('-c', "select bench.make_select($thread)"));
    }
    psql('-c', "call bench.undo($worker, $thread, $turns)");
    psql('-c', "call bench.repeat('$_', $thread, $turns)") for qw(copy delete);
    my $runner = $RECORDS ? undef : BenchChatRunner::measure($turns);
    my $server = $RECORDS ? undef : BenchChatServer::measure($turns);
    push @columns, [ map { $_->[1]->($turns, $runner, $server) } @rows ];
}
print '| turns | ', join(' | ', @CHATS), " |\n|---|", '---|' x @CHATS, "\n";
for my $row (0 .. $#rows) {
    print "| $rows[$row][0] | ", join(' | ', map { $_->[$row] } @columns), " |\n";
}
