/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/*
 * Measures one decision of the rate limiter in nanoseconds, with the machine's
 * clock. Prints one line per case: name, best and median of several rounds.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/counter/segment.h"
#include "../../mod_ratelimit_regional/counter/siphash.h"
#include "../../mod_ratelimit_regional/counter/table.h"

#define SLOTS  262144U
#define KEYS   100000U
#define ROUNDS 15
/* As long as a LangSmith API key. */
#define IDENTITY_LENGTH 51

/* Large enough that a round is admitted as a whole. */
static const rlr_limit_t open_limit = {1000000, 1};
static const rlr_limit_t shut_limit = {1, 86400};
static const rlr_limit_t short_limit = {10, 1};

typedef struct bench_t {
    rlr_table_t table;
    uint32_t rule;
    uint64_t next_key;
    uint64_t seed;
    unsigned admitted;
} bench_t;

static double get_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void ask(bench_t *bench, uint64_t key, rlr_limit_t limit)
{
    char identity[IDENTITY_LENGTH] = "lsv2_pt_";
    /* Sixteen keys per address, so that none reaches its share. */
    uint64_t address = key / 16;
    rlr_table_request_t request = {.row = bench->rule,
                                   .identity = identity,
                                   .identity_length = sizeof(identity),
                                   .holder = &address,
                                   .holder_length = sizeof(address),
                                   .limit = limit};
    rlr_table_decision_t answer;

    memcpy(identity + 8, &key, sizeof(key));
    rlr_table_admit(&bench->table, &request, &rlr_clock_monotonic, &answer);
    bench->admitted += answer.window.admitted;
}

/* A case: its work, `count` times, is measured. */
typedef void (*case_t)(bench_t *bench, unsigned count);

static void read_clock(bench_t *bench, unsigned count)
{
    rlr_time_t now;

    for (unsigned i = 0; i < count; i++) {
        rlr_clock_monotonic.read(&now, NULL);
        bench->admitted += now.floor_ms == 0;
    }
}

static void hash_key(bench_t *bench, unsigned count)
{
    unsigned char key[RLR_SIPHASH_KEY_SIZE] = {1};
    char identity[IDENTITY_LENGTH] = "lsv2_pt_";

    for (unsigned i = 0; i < count; i++) {
        memcpy(identity + 8, &i, sizeof(i));
        bench->admitted += rlr_siphash_compute(key, identity, sizeof(identity))
                               .first
            == 0;
    }
}

static void admit_one_key(bench_t *bench, unsigned count)
{
    uint64_t key = bench->next_key++;

    for (unsigned i = 0; i < count; i++) {
        ask(bench, key, open_limit);
    }
}

static void refuse_one_key(bench_t *bench, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ask(bench, 0, shut_limit);
    }
}

static void admit_known_keys(bench_t *bench, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bench->seed = bench->seed * 6364136223846793005U + 1442695040888963407U;
        ask(bench, 1000 + (bench->seed >> 33) % KEYS, open_limit);
    }
}

static void admit_new_keys(bench_t *bench, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ask(bench, bench->next_key++, short_limit);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(bench_t *bench, const char *name, case_t work,
                    unsigned count)
{
    double rounds[ROUNDS];

    work(bench, count / 10);
    for (int i = 0; i < ROUNDS; i++) {
        double start = get_ns();

        work(bench, count);
        rounds[i] = (get_ns() - start) / count;
    }
    qsort(rounds, ROUNDS, sizeof(rounds[0]), compare_doubles);
    printf("%-36s %7.1f %7.1f\n", name, rounds[0], rounds[ROUNDS / 2]);
    fflush(stdout);
}

/* The same in two processes at once; the first one measures. */
static void measure_two(bench_t *bench, const char *name, case_t work,
                        unsigned count)
{
    pid_t pid = fork();

    if (pid == 0) {
        bench_t other = *bench;

        for (;;) {
            work(&other, count);
        }
    }
    measure(bench, name, work, count);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The same key for both processes, another one every 25 ms, before the limit is
 * reached: all are admitted. */
static void admit_shared_key(bench_t *bench, unsigned count)
{
    uint64_t key = 0;

    for (unsigned i = 0; i < count; i++) {
        if (i % 64 == 0) {
            key = 1ULL << 50 | (uint64_t)(get_ns() / 25e6);
        }
        ask(bench, key, open_limit);
    }
}

static void open_table(bench_t *bench, uint32_t slots)
{
    static const char *const names[] = {"us/bench/api-key"};
    unsigned char secret[RLR_TABLE_SECRET_SIZE] = {42};
    size_t size = rlr_segment_size(slots, 1);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    memset(bench, 0, sizeof(*bench));
    bench->next_key = 1ULL << 40;
    if (memory == MAP_FAILED
        || rlr_segment_create(memory, size, slots, 1, secret) != RLR_TABLE_OK
        || rlr_segment_attach(&bench->table, memory, size, names, 1,
                              &bench->rule)
            != RLR_TABLE_OK) {
        fprintf(stderr, "no table of %zu bytes\n", size);
        exit(1);
    }
}

int main(void)
{
    bench_t bench;

    open_table(&bench, SLOTS);
    printf("%-36s %7s %7s\n", "nanoseconds", "best", "median");
    measure(&bench, "clock alone", read_clock, 1000000);
    measure(&bench, "hash of 51 bytes alone", hash_key, 1000000);
    measure(&bench, "admit, one key", admit_one_key, 400000);
    measure(&bench, "refuse, one key", refuse_one_key, 1000000);
    measure(&bench, "admit, 100,000 keys at random", admit_known_keys, 400000);
    measure_two(&bench, "admit, one key, 2 processes", admit_shared_key,
                400000);
    measure_two(&bench, "refuse, one key, 2 processes", refuse_one_key,
                1000000);
    open_table(&bench, 65536);
    /* At most 40,000 a second stay alive: the table does not overflow. */
    measure(&bench, "admit, each key new, empty table", admit_new_keys, 2500);
    sleep(2);
    measure(&bench, "admit, each key new, reused slots", admit_new_keys, 2500);
    return bench.admitted == 0;
}
