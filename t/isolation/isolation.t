# SPDX-License-Identifier: Apache-2.0
# Runs each spec with PostgreSQL's isolationtester and compares the interleavings with the expected ones.
# With AGENT_ISOLATION_ACCEPT set the expected files are written instead: read the difference before you commit it.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../sql/lib";
use File::Basename qw(dirname);
use Test::More;
use AgentSQL;

chomp(my $pgxs = `pg_config --pgxs`);
my $tester = dirname($pgxs) . '/../test/isolation/isolationtester';
plan skip_all => "isolationtester is not installed: $tester" if !-x $tester;

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or return '';
    local $/;
    return scalar <$in>;
}

# The tester's exit status and output for a spec, in a new database.
sub run_spec {
    my ($spec) = @_;
    my $db = AgentSQL->new;
    my ($status, $output) = $db->file('t/isolation/prelude.sql', '-q');
    die $output if $status != 0;
    # A permutation that cannot go on is a mistake in the spec; do not wait long for it.
    my $env = { %{ $db->env }, PGISOLATIONTIMEOUT => 60 };
    return AgentSQL::run(
        $env, 'sh', '-c', 'exec "$0" "dbname=$PGDATABASE" < "$1"', $tester, $spec);
}

for my $spec (sort glob "$FindBin::Bin/specs/*.spec") {
    my $name = $spec =~ s{.*/|\.spec$}{}gr;
    my ($title) = slurp($spec) =~ /\A# SPDX.*\n# (.*(?:\n# .*)*)/;
    my ($status, $output) = run_spec($spec);
    # The tester finds out by polling which step waits: on a machine that is
    # busy with something else it takes a slow step for one that waits.
    for (1 .. 3) {
        last if $output eq slurp("$FindBin::Bin/expected/$name.out");
        ($status, $output) = run_spec($spec);
    }
    my $file = "$FindBin::Bin/expected/$name.out";
    if ($ENV{AGENT_ISOLATION_ACCEPT}) {
        open my $out, '>', $file or die "$file: $!";
        print {$out} $output;
        close $out or die "$file: $!";
    }
    is $status, 0, "$name runs";
    is $output, slurp($file), "$name: " . $title =~ s/\n# / /gr;
    unlike $output, qr/deadlock|ERROR/, "$name: no deadlock and no error in any order";
}

done_testing;
