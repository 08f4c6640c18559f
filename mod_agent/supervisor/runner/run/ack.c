/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to records; see ack.h. */
#include "ack.h"

#include "../pool/runner.h"
#include "../protocol/protocol.h"

/* Forgets the replies that were written to the pipe. */
static void count_unread(agent_lease_t *lease)
{
    agent_record_t *records = &lease->records;

    while (records->unread > 0
           && records->reply_ends[records->first_unread]
               <= lease->group->runner->written) {
        records->first_unread = (records->first_unread + 1) % AGENT_ACK_MAX;
        records->unread--;
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
    agent_record_t *records = &lease->records;
    agent_runner_t *runner;
    int last;

    if (lease->group == NULL) {
        return;
    }
    runner = lease->group->runner;
    count_unread(lease);
    agent_protocol_reply(agent_runner_input(runner), &lease->key, id, "null",
                         NULL);
    last = (records->first_unread + records->unread++) % AGENT_ACK_MAX;
    records->reply_ends[last] = runner->written
        + agent_buffer_length(&runner->input);
    records->open--;
}
