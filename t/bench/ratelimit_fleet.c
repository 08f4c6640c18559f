/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* OBJECTS: ../mod_ratelimit_regional/rules/sha256.c */
/* OBJECTS: ../mod_ratelimit_regional/store/address.c */
/* OBJECTS: ../mod_ratelimit_regional/store/connection.c */
/* OBJECTS: ../mod_ratelimit_regional/store/away.c */
/* OBJECTS: ../mod_ratelimit_regional/store/exchange.c */
/* OBJECTS: ../mod_ratelimit_regional/store/flight.c */
/* OBJECTS: ../mod_ratelimit_regional/store/reply.c */
/* OBJECTS: ../mod_ratelimit_regional/store/node.c */
/* OBJECTS: ../mod_ratelimit_regional/store/queue.c */
/* OBJECTS: ../mod_ratelimit_regional/store/route.c */
/* OBJECTS: ../mod_ratelimit_regional/store/script.c */
/* OBJECTS: ../mod_ratelimit_regional/store/sentinel.c */
/* OBJECTS: ../mod_ratelimit_regional/store/tls.c */
/* OBJECTS: ../mod_ratelimit_regional/store/wire.c */
/*
 * Hosts that join a store together, as after a failover: each is a thread with
 * the code of the modules and a connection of its own.
 *
 *   ratelimit_fleet HOSTS ADDRESS SECONDS
 *
 * Prints once a second in how many of all partitions of all hosts these are
 * connected, and in how many the epoch is complete. Ends early when all are.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <apr_general.h>

#include "../../mod_ratelimit_regional/counter/clock.h"
#include "../../mod_ratelimit_regional/store/exchange.h"

#define LEASES     128U
#define TIMEOUT_US 5000U
#define IDLE_US    100000U
#define STACK_SIZE (512U * 1024U)

typedef struct host_t {
    rlr_shared_t shared;
    rlr_exchange_t exchange;
    apr_pool_t *pool;
    pthread_t thread;
} host_t;

/* In numbers of partitions of hosts. */
typedef struct fleet_state_t {
    uint32_t connected;
    uint32_t complete;
    uint64_t errors;
} fleet_state_t;

static void *run(void *data)
{
    host_t *host = data;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, host->pool);
    for (;;) {
        rlr_exchange_run(&host->exchange,
                         rlr_queue_take(host->exchange.queue, IDLE_US),
                         scratch);
        apr_pool_clear(scratch);
    }
    return NULL;
}

static const char *make_host(host_t *host, uint32_t number, uint32_t hosts,
                             const char *address)
{
    rlr_wait_slots_t slots;
    unsigned char id[RLR_MESSAGE_ID_BYTES] = {0};
    rlr_connection_config_t *config;
    const char *problem = NULL;
    void *memory;

    apr_pool_create(&host->pool, NULL);
    config = apr_pcalloc(host->pool, sizeof(*config));
    if (rlr_address_parse(&config->address, address, &problem, host->pool)
        != APR_SUCCESS) {
        return problem;
    }
    memcpy(id, &number, sizeof(number));
    id[sizeof(number)] = 1;
    memory = mmap(NULL, rlr_shared_size(LEASES), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED
        || !rlr_shared_create(&host->shared, memory, LEASES, id, id)) {
        return "no memory for a shared";
    }
    host->exchange.shared = &host->shared;
    slots = rlr_shared_wait_slots(&host->shared);
    host->exchange.queue = rlr_queue_make(&slots, TIMEOUT_US,
                                          RLR_QUEUE_BRIEF_MS, host->pool);
    host->exchange.connection = rlr_connection_make(config, host->pool);
    host->exchange.timeout_ms = TIMEOUT_US / 1000;
    host->exchange.pool = host->pool;
    host->exchange.tag = number + 1;
    memcpy(host->exchange.member.id, id, sizeof(id));
    snprintf(host->exchange.member.name, sizeof(host->exchange.member.name),
             "host%" PRIu32, number);
    host->exchange.member.members = hosts;
    host->exchange.member.share_ms = 3600000;
    return NULL;
}

static fleet_state_t look(host_t *hosts, uint32_t count)
{
    fleet_state_t state = {0, 0, 0};
    rlr_time_t now;

    rlr_clock_monotonic.read(&now, NULL);
    for (uint32_t i = 0; i < count * RLR_SHARED_PARTITIONS; i++) {
        const rlr_shared_t *shared = &hosts[i / RLR_SHARED_PARTITIONS].shared;
        uint32_t partition = i % RLR_SHARED_PARTITIONS;
        const rlr_partition_state_t *seen = rlr_shared_lock(shared, partition,
                                                            now.floor_ms);

        if (seen != NULL) {
            bool is_connected = seen->member.is_confirmed
                && now.floor_ms < seen->member.heartbeat_until_ms;

            state.connected += is_connected;
            state.complete += is_connected && seen->member.is_complete;
            rlr_shared_unlock(shared, partition);
        }
        if (partition == 0) {
            state.errors += atomic_load(&rlr_shared_stats(shared)->errors);
        }
    }
    return state;
}

static bool start(host_t *hosts, uint32_t count, const char *address)
{
    pthread_attr_t attributes;
    bool started = pthread_attr_init(&attributes) == 0
        && pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0;

    for (uint32_t i = 0; started && i < count; i++) {
        const char *problem = make_host(&hosts[i], i, count, address);

        if (problem != NULL) {
            fprintf(stderr, "%s\n", problem);
        }
        started = problem == NULL
            && pthread_create(&hosts[i].thread, &attributes, run, &hosts[i])
                == 0;
    }
    pthread_attr_destroy(&attributes);
    return started;
}

int main(int argc, char **argv)
{
    uint32_t count = argc == 4 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    uint32_t seconds = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    fleet_state_t state = {0, 0, 0};
    host_t *hosts = calloc(count + 1, sizeof(*hosts));

    apr_initialize();
    if (count == 0 || hosts == NULL || !start(hosts, count, argv[2])) {
        fprintf(stderr, "usage: ratelimit_fleet HOSTS ADDRESS SECONDS\n");
        free(hosts);
        return 1;
    }
    for (uint32_t second = 1;
         second <= seconds && state.complete < count * RLR_SHARED_PARTITIONS;
         second++) {
        static const struct timespec pause = {1, 0};

        nanosleep(&pause, NULL);
        state = look(hosts, count);
        printf("%" PRIu32 " s: of %u %" PRIu32 " connected, %" PRIu32
               " complete, %" PRIu64 " rounds with errors\n",
               second, count * RLR_SHARED_PARTITIONS, state.connected,
               state.complete, state.errors);
        fflush(stdout);
    }
    /* Without waiting for the threads. */
    _Exit(state.complete == count * RLR_SHARED_PARTITIONS ? 0 : 1);
}
