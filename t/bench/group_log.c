/* SPDX-License-Identifier: Apache-2.0 */
/* Exact logs of all hosts' decisions, their check and the report. */
#include "group_sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

void sim_log_add(sim_log_t *log, uint32_t key, uint64_t us)
{
    if (log->count == log->room) {
        log->room = log->room * 2 + 4096;
        log->entries = realloc(log->entries, log->room * sizeof(*log->entries));
    }
    log->entries[log->count].key = key;
    log->entries[log->count++].us = us;
}

static int compare(const void *a, const void *b)
{
    const sim_entry_t *first = a;
    const sim_entry_t *second = b;

    if (first->key != second->key) {
        return first->key < second->key ? -1 : 1;
    }
    return first->us < second->us ? -1 : first->us > second->us;
}

static uint64_t count_over(const sim_log_t *log)
{
    uint64_t over = 0;

    for (uint64_t i = 0; i < log->count; i++) {
        uint32_t key = log->entries[i].key;
        rlr_limit_t limit = sim_limit(key);

        if (i >= limit.count && log->entries[i - limit.count].key == key
            && log->entries[i].us - log->entries[i - limit.count].us
                < limit.interval_sec * 1000000ULL) {
            if (over++ < 5) {
                printf("key %u (%u/%u) at %" PRIu64 " us and %" PRIu64 " us\n",
                       key, limit.count, limit.interval_sec,
                       log->entries[i - limit.count].us, log->entries[i].us);
            }
        }
    }
    return over;
}

/* Counts a wrongful refusal; expired is the last admission that does not count
 * now, or NULL. */
static void add_wrongful(sim_t *sim, const sim_entry_t *refusal,
                         const sim_entry_t *expired)
{
    rlr_limit_t limit = sim_limit(refusal->key);
    uint64_t free_us = UINT64_MAX;

    sim->wrongful++;
    if (limit.count > RLR_WINDOW_MARKS) {
        return;
    }
    if (expired != NULL && expired->key == refusal->key) {
        free_us = refusal->us - expired->us - limit.interval_sec * 1000000ULL;
    }
    sim->wrongful_small++;
    if (free_us > sim->wrongful_us) {
        sim->wrongful_us = free_us;
    }
}

/* Counts refusals of requests at which less than the limit were admitted in the
 * last interval. */
static void count_wrongful(sim_t *sim)
{
    const sim_log_t *log = &sim->admissions;
    const sim_log_t *refusals = &sim->refusals;
    uint64_t first = 0;
    uint64_t last = 0;

    for (uint64_t i = 0; i < refusals->count; i++) {
        uint32_t key = refusals->entries[i].key;
        uint64_t us = refusals->entries[i].us;
        rlr_limit_t limit = sim_limit(key);

        while (last < log->count
               && (log->entries[last].key < key
                   || (log->entries[last].key == key
                       && log->entries[last].us <= us))) {
            last++;
        }
        while (first < last
               && (log->entries[first].key < key
                   || log->entries[first].us + limit.interval_sec * 1000000ULL
                       <= us)) {
            first++;
        }
        if (last - first < limit.count) {
            add_wrongful(sim, &refusals->entries[i],
                         first > 0 ? &log->entries[first - 1] : NULL);
        }
    }
}

uint64_t sim_log_report(sim_t *sim, uint64_t seconds, uint64_t seed)
{
    double requests = sim->requests > 0 ? (double)sim->requests : 1;
    struct rusage usage;
    uint64_t keys;
    uint64_t marks;
    uint64_t over;

    qsort(sim->admissions.entries, sim->admissions.count,
          sizeof(*sim->admissions.entries), compare);
    qsort(sim->refusals.entries, sim->refusals.count,
          sizeof(*sim->refusals.entries), compare);
    count_wrongful(sim);
    over = count_over(&sim->admissions);
    group_store_size(sim->servers[sim->master], &keys, &marks);
    getrusage(RUSAGE_SELF, &usage);
    printf("hosts %u keys %u seconds %" PRIu64 " seed %" PRIu64
           " requests %" PRIu64 " admitted %" PRIu64 " local %" PRIu64 "\n",
           sim->host_count, sim->key_count, seconds, seed, sim->requests,
           sim->admissions.count, sim->local);
    printf("over-admissions %" PRIu64 "  wrongful refusals %.3f %%  calls per "
           "request %.4f  keys at the store %" PRIu64 " marks %" PRIu64
           " faults %" PRIu64 "\n"
           "of these with N <= 64: %" PRIu64 ", until %.3f ms after an "
           "admission had expired\n"
           "the simulation took %ld MB\n",
           over, 100.0 * (double)sim->wrongful / requests,
           (double)sim->calls / requests, keys, marks, sim->faults,
           sim->wrongful_small, (double)sim->wrongful_us / 1000.0,
           usage.ru_maxrss / 1024);
    return over;
}
