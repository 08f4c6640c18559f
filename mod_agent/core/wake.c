/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams to the supervisor; see wake.h. */
#include "wake.h"

#include <string.h>
#include <sys/socket.h>

static void send_datagram(int fd, const char *text, size_t length)
{
    if (fd >= 0) {
        (void)!send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void send_word(int fd, char word)
{
    send_datagram(fd, &word, 1);
}

void agent_wake_ready(int fd, const char *changed)
{
    send_word(fd, AGENT_WAKE_READY);
    agent_wake_changed(fd, changed);
}

void agent_wake_cancel(int fd, const char *changed)
{
    send_word(fd, AGENT_WAKE_CANCEL);
    agent_wake_changed(fd, changed);
}

/* Each datagram but the last one ends after a space, since an id with its space
 * is as long as a UUID with its terminating NUL. */
void agent_wake_changed(int fd, const char *changed)
{
    char text[AGENT_WAKE_BYTES] = {AGENT_WAKE_CHANGED};

    while (changed != NULL && *changed != '\0') {
        size_t length = strnlen(changed, sizeof(text) - 1);

        memcpy(text + 1, changed, length);
        send_datagram(fd, text, 1 + length);
        changed += length;
    }
}
