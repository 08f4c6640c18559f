# SPDX-License-Identifier: Apache-2.0
# The folders of sql/functions name the callers of a function; one function
# constructs each row type; states are words; advisory locks are those of
# idempotency keys; grants and installation leave nothing out; an administrator's
# scripts set the search path first.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

sub functions {
    my ($folder) = @_;
    return map { m{([^/]+)\.sql\z} } glob root() . "/sql/functions/$folder/*.sql";
}

my %public = map { $_ => 1 } map { functions($_) } qw(api worker);
my %called;
for my $file (source_files(qr{\Amod_\w+/.*\.(?:c|h|def)\z})) {
    $called{$_} = 1 for ${ without_comments($file) } =~ /\bagent\.(\w+)\(/g;
}
cmp_ok scalar keys %called, '>', 30, 'C calls functions of the schema';
is join(' ', grep { !$public{$_} } sort keys %called), '',
    'C calls only functions of sql/functions/api and worker';
is join(' ', grep { !$called{$_} } sort keys %public), '',
    'C calls each function of sql/functions/api and worker';

# Any role that connects could hold the lock of an upgrade or of maintenance. The
# lock of an idempotency key has a number that only the key's owner knows.
my @advisory = grep { slurp(root() . "/$_") =~ /pg_(?:try_)?advisory/ } source_files(qr{\Asql/.*\.sql\z});
is "@advisory", 'sql/functions/internal/find_stored_run.sql', 'only idempotency keys are advisory locks';

# The type of a cast is looked up along a search path that the owner of the database
# may have set.
my @casts;
for my $file (source_files(qr{\Amod_agent/.*\.[ch]\z})) {
    push @casts, map { /::/ ? $file : () } ${ without_comments($file) } =~ /\.sql\s*=\s*((?:"[^"]*"\s*)+)/g;
}
is "@casts", '', 'statements of C have no casts: the functions give the types of parameters';

# A positional row of such a type breaks silently when the type changes.
my %constructor = (
    run_end          => 'inline/make_end',
    leased_run       => 'inline/make_leased_run',
    batch_event      => 'inline/make_event',
    batch_checkpoint => 'internal/parse_batch',
    batch_record     => 'internal/parse_batch',
    channel_content  => 'inline/split_values',
);
for my $type (sort keys %constructor) {
    my @files = grep { slurp(root() . "/$_") =~ /::agent\.$type\b(?!\[)/ } source_files(qr{\Asql/functions/.*\.sql\z});
    is "@files", "sql/functions/$constructor{$type}.sql", "$constructor{$type} alone constructs agent.$type";
}

my @numbers;
for my $file (source_files(qr{\A(?:sql|t/isolation)/.*\.(?:sql|spec)\z})) {
    push @numbers, map { "$file:$_->[0]" }
        grep { $_->[1] =~ /\b(?:state|status|cancel)\b\s*(?:=|<>|in\b)\s*\(?\s*[0-9]/ } numbered_lines($file);
}
is "@numbers", '', 'states are compared with words, not with numbers';

my @long;
for my $file (source_files(qr{\Asql/.*\.sql\z})) {
    push @long, map { "$file:$_->[0]" } grep { length $_->[1] > 120 } numbered_lines($file);
}
is "@long", '', 'lines of SQL have at most 120 columns';

# A table without a grant is found only by a call that a server makes as its own role.
my @tables = sort map { slurp($_) =~ /^create table agent\.(\w+)(?! partition)\b/mg } glob root() . '/sql/migrations/*.up.sql';
cmp_ok scalar @tables, '>', 15, 'the migrations create the tables';
my @granted = sort { $a cmp $b } slurp(root() . '/sql/grants.sql') =~ /\bagent\.(\w+)/g;
is "@granted", "@tables", 'sql/grants.sql names each table once, and nothing else';
my @dropped = sort map { slurp($_) =~ /^drop table agent\.(\w+)/mg } glob root() . '/sql/migrations/*.down.sql';
is "@dropped", "@tables", 'the migrations drop each table that they create';
my @installed = sort { $a cmp $b } slurp(root() . '/sql/install.sql') =~ m{^\\ir (functions/\S+)$}mg;
is "@installed", join(' ', sort map { m{\Asql/(.*)} } source_files(qr{\Asql/functions/.*\.sql\z})),
    'sql/install.sql includes each function once';

# Without the path, functions of other roles could hide those of the catalog.
my %text = map { $_ => slurp(root() . "/$_") } source_files(qr{\Asql/(?!functions/).*\.sql\z});
my %included = map { $_ => 1 } map { /^\s*\\ir (?:.*\/)?(\S+\.sql)$/mg } values %text;
my @scripts = grep { !$included{s{.*/}{}r} && !m{/\d{4}_} } sort keys %text;
is "@scripts", 'sql/install.sql sql/uninstall.sql', 'an administrator runs two scripts';
for my $file (@scripts) {
    my @statements = grep { !/^(?:--|\\|\s*$)/ } split /\n/, $text{$file};
    is_deeply [ @statements[ 0, 1 ] ], [ 'begin;', 'set local search_path = pg_catalog, pg_temp;' ],
        "$file sets the search path before anything else";
}

done_testing;
