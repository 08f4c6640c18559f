/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an operand; see operand.h. */
#include "operand.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <apr_strings.h>
#include <bsd/readpassphrase.h>

#include "../../core/api_key.h"
#include "../base/output.h"

/* ---- the terminal ---- */

/* For a signal handler, which has no argument: the terminal before the prompt;
 * set before a signal can come. */
static int terminal_fd;
static struct termios terminal;

/* Async-signal-safe. The action of the signal is the default one again: it ends
 * the process when the handler returns. */
static void restore_terminal(int signal)
{
    struct termios now;

    if (tcgetattr(terminal_fd, &now) == 0 && (now.c_lflag & ECHO) == 0) {
        (void)!write(terminal_fd, "\n", 1);
        tcsetattr(terminal_fd, TCSANOW, &terminal);
    }
    raise(signal);
}

/* Whether the signal has its default action, and that ends the process. */
static bool ends_process(int signal, const struct sigaction *action)
{
    switch (signal) {
    case SIGCHLD:
    case SIGCONT:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
        return false;
    default:
        return action->sa_handler == SIG_DFL;
    }
}

/* Has each signal that ends the process restore the terminal before, until the
 * process ends: readpassphrase() does so for some of them. */
static void guard_terminal(void)
{
    const struct sigaction restore = {.sa_handler = restore_terminal,
                                      .sa_flags = (int)SA_RESETHAND};
    struct sigaction action;

    /* As readpassphrase() does. */
    terminal_fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (terminal_fd < 0) {
        terminal_fd = STDIN_FILENO;
    }
    if (tcgetattr(terminal_fd, &terminal) != 0) {
        return;
    }
    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        if (sigaction(signal, NULL, &action) == 0
            && ends_process(signal, &action)) {
            sigaction(signal, &restore, NULL);
        }
    }
}

/* Does not show what is typed. */
static bool read_terminal(char *line, size_t size, const char *prompt)
{
    guard_terminal();
    return readpassphrase(prompt, line, size, RPP_ECHO_OFF) != NULL
        && *line != '\0';
}

/* ---- operands ---- */

static bool read_stream(char *line, size_t size)
{
    if (fgets(line, (int)size, stdin) == NULL) {
        return false;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

int ctl_operand_read(const char **out, const ctl_arguments_t *arguments,
                     const char *name)
{
    /* Longer than any operand: what is cut is none. */
    char line[2 * AGENT_API_KEY_SIZE];
    bool is_read;

    *out = arguments->operand;
    if (strcmp(arguments->operand, "-") != 0) {
        return CTL_DONE;
    }
    is_read = isatty(STDIN_FILENO)
        ? read_terminal(line, sizeof(line),
                        apr_pstrcat(arguments->pool, name, ": ", NULL))
        : read_stream(line, sizeof(line));
    if (!is_read) {
        ctl_error("expected %s on standard input, got none", name);
        return CTL_USAGE;
    }
    /* No operand has blanks: a text that is pasted may have some around it. */
    apr_collapse_spaces(line, line);
    *out = apr_pstrdup(arguments->pool, line);
    return CTL_DONE;
}
