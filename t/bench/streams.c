/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: */
/*
 * Many clients that each stream a run of a graph that writes the time into its
 * events, as ticker.c does:
 *   streams PORT ASSISTANT STREAMS TICKS EVERY_MS WARM_UP_MS
 * Prints one line of JSON: how many events came, how many a second, and how
 * long after they were written (milliseconds); the delays of the warm-up, in
 * which all runs are created at once, are not counted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MARK      "\"at\":"
#define DELAY_MAX 60000

typedef struct stream_t {
    int fd;
    /* The last bytes read, which may have a part of a mark. */
    char rest[64];
} stream_t;

/* By tenths of a millisecond. */
static unsigned long delays[DELAY_MAX * 10 + 1];
static unsigned long events;
static unsigned long cut;
static long long warm_up_us;
static unsigned long timed;
static long long first_us;
static long long last_us;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static long long now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void open_stream(stream_t *stream, int port, const char *request)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};

    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    stream->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (stream->fd < 0
        || connect(stream->fd, (struct sockaddr *)&address, sizeof(address))
            != 0
        || write(stream->fd, request, strlen(request))
            != (ssize_t)strlen(request)
        || fcntl(stream->fd, F_SETFL, O_NONBLOCK) != 0) {
        die("a stream");
    }
}

static void count_event(long long at_us, long long now)
{
    long long tenths = (now - at_us) / 100;

    events++;
    if (first_us == 0) {
        first_us = now;
    }
    last_us = now;
    if (at_us >= first_us + warm_up_us) {
        tenths = tenths < 0 ? 0 : tenths;
        delays[tenths > DELAY_MAX * 10 ? DELAY_MAX * 10 : tenths]++;
        timed++;
    }
}

/* Counts the marks of text; rest keeps a possible beginning of one. */
static void count_events(stream_t *stream, const char *text, long long now)
{
    const char *mark;

    while ((mark = strstr(text, MARK)) != NULL) {
        char *end;
        long long at_us = strtoll(mark + strlen(MARK), &end, 10);

        if (*end == '\0') {
            text = mark;
            break;
        }
        count_event(at_us, now);
        text = end;
    }
    if (strlen(text) >= sizeof(stream->rest)) {
        text += strlen(text) - (sizeof(stream->rest) - 1);
    }
    memmove(stream->rest, text, strlen(text) + 1);
}

/* 0 when the stream has ended. */
static int read_stream(stream_t *stream)
{
    static char text[256 * 1024];
    size_t kept = strlen(stream->rest);
    ssize_t count;

    memcpy(text, stream->rest, kept);
    count = read(stream->fd, text + kept, sizeof(text) - 1 - kept);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 1;
    }
    if (count <= 0) {
        cut += strstr(stream->rest, "\r\n0\r\n\r\n") == NULL;
        return 0;
    }
    text[kept + (size_t)count] = '\0';
    count_events(stream, text, now_us());
    return 1;
}

static double percentile(double part)
{
    unsigned long wanted = (unsigned long)(part * (double)timed);
    unsigned long seen = 0;
    size_t tenths = 0;

    while (tenths < DELAY_MAX * 10 && (seen += delays[tenths]) <= wanted) {
        tenths++;
    }
    return (double)tenths / 10;
}

static void follow_all(int epoll, stream_t *streams, int count)
{
    while (count > 0) {
        struct epoll_event ready[256];
        int found = epoll_wait(epoll, ready, 256, 60000);

        if (found == 0) {
            fprintf(stderr, "%d streams have stopped sending\n", count);
            exit(1);
        }
        for (int i = 0; i < found; i++) {
            stream_t *stream = &streams[ready[i].data.u32];

            if (!read_stream(stream)) {
                close(stream->fd);
                count--;
            }
        }
    }
}

int main(int argc, char **argv)
{
    int port = argc == 7 ? atoi(argv[1]) : 0;
    int count = argc == 7 ? atoi(argv[3]) : 0;
    struct rlimit limit = {(rlim_t)count + 100, (rlim_t)count + 100};
    stream_t *streams = calloc((size_t)count + 1, sizeof(*streams));
    int epoll = epoll_create1(0);
    char body[200];
    char request[600];

    if (port <= 0 || count <= 0) {
        fprintf(stderr,
                "streams PORT ASSISTANT STREAMS TICKS EVERY_MS WARM_UP_MS\n");
        return 2;
    }
    warm_up_us = atoll(argv[6]) * 1000;
    setrlimit(RLIMIT_NOFILE, &limit);
    snprintf(body, sizeof(body),
             "{\"assistant_id\":\"%s\",\"stream_mode\":[\"custom\"],"
             "\"input\":{\"ticks\":%s,\"every_ms\":%s}}",
             argv[2], argv[4], argv[5]);
    snprintf(
        request, sizeof(request),
        "POST /runs/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

        open_stream(&streams[i], port, request);
        epoll_ctl(epoll, EPOLL_CTL_ADD, streams[i].fd, &event);
    }
    follow_all(epoll, streams, count);
    printf("{\"events\":%lu,\"cut\":%lu,\"seconds\":%.3f,\"p50\":%.1f,"
           "\"p99\":%.1f,\"p9999\":%.1f}\n",
           events, cut, (double)(last_us - first_us) / 1e6, percentile(0.5),
           percentile(0.99), percentile(0.9999));
    free(streams);
    return 0;
}
