/* tests/fuzz/replay.c: passes every file of a corpus to a fuzz target, so that faults that fuzzing once found
 * do not return. It also passes each file cut short and with bytes changed, in the same way every time, which
 * is a little fuzzing in every test run. */
#include "base/arena.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 64, CHANGES = 256 };

static uint64_t state = 1;

static size_t random_below(size_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((state >> 33) % below);
}

/* Passes a copy of exactly this size to the target, so that the address sanitizer notices a read past the end. */
static void replay(const char *data, size_t size)
{
    uint8_t *copy = heap_alloc(size, 1);
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void replay_mutated_input(char *data, size_t size)
{
    static const char bytes[] = "\0\"{}[],:#/*-+.eE0919KMGB \n\\u\xff\x80";
    replay(data, size);
    if (size == 0)
        return;
    for (size_t i = 0; i < CUTS && i < size; i++)
        replay(data, size <= CUTS ? i : random_below(size));
    for (size_t i = 0; i < CHANGES; i++) {
        size_t at = random_below(size);
        char old = data[at];
        data[at] = bytes[random_below(sizeof bytes - 1)];
        replay(data, size);
        if (i % 4 != 0) /* otherwise the change stays and the next one adds to it */
            data[at] = old;
    }
}

int main(int argc, char **argv)
{
    size_t files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            fprintf(stderr, "%s: error: cannot open: %s\n", argv[i], strerror(errno));
            return 2;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            if (entry->d_name[0] == '.')
                continue;
            struct text path = {0}, text = {0};
            struct diag diag = {0};
            text_printf(&path, "%s/%s", argv[i], entry->d_name);
            if (text_read(&text, path.data, &diag) != STATUS_OK) {
                fputs(diag.text, stderr);
                return 2;
            }
            printf("%s: %zu bytes\n", entry->d_name, text.size);
            fflush(stdout); /* so the file's name is printed if the target ends the program */
            replay_mutated_input(text.data, text.size);
            files++;
            text_release(&text);
            text_release(&path);
        }
        closedir(folder);
    }
    if (files == 0) {
        fprintf(stderr, "no corpus: give folders that hold files\n");
        return 2;
    }
    printf("%zu files, each with %d variants\n", files, CUTS + CHANGES);
    return 0;
}
