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

void agent_wake_ready(int fd, const char *deployment_id, const char *changed)
{
    char text[1 + AGENT_UUID_SIZE] = {AGENT_WAKE_READY};
    size_t length = strnlen(deployment_id, sizeof(text) - 1);

    memcpy(text + 1, deployment_id, length);
    send_datagram(fd, text, 1 + length);
    agent_wake_changed(fd, deployment_id, changed);
}

void agent_wake_cancel(int fd, const char *deployment_id, const char *changed)
{
    const char word = AGENT_WAKE_CANCEL;

    send_datagram(fd, &word, 1);
    agent_wake_changed(fd, deployment_id, changed);
}

/* Each datagram but the last one ends after a space, since an id with its space
 * is as long as a UUID with its terminating NUL. */
void agent_wake_changed(int fd, const char *deployment_id, const char *changed)
{
    char text[AGENT_WAKE_BYTES] = {AGENT_WAKE_CHANGED};
    size_t prefix = 1 + strnlen(deployment_id, AGENT_UUID_SIZE - 1);

    memcpy(text + 1, deployment_id, prefix - 1);
    text[prefix++] = ' ';
    while (changed != NULL && *changed != '\0') {
        size_t length = strnlen(changed, sizeof(text) - prefix);

        memcpy(text + prefix, changed, length);
        send_datagram(fd, text, prefix + length);
        changed += length;
    }
}
