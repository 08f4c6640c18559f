/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies a thread or a run in calls of the model. */
#ifndef AGENT_MODEL_REF_H
#define AGENT_MODEL_REF_H

/* Lower case UUIDs, borrowed. Calls about a thread do not read run_id. */
typedef struct agent_run_ref_t {
    const char *deployment_id;
    const char *thread_id;
    const char *run_id;
} agent_run_ref_t;

#endif
