# SPDX-License-Identifier: Apache-2.0
# Where things are: the tree, the build under test, httpd and its modules.
package AgentTest::Env;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);

our @EXPORT_OK = qw(root variant build_dir httpd modules_dir is_root
    server_user is_sanitized free_port slurp);

# The top of the tree.
sub root { return abs_path(dirname(__FILE__) . '/../../..') }

sub variant   { return $ENV{AGENT_TEST_VARIANT} || 'release' }
sub build_dir { return root() . '/.build/' . variant() }

sub is_sanitized { return variant() eq 'asan' || variant() eq 'tsan' }
sub is_root      { return $> == 0 }

# httpd's children, when their parent may choose.
sub server_user { return is_root() ? 'www-data' : scalar getpwuid $> }

my %apxs;

sub apxs {
    my ($name) = @_;
    $apxs{$name} //= do {
        my $value = qx(\$(command -v apxs || command -v apxs2) -q $name);
        die "apxs does not know $name\n" if $?;
        chomp $value;
        $value;
    };
    return $apxs{$name};
}

sub httpd       { return apxs('SBINDIR') . '/' . apxs('PROGNAME') }
sub modules_dir { return apxs('LIBEXECDIR') }

# A port of 127.0.0.1 that nobody listens on.
sub free_port {
    require IO::Socket::INET;
    my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
        or die "no free port: $!\n";
    return $socket->sockport;
}

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or return '';
    local $/;
    return scalar <$in> // '';
}

1;
