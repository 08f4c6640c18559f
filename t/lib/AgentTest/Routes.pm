# SPDX-License-Identifier: Apache-2.0
# The routes of each API, read from its table in mod_agent/handlers/routes.c:
#
#   my @routes = routes('server');     # or 'platform'; with the text of another file as second argument: that one's
#   $routes[0]{name}    'GET /threads/{thread_id}'
#   $routes[0]{method}, {path}, {macro} (DATA, OPEN, ACCOUNT or KEYLESS), {scope} ('read', undef without a key)
package AgentTest::Routes;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use Exporter 'import';

our @EXPORT = qw(routes);

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

1;
