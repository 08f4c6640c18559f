/* SPDX-License-Identifier: Apache-2.0 */
/* The command line; see option.h. */
#include "option.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>

#include "../../core/version.h"
#include "output.h"

/* Columns for the name and the value of an option. */
#define NAME_COLUMNS 24

static void print_usage(FILE *stream, const ctl_command_t *command)
{
    fprintf(stream, "usage: agentctl %s [OPTION...]%s%s\n", command->name,
            command->operand != NULL ? " " : "",
            command->operand != NULL ? command->operand : "");
}

static void print_commands(FILE *stream, const ctl_command_t *commands)
{
    for (const ctl_command_t *c = commands; c->name != NULL; c++) {
        print_usage(stream, c);
    }
    fputs("\n`agentctl COMMAND --help` prints the options of a command; see "
          "agentctl(8).\n",
          stream);
}

/* Prints the lines of text, all but the first one after `blanks`. */
static void print_lines(FILE *stream, const char *text, int blanks)
{
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        fprintf(stream, "%.*s\n%*s", (int)(end - text), text, blanks, "");
    }
    fprintf(stream, "%s\n", text);
}

static void print_help(const ctl_command_t *command, apr_pool_t *pool)
{
    print_usage(stdout, command);
    fprintf(stdout, "\n%s\n\n", command->summary);
    /* Bounded: by the options of a command. */
    for (const ctl_option_t *o = command->options; o->name != NULL; o++) {
        const char *name = o->value != NULL
            ? apr_pstrcat(pool, o->name, " ", o->value, NULL)
            : o->name;

        fprintf(stdout, "  --%-*s", NAME_COLUMNS - 4, name);
        if (strlen(name) > NAME_COLUMNS - 6) {
            fprintf(stdout, "\n%*s", NAME_COLUMNS, "");
        }
        print_lines(stdout, o->help, NAME_COLUMNS);
    }
}

/* The options as getopt takes them, in pool; `help` comes last. */
static struct option *make_options(const ctl_command_t *command,
                                   apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 8, sizeof(struct option));

    for (const ctl_option_t *o = command->options; o->name != NULL; o++) {
        APR_ARRAY_PUSH(list, struct option) = (struct option){
            o->name, o->value != NULL ? required_argument : no_argument, NULL,
            0};
    }
    APR_ARRAY_PUSH(list, struct option) = (struct option){"help", no_argument,
                                                          NULL, 0};
    APR_ARRAY_PUSH(list, struct option) = (struct option){NULL, 0, NULL, 0};
    return (struct option *)(void *)list->elts;
}

static void set_option(ctl_arguments_t *arguments, const ctl_option_t *option)
{
    if (option->value != NULL) {
        arguments->text[option->index] = optarg;
    }
    else {
        arguments->flag[option->index] = true;
    }
}

/* The operand is missing, or a word follows it. */
static void print_wrong_operand(const ctl_command_t *command, int most,
                                int count, char **operands)
{
    if (count < most) {
        ctl_error("%s: expected %s, got none", command->name, command->operand);
    }
    else {
        ctl_error("%s: expected no word after its %s, got %s", command->name,
                  most > 0 ? command->operand : "options", operands[most]);
    }
}

/* Runs a command whose name is argv[0]. */
static int run_command(const ctl_command_t *command, int argc, char **argv,
                       apr_pool_t *pool)
{
    ctl_arguments_t arguments = {.pool = pool};
    const struct option *options = make_options(command, pool);
    int index = 0;
    int count;
    int most;
    int found;

    while ((found = getopt_long(argc, argv, "", options, &index)) == 0) {
        if (command->options[index].name == NULL) {
            print_help(command, pool);
            return CTL_DONE;
        }
        set_option(&arguments, &command->options[index]);
    }
    count = argc - optind;
    most = command->operand != NULL && arguments.text[CTL_OPERAND] == NULL;
    /* getopt has said which option is wrong. */
    if (found != -1 || count != most) {
        if (found == -1) {
            print_wrong_operand(command, most, count, argv + optind);
        }
        print_usage(stderr, command);
        return CTL_USAGE;
    }
    arguments.operand = most > 0 ? argv[optind] : arguments.text[CTL_OPERAND];
    return command->run(&arguments);
}

/* Returns how many words of argv the name of the command begins with;
 * *is_whole: they are the whole name. */
static int count_words(bool *is_whole, const ctl_command_t *command, int argc,
                       char **argv)
{
    const char *name = command->name;
    int words = 0;

    while (words < argc && *name != '\0') {
        apr_size_t length = strcspn(name, " ");

        if (strlen(argv[words]) != length
            || memcmp(argv[words], name, length) != 0) {
            break;
        }
        words++;
        name += length + (name[length] == ' ');
    }
    *is_whole = *name == '\0';
    return words;
}

/* Says which word is the first one that no command has at its place. */
static void print_wrong_word(const ctl_command_t *commands, int argc,
                             char **argv)
{
    int right = 0;
    bool is_whole;

    for (const ctl_command_t *c = commands; c->name != NULL; c++) {
        int words = count_words(&is_whole, c, argc, argv);

        right = words > right ? words : right;
    }
    if (right < argc) {
        ctl_error("expected a command, got %s%s%s", right > 0 ? argv[0] : "",
                  right > 0 ? " " : "", argv[right]);
    }
    else if (argc > 0) {
        ctl_error("expected another word after %s", argv[argc - 1]);
    }
    else {
        ctl_error("expected a command, got none");
    }
}

int ctl_option_run(const ctl_command_t *commands, int argc, char **argv,
                   apr_pool_t *pool)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        print_commands(stdout, commands);
        return CTL_DONE;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("agentctl " AGENT_VERSION);
        return CTL_DONE;
    }
    for (const ctl_command_t *c = commands; c->name != NULL; c++) {
        bool is_whole;
        int words = count_words(&is_whole, c, argc - 1, argv + 1);

        if (is_whole) {
            argv[words] = argv[0];
            return run_command(c, argc - words, argv + words, pool);
        }
    }
    print_wrong_word(commands, argc - 1, argv + 1);
    print_commands(stderr, commands);
    return CTL_USAGE;
}
