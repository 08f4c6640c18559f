/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of agentctl. Much of it quotes the folder of somebody whom the
 * administrator need not trust: control characters, with which a terminal can
 * be made to hide or to change text, are replaced by `?`.
 */
#ifndef AGENT_CTL_OUTPUT_H
#define AGENT_CTL_OUTPUT_H

#include <stdio.h>

#include <apr.h>
#include <json-c/json.h>

#include "status.h"

/* Prints `agentctl: ` and the message to standard error. */
void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints `agentctl: warning: ` and the message to standard error. */
void ctl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints what is done next to standard output, before the output of commands.
 */
void ctl_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line to standard output. */
void ctl_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line for httpd.conf as ctl_print() does, and adds it, as printed, to
 * lines, which may be NULL. */
void ctl_directive(json_object *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sends all of this to standard error from now on: standard output is for a
 * record alone, into which no program can write. */
void ctl_output_divert(void);

/* Prints the record as a line to standard output. */
void ctl_output_record(json_object *record);

/* Returns CTL_DONE if all of standard output could be written; else CTL_FAILED,
 * after printing why. */
int ctl_output_flush(void);

/* Prints output of a program, length > 0 bytes, to stdout or stderr, with its
 * lines and tabs. Changes bytes. */
void ctl_relay(FILE *stream, char *bytes, apr_size_t length);

#endif
