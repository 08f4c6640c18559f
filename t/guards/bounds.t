# SPDX-License-Identifier: Apache-2.0
# The header of a function of the API that collects several rows states the most
# that it returns, and names the code that enforces that: what a client asks for has
# a bound in bytes, not in records alone. The code is in the function itself, or in
# the file that is named with it.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

# Functions and return types that collect several rows.
my $COLLECTS = join '|', qw(json_agg jsonb_agg json_object_agg jsonb_object_agg
    array_agg string_agg array_to_string array_append), 'returns table', 'returns setof';

my %api = map { m{(\w+)\.sql\z} ? ($1 => $_) : () } source_files(qr{\Asql/functions/api/\w+/});
cmp_ok scalar keys %api, '>', 10, 'sql/functions/api has the functions of the API';

my %sent;
for my $file (source_files(qr{\Amod_agent/(?:model|handlers|stream|wait)/.*\.c\z})) {
    my $code = ${ without_comments($file) };
    $sent{$1} = 1 while $code =~ /\bagent\.(\w+)\(/g;
}
is join(' ', grep { !$api{$_} } sort keys %sent), '', 'handlers, streams and waiters call no other function of the schema';

# The error in the bound of a function, given its text; '' if there is none.
sub fault_of {
    my ($text) = @_;
    return '' if $text !~ /\b(?:$COLLECTS)\b/i;
    my ($bound) = $text =~ /^(-- Bound:   \S.*\n(?:-- {10}.*\n)*)/m or return 'no bound';
    my ($held) = $bound =~ s/\n--\s+/ /gr =~ /Held by (.*)/ or return 'nothing holds the bound';
    my ($code) = $text =~ /^create or replace function(.*)/ms;
    my @pieces = $held =~ /`([^`]+)`(?: in (\S+?)\.?(?=\s|$))?/g or return 'no code is named';
    while (my ($piece, $file) = splice @pieces, 0, 2) {
        my $where = defined $file ? slurp(root() . "/$file") : $code =~ s/--.*//gr;
        return "`$piece` is not there" if index($where, $piece) < 0;
    }
    return '';
}

my $FUNCTION = "create or replace function f() returns setof text as 'select x limit 10 -- limit 20';\n";
my %samples = (
    "-- Bound:   ten.\n--          Held by `limit 10`.\n" => '',
    "-- Bound:   twenty. Held by `limit 20`.\n"            => '`limit 20` is not there',
    "-- Bound:   ten. Held by `limit 10` and\n--          `sum`.\n" => '`sum` is not there',
    "-- Bound:   ten. Held by `# that it returns, and names the code` in t/guards/bounds.t.\n"   => '',
    "-- Bound:   ten.\n-- Locks:   none. Held by `limit 10`.\n" => 'nothing holds the bound',
    "-- Returns: rows.\n" => 'no bound',
);
is fault_of($_ . $FUNCTION), $samples{$_}, 'the check is right about a sample: ' . s{\n}{ }gr
    for sort keys %samples;

is fault_of(slurp(root() . "/$api{$_}")), '',
    "$_: its result has a bound that existing code enforces" for sort keys %api;

done_testing;
