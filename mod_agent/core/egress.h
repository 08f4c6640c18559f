/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protection against server-side request forgery (SSRF): which URLs of clients
 * are accepted, and which addresses may be connected to. A URL is checked when
 * it is received; the addresses of its host only when a connection is made,
 * since they may change.
 */
#ifndef AGENT_CORE_EGRESS_H
#define AGENT_CORE_EGRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include <apr_tables.h>

/* The longest URL, in bytes. */
#define AGENT_EGRESS_URL_BYTES 2048

/* A rule: the addresses allowed in addition to public ones of other hosts, and
 * the denied addresses, the ports and the origins. */
typedef struct agent_egress_t {
    apr_array_header_t *blocks; /* of agent_address_block_t */
    /* Host names in lower case, all of whose addresses are allowed. */
    apr_array_header_t *hosts; /* of const char * */
    /* Empty: 80 and 443. */
    apr_array_header_t *ports; /* of agent_egress_ports_t */
    /* Takes precedence over the others. */
    apr_array_header_t *denied; /* of agent_address_block_t */
    /* Empty, without has_https: all origins. */
    apr_array_header_t *origins; /* of agent_origin_pattern_t */
    /* All origins with https. */
    bool has_https;
} agent_egress_t;

/* A range of ports, inclusive. */
typedef struct agent_egress_ports_t {
    int first;
    int last;
} agent_egress_ports_t;

/* Scheme, host and port of a URL. */
typedef struct agent_egress_target_t {
    /* "http" or "https". */
    const char *scheme;
    /* Lower case, without trailing dot and brackets. */
    const char *host;
    int port;
} agent_egress_target_t;

/* Makes a rule that allows public addresses on ports 80 and 443, in pool. */
agent_egress_t *agent_egress_make(apr_pool_t *pool);

/* Allows "10.0.0.0/8", "::1" or a host name; false for anything else. */
bool agent_egress_allow(agent_egress_t *rule, const char *text);

/* Denies "10.0.0.0/8" or "::1"; false for anything else. */
bool agent_egress_deny(agent_egress_t *rule, const char *text);

/* Describes the expected text after agent_egress_allow() (may_be_host) or
 * agent_egress_deny() has failed; constant. */
const char *agent_egress_expected(const char *text, bool may_be_host);

/* Allows "8080" or "8000-8999"; false for anything else. */
bool agent_egress_allow_ports(agent_egress_t *rule, const char *text);

/* Allows the word "https", or an origin of http or https, whose host may begin
 * with `*.` and whose port may be `*`; false for anything else. Once one is
 * allowed, all other origins are refused. */
bool agent_egress_allow_origin(agent_egress_t *rule, const char *text);

/*
 * Parses a URL; *out is in pool. Returns NULL, or a description of what was
 * expected, to follow the word "expected", in pool.
 */
const char *agent_egress_read_url(agent_egress_target_t *out, const char *url,
                                  apr_pool_t *pool);

/*
 * Checks the target without a DNS query. Returns NULL if the rule allows it,
 * else a description of what was expected, as above. own: as for
 * agent_egress_permits().
 */
const char *agent_egress_check(const agent_egress_t *rule,
                               const apr_array_header_t *own,
                               const agent_egress_target_t *target,
                               apr_pool_t *pool);

/* Returns the name of the directive for which agent_egress_check() refused the
 * target; constant. For the log only: clients must not learn the
 * configuration. */
const char *agent_egress_directive(const agent_egress_t *rule,
                                   const agent_egress_target_t *target,
                                   apr_pool_t *pool);

/*
 * Whether a connection to an address of the target's host is allowed. Must be
 * called with the address that is then connected to. own: this host's addresses
 * (agent_address_list_own()), which must be allowed explicitly because local
 * services may trust local connections; NULL: unknown.
 */
bool agent_egress_permits(const agent_egress_t *rule,
                          const apr_array_header_t *own,
                          const agent_egress_target_t *target,
                          const struct sockaddr *address);

#endif
