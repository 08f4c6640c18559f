/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this build has a sanitizer, which takes several times the memory and
 * most of the address space. */
#ifndef AGENT_CORE_SANITIZER_H
#define AGENT_CORE_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AGENT_IS_SANITIZED 1
#else
#define AGENT_IS_SANITIZED 0
#endif

#endif
