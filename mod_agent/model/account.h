/* SPDX-License-Identifier: Apache-2.0 */
/* The account that requests belong to while no keys are configured. */
#ifndef AGENT_MODEL_ACCOUNT_H
#define AGENT_MODEL_ACCOUNT_H

/* `default`, made by the first migration. */
#define AGENT_ACCOUNT_DEFAULT "00000000-0000-0000-0000-000000000001"

#endif
