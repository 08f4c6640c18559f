/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of /v1/accounts and /v1/account. */
#include "schema_private.h"

#include <string.h>

/* 200 characters; the constraints of PostgreSQL count those. */
#define NAME_BYTES 800
/* Most bytes of a member's name that an error quotes. */
#define KEY_BYTES 64
/* Of an invitation, which is shorter. */
#define INVITATION_BYTES 200
/* Ten years. */
#define MAX_SEC 315360000

static const char *const kinds[] = {"service", "personal", "deployment", NULL};
static const char *const scopes[] = {"read", "run", "deploy", "admin", NULL};

/* A word alone would be read as no list. */
static apr_status_t check_scopes(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path)
{
    return agent_raw_kind(value) == AGENT_RAW_ARRAY
        ? agent_check_words(check, value, path)
        : agent_check_refuse(path, "an array of scopes");
}

static const agent_check_t sign_up_members[] = {
    {.key = "name",
     .required = true,
     .check = agent_check_text,
     .low = 1,
     .high = NAME_BYTES},
    {.key = "invitation", .check = agent_check_text, .high = INVITATION_BYTES},
    {.key = NULL}};

static const agent_check_t update_members[] = {
    {.key = "name", .check = agent_check_text, .low = 1, .high = NAME_BYTES},
    {.key = "closed", .check = agent_check_flag},
    {.key = NULL}};

static apr_status_t check_confirm(const agent_check_t *check, agent_raw_t value,
                                  const agent_check_path_t *path)
{
    agent_error_t *ignored;
    const agent_check_path_t scratch = {.err = &ignored, .pool = path->pool};

    return agent_check_uuid(check, value, &scratch) == APR_SUCCESS
        ? APR_SUCCESS
        : agent_check_refuse(path, "the id of the account, a UUID");
}

static const agent_check_t delete_members[] = {
    {.key = "confirm", .required = true, .check = check_confirm},
    {.key = NULL}};

static const agent_check_t key_members[] = {
    {.key = "name",
     .required = true,
     .check = agent_check_text,
     .low = 1,
     .high = NAME_BYTES},
    {.key = "kind", .check = agent_check_word, .words = kinds},
    {.key = "user_id", .check = agent_check_text, .low = 1, .high = NAME_BYTES},
    {.key = "deployment", .check = agent_check_text, .low = 1, .high = 63},
    {.key = "scopes", .check = check_scopes, .words = scopes},
    {.key = "expires_in_sec",
     .check = agent_check_integer,
     .low = 1,
     .high = MAX_SEC},
    {.key = NULL}};

static const agent_check_t rotation_members[] = {{.key = "overlap_sec",
                                                  .check = agent_check_integer,
                                                  .low = 0,
                                                  .high = MAX_SEC},
                                                 {.key = NULL}};

/* In the order of agent_account_body_t. */
static const agent_check_t *const bodies[] = {sign_up_members, update_members,
                                              delete_members, key_members,
                                              rotation_members};

/* Refuses unknown members: a misspelt one, such as "scope", would be ignored,
 * and the key would have other scopes than intended. */
static apr_status_t check_names(const agent_check_t *members, agent_raw_t body,
                                const agent_check_path_t *path)
{
    const char *at = body.text;
    agent_member_t member;

    while (agent_raw_member_next(&member, &at)) {
        const agent_check_t *known = members;

        while (known->key != NULL
               && !agent_raw_member_is(&member, known->key)) {
            known++;
        }
        if (known->key == NULL) {
            return member.key_length <= KEY_BYTES
                ? agent_schema_refuse(path,
                                      agent_raw_member_key(&member, path->pool),
                                      "no member of this name")
                : agent_check_refuse(path, "no member with such a long name");
        }
    }
    return APR_SUCCESS;
}

/* The table of keys checks the same, without the name of the member. */
static apr_status_t check_kind(const agent_fields_t *key,
                               const agent_check_path_t *path)
{
    const char *kind = agent_field_string(key, "kind", "service");
    bool is_personal = strcmp(kind, "personal") == 0;

    if (is_personal != (agent_field_raw(key, "user_id").length > 0)) {
        return agent_schema_refuse(path, "user_id",
                                   is_personal
                                       ? "a value: a personal key needs it"
                                       : "none: kind is not personal");
    }
    return strcmp(kind, "deployment") == 0
            && agent_field_raw(key, "deployment").length == 0
        ? agent_schema_refuse(path, "deployment",
                              "a value: a key of kind deployment needs it")
        : APR_SUCCESS;
}

apr_status_t agent_schema_account(const agent_fields_t **fields,
                                  agent_account_body_t kind, agent_raw_t body,
                                  agent_error_t **err, apr_pool_t *pool)
{
    agent_check_path_t path = {.err = err, .pool = pool};

    if (agent_schema_check_body(fields, bodies[kind], body, &path)
            != APR_SUCCESS
        || check_names(bodies[kind], body, &path) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return kind == AGENT_ACCOUNT_KEY ? check_kind(*fields, &path) : APR_SUCCESS;
}
