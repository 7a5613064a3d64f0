#include "cli/common/output.h"

#include "base/digest.h"
#include "base/file_set.h"
#include "base/interrupt.h"
#include "cli/common/screen.h"

#include <gsl/gsl_version.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* simgrid/version.h needs this header, but does not include it */
#include <xbt/base.h>

#include <simgrid/version.h>

void command_begin_json(struct json_out *json, const char *schema)
{
    json_begin_object(json, NULL);
    json_put_text(json, "schema", schema);
    json_put_count(json, "schema_version", JSON_SCHEMA_VERSION);
}

enum status command_print(const struct text *text, struct diag *diag)
{
    return file_set_write("-", text->data, text->size, diag);
}

void command_note(const struct diag *note)
{
    if (note->text != NULL)
        screen_print_messages(note->text);
}

void command_end_if_interrupted(const struct diag *diag)
{
    if (interrupted() == 0 || diag->text == NULL)
        return;
    int number = interrupted();
    screen_print_messages(diag->text);
    signal(number, SIG_DFL);
    raise(number);
}

void command_print_version(struct text *out)
{
    int major, minor, patch;
    sg_version_get(&major, &minor, &patch);
    text_printf(out, "longhaul %s\nSimGrid %d.%d.%d\nGSL %s\n", LONGHAUL_VERSION, major, minor,
                patch, gsl_version);
}

void command_put_build(struct text *out)
{
    struct text program = {0};
    int major, minor, patch;
    sg_version_get(&major, &minor, &patch);
    uint64_t digest = DIGEST_NONE;
    if (text_read(&program, "/proc/self/exe", NULL) == STATUS_OK) {
        digest = digest_add(digest, program.data, program.size);
    } else { /* a build that cannot be told from others is like none */
        const long long only[] = {(long long)getpid(), (long long)time(NULL)};
        digest = digest_add(digest, only, sizeof only);
    }
    text_printf(out, "longhaul %s, SimGrid %d.%d.%d, program %016" PRIx64, LONGHAUL_VERSION, major,
                minor, patch, digest);
    text_release(&program);
}
