# SPDX-License-Identifier: Apache-2.0
# Writes the configuration of an httpd under test: Defines with the values of this
# server, then t/conf/httpd.conf, then the caller's own lines.
package AgentTest::Conf;
use strict;
use warnings;
use AgentTest::Env qw(root build_dir modules_dir is_root write_file);
use Exporter 'import';
use File::Path qw(make_path);

our @EXPORT_OK = qw(write_conf);

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

1;
