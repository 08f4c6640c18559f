# SPDX-License-Identifier: Apache-2.0
# The application in JavaScript that tests the runner: fixtures/node, below .build
# with its packages, which are installed once from package-lock.json.
package NodeApplication;
use strict;
use warnings;
use AgentTest::Env qw(root slurp);
use ApplicationTest;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(:flock);
use File::Copy qw(copy);
use File::Path qw(make_path);

our @EXPORT_OK = qw(application runner program);

# The runner's program.
sub program { return root() . '/mod_agent/runners/node/main.mjs' }

# Installs the packages of a folder of fixtures, and copies its files beside them; a
# folder with other versions has the graphs of fixtures/node. Returns the application's
# folder.
sub application {
    my ($name) = @_;
    my $source = root() . "/t/runner/fixtures/$name";
    my $target = root() . "/.build/applications/$name";
    make_path($target);
    open my $lock, '>', "$target.lock" or die "$target.lock: $!\n";
    flock $lock, LOCK_EX or die "$target.lock: $!\n";
    my @files = sort glob "$source/*";
    push @files, map { root() . "/t/runner/fixtures/node/$_" } qw(graphs.mjs common.cjs langgraph.json) if $name ne 'node';
    my $state = sha256_hex(join '', map { slurp($_) } @files);
    my $is_new = slurp("$target/installed") ne $state;
    copy_files($target, @files) if $is_new;
    my $packages = sha256_hex(slurp("$source/package-lock.json"));
    if (slurp("$target/packages") ne $packages) {
        my $output = qx(cd '$target' && npm ci --ignore-scripts --no-audit --no-fund 2>&1);
        die "npm cannot install the application:\n$output" if $?;
        store("$target/packages", $packages);
    }
    store("$target/installed", $state) if $is_new;
    return $target;
}

sub copy_files {
    my ($target, @files) = @_;
    for my $file (@files) {
        copy($file, $target) or die "$file: $!\n";
    }
    return;
}

sub store {
    my ($file, $text) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    print {$out} $text;
    close $out or die "$file: $!\n";
    return;
}

# A runner of these graphs: runner(NAME => 'file:export', ...); with `fixtures` another folder,
# with `records` other records, with `store` another store.
sub runner {
    my (%graphs) = @_;
    my $directory = application(delete $graphs{fixtures} // 'node');
    my $arguments = delete $graphs{arguments};
    my ($records, $store) = delete @graphs{qw(records store)};
    return ApplicationTest->new(command => [ 'node', program(), @{ $arguments || [] } ],
        directory => $directory, graphs => \%graphs, records => $records, store => $store);
}

1;
