# SPDX-License-Identifier: Apache-2.0
# Paths: the tree, the build under test, httpd and its modules.
package AgentTest::Env;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);

our @EXPORT_OK = qw(root variant build_dir httpd modules_dir is_root
    server_user is_sanitized is_counted free_port slurp write_file);

# The top of the tree.
sub root { return abs_path(dirname(__FILE__) . '/../../..') }

sub variant   { return $ENV{AGENT_TEST_VARIANT} || 'release' }
sub build_dir { return root() . '/.build/' . variant() }

sub is_sanitized { return variant() eq 'asan' || variant() eq 'tsan' }
# Whether it counts executed lines; a process that is killed writes no counts.
sub is_counted   { return variant() eq 'coverage' }
sub is_root      { return $> == 0 }

# The user of httpd's children if their parent is root.
sub server_user { return is_root() ? 'www-data' : scalar getpwuid $> }

# Kept in the environment: forks and the tests of a suite do not start apxs, a Perl
# script that starts a dozen others, again.
sub apxs {
    my ($name) = @_;
    return $ENV{"AGENT_TEST_APXS_$name"} //= do {
        my $value = qx(\$(command -v apxs || command -v apxs2) -q $name);
        die "apxs does not know $name\n" if $?;
        chomp $value;
        $value;
    };
}

sub httpd       { return apxs('SBINDIR') . '/' . apxs('PROGNAME') }
sub modules_dir { return apxs('LIBEXECDIR') }

my %reserved;

# A free port of 127.0.0.1, reserved until this process ends: it is below the range
# from which the kernel assigns ports, and an abstract socket shows other tests
# that it is in use.
sub free_port {
    require IO::Socket::INET;
    require IO::Socket::UNIX;
    my ($end) = slurp('/proc/sys/net/ipv4/ip_local_port_range') =~ /(\d+)/;
    $end = 32_768 if ($end // 0) < 20_000;
    for my $try (1 .. 10_000) {
        my $port = 10_000 + ($$ * 31 + $try) % ($end - 10_000);
        next if $reserved{$port};
        my $mark = IO::Socket::UNIX->new(Listen => 1,
            Local => "\0agent-test-port-$port") or next;
        IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
            LocalPort => $port) or next;
        $reserved{$port} = $mark;
        return $port;
    }
    die "no free port\n";
}

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or return '';
    local $/;
    return scalar <$in> // '';
}

# Returns the name of the file.
sub write_file {
    my ($file, @text) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} @text;
    close $out or die "$file: $!\n";
    return $file;
}

1;
