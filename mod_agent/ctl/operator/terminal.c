/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads secrets from a terminal; see terminal.h. getpass(), and APR's function,
 * turn ^C off, and leave the terminal without echo after a signal. Here signals
 * are blocked while the echo is off, and read as events: nothing may wait for
 * the terminal then, which ^S stops, but poll().
 */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

typedef struct terminal_t {
    int in;
    int out;
    /* A signalfd. */
    int signals;
    sigset_t blocked;
    sigset_t former_mask;
    /* As it was, while it is hidden. */
    struct termios former;
    bool is_hidden;
} terminal_t;

/* All but those of faults, those that have no effect, and those that stop a
 * process in the background when it uses the terminal. After SIGCONT, with
 * which a shell may have turned the echo on, the prompt is shown again. */
static void list_signals(sigset_t *set)
{
    static const int others[] = {SIGILL,  SIGTRAP,  SIGBUS, SIGFPE,  SIGSEGV,
                                 SIGCHLD, SIGWINCH, SIGURG, SIGTTIN, SIGTTOU};

    sigfillset(set);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        sigdelset(set, others[i]);
    }
}

/* Lets a signal, or 0, end or stop the process, unless it is ignored, and waits
 * to be in the foreground: tcflush() stops a process in the background, where
 * the state of the terminal is that of the shell. */
static bool wait_for_foreground(const terminal_t *terminal, int number)
{
    bool is_foreground;

    if (number != 0 && number != SIGCONT) {
        raise(number);
    }
    sigprocmask(SIG_SETMASK, &terminal->former_mask, NULL);
    is_foreground = tcflush(terminal->in, TCIFLUSH) == 0;
    sigprocmask(SIG_BLOCK, &terminal->blocked, NULL);
    return is_foreground;
}

/* Input of before is not the secret. */
static bool hide(terminal_t *terminal)
{
    struct termios hidden;

    if (!terminal->is_hidden
        && tcgetattr(terminal->in, &terminal->former) != 0) {
        return false;
    }
    hidden = terminal->former;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    hidden.c_lflag |= ECHONL | ISIG | ICANON;
    terminal->is_hidden = tcsetattr(terminal->in, TCSANOW, &hidden) == 0;
    return terminal->is_hidden && tcflush(terminal->in, TCIFLUSH) == 0;
}

/* Drops the rest of a long line. In the background the terminal is the
 * shell's. */
static void restore(terminal_t *terminal)
{
    pid_t group = tcgetpgrp(terminal->in);

    if (terminal->is_hidden && (group < 0 || group == getpgrp())) {
        tcflush(terminal->in, TCIFLUSH);
        tcsetattr(terminal->in, TCSANOW, &terminal->former);
        terminal->is_hidden = false;
    }
}

/* Returns the signal that is received before the event; 0: none. */
static int wait_for(const terminal_t *terminal, int fd, short event)
{
    struct pollfd events[] = {{fd, event, 0}, {terminal->signals, POLLIN, 0}};
    struct signalfd_siginfo received;

    while (poll(events, 2, -1) < 0) {
    }
    return (events[1].revents & POLLIN) != 0
            && read(terminal->signals, &received, sizeof(received))
                == (ssize_t)sizeof(received)
        ? (int)received.ssi_signo
        : 0;
}

/* As wait_for(). A text that cannot be shown is lost. */
static int show(const terminal_t *terminal, const char *text)
{
    int number = 0;
    ssize_t written = 0;

    while (*text != '\0' && (written >= 0 || errno == EAGAIN)) {
        number = wait_for(terminal, terminal->out, POLLOUT);
        if (number != 0) {
            return number;
        }
        written = write(terminal->out, text, strlen(text));
        text += written > 0 ? written : 0;
    }
    return 0;
}

/* As wait_for(); without a signal, sets the length of the line. */
static int read_line(const terminal_t *terminal, char *line, size_t size,
                     ssize_t *length)
{
    int number;

    do {
        number = wait_for(terminal, terminal->in, POLLIN);
        if (number != 0) {
            return number;
        }
        *length = read(terminal->in, line, size);
    } while (*length < 0 && errno == EAGAIN);
    return 0;
}

static ssize_t ask(terminal_t *terminal, char *line, size_t size,
                   const char *prompt)
{
    const char *before = "";
    ssize_t length = -1;
    int number = 0;

    do {
        if (!wait_for_foreground(terminal, number) || !hide(terminal)) {
            break;
        }
        number = show(terminal, before);
        if (number == 0) {
            number = show(terminal, prompt);
        }
        if (number == 0) {
            number = read_line(terminal, line, size, &length);
        }
        restore(terminal);
        before = "\n";
    } while (number != 0);
    return length;
}

bool ctl_terminal_read(char *line, size_t size, const char *prompt)
{
    int device = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    terminal_t terminal = {
        .in = device >= 0 ? device : STDIN_FILENO,
        .out = device >= 0 ? device : STDERR_FILENO,
    };
    ssize_t length = -1;

    list_signals(&terminal.blocked);
    sigprocmask(SIG_BLOCK, &terminal.blocked, &terminal.former_mask);
    terminal.signals = signalfd(-1, &terminal.blocked, SFD_CLOEXEC);
    if (terminal.signals >= 0) {
        length = ask(&terminal, line, size - 1, prompt);
        close(terminal.signals);
    }
    sigprocmask(SIG_SETMASK, &terminal.former_mask, NULL);
    if (device >= 0) {
        close(device);
    }
    line[length > 0 ? length : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return *line != '\0';
}
