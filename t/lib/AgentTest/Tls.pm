# SPDX-License-Identifier: Apache-2.0
# A virtual host with TLS beside the plain one of a test server:
#
#   my $tls = AgentTest::Tls->new;
#   AgentTest::Server->start_with_client($tls->lines);
#   $tls->url; $tls->port
#   $tls->lines('AgentDeployment shop')         # with more lines in the host
#   $tls->create_client('dora'); $tls->client   # its client certificate, for AgentTest::Client
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
    my $self = bless { dir => $dir, port => free_port() }, $class;
    $self->create('localhost', 'cert', 'key');
    return $self;
}

sub create {
    my ($self, $name, @files) = @_;
    my ($cert, $key) = map { "$self->{dir}/$_" } @files;
    my $output = qx(openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj '/CN=$name' -keyout $key -out $cert 2>&1);
    croak "openssl: $output" if $?;
    chmod 0644, $key or croak "$key: $!";
    return ($cert, $key);
}

# A certificate that is its own authority: the lines that demand it of clients.
sub create_client {
    my ($self, $name) = @_;
    @{$self}{qw(client_cert client_key)} = $self->create($name, 'client-cert', 'client-key');
    return ('SSLVerifyClient require', "SSLCACertificateFile $self->{client_cert}");
}

# Options of IO::Socket::SSL.
sub client {
    my ($self) = @_;
    return { SSL_verify_mode => 0, $self->{client_cert} ? (SSL_cert_file => $self->{client_cert}, SSL_key_file => $self->{client_key}) : () };
}

sub port { return $_[0]{port} }
sub url  { return "https://127.0.0.1:$_[0]{port}" }

# Of httpd.conf.
sub lines {
    my ($self, @more) = @_;
    my $address = "127.0.0.1:$self->{port}";
    return ('LoadModule ssl_module "${MODULES}/mod_ssl.so"', "Listen $address",
        "<VirtualHost $address>", 'SSLEngine on',
        "SSLCertificateFile $self->{dir}/cert", "SSLCertificateKeyFile $self->{dir}/key", @more,
        '</VirtualHost>');
}

1;
