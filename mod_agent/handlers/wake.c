/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers tell the supervisor of this host: datagrams, never waited for;
 * see handlers.h. */
#include "handlers.h"

#include <string.h>
#include <sys/socket.h>

static void send_datagram(const agent_call_t *call, const char *text,
                          size_t length)
{
    if (call->child->wake_fd >= 0) {
        (void)!send(call->child->wake_fd, text, length,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void agent_wake_supervisor(const agent_call_t *call, char what)
{
    send_datagram(call, &what, 1);
}

/* Cut behind a space: an id and its space have the size of a UUID's buffer. */
void agent_report_changed(const agent_call_t *call, const char *changed)
{
    char text[AGENT_WAKE_BYTES] = {AGENT_WAKE_NEWS};

    while (changed != NULL && *changed != '\0') {
        size_t length = strnlen(changed, sizeof(text) - 1);

        memcpy(text + 1, changed, length);
        send_datagram(call, text, 1 + length);
        changed += length;
    }
}
