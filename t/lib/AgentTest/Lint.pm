# SPDX-License-Identifier: Apache-2.0
# Runs a checker over the modules' C files; its output about a file is the
# diagnosis of one test.
package AgentTest::Lint;
use strict;
use warnings;
use AgentTest::Env qw(root slurp write_file);
use AgentTest::Source;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use POSIX ();
use Test::More;

our @EXPORT = qw(lint_each compiler_flags warning_flags);

my $KEPT = '.build/lint';

# The compiler flags of the Makefile.
sub compiler_flags { return make_output('print-flags') }
sub warning_flags  { return make_output('print-warnings') }

sub make_output {
    my ($target) = @_;
    my $words = qx(cd '@{[root()]}' && make -s -f Makefile.apxs $target);
    chomp $words;
    return $words;
}

# lint_each(checker => 'gcc -c -o /dev/null', compiler => 'gcc', flags => '-I...',
# after => '-- -I...', config => [files]): a test for each file, in the order in
# which they end, one at a time on each processor. `after` follows the name of
# the file, by default the flags.
# A file without a finding is not checked again while the checker's version, its
# options and every file that the compiler reads for it are the same: .build/lint
# holds their digests. Without .build each file is checked. A CI's checkout is used
# once: nothing is kept there.
sub lint_each {
    my (%args) = @_;
    chdir root() or die root() . ": $!\n";
    chomp(my $jobs = qx(nproc));
    my $folder = tempdir(CLEANUP => 1);
    my ($name) = $args{checker} =~ /\A(\S+)/;
    make_path("$KEPT/$name");
    # A new header may be found in place of another one.
    my $key = sha256_hex(qx($name --version), %args{qw(checker compiler flags)}, $args{after} // '',
        (map { slurp($_) } @{ $args{config} // [] }), source_files(qr/\.h\z/));
    my %running;
    for my $file (source_files(qr{\Amod_\w+/.*\.c\z})) {
        my $kept = "$KEPT/$name/" . $file =~ tr{/}{+}r;
        if (is_unchanged($kept, $key)) {
            pass("$file has no finding");
            next;
        }
        end_one($folder, \%running) if keys %running >= $jobs;
        my $pid = fork // die "fork: $!\n";
        POSIX::_exit(check($file, $kept, $key, "$folder/$$", %args, is_once => $ENV{CI})) if $pid == 0;
        $running{$pid} = $file;
    }
    end_one($folder, \%running) while %running;
    done_testing;
    return;
}

# Whether the file had no finding and nothing that was read for it has changed.
sub is_unchanged {
    my ($kept, $key) = @_;
    my ($was, @read) = split /\n/, slurp($kept);
    return ($was // '') eq $key && !grep { my ($digest, $path) = split ' '; $digest ne digest_of($path) } @read;
}

my %digest;

sub digest_of {
    my ($path) = @_;
    return $digest{$path} //= sha256_hex(slurp($path));
}

# In a process of its own: true if there is a finding.
sub check {
    my ($file, $kept, $key, $output, %args) = @_;
    # Before the checker reads them.
    my @read = $args{is_once} ? () : files_of("$args{compiler} $args{flags}", $file);
    my $after = $args{after} // $args{flags};
    system "exec $args{checker} $file $after >$output 2>&1";
    return 1 if $?;
    if (@read) {
        write_file("$kept.$$", "$key\n", map { digest_of($_) . " $_\n" } @read);
        rename "$kept.$$", $kept;
    }
    return 0;
}

# All files that the compiler reads for a file, in make's syntax.
sub files_of {
    my ($compiler, $file) = @_;
    my $rule = qx($compiler -M $file 2>/dev/null);
    return if $?;
    return grep { $_ ne '\\' } split ' ', $rule =~ s/\A\S+://r;
}

sub end_one {
    my ($folder, $running) = @_;
    my $pid = wait;
    ok $? == 0, delete($running->{$pid}) . ' has no finding' or diag slurp("$folder/$pid");
    return;
}

1;
