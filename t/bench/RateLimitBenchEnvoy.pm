# SPDX-License-Identifier: Apache-2.0
# Envoy's rate limit service (github.com/envoyproxy/ratelimit) with a Redis, asked in
# JSON over HTTP as its Envoys ask it in gRPC.
#
#   my $service = RateLimitBenchEnvoy->new($redis_port);   # dies with the reason if it cannot run
#   $service->port; $service->cpu; $service->stop
package RateLimitBenchEnvoy;
use strict;
use warnings;
use AgentTest::Cost qw(cpu_sec);
use AgentTest::Env qw(free_port root slurp write_file);
use File::Path qw(make_path);
use parent 'RateLimitBenchProcess';

# Of its module; it has no releases of late, only commits.
my $VERSION = 'v1.4.1-0.20260122083618-3fb702589d36';
my $PACKAGE = 'github.com/envoyproxy/ratelimit/src/service_cmd';
my $INSTALLED = root() . '/.build/ratelimit-envoy';

# Its windows are a second, a minute, an hour or a day: 10 in 10 s is 1 a second or 10 a
# minute, and the other limits are of a minute.
my $LIMITS = <<'YAML';
domain: bench
descriptors:
  - { key: one, rate_limit: { unit: minute, requests_per_unit: 6000000 } }
  - { key: repos, rate_limit: { unit: minute, requests_per_unit: 100 } }
  - { key: new, rate_limit: { unit: minute, requests_per_unit: 6000 } }
  - { key: second, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: minute, rate_limit: { unit: minute, requests_per_unit: 10 } }
YAML

sub version { return $VERSION }

sub new {
    my ($class, $redis_port) = @_;
    install();
    my $self = RateLimitBenchProcess::make($class, start_sec => 20, end_signal => 'KILL');
    make_path("$self->{dir}/runtime/bench/config");
    write_file("$self->{dir}/runtime/bench/config/bench.yaml", $LIMITS);
    $self->start($redis_port);
    return $self;
}

# By an ordinary build of Go, which checks the sources by its checksum database.
sub install {
    return if slurp("$INSTALLED/installed") eq $VERSION;
    make_path($INSTALLED);
    local $ENV{GOBIN} = $INSTALLED;
    local $ENV{CGO_ENABLED} = 0;
    my $output = qx(sh -c 'exec go install $PACKAGE\@$VERSION' 2>&1);
    my ($last_line) = $output =~ /(\S[^\n]*)\n*\z/;
    die "Go does not build it: $last_line\n" if $? || !-x "$INSTALLED/service_cmd";
    write_file("$INSTALLED/installed", $VERSION);
    return;
}

sub cpu { return cpu_sec($_[0]{pid}) }

sub start {
    my ($self, $redis_port) = @_;
    my %env = (HOST => '127.0.0.1', PORT => $self->{port}, GRPC_HOST => '127.0.0.1', GRPC_PORT => free_port(), DEBUG_HOST => '127.0.0.1',
        DEBUG_PORT => free_port(), REDIS_SOCKET_TYPE => 'tcp', REDIS_URL => "127.0.0.1:$redis_port", USE_STATSD => 'false', DISABLE_STATS => 'true',
        RUNTIME_ROOT => "$self->{dir}/runtime", RUNTIME_SUBDIRECTORY => 'bench', RUNTIME_WATCH_ROOT => 'false', LOG_LEVEL => 'error');
    $self->run(\%env, "$INSTALLED/service_cmd");
    $self->wait_for_port;
    return;
}

1;
