# SPDX-License-Identifier: Apache-2.0
# The routes of each API, read from its table in mod_agent/handlers/routes.c:
#
#   my @routes = routes('server');     # or 'platform'; with the text of another file as second argument: that one's
#   $routes[0]{name}    'GET /threads/{thread_id}'
#   $routes[0]{method}, {path}, {macro} (DATA, OPEN, ACCOUNT or KEYLESS), {scope} ('read', undef without a key)
#   my %scope = scopes('server');      # of each name: 'read', 'none' without a key
package AgentTest::Routes;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use Exporter 'import';

our @EXPORT = qw(routes scopes);

# The scope of each route is written down here once more: read from the table, it would be compared with itself.
my %SCOPES = (
    server => {
        none => [
            'GET /ok',
            'GET /info',
        ],
        read => [
            'POST /assistants/search',
            'POST /assistants/count',
            'GET /assistants/{assistant_id}',
            'POST /assistants/{assistant_id}/versions',
            'GET /assistants/{assistant_id}/graph',
            'GET /assistants/{assistant_id}/schemas',
            'GET /assistants/{assistant_id}/subgraphs',
            'GET /assistants/{assistant_id}/subgraphs/{namespace}',
            'POST /threads/search',
            'POST /threads/count',
            'GET /threads/{thread_id}',
            'GET /threads/{thread_id}/storage',
            'GET /threads/{thread_id}/stream',
            'GET /threads/{thread_id}/state',
            'POST /threads/{thread_id}/state/checkpoint',
            'GET /threads/{thread_id}/state/{checkpoint_id}',
            'GET /threads/{thread_id}/history',
            'POST /threads/{thread_id}/history',
            'GET /threads/{thread_id}/runs',
            'GET /threads/{thread_id}/runs/{run_id}',
            'GET /threads/{thread_id}/runs/{run_id}/join',
            'GET /threads/{thread_id}/runs/{run_id}/stream',
            'GET /runs/{run_id}/join',
            'GET /runs/{run_id}/stream',
            'GET /store/items',
            'POST /store/items/search',
            'POST /store/namespaces',
        ],
        run => [
            'POST /threads',
            'POST /threads/prune',
            'PATCH /threads/{thread_id}',
            'DELETE /threads/{thread_id}',
            'POST /threads/{thread_id}/copy',
            'POST /threads/{thread_id}/state',
            'POST /threads/{thread_id}/runs',
            'POST /threads/{thread_id}/runs/wait',
            'POST /threads/{thread_id}/runs/stream',
            'DELETE /threads/{thread_id}/runs/{run_id}',
            'POST /threads/{thread_id}/runs/{run_id}/cancel',
            'POST /runs',
            'POST /runs/batch',
            'POST /runs/cancel',
            'POST /runs/wait',
            'POST /runs/stream',
            'PUT /store/items',
            'DELETE /store/items',
        ],
        deploy => [
            'POST /assistants',
            'PATCH /assistants/{assistant_id}',
            'DELETE /assistants/{assistant_id}',
            'POST /assistants/{assistant_id}/latest',
        ],
    },
    platform => {
        none => [
            'GET /',
            'GET /ok',
            'GET /info',
            'GET /.well-known/agent-addresses',
            'POST /v1/accounts',
            'GET /v1/account/deletion',
        ],
        any => [
            'GET /auth',
        ],
        read => [
            'GET /v1/account',
            'GET /v1/account/usage',
        ],
        admin => [
            'PATCH /v1/account',
            'DELETE /v1/account',
            'GET /v1/account/export',
            'GET /v1/account/keys',
            'POST /v1/account/keys',
            'DELETE /v1/account/keys/{key_id}',
            'POST /v1/account/keys/{key_id}/rotate',
            'GET /v1/account/audit',
        ],
    },
);

sub routes {
    my ($api, $source) = @_;
    $source //= slurp(root() . '/mod_agent/handlers/routes.c');
    my ($table) = $source =~ /^static const agent_route_t ${api}_routes\[\] = \{(.*?)\bLAST\};/ms
        or die "no table of the API $api\n";
    my @routes;
    # Each row names its scope, as an argument of a macro.
    die "not the macro of a route: $1\n" if $table =~ s{\b(?:DATA|OPEN|KEYLESS|ACCOUNT)\((?:[^()"]|"[^"]*")*\),}{}gr =~ /(\S.*)/;
    for my $row ($table =~ /\b(\w+\((?:[^()"]|"[^"]*")*\))/g) {
        my ($macro, $method, $path, $scope) = $row =~ /\A(\w+)\("([A-Z]+)",\s*"([^"]+)",\s*\w+(?:,\s*([A-Z]+))?\)\z/
            or die "not a route: $row\n";
        push @routes, { name => "$method $path", method => $method, path => $path, macro => $macro,
            scope => defined $scope ? lc $scope : undef };
    }
    return @routes;
}

sub scopes {
    my ($api) = @_;
    my $names = $SCOPES{$api};
    return map { my $scope = $_; map { $_ => $scope } @{ $names->{$scope} } } keys %{$names};
}

1;
