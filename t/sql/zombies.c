/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zombies: workers that continue to write after their leases were stolen.
 *
 *   zombies RUNS WORKERS
 *
 * A producer creates RUNS runs on a few threads; WORKERS workers claim them and
 * save events, checkpoints and ends in batches; thieves release
 * their leases. A worker whose run is fenced stops it, as a supervisor would.
 * Table stress_log has the result of each event that a worker saved:
 * (run_id, epoch, token, outcome). The database comes from the PG* environment.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

#define DEPLOYMENT   "00000000-0000-0000-0000-000000000001"
#define ASSISTANT    "fe096781-5601-53d2-b2f6-0d3403f7e9ca"
#define THREAD_COUNT 40
#define CLAIM_MAX    6
#define STEPS_MAX    10
#define THIEF_COUNT  3
#define BATCH_BYTES  65536

/* One attempt of a run, as its worker knows it. */
typedef struct attempt_t {
    char run_id[37];
    int epoch;
    long next_seq;
    int steps_left;
    int open;
} attempt_t;

typedef struct worker_t {
    pthread_t thread;
    PGconn *conn;
    PGconn *log;
    char worker_id[24];
    unsigned seed;
    attempt_t attempts[CLAIM_MAX];
    int count;
    int with_checkpoints;
    char batch[BATCH_BYTES];
    size_t used;
} worker_t;

static atomic_int stopping;
static atomic_long tokens;
static atomic_long stolen;
static int run_count;

static void die(const char *what, PGconn *conn)
{
    fprintf(stderr, "zombies: %s: %s\n", what,
            conn ? PQerrorMessage(conn) : "");
    exit(1);
}

static PGconn *connect_database(void)
{
    PGconn *conn = PQconnectdb("");

    if (PQstatus(conn) != CONNECTION_OK) {
        die("connect", conn);
    }
    return conn;
}

static PGresult *query(PGconn *conn, const char *sql, int param_count,
                       const char *const *params)
{
    PGresult *result = PQexecParams(conn, sql, param_count, NULL, params, NULL,
                                    NULL, 0);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        die(sql, conn);
    }
    return result;
}

static long query_long(PGconn *conn, const char *sql)
{
    PGresult *result = query(conn, sql, 0, NULL);
    long value = atol(PQgetvalue(result, 0, 0));

    PQclear(result);
    return value;
}

/* Lets others run in the middle of an attempt, as a model call would. */
static void pause_at_random(unsigned *seed)
{
    struct timespec pause = {0, (long)(rand_r(seed) % 3000) * 1000};

    nanosleep(&pause, NULL);
}

static void claim_runs(worker_t *worker)
{
    const char *params[1] = {worker->worker_id};
    PGresult *result = query(worker->conn,
                             "select run_id, epoch, last_event_seq"
                             " from agent.claim_runs($1, '{" DEPLOYMENT
                             "}', '{agent}', '{0}', '{1}', '{6}', '{16}', 6,"
                             " 1000000)",
                             1, params);

    worker->count = PQntuples(result);
    for (int i = 0; i < worker->count; i++) {
        attempt_t *attempt = &worker->attempts[i];

        snprintf(attempt->run_id, sizeof(attempt->run_id), "%s",
                 PQgetvalue(result, i, 0));
        attempt->epoch = atoi(PQgetvalue(result, i, 1));
        attempt->next_seq = atol(PQgetvalue(result, i, 2)) + 1;
        attempt->steps_left = 1
            + (int)((unsigned)rand_r(&worker->seed) % STEPS_MAX);
        attempt->open = 1;
    }
    PQclear(result);
}

/* message: the members of a runner's message, without braces. */
static void add_item(worker_t *worker, const attempt_t *attempt, long seq,
                     const char *message)
{
    char seq_text[24] = "null";

    if (seq >= 0) {
        snprintf(seq_text, sizeof(seq_text), "%ld", seq);
    }
    worker->used += (size_t)snprintf(
        worker->batch + worker->used, sizeof(worker->batch) - worker->used,
        "%s{%s,\"d\":\"" DEPLOYMENT "\",\"r\":\"%s\",\"e\":%d,\"s\":%s}",
        worker->used > 1 ? "," : "", message, attempt->run_id, attempt->epoch,
        seq_text);
    if (worker->used >= sizeof(worker->batch) - 2) {
        die("batch too large", NULL);
    }
}

/*
 * Two events with new tokens, in every second batch a checkpoint, and the end
 * when due. A batch of events only is protected by the queue row alone.
 */
static long add_step(worker_t *worker, attempt_t *attempt)
{
    long token = atomic_fetch_add(&tokens, 2);
    char message[256];

    for (int i = 0; i < 2; i++) {
        snprintf(message, sizeof(message),
                 "\"type\":\"event\",\"event\":\"custom\",\"data\":%ld",
                 token + i);
        add_item(worker, attempt, attempt->next_seq + i, message);
    }
    if (worker->with_checkpoints) {
        snprintf(
            message, sizeof(message),
            "\"type\":\"checkpoint\",\"checkpoint_id\":"
            "\"00000000-0000-7000-8000-%012lx\",\"parent\":null,"
            "\"values\":{\"messages\":[%ld]},\"next\":[],\"tasks\":[],"
            "\"metadata\":{\"source\":\"loop\",\"step\":1},\"format\":null",
            (unsigned long)token, token);
        add_item(worker, attempt, -1, message);
    }
    if (--attempt->steps_left == 0) {
        add_item(worker, attempt, -1,
                 "\"type\":\"end\",\"status\":\"success\",\"error\":null");
    }
    return token;
}

static void log_outcome(worker_t *worker, const attempt_t *attempt, long token,
                        const char *outcome)
{
    char line[256];

    for (int i = 0; i < 2; i++) {
        int len = snprintf(line, sizeof(line), "%s\t%d\t%ld\t%s\n",
                           attempt->run_id, attempt->epoch, token + i, outcome);

        if (PQputCopyData(worker->log, line, len) != 1) {
            die("copy", worker->log);
        }
    }
}

/* One batch with the next step of each open run. */
static void save_steps(worker_t *worker)
{
    const char *params[2] = {worker->worker_id, worker->batch};
    long token[CLAIM_MAX] = {0};
    PGresult *result;

    worker->with_checkpoints = rand_r(&worker->seed) % 2;
    worker->used = 0;
    worker->batch[worker->used++] = '[';
    for (int i = 0; i < worker->count; i++) {
        if (worker->attempts[i].open) {
            token[i] = add_step(worker, &worker->attempts[i]);
        }
    }
    memcpy(worker->batch + worker->used, "]", 2);
    result = query(
        worker->conn,
        "select run_id, outcome, finished from public.save_items($1, $2)", 2,
        params);
    for (int row = 0; row < PQntuples(result); row++) {
        for (int i = 0; i < worker->count; i++) {
            attempt_t *attempt = &worker->attempts[i];
            const char *outcome = PQgetvalue(result, row, 1);

            if (attempt->open
                && !strcmp(attempt->run_id, PQgetvalue(result, row, 0))) {
                log_outcome(worker, attempt, token[i], outcome);
                attempt->next_seq += 2;
                attempt->open = !strcmp(outcome, "saved")
                    && *PQgetvalue(result, row, 2) == 'f';
            }
        }
    }
    PQclear(result);
}

static int count_open(const worker_t *worker)
{
    int open = 0;

    for (int i = 0; i < worker->count; i++) {
        open += worker->attempts[i].open;
    }
    return open;
}

static void *run_worker(void *data)
{
    worker_t *worker = data;

    while (!stopping) {
        claim_runs(worker);
        while (count_open(worker)) {
            pause_at_random(&worker->seed);
            save_steps(worker);
        }
    }
    return NULL;
}

static void start_worker(worker_t *worker, unsigned seed)
{
    PGresult *result;

    worker->seed = seed;
    worker->conn = connect_database();
    worker->log = connect_database();
    result = query(worker->conn,
                   "select worker_id from agent.register_worker('n', 'b', 1, "
                   "1, 6, 600, '{default}', '{agent}')",
                   0, NULL);
    snprintf(worker->worker_id, sizeof(worker->worker_id), "%s",
             PQgetvalue(result, 0, 0));
    PQclear(result);
    result = PQexec(worker->log, "copy stress_log from stdin");
    if (PQresultStatus(result) != PGRES_COPY_IN) {
        die("copy", worker->log);
    }
    PQclear(result);
    if (pthread_create(&worker->thread, NULL, run_worker, worker)) {
        die("thread", NULL);
    }
}

static void stop_worker(worker_t *worker)
{
    pthread_join(worker->thread, NULL);
    if (PQputCopyEnd(worker->log, NULL) != 1) {
        die("copy", worker->log);
    }
    for (PGresult *result; (result = PQgetResult(worker->log)) != NULL;) {
        if (PQresultStatus(result) != PGRES_COMMAND_OK) {
            die("copy", worker->log);
        }
        PQclear(result);
    }
    PQfinish(worker->log);
    PQfinish(worker->conn);
}

static void create_runs(PGconn *conn)
{
    char sql[512];

    for (int i = 0; i < THREAD_COUNT; i++) {
        snprintf(sql, sizeof(sql),
                 "select agent.create_thread('" DEPLOYMENT "',"
                 " md5('%d')::uuid, 'raise', '{}')",
                 i);
        PQclear(query(conn, sql, 0, NULL));
    }
    for (int i = 0; i < run_count; i++) {
        snprintf(sql, sizeof(sql),
                 "select agent.create_run('" DEPLOYMENT "', md5('%d')::uuid,"
                 " gen_random_uuid(), '" ASSISTANT "', 'agent', '{agent}',"
                 " 'enqueue', null, null, null,"
                 " '{\"webhook\":\"http://x/\"}')",
                 i % THREAD_COUNT);
        PQclear(query(conn, sql, 0, NULL));
    }
}

/* Releases leases, uncounted, until every run is final. */
static void *run_thief(void *data)
{
    static const char steal[] =
        "select count(*) filter (where r.outcome = 'requeued')"
        " from (select worker_id, deployment_id, run_id, epoch"
        "         from agent.run_queue where state = 'leased'"
        "        order by random() limit 1) q,"
        " lateral agent.release_runs(q.worker_id, json_build_array("
        "     json_build_object('d', q.deployment_id, 'r', q.run_id, 'e', "
        "q.epoch)),"
        "     false, 'stolen', null) r";
    PGconn *conn = connect_database();

    while (query_long(conn, "select count(*) from agent.run_queue") > 0) {
        atomic_fetch_add(&stolen, query_long(conn, steal));
    }
    PQfinish(conn);
    return data;
}

int main(int argc, char **argv)
{
    pthread_t thieves[THIEF_COUNT];
    int worker_count;
    worker_t *workers;
    PGconn *conn;

    if (argc != 3 || (run_count = atoi(argv[1])) < 1
        || (worker_count = atoi(argv[2])) < 1) {
        fprintf(stderr, "usage: zombies RUNS WORKERS\n");
        return 2;
    }
    workers = calloc((size_t)worker_count, sizeof(*workers));
    if (!workers) {
        die("memory", NULL);
    }
    conn = connect_database();
    create_runs(conn);
    PQfinish(conn);
    for (int i = 0; i < worker_count; i++) {
        start_worker(&workers[i], (unsigned)i + 1);
    }
    for (int i = 0; i < THIEF_COUNT; i++) {
        if (pthread_create(&thieves[i], NULL, run_thief, NULL)) {
            die("thread", NULL);
        }
    }
    for (int i = 0; i < THIEF_COUNT; i++) {
        pthread_join(thieves[i], NULL);
    }
    stopping = 1;
    for (int i = 0; i < worker_count; i++) {
        stop_worker(&workers[i]);
    }
    free(workers);
    printf("%ld\n", atomic_load(&stolen));
    return 0;
}
