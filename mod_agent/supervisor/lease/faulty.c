/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments whose output fails; see faulty.h. */
#include "faulty.h"

#include <apr_strings.h>

#include "../../core/uuid.h"
#include "../base/order.h"

#define FIRST_PERIOD   apr_time_from_sec(30)
#define LONGEST_PERIOD apr_time_from_sec(3600)
/* With 16 times the connections are up for 16/17 of the time. */
#define MAX_DOUBLINGS 4
/* About the longest pause before a lost connection is made again. */
#define LONGEST_RECONNECT apr_time_from_sec(1)
#define LONGEST_PAUSE     apr_time_from_sec(300)

/* A deployment that was marked. A host serves few: none is freed. */
typedef struct faulty_t {
    char id[AGENT_UUID_SIZE];
    apr_time_t until;
    apr_interval_time_t period; /* 0: it was slow only */
    int pauses;                 /* since the mark began */
    apr_time_t resume_at;
} faulty_t;

void agent_faulty_init(agent_faulty_table_t *table,
                       const agent_context_t *context)
{
    *table = (agent_faulty_table_t){
        .context = context, .by_deployment = apr_hash_make(context->pool)};
}

static faulty_t *find(const agent_faulty_table_t *table,
                      const char *deployment_id)
{
    return apr_hash_get(table->by_deployment, deployment_id,
                        APR_HASH_KEY_STRING);
}

static faulty_t *find_or_make(agent_faulty_table_t *table,
                              const char *deployment_id)
{
    faulty_t *faulty = find(table, deployment_id);

    if (faulty == NULL) {
        faulty = apr_pcalloc(table->context->pool, sizeof(*faulty));
        apr_cpystrn(faulty->id, deployment_id, sizeof(faulty->id));
        apr_hash_set(table->by_deployment, faulty->id, APR_HASH_KEY_STRING,
                     faulty);
    }
    return faulty;
}

static void extend(agent_faulty_table_t *table, faulty_t *faulty,
                   apr_interval_time_t period)
{
    apr_time_t until = table->context->now + period;

    faulty->until = AGENT_MAX(faulty->until, until);
    table->until = AGENT_MAX(table->until, until);
}

void agent_faulty_mark_slow(agent_faulty_table_t *table,
                            const char *deployment_id)
{
    extend(table, find_or_make(table, deployment_id), FIRST_PERIOD);
}

void agent_faulty_mark(agent_faulty_table_t *table, const char *deployment_id,
                       const char *why)
{
    apr_time_t now = table->context->now;
    faulty_t *faulty = find_or_make(table, deployment_id);
    apr_time_t forgotten_at = faulty->until + faulty->period;

    if (faulty->period == 0 || forgotten_at <= now) {
        faulty->period = FIRST_PERIOD;
        faulty->pauses = 0;
    }
    else if (faulty->until <= now) {
        faulty->period = AGENT_MIN(2 * faulty->period, LONGEST_PERIOD);
        faulty->pauses = 0;
    }
    else {
        extend(table, faulty, faulty->period);
        return;
    }
    extend(table, faulty, faulty->period);
    agent_report_write(table->context, AGENT_LOG_NOTICE, "AGT0390", 0,
                       "output of deployment %s is saved apart from that of "
                       "others for %d s: %s",
                       deployment_id, (int)apr_time_sec(faulty->period), why);
}

bool agent_faulty_is(const agent_faulty_table_t *table,
                     const char *deployment_id)
{
    const faulty_t *faulty = table->until > table->context->now
        ? find(table, deployment_id)
        : NULL;

    return faulty != NULL && faulty->until > table->context->now;
}

void agent_faulty_pause(agent_faulty_table_t *table, const char *deployment_id,
                        apr_interval_time_t lost, bool has_crashed)
{
    faulty_t *faulty = find(table, deployment_id);
    apr_interval_time_t pause;

    if (faulty == NULL || faulty->until <= table->context->now) {
        return;
    }
    pause = AGENT_MIN(lost, has_crashed ? LONGEST_PAUSE : LONGEST_RECONNECT)
        << AGENT_MIN(faulty->pauses, MAX_DOUBLINGS);
    faulty->pauses++;
    faulty->resume_at = table->context->now + AGENT_MIN(pause, LONGEST_PAUSE);
    table->resume_at = AGENT_MAX(table->resume_at, faulty->resume_at);
    /* The mark outlasts the pause. */
    extend(table, faulty,
           faulty->resume_at - table->context->now + faulty->period);
}

apr_time_t agent_faulty_resume_at(const agent_faulty_table_t *table,
                                  const char *deployment_id)
{
    const faulty_t *faulty = table->resume_at > table->context->now
        ? find(table, deployment_id)
        : NULL;

    return faulty != NULL ? faulty->resume_at : 0;
}
