#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Measures chats of 200, 2,000 and 10,000 turns in the database alone, through
# the functions that server and supervisor call, and prints one block of
# Markdown. Each figure is a ratio to the same chat, or to the aim.
# With --records it measures those of a graph's library instead of states.
#   t/bench/chats.pl [--records] [TURNS...]
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;
use AgentTest::Env qw(root);
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

# A figure of a chat: the median of its rows, or another aggregate.
sub figure {
    my ($turns, $name, $column, $aggregate) = @_;
    my $expression = $aggregate ? "$aggregate($column)" : "percentile_cont(0.5) within group (order by $column)";
    return psql('-c', "select $expression from bench.figures where chat = $turns and name = '$name'");
}

psql('-f', root() . '/sql/install.sql');
psql('-f', "$FindBin::Bin/chats.sql");
psql('-f', "$FindBin::Bin/records.sql") if $RECORDS;
psql('-c', "select agent.save_graphs(bench.deployment(), '[{\"graph_id\":\"agent\",\"assistant_id\":\"fe096781-5601-53d2-b2f6-0d3403f7e9ca\"}]')");
my $worker = psql('-c', q(select worker_id from agent.register_worker('node', 'boot', 1, 1, 1, 86400, '{default}', '{agent}')));

print '| turns | last turn to the tenth: bytes stored (aim 1.2) | time of saving (aim 1.5) | a state read in parts, best of ten (aim: 5 ms for 1,000 messages)',
    " | rollback, deletion of a run: longest | deletion of the chat: transactions, the longest (aim 100 ms) |\n|---|---|---|---|---|---|\n";
for my $n (0 .. $#CHATS) {
    my $turns = $CHATS[$n];
    my $thread = sprintf "'00000000-0000-7000-8000-%012d'", $n;
    print {*STDERR} "$turns turns ...\n";
    psql('-c', "call bench.chat($worker, $thread, $turns)");
    psql('-c', 'vacuum analyze');
    psql('-c', "call bench.read($thread, $turns)");
    psql('-c', "call bench.undo($worker, $thread, $turns)");
    psql('-c', "call bench.delete($thread, $turns)");
    my ($read, $piece) = (figure($turns, 'read', 'ms', 'min'), figure($turns, 'delete piece', 'ms', 'max'));
    printf "| %d | %.2f (%.1f KB) | %.2f (%.2f ms) | %.2f ms; %.2f for 1,000 messages | %.1f ms, %.1f ms | %d, %.0f ms; %.1f s together |\n",
        $turns,
        figure($turns, 'last', 'bytes') / figure($turns, 'tenth', 'bytes'), figure($turns, 'last', 'bytes') / 1024,
        figure($turns, 'last', 'ms') / figure($turns, 'tenth', 'ms'), figure($turns, 'last', 'ms'),
        $read, $read * 1000 / (2 * $turns),
        figure($turns, 'rollback', 'ms', 'max'), figure($turns, 'delete run', 'ms', 'max'),
        figure($turns, 'delete piece', 'ms', 'count'), $piece, figure($turns, 'delete chat', 'ms') / 1000;
}
