# SPDX-License-Identifier: Apache-2.0
# An nginx in front of a test server, with connections to it that are kept:
#
#   my $nginx = AgentTest::Nginx->new($server->url);
#   my $client = AgentTest::Client->new(url => $nginx->url);
#
# It never runs as root, and ends with the object.
package AgentTest::Nginx;
use strict;
use warnings;
use AgentTest::Env qw(free_port is_root server_user slurp write_file);
use AgentTest::Wait;
use Carp qw(croak);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();

my $CONF = <<'CONF';
daemon off;
master_process off;
pid DIR/pid;
error_log DIR/error_log;
worker_rlimit_nofile 4096;
events { worker_connections 2048; }
http {
    access_log off;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    upstream api {
        server SERVER;
        keepalive KEPT;
    }
    server {
        listen 127.0.0.1:PORT;
        location / {
            proxy_pass http://api;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host localhost;
        }
    }
}
CONF

# Debian installs it outside users' PATH.
sub program {
    my ($found) = grep { -x } map { "$_/nginx" } split(/:/, $ENV{PATH}), '/usr/sbin';
    return $found // croak 'nginx was not found';
}

sub new {
    my ($class, $url, %args) = @_;
    my $dir = tempdir('/tmp/agent-test-nginx.XXXXXX', CLEANUP => 0);
    my $self = bless { dir => $dir, port => free_port(), owner => $$ }, $class;
    my %value = (DIR => $dir, PORT => $self->{port}, KEPT => $args{kept} // 64,
        SERVER => $url =~ s{\Ahttp://}{}r);
    my $text = $CONF =~ s/\b(DIR|PORT|KEPT|SERVER)\b/$value{$1}/gr;
    write_file("$dir/conf", $text);
    $self->start;
    wait_for('nginx to listen', sub {
        waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid}
            and croak 'nginx ended: ', slurp("$dir/output"), slurp("$dir/error_log");
        return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}");
    });
    return $self;
}

sub start {
    my ($self) = @_;
    my $dir = $self->{dir};
    my (undef, undef, $user, $group) = getpwnam server_user();
    chown $user, $group, $dir or croak "$dir: $!";
    $self->{pid} = fork // croak "fork: $!";
    return if $self->{pid};
    if (is_root()) {
        $( = $group;
        $) = "$group $group";
        POSIX::setuid($user);
    }
    open STDIN,  '<', '/dev/null';
    open STDOUT, '>', "$dir/output";
    open STDERR, '>&', \*STDOUT;
    exec program(), '-e', "$dir/error_log", '-p', $dir, '-c', "$dir/conf"
        or POSIX::_exit(127);
}

sub url { return "http://127.0.0.1:$_[0]{port}" }

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($@, $!, $?);
    if ($self->{pid}) {
        kill TERM => $self->{pid};
        waitpid $self->{pid}, 0;
    }
    remove_tree($self->{dir});
    return;
}

1;
