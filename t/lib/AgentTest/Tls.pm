# SPDX-License-Identifier: Apache-2.0
# A virtual host with TLS beside the plain one of a test server:
#
#   my $tls = AgentTest::Tls->new;
#   AgentTest::Server->start_with_client($tls->lines);
#   $tls->url; $tls->port
package AgentTest::Tls;
use strict;
use warnings;
use AgentTest::Env qw(free_port);
use Carp qw(croak);
use File::Temp qw(tempdir);

# Self-signed, for localhost; removed with the object.
sub new {
    my ($class) = @_;
    my $dir = tempdir(CLEANUP => 1);
    chmod 0755, $dir or croak "$dir: $!";
    my $output = qx(openssl req -x509 -newkey rsa:2048 -nodes -days 1 \\
        -subj /CN=localhost -keyout $dir/key -out $dir/cert 2>&1);
    croak "openssl: $output" if $?;
    chmod 0644, "$dir/key" or croak "$dir/key: $!";
    return bless { dir => $dir, port => free_port() }, $class;
}

sub port { return $_[0]{port} }
sub url  { return "https://127.0.0.1:$_[0]{port}" }

# Of httpd.conf.
sub lines {
    my ($self) = @_;
    my $address = "127.0.0.1:$self->{port}";
    return ('LoadModule ssl_module "${MODULES}/mod_ssl.so"', "Listen $address",
        "<VirtualHost $address>", 'SSLEngine on',
        "SSLCertificateFile $self->{dir}/cert", "SSLCertificateKeyFile $self->{dir}/key",
        '</VirtualHost>');
}

1;
