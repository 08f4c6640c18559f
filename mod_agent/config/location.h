/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a location, and of a host outside of its locations. It
 * is read through getters that return defaults for unset values. Unset is -1 or
 * NULL; directives_location.c and others of directives*.c set the values. */
#ifndef AGENT_CONFIG_LOCATION_H
#define AGENT_CONFIG_LOCATION_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

#include "runner_settings.h"

typedef struct agent_dir_config_t {
    /* Settings of a host; not of its locations. */
    agent_runner_settings_t runner;
    const char *deployment; /* see core/deployment.h */
    const char *prefix;
    const char *multitask_default;
    apr_int64_t max_body;
    apr_interval_time_t call_timeout;
    apr_interval_time_t thread_ttl; /* 0: none */
    /* NULL: inherited; empty: none. */
    const char *feedback_url;
    apr_array_header_t *origins;      /* of agent_origin_pattern_t */
    apr_array_header_t *origin_match; /* of ap_regex_t *; one or none */
    apr_array_header_t *headers;      /* of agent_header_pattern_t */
    apr_array_header_t *trusted;      /* of agent_address_block_t */
    int sign_up;                      /* agent_sign_up_t */
} agent_dir_config_t;

/* For the module record: create a configuration with all values unset, and
 * merge two; in pool. */
void *agent_location_create_dir(apr_pool_t *pool, char *path);
void *agent_location_merge_dir(apr_pool_t *pool, void *base, void *add);

/* Returns the values of a (virtual) host outside of its locations, borrowed. */
const agent_dir_config_t *agent_location_host(const server_rec *server);

/* Returns the AgentDeployment of a host outside of its locations, to which its
 * graphs belong. */
const char *agent_location_host_deployment(const server_rec *server);

/* Returns the request's configuration, borrowed from it. */
const agent_dir_config_t *agent_location_dir(const request_rec *r);

/* Returns the handler of SetHandler, before httpd sets r->handler, or NULL. */
const char *agent_location_handler(request_rec *r);

/* Whether a section of the request's (virtual) host has SetHandler name. Linear
 * in the number of its sections, up to the first that has it. */
bool agent_location_host_has_handler(request_rec *r, const char *name);

/* The following functions return a value or its default, borrowed from the
 * configuration. */

/* AgentDeployment; see core/deployment.h. */
const char *agent_location_deployment(const agent_dir_config_t *config);
/* AgentPrefix; "" without one. */
const char *agent_location_prefix(const agent_dir_config_t *config);
/* AgentMultitaskDefault. */
const char *agent_location_multitask(const agent_dir_config_t *config);
/* In bytes. */
apr_size_t agent_location_max_body(const agent_dir_config_t *config);
apr_interval_time_t agent_location_call_timeout(
    const agent_dir_config_t *config);
/* AgentThreadTTL, AgentStoreTTL; 0 = none. */
apr_interval_time_t agent_location_thread_ttl(const agent_dir_config_t *config);
apr_interval_time_t agent_location_store_ttl(const agent_dir_config_t *config);
/* A URL with {run_id} and {key}; NULL = none. */
const char *agent_location_feedback_url(const agent_dir_config_t *config);
/* Of agent_origin_pattern_t; NULL without AgentAllowOrigin. */
const apr_array_header_t *agent_location_origins(const agent_dir_config_t *);
/* Matches the whole of an origin; NULL without AgentAllowOriginMatch. */
const ap_regex_t *agent_location_origin_match(const agent_dir_config_t *config);
/* Of agent_header_pattern_t; NULL without AgentConfigurableHeaders. */
const apr_array_header_t *agent_location_headers(const agent_dir_config_t *);
/* Of agent_address_block_t; NULL without AgentTrustUserHeader. */
const apr_array_header_t *agent_location_trusted(const agent_dir_config_t *);

#endif
