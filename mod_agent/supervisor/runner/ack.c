/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to records; see ack.h. */
#include "ack.h"

#include "protocol.h"
#include "runner.h"

/* Forgets the replies that were written to the pipe. */
static void count_unread(agent_lease_t *lease)
{
    if (lease->records.reply_end <= lease->group->runner->written) {
        lease->records.unread = 0;
    }
}

const char *agent_ack_take(agent_lease_t *lease)
{
    count_unread(lease);
    if (lease->records.open + lease->records.unread >= AGENT_ACK_MAX) {
        return "a run sent too many records with ack before it read the "
               "replies";
    }
    lease->records.open++;
    return NULL;
}

void agent_ack_reply(agent_lease_t *lease, apr_int64_t id)
{
    agent_runner_t *runner;

    if (lease->group == NULL) {
        return;
    }
    runner = lease->group->runner;
    count_unread(lease);
    agent_protocol_reply(&runner->input, &lease->key, id, "null", NULL);
    lease->records.open--;
    lease->records.unread++;
    lease->records.reply_end = runner->written
        + agent_buffer_length(&runner->input);
}
