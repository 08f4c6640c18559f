/* SPDX-License-Identifier: Apache-2.0 */
/* The account of requests without an API key. */
#ifndef AGENT_MODEL_ACCOUNT_H
#define AGENT_MODEL_ACCOUNT_H

/* `default`, which the first migration creates. */
#define AGENT_ACCOUNT_DEFAULT "00000000-0000-0000-0000-000000000001"

#endif
