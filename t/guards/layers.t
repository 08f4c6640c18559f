# SPDX-License-Identifier: Apache-2.0
# Who may use what: httpd in the outer layers only, libpq and json-c's counting
# in one place each, dependencies one way, the modules apart.
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use AgentTest::Source;
use Test::More;

my @c_files = source_files(qr{\Amod_\w+/.*\.[ch]\z});
plan skip_all => 'no sources' if !@c_files;

chomp(my $httpd_headers = qx(apxs -q INCLUDEDIR));
chomp(my $apr_headers = qx(apr-1-config --includedir));

# only_in('title', qr/.../, qr/files that may have it/)
sub only_in {
    my ($what, $pattern, $allowed) = @_;
    my @found;
    for my $file (grep { !/$allowed/ } @c_files) {
        push @found, map { "$file:$_->[0]" }
            grep { $_->[1] =~ /$pattern/ } numbered_lines(without_comments($file));
    }
    is "@found", '', $what;
    return;
}

# The headers of a folder of the system that files include.
sub headers_from {
    my ($folder, @files) = @_;
    my @found;
    for my $file (@files) {
        for (numbered_lines(without_comments($file))) {
            my ($number, $line) = @{$_};
            next if $line !~ /\A\s*#\s*include\s*<([^>]+)>/;
            push @found, "$file:$number <$1>" if -e "$folder/$1";
        }
    }
    return "@found";
}

is headers_from($httpd_headers,
    grep { m{\Amod_agent/(?!(?:auth|config|http|handlers)/|(?:db/pool|wait/(?:park\w*|output|input|turn))\.[ch]\z).*/} } @c_files), '',
    "httpd's headers only at the top, in auth, config, http, handlers, db/pool, wait/{park*,output,input,turn}";

# The limiter: the files that count, and those that read rules and paths.
my $limiter = qr{\Amod_ratelimit_regional/};
my $counting = qr{$limiter(?:(?:counter|protocol)/.*|decision/new_keys\.[ch])\z};
my $reading = qr{${limiter}rules/};
is headers_from($httpd_headers, grep { /$counting|$reading/ } @c_files), '',
    "httpd's headers not in the limiter's counter/, protocol/, rules/ and decision/new_keys";
is headers_from($apr_headers, grep { /$counting/ } @c_files), '',
    "APR's headers not in the limiter's counter/, protocol/ and decision/new_keys";

only_in('PQ functions only in connection.c, conninfo.c, send.c, query.c and listener.c of db',
    qr/\bPQ[a-z]\w*\s*\(/, qr{\Amod_agent/db/(?:connection|conninfo|send|query|listener)\.c\z});
only_in('json_object_put only in core/json.c',
    qr/\bjson_object_put\b/, qr{\Amod_agent/(?:core/json\.c|runners/)});
only_in('mod_dbd only in db/pool.c',
    qr/<(?:mod_dbd|apr_dbd)\.h>/, qr{\Amod_agent/db/pool\.c\z});
# Those of graphs are public, and the secret of the limiter is compared with that of its own earlier segment.
only_in('digests and secrets of keys are compared by agent_api_key_is_digest(), which t/unit/secret_branches.t checks',
    qr/\bCRYPTO_memcmp\s*\(|\b(?:memcmp|bcmp|strn?(?:case)?cmp|agent_raw_equals)\s*\([^;]*(?:\bdigest|secret\b)/,
    qr{\Amod_agent/(?:core/api_key\.c|supervisor/runner/pool/graphs\.c)\z|\Amod_ratelimit_regional/counter/carry\.c\z});
only_in("mutexes only in core/lock.c, and where the signals of prefork cannot meet them or are held",
    qr/\bapr_thread_mutex_/, qr{\Amod_agent/(?:core/(?:lock|allocator)|db/pool)\.c\z});
only_in('no malloc, free or strdup', qr/\b(?:malloc|calloc|realloc|free|strdup)\s*\(/,
    qr{\Amod_agent/(?:runners|ctl)/});
only_in('no unchecked string functions',
    qr/\b(?:strcpy|strcat|sprintf|gets|atoi|atol|strtok)\s*\(/, qr{\A\z});

# Each folder of mod_agent and the folders that it may include: the table of its README.
my %may = (core => []);
for my $row (grep { m{\A\|(?: `\w+/`,?)+ \|} } split /\n/, slurp(root() . '/mod_agent/README.md')) {
    my ($folders, $included) = $row =~ /\A\|([^|]*)\|([^|]*)\|\z/ or next;
    $may{$_} = [ $included =~ m{`(\w+)/`}g ] for $folders =~ m{`(\w+)/`}g;
}
my %has_source = map { m{\Amod_agent/(\w+)/} ? ($1 => 1) : () } @c_files;
is join(' ', sort keys %may), join(' ', sort keys %has_source),
    'mod_agent: the table of dependencies in its README has each folder with C sources';
# Those of the limiter.
my %limiter_may = (
    counter  => [],
    protocol => [qw(counter)],
    rules    => [qw(counter)],
    store    => [qw(rules protocol counter)],
    config   => [qw(store rules protocol counter)],
    decision => [qw(config store rules protocol counter)],
    status   => [qw(decision config rules protocol counter)],
);

# Includes of a module's layers that its table does not allow.
sub wrong_includes {
    my ($module, %allowed_of) = @_;
    my @wrong;
    for my $file (@c_files) {
        my ($layer) = $file =~ m{\A\Q$module\E/([^/]+)/} or next;
        my %allowed = map { $_ => 1 } $layer, @{ $allowed_of{$layer} || [] };
        for (numbered_lines(without_comments($file))) {
            my ($number, $line) = @{$_};
            next if $line !~ m{\A\s*#\s*include\s*"(?:\.\./)*(\w+)/};
            push @wrong, "$file:$number includes $1" if $allowed_of{$1} && !$allowed{$1};
        }
    }
    return "@wrong";
}
is wrong_includes('mod_agent', %may), '', 'mod_agent: folders include those that the table of its README names';

# Folders of a module that no file of a folder includes although its table allows it.
sub unused_permissions {
    my ($module, %allowed_of) = @_;
    my %is_used;
    for my $file (@c_files) {
        my ($layer) = $file =~ m{\A\Q$module\E/([^/]+)/} or next;
        $is_used{"$layer -> $_"} = 1 for ${ without_comments($file) } =~ m{^\s*#\s*include\s*"(?:\.\./)*(\w+)/}gm;
    }
    return join ' ', grep { !$is_used{$_} }
        map { my $layer = $_; map { "$layer -> $_" } @{ $allowed_of{$layer} } } sort keys %allowed_of;
}
is unused_permissions('mod_agent', %may), '', 'mod_agent: the table of its README names no folder that is not included';
is wrong_includes('mod_ratelimit_regional', %limiter_may), '',
    'mod_ratelimit_regional: dependencies go one way';

# The supervisor. Only the loop, and the file that makes the parts, know all of
# them; tables know nothing of the functions that move runs on.
my $supervisor = qr{\Amod_agent/supervisor/};
only_in('supervisor: instance.h only in main.c and instance.c',
    qr{\A\s*#\s*include\s*"(?:\.\./)*instance\.h"}, qr{$supervisor(?:main|instance)\.c\z});
only_in('supervisor: tables include neither run_end.h nor runs.h',
    qr{\A\s*#\s*include\s*"[\w./]*\b(?:run_end|runs)\.h"},
    qr{\A(?!${supervisor}(?:base/|lease/|process/|runner/(?:pool/|protocol/|io/log\.|run/(?:ack|credit|runner_request))))});
# Its folders, and those that each may include.
my %supervisor_may = (
    base      => [],
    process   => [qw(base)],
    lease     => [qw(base)],
    runner    => [qw(lease process base)],
    statement => [qw(runner lease process base)],
    webhook   => [qw(statement base)],
);
is wrong_includes('mod_agent/supervisor', %supervisor_may), '',
    'supervisor: its folders depend on each other one way';

# The folders of runner/ from top to bottom: its own files may include all of them, and
# each those below it.
my @rooms = qw(io run pool protocol);
my %floor = map { $rooms[$_] => $_ } 0 .. $#rooms;
my @climbing;
for my $file (grep { m{${supervisor}runner/\w+/} } @c_files) {
    my ($room) = $file =~ m{runner/(\w+)/};
    for (numbered_lines(without_comments($file))) {
        my ($number, $line) = @{$_};
        next if $line !~ m{\A\s*#\s*include\s*"\.\./(?:(\w+)/)?\w+\.h"};
        push @climbing, "$file:$number" if !defined $1 || ($floor{$1} // -1) <= $floor{$room};
    }
}
is "@climbing", '', "a folder of the supervisor's runner/ uses those below it: @rooms";

# The folders of the built-in runner from top to bottom; each may include those below it.
my @runner = qw(run tool model message io base);
my %rank = map { $runner[$_] => $_ } 0 .. $#runner;
my @upward;
for my $file (grep { m{\Amod_agent/runners/builtin/\w+/} } @c_files) {
    my ($folder) = $file =~ m{builtin/(\w+)/};
    for (numbered_lines(without_comments($file))) {
        my ($number, $line) = @{$_};
        next if $line !~ m{\A\s*#\s*include\s*"runners/builtin/(?:(\w+)/)?\w+\.h"};
        push @upward, "$file:$number" if !defined $1 || $rank{$1} <= $rank{$folder};
    }
}
is "@upward", '', "a folder of the built-in runner uses those below it: @runner";

# agentctl: its two programs know nothing of each other.
is wrong_includes('mod_agent/ctl', base => [], build => ['base'], operator => ['base']), '', 'agentctl: build/ and operator/ include base/ and nothing of each other';

my @shared;
for my $file (@c_files) {
    my ($module) = $file =~ m{\A(\w+)/};
    push @shared, map { "$file:$_->[0]" }
        grep { $_->[1] =~ m{\A\s*#\s*include\s*".*\bmod_\w+/} && $_->[1] !~ m{\b$module/} }
        numbered_lines(without_comments($file));
}
is "@shared", '', 'the modules share no code';

done_testing;
