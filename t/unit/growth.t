# SPDX-License-Identifier: Apache-2.0
# Time and memory to read input of clients are proportional to its length: random
# bodies and query strings, of each of which one dimension is multiplied by four.
# growth.c makes and reads them; callgrind counts instructions, so that other load
# makes no difference.
#   AGENT_GROWTH_SEED=N AGENT_GROWTH_CASES=N perl -It/lib t/unit/growth.t
use strict;
use warnings;
use AgentTest::Env qw(build_dir is_counted is_sanitized slurp);
use File::Temp qw(tempdir);
use Test::More;

my $seed = $ENV{AGENT_GROWTH_SEED} // 1;
my $cases = $ENV{AGENT_GROWTH_CASES} // 60;
# Other builds only read the texts: sanitizers and counts have costs too.
my $IS_MEASURED = !is_sanitized() && !is_counted();

# The largest growth, 2.5 for each doubling, plus a constant for a block of a pool or
# a table. Two doublings, since tables grow in steps: a full one doubles at the next
# member.
my $TIMES = 2.5**2;
my %SLACK = (bytes => 40_000, instructions => 60_000);
# The most for each byte of text; core/scan.h has the size of json-c's tree.
my %MOST = (
    request  => { bytes => 4, instructions => 200 },
    line     => { bytes => 300, instructions => 1200 },
    messages => { bytes => 300, instructions => 1500 },
    query    => { bytes => 4, instructions => 200 },
);

# The lines of the program as hashes, in order; their callgrind files end in
# .1, .2 and so on.
sub measure {
    my $dir = tempdir(CLEANUP => 1);
    my @tool = !$IS_MEASURED ? () : ('valgrind', '--tool=callgrind', '-q',
        '--collect-atstart=no', "--callgrind-out-file=$dir/out");
    open my $reader, '-|', @tool, build_dir() . '/unit/growth', $seed, $cases
        or die "valgrind: $!\n";
    my @lines = <$reader>;
    close $reader;
    is $?, 0, 'growth: every text is read' or diag @lines[ -1 .. -1 ];
    my $number = 0;
    return map { read_line($_, $dir, ++$number) } @lines;
}

sub read_line {
    my ($line, $dir, $number) = @_;
    my %cost;
    @cost{qw(case function dimension grown text bytes)} = split ' ', $line;
    return \%cost if !$IS_MEASURED;
    ($cost{instructions}) = slurp("$dir/out.$number") =~ /^(?:summary|totals): (\d+)/m;
    return \%cost;
}

# The errors in a pair of readings.
sub errors_of {
    my ($plain, $grown) = @_;
    my @wrong;
    for my $what (qw(bytes instructions)) {
        my $most = $MOST{ $plain->{function} }{$what};
        push @wrong, sprintf '%s: %d for %d bytes, more %s: %d for %d',
            $what, $plain->{$what}, $plain->{text}, $plain->{dimension},
            $grown->{$what}, $grown->{text}
            if $grown->{$what} > $TIMES * $plain->{$what} + $SLACK{$what}
            || $grown->{$what} > $most * $grown->{text} + $SLACK{$what};
    }
    return @wrong;
}

diag "seed $seed";
my @costs = measure();
my %pairs;
push @{ $pairs{ $_->{function} }{ $_->{case} } }, $_ for @costs;
my %titles = (
    request  => 'a request body',
    line     => 'a line of JSON',
    messages => 'a list of messages',
    query    => 'a query string',
);
for my $function ($IS_MEASURED ? sort keys %titles : ()) {
    my @all = values %{ $pairs{$function} };
    my @wrong = map { "case $_->[0]{case}: " . join '; ', errors_of(@{$_}) }
        grep { errors_of(@{$_}) } @all;
    ok @all && !@wrong,
        "growth: reading $titles{$function} takes time and memory linear in its length"
        or diag join "\n", "seed $seed", @wrong;
}
done_testing;
