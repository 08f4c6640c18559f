/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of other modules, which do not export their values, in httpd's
 * configuration tree. */
#ifndef AGENT_CONFIG_CONFTREE_H
#define AGENT_CONFIG_CONFTREE_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

/*
 * Returns the arguments, as written, of the last directive of that name at
 * server level, which is the one in force; NULL if there is none. Borrowed
 * until the next restart.
 */
const char *agent_conftree_find(const char *name);

/* Whether the arguments of a directive are `word`, in any case and perhaps in
 * quotes. */
bool agent_conftree_is_word(const char *args, const char *word);

/* Whether any section has the directive `name` with `word` as its only
 * argument, in any case and perhaps in quotes. */
bool agent_conftree_has_word(const char *name, const char *word);

/* Whether a directive as of agent_conftree_has_word() is in the virtual host of
 * `directive`, or in the main server outside of virtual hosts, whose sections
 * they inherit. */
bool agent_conftree_host_has_word(const ap_directive_t *directive,
                                  const char *name, const char *word);

/* Returns the number of different values that a directive has in all sections;
 * fallback, the value where it is absent, is one of them. */
int agent_conftree_count(const char *name, const char *fallback);

/* <AuthzProviderAlias PROVIDER NAME ARGS>, in pool. */
typedef struct agent_conftree_alias_t {
    const char *provider;
    const char *name;
    const char *args;
} agent_conftree_alias_t;

/* Reads the words of an <AuthzProviderAlias> as mod_authz_core does. */
agent_conftree_alias_t agent_conftree_read_alias(
    const ap_directive_t *directive, apr_pool_t *pool);

#define AGENT_CONFTREE_ALIAS "<AuthzProviderAlias"

/* Called with a directive, borrowed until the next restart. */
typedef void (*agent_conftree_visit_t)(const ap_directive_t *directive,
                                       void *baton);

/* Calls visit for each directive of that name, in all sections and in their
 * order. */
void agent_conftree_visit(const char *name, agent_conftree_visit_t visit,
                          void *baton);

#endif
