# SPDX-License-Identifier: Apache-2.0
# A route without a scope does not compile: a row is one of the macros, which need one. Nor do the tests of all routes accept it.
# Each route has the scope that the tests expect.
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Lint;
use AgentTest::Routes;
use File::Temp qw(tempdir);
use Test::More;

my $source = slurp(root() . '/mod_agent/handlers/routes.c');
my $dir = tempdir(CLEANUP => 1);

# (status, messages) of the compiler for the table with this row at the end of the server's.
sub compile {
    my ($row) = @_;
    my $text = $source =~ s/^    LAST\};/    $row\n    LAST};/mr;
    $text =~ s{^#include "}{#include "@{[ root() ]}/mod_agent/handlers/}mg;
    write_file("$dir/routes.c", $text);
    my $messages = qx(cd @{[ root() ]} && cc -std=gnu11 @{[ AgentTest::Lint::compiler_flags() ]} -fsyntax-only $dir/routes.c 2>&1);
    return ($?, $messages);
}

is_deeply [ compile('DATA("GET", "/more", agent_handle_ok, READ),') ], [ 0, '' ], 'routes: one with a scope compiles';
for my $row ('DATA("GET", "/more", agent_handle_ok),', 'DATA("GET", "/more", agent_handle_ok, ),', 'ACCOUNT("GET", "/more", agent_handle_ok),',
    '{"GET", "/more", agent_handle_ok},', '{.method = "GET", .path = "/more", .handle = agent_handle_ok},',
    '{"GET", "/more", agent_handle_ok, .has_data = true, .is_regional = false},')
{
    my ($status, $messages) = compile($row);
    isnt $status, 0, "routes: $row does not compile";
    like $messages, qr/scope|argument|SCOPE_|poisoned "(?:method|has_data)"/,
        "routes: $row, the compiler says that the scope is missing, or that members must not be named";
}

# A row whose members have names may leave some out.
ok eval { routes('server', $source) }, 'routes: the tests read the rows';
for my $row ('{.method = "GET", .path = "/more", .handle = agent_handle_ok},', 'MORE("GET", "/more", agent_handle_ok),') {
    ok !eval { routes('server', $source =~ s/^    LAST\};/    $row\n    LAST};/mr) }, "routes: no test of all routes accepts $row";
    like $@, qr/not the macro of a route: \Q$row/, 'routes: the error names the row';
}

for my $api (qw(server platform)) {
    my @routes = routes($api);
    is_deeply { map { $_->{name} => $_->{scope} // 'none' } @routes }, { scopes($api) }, "routes: those of the API $api have the scopes of AgentTest::Routes";
    is_deeply [ map { $_->{name} } grep { $_->{method} =~ /\A(?:DELETE|PATCH|PUT)\z/ && ($_->{scope} // 'none') !~ /\A(?:run|deploy|admin)\z/ } @routes ], [],
        "routes: those of the API $api that change data by their method need more than read";
}

done_testing;
