# SPDX-License-Identifier: Apache-2.0
# Every descriptor that a module opens is closed on exec from the start: programs
# that httpd executes, such as piped loggers and CGI scripts, inherit none of them.
# clang-tidy's android-cloexec-* checks only some of these calls.
use strict;
use warnings;
use AgentTest::Source;
use Test::More;

my $OPENING = join '|', qw(open openat open64 pipe pipe2 socket socketpair accept
    accept4 epoll_create epoll_create1 eventfd signalfd timerfd_create
    inotify_init inotify_init1 memfd_create recvmsg recvmmsg mkostemp dup3
    pidfd_getfd);

# Other calls take no such flag, or only mode "e". glibc's opendir() sets it, fdopen()
# opens none.
my $NEVER = join '|', qw(fopen freopen popen tmpfile mkstemp dup creat);

# Calls that open a descriptor which a program would inherit. A call, not a
# declaration, a member or a longer name; its arguments may hold one more level
# of parentheses.
sub inheritable {
    my ($text) = @_;
    my @open;
    while ($text =~ /(?<![\w.>*])($OPENING)(\((?:[^()]++|(?2))*\))/g) {
        push @open, "$1$2" if $2 !~ /CLOEXEC/;
    }
    push @open, $1 while $text =~ /(?<![\w.>*])((?:$NEVER)\([^;]*);/g;
    push @open, $1 while $text =~ /(?<![\w.>*])(fcntl\([^;]*\bF_DUPFD\b[^;]*);/g;
    # dup2() has no flag. A literal number, as of standard output, is meant for the
    # next program.
    push @open, $1 while $text =~ /(?<![\w.>*])(dup2\([^;]*?,(?!\s*\d\))[^;]*);/g;
    return @open;
}

my %samples = (
    'fd = open(path, O_RDONLY);'                       => 'open(path, O_RDONLY)',
    'fd = open(path(a), O_RDONLY | O_CLOEXEC);'        => '',
    'pipe(fds);'                                       => 'pipe(fds)',
    'socketpair(AF_UNIX, SOCK_STREAM, 0, fds);'        => 'socketpair(AF_UNIX, SOCK_STREAM, 0, fds)',
    'fd = accept(listener, NULL, NULL);'               => 'accept(listener, NULL, NULL)',
    'fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);' => '',
    'fd = eventfd(0, EFD_NONBLOCK);'                   => 'eventfd(0, EFD_NONBLOCK)',
    'fd = epoll_create(1);'                            => 'epoll_create(1)',
    'recvmsg(fd, &header, 0);'                         => 'recvmsg(fd, &header, 0)',
    'recvmsg(fd, &header, MSG_CMSG_CLOEXEC);'          => '',
    'fd = mkstemp(name);'                              => 'mkstemp(name)',
    'fd = mkostemp(name, O_APPEND);'                   => 'mkostemp(name, O_APPEND)',
    'fd = mkostemp(name, O_CLOEXEC);'                  => '',
    'fd = fcntl(old, F_DUPFD, 3);'                     => 'fcntl(old, F_DUPFD, 3)',
    'fd = fcntl(old, F_DUPFD_CLOEXEC, 3);'             => '',
    'fd = dup(old);'                                   => 'dup(old)',
    'dup2(old, fd);'                                   => 'dup2(old, fd)',
    'dup2(fds[LOG], 1);'                               => '',
    'dup3(old, fd, 0);'                                => 'dup3(old, fd, 0)',
);
is join(' ', inheritable($_)), $samples{$_}, "the check is right about a sample: $_" for sort keys %samples;

for my $file (source_files(qr{\Amod_\w+/.*\.[ch]\z})) {
    is join("\n", inheritable(${ without_comments($file) })), '',
        "$file: every descriptor is closed on exec";
}

done_testing;
