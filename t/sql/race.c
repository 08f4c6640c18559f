/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race: many clients create a run on one thread at the same moment.
 *
 *   race STRATEGY ROUNDS CLIENTS
 *
 * Each round makes a thread, lets all clients call agent.create_run() from a
 * barrier, and counts the codes. Prints each distribution of codes with the
 * number of rounds that had it; the database comes from the PG* environment.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#define DEPLOYMENT  "00000000-0000-0000-0000-000000000001"
#define ASSISTANT   "fe096781-5601-53d2-b2f6-0d3403f7e9ca"
#define CLIENTS_MAX 256
#define CODES_MAX   8
#define CODE_LEN    32

typedef struct client_t {
    pthread_t thread;
    PGconn *conn;
    char code[CODE_LEN];
} client_t;

static client_t clients[CLIENTS_MAX];
static pthread_barrier_t barrier;
static char thread_id[37];
static const char *strategy;
static int rounds;
static int client_count;

static void die(const char *what, PGconn *conn)
{
    fprintf(stderr, "race: %s: %s\n", what, conn ? PQerrorMessage(conn) : "");
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

/* The first field of the first row, into buf. */
static void query_value(PGconn *conn, const char *sql, int param_count,
                        const char *const *params, char *buf, size_t size)
{
    PGresult *result = PQexecParams(conn, sql, param_count, NULL, params, NULL,
                                    NULL, 0);

    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        die(sql, conn);
    }
    if (buf) {
        snprintf(buf, size, "%s", PQgetvalue(result, 0, 0));
    }
    PQclear(result);
}

static void create_run(client_t *client)
{
    static const char sql[] =
        "select code from agent.create_run($1, $2, gen_random_uuid(), $3,"
        " 'agent', '{agent}', $4, null, null, null, '{}')";
    const char *params[4] = {DEPLOYMENT, thread_id, ASSISTANT, strategy};

    query_value(client->conn, sql, 4, params, client->code,
                sizeof(client->code));
}

static void *run_client(void *data)
{
    client_t *client = data;

    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        create_run(client);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static int compare_codes(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* "ok=1 thread_busy=31" of the current round. */
static void describe_round(char *text, size_t size)
{
    char codes[CLIENTS_MAX][CODE_LEN];
    size_t used = 0;

    for (int i = 0; i < client_count; i++) {
        memcpy(codes[i], clients[i].code, CODE_LEN);
    }
    qsort(codes, (size_t)client_count, CODE_LEN, compare_codes);
    text[0] = '\0';
    for (int i = 0; i < client_count && used < size;) {
        int first = i;

        while (i < client_count && !strcmp(codes[i], codes[first])) {
            i++;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s=%d",
                                 used ? " " : "", codes[first], i - first);
    }
}

int main(int argc, char **argv)
{
    char seen[CODES_MAX][256];
    int times[CODES_MAX] = {0};
    PGconn *conn;

    if (argc != 4 || (rounds = atoi(argv[2])) < 1
        || (client_count = atoi(argv[3])) < 1 || client_count > CLIENTS_MAX) {
        fprintf(stderr, "usage: race STRATEGY ROUNDS CLIENTS\n");
        return 2;
    }
    strategy = argv[1];
    conn = connect_database();
    pthread_barrier_init(&barrier, NULL, (unsigned)client_count + 1);
    for (int i = 0; i < client_count; i++) {
        clients[i].conn = connect_database();
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i])) {
            die("thread", NULL);
        }
    }

    memset(seen, 0, sizeof(seen));
    for (int round = 0; round < rounds; round++) {
        const char *params[2] = {DEPLOYMENT, thread_id};
        char text[256];
        int i = 0;

        query_value(conn, "select gen_random_uuid()", 0, NULL, thread_id,
                    sizeof(thread_id));
        query_value(
            conn, "select code from agent.create_thread($1, $2, 'raise', '{}')",
            2, params, NULL, 0);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        describe_round(text, sizeof(text));
        while (i < CODES_MAX - 1 && seen[i][0] && strcmp(seen[i], text)) {
            i++;
        }
        memcpy(seen[i], text, sizeof(text));
        times[i]++;
    }

    for (int i = 0; i < client_count; i++) {
        pthread_join(clients[i].thread, NULL);
        PQfinish(clients[i].conn);
    }
    PQfinish(conn);
    for (int i = 0; i < CODES_MAX && seen[i][0]; i++) {
        printf("%d x %s\n", times[i], seen[i]);
    }
    return 0;
}
