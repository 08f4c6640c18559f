/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: */
/*
 * Measures a running supervisor against the database alone, without HTTP.
 *
 *   bench CONNINFO WAKE latency|rate COUNT INPUT
 *
 * INPUT is the input of the runs, JSON without apostrophes: {"do":"noop"} for
 * the scripted runner of this folder.
 *
 * latency creates one run after the other and prints p50, p90, p99 and the
 * longest time from its creation to the notification of its end. rate creates
 * all runs, wakes the supervisor then, and prints the runs that end in a
 * second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <libpq-fe.h>

#define DEPLOYMENT "00000000-0000-0000-0000-000000000001"

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static PGresult *query(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_TUPLES_OK
        && PQresultStatus(result) != PGRES_COMMAND_OK) {
        fprintf(stderr, "%s\n", PQerrorMessage(conn));
        exit(1);
    }
    return result;
}

static PGconn *open_connection(const char *conninfo)
{
    PGconn *conn = PQconnectdb(conninfo);

    if (PQstatus(conn) != CONNECTION_OK) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
        exit(1);
    }
    return conn;
}

static int open_wake(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void wake(int fd)
{
    if (send(fd, "R", 1, MSG_DONTWAIT) < 0) {
        /* The claim of each second finds the run. */
        return;
    }
}

/* Creates a thread and a run; out: the id of the run. */
static void create_run(PGconn *conn, const char *input, char out[40])
{
    char sql[2048];
    PGresult *result;

    snprintf(sql, sizeof(sql),
             "with k as materialized (select gen_random_uuid() as t, "
             "gen_random_uuid() as r, gen_random_uuid() as a), "
             "c as materialized (select x.code from k, "
             "agent.create_thread('" DEPLOYMENT "', k.t, 'raise', '{}') x) "
             "select k.r, x.code from k, c, lateral (select * from "
             "agent.create_run('" DEPLOYMENT "', k.t, k.r, k.a, 'agent', "
             "array['agent'], 'reject', case when c.code = 'ok' then '' end, "
             "null, null, '{\"input\":%s}')) x",
             input);
    result = query(conn, sql);
    if (PQntuples(result) != 1 || strcmp(PQgetvalue(result, 0, 1), "ok") != 0) {
        fprintf(stderr, "create_run: %s\n", PQgetvalue(result, 0, 1));
        exit(1);
    }
    snprintf(out, 40, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
}

static int is_final(PGconn *conn, const char *run_id)
{
    char sql[256];
    PGresult *result;
    int final;

    snprintf(sql, sizeof(sql),
             "select finished_at is not null from agent.runs "
             "where deployment_id = '" DEPLOYMENT "' and run_id = '%s'",
             run_id);
    result = query(conn, sql);
    final = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return final;
}

/* Waits as a join does: queries, waits for a notification, queries again. */
static void join(PGconn *conn, PGconn *listener, const char *run_id)
{
    while (!is_final(conn, run_id)) {
        struct pollfd socket = {.fd = PQsocket(listener), .events = POLLIN};
        PGnotify *notify;
        int notified = 0;

        while (!notified) {
            if (poll(&socket, 1, 5000) == 0) {
                fprintf(stderr, "no notification of %s for 5 s\n", run_id);
                exit(1);
            }
            PQconsumeInput(listener);
            while ((notify = PQnotifies(listener)) != NULL) {
                notified |= strstr(notify->extra, run_id) != NULL;
                PQfreemem(notify);
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure_latency(const char *conninfo, int wake_fd, int count,
                            const char *input)
{
    PGconn *conn = open_connection(conninfo);
    PGconn *listener = open_connection(conninfo);
    double *times = calloc((size_t)count, sizeof(*times));
    char run_id[40];

    PQclear(query(listener, "listen agent_runs"));
    for (int i = 0; i < count; i++) {
        double begun;

        create_run(conn, input, run_id);
        begun = now_ms();
        wake(wake_fd);
        join(conn, listener, run_id);
        times[i] = now_ms() - begun;
    }
    qsort(times, (size_t)count, sizeof(*times), compare);
    printf("latency %s: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, longest %.2f "
           "ms (%d runs)\n",
           input, times[count / 2], times[count * 9 / 10],
           times[count * 99 / 100], times[count - 1], count);
    free(times);
    PQfinish(listener);
    PQfinish(conn);
}

static long count_unfinished(PGconn *conn)
{
    PGresult *result = query(conn, "select count(*) from agent.run_queue");
    long count = atol(PQgetvalue(result, 0, 0));

    PQclear(result);
    return count;
}

static void measure_rate(const char *conninfo, int wake_fd, int count,
                         const char *input)
{
    PGconn *conn = open_connection(conninfo);
    char run_id[40];
    double begun, took;

    /* In one transaction: no run is claimed before all exist. */
    PQclear(query(conn, "begin"));
    for (int i = 0; i < count; i++) {
        create_run(conn, input, run_id);
    }
    begun = now_ms();
    PQclear(query(conn, "commit"));
    wake(wake_fd);
    while (count_unfinished(conn) > 0) {
        usleep(20000);
    }
    took = now_ms() - begun;
    printf("rate %s: %.0f runs/s (%d runs in %.0f ms)\n", input,
           count / took * 1e3, count, took);
    PQfinish(conn);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "bench CONNINFO WAKE latency|rate COUNT INPUT\n");
        return 2;
    }
    if (strcmp(argv[3], "latency") == 0) {
        measure_latency(argv[1], open_wake(argv[2]), atoi(argv[4]), argv[5]);
    }
    else {
        measure_rate(argv[1], open_wake(argv[2]), atoi(argv[4]), argv[5]);
    }
    return 0;
}
