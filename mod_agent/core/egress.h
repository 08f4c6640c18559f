/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to addresses that a client has named (server-side request forgery,
 * SSRF): which URLs are accepted, and which addresses may be connected to.
 * What a URL says can be checked at once; what its host resolves to only when
 * the connection is made, since names change.
 */
#ifndef AGENT_CORE_EGRESS_H
#define AGENT_CORE_EGRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include <apr_tables.h>

/* Longest URL. */
#define AGENT_EGRESS_URL_BYTES 2048

/* What is allowed beyond public addresses of other hosts, what is not, and the
 * ports. */
typedef struct agent_egress_t {
    apr_array_header_t *blocks; /* of agent_address_block_t */
    /* Lower case; whatever they resolve to is allowed. */
    apr_array_header_t *hosts; /* of const char * */
    /* None: 80 and 443. */
    apr_array_header_t *ports; /* of agent_egress_ports_t */
    /* Never, whatever else is said. */
    apr_array_header_t *denied; /* of agent_address_block_t */
} agent_egress_t;

/* From first to last, both included. */
typedef struct agent_egress_ports_t {
    int first;
    int last;
} agent_egress_ports_t;

/* Where a URL leads. */
typedef struct agent_egress_target_t {
    /* Lower case, without a last dot and without brackets. */
    const char *host;
    int port;
} agent_egress_target_t;

/* A rule that allows public addresses on ports 80 and 443; lives in pool. */
agent_egress_t *agent_egress_make(apr_pool_t *pool);

/* Allows "10.0.0.0/8", "::1" or a host name. False: it is neither. */
bool agent_egress_allow(agent_egress_t *rule, const char *text);

/* Denies "10.0.0.0/8" or "::1". False: not an address. */
bool agent_egress_deny(agent_egress_t *rule, const char *text);

/* What agent_egress_allow() (may_be_host) or agent_egress_deny() expected
 * instead of a text that it has refused; constant. */
const char *agent_egress_expected(const char *text, bool may_be_host);

/* Allows "8080" or "8000-8999". False: it is neither. */
bool agent_egress_allow_ports(agent_egress_t *rule, const char *text);

/*
 * Reads a URL. NULL when it is one that could be requested, else what was
 * expected instead, to stand behind "expected"; both in pool.
 */
const char *agent_egress_read_url(agent_egress_target_t *out, const char *url,
                                  apr_pool_t *pool);

/*
 * Whether the rule lets a request go there, as far as can be known without
 * asking for the name's addresses. NULL when it does, else as above. own: as
 * below.
 */
const char *agent_egress_check(const agent_egress_t *rule,
                               const apr_array_header_t *own,
                               const agent_egress_target_t *target,
                               apr_pool_t *pool);

/* The directive by which agent_egress_check() has refused a target: for the
 * log, clients are not told how this server is configured. */
const char *agent_egress_rule(const agent_egress_t *rule,
                              const agent_egress_target_t *target);

/*
 * Whether the address, to which the target's host was resolved, may be
 * connected to. To be asked for the very address that is connected next. own:
 * this host's addresses (agent_address_list_own()), to which only what allows
 * them leads: services on it may trust it. NULL: not known.
 */
bool agent_egress_permits(const agent_egress_t *rule,
                          const apr_array_header_t *own,
                          const agent_egress_target_t *target,
                          const struct sockaddr *address);

#endif
