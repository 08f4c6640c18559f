# SPDX-License-Identifier: Apache-2.0
# The routes of each API, read from its table in mod_agent/handlers/routes.c:
#
#   my @routes = routes('server');     # or 'platform'
#   $routes[0]{name}    'GET /threads/{thread_id}'
#   $routes[0]{method}, {path}, {macro} (DATA, OPEN, ACCOUNT or KEYLESS), {scope} ('read', undef without a key)
package AgentTest::Routes;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use Exporter 'import';

our @EXPORT = qw(routes);

sub routes {
    my ($api) = @_;
    my ($table) = slurp(root() . '/mod_agent/handlers/routes.c') =~ /^static const agent_route_t ${api}_routes\[\] = \{(.*?)\{NULL/ms
        or die "no table of the API $api\n";
    my @routes;
    for my $row ($table =~ /\b(\w+\((?:[^()"]|"[^"]*")*\))/g) {
        my ($macro, $method, $path, $scope) = $row =~ /\A(\w+)\("([A-Z]+)",\s*"([^"]+)",\s*\w+(?:,\s*([A-Z]+))?\)\z/
            or die "not a route: $row\n";
        push @routes, { name => "$method $path", method => $method, path => $path, macro => $macro,
            scope => defined $scope ? lc $scope : undef };
    }
    return @routes;
}

1;
