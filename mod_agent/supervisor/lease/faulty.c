/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments whose output fails; see faulty.h. */
#include "faulty.h"

#include <apr_strings.h>

#include "../../core/uuid.h"
#include "../base/order.h"

#define FIRST_PERIOD apr_time_from_sec(30)
/* Failures that are further apart do not add up. */
#define WINDOW         apr_time_from_sec(30)
#define LONGEST_PERIOD apr_time_from_sec(3600)
/* With 16 times the connections are up for 16/17 of the time. */
#define MAX_DOUBLINGS 4
/* About the longest pause before a lost connection is made again. */
#define LONGEST_RECONNECT apr_time_from_sec(1)
#define LONGEST_PAUSE     apr_time_from_sec(300)

/* They are counted apart: one of each does not mark. */
typedef enum kind_t { REFUSED, FAILED, SLOW, KINDS } kind_t;

/* A deployment whose output failed. A host serves few: none is freed. */
typedef struct faulty_t {
    char id[AGENT_UUID_SIZE];
    apr_time_t until;
    apr_interval_time_t period; /* 0: it was slow only */
    int pauses;                 /* since the mark began */
    apr_time_t isolated_until;
    apr_time_t resume_at;
    /* When its last failures ended, or the pauses after them, newest first; 0:
     * none. */
    apr_time_t failed_at[KINDS][AGENT_FAULTY_REFUSALS - 1];
    apr_uint64_t splits; /* the table's at the last refusal that counted */
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

/* Keeps a failure. Returns whether it is one of `count` within the window. */
static bool add_failure(const agent_faulty_table_t *table, faulty_t *faulty,
                        kind_t kind, apr_time_t began_at, int count)
{
    apr_time_t *failed_at = faulty->failed_at[kind];
    bool is_often = count == 1
        || (failed_at[count - 2] > 0
            && failed_at[count - 2] + WINDOW > began_at);

    failed_at[1] = failed_at[0];
    failed_at[0] = table->context->now;
    return is_often;
}

void agent_faulty_slow(agent_faulty_table_t *table, const char *deployment_id,
                       apr_time_t began_at)
{
    faulty_t *faulty = find_or_make(table, deployment_id);

    if (add_failure(table, faulty, SLOW, began_at, AGENT_FAULTY_FAILURES)) {
        extend(table, faulty, FIRST_PERIOD);
    }
}

static void mark(agent_faulty_table_t *table, faulty_t *faulty,
                 apr_time_t began_at, const char *why)
{
    if (faulty->period == 0 || faulty->until + faulty->period <= began_at) {
        faulty->period = FIRST_PERIOD;
        faulty->pauses = 0;
    }
    else if (faulty->until <= began_at) {
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
                       faulty->id, (int)apr_time_sec(faulty->period), why);
}

void agent_faulty_fail(agent_faulty_table_t *table, const char *deployment_id,
                       apr_time_t began_at, int count, const char *why)
{
    faulty_t *faulty = find_or_make(table, deployment_id);

    if (add_failure(table, faulty, FAILED, began_at, count)) {
        mark(table, faulty, began_at, why);
    }
}

void agent_faulty_refuse(agent_faulty_table_t *table, const char *deployment_id,
                         apr_time_t began_at, const char *why)
{
    faulty_t *faulty = find_or_make(table, deployment_id);

    if (faulty->until <= table->context->now
        && faulty->splits == table->splits) {
        return;
    }
    faulty->splits = table->splits;
    if (add_failure(table, faulty, REFUSED, began_at, AGENT_FAULTY_REFUSALS)) {
        mark(table, faulty, began_at, why);
    }
}

void agent_faulty_isolate(agent_faulty_table_t *table,
                          const char *deployment_id)
{
    faulty_t *faulty = find_or_make(table, deployment_id);

    faulty->isolated_until = table->context->now + LONGEST_PAUSE;
    table->until = AGENT_MAX(table->until, faulty->isolated_until);
}

void agent_faulty_end_isolation(agent_faulty_table_t *table,
                                const char *deployment_id)
{
    faulty_t *faulty = find(table, deployment_id);

    if (faulty != NULL) {
        faulty->isolated_until = 0;
    }
}

bool agent_faulty_is(const agent_faulty_table_t *table,
                     const char *deployment_id)
{
    apr_time_t now = table->context->now;
    const faulty_t *faulty = table->until > now ? find(table, deployment_id)
                                                : NULL;

    return faulty != NULL
        && (faulty->until > now || faulty->isolated_until > now);
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
    faulty->failed_at[FAILED][0] = faulty->resume_at;
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
