# SPDX-License-Identifier: Apache-2.0
# Apache::Test's configuration object, with our own httpd.conf in place of the
# one it would compose from the distribution's.
package AgentTest::TestConfig;
use strict;
use warnings;
use parent 'Apache::TestConfig';

use AgentTest::Conf qw(write_conf);
use AgentTest::Server;
use AgentTest::TestServer;

sub new_test_server {
    my ($self, $args) = @_;
    return AgentTest::TestServer->new($args || $self);
}

# Neither the distribution's modules nor mod_perl's idea of where httpd is.
sub inherit_config { return }
sub configure_apxs { return }

sub generate_httpd_conf {
    my ($self) = @_;
    my $vars = $self->{vars};
    $self->gendir($vars->{t_logs});
    write_conf(
        dir      => $vars->{serverroot},
        port     => $vars->{port},
        database => $ENV{AGENT_TEST_DATABASE},
        config   => AgentTest::Server::shared_config(),
    );
    return;
}

1;
