# SPDX-License-Identifier: Apache-2.0
# The figures as a Markdown block that can be pasted into README.md of this folder.
package BenchReport;
use strict;
use warnings;
use BenchRuns qw(at);
use Exporter 'import';

our @EXPORT_OK = qw(print_report);

my %AIM = (create => 0.42, state => 0.32, p50 => 5, p99 => 25, runs => 1000);
my %RATE_NAME = (create => '`POST /threads`', state => '`GET /threads/{id}/state`');

sub print_report {
    my ($about, $of) = @_;
    my @rows = (
        (map { rate_row($_, $of->{rates}{$_}) }
            grep { $of->{rates}{$_} } qw(create state)),
        $of->{keys} ? key_rows($of->{keys}) : (),
        $of->{latency} ? latency_rows($of->{latency}) : (),
        $of->{first} ? first_rows($of->{first}) : (),
        $of->{throughput} ? throughput_row($of->{throughput}) : (),
        $of->{waiting} ? waiting_rows($of->{waiting}) : (),
        $of->{memory} ? memory_rows($of->{memory}) : (),
        $of->{restart} ? restart_rows($of->{restart}) : (),
        $of->{hosts} ? host_row($of->{hosts}) : (),
        $of->{streams} ? stream_rows($of->{streams}) : (),
        $of->{pools} ? pool_rows($of->{pools}) : (),
        $of->{shares} ? share_row($of->{shares}) : (),
    );
    print "$about\n\n", table([ qw(figure aim measured ratio) ], @rows), "\n";
    print "A bystander beside one hostile client, to quiet rounds of the same run",
        " (bold: more than the aim):\n\n",
        table([ 'beside', '`GET /ok` p50 (aim 2)', 'p99 (aim 5)',
            'create -> join p50 (aim 2)', 'p99 (aim 5)', 'memory after (aim 1.2)' ],
            hostile_rows($of->{hostile})), "\n"
        if $of->{hostile};
    my @costs = cost_rows($of);
    print "Processor time, microseconds for each request or run:\n\n",
        table([ '', qw(httpd PostgreSQL supervisor runner) ], @costs), "\n"
        if @costs;
    return;
}

my @RESTART = ([ alone => 'its only run' ], [ together => 'its 10 runs' ]);

sub restart_rows {
    my ($of) = @_;
    return map {
        my ($case, $title) = @{$_};
        my @times = @{ $of->{$case} };
        my $p99 = at(0.99, @times);
        [ "kill of a runner of built-in graphs -> next attempt of $title, p50 / p99 of " . @times,
            'p99 <= 1000 ms', both_ms(@times),
            sprintf '**%.2f** of the aim', $p99 / 1000 ]
    } @RESTART;
}

sub host_row {
    my ($times) = @_;
    return [ 'death of a host -> next attempt of its runs, p50 / longest of ' . @{$times},
        '<= 30 s', sprintf('%.1f / %.1f s', at(0.5, @{$times}) / 1000, $times->[-1] / 1000),
        sprintf '**%.2f** of the aim', $times->[-1] / 30_000 ];
}

sub stream_rows {
    my ($of) = @_;
    my $name = thousands($of->{streams}) . ' streams';
    return (
        [ "$name, events delivered", thousands($of->{wanted}) . '/s written',
            thousands($of->{rate}) . "/s; $of->{lost} lost, $of->{cut} streams cut",
            sprintf '**%.2f**', $of->{rate} / $of->{wanted} ],
        [ "$name, from written to read, p50", '', milliseconds($of->{p50}), '' ],
        [ "$name, p99", '<= 150 ms', milliseconds($of->{p99}),
            sprintf '%.2f', $of->{p99} / 150 ],
        [ "$name, transactions of PostgreSQL", '', thousands($of->{commits}) . '/s', '' ],
    );
}

sub key_rows {
    my ($of) = @_;
    my %title = (create => '`POST /threads`', get => '`GET /threads/{id}`');
    my %kind = (warm => 'with an API key', cold => '... each with a key that no child remembers');
    my %aim = (warm => '>= 0.97 of that without one', cold => '');
    my @rows;
    for my $request (qw(create get)) {
        my $rates = $of->{$request}{rates};
        for my $name (qw(warm cold)) {
            my $compared = $of->{$request}{$name};
            push @rows, [ ($name eq 'warm' ? "$title{$request} " : '') . "$kind{$name}, 32 connections", $aim{$name},
                thousands($rates->{$name}) . '/s; without ' . thousands($rates->{none}) . sprintf('/s; of all rounds %.3f; httpd takes %+.0f us, PostgreSQL %+.0f us',
                    @{$compared}{qw(total httpd postgres)}),
                sprintf '**%.3f** (quartiles %.3f to %.3f)', $compared->{ratio}, @{ $compared->{quartiles} } ];
        }
    }
    return @rows;
}

# Each with the aim of its ratio.
my @POOLS = (
    [ cpu => 'processor time of the supervisor, one run after the other', ' us', '<= 1.5' ],
    [ load_cpu => '... with 16 connections', ' us', '<= 1.5' ],
    [ database => 'processor time of PostgreSQL, one run after the other', ' us', '<= 1.5' ],
    [ rate => 'runs finished, created over 16 connections', '/s', '>= 0.9' ],
);

sub pool_rows {
    my ($of) = @_;
    my ($alone, $beside) = @{ $of->{of} }{ 1, $of->{pools} };
    return (
        (map {
            my ($name, $title, $unit, $aim) = @{$_};
            [ "$of->{pools} pools, one with runs: $title", "$aim of one pool",
                join('; one pool ', map { thousands($_->{$name}) . $unit } $beside, $alone),
                sprintf '**%.2f**', $beside->{$name} / ($alone->{$name} || 1) ]
        } @POOLS),
        [ 'create -> join, the pool has no runner, p50 / p99 of ' . @{ $of->{cold} }, '',
            both_ms(@{ $of->{cold} }) . '; then the next run ' . both_ms(@{ $of->{warm} }), '' ],
    );
}

sub share_row {
    my ($of) = @_;
    my ($empty, $beside) = @{$of}{qw(empty beside)};
    return [ "creation -> start of a run of one of $of->{accounts} accounts, beside one with " . thousands($of->{queued})
            . ' queued runs of ' . thousands($of->{deployments}) . " deployments, p99 of $beside->{count}", '<= 5 of an empty server',
        milliseconds($beside->{p99}) . ', p50 ' . milliseconds($beside->{p50}) . '; empty ' . milliseconds($empty->{p99}) . ', p50 '
            . milliseconds($empty->{p50}), sprintf '**%.2f**', $beside->{p99} / $empty->{p99} ];
}

my @HOSTILE = ([ ok_p50 => 2 ], [ ok_p99 => 5 ], [ run_p50 => 2 ],
    [ run_p99 => 5 ], [ memory => 1.2 ]);

sub hostile_rows {
    my ($attacks) = @_;
    return map {
        my $of = $_;
        [ $of->{title}, $of->{failed}
            ? ("failed", ('') x (@HOSTILE - 1))
            : map { mark_over($of->{ $_->[0] }, $_->[1]) } @HOSTILE ]
    } @{$attacks};
}

sub mark_over {
    my ($ratio, $aim) = @_;
    return sprintf $ratio > $aim ? '**%.2f**' : '%.2f', $ratio;
}

sub table {
    my ($head, @rows) = @_;
    return join '', map { '| ' . join(' | ', @{$_}) . " |\n" }
        $head, [ map { '---' } @{$head} ], @rows;
}

sub rate_row {
    my ($name, $result) = @_;
    my $each = join ', ', map { sprintf '%.2f', $_->{ratio} }
        @{ $result->{rounds} };
    return [ "$RATE_NAME{$name}, 32 connections",
        sprintf('>= %.2f of pgbench', $AIM{$name}),
        sprintf('%s/s; pgbench %s/s', thousands($result->{http}{rate}),
            thousands($result->{base}{rate})),
        sprintf('**%.2f** (%s)', $result->{ratio}, $each) ];
}

sub latency_rows {
    my ($latency) = @_;
    my $name = 'create -> join of a one-step run';
    return (
        [ "$name, p50 of $latency->{count}", aim_ms('p50'), aimed($latency, 'p50') ],
        [ "$name, p99", aim_ms('p99'), aimed($latency, 'p99') ],
        [ "$name, longest", '', milliseconds($latency->{max}), '' ],
        [ '`GET /ok` by the same client, p50', '',
            milliseconds($latency->{floor}), '' ],
    );
}

sub aim_ms { return "<= $AIM{$_[0]} ms" }

sub aimed {
    my ($latency, $part) = @_;
    return (milliseconds($latency->{$part}),
        sprintf '**%.2f** of the aim', $latency->{$part} / $AIM{$part});
}

sub milliseconds { return sprintf '%.2f ms', $_[0] }

my @FIRST = ([ first => 'first event of `POST .../runs/stream`', 5 ],
    [ stream => 'the whole stream' ], [ join => 'create -> join' ]);

sub first_rows {
    my ($first) = @_;
    my $peer = $first->{skipped} ? 'no JavaScript server to compare with'
        : "JavaScript server ($first->{version})";
    return (
        (map { first_row($first, $peer, @{$_}) } @FIRST),
        $first->{skipped} ? skipped_row($peer, $first) : (),
    );
}

sub first_row {
    my ($first, $peer, $name, $title, $aim) = @_;
    my @ours = @{ $first->{ours}{$name} };
    my @head = ("$title, p50 / p99 of " . @ours, $aim ? "<= $aim ms" : '');
    my $p50 = at(0.50, @ours);
    return [ @head, both_ms(@ours),
        $aim ? sprintf('**%.2f** of the aim', $p50 / $aim) : '' ]
        if $first->{skipped};
    my @theirs = @{ $first->{peer}{$name} };
    return [ @head,
        both_ms(@ours) . "; $peer " . both_ms(@theirs) . ' of ' . @theirs,
        sprintf('**%.3f** of theirs', $p50 / at(0.50, @theirs)) ];
}

sub both_ms {
    my (@sorted) = @_;
    return sprintf '%.2f / %.2f ms', at(0.50, @sorted), at(0.99, @sorted);
}

sub throughput_row {
    my ($result) = @_;
    return [ 'runs finished, created over 16 connections',
        '>= ' . thousands($AIM{runs}) . '/s',
        thousands($result->{rate}) . '/s',
        sprintf '**%.2f** of the aim', $result->{rate} / $AIM{runs} ];
}

sub waiting_rows {
    my ($waiting) = @_;
    return skipped_row('joins that wait', $waiting) if $waiting->{skipped};
    my $count = thousands($waiting->{waiters});
    my $kb = $waiting->{kb_each};
    return (
        [ "memory of each of $count joins parked in one child of 64 threads",
            '<= 30 KB', sprintf('%.1f KB', $kb),
            sprintf '**%.2f** of the aim', $kb / 30 ],
        (map { waiting_rate_rows($_, $count, $waiting->{rates}{$_}) }
            qw(ok state)),
        wake_one_rows($waiting->{one}, $count),
        wake_all_row($waiting->{all}),
    );
}

sub waiting_rate_rows {
    my ($case, $count, $rate) = @_;
    my $each = join ', ', map { sprintf '%.2f', $_ } @{ $rate->{each} };
    my $name = $case eq 'ok' ? '`GET /ok`' : $RATE_NAME{$case};
    return (
        [ "$name, 32 connections, beside $count parked joins",
            '>= 0.97 of without',
            sprintf('%s/s; without %s/s', thousands($rate->{with}),
                thousands($rate->{without})),
            sprintf('**%.2f** (%s)', $rate->{ratio}, $each) ],
        [ '... connections that the server closed on a request', '0',
            "$rate->{cut_with}; without $rate->{cut_without}", '' ],
    );
}

# Of NOTIFY sent -> response read, in microseconds.
sub wake_one_rows {
    my ($times, $count) = @_;
    my $p50 = at(0.50, @{$times}) / 1000;
    return (
        [ "waking one of $count, p50 of " . @{$times}, '<= 0.5 ms',
            milliseconds($p50), sprintf '**%.2f** of the aim', $p50 / 0.5 ],
        [ 'waking one, p99', '', milliseconds(at(0.99, @{$times}) / 1000), '' ],
    );
}

sub wake_all_row {
    my ($times) = @_;
    return [ 'waking ' . thousands(scalar @{$times}) . ' together, p50 / p99 / last',
        '', join(' / ', map { sprintf '%.0f', $_ / 1000 } at(0.50, @{$times}),
            at(0.99, @{$times}), $times->[-1]) . ' ms', '' ];
}

sub skipped_row {
    my ($name, $result) = @_;
    return [ $name, '', "left out: $result->{skipped}", '' ];
}

sub memory_rows {
    my ($samples) = @_;
    my ($before, $last) = @{$samples}[ -2, -1 ];
    my $at = join ' / ', map { thousands($_->{requests}) } @{$samples};
    return map {
        my $kind = $_;
        my @pss = map { $_->{of}{$kind}{pss} } @{$samples};
        my @private = map { $_->{of}{$kind}{private} } @{$samples};
        my $slope = 1024 * ($private[-1] - $private[-2])
            / ($last->{requests} - $before->{requests});
        [ memory_name($kind) . " after $at requests", 'no growth',
            'Pss ' . megabytes(@pss) . ', private ' . megabytes(@private),
            sprintf '**%+.1f** bytes a request', $slope ]
    } qw(httpd supervisor runner);
}

sub memory_name {
    my ($kind) = @_;
    return $kind eq 'httpd' ? 'two httpd children' : "the $kind";
}

sub megabytes { return join(' / ', map { sprintf '%.1f', $_ / 1024 } @_) . ' MB' }

sub cost_rows {
    my ($of) = @_;
    my @rows;
    for my $name (grep { $of->{rates}{$_} } qw(create state)) {
        push @rows, cost_row($RATE_NAME{$name}, $of->{rates}{$name}{http}{cpu}),
            cost_row('the same SQL by pgbench', $of->{rates}{$name}{base}{cpu});
    }
    push @rows, cost_row('a finished run', $of->{throughput}{cpu})
        if $of->{throughput};
    return @rows;
}

sub cost_row {
    my ($name, $cpu) = @_;
    return [ $name, map { sprintf '%.0f', $cpu->{$_} }
        qw(httpd postgres supervisor runner) ];
}

sub thousands {
    my ($number) = @_;
    my $text = sprintf '%.0f', $number;
    1 while $text =~ s/\A(\d+)(\d{3})/$1,$2/;
    return $text;
}

1;
