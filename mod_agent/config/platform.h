/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of platform hosts. */
#ifndef AGENT_CONFIG_PLATFORM_H
#define AGENT_CONFIG_PLATFORM_H

#include "config.h"
#include "location.h"

/* Who may create an account. */
typedef enum agent_sign_up_t {
    AGENT_SIGN_UP_UNSET,
    AGENT_SIGN_UP_OFF,
    AGENT_SIGN_UP_ON,
    AGENT_SIGN_UP_INVITATION
} agent_sign_up_t;

/* AgentSignUp; never AGENT_SIGN_UP_UNSET. */
agent_sign_up_t agent_platform_sign_up(const agent_dir_config_t *config);

#endif
