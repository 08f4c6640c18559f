/* SPDX-License-Identifier: Apache-2.0 */
/* The published addresses of the service; see published_address.h. */
#include "published_address.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/address.h"
#include "../private.h"
#include "directives.h"
#include "value.h"

/* Enough for two lists of eight addresses, and for their replacements. */
#define ADDRESSES_MAX 64
#define UNTIL         "until="

const agent_published_address_list_t agent_published_address_ingress = {
    offsetof(agent_server_config_t, ingress_addresses)};
const agent_published_address_list_t agent_published_address_egress = {
    offsetof(agent_server_config_t, egress_addresses)};

static apr_array_header_t *list_of(const agent_server_config_t *config,
                                   const agent_published_address_list_t *list)
{
    return *(apr_array_header_t *const *)((const char *)config + list->offset);
}

/* Whether the same address or block was named before. */
static bool is_named(const apr_array_header_t *addresses,
                     const agent_address_block_t *block)
{
    agent_address_block_t other;

    /* Bounded: ADDRESSES_MAX. */
    for (int i = 0; i < addresses->nelts; i++) {
        if (agent_address_read_block(
                &other,
                APR_ARRAY_IDX(addresses, i, agent_published_address_t).text)
            && memcmp(&other, block, sizeof(other)) == 0) {
            return true;
        }
    }
    return false;
}

/* "2026-12-31", a day that the calendar has. */
static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    struct tm date = {.tm_isdst = -1};
    struct tm given;
    const char *end;

    /* strptime takes blanks and signs before numbers. */
    if (strlen(text) != sizeof(form) - 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof(form) - 1; i++) {
        if (form[i] == 'd' ? !apr_isdigit(text[i]) : text[i] != form[i]) {
            return false;
        }
    }
    end = strptime(text, "%Y-%m-%d", &date);
    if (end == NULL || *end != '\0') {
        return false;
    }
    given = date;
    /* timegm() normalizes the 31st of April to the 1st of May. */
    return timegm(&date) != -1 && date.tm_mday == given.tm_mday
        && date.tm_mon == given.tm_mon;
}

/* until: NULL, or a date. */
static const char *add_address(apr_array_header_t *addresses, cmd_parms *cmd,
                               const char *text, const char *until)
{
    agent_address_block_t block = {.family = 0};

    if (!agent_address_read_block(&block, text)) {
        return apr_psprintf(cmd->pool, "%s: expected %s, got '%s'",
                            cmd->cmd->name, agent_address_expected(text), text);
    }
    if (addresses->nelts == ADDRESSES_MAX || is_named(addresses, &block)) {
        return apr_psprintf(cmd->pool,
                            "%s: expected at most %d addresses, each once, "
                            "got '%s'",
                            cmd->cmd->name, ADDRESSES_MAX, text);
    }
    APR_ARRAY_PUSH(addresses,
                   agent_published_address_t) = (agent_published_address_t){
        text, until};
    return NULL;
}

/* Splits the line itself, because httpd splits at most 64 words. */
static apr_array_header_t *split(const char *line, apr_pool_t *pool)
{
    apr_array_header_t *words = apr_array_make(pool, 2, sizeof(const char *));

    while (*line != '\0') {
        APR_ARRAY_PUSH(words, const char *) = ap_getword_conf(pool, &line);
    }
    return words;
}

const char *agent_directive_addresses(cmd_parms *cmd, void *dir,
                                      const char *line)
{
    const apr_array_header_t *words = split(line, cmd->pool);
    int count = words->nelts;
    const char *last = count > 0 ? APR_ARRAY_IDX(words, count - 1, const char *)
                                 : "";
    const char *until = NULL;
    const char *problem = NULL;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config == NULL) {
        return problem;
    }
    if (strncmp(last, UNTIL, sizeof(UNTIL) - 1) == 0) {
        until = last + sizeof(UNTIL) - 1;
        count--;
        if (!is_date(until)) {
            return apr_psprintf(cmd->pool,
                                "%s: expected until=YYYY-MM-DD, got '%s'",
                                cmd->cmd->name, last);
        }
    }
    if (count == 0) {
        return apr_psprintf(cmd->pool,
                            "%s: expected at least one address, got none",
                            cmd->cmd->name);
    }
    problem = NULL;
    for (int i = 0; i < count && problem == NULL; i++) {
        problem = add_address(list_of(config, cmd->info), cmd,
                              APR_ARRAY_IDX(words, i, const char *), until);
    }
    return problem;
}

/* An element of a JSON array, or with `ends` a member of an object; "" when it
 * has none. Neither addresses nor dates need escapes. */
static const char *print_address(const agent_published_address_t *address,
                                 bool ends, apr_pool_t *pool)
{
    if (!ends) {
        return apr_pstrcat(pool, "\"", address->text, "\"", NULL);
    }
    return address->until == NULL
        ? ""
        : apr_pstrcat(pool, "\"", address->text, "\":\"", address->until, "\"",
                      NULL);
}

static const char *print_list(const apr_array_header_t *addresses, bool ends,
                              apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, addresses->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < addresses->nelts; i++) {
        const char *text = print_address(
            &APR_ARRAY_IDX(addresses, i, agent_published_address_t), ends,
            pool);

        if (*text != '\0') {
            APR_ARRAY_PUSH(texts, const char *) = text;
        }
    }
    return apr_array_pstrcat(pool, texts, ',');
}

const char *agent_published_address_print(
    const agent_server_config_t *config,
    const agent_published_address_list_t *list, apr_pool_t *pool)
{
    return print_list(list_of(config, list), false, pool);
}

const char *agent_published_address_print_ends(
    const agent_server_config_t *config,
    const agent_published_address_list_t *list, apr_pool_t *pool)
{
    return print_list(list_of(config, list), true, pool);
}

int agent_published_address_serial(const agent_server_config_t *config)
{
    return config->address_serial != -1 ? config->address_serial : 0;
}

static void warn_of_past(const agent_server_config_t *config, const char *name,
                         const agent_published_address_list_t *list,
                         const char *today, server_rec *server)
{
    const apr_array_header_t *addresses = list_of(config, list);

    /* Dates in this format sort as text. */
    for (int i = 0; i < addresses->nelts; i++) {
        const agent_published_address_t *address = &APR_ARRAY_IDX(
            addresses, i, agent_published_address_t);

        if (address->until != NULL && strcmp(address->until, today) < 0) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                         AGENT_LOGNO(0456) "%s: expected until=%s or later, "
                                           "got %s until=%s: customers take it "
                                           "for unused",
                         name, today, address->text, address->until);
        }
    }
}

void agent_published_address_warn(const agent_server_config_t *config,
                                  server_rec *server, apr_pool_t *pool)
{
    apr_time_exp_t now;
    const char *today;

    apr_time_exp_gmt(&now, apr_time_now());
    today = apr_psprintf(pool, "%04d-%02d-%02d", now.tm_year + 1900,
                         now.tm_mon + 1, now.tm_mday);
    warn_of_past(config, "AgentIngressAddress",
                 &agent_published_address_ingress, today, server);
    warn_of_past(config, "AgentEgressAddress", &agent_published_address_egress,
                 today, server);
}
