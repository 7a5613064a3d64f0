#include "cli/common/output.h"

#include "base/digest.h"
#include "base/file_set.h"
#include "base/interrupt.h"
#include "cli/common/screen.h"
#include "sim/scheduler/engine.h"

#include <gsl/gsl_version.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void command_begin_json(struct json_out *json, const char *schema)
{
    json_begin_object(json, NULL);
    json_put_text(json, "schema", schema);
    json_put_count(json, "schema_version", JSON_SCHEMA_VERSION);
}

enum status command_print(const struct text *text, struct diag *diag)
{
    return file_set_write_single_file("-", text->data, text->size, diag);
}

void command_print_notes(const struct diag *note)
{
    if (note->text != NULL)
        screen_print_messages(note->text);
}

void command_exit_if_interrupted(const struct diag *diag)
{
    if (interrupt_caught_signal_number() == 0 || diag->text == NULL)
        return;
    int number = interrupt_caught_signal_number();
    screen_print_messages(diag->text);
    signal(number, SIG_DFL);
    raise(number);
}

/* Continues a digest with the bytes of a file, and returns it. A file that cannot be read is replaced by the process id
 * and the time, so that the digest equals that of no other process. */
static uint64_t continue_digest_with_file(uint64_t digest, const char *path)
{
    struct text file = {0};
    if (text_read(&file, path, NULL) == STATUS_OK) {
        digest = digest_add(digest, file.data, file.size);
    } else {
        const long long only[] = {(long long)getpid(), (long long)time(NULL)};
        digest = digest_add(digest, only, sizeof only);
    }
    text_release(&file);
    return digest;
}

enum status command_print_version(struct text *out, struct diag *diag)
{
    int major, minor, patch;
    enum status status = engine_load(diag);
    if (status != STATUS_OK)
        return status;
    engine_version(&major, &minor, &patch);
    text_printf(out, "longhaul %s\nSimGrid %d.%d.%d\nGSL %s\n", LONGHAUL_VERSION, major, minor,
                patch, gsl_version);
    return STATUS_OK;
}

enum status command_put_build_id(struct text *out, struct diag *diag)
{
    struct text module = {0};
    int major, minor, patch;
    enum status status = engine_load(diag);
    if (status != STATUS_OK)
        return status;
    engine_version(&major, &minor, &patch);
    engine_append_simgrid_module_path(&module);
    uint64_t digest = continue_digest_with_file(
        continue_digest_with_file(DIGEST_OF_NO_BYTES, "/proc/self/exe"), module.data);
    text_printf(out, "longhaul %s, SimGrid %d.%d.%d, program %016" PRIx64, LONGHAUL_VERSION, major,
                minor, patch, digest);
    text_release(&module);
    return STATUS_OK;
}
