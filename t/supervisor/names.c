/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A getaddrinfo() for programs of the tests. A name under .test contains its
 * addresses, one a label and in this order: a.10-0-0-1.127-0-0-1.test has
 * 10.0.0.1 and 127.0.0.1. A name without any does not exist. Names outside of
 * .test are resolved as usual.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

typedef int lookup_t(const char *, const char *, const struct addrinfo *,
                     struct addrinfo **);

/* "10-0-0-1" as "10.0.0.1"; false when it is not an address. */
static int read_label(char *label)
{
    struct in_addr address;

    for (char *c = label; *c != '\0'; c++) {
        *c = *c == '-' ? '.' : *c;
    }
    return inet_pton(AF_INET, label, &address) == 1;
}

static lookup_t *find_resolver(void)
{
    lookup_t *resolver;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&resolver, &symbol, sizeof(resolver));
    return resolver;
}

/* The C library allocates the list, so that the caller can free it. */
static int look_up_labels(char *name, const char *service,
                          const struct addrinfo *hints, struct addrinfo **out)
{
    struct addrinfo **end = out;
    char *rest = NULL;

    *out = NULL;
    for (char *label = apr_strtok(name, ".", &rest); label != NULL;
         label = apr_strtok(NULL, ".", &rest)) {
        if (!read_label(label)) {
            continue;
        }
        if (find_resolver()(label, service, hints, end) != 0) {
            return EAI_FAIL;
        }
        while (*end != NULL) {
            end = &(*end)->ai_next;
        }
    }
    return *out != NULL ? 0 : EAI_NONAME;
}

int getaddrinfo(const char *node, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    size_t length = node != NULL ? strlen(node) : 0;
    char name[256];

    if (length < 5 || length >= sizeof(name)
        || strcmp(node + length - 5, ".test") != 0) {
        return find_resolver()(node, service, hints, out);
    }
    apr_cpystrn(name, node, sizeof(name));
    return look_up_labels(name, service, hints, out);
}
