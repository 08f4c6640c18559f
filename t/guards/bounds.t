# SPDX-License-Identifier: Apache-2.0
# A function that the server calls and that collects several rows says in its
# header how much it returns at most: what a client asks for has a bound in
# bytes, not in records alone.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

# Whatever turns several rows into an answer.
my $COLLECTS = join '|', qw(json_agg jsonb_agg json_object_agg jsonb_object_agg
    array_agg string_agg array_to_string array_append), 'returns table', 'returns setof';

my $install = slurp(root() . '/sql/install.sql');
my ($section) = $install =~ /^-- Functions of the API\.\n(.*?)^-- Functions of the workers\.$/ms;
my %api = map { $_ => 1 } ($section // '') =~ m{functions/(\w+)\.sql}g;
cmp_ok scalar keys %api, '>', 10, 'install.sql says which functions are the API\'s';

my $statements = slurp(root() . '/mod_agent/db/statements.def');
my @routes = map { slurp(root() . "/$_") } source_files(qr{\Amod_agent/(?:model|handlers|wait)/.*\.c\z});
my %sent;
for my $statement (split /^(?=AGENT_STATEMENT\()/m, $statements) {
    my ($name) = $statement =~ /\AAGENT_STATEMENT\((\w+),/ or next;
    next if !grep { /\bAGENT_SQL_$name\b/ } @routes;
    $sent{$1} = 1 while $statement =~ /\bagent\.(\w+)\(/g;
}
is join(' ', grep { !$api{$_} } sort keys %sent), '', 'and they are all that handlers call';

for my $name (sort keys %api) {
    my $text = slurp(root() . "/sql/functions/$name.sql");
    ok $text !~ /\b(?:$COLLECTS)\b/i || $text =~ /^-- Bound:   \S/m, $name;
}

done_testing;
