# SPDX-License-Identifier: Apache-2.0
# TLS to the store, where hiredis was built with it; elsewhere it is refused.
use strict;
use warnings;
use AgentTest::Env qw(free_port slurp write_file);
use AgentTest::Wait;
use File::Temp qw(tempdir);
use RateLimitTest;
use GroupTest::Redis;
use Test::More;

my $rules = <<'CONF';
RateLimitRule ten =/ten key=api-key us=10/10
RateLimitRegion us
RateLimitStoreHosts 1
RateLimitStoreTimeout 1s
CONF

sub check {
    my ($lines) = @_;
    my (undef, $output) = RateLimitTest->new(config => $rules . $lines)->check_config;
    return $output;
}

if (check("RateLimitStore rediss://127.0.0.1\n") !~ /Syntax OK/) {
    for ('RateLimitStore rediss://127.0.0.1', 'RateLimitStore rediss+sentinel://127.0.0.1/region', 'RateLimitStore rediss+cluster://127.0.0.1',
        'RateLimitStoreTLS name=store') {
        like check("$_\n"), qr/this build has no TLS to the store, since hiredis has none/, "without TLS in hiredis: $_ is refused";
    }
    done_testing;
    exit;
}

# An authority, and certificates of it for the server and a client.
my $dir = tempdir('/tmp/agent-test-tls.XXXXXX', CLEANUP => 1);
sub openssl {
    my (@words) = @_;
    system("openssl @words >>$dir/log 2>&1") == 0 or die "openssl @words: " . slurp("$dir/log");
    return;
}
for my $name ('ca', 'other') {
    openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=$name -keyout $dir/$name.key -out $dir/$name.pem");
}
my %alternative = (server => 'DNS:store.example,IP:127.0.0.1', named => 'DNS:store.example', client => 'DNS:client');
for my $name (sort keys %alternative) {
    my $extension = write_file("$dir/$name.ext", "subjectAltName=$alternative{$name}\n");
    openssl("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=$name -keyout $dir/$name.key -out $dir/$name.csr");
    openssl("x509 -req -in $dir/$name.csr -CA $dir/ca.pem -CAkey $dir/ca.key -CAcreateserial -days 2 -extfile $extension -out $dir/$name.pem");
}

sub start_redis {
    my ($certificate, $clients) = @_;
    my $port = free_port();
    my $redis = GroupTest::Redis->new(options => [ '--tls-port', $port, '--tls-cert-file', "$dir/$certificate.pem",
        '--tls-key-file', "$dir/$certificate.key", '--tls-ca-cert-file', "$dir/ca.pem", '--tls-auth-clients', $clients ]);
    return ($redis, $port);
}

# A host that uses the store, or what its log says.
sub outcome {
    my ($port, $options) = @_;
    my $host = RateLimitTest->new(config => $rules . "RateLimitStore rediss://127.0.0.1:$port\n$options\n");
    $host->start;
    return wait_for('a grant or an error', sub {
        return 'granted' if $host->ask('GET', '/ten', { 'x-api-key' => 'key' })->{status} != 429;
        return slurp($host->dir . '/logs/error_log') =~ /RLR0115: the store does not answer: (.*?);/ ? $1 : undef;
    });
}

my ($redis, $port) = start_redis('server', 'no');
is outcome($port, "RateLimitStoreTLS ca=$dir/ca.pem"), 'granted', 'a server of the authority, with its address in the certificate';
# The next host would be one too many.
$redis->run('FLUSHALL');
is outcome($port, "RateLimitStoreTLS ca=$dir/ca.pem name=store.example"), 'granted', 'a server of the authority, with the name that is given in the certificate';
like outcome($port, "RateLimitStoreTLS ca=$dir/ca.pem name=another.example"), qr/TLS: .*verify failed/, 'a server with another name in its certificate is refused';
like outcome($port, "RateLimitStoreTLS ca=$dir/other.pem"), qr/TLS: .*verify failed/, 'a server of another authority is refused';
like outcome($port, ''), qr/TLS: .*verify failed/, 'without the directive the authorities are those of the system';

my ($named, $named_port) = start_redis('named', 'no');
like outcome($named_port, "RateLimitStoreTLS ca=$dir/ca.pem"), qr/TLS: .*verify failed/, 'a certificate without the address is refused';

my ($strict, $strict_port) = start_redis('server', 'yes');
is outcome($strict_port, "RateLimitStoreTLS ca=$dir/ca.pem certificate=$dir/client.pem key=$dir/client.key"), 'granted',
    'a server that wants a certificate of the client gets it';
isnt outcome($strict_port, "RateLimitStoreTLS ca=$dir/ca.pem"), 'granted', 'a server that wants one refuses hosts without it';

for (
    [ 'ca=/nonexistent' => qr/expected certificates of authorities in PEM, got '\/nonexistent'/ ],
    [ "certificate=$dir/client.pem" => qr/expected certificate= and key= together/ ],
    [ "certificate=$dir/client.key key=$dir/client.key" => qr/expected a certificate in PEM/ ],
    [ "certificate=$dir/client.pem key=$dir/server.key" => qr/expected the certificate's private key/ ],
    [ 'verify=off' => qr/expected ca=, certificate=, key= or name=, got 'verify=off'/ ],
) {
    like check("RateLimitStoreTLS $_->[0]\n"), $_->[1], "RateLimitStoreTLS $_->[0] is refused, and the error says why";
}

done_testing;
