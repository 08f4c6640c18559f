# SPDX-License-Identifier: Apache-2.0
# Writes the configuration of an httpd under test: Defines with the values of this
# server, then t/conf/httpd.conf, then the caller's own lines. And parts of such lines:
#
#   AgentTest::Server->new(config => join '', one_child(40), demo_graph(),
#       key_location("AgentDeployment shop account=$account"), platform_location('AgentSignUp On'), $more);
package AgentTest::Conf;
use strict;
use warnings;
use AgentTest::Env qw(root build_dir modules_dir is_root write_file);
use Exporter 'import';
use File::Path qw(make_path);

our @EXPORT_OK = qw(write_conf one_child demo_graph location key_location platform_location);

# write_conf(dir => ..., port => ..., database => 'host=...', config => text):
# the path of the file. dir must be open to httpd's children.
sub write_conf {
    my (%args) = @_;
    my $dir = $args{dir};
    make_path(map { "$dir/$_" } qw(conf logs htdocs));
    my %define = (
        ROOT      => root(),
        BUILD_DIR => build_dir(),
        MODULES   => modules_dir(),
        DIR       => $dir,
        PORT      => $args{port},
        DATABASE  => $args{database},
    );
    my $file = "$dir/conf/httpd.conf";
    return write_file($file,
        (map { qq(Define $_ "$define{$_}"\n) } sort keys %define),
        is_root() ? "Define AS_ROOT\n" : (),
        qq(Include "\${ROOT}/t/conf/httpd.conf"\n),
        # Where the system's Node is too old (AgentTest::Node).
        $ENV{AGENT_TEST_NODE} && $args{config} =~ /AgentApplication/ ? qq(AgentNodeProgram "$ENV{AGENT_TEST_NODE}"\n) : (),
        $args{config});
}

# One child with this many threads, for a test of what a child knows, counts or keeps.
sub one_child {
    my ($threads) = @_;
    return <<"CONF";
StartServers 1
ServerLimit 1
ThreadsPerChild $threads
ThreadLimit $threads
MinSpareThreads 1
MaxSpareThreads $threads
MaxRequestWorkers $threads
CONF
}

# The graph `agent`, which the built-in runner executes.
sub demo_graph {
    return <<'CONF';
AgentRunner "${BUILD_DIR}/agent-runner"
# All clients of the tests have one address.
AgentMaxWaitersPerAddress 0
<AgentGraph agent>
    AgentModel demo
    AgentTool clock builtin
</AgentGraph>
CONF
}

# location('/desk', @lines): a section; below / with its AgentPrefix.
sub location {
    my ($path, @lines) = @_;
    unshift @lines, "AgentPrefix $path" if $path ne '/';
    return join "\n", qq(<Location "$path">), (map { "    $_" } @lines), "</Location>\n";
}

# The deployment API at /, for API keys. Without a Require of its own any key is let
# through, and the handler decides whether it opens the deployment.
sub key_location {
    my (@lines) = @_;
    push @lines, 'Require all granted' if !grep { /\ARequire / } @lines;
    return qq(LoadModule authn_core_module "\${MODULES}/mod_authn_core.so"\n) . location('/', 'SetHandler agent', 'AuthType AgentKey', @lines);
}

# The platform API at /platform, beside a key_location.
sub platform_location {
    my (@lines) = @_;
    return location('/platform', 'SetHandler agent-platform', 'AuthType None', 'Require all granted', @lines);
}

1;
