# SPDX-License-Identifier: Apache-2.0
# The folders of sql/functions name the callers and the subject of a function; one
# function constructs each row type; states are words; advisory locks are those of
# idempotency keys; grants and installation leave nothing out; an administrator's
# scripts set the search path first.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my $FUNCTIONS = 'sql/functions';
# Of a folder: more are a subject to be divided, fewer belong to another one.
my ($FEWEST_FILES, $MOST_FILES) = (3, 30);

# The folders in the tables of a README, without those that are paths.
sub folders_in {
    my ($readme) = @_;
    return sort { $a cmp $b } slurp(root() . "/$readme") =~ m{^\| `(\w+)/` \|}mg;
}

# Audience => subject => names of functions.
my (%functions, @elsewhere);
for my $file (source_files(qr{\A$FUNCTIONS/.*\.sql\z})) {
    if ($file =~ m{\A$FUNCTIONS/(\w+)/(\w+)/(\w+)\.sql\z}) {
        push @{ $functions{$1}{$2} }, $3;
    }
    elsif ($file !~ m{\A$FUNCTIONS/\w+/list\.sql\z}) {
        push @elsewhere, $file;
    }
}
is "@elsewhere", '', 'a function is in the folder of its audience and subject';
my %subjects = map { $_ => 1 } map { keys %{$_} } values %functions;
is join(' ', folders_in("$FUNCTIONS/README.md")), join(' ', sort keys %functions, keys %subjects),
    "$FUNCTIONS/README.md has a row for each audience and subject";
for my $audience (sort keys %functions) {
    my %names = %{ $functions{$audience} };
    is join(' ', folders_in("$FUNCTIONS/$audience/README.md")), join(' ', sort keys %names),
        "$FUNCTIONS/$audience/README.md has a row for each subject";
    is join(' ', grep { @{ $names{$_} } < $FEWEST_FILES || @{ $names{$_} } > $MOST_FILES } sort keys %names), '',
        "a subject of $FUNCTIONS/$audience has $FEWEST_FILES to $MOST_FILES files";
}

sub functions {
    my ($audience) = @_;
    return map { @{$_} } values %{ $functions{$audience} };
}

my %public = map { $_ => 1 } map { functions($_) } qw(api worker);
my %called;
for my $file (source_files(qr{\Amod_\w+/(?!ctl/).*\.(?:c|h|def)\z})) {
    $called{$_} = 1 for ${ without_comments($file) } =~ /\bagent\.(\w+)\(/g;
}
cmp_ok scalar keys %called, '>', 30, 'C calls functions of the schema';
is join(' ', grep { !$public{$_} } sort keys %called), '',
    'C calls only functions of sql/functions/api and worker';
is join(' ', grep { !$called{$_} } sort keys %public), '',
    'C calls each function of sql/functions/api and worker';
my %tested = map { $_ => 1 } slurp(root() . '/t/sql/README.md') =~ /`(\w+)`/g;
is join(' ', grep { !$tested{$_} } sort keys %public, functions('operator')), '',
    't/sql/README.md names the test of each function of sql/functions/api, worker and operator';

my %by_ctl;
for my $file (source_files(qr{\Amod_agent/ctl/.*\.[ch]\z})) {
    $by_ctl{$_} = 1 for ${ without_comments($file) } =~ /\bagent\.(\w+)\(/g;
}
is join(' ', sort keys %by_ctl), join(' ', sort(functions('operator'))),
    'agentctl calls each function of sql/functions/operator, and no other';

# Any role that connects could hold the lock of an upgrade or of maintenance. The
# lock of an idempotency key has a number that only the key's owner knows.
my @advisory = grep { slurp(root() . "/$_") =~ /pg_(?:try_)?advisory/ } source_files(qr{\Asql/.*\.sql\z});
is "@advisory", 'sql/functions/internal/runs/find_stored_run.sql', 'only idempotency keys are advisory locks';

# The type of a cast is looked up along a search path that the owner of the database
# may have set.
my @casts;
for my $file (source_files(qr{\Amod_agent/.*\.[ch]\z})) {
    push @casts, map { /::/ ? $file : () } ${ without_comments($file) } =~ /\.sql\s*=\s*((?:"[^"]*"\s*)+)/g;
}
is "@casts", '', 'statements of C have no casts: the functions give the types of parameters';

# A positional row of such a type breaks silently when the type changes.
my %constructor = (
    run_end          => 'inline/runs/make_end',
    leased_run       => 'inline/leases/make_leased_run',
    batch_event      => 'inline/events/make_event',
    batch_checkpoint => 'internal/leases/collect_checkpoints',
    batch_record     => 'internal/leases/parse_records',
    channel_content  => 'internal/leases/collect_checkpoints',
);
for my $type (sort keys %constructor) {
    my @files = grep { slurp(root() . "/$_") =~ /::agent\.$type\b(?!\[)/ } source_files(qr{\Asql/functions/.*\.sql\z});
    is "@files", "sql/functions/$constructor{$type}.sql", "$constructor{$type} alone constructs agent.$type";
}

# A copy that differs finds other runs, or reads a queue without its index.
my @claimable = grep { slurp(root() . "/$_") =~ /\bnot_before is null\b/ } source_files(qr{\Asql/functions/.*\.sql\z});
is "@claimable", 'sql/functions/inline/leases/is_claimable.sql', 'one function says which runs may be claimed';

# Functions of internal/ without SET clauses have those of what calls them, at any depth.
my @INHERITED = qw(search_path jit enable_seqscan plan_cache_mode);
my (%sets, %callers, @inherits);
for my $file (source_files(qr{\A$FUNCTIONS/\w+/\w+/\w+\.sql\z})) {
    my ($audience, $name) = $file =~ m{\A$FUNCTIONS/(\w+)/\w+/(\w+)\.sql\z};
    my $text = slurp(root() . "/$file");
    push @inherits, $name if $audience eq 'internal' && $text =~ /^-- No SET clause: /m;
    my ($head, $body) = $text =~ s/^--.*\n//mgr =~ /\A(.*?)^as (.*)\z/ms;
    $sets{$name} = { map { $_ => 1 } $head =~ /\bset (\w+) =/g };
    my %called_here = map { $_ => 1 } $body =~ /\bagent\.(\w+)\(/g;
    push @{ $callers{$_} }, $name for grep { $_ ne $name } keys %called_here;
}
# Their triggers, views and defaults set nothing.
for my $file (source_files(qr{\Asql/(?!functions/).*\.sql\z})) {
    push @{ $callers{$_} }, $file for slurp(root() . "/$file") =~ /\bagent\.(\w+)\(/g;
}

# The chains of callers that end without having set all of them.
sub chains_without {
    my ($chain, @missing) = @_;
    my ($caller) = $chain =~ /\A(\S+)/;
    my @left = grep { !$sets{$caller}{$_} } @missing;
    my @above = grep { $chain !~ /(?<!\S)\Q$_\E(?!\S)/ } @{ $callers{$caller} // [] };
    return if !@left;
    return "$chain: @left" if $public{$caller} || !@above;
    return map { chains_without("$_ > $chain", @left) } @above;
}
cmp_ok scalar @inherits, '>', 2, 'functions of internal/ leave out SET clauses';
is join("\n", map { chains_without($_, @INHERITED) } @inherits), '',
    'a function of internal/ without SET clauses is called by functions that have them';

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

# The role of a server may not call them, whatever else it may call.
my @operator = sort { $a cmp $b } slurp(root() . '/sql/operator_functions.sql') =~ /\bagent\.(\w+)/g;
is "@operator", join(' ', sort(functions('operator'))),
    'sql/operator_functions.sql names each function of sql/functions/operator, and nothing else';

# A table without a grant is found only by a call that a server makes as its own role.
my @tables = sort map { slurp($_) =~ /^create table agent\.(\w+)(?! partition)\b/mg } glob root() . '/sql/migrations/*.up.sql';
cmp_ok scalar @tables, '>', 15, 'the migrations create the tables';
my @granted = sort { $a cmp $b } slurp(root() . '/sql/grants.sql') =~ /\bagent\.(\w+)/g;
is "@granted", "@tables", 'sql/grants.sql names each table once, and nothing else';
my @dropped = sort map { slurp($_) =~ /^drop table agent\.(\w+)/mg } glob root() . '/sql/migrations/*.down.sql';
is "@dropped", "@tables", 'the migrations drop each table that they create';
# The files of functions that a script includes, in that order.
sub included {
    my ($script) = @_;
    my ($folder) = $script =~ m{(.*/)};
    return map { m{/list\.sql\z} ? included($_) : $_ } map { "$folder$_" =~ s{\w+/\.\./}{}r }
        slurp(root() . "/$script") =~ m{^\\ir (\S+/\S+)$}mg;
}
my @installed = grep { m{\A$FUNCTIONS/} } included('sql/install.sql');
my (%times, %is_file);
$times{$_}++ for @installed;
$is_file{$_} = 1 for source_files(qr{\A$FUNCTIONS/\w+/\w+/\w+\.sql\z});
is join(' ', grep { !$is_file{$_} || ($times{$_} // 0) != 1 } sort keys %{ { %times, %is_file } }), '',
    'sql/install.sql includes each function once';
# PostgreSQL looks up what a function in SQL calls when it is created.
my (%exists, @early);
for my $file (@installed) {
    my $text = slurp(root() . "/$file") =~ s/--.*//gr;
    my ($name) = $file =~ m{(\w+)\.sql\z};
    push @early, map { "$name before $_" } grep { $_ ne $name && !$exists{$_} } $text =~ /\bagent\.(\w+)\(/g
        if $text =~ /^language sql\b/m;
    $exists{$name} = 1;
}
is join(', ', @early), '', 'sql/install.sql creates a function in SQL after those that it calls';

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
