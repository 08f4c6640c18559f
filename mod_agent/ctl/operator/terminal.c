/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads secrets from a terminal; see terminal.h. getpass(), and APR's function,
 * turn ^C off, and leave the terminal without echo after a signal. Here signals
 * are blocked while the echo is off, and read as events.
 */
#include "terminal.h"

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
    struct termios former;
} terminal_t;

/* The signals that end or stop a process and can be blocked. A process in the
 * background is stopped, by another one, before it changes the terminal. */
static void list_signals(sigset_t *set)
{
    static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,
                                  SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};

    sigemptyset(set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        sigaddset(set, signals[i]);
    }
}

/* A message that cannot be shown is lost. */
static void show(const terminal_t *terminal, const char *text)
{
    ssize_t written = write(terminal->out, text, strlen(text));

    (void)written;
}

/* Input of before is not the secret. */
static bool hide(terminal_t *terminal)
{
    struct termios hidden;

    if (tcgetattr(terminal->in, &terminal->former) != 0) {
        return false;
    }
    hidden = terminal->former;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    hidden.c_lflag |= ECHONL | ISIG | ICANON;
    return tcsetattr(terminal->in, TCSAFLUSH, &hidden) == 0;
}

/* With the rest of a long line. */
static void restore(const terminal_t *terminal)
{
    tcsetattr(terminal->in, TCSAFLUSH, &terminal->former);
}

/* Returns the signal that is received before a line can be read; 0: none. */
static int wait_for_line(const terminal_t *terminal)
{
    struct pollfd events[] = {{terminal->in, POLLIN, 0},
                              {terminal->signals, POLLIN, 0}};
    struct signalfd_siginfo received;

    while (poll(events, 2, -1) < 0) {
    }
    return (events[1].revents & POLLIN) != 0
            && read(terminal->signals, &received, sizeof(received))
                == (ssize_t)sizeof(received)
        ? (int)received.ssi_signo
        : 0;
}

/* Ends or stops the process, unless the signal is ignored. */
static void deliver(const terminal_t *terminal, int number)
{
    raise(number);
    sigprocmask(SIG_SETMASK, &terminal->former_mask, NULL);
    sigprocmask(SIG_BLOCK, &terminal->blocked, NULL);
}

static ssize_t ask(terminal_t *terminal, char *line, size_t size,
                   const char *prompt)
{
    ssize_t length = -1;
    int number;

    do {
        if (!hide(terminal)) {
            return -1;
        }
        show(terminal, prompt);
        number = wait_for_line(terminal);
        if (number == 0) {
            length = read(terminal->in, line, size);
        }
        restore(terminal);
        if (number != 0) {
            show(terminal, "\n");
            deliver(terminal, number);
        }
    } while (number != 0);
    return length;
}

bool ctl_terminal_read(char *line, size_t size, const char *prompt)
{
    int device = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
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
