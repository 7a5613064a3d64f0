/* predict/launch/shell.h: the commands that a shell script would run, with the words that they would get, as far as
 * that can be known without running anything.
 *
 * It understands assignments of literal values, read -d '' A <<EOF, +=, arrays (A=( ... ), A+=( ... )), $A, ${A},
 * ${A:-default}, ${A:=default}, ${A:+other}, "${A[@]}", $((arithmetic)), quotes, continued lines, comments,
 * here-documents, `if` over strings, numbers and -z or -n, && and ||, parentheses within [[ ]], bash -c '...', eval,
 * and of #SBATCH lines those that say how many nodes, GPUs and tasks there are.
 *
 * It does not run commands in $( ) and ` `, loops, case, tests of files, or `if` over any of these. A word that depends
 * on them is open: it holds the text of the unknown part between two marks (predict/launch/settings.h). Commands inside
 * a loop, a case or such an `if` are listed once, with runs_conditionally. A variable that the script does not set is
 * open, too, as are its positional arguments $1, ...; "$@" is empty. */
#ifndef PREDICT_LAUNCH_SHELL_H
#define PREDICT_LAUNCH_SHELL_H

#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

struct shell_word {
    const char *text;
    uint32_t line;
};

/* A command, its words, and the values that variables have when it runs; NULL: the script does not set the variable. */
struct shell_command {
    struct shell_word *word;
    size_t word_count;
    const char *visible_devices;                 /* CUDA_VISIBLE_DEVICES */
    const char *processes_per_node, *node_count; /* NPROC_PER_NODE and NNODES */
    /* CONFIG_FILE, MODULE, CONFIG and NGPU, which torchtitan's run_train.sh reads */
    const char *config_file, *module, *recipe, *gpu_count;
    uint32_t line;           /* the line of the script on which it begins */
    bool runs_conditionally; /* whether it runs depends on something open */
};

struct shell_file_from_here_document {
    const char *text; /* the text of a here-document, with its variables expanded */
    /* the file to which the command writes; NULL: it names none, or only a run knows the name */
    const char *file;
    uint32_t line; /* the line of the script at which `text` begins */
};

/* The commands and here-documents of a script. All-zero is empty. Texts live in the arena, arrays on the heap. */
struct shell_script {
    struct arena arena;
    struct shell_command *command;
    size_t command_count, capacity;
    struct shell_file_from_here_document *document;
    size_t document_count, document_capacity;
};

void shell_script_release(struct shell_script *script);

/* Reads the script text[0..size). name: its name in messages. */
enum status shell_script_read(struct shell_script *script, const char *name, const char *text,
                              size_t size, struct diag *diag);

#endif
