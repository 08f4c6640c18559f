# SPDX-License-Identifier: Apache-2.0
# The compared servers: httpd bare, with the limiter, with mod_qos,
# nginx bare and with limit_req. All serve the same small files, log no
# requests and have two processes.
#
#   my $server = RateLimitBenchServer->new('limited');       # or ('limited', $more_lines)
#   $server->port; $server->cpu; $server->stop;
#   $server->ports; $server->window_request($pattern);         # for RateLimitBenchWindow
package RateLimitBenchServer;
use strict;
use warnings;
use AgentTest::Env qw(root build_dir modules_dir httpd is_root write_file);
use AgentTest::Cost qw(cpu_sec);
use BenchProcess qw(child_pids);
use Digest::SHA qw(sha256_hex);
use File::Path qw(make_path);
use parent 'RateLimitBenchProcess';

# ratelimit.pl explains the paths.
my @FILES = qw(one repos new window);

# More threads per child than connections: a child whose threads are all busy
# closes idle connections.
my $HTTPD = <<'CONF';
ServerRoot "${DIR}"
PidFile "${DIR}/httpd.pid"
DefaultRuntimeDir "${DIR}"
ErrorLog "${DIR}/error_log"
LogLevel error
<IfModule !mpm_event_module>
    LoadModule mpm_event_module "${MODULES}/mod_mpm_event.so"
</IfModule>
<IfModule !unixd_module>
    LoadModule unixd_module "${MODULES}/mod_unixd.so"
</IfModule>
LoadModule authz_core_module "${MODULES}/mod_authz_core.so"
LoadModule alias_module "${MODULES}/mod_alias.so"
Listen 127.0.0.1:${PORT}
ServerName localhost
StartServers 2
ServerLimit 2
ThreadsPerChild 64
MinSpareThreads 1
MaxSpareThreads 128
MaxRequestWorkers 128
MaxConnectionsPerChild 0
MaxKeepAliveRequests 0
KeepAliveTimeout 60
DocumentRoot "${DIR}/htdocs"
CONF

# Each client has its own address, since one address gets only a sixteenth of the
# limiter's table. mod_qos reads the header itself.
my $ADDRESSES = <<'CONF';
LoadModule remoteip_module "${MODULES}/mod_remoteip.so"
RemoteIPHeader x-client-ip
RemoteIPInternalProxy 127.0.0.1
CONF

# One key with a limit that is never reached, one that is refused from its
# second request on, two for the hostile clients; and the shipped table.
my $LIMITED = <<'CONF';
LoadModule ratelimit_regional_module "${MODULE}"
Include "${ROOT}/conf/ratelimit_regional.conf"
RateLimitRegion us
RateLimitTable 524288
CONF

my %OVERRIDE = (
    'lsv2_pt_bench_0000000000' => '1000000/10',
    'lsv2_pt_bench_refused'    => '1/86400',
    'lsv2_pt_bench_border'     => '10/10',
    'lsv2_pt_bench_trickle'    => '10/10',
);

# Debian 12's module is not linked with the old libpcre that it needs. It
# identifies clients by address only, here from a header, and counts to 32767.
my ($OLD_PCRE) = glob '/usr/lib/*/libpcre.so.3';
my $QOS = (defined $OLD_PCRE ? "LoadFile $OLD_PCRE\n" : '') . <<'CONF';
LoadModule setenvif_module "${MODULES}/mod_setenvif.so"
LoadModule qos_module "${MODULES}/mod_qos.so"
QS_ErrorResponseCode 429
QS_ClientEntries 100000
QS_ClientIpFromHeader x-client-ip
SetEnvIf Request_URI ^/one QS_One
SetEnvIf Request_URI ^/repos QS_Repos
SetEnvIf Request_URI ^/new QS_New
SetEnvIf Request_URI ^/window QS_Window
QS_ClientEventLimitCount 32000 1 QS_One
QS_ClientEventLimitCount 100 60 QS_Repos
QS_ClientEventLimitCount 1000 10 QS_New
QS_ClientEventLimitCount 10 10 QS_Window
CONF

my $NGINX = <<'CONF';
daemon off;
worker_processes 2;
pid DIR/nginx.pid;
error_log DIR/error_log crit;
events { worker_connections 512; }
http {
    access_log off;
    keepalive_requests 1000000000;
    default_type text/plain;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    limit_req_status 429;
    limit_req_log_level info;
    ZONES
    server {
        listen 127.0.0.1:PORT;
        root DIR/htdocs;
        location = /redirect { return 429; }
        LOCATIONS
    }
}
CONF

# path => rate and burst, as close as possible to the limits of the table.
my %LIMIT_REQ = (
    one    => [ '1000000r/s', 100_000 ],
    repos  => [ '100r/m',     99 ],
    new    => [ '100r/s',     999 ],
    window => [ '1r/s',       9 ],
    refused => [ '1r/m',      0 ],
);

my %START = (
    bare          => sub { start_httpd($_[0], $ADDRESSES) },
    limited       => sub { start_httpd($_[0], $ADDRESSES . $LIMITED . overrides() . ($_[1] // '')) },
    qos           => sub { start_httpd($_[0], $QOS) },
    nginx         => sub { start_nginx($_[0]) },
    nginx_limited => sub { start_nginx($_[0], %LIMIT_REQ) },
);

sub new {
    my ($class, $kind, @more) = @_;
    my $self = RateLimitBenchProcess::make($class, start_sec => 10, end_signal => 'TERM');
    make_path("$self->{dir}/htdocs");
    write_file("$self->{dir}/htdocs/$_", "hello, world\n") for @FILES;
    $START{$kind}->($self, @more);
    $self->wait_for_port;
    return $self;
}

sub ports { return [ $_[0]{port} ] }

# The text of a request of one of RateLimitBenchWindow's clients.
sub window_request {
    my ($self, $pattern) = @_;
    my %address = (border => '10.99.0.1', trickle => '10.99.0.2');
    return "GET /window HTTP/1.1\r\nHost: localhost\r\nx-api-key: lsv2_pt_bench_$pattern\r\n"
        . "x-client-ip: $address{$pattern}\r\n\r\n";
}

# Seconds of processor time of the parent and its children so far.
sub cpu {
    my ($self) = @_;
    return cpu_sec($self->{pid}, child_pids($self->{pid}));
}

# --- httpd ------------------------------------------------------------------------

sub start_httpd {
    my ($self, $lines) = @_;
    my %define = (DIR => $self->{dir}, PORT => $self->{port}, ROOT => root(),
        MODULES => modules_dir(),
        MODULE => build_dir() . '/mod_ratelimit_regional.so');
    my $conf = "$self->{dir}/httpd.conf";
    write_file($conf,
        (map { qq(Define $_ "$define{$_}"\n) } sort keys %define),
        $HTTPD, is_root() ? "User www-data\nGroup www-data\n" : (),
        qq(Redirect 429 /redirect\n), $lines);
    $self->run({}, httpd(), '-f', $conf, '-D', 'FOREGROUND');
    return;
}

sub overrides {
    return join '', map {
        'RateLimitOverride sha256:' . substr(sha256_hex($_), 0, 32)
            . " default-api $OVERRIDE{$_}\n"
    } sort keys %OVERRIDE;
}

# --- nginx ------------------------------------------------------------------------

sub start_nginx {
    my ($self, %limit) = @_;
    my %value = (DIR => $self->{dir}, PORT => $self->{port},
        ZONES => '', LOCATIONS => '');
    for my $name (sort keys %limit) {
        my ($rate, $burst) = @{ $limit{$name} };
        my $shape = $burst ? "burst=$burst nodelay" : '';
        $value{ZONES} .= 'limit_req_zone $http_x_api_key '
            . "zone=$name:256m rate=$rate;\n";
        $value{LOCATIONS} .=
            "location = /$name { limit_req zone=$name $shape; }\n";
    }
    my $text = $NGINX;
    $text =~ s/\b(DIR|PORT|ZONES|LOCATIONS)\b/$value{$1}/g;
    $text = (is_root() ? "user www-data;\n" : '') . $text;
    my $conf = "$self->{dir}/nginx.conf";
    write_file($conf, $text);
    $self->run({}, 'nginx', '-e', "$self->{dir}/error_log", '-p', $self->{dir},
        '-c', $conf);
    return;
}

1;
