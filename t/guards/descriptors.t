# SPDX-License-Identifier: Apache-2.0
# Every descriptor that a module opens is closed on exec from its first moment
# on: what httpd starts, piped loggers and CGI scripts, gets none of them.
# clang-tidy's android-cloexec-* says the same, but not of all of these.
use strict;
use warnings;
use AgentTest::Source;
use Test::More;

my $OPENING = join '|', qw(open openat open64 pipe pipe2 socket socketpair accept
    accept4 epoll_create epoll_create1 eventfd signalfd timerfd_create
    inotify_init inotify_init1 memfd_create);

# In other calls the flag is in another's hands: mode "e", or no flag at all.
# glibc's opendir() sets it.
my $NEVER = join '|', qw(fopen fdopen popen mkstemp dup creat);

for my $file (source_files(qr{\Amod_\w+/.*\.[ch]\z})) {
    my $text = ${ without_comments($file) };
    my @open;
    # A call, not a declaration, a member or a longer name; its arguments may
    # hold one more level of parentheses.
    while ($text =~ /(?<![\w.>*])($OPENING)(\((?:[^()]++|(?2))*\))/g) {
        push @open, "$1$2" if $2 !~ /CLOEXEC/;
    }
    push @open, $1 while $text =~ /(?<![\w.>*])((?:$NEVER)\([^;]*;)/g;
    is join("\n", @open), '', $file;
}

done_testing;
