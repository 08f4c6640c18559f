# SPDX-License-Identifier: Apache-2.0
# Packages that tests need, installed once below .build by lists with digests.
package AgentTest::Packages;
use strict;
use warnings;
use AgentTest::Env qw(slurp write_file);
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(LOCK_EX);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);

our @EXPORT_OK = qw(install_once make_venv install_npm);

# install_once($folder, [files], sub { my ($folder) = @_; ... }): calls the sub with an
# empty folder, unless it has been called for files with the same contents. One process
# at a time. Returns the folder.
sub install_once {
    my ($folder, $files, $install) = @_;
    my $wanted = sha256_hex(join '', map { slurp($_) } @{$files});
    make_path(dirname($folder));
    open my $lock, '>', "$folder.lock" or die "$folder.lock: $!\n";
    flock $lock, LOCK_EX or die "$folder.lock: $!\n";
    return $folder if slurp("$folder/installed") eq $wanted;
    remove_tree($folder);
    make_path($folder);
    $install->($folder);
    write_file("$folder/installed", $wanted);
    return $folder;
}

sub run {
    my (@words) = @_;
    my $output = qx(@words 2>&1);
    die "@words failed:\n$output" if $?;
    return;
}

# Debian's own, if it is there: that of the caller's PATH may be in a folder that the
# user of the runners cannot read.
sub interpreter {
    for my $program ('/usr/bin/python3', 'python3') {
        return $program if system("$program -c 'import ensurepip, venv' >/dev/null 2>&1") == 0;
    }
    die "no python3 has ensurepip and venv\n";
}

# A virtual environment with the packages of a list, which has all of them: with an
# extra of one, pip 23 looks beside it. They are compiled there, as `agentctl build`
# does: the user of runners cannot write there, and each start would compile them.
sub make_venv {
    my ($folder, $list) = @_;
    local $ENV{PYTHONPYCACHEPREFIX};
    delete $ENV{PYTHONPYCACHEPREFIX};
    run(interpreter(), '-m venv', "'$folder'");
    run("'$folder/bin/python'", qw(-m pip install --quiet --disable-pip-version-check
        --no-deps --require-hashes --only-binary :all: -r), "'$list'");
    return;
}

# The packages of a folder with package.json and package-lock.json, in another folder.
sub install_npm {
    my ($source, $folder) = @_;
    make_path($folder);
    for my $file (qw(package.json package-lock.json)) {
        copy("$source/$file", "$folder/$file") or die "$file: $!\n";
    }
    run("cd '$folder' && npm ci --ignore-scripts --no-audit --no-fund");
    return;
}

1;
