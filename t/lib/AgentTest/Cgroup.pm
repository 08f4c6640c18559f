# SPDX-License-Identifier: Apache-2.0
# A cgroup (v2) for a test, where this machine allows to make one:
#
#   my $cgroup = AgentTest::Cgroup->new or plan skip_all => AgentTest::Cgroup::why_not();
#
# Destroying the object removes it.
package AgentTest::Cgroup;
use strict;
use warnings;
use AgentTest::Env qw(slurp write_file);

my $reason = '';

sub why_not { return $reason }

sub mount_point {
    my ($line) = grep { / cgroup2 / } split /\n/, slurp('/proc/mounts');
    return $line && (split / /, $line)[1];
}

sub new {
    my ($class) = @_;
    my $root = mount_point();
    if (!$root) {
        $reason = 'no file system of cgroup v2 is mounted';
        return;
    }
    my $dir = "$root/agent-test.$$";
    if (!mkdir $dir) {
        $reason = "$dir cannot be made: $!";
        return;
    }
    return bless { root => $root, dir => $dir, pid => $$ }, $class;
}

sub dir { return $_[0]{dir} }

# Names of the cgroups below it.
sub children { my ($self) = @_; return sort map { s{.*/}{}r } grep { -d } glob "$self->{dir}/*" }

# The name of the cgroup below it in which the process is.
sub of {
    my ($self, $pid) = @_;
    my ($path) = slurp("/proc/$pid/cgroup") =~ /^0::(.*)/m;
    return "$self->{root}$path" =~ m{\A\Q$self->{dir}\E/(.+)} ? $1 : undef;
}

sub controllers { return split ' ', slurp("$_[0]{dir}/cgroup.controllers") }

sub enable {
    my ($self, @controllers) = @_;
    write_file("$self->{dir}/cgroup.subtree_control", join ' ', map { "+$_" } @controllers);
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{pid} != $$;
    rmdir $_ or warn "$_: $!\n" for map({ "$self->{dir}/$_" } $self->children), $self->{dir};
    return;
}

1;
